"""Names that no file system can hold and numbers that no library takes are each one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from answerable.answer import Answer
from answerable.asking import MOST_THREADS, Settings, ask
from answerable.cli import run
from answerable.errors import BadInput, CannotWrite
from answerable.store import Store

UNNAMEABLE = ["\0", "y" * 300]


@pytest.mark.parametrize("name", UNNAMEABLE)
def test_saving_under_an_impossible_name_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(CannotWrite) as caught:
        Answer("one").save(tmp_path / name)
    assert "name another place" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", UNNAMEABLE)
def test_a_store_of_an_impossible_name_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(CannotWrite, match="name another place"):
        _look_and_note(Store(tmp_path / name))


def test_more_threads_than_a_library_holds_are_refused() -> None:
    assert Settings(threads=MOST_THREADS).threads == MOST_THREADS
    with pytest.raises(BadInput, match="threads: it is 99999999999999999999; give at most 1024"):
        Settings(threads=99999999999999999999)


def _look_and_note(store: Store) -> None:
    store.get("ab" * 32)
    store.note("begun", "ab" * 32, "attention-flow", None, "")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"device": "junk"}, "device: it is 'junk'; say cpu, cuda, cuda:1, mps or xpu"),
        ({"device": ""}, "device: it is ''; say cpu"),
        ({"seed": 2**63}, "seed: it is 9223372036854775808; give at most 9223372036854775807"),
    ],
)
def test_settings_outside_their_bounds_are_refused(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as raised:
        Settings(**settings)
    assert str(raised.value).startswith(line)


def test_the_command_line_may_be_run_twice_in_one_process(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for _ in range(2):
        assert run(["ask", "attention-flow", "--bogus", "--store", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert said.replace('"', "") == (
            "error: Unknown option: --bogus; answerable ask attention-flow --help shows what can be said\n"
        )


def test_rows_that_sum_to_more_than_one_may_be_divided(tmp_path: Path) -> None:
    pattern = [[1.0, 0, 0], [0.9, 0.9, 0], [0.4, 0.4, 0.4]]
    with pytest.raises(BadInput, match=r"the weights sum to 1.8, more than 1; .* normalise=True"):
        ask("attention-flow", attentions={"attentions": [pattern, pattern]}, store=False)
    answer = ask("attention-flow", attentions={"attentions": [pattern, pattern]}, normalise=True, store=False)
    assert answer.metrics["certified_share"].value == 1
