"""What a hostile or hasty caller hands in: one line that says what, where and how to mend it, or the right answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.explanations.additive_reasons import (
    all_reasons,
    count_completions,
    explain,
    is_sufficient,
    minimum_change,
    minimum_sufficient_reason,
    shapley_values,
)
from answerable.subjects.additive_model import AdditiveModel, Pair, Shape, load


def card(points: dict[str, dict[str, float]], cutoff: float = 2) -> pl.DataFrame:
    lines = [(name, level, value) for name, levels in points.items() for level, value in levels.items()]
    return pl.DataFrame([*lines, ("(cutoff)", None, cutoff)], schema=["feature", "category", "points"], orient="row")


MODEL = AdditiveModel.from_scorecard(card({"ab": {"x": 0.0, "y": 2.0}, "b": {"x": 0.0, "y": 2.0}}))
ROWS = pl.DataFrame({"ab": ["x", "y"], "b": ["y", "y"]})
OUTPUT = AdditiveModel((Shape.line("p", 1.0, low=0, high=1), Shape.line("q", 2.0, low=0, high=1)), np.zeros(1))
POINTS = np.array([[0.5, 0.5], [0.0, 1.0]])
NAN = float("nan")

Call = Callable[[], object]
CALLS: list[tuple[Call, str]] = [
    (lambda: is_sufficient(MODEL, ROWS, None), "a NoneType names no feature; give a list"),  # type: ignore[arg-type]
    (lambda: is_sufficient(MODEL, ROWS, "a"), "there is no feature 'a'"),
    (lambda: minimum_change(MODEL, ROWS, frozen=3), "a int names no feature"),  # type: ignore[arg-type]
    (lambda: minimum_change(MODEL, ROWS, cost=[1, 2]), "cost: a list says no cost of a feature"),  # type: ignore[arg-type]
    (lambda: minimum_change(MODEL, ROWS, cost={"b": True}), "cost of b: it is True; give a number above 0"),
    (lambda: minimum_change(MODEL, ROWS, cost={"b": 1e308}), "cost of b: it is 1e+308; give a number above 0, at most"),
    (lambda: minimum_change(MODEL, ROWS, cost={"b": NAN}), "cost of b: it is nan"),
    (lambda: minimum_change(MODEL, ROWS, tolerance=1.0), "tolerance: the model decides between classes"),
    (lambda: is_sufficient(MODEL, ROWS, ["b"], tolerance=1.0), "tolerance: the model decides between classes"),
    (lambda: minimum_sufficient_reason(OUTPUT, POINTS, tolerance=-1), "tolerance: it is '-1'; give a finite number"),
    (lambda: minimum_change(OUTPUT, POINTS, tolerance=NAN), "tolerance: it is 'nan'"),
    (lambda: is_sufficient(OUTPUT, POINTS, ["p"], tolerance=float("inf")), "tolerance: it is 'inf'"),
    (lambda: minimum_change(OUTPUT, POINTS, tolerance="x"), "tolerance: it is 'x'"),  # type: ignore[arg-type]
    (lambda: minimum_change(OUTPUT, np.zeros((0, 2)), tolerance=1), "X: there are no rows"),
    (lambda: minimum_change(OUTPUT, np.array([[0.5j, 0.5]]), tolerance=1), "feature p: it holds complex numbers"),
    (lambda: shapley_values(MODEL, ROWS, output="x"), "output: it is 'x'; give one of score"),  # type: ignore[arg-type]
    (lambda: explain(MODEL, ROWS, output="x"), "output: it is 'x'"),  # type: ignore[arg-type]
    (lambda: shapley_values(MODEL, ROWS, weights="x"), "weights: it is 'x'; give one of model"),  # type: ignore[arg-type]
    (lambda: count_completions(MODEL, ROWS, ["b"], weights="x"), "weights: it is 'x'"),  # type: ignore[arg-type]
    (lambda: count_completions(MODEL, ROWS, ["b"], width=0), "width: it is '0'; give a number above 0"),
    (lambda: count_completions(MODEL, ROWS, ["b"], width=NAN), "width: it is 'nan'"),
    (lambda: count_completions(MODEL, ROWS, ["b"], most_atoms=0), "most_atoms: it is '0'; give a whole number"),
    (lambda: all_reasons(MODEL, ROWS, most=1.5), "most: it is '1.5'; give a whole number"),  # type: ignore[arg-type]
    (lambda: OUTPUT.restrict({"p": None}), "domain, feature p: None is no interval; give two numbers"),
    (lambda: OUTPUT.restrict({"p": 3}), "domain, feature p: 3 is no interval"),
    (lambda: MODEL.restrict({"b": "x"}), "domain, feature b: x is no list; give a list of categories"),
    (lambda: OUTPUT.restrict([1, 2]), "domain: a list is no domain of a feature"),
    (lambda: OUTPUT.restrict({"p": (5, 6)}), "domain, feature p: 5 to 6 lies outside 0 to 1"),
    (lambda: MODEL.restrict(threshold="x"), "threshold: it is x; give a probability"),  # type: ignore[arg-type]
    (lambda: AdditiveModel.from_scorecard(card({"a": {"x": 1e308, "y": -1e308}})), "its scores add up to 1e+308"),
    (lambda: shapley_values(OUTPUT, POINTS, background=POINTS * 3), "background, row 1, feature p: 1.5 is outside"),
    (lambda: Shape.table("x", [0, 1], [1.0], error=NAN), "feature x: its error is nan"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_what_a_caller_cannot_mean_is_refused_in_one_line(number: int) -> None:
    call, line = CALLS[number]
    with pytest.raises(AnswerableError) as raised:
        call()
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_one_name_is_a_feature_and_no_list_of_letters() -> None:
    assert is_sufficient(MODEL, ROWS, "ab").equals(is_sufficient(MODEL, ROWS, ["ab"]))
    assert minimum_change(MODEL, ROWS, frozen="b")["change"].to_list() == [[], []]


def test_costs_may_be_numbers_of_numpy_and_are_added_up() -> None:
    found = minimum_change(MODEL, ROWS, cost={"b": np.float32(2.5)})
    assert found["change"].to_list() == [["b"], ["ab", "b"]]
    assert found["cost"].to_list() == [2.5, 3.5] == found["bound"].to_list()


def test_a_bad_value_is_named_by_its_row_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not by its place among the cases asked for."""
    card({"ab": {"x": 0.0, "y": 2.0}, "b": {"x": 0.0, "y": 2.0}}).write_csv(tmp_path / "card.csv")
    (tmp_path / "rows.csv").write_text("ab,b\nx,y\ny,y\nx,z\n")
    flags = ["--model", str(tmp_path / "card.csv"), "--rows", str(tmp_path / "rows.csv")]
    assert run(["ask", "additive-reasons", "--store", str(tmp_path / "store"), "--cases", "3", *flags]) == 2
    assert "row 3, feature b: 'z' is no category it knows" in capsys.readouterr().err
    assert (
        run(["ask", "additive-reasons", "--store", str(tmp_path / "store"), "--within", "1", "--cases", "1", *flags])
        == 2
    )
    assert "within: the model decides between classes" in capsys.readouterr().err


