"""JUnit tells failures from errors, also where the strings are hostile."""

import re
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import pytest
import xmlschema

from answerable import junit
from answerable.dossier import Ask, Asked, Dossier, Expected, Result
from answerable.expectations import Outcome, parse
from answerable.question import Question
from tests.core.conftest import Command
from tests.report.hostile import CORPUS

SCHEMA = Path(__file__).with_name("junit.xsd")

DOSSIER = """
title = "A \\u001b[31m & <b> title"
undecided = "warn"
[[ask]]
question = "trivial/mean"
name = "mean]]>"
numbers = [1, 2, 6]
expect = ["metrics.mean == 3", { that = "metrics.mean > 4", why = "the rule asks for it" }, "metrics.meen > 4"]
[[ask]]
question = "trivial/luck"
seed = 1
expect = ["metrics.share > 0.5"]
[[ask]]
question = "trivial/luck"
seed = 1
fail_at = 1
"""


def test_failures_errors_and_warnings_are_told_apart(tmp_path: Path, command: Command, store: Path) -> None:
    (tmp_path / "d.toml").write_text(DOSSIER)
    assert command("dossier", tmp_path / "d.toml", "--junit", tmp_path / "j.xml").returncode == 2
    xmlschema.validate(tmp_path / "j.xml", SCHEMA)
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert root.get("name") == "A \\x1b[31m & <b> title"
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
    }
    first, second, third = root
    assert [suite.get("skipped") for suite in root] == ["0", "1", "0"]
    assert first.get("name") == "mean]]>"
    assert [[child.tag for child in case] for case in first] == [[], ["failure"], ["error"]]
    assert [[child.tag for child in case] for case in second] == [["skipped"]]
    assert (first[1][0].get("message") or "").endswith(". the rule asks for it")
    assert "this unit fails" in (third[0][0].get("message") or "")


def test_two_runs_are_the_same_but_for_their_times(tmp_path: Path, command: Command, store: Path) -> None:
    (tmp_path / "d.toml").write_text(DOSSIER)
    for name in ("a", "b"):
        command("dossier", tmp_path / "d.toml", "--junit", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_outcome_with_any_string_is_valid(tmp_path: Path) -> None:
    outcomes = (Outcome("held", ""), *(Outcome(word, text) for text in CORPUS for word in ("failed", "not run")))
    for severity in ("fail", "warn"):
        expect = tuple(Expected(parse("metrics.mean == 3"), text, text, severity) for text in ("x", *CORPUS, *CORPUS))
        asked = [Asked(Ask(text, cast(Question, None), expect, "d"), None, text, outcomes) for text in CORPUS[:3]]
        asked.append(Asked(Ask("none", cast(Question, None), (), "d"), None, CORPUS[15]))
        junit.write(Result(Dossier(title=CORPUS[16], asks=()), asked), tmp_path / "j.xml")
        xmlschema.validate(tmp_path / "j.xml", SCHEMA)
        written = (tmp_path / "j.xml").read_text(encoding="utf-8")
        assert not re.search("[\x1b\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]", written)  # seen, never obeyed


@pytest.mark.parametrize("wrong", ["<testsuites/>", "<testsuite name='x'/>", "<html/>"])
def test_what_is_no_such_file_is_told(wrong: str) -> None:
    assert not xmlschema.is_valid(wrong, SCHEMA)
