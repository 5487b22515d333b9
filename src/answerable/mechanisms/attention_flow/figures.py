"""Pictures of attention flow, each from a plain table of one text and a width in pixels to an Altair chart.

Tokens stand in rows in the order of the text. Grey ticks show uniform attention; colour shows flow.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import round_edges, steps, style, visible

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 60  # tokens drawn one by one
FEW_ROWS = 30  # tokens drawn of a longer text
MOST_WORDS = 240  # tokens of a running text that are drawn
MOST_LANES = 24  # positions in the picture of paths
LONGEST_LABEL = 16  # characters
SIGNS = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
CLEARLY = 0.0005  # a difference that three decimals show
LINE = 20  # px from one row to the next
# px that a character takes at 16 px semibold, 13 px and 12 px, rather more than less
TITLE_PX, SUBTITLE_PX, TEXT_PX = 8.7, 6.8, 7.4


def flow_bars(tokens: pl.DataFrame, width: int, *, source: int, most: int = FEW_ROWS) -> alt.LayerChart:
    """A bar of flow for every token, with a tick where uniform attention would end it.

    Parameters
    ----------
    tokens : position, token, flow, null, excess
    width : px of the whole figure
    source : position of the output
    most : tokens drawn of a text of more than 60
    """
    rows = _labelled(tokens)
    focus = _most_above(rows, source)
    shown, which = _fewer(rows, most)
    end = max(1.0, *(row["flow"] for row in rows))
    y = _token_axis(shown)
    x = alt.X("flow:Q", title="Flow [1]", scale=alt.Scale(domain=[0, end], nice=False), axis=_axis(end))
    data = [_picked(row, "label", "flow", "null") | {"value": f"{row['flow']:.3f}"} for row in shown]
    bars = alt.Chart(alt.InlineData(values=data)).mark_bar(style=style("ours-soft"), height=12).encode(x=x, y=y)
    edges = bars.mark_tick(style=style("ours"), thickness=2, height=12)
    nulls = bars.mark_tick(style=style("baseline-bar"), thickness=2, height=18).encode(x="null:Q")
    # The numbers stand at the right edge, whatever the bar's length, so that nothing overlaps on a narrow screen.
    numbers = bars.mark_text(style=style("label"), align="right", dx=44).encode(x=alt.datum(end), text="value:N")
    how = "Bar: largest flow from the token to the output. Grey tick: the same if attention were uniform." + which
    least = min(rows, key=lambda row: row["flow"])
    return _finished(
        bars + edges + nulls + numbers,
        width,
        _range_finding(rows),
        how,
        f"Bars of flow for {len(shown)} tokens, from {least['flow']:.3f} ({_quoted(least['token'])}) to {end:.3f}; "
        f"most above uniform attention is {_quoted(focus['token'])}, {focus['excess']:+.3f}.",
        right=52,
    )


def cut_map(
    tokens: pl.DataFrame, cuts: pl.DataFrame, width: int, *, n_layers: int, most: int = FEW_ROWS
) -> alt.LayerChart:
    """Tokens by layers: how much of each flow's minimum cut lies in which layer.

    Parameters
    ----------
    tokens : position, token, flow, excess, cut_kind
    cuts : position, layer (from 1), capacity
    width : px of the whole figure
    n_layers : number of the last layer
    most : tokens drawn of a text of more than 60
    """
    rows = _labelled(tokens)
    shown, which = _fewer(rows, most)
    by_position = {row["position"]: row for row in shown}
    cells = [
        {
            "label": by_position[cut["position"]]["label"],
            "from": cut["layer"] - 0.5,
            "to": cut["layer"] + 0.5,
            "share": cut["capacity"] / by_position[cut["position"]]["flow"],
        }
        for cut in cuts.iter_rows(named=True)
        if cut["position"] in by_position and by_position[cut["position"]]["flow"] > 0
    ]
    lanes = alt.Chart(alt.InlineData(values=[_picked(row, "label") for row in shown]))
    x_scale = alt.Scale(domain=[0.5, n_layers + 0.5], nice=False, zero=False)
    layers = alt.Axis(values=_whole_ticks(n_layers, 6 if width < 500 else 12), format="d", grid=False)
    grounds = lanes.mark_rule(style=style("zero"), strokeDash=[1, 3]).encode(
        y=_token_axis(shown), x=alt.datum(0.5), x2=alt.datum(n_layers + 0.5)
    )
    marks = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect(height=LINE - 4)
        .encode(
            y=_token_axis(shown),
            x=alt.X("from:Q", title="Layer, from the inputs to the output", scale=x_scale, axis=layers),
            x2="to:Q",
            color=alt.Color(
                "share:Q",
                title="Share of the cut",
                scale=alt.Scale(**steps("seq", [0.1, 0.25, 0.4, 0.55, 0.7, 0.85])),
                legend=_step_legend(width, ".2f"),
            ),
        )
    )
    kinds = [row["cut_kind"] for row in rows if row["cut_kind"] != "none"]
    finding, by_kind = _cut_finding(kinds)
    how = (
        "Row: one token's flow. Cell: the share of its narrowest place (minimum cut) in that layer; dotted: none."
        + which
    )
    return _finished(
        grounds + marks,
        width,
        finding,
        how,
        f"Map of {len(shown)} tokens by {n_layers} layers: where each flow is narrowest. {by_kind}.",
        right=8,
    )


def path_picture(paths: pl.DataFrame, tokens: pl.DataFrame, width: int, *, source: int, sink: int) -> alt.LayerChart:
    """One maximum flow, layer by layer, from an input token on the left to the output on the right.

    Parameters
    ----------
    paths : layer (from 1), from_position (above the layer), to_position (below), flow
    tokens : position, token, flow, cut_layer
    width : px of the whole figure
    source, sink : positions of the output and of the input token
    """
    rows = {row["position"]: row for row in _labelled(tokens)}
    arcs = list(paths.iter_rows(named=True))
    total = rows[sink]["flow"]
    through: dict[int, float] = {source: math.inf, sink: math.inf}
    for arc in arcs:
        for position in (arc["from_position"], arc["to_position"]):
            through[position] = through.get(position, 0.0) + arc["flow"]
    lanes = sorted(sorted(through, key=lambda position: -through[position])[:MOST_LANES])
    least = total / 200
    drawn = [
        arc for arc in arcs if arc["flow"] >= least and arc["from_position"] in lanes and arc["to_position"] in lanes
    ]
    numbers = sorted({arc["layer"] for arc in arcs})
    column = {number: place for place, number in enumerate(numbers)}
    data = [
        {
            "x": column[arc["layer"]],
            "x2": column[arc["layer"]] + 1,
            "y": rows[arc["to_position"]]["label"],
            "y2": rows[arc["from_position"]]["label"],
            "flow": arc["flow"],
        }
        for arc in sorted(drawn, key=lambda arc: arc["flow"])
    ]
    y = _token_axis([rows[position] for position in lanes], field="y")
    depth = len(numbers)
    thickest = LINE * 0.7
    ticks = alt.Axis(values=_whole_ticks(depth, 6 if width < 500 else 12, first=0), format="d", grid=False)
    bands = (
        alt.Chart(alt.InlineData(values=data))
        .mark_rule(style=style("ours"), opacity=0.55, strokeCap="butt")
        .encode(
            x=alt.X(
                "x:Q",
                title="Layers passed, from the inputs to the output",
                scale=alt.Scale(domain=[0, depth], nice=False),
                axis=ticks,
            ),
            x2="x2:Q",
            y=y,
            y2="y2:N",
            strokeWidth=alt.StrokeWidth(
                "flow:Q", scale=alt.Scale(domain=[0, total], range=[0.4, thickest]), legend=None
            ),
        )
    )
    ends = (
        alt.Chart(alt.InlineData(values=[{"x": 0, "y": rows[sink]["label"]}, {"x": depth, "y": rows[source]["label"]}]))
        .mark_point(style=style("exact"), size=110)
        .encode(x="x:Q", y=y)
    )
    kept = sum(arc["flow"] for arc in drawn) / (sum(arc["flow"] for arc in arcs) or 1.0)
    left_out = (
        f" Bands below 1/200 and rows beyond {MOST_LANES} are left out ({kept:.0%} drawn)." if kept < 0.995 else ""
    )
    narrowest = rows[sink]["cut_layer"]
    where = f", narrowest in layer {narrowest}" if narrowest else ""
    finding = f"{_quoted(rows[source]['token'])} can draw {total:.3f} from {_quoted(rows[sink]['token'])}{where}"
    passed = sorted(
        (position for position in through if position not in (source, sink)), key=lambda position: -through[position]
    )
    most_used = f"; most passes {_quoted(rows[passed[0]]['token'])} on its way" if passed else ""
    return _finished(
        bands + ends,
        width,
        finding,
        "Band: flow through one layer, as thick as it is large; level: the residual stream and attention to oneself."
        + left_out,
        f"Flow of {total:.3f} through {depth} layers from {_quoted(rows[sink]['token'])} to "
        f"{_quoted(rows[source]['token'])}{most_used}.",
        right=20,
    )


def flow_against_rollout(tokens: pl.DataFrame, width: int, *, most: int = FEW_ROWS) -> alt.LayerChart:
    """Flow, rollout and the null of every token on one logarithmic axis.

    Parameters
    ----------
    tokens : position, token, flow, rollout, null, excess
    width : px of the whole figure
    most : tokens drawn of a text of more than 60
    """
    rows = _labelled(tokens)
    shown, which = _fewer(rows, most)
    values = [row[name] for row in shown for name in ("flow", "rollout", "null") if row[name] > 0]
    lowest = math.floor(math.log10(min([*values, 0.1])) + 1e-9)
    data = [
        _picked(row, "label") | {name: row[name] if row[name] > 0 else None for name in ("flow", "rollout", "null")}
        for row in shown
    ]
    step = max(1, math.ceil(-lowest / (4 if width < 500 else 8)))
    decades = [10.0**exponent for exponent in range(0, lowest - 1, -step)]
    chart = alt.Chart(alt.InlineData(values=data)).encode(y=_token_axis(shown))
    scale = alt.Scale(type="log", domain=[10.0**lowest, max(1.0, *values)], nice=False)
    leaders = chart.mark_rule(style=style("leader"), opacity=0.5).encode(x="rollout:Q", x2="flow:Q")
    nulls = chart.mark_tick(style=style("baseline-bar"), thickness=2, height=14).encode(x="null:Q")
    rollouts = chart.mark_point(style=style("baseline"), shape="circle", size=55).encode(x="rollout:Q")
    flows = chart.mark_point(style=style("exact")).encode(
        x=alt.X(
            "flow:Q",
            title="Flow or rollout [1], powers of ten",
            scale=scale,
            axis=alt.Axis(values=decades, format=".0e"),
        )
    )
    top = max(rows, key=lambda row: row["rollout"])
    least = min(row["flow"] for row in rows)
    finding = (
        f"Rollout puts {_near_one(top['rollout'])} on {_quoted(top['token'])}; flow gives each of {len(rows)} tokens "
        f"at least {least:.3g}"
    )
    return _finished(
        leaders + nulls + rollouts + flows,
        width,
        finding,
        "Blue diamond: flow. Grey circle: rollout, its lower bound. Grey tick: flow if attention were uniform." + which,
        f"Flow from {least:.3g} to {max(row['flow'] for row in rows):.3g} beside rollout from "
        f"{min(row['rollout'] for row in rows):.1e} to {top['rollout']:.3g}, token by token, on a logarithmic axis.",
        right=20,
    )


def coloured_text(tokens: pl.DataFrame, width: int, *, source: int) -> alt.LayerChart:
    """The text itself, every token on a ground that says how far its flow lies above or below uniform attention.

    Parameters
    ----------
    tokens : position, token, flow, excess
    width : px of the whole figure
    source : position of the output
    """
    rows = list(tokens.iter_rows(named=True))
    focus = _most_above(rows, source)
    detailed = len(rows) <= MOST_ROWS
    boxes, n_lines = _set_in_lines(rows[:MOST_WORDS], width - 24, numbered=detailed)
    most = max(abs(row["excess"]) for row in rows) or 1.0
    edges = round_edges(-most, most, count=6 if detailed else 2)
    if len(edges) < 2:  # a range this narrow has no round edge inside
        edges = [-most / 2, most / 2]
    middle = len(edges) // 2
    grounded = [box for box in boxes if not edges[middle - 1] <= box["excess"] < edges[middle]]  # about zero: no ground
    height = n_lines * (38 if detailed else 24)
    x_scale, y_scale = alt.Scale(domain=[0, width - 24], nice=False), alt.Scale(domain=[height, 0], nice=False)
    x, y = alt.X("x:Q", scale=x_scale, axis=None), alt.Y("y:Q", scale=y_scale, axis=None)
    chart = alt.Chart(alt.InlineData(values=boxes))
    grounds = (
        alt.Chart(alt.InlineData(values=grounded))
        .mark_rect()
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            color=alt.Color(
                "excess:Q",
                title="Above uniform attention",
                scale=alt.Scale(**steps("signed", edges)),
                legend=_step_legend(width, "+.2~g"),
            ),
        )
    )
    words = chart.mark_text(style=style("label"), baseline="middle").encode(
        x=alt.X("middle:Q", scale=x_scale, axis=None), y=alt.Y("line:Q", scale=y_scale, axis=None), text="word:N"
    )
    layers = grounds + words
    if detailed:
        layers += chart.mark_text(style=style("note"), fontSize=11, baseline="bottom").encode(
            x=alt.X("middle:Q", scale=x_scale, axis=None), y=alt.Y("y:Q", scale=y_scale, axis=None), text="number:N"
        )
    how = (
        "Number: flow less the flow under uniform attention." if detailed else "Ground: flow against uniform attention."
    )
    if len(rows) > MOST_WORDS:
        how += f" The first {MOST_WORDS} of {len(rows)} tokens."
    lowest = min(rows, key=lambda row: row["excess"])
    return _finished(
        layers.properties(height=height),
        width,
        _excess_finding(rows, focus),
        how,
        f"The text, {len(rows)} tokens coloured by flow above uniform attention: highest {_quoted(focus['token'])} "
        f"{focus['excess']:+.3f}, lowest {_quoted(lowest['token'])} {lowest['excess']:+.3f}.",
        right=8,
    )


def shown_token(token: str) -> str:
    """A token as it may be drawn: spaces trimmed, what cannot be seen written out, at most 16 characters."""
    return visible(token.strip(" ") or ("(space)" if token else "(empty)"), LONGEST_LABEL, signs=SIGNS)


def _quoted(token: str) -> str:
    return f"\u201c{shown_token(token)}\u201d"


def _labelled(tokens: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows with a label of their own: position and token."""
    return [row | {"label": f"{row['position']}  {shown_token(row['token'])}"} for row in tokens.iter_rows(named=True)]


