"""The question: what it says, of tables, of attribute files as they are shipped, and what it refuses in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer, Figure
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.explanations.counterfactual_queries import figures
from answerable.explanations.counterfactual_queries.question import CounterfactualQueries
from answerable.subjects import digest, read_concepts, read_partition

NAME = "counterfactual-queries"
FACES = "Smiling -> High_Cheekbones; Smiling <-> Male"
COLUMNS = ["Smiling", "Male", "High_Cheekbones", "Mouth_Slightly_Open", "Attractive", "Young"]


def asked(**fields: Any) -> Answer:
    return ask(NAME, store=False, **{"graph": FACES, **fields})


def attributes(n: int = 40) -> np.ndarray:
    return np.where(np.random.default_rng(0).random((n, len(COLUMNS))) < 0.5, -1, 1)


def celeba(path: Path, n: int = 40) -> Path:
    rows = "\n".join(
        f"{number:06d}.jpg " + " ".join(f"{value:2d}" for value in row) for number, row in enumerate(attributes(n), 1)
    )
    path.write_text(f"{n}\n{' '.join(COLUMNS)} \n{rows}\n")
    return path


def test_the_smallest_ask_says_what_blocks_and_what_it_costs() -> None:
    answer = ask(NAME, store=False, **CounterfactualQueries.smallest)
    assert answer.summary == (
        "2 of 3 questions can be answered; setting Smiling moves High_Cheekbones, which the model looks at."
    )
    assert answer.verdict is not None
    assert answer.verdict.word == "partly answerable"
    queries = answer.tables["queries"].frame
    assert queries["answerable"].to_list() == ["no", "yes", "yes"]
    assert queries.row(0, named=True)["nearest_question"] == "Smiling, High_Cheekbones"
    assert queries.row(0, named=True)["path"] == "Smiling -> High_Cheekbones"
    concepts = answer.tables["concepts"].frame
    assert concepts.filter(pl.col("in_largest_set"))["concept"].to_list() == ["Male", "Smiling"]
    cases = answer.tables["cases"].frame
    assert cases["identified"].sum() == (cases["prob"].is_not_null()).sum() == 28
    assert (cases["lower"] <= cases["naive"] + 1e-12).all()
    assert answer.metrics["answerable_sets"].value == 5
    assert answer.metrics["answerability_cost"].low < 0 < answer.metrics["answerability_cost"].high  # type: ignore[operator]
    assert set(answer.figures) == {"graph", "tradeoff", "cases"}


def test_a_graph_alone_is_enough_and_every_concept_is_asked_of() -> None:
    answer = asked(features=["Smiling", "Male"])
    assert answer.tables["queries"].frame["answerable"].to_list() == ["yes"] * 3
    assert answer.verdict is not None
    assert answer.verdict.word == "answerable"
    assert answer.summary.startswith("All 3 questions can be answered by a model that predicts from these 2 concepts")
    assert set(answer.figures) == {"graph"}


def test_possible_edges_are_undecided_and_the_input_is_never_answerable() -> None:
    graph = {"nodes": ["A", "B"], "possible": [["A", "B"]]}
    unsure = asked(graph=graph, queries=["A"])
    assert unsure.verdict is not None
    assert unsure.verdict.word == "undecided"
    assert unsure.tables["queries"].frame.row(0, named=True)["graphs"] == "some"
    assert "may move" in unsure.summary
    for fields in ({"sees_input": True}, {"features": ["Male", "X"]}):
        hybrid = asked(**fields)
        assert hybrid.verdict is not None
        assert hybrid.verdict.word == "not answerable"
        assert hybrid.metrics["answerable_queries"].value == 0
        assert hybrid.tables["queries"].frame["blocked_by"].to_list() == ["X"] * 3


def test_celeba_s_own_file_is_asked_of(tmp_path: Path) -> None:
    path = celeba(tmp_path / "list_attr_celeba.txt")
    table = read_concepts(path)
    assert table.columns == ["image", *COLUMNS]
    assert (table.drop("image").to_numpy() == (attributes() == 1)).all()
    assert digest("concept_table", str(path)) == digest("concept_table", path)
    answer = asked(concepts=str(path), outcome="Attractive", queries=["Smiling = 0", "Male = 1"], cases=[3, 1])
    assert answer.tables["cases"].frame["row"].to_list() == [1, 1, 3, 3]
    assert answer.metrics["accuracy"].high > 0.3  # type: ignore[operator]
    (tmp_path / "parts.txt").write_text("000001.jpg 0\n000002.jpg 2\n")
    assert read_partition(tmp_path / "parts.txt")["part"].to_list() == ["train", "test"]


def test_cub_s_own_files_are_read_with_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "attributes"
    folder.mkdir()
    labels = np.random.default_rng(1).integers(0, 2, (5, 3))
    lines = [f"{i + 1} {a + 1} {labels[i, a]} 3 {i}.5" for i in range(5) for a in range(3)]
    (folder / "image_attribute_labels.txt").write_text("\n".join(lines) + "\n")
    plain = digest("concept_table", str(folder / "image_attribute_labels.txt"))
    assert read_concepts(folder / "image_attribute_labels.txt").columns == [
        "image",
        *(f"attribute_{a}" for a in (1, 2, 3)),
    ]
    (tmp_path / "attributes.txt").write_text("1 has_bill::curved\n2 has_wing::blue\n3 has_tail::long\n")
    found = read_concepts(folder / "image_attribute_labels.txt")
    assert found.columns == ["image", "has_bill::curved", "has_wing::blue", "has_tail::long"]
    assert (found.drop("image").to_numpy() == labels).all()
    assert digest("concept_table", str(folder / "image_attribute_labels.txt")) != plain


@pytest.mark.parametrize(
    "text, line",
    [
        ("3\nA B\n1.jpg 1 -1\n2.jpg 1 1\n", "line 1 says 3 images, 2 follow"),
        ("1\nA B\n1.jpg 1 0\n", "line 3: B is 0, neither -1 nor 1; mend the line"),
        ("1\nA A\n1.jpg 1 1\n", "line 2: two attributes are called 'A'"),
        ("1\nA B\n1.jpg 1\n", "its rows are not an image and 2 numbers"),
        ("1\nA B\n1.jpg 1 x\n", "its rows are not an image and 2 numbers"),
        ("1 1 1 3 0.5\n1 2 1 3\n1 9\n", "line 3: '1 9' is no label"),
        ("1 1 1 3 0.5\n1 2 1 3 1\n2 1 0 3 1\n", "3 lines for 2 images and 2 attributes"),
        ("1 1 1 3 0.5\n1 1 1 3 1\n2 1 0 3 1\n2 2 0 3 1\n", "an image lacks an attribute or has one twice"),
    ],
)
def test_damaged_attribute_files_are_one_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "labels.txt").write_text(text)
    with pytest.raises(AnswerableError) as raised:
        read_concepts(tmp_path / "labels.txt")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_inputs_are_extracted_and_the_error_is_bounded() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 120) for name in ("A", "B")}
    table["Y"] = table["A"] ^ (rng.random(120) < 0.2)
    images = rng.normal(0, 0.3, (120, 2, 2))
    images[:, 0, 0] += table["A"]
    images[:, 1, 1] += table["B"]
    fields: dict[str, Any] = {"graph": "A -> B", "concepts": table, "outcome": "Y", "queries": ["A = 1"], "folds": 3}
    for joint in (False, True):
        answer = asked(**fields, inputs=images, joint=joint, classifier="cells")
        bound = answer.metrics["extraction_error"]
        assert bound.low is not None
        assert 0 < bound.low < bound.value < 0.6
        assert any("one by one" in limit for limit in answer.limits) != joint
    for target, sign in (("1", 1), ("0", -1)):
        found = asked(**fields, features=["A"], target=target).tables["cases"].frame
        assert (sign * (found["prob"] - 0.5) > 0).all()


HOSTILE = {
    "an empty query": ({"queries": [""]}, "queries, entry 1: '' says nothing"),
    "a query of nothing": ({"queries": ["Smiling ="]}, "queries, entry 1: 'Smiling =' says nothing"),
    "an unknown concept": ({"queries": ["Smile = 1"]}, "queries, entry 1: there is no concept 'Smile'; did you mean 'Smiling'"),
    "a concept twice": ({"queries": ["Male, Male = 1"]}, "queries, entry 1: 'Male' is set twice"),
    "an unknown feature": ({"features": ["Hat"]}, "features: there is no concept 'Hat'"),
    "a graph with a cycle": ({"graph": "A -> B -> A"}, "cycle: A -> B -> A"),
    "no table": ({"outcome": "Attractive"}, "concepts: there is no table of concepts"),
    "no outcome": ({"concepts": "T"}, "outcome: there is a table and no outcome"),
    "an unknown outcome": ({"concepts": "T", "outcome": "Pretty"}, "outcome: there is no column 'Pretty'"),
    "a missing column": ({"concepts": "T", "outcome": "Young", "graph": "Hat -> Male"}, "concepts: there is no column 'Hat'"),
    "an outcome among the features": (
        {"concepts": "T", "outcome": "Male", "features": ["Male"]}, "features: 'Male' is the outcome itself",
    ),
    "a query of the outcome": (
        {"concepts": "T", "outcome": "Male", "queries": ["Male"]}, "queries, entry 1: 'Male' is the outcome itself",
    ),
    "a level never seen": (
        {"concepts": "T", "outcome": "Young", "queries": ["Male = 2"]}, "concept Male: '2' was never observed; give 0 or 1",
    ),
    "a row that is not there": ({"concepts": "T", "outcome": "Young", "cases": [41]}, "cases: there is no row 41"),
    "an unknown target": ({"concepts": "T", "outcome": "Young", "target": "yes"}, "target: there is no value of the outcome"),
    "an outcome of many values": ({"concepts": "T", "outcome": "image"}, "000001.jpg stands in one row, and 5 folds need 5"),
    "too many folds": ({"concepts": "few", "outcome": "Y", "graph": "A -> B"}, "0 stands in 4 rows, and 5 folds need 5"),
    "a missing label": ({"concepts": "hole", "outcome": "Y", "graph": "A -> B"}, "column Y, row 2: the entry is missing"),
    "nothing but the input": ({"concepts": "T", "outcome": "Young", "features": ["X"]}, "features: no concept is a feature"),
    "an asserted independence that the graph denies": (
        {"concepts": "T", "outcome": "Young", "independent": ["Male"]}, "independent, Male: the graph says",
    ),
}  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    celeba(tmp_path / "T")
    (tmp_path / "few").write_text("A,B,Y\n" + "0,1,0\n1,0,1\n0,0,0\n1,1,1\n" * 2)
    (tmp_path / "hole").write_text("A,B,Y\n0,1,0\n1,0,\n0,0,1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", HOSTILE)
def test_bad_input_is_one_line_from_python_and_from_the_command_line(
    case: str, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fields, line = HOSTILE[case]
    with pytest.raises(AnswerableError) as raised:
        asked(**fields)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    words = ["ask", NAME, "--store", str(files / "store"), "--graph", str(fields.get("graph", FACES))]
    for name, value in fields.items():
        if name != "graph":
            for entry in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", str(entry)]
    assert run(words) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert line in said[-1]


def test_more_hostile_input_from_python() -> None:
    table = {
        "Smiling": [0, 1] * 10,
        "Male": [0, 0, 1, 1] * 5,
        "High_Cheekbones": [1, 0, 0, 0] * 5,
        "Y": [0, 1, 1, 0] * 5,
    }
    for fields, line in (
        ({"inputs": np.zeros((3, 4))}, r"inputs: an array of shape \(3, 4\) for 20 rows"),
        ({"inputs": np.zeros((20, 0))}, r"inputs: an array of shape \(20, 0\) for 20 rows"),
        ({"inputs": np.full((20, 4), np.nan)}, "X, row 1: an input is missing or not finite"),
        ({"inputs": {"a": np.zeros((20, 4)), "b": np.zeros(1)}}, "inputs: the file holds 2 arrays"),
        ({"inputs": np.array([["a"] * 2] * 20)}, "inputs: an array of <U1; give numbers"),
        ({"concepts": {**table, "Male": [0.5, None] * 10}}, "concepts, column Male, row 2: the entry is missing"),
        ({"concepts": {**table, "Male": [-1, 1] * 10}}, "'Male' is coded -1/1 and 'Smiling' is coded 0/1"),
    ):
        with pytest.raises(AnswerableError, match=line):
            asked(**{"concepts": table, "outcome": "Y", **fields})


def test_names_of_every_kind_are_drawn_and_told(tmp_path: Path) -> None:
    names = ["a, b = c", "<script>alert(1)</script>", "{{x}}", "ü" * 180]
    graph = {"directed": [[names[0], names[1]], [names[1], names[2]]], "bidirected": [[names[2], names[3]]]}
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 30) for name in [*names, "Y"]}
    answer = asked(graph=graph, concepts=table, outcome="Y", folds=2)
    assert answer.tables["queries"].frame["query"].to_list() == names
    for figure in answer.figures.values():
        for narrow in (False, True):
            assert "<script" not in figure.svg(narrow=narrow)
    answer.save(tmp_path / "answer")
    assert json.loads((tmp_path / "answer" / "answer.json").read_text())["verdict"]["word"] == "partly answerable"


def test_a_large_graph_is_asked_of_at_once() -> None:
    edges = [[f"v{i}", f"v{j}"] for i in range(300) for j in (i + 1, i + 7) if j < 300]
    answer = asked(graph={"directed": edges}, queries=["v5", "v299"], features=["v0", "v299"])
    assert answer.tables["queries"].frame["answerable"].to_list() == ["no", "yes"]
    assert answer.metrics["answerable_sets"].reason
    assert len(answer.summary.split()) < 36


def test_rows_beyond_the_picture_are_told() -> None:
    rows = 30
    frame = pl.DataFrame(
        {
            "row": range(1, rows + 1), "query": ["A = 1"] * rows, "factual": [0.5] * rows, "prob": [0.6] * rows,
            "lower": [0.6] * rows, "upper": [0.6] * rows, "identified": [True] * rows, "naive": [0.6] * rows,
        }
    )  # fmt: skip
    figure = Figure.drawn(figures.answer_bars, frame, outcome="Y", target="1")
    assert figure.title == "All 30 answers are points"
    assert "The first 24 are drawn." in " ".join(figure.wide["title"]["subtitle"])


def test_a_long_graph_in_words_stands_in_a_dossier(tmp_path: Path) -> None:
    graph = "; ".join(f"v{i} -> v{i + 1}" for i in range(80))
    asks = f'question = "{NAME}"\ngraph = "{graph}"\nqueries = ["v5"]\nexpect = ["metrics.queries == 1"]'
    (tmp_path / "long.toml").write_text(f'title = "long"\n[[ask]]\nname = "long"\n{asks}\n')
    assert run(["dossier", str(tmp_path / "long.toml"), "--store", str(tmp_path / "store")]) == 0
