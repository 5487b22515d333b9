"""FlowPrune's two cuts (Xu et al. 2025), as bounds.

- **Edge pruning** leaves out arcs below a threshold. What flows without them flows with them: a lower bound. A
  minimum cut of the pruned network, counted in the original one, is an upper bound.
- **Layer compression** keeps some layers and replaces each run of others by one layer that joins two positions with
  capacity 1 if any path through the run joins them. This lets positions share what they cannot: an upper bound, equal
  to the flow if a minimum cut avoids the merged layers and the kept layers are the bottleneck.

Departures from the authors' code, each for a reason: the last layer is always kept (the code's tactics count one
layer too many and may merge it); the threshold is applied everywhere and before anything else; connections inside a
run are products of zeros and ones from the start (the code first multiplies weights, and loses a connection of two
arcs of 1e-4); ties between layers go to the layer nearer the output. ``merged_capacity="max"`` gives a merged layer
the largest weight in its run, as the code does instead of the paper's 1: flow that fans out and in again is then
lost, and the result bounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from answerable.compiled import kernel, usable_cores

from .bounds import Heads, end_bound, position_in, rollout_from
from .flows import flows_from
from .maximum_flow import Flows
from .network import Array, Capacities, read_capacities

Score = Literal["walk", "small", "cut"]

SMALL = 1e-4  # the authors' sampler 3 counts arcs up to this capacity
WALK_REPEATS = 20
FEWEST_LAYERS = 3


def check_retain(retain: float) -> None:
    """Raise ValueError unless ``retain`` lies in (0, 1]."""
    if not 0 < retain <= 1:
        raise ValueError(f"retain is {retain}, must be above 0 and at most 1; 0.5 is a usual choice")


def check_threshold(threshold: float) -> None:
    """Raise ValueError unless ``threshold`` lies in [0, 1)."""
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold is {threshold}, must be at least 0 and below 1; 1e-6 is a usual choice")


def cut_arcs(capacities: Capacities, threshold: float) -> Capacities:
    """The network without arcs below ``threshold``."""
    return capacities._replace(down=np.where(capacities.down < threshold, 0.0, capacities.down))


class Compressed(NamedTuple):
    """A network with runs of layers merged."""

    capacities: Capacities  # its layers numbered by the first of each run
    runs: tuple[tuple[int, ...], ...]  # indices from the output down of the layers behind each row of arcs

    def spread(self, cut: Array) -> Array:
        """Cuts per layer of the original network; NaN where a cut runs through merged layers."""
        n_layers = self.runs[-1][-1] + 1
        spread = np.zeros((len(cut), n_layers))
        merged = [len(run) > 1 for run in self.runs]
        for row, run in enumerate(self.runs):
            spread[:, run[0]] = cut[:, row]
        spread[(cut[:, merged] > 0).any(axis=1)] = np.nan
        return spread


def compress(
    capacities: Capacities,
    *,
    retain: float,
    score: Score = "walk",
    seed: int = 0,
    merged_capacity: Literal["one", "max"] = "one",
) -> Compressed:
    """Keep the first, the last and the best-scored layers; merge each run of others into one.

    Parameters
    ----------
    capacities : the network
    retain : share of layers left, in (0, 1]; at least three are
    score : how a layer earns its place, see :func:`layer_scores`
    seed : for ``score="walk"``
    merged_capacity : of an arc of a merged layer: "one", or "max", the largest capacity in the run
    """
    n_layers = len(capacities.down)
    budget = max(FEWEST_LAYERS, round(retain * n_layers))
    if budget >= n_layers:
        runs: tuple[tuple[int, ...], ...] = tuple((p,) for p in range(n_layers))
    else:
        scores = layer_scores(capacities, score, seed=seed)[::-1]
        runs = _runs(_best_kept(scores, budget), n_layers)
    rows = np.empty((len(runs), *capacities.down.shape[1:]))
    for row, run in enumerate(runs):
        rows[row] = capacities.down[run[0]] if len(run) == 1 else _merged(capacities.down[list(run)], merged_capacity)
    numbers = capacities.numbers[::-1][[run[-1] for run in runs]][::-1]
    return Compressed(capacities._replace(down=rows, numbers=numbers), runs)


def _best_kept(scores: Array, budget: int) -> Array:
    """Which layers to keep, (L,) bool from the output down: most total score with at most ``budget`` rows, a merged
    run costing one.

    The first and the last are kept. best[cost][kept] is the most that the layers so far can score; ties keep the
    layer nearer the output and merge the one further down.
    """
    n_layers = len(scores)
    worst = -np.inf
    best = np.full((n_layers, budget + 1, 2), worst)
    came_from = np.zeros((n_layers, budget + 1, 2), np.int8)
    best[0, 1, 1] = scores[0]
    for layer in range(1, n_layers):
        for cost in range(1, budget + 1):
            for kept in (0, 1):
                # a kept layer costs one; a merged one costs one only where a run begins
                options = [
                    best[layer - 1, cost - (1 if kept or before else 0), before] if cost else worst for before in (0, 1)
                ]
                came_from[layer, cost, kept] = before = 1 if options[1] >= options[0] else 0
                best[layer, cost, kept] = options[before] + (scores[layer] if kept else 0.0)
    cost, kept = budget - int(np.argmax(best[-1, ::-1, 1])), 1  # of equal scores the one that keeps more
    chosen = np.zeros(n_layers, bool)
    for layer in range(n_layers - 1, -1, -1):
        chosen[layer] = bool(kept)
        before = int(came_from[layer, cost, kept])
        cost -= 1 if kept or before else 0
        kept = before
    return chosen


def _runs(kept: Array, n_layers: int) -> tuple[tuple[int, ...], ...]:
    runs: list[list[int]] = []
    for layer in range(n_layers):
        if layer and not kept[layer] and not kept[layer - 1]:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return tuple(tuple(run) for run in runs)


def _merged(run: Array, merged_capacity: str) -> Array:
    """Capacity ``merged_capacity`` wherever a path through the run joins two positions."""
    joined = (run[0] > 0).astype(np.float32)  # floats, since BLAS multiplies only these; only > 0 is ever asked
    for layer in run[1:]:
        joined = (joined @ (layer > 0).astype(np.float32) > 0).astype(np.float32)
    return joined * (1.0 if merged_capacity == "one" else run.max())


def layer_scores(capacities: Capacities, score: Score, *, seed: int = 0) -> Array:
    """How likely each layer is to hold the bottleneck, (L,) float64, layer 1 first.

    Parameters
    ----------
    capacities : the network
    score : "walk" counts random walks (uniform over arcs, from every output, 20 times) whose narrowest arc lies in
        the layer;
        "small" counts arcs of capacity at most 1e-4; "cut" sums the minimum cuts of the last output's flows
    seed : for "walk"

    Raises
    ------
    ValueError
        for another score
    """
    if score == "walk":
        return _narrowest_on_walks(capacities.down, WALK_REPEATS, np.random.default_rng(seed))[::-1].astype(np.float64)
    if score == "small":
        return ((capacities.down > 0) & (capacities.down <= SMALL)).sum(axis=(1, 2))[::-1].astype(np.float64)
    if score == "cut":
        n = len(capacities.positions)
        singles = tuple((index,) for index in range(n))
        return flows_from(capacities, n - 1, singles, usable_cores()).cut.sum(axis=0)[::-1]
    raise ValueError(f"score is {score!r}, must be 'walk', 'small' or 'cut'")


@kernel
def _narrowest_on_walks(down: Array, repeats: int, rng: np.random.Generator) -> Array:
    """How often a random walk's narrowest arc lies in each row of arcs; a walk that gets stuck counts for none."""
    n_layers, n = down.shape[0], down.shape[1]
    counts = np.zeros(n_layers, np.int64)
    for _repeat in range(repeats):
        for start in range(n):
            i, narrowest, where = start, np.inf, -1
            for p in range(n_layers):
                ways = 0
                for k in range(n):
                    ways += down[p, i, k] > 0.0
                if ways == 0:
                    where = -1
                    break
                skip = int(rng.random() * ways)
                for k in range(n):
                    if down[p, i, k] > 0.0:
                        if skip == 0:
                            if down[p, i, k] < narrowest:
                                narrowest, where = down[p, i, k], p
                            i = k
                            break
                        skip -= 1
            if where >= 0:
                counts[where] += 1
    return counts


