"""The smallest and the largest component of each feature over its domain, and where they are.

A constant piece is its own extreme. A polynomial piece has its extremes at its ends or at the real roots of its
derivative; over whole numbers, at the whole numbers next to these. An end that does not belong to its piece is a bound
that is approached and not attained.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .form import AdditiveModel
from .parts import Shape

Floats = npt.NDArray[np.float64]


class Range(NamedTuple):
    """Ends of every feature's component over its domain, for one output.

    low, high : (n_features,) the smallest and largest component
    at_low, at_high : (n_features,) encoded values that reach them, or come next to them, NaN for a missing value
    low_attained, high_attained : (n_features,) False where the end is approached and not reached
    """

    low: Floats
    high: Floats
    at_low: Floats
    at_high: Floats
    low_attained: npt.NDArray[np.bool_]
    high_attained: npt.NDArray[np.bool_]


class Candidate(NamedTuple):
    """A component's value near which an extreme may lie."""

    value: float
    at: float
    attained: bool


def ranges(model: AdditiveModel, output: int = 0) -> Range:
    """The range of each feature's component.

    Raises
    ------
    BadInput : a feature whose domain is empty, or whose component grows without bound over its domain
    """
    ends = [_kept_ends(shape, output) for shape in model.features]
    low, high = [low for low, _ in ends], [high for _, high in ends]

    def of(ends: list[Candidate], name: str) -> npt.NDArray:
        return np.array([getattr(end, name) for end in ends])

    return Range(
        of(low, "value"), of(high, "value"), of(low, "at"), of(high, "at"), of(low, "attained"), of(high, "attained")
    )


def reachable(shape: Shape) -> list[tuple[int, float, float, bool, bool]]:
    """The pieces in the domain: number, ends, and whether each end belongs to the piece and the domain."""
    found = []
    edges, last = shape.edges, shape.n_pieces - 1
    assert shape.allowed is not None
    for k in range(shape.n_pieces):
        if not shape.allowed[k]:
            continue
        low, high = (-math.inf if k == 0 else edges[k]), (math.inf if k == last else edges[k + 1])
        holds_low, holds_high = k == 0 or shape.edge_goes_up, k == last or not shape.edge_goes_up
        if shape.low > low or (shape.low == low and k == 0):
            low, holds_low = shape.low, math.isfinite(shape.low)
        if shape.high < high or (shape.high == high and k == last):
            high, holds_high = shape.high, math.isfinite(shape.high)
        if shape.integer:
            first = math.ceil(low) if math.isfinite(low) else low
            if first == low and not holds_low and math.isfinite(low):
                first += 1
            end = math.floor(high) if math.isfinite(high) else high
            if end == high and not holds_high and math.isfinite(high):
                end -= 1
            low, high, holds_low, holds_high = float(first), float(end), math.isfinite(first), math.isfinite(end)
        if low < high or (low == high and holds_low and holds_high):
            found.append((k, float(low), float(high), bool(holds_low), bool(holds_high)))
    return found


_KEPT: WeakKeyDictionary[Shape, dict[int, tuple[Candidate, Candidate]]] = WeakKeyDictionary()


def _kept_ends(shape: Shape, output: int) -> tuple[Candidate, Candidate]:
    """The ends of a shape, computed once for as long as the shape lives."""
    own = _KEPT.setdefault(shape, {})
    if output not in own:
        own[output] = _ends(shape, output)
    return own[output]


def _ends(shape: Shape, output: int) -> tuple[Candidate, Candidate]:
    candidates: list[Candidate] = []
    for piece in reachable(shape):
        candidates += _candidates(shape, output, *piece)
    if shape.missing is not None:
        candidates.append(Candidate(float(shape.missing[output]), math.nan, True))
    if not candidates:
        raise BadInput("its domain is empty", where=f"feature {shape.name}", mend="widen the domain")
    # of equal values the attained one
    lowest = min(candidates, key=lambda c: (c.value, not c.attained))
    highest = max(candidates, key=lambda c: (c.value, c.attained))
    return lowest, highest


