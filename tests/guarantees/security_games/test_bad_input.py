"""All that can be wrong ends in one line that names the place and the mend, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import answerable as aw
from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.guarantees.security_games import (
    MatrixGame,
    SecurityGame,
    commit,
    grid_game,
    lattice,
    lemke_howson,
    matrix_of,
    minimax,
    random_twin,
    regret_matching,
    solve,
    sparse_minimax,
    street_game,
    value_by_patrols,
)
from answerable.guarantees.security_games.question import SMALLEST

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
HERD, BLOCKS = str(EXAMPLES / "replica-herd.csv"), str(EXAMPLES / "replica-blocks.csv")
STREETS, FEATURES = str(EXAMPLES / "replica-streets.graphml"), str(EXAMPLES / "chinatown-infrastructure.geojson")
BOX = ["2.0530", "2.2837", "15.8790", "16.2038"]
ON_GRID = ["--movements", HERD, "--box", *BOX, "--homes", "2.0532, 16.0857"]
IN_TOWN = ["--infrastructure", FEATURES, "--streets", STREETS, "--homes", "40.7123, -74.0018"]


def line_of(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(AnswerableError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def asked(**fields: Any) -> str:
    return line_of(aw.ask, "security-games", store=False, seed=1, **{**SMALLEST, **fields})


# From the command line: exit code 2, one line, nothing written


@pytest.mark.parametrize(
    "words, line",
    [
        (
            [],
            "neither movements nor infrastructure is given; give movements, or infrastructure with streets, or matrix",
        ),
        ([*ON_GRID, "--infrastructure", FEATURES], "both are given"),
        (["--movements", HERD, "--box", *BOX], "homes: there is no base"),
        (["--movements", HERD, "--homes", "2.05, 16.08"], "box: there is no box; give south, north, west, east"),
        ([*ON_GRID[:8], "2.05 16.08"], "homes, entry 1: '2.05 16.08' is no place; write \"latitude, longitude\""),
        ([*ON_GRID[:8], "120, 16"], "homes, entry 1: '120, 16' is no place"),
        (
            ["--movements", HERD, "--box", "12", "13", "15", "16", "--homes", "2.05, 16.08"],
            "no observation lies in it; the data span 2.0",
        ),
        (
            ["--movements", HERD, "--box", "15.8790", "16.2038", "2.0530", "2.2837", "--homes", "16, 2.1"],
            "latitude and longitude seem to be swapped",
        ),
        (
            ["--movements", HERD, "--box", "2.2837", "2.0530", "16.2038", "15.8790", "--homes", "2.05, 16.08"],
            "is no box; give south, north, west, east in degrees; this looks like north, south, east, west",
        ),
        (
            ["--movements", HERD, "--box", "15.8790", "2.0530", "16.2038", "2.2837", "--homes", "2.05, 16.08"],
            "this looks like west, south, east, north",
        ),
        (
            ["--movements", HERD, "--box", "2.0530", "15.8790", "2.2837", "16.2038", "--homes", "2.05, 16.08"],
            "is no box; give south, north, west, east in degrees; this looks like south, west, north, east",
        ),
        ([*ON_GRID, "--own-homes", "--patrols", "2"], "homes: 1 bases for 2 patrols; give each patrol one"),
        ([*ON_GRID, "--dwell", "9"], "dwell: 9 time steps at a target, but a patrol has 8"),
        ([*ON_GRID, "--steps", "1"], "field steps: it is 1, and should be greater than or equal to 2"),
        (
            [*ON_GRID, "--clusters", "3", "--attackers", "4"],
            "attackers: 4 attacks at once on 3 targets; give at most 3, at least 1",
        ),
        ([*ON_GRID, "--payoffs", "general-sum", "--method", "rm"], "method rm solves zero-sum games"),
        ([*ON_GRID, "--escape", "1, 2", "3, 4", "5, 6"], "field escape"),
        ([*ON_GRID, "--homes", "2.0532, 16.0857", "--steps", "6", "--no-wait", "--return-home"], ""),
        (IN_TOWN[:2], "homes: there is no base"),
        ([*IN_TOWN[:2], *IN_TOWN[4:]], "streets: infrastructure without streets; give GraphML, or a table of edges"),
        ([*IN_TOWN, "--box", "1", "2", "3", "4"], "box: no feature lies in it; they span 40.7"),
        (["--matrix", str(EXAMPLES / "commitment.nfg"), "--method", "rm"], "method rm solves zero-sum games"),
        (["--matrix", HERD], "this is neither .nfg nor .game"),
        (["--movements", "nowhere.csv", *ON_GRID[2:]], "nowhere.csv: no such file or folder"),
        (["--movements", FEATURES, *ON_GRID[2:]], "is no table"),
        (["--infrastructure", HERD, *IN_TOWN[2:]], "there is no column 'type'"),
        ([*IN_TOWN[:2], "--streets", HERD, *IN_TOWN[4:]], "there are no columns 'from' and 'to'"),
        ([*IN_TOWN, "--blocks", FEATURES], "block 1: 'None' is no number"),
    ],
)
def test_one_line_and_nothing_written(
    words: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not line:  # a grid has two colours: without waiting no walk of an odd number of moves comes back
        line = "steps: no walk of 6 time steps returns home; give at least 7, or let patrols wait"
    saved = tmp_path / "answer"
    command = ["ask", "security-games", *words, "--seed", "1", "--save", str(saved), "--store", str(tmp_path / "s")]
    assert run(command) == 2
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said
    assert line in said.splitlines()[-1]
    assert not saved.exists()


# From Python


def test_more_clusters_than_places() -> None:
    assert "clusters: 3 clusters of 2 different places; give at most 2" in asked(values="centroid", clusters=3)


def test_features_outside_all_blocks_are_named(tmp_path: Path) -> None:
    ring = [[-74.02, 40.70], [-74.0, 40.70], [-74.0, 40.71], [-74.02, 40.71], [-74.02, 40.70]]
    block = {
        "type": "Feature",
        "properties": {"GEOID20": "1", "POP20": 5},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    (tmp_path / "b.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [block]}))
    fields = {"homes": [(40.7123, -74.0018)], "steps": 5}
    line = line_of(street_game, STREETS, FEATURES, tmp_path / "b.geojson", **fields)
    assert "blocks: no census block holds 57 features: relation/3359448," in line
    assert line.endswith("give blocks that cover them, or a population radius")
    near = street_game(STREETS, FEATURES, tmp_path / "b.geojson", radius=20_000, **fields)
    assert near.n_targets > 0


def test_no_target_on_the_streets_that_lead_home() -> None:
    edges = pl.DataFrame({"from": ["a", "x"], "to": ["b", "y"]})
    nodes = pl.DataFrame({"node": list("abxy"), "lat": [0.0] * 4, "long": [0.0, 0.001, 0.1, 0.101]})
    features = pl.DataFrame({"type": ["clinic"], "lat": [0.0], "long": [0.1]})
    line = line_of(street_game, edges, features, nodes=nodes, homes=[(0, 0)])
    assert "no target stands on the streets that lead home; give a connected network" in line


@pytest.mark.parametrize(
    "solver",
    [minimax, regret_matching, lambda U: commit(U, U), lambda U: lemke_howson(U, U), lambda U: sparse_minimax(U, 1)],
)
@pytest.mark.parametrize(
    "payoffs, line",
    [
        ([], "a matrix of shape"),
        ([[]], "a matrix of shape"),
        ([[1.0, float("nan")]], "row 1, column 2: nan is no finite number"),
        ([[1.0], [float("inf")]], "row 2, column 1: inf is no finite number"),
        ([[1, 2], [3]], "this is no matrix of numbers"),
        ([["a"]], "this is no matrix of numbers"),
        (3.0, "a matrix of shape (1,)"),
    ],
)
def test_every_solver_refuses_what_is_no_matrix(solver: Any, payoffs: Any, line: str) -> None:
    assert line in line_of(solver, payoffs)


def test_fewer_than_one_plan() -> None:
    game = SecurityGame(lattice(1, 3), np.array([0, 2]), np.ones(2), np.ones(2), (np.array([1]),), 3)
    for k in (0, -1, None):
        assert "k" in line_of(solve, game, method="sparse", k=k)
    assert "give at least 1" in line_of(sparse_minimax, np.eye(2), 0)
    assert "give at least 1" in line_of(value_by_patrols, np.eye(2), 0)


def test_what_is_too_large_to_write_out_is_told_in_rows_and_bytes() -> None:
    game = SecurityGame(lattice(9, 9), np.arange(20), np.ones(20), np.ones(20), (np.array([40]),) * 3, 12)
    line = line_of(matrix_of, game, written_out=True)
    assert "joint walks take" in line and "bytes; keep one row for each coverage" in line
    many = SecurityGame(lattice(9, 9), np.arange(60), np.ones(60), np.ones(60), (np.array([40]),), 5, attackers=6)
    assert "sets of 6 attacks; ask with method double-oracle, or of fewer attacks at once" in line_of(solve, many)


@pytest.mark.parametrize(
    "change, line",
    [
        ({"loss": np.array([1.0])}, "loss: 1 values for 2 targets"),
        ({"loss": np.array([1.0, np.nan])}, "loss, target row 1, column 3: nan is no value"),
        ({"gain": np.array([-1.0, 1])}, "gain, target row 1, column 1: -1 is no value"),
        ({"targets": np.array([], int), "loss": np.array([]), "gain": np.array([])}, "there is no target"),
        ({"homes": ()}, "a patrol has no home"),
        ({"homes": (np.array([], int),)}, "a patrol has no home"),
        ({"homes": (np.array([9]),)}, "homes: there is no node 9"),
        ({"targets": np.array([0, 9])}, "targets: there is no node 9"),
        ({"targets": np.array([0, 0])}, "targets: node 0 stands twice"),
        ({"steps": 0}, "steps: 0 time steps; give at least 1"),
        ({"dwell": 4}, "dwell: 4 time steps at a target, but a patrol has 3"),
        ({"attackers": 3}, "attackers: 3 attacks at once on 2 targets; give at most 2, at least 1"),
        ({"attackers": 0}, "attackers: 0 attacks at once"),
        ({"residual": 1.5}, "residual: 1.5 of an attack"),
        ({"step_cost": float("nan")}, "step_cost: nan is no cost"),
    ],
)
def test_a_game_that_is_none(change: dict[str, Any], line: str) -> None:
    right: dict[str, Any] = {
        "graph": lattice(1, 3), "targets": np.array([0, 2]), "loss": np.ones(2), "gain": np.ones(2),
        "homes": (np.array([1]),), "steps": 3,
    }  # fmt: skip
    assert line in line_of(lambda: SecurityGame(**{**right, **change}))


def test_twins_that_need_a_graph() -> None:
    matrix = MatrixGame(np.eye(2), -np.eye(2))
    for kind in ("values", "schedules", "utilities"):
        assert "a matrix has no graph; ask for kind matrix" in line_of(random_twin, matrix, kind=kind)


def test_settings_that_fit_no_grid() -> None:
    fields: dict[str, Any] = {"box": (2.05, 2.29, 15.87, 16.21), "homes": [(2.1, 16.0)]}
    assert "a grid of 0 x 7; give at most 3600 cells" in line_of(grid_game, HERD, shape=(0, 7), **fields)
    assert "a grid of 100 x 100" in line_of(grid_game, HERD, shape=(100, 100), **fields)
    assert "box: 3 numbers" in line_of(grid_game, HERD, box=(1, 2, 3), homes=[(2.1, 16.0)])
    assert "escape: 3 places" in line_of(grid_game, HERD, payoffs="general-sum", escape=[(1, 2)] * 3, **fields)


def test_hostile_strings_are_text(tmp_path: Path) -> None:
    """In names of animals, features and actions: nothing runs, nothing breaks a line."""
    nasty = "<script>alert(1)</script>\x1b[31m\n{{7*7}} =cmd|' /C calc'!A0 \u202e"
    features = pl.DataFrame(
        {"type": ["school", nasty], "name": [nasty, nasty], "lat": [0.0, 0.0], "long": [0.001, 0.0]}
    )
    edges = pl.DataFrame({"from": [nasty], "to": ["b"]})
    nodes = pl.DataFrame({"node": [nasty, "b"], "lat": [0.0, 0.0], "long": [0.0, 0.001]})
    answer = aw.ask(
        "security-games", store=False, seed=1, infrastructure=features, streets=edges, nodes=nodes, homes=["0, 0"],
        steps=3, twins=0,
    )  # fmt: skip
    for figure in answer.figures.values():
        assert "<script" not in figure.svg()
    assert "\n" not in answer.summary and "\x1b" not in answer.summary
    game = MatrixGame(np.eye(2), -np.eye(2), nasty, (nasty, "b"), ("c", nasty))
    for write in (game.to_nfg, game.to_game, game.to_npz):
        again = MatrixGame.read(write(tmp_path / "game"))
        np.testing.assert_array_equal(again.defender, np.eye(2))
    answer = aw.ask("security-games", store=False, seed=1, matrix=str(tmp_path / "game"), twins=0)
    for figure in answer.figures.values():
        assert "<script" not in figure.svg()


@pytest.mark.parametrize(
    "field, value",
    [
        ("movements", 3), ("movements", object()), ("movements", [1, 2]), ("infrastructure", 3.5), ("matrix", "x"),
        ("matrix", {"defender": "x"}), ("matrix", [[1, 2], [3]]), ("box", "everywhere"), ("box", [1, 2, 3]),
        ("box", [float("nan")] * 4), ("homes", []), ("homes", [None]), ("homes", "2, 3"), ("steps", "eight"),
        ("steps", 8.5), ("steps", None), ("patrols", 10**30), ("method", "guess"), ("wait", "perhaps"),
        ("escape", ["nowhere"]), ("penalty", float("nan")), ("move_cost", float("inf")),
    ],
)  # fmt: skip
def test_wrong_types_are_one_line(field: str, value: Any) -> None:
    changed = {**SMALLEST, field: value}
    if field in ("infrastructure",):
        changed["movements"] = None
    line = line_of(aw.ask, "security-games", store=False, seed=1, **changed)
    assert field in line or field in ("movements", "matrix", "infrastructure")
