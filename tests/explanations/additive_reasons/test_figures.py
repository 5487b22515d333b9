"""Every picture is valid, says its finding and its axes, fits its width, and takes any name as plain data."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert

from answerable import theme
from answerable.explanations.additive_reasons import figures
from answerable.explanations.additive_reasons.hardness import complexity_map
from answerable.subjects.additive_model import AdditiveModel, Pair, Shape

HOSTILE = ["<script>", "datum.x", "\x1b[31m", "\u202eabc", "{{7*7}}", "\n", " ", "", "a" * 5000, "=1+1"]
CASE = {"row": 3, "decision": "below", "reason_size": 2, "change_size": 1, "score": -1.5}


def features(n: int, names: list[str] | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(n)
    excess = np.sort(rng.exponential(size=n))[::-1]
    return pl.DataFrame(
        {
            "feature": [f"{k} {name}" for k, name in enumerate(names or [f"feature {k}" for k in range(n)])],
            "value": ["7"] * n,
            "excess": excess,
            "in_reason": [k < 2 for k in range(n)],
            "in_change": [k < 1 for k in range(n)],
            "shapley": rng.normal(size=n),
            "error": [0.1] * n,
        }
    )


def scores() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame({"nothing": rng.normal(size=500), "reason": rng.normal(size=500) / 2 - 1.5})


KINDS = complexity_map(
    AdditiveModel((Shape.table("x", [0, 1, 2], [0.0, 1.0], low=0, high=2),), np.zeros(1), task="binary")
)
DRAWN: dict[str, Callable[[pl.DataFrame, int], alt.LayerChart]] = {
    "margin": lambda t, width: figures.margin_cascade(t, width, case=CASE, margin=0.7),
    "shapley": lambda t, width: figures.shapley_bars(t, width, output="class", row=3),
    "scores": lambda _, width: figures.score_distribution(scores(), width, case=CASE),
    "complexity": lambda _, width: figures.complexity_map(KINDS, width, source="scorecard", exact=1, queries=3),
}


def specification(name: str, given: pl.DataFrame, width: int) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=False):
        return DRAWN[name](given, width).to_dict()


def drawn(spec: dict[str, Any]) -> str:
    spec.pop("config", None)
    return vl_convert.vegalite_to_svg(spec, config=theme.config())


def axis_titles(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [v["title"] for k, v in node.items() if k in ("x", "y") and isinstance(v, dict) and v.get("title")]
        return own + [title for value in node.values() for title in axis_titles(value)]
    return [title for value in node for title in axis_titles(value)] if isinstance(node, list) else []


@pytest.mark.parametrize("width", [736, 350])
@pytest.mark.parametrize(  # two of them do not depend on the number of features
    ("name", "n"), [*itertools.product(("margin", "shapley"), (1, 2, 9, 60)), ("scores", 1), ("complexity", 1)]
)
def test_it_says_what_it_shows_and_fits(name: str, n: int, width: int) -> None:
    spec = specification(name, features(n), width)
    assert all(spec["title"]["text"]) and all(spec["title"]["subtitle"])
    assert 5 <= len(spec["description"].split()) <= 40
    assert len(set(axis_titles(spec))) >= 2
    svg = drawn(spec)
    size = re.search(r'<svg[^>]* width="([\d.]+)"', svg)
    assert size is not None
    assert float(size.group(1)) <= width


@pytest.mark.parametrize("name", ["margin", "shapley"])
def test_hostile_names_are_only_data(name: str) -> None:
    spec = specification(name, features(len(HOSTILE), HOSTILE), 350)
    svg = drawn(spec)
    assert "<script" not in svg and "\x1b" not in svg and "\u202e" not in svg and "a" * 60 not in svg
    assert not re.search(r'"(expr|signal|href|labelExpr|field)": "[^"]*(script|datum\.x)', json.dumps(spec))


def test_the_titles_are_the_findings() -> None:
    def title(name: str, given: pl.DataFrame) -> str:
        return " ".join(specification(name, given, 736)["title"]["text"])

    given = features(4)
    assert title("margin", given) == "Two features settle the decision “below” of row 3; changing one feature flips it"
    top = given.sort(pl.col("shapley").abs(), descending=True).row(0, named=True)
    direction = "up" if top["shapley"] > 0 else "down"
    assert title("shapley", given) == (
        f"{top['feature']} moved the class of row 3 most: {direction} by {abs(top['shapley']):.3f}"
    )
    assert title("complexity", given) == "1 of 3 questions to this scorecard are answered exactly, whatever the row"
    kept = np.mean(scores()["reason"].to_numpy() < 0)
    assert title("scores", given).startswith(f"With two features known, {kept:.0%} of completions keep the decision")


def test_the_map_marks_the_line_of_the_model() -> None:
    marked = KINDS.filter(pl.col("here"))
    assert marked["kind"].unique().to_list() == ["Any number, steps"]
    assert marked["hardness"].to_list() == ["P", "P", "coNP", "#P", "P"]
    words = " ".join(specification("complexity", features(1), 736)["title"]["subtitle"])
    assert words.endswith("Bold: the line of this model (any number, steps).")
    paired = complexity_map(
        AdditiveModel(
            (Shape.categories("x", ["u", "v"], [0.0, 1.0]), Shape.categories("y", ["u", "v"], [0.0, 1.0])), np.zeros(1),
            (Pair(0, 1, np.array([-0.5, 0.5, 1.5]), np.array([-0.5, 0.5, 1.5]), np.zeros((3, 3, 1))),), task="binary",
        )
    )  # fmt: skip
    assert not paired["here"].any()
    outside = figures.complexity_map(paired, 350, source="EBM", exact=1, queries=8).to_dict()
    assert "stands outside" in " ".join(outside["title"]["subtitle"])


def test_the_cascade_adds_up_and_marks_the_reason() -> None:
    given = features(5)
    spec = specification("margin", given, 736)
    values = [layer["data"]["values"] for layer in spec["layer"] if "data" in layer]
    bars = {row["label"]: row for rows in values for row in rows if "part" in row}.values()
    assert sum(row["to"] - row["from"] for row in bars) == pytest.approx(given["excess"].sum())
    assert sorted(row["part"] for row in bars) == ["reason"] * 2 + ["rest"] * 3
