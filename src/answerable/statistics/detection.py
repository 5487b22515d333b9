"""How well scores tell two classes apart: AUROC, average precision, TPR at a fixed FPR, each with an interval.

AUROC with DeLong's variance (DeLong, DeLong and Clarke-Pearson 1988) from the placements of each class among the other,
as Sun and Xu (2014), ties counted half. Average precision as scikit-learn defines it, with the variance of its
influence function.

*The interval.* DeLong's own, ``value +- z s``, has no width where the classes separate, and covers as little as 40 %
near there. Ours solves ``(value - a)**2 = t**2 a (1 - a) / n_effective``, as Wilson does for a proportion, where
``n_effective`` is the number of coin tosses that would have DeLong's variance. Each of its two parts is estimated with
half a toss added whose variance is half of ``a (1 - a)``, the largest that both parts can have together (Hoeffding
1948); t has Satterthwaite's degrees of freedom. For large samples this is DeLong's interval; for small ones, and near
0 and 1, it is conservative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from answerable.compiled import in_threads
from answerable.errors import BadInput
from answerable.statistics.inputs import Bools, Floats, classes_of, level_of, numbers_of, rate_of
from answerable.statistics.intervals import Interval, named, quantile_ranks, t_quantile
from answerable.statistics.placements import placement_sums
from answerable.statistics.proportions import binomial_high, binomial_low

_PSEUDO_ROWS = 0.5
_PSEUDO_SHARE = 0.5
_BLOCK_CELLS = 1 << 17  # scores turned at once: they stay in the processor's cache
_LINE_CELLS = 8  # scores of one cache line: fewer columns at once would read each line several times


class Aurocs(NamedTuple):
    """Areas under the ROC curve of k columns of scores.

    Attributes
    ----------
    values : (k,) probability that a positive scores above a negative, ties counted half
    variances : (k, 2) parts of DeLong's variance that come from the positives and from the negatives
    """

    values: Floats
    variances: Floats


def aurocs(labels: ArrayLike, scores: ArrayLike, *, threads: int = 1) -> Aurocs:
    """AUROC and DeLong's variance of many columns of scores, O(n log n) each; O(n) where scores are spread out.

    Parameters
    ----------
    labels : (n,) 0 and 1, both present
    scores : (n, k) float32 or float64, large for label 1; may be infinite. float32 is read as such
    threads : how many columns are counted side by side; the result does not depend on it

    Returns
    -------
    Aurocs : a variance is 0 where its class has one member

    Raises
    ------
    BadInput : other labels or one class only, a score missing (its row and column, counted from 1, are named), no match
    """
    positive = classes_of(labels)
    table = _score_table(scores, positive)
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    marks, sums = positive.astype(np.uint8), np.empty((table.shape[1], 3))

    def one_block(blocks: Any) -> None:
        for start, stop in blocks:
            placement_sums(np.ascontiguousarray(table[:, start:stop].T), marks, sums[start:stop])

    width = max(_LINE_CELLS, _BLOCK_CELLS // len(table))
    starts = range(0, table.shape[1], width)
    in_threads(one_block, [(start, min(start + width, table.shape[1])) for start in starts], threads)
    values = sums[:, 0] / (2 * n_positive * n_negative)
    among_positives = _mean_variance(sums[:, 1] / (4 * n_negative**2), values, n_positive)
    among_negatives = _mean_variance(sums[:, 2] / (4 * n_positive**2), values, n_negative)
    return Aurocs(values, np.stack([among_positives, among_negatives], axis=1))


def auroc_interval(labels: ArrayLike, scores: ArrayLike, *, level: float = 0.95) -> Interval:
    """AUROC of one column of scores, with an interval; see the head of this module.

    Parameters
    ----------
    labels : (n,) 0 and 1, each at least twice
    scores : (n,) float64, large for label 1; may be infinite
    level : confidence, between 0 and 1

    Raises
    ------
    BadInput : as `aurocs`, or a class with one member
    """
    return auroc_intervals(labels, numbers_of(scores, "scores", infinite=True)[:, None], level=level)[0]


def auroc_intervals(labels: ArrayLike, scores: ArrayLike, *, level: float = 0.95, threads: int = 1) -> list[Interval]:
    """AUROC of each of k columns, with its interval.

    Parameters
    ----------
    labels, scores, threads : as in `aurocs`, each label at least twice
    level : confidence of each interval by itself, between 0 and 1

    Returns
    -------
    list of k Interval, value and ends between 0 and 1

    Raises
    ------
    BadInput : as `aurocs`, or a class with one member
    """
    level = level_of(level)
    sizes = _class_sizes(classes_of(labels), least=2)
    values, variances = aurocs(labels, scores, threads=threads)
    lows, highs = _wilson_form(values, variances, sizes, level)
    name = named(level, "DeLong interval in Wilson's form")
    return [
        Interval(float(value), float(low), float(high), level, name)
        for value, low, high in zip(values, lows, highs, strict=True)
    ]


def auroc_covariance(labels: ArrayLike, scores: ArrayLike) -> Floats:
    """DeLong's covariance of the AUROCs of k columns on the same rows.

    Parameters
    ----------
    labels, scores : as in `aurocs`, each label at least twice

    Returns
    -------
    (k, k) float64

    Raises
    ------
    BadInput : as `aurocs`, or a class with one member
    """
    positive = classes_of(labels)
    n_positive, n_negative = _class_sizes(positive, least=2)
    of_positives, of_negatives = _placements(positive, _score_table(scores, positive))
    covariance = np.cov(of_positives, rowvar=False) / n_positive + np.cov(of_negatives, rowvar=False) / n_negative
    return np.atleast_2d(covariance)


def auroc_difference_interval(
    labels: ArrayLike, first: ArrayLike, second: ArrayLike, *, level: float = 0.95
) -> Interval:
    """``AUROC(first) - AUROC(second)`` on the same rows, with DeLong's covariance.

    Each class counts as if half a row more had stood a whole unit from the mean, so that two perfect or two equal
    columns still leave room for a difference; for large samples this is DeLong's interval.

    Parameters
    ----------
    labels : (n,) 0 and 1, each at least twice
    first, second : (n,) float64 scores, large for label 1
    level : confidence, between 0 and 1

    Returns
    -------
    Interval : value and ends between -1 and 1

    Raises
    ------
    BadInput : as `aurocs`, or a class with one member
    """
    level, positive = level_of(level), classes_of(labels)
    sizes = np.array(_class_sizes(positive, least=2))
    columns = [numbers_of(column, name, infinite=True) for column, name in ((first, "first"), (second, "second"))]
    parts = _placements(positive, _score_table(np.stack(_matched(columns, positive), axis=1), positive))
    differences = [part[:, 0] - part[:, 1] for part in parts]
    value = float(differences[0].mean())
    squares = np.array([((part - part.mean()) ** 2).sum() for part in differences])
    variances = (squares + _PSEUDO_ROWS) / (sizes * (sizes - 1))
    half_width = float(t_quantile(level, _satterthwaite(variances[None], sizes)[0]) * np.sqrt(variances.sum()))
    method = named(level, "DeLong interval of paired AUROCs, half a row added")
    return Interval(value, max(value - half_width, -1.0), min(value + half_width, 1.0), level, method)


def auroc_influence(labels: ArrayLike, scores: ArrayLike) -> Floats:
    """What each row adds to the AUROC: values whose mean is the AUROC, for `influence_interval` with clusters.

    Parameters
    ----------
    labels : (n,) 0 and 1, both present
    scores : (n,) float64, large for label 1

    Returns
    -------
    (n,) float64

    Raises
    ------
    BadInput : as `aurocs`
    """
    positive = classes_of(labels)
    column = numbers_of(scores, "scores", infinite=True)
    of_positives, of_negatives = _placements(positive, _score_table(column[:, None], positive))
    value = of_positives.mean()
    influence = np.empty(len(positive))
    influence[positive] = value + (of_positives[:, 0] - value) * len(positive) / len(of_positives)
    influence[~positive] = value + (of_negatives[:, 0] - value) * len(positive) / len(of_negatives)
    return influence


def average_precision_interval(labels: ArrayLike, scores: ArrayLike, *, level: float = 0.95) -> Interval:
    """Average precision (area under the precision-recall steps) at the share of positives in these rows.

    Parameters
    ----------
    labels : (n,) 0 and 1, each at least twice
    scores : (n,) float64, large for label 1; may be infinite
    level : confidence, between 0 and 1

    Returns
    -------
    Interval : value as scikit-learn's ``average_precision_score``; variance from the influence function, in Wilson's
        form. The estimate itself lies too high where positives are few, which no interval around it mends: 20 of each
        class is few

    Raises
    ------
    BadInput : as `aurocs`, or a class with one member
    """
    level, positive = level_of(level), classes_of(labels)
    column = numbers_of(scores, "scores", infinite=True)
    _score_table(column[:, None], positive)
    n_positive, n_negative = _class_sizes(positive, least=2)
    value, influence = _average_precision(positive, column)
    # Seen as a mean over the rarer class, so that where nothing varies each of its members is one toss.
    tosses = min(n_positive, n_negative)
    variance = float((influence**2).sum()) / len(positive) ** 2
    share = (variance * tosses**2 + _PSEUDO_ROWS) / (tosses * value * (1 - value) + _PSEUDO_ROWS)
    low, high = _wilson_roots(np.array(value), np.array(share / tosses), t_quantile(level, tosses - 1))
    method = named(level, "influence-function interval in Wilson's form")
    return Interval(value, float(low), float(high), level, method)


def tpr_at_fpr_interval(labels: ArrayLike, scores: ArrayLike, fpr: float, *, level: float = 0.95) -> Interval:
    """Share of positives found when at most ``fpr`` of negatives are flagged.

    The threshold is a quantile of the negatives and as uncertain as they are few. Each end takes half of its error for
    the threshold (order statistics) and half for the positives beyond it (Clopper-Pearson), so the interval is
    conservative. With fewer than about ``3.7 / fpr`` negatives no threshold is known to be high enough at 95 %, and
    the low end is 0.

    Parameters
    ----------
    labels : (n,) 0 and 1, both present
    scores : (n,) float64, large for label 1; may be infinite
    fpr : false-positive rate allowed, between 0 and 1
    level : confidence, between 0 and 1

    Returns
    -------
    Interval : its value is the share above the lowest threshold that keeps the false-positive rate of these rows

    Raises
    ------
    BadInput : as `aurocs`, or ``fpr`` outside (0, 1)
    """
    level, fpr, positive = level_of(level), rate_of(fpr, "fpr"), classes_of(labels)
    column = _score_table(numbers_of(scores, "scores", infinite=True)[:, None], positive)[:, 0]
    found, negatives = np.sort(column[positive]), np.sort(column[~positive])
    allowed = int(fpr * len(negatives) + 1e-9)
    value = float((found > negatives[len(negatives) - 1 - allowed]).mean())
    tail = (1 - level) / 4
    lower, upper = quantile_ranks(len(negatives), 1 - fpr, tail, tail)
    surely = int((found > negatives[upper - 1]).sum()) if upper <= len(negatives) else 0
    possibly = int((found >= negatives[lower - 1]).sum()) if lower >= 1 else len(found)
    low, high = binomial_low(surely, len(found), tail), binomial_high(possibly, len(found), tail)
    name = f"order-statistic and Clopper-Pearson interval of TPR at {100 * fpr:.6g} % FPR"
    return Interval(value, min(low, value), max(high, value), level, named(level, name))


def _score_table(scores: ArrayLike, positive: Bools) -> NDArray[Any]:
    table = np.asarray(scores)
    if table.dtype != np.float32 or table.ndim != 2:
        table = numbers_of(table, "scores", ndim=2, infinite=True)
    elif np.isnan(table).any():
        numbers_of(table, "scores", ndim=2, infinite=True)  # names the cell
    if len(table) != len(positive):
        raise BadInput(
            f"there are {len(positive)} labels and {len(table)} rows of scores", mend="give one label per row"
        )
    return table


def _matched(columns: list[Floats], positive: Bools) -> list[Floats]:
    for column, name in zip(columns, ("first", "second"), strict=True):
        if len(column) != len(positive):
            raise BadInput(
                f"there are {len(column)} scores", where=name, mend=f"give one per label, {len(positive)} in all"
            )
    return columns


def _class_sizes(positive: Bools, least: int) -> tuple[int, int]:
    sizes = int(positive.sum()), int((~positive).sum())
    if min(sizes) < least:
        raise BadInput(
            f"there are {sizes[0]} positives and {sizes[1]} negatives", where="labels", mend=f"give {least} of each"
        )
    return sizes


def _placements(positive: Bools, table: NDArray[Any]) -> tuple[Floats, Floats]:
    """For each positive the share of negatives below it, for each negative of positives above; rows in their order."""
    found, negatives = table[positive], table[~positive]
    of_positives, of_negatives = np.empty(found.shape), np.empty(negatives.shape)
    for k in range(table.shape[1]):
        ordered = np.sort(negatives[:, k])
        below = np.searchsorted(ordered, found[:, k], "left") + np.searchsorted(ordered, found[:, k], "right")
        of_positives[:, k] = below / (2 * len(ordered))
        ordered = np.sort(found[:, k])
        below = np.searchsorted(ordered, negatives[:, k], "left") + np.searchsorted(ordered, negatives[:, k], "right")
        of_negatives[:, k] = 1 - below / (2 * len(ordered))
    return of_positives, of_negatives


def _mean_variance(squares: Floats, means: Floats, n: int) -> Floats:
    """Variance of a mean of n values, from their sum of squares."""
    if n < 2:
        return np.zeros_like(means)
    return np.maximum(squares - n * means**2, 0.0) / (n * (n - 1))


def _satterthwaite(variances: Floats, sizes: NDArray[Any]) -> Floats:
    return variances.sum(axis=1) ** 2 / (variances**2 / (sizes - 1)).sum(axis=1)


def _wilson_form(values: Floats, variances: Floats, sizes: tuple[int, int], level: float) -> tuple[Floats, Floats]:
    n = np.array(sizes)
    spread = (values * (1 - values))[:, None]
    # Shares of a toss's variance: from the data, and half a pseudo-row more.
    shares = (variances * n * (n - 1) + _PSEUDO_ROWS * _PSEUDO_SHARE) / ((n - 1) * spread + _PSEUDO_ROWS)
    parts = shares / n
    return _wilson_roots(values, parts.sum(axis=1), t_quantile(level, _satterthwaite(parts, n)))


def _wilson_roots(value: Floats, inverse_size: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Roots a of ``(value - a)**2 = t**2 a (1 - a) inverse_size``."""
    b = t**2 * inverse_size
    centre = (value + b / 2) / (1 + b)
    half = np.sqrt(b * value * (1 - value) + b**2 / 4) / (1 + b)
    # At 0 and 1 an end equals the value but for rounding.
    return np.clip(centre - half, 0.0, value), np.clip(centre + half, value, 1.0)


