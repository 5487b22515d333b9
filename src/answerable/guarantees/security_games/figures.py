"""Pictures of a patrol plan, each from plain tables and a width in pixels to an Altair chart."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import altair as alt

from answerable.theme import round_edges, steps, style

from .printed import shown, small

if TYPE_CHECKING:
    import polars as pl

MOST_TARGETS = 24
LINE = 22  # px from one row to the next
TITLE_PX, SUBTITLE_PX = 8.7, 6.8  # px that a character takes, rather more than less
TALLEST, LOWEST = 620, 180
NARROW = 500  # px below which a picture is the narrow one
# a long title begins above the numbers, not left of them
ABOVE: dict[str, Any] = {"titleAlign": "left", "titleX": -36}
ARROW = 0.62  # where on a move its head stands


def patrol_map(
    places: pl.DataFrame, moves: pl.DataFrame, streets: pl.DataFrame, width: int, *, cell: tuple[float, float],
    finding: str, value_unit: str,
) -> alt.LayerChart:  # fmt: skip
    """Values, bases and patrols: arrows as wide as they are likely.

    Parameters
    ----------
    places : lat, long, label, kind (target, base), value, attacked
    moves : lat, long, lat2, long2, probability of each directed move
    streets : lat, long, lat2, long2; of a grid: none
    cell : height and width of a grid cell in degrees; zeros for streets
    finding : the title
    value_unit : of the values
    """
    targets = [row for row in places.iter_rows(named=True) if row["kind"] == "target"]
    bases = [row for row in places.iter_rows(named=True) if row["kind"] == "base"]
    half_lat, half_long = (cell[0] / 2, cell[1] / 2) if cell[0] else (0.0, 0.0)
    ends = [*places.rows(named=True), *streets.rows(named=True)]
    lats = [row["lat"] for row in ends] + [row["lat2"] for row in streets.rows(named=True)]
    longs = [row["long"] for row in ends] + [row["long2"] for row in streets.rows(named=True)]
    margin = (cell[0] or (max(lats) - min(lats)) / 20 or 1e-3, cell[1] or (max(longs) - min(longs)) / 20 or 1e-3)
    south, north = min(lats) - margin[0], max(lats) + margin[0]
    west, east = min(longs) - margin[1], max(longs) + margin[1]
    shrink = math.cos(math.radians((south + north) / 2))
    height = min(TALLEST, max(LOWEST, (width - 90) * (north - south) / ((east - west) * shrink)))
    digits = max(0, math.ceil(-math.log10(max(north - south, 1e-6) / 10)))
    axis = alt.Axis(format=f".{digits}f", grid=False, tickCount=5)
    x = alt.X("long:Q", title="Longitude [°]", axis=axis, scale=alt.Scale(domain=[west, east], nice=False))
    y = alt.Y("lat:Q", title="Latitude [°]", axis=axis, scale=alt.Scale(domain=[south, north], nice=False))
    values = [row["value"] for row in targets]
    low, high = min(values), max(values)
    edges = round_edges(low, high) if high > low else [low + 1e-9 + abs(low) * 1e-9]
    colour = alt.Color(
        "value:Q", title=f"Value [{value_unit}]", scale=alt.Scale(**steps("seq", edges)),
        legend=alt.Legend(
            orient="bottom", titleOrient="left" if width > NARROW else "top", titlePadding=10,
            gradientLength=min(220, width - 140),
        ),
    )  # fmt: skip
    layers: list[Any] = []
    if streets.height:
        lines = _data(
            [{name: row[name] for name in ("lat", "long", "lat2", "long2")} for row in streets.rows(named=True)]
        )
        layers.append(lines.mark_rule(style=style("leader"), opacity=0.35).encode(x=x, y=y, x2="long2:Q", y2="lat2:Q"))
        points = _data([{"lat": row["lat"], "long": row["long"], "value": row["value"]} for row in targets])
        layers.append(points.mark_square(size=110).encode(x=x, y=y, color=colour))
    else:
        rows = [
            {
                "long": row["long"] - half_long, "long2": row["long"] + half_long, "lat": row["lat"] - half_lat,
                "lat2": row["lat"] + half_lat, "value": row["value"],
            }
            for row in targets
        ]  # fmt: skip
        layers.append(_data(rows).mark_rect().encode(x=x, y=y, x2="long2:Q", y2="lat2:Q", color=colour))
    layers += _arrows(moves, x, y, shrink, margin)
    attacked = [{"lat": row["lat"], "long": row["long"]} for row in targets if row["attacked"]]
    if attacked:
        layers.append(
            _data(attacked)
            .mark_point(style=style("estimate-failed"), shape="cross", size=120, angle=45)
            .encode(x=x, y=y)
        )
    if bases:
        at = [{"lat": row["lat"], "long": row["long"]} for row in bases]
        layers.append(_data(at).mark_point(style=style("dot-ground"), size=230).encode(x=x, y=y))
        layers.append(_data(at).mark_point(style=style("exact-baseline"), size=110).encode(x=x, y=y))
    likely = max(moves.rows(named=True), key=lambda row: row["probability"], default=None)
    most = f"; the likeliest move is made {likely['probability']:.0%} of the time" if likely else ""
    return _finished(
        _layered(layers).properties(height=height), width, finding,
        "Shade: value of a target. Arrows: moves, as wide as they are likely. Grey diamonds: bases. Red crosses: where "
        "the attacker goes.",
        f"Map of {len(targets)} targets worth {low:.3g} to {high:.3g}, {len(bases)} bases and {moves.height} moves of "
        f"the patrols{most}.",
        right=10,
    )  # fmt: skip


def _arrows(moves: pl.DataFrame, x: Any, y: Any, shrink: float, margin: tuple[float, float]) -> list[Any]:
    """Moves as rules, a little to the right of the straight line, so that there and back are two; a head on each."""
    rows = []
    for row in moves.iter_rows(named=True):
        north, east = row["lat2"] - row["lat"], (row["long2"] - row["long"]) * shrink
        length = math.hypot(north, east) or 1.0
        aside = 0.09 * min(margin[0], length)
        off_lat, off_long = -east / length * aside, north / length * aside / shrink
        lat, long, lat2, long2 = (
            row["lat"] + off_lat,
            row["long"] + off_long,
            row["lat2"] + off_lat,
            row["long2"] + off_long,
        )
        rows.append(
            {
                "lat": lat, "long": long, "lat2": lat2, "long2": long2, "probability": row["probability"],
                "turn": math.degrees(math.atan2(east, north)),
            }
        )  # fmt: skip
    if not rows:
        return []
    ends = [
        {
            "lat": row["lat"] + ARROW * (row["lat2"] - row["lat"]),
            "long": row["long"] + ARROW * (row["long2"] - row["long"]),
            "probability": row["probability"],
            "turn": row["turn"],
        }
        for row in rows
    ]
    wide = alt.Scale(domain=[0, 1], range=[0.6, 9])
    size = alt.Scale(domain=[0, 1], range=[25, 260])
    lines = (
        _data(rows)
        .mark_rule(style=style("ours"), opacity=0.9)
        .encode(
            x=x, y=y, x2="long2:Q", y2="lat2:Q", strokeWidth=alt.StrokeWidth("probability:Q", scale=wide, legend=None)
        )
    )
    heads = (
        _data(ends)
        .mark_point(style=style("estimate"), shape="triangle")
        .encode(
            x=x,
            y=y,
            angle=alt.Angle("turn:Q", scale=alt.Scale(domain=[-360, 360], range=[-360, 360])),
            size=alt.Size("probability:Q", scale=size, legend=None),
        )
    )
    halo = _data(rows).mark_rule(style=style("halo"), opacity=0.85).encode(
        x=x, y=y, x2="long2:Q", y2="lat2:Q",
        strokeWidth=alt.StrokeWidth("probability:Q", scale=alt.Scale(domain=[0, 1], range=[3, 12]), legend=None),
    )  # fmt: skip
    return [halo, lines, heads]


def coverage_bars(targets: pl.DataFrame, width: int, *, gain_unit: str) -> alt.LayerChart:
    """How often each target is covered, the attacker's gain beside it, most gain first.

    Parameters
    ----------
    targets : target, coverage, expected_gain, attack
    gain_unit : of the gain
    """
    rows = sorted(targets.iter_rows(named=True), key=lambda row: (-row["expected_gain"], -row["coverage"]))
    most = rows[:MOST_TARGETS]
    data = [
        {
            "label": shown(row["target"]), "coverage": row["coverage"], "gain": f"{row['expected_gain']:.3g}",
            "attacked": row["attack"] > 1e-9,
        }
        for row in most
    ]  # fmt: skip
    labels = [entry["label"] for entry in data]
    y = alt.Y(
        "label:N", title="Target", sort=None, scale=alt.Scale(type="point", domain=labels, padding=0.6),
        axis=alt.Axis(grid=False, labelLimit=230 if width > NARROW else 110),
    )  # fmt: skip
    x = alt.X(
        "coverage:Q", title="Covered [share of the time]", scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(tickCount=5, format=".0%"),
    )  # fmt: skip
    layers: list[Any] = []
    for attacked, look in ((True, "ours-bar"), (False, "baseline-bar")):
        part = [entry for entry in data if entry["attacked"] is attacked]
        if part:
            layers.append(_data(part).mark_bar(style=style(look), height=13).encode(x=x, y=y))
    numbers = _data(data).mark_text(style=style("note"), align="right", dx=52)
    layers.append(numbers.encode(x=alt.datum(1), y=y, text="gain:N"))
    attacked_rows = [row for row in rows if row["attack"] > 1e-9]
    first = attacked_rows[0] if attacked_rows else rows[0]
    finding = (
        f"The attacker gains most at {shown(first['target'])}, covered {first['coverage']:.0%} of the time"
        if len(attacked_rows) == 1
        else f"{len(attacked_rows)} targets tempt the attacker; {shown(first['target'])} is covered"
        f" {first['coverage']:.0%} of the time"
    )
    how = f"Bar: how often a target is covered; blue where the attacker goes. Right: what he gains there [{gain_unit}]."
    if len(rows) > len(most):
        how += f" The {MOST_TARGETS} that gain him most of {len(rows)}."
    return _finished(
        _layered(layers).properties(height=alt.Step(LINE)), width, finding, how,
        f"Bars of coverage of {len(most)} targets, from {min(r['coverage'] for r in most):.0%} to "
        f"{max(r['coverage'] for r in most):.0%}.",
        right=62,
    )  # fmt: skip


def response_bars(columns: pl.DataFrame, width: int, *, unit: str) -> alt.LayerChart:
    """What each of the attacker's actions gains him against the mix, most first.

    Parameters
    ----------
    columns : target, expected_gain, attack
    unit : of the gain
    """
    rows = sorted(columns.iter_rows(named=True), key=lambda row: -row["expected_gain"])
    most = rows[:MOST_TARGETS]
    data = [
        {"label": shown(row["target"]), "gain": row["expected_gain"], "attacked": row["attack"] > 1e-9} for row in most
    ]
    y = alt.Y(
        "label:N", title="Action", sort=None,
        scale=alt.Scale(type="point", domain=[entry["label"] for entry in data], padding=0.6),
        axis=alt.Axis(grid=False, labelLimit=230 if width > NARROW else 110),
    )  # fmt: skip
    x = alt.X("gain:Q", title=f"Gain of the attacker [{unit}]")
    layers: list[Any] = []
    for attacked, look in ((True, "ours-bar"), (False, "baseline-bar")):
        part = [entry for entry in data if entry["attacked"] is attacked]
        if part:
            layers.append(_data(part).mark_bar(style=style(look), height=13).encode(x=x, y=y))
    tempted = sum(row["attack"] > 1e-9 for row in rows)
    return _finished(
        _layered(layers).properties(height=alt.Step(LINE)), width,
        f"The attacker gains {rows[0]['expected_gain']:.3g} at most, by {shown(rows[0]['target'])}",
        "Bar: what an action gains against the mix; blue where the attacker plays it."
        + (f" The best {MOST_TARGETS} of {len(rows)}." if len(rows) > MOST_TARGETS else ""),
        f"Bars of {len(most)} actions of the attacker, {tempted} of them played, the best gains "
        f"{rows[0]['expected_gain']:.3g}.",
        right=16,
    )  # fmt: skip


def value_by_plans(plans: pl.DataFrame, width: int, *, value: float, unit: str) -> alt.LayerChart:
    """What the best k plans secure, against the value with any number of them.

    Parameters
    ----------
    plans : plans, loss, least_loss
    value : the loss with any number of plans
    unit : of the loss
    """
    data = [
        {"plans": row["plans"], "loss": row["loss"], "least": row["least_loss"]} for row in plans.iter_rows(named=True)
    ]
    x = alt.X(
        "plans:Q", title="Distinct plans",
        scale=alt.Scale(domain=[0.5, max(entry["plans"] for entry in data) + 0.5], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )  # fmt: skip
    top = max([entry["loss"] for entry in data] + [value])
    bottom = min([entry["least"] for entry in data] + [value])
    pad = (top - bottom or abs(top) or 1.0) * 0.12
    y = alt.Y(
        "loss:Q", title=f"Loss [{unit}]", scale=alt.Scale(domain=[bottom - pad, top + pad], nice=False),
        axis=alt.Axis(**ABOVE),
    )  # fmt: skip
    chart = _data(data)
    line = chart.mark_line(style=style("ours")).encode(x=x, y=y)
    points = chart.mark_point(style=style("exact")).encode(x=x, y=y)
    whiskers = chart.mark_rule(style=style("interval")).encode(x=x, y=y, y2="least:Q")
    rule = _data([{"loss": value}]).mark_rule(style=style("threshold"), strokeDash=[4, 3]).encode(y=y)
    last = data[-1]
    reached = last["loss"] <= value + 1e-9 * max(1.0, abs(value))
    one = data[0]["loss"]
    finding = (
        f"{_count(last['plans'])} do as well as any number; a single one loses {one:.3g} instead of {value:.3g}"
        if reached
        else f"{_count(last['plans'])} lose {last['loss']:.3g}, any number {value:.3g}"
    )
    return _finished(
        _layered([whiskers, line, points, rule]).properties(height=200), width, finding,
        "Diamond: loss with the best so many plans; whisker: no choice loses less. Dashed: with any number.",
        f"Loss falls from {one:.3g} with one plan to {last['loss']:.3g} with {last['plans']}; with any number "
        f"{value:.3g}.",
        right=16,
    )  # fmt: skip


def gap_by_work(looks: pl.DataFrame, width: int, *, unit: str) -> alt.LayerChart:
    """How fast each method closes the gap between its two bounds.

    Parameters
    ----------
    looks : method, multiplications, gap
    unit : of the gap
    """
    least = 1e-14
    rows = [
        {"method": row["method"], "work": max(row["multiplications"], 1.0), "gap": max(row["gap"], least)}
        for row in looks.iter_rows(named=True)
    ]
    methods, works = list(dict.fromkeys(row["method"] for row in rows)), [row["work"] for row in rows]
    powers = [10.0**k for k in range(-14, 13, 2)]
    far = [10.0**k for k in range(0, 21, 2 if width > NARROW else 4)]
    x = alt.X(
        "work:Q", title="Work [multiplications]",
        scale=alt.Scale(type="log", domain=[min(works), max(works) * 4], nice=False),
        axis=alt.Axis(format="~e", values=[p for p in far if min(works) <= p <= max(works) * 4], grid=False),
    )  # fmt: skip
    most = max(row["gap"] for row in rows)
    y = alt.Y(
        "gap:Q", title=f"Gap [{unit}]", scale=alt.Scale(type="log", domain=[least, most * 2], nice=False),
        axis=alt.Axis(format="~e", values=[p for p in powers if p <= most * 2], **ABOVE),
    )  # fmt: skip
    dashes = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]]
    layers: list[Any] = []
    labels: list[dict[str, Any]] = []
    for number, method in enumerate(methods):
        part = [row for row in rows if row["method"] == method]
        look = "ours" if number == 0 else "zero"
        mark = _data(part).mark_line(style=style(look), strokeDash=dashes[number % len(dashes)], strokeWidth=2)
        layers.append(mark.encode(x=x, y=y))
        layers.append(
            _data(part[-1:])
            .mark_point(style=style("estimate" if number == 0 else "estimate-baseline"), size=40)
            .encode(x=x, y=y)
        )
        labels.append({**part[-1], "text": method})
    for entry in _apart(labels, most * 2, least):
        text = _data([entry]).mark_text(style=style("note"), align="left", dx=8)
        layers.append(text.encode(x=x, y=y, text="text:N"))
    best = min(rows, key=lambda row: row["gap"])
    ends = {method: [row for row in rows if row["method"] == method][-1] for method in methods}
    worst = max(ends.values(), key=lambda row: row["gap"])
    reached = "to rounding" if best["gap"] <= 1e-12 else f"to {small(best['gap'])}"
    return _finished(
        _layered(layers).properties(height=240), width,
        f"{_capital(best['method'])} closes the gap {reached}; {worst['method']} leaves {small(worst['gap'])}",
        "Distance between what the plan secures and what the attacker concedes, by work done: "
        "lower left is better. Double oracle counts the entries of its small games.",
        f"Lines of {len(methods)} methods by work: "
        + ", ".join(f"{name} ends at {small(end['gap'])}" for name, end in ends.items())
        + ".",
        right=92,
    )  # fmt: skip


def _apart(labels: list[dict[str, Any]], most: float, least: float) -> list[dict[str, Any]]:
    """Labels at their lines' ends, moved up where they would lie on each other."""
    decades = math.log10(most / least)
    step = decades * 15 / 240
    placed: list[dict[str, Any]] = []
    for entry in sorted(labels, key=lambda row: row["gap"]):
        height = math.log10(entry["gap"])
        if placed:
            height = max(height, math.log10(placed[-1]["gap"]) + step)
        placed.append({**entry, "gap": min(10**height, most)})
    return placed


