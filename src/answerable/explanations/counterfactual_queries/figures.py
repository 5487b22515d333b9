"""Pictures of what may be asked: the graph, what answers cost, and answers beside the facts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.explanations.causal_drawing import graph_chart
from answerable.theme import HATCH_SPACING, style, visible

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 24
FEW = 3  # concepts that are always named
LINE = 24  # px from one row to the next
LONGEST_LABEL = 30  # characters
# px that a character takes at 16 px semibold, 13 px and 12 px, rather more than less
TITLE_PX, SUBTITLE_PX = 8.7, 6.8


def query_graph(
    nodes: Iterable[Mapping[str, Any]],
    edges: Iterable[Mapping[str, Any]],
    width: int,
    *,
    query: Sequence[str],
    witnesses: Sequence[str],
    unsure: bool,
    sees_input: bool,
) -> alt.LayerChart:
    """The causal graph with the queried concepts, what they move, and what blocks the question.

    Parameters
    ----------
    nodes, edges : as :func:`answerable.explanations.causal_drawing.graph_chart` takes them
    width : px of the whole figure
    query : the queried concepts
    witnesses : features that it moves; empty where answerable
    unsure : whether only a possible edge leads to them
    sees_input : whether the model sees the input itself
    """
    rows = list(nodes)
    asked = _names(query)
    if sees_input:
        finding = f"“What if {asked}?” cannot be answered: the model also sees the input itself"
    elif not witnesses:
        finding = f"“What if {asked}?” can be answered: nothing that the model looks at would move with it"
    else:
        moves = "may move" if unsure else "moves"
        finding = f"“What if {asked}?” cannot be answered: it {moves} {_names(witnesses)}, which the model looks at"
    moved = [row["node"] for row in rows if row["look"] in ("reached", "trouble")]
    how = "Diamond: queried. " + ("Square: moved by it, and the model looks at it. " if witnesses else "")
    how += "Pale disc: moved, not looked at. Grey disc: looked at, stays. Ring: neither. Dotted bow: a hidden cause."
    how += " Dashed: perhaps there." if any(row["kind"] == "possible" for row in edges) else ""
    description = f"Causal graph of {len(rows)} concepts. Setting {asked} moves {_names(moved) or 'nothing else'}."
    return graph_chart(rows, edges, width, finding=finding, how=how, description=description)


def tradeoff_chart(
    sets: pl.DataFrame, width: int, *, names: Mapping[str, Sequence[str]], chosen: str, largest: str, queries: int
) -> alt.LayerChart:
    """Log loss of each set of features, beside how many of the questions it answers.

    Parameters
    ----------
    sets : features (words), answerable, log_loss, log_loss_low, log_loss_high
    width : px of the whole figure
    names : the features of each set, by its words
    chosen, largest : words of the features in use, and of the largest set that answers every question
    queries : number of questions
    """
    rows = sorted(sets.iter_rows(named=True), key=lambda row: (-row["answerable"], row["log_loss"]))
    kept = {row["features"] for row in rows[:MOST_ROWS]} | {chosen, largest}
    shown_rows = [row for row in rows if row["features"] in kept][: MOST_ROWS + 2]
    short = {row["features"]: _left_out(names[row["features"]], names.values()) for row in shown_rows}
    labels = _labels([short[row["features"]] for row in shown_rows], 34 if width >= 500 else 18)
    data = [
        {
            "label": label, "loss": row["log_loss"], "low": row["log_loss_low"], "high": row["log_loss_high"],
            "count": f"{row['answerable']} of {queries}",
            "look": "ours" if row["features"] in (chosen, largest) else "other",
        }
        for label, row in zip(labels, shown_rows)
    ]  # fmt: skip
    low, high = min(row["low"] for row in data), max(row["high"] for row in data)
    margin = 0.05 * (high - low) or 0.01
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
    y = alt.Y("label:N", title="Features", sort=None, scale=alt.Scale(type="point", domain=labels, padding=0.6),
              axis=alt.Axis(grid=False, labelLimit=250 if width >= 500 else 130))  # fmt: skip
    layers: list[Any] = []
    for look, whisker, dot in (("other", "interval-baseline", "estimate-baseline"), ("ours", "interval", "estimate")):
        part = alt.Chart(alt.InlineData(values=[row for row in data if row["look"] == look]))
        if any(row["look"] == look for row in data):
            x = alt.X("low:Q", title="Log loss, out of fold [nats]", scale=scale, axis=alt.Axis(tickCount=5))
            layers.append(part.mark_rule(style=style(whisker)).encode(x=x, x2="high:Q", y=y))
            layers.append(part.mark_point(style=style(dot)).encode(x="loss:Q", y=y))
    every = alt.Chart(alt.InlineData(values=data))
    layers.append(
        every.mark_text(style=style("label"), align="right", dx=60).encode(
            x=alt.datum(high + margin), y=y, text="count:N"
        )
    )
    best = min(rows, key=lambda row: row["log_loss"])
    at = {row["features"]: row for row in rows}
    finding = _cost(at.get(chosen), at.get(largest), queries)
    how = "Dot and whisker: mean log loss with 95 % interval. Right: how many questions the features answer. Blue: "
    how += "the features in use, and the largest set that answers every question."
    description = (
        f"{len(rows)} sets of features by log loss, from {best['log_loss']:.3f} nats ({visible(best['features'], 40)}, "
        f"{best['answerable']} of {queries} questions) to {max(row['log_loss'] for row in rows):.3f}."
    )
    return _finished(alt.layer(*layers), width, finding, how, description, right=68)


def _left_out(own: Sequence[str], sets: Iterable[Sequence[str]]) -> str:
    """A set in words: by what it leaves out, where that is less than what it holds."""
    every = list(dict.fromkeys(name for one in sets for name in one))
    missing = [name for name in every if name not in own]
    if len(own) <= FEW or len(missing) >= len(own):
        return ", ".join(own)
    return f"all but {', '.join(missing)}" if missing else f"all {len(every)}"


def _cost(chosen: Mapping[str, Any] | None, largest: Mapping[str, Any] | None, queries: int) -> str:
    every = f"all {queries} questions" if queries > 1 else "the question"
    if largest is None or chosen is None:
        return f"No set of features answers {every}"
    if chosen["features"] == largest["features"]:
        return f"The features in use answer {every}"
    extra = largest["log_loss"] - chosen["log_loss"]
    costs = f"costs {extra:.3f} nats of log loss" if extra >= 0.0005 else "costs no log loss"
    in_place = f" in place of {chosen['answerable']}" if queries > 1 else ""
    return f"To answer {every}{in_place} {costs}"


def answer_bars(cases: pl.DataFrame, width: int, *, outcome: str, target: str) -> alt.LayerChart:
    """Each case as it is and as it would be: a point where the question is answerable, a hatched interval where not.

    Parameters
    ----------
    cases : row, query, factual, prob, lower, upper, identified, naive
    width : px of the whole figure
    outcome, target : the label, and the value whose probability is shown
    """
    rows = list(cases.head(MOST_ROWS).iter_rows(named=True))
    labels = _labels([f"{row['row']}: {row['query']}" for row in rows], 30 if width >= 500 else 18)
    for label, row in zip(labels, rows):
        row["label"] = label
    height = LINE * len(rows)
    inner = width - 220 if width >= 500 else width - 160
    y = alt.Y("label:N", title="Row: question", sort=None,
              scale=alt.Scale(type="point", domain=labels, padding=0.5),
              axis=alt.Axis(grid=False, labelLimit=190 if width >= 500 else 130))  # fmt: skip
    name = f"Probability of {visible(outcome, 24)} = {visible(target, 16)} [1]"
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("lower:Q", title=name, scale=scale, axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f"))
    layers: list[Any] = []
    open_rows = [row for row in rows if not row["identified"]]
    points = [row for row in rows if row["identified"]]
    every = alt.Chart(alt.InlineData(values=[_picked(row, "label", "factual", "naive") for row in rows]))
    moves = alt.Chart(alt.InlineData(values=[_picked(row, "label", "factual", "prob") for row in points]))
    if open_rows:
        step = HATCH_SPACING / inner
        strokes = [
            {"label": row["label"], "lower": row["lower"] + (number + 0.5) * step}
            for row in open_rows
            for number in range(int((row["upper"] - row["lower"]) / step))
        ]
        bands = alt.Chart(alt.InlineData(values=[_picked(row, "label", "lower", "upper") for row in open_rows]))
        ground = bands.mark_rule(style=style("null-edge"), strokeWidth=11, opacity=0.2)
        hatching = alt.Chart(alt.InlineData(values=strokes)).mark_point(
            style=style("null-hatch"), shape="M-0.5,0.5L0.5,-0.5", size=110, filled=False, strokeWidth=0.75
        )
        layers += [ground.encode(x=x, x2="upper:Q", y=y), hatching.encode(x=x, y=y)]
        for end in ("lower", "upper"):
            stop = bands.mark_tick(style=style("null-edge"), thickness=2, height=13)
            layers.append(stop.encode(x=alt.X(f"{end}:Q", title=name, scale=scale), y=y))
    if points:
        layers.append(
            moves.mark_rule(style=style("leader")).encode(
                x=alt.X("factual:Q", title=name, scale=scale), x2="prob:Q", y=y
            )
        )
        layers.append(moves.mark_point(style=style("exact")).encode(x="prob:Q", y=y))
    layers.append(
        every.mark_point(style=style("baseline"), size=60).encode(x=alt.X("factual:Q", title=name, scale=scale), y=y)
    )
    n_points = int(cases["identified"].sum())
    widest = float((cases["upper"] - cases["lower"]).max())  # type: ignore[arg-type]
    finding = (
        f"{n_points} of {cases.height} answers are points; the widest interval leaves {widest:.2f} open"
        if n_points < cases.height
        else f"All {cases.height} answers are points"
        if cases.height > 1
        else "The answer is a point"
    )
    how = "Ring: as it is. Diamond: had it been so. Hatched: anywhere in between, no data can tell where."
    if cases.height > len(rows):
        how += f" The first {len(rows)} are drawn."
    description = (
        f"{cases.height} answers of probability of {visible(outcome, 24)} = {visible(target, 16)}: {n_points} points, "
        f"{cases.height - n_points} intervals, the widest {widest:.2f}."
    )
    chart: Any = alt.layer(*layers).properties(height=height)
    return _finished(chart, width, finding, how, description, right=16)


def _names(names: Sequence[str]) -> str:
    named = [visible(name, LONGEST_LABEL) for name in names]
    if len(named) > 3:
        return f"{', '.join(named[:2])} and {len(named) - 2} more"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _labels(texts: Sequence[str], longest: int) -> list[str]:
    """Labels that differ where texts do, cut in the middle, so that a value at the end stays."""
    found: list[str] = []
    for text in texts:
        label, number = _cut(text, longest), 2
        while label in found:
            label = f"{_cut(text, longest - 4)} ({number})"
            number += 1
        found.append(label)
    return found


def _cut(text: str, longest: int) -> str:
    whole = visible(text, 200)
    if len(whole) <= longest:
        return whole
    tail = whole[-(longest // 3) :]
    return f"{whole[: longest - 1 - len(tail)]}…{tail}"


def _picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _finished(chart: Any, width: int, finding: str, how: str, description: str, *, right: int) -> alt.LayerChart:
    has_height = not isinstance(chart.height, alt.utils.schemapi.UndefinedType)
    heights: dict[str, Any] = {} if has_height else {"height": alt.Step(LINE)}
    return chart.properties(
        width=width,
        **heights,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": max(right, 8), "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, math.floor((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, math.floor((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )
