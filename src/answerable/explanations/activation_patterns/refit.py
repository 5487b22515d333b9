"""One fit of the target on all terms together: Newton's method on columns of mean 0 and variance 1.

Nothing is penalised unless it is asked for: data that the fit separates, and columns that determine each other, are
refused with the name of a column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit

from answerable.errors import BadInput
from answerable.statistics import Floats

from .logistic import ENOUGH, FLAT, MOST_HALVES, MOST_STEPS, Link, both_classes, shares_of

CONVERGED = 1e-10  # relative step; Newton's next one would be its square
MOST_TERMS = 6000  # fitted together: a factor of 0.3 GB, some 10 s a step on two cores
DEPENDENT = 1e-11  # share of a column's variance that the columns before it leave unexplained


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
    shares = shares_of(weights, len(y))
    if link == "logit":
        both_classes(float(shares @ y))
    mean = shares @ z
    std = np.sqrt(np.maximum(shares @ (z - mean) ** 2, 0.0))
    kept = np.flatnonzero(std > FLAT * np.max(np.abs(z), axis=0, initial=0.0))
    called = names or [f"column {j + 1}" for j in range(z.shape[1])]
    refuse_many_terms(len(kept), f"{z.shape[1]:,} columns")
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


def refuse_many_terms(n_terms: int, what: str) -> None:
    """Refuse a fit that would take all memory before it says anything.

    Parameters
    ----------
    n_terms : terms to be fitted together
    what : they come from
    """
    if n_terms > MOST_TERMS:
        raise BadInput(
            f"{what} make {n_terms:,} terms, and at most {MOST_TERMS:,} are fitted together",
            where="refit",
            mend="give fewer features",
        )


def refuse_few_rows(n_terms: int, n_rows: int, ridge: float) -> None:
    """Refuse to fit as many terms as there are rows without a ridge."""
    if ridge == 0 and n_terms + 1 >= n_rows:
        raise BadInput(
            f"{n_terms} term{'s are' if n_terms > 1 else ' is'} fitted on {n_rows} rows",
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
        for _half in range(MOST_HALVES):
            ahead = expit(linear + length * along)
            after = float((shares * (ahead - y)) @ along + (penalty * (beta + length * step)) @ step)
            if after <= -ENOUGH * before:
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
