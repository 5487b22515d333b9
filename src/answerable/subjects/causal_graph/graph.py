"""Acyclic directed mixed graphs: directed edges, and bidirected arcs for hidden common causes.

Nodes are numbered in the order they were given; edges are kept as lists of numbers, so that one walk costs a step an
edge. All descendants of all nodes are one pass over the edges with 64 nodes a word (:mod:`.reachability`).
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from answerable.errors import BadInput, unknown

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_NODES, MOST_EDGES = 1_000_000, 10_000_000
LONGEST_NAME = 200  # characters
MOST_BITSET_BYTES = 4_000_000_000

Edge = tuple[str, str]
WHERE = "causal graph"


class CausalGraph:
    """A causal graph, or only the descendants of some of its nodes.

    Parameters
    ----------
    directed : pairs (cause, effect)
    bidirected : pairs of nodes that share a hidden cause
    nodes : all nodes, in the order tables shall have; by default those that an edge names, as they come
    possible : pairs (cause, effect) of which nobody knows whether they are there
    descendants : in place of edges, the proper descendants of some nodes; those of the others stay unknown
    possible_descendants : with ``descendants``, those of which nobody knows whether they are

    Raises
    ------
    BadInput : a directed cycle (it is named), a self loop, a node given twice, an edge to a node that ``nodes`` lacks,
        descendants that are not transitive, or more than a million nodes or ten million edges

    Examples
    --------
    >>> graph = CausalGraph([("Smiling", "High_Cheekbones")], [("Smiling", "Male")])
    >>> sorted(graph.descendants(["Smiling"]))
    ['High_Cheekbones']
    """

    def __init__(
        self,
        directed: Iterable[Any] = (),
        bidirected: Iterable[Any] = (),
        *,
        nodes: Iterable[Any] | None = None,
        possible: Iterable[Any] = (),
        descendants: Mapping[Any, Iterable[Any]] | None = None,
        possible_descendants: Mapping[Any, Iterable[Any]] | None = None,
    ) -> None:
        edges, arcs, maybe = (
            pairs_of(given, what)
            for given, what in ((directed, "directed"), (bidirected, "bidirected"), (possible, "possible"))
        )
        self._known: frozenset[int] | None = None
        keys: list[str] = []
        if descendants is not None or possible_descendants is not None:
            if edges or maybe:
                mend = "give directed edges, or the descendants of each concept"
                raise BadInput("edges and descendants are both given", where=WHERE, mend=mend)
            below, perhaps = _sets(descendants or {}), _sets(possible_descendants or {})
            keys = [*dict.fromkeys([*below, *perhaps])]
            edges = [(key, child) for key, children in below.items() for child in children]
            maybe = [(key, child) for key, children in perhaps.items() for child in children]
        certain = set(edges)
        maybe = [edge for edge in maybe if edge not in certain]
        self.names: tuple[str, ...] = _names(nodes, keys, edges, arcs, maybe)
        self._number = {name: number for number, name in enumerate(self.names)}
        self._children = self._adjacent(edges, "directed")
        self._possible = self._adjacent(maybe, "possible")
        both_ways = dict.fromkeys(pair for a, b in arcs for pair in ((a, b), (b, a)))
        self._siblings = self._adjacent(both_ways, "bidirected")
        self._order = _topological(self._children, self.names, "the directed edges make a cycle")
        if any(self._possible):
            _topological(self._with_possible, self.names, "the directed and the possible edges together make a cycle")
        if keys:
            self._known = frozenset(self._number[key] for key in keys)
            self._check_transitive()

    # What it holds

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._number

    def __repr__(self) -> str:
        counts = f"{len(self)} nodes, {len(self.directed)} directed edges, {len(self.bidirected)} bidirected arcs"
        return f"<CausalGraph of {counts}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CausalGraph) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def whole(self) -> bool:
        """Whether the edges are known; False where only descendants were given."""
        return self._known is None

    @functools.cached_property
    def directed(self) -> tuple[Edge, ...]:
        """The directed edges (cause, effect); from descendants alone, each descendant as a direct effect."""
        return tuple(self._named(self._children))

    @functools.cached_property
    def bidirected(self) -> tuple[Edge, ...]:
        """The bidirected arcs, each once."""
        return tuple((a, b) for a, b in self._named(self._siblings) if self._number[a] < self._number[b])

    @functools.cached_property
    def possible(self) -> tuple[Edge, ...]:
        """The edges of which nobody knows whether they are there."""
        return tuple(self._named(self._possible))

    @functools.cached_property
    def known(self) -> tuple[str, ...]:
        """The nodes whose descendants are known: all of them, unless only descendants were given."""
        return tuple(name for number, name in enumerate(self.names) if self._known is None or number in self._known)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of nodes, edges and arcs."""
        content = [self.names, *map(sorted, (self.directed, self.bidirected, self.possible))]
        known = None if self.whole else self.known
        return hashlib.sha256(json.dumps([*content, known]).encode()).hexdigest()

    def number(self, name: str) -> int:
        """The number of a node, from 0.

        Raises
        ------
        UnknownName : there is no such node; names the nearest one
        """
        try:
            return self._number[name]
        except (KeyError, TypeError):
            raise unknown("node", str(name), self.names, where=WHERE) from None

    def numbers(self, names: str | Iterable[str]) -> list[int]:
        """The numbers of one or several nodes."""
        return [self.number(name) for name in ([names] if isinstance(names, str) else names)]

    # Families

    def children(self, name: str) -> list[str]:
        """The direct effects of a node."""
        return [self.names[child] for child in self._children[self.number(name)]]

    def parents(self, name: str) -> list[str]:
        """The direct causes of a node."""
        return [self.names[parent] for parent in self._parents[self.number(name)]]

    def siblings(self, name: str) -> list[str]:
        """The nodes that share a hidden cause with it."""
        return [self.names[sibling] for sibling in self._siblings[self.number(name)]]

    @functools.cached_property
    def _parents(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.names]
        for parent, children in enumerate(self._children):
            for child in children:
                found[child].append(parent)
        return found

    def descendants(self, names: str | Iterable[str], *, possible: bool = False) -> set[str]:
        """The proper descendants of one node, or of any of several; bidirected arcs never count.

        Parameters
        ----------
        names : where to start; one of them may descend from another
        possible : also along possible edges

        Raises
        ------
        UnknownName : a node that is not there
        BadInput : only descendants are known, and not those of this node
        """
        starts = self.numbers(names)
        for start in starts:
            self._check_known(start)
        reached = self._reached(starts, self._with_possible if possible else self._children)
        return {self.names[number] for number in reached}

    def ancestors(self, names: str | Iterable[str]) -> set[str]:
        """The proper ancestors of one node, or of any of several."""
        return {self.names[number] for number in self._reached(self.numbers(names), self._parents)}

    @functools.cached_property
    def _with_possible(self) -> list[list[int]]:
        return [a + b for a, b in zip(self._children, self._possible, strict=True)]

    def _reached(self, starts: Iterable[int], adjacent: list[list[int]]) -> set[int]:
        reached: set[int] = set()
        todo = list(starts)
        while todo:
            fresh = [number for number in adjacent[todo.pop()] if number not in reached]
            reached.update(fresh)
            todo += fresh
        return reached

    def path(self, sources: str | Iterable[str], target: str, *, possible: bool = False) -> list[str]:
        """A shortest directed path from one of ``sources`` to ``target``, ends included; empty where there is none."""
        return self.paths(sources, [target], possible=possible).get(target, [])

    def paths(
        self, sources: str | Iterable[str], targets: Iterable[str], *, possible: bool = False
    ) -> dict[str, list[str]]:
        """:meth:`path` to each of several nodes that can be reached, by one walk."""
        goals, starts = set(self.numbers(targets)), self.numbers(sources)
        if not goals:
            return {}
        adjacent = self._with_possible if possible else self._children
        came: dict[int, int] = dict.fromkeys(starts, -1)
        found: dict[str, list[str]] = {}
        todo = deque(starts)
        while todo and goals:
            here = todo.popleft()
            for child in adjacent[here]:
                if child in goals:
                    goals.discard(child)
                    found[self.names[child]] = [self.names[number] for number in [*_back(here, came), child]]
                if child not in came:
                    came[child] = here
                    todo.append(child)
        return found

    # Orders and parts

    def topological_order(self) -> list[str]:
        """The nodes, each after its causes."""
        return [self.names[number] for number in self._order]

    def descendant_bits(self) -> npt.NDArray[np.uint64]:
        """The proper descendants of every node as bits, 64 a word.

        Returns
        -------
        (n_nodes, ceil(n_nodes / 64)) uint64; rows and bits both count along :meth:`topological_order`, so that bit
        ``j % 64`` of word ``j // 64`` in row ``i`` says whether the j-th node of that order descends from the i-th

        Raises
        ------
        BadInput : the bits would take more than 4 GB
        """
        from answerable.subjects.causal_graph.reachability import descendant_words

        n = len(self)
        if n * n / 8 > MOST_BITSET_BYTES:
            mend = "ask for the descendants of the nodes that matter"
            raise BadInput(f"all descendants of {n} nodes take {n * n // 8} bytes", where=WHERE, mend=mend)
        return descendant_words(*self._edges_in_order)

    @functools.cached_property
    def _edges_in_order(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        from answerable.subjects.causal_graph.reachability import edges_in_order

        return edges_in_order(self._order, self._children)

    def districts(self, within: Collection[str] | None = None) -> list[list[str]]:
        """The districts: what bidirected arcs hold together, nodes without one standing alone.

        Parameters
        ----------
        within : leave out every other node first; all by default
        """
        self._check_whole("districts")
        left = set(range(len(self)) if within is None else self.numbers(within))
        found = []
        for start in sorted(left):
            if start in left:
                siblings = [start, *sorted(self._reached_within(start, left))]
                left.difference_update(siblings)
                found.append([self.names[number] for number in sorted(siblings)])
        return found

    def _reached_within(self, start: int, allowed: set[int]) -> set[int]:
        reached, todo = {start}, [start]
        while todo:
            fresh = [other for other in self._siblings[todo.pop()] if other in allowed and other not in reached]
            reached.update(fresh)
            todo += fresh
        return reached - {start}

    def separated(
        self, first: str | Iterable[str], second: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether ``given`` d-separates two sets of nodes, where bidirected arcs are paths too (m-separation).

        Raises
        ------
        BadInput : the three sets are not disjoint, or only descendants are known
        """
        from answerable.subjects.causal_graph.separation import connected_to

        self._check_whole("d-separation")
        starts, goals, held = (set(self.numbers(names)) for names in (first, second, given))
        for a, b in ((starts, goals), (starts, held), (goals, held)):
            if a & b:
                both = self.names[min(a & b)]
                raise BadInput(f"{both!r} stands in two of the three sets", where=WHERE, mend="give disjoint sets")
        return not connected_to(starts, held, self._children, self._parents, self._siblings) & goals

    def without_hidden(self, hidden: Iterable[str]) -> CausalGraph:
        """The latent projection (Verma and Pearl 1990): the same independences and effects among the other nodes."""
        from answerable.subjects.causal_graph.projection import projected

        self._check_whole("leaving out hidden nodes")
        if self.possible:
            mend = "leave out hidden nodes, or possible edges"
            raise BadInput("possible edges and hidden nodes are both given", where=WHERE, mend=mend)
        return projected(self, set(self.numbers(hidden)))

    # How it is built

    def _adjacent(self, pairs: Iterable[Edge], what: str) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.names]
        number = self._number
        for a, b in pairs:
            if a not in number or b not in number:
                missing = b if a in number else a
                raise unknown("node", missing, self.names, where=f"{WHERE}, {what} edge {a} to {b}")
            found[number[a]].append(number[b])
        return found

    def _named(self, adjacent: list[list[int]]) -> Iterator[Edge]:
        for start, ends in enumerate(adjacent):
            for end in ends:
                yield self.names[start], self.names[end]

    def _check_transitive(self) -> None:
        below = {key: set(self._with_possible[key]) for key in self._known or ()}
        for certain in ({key: set(self._children[key]) for key in below}, below):
            for key, children in certain.items():
                for child in sorted(children):
                    lost = certain.get(child, set()) - children
                    if lost:
                        a, b, c = (self.names[number] for number in (key, child, min(lost)))
                        problem = f"{c!r} descends from {b!r} and {b!r} from {a!r}, but {c!r} not from {a!r}"
                        raise BadInput(problem, where=WHERE, mend=f"add {c!r} to the descendants of {a!r}")

    def _check_known(self, number: int) -> None:
        if self._known is not None and number not in self._known:
            name = self.names[number]
            mend = f"give the descendants of {name!r}, an empty list where it has none"
            raise BadInput(f"the descendants of {name!r} are not given", where=WHERE, mend=mend)

    def _check_whole(self, what: str) -> None:
        if not self.whole:
            raise BadInput(f"{what} needs the edges, and only descendants are known", where=WHERE, mend="give edges")


def _back(here: int, came: Mapping[int, int]) -> list[int]:
    path = [here]
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    return path[::-1]


def _topological(children: list[list[int]], names: tuple[str, ...], said: str) -> list[int]:
    """Numbers of the nodes, each after its causes; what stands first comes first where causes allow."""
    waiting = [0] * len(children)
    for ends in children:
        for end in ends:
            waiting[end] += 1
    order = [number for number, count in enumerate(waiting) if not count]
    for number in order:  # grows while it is walked
        for child in children[number]:
            waiting[child] -= 1
            if not waiting[child]:
                order.append(child)
    if len(order) < len(children):
        cycle = [names[number] for number in _cycle(children, waiting)]
        shown = [*cycle[:8], "...", cycle[-1]] if len(cycle) > 9 else cycle
        raise BadInput(f"{said}: {' -> '.join(shown)}", where=WHERE, mend="leave out one of its edges")
    return order


def _cycle(children: list[list[int]], waiting: list[int]) -> list[int]:
    """One cycle, first node repeated at the end, among the nodes that still wait for a cause."""
    cause = {end: start for start, ends in enumerate(children) if waiting[start] for end in ends if waiting[end]}
    here = next(number for number, count in enumerate(waiting) if count)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while here not in seen:
        seen[here] = len(walk)
        walk.append(here)
        here = cause[here]
    return [here, *walk[seen[here] + 1 :][::-1], here]


def pairs_of(given: Iterable[Any], what: str) -> list[Edge]:
    """Pairs of names, each checked and each once; an iterable of anything else is refused."""
    found: dict[Edge, None] = {}
    checked: dict[Any, str] = {}
    mend = 'give pairs such as ["Smiling", "Male"]'
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise BadInput(f"{str(given)[:40]!r} is no list of pairs", where=f"{WHERE}, {what}", mend=mend)
    for number, pair in enumerate(given, 1):
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Collection) or len(pair) != 2:
            where = f"{WHERE}, {what}, pair {number}"
            raise BadInput(f"{str(pair)[:60]!r} is no pair of names", where=where, mend=mend)
        a, b = (
            checked[name] if type(name) is str and name in checked else _checked(name, checked, what, number)
            for name in pair
        )
        if a == b:
            where = f"{WHERE}, {what}, pair {number}"
            raise BadInput(f"{a!r} is tied to itself", where=where, mend="leave this edge out")
        found[(a, b)] = None
        if len(found) > MOST_EDGES:
            raise BadInput(
                f"there are more than {MOST_EDGES} edges", where=WHERE, mend="leave out what does not matter"
            )
    return list(found)


def _checked(name: Any, checked: dict[Any, str], what: str, number: int) -> str:
    text = _name(name, f"{WHERE}, {what}, pair {number}")
    checked[text] = text
    return text


def _sets(given: Any) -> dict[str, list[str]]:
    where = f"{WHERE}, descendants"
    if not isinstance(given, Mapping):
        mend = "give a mapping of each concept to its descendants"
        raise BadInput(f"a {type(given).__name__} is no mapping", where=where, mend=mend)
    found: dict[str, list[str]] = {}
    for key, children in given.items():
        name = _name(key, where)
        if isinstance(children, (str, bytes)) or not isinstance(children, Iterable):
            raise BadInput(
                f"{str(children)[:40]!r} is no list of names", where=f"{where} of {name}", mend="give a list"
            )
        listed = [_name(child, f"{where} of {name}") for child in children]
        if name in listed:
            raise BadInput(f"{name!r} descends from itself", where=where, mend="leave it out")
        found[name] = sorted(set(listed)) if isinstance(children, (set, frozenset)) else listed
    return found


def _name(name: Any, where: str) -> str:
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise BadInput(f"{str(name)[:40]!r} is no name", where=where, mend="name nodes by strings")
    text = str(name)
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
        mend = f"give printable names of at most {LONGEST_NAME} characters"
        raise BadInput(f"{text[:40]!r} cannot be a name", where=where, mend=mend)
    return text


def _names(nodes: Iterable[Any] | None, keys: Iterable[str], *edges: list[Edge]) -> tuple[str, ...]:
    if nodes is None:
        found = dict.fromkeys(keys)
        for pairs in edges:
            found.update(dict.fromkeys(name for pair in pairs for name in pair))
        names = tuple(found)
    else:
        if isinstance(nodes, (str, bytes)) or not isinstance(nodes, Iterable):  # what a caller may hand in
            raise BadInput(f"{str(nodes)[:40]!r} is no list of names", where=f"{WHERE}, nodes", mend="give a list")
        names = tuple(_name(name, f"{WHERE}, nodes") for name in nodes)
        if len(set(names)) < len(names):
            twice = max(names, key=Counter(names).__getitem__)
            raise BadInput(f"{twice!r} is given twice", where=f"{WHERE}, nodes", mend="give each node once")
    if not names:
        raise BadInput("it has no nodes", where=WHERE, mend="give at least one edge or node")
    if len(names) > MOST_NODES:
        raise BadInput(f"it has more than {MOST_NODES} nodes", where=WHERE, mend="leave out what does not matter")
    return names
