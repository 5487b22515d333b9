"""Kernels of the rank sum: where the scores of one class stand among those of the other."""

from __future__ import annotations

import numpy as np

from answerable.compiled import kernel


@kernel
def placement_sums(positives, negatives, sums):  # type: ignore[no-untyped-def]
    """Sums over sorted columns: twice the wins, and the squared wins of each positive and each negative.

    Parameters
    ----------
    positives : (k, m) float, each row rising
    negatives : (k, n) float, each row rising
    sums : (k, 3) float64, written: ``sum_i w_i``, ``sum_i w_i**2``, ``sum_j v_j**2``, where ``w_i`` counts each
        negative below positive i twice and each tied one once, and ``v_j`` each positive above negative j likewise
    """
    for column in range(positives.shape[0]):
        p, q = positives[column], negatives[column]
        m, n = len(p), len(q)
        total = 0
        squares = 0.0
        other_squares = 0.0
        i = 0
        j = 0
        # Both columns are walked together, one distinct score at a time.
        while i < m or j < n:
            score = p[i] if j == n or (i < m and p[i] <= q[j]) else q[j]
            next_i = i
            while next_i < m and p[next_i] == score:
                next_i += 1
            next_j = j
            while next_j < n and q[next_j] == score:
                next_j += 1
            wins = j + next_j
            total += (next_i - i) * wins
            squares += (next_i - i) * float(wins) * wins
            losses = 2 * m - i - next_i
            other_squares += (next_j - j) * float(losses) * losses
            i, j = next_i, next_j
        sums[column, 0] = np.float64(total)
        sums[column, 1] = squares
        sums[column, 2] = other_squares
