"""Estimate, interval and outcome come from one place: every face shows the same number for one thing."""

import ast
import html as markup
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from answerable.answer import Answer, Metric
from answerable.asking import Settings
from answerable.dossier import Dossier, Result
from answerable.report import html, report_data
from answerable.report.numbers import metric_words, written
from answerable.store import Store
from tests.core.conftest import Command

PACKAGE = Path(__file__).parents[2] / "src" / "answerable"
DOSSIER = """
title = "one"
seed = 5
[[ask]]
question = "trivial/luck"
name = "luck"
expect = ["metrics.share > 0.6", "metrics.share > 0.2", "metrics.share > 0.5", "metrics.tosses == 400"]
"""


@pytest.fixture
def dossier(tmp_path: Path) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(DOSSIER)
    return path


@pytest.fixture
def result(dossier: Path, store: Path) -> Result:
    return Dossier.load(dossier).run(Settings(store=Store(store)))


@pytest.fixture
def answer(result: Result) -> Answer:
    found = result.asked[0].answer
    assert found is not None
    return found


def cells(page: str, heading: str) -> list[str]:
    """The last cell of each row of the report that has this heading, as a reader sees it."""
    rows = re.findall(
        rf"<tr><t[hd][^>]*>(?:<code[^>]*>)?{re.escape(markup.escape(heading))}\b.*?</tr>", page, re.DOTALL
    )
    return [markup.unescape(" ".join(re.findall(r'<span class="nw">([^<]*)</span>', row))) for row in rows]


def test_a_metric_is_one_line_wherever_it_stands(result: Result, answer: Answer, command: Command, store: Path) -> None:
    share, page = answer.metrics["share"], html(result)
    line = metric_words(share)
    assert line == "0.53 [0.47, 0.58]"
    assert cells(page, "Share") == [line]
    terminal = command("ask", "trivial/luck", "--seed", "5", "--store", store).stdout
    assert re.search(rf"^share +{re.escape(line)}  normal interval, 95 %$", terminal, re.MULTILINE)
    document = json.loads(command("ask", "trivial/luck", "--seed", "5", "--store", store, "--json").stdout)
    stored = document["metrics"]["share"]
    assert (stored["value"], stored["low"], stored["high"]) == (share.value, share.low, share.high)
    assert written(stored["value"], stored["low"], stored["high"]).line == line


def test_an_expectation_shows_the_metric_it_is_about(result: Result, answer: Answer) -> None:
    share = answer.metrics["share"]
    page = html(result)
    for expected, outcome in zip(result.asked[0].ask.expect[:3], result.asked[0].outcomes, strict=False):
        seen = outcome.observed
        assert seen is not None
        assert (seen.value, seen.low, seen.high, seen.kind) == (share.value, share.low, share.high, share.kind)
        assert cells(page, expected.expectation.text) == [metric_words(share)]
        assert metric_words(share) in outcome.reason


def test_every_face_gives_the_same_outcome_and_reason(
    result: Result, dossier: Path, command: Command, store: Path, tmp_path: Path
) -> None:
    terminal = command("dossier", dossier, "--store", store, "--junit", tmp_path / "j.xml").stdout
    expectations = report_data(result)["asks"][0]["expectations"]
    outcomes = [each["outcome"] for each in expectations]
    assert [each["word"] for each in outcomes] == ["failed", "held", "undecided", "held"]
    page, cases = html(result), list(ElementTree.parse(tmp_path / "j.xml").getroot()[0])
    for expectation, outcome, case in zip(expectations, outcomes, cases, strict=True):
        that, word, reason = expectation["that"], outcome["word"], outcome["reason"]
        assert re.search(rf"^ +{word} +{re.escape(that)}$", terminal, re.MULTILINE)
        row = page[page.index(f">{markup.escape(that)}</code>") :].partition("</tr>")[0]
        assert f"{word}</span>" in row
        if word == "held":
            assert len(case) == 0
        else:
            assert reason in terminal
            assert case[0].get("message") == f"{word}: {reason}"


def test_what_the_report_holds_is_answer_json(answer: Answer) -> None:
    document = json.loads(answer.files()["answer.json"])
    del document["run"]
    shown = report_data(answer)["answers"][0]
    assert {name: shown[name] for name in document} == document


@pytest.mark.parametrize("line", [0.2, 0.4701, 0.47, 0.52, 0.58, 0.5801, 0.6, 0.9])
def test_a_line_close_to_an_end_is_written_alike_in_the_report_and_in_the_reason(line: float) -> None:
    answer = Answer("x", {"share": Metric(0.5275, 0.47012, 0.57998, method="normal interval, 95 %")})
    entry = {"question": "trivial/mean", "numbers": [1.0], "expect": f"metrics.share > {line}"}
    dossier = Dossier.from_mapping({"ask": [entry]})
    result = dossier.run(Settings(store=None))
    expected = result.asked[0].ask.expect[0].expectation
    outcome = expected.check(answer)
    seen = outcome.observed
    assert seen is not None
    shown = written(seen.value, seen.low, seen.high, kind=seen.kind, lines=[line]).line
    assert shown in outcome.reason


def test_outcomes_are_decided_in_one_package() -> None:
    """Elsewhere an outcome is made only where nothing could be asked or checked."""
    elsewhere = [
        (path.relative_to(PACKAGE).as_posix(), ast.unparse(call.args[0]))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent.name != "expectations"
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "Outcome"
    ]
    assert elsewhere
    assert {(name, word) for name, word in elsewhere} == {("dossier.py", "'not run'")}
