"""The tables of all features in one place, so that rows are looked up and checked by one call each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .evaluation import first_outside, look_up_rows
from .parts import Shape

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Packed(NamedTuple):
    """Step functions of n features, one after the other.

    inner, starts : inner edges of all, and the (n + 1,) places where those of each feature begin
    goes_up : (n,) bool, whether a value on an edge belongs to the piece above
    first, first_starts, origins, per_unit : their guides, as in :func:`.evaluation.look_up`
    values, missing : the constants of all pieces; (n,) what a missing value contributes
    """

    inner: Floats
    starts: Ints
    goes_up: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int32]
    first_starts: Ints
    origins: Floats
    per_unit: Floats
    values: Floats
    missing: Floats

    def write(self, encoded: Floats, out: Floats) -> None:
        """Write the components of (n_samples, n) encoded rows into ``out``, of the same shape and any strides."""
        look_up_rows(encoded, *self, out)


def packed(shapes: Sequence[Shape]) -> Packed | None:
    """The tables of shapes of one score; None where some are no step functions."""
    if any(shape.coefficients.shape[1:] != (1, 1) for shape in shapes):
        return None
    steps = [shape.steps for shape in shapes]
    return Packed(
        np.concatenate([step.inner for step in steps]), _starts([len(step.inner) for step in steps]),
        np.array([shape.edge_goes_up for shape in shapes]), np.concatenate([step.first for step in steps]),
        _starts([len(step.first) for step in steps]), np.array([step.start for step in steps]),
        np.array([step.per_unit for step in steps]), np.concatenate([step.values for step in steps]),
        np.array([math.nan if shape.missing is None else shape.missing[0] for shape in shapes]),
    )  # fmt: skip


class Bounds(NamedTuple):
    """(n,) ends of the domains that are whole intervals of numbers; NaN for the others, so that nothing is inside."""

    low: Floats
    high: Floats

    def first_outside(self, rows: Floats) -> int:
        """Number of the first feature of which some value is not shown to be inside; n where there is none."""
        return int(first_outside(rows, self.low, self.high))


def bounds(shapes: Sequence[Shape]) -> Bounds:
    """The domains of shapes."""
    ends = [
        (math.nan, math.nan) if shape.integer or not np.all(shape.allowed) else (shape.low, shape.high)
        for shape in shapes
    ]
    return Bounds(*np.array(ends, np.float64).T.copy())


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
