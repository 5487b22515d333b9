"""Effects along paths, by one doubly robust score for every nested counterfactual.

Zhang, Jung, Mahajan, Shanmugam and Joshi, *Path-specific effects for pulse-oximetry guided decisions in critical care*
(NeurIPS 2025), for any number of ordered mediator blocks M1, ..., MK. With a level for each block and one for the
outcome, a = (a1, ..., aK, aY),

    theta(a) = E[Y(aY, M1(a1), M2(a2, M1), ...)]

is identified where no two of M1, ..., MK, Y share a hidden cause, and is the mean of the score

    phi = w_K+1 (Y - m_K+1) + sum over k = K..1 of w_k (m_k+1 - m_k) + m_1,

with weights w_k = 1[X = a_k] / P(a_k | Z) times the density ratios P(Mj | a_j, .) / P(Mj | a_k, .) of all j < k,
written by Bayes' rule in the propensities e_j = P(X = 1 | M1..Mj, Z), and nested regressions
m_k = E[m_k+1 | X = a_k, M<k, Z].
Where neighbouring levels are equal so are their weights, and the terms in between cancel; what is left has one term for
each *run* of equal levels, which is the paper's score for each of its queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Floats, Ints

Levels = tuple[int, ...]


class Stretch(NamedTuple):
    """A run of neighbouring blocks (the outcome counts as the last) with one level.

    Attributes
    ----------
    level : the treatment's level in all of them, 0 or 1
    known : number of mediator blocks that come before it, 0 to K
    """

    level: int
    known: int


class Scores(NamedTuple):
    """One nested counterfactual mean, row by row.

    Attributes
    ----------
    psi : (n,) float64 influence scores, whose mean is the estimate
    weights : (stretches, n) float64, the weights w before any normalisation, the outcome's last
    plug_in : mean of the innermost regression alone (nested regression)
    weighted : mean outcome under the outermost weights alone (weighting)
    """

    psi: Floats
    weights: Floats
    plug_in: float
    weighted: float

    @property
    def value(self) -> float:
        """The estimate."""
        return float(self.psi.mean())


def stretches(levels: Levels) -> list[Stretch]:
    """The runs of equal levels, from the first block to the outcome.

    Parameters
    ----------
    levels : a level, 0 or 1, for each mediator block in causal order and, last, for the outcome
    """
    if len(levels) < 2 or any(level not in (0, 1) for level in levels):
        raise BadInput(f"levels are {levels}", where="levels", mend="give 0 or 1 for each mediator and the outcome")
    return [
        Stretch(int(level), place) for place, level in enumerate(levels) if place == 0 or level != levels[place - 1]
    ]


def telescope(n_blocks: int) -> list[Levels]:
    """The levels from nobody exposed to everybody exposed, whose differences are the effects along the paths.

    First the outcome's own level is switched (the direct effect), then block after block in causal order: the step of
    block k is the effect of all paths that leave the treatment into block k.

    Parameters
    ----------
    n_blocks : K, number of ordered mediator blocks, at least 1

    Returns
    -------
    list of K + 2 tuples of K + 1 levels
    """
    none = (0,) * (n_blocks + 1)
    return [none, *((1,) * k + (0,) * (n_blocks - k) + (1,) for k in range(n_blocks + 1))]


def stretch_weights(levels: Levels, treated: Ints, propensities: Sequence[Floats | None]) -> Floats:
    """The weights w of every stretch: who stands for whom, and how often.

    Parameters
    ----------
    levels : as in `stretches`
    treated : (n,) 0 or 1
    propensities : K + 1 arrays (n,) float64 in (0, 1), P(X = 1 | M1..Mk, Z) for k = 0..K; those at which no run of
        levels ends may be None

    Returns
    -------
    (stretches, n) float64, each of mean 1 under the true propensities
    """
    runs = stretches(levels)
    ends = [run.known for run in runs[1:]]
    weights = np.empty((len(runs), len(treated)))
    for place, run in enumerate(runs):
        weight = (treated == run.level) / _chance(propensities[0], run.level)
        for earlier, end in zip(runs[:place], ends, strict=False):
            if earlier.level != run.level:
                # Blocks from one run's start to its end: the ratios in between cancel.
                weight *= _odds(propensities[end], earlier.level) / _odds(propensities[earlier.known], earlier.level)
        weights[place] = weight
    return weights


def influence_scores(
    levels: Levels,
    treated: Ints,
    outcome: Floats,
    propensities: Sequence[Floats | None],
    regressions: Sequence[Floats],
    *,
    normalise: bool | Ints = True,
    rows: Floats | None = None,
) -> Scores:
    """Influence scores of theta(a) from its propensities and nested regressions.

    Parameters
    ----------
    levels, treated, propensities : as in `stretch_weights`
    outcome : (n,) float64, any one unit
    regressions : for each stretch (n,) float64, E[next regression | X = its level, blocks known to it, Z]; the one of
        the outcome comes last
    normalise : divide weights by their mean over all rows, or over each fold where fold numbers (n,) are given; False
        leaves them (the paper's canonical estimator)
    rows : (n,) float64 share of each row, summing to n; all alike by default

    Returns
    -------
    Scores : with normalised weights the scores are the ratio's (delta method): a residual counts by its distance from
        the weighted mean residual
    """
    weights = stretch_weights(levels, treated, propensities)
    shares = np.ones(len(outcome)) if rows is None else rows
    groups = np.zeros(len(outcome), dtype=np.int64) if normalise is True or normalise is False else normalise
    following = [*regressions[1:], outcome]
    psi = regressions[0].astype(np.float64, copy=True)
    for weight, after, before in zip(weights, following, regressions, strict=True):
        residual = after - before
        psi += weight * residual if normalise is False else _normalised_term(weight, residual, shares, groups)
    outer = weights[-1] * shares
    return Scores(psi, weights, float((regressions[0] * shares).mean()), float((outer * outcome).sum() / outer.sum()))


def _normalised_term(weight: Floats, residual: Floats, shares: Floats, groups: Ints) -> Floats:
    """Weighted residuals w r / mean(w), as scores around their mean in each group of rows."""
    sizes = np.bincount(groups, weights=shares)
    total = np.bincount(groups, weights=weight * shares)
    if (total <= 0).any():
        raise BadInput("no row of an arm has any weight", where="weights", mend="take fewer folds, or more rows")
    scaled = weight * (sizes / total)[groups]
    middle = (np.bincount(groups, weights=scaled * residual * shares) / sizes)[groups]
    return scaled * (residual - middle) + middle


def _chance(propensity: Floats | None, level: int) -> Floats:
    """Probability of a level."""
    if propensity is None:
        raise BadInput("a propensity that the levels need is missing", where="propensities")
    return propensity if level else 1 - propensity


def _odds(propensity: Floats | None, level: int) -> Floats:
    """Odds of a level against the other."""
    return _chance(propensity, level) / _chance(propensity, 1 - level)