def _candidates(
    shape: Shape, output: int, k: int, low: float, high: float, holds_low: bool, holds_high: bool
) -> list[Candidate]:
    coefficients, origin = shape.coefficients[k, :, output], shape.origins[k]
    if not np.any(coefficients[1:]):
        return [Candidate(float(coefficients[0]), inside(low, high, holds_low, holds_high), True)]
    if not (math.isfinite(low) and math.isfinite(high)):
        mend = f"restrict the domain of {shape.name} to an interval"
        raise BadInput("its component grows without bound over its domain", where=f"feature {shape.name}", mend=mend)
    polynomial = np.polynomial.Polynomial(coefficients)
    slope = polynomial.deriv()
    found = [(low, holds_low), (high, holds_high)]
    for root in _real_roots(np.asarray(slope.coef, np.float64)):
        at = origin + root
        if low < at < high:
            found += [(math.floor(at), True), (math.ceil(at), True)] if shape.integer else [(at, True)]
    # Horner's rule, as the evaluation of rows has it, so that an extreme is never one ulp off the row that reaches it
    return [
        # an end that is only approached is shown by the number next to it, which does belong to the piece
        Candidate(
            _horner(coefficients, at - origin),
            float(at if attained else math.nextafter(at, (low + high) / 2)),
            attained,
        )
        for at, attained in found
        if low <= at <= high
    ]


def inside(low: float, high: float, holds_low: bool, holds_high: bool) -> float:
    """A value of the interval that does belong to it."""
    if holds_low:
        return low
    if holds_high:
        return high
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) / 2
    if math.isfinite(low):
        return low + max(1.0, abs(low))
    return high - max(1.0, abs(high)) if math.isfinite(high) else 0.0


def _horner(coefficients: Floats, x: float) -> float:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return float(value)


def _real_roots(coefficients: Floats) -> list[float]:
    """Real roots of a polynomial of degree up to two, without cancellation."""
    padded = [*map(float, coefficients), 0.0, 0.0]
    c, b, a = padded[0], padded[1], padded[2]
    if a == 0:
        return [-c / b] if b else []
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    q = -(b + math.copysign(math.sqrt(discriminant), b)) / 2
    return [q / a] + ([c / q] if q else [])


def binned(shape: Shape, edges: Floats, output: int = 0) -> tuple[npt.NDArray[np.intp], Range]:
    """The range of a component within each bin of another grid, for the bins that its domain reaches.

    Parameters
    ----------
    shape : the feature
    edges : (b + 1,) float64, rising; a value on an inner edge belongs to the bin above
    output : number of the score

    Returns
    -------
    (m,) numbers of the reached bins, from 1; 0 is the bin of a missing value
    Range of m entries
    """
    found: list[tuple[int, Candidate, Candidate]] = []
    if shape.missing is not None:
        only = Candidate(float(shape.missing[output]), math.nan, True)
        found.append((0, only, only))
    pieces = reachable(shape)
    last = len(edges) - 2
    for number in range(last + 1):
        start, end = (-math.inf if number == 0 else edges[number]), (math.inf if number == last else edges[number + 1])
        candidates: list[Candidate] = []
        for piece in pieces:
            part = cut(shape, piece, start, end, closed=number == last)
            if part is not None:
                candidates += _candidates(shape, output, *part)
        if candidates:
            lowest = min(candidates, key=lambda c: (c.value, not c.attained))
            found.append((number + 1, lowest, max(candidates, key=lambda c: (c.value, c.attained))))

    def of(place: int, name: str) -> npt.NDArray:
        return np.array([getattr(entry[place], name) for entry in found])

    numbers = np.array([number for number, _, _ in found])
    return numbers, Range(
        of(1, "value"), of(2, "value"), of(1, "at"), of(2, "at"), of(1, "attained"), of(2, "attained")
    )


def cut(
    shape: Shape, piece: tuple[int, float, float, bool, bool], start: float, end: float, *, closed: bool
) -> tuple[int, float, float, bool, bool] | None:
    """The part of a piece in [start, end), or [start, end] where ``closed``; None where there is none."""
    k, low, high, holds_low, holds_high = piece
    if start > low:
        low, holds_low = start, True
    if end < high or (end == high and not closed):
        high, holds_high = end, closed
    if shape.integer:
        if math.isfinite(low):
            low, holds_low = float(math.ceil(low)), True
        if math.isfinite(high):
            high = float(math.floor(high) - (not holds_high and high == math.floor(high)))
            holds_high = True
    return (k, low, high, holds_low, holds_high) if low < high or (low == high and holds_low and holds_high) else None
