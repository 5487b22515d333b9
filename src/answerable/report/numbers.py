"""How a number is written: as many digits as its interval bears, ends rounded outwards, units once.

The width of the interval, to two significant digits, sets the last place. An exact number keeps the digits it
has, at most six; a count is whole. A number is worked on as the decimal that Python prints for it, so that 0.3 stays
0.3.
"""

from __future__ import annotations

import datetime
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from answerable.answer import Metric

MINUS, NARROW_SPACE, DASH = "\u2212", "\u202f", "\u2013"
MOST_DIGITS = 6  # significant ones of an exact number
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-4, 1e9  # beyond these a power of ten is written
FEWEST_P = 0.001
UNITS_OF_P = frozenset(["p", "p-value"])

_AFTER_HEAD = re.compile(" of | a | per | ?/")  # "units of the output", "nats a token": what is counted stands before
_MANY = re.compile("(?P<es>[a-z]+(?:ss|x|z|ch|sh)(?=es$))|(?P<ies>[a-z]{3,}(?=ies$))|(?P<s>[a-z]{2,}(?<![aius])(?=s$))")

_NOISE = Context(prec=12)  # a sum of floats is off by parts in 10^16; rounding outwards must not make a digit of it
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Written:
    """A number as it is printed.

    Parameters
    ----------
    value : the number itself
    interval : its ends, ``[26.2, 32.2]``; empty for an exact number
    unit : a power of ten, where there is one, and the unit; empty for a bare ratio
    exact : whether it has no interval because it needs none
    """

    value: str
    interval: str = ""
    unit: str = ""
    exact: bool = False

    @property
    def line(self) -> str:
        """``29.1 % [26.2, 32.2]``, ``3 facts, exact``."""
        head = self.value + (NARROW_SPACE + self.unit if self.unit else "")
        return f"{head} {self.interval}" if self.interval else f"{head}, exact" if self.exact else head


def written(
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    unit: str = "1",
    kind: str = "estimated",
    lines: Sequence[float] = (),
) -> Written:
    """A number, its interval and its unit, as printed.

    Parameters
    ----------
    value, low, high : the number and the ends of its interval; an end that is None is open
    unit : in words, "1" for a bare ratio
    kind : ``exact`` numbers keep their digits, all others get those that the interval bears
    lines : numbers that rounding must not touch where the interval does not: the lines of expectations
    """
    unit = "" if unit == "1" else unit
    if math.isnan(value):
        return Written(DASH, unit=unit)
    exact = kind == "exact" or (low is None and high is None)
    if exact and unit in UNITS_OF_P and 0 <= value <= 1:
        return Written(p_value(value))
    power = _power(value, low, high)
    unit = f"× 10{str(power).translate(_SUPERSCRIPT)} {unit}".rstrip() if power else unit
    if exact:
        digits = _exact(value, power)
        return Written(digits, unit=unit if power else counted_unit(digits, unit), exact=kind == "exact")
    places = _places(value, low, high, power)
    for _ in range(MOST_DIGITS):
        if not any(_touched(line, low, high, places, power) for line in lines):
            break
        places += 1
    ends = f"[{_end(low, places, power, ROUND_FLOOR, '−∞')}, {_end(high, places, power, ROUND_CEILING, '∞')}]"
    return Written(_rounded(value, places, power, ROUND_HALF_EVEN), ends, unit)


def counted_unit(number: str, unit: str) -> str:
    """The unit as it is said after a printed number: ``1 question``, ``2 questions``; symbols stay as they are."""
    head = _AFTER_HEAD.split(unit, maxsplit=1)[0]
    before, space, word = head.rpartition(" ")
    many = _MANY.match(word) if number in ("1", f"{MINUS}1") else None
    if many is None:
        return unit
    return before + space + many[0] + ("y" if many["ies"] else "") + unit[len(head) :]


def metric_words(metric: Metric) -> str:
    """A metric in one line: ``29.1 % [26.2, 32.2]``; a missing one with its reason."""
    line = written(metric.value, metric.low, metric.high, unit=metric.unit, kind=metric.kind).line
    return f"{line} ({metric.reason})" if math.isnan(metric.value) else line


def p_value(probability: float) -> str:
    """``p = 0.032``, ``p < 0.001``."""
    if probability < FEWEST_P:
        return f"p < {FEWEST_P}"
    places = 1 - math.floor(math.log10(probability))
    return f"p = {_text(_decimal(probability).quantize(Decimal(1).scaleb(-places)))}"


def count(number: int) -> str:
    """``12,345``."""
    return f"{number:,}".replace("-", MINUS)


