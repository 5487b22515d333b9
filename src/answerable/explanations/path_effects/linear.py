"""Linear and logistic regression by normal equations on columns that were scaled once."""

from __future__ import annotations

import numpy as np

from answerable.statistics import Floats, Ints

MOST_STEPS = 60
STEEPEST = 30.0  # log-odds beyond which a probability is 0 or 1 for every purpose here


def scaled(X: Floats) -> Floats:
    """A column of ones, then every column centred and of unit spread (constant ones become 0).

    Parameters
    ----------
    X : (n, p) float64

    Returns
    -------
    (n, p + 1) float64
    """
    spread = X.std(axis=0)
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)])


def regressed(
    design: Floats, columns: int, train: Ints, target: Floats, wanted: Ints, *, l2: float, logistic: bool
) -> Floats:
    """Fit on some rows and the first columns, predict others.

    Columns that others determine share their coefficient (the solution of least norm), so that predictions do not
    depend on them.

    Parameters
    ----------
    design : (n, p + 1) float64 from `scaled`
    columns : how many of the first p columns are used
    train : (m,) int64 rows to fit on
    target : (m,) float64, 0 or 1 for ``logistic``
    wanted : (k,) int64 rows to predict
    l2 : ridge penalty on standardised coefficients, per row; the intercept is free

    Returns
    -------
    (k,) float64 : the mean, or for ``logistic`` the probability of 1
    """
    rows = design[train, : columns + 1]
    penalty = np.full(columns + 1, l2 * len(train))
    penalty[0] = 0.0
    asked = design[wanted, : columns + 1]
    if not logistic:
        return asked @ _solved(rows.T @ rows, rows.T @ target, penalty)
    return 1 / (1 + np.exp(-np.clip(asked @ _newton(rows, target, penalty), -STEEPEST, STEEPEST)))


def _newton(rows: Floats, target: Floats, penalty: Floats) -> Floats:
    """Coefficients of the logistic fit; where the arms are separated, those of the last step within reach."""
    coefficients = np.zeros(rows.shape[1])
    share = target.mean()
    coefficients[0] = np.log(share / (1 - share))
    loss = np.inf
    for _ in range(MOST_STEPS):
        linear = rows @ coefficients
        probability = 1 / (1 + np.exp(-np.clip(linear, -STEEPEST, STEEPEST)))
        gradient = rows.T @ (probability - target) + penalty * coefficients
        curvature = np.maximum(probability * (1 - probability), 1e-10)
        step = _solved(rows.T @ (rows * curvature[:, None]), gradient, penalty)
        scale, before = 1.0, loss
        while True:
            trial = coefficients - scale * step
            linear = rows @ trial
            loss = float(np.logaddexp(0, linear).sum() - target @ linear + 0.5 * penalty @ trial**2)
            if loss <= before + 1e-12 * abs(before) or scale < 1e-6 or not np.isfinite(before):
                break
            scale /= 2
        coefficients = trial
        if np.abs(scale * step).max() < 1e-10 * (1 + np.abs(coefficients).max()) or np.abs(linear).min() > STEEPEST:
            break
    return coefficients


def _solved(gram: Floats, moment: Floats, penalty: Floats) -> Floats:
    """The solution of least norm of (gram + penalty) x = moment."""
    values, vectors = np.linalg.eigh(gram + np.diag(penalty))
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] @ ((vectors[:, kept].T @ moment) / values[kept])
