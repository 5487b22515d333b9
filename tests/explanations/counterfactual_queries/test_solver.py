"""Which queries are answerable, and between which ends the others lie: against definitions and linear programmes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput, UnknownName
from answerable.explanations.counterfactual_queries import (
    Excluded,
    admissible,
    answerable_masks,
    answerable_queries,
    expectation,
    extremes,
    independent_extremes,
    independent_interval,
    is_answerable,
    maximal_features,
    maximal_mask,
    naive_meaning,
    offending_mask,
    propagated_error,
    repaired_mask,
)
from answerable.explanations.counterfactual_queries.api import count_answerable, planned
from answerable.subjects.causal_graph import CausalGraph, load
from tests.oracles import causal_graph as graph_oracle
from tests.oracles import counterfactual_queries as oracle

FACES = "F <-> S; S -> C"


@st.composite
def asked(draw: st.DrawFn, most: int = 7) -> tuple[CausalGraph, list[str], list[str]]:
    names = [f"v{i}" for i in range(draw(st.integers(1, most)))]
    pairs = list(itertools.combinations(names, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    graph = CausalGraph(edges, nodes=draw(st.permutations(names)))
    features = draw(st.lists(st.sampled_from(names), unique=True))
    return graph, features, draw(st.lists(st.sampled_from(names), unique=True, min_size=1))


def below(graph: CausalGraph, names: list[str]) -> set[str]:
    return set().union(*(graph_oracle.descendants(graph.directed, name) for name in names))


# Theorems 1 and 2


@given(asked())
@settings(max_examples=150, deadline=None)
def test_answerable_is_theorem_1_and_the_repaired_query_is_the_smallest(case: tuple) -> None:
    graph, features, query = case
    others = {name for name in graph.names if name not in below(graph, query) and name not in query}
    found = admissible(graph, features, query)
    assert found.answerable == (set(features) <= {*query, *others}) == is_answerable(graph, features, query)
    assert set(found.witnesses) == (set(features) & below(graph, query)) - set(query)
    for witness, path in zip(found.witnesses, found.paths, strict=True):
        assert path[0] in query
        assert path[-1] == witness
        assert set(itertools.pairwise(path)) <= set(graph.directed)
    larger = [
        set(names)
        for size in range(len(graph) + 1)
        for names in itertools.combinations(graph.names, size)
        if set(names) >= set(query) and admissible(graph, features, names).answerable
    ]
    assert set(found.repaired) in larger
    assert all(set(found.repaired) <= names for names in larger)


@given(asked(6), st.data())
@settings(max_examples=60, deadline=None)
def test_the_largest_set_is_the_union_of_all_admissible_ones(case: tuple, data: st.DataObject) -> None:
    graph, _, query = case
    queries = [query, data.draw(st.lists(st.sampled_from(graph.names), unique=True, min_size=1))]
    largest = maximal_features(graph, queries)
    union: set[str] = set()
    for size in range(len(graph) + 1):
        for names in itertools.combinations(graph.names, size):
            if all(admissible(graph, names, one).answerable for one in queries):
                union |= set(names)
                assert set(names) <= set(largest.features)
    assert set(largest.features) == union
    assert {entry.concept for entry in largest.excluded} == set(graph.names) - union
    for entry in largest.excluded:
        assert list(entry.query) in queries
        assert entry.path[-1] == entry.concept
        assert not admissible(graph, [entry.concept], entry.query).answerable
    # Theorem 4: more queries, a smaller set; fewer features, more queries
    assert set(largest.features) <= set(maximal_features(graph, queries[:1]).features)
    few = case[1][::2]
    assert admissible(graph, few, query).answerable >= admissible(graph, case[1], query).answerable


@given(asked(8))
@settings(max_examples=60, deadline=None)
def test_all_sets_at_once_are_each_set_by_itself(case: tuple) -> None:
    graph, features, _ = case
    masks = [sum(1 << graph.number(child) for child in graph.descendants(name)) for name in graph.names]
    chosen = sum(1 << graph.number(name) for name in features)
    found = {int(mask) for mask in answerable_masks(masks, chosen)}
    assert count_answerable(graph, features) == (len(found), 2 ** len(graph) - 1)
    table = answerable_queries(graph, features, max_size=len(graph))
    assert table.height == 2 ** len(graph) - 1
    for names, answerable in zip(table["query"], table["answerable"]):
        mask = sum(1 << graph.number(name) for name in names)
        assert answerable == (mask in found) == (offending_mask(masks, chosen, mask) == 0)
        assert offending_mask(masks, chosen, repaired_mask(masks, chosen, mask)) == 0
    assert maximal_mask(masks, [1], 2 ** len(graph) - 1) == sum(
        1 << graph.number(name) for name in maximal_features(graph, [graph.names[0]]).features
    )


def test_the_paper_s_lists_are_not_what_its_theorem_says() -> None:
    """Appendix: for {F, S, C} it lists {F, S} in place of {S, C}; its list for {S, C} is that of {S, F}."""

    def answered(features: str) -> set[str]:
        table = answerable_queries(FACES, list(features), max_size=3)
        return {"".join(sorted(names)) for names, yes in zip(table["query"], table["answerable"]) if yes}

    assert answered("FSC") == {"F", "C", "CF", "CS", "CFS"}
    assert len(answered("SC")) == 5
    assert len(answered("SF")) == 7


def test_what_blocks_is_said_with_its_path_and_what_is_answered_instead() -> None:
    found = admissible(FACES, ["F", "S", "C"], "S")
    assert found == (False, "none", ("C",), (("S", "C"),), ("S", "C"))
    assert admissible(FACES, ["F", "S"], "S").answerable
    assert naive_meaning(FACES, None, {"S": 0}) == "S = 0, with C held as now; not S = 0, with C following"
    assert naive_meaning(FACES, ["F", "S"], "S").startswith("the question itself: S")
    assert naive_meaning(FACES, ["F", "X"], "S").startswith("nothing: the model also sees the input")
    assert maximal_features(FACES, ["S", "C"]) == (("F", "S"), (Excluded("C", ("S",), ("S", "C"), False),))


def test_a_model_that_sees_the_input_answers_nothing() -> None:
    for found in (admissible(FACES, ["F", "X"], "C"), admissible(FACES, ["F"], "C", sees_input=True)):
        assert found == (False, "none", ("X",), (("X",),), ())
    assert not is_answerable(FACES, ["X"], "F")
    assert count_answerable(FACES, ["X"]) == (0, 7)
    assert not answerable_queries(FACES, ["F"], sees_input=True)["answerable"].any()
    assert admissible("X -> Y", ["X"], "X").answerable  # here X is a concept


def test_no_features_at_all_answer_everything() -> None:
    assert admissible(FACES, [], "S").answerable


def test_possible_edges_leave_it_open() -> None:
    graph = CausalGraph([("A", "B")], possible=[("A", "C")])
    assert admissible(graph, ["B"], "A").under == "none"
    assert admissible(graph, ["C"], "A") == (False, "some", ("C",), (("A", "C"),), ("A", "C"))
    assert admissible(graph, ["A"], "A").under == "all"
    largest = maximal_features(graph, ["A"])
    assert largest.features == ("A",)
    assert [(entry.concept, entry.unsure) for entry in largest.excluded] == [("B", False), ("C", True)]


def test_descendants_alone_are_enough() -> None:
    graph = CausalGraph(descendants={"S": ["C", "M"]}, nodes=["F", "S", "C", "M"])
    assert admissible(graph, ["F", "C"], "S").witnesses == ("C",)
    assert maximal_features(graph, ["S"]).features == ("F", "S")
    assert answerable_queries(graph, ["F"])["query"].to_list() == [["S"]]
    assert count_answerable(graph, ["F", "C"]) == (0, 1)
    with pytest.raises(BadInput, match="the descendants of 'C' are not given"):
        admissible(graph, ["F"], "C")


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: admissible(FACES, ["F"], []), "query: the query is empty; name at least one concept"),
        (lambda: admissible(FACES, ["F"], ["S", "S"]), "'S' is set twice"),
        (lambda: admissible(FACES, "F", "S"), "'F' is no list of concepts"),
        (lambda: admissible(FACES, ["F"], 3), "'3' is no query"),
        (lambda: answerable_queries(FACES, None, max_size=0), "max_size: it is 0"),
        (lambda: answerable_queries([(f"v{i}", f"v{i + 1}") for i in range(99)], None, max_size=4), "queries; give a"),
        (lambda: answerable_masks([0] * 21, 0), "21 concepts have 2"),
    ],
)
def test_what_cannot_be_asked_is_one_line(call: object, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        call()  # type: ignore[operator]


def test_a_concept_outside_the_graph_is_named() -> None:
    with pytest.raises(UnknownName, match=r"query: there is no concept 'Smile'; did you mean 'Smiling'"):
        admissible("Smiling -> Cheeks", None, "Smile")
    with pytest.raises(UnknownName, match="features: there is no concept 'Z'"):
        admissible(FACES, ["Z"], "S")


# The intervals, against all models of the class


def prepared(
    graph: CausalGraph, features: tuple[int, ...], query: dict[int, int], law: np.ndarray, f: np.ndarray
) -> tuple:
    """What ``extremes`` takes, for every unit, and the units' weights."""
    names = graph.names
    plan = planned(graph, [names[j] for j in features], [names[i] for i in query])
    moved = [names.index(name) for name in plan.moved]
    units = np.array(list(itertools.product((0, 1), repeat=len(names))))
    index = []
    for j in features:
        if j in query:
            index.append(np.full((1,) * (len(moved) + 1), query[j]))
        elif j in moved:
            k = moved.index(j)
            index.append(np.arange(2).reshape((1,) * (k + 1) + (2,) + (1,) * (len(moved) - k - 1)))
        else:
            index.append(units[:, j].reshape((-1,) + (1,) * len(moved)))
    outputs = f[tuple(np.broadcast_arrays(*index))] if index else np.full((1,), float(f))
    outputs = np.broadcast_to(outputs, (len(units), *outputs.shape[1:]))
    forced = np.zeros((len(units), len(moved)), bool)
    for k, parents in enumerate(plan.queried_parents):
        for name in parents:
            p = names.index(name)
            forced[:, k] |= units[:, p] != query[p]
    weights = np.array([law[tuple(unit)] for unit in units])
    return (outputs, units[:, moved], forced, plan.moved_parents, [2] * len(moved)), weights


