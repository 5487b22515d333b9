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

    def interval(self, psi: Sequence[Floats]) -> Interval:
        """The interval of an effect from its scores in each split; those that do not vary say nothing of scatter."""
        varied = [one for one in psi if np.ptp(one) > 0]
        if len(varied) > 1:
            return median_of_splits(varied, clusters=self.clusters, level=self.level)
        one = varied[0] if varied else psi[0]
        bounds = self.bounds if varied else (max(self.bounds[0], -self.span), min(self.bounds[1], self.span))
        inside = bounds if bounds[0] <= one.mean() <= bounds[1] else UNBOUNDED
        return influence_interval(one, clusters=self.clusters, level=self.level, bounds=inside)

    def standard_error(self, psi: Sequence[Floats]) -> float:
        """From the half width of the interval that no bound cuts; 0 where no score varies."""
        if all(np.ptp(one) == 0 for one in psi):
            return 0.0
        interval = self._replace(bounds=UNBOUNDED).interval(psi)
        return (interval.high - interval.low) / 2 / float(t_quantile(self.level, self.units - 1))


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
    bands = _bands({name: psi[name] for name in paths}, sample, seed, resamples)
    found = []
    for one in chosen:
        interval, se = sample.interval(psi[one.name]), sample.standard_error(psi[one.name])
        p = float(2 * special.stdtr(sample.units - 1, -abs(interval.value) / se)) if se > 0 else float("nan")
        found.append(Effect(one.name, interval, bands.get(one.name), se, p))
    return found


def _bands(psi: Mapping[str, Sequence[Floats]], sample: Sample, seed: int, resamples: int) -> dict[str, Interval]:
    """Bands of the first split's scores, moved to the median of all and widened by their scatter.

    An effect whose scores do not vary keeps its own interval.
    """
    found = {name: sample.interval(some) for name, some in psi.items() if np.ptp(some[0]) == 0}
    told = [name for name in psi if name not in found]
    if not told:
        return found
    table = np.column_stack([psi[name][0] for name in told])
    bands = simultaneous_intervals(table, seed=seed, resamples=resamples, clusters=sample.clusters, level=sample.level)
    for name, band in zip(told, bands, strict=True):
        if len(psi[name]) > 1:
            half = band.high - band.value
            half *= sample.standard_error(psi[name]) / sample.standard_error(psi[name][:1])
            middle = sample.interval(psi[name]).value
            band = Interval(middle, middle - half, middle + half, sample.level, band.method)
        found[name] = band
    return found
