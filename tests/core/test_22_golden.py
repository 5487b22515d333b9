"""A saved answer of every schema there was still verifies, loads as what it was, and is saved again as the same bytes."""

import json
import math
from pathlib import Path

import pytest

from answerable.answer import SCHEMA, Answer
from answerable.verification import problems
from tests.core.conftest import Command
from tests.core.golden.make_schema_1 import golden

GOLDEN = Path(__file__).parent / "golden"
FOLDERS = sorted(GOLDEN.glob("schema-*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_schema_there_was_has_its_folder() -> None:
    assert [folder.name for folder in FOLDERS] == [f"schema-{number}" for number in range(1, SCHEMA + 1)]
    for number, folder in enumerate(FOLDERS, 1):
        assert json.loads((folder / "answer.json").read_bytes())["schema"] == number


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_verifies(folder: Path, command: Command) -> None:
    assert problems(folder) == []
    done = command("verify", folder)
    assert (done.returncode, done.stdout) == (0, "every file is the one that was written\n")


def test_what_was_saved_under_the_newest_schema_is_saved_again_as_the_same_bytes(tmp_path: Path) -> None:
    newest = FOLDERS[-1]
    assert contents(Answer.load(newest).save(tmp_path / "again")) == contents(newest)


def test_schema_1_loads_as_the_answer_it_was() -> None:
    loaded, made = Answer.load(GOLDEN / "schema-1"), golden()
    assert json.dumps(loaded.without_run()) == json.dumps(made.without_run())
    assert loaded.run == made.run
    assert loaded.tables["words"].frame.equals(made.tables["words"].frame, null_equal=True)
    # What another version of the plotting library would write differs; what it must say does not.
    assert (loaded.figures["words"].title, loaded.figures["words"].description) == (
        made.figures["words"].title,
        made.figures["words"].description,
    )


def test_numbers_that_are_none_come_back_as_themselves() -> None:
    metrics = Answer.load(GOLDEN / "schema-1").metrics
    assert (metrics["bounded"].low, metrics["endless"].value) == (-math.inf, -math.inf)
    assert math.isnan(metrics["missing"].value) and metrics["missing"].low is None
    assert math.isnan(metrics["half_missing"].low or 0.0) and metrics["half_missing"].high == 1.0
    assert isinstance(metrics["words"].value, int)
