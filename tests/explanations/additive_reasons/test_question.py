"""The question: what it says of a scorecard and of an EBM's file, and what it refuses in one line."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable import registry, subjects
from answerable.answer import Answer
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError, UnknownName
from answerable.explanations.additive_reasons.question import AdditiveReasons
from answerable.subjects.additive_model import AdditiveModel

EXAMPLES = Path(__file__).parents[3] / "examples"
CARD = "feature,bin_lower,bin_upper,category,points\n(cutoff),,,,5\nage,18,30,,0\nage,30,60,,4\nhome,,,own,3\nhome,,,rent,0\n"
ROWS = "age,home\n40,own\n20,rent\n40,rent\n"
APPLICANT = {
    "sex": ["female"], "job": [2], "housing": ["rent"], "saving_accounts": ["little"],
    "checking_account": ["moderate"], "credit_amount": [1295], "duration": [12], "purpose": ["car"], "age": [25],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.QUESTIONS, "additive-reasons", f"{AdditiveReasons.__module__}:AdditiveReasons")
    monkeypatch.setitem(subjects.SUBJECTS, "additive_model", "answerable.subjects.additive_model")


def test_the_pages_snippet_runs_and_its_first_remark_holds() -> None:
    page = (EXAMPLES.parent / "docs" / "questions" / "additive-reasons.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    values = {}
    for step in ast.parse(block).body:
        if isinstance(step, ast.Expr):
            values[ast.unparse(step)] = eval(ast.unparse(step), names)
        else:
            exec(ast.unparse(step), names)
    assert values["model.check(tumours)"] < 1e-10
    of_regression = values["all_reasons(progress, patients.head(3), tolerance=100)"]
    assert of_regression["reason"][0].to_list() == ["bmi", "s5"] and of_regression["complete"].all()


def files(folder: Path, card: str = CARD, rows: str = ROWS) -> dict[str, str]:
    (folder / "card.csv").write_text(card)
    (folder / "rows.csv").write_text(rows)
    return {"model": str(folder / "card.csv"), "rows": str(folder / "rows.csv")}


def test_the_smallest_ask_is_the_worked_example() -> None:
    answer = ask("additive-reasons", store=False, **AdditiveReasons.smallest)
    features = answer.tables["features"].frame.filter(pl.col("row") == 1)
    assert features["shapley"].to_list() == pytest.approx([0.295139, -0.149306, 0.218750, 0.072917], abs=5e-7)
    first = answer.tables["cases"].frame.row(0, named=True)
    assert (first["score"], first["reason"], first["change_size"]) == (4, "a, c", 1)
    assert answer.metrics["proved_share"].value == 1


def test_a_scorecard_from_a_file(tmp_path: Path) -> None:
    answer = ask("additive-reasons", store=False, **files(tmp_path), known=["age"], weights="uniform", output="class")
    cases = answer.tables["cases"].frame
    assert cases["decision"].to_list() == ["reached", "below", "below"]
    assert cases["reason"].to_list() == ["age, home", "age", "home"]
    assert cases["change"].to_list() == ["age = 18", "age = 30, home = own", "home = own"]
    assert cases["score"].to_list() == [2, -5, -1]
    kept = answer.tables["completions"].frame["probability"].to_list()
    assert kept == pytest.approx([0.5, 1, 0.5])
    assert answer.metrics["kept_probability"].kind == "exact"
    assert answer.summary.startswith("Over 3 cases, 1.3 of 2 features settle a decision on average")
    assert set(answer.figures) == {"margin", "scores", "shapley", "complexity"}


def test_an_ebm_from_its_file() -> None:
    fields: dict[str, Any] = {"model": str(EXAMPLES / "german-credit-ebm.json"), "rows": APPLICANT}
    answer = ask("additive-reasons", store=False, output="probability", frozen=["age"], whole=["duration"], **fields)
    case = answer.tables["cases"].frame.row(0, named=True)
    assert case["change"] == "checking_account = not_known"
    assert "age" not in case["change"]
    model = AdditiveModel.from_ebm(EXAMPLES / "german-credit-ebm.json")
    score = model.score(model.encode(APPLICANT))[0, 0]
    total = answer.tables["features"].frame["shapley"].sum()
    from answerable.explanations.additive_reasons import shapley_values

    base = shapley_values(model, APPLICANT, output="probability")["base"][0]
    assert total + base == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-12)


def test_every_reason_holds_against_random_completions_and_every_change_flips() -> None:
    """100,000 completions, each a reason of another applicant kept and the rest drawn anew."""
    model = AdditiveModel.from_ebm(EXAMPLES / "german-credit-ebm.json")
    rng = np.random.default_rng(1)
    n = 100_000

    def drawn(size: int) -> np.ndarray:
        columns = [
            rng.integers(len(s.levels), size=size) if s.levels else rng.uniform(s.low, s.high, size)
            for s in model.features
        ]
        return np.column_stack(columns).astype(float)

    from answerable.explanations.additive_reasons.cases import cases

    rows = drawn(500)
    found = cases(model, rows)
    chosen = rng.integers(len(rows), size=n)
    completed = np.where(found.reason[chosen], rows[chosen], drawn(n))
    assert (model.decide(completed) == found.decision[chosen]).all()
    flips = np.isfinite(found.change_bound)
    changed = np.where(found.change, found.worst, rows)
    assert (model.decide(changed)[flips] != found.decision[flips]).all()
    assert flips.mean() > 0.5


def test_a_regression_and_several_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    from answerable.subjects.additive_model import Shape

    shapes = tuple(
        Shape.table(f"f{j}", [-0.5, 0.5, 1.5], rng.normal(size=(2, 3)), low=0, high=1, integer=True) for j in range(4)
    )
    three = AdditiveModel(shapes, np.zeros(3), task="multiclass", classes=("a", "b", "c"))
    rows = {f"f{j}": [0, 1] for j in range(4)}
    answer = ask("additive-reasons", model=three, rows=rows, store=False)
    assert answer.metrics["proved_share"].value == 1
    assert set(answer.figures) == {"complexity"}
    one = AdditiveModel(tuple(Shape.line(f"f{j}", float(j + 1), low=0, high=1) for j in range(4)), np.zeros(1))
    answer = ask("additive-reasons", model=one, rows=rows, within=3.5, store=False)
    # known: f2 and f3; then f0 and f1 move the output by 3 at most
    assert answer.tables["cases"].frame["reason_size"].to_list() == [2, 2]


def test_ties_are_shown_in_the_cases(tmp_path: Path) -> None:
    """Three alike features of 0 or 1 and a cutoff of 2: at (1, 1, 1) any two settle it, at (1, 1, 0) the two ones."""
    card = "feature,category,points\n(cutoff),,2\n" + "".join(f"{name},{k},{k}\n" for name in "abc" for k in (0, 1))
    fields = files(tmp_path, card=card, rows="a,b,c\n1,1,1\n1,1,0\n0,0,1\n")
    cases = ask("additive-reasons", store=False, **fields).tables["cases"].frame
    assert cases["in_every_reason"].to_list() == ["", "a, b", "a, b"]
    assert cases["in_some_reason"].to_list() == ["a, b, c", "a, b", "a, b"]
    assert cases["at_line"].to_list() == [False, True, False]
    assert cases["borderline"].to_list() == [False, False, False]


def test_only_the_cases_asked_for_are_answered(tmp_path: Path) -> None:
    answer = ask("additive-reasons", store=False, **files(tmp_path), cases=[3, 1])
    assert answer.tables["cases"].frame["row"].to_list() == [3, 1]
    assert answer.tables["features"].frame["row"].unique().sort().to_list() == [1, 3]


def test_a_threshold_moves_the_line() -> None:
    fields: dict[str, Any] = {"model": str(EXAMPLES / "german-credit-ebm.json"), "rows": APPLICANT, "store": False}
    low, high = (ask("additive-reasons", cutoff=cutoff, **fields).tables["cases"].frame for cutoff in (0.3, 0.7))
    assert (low["decision"][0], high["decision"][0]) == ("1", "0")
    assert low["score"][0] - high["score"][0] == pytest.approx(2 * np.log(7 / 3))


BAD_ROWS = [
    ("age,home\n40,boat\n", "row 1, feature home: 'boat' is no category it knows; give one of own, rent"),
    ("age,home\n17,own\n", "row 1, feature age: 17 is outside the domain; give a number from 18 to below 60"),
    ("age,home\n60,own\n", "row 1, feature age: 60 is outside the domain"),
    ("age,home\n40,own\n,own\n", "row 2, feature age: the value is missing"),
    ("age,home\nold,own\n", "row 1, feature age: 'old' is no number"),
    ("age\n40\n", "column 'home'"),
]
BAD_CARDS = [
    ("feature,points\na,1\n", "neither bins nor categories"),
    ("feature,category,points\na,x,1\n(cutoff),,2\n(cutoff),,3\n", "feature (cutoff): 2 lines give it; keep one"),
    ("feature,category,points\na,x,1\n(cutof),,2\n", "there is no line '(cutof)'; did you mean '(cutoff)'?"),
    ("feature,category,points\n(cutoff),,2\n", "no line is of a feature"),
    ("feature,bin_lower,bin_upper,points\na,5,5,1\n", "line 2, feature a: the bin from 5 to 5 holds no value"),
    ("feature,bin_lower,bin_upper,points\na,0,1,x\n", "line 2, column points: 'x' is no finite number"),
    (
        "feature,bin_lower,bin_upper,points\na,0,1,1\na,2,3,1\n",
        "line 3, feature a: the bins up to 1 and from 2 leave a gap",
    ),
    (
        "feature,bin_lower,bin_upper,points\na,0,2,1\na,1,3,1\n",
        "line 3, feature a: the bins up to 2 and from 1 overlap",
    ),
    ("feature,category,points\na,x,1\na,x,2\n", "feature a: a category stands twice"),
    ("feature,category,points\na,x,1\n,y,1\n", "card.csv, line 3: it names no feature; fill in the column feature"),
    ("feature,bin_lower,bin_upper,category,points\na,0,1,,1\na,,,x,1\n", "feature a: both bins and categories"),
]
BAD_FIELDS = [
    ({"cases": [2, 1, 2]}, "cases: row 2 stands twice; ask for each row once"),
    ({"cases": [4]}, "cases: there is no row 4; the table has 3 rows"),
    ({"known": ["agee"]}, "did you mean 'age'?"),
    ({"frozen": ["sex"]}, "there is no feature 'sex'"),
    ({"whole": ["sex"]}, "there is no feature of integer 'sex'"),
    ({"domain": ["age"]}, "domain, entry 1: 'age' is no name and value"),
    ({"domain": ["agee: x | y"]}, "there is no feature of domain 'agee'; did you mean 'age'?"),
    ({"domain": ["age: x to y"]}, "domain, entry 1: 'x to y' is no interval"),
    ({"domain": ["age: 50 to 20"]}, "domain, feature age: no value from 50 to 20"),
    ({"domain": ["home: boat"]}, "there is no category 'boat'"),
    ({"domain": ["age: 18 to 30"]}, "row 1, feature age: 40 is outside the domain"),
    ({"costs": ["age: free"]}, "costs, entry 1: 'free' is no number"),
    ({"costs": ["age: -1"]}, "cost of age: it is -1.0"),
    ({"cutoff": 0.5}, "threshold: the score is no log odds"),
    ({"cutoff": 1.5}, "field cutoff: it is 1.5"),
    ({"output": "probability"}, "output: the score is no log odds"),
    ({"output": "odds"}, "odds"),
]


@pytest.mark.parametrize(("rows", "line"), BAD_ROWS)
def test_bad_rows_are_named_in_one_line(
    tmp_path: Path, rows: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(files(tmp_path, rows=rows), line, tmp_path, capsys)


@pytest.mark.parametrize(("card", "line"), BAD_CARDS)
def test_bad_scorecards_are_named_in_one_line(
    tmp_path: Path, card: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(files(tmp_path, card=card), line, tmp_path, capsys)


@pytest.mark.parametrize(("more", "line"), BAD_FIELDS)
def test_bad_fields_are_named_in_one_line(
    tmp_path: Path, more: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(files(tmp_path) | more, line, tmp_path, capsys)


def refused(fields: dict[str, Any], line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and on the command line: one line, exit code 2, nothing written."""
    with pytest.raises(AnswerableError) as raised:
        ask("additive-reasons", store=False, **fields)
    assert line in str(raised.value)
    assert isinstance(raised.value, UnknownName) or raised.value.mend
    flags = [
        word
        for name, value in fields.items()
        for word in (f"--{name}", *([str(one) for one in value] if isinstance(value, list) else [str(value)]))
    ]
    store, saved = folder / "store", folder / "saved"
    code = run(["ask", "additive-reasons", "--store", str(store), "--save", str(saved), *flags])
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert line in said
    assert not list(store.glob("answers/*")) and not saved.exists()


