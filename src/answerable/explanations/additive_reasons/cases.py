"""Reasons and changes of rows of a model, whichever kind of model it is.

- one score decides, no pairs: one sort a row (:mod:`.solver`), exact;
- pairs: worst completions by bucket elimination (:mod:`.pairs`);
- several classes: one demand a rival; a regression: one demand a side of the tolerance (:mod:`.covers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import in_threads
from answerable.errors import BadInput
from answerable.subjects.additive_model.form import AdditiveModel, Pair
from answerable.subjects.additive_model.ranges import Range, binned, ranges

from .covers import cheapest_cover
from .pairs import PairModel, States, Table, least, smallest_set
from .solver import EPSILON, Reasons, reasons, sufficient, tie_class

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
CHUNK = 16_384
EXACT, MINIMAL, INTERVAL = "exact", "subset-minimal", "interval"


class Cases(NamedTuple):
    """Smallest reasons and changes of rows.

    score : (n_rows,) float64, less the cutoff; of several classes the lead over the next one
    decision : (n_rows,) number of the class; 0 for a regression
    reason, change : (n_rows, n_features) bool; no change at all where nothing changes the decision
    reason_slack, change_slack : (n_rows,) float64, by how much they clear and pass the line; where nothing changes the
        decision, by how much all falls short
    reason_bound, change_bound : (n_rows,) no reason or change is smaller (for costs: cheaper)
    worst : (n_rows, n_features) encoded values that go furthest against the decision
    guarantee_reason, guarantee_change : (n_rows,) "exact", "subset-minimal" or "interval"
    borderline : (n_rows,) bool, decided in fractions
    core, some : (n_rows, n_features) bool, features in every smallest reason, and in some; only of one score without
        pairs, the reason itself elsewhere
    ties_known : whether these two say more than the reason
    """

    score: Floats
    decision: npt.NDArray[np.intp]
    reason: Bools
    reason_slack: Floats
    reason_bound: Floats
    change: Bools
    change_slack: Floats
    change_bound: Floats
    worst: Floats
    guarantee_reason: list[str]
    guarantee_change: list[str]
    borderline: Bools
    core: Bools
    some: Bools
    ties_known: Bools


def reasons_of(model: AdditiveModel, encoded: Floats, *, frozen: Sequence[int] = (), threads: int = 1) -> Reasons:
    """Reasons and changes of a model of one score without pairs, in chunks of rows.

    Memory beyond the rows: two bytes a value and 30 a row, whatever the number of rows.
    """
    ends = ranges(model)
    offset = float(model.intercept[0] - model.cutoff)
    if not len(encoded):
        return reasons(np.empty((0, len(model.features))), ends.low, ends.high, offset)

    def solve(starts: range) -> list[Reasons]:
        return [
            reasons(
                model.contributions(encoded[start : start + CHUNK])[:, :, 0], ends.low, ends.high, offset, frozen=frozen
            )
            for start in starts
        ]

    parts = [part for run in in_threads(solve, range(0, len(encoded), CHUNK), threads) for part in run]
    return Reasons(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def cases(
    model: AdditiveModel, encoded: Floats, *, frozen: Sequence[int] = (), tolerance: float | None = None,
    costs: Floats | None = None, threads: int = 1,
) -> Cases:  # fmt: skip
    """Smallest reasons and changes of encoded rows.

    Parameters
    ----------
    model : any task; a regression needs ``tolerance``
    encoded : (n_rows, n_features), from ``model.encode``
    frozen : numbers of features that cannot change
    tolerance : how far a regression's output may move and still count as the same
    costs : (n_features,) of changing each feature, > 0; one each by default
    threads : for many rows

    Raises
    ------
    BadInput : a regression without a tolerance, or costs and pairs together
    """
    if model.task == "regression" and tolerance is None:
        mend = "say how far the output may move and still count as the same"
        raise BadInput("a regression decides nothing without it", where="tolerance", mend=mend)
    if model.pairs:
        if costs is not None or model.n_outputs > 1:
            what = "costs" if costs is not None else "several classes"
            joined = " & ".join(model.names[j] for j in (model.pairs[0].first, model.pairs[0].second))
            mend = "leave them out, or fit the model with interactions=0"
            raise BadInput(f"{what} and pairs of features ({joined}, ...) together", where="costs", mend=mend)
        return _joined(_with_pairs(model, encoded, frozen, tolerance))
    if model.task == "regression":
        assert tolerance is not None
        return _regression(model, encoded, frozen, tolerance, costs)
    if model.n_outputs > 1:
        return _several_classes(model, encoded, frozen, costs)
    return _one_score(model, encoded, frozen, costs, threads)


def _one_score(
    model: AdditiveModel, encoded: Floats, frozen: Sequence[int], costs: Floats | None, threads: int
) -> Cases:
    ends = ranges(model)
    found = reasons_of(model, encoded, frozen=frozen, threads=threads)
    change, change_slack = found.change(), found.change_slack.copy()
    bound = np.where(found.change_size < 0, np.inf, found.change_size).astype(np.float64)
    exact = np.ones(len(encoded), bool)
    if costs is not None:
        own = model.contributions(encoded)[:, :, 0]
        for row in range(len(encoded)):
            excess = own[row] - ends.low if found.positive[row] else ends.high - own[row]
            excess[list(frozen)] = 0.0
            cover = cheapest_cover(excess, np.abs(found.score[[row]]), costs, strict=bool(found.positive[row]))
            if cover.feasible:
                change[row], bound[row], exact[row] = cover.chosen, cover.bound, cover.proved
                change_slack[row] = float(excess[cover.chosen].sum() - abs(found.score[row]))
    worst = np.where(found.positive[:, None], ends.at_low, ends.at_high)
    core, some = _ties(model, encoded, found, ends, frozen)
    return Cases(
        found.score, found.positive.astype(np.intp), found.reason(), found.reason_slack,
        found.reason_size.astype(np.float64), change, change_slack, bound, _keep_frozen(worst, encoded, frozen),
        [EXACT] * len(encoded), [EXACT if one else INTERVAL for one in exact], found.borderline, core, some,
        np.ones(len(encoded), bool),
    )  # fmt: skip


def _ties(
    model: AdditiveModel, encoded: Floats, found: Reasons, ends: Range, frozen: Sequence[int]
) -> tuple[Bools, Bools]:
    """Features in every smallest reason, and in some, in chunks of rows."""
    core, some = np.empty(encoded.shape, bool), np.empty(encoded.shape, bool)
    offset = float(model.intercept[0] - model.cutoff)
    for start in range(0, len(encoded), CHUNK):
        rows = slice(start, start + CHUNK)
        own = model.contributions(encoded[rows])[:, :, 0]
        columns: list[Any] = [column[rows] for column in found]
        part = Reasons(*columns)
        core[rows], some[rows] = tie_class(part, own, ends.low, ends.high, offset, frozen=frozen)
    return core, some


def _keep_frozen(worst: Floats, encoded: Floats, frozen: Sequence[int]) -> Floats:
    worst = np.array(worst, np.float64)
    worst[:, list(frozen)] = encoded[:, list(frozen)]
    return worst


class _Row(NamedTuple):
    """One row's part of :class:`Cases`."""

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


