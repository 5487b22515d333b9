"""The picture of a causal graph: plain tables of nodes and edges, laid out in layers, causes before effects.

Layers come from the longest way to a node; long edges get a place in each layer they pass, and each layer is sorted by
the mean place of its neighbours (Sugiyama, Tagawa and Toda 1981). Arrowheads and arcs are drawn as short rules, so that
a page, a canvas and paper agree.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from answerable.theme import style, visible

MOST_NODES = 40  # drawn; the caller chooses which
ROW, MARGIN = 48, 28  # px from one node to the next across layers, and around all of them
LEAST_COLUMN = 96  # px of a column, below which layers run downwards
GAP, HEAD = 9.0, 6.0  # px that an edge keeps from its nodes, and length of an arrowhead
SWEEPS = 8
LONGEST_LABEL = 34  # characters
# px that a character takes at 16 px semibold, 13 px and 12 px, rather more than less
TITLE_PX, SUBTITLE_PX, TEXT_PX = 8.7, 6.8, 6.9

NodeLook = Literal["start", "reached", "trouble", "plain", "faint"]
EdgeLook = Literal["plain", "strong", "trouble"]

# Mark style, shape and style of the label: shapes differ too, so that nothing rests on colour alone.
NODE_LOOKS: dict[str, tuple[str, str, str]] = {
    "start": ("exact", "diamond", "label-ours"),
    "reached": ("ours-soft", "circle", "label"),
    "trouble": ("estimate-failed", "square", "label-failed"),
    "plain": ("estimate-baseline", "circle", "label"),
    "faint": ("baseline", "circle", "note"),
}
EDGE_LOOKS = {"plain": "interval-baseline", "strong": "interval", "trouble": "interval-failed"}
DASHES = {"directed": [1, 0], "possible": [6, 4], "bidirected": [2, 3]}

Point = tuple[float, float]


class Layout(NamedTuple):
    """Where nodes and edges stand.

    Parameters
    ----------
    layer, place : by node: its layer from 0, and its place across the layer, fractions allowed
    ways : by directed or possible edge: the (layer, place) it passes, ends included
    n_layers, n_places : how many there are
    """

    layer: dict[str, int]
    place: dict[str, float]
    ways: dict[tuple[str, str], list[Point]]
    n_layers: int
    n_places: int


def graph_chart(
    nodes: Iterable[Mapping[str, Any]],
    edges: Iterable[Mapping[str, Any]],
    width: int,
    *,
    finding: str,
    how: str,
    description: str,
) -> alt.LayerChart:
    """A causal graph in layers.

    Parameters
    ----------
    nodes : rows of ``node`` and ``look``: start (diamond), reached (pale disc), trouble (square), plain (grey disc) or
        faint (ring); at most 40 are drawn, and edges to others left out
    edges : rows of ``cause``, ``effect``, ``kind`` (directed, possible or bidirected) and ``look`` (plain, strong or
        trouble); directed and possible ones make no cycle
    width : px of the whole figure
    finding, how, description : title, subtitle and the picture in words
    """
    looks = {str(row["node"]): str(row["look"]) for row in itertools.islice(nodes, MOST_NODES)}
    kept = [row for row in edges if row["cause"] in looks and row["effect"] in looks]
    causal = [(row["cause"], row["effect"]) for row in kept if row["kind"] != "bidirected"]
    arcs = [(row["cause"], row["effect"]) for row in kept if row["kind"] == "bidirected"]
    layout = layered(list(looks), causal, arcs)
    inner = width - 2 * 14
    across = inner / layout.n_layers >= LEAST_COLUMN and layout.n_layers > 1
    sheet = _Sheet(layout, inner, across)
    layers: list[Any] = [_lines(kept, sheet, look) for look in EDGE_LOOKS]
    layers += [_points(looks, sheet, look) for look in NODE_LOOKS]
    layers += [_labels(looks, sheet, look) for look in NODE_LOOKS]
    drawn: Any = alt.layer(*(part for found in layers for part in found))
    return drawn.properties(
        width=inner,
        height=sheet.height,
        autosize=alt.AutoSizeParams(type="pad", contains="padding"),
        padding={"left": 14, "right": 14, "top": 4, "bottom": 4},
        title=alt.TitleParams(
            textwrap.wrap(finding, max(20, math.floor((width - 40) / TITLE_PX))),
            subtitle=textwrap.wrap(how, max(20, math.floor((width - 40) / SUBTITLE_PX))),
        ),
        description=" ".join(description.split()),
    )


def layered(
    nodes: Sequence[str], directed: Iterable[tuple[str, str]], bidirected: Iterable[tuple[str, str]] = ()
) -> Layout:
    """Layers by the longest way to a node, sorted so that few edges cross.

    Parameters
    ----------
    nodes : their names
    directed : pairs (cause, effect) among them, without a cycle
    bidirected : pairs that should stand near each other
    """
    edges = list(dict.fromkeys(directed))
    layer = _longest_ways(nodes, edges)
    rows: list[list[Any]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for node in nodes:
        rows[layer[node]].append(node)
    chains: dict[tuple[str, str], list[Any]] = {}
    for a, b in edges:  # a long edge passes a place of its own in each layer between
        between = {number: (a, b, number) for number in range(layer[a] + 1, layer[b])}
        for number, stop in between.items():
            rows[number].append(stop)
        chains[a, b] = [a, *between.values(), b]
    near: dict[Any, list[Any]] = {}
    links = [pair for chain in chains.values() for pair in itertools.pairwise(chain)]
    for a, b in [*links, *bidirected]:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    most = max(map(len, rows))
    place = _sorted_rows(rows, near, most)
    level = {entry: number for number, row in enumerate(rows) for entry in row}
    ways = {edge: [(float(level[stop]), place[stop]) for stop in chain] for edge, chain in chains.items()}
    return Layout(layer, {node: place[node] for node in nodes}, ways, len(rows), most)


def _longest_ways(nodes: Sequence[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    layer = dict.fromkeys(nodes, 0)
    for _ in nodes:
        moved = False
        for a, b in edges:
            if layer[b] <= layer[a]:
                layer[b], moved = layer[a] + 1, True
        if not moved:
            break
    for node in sorted(nodes, key=layer.__getitem__, reverse=True):  # a first cause stands right before its effects
        if not any(b == node for _, b in edges):
            layer[node] = min((layer[b] for a, b in edges if a == node), default=1) - 1
    return layer


def _sorted_rows(rows: list[list[Any]], near: Mapping[Any, list[Any]], most: int) -> dict[Any, float]:
    """Each entry's place in its row after sweeps down and up; rows are centred on the longest."""

    def places() -> dict[Any, float]:
        return {entry: (most - len(row)) / 2 + number for row in rows for number, entry in enumerate(row)}

    place = places()
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {
                entry: sum(place[other] for other in near[entry]) / len(near[entry])
                if near.get(entry)
                else place[entry]
                for entry in row
            }
            row.sort(key=means.__getitem__)
            place = places()
    return place


