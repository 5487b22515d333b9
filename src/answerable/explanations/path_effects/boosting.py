"""Gradient-boosted trees on a table that was binned once.

The fits are those of scikit-learn's histogram gradient boosting with these settings (same gains, same leaves, gradients
in single and sums in double precision), so that it is their oracle; what differs is that every fit of a study reads the
same bytes: bins are found once for the whole table instead of once for each of about fifty training sets, and fits run
side by side in threads instead of threads inside a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel
from answerable.statistics import Floats, Ints

Bytes = npt.NDArray[np.uint8]

MISSING = 255  # the bin of missing values
MOST_BINS = 255
LEAST_HESSIAN = 1e-3  # in each child, as scikit-learn demands
SQUARED, LOGISTIC = 0, 1


@dataclass(frozen=True)
class BoostedTrees:
    """Settings of the boosted trees.

    Parameters
    ----------
    trees : trees of each fit
    depth : levels of splits of a tree, 1 to 6
    learning_rate : share of each tree's step that is taken
    l2 : penalty on leaf values
    least_leaf : fewest rows of a leaf
    """

    trees: int = 50
    depth: int = 3
    learning_rate: float = 0.1
    l2: float = 5.0
    least_leaf: int = 20


class Binned(NamedTuple):
    """A table in bytes.

    Attributes
    ----------
    codes : (n, p) uint8, row by row: the bin of each value, `MISSING` where there is none
    n_bins : (p,) int64 number of bins that hold values
    """

    codes: Bytes
    n_bins: Ints


def binned(X: Floats) -> Binned:
    """Bins of every column: one for each value where there are few, else of about equally many rows.

    Parameters
    ----------
    X : (n, p) float64; NaN is missing
    """
    codes = np.empty(X.shape, dtype=np.uint8)
    n_bins = np.empty(X.shape[1], dtype=np.int64)
    for j, column in enumerate(X.T):
        there = ~np.isnan(column)
        edges = _edges(column[there])
        codes[:, j] = np.where(there, np.searchsorted(edges, column), MISSING)
        n_bins[j] = len(edges) + 1
    return Binned(codes, n_bins)


def _edges(values: Floats) -> Floats:
    distinct = np.unique(values)
    if len(distinct) <= MOST_BINS:
        return distinct[:-1] + np.diff(distinct) / 2
    shares = np.linspace(0, 100, MOST_BINS + 1)[1:-1]
    return np.unique(np.percentile(values, shares, method="midpoint"))


def boosted(
    table: Binned, columns: int, train: Ints, target: Floats, wanted: Ints, settings: BoostedTrees, *, logistic: bool
) -> Floats:
    """Fit on some rows and the first columns, predict others.

    Parameters
    ----------
    table : all rows
    columns : how many of the first columns are used
    train : (m,) int64 rows to fit on
    target : (m,) float64, 0 or 1 for ``logistic``
    wanted : (k,) int64 rows to predict

    Returns
    -------
    (k,) float64 : the mean, or for ``logistic`` the probability of 1
    """
    raw = _boosted(
        table.codes,
        table.n_bins,
        columns,
        train,
        target,
        wanted,
        settings.trees,
        settings.depth,
        settings.learning_rate,
        settings.l2,
        settings.least_leaf,
        LOGISTIC if logistic else SQUARED,
    )
    return 1 / (1 + np.exp(-raw)) if logistic else raw


@kernel
def _boosted(codes, n_bins, columns, train, target, wanted, trees, depth, rate, l2, least_leaf, loss):  # type: ignore[no-untyped-def]
    """Raw predictions for ``wanted``."""
    m = len(train)
    rows = np.empty((m, columns), dtype=np.uint8)
    holed = np.zeros(columns, dtype=np.bool_)
    for i in range(m):
        for j in range(columns):
            rows[i, j] = codes[train[i], j]
            holed[j] |= rows[i, j] == 255
    asked = np.empty((len(wanted), columns), dtype=np.uint8)
    for i in range(len(wanted)):
        for j in range(columns):
            asked[i, j] = codes[wanted[i], j]
    start = target.sum() / m
    if loss == 1:
        start = np.log(start / (1 - start))
    raw, out = np.full(m, start), np.full(len(wanted), start)
    gradient, hessian = np.empty(m, dtype=np.float32), np.empty(m, dtype=np.float32)
    order, spare = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    inner = 2**depth - 1
    histogram = np.empty((inner, columns, 256, 3))
    feature, cut = np.empty(inner, dtype=np.int64), np.empty(inner, dtype=np.int64)
    missing_left, open_nodes = np.empty(inner, dtype=np.bool_), np.empty(inner, dtype=np.bool_)
    value, sums = np.empty(2 * inner + 1), np.empty((2 * inner + 1, 2))
    begin, stop = np.empty(2 * inner + 1, dtype=np.int64), np.empty(2 * inner + 1, dtype=np.int64)
    for _ in range(trees):
        g_sum, h_sum = _gradients(raw, target, gradient, hessian, loss)
        for i in range(m):
            order[i] = i
        feature[:] = -1
        open_nodes[:] = False
        begin[0], stop[0], sums[0, 0], sums[0, 1] = 0, m, g_sum, h_sum
        value[0] = -g_sum / (h_sum + l2 + 1e-15)
        if m >= 2 * least_leaf:
            _fill(histogram[0], rows, order, 0, m, gradient, hessian, loss)
            open_nodes[0] = True
        for node in range(inner):
            if not open_nodes[node]:
                continue
            best, place, to_left, g_left, h_left = _best_split(
                histogram[node], n_bins, holed, stop[node] - begin[node], sums[node], value[node], l2, least_leaf, loss
            )
            if best < 0:
                continue
            feature[node], cut[node] = best, place
            middle = _partition(rows, order, spare, begin[node], stop[node], best, place, to_left)
            left, right = 2 * node + 1, 2 * node + 2
            begin[left], stop[left], begin[right], stop[right] = begin[node], middle, middle, stop[node]
            n_left, n_right = middle - begin[node], stop[node] - middle
            # A value that is missing only later goes where most rows went.
            missing_left[node] = to_left if holed[best] else n_left > n_right
            sums[left, 0], sums[left, 1] = g_left, h_left
            sums[right, 0], sums[right, 1] = sums[node, 0] - g_left, sums[node, 1] - h_left
            for child in (left, right):
                value[child] = -sums[child, 0] / (sums[child, 1] + l2 + 1e-15)
            if left < inner and max(n_left, n_right) >= 2 * least_leaf:
                less, more = (left, right) if n_left < n_right else (right, left)
                _fill(histogram[less], rows, order, begin[less], stop[less], gradient, hessian, loss)
                _subtract(histogram[node], histogram[less], histogram[more], n_bins)
                open_nodes[left], open_nodes[right] = n_left >= 2 * least_leaf, n_right >= 2 * least_leaf
        for node in range(2 * inner + 1):
            reached = node == 0 or feature[(node - 1) // 2] >= 0
            if reached and (node >= inner or feature[node] < 0):
                for k in range(begin[node], stop[node]):
                    raw[order[k]] += rate * value[node]
        for i in range(len(wanted)):
            node = 0
            while node < inner and feature[node] >= 0:
                code = asked[i, feature[node]]
                goes_left = missing_left[node] if code == 255 else code <= cut[node]
                node = 2 * node + (1 if goes_left else 2)
            out[i] += rate * value[node]
    return out


@kernel
def _gradients(raw, target, gradient, hessian, loss):  # type: ignore[no-untyped-def]
    """Derivatives of the loss, rounded to single precision, and their sums."""
    g_sum, h_sum = 0.0, 0.0
    for i in range(len(raw)):
        if loss == 0:
            gradient[i] = raw[i] - target[i]
            h_sum += 1.0
        else:
            power = np.exp(-raw[i])
            gradient[i] = ((1 - target[i]) - target[i] * power) / (1 + power)
            hessian[i] = power / ((1 + power) * (1 + power))
            h_sum += hessian[i]
        g_sum += gradient[i]
    return g_sum, h_sum


@kernel
def _fill(histogram, rows, order, begin, stop, gradient, hessian, loss):  # type: ignore[no-untyped-def]
    """Sums of gradient, hessian and rows of each bin of each column."""
    histogram[:] = 0.0
    columns = rows.shape[1]
    for k in range(begin, stop):
        i = order[k]
        g = np.float64(gradient[i])
        if loss == 0:
            for j in range(columns):
                cell = histogram[j, rows[i, j]]
                cell[0] += g
                cell[2] += 1.0
        else:
            h = np.float64(hessian[i])
            for j in range(columns):
                cell = histogram[j, rows[i, j]]
                cell[0] += g
                cell[1] += h
                cell[2] += 1.0


@kernel
def _subtract(parent, less, more, n_bins):  # type: ignore[no-untyped-def]
    """The larger child's sums are the parent's less the smaller's."""
    for j in range(parent.shape[0]):
        for b in range(n_bins[j]):
            for k in range(3):
                more[j, b, k] = parent[j, b, k] - less[j, b, k]
        for k in range(3):
            more[j, 255, k] = parent[j, 255, k] - less[j, 255, k]


