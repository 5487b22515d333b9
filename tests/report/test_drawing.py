"""Figures become inert SVG that follows the page's colours."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from answerable import theme
from answerable.answer import NARROW, Figure
from answerable.errors import BadInput
from answerable.report import drawing
from answerable.report.drawing import png, svg
from answerable.report.visible import shown
from tests.report import sample
from tests.report.hostile import CORPUS

ALLOWED = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"}


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    return dict(sample.held().figures) | dict(sample.void().figures)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSWERABLE_CACHE", str(tmp_path))
    return tmp_path


def test_the_svg_holds_shapes_and_words_and_nothing_else(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        for text in (svg(figure.wide), svg(figure.narrow, room=NARROW)):
            root = ElementTree.fromstring(text)
            assert {element.tag for element in root.iter()} <= ALLOWED
            names = {name for element in root.iter() for name in element.attrib}
            assert not names & {"style", "class", "href", "onload"}
            assert not any(name.startswith("on") for name in names)
            assert "url(" not in text.replace("url(#", "")
            assert root.get("role") == "img"
            assert root.get("aria-label") == figure.description


def test_every_colour_is_a_token_with_its_light_value_behind(figures: dict[str, Figure]) -> None:
    light = {name: pair["light"] for name, pair in theme.tokens().items()}
    for figure in figures.values():
        text = svg(figure.wide)
        pairs = re.findall(r"var\(--([a-z0-9-]+),(#[0-9A-F]{6})\)", text)
        assert pairs
        assert all(light[name] == value for name, value in pairs)
        assert "#" not in re.sub(r"var\([^)]*\)|url\(#[^)]*\)", "", re.sub(r">[^<]*<", "><", text)).replace("&#", "")


def test_the_title_is_the_caption_s(figures: dict[str, Figure]) -> None:
    assert "stands far outside" not in svg(figures["flow"].wide)
    assert figures["flow"].title.startswith("“Mary” stands far outside")


def test_a_picture_is_no_wider_than_its_room(figures: dict[str, Figure]) -> None:
    too_wide = {**figures["flow"].wide, "width": 1500}
    width = float(ElementTree.fromstring(svg(too_wide)).get("width", "0"))
    assert 700 < width <= 736 + 14 + 28


def test_two_pictures_of_one_page_share_no_id() -> None:
    clipped = {
        "data": {"values": [{"x": 1, "y": 2}]},
        "mark": {"type": "point", "clip": True},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
    first, second = svg(clipped, prefix="a"), svg(clipped, prefix="b")
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (first, second)]
    assert all(ids)
    assert not ids[0] & ids[1]
    for text, names in zip((first, second), ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= names


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_hostile_strings_are_drawn_as_text(text: str) -> None:
    specification = {
        "description": text,
        "title": text,
        "data": {"values": [{"t": text, "x": 1}]},
        "mark": "text",
        "encoding": {
            "y": {"field": "t", "type": "nominal", "title": text},
            "text": {"field": "t"},
            "x": {"field": "x", "type": "quantitative"},
        },
    }
    root = ElementTree.fromstring(svg(specification))
    assert {element.tag for element in root.iter()} <= ALLOWED
    texts = {(element.text or "").strip() for element in root.iter()}
    assert shown(text).strip() in texts  # as it is, not what a backslash or a quote makes of it
    assert max(map(len, texts)) <= 220


def test_a_picture_is_drawn_once(cache: Path, figures: dict[str, Figure], monkeypatch: pytest.MonkeyPatch) -> None:
    first = svg(figures["paths"].wide)
    (kept,) = (cache / "pictures").iterdir()
    monkeypatch.setattr(drawing, "_vega", lambda *_: pytest.fail("drawn again"))
    assert svg(figures["paths"].wide) == first
    kept.write_text(kept.read_text()[:100])  # cut off: drawn again instead of shown
    with pytest.raises(pytest.fail.Exception, match="drawn again"):
        svg(figures["paths"].wide)


def test_another_number_another_room_or_another_secret_is_another_picture(
    cache: Path, figures: dict[str, Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = figures["paths"].wide
    first = svg(wide)
    svg({**wide, "height": 99})
    svg(wide, room=NARROW)
    assert len(list((cache / "pictures").iterdir())) == 3
    assert "through device" in first
    monkeypatch.setenv("SOME_API_KEY", "through device")
    assert "through device" not in svg(wide)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(BadInput, match="not JSON"):
        svg({"mark": object()})


def test_png_follows_the_scheme(figures: dict[str, Figure]) -> None:
    light, dark = (png(figures["paths"].wide, scheme) for scheme in ("light", "dark"))  # type: ignore[arg-type]
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n"
    assert light != dark


def test_what_cannot_be_drawn_says_so_in_one_line() -> None:
    with pytest.raises(BadInput, match="cannot be drawn") as refused:
        svg(
            {
                "mark": "bar",
                "encoding": {"x": {"field": "x", "type": "nonsense"}},
                "data": {"values": []},
                "width": 1,
                "transform": [{"fold": ["x"], "as": "y"}, {"bin": True, "field": "x", "as": []}],
            }
        )
    assert "\n" not in str(refused.value)
