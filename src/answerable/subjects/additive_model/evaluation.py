"""The two loops over rows: which piece a value falls into, and what the piece says there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

Floats = npt.NDArray[np.float64]
BLOCK = 4096  # rows whose values stay in a core's own cache while all features are looked up
MOST_WALKED = 8  # edges of a bucket that are compared one by one; more are searched


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
def bucket_of(x: float, start: float, per_unit: float, n_buckets: int) -> int:
    """Number of the bucket that holds ``x``: never falls where ``x`` rises, which is all that is asked of it."""
    place = (x - start) * per_unit
    if not place >= 1.0:  # nor where it is not a number: infinity times no buckets per unit
        return 0
    return n_buckets - 1 if place >= n_buckets else int(place)


@kernel
def make_guide(inner: Floats, start: float, per_unit: float, first: npt.NDArray[np.int32]) -> None:
    """``first[b]``: number of inner edges in buckets before b."""
    n_buckets = len(first) - 1
    first[:] = 0
    for edge in inner:
        first[bucket_of(edge, start, per_unit, n_buckets) + 1] += 1
    for b in range(n_buckets):
        first[b + 1] += first[b]


@kernel
def look_up(
    column: Floats, inner: Floats, edge_goes_up: bool, first: npt.NDArray[np.int32], start: float, per_unit: float,
    values: Floats, missing: float, out: Floats,
) -> None:  # fmt: skip
    """``out[i]``: the constant of the piece that holds ``column[i]``; ``missing`` where that is NaN.

    Edges in an earlier bucket lie below, those in a later one above: only the few of its own bucket are compared.
    """
    n_buckets = len(first) - 1
    for i in range(len(column)):
        x = column[i]
        if np.isnan(x):
            out[i] = missing
            continue
        b = bucket_of(x, start, per_unit, n_buckets)
        low, high = first[b], first[b + 1]
        if high - low > MOST_WALKED:
            low += piece_of(x, inner[low:high], edge_goes_up)
        else:
            while low < high and (inner[low] < x or (edge_goes_up and inner[low] == x)):
                low += 1
        out[i] = values[low]


@kernel
def look_up_rows(
    rows: Floats, inner: Floats, starts: npt.NDArray[np.intp], goes_up: npt.NDArray[np.bool_],
    first: npt.NDArray[np.int32], first_starts: npt.NDArray[np.intp], origins: Floats, per_unit: Floats,
    values: Floats, missing: Floats, out: Floats,
) -> None:  # fmt: skip
    """:func:`look_up` of every feature, block by block; the tables of all stand one after the other."""
    n_rows, n = rows.shape
    for top in range(0, n_rows, BLOCK):
        end = min(top + BLOCK, n_rows)
        for j in range(n):
            low, high = starts[j], starts[j + 1]
            look_up(
                rows[top:end, j], inner[low:high], goes_up[j], first[first_starts[j] : first_starts[j + 1]],
                origins[j], per_unit[j], values[low + j : high + j + 1], missing[j], out[top:end, j],
            )  # fmt: skip


@kernel
def first_outside(rows: Floats, low: Floats, high: Floats) -> int:
    """Number of the first feature of which some value is missing or outside its ends; their number where none is."""
    n_rows, n = rows.shape
    inside = np.ones(n, np.bool_)
    for i in range(n_rows):
        for j in range(n):
            inside[j] &= (rows[i, j] >= low[j]) & (rows[i, j] <= high[j])
    for j in range(n):
        if not inside[j]:
            return j
    return n


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
