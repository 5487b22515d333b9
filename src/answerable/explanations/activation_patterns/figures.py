"""Pictures of activation patterns, each from a plain table and a width in pixels to an Altair chart.

Blue is the pattern - what a term carries of the target; grey is the model's own curve and its size, the baseline.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import hatch, round_edges, steps, style

if TYPE_CHECKING:
    import polars as pl

LINE = 22  # px from one row to the next
MOST_TERMS = 24
MOST_CURVES = 6
TITLE_PX, SUBTITLE_PX = 8.7, 6.8  # px that a character takes, rather more than less
LONGEST_LABEL = 22
SUPPRESSORS = ("suppressor", "negative suppressor")


def deviations(terms: pl.DataFrame, width: int, *, unit: str = "log-odds") -> Any:
    """Of every term, how far the model's curve and the pattern curve spread, with intervals and the verdict.

    Parameters
    ----------
    terms : term, kind, sd_model, sd_model_low, sd_model_high, sd_pattern, sd_pattern_low, sd_pattern_high, product,
        slope_low, slope_high, verdict
    width : px of the whole figure
    unit : of the deviations
    """
    rows, which = _largest(terms)
    narrow = width < 500
    title = f"Deviation [{unit}]" if narrow else f"Standard deviation of the curve [{unit}]"
    highs = [row[name] for row in rows for name in ("sd_model_high", "sd_pattern_high")]
    end = max((high for high in highs if math.isfinite(high)), default=0.0) * 1.05 or 1.0
    for row in rows:
        row["sd_model_high"], row["sd_pattern_high"] = min(row["sd_model_high"], end), min(row["sd_pattern_high"], end)
        del row["slope_low"], row["slope_high"]  # infinite for a term without weight, which JSON cannot say
    x_scale = alt.Scale(domain=[0, end], nice=False)
    axis = alt.Axis(tickCount=4 if narrow else 6)
    chart = alt.Chart(alt.InlineData(values=rows))
    y = _term_axis(rows)
    layers: list[Any] = []
    for name, bar, dot, offset in (
        ("sd_model", "interval-baseline", "estimate-baseline", -4),
        ("sd_pattern", "interval", "estimate", 4),
    ):
        x = alt.X(f"{name}_low:Q", title=title, scale=x_scale, axis=axis)
        layers.append(chart.mark_rule(style=style(bar), yOffset=offset).encode(x=x, x2=f"{name}_high:Q", y=y))
        layers.append(
            chart.mark_point(style=style(dot), size=45, yOffset=offset).encode(
                x=alt.X(f"{name}:Q", title=title, scale=x_scale, axis=axis), y=y
            )
        )
    if not narrow:
        layers.append(
            chart.mark_text(style=style("note"), align="left", dx=8).encode(x=alt.datum(end), y=y, text="verdict:N")
        )
    suppressors = [row for row in rows if row["verdict"] in SUPPRESSORS]
    top = max(rows, key=lambda row: row["product"])
    if suppressors:
        worst = max(suppressors, key=lambda row: row["sd_model"])
        finding = (
            f"{_short(worst['term'])} moves the model by {worst['sd_model']:.2f}, its own link with the target is "
            f"{worst['sd_pattern']:.2f}"
        )
    else:
        how_sure = "is most" if top["verdict"] == "informative and used" else "may be most"
        finding = (
            f"{_short(top['term'])} {how_sure} informative and used: the model's curve spreads by "
            f"{top['sd_model']:.2f}, its own link by {top['sd_pattern']:.2f}"
        )
    return _finished(
        alt.layer(*layers).properties(height=alt.Step(LINE)),
        width,
        finding,
        "Grey: spread of the model's curve. Blue: spread of the pattern curve, what the term carries of the target. "
        "Whisker: 95 % interval." + which,
        f"Spread of model and pattern curves of {len(rows)} {called(terms)}; the largest product has "
        f"{_short(top['term'])}, {len(suppressors)} are suppressors.",
        right=28 if narrow else 140,
    )


def slopes(terms: pl.DataFrame, width: int, *, margin: float) -> Any:
    """Height of the pattern curve over height of the model's, with its interval, against the band of suppressors.

    Parameters
    ----------
    terms : term, kind, slope, slope_low, slope_high, sd_model, verdict
    width : px of the whole figure
    margin : half the width of the band
    """
    rows, which = _largest(terms)
    low, high = -1.0, min(max(2.5, *(math.ceil(2 * row["slope"]) / 2 for row in rows)), 5.0)
    for row in rows:
        row["from"], row["to"] = max(row.pop("slope_low"), low), min(row.pop("slope_high"), high)
        row["at"] = min(max(row["slope"], low), high)
    x_scale = alt.Scale(domain=[low, high], nice=False)
    y = _term_axis(rows)
    height = LINE * len(rows)
    rules = hatch(-margin, margin, 0, height, x_per_px=(high - low) / max(width - 200, 100), y_per_px=1.0)
    band = (
        alt.Chart(
            alt.InlineData(values=[rule | {"y": height - rule["y"], "y2": height - rule["y2"]} for rule in rules])
        )
        .mark_rule(style=style("null-hatch"))
        .encode(
            x=alt.X("x:Q", scale=x_scale),
            x2="x2:Q",
            y=alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None),
            y2="y2:Q",
        )
    )
    title = "Pattern curve over model curve [1]"
    layers: list[Any] = [
        alt.Chart(alt.InlineData(values=[{"at": place} for place in (0, 1)]))
        .mark_rule(style=style("zero"))
        .encode(x=alt.X("at:Q", scale=x_scale, title=title))
    ]
    for undecided, rule, dot in ((False, "interval", "estimate"), (True, "interval-undecided", "estimate-undecided")):
        part = [row for row in rows if (row["verdict"] == "undecided") == undecided]
        if part:
            chart = alt.Chart(alt.InlineData(values=part))
            x = alt.X(
                "from:Q",
                title=title,
                scale=x_scale,
                axis=alt.Axis(values=list(range(-1, math.floor(high) + 1)), format="d"),
            )
            layers.append(chart.mark_rule(style=style(rule)).encode(x=x, x2="to:Q", y=y))
            layers.append(chart.mark_point(style=style(dot)).encode(x=alt.X("at:Q", title=title, scale=x_scale), y=y))
    verdicts = terms["verdict"].to_list()
    inside, what = verdicts.count("suppressor"), called(terms)
    finding = (
        f"{inside} of {terms.height} {what} {'lies' if inside == 1 else 'lie'} within the band of suppressors"
        if inside
        else f"None of {terms.height} {what} is shown to be a suppressor"
    )
    return _finished(
        alt.layer(band, alt.layer(*layers)).resolve_scale(y="independent").properties(height=height),
        width,
        finding,
        "1: the term is used as it is linked with the target. 0: used, but linked with nothing. Below 0: used against "
        f"its link. Hatch: within {margin:g} of 0. Dots and whiskers are cut at {low:g} and {high:g}." + which,
        f"Slopes of {len(rows)} {what} with intervals; of all, {inside} wholly within {margin:g} of zero.",
        right=28,
    )


def curves(points: pl.DataFrame, width: int, *, unit: str = "log-odds") -> Any:
    """Model curve and pattern curve of a few features, with where the rows lie.

    Parameters
    ----------
    points : feature, x, word (null for numbers), model, pattern, rows (share of the rows about x)
    width : px of the whole figure
    unit : of the curves
    """
    names = points["feature"].unique(maintain_order=True).to_list()
    across = 1 if width < 500 else 2
    each = (width - 60 - 70 * across) // across
    low = float(min(points["model"].min(), points["pattern"].min()))  # type: ignore[type-var,arg-type]
    high = float(max(points["model"].max(), points["pattern"].max()))  # type: ignore[type-var,arg-type]
    pad = 0.08 * (high - low) or 1.0
    y_scale = alt.Scale(domain=[low - 2 * pad, high + pad], nice=False)
    panels = [
        _curve_panel(points.filter(points["feature"] == name), name, each, y_scale, low - 2 * pad, unit)
        for name in names
    ]
    lines = [alt.hconcat(*panels[start : start + across], spacing=24) for start in range(0, len(panels), across)]
    gaps = {
        name: _spread(part["model"]) - _spread(part["pattern"])
        for name in names
        for part in [points.filter(points["feature"] == name)]
    }
    widest = max(gaps, key=lambda name: abs(gaps[name]))
    wider = "wider than" if gaps[widest] > 0 else "narrower than"
    finding = f"The model's curve of {_short(widest)} is {wider} what it carries of the target"
    how = (
        "Grey: the model's curve. Blue: the pattern curve, the same scaled to its own link with the target. Strokes at "
        f"the foot: where the rows lie, darker for more. {unit.capitalize()} about the mean."
    )
    return alt.vconcat(*lines, spacing=18).properties(
        title=_title(finding, how, width),
        padding={"left": 14, "right": 20, "top": 4, "bottom": 4},
        description=f"Model and pattern curves of {len(names)} features: {', '.join(_short(name) for name in names)}.",
    )


def _curve_panel(points: pl.DataFrame, name: str, width: int, y_scale: alt.Scale, foot: float, unit: str) -> Any:
    """Both curves over numbers, or both levels of each word."""
    rows = points.select("x", "word", "model", "pattern", "rows").to_dicts()
    words = _distinct([_short(row["word"]) for row in rows]) if rows[0]["word"] is not None else []
    for row, word in zip(rows, words, strict=False):
        row["word"] = word
    chart = alt.Chart(alt.InlineData(values=rows))
    x: Any = (
        alt.X(
            "word:N", title=_short(name), sort=None,
            scale=alt.Scale(type="point", domain=words, padding=0.5),
            axis=alt.Axis(labelAngle=-30, labelLimit=90, grid=False),
        )
        if words
        else alt.X("x:Q", title=_short(name), scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickCount=4))
    )  # fmt: skip
    title = unit.capitalize()
    strip = chart.mark_tick(style=style("baseline-bar"), thickness=2, height=8).encode(
        x=x, y=alt.datum(foot), opacity=alt.Opacity("rows:Q", scale=alt.Scale(range=[0.08, 1]), legend=None)
    )
    y = alt.Y("model:Q", title=title, scale=y_scale, axis=alt.Axis(tickCount=4))
    below = alt.Y("pattern:Q", title=title, scale=y_scale)
    if words:
        lines = [
            chart.mark_point(style=style("estimate-baseline"), size=45).encode(x=x, y=y),
            chart.mark_point(style=style("estimate"), size=45).encode(x=x, y=below),
        ]
    else:
        lines = [
            chart.mark_line(style=style("baseline"), strokeWidth=2).encode(x=x, y=y),
            chart.mark_line(style=style("ours"), strokeWidth=2.5).encode(x=x, y=below),
        ]
    return alt.layer(strip, *lines).properties(width=width, height=150)


def pixel_map(pixels: pl.DataFrame, width: int) -> Any:
    """Importance of each pixel, with the pixels that carry the class outlined.

    Parameters
    ----------
    pixels : row, column, importance (summing to 1), truth
    width : px of the whole figure
    """
    rows = pixels.to_dicts()
    cells = [{**row, "right": row["column"] + 1, "below": row["row"] + 1, "truth": bool(row["truth"])} for row in rows]
    most = max(row["importance"] for row in rows) or 1.0
    side = min(width - 120, 320)
    chart = alt.Chart(alt.InlineData(values=cells))
    x = alt.X("column:Q", title="Column [pixels]", scale=alt.Scale(domain=[0, 8], nice=False), axis=_pixel_axis())
    y = alt.Y("row:Q", title="Row", scale=alt.Scale(domain=[8, 0], nice=False), axis=_pixel_axis())
    fills = chart.mark_rect().encode(
        x=x, x2="right:Q", y=y, y2="below:Q",
        color=alt.Color(
            "importance:Q", title="Importance",
            scale=alt.Scale(**steps("seq", round_edges(0.0, most, count=6))),
            legend=_step_legend(width),
        ),
    )  # fmt: skip
    outline = (
        alt.Chart(alt.InlineData(values=[cell for cell in cells if cell["truth"]]))
        .mark_rect(style=style("threshold"), filled=False, strokeWidth=1.5)
        .encode(x=x, x2="right:Q", y=y, y2="below:Q")
    )
    inside = sum(row["importance"] for row in rows if row["truth"])
    return alt.layer(fills, outline).properties(
        width=side,
        height=side,
        title=_title(
            f"{inside:.0%} of the importance lies on pixels that carry the class",
            "Product of model and pattern deviation, aggregated to pixels. Outlined: the pixels that carry the class.",
            width,
        ),
        padding={"left": 14, "right": 20, "top": 4, "bottom": 4},
        description=f"Map of 8 by 8 pixels; {inside:.0%} of the importance lies on the true pixels.",
    )


def pair_map(pairs: pl.DataFrame, width: int) -> Any:
    """Pictures in a picture: in the place of each pixel, which other pixels it makes informative pairs with.

    Parameters
    ----------
    pairs : row, column, other_row, other_column, product, truth (both carry the class)
    width : px of the whole figure
    """
    most = float(pairs["product"].to_numpy().max()) or 1.0
    cells = []
    for pair in pairs.iter_rows(named=True):
        ends = (pair["row"], pair["column"]), (pair["other_row"], pair["other_column"])
        for (row, column), (inner_row, inner_column) in (ends, ends[::-1]):
            x, y = column + 0.05 + 0.9 * inner_column / 8, row + 0.05 + 0.9 * inner_row / 8
            cells.append({"x": x, "x2": x + 0.1125, "y": y, "y2": y + 0.1125, "product": pair["product"]})
    frames = [{"x": x, "x2": x + 1, "y": y, "y2": y + 1} for x in range(8) for y in range(8)]
    x = alt.X("x:Q", title="Column [pixels]", scale=alt.Scale(domain=[0, 8], nice=False), axis=_pixel_axis())
    y = alt.Y("y:Q", title="Row", scale=alt.Scale(domain=[8, 0], nice=False), axis=_pixel_axis())
    grid = (
        alt.Chart(alt.InlineData(values=frames))
        .mark_rect(style=style("zero"), filled=False, strokeWidth=0.4)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )
    fills = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect()
        .encode(
            x=x, x2="x2:Q", y=y, y2="y2:Q",
            color=alt.Color(
                "product:Q", title="Product", scale=alt.Scale(**steps("seq", round_edges(0.0, most, count=6))),
                legend=_step_legend(width),
            ),
        )
    )  # fmt: skip
    total = float(pairs["product"].sum()) or 1.0
    share = float(pairs.filter(pairs["truth"])["product"].sum()) / total
    side = min(width - 90, 520)
    return alt.layer(fills, grid).properties(
        width=side,
        height=side,
        title=_title(
            f"{share:.0%} of the strongest pairs' product joins pixels that carry the class",
            "Each square is a pixel; the picture inside it shows its partners, each where it lies in the image, for "
            f"the {pairs.height} pairs of largest product [log-odds squared].",
            width,
        ),
        padding={"left": 14, "right": 20, "top": 4, "bottom": 4},
        description=f"Map of the {pairs.height} strongest pairs of pixels; {share:.0%} of their product is true.",
    )


def _step_legend(width: int) -> alt.Legend:
    """Edges of the steps, as many as fit: Vega gives a legend of steps one length, whatever it is asked for."""
    return alt.Legend(
        orient="top", direction="horizontal", titleOrient="left" if width >= 500 else "top", format=".3~r",
        labelOverlap="greedy", labelSeparation=10,
    )  # fmt: skip


def _pixel_axis() -> alt.Axis:
    return alt.Axis(values=[0, 2, 4, 6, 8], grid=False, format="d")


def _largest(terms: pl.DataFrame) -> tuple[list[dict[str, Any]], str]:
    """Terms in the order of the model's spread, and a sentence where some are left out.

    Discriminability is left out: of a numeric target it is missing, which JSON cannot say.
    """
    ordered = terms.drop("discriminability", "kind", strict=False).sort("sd_model", descending=True)
    rows = ordered.head(MOST_TERMS).to_dicts()
    for row, label in zip(rows, _distinct([_short(row["term"]) for row in rows]), strict=True):
        row["label"] = label
    left = terms.height - len(rows)
    return rows, f" Of {terms.height} {called(terms)} the {MOST_TERMS} the model uses most." if left else ""


def called(terms: pl.DataFrame) -> str:
    """A plain word where every term is a feature's own."""
    return "features" if set(terms["kind"]) == {"feature"} else "terms"


