"""Theorem 3: the answer to an answerable query, from what the extractor and the classifier say.

``P(y | x, W := w') = sum over t of P(t | x) P(y | t with W overwritten)``: only the features outside W are summed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CHUNK = 2**20  # numbers in each intermediate product


def expectation(parts: Sequence[Floats], table: Floats) -> Floats:
    """The mean of a table over independent coordinates, row by row.

    Parameters
    ----------
    parts : k arrays (n, L_j), row i the distribution of coordinate j for row i
    table : (L_1, ..., L_k) values

    Returns
    -------
    (n,) float64

    Notes
    -----
    The coordinates are cut into two halves of about as many cells, a and b. A row is then ``p_a' table p_b``: one
    matrix product of n x a by a x b and one row-wise product, so that nothing of n x (a b) is ever made.
    """
    n = len(parts[0])
    sizes = [part.shape[1] for part in parts]
    cut = _middle(sizes)
    first, second = math.prod(sizes[:cut]), math.prod(sizes[cut:])
    square = np.ascontiguousarray(table, dtype=np.float64).reshape(first, second)
    rows = max(1, CHUNK // max(first, second))
    found = np.empty(n)
    for start in range(0, n, rows):
        chunk = slice(start, start + rows)
        a = _kronecker([part[chunk] for part in parts[:cut]], len(found[chunk]))
        b = _kronecker([part[chunk] for part in parts[cut:]], len(found[chunk]))
        found[chunk] = np.einsum("ij,ij->i", a @ square, b)
    return found


def _middle(sizes: Sequence[int]) -> int:
    """Where to cut so that the larger half has fewest cells."""
    return min(range(len(sizes) + 1), key=lambda cut: max(math.prod(sizes[:cut]), math.prod(sizes[cut:])))


def _kronecker(parts: Sequence[Floats], n: int) -> Floats:
    """Row-wise Kronecker product: each row's distribution over the cells of its coordinates."""
    found = np.ones((n, 1))
    for part in parts:
        found = (found[:, :, None] * part[:, None, :]).reshape(n, -1)
    return found


def drawn(
    parts: Sequence[Floats], levels: Sequence[Floats], evaluate: Callable[[Floats], Floats], n_draws: int, seed: int
) -> tuple[Floats, float]:
    """Means over independent coordinates by draws, where their combinations are too many.

    Parameters
    ----------
    parts : k arrays (n, L_j), row i the distribution of coordinate j for row i
    levels : k arrays (L_j,), the coordinate's values
    evaluate : from (m, k) values to (m, q) outputs
    n_draws : of each row
    seed : of all draws

    Returns
    -------
    (n, q) means, and the largest of their standard errors
    """
    rng = np.random.default_rng(seed)
    n, k = len(parts[0]), len(parts)
    means, worst = [], 0.0
    rows = max(1, CHUNK // (n_draws * k))
    for start in range(0, n, rows):
        codes = _draws([part[start : start + rows] for part in parts], n_draws, rng)
        values = np.stack([own[codes[:, :, j]] for j, own in enumerate(levels)], axis=-1)
        outputs = evaluate(values.reshape(-1, k)).reshape(*codes.shape[:2], -1)
        means.append(outputs.mean(axis=1))
        worst = max(worst, float(outputs.std(axis=1, ddof=1).max()))
    return np.concatenate(means), worst / math.sqrt(n_draws)


def _draws(parts: Sequence[Floats], n_draws: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(n, n_draws, k) levels drawn from independent coordinates."""
    n = len(parts[0])
    found = np.empty((n, n_draws, len(parts)), np.int64)
    for j, part in enumerate(parts):
        steps = np.cumsum(part, axis=1)[:, :-1]
        found[:, :, j] = (rng.random((n, n_draws))[:, :, None] > steps[:, None, :]).sum(axis=2)
    return found


def propagated_error(
    oscillation: float, extractor_error: Floats | float, classifier_error: float = 0.0
) -> Floats | float:
    """How far an answer may be from the truth because extractor and classifier are not exact.

    ``|Q^ - Q| <= osc(f) TV(P^(T|x), P(T|x)) + max |f^ - f|``, where ``osc(f)`` is the largest less the smallest output.

    Parameters
    ----------
    oscillation : osc(f), of the classifier in use
    extractor_error : total variation distance between extracted and true distribution of the features [0, 1]
    classifier_error : largest error of the classifier's output over cells
    """
    return oscillation * extractor_error + classifier_error
