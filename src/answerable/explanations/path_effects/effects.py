"""From influence scores to effects with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from answerable.explanations.path_effects.solver import Levels, telescope
from answerable.statistics import Floats, influence_interval, median_of_splits, simultaneous_intervals
from answerable.statistics.inputs import Bounds
from answerable.statistics.intervals import Interval, t_quantile


class Contrast(NamedTuple):
    """An effect as the difference of two nested counterfactual means.

    Attributes
    ----------
    name : total, direct, through BLOCK or indirect
    plus, minus : the levels of the two means
    """

    name: str
    plus: Levels
    minus: Levels


class Effect(NamedTuple):
    """An effect with its uncertainty.

    Attributes
    ----------
    name : as in `Contrast`
    interval : estimate and interval for this effect alone
    band : interval that holds for all paths at once; None for totals
    se : standard error
    p_value : two-sided, of: the effect is 0
    """

    name: str
    interval: Interval
    band: Interval | None
    se: float
    p_value: float


def contrasts(blocks: Sequence[str]) -> list[Contrast]:
    """The total effect, then one for each path out of the treatment, which add up to it, then all mediated paths.

    Parameters
    ----------
    blocks : names of the mediator blocks, in causal order
    """
    steps = telescope(len(blocks))
    paths = ["direct", *(f"through {block}" for block in blocks)]
    return [
        Contrast("total", steps[-1], steps[0]),
        *(
            Contrast(name, after, before)
            for name, (before, after) in zip(paths, itertools.pairwise(steps), strict=True)
        ),
        Contrast("indirect", steps[-1], steps[1]),
    ]


def effects(
    scores: Sequence[Mapping[Levels, Floats]],
    blocks: Sequence[str],
    *,
    clusters: np.ndarray | None = None,
    level: float = 0.95,
    bounds: Bounds,
    seed: int = 0,
    resamples: int = 2000,
) -> list[Effect]:
    """Every effect of `contrasts` from the influence scores.

    Parameters
    ----------
    scores : for each split into folds, scores (n,) of each query
    blocks : names of the mediator blocks
    clusters : (n,) labels whose rows depend on each other
    level : confidence
    bounds : smallest and largest value an effect can have
    seed, resamples : of the multiplier bootstrap that makes the bands of the paths hold at once
    """
    chosen = contrasts(blocks)
    psi = {one.name: [split[one.plus] - split[one.minus] for split in scores] for one in chosen}
    paths = [one.name for one in chosen if one.name not in ("total", "indirect")]
    bands = dict(zip(paths, _bands(psi, paths, clusters, level, seed, resamples, bounds), strict=True))
    units = len(scores[0][chosen[0].plus]) if clusters is None else len(np.unique(clusters))
    found = []
    for one in chosen:
        interval = _interval(psi[one.name], clusters, level, bounds)
        se = _standard_error(interval, psi[one.name], clusters, level, bounds)
        p = float(2 * special.stdtr(units - 1, -abs(interval.value) / se)) if se > 0 else float("nan")
        found.append(Effect(one.name, interval, bands.get(one.name), se, p))
    return found


def _interval(psi: Sequence[Floats], clusters: np.ndarray | None, level: float, bounds: Bounds) -> Interval:
    if len(psi) > 1:
        return median_of_splits(psi, clusters=clusters, level=level)
    inside = bounds if bounds[0] <= psi[0].mean() <= bounds[1] else (-np.inf, np.inf)
    return influence_interval(psi[0], clusters=clusters, level=level, bounds=inside)


def _standard_error(
    interval: Interval, psi: Sequence[Floats], clusters: np.ndarray | None, level: float, bounds: Bounds
) -> float:
    """From the half width of an interval that no bound cut."""
    units = len(psi[0]) if clusters is None else len(np.unique(clusters))
    if interval.low <= bounds[0] or interval.high >= bounds[1]:
        if all(np.ptp(one) == 0 for one in psi):
            return 0.0
        interval = _interval(psi, clusters, level, (-np.inf, np.inf))
    return (interval.high - interval.low) / 2 / float(t_quantile(level, units - 1))


def _bands(
    psi: Mapping[str, Sequence[Floats]],
    paths: Sequence[str],
    clusters: np.ndarray | None,
    level: float,
    seed: int,
    resamples: int,
    bounds: Bounds,
) -> list[Interval]:
    """Bands of the first split's scores, moved to the median of all and widened by their scatter."""
    table = np.column_stack([psi[name][0] for name in paths])
    if (np.ptp(table, axis=0) == 0).any():
        return [_interval(psi[name], clusters, level, bounds) for name in paths]
    bands = simultaneous_intervals(table, seed=seed, resamples=resamples, clusters=clusters, level=level)
    if len(psi[paths[0]]) == 1:
        return bands
    found = []
    for name, band in zip(paths, bands, strict=True):
        pooled, first = (_interval(some, clusters, level, bounds) for some in (psi[name], psi[name][:1]))
        half = (band.high - band.value) * (pooled.high - pooled.value) / (first.high - first.value)
        found.append(Interval(pooled.value, pooled.value - half, pooled.value + half, level, band.method))
    return found
