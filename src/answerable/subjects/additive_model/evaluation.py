"""The two loops over rows: which piece a value falls into, and what the piece says there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

Floats = npt.NDArray[np.float64]


@kernel
def piece_of(x: float, edges: Floats, edge_goes_up: bool) -> int:
    """Number of the piece that holds ``x``, the first and the last reaching on beyond their ends."""
    low, high = 1, len(edges) - 1
    while low < high:
        middle = (low + high) // 2
        if x < edges[middle] or (x == edges[middle] and not edge_goes_up):
            high = middle
        else:
            low = middle + 1
    return low - 1


@kernel
def evaluate(
    column: Floats,
    edges: Floats,
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
        k = piece_of(x, edges, edge_goes_up)
        step = x - origins[k] if n_powers > 1 else 0.0
        for c in range(n_outputs):
            value = coefficients[k, n_powers - 1, c]
            for power in range(n_powers - 2, -1, -1):
                value = value * step + coefficients[k, power, c]
            out[i, c] = value
