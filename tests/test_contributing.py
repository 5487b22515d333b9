"""CONTRIBUTING's walk-through is walked: its files, as they stand on the page, are a question with all its faces."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def block(heading: str, language: str) -> str:
    """The first block of code in that language under the heading that holds these words."""
    section = PAGE.partition(heading)[2]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found, f"no {language} under {heading}"
    return found.group(1)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the walk-through's folder and its one line."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    wing = copy / "src" / "answerable" / "provenance"
    folder = wing / "outlying_values"
    folder.mkdir(parents=True)
    if not (wing / "__init__.py").exists():
        (wing / "__init__.py").write_text('"""Where it came from."""\n')
    for name in ("solver.py", "figures.py", "question.py", "__init__.py"):
        (folder / name).write_text(block(f"`{name}`", "python"), encoding="utf-8")
    registry = copy / "src" / "answerable" / "registry.py"
    line = block("### 5. The line", "python")
    registry.write_text(registry.read_text(encoding="utf-8").replace("QUESTIONS = {\n", f"QUESTIONS = {{\n{line}", 1))
    (copy / "pay.csv").write_text("name,pay\n" + "".join(f"{i},{30 + i % 7}\n" for i in range(59)) + "59,900\n")
    (copy / "pay.toml").write_text(block("a dossier may ask it", "toml"), encoding="utf-8")
    return copy


def answerable(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "ANSWERABLE_STORE": str(copy / "store")}
    line = [sys.executable, "-m", "answerable", *words]
    return subprocess.run(line, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_it_is_in_the_catalogue(copy: Path) -> None:
    listed = answerable(copy, "questions").stdout
    assert re.search("^outlying-values +How many values of this column lie far from the rest[?]$", listed, re.MULTILINE)


def test_its_flags_carry_units_and_bounds(copy: Path) -> None:
    said = " ".join(answerable(copy, "ask", "outlying-values", "--help").stdout.replace("│", " ").split())
    assert "distance beyond which a value is outlying [robust s.d.; more than 0, at most 100; default 3.5]" in said


def test_its_schema_is_made(copy: Path) -> None:
    schema = json.loads(answerable(copy, "questions", "outlying-values", "--schema").stdout)
    assert set(schema["properties"]) == {"table", "column", "limit"}
    assert schema["properties"]["limit"]["exclusiveMinimum"] == 0


def test_it_answers_and_is_reported(copy: Path) -> None:
    asked = answerable(copy, "ask", "outlying-values", "--table", "pay.csv", "--column", "pay", "--save", "answers/pay")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("1 of 60 values of pay lie far from the rest (1.7%).")
    reported = answerable(copy, "report", "answers")
    assert reported.returncode == 0, reported.stderr
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "1 of 60 values lie beyond 3.5" in page
    assert "<svg" in page


def test_a_dossier_asks_it(copy: Path) -> None:
    done = answerable(copy, "dossier", "pay.toml")
    assert done.returncode == 0, done.stderr
    assert "2 held: exit code 0" in done.stdout


def test_what_a_user_gets_wrong_is_one_line(copy: Path) -> None:
    wrong = answerable(copy, "ask", "outlying-values", "--table", "pay.csv", "--column", "pay", "--limit", "0")
    assert wrong.returncode == 2
    assert len(wrong.stderr.splitlines()) == 1
    assert "outlying-values, field limit: it is 0.0, and should be greater than 0" in wrong.stderr
