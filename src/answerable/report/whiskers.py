"""The small drawings of the page: a number with its interval, alone or against the line it has to clear.

The grammar is the charts': a round dot and a bare whisker are an estimate, a diamond with end stops proved bounds, a
diamond alone is exact, an arrowhead marks an open side, a hollow dot is undecided. Numbers alone go in, so nothing has
to be escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

WIDTH, HEIGHT = 200, 24  # px
MIDDLE = HEIGHT / 2
DOT, DIAMOND = 4.4, 5.2  # px from the middle of a mark to its edge
EDGE = 7.0  # px kept free at either end for the marks themselves

Tone = Literal["ours", "baseline", "undecided", "failed"]


@dataclass(frozen=True)
class Scale:
    """Where on the drawing a number lies: ``low`` at its left end, ``high`` at its right."""

    low: float
    high: float

    @classmethod
    def over(cls, numbers: Iterable[float | None], *, margin: float = 0.0) -> Scale:
        """The scale that holds all the numbers, with a part of its length free at either side."""
        finite = [number for number in numbers if number is not None and math.isfinite(number)]
        low, high = min(finite, default=0.0), max(finite, default=0.0)
        if low == high:
            reach = abs(low) or 1.0
            return cls(low - reach / 2, high + reach / 2)
        free = (high - low) * margin
        return cls(low - free, high + free)

    def at(self, number: float) -> float:
        """Px from the left end."""
        if math.isinf(number):
            return 0.0 if number < 0 else float(WIDTH)
        share = (number - self.low) / (self.high - self.low)
        return EDGE + min(max(share, 0.0), 1.0) * (WIDTH - 2 * EDGE)


@dataclass(frozen=True)
class Line:
    """The line to clear, two for a band, and the side that holds; None is outside a band, or all but the line."""

    low: float
    high: float | None = None
    side: Literal[">", "<", "band"] | None = None

    @property
    def ends(self) -> list[float]:
        """The places of its ticks."""
        return [self.low] if self.high is None or self.high == self.low else [self.low, self.high]


def whisker(
    value: float,
    low: float | None,
    high: float | None,
    kind: str,
    *,
    tone: Tone = "ours",
    scale: Scale,
    line: Line | None = None,
    zero: bool = False,
    ground: bool = True,
    label: str = "",
) -> Markup:
    """One number with its interval, as an inline SVG.

    Parameters
    ----------
    value, low, high, kind : as in a metric; an end that is None is open
    tone : whose number it is, or the outcome when that is what needs a person
    scale : where the numbers lie
    line : what it has to clear
    zero : whether a faint tick marks zero
    ground : whether a hairline runs from end to end
    label : the same in words
    """
    paths = [_rule(0, WIDTH, "rule", 1)] if ground else []
    if zero and scale.low < 0 < scale.high:
        paths.append(_tick(scale.at(0), "hatch", 5, 1))
    if line is not None:
        paths += [_rule(start, end, "rule", 7) for start, end in _sides(line, scale)]
        paths += [_tick(scale.at(end), "ink", 9, 1.25) for end in line.ends]
    if not math.isnan(value):
        paths += _interval(value, low, high, kind, tone, scale)
    return Markup(
        '<svg class="dw" role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">{}</svg>'
    ).format(label, WIDTH, HEIGHT, WIDTH, HEIGHT, Markup("").join(paths))


def _interval(value: float, low: float | None, high: float | None, kind: str, tone: Tone, scale: Scale) -> list[Markup]:
    paths = []
    if kind != "exact":
        start = 0.0 if low is None else scale.at(low)
        end = float(WIDTH) if high is None else scale.at(high)
        paths.append(_rule(start, end, tone, 1.75))
        if low is None or math.isinf(low):
            paths.append(_arrow(0.0, 1, tone))
        elif kind == "bounds":
            paths.append(_tick(start, tone, 5, 1.75))
        if high is None or math.isinf(high):
            paths.append(_arrow(float(WIDTH), -1, tone))
        elif kind == "bounds":
            paths.append(_tick(end, tone, 5, 1.75))
    paths.append(_mark(scale.at(value), "diamond" if kind in ("exact", "bounds") else "dot", tone))
    return paths


def _sides(line: Line, scale: Scale) -> list[tuple[float, float]]:
    first, last = scale.at(line.ends[0]), scale.at(line.ends[-1])
    if line.side == ">":
        return [(first, WIDTH)]
    if line.side == "<":
        return [(0, first)]
    return [(first, last)] if line.side == "band" else [(0, first), (last, WIDTH)]


def _rule(start: float, end: float, token: str, width: float) -> Markup:
    return Markup('<path d="M{} {}H{}" stroke="var(--{})" stroke-width="{}"/>').format(
        _px(start), _px(MIDDLE), _px(end), token, _px(width)
    )


def _tick(at: float, token: str, reach: float, width: float) -> Markup:
    return Markup('<path d="M{} {}v{}" stroke="var(--{})" stroke-width="{}"/>').format(
        _px(at), _px(MIDDLE - reach), _px(2 * reach), token, _px(width)
    )


def _arrow(at: float, direction: int, token: str) -> Markup:
    path = '<path d="M{} {}l{} -4.5M{} {}l{} 4.5" stroke="var(--{})" stroke-width="1.75" fill="none"/>'
    return Markup(path).format(_px(at), _px(MIDDLE), 6 * direction, _px(at), _px(MIDDLE), 6 * direction, token)


def _mark(at: float, shape: str, tone: Tone) -> Markup:
    hollow = tone == "undecided"
    fill = "paper" if hollow else tone
    edge = Markup(' stroke="var(--{})" stroke-width="1.75"').format(tone) if hollow else Markup("")
    if shape == "dot":
        radius = DOT - 0.4 if hollow else DOT
        return Markup('<circle cx="{}" cy="{}" r="{}" fill="var(--{})"{}/>').format(
            _px(at), _px(MIDDLE), _px(radius), fill, edge
        )
    reach = DIAMOND
    return Markup('<path d="M{} {}l{r} {r}l-{r} {r}l-{r} -{r}z" fill="var(--{})"{}/>').format(
        _px(at), _px(MIDDLE - reach), fill, edge, r=_px(reach)
    )


def _px(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)


def shared_scale(intervals: Sequence[tuple[float, float | None, float | None]]) -> Scale:
    """One scale for numbers of one unit; it begins or ends at zero where zero is not far from them."""
    numbers = [number for interval in intervals for number in interval if number is not None and math.isfinite(number)]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    near = high - low if high > low else max(abs(low), abs(high))
    if 0 < low <= 2 * near:
        low = 0.0
    if 0 > high >= -2 * near:
        high = 0.0
    return Scale.over([low, high], margin=0.02)
