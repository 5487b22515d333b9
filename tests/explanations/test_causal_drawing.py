"""The picture of a causal graph: layers, long edges, looks, and what a report accepts."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.answer import Figure
from answerable.explanations.causal_drawing import MOST_NODES, graph_chart, layered

WORDS = {"finding": "S moves C", "how": "Diamond: queried.", "description": "S moves C, and F shares a cause with S."}


@given(st.integers(1, 9), st.data())
@settings(max_examples=100, deadline=None)
def test_every_edge_goes_to_a_later_layer_and_no_two_nodes_share_a_place(n: int, data: st.DataObject) -> None:
    names = [f"v{i}" for i in range(n)]
    pairs = list(itertools.combinations(names, 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    layout = layered(names, edges, edges[:2])
    assert all(layout.layer[a] < layout.layer[b] for a, b in edges)
    stops = {(layout.layer[name], layout.place[name]) for name in names}
    assert len(stops) == n
    for (a, b), way in layout.ways.items():
        assert way[0] == (layout.layer[a], layout.place[a])
        assert way[-1] == (layout.layer[b], layout.place[b])
        assert [stop[0] for stop in way] == list(range(layout.layer[a], layout.layer[b] + 1))
        assert not set(way[1:-1]) & stops  # a long edge passes beside the nodes
    assert all(
        0 <= layout.layer[name] < layout.n_layers and 0 <= layout.place[name] < layout.n_places for name in names
    )


def test_what_crosses_in_the_order_given_is_uncrossed() -> None:
    layout = layered(["a", "b", "c", "d"], [("a", "d"), ("b", "c")])
    assert (layout.place["a"] < layout.place["b"]) == (layout.place["d"] < layout.place["c"])


def test_a_graph_is_drawn_at_both_widths_with_its_looks() -> None:
    nodes = [{"node": "F", "look": "plain"}, {"node": "S", "look": "start"}, {"node": "C\x1b", "look": "trouble"}]
    edges = [
        {"cause": "S", "effect": "C\x1b", "kind": "directed", "look": "trouble"},
        {"cause": "F", "effect": "S", "kind": "bidirected", "look": "plain"},
        {"cause": "F", "effect": "C\x1b", "kind": "possible", "look": "plain"},
        {"cause": "F", "effect": "not drawn", "kind": "directed", "look": "plain"},
    ]
    figure = Figure.drawn(graph_chart, nodes, edges, **WORDS)
    assert figure.title == "S moves C"
    for narrow in (False, True):
        svg = figure.svg(narrow=narrow)
        assert "C⟨001B⟩" in svg
        assert all(f">{name}<" in svg for name in "FS")
    styles = [layer["mark"]["style"] for layer in figure.wide["layer"]]
    assert {"exact", "estimate-failed", "estimate-baseline", "interval-failed", "interval-baseline"} <= set(styles)
    dashes = [layer["mark"].get("strokeDash") for layer in figure.wide["layer"]]
    assert [2, 3] in dashes
    assert [6, 4] in dashes


def test_at_most_forty_nodes_are_drawn() -> None:
    names = [f"v{i}" for i in range(60)]
    edges = [{"cause": a, "effect": b, "kind": "directed", "look": "plain"} for a, b in itertools.pairwise(names)]
    figure = Figure.drawn(graph_chart, [{"node": name, "look": "plain"} for name in names], edges, **WORDS)
    svg = figure.svg()
    assert f">v{MOST_NODES - 1}<" in svg
    assert f">v{MOST_NODES}<" not in svg
