"""What a figure's specification may hold: the harmless passes unchanged, everything that could act is refused in one line."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable import theme
from answerable.errors import AnswerableError, BadInput
from answerable.report.specification import MOST_ROWS, checked
from tests.report import sample
from tests.report.hostile import CORPUS

PLAIN: dict[str, Any] = {
    "title": {"text": "Bars", "subtitle": "how"},
    "description": "two bars",
    "data": {"values": [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]},
    "mark": {"type": "bar", "style": "ours"},
    "encoding": {
        "x": {"field": "x", "type": "quantitative", "title": "x (%)", "axis": {"format": ".1f", "grid": True}},
        "y": {"field": "y", "type": "nominal", "sort": ["b", "a"]},
        "color": {"value": "#21579C", "condition": {"test": {"field": "x", "gte": 2}, "value": "#70747A"}},
    },
    "width": 300,
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The plain specification with one place changed."""
    specification = copy.deepcopy(PLAIN)
    *parents, last = path.split(".")
    place: Any = specification
    for name in parents:
        place = place.setdefault(name, {}) if isinstance(place, dict) else place[int(name)]
    place[last] = value
    return specification


def test_the_harmless_passes_unchanged() -> None:
    built = checked(PLAIN)
    assert built["encoding"]["x"] == PLAIN["encoding"]["x"]
    assert built["data"] == PLAIN["data"]
    assert built["title"] == PLAIN["title"]
    assert built["mark"] == {"type": "bar", "style": ["ours"]}


def test_what_figures_of_ours_hold_passes() -> None:
    for answer in (sample.held(), sample.void()):
        for figure in answer.figures.values():
            checked(figure.wide)
            checked(figure.narrow)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data", {"url": "https://example.com/rows.json"}),
        ("data", {"sequence": {"start": 0, "stop": 1e9}}),
        ("data.format", {"type": "csv"}),
        ("mark", "image"),
        ("mark", "geoshape"),
        ("mark", "arc"),
        ("mark.href", "https://example.com"),
        ("mark.url", "https://example.com/x.png"),
        ("mark.fontSize", {"expr": "alert(1)"}),
        ("mark.fontSize", {"signal": "width"}),
        ("mark.color", "url(#x)"),
        ("mark.color", "red"),
        ("mark.color", {"gradient": "linear", "stops": []}),
        ("mark.style", "no-such-style"),
        ("mark.shape", "url(javascript:alert(1))"),
        ("mark.extent", "ci"),
        ("encoding.href", {"field": "y"}),
        ("encoding.url", {"field": "y"}),
        ("encoding.x.field", "datum['x']"),
        ("encoding.x.field", "x\\u0029; alert(1)"),
        ("encoding.x.field", "__proto__"),
        ("encoding.x.field", {"repeat": "column"}),
        ("encoding.x.axis.labelExpr", "alert(1)"),
        ("encoding.x.axis.format", "alert('x')"),
        ("encoding.x.axis.tickCount", 1e9),
        ("encoding.x.axis.encode", {"labels": {"update": {"text": {"signal": "1"}}}}),
        ("encoding.x.scale", {"domain": {"signal": "alert(1)"}}),
        ("encoding.x.bin", {"step": 1e-12}),
        ("encoding.x.aggregate", "ci0"),
        ("encoding.x.aggregate", {"argmax": "x"}),
        ("encoding.color", {"field": "x", "type": "quantitative"}),
        ("encoding.color", {"field": "y", "scale": {"scheme": "viridis"}}),
        ("encoding.color.condition", {"test": "datum.x > 1", "value": "#21579C"}),
        ("encoding.color.condition", {"param": "p", "value": "#21579C"}),
        ("params", [{"name": "p", "expr": "alert(1)"}]),
        ("transform", [{"calculate": "alert(1)", "as": "z"}]),
        ("transform", [{"filter": "datum.x > 1"}]),
        ("transform", [{"filter": {"param": "p"}}]),
        ("transform", [{"sample": 1}]),
        ("transform", [{"lookup": "x", "from": {"data": {"url": "x.json"}, "key": "x", "fields": ["y"]}}]),
        ("transform", [{"aggregate": [{"op": "alert", "field": "x", "as": "z"}]}]),
        ("width", "container"),
        ("width", 1e9),
        ("height", {"signal": "1e9"}),
        ("repeat", ["a"]),
        ("projection", {"type": "mercator"}),
        ("layer", [{"mark": "image"}]),
        ("spec", {"mark": {"type": "bar", "href": "x"}}),
        ("datasets", {"d": [{"x; alert(1)": 1}]}),
        ("data.values", [{"x": {"nested": 1}}]),
        ("data.values", [{"x": 1}] * (MOST_ROWS + 1)),
        ("encoding.facet", {"field": "x", "type": "nominal", "columns": {"signal": "1"}}),
    ],
)
def test_what_could_act_is_refused_in_one_line(path: str, value: Any) -> None:
    with pytest.raises(AnswerableError) as refused:
        checked(changed(path, value))
    assert "\n" not in str(refused.value)
    assert "figure" in str(refused.value) or "theme" in str(refused.value)