def averaged(given: tuple, weights: np.ndarray) -> tuple[float, float]:
    """Our ends for one input: each unit's own, averaged."""
    low, high = extremes(*given)
    return float(weights @ low), float(weights @ high)


def cases(n: int) -> Iterator[tuple[list[list[int]], tuple[int, ...], tuple[int, ...]]]:
    for parents in oracle.graphs(n):
        yield from ((parents, features, query) for features in oracle.subsets(n) for query in oracle.subsets(n))


def compare(n: int, chosen: list[tuple]) -> tuple[int, int]:
    rng = np.random.default_rng(n)
    counts = [0, 0]
    for parents, features, query in chosen:
        names = [f"v{i}" for i in range(n)]
        graph = CausalGraph([(names[p], names[i]) for i in range(n) for p in parents[i]], nodes=names)
        law = rng.dirichlet(np.ones(2**n)).reshape((2,) * n)
        f = rng.random((2,) * len(features))
        values = {i: int(rng.integers(2)) for i in query}
        low, high = oracle.ResponseTypes(parents).bounds(law, values, features, lambda t, f=f: float(f[t]))
        ours = averaged(*prepared(graph, features, values, law, f))
        assert ours == pytest.approx((low, high), abs=1e-9)
        answerable = admissible(graph, [names[j] for j in features], [names[i] for i in query]).answerable
        assert answerable == (high - low < 1e-9)
        counts[not answerable] += 1
    return counts[0], counts[1]


