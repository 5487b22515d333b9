"""Sufficient reasons, smallest reasons and smallest changes of additive decisions: many rows, one sort each.

Bassan, Moshkovitz and Katz, *Additive Models Explained*, NeurIPS 2025, Algorithms 1 and 2. Class 1 is decided where
the score, less its cutoff, is at least 0. A feature that is free to vary can take at most ``excess_j`` away from the
side of the decision; a set of features that is held fixed suffices when the score stands against the sum of all others.

Where we depart: the paper multiplies signs to test whether a class is kept, which fails at a score of exactly 0. Here
class 1 is kept while ``score - loss >= 0``, class 0 while ``score + loss < 0``. A test that lies within rounding of 0
is decided anew in fractions of the stored doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import in_threads, kernel
from answerable.errors import BadInput

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]
EPSILON = float(np.finfo(np.float64).eps)
# Numbers that are whole multiples of this, and not larger than its inverse, add up without rounding.
_GRID, _LARGEST = 2.0**-20, 2.0**30
MOST_FEATURES = 2**16  # what the numbers in ``order`` can count
MOST_INSERTED = 64  # features that are put in order one by one; more are sorted


class Reasons(NamedTuple):
    """The smallest reason and the smallest change of every row.

    score : (n_rows,) float64, less the cutoff
    positive : (n_rows,) bool, whether class 1 was decided
    order : (n_rows, n_features) uint16, features from the largest excess to the smallest
    reason_size : (n_rows,) the first so many of ``order`` are a smallest sufficient reason
    reason_slack : (n_rows,) float64, by how much the worst completion of that reason still clears the line
    change_size : (n_rows,) the first so many of ``order``, changed, flip the decision; -1 where nothing flips it
    change_slack : (n_rows,) float64, by how much they pass the line; where nothing flips it, by how much all fall short
    borderline : (n_rows,) bool, decided in fractions because a test lay within rounding of the line
    """

    score: Floats
    positive: Bools
    order: npt.NDArray[np.uint16]
    reason_size: npt.NDArray[np.int32]
    reason_slack: Floats
    change_size: npt.NDArray[np.int32]
    change_slack: Floats
    borderline: Bools

    def reason(self) -> Bools:
        """(n_rows, n_features) whether each feature belongs to the smallest reason."""
        return self._first(self.reason_size)

    def change(self) -> Bools:
        """(n_rows, n_features) whether each feature belongs to the smallest change."""
        return self._first(self.change_size)

    def _first(self, sizes: npt.NDArray) -> Bools:
        chosen = np.zeros(self.order.shape, bool)
        ranks = np.arange(self.order.shape[1]) < sizes[:, None]
        np.put_along_axis(chosen, self.order.astype(np.intp), ranks, axis=1)
        return chosen


def reasons(
    contributions: Floats,
    low: Floats,
    high: Floats,
    offset: float = 0.0,
    *,
    frozen: Sequence[int] = (),
    threads: int = 1,
) -> Reasons:
    """The smallest sufficient reason and the smallest change that flips, for every row.

    Parameters
    ----------
    contributions : (n_rows, n_features) float64, each feature's component
    low, high : (n_features,) float64, ends of each component over its domain
    offset : intercept less cutoff
    frozen : numbers of features that cannot take another value
    threads : rows are shared out over so many

    Returns
    -------
    Reasons

    Raises
    ------
    BadInput : more than 65,536 features

    Notes
    -----
    O(n log n) a row for n features: one sort and two running sums.
    """
    contributions, offset = np.ascontiguousarray(contributions, np.float64), float(offset)
    n_rows, n_features = contributions.shape
    if n_features > MOST_FEATURES:
        mend = f"give at most {MOST_FEATURES:,}"
        raise BadInput(f"there are {n_features:,} features", where="contributions", mend=mend)
    found = _empty(n_rows, n_features)
    held = np.zeros(n_features, bool)
    held[list(frozen)] = True
    exact = all(_on_grid(part) for part in (contributions, low, high, np.array([offset])))
    # 4 n eps sum |g| bounds the rounding of every sum below
    tolerance = 0.0 if exact else 4 * max(n_features, 1) * EPSILON

    def solve(rows: range) -> None:
        part = slice(rows.start, rows.stop)
        columns: list[npt.NDArray] = [column[part] for column in found]
        _solve_rows(contributions[part], low, high, offset, held, tolerance, *columns)

    if n_rows:
        in_threads(solve, range(n_rows), threads)
    for row in np.flatnonzero(found.borderline):
        _decide_exactly(found, int(row), contributions[row], low, high, offset, held)
    return found


def sufficient(contributions: Floats, low: Floats, high: Floats, offset: float, fixed: Bools) -> tuple[Bools, Floats]:
    """Whether a fixed set of features decides each row whatever the others are, and by how much.

    Parameters
    ----------
    contributions : (n_rows, n_features) float64
    low, high : (n_features,) float64
    offset : intercept less cutoff
    fixed : (n_features,) or (n_rows, n_features) bool

    Returns
    -------
    (n_rows,) bool and (n_rows,) float64: by how much the worst completion clears the line; below 0, or 0 for class 0,
    where it does not
    """
    fixed = np.broadcast_to(fixed, contributions.shape)
    score = contributions.sum(axis=1) + offset
    positive = score >= 0
    worst = np.where(positive[:, None], low, high)
    end = np.where(fixed, contributions, worst).sum(axis=1) + offset
    near = np.abs(end) <= 4 * contributions.shape[1] * EPSILON * (np.abs(contributions).sum(axis=1) + abs(offset))
    near |= np.abs(score) <= 4 * contributions.shape[1] * EPSILON * (np.abs(contributions).sum(axis=1) + abs(offset))
    kept = np.where(positive, end >= 0, end < 0)
    for row in np.flatnonzero(near):
        own = sum(map(Fraction, contributions[row]), Fraction(offset))
        side = own >= 0
        ends = low if side else high
        exact = sum(
            (Fraction(contributions[row, j] if fixed[row, j] else ends[j]) for j in range(len(low))), Fraction(offset)
        )
        kept[row] = exact >= 0 if side else exact < 0
    return kept, np.where(positive, end, -end)


def tie_class(
    found: Reasons, contributions: Floats, low: Floats, high: Floats, offset: float = 0.0, *, frozen: Sequence[int] = ()
) -> tuple[Bools, Bools]:
    """Which features stand in every smallest reason, and which in some.

    Parameters
    ----------
    found : what :func:`reasons` gave for the same contributions, low, high, offset and frozen

    Returns
    -------
    core, some : (n_rows, n_features) bool

    Notes
    -----
    A feature of the reason is in every one when the next largest cannot take its place; another is in some when it can
    take the place of the last.
    """
    excess = np.where(found.positive[:, None], contributions - low, high - contributions)
    excess[:, list(frozen)] = 0.0
    order = found.order.astype(np.intp)
    n_rows, n_features = excess.shape
    sorted_excess = np.take_along_axis(excess, order, axis=1)
    rows, size = np.arange(n_rows), found.reason_size
    in_reason = np.arange(n_features) < size[:, None]
    next_one = sorted_excess[rows, np.minimum(size, n_features - 1)]
    last_one = sorted_excess[rows, np.maximum(size - 1, 0)]
    slack = found.reason_slack[:, None]
    left_without, left_with = slack - (sorted_excess - next_one[:, None]), slack - (last_one[:, None] - sorted_excess)
    up = found.positive[:, None]

    def kept(left: Any) -> Any:
        """Whether the class is kept; for class 0 it is lost where nothing is left."""
        return np.where(up, left >= 0, left > 0)

    replaceable = kept(left_without) & (size < n_features)[:, None]
    can_replace = kept(left_with) & (size > 0)[:, None]
    exact = all(_on_grid(part) for part in (contributions, low, high, np.array([offset])))
    near = 4 * n_features * EPSILON * (np.abs(contributions).sum(axis=1) + abs(offset))
    doubtful = (np.abs(np.stack([left_without, left_with])) <= near[:, None]).any(axis=(0, 2))
    for row in np.flatnonzero(doubtful & (not exact)):
        replaceable[row], can_replace[row] = _ties_exactly(
            found, int(row), contributions[row], low, high, offset, list(frozen)
        )
    core, some = np.empty_like(in_reason), np.empty_like(in_reason)
    np.put_along_axis(core, order, in_reason & ~replaceable, axis=1)
    np.put_along_axis(some, order, in_reason | can_replace, axis=1)
    return core, some


def _ties_exactly(
    found: Reasons, row: int, contributions: Floats, low: Floats, high: Floats, offset: float, frozen: list[int]
) -> tuple[list[bool], list[bool]]:
    """For each feature, by falling excess: whether the next can take its place, and whether it can take the last's."""
    up, size = bool(found.positive[row]), int(found.reason_size[row])
    side = abs(sum(map(Fraction, contributions), Fraction(offset)))
    ends = low if up else high
    excess = [
        Fraction(0) if j in frozen else abs(Fraction(contributions[j]) - Fraction(float(ends[j])))
        for j in found.order[row].tolist()
    ]
    slack = side - sum(excess[size:], Fraction(0))

    def kept(loss: Fraction) -> bool:
        return loss <= slack if up else loss < slack

    replaceable = [size < len(excess) and kept(one - excess[size]) for one in excess]
    return replaceable, [size > 0 and kept(excess[size - 1] - one) for one in excess]


