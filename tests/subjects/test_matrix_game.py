"""Games as matrices: each format in and out, as others write them, and what is none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from answerable.errors import AnswerableError, Refused
from answerable.subjects import matrix_game
from answerable.subjects.matrix_game import Matrices, read_matrix_game, write_game, write_nfg, write_npz

# Written by hand after Gambit's description: 2 x 3, the first player's action varies fastest.
NFG = """NFG 1 R "By hand" { "Defender" "Attacker" } { 2 3 }

1 -1 2 -2 3 -3 4 -4 5 -5 1/4 -0.25
"""
OWN = np.array([[1.0, 3, 5], [2, 4, 0.25]])

payoffs = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(-1e12, 1e12))


def told(subject: Any) -> str:
    with pytest.raises(AnswerableError) as caught:
        read_matrix_game(subject)
    line = str(caught.value)
    assert "\n" not in line
    return line


def saved(tmp_path: Path, content: str, name: str = "game.nfg") -> Path:
    (tmp_path / name).write_text(content)
    return tmp_path / name


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    found = read_matrix_game(saved(tmp_path, NFG))
    np.testing.assert_array_equal(found.defender, OWN)
    np.testing.assert_array_equal(found.attacker, -OWN)
    assert found.title == "By hand"


def test_what_is_written_is_what_stands_in_the_file_by_hand(tmp_path: Path) -> None:
    path = write_nfg(Matrices(OWN, -OWN, "By hand"), tmp_path / "ours.nfg")
    heading, blank, *lines = path.read_text().splitlines()
    assert heading == 'NFG 1 R "By hand" { "Defender" "Attacker" } { 2 3 }'
    assert blank == ""
    assert lines == ["1.0 -1.0", "2.0 -2.0", "3.0 -3.0", "4.0 -4.0", "5.0 -5.0", "0.25 -0.25"]


def test_named_actions_and_outcomes(tmp_path: Path) -> None:
    """Gambit's own form: names of actions, a comment, payoffs by numbered outcomes, 0 for none."""
    text = """NFG 1 R "Outcomes" { "A" "B" }

{ { "up" "down" }
{ "left" "right" }
}
"a comment"

{
{ "first" 1, 2 }
{ "" 3.5, -4 }
}
1 2 0 1
"""
    found = read_matrix_game(saved(tmp_path, text))
    assert (found.rows, found.columns) == (("up", "down"), ("left", "right"))
    np.testing.assert_array_equal(found.defender, [[1, 0], [3.5, 1]])
    np.testing.assert_array_equal(found.attacker, [[2, 0], [-4, 2]])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(own=payoffs, other=st.integers(0, 2**32 - 1))
def test_each_format_gives_back_what_was_written(tmp_path: Path, own: np.ndarray, other: int) -> None:
    theirs = np.random.default_rng(other).normal(size=own.shape)
    for attacker in (theirs, -own):
        game = Matrices(own + 0.0, attacker, 'A "quoted" title')
        for write, name in ((write_nfg, "a.nfg"), (write_game, "a.game"), (write_npz, "a.npz")):
            found = read_matrix_game(write(game, tmp_path / name))
            np.testing.assert_array_equal(found.defender, game.defender)
            np.testing.assert_array_equal(found.attacker, game.attacker)
        assert read_matrix_game(tmp_path / "a.nfg").title == 'A "quoted" title'


def test_names_of_actions_travel_in_npz(tmp_path: Path) -> None:
    game = Matrices(OWN, -OWN, "", ("up", "down"), ("a", "b", "c"))
    found = read_matrix_game(write_npz(game, tmp_path / "a.npz"))
    assert (found.rows, found.columns) == (game.rows, game.columns)