def test_410_cases_agree_with_the_linear_programme() -> None:
    """Every graph of two and three concepts, every set of features, every query: zero width iff Theorem 1 says so."""
    two, three = compare(2, list(cases(2))), compare(3, list(cases(3)))
    assert (two[0] + three[0], two[1] + three[1]) == (322, 88)


def test_four_concepts_agree_with_the_linear_programme() -> None:
    open_cases = [
        (parents, features, query)
        for parents, features, query in cases(4)
        if max(map(len, parents)) <= 2 and len(features) == 3 and query == (0,) and sum(map(len, parents)) == 4
    ]
    rng = np.random.default_rng(0)
    compare(4, [open_cases[k] for k in rng.choice(len(open_cases), 3, replace=False)])


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_the_walk_finds_the_ends_of_all_that_a_unit_may_become(data: st.DataObject) -> None:
    """By definition, for any number of levels, also where the model does not look at a concept on the way."""
    sizes = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    seen = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    edges = [
        [cause for cause in range(effect) if data.draw(st.booleans(), label=f"{cause} -> {effect}")]
        for effect in range(len(sizes))
    ]
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n = 5
    outputs = rng.random((n, *(size if looked else 1 for size, looked in zip(sizes, seen))))
    codes = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    forced = rng.random(codes.shape) < 0.3
    low, high = extremes(outputs, codes, forced, edges, sizes)
    whole = np.broadcast_to(outputs, (n, *sizes))
    for unit in range(n):
        reached = [
            whole[unit][u]
            for u in np.ndindex(*sizes)
            if all(
                u[k] == codes[unit, k] or forced[unit, k] or any(u[p] != codes[unit, p] for p in edges[k])
                for k in range(len(sizes))
            )
        ]
        assert (low[unit], high[unit]) == (min(reached), max(reached))


