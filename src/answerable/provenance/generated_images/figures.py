"""Pictures of generated-images, each from a plain table and a width in pixels to an Altair chart.

Blue is what is asked about (or, where labels are known, generated), grey is calibration, green is real; a black rule is
a threshold.
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
from answerable.theme import colour, style

GROUPS = {"calibration": "baseline", "asked": "ours", "real": "cat3", "generated": "ours"}
COLOUR_WORDS = {"calibration": "Grey, dashed", "asked": "Blue", "real": "Green", "generated": "Blue"}
MOST_CURVE = 400  # points of one curve
LEVELS = 7  # steps of ink in a thumbnail
THUMBNAIL = 25  # cells across one
CELL_PX = 2  # whole, so that cells meet without a seam
GAP = 3  # cells between an image and its twin
LABEL_PX = 42
MOST_CELLS = 9000  # a figure holds 10,000 rows
MOST_STABILITY = 24  # images in the matrix
TITLE_PX, SUBTITLE_PX = 8.7, 6.8  # px that a character takes
Grey = np.ndarray


def densities(scores: pl.DataFrame, thresholds: Sequence[float], width: int, *, name: str) -> alt.LayerChart:
    """The density of the scores of each group, each score as a tick below, with the thresholds.

    Parameters
    ----------
    scores : group (calibration, asked, real, generated) and score, finite
    thresholds : of the file types
    width : px of the whole figure
    name : what the score is
    """
    low, high = padded_range([*scores["score"].to_list(), *thresholds])
    groups = [group for group in GROUPS if (scores["group"] == group).any()]
    curves = {group: density(scores_of(scores, group), low, high) for group in groups}
    top = max(float(curve.max()) for _, curve in curves.values())
    x_axis = alt.Axis(tickCount=max(3, width // 90))
    x_scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    x = alt.X("score:Q", title=f"{name} [1]", scale=x_scale, axis=x_axis)
    y_scale = alt.Scale(domain=[-0.06 * top * len(groups), top * 1.08], nice=False)
    y = alt.Y("density:Q", title="Density [1]", scale=y_scale, axis=alt.Axis(tickCount=4))
    layers: list[Any] = []
    for place, group in enumerate(groups):
        grid, curve = curves[group]
        line = [{"score": float(a), "density": float(b)} for a, b in zip(grid, curve, strict=True)]
        dash = [4, 3] if group == "calibration" else [1, 0]
        layers.append(_chart(line).mark_line(color=_shade(group), strokeWidth=2, strokeDash=dash).encode(x=x, y=y))
        row = -0.06 * top * (place + 0.5)
        ticks = [{"score": value, "density": row} for value in evenly(scores_of(scores, group).tolist(), 600)]
        mark = _chart(ticks).mark_tick(orient="vertical", size=7, thickness=1, color=_shade(group), opacity=0.7)
        layers.append(mark.encode(x=x, y=y))
    if thresholds:
        rules = [{"score": float(value)} for value in thresholds]
        layers.append(_chart(rules).mark_rule(style=style("threshold")).encode(x=x))
    medians = {group: float(np.median(scores_of(scores, group))) for group in groups}
    told = "; ".join(f"{group} {value:.3g}" for group, value in medians.items())
    how = ". ".join(f"{COLOUR_WORDS[group]}: {group}" for group in groups)
    beyond = _beyond(scores, thresholds)
    return _finished(
        alt.layer(*layers).properties(height=220),
        width,
        beyond or f"Median scores: {told}",
        f"{how}." + (" Black rule: a threshold." if thresholds else ""),
        f"Densities of {scores.height} scores. Medians: {told}. {beyond}",
    )


def roc_curves(curves: pl.DataFrame, width: int, *, ours: str) -> alt.LayerChart:
    """Share found against false alarms on a logarithmic axis, for every score and the controls.

    Parameters
    ----------
    curves : statistic, fpr, tpr, one row a point, and auroc
    width : px of the whole figure
    ours : name of the score that decides
    """
    least = float(curves["fpr"].min())  # type: ignore[arg-type]
    decades = [10.0**k for k in range(math.ceil(math.log10(least) - 1e-9), 1)]
    x_scale = alt.Scale(type="log", domain=[least, 1.0], nice=False)
    x = alt.X("fpr:Q", title="False alarms, logarithmic [1]", scale=x_scale, axis=alt.Axis(values=decades, format="~g"))
    y = alt.Y("tpr:Q", title="Found [1]", scale=alt.Scale(domain=[0, 1], nice=False))
    names = [name for name in curves["statistic"].unique(maintain_order=True) if name != ours]
    guide = [{"fpr": float(f), "tpr": float(f)} for f in np.geomspace(least, 1.0, 40)]
    layers: list[Any] = [_chart(guide).mark_line(style=style("zero"), strokeDash=[1, 3]).encode(x=x, y=y)]
    told = []
    shades = iter(("cat2", "cat3", "cat4", "undecided"))
    for name in (*names, ours):
        rows = list(curves.filter(pl.col("statistic") == name).select("fpr", "tpr").iter_rows(named=True))
        alone = "alone" in name
        token, word = _shade_of_curve(name, ours, alone, shades)
        mark: dict[str, Any] = {"color": colour(token), "strokeWidth": 2.5 if name == ours else 1.5}
        if alone:
            mark["strokeDash"] = [6, 3] if "type" in name else [2, 3]
        layers.append(_chart(evenly(rows, MOST_CURVE)).mark_line(interpolate="step-after", **mark).encode(x=x, y=y))
        area = curves.filter(pl.col("statistic") == name)["auroc"][0]
        told.append(f"{word}: {name} {area:.3f}")
    at_five = tpr_at(curves.filter(pl.col("statistic") == ours), 0.05)
    return _finished(
        alt.layer(*layers).properties(height=260),
        width,
        f"At 5 % false alarms {ours} finds {at_five:.0%} of generated images",
        f"AUROC. {'. '.join(reversed(told))}. Dotted: guessing.",
        f"ROC curves of {len(told)} scores, false alarms from {least:.2g} to 1. {'; '.join(reversed(told))}.",
    )


def image_sheet(pairs: Sequence[tuple[str, str, Grey, Grey]], width: int, *, title: str) -> alt.LayerChart:
    """Images beside their changed twins, in seven steps of ink, sorted by p-value.

    Parameters
    ----------
    pairs : name, what is said of it, and two (k, k) float arrays from 0 (black) to 1 of image and twin
    width : px of the whole figure
    title : the finding
    """
    side = len(pairs[0][2])
    pair_px = (2 * side + GAP) * CELL_PX
    columns = max(1, int(width // (pair_px + 16)))
    rows_of_level: list[list[dict[str, float]]] = [[] for _ in range(LEVELS)]
    labels, count, drawn = [], 0, 0
    height_px = side * CELL_PX + LABEL_PX
    for place, (name, said, image, twin) in enumerate(pairs):
        left, top = (place % columns) * (pair_px + 16), (place // columns) * height_px
        cells = [
            *_cells(image, left, top),
            *_cells(twin, left + (side + GAP) * CELL_PX, top),
        ]
        if count + len(cells) > MOST_CELLS:
            break
        count += len(cells)
        drawn += 1
        for level, cell in cells:
            rows_of_level[level].append(cell)
        most = int((pair_px + 10) / 6)
        labels += [
            {"x": left, "y": top + side * CELL_PX + 9 + 11 * line, "label": label}
            for line, label in enumerate((*said.split("; "), _cut(name, most)))
        ]
    n_rows = -(-drawn // columns)
    height = n_rows * height_px
    x_scale, y_scale = alt.Scale(domain=[0, width], nice=False), alt.Scale(domain=[height, 0], nice=False)
    x, y = alt.X("x:Q", scale=x_scale, axis=None), alt.Y("y:Q", scale=y_scale, axis=None)
    layers: list[Any] = []
    for level, rows in enumerate(rows_of_level, 1):
        if rows:
            # As a frame: rows given one by one would each be validated, which takes seconds.
            ink = alt.Chart(pl.DataFrame(rows)).mark_rect(color=colour("ink"), opacity=level / LEVELS)
            layers.append(ink.encode(x=x, x2="x2:Q", y=y, y2="y2:Q"))
    text = _chart(labels).mark_text(style=style("label"), align="left", baseline="middle", fontSize=10)
    layers.append(text.encode(x=x, y=y, text="label:N"))
    left_out = f" The first {drawn} of {len(pairs)}." if drawn < len(pairs) else ""
    return _finished(
        alt.layer(*layers).properties(height=height),
        width,
        title,
        f"Each image with its changed twin to the right, in {LEVELS} steps of ink, the lowest p-value first.{left_out}",
        f"{drawn} images with their changed twins, sorted by p-value: {pairs[0][1]} to {pairs[drawn - 1][1]}.",
    )


def stability_matrix(rows: pl.DataFrame, width: int) -> alt.LayerChart:
    """Images by what was done to them: whether the decision stayed.

    Parameters
    ----------
    rows : image, change, same (true, false, null), decision
    width : px of the whole figure
    """
    images = rows["image"].unique(maintain_order=True).to_list()
    shown = images[:MOST_STABILITY]
    changes = rows["change"].unique(maintain_order=True).to_list()
    part = rows.filter(pl.col("image").is_in(shown))
    names = {image: f"{number} {_cut(image, 18)}" for number, image in enumerate(shown, 1)}
    x = alt.X("change:N", title="What was done to the image", sort=changes, axis=alt.Axis(labelAngle=-30))
    y = alt.Y("image:N", title="Image", sort=list(names.values()))
    layers: list[Any] = []
    for same, token, mark in ((True, "zero", "="), (False, "failed", "≠"), (None, "undecided-soft", "?")):
        chosen = part.filter(pl.col("same").is_null() if same is None else pl.col("same") == same)
        cells = [{"image": names[image], "change": change, "mark": mark} for image, change in
                 chosen.select("image", "change").iter_rows()]  # fmt: skip
        if cells:
            layers.append(_chart(cells).mark_rect(color=colour(token), stroke=colour("paper")).encode(x=x, y=y))
            layers.append(_chart(cells).mark_text(style=style("label")).encode(x=x, y=y, text="mark:N"))
    moved = rows.filter(~pl.col("same").fill_null(True))["image"].n_unique()
    return _finished(
        alt.layer(*layers).properties(height=26 * len(shown) + 10),
        width,
        f"{len(images) - moved} of {len(images)} decisions stay when the image is saved or resized again",
        "= the same decision, ≠ the other one, ? undecided after the change."
        + (f" The first {MOST_STABILITY} images." if len(images) > MOST_STABILITY else ""),
        f"Matrix of {len(shown)} images by {len(changes)} changes; {moved} images have a decision that does not stay.",
    )


def thumbnail(pixels: np.ndarray) -> Grey:
    """(k, k) float64 grey means of a square image, from 0 to 1.

    Parameters
    ----------
    pixels : (3, s, s) floats from 0 to 1
    """
    grey = np.tensordot([0.2989, 0.587, 0.114], pixels, axes=1)
    edges = np.linspace(0, grey.shape[0], THUMBNAIL + 1).astype(int)
    sums = np.add.reduceat(np.add.reduceat(grey, edges[:-1], axis=0), edges[:-1], axis=1)
    sides = np.diff(edges)
    return sums / np.outer(sides, sides)


def _cells(image: Grey, left: float, top: float) -> list[tuple[int, dict[str, float]]]:
    """Rectangles of equal ink: runs of a row, joined with like runs below them; white paper is not drawn."""
    ink = np.rint((1 - np.clip(image, 0, 1)) * LEVELS).astype(int)
    cells = []
    above: dict[tuple[int, int, int], dict[str, float]] = {}
    for row, line in enumerate(ink):
        starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
        ends = np.append(starts[1:], len(line))
        here: dict[tuple[int, int, int], dict[str, float]] = {}
        for start, end in zip(starts.tolist(), ends.tolist()):
            run = start, end, int(line[start])
            bottom = round(top + (row + 1) * CELL_PX, 1)
            if run in above:
                here[run] = above[run]
                here[run]["y2"] = bottom
            elif run[2]:
                here[run] = {"x": round(left + start * CELL_PX, 1), "x2": round(left + end * CELL_PX, 1),
                             "y": round(top + row * CELL_PX, 1), "y2": bottom}  # fmt: skip
                cells.append((run[2] - 1, here[run]))
        above = here
    return cells


def _shade_of_curve(name: str, ours: str, alone: bool, shades: Any) -> tuple[str, str]:
    if name == ours:
        return "ours", "Blue"
    if alone:
        return "failed", "Red, dashed" if "type" in name else "Red, dotted"
    words = {"cat2": "Violet", "cat3": "Green", "cat4": "Olive", "undecided": "Ochre"}
    token = next(shades)
    return token, words[token]


def _chart(rows: list[Any]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _shade(group: str) -> str:
    return colour(GROUPS[group])


def _beyond(scores: pl.DataFrame, thresholds: Sequence[float]) -> str:
    """How many lie beyond the threshold, where there is one; with several the table says it."""
    if len(thresholds) != 1:
        return ""
    groups = [group for group in ("asked", "generated", "real") if (scores["group"] == group).any()]
    told = [
        f"{int((scores_of(scores, group) > thresholds[0]).sum())} of {len(scores_of(scores, group))} "
        + ("images" if group == "asked" else f"{group} images")
        for group in groups
    ]
    return f"{', '.join(told)} lie beyond the threshold" if told else ""


def _cut(text: str, most: int) -> str:
    text = text.rpartition("/")[2] or text
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
