"""Learners of the nuisances: boosted trees, linear and logistic regression, cells, or any pair from scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from answerable.errors import BadInput
from answerable.explanations.path_effects.boosting import BoostedTrees, binned, boosted
from answerable.explanations.path_effects.cells import cell_means, cell_numbers
from answerable.explanations.path_effects.linear import regressed, scaled
from answerable.explanations.path_effects.nuisances import Fit
from answerable.statistics import Floats, Ints
from answerable.statistics.cross_fitting import fitted_prediction, seeded

Learner = Literal["trees", "linear", "cells"]
LEARNERS: tuple[Learner, ...] = ("trees", "linear", "cells")


def boosted_trees(X: Floats, settings: BoostedTrees | None = None) -> Fit:
    """Boosted trees on the columns of ``X``, which are binned here, once; missing values are a bin of their own."""
    table, chosen = binned(X), settings or BoostedTrees()

    def fit(
        columns: int, train: Ints, target: Floats, wanted: Ints, *, logistic: bool, branch: tuple[int, ...]
    ) -> Floats:
        return boosted(table, columns, train, target, wanted, chosen, logistic=logistic)

    return fit


def linear(X: Floats, l2: float = 0.0) -> Fit:
    """Least squares, and maximum likelihood of a logistic model, on the columns of ``X``, without a missing value."""
    design = scaled(X)

    def fit(
        columns: int, train: Ints, target: Floats, wanted: Ints, *, logistic: bool, branch: tuple[int, ...]
    ) -> Floats:
        return regressed(design, columns, train, target, wanted, l2=l2, logistic=logistic)

    return fit


def saturated(X: Floats, prefixes: Sequence[int]) -> Fit:
    """The mean of each cell of equal values of the first columns of ``X``."""
    cells = cell_numbers(X, prefixes)

    def fit(
        columns: int, train: Ints, target: Floats, wanted: Ints, *, logistic: bool, branch: tuple[int, ...]
    ) -> Floats:
        return cell_means(cells[columns], train, target, wanted)

    return fit


def scikit_learners(X: Floats, propensity: Any, outcome: Any) -> Fit:
    """A classifier for propensities and a regressor for every nested regression; cloned, never fitted themselves.

    Parameters
    ----------
    X : (n, p) float64
    propensity : scikit-learn classifier with ``predict_proba``
    outcome : scikit-learn regressor

    Raises
    ------
    BadInput : a learner of the wrong kind, or one that fails on these rows
    """
    for learner, where, is_classifier in ((propensity, "propensity", True), (outcome, "outcome", False)):
        if not hasattr(learner, "fit") or not hasattr(learner, "get_params"):
            raise BadInput(f"a {type(learner).__name__} is no learner", where=where, mend="give a scikit-learn one")
        if hasattr(learner, "predict_proba") is not is_classifier:
            mend = "give a classifier with predict_proba" if is_classifier else "give a regressor: targets are means"
            raise BadInput(f"{type(learner).__name__} is of the wrong kind", where=where, mend=mend)

    def fit(
        columns: int, train: Ints, target: Floats, wanted: Ints, *, logistic: bool, branch: tuple[int, ...]
    ) -> Floats:
        from sklearn.base import clone

        # A learner without columns still has to learn the mean.
        table = X[:, :columns] if columns else np.zeros((len(X), 1))
        learner = seeded(clone(propensity if logistic else outcome), branch[0], str(branch), 0)
        return fitted_prediction(learner, table[train], target, table[wanted])

    return fit
