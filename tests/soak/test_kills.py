"""Two hundred kills at named steps and twenty at random moments: what resumes equals what was never stopped."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable.asking import Settings
from answerable.dossier import Dossier
from answerable.report import report_data
from answerable.store import Store
from tests.core.conftest import Command, command, marks, plug_in  # noqa: F401
from tests.core.test_05_killed import UNITS, dossier, steps_of_a_whole_run, stored  # noqa: F401

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("ANSWERABLE_SOAK_STOPS", "200"))
RANDOM_KILLS = int(os.environ.get("ANSWERABLE_SOAK_KILLS", "20"))
KILLED = -signal.SIGKILL


def asked_again(store: Path) -> int:
    """How many questions were begun once more after their answer had been noted."""
    finished: set[str] = set()
    again = 0
    for entry in Store(store).journal():
        again += entry.event == "begun" and entry.key in finished
        if entry.event == "answered":
            finished.add(entry.key)
    return again


def test_stopped_at_every_step_and_again_in_the_recovery(
    tmp_path: Path,
    dossier: Path,  # noqa: F811
    command: Command,  # noqa: F811
    marks: Callable[[], int],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, chance = tmp_path / "whole", random.Random(17)
    steps = steps_of_a_whole_run(dossier, whole, monkeypatch)
    figures: Counter[str] = Counter()
    while figures["kills"] < KILLS:
        first = figures["stories"] % steps + 1
        store, before, kills = tmp_path / f"stopped-{figures['stories']}", marks(), 0
        for stop in (first, chance.randint(1, max(1, steps - first))):
            code = command("dossier", dossier, "--store", store, ANSWERABLE_STOP_AT=str(stop)).returncode
            assert code in (0, KILLED), (first, stop)
            kills += code == KILLED
        assert command("dossier", dossier, "--store", store).returncode == 0
        assert stored(store) == stored(whole)
        assert asked_again(store) == 0
        repeated = marks() - before - UNITS
        # A unit that was computed but not yet written when the kill came is run again: at most one for each kill.
        assert 0 <= repeated <= kills
        figures.update(stories=1, kills=kills, repeated=repeated)
    assert figures["stories"] >= steps or KILLS < 200
    with capsys.disabled():
        print(
            f"\nstopped at each of {steps} steps, in {figures['stories']} stories: {figures['kills']} kills, "
            f"{figures['repeated']} units under way run again, 0 finished ones, every store equal to the whole run's"
        )


@pytest.mark.model
def test_killed_at_random_moments_the_example_resumes(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, chance = repository / "examples" / "audit.toml", random.Random(29)
    said = tmp_path / "said.txt"

    def start(store: Path) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "answerable", "dossier", str(path), "--store", str(store)]
        environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
        with said.open("wb") as file:
            return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=file, env=environment)

    began = time.monotonic()
    assert start(tmp_path / "whole").wait(timeout=600) == 0
    seconds = time.monotonic() - began
    whole = shown(path, tmp_path / "whole")
    figures: Counter[str] = Counter()
    while figures["kills"] < RANDOM_KILLS:
        store, ended, kills, began = tmp_path / f"killed-{figures['stories']}", None, figures["kills"], time.monotonic()
        while ended != 0:
            process = start(store)
            try:
                # Once all kills are spent the run is left alone, and must come to its end.
                ended = process.wait(chance.uniform(0.1, seconds) if figures["kills"] < RANDOM_KILLS else 600)
                figures["runs"] += 1
                assert ended == 0, said.read_text()
            except subprocess.TimeoutExpired:
                process.kill()
                ended = process.wait()
                assert ended in (0, KILLED), said.read_text()  # 0: it came to its end before the signal came
                figures["kills" if ended == KILLED else "runs"] += 1
        if figures["kills"] == kills:  # a machine that has grown quieter would be done before most kills
            seconds = min(seconds, time.monotonic() - began)
        assert shown(path, store) == whole
        assert asked_again(store) == 0
        figures["stories"] += 1
        figures["begun"] += sum(entry.event == "begun" for entry in Store(store).journal())
    with capsys.disabled():
        print(
            f"\nkilled at random moments: {figures['kills']} kills in {figures['stories']} stories, "
            f"{figures['begun']} questions begun for {4 * figures['stories']} answered, 0 finished ones begun again, "
            f"every report's data equal to the whole run's byte for byte"
        )


def shown(path: Path, store: Path) -> bytes:
    """All that a report would show, from the store alone."""
    before = len([entry for entry in Store(store).journal() if entry.event == "begun"])
    data = report_data(Dossier.load(path).run(Settings(store=Store(store))))
    assert len([entry for entry in Store(store).journal() if entry.event == "begun"]) == before
    return json.dumps(data).encode()
