"""What a figure's specification may hold.

It may come from a saved folder, so it is data and never trusted code. :func:`checked` rebuilds it from what is known
to be harmless: marks, channels, transforms and properties on the lists below, literal values, plain field names and
colours of the theme. There is no place for an expression, a signal, a parameter, an address or an image: a condition
or a filter is written as a predicate (``{"field": "x", "gte": 0}``), a computed column is computed before the figure
is drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from answerable import theme
from answerable.errors import BadInput
from answerable.report.visible import shown

MOST_ROWS = 10_000
MOST_PANELS = 64


def words(text: str) -> frozenset[str]:
    """The words of a text, as a list of what is allowed."""
    return frozenset(text.split())


_MARKS = words("bar rect point circle square line rule text area tick trail errorbar errorband boxplot")
_COLOUR_CHANNELS = words("color fill stroke")
_CHANNELS = _COLOUR_CHANNELS | words(
    "x y x2 y2 xOffset yOffset xError xError2 yError yError2 opacity fillOpacity strokeOpacity strokeWidth "
    "strokeDash size shape angle text detail order key row column facet"
)
_DROPPED_CHANNELS = frozenset(["tooltip", "description"])  # a page of paper has no pointer
_CHANNEL_WORDS = words("type aggregate timeUnit stack")
_AGGREGATES = words(
    "count sum mean average median min max q1 q3 stdev stdevp variance variancep stderr distinct valid missing product"
)
_SCALE_PROPERTIES = words(
    "type zero nice padding paddingInner paddingOuter reverse round clamp base exponent constant domainMin "
    "domainMax domainMid rangeMin rangeMax align"
)
_STEPPED = words("threshold quantize quantile bin-ordinal ordinal")
_RANGES = words("category ordinal ramp heatmap diverging symbol")
_SHAPES = words(
    "circle square diamond cross triangle triangle-up triangle-down triangle-right triangle-left stroke arrow wedge"
)
_GUIDE_PROPERTIES = words(
    "title titleAlign titleAnchor titleAngle titleBaseline titleFontSize titleFontWeight titleLimit "
    "titleLineHeight titleOpacity titleOrient titlePadding titleX titleY labelAlign labelAnchor labelAngle "
    "labelBaseline labelBound labelFlush labelFlushOffset labelFontSize labelFontWeight labelLimit "
    "labelLineHeight labelOffset labelOpacity labelOrient labelOverlap labelPadding labelSeparation labels "
    "domain domainCap domainDash domainOpacity domainWidth grid gridCap gridDash gridOpacity gridWidth ticks "
    "tickBand tickCap tickCount tickDash tickExtra tickMinStep tickOffset tickOpacity tickRound tickSize "
    "tickWidth values format formatType orient offset position minExtent maxExtent zindex translate "
    "bandPosition direction columns columnPadding rowPadding clipHeight padding symbolType symbolSize "
    "gradientLength gradientThickness symbolOffset symbolOpacity symbolStrokeWidth symbolDash symbolLimit "
    "type legendX legendY gridAlign strokeDash"
)
_GUIDE_COLOURS = words(
    "titleColor labelColor domainColor gridColor tickColor symbolFillColor symbolStrokeColor subtitleColor "
    "color fill stroke"
)
_TITLE_PROPERTIES = words(
    "text subtitle anchor frame offset orient dx dy align baseline angle limit fontSize fontWeight lineHeight "
    "subtitleFontSize subtitleFontWeight subtitleLineHeight subtitlePadding zindex"
)
_MARK_PROPERTIES = words(
    "type style opacity fillOpacity strokeOpacity strokeWidth strokeDash strokeDashOffset strokeCap "
    "strokeJoin filled shape size align baseline dx dy angle fontSize fontStyle fontWeight lineHeight "
    "lineBreak limit ellipsis interpolate tension orient cornerRadius cornerRadiusEnd cornerRadiusTopLeft "
    "cornerRadiusTopRight cornerRadiusBottomLeft cornerRadiusBottomRight width height thickness bandSize "
    "binSpacing discreteBandSize continuousBandSize minBandSize x x2 y y2 xOffset yOffset x2Offset y2Offset "
    "radius theta clip text order invalid extent median line point"
)
_MARK_PARTS = words("point line box median rule ticks outliers whisker band borders")
_VIEW_PROPERTIES = words(
    "cornerRadius opacity fillOpacity strokeOpacity strokeWidth strokeDash strokeCap strokeJoin clip"
)
_LAYOUT = words("spacing align center bounds columns padding")
_SIDES = words("left right top bottom row column")
_DROPPED = words("$schema config name usermeta autosize background tooltip aria cursor")
_PREDICATES = words("equal lt lte gt gte range oneOf valid")

_FIELD = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_FORMAT = re.compile(r"[\w.,~+\-$%()# <>=^:/]{0,24}", re.ASCII)
WORD = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,40}", re.ASCII)
_PATH_SHAPE = re.compile(r"[MmLlHhVvCcSsQqTtAaZz0-9 ,.eE+-]{1,400}", re.ASCII)

Json = Any


def _refuse(what: str, where: str, mend: str = "draw it from data alone") -> NoReturn:
    raise BadInput(what, where=f"figure, {where}" if where else "figure", mend=mend)


class _Checker:
    """Rebuilds one specification from what is allowed, its colours those of one scheme."""

    def __init__(self, scheme: theme.Scheme, keep_title: bool) -> None:
        self.keep_title = keep_title
        self.colours = {pair["light"]: pair[scheme] for pair in theme.tokens().values()}
        self.rows: list[Json] = []
        self.texts: dict[str, str] = {}
        self.facets: list[tuple[str, str]] = []
        self.panels = 1

    def root(self, specification: Mapping[str, Json]) -> dict[str, Json]:
        view = self.view(specification, "", 0)
        if not self.keep_title:
            # The title is the page's caption; a layered chart may carry it in each of its layers.
            for part in (view, *view.get("layer", ())):
                part.pop("title", None)
        datasets = specification.get("datasets")
        if datasets is not None:
            view["datasets"] = {
                self.field(name, "datasets", dataset=True): self.values(rows, "datasets")
                for name, rows in _items(datasets, "datasets")
            }
        for field, where in self.facets:
            self.count_panels(len({row.get(field) for row in self.rows if isinstance(row, dict)}), where)
        return view

    def view(self, view: Json, where: str, depth: int) -> dict[str, Json]:
        if depth > 6:
            _refuse("views nested too deep", where)
        built: dict[str, Json] = {}
        for name, value in _items(view, where):
            at = f"{where}.{name}" if where else name
            if name in _DROPPED or name == "description" or (name == "datasets" and depth == 0):
                continue
            if name == "data":
                built[name] = self.data(value, at)
            elif name == "mark":
                built[name] = self.mark(value, at)
            elif name == "encoding":
                built[name] = self.encoding(value, at)
            elif name == "transform":
                built[name] = [self.transform(step, f"{at}[{i}]") for i, step in enumerate(_list(value, at))]
            elif name in ("layer", "hconcat", "vconcat", "concat"):
                parts = _list(value, at)
                self.count_panels(1 if name == "layer" else len(parts), at)
                built[name] = [self.view(part, f"{at}[{i}]", depth + 1) for i, part in enumerate(parts)]
            elif name == "spec":
                built[name] = self.view(value, at, depth + 1)
            elif name == "facet":
                built[name] = (
                    self.channel(value, "facet", at)
                    if "field" in value
                    else {side: self.channel(part, side, at) for side, part in _items(value, at)}
                )
            elif name == "title":
                built[name] = self.title(value, at)
            elif name in ("width", "height"):
                built[name] = self.extent(value, at)
            elif name == "resolve":
                built[name] = {
                    part: {channel: self.word(how, at) for channel, how in _items(hows, at)}
                    for part, hows in _items(value, at)
                }
            elif name == "view":
                built[name] = self.properties(value, _VIEW_PROPERTIES, at)
            elif name in _LAYOUT:
                built[name] = self.sides(value, at)
            else:
                self.unknown(name, at)
        return built

    # Data

    def data(self, data: Json, where: str) -> Json:
        if data is None:
            return None
        built: dict[str, Json] = {}
        for name, value in _items(data, where):
            if name == "values":
                built[name] = self.values(value, where)
            elif name == "name":
                built[name] = self.field(value, where, dataset=True)
            elif name == "format" and set(value) <= {"type"} and value.get("type", "json") == "json":
                continue
            else:
                _refuse(f"data by {shown(str(name), 40)}", where, "put the rows into data.values")
        return built

    def values(self, rows: Json, where: str) -> list[Json]:
        rows = _list(rows, where)
        if len(self.rows) + len(rows) > MOST_ROWS:
            _refuse(f"more than {MOST_ROWS:,} rows", where, "aggregate before drawing")
        known: dict[str, str] = {}
        built = []
        for row in rows:
            if isinstance(row, Mapping):
                for name in row:
                    if name not in known:
                        known[name] = self.field(name, where)
                built.append({known[name]: self.scalar(value, where) for name, value in row.items()})
            else:
                built.append(self.scalar(row, where))
        self.rows += built
        return built

    # Marks

    def mark(self, mark: Json, where: str) -> Json:
        mark = {"type": mark} if isinstance(mark, str) else mark
        if not isinstance(mark, Mapping) or mark.get("type") not in _MARKS:
            kind = mark.get("type") if isinstance(mark, Mapping) else mark
            _refuse(f"mark {shown(str(kind), 40)!r}", where, f"use one of {', '.join(sorted(_MARKS))}")
        return self.mark_properties(mark, where)

    def mark_properties(self, mark: Mapping[str, Json], where: str) -> dict[str, Json]:
        built: dict[str, Json] = {}
        for name, value in mark.items():
            at = f"{where}.{name}"
            if name in _DROPPED:
                continue
            if name in _COLOUR_CHANNELS:
                built[name] = self.colour(value, at)
            elif name == "style":
                built[name] = [
                    theme.style(self.word(one, at)) for one in ([value] if isinstance(value, str) else _list(value, at))
                ]
            elif name in _MARK_PARTS and isinstance(value, Mapping):
                built[name] = self.mark_properties(value, at)
            elif name == "shape":
                built[name] = self.shape(value, at)
            elif name == "extent" and value in ("ci", "iqr"):
                _refuse("an interval made by chance while drawing", at, "compute the interval and draw its ends")
            elif name in _MARK_PROPERTIES or name in _MARK_PARTS:
                built[name] = self.plain(value, at)
            else:
                self.unknown(name, at)
        return built

    # Encodings

    def encoding(self, encoding: Json, where: str) -> dict[str, Json]:
        built: dict[str, Json] = {}
        for channel, value in _items(encoding, where):
            at = f"{where}.{channel}"
            if channel in _DROPPED_CHANNELS:
                continue
            if channel not in _CHANNELS:
                self.unknown(channel, at)
            if isinstance(value, list):
                built[channel] = [self.channel(part, channel, at) for part in value]
            else:
                built[channel] = self.channel(value, channel, at)
        return built

    def channel(self, definition: Json, channel: str, where: str) -> Json:
        if definition is None:
            return None
        built: dict[str, Json] = {}
        for name, value in _items(definition, where):
            at = f"{where}.{name}"
            if name == "field":
                built[name] = self.field(value, at)
            elif name == "aggregate":
                built[name] = self.one_of(value, _AGGREGATES, at)
            elif name in _CHANNEL_WORDS:
                built[name] = value if value is None or isinstance(value, bool) else self.word(value, at)
            elif name == "bin":
                built[name] = self.bin(value, at)
            elif name in ("value", "datum"):
                built[name] = self.literal(value, channel, at)
            elif name == "scale":
                built[name] = None if value is None else self.scale(value, channel, at)
            elif name in ("axis", "legend", "header"):
                built[name] = None if value is None else self.guide(value, at)
            elif name == "title":
                built[name] = self.text(value, at)
            elif name == "sort":
                built[name] = self.sort(value, at)
            elif name == "condition":
                built[name] = [
                    self.condition(one, channel, at) for one in (value if isinstance(value, list) else [value])
                ]
            elif name in ("format", "formatType"):
                built[name] = self.format(value, at)
            elif name in ("band", "bandPosition", "columns", "spacing", "align", "center"):
                built[name] = self.sides(value, at)
            else:
                self.unknown(name, at)
        if channel in ("row", "column", "facet") and "field" in built:
            self.facets.append((built["field"], where))
        self.refuse_continuous_colour(built, channel, where)
        return built

    def refuse_continuous_colour(self, built: Mapping[str, Json], channel: str, where: str) -> None:
        if channel not in _COLOUR_CHANNELS or built.get("type") not in ("quantitative", "temporal") or built.get("bin"):
            return
        scale = built.get("scale", {})
        if scale is not None and scale.get("type") not in _STEPPED:
            _refuse("colours that run into one another", where, "use theme.steps, so that each colour has a name")

    def condition(self, condition: Json, channel: str, where: str) -> dict[str, Json]:
        if not isinstance(condition, Mapping) or "test" not in condition or "param" in condition:
            _refuse("a condition without a test", where, 'write {"test": {"field": ..., "gte": ...}, "value": ...}')
        rest = {name: value for name, value in condition.items() if name != "test"}
        return {"test": self.predicate(condition["test"], f"{where}.test"), **self.channel(rest, channel, where)}

    def predicate(self, predicate: Json, where: str, depth: int = 0) -> dict[str, Json]:
        if not isinstance(predicate, Mapping) or depth > 6:
            _refuse("an expression", where, 'write a predicate such as {"field": "x", "gte": 0}')
        built: dict[str, Json] = {}
        for name, value in predicate.items():
            if name in ("and", "or"):
                built[name] = [self.predicate(one, where, depth + 1) for one in _list(value, where)]
            elif name == "not":
                built[name] = self.predicate(value, where, depth + 1)
            elif name == "field":
                built[name] = self.field(value, where)
            elif name in _PREDICATES:
                built[name] = (
                    [self.scalar(one, where) for one in value] if isinstance(value, list) else self.scalar(value, where)
                )
            else:
                self.unknown(name, f"{where}.{name}")
        return built

    def scale(self, scale: Json, channel: str, where: str) -> dict[str, Json]:
        built: dict[str, Json] = {}
        for name, value in _items(scale, where):
            at = f"{where}.{name}"
            if name == "domain":
                built[name] = [self.scalar(one, at) for one in _list(value, at)]
            elif name == "range":
                built[name] = self.range(value, channel, at)
            elif name in _SCALE_PROPERTIES:
                built[name] = self.plain(value, at)
            elif name in ("scheme", "interpolate"):
                _refuse(f"a colour {name}", at, "use theme.steps or the theme's default range")
            else:
                self.unknown(name, at)
        return built

    def range(self, value: Json, channel: str, where: str) -> Json:
        if isinstance(value, str):
            return self.one_of(value, _RANGES, where)
        check: Callable[[Json, str], Json]
        check = self.colour if channel in _COLOUR_CHANNELS else self.shape if channel == "shape" else self.plain
        return [check(one, where) for one in _list(value, where)]

    def guide(self, guide: Json, where: str) -> dict[str, Json]:
        built: dict[str, Json] = {}
        for name, value in _items(guide, where):
            at = f"{where}.{name}"
            if name in _DROPPED:
                continue
            if name in _GUIDE_COLOURS:
                built[name] = self.colour(value, at)
            elif name == "title":
                built[name] = self.text(value, at)
            elif name == "values":
                built[name] = [self.scalar(one, at) for one in _list(value, at, most=500)]
            elif name in ("format", "formatType"):
                built[name] = self.format(value, at)
            elif name == "tickCount" and not (isinstance(value, int | float) and 0 <= value <= 100):
                _refuse("a tick count that is not a number up to 100", at, "give the tick values")
            elif name in _GUIDE_PROPERTIES:
                built[name] = self.plain(value, at)
            else:
                self.unknown(name, at)
        return built

    def sort(self, value: Json, where: str) -> Json:
        if isinstance(value, Mapping):
            return {
                name: self.field(part, where) if name == "field" else self.word(part, where)
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [self.scalar(one, where) for one in value]
        return value if value is None else self.word(str(value).removeprefix("-"), where) and value

    def bin(self, value: Json, where: str) -> Json:
        if value is None or isinstance(value, bool) or value == "binned":
            return value
        built = {}
        for name, part in _items(value, where):
            if name not in ("maxbins", "nice", "binned", "extent") or (
                name == "maxbins" and not 0 < float(part) <= 500
            ):
                self.unknown(name, f"{where}.{name}")
            built[name] = self.plain(part, where)
        return built

    # Transforms

    def transform(self, step: Json, where: str) -> dict[str, Json]:
        if not isinstance(step, Mapping):
            _refuse("a transform that is not an object", where)
        kind = next((name for name in _TRANSFORMS if name in step), None)
        if kind is None:
            _refuse(f"transform {shown(', '.join(map(str, step)), 60)!r}", where, "compute the column before drawing")
        if kind == "filter":
            return {"filter": self.predicate(step["filter"], where)}
        built: dict[str, Json] = {}
        for name, value in step.items():
            if name not in _TRANSFORMS[kind]:
                self.unknown(name, f"{where}.{name}")
            built[name] = self.transform_part(name, value, where)
        return built

    def transform_part(self, name: str, value: Json, where: str) -> Json:
        if name == "from":
            if set(value) - {"data", "key", "fields"}:
                _refuse("a look-up that takes more than rows", where)
            return {
                "data": self.data(value["data"], where),
                "key": self.field(value["key"], where),
                "fields": [self.field(one, where) for one in _list(value["fields"], where)],
            }
        if name == "bin":
            return self.bin(value, where)
        if isinstance(value, list):
            return [self.transform_part("", one, where) for one in value]
        if isinstance(value, Mapping):
            return {part: self.transform_part(part, one, where) for part, one in value.items()}
        if name == "op":
            return self.one_of(value, _AGGREGATES | _WINDOWS, where)
        if isinstance(value, str):
            return self.word(value, where) if name in ("offset", "order", "timeUnit") else self.field(value, where)
        return self.scalar(value, where)

    # Literals

    def literal(self, value: Json, channel: str, where: str) -> Json:
        if channel in _COLOUR_CHANNELS and isinstance(value, str):
            return self.colour(value, where)
        return self.shape(value, where) if channel == "shape" else self.plain(value, where)

    def scalar(self, value: Json, where: str) -> Json:
        """Null, a truth value, a finite number or a text as the page shows it, the same wherever it stands."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if value not in self.texts:
                self.texts[value] = shown(value)
            return self.texts[value]
        if isinstance(value, int | float):
            return value if math.isfinite(value) else None
        _refuse(
            "a value inside a value" if isinstance(value, Mapping | list) else "something that is not a value", where
        )

    def plain(self, value: Json, where: str) -> Json:
        if isinstance(value, list):
            return [
                self.scalar(one, where) if not isinstance(one, list) else self.plain(one, where) for one in value[:500]
            ]
        return self.scalar(value, where)

    def sides(self, value: Json, where: str) -> Json:
        if not isinstance(value, Mapping):
            return self.plain(value, where)
        return {self.one_of(name, _SIDES, where): self.scalar(one, where) for name, one in value.items()}

    def text(self, value: Json, where: str) -> Json:
        return [self.scalar(one, where) for one in value] if isinstance(value, list) else self.scalar(value, where)

    def title(self, value: Json, where: str) -> Json:
        return (
            self.properties(value, _TITLE_PROPERTIES, where) if isinstance(value, Mapping) else self.text(value, where)
        )

    def properties(self, value: Json, allowed: frozenset[str], where: str) -> dict[str, Json]:
        built = {}
        for name, part in _items(value, where):
            at = f"{where}.{name}"
            if name in _GUIDE_COLOURS:
                built[name] = self.colour(part, at)
            elif name == "style":
                built[name] = theme.style(self.word(part, at))
            elif name in allowed:
                built[name] = self.plain(part, at)
            else:
                self.unknown(name, at)
        return built

    def extent(self, value: Json, where: str) -> Json:
        number = value.get("step") if isinstance(value, Mapping) and set(value) <= {"step", "for"} else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 8000:
            _refuse("a size that is not a number of px", where, "give px or a step in px")
        return {"step": number} if isinstance(value, Mapping) else number

    def colour(self, value: Json, where: str) -> Json:
        if value is None or value in ("transparent", "none"):
            return value
        if isinstance(value, str) and value.upper() in self.colours:
            return self.colours[value.upper()]
        _refuse(
            f"colour {shown(str(value), 40)!r}, which is not one of the theme",
            where,
            "use a named style or theme.colour",
        )

    def shape(self, value: Json, where: str) -> Json:
        if isinstance(value, str) and (value in _SHAPES or _PATH_SHAPE.fullmatch(value)):
            return value
        _refuse(f"shape {shown(str(value), 40)!r}", where, f"use one of {', '.join(sorted(_SHAPES))}")

    def field(self, name: Json, where: str, *, dataset: bool = False) -> str:
        pattern = name.replace("-", "_") if dataset and isinstance(name, str) else name
        if not isinstance(name, str) or not _FIELD.fullmatch(pattern):
            _refuse(f"field {shown(str(name), 40)!r}", where, "name it with letters, digits and _ alone")
        return name

    def word(self, value: Json, where: str) -> str:
        if not isinstance(value, str) or not WORD.fullmatch(value):
            _refuse(f"{shown(str(value), 40)!r} where a word should stand", where)
        return value

    def one_of(self, value: Json, allowed: frozenset[str], where: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            _refuse(f"{shown(str(value), 40)!r}", where, f"use one of {', '.join(sorted(allowed))}")
        return value

    def format(self, value: Json, where: str) -> str:
        if not isinstance(value, str) or not _FORMAT.fullmatch(value):
            _refuse(f"format {shown(str(value), 40)!r}", where, "use a d3 number format such as .1f")
        return value

    def count_panels(self, count: int, where: str) -> None:
        self.panels += count
        if self.panels > 4 * MOST_PANELS or count > MOST_PANELS:
            _refuse(f"more than {MOST_PANELS} panels", where, "draw the ones that matter")

    def unknown(self, name: str, where: str) -> NoReturn:
        _refuse(f"{shown(str(name), 40)!r} is not on the list of what a figure may hold", where)


_WINDOWS = words("row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value")
_TRANSFORMS: dict[str, frozenset[str]] = {
    "filter": frozenset(["filter"]),
    "fold": frozenset(["fold", "as"]),
    "flatten": frozenset(["flatten", "as"]),
    "joinaggregate": frozenset(["joinaggregate", "groupby"]),
    "aggregate": frozenset(["aggregate", "groupby"]),
    "window": frozenset(["window", "frame", "groupby", "sort", "ignorePeers"]),
    "stack": frozenset(["stack", "groupby", "offset", "sort", "as"]),
    "bin": frozenset(["bin", "field", "as"]),
    "lookup": frozenset(["lookup", "from", "as", "default"]),
}


def _items(value: Json, where: str) -> list[tuple[str, Json]]:
    if not isinstance(value, Mapping):
        _refuse(f"{type(value).__name__} where an object should stand", where)
    return [(str(name), part) for name, part in value.items()]


def _list(value: Json, where: str, most: int = MOST_ROWS) -> Sequence[Json]:
    if not isinstance(value, list | tuple) or len(value) > most:
        _refuse(f"{type(value).__name__} where a list of at most {most:,} should stand", where)
    return value


def checked(
    specification: Mapping[str, Any], *, scheme: theme.Scheme = "light", keep_title: bool = True
) -> dict[str, Any]:
    """The specification, rebuilt from what is allowed alone.

    Parameters
    ----------
    specification : Vega-Lite, its rows inside
    scheme : whose colours stand in it
    keep_title : whether the chart's own title stays in the picture

    Raises
    ------
    BadInput : it holds an expression, a signal, an address, an image, a field name that is not plain, a colour that
        is not one of the theme, or anything else that is not on the list
    UnknownName : a mark style that the theme does not have
    """
    try:
        return _Checker(scheme, keep_title).root(specification)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        raise BadInput(
            f"a specification of an unknown form ({type(error).__name__})", where="figure", mend="draw it again"
        ) from error
