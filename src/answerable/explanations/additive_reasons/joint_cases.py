"""Reasons and changes of one row by tests of sets: for pairs of features, and wherever rounding could decide.

A decision is kept while every demand on the score is met: one for a class against the other, one a rival for several
classes, one a side of the tolerance for a regression. By how much the worst completion meets a demand comes from
:mod:`.pairs`, the smallest set from :mod:`.smallest_sets`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.parts import Pair
from answerable.subjects.additive_model.ranges import binned, ranges

from .joint_model import pieces_of
from .pairs import Extreme, PairModel, States, Table, in_fractions, least
from .smallest_sets import SmallestSet, minimal_sets, smallest_set
from .solver import EPSILON

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
EXACT, MINIMAL, INTERVAL, UNKNOWN = "exact", "subset-minimal", "interval", "unknown"


class Row(NamedTuple):
    """One row's part of :class:`.cases.Cases`."""

    score: float
    decision: int
    reason: Bools
    reason_slack: float
    reason_bound: float
    change: Bools
    change_slack: float
    change_bound: float
    worst: Floats
    guarantee_reason: str
    guarantee_change: str
    borderline: bool
    excess: Floats


class Demand(NamedTuple):
    """``sign * score + sum of shift`` is to stay above 0, or at it where ``strict`` is False.

    model : states and tables
    own, states : (n_features,) main effects of the row, and its states
    size : sum of what is added up, in absolute value, which bounds the rounding
    doubt : how far what is computed can be from the truth, beyond rounding
    unrounded : gives model and own in fractions, where they are themselves differences of stored numbers
    """

    model: PairModel
    own: Floats
    states: Sequence[int]
    sign: int
    shift: tuple[float, ...]
    strict: bool
    size: float
    doubt: float = 0.0
    unrounded: Callable[[], tuple[PairModel, npt.NDArray[Any]]] | None = None

    def least(self, row: Floats, released: Bools) -> Extreme:
        """The least over completions of the released features; without rounding where it lies within rounding of 0."""
        found = self._least(row, released, fractions=False)
        near = 4 * (len(self.own) + len(self.model.tables) + 2) * EPSILON * self.size
        if min(abs(found.value), abs(found.reached)) >= near:
            return found
        return self._least(row, released, fractions=True)

    def _least(self, row: Floats, released: Bools, *, fractions: bool) -> Extreme:
        model, own = self.unrounded() if fractions and self.unrounded else (self.model, self.own)
        found = least(model, own, self.states, row, released, self.sign, fractions=fractions)
        shift = sum(map(Fraction, self.shift)) if fractions else sum(self.shift)
        return Extreme(found.value + shift, found.reached + shift, found.witness)

    def met(self, value: Any) -> bool:
        """Whether a value meets it."""
        return bool(value > 0 if self.strict else value >= 0)


def _leads(model: AdditiveModel, part: _Part, decision: int, rival: int) -> PairModel:
    """The lead of a class over a rival in fractions: a difference of two stored scores may itself be rounded."""

    def lead(values: Floats) -> Any:
        return in_fractions(values[..., decision]) - in_fractions(values[..., rival])

    states = []
    for shape, edges, numbers, own in zip(model.features, part.edges, part.bins, part.joint.states, strict=True):
        least_of = lead(shape(own.at_low))
        if shape.constant:
            # among levels of one rounded lead the least without rounding
            for number, piece in pieces_of(shape, edges):
                place = 0 if numbers[0] == -1 else int(np.searchsorted(numbers, number))
                least_of[place] = min(least_of[place], lead(shape.coefficients[piece, 0]))
        states.append(own._replace(low=least_of))
    tables = []
    for pair, table in zip(model.pairs, part.joint.tables, strict=True):
        first = _coarse(part.edges[pair.first], part.bins[pair.first], pair.first_edges)
        second = _coarse(part.edges[pair.second], part.bins[pair.second], pair.second_edges)
        tables.append(table._replace(values=lead(pair.values[np.ix_(first, second)])))
    return PairModel(states, tables, lead(model.intercept))