def test_a_decision_that_needs_no_reason_is_told_in_words() -> None:
    answer = ask("additive-reasons", store=False, model=card({"a": {"x": 5.0}}), rows=pl.DataFrame({"a": ["x"]}))
    assert answer.summary == (
        "Of its one feature none is needed to settle the decision “reached” for row 1, and no change flips it."
    )
    assert answer.verdict is not None and answer.verdict.word == "proved"


def test_hostile_names_stay_out_of_the_summary() -> None:
    name = "<script>\x1b[31m\u202e" + "a" * 300
    model = card({name: {"x": 0.0, "y": 3.0}, "b": {"x": 0.0, "y": 1.0}})
    answer = ask("additive-reasons", store=False, model=model, rows=pl.DataFrame({name: ["y"], "b": ["x"]}))
    assert answer.summary == "Of 2 features 1 alone settles the decision “reached” for row 1, and changing 1 flips it."


def test_a_change_at_an_open_end_is_shown_by_a_value_that_flips() -> None:
    """Two lines that do not meet: the highest score is approached below 1 and lost at 1."""
    shape = Shape("x", np.array([0.0, 1.0, 2.0]), np.array([[[0.0], [1.0]], [[-5.0], [0.0]]]), low=0.0, high=2.0)
    model = AdditiveModel((shape,), np.array([-0.5]), task="binary", classes=("no", "yes"))
    from answerable.explanations.additive_reasons.cases import cases

    found = cases(model, np.array([[0.25]]))
    assert found.change.tolist() == [[True]]
    assert found.worst[0, 0] == np.nextafter(1.0, 0.0)
    assert model.decide(found.worst).tolist() == [1]


