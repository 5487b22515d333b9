"""How numbers are written, case by case."""

import math
import re
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from answerable.answer import Metric
from answerable.report import numbers
from answerable.report.numbers import counted_unit, written

NARROW = "\u202f"


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "line"),
    [
        (29.13, 26.23, 32.14, "%", f"29.1{NARROW}% [26.2, 32.2]"),
        (-1.2, -3.6, 1.15, "points", f"−1.2{NARROW}points [−3.6, 1.2]"),
        (0.421, 0.401, 0.441, "1", "0.421 [0.401, 0.441]"),
        (1234.2, 985.1, 1468.2, "1", "1,230 [980, 1,470]"),
        (61, 40, 84, "stays", f"61{NARROW}stays [40, 84]"),
        (5, 4, 6, "1", "5 [4, 6]"),  # counts are whole
        (0.3, 0.1 + 0.2, 0.5, "1", "0.30 [0.30, 0.50]"),  # the noise of a sum is not rounded outwards
        (3.1e-9, 2.9e-9, 3.4e-9, "s", f"3.10{NARROW}× 10⁻⁹ s [2.90, 3.40]"),
        (1e12, 0.9e12, 1.3e12, "1", f"1.00{NARROW}× 10¹² [0.90, 1.30]"),
        (0.5, -math.inf, 0.7, "1", "0.50 [−∞, 0.70]"),
        (0.3, 0.1, None, "1", "0.30 [0.10, ∞]"),
        (0.3, 0.3, 0.3, "1", "0.3 [0.3, 0.3]"),
        (-0.001, -0.2, 0.3, "1", "0.00 [−0.20, 0.30]"),  # no minus before a zero
    ],
)
def test_intervals(value: float, low: float | None, high: float | None, unit: str, line: str) -> None:
    assert written(value, low, high, unit=unit).line == line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.0, "0"),
        (-0.0, "0"),
        (31.2, "31.2"),
        (1 / 3, "0.333333"),
        (123456.789, "123,457"),
        (1_234_567, "1,234,567"),
        (999, "999"),
        (1000, "1,000"),
        (-1000.5, "−1,000.5"),
        (2.5e-5, f"2.5{NARROW}× 10⁻⁵"),
        (math.inf, "∞"),
    ],
)
def test_exact_numbers_keep_their_digits_six_at_most(value: float, text: str) -> None:
    assert written(value, kind="exact").line == f"{text}, exact"


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("questions", "question"),
        ("time steps", "time step"),
        ("classes", "class"),
        ("batches", "batch"),
        ("phases", "phase"),
        ("queries", "query"),
        ("units of the output", "unit of the output"),
        ("nats / root of tokens", "nat / root of tokens"),
        ("share of the largest loss", "share of the largest loss"),
        *((unit, unit) for unit in ("", "s", "ms", "US$", "loss", "bias", "basis", "probability")),
    ],
)
def test_one_of_a_kind_is_said_in_the_singular(many: str, one: str) -> None:
    assert counted_unit("1", many) == one
    assert counted_unit("−1", many) == one
    assert counted_unit("2", many) == many
    assert written(1, unit=many, kind="exact").unit == one
    assert written(1, 0, 2, unit=many).unit == many  # an interval holds others too
    assert written(1e-5, unit=many, kind="exact").unit == f"× 10⁻⁵ {many}".rstrip()


def test_rounding_never_touches_a_line_that_the_interval_clears() -> None:
    assert written(0.21, 0.2004, 0.2196).line == "0.210 [0.200, 0.220]"
    assert written(0.21, 0.2004, 0.2196, lines=[0.2]).line == "0.2100 [0.2004, 0.2196]"
    assert written(0.21, 0.2, 0.2196, lines=[0.2]).line == "0.210 [0.200, 0.220]"  # it touches, and says so


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_ends_are_rounded_outwards_by_less_than_a_tenth_of_the_width(value: float, down: float, up: float) -> None:
    low, high = value - down, value + up
    assume(max(abs(low), abs(high)) >= numbers.SMALLEST_PLAIN)
    assume((high - low) > max(abs(low), abs(high)) * 1e-7)  # what twelve digits can tell apart
    ends = re.findall(r"−?[\d,.]+", written(value, low, high).interval)
    bottom, top = (Decimal(end.replace(",", "").replace("−", "-")) for end in ends)
    noise = max(abs(low), abs(high)) * 1e-11
    assert float(bottom) <= low + noise
    assert float(top) >= high - noise
    assert low - float(bottom) < (high - low) / 10 + noise
    assert float(top) - high < (high - low) / 10 + noise


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.2, "p = 0.20"), (0.032, "p = 0.032"), (0.0012, "p = 0.0012"), (0.00099, "p < 0.001"), (1.0, "p = 1.0")],
)
def test_p_values(p: float, text: str) -> None:
    assert numbers.p_value(p) == text
    assert written(p, unit="p-value", kind="exact").line == text


def test_a_missing_number_says_why() -> None:
    assert numbers.metric_words(Metric(math.nan, reason="no rows")) == "– (no rows)"
    assert numbers.metric_words(Metric(3, unit="facts", kind="exact", method="search")) == f"3{NARROW}facts, exact"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.001, "under 0.01 s"),
        (0.02, "0.02 s"),
        (0.5, "0.5 s"),
        (9.96, "10 s"),
        (41, "41 s"),
        (59.7, "1 min 00 s"),
        (128, "2 min 08 s"),
        (7260, "2 h 01 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert numbers.duration(seconds).replace(NARROW, " ") == text


def test_memory_dates_digests_and_words() -> None:
    assert numbers.memory(870.4).replace(NARROW, " ") == "870 MB"
    assert numbers.memory(1234).replace(NARROW, " ") == "1.2 GB"
    assert numbers.date("2025-12-02T10:00:00+00:00") == "2 December 2025"
    assert numbers.date("yesterday") == "yesterday"
    assert numbers.digest("0123456789abcdef" * 4) == "01234567…cdef"
    assert [numbers.in_words(n) for n in (0, 1, 12, 13, 1000)] == ["no", "one", "twelve", "13", "1,000"]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([7.8, 31.2, 4.4, None, math.nan], ["7.8", "31.2", "4.4", "–", "–"]),
        ([1, 2, 30000], ["1", "2", "30,000"]),
        ([1 / 3, 2 / 3], ["0.333", "0.667"]),
        ([0.123456, 12.3, 1234.5], ["0.1", "12.3", "1,234.5"]),
        ([1e-7, 0.5, 0.25], ["1.0 × 10⁻⁷", "0.500", "0.250"]),
        ([0.002, 12.5, 30.25], ["0.0020", "12.5", "30.2"]),
        ([-8.3, math.inf], ["−8.3", "∞"]),
        ([40.7123, 40.7115, 40.719], ["40.7123", "40.7115", "40.7190"]),
        ([0.0, 0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_a_column_is_written_to_one_place(column: list[float | None], texts: list[str]) -> None:
    assert numbers.column(column) == texts
