"""Causal graphs: reading, refusing, reachability, separation, districts, recanting, projection."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable import subjects
from answerable.errors import AnswerableError, BadInput, CannotRead, Refused
from answerable.subjects.causal_graph import (
    CausalGraph,
    digest,
    edges_after,
    load,
    recanting_district,
    recanting_witness,
)
from tests.oracles import causal_graph as oracle

FACES = CausalGraph(
    [("Smiling", "High_Cheekbones"), ("Smiling", "Mouth_Open")],
    [("Smiling", "Male")],
    nodes=["Smiling", "High_Cheekbones", "Mouth_Open", "Male"],
)


@st.composite
def mixed_graphs(draw: st.DrawFn, most: int = 7, *, arcs: bool = True) -> CausalGraph:
    n = draw(st.integers(2, most))
    names = draw(st.permutations([f"v{i}" for i in range(n)]))
    pairs = list(itertools.combinations(names, 2))
    directed = draw(st.lists(st.sampled_from(pairs), max_size=2 * n, unique=True))
    bidirected = draw(st.lists(st.sampled_from(pairs), max_size=n if arcs else 0, unique=True))
    return CausalGraph(directed, bidirected, nodes=sorted(names))


# Reading


def same(subject: Any) -> bool:
    return load(subject) == FACES


DAGITTY = """dag {
bb="-1,-1,1,1"
Smiling [exposure, pos="0.1,0.2"]
High_Cheekbones; Mouth_Open
Male [outcome]
High_Cheekbones <- Smiling -> Mouth_Open
Smiling <-> Male [beta=.3]
}"""
DOT = """strict digraph "faces" { // a comment
  rankdir=LR; node [shape=box, color="red"];
  Smiling -> {High_Cheekbones Mouth_Open} [weight=2];
  Smiling -> Male [dir=both]
}"""


def test_every_way_to_say_it_gives_the_same_graph(tmp_path: Path) -> None:
    assert same(DAGITTY)
    assert same(DOT)
    assert same("Smiling -> High_Cheekbones; Smiling -> Mouth_Open; Smiling <-> Male")
    assert load("{A B} -> {C D}").directed == (("A", "C"), ("A", "D"), ("B", "C"), ("B", "D"))
    assert load("{ A -> B }") == load("A -> B")
    assert same({"edges": ["Smiling -> High_Cheekbones, Smiling -> Mouth_Open", "Smiling <-> Male"]})
    mapping = {
        "nodes": list(FACES.names),
        "directed": [["Smiling", "High_Cheekbones"], ["Smiling", "Mouth_Open"]],
        "bidirected": [["Male", "Smiling"]],
    }
    assert same(mapping)
    assert same({"graph": mapping})
    table = {
        "from": ["Smiling", "Smiling", "Smiling"],
        "to": ["High_Cheekbones", "Mouth_Open", "Male"],
        "kind": ["directed", "", "<->"],
    }
    assert same(pl.DataFrame(table))
    toml = 'edges = ["Smiling -> High_Cheekbones", "Smiling -> Mouth_Open"]\nbidirected = [["Smiling", "Male"]]\n'
    files = {
        "a.gv": DOT, "b.txt": DAGITTY, "c.toml": toml, "d.toml": f"[graph]\n{toml}", "e.json": json.dumps(mapping),
        "f.csv": pl.DataFrame(table).write_csv(), "g.txt": "# mine\nSmiling -> High_Cheekbones\nSmiling -> Mouth_Open\n"
        "Smiling <-> Male\n", "h.csv": pl.DataFrame(table).write_csv(separator=";"),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert same(str(tmp_path / name)), name
    pl.DataFrame(table).write_parquet(tmp_path / "i.parquet")
    assert same(tmp_path / "i.parquet")


def test_other_packages_graphs_are_read_without_them() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(FACES.names)
    graph.add_edges_from(FACES.directed)
    graph.add_edge("Smiling", "Male", bidirected=True)
    assert same(graph)
    both = nx.MultiDiGraph(FACES.directed)
    both.add_edge("Smiling", "Male", dir="both")
    assert same(both)
    y0 = SimpleNamespace(directed=nx.DiGraph(FACES.directed), undirected=nx.Graph(FACES.bidirected))
    y0.directed.add_node("Male")
    assert same(y0)
    assert same(SimpleNamespace(vertices=list(FACES.names), di_edges=FACES.directed, bi_edges=FACES.bidirected))
    assert load(FACES) is FACES
    assert same([*map(list, FACES.directed)]) is False  # no arc
    assert same(["Smiling -> High_Cheekbones", "Smiling -> Mouth_Open", "Smiling <-> Male"])


def test_a_digest_is_of_the_content() -> None:
    assert digest(DOT) == digest(DAGITTY) == subjects.digest("causal_graph", DOT) == FACES.digest
    assert len(FACES.digest) == 64
    less = CausalGraph(FACES.directed, nodes=FACES.names)
    more = CausalGraph(FACES.directed, FACES.bidirected, possible=[("Male", "Mouth_Open")], nodes=FACES.names)
    below = CausalGraph(descendants={"Smiling": ["High_Cheekbones", "Mouth_Open"]}, nodes=FACES.names)
    assert len({FACES.digest, less.digest, more.digest, below.digest}) == 4
    assert FACES in {FACES}
    assert FACES != "a graph"


def test_hidden_nodes_become_arcs() -> None:
    assert load("dag { U [latent] U -> A; U -> B; A -> C }").bidirected == (("A", "B"),)
    assert load('digraph { U [observed="no"]; A -> U -> B; A -> C }').directed == (("A", "B"), ("A", "C"))
    assert load({"directed": [["U", "A"], ["U", "B"]], "hidden": ["U"]}).bidirected == (("A", "B"),)
    assert load({"edges": ["U -> A", "U <-> B"], "hidden": ["U"]}).bidirected == (("A", "B"),)


@pytest.mark.parametrize(
    "text, line",
    [
        ("A -> B -> A", "cycle: A -> B -> A; leave out one of its edges"),
        ("dag { A -> B; B -> C; C -> A }", "cycle: A -> B -> C -> A"),
        ("A -> A", "'A' is tied to itself"),
        ("digraph { A:n -> B }", "line 1: ports such as A: are not read"),
        ("digraph { A -> B [dir=none] }", "dir=none says no direction"),
        ("dag { A -- B }", "'--' says no direction; write ->, <- or <->"),
        ("graph { A -> B }", "a graph leaves directions open"),
        ("pdag { A -> B }", "a pdag leaves directions open"),
        ("digraph {\n A -> \n}", "line 3: '}' is not understood here"),
        ("digraph { A -> B", "'}' is missing before 'the end'"),
        ("A -> B }", "'}' is not understood here"),
        ("A -> <b>x</b>", "'<b>x</b>' is no part of a graph"),
        ('A -> "B', "is no part of a graph"),
        ("A -> B [color=]", "']' is not understood here"),
        ("{" * 60 + "A -> B" + "}" * 60, "groups lie more than 50 deep"),
        ("A -> " + "x" * 201, "cannot be a name; give printable names of at most 200 characters"),
        ('A -> "\x1b[2J"', "cannot be a name"),
    ],
)
def test_text_that_is_no_graph_is_one_line(text: str, line: str) -> None:
    with pytest.raises(BadInput) as raised:
        load(text)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "subject, line",
    [
        ({"directed": [["A", "B"]], "nodes": ["A"]}, "directed edge A to B: there is no node 'B'; known: A"),
        ({"directed": [["A", "B"]], "nodes": ["A", "B", "A"]}, "causal graph, nodes: 'A' is given twice"),
        ({"directed": [["A", "B", "C"]]}, "directed, pair 1: \"['A', 'B', 'C']\" is no pair of names"),
        ({"directed": "A -> B"}, "'A -> B' is no list of pairs"),
        ({"directed": [["A", 1.5]]}, "'1.5' is no name"),
        ({"directed": [["A", True]]}, "'True' is no name"),
        ({"bidirected": [["A", "A"]]}, "'A' is tied to itself"),
        ({"possible": [["A", "B"]], "directed": [["B", "A"]]}, "directed and the possible edges together make a cycle"),
        ({"directed": [["A", "B"]], "arrows": []}, "there is no entry 'arrows'"),
        ({"edges": [1]}, "edges are no list of statements"),
        ({"edges": ["A -> B"], "possible": 3}, "possible: '3' is no list of pairs"),
        ({"edges": ["A -> B"], "possible": [3]}, "possible, pair 1: '3' is no pair of names"),
        ({"edges": ["A -> B"], "directed": "A -> B"}, "directed: 'A -> B' is no list of pairs"),
        ({"nodes": []}, "it has no nodes"),
        ({}, "it has no nodes"),
        ({"nodes": "AB"}, "'AB' is no list of names"),
        ({"edges": ["A -> B"], "hidden": "A"}, "'A' is no list of names"),
        ({"edges": ["A -> B"], "hidden": ["Z"]}, "there is no node 'Z'"),
        ({"edges": ["A -> B"], "descendants": {"A": ["B"]}}, "edges and descendants are both given"),
        ({"descendants": {"A": ["A"]}}, "'A' descends from itself"),
        ({"descendants": {"A": "B"}}, "'B' is no list of names"),
        ({"descendants": [["A", "B"]]}, "a list is no mapping"),
        (
            {"descendants": {"A": ["B"], "B": ["C"]}},
            "'C' descends from 'B' and 'B' from 'A', but 'C' not from 'A'; add 'C' to the descendants of 'A'",
        ),
        ({"descendants": {"A": ["B"], "B": ["A"]}}, "cycle"),
        (42, "a int is no causal graph"),
        (nx.Graph([("A", "B")]), "the networkx graph is undirected"),
        (nx.DiGraph([("A", "B"), ("B", "A")]), "cycle: A -> B -> A"),
        (pl.DataFrame({"from": ["A"], "into": ["B"]}), "there is no column of effects; name it to, effect"),
        (pl.DataFrame({"from": ["A"], "to": ["B"], "kind": ["--"]}), "row 1: '--' is no kind of edge"),
        (pl.DataFrame({"from": ["A", None], "to": ["B", "C"]}), "row 2: the cause is missing"),
        ([("A", "B"), "C"], "pair 2: 'C' is no pair of names"),
    ],
)
def test_an_object_that_is_no_graph_is_one_line(subject: Any, line: str) -> None:
    with pytest.raises(AnswerableError) as raised:
        load(subject)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_are_no_graphs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04N.")
    (tmp_path / "b.txt").write_text("nothing of the kind")
    (tmp_path / "c.gv").write_text("digraph { A -> A }")
    (tmp_path / "d.json").write_text("[" * 100_000)
    (tmp_path / "e.csv").write_text("from,to\nA,A\n")
    (tmp_path / "f.gz").write_bytes(b"\x1f\x8b12")
    with pytest.raises(Refused, match=r"a\.pkl: this is a pickle"):
        load(tmp_path / "a.pkl")
    for name, line in {
        "b.txt": r"b\.txt: no causal graph can be read",
        "c.gv": r"c\.gv, directed, pair 1: 'A' is tied to itself",
        "d.json": r"d\.json: damaged JSON: nested too deep",
        "e.csv": r"e\.csv, directed, pair 1: 'A' is tied",
        "f.gz": "a file of kind 'compressed' holds no causal graph",
        "missing": "no such file",
    }.items():
        with pytest.raises(BadInput, match=line):
            load(str(tmp_path / name))
    with pytest.raises(CannotRead):
        load("no/such/file.gv")


def test_descendants_of_others_are_unknown() -> None:
    graph = CausalGraph(descendants={"A": {"C", "B"}}, possible_descendants={"A": ["D"], "E": []})
    assert not graph.whole
    assert graph.known == ("A", "E")
    assert graph.descendants("A") == {"B", "C"}
    assert graph.descendants("A", possible=True) == {"B", "C", "D"}
    assert graph.descendants("E") == set()
    with pytest.raises(BadInput, match="the descendants of 'B' are not given; give the descendants of 'B', an empty"):
        graph.descendants("B")
    with pytest.raises(BadInput, match="d-separation needs the edges"):
        graph.separated("A", "B")


# What it computes


@given(mixed_graphs(12))
@settings(max_examples=60, deadline=None)
def test_descendants_are_networkx_s(graph: CausalGraph) -> None:
    peer = nx.DiGraph(graph.directed)
    peer.add_nodes_from(graph.names)
    order = graph.topological_order()
    assert sorted(order) == sorted(graph.names)
    assert all(order.index(a) < order.index(b) for a, b in graph.directed)
    bits = np.unpackbits(graph.descendant_bits().view(np.uint8), axis=1, bitorder="little")[:, : len(graph)]
    for name, row in zip(order, bits, strict=True):
        below = nx.descendants(peer, name)
        assert graph.descendants(name) == below == {order[j] for j in np.flatnonzero(row)}
        assert graph.ancestors(name) == nx.ancestors(peer, name)
        for other in graph.names:
            path = graph.path(name, other)
            assert bool(path) == (other in below)
            if path:
                assert path[0] == name
                assert path[-1] == other
                assert set(itertools.pairwise(path)) <= set(graph.directed)
                assert len(path) - 1 == nx.shortest_path_length(peer, name, other)
    pair = list(graph.names[:2])
    assert graph.descendants(pair) == graph.descendants(pair[0]) | graph.descendants(pair[1])


def test_bits_of_many_words_are_networkx_s() -> None:
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 400, (1200, 2))
    graph = CausalGraph([(f"v{min(a, b)}", f"v{max(a, b)}") for a, b in ends if a != b])
    peer, order = nx.DiGraph(graph.directed), graph.topological_order()
    bits = np.unpackbits(graph.descendant_bits().view(np.uint8), axis=1, bitorder="little")[:, : len(graph)]
    assert bits.sum() > 5000
    for name, row in zip(order, bits, strict=True):
        assert {order[j] for j in np.flatnonzero(row)} == nx.descendants(peer, name)


@given(mixed_graphs(6), st.data())
@settings(max_examples=150, deadline=None)
def test_separation_is_that_of_all_paths_and_of_networkx(graph: CausalGraph, data: st.DataObject) -> None:
    a, b = data.draw(st.permutations(graph.names))[:2]
    held = data.draw(st.sets(st.sampled_from([*graph.names]))) - {a, b}
    found = graph.separated(a, b, held)
    assert found == oracle.separated(list(graph.directed), list(graph.bidirected), {a}, {b}, held)
    peer = nx.DiGraph(graph.directed)
    peer.add_nodes_from(graph.names)
    for number, arc in enumerate(graph.bidirected):
        peer.add_edges_from((f"hidden {number}", end) for end in arc)
    assert found == nx.is_d_separator(peer, {a}, {b}, held)


def test_separation_wants_disjoint_sets() -> None:
    with pytest.raises(BadInput, match="'Male' stands in two of the three sets"):
        FACES.separated("Male", "Smiling", ["Male"])


@given(mixed_graphs(8))
@settings(max_examples=100, deadline=None)
def test_districts_are_the_components_of_the_arcs(graph: CausalGraph) -> None:
    peer = nx.Graph(graph.bidirected)
    peer.add_nodes_from(graph.names)
    assert sorted(map(sorted, graph.districts())) == sorted(map(sorted, nx.connected_components(peer)))
    half = graph.names[::2]
    within = sorted(map(sorted, nx.connected_components(peer.subgraph(half))))
    assert sorted(map(sorted, graph.districts(within=half))) == within


@given(mixed_graphs(7), st.data())
@settings(max_examples=50, deadline=None)
def test_projection_keeps_separations_and_effects(graph: CausalGraph, data: st.DataObject) -> None:
    hidden = data.draw(st.sets(st.sampled_from([*graph.names[2:]]))) if len(graph) > 2 else set()
    left = graph.without_hidden(hidden)
    assert left.names == tuple(name for name in graph.names if name not in hidden)
    for name in left.names:
        assert left.descendants(name) == graph.descendants(name) - hidden
    for a, b in itertools.combinations(left.names, 2):
        for size in range(len(left) - 1):
            for held in itertools.combinations([name for name in left.names if name not in (a, b)], size):
                assert left.separated(a, b, held) == graph.separated(a, b, held)


@given(mixed_graphs(6), st.data())
@settings(max_examples=150, deadline=None)
def test_recanting_is_found_where_the_definition_finds_it(graph: CausalGraph, data: st.DataObject) -> None:
    treatment, outcome = data.draw(st.permutations(graph.names))[:2]
    active = data.draw(st.sets(st.sampled_from([*graph.directed]))) if graph.directed else set()
    edges = list(graph.directed)
    district = recanting_district(graph, treatment, outcome, active)
    assert (district is not None) == oracle.recanting_district(
        edges, list(graph.bidirected), treatment, outcome, active
    )
    witness = recanting_witness(graph, treatment, outcome, active)
    assert (witness is not None) == oracle.recanting_district(edges, [], treatment, outcome, active)
    for found in (district, witness):
        if found is not None:
            for path, counts in ((found.active, True), (found.inactive, False)):
                assert (path[0], path[-1]) == (treatment, outcome)
                assert set(itertools.pairwise(path)) <= set(edges)
                assert (set(itertools.pairwise(path)) <= active) is counts
    if witness is not None:
        place = witness.active.index(witness.node)
        assert witness.active[: place + 1] == witness.inactive[: place + 1]


def test_the_kite_recants() -> None:
    """Avin, Shpitser and Pearl: X -> Z -> Y against X -> Z -> W -> Y."""
    kite = load("X -> Z -> W -> Y; Z -> Y; X -> Y")
    witness = recanting_witness(kite, "X", "Y", {("X", "Z"), ("Z", "Y")})
    assert witness == ("Z", ["X", "Z", "Y"], ["X", "Z", "W", "Y"])
    assert recanting_witness(kite, "X", "Y", edges_after(kite, "X", [("X", "Z")])) is None
    hidden = load("X -> W -> Y; X -> V -> Y; W <-> V")
    through_v = edges_after(hidden, "X", [("X", "V")])
    assert recanting_witness(hidden, "X", "Y", through_v) is None
    assert recanting_district(hidden, "X", "Y", through_v) == (["W", "V"], ["X", "V", "Y"], ["X", "W", "Y"])
    with pytest.raises(BadInput, match="V -> Y is no edge out of 'X'; choose among X -> W, X -> V"):
        edges_after(hidden, "X", [("V", "Y")])
    with pytest.raises(BadInput, match="there is no edge V -> W"):
        recanting_district(hidden, "X", "Y", [("V", "W")])
    with pytest.raises(BadInput, match="both treatment and outcome"):
        recanting_district(hidden, "X", "X", [])


def test_a_long_chain_and_a_long_cycle_are_read() -> None:
    chain = [(f"v{i}", f"v{i + 1}") for i in range(20_000)]
    assert len(CausalGraph(chain).descendants("v0")) == 20_000
    with pytest.raises(BadInput, match=r"v0 -> v1 -> v2 -> v3 -> v4 -> v5 -> v6 -> v7 -> \.\.\. -> v0; leave"):
        CausalGraph([*chain, ("v20000", "v0")])


def test_all_descendants_of_very_many_nodes_are_refused() -> None:
    graph = CausalGraph([("a", "b")], nodes=["a", "b", *map(str, range(200_000))])
    with pytest.raises(BadInput, match="all descendants of 200002 nodes take 5000"):
        graph.descendant_bits()


@given(mixed_graphs(), st.data())
@settings(max_examples=60, deadline=None)
def test_paths_to_several_nodes_are_shortest_ones(graph: CausalGraph, data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.sampled_from(graph.names), unique=True, min_size=1))
    found = graph.paths(sources, graph.names)
    peer = nx.DiGraph(graph.directed)
    peer.add_nodes_from(graph.names)
    for name in graph.names:
        ways = [
            nx.shortest_path_length(peer, source, name)
            for source in sources
            if source != name and nx.has_path(peer, source, name)
        ]
        assert (name in found) == bool(ways)
        if ways:
            path = found[name]
            assert path == graph.path(sources, name)
            assert path[0] in sources
            assert path[-1] == name
            assert len(path) == min(ways) + 1
            assert set(itertools.pairwise(path)) <= set(graph.directed)


def test_a_long_chain_of_hidden_nodes_is_projected() -> None:
    n = 20_000
    graph = load({"directed": [[f"v{i}", f"v{i + 1}"] for i in range(n)], "hidden": [f"v{i}" for i in range(1, n)]})
    assert graph.directed == (("v0", f"v{n}"),)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.toml", 'edges = ["A -> B"', "a.toml: damaged TOML: "),
        ("a.json", '{"edges": ["A -> B"', "a.json: damaged JSON: "),
        ("deep.json", "[" * 100_000, "deep.json: damaged JSON: nested too deep"),
        ("b.toml", 'edges = ["A -> B"]\nknots = 3\n', "b.toml: there is no entry 'knots'"),
    ],
)
def test_a_damaged_file_is_told_by_its_name(tmp_path: Path, name: str, text: str, line: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(AnswerableError) as raised:
        load(str(tmp_path / name))
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_words_without_an_arrow_are_told_what_arrows_look_like() -> None:
    with pytest.raises(AnswerableError, match=r"A -- B: no such file .*, or edges such as .A -> B; A <-> C."):
        load("A -- B")
