"""Other ways to the same attention flows: a general graph library, exact fractions, and a search over all cuts."""

from __future__ import annotations

import itertools
from collections import deque
from fractions import Fraction

import networkx as nx
import numpy as np


def flow_by_networkx(capacities: np.ndarray, source: int, sinks: int | list[int], edmonds_karp: bool = False) -> float:
    """Maximum flow in the graph of (L, n, n) capacities, layer 1 first. (networkx's dinitz fails on float capacities.)"""
    graph = nx.DiGraph()
    graph.add_nodes_from(["out", "in"])
    graph.add_edge("out", (len(capacities), source))
    for layer, i, k in np.argwhere(capacities > 0):
        graph.add_edge((layer + 1, i), (layer, k), capacity=float(capacities[layer, i, k]))
    for sink in [sinks] if isinstance(sinks, int) else sinks:
        graph.add_edge((0, sink), "in")
    if not nx.has_path(graph, "out", "in"):
        return 0.0
    solver = nx.algorithms.flow.edmonds_karp if edmonds_karp else nx.algorithms.flow.preflow_push
    return float(nx.maximum_flow_value(graph, "out", "in", flow_func=solver))


def flow_by_fractions(capacities: list[list[list[Fraction]]], source: int, sink: int) -> Fraction:
    """Shortest augmenting paths in exact arithmetic."""
    n_layers, n = len(capacities), len(capacities[0])
    left: dict[tuple, dict[tuple, Fraction]] = {}
    for layer, i, k in itertools.product(range(n_layers), range(n), range(n)):
        if capacities[layer][i][k] > 0:
            left.setdefault((layer + 1, i), {})[(layer, k)] = capacities[layer][i][k]
            left.setdefault((layer, k), {}).setdefault((layer + 1, i), Fraction(0))
    start, end, total = (n_layers, source), (0, sink), Fraction(0)
    while True:
        before: dict[tuple, tuple] = {start: start}
        queue = deque([start])
        while queue and end not in before:
            node = queue.popleft()
            for following, room in left.get(node, {}).items():
                if room > 0 and following not in before:
                    before[following] = node
                    queue.append(following)
        if end not in before:
            return total
        path = [end]
        while path[-1] != start:
            path.append(before[path[-1]])
        arcs = list(zip(path[1:], path, strict=False))
        width = min(left[a][b] for a, b in arcs)
        for a, b in arcs:
            left[a][b] -= width
            left[b][a] = left[b].get(a, Fraction(0)) + width
        total += width


def least_cut_by_search(capacities: np.ndarray, source: int, sink: int) -> float:
    """The least capacity over every set of nodes that holds the output and not the input; for tiny networks."""
    n_layers, n = len(capacities), capacities.shape[1]
    free = [
        (layer, i)
        for layer in range(n_layers + 1)
        for i in range(n)
        if (layer, i) not in ((n_layers, source), (0, sink))
    ]
    best = np.inf
    for chosen in itertools.product((False, True), repeat=len(free)):
        inside = np.zeros((n_layers + 1, n), bool)
        inside[n_layers, source] = True
        for (layer, i), yes in zip(free, chosen, strict=True):
            inside[layer, i] = yes
        crossing = sum(
            float(capacities[layer][np.ix_(inside[layer + 1], ~inside[layer])].sum()) for layer in range(n_layers)
        )
        best = min(best, crossing)
    return best


def random_patterns(
    rng: np.random.Generator, n_layers: int, n: int, causal: bool, sparsity: float = 0.0, power: float = 1.0
) -> np.ndarray:
    """(L, n, n) rows that sum to 1, or to 0 where all is left out."""
    weights = rng.random((n_layers, n, n)) ** power
    weights[rng.random(weights.shape) < sparsity] = 0
    if causal:
        weights = np.tril(weights)
    sums = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
