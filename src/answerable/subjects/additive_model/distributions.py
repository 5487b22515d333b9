"""How each feature's component is distributed: the model's own bins, evenly, or rows; features independent."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .form import AdditiveModel
from .parts import Shape
from .ranges import inside, reachable

Floats = npt.NDArray[np.float64]
Weights = Literal["model", "uniform"]
Piece = tuple[int, float, float, bool, bool]
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
        encoded = model.encode_background(background)
        return [_of_sample(shape(encoded[:, j])[:, output]) for j, shape in enumerate(model.features)]
    return [_kept(shape, weights, output) for shape in model.features]


_KEPT: WeakKeyDictionary[Shape, dict[tuple[Weights, int], Marginal]] = WeakKeyDictionary()


def _kept(shape: Shape, weights: Weights, output: int) -> Marginal:
    """The distribution of a shape, computed once for as long as the shape lives."""
    own = _KEPT.setdefault(shape, {})
    if (weights, output) not in own:
        own[weights, output] = _of_shape(shape, weights, output)
    return own[weights, output]


class Cells(NamedTuple):
    """A feature's domain in cells, in each of which it counts as one value.

    at : (m,) an encoded value of each cell, NaN for a missing one
    probabilities : (m,) of them, summing to 1
    """

    at: Floats
    probabilities: Floats


def cells(shape: Shape, edges: Floats, weights: Weights = "model") -> Cells:
    """A feature's pieces cut at further edges, each piece's probability spread evenly over its length.

    Parameters
    ----------
    shape : the feature
    edges : rising; a value on an edge belongs to the cell above
    weights : as in :func:`marginals`

    Returns
    -------
    Cells : every whole number of an integer feature; the middles of the cells of another

    Raises
    ------
    BadInput : too many whole numbers, or nothing even over an infinite domain
    """
    kept = _CELLS.setdefault(shape, {})
    key = (weights, np.asarray(edges).tobytes())
    if key not in kept:
        kept[key] = _cells(shape, np.asarray(edges, np.float64), weights)
    return kept[key]


_CELLS: WeakKeyDictionary[Shape, dict[tuple[Weights, bytes], Cells]] = WeakKeyDictionary()


def _cells(shape: Shape, edges: Floats, weights: Weights) -> Cells:
    pieces, mass = _masses(shape, weights)
    at, probabilities = [], []
    for (_, low, high, _, _), own in zip(pieces, mass[: len(pieces)], strict=True):
        if shape.integer:
            points = _whole_numbers(shape, low, high)
            at.append(points)
            probabilities.append(np.full(len(points), own / len(points)))
            continue
        ends = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
        lengths = np.diff(ends)
        if not (np.isfinite(lengths).all() and lengths.sum() > 0):
            lengths = np.ones(len(lengths))
        at.append(np.array([_middle(a, b) for a, b in itertools.pairwise(ends.tolist())]))
        probabilities.append(own * lengths / lengths.sum())
    if len(mass) > len(pieces):
        at.append(np.array([math.nan]))
        probabilities.append(mass[-1:])
    points, shares = np.concatenate(at), np.concatenate(probabilities)
    return Cells(points[shares > 0], shares[shares > 0])


def _middle(low: float, high: float) -> float:
    return low + (high - low) / 2 if math.isfinite(high - low) else inside(low, high, holds_low=False, holds_high=False)


def _whole_numbers(shape: Shape, low: float, high: float) -> Floats:
    if not high - low <= MOST_WHOLE_NUMBERS:
        mend = "restrict its domain"
        raise BadInput(f"{high - low:.0f} whole numbers are too many", where=f"feature {shape.name}", mend=mend)
    return np.arange(low, high + 1)


def _of_sample(values: Floats) -> Marginal:
    distinct, counts = np.unique(values, return_counts=True)
    return Marginal(distinct, counts / len(values), float(values.mean()))


def _of_shape(shape: Shape, weights: Weights, output: int) -> Marginal:
    pieces, mass = _masses(shape, weights)
    means = np.array([_mean(shape, piece, output) for piece in pieces])
    if len(mass) > len(pieces):
        assert shape.missing is not None
        means = np.append(means, shape.missing[output])
    mean = float(mass @ means)
    if shape.constant:
        return Marginal(*_merged(means, mass), mean)
    if shape.integer:
        points = np.concatenate([_whole_numbers(shape, low, high) for _, low, high, _, _ in pieces])
        counts = np.array([high - low + 1 for _, low, high, _, _ in pieces])
        probabilities = np.repeat(mass[: len(pieces)] / counts, counts.astype(int))
        return Marginal(*_merged(shape(points)[:, output], probabilities), mean)
    return Marginal(np.zeros(0), np.zeros(0), mean)


def _masses(shape: Shape, weights: Weights) -> tuple[list[Piece], Floats]:
    """The pieces in the domain and their probabilities; one more, the last, where a value may be missing."""
    pieces = reachable(shape)
    seen = weights == "model" and shape.weights is not None
    mass = np.array([_mass(shape, piece, seen) for piece in pieces])
    if seen and shape.missing is not None and shape.missing_weight > 0:
        mass = np.append(mass, shape.missing_weight)
    elif not seen and shape.missing is not None and shape.levels:
        mass = np.append(mass, 1.0)
    if mass.sum() <= 0:
        mass = np.ones(len(mass))
    return pieces, mass / mass.sum()


def _merged(values: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """Levels of one value become one; levels of no probability are left out."""
    distinct, place = np.unique(values, return_inverse=True)
    merged = np.bincount(place, weights=probabilities, minlength=len(distinct)).astype(np.float64)
    return distinct[merged > 0], merged[merged > 0]


def _mass(shape: Shape, piece: Piece, seen: bool) -> float:
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
        return high - low + 1
    if shape.constant and (shape.edges[0] == -math.inf or shape.edges[-1] == math.inf):
        return 1.0
    return high - low


def _mean(shape: Shape, piece: Piece, output: int) -> float:
    """Mean of a piece over its part of the domain, exact: power sums over whole numbers, an integral otherwise."""
    k, low, high, _, _ = piece
    coefficients, origin = shape.coefficients[k, :, output], shape.origins[k]
    if not np.any(coefficients[1:]):
        return float(coefficients[0])
    if shape.integer:
        points = _whole_numbers(shape, low, high)
        return float(np.polynomial.polynomial.polyval(points - origin, coefficients).mean())
    if high == low:
        return float(np.polynomial.polynomial.polyval(low - origin, coefficients))
    # Gauss's two points are exact up to degree three
    middle, half = (low + high) / 2 - origin, (high - low) / 2
    nodes = middle + half * np.array([-1, 1]) / math.sqrt(3)
    return float(np.polynomial.polynomial.polyval(nodes, coefficients).mean())