def in_words(number: int) -> str:
    """Up to twelve in words, then in digits."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else count(number)


def duration(seconds: float) -> str:
    """``0.02 s``, ``41 s``, ``2 min 08 s``, ``3 h 05 min``."""
    if seconds < 0.005:
        return f"under 0.01{NARROW_SPACE}s"
    if seconds < 9.95:
        digits = 2 if seconds < 0.095 else 1
        return f"{seconds:.{digits}f}{NARROW_SPACE}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{NARROW_SPACE}s"
    if whole < 3600:
        return f"{whole // 60}{NARROW_SPACE}min {whole % 60:02d}{NARROW_SPACE}s"
    return f"{count(whole // 3600)}{NARROW_SPACE}h {whole % 3600 // 60:02d}{NARROW_SPACE}min"


def memory(megabytes: float) -> str:
    """``870 MB``, ``1.2 GB``."""
    return f"{megabytes / 1000:.1f}{NARROW_SPACE}GB" if megabytes >= 999.5 else f"{megabytes:.0f}{NARROW_SPACE}MB"


def date(moment: str) -> str:
    """``2 December 2025`` from an ISO 8601 moment; the text itself where it is none."""
    try:
        day = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return moment
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def digest(hexadecimal: str) -> str:
    """First eight and last four digits of a long digest."""
    return f"{hexadecimal[:8]}…{hexadecimal[-4:]}" if len(hexadecimal) > 16 else hexadecimal


def column(numbers: Sequence[float | None]) -> list[str]:
    """One column of a table: its numbers to one last place, three significant digits of a usual one of them, and two of
    what lies between the smallest and the largest (latitudes of one town).

    A number that this place would turn into zero is written with two digits of its own.
    """
    finite = [number for number in numbers if number is not None and math.isfinite(number)]
    sizes = [abs(number) for number in finite if number]
    usual, largest = (statistics.median_low(sizes), max(sizes)) if sizes else (1.0, 1.0)
    spread = float(max(finite) - min(finite)) if finite else 0.0
    places = max(2 - _order(usual), 1 - _order(spread) if 0 < spread < math.inf else 0)
    places = min(places, MOST_DIGITS - 1 - _order(largest))
    places = max(0, min(places, _longest_fraction(sizes)))
    return [_cell(number, places) for number in numbers]


def _order(size: float) -> int:
    return math.floor(math.log10(size))


def _cell(number: float | None, places: int) -> str:
    if number is None or math.isnan(number):
        return DASH
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if abs(number) >= LARGEST_PLAIN * 1000 or 0 < abs(number) < 10.0**-places / 2:
        power = _exponent(number)
        if power < -3 or power > 8:
            mantissa = _rounded(number, 1, power, ROUND_HALF_EVEN)
            return f"{mantissa} × 10{str(power).translate(_SUPERSCRIPT)}"
        return _rounded(number, 1 - power, 0, ROUND_HALF_EVEN)
    return _rounded(number, places, 0, ROUND_HALF_EVEN)


def _longest_fraction(numbers: Sequence[float]) -> int:
    """Most decimals that any of the numbers has."""
    longest = 0
    for number in numbers:
        exponent = _decimal(number).normalize().as_tuple().exponent
        longest = max(longest, -exponent if isinstance(exponent, int) else 0)
        if longest >= 8:
            break
    return longest


def _decimal(number: float) -> Decimal:
    return Decimal(number) if isinstance(number, int) else _NOISE.create_decimal(repr(float(number)))


def _exponent(number: float) -> int:
    return _decimal(number).adjusted()


def _power(*numbers: float | None) -> int:
    """The power of ten that is written out where plain digits would be unreadable: that of the largest number."""
    sizes = [abs(number) for number in numbers if number is not None and math.isfinite(number) and number]
    largest = max(sizes, default=1.0)
    whole = all(isinstance(number, int) for number in numbers if number is not None)
    if SMALLEST_PLAIN <= largest < LARGEST_PLAIN or (whole and largest < 10**15):
        return 0
    return _exponent(largest)


def _exact(value: float, power: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    scaled = _decimal(value).scaleb(-power)
    if not power and scaled == scaled.to_integral_value():
        return _text(scaled.to_integral_value())
    return _text(Context(prec=MOST_DIGITS).create_decimal(scaled).normalize())


def _places(value: float, low: float | None, high: float | None, power: int) -> int:
    """Decimals, negative ones for tens and hundreds, that two significant digits of the interval's width set."""
    ends = [value if end is None or math.isinf(end) else end for end in (low, high)]
    width = _decimal(max(*ends, value)) - _decimal(min(*ends, value))
    if not width or not width.is_finite():
        exponent = _decimal(value).scaleb(-power).normalize().as_tuple().exponent
        return max(0, min(-exponent if isinstance(exponent, int) else 0, MOST_DIGITS))
    places = 1 - width.scaleb(-power).adjusted()
    counted = all(isinstance(number, int) for number in (value, low, high) if number is not None)
    return min(places, 0) if counted else places


def _touched(line: float, low: float | None, high: float | None, places: int, power: int) -> bool:
    """Whether the ends as printed reach a line that the interval itself stays clear of."""
    bottom = Decimal("-Infinity") if low is None else _quantized(low, places, power, ROUND_FLOOR)
    top = Decimal("Infinity") if high is None else _quantized(high, places, power, ROUND_CEILING)
    at = _decimal(line).scaleb(-power)
    clear = (low is not None and line < low) or (high is not None and line > high)
    return clear and bottom <= at <= top


def _quantized(number: float, places: int, power: int, rounding: str) -> Decimal:
    if math.isinf(number):
        return Decimal(repr(number))
    scaled = _decimal(number).scaleb(-power)
    try:
        return scaled.quantize(Decimal(1).scaleb(-places), rounding=rounding)
    except ArithmeticError:  # more digits than decimals carry
        return scaled


def _rounded(number: float, places: int, power: int, rounding: str) -> str:
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    return _text(_quantized(number, places, power, rounding))


def _end(end: float | None, places: int, power: int, rounding: str, open_end: str) -> str:
    return open_end if end is None else _rounded(end, places, power, rounding)


def _text(number: Decimal) -> str:
    text = f"{number:,f}"
    return text.lstrip("-") if not number else text.replace("-", MINUS)
