"""The question: what its answer says, of tracks, streets and matrices, and what it draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer, Figure
from answerable.asking import ask
from answerable.guarantees.security_games.api import (
    MatrixGame,
    grid_game,
    matrix_of,
    random_twin,
    street_game,
)
from answerable.guarantees.security_games.game import SecurityGame
from answerable.guarantees.security_games.graph import distances, lattice
from answerable.guarantees.security_games.green import cells_of, closeness
from answerable.guarantees.security_games.printed import shown, small
from answerable.guarantees.security_games.question import SMALLEST
from answerable.guarantees.security_games.replicas import example_files
from answerable.guarantees.security_games.solver import solve
from answerable.guarantees.security_games.town import WEIGHTS, merged, scores
from answerable.guarantees.security_games.wording import stays

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
NAME = "security-games"
BOX = [2.0530, 2.2837, 15.8790, 16.2038]
HOMES = ["2.0532, 16.0857", "2.2037, 16.1871", "2.2000, 15.9800"]
HERD: dict[str, Any] = {
    "movements": str(EXAMPLES / "replica-herd.csv"), "box": BOX, "homes": HOMES, "steps": 8, "twins": 2,
}  # fmt: skip
TOWN: dict[str, Any] = {
    "infrastructure": str(EXAMPLES / "chinatown-infrastructure.geojson"),
    "streets": str(EXAMPLES / "replica-streets.graphml"), "blocks": str(EXAMPLES / "replica-blocks.csv"),
    "box": [40.7100, 40.7215, -74.0100, -73.9935], "homes": ["40.7123, -74.0018"], "steps": 6, "twins": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take ten times as long as the games; they are drawn in the contract's test and among the attacks."""
    drawn = Figure.drawn(lambda width: alt.Chart(alt.InlineData(values=[{}])).mark_point().properties(title="none"))
    monkeypatch.setattr(Figure, "drawn", lambda *_, **__: drawn)


def asked(fields: dict[str, Any], **more: Any) -> Answer:
    return ask(NAME, store=False, seed=1, **{**fields, **more})


# Worked by hand


def test_two_sites_and_one_patrol_by_hand() -> None:
    """Sites with six and two of eight positions on both sides of the base: covered 3/4 and 1/4, a loss of 1/4 of 3/4.

    Losses are divided by the larger, so the loss is 1/4, and a second patrol takes it to nothing.
    """
    answer = asked(SMALLEST)
    assert answer.metrics["loss"].value == pytest.approx(1 / 4)
    assert answer.metrics["one_more_patrol"].value == pytest.approx(1 / 4)
    assert answer.metrics["gap"].value < 1e-12
    assert answer.metrics["plans"].value == answer.metrics["fewest_plans"].value == 2
    assert answer.metrics["joint_walks"].value == 3
    targets = answer.tables["targets"].frame
    assert targets["coverage"].to_list() == pytest.approx([3 / 4, 1 / 4])
    assert targets["attack"].to_list() == pytest.approx([1 / 4, 3 / 4])
    plans = answer.tables["plans"].frame
    assert plans["probability"].to_list() == pytest.approx([3 / 4, 1 / 4])
    assert plans["walk"][0] == "row 1, column 2 > row 1, column 1 > row 1, column 2"
    assert answer.verdict is not None and answer.verdict.word == "certified"
    assert answer.summary == (
        "One patrol, mixed over 2 plans, holds the loss to 0.25 of the largest possible; the attacker's likeliest "
        "target, row 1, column 3, is covered 25% of the time."
    )


def test_a_walk_is_printed_with_its_stays() -> None:
    assert stays(["a", "a", "b", "a", "c", "c", "c"]) == "a (2) > b > a > c (3)"


def test_the_roster_is_drawn_by_the_shares() -> None:
    """366 days of a plan of 3/4: the number of its days is within 5 standard deviations (8.3 each)."""
    roster = asked(SMALLEST, days=366, twins=0).tables["roster"].frame
    assert roster["day"].to_list() == list(range(1, 367))
    assert abs((roster["plan"] == 1).sum() - 366 * 3 / 4) < 5 * 8.3
    assert set(roster["walk"]) == set(asked(SMALLEST, twins=0).tables["plans"].frame["walk"])
    assert "roster" not in asked(SMALLEST, days=0, twins=0).tables


