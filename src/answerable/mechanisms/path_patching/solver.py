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
from answerable.mechanisms.path_patching.checks import whole

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
    rows = _changes(changes)
    check_rank(rank, *rows.shape[-2:])
    rows, unit = _in_units(rows)
    return _scaled(rows, rank, unit)


def _changes(given: npt.ArrayLike) -> Floats:
    rows = _numbers(given, "changes")
    if rows.ndim < 2 or not rows.size:
        raise BadInput(f"they have shape {rows.shape}", where="changes", mend="give (pairs, width)")
    return rows


def _numbers(given: npt.ArrayLike, where: str) -> Floats:
    try:
        found = np.asarray(given)
        if found.dtype.kind not in "biuf":
            raise ValueError  # text would be read as numbers, and the imaginary part dropped
    except ValueError:
        raise BadInput("they are no array of real numbers", where=where, mend="give floats of one shape") from None
    if not np.isfinite(found).all():
        raise BadInput("they hold a number that is not finite", where=where, mend="use float32")
    return found.astype(np.float64, copy=False)


def _in_units(rows: Floats) -> tuple[Floats, Floats]:
    """Each component's changes over their largest number, so that no square overflows or vanishes, and that number."""
    unit = np.abs(rows).max(axis=(-2, -1), keepdims=True)
    return np.divide(rows, unit, out=np.zeros_like(rows), where=unit > 0), unit[..., 0, 0]


def _scaled(rows: Floats, rank: int, unit: Floats) -> Direction:
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
    basis : (..., d) one unit vector each, as where its shape is theirs, or (d, k) orthonormal columns shared by all

    Returns
    -------
    (..., d) float64

    Raises
    ------
    BadInput : shapes that do not go together, a number not finite
    """
    here, there, w = (
        _numbers(one, name) for one, name in ((positive, "positive"), (negative, "negative"), (basis, "basis"))
    )
    if here.shape != there.shape or not here.ndim:
        raise BadInput(
            f"prompts have shape {here.shape}, twins {there.shape}", where="intervened", mend="give one of each"
        )
    change = there - here
    if w.ndim == 2 and w.shape[0] == here.shape[-1] and w.shape != here.shape:
        return here + (change @ w) @ w.T
    if w.shape not in (here.shape, here.shape[-1:]):
        mend = f"give {here.shape}, or ({here.shape[-1]}, k)"
        raise BadInput(f"it has shape {w.shape}", where="basis", mend=mend)
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

    Raises
    ------
    BadInput : fewer than one draw, a number not finite
    """
    rows, _ = _in_units(_changes(changes))
    whole(draws, "draws", 1)
    centred = rows - rows.mean(axis=-2, keepdims=True)
    mixed = np.einsum("k...n,...nd->k...d", rng.normal(size=(draws, *rows.shape[:-1])), centred)
    size = np.sqrt((mixed**2).sum(axis=-1, keepdims=True))
    return np.divide(mixed, size, out=np.zeros_like(mixed), where=size > 0)
