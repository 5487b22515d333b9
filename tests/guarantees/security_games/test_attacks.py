"""What strangers did to it: kills, units of any size, payoffs that no number holds, games that nobody attacks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import answerable as aw
from answerable.answer import Answer
from answerable.cli import run
from answerable.errors import BadInput
from answerable.guarantees.security_games import SecurityGame, commit, lattice, minimax, solve
from answerable.guarantees.security_games import comparison as comparing
from answerable.guarantees.security_games.question import SMALLEST

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
ON_GRID = [
    "--movements", str(EXAMPLES / "replica-herd.csv"), "--box", "2.0530", "2.2837", "15.8790", "16.2038", "--homes",
    "2.0532, 16.0857", "2.2037, 16.1871", "--steps", "5", "--days", "3", "--most-plans", "2", "--twins", "2", "--seed", "1",
]  # fmt: skip
KILLED_BEFORE_THE_TWINS = """
import os, signal, sys
from answerable.cli import run
from answerable.guarantees.security_games import plan_answer
plan_answer.twin_rows = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(run(sys.argv[1:]))
"""


def test_a_killed_ask_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGKILL before the twins leaves nothing half-written; asked again, no game is solved anew, and no byte differs."""

    def command(name: str, store: str) -> list[str]:
        return ["ask", "security-games", *ON_GRID, "--save", str(tmp_path / name), "--store", str(tmp_path / store)]

    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_THE_TWINS, *command("answer", "store")], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "answer").exists()

    def solved(*_: Any, **__: Any) -> Any:
        raise AssertionError("solved again")

    with monkeypatch.context() as patch:
        patch.setattr("answerable.guarantees.security_games.solver.solve", solved)
        patch.setattr(comparing, "double_oracle", solved)
        patch.setattr(comparing, "value_by_patrols", solved)
        assert run(command("answer", "store")) == 0
    assert run(command("whole", "other")) == 0
    capsys.readouterr()
    assert _bytes(tmp_path / "answer") == _bytes(tmp_path / "whole")
    assert Answer.load(tmp_path / "answer").metrics["gap"].value < 1e-9


def _bytes(folder: Path) -> dict[str, bytes]:
    """Every file but the one that tells when the answer was made, and that one without it."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    document = json.loads(files.pop("answer.json"))
    del document["run"], files["manifest.json"]
    return {"answer.json": json.dumps(document).encode(), **files}


@pytest.mark.parametrize("own, other", [(1e-12, 1.0), (1e12, 1e-12), (1.0, 1e9), (1e100, 1e100)])
def test_the_unit_of_payoffs_does_not_move_the_commitment(own: float, other: float) -> None:
    """An attack that brings a millionth of a cent is still one: by hand, both rows at even odds bring 3.5."""
    L, F = np.array([[2.0, 4.0], [1.0, 3.0]]), np.eye(2)
    found = commit(own * L, other * F)
    np.testing.assert_allclose(found.row, 0.5, atol=1e-9)
    assert found.low == pytest.approx(3.5 * own)
    assert found.high == pytest.approx(3.5 * own)
    assert found.attacker_value == pytest.approx(0.5 * other)


def test_a_constant_added_to_payoffs_does_not_move_the_commitment() -> None:
    rng = np.random.default_rng(5)
    L, F = rng.random((6, 4)), rng.random((6, 4))
    there, moved = commit(L, F), commit(L - 1e4, F + 1e4)
    assert moved.value == pytest.approx(there.value - 1e4, abs=1e-7)
    assert moved.response == there.response


def test_nobody_attacks_where_everything_is_always_covered() -> None:
    """One patrol stands on the only target from first to last: it is as well to abstain, and the answer says so."""
    answer = aw.ask(
        "security-games", store=False, seed=1, **{**SMALLEST, "columns": 1, "homes": ["0.5, 0.5"], "box": [0, 1, 0, 3]},
        payoffs="general-sum",
    )  # fmt: skip
    assert answer.metrics["loss"].value == 0
    assert answer.summary.endswith("holds the loss to US$ 0; no target is worth an attack.")
    attacked = answer.metrics["least_covered_attacked"]
    assert np.isnan(attacked.value)
    assert attacked.reason == "he attacks nothing"
    assert all(figure.svg() for figure in answer.figures.values())


def test_payoffs_that_overflow_are_named() -> None:
    for solver in (minimax, lambda U: commit(np.eye(2), U), lambda U: commit(U, np.eye(2))):
        with pytest.raises(BadInput, match="row 2, column 1: 1e\\+308 is too large to reckon with; divide all payoffs"):
            solver([[0.0, 1.0], [1e308, -1e308]])
    assert minimax([[1e150, -1e150], [-1e150, 1e150]]).value == 0


def test_one_row_is_not_one_rows() -> None:
    answer = aw.ask("security-games", store=False, seed=1, matrix={"defender": np.zeros((3, 3))}, twins=0)
    assert answer.summary == "In a game of 3 x 3 actions one row secures 0, and no mix more than 0."


def test_worthless_attacks_still_count_in_any_unit() -> None:
    """The same game in dollars and in billionths of a dollar has the same plan."""
    game = SecurityGame(
        lattice(1, 3), np.array([0, 2]), np.array([3.0, 1.0]), np.array([3.0, 1.0]), (np.array([1]),), 3, same_end=True,
        zero_sum=False,
    )  # fmt: skip
    tiny = SecurityGame(
        lattice(1, 3), np.array([0, 2]), np.array([3.0, 1.0]), np.array([3e-12, 1e-12]), (np.array([1]),), 3,
        same_end=True, zero_sum=False,
    )  # fmt: skip
    assert solve(game).value == pytest.approx(solve(tiny).value) == pytest.approx(-0.75)


def test_a_patrol_with_too_many_coverages_is_solved_by_best_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many states double oracle takes over by itself, and proves the same value."""
    rng = np.random.default_rng(3)
    targets = np.sort(rng.choice(49, 12, replace=False))
    worth = rng.uniform(0.2, 1, 12)
    game = SecurityGame(lattice(7, 7), targets, worth, worth, (np.array([4, 34, 30]),), 8)
    listed = solve(game)
    monkeypatch.setattr("answerable.guarantees.security_games.solver.QUICK_STATES", 20)
    answered = solve(game)
    assert (listed.n_rows > 0, listed.method) == (True, "simplex")
    assert (answered.n_rows, answered.method) == (0, "double-oracle")
    assert answered.value == pytest.approx(listed.value, abs=1e-9)
    assert answered.gap <= 1e-9
