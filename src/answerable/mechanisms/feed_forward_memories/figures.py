"""Pictures of feed-forward memories, each from the tables of the answer and a width to an Altair chart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import round_edges, steps, style, visible

if TYPE_CHECKING:
    import polars as pl

TITLE_PX, SUBTITLE_PX, TEXT_PX = 8.7, 6.8, 7.4  # px that a character takes, rather more than less
LONGEST_TOKEN = 14
SIGNS = {"\n": "\u21b5", "\t": "\u21e5", "\r": "\u21b5"}
LINE = 24
MOST_LAYER_ROWS = 64
ROLES = {"ours": "exact", "baseline": "exact-baseline", "control": "exact-baseline"}


def neuron_cards(shades: pl.DataFrame, words: pl.DataFrame, width: int) -> alt.LayerChart:
    """A card for each memory: what it promotes, and its strongest contexts, every token on a ground by its activation.

    Parameters
    ----------
    shades : layer, neuron, sign, rank (from 1), offset (0 the strongest token), token, activation
    words : layer, neuron, sign, promoted, demoted
    """
    chars = int((width - 20) / TEXT_PX)
    heads, notes, boxes = [], [], []
    y = 0
    for card in words.iter_rows(named=True):
        same = [card[name] for name in ("layer", "neuron", "sign")]
        sign = card["sign"].replace("-", "\u2212")
        heads.append(
            {"x": 0, "y": y, "text": visible(f"layer {same[0]}, memory {same[1]}, {sign}", chars, signs=SIGNS)}
        )
        promoted = card["promoted"] or "no output layer to write words to"
        notes.append({"x": 0, "y": y + LINE, "text": visible(f"promotes {promoted}", chars, signs=SIGNS)})
        y += 2 * LINE
        mine = [row for row in shades.iter_rows(named=True) if [row["layer"], row["neuron"], row["sign"]] == same]
        peak = max((abs(row["activation"] or 0.0) for row in mine if row["offset"] == 0), default=1.0) or 1.0
        for rank in sorted({row["rank"] for row in mine}):
            line = [row for row in mine if row["rank"] == rank]
            value = next(row["activation"] for row in line if row["offset"] == 0)
            notes.append({"x": 0, "y": y, "text": f"{value:+.1f}".replace("-", "\u2212")})
            boxes += _set_around(line, peak, y, width)
            y += LINE
        y += 8
    height = max(y, LINE)
    x_scale, y_scale = alt.Scale(domain=[0, width - 24], nice=False), alt.Scale(domain=[height, -12], nice=False)

    def layer(rows: list[dict[str, Any]], look: str, x: str = "x", align: Any = "left") -> alt.Chart:
        return (
            alt.Chart(alt.InlineData(values=rows))
            .mark_text(style=style(look), align=align, baseline="middle")
            .encode(
                x=alt.X(f"{x}:Q", scale=x_scale, axis=None), y=alt.Y("y:Q", scale=y_scale, axis=None), text="text:N"
            )
        )

    grounds = (
        alt.Chart(alt.InlineData(values=boxes))
        .mark_rect()
        .encode(
            x=alt.X("x:Q", scale=x_scale, axis=None), x2="x2:Q",
            y=alt.Y("top:Q", scale=y_scale, axis=None), y2="bottom:Q",
            color=alt.Color(
                "share:Q", title="activation / largest on the card", legend=None,
                scale=alt.Scale(**steps("signed", [-0.6, -0.2, 0.2, 0.6])),
            ),
        )
    )  # fmt: skip
    strongest = [box for box in boxes if box["offset"] == 0]
    finding = _strongest(shades)
    return _finished(
        alt.layer(
            grounds,
            layer([box for box in boxes if box["offset"]], "label", "middle", "center"),
            layer(strongest, "label-strong", "middle", "center"),
            layer(heads, "label-ours"),
            layer(notes, "note"),
        ).properties(height=height),
        width,
        finding,
        "Number: activation at the token in bold. Grounds: blue above 0, amber below, darker from 20% and 60% of the "
        "card's largest. Promotes: tokens raised at the output.",
        f"Cards of {words.height} memories with the tokens each promotes and its three strongest contexts, tokens on "
        f"grounds by activation. {finding}.",
    )


def _set_around(line: list[dict[str, Any]], peak: float, y: float, width: int) -> list[dict[str, Any]]:
    """Boxes of a context's tokens around the strongest, as many as there is room for."""
    by_offset = {row["offset"]: row for row in line}
    middle, left_end, right_end = 0.58 * width, 56.0, width - 26.0
    found = []

    def box(row: dict[str, Any], x: float, x2: float) -> dict[str, Any]:
        share = (row["activation"] or 0.0) / peak
        return {
            "x": x, "x2": x2, "middle": (x + x2) / 2, "y": y, "top": y - 10, "bottom": y + 10,
            "share": min(max(share, -1.0), 1.0), "text": shown_token(row["token"]), "offset": row["offset"],
        }  # fmt: skip

    half = _box_width(by_offset[0]["token"]) / 2
    found.append(box(by_offset[0], middle - half, middle + half))
    for step, edge in ((-1, middle - half), (1, middle + half)):
        offset = step
        while offset in by_offset:
            wide = _box_width(by_offset[offset]["token"])
            near, far = edge + 2 * step, edge + (2 + wide) * step
            if far < left_end or far > right_end:
                break
            found.append(box(by_offset[offset], min(near, far), max(near, far)))
            offset, edge = offset + step, far
    return found


