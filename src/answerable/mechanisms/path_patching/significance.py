"""Which effects lie beyond a threshold: intervals, tests and ranks over pairs, with no further forward pass.

Against 0 nearly every part of a network has an effect. What is tested is whether its size exceeds a share of what the
whole behaviour is worth: a component is crucial where the interval of its share lies beyond the threshold and the
test of that, adjusted over all components, is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from answerable.statistics import benjamini_hochberg, bootstrap_intervals, bootstrap_replicates

Floats = npt.NDArray[np.float64]


class Significance(NamedTuple):
    """One entry for each component.

    effect, low, high : mean over pairs and its interval, in the metric's unit
    share, share_low, share_high : the same, divided by the mean scale
    p_value, q_value : of: its share is no larger than the threshold; adjusted (Benjamini and Hochberg)
    stability : share of resamples in which it is among the ``top`` largest
    crucial : whether the interval of the share lies beyond the threshold and q is below 1 - level
    method : how intervals were made
    """

    effect: Floats
    low: Floats
    high: Floats
    share: Floats
    share_low: Floats
    share_high: Floats
    p_value: Floats
    q_value: Floats
    stability: Floats
    crucial: npt.NDArray[np.bool_]
    method: str


def significance(
    effects: Floats,
    scale: Floats,
    units: Sequence[str],
    *,
    threshold: float,
    top: int,
    seed: int,
    resamples: int = 2000,
    level: float = 0.95,
) -> Significance:
    """Intervals and tests of each component's mean effect.

    Parameters
    ----------
    effects : (components, pairs) float64
    scale : (pairs,) at least 0, what the whole behaviour is worth in each pair
    units : (pairs,) labels; pairs that share one are resampled together
    threshold : share beyond which a component counts
    top : how many components the stability asks about
    seed, resamples, level : of the bootstrap
    """
    units_array = np.asarray(units)
    rows = np.column_stack([effects.T, scale])  # (pairs, components + 1)
    worth = float(scale.mean())

    def means(block: Floats) -> Floats:
        return block.mean(axis=-2)[..., :-1]

    def shares(block: Floats) -> Floats:
        mean = block.mean(axis=-2)
        return np.divide(mean[..., :-1], mean[..., -1:], out=np.zeros_like(mean[..., :-1]), where=mean[..., -1:] > 0)

    more: dict[str, Any] = {"seed": seed, "resamples": resamples, "clusters": units_array}
    of_means = bootstrap_intervals(means, rows, level=level, vectorized=True, **more)
    of_shares = bootstrap_intervals(shares, rows, level=level, vectorized=True, **more) if worth > 0 else of_means
    p_values = _beyond(effects, scale, units_array, threshold)
    still = np.ptp(effects, axis=1) == 0  # all pairs alike, as where nothing changed at all: the value itself
    low, high, share_low, share_high = (
        np.where(still & (effects[:, 0] == 0), 0.0, np.array(ends))
        for ends in (
            [one.low for one in of_means],
            [one.high for one in of_means],
            [one.low for one in of_shares],
            [one.high for one in of_shares],
        )
    )
    q_values = benjamini_hochberg(p_values)
    beyond = (share_low > threshold) | (share_high < -threshold)
    resampled = np.abs(bootstrap_replicates(means, rows, vectorized=True, **more))
    top = min(top, len(effects))
    among = np.argsort(-resampled, axis=1, kind="stable")[:, :top]
    stability = np.bincount(among.ravel(), minlength=len(effects)) / len(resampled)
    share = effects.mean(axis=1) / worth if worth > 0 else np.zeros(len(effects))
    return Significance(
        effects.mean(axis=1), low, high, share, share_low, share_high, p_values, q_values, stability,
        beyond & (q_values < 1 - level), of_means[0].method,
    )  # fmt: skip


def _beyond(effects: Floats, scale: Floats, units: npt.NDArray[np.str_], threshold: float) -> Floats:
    """p-values of: the mean effect is no larger, either way, than the threshold times the mean scale.

    Student's test on means of units of |effect| less threshold times scale; the chance of so large an effect with the
    other sign is added, so that the level holds for any threshold.
    """
    _, codes = np.unique(units, return_inverse=True)
    counts = np.bincount(codes)
    by_unit = np.stack([np.bincount(codes, row) for row in effects]) / counts
    by_unit = np.where(by_unit.mean(axis=1, keepdims=True) < 0, -by_unit, by_unit)
    scale_by_unit = threshold * np.bincount(codes, scale) / counts
    p_values = _upper_tail(by_unit - scale_by_unit) + _upper_tail(by_unit + scale_by_unit)
    return np.minimum(p_values, 1.0)


def _upper_tail(rows: Floats) -> Floats:
    """Student's one-sided p-value of: the mean is at most 0; 1 for rows that are all 0."""
    n = rows.shape[1]
    mean, spread = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(spread > 0, mean / spread, np.where(mean > 0, np.inf, -np.inf))
    return special.stdtr(n - 1, -statistic)
