"""Numbers with intervals: arithmetic on them, and how they compare.

A number that is not exact stands for its whole interval: a comparison is *held* when the whole interval clears the
line, *failed* when the whole interval misses it, and *undecided* otherwise, also when it only touches. Arithmetic on
intervals is interval arithmetic (Moore 1966). It takes no account of how two estimates depend on each other, so its
intervals are never too narrow, save for the last digit of a float, and often too wide.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from answerable.errors import BadDossier
from answerable.expectations.outcomes import Word

if TYPE_CHECKING:
    from answerable.answer import Kind

LARGEST_WHOLE = 1023  # bits; beyond it a whole number may not fit a float


@dataclass(frozen=True, slots=True)
class Reading:
    """A number with its interval; ``low == high == value`` if it is exact."""

    value: float
    low: float
    high: float
    kind: Kind = "exact"
    unit: str = ""
    percent: bool = False  # written with %, so already divided by 100
    whole: Reading | None = None  # the metric of which this is the value or an end
    signed: Reading | None = None  # the number of which this is the absolute value

    @property
    def exact(self) -> bool:
        # Proved bounds that meet prove the number itself; an estimate is never exact, however narrow its interval.
        return self.kind == "exact" or (self.kind == "bounds" and self.low == self.high)


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that does not exist, and why."""

    reason: str
    null: bool = False  # an empty cell or no verdict, rather than NaN


NULL = Missing("null", null=True)
Value: TypeAlias = Reading | Missing | str | bool


def kind_of(value: Value) -> str:
    """What a value is, for an error."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Missing):
        return "null"
    return "text" if isinstance(value, str) else "a number"


def exactly(value: float, *, unit: str = "", percent: bool = False, whole: Reading | None = None) -> Reading:
    """An exact number."""
    return Reading(value, value, value, "exact", unit, percent, whole)


def too_large(number: object) -> bool:
    """Whether a whole number is beyond what a float can hold, so that nothing else can be told of it."""
    return isinstance(number, int) and number.bit_length() > LARGEST_WHOLE


def hundredth(value: float) -> float:
    """The number over 100, computed in decimal: 29.1 / 100 is not 0.291 in floats."""
    return float(decimal.Decimal(repr(value)) / 100)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def order(left: Reading, sign: str, right: Reading) -> Word:
    """Outcome of ``left < right`` and its like."""
    if left.exact and right.exact:
        return "held" if COMPARE[sign](left.value, right.value) else "failed"
    below, above = left.high < right.low, left.low > right.high
    if not (below or above):
        return "undecided"
    holds = {"<": below, "<=": below, ">": above, ">=": above, "==": False, "!=": True}
    return "held" if holds[sign] else "failed"


def band(centre: float, tolerance: float) -> tuple[float, float]:
    """Both edges, computed in decimal: 0.8 lies on the edge of 0.7 ± 0.1, although 0.7 + 0.1 < 0.8 in floats."""
    if not (math.isfinite(centre) and math.isfinite(tolerance)):
        return centre - tolerance, centre + tolerance
    middle, width = decimal.Decimal(repr(centre)), decimal.Decimal(repr(tolerance))
    return float(middle - width), float(middle + width)


def inside(number: Reading, low: float, high: float) -> Word:
    """Outcome of ``low <= number <= high``."""
    if number.exact:
        return "held" if low <= number.value <= high else "failed"
    if low < number.low and number.high < high:
        return "held"
    return "failed" if number.high < low or number.low > high else "undecided"


_OPERATIONS: dict[str, Callable[[Any, Any], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def arithmetic(sign: str, left: Value, right: Value) -> Reading | Missing:
    """``left + right`` and its like; missing if an operand is, or if no number comes of it."""
    operands = _readings((left, right), sign)
    if isinstance(operands, Missing):
        return operands
    first, second = operands
    try:
        value = _OPERATIONS[sign](first.value, second.value)
        low, high = (value, value) if first.exact and second.exact else _ends(sign, first, second)
    except ZeroDivisionError:
        return Missing("something is divided by 0")
    except OverflowError:
        return Missing("the arithmetic leaves the range of numbers")
    if any(math.isnan(number) for number in (value, low, high) if isinstance(number, float)):
        return Missing("the arithmetic gives no number, as inf - inf does")
    if too_large(value):
        return Missing("the arithmetic leaves the range of numbers")
    return Reading(value, low, high, _joint_kind(operands, low, high), _common_unit(operands) if sign in "+-" else "")


def _ends(sign: str, left: Reading, right: Reading) -> tuple[float, float]:
    """Both ends of an interval's sum, difference, product or quotient."""
    if sign == "+":
        return left.low + right.low, left.high + right.high
    if sign == "-":
        return left.low - right.high, left.high - right.low
    if sign == "/" and right.low <= 0 <= right.high:
        return -math.inf, math.inf
    # An open end stands for every finite number: 0 times it is 0, and so is anything divided by it in the end.
    pairs = [(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    if sign == "*":
        corners = [0 if 0 in pair else pair[0] * pair[1] for pair in pairs]
    else:
        corners = [0 if math.isinf(b) else a / b for a, b in pairs]
    return min(corners), max(corners)


def negation(value: Value) -> Reading | Missing:
    """``-value``."""
    negated = arithmetic("-", exactly(0), value)
    if isinstance(negated, Reading) and isinstance(value, Reading):
        return replace(negated, percent=value.percent)
    return negated


def call(function: str, values: Sequence[Value]) -> Reading | Missing:
    """``abs``, ``min`` or ``max`` of the values."""
    numbers = _readings(values, f"{function}()")
    if isinstance(numbers, Missing):
        return numbers
    if function == "abs":
        return _magnitude(numbers[0])
    pick = min if function == "min" else max
    value, low, high = (pick(getattr(number, part) for number in numbers) for part in ("value", "low", "high"))
    percent = any(number.percent for number in numbers)
    return Reading(value, low, high, _joint_kind(numbers, low, high), _common_unit(numbers), percent)


def _magnitude(number: Reading) -> Reading:
    low, high = sorted((abs(number.low), abs(number.high)))
    if number.low < 0 < number.high:
        low = 0
    kind = _joint_kind([number], low, high)
    return Reading(abs(number.value), low, high, kind, number.unit, number.percent, signed=number)


def _readings(values: Sequence[Value], user: str) -> list[Reading] | Missing:
    """The values as numbers, or the first that is missing."""
    for value in values:
        if value is NULL or isinstance(value, bool | str):
            raise BadDossier(f"{user} is used with {kind_of(value)}", mend="calculate with numbers only")
    missing = next((value for value in values if isinstance(value, Missing)), None)
    return missing or [value for value in values if isinstance(value, Reading)]


def _joint_kind(numbers: Sequence[Reading], low: float, high: float) -> Kind:
    kinds = {number.kind for number in numbers}
    if kinds == {"exact"}:
        return "exact"
    if math.isinf(low) != math.isinf(high):
        return "one_sided"
    return "bounds" if kinds <= {"bounds", "exact"} else "estimated"


def _common_unit(numbers: Sequence[Reading]) -> str:
    units = {number.unit for number in numbers} - {""}
    return units.pop() if len(units) == 1 else ""
