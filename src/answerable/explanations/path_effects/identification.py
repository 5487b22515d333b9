"""Whether a causal graph lets the effects along ordered mediators be told from data, and what stands in the way.

With blocks M1, ..., MK in causal order the score's mean is the path-specific effect if (1) nothing later moves anything
earlier, (2) the covariates close every back door of the attribute, and (3) given attribute, covariates and the blocks
before it, every block's back doors to the later ones and to the outcome are closed. Nodes of the graph that are no
columns in use count as hidden. (1) failing between two blocks makes the later one a recanting witness, (3) a recanting
district (Avin, Shpitser and Pearl 2005; Shpitser 2013).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from answerable.errors import BadInput, unknown

if TYPE_CHECKING:
    from answerable.subjects.causal_graph import CausalGraph


class Obstacle(NamedTuple):
    """Why some effects cannot be told.

    Attributes
    ----------
    effects : their names: total, direct, indirect, through BLOCK
    between : the two nodes that it lies between
    kind : order, back door or hidden cause
    reason : in words, with the way through the graph
    mend : what would help
    """

    effects: tuple[str, ...]
    between: tuple[str, str]
    kind: str
    reason: str
    mend: str


def identify(
    graph: Any,
    treatment: str,
    outcome: str,
    mediators: Mapping[str, Sequence[str]],
    covariates: Iterable[str] = (),
) -> list[Obstacle]:
    """What keeps effects along paths from being told; empty where all are identified.

    Parameters
    ----------
    graph : anything `answerable.subjects.causal_graph.load` reads
    treatment, outcome : two of its nodes
    mediators : columns of each block in causal order; a block's own name may stand for its columns in the graph
    covariates : columns that are conditioned on

    Raises
    ------
    UnknownName : treatment, outcome or a mediator is no node
    BadInput : the graph is of descendants alone or has possible edges, or a covariate is an effect of the treatment
    """
    from answerable.subjects.causal_graph import load

    whole = load(graph)
    if not whole.whole:
        raise BadInput("it names descendants alone", where="graph", mend="give its edges")
    if whole.possible:
        problem = f"the edge {' -> '.join(whole.possible[0])} is only possible"
        raise BadInput(problem, where="graph", mend="ask with it and without it: an effect is told where both tell it")
    blocks = {block: _nodes(whole, block, columns) for block, columns in mediators.items()}
    named = [treatment, outcome, *itertools.chain(*blocks.values())]
    for name in named:
        if name not in whole:
            raise unknown("node", name, whole.names, where="graph")
    known = [name for name in covariates if name in whole]
    seen = whole.without_hidden([name for name in whole.names if name not in {*named, *known}])
    for name in known:
        if name in seen.descendants(treatment):
            way = " -> ".join(seen.path(treatment, name))
            raise BadInput(
                f"covariate {name} is an effect of the attribute ({way})",
                where="graph",
                mend="make it a mediator or leave it out",
            )
    return [
        *_backward(seen, treatment, outcome, blocks),
        *_open_treatment(seen, treatment, outcome, blocks, known),
        *_open_blocks(seen, treatment, outcome, blocks, known),
    ]


def _nodes(graph: CausalGraph, block: str, columns: Sequence[str]) -> list[str]:
    """The graph's nodes of a block: its columns, or its own name."""
    return [block] if block in graph and not any(name in graph for name in columns) else list(columns)


def _all(blocks: Mapping[str, Sequence[str]], *, total: bool) -> tuple[str, ...]:
    paths = ("direct", "indirect", *(f"through {block}" for block in blocks))
    return ("total", *paths) if total else paths


def _backward(
    graph: CausalGraph, treatment: str, outcome: str, blocks: Mapping[str, Sequence[str]]
) -> Iterable[Obstacle]:
    """What is later moves what is earlier."""
    order = [("", [treatment]), *blocks.items(), ("", [outcome])]
    for (early, firsts), (late, lasts) in itertools.combinations(order, 2):
        for a, b in itertools.product(firsts, lasts):
            if a not in graph.descendants(b):
                continue
            way = " -> ".join(graph.path(b, a))
            if early and late:
                active = f"{treatment} -> {b} -> {outcome}"
                reason = f"{b} moves {a}, which comes before it ({way}): {b} would have to be as under one value of"
                reason += f" {treatment} on the way {active} and as under the other on {way}"
                affected = (f"through {early}", f"through {late}")
                yield Obstacle(affected, (a, b), "order", reason, f"put {late} before {early}, or join the two blocks")
            else:
                reason, mend = f"{b} moves {a}, which comes before it ({way})", "mend the graph or the parts of columns"
                yield Obstacle(_all(blocks, total=True), (a, b), "order", reason, mend)


def _without_edges_out_of(graph: CausalGraph, nodes: Sequence[str]) -> CausalGraph:
    from answerable.subjects.causal_graph import CausalGraph

    kept = [edge for edge in graph.directed if edge[0] not in nodes]
    return CausalGraph(kept, graph.bidirected, nodes=graph.names)


def _open_treatment(
    graph: CausalGraph, treatment: str, outcome: str, blocks: Mapping[str, Sequence[str]], known: Sequence[str]
) -> Iterable[Obstacle]:
    """A cause that the attribute shares with what it moves, and that no covariate closes."""
    cut = _without_edges_out_of(graph, [treatment])
    for name in [outcome, *itertools.chain(*blocks.values())]:
        if not cut.separated(treatment, name, known):
            reason = f"{treatment} and {name} share a cause that the covariates do not close"
            effects = _all(blocks, total=name == outcome)
            yield Obstacle(effects, (treatment, name), "back door", reason, "add that cause to the covariates")


def _open_blocks(
    graph: CausalGraph, treatment: str, outcome: str, blocks: Mapping[str, Sequence[str]], known: Sequence[str]
) -> Iterable[Obstacle]:
    """A cause that a block shares with a later one, or with the outcome."""
    names = list(blocks)
    for place, block in enumerate(names):
        given = [treatment, *known, *itertools.chain(*(blocks[name] for name in names[:place]))]
        for end, later in enumerate([*names[place + 1 :], outcome], place + 1):
            # The blocks in between are set together, so that a cause they share with this one leads no further.
            cut = _without_edges_out_of(graph, [*itertools.chain(*(blocks[name] for name in names[place:end]))])
            for node in blocks[block]:
                for other in [outcome] if later == outcome else blocks[later]:
                    if other in graph.ancestors(node) or cut.separated(node, other, given):
                        continue
                    reason = f"{node} and {other} share a hidden cause, so that {treatment} would have to have both its"
                    reason += " values in one district"
                    between = names[place : names.index(later) + 1] if later != outcome else []
                    affected = tuple(f"through {name}" for name in between) or _all(blocks, total=False)
                    mend = f"measure that cause{f', or join {block} and {later}' if between else ''}"
                    yield Obstacle(affected, (node, other), "hidden cause", reason, mend)
