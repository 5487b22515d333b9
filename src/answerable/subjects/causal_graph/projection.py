"""The latent projection: hidden nodes become directed edges around them and bidirected arcs over them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from answerable.errors import BadInput

if TYPE_CHECKING:
    from answerable.subjects.causal_graph.graph import CausalGraph

MOST_ARCS = 1_000_000


def projected(graph: CausalGraph, hidden: set[int]) -> CausalGraph:
    """The graph without ``hidden`` nodes, with an edge for each directed path and an arc for each fork through them."""
    names = graph.names
    below: dict[int, set[int]] = {}  # what directed paths through hidden nodes alone lead to
    for name in reversed(graph.topological_order()):
        children = graph.numbers(graph.children(name))
        below[graph.number(name)] = set().union(*(below[c] if c in hidden else {c} for c in children))

    def ends(number: int) -> set[int]:
        return below[number] if number in hidden else {number}

    directed = [(a, b) for a in range(len(graph)) if a not in hidden for b in sorted(below[a])]
    arcs: set[tuple[int, int]] = set()
    for number in hidden:
        _add(arcs, below[number], below[number])
    for a, b in graph.bidirected:
        _add(arcs, ends(graph.number(a)), ends(graph.number(b)))
    return type(graph)(
        [(names[a], names[b]) for a, b in directed],
        [(names[a], names[b]) for a, b in sorted(arcs)],
        nodes=[name for number, name in enumerate(names) if number not in hidden],
    )


def _add(arcs: set[tuple[int, int]], first: set[int], second: set[int]) -> None:
    arcs.update((min(a, b), max(a, b)) for a, b in itertools.product(first, second) if a != b)
    if len(arcs) > MOST_ARCS:
        mend = "give the concepts and their edges without the hidden nodes"
        raise BadInput(f"its hidden nodes make more than {MOST_ARCS} arcs", where="causal graph", mend=mend)
