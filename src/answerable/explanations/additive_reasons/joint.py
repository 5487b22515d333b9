"""How the score of a model with pairs is distributed: sums listed along the graph of the pairs, or sampled.

Each feature is drawn on its own; the pair terms join them. What is known has one state, so that its tables become
terms of their neighbours and leave the graph. What is left falls apart into connected groups, whose sums are
independent; within a group sums are listed feature by feature, and equal sums merge once the neighbours of a feature
have all been added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.statistics.proportions import clopper_pearson_interval

from .completions import EPSILON, MOST_ATOMS, Component, Probability, are_on_grid, listed
from .elimination import certified
from .pairs import Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
N_DRAWS = 200_000
LEVEL = 0.95
SAMPLED = "sampled"


class Part(NamedTuple):
    """One feature: what it may contribute alone, in which state of the pair tables, and how often.

    states : (m,) numbers of rows or columns of its tables
    values : (m,) main effects
    probabilities : (m,) summing to 1
    """

    states: Ints
    values: Floats
    probabilities: Floats


class Joint(NamedTuple):
    """A distribution of every feature, tables over their states, and the offset (intercept less cutoff)."""

    parts: Sequence[Part]
    tables: Sequence[Table]
    offset: float

    def with_known(self, known: Sequence[int], states: Sequence[int], values: Floats) -> Joint:
        """The same with some features certain: in these states, with these main effects (one each a feature)."""
        parts = list(self.parts)
        for j in known:
            parts[j] = Part(np.array([states[j]], np.intp), values[[j]], np.ones(1))
        return self._replace(parts=parts)


def reduced(joint: Joint) -> Joint:
    """The same distribution with states numbered from 0, and no table over a feature of one state."""
    renumbered = [np.unique(part.states, return_inverse=True) for part in joint.parts]
    values = [part.values.astype(np.float64) for part in joint.parts]
    places = [place.reshape(-1).astype(np.intp) for _, place in renumbered]
    tables, offset = [], joint.offset
    for first, second, table in joint.tables:
        cut = table[np.ix_(renumbered[first][0], renumbered[second][0])]
        if cut.size == 1:
            offset += float(cut[0, 0])
        elif cut.shape[0] == 1:
            values[second] = values[second] + cut[0][places[second]]
        elif cut.shape[1] == 1:
            values[first] = values[first] + cut[:, 0][places[first]]
        else:
            tables.append(Table(first, second, cut))
    parts = [
        Part(place, value, part.probabilities) for place, value, part in zip(places, values, joint.parts, strict=True)
    ]
    return Joint(parts, tables, offset)


def groups(n_parts: int, tables: Sequence[Table]) -> list[list[int]]:
    """Features that tables join, directly or through others; each group in ascending order."""
    root = list(range(n_parts))

    def top(j: int) -> int:
        while root[j] != j:
            j = root[j]
        return j

    for first, second, _ in tables:
        root[top(first)] = top(second)
    found: dict[int, list[int]] = {}
    for j in range(n_parts):
        found.setdefault(top(j), []).append(j)
    return list(found.values())


class Sums(NamedTuple):
    """Listed sums of a group of features.

    sums, masses : (m,) distinct sums for each combination of kept states, and their probabilities
    kept : for each feature whose state was kept, (m,) its state
    """

    sums: Floats
    masses: Floats
    kept: dict[int, Ints]


def listed_sums(
    joint: Joint, members: Sequence[int], *, keep: Sequence[int] = (), most_atoms: int = MOST_ATOMS
) -> Sums | None:
    """The sums of a group of features; None where they are more than the cap.

    Parameters
    ----------
    joint : as :func:`reduced` gives it
    members : the group
    keep : features whose states are told apart to the end
    most_atoms : combinations listed at most at a time
    """
    neighbours: dict[int, set[int]] = {j: set() for j in members}
    inside = [table for table in joint.tables if table.first in neighbours and table.second in neighbours]
    for first, second, _ in inside:
        neighbours[first].add(second)
        neighbours[second].add(first)
    sums, masses = np.zeros(1), np.ones(1)
    frontier: dict[int, Ints] = {}
    left = set(members)
    while left:
        # the feature whose neighbours are mostly there already, then the one with the fewest values
        j = min(left, key=lambda k: (len(neighbours[k] & left), -len(neighbours[k]), len(joint.parts[k].values), k))
        left.remove(j)
        states, values, probabilities = joint.parts[j]
        if len(sums) * len(values) > 4 * most_atoms:
            return None
        old = np.repeat(np.arange(len(sums)), len(values))
        new = np.tile(np.arange(len(values)), len(sums))
        sums, masses = sums[old] + values[new], masses[old] * probabilities[new]
        frontier = {other: column[old] for other, column in frontier.items()} | {j: states[new]}
        for first, second, table in inside:
            if j in (first, second) and (first + second - j) in frontier:
                sums = sums + table[frontier[first], frontier[second]]
        frontier = {k: column for k, column in frontier.items() if k in keep or neighbours[k] & left}
        sums, masses, frontier = _merged(sums, masses, frontier)
        if len(sums) > most_atoms:
            return None
    return Sums(sums, masses, frontier)


def _merged(sums: Floats, masses: Floats, frontier: dict[int, Ints]) -> tuple[Floats, Floats, dict[int, Ints]]:
    order = np.lexsort([sums, *frontier.values()])
    sums, masses = sums[order], masses[order]
    columns = {k: column[order] for k, column in frontier.items()}
    new = np.ones(len(sums), bool)
    new[1:] = np.diff(sums) != 0
    for column in columns.values():
        new[1:] |= np.diff(column) != 0
    starts = np.flatnonzero(new)
    return sums[starts], np.add.reduceat(masses, starts), {k: column[starts] for k, column in columns.items()}


def joint_at_least_zero(
    joint: Joint, *, most_atoms: int = MOST_ATOMS, width: float = 1e-3, seed: int = 0
) -> Probability:
    """P(score >= 0): by listed sums, else certified, else sampled.

    Parameters
    ----------
    joint : distribution of each feature, tables and offset
    most_atoms : sums listed at most
    width : of the interval, where it is certified
    seed : of the draws, where it is sampled; the interval then holds for 95 of 100 seeds

    Returns
    -------
    Probability
    """
    small, doubt = reduced(joint), rounding(joint)
    components = []
    for members in groups(len(small.parts), small.tables):
        found = listed_sums(small, members, most_atoms=most_atoms)
        if found is None:
            break
        components.append(Component(found.sums, found.masses / found.masses.sum()))
    else:
        exact = listed(components, small.offset, most_atoms=most_atoms, doubt=doubt)
        if exact is not None:
            return exact
    return certified(small, width=width, doubt=doubt) or sampled(small, seed=seed)


def rounding(joint: Joint) -> float:
    """Bound of the rounding of any sum of one term each; 0 where all are whole multiples of one unit."""
    numbers = [*(part.values for part in joint.parts), *(table.values for table in joint.tables)]
    if are_on_grid([joint.offset], *numbers):
        return 0.0
    size = abs(joint.offset) + sum(float(np.abs(part).max()) for part in numbers)
    return 4 * (len(numbers) + 1) * EPSILON * size


def draw(joint: Joint, n_draws: int, rng: np.random.Generator) -> tuple[list[Ints], Floats]:
    """(n_draws,) states of each feature, and (n_draws, n_features) main effects, drawn independently."""
    states, values = [], np.empty((n_draws, len(joint.parts)))
    for j, part in enumerate(joint.parts):
        chosen = rng.choice(len(part.values), size=n_draws, p=part.probabilities / part.probabilities.sum())
        states.append(part.states[chosen])
        values[:, j] = part.values[chosen]
    return states, values


def sampled(joint: Joint, *, seed: int = 0, n_draws: int = N_DRAWS) -> Probability:
    """P(score >= 0) from draws, with Clopper and Pearson's interval of 95 %."""
    states, values = draw(joint, n_draws, np.random.default_rng(seed))
    scores = values.sum(axis=1) + joint.offset
    for first, second, table in joint.tables:
        scores += table[states[first], states[second]]
    hits = int((scores >= 0).sum())
    interval = clopper_pearson_interval(hits, n_draws, level=LEVEL)
    return Probability(hits / n_draws, interval.low, interval.high, SAMPLED)