def _empty(n_rows: int, n_features: int) -> Reasons:
    return Reasons(
        np.empty(n_rows), np.empty(n_rows, bool), np.empty((n_rows, n_features), np.uint16), np.empty(n_rows, np.int32),
        np.empty(n_rows), np.empty(n_rows, np.int32), np.empty(n_rows), np.empty(n_rows, bool),
    )  # fmt: skip


def _on_grid(numbers: Floats) -> bool:
    numbers = np.asarray(numbers)
    if not numbers.size or np.abs(numbers).max() >= _LARGEST:
        return not numbers.size
    # the first few rows tell apart fitted models and scorecards without a pass over all
    head = numbers[:64] / _GRID
    if np.any(head != np.floor(head)):
        return False
    scaled = numbers / _GRID
    return not np.any(scaled != np.floor(scaled))


@kernel
def _solve_rows(
    contributions: Floats, low: Floats, high: Floats, offset: float, held: Bools, tolerance: float, score: Floats,
    positive: Bools, order: npt.NDArray[np.uint16], reason_size: npt.NDArray[np.int32], reason_slack: Floats,
    change_size: npt.NDArray[np.int32], change_slack: Floats, borderline: Bools,
) -> None:  # fmt: skip
    n_rows, n = contributions.shape
    excess, loss_of = np.empty(n), np.empty(n)
    for row in range(n_rows):
        total, size = offset, abs(offset)
        for j in range(n):
            total += contributions[row, j]
            size += abs(contributions[row, j])
        near = tolerance * size
        up = total >= 0
        for j in range(n):
            own = contributions[row, j]
            loss_of[j] = 0.0 if held[j] else (own - low[j] if up else high[j] - own)
        if n > MOST_INSERTED:
            ranked = np.argsort(-loss_of, kind="mergesort")
            for place in range(n):
                order[row, place] = ranked[place]
                excess[place] = loss_of[ranked[place]]
        else:
            for j in range(n):
                # insertion by falling excess; equal ones keep their order
                place = j
                while place > 0 and excess[place - 1] < loss_of[j]:
                    excess[place] = excess[place - 1]
                    order[row, place] = order[row, place - 1]
                    place -= 1
                excess[place] = loss_of[j]
                order[row, place] = j
        side = total if up else -total
        doubtful = abs(total) < near
        # the reason: let go of the smallest excesses while the class is kept
        loss, kept = 0.0, n
        while kept > 0:
            left = side - (loss + excess[kept - 1])
            doubtful = doubtful or abs(left) < near
            if left < 0 or (left == 0 and not up):
                break
            loss += excess[kept - 1]
            kept -= 1
        # the change: add up the largest excesses until the class is lost
        gain, changed, flips = 0.0, 0, False
        while changed < n and not flips:
            gain += excess[changed]
            changed += 1
            left = side - gain
            doubtful = doubtful or abs(left) < near
            flips = left < 0 or (left == 0 and not up)
        score[row] = total
        positive[row] = up
        reason_size[row] = kept
        reason_slack[row] = side - loss
        change_size[row] = changed if flips else -1
        change_slack[row] = abs(side - gain)
        borderline[row] = doubtful


