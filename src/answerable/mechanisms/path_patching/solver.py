"""Steering directions and interventions in a subspace, over arrays.

Zhang, Chen, Bai, Li, Xiang and Zhang, "Exploring the Translation Mechanism of Large Language Models" (NeurIPS 2025),
Algorithm 1 and equation 2. Of a component's changes d_1 ... d_N (twin less prompt, or the other way round) the paper
takes the mean s, the first r left singular vectors U of the centred changes, and then v = (M'^+)^T 1 with
M' = s 1^T + U U^T (M - s 1^T). What that gives is the point of the affine hull of the columns of M' that is nearest
the origin: the hull is s + span(U), so the point is s - U U^T s, with no pseudo-inverse. The mean is over pairs; the
paper divides by the width instead, which turns the direction for every r above 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

Floats = npt.NDArray[np.float64]

TINY = 1e-10  # of the largest change: below it a direction is rounding


class Direction(NamedTuple):
    """Where a component's changes point.

    vector : (..., d) float64 of length 1; zeros where it is undefined
    size : (...) float64, distance of the hull from the origin: what every column of M' has along ``vector``
    """

    vector: Floats
    size: Floats


def steering_direction(changes: npt.ArrayLike, rank: int = 1) -> Direction:
    """The direction that all changes share once the r directions in which they differ most are left out.

    Parameters
    ----------
    changes : (..., N, d), one change in a row; components may stand in front
    rank : r, from 0 (the mean's direction) to min(N, d) - 1

    Returns
    -------
    Direction : undefined, zeros, where the hull of the changes passes through the origin

    Raises
    ------
    BadInput : a rank below 0 or above min(N, d) - 1, where the hull would be the whole space; a number not finite
    """
    rows = np.asarray(changes, dtype=np.float64)
    if rows.ndim < 2 or not rows.size:
        raise BadInput(f"changes have shape {rows.shape}", where="steering direction", mend="give (pairs, width)")
    if not np.isfinite(rows).all():
        raise BadInput("changes hold a number that is not finite", where="steering direction", mend="use float32")
    check_rank(rank, *rows.shape[-2:])
    unit = np.abs(rows).max(axis=(-2, -1), keepdims=True)
    return _scaled(np.divide(rows, unit, out=np.zeros_like(rows), where=unit > 0), rank, unit[..., 0, 0])


def _scaled(rows: Floats, rank: int, unit: Floats) -> Direction:
    """The same of changes whose largest number is 1, so that no square overflows or vanishes."""
    mean = rows.mean(axis=-2)
    largest = np.sqrt((rows**2).sum(axis=-1)).max(axis=-1)
    point = mean
    if rank:
        _, sizes, right = np.linalg.svd(rows - mean[..., None, :], full_matrices=False)
        basis = right[..., :rank, :] * (sizes[..., :rank, None] > TINY * largest[..., None, None])
        # Twice: one projection leaves rounding of the mean's size, which is all there is where the hull nears 0.
        for _ in range(2):
            point = point - np.einsum("...r,...rd->...d", np.einsum("...rd,...d->...r", basis, point), basis)
    size = np.sqrt((point**2).sum(axis=-1))
    defined = size > TINY * np.maximum(largest, np.finfo(float).tiny)
    size = np.where(defined, size, 0.0)
    vector = np.divide(point, size[..., None], out=np.zeros_like(point), where=defined[..., None])
    return Direction(vector, size * unit)


def check_rank(rank: int, n_pairs: int, width: int) -> None:
    """Refuse a rank at which there is no direction.

    Raises
    ------
    BadInput
    """
    limit = min(n_pairs, width) - 1
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank <= limit:
        raise BadInput(
            f"rank is {rank!r:.40}",
            where=f"{n_pairs} pairs of width {width}",
            mend=f"choose from 0 to {limit}; beyond it the changes span the whole space",
        )


def intervened(positive: npt.ArrayLike, negative: npt.ArrayLike, basis: npt.ArrayLike) -> Floats:
    """Activations that have the twin's part in a subspace and their own part outside it: eq. 2.

    Parameters
    ----------
    positive, negative : (..., d) activations of prompt and twin
    basis : (..., d) one unit vector each, or (d, k) orthonormal columns shared by all

    Returns
    -------
    (..., d) float64
    """
    here, there, w = (np.asarray(one, dtype=np.float64) for one in (positive, negative, basis))
    change = there - here
    if w.ndim == 2 and w.shape[0] == here.shape[-1] and w.shape != here.shape:
        return here + (change @ w) @ w.T
    return here + (change * w).sum(axis=-1, keepdims=True) * w


def crossfit_directions(changes: npt.ArrayLike, rank: int, folds: npt.NDArray[np.intp]) -> Floats:
    """For each pair a direction that was made without it.

    Parameters
    ----------
    changes : (..., N, d)
    rank : as in `steering_direction`
    folds : (N,) number of each pair's fold; all equal: one direction from all pairs

    Returns
    -------
    (..., N, d) float64
    """
    rows = np.asarray(changes, dtype=np.float64)
    vectors = np.empty_like(rows)
    numbers = np.unique(folds)
    if len(numbers) == 1:
        vectors[...] = steering_direction(rows, rank).vector[..., None, :]
        return vectors
    for number in numbers:
        inside = folds == number
        vectors[..., inside, :] = steering_direction(rows[..., ~inside, :], rank).vector[..., None, :]
    return vectors


def random_directions(changes: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
    """Random unit vectors in the span of the centred changes: the control of a steering direction.

    Parameters
    ----------
    changes : (..., N, d)
    draws : how many

    Returns
    -------
    (draws, ..., d) float64; zeros where the changes are all the same
    """
    rows = np.asarray(changes, dtype=np.float64)
    centred = rows - rows.mean(axis=-2, keepdims=True)
    mixed = np.einsum("k...n,...nd->k...d", rng.normal(size=(draws, *rows.shape[:-1])), centred)
    size = np.sqrt((mixed**2).sum(axis=-1, keepdims=True))
    return np.divide(mixed, size, out=np.zeros_like(mixed), where=size > 0)
