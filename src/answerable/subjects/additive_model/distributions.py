"""How each feature's component is distributed: the model's own bins, evenly, or rows; features independent."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .form import AdditiveModel, Shape
from .ranges import reachable

Floats = npt.NDArray[np.float64]
Weights = Literal["model", "uniform"]
MOST_WHOLE_NUMBERS = 2_000_000


class Marginal(NamedTuple):
    """The distribution of one feature's component.

    values : (m,) components; empty where the distribution is continuous, so that only its mean is known
    probabilities : (m,) of them, summing to 1
    mean : exact expectation
    """

    values: Floats
    probabilities: Floats
    mean: float


def marginals(
    model: AdditiveModel, *, background: Any = None, weights: Weights = "model", output: int = 0
) -> list[Marginal]:
    """The distribution of every component.

    Parameters
    ----------
    background : rows whose columns give the distributions; without them:
    weights : "model", how often each piece was seen in fitting (evenly where the model does not say), or "uniform":
        every level, whole number or stretch of the domain alike
    output : number of the score

    Raises
    ------
    BadInput : no even distribution exists over an infinite domain
    """
    if background is not None:
        encoded = model.encode(background)
        return [_of_sample(shape(encoded[:, j])[:, output]) for j, shape in enumerate(model.features)]
    return [_kept(shape, weights, output) for shape in model.features]


_KEPT: WeakKeyDictionary[Shape, dict[tuple[Weights, int], Marginal]] = WeakKeyDictionary()


def _kept(shape: Shape, weights: Weights, output: int) -> Marginal:
    """The distribution of a shape, computed once for as long as the shape lives."""
    own = _KEPT.setdefault(shape, {})
    if (weights, output) not in own:
        own[weights, output] = _of_shape(shape, weights, output)
    return own[weights, output]


def _of_sample(values: Floats) -> Marginal:
    distinct, counts = np.unique(values, return_counts=True)
    return Marginal(distinct, counts / len(values), float(values.mean()))


def _of_shape(shape: Shape, weights: Weights, output: int) -> Marginal:
    pieces = reachable(shape)
    seen = weights == "model" and shape.weights is not None
    mass = np.array([_mass(shape, piece, seen) for piece in pieces])
    means = np.array([_mean(shape, piece, output) for piece in pieces])
    if seen and shape.missing is not None and shape.missing_weight > 0:
        mass, means = np.append(mass, shape.missing_weight), np.append(means, shape.missing[output])
    elif not seen and shape.missing is not None and shape.levels:
        mass, means = np.append(mass, 1.0), np.append(means, shape.missing[output])
    if mass.sum() <= 0:
        mass = np.ones(len(mass))
    mass = mass / mass.sum()
    mean = float(mass @ means)
    if shape.constant:
        return Marginal(*_merged(means, mass), mean)
    if shape.integer:
        points = np.concatenate([np.arange(low, high + 1) for _, low, high, _, _ in pieces])
        counts = np.array([high - low + 1 for _, low, high, _, _ in pieces])
        probabilities = np.repeat(mass[: len(pieces)] / counts, counts.astype(int))
        return Marginal(*_merged(shape(points)[:, output], probabilities), mean)
    return Marginal(np.zeros(0), np.zeros(0), mean)


def _merged(values: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """Levels of one value become one; levels of no probability are left out."""
    distinct, place = np.unique(values, return_inverse=True)
    merged = np.bincount(place, weights=probabilities, minlength=len(distinct)).astype(np.float64)
    return distinct[merged > 0], merged[merged > 0]


def _mass(shape: Shape, piece: tuple[int, float, float, bool, bool], seen: bool) -> float:
    k, low, high, _, _ = piece
    if seen:
        assert shape.weights is not None
        return float(shape.weights[k])
    if not (math.isfinite(low) and math.isfinite(high)):
        if shape.constant and not shape.integer and shape.n_pieces > 1:
            return 1.0  # bins of a scorecard without ends: every bin alike
        mend = "restrict its domain, give weights or background rows"
        raise BadInput("nothing is even over an infinite domain", where=f"feature {shape.name}", mend=mend)
    if shape.integer:
        if high - low > MOST_WHOLE_NUMBERS:
            mend = "restrict its domain"
            raise BadInput(f"{high - low:.0f} whole numbers are too many", where=f"feature {shape.name}", mend=mend)
        return high - low + 1
    if shape.constant and (shape.edges[0] == -math.inf or shape.edges[-1] == math.inf):
        return 1.0
    return high - low


def _mean(shape: Shape, piece: tuple[int, float, float, bool, bool], output: int) -> float:
    """Mean of a piece over its part of the domain, exact: power sums over whole numbers, an integral otherwise."""
    k, low, high, _, _ = piece
    coefficients, origin = shape.coefficients[k, :, output], shape.origins[k]
    if not np.any(coefficients[1:]):
        return float(coefficients[0])
    if shape.integer:
        points = np.arange(low, high + 1)
        return float(np.polynomial.polynomial.polyval(points - origin, coefficients).mean())
    if high == low:
        return float(np.polynomial.polynomial.polyval(low - origin, coefficients))
    # Gauss's two points are exact up to degree three
    middle, half = (low + high) / 2 - origin, (high - low) / 2
    nodes = middle + half * np.array([-1, 1]) / math.sqrt(3)
    return float(np.polynomial.polynomial.polyval(nodes, coefficients).mean())
