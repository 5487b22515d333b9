"""Compiled kernels survive a damaged, read-only or outdated cache, and give the same bits from any thread or process."""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from answerable import compiled

Process = Callable[[Path], subprocess.CompletedProcess[str]]
SOURCE = """
from answerable.compiled import kernel

@kernel
def halves(numbers):
    total = 0.0
    for number in numbers:
        total += number / 2
    return total
"""
PROGRAM = "import numpy, small_kernel; print(small_kernel.halves(numpy.arange(4.0)))"
RIGHT = "3.0\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A source tree that nothing may be written into."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "small_kernel.py").write_text(SOURCE)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


@pytest.fixture
def in_fresh_process(source: Path) -> Process:
    return functools.partial(run_in_fresh_process, source)


def run_in_fresh_process(source: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"ANSWERABLE_CACHE": str(cache), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False, timeout=120
    )


def kept_files(cache: Path) -> list[Path]:
    return sorted((cache / "kernels").rglob("*.nb[ic]"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    done = run_in_fresh_process(source, cache)
    assert done.stdout == RIGHT, done.stderr
    assert kept_files(cache)
    return cache


def test_the_folder_is_the_users_own(filled: Path) -> None:
    for folder in (filled / "kernels", *(filled / "kernels").iterdir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_process_compiles_nothing(filled: Path, in_fresh_process: Process) -> None:
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
def test_a_damaged_file_is_built_again_in_silence(
    filled: Path, suffix: str, damage: Callable[[bytes], bytes], in_fresh_process: Process
) -> None:
    victim = next(file for file in kept_files(filled) if file.suffix == suffix)
    victim.write_bytes(damage(victim.read_bytes()))
    done = in_fresh_process(filled)
    assert (done.stdout, done.stderr, done.returncode) == (RIGHT, "", 0)
    assert not any(compiled._is_damaged(file) for file in kept_files(filled))


def test_without_a_writable_place_kernels_live_in_memory(tmp_path: Path, in_fresh_process: Process) -> None:
    taken = tmp_path / "a-file"
    taken.write_text("no folder")
    done = in_fresh_process(taken)
    assert (done.stdout, done.stderr, done.returncode) == (RIGHT, "", 0)
    assert taken.read_text() == "no folder"


def test_nothing_is_written_where_the_source_stands(filled: Path, source: Path) -> None:
    assert [path.name for path in source.rglob("*")] == ["small_kernel.py"]


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
