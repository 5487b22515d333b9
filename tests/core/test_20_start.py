"""Commands start at once and load nothing heavy; nothing but an explicit hub id tries the network."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.core.conftest import Command

HEAVY = ["torch", "numba", "numpy", "sklearn", "scipy", "polars", "altair", "transformers", "jinja2"]


@pytest.mark.parametrize(
    "words", [["--help"], ["questions"], ["questions", "--json"], ["ask", "attention-flow", "--help"]]
)
def test_the_catalogue_loads_nothing_heavy(words: list[str]) -> None:
    program = f"""
import sys
from answerable.cli import run
try: run({words!r})
except SystemExit: pass
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # our own catalogue alone
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert result.stderr == "[]\n"
    assert result.stdout


def test_something_is_on_the_screen_within_two_seconds(tmp_path: Path) -> None:
    import pty

    child, terminal = pty.openpty()
    line = [
        sys.executable,
        "-m",
        "answerable",
        "ask",
        "trivial/luck",
        "--seed",
        "1",
        "--slowness",
        "1",
        "--store",
        str(tmp_path),
    ]
    started = time.monotonic()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=terminal, close_fds=True) as process:
        first = os.read(child, 100)
        seconds = time.monotonic() - started
        process.kill()
    os.close(child)
    os.close(terminal)
    assert b"How often does a coin show heads?" in first
    assert seconds < 10, "a bound for a loaded machine; the bench says how long it takes on a quiet one"


def test_nothing_is_said_along_the_way_when_there_is_no_terminal(command: Command, store: Path) -> None:
    assert command("ask", "trivial/luck", "--seed", "1").stderr == ""


def test_a_hub_id_is_the_only_thing_that_may_reach_the_network_and_fails_with_its_mend(
    command: Command, store: Path
) -> None:
    result = command("ask", "attention-flow", "--model", "hf:nobody/nothing", "--text", "x", HF_HUB_OFFLINE="1")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "hf:nobody/nothing" in result.stderr


def test_the_schema_of_every_face_is_one(command: Command) -> None:
    schema = json.loads(command("questions", "attention-flow", "--schema").stdout)
    helped = command("ask", "attention-flow", "--help").stdout
    for name, field in schema["properties"].items():
        assert field["description"], name
        assert f"--{name.replace('_', '-')}" in helped
