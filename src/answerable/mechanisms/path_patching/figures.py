"""Pictures of path patching, each from plain rows and a width in pixels to an Altair chart.

Shares are of what the behaviour is worth: the distance of the metric between prompts and their twins. Nodes are
written layer.head, feed-forward parts MLP layer; both count from 0.
"""

from __future__ import annotations

import bisect
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from answerable.theme import categories, colour, steps, style

Rows = Sequence[Mapping[str, Any]]

TITLE_PX, SUBTITLE_PX = 8.7, 6.8  # px of a character at 16 px semibold and at 13 px, rather more than less
LINE = 20  # px from one row to the next
MOST_ROWS = 20
MULTIPLES = (1, 5, 20)  # of the threshold, where the next colour begins
STRIPS = (("share_low", -0.46, -0.16), ("share", -0.16, 0.16), ("share_high", 0.16, 0.46))  # of a cell


def effect_map(components: Rows, width: int, *, threshold: float) -> alt.LayerChart:
    """Every head by layer, with a column of feed-forward parts beside them; crucial ones have a dot.

    Each cell has three strips, lower end of the interval, effect, and upper end: a cell of one colour is sure.

    Parameters
    ----------
    components : kind, layer, head, share, share_low, share_high, crucial
    width : px of the whole figure
    threshold : share beyond which a component counts; colours begin there
    """
    n_heads = 1 + max(row["head"] for row in components if row["head"] is not None)
    n_layers = 1 + max(row["layer"] for row in components)
    column = n_heads + 0.6
    edges = [sign * times * threshold for sign in (-1, 1) for times in MULTIPLES[::sign]]
    bands = _bands(edges)
    cells = [cell for row in components for cell in _strips(row, column, edges, bands)]
    x_scale = alt.Scale(domain=[-0.6, column + 0.6], nice=False, zero=False)
    y_scale = alt.Scale(domain=[-0.6, n_layers - 0.4], nice=False, zero=False)
    heads = _every(n_heads, 6 if width < 500 else 16)
    base = alt.Chart(alt.InlineData(values=cells))
    squares = base.mark_rect().encode(
        x=alt.X(
            "x:Q",
            title="Head, and MLP at the right",
            scale=x_scale,
            axis=alt.Axis(values=heads, format="d", grid=False),
        ),
        x2="x2:Q",
        y=alt.Y(
            "y:Q",
            title="Layer",
            scale=y_scale,
            axis=alt.Axis(values=_every(n_layers, 10), format="d", grid=False),
        ),
        y2="y2:Q",
        color=alt.Color(
            "band:N",
            title="Share of the behaviour",
            sort=bands,
            scale=alt.Scale(domain=bands, range=steps("signed", edges)["range"]),
            legend=alt.Legend(
                orient="top",
                titleOrient="top",
                symbolType="square",
                columns=0 if width >= 500 else 3,
                titleLimit=0,
            ),
        ),
    )
    marked = [
        {"middle": column if row["head"] is None else row["head"], "layer": row["layer"]}
        for row in components
        if row["crucial"]
    ]
    dots = (
        alt.Chart(alt.InlineData(values=marked))
        .mark_point(filled=True, size=14, color=colour("ink"), opacity=1)
        .encode(x=alt.X("middle:Q", scale=x_scale), y=alt.Y("layer:Q", scale=y_scale))
    )
    crucial = len(marked)
    first = max(components, key=lambda row: abs(row["share"]))
    return finished(
        (squares + dots).properties(height=max(120, min(420, 13 * n_layers))),
        width,
        f"{crucial} of {len(components)} components are crucial; the largest is {_named(first)}, {first['share']:+.1%}",
        "Cell: change of the answer if the component is the twin's, from the lower end of its interval (left) to the "
        "upper (right). Dot: crucial.",
        f"Map of {n_layers} layers by {n_heads} heads and MLPs with intervals; {crucial} of {len(components)} are "
        f"crucial, the largest {_named(first)} with {first['share']:+.1%}.",
    )