def _box_width(token: str) -> float:
    return TEXT_PX * len(shown_token(token)) + 6


def _strongest(shades: pl.DataFrame) -> str:
    rows = [row for row in shades.iter_rows(named=True) if row["offset"] == 0]
    if not rows:
        return "No memory is ever active"
    best = max(rows, key=lambda row: abs(row["activation"]))
    return (
        f"The strongest activation is {abs(best['activation']):.1f}, of memory {best['neuron']} at "
        f"\u201c{shown_token(best['token'])}\u201d"
    )


def explained_curves(explained: pl.DataFrame, layer: int, width: int) -> alt.LayerChart:
    """Explained variance against k, the layer in question among all others.

    Parameters
    ----------
    explained : layer, k, explained (null where it is undefined)
    """
    rows = [row for row in explained.iter_rows(named=True) if row["explained"] is not None]
    floor = min([row["explained"] for row in rows], default=0.0)
    low = min(0.0, max(floor, -0.5))
    data = [{**row, "shown": max(row["explained"], low)} for row in rows]
    own = [row for row in data if row["layer"] == layer]
    ks = sorted({row["k"] for row in rows})
    x = alt.X(
        "k:Q", title="k, activations kept of each token",
        scale=alt.Scale(type="log", domain=[1, max([2, *ks])], nice=False), axis=alt.Axis(values=ks, format="d"),
    )  # fmt: skip
    y = alt.Y("shown:Q", title="Explained variance [1]", scale=alt.Scale(domain=[low, 1], nice=False))
    others = (
        alt.Chart(alt.InlineData(values=[row for row in data if row["layer"] != layer]))
        .mark_line(style=style("leader"), strokeWidth=1, opacity=0.5)
        .encode(x=x, y=y, detail="layer:N")
    )
    line = alt.Chart(alt.InlineData(values=own)).mark_line(style=style("ours")).encode(x=x, y=y)
    dots = alt.Chart(alt.InlineData(values=own)).mark_point(style=style("exact")).encode(x=x, y=y)
    zero = alt.Chart(alt.InlineData(values=[{"z": 0}])).mark_rule(style=style("zero")).encode(y="z:Q")
    last = own[-1] if own else None
    finding = (
        f"The {last['k']} largest of layer {layer}'s memories explain {last['explained']:.2f} of its output"
        if last
        else f"Layer {layer} writes the same everywhere: nothing to explain"
    )
    cut = " Below the axis: cut off." if floor < low else ""
    return _finished(
        alt.layer(others, line, dots, zero).properties(height=240),
        width,
        finding,
        f"Blue: layer {layer}. Grey: the other layers. A value below 0 is worse than the mean output.{cut}",
        f"Explained variance of layer {layer} by k: "
        + ", ".join(f"{row['k']}: {row['explained']:.2f}" for row in own)
        + f"; grey lines for {len({row['layer'] for row in rows}) - 1} other layers.",
    )


