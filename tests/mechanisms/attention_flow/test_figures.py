"""Every picture is valid, says its finding and its axes, fits its width, and takes any token as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert

from answerable import theme
from answerable.mechanisms.attention_flow import attention_flow, figures
from tests.oracles.attention_flow import random_patterns

HOSTILE = [
    "<script>",
    "datum.x",
    "\x1b[31m",
    "\u202eabc",
    "{{7*7}}",
    "\n",
    " ",
    "",
    "a" * 5000,
    "=1+1",
    "\ud800",
    "“q”",
]


def tables(n: int, seed: int = 3) -> dict[str, object]:
    found = attention_flow(random_patterns(np.random.default_rng(seed), 5, n, True, power=3.0))
    tokens = pl.DataFrame(
        {
            "position": np.arange(n),
            "token": [f" word{i}" for i in range(n)],
            **{name: getattr(found, name) for name in ("flow", "rollout", "null", "excess", "cut_layer")},
            "cut_kind": [str(kind) for kind in found.cut_kind],
        }
    )
    sink, layer = np.nonzero(found.cut_capacity > 0)
    cuts = pl.DataFrame({"position": sink, "layer": layer + 1, "capacity": found.cut_capacity[sink, layer]})
    focus = n // 2
    arcs = [
        (int(p) + 1, int(i), int(k), float(found.arcs(focus)[p, i, k]))
        for p, i, k in np.argwhere(found.arcs(focus) > 0)
    ]
    paths = pl.DataFrame(arcs, schema=["layer", "from_position", "to_position", "flow"], orient="row")
    return {"tokens": tokens, "cuts": cuts, "paths": paths, "source": n - 1, "sink": focus}


DRAWN: dict[str, Callable[[dict, int], alt.LayerChart]] = {
    "flow": lambda t, width: figures.flow_bars(t["tokens"], width, source=t["source"]),
    "cuts": lambda t, width: figures.cut_map(t["tokens"], t["cuts"], width, n_layers=5),
    "paths": lambda t, width: figures.path_picture(t["paths"], t["tokens"], width, source=t["source"], sink=t["sink"]),
    "rollout": lambda t, width: figures.flow_against_rollout(t["tokens"], width),
    "text": lambda t, width: figures.coloured_text(t["tokens"], width, source=t["source"]),
}


def specification(name: str, given: dict, width: int) -> dict:
    with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=False):
        return DRAWN[name](given, width).to_dict()  # checked against the schema of Vega-Lite


def axes(node: object) -> Iterator[dict]:
    """Encodings of x and y that are drawn with an axis."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("x", "y") and isinstance(value, dict) and "axis" in value and value["axis"] is not None:
                yield value
            yield from axes(value)
    elif isinstance(node, list):
        for value in node:
            yield from axes(value)


def drawn(spec: dict) -> str:
    spec.pop("config", None)
    return vl_convert.vegalite_to_svg(spec, config=theme.config())


@pytest.mark.parametrize("width", [736, 350])
@pytest.mark.parametrize("n", [1, 2, 14, 90])
@pytest.mark.parametrize("name", DRAWN)
def test_it_says_what_it_shows_and_fits(name: str, n: int, width: int) -> None:
    spec = specification(name, tables(n), width)
    assert all(spec["title"]["text"]) and all(spec["title"]["subtitle"])
    assert 5 <= len(spec["description"].split()) <= 40
    assert all(axis["title"] for axis in axes(spec))
    svg = drawn(spec)
    assert float(re.search(r'<svg[^>]* width="([\d.]+)"', svg).group(1)) <= width
    drawn_rows = [len(part["data"]["values"]) for part in (spec, *spec["layer"]) if "data" in part]
    assert 1 <= max(drawn_rows) <= 500


@pytest.mark.parametrize("name", DRAWN)
def test_hostile_tokens_are_only_data(name: str) -> None:
    given = tables(12)
    given["tokens"] = given["tokens"].with_columns(
        pl.Series("token", [token.encode("utf-8", "replace").decode() for token in HOSTILE])
    )
    spec = specification(name, given, 350)
    svg = drawn(spec)
    assert "<script" not in svg and "\x1b" not in svg and "\u202e" not in svg and "a" * 40 not in svg
    assert not re.search(r'"(expr|signal|href|labelExpr|field)": "[^"]*(script|datum\.x)', json.dumps(spec))


def test_the_title_is_the_finding() -> None:
    rows = pl.DataFrame(
        {
            "position": [0, 1, 2],
            "token": ["The", " cat", " sat"],
            "flow": [1.0, 0.75, 0.5],
            "null": [1.0, 0.5, 0.6],
            "rollout": [0.99997, 1e-5, 2e-5],
            "excess": [0.0, 0.25, -0.1],
            "cut_layer": [3, 1, 1],
            "cut_kind": ["source", "sink", "sink"],
        }
    )
    cuts = pl.DataFrame({"position": [0, 1, 2], "layer": [3, 1, 1], "capacity": [1.0, 0.75, 0.5]})

    def title(chart: alt.LayerChart) -> str:
        return " ".join(chart.to_dict()["title"]["text"])

    expected = "“cat” has a flow of 0.750, 0.250 above uniform attention, the most of 3 tokens"
    assert title(figures.flow_bars(rows, 736, source=2)) == "Flow runs from 0.500 (“sat”) to 1.000 (“The”)"
    assert title(figures.coloured_text(rows, 736, source=2)) == expected
    assert title(figures.cut_map(rows, cuts, 736, n_layers=3)) == "2 of 3 flows are narrowest in the first layer alone"
    assert title(figures.flow_against_rollout(rows, 736)).startswith(
        "Rollout puts 0.99997 on “The”; flow gives each of 3"
    )
    below = rows.with_columns(excess=pl.Series([0.0, -0.25, -0.1]))
    assert title(figures.coloured_text(below, 736, source=2)) == (
        "No token exceeds uniform attention; of 3, “cat” falls furthest below it, by 0.250"
    )


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" Paris", "Paris"),
        ("\n", "\\n"),
        ("  ", "(space)"),
        ("", "(empty)"),
        ("\x07", "⟨0007⟩"),
        ("b" * 30, "b" * 15 + "…"),
    ],
)
def test_tokens_as_they_are_drawn(token: str, shown: str) -> None:
    assert figures.shown_token(token) == shown
