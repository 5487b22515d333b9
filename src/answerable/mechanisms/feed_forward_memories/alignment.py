"""Which features of one set have a counterpart in another: largest cosines both ways, matched pairs, and a null.

Section 6 of the paper: ``r`` is aligned where its largest cosine with any feature of the other set is at least 0.9, and
unaligned below 0.3. Beside it stand the same numbers of random directions: in d dimensions the largest of n random
cosines is about ``sqrt(2 ln n / d)``, well above 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from answerable.errors import BadInput

Array = npt.NDArray[np.floating[Any]]
ALIGNED, UNALIGNED = 0.9, 0.3
CANDIDATES = 16  # of each feature that the matching chooses among
_DENSE_CELLS = 4_000_000  # below this many pairs the matching sees all of them
_BLOCK_ROWS = 512


class Alignment(NamedTuple):
    """How the directions of two sets agree.

    cosine, other_cosine : (m,) and (n,) largest cosine with the other set; NaN for a feature that writes nothing
    absolute, other_absolute : the same of |cosine|
    nearest, other_nearest : number of the feature it is with; -1 likewise
    matched : (m,) the partner in the one-to-one matching of the largest total cosine; -1 where there is none
    matched_cosine : (m,) cosine with it; NaN likewise
    null, other_null : largest cosines of random directions with as many random ones as the other set has
    width : d
    """

    cosine: Array
    other_cosine: Array
    absolute: Array
    other_absolute: Array
    nearest: npt.NDArray[np.int64]
    other_nearest: npt.NDArray[np.int64]
    matched: npt.NDArray[np.int64]
    matched_cosine: Array
    null: Array
    other_null: Array
    width: int

    def table(self) -> dict[str, Any]:
        """Columns, one row for each feature of the first set."""
        limit = float(np.quantile(self.null, 0.99))
        return {
            "feature": np.arange(len(self.cosine)),
            "cosine": self.cosine,
            "nearest": self.nearest,
            "absolute": self.absolute,
            "matched": self.matched,
            "matched_cosine": self.matched_cosine,
            "above_null": self.cosine > limit,
        }


def align(
    first: Array, second: Array, *, rng: np.random.Generator, null_draws: int = 512, same: bool = False
) -> Alignment:
    """Largest cosines between the rows of two matrices, both ways, over rows of length 1 that are not centred.

    The cosines are made block by block: never more than 512 rows of them are held.

    Parameters
    ----------
    first, second : (m, d) and (n, d)
    rng : draws the random directions
    null_draws : how many random directions the null has
    same : whether both are one set, so that a row is not compared with itself

    Raises
    ------
    BadInput : the rows differ in length
    """
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise BadInput(
            f"the features write {first.shape[-1]} and {second.shape[-1]} numbers",
            where="alignment",
            mend="compare two sets of one layer of one model",
        )
    (ones, live), (others, other_live) = _unit(first), _unit(second)
    m, n = len(ones), len(others)
    kept = min(CANDIDATES, n)
    cosine, absolute, nearest = np.full(m, -np.inf), np.zeros(m), np.full(m, -1)
    other_cosine, other_absolute, other_nearest = np.full(n, -np.inf), np.zeros(n), np.full(n, -1)
    few_columns, few_values = np.zeros((m, kept), np.int64), np.zeros((m, kept), np.float32)
    for start in range(0, m, _BLOCK_ROWS):
        rows = slice(start, min(start + _BLOCK_ROWS, m))
        block = ones[rows] @ others.T
        block[:, ~other_live] = -2
        block[~live[rows]] = -2
        if same:
            at = np.arange(rows.start, rows.stop)
            block[at - start, at] = -2
        nearest[rows] = block.argmax(axis=1)
        cosine[rows] = block.max(axis=1)
        signless = np.where(block < -1.5, 0, np.abs(block))
        absolute[rows], other_absolute = signless.max(axis=1), np.maximum(other_absolute, signless.max(axis=0))
        best = block.max(axis=0)
        better = best > other_cosine
        other_nearest[better], other_cosine[better] = block.argmax(axis=0)[better] + start, best[better]
        few_columns[rows] = np.argpartition(-block, kept - 1, axis=1)[:, :kept]
        few_values[rows] = np.take_along_axis(block, few_columns[rows], axis=1)
    for values, numbers in ((cosine, nearest), (other_cosine, other_nearest)):
        gone = values < -1.5
        values[gone], numbers[gone] = np.nan, -1
    absolute[~live], other_absolute[~other_live] = np.nan, np.nan
    matched, matched_cosine = _matched(ones, others, live, other_live, few_columns, few_values, same)
    null, other_null = (_null(rng, null_draws, max(1, count - same), first.shape[1]) for count in (n, m))
    return Alignment(
        cosine, other_cosine, absolute, other_absolute, nearest, other_nearest, matched, matched_cosine,
        null, other_null, first.shape[1],
    )  # fmt: skip


def expected_largest_cosine(count: int, width: int) -> float:
    """About how large the largest cosine of one direction with ``count`` random ones in ``width`` dimensions is."""
    return float(np.sqrt(2 * np.log(max(count, 2)) / width))


def _unit(rows: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    lengths = np.linalg.norm(np.asarray(rows, np.float64), axis=1)
    live = lengths > 0
    return np.divide(rows, lengths[:, None], out=np.zeros(rows.shape, np.float32), where=live[:, None]), live


def _null(rng: np.random.Generator, draws: int, count: int, width: int) -> Array:
    """Largest cosines of random directions with ``count`` fresh random ones.

    A cosine of random directions is a coordinate of a random unit vector: ``(1 + t) / 2`` has a Beta distribution. The
    largest of independent ones is then the quantile of one uniform number to the power ``1 / count``.
    """
    from scipy.stats import beta

    if width < 2:
        return np.ones(draws)
    half = (width - 1) / 2
    upper = -np.expm1(np.log(rng.random(draws)) / count)  # 1 - U^(1/count), without losing digits near 0
    return 2 * beta.isf(upper, half, half) - 1


def _matched(
    ones: Array, others: Array, live: Any, other_live: Any, columns: Any, values: Any, same: bool
) -> tuple[npt.NDArray[np.int64], Array]:
    """The one-to-one matching of the largest total cosine, among each feature's nearest where there are many."""
    m, n = len(ones), len(others)
    partner, cosine = np.full(m, -1), np.full(m, np.nan)
    if same or not live.any() or not other_live.any():
        return partner, cosine
    if m * n <= _DENSE_CELLS:
        rows, places = np.flatnonzero(live), np.flatnonzero(other_live)
        block = ones[rows] @ others[places].T
        left, right = linear_sum_assignment(-block)
        partner[rows[left]], cosine[rows[left]] = places[right], block[left, right]
        return partner, cosine
    # Sparse: every feature may also stay alone, at a cost above any pair's, so that a full matching exists.
    left = np.repeat(np.arange(m), columns.shape[1])
    right, given = columns.reshape(-1), values.reshape(-1)
    there = given > -1.5
    alone = 3.0
    cost = np.concatenate([2.0 - given[there], np.full(m, alone)])
    graph = csr_array(
        (cost, (np.concatenate([left[there], np.arange(m)]), np.concatenate([right[there], n + np.arange(m)]))),
        shape=(m, n + m),
    )
    rows, chosen = min_weight_full_bipartite_matching(graph)
    paired = chosen < n
    partner[rows[paired]] = chosen[paired]
    cosine[rows[paired]] = np.einsum("id,id->i", ones[rows[paired]], others[chosen[paired]])
    return partner, cosine