def _picked(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _most_above(rows: list[dict[str, Any]], source: int) -> dict[str, Any]:
    """The token most above the null, other than the output itself unless it is the only one."""
    others = [row for row in rows if row["position"] != source] or rows
    return max(others, key=lambda row: row["excess"])


def _range_finding(rows: list[dict[str, Any]]) -> str:
    least, most = (choose(rows, key=lambda row: row["flow"]) for choose in (min, max))
    if most["flow"] - least["flow"] < CLEARLY:
        return f"Every flow is {most['flow']:.3f}"
    ends = [f"{row['flow']:.3f} ({_quoted(row['token'])})" for row in (least, most)]
    return f"Flow runs from {ends[0]} to {ends[1]}"


def _excess_finding(rows: list[dict[str, Any]], focus: dict[str, Any]) -> str:
    if len(rows) == 1:
        return f"{_quoted(focus['token'])} has all the flow: {focus['flow']:.3f}"
    if focus["excess"] >= CLEARLY:
        return (
            f"{_quoted(focus['token'])} has a flow of {focus['flow']:.3f}, {focus['excess']:.3f} above uniform "
            f"attention, the most of {len(rows)} tokens"
        )
    lowest = min(rows, key=lambda row: row["excess"])
    if lowest["excess"] > -CLEARLY:
        return f"All {len(rows)} flows are those of uniform attention"
    return (
        f"No token exceeds uniform attention; of {len(rows)}, {_quoted(lowest['token'])} falls furthest below it, by "
        f"{-lowest['excess']:.3f}"
    )


def _fewer(rows: list[dict[str, Any]], most: int) -> tuple[list[dict[str, Any]], str]:
    """All rows of a short text, else ``most`` in text order, those most above the null, and a sentence that says so."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    most = min(most, MOST_ROWS)
    chosen = sorted(sorted(rows, key=lambda row: -row["excess"])[:most], key=lambda row: row["position"])
    return chosen, f" Of {len(rows)} tokens the {most} most above uniform attention."


def _cut_finding(kinds: list[str]) -> tuple[str, str]:
    """The title and a sentence for the description."""
    words = {
        "source": "the last layer alone",
        "sink": "the first layer alone",
        "ends": "the first and last layer together",
        "inside": "the layers between",
    }
    if not kinds:
        return "No flow has a known cut", "No cut is known"
    most = max(words, key=kinds.count)
    count = kinds.count(most)
    involving = "are narrowest in" if most != "inside" else "are narrowest partly in"
    return f"{count} of {len(kinds)} flows {involving} {words[most]}", "; ".join(
        f"{kinds.count(kind)} in {word}" for kind, word in words.items() if kind in kinds
    ).capitalize()


def _set_in_lines(rows: list[dict[str, Any]], width: float, *, numbered: bool) -> tuple[list[dict[str, Any]], int]:
    """Boxes of tokens set one after the other, broken into lines; and the number of lines."""
    line_height, box_height = (38, 20) if numbered else (24, 20)
    boxes, left, line = [], 0.0, 0
    for row in rows:
        word = shown_token(row["token"])
        number = f"{row['excess']:+.2f}".replace("-", "\u2212")
        wide = max(TEXT_PX * len(word) + 8, 6.4 * len(number) + 6 if numbered else 0)
        if left and left + wide > width:
            left, line = 0.0, line + 1
        top = line * line_height + (line_height - box_height)
        boxes.append(
            {
                "x": left,
                "x2": left + wide - 2,
                "middle": left + wide / 2 - 1,
                "y": top,
                "y2": top + box_height,
                "line": top + box_height / 2,
                "word": word,
                "number": number,
                "excess": row["excess"],
            }
        )
        left += wide
    return boxes, line + 1


def _token_axis(rows: list[dict[str, Any]], field: str = "label") -> alt.Y:
    return alt.Y(
        f"{field}:N",
        title="Token",
        sort=None,
        scale=alt.Scale(type="point", domain=[row["label"] for row in rows], padding=0.6),
        axis=alt.Axis(grid=False, labelLimit=170),
    )


def _axis(end: float) -> alt.Axis:
    return alt.Axis(values=[end * part / 4 for part in range(5)], format=".2~f")


def _whole_ticks(last: int, count: int, first: int = 1) -> list[int]:
    step = max(1, math.ceil((last - first) / count))
    return sorted({*range(first, last + 1, step)} - set(range(last - step // 2, last)) | {last})


def _step_legend(width: int, number_format: str) -> alt.Legend:
    # Where a step begins is printed at its left end; on a narrow screen the title stands above.
    return alt.Legend(
        orient="top",
        direction="horizontal",
        titleOrient="left" if width >= 500 else "top",
        format=number_format,
        gradientLength=min(320, width - 40),
        titleLimit=0,
    )


def _near_one(value: float) -> str:
    """Enough digits that a number just below one does not read as one."""
    if not 0.999 < value < 1:
        return f"{value:.3g}"
    return f"{value:.{min(9, 1 - math.floor(math.log10(1 - value)))}f}".rstrip("0")


def _finished(
    chart: alt.LayerChart, width: int, finding: str, how: str, description: str, *, right: int
) -> alt.LayerChart:
    """Title, subtitle, description and size; ``right`` px are left for what reaches past the axis."""
    heights: dict[str, Any] = {} if _has_height(chart) else {"height": alt.Step(LINE)}
    return chart.properties(
        width=width,
        **heights,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": max(right, 8), "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, int((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, int((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )


def _has_height(chart: alt.LayerChart) -> bool:
    return not isinstance(chart.height, alt.utils.schemapi.UndefinedType)
