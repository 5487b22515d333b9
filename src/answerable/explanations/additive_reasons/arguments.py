"""What a caller gives, checked: names, costs, tolerances, choices."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.additive_model.distributions import Weights
from answerable.subjects.additive_model.form import AdditiveModel

Floats = npt.NDArray[np.float64]
Output = Literal["score", "probability", "class"]
GREATEST_COST = 1e12


def one_score_only(model: AdditiveModel, what: str) -> None:
    """Refuse a model of several classes."""
    if model.n_outputs > 1:
        raise BadInput(
            f"it has {model.n_outputs} classes, and {what} takes one score", where="model",
            mend="give model.against(class, rival)",
        )  # fmt: skip


def tolerance_of(model: AdditiveModel, tolerance: Any, *, where: str = "tolerance") -> float | None:
    """The tolerance of a regression; None for a model that decides.

    Raises
    ------
    BadInput : a regression without one, a model of classes with one, or what is no number of at least 0
    """
    if model.task != "regression":
        if tolerance is not None:
            mend = "leave it out; a class is kept or lost"
            raise BadInput("the model decides between classes, which need none", where=where, mend=mend)
        return None
    mend = "say how far the output may move and still count as the same"
    if tolerance is None:
        raise BadInput("a regression decides nothing without it", where=where, mend=mend)
    if not (_is_number(tolerance) and 0 <= tolerance < math.inf):
        raise BadInput(f"it is {str(tolerance)[:40]!r}", where=where, mend="give a finite number of at least 0")
    return float(tolerance)


def costs_of(model: AdditiveModel, cost: Any) -> Floats | None:
    """(n_features,) costs, 1 where none is named; None for unit costs.

    Raises
    ------
    UnknownName, BadInput : no such feature; a cost that is not above 0
    """
    if cost is None:
        return None
    if not isinstance(cost, Mapping):
        mend = 'give {"feature": cost}'
        raise BadInput(f"a {type(cost).__name__} says no cost of a feature", where="cost", mend=mend)
    costs = np.ones(len(model.features))
    for name, price in cost.items():
        if not (_is_number(price) and 0 < price <= GREATEST_COST):
            mend = f"give a number above 0, at most {GREATEST_COST:.0e}, or freeze the feature"
            raise BadInput(f"it is {str(price)[:40]}", where=f"cost of {str(name)[:80]}", mend=mend)
        costs[model.numbers_of([name], what="feature of cost")[0]] = float(price)
    return None if (costs == 1).all() else costs


def one_of(given: Any, kind: Any, where: str) -> None:
    """Refuse what is none of a Literal's words."""
    if given not in get_args(kind):
        raise BadInput(f"it is {str(given)[:40]!r}", where=where, mend=f"give one of {', '.join(get_args(kind))}")


def distribution(weights: Any, width: Any) -> None:
    """Refuse weights that are no known word, and a width that is no probability."""
    one_of(weights, Weights, "weights")
    if not (_is_number(width) and 0 < width <= 1):
        raise BadInput(f"it is {str(width)[:40]!r}", where="width", mend="give a number above 0, at most 1")


def whole(given: Any, where: str) -> int:
    """A whole number of at least 1."""
    if not (_is_number(given) and given == int(given) and given >= 1):
        raise BadInput(f"it is {str(given)[:40]!r}", where=where, mend="give a whole number of at least 1")
    return int(given)


def _is_number(given: Any) -> bool:
    real = isinstance(given, numbers.Real) and not isinstance(given, (bool, np.bool_))
    return real and math.isfinite(float(given))
