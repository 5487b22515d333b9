"""How sure the numbers of each term are: errors from influence functions, and tests robust to a wrong model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import expit

from answerable.statistics import Floats, Ints

from .logistic import Link, Slopes
from .refit import Refit

ROWS_AT_ONCE = 2048


class Tests(NamedTuple):
    """How sure the numbers of each term are.

    Attributes
    ----------
    slope_error : (U,) standard error of the slope of the adjusted term, from influence functions of both fits
    p_informative : (U,) p-value of "the term's mean is the same in both classes", Welch (of "no correlation", robust,
        for the identity link)
    p_used : (U,) p-value of "the term's weight in the refit is 0", robust
    sd_model_error, sd_pattern_error, product_error : (U,) standard errors, components fixed
    """

    slope_error: Floats
    p_informative: Floats
    p_used: Floats
    sd_model_error: Floats
    sd_pattern_error: Floats
    product_error: Floats


def term_tests(
    z: Floats,
    y: Floats,
    refit: Refit,
    slopes: Slopes,
    *,
    weights: Floats | None = None,
    link: Link = "logit",
    ridge: float = 0.0,
) -> Tests:
    """Standard errors and p-values of each term, all robust to a wrong model; parameters as for :func:`term_scores`."""
    n, n_terms = z.shape
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    kept, std = refit.kept, slopes.std[refit.kept]
    slope, w = slopes.slope[kept] * std, refit.weights[kept] * std  # of standardised columns
    start = slopes.intercept[kept] + slopes.slope[kept] * slopes.mean[kept]
    blocks = [slice(begin, begin + ROWS_AT_ONCE) for begin in range(0, n, ROWS_AT_ONCE)]

    def standard(rows: slice) -> Floats:
        return (z[rows][:, kept] - slopes.mean[kept]) / std

    penalty = ridge / (n if weights is None else weights.sum())
    inverse = _small_inverses(standard, blocks, shares, start, slope, link, penalty)
    squares = np.zeros((3, len(kept)))
    fitted = expit(refit.linear) if link == "logit" else refit.linear
    for rows in blocks:
        t = standard(rows)
        alone = start + slope * t
        residual = y[rows, None] - (expit(alone) if link == "logit" else alone)
        squares += influences(
            t, shares[rows, None] * residual, shares[rows] * (y[rows] - fitted[rows]), inverse, refit.information
        )
    p_informative = _welch(z[:, kept], y, shares) if link == "logit" else _two_sided(slope, np.sqrt(squares[0]))
    return tests_of(squares, slope, w, p_informative, n_terms, kept, given=not refit.information.any())


def influences(
    t: Floats, alone: Floats, together: Floats, inverse: tuple[Floats, Floats], information: Floats
) -> Floats:
    """What some rows add to the squares of the influences on slopes and on weights, and to the products of the two.

    Parameters
    ----------
    t : (n, U') standardised terms
    alone : (n, U') weighted residuals of each term's own fit
    together : (n,) those of the refit
    inverse : (U',) each, the row of every own fit's inverse second derivatives that belongs to the slope
    information : (U' + 1, U' + 1) inverse second derivatives of the refit

    Returns
    -------
    (3, U') sums
    """
    of_slope = alone * (inverse[0] + inverse[1] * t)
    of_weight = together[:, None] * (t @ information[1:, 1:] + information[0, 1:])
    return np.stack([(of_slope**2).sum(axis=0), (of_weight**2).sum(axis=0), (of_slope * of_weight).sum(axis=0)])


def tests_of(
    squares: Floats, slope: Floats, w: Floats, p_informative: Floats, n_terms: int, kept: Ints, *, given: bool
) -> Tests:
    """Errors and p-values from the sums of :func:`influences`.

    Parameters
    ----------
    squares : (3, U') those sums over all rows
    slope, w : (U',) slope and weight of each standardised term that is not constant
    p_informative : (U',) p-values of "the term is not informative"
    n_terms : U
    kept : (U',) numbers of the terms that are not constant
    given : whether the weights were given, not fitted; they are known then and have no error
    """
    of_slope, of_weight, of_both = squares
    ratio = np.divide(slope, w, out=np.zeros_like(w), where=w != 0)
    squared = np.maximum(of_slope - 2 * ratio * of_both + ratio**2 * of_weight, 0.0)
    error = np.full(n_terms, np.inf)
    error[kept] = np.divide(np.sqrt(squared), np.abs(w), out=np.full(len(w), np.inf), where=w != 0)
    p_used, informative = np.ones(n_terms), np.ones(n_terms)
    p_used[kept] = np.where(w != 0, 0.0, 1.0) if given else _two_sided(w, np.sqrt(of_weight))
    informative[kept] = p_informative
    spreads = np.zeros((3, n_terms))
    spreads[:, kept] = np.sqrt(
        [of_weight, of_slope, np.maximum(w**2 * of_slope + slope**2 * of_weight + 2 * w * slope * of_both, 0.0)]
    )
    return Tests(error, informative, p_used, *spreads)


def _small_inverses(
    standard: Any, blocks: list[slice], shares: Floats, start: Floats, slope: Floats, link: Link, penalty: float
) -> tuple[Floats, Floats]:
    """The row of each univariate fit's inverse second derivatives that belongs to the slope."""
    if link == "identity":
        return np.zeros_like(slope), np.full(len(slope), 1 / (1 + penalty))
    sums = np.zeros((3, len(slope)))
    for rows in blocks:
        t = standard(rows)
        p = expit(start + slope * t)
        s = shares[rows, None] * p * (1 - p)
        sums += [s.sum(axis=0), (s * t).sum(axis=0), (s * t * t).sum(axis=0)]
    sums[2] += penalty
    return slope_row(sums)


def slope_row(sums: Floats) -> tuple[Floats, Floats]:
    """The slope's row of the inverses of (3, U') second derivatives by intercept, by both, and by slope."""
    determinant = sums[0] * sums[2] - sums[1] ** 2
    return -sums[1] / determinant, sums[0] / determinant


def _welch(z: Floats, y: Floats, shares: Floats) -> Floats:
    """Welch's test of equal class means, with weights of rows."""
    means, errors, sizes = [], [], []
    for label in (True, False):
        rows = (y > 0.5) == label
        part = shares[rows] / shares[rows].sum()
        mean = part @ z[rows]
        size = 1 / (part @ part)  # rows of equal weight that would say as much
        means.append(mean)
        errors.append(part**2 @ (z[rows] - mean) ** 2 * size / max(size - 1, 1e-9))
        sizes.append(size)
    return welch(means, errors, sizes)


def welch(means: ArrayLike, errors: ArrayLike, sizes: ArrayLike) -> Floats:
    """p-values of Welch's test from the means of both classes, the squared errors of these, and the classes' sizes."""
    means, errors, sizes = (np.asarray(part, dtype=np.float64) for part in (means, errors, sizes))
    squared = errors[0] + errors[1]
    # Each class's share of the squared error: squares of the errors themselves would leave the range of doubles.
    ways = (np.divide(error, squared, out=np.ones_like(squared), where=squared > 0) for error in errors)
    freedom = 1 / sum(way**2 / max(size - 1, 1e-9) for way, size in zip(ways, sizes, strict=True))
    statistic = np.divide(means[0] - means[1], np.sqrt(squared), out=np.zeros_like(squared), where=squared > 0)
    return np.where(squared > 0, 2 * stats.t.sf(np.abs(statistic), np.maximum(freedom, 1.0)), 1.0)


def _two_sided(value: Floats, error: Floats) -> Floats:
    statistic = np.divide(np.abs(value), error, out=np.zeros_like(value), where=error > 0)
    return np.where(error > 0, 2 * stats.norm.sf(statistic), 1.0)