def alignment_histogram(histogram: pl.DataFrame, width: int, *, first: str, second: str) -> alt.LayerChart:
    """Largest cosines of one set with another, beside those of random directions.

    Parameters
    ----------
    histogram : low, high (of each bin), share, null_share [1]
    """
    rows = list(histogram.iter_rows(named=True))
    most = max([row["share"] for row in rows] + [row["null_share"] for row in rows] + [0.01])
    x = alt.X(
        "low:Q",
        title="Largest cosine with any feature of the other [1]",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(values=[edge / 10 for edge in range(-10, 11, 2)], format=".1f"),
    )
    y = alt.Y("share:Q", title="Share [1]", scale=alt.Scale(domain=[0, most * 1.05], nice=False))
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_rect(style=style("ours-soft"))
        .encode(x=x, x2="high:Q", y=y, y2=alt.datum(0))
    )
    steps_of_null = [{"x": edge, "null_share": row["null_share"]} for row in rows for edge in (row["low"], row["high"])]
    null = (
        alt.Chart(alt.InlineData(values=steps_of_null))
        .mark_line(style=style("baseline-bar"))
        .encode(x="x:Q", y="null_share:Q")
    )
    limits = (
        alt.Chart(alt.InlineData(values=[{"x": 0.3}, {"x": 0.9}]))
        .mark_rule(style=style("threshold"), strokeDash=[3, 3])
        .encode(x="x:Q")
    )
    far = sum(row["share"] for row in rows if row["high"] <= 0.3 + 1e-9)
    near = sum(row["share"] for row in rows if row["low"] >= 0.9 - 1e-9)
    finding = f"{far:.0%} of the {first} have no counterpart among the {second}; {near:.0%} have a close one"
    return _finished(
        alt.layer(bars, null, limits).properties(height=220),
        width,
        finding,
        "Blue: largest cosine of each. Grey line: the same of random directions. Dashed: 0.3, unaligned below; 0.9, "
        "aligned from there.",
        f"Histogram of largest cosines: {far:.0%} below 0.3, {near:.0%} from 0.9; random directions lie at "
        f"{_mode(rows):.2f}.",
    )


def score_dots(scores: pl.DataFrame, width: int) -> alt.LayerChart:
    """Each score of each feature set, random controls in grey, in rows by metric.

    Parameters
    ----------
    scores : metric, setting, features, role, value, low, high
    """
    rows = [row for row in scores.iter_rows(named=True) if row["value"] is not None]
    data, labels, names = [], [], []
    for row in rows:
        group = f"{row['metric']}, {row['setting']}"
        if group not in names:
            names.append(group)
        label = visible(f"{row['features']}", 30, signs=SIGNS)
        key = f"{names.index(group):02d} {label}"
        labels.append((key, label, group))
        low, high = row["low"], row["high"]
        data.append(
            {
                "key": key, "value": min(max(row["value"], -0.5), 1.0), "kind": row["role"],
                "low": min(max(row["value"] if low is None else low, -0.5), 1.0),
                "high": min(max(row["value"] if high is None else high, -0.5), 1.0),
                "said": f"{row['value']:.3f}".replace("-", "\u2212"),
            }
        )  # fmt: skip
    order, heads = [], []
    for group in names:
        order.append(f"{group}")
        heads.append({"key": group, "text": group})
        order += dict.fromkeys(key for key, _, name in labels if name == group)
    low_end = min([0.0, *(row["low"] for row in data)])
    x_scale = alt.Scale(domain=[low_end, 1], nice=False)
    y = alt.Y(
        "key:N", title=None, sort=None, scale=alt.Scale(type="point", domain=order, padding=0.6), axis=None,
    )  # fmt: skip
    x = alt.X("value:Q", title="Score [1]", scale=x_scale)
    named = [{"key": key, "text": label} for key, label, _ in dict.fromkeys(labels)]
    space = 190 if width >= 500 else 150
    layers: list[Any] = [
        alt.Chart(alt.InlineData(values=heads))
        .mark_text(style=style("label-strong"), align="left", baseline="middle", dx=-space)
        .encode(x=alt.datum(low_end, scale=x_scale), y=y, text="text:N"),
        alt.Chart(alt.InlineData(values=named))
        .mark_text(style=style("note"), align="left", baseline="middle", dx=-space + 10)
        .encode(x=alt.datum(low_end, scale=x_scale), y=y, text="text:N"),
    ]
    for role, rule, dot in (
        ("ours", "interval", "exact"), ("baseline", "interval-undecided", "undecided"),
        ("control", "interval-baseline", "exact-baseline"),
    ):  # fmt: skip
        mine = [row for row in data if row["kind"] == role]
        chart = alt.Chart(alt.InlineData(values=mine))
        layers.append(chart.mark_rule(style=style(rule)).encode(y=y, x=alt.X("low:Q", scale=x_scale), x2="high:Q"))
        layers.append(chart.mark_point(style=style(dot), filled=True).encode(y=y, x=x))
    numbers = (
        alt.Chart(alt.InlineData(values=data))
        .mark_text(style=style("note"), align="right", baseline="middle", dx=46)
        .encode(y=y, x=alt.datum(1, scale=x_scale), text="said:N")
    )
    by_role: dict[str, dict[tuple[str, str], float]] = {"ours": {}, "control": {}}
    for row in reversed(rows):  # the first of each kind stays: the whole set, not its top k
        if row["role"] in by_role:
            by_role[row["role"]][row["metric"], row["setting"]] = row["value"]
    both = [group for group in reversed(by_role["ours"]) if group in by_role["control"]]
    told = next((group for group in both if group[0] == "sparse probing"), both[0] if both else None)
    finding = (
        f"{told[0].capitalize()}, {told[1]}: {by_role['ours'][told]:.2f} for the memories, "
        f"{by_role['control'][told]:.2f} for random ones"
        if told
        else f"{len(rows)} scores of {len({row['features'] for row in rows})} feature sets"
    )
    return _finished(
        alt.layer(*layers, numbers).properties(height=alt.Step(18)),
        width,
        finding,
        "Blue: the model's own memories. Amber: learned features. Grey: random control. Bar: interval or spread over "
        "seeds.",
        f"Dots of {len(rows)} scores in {len(names)} groups, the most reliable first. {finding}.",
        right=52,
    )


