"""From influence scores to effects with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from answerable.explanations.path_effects.solver import Levels, telescope
from answerable.statistics import Floats, Ints, influence_interval, median_of_splits, simultaneous_intervals
from answerable.statistics.inputs import UNBOUNDED, Bounds
from answerable.statistics.intervals import Interval, t_quantile

ROUNDING = 1e-11  # relative difference of scores that double precision alone can make


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


def difference(scores: Mapping[Levels, Floats], contrast: Contrast) -> Floats:
    """Influence scores (n,) of an effect; exactly 0 where rounding alone sets its two means apart."""
    plus, minus = scores[contrast.plus], scores[contrast.minus]
    found = plus - minus
    return np.zeros_like(found) if np.abs(found).max() <= ROUNDING * np.abs(plus).max() else found


class Sample(NamedTuple):
    """What intervals depend on besides the scores.

    Attributes
    ----------
    units : rows, or clusters, that are independent
    level : confidence
    clusters : (n,) labels whose rows depend on each other
    bounds : smallest and largest value an effect can have
    span : range of the outcome in these rows, the bound of an effect whose scores are all equal
    """

    units: int
    level: float
    clusters: Ints | None = None
    bounds: Bounds = UNBOUNDED
    span: float = np.inf

    def interval(self, psi: Sequence[Floats]) -> tuple[Interval, float]:
        """The interval of an effect from its scores in each split, and its standard error.

        The standard error is from the half width of the interval that no bound cuts; 0 where no score varies. Splits
        whose scores do not vary say nothing of scatter.
        """
        varied = [one for one in psi if np.ptp(one) > 0]
        if not varied:
            low, high = max(self.bounds[0], -self.span), min(self.bounds[1], self.span)
            inside = (low, high) if low <= psi[0].mean() <= high else UNBOUNDED
            return influence_interval(psi[0], clusters=self.clusters, level=self.level, bounds=inside), 0.0
        if len(varied) > 1:
            interval = median_of_splits(varied, clusters=self.clusters, level=self.level)
        else:
            interval = influence_interval(varied[0], clusters=self.clusters, level=self.level)
        se = (interval.high - interval.low) / 2 / float(t_quantile(self.level, self.units - 1))
        low, high = self.bounds
        if len(varied) == 1 and low <= interval.value <= high:
            interval = interval._replace(low=max(interval.low, low), high=min(interval.high, high))
        return interval, se


def effects(
    scores: Sequence[Mapping[Levels, Floats]],
    blocks: Sequence[str],
    sample: Sample,
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> list[Effect]:
    """Every effect of `contrasts` from the influence scores.

    Parameters
    ----------
    scores : for each split into folds, scores (n,) of each query
    blocks : names of the mediator blocks
    sample : what else intervals depend on
    seed, resamples : of the multiplier bootstrap that makes the bands of the paths hold at once
    """
    chosen = contrasts(blocks)
    psi = {one.name: [difference(split, one) for split in scores] for one in chosen}
    paths = [one.name for one in chosen if one.name not in ("total", "indirect")]
    told = {one.name: sample.interval(psi[one.name]) for one in chosen}
    bands = _bands({name: psi[name] for name in paths}, told, sample, seed, resamples)
    found = []
    for one in chosen:
        interval, se = told[one.name]
        p = float(2 * special.stdtr(sample.units - 1, -abs(interval.value) / se)) if se > 0 else float("nan")
        found.append(Effect(one.name, interval, bands.get(one.name), se, p))
    return found


def _bands(
    psi: Mapping[str, Sequence[Floats]],
    told: Mapping[str, tuple[Interval, float]],
    sample: Sample,
    seed: int,
    resamples: int,
) -> dict[str, Interval]:
    """Bands of the first split's scores, moved to the median of all and widened by their scatter.

    An effect whose scores do not vary keeps its own interval.
    """
    found = {name: told[name][0] for name, some in psi.items() if np.ptp(some[0]) == 0}
    varied = [name for name in psi if name not in found]
    if not varied:
        return found
    table = np.array([psi[name][0] for name in varied]).T  # each effect in one piece, which is quicker to sum
    bands = simultaneous_intervals(table, seed=seed, resamples=resamples, clusters=sample.clusters, level=sample.level)
    for name, band in zip(varied, bands, strict=True):
        if len(psi[name]) > 1:
            interval, se = told[name]
            half = (band.high - band.value) * se / sample.interval(psi[name][:1])[1]
            band = Interval(interval.value, interval.value - half, interval.value + half, sample.level, band.method)
        found[name] = band
    return found
