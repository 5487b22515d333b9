"""The estimator: scikit-learn's contract, answers against listing, and every refusal."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from answerable.errors import UnknownName
from answerable.explanations.counterfactual_queries import (
    CellClassifier,
    ConceptPredictor,
    HybridWarning,
    NotAnswerable,
    UnseenWarning,
    feature_sets,
    make_bar_digits,
    tradeoff,
)
from answerable.explanations.counterfactual_queries.concepts import BadConcepts

BARS = {"nodes": ["B", "D", "C"], "directed": [["D", "B"]], "bidirected": [["D", "C"]]}
WEIGHTS = np.array([0.5, -1.0, 2.0])


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(values @ WEIGHTS[: values.shape[1]] - 0.3)))


def coin_table(n: int = 400, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 2, n) for name in "BDC"}
    return columns, rng.integers(0, 2, n)


@pytest.mark.parametrize(
    "estimator", [ConceptPredictor(), CellClassifier()], ids=["ConceptPredictor", "CellClassifier"]
)
def test_scikit_learn_s_own_checks(estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = check_estimator(estimator, on_fail=None)
    assert {row["check_name"] for row in told if row["status"] == "failed"} == set()
    # The array API is not offered.
    assert {row["check_name"] for row in told if row["status"] == "skipped"} <= {"check_array_api_input"}


def test_an_answer_overwrites_the_queried_concepts() -> None:
    table, y = coin_table()
    model = ConceptPredictor(classifier=sigmoid).fit(None, y, concepts=table)
    found = model.counterfactual(table, {"C": 1}, graph=BARS)
    values = np.stack([table["B"], table["D"], np.ones(len(y))], axis=1)
    assert found["prob"].to_numpy() == pytest.approx(sigmoid(values), abs=1e-12)
    assert found["identified"].all()
    assert (found["lower"] == found["upper"]).all()
    factual = np.stack([table[name] for name in "BDC"], axis=1)
    assert found["factual"].to_numpy() == pytest.approx(sigmoid(factual), abs=1e-12)


def test_units_already_so_have_points_and_others_intervals() -> None:
    table, y = coin_table()
    model = ConceptPredictor(classifier=sigmoid).fit(None, y, concepts=table)
    found = model.counterfactual(table, {"D": 0}, graph=BARS, on_unanswerable="bounds")
    assert found["identified"].to_list() == (table["D"] == 0).tolist()
    ends = [sigmoid(np.stack([np.full(len(y), b), np.zeros(len(y)), table["C"]], axis=1)) for b in (0, 1)]
    moved = table["D"] == 1
    assert found["lower"].to_numpy()[moved] == pytest.approx(np.minimum(*ends)[moved])
    assert found["upper"].to_numpy()[moved] == pytest.approx(np.maximum(*ends)[moved])
    assert found["prob"].is_null().to_list() == moved.tolist()
    naive = model.naive(table, {"D": 0})
    assert ((found["lower"].to_numpy() - 1e-12 <= naive) & (naive <= found["upper"].to_numpy() + 1e-12)).all()


@pytest.mark.parametrize("joint", [False, True])
def test_extracted_concepts_are_averaged_over_every_unit(joint: bool) -> None:
    rng = np.random.default_rng(1)
    table, y = coin_table(300)
    X = np.stack([table[name] for name in "BDC"], axis=1) + rng.normal(0, 0.7, (300, 3))
    model = ConceptPredictor(classifier=sigmoid, joint=joint).fit(X, y, concepts=table)
    extracted = model.concept_proba(X[:6])
    cells = list(itertools.product((0, 1), repeat=3))
    if joint:
        masses = dict(zip(map(tuple, model._extraction.cells.astype(int)), model.extractors_[0].predict_proba(X[:6]).T))
    else:
        masses = {cell: np.prod([extracted[n][:, v] for n, v in zip("BDC", cell)], axis=0) for cell in cells}
    assert extracted["B"][:, 1] == pytest.approx(sum(masses[cell] for cell in cells if cell[0]), abs=1e-12)

    def output(*cell: int) -> float:
        return float(sigmoid(np.array([cell], float))[0])

    assert model.predict_proba(X[:6])[:, 1] == pytest.approx(sum(masses[c] * output(*c) for c in cells), abs=1e-12)
    closed = model.counterfactual(X[:6], {"C": 0}, graph=BARS)
    assert closed["prob"].to_numpy() == pytest.approx(sum(masses[c] * output(c[0], c[1], 0) for c in cells), abs=1e-12)
    bounds = model.counterfactual(X[:6], {"D": 1}, graph=BARS, on_unanswerable="bounds")
    low = high = np.zeros(6)
    for b, d, c in cells:
        ends = [output(b, 1, c)] if d == 1 else [output(other, 1, c) for other in (0, 1)]
        low, high = low + masses[b, d, c] * min(ends), high + masses[b, d, c] * max(ends)
    assert bounds["lower"].to_numpy() == pytest.approx(low, abs=1e-12)
    assert bounds["upper"].to_numpy() == pytest.approx(high, abs=1e-12)
    exact = model.probability_of(X[:6], {n: table[n][:6] for n in "BDC"})
    assert exact == pytest.approx([masses[tuple(table[n][i] for n in "BDC")][i] for i in range(6)], abs=1e-12)


def test_very_many_combinations_are_drawn_and_say_their_error() -> None:
    rng = np.random.default_rng(2)
    n, d = 200, 18
    table = {f"v{j}": rng.integers(0, 2, n) for j in range(d)}
    chances = rng.random((5, d))

    def extract(X: np.ndarray) -> np.ndarray:
        return chances[: len(X)]

    def classify(values: np.ndarray) -> np.ndarray:
        return values.mean(axis=1)

    model = ConceptPredictor(extractor=extract, classifier=classify, n_draws=4000).fit(
        np.zeros((n, 1)), rng.integers(0, 2, n), concepts=table
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWarning)
        found = model.counterfactual(np.zeros((5, 1)), {"v0": 1}, graph={"nodes": list(table)})
    exact = (chances.sum(axis=1) - chances[:, 0] + 1) / d
    assert 0 < model.monte_carlo_error_ < 0.01
    assert np.abs(found["prob"].to_numpy() - exact).max() < 6 * model.monte_carlo_error_
    assert np.abs(model.predict_proba(np.zeros((5, 1)))[:, 1] - chances.mean(axis=1)).max() < 0.02


def test_asserted_independence_shrinks_the_interval() -> None:
    """Example 4 in 10,000 rows: the ends are 0 and 0.3 / 0.6, the shares of the table."""
    counts = {(0, 0): 1680 + 1120, (0, 1): 720 + 480, (1, 0): 960 + 1440, (1, 1): 1440 + 2160}
    table = {
        "S": np.repeat([s for s, _ in counts], list(counts.values())),
        "C": np.repeat([c for _, c in counts], list(counts.values())),
    }
    y = np.arange(10_000) % 2
    model = ConceptPredictor(["S", "C"], classifier=lambda values: values[:, 1]).fit(None, y, concepts=table)
    asked: dict[str, Any] = {"X": {"S": [1, 0, 1], "C": [1, 1, 0]}, "query": {"S": 0}, "on_unanswerable": "bounds"}
    wide = model.counterfactual(**asked, graph="S -> C")
    assert wide["upper"].to_list() == pytest.approx([1, 1, 1])
    assert wide["lower"].to_list() == pytest.approx([0, 1, 0])
    found = model.counterfactual(**asked, graph="S -> C", independent=["C"])
    assert found["lower"].to_list() == pytest.approx([0, 1, 0])
    assert found["upper"].to_list() == pytest.approx([0.5, 1, 0.75], abs=1e-9)
    with pytest.raises(BadConcepts, match=r"independent, C: the graph says that it shares a hidden cause with S"):
        model.counterfactual(**asked, graph="S -> C; S <-> C", independent=["C"])


def test_concepts_on_the_way_must_be_known() -> None:
    table, y = coin_table()
    model = ConceptPredictor(["B", "D"], classifier=sigmoid).fit(None, y, concepts=table)
    graph = "D -> M -> B; D -> C"
    with pytest.raises(BadConcepts, match="'M' is not among the concepts; give a column M: what the query moves"):
        model.counterfactual(table, {"D": 0}, graph=graph, on_unanswerable="bounds")


def test_words_are_levels_too() -> None:
    table = pl.DataFrame({"age": ["young", "old", "old", "young"] * 5, "smokes": ["no", "yes", "no", "yes"] * 5})
    model = ConceptPredictor(classifier=DecisionTreeClassifier()).fit(None, [0, 1, 0, 0] * 5, concepts=table)
    found = model.counterfactual(table[:2], {"age": "old"}, graph={"nodes": ["age", "smokes"]})
    assert found["prob"].to_list() == [0.0, 1.0]  # old and not smoking: never; old and smoking: always
    with pytest.raises(BadConcepts, match=r"concept age: 'middle' was never observed; give old or young"):
        model.counterfactual(table, {"age": "middle"}, graph={"nodes": ["age", "smokes"]})
    with pytest.raises(BadConcepts, match=r"column age, row 1: 'ancient' was never observed"):
        model.predict({"age": ["ancient"], "smokes": ["no"]})


def test_numbers_without_names_are_concepts_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    model = ConceptPredictor(classifier=sigmoid).fit(X, X[:, 0] > 0)
    found = model.counterfactual(X, {"x0": 0.25}, graph={"nodes": ["x0", "x1"]})
    assert found["prob"].to_numpy() == pytest.approx(sigmoid(np.stack([np.full(100, 0.25), X[:, 1]], axis=1)))
    with pytest.raises(BadConcepts, match="concept x1: it has more than 50 levels and would move; bin it"):
        model.counterfactual(X, {"x0": 0.25}, graph="x0 -> x1", on_unanswerable="bounds")


def test_an_unanswerable_query_is_refused_with_its_path_and_its_repair() -> None:
    table, y = coin_table()
    model = ConceptPredictor(classifier=sigmoid).fit(None, y, concepts=table)
    with pytest.raises(NotAnswerable) as raised:
        model.counterfactual(table, {"D": 0}, graph=BARS)
    assert str(raised.value) == (
        "query: it moves B, which the model looks at (D -> B); ask of D, B together, leave the feature out, or take the"
        " interval"
    )


def test_answers_without_a_row_like_them_are_counted() -> None:
    table = {"A": [0, 0, 1, 1, 1], "B": [0, 1, 0, 0, 0]}
    model = ConceptPredictor(classifier=sigmoid).fit(None, [0, 1, 0, 1, 1], concepts=table)
    with pytest.warns(UnseenWarning, match="1 of 5 answers rest on 1 combinations never seen"):
        model.counterfactual(table, {"A": 1}, graph={"nodes": ["A", "B"]})


def test_soft_concepts_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(HybridWarning, match="soft hold probabilities, not concepts: the model is a hybrid"):
        ConceptPredictor().fit(None, rng.integers(0, 2, 60), concepts={"soft": rng.random(60)})


@pytest.mark.parametrize(
    "change, line",
    [
        ({"B": [0, 1, None] * 4}, "concepts, column B, row 3: the entry is missing or not finite"),
        ({"B": [0, 1, np.nan] * 4}, "concepts, column B, row 3: the entry is missing or not finite"),
        ({"B": [1] * 12}, "concepts, column B: it has the one level 1; leave it out"),
        ({"B": [-1, 1] * 6}, "'B' is coded -1/1 and 'A' is coded 0/1; code all of them one way"),
        ({"B": [0, 1] * 6}, "concept B: it is the label itself; leave it out of the features"),
        ({"B": [[1], [2]] * 6}, "cells of type List"),
    ],
)
def test_concepts_that_cannot_be_used_are_one_line(change: dict[str, Any], line: str) -> None:
    table = {"A": [0, 0, 1] * 4, "B": [0, 1, 1] * 4, **change}
    with pytest.raises(BadConcepts, match=line):
        ConceptPredictor().fit(None, [0, 1] * 6, concepts=table)


def test_models_that_give_no_probabilities_are_refused() -> None:
    table, y = coin_table(50)
    X = np.zeros((50, 2))
    for options, line in (
        ({"extractor": LinearSVC()}, "extractor of B: LinearSVC gives no probabilities"),
        ({"classifier": LinearSVC()}, "classifier: LinearSVC gives no probabilities"),
        ({"classifier": 3}, "a int is no classifier"),
        ({"extractor": lambda X: np.full((len(X), 3), 2.5)}, "extractor: it gives 2.5, no probability; end it with"),
        ({"extractor": lambda X: np.zeros((len(X), 1))}, r"it gives shape \(2, 1\)"),
        ({"features": ["B", "X"]}, "the input itself is no concept"),
    ):
        with pytest.raises(BadConcepts, match=line):
            ConceptPredictor(**options).fit(X, y, concepts=table)
    with pytest.raises(BadConcepts, match="49 inputs and 50 rows of concepts"):
        ConceptPredictor().fit(X[:49], y, concepts=table)
    with pytest.raises(BadConcepts, match="50 rows of concepts and 49 labels"):
        ConceptPredictor().fit(None, y[:49], concepts=table)
    with pytest.raises(UnknownName, match="features: there is no concept 'Z'"):
        ConceptPredictor(["Z"]).fit(None, y, concepts=table)


def test_a_trained_torch_module_is_an_extractor() -> None:
    torch = pytest.importorskip("torch")
    table, y = coin_table(40)
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sigmoid())
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    model = ConceptPredictor(extractor=network, classifier=sigmoid).fit(X, y, concepts=table)
    with torch.no_grad():
        chances = network(torch.as_tensor(X)).numpy()
    assert model.concept_proba(X)["D"][:, 1] == pytest.approx(chances[:, 1], abs=1e-7)
    assert model.counterfactual(X, {"C": 1}, graph=BARS)["identified"].all()


def test_the_tradeoff_of_bar_digits_has_the_order_of_the_population() -> None:
    digits = make_bar_digits(4000, np.random.default_rng(0))
    found = tradeoff(
        None, digits.concepts, digits.Y, BARS, ["D", "C"], sets=[["B", "D", "C"], ["B", "D"], ["D", "C"], ["D"]],
        model=ConceptPredictor(classifier=CellClassifier()),
    )  # fmt: skip
    assert found["answerable"].to_list() == [1, 1, 2, 2]
    for row, population in zip(found.iter_rows(named=True), (0.325083, 0.351724, 0.370321, 0.374525)):
        half = row["log_loss_high"] - row["log_loss"]
        assert abs(row["log_loss"] - population) < 2 * half
    assert found["extra_loss"].to_list() == sorted(found["extra_loss"].to_list())
    assert len(feature_sets(BARS, ["D", "C"])) == 7
    chain = [(f"v{i}", f"v{i + 1}") for i in range(5)]
    assert feature_sets(chain, ["v1", "v3"]) == [
        ("v0", "v1", "v2", "v3", "v4", "v5"), ("v0", "v1", "v2", "v3"), ("v0", "v1"),
    ]  # fmt: skip


def test_bar_digits_are_what_they_say() -> None:
    digits = make_bar_digits(3000, np.random.default_rng(1), noise=0)
    assert digits.images.shape == (3000, 10, 8, 2)
    assert (digits.images[:, 9].max(axis=(1, 2)) == 12 * digits.B).all()
    assert ((digits.images[..., 0].sum(axis=(1, 2)) > 0) == digits.C).all()
    assert (digits.bar_if[np.arange(3000), digits.D] == digits.B).all()
    right = (digits.B + digits.D + digits.C >= 2) == digits.Y
    assert abs(right.mean() - 0.9) < 4 * np.sqrt(0.09 / 3000)
