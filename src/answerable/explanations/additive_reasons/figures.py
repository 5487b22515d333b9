"""Pictures of reasons and changes, each from a plain table and a width in pixels to an Altair chart."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import style, visible

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 30  # features drawn one by one
LINE = 22  # px from one row to the next
LONGEST_LABEL = 34  # characters
# px that a character takes at 16 px semibold, 13 px and 12 px, rather more than less
TITLE_PX, SUBTITLE_PX, TEXT_PX = 8.7, 6.8, 6.9
BINS = 40


def margin_cascade(features: pl.DataFrame, width: int, *, case: Mapping[str, Any], margin: float) -> alt.LayerChart:
    """One cascade of what each feature can take away, largest first, cut by two lines: the change and the reason.

    Parameters
    ----------
    features : feature, value, excess, in_reason, in_change; of one case
    width : px of the whole figure
    case : row, decision, reason_size, change_size
    margin : distance of the score from the line
    """
    rows, total = [], 0.0
    for row in features.sort("excess", descending=True, maintain_order=True).iter_rows(named=True):
        rows.append(row | {"from": total, "to": total + row["excess"], "label": _label(row)})
        total += row["excess"]
    shown, rest = rows[:MOST_ROWS], rows[MOST_ROWS:]
    end = max(total, margin) * 1.02 or 1.0
    data = [
        {
            "label": row["label"], "from": row["from"], "to": row["to"],
            "part": "reason" if row["in_reason"] else "rest", "value": f"{row['excess']:.3g}",
        }
        for row in shown
    ]  # fmt: skip
    y = _axis_of([row["label"] for row in shown], "Feature", width)
    x = alt.X(
        "from:Q", title="Taken away, added up [score]", scale=alt.Scale(domain=[0, end], nice=False), axis=_ticks(width)
    )
    chart = alt.Chart(alt.InlineData(values=data))
    bars: Any = alt.layer(
        *(
            alt.Chart(alt.InlineData(values=[entry for entry in data if entry["part"] == part]))
            .mark_bar(style=style(look), height=13)
            .encode(x=x, x2="to:Q", y=y)
            for part, look in (("reason", "ours-bar"), ("rest", "baseline-bar"))
            if any(entry["part"] == part for entry in data)
        )
    )
    lines = [{"x": margin, "word": "margin: the decision flips"}]
    if 0 < total - margin < end:
        lines.append({"x": total - margin, "word": "total less margin: the reason ends"})
    rules = (
        alt.Chart(alt.InlineData(values=lines)).mark_rule(style=style("threshold"), strokeDash=[4, 3]).encode(x="x:Q")
    )
    numbers = chart.mark_text(style=style("note"), align="right", dx=46).encode(x=alt.datum(end), y=y, text="value:N")
    size, changed = case["reason_size"], case["change_size"]
    flips = f"changing {_count(changed)} flips it" if changed else "no change flips it"
    decision = f"the decision “{_shown(case['decision'])}” of row {case['row']}"
    finding = f"{_capital(_count(size))} settle {decision}; {flips}"
    how = (
        "Bars, largest first: the most that each feature can take away. Blue: the reason. Dashed lines: the margin "
        f"({margin:.3g}), where the decision flips, and total less margin ({max(total - margin, 0):.3g}), which "
        "the reason has to reach."
        if total > margin
        else f"Bars, largest first: the most that each feature can take away. All together ({total:.3g}) stay below the"
        f" margin ({margin:.3g})."
    )
    if rest:
        how += f" The {MOST_ROWS} largest of {len(rows)}."
    top = rows[0]
    return _finished(
        bars + rules + numbers, width, finding, how,
        f"Cascade of {len(rows)} features: {_shown(top['feature'])} can take away most, {top['excess']:.3g}; "
        f"all together {total:.3g} against a margin of {margin:.3g}. {size} belong to the reason.",
        right=56,
    )  # fmt: skip


def shapley_bars(features: pl.DataFrame, width: int, *, output: str, row: int) -> alt.LayerChart:
    """What each feature moved the score, the probability or the decision, most first.

    Parameters
    ----------
    features : feature, value, shapley, error; of one case
    width : px of the whole figure
    output : score, probability or class
    row : number of the case
    """
    rows = [
        entry
        | {"label": _label(entry), "low": entry["shapley"] - entry["error"], "high": entry["shapley"] + entry["error"]}
        for entry in sorted(features.iter_rows(named=True), key=lambda entry: -abs(entry["shapley"]))
    ]
    shown = rows[:MOST_ROWS]
    most = max(max(abs(entry["low"]), abs(entry["high"])) for entry in rows) * 1.05 or 1.0
    data = [
        _picked(entry, "label", "shapley", "low", "high") | {"value": f"{entry['shapley']:+.3f}".replace("-", "−")}
        for entry in shown
    ]
    unit = {"score": "score", "probability": "probability", "class": "share of decisions"}[output]
    y = _axis_of([entry["label"] for entry in shown], "Feature", width)
    scale = alt.Scale(domain=[-most, most], nice=False)
    x = alt.X("shapley:Q", title=f"Shapley value [{unit}]", scale=scale, axis=_ticks(width))
    chart = alt.Chart(alt.InlineData(values=data))
    bars = chart.mark_bar(style=style("ours-soft"), height=11).encode(x=x, y=y)
    points = chart.mark_point(style=style("exact"), size=55).encode(x="shapley:Q", y=y)
    numbers = chart.mark_text(style=style("note"), align="right", dx=54).encode(x=alt.datum(most), y=y, text="value:N")
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(style=style("zero")).encode(x="x:Q")
    bounded = any(entry["error"] > 0 for entry in rows)
    layers = bars + zero + points
    if bounded:
        layers += chart.mark_rule(style=style("interval")).encode(x="low:Q", x2="high:Q", y=y)
    top = rows[0]
    direction = "up" if top["shapley"] >= 0 else "down"
    finding = f"{_shown(top['feature'])} moved the {output} of row {row} most: {direction} by {abs(top['shapley']):.3f}"
    how = "Bar and diamond: Shapley value, " + ("whisker: its proved bounds." if bounded else "exact.")
    if len(rows) > len(shown):
        how += f" The {MOST_ROWS} largest of {len(rows)}."
    least = min(rows, key=lambda entry: entry["shapley"])
    return _finished(
        layers + numbers, width, finding, how,
        f"Bars of {len(shown)} Shapley values of the {output}, from {least['shapley']:+.3f} "
        f"({_shown(least['feature'])}) to {max(entry['shapley'] for entry in rows):+.3f}.",
        right=64,
    )  # fmt: skip


def score_distribution(scores: pl.DataFrame, width: int, *, case: Mapping[str, Any]) -> alt.LayerChart:
    """Scores of random completions, with nothing known and with the reason known, beside the line.

    Parameters
    ----------
    scores : nothing, reason: scores less the cutoff of random completions
    width : px of the whole figure
    case : row, decision, reason_size
    """
    every = [*scores["nothing"].to_list(), *scores["reason"].to_list(), 0.0]
    low, high = min(every), max(every)
    step = (high - low) / BINS or 1.0
    data: list[dict[str, Any]] = []
    for name, label in (("nothing", "nothing known"), ("reason", "reason known")):
        counts = [0] * (BINS + 1)
        for score in scores[name].to_list():
            counts[int((score - low) / step)] += 1
        most = max(counts)
        data += [
            {"from": low + k * step, "to": low + (k + 1) * step, "top": count / most, "label": label}
            for k, count in enumerate(counts)
            if count
        ]
    x_scale = alt.Scale(domain=[low - step, high + 2 * step], nice=False)
    labels = ["nothing known", "reason known"]
    layers = []
    for label, look in zip(labels, ("baseline-bar", "ours-soft"), strict=True):
        part = alt.Chart(alt.InlineData(values=[entry for entry in data if entry["label"] == label]))
        bars = part.mark_rect(style=style(look)).encode(
            x=alt.X("from:Q", title="Score less cutoff [score]", scale=x_scale, axis=_ticks(width)), x2="to:Q",
            y=alt.Y("bottom:Q", title="Completions", axis=alt.Axis(labels=False, grid=False),
                    scale=alt.Scale(domain=[0, 2.3], nice=False)),
            y2="top:Q",
        )  # fmt: skip
        layers.append(bars)
    for entry in data:
        base = 1.2 if entry["label"] == "nothing known" else 0.0
        entry["bottom"], entry["top"] = base, base + entry["top"]
    words = [{"x": low, "y": 2.22, "word": "Nothing known"}, {"x": low, "y": 1.02, "word": "The reason known"}]
    text = alt.Chart(alt.InlineData(values=words)).mark_text(
        style=style("label-strong"), align="left", baseline="bottom"
    )
    line = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(style=style("threshold")).encode(x="x:Q")
    texts = text.encode(x="x:Q", y=alt.Y("y:Q"), text="word:N")
    own = case["score"] >= 0
    stays = [sum((s >= 0) == own for s in scores[name].to_list()) / scores.height for name in ("nothing", "reason")]
    finding = (
        f"With {_count(case['reason_size'])} known, {stays[1]:.0%} of completions keep the decision "
        f"“{_shown(case['decision'])}”; with none, {stays[0]:.0%}"
    )
    how = (
        f"Scores of {scores.height:,} random completions of row {case['row']}, unknown features drawn evenly. Line: "
        "where one decision becomes the other."
    )
    return _finished(
        _layered(*layers, line, texts).properties(height=170), width, finding, how,
        f"Two histograms of scores from {low:.3g} to {high:.3g}: {stays[0]:.0%} of completions keep the decision with "
        f"nothing known, {stays[1]:.0%} with the reason known.",
        right=16,
    )  # fmt: skip


def complexity_map(kinds: pl.DataFrame, width: int, *, source: str, exact: int, queries: int) -> alt.LayerChart:
    """How hard each question is for each kind of additive model in the worst case, with this model's line marked.

    Parameters
    ----------
    kinds : kind, query, hardness, here
    width : px of the whole figure
    source : what the model is
    exact, queries : how many questions to it are answered exactly, and how many there are
    """
    rows = list(kinds.iter_rows(named=True))
    lines = list(dict.fromkeys(row["kind"] for row in rows))
    asked = list(dict.fromkeys(row["query"] for row in rows))
    x = alt.X(
        "query:N", title="Question", sort=None, scale=alt.Scale(type="band", domain=asked, padding=0.06),
        axis=alt.Axis(grid=False, orient="top", titleAnchor="start", labelAngle=0 if width >= 500 else -45),
    )  # fmt: skip
    y = alt.Y(
        "kind:N", title="Values and components", sort=None, scale=alt.Scale(type="band", domain=lines, padding=0.08),
        axis=alt.Axis(grid=False, labelLimit=250 if width >= 500 else 150),
    )  # fmt: skip
    easy = [_picked(row, "kind", "query") for row in rows if row["hardness"] == "P"]
    layers = [alt.Chart(alt.InlineData(values=easy)).mark_rect(style=style("ours-soft")).encode(x=x, y=y)]
    for here, look in ((True, "label-strong"), (False, "note")):
        cells = [_picked(row, "kind", "query", "hardness") for row in rows if row["here"] == here]
        if cells:
            words = alt.Chart(alt.InlineData(values=cells)).mark_text(style=style(look), align="center")
            layers.append(words.encode(x=x, y=y, text="hardness:N"))
    own = next((row["kind"] for row in rows if row["here"]), "")
    finding = f"{exact} of {queries} questions to this {_shown(source)} are answered exactly, whatever the row"
    place = (
        f"Bold: the line of this model ({own.lower()})."
        if own
        else ("This model stands outside: pairs, several classes or a tolerance make reasons NP-hard.")
    )
    how = f"The worst case by kind of model. Blue, P: polynomial. Others: as hard as the class named. {place}"
    words_of = "; ".join(f"{kind} {', '.join(r['hardness'] for r in rows if r['kind'] == kind)}" for kind in lines[:2])
    return _finished(
        _layered(*layers), width, finding, how,
        f"Map of {len(lines)} kinds of models by {len(asked)} questions. {words_of}. {place}",
        right=16 if width >= 500 else 40,
    )  # fmt: skip


def _picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _layered(*charts: Any) -> Any:
    return alt.layer(*charts)


def _label(row: Mapping[str, Any]) -> str:
    return _shown(f"{row['feature']} = {row['value']}")


def _shown(text: str) -> str:
    return visible(text, LONGEST_LABEL)


def _count(number: int) -> str:
    words = ["no feature", "one feature", "two features", "three features", "four features", "five features"]
    return words[number] if number < len(words) else f"{number} features"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ticks(width: int) -> alt.Axis:
    """So few labels that long numbers stand apart."""
    return alt.Axis(tickCount=8 if width >= 500 else 4)


def _axis_of(labels: list[str], title: str, width: int) -> alt.Y:
    return alt.Y(
        "label:N", title=title, sort=None,
        scale=alt.Scale(type="point", domain=labels, padding=0.6),
        axis=alt.Axis(grid=False, labelLimit=250 if width >= 500 else 120),
    )  # fmt: skip


def _finished(
    chart: alt.LayerChart, width: int, finding: str, how: str, description: str, *, right: int
) -> alt.LayerChart:
    """Title, subtitle, description and size; ``right`` px are left for what reaches past the axis."""
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
