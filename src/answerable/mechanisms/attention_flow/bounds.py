"""What is known about an attention flow without solving it: one lower bound and three upper bounds.

- Rollout (Abnar & Zuidema 2020) is a lower bound: sending mass down in proportion to the weights is a flow, and no
  node ever holds more than 1.
- The end cuts: nothing exceeds what leaves the source or what enters the sink.
- The staircase (causal networks): for every m, the source's arcs to positions above m together with the sink's arcs
  from positions up to m are a cut, because nothing leads from a low position to a higher one. It equals FlowPrune's
  strongest compression, in which all middle layers become one, whenever these join every position to all earlier ones
  - as a softmax does.
- The layer-by-layer bounds let nodes share capacity freely in all layers but one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from answerable.compiled import kernel
from answerable.errors import BadInput

from .network import Array, Capacities, patterns_of, read_capacities

Heads = Literal["mean", "max"] | int | Sequence[int]


def attention_rollout(
    attentions: Any,
    *,
    residual: bool = True,
    heads: Heads = "mean",
    layers: Iterable[int] | None = None,
    normalise: bool = False,
) -> Array:
    """Attention rollout: the product of the layers' matrices, last layer on the left.

    Parameters
    ----------
    attentions, residual, heads, layers, normalise
        as in :func:`attention_flow`

    Returns
    -------
    (n, n) float64
        Row t is what output t receives from each input; entrywise at most the attention flow. Over many layers most
        entries are tiny (1e-20 and less is usual): look at them on a logarithmic scale.

    Raises
    ------
    BadInput
        for patterns that are none; see :func:`attention_flow`

    References
    ----------
    Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
    """
    capacities = read_capacities(attentions, residual=residual, heads=heads, layers=layers, normalise=normalise)
    product = capacities.down[0]
    for layer in capacities.down[1:]:
        product = product @ layer
    return product.copy() if len(capacities.down) == 1 else product


def rollout_from(down: Array, source: int) -> Array:
    """Row ``source`` of the rollout, (n,), without the rest of it."""
    mass = down[0, source]
    for layer in down[1:]:
        mass = mass @ layer
    return mass.copy()


def staircase_bound(
    attentions: Any,
    source: int = -1,
    *,
    residual: bool = True,
    heads: Heads = "mean",
    layers: Iterable[int] | None = None,
    causal: Literal["auto"] | bool = "auto",
    normalise: bool = False,
) -> Array:
    """Upper bound on the attention flow from one output to every input, read from the first and the last layer alone.

    Parameters
    ----------
    attentions, residual, heads, layers, causal, normalise
        as in :func:`attention_flow`; of the middle layers only the causal mask is looked at
    source : position of the output, negative from the end

    Returns
    -------
    (n,) float64
        In a causal network the staircase bound, otherwise the smaller end cut; with a single layer the flow itself.

    Raises
    ------
    BadInput
        for patterns that are none or a source outside the text
    """
    ends = read_ends(attentions, residual=residual, heads=heads, layers=layers, causal=causal, normalise=normalise)
    return end_bound(ends, position_in(ends, source))


def read_ends(
    attentions: Any,
    *,
    residual: bool,
    heads: Heads,
    layers: Iterable[int] | None,
    causal: Literal["auto"] | bool,
    normalise: bool,
) -> Capacities:
    """The capacities of the first and last layer only, with the causality of all."""
    patterns = patterns_of(attentions)
    numbers = list(range(1, len(patterns) + 1)) if layers is None else list(layers)
    ends = numbers if len(numbers) < 2 else [numbers[0], numbers[-1]]
    if causal == "auto":
        between = [patterns[number - 1] for number in numbers[1:-1] if 1 <= number <= len(patterns)]
        if any(_looks_ahead(pattern) for pattern in between):
            causal = False
    return read_capacities(patterns, residual=residual, heads=heads, layers=ends, causal=causal, normalise=normalise)


def _looks_ahead(pattern: Array) -> bool:
    """Whether (n, n) or (H, n, n) weights hold anything above the diagonal."""
    n = pattern.shape[-1]
    heads = np.ascontiguousarray(pattern).reshape(-1, n, n)
    # Integers vectorise and floats do not; the one thing that their bits tell wrongly is a negative zero.
    return bool(_bits_ahead(heads.view(np.int32 if heads.dtype == np.float32 else np.int64))) and bool(
        np.triu(heads, 1).any()
    )


def position_in(capacities: Capacities, source: int, where: str = "source") -> int:
    """Index of a position of the text among the kept ones.

    Raises
    ------
    BadInput
        if it lies outside the text or was left out as padding
    """
    n = int(capacities.positions[-1]) + 1
    position = source + n if source < 0 else source
    found = np.flatnonzero(capacities.positions == position)
    if not len(found):
        what = "was left out as padding" if 0 <= position < n else "lies outside the text"
        raise BadInput(f"position {source} {what}", where=where, mend=f"choose from 0 to {n - 1}, or -{n} to -1")
    return int(found[0])


def end_bound(capacities: Capacities, source: int) -> Array:
    """(n,) the least cut through the two ends, for every single sink."""
    down = capacities.down
    if len(down) == 1:
        return down[0, source].copy()
    supply, first = down[0, source], down[-1]
    if capacities.causal:
        return _staircase(supply, first, source)
    return np.minimum(supply.sum(), first.sum(axis=0))


@kernel
def _staircase(supply: Array, first: Array, source: int) -> Array:
    """Least over m of (supply above m) + (arcs into j from j .. m), for every j; row by row, so that it vectorises."""
    above = np.zeros(source + 2)
    for i in range(source, -1, -1):
        above[i] = above[i + 1] + supply[i]
    bound = np.zeros(supply.size)
    entering = np.zeros(source + 1)
    for j in range(source + 1):
        bound[j] = above[j]
    for m in range(source + 1):
        for j in range(m + 1):
            entering[j] += first[m, j]
            bound[j] = min(bound[j], above[m + 1] + entering[j])
    return bound


@kernel
def _bits_ahead(heads: Array) -> int:
    bits = 0
    for head in range(heads.shape[0]):
        for i in range(heads.shape[1]):
            row = heads[head, i, i + 1 :]  # a slice, because an index that might be negative keeps the loop scalar
            for k in range(row.size):
                bits |= row[k]
    return bits


def layer_bounds(capacities: Capacities, source: int) -> Array:
    """(n,) the least of the layer-by-layer bounds, for every single sink.

    With h_l(i) the most that position i after layer l could send to the sink, and f_l(k) the most that could reach
    position k after layer l, if no capacity below (or above) were shared: the bounds are h_L(source), sum_k
    min(f_l(k), h_l(k)) and sum_ik min(C_l[i, k], f_l(i), h_l-1(k)) for every layer l.
    """
    return _layer_bounds(capacities.down, source, capacities.causal)


@kernel
def _layer_bounds(down: Array, source: int, causal: bool) -> Array:
    n_layers, n = down.shape[0], down.shape[1]
    bounds = np.zeros(n)
    reach, send = np.empty((n_layers + 1, n)), np.empty((n_layers + 1, n))  # row p: nodes above layer matrix down[p]
    for j in range((source if causal else n - 1) + 1):
        low, high = (j, source) if causal else (0, n - 1)
        reach[0, :] = 0.0
        reach[0, source] = np.inf
        send[n_layers, :] = 0.0
        send[n_layers, j] = np.inf
        for p in range(n_layers):
            for k in range(low, high + 1):
                reach[p + 1, k] = 0.0
            for i in range(low, high + 1):
                for k in range(low, high + 1):
                    reach[p + 1, k] += min(down[p, i, k], reach[p, i])
        for p in range(n_layers - 1, -1, -1):
            for i in range(low, high + 1):
                total = 0.0
                for k in range(low, high + 1):
                    total += min(down[p, i, k], send[p + 1, k])
                send[p, i] = total
        best = send[0, source]
        for p in range(n_layers + 1):
            if 0 < p < n_layers:
                through = 0.0
                for i in range(low, high + 1):
                    through += min(reach[p, i], send[p, i])
                best = min(best, through)
            if p < n_layers:
                through = 0.0
                for i in range(low, high + 1):
                    for k in range(low, high + 1):
                        through += min(down[p, i, k], reach[p, i], send[p + 1, k])
                best = min(best, through)
        bounds[j] = best
    return bounds
