"""Other ways to the same numbers: scikit-learn one column at a time, covariance matrices, a linear program."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score


def slopes_by_sklearn(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Slope of an unpenalised logistic regression on each column by itself."""
    fits = (
        LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky", max_iter=200).fit(c[:, None], y) for c in z.T
    )
    return np.array([fit.coef_[0, 0] for fit in fits])


def discriminability_by_sklearn(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([2 * (roc_auc_score(y, column) - 0.5) for column in z.T])


def pattern_by_covariance(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Sigma w / (w' Sigma w) of standardised columns, from the whole covariance matrix (Haufe et al. 2014)."""
    std = z.std(axis=0)
    sigma = np.cov(((z - z.mean(axis=0)) / std).T, bias=True)
    return sigma @ (w * std) / ((w * std) @ sigma @ (w * std))


def transport_by_linear_program(mass: np.ndarray, cost: np.ndarray, room: np.ndarray) -> float:
    """Least cost of bringing all mass to places of limited room."""
    n, k = cost.shape
    leaving = np.kron(np.eye(n), np.ones((1, k)))
    arriving = np.kron(np.ones((1, n)), np.eye(k))
    found = linprog(cost.ravel(), A_eq=leaving, b_eq=mass, A_ub=arriving, b_ub=room, method="highs")
    assert found.status == 0, found.message
    return float(found.fun)


def two_gaussians(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x = (2y - 1)(1, 0) + noise, variances 1, correlation 0.8: log-odds slopes 50/9 and -40/9, alone 2 and 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n)
    return noise + np.outer(2 * y - 1, [1, 0]), y