def test_the_verdict_is_undecided_where_the_gap_is_wide() -> None:
    answer = asked(HERD, method="rm", precision=1.0, twins=0)
    assert answer.metrics["gap"].value > 1e-6
    assert answer.verdict is not None and answer.verdict.word == "undecided"
    assert answer.metrics["loss"].low <= asked(HERD, twins=0).metrics["loss"].value <= answer.metrics["loss"].high


# Every kind of game


def test_tracks_in_money() -> None:
    answer = asked(HERD, payoffs="general-sum", escape=["2.0530, 16.2038", "2.2837, 16.1600"], steps=7)
    assert answer.metrics["loss"].unit == "US$"
    assert answer.metrics["gap"].value < 1e-3
    assert answer.metrics["loss_if_ties_break_against"].value >= answer.metrics["loss"].value
    twins = answer.tables["twins"].frame
    assert twins["game"].unique(maintain_order=True).to_list() == ["real", "random matrix", "random values"]
    assert set(answer.figures) == {"map", "coverage", "twins"}
    simultaneous = asked(HERD, payoffs="general-sum", concept="nash", steps=4, clusters=3, twins=0)
    assert simultaneous.metrics["gap"].value < 1e-6


def test_a_town_in_schedule_form() -> None:
    answer = asked(TOWN, form="schedules", patrols=2, steps=5, payoffs="general-sum", penalty=5.0, defender_value=1.0)
    assert answer.metrics["gap"].value < 1e-9
    twins = answer.tables["twins"].frame
    assert twins["game"].unique(maintain_order=True).to_list()[-1] == "random schedules"
    assert answer.metrics["random_schedules_loss"].role == "null"
    assert {"map", "coverage", "twins"} == set(answer.figures)
    for figure in answer.figures.values():
        assert figure.svg(narrow=True).startswith("<svg")


def test_the_town_has_the_value_of_its_whole_matrix() -> None:
    game = street_game(
        TOWN["streets"], TOWN["infrastructure"], TOWN["blocks"], box=TOWN["box"], homes=[(40.7123, -74.0018)], steps=6
    )
    by_file = asked(TOWN, twins=0)
    whole = matrix_of(game, written_out=True)
    found = asked({"matrix": (whole.defender, whole.attacker)}, twins=0)
    assert found.metrics["loss"].value == pytest.approx(by_file.metrics["loss"].value, abs=1e-9)
    assert "fewest_plans" in by_file.metrics


@pytest.mark.parametrize("suffix", ["nfg", "game", "npz"])
def test_a_game_goes_out_and_comes_in_again(suffix: str, tmp_path: Path) -> None:
    game = grid_game(HERD["movements"], box=BOX, homes=[(2.0532, 16.0857)], steps=7)
    matrix = matrix_of(game, title="Herd")
    path = getattr(matrix, f"to_{suffix}")(tmp_path / f"game.{suffix}")
    again = MatrixGame.read(path)
    np.testing.assert_array_equal(again.defender, matrix.defender)
    np.testing.assert_array_equal(again.attacker, matrix.attacker)
    answer = asked({"matrix": str(path)}, twins=2)
    assert answer.metrics["loss"].value == pytest.approx(-solve(game).value, abs=1e-9)
    assert answer.tables["twins"].frame.height == 3


def test_a_matrix_of_two_players_is_committed_to_or_played_at_once() -> None:
    """Conitzer and Sandholm: committing to even odds brings 3.5, the only equilibrium 2."""
    game = str(EXAMPLES / "commitment.nfg")
    committed, at_once = asked({"matrix": game}), asked({"matrix": game}, concept="nash")
    assert committed.metrics["loss"].value == pytest.approx(-3.5)
    assert committed.tables["plans"].frame["probability"].to_list() == pytest.approx([0.5, 0.5])
    assert at_once.metrics["loss"].value == pytest.approx(-2)
    assert at_once.tables["plans"].frame["row"].to_list() == [1]


