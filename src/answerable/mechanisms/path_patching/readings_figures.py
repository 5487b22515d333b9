"""Pictures of what heads look at, what feed-forward parts write, and what training them does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from answerable.mechanisms.path_patching.figures import LINE, finished, node_axis
from answerable.theme import categories, colour, style

Rows = Sequence[Mapping[str, Any]]

CLASSES = ("source", "indicator", "positional", "example", "other")
MOST_HEADS = 12


def roles_chart(heads: Rows, width: int) -> alt.LayerChart:
    """Where the largest heads look from the last token, as shares of attention times the length of the value.

    Parameters
    ----------
    heads : node, role and a share for each class of tokens, the largest effect first
    width : px of the whole figure
    """
    shown = list(heads)[:MOST_HEADS]
    data = []
    for row in shown:
        start = 0.0
        for name in CLASSES:
            data.append({"node": row["node"], "class": name, "start": start, "end": start + row[name]})
            start += row[name]
    colours = [*categories(4), colour("baseline")]
    bars = (
        alt.Chart(alt.InlineData(values=data))
        .mark_bar(height=13)
        .encode(
            y=node_axis([row["node"] for row in shown]),
            x=alt.X(
                "start:Q", title="Share of attention times value", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%", tickCount=5),
            ),
            x2="end:Q",
            color=alt.Color(
                "class:N",
                title="Looks at",
                sort=list(CLASSES),
                scale=alt.Scale(domain=list(CLASSES), range=colours),
                legend=alt.Legend(
                    orient="top", titleOrient="left" if width >= 500 else "top", columns=0 if width >= 500 else 3
                ),
            ),
        )
    )  # fmt: skip
    roles = [row["role"] for row in shown]
    most = max(dict.fromkeys(roles), key=roles.count)
    return finished(
        alt.layer(bars).properties(height=alt.Step(LINE)),
        width,
        f"{roles.count(most)} of the {len(shown)} largest heads look "
        + ("at several classes of tokens" if most == "mixed" else f"mostly at {most} tokens"),
        "From the last token, the first one aside; largest effect first.",
        f"{len(shown)} heads with the shares of {', '.join(CLASSES)} tokens; roles: "
        + ", ".join(f"{row['node']} {row['role']}" for row in shown)
        + ".",
    )


def writing_chart(mlps: Rows, width: int) -> alt.LayerChart:
    """How the stream behind each feed-forward part turns to the words, layer by layer, with random words as a band.

    Parameters
    ----------
    mlps : layer, place, words, cosine, low, high; the place "out" is drawn
    width : px of the whole figure
    """
    out = [row for row in mlps if row["place"] == "out"]
    words = list(dict.fromkeys(row["words"] for row in out if row["words"] != "random"))[:4]
    layers = sorted({row["layer"] for row in out})
    x = alt.X(
        "layer:Q",
        title="Layer",
        scale=alt.Scale(domain=[layers[0], max(layers[-1], 1)], nice=False),
        axis=alt.Axis(format="d", tickMinStep=1, grid=False),
    )
    y = alt.Y("cosine:Q", title="Cosine", axis=alt.Axis(tickCount=5))
    lines = [{name: row[name] for name in ("layer", "words", "cosine")} for row in out if row["words"] in words]
    noise = [{name: row[name] for name in ("layer", "low", "high")} for row in out if row["words"] == "random"]
    band = (
        alt.Chart(alt.InlineData(values=noise))
        .mark_area(color=colour("baseline"), opacity=0.25)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    )
    curves = (
        alt.Chart(alt.InlineData(values=lines))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "words:N",
                title="Output rows of",
                sort=words,
                scale=alt.Scale(domain=words, range=categories(4)[: len(words)]),
                legend=alt.Legend(
                    orient="top", titleOrient="left" if width >= 500 else "top", columns=0 if width >= 500 else 2
                ),
            ),
        )
    )
    high = {row["layer"]: row["high"] for row in noise}
    of_answer = {row["layer"]: row["cosine"] for row in lines if row["words"] == "answer"}
    finding = _stands_out([(layer, of_answer[layer] > high[layer]) for layer in layers])
    return finished(
        alt.layer(band, curves).properties(height=220),
        width,
        finding,
        "What leaves each MLP, against centred rows of the output layer. Grey: 95 % of random words.",
        f"{len(words)} curves over {len(layers)} layers: {', '.join(words)}; the answer ends at "
        f"{of_answer[layers[-1]]:.2f}, random words at most {high[layers[-1]]:.2f}.",
    )


def _stands_out(layers: Sequence[tuple[int, bool]]) -> str:
    """What the curve of the answer says: at which layers it lies above the band of random words."""
    above = [layer for layer, is_above in layers if is_above]
    last = next((layer for layer, is_above in reversed(layers) if not is_above), None)
    if not above:
        return "The answer stands out from random words at no layer"
    if last is None or above[-1] > last:
        first = above[0] if last is None else min(layer for layer in above if layer > last)
        return f"The answer stands out from random words from layer {first} on"
    at = f"at layer {above[0]}" if len(above) == 1 else f"at {len(above)} layers, {above[0]} to {above[-1]}"
    return f"The answer stands out from random words {at}, and not in the end"


def training_chart(rows: Rows, width: int) -> alt.LayerChart:
    """Answers right after each way of training, with intervals.

    Parameters
    ----------
    rows : way, parameters, accuracy, low, high
    width : px of the whole figure
    """
    data = [{"node": row["way"], **{name: row[name] for name in ("accuracy", "low", "high")}} for row in rows]
    y = node_axis([row["node"] for row in data], title="Trained")
    scale = alt.Scale(domain=[0, 1])
    base = alt.Chart(alt.InlineData(values=data)).encode(y=y)
    intervals = base.mark_rule(style=style("interval")).encode(
        x=alt.X("low:Q", title="Answered right", scale=scale, axis=alt.Axis(format=".0%", tickCount=5)), x2="high:Q"
    )
    points = base.mark_point(style=style("estimate")).encode(x=alt.X("accuracy:Q", scale=scale))
    by_way = {row["way"]: row for row in rows}
    targeted, random, everything = (by_way[way] for way in ("targeted", "random parts", "all parameters"))
    share = targeted["parameters"] / everything["parameters"]
    return finished(
        alt.layer(intervals, points).properties(height=alt.Step(LINE + 6)),
        width,
        f"Training {share:.2%} of the parameters: {targeted['accuracy']:.0%} right; random parts "
        f"{random['accuracy']:.0%}, all {everything['accuracy']:.0%}",
        "Trained on one half of the words, judged on the other. Line: 95 % interval.",
        "; ".join(f"{row['way']} {row['accuracy']:.0%} right with {row['parameters']} parameters" for row in rows)
        + ".",
    )