def twins_strip(twins: pl.DataFrame, width: int, *, unit: str) -> alt.LayerChart:
    """The real game's value among those of its random twins.

    Parameters
    ----------
    twins : game, value (loss), support
    unit : of the loss
    """
    kinds = list(dict.fromkeys(twins["game"].to_list()))
    rows = [{"game": row["game"], "loss": row["loss"]} for row in twins.iter_rows(named=True)]
    y = alt.Y(
        "game:N", title="Game", sort=None, scale=alt.Scale(type="point", domain=kinds, padding=0.7),
        axis=alt.Axis(grid=False, labelLimit=160),
    )  # fmt: skip
    x = alt.X(
        "loss:Q", title=f"Loss [{unit}]", scale=alt.Scale(zero=False),
        axis=alt.Axis(tickCount=8 if width > NARROW else 4),
    )  # fmt: skip
    real, others = ([row for row in rows if (row["game"] == "real") is mine] for mine in (True, False))
    layers = (
        [_data(others).mark_point(style=style("estimate-baseline"), opacity=0.7).encode(x=x, y=y)] if others else []
    )
    layers.append(_data(real).mark_point(style=style("exact")).encode(x=x, y=y))
    own = real[0]["loss"]
    told = [row["loss"] for row in others]
    below = sum(loss < own for loss in told)
    support = twins.group_by("game", maintain_order=True).agg(_mean("support"))
    mixes = ", ".join(f"{row['game']} {row['support']:.1f}" for row in support.iter_rows(named=True))
    return _finished(
        _layered(layers).properties(height=alt.Step(34)), width,
        f"The real game's loss is {own:.3g}; {below} of {len(told)} random twins lose less",
        f"Diamond: the real game. Grey: random games of its shape. Plans in the mix, mean: {mixes}.",
        f"Strip of losses: real {own:.3g}, {len(told)} twins from {min(told, default=own):.3g} to "
        f"{max(told, default=own):.3g}.",
        right=16,
    )  # fmt: skip


def _mean(column: str) -> Any:
    import polars as pl

    return pl.col(column).mean()


def _data(rows: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _layered(layers: list[Any]) -> Any:
    return alt.layer(*layers)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _count(number: int) -> str:
    words = ["No plan", "One plan", "Two plans", "Three plans", "Four plans", "Five plans", "Six plans", "Seven plans"]
    return words[number] if number < len(words) else f"{number} plans"


def _finished(
    chart: alt.LayerChart, width: int, finding: str, how: str, description: str, *, right: int
) -> alt.LayerChart:
    return chart.properties(
        width=width,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 14, "right": max(right, 8), "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, math.floor((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, math.floor((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )
