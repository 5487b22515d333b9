"""Pictures of machine-text, each from a plain table and a width in pixels to an Altair chart.

Blue is what is asked about (or, where labels are known, what machines wrote), grey is calibration, green what people
wrote; a black rule is a threshold.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from answerable.provenance.detection_curves import density, evenly, padded_range, scores_of, tpr_at
from answerable.theme import colour, round_edges, steps, style, visible

MOST_POINTS = 1500  # of one kind in a scatter
MOST_CURVE = 400  # points of one curve
MOST_WORDS = 240  # tokens drawn of a longer text
TICKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10_000, 100_000)
LONGEST = 16  # characters of a token
SIGNS = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
TITLE_PX, SUBTITLE_PX, TEXT_PX = 8.7, 6.8, 7.4  # px that a character takes
ABOVE: dict[str, Any] = {"titleAlign": "left", "titleX": -34}  # a long title begins above the numbers, not left of them
_RULES = ("", "Black rule: the threshold.", "Black rules: the thresholds, one for each pool of lengths.")
GROUPS = ("calibration", "asked", "human", "machine")
GROUP_WORDS = {
    "calibration": "calibration",
    "asked": "asked about",
    "human": "human",
    "machine": "machine",
}


def densities(scores: pl.DataFrame, thresholds: Sequence[float], width: int, *, name: str) -> alt.LayerChart:
    """The density of the scores of each group, with the thresholds.

    Parameters
    ----------
    scores : group (calibration, asked, human, machine) and score, finite
    thresholds : of the pools, in the scores' unit
    width : px of the whole figure
    name : what the score is, with its unit
    """
    low, high = padded_range([*scores["score"].to_list(), *thresholds])
    groups = [group for group in GROUPS if (scores["group"] == group).any()]
    curves = {group: density(scores_of(scores, group), low, high) for group in groups}
    top = max(float(curve.max()) for _, curve in curves.values())
    x_scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x = alt.X("score:Q", title=name, scale=x_scale)
    scale = alt.Scale(domain=[0, top * 1.18], nice=False)
    y = alt.Y("density:Q", title="Density [1 / unit of the score]", scale=scale, axis=alt.Axis(**ABOVE))
    layers: list[Any] = []
    for group in groups:
        grid, curve = curves[group]
        rows = [{"score": float(a), "density": float(b)} for a, b in zip(grid, curve, strict=True)]
        drawn = alt.Chart(alt.InlineData(values=rows)).mark_line(**_line(group)).encode(x=x, y=y)
        layers.append(drawn)
    layers += _labels(curves, x, y, low, high, top)
    if thresholds:
        rules = [{"score": float(value)} for value in thresholds]
        layers.append(alt.Chart(alt.InlineData(values=rules)).mark_rule(style=style("threshold")).encode(x="score:Q"))
    medians = {group: float(np.median(scores_of(scores, group))) for group in groups}
    told = "; ".join(f"{GROUP_WORDS[group]} {_signed(value)}" for group, value in medians.items())
    beyond = _beyond(scores, thresholds)
    return _finished(
        alt.layer(*layers).properties(height=220),
        width,
        beyond or f"Median scores: {told}",
        "Lines: densities of scores. " + _RULES[min(len(thresholds), 2)],
        f"Densities of {scores.height} scores. Medians: {told}. {beyond}",
    )


def score_by_length(texts: pl.DataFrame, pools: pl.DataFrame, width: int, *, name: str) -> alt.LayerChart:
    """Each text by its length and score; the band is where human texts of that length are not flagged.

    Parameters
    ----------
    texts : group, length (tokens), score, finite
    pools : kind, low, high (lengths), threshold, finite; empty where nothing was calibrated
    width : px of the whole figure
    name : what the score is, with its unit
    """
    lengths = texts["length"].to_list()
    x_low, x_high = max(1.0, min(lengths) * 0.9), max(lengths) * 1.1
    y_low, y_high = padded_range([*texts["score"].to_list(), *pools["threshold"].to_list()])
    x_scale = alt.Scale(type="log", domain=[x_low, x_high], nice=False)
    y_scale = alt.Scale(domain=[y_low, y_high], nice=False, zero=False)
    ticks = [tick for tick in TICKS if x_low <= tick <= x_high]
    x = alt.X("length:Q", title="Scored tokens, logarithmic", scale=x_scale, axis=alt.Axis(values=ticks, grid=False))
    y = alt.Y("score:Q", title=name, scale=y_scale, axis=alt.Axis(**ABOVE))
    layers: list[Any] = []
    kinds = pools["kind"].n_unique() if pools.height else 0
    if pools.height:
        bands = [
            {
                "from": max(row["low"], x_low),
                "to": min(row["high"] + 0.5, x_high),
                "top": row["threshold"],
                "bottom": y_low,
            }
            for row in pools.iter_rows(named=True)
        ]
        band = alt.Chart(alt.InlineData(values=bands))
        area = {"x": alt.X("from:Q", scale=x_scale), "x2": "to:Q", "y": alt.Y("top:Q", scale=y_scale)}
        if kinds == 1:  # what is below one kind's threshold may be above another's
            layers.append(band.mark_rect(color=colour("zero")).encode(**area, y2="bottom:Q"))
        layers.append(band.mark_rule(style=style("threshold")).encode(**area))
    for group in GROUPS:
        part = texts.filter(pl.col("group") == group)
        rows = evenly(list(part.select("length", "score").iter_rows(named=True)), MOST_POINTS)
        if rows:
            size, shade = (18, 0.55) if group == "calibration" else (34, 0.85)
            points = alt.Chart(alt.InlineData(values=rows)).mark_point(
                shape="circle", filled=True, size=size, opacity=shade, color=_shade(group)
            )
            layers.append(points.encode(x=x, y=y))
    slope = _rank_agreement(texts.filter(pl.col("group") == "calibration"))
    finding = (
        f"In human texts length and score have a rank correlation of {_signed(slope)}"
        if slope is not None
        else f"Scores of {texts.height} texts of {min(lengths):g} to {max(lengths):g} tokens"
    )
    shades = ". ".join(f"{_word(group)}: {GROUP_WORDS[group]}" for group in GROUPS if (texts["group"] == group).any())
    rules = {0: "", 1: " Ground: not flagged at this length; black rule: the threshold."}
    how = f"{shades}." + rules.get(kinds, f" Black rules: the thresholds of {kinds} kinds, each at its lengths.")
    return _finished(
        alt.layer(*layers).properties(height=240),
        width,
        finding,
        how,
        f"{texts.height} texts by length, {min(lengths):g} to {max(lengths):g} tokens, and score; "
        f"{pools.height} thresholds by length.",
    )


def roc_curves(curves: pl.DataFrame, width: int, *, ours: str, control: str) -> alt.LayerChart:
    """Share found against false alarms on a logarithmic axis, for every statistic and the control.

    Parameters
    ----------
    curves : statistic, fpr, tpr, one row a point, and auroc
    width : px of the whole figure
    ours, control : names of the statistic that decides and of the control
    """
    least = float(curves["fpr"].min())  # type: ignore[arg-type]
    decades = [10.0**k for k in range(math.ceil(math.log10(least) - 1e-9), 1)]
    x_scale = alt.Scale(type="log", domain=[least, 1.0], nice=False)
    x = alt.X("fpr:Q", title="False alarms, logarithmic [1]", scale=x_scale, axis=alt.Axis(values=decades, format="~g"))
    y_scale = alt.Scale(domain=[0, 1], nice=False)
    y = alt.Y("tpr:Q", title="Machine texts found [1]", scale=y_scale, axis=alt.Axis(**ABOVE))
    others = [name for name in curves["statistic"].unique(maintain_order=True) if name not in (ours, control)]
    layers: list[Any] = []
    guide = [{"fpr": float(f), "tpr": float(f)} for f in np.geomspace(least, 1.0, 40)]
    layers.append(
        alt.Chart(alt.InlineData(values=guide)).mark_line(style=style("zero"), strokeDash=[1, 3]).encode(x=x, y=y)
    )
    for name in (*others, control, ours):
        rows = list(curves.filter(pl.col("statistic") == name).select("fpr", "tpr").iter_rows(named=True))
        if not rows:
            continue
        if name == ours:
            mark: dict[str, Any] = {"color": colour("ours"), "strokeWidth": 2.5}
        elif name == control:
            mark = {"color": colour("failed"), "strokeWidth": 1.75, "strokeDash": [6, 3]}
        else:
            mark = {"color": colour("baseline"), "strokeWidth": 1, "opacity": 0.6}
        drawn = alt.Chart(alt.InlineData(values=evenly(rows, MOST_CURVE))).mark_line(interpolate="step-after", **mark)
        layers.append(drawn.encode(x=x, y=y))
    areas = {row["statistic"]: row["auroc"] for row in curves.unique("statistic").iter_rows(named=True)}
    at_one = tpr_at(curves.filter(pl.col("statistic") == ours), 0.01)
    finding = f"At 1 % false alarms {ours} finds {at_one:.0%} of machine texts"
    legend = f"Blue: {ours}, AUROC {areas[ours]:.3f}. Red, dashed: {control}, AUROC {areas[control]:.3f}."
    grey = f" Grey: {', '.join(others)}." if others else ""
    return _finished(
        alt.layer(*layers).properties(height=260),
        width,
        finding,
        legend + grey + " Dotted: guessing.",
        f"ROC curves of {len(areas)} scores, false alarms from {least:.2g} to 1. {legend}",
    )


def coloured_text(tokens: pl.DataFrame, width: int, *, title: str, name: str) -> alt.LayerChart:
    """A text, every token on a ground that says how far it speaks for a machine (blue) or against (brown).

    Parameters
    ----------
    tokens : position, token, evidence
    width : px of the whole figure
    title : the finding
    name : what the evidence is, with its unit
    """
    rows = list(tokens.iter_rows(named=True))
    boxes, n_lines = _set_in_lines(rows[:MOST_WORDS], width - 24)
    typical = float(np.quantile(np.abs(tokens["evidence"].to_numpy()), 0.95)) or 1.0
    edges = round_edges(-typical, typical, count=6)
    if len(edges) < 2:
        edges = [-typical / 2, typical / 2]
    height = n_lines * 24
    x_scale, y_scale = alt.Scale(domain=[0, width - 24], nice=False), alt.Scale(domain=[height, 0], nice=False)
    x, y = alt.X("x:Q", scale=x_scale, axis=None), alt.Y("y:Q", scale=y_scale, axis=None)
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        titleOrient="left" if width >= 500 else "top",
        format="+.2~g",
        type="gradient",  # only then has its length a say
        gradientLength=min(320, width - 40),
        titleLimit=0,
    )
    shade = alt.Color("evidence:Q", title=name, scale=alt.Scale(**steps("signed", edges)), legend=legend)
    grounds = alt.Chart(alt.InlineData(values=boxes)).mark_rect().encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=shade)
    words = (
        alt.Chart(alt.InlineData(values=boxes))
        .mark_text(style=style("label"), baseline="middle")
        .encode(
            x=alt.X("middle:Q", scale=x_scale, axis=None), y=alt.Y("line:Q", scale=y_scale, axis=None), text="word:N"
        )
    )
    cut = f" The first {MOST_WORDS} of {len(rows)} tokens." if len(rows) > MOST_WORDS else ""
    most, least = (choose(rows, key=lambda row: row["evidence"]) for choose in (max, min))
    return _finished(
        (grounds + words).properties(height=height),
        width,
        title,
        "Blue grounds speak for a machine, brown ones against." + cut,
        f"The text, {len(rows)} tokens: most for a machine {_quoted(most['token'])} {most['evidence']:+.2f}, "
        f"most against {_quoted(least['token'])} {least['evidence']:+.2f}.",
    )


def shown_token(token: str) -> str:
    """A token as it may be drawn: what cannot be seen written out, at most 16 characters."""
    return visible(token.strip(" ") or ("·" if token else "(empty)"), LONGEST, signs=SIGNS)


def _quoted(token: str) -> str:
    return f"“{shown_token(token)}”"


def _labels(
    curves: dict[str, tuple[np.ndarray, np.ndarray]], x: Any, y: Any, low: float, high: float, top: float
) -> list[Any]:
    """The curves' names, one below the other, on the side where the highest curve is not."""
    grid, tallest = max(curves.values(), key=lambda pair: float(pair[1].max()))
    on_right = grid[int(np.argmax(tallest))] < (low + high) / 2
    align: Any = "right" if on_right else "left"
    layers = []
    for place, group in enumerate(curves):
        row = {"score": high if on_right else low, "density": top * (1.12 - 0.1 * place), "label": GROUP_WORDS[group]}
        text = alt.Chart(alt.InlineData(values=[row])).mark_text(
            style=style("label-strong"), color=_shade(group), align=align, dx=-6 if on_right else 6
        )
        layers.append(text.encode(x=x, y=y, text="label:N"))
    return layers


