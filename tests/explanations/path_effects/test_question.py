"""The question: what it says, what voids it, and what it refuses in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from answerable.answer import Answer
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.explanations.path_effects import BoostedTrees, PathSpecificEffects
from answerable.explanations.path_effects.question import PathEffects
from answerable.explanations.path_effects.replicas import make_study
from tests.oracles import path_effects as oracle

NAME = "path-effects"


def asked(table: Any, **fields: Any) -> Answer:
    given = {"treatment": "x", "outcome": "y", "mediators": ["w", "v"], "learner": "cells", **fields}
    return ask(NAME, store=False, seed=0, table=table, **given)


def study(n: int = 1200) -> pl.DataFrame:
    return make_study("randomised", n, np.random.default_rng(4)).table


@pytest.fixture(scope="module")
def berkeley() -> Answer:
    rows = [
        {"department": department, "sex": sex, "admission": word, "applicants": count}
        for department, counts in oracle.BERKELEY.items()
        for (sex, word), count in zip(
            [(s, w) for s in ("male", "female") for w in ("admitted", "rejected")], counts, strict=True
        )
    ]
    fields = {**PathEffects.smallest, "table": pl.DataFrame(rows)}
    return ask(NAME, store=False, seed=0, **fields)


def test_berkeley_is_the_textbook_story(berkeley: Answer) -> None:
    assert berkeley.summary == (
        "Admission differs by −14.2 points (female minus male): −21.3 through department, +7.10 directly."
    )
    assert berkeley.verdict is not None
    assert berkeley.verdict.word == "moves"
    assert berkeley.void == ""
    for name, (value, se) in oracle.BERKELEY_EFFECTS.items():
        metric = berkeley.metrics[name.replace(" ", "_")]
        assert metric.value == pytest.approx(100 * value, abs=1e-4)
        assert (metric.high - metric.low) / 2 == pytest.approx(196 * se, rel=2e-3)  # type: ignore[operator]
    assert berkeley.metrics["raw_difference"].value == pytest.approx(-14.1645, abs=1e-3)
    assert berkeley.metrics["rows"].value == 4526
    effects = berkeley.tables["effects"].frame
    assert effects["contrast"].unique().to_list() == ["female minus male"]
    assert effects["nested_regression"].to_list() == pytest.approx(effects["estimate"].to_list(), abs=1e-9)


def test_effects_add_up_and_a_numeric_outcome_has_its_unit() -> None:
    table = study().with_columns(y=pl.col("y") * 3.0 + pl.col("w"))
    answer = asked(table, unit="days", least=0.01)
    values = {name: answer.metrics[name].value for name in ("total", "direct", "through_w", "through_v")}
    assert values["total"] == pytest.approx(values["direct"] + values["through_w"] + values["through_v"])
    assert answer.metrics["total"].unit == "days"
    assert "days" in answer.summary


def test_a_path_within_what_matters_is_negligible() -> None:
    answer = asked(study(), least=95)
    assert answer.verdict is not None
    assert answer.verdict.word == "negligible"


def test_too_little_overlap_voids_the_answer() -> None:
    made = make_study("continuous", 600, np.random.default_rng(0))
    answer = asked(
        made.table, mediators=[f"{k}: {', '.join(c)}" for k, c in made.mediators.items()],
        covariates=made.covariates, learner="trees", trees=20,
    )  # fmt: skip
    assert answer.verdict is not None
    assert answer.verdict.word == "undecided"
    assert answer.void.endswith(".")
    assert "cannot be told from 600 rows" in answer.summary
    assert not any(sign.isdigit() for sign in answer.summary.replace("600", "").replace("(1 minus 0)", ""))


def test_blocks_may_be_columns_or_named() -> None:
    alone = asked(study(), mediators=["w", "v"]).metrics
    named = asked(study(), mediators=["state: w", "device: v"]).metrics
    assert alone["through_w"].value == named["through_state"].value
    together = asked(study(), mediators=["both: w, v"]).metrics
    assert together["through_both"].value == pytest.approx(alone["indirect"].value, abs=1e-9)


def with_column(**columns: Any) -> pl.DataFrame:
    return study(200).with_columns(**columns)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "missing column": ({"mediators": ["w", "vv"]}, "there is no column 'vv'"),
    "column twice": (
        {"covariates": ["w"]},
        "column w: it is named as mediators, w and as covariates; give each column",
    ),
    "outcome among mediators": ({"mediators": ["w", "y"]}, "column y: it is named as outcome and as mediators, y"),
    "block twice": ({"mediators": ["a: w", "a: v"]}, "mediators, entry 2: 'a' stands there twice"),
    "block without columns": ({"mediators": ["a:"]}, "mediators, entry 1: 'a:' names no column"),
    "one value alone": ({"reference": "0"}, "column x: its values are 0, 1; set reference and comparison"),
    "unknown value": ({"reference": "0", "comparison": "2"}, "comparison is '2', its values are 0, 1"),
    "the same value": ({"reference": "1", "comparison": "1"}, "reference and comparison are both '1'"),
    "unknown positive": ({"positive": "yes"}, "column y: positive is 'yes', its values are 0, 1"),
    "no cross-fitting, split": ({"nested": "split"}, "nested: without cross-fitting there are no parts"),
    "too many folds": ({"folds": 50, "learner": "linear"}, "for 50 folds; give at least 250"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_fields_are_one_line(case: str) -> None:
    fields, said = REFUSED[case]
    with pytest.raises(AnswerableError) as raised:
        asked(study(200), **fields)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


BROKEN: dict[str, tuple[pl.Expr, dict[str, Any], str]] = {
    "three values": (pl.Series("x", [0, 1, 2, 1] * 50).alias("x"), {}, "column x: its values are 0, 1, 2; set reference"),
    "no variation": (pl.lit(1).alias("w"), {}, "column w: every value is 1; leave the column out"),
    "constant outcome": (pl.lit(1).alias("y"), {}, "column y: every value is 1; choose another outcome"),
    "words as outcome": (pl.lit("a").alias("y"), {}, "column y: its values are words (a); set positive"),
    "mediator is the attribute": (pl.col("x").alias("w"), {}, "column w: it tells the two arms apart without error"),
    "attribute missing": (
        pl.Series("x", [None, 1, 0, 1] * 50).alias("x"), {}, "50 of 200 rows have no value; fill them in, or set drop_missing",
    ),
    "outcome missing": (
        pl.Series("y", [None, 1, 0, 1] * 50).alias("y"), {}, "column y: 50 of 200 rows have no value; fill them in",
    ),
    "mediator missing": (
        pl.Series("w", [None, 1.5, 0.5, 1.0] * 50).alias("w"), {"learner": "linear"},
        "learner linear: values are missing in w; choose the learner trees, which takes missing values",
    ),
    "infinite": (pl.Series("w", [float("inf"), 1.5, 0.5, 1.0] * 50).alias("w"), {}, "column w, row 1: the value is infinite"),
    "too large": (pl.col("w") * 1e300, {}, "column w, row"),
    "too small": (pl.col("y") * 1e-300, {}, "or nearly so; choose another outcome or unit"),
    "too many words": (
        pl.int_range(pl.len()).cast(pl.String).alias("w"), {"learner": "trees"},
        "column w: it has 200 different words; join them to at most 50 kinds",
    ),
    "one group": (pl.lit(1).alias("g"), {"groups": "g"}, "column g: all rows are of one group; give at least 5, or leave"),
    "few groups": ((pl.int_range(pl.len()) % 3).alias("g"), {"groups": "g"}, "column g: all rows are of 3 groups; give at least 5"),
    "no whole counts": (pl.lit(1.5).alias("n"), {"counts": "n"}, "column n, row 1: '1.5' is no count; give whole numbers"),
    "too many counts": (pl.lit(10**9).alias("n"), {"counts": "n"}, "column n: the counts add up to 2e+11; give"),
    "lists": (pl.concat_list("w", "v").alias("w"), {}, "column w: a column of List(Int64) is no number"),
    "cells of one": (
        pl.Series("w", np.random.default_rng(0).normal(size=200)), {}, "choose the learner trees or linear, or columns of",
    ),
    "dates": (pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 7, 18)).alias("w"), {}, "a column of Date is no number"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_bad_tables_are_one_line(case: str) -> None:
    column, fields, said = BROKEN[case]
    with pytest.raises(AnswerableError) as raised:
        asked(study(200).with_columns(column), **fields)
    assert said in str(raised.value)


HOSTILE = '<script>alert(1)</script>\n"\\x1b[31m😀'


def test_hostile_names_and_values_stay_text() -> None:
    table = study().rename({"w": HOSTILE, "y": "=cmd|'/C calc'!A0"})
    table = table.with_columns(x=pl.when(pl.col("x") == 1).then(pl.lit(HOSTILE)).otherwise(pl.lit("b" * 5000)))
    answer = asked(
        table, mediators=[HOSTILE, "v"], outcome="=cmd|'/C calc'!A0", reference="b" * 5000, comparison=HOSTILE,
    )  # fmt: skip
    assert "\n" not in answer.summary
    assert len(answer.summary) < 400
    assert all("<script" not in figure.svg() for figure in answer.figures.values())
    assert set(json.loads(answer.files()["answer.json"])["metrics"]) == set(answer.metrics)


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no blocks": ({"mediators": 5}, "mediators: these are no named blocks"),
    "no names": ({"mediators": ["w"]}, "mediators: these are no named blocks"),
    "learner": ({"learner": "forest"}, "learner: there is no learner 'forest'"),
    "clip": ({"clip": "a"}, "clip: it is 'a'; give a number above 0, at most 0.1"),
    "folds": ({"n_folds": 2.5}, "n_folds is 2.5"),
    "level": ({"level": 2}, "level is 2"),
    "seed": ({"random_state": "a"}, "random_state is 'a'"),
    "trees": ({"trees": 5}, "trees: it is a int; give BoostedTrees(...)"),
    "depth": ({"trees": BoostedTrees(depth=9)}, "trees, depth: it is 9; give a number from 1 to 6"),
    "half a depth": ({"trees": BoostedTrees(depth=2.5)}, "trees, depth is 2.5"),  # type: ignore[arg-type]
    "penalty": ({"l2": -1, "learner": "linear"}, "l2: it is -1; give a number from 0 to 1e+09"),
    "one learner": ({"propensity": LogisticRegression()}, "propensity, outcome: one learner of two is given"),
    "no learner": ({"propensity": 3, "outcome": 4}, "propensity: a int is no learner; give a scikit-learn one"),
    "wrong kind": (
        {"propensity": LogisticRegression(), "outcome": LogisticRegression()}, "outcome: LogisticRegression is of the wrong",
    ),
    "normalise": ({"self_normalize": "yes"}, "self_normalize: it is 'yes'; give True, False or 'fold'"),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_nothing_could_work_with_are_one_line(case: str) -> None:
    fields, said = SETTINGS[case]
    with pytest.raises(AnswerableError) as raised:
        PathSpecificEffects(**{"mediators": {"W": ["w"]}, **fields}).fit(study(200), treatment="x", outcome="y")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_learners_of_scikit_learn_and_other_queries() -> None:
    own = PathSpecificEffects({"W": "w", "V": "v"}, propensity=LogisticRegression(), outcome=LinearRegression())
    found = own.fit(study(2000), treatment="x", outcome="y")
    linear = PathSpecificEffects({"W": "w", "V": "v"}, learner="linear").fit(study(2000), treatment="x", outcome="y")
    for name in ("total", "through W", "through V"):
        assert found[name].interval.value == pytest.approx(linear[name].interval.value, abs=0.01)
    assert found.theta(W=1, V=1, Y=1).interval.value == pytest.approx(0.7, abs=0.06)
    assert found.theta(W=0, V=1, Y=0).interval.value == pytest.approx(0.45, abs=0.2)
    assert found.ignoring("W")["total"].interval.value == pytest.approx(found["total"].interval.value, abs=0.01)
    with pytest.raises(AnswerableError, match="theta: levels are"):
        found.theta(W=1)
    with pytest.raises(AnswerableError, match="there is no effect 'through Q'"):
        found["through Q"]


def test_more_workers_and_splits_change_no_number_but_the_interval() -> None:
    one = PathSpecificEffects({"W": "w", "V": "v"}, workers=1).fit(study(), treatment="x", outcome="y").summary()
    two = PathSpecificEffects({"W": "w", "V": "v"}, workers=2).fit(study(), treatment="x", outcome="y").summary()
    assert one.equals(two)
    split = PathSpecificEffects({"W": "w", "V": "v"}, splits=3).fit(study(), treatment="x", outcome="y")
    assert "median of 3 splits" in split["total"].interval.method
    assert split["direct"].interval.value == pytest.approx(one["estimate"][1], abs=0.03)


def test_missing_rows_may_be_left_out_and_are_counted() -> None:
    broken = study().with_columns(y=pl.when(pl.int_range(pl.len()) < 30).then(None).otherwise(pl.col("y")))
    answer = asked(broken, drop_missing=True)
    assert answer.metrics["rows"].value == 1170
    assert "30 rows were left out: y missing." in answer.limits
    assert any("are a selection" in limit for limit in answer.limits)


def test_repeated_persons_without_groups_are_told() -> None:
    table = study().with_columns(patient_id=pl.int_range(pl.len()) // 2)
    assert any("set groups = patient_id" in limit for limit in asked(table).limits)
    grouped = asked(table, groups="patient_id")
    assert not any("set groups" in limit for limit in grouped.limits)
    assert "600 clusters" in grouped.metrics["total"].method


def test_it_is_refused_in_one_line_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study(200).write_csv("study.csv")
    words = ["ask", NAME, "--table", "study.csv", "--treatment", "x", "--outcome", "y", "--mediators", "w"]
    assert run([*words, "--covariates", "w", "--seed", "0", "--save", "answer"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].endswith(
        "study.csv, column w: it is named as mediators, w and as covariates; give each column one part"
    )
    assert not Path("answer").exists()
    assert run([*words, "--mediators", "v", "--seed", "0", "--learner", "linear", "--save", "answer"]) == 0
    assert json.loads((tmp_path / "answer" / "answer.json").read_text())["question"] == NAME
