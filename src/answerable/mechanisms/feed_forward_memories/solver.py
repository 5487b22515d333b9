"""What one pass over a text has to keep of the memories of a layer, and the explained variance of what they write.

Ye, Suzuki, Inaba and Kuribayashi, "Transformer Key-Value Memories Are Nearly as Interpretable as Sparse Autoencoders"
(NeurIPS 2025), sections 3 and 4 and appendix A. A layer's output is ``y = a V + b`` with activations a (its features)
and values V. Where we depart:

- An activation of a gated layer has a sign, so each memory has two sides, counted apart.
- Explained variance is ``1 - E|y - y'|^2 / (E|y|^2 - |E y|^2)`` over all tokens. The paper's benchmark (SAEBench 0.6)
  leaves the mean in, and an older definition averages a ratio per token; both are here under their names.

Nothing here holds the activations of more than one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.compiled import in_threads, kernel
from answerable.errors import BadInput

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Definition = Literal["fvu", "legacy_token_mean", "uncentred"]
Select = Literal["abs", "contribution"]

_TILE_ROWS, _TILE_COLUMNS = 16, 256
_FLOAT_ROWS = 1024  # summed in float32 before they are added in float64
_SIZE_CLASSES = 4096  # of a float32 by its first 12 bits


class MemoryCounts:
    """How often, how strongly and where each memory of a layer is active, on each side of zero.

    Parameters
    ----------
    n_memories : m
    top : how many places with the largest activations are kept for each memory and side

    Attributes
    ----------
    tokens : tokens seen
    counts : (2, m) int64, tokens with a > 0 and with a < 0
    sums : (2, m) float64, sum of |a| over these
    top_values : (2, m, top) float32, largest \\|a\\| first; 0 where there are fewer
    top_places : (2, m, top) int64, number of the token in the order seen, the earlier of two equal ones; -1 likewise
    """

    def __init__(self, n_memories: int, top: int) -> None:
        self.tokens = 0
        self.counts = np.zeros((2, n_memories), np.int64)
        self.sums = np.zeros((2, n_memories))
        self.top_values = np.zeros((2, n_memories, top), np.float32)
        self.top_places = np.full((2, n_memories, top), -1, np.int64)

    def add(self, activations: Floats, keep: Ints | None = None, *, threads: int = 1) -> None:
        """Take in a batch.

        Parameters
        ----------
        activations : (tokens, m) float32
        keep : rows that count, rising; all by default. Only these are numbered
        threads : that share the memories; the same numbers for any
        """
        rows = np.arange(len(activations)) if keep is None else np.asarray(keep, np.int64)
        table = np.ascontiguousarray(activations, np.float32)
        kept = self.counts, self.sums, self.top_values, self.top_places

        def some(parts: Sequence[slice]) -> None:
            for part in parts:
                _count(table, rows, self.tokens, *kept, part.start, part.stop)

        m = table.shape[1]
        size = max(1, -(-m // max(1, threads)))
        in_threads(some, [slice(start, min(start + size, m)) for start in range(0, m, size)], threads)
        self.tokens += len(rows)

    @property
    def density(self) -> npt.NDArray[np.float64]:
        """(2, m) share of tokens with a > 0, and with a < 0."""
        return self.counts / max(self.tokens, 1)

    @property
    def strength(self) -> npt.NDArray[np.float64]:
        """(2, m) mean of |a| where it is on that side; 0 where it never is."""
        return self.sums / np.maximum(self.counts, 1)


@kernel
def _count(table, rows, first, counts, sums, top_values, top_places, start, stop):  # type: ignore[no-untyped-def]
    """One batch, some memories: a few rows of a few columns at a time, so that all sums stay in the nearest cache.

    Each number is read once, on whole vectors, for counts, sums and the tile's extremes. Only columns whose extremes
    pass what is kept already are looked at row by row; these grow rare as the text goes on.
    """
    top, width = top_values.shape[2], min(_TILE_COLUMNS, stop - start)
    positive, negative = np.zeros(width, np.int32), np.zeros(width, np.int32)
    above, below = np.zeros(width, np.float32), np.zeros(width, np.float32)
    highest, lowest = np.empty(width, np.float32), np.empty(width, np.float32)
    upper, lower = np.empty(width, np.float32), np.empty(width, np.float32)
    for left in range(start, stop, _TILE_COLUMNS):
        here = min(_TILE_COLUMNS, stop - left)
        for j in range(here):
            upper[j], lower[j] = top_values[0, left + j, top - 1], -top_values[1, left + j, top - 1]
        for begin in range(0, len(rows), _TILE_ROWS):
            end = min(begin + _TILE_ROWS, len(rows))
            highest[:] = 0
            lowest[:] = 0
            for number in range(begin, end):
                row = table[rows[number], left : left + here]
                for j in range(here):
                    a = row[j]
                    positive[j] += a > 0
                    negative[j] += a < 0
                    above[j] += max(a, np.float32(0))
                    below[j] += min(a, np.float32(0))
                for j in range(here):  # apart, or there are too many arrays for whole vectors
                    a = row[j]
                    highest[j] = a if a > highest[j] else highest[j]
                    lowest[j] = a if a < lowest[j] else lowest[j]
            for j in range(here):
                if highest[j] > upper[j] or lowest[j] < lower[j]:
                    for number in range(begin, end):
                        a = table[rows[number], left + j]
                        if a > upper[j]:
                            _enter(top_values, top_places, 0, left + j, a, first + number)
                            upper[j] = top_values[0, left + j, top - 1]
                        elif a < lower[j]:
                            _enter(top_values, top_places, 1, left + j, -a, first + number)
                            lower[j] = -top_values[1, left + j, top - 1]
            if end % _FLOAT_ROWS == 0 or end == len(rows):
                for j in range(here):
                    counts[0, left + j] += positive[j]
                    counts[1, left + j] += negative[j]
                    sums[0, left + j] += above[j]
                    sums[1, left + j] -= below[j]
                positive[:] = 0
                negative[:] = 0
                above[:] = 0
                below[:] = 0


@kernel
def _enter(values, places, side, j, value, place):  # type: ignore[no-untyped-def]
    """Put a value into its place in a falling list; what is last falls out. Equal ones keep their order."""
    at = values.shape[2] - 1
    while at > 0 and values[side, j, at - 1] < value:
        values[side, j, at] = values[side, j, at - 1]
        places[side, j, at] = places[side, j, at - 1]
        at -= 1
    values[side, j, at] = value
    places[side, j, at] = place


class ErrorSums:
    """Sums from which the explained variance of outputs follows, for several reconstructions at once.

    Parameters
    ----------
    width : d
    kinds : how many reconstructions
    definition : see :func:`explained_variance`
    centre : (d,) mean output over all tokens, which ``legacy_token_mean`` needs beforehand
    """

    def __init__(self, width: int, kinds: int, *, definition: Definition = "fvu", centre: Floats | None = None) -> None:
        if definition == "legacy_token_mean" and centre is None:
            raise BadInput("the mean output is not known yet", where="definition", mend="make a first pass for it")
        self.definition, self.centre = definition, None if centre is None else np.asarray(centre, np.float64)
        self.tokens = 0
        self.sum = np.zeros(width)
        self.square = 0.0
        self.error = np.zeros(kinds)
        self.ratio = np.zeros(kinds)

    def add(self, outputs: Floats, errors: Floats) -> None:
        """Take in a batch: outputs (tokens, d) and the squared errors of each reconstruction (tokens, kinds)."""
        wide = np.asarray(outputs, np.float64)
        self.tokens += len(wide)
        self.sum += wide.sum(axis=0)
        self.square += float(np.einsum("td,td->", wide, wide))
        self.error += np.asarray(errors, np.float64).sum(axis=0)
        if self.centre is not None:
            apart = ((wide - self.centre) ** 2).sum(axis=1)
            shares = np.divide(errors, apart[:, None], out=np.full(np.shape(errors), np.nan), where=apart[:, None] > 0)
            self.ratio += (1 - shares).sum(axis=0)

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """(kinds,) explained variance; NaN where the outputs do not vary."""
        if not self.tokens:
            return np.full(len(self.error), np.nan)
        if self.definition == "legacy_token_mean":
            return self.ratio / self.tokens
        mean = self.sum / self.tokens
        total = self.square / self.tokens - (0.0 if self.definition == "uncentred" else float(mean @ mean))
        # What is left of two equal sums is rounding, not variance.
        if total <= 1e-12 * self.square / self.tokens:
            return np.full(len(self.error), np.nan)
        return 1 - self.error / self.tokens / total


def explained_variance(outputs: Floats, reconstructions: Floats, *, definition: Definition = "fvu") -> float:
    """Share of the variance of the outputs that the reconstructions account for.

    Parameters
    ----------
    outputs, reconstructions : (tokens, d), in one unit
    definition : "fvu" - 1 - E|y - y'|^2 / (E|y|^2 - |E y|^2), all means over all tokens, the mean output taken for
        each dimension; "uncentred" - the mean output stays in, as SAELens and SAEBench 0.6 have it;
        "legacy_token_mean" - the mean over tokens of 1 - |y - y'|^2 / |y - E y|^2, as they had it before

    Returns
    -------
    at most 1; NaN where the outputs do not vary
    """
    given, made = np.asarray(outputs, np.float64), np.asarray(reconstructions, np.float64)
    if given.shape != made.shape or given.ndim != 2:
        raise BadInput(f"outputs are {given.shape}, reconstructions {made.shape}", mend="give two (tokens, d) arrays")
    centre = given.mean(axis=0) if definition == "legacy_token_mean" else None
    sums = ErrorSums(given.shape[1], 1, definition=definition, centre=centre)
    sums.add(given, ((given - made) ** 2).sum(axis=1, keepdims=True))
    return float(sums.values[0])


def largest(activations: Floats, k: int, weights: Floats | None = None) -> npt.NDArray[np.int64]:
    """(tokens, k) the memories with the largest |a|, or largest |a| times a weight, the largest first.

    Raises
    ------
    BadInput : k is not from 1 to m
    """
    m = activations.shape[1]
    _within(k, m)
    size = np.abs(activations) if weights is None else np.abs(activations) * weights
    chosen = np.argpartition(-size, k - 1, axis=1)[:, :k] if k < m else np.broadcast_to(np.arange(m), size.shape)
    order = np.argsort(-np.take_along_axis(size, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1).astype(np.int64)


def _within(k: int, m: int) -> None:
    if not 1 <= k <= m:
        raise BadInput(f"k is {k}, there are {m} features", where="k", mend=f"choose from 1 to {m}")


def k_term_errors(
    activations: Floats,
    values: Floats,
    outputs: Floats,
    ks: Sequence[int],
    weights: Floats | None = None,
    *,
    threads: int = 1,
) -> npt.NDArray[np.float64]:
    """Squared error of the outputs rebuilt from each token's k largest activations, for several k from one sort.

    Parameters
    ----------
    activations : (tokens, m) float32
    values : (m, d) float32
    outputs : (tokens, d) float32, less whatever is added besides
    ks : rising, from 1 to m
    weights : (m,) to choose by |a| times these; None for |a|
    threads : that share the tokens; the same numbers for any

    Returns
    -------
    (tokens, len(ks))
    """
    m = activations.shape[1]
    for k in ks:
        _within(k, m)
    errors = np.empty((len(activations), len(ks)))
    given, wanted = np.ascontiguousarray(activations, np.float32), np.ascontiguousarray(outputs, np.float32)
    sizes = np.ones(m, np.float32) if weights is None else np.asarray(weights, np.float32)
    rows, places = np.ascontiguousarray(values, np.float32), np.asarray(ks, np.int64)

    def some(tokens: range) -> None:
        few = slice(tokens.start, tokens.stop)
        _k_term_errors(given[few], sizes, rows, wanted[few], places, errors[few])

    in_threads(some, range(len(given)), threads)
    return errors


@kernel
def _k_term_errors(activations, weights, values, outputs, ks, errors):  # type: ignore[no-untyped-def]
    """Token by token; what is left of an output stays in the nearest cache while values are taken off, four at once."""
    n_tokens, m = activations.shape
    width = outputs.shape[1]
    rest = np.empty(width, np.float32)
    sizes = np.empty(m, np.float32)
    order, few = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    bins = np.empty(_SIZE_CLASSES, np.int64)
    floor = np.uint32(0)
    for token in range(n_tokens):
        row = activations[token]
        for j in range(m):
            sizes[j] = abs(row[j]) * weights[j]
        floor = _rank_largest(sizes, ks[-1], floor, order, few, bins)
        for i in range(width):
            rest[i] = outputs[token, i]
        done = 0
        for place in range(len(ks)):
            while done + 4 <= ks[place]:
                first, second, third, fourth = order[done], order[done + 1], order[done + 2], order[done + 3]
                a, b, c, d = row[first], row[second], row[third], row[fourth]
                v, w, x, y = values[first], values[second], values[third], values[fourth]
                for i in range(width):
                    rest[i] -= (a * v[i] + b * w[i]) + (c * x[i] + d * y[i])
                done += 4
            while done < ks[place]:
                a, v = row[order[done]], values[order[done]]
                for i in range(width):
                    rest[i] -= a * v[i]
                done += 1
            errors[token, place] = _square(rest)


@kernel
def _square(vector):  # type: ignore[no-untyped-def]
    """Sum of squares in float64, in four sums that do not wait for one another."""
    a = b = c = d = 0.0
    whole = len(vector) - len(vector) % 4
    for i in range(0, whole, 4):
        a += np.float64(vector[i]) * vector[i]
        b += np.float64(vector[i + 1]) * vector[i + 1]
        c += np.float64(vector[i + 2]) * vector[i + 2]
        d += np.float64(vector[i + 3]) * vector[i + 3]
    for i in range(whole, len(vector)):
        a += np.float64(vector[i]) * vector[i]
    return (a + b) + (c + d)


@kernel
def _rank_largest(sizes, most, guess, order, few, bins):  # type: ignore[no-untyped-def]
    """Write the places of the ``most`` largest sizes into ``order``, the largest first, equal ones as they stand.

    Sizes are not negative, so that they are ordered as their bits are. Bits above which a few more than enough lie are
    found by halving, from a ``guess``: those of the last token, which are returned, are seldom far off. Each step
    counts on whole vectors; the few that are left are sorted by exponent and three digits, and then by insertion.
    """
    bits = sizes.view(np.uint32)
    m = len(sizes)
    low, high, at = np.uint32(0), np.uint32(0xFFFFFFFF), guess
    while True:
        count = np.int32(0)
        for j in range(m):
            count += np.int32(bits[j] >= at)
        if count < most:
            high = at
        else:
            low = at
            if count <= most + most // 4 + 4 or high - low <= 1:
                break
        at = low + (high - low) // np.uint32(2)
    kept = 0
    for j in range(m):
        few[kept] = j
        kept += bits[j] >= low
    first, last = low >> np.uint32(20), low >> np.uint32(20)
    for place in range(kept):
        last = max(last, bits[few[place]] >> np.uint32(20))
    span = np.int64(last - first)
    bins[: span + 1] = 0
    for place in range(kept):
        bins[span - np.int64((bits[few[place]] >> np.uint32(20)) - first)] += 1
    before = np.int64(0)
    for i in range(span + 1):
        here = bins[i]
        bins[i] = before
        before += here
    for place in range(kept):
        bin_here = span - np.int64((bits[few[place]] >> np.uint32(20)) - first)
        order[bins[bin_here]] = few[place]
        bins[bin_here] += 1
    for i in range(1, kept):
        j, at_last = order[i], i
        while at_last > 0 and bits[order[at_last - 1]] < bits[j]:
            order[at_last] = order[at_last - 1]
            at_last -= 1
        order[at_last] = j
    return low


def contributions(activations: Floats, values: Floats, direction: Floats) -> npt.NDArray[np.float64]:
    """What each feature adds to a read-out of the output: ``a_i (V_i . p)``; these sum to ``(y - b) . p`` exactly.

    A cosine in place of the dot product, as the benchmark has it, is right for values of length 1 alone.

    Parameters
    ----------
    activations : (tokens, m)
    values : (m, d)
    direction : (d,) p

    Returns
    -------
    (tokens, m)
    """
    return np.asarray(activations, np.float64) * (np.asarray(values, np.float64) @ np.asarray(direction, np.float64))


def written_words(
    values: Floats, unembedding: Floats, *, gain: Floats | None = None, top: int = 10
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The tokens that each value raises most and lowers most at the output layer (Geva et al. 2022).

    Parameters
    ----------
    values : (m, d)
    unembedding : (words, d)
    gain : (d,) gain of the final norm; 1 by default
    top : how many of each

    Returns
    -------
    two (m, top) arrays of token ids: promoted, the most first; demoted, the most first
    """
    scaled = np.asarray(values, np.float32) if gain is None else np.asarray(values * gain, np.float32)
    top = min(top, len(unembedding))
    promoted = np.empty((len(scaled), top), np.int64)
    demoted = np.empty_like(promoted)
    rows = max(1, 16_000_000 // len(unembedding))  # logits held at once: 64 MB
    for start in range(0, len(scaled), rows):
        logits = scaled[start : start + rows] @ unembedding.T
        for sign, found in ((-1, promoted), (1, demoted)):
            chosen = np.argpartition(sign * logits, top - 1, axis=1)[:, :top]
            order = np.argsort(sign * np.take_along_axis(logits, chosen, axis=1), axis=1, kind="stable")
            found[start : start + rows] = np.take_along_axis(chosen, order, axis=1)
    return promoted, demoted
