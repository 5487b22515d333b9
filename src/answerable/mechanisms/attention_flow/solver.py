"""Attention flow: which input tokens an output position can draw on through all layers, as certified maximum flows.

The network (Abnar & Zuidema 2020): node (l, i) is position i after layer l; an arc of capacity C_l[i, k] leads from
(l, i) to (l - 1, k). The attention flow F[t, j] is the value of the maximum flow from the single source (L, t) to the
single sink (0, j), one problem for each pair; the flows of one output are separate, so their sum lies between 1 and
n.

Every exact value comes with a flow that reaches it and a cut that no flow can exceed. Where FlowPrune (Xu et al.
2025) estimates, ``method`` gives an interval instead. Departures from both papers: layers are composed in the order
in which the model applies them; the residual stream is part of the network unless ``residual=False``; merged layers
bound the flow from above, pruned arcs from below, and the two are never mixed into one number that is neither.

This file holds the front door and its result; ``network`` reads and checks, ``flows`` and ``maximum_flow`` solve,
``bounds`` bounds, ``pruning`` holds FlowPrune's two cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from answerable.compiled import usable_cores
from answerable.errors import BadInput

from . import pruning
from .bounds import Heads, end_bound, position_in, read_ends, rollout_from
from .flows import demand_of, demands_of, flows_from, network_of
from .maximum_flow import Solution, end_cut, solution
from .network import Array, Capacities, patterns_of, read_capacities, uniform_capacities

Method = Literal["exact", "staircase", "compressed", "pruned"]

CERTIFIED = 1e-12  # a flow and a cut this close prove each other
LARGE = 4096  # tokens beyond which an exact answer takes minutes and gigabytes
SECONDS_PER_ARC = 2e-9  # measured: one core, per arc of a sink's window


class CutArc(NamedTuple):
    """One arc of a minimum cut."""

    layer: int  # its layer's number, from 1
    query: int  # position it comes from
    key: int  # position it leads to
    capacity: float


class Path(NamedTuple):
    """One path of a flow."""

    flow: float
    positions: tuple[int, ...]  # L + 1 positions, from the output down to the input


@dataclass(frozen=True)
class AttentionFlow:
    """Attention flows from one output (or several) to inputs.

    Arrays have one entry per sink, with a leading axis for sources if a list of sources was asked for.

    Attributes
    ----------
    flow : float64, the maximum flow; with ``method="staircase"`` or ``"compressed"`` an upper bound, with
        ``"pruned"`` a lower one
    share : float64, ``flow`` divided by its sum over the sinks
    lower, upper : float64, certified: the value of a flow that was found and the capacity of a cut, or proved bounds
    certified : bool, whether the two meet within 1e-12
    cut_layer : int64, number of the layer that holds most of the minimum cut's capacity (ties: nearest the output); 0
        where there is
        no flow to cut or no cut is known
    cut_kind : str, where the cut lies: "source" (all in the last layer), "sink" (all in the first), "ends" (in these
        two), "inside",
        or "none"
    cut_capacity : float64, (.., L) capacity of the cut in each layer, layer 1 first
    null : float64, the same number if every query attended equally to all it may see, or None
    rollout : float64, attention rollout, a lower bound
    sources : int64, positions of the outputs
    sinks : the sets of positions, one tuple per sink
    positions : int64, kept positions of the text (all, unless some were padding)
    layers : int64, numbers of the layers, from 1
    causal : bool
    method : how the flow was found
    notes : what was mended or is unusual, one sentence each
    """

    flow: Array
    share: Array
    lower: Array
    upper: Array
    certified: Array
    cut_layer: Array
    cut_kind: Array
    cut_capacity: Array
    null: Array | None
    rollout: Array
    sources: Array
    sinks: tuple[tuple[int, ...], ...]
    positions: Array
    layers: Array
    causal: bool
    method: Method
    notes: tuple[str, ...]
    _capacities: Capacities = field(repr=False)

    @property
    def excess(self) -> Array | None:
        """Flow above that of the null network, or None without one."""
        return None if self.null is None else self.flow - self.null

    def cut(self, j: int, source: int | None = None) -> list[CutArc]:
        """The arcs of a minimum cut for sink ``j``; their capacities sum to the exact flow.

        Parameters
        ----------
        j : index of the sink (its position, unless ``sinks`` was given or padding left out)
        source : position of the output, where several were asked for

        Returns
        -------
        list of :class:`CutArc`, largest capacity first
        """
        capacities = self._capacities
        start, members = self._source_index(source), self._members(j)
        if len(capacities.down) == 1:
            arcs = [(0, start, k, capacities.down[0, start, k]) for k in members]
        else:
            network = network_of(capacities, start)
            found = solution(network, *demand_of(capacities, members))
            arcs = list(_arcs_across(capacities, start, members, found.source_side))
        named = [
            CutArc(int(self.layers[len(capacities.down) - 1 - p]), self._position(i), self._position(k), float(c))
            for p, i, k, c in arcs
            if c > 0
        ]
        return sorted(named, key=lambda arc: (-arc.capacity, -arc.layer, arc.query, arc.key))

    def arcs(self, j: int, source: int | None = None) -> Array:
        """The flow to sink ``j`` on every arc, (L, n, n), layer 1 first: within capacity, conserved in every node."""
        return self._flow_down(j, source)[::-1]

    def paths(self, j: int, top: int = 10, source: int | None = None) -> list[Path]:
        """The flow to sink ``j`` taken apart into paths, widest first.

        Parameters
        ----------
        j : index of the sink
        top : how many paths at most
        source : position of the output, where several were asked for

        Returns
        -------
        list of :class:`Path`; a maximum flow may be taken apart in several ways, this one is greedy and always the same
        """
        left = self._flow_down(j, source)
        start = self._source_index(source)
        found: list[Path] = []
        while len(found) < top:
            width, indices = _widest_path(left, start, self._members(j))
            if width <= CERTIFIED:
                break
            for p in range(len(left)):
                left[p, indices[p], indices[p + 1]] -= width
            found.append(Path(float(width), tuple(self._position(i) for i in indices)))
        return found

    def _flow_down(self, j: int, source: int | None) -> Array:
        start, members = self._source_index(source), self._members(j)
        down = self._capacities.down
        on_arcs = np.zeros_like(down)
        if len(down) == 1:
            on_arcs[0, start, members] = down[0, start, members]
            return on_arcs
        found: Solution = solution(network_of(self._capacities, start), *demand_of(self._capacities, members))
        on_arcs[0, start] = found.supply
        on_arcs[1:-1] = found.middle
        # arcs into the members of a sink set share what reaches the set, filled up one after the other
        left = found.demand.copy()
        for k in members:
            on_arcs[-1, :, k] = np.minimum(left, down[-1, :, k])
            left -= on_arcs[-1, :, k]
        return on_arcs

    def _source_index(self, source: int | None) -> int:
        if self.method == "staircase":
            raise BadInput("only the first and last layer were read", where="method", mend='ask with method="exact"')
        if source is None:
            if len(self.sources) > 1:
                raise BadInput("several outputs were asked for", where="source", mend="name one of them")
            source = int(self.sources[0])
        return position_in(self._capacities, source)

    def _members(self, j: int) -> list[int]:
        if not -len(self.sinks) <= j < len(self.sinks):
            raise BadInput(f"there is no sink {j}", where="j", mend=f"choose from 0 to {len(self.sinks) - 1}")
        return [int(np.flatnonzero(self.positions == position)[0]) for position in self.sinks[j]]

    def _position(self, index: int) -> int:
        return int(self.positions[index])


def attention_flow(
    attentions: Any,
    source: int | Sequence[int] = -1,
    *,
    sinks: Sequence[int | Sequence[int]] | None = None,
    residual: bool = True,
    heads: Heads = "mean",
    layers: Iterable[int] | None = None,
    causal: Literal["auto"] | bool = "auto",
    method: Method = "exact",
    null: bool = True,
    normalise: bool = False,
    retain: float = 0.5,
    threshold: float = 1e-6,
    threads: int | None = None,
    allow_large: bool = False,
) -> AttentionFlow:
    """Maximum flows from an output position to input tokens, through all layers, each with its proof.

    Parameters
    ----------
    attentions : (L, n, n) or (L, H, n, n), layer 1 (nearest the embeddings) first, rows = queries
        Attention patterns after the softmax: numpy array, torch tensor of any device and float type, or a list of one
        per layer as transformers returns it (a batch axis of length 1 is dropped).
    source : position of the output, negative from the end; a list for a table of pairs
    sinks : positions, or sets of them (one flow to the whole set, as for a word of several tokens); every position by
        default
    residual : whether half of every row goes straight down (A + I, rows divided by their sum)
    heads : "mean", "max" (rows are then divided by their sum), or the number(s) of heads to average, from 0
    layers : numbers of the layers to keep, from 1, ascending; all by default
    causal : whether no position may draw on a later one; "auto" looks
    method : "exact"; "staircase" (both ends only), "compressed" (FlowPrune's merged layers, capacity 1) and "pruned"
        (arcs below
        ``threshold`` left out) give proved intervals
    null : whether to solve the network of uniform attention too
    normalise : divide every row by its sum instead of refusing rows that sum to more than 1
    retain : share of layers that "compressed" keeps, in (0, 1]
    threshold : capacity below which "pruned" leaves an arc out, in [0, 1)
    threads : sinks solved at once, all usable cores by default; changes no bit of the result
    allow_large : solve more than 4096 tokens exactly, however long it takes

    Returns
    -------
    AttentionFlow

    Raises
    ------
    BadInput
        naming layer, head and row: patterns that are missing, not square, of unequal size, NaN (except padding, whose
        positions are left out), negative, summing to more than 1, or looking ahead under ``causal=True``; a source,
        sink, layer or head that does not exist; more than 4096 tokens without ``allow_large``
    ValueError
        for a ``retain``, ``threshold``, ``method`` or ``threads`` outside its range

    Notes
    -----
    Dinic's algorithm on the window that can carry flow; a sink is done as soon as its flow meets the staircase cut.
    Memory: 8 L n^2 bytes for the capacities and once more for each thread.

    References
    ----------
    Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
    Xu, Chen, Lin, Geng and Yang, "FlowPrune: Accelerating Attention Flow Calculation by Pruning Flow Network",
    NeurIPS 2025.

    Examples
    --------
    >>> import numpy as np
    >>> first = [[1, 0, 0], [0.5, 0.5, 0], [0.1, 0.1, 0.8]]
    >>> last = [[1, 0, 0], [0.9, 0.1, 0], [0.2, 0.5, 0.3]]
    >>> attention_flow([first, last], residual=False).flow.round(3).tolist()
    [0.8, 0.6, 0.3]
    """
    if method not in ("exact", "staircase", "compressed", "pruned"):
        raise ValueError(f"method is {method!r}, must be 'exact', 'staircase', 'compressed' or 'pruned'")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}, must be at least 1")
    pruning.check_retain(retain)
    pruning.check_threshold(threshold)
    patterns = patterns_of(attentions)
    numbers = list(range(1, len(patterns) + 1)) if layers is None else list(layers)
    options: dict[str, Any] = {"residual": residual, "heads": heads, "normalise": normalise}
    if method == "staircase":
        capacities = read_ends(patterns, layers=numbers, causal=causal, **options)
    else:
        if not allow_large:
            refuse_large(len(numbers), patterns[0].shape[-1])
        capacities = read_capacities(patterns, layers=numbers, causal=causal, **options)
    single = isinstance(source, int | np.integer)
    outputs: list[int] = list(np.atleast_1d(np.asarray(source, np.int64)))
    starts = [position_in(capacities, output) for output in outputs]
    if not starts:
        raise BadInput("no output is chosen", where="source", mend="give at least one position")
    members = _sink_members(capacities, sinks)
    work = _Work(capacities, members, threads or usable_cores())
    rows = []
    for start in starts:
        if method == "staircase":
            rollout = _streamed_rollout(patterns, numbers, start, members, options)
            row = _staircase_row(work, start, rollout, len(numbers))
        else:
            rollout = _joined(rollout_from(capacities.down, start), members)
            row = _METHODS[method](work, start, rollout, retain, threshold)
        nothing = _null_row(work, start, method, residual, len(numbers)) if null else None
        rows.append((row, rollout, nothing))
    return _result(rows, work, starts, numbers, method, single)


class _Work(NamedTuple):
    """What the flows of all sources share."""

    capacities: Capacities
    members: tuple[tuple[int, ...], ...]  # the sinks, as indices of kept positions
    threads: int


class _Row(NamedTuple):
    """The answer for one source, one entry per sink."""

    flow: Array
    lower: Array
    upper: Array
    cut: Array  # (m, L) from the output down; NaN where no cut is known


def _exact_row(work: _Work, start: int, rollout: Array, retain: float, threshold: float) -> _Row:
    found = flows_from(work.capacities, start, work.members, work.threads)
    capacity = found.cut.sum(axis=1)
    return _Row(capacity, np.minimum(found.value, capacity), capacity, found.cut)


def _compressed_row(work: _Work, start: int, rollout: Array, retain: float, threshold: float) -> _Row:
    merged = pruning.compress(work.capacities, retain=retain)
    found = flows_from(merged.capacities, start, work.members, work.threads)
    capacity = found.cut.sum(axis=1)
    return _Row(capacity, np.minimum(rollout, capacity), capacity, merged.spread(found.cut))


def _pruned_row(work: _Work, start: int, rollout: Array, retain: float, threshold: float) -> _Row:
    found = flows_from(pruning.cut_arcs(work.capacities, threshold), start, work.members, work.threads, work.capacities)
    capacity = found.cut.sum(axis=1)
    lower = np.minimum(np.maximum(found.value, rollout), capacity)
    return _Row(lower, lower, capacity, found.cut)


def _staircase_row(work: _Work, start: int, rollout: Array, n_layers: int) -> _Row:
    bound = _ends_of_sets(work.capacities, start, work.members)
    return _Row(bound, np.minimum(rollout, bound), bound, np.full((len(bound), n_layers), np.nan))


_METHODS = {"exact": _exact_row, "compressed": _compressed_row, "pruned": _pruned_row}


def _ends_of_sets(capacities: Capacities, start: int, members: Sequence[tuple[int, ...]]) -> Array:
    """The least cut through the two ends for every sink or set of sinks."""
    if all(len(one) == 1 for one in members):
        return end_bound(capacities, start)[[one[0] for one in members]]
    demands, lows = demands_of(capacities, members)
    if len(capacities.down) == 1:
        return demands[:, start].copy()
    high = start if capacities.causal else capacities.down.shape[-1] - 1
    return np.array(
        [
            end_cut(capacities.down[0, start], demand, low, high, capacities.causal)[0] if low <= high else 0.0
            for demand, low in zip(demands, lows, strict=True)
        ]
    )


def _joined(row: Array, members: Sequence[tuple[int, ...]]) -> Array:
    return np.array([row[list(one)].sum() for one in members])


def _streamed_rollout(
    patterns: Sequence[Array],
    numbers: Sequence[int],
    start: int,
    members: Sequence[tuple[int, ...]],
    options: dict[str, Any],
) -> Array:
    """The rollout of one output, reading one layer at a time."""
    mass = None
    for number in reversed(numbers):
        layer = read_capacities(patterns, layers=[number], **options).down[0]
        mass = layer[start] if mass is None else mass @ layer
    assert mass is not None
    return _joined(mass, members)


def _null_row(work: _Work, start: int, method: Method, residual: bool, n_layers: int) -> Array:
    n = len(work.capacities.positions)
    if method == "staircase":
        ends = uniform_capacities(min(n_layers, 2), n, residual=residual, causal=work.capacities.causal)
        return _ends_of_sets(work.capacities._replace(down=ends), start, work.members)
    key = (n_layers, n, residual, work.capacities.causal, start, work.members)
    return _uniform_flow(*key, threads=work.threads).copy()


@lru_cache(maxsize=32)
def _uniform_flow(
    n_layers: int,
    n: int,
    residual: bool,
    causal: bool,
    start: int,
    members: tuple[tuple[int, ...], ...],
    *,
    threads: int,
) -> Array:
    """The flow of the null network; the same for every text of this length, so it is kept."""
    uniform = uniform_capacities(n_layers, n, residual=residual, causal=causal)
    everywhere = Capacities(uniform, causal, np.arange(n), np.arange(1, n_layers + 1), ())
    return flows_from(everywhere, start, members, threads).cut.sum(axis=1)


def _sink_members(capacities: Capacities, sinks: Sequence[int | Sequence[int]] | None) -> tuple[tuple[int, ...], ...]:
    """Every sink as a sorted tuple of indices of kept positions."""
    if sinks is None:
        return tuple((index,) for index in range(len(capacities.positions)))
    if not len(sinks):
        raise BadInput("no input is chosen", where="sinks", mend="give at least one position")
    members = []
    for number, sink in enumerate(sinks):
        positions = [sink] if isinstance(sink, int | np.integer) else list(sink)
        if not positions:
            raise BadInput("the set is empty", where=f"sinks, entry {number}", mend="give at least one position")
        members.append(tuple(sorted({position_in(capacities, position, where="sinks") for position in positions})))
    return tuple(members)


def refuse_large(n_layers: int, n_tokens: int) -> None:
    """Say what more than 4,096 tokens would cost, before anything is computed.

    Raises
    ------
    BadInput : there are more
    """
    if n_tokens <= LARGE:
        return
    arcs = n_layers * n_tokens * (n_tokens + 1) // 2
    seconds = SECONDS_PER_ARC * n_layers * n_tokens**3 / 6
    gigabytes = 2 * 8 * n_layers * n_tokens**2 / 1e9
    raise BadInput(
        f"{n_tokens:,} tokens in {n_layers} layers make {arcs:,} arcs, {gigabytes:.0f} GB and about {seconds / 60:.0f} "
        "minutes for one output on one core",
        where="attentions",
        mend='use method="staircase", or allow_large=True to solve it all the same',
    )


def _result(
    rows: Sequence[tuple[_Row, Array, Array | None]],
    work: _Work,
    starts: Sequence[int],
    numbers: Sequence[int],
    method: Method,
    single: bool,
) -> AttentionFlow:
    def stacked(arrays: Sequence[Array]) -> Array:
        return arrays[0] if single else np.stack(arrays)

    flow, lower, upper, cut = (stacked([row[part] for row, _, _ in rows]) for part in range(4))
    total = flow.sum(axis=-1, keepdims=True)
    share = np.divide(flow, total, out=np.zeros_like(flow), where=total > 0)
    cut_layer, cut_kind = _where_cut(cut, np.array(numbers, np.int64))
    positions = work.capacities.positions
    nulls = [null for _, _, null in rows if null is not None]
    return AttentionFlow(
        flow=flow,
        share=share,
        lower=lower,
        upper=upper,
        certified=upper - lower <= CERTIFIED,
        cut_layer=cut_layer,
        cut_kind=cut_kind,
        cut_capacity=cut[..., ::-1],
        null=stacked(nulls) if nulls else None,
        rollout=stacked([rollout for _, rollout, _ in rows]),
        sources=positions[list(starts)],
        sinks=tuple(tuple(int(positions[index]) for index in one) for one in work.members),
        positions=positions,
        layers=np.array(numbers, np.int64),
        causal=work.capacities.causal,
        method=method,
        notes=work.capacities.notes,
        _capacities=work.capacities,
    )


def _where_cut(cut: Array, numbers: Array) -> tuple[Array, Array]:
    """The layer with most of each cut, and in words where the cut lies; ``cut`` (.., L) from the output down."""
    known = np.nan_to_num(cut)
    cuts_here = known > CERTIFIED
    layer = np.where(cuts_here.any(axis=-1), numbers[::-1][known.argmax(axis=-1)], 0)
    kind = np.full(layer.shape, "inside", "<U6")
    ends = ~cuts_here[..., 1:-1].any(axis=-1)
    kind[ends] = "ends"
    kind[ends & ~cuts_here[..., 0]] = "sink"
    kind[~cuts_here[..., 1:].any(axis=-1)] = "source"
    kind[~cuts_here.any(axis=-1)] = "none"
    return layer, kind


def _arcs_across(
    capacities: Capacities, start: int, members: Sequence[int], source_side: Array
) -> Iterator[tuple[int, int, int, float]]:
    """Arcs (row from the output down, query, key, capacity) that lead out of the source's side."""
    down = capacities.down
    inside = np.zeros((len(down) + 1, down.shape[-1]), bool)
    inside[0, start] = True
    inside[1:-1] = source_side
    outside = ~inside
    outside[-1] = False
    outside[-1, list(members)] = True
    for p, layer in enumerate(down):
        crossing = np.outer(inside[p], outside[p + 1]) & (layer > 0)
        for i, k in np.argwhere(crossing):
            yield p, int(i), int(k), float(layer[i, k])


def _widest_path(down: Array, start: int, members: Sequence[int]) -> tuple[float, list[int]]:
    """The widest path from ``start`` into one of ``members`` through (L, n, n) flows; ties go to the lower position."""
    width = np.zeros(down.shape[-1])
    width[start] = np.inf
    came_from = []
    for layer in down:
        through = np.minimum(width[:, None], layer)
        came_from.append(through.argmax(axis=0))
        width = through.max(axis=0)
    end = max(members, key=lambda k: (width[k], -k))
    indices = [end]
    for back in reversed(came_from):
        indices.append(int(back[indices[-1]]))
    return float(width[end]), indices[::-1]
