"""When an effect along some paths cannot be told from data: the recanting witness and the recanting district.

Avin, Shpitser and Pearl (IJCAI 2005) for graphs without hidden causes, Shpitser (Cognitive Science 2013) with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from answerable.errors import BadInput
from answerable.subjects.causal_graph.graph import CausalGraph, Edge


class RecantingWitness(NamedTuple):
    """A node that would have to be as under the new treatment for one path, and as under the old one for another.

    Parameters
    ----------
    node : where the two paths part
    active : a path through it whose every edge is active
    inactive : a path with the same beginning that goes on, from ``node``, along an edge that is not
    """

    node: str
    active: list[str]
    inactive: list[str]


class RecantingDistrict(NamedTuple):
    """A district that an active and an inactive path enter from the treatment.

    Parameters
    ----------
    nodes : the district, among what leads to the outcome without the treatment
    active, inactive : the two paths from treatment to outcome
    """

    nodes: list[str]
    active: list[str]
    inactive: list[str]


def edges_after(graph: CausalGraph, treatment: str, first: Iterable[Edge]) -> set[Edge]:
    """The active edges where a path counts as soon as its first edge is one of ``first``.

    Raises
    ------
    BadInput : an edge of ``first`` that does not begin at the treatment, or is not there
    """
    chosen: set[Edge] = {(str(a), str(b)) for a, b in first}
    for a, b in chosen:
        if a != treatment or b not in graph.children(treatment):
            mend = (
                f"choose among {', '.join(f'{treatment} -> {child}' for child in graph.children(treatment)) or 'none'}"
            )
            raise BadInput(f"{a} -> {b} is no edge out of {treatment!r}", where="causal graph, first edges", mend=mend)
    return {edge for edge in graph.directed if edge[0] != treatment} | chosen


def recanting_witness(
    graph: CausalGraph, treatment: str, outcome: str, active: Collection[Edge]
) -> RecantingWitness | None:
    """A node that recants, or None; without hidden causes the effect along the active paths is identified iff None.

    Parameters
    ----------
    graph : the causal graph; bidirected arcs do not count here
    treatment, outcome : two of its nodes
    active : edges; a path from treatment to outcome is active when every edge of it is

    Raises
    ------
    UnknownName, BadInput : a node or an edge that is not there
    """
    ways = _Ways(graph, treatment, outcome, active)
    for child in ways.first_children():
        if ways.on_active(treatment, child) and ways.inactive[child]:
            return ways.parting([treatment, child])
    return None


def recanting_district(
    graph: CausalGraph, treatment: str, outcome: str, active: Collection[Edge]
) -> RecantingDistrict | None:
    """A recanting district, or None; the effect along the active paths is identified iff None and the total effect is.

    Parameters
    ----------
    graph, treatment, outcome, active : as for :func:`recanting_witness`; a recanting witness is a district too
    """
    ways = _Ways(graph, treatment, outcome, active)
    towards = [name for name in graph.names if name != treatment and ways.leads(name)]
    children = set(ways.first_children())
    for district in graph.districts(within=towards):
        entered = [name for name in district if name in children]
        keep = next((name for name in entered if ways.on_active(treatment, name)), None)
        drop = next((name for name in entered if ways.off_active(treatment, name)), None)
        if keep is not None and drop is not None:
            return RecantingDistrict(
                district, [treatment, *ways.active_way(keep)], [treatment, *ways.inactive_way(treatment, drop)]
            )
    return None


class _Ways:
    """Which nodes lead to the outcome along active edges only, and which along at least one inactive edge."""

    def __init__(self, graph: CausalGraph, treatment: str, outcome: str, active: Collection[Edge]) -> None:
        graph.number(treatment)
        self.graph, self.treatment, self.outcome = graph, treatment, outcome
        self.edges = {(str(a), str(b)) for a, b in active}
        missing = sorted(self.edges - set(graph.directed))
        if missing:
            a, b = missing[0]
            raise BadInput(
                f"there is no edge {a} -> {b}", where="causal graph, active edges", mend="give its own edges"
            )
        if treatment == outcome:
            raise BadInput(f"{treatment!r} is both treatment and outcome", where="causal graph", mend="give two nodes")
        self.ancestors = graph.ancestors(outcome) | {outcome}
        self.active = dict.fromkeys(graph.names, False)
        self.inactive = dict.fromkeys(graph.names, False)
        self.active[outcome] = True
        for name in reversed(graph.topological_order()):
            for child in graph.children(name):
                counts = (name, child) in self.edges
                self.active[name] |= counts and self.active[child]
                self.inactive[name] |= self.inactive[child] or (not counts and child in self.ancestors)

    def leads(self, name: str) -> bool:
        return name in self.ancestors

    def first_children(self) -> list[str]:
        return [child for child in self.graph.children(self.treatment) if self.leads(child)]

    def on_active(self, parent: str, child: str) -> bool:
        return (parent, child) in self.edges and self.active[child]

    def off_active(self, parent: str, child: str) -> bool:
        """Whether a path that begins with this edge has an inactive edge."""
        return self.leads(child) and ((parent, child) not in self.edges or self.inactive[child])

    def parting(self, shared: list[str]) -> RecantingWitness:
        """Follow active edges as long as both ways lie open behind one node; there they part."""
        while True:
            here = shared[-1]
            both = [c for c in self.graph.children(here) if self.on_active(here, c) and self.inactive[c]]
            if not both:
                break
            shared = [*shared, both[0]]
        return RecantingWitness(here, [*shared[:-1], *self.active_way(here)], [*shared, *self._inactive_after(here)])

    def active_way(self, start: str) -> list[str]:
        way = [start]
        while way[-1] != self.outcome:
            way.append(next(child for child in self.graph.children(way[-1]) if self.on_active(way[-1], child)))
        return way

    def inactive_way(self, parent: str, start: str) -> list[str]:
        if (parent, start) in self.edges:
            return [start, *self._inactive_after(start)]
        return [start, *self._any_after(start)]

    def _inactive_after(self, start: str) -> list[str]:
        child = next(child for child in self.graph.children(start) if self.off_active(start, child))
        return self.inactive_way(start, child)

    def _any_after(self, start: str) -> list[str]:
        return [] if start == self.outcome else self.graph.path(start, self.outcome)[1:]
