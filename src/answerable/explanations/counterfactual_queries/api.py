"""What may be asked of a concept-based model, by names of concepts and any causal graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from answerable.errors import BadInput, unknown
from answerable.subjects.causal_graph import CausalGraph, load

from .solver import MOST_LISTED, answerable_masks

if TYPE_CHECKING:
    import polars as pl

INPUT = "X"  # the input itself among the features, where the graph has no concept of that name
MOST_ROWS = 200_000  # queries in a table
MOST_NAMED = 100  # concepts in a sentence or a cell
MOST_PATHS = 100  # that are told; those to every node of a long chain would be its length squared

Under = Literal["all", "some", "none"]


class Admissibility(NamedTuple):
    """Whether a query is answerable, and why not.

    Parameters
    ----------
    answerable : whether every graph that is possible answers it (Theorem 1)
    under : all, some or none of the possible graphs; "some" only where an edge is unsure
    witnesses : the features that the query would move without setting them; ``("X",)`` where the model sees the input
    paths : a directed path from the query to each witness, of the first hundred
    repaired : the smallest larger query that is answerable; empty where the model sees the input
    """

    answerable: bool
    under: Under
    witnesses: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    repaired: tuple[str, ...]


class Excluded(NamedTuple):
    """Why a concept may not be a feature.

    Parameters
    ----------
    concept : its name
    query : the query that moves it
    path : a directed path from the query to it; empty beyond the first hundred of a query
    unsure : whether that path has a possible edge
    """

    concept: str
    query: tuple[str, ...]
    path: tuple[str, ...]
    unsure: bool


class MaximalFeatures(NamedTuple):
    """The largest set of features that answers every query (Theorem 2).

    Parameters
    ----------
    features : the set, in the order of the universe
    excluded : each concept that is left out, with one reason
    """

    features: tuple[str, ...]
    excluded: tuple[Excluded, ...]


def admissible(
    graph: Any, features: Iterable[str] | None, query: str | Iterable[str], *, sees_input: bool = False
) -> Admissibility:
    """Whether a model that predicts from ``features`` can answer a query.

    Parameters
    ----------
    graph : a causal graph of the concepts, as :func:`answerable.subjects.causal_graph.load` takes it
    features : the concepts that the model predicts from; every concept of the graph for None; "X" among them, where no
        concept is called so, stands for the input itself
    query : the concepts that would be set
    sees_input : whether the model also sees the input itself: its pixels, an embedding, a residual, soft concepts

    Returns
    -------
    Admissibility

    Raises
    ------
    UnknownName : a concept that the graph does not have
    BadInput : an empty query, or a queried concept whose descendants are unknown

    Source
    ------
    Hwang, Pan and Bareinboim (2025), Theorem 1 and Proposition 1.
    """
    found = load(graph)
    asked = queried(found, query)
    chosen, hybrid = featured(found, features, sees_input)
    if hybrid:
        return Admissibility(False, "none", (INPUT,), ((INPUT,),), ())
    wanted = set(asked)
    certain = found.descendants(asked) - wanted
    moved = found.descendants(asked, possible=True) - wanted if found.possible else certain
    if moved.isdisjoint(chosen):
        return Admissibility(True, "all", (), (), tuple(asked))
    witnesses = tuple(name for name in chosen if name in moved)
    paths = tuple(_ways(found, asked, witnesses).values())
    under: Under = "some" if certain.isdisjoint(witnesses) else "none"
    return Admissibility(False, under, witnesses, paths, (*asked, *witnesses))


def _ways(graph: CausalGraph, query: Sequence[str], moved: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """A directed path from the query to each of the first hundred concepts that it moves, possible edges only where
    need be.
    """
    told = moved[:MOST_PATHS]
    certain = graph.paths(query, told)
    unsure = graph.paths(query, [name for name in told if name not in certain], possible=True)
    return {name: tuple(certain.get(name) or unsure[name]) for name in told}


def is_answerable(graph: Any, features: Iterable[str] | None, query: str | Iterable[str]) -> bool:
    """Whether :func:`admissible` says yes, without saying why."""
    found = load(graph)
    asked = queried(found, query)
    chosen, hybrid = featured(found, features, False)
    moved = found.descendants(asked, possible=bool(found.possible))
    return not hybrid and (moved - set(asked)).isdisjoint(chosen)


def maximal_features(
    graph: Any, queries: Iterable[str | Iterable[str]], universe: Iterable[str] | None = None
) -> MaximalFeatures:
    """The largest set of features with which every query is answerable, and why each other concept is left out.

    Parameters
    ----------
    graph : a causal graph of the concepts
    queries : each the concepts that would be set
    universe : the concepts to choose among; every concept of the graph for None

    Raises
    ------
    UnknownName, BadInput : as :func:`admissible`

    Source
    ------
    Hwang, Pan and Bareinboim (2025), Theorem 2. With possible edges: the largest set under every possible graph.
    """
    found = load(graph)
    choice, _ = featured(found, universe, False)
    excluded: dict[str, Excluded] = {}
    for query in queries:
        asked = queried(found, query)
        moved = found.descendants(asked, possible=True) - set(asked)
        certain = found.descendants(asked)
        fresh = [
            name
            for name in choice
            if name in moved and (name not in excluded or (excluded[name].unsure and name in certain))
        ]
        ways = _ways(found, asked, fresh)
        excluded |= {name: Excluded(name, tuple(asked), ways.get(name, ()), name not in certain) for name in fresh}
    kept = tuple(name for name in choice if name not in excluded)
    return MaximalFeatures(kept, tuple(excluded[name] for name in choice if name in excluded))


def answerable_queries(
    graph: Any,
    features: Iterable[str] | None,
    *,
    max_size: int = 2,
    universe: Iterable[str] | None = None,
    sees_input: bool = False,
) -> pl.DataFrame:
    """Every query of at most ``max_size`` concepts, and whether the features answer it.

    Parameters
    ----------
    graph : a causal graph of the concepts
    features : the concepts that the model predicts from; every concept for None
    max_size : of a query
    universe : the concepts that may be queried; every concept whose descendants are known for None
    sees_input : as for :func:`admissible`

    Returns
    -------
    query (list of names), size, answerable, blocked_by (list of names), by size and then in the order of the graph

    Raises
    ------
    BadInput : more than 200,000 queries, or ``max_size`` below 1
    """
    import polars as pl

    found = load(graph)
    names = list(found.known) if universe is None else queried(found, universe)
    if isinstance(max_size, bool) or not isinstance(max_size, int) or max_size < 1:
        raise BadInput(f"it is {max_size!r}", where="max_size", mend="give a whole number, at least 1")
    count = _subsets(len(names), max_size)
    if count > MOST_ROWS:
        mend = "give a smaller max_size, or the concepts that may be queried"
        raise BadInput(f"there are {count} queries", where="answerable queries", mend=mend)
    chosen, hybrid = featured(found, features, sees_input)
    looked_at = set(chosen)
    moved = {name: found.descendants(name, possible=bool(found.possible)) & looked_at for name in names}
    rows = []
    for size in range(1, min(max_size, len(names)) + 1):
        for query in itertools.combinations(names, size):
            reached = set().union(*(moved[name] for name in query)).difference(query)
            blocked = [INPUT] if hybrid else [name for name in chosen if name in reached]
            rows.append((list(query), size, not blocked, blocked))
    schema: dict[str, Any] = {
        "query": pl.List(pl.String),
        "size": pl.Int64,
        "answerable": pl.Boolean,
        "blocked_by": pl.List(pl.String),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def count_answerable(graph: Any, features: Iterable[str] | None, *, sees_input: bool = False) -> tuple[int, int] | None:
    """How many of all non-empty queries are answerable, and how many there are; None beyond twenty concepts.

    Source
    ------
    ``W`` is answerable iff ``De(W)`` and the features meet within W alone (ours), over all sets at once.
    """
    found = load(graph)
    if len(found.known) > MOST_LISTED:
        return None
    chosen, hybrid = featured(found, features, sees_input)
    if hybrid:
        return 0, 2 ** len(found.known) - 1
    place = {name: number for number, name in enumerate(found.known)}
    outside = set(chosen) - place.keys()  # features that cannot be queried: whoever moves one is not answerable
    below = [found.descendants(name, possible=bool(found.possible)) for name in found.known]
    masks = [sum(1 << place[child] for child in children if child in place) for children in below]
    lost = [bool(children & outside) for children in below]
    queries = answerable_masks(masks, sum(1 << place[name] for name in chosen if name in place))
    barred = sum(1 << number for number, is_lost in enumerate(lost) if is_lost)
    return int((queries & barred == 0).sum()), 2 ** len(place) - 1


def naive_meaning(
    graph: Any,
    features: Iterable[str] | None,
    query: str | Iterable[str] | Mapping[str, Any],
    *,
    sees_input: bool = False,
) -> str:
    """What overwriting the queried concepts in a concept model, and predicting again, really answers.

    Parameters
    ----------
    graph, features, sees_input : as for :func:`admissible`
    query : the concepts that would be set; or a mapping to their values, None where none is named
    """
    values = dict(query) if isinstance(query, Mapping) else {}
    found = load(graph)
    asked = queried(found, list(values) or query)
    said = admissible(found, features, asked, sees_input=sees_input)
    what = ", ".join(name if values.get(name) is None else f"{name} = {values[name]}" for name in asked)
    if not said.repaired:
        return f"nothing: the model also sees the input, which would have been another with {what}"
    if said.answerable:
        return f"the question itself: {what}, and all that follows from it following"
    held = named(said.witnesses)
    return f"{what}, with {held} held as now; not {what}, with {held} following"


def named(names: Sequence[str]) -> str:
    """Names in words, of very many the first hundred."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def queried(graph: CausalGraph, query: str | Iterable[str]) -> list[str]:
    """The concepts of a query, each once.

    Raises
    ------
    UnknownName, BadInput : a concept that the graph does not have; no concept; one twice
    """
    names = [query] if isinstance(query, str) else query
    if isinstance(names, (bytes, int, float)) or not isinstance(names, Iterable):
        raise BadInput(f"{str(query)[:40]!r} is no query", where="query", mend="give names of concepts")
    asked = list(names)
    if not asked:
        raise BadInput("the query is empty", where="query", mend="name at least one concept to be set")
    for name in asked:
        if name not in graph:
            raise unknown("concept", str(name), graph.names, where="query")
    if len(set(asked)) < len(asked):
        twice = next(name for name in asked if asked.count(name) > 1)
        raise BadInput(f"{twice!r} is set twice", where="query", mend="name each concept once")
    return asked