def components_chart(components: Rows, width: int, *, threshold: float, most: int = MOST_ROWS) -> alt.LayerChart:
    """The largest components with their intervals, the band of random directions and the threshold.

    Parameters
    ----------
    components : node, share, share_low, share_high, crucial, random_low, random_high (shares, or null)
    width : px of the whole figure
    threshold : share beyond which a component is crucial
    most : components drawn
    """
    shown = sorted(components, key=lambda row: -abs(row["share"]))[:most]
    shown = sorted(shown, key=lambda row: row["share"])
    y = node_axis([row["node"] for row in shown])
    drawn = [
        {
            name: row[name]
            for name in ("node", "share", "share_low", "share_high", "crucial", "random_low", "random_high")
        }
        for row in shown
    ]
    ends = [row[name] for row in drawn for name in ("share_low", "share_high", "random_low", "random_high", "share")]
    low, high = (choose([0.0, *(end for end in ends if end is not None)]) for choose in (min, max))
    margin = 0.05 * (high - low or 1.0)
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
    x = alt.X("share_low:Q", title="Share of the behaviour", scale=scale, axis=alt.Axis(format="+.0~%", tickCount=5))
    base = alt.Chart(alt.InlineData(values=drawn)).encode(y=y)
    banded = [row for row in drawn if row["random_low"] is not None]
    bands = (
        alt.Chart(alt.InlineData(values=banded))
        .mark_bar(style=style("baseline-bar"), height=12, opacity=0.35)
        .encode(y=y, x=alt.X("random_low:Q", scale=scale), x2="random_high:Q")
    )
    rules = [
        alt.Chart(alt.InlineData(values=[{"at": at}])).mark_rule(style=style(kind)).encode(x=alt.X("at:Q", scale=scale))
        for at, kind in ((0.0, "zero"), (-threshold, "threshold"), (threshold, "threshold"))
    ]
    intervals = base.mark_rule(style=style("interval")).encode(x=x, x2="share_high:Q")
    points = [
        alt.Chart(alt.InlineData(values=[row for row in drawn if row["crucial"] is sign]))
        .mark_point(style=style(kind))
        .encode(y=y, x=alt.X("share:Q", scale=scale))
        for sign, kind in ((True, "estimate"), (False, "estimate-undecided"))
    ]
    crucial = sum(row["crucial"] for row in drawn)
    lowest, named = shown[0], _named(shown[0])
    first = f"{named[0].upper()}{named[1:]}"
    how = "Point and line: share with its interval; hollow: not crucial. Rules: the threshold."
    how += " Grey: random directions." if banded else ""
    return finished(
        alt.layer(bands, *rules, intervals, *points).properties(height=alt.Step(LINE)),
        width,
        f"{first} carries most: without its own signal the answer changes by {lowest['share']:+.1%}",
        how,
        f"{len(shown)} components by share, from {lowest['share']:+.1%} ({lowest['node']}) to "
        f"{shown[-1]['share']:+.1%} ({shown[-1]['node']}); {crucial} of them crucial.",
    )


