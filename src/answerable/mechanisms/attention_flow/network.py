"""From attention patterns, as models give them, to the capacities of a flow network; all that can be wrong with them
is found here.

Layer 1 is the one nearest the embeddings; row i of a pattern is what query i takes from each key, and sums to at most
1. Capacity ``[l - 1, i, k]`` joins position i after layer l to position k before it, so flow runs from an output down
to the inputs.

With the residual stream (Abnar & Zuidema 2020) a layer becomes A + I with rows divided by their sum, half of every
row going straight down. FlowPrune (Xu et al. 2025) leaves it out; ``residual=False`` does as they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from answerable.compiled import kernel
from answerable.errors import BadInput

Array = np.ndarray[Any, Any]

ROW_SUM_SLACK = 1e-4  # how far above 1 a row of a float32 softmax may sum


class Capacities(NamedTuple):
    """The flow network of one text."""

    down: Array  # (L, n, n) float64, from the output down: the last layer first, so that the solver need not copy
    causal: bool  # no capacity from a position to a later one
    positions: Array  # (n,) int64, the kept positions in the patterns as given
    numbers: Array  # (L,) int64, the layers' numbers in the model, from 1, ascending
    notes: tuple[str, ...]  # what was mended or is unusual, one sentence each

    @property
    def layers(self) -> Array:
        """(L, n, n) float64, layer 1 first."""
        return self.down[::-1]


def read_capacities(
    attentions: Any,
    *,
    residual: bool = True,
    heads: Literal["mean", "max"] | int | Sequence[int] = "mean",
    layers: Iterable[int] | None = None,
    causal: Literal["auto"] | bool = "auto",
    normalise: bool = False,
) -> Capacities:
    """Check attention patterns and turn them into capacities.

    Parameters
    ----------
    attentions : (L, n, n) or (L, H, n, n), layer 1 first, rows = queries
        A numpy array or torch tensor of any float type, or a list of one per layer; a batch axis of length 1 is
        dropped.
    residual : whether half of every row goes straight down (A + I, rows divided by their sum)
    heads : "mean", "max" (rows are then divided by their sum), or the number(s) of heads to average, from 0
    layers : numbers of the layers to keep, from 1, ascending; all by default
    causal : whether no position may draw on a later one; "auto" looks
    normalise : divide every row by its sum instead of refusing rows that sum to more than 1

    Raises
    ------
    BadInput
        for anything that is no attention pattern, naming layer, head and row
    """
    patterns = patterns_of(attentions)
    numbers = _chosen_layers(layers, len(patterns))
    patterns = [patterns[number - 1] for number in numbers]
    padded = _padded_positions(patterns)
    notes = []
    if len(padded):
        notes.append(f"Positions {_listed(padded)} hold only NaN (padding) and were left out.")
    kept = np.setdiff1d(np.arange(patterns[0].shape[-1]), padded)
    if not len(kept):
        raise BadInput("every row is NaN", where="attentions", mend="give at least one position that is not padding")
    down = np.empty((len(patterns), len(kept), len(kept)))
    layers_up = down[::-1]
    smallest_sum = 1.0
    for layer, (number, pattern) in enumerate(zip(numbers, patterns, strict=True)):
        if len(padded):
            pattern = pattern[..., kept[:, None], kept]
        smallest_sum = min(smallest_sum, _check(pattern, number, kept, may_exceed=normalise))
        layers_up[layer] = _one_head(pattern, heads, number)
        joined_by_max = isinstance(heads, str) and heads == "max" and pattern.ndim == 3
        # What float32 rounding leaves above 1 goes too: rollout is a lower bound only where no row exceeds 1.
        _divide_by_row_sums(layers_up[layer], above=0.0 if normalise or joined_by_max else 1.0)
    if smallest_sum < 1 - ROW_SUM_SLACK and not normalise:
        notes.append(
            f"Some rows sum to less than 1 (least {smallest_sum:.3g}): the rest goes to a sink outside the text."
        )
    is_causal = _causality(down, causal, numbers[::-1], kept)
    if residual:
        diagonal = np.arange(len(kept))
        down[:, diagonal, diagonal] += 1.0
        for pattern in down:
            _divide_by_row_sums(pattern)
    return Capacities(down, is_causal, kept, np.array(numbers, np.int64), tuple(notes))


def uniform_capacities(n_layers: int, n_tokens: int, *, residual: bool, causal: bool) -> Array:
    """The null network, from the output down: every query attends equally to all it may see; (L, n, n) float64."""
    pattern = np.tri(n_tokens) if causal else np.ones((n_tokens, n_tokens))
    pattern /= pattern.sum(axis=1, keepdims=True)
    if residual:
        pattern = (pattern + np.eye(n_tokens)) / 2
    return np.repeat(pattern[None], n_layers, axis=0)


def patterns_of(attentions: Any) -> list[Array]:
    """One array per layer, (n, n) or (H, n, n), all of the same n."""
    if attentions is None:
        raise _no_patterns("attentions")
    try:
        given = list(attentions)
    except TypeError:
        raise BadInput(
            f"{type(attentions).__name__} is no list or array of attention patterns",
            where="attentions",
            mend="give an array (layers, tokens, tokens) or (layers, heads, tokens, tokens)",
        ) from None
    if not given:
        raise BadInput("there is no layer", where="attentions", mend="give at least one attention pattern")
    missing = [str(number) for number, layer in enumerate(given, 1) if layer is None]
    if missing:
        if len(missing) == len(given):
            raise _no_patterns("attentions")
        raise BadInput(
            "there is no attention pattern (a linear-attention or state-space layer has none)",
            where=f"attentions, layer {', '.join(missing)}",
            mend="leave out the layers without one by layers=[...]; flow through them cannot be told",
        )
    patterns = [_as_array(layer, number) for number, layer in enumerate(given, 1)]
    n = patterns[0].shape[-1]
    for number, pattern in enumerate(patterns, 1):
        if pattern.shape[-1] != n:
            raise BadInput(
                f"layer 1 has {n} tokens and layer {number} has {pattern.shape[-1]}",
                where="attentions",
                mend="give the patterns of one text",
            )
    return patterns


def _no_patterns(where: str) -> BadInput:
    return BadInput(
        "there are no attention patterns (None): the model was not loaded with eager attention",
        where=where,
        mend='load it with attn_implementation="eager" and call it with output_attentions=True',
    )


def _as_array(layer: Any, number: int) -> Array:
    where = f"attentions, layer {number}"
    if hasattr(layer, "detach"):  # a torch tensor, whatever its device; bfloat16 has no numpy type
        layer = layer.detach().cpu()
        layer = (layer if str(layer.dtype) == "torch.float64" else layer.float()).numpy()
    try:
        pattern = np.asarray(layer)
    except ValueError:
        raise BadInput("rows differ in length", where=where, mend="give a full square of numbers") from None
    if pattern.dtype.kind not in "fiub":
        raise BadInput(f"holds {pattern.dtype}, not real numbers", where=where, mend="give float32 or float64")
    if pattern.dtype != np.float64 and pattern.dtype != np.float32:
        pattern = pattern.astype(np.float64)
    if pattern.ndim == 4:
        if pattern.shape[0] != 1:
            raise BadInput(f"holds a batch of {pattern.shape[0]} texts", where=where, mend="give one text at a time")
        pattern = pattern[0]
    if pattern.ndim not in (2, 3):
        raise BadInput(
            f"has shape {pattern.shape}", where=where, mend="give (tokens, tokens) or (heads, tokens, tokens)"
        )
    if pattern.shape[-1] != pattern.shape[-2]:
        raise BadInput(
            f"has {pattern.shape[-2]} queries and {pattern.shape[-1]} keys",
            where=where,
            mend="run the whole text at once, without a cache; cross-attention has no flow back to its own text",
        )
    if 0 in pattern.shape:
        raise BadInput(f"is empty (shape {pattern.shape})", where=where, mend="give at least one token and one head")
    return pattern


def _chosen_layers(layers: Iterable[int] | None, n_layers: int) -> list[int]:
    if layers is None:
        return list(range(1, n_layers + 1))
    chosen = [int(number) for number in layers]
    if not chosen:
        raise BadInput("no layer is chosen", where="layers", mend=f"choose from 1 to {n_layers}")
    for before, number in zip([0, *chosen], chosen, strict=False):
        if not 1 <= number <= n_layers:
            raise BadInput(f"there is no layer {number}", where="layers", mend=f"choose from 1 to {n_layers}")
        if number <= before:
            raise BadInput(
                f"layer {number} follows layer {before}", where="layers", mend="list each layer once, ascending"
            )
    return chosen


def _padded_positions(patterns: Sequence[Array]) -> Array:
    """Positions whose whole row is NaN in every layer and head."""
    padded = np.ones(patterns[0].shape[-1], bool)
    for pattern in patterns:
        # the first key alone rules nearly every position out, without reading the pattern
        padded &= np.isnan(pattern[..., 0]).reshape(-1, len(padded)).all(axis=0)
        if not padded.any():
            return np.empty(0, np.int64)
    for pattern in patterns:
        padded &= np.isnan(pattern).all(axis=-1).reshape(-1, len(padded)).all(axis=0)
    return np.flatnonzero(padded)


@kernel
def _first_fault(pattern: Array, largest_sum: float) -> tuple[int, int, int, int, float, float]:
    """First fault of (H, n, n): kind (0 none, 1 not finite, 2 negative, 3 sum), head, row, key, value; least sum."""
    smallest = np.inf
    for head in range(pattern.shape[0]):
        for i in range(pattern.shape[1]):
            total, least = 0.0, 0.0
            row = pattern[head, i]
            for k in range(row.size):
                total += row[k]
                least = min(least, row[k])
            if not np.isfinite(total) or least < 0.0:
                for k in range(row.size):
                    if not np.isfinite(row[k]):
                        return 1, head, i, k, row[k], smallest
                for k in range(row.size):
                    if row[k] < 0.0:
                        return 2, head, i, k, row[k], smallest
            if total > largest_sum:
                return 3, head, i, 0, total, smallest
            smallest = min(smallest, total)
    return 0, 0, 0, 0, 0.0, smallest


def _check(pattern: Array, number: int, kept: Array, *, may_exceed: bool) -> float:
    """Refuse what is no attention pattern; returns the smallest row sum."""
    heads = pattern if pattern.ndim == 3 else pattern[None]
    largest = np.inf if may_exceed else 1.0 + ROW_SUM_SLACK
    kind, head, row, key, value, smallest = _first_fault(np.ascontiguousarray(heads), largest)
    if not kind:
        return float(smallest)
    where = f"attentions, layer {number}, " + (f"head {head}, " if pattern.ndim == 3 else "") + f"row {kept[row]}"
    if kind == 1:
        raise BadInput(
            f"{value} stands in column {kept[key]}",
            where=where,
            mend="run the model in float32; float16 overflows and fully masked rows divide 0 by 0",
        )
    if kind == 2:
        raise BadInput(
            f"{value:.6g} in column {kept[key]} is below 0", where=where, mend="give weights after the softmax"
        )
    raise BadInput(
        f"the weights sum to {value:.6g}, more than 1",
        where=where,
        mend="switch dropout off (model.eval()), or divide every row by its sum with normalise=True",
    )


def _one_head(pattern: Array, heads: str | int | Sequence[int], number: int) -> Array:
    """(n, n) float64 from (n, n) or (H, n, n)."""
    if isinstance(heads, str) and heads not in ("mean", "max"):
        raise BadInput(f"{heads!r} is no way to join heads", where="heads", mend='give "mean", "max" or head numbers')
    if pattern.ndim == 2:
        if not isinstance(heads, str):
            raise BadInput(
                "the patterns hold no separate heads",
                where=f"attentions, layer {number}",
                mend='give (layers, heads, tokens, tokens) or heads="mean"',
            )
        return pattern.astype(np.float64)
    if isinstance(heads, str):
        return pattern.mean(axis=0, dtype=np.float64) if heads == "mean" else pattern.max(axis=0).astype(np.float64)
    chosen = [heads] if isinstance(heads, int | np.integer) else list(heads)
    if not chosen:
        raise BadInput("no head is chosen", where="heads", mend=f"choose from 0 to {len(pattern) - 1}")
    for head in chosen:
        if not 0 <= head < len(pattern):
            raise BadInput(
                f"there is no head {head} in layer {number}", where="heads", mend=f"choose from 0 to {len(pattern) - 1}"
            )
    return pattern[chosen].mean(axis=0, dtype=np.float64)


def _divide_by_row_sums(layer: Array, *, above: float = 0.0) -> None:
    """In place, rows that sum to more than ``above``."""
    sums = layer.sum(axis=1, keepdims=True)
    divide = sums > above
    if divide.any():
        layer /= np.where(divide, sums, 1.0)


@kernel
def _first_above_diagonal(layers: Array) -> tuple[int, int, int]:
    for layer in range(layers.shape[0]):
        for i in range(layers.shape[1]):
            for k in range(i + 1, layers.shape[2]):
                if layers[layer, i, k] != 0.0:
                    return layer, i, k
    return -1, -1, -1


def _causality(layers: Array, causal: str | bool, numbers: Sequence[int], kept: Array) -> bool:
    if causal not in ("auto", True, False):
        raise BadInput(f"{causal!r} is neither true, false nor 'auto'", where="causal", mend="choose one of the three")
    if causal is False:
        return False
    layer, row, key = _first_above_diagonal(layers)
    if layer < 0:
        return True
    if causal == "auto":
        return False
    raise BadInput(
        f"{layers[layer, row, key]:.6g} in column {kept[key]} looks ahead, which a causal mask forbids",
        where=f"attentions, layer {numbers[layer]}, row {kept[row]}",
        mend='give causal=False or causal="auto"',
    )


def _listed(positions: Array) -> str:
    shown = ", ".join(str(position) for position in positions[:8])
    return shown if len(positions) <= 8 else f"{shown} and {len(positions) - 8} more"