def _joined(rows: list[_Row]) -> Cases:
    columns = dict(zip(_Row._fields, zip(*rows, strict=True), strict=True))
    arrays: dict[str, Any] = {
        name: list(column) if name.startswith("guarantee") else np.array(column) for name, column in columns.items()
    }
    return Cases(**arrays, core=arrays["reason"], some=arrays["reason"], ties_known=np.zeros(len(rows), bool))


def _regression(
    model: AdditiveModel, encoded: Floats, frozen: Sequence[int], tolerance: float, costs: Floats | None
) -> Cases:
    """Two demands for a reason; for a change the cheaper side."""
    ends = ranges(model)
    own = model.contributions(encoded)[:, :, 0]
    rows = []
    for row, values in enumerate(own):
        up, down = ends.high - values, values - ends.low
        up[list(frozen)] = down[list(frozen)] = 0.0
        sides = np.stack([up, down])
        reason = cheapest_cover(sides, sides.sum(axis=1) - tolerance)
        changes = [cheapest_cover(side, np.array([tolerance]), costs, strict=True) for side in sides]
        at = [ends.at_high, ends.at_low]
        best = min((0, 1), key=lambda s: (not changes[s].feasible, changes[s].cost))
        left = tolerance - float(sides[:, ~reason.chosen].sum(axis=1).max(initial=0.0))
        moved = float(sides[best][changes[best].chosen].sum()) if changes[best].feasible else float(sides.sum(1).max())
        near = 4 * len(values) * EPSILON * (np.abs(values).sum() + abs(tolerance))
        rows.append(
            _Row(
                float(values.sum() + model.intercept[0]), 0, reason.chosen, left, reason.bound, changes[best].chosen,
                abs(moved - tolerance), changes[best].bound if changes[best].feasible else np.inf,
                _keep_frozen(at[best][None], encoded[[row]], frozen)[0],
                EXACT if reason.proved else INTERVAL,
                EXACT if all(one.proved or not one.feasible for one in changes) else INTERVAL,
                bool(abs(left) < near),
            )
        )  # fmt: skip
    return _joined(rows)