def _term_axis(rows: list[dict[str, Any]]) -> alt.Y:
    labels = [row["label"] for row in rows]
    return alt.Y(
        "label:N",
        title="Term",
        sort=None,
        scale=alt.Scale(type="point", domain=labels, padding=0.6),
        axis=alt.Axis(grid=False, labelLimit=170),
    )


def _short(name: str) -> str:
    visible = "".join(sign if sign.isprintable() else "�" for sign in str(name))
    return visible if len(visible) <= LONGEST_LABEL else visible[: LONGEST_LABEL - 1] + "…"


def _distinct(labels: list[str]) -> list[str]:
    """Labels that became equal when they were shortened get a number: two rows must not lie on each other."""
    return [
        label if label not in labels[:place] else f"{label} ({labels[:place].count(label) + 1})"
        for place, label in enumerate(labels)
    ]


def _spread(column: pl.Series) -> float:
    numbers = column.to_numpy()
    return float(numbers.max() - numbers.min())


def _title(finding: str, how: str, width: int) -> alt.TitleParams:
    return alt.TitleParams(
        textwrap.wrap(finding, max(20, int((width - 40) / TITLE_PX))),
        subtitle=textwrap.wrap(how, max(20, int((width - 40) / SUBTITLE_PX))),
    )


def _finished(chart: Any, width: int, finding: str, how: str, description: str, *, right: int) -> Any:
    return chart.properties(
        width=width,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": right, "top": 4, "bottom": 4},
        title=_title(finding, how, width),
        description=" ".join(description.split()),
    )