@kernel
def _best_split(histogram, n_bins, holed, count, sums, value, l2, least_leaf, loss):  # type: ignore[no-untyped-def]
    """Column, last bin to the left, whether missing goes left, and the left child's sums; column -1 for none."""
    best, place, to_left, g_best, h_best, gain_best = -1, 0, False, 0.0, 0.0, 0.0
    second = 2 if loss == 0 else 1  # every hessian of the squared loss is 1
    here = sums[0] * value
    for j in range(histogram.shape[0]):
        for missing in range(2 if holed[j] else 1):
            g, h, n = 0.0, 0.0, 0.0
            if missing == 1:
                g, h, n = histogram[j, 255, 0], histogram[j, 255, second], histogram[j, 255, 2]
            last = n_bins[j] - 1 + (1 if holed[j] and missing == 0 else 0)
            for b in range(last):
                n += histogram[j, b, 2]
                g += histogram[j, b, 0]
                h += histogram[j, b, second]
                if n < least_leaf or h < 1e-3:
                    continue
                if count - n < least_leaf or sums[1] - h < 1e-3:
                    break
                rest = sums[0] - g
                gain = here + g * g / (h + l2 + 1e-15) + rest * rest / (sums[1] - h + l2 + 1e-15)
                if gain > gain_best:
                    best, place, to_left, g_best, h_best, gain_best = j, b, missing == 1, g, h, gain
    return best, place, to_left, g_best, h_best


@kernel
def _partition(rows, order, spare, begin, stop, column, place, to_left):  # type: ignore[no-untyped-def]
    """Sort a node's rows into its children, each in their old order; returns where the right child begins."""
    left, right = begin, 0
    for k in range(begin, stop):
        i = order[k]
        code = rows[i, column]
        if to_left if code == 255 else code <= place:
            order[left] = i
            left += 1
        else:
            spare[right] = i
            right += 1
    for k in range(right):
        order[left + k] = spare[k]
    return left
