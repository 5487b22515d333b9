"""From reference models to the spaces of their families, to the scores of a suspect, to what chance would give.

Everything here is over arrays; ``estimator.py`` is the doorway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .rivals import Profiles
from .solver import (
    Growth,
    Space,
    Uniqueness,
    contraction_score,
    dataset_accuracies,
    error_space,
    error_uniqueness,
    gain_curve,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Each = Callable[[Callable[[int], Any], list[int]], list[Any]]

SCORES = ("error_trace", "likelihood", "cosine")


class Settings(NamedTuple):
    """How spaces are made and shrunk; as in ``ErrorTracer``."""

    n_points: int = 2000
    start: int = 1200
    end: int = 600
    min_weight: float = 0.05
    growth: Growth = "paper"


class Reference(NamedTuple):
    """Reference models, and what was made of them."""

    uniqueness: Uniqueness
    spaces: list[Space]
    profiles: Profiles
    datasets: Ints
    settings: Settings


class Validation(NamedTuple):
    """What models whose family is known get.

    scores : (3, M, F) float64, of each model left out of the references; NaN where its family had no other model
    without : (3, M) float64, lead of the best family where the model's whole family was left out; NaN with fewer
        than three families
    """

    scores: Floats
    without: Floats


def refer(
    errors: Floats,
    families: Ints,
    datasets: Ints,
    points: Floats | None,
    settings: Settings,
    accuracy: Floats | None = None,
) -> Reference:
    """The spaces of all families, and what the plain scores need.

    Parameters
    ----------
    errors : (M, N) float64, NaN where there is no answer
    families : (M,) int64, numbered from 0 without a gap
    datasets : (N,) int64
    points : (N, d) float64, or None for no graph
    accuracy : (M, K) float64, or None for that of ``errors``
    """
    uniqueness = error_uniqueness(errors, families, datasets, accuracy)
    spaces = [
        error_space(
            uniqueness,
            family,
            points,
            n_points=settings.n_points,
            min_weight=settings.min_weight,
            growth=settings.growth,
        )
        for family in range(int(families.max()) + 1)
    ]
    return Reference(uniqueness, spaces, Profiles(errors, families), datasets, settings)


def rates_of(errors: Floats, datasets: Ints) -> Floats:
    """Error rate of one model on each data set; over all it answered where it answered none of a data set: (K,)."""
    answered = ~np.isnan(errors)
    if not answered.any():
        return np.zeros(int(datasets.max()) + 1)
    rates = 1.0 - dataset_accuracies(errors[None], datasets)[0]
    return np.where(np.isnan(rates), errors[answered].mean(), rates)


def scores_of(reference: Reference, errors: Floats, rates: Floats | None = None) -> Floats:
    """A suspect's three scores for each family, in the order of ``SCORES``: (3, F) float64; NaN for a space without
    items it answered.
    """
    rates = rates_of(errors, reference.datasets) if rates is None else rates
    traced = [contraction_score(curve_of(reference, family, errors, rates)[1]) for family in families_of(reference)]
    profiles = reference.profiles
    return np.array([traced, profiles.log_likelihoods(errors), profiles.centred_cosines(errors)])


def curve_of(reference: Reference, family: int, errors: Floats, rates: Floats) -> tuple[Ints, Floats]:
    """Sizes and gains as one family's space shrinks."""
    settings = reference.settings
    return gain_curve(reference.spaces[family], errors, reference.datasets, rates, settings.start, settings.end)


def families_of(reference: Reference) -> range:
    """The families' numbers."""
    return range(len(reference.spaces))


def margins(scores: Floats) -> Floats:
    """Largest score less the mean of the others (MFD), along the last axis; NaN where there is no largest."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    best = known.max(axis=-1)
    count = (~np.isnan(scores)).sum(axis=-1)
    others = np.nansum(scores, axis=-1) - np.where(np.isfinite(best), best, 0.0)
    mean = np.divide(others, count - 1, out=np.zeros_like(best), where=count > 1)
    return np.where(count > 1, best - mean, np.nan)


def leads(scores: Floats) -> Floats:
    """Largest score less the second, along the last axis; NaN where there are no two.

    What decides is this and not the margin: of scores by chance the largest lies the further above the *mean* of the
    others, the more families there are, so that suspects would seem surer than strangers that are one family short.
    """
    if scores.shape[-1] < 2:
        return np.full(scores.shape[:-1], np.nan)
    second, first = np.moveaxis(np.sort(np.where(np.isnan(scores), -np.inf, scores), axis=-1)[..., -2:], -1, 0)
    return np.where(np.isfinite(second), first - np.where(np.isfinite(second), second, 0.0), np.nan)


def best_family(scores: Floats) -> Ints:
    """Number of the family of the largest score along the last axis, the first if tied; -1 where there is none."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    return np.where(np.isfinite(known).any(axis=-1), known.argmax(axis=-1), -1)


def validate(
    errors: Floats,
    families: Ints,
    datasets: Ints,
    points: Floats | None,
    settings: Settings,
    *,
    accuracy: Floats | None = None,
    each: Each,
) -> Validation:
    """Leave out each model, and each family, in turn, and score what was left out.

    Parameters
    ----------
    each : calls a function on every item and gives the results in their order, in whatever way; an item is one
        model, or one family, that is left out

    Other parameters as in ``refer``.
    """
    n_models, n_families = len(families), int(families.max()) + 1
    sizes = np.bincount(families, minlength=n_families)

    def without(left_out: npt.NDArray[np.bool_]) -> Reference:
        kept = ~left_out
        numbers = np.unique(families[kept], return_inverse=True)[1]
        return refer(errors[kept], numbers, datasets, points, settings, None if accuracy is None else accuracy[kept])

    def rates(model: Any) -> Floats | None:
        return None if accuracy is None else 1.0 - accuracy[model]

    def score_model(model: int) -> Floats:
        if sizes[families[model]] < 2:
            return np.full((3, n_families), np.nan)
        return scores_of(without(np.arange(n_models) == model), errors[model], rates(model))

    def score_family(family: int) -> list[Floats]:
        reference = without(families == family)
        return [leads(scores_of(reference, errors[m], rates(m))) for m in np.flatnonzero(families == family)]

    scores = np.array(each(score_model, list(range(n_models)))).transpose(1, 0, 2)
    strangers = np.full((3, n_models), np.nan)
    if n_families > 2:
        for family, found in enumerate(each(score_family, list(range(n_families)))):
            strangers[:, families == family] = np.array(found).T
    return Validation(scores, strangers)


def chance_p_values(validation: Validation, families: Ints, scores: Floats) -> Floats:
    """For each score and family: how often a model of another family reaches as much, (1 + reaching) / (1 + all).

    Parameters
    ----------
    scores : (3, F) float64, of a suspect

    Returns
    -------
    (3, F) float64 in (0, 1]; 1 where the suspect has no score
    """
    found = np.ones_like(scores)
    for family in range(scores.shape[1]):
        null = validation.scores[:, families != family, family]
        reached = (null >= scores[:, family, None]).sum(axis=1)
        known = (~np.isnan(null)).sum(axis=1)
        found[:, family] = np.where(np.isnan(scores[:, family]), 1.0, (1 + reached) / (1 + known))
    return found
