"""The numbers of :func:`term_scores` for more rows than memory holds: blocks of rows, read anew for each pass.

Every fit is Newton's method, whose gradient and second derivatives are sums over rows. One pass adds them up for all
fits at once, each term's own and the one of all together; between passes each fit takes its step, or goes back half of
one that went too far, as the fits in memory do. So the numbers are those of :func:`term_scores` to rounding, after
some eight passes, and what is held at a time is one block. Means and deviations are merged block by block (Chan, Golub
and LeVeque 1983), never taken from sums of squares about 0.

An AUROC needs the order of all rows and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import expit

from answerable.compiled import kernel
from answerable.errors import BadInput
from answerable.statistics import Floats, Ints

from .checks import Scale, check_settings, checked_block, refuse_odd_units
from .logistic import (
    BLOCK_CELLS,
    CLOSE,
    ENOUGH,
    FITTED,
    FLAT,
    MOST_HALVES,
    MOST_STEPS,
    ROWS_AT_ONCE,
    SEPARATED,
    UNFINISHED,
    Slopes,
    add_up,
    both_classes,
    refuse_unfitted,
)
from .refit import CONVERGED, Refit, cholesky, refuse_few_rows, separated, unsettled
from .significance import influences, slope_row, tests_of, welch
from .solver import TermScores, judged, scores_of

Blocks = Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]]
ANEW = "give a function that reads all rows anew at each call"


def streamed_scores(
    blocks: Blocks,
    *,
    names: Sequence[str] | None = None,
    scale: Scale = "logit",
    ridge: float = 0.0,
    level: float = 0.95,
    margin: float = 0.1,
    least_share: float = 0.05,
) -> TermScores:
    """Every number and the verdict of every term for labels of two classes, from blocks of rows.

    Parameters
    ----------
    blocks : called once for each pass; gives the same blocks each time, in any sizes: (n, U) component values and (n,)
        labels 0 and 1
    names : of the terms, for errors
    scale, ridge, level, margin, least_share : as for :func:`term_scores`

    Returns
    -------
    TermScores, its ``discriminability`` NaN and its ``linear`` empty

    Raises
    ------
    BadInput : as :func:`term_scores`, or blocks that are not the same in each pass
    """
    check_settings(scale=scale, ridge=ridge, level=level, margin=margin, least_share=least_share)
    rows = _Rows(blocks, names)
    classes = _classes(rows)
    n, called = int(classes.sizes.sum()), rows.called
    refuse_odd_units(classes.lows.min(axis=0), classes.highs.max(axis=0), [f"term {name}" for name in called])
    share = float(classes.sizes[1] / n)
    both_classes(share)
    gap = classes.means[1] - classes.means[0]
    mean = classes.means[0] + share * gap
    std = np.sqrt(classes.squares.sum(axis=0) / n + share * (1 - share) * gap**2)
    kept = np.flatnonzero(std > FLAT * np.maximum(classes.highs, -classes.lows).max(axis=0))
    refuse_few_rows(len(kept), n, ridge)
    if ridge == 0:
        (low0, low1), (high0, high1) = classes.lows[:, kept], classes.highs[:, kept]
        refuse_unfitted(np.where((high0 <= low1) | (high1 <= low0), SEPARATED, FITTED), [called[j] for j in kept])
    own = _Own(gap[kept] / std[kept], share, ridge / n)
    together = _Together(len(kept), share, ridge / n, [called[j] for j in kept])

    def standard() -> Iterator[tuple[Floats, Floats]]:
        for z, y in rows:
            yield np.ascontiguousarray(((z[:, kept] - mean[kept]) / std[kept]).T), y

    while own.going.any() or together.going:
        for t, y in standard():
            own.add(t, y)
            together.add(t, y)
        own.step(n)
        together.step(n)
    refuse_unfitted(own.status, [called[j] for j in kept])
    beta, information = together.point, together.information
    slopes = _filled(own.point[1], own.point[0], mean, std, kept, np.log(share / (1 - share)))
    weights = np.zeros(len(mean))
    weights[kept] = beta[1:] / std[kept]
    refit = Refit(weights, float(beta[0] - weights @ mean), np.empty(0), information, kept)

    pattern, second = _pattern(standard, own, beta, share, n, scale)
    inverse, squares = slope_row(second), np.zeros((3, len(kept)))
    for t, y in standard():
        alone = (y - expit(own.point[0][:, None] + own.point[1][:, None] * t)).T / n
        squares += influences(t.T, alone, (y - expit(beta[0] + beta[1:] @ t)) / n, inverse, information)
    spread = classes.squares[:, kept] / (classes.sizes * np.maximum(classes.sizes - 1, 1e-9))[:, None]
    p_informative = welch(classes.means[::-1, kept], spread[::-1], classes.sizes[::-1])
    tests = tests_of(squares, own.point[1], beta[1:], p_informative, len(mean), kept, given=False)
    whole = np.zeros(len(mean))
    whole[kept] = pattern
    found = scores_of(refit, slopes, whole, np.full(len(mean), np.nan))
    return judged(found, tests, level=level, margin=margin, least_share=least_share)


class _Rows:
    """All rows, a piece at a time; the first pass looks at every number."""

    def __init__(self, blocks: Any, names: Sequence[str] | None) -> None:
        if not callable(blocks):
            raise BadInput(f"it is of type {type(blocks).__name__}", where="blocks", mend=ANEW)
        self.blocks, self.names, self.called, self.size = blocks, names, [""], -1

    def __iter__(self) -> Iterator[tuple[Floats, Floats]]:
        begun = 0
        for given in self.blocks():
            z, y = (np.asarray(part, dtype=np.float64) for part in given)
            if self.size < 0:
                if not begun:
                    self.called = list(self.names or [f"column {j + 1}" for j in range(z.shape[-1])])
                checked_block(z, y, self.called, begun)
            step = max(1, BLOCK_CELLS // z.shape[1])
            for start in range(0, len(y), step):
                yield z[start : start + step], y[start : start + step]
            begun += len(y)
        if not begun or self.size not in (-1, begun):
            first = f", the first gave {self.size}" if self.size > 0 else ""
            raise BadInput(f"a pass over the rows gave {begun}{first}", where="blocks", mend=ANEW)
        self.size = begun


class _Classes(NamedTuple):
    """Of each class: rows (2,), and (2, U) means, sums of squares about these, lowest and highest values."""

    sizes: Floats
    means: Floats
    squares: Floats
    lows: Floats
    highs: Floats


def _classes(rows: _Rows) -> _Classes:
    found: _Classes | None = None
    for z, y in rows:
        if found is None:
            zeros = np.zeros((2, z.shape[1]))
            found = _Classes(np.zeros(2), zeros, zeros.copy(), zeros + np.inf, zeros - np.inf)
        for label in (0, 1):
            part = z[y == label]
            if not len(part):
                continue
            mean, size = part.mean(axis=0), found.sizes[label] + len(part)
            gap = mean - found.means[label]
            found.squares[label] += ((part - mean) ** 2).sum(axis=0) + gap**2 * found.sizes[label] * len(part) / size
            found.means[label] += gap * len(part) / size
            found.sizes[label] = size
            np.minimum(found.lows[label], part.min(axis=0), out=found.lows[label])
            np.maximum(found.highs[label], part.max(axis=0), out=found.highs[label])
    assert found is not None
    return found


def _filled(slope: Floats, intercept: Floats, mean: Floats, std: Floats, kept: Ints, level: float) -> Slopes:
    """Fits of standardised terms in the terms' own units; a constant one's is flat, at ``level``."""
    whole, at, deviation = np.zeros(len(mean)), np.full(len(mean), level), np.zeros(len(mean))
    whole[kept], deviation[kept] = slope / std[kept], std[kept]
    at[kept] = intercept - whole[kept] * mean[kept]
    return Slopes(whole, at, mean, deviation)


@kernel
def _add_columns(t, y, going, points, ones, room, at, sums):  # type: ignore[no-untyped-def]
    """Add what the rows of ``t``, (terms, rows), give to the sums of each term whose fit goes on."""
    for j in range(len(t)):
        if going[j]:
            add_up(t, j, 0.0, 1.0, ones, y, points[0, j], points[1, j], room, at)
            for k in range(5):
                sums[k, j] += at[k]


class _Own:
    """Newton's method for each term by itself: ``point`` is where the next pass is to add up, (2, K)."""

    def __init__(self, gap: Floats, share: float, penalty: float) -> None:
        within = np.maximum(1 - share * (1 - share) * gap**2, 0.05)
        start = np.clip(gap / within, -5.0, 5.0)  # as logistic has it
        self.penalty, self.room = penalty, np.empty((9, ROWS_AT_ONCE))
        self.point = np.stack([np.full(len(gap), np.log(share / (1 - share))), start])
        self.base, self.change, self.before = self.point.copy(), np.zeros_like(self.point), np.zeros(len(gap))
        self.length, self.halves, self.steps = np.zeros(len(gap)), np.zeros(len(gap), int), np.zeros(len(gap), int)
        self.going, self.status = np.ones(len(gap), bool), np.full(len(gap), UNFINISHED)
        self.sums = np.zeros((5, len(gap)))

    def add(self, t: Floats, y: Floats) -> None:
        _add_columns(t, y, self.going, self.point, np.ones(len(y)), self.room, np.empty(5), self.sums)

    def step(self, n: int) -> None:
        """Go on from the sums of one pass over n rows."""
        g0, g1, h00, h01, h11 = self.sums / n
        self.sums[:] = 0.0
        g1, h11 = g1 + self.penalty * self.point[1], h11 + self.penalty
        after = g0 * self.change[0] + g1 * self.change[1]
        far = self.going & (self.length > 0) & (after > -ENOUGH * self.before) & (self.halves < MOST_HALVES)
        self.length[far] /= 2
        self.halves[far] += 1
        taken = self.going & ~far
        self.base[:, taken] = self.point[:, taken]
        determinant = h00 * h11 - h01**2
        # A flat place, or one step too many: no fit.
        stuck = taken & (~(determinant > 0) | (self.steps >= MOST_STEPS))
        with np.errstate(divide="ignore", invalid="ignore"):
            change = -np.stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0]) / determinant
        fresh = taken & ~stuck
        last = fresh & (np.abs(change).max(axis=0) <= CLOSE * (1 + np.abs(self.base[1])))
        self.base[:, last] += change[:, last]
        self.status[last] = FITTED
        self.change[:, fresh], self.length[fresh], self.halves[fresh] = change[:, fresh], 1.0, 0
        self.before[fresh] = (g0 * change[0] + g1 * change[1])[fresh]
        self.steps[fresh] += 1
        self.going &= ~(stuck | last)
        self.point = np.where(self.going, self.base + self.length * self.change, self.base)


