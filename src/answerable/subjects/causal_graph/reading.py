"""Graphs from whatever holds one: text, tables, mappings, files, and the graph objects of other packages."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from answerable.errors import AnswerableError, BadInput, CannotRead, unknown
from answerable.subjects.address import locate
from answerable.subjects.causal_graph.graph import WHERE, CausalGraph, pairs_of
from answerable.subjects.causal_graph.text import begins_graph, has_arrow, read_statements
from answerable.subjects.kinds import kind_of, refuse_pickle

MOST_BYTES = 64_000_000
MEND = 'give edges such as "A -> B; A <-> C", or a file of DOT, dagitty, TOML, JSON or CSV'

# What a table's columns of causes, effects and kinds may be called.
CAUSE, EFFECT, KIND = (
    ("from", "cause", "source", "parent"),
    ("to", "effect", "target", "child"),
    ("kind", "type", "edge"),
)
KINDS = {
    "": "directed", "->": "directed", "directed": "directed",
    "<->": "bidirected", "bidirected": "bidirected",
    "?": "possible", "?->": "possible", "possible": "possible",
}  # fmt: skip
FIELDS = ("nodes", "edges", "directed", "bidirected", "possible", "hidden", "descendants", "possible_descendants")


def load(subject: Any) -> CausalGraph:
    """The causal graph that a subject holds.

    Parameters
    ----------
    subject : a :class:`CausalGraph`; edges in words (``"A -> B; A <-> C"``, DOT, dagitty); a path of a file of these,
        of TOML, JSON or a CSV of edges (columns from, to and, if need be, kind: directed, bidirected or possible); a
        mapping with ``edges`` (statements), ``directed``, ``bidirected`` and ``possible`` (pairs), ``nodes``,
        ``hidden``, or ``descendants`` and ``possible_descendants``; a dataframe; a networkx ``DiGraph`` (an edge with
        ``bidirected=True`` is an arc); an object with ``directed`` and ``undirected`` graphs (y0) or ``di_edges`` and
        ``bi_edges`` (Ananke); or a list of pairs

    Raises
    ------
    CannotRead, Refused : a missing or damaged file, or one that holds no graph
    BadInput : unknown syntax, a cycle, a loop, a node given twice; one line that names it
    """
    if isinstance(subject, CausalGraph):
        return subject
    if isinstance(subject, str):
        return _from_words(subject) if _is_words(subject) else _from_file(subject)
    if isinstance(subject, Path):
        return _from_file(subject)
    if isinstance(subject, Mapping):
        return _from_mapping(subject)
    for attributes, read in _FOREIGN:
        if all(hasattr(subject, name) for name in attributes):
            return read(subject)
    if isinstance(subject, (list, tuple, set, frozenset)):
        return _from_pairs(subject)
    from answerable.subjects.table import as_table

    try:
        table = as_table(subject)
    except BadInput:
        raise BadInput(f"a {type(subject).__name__} is no causal graph", where=WHERE, mend=MEND) from None
    return _from_table(table, WHERE)


def digest(value: object) -> str:
    """SHA-256 of a graph's nodes, edges and arcs, whatever file or object they came from."""
    return load(value).digest


def _is_words(text: str) -> bool:
    """Whether a string is the graph itself, and not the address of one."""
    if not (has_arrow(text) or (begins_graph(text) and "{" in text)):
        return False
    try:
        return not Path(text).expanduser().exists()
    except (OSError, ValueError):  # far too long for a path, or a null byte
        return True


def _from_words(text: str, where: str = WHERE) -> CausalGraph:
    if len(text) > MOST_BYTES:
        raise BadInput(f"longer than {MOST_BYTES} characters", where=where, mend="leave out what does not matter")
    said = read_statements(text, where)
    graph = _named(where, CausalGraph, said.directed, said.bidirected, nodes=said.nodes)
    return graph.without_hidden(said.hidden) if said.hidden else graph


