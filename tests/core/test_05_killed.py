"""SIGKILL at any step of writing, and again during the recovery: the next run completes, and no finished unit runs again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable import atomic
from answerable.asking import Settings
from answerable.dossier import Dossier
from answerable.run import Run
from answerable.store import Store
from tests.core.conftest import Command

DOSSIER = """
title = "killed"
seed = 5
[[ask]]
question = "trivial/luck"
units = 4
expect = ["metrics.share > 0.2", "metrics.tosses == 400"]
[[ask]]
question = "trivial/mean"
numbers = [1, 2, 3]
expect = ["metrics.mean == 2"]
"""
UNITS = 5  # four of the first ask, one of the second


@pytest.fixture
def dossier(tmp_path: Path) -> Path:
    path = tmp_path / "killed.toml"
    path.write_text(DOSSIER)
    return path


def stored(store: Path) -> list[dict[str, object]]:
    """Every stored answer as data, less what differs between runs."""
    return [answer.without_run() for answer in Store(store).answers()]


def steps_of_a_whole_run(dossier: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps of writing a run takes."""
    monkeypatch.setattr(atomic, "_stop_at", 10**9)  # count, and never stop
    monkeypatch.setattr(atomic, "_steps", 0)
    Dossier.load(dossier).run(Settings(store=Store(store)))
    return atomic._steps


def stops(steps: int) -> list[int]:
    """Where to stop: the steps around the one rename that makes an answer, and a few others; all of them where asked for."""
    if os.environ.get("ANSWERABLE_TEST_STOPS") == "all":
        return list(range(1, steps + 1))
    return sorted({1, steps, *random.Random(3).sample(range(2, steps), 4)})


def test_stopped_at_any_step_and_again_in_the_recovery(
    tmp_path: Path, dossier: Path, command: Command, marks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    steps = steps_of_a_whole_run(dossier, whole, monkeypatch)
    assert steps >= 2 * UNITS
    for first in stops(steps):
        store = tmp_path / f"stopped-{first}"
        before = marks()
        assert (
            command("dossier", dossier, "--store", store, ANSWERABLE_STOP_AT=str(first)).returncode == -signal.SIGKILL
        )
        again = command("dossier", dossier, "--store", store, ANSWERABLE_STOP_AT="3").returncode
        assert again in (0, -signal.SIGKILL)
        assert command("dossier", dossier, "--store", store).returncode == 0
        assert stored(store) == stored(whole)
        # A unit that was computed but not yet written when the kill came is run again: at most one for each kill.
        assert marks() - before <= UNITS + 2
        assert Store(store).journal()


def kills_wanted() -> int:
    return int(os.environ.get("ANSWERABLE_TEST_KILLS", "5"))


def test_killed_at_random_moments_it_resumes_and_asks_no_finished_question_again(
    tmp_path: Path, command: Command, marks: Callable[[], int]
) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(DOSSIER.replace("units = 4", "units = 12\nslowness = 0.1").replace("400", "1200"))
    store, kills, chance = tmp_path / "store", 0, random.Random(11)
    line = [sys.executable, "-m", "answerable", "dossier", str(path), "--store", str(store)]
    for _ in range(kills_wanted()):
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0.3, 1.2))
            process.kill()
            process.wait()
            kills += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
    assert kills >= 1
    assert command("dossier", path, "--store", store).returncode == 0
    assert command("dossier", path, "--store", tmp_path / "whole").returncode == 0
    assert stored(store) == stored(tmp_path / "whole")
    assert marks() <= 13 + kills + 13


def test_another_number_of_workers_finishes_what_one_began(
    tmp_path: Path, command: Command, marks: Callable[[], int]
) -> None:
    fields = ["ask", "trivial/luck", "--seed", "1", "--units", "6", "--everywhere", "--store", tmp_path / "store"]
    assert command(*fields, "--workers", "1", ANSWERABLE_STOP_AT="5").returncode == -signal.SIGKILL
    done = marks()
    assert 1 <= done <= 3
    finished = command(*fields, "--workers", "2", "--json")
    assert finished.returncode == 0, finished.stderr
    assert marks() <= 6 + 1
    alone = command(*fields[:-1], tmp_path / "alone", "--json")
    ours, theirs = json.loads(finished.stdout), json.loads(alone.stdout)
    del ours["run"], theirs["run"]
    assert ours == theirs


def test_time_spent_before_the_stop_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time told is that of an uninterrupted run: units left behind bring theirs along, the one under way does not."""
    clock = [0.0]
    monkeypatch.setattr("answerable.run.time.perf_counter", lambda: clock[0])

    def unit(number: int) -> int:
        clock[0] += 10.0 + number
        if number == 2 and clock[0] < 100:
            raise KeyboardInterrupt
        return number

    first, second, third = (Run(checkpoints=tmp_path) for _ in range(3))
    with pytest.raises(KeyboardInterrupt):
        first.each(unit, range(4), "units")
    clock[0] = 1000.0
    assert second.each(unit, range(4), "units") == [0, 1, 2, 3]
    assert clock[0] - 1000.0 + second.spent == 10 + 11 + 12 + 13
    assert third.each(unit, range(4), "units") == [0, 1, 2, 3]
    assert (first.spent, third.spent) == (0.0, 10 + 11 + 12 + 13)


def test_a_failed_run_keeps_its_finished_units(tmp_path: Path, command: Command, marks: Callable[[], int]) -> None:
    store = tmp_path / "store"
    failed = command("ask", "trivial/luck", "--seed", "1", "--fail-at", "2", "--store", store)
    assert (failed.returncode, failed.stderr) == (2, "error: unit 2: this unit fails; choose another\n")
    assert marks() == 2
    command("ask", "trivial/luck", "--seed", "1", "--fail-at", "2", "--store", store)
    assert marks() == 2
    assert [entry.event for entry in Store(store).journal()] == ["begun", "failed", "begun", "failed"]


def test_ctrl_c_says_in_one_line_that_what_is_finished_is_kept(tmp_path: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "answerable",
        "ask",
        "trivial/luck",
        "--seed",
        "1",
        "--slowness",
        "0.2",
        "--units",
        "50",
    ]
    with subprocess.Popen(
        [*line, "--store", str(tmp_path)], stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        deadline = time.monotonic() + 30
        while not list(tmp_path.rglob("*.npz")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "error: stopped; what was finished is kept, and the same command goes on from there\n"
