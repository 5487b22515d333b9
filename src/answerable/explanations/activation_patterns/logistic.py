"""Logistic fits of one variable at a time, for thousands of columns.

Newton's method on columns of mean 0 and variance 1, from the slope of linear discriminant analysis, which is nearly
the answer, so that two to four passes over a column are enough. Nothing here penalises unless it is asked to: data that
a fit separates have no finite slope, and are told apart instead of being given a very large one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from answerable.compiled import in_threads, kernel
from answerable.errors import BadInput
from answerable.statistics import Floats

Link = Literal["logit", "identity"]

MOST_STEPS = 60
MOST_HALVES = 40
ENOUGH = 0.9  # a step may turn the slope along it up by this share of what it went down
CLOSE = 1e-7  # relative step; Newton's next one would be its square, what is left then is some 1e-13
FLAT = 1e-10  # a column whose standard deviation is this small beside its values is constant
ROWS_AT_ONCE = 256  # a power of two: what is worked out for so many rows stays in the fastest cache
LANES = 128  # sums that are kept side by side
MOST_LOG_ODDS = 700.0  # beyond it exp overflows; the probability is 0 or 1 long before
WHOLE = 1.5 * 2.0**52
LOG_2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)  # its first 33 bits, and the rest
BLOCK_CELLS = 1 << 18  # cells that are turned and fitted at once: they stay in the processor's cache

FITTED, CONSTANT, SEPARATED, UNFINISHED = range(4)


class Slopes(NamedTuple):
    """One-variable fits of the target, one for each of U columns.

    Attributes
    ----------
    slope : (U,) change of the log-odds (of the target, for the identity link) per unit of the column; 0 for a constant
    intercept : (U,) value of the fit where the column is 0
    mean, std : (U,) weighted mean and standard deviation (1/N) of the column
    """

    slope: Floats
    intercept: Floats
    mean: Floats
    std: Floats


@kernel
def _moments(block, weights, positive, out):  # type: ignore[no-untyped-def]
    """Mean, deviation, and per class mean and range of each row of ``block``; weights sum to 1.

    Each of ``LANES`` places keeps sums of its own, since one running sum would have to be added up in order.
    """
    n_columns, n = block.shape
    # Added to values, or taken from them, these leave rows of one class that weigh something; others are infinite.
    away = np.empty((2, n))
    for i in range(n):
        away[0, i] = 0.0 if weights[i] > 0.0 and positive[i] <= 0.5 else np.inf
        away[1, i] = 0.0 if weights[i] > 0.0 and positive[i] > 0.5 else np.inf
    places = np.empty((7, LANES))
    for j in range(n_columns):
        places[0] = 0.0
        for start in range(0, n, LANES):
            m = min(LANES, n - start)
            x, w = block[j, start : start + m], weights[start : start + m]
            for i in range(m):
                places[0, i] += w[i] * x[i]
        mean = places[0].sum()
        places[1:3] = 0.0
        places[3:5] = np.inf
        places[5:7] = -np.inf
        for start in range(0, n, LANES):
            m = min(LANES, n - start)
            x, w, y = block[j, start : start + m], weights[start : start + m], positive[start : start + m]
            not0, not1 = away[0, start : start + m], away[1, start : start + m]
            for i in range(m):
                gap = x[i] - mean
                weighted = w[i] * gap
                places[1, i] += weighted * gap
                places[2, i] += weighted * y[i]
            for i in range(m):
                value0, value1 = x[i] + not0[i], x[i] + not1[i]
                places[3, i] = value0 if value0 < places[3, i] else places[3, i]
                places[4, i] = value1 if value1 < places[4, i] else places[4, i]
            for i in range(m):
                value0, value1 = x[i] - not0[i], x[i] - not1[i]
                places[5, i] = value0 if value0 > places[5, i] else places[5, i]
                places[6, i] = value1 if value1 > places[6, i] else places[6, i]
        low0, low1, high0, high1 = places[3].min(), places[4].min(), places[5].max(), places[6].max()
        out[j, 0], out[j, 1], out[j, 2] = mean, np.sqrt(places[1].sum()), places[2].sum()
        out[j, 3] = max(max(high0, high1), -min(low0, low1))
        out[j, 4] = 1.0 if high0 <= low1 or high1 <= low0 else 0.0


@kernel
def _logistic(linear, whole, out):  # type: ignore[no-untyped-def]
    """``1 / (1 + exp(-linear))`` within two units of the last place, in steps that a processor does eight at a time.

    ``exp(x) = 2**k exp(r)`` with k whole and |r| <= log(2) / 2, where a Taylor series of twelve terms is exact to
    rounding. Adding ``WHOLE`` to a number rounds it to a whole one and leaves that in its lowest bits.
    """
    bits = whole.view(np.int64)
    for i in range(len(linear)):
        x = min(max(-linear[i], -MOST_LOG_ODDS), MOST_LOG_ODDS)
        whole[i] = x * 1.4426950408889634 + WHOLE
    for i in range(len(linear)):
        x = min(max(-linear[i], -MOST_LOG_ODDS), MOST_LOG_ODDS)
        k = whole[i] - WHOLE
        r = (x - k * LOG_2[0]) - k * LOG_2[1]
        tail = 1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r / 479001600)))
        middle = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * tail)))
        out[i] = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * middle)))
    for i in range(len(linear)):
        bits[i] = (bits[i] + 1023) << 52  # the double 2**k
    for i in range(len(linear)):
        out[i] = 1.0 / (1.0 + out[i] * whole[i])


@kernel
def _total(x):  # type: ignore[no-untyped-def]
    """Sum of a power of two of numbers, by halves; ``x`` is overwritten."""
    size = len(x)
    while size > 1:
        size //= 2
        for i in range(size):
            x[i] += x[size + i]
    return x[0]


@kernel
def add_up(block, j, mean, scale, weights, target, a, b, room, out):  # type: ignore[no-untyped-def]
    """Gradient and second derivatives of the mean log-loss of one standardised column at intercept a and slope b.

    Rows are taken ``len(room[0])`` at a time, and each place in ``room`` keeps sums of its own, since one running sum
    would have to be added up in order.
    """
    column, width = block[j], room.shape[1]
    room[:5] = 0.0
    for start in range(0, len(column), width):
        m = min(width, len(column) - start)
        x, w, y = column[start : start + m], weights[start : start + m], target[start : start + m]
        t, p, linear = room[5, :m], room[6, :m], room[7, :m]
        for i in range(m):
            t[i] = (x[i] - mean) * scale
            linear[i] = a + b * t[i]
        _logistic(linear, room[8, :m], p)
        for i in range(m):
            linear[i] = w[i] * (p[i] - y[i])
        for i in range(m):
            p[i] = w[i] * (p[i] * (1.0 - p[i]))
        for i in range(m):
            room[0, i] += linear[i]
            room[1, i] += linear[i] * t[i]
        for i in range(m):
            leaning = p[i] * t[i]
            room[2, i] += p[i]
            room[3, i] += leaning
            room[4, i] += leaning * t[i]
    for k in range(5):
        out[k] = _total(room[k])


@kernel
def _newton(block, weights, target, moments, ridge, start, found, status):  # type: ignore[no-untyped-def]
    """Slope and intercept of each row of ``block`` on its standardised scale, from ``start`` where that is finite."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * target[i]
    at, room = np.empty(5), np.empty((9, ROWS_AT_ONCE))
    for j in range(block.shape[0]):
        mean, std, first, most = moments[j, 0], moments[j, 1], moments[j, 2], moments[j, 3]
        found[j, 0], found[j, 1] = np.log(total / (1.0 - total)), 0.0
        if std <= FLAT * most or std == 0.0:
            status[j] = CONSTANT
            continue
        if moments[j, 4] > 0.5 and ridge == 0.0:
            status[j] = SEPARATED
            continue
        # Linear discriminant analysis: difference of class means over the variance within the classes.
        gap = first / std / (total * (1.0 - total))
        within = max(1.0 - total * (1.0 - total) * gap * gap, 0.05)
        b = min(max(gap / within, -5.0), 5.0)  # where the classes hardly overlap it would begin on flat ground
        a = found[j, 0]
        if np.isfinite(start[j, 1]):
            a, b = start[j, 0], start[j, 1]
        scale = 1.0 / std
        add_up(block, j, mean, scale, weights, target, a, b, room, at)
        status[j] = UNFINISHED
        for _step in range(MOST_STEPS):
            g0, g1, h00, h01, h11 = at[0], at[1] + ridge * b, at[2], at[3], at[4] + ridge
            determinant = h00 * h11 - h01 * h01
            if not determinant > 0.0:
                break
            da = -(h11 * g0 - h01 * g1) / determinant
            db = -(h00 * g1 - h01 * g0) / determinant
            if max(abs(da), abs(db)) <= CLOSE * (1.0 + abs(b)):
                a, b, status[j] = a + da, b + db, FITTED
                break
            before = g0 * da + g1 * db
            length = 1.0
            for _half in range(MOST_HALVES):
                add_up(block, j, mean, scale, weights, target, a + length * da, b + length * db, room, at)
                after = at[0] * da + (at[1] + ridge * (b + length * db)) * db
                if after <= -ENOUGH * before:
                    break
                length *= 0.5
            a, b = a + length * da, b + length * db
        found[j, 0], found[j, 1] = a, b