def circuit_graph(nodes: Rows, edges: Rows, width: int) -> alt.LayerChart:
    """The largest components by layer, and how much of the behaviour goes from one to another or to the output.

    Parameters
    ----------
    nodes : node, layer, head, share
    edges : sender, receiver (a node, or output), share
    width : px of the whole figure
    """
    placed = _placed(nodes)
    lanes = max((place["lane"] for place in placed.values()), default=0)
    columns = max(place["column"] for place in placed.values()) + 1
    placed["output"] = {"node": "output", "column": columns, "lane": _clear_lane(placed, columns), "share": 0.0}
    least = 0.01
    drawn = [
        {
            "x": placed[edge["sender"]]["column"],
            "y": placed[edge["sender"]]["lane"],
            "x2": placed[edge["receiver"]]["column"],
            "y2": placed[edge["receiver"]]["lane"],
            "size": abs(edge["share"]),
            "sign": "lowers the answer" if edge["share"] < 0 else "raises the answer",
        }
        for edge in edges
        if abs(edge["share"]) >= least and edge["sender"] in placed and edge["receiver"] in placed
    ]
    x_scale = alt.Scale(domain=[-0.5, columns + 0.5], nice=False, zero=False)
    y_scale = alt.Scale(domain=[lanes + 0.95, -0.6], nice=False, zero=False)
    x = alt.X(
        "x:Q",
        title="Layer, earlier ones at the left",
        scale=x_scale,
        axis=alt.Axis(labels=False, ticks=False, grid=False),
    )
    y = alt.Y("y:Q", title="Parts", scale=y_scale, axis=alt.Axis(labels=False, ticks=False, grid=False))
    most = max([edge["size"] for edge in drawn], default=1.0)
    lines = (
        alt.Chart(alt.InlineData(values=drawn))
        .mark_rule(opacity=0.65, strokeCap="round")
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            strokeWidth=alt.StrokeWidth("size:Q", scale=alt.Scale(domain=[0, most], range=[0.4, 9]), legend=None),
            color=alt.Color(
                "sign:N",
                title="Patching the sender",
                scale=alt.Scale(
                    domain=["lowers the answer", "raises the answer"], range=[colour("ours"), colour("neg3")]
                ),
                legend=alt.Legend(orient="top", titleOrient="left" if width >= 500 else "top"),
            ),
        )
    )
    labels = [{"x": one["column"], "y": one["lane"], "node": one["node"]} for one in placed.values()]
    base = alt.Chart(alt.InlineData(values=labels))
    grounds = base.mark_point(filled=True, size=1500, color=colour("paper"), opacity=1, shape="circle").encode(x=x, y=y)
    rims = base.mark_point(filled=False, size=1500, color=colour("ink2"), opacity=1, strokeWidth=1).encode(x=x, y=y)
    words = base.mark_text(style=style("label"), align="center", baseline="middle", fontSize=11).encode(
        x=x, y=y, text="node:N"
    )
    feet = [
        {"x": column, "y": lanes + 0.75, "layer": f"{layer}"}
        for column, layer in sorted({(one["column"], one["layer"]) for one in placed.values() if "layer" in one})
    ]
    numbers = (
        alt.Chart(alt.InlineData(values=feet))
        .mark_text(style=style("note"), align="center")
        .encode(x=x, y=y, text="layer:N")
    )
    through = [edge for edge in edges if edge["receiver"] != "output"]
    strongest = max(through, key=lambda edge: abs(edge["share"]), default=None)
    if strongest is not None and abs(strongest["share"]) >= least:
        finding = (
            f"{strongest['sender']} acts through {strongest['receiver']}: {strongest['share']:+.1%} of the behaviour"
        )
    else:
        finding = f"The {len(nodes)} largest components act on the output directly, not through each other"
    return finished(
        alt.layer(lines, grounds, rims, words, numbers).properties(height=max(160, 64 * (lanes + 1))),
        width,
        finding,
        f"Line: effect through a head (query, key, value), an MLP, or on the output; below {least:.0%} no line.",
        f"Graph of {len(nodes)} components and the output, {len(drawn)} lines of at least {least:.0%}; {finding[:80]}.",
    )