def _from_file(address: str | Path) -> CausalGraph:
    path = locate(address, what='a file of a causal graph, or edges such as "A -> B; A <-> C"')
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind == "parquet":
        return _from_table_file(path)
    if kind not in ("text", "json"):
        mend = "give DOT, dagitty, TOML, JSON or a CSV of edges"
        raise CannotRead(f"a file of kind {kind!r} holds no causal graph", where=str(path), mend=mend)
    if path.stat().st_size > MOST_BYTES:
        raise CannotRead(f"longer than {MOST_BYTES} bytes", where=str(path), mend="leave out what does not matter")
    from answerable.subjects.texts import read_text

    text = read_text(path)
    if begins_graph(text):
        return _from_words(text, str(path))
    if _is_edge_list(text):
        return _from_table_file(path)
    mapping = _mapping(text, path)
    if mapping is not None:
        return _named(str(path), _from_mapping, mapping)
    if has_arrow(text):
        return _from_words(text, str(path))
    raise CannotRead("no causal graph can be read", where=str(path), mend=MEND)


def _mapping(text: str, path: Path) -> Mapping[str, Any] | None:
    """What a text says as JSON or TOML; None where it is neither.

    Raises
    ------
    CannotRead : it is damaged, and the file's name says what it should be
    """
    for read, suffix in ((json.loads, ".json"), (tomllib.loads, ".toml")):
        try:
            found = read(text)
        except (ValueError, RecursionError) as failure:
            if path.suffix.lower() == suffix:
                said = str(failure) if isinstance(failure, ValueError) else "nested too deep"
                raise CannotRead(f"damaged {suffix[1:].upper()}: {said}", where=str(path), mend="mend it") from None
            continue
        if isinstance(found, Mapping) and found:
            return found
    return None


def _is_edge_list(text: str) -> bool:
    line = text.lstrip("\ufeff").partition("\n")[0].lower()
    names = {name.strip().strip('"') for separator in ",;\t" for name in line.split(separator)}
    return bool(names.intersection(CAUSE)) and bool(names.intersection(EFFECT))


def _from_table_file(path: Path) -> CausalGraph:
    from answerable.subjects.table import read_table

    return _from_table(read_table(path), str(path))


def _from_table(table: Any, where: str) -> CausalGraph:
    """A table of edges, a row each; a row without an effect names a node."""
    lower = {name.strip().lower(): name for name in table.columns}
    cause, effect = (next((lower[name] for name in names if name in lower), None) for names in (CAUSE, EFFECT))
    if cause is None or effect is None:
        lacking, names = ("causes", CAUSE) if cause is None else ("effects", EFFECT)
        mend = f"name it {', '.join(names)}"
        raise BadInput(f"there is no column of {lacking}", where=where, mend=mend)
    kind = next((lower[name] for name in KIND if name in lower), None)
    found: dict[str, list[tuple[str, str]]] = {"directed": [], "bidirected": [], "possible": []}
    nodes: dict[str, None] = {}
    kinds = [""] * table.height if kind is None else table[kind].to_list()
    for number, (a, b, said) in enumerate(zip(table[cause].to_list(), table[effect].to_list(), kinds), 1):
        row = f"{where}, row {number}"
        first, second, word = ("" if entry is None else str(entry).strip() for entry in (a, b, said))
        if not first:
            raise BadInput("the cause is missing", where=row, mend="name a node in each row")
        if word.lower() not in KINDS:
            mend = "say directed, bidirected or possible"
            raise BadInput(f"{word[:40]!r} is no kind of edge", where=row, mend=mend)
        nodes.update(dict.fromkeys(name for name in (first, second) if name))
        if second:
            found[KINDS[word.lower()]].append((first, second))
    return _named(where, CausalGraph, nodes=nodes, **found)