class Slack(NamedTuple):
    """How a decision stands against the worst completion.

    certain : whether it is kept whatever the completion
    possible : whether no completion is known that loses it
    left : by how much the nearest demand is met, at least
    reached : the same at the witness
    witness : (n_features,) encoded values of the completion that goes furthest
    """

    certain: bool
    possible: bool
    left: float
    reached: float
    witness: Floats


class Prepared:
    """A model made ready for tests of sets: states and tables of each pair of classes, made once for all rows.

    Parameters
    ----------
    model : any task, with pairs or without
    tolerance : of a regression, else None
    """

    def __init__(self, model: AdditiveModel, tolerance: float | None = None) -> None:
        self.model, self.tolerance = model, tolerance
        self._parts: dict[tuple[int, int], _Part] = {}
        self._unrounded: dict[tuple[int, int], PairModel] = {}

    def demands(self, row: Floats, decision: int) -> list[Demand]:
        """What keeps the decision of an encoded row."""
        if self.model.n_outputs > 1:
            # of equal scores the class of the smaller number is decided
            return [self._demand(row, decision, rival, 1, strict=rival < decision) for rival in self.rivals(decision)]
        if self.tolerance is None:
            return [self._demand(row, 0, 0, 1 if decision else -1, strict=not decision)]
        one = self._demand(row, 0, 0, 1, strict=False)
        one = one._replace(doubt=2 * one.doubt)  # the row's own output may be off too
        # the row's own output in its parts, so that it can be added up without rounding
        own = [one.model.offset, *one.own.tolist(), *(float(pair(row[None])[0, 0]) for pair in self.model.pairs)]
        size = 2 * one.size + self.tolerance
        return [
            one._replace(shift=(self.tolerance, *(-part for part in own)), size=size),
            one._replace(sign=-1, shift=(self.tolerance, *own), size=size),
        ]

    def rivals(self, decision: int) -> list[int]:
        """The other classes."""
        return [r for r in range(max(self.model.n_outputs, 2)) if r != decision]

    def decided(self, row: Floats) -> int:
        """The class of an encoded row; in fractions where its score lies within rounding of the line."""
        if self.tolerance is not None:
            return 0
        decision = int(self.model.decide(row[None])[0])
        nothing = np.zeros(len(row), bool)
        better: int | None = decision
        while better is not None:
            decision = better
            demands = zip(self.rivals(decision), self.demands(row, decision), strict=True)
            better = next((rival for rival, one in demands if not one.met(one.least(row, nothing).value)), None)
        return decision

    def _demand(self, row: Floats, decision: int, rival: int, sign: int, *, strict: bool) -> Demand:
        if (decision, rival) not in self._parts:
            model = self.model if decision == rival else self.model.against(decision, rival)
            joint, edges, bins = pair_model(model)
            size = abs(joint.offset) + sum(float(np.abs(table.values).max()) for table in joint.tables)
            size += sum(float(np.abs(np.concatenate([part.low, part.high])).max()) for part in joint.states)
            self._parts[decision, rival] = _Part(model, joint, edges, bins, size)
        part = self._parts[decision, rival]
        own = part.model.contributions(row[None])[0, :, 0]
        states = _states_of(row, part.edges, part.bins)
        size = part.size + float(np.abs(own).sum())
        if decision == rival:
            return Demand(part.joint, own, states, sign, (), strict, size, self.model.error)

        def unrounded() -> tuple[PairModel, npt.NDArray[Any]]:
            if (decision, rival) not in self._unrounded:
                self._unrounded[decision, rival] = _leads(self.model, part, decision, rival)
            values = self.model.contributions(row[None])[0]
            return self._unrounded[decision, rival], in_fractions(values[:, decision]) - in_fractions(values[:, rival])

        return Demand(part.joint, own, states, sign, (), strict, size, 2 * self.model.error, unrounded)


class _Part(NamedTuple):
    model: AdditiveModel
    joint: PairModel
    edges: list[Floats]
    bins: list[npt.NDArray[np.intp]]
    size: float


