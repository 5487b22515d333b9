"""Which queries are answerable, and between which ends the others lie, against what does the same work today.

y0's ``idc_star`` decides whether a conditional counterfactual is identified at all. It knows no class of models, so the
question is put to it as the paper's is: the model's output Y has the features as its only causes, and what is asked is
the law of Y had W been set, given all concepts as they are. networkx lists descendants; HiGHS solves the linear
programme over response types; dowhy and concept libraries always give a point and decide nothing.
"""

from __future__ import annotations

import itertools
import logging
import warnings
from typing import Any

import numpy as np

from answerable.explanations.counterfactual_queries import (
    ConceptPredictor,
    UnseenWarning,
    admissible,
    expectation,
    offending_mask,
)
from answerable.subjects.causal_graph import CausalGraph
from bench.racing import Race, bytes_per_second
from tests.explanations.counterfactual_queries.test_solver import averaged, cases, prepared
from tests.oracles import counterfactual_queries as oracle

logging.getLogger("y0").setLevel(logging.ERROR)
DECISIONS = 1000


def races(*, quick: bool) -> list[Race]:
    return [*reachability(quick), *decisions(), *intervals(quick), *closed_forms(quick)]


def random_graph(n: int, m: int) -> list[tuple[str, str]]:
    rng = np.random.default_rng(n)
    names = rng.permutation(n)
    ends = np.sort(rng.integers(0, n, (2 * m, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    chosen = ends[rng.choice(len(ends), m, replace=False)]
    return [(f"v{names[a]}", f"v{names[b]}") for a, b in chosen]


def reachability(quick: bool) -> list[Race]:
    """All descendants of all nodes, and of one node in a graph ten times as large."""
    import networkx as nx

    found = []
    for n, target in ((10_000, 25), (20_000, None)):
        graph = CausalGraph(random_graph(n, 3 * n))
        peer = nx.DiGraph(graph.directed)
        order = graph.topological_order()
        sample = order[: n // 20] if quick else order
        bandwidth = bytes_per_second()

        def ours(graph: CausalGraph = graph, sample: list[str] = sample) -> np.ndarray:
            return np.bitwise_count(graph.descendant_bits()[: len(sample)]).sum(axis=1)

        def theirs(peer: Any = peer, sample: list[str] = sample) -> np.ndarray:
            return np.array([len(nx.descendants(peer, name)) for name in sample])

        found.append(
            Race(
                work=f"descendants of all nodes, {n} nodes, {3 * n} edges", peer="networkx", package="networkx",
                ours=ours, theirs=theirs, sample="all" if not quick else f"{len(sample)} of {n} nodes",
                their_share=len(sample) / n, floor_s=n * n / 8 / bandwidth, target_ratio=target,
            )
        )  # fmt: skip
    large = CausalGraph(random_graph(100_000, 300_000))
    start = large.topological_order()[0]
    peer = nx.DiGraph(large.directed)
    found.append(
        Race(
            work="descendants of one node, 100000 nodes, 300000 edges", peer="networkx", package="networkx",
            ours=lambda: [len(large.descendants(start))], theirs=lambda: [len(nx.descendants(peer, start))],
            target_s=0.2,
        )
    )  # fmt: skip
    return found


def decisions() -> list[Race]:
    """A thousand decisions, y0 timed on one: the paper's example, which y0 says is identified, and a chain of forty."""
    chain = [(f"V{i}", f"V{i + 1}") for i in range(39)]
    paper = ([("S", "C")], [("F", "S")], ["F", "S", "C"], "S")
    return [
        _decision("verdict, witness and path, the paper's query", *paper, named=True),
        _decision("yes or no, the paper's query", *paper, named=False),
        _decision(
            "verdict, witness and path, chain of forty", chain, [], [f"V{i}" for i in range(20)], "V19", named=True
        ),
    ]


def _decision(what: str, edges: list, arcs: list, features: list[str], query: str, *, named: bool) -> Race:
    from y0.algorithm.identify import Unidentifiable, idc_star
    from y0.dsl import Variable
    from y0.graph import NxMixedGraph

    graph = CausalGraph(edges, arcs)
    below = [sum(1 << graph.number(child) for child in graph.descendants(name)) for name in graph.names]
    chosen, asked = (sum(1 << graph.number(name) for name in names) for names in (features, [query]))
    pairs = [(Variable(a), Variable(b)) for a, b in [*edges, *((name, "Y") for name in features)]]
    peer = NxMixedGraph.from_edges(directed=pairs, undirected=[(Variable(a), Variable(b)) for a, b in arcs])
    outcome = {(Variable("Y") @ -Variable(query)): -Variable("Y")}
    facts = {Variable(name): +Variable(name) for name in features}

    def theirs() -> bool:
        try:
            idc_star(peer, outcome, facts)
        except Unidentifiable:
            return False
        return True

    def ours() -> list[bool]:
        if named:
            return [admissible(graph, features, query).answerable for _ in range(DECISIONS)]
        return [offending_mask(below, chosen, asked) == 0 for _ in range(DECISIONS)]

    return Race(
        work=f"{DECISIONS} times {what}", peer="y0 idc_star", package="y0", ours=ours, theirs=theirs,
        sample=f"1 of {DECISIONS}", their_share=1 / DECISIONS, target_ratio=10_000, compared=False,
        why="another question: it decides over every model, not over models of these concepts; its word is on the page",
    )  # fmt: skip


def intervals(quick: bool) -> list[Race]:
    """The open cases of three concepts, both sides prepared: a walk over what units may become, and the programme."""
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for parents, features, query in cases(3):
        names = ["v0", "v1", "v2"]
        graph = CausalGraph([(names[p], names[i]) for i in range(3) for p in parents[i]], nodes=names)
        if admissible(graph, [names[j] for j in features], [names[i] for i in query]).answerable:
            continue
        law, f = rng.dirichlet(np.ones(8)).reshape(2, 2, 2), rng.random((2,) * len(features))
        ours.append(prepared(graph, features, dict.fromkeys(query, 0), law, f))
        programme = oracle.ResponseTypes(parents).programme(
            law, dict.fromkeys(query, 0), features, lambda t, f=f: float(f[t])
        )
        theirs.append(programme)
    every = slice(None, None, 8 if quick else 1)
    return [
        Race(
            work=f"sharp interval, {len(ours[every])} open cases of three concepts", peer="HiGHS over response types",
            package="scipy", ours=lambda: np.array([averaged(*case) for case in ours[every]]),
            theirs=lambda: np.array([oracle.solved(*case) for case in theirs[every]]), tolerance=1e-9,
            why="the solver stops at its tolerance", target_ratio=100,
        )
    ]  # fmt: skip


def closed_forms(quick: bool) -> list[Race]:
    """Theorem 3 for many rows of ten binary concepts, and the same through every cell; sharp ends of many rows."""
    rng = np.random.default_rng(1)
    found = []
    for n in (100_000, 200_000, 400_000):
        raced = n == 100_000 and not quick
        chances = rng.random((n, 10))
        parts = [np.stack([1 - column, column], axis=1) for column in chances.T]
        table = rng.random((2,) * 10)

        def by_cells(parts: list = parts, table: np.ndarray = table, n: int = n) -> np.ndarray:
            total = np.zeros(n)
            for cell in itertools.product((0, 1), repeat=10):
                weight = np.ones(n)
                for part, level in zip(parts, cell):
                    weight = weight * part[:, level]
                total += weight * table[cell]
            return total

        found.append(
            Race(
                work=f"closed form, {n} rows x 10 binary concepts", peer="sum over cells" if raced else "none",
                package="numpy" if raced else "", ours=lambda parts=parts, table=table: expectation(parts, table),
                theirs=by_cells if raced else None, tolerance=1e-10, why="another order of summation",
                floor_s=n * 20 * 8 / bytes_per_second(), target_s=0.5 if n == 100_000 else None,
            )
        )  # fmt: skip
    return [*found, _many_moved()]


def _many_moved() -> Race:
    """Sharp ends where twelve concepts may move, for five hundred different units."""
    names = [f"v{i}" for i in range(13)]
    graph = CausalGraph([("v0", name) for name in names[1:]] + list(itertools.pairwise(names[1:])))
    rng = np.random.default_rng(2)
    table = {name: rng.integers(0, 2, 500) for name in names}
    weights = rng.normal(size=13)

    def classify(values: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-values @ weights))

    model = ConceptPredictor(classifier=classify).fit(None, rng.integers(0, 2, 500), concepts=table)

    def ours() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenWarning)  # rows at random: most combinations are new
            found = model.counterfactual(table, {"v0": 1}, graph=graph, on_unanswerable="bounds")
        return found["upper"].to_numpy()

    return Race(work="sharp interval, 500 units, 12 concepts may move", peer="none", ours=ours)