BAD_MODELS = [
    ("model.json", "{", "no JSON can be read"),
    ("model.json", "{}", "neither an EBM nor an additive model"),
    ("model.json", '{"ebm": {}}', "no EBM can be read (KeyError"),
    ("model.json", '{"format": "x"}', "its format is 'x'"),
    ("model.pkl", b"\x80\x04K\x01.", "which can run code when it is read"),
    ("model.bin", b"\x00\x01\x02", "a file of kind 'unknown' is no additive model"),
    ("model.csv", "", "a file of kind 'empty' is no additive model"),
]


@pytest.mark.parametrize(("name", "content", "line"), BAD_MODELS)
def test_a_file_that_is_no_model_is_refused(
    tmp_path: Path, name: str, content: str | bytes, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = files(tmp_path)
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(fields | {"model": str(path)}, line, tmp_path, capsys)


def edited(change: Any) -> dict[str, Any]:
    document = json.loads((EXAMPLES / "german-credit-ebm.json").read_text())
    change(document["ebm"])
    return document


def not_a_number(ebm: dict[str, Any]) -> None:
    ebm["terms"][3]["scores"][1] = float("nan")


def infinite(ebm: dict[str, Any]) -> None:
    ebm["terms"][3]["scores"][1] = float("-inf")


def another_link(ebm: dict[str, Any]) -> None:
    ebm["outputs"][0]["link"] = "log"


def three_features(ebm: dict[str, Any]) -> None:
    ebm["terms"][0]["term_features"] = ["sex", "job", "age"]


def shrunk_range(ebm: dict[str, Any]) -> None:
    ebm["features"][8]["min"] = 99.0


def one_name_twice(ebm: dict[str, Any]) -> None:
    ebm["features"][1]["name"] = "sex"


def one_term_twice(ebm: dict[str, Any]) -> None:
    ebm["terms"].append(ebm["terms"][1])


def a_score_too_many(ebm: dict[str, Any]) -> None:
    ebm["terms"][1]["scores"].append(0.5)


def a_weight_too_few(ebm: dict[str, Any]) -> None:
    ebm["terms"][1]["bin_weights"].pop()


def a_table_too_small(ebm: dict[str, Any]) -> None:
    ebm["terms"].append({"term_features": ["sex", "job"], "scores": [[0.5] * 6] * 3})


def two_outputs(ebm: dict[str, Any]) -> None:
    ebm["outputs"] *= 2


EDITED = [
    (one_name_twice, "ebm.json: two features are called 'sex'; give each a name of its own"),
    (one_term_twice, "ebm.json, feature job: two terms are of it; add them up"),
    (a_score_too_many, "ebm.json, term job: 7 scores for 6 slots"),
    (a_weight_too_few, "ebm.json, term job: 5 weights for 6 slots"),
    (a_table_too_small, "ebm.json, term sex & job: 3 by 6 scores for 4 by 6 slots"),
    (two_outputs, "ebm.json: it has 2 outputs; fit one EBM for each"),
    (not_a_number, "term saving_accounts: a score is not finite"),
    (infinite, "term saving_accounts: a score is not finite"),
    (another_link, "its link is 'log'; fit it with identity, logit, mlogit"),
    (three_features, "the term sex & job & age joins 3 features"),
    (shrunk_range, "feature age: its range is 99 to 75"),
]


@pytest.mark.parametrize(("change", "line"), EDITED)
def test_an_edited_ebm_is_refused_by_name(
    change: Any, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ebm.json").write_text(json.dumps(edited(change)))
    pl.DataFrame(APPLICANT).write_csv(tmp_path / "rows.csv")
    refused({"model": str(tmp_path / "ebm.json"), "rows": str(tmp_path / "rows.csv")}, line, tmp_path, capsys)


def scikit_model(folder: Path, kind: str) -> dict[str, str]:
    """Files of a fitted model and of the 300 rows it was fitted on; what is wrong with it says ``kind``."""
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    rng = np.random.default_rng(8)
    home = rng.integers(3, size=300)
    X = pl.DataFrame({"age": rng.integers(18, 76, 300), "income": rng.normal(size=300).round(3)}).to_pandas()
    y = X["age"] + 20 * X["income"] + 10 * home > 55
    if kind.startswith("home"):
        for k, name in enumerate(("own", "rent", "free")[: 2 if kind == "home, one dropped" else 3]):
            X[f"home_{name}"] = (home == k).astype(int)
    model: Any = make_pipeline(StandardScaler(), LogisticRegression())
    if kind == "trees":
        model = GradientBoostingClassifier(max_depth=1, n_estimators=2, random_state=0)
    if kind == "squares":
        model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression())
    fitted = model if kind == "not fitted" else model.fit(X.to_numpy() if kind == "by place" else X, y)
    io.dump(fitted, folder / "model.skops")
    (X.assign(id=1) if kind == "by place" else X).to_csv(folder / "rows.csv", index=False)
    return {"model": str(folder / "model.skops"), "rows": str(folder / "rows.csv")}


BAD_SCIKIT = [
    ("home", "feature home: home_own, home_rent, home_free are one category in 3 columns; give the pipeline"),
    ("home, one dropped", "feature home: home_own, home_rent are one category in 2 columns; give the pipeline"),
    ("squares", "pipeline: the step PolynomialFeatures is not additive or not known; use scalers"),
    ("trees", "model.skops: it holds types that are not trusted: sklearn.tree._tree.Tree; load it yourself"),
    ("not fitted", "Pipeline: the model is not fitted; fit it first"),
    ("by place", "X: 3 columns, and the model knows its 2 by place alone; give the 2 that it was fitted on"),
]


@pytest.mark.parametrize(("kind", "line"), BAD_SCIKIT)
def test_a_scikit_learn_file_that_cannot_be_explained_is_refused(
    tmp_path: Path, kind: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(scikit_model(tmp_path, kind), line, tmp_path, capsys)


def test_a_scikit_learn_models_ranges_are_those_of_background_else_of_the_rows(tmp_path: Path) -> None:
    fields = scikit_model(tmp_path, "fine")
    past = pl.read_csv(fields["rows"])
    past.head(2).write_csv(tmp_path / "two.csv")
    alone = {"model": fields["model"], "rows": str(tmp_path / "two.csv")}
    few = ask("additive-reasons", store=False, **alone)
    assert few.verdict is not None and few.verdict.word == "undecided"
    assert "read from 2 rows alone" in few.verdict.reason and "background" in few.verdict.mend
    assert any(line.startswith("The range of age, income is what 2 rows show; so few") for line in few.limits)

    many = ask("additive-reasons", store=False, background=fields["rows"], **alone)
    assert many.verdict is not None and many.verdict.word == "proved"
    assert "The range of age, income is what 300 background rows show." in many.limits
    ends = [f"{name}: {past[name].min()} to {past[name].max()}" for name in ("age", "income")]
    stated = ask("additive-reasons", store=False, domain=ends, **alone)
    assert stated.verdict is not None and stated.verdict.word == "proved"
    assert not any("range" in line for line in stated.limits)
    columns = ["reason", "change", "reason_slack", "change_slack"]
    found = [answer.tables["cases"].frame.select(columns) for answer in (few, many, stated)]
    assert found[1].equals(found[2])
    assert not found[0].equals(found[1])  # two rows say too little of what is possible


def test_one_category_in_several_columns_is_refused_of_any_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = "feature,category,points\n" + "".join(f"home_{k},{v},{v}\n" for k in ("own", "rent") for v in (0, 1))
    rows = "home_own,home_rent\n" + "1,0\n0,1\n0,0\n" * 30
    refused(files(tmp_path, card, rows), "feature home: home_own, home_rent are one category", tmp_path, capsys)
    by_chance = "home_own,home_rent\n" + "1,0\n0,1\n0,0\n" * 4  # independent columns may do that as well
    assert ask("additive-reasons", store=False, **files(tmp_path, card, by_chance)).metrics["cases"].value == 12
    together = rows + "1,1\n"
    assert ask("additive-reasons", store=False, **files(tmp_path, card, together)).metrics["cases"].value == 91


def test_dates_are_no_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = files(tmp_path)
    days = pl.DataFrame({"age": [25], "home": ["own"]}).with_columns(pl.col("age").cast(pl.Date))
    days.write_parquet(tmp_path / "rows.parquet")
    fields["rows"] = str(tmp_path / "rows.parquet")
    refused(fields, "feature age: it holds values of type Date; give a number from 18", tmp_path, capsys)


def test_a_network_that_cannot_be_read_is_refused_by_its_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.numpy import save_file

    tensors = {"age.domain": np.array([18.0, 60.0]), "age.0.weight": np.ones((1, 1)), "age.0.bias": np.zeros(1)}
    save_file(tensors | {"age.2.weight": np.ones((1, 1))}, tmp_path / "network.safetensors")
    fields = files(tmp_path) | {"model": str(tmp_path / "network.safetensors")}
    refused(fields, "network.safetensors: the tensor 'age.2.weight' belongs to no layer", tmp_path, capsys)


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("True", "False"), ("1", "0")])
def test_true_and_false_are_categories_however_they_are_written(tmp_path: Path, yes: str, no: str) -> None:
    card = f"feature,category,points\n(cutoff),,1\nowner,{yes},2\nowner,{no},0\nowner,unknown,0\n"
    for rows in ("owner\ntrue\nfalse\n", "owner\nTrue\nFalse\n"):
        cases = ask("additive-reasons", store=False, **files(tmp_path, card, rows)).tables["cases"].frame
        assert cases["score"].to_list() == [1, -1]
        assert cases["change"][1] == f"owner = {yes}"


