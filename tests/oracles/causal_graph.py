"""By definition and by listing: walks, paths, separation, districts, recanting, in small graphs."""

import itertools
from collections.abc import Iterable, Iterator

Edge = tuple[str, str]


def paths(edges: Iterable[Edge], start: str, end: str) -> Iterator[list[str]]:
    """Every directed path."""
    edges = list(edges)
    todo = [[start]]
    while todo:
        path = todo.pop()
        if path[-1] == end:
            yield path
            continue
        todo += [[*path, b] for a, b in edges if a == path[-1] and b not in path]


def descendants(edges: Iterable[Edge], start: str) -> set[str]:
    edges = list(edges)
    return {b for _, b in edges if b != start and any(paths(edges, start, b))}


def separated(directed: list[Edge], bidirected: list[Edge], first: set[str], second: set[str], given: set[str]) -> bool:
    """m-separation: no path, listed one by one, is open."""
    steps: dict[str, list[tuple[str, bool, bool]]] = {}  # other end, arrowhead here, arrowhead there
    for a, b in directed:
        steps.setdefault(a, []).append((b, False, True))
        steps.setdefault(b, []).append((a, True, False))
    for a, b in bidirected:
        steps.setdefault(a, []).append((b, True, True))
        steps.setdefault(b, []).append((a, True, True))
    below = {node: descendants(directed, node) | {node} for node in steps}

    def open_path(path: list[str], entered: bool) -> bool:
        here = path[-1]
        if here in second:
            return True
        for other, head_here, head_there in steps.get(here, []):
            if other in path:
                continue
            if len(path) > 1:
                collider = entered and head_here
                if (not below[here] & given) if collider else (here in given):
                    continue
            if open_path([*path, other], head_there):
                return True
        return False

    return not any(open_path([start], False) for start in first)


def recanting_district(
    directed: list[Edge], bidirected: list[Edge], treatment: str, outcome: str, active: set[Edge]
) -> bool:
    """Shpitser (2013): a district that both an active and an inactive path enter from the treatment."""
    every = list(paths(directed, treatment, outcome))
    enters = {
        (path[1], all(edge in active for edge in itertools.pairwise(path)))
        for path in every
    }  # fmt: skip
    towards = {node for path in every for node in path} | {
        node for edge in directed for node in edge if any(paths(directed, node, outcome))
    }
    towards |= {outcome}
    towards.discard(treatment)
    return any(
        keep and not drop and linked(bidirected, towards, a, b) for a, keep in enters for b, drop in enters
    )  # fmt: skip


def linked(bidirected: list[Edge], within: set[str], a: str, b: str) -> bool:
    found, size = {a}, 0
    while len(found) > size:
        size = len(found)
        found |= {d for c, d in [*bidirected, *((d, c) for c, d in bidirected)] if c in found and d in within}
    return b in found
