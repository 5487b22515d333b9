"""PatternGAM and PatternQLR: what each term of an additive model carries of the target, and what it is used for.

Clark, Wilming, Schulz, Zhumagambetov, Panknin and Haufe, "Correcting misinterpretations of additive models",
NeurIPS 2025. With z_i the terms of the model (component values, or the monomials of a quadratic model):

1. Refit: logistic regression of the target on all z, weights w (section 3 of the paper). The adjusted terms are
   w_i z_i, their sum g is the model.
2. Surrogate: logistic regression of the target on each adjusted term alone, slope b_i. The pattern curve is
   ``b_i w_i z_i + d_i``: the model's own curve, scaled to its own link with the target. b_i = 0 exactly if the term's
   mean is the same in both classes.
3. Activation pattern: ``a_i = Cov(z_i, g) / Var(g)`` with z standardised (Haufe et al. 2014).
4. Numbers: PAT |a_i|; the model's deviation SD(w_i z_i); the pattern's, |b_i| SD(w_i z_i); DISCR 2 (AUROC - 1/2); PROD,
   the two deviations multiplied - informative *and* used.

Departures from the paper, each with a test:

- On the scale of log-odds a_i is not blind to suppressors in a logistic fit; on that of probabilities it is, since the
  score equations make ``Cov(z_i, p) = Cov(z_i, y)`` in the sample. ``scale="probability"`` gives that.
- b_i is shown for the adjusted term, where it is a plain ratio - height of the pattern curve over height of the model
  curve - so that "suppressor" can be *shown*, by an interval of b_i within a margin about 0, not concluded from a test
  that found nothing.
- Multiplying a component by any constant but 0 changes no number here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from answerable.compiled import kernel
from answerable.errors import BadInput
from answerable.statistics import Floats, aurocs, holm

from .checks import Scale, check_settings, checked_terms
from .logistic import Link, Slopes, univariate_slopes
from .refit import Refit, given_fit, multivariate_refit
from .significance import Tests, term_tests

Term = tuple[int, ...]

LANES = 128
ROWS_AT_ONCE = 12
VERDICTS = (
    "informative and used",
    "informative, unused",
    "suppressor",
    "negative suppressor",
    "unused",
    "undecided",
)


@dataclass(frozen=True)
class TermScores:
    """Every number of every term.

    Attributes
    ----------
    weight : (U,) w, coefficient of the component in the refit; it has the sign and unit of the component
    sd_model : (U,) deviation of w z, in log-odds (in units of the target, for the identity link)
    slope : (U,) b, slope of the target on w z alone: height of the pattern curve over height of the model's
    intercept : (U,) d, value of the pattern curve where the component is 0
    sd_pattern : (U,) deviation of the pattern curve, in log-odds
    pattern : (U,) a, activation pattern of the standardised component, with its sign
    discriminability : (U,) 2 (AUROC of w z - 1/2), between -1 and 1; NaN for the identity link
    product : (U,) sd_model times sd_pattern
    slope_low, slope_high : (U,) 95 % interval of b
    p_informative, p_used : (U,) p-values as they are
    p_informative_adjusted, p_used_adjusted : (U,) after Holm
    verdict : (U,) one of ``VERDICTS``
    constant : (U,) whether the component has one value only
    linear : (N,) fitted log-odds of the refit
    refit_intercept : float
    errors : standard errors from influence functions
    """

    weight: Floats
    sd_model: Floats
    slope: Floats
    intercept: Floats
    sd_pattern: Floats
    pattern: Floats
    discriminability: Floats
    product: Floats
    slope_low: Floats
    slope_high: Floats
    p_informative: Floats
    p_used: Floats
    p_informative_adjusted: Floats
    p_used_adjusted: Floats
    verdict: list[str]
    constant: Any
    linear: Floats
    refit_intercept: float
    errors: Tests | None = None


def quadratic_terms(n_features: int, *, squares: Sequence[bool] | None = None) -> list[Term]:
    """The terms of a quadratic model: x_0 .. x_{D-1}, then x_j x_k for j <= k, row by row.

    Parameters
    ----------
    n_features : D
    squares : whether each feature's square is a term; all by default. A feature of two values has none, since its
        square is a line in itself
    """
    pairs = [(j, k) for j in range(n_features) for k in range(j, n_features) if j != k or squares is None or squares[j]]
    return [*((j,) for j in range(n_features)), *pairs]


def quadratic_features(X: Floats, terms: Sequence[Term]) -> Floats:
    """Monomials of the columns of ``X``, one column for each term.

    Parameters
    ----------
    X : (N, D) float64
    terms : as :func:`quadratic_terms` gives them

    Returns
    -------
    (N, U) float64, each column together in memory
    """
    columns, out = np.ascontiguousarray(X.T), np.empty((len(terms), len(X)))
    for number, term in enumerate(terms):
        if len(term) == 1:
            out[number] = columns[term[0]]
        else:
            np.multiply(columns[term[0]], columns[term[1]], out=out[number])
    return out.T


@kernel
def _cross_moments(z, g, shares, out):  # type: ignore[no-untyped-def]
    """Mean and square of each column about its first row, and its product with g about 0, in one pass.

    ``ROWS_AT_ONCE`` rows at a time: the sums are then fetched and put back that much less often.
    """
    n, n_columns = z.shape
    whole, weighted = n - n % ROWS_AT_ONCE, shares * g
    for i in range(0, whole, ROWS_AT_ONCE):
        for j in range(n_columns):
            first, second, product = out[0, j], out[1, j], out[2, j]
            for r in range(ROWS_AT_ONCE):  # of known length, so it is written out and columns are taken side by side
                gap = z[i + r, j] - z[0, j]
                part = shares[i + r] * gap
                first += part
                second += part * gap
                product += weighted[i + r] * gap
            out[0, j], out[1, j], out[2, j] = first, second, product
    for i in range(whole, n):
        for j in range(n_columns):
            gap = z[i, j] - z[0, j]
            out[0, j] += shares[i] * gap
            out[1, j] += shares[i] * gap * gap
            out[2, j] += weighted[i] * gap


@kernel
def _cross_moments_of_columns(columns, g, shares, out):  # type: ignore[no-untyped-def]
    """The same where each column lies together in memory, (columns, rows).

    Each of ``LANES`` places keeps sums of its own, since one running sum would have to be added up in order.
    """
    n, places = columns.shape[1], np.empty((3, LANES))
    for j in range(len(columns)):
        origin = columns[j, 0]
        places[:] = 0.0
        for start in range(0, n, LANES):
            m = min(LANES, n - start)
            x, s, h = columns[j, start : start + m], shares[start : start + m], g[start : start + m]
            for i in range(m):
                gap = x[i] - origin
                part = s[i] * gap
                places[0, i] += part
                places[1, i] += part * gap
                places[2, i] += part * h[i]
        for k in range(3):
            out[k, j] = places[k].sum()


def activation_pattern(z: Floats, g: Floats, *, weights: Floats | None = None) -> Floats:
    """``Cov(z_i, g) / Var(g)`` with each z_i standardised: one pass over z, no covariance matrix.

    Parameters
    ----------
    z : (N, U) float64
    g : (N,) float64, what the model gives (log-odds, or probabilities)
    weights : (N,) float64 >= 0; equal when left out

    Returns
    -------
    (U,) float64, 0 for a constant column

    Raises
    ------
    BadInput : g is constant
    """
    if len(g) != len(z):
        raise BadInput(f"{len(g)} outputs for {len(z)} rows", where="activation pattern", mend="give one for each row")
    shares = np.full(len(g), 1 / len(g)) if weights is None else weights / weights.sum()
    centred = g - shares @ g
    variance = shares @ centred**2
    if not variance > 0:
        raise BadInput("the model gives every row the same value", where="activation pattern", mend="use another model")
    sums = np.zeros((3, z.shape[1]))
    if z.T.flags.c_contiguous:
        _cross_moments_of_columns(z.T, centred, shares, sums)
    else:
        _cross_moments(np.ascontiguousarray(z), centred, shares, sums)
    # Subtracting the first row first keeps the digits of a column that lies far from 0.
    std = np.sqrt(np.maximum(sums[1] - sums[0] ** 2, 0.0))
    flat = std <= 1e-10 * np.maximum(np.abs(z[0]), np.abs(z[0] + sums[0]))
    return np.divide(sums[2], std * variance, out=np.zeros(z.shape[1]), where=~flat & (std > 0))


def term_scores(
    z: Floats,
    y: Floats,
    *,
    names: Sequence[str] | None = None,
    weights: Floats | None = None,
    link: Link = "logit",
    scale: Scale = "logit",
    ridge: float = 0.0,
    level: float = 0.95,
    margin: float = 0.1,
    least_share: float = 0.05,
    coefficients: Floats | None = None,
    threads: int = 1,
) -> TermScores:
    """Every number and the verdict of every term; see the head of this module.

    Parameters
    ----------
    z : (N, U) float64, finite, component values
    y : (N,) float64; 0 and 1 for the logit link
    names : of the terms, for errors
    weights : (N,) float64 >= 0, weights of the rows
    link : ``logit`` or ``identity`` (regression)
    scale : of g in the activation pattern
    ridge : on the standardised terms of both fits; then ``Cov(z, p) = Cov(z, y)`` no longer holds
    level : of intervals; 1 - level is the level of the tests after Holm
    margin : a used term whose slope lies within +- margin is a suppressor: at most this share of its curve is its own
        link with the target
    least_share : of the largest deviation of a model curve, below which a term counts as unused
    coefficients : (U,) weights of the terms that are judged as they are, instead of refitted ones; a term is then used
        if its weight is not 0
    threads : columns worked on side by side

    Returns
    -------
    TermScores

    Raises
    ------
    BadInput : as :func:`checked_terms`, :func:`univariate_slopes` and :func:`multivariate_refit`
    """
    check_settings(scale=scale, ridge=ridge, level=level, margin=margin, least_share=least_share)
    z, y, called = checked_terms(z, y, weights, link, names)
    refit = (
        multivariate_refit(z, y, weights=weights, link=link, ridge=ridge, names=called)
        if coefficients is None
        else given_fit(z, coefficients)
    )
    slopes = univariate_slopes(z, y, weights=weights, link=link, ridge=ridge, names=called, threads=threads)
    found = _scores(z, y, refit, slopes, weights, link, scale, threads)
    tests = term_tests(z, y, refit, slopes, weights=weights, link=link, ridge=ridge)
    return judged(found, tests, level=level, margin=margin, least_share=least_share)


def judged(found: TermScores, tests: Tests, *, level: float, margin: float, least_share: float) -> TermScores:
    """The same with intervals, p-values and verdicts; parameters as for :func:`term_scores`."""
    half = -ndtri((1 - level) / 2) * tests.slope_error
    return with_verdicts(
        replace(
            found,
            slope_low=found.slope - half,
            slope_high=found.slope + half,
            p_informative=tests.p_informative,
            p_used=tests.p_used,
            p_informative_adjusted=_adjusted(tests.p_informative),
            p_used_adjusted=_adjusted(tests.p_used),
            errors=tests,
        ),
        level=level,
        margin=margin,
        least_share=least_share,
    )


def _scores(
    z: Floats,
    y: Floats,
    refit: Refit,
    slopes: Slopes,
    weights: Floats | None,
    link: Link,
    scale: Scale,
    threads: int,
) -> TermScores:
    w = refit.weights
    g = expit(refit.linear) if scale == "probability" and link == "logit" else refit.linear
    pattern = np.where(slopes.std > 0, activation_pattern(z, g, weights=weights), 0.0) if w.any() else np.zeros_like(w)
    areas = discriminability(z, y, weights=weights, threads=threads) if link == "logit" else np.full(len(w), np.nan)
    return scores_of(refit, slopes, pattern, areas)


def scores_of(refit: Refit, slopes: Slopes, pattern: Floats, areas: Floats) -> TermScores:
    """The numbers of each term, not judged yet.

    Parameters
    ----------
    refit, slopes : the fits
    pattern : (U,) activation pattern
    areas : (U,) 2 (AUROC - 1/2) of the terms as they stand, NaN where it is not known
    """
    w = refit.weights
    sd_model = np.abs(w) * slopes.std
    sd_pattern = np.abs(slopes.slope) * slopes.std
    slope = np.divide(slopes.slope, w, out=np.zeros_like(w), where=w != 0)
    nothing = np.full(len(w), np.nan)
    return TermScores(
        weight=w,
        sd_model=sd_model,
        slope=slope,
        intercept=slopes.intercept,
        sd_pattern=sd_pattern,
        pattern=pattern,
        discriminability=np.sign(w) * areas,
        product=sd_model * sd_pattern,
        slope_low=nothing,
        slope_high=nothing,
        p_informative=nothing,
        p_used=nothing,
        p_informative_adjusted=nothing,
        p_used_adjusted=nothing,
        verdict=[],
        constant=slopes.std == 0,
        linear=refit.linear,
        refit_intercept=refit.intercept,
    )


@kernel
def _weighted_aurocs(order, z, shares, target, out):  # type: ignore[no-untyped-def]
    """AUROC of each column with row weights, ties counted half; ``order`` sorts each column, (U, N)."""
    total = 0.0
    for i in range(len(shares)):
        total += shares[i] * target[i]
    n_columns, n = order.shape
    for j in range(n_columns):
        below, area, i = 0.0, 0.0, 0
        while i < n:
            value, positive, negative = z[order[j, i], j], 0.0, 0.0
            while i < n and z[order[j, i], j] == value:
                row = order[j, i]
                positive += shares[row] * target[row]
                negative += shares[row] * (1.0 - target[row])
                i += 1
            area += positive * (below + 0.5 * negative)
            below += negative
        out[j] = area / (total * (1.0 - total))


def discriminability(z: Floats, y: Floats, *, weights: Floats | None = None, threads: int = 1) -> Floats:
    """``2 (AUROC - 1/2)`` of each column, ties counted half.

    Parameters
    ----------
    z : (N, U) float64
    y : (N,) 0 and 1, both present
    weights : (N,) float64 >= 0
    threads : columns sorted side by side

    Returns
    -------
    (U,) float64 between -1 and 1
    """
    if weights is None:
        return 2 * aurocs(y > 0.5, z, threads=threads).values - 1
    out = np.empty(z.shape[1])
    order = np.argsort(z, axis=0, kind="stable").T
    _weighted_aurocs(np.ascontiguousarray(order), z, weights / weights.sum(), np.asarray(y, float), out)
    return 2 * out - 1


def _adjusted(p_values: Floats) -> Floats:
    return holm(np.clip(p_values, 0.0, 1.0))


def with_verdicts(scores: TermScores, *, level: float, margin: float, least_share: float) -> TermScores:
    """The same with a verdict for each term, from its interval and tests.

    A term is *used* if its weight is clear of zero and its curve spreads at least ``least_share`` as far as
    the widest.

    - used, slope's interval within +- margin: ``suppressor``
    - used, informative, slope's interval above 0: ``informative and used``; below 0: ``negative suppressor``
    - curve narrower: ``informative, unused`` if informative, else ``unused``
    - anything else: ``undecided``
    """
    largest = scores.sd_model.max(initial=0.0)
    share = scores.sd_model / largest if largest > 0 else np.zeros_like(scores.sd_model)
    informative = scores.p_informative_adjusted < 1 - level
    clear = scores.p_used_adjusted < 1 - level
    verdicts = []
    for i in range(len(share)):
        if scores.constant[i]:
            verdicts.append("unused")
        elif share[i] < least_share:
            verdicts.append("informative, unused" if informative[i] else "unused")
        elif clear[i] and -margin < scores.slope_low[i] and scores.slope_high[i] < margin:
            verdicts.append("suppressor")
        elif clear[i] and informative[i] and scores.slope_low[i] > 0:
            verdicts.append("informative and used")
        elif clear[i] and informative[i] and scores.slope_high[i] < 0:
            verdicts.append("negative suppressor")
        else:
            verdicts.append("undecided")
    return replace(scores, verdict=verdicts)
