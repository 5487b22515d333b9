"""Pictures of effects along paths: how they add up, and whether the groups overlap."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import style, visible

if TYPE_CHECKING:
    import polars as pl

LINE = 40  # px from one row to the next
LONGEST_LABEL = 26  # characters
# px that a character takes at 16 px semibold and at 13 px, rather more than less
TITLE_PX, SUBTITLE_PX = 8.7, 6.8


def waterfall(
    effects: pl.DataFrame, width: int, *, unit: str, outcome: str, contrast: str, level: float, void: bool
) -> alt.LayerChart:
    """How the paths add up to the total, each step with its interval.

    Parameters
    ----------
    effects : effect, estimate, low, high; the total, then the paths in the order in which they add up
    width : px of the whole figure
    unit : of the effects
    outcome, contrast : what differs, and in which direction it is meant
    level : confidence of the intervals
    void : whether the groups overlap too little for any of it
    """
    rows = {row["effect"]: row for row in effects.iter_rows(named=True)}
    total = rows.pop("total")
    steps, at = [], 0.0
    longest = LONGEST_LABEL if width >= 500 else 19
    for name, row in rows.items():
        steps.append(_step(_cut(name, longest), at, row))
        at += row["estimate"]
    steps.append(_step("total", 0.0, total))
    labels = _distinct(steps)
    ends = [step[key] for step in steps for key in ("from", "to", "low", "high")] + [0.0]
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    scale = alt.Scale(domain=[min(ends) - margin, max(ends) + margin], nice=False, zero=False)
    x = alt.X(
        "from:Q", title=f"Effect on {visible(outcome, 24)}, added up [{unit}]", scale=scale, axis=alt.Axis(tickCount=5)
    )
    y = alt.Y("label:N", title="Path", sort=None, scale=alt.Scale(domain=labels, padding=0.3),
              axis=alt.Axis(grid=False, labelLimit=200 if width >= 500 else 130))  # fmt: skip
    layers: list[Any] = []
    looks = ("ours-soft", "interval", "estimate")
    if void:
        looks = ("baseline-bar", "interval-undecided", "estimate-undecided")
    for part, look in ((steps[:-1], looks[0]), (steps[-1:], "baseline-bar")):
        bars = alt.Chart(alt.InlineData(values=part)).mark_bar(style=style(look), height=14)
        layers.append(bars.encode(x=x, x2="to:Q", y=y))
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(style=style("zero"))
    layers.append(zero.encode(x=alt.X("x:Q", scale=scale)))
    every = alt.Chart(alt.InlineData(values=steps))
    layers.append(every.mark_rule(style=style(looks[1])).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y))
    layers.append(every.mark_point(style=style(looks[2])).encode(x=alt.X("to:Q", scale=scale), y=y))
    numbers = every.mark_text(style=style("label"), align="right", dx=58)
    layers.append(numbers.encode(x=alt.datum(max(ends) + margin), y=y, text="value:N"))
    described = ", ".join(f"{step['label']} {step['value']}" for step in steps[:5])
    finding = _finding(rows, total, unit, void)
    how = (
        f"Bars add up downwards to the total, {visible(contrast, 50)}. Whisker: {100 * level:g} % interval of the step,"
    )
    how += " drawn from where the step begins." + (" Nothing can be read off: see the verdict." if void else "")
    return _finished(
        alt.layer(*layers), width, finding, how, f"Waterfall of effects in {unit}: {described}.", right=70,
        height=LINE * len(steps),
    )  # fmt: skip


def _step(label: str, at: float, row: Mapping[str, Any]) -> dict[str, Any]:
    value = row["estimate"]
    return {
        "label": label, "from": at, "to": at + value, "low": at + row["low"], "high": at + row["high"],
        "value": _number(value, row["high"] - row["low"]),
    }  # fmt: skip


def _number(value: float, spread: float) -> str:
    known = 0 < spread < math.inf
    places = max(0, 1 - math.floor(math.log10(spread))) if known else 3
    short = places <= 6 and abs(value) < 1e6
    return f"{value:+.{places}f}".replace("-", "−") if short else f"{value:+.2g}".replace("-", "−")


def _finding(rows: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any], unit: str, void: bool) -> str:
    if void:
        return "The groups overlap too little to tell one path from another"
    clear = {name: row for name, row in rows.items() if row["low"] > 0 or row["high"] < 0}
    said = f"{_number(total['estimate'], total['high'] - total['low'])} {unit}"
    if not clear:
        return f"No path is clear of zero by itself; the total is {said}"
    largest = sorted(clear.items(), key=lambda item: -abs(item[1]["estimate"]))[:2]
    parts = [
        f"{_number(row['estimate'], row['high'] - row['low'])} "
        + ("directly" if name == "direct" else visible(name, LONGEST_LABEL + 8))
        for name, row in largest
    ]
    return f"Of {said} in all, {' and '.join(parts)}"


def overlap_chart(bins: pl.DataFrame, width: int, *, arms: Sequence[str], effective: float) -> alt.LayerChart:
    """How the two groups' propensities lie, given the covariates alone and given all mediators too.

    Parameters
    ----------
    bins : given, group, low, high, share
    width : px of the whole figure
    arms : reference and comparison
    effective : effective rows of the worst weights
    """
    rows = [row for row in bins.iter_rows(named=True) if row["share"] > 0]
    rooms = list(dict.fromkeys(bins["given"].to_list()))
    most = max(row["share"] for row in rows)
    layers: list[Any] = []
    scale = alt.Scale(domain=[0, 2.6 * len(rooms)], nice=False)
    words = []
    for number, given in enumerate(rooms):
        middle = 2.6 * (len(rooms) - number) - 1.45
        for arm, look in ((0, "baseline-bar"), (1, "ours-bar")):
            sign = -1 if arm == 0 else 1
            data = [
                {"low": row["low"], "high": row["high"], "base": middle, "top": middle + sign * row["share"] / most}
                for row in rows
                if row["given"] == given and row["group"] == arms[arm]
            ]
            ticks = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f")
            reach = alt.Scale(domain=[0, 1], nice=False)
            x = alt.X("low:Q", title=f"Probability of {visible(arms[1], 24)} [1]", axis=ticks, scale=reach)
            y = alt.Y("base:Q", title="Rows", scale=scale, axis=alt.Axis(labels=False, grid=False, ticks=False))
            if data:
                bars = alt.Chart(alt.InlineData(values=data)).mark_rect(style=style(look))
                layers.append(bars.encode(x=x, x2="high:Q", y=y, y2="top:Q"))
        words.append({"x": 0.0, "y": middle + 1.06, "word": f"Given {given}"})
    text = alt.Chart(alt.InlineData(values=words)).mark_text(
        style=style("label-strong"), align="left", baseline="bottom"
    )
    layers.append(text.encode(x="x:Q", y="y:Q", text="word:N"))
    finding = f"The worst weights leave {effective:,.0f} effective rows"
    how = f"Up: rows of {visible(arms[1], 24)}; down: of {visible(arms[0], 24)}, by how probable the former is."
    how += " Where only one side has rows, nobody stands for them."
    spans = "; ".join(f"given {given}, {_span(rows, given, arms)}" for given in rooms)
    return _finished(
        alt.layer(*layers), width, finding, how, f"Histograms of the probability of {visible(arms[1], 24)}: {spans}.",
        right=16, height=110 * len(rooms),
    )  # fmt: skip


def _span(rows: Sequence[Mapping[str, Any]], given: str, arms: Sequence[str]) -> str:
    found = []
    for arm in arms:
        own = [row for row in rows if row["given"] == given and row["group"] == arm]
        found.append(f"{visible(arm, 24)} from {min(r['low'] for r in own):.2f} to {max(r['high'] for r in own):.2f}")
    return ", ".join(found)


def _distinct(steps: Sequence[dict[str, Any]]) -> list[str]:
    """Labels, made different where two were cut to the same."""
    found: list[str] = []
    for step in steps:
        label, number = step["label"], 2
        while step["label"] in found:
            step["label"], number = f"{label} ({number})", number + 1
        found.append(step["label"])
    return found


def _cut(text: str, longest: int) -> str:
    return visible(text, longest)


def _finished(
    chart: Any, width: int, finding: str, how: str, description: str, *, right: int, height: int
) -> alt.LayerChart:
    drawn: alt.LayerChart = chart.properties(
        width=width,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": max(right, 8), "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, math.floor((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, math.floor((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )
    return drawn
