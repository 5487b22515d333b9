"""One corpus of strings that try to be obeyed goes through every face: nothing executes, forges a line or breaks a document.

The report and the notebook are opened in a browser in ``tests/report/test_browser.py``, the CSV files in ``test_rows.py``.
"""

import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from answerable import junit, terminal
from answerable.answer import Answer, Metric, Table, Verdict
from answerable.asking import ask
from answerable.dossier import Dossier
from answerable.errors import BadInput
from answerable.report import html
from tests.core.conftest import Command
from tests.report.hostile import CORPUS

hostile = pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))


def encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def answer(text: str) -> Answer:
    frame = pl.DataFrame({encodable(text)[:100] or "x": [encodable(text)]})
    return Answer(
        text,
        {"m": Metric(1.0, 0.5, 1.5, method=text, label=text, unit=text or "1")},
        {"t": Table(frame, {frame.columns[0]: text or "x"}, title=text)},
        limits=[text],
        verdict=Verdict(text, text, text),
        void=text,
    )


@hostile
def test_what_is_saved_comes_back_as_it_was(text: str, tmp_path: Path) -> None:
    back = Answer.load(answer(text).save(tmp_path / "a"))
    assert (back.summary, back.limits, back.verdict, back.void) == (text, (text,), Verdict(text, text, text), text)
    assert back.metrics["m"].label == text
    assert back.tables["t"].frame.item() == encodable(text)
    assert (tmp_path / "a" / "answer.json").read_bytes().isascii()


@hostile
def test_the_terminal_shows_it_and_obeys_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    terminal.show_table(["head"], [[text[:1000]]])
    terminal.fail(text[:1000])
    screen.flush()
    written = screen.buffer.getvalue().decode()  # type: ignore[attr-defined]
    controls = [
        c for c in written if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066\u2028\ufeff"
    ]
    assert controls == []
    assert written.count("\n") == 3, "head, row, error: a line each"


@hostile
def test_junit_stays_one_document(text: str, tmp_path: Path) -> None:
    found = Dossier.from_mapping(
        {
            "title": text,
            "ask": [{"question": "trivial/mean", "name": text or "x", "numbers": [1], "expect": "metrics.mean > 2"}],
        }
    ).run()
    found = replace(found, asked=[replace(found.asked[0], error=text)])
    junit.write(found, tmp_path / "j.xml")
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert [element.tag for element in root.iter()] == ["testsuites", "testsuite", "testcase", "failure"]


def test_the_report_holds_one_script_and_no_line_of_theirs() -> None:
    page = html([answer(text) for text in CORPUS])
    assert page.count("<script") == 1
    assert "<iframe" not in page
    assert "<img" not in page


def test_a_hostile_field_is_one_line_on_the_command_line(command: Command, store: Path) -> None:
    result = command("ask", "trivial/mean", "--numbers", "1", "--label", "a\x1b[2Jb\u202ec\nerror: forged")
    assert result.returncode == 0
    assert "a\\x1b[2Jb\\u202ec" in result.stdout
    assert result.stderr == ""
    named = command("ask", "trivial/mean\x1b[2J\nerror: forged")
    assert (named.returncode, named.stderr.count("\n")) == (2, 1)
    assert "\x1b" not in named.stderr


def test_a_lone_surrogate_in_a_text_is_refused(store: Path) -> None:
    with pytest.raises(
        BadInput, match=r"field label: the text is not valid Unicode \(a lone surrogate\); save it as UTF-8"
    ):
        ask("trivial/mean", numbers=[1], label="\ud800", store=store)


def test_json_on_standard_output_is_json_whatever_it_holds(command: Command, store: Path) -> None:
    result = command("ask", "trivial/mean", "--numbers", "1", "--label", CORPUS[15], "--json")
    assert CORPUS[15] in json.loads(result.stdout)["summary"]
