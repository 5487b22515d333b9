"""JUnit tells failures from errors, also where the strings are hostile."""

from pathlib import Path
from xml.etree import ElementTree

from tests.core.conftest import Command

DOSSIER = """
title = "A \\u001b[31m & <b> title"
undecided = "warn"
[[ask]]
question = "trivial/mean"
name = "mean]]>"
numbers = [1, 2, 6]
expect = ["metrics.mean == 3", "metrics.mean > 4", "metrics.meen > 4"]
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
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert root.get("name") == "A \\u001b[31m & <b> title"
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
    }
    first, second, third = root
    assert first.get("name") == "mean]]>"
    assert [[child.tag for child in case] for case in first] == [[], ["failure"], ["error"]]
    assert [[child.tag for child in case] for case in second] == [["skipped"]]
    assert "this unit fails" in (third[0][0].get("message") or "")


def test_two_runs_are_the_same_but_for_their_times(tmp_path: Path, command: Command, store: Path) -> None:
    (tmp_path / "d.toml").write_text(DOSSIER)
    for name in ("a", "b"):
        command("dossier", tmp_path / "d.toml", "--junit", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
