"""How much of an importance map lies where the truth is: IMA, EMDA and FNI-EMDA.

With s the map, normalised to 1, T the true pixels, t = 1/|T| on them and C the distance between pixels:

- IMA is the mass of s inside T.
- EMDA is 1 - EMD(s, t, C) / max_i (C t)_i; the divisor is the worst distance there is, all mass on the worst pixel.
- FNI-EMDA does not punish importance that misses part of the truth: moving mass from one true pixel to another is free.

"Correcting misinterpretations of additive models" (NeurIPS 2025), section 4; the older EMDA divided by the
grid's diagonal.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics import Bools, Floats

from .transport import least_transport

Cost = Literal["euclidean", "manhattan"]


def ima(importance: ArrayLike, truth: ArrayLike) -> float:
    """Share of the importance that lies inside the truth.

    Parameters
    ----------
    importance : (rows, columns) or (n,) float64 >= 0, not all 0
    truth : the same shape, true where the target's information is

    Returns
    -------
    float between 0 and 1

    Raises
    ------
    BadInput : shapes that differ, a negative or missing importance, importance all 0, or an empty truth
    """
    s, inside = _checked(importance, truth)
    return float(s[inside].sum())


def emda(importance: ArrayLike, truth: ArrayLike, *, cost: Cost | ArrayLike = "euclidean") -> float:
    """One less the earth mover's distance to an even spread over the truth, over the worst such distance.

    Parameters
    ----------
    importance : (rows, columns) float64 >= 0, not all 0; (n,) with a cost matrix
    truth : the same shape, true where the target's information is
    cost : ``euclidean`` or ``manhattan`` distance on the grid, in pixels, or an (n, n) matrix of costs >= 0

    Returns
    -------
    float between 0 and 1

    Raises
    ------
    BadInput : as :func:`ima`, or no grid and no matrix
    """
    s, inside = _checked(importance, truth)
    to_truth = _costs_to(inside, np.shape(importance), cost)
    room = np.full(to_truth.shape[1], 1.0 / to_truth.shape[1])
    worst = (to_truth @ room).max()
    return _between_0_and_1(least_transport(s, to_truth, room)[0], worst)


def fni_emda(importance: ArrayLike, truth: ArrayLike, *, cost: Cost | ArrayLike = "euclidean") -> float:
    """EMDA that is invariant to false negatives: mass on true pixels stays where it is at no cost.

    Only the mass outside moves, to true pixels of room 1/|T| each; what is inside fills the rest for nothing.

    Parameters, result and errors are those of :func:`emda`.
    """
    s, inside = _checked(importance, truth)
    to_truth = _costs_to(inside, np.shape(importance), cost)
    outside = np.flatnonzero(~inside)
    # Moving inside the truth is free, so the worst pixel is an outer one; with none outside there is nothing to move.
    from_outside = to_truth[outside]
    room = np.full(to_truth.shape[1], 1.0 / to_truth.shape[1])
    worst = (from_outside @ room).max(initial=0.0)
    return _between_0_and_1(least_transport(s[outside], from_outside, room)[0], worst)


def _between_0_and_1(moved: float, worst: float) -> float:
    return float(min(max(1.0 - moved / worst, 0.0), 1.0)) if worst > 0 else 1.0


def _checked(importance: ArrayLike, truth: ArrayLike) -> tuple[Floats, Bools]:
    """Importance as a flat share of 1, and the truth as flat booleans."""
    s = np.asarray(importance)
    if s.dtype.kind not in "biuf":
        raise BadInput(f"it holds {s.dtype}, not numbers", where="importance", mend="give real numbers of at least 0")
    s, inside = s.astype(np.float64), np.asarray(truth)
    if s.shape != inside.shape:
        raise BadInput(
            f"importance has shape {s.shape}, truth {inside.shape}", where="metric", mend="give equal shapes"
        )
    if not np.isfinite(s).all():
        raise BadInput("the importance has a missing or infinite value", where="importance", mend="mend it")
    if (s < 0).any():
        place = tuple(int(i) for i in np.argwhere(s < 0)[0])
        raise BadInput(f"it is {s[place]:g}", where=f"importance, entry {place}", mend="take absolute values first")
    if not s.any():
        raise BadInput("every importance is 0", where="importance", mend="give a map that points somewhere")
    if not np.isin(inside, (0, 1)).all():
        raise BadInput("the truth has other values than 0 and 1", where="truth", mend="give a mask")
    if not inside.any():
        raise BadInput("no pixel is true", where="truth", mend="give a mask with at least one")
    s = s / s.max()  # first, since the sum of very large numbers is infinite
    return (s / s.sum()).ravel(), inside.astype(bool).ravel()


def _costs_to(inside: Bools, shape: tuple[int, ...], cost: Cost | ArrayLike) -> Floats:
    """(n, |T|) cost from every pixel to each true one."""
    n, sinks = len(inside), np.flatnonzero(inside)
    if not isinstance(cost, str):
        matrix = np.asarray(cost, dtype=np.float64)
        if matrix.shape != (n, n):
            raise BadInput(f"the shape is {matrix.shape}", where="cost", mend=f"give a matrix of ({n}, {n})")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise BadInput("a cost is negative or missing", where="cost", mend="give costs of at least 0")
        return matrix[:, sinks]
    if cost not in ("euclidean", "manhattan"):
        raise BadInput(f"it is {cost!r}", where="cost", mend="choose euclidean or manhattan, or give a matrix")
    if len(shape) != 2:
        raise BadInput(f"the shape is {shape}", where="importance", mend="give a grid, or a matrix of costs")
    (height, width), (rows, columns) = shape, np.unravel_index(sinks, shape)
    down = np.abs(np.subtract.outer(np.arange(height, dtype=np.float64), rows))[:, None, :]
    across = np.abs(np.subtract.outer(np.arange(width, dtype=np.float64), columns))[None, :, :]
    gaps = np.sqrt(down**2 + across**2) if cost == "euclidean" else down + across
    return np.asarray(gaps.reshape(n, -1))
