"""The SVG that Vega drew, rebuilt from a short list of elements and attributes: it can be looked at and do nothing.

Each light colour becomes ``var(--token,#hex)``, so that one drawing serves a light page, a dark page and paper. Marks
that follow one another in one paint are written together, which halves a chart of many.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from answerable import theme
from answerable.errors import BadInput
from answerable.report.specification import WORD, words

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LARGEST = 1_000_000  # characters
ID = "\ue000"  # stands for the prefix of ids until a page hands one in

_ELEMENTS = words("svg g path rect line circle text tspan defs clipPath")
_NUMBERS = words(
    "x y x1 y1 x2 y2 dx dy width height cx cy r rx ry d transform points font-size stroke-width stroke-miterlimit"
)
_WORDS = words(
    "text-anchor font-weight font-style stroke-linecap stroke-linejoin dominant-baseline fill-rule clip-rule"
)
_FRACTIONS = words("opacity fill-opacity stroke-opacity stroke-dasharray stroke-dashoffset")
_PAINTS = words("fill stroke")
_INHERITED = _PAINTS | words(
    "stroke-width stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-opacity fill-opacity "
    "font-size font-weight font-style text-anchor"
)
_DEFAULTS = {
    "opacity": "1",
    "fill-opacity": "1",
    "stroke-opacity": "1",
    "font-weight": "normal",
    "font-size": "12",
    "stroke-width": "1",
    "transform": "translate(0,0)",
}
_SAFE_NUMBERS = re.compile(r"[-+0-9.,eE()\sA-Za-z]*", re.ASCII)
_DECIMAL = re.compile(r"-?\d*\.\d+(?:e[-+]?\d+)?", re.ASCII)
_REFERENCE = re.compile(r"url\(#([A-Za-z0-9_-]{1,40})\)", re.ASCII)
_MOVED = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)", re.ASCII)
_NAMESPACE = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class _Node:
    """An element that may stand on a page."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    inside: str

    @property
    def paint(self) -> tuple[tuple[str, str], ...]:
        """What a group around it can say for it; nothing where it is no leaf."""
        if self.name not in ("path", "rect", "line", "circle", "text") or "<" in self.inside:
            return ()
        return tuple(pair for pair in self.attributes if pair[0] in _INHERITED)


def inert(drawn: str, described: str) -> str:
    """The SVG from known elements and attributes alone, without ids, classes and colours of its own.

    Parameters
    ----------
    drawn : what Vega drew
    described : the picture in words

    Raises
    ------
    BadInput : it is longer than a page bears
    """
    from xml.etree import ElementTree

    if "<!" in drawn.split(">", 1)[0]:
        raise BadInput("a drawing that begins with a declaration", where="figure", mend="draw it again")
    root = ElementTree.fromstring(drawn)
    inside = _written(_children(root, {}))
    width, height = (_shortened(root.get(side, "0")) for side in ("width", "height"))
    label = f' aria-label="{escape(described)}"' if described else ""
    built = (
        f'<svg role="img"{label} width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">{inside}</svg>'
    )
    if len(built) > LARGEST:
        raise BadInput("a picture of too many marks", where="figure", mend="aggregate before drawing")
    return built


# Reading


def _children(parent: Element, ids: dict[str, str]) -> list[_Node]:
    return list(itertools.chain.from_iterable(_nodes(child, ids) for child in parent))


def _nodes(element: Element, ids: dict[str, str]) -> list[_Node]:
    """The element if it may stand and shows something; of a group that says nothing, what is in it."""
    name = element.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS or element.get("display") == "none":
        return []
    attributes = _attributes(element, ids)
    children = _children(element, ids)
    if name == "g" and not attributes:
        return children
    inside = (escape(element.text or "") if name in ("text", "tspan") else "") + _written(children)
    empty = name in ("g", "text", "tspan", "defs") or not element.get("d", "-") or _is_ground(name, element)
    return [] if empty and not inside else [_Node(name, attributes, inside)]