def _from_mapping(mapping: Mapping[Any, Any]) -> CausalGraph:
    inner = mapping.get("graph")
    if len(mapping) == 1 and isinstance(inner, Mapping):  # a TOML file's [graph]
        return _from_mapping(inner)
    for name in mapping:
        if name not in FIELDS:
            raise unknown("entry", str(name), FIELDS, where=WHERE)
    given = {name: mapping[name] for name in FIELDS if mapping.get(name) is not None}
    hidden = given.pop("hidden", [])
    if isinstance(hidden, (str, bytes)) or not isinstance(hidden, Iterable):
        raise BadInput(f"{str(hidden)[:40]!r} is no list of names", where=f"{WHERE}, hidden", mend="give a list")
    statements = given.pop("edges", None)
    nodes = given.pop("nodes", None)
    if statements is not None:
        said = _statements(statements)
        said_too = {"directed": said.directed, "bidirected": said.bidirected, "possible": []}
        pairs = {what: [*first, *pairs_of(given.get(what, []), what)] for what, first in said_too.items()}
        hidden = [*hidden, *said.hidden]
        if nodes is None:
            nodes = dict.fromkeys([*said.nodes, *(name for edges in pairs.values() for pair in edges for name in pair)])
        given |= pairs
    graph = CausalGraph(nodes=nodes, **given)
    return graph.without_hidden(dict.fromkeys(map(str, hidden))) if hidden else graph


def _statements(given: Any) -> Any:
    lines = [given] if isinstance(given, str) else given
    if not isinstance(lines, (list, tuple)) or not all(isinstance(line, str) for line in lines):
        mend = 'give a list such as ["A -> B", "A <-> C"]'
        raise BadInput("edges are no list of statements", where=f"{WHERE}, edges", mend=mend)
    return read_statements("\n".join(lines), f"{WHERE}, edges")


def _from_pairs(pairs: Iterable[Any]) -> CausalGraph:
    listed = list(pairs)
    if listed and all(isinstance(entry, str) for entry in listed):
        return _from_mapping({"edges": listed})
    return CausalGraph(sorted(listed) if isinstance(pairs, (set, frozenset)) else listed)


# Graph objects of other packages, told by what they offer; none of them is imported.


def _from_networkx(graph: Any) -> CausalGraph:
    if not graph.is_directed():
        mend = "give a DiGraph; an edge with bidirected=True is an arc"
        raise BadInput("the networkx graph is undirected", where=WHERE, mend=mend)
    directed: list[tuple[str, str]] = []
    bidirected: list[tuple[str, str]] = []
    for a, b, data in graph.edges(data=True):
        both = data.get("bidirected") or data.get("dir") == "both"
        (bidirected if both else directed).append((_label(a), _label(b)))
    return CausalGraph(directed, bidirected, nodes=[_label(node) for node in graph.nodes])


def _from_y0(graph: Any) -> CausalGraph:
    directed, bidirected = (
        [(_label(a), _label(b)) for a, b in part.edges] for part in (graph.directed, graph.undirected)
    )
    return CausalGraph(directed, bidirected, nodes=[_label(node) for node in graph.directed.nodes])


def _from_ananke(graph: Any) -> CausalGraph:
    directed, bidirected = ([(_label(a), _label(b)) for a, b in edges] for edges in (graph.di_edges, graph.bi_edges))
    nodes = graph.vertices if isinstance(graph.vertices, Mapping) else list(graph.vertices)
    return CausalGraph(directed, bidirected, nodes=[_label(node) for node in nodes])


def _label(node: Any) -> str:
    """A node's name: itself, or its attribute ``name``."""
    return str(getattr(node, "name", node))


_FOREIGN: tuple[tuple[tuple[str, ...], Callable[[Any], CausalGraph]], ...] = (
    (("is_directed", "edges", "nodes"), _from_networkx),
    (("directed", "undirected"), _from_y0),
    (("di_edges", "bi_edges", "vertices"), _from_ananke),
)


def _named(where: str, build: Callable[..., CausalGraph], *given: Any, **named: Any) -> CausalGraph:
    """What ``build`` makes, its errors told with the place."""
    try:
        return build(*given, **named)
    except AnswerableError as error:
        raise type(error)(error.problem, where=error.where.replace(WHERE, where, 1), mend=error.mend) from None
