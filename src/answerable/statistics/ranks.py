"""Rank agreement of two columns with intervals: Spearman's rho and Kendall's tau-b, ties counted half.

Intervals made for the normal law (Fieller's, Bonett and Wright's) cover 60 % where most rows agree and a few do not.
Ours take the variance from influence functions (Hoeffding 1948) and Wilson's form for ``p = (1 + correlation) / 2``,
as `detection` does for the AUROC: half a toss is added, where a toss is a pair of rows for tau and three rows for rho,
the rows that its kernel compares. So perfect agreement of few rows does not pass for certainty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics.inputs import Floats, level_of, numbers_of, same_length
from answerable.statistics.intervals import Interval, named, t_quantile

_PSEUDO_TOSSES = 0.5
_BLOCK_CELLS = 1 << 20  # pairs of rows compared at once


def spearman_interval(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Interval:
    """Spearman's rank correlation, ties by mid-ranks; O(n log n).

    Parameters
    ----------
    first, second : (n,) float64, n >= 5, on the same rows
    level : confidence, between 0 and 1

    Returns
    -------
    Interval : value and ends between -1 and 1

    Raises
    ------
    BadInput : fewer than 5 rows, a value missing (its row, counted from 1, is named), a constant column
    """
    level = level_of(level)
    one, other = _columns(first, second)
    u, v = _grades(one), _grades(other)
    both = _product_influence(one, u, other, v)
    value, influence = _correlation(both, _product_influence(one, u, one, u), _product_influence(other, v, other, v))
    return _wilson_form(value, influence, len(one) / 3, level, "influence-function interval of Spearman's rho")


def kendall_interval(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Interval:
    """Kendall's tau-b; O(n^2).

    Parameters, result and errors are those of `spearman_interval`.
    """
    level = level_of(level)
    one, other = _columns(first, second)
    both, of_one, of_other = _concordance(one, other)
    value, influence = _correlation(both, of_one, of_other)
    # The kernel compares two rows, so each row's share of the pairs counts twice.
    return _wilson_form(value, 2 * influence, len(one) / 2, level, "influence-function interval of Kendall's tau-b")


def _columns(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    one, other = numbers_of(first, "first", least=5), numbers_of(second, "second", least=5)
    same_length(one, other, "first and second")
    for name, column in (("first", one), ("second", other)):
        if np.ptp(column) == 0:
            raise BadInput(f"every value is {column[0]:g}, so ranks mean nothing", where=name, mend="leave it out")
    return one, other


def _grades(column: Floats) -> Floats:
    """Centred mid-ranks over n, between -1/2 and 1/2."""
    ordered = np.sort(column)
    places = np.searchsorted(ordered, column, "left") + np.searchsorted(ordered, column, "right")
    return places / (2 * len(column)) - 0.5


def _product_influence(x: Floats, u: Floats, y: Floats, v: Floats) -> Floats:
    """Scores whose mean is ``mean(u v)`` and whose spread allows for the ranks being estimated too."""
    return u * v + _above(x, v) - np.mean(u * v) + _above(y, u) - np.mean(u * v)


def _above(column: Floats, weights: Floats) -> Floats:
    """For each row the mean of all ``weights``, counted where ``column`` is greater and half where it ties."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    tail = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    strictly, at_least = np.searchsorted(ordered, column, "right"), np.searchsorted(ordered, column, "left")
    return (tail[strictly] + tail[at_least]) / (2 * len(column))


def _concordance(one: Floats, other: Floats) -> tuple[Floats, Floats, Floats]:
    """Per row the mean sign product with all other rows: of both columns, and of each with itself."""
    n = len(one)
    shares = np.empty((3, n))
    size = max(1, _BLOCK_CELLS // n)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        a, b = np.sign(one[rows, None] - one), np.sign(other[rows, None] - other)
        shares[:, rows] = [(a * b).sum(axis=1), np.abs(a).sum(axis=1), np.abs(b).sum(axis=1)]
    shares /= n - 1
    return shares[0], shares[1], shares[2]


def _correlation(both: Floats, of_one: Floats, of_other: Floats) -> tuple[float, Floats]:
    """``mean(both) / sqrt(mean(of_one) mean(of_other))`` and, by the delta method, what each row adds to it."""
    a, b, c = both.mean(), of_one.mean(), of_other.mean()
    value = float(np.clip(a / np.sqrt(b * c), -1.0, 1.0))
    return value, (both - a) / np.sqrt(b * c) - value / 2 * ((of_one - b) / b + (of_other - c) / c)


def _wilson_form(value: float, influence: Floats, tosses: float, level: float, name: str) -> Interval:
    p, n = (1 + value) / 2, len(influence)
    variance = float((influence**2).sum()) / (n * (n - 1)) / 4
    share = (variance * tosses**2 + _PSEUDO_TOSSES) / (tosses * p * (1 - p) + _PSEUDO_TOSSES)
    reach = float(t_quantile(level, n - 2)) ** 2 * share / tosses
    centre = (p + reach / 2) / (1 + reach)
    half = np.sqrt(reach * p * (1 - p) + reach**2 / 4) / (1 + reach)
    low, high = 2 * float(centre - half) - 1, 2 * float(centre + half) - 1
    # At perfect agreement an end equals the value but for rounding.
    low, high = min(max(low, -1.0), value), max(min(high, 1.0), value)
    return Interval(value, low, high, level, named(level, name))
