"""A model with pairs as one distribution: states of every feature on one grid, tables over them, rows as states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.additive_model.distributions import Weights, cells
from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.parts import Shape
from answerable.subjects.additive_model.ranges import cut, reachable

from .elimination import Own
from .joint import Joint, Part
from .pairs import Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Grid(NamedTuple):
    """Every feature's bins, fine enough for all its pair tables, and the tables over them.

    edges : for each feature, rising, from minus to plus infinity
    tables : over the numbers of the bins, from 1; 0 stands for a missing value
    """

    edges: list[Floats]
    tables: list[Table]

    def states(self, encoded: Floats) -> Ints:
        """(n_rows, n_features) number of the bin of every value of encoded rows."""
        return np.column_stack([state_of(encoded[:, j], edges) for j, edges in enumerate(self.edges)])


def state_of(column: Floats, edges: Floats) -> Ints:
    """Number of the bin of encoded values, 0 of a missing one."""
    return np.where(np.isnan(column), 0, np.searchsorted(edges[1:-1], column, side="right") + 1).astype(np.intp)


def grid_of(model: AdditiveModel) -> Grid:
    """The grid of a model of one score."""
    inner: list[list[Floats]] = [[] for _ in model.features]
    for pair in model.pairs:
        inner[pair.first].append(pair.first_edges[1:-1])
        inner[pair.second].append(pair.second_edges[1:-1])
    edges = [np.concatenate([[-np.inf], np.unique(np.concatenate([*own, []])), [np.inf]]) for own in inner]

    def coarse(j: int, own: Floats) -> Ints:
        starts = edges[j][:-1]
        return np.append(0, np.searchsorted(own[1:-1], starts, side="right") + 1)

    tables = [
        Table(
            pair.first, pair.second,
            pair.values[np.ix_(coarse(pair.first, pair.first_edges), coarse(pair.second, pair.second_edges))][:, :, 0],
        )
        for pair in model.pairs
    ]  # fmt: skip
    return Grid(edges, tables)


def joint_of(
    model: AdditiveModel, grid: Grid, offset: float, *, known: Sequence[int] = (), background: Any = None,
    weights: Weights = "model",
) -> Joint:  # fmt: skip
    """The distribution of a model's features, independent of one another.

    Parameters
    ----------
    model : of one score
    grid : of :func:`grid_of`
    offset : intercept, less the cutoff where a decision is asked of
    known : features whose values will be put in later, with :meth:`Joint.with_known`
    background : rows whose columns give the distributions
    weights : as in :func:`answerable.subjects.additive_model.distributions.marginals`

    Raises
    ------
    BadInput : a feature whose component is continuous, without background rows
    """
    rows = None if background is None else model.encode_background(background)
    parts = []
    for j, (shape, edges) in enumerate(zip(model.features, grid.edges, strict=True)):
        if j in known:
            parts.append(Part(np.zeros(1, np.intp), np.zeros(1), np.ones(1)))
            continue
        if rows is not None:
            at, mass = rows[:, j], np.full(len(rows), 1 / len(rows))
        elif shape.constant or shape.integer:
            at, mass = cells(shape, edges, weights)
        else:
            raise BadInput(
                "its component is continuous, so that its distribution is no list", where=f"feature {shape.name}",
                mend="give background rows",
            )  # fmt: skip
        parts.append(_merged(state_of(at, edges), shape(at)[:, 0], mass))
    return Joint(parts, grid.tables, offset)


def own_rows(model: AdditiveModel, grid: Grid, encoded: Floats) -> list[Own]:
    """Encoded rows as main effects and states."""
    mains = model.contributions(encoded)[:, :, 0]
    return [Own(values, states) for values, states in zip(mains, grid.states(encoded), strict=True)]


def _merged(states: Ints, values: Floats, mass: Floats) -> Part:
    """Equal values of one state become one."""
    order = np.lexsort([values, states])
    states, values, mass = states[order], values[order], mass[order]
    new = np.append(True, (np.diff(states) != 0) | (np.diff(values) != 0))
    return Part(states[new], values[new], np.add.reduceat(mass, np.flatnonzero(new)))


def levels_of(shape: Shape, edges: Floats, bins: Ints) -> Part | None:
    """Every state and main effect that a feature reaches together; None where these are continuous.

    Parameters
    ----------
    shape : the feature
    edges : of its grid
    bins : (m,) rising numbers of the bins that are its states; -1 where all bins are one state
    """
    if shape.integer:
        at = np.concatenate([np.arange(low, high + 1) for _, low, high, _, _ in reachable(shape)] or [np.zeros(0)])
        states, values = state_of(at, edges), shape(at)[:, 0]
    elif shape.constant:
        found = list(pieces_of(shape, edges))
        states = np.array([number for number, _ in found], np.intp)
        values = np.array([float(shape.coefficients[piece, 0, 0]) for _, piece in found])
    else:
        return None
    if shape.missing is not None:
        states, values = np.append(states, 0), np.append(values, shape.missing[0])
    numbers = np.zeros(len(states), np.intp) if bins[0] == -1 else np.searchsorted(bins, states).astype(np.intp)
    return _merged(numbers, values, np.full(len(values), 1 / len(values)))


def pieces_of(shape: Shape, edges: Floats) -> Iterator[tuple[int, int]]:
    """Which pieces of a shape reach into which bin: number of the bin, from 1, and of the piece."""
    for piece in reachable(shape):
        for number in _overlapped(piece[1], piece[2], edges):
            if cut(shape, piece, _start(edges, number), _end(edges, number), closed=number == len(edges) - 2):
                yield number + 1, piece[0]


def _overlapped(low: float, high: float, edges: Floats) -> range:
    first, last = np.searchsorted(edges[1:-1], [low, high], side="right")
    return range(int(first), int(last) + 1)


def _start(edges: Floats, number: int) -> float:
    return -np.inf if number == 0 else float(edges[number])


def _end(edges: Floats, number: int) -> float:
    return np.inf if number == len(edges) - 2 else float(edges[number + 1])