@pytest.mark.parametrize("method", ["simplex", "interior-point", "double-oracle", "rm", "rm+", "prm+"])
def test_all_methods_give_one_value(method: Any) -> None:
    game = grid_game(HERD["movements"], box=BOX, homes=[(2.0532, 16.0857), (2.2, 15.98)], steps=8, defenders=2)
    found, auto = solve(game, method=method, iterations=3000), solve(game)
    assert found.low - 1e-9 <= auto.value <= found.high + 1e-9
    assert found.gap < {"rm": 0.05, "rm+": 1e-3, "prm+": 1e-4}.get(method, 1e-9)
    assert found.probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_two_attacks_at_once() -> None:
    answer = asked(HERD, attackers=2, twins=2)
    assert answer.tables["targets"].frame["attack"].sum() == pytest.approx(2, abs=1e-9)
    assert answer.metrics["gap"].value < 1e-9


# Building games


def test_a_place_on_the_upper_edge_belongs_to_the_last_cell() -> None:
    box = (0.0, 1.0, 0.0, 3.0)
    lat, long = np.array([0.0, 1.0, 1.0, 0.5]), np.array([0.0, 3.0, 0.0, 1.0])
    assert cells_of(lat, long, box, (2, 3)).tolist() == [0, 5, 3, 4]
    tracks = pl.DataFrame({"animal_id": ["a", "b"], "lat": [1.0, 0.0], "long": [3.0, 0.0], "timestamp": ["", ""]})
    game = grid_game(tracks, box=box, shape=(2, 3), targets="density", homes=[(0.5, 0.5)], steps=8)
    assert game.targets.tolist() == [0, 5]


def test_values_are_shares_of_the_animals() -> None:
    """Density: positions of a cell times animals per position; before scaling they sum to the animals."""
    tracks = pl.DataFrame(
        {"animal_id": ["a", "a", "b", "b"], "lat": [0.5] * 4, "long": [0.5, 0.5, 0.5, 2.5], "timestamp": [""] * 4}
    )
    settings: dict[str, Any] = {"box": (0.0, 1.0, 0.0, 3.0), "shape": (1, 3), "homes": [(0.5, 1.5)], "steps": 3}
    money = grid_game(tracks, targets="density", payoffs="general-sum", defender_value=1.0, **settings)
    assert money.loss.tolist() == [1.5, 0.5]
    two = grid_game(tracks, targets="centroid", n_clusters=2, payoffs="general-sum", defender_value=1.0, **settings)
    assert two.loss.tolist() == [1.5, 0.5]
    assert grid_game(tracks, targets="density", **settings).loss == pytest.approx([1, 1 / 3])


def test_nearness_to_the_way_out() -> None:
    """To a segment along the equator: distances 1, 2 and, beyond its end, 5 (3, 4 away)."""
    lat, long = np.array([1.0, 2.0, 4.0]), np.array([0.0, 5.0, 13.0])
    assert closeness(lat, long, [(0.0, 0.0), (0.0, 10.0)]) == pytest.approx([1, 3 / 4, 0])
    assert closeness(lat, long, [(1.0, 0.0)])[0] == 1
    assert closeness(lat[:1], long[:1], [(0.0, 0.0)]).tolist() == [0]


def test_scores_and_merging_by_hand() -> None:
    features = pl.DataFrame({"id": ["1", "2"], "type": ["hospital", "kiosk"], "population": [np.e - 1, 0.0]})
    found, notes = scores(features, WEIGHTS, 1.0)
    assert found == pytest.approx([1.5 * 2, 1.0])
    assert notes == ("Unknown types count with weight 1: kiosk.",)
    at, score = np.array([4, 4, 7]), np.array([3.0, 1.0, 2.0])
    assert [value.tolist() for value in merged(at, score, "max+mean")] == [[4, 7], [5.0, 2.0]]
    assert merged(at, score, "max")[1].tolist() == [3, 2]
    assert merged(at, score, "sum")[1].tolist() == [4, 2]


