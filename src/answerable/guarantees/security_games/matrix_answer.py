"""The answer about a game that is given as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from answerable.answer import Answer, Figure, Metric, Table
from answerable.errors import BadInput

from . import figures
from .api import MatrixGame
from .bimatrix import least_exploitable_pure, lemke_howson
from .comparison import by_plans, compared
from .minimax import Minimax, minimax
from .regret import regret_matching
from .stackelberg import commit
from .twins import uniform_matrix
from .wording import (
    BY_PLANS,
    COLUMNS,
    LOOKED,
    METHODS,
    MOST_ENTRIES_COMPARED,
    MOST_ROWS_SEARCHED,
    ROWS,
    TWINS,
    loss_of,
    verdict,
)

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import SecurityGames

UNIT = "payoff"


def matrix_answer(asked: SecurityGames, run: Run) -> Answer:
    """The defender's best mix of rows, with its certificate."""
    if asked.movements is not None or asked.infrastructure is not None:
        raise BadInput("a matrix and data for another game", where=asked.name, mend="give one of them")
    game = MatrixGame.read(asked.matrix)
    found, attacker_value, against = _solved(asked, game, run)
    tables = {
        "plans": Table(_rows(game, found), ROWS, title="Which rows to play, and how often"),
        "columns": Table(_columns(game, found), COLUMNS, title="What the attacker does"),
    }
    drawn: dict[str, Figure] = {}
    metrics = {
        "loss": Metric(
            loss_of(found.low), loss_of(found.high), loss_of(found.low), unit=UNIT, kind="bounds",
            method="what the mix secures, and what bounds every mix", label="Loss that the mix secures",
        ),
        "gap": Metric(found.gap, unit=UNIT, kind="exact", method="upper less lower bound", label="Gap of the bounds"),
        "plans": Metric(
            int((found.row > 0).sum()), unit="rows", kind="exact", method="in the mix", label="Rows in the mix"
        ),
        "attacker_gain": Metric(
            attacker_value, unit=UNIT, kind="exact", method="his best response", label="What the attacker gains"
        ),
    }  # fmt: skip
    coverage = (
        tables["columns"]
        .frame.rename({"name": "target"})
        .with_columns(
            pl.lit(0.0).alias("coverage"),
            pl.col("target").replace("", None).fill_null(pl.format("column {}", "column")),
        )
    )
    drawn["responses"] = Figure.drawn(figures.response_bars, coverage, unit=UNIT)
    if game.zero_sum:
        i, j, regret = least_exploitable_pure(game.defender)
        metrics["pure_regret"] = Metric(
            regret, unit=UNIT, kind="exact", method=f"row {i + 1} against column {j + 1}",
            label="Least regret of a pure profile",
        )  # fmt: skip
        if game.defender.size <= MOST_ENTRIES_COMPARED:
            methods, looks = compared(game.defender, None)
            tables["methods"] = Table(methods, METHODS, title="What each method proves")
            tables["gaps"] = Table(looks, LOOKED, title="Gap by work")
            drawn["gaps"] = Figure.drawn(figures.gap_by_work, looks, unit=UNIT)
        if len(game.defender) <= MOST_ROWS_SEARCHED:
            plans = by_plans(game.defender, asked.most_plans)
            tables["by_plans"] = Table(plans, BY_PLANS, title="What few rows secure")
            drawn["by_plans"] = Figure.drawn(figures.value_by_plans, plans, value=-found.high, unit=UNIT)
        if asked.twins:
            twins = _twins(game, found, asked.twins, run)
            tables["twins"] = Table(twins, TWINS, title="The game and random ones of its shape")
            drawn["twins"] = Figure.drawn(figures.twins_strip, twins, unit=UNIT)
    else:
        metrics["loss_if_ties_break_against"] = Metric(
            -against, unit=UNIT, kind="exact", method="an indifferent attacker does what is worst for the defender",
            label="Loss if ties break against the defender",
        )  # fmt: skip
    m, n = game.defender.shape
    spread = float(np.ptp(game.defender)) or 1.0
    mixed = int(metrics["plans"].value)
    mix = "one row" if mixed == 1 else f"a mix of {mixed} rows"
    return Answer(
        summary=f"In a game of {m} x {n} actions {mix} secures {found.low:.4g}, and no mix more than {found.high:.4g}.",
        metrics=metrics,
        tables=tables,
        figures=drawn,
        limits=[
            "The mix is best against an attacker who knows how often each row is played and nothing of today's draw.",
            "Payoffs are taken as they stand in the file.",
            *([] if game.zero_sum else ["Where the attacker is indifferent he does what is best for the defender."]),
        ],
        verdict=verdict(found.gap, spread),
    )


def _solved(asked: SecurityGames, game: MatrixGame, run: Run) -> tuple[Minimax, float, float]:
    """The mix, what the attacker gets, and what the defender gets if ties break against her."""
    if game.zero_sum:
        if asked.method == "double-oracle":
            raise BadInput("double oracle needs a graph", where="method", mend="leave it to auto")
        if asked.method == "auto" or asked.method == "simplex" or asked.method == "interior-point":
            found = minimax(game.defender, method=asked.method, threads=run.threads)
        else:
            found = regret_matching(game.defender, rule=asked.method, iterations=100_000, tolerance=asked.precision)
        return found, -found.low, found.low
    if asked.method not in ("auto", "simplex"):
        raise BadInput(f"method {asked.method} solves zero-sum games", where="method", mend="leave it to auto")
    if asked.concept == "nash":
        profile = lemke_howson(game.defender, game.attacker, exact=sum(game.defender.shape) <= 40)
        row, column = np.array(profile.row, float), np.array(profile.column, float)
        value = float(row @ game.defender @ column)
        high = value + max(float((game.defender @ column).max()) - value, 0.0)
        told = Minimax(value, high, row, column, "Lemke-Howson", 0, np.empty((0, 3)))
        return told, float(row @ game.attacker @ column), value
    best = commit(game.defender, game.attacker, threads=run.threads)
    column = np.eye(1, game.defender.shape[1], best.response)[0]
    told = Minimax(best.low, best.high, best.row, column, "multiple programmes", best.solved, np.empty((0, 3)))
    return told, best.attacker_value, best.against_ties


def _rows(game: MatrixGame, found: Minimax) -> pl.DataFrame:
    played = np.flatnonzero(found.row > 0)
    played = played[np.argsort(-found.row[played], kind="stable")]
    return pl.DataFrame(
        {
            "plan": range(1, len(played) + 1),
            "probability": found.row[played],
            "row": played + 1,
            "name": [game.rows[k] if game.rows else "" for k in played],
        }
    )


def _columns(game: MatrixGame, found: Minimax) -> pl.DataFrame:
    n = game.defender.shape[1]
    return pl.DataFrame(
        {
            "column": range(1, n + 1),
            "name": list(game.columns) or [""] * n,
            "attack": found.column,
            "expected_gain": found.row @ game.attacker,
        }
    )


def _twins(game: MatrixGame, found: Minimax, draws: int, run: Run) -> pl.DataFrame:
    U = game.defender
    rows = [("real", 0, *U.shape, -found.low, int((found.row > 1e-9).sum()))]
    for draw in range(1, draws + 1):
        one = minimax(uniform_matrix(U.shape, float(U.min()), float(U.max()), run.rng("twin", "matrix", draw)))
        rows.append(("random matrix", draw, *U.shape, -one.low, int((one.row > 1e-9).sum())))
    return pl.DataFrame(rows, schema=["game", "number", "rows", "columns", "loss", "support"], orient="row")
