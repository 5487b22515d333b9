"""The small drawings: where marks stand, and which mark says what."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.report.whiskers import EDGE, WIDTH, Line, Scale, shared_scale, whisker

SCALE = Scale(0.0, 10.0)


def shapes(kind: str, low: float | None = 2.0, high: float | None = 8.0, **more: object) -> str:
    return str(whisker(5.0, low, high, kind, scale=SCALE, **more))  # type: ignore[arg-type]


def test_the_grammar() -> None:
    assert "<circle" in shapes("estimated")
    assert "<circle" not in shapes("bounds")
    assert len(re.findall(r"v10", shapes("bounds"))) == 2  # end stops
    assert "v10" not in shapes("estimated")
    assert shapes("exact").count("<path") == 2  # the ground and a diamond
    assert 'fill="var(--paper)"' in shapes("estimated", tone="undecided")
    assert 'fill="var(--failed)"' in shapes("estimated", tone="failed")


def test_an_open_side_has_an_arrowhead_at_the_edge() -> None:
    assert re.search(r'd="M0 12l6 -4.5', shapes("one_sided", low=None))
    assert re.search(r'd="M200 12l-6 -4.5', shapes("one_sided", high=None))
    assert "l6 -4.5" not in shapes("one_sided")


@pytest.mark.parametrize(
    ("line", "bars"),
    [
        (Line(5.0, None, ">"), [("100", "200")]),
        (Line(5.0, None, "<"), [("0", "100")]),
        (Line(0.0, 10.0, "band"), [("7", "193")]),
        (Line(0.0, 10.0, None), [("0", "7"), ("193", "200")]),
        (Line(5.0, 5.0, "band"), [("100", "100")]),
    ],
)
def test_the_side_that_holds_is_a_thick_pale_bar(line: Line, bars: list[tuple[str, str]]) -> None:
    drawn = shapes("exact", line=line)
    assert re.findall(r'd="M([\d.]+) 12H([\d.]+)" stroke="var\(--rule\)" stroke-width="7"', drawn) == bars
    assert drawn.count('stroke="var(--ink)"') == len(line.ends)


@given(st.floats(-1e9, 1e9), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_every_number_of_the_scale_is_on_the_drawing_in_order(value: float, others: list[float]) -> None:
    numbers = sorted([value, *others])
    for scale in (Scale.over(numbers, margin=0.1), shared_scale([(n, None, None) for n in numbers])):
        places = [scale.at(n) for n in numbers]
        assert places == sorted(places)
        assert all(EDGE - 1e-6 <= place <= WIDTH - EDGE + 1e-6 for place in places)


def test_a_label_is_escaped() -> None:
    assert "&lt;b&gt;" in shapes("exact", label="<b>")
