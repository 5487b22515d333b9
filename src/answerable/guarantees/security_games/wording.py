"""What the tables' columns hold, and how numbers become metrics and a verdict."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from answerable.answer import Metric, Verdict

from .printed import small

if TYPE_CHECKING:
    from .game import SecurityGame

MOST_ENTRIES_COMPARED = 1_000_000  # of a matrix on which several methods are run for comparison
MOST_ROWS_SEARCHED = 60  # of a matrix on which the best k plans are searched
ENOUGH = 1e-6  # gap, relative to the payoffs' range, below which a value is certified

PLANS = {
    "plan": "number of the plan, the likeliest first",
    "probability": "how often it should be run [1]",
    "patrol": "number of the patrol that walks",
    "walk": "where it goes; in brackets for how many time steps it stays",
    "covers": "targets that the whole team covers in this plan",
    "cost": "cost of the plan's moves [unit of the loss]",
}
ROSTER = {
    "day": "number of the day",
    "plan": "number of the plan to run, drawn by its probability",
    "patrol": "number of the patrol that walks",
    "walk": "where it goes; in brackets for how many time steps it stays",
}
ROWS = {
    "plan": "number of the row's action, the likeliest first",
    "probability": "how often it should be played [1]",
    "row": "number of the row in the matrix, from 1",
    "name": "its name in the file, where it has one",
}
TARGETS = {
    "target": "the target",
    "latitude": "degrees",
    "longitude": "degrees",
    "loss": "what the defender loses when an attack succeeds [unit of the loss]",
    "gain": "what the attacker gains then [unit of the loss]",
    "coverage": "how often it is covered [1]",
    "expected_gain": "what an attack on it gains, covered this often [unit of the loss]",
    "attack": "how often an attacker who knows the plan, and whom the plan leaves indifferent, goes there [1]",
}
COLUMNS = {
    "column": "number of the column in the matrix, from 1",
    "name": "its name in the file, where it has one",
    "attack": "how often the attacker plays it [1]",
    "expected_gain": "what it gains him against this mix [payoff]",
}
BY_PLANS = {
    "plans": "distinct plans allowed",
    "loss": "loss that the best mix of so many secures [unit of the loss]",
    "least_loss": "no mix of so many loses less than this [unit of the loss]",
}
TEAMS = {
    "patrols": "number of patrols",
    "loss": "loss that they secure [unit of the loss]",
    "least_loss": "no plan of theirs loses less than this [unit of the loss]",
    "joint_walks": "joint walks to choose from",
}
METHODS = {
    "method": "what solved the game",
    "loss": "loss that its plan secures [unit of the loss]",
    "least_loss": "lower bound of the loss that it proves [unit of the loss]",
    "gap": "the difference [unit of the loss]",
    "iterations": "of that method",
    "plans": "plans in its mix",
}
LOOKED = {
    "method": "what solved the game",
    "multiplications": "work so far",
    "gap": "between the two bounds at that point [unit of the loss]",
}
TWINS = {
    "game": "real, random matrix (independent entries), random values (same graph) or random schedules",
    "number": "of the draw; 0 for the real game",
    "rows": "rows of the game",
    "columns": "columns of the game",
    "loss": "its value as a loss [unit of the loss]",
    "support": "plans in the mix that was found",
}


def verdict(gap: float, spread: float) -> Verdict:
    """Whether the two bounds are close enough to be called one value."""
    if gap <= ENOUGH * spread:
        return Verdict("certified", f"upper and lower bound are {small(gap)} apart")
    return Verdict(
        "undecided", f"upper and lower bound are {small(gap)} apart", "leave method to auto, or ask for more precision"
    )


def range_of(game: SecurityGame) -> float:
    """How far the payoffs of a game reach."""
    return float(game.loss.max()) or 1.0


def stays(places: Sequence[str]) -> str:
    """A walk as it is printed: each place once, with the time steps of a longer stay."""
    runs = [(place, len(list(times))) for place, times in itertools.groupby(places)]
    return " > ".join(place if n == 1 else f"{place} ({n})" for place, n in runs)


def loss_of(value: float) -> float:
    """A defender's payoff as a loss; nothing is 0, not -0."""
    return 0.0 - value


def exact(value: float, unit: str, method: str, label: str) -> Metric:
    """A number that is exact, in few words."""
    return Metric(value, kind="exact", unit=unit, method=method, label=label)
