"""Compiled kernels survive a damaged, read-only or outdated cache, and give the same bits from any thread or process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from answerable import compiled

PROGRAM = """
import numpy as np
from answerable.mechanisms.attention_flow.bounds import _staircase
print(_staircase(np.array([0.2, 0.5, 0.3]), np.eye(3), 2).tolist())
"""
RIGHT = "[1.0, 0.8, 0.3]\n"


def in_fresh_process(cache: Path, program: str = PROGRAM, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ANSWERABLE_CACHE": str(cache), **more}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


def kept_files(cache: Path) -> list[Path]:
    return sorted((cache / "kernels").rglob("*.nb[ic]"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    done = in_fresh_process(cache)
    assert done.stdout == RIGHT, done.stderr
    assert kept_files(cache)
    return cache


def test_the_folder_is_the_users_own(filled: Path) -> None:
    for folder in (filled / "kernels", *(filled / "kernels").iterdir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_process_compiles_nothing(filled: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in kept_files(filled)}
    assert in_fresh_process(filled).stdout == RIGHT
    assert {file: file.stat().st_mtime_ns for file in kept_files(filled)} == before


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        (".nbi", lambda whole: whole[: len(whole) // 2]),
        (".nbc", lambda whole: whole[: len(whole) // 2]),
        (".nbc", lambda whole: bytes(len(whole))),
    ],
    ids=["index cut short", "kernel cut short", "kernel of zeros"],
)
def test_a_damaged_file_is_built_again_in_silence(filled: Path, suffix: str, damage) -> None:
    victim = next(file for file in kept_files(filled) if file.suffix == suffix)
    victim.write_bytes(damage(victim.read_bytes()))
    done = in_fresh_process(filled)
    assert (done.stdout, done.stderr, done.returncode) == (RIGHT, "", 0)
    assert not any(compiled._is_damaged(file) for file in kept_files(filled))


def test_without_a_writable_place_kernels_live_in_memory(tmp_path: Path) -> None:
    taken = tmp_path / "a-file"
    taken.write_text("no folder")
    done = in_fresh_process(taken)
    assert (done.stdout, done.stderr, done.returncode) == (RIGHT, "", 0)
    assert taken.read_text() == "no folder"


def test_an_edit_in_any_kernel_file_changes_the_folder(tmp_path: Path) -> None:
    callee, other = tmp_path / "callee.py", tmp_path / "other.py"
    callee.write_text("from answerable.compiled import kernel\n\n@kernel\ndef f(): return 1\n")
    other.write_text("nothing is compiled here\n")
    first = compiled._fingerprint(tmp_path)
    other.write_text("still nothing\n")
    assert compiled._fingerprint(tmp_path) == first
    callee.write_text("from answerable.compiled import kernel\n\n@kernel\ndef f(): return 2\n")
    assert compiled._fingerprint(tmp_path) != first


def test_other_peoples_kernels_stay_where_they_were() -> None:
    import numba

    before = numba.config.CACHE_DIR
    compiled.kernel(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_runs_of_work_come_back_in_order() -> None:
    items = np.arange(1000)
    for threads in (1, 3):
        outcomes = compiled.in_threads(lambda run: run.tolist(), items, threads)
        assert [item for run in outcomes for item in run] == items.tolist()
    assert compiled.in_threads(len, [], 4) == []


def test_an_error_in_a_thread_is_raised_here() -> None:
    def refuse(run: list[int]) -> None:
        raise ValueError(f"not {run[0]}")

    with pytest.raises(ValueError, match="not 0"):
        compiled.in_threads(refuse, list(range(100)), 2)


def test_fanning_out_begins_here() -> None:
    where = list(compiled.fan_out(process_of, range(5), workers=2))
    assert where[0] == os.getpid()
    assert os.getpid() not in where[1:]
    assert set(compiled.fan_out(process_of, range(3), workers=1)) == {os.getpid()}


def process_of(_: int) -> int:
    return os.getpid()