def grid(n: int, n_bins: int, seed: int, outputs: int = 1) -> AdditiveModel:
    """Every two of n features joined by a table: no order of elimination is cheap."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[-np.inf], np.linspace(0, 1, n_bins + 1)[1:-1], [np.inf]])
    shapes = tuple(Shape.table(f"f{j}", edges, rng.normal(size=(n_bins, outputs)), low=0.0, high=1.0) for j in range(n))
    pairs = tuple(
        Pair(i, j, edges, edges, rng.normal(size=(n_bins + 1, n_bins + 1, outputs)) / 4)
        for i in range(n) for j in range(i + 1, n)
    )  # fmt: skip
    task: Any = "binary" if outputs == 1 else "multiclass"
    return AdditiveModel(shapes, rng.normal(size=outputs), pairs, task=task, classes=tuple("abcd"[: max(outputs, 2)]))


@pytest.mark.parametrize("steps", [0, 200])
def test_pairs_that_all_join_are_proved_or_bounded_and_say_which(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import answerable.explanations.additive_reasons.pairs as pairs

    monkeypatch.setattr(pairs, "MOST_STEPS", steps)
    monkeypatch.setattr(pairs, "MOST_CELLS", 100 if steps == 0 else 10_000)
    model = grid(7, 12, 5)
    rng = np.random.default_rng(4)
    rows = rng.random((2, 7))
    answer = ask("additive-reasons", store=False, model=model, rows={f"f{j}": rows[:, j] for j in range(7)})
    table = answer.tables["cases"].frame
    assert answer.verdict is not None
    for row, place in zip(table.iter_rows(named=True), rows, strict=True):
        names = row["reason"].split(", ")
        fixed = np.array([f"f{j}" in names for j in range(7)])
        completed = np.where(fixed, place, rng.random((20_000, 7)))
        assert (model.decide(completed) == model.decide(place[None])[0]).all()
        assert row["reason_bound"] <= row["reason_size"]
    unproved = {"interval", "unknown"} & {*table["reason_guarantee"], *table["change_guarantee"]}
    assert answer.verdict.word == ("undecided" if unproved else "proved") == ("proved" if steps else "undecided")


def test_costs_of_any_size_are_told_apart() -> None:
    """Beside a dear feature that must change, the cheap ones still count; and all may be minute."""
    points = {"z": 10.0, "a": 4.0, "b": 3.0, "c": 2.0, "d": 2.0}
    model = AdditiveModel.from_scorecard(card({name: {"x": 0.0, "y": most} for name, most in points.items()}, 14))
    rows = pl.DataFrame({name: ["x"] for name in points})
    edges = np.array([-0.5, 0.5, 1.5])
    paired = dataclasses.replace(model, pairs=(Pair(1, 2, edges, edges, np.zeros((3, 3, 1))),))
    for dear, unit in ((1e12, 1.0), (1e6, 0.25), (1.0, 1e-14)):
        for one in (model, paired):
            cost = {"z": dear, "a": 3 * unit, "b": 1 * unit, "c": 1 * unit, "d": 4 * unit}
            found = minimum_change(one, rows, cost=cost)
            assert found["change"].to_list() == [["z", "b", "c"]]
            assert found["guarantee"].to_list() == ["exact"]


def test_reasons_of_thousands_of_features_are_listed() -> None:
    n = 3000
    model = AdditiveModel(
        tuple(Shape.line(f"f{j}", 1.0, low=0, high=1) for j in range(n)), np.array([-n / 2]), task="binary"
    )
    found = all_reasons(model, np.ones((1, n)), most=2)
    assert found["size"].to_list() == [n // 2] * 2
    assert found["slack"].to_list() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task", "other"), ("task", "multiclass"), ("task", None), ("classes", ["a"]), ("classes", "ab"),
        ("classes", [1, 2]), ("intercept", []), ("intercept", [0.0, 0.0]), ("logit", "maybe"), ("source", None),
        ("cutoff", "inf"), ("name", None), ("levels", ["x"]), ("levels", ["x", "x"]), ("levels", "xy"), ("low", "nan"),
        ("integer", "no"), ("edges", ["nan", 0, 2]), ("origins", [1]), ("origins", ["nan", 1]), ("missing", [1, 2]),
        ("missing_weight", -5), ("allowed", [False, False]), ("allowed", [True]),
    ],
)  # fmt: skip
def test_a_document_that_contradicts_itself_is_refused_in_one_line(key: str, value: object, tmp_path: Path) -> None:
    document = json.loads(MODEL.to_json())
    (document if key in document else document["features"][0])[key] = value
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(AnswerableError) as raised:
        load(tmp_path / "model.json")
    assert "\n" not in str(raised.value)


def test_classes_without_names_are_numbered() -> None:
    model = AdditiveModel((Shape.line("p", 1.0, low=0, high=1),), np.array([-0.5]), task="binary")
    assert minimum_sufficient_reason(model, np.array([[0.2], [0.9]]))["decision"].to_list() == ["0", "1"]