def _several_classes(model: AdditiveModel, encoded: Floats, frozen: Sequence[int], costs: Floats | None) -> Cases:
    """One demand a rival for a reason; for a change the cheapest rival to pass."""
    decisions = model.decide(encoded)
    rows = []
    for row, own_class in enumerate(decisions.tolist()):
        rivals = [r for r in range(model.n_outputs) if r != own_class]
        against = [model.against(own_class, rival) for rival in rivals]
        ends = [ranges(one) for one in against]
        own = np.array([one.contributions(encoded[[row]])[0, :, 0] for one in against])
        lead = own.sum(axis=1) + [float(one.intercept[0]) for one in against]
        excess = own - np.array([end.low for end in ends])
        excess[:, list(frozen)] = 0.0
        # of equal scores the class of the smaller number is decided
        strict = np.array([rival < own_class for rival in rivals])
        reason = cheapest_cover(excess, excess.sum(axis=1) - lead, strict=strict)
        changes = [
            cheapest_cover(e, np.array([s]), costs, strict=not t) for e, s, t in zip(excess, lead, strict, strict=True)
        ]
        best = min(range(len(rivals)), key=lambda r: (not changes[r].feasible, changes[r].cost))
        left = float((lead - (excess * ~reason.chosen).sum(axis=1)).min())
        moved = excess[best][changes[best].chosen] if changes[best].feasible else excess[best]
        near = 4 * own.shape[1] * EPSILON * float(np.abs(own).sum())
        rows.append(
            _Row(
                float(lead.min()), own_class, reason.chosen, left, reason.bound, changes[best].chosen,
                abs(float(moved.sum() - lead[best])), changes[best].bound if changes[best].feasible else np.inf,
                _keep_frozen(ends[best].at_low[None], encoded[[row]], frozen)[0],
                EXACT if reason.proved else INTERVAL,
                EXACT if all(one.proved or not one.feasible for one in changes) else INTERVAL,
                bool(abs(left) < near),
            )
        )  # fmt: skip
    return _joined(rows)


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


def _with_pairs(model: AdditiveModel, encoded: Floats, frozen: Sequence[int], tolerance: float | None) -> list[_Row]:
    joint, edges, bins = pair_model(model)
    own = model.contributions(encoded)[:, :, 0]
    scores = model.score(encoded)[:, 0] - model.cutoff
    free = np.ones(len(model.features), bool)
    free[list(frozen)] = False
    return [
        _pair_row(
            model, joint, own[row], _states_of(encoded[row], edges, bins), encoded[row], scores[row], free, tolerance
        )
        for row in range(len(encoded))
    ]


def _states_of(row: Floats, edges: list[Floats], bins: list[npt.NDArray[np.intp]]) -> list[int]:
    found = []
    for value, own_edges, numbers in zip(row, edges, bins, strict=True):
        number = 0 if np.isnan(value) else int(np.searchsorted(own_edges[1:-1], value, side="right")) + 1
        found.append(0 if numbers[0] == -1 else int(np.searchsorted(numbers, number)))
    return found


def _pair_row(
    model: AdditiveModel, joint: PairModel, own: Floats, own_states: list[int], row: Floats, score: float, free: Bools,
    tolerance: float | None,
) -> _Row:  # fmt: skip
    positive = score >= 0
    size = float(np.abs(own).sum()) + sum(float(np.abs(table.values).max()) for table in joint.tables)
    near = 4 * (len(own) + len(joint.tables)) * EPSILON * (size + abs(joint.offset))
    loose = False

    def slack(released: Bools) -> float:
        """By how much the worst completion of the rest clears the line."""
        nonlocal loose
        if tolerance is not None:
            ends = [least(joint, own, own_states, row, released & free, sign) for sign in (1.0, -1.0)]
            loose = loose or not all(end.exact for end in ends)
            return tolerance - max(score - ends[0].value, -ends[1].value - score)
        end = least(joint, own, own_states, row, released & free, 1.0 if positive else -1.0)
        loose = loose or not end.exact
        return end.value

    def kept(released: Bools) -> bool:
        left = slack(released)
        return left >= 0 if positive or tolerance is not None else left > 0

    excess = np.array([-slack(np.arange(len(own)) == j) for j in range(len(own))])
    order = [int(j) for j in np.argsort(-excess, kind="stable")]
    reason = smallest_set(lambda chosen: kept(~chosen), order, len(own))
    assert reason is not None  # all features together always suffice
    change = smallest_set(lambda chosen: not kept(chosen), [j for j in order if free[j]], len(own))
    changed = change.chosen if change else np.zeros(len(own), bool)
    worst = _worst_of(joint, own, own_states, row, changed & free if change else free, score, tolerance)
    left = slack(~reason.chosen)
    moved = -slack(changed) if change else slack(free)
    return _Row(
        score, 0 if tolerance is not None else int(positive), reason.chosen, left, float(reason.bound), changed,
        abs(moved), float(change.bound) if change else np.inf, worst,
        INTERVAL if loose else EXACT if reason.proved else MINIMAL,
        INTERVAL if loose else EXACT if change is None or change.proved else MINIMAL,
        bool(abs(left) < near or abs(moved) < near),
    )  # fmt: skip


