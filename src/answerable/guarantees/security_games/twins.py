"""Random games of a real one's shape, and what is known of them beforehand.

Random games are degenerate benchmarks, each in its own way (facts that the tests measure):

- of a matrix of independent continuous entries the equilibrium is unique, its supports are of equal size, on average
  about half of a square one; its value is within O(1/n) of the mean, so that even the uniform strategy is close;
- a skew-symmetric one has supports of odd size, k with probability C(n, k) / 2^(n - 1);
- with many more rows than columns the defender's support fills all columns, and the value drifts to the largest entry;
- in a general-sum game of independent entries some pure commitment already gets 1 - 1/(m + 1) of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .coverage import Bools
from .game import SecurityGame
from .graph import Floats


def uniform_matrix(shape: tuple[int, int], low: float, high: float, rng: np.random.Generator) -> Floats:
    """A matrix of this shape with independent entries, uniform between the real one's ends."""
    return rng.uniform(low, high, shape)


def with_random_values(game: SecurityGame, rng: np.random.Generator) -> SecurityGame:
    """The same graph, patrols and targets; values uniform between the real ones' ends.

    In a zero-sum game they are then divided by the largest, and gain and loss stay equal. In a general-sum one each is
    drawn by itself and keeps its unit, since moves cost something in it.
    """
    loss = rng.uniform(game.loss.min(), game.loss.max(), game.n_targets)
    if not game.zero_sum:
        return replace(game, loss=loss, gain=rng.uniform(game.gain.min(), game.gain.max(), game.n_targets))
    loss = loss / (loss.max() or 1.0)
    return replace(game, loss=loss, gain=loss)


def random_utilities(n_targets: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
    """Schedule-form utilities at random: covered ones nearer to zero than uncovered ones.

    Returns
    -------
    defender uncovered, defender covered, attacker covered, attacker uncovered : (n_targets,) each
    """
    own, other = -rng.random(n_targets), rng.random(n_targets)
    return own, own * rng.random(n_targets), other * rng.random(n_targets), other


def random_schedules(
    n_schedules: int, n_targets: int, rng: np.random.Generator, *, most: int = 3, largest_cost: float = 1.0
) -> tuple[Bools, Floats]:
    """Schedules of targets drawn with replacement, with random costs.

    Parameters
    ----------
    n_schedules, n_targets : how many
    most : targets drawn for each
    largest_cost : costs are uniform up to it

    Returns
    -------
    covered : (n_schedules, n_targets), cost : (n_schedules,)
    """
    covered = np.zeros((n_schedules, n_targets), bool)
    np.put_along_axis(covered, rng.integers(n_targets, size=(n_schedules, most)), True, axis=1)
    return covered, rng.uniform(0, largest_cost, n_schedules)


def joint_schedules(
    each: Sequence[int], n_targets: int, rng: np.random.Generator, *, largest_cost: float
) -> tuple[Bools, Floats]:
    """Every combination of random schedules of several patrols.

    Parameters
    ----------
    each : schedules of each patrol
    n_targets, largest_cost : as in ``random_schedules``

    Returns
    -------
    covered : (n_joint, n_targets), cost : (n_joint,)
    """
    covered, cost = np.zeros((1, n_targets), bool), np.zeros(1)
    for n_schedules in each:
        own, own_cost = random_schedules(n_schedules, n_targets, rng, largest_cost=largest_cost)
        covered = (covered[:, None] | own[None]).reshape(-1, n_targets)
        cost = np.add.outer(cost, own_cost).ravel()
    return covered, cost


def skew_symmetric(n: int, rng: np.random.Generator) -> Floats:
    """A symmetric zero-sum game: entries normal, the matrix minus its transpose."""
    entries = rng.normal(size=(n, n))
    return entries - entries.T