class _Sheet:
    """From layers and places to px, layers running to the right or downwards; y counts upwards.

    Names stand above their nodes, but to the right of those that nothing leaves, and of all where layers run downwards.
    """

    def __init__(self, layout: Layout, width: int, across: bool) -> None:
        self.layout, self.width, self.across = layout, width, across
        causes = {cause for cause, _ in layout.ways}
        self.last = {node for node in layout.layer if node not in causes}
        reach = max(layout.layer[node] for node in self.last)
        ends = [visible(node, LONGEST_LABEL) for node in self.last if layout.layer[node] == reach]
        widest = (max(map(len, ends)) + 1) * TEXT_PX + 16
        self.right = min(widest, 0.4 * width) if across else 0.0
        self.column = (width - self.right) / (layout.n_layers - 0.4) if across else width / layout.n_places
        rows = layout.n_places if across else layout.n_layers
        self.height = int((rows - 1) * ROW + 2 * MARGIN)

    def px(self, layer: float, place: float) -> Point:
        if self.across:
            return (layer + 0.5) * self.column, self.height - MARGIN - place * ROW
        return place * self.column + 16, self.height - MARGIN - layer * ROW

    def beside(self, name: str) -> bool:
        """Whether a node's name stands to its right."""
        return not self.across or name in self.last

    def characters(self, name: str) -> int:
        """Of its label at most."""
        if not self.across:
            here = self.layout.place[name]
            beside = (
                place
                for other, place in self.layout.place.items()
                if place > here and self.layout.layer[other] == self.layout.layer[name]
            )
            room = self.px(0, min(beside, default=(self.width - 16) / self.column))[0] - self.node(name)[0] - 30
        elif self.beside(name):
            room = self.width - self.node(name)[0] - 14
        else:
            room = self.column - 12
        return max(6, math.floor(room / TEXT_PX))

    def node(self, name: str) -> Point:
        return self.px(self.layout.layer[name], self.layout.place[name])

    def channels(self, x: str = "x", y: str = "y") -> dict[str, Any]:
        def scale(end: float) -> alt.Scale:
            return alt.Scale(domain=[0, end], nice=False)

        return {
            "x": alt.X(f"{x}:Q", axis=None, scale=scale(self.width)),
            "y": alt.Y(f"{y}:Q", axis=None, scale=scale(self.height)),
        }


