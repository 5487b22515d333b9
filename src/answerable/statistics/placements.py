"""Kernels of the rank sum: where the scores of one class stand among those of the other.

Nothing is sorted through. Scores are dropped into cells of equal width, as many as hold a few each, in three passes;
who stands above whom is then counted within each cell, pair by pair, which a processor does eight at a time. A cell
that holds many is divided into cells of its own; what three such divisions leave crowded, ties mostly, is sorted.
"""

from __future__ import annotations

import numpy as np

from answerable.compiled import kernel

_PER_CELL = 6  # scores that an even cell holds: more make more pairs, fewer make the cells leave the cache
_CROWDED = 48  # scores of one cell that are divided again rather than compared pair by pair
_DIVISIONS = 3


@kernel
def placement_sums(block, positive, sums):  # type: ignore[no-untyped-def]
    """Sums over columns of scores: twice the wins, and the squared wins of each positive and each negative.

    Parameters
    ----------
    block : (k, n) float, one column of scores in each row, no NaN
    positive : (n,) uint8, 1 for a positive
    sums : (k, 3) float64, written: ``sum_i w_i``, ``sum_i w_i**2``, ``sum_j v_j**2``, where ``w_i`` counts each
        negative below positive i twice and each tied one once, and ``v_j`` each positive above negative j likewise
    """
    n = block.shape[1]
    cell_of, ends = np.empty(n, np.int32), np.empty(2 * (n // _PER_CELL) + 4, np.int32)
    grouped, marks = np.empty((_DIVISIONS, n), block.dtype), np.empty(n, np.uint8)
    above = np.empty(_CROWDED, np.int32)
    # Of each cell left to do: where its negatives and positives begin and end, in which division; what lies outside.
    waiting = np.empty((_DIVISIONS * (n // _CROWDED) + 1, 6), np.int64)
    for column in range(len(block)):
        sums[column] = 0.0
        n_waiting = _divide(block[column], positive, -1, 0, 0, cell_of, ends, grouped, above, waiting, 0, sums[column])
        # The last one put aside comes first, so that a division is overwritten only when none waits in it.
        while n_waiting > 0:
            n_waiting -= 1
            depth, first, middle, last = waiting[n_waiting, :4]
            below, beyond = waiting[n_waiting, 4:]
            for i in range(last - first):
                marks[i] = first + i >= middle
            n_waiting = _divide(
                grouped[depth, first:last], marks[: last - first], depth, below, beyond, cell_of, ends, grouped,
                above, waiting, n_waiting, sums[column],
            )  # fmt: skip


@kernel
def _divide(  # type: ignore[no-untyped-def]
    scores, positive, depth, below, beyond, cell_of, ends, grouped, above, waiting, n_waiting, sums
):
    """Add up the placements of scores with ``below`` negatives under and ``beyond`` positives above all of them.

    Crowded cells are put aside; the new number of ``waiting`` ones is given back.
    """
    n_cells = max(1, len(scores) // _PER_CELL)
    if depth + 1 == _DIVISIONS or not _group(scores, positive, n_cells, cell_of, ends, grouped[depth + 1]):
        _count_sorted(scores[positive == 0], scores[positive == 1], below, beyond, sums)
        return n_waiting
    into = grouped[depth + 1]
    for i in range(len(scores)):
        beyond += positive[i]
    for cell in range(n_cells):
        first, middle, last = ends[2 * cell], ends[2 * cell + 1], ends[2 * cell + 2]
        beyond -= last - middle
        if last - first <= _CROWDED:
            _count_pairs(into[first:middle], into[middle:last], below, beyond, above, sums)
        else:
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = depth + 1, first, middle
            waiting[n_waiting, 3], waiting[n_waiting, 4], waiting[n_waiting, 5] = last, below, beyond
            n_waiting += 1
        below += middle - first
    return n_waiting


@kernel
def _group(scores, positive, n_cells, cell_of, ends, grouped):  # type: ignore[no-untyped-def]
    """Move scores into their cells, negatives before positives in each; False where no even cells divide them.

    ``ends[2 c], ends[2 c + 1], ends[2 c + 2]`` bound the negatives and the positives of cell c.
    """
    low, high = scores[0], scores[0]
    for i in range(len(scores)):
        low = scores[i] if scores[i] < low else low
        high = scores[i] if scores[i] > high else high
    # Rounding keeps the order of scores: a higher one never falls into a lower cell, and equal ones share theirs.
    per_unit = n_cells / (high - low)
    if not (high - low < np.inf and 0 < per_unit < np.inf):
        return False
    ends[: 2 * n_cells + 1] = 0
    for i in range(len(scores)):
        cell_of[i] = 2 * min(np.int32((scores[i] - low) * per_unit), np.int32(n_cells - 1)) + positive[i]
    for i in range(len(scores)):
        ends[cell_of[i] + 1] += 1
    before = 0
    for half in range(1, 2 * n_cells + 1):
        size = ends[half]
        ends[half] = before
        before += size
    for i in range(len(scores)):
        half = cell_of[i] + 1
        grouped[ends[half]] = scores[i]
        ends[half] += 1
    return True


@kernel
def _count_pairs(negatives, positives, below, beyond, above, sums):  # type: ignore[no-untyped-def]
    total, squares, other_squares = np.int64(0), 0.0, 0.0
    for j in range(len(negatives)):
        above[j] = 2 * beyond
    for i in range(len(positives)):
        wins = np.int64(0)
        for j in range(len(negatives)):
            win = np.int32(negatives[j] < positives[i]) + np.int32(negatives[j] <= positives[i])
            wins += np.int64(win)
            above[j] += win
        wins += 2 * below
        total += wins
        squares += float(wins) * wins
    for j in range(len(negatives)):
        other_squares += float(above[j]) * above[j]
    sums[0] += total
    sums[1] += squares
    sums[2] += other_squares


@kernel
def _count_sorted(negatives, positives, below, beyond, sums):  # type: ignore[no-untyped-def]
    negatives.sort()
    positives.sort()
    m, n = len(positives), len(negatives)
    i, j = 0, 0
    # Both classes are walked together, one distinct score at a time.
    while i < m or j < n:
        score = positives[i] if j == n or (i < m and positives[i] <= negatives[j]) else negatives[j]
        next_i, next_j = i, j
        while next_i < m and positives[next_i] == score:
            next_i += 1
        while next_j < n and negatives[next_j] == score:
            next_j += 1
        wins = float(2 * below + j + next_j)
        losses = float(2 * (beyond + m) - i - next_i)
        sums[0] += (next_i - i) * wins
        sums[1] += (next_i - i) * wins * wins
        sums[2] += (next_j - j) * losses * losses
        i, j = next_i, next_j