def knock_out_chart(rows: Rows, width: int, *, kind: str = "heads") -> alt.LayerChart:
    """Accuracy on other words with more and more components put out, beside as many random ones.

    Parameters
    ----------
    rows : knocked_out, accuracy, low, high, random_accuracy, random_low, random_high
    width : px of the whole figure
    kind : what is put out, in words
    """
    data = [dict(row) | {"step": str(row["knocked_out"])} for row in rows]
    x = alt.X("step:O", title=f"{kind.capitalize()} put out", sort=None, axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(domain=[0, 1.02], nice=False)
    y = alt.Y("accuracy:Q", title="Share answered right", scale=scale, axis=alt.Axis(format=".0%", tickCount=5))
    base = alt.Chart(alt.InlineData(values=data)).encode(x=x)
    band = base.mark_area(color=colour("baseline"), opacity=0.2).encode(
        y=alt.Y("random_low:Q", scale=scale), y2="random_high:Q"
    )
    random = base.mark_line(color=colour("baseline"), strokeWidth=1.5).encode(y=alt.Y("random_accuracy:Q", scale=scale))
    line = base.mark_line(color=colour("ours"), strokeWidth=2).encode(y=y)
    intervals = base.mark_rule(style=style("interval")).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    points = base.mark_point(style=style("estimate")).encode(y=y)
    last = rows[-1]
    below = [row for row in rows if row["accuracy"] < row["random_low"]]
    finding = (
        f"With {below[0]['knocked_out']} {kind} put out, fewer answers are right than with any random ones"
        if below
        else f"Putting out up to {last['knocked_out']} ranked {kind} is no worse than random ones"
    )
    return finished(
        alt.layer(band, random, intervals, line, points).properties(height=220),
        width,
        finding,
        "Blue: in order of rank, on words that did not rank them, 95 % interval. Grey: random ones, mean and range.",
        f"Accuracy from {rows[0]['accuracy']:.0%} to {last['accuracy']:.0%} with {last['knocked_out']} {kind} put out; "
        f"random ones end at {last['random_accuracy']:.0%}.",
    )


def comparison_chart(
    rows: Rows, width: int, *, order: Sequence[str], legend: str, finding: str, how: str
) -> alt.LayerChart:
    """The same components in several ways: by path, or by rank.

    Parameters
    ----------
    rows : node, way (one of ``order``), share
    width : px of the whole figure
    order : the ways, ours first; a fifth one is drawn in grey
    legend, finding, how : title of the legend, of the picture, and the line below it
    """
    ways = list(order)
    range_ = [*categories(min(4, len(ways))), *[colour("baseline")] * max(0, len(ways) - 4)]
    shapes = ["circle", "square", "diamond", "triangle-up", "cross"][: len(ways)]
    nodes = list(dict.fromkeys(row["node"] for row in rows))
    data = [{"node": row["node"], "way": row["way"], "share": row["share"]} for row in rows]
    low, high = (choose([0.0, *(row["share"] for row in rows)]) for choose in (min, max))
    margin = 0.05 * (high - low or 1.0)
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
    y = node_axis(nodes)
    spans = [
        {"node": node, "low": min(of_node), "high": max(of_node)}
        for node in nodes
        if (of_node := [row["share"] for row in rows if row["node"] == node])
    ]
    leaders = (
        alt.Chart(alt.InlineData(values=spans))
        .mark_rule(style=style("leader"), opacity=0.6)
        .encode(y=y, x=alt.X("low:Q", scale=scale), x2="high:Q")
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"at": 0}]))
        .mark_rule(style=style("zero"))
        .encode(x=alt.X("at:Q", scale=scale))
    )
    points = (
        alt.Chart(alt.InlineData(values=data))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            y=y,
            x=alt.X("share:Q", title="Share of the behaviour", scale=scale, axis=alt.Axis(format="+.0~%", tickCount=5)),
            color=alt.Color(
                "way:N",
                title=legend,
                sort=ways,
                scale=alt.Scale(domain=ways, range=range_),
                legend=alt.Legend(
                    orient="top", titleOrient="left" if width >= 500 else "top", columns=0 if width >= 500 else 3
                ),
            ),
            shape=alt.Shape("way:N", title=legend, sort=ways, scale=alt.Scale(domain=ways, range=shapes)),
        )
    )
    return finished(
        alt.layer(zero, leaders, points).properties(height=alt.Step(LINE)),
        width,
        finding,
        how,
        f"{len(nodes)} components, each in {len(ways)} ways: {', '.join(ways)}; shares from {low:+.1%} to {high:+.1%}.",
    )


