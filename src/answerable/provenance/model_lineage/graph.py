"""The graph of items: distances between their embeddings, scaled, and the distance that most pairs have.

ErrorTrace (Zang and others, NeurIPS 2025, eq. 7-9) sorts all distances and takes an "interval-weighted" distribution
function of them: the sum of the gaps below a distance over the sum of all gaps. That sum telescopes: it is the distance
scaled to run from 0 to 1, so that nothing has to be sorted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

Floats = npt.NDArray[np.float64]

BINS = 999  # the paper's: linspace with 1000 edges


def scaled_distances(points: Floats) -> Floats:
    """Euclidean distances between all points, scaled so that the smallest of a pair is 0 and the largest 1.

    Parameters
    ----------
    points : (n, d) float64

    Returns
    -------
    (n, n) float64, symmetric, 0 on the diagonal; all 0 where all pairs are equally far apart
    """
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    distances = centred @ centred.T
    _distances(distances, squares)
    return distances


def densest_distance(scaled: Floats) -> float:
    """Centre of the fullest of 999 equal bins that the scaled distances of all pairs fall into, the first one if tied.

    Parameters
    ----------
    scaled : (n, n) float64, as ``scaled_distances`` gives

    Returns
    -------
    float between 0 and 1; 2 where no two distances differ, so that every pair lies below it
    """
    if len(scaled) < 2 or not scaled.any():
        return 2.0
    edges = np.linspace(0.0, 1.0, BINS + 1)
    fullest = int(np.argmax(_histogram(scaled, edges)))
    return float((edges[fullest] + edges[fullest + 1]) / 2)


@kernel
def _distances(products: Floats, squares: Floats) -> None:
    """Turn inner products into scaled distances, in place: two passes over the upper triangle."""
    n = len(squares)
    least, most = np.inf, -np.inf
    for i in range(n):
        for j in range(i + 1, n):
            square = squares[i] + squares[j] - 2.0 * products[i, j]
            # What rounding leaves of two equal points is no distance.
            distance = np.sqrt(square) if square > 1e-12 * (squares[i] + squares[j]) else 0.0
            products[i, j] = distance
            least, most = min(least, distance), max(most, distance)
    scale = 1.0 / (most - least) if most > least else 0.0
    for i in range(n):
        products[i, i] = 0.0
        for j in range(i + 1, n):
            scaled = min((products[i, j] - least) * scale, 1.0)
            products[i, j] = scaled
            products[j, i] = scaled


@kernel
def _histogram(scaled: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    bins = len(edges) - 1
    counts = np.zeros(bins, np.int64)
    for i in range(len(scaled)):
        for j in range(i + 1, len(scaled)):
            value = scaled[i, j]
            place = min(int(value * bins), bins - 1)
            if value < edges[place]:  # the product was rounded up across the edge
                place -= 1
            elif place < bins - 1 and value >= edges[place + 1]:
                place += 1
            counts[place] += 1
    return counts
