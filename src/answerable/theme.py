"""One look for every figure: named colours, named mark styles and ranges of seven steps, all from ``theme.json``.

A figure names no colour of its own. It draws marks in a named style (``mark_point(style=style("estimate"))``), takes
a heat or a signed scale from :func:`steps`, and a colour that no style has from :func:`colour`, always the light one:
whoever renders the figure replaces each light colour by its token, so that one drawing serves a light page, a dark page
and paper.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from answerable.errors import BadInput, unknown

Scheme = Literal["light", "dark"]
Ramp = Literal["seq", "signed"]

RAMPS: dict[str, tuple[str, ...]] = {
    "seq": ("seq0", "seq1", "seq2", "seq3", "seq4", "seq5", "seq6"),
    "signed": ("neg3", "neg2", "neg1", "zero", "pos1", "pos2", "pos3"),
}
CATEGORIES = ("ours", "cat2", "cat3", "cat4")
HATCH_SPACING = 6.0  # px between two rules of a hatch, measured along x


@functools.cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return document


def tokens() -> Mapping[str, Mapping[Scheme, str]]:
    """Every colour by its name, each as ``{"light": "#...", "dark": "#..."}``."""
    return _document()["tokens"]


def config(scheme: Scheme = "light") -> dict[str, Any]:
    """The Vega-Lite configuration of a colour scheme; a copy that may be changed."""
    return copy.deepcopy(_document()[scheme])


def colour(token: str, scheme: Scheme = "light") -> str:
    """The colour of that name, as ``#RRGGBB``.

    Raises
    ------
    UnknownName : there is none; names the nearest one
    """
    if token not in tokens():
        raise unknown("colour", token, tokens(), where="theme")
    return tokens()[token][scheme]


def styles() -> list[str]:
    """Names of all mark styles."""
    return list(_document()["light"]["style"])


def style(name: str) -> str:
    """``name`` itself, once it is known to be a mark style; Vega-Lite would pass over a misspelt one in silence.

    Raises
    ------
    UnknownName : there is none; names the nearest one
    """
    if name not in _document()["light"]["style"]:
        raise unknown("mark style", name, styles(), where="theme")
    return name


def categories(count: int) -> list[str]:
    """The colours of ``count`` categories, ours first.

    Raises
    ------
    BadInput : there are more than four
    """
    if not 1 <= count <= len(CATEGORIES):
        raise BadInput(
            f"{count} categories in one picture",
            where="theme",
            mend="draw small multiples, or at most four against grey",
        )
    return [colour(token) for token in CATEGORIES[:count]]


def steps(ramp: Ramp, edges: Sequence[float]) -> dict[str, Any]:
    """A scale of named steps: ``alt.Scale(**steps("seq", [2, 5, 10, 20, 35, 60]))``.

    Parameters
    ----------
    ramp : ``seq``, little to much in seven steps, or ``signed``, seven steps centred on zero
    edges : where one step ends and the next begins, rising; six for all seven steps. Fewer give fewer steps,
        spread over the ramp; ``signed`` takes an even number, its middle step being "about zero"

    Returns
    -------
    dict with type, domain and range of a threshold scale

    Raises
    ------
    BadInput : the edges do not rise, or are too many, or of an odd number for ``signed``
    """
    names = RAMPS[ramp]
    domain = [float(edge) for edge in edges]
    rising = all(a < b for a, b in itertools.pairwise(domain)) and all(map(math.isfinite, domain))
    if not rising or not 1 <= len(domain) < len(names):
        raise BadInput(f"{len(domain)} edges that must rise", where="theme", mend="give one to six rising numbers")
    if ramp == "signed" and len(domain) % 2:
        raise BadInput(f"{len(domain)} edges of a signed scale", where="theme", mend="give two, four or six")
    last = len(names) - 1
    chosen = [names[round(i * last / len(domain))] for i in range(len(domain) + 1)]
    return {"type": "threshold", "domain": domain, "range": [colour(name) for name in chosen]}


def round_edges(low: float, high: float, *, count: int = 6) -> list[float]:
    """At most ``count`` round numbers that cut [low, high] into steps of about one width.

    Parameters
    ----------
    low, high : ends of the data, low < high; for a signed scale hand in ``-most, most`` and an even count
    count : edges wanted, 1 to 6

    Returns
    -------
    list of float, rising, inside (low, high); symmetric about 0 where low = -high
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise BadInput(
            f"no range from {low:g} to {high:g}", where="theme", mend="give two finite numbers, the smaller first"
        )
    width = (high - low) / (count + 1)
    step = Decimal(10) ** math.floor(math.log10(width))
    step *= next(
        factor
        for factor in (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
        if float(step * factor) >= width * 0.999
    )
    if low == -high:
        half = [float(step * (2 * i + 1) / 2) for i in range(count // 2)]
        return sorted([-edge for edge in half if edge < high] + [edge for edge in half if edge < high])
    first = math.floor(low / float(step)) + 1
    edges = [float(step * (first + i)) for i in range(count)]
    return [edge for edge in edges if low < edge < high]


def visible(text: object, longest: int, *, signs: Mapping[str, str] | None = None) -> str:
    """Text of a model, a file or a user as it may be drawn: control characters written out, cut to ``longest``.

    Parameters
    ----------
    text : what is drawn
    longest : characters at most; the last one of a longer text is an ellipsis
    signs : what to draw in place of some characters, such as a line's end
    """
    signs = signs or {}
    written = "".join(
        signs.get(sign, sign) if sign in signs or unicodedata.category(sign)[0] != "C" else f"⟨{ord(sign):04X}⟩"
        for sign in str(text)[: 4 * longest]
    )
    return written if len(written) <= longest else written[: longest - 1] + "…"


def hatch(
    left: float, right: float, bottom: float, top: float, *, x_per_px: float = 1.0, y_per_px: float = 1.0
) -> list[dict[str, float]]:
    """The hatch of one rectangle as rules at 45 degrees, clipped to it; for ``mark_rule(style="null-hatch")``.

    A hatch means "null, control, nobody here" and nothing else.

    Parameters
    ----------
    left, right, bottom, top : the rectangle, in the units of the two axes
    x_per_px, y_per_px : units of each axis in one px of the drawing

    Returns
    -------
    list of ``{"x", "y", "x2", "y2"}`` in the units of the axes
    """
    width, height = (right - left) / x_per_px, (top - bottom) / y_per_px
    rules = []
    for i in range(1, math.ceil((width + height) / HATCH_SPACING)):
        start = i * HATCH_SPACING - height  # px, where the rule would meet the lower edge
        from_x, to_x = max(start, 0.0), min(start + height, width)
        if to_x - from_x > 0.5:
            rules.append(
                {
                    "x": left + from_x * x_per_px,
                    "y": bottom + (from_x - start) * y_per_px,
                    "x2": left + to_x * x_per_px,
                    "y2": bottom + (to_x - start) * y_per_px,
                }
            )
    return rules