def test_streets_that_do_not_lead_home_are_left_out_and_named() -> None:
    """Two islands; the clinic stands on the one without the station."""
    edges = pl.DataFrame({"from": ["a", "b", "x"], "to": ["b", "c", "y"]})
    nodes = pl.DataFrame({"node": list("abcxy"), "lat": [0.0] * 5, "long": [0.0, 0.001, 0.002, 0.1, 0.101]})
    features = pl.DataFrame(
        {"type": ["school", "clinic"], "name": ["School", "Clinic"], "lat": [0.0, 0.0], "long": [0.002, 0.1]}
    )
    answer = asked(
        {"infrastructure": features, "streets": edges, "nodes": nodes, "homes": ["0, 0"], "steps": 5, "twins": 0}
    )
    assert "Left out, on streets that do not lead home: Clinic." in answer.limits
    assert "Without census blocks every feature counts as if nobody lived there." in answer.limits
    assert answer.tables["targets"].frame["target"].to_list() == ["School"]
    assert answer.metrics["loss"].value == 0


def test_a_base_far_outside_and_a_hopeless_game_are_said() -> None:
    far = {**SMALLEST, "homes": ["0.5, 5.5"], "steps": 2}
    limits = asked(far, twins=0).limits
    assert any(
        line.startswith("Base 1 lies 278 km outside the box and was moved to the nearest cell") for line in limits
    )
    hopeless = asked({**SMALLEST, "columns": 30, "homes": ["0.5, 1.5"], "steps": 3}, twins=0)
    assert hopeless.metrics["loss"].value == 1
    assert any("targets cannot be covered in 3 time steps" in line for line in hopeless.limits)


# Random twins


def test_twins_of_each_kind() -> None:
    game = street_game(
        TOWN["streets"], TOWN["infrastructure"], TOWN["blocks"], box=TOWN["box"], homes=[(40.7123, -74.0018)], steps=5,
        defenders=2, payoffs="general-sum", step_cost=0.01, return_home=True,
    )  # fmt: skip
    values = random_twin(game, kind="values", seed=3)
    assert isinstance(values, SecurityGame)
    assert game.loss.min() <= values.loss.min() and values.loss.max() <= game.loss.max()
    assert values.step_cost == game.step_cost
    drawn, utilities, matrix = (random_twin(game, kind=kind, seed=3) for kind in ("schedules", "utilities", "matrix"))
    for one in (drawn, utilities, matrix):
        assert isinstance(one, MatrixGame)
        assert one.defender.shape[1] == game.n_targets + 1
    again = random_twin(game, kind="schedules", seed=3)
    assert isinstance(again, MatrixGame) and isinstance(drawn, MatrixGame) and isinstance(utilities, MatrixGame)
    np.testing.assert_array_equal(again.defender, drawn.defender)
    assert not np.array_equal(random_twin(game, kind="schedules", seed=4)[0], drawn.defender)
    # a covered target never brings the attacker more than a bare one
    assert (utilities.attacker >= 0).all() and (utilities.attacker <= 1).all()
    # abstention costs the moves and nothing else
    assert (drawn.defender[:, -1] <= 0).all() and (drawn.attacker[:, -1] == 0).all()


# Replicas


def test_the_example_files_are_what_their_script_writes() -> None:
    for name, content in example_files().items():
        assert (EXAMPLES / name).read_text(encoding="utf-8") == content, name


# Pictures


def test_labels_of_files_are_drawn_as_text() -> None:
    assert shown("a\x1b[31mb") == "a⟨001B⟩[31mb"
    assert len(shown("x" * 500)) == 30


@pytest.mark.parametrize(
    "number, told",
    [
        (0.0, "less than 10⁻¹²"),
        (3e-16, "less than 10⁻¹²"),
        (9.4e-4, "9 × 10⁻⁴"),
        (0.0123, "0.01"),
        (2.3e-12, "2 × 10⁻¹²"),
    ],
)
def test_a_distance_is_written_as_a_reader_would(number: float, told: str) -> None:
    assert small(number) == told


def test_distances_on_a_lattice_are_taxicab() -> None:
    found = distances(lattice(4, 5), [7])  # row 1, column 2
    assert found.tolist() == [abs(k // 5 - 1) + abs(k % 5 - 2) for k in range(20)]
