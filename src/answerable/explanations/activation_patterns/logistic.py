"""Logistic fits: one variable at a time for thousands of columns, and all columns together.

Both are Newton's method on columns of mean 0 and variance 1. The univariate fit starts from the slope of linear
discriminant analysis, which is nearly the answer, so that two to four passes over a column are enough. Nothing here
penalises unless it is asked to: data that a fit separates have no finite slope, and are told apart instead of being
given a very large one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit

from answerable.compiled import in_threads, kernel
from answerable.errors import BadInput
from answerable.statistics import Floats

Link = Literal["logit", "identity"]

MOST_STEPS = 60
CONVERGED = 1e-10  # relative step; Newton's next one would be its square
CLOSE = 1e-7  # the same for one column, whose step is cheap to bound: what is left after it is some 1e-13
FLAT = 1e-10  # a column whose standard deviation is this small beside its values is constant
DEPENDENT = 1e-11  # share of a column's variance that the columns before it leave unexplained
ROWS_AT_ONCE = 1024  # a power of two: what is worked out for so many rows stays in the fastest cache
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


class Refit(NamedTuple):
    """One fit of the target on all U columns.

    Attributes
    ----------
    weights : (U,) coefficient of each column in its own unit; 0 for a constant
    intercept : value of the fit where every column is 0
    linear : (N,) fitted log-odds (fitted target, for the identity link)
    information : (U', U') inverse of the second derivatives, for the constant and then the standardised columns
    kept : (U' - 1,) numbers of the columns that are not constant
    """

    weights: Floats
    intercept: float
    linear: Floats
    information: Floats
    kept: Any


@kernel
def _moments(block, weights, positive, out):  # type: ignore[no-untyped-def]
    """Mean, deviation, and per class mean and range of each row of ``block``; weights sum to 1."""
    n_columns, n = block.shape
    for j in range(n_columns):
        mean = 0.0
        for i in range(n):
            mean += weights[i] * block[j, i]
        square, first, low0, high0, low1, high1, most = 0.0, 0.0, np.inf, -np.inf, np.inf, -np.inf, 0.0
        for i in range(n):
            if weights[i] == 0:
                continue
            value = block[j, i]
            gap = value - mean
            square += weights[i] * gap * gap
            most = max(most, abs(value))
            if positive[i] > 0.5:
                first += weights[i] * gap
                low1, high1 = min(low1, value), max(high1, value)
            else:
                low0, high0 = min(low0, value), max(high0, value)
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = mean, np.sqrt(square), first, most
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
            for _half in range(40):
                add_up(block, j, mean, scale, weights, target, a + length * da, b + length * db, room, at)
                after = at[0] * da + (at[1] + ridge * (b + length * db)) * db
                if after <= -0.9 * before:  # the slope along the step has not turned up more than it went down
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
    shares = _shares(weights, len(y))
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


def multivariate_refit(
    z: Floats,
    y: Floats,
    *,
    weights: Floats | None = None,
    link: Link = "logit",
    ridge: float = 0.0,
    names: list[str] | None = None,
    start: Floats | None = None,
) -> Refit:
    """Fit the target on all columns together, with an intercept.

    Parameters
    ----------
    z, y, weights, link, names : as for :func:`univariate_slopes`
    ridge : penalty ``ridge / 2 * sum(coefficient**2)`` on the coefficients of the standardised columns
    start : (U + 1,) intercept and coefficients of an earlier fit of the same columns

    Returns
    -------
    Refit

    Raises
    ------
    BadInput : more columns than rows, a column that the others determine, or a fit that separates the classes, each
        without a ridge; the line names the column
    """
    shares = _shares(weights, len(y))
    if link == "logit":
        both_classes(float(shares @ y))
    mean = shares @ z
    std = np.sqrt(np.maximum(shares @ (z - mean) ** 2, 0.0))
    kept = np.flatnonzero(std > FLAT * np.max(np.abs(z), axis=0, initial=0.0))
    called = names or [f"column {j + 1}" for j in range(z.shape[1])]
    used_rows = int(np.count_nonzero(shares))
    refuse_few_rows(len(kept), used_rows, ridge)
    standard = np.empty((len(y), len(kept) + 1))
    standard[:, 0] = 1.0
    np.subtract(z[:, kept], mean[kept], out=standard[:, 1:])
    standard[:, 1:] /= std[kept]
    beta = np.zeros(len(kept) + 1)
    if start is not None:
        beta[1:] = start[1:][kept] * std[kept]
        beta[0] = start[0] + start[1:] @ mean
    elif link == "logit":
        share = shares @ y
        beta[0] = np.log(share / (1 - share))
    penalty = np.full(len(beta), ridge / (len(y) if weights is None else weights.sum()))
    penalty[0] = 0.0
    fit = _newton_together if link == "logit" else _solve_together
    beta, information = fit(standard, y, shares, penalty, beta, [called[j] for j in kept])
    coefficients = np.zeros(z.shape[1])
    coefficients[kept] = beta[1:] / std[kept]
    return Refit(coefficients, float(beta[0] - coefficients @ mean), standard @ beta, information, kept)


def refuse_few_rows(n_terms: int, n_rows: int, ridge: float) -> None:
    """Refuse to fit as many terms as there are rows without a ridge."""
    if ridge == 0 and n_terms + 1 >= n_rows:
        raise BadInput(
            f"{n_terms} terms are fitted on {n_rows} rows",
            where="refit",
            mend="set a ridge (the covariances of a term with prediction and label then differ) or give more rows",
        )


def given_fit(z: Floats, coefficients: Floats) -> Refit:
    """Coefficients that were given, in the place of a refit: taken as known, so that they have no errors.

    Parameters
    ----------
    z : (N, U) float64
    coefficients : (U,) float64, of the columns in their own units

    Raises
    ------
    BadInput : another number of coefficients, or one that is not finite
    """
    found = np.asarray(coefficients, dtype=np.float64)
    if found.shape != (z.shape[1],):
        raise BadInput(
            f"the shape is {found.shape}", where="coefficients", mend=f"give one for each of {z.shape[1]} terms"
        )
    if not np.isfinite(found).all():
        place = int(np.argmax(~np.isfinite(found)))
        raise BadInput("it is not finite", where=f"coefficients, term {place + 1}", mend="mend it")
    kept = np.flatnonzero(z.std(axis=0) > FLAT * np.max(np.abs(z), axis=0, initial=0.0))
    found = np.where(np.isin(np.arange(len(found)), kept), found, 0.0)
    return Refit(found, 0.0, z @ found, np.zeros((len(kept) + 1, len(kept) + 1)), kept)


def _newton_together(
    standard: Floats, y: Floats, shares: Floats, penalty: Floats, beta: Floats, names: list[str]
) -> tuple[Floats, Floats]:
    plain = not penalty.any()
    signs = np.where(y > 0.5, 1.0, -1.0)[shares > 0]
    linear = standard @ beta
    for _step in range(MOST_STEPS):
        p = expit(linear)
        gradient = standard.T @ (shares * (p - y)) + penalty * beta
        try:
            factor = _factor(standard, np.sqrt(shares * p * (1 - p)), penalty, names)
        except BadInput:
            # Columns that determine each other do so whatever the rows weigh; else the fit ran off to 0 and 1.
            _factor(standard, np.sqrt(shares), penalty, names)
            raise separated(names, beta) from None
        step = -linalg.cho_solve(factor, gradient, check_finite=False)
        along = standard @ step
        length, before = 1.0, float(gradient @ step)
        for _half in range(40):
            ahead = expit(linear + length * along)
            after = float((shares * (ahead - y)) @ along + (penalty * (beta + length * step)) @ step)
            if after <= -0.9 * before:
                break
            length /= 2
        beta, linear = beta + length * step, linear + length * along
        if plain and np.all(signs * linear[shares > 0] > 0):
            raise separated(names, beta)
        if np.max(np.abs(step)) <= CONVERGED * (1 + np.max(np.abs(beta))):
            return beta, linalg.cho_solve(factor, np.eye(len(beta)), check_finite=False)
    raise unsettled(names, beta)


def unsettled(names: list[str], beta: Floats) -> BadInput:
    """The line for a refit that did not end; ``beta`` is where it stood."""
    return BadInput(
        f"the fit has not settled after {MOST_STEPS} steps",
        where=f"refit, largest weight on term {names[int(np.argmax(np.abs(beta[1:])))]}",
        mend="set a ridge, for example 1, or leave that term out",
    )


def separated(names: list[str], beta: Floats) -> BadInput:
    """The line for a refit that runs off; ``beta`` is where it stood."""
    return BadInput(
        "together the terms separate the classes, so their weights have no end",
        where=f"refit, largest weight on term {names[int(np.argmax(np.abs(beta[1:])))]}",
        mend="set a ridge, for example 1, or give more rows",
    )


def _solve_together(
    standard: Floats, y: Floats, shares: Floats, penalty: Floats, beta: Floats, names: list[str]
) -> tuple[Floats, Floats]:
    factor = _factor(standard, np.sqrt(shares), penalty, names)
    beta = linalg.cho_solve(factor, standard.T @ (shares * y), check_finite=False)
    return beta, linalg.cho_solve(factor, np.eye(len(beta)), check_finite=False)


def _factor(standard: Floats, root: Floats, penalty: Floats, names: list[str]) -> tuple[Floats, bool]:
    """Cholesky factor of the second derivatives."""
    scaled = standard * root[:, None]
    return cholesky(scaled.T @ scaled, penalty, names)


def cholesky(matrix: Floats, penalty: Floats, names: list[str]) -> tuple[Floats, bool]:
    """Factor of ``matrix``, which is overwritten, and the penalties on its diagonal.

    Raises
    ------
    BadInput : a column that the ones before it determine, without a penalty; the line names it
    """
    matrix[np.diag_indices_from(matrix)] += penalty
    diagonal = matrix.diagonal().copy()
    try:
        factor, lower = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        left = factor.diagonal() ** 2 / diagonal
    except linalg.LinAlgError as failure:
        # LAPACK names the order of the first minor that is not positive.
        order = next((int(word) for word in str(failure).replace("-", " ").split() if word.isdigit()), 1)
        raise _determined(names, order - 1) from None
    if np.min(left) < DEPENDENT and not penalty.any():
        raise _determined(names, int(np.argmin(left)))
    return factor, lower


def _determined(names: list[str], position: int) -> BadInput:
    name = names[max(position - 1, 0)]
    return BadInput(
        "the other terms determine it, so the weights are not unique",
        where=f"refit, term {name}",
        mend="leave one of them out, or set a ridge",
    )


def both_classes(share: float) -> None:
    """Refuse labels of one class."""
    if not 0 < share < 1:
        raise BadInput("every row that counts has the same class", where="target", mend="both classes are needed")


def _shares(weights: Floats | None, n: int) -> Floats:
    if weights is None:
        return np.full(n, 1.0 / n)
    return np.ascontiguousarray(weights / weights.sum(), dtype=np.float64)