def column_blocks(z: Floats) -> list[tuple[int, int]]:
    """Ranges of columns that are worked on together."""
    width = max(1, BLOCK_CELLS // len(z))
    return [(start, min(start + width, z.shape[1])) for start in range(0, z.shape[1], width)]


def univariate_slopes(
    z: Floats,
    y: Floats,
    *,
    weights: Floats | None = None,
    link: Link = "logit",
    ridge: float = 0.0,
    names: list[str] | None = None,
    start: Slopes | None = None,
    threads: int = 1,
) -> Slopes:
    """Fit the target on each column by itself.

    Parameters
    ----------
    z : (N, U) float64, finite
    y : (N,) float64; 0 and 1, both present, for the logit link
    weights : (N,) float64 >= 0, of any sum; equal when left out
    link : ``logit`` (logistic regression) or ``identity`` (least squares)
    ridge : penalty ``ridge / 2 * slope**2`` on the slope of the standardised column, added to the summed log-loss
    names : what the columns are called in an error
    start : fits of the same columns to begin from
    threads : columns that are fitted side by side; no bit depends on it

    Returns
    -------
    Slopes

    Raises
    ------
    BadInput : a column separates the classes, so that its slope has no end; the line names it
    """
    shares = shares_of(weights, len(y))
    target = np.ascontiguousarray(y, dtype=np.float64)
    if link == "logit":
        both_classes(float(shares @ target))
    n_columns = z.shape[1]
    moments, found = np.empty((n_columns, 5)), np.empty((n_columns, 2))
    status = np.zeros(n_columns, dtype=np.int64)
    begin = np.full((n_columns, 2), np.nan)
    if start is not None:
        begin[:, 1] = start.slope * start.std
        begin[:, 0] = start.intercept + start.slope * start.mean
    penalty = ridge / (len(y) if weights is None else weights.sum())

    def fit(blocks: Any) -> None:
        for left, right in blocks:
            block = np.ascontiguousarray(z[:, left:right].T)
            part = moments[left:right]
            _moments(block, shares, target, part)
            if link == "logit":
                _newton(block, shares, target, part, penalty, begin[left:right], found[left:right], status[left:right])
            else:
                _least_squares(block, shares, target, part, penalty, found[left:right], status[left:right])

    in_threads(fit, column_blocks(z), threads)
    refuse_unfitted(status, names)
    mean, std = moments[:, 0], np.where(status == CONSTANT, 0.0, moments[:, 1])
    slope = np.divide(found[:, 1], std, out=np.zeros(n_columns), where=std > 0)
    return Slopes(slope, found[:, 0] - slope * mean, mean, std)


def refuse_unfitted(status: Any, names: list[str] | None) -> None:
    """Name the first column that separates the classes, or that no fit was found of; ``status`` is one code each."""
    for code, what in (
        (SEPARATED, "separates the classes, so its slope has no end"),
        (UNFINISHED, "has no stable fit"),
    ):
        bad = np.flatnonzero(status == code)
        if len(bad):
            name = names[bad[0]] if names else f"column {bad[0] + 1}"
            raise BadInput(f"it {what}", where=f"term {name}", mend="set a ridge, for example 1, or leave the term out")


def _least_squares(
    block: Floats, shares: Floats, target: Floats, moments: Floats, penalty: float, found: Floats, status: Any
) -> None:
    constant = moments[:, 1] <= FLAT * moments[:, 3]
    mean, std = moments[:, 0], np.where(constant, 1.0, moments[:, 1])
    centred = (block - mean[:, None]) / std[:, None]
    found[:, 0] = shares @ target
    found[:, 1] = np.where(constant, 0.0, centred @ (shares * (target - shares @ target)) / (1.0 + penalty))
    status[:] = np.where(constant, CONSTANT, FITTED)


def both_classes(share: float) -> None:
    """Refuse labels of one class."""
    if not 0 < share < 1:
        raise BadInput("every row that counts has the same class", where="target", mend="both classes are needed")


def shares_of(weights: Floats | None, n: int) -> Floats:
    """Weights of rows that sum to 1."""
    if weights is None:
        return np.full(n, 1.0 / n)
    return np.ascontiguousarray(weights / weights.sum(), dtype=np.float64)
