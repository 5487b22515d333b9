"""The same game by several methods, with fewer plans, and beside random twins: tables for the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .game import SecurityGame
from .graph import Floats
from .minimax import Minimax, minimax
from .oracle import double_oracle
from .regret import regret_matching
from .sparse import value_by_patrols
from .twins import uniform_matrix, with_random_values

if TYPE_CHECKING:
    from answerable.run import Run

    from .solver import Solution

LOOKS = 4_000  # iterations of regret matching that are shown
MOST_TWIN_ENTRIES = 500_000


def by_plans(U: Floats, most: int) -> pl.DataFrame:
    """What the best one, two, ... plans secure, as losses."""
    found = value_by_patrols(U, most)
    return pl.DataFrame(
        {
            "plans": [one.k for one in found],
            "loss": [-one.value for one in found],
            "least_loss": [-one.bound for one in found],
        }
    )


def compared(U: Floats, game: SecurityGame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every method on one matrix, and double oracle on the game it came from.

    Parameters
    ----------
    U : (m, n) what the defender receives
    game : where it came from; None where double oracle does not apply

    Returns
    -------
    one row for each method, and one for each look at its gap
    """
    runs: list[tuple[str, Any]] = [
        ("interior point", minimax(U, method="interior-point", vertex=False)),
        ("simplex", minimax(U, method="simplex")),
    ]
    if game is not None:
        oracle = double_oracle(game)
        runs.append(
            (
                "double oracle",
                Minimax(
                    oracle.low, oracle.high, oracle.probabilities, oracle.attacks, "", len(oracle.history),
                    oracle.history,
                ),
            )
        )  # fmt: skip
    for label, rule in (("PRM+", "prm+"), ("RM+", "rm+"), ("RM", "rm")):
        runs.append((label, regret_matching(U, rule=rule, iterations=LOOKS)))  # type: ignore[arg-type]
    rows = [
        (label, -one.low, -one.high, max(one.gap, 0.0), one.iterations, int((one.row > 1e-12).sum()))
        for label, one in runs
    ]
    looks = [
        (label, float(work), max(float(high - low), 0.0))
        for label, one in runs
        for work, low, high in one.history
        if np.isfinite(high - low)
    ]
    methods = pl.DataFrame(rows, schema=["method", "loss", "least_loss", "gap", "iterations", "plans"], orient="row")
    return methods, pl.DataFrame(looks, schema=["method", "multiplications", "gap"], orient="row")


def twin_rows(
    game: SecurityGame,
    found: Solution,
    U: Floats,
    draws: int,
    run: Run,
    solve: Callable[[SecurityGame], Solution],
) -> pl.DataFrame:
    """The real game and random ones of its shape.

    A random matrix has as many rows as the game written out has, unless that is more than some hundred thousand
    entries; then as many as the reduced game.

    Parameters
    ----------
    found : the real game's solution
    U : its reduced payoffs
    draws : of each kind
    solve : how the real one was solved
    """
    n_columns = U.shape[1]
    n_rows = found.n_joint if found.n_joint * n_columns <= MOST_TWIN_ENTRIES else len(U)
    low, high = _ends(game, U)
    rows = [
        (
            "real",
            0,
            found.n_joint if n_rows == found.n_joint else len(U),
            n_columns,
            -found.low,
            len(found.probabilities),
        )
    ]
    for draw in range(1, draws + 1):
        matrix = uniform_matrix((n_rows, n_columns), low, high, run.rng("twin", "matrix", draw))
        one = minimax(matrix, threads=run.threads)
        rows.append(("random matrix", draw, n_rows, n_columns, -one.low, int((one.row > 1e-9).sum())))
    for draw in range(1, draws + 1):
        twin = solve(with_random_values(game, run.rng("twin", "values", draw)))
        rows.append(("random values", draw, twin.n_rows, n_columns, -twin.low, len(twin.probabilities)))
    return pl.DataFrame(rows, schema=["game", "number", "rows", "columns", "loss", "support"], orient="row")


def _ends(game: SecurityGame, U: Floats) -> tuple[float, float]:
    """The smallest and largest payoff of the game written out: dominated rows have the smallest."""
    worst = np.sort(game.loss)[::-1][: game.attackers].sum()
    return -max(float(worst) if game.scale == 1.0 else 1.0, float(-U.min())), float(U.max())