class _Together:
    """Newton's method for all terms together: ``point`` is where the next pass is to add up, (K + 1,)."""

    def __init__(self, n_terms: int, share: float, penalty: float, names: list[str]) -> None:
        self.point = np.zeros(n_terms + 1)
        self.point[0] = np.log(share / (1 - share))
        self.penalty = np.full(n_terms + 1, penalty)
        self.penalty[0] = 0.0
        self.base, self.change, self.before, self.length = self.point, np.zeros(n_terms + 1), 0.0, 0.0
        self.names, self.going, self.steps, self.halves = names, True, 0, 0
        self.information = np.zeros((n_terms + 1, n_terms + 1))
        self._begin()

    def _begin(self) -> None:
        self.gradient, self.apart = np.zeros(len(self.point)), True
        self.matrix = np.zeros((len(self.point), len(self.point)))

    def add(self, t: Floats, y: Floats) -> None:
        if not self.going:
            return
        linear = self.point[0] + self.point[1:] @ t
        p = expit(linear)
        self.apart &= bool(np.all(np.where(y > 0.5, linear, -linear) > 0))
        self.gradient[0] += (p - y).sum()
        self.gradient[1:] += t @ (p - y)
        root = np.sqrt(p * (1 - p))
        scaled = np.concatenate([root[None], t * root])
        self.matrix += scaled @ scaled.T

    def step(self, n: int) -> None:
        """Go on from the sums of one pass over n rows."""
        if not self.going:
            return
        gradient, matrix, apart = self.gradient / n + self.penalty * self.point, self.matrix / n, self.apart
        self._begin()
        if self.length and gradient @ self.change > -ENOUGH * self.before and self.halves < MOST_HALVES:
            self.length, self.halves = self.length / 2, self.halves + 1
            self.point = self.base + self.length * self.change
            return
        self.base = self.point
        if self.steps and apart and not self.penalty.any():
            raise separated(self.names, self.base)
        try:
            factor = cholesky(matrix, self.penalty, self.names)
        except BadInput:
            if not self.steps:  # all rows weigh the same still: the columns themselves determine each other
                raise
            raise separated(self.names, self.base) from None
        self.change = -linalg.cho_solve(factor, gradient, check_finite=False)
        self.before, self.length, self.halves, self.steps = float(gradient @ self.change), 1.0, 0, self.steps + 1
        self.point = self.base + self.change
        if np.max(np.abs(self.change)) <= CONVERGED * (1 + np.max(np.abs(self.point))):
            self.information, self.going = linalg.cho_solve(factor, np.eye(len(self.point)), check_finite=False), False
        elif self.steps > MOST_STEPS:
            raise unsettled(self.names, self.base)


def _pattern(
    standard: Callable[[], Iterator[tuple[Floats, Floats]]], own: _Own, beta: Floats, share: float, n: int, scale: Scale
) -> tuple[Floats, Floats]:
    """Activation pattern of the standardised terms, and the second derivatives of their own fits where these ended."""
    own.going[:] = True
    of_both, first, square, about = np.zeros(len(beta) - 1), 0.0, 0.0, share if scale == "probability" else beta[0]
    for t, y in standard():
        own.add(t, y)
        g = beta[0] + beta[1:] @ t
        g = (expit(g) if scale == "probability" else g) - about
        of_both += t @ g
        first, square = first + g.sum(), square + g @ g
    variance = square / n - (first / n) ** 2
    second = own.sums[2:] / n
    second[2] += own.penalty
    return np.divide(of_both / n, variance, out=np.zeros_like(of_both), where=beta[1:].any() and variance > 0), second
