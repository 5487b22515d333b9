"""Linear and logistic regression by normal equations on columns that were scaled once."""

from __future__ import annotations

import numpy as np

from answerable.compiled import kernel
from answerable.statistics import Floats, Ints

MOST_STEPS = 60
STEEPEST = 30.0  # log-odds beyond which a probability is 0 or 1 for every purpose here
LEAST_CURVATURE = 1e-10


def scaled(X: Floats) -> Floats:
    """A column of ones, then every column centred and of unit spread (constant ones become 0).

    Parameters
    ----------
    X : (n, p) float64

    Returns
    -------
    (p + 1, n) float64, a row a column: sums over rows of the table then run through memory
    """
    design = np.empty((X.shape[1] + 1, len(X)))
    design[0] = 1.0
    for place, column in enumerate(X.T, start=1):
        centred = column - column.mean()
        spread = np.sqrt(centred @ centred / len(centred))
        design[place] = centred / (spread if spread > 0 else 1.0)
    return design


def regressed(
    design: Floats, columns: int, train: Ints, target: Floats, wanted: Ints, *, l2: float, logistic: bool
) -> Floats:
    """Fit on some rows and the first columns, predict others.

    Columns that others determine share their coefficient (the solution of least norm), so that predictions do not
    depend on them.

    Parameters
    ----------
    design : (p + 1, n) float64 from `scaled`
    columns : how many of the first p columns are used
    train : (m,) int64 rows to fit on
    target : (m,) float64, 0 or 1 for ``logistic``
    wanted : (k,) int64 rows to predict
    l2 : ridge penalty on standardised coefficients, per row; the intercept is free

    Returns
    -------
    (k,) float64 : the mean, or for ``logistic`` the probability of 1
    """
    rows = design[: columns + 1].take(train, axis=1)
    penalty = np.full(columns + 1, l2 * len(train))
    penalty[0] = 0.0
    if logistic:
        log_odds = (_newton(rows, target, penalty) @ design[: columns + 1]).take(wanted)
        return 1 / (1 + np.exp(-np.clip(log_odds, -STEEPEST, STEEPEST)))
    return (_solved(rows @ rows.T, rows @ target, penalty) @ design[: columns + 1]).take(wanted)


def _newton(rows: Floats, target: Floats, penalty: Floats) -> Floats:
    """Coefficients of the logistic fit; where the arms are separated, those of the last step within reach."""
    coefficients = np.zeros(len(rows))
    share = target.mean()
    coefficients[0] = np.log(share / (1 - share))
    excess, curvature = np.empty(len(target)), np.empty(len(target))
    loss = _logistic_loss(coefficients @ rows, target, excess, curvature)
    for _ in range(MOST_STEPS):
        gradient = rows @ excess + penalty * coefficients
        step = _solved((rows * curvature) @ rows.T, gradient, penalty)
        scale, before = 1.0, loss
        while True:
            trial = coefficients - scale * step
            linear = trial @ rows
            loss = _logistic_loss(linear, target, excess, curvature) + 0.5 * float(penalty @ trial**2)
            if loss <= before + 1e-12 * abs(before) or scale < 1e-6:
                break
            scale /= 2
        coefficients = trial
        if np.abs(scale * step).max() < 1e-10 * (1 + np.abs(coefficients).max()) or np.abs(linear).min() > STEEPEST:
            break
    return coefficients


@kernel
def _logistic_loss(linear: Floats, target: Floats, excess: Floats, curvature: Floats) -> float:
    """The loss; what it falls by with the log-odds of each row, and how that changes, are written beside it."""
    loss, factors = 0.0, 1.0
    for i in range(len(linear)):
        small = np.exp(-abs(linear[i]))
        larger = 1 / (1 + small)
        loss += max(linear[i], 0.0) - target[i] * linear[i]
        # One logarithm for some hundreds of factors between 1 and 2, where one for each would take most of the time.
        factors *= 1 + small
        if factors > 1e300:
            loss += np.log(factors)
            factors = 1.0
        excess[i] = (larger if linear[i] >= 0 else small * larger) - target[i]
        curvature[i] = max(small * larger * larger, LEAST_CURVATURE)
    return loss + np.log(factors)


def _solved(gram: Floats, moment: Floats, penalty: Floats) -> Floats:
    """The solution of least norm of (gram + penalty) x = moment."""
    values, vectors = np.linalg.eigh(gram + np.diag(penalty))
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] @ ((vectors[:, kept].T @ moment) / values[kept])
