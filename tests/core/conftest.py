"""The core's tests ask the questions of a plug-in that stands beside them, found as every installed plug-in is found."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable import registry

PLUG_IN = Path(__file__).parent / "plug_in"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plug-in's folder, on the path of this process and of those it starts."""
    monkeypatch.syspath_prepend(str(PLUG_IN))
    paths = [str(PLUG_IN), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    registry._plug_ins.cache_clear()
    return PLUG_IN


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of the test's own, also for the processes it starts."""
    monkeypatch.setenv("ANSWERABLE_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many units of work were run so far, in whatever process."""
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setenv("ANSWERABLE_TEST_MARKS", str(folder))
    return lambda: len(list(folder.iterdir()))


@pytest.fixture
def command() -> Command:
    """Run ``answerable`` in a process of its own."""

    def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "answerable", *map(str, words)]
        return subprocess.run(
            line, capture_output=True, text=True, env=os.environ | environment, check=False, timeout=120
        )

    return run
