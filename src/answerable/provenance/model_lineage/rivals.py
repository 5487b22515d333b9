"""Two plain scores to stand beside ErrorTrace: the likelihood of a suspect's errors, and their centred cosine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Profiles:
    """What the reference models do at each item, gathered once for any number of suspects.

    Parameters
    ----------
    errors : (M, N) float64, NaN where there is no answer
    families : (M,) int64, numbered from 0
    """

    def __init__(self, errors: Floats, families: Ints) -> None:
        answered = ~np.isnan(errors)
        wrong = np.where(answered, errors, 0.0)
        member = np.equal.outer(np.arange(families.max() + 1), families).astype(np.float64)
        count, summed = member @ answered, member @ wrong
        rate = (summed + 0.5) / (count + 1.0)  # Jeffreys' prior: an error never seen is not impossible
        self.log_right = np.log1p(-rate)
        self.log_odds = np.log(rate) - self.log_right
        all_count = answered.sum(axis=0)
        self.mean = np.divide(wrong.sum(axis=0), all_count, out=np.zeros(errors.shape[1]), where=all_count > 0)
        self.family = np.divide(summed, count, out=np.tile(self.mean, (len(member), 1)), where=count > 0) - self.mean
        self.family_squared = self.family**2

    def log_likelihoods(self, errors: Floats) -> Floats:
        """As the function of that name."""
        answered = ~np.isnan(errors)
        both = self.log_odds @ np.where(answered, errors, 0.0) + self.log_right @ answered.astype(np.float64)
        return both / max(int(answered.sum()), 1)

    def centred_cosines(self, errors: Floats) -> Floats:
        """As the function of that name."""
        answered = ~np.isnan(errors)
        own = np.where(answered, errors - self.mean, 0.0)
        size = np.sqrt((own @ own) * (self.family_squared @ answered.astype(np.float64)))
        return np.divide(self.family @ own, size, out=np.zeros(len(size)), where=size > 0)


def log_likelihoods(errors: Floats, families: Ints, suspect: Floats) -> Floats:
    """Mean log-likelihood of a suspect's errors under each family's error rates, item by item.

    Parameters
    ----------
    errors : (M, N) float64, of the reference models, NaN where there is no answer
    families : (M,) int64, numbered from 0
    suspect : (N,) float64

    Returns
    -------
    (F,) float64, nats an item that the suspect answered
    """
    return Profiles(errors, families).log_likelihoods(suspect)


def centred_cosines(errors: Floats, families: Ints, suspect: Floats) -> Floats:
    """Cosine of a suspect's errors with each family's mean errors, both less the mean of all reference models.

    Parameters and shapes as in ``log_likelihoods``; 0 where either side has no length.
    """
    return Profiles(errors, families).centred_cosines(suspect)