def _is_ground(name: str, element: Element) -> bool:
    # Vega draws the ground of each group as a path that inherits fill="none".
    paint = element.get("fill") or element.get("stroke")
    return name == "path" and paint is None and element.get("class") in ("background", "foreground")


def _attributes(element: Element, ids: dict[str, str]) -> tuple[tuple[str, str], ...]:
    kept = ((name, _attribute(name, value, ids)) for name, value in element.attrib.items())
    return tuple((name, value) for name, value in kept if value is not None and value != _DEFAULTS.get(name))


def _attribute(name: str, value: str, ids: dict[str, str]) -> str | None:
    if name in _PAINTS:
        return _paint(value)
    if name in _NUMBERS:
        return _shortened(value.removesuffix("px")) if _SAFE_NUMBERS.fullmatch(value) else None
    if name in _FRACTIONS:
        return value if re.fullmatch(r"[0-9., e-]+", value) else None
    if name in _WORDS:
        return value if WORD.fullmatch(value) or value.isdecimal() else None
    if name == "id":
        return ID + ids.setdefault(value, str(len(ids)))
    if name == "clip-path" and (match := _REFERENCE.fullmatch(value)):
        return f"url(#{ID}{ids.setdefault(match.group(1), str(len(ids)))})"
    return None


def _shortened(numbers: str) -> str:
    return _DECIMAL.sub(lambda match: _to_hundredths(float(match.group())), numbers)


def _to_hundredths(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# Writing


def _written(nodes: Iterable[_Node]) -> str:
    """The elements, those in one paint together."""
    return "".join(_run(paint, list(run)) for paint, run in itertools.groupby(nodes, key=lambda node: node.paint))


def _run(paint: tuple[tuple[str, str], ...], nodes: list[_Node]) -> str:
    if len(nodes) < 2 or not paint:
        return "".join(_tag(node.name, node.attributes, node.inside) for node in nodes)
    parts = [_line(node, paint) for node in nodes]
    if all(parts):
        return _tag("path", (("d", "".join(parts)), *paint), "")
    rest = ((node.name, tuple(pair for pair in node.attributes if pair not in paint), node.inside) for node in nodes)
    return _tag("g", paint, "".join(_tag(*part) for part in rest))


def _line(node: _Node, paint: tuple[tuple[str, str], ...]) -> str:
    """A line as a piece of a path; empty for anything else."""
    rest = {name: value for name, value in node.attributes if (name, value) not in paint}
    moved = _MOVED.fullmatch(rest.pop("transform", "translate(0,0)"))
    ends = [rest.pop(name, "0") for name in ("x2", "y2")]
    return f"M{moved[1]} {moved[2]}l{ends[0]} {ends[1]}" if node.name == "line" and moved and not rest else ""


def _tag(name: str, attributes: Iterable[tuple[str, str]], inside: str) -> str:
    written = "".join(f' {name}="{value}"' for name, value in attributes)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


# Colours


@functools.cache
def _paint(value: str) -> str:
    """``none``, or the token whose light colour this is or comes nearest to."""
    if value in ("none", "transparent"):
        return "none"
    names = {pair["light"]: name for name, pair in theme.tokens().items()}
    if value.upper() not in names:
        # What is left are Vega's own greys and blacks; the theme's nearest one takes their place.
        rgb = _channels(value)
        value = min(names, key=lambda known: sum((a - b) ** 2 for a, b in zip(_channels(known), rgb, strict=True)))
    return f"var(--{names[value.upper()]},{value.upper()})"


def _channels(value: str) -> tuple[int, int, int]:
    if match := re.fullmatch(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})", value):
        red, green, blue = (int(part, 16) for part in match.groups())
    elif match := re.fullmatch(r"#([0-9a-fA-F])([0-9a-fA-F])([0-9a-fA-F])", value):
        red, green, blue = (17 * int(part, 16) for part in match.groups())
    elif match := re.fullmatch(r"rgba?\((\d+), ?(\d+), ?(\d+).*\)", value):
        red, green, blue = (int(part) for part in match.groups())
    else:
        red, green, blue = (255, 255, 255) if value == "white" else (0, 0, 0)
    return red, green, blue
