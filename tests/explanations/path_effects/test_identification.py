"""Which effects a graph lets be told, against recanting districts; and what a hidden cause leaves open."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.answer import Answer
from answerable.asking import ask
from answerable.errors import AnswerableError
from answerable.explanations.path_effects import PathSpecificEffects, identify
from answerable.explanations.path_effects.replicas import make_study
from answerable.subjects.causal_graph import CausalGraph, recanting_district

GRAPH = "Z -> {X W V Y}; X -> {W V Y}; W -> {V Y}; V -> Y"
BLOCKS = {"W": ["W"], "V": ["V"]}
NODES = ["X", "W", "V", "Y"]
PAIRS = list(itertools.combinations(NODES, 2))


def lost(extra: str, covariates: tuple[str, ...] = ("Z",)) -> set[str]:
    found = identify(f"{GRAPH}; {extra}" if extra else GRAPH, "X", "Y", BLOCKS, covariates)
    return {name for obstacle in found for name in obstacle.effects}


def test_the_papers_graph_lets_everything_be_told() -> None:
    assert lost("") == set()
    assert lost("X <-> Z") == set()


MEDIATED = {"direct", "indirect", "through W", "through V"}


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("W <-> V", {"through W", "through V"}),
        ("U -> {W V}", {"through W", "through V"}),
        ("W <-> Y", MEDIATED),
        ("V <-> Y", MEDIATED),
        ("X <-> Y", MEDIATED | {"total"}),
        ("X <-> V", MEDIATED | {"total"}),
    ],
)
def test_hidden_causes_take_away_what_they_touch(extra: str, expected: set[str]) -> None:
    assert lost(extra) == expected


def test_an_unused_common_cause_is_a_hidden_one() -> None:
    assert lost("", covariates=()) == MEDIATED | {"total"}


def test_a_later_block_that_moves_an_earlier_one_recants() -> None:
    found = identify(GRAPH, "X", "Y", {"V": ["V"], "W": ["W"]}, ["Z"])
    assert [obstacle.kind for obstacle in found] == ["order"]
    assert set(found[0].effects) == {"through V", "through W"}
    assert found[0].reason == (
        "W moves V, which comes before it (W -> V): W would have to be as under one value of X on the way X -> W -> Y"
        " and as under the other on W -> V"
    )
    assert identify(GRAPH, "X", "Y", {"both": ["V", "W"]}, ["Z"]) == []


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_what_no_data_can_tell_is_never_passed(directed: list[bool], arcs: list[bool]) -> None:
    graph = CausalGraph(
        [pair for pair, there in zip(PAIRS, directed, strict=True) if there],
        [pair for pair, there in zip(PAIRS, arcs, strict=True) if there],
        nodes=NODES,
    )
    said = {name for obstacle in identify(graph, "X", "Y", BLOCKS) for name in obstacle.effects}
    edges = set(graph.directed)
    active = {"through V": {("X", "V"), ("V", "Y")}, "direct": {("X", "Y")}}
    for name, own in active.items():
        if own <= edges and recanting_district(graph, "X", "Y", own & edges) is not None:
            assert name in said
    assert all(not arc or said for arc, pair in zip(arcs, PAIRS, strict=True) if pair in edges)


def test_a_block_may_stand_in_the_graph_by_its_name() -> None:
    assert identify(GRAPH, "X", "Y", {"W": ["ph", "lactate"], "V": ["spo2", "sao2"]}, ["Z"]) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"outcome": "death"}, "graph: there is no node 'death'"),
        ({"covariates": ["W"], "mediators": {"V": ["V"]}}, "covariate W is an effect of the attribute (X -> W)"),
        ({"graph": {"descendants": {"X": ["W", "Y"]}}}, "graph: it names descendants alone; give its edges"),
        (
            {"graph": {"directed": [["X", "W"], ["W", "Y"]], "nodes": list("XYVWZ"), "possible": [["W", "V"]]}},
            "graph: the edge W -> V is only possible; ask with it and without it",
        ),
    ],
)
def test_graphs_that_do_not_fit_are_one_line(fields: dict[str, Any], said: str) -> None:
    given_ = {"graph": GRAPH, "treatment": "X", "outcome": "Y", "mediators": BLOCKS, "covariates": ["Z"], **fields}
    with pytest.raises(AnswerableError) as raised:
        identify(**given_)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


OWN = "x -> {w v y}; w -> {v y}; v -> y"


def asked(**fields: Any) -> Answer:
    table = make_study("randomised", 3000, np.random.default_rng(1)).table
    given_ = {"treatment": "x", "outcome": "y", "mediators": ["w", "v"], "learner": "cells", **fields}
    return ask("path-effects", store=False, seed=0, table=table, **given_)


def test_under_a_hidden_cause_the_mediators_are_told_together() -> None:
    apart, together = asked(graph=OWN), asked(graph=f"{OWN}; w <-> v")
    assert {"through_w", "through_v"} <= set(apart.metrics)
    assert {"through_w", "through_v"}.isdisjoint(together.metrics)
    assert together.tables["effects"].frame["effect"].to_list() == ["total", "direct", "indirect"]
    assert together.metrics["indirect"].value == apart.metrics["indirect"].value
    assert "through w and v" in together.summary
    assert together.verdict is not None
    assert "how much runs through v alone no data can tell" in together.verdict.reason
    ends = together.metrics["if_hidden_cause"]
    assert ends.kind == "bounds"
    assert ends.low == pytest.approx(-12.5, abs=4)
    assert ends.high == pytest.approx(35, abs=4)


def test_a_graph_under_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(AnswerableError, match=r"^graph: the effects cannot be told: w and y share a hidden cause"):
        asked(graph=f"{OWN}; w <-> y")
    with pytest.raises(AnswerableError, match=r"w moves v, which comes before it .*; put w before v, or join"):
        asked(graph=OWN, mediators=["v", "w"])


def test_ends_without_cells_are_those_of_the_outcome() -> None:
    rng = np.random.default_rng(2)
    table = make_study("randomised", 800, rng).table.with_columns(w=pl.col("w") + pl.Series(rng.normal(size=800)))
    found = PathSpecificEffects({"W": ["w"], "V": ["v"]}, learner="linear")
    span = found.fit(table, treatment="x", outcome="y").sensitivity()
    assert span is not None
    assert -0.4 < span.low < -0.2
    assert 0.6 < span.high < 0.85
    numeric = table.with_columns(y=pl.col("y") + pl.Series(rng.normal(size=800)))
    assert found.fit(numeric, treatment="x", outcome="y").sensitivity() is None
    assert (
        PathSpecificEffects({"W": ["w"]}, learner="linear").fit(table, treatment="x", outcome="y").sensitivity() is None
    )
