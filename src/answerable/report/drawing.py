"""A figure's specification to a picture, drawn offline and made to follow the reader's colour scheme.

The SVG is kept in the local cache under the digest of everything it depends on, and never taken from a saved answer.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from answerable import atomic, places, theme
from answerable.answer import NARROW, WIDE
from answerable.errors import BadInput, CannotWrite
from answerable.report.inert import ID, inert
from answerable.report.specification import checked
from answerable.report.visible import shown
from answerable.secrets import redacted

VERSION = 3  # raised whenever the same specification would give another SVG
LARGEST_DRAWN = 8_000_000  # characters of what Vega draws
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
    digest = _digest(specification, room)
    drawn = _from_cache(digest)
    if drawn is None:
        view = checked(specification, keep_title=False)
        described = shown(str(specification.get("description", "")), 400)
        drawn = inert(_fitted(view, _report_config(room), room), described)
        _into_cache(digest, drawn)
    return drawn.replace(ID, prefix or f"f{digest[:10]}-")


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
    if len(drawn) > LARGEST_DRAWN:
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


def _digest(specification: Mapping[str, Any], room: int) -> str:
    """SHA-256 of all that a picture depends on; what was drawn before a secret was known as one is not found again."""
    try:
        document = redacted(json.dumps([room, specification], sort_keys=True, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("a specification that is not JSON", where="figure", mend="draw it again") from error
    whole = f"{VERSION} {_renderer()} {_theme_digest()} {document}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def _theme_digest() -> str:
    return hashlib.sha256(json.dumps(_report_config(WIDE), sort_keys=True).encode()).hexdigest()


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
