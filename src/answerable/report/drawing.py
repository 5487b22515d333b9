"""A figure's specification to a picture, drawn offline and made to follow the reader's colour scheme.

The SVG that Vega draws is rebuilt from a short list of elements and attributes, each light colour replaced by
``var(--token,#hex)``, and kept in the local cache under the digest of everything it depends on.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from answerable import atomic, places, theme
from answerable.answer import NARROW, WIDE
from answerable.errors import BadInput, CannotWrite
from answerable.report.specification import WORD, checked, words
from answerable.report.visible import shown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERSION = 2  # raised whenever the same specification would give another SVG
LARGEST_SVG = 1_000_000  # characters
LEFT, RIGHT, RIGHT_NARROW = 14, 28, 14  # px kept free inside the SVG for fonts wider than the one it was measured with


def svg(specification: Mapping[str, Any], *, room: int = WIDE, prefix: str = "") -> str:
    """The picture as one inline SVG element that follows the page's colours.

    Title and subtitle are left to the caption around it; it carries ``role="img"`` and the description.

    Parameters
    ----------
    specification : Vega-Lite, its rows inside; need not be trusted
    room : px that the picture may take across; a wider one is drawn again to fit
    prefix : what its ids begin with; two pictures of one page need two

    Raises
    ------
    BadInput : the specification holds what is not allowed, or cannot be drawn
    """
    view = checked(specification, keep_title=False)
    config = _report_config(room)
    described = shown(str(specification.get("description", "")), 400)
    digest = _digest(view, config, described, room)
    drawn = _from_cache(digest)
    if drawn is None:
        drawn = _rebuilt(_fitted(view, config, room), described)
        _into_cache(digest, drawn)
    return drawn.replace(_ID, prefix or f"f{digest[:10]}-")


def png(specification: Mapping[str, Any], scheme: theme.Scheme = "light", *, scale: float = 2.0) -> bytes:
    """The picture with its title, as a PNG of ``scale`` device pixels per px.

    Raises
    ------
    BadInput : the specification holds what is not allowed, or cannot be drawn
    """
    import vl_convert

    view = checked(specification, scheme=scheme)
    try:
        drawn: bytes = vl_convert.vegalite_to_png(view, scale=scale, config=_config(scheme), allowed_base_urls=[])
    except ValueError as error:
        raise _not_drawn(error) from error
    return drawn


def _config(scheme: theme.Scheme) -> dict[str, Any]:
    # Vega-Lite writes titles into the expression that describes each mark, and a backslash in one ends its quotes.
    return {**theme.config(scheme), "aria": False}


def _report_config(room: int) -> dict[str, Any]:
    config = _config("light")
    right = RIGHT if room > NARROW else RIGHT_NARROW
    return {**config, "background": None, "padding": {"left": LEFT, "right": right, "top": 4, "bottom": 4}}


def _fitted(view: dict[str, Any], config: dict[str, Any], room: int) -> str:
    """The SVG that Vega draws, not wider than its room where the chart is a single or layered one."""
    drawn = _vega(view, config)
    widest = room + config["padding"]["left"] + config["padding"]["right"]
    single = "mark" in view or "layer" in view
    if not single or not isinstance(view.get("width"), int | float) or _width(drawn) <= widest:
        return drawn
    autosize = {"type": "fit-x", "contains": "padding"}
    return _vega({**view, "width": widest, "autosize": autosize}, config)


def _vega(view: dict[str, Any], config: dict[str, Any]) -> str:
    import vl_convert

    try:
        drawn: str = vl_convert.vegalite_to_svg(view, config=config, allowed_base_urls=[])
    except ValueError as error:
        raise _not_drawn(error) from error
    if len(drawn) > 8 * LARGEST_SVG:
        raise BadInput("a picture of too many marks", where="figure", mend="aggregate before drawing")
    return drawn


def _not_drawn(error: ValueError) -> BadInput:
    line = next((line for line in str(error).splitlines() if "Error" in line), str(error))
    return BadInput(f"it cannot be drawn ({shown(line)})", where="figure", mend="draw it again")


def _width(drawn: str) -> float:
    match = re.search(r'<svg[^>]* width="([0-9.]+)"', drawn)
    return float(match.group(1)) if match else 0.0


@functools.cache
def _renderer() -> str:
    from importlib.metadata import version

    return version("vl-convert-python")


def _digest(*parts: Any) -> str:
    document = json.dumps([VERSION, _renderer(), *parts], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(document.encode("ascii")).hexdigest()


def _from_cache(digest: str) -> str | None:
    folder = places.cache()
    try:
        drawn = (folder / "pictures" / f"{digest}.svg").read_text(encoding="utf-8") if folder else ""
    except (OSError, UnicodeDecodeError):
        return None
    return drawn if drawn.startswith("<svg ") and drawn.endswith("</svg>") else None


def _into_cache(digest: str, drawn: str) -> None:
    folder = places.cache()
    if folder:
        try:
            atomic.write_bytes(folder / "pictures" / f"{digest}.svg", drawn.encode("utf-8"))
        except CannotWrite:
            return  # a full disk costs the next report its time, not this one its picture


# The SVG, rebuilt anew

_ID = "\ue000"  # stands for the prefix of ids until a page hands one in
_ELEMENTS = words("svg g path rect line circle text tspan defs clipPath")
_NUMBERS = words(
    "x y x1 y1 x2 y2 dx dy width height cx cy r rx ry d transform points font-size stroke-width stroke- "
    "dashoffset stroke-miterlimit"
)
_WORDS = words(
    "text-anchor font-weight font-style stroke-linecap stroke-linejoin dominant-baseline fill-rule clip-rule"
)
_FRACTIONS = words("opacity fill-opacity stroke-opacity")
_PAINTS = frozenset(["fill", "stroke"])
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
_NAMESPACE = "{http://www.w3.org/2000/svg}"


def _rebuilt(drawn: str, described: str) -> str:
    """The SVG from known elements and attributes alone, without ids, classes and colours of its own."""
    from xml.etree import ElementTree

    if "<!" in drawn.split(">", 1)[0]:
        raise BadInput("a drawing that begins with a declaration", where="figure", mend="draw it again")
    root = ElementTree.fromstring(drawn)
    ids: dict[str, str] = {}
    inside = "".join(_element(child, ids) for child in root)
    width, height = (_shortened(root.get(side, "0")) for side in ("width", "height"))
    label = f' aria-label="{escape(described)}"' if described else ""
    built = (
        f'<svg role="img"{label} width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">{inside}</svg>'
    )
    if len(built) > LARGEST_SVG:
        raise BadInput("a picture of too many marks", where="figure", mend="aggregate before drawing")
    return built


def _element(element: Element, ids: dict[str, str]) -> str:
    name = element.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS or element.get("display") == "none":
        return ""
    attributes = _attributes(element, ids)
    inside = escape(element.text or "") if name in ("text", "tspan") else ""
    inside += "".join(_element(child, ids) for child in element)
    if name == "g" and not attributes:
        return inside
    if not inside and (
        name in ("g", "text", "tspan", "defs") or not element.get("d", "-") or _unpainted(name, element)
    ):
        return ""
    return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes}/>"


def _unpainted(name: str, element: Element) -> bool:
    # Vega draws the ground of each group as a path that inherits fill="none".
    return (
        name == "path"
        and element.get("fill") is None
        and element.get("stroke") is None
        and "aria-hidden" in element.attrib
    )


def _attributes(element: Element, ids: dict[str, str]) -> str:
    written = []
    for name, value in element.attrib.items():
        kept = _attribute(name, value, ids)
        if kept is not None and kept != _DEFAULTS.get(name):
            written.append(f' {name}="{kept}"')
    return "".join(written)


def _attribute(name: str, value: str, ids: dict[str, str]) -> str | None:
    if name in _PAINTS:
        return _paint(value)
    if name in _NUMBERS:
        return _shortened(value.removesuffix("px")) if _SAFE_NUMBERS.fullmatch(value) else None
    if name in _FRACTIONS or name == "stroke-dasharray":
        return value if re.fullmatch(r"[0-9., e-]+", value) else None
    if name in _WORDS:
        return value if WORD.fullmatch(value) or value.isdecimal() else None
    if name == "id":
        return _ID + ids.setdefault(value, str(len(ids)))
    if name == "clip-path" and (match := _REFERENCE.fullmatch(value)):
        return f"url(#{_ID}{ids.setdefault(match.group(1), str(len(ids)))})"
    return None


def _shortened(numbers: str) -> str:
    return _DECIMAL.sub(lambda match: _to_hundredths(float(match.group())), numbers)


def _to_hundredths(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


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
