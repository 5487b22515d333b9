"""Input that used to be answered wrongly or with a traceback: one line now."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from answerable import ask
from answerable.cli import run
from answerable.errors import BadInput, UnknownName
from answerable.explanations.activation_patterns import (
    NAMEnsemble,
    PatternGAM,
    PatternQLR,
    activation_pattern,
    fni_emda,
    input_importance,
    term_scores,
)
from answerable.explanations.activation_patterns.transport import least_transport

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(float)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"link": "probit"}, "link: it is 'probit'; choose logit or identity"),
        ({"scale": "odds"}, "scale: it is 'odds'; choose logit or probability"),
        ({"ridge": -1.0}, "ridge: it is -1"),
        ({"ridge": float("nan")}, "ridge: it is nan"),
        ({"level": 2.0}, "level: it is 2"),
        ({"margin": -1.0}, "margin: it is -1"),
        ({"least_share": 3.0}, "least_share: it is 3"),
    ],
)
def test_settings_out_of_bounds(settings: dict, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        term_scores(X, Y, **settings)


@pytest.mark.parametrize(
    ("z", "y", "said"),
    [
        (X, Y[:-1], r"the terms have shape \(200, 3\), the target \(199,\)"),
        (X[:, 0], Y, r"the terms have shape \(200,\)"),
        (X, 2 * Y, "target: it holds 2; give 0 and 1"),
        (X, np.ones(200), "same class; both classes are needed"),
        (np.where(X > 2, np.nan, X), Y, r"term column \d, row \d+: it is missing or infinite; drop the row"),
        (X * 1e200, Y, "term column 1: it lies between .*; give it in a unit"),
        (X * 1e-170, Y, "term column 1: it lies between .*; give it in a unit"),
    ],
)
def test_terms_and_targets_that_do_not_fit(z: np.ndarray, y: np.ndarray, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        term_scores(z, y)


def test_classes_that_are_separated_but_for_ties_are_not_called_dependent() -> None:
    a = RNG.integers(0, 2, (400, 2))
    y = np.where(a.sum(axis=1) == 2, 1, RNG.integers(0, 2, 400))
    with pytest.raises(BadInput, match="together the terms separate the classes"):
        PatternGAM().fit(np.column_stack([a, a[:, 0] * a[:, 1]]), y)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_learners": 0}, "n_learners: it is 0"),
        ({"epochs": 0}, "epochs: it is 0"),
        ({"batch": 0}, "batch: it is 0"),
        ({"hidden": (0,)}, "hidden: "),
        ({"dropout": 1.0}, "dropout: it is 1.0"),
        ({"validation": 1.0}, "validation: it is 1.0"),
        ({"learning_rate": float("nan")}, "learning_rate: it is nan"),
        ({"pairs": [(0, 7)]}, r"pairs: one of them is \(0, 7\)"),
        ({"pairs": [(0,)]}, r"pairs: one of them is \(0,\)"),
    ],
)
def test_networks_are_refused_before_compiled_code_reads_beyond_its_arrays(settings: dict, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        NAMEnsemble(**settings).fit(X, Y)


def test_maps_and_numbers() -> None:
    truth = np.eye(4, dtype=bool)
    assert fni_emda(np.full((4, 4), 1e308), truth) == pytest.approx(fni_emda(np.ones((4, 4)), truth))
    with pytest.raises(BadInput, match="importance: it holds complex128, not numbers"):
        fni_emda(np.ones((4, 4)) * 1j, truth)
    with pytest.raises(BadInput, match="rule: it is 'most'; choose auto, max or stronger"):
        input_importance(np.ones(2), [(0,), (1,)], 2, rule="most")
    with pytest.raises(BadInput, match="beyond the 2; count from 0"):
        input_importance(np.ones(2), [(0,), (9,)], 2, rule="max")
    with pytest.raises(BadInput, match="7 outputs for 200 rows"):
        activation_pattern(X, np.arange(7.0))
    with pytest.raises(BadInput, match="mass is to be moved to 1001 places; give a coarser map"):
        least_transport(np.ones(2) / 2, np.ones((2, 1001)), np.ones(1001) / 1001)


def test_a_dataframe_in_a_quadratic_model_gives_no_warning() -> None:
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PatternQLR().fit(frame, Y)
    assert "a × b" in found.term_names_


FRAME = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y.astype(int)})


@pytest.mark.parametrize(
    ("table", "fields", "said"),
    [
        (FRAME.select("y"), {}, "no column is left beside the target"),
        (FRAME.with_columns(y=pl.Series(["u", "v"] * 100)), {"link": "identity"}, "column y: its entries are no numbers"),
        (FRAME.with_columns(k=pl.Series([[1, 2]] * 200)), {}, "column k: its entries are neither numbers nor words"),
        (FRAME.with_columns(a=pl.col("a") * 1e300), {}, "column a: it lies between -.*e\\+300 and .*; give it in a unit"),
        (FRAME.with_columns(a=pl.Series(["1.5", "n/a"] + ["2", "3"] * 99)), {},
         "column a, row 2: 'n/a' is no number, though most entries are; mend or drop the row"),
        (FRAME.with_columns(a=pl.duration(days=pl.Series(range(200)))), {}, "column a: its entries are neither numbers nor"),
        (FRAME.with_columns(a=pl.col("a") * 1e-310), {}, "column a: it lies between -.*e-310 and .*; give it in a unit"),
        (FRAME.rename({"a": "p", "b": "q"}).with_columns(pl.Series("p × q", X[:, 2])), {"curves": "quadratic"},
         "term p × q: two terms are called so; rename a feature"),
        (FRAME.with_columns(y=pl.Series([1] + [0] * 199)), {}, "fewer than two rows have one of the labels"),
        (FRAME.with_columns(y=pl.Series([float("nan")] + [0.0, 1.0] * 99 + [1.0])), {}, "row 1: the target is missing"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_judged(table: pl.DataFrame, fields: dict, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        ask("activation-patterns", seed=0, store=False, table=table, target="y", resamples=100, **fields)


@pytest.mark.parametrize("curves", ["linear", "splines"])
def test_a_table_of_one_feature(curves: str) -> None:
    """The slope of the only term is 1 whatever rows are drawn: its interval is that point, not all numbers."""
    answer = ask(
        "activation-patterns", seed=0, store=False, table=FRAME.drop("b"), target="y", resamples=100, curves=curves
    )
    row = answer.tables["terms"].frame.row(0, named=True)
    assert row["verdict"] == "informative and used"
    assert (row["slope_low"], row["slope_high"]) == pytest.approx((1, 1))


@pytest.mark.parametrize(("curves", "terms"), [("splines", "30,000"), ("quadratic", "12,507,500")])
def test_thousands_of_columns_are_refused_before_memory_is_gone(curves: str, terms: str) -> None:
    wide = pl.DataFrame(np.random.default_rng(0).normal(size=(200, 5000))).with_columns(y=pl.Series(Y.astype(int)))
    with pytest.raises(
        BadInput, match=f"refit: 5,000 .* make {terms} terms, and at most 6,000 .*; give fewer features"
    ):
        ask("activation-patterns", seed=0, store=False, table=wide, target="y", curves=curves, ridge=1.0)


def test_a_picture_of_a_constant_column_is_plain_json() -> None:
    """Its slope has no ends, its numeric target no discriminability; JSON has neither infinities nor NaN."""
    with pytest.warns(UserWarning, match="constant"):
        found = PatternGAM(link="identity").fit(np.column_stack([X, np.full(200, 7.0)]), X[:, 0] + Y)
    for picture in ("curves", "deviations", "slopes"):
        json.dumps(found.plot(picture).to_dict(), allow_nan=False)


@pytest.mark.parametrize("unit", [1e-90, 1e-70, 1e70, 1e90])
def test_a_unit_changes_no_verdict(unit: float) -> None:
    """Fourth powers of 1e-90 are 0, of 1e90 infinite."""
    plain, scaled = (term_scores(X * factor, Y) for factor in (1.0, unit))
    assert scaled.verdict == plain.verdict
    assert scaled.p_informative == pytest.approx(plain.p_informative, rel=1e-8)
    assert (scaled.slope_low, scaled.slope_high) == (pytest.approx(plain.slope_low), pytest.approx(plain.slope_high))


def test_a_numeric_target_is_saved(tmp_path: Path) -> None:
    """Its terms have no discriminability, and a picture's data cannot hold a missing number."""
    FRAME.with_columns(y=pl.col("a") - pl.Series(X[:, 2])).write_csv(tmp_path / "t.csv")
    words = ["--table", str(tmp_path / "t.csv"), "--target", "y", "--link", "identity", "--resamples", "100"]
    places = ["--store", str(tmp_path / "store"), "--save", str(tmp_path / "saved")]
    assert run(["ask", "activation-patterns", "--seed", "0", *words, *places]) == 0
    assert (tmp_path / "saved" / "answer.json").exists()


def test_columns_in_another_order_than_the_model_s() -> None:
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).to_pandas()
    model = LogisticRegression().fit(frame, Y)
    plain, turned = (PatternGAM(model).fit(frame[columns], Y) for columns in (["a", "b", "c"], ["c", "a", "b"]))
    assert turned.term_names_ == plain.term_names_ == ["a", "b", "c"]
    assert turned.scores_.product == pytest.approx(plain.scores_.product)
    with pytest.raises(UnknownName, match="there is no column 'c'"):
        PatternGAM(model).fit(frame.rename(columns={"c": "z"}), Y)


def test_a_word_that_only_one_half_of_the_rows_holds() -> None:
    words = FRAME.with_columns(k=pl.Series([f"w{i}" for i in range(200)]), fixed=pl.lit(1.0))
    answer = ask("activation-patterns", seed=0, store=False, table=words, target="y", resamples=100)
    points = answer.tables["curves"].frame.filter(pl.col("feature") == "k")
    names = sorted(f"w{i}" for i in range(200))
    assert points["word"].to_list() == [names[round(code) - 1] for code in points["x"]] and points.height == 100
    assert "svg" in answer.figures["deviations"].svg()  # the fixed column has a curve of no spread
