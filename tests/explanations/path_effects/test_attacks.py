"""What somebody who did not write it tried, to make it wrong, unclear or slow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer
from answerable.asking import ask
from answerable.errors import AnswerableError
from answerable.explanations.path_effects import PathSpecificEffects, sensitivity
from answerable.explanations.path_effects.overlap import rows_behind
from answerable.explanations.path_effects.replicas import make_study
from reproductions import kept


def study(n: int = 600) -> pl.DataFrame:
    return make_study("randomised", n, np.random.default_rng(4)).table


def asked(table: Any, **fields: Any) -> Answer:
    given = {"treatment": "x", "outcome": "y", "mediators": ["w", "v"], "learner": "cells", **fields}
    return ask("path-effects", store=False, seed=0, table=table, **given)


OUT_OF_RANGE: dict[str, tuple[pl.Expr, str]] = {
    "too large": (pl.col("y") * 1e60, "column y: a value is 1e+60 in size; choose another unit"),
    "all but constant": (pl.col("y") + 1e15, "column y: values differ by 1, at a size of 1e+15; take away what"),
    "tiny": (pl.col("y") * 1e-40, "column y: every value is 0 or nearly so"),
    "the attribute itself": (
        3.0 * pl.col("x"),
        "column y: it has one value in each arm, so nothing is left to explain",
    ),
}


@pytest.mark.parametrize("learner", ["trees", "linear", "cells"])
@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_an_outcome_that_no_arithmetic_holds_is_refused(case: str, learner: str) -> None:
    # 1e60 made every score of trees NaN, 1e15 + 0 or 1 moved effects by a third without a word.
    column, said = OUT_OF_RANGE[case]
    table = study(200).with_columns(y=column)
    table = table.with_columns(y=pl.when(pl.int_range(200) == 0).then(table["y"].min()).otherwise(pl.col("y")))
    if case == "the attribute itself":
        table = study(200).with_columns(y=column)
    with pytest.raises(AnswerableError) as raised:
        asked(table, learner=learner)
    assert said in str(raised.value)


@pytest.mark.parametrize("learner", ["trees", "linear", "cells"])
@pytest.mark.parametrize(("factor", "offset"), [(1e-28, 0.0), (1e28, 0.0), (1.0, 1e6)])
def test_the_unit_of_the_outcome_changes_nothing_but_the_unit(learner: Any, factor: float, offset: float) -> None:
    def fitted(table: pl.DataFrame) -> list[float]:
        found = PathSpecificEffects({"W": "w", "V": "v"}, learner=learner, self_normalize=True)
        effects = found.fit(table, treatment="x", outcome="y").effects
        return [number for one in effects for number in (one.interval.value, one.se)]

    # A numeric outcome, so that predictions are not cut to between 0 and 1.
    plain = study(400).with_columns(y=pl.col("y") + 0.5 * pl.col("w"))
    moved = plain.with_columns(y=pl.col("y") * factor + offset)
    assert np.array(fitted(moved)) / factor == pytest.approx(np.array(fitted(plain)), rel=1e-5, abs=1e-7)


def test_small_and_large_effects_are_written_with_their_digits() -> None:
    tiny = asked(study().with_columns(y=pl.col("y") * 1e-12), unit="kg")
    assert "differs by +4.6e−13 kg" in tiny.summary
    assert "+4.6e−13 kg" in " ".join(tiny.figures["effects"].wide["title"]["text"])
    assert "differs by +4.6e+21 kg" in asked(study().with_columns(y=pl.col("y") * 1e22), unit="kg").summary


def test_what_rounding_alone_makes_of_an_effect_is_nothing() -> None:
    # The outcome is exactly linear in covariate and mediator: no direct effect, and none through V but rounding.
    rng = np.random.default_rng(0)
    z, x = rng.standard_normal(500), rng.integers(0, 2, 500)
    w, v = 0.4 * x + rng.standard_normal(500), 0.4 * x + rng.standard_normal(500)
    table = pl.DataFrame({"z": z, "x": x, "w": w, "v": v, "y": z + w})
    answer = asked(table, covariates=["z"], learner="linear")
    assert answer.verdict is not None
    assert answer.verdict.word == "moves"
    assert "through w" in answer.verdict.reason
    assert "through v" not in answer.verdict.reason
    assert "directly" not in answer.verdict.reason
    effects = answer.tables["effects"].frame.rows_by_key("effect", named=True, unique=True)
    assert effects["through v"]["estimate"] == 0
    assert effects["through v"]["p_value"] is None or np.isnan(effects["through v"]["p_value"])
    # The band of the one path that is told is its own interval, and no wider.
    assert effects["through w"]["band_low"] == pytest.approx(effects["through w"]["low"], rel=1e-6)


def test_few_groups_void_the_answer_however_many_rows_they_have() -> None:
    table = study(1200).with_columns(g=pl.int_range(1200) % 8)
    answer = asked(table, groups="g")
    assert answer.void.startswith("The variance of the effect ")
    assert "groups (at least 20 are needed)" in answer.void
    behind = answer.metrics["rows_behind"]
    assert behind.unit == "groups"
    assert behind.value <= 8  # type: ignore[operator]


def test_rows_behind_counts_groups() -> None:
    psi = np.repeat(np.tile([-1.0, 1.0], 15), 4)
    assert rows_behind(psi) == pytest.approx(120)
    assert rows_behind(psi, np.repeat(np.arange(30), 4)) == pytest.approx(30)


def test_the_error_of_a_nested_mean_is_that_of_its_interval() -> None:
    table = study(1200).with_columns(g=pl.int_range(1200) // 4)
    doubled = pl.concat([table, table])
    own = PathSpecificEffects({"W": "w", "V": "v"}, learner="cells")
    alone = own.fit(doubled, treatment="x", outcome="y").theta(W=1, V=0, Y=1)
    grouped = own.fit(doubled, treatment="x", outcome="y", groups="g").theta(W=1, V=0, Y=1)
    assert grouped.interval.value == alone.interval.value
    # Rows twice in one group tell nothing new.
    once = own.fit(table, treatment="x", outcome="y", groups="g").theta(W=1, V=0, Y=1)
    assert grouped.se == pytest.approx(once.se, rel=1e-9)
    assert (grouped.interval.high - grouped.interval.value) / grouped.se == pytest.approx(1.968, abs=2e-3)


def test_names_of_groups_stand_short_and_plain_in_what_voids() -> None:
    long, odd = "b" * 5000, "<b>\n\x1b[31m"
    table = study().with_columns(x=pl.when(pl.int_range(600) < 30).then(pl.lit(long)).otherwise(pl.lit(odd)))
    answer = asked(table, reference=long, comparison=odd)
    assert answer.verdict is not None
    for said in (answer.void, answer.verdict.reason, *answer.limits):
        assert len(said) < 400
        assert said.isprintable()
    bare = asked(study().with_columns(x=(pl.int_range(600) < 30).cast(pl.Int8)))
    assert bare.void.startswith("Rows of 1, with w and v as of 0, count as ")


def test_a_high_level_is_not_rounded_to_certainty() -> None:
    answer = asked(study(2000), level=0.999)
    assert answer.verdict is not None
    assert "at 99.9 % for all paths at once" in answer.verdict.reason


def test_columns_of_unequal_length_are_one_line() -> None:
    with pytest.raises(AnswerableError, match=r"table: these columns make no table .* give columns of equal length"):
        asked({"x": [0, 1], "y": [1], "w": [1, 2], "v": [1, 2]})


def test_parts_of_their_own_are_told_of() -> None:
    split = asked(study(2000), learner="linear", nested="split")
    assert any(limit.startswith("Each nested regression is fitted on as few as ") for limit in split.limits)
    assert not any("nested regression" in limit for limit in asked(study(2000), learner="linear").limits)


def test_trees_on_many_columns_and_few_rows_say_what_intervals_leave_out() -> None:
    noise = np.random.default_rng(0).standard_normal((600, 8))
    wide = study().with_columns(**{f"z{j}": noise[:, j] for j in range(8)})
    fields: dict[str, Any] = {"learner": "trees", "trees": 5, "covariates": [f"z{j}" for j in range(8)]}
    said = "for 10 columns leave trees an error that intervals take for small"
    assert any(said in limit and limit.endswith("takes more of it in.") for limit in asked(wide, **fields).limits)
    split = asked(wide, **fields, nested="split", splits=2)
    assert "Each effect is the median of 2 splits; paths add up to the total nearly." in split.limits
    assert any(said in limit and limit.endswith("than 95 %.") for limit in split.limits)
    assert not any("leave trees" in limit for limit in asked(study(), learner="trees", trees=5).limits)


def test_the_code_on_the_page_runs_as_it_stands() -> None:
    page = (Path(__file__).parents[3] / "docs" / "questions" / "path-effects.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(compile(blocks[0], "path-effects.md", "exec"), names)
    assert names["found"]["total"].interval.low < names["found"]["total"].interval.high
    assert names["cohort"].left_out


def test_made_up_studies_of_a_reproduction_are_kept_and_a_torn_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERABLE_CACHE", str(tmp_path))
    made: list[int] = []

    def one(k: int) -> dict[str, int]:
        made.append(k)
        return {"square": k * k}

    module = "answerable.explanations.path_effects.solver"
    assert [study["square"] for study in kept("name", "row", module, 3, one)] == [0, 1, 4]
    (file,) = tmp_path.rglob("row.jsonl")
    file.write_text(file.read_text(encoding="utf-8")[:-4], encoding="utf-8")  # as a kill would leave it
    assert [study["square"] for study in kept("name", "row", module, 4, one)] == [0, 1, 4, 9]
    assert made == [0, 1, 2, 2, 3]
    # Other code keeps its own.
    assert [study["square"] for study in kept("name", "row", f"{module[:-6]}linear", 1, one)] == [0]
    assert made == [0, 1, 2, 2, 3, 0]


@pytest.mark.parametrize("clustered", [False, True])
def test_resampling_kinds_of_rows_is_resampling_rows(clustered: bool) -> None:
    rng = np.random.default_rng(1)
    n = 400
    x, z = rng.integers(0, 2, n), rng.integers(0, 2, n)
    w = (rng.random(n) < 0.3 + 0.3 * x).astype(int)
    v = (rng.random(n) < 0.2 + 0.3 * x + 0.2 * w).astype(int)
    y = np.round(rng.random(n) + 0.3 * v, 1)
    clusters = rng.integers(0, 60, n) if clustered else None
    cells = sensitivity.Cells(x, y, z, w, v)
    kinds, _, counts = sensitivity._kinds(cells, clusters)
    assert len(counts) < n
    told, again = sensitivity.ends_of_cells(cells), sensitivity.ends_of_cells(kinds, counts)
    assert np.allclose([*told[0], told[1]], [*again[0], again[1]], atol=1e-12)
    by_kind = sensitivity.resampled_ends(cells, np.random.default_rng(2), clusters, 0.95)
    units = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    by_row = []
    for _ in range(500):
        drawn = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units).astype(float)
        ends, mean = sensitivity.ends_of_cells(cells, drawn[units])
        by_row.append((mean - ends.high, mean - ends.low))
    low, high = np.array(by_row).T
    spread = max(low.std(), high.std())
    assert by_kind.low == pytest.approx(np.quantile(low, 0.025), abs=0.5 * spread)
    assert by_kind.high == pytest.approx(np.quantile(high, 0.975), abs=0.5 * spread)


def test_what_is_given_is_said_as_it_is() -> None:
    rng = np.random.default_rng(0)
    n = 400
    x, m = rng.integers(0, 2, n), rng.integers(0, 3, n)
    table = pl.DataFrame({"x": x, "m": m, "y": rng.random(n)})
    answer = asked(table, mediators=["m"])
    assert answer.tables["propensities"].frame["given"].unique(maintain_order=True).to_list() == [
        "nothing",
        "mediators",
    ]
    spec = answer.figures["effects"].wide
    titles = [layer["encoding"]["x"]["title"] for layer in spec["layer"] if "title" in layer["encoding"].get("x", {})]
    assert titles[0] == "Effect on y, added up [units of y]"
    assert answer.verdict is not None
    assert "-" not in answer.verdict.reason