def _worst_of(
    joint: PairModel,
    own: Floats,
    own_states: list[int],
    row: Floats,
    free: Bools,
    score: float,
    tolerance: float | None,
) -> Floats:
    if tolerance is None:
        return least(joint, own, own_states, row, free, 1.0 if score >= 0 else -1.0).witness
    ends = [least(joint, own, own_states, row, free, sign) for sign in (1.0, -1.0)]
    return max(ends, key=lambda end: abs(end.value - score * (1 if end is ends[0] else -1))).witness


def sufficiency(
    model: AdditiveModel, encoded: Floats, fixed: Bools, tolerance: float | None = None
) -> tuple[Bools, Floats, Floats, list[str]]:
    """Whether fixed features decide each row, the slack, the worst completion, and the guarantee.

    Returns
    -------
    (n_rows,) bool, (n_rows,) float64, (n_rows, n_features) encoded, (n_rows,) words
    """
    decide = model.decide(encoded) if model.task != "regression" else np.zeros(len(encoded), np.intp)
    if model.pairs or model.task == "regression" or model.n_outputs > 1:
        checked = [
            _sufficient_row(model, encoded[[row]], fixed, int(decide[row]), tolerance) for row in range(len(encoded))
        ]
        kept, slack, worst, words = zip(*checked, strict=True)
        return np.array(kept), np.array(slack), np.array(worst), list(words)
    ends = ranges(model)
    own = model.contributions(encoded)[:, :, 0]
    kept_rows, slacks = sufficient(own, ends.low, ends.high, float(model.intercept[0] - model.cutoff), fixed)
    completed = np.where(decide[:, None] == 1, ends.at_low, ends.at_high)
    return kept_rows, slacks, np.where(fixed, encoded, completed), [EXACT] * len(encoded)


def _sufficient_row(
    model: AdditiveModel, row: Floats, fixed: Bools, decision: int, tolerance: float | None
) -> tuple[bool, float, Floats, str]:
    if model.task == "regression" and tolerance is None:
        raise BadInput("a regression decides nothing without it", where="tolerance", mend="say how far it may move")
    if model.n_outputs > 1:
        return _against_rivals(model, row, fixed, decision)
    if not model.pairs:
        ends = ranges(model)
        own = model.contributions(row)[0, :, 0]
        moves = [float((ends.high - own)[~fixed].sum()), float((own - ends.low)[~fixed].sum())]
        far = int(moves[1] > moves[0])
        assert tolerance is not None
        left = tolerance - moves[far]
        return left >= 0, left, np.where(fixed, row[0], (ends.at_high, ends.at_low)[far]), EXACT
    joint, edges, bins = pair_model(model)
    own, states = model.contributions(row)[0, :, 0], _states_of(row[0], edges, bins)
    score = float(model.score(row)[0, 0] - model.cutoff)
    if tolerance is not None:
        pair_ends = [least(joint, own, states, row[0], ~fixed, sign) for sign in (1.0, -1.0)]
        gaps = [score - pair_ends[0].value, -pair_ends[1].value - score]
        far = int(gaps[1] > gaps[0])
        word = EXACT if pair_ends[far].exact else INTERVAL
        return gaps[far] <= tolerance, tolerance - gaps[far], pair_ends[far].witness, word
    end = least(joint, own, states, row[0], ~fixed, 1.0 if score >= 0 else -1.0)
    return end.value >= 0 if score >= 0 else end.value > 0, end.value, end.witness, EXACT if end.exact else INTERVAL


def _against_rivals(model: AdditiveModel, row: Floats, fixed: Bools, decision: int) -> tuple[bool, float, Floats, str]:
    worst: tuple[float, bool, Range] | None = None
    for rival in range(model.n_outputs):
        if rival == decision:
            continue
        one = model.against(decision, rival)
        ends = ranges(one)
        lead = float(np.where(fixed, one.contributions(row)[0, :, 0], ends.low).sum() + one.intercept[0])
        kept = lead > 0 if rival < decision else lead >= 0
        if worst is None or (kept, lead) < (worst[1], worst[0]):
            worst = (lead, kept, ends)
    assert worst is not None
    return worst[1], worst[0], np.where(fixed, row[0], worst[2].at_low), EXACT