class Interval(NamedTuple):
    """Certified bounds on the flow to every input."""

    low: Array  # (n,) the larger of the rollout and the flow without the pruned arcs
    high: Array  # (n,) the least of the compressed flow, the pruned network's cut in the original, and the end cuts


@dataclass(frozen=True)
class Pruned:
    """A network with FlowPrune's two cuts.

    Attributes
    ----------
    kept : int64, numbers of the layers that stand for themselves
    merged : tuples of numbers of the layers merged into one
    arcs_cut : how many arcs fell below the threshold
    """

    kept: Array
    merged: tuple[tuple[int, ...], ...]
    arcs_cut: int
    _original: Capacities
    _without_small: Capacities
    _compressed: Capacities
    _both: Capacities
    _bounds_above: bool

    def flow(self, source: int = -1, *, threads: int | None = None) -> Array:
        """FlowPrune's estimate, (n,): the flow with both cuts. It bounds nothing; see :meth:`interval`."""
        return self._flows(self._both, position_in(self._original, source), threads).cut.sum(axis=1)

    def interval(self, source: int = -1, *, threads: int | None = None) -> Interval:
        """Certified bounds on the exact flow from ``source`` to every input.

        Parameters
        ----------
        source : position of the output, negative from the end
        threads : sinks solved at once, all usable cores by default

        Returns
        -------
        Interval
        """
        start = position_in(self._original, source)
        pruned = self._flows(self._without_small, start, threads, unpruned=self._original)
        high = np.minimum(pruned.cut.sum(axis=1), end_bound(self._original, start))
        if self._bounds_above:
            high = np.minimum(high, self._flows(self._compressed, start, threads).cut.sum(axis=1))
        low = np.maximum(pruned.value, rollout_from(self._original.down, start))
        return Interval(np.minimum(low, high), high)

    def _flows(
        self, capacities: Capacities, start: int, threads: int | None, unpruned: Capacities | None = None
    ) -> Flows:
        singles = tuple((index,) for index in range(len(capacities.positions)))
        return flows_from(capacities, start, singles, threads or usable_cores(), unpruned)