def featured(graph: CausalGraph, features: Iterable[str] | None, sees_input: bool) -> tuple[Sequence[str], bool]:
    """The features, and whether the input itself is one of them."""
    if features is None:
        return graph.names, sees_input
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise BadInput(f"{str(features)[:40]!r} is no list of concepts", where="features", mend="give a list of names")
    chosen = list(dict.fromkeys(features))
    for name in chosen:
        if name not in graph and name != INPUT:
            raise unknown("concept", str(name), graph.names, where="features")
    concepts = [name for name in chosen if name in graph]
    return concepts, sees_input or len(concepts) < len(chosen)


class Plan(NamedTuple):
    """What a query may move on its way to the features.

    Parameters
    ----------
    moved : concepts, causes first
    queried_parents : by moved concept, its causes among the query
    moved_parents : by moved concept, the numbers of its causes among the moved
    """

    moved: list[str]
    queried_parents: list[list[str]]
    moved_parents: list[list[int]]


def planned(graph: CausalGraph, features: Sequence[str], query: Sequence[str]) -> Plan:
    """The concepts outside the query that descend from it and lead to a feature without passing it; none where
    answerable.
    """
    causes: dict[str, list[str]] = {name: [] for name in graph.names}
    for cause, effect in (*graph.directed, *graph.possible):
        causes[effect].append(cause)
    asked = set(query)
    leading: set[str] = set()
    todo = [name for name in features if name not in asked]
    while todo:
        name = todo.pop()
        if name not in leading:
            leading.add(name)
            todo += [cause for cause in causes[name] if cause not in asked]
    below = graph.descendants(query, possible=True) & leading
    moved = [name for name in _in_order(graph, causes) if name in below]
    place = {name: number for number, name in enumerate(moved)}
    return Plan(
        moved,
        [[cause for cause in causes[name] if cause in asked] for name in moved],
        [sorted(place[cause] for cause in causes[name] if cause in place) for name in moved],
    )


def _in_order(graph: CausalGraph, causes: Mapping[str, list[str]]) -> list[str]:
    """Causes first, possible edges included."""
    if not graph.possible:
        return graph.topological_order()
    return CausalGraph([(a, b) for b, names in causes.items() for a in names], nodes=graph.names).topological_order()


def _subsets(n: int, most: int) -> int:
    total, term = 0, 1
    for size in range(1, min(n, most) + 1):
        term = term * (n - size + 1) // size
        total += term
    return total
