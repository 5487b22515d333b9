"""Reasons and changes of rows of a model, whichever kind of model it is.

- one score decides, no pairs: one sort a row (:mod:`.solver`), exact;
- pairs: sets tested one by one (:mod:`.joint_cases`), worst completions by bucket elimination (:mod:`.pairs`);
- components known within an error (networks of too many lines): the same tests, with that error on both sides;
- several classes: one demand a rival; a regression: one demand a side of the tolerance (:mod:`.covers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import in_threads
from answerable.errors import BadInput
from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.ranges import Range, ranges

from .arguments import tolerance_of
from .completions import are_on_grid
from .covers import Cover, cheapest_cover
from .joint_cases import EXACT, INTERVAL, UNKNOWN, Prepared, Row, row_by_tests, standing
from .solver import EPSILON, Reasons, reasons, sufficient, tie_class

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
CHUNK = 16_384


class Cases(NamedTuple):
    """Smallest reasons and changes of rows.

    score : (n_rows,) float64, less the cutoff; of several classes the lead over the next one
    decision : (n_rows,) number of the class; 0 for a regression
    reason, change : (n_rows, n_features) bool; no change at all where nothing changes the decision
    reason_slack, change_slack : (n_rows,) float64, by how much they clear and pass the line; where nothing changes the
        decision, by how much all falls short
    reason_bound, change_bound : (n_rows,) no reason or change is smaller (for costs: cheaper)
    worst : (n_rows, n_features) encoded values that go furthest against the decision
    guarantee_reason, guarantee_change : (n_rows,) "exact", "subset-minimal", "interval" or "unknown"
    borderline : (n_rows,) bool, decided in fractions
    excess : (n_rows, n_features) the most that another value of the feature alone can take away from the decision
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
    excess: Floats
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
    BadInput : a regression without a tolerance, or classes with one
    """
    tolerance = tolerance_of(model, tolerance)
    if not len(encoded):
        raise BadInput("there are no rows", where="X", mend="give at least one")
    if model.pairs or model.error:
        prepared = Prepared(model, tolerance)
        free = _free(model, frozen)
        return _joined([row_by_tests(prepared, row, free, costs) for row in encoded])
    if tolerance is not None:
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
    own = model.contributions(encoded)[:, :, 0]
    free = _free(model, frozen)
    excess = np.where(found.positive[:, None], own - ends.low, ends.high - own) * free
    if costs is not None:
        near = _rounding(model, own, ends)
        prepared = Prepared(model)
        for row in np.flatnonzero(found.change_size >= 0).tolist():
            margin = np.abs(found.score[[row]])
            cover = sure_cover(excess[[row]], margin, costs, strict=bool(found.positive[row]), near=near[row])
            if cover is None:
                tested = row_by_tests(prepared, encoded[row], free, costs)
                change[row], bound[row], change_slack[row] = tested.change, tested.change_bound, tested.change_slack
                exact[row] = tested.guarantee_change == EXACT
                continue
            change[row], bound[row], exact[row] = cover.chosen, cover.bound, cover.proved
            change_slack[row] = float(excess[row, cover.chosen].sum() - margin[0])
    worst = np.where(found.positive[:, None], ends.at_low, ends.at_high)
    core, some = _ties(model, encoded, found, ends, frozen)
    return Cases(
        found.score, found.positive.astype(np.intp), found.reason(), found.reason_slack,
        found.reason_size.astype(np.float64), change, change_slack, bound, np.where(free, worst, encoded),
        [EXACT] * len(encoded), [EXACT if one else INTERVAL for one in exact], found.borderline, excess, core, some,
        np.ones(len(encoded), bool),
    )  # fmt: skip


def _free(model: AdditiveModel, frozen: Sequence[int]) -> Bools:
    free = np.ones(len(model.features), bool)
    free[list(frozen)] = False
    return free


def _rounding(model: AdditiveModel, own: Floats, ends: Range) -> Floats:
    """(n_rows,) bound of the rounding of any sum of components and ends; 0 where they add up without rounding."""
    if are_on_grid(own, ends.low, ends.high, model.intercept, [model.cutoff]):
        return np.zeros(len(own))
    most = float(np.maximum(np.abs(ends.low), np.abs(ends.high)).sum() + np.abs(model.intercept).sum())
    return 4 * (own.shape[1] + 2) * EPSILON * (np.abs(own).sum(axis=1) + most + abs(model.cutoff))


def sure_cover(
    weights: Floats, demands: Floats, costs: Floats | None = None, *, strict: bool | Bools = False, near: float = 0.0
) -> Cover | None:
    """The cheapest cover where sums are known within ``near``; None where rounding could make another one the cheapest.

    What is cheapest for demands lowered by ``near`` is no dearer than the true one, and is it if it meets them raised.
    """
    if near == 0:
        return cheapest_cover(weights, demands, costs, strict=strict)
    found = cheapest_cover(weights, demands - near, costs)
    sure = weights[:, found.chosen].sum(axis=1) > demands + near
    return found if not found.feasible or sure.all() else None


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


def _joined(rows: list[Row]) -> Cases:
    columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
    arrays: dict[str, Any] = {
        name: list(column) if name.startswith("guarantee") else np.array(column) for name, column in columns.items()
    }
    return Cases(**arrays, core=arrays["reason"], some=arrays["reason"], ties_known=np.zeros(len(rows), bool))


def _regression(
    model: AdditiveModel, encoded: Floats, frozen: Sequence[int], tolerance: float, costs: Floats | None
) -> Cases:
    """Two demands for a reason; for a change the cheaper side."""
    ends, free = ranges(model), _free(model, frozen)
    own = model.contributions(encoded)[:, :, 0]
    near = _rounding(model, np.column_stack([own, np.full(len(own), tolerance)]), ends)
    prepared = Prepared(model, tolerance)
    rows = []
    for row, values in enumerate(own):
        sides = np.stack([ends.high - values, values - ends.low]) * free
        score = float(values.sum() + model.intercept[0])
        found = _by_covers(
            sides, np.full(2, tolerance), (ends.at_high, ends.at_low), np.zeros(2, bool), costs, near[row], score, 0
        )
        rows.append(_placed(found, encoded[row], free) or row_by_tests(prepared, encoded[row], free, costs))
    return _joined(rows)


def _several_classes(model: AdditiveModel, encoded: Floats, frozen: Sequence[int], costs: Floats | None) -> Cases:
    """One demand a rival for a reason; for a change the cheapest rival to pass."""
    free, prepared = _free(model, frozen), Prepared(model)
    against: dict[tuple[int, int], tuple[AdditiveModel, Range]] = {}
    whole = are_on_grid(model.intercept, *(shape.coefficients[:, 0] for shape in model.features))
    rows = []
    for row, own_class in zip(encoded, model.decide(encoded).tolist(), strict=True):
        for rival in prepared.rivals(own_class):
            if (own_class, rival) not in against:
                one = model.against(own_class, rival)
                against[own_class, rival] = (one, ranges(one))
        parts = [against[own_class, rival] for rival in prepared.rivals(own_class)]
        own = np.array([one.contributions(row[None])[0, :, 0] for one, _ in parts])
        lead = own.sum(axis=1) + [float(one.intercept[0]) for one, _ in parts]
        near = max(float(_rounding(one, own[[k]], ends)[0]) for k, (one, ends) in enumerate(parts))
        near = 0.0 if whole else near
        found = None
        if near == 0 or lead.min() > near:
            # of equal scores the class of the smaller number is decided
            strict = np.array([rival < own_class for rival in prepared.rivals(own_class)])
            excess = (own - np.array([ends.low for _, ends in parts])) * free
            at = [ends.at_low for _, ends in parts]
            found = _by_covers(excess, lead, at, strict, costs, near, float(lead.min()), own_class)
        rows.append(_placed(found, row, free) or row_by_tests(prepared, row, free, costs))
    return _joined(rows)


def _by_covers(
    excess: Floats, margins: Floats, at: Sequence[Floats], strict: Bools, costs: Floats | None, near: float,
    score: float, decision: int,
) -> Row | None:  # fmt: skip
    """Reason and change of a row whose decision is kept while no side loses its margin; None where rounding decides.

    Parameters
    ----------
    excess : (n_sides, n_features) the most that each feature can take away from each side, 0 for a frozen one
    margins : (n_sides,) what each side can lose
    at : for each side the (n_features,) encoded values that take most away
    strict : (n_sides,) whether a side is lost where nothing of its margin is left
    """
    reason = sure_cover(excess, excess.sum(axis=1) - margins, strict=strict, near=near)
    changes = [
        sure_cover(excess[[r]], margins[[r]], costs, strict=not strict[r], near=near) for r in range(len(margins))
    ]
    sure = [change for change in changes if change is not None]
    if reason is None or len(sure) < len(changes):
        return None
    best = min(range(len(sure)), key=lambda r: (not sure[r].feasible, sure[r].cost))
    cover = sure[best]
    left = float((margins - (excess * ~reason.chosen).sum(axis=1)).min())
    lost = excess[best, cover.chosen].sum() if cover.feasible else (excess.sum(axis=1) - margins).max() + margins[best]
    bound = min((change.bound for change in sure if change.feasible), default=np.inf)
    single = (margins[:, None] - excess).min(axis=0)
    return Row(
        score, decision, reason.chosen, left, reason.bound, cover.chosen, abs(float(lost - margins[best])), bound,
        at[best], EXACT if reason.proved else INTERVAL,
        EXACT if not cover.feasible or bound >= cover.cost else INTERVAL, False, margins.min() - single,
    )  # fmt: skip


def _placed(found: Row | None, row: Floats, free: Bools) -> Row | None:
    """The same with frozen features at the row's own values."""
    return None if found is None else found._replace(worst=np.where(free, found.worst, row))


