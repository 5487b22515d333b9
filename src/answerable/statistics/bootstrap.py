"""Bootstrap intervals for any statistic: percentile and BCa (Efron 1987), never narrower than a t interval.

A bootstrap of few rows is too short: the mean of 5 resampled values cannot leave their range, and 6 % of all samples
of 5 miss the population mean altogether. So each interval is the hull of the bootstrap interval and
``value +- t_{n-1} s sqrt(n / (n - 1))``, where s is the standard deviation of the resampled statistics. For a mean
that is Student's interval; for large n the hull differs from BCa by less than either differs from the truth.

Where every resample gives the same statistic there is nothing to resample; the interval then says how rare other rows
must be (see `intervals`), within ``bounds`` if the statistic has any, else without end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from answerable.errors import BadInput
from answerable.statistics.inputs import UNBOUNDED, Bounds, Floats, Ints, codes_of, count_of, generator, level_of
from answerable.statistics.intervals import Interval, equal_values_interval, named, t_quantile

Method = Literal["BCa", "percentile"]
Statistic = Callable[..., Any]

_BATCH_CELLS = 1 << 21  # resampled rows held at once; a constant, so that no machine cuts its batches differently
_JACKKNIFE_GROUPS = 500  # with more rows the acceleration's own error stays below 0.001


def bootstrap_interval(
    statistic: Statistic,
    *columns: ArrayLike,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
    method: Method = "BCa",
    vectorized: bool = False,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    bounds: Bounds = UNBOUNDED,
) -> Interval:
    """Bootstrap interval for one number computed from rows.

    Parameters
    ----------
    statistic : called with the resampled ``columns``, returns a number; if ``vectorized`` it gets each column with one
        more axis in front, (resamples, n, ...), and returns (resamples,)
    columns : (n, ...) arrays that share their rows, n >= 2; they are resampled together
    seed : whole number of at least 0; required
    resamples : at least 100
    level : confidence, between 0 and 1
    method : "BCa" (bias-corrected, accelerated) or "percentile"
    vectorized : whether ``statistic`` takes many resamples at once
    clusters : (n,) labels; rows that share one are resampled together, and clusters are what is independent
    strata : (n,) labels; each is resampled by itself and keeps its size
    bounds : smallest and largest value the statistic can have; the interval stays within them

    Returns
    -------
    Interval

    Raises
    ------
    BadInput : fewer than 2 rows (or clusters) in all or in a stratum, columns of different lengths, a statistic that
        is not a finite number on the data or on a resample, no seed, or a parameter outside its range
    """

    def one(*resampled: NDArray[Any]) -> Floats:
        return np.asarray(statistic(*resampled), dtype=np.float64)[..., None]

    return bootstrap_intervals(
        one,
        *columns,
        seed=seed,
        resamples=resamples,
        level=level,
        method=method,
        vectorized=vectorized,
        clusters=clusters,
        strata=strata,
        bounds=bounds,
    )[0]


def bootstrap_intervals(
    statistic: Statistic,
    *columns: ArrayLike,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
    method: Method = "BCa",
    vectorized: bool = False,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    bounds: Bounds = UNBOUNDED,
) -> list[Interval]:
    """Bootstrap intervals for k numbers computed together from the same rows.

    Parameters are those of `bootstrap_interval`, except that ``statistic`` returns (k,), or (resamples, k) if
    ``vectorized``. Each interval holds by itself, not all of them at once.

    Returns
    -------
    list of k Interval, in the order of the statistic; none depends on the others
    """
    level, resamples = level_of(level), count_of(resamples, "resamples", least=100)
    if method not in ("BCa", "percentile"):
        raise BadInput(f"method is {method!r}", mend="choose 'BCa' or 'percentile'")
    if not bounds[0] < bounds[1]:
        raise BadInput(f"bounds are ({bounds[0]:g}, {bounds[1]:g})", mend="the first must lie below the second")
    rows = _Rows.of(columns, clusters, strata)
    values = _evaluated(statistic, rows, [rows.everything()[None]], vectorized)[0]
    outside = (values < bounds[0]) | (values > bounds[1])
    if outside.any():
        raise BadInput(f"the statistic is {values[outside][0]:g}", mend="mend it or its bounds")
    rng = generator(seed)
    replicates = _evaluated(statistic, rows, rows.resampled(rng, resamples), vectorized)
    lows, highs = np.full_like(values, (1 - level) / 2), np.full_like(values, (1 + level) / 2)
    if method == "BCa":
        left_out = _evaluated(statistic, rows, rows.left_out(rng), vectorized)
        lows, highs = _bca_levels(values, replicates, left_out, level)
    name = f"{method} bootstrap, {resamples} resamples" + (" of clusters" if clusters is not None else "")
    name = named(level, f"{name}, at least its t interval")
    return [
        _interval(float(value), replicates[:, k], (lows[k], highs[k]), rows, level, bounds, name)
        for k, value in enumerate(values)
    ]


def bootstrap_replicates(
    statistic: Statistic,
    *columns: ArrayLike,
    seed: int,
    resamples: int = 2000,
    vectorized: bool = False,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> Floats:
    """The statistic on each resample, for what needs more than an interval (a spread, a band, a rank).

    Parameters are those of `bootstrap_intervals`.

    Returns
    -------
    (resamples, k) float64, in the unit of the statistic
    """
    rows = _Rows.of(columns, clusters, strata)
    draws = rows.resampled(generator(seed), count_of(resamples, "resamples", least=1))
    return _evaluated(statistic, rows, draws, vectorized)


class _Rows(NamedTuple):
    """Columns, and which of their rows are drawn together (units) and among themselves (strata)."""

    columns: tuple[NDArray[Any], ...]
    units: list[Ints] | None  # rows of each cluster; None where each row is its own
    strata: list[Ints]  # units of each stratum

    @classmethod
    def of(cls, columns: tuple[ArrayLike, ...], clusters: ArrayLike | None, strata: ArrayLike | None) -> _Rows:
        arrays = tuple(np.asarray(column) for column in columns)
        if not arrays or any(array.ndim == 0 for array in arrays):
            raise BadInput("there are no columns with rows", mend="give at least one array after the statistic")
        lengths = sorted({len(array) for array in arrays})
        if len(lengths) > 1:
            raise BadInput(f"columns have {lengths} rows", mend="all columns must share their rows")
        n_rows = lengths[0]
        for position, array in enumerate(arrays):
            if array.dtype.kind == "f" and np.isnan(array).any():
                row = int(np.argwhere(np.isnan(array))[0][0])
                raise BadInput("the value is nan", where=f"column {position + 1}, row {row + 1}", mend="drop the row")
        units, n_units, first = None, n_rows, np.arange(n_rows)
        if clusters is not None:
            _, codes = codes_of(clusters, n_rows, "clusters")
            units = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
            n_units, first = len(units), np.array([unit[0] for unit in units])
        groups = [np.arange(n_units)]
        if strata is not None:
            labels, codes = codes_of(strata, n_rows, "strata")
            if units is not None:
                _refuse_split_clusters(units, codes)
            groups = [np.flatnonzero(codes[first] == k) for k in range(len(labels))]
        for group in groups:
            if len(group) < 2:
                kind = "clusters" if clusters is not None else "rows"
                stratum = f" in a stratum of {len(groups)}" if strata is not None else ""
                raise BadInput(f"there are {len(group)} {kind}{stratum}", mend="give at least 2 to resample")
        return cls(arrays, units, groups)

    @property
    def n_units(self) -> int:
        return sum(len(group) for group in self.strata)

    def everything(self) -> Ints:
        return np.arange(len(self.columns[0]))

    def resampled(self, rng: np.random.Generator, resamples: int) -> Iterator[Ints]:
        """Row numbers of the resamples, (some, rows) at a time; one at a time where clusters differ in size."""
        at_once = max(1, _BATCH_CELLS // len(self.columns[0]))
        for start in range(0, resamples, at_once):
            size = min(at_once, resamples - start)
            drawn = [group[rng.integers(0, len(group), (size, len(group)))] for group in self.strata]
            yield from self._rows_of(np.concatenate(drawn, axis=1))

    def left_out(self, rng: np.random.Generator) -> Iterator[Ints]:
        """Row numbers with one unit, or one random group of them, left out."""
        n_groups = min(self.n_units, _JACKKNIFE_GROUPS)
        # Groups are drawn, since neighbours in a sorted table are alike.
        group_of = rng.permutation(np.arange(self.n_units) % n_groups)
        for group in range(n_groups):
            yield from self._rows_of(np.flatnonzero(group_of != group)[None])

    def _rows_of(self, drawn: Ints) -> Iterator[Ints]:
        if self.units is None:
            yield drawn
            return
        for resample in drawn:
            yield np.concatenate([self.units[unit] for unit in resample])[None]


def _refuse_split_clusters(units: list[Ints], codes: Ints) -> None:
    for unit in units:
        if np.ptp(codes[unit]) > 0:
            raise BadInput(
                "its cluster lies in two strata",
                where=f"clusters, row {unit[0] + 1}",
                mend="keep each cluster in one stratum",
            )


def _evaluated(statistic: Statistic, rows: _Rows, draws: Any, vectorized: bool) -> Floats:
    """The statistic on each row of each batch of row numbers, (resamples, k)."""
    found: list[Floats] = []
    for batch in draws:
        if vectorized:
            found.append(np.asarray(statistic(*(column[batch] for column in rows.columns)), dtype=np.float64))
        else:
            found.extend(
                np.atleast_1d(np.asarray(statistic(*(column[row] for column in rows.columns)), dtype=np.float64))[None]
                for row in batch
            )
        if found[-1].ndim != 2 or (vectorized and len(found[-1]) != len(batch)):
            shape = found[-1].shape if vectorized else found[-1].shape[1:]
            raise BadInput(
                f"the statistic has shape {shape}", mend="it must return one number, or k of them, per resample"
            )
    values = np.concatenate(found)
    broken = ~np.isfinite(values)
    if broken.any():
        n_broken = int(broken.any(axis=1).sum())
        raise BadInput(
            f"the statistic is {values[broken][0]:g} on {n_broken} of {len(values)} samples",
            mend="give strata that keep what it needs in every resample",
        )
    return values


def _bca_levels(values: Floats, replicates: Floats, left_out: Floats, level: float) -> tuple[Floats, Floats]:
    """Levels of the bootstrap quantiles that BCa takes (Efron 1987, equations 4.4 and 6.6)."""
    below = ((replicates < values).mean(axis=0) + (replicates <= values).mean(axis=0)) / 2
    # A statistic beyond all of its resamples would ask for an infinite correction.
    bias = special.ndtri(np.clip(below, 0.5 / len(replicates), 1 - 0.5 / len(replicates)))
    slopes = left_out.mean(axis=0) - left_out
    squares = (slopes**2).sum(axis=0)
    cubes = (slopes**3).sum(axis=0)
    acceleration = np.divide(cubes, 6 * squares**1.5, out=np.zeros_like(cubes), where=squares > 0)

    def adjusted(tail: float) -> Floats:
        shifted = bias + special.ndtri(tail)
        divisor = 1 - acceleration * shifted
        safe = np.where(divisor > 0, divisor, 1.0)
        return np.where(divisor > 0, special.ndtr(bias + shifted / safe), float(tail > 0.5))

    return adjusted((1 - level) / 2), adjusted((1 + level) / 2)


def _interval(
    value: float, replicates: Floats, tails: tuple[float, float], rows: _Rows, level: float, bounds: Bounds, name: str
) -> Interval:
    if np.ptp(replicates) <= 1e-12 * np.abs(replicates).max():  # what rounding alone can do
        return equal_values_interval(value, rows.n_units, level, bounds)
    low, high = np.quantile(replicates, tails)
    freedom = rows.n_units - len(rows.strata)
    half_width = t_quantile(level, freedom) * replicates.std(ddof=1) * np.sqrt(rows.n_units / freedom)
    low, high = min(low, value - half_width), max(high, value + half_width)
    return Interval(value, max(float(low), bounds[0]), min(float(high), bounds[1]), level, name)