def test_a_domain_of_categories_that_read_like_intervals(tmp_path: Path) -> None:
    card = "feature,category,points\n(cutoff),,2\nyears,up to 1,0\nyears,1 to 5,2\nyears,more,3\n"
    fields = files(tmp_path, card, "years\n1 to 5\n")
    for domain, change in (("years: 1 to 5 | more", ""), ("years: up to 1 | 1 to 5", "years = up to 1")):
        cases = ask("additive-reasons", store=False, domain=[domain], **fields).tables["cases"].frame
        assert cases["change"].to_list() == [change]


def test_the_whole_numbers_of_a_bin_end_before_its_upper_end(tmp_path: Path) -> None:
    answer = ask("additive-reasons", store=False, whole=["age"], domain=["age: 30 to 75"],
                 **files(tmp_path, rows="age,home\n59,own\n"))  # fmt: skip
    assert answer.tables["cases"].frame["change"].to_list() == ["home = rent"]
    with pytest.raises(AnswerableError, match=r"60 is outside the domain; give a whole number from 18 to 59"):
        ask("additive-reasons", store=False, whole=["age"], **files(tmp_path, rows="age,home\n60,own\n"))


def test_what_lies_within_rounding_of_the_line_is_marked(tmp_path: Path) -> None:
    """Decided in fractions of the doubles; added up in doubles, 0.7 + 0.1 is not 0.8, and 0.1 + 0.2 is not 0.3."""
    from fractions import Fraction

    for a, b, cutoff, marked in ((0.7, 0.1, 0.8, True), (0.1, 0.2, 0.3, True), (0.5, 0.3, 0.7, False)):
        card = f"feature,category,points\n(cutoff),,{cutoff}\na,x,{a}\na,y,0\nb,x,{b}\nb,y,0\n"
        case = ask("additive-reasons", store=False, **files(tmp_path, card, "a,b\nx,x\n")).tables["cases"].frame
        reached = Fraction(a) + Fraction(b) >= Fraction(cutoff)
        assert case["decision"].to_list() == ["reached" if reached else "below"]
        assert case["borderline"].to_list() == [marked]


def test_a_decision_that_nothing_flips_says_what_is_lacking(tmp_path: Path) -> None:
    card = "feature,category,points\n(cutoff),,9\na,x,1\na,y,4\nb,x,0\nb,y,3\n"
    case = ask("additive-reasons", store=False, **files(tmp_path, card, "a,b\nx,x\n")).tables["cases"].frame
    assert case.select("change", "change_size", "change_slack").row(0) == ("", 0, 9 - (4 + 3))


def test_bad_background_rows_are_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "past.csv").write_text("age,home\n40,boat\n")
    more = {"background": str(tmp_path / "past.csv")}
    refused(files(tmp_path) | more, "background, row 1, feature home: 'boat' is no category", tmp_path, capsys)


def test_the_same_content_gives_the_same_key(tmp_path: Path) -> None:
    def key(answer: Answer) -> str:
        return answer.provenance.key

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = ask("additive-reasons", store=False, **files(tmp_path / "a"))
    assert key(first) == key(ask("additive-reasons", store=False, **files(tmp_path / "b")))
    assert key(first) != key(ask("additive-reasons", store=False, **files(tmp_path / "b", rows=ROWS + "40,own\n")))
