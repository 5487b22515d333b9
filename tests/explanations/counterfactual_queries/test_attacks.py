"""What a stranger tried: rare levels, soft concepts, partitions, mediators without a column, questions asked twice."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from answerable.answer import Answer
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.explanations.counterfactual_queries import (
    ConceptPredictor,
    admissible,
    maximal_features,
    naive_meaning,
    question,
    tradeoff,
)
from answerable.explanations.counterfactual_queries.estimator import HybridWarning
from answerable.subjects import read_partition
from answerable.subjects.causal_graph import CausalGraph

NAME = "counterfactual-queries"
GRAPH = "S -> C; S <-> M"


def table(n: int = 90, **columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    s, m = rng.integers(0, 2, n), rng.integers(0, 2, n)
    c = (rng.random(n) < 0.2 + 0.6 * s).astype(int)
    y = (rng.random(n) < 0.1 + 0.3 * s + 0.3 * c + 0.2 * m).astype(int)
    return pl.DataFrame({"S": s, "C": c, "M": m, "Y": y} | columns)


def inputs(frame: pl.DataFrame) -> np.ndarray:
    seen = frame.select("M", "Y").to_numpy().astype(float)
    return seen + np.random.default_rng(4).normal(0, 0.3, seen.shape)


def asked(*, pictures: bool = False, **fields: Any) -> Answer:
    """An answer; its pictures take longer than the rest, and few tests look at them."""
    with pytest.MonkeyPatch.context() as patch:
        if not pictures:
            patch.setattr(question, "_figures", lambda *_: {})
        return ask(NAME, store=False, **{"graph": GRAPH, "concepts": table(), "outcome": "Y", "folds": 3, **fields})


def words(answer: Answer) -> str:
    assert answer.verdict is not None
    return f"{answer.summary} {answer.verdict.reason}"


@pytest.mark.parametrize("extracted", [False, True])
@pytest.mark.parametrize("column", ["words", "numbers", "one row of the other level"])
def test_a_level_that_a_fold_never_sees_is_no_obstacle(column: str, extracted: bool) -> None:
    frame = table()
    cells: list[Any] = frame["S"].to_list()
    if column == "one row of the other level":
        cells = [0] * len(cells)
    cells[7] = 2 - (column == "one row of the other level")
    if column == "words":
        cells = [f"level {cell}" for cell in cells]
    frame = frame.with_columns(S=pl.Series(cells))
    answer = asked(concepts=frame, inputs=inputs(frame) if extracted else None)
    cases = answer.tables["cases"].frame
    assert np.isfinite(cases.select("factual", "lower", "upper").to_numpy()).all()
    assert np.isfinite(answer.metrics["log_loss"].value)
    losses = tradeoff(inputs(frame) if extracted else None, frame.drop("Y"), frame["Y"], GRAPH, ["S"], folds=3)
    assert losses["log_loss"].is_finite().all()


def test_an_unseen_level_is_extracted_with_probability_zero() -> None:
    frame = table()
    rows = [number for number in range(frame.height) if number != 7]
    cells = frame["S"].to_list()
    cells[7] = 2
    frame = frame.with_columns(S=pl.Series(cells))
    from answerable.explanations.counterfactual_queries.concepts import learned

    seen = frame.select("S", "C", "M")
    model = ConceptPredictor(["S"]).fit(
        inputs(frame)[rows], frame["Y"].to_numpy()[rows], concepts=seen[rows], coding=learned(seen)
    )
    assert model.concept_proba(inputs(frame))["S"].shape == (90, 3)
    assert model.probability_of(inputs(frame), seen)[7] == 0
    assert (model.concept_proba(inputs(frame))["S"][:, 2] == 0).all()


def test_fractions_in_place_of_concepts_decide_nothing() -> None:
    frame = table(C=np.random.default_rng(0).random(90))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = asked(concepts=frame, queries=["M = 1"])
    assert answer.verdict is not None
    assert answer.verdict.word == "undecided"
    assert answer.verdict.reason.startswith("C holds fractions, as probabilities do")
    assert answer.summary.endswith("if C is a concept.")
    assert any(limit.startswith("Fractions in C") for limit in answer.limits)
    without = asked(concepts=frame, queries=["M = 1"], features=["S", "M"])
    assert without.verdict is not None
    assert without.verdict.word == "answerable"
    with pytest.warns(HybridWarning, match="C hold probabilities"):
        ConceptPredictor(["C"]).fit(None, frame["Y"], concepts=frame.drop("Y"))


def test_what_a_table_does_not_have_moves_nothing_but_is_moved_through() -> None:
    by_table = {"features": ["S", "C", "M"], "queries": ["S = 1"]}
    direct = asked(**by_table).tables["cases"].frame
    for graph in ("S -> Q -> C; S <-> M", "S -> Y -> C; S <-> M"):
        assert asked(graph=graph, **by_table).tables["cases"].frame.equals(direct)


def test_a_twin_of_the_outcome_is_no_set_to_compare() -> None:
    frame = table()
    answer = asked(concepts=frame.with_columns(C="Y"), features=["S"])
    assert all("C" not in names for names in answer.tables["tradeoff"].frame["features"])
    with pytest.raises(AnswerableError, match="concept C: it is the label itself"):
        asked(concepts=frame.with_columns(C=1 - pl.col("Y")), features=["S", "C"])


def test_one_question_is_said_in_the_singular() -> None:
    one = asked(pictures=True, queries=["S = 1"])
    assert "it moves a feature that it does not set" in words(one)
    assert "the question is answerable" in words(asked(queries=["M"], concepts=None, outcome=None))
    assert "1 of 2 questions moves a feature that it does not set" in words(asked(queries=["S", "M"]))
    assert "from this one concept" in words(asked(queries=["M"], features=["M"]))
    assert [figure.title for figure in one.figures.values()][1].startswith("To answer the question costs ")
    unsure = {"nodes": ["A", "B"], "possible": [["A", "B"]]}
    assert "it depends on edges that are only possible (A -> B)" in words(
        asked(graph=unsure, queries=["A"], concepts=None, outcome=None)
    )


def test_values_are_written_as_people_write_them() -> None:
    truths = table().with_columns(S=pl.col("S") == 1)
    by_word = asked(concepts=truths, queries=["S == true", "S = False"]).tables["cases"].frame
    by_number = asked(queries=["S = 1", "S = 0"]).tables["cases"].frame
    assert by_word["lower"].to_list() == pytest.approx(by_number["lower"].to_list())
    with pytest.raises(AnswerableError, match=r"queries, entry 3: 'S=1' is entry 1 again; ask each question once"):
        asked(queries=["S = 1", "S = 0", "S=1"])


def test_the_extractors_of_a_fold_serve_every_set_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(
        LogisticRegression, "fit", lambda self, X, y, *rest: (fits.append(X.shape[1]), fit(self, X, y, *rest))[1]
    )
    frame = table()
    wide = np.hstack([inputs(frame)] * 4)
    asked(concepts=frame, inputs=wide)
    # three extractors for each of three folds, and of the model itself
    assert fits.count(8) == 3 * (3 + 1)


def test_shared_extractors_give_the_losses_of_fresh_ones() -> None:
    from answerable.explanations.counterfactual_queries.tradeoffs import judged, out_of_fold

    frame, sets = table(), [["S", "C", "M"], ["S", "M"], ["C"]]
    seen, labels = frame.drop("Y"), frame["Y"].to_numpy()
    part = np.arange(90) % 3
    losses, right = out_of_fold(inputs(frame), seen, labels, sets, ConceptPredictor(), part)
    for number, names in enumerate(sets):
        for fold in range(3):
            inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
            fresh = ConceptPredictor(names).fit(inputs(frame)[inside], labels[inside], concepts=seen[inside.tolist()])
            own = fresh.predict_proba(inputs(frame)[outside])[np.arange(30), labels[outside]]
            assert losses[number, outside] == pytest.approx(-np.log(own), abs=1e-12)
            assert (right[number, outside] == (own > 0.5)).all()
            again, _ = judged(fresh, [names], labels[inside], inputs(frame)[outside], labels[outside])
            assert again[0] == pytest.approx(losses[number, outside], abs=1e-12)


def test_of_very_many_concepts_a_hundred_are_told() -> None:
    n = 20_000
    graph = CausalGraph([(f"v{i}", f"v{i + 1}") for i in range(n)])
    found = admissible(graph, None, "v0")
    assert len(found.witnesses) == n
    assert len(found.repaired) == n + 1
    assert [len(path) for path in found.paths] == list(range(2, 102))
    excluded = maximal_features(graph, ["v0"]).excluded
    assert len(excluded) == n
    assert excluded[99].path[-1] == "v100"
    assert excluded[100].path == ()
    assert naive_meaning(graph, None, "v0").count(f"v100 and {n - 100} more") == 2


def test_a_vast_graph_is_asked_of_the_questions_alone() -> None:
    n = 1500
    answer = asked(
        graph={"directed": [[f"v{i}", f"v{i + 1}"] for i in range(n)]},
        queries=["v0", f"v{n}"], features=[f"v{n}"], concepts=None, outcome=None,
    )  # fmt: skip
    assert answer.tables["sets"].frame["query"].to_list() == ["v0", f"v{n}", f"v0, v{n}"]
    assert answer.tables["concepts"].frame.height == n + 1
    assert any("1501 concepts" in limit for limit in answer.limits)
    with pytest.raises(AnswerableError, match="the graph has 1501 concepts; name the queries that matter"):
        asked(graph={"directed": [[f"v{i}", f"v{i + 1}"] for i in range(n)]}, concepts=None, outcome=None)


WIDE = np.random.default_rng(0).normal(size=(90, 4))
SEEN = table().drop("Y")
LABELS = table()["Y"].to_numpy()


def given_model(**settings: Any) -> ConceptPredictor:
    return ConceptPredictor(**settings).fit(None, LABELS, concepts=SEEN)


def extracting(**settings: Any) -> ConceptPredictor:
    return ConceptPredictor(**settings).fit(WIDE, LABELS, concepts=SEEN)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: ConceptPredictor().fit(None, LABELS), "X: neither inputs nor concepts are given"),
        (lambda: ConceptPredictor().fit(None, np.where(LABELS == 1, np.nan, 0), concepts=SEEN), "y, row .*: the label"),
        (lambda: ConceptPredictor().fit(WIDE * 1e300, LABELS, concepts=SEEN), r"X, row 1: a number is beyond 1e\+100"),
        (lambda: ConceptPredictor().fit(WIDE * 1j, LABELS, concepts=SEEN), "X: inputs are no numbers"),
        (lambda: ConceptPredictor().fit(WIDE.astype(str), LABELS, concepts=SEEN).predict("word"), "X: inputs are no numbers"),
        (lambda: ConceptPredictor().fit(3, LABELS, concepts=SEEN), "X: a int holds no inputs of one shape"),
        (lambda: ConceptPredictor().fit(np.array(3), LABELS, concepts=SEEN), "X: there are no inputs"),
        (lambda: extracting(extractor="boosting"), "extractor of S: str gives no probabilities"),
        (lambda: extracting(extractor={"S": "boosting"}), "extractor of S: str gives no probabilities"),
        (lambda: given_model(n_draws=0), "n_draws"),
        (lambda: extracting().predict_proba(WIDE[:, :2]), "X: an input holds 2 numbers in place of 4"),
        (lambda: extracting(joint=True).predict_proba(WIDE[:, :2]), "X: an input holds 2 numbers in place of 4"),
        (lambda: extracting().predict_proba(WIDE[:0]), "X: there are no inputs"),
        (lambda: extracting().predict_proba([[1, 2], [1]]), "X: a list holds no inputs of one shape"),
        (lambda: extracting().predict_proba([["a"] * 4]), "X: inputs are no numbers"),
        (lambda: extracting().predict_proba(None), "X: a NoneType holds no inputs"),
        (lambda: given_model(classifier=lambda values: 0.5).predict(SEEN), r"classifier: it gives shape \(\)"),
        (lambda: given_model().counterfactual(SEEN, {"M": np.array([0, 1])}, graph=GRAPH), "concept M: array"),
        (lambda: given_model().counterfactual(SEEN, {"M": 1}, graph=GRAPH, target=[1]), r"there is no class \[1\]"),
        (lambda: tradeoff(None, SEEN, LABELS[:9], GRAPH, ["S"]), "y: 90 rows of concepts and 9 labels"),
    ],
)  # fmt: skip
def test_what_the_predictor_cannot_use_is_one_line(call: Any, line: str) -> None:
    with pytest.raises(AnswerableError, match=line) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_inputs_beyond_arithmetic_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table().write_csv("T.csv")
    np.save("X.npy", WIDE * 1e300)
    command = ["ask", NAME, "--graph", GRAPH, "--concepts", "T.csv", "--outcome", "Y", "--inputs", "X.npy"]
    assert run([*command, "--store", "store"]) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert "a number is beyond 1e+100; scale the inputs" in said[-1]
    assert not list(Path("store").glob("*/answer.json"))


def test_large_sets_are_drawn_by_what_they_leave_out() -> None:
    rng = np.random.default_rng(0)
    names = [f"concept_{i}" for i in range(6)]
    frame = pl.DataFrame({name: rng.integers(0, 2, 90) for name in [*names, "Y"]})
    graph = {"nodes": names, "directed": [[names[0], names[1]], [names[2], names[3]]]}
    answer = asked(graph=graph, concepts=frame, queries=[names[0], names[2]], pictures=True)
    drawn = answer.figures["tradeoff"].wide
    labels = {row["label"] for layer in drawn["layer"] for row in layer["data"].get("values", []) if "label" in row}
    assert labels == {"all 6", "all but concept_1", "all but concept_3", "all but concept_1, concept_3"}


# Partitions


@pytest.fixture
def parted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    frame = table().with_columns(image=pl.format("{}.jpg", pl.int_range(pl.len())))
    frame.write_csv(tmp_path / "T.csv")
    parts = [0 if row < 60 else 1 if row < 70 else 2 for row in range(90)]
    (tmp_path / "parts.txt").write_text("".join(f"{row}.jpg {part}\n" for row, part in enumerate(parts)))
    names = ["train", "valid", "test"]
    pl.DataFrame({"image": frame["image"], "part": [names[part] for part in parts]}).write_csv(tmp_path / "parts.csv")
    monkeypatch.chdir(tmp_path)
    return frame


def test_a_partition_takes_the_place_of_folds(parted: pl.DataFrame) -> None:
    answer = asked(concepts="T.csv", partition="parts.txt", queries=["M = 1"])
    seen = parted.select("S", "C", "M")
    model = LogisticRegression(max_iter=2000).fit(seen[:60].to_numpy(), parted["Y"][:60].to_numpy())
    own = model.predict_proba(seen[70:].to_numpy())[np.arange(20), parted["Y"][70:].to_numpy()]
    assert answer.metrics["log_loss"].value == pytest.approx(-np.log(own).mean())
    assert answer.metrics["accuracy"].value == pytest.approx((own > 0.5).mean())
    assert answer.tables["cases"].frame["row"].to_list() == list(range(71, 79))
    assert "on the train rows of the table" in " ".join(answer.limits)
    frame = asked(concepts=parted, partition=read_partition("parts.csv"), queries=["M = 1"])
    assert frame.metrics["log_loss"].value == answer.metrics["log_loss"].value
    assert frame.tables["cases"].frame.equals(answer.tables["cases"].frame)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0.jpg 0\n1.jpg 3\n", "line 2: '1.jpg 3' is no image and part"),
        ("0.jpg 0\n0.jpg 1\n", "the image '0.jpg' stands twice"),
        ("0.jpg 0\n1.jpg 2\n", "partition: the image '2.jpg' is in no part"),
        ("image,part\n0.jpg,holiday\n", "row 1: 'holiday' is no part; write train, valid or test"),
        ("image,portion\n0.jpg,0\n", "there is no column 'part'"),
        ("".join(f"{row}.jpg 0\n" for row in range(90)), "partition: 0 of the images are test or valid"),
        ("".join(f"{row}.jpg 2\n" for row in range(90)), "partition: 0 of the images are train"),
    ],
)
def test_a_bad_partition_is_one_line(
    parted: pl.DataFrame, text: str, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("bad.txt").write_text(text)
    command = ["ask", NAME, "--graph", GRAPH, "--concepts", "T.csv", "--outcome", "Y", "--partition", "bad.txt"]
    assert run([*command, "--store", "store"]) == 2
    said = capfd.readouterr().err.strip()
    assert line in said
    assert "\n" not in said
    assert not list(Path("store").glob("*/answer.json"))


def test_a_partition_needs_images_and_every_class() -> None:
    parts = pl.DataFrame({"image": range(90), "part": [0] * 60 + [2] * 30})
    with pytest.raises(AnswerableError, match="concepts: there is no column 'image'"):
        asked(partition=parts)
    frame = table().with_columns(image=pl.int_range(pl.len()))
    with pytest.raises(AnswerableError, match="partition: no train image has Y = 1"):
        asked(concepts=frame.with_columns(Y=(pl.int_range(pl.len()) >= 60).cast(pl.Int64)), partition=parts)
    with pytest.raises(AnswerableError, match="there is no table of concepts"):
        asked(concepts=None, outcome=None, partition=parts)