def _lines(edges: list[Mapping[str, Any]], sheet: _Sheet, look: str) -> list[Any]:
    """The edges of one look: lines, dashed where unsure, dotted where a hidden cause is meant, and their heads."""
    found: list[Any] = []
    for kind, dash in DASHES.items():
        segments: list[dict[str, float]] = []
        heads: list[dict[str, float]] = []
        for row in edges:
            if (row["kind"], row["look"]) == (kind, look):
                way = _arc(sheet, row) if kind == "bidirected" else _way(sheet, row)
                segments += _segments(way)
                heads += _head(way[-2], way[-1])
                heads += _head(way[1], way[0]) if kind == "bidirected" else []
        for data, stroke in ((segments, dash), (heads, [1, 0])):
            if data:
                chart = alt.Chart(alt.InlineData(values=data))
                rules = chart.mark_rule(style=style(EDGE_LOOKS[look]), strokeDash=stroke, strokeCap="round")
                found.append(rules.encode(**sheet.channels(), x2="x2:Q", y2="y2:Q"))
    return found


def _way(sheet: _Sheet, row: Mapping[str, Any]) -> list[Point]:
    stops = [sheet.px(*stop) for stop in sheet.layout.ways[row["cause"], row["effect"]]]
    return _shortened(stops)


def _arc(sheet: _Sheet, row: Mapping[str, Any]) -> list[Point]:
    """A bow beside the straight line between two nodes."""
    (ax, ay), (bx, by) = sheet.node(row["cause"]), sheet.node(row["effect"])
    length = math.hypot(bx - ax, by - ay)
    bulge = min(0.28 * length, 40.0)
    if (bx, by) < (ax, ay):  # the same side whichever end is named first
        ax, ay, bx, by = bx, by, ax, ay
    side_x, side_y = -(by - ay) / length * bulge * 2, (bx - ax) / length * bulge * 2
    middle = ((ax + bx) / 2 - side_x, (ay + by) / 2 - side_y)
    bow = []
    for step in range(13):
        t = step / 12
        weights = ((1 - t) ** 2, 2 * t * (1 - t), t * t)
        bow.append(
            (
                weights[0] * ax + weights[1] * middle[0] + weights[2] * bx,
                weights[0] * ay + weights[1] * middle[1] + weights[2] * by,
            )
        )
    clipped = [(min(max(x, 2.0), sheet.width - 2.0), min(max(y, 2.0), sheet.height - 2.0)) for x, y in bow]
    return _shortened(clipped)


def _shortened(way: list[Point]) -> list[Point]:
    """The way less a gap at both ends."""
    for _ in range(2):
        way = way[::-1]
        start = way[0]
        rest = [point for point in way[1:-1] if math.dist(start, point) > GAP] + way[-1:]
        away = math.dist(start, rest[0]) or 1.0
        share = min(GAP / away, 0.45)
        way = [(start[0] + (rest[0][0] - start[0]) * share, start[1] + (rest[0][1] - start[1]) * share), *rest]
    return way


def _segments(way: list[Point]) -> list[dict[str, float]]:
    return [_rule(a, b) for a, b in itertools.pairwise(way)]


def _head(before: Point, tip: Point) -> list[dict[str, float]]:
    """An arrowhead of two short rules."""
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    return [
        _rule(tip, (tip[0] - HEAD * math.cos(angle + turn), tip[1] - HEAD * math.sin(angle + turn)))
        for turn in (0.45, -0.45)
    ]


def _rule(a: Point, b: Point) -> dict[str, float]:
    return {"x": round(a[0], 1), "y": round(a[1], 1), "x2": round(b[0], 1), "y2": round(b[1], 1)}


def _points(looks: Mapping[str, str], sheet: _Sheet, look: str) -> list[Any]:
    data = [dict(zip("xy", sheet.node(node))) for node, found in looks.items() if found == look]
    if not data:
        return []
    mark, shape, _ = NODE_LOOKS[look]
    chart = alt.Chart(alt.InlineData(values=data))
    return [chart.mark_point(style=style(mark), shape=shape, size=95).encode(**sheet.channels())]


def _labels(looks: Mapping[str, str], sheet: _Sheet, look: str) -> list[Any]:
    found: list[Any] = []
    for beside in (True, False):
        data = []
        for node, own in looks.items():
            if own == look and sheet.beside(node) == beside:
                x, y = sheet.node(node)
                data.append({"x": x, "y": y, "word": visible(node, sheet.characters(node))})
        if data:
            offset: dict[str, Any] = {"dx": 11, "align": "left"} if beside else {"dy": -13, "align": "center"}
            chart = alt.Chart(alt.InlineData(values=data))
            found += [
                chart.mark_text(style=style(ground), **offset).encode(**sheet.channels(), text="word:N")
                for ground in ("halo", NODE_LOOKS[look][2])
            ]
    return found
