"""All descendants of all nodes: one pass over the edges from the last node back, 64 nodes a word."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel


def edges_in_order(order: list[int], children: list[list[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The edges as (first, ends): those of the i-th node of ``order`` end at ``ends[first[i]:first[i + 1]]``, rising.

    Parameters
    ----------
    order : (n,) numbers of the nodes, each after its causes
    children : (n,) lists of numbers

    Returns
    -------
    (n + 1,) and (n_edges,) int64; all nodes counted along ``order``
    """
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    counts = np.fromiter(map(len, children), np.int64, n)
    ends = place[np.fromiter(itertools.chain.from_iterable(children), np.int64, int(counts.sum()))]
    starts = np.repeat(place, counts)
    return np.concatenate([[0], np.cumsum(np.bincount(starts, minlength=n))]), ends[np.lexsort((ends, starts))]


def descendant_words(first: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Proper descendants as bits.

    Returns
    -------
    (n, ceil(n / 64)) uint64; row i and bit j both count along the order of the edges
    """
    return _fill(first, ends, (len(first) + 62) // 64)


@kernel
def _fill(first, ends, n_words):  # type: ignore[no-untyped-def]
    n = len(first) - 1
    words = np.zeros((n, n_words), np.uint64)
    one = np.uint64(1)
    for i in range(n - 1, -1, -1):
        row = words[i]
        for k in range(first[i], first[i + 1]):
            j = ends[k]
            bit = one << np.uint64(j & 63)
            if row[j >> 6] & bit:  # a nearer child reaches it, so it brings nothing new
                continue
            for w in range(j >> 6, n_words):  # whoever descends from j stands after it
                row[w] |= words[j, w]
            row[j >> 6] |= bit
    return words
