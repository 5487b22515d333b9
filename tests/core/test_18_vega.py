"""A figure of a saved answer is data: what could act is refused before anything renders it, and the page says so in its place.

What a specification may hold is tried piece by piece in ``tests/report/test_specification.py``.
"""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from answerable.answer import Answer, Figure
from answerable.asking import ask
from answerable.errors import BadInput
from answerable.report import html
from tests.report.hostile import CORPUS


def acting(**changes: Any) -> Figure:
    specification = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": "t",
        "description": "d",
        "data": {"values": [{"x": 1}]},
        "mark": "point",
        "encoding": {"x": {"field": "x", "type": "quantitative", "title": "x"}},
    }
    return Figure(specification | changes, specification | changes)


ACTING = [
    {"data": {"url": "https://example.com/data.json"}},
    {"mark": {"type": "point", "href": "https://example.com"}},
    {"mark": "image"},
    {"transform": [{"calculate": "alert(1)", "as": "y"}]},
    {"params": [{"name": "p", "expr": "alert(1)"}]},
    {"title": {"text": {"expr": "alert(1)"}}},
    {"encoding": {"x": {"field": "x']; alert(1); //", "type": "quantitative"}}},
]


@pytest.mark.parametrize("changes", ACTING)
def test_what_could_act_is_refused_in_one_line_and_told_in_its_place(changes: dict[str, Any], tmp_path: Path) -> None:
    figure = acting(**changes)
    with pytest.raises(BadInput, match="figure"):
        figure.svg()
    page = html([Answer("A summary.", figures={"f": figure})])
    assert "This picture could not be drawn" in page
    assert page.count("<script") == 1
    assert "<figure><svg" not in page


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_strings_of_models_and_data_are_drawn_as_text(text: str) -> None:
    text = text[:200].encode("utf-8", "replace").decode()
    drawn = acting(title=text, description=text, data={"values": [{"x": 1, "label": text}]}).svg()
    elements = list(ElementTree.fromstring(drawn).iter())
    assert elements[0].tag == "{http://www.w3.org/2000/svg}svg"  # so that it is a picture in a file of its own, too
    assert {element.tag.rpartition("}")[2] for element in elements} <= {
        "svg",
        "g",
        "path",
        "text",
        "tspan",
        "defs",
        "clipPath",
        "rect",
    }
    attributes = {name.rpartition("}")[2] for element in elements for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or name in ("href", "style")]


def test_a_figure_exchanged_on_disk_is_found_by_its_hash_before_it_is_looked_at(tmp_path: Path) -> None:
    folder = ask("trivial/luck", seed=1, store=False).save(tmp_path / "a")
    (folder / "figures" / "units.vl.json").write_text(json.dumps(dict(acting(mark="image").wide)))
    with pytest.raises(Exception, match=r"figures/units\.vl\.json was changed"):
        Answer.load(folder)


def test_no_expression_stands_in_a_figure_of_ours() -> None:
    figure = ask("trivial/luck", seed=1, store=False).figures["units"]
    assert '"expr"' not in json.dumps(figure.wide)
    assert "values" in figure.wide["data"]