def _average_precision(positive: Bools, scores: Floats) -> tuple[float, Floats]:
    """Average precision, and the influence of each row on it.

    With precision ``h(s)`` among rows that score at least s, ``B(s)`` their share, and p the share of positives::

        influence(y, s) = y (h(s) - AP) / p + sum over positives s' <= s of (y - h(s')) / (n B(s') p)
    """
    n, n_positive = len(scores), int(positive.sum())
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], positive[order].astype(np.float64)
    last_of_tie = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), n - 1)
    group = np.repeat(np.arange(len(last_of_tie)), np.diff(np.append(-1, last_of_tie)))
    at_least = (last_of_tie + 1.0)[group]
    precision = np.cumsum(hits)[last_of_tie][group] / at_least
    value = float((hits * precision).sum() / n_positive)
    from_here_down = _tie_aware_tail_sums(np.stack([hits / at_least, hits * precision / at_least]), last_of_tie, group)
    influence = np.empty(n)
    influence[order] = (hits * (precision - value) + hits * from_here_down[0] - from_here_down[1]) * n / n_positive
    return value, influence


def _tie_aware_tail_sums(terms: Floats, last_of_tie: NDArray[Any], group: NDArray[Any]) -> Floats:
    """For each place the sum of ``terms`` over all places with the same score or a lower one."""
    before = np.concatenate([np.zeros((len(terms), 1)), np.cumsum(terms, axis=1)], axis=1)
    first_of_tie = np.append(0, last_of_tie[:-1] + 1)
    return before[:, -1:] - before[:, first_of_tie[group]]
