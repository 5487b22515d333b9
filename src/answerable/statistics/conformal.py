"""Split-conformal thresholds and p-values, for all scores or by group (Vovk, Gammerman and Shafer 2005).

Calibration scores come from things that must not be flagged (human texts, real images), none of which was used to fit
the score. If a new thing of the same kind is exchangeable with them, then for n calibration scores, whatever the score:

- P(score > threshold) <= alpha, where the threshold is the k-th smallest score, k = ceil((n + 1)(1 - alpha));
- P(p-value <= alpha) <= alpha for every alpha, where p = (1 + #{calibration >= score}) / (n + 1).

Both are averages over calibration sets; `false_alarm_interval` says how far one set may be off. By group both hold
within each group that stands by itself. Pooled groups share the guarantee as a whole, provided that which groups are
pooled was not chosen by their scores (here it is chosen by their sizes).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from answerable.errors import BadInput
from answerable.statistics.inputs import Floats, codes_of, count_of, level_of, numbers_of, rate_of
from answerable.statistics.intervals import Interval, named


def conformal_threshold(calibration: ArrayLike, alpha: float) -> float:
    """The score above which a new thing is flagged, with at most ``alpha`` false alarms.

    Parameters
    ----------
    calibration : (n,) float64 scores, large is suspicious; may be infinite
    alpha : false-alarm rate allowed, between 0 and 1

    Returns
    -------
    float : flag if score > threshold

    Raises
    ------
    BadInput : fewer than ``1 / alpha - 1`` scores, a missing one (its row, counted from 1, is named), alpha outside
        (0, 1)
    """
    scores = np.sort(numbers_of(calibration, "calibration", infinite=True))
    return float(scores[_rank(len(scores), alpha) - 1])


def conformal_p_values(calibration: ArrayLike, scores: ArrayLike) -> Floats:
    """How probable a score at least this suspicious is, for a thing like those calibrated on.

    Parameters
    ----------
    calibration : (n,) float64 scores, n >= 1, large is suspicious
    scores : (m,) float64

    Returns
    -------
    (m,) float64 between 1 / (n + 1) and 1; give them to `benjamini_hochberg` when there are many

    Raises
    ------
    BadInput : a score missing; its row (counted from 1) is named
    """
    known = np.sort(numbers_of(calibration, "calibration", infinite=True))
    asked = numbers_of(scores, "scores", least=0, infinite=True)
    return (1 + len(known) - np.searchsorted(known, asked, side="left")) / (len(known) + 1)


def false_alarm_interval(n_calibration: int, alpha: float, *, level: float = 0.95) -> Interval:
    """Where the false-alarm rate of one calibration set lies, for scores without ties.

    Parameters
    ----------
    n_calibration : calibration scores, at least ``1 / alpha - 1``
    alpha : false-alarm rate asked for, between 0 and 1
    level : share of calibration sets whose rate lies within, between 0 and 1

    Returns
    -------
    Interval : mean and central quantiles of the rate, which is Beta(n + 1 - k, k) distributed; exact

    Raises
    ------
    BadInput : too few calibration scores, or a parameter outside its range
    """
    level, n = level_of(level), count_of(n_calibration, "n_calibration", least=1)
    k = _rank(n, alpha)
    low, high = special.betaincinv(n + 1 - k, k, [(1 - level) / 2, (1 + level) / 2])
    return Interval((n + 1 - k) / (n + 1), float(low), float(high), level, named(level, "range over calibration sets"))


def pooled_groups(groups: ArrayLike, least: int, *, ordered: bool = False) -> dict[Hashable, tuple[Hashable, ...]]:
    """Which groups are calibrated together so that each pool has at least ``least`` rows.

    Parameters
    ----------
    groups : (n,) labels of the calibration rows
    least : fewest rows of a pool
    ordered : whether sorted labels are neighbouring bins. If so each small bin joins the next, a last one the one
        before; otherwise all small groups form one pool, which takes in the next smallest groups while it is itself
        too small

    Returns
    -------
    dict : for each label the labels of its pool, sorted; fewer than ``least`` rows in all make one pool

    Raises
    ------
    BadInput : a label missing (its row, counted from 1, is named), or ``least`` below 1
    """
    labels, codes = codes_of(groups, len(np.asarray(groups)), "groups")
    sizes = np.bincount(codes, minlength=len(labels))
    count_of(least, "least", least=1)
    pools = _neighbouring_pools(sizes, least) if ordered else _pool_of_small(sizes, least)
    names = [label.item() if hasattr(label, "item") else label for label in labels]
    return {names[k]: tuple(names[j] for j in pool) for pool in pools for k in pool}


def conformal_thresholds_by_group(
    calibration: ArrayLike, groups: ArrayLike, alpha: float, *, least: int = 100, ordered: bool = False
) -> dict[Hashable, float]:
    """A threshold for each group, with at most ``alpha`` false alarms in each.

    Parameters
    ----------
    calibration : (n,) float64 scores, large is suspicious
    groups : (n,) labels
    alpha : false-alarm rate allowed, between 0 and 1
    least : fewest calibration scores of a group that stands by itself; never less than ``1 / alpha - 1``
    ordered : as in `pooled_groups`

    Returns
    -------
    dict : threshold by label; a label that was not calibrated has none and is never to be flagged

    Raises
    ------
    BadInput : as `conformal_threshold`
    """
    scores = numbers_of(calibration, "calibration", infinite=True)
    labels, codes = codes_of(groups, len(scores), "groups")
    enough = max(count_of(least, "least", least=1), math.ceil(1 / rate_of(alpha, "alpha") - 1 - 1e-9))
    return {
        label: conformal_threshold(pool_scores, alpha)
        for label, pool_scores in _scores_of_pools(
            scores, labels, codes, pooled_groups(groups, enough, ordered=ordered)
        )
    }


def conformal_p_values_by_group(
    calibration: ArrayLike,
    calibration_groups: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike,
    *,
    least: int = 100,
    ordered: bool = False,
) -> Floats:
    """Conformal p-values within groups.

    Parameters
    ----------
    calibration, calibration_groups : (n,) float64 scores and labels of what must not be flagged
    scores, groups : (m,) the same of what is asked about
    least, ordered : as in `conformal_thresholds_by_group`

    Returns
    -------
    (m,) float64; 1 for a label that was not calibrated, since nothing is known about it

    Raises
    ------
    BadInput : as `conformal_p_values`, or labels that do not fit the scores
    """
    known, asked = numbers_of(calibration, "calibration", infinite=True), numbers_of(scores, "scores", infinite=True)
    labels, codes = codes_of(calibration_groups, len(known), "calibration_groups")
    asked_labels, asked_codes = codes_of(groups, len(asked), "groups")
    p_values = np.ones(len(asked))
    pools = pooled_groups(calibration_groups, least, ordered=ordered)
    for label, pool_scores in _scores_of_pools(known, labels, codes, pools):
        rows = (asked_labels == label)[asked_codes]
        p_values[rows] = conformal_p_values(pool_scores, asked[rows])
    return p_values


def _rank(n: int, alpha: float) -> int:
    """The rank k = ceil((n + 1)(1 - alpha)), refused where it lies beyond n."""
    # (n + 1) alpha is often meant to be whole, and 0.05 is not exactly 1/20: a last digit must not cost a rank.
    k = n + 1 - math.floor((n + 1) * rate_of(alpha, "alpha") + 1e-9)
    if k > n:
        needed = math.ceil(1 / alpha - 1 - 1e-9)
        raise BadInput(f"{n} calibration scores are too few for alpha = {alpha:g}", mend=f"give at least {needed}")
    return k


def _neighbouring_pools(sizes: NDArray[Any], least: int) -> list[list[int]]:
    pools: list[list[int]] = [[]]
    for k in range(len(sizes)):
        pools[-1].append(k)
        if sizes[pools[-1]].sum() >= least:
            pools.append([])
    leftover = pools.pop()
    if pools:
        pools[-1].extend(leftover)
        return pools
    return [leftover]


def _pool_of_small(sizes: NDArray[Any], least: int) -> list[list[int]]:
    by_size = np.argsort(sizes, kind="stable")
    n_small = int((sizes < least).sum())
    while 0 < n_small < len(sizes) and sizes[by_size[:n_small]].sum() < least:
        n_small += 1
    alone = [[int(k)] for k in sorted(by_size[n_small:])]
    small = [sorted(int(k) for k in by_size[:n_small])] if n_small else []
    return small + alone


def _scores_of_pools(
    scores: Floats, labels: NDArray[Any], codes: NDArray[Any], pools: Mapping[Hashable, tuple[Hashable, ...]]
) -> list[tuple[Any, Floats]]:
    members = {pool: scores[np.isin(labels, np.array(pool))[codes]] for pool in set(pools.values())}
    return [(label, members[pool]) for label, pool in pools.items()]