def test_too_many_panels_are_refused() -> None:
    rows = [{"x": i} for i in range(200)]
    facets = {"data": {"values": rows}, "mark": "point", "encoding": {"row": {"field": "x", "type": "nominal"}}}
    with pytest.raises(BadInput, match="more than 64 panels"):
        checked(facets)


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_literal_strings_are_allowed_and_shown(text: str) -> None:
    specification = {
        "title": {"text": text, "subtitle": text},
        "data": {"values": [{"t": text}]},
        "mark": "text",
        "encoding": {
            "y": {"field": "t", "type": "nominal", "sort": [text], "scale": {"domain": [text]}},
            "text": {"value": text},
        },
    }
    built = checked(specification)
    seen = built["data"]["values"][0]["t"]
    assert len(seen) <= 200
    # The same text is the same wherever it stands, or a domain would no longer name its rows.
    assert seen == built["encoding"]["y"]["sort"][0] == built["encoding"]["y"]["scale"]["domain"][0]
    assert seen == built["encoding"]["text"]["value"] == built["title"]["text"]


@pytest.mark.parametrize("text", ["alert(1)", "datum.x", "{expr: 1}", "x y", "ünï", ""])
def test_field_names_are_plain(text: str) -> None:
    with pytest.raises(BadInput, match="letters, digits and _ alone"):
        checked(changed("encoding.x.field", text))


def test_the_dark_scheme_s_colours_take_the_light_ones_place() -> None:
    dark = checked(PLAIN, scheme="dark")
    assert dark["encoding"]["color"]["value"] == theme.colour("ours", "dark")


def test_the_title_can_be_left_to_the_caption() -> None:
    layered = {"layer": [{**PLAIN}, {**PLAIN}]}
    built = checked(layered, keep_title=False)
    assert not any("title" in part for part in [built, *built["layer"]])


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "mark",
                    "encoding",
                    "x",
                    "field",
                    "data",
                    "values",
                    "layer",
                    "type",
                    "transform",
                    "filter",
                    "expr",
                    "title",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


def words_of(value: Any) -> set[str]:
    """Every key in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(words_of, value.values()))
    return set().union(*map(words_of, value)) if isinstance(value, list) else set()


@given(
    st.dictionaries(
        st.sampled_from(["mark", "encoding", "data", "layer", "transform", "title", "facet", "params"]),
        JSON,
        max_size=6,
    )
)
def test_whatever_comes_is_rebuilt_or_refused(specification: dict[str, Any]) -> None:
    try:
        built = checked(specification)
    except AnswerableError:
        return
    assert not words_of(built) & {"expr", "signal", "href", "url", "params", "calculate"}