def prune(
    attentions: Any,
    threshold: float = 1e-6,
    retain: float = 0.5,
    score: Score = "walk",
    seed: int = 0,
    merged_capacity: Literal["one", "max"] = "one",
    *,
    residual: bool = True,
    heads: Heads = "mean",
    layers: Iterable[int] | None = None,
    causal: Literal["auto"] | bool = "auto",
    normalise: bool = False,
) -> Pruned:
    """FlowPrune's smaller network, with certified bounds instead of an estimate alone.

    Parameters
    ----------
    attentions, residual, heads, layers, causal, normalise
        as in :func:`attention_flow`; FlowPrune itself has no residual stream
    threshold : capacity below which an arc is left out, in [0, 1)
    retain : share of layers left, in (0, 1]; at least three are, the first and the last among them
    score : how layers earn their place: "walk" (random walks, as the authors), "small" (many small arcs), "cut"
        (exact cuts of the
        last output)
    seed : for ``score="walk"``
    merged_capacity : of the arcs of merged layers: "one" (the paper) or "max" (the authors' code; then no upper bound
        follows)

    Returns
    -------
    Pruned

    Raises
    ------
    BadInput
        for patterns that are none; see :func:`attention_flow`
    ValueError
        for a threshold, retain, score or merged_capacity outside its range

    References
    ----------
    Xu, Chen, Lin, Geng and Yang, "FlowPrune", NeurIPS 2025.
    """
    check_threshold(threshold)
    check_retain(retain)
    if merged_capacity not in ("one", "max"):
        raise ValueError(f"merged_capacity is {merged_capacity!r}, must be 'one' or 'max'")
    original = read_capacities(
        attentions, residual=residual, heads=heads, layers=layers, causal=causal, normalise=normalise
    )
    without_small = cut_arcs(original, threshold)
    compressed = compress(original, retain=retain, score=score, seed=seed, merged_capacity=merged_capacity)
    both = compress(without_small, retain=retain, score=score, seed=seed, merged_capacity=merged_capacity)
    kept, merged = _named(both.runs, original.numbers)
    return Pruned(
        kept=kept,
        merged=merged,
        arcs_cut=int(((original.down > 0) & (without_small.down == 0)).sum()),
        _original=original,
        _without_small=without_small,
        _compressed=compressed.capacities,
        _both=both.capacities,
        _bounds_above=merged_capacity == "one",
    )


def _named(runs: Sequence[tuple[int, ...]], numbers: Array) -> tuple[Array, tuple[tuple[int, ...], ...]]:
    """Kept layers and merged runs by number, layer 1 first."""
    from_output = numbers[::-1]
    kept = sorted(int(from_output[run[0]]) for run in runs if len(run) == 1)
    merged = sorted(tuple(sorted(int(from_output[p]) for p in run)) for run in runs if len(run) > 1)
    return np.array(kept, np.int64), tuple(merged)
