"""The two loops over rows: which piece a value falls into, and what the piece says there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

Floats = npt.NDArray[np.float64]


@kernel
def piece_of(x: float, inner: Floats, edge_goes_up: bool) -> int:
    """How many inner edges lie below ``x``, or at it where an edge belongs to the piece above."""
    # no branch depends on the comparison: a mispredicted one costs more than the whole search
    base, left = 0, len(inner)
    while left > 1:
        half = left >> 1
        edge = inner[base + half - 1]
        base += half * int((edge < x) | (edge_goes_up & (edge == x)))
        left -= half
    if left == 1:
        base += int((inner[base] < x) | (edge_goes_up & (inner[base] == x)))
    return base


@kernel
def look_up(column: Floats, inner: Floats, edge_goes_up: bool, values: Floats, missing: float, out: Floats) -> None:
    """``out[i]``: the constant of the piece that holds ``column[i]``; ``missing`` where that is NaN."""
    for i in range(len(column)):
        x = column[i]
        out[i] = missing if np.isnan(x) else values[piece_of(x, inner, edge_goes_up)]


@kernel
def evaluate(
    column: Floats,
    inner: Floats,
    edge_goes_up: bool,
    origins: Floats,
    coefficients: Floats,
    missing: Floats,
    out: Floats,
) -> None:
    """``out[i, c]``: the component of output c at ``column[i]``; ``missing[c]`` where that is NaN."""
    n_powers, n_outputs = coefficients.shape[1], coefficients.shape[2]
    for i in range(len(column)):
        x = column[i]
        if np.isnan(x):
            for c in range(n_outputs):
                out[i, c] = missing[c]
            continue
        k = piece_of(x, inner, edge_goes_up)
        step = x - origins[k] if n_powers > 1 else 0.0
        for c in range(n_outputs):
            value = coefficients[k, n_powers - 1, c]
            for power in range(n_powers - 2, -1, -1):
                value = value * step + coefficients[k, power, c]
            out[i, c] = value