def standing(demands: Sequence[Demand], row: Floats, released: Bools) -> Slack:
    """How the decision stands once some features are released."""
    ends = [demand.least(row, released) for demand in demands]
    certain = [demand.met(end.value - demand.doubt) for demand, end in zip(demands, ends, strict=True)]
    possible = [demand.met(end.reached + demand.doubt) for demand, end in zip(demands, ends, strict=True)]
    worst = min(range(len(ends)), key=lambda k: (possible[k], ends[k].reached))
    return Slack(
        all(certain), all(possible),
        float(min(end.value - demand.doubt for demand, end in zip(demands, ends, strict=True))),
        float(min(end.reached + demand.doubt for demand, end in zip(demands, ends, strict=True))),
        ends[worst].witness,
    )  # fmt: skip


class Tests:
    """Tests of sets of features of one encoded row, each made once.

    Parameters
    ----------
    prepared : the model
    row : (n_features,) encoded
    free : (n_features,) bool, features that can take another value
    """

    def __init__(self, prepared: Prepared, row: Floats, free: Bools) -> None:
        self.row, self.free = row, free
        self.decision = prepared.decided(row)
        self.demands = prepared.demands(row, self.decision)
        self.seen: dict[bytes, Slack] = {}

    def __call__(self, released: Bools) -> Slack:
        """How the decision stands once these features are released, those that can be."""
        key = (released & self.free).tobytes()
        if key not in self.seen:
            self.seen[key] = standing(self.demands, self.row, released & self.free)
        return self.seen[key]

    def excess(self) -> Floats:
        """(n_features,) the most that another value of the feature alone can take away from the decision."""
        n = len(self.row)
        reached = self(np.zeros(n, bool)).reached
        return np.array([reached - self(np.arange(n) == j).reached for j in range(n)])

    def order(self, excess: Floats) -> list[int]:
        """The free features, the one that can take away most first."""
        return [int(j) for j in np.argsort(-excess, kind="stable") if self.free[j]]

    @property
    def loose(self) -> bool:
        """Whether some test was neither proved nor refuted."""
        return any(one.certain != one.possible for one in self.seen.values())


def reasons_by_tests(
    prepared: Prepared, row: Floats, free: Bools, most: int
) -> tuple[list[tuple[Bools, float, str]], bool]:
    """Every reason of one encoded row from which nothing can be left out, the smallest first.

    Parameters
    ----------
    prepared, row, free : as in :func:`row_by_tests`
    most : reasons at most

    Returns
    -------
    for each its features, by how much its worst completion meets the nearest demand, and the guarantee: "exact", or
    "interval" where it was not refuted that one feature less would do; whether there are no other reasons
    """
    stand = Tests(prepared, row, free)
    found, complete = minimal_sets(
        lambda chosen: stand(~chosen).certain, stand.order(stand.excess()), len(row), most=most
    )
    lines = []
    for chosen in found:
        less = [stand(~chosen | (np.arange(len(row)) == j)) for j in np.flatnonzero(chosen)]
        lines.append((chosen, stand(~chosen).left, INTERVAL if any(one.possible for one in less) else EXACT))
    return lines, complete and not stand.loose