def test_gamut_files_from_zero_and_from_one(tmp_path: Path) -> None:
    for first in (0, 1):
        lines = [f"[{i + first} {j + first}] :\t[{OWN[i, j]} {2 * OWN[i, j]}]" for i in range(2) for j in range(3)]
        found = read_matrix_game(saved(tmp_path, "# Generated\n" + "\n".join(lines) + "\n", "g.game"))
        np.testing.assert_array_equal(found.defender, OWN)
        np.testing.assert_array_equal(found.attacker, 2 * OWN)


def test_arrays_pairs_and_mappings_are_games() -> None:
    for subject in (OWN, {"defender": OWN}, (OWN, -OWN), Matrices(OWN, -OWN)):
        found = read_matrix_game(subject)
        np.testing.assert_array_equal(found.defender, OWN)
        np.testing.assert_array_equal(found.attacker, -OWN)
    assert matrix_game.digest(OWN) == matrix_game.digest((OWN, -OWN)) != matrix_game.digest(OWN + 1)


@pytest.mark.parametrize(
    "content, line",
    [
        ("hello\n", "this is neither .nfg nor .game"),
        ('NFG 2 R "x" { "a" "b" } { 1 1 } 1 1', "the file does not begin with NFG 1 R"),
        ('NFG 1 R "x" { "a" "b"', "the file ends in its heading"),
        ('NFG 1 R "x" { "a" "b" "c" } { 1 1 1 } 1 1 1', "a game of 3 players; give a game of two"),
        ('NFG 1 R "x" { "a" "b" } { 1 2 } 1 1', "2 payoffs for 1 x 2 cells; give two for each cell"),
        ('NFG 1 R "x" { "a" "b" } { 1 many } 1 1', "'many' is no number of actions"),
        ('NFG 1 R "x" { "a" "b" } { 1 1 } 1 one', "'one' is no payoff"),
        ('NFG 1 R "x" { "a" "b" } { 1 1 } 1 1/0', "'1/0' is no payoff"),
        ('NFG 1 R "x" { "a" "b" } { 1 1 } nan 1', "'nan' is no finite payoff"),
        ('NFG 1 R "x" { "a" "b" } { 1 1 } 1 1e999', "'1e999' is no finite payoff"),
        ('NFG 1 R "x" { "a" "b" } { 99999 99999 } 1', "99999 x 99999 payoffs; save it as .npz"),
        ('NFG 1 R "x" { "a" "b" } { 0 2 }', "payoffs of shape (0, 2); give at least one row and one column"),
        ('NFG 1 R "x" { "a" "b" } { -1 2 }', "'-1' is no number of actions"),
        ("[1 1] : [1 2]\n[1 3] : [1 2]\n", "2 cells of 1 x 3; give each cell once"),
        ("[1 1] : [1 2 3]\n", "cell 1 1 has 3 payoffs"),
        ("[1 1] : [1 2]\nand so on\n", "'and so on' is no cell"),
    ],
)
def test_text_that_is_no_game(tmp_path: Path, content: str, line: str) -> None:
    assert line in told(saved(tmp_path, content))


@pytest.mark.parametrize(
    "subject, line",
    [
        (np.zeros((0, 3)), "payoffs of shape (0, 3)"),
        (np.zeros(3), "payoffs of shape (3,)"),
        (np.array([[1.0, np.nan]]), "defender, row 1, column 2: nan is no finite number"),
        (np.array([[1.0], [np.inf]]), "defender, row 2, column 1: inf is no finite number"),
        (np.array([["a"]]), "the payoffs are of type"),
        ((OWN, OWN[:, :2]), "shapes (2, 3) and (2, 2); give a payoff of each player"),
        ({"payoffs": OWN}, "there is no array 'defender'"),
    ],
)
def test_arrays_that_are_no_game(subject: Any, line: str) -> None:
    assert line in told(subject)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", defender=np.array([[{}]], dtype=object))
    assert told(tmp_path / "objects.npz")
    (tmp_path / "game.nfg").write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.")
    with pytest.raises(Refused):
        read_matrix_game(tmp_path / "game.nfg")
