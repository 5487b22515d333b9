"""What a concept-based model can answer, over sets of concepts as bit masks.

Hwang, Pan and Bareinboim, From Black-box to Causal-box (NeurIPS 2025). A prediction is made from the features T; the
query W asks what it had been, had the concepts W been other than they are. De(W) are the proper descendants of any of
W, by directed edges alone.

- Theorem 1: T answers W iff no feature outside W descends from W.
- Theorem 2: over several queries there is one largest set of features, the meet of what each query allows.
- Repair (ours): W with the features that it would move is the smallest larger query that T answers, since
  De(W and De(W)) = De(W). It is what overwriting W alone in a concept model really answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

MOST_LISTED = 20  # concepts whose sets are listed, 2^20 of them


def moved_mask(below: Sequence[int], query: int) -> int:
    """De(W) as a mask.

    Parameters
    ----------
    below : by concept, the mask of its proper descendants
    query : mask of the concepts that are set
    """
    moved = 0
    while query:
        lowest = query & -query
        moved |= below[lowest.bit_length() - 1]
        query ^= lowest
    return moved


def offending_mask(below: Sequence[int], features: int, query: int) -> int:
    """The features that the query would move and does not set (Theorem 1: answerable iff there is none)."""
    return features & moved_mask(below, query) & ~query


def repaired_mask(below: Sequence[int], features: int, query: int) -> int:
    """The smallest query that contains this one and is answerable: the query with the features it would move."""
    return query | (features & moved_mask(below, query))


def maximal_mask(below: Sequence[int], queries: Iterable[int], universe: int) -> int:
    """The largest set of features within ``universe`` with which every query is answerable (Theorem 2)."""
    for query in queries:
        universe &= query | ~moved_mask(below, query)
    return universe


def answerable_masks(below: Sequence[int], features: int) -> npt.NDArray[np.uint32]:
    """Every non-empty query that the features answer, as masks in rising order.

    Parameters
    ----------
    below : (d,) by concept, the mask of its proper descendants, d at most 20
    features : mask of the features

    Returns
    -------
    (n_answerable,) uint32; De of a set is De of the set less one concept, joined with De of that concept

    Raises
    ------
    BadInput : more than 20 concepts
    """
    if len(below) > MOST_LISTED:
        mend = "list pairs, or ask for the queries that matter"
        raise BadInput(f"{len(below)} concepts have 2^{len(below)} sets", where="answerable queries", mend=mend)
    moved = np.zeros(1, np.uint32)
    for mask in below:  # sets without this concept, then the same sets with it
        moved = np.concatenate([moved, moved | np.uint32(mask)])
    queries = np.arange(len(moved), dtype=np.uint32)
    open_queries = (moved & np.uint32(features) & ~queries) == 0
    open_queries[0] = False
    return queries[open_queries]