def sufficiency(
    model: AdditiveModel, encoded: Floats, fixed: Bools, tolerance: float | None = None
) -> tuple[Bools, Floats, Floats, list[str]]:
    """Whether fixed features decide each row, the slack, the worst completion, and the guarantee.

    Returns
    -------
    (n_rows,) bool, (n_rows,) float64, (n_rows, n_features) encoded, (n_rows,) words
    """
    tolerance = tolerance_of(model, tolerance)
    if model.pairs or model.error or model.task == "regression" or model.n_outputs > 1:
        prepared = Prepared(model, tolerance)
        found = [standing(prepared.demands(row, prepared.decided(row)), row, ~fixed) for row in encoded]
        return (
            np.array([one.certain for one in found]), np.array([one.left for one in found]),
            np.array([one.witness for one in found]),
            [EXACT if one.certain == one.possible else UNKNOWN for one in found],
        )  # fmt: skip
    ends = ranges(model)
    own = model.contributions(encoded)[:, :, 0]
    offset = float(model.intercept[0] - model.cutoff)
    kept, slack = sufficient(own, ends.low, ends.high, offset, fixed)
    completed = np.where(model.decide(encoded)[:, None] == 1, ends.at_low, ends.at_high)
    return kept, slack, np.where(fixed, encoded, completed), [EXACT] * len(encoded)