def layer_map(
    layers: pl.DataFrame, metrics: Sequence[tuple[str, str]], width: int, *, focus: int, k: int
) -> alt.LayerChart:
    """Layers by what was measured of them, each number on a ground.

    Parameters
    ----------
    layers : layer, and one column of shares for each metric
    metrics : (column, title) to be shown
    focus : number of the layer that the answer looks at
    k : activations kept for the first metric, explained variance
    """
    rows = list(layers.iter_rows(named=True))[:MOST_LAYER_ROWS]
    data: list[dict[str, Any]] = [
        {
            "layer": str(row["layer"]), "metric": title,
            "value": None if row[column] is None else min(max(row[column], -1.0), 1.0),
            "said": "-" if row[column] is None else f"{row[column]:.2f}".replace("-", "\u2212"),
        }
        for row in rows
        for column, title in metrics
    ]  # fmt: skip
    titles = [title for _, title in metrics]
    x = alt.X(
        "metric:N", title="Measured", sort=titles, axis=alt.Axis(orient="top", labelAngle=0, labelLimit=width // 4)
    )
    y = alt.Y("layer:N", title="Layer", sort=[str(row["layer"]) for row in rows])
    present = [cell for cell in data if cell["value"] is not None]
    edges = round_edges(0, 1, count=5)
    cells = (
        alt.Chart(alt.InlineData(values=present))
        .mark_rect()
        .encode(x=x, y=y, color=alt.Color("value:Q", legend=None, scale=alt.Scale(**steps("seq", edges))))
    )
    dark = [cell for cell in data if cell["value"] is not None and cell["value"] >= edges[2]]
    light = [cell for cell in data if cell["value"] is None or cell["value"] < edges[2]]
    numbers = alt.Chart(alt.InlineData(values=light)).mark_text(style=style("label")).encode(x=x, y=y, text="said:N")
    on_dark = [
        alt.Chart(alt.InlineData(values=dark)).mark_text(style=style(look)).encode(x=x, y=y, text="said:N")
        for look in ("halo", "label")
    ]
    column = metrics[0][0]
    best = max((row for row in rows if row[column] is not None), key=lambda row: row[column], default=None)
    finding = (
        f"The {k} largest activations explain most in layer {best['layer']}: {best[column]:.2f}"
        if best
        else "Nothing varies"
    )
    return _finished(
        alt.layer(cells, numbers, *on_dark).properties(height=alt.Step(20)),
        width,
        finding,
        "Explained: share of the output's variance. First token: share of its squared size at the first token of each "
        f"run. Layer {focus}'s memories are compared.",
        f"Map of {len(rows)} layers by {len(titles)} numbers. {finding}.",
    )


def shown_token(token: str) -> str:
    """A token as it may be drawn: spaces trimmed, what cannot be seen written out, cut short."""
    return visible(token.strip(" ") or ("(space)" if token else "(empty)"), LONGEST_TOKEN, signs=SIGNS)


def _mode(rows: list[dict[str, Any]]) -> float:
    best = max(rows, key=lambda row: row["null_share"])
    return float(best["low"] + best["high"]) / 2


def _finished(
    chart: Any, width: int, finding: str, how: str, description: str, *, left: int = 14, right: int = 12
) -> alt.LayerChart:
    return chart.properties(
        width=width,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": left, "right": right, "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, int((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, int((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()[:40]),
    )
