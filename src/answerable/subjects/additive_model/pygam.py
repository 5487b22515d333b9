"""pyGAM: spline, linear and factor terms as exact pieces.

A spline's knots stand evenly on ``edge_knots_``; it goes on as a straight line beyond them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .encoding import by_place, level_edges
from .form import AdditiveModel
from .scikit import Column, continued, summed

LINKS = {"IdentityLink": "identity", "LogitLink": "logit"}
Floats = npt.NDArray[np.float64]


def from_pygam(gam: Any, names: Sequence[str] = ()) -> AdditiveModel:
    """A fitted pyGAM model as an additive model.

    Parameters
    ----------
    gam : LinearGAM or LogisticGAM, or a GAM with link identity or logit
    names : of the features, in the order of the columns; x0, x1, ... by default

    Raises
    ------
    BadInput : a term that is not additive, or a link that is not identity or logit
    """
    if not hasattr(gam, "coef_"):
        raise BadInput("the model is not fitted", where="pyGAM", mend="fit it first")
    link = LINKS.get(type(gam.link).__name__, type(gam.link).__name__)
    if link not in LINKS.values():
        raise BadInput(f"its link is {link!r}", where="pyGAM", mend="fit it with link identity or logit")
    n_features = gam.statistics_["m_features"]
    labels = list(names) or [f"x{j}" for j in range(n_features)]
    if len(labels) != n_features:
        raise BadInput(f"{len(labels)} names of {n_features} features", where="names", mend="name each column")
    columns: list[tuple[Column, Floats]] = []
    ends: dict[int, tuple[float, float]] = {}
    intercept = 0.0
    for number, term in enumerate(gam.terms):
        weights = np.asarray(gam.coef_)[gam.terms.get_coef_indices(number)]
        if term.isintercept:
            intercept += float(weights[0])
        else:
            columns += [(column, np.array([w])) for column, w in zip(_columns(term, labels), weights, strict=True)]
            knots = getattr(term, "edge_knots_", None)
            if knots is not None:
                ends[term.feature] = (float(knots[0]), float(knots[-1]))
    shapes = []
    for j, label in enumerate(labels):
        shape = summed(label, [own for own in columns if own[0].feature == j], 1)
        if not shape.levels and j in ends:
            object.__setattr__(shape, "low", ends[j][0])
            object.__setattr__(shape, "high", ends[j][1])
        shapes.append(shape)
    binary = link == "logit"

    def original(X: Any) -> Any:
        rows = np.asarray(by_place(X, labels), np.float64)
        # of log odds the sum itself: probabilities near 1 have lost its digits
        return gam._linear_predictor(rows) if binary else gam.predict(rows)

    return AdditiveModel(
        tuple(shapes), np.array([intercept]), task="binary" if binary else "regression",
        classes=("0", "1") if binary else (), logit=binary, source="pyGAM", original=original,
    )  # fmt: skip


def _columns(term: Any, labels: Sequence[str]) -> list[Column]:
    """One column for each coefficient of a term."""
    kind = type(term).__name__
    if kind not in ("SplineTerm", "LinearTerm", "FactorTerm"):
        raise BadInput(f"not additive: the term {term}", where="pyGAM", mend="fit it with s(), l() and f() alone")
    where = f"pyGAM, term of {labels[term.feature]}"
    if getattr(term, "by", None) is not None:
        raise BadInput("it is multiplied by another feature", where=where, mend="fit it without by=")
    if kind == "LinearTerm":
        return [Column(term.feature, np.array([-np.inf, np.inf]), np.zeros(1), np.array([[0.0, 1.0]]))]
    low, high = (float(end) for end in term.edge_knots_)
    if kind == "FactorTerm":
        return _factor(term, low, high, where)
    if getattr(term, "basis", "ps") != "ps":
        raise BadInput(f"its basis is {term.basis!r}", where=where, mend="fit it with basis='ps'")
    return _spline(term, low, high, where)


def _factor(term: Any, low: float, high: float, where: str) -> list[Column]:
    # dummy coding leaves the first level out
    first = round(low + 0.5)
    n_levels = round(high - low)
    if first != 0:
        raise BadInput(f"its first level is {first}", where=where, mend="number the levels from 0")
    levels = tuple(str(level) for level in range(n_levels))
    edges = level_edges(n_levels)
    start = 1 if getattr(term, "coding", "one-hot") == "dummy" else 0
    return [
        Column(term.feature, edges, np.zeros(n_levels), np.eye(n_levels)[k][:, None], levels)
        for k in range(start, n_levels)
    ]


def _spline(term: Any, low: float, high: float, where: str) -> list[Column]:
    from scipy.interpolate import BSpline, PPoly

    order, n_splines = term.spline_order, term.n_splines
    if order > 3 or order < 1:
        raise BadInput(f"its splines have order {order}", where=where, mend="fit it with spline_order 1 to 3")
    n_inner = n_splines - order
    steps = np.arange(-order, n_inner + order + 1) / n_inner
    steps[-1] += 1e-9  # as pyGAM does, so that the last knot is inside
    knots = low + (high - low) * steps
    inner = knots[order : order + n_inner + 1]
    found = []
    for s in range(n_splines):
        pieces = PPoly.from_spline(BSpline(knots, np.eye(n_splines)[s], order))
        places = np.searchsorted(pieces.x, inner[:-1], side="right") - 1
        found.append(continued(term.feature, inner, pieces.c[::-1, places].T, "linear"))
    return found
