"""Consistency of an image's features under natural-looking changes (ConV, NeurIPS 2025), and under noise (RIGID).

Natural images lie near a manifold M. Take f1 and f2 that agree on M, the gradient of f1 normal to M and that of f2
tangent to it; then ``|f1(x) - f2(x)|`` is 0 on M and, to first order, ``|grad f1' p|`` at a distance p from it. A
network trained to ignore what moves along M stands for f1, and the same network after such a move h for f2:
``score(x) = 1 - cos(g(x), g(h(x)))``, taken over several views and moves. Large is suspicious.

Departure: the cosine comes from the distance of the unit vectors, ``1 - cos = |u - v|^2 / 2``, so that equal features
give exactly 0 and small differences keep their digits.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.statistics import Floats

Aggregate = Literal["mean", "min", "max", "median"]
AGGREGATES: tuple[Aggregate, ...] = ("mean", "min", "max", "median")


def dissimilarities(source: npt.ArrayLike, changed: npt.ArrayLike, *, where: str = "features") -> Floats:
    """``1 - cos`` of features and changed features.

    Parameters
    ----------
    source, changed : (..., d) of equal shape, finite, no row of zeros
    where : what an error names

    Returns
    -------
    (...) float64, from 0 (same direction) to 2; exactly 0 for equal rows

    Raises
    ------
    BadInput : shapes that differ, or a vector that is zero or not finite
    """
    first, second = _directions(source, where), _directions(changed, where)
    if first.shape != second.shape:
        raise BadInput(f"shapes {first.shape} and {second.shape} differ", where=where, mend="give pairs of features")
    apart = first - second
    return np.einsum("...d,...d->...", apart, apart) / 2


def scores(differences: npt.ArrayLike, aggregate: Aggregate = "mean") -> Floats:
    """One score for each image from its views.

    Parameters
    ----------
    differences : (n, K) float64, ``1 - cos`` of each view
    aggregate : how the views' *similarities* are put together: "min" takes the least similar view

    Returns
    -------
    (n,) float64, large is suspicious
    """
    views = np.asarray(differences, dtype=np.float64)
    if views.ndim != 2 or not views.shape[1]:
        raise BadInput(f"the shape is {views.shape}", where="differences", mend="give (images, views)")
    if aggregate not in AGGREGATES:
        raise BadInput(f"aggregate is {aggregate!r}", mend=f"say one of {', '.join(AGGREGATES)}")
    # The least similarity is the largest difference.
    reduce: dict[Aggregate, Any] = {"mean": np.mean, "min": np.max, "max": np.min, "median": np.median}
    return np.asarray(reduce[aggregate](views, axis=1), dtype=np.float64)


def manifold_gap(images: npt.ArrayLike, projector: npt.ArrayLike, normal: npt.ArrayLike) -> Floats:
    """``|f1(x) - f2(x)|`` where everything is linear: f1(x) = w'x and f2 = f1 after the projection onto M.

    Parameters
    ----------
    images : (n, d) float64
    projector : (d, d) onto the manifold M, symmetric and idempotent
    normal : (d,) w, which the projector sends to 0

    Returns
    -------
    (n,) float64, 0 for x on M
    """
    x, onto, w = (np.asarray(part, dtype=np.float64) for part in (images, projector, normal))
    return np.abs((x - x @ onto.T) @ w)


def alignment(moves: npt.ArrayLike, gradients: npt.ArrayLike) -> Floats:
    """``|u't| / (|u| |t|)`` of gradients u of the score and moves t that the transform makes.

    The method needs the gradient normal to the manifold and the moves along it: small is as it should be.

    Parameters
    ----------
    moves, gradients : (n, d) float64

    Returns
    -------
    (n,) float64 from 0 to 1; 0 where either is zero
    """
    t, u = np.asarray(moves, dtype=np.float64), np.asarray(gradients, dtype=np.float64)
    lengths = np.linalg.norm(t, axis=1) * np.linalg.norm(u, axis=1)
    along = np.abs(np.einsum("nd,nd->n", t, u))
    return np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0)


def _directions(vectors: npt.ArrayLike, where: str) -> Floats:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim < 1 or not found.shape[-1]:
        raise BadInput(f"the shape is {found.shape}", where=where, mend="give rows of features")
    if not np.isfinite(found).all():
        raise BadInput(
            f"{_first(~np.isfinite(found).all(axis=-1))} is not finite", where=where, mend="use float32 weights"
        )
    lengths = np.linalg.norm(found, axis=-1, keepdims=True)
    if not (lengths > 0).all():
        raise BadInput(f"{_first(lengths[..., 0] == 0)} is zero", where=where, mend="use float32, or another backbone")
    return found / lengths


def _first(bad: Any) -> str:
    place = np.argwhere(np.atleast_1d(bad))[0]
    return f"the feature vector of row {place[0] + 1}"