def row_by_tests(prepared: Prepared, row: Floats, free: Bools, costs: Floats | None = None) -> Row:
    """The smallest reason and the smallest or cheapest change of one encoded row.

    Parameters
    ----------
    prepared : the model
    row : (n_features,) encoded
    free : (n_features,) bool, features that can take another value
    costs : (n_features,) of changing each feature; one each by default
    """
    n, stand = len(row), Tests(prepared, row, free)
    decision, demands = stand.decision, stand.demands
    nothing = stand(np.zeros(n, bool))
    score = nothing.left if decision or prepared.model.n_outputs > 1 else -nothing.left
    if prepared.tolerance is not None or prepared.model.error:
        score = float(prepared.model.score(row[None])[0, 0] - prepared.model.cutoff)
    excess = stand.excess()
    order = stand.order(excess)
    reason = smallest_set(lambda chosen: stand(~chosen).certain, order, n)
    cheap = order if costs is None else sorted(order, key=lambda j: -excess[j] / costs[j])
    change = smallest_set(lambda chosen: not stand(chosen).possible, cheap, n, costs=costs)
    # where the score lies within the model's own error of the line, nothing is certain, not even the decision
    known = np.ones(n, bool) if reason is None else reason.chosen
    reason_bound, change_bound = (reason.bound if reason else np.inf), (change.bound if change else np.inf)
    loose = stand.loose
    if loose:
        # what is not refuted may be a reason, and what is not certain may flip: both bounds are of these
        unrefuted = smallest_set(lambda chosen: stand(~chosen).possible, order, n)
        uncertain = smallest_set(lambda chosen: not stand(chosen).certain, cheap, n, costs=costs)
        reason_bound = unrefuted.bound if unrefuted else 0.0
        change_bound = uncertain.bound if uncertain else np.inf
    if reason is None:
        reason_bound, change, change_bound = 0.0, None, 0.0
    changed = change.chosen if change else np.zeros(n, bool)
    after, left = stand(changed if change else free), stand(~known).left
    near = 4 * (n + len(demands[0].model.tables)) * EPSILON * max(demand.size for demand in demands)
    return Row(
        score, decision, known, left, reason_bound, changed, abs(after.reached), change_bound, after.witness,
        _word(reason, reason_bound, loose=loose), _word(change, change_bound, loose=loose),
        bool(min(abs(one.left) for one in stand.seen.values()) < near), excess,
    )  # fmt: skip


def _word(found: SmallestSet | None, bound: float, *, loose: bool) -> str:
    if found is None:
        return EXACT if np.isinf(bound) else UNKNOWN
    if found._replace(bound=bound).proved:
        return EXACT
    return INTERVAL if loose else MINIMAL


def pair_model(model: AdditiveModel) -> tuple[PairModel, list[Floats], list[npt.NDArray[np.intp]]]:
    """States and tables of a model of one score with pairs; the edges of the states and the bins that are reached."""
    ends = ranges(model)
    edges = []
    for j in range(len(model.features)):
        own = [edge for pair in model.pairs for edge in _edges_of(pair, j)]
        edges.append(np.unique(np.concatenate([[-np.inf, np.inf], *own])))
    states, bins = [], []
    for j, shape in enumerate(model.features):
        if len(edges[j]) == 2 and not _has_pair(model, j):
            bins.append(np.array([-1]))
            states.append(States(*(np.array([part[j]]) for part in (ends.low, ends.high, ends.at_low, ends.at_high))))
        else:
            numbers, within = binned(shape, edges[j])
            bins.append(numbers)
            states.append(States(within.low, within.high, within.at_low, within.at_high))
    tables = []
    for pair in model.pairs:
        first = _coarse(edges[pair.first], bins[pair.first], pair.first_edges)
        second = _coarse(edges[pair.second], bins[pair.second], pair.second_edges)
        tables.append(Table(pair.first, pair.second, pair.values[np.ix_(first, second)][:, :, 0]))
    return PairModel(states, tables, float(model.intercept[0] - model.cutoff)), edges, bins


def _has_pair(model: AdditiveModel, j: int) -> bool:
    return any(j in (pair.first, pair.second) for pair in model.pairs)


def _edges_of(pair: Pair, j: int) -> list[Floats]:
    return [edges for place, edges in ((pair.first, pair.first_edges), (pair.second, pair.second_edges)) if place == j]


def _coarse(fine: Floats, bins: npt.NDArray[np.intp], edges: Floats) -> npt.NDArray[np.intp]:
    """Number of the pair's own bin for each fine bin; 0 stays the bin of a missing value."""
    starts = fine[np.maximum(bins - 1, 0)]
    return np.where(bins == 0, 0, np.searchsorted(edges[1:-1], starts, side="right") + 1)


def _states_of(row: Floats, edges: list[Floats], bins: list[npt.NDArray[np.intp]]) -> list[int]:
    found = []
    for value, own_edges, numbers in zip(row, edges, bins, strict=True):
        number = 0 if np.isnan(value) else int(np.searchsorted(own_edges[1:-1], value, side="right")) + 1
        found.append(0 if numbers[0] == -1 else int(np.searchsorted(numbers, number)))
    return found