def _shade(group: str) -> str:
    return colour({"calibration": "baseline", "asked": "ours", "human": "cat3", "machine": "ours"}[group])


def _signed(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _word(group: str) -> str:
    return {"calibration": "Grey", "asked": "Blue", "human": "Green", "machine": "Blue"}[group]


def _line(group: str) -> dict[str, Any]:
    return {"color": _shade(group), "strokeWidth": 2, "strokeDash": [4, 3] if group == "calibration" else [1, 0]}


def _beyond(scores: pl.DataFrame, thresholds: Sequence[float]) -> str:
    """How many lie beyond the threshold, where there is one; with several the table says it."""
    if len(thresholds) != 1:
        return ""
    groups = [group for group in ("asked", "machine", "human") if (scores["group"] == group).any()]
    told = [
        f"{int((scores_of(scores, group) > thresholds[0]).sum())} of {len(scores_of(scores, group))} {_noun(group)}"
        for group in groups
    ]
    return f"{', '.join(told)} lie beyond the threshold" if told else ""


def _noun(group: str) -> str:
    return {"asked": "texts", "machine": "machine texts", "human": "human texts"}[group]


def _rank_agreement(texts: pl.DataFrame) -> float | None:
    if texts.height < 5 or texts["length"].n_unique() < 2 or texts["score"].n_unique() < 2:
        return None
    ranks = texts.select(pl.col("length", "score").rank())
    return float(np.corrcoef(ranks["length"].to_numpy(), ranks["score"].to_numpy())[0, 1])


def _set_in_lines(rows: list[dict[str, Any]], width: float) -> tuple[list[dict[str, Any]], int]:
    """Boxes of tokens set one after the other, broken into lines; and the number of lines."""
    boxes, left, line = [], 0.0, 0
    for row in rows:
        word = shown_token(row["token"])
        wide = TEXT_PX * len(word) + 6
        if left and left + wide > width:
            left, line = 0.0, line + 1
        top = line * 24 + 3
        boxes.append(
            {"x": left, "x2": left + wide - 1, "middle": left + wide / 2 - 0.5, "y": top, "y2": top + 20,
             "line": top + 10, "word": word, "evidence": float(row["evidence"])}
        )  # fmt: skip
        left += wide
    return boxes, line + 1


def _finished(chart: Any, width: int, finding: str, how: str, description: str) -> alt.LayerChart:
    finished: alt.LayerChart = chart.properties(
        width=width,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": 14, "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, int((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, int((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )
    return finished
