"""An additive logistic model of splines, for when no fitted model is at hand."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import SplineTransformer

from answerable.statistics import Floats

from .logistic import Link
from .refit import multivariate_refit, refuse_many_terms
from .solver import Term

MOST_POINTS = 60  # of a curve that is kept or drawn
FEW_VALUES = 10  # a feature of so few values gets one level for each


class Curve(NamedTuple):
    """A curve at some values of its feature.

    Attributes
    ----------
    x : (n,) values, rising
    height : (n,) of the curve, about its mean over all rows
    rows : (n,) share of the rows that lie about each value
    """

    x: Floats
    height: Floats
    rows: Floats


def thinned(x: Floats, height: Floats, most: int | None) -> Curve:
    """A curve at each value that occurs, or at the first in each of ``most`` steps of equal width.

    Parameters
    ----------
    x, height : (N,) of each row
    most : values at most; None for all
    """
    at, first, counts = np.unique(x, return_index=True, return_counts=True)
    if most is not None and len(at) > most:
        group = np.clip(np.digitize(at, np.linspace(at[0], at[-1], most + 1)) - 1, 0, most - 1)
        kept, place = np.unique(group, return_index=True)
        counts = np.bincount(group, counts, minlength=most)[kept]
        at, first = at[place], first[place]
    return Curve(at, (height - height.mean())[first], counts / len(x))


class SplineGAM(BaseEstimator):
    """One curve per feature: a level for each value of a feature of few values, else a cubic spline through quantiles.

    Parameters
    ----------
    knots : of each spline
    ridge : penalty on the standardised basis
    link : ``logit`` or ``identity``
    """

    def __init__(self, *, knots: int = 6, ridge: float = 1.0, link: Link = "logit") -> None:
        self.knots = knots
        self.ridge = ridge
        self.link = link

    def fit(self, X: Any, y: Floats) -> SplineGAM:
        """Fit all curves together.

        Parameters
        ----------
        X : (n_samples, n_features) float64
        y : (n_samples,) 0 and 1, or numbers for the identity link
        """
        X = np.asarray(X, dtype=np.float64)
        refuse_many_terms(X.shape[1] * self.knots, f"{X.shape[1]:,} splines")
        self.bases_ = [self._basis(X[:, j]) for j in range(X.shape[1])]
        parts = [_expanded(basis, X[:, j]) for j, basis in enumerate(self.bases_)]
        refit = multivariate_refit(np.hstack(parts), y, link=self.link, ridge=self.ridge)
        ends = np.cumsum([0, *(part.shape[1] for part in parts)])
        self.coefficients_ = [refit.weights[start:end] for start, end in itertools.pairwise(ends)]
        self.centres_ = [float((part @ w).mean()) for part, w in zip(parts, self.coefficients_, strict=True)]
        self.intercept_ = refit.intercept + sum(self.centres_)
        self.terms_: list[Term] = [(j,) for j in range(X.shape[1])]
        return self

    def components(self, X: Any) -> Floats:
        """(n_samples, n_features) curves at rows, each of mean 0 over the rows fitted."""
        X = np.asarray(X, dtype=np.float64)
        columns = [
            _expanded(basis, X[:, j]) @ w - centre
            for j, (basis, w, centre) in enumerate(zip(self.bases_, self.coefficients_, self.centres_, strict=True))
        ]
        return np.column_stack(columns)

    def decision_function(self, X: Any) -> Floats:
        """(n_samples,) log-odds, or predictions for the identity link."""
        return self.components(X).sum(axis=1) + self.intercept_

    def _basis(self, column: Floats) -> Any:
        values = np.unique(column)
        if len(values) <= FEW_VALUES:
            return values
        knots = np.unique(np.quantile(column, np.linspace(0, 1, self.knots)))
        return SplineTransformer(knots=knots[:, None], extrapolation="constant", include_bias=False).fit(
            column[:, None]
        )


def _expanded(basis: Any, column: Floats) -> Floats:
    if isinstance(basis, np.ndarray):
        nearest = np.abs(column[:, None] - basis).argmin(axis=1)
        return np.eye(len(basis))[nearest][:, 1:]  # the first level is what the others are compared with
    return np.asarray(basis.transform(column[:, None]))
