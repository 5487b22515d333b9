"""Intervals for means, differences of means, medians and quantiles.

Student (1908) for one mean, Welch (1947) for the difference of two, order statistics (Thompson 1936) for quantiles.

No interval here has zero width. Data without any spread say how rare other values must be, not that there are none: of
n equal values, a share of at most ``alpha / 2`` of samples comes from a population in which more than
``p = 1 - (alpha / 2) ** (1 / n)`` differ from them. A mean can then lie ``p`` of the way to the end of its range at
most, and anywhere if it has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from answerable.errors import BadInput
from answerable.statistics.inputs import (
    UNBOUNDED,
    Bounds,
    Floats,
    level_of,
    numbers_of,
    rate_of,
    same_length,
    within_bounds,
)


class Interval(NamedTuple):
    """An estimate, the interval around it, and how the interval was made.

    Attributes
    ----------
    value : the estimate, in the unit of the data
    low, high : ends of the interval, same unit; infinite where the data set no limit
    level : nominal confidence, between 0 and 1
    method : name of the interval, with everything that a reader must know to make it again
    """

    value: float
    low: float
    high: float
    level: float
    method: str


def named(level: float, name: str) -> str:
    """``name`` with its level in front: ``95 % name``."""
    return f"{100 * level:.10g} % {name}"


def equal_values_interval(value: float, n: int, level: float, bounds: Bounds) -> Interval:
    """Interval for a mean when all ``n`` values are the same.

    Parameters
    ----------
    value : the one value
    n : how often it was seen
    level : confidence, between 0 and 1
    bounds : smallest and largest value possible; infinite where there is none

    Returns
    -------
    Interval : exact for a mean whose values lie within ``bounds``
    """
    others = 1 - ((1 - level) / 2) ** (1 / n)
    low = value - others * (value - bounds[0]) if np.isfinite(bounds[0]) else -np.inf
    high = value + others * (bounds[1] - value) if np.isfinite(bounds[1]) else np.inf
    return Interval(value, float(low), float(high), level, named(level, f"bound from {n} equal values"))


def mean_interval(values: ArrayLike, *, level: float = 0.95, bounds: Bounds = UNBOUNDED) -> Interval:
    """Student's t interval for a mean of independent values.

    Parameters
    ----------
    values : (n,) float64, n >= 2, any one unit
    level : confidence, between 0 and 1
    bounds : smallest and largest value possible, same unit; the interval stays within them

    Returns
    -------
    Interval : exact for normal values; for skewed ones good from some tens of rows

    Raises
    ------
    BadInput : fewer than 2 values, a missing one, one outside ``bounds``, or a level outside (0, 1)
    """
    return _mean_interval(values, "values", "t interval", level, bounds)


def paired_difference_interval(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, bounds: Bounds = UNBOUNDED
) -> Interval:
    """Student's t interval for the mean of ``first - second``, row by row.

    Parameters
    ----------
    first, second : (n,) float64, n >= 2, both measured on the same rows, any one unit
    level : confidence, between 0 and 1
    bounds : smallest and largest difference possible

    Raises
    ------
    BadInput : as `mean_interval`, or columns of different lengths
    """
    one, other = numbers_of(first, "first", least=2), numbers_of(second, "second", least=2)
    same_length(one, other, "first and second")
    return _mean_interval(one - other, "differences", "t interval of paired differences", level, bounds)


def difference_of_means_interval(
    first: ArrayLike, second: ArrayLike, *, level: float = 0.95, bounds: Bounds = UNBOUNDED
) -> Interval:
    """Welch's t interval for ``mean(first) - mean(second)`` of two independent samples.

    Parameters
    ----------
    first : (n,) float64, n >= 2, any one unit
    second : (m,) float64, m >= 2, same unit
    level : confidence, between 0 and 1
    bounds : smallest and largest value possible, used where a sample has no spread

    Raises
    ------
    BadInput : as `mean_interval`
    """
    level = level_of(level)
    one, other = numbers_of(first, "first", least=2), numbers_of(second, "second", least=2)
    within_bounds(one, bounds, "first")
    within_bounds(other, bounds, "second")
    value = float(one.mean() - other.mean())
    constant = [bool(np.ptp(sample) == 0) for sample in (one, other)]
    if any(constant):
        # Half of the error goes to each sample, so that the two statements hold together.
        half = (1 + level) / 2
        parts = [_mean_interval(sample, "values", "", half, bounds) for sample in (one, other)]
        method = named(level, "difference of two intervals, one sample without spread")
        return Interval(value, parts[0].low - parts[1].high, parts[0].high - parts[1].low, level, method)
    shares = np.array([one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)])
    freedom = shares.sum() ** 2 / (shares**2 / (np.array([len(one), len(other)]) - 1)).sum()
    half_width = float(t_quantile(level, freedom) * np.sqrt(shares.sum()))
    low, high = value - half_width, value + half_width
    widest = bounds[1] - bounds[0]
    return Interval(value, max(low, -widest), min(high, widest), level, named(level, "Welch t interval"))


def median_interval(values: ArrayLike, *, level: float = 0.95, bounds: Bounds = UNBOUNDED) -> Interval:
    """Order-statistic interval for the median; see `quantile_interval`."""
    return quantile_interval(values, 0.5, level=level, bounds=bounds)


def quantile_interval(
    values: ArrayLike, quantile: float, *, level: float = 0.95, bounds: Bounds = UNBOUNDED
) -> Interval:
    """Interval between two order statistics, for any distribution.

    Each side misses with probability at most ``(1 - level) / 2``, so the interval is conservative: at 95 % a median of
    10 values is covered with 97.9 %, of 1,000 with 95.4 %. Where no value lies far enough out (a median needs 6 of
    them at 95 %) the end is the bound, infinite by default. Ties that would close the interval open it to the next
    other value.

    Parameters
    ----------
    values : (n,) float64, n >= 2, any one unit
    quantile : which quantile, between 0 and 1
    level : confidence, between 0 and 1
    bounds : smallest and largest value possible, same unit

    Returns
    -------
    Interval : its value is the sample quantile, interpolated linearly

    Raises
    ------
    BadInput : as `mean_interval`, or a quantile outside (0, 1)
    """
    level, quantile = level_of(level), rate_of(quantile, "quantile")
    sample = numbers_of(values, "values", least=2)
    within_bounds(sample, bounds, "values")
    ordered = np.sort(sample)
    lower, upper = quantile_ranks(len(ordered), quantile, (1 - level) / 2, (1 - level) / 2)
    value = float(np.quantile(ordered, quantile))
    low = ordered[lower - 1] if lower >= 1 else bounds[0]
    high = ordered[upper - 1] if upper <= len(ordered) else bounds[1]
    if low == high:
        below, above = ordered[ordered < low], ordered[ordered > high]
        low = below[-1] if len(below) else bounds[0]
        high = above[0] if len(above) else bounds[1]
    ends = [end for end, is_open in (("below", lower < 1), ("above", upper > len(ordered))) if is_open]
    too_few = f", open {' and '.join(ends)}: {len(ordered)} values are too few" if ends else ""
    name = "order-statistic interval" + too_few
    return Interval(value, float(min(low, value)), float(max(high, value)), level, named(level, name))


def quantile_ranks(n: int, quantile: float, below: float, above: float) -> tuple[int, int]:
    """Ranks (from 1) of the order statistics that enclose a quantile; 0 and n + 1 where there is none.

    Parameters
    ----------
    n : number of values
    quantile : which quantile, between 0 and 1
    below, above : greatest probability with which each end may miss

    Returns
    -------
    lower : greatest rank whose value exceeds the quantile with probability at most ``below``
    upper : smallest rank whose value lies below the quantile with probability at most ``above``
    """
    # Forty standard deviations around the expected rank: no tail that a double can hold lies outside.
    reach = 40 * np.sqrt(n * quantile * (1 - quantile)) + 40
    counts = np.arange(max(0, int(n * quantile - reach)), min(n, int(n * quantile + reach)) + 1)
    lower = int(counts[0] + np.searchsorted(special.bdtr(counts, n, quantile), below, side="right"))
    upper = int(counts[np.argmax(special.bdtrc(counts, n, quantile) <= above)]) + 1
    return lower, upper


def t_quantile(level: float, freedom: ArrayLike) -> Floats:
    """Half-width of the central ``level`` of Student's t with ``freedom`` degrees of freedom."""
    return np.asarray(special.stdtrit(freedom, (1 + level) / 2), dtype=np.float64)


def normal_quantile(level: float) -> float:
    """Half-width of the central ``level`` of the standard normal."""
    return float(special.ndtri((1 + level) / 2))


def _mean_interval(values: ArrayLike, what: str, name: str, level: float, bounds: Bounds) -> Interval:
    level = level_of(level)
    sample = numbers_of(values, what, least=2)
    within_bounds(sample, bounds, what)
    if np.ptp(sample) == 0:
        return equal_values_interval(float(sample[0]), len(sample), level, bounds)
    value = float(sample.mean())
    half_width = float(t_quantile(level, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    if not np.isfinite(half_width):
        raise BadInput("the values are too large to be squared", where=what, mend="give them in a larger unit")
    return Interval(
        value, max(value - half_width, bounds[0]), min(value + half_width, bounds[1]), level, named(level, name)
    )