def _decide_exactly(
    found: Reasons, row: int, contributions: Floats, low: Floats, high: Floats, offset: float, held: Bools
) -> None:
    """The same row in fractions of the stored doubles: no sum is rounded."""
    own = [Fraction(value) for value in contributions]
    total = sum(own, Fraction(offset))
    up = total >= 0
    ends = low if up else high
    excess = [Fraction(0) if held[j] else abs(own[j] - Fraction(float(ends[j]))) for j in range(len(own))]
    order = sorted(range(len(own)), key=lambda j: (-excess[j], j))
    side = abs(total)

    def is_kept(loss: Fraction) -> bool:
        return loss <= side if up else loss < side

    kept, loss = len(own), Fraction(0)
    while kept > 0 and is_kept(loss + excess[order[kept - 1]]):
        kept -= 1
        loss += excess[order[kept]]
    gain, changed, flips = Fraction(0), 0, False
    while changed < len(own) and not flips:
        gain += excess[order[changed]]
        changed += 1
        flips = not is_kept(gain)
    found.score[row], found.positive[row], found.order[row] = float(total), up, order
    found.reason_size[row], found.reason_slack[row] = kept, float(side - loss)
    found.change_size[row], found.change_slack[row] = changed if flips else -1, float(abs(side - gain))
