"""The same game by several methods, with fewer plans, and beside random twins: tables for the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .game import Actions, SecurityGame, payoffs
from .graph import Floats
from .minimax import Minimax, minimax
from .oracle import double_oracle
from .regret import regret_matching
from .sparse import value_by_patrols
from .stackelberg import commit
from .twins import joint_schedules, uniform_matrix, with_random_values

if TYPE_CHECKING:
    from answerable.run import Run

    from .solver import Solution

LOOKS = 4_000  # iterations of regret matching that are shown
MOST_TWIN_ENTRIES, MOST_COMMITTED_ENTRIES = 500_000, 100_000  # of a random matrix: zero-sum, general-sum


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
    game: SecurityGame, found: Solution, rows: Actions, draws: int, run: Run, *, schedules: Sequence[int] = ()
) -> pl.DataFrame:
    """The real game and random ones of its shape.

    A random matrix has as many rows as the game written out has, unless that is more than some hundred thousand
    entries; then as many as the reduced game, or as that limit allows.

    Parameters
    ----------
    found : the real game's solution
    rows : of its reduced form, which depend on no value
    draws : of each kind
    schedules : of each patrol, in schedule form; then random ones are drawn too where all combinations can be listed
    """
    own, other = payoffs(game, rows.covered, rows.cost)
    n_columns = own.shape[1]
    most = (MOST_TWIN_ENTRIES if game.zero_sum else MOST_COMMITTED_ENTRIES) // n_columns
    n_rows = found.n_joint if found.n_joint <= most else min(len(own), most)

    def matrix(rng: np.random.Generator) -> tuple[Floats, Floats]:
        low, high = _ends(game, own)
        drawn = uniform_matrix((n_rows, n_columns), low, high, rng)
        if game.zero_sum:
            return drawn, -drawn
        return drawn, uniform_matrix((n_rows, n_columns), float(other.min()), float(other.max()), rng)

    def values(rng: np.random.Generator) -> tuple[Floats, Floats]:
        return payoffs(with_random_values(game, rng), rows.covered, rows.cost)

    def redrawn(rng: np.random.Generator) -> tuple[Floats, Floats]:
        dearest = float(rows.cost.max()) / len(game.homes)
        return payoffs(game, *joint_schedules(schedules, game.n_targets, rng, largest_cost=dearest))

    kinds = {"random matrix": matrix, "random values": values}
    if schedules and math.prod(schedules) <= most:
        kinds["random schedules"] = redrawn
    plan = [(kind, draw) for kind in kinds for draw in range(1, draws + 1)]

    def unit(one: tuple[str, int]) -> tuple[Any, ...]:
        kind, draw = one
        twin = kinds[kind](run.rng("twin", kind, draw))
        return (kind, draw, *twin[0].shape, *_secured(*twin, zero_sum=game.zero_sum, threads=run.threads))

    real = ("real", 0, found.n_joint if n_rows == found.n_joint else len(own), n_columns)
    told = [(*real, -found.low, len(found.probabilities)), *run.each(unit, plan, "random twins")]
    return pl.DataFrame(told, schema=["game", "number", "rows", "columns", "loss", "support"], orient="row")


def _secured(own: Floats, other: Floats, *, zero_sum: bool, threads: int) -> tuple[float, int]:
    """The loss of the best plan, and how many rows it mixes."""
    found = minimax(own, threads=threads) if zero_sum else commit(own, other, certify=False, threads=threads)
    return -found.low, int((found.row > 1e-9).sum())


def _ends(game: SecurityGame, U: Floats) -> tuple[float, float]:
    """The smallest and largest payoff of the game written out: in a zero-sum one dominated rows have the smallest."""
    if not game.zero_sum:
        return float(U.min()), float(U.max())
    worst = np.sort(game.loss)[::-1][: game.attackers].sum()
    return -max(float(worst) if game.scale == 1.0 else 1.0, float(-U.min())), float(U.max())