def test_example_4_two_models_agree_on_all_that_is_seen_and_not_on_what_is_asked() -> None:
    for model, answer in ((1, 0.3), (2, 0.5)):
        law, asked_for = oracle.example_4(model)
        assert law == pytest.approx(oracle.TABLE_1, abs=1e-12)
        assert asked_for == pytest.approx(answer, abs=1e-12)
    law_c = np.array([[0.7, 0.3], [0.4, 0.6]])  # given S = 0 and S = 1
    outputs = np.array([[0.0, 1.0]])
    ends = independent_extremes(outputs, np.array([1]), law_c[1:], law_c[:1])
    assert np.ravel(ends) == pytest.approx([0, 0.5], abs=1e-12)
    assert all(ends[0][0] - 1e-12 <= answer <= ends[1][0] + 1e-12 for answer in (0.3, 0.5))


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 3))
@settings(max_examples=60, deadline=None)
def test_independent_responses_agree_with_their_linear_programme(seed: int, n_levels: int, n_settings: int) -> None:
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(n_levels), n_settings)
    outputs = rng.random((1, n_levels))
    code, now, then = int(rng.integers(n_levels)), 0, 1
    whole = independent_interval(outputs, np.ones(1), np.array([code]), laws, np.array([now]), np.array([then]))
    low, high = independent_extremes(outputs, np.array([code]), laws[:1], laws[1:2])
    assert (low[0], high[0]) == pytest.approx(whole, abs=1e-9)
    # A model of the class, drawn at random, lies inside.
    joint = rng.dirichlet(np.ones(n_levels**2)).reshape(n_levels, n_levels)
    for _ in range(500):  # scaled to the two laws
        joint *= (laws[0] / joint.sum(axis=1))[:, None]
        joint *= laws[1] / joint.sum(axis=0)
    joint *= (laws[0] / joint.sum(axis=1))[:, None]
    answer = joint[code] @ outputs[0] / laws[0, code]
    assert low[0] - 1e-6 <= answer <= high[0] + 1e-6


def test_averaging_units_never_gives_less_than_the_joint_programme() -> None:
    rng = np.random.default_rng(5)
    laws, outputs = rng.dirichlet(np.ones(2), 2), rng.random((4, 2))
    weights, rows = rng.dirichlet(np.ones(4)), np.array([0, 1, 0, 1])
    now, then = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    sharp = independent_interval(outputs, weights, rows, laws, now, then)
    low, high = independent_extremes(outputs, rows, laws[now], laws[then])
    assert weights @ low <= sharp[0] + 1e-9
    assert weights @ high >= sharp[1] - 1e-9


# Theorem 3


@given(st.lists(st.integers(1, 4), min_size=0, max_size=6), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_the_mean_over_independent_concepts_is_that_of_all_cells(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.dirichlet(np.ones(size), 5) for size in sizes] or [np.ones((5, 1))]
    table = rng.normal(size=[part.shape[1] for part in parts])
    by_cells = np.zeros(5)
    for cell in np.ndindex(table.shape):
        by_cells += table[cell] * np.prod([part[:, level] for part, level in zip(parts, cell)], axis=0)
    assert expectation(parts, table) == pytest.approx(by_cells, abs=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_errors_of_both_stages_bound_the_error_of_an_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(6), 2)
    f, g = rng.random((2, 6))
    error = abs(q @ g - p @ f)
    assert error <= propagated_error(np.ptp(f), np.abs(p - q).sum() / 2, np.abs(f - g).max()) + 1e-12


@pytest.mark.parametrize(
    "features, log_loss, accuracy, error, largest",
    [
        ("BDC", 0.325083, 0.900, 0.408, 0.7556),
        ("BD", 0.351724, 0.876, 0.272, 0.3022),
        ("DC", 0.370321, 0.876, 0, 0),
        ("D", 0.374525, 0.876, 0, 0),
    ],
)
def test_bar_digits_by_listing_every_hidden_cause(
    features: str, log_loss: float, accuracy: float, error: float, largest: float
) -> None:
    found = oracle.bar_digits_population(features)
    assert found["log_loss"] == pytest.approx(log_loss, abs=5e-7)
    assert found["accuracy"] == pytest.approx(accuracy, abs=1e-9)
    assert found["error_D"] == pytest.approx(error, abs=1e-9)
    assert found["largest_error_D"] == pytest.approx(largest, abs=5e-5)
    assert found["error_C"] == pytest.approx(0, abs=1e-12)
    graph = load({"nodes": ["B", "D", "C"], "directed": [["D", "B"]], "bidirected": [["D", "C"]]})
    assert admissible(graph, list(features), "D").answerable == (error == 0)
    assert admissible(graph, list(features), "C").answerable
