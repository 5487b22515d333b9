"""Names that no file system can hold and numbers that no library takes are each one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from answerable.answer import Answer
from answerable.asking import MOST_THREADS, Settings
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