def _placed(nodes: Rows) -> dict[str, dict[str, Any]]:
    """Column of each node by the order of its layer, MLPs behind heads, and a lane of its own within it."""
    levels = sorted({(row["layer"], row["head"] is None) for row in nodes})
    placed: dict[str, dict[str, Any]] = {}
    for column, (layer, is_mlp) in enumerate(levels):
        own = [row for row in nodes if (row["layer"], row["head"] is None) == (layer, is_mlp)]
        for lane, row in enumerate(own):
            # Neighbouring layers start half a lane apart, so that a line seldom passes through a node.
            placed[row["node"]] = {
                "node": row["node"],
                "column": column,
                "lane": lane + 0.5 * (column % 2),
                "layer": layer,
                "share": row["share"],
            }
    return placed


def _lane_at(start: Mapping[str, Any], lane: float, column: int, between: int) -> float:
    """Where the line from a node to (column, lane) crosses the column ``between``."""
    part = (between - start["column"]) / (column - start["column"])
    return float(start["lane"] + (lane - start["lane"]) * part)


def _clear_lane(placed: Mapping[str, Mapping[str, Any]], column: int) -> float:
    """The lane of the output at which lines to it pass the nodes between at the greatest distance."""
    lanes = max(place["lane"] for place in placed.values())

    def clearance(lane: float) -> float:
        gaps = [
            abs(_lane_at(start, lane, column, node["column"]) - node["lane"])
            for start in placed.values()
            for node in placed.values()
            if start["column"] < node["column"]
        ]
        return min(gaps, default=0.0)

    middle = lanes / 2
    candidates = sorted((step / 8 for step in range(int(8 * lanes) + 1)), key=lambda lane: abs(lane - middle))
    return max(candidates, key=lambda lane: round(clearance(lane), 6))


def _strips(
    row: Mapping[str, Any], column: float, edges: Sequence[float], bands: Sequence[str]
) -> list[dict[str, Any]]:
    """One component's cell: strips of one colour are one rectangle."""
    middle = column if row["head"] is None else row["head"]
    coloured = [(bands[bisect.bisect(edges, row[name])], start, end) for name, start, end in STRIPS]
    cells = []
    for band, group in itertools.groupby(coloured, key=lambda strip: strip[0]):
        some = list(group)
        place = {"x": middle + some[0][1], "x2": middle + some[-1][2]}
        cells.append({**place, "y": row["layer"] - 0.5, "y2": row["layer"] + 0.5, "band": band})
    return cells


def _bands(edges: Sequence[float]) -> list[str]:
    """What each colour between two edges stands for, the lowest first."""
    inner = [
        "about 0" if low < 0 < high else f"{low:+.3g} to {high:+.3g}"
        for low, high in itertools.pairwise(100 * edge for edge in edges)
    ]
    return [
        f"{text} %" if text != "about 0" else text
        for text in (f"below {100 * edges[0]:+.3g}", *inner, f"above {100 * edges[-1]:+.3g}")
    ]


def node_axis(nodes: Sequence[str], title: str = "Component") -> alt.Y:
    """One line for each component."""
    return alt.Y(
        "node:N",
        title=title,
        sort=None,
        scale=alt.Scale(type="point", domain=list(nodes), padding=0.6),
        axis=alt.Axis(grid=False),
    )


def _named(row: Mapping[str, Any]) -> str:
    return f"{'MLP' if row['head'] is None else 'head'} {row['layer']}" + (
        "" if row["head"] is None else f".{row['head']}"
    )


def _every(count: int, most: int) -> list[int]:
    step = max(1, -(-count // most))
    return list(range(0, count, step))


def finished(chart: Any, width: int, finding: str, how: str, description: str) -> alt.LayerChart:
    """A chart with its width, margins, title, the line below it, and its description."""
    made: alt.LayerChart = chart.properties(
        width=width,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": 16, "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, int((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, int((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )
    return made
