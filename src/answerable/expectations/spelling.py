"""How reasons print numbers and texts: ends are rounded outwards, control characters shown and never obeyed."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence

from answerable.expectations.numbers import Missing, Reading, Value
from answerable.report.numbers import counted_unit

LONGEST_QUOTE, LONGEST_REASON = 200, 1000  # characters of a text, or of an answer's own reason, that are repeated


def quoted(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The text in quotes, as :func:`shown`."""
    return f'"{shown(text, longest)}"'


def shown(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The text cut to a length, its control characters shown rather than obeyed."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in cut
    )


def one_line(text: str) -> str:
    """An answer's own words on one line."""
    return shown(" ".join(text.split()), LONGEST_REASON)


def at_character(position: int) -> str:
    """A place in the text, counted from 1."""
    return f"character {position + 1}"


def with_unit(number: str, unit: str) -> str:
    """A number and its unit."""
    return number if unit in ("", "1") else f"{number}\u202f{counted_unit(number, shown(unit, 40))}"


def spoken(number: float) -> str:
    """A number to six digits, with a true minus sign."""
    if isinstance(number, int) and abs(number) < 10**15:
        return f"{number:,}".replace("-", "−")
    text = f"{decimal.Decimal(number):.6g}" if isinstance(number, int) else f"{number:,.6g}"
    return text.replace("-", "−").replace("inf", "∞")


def apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers as they are spoken, but with all digits where they would look alike."""
    if first != second and spoken(first) == spoken(second):
        return repr(first), repr(second)
    return spoken(first), spoken(second)


def told(value: Value) -> str:
    """A value as a reason repeats it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Missing):
        return "missing"
    return quoted(value) if isinstance(value, str) else in_print(value, ())


def in_print(number: Reading, lines: Sequence[float]) -> str:
    """A number as it is printed: ``29.1 % [26.2, 32.2]``.

    The width of the interval, to two digits, sets the last place; the ends are rounded outwards, to one more place for
    as long as that would put one of ``lines`` on the other side.
    """
    if number.exact:
        return with_unit(spoken(number.value), number.unit)
    finite = [end for end in (number.low, number.high) if math.isfinite(end)]
    spread = max((abs(end - other) for end in finite for other in (*finite, number.value)), default=0)
    places = 1 - math.floor(math.log10(spread)) if 0 < spread < math.inf else 6
    texts = _rounded(number, places, lines)
    return f"{with_unit(texts[0], number.unit)} [{texts[1]}, {texts[2]}]"


def _rounded(number: Reading, places: int, lines: Sequence[float]) -> list[str]:
    numbers = (number.value, number.low, number.high)
    directions = (decimal.ROUND_HALF_EVEN, decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
    # As they are written: the float nearest to 0.47 lies below it, and would not be seen to be touched.
    exact = [decimal.Decimal(repr(value)) for value in numbers]
    written = [decimal.Decimal(repr(line)) for line in lines]
    context = decimal.Context(prec=400)
    for digits in range(places, places + 20):
        last = decimal.Decimal(1).scaleb(-digits)
        try:
            value, low, high = (
                end.quantize(last, rounding, context) if end.is_finite() else end
                for end, rounding in zip(exact, directions, strict=True)
            )
        except decimal.InvalidOperation:  # more than 400 digits
            break
        if not any(low <= line < exact[1] or exact[2] < line <= high for line in written):
            return [_in_figures(end) for end in (value, low, high)]
    return [spoken(end) for end in numbers]


def _in_figures(number: decimal.Decimal) -> str:
    return f"{number:,f}".replace("-", "−").replace("Infinity", "∞")
