"""The figure theme: its colours have names, its steps are round, its hatch stays inside."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable import theme
from answerable.errors import BadInput, UnknownName


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_the_configuration_has_a_name(scheme: theme.Scheme) -> None:
    named = {pair[scheme] for pair in theme.tokens().values()}
    assert len(named) == len(theme.tokens())  # else a light colour could not be told to follow the scheme
    assert set(re.findall(r"#[0-9A-Fa-f]{6}", json.dumps(theme.config(scheme)))) <= named


def test_both_schemes_have_the_same_styles() -> None:
    assert set(theme.config("light")["style"]) == set(theme.config("dark")["style"]) == set(theme.styles())


def contrast(first: str, second: str) -> float:
    """WCAG 2's contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_read_can_be_read(scheme: theme.Scheme) -> None:
    paper = theme.colour("paper", scheme)
    for token in ("ink", "ink2", "ours", "undecided", "failed", "baseline"):
        assert contrast(theme.colour(token, scheme), paper) >= 4.5, token


def test_the_heat_scale_darkens_or_lightens_all_the_way() -> None:
    for scheme in ("light", "dark"):
        ratios = [contrast(theme.colour(f"seq{i}", scheme), theme.colour("paper", scheme)) for i in range(7)]
        assert ratios == sorted(ratios)


def test_a_configuration_is_a_copy() -> None:
    theme.config()["style"].clear()
    assert theme.config()["style"]


def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'undecided'\?"):
        theme.colour("undecidd")
    with pytest.raises(UnknownName, match=r"did you mean 'interval'\?"):
        theme.style("intervl")


def test_steps_take_the_whole_ramp_or_spread_over_it() -> None:
    whole = theme.steps("seq", [2, 5, 10, 20, 35, 60])
    assert whole["range"] == [theme.colour(f"seq{i}") for i in range(7)]
    assert whole["domain"] == [2, 5, 10, 20, 35, 60]
    three = theme.steps("signed", [-1, 1])
    assert three["range"] == [theme.colour(name) for name in ("neg3", "zero", "pos3")]


@pytest.mark.parametrize("edges", [[], [2, 1], [1, 1], [1, 2, 3, 4, 5, 6, 7], [float("nan")]])
def test_steps_refuse_edges_that_do_not_rise(edges: list[float]) -> None:
    with pytest.raises(BadInput, match="one to six rising numbers"):
        theme.steps("seq", edges)


def test_a_signed_scale_has_a_middle() -> None:
    with pytest.raises(BadInput, match="two, four or six"):
        theme.steps("signed", [0])


def test_at_most_four_categories() -> None:
    assert theme.categories(2) == [theme.colour("ours"), theme.colour("cat2")]
    with pytest.raises(BadInput, match="small multiples"):
        theme.categories(5)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 6))
def test_round_edges_are_few_rising_and_inside(low: float, width: float, count: int) -> None:
    edges = theme.round_edges(low, low + width, count=count)
    assert len(edges) <= count
    assert edges == sorted(set(edges))
    assert all(low < edge < low + width for edge in edges)


@pytest.mark.parametrize(
    ("low", "high", "count", "edges"),
    [(0, 31.2, 6, [5, 10, 15, 20, 25, 30]), (0, 1, 4, [0.2, 0.4, 0.6, 0.8]), (-21, 21, 4, [-15, -5, 5, 15])],
)
def test_round_edges_by_hand(low: float, high: float, count: int, edges: list[float]) -> None:
    assert theme.round_edges(low, high, count=count) == pytest.approx(edges)


@given(st.floats(1, 300), st.floats(4, 60))
def test_a_hatch_stays_inside_and_at_45_degrees(width: float, height: float) -> None:
    for rule in theme.hatch(10, 10 + width, 5, 5 + height):
        assert 10 - 1e-9 <= rule["x"] < rule["x2"] <= 10 + width + 1e-9
        assert 5 - 1e-9 <= rule["y"] < rule["y2"] <= 5 + height + 1e-9
        assert rule["x2"] - rule["x"] == pytest.approx(rule["y2"] - rule["y"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a⟨001B⟩[31mb"),
        ("a\nb", "a↵b"),
        ("abcdefghijklm", "abcdefghijklm"),
        ("abcdefghijklmn", "abcdefghijkl…"),
        ("\u202e" * 3, "⟨202E⟩⟨202E⟩…"),
    ],
)
def test_text_is_drawn_so_that_all_of_it_is_seen(text: str, shown: str) -> None:
    assert theme.visible(text, 13, signs={"\n": "↵"}) == shown
