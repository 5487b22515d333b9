"""From graphs to reduced games: walk counts, coverages, payoffs and schedules against listing everything."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.guarantees.security_games.api import matrix_of
from answerable.guarantees.security_games.coverage import (
    TooManyStates,
    joint_coverages,
    maximal,
    patrol_coverages,
    visits_of_walks,
)
from answerable.guarantees.security_games.game import SecurityGame, actions, attack_sets, normalised, payoffs
from answerable.guarantees.security_games.graph import (
    FAR,
    PatrolGraph,
    count_walks,
    distances,
    graph_of_edges,
    lattice,
    list_walks,
    shortest_path,
)
from answerable.guarantees.security_games.minimax import minimax
from answerable.guarantees.security_games.oracle import double_oracle
from answerable.guarantees.security_games.schedules import patrol_schedules, schedule_actions
from answerable.guarantees.security_games.solver import solve
from tests.oracles import security_games as oracle

HOMES = [4, 4 * 7 + 6, 4 * 7 + 2]  # cells (row, column) from the south: (0, 4), (4, 6), (4, 2)
TARGETS = [
    row * 7 + column for row, column in [(1, 4), (4, 1), (5, 3), (0, 3), (5, 5), (2, 1), (4, 4), (2, 3), (4, 5), (3, 2)]
]


def beside(graph: PatrolGraph) -> list[list[int]]:
    return [graph.neighbours[graph.first[k] : graph.first[k + 1]].tolist() for k in range(graph.n_nodes)]


def random_game(rng: np.random.Generator, *, zero_sum: bool = True, wait: bool | None = None) -> SecurityGame:
    """Few cells, few steps, one or two patrols, stays of one to three time steps."""
    shape = (int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    graph = lattice(*shape, wait=bool(rng.integers(2)) if wait is None else wait)
    n_patrols = int(rng.integers(1, 3))
    steps = int(rng.choice([3, 5])) if n_patrols == 2 else int(rng.choice([3, 4, 5]))
    if n_patrols == 2:
        steps = 3
    n_targets = int(rng.integers(2, 5))
    targets = np.sort(rng.choice(graph.n_nodes, n_targets, replace=False))
    loss = rng.integers(1, 9, n_targets).astype(float)
    gain = loss if zero_sum else rng.integers(1, 9, n_targets).astype(float)
    homes = tuple(np.sort(rng.choice(graph.n_nodes, int(rng.integers(1, 3)), replace=False)) for _ in range(n_patrols))
    return SecurityGame(
        graph, targets, loss, gain, homes, steps, dwell=int(rng.integers(1, 4)) if steps >= 3 else 1,
        same_end=bool(rng.integers(2)), attackers=int(rng.integers(1, 3)), zero_sum=zero_sum,
        step_cost=0.0 if zero_sum else 0.25,
    )  # fmt: skip


def listed(game: SecurityGame) -> list[list[tuple[int, ...]]]:
    return [oracle.walks(beside(game.graph), home.tolist(), game.steps, same_end=game.same_end) for home in game.homes]


# Walks


@pytest.mark.parametrize("steps, walks, same", [(8, 9075, 8095), (9, 41479, 34719), (10, 184647, 146655)])
def test_walks_of_the_published_lattice(steps: int, walks: int, same: int) -> None:
    graph = lattice(7, 7)
    assert count_walks(graph, HOMES, steps) == walks
    assert count_walks(graph, HOMES, steps, same_end=True) == same


def test_walks_are_counted_in_whole_numbers_of_any_size() -> None:
    graph = lattice(3, 3)
    adjacency = np.zeros((9, 9), object)
    for node, others in enumerate(beside(graph)):
        adjacency[node, others] = 1
    power = np.linalg.matrix_power(adjacency, 59)
    assert count_walks(graph, [0, 8], 60) == power[np.ix_([0, 8], [0, 8])].sum() > 2**63


def test_listed_walks_are_all_walks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        game = random_game(rng)
        for home, walks in zip(game.homes, listed(game), strict=True):
            found = list_walks(game.graph, home, game.steps, same_end=game.same_end)
            assert [tuple(walk) for walk in found.tolist()] == walks
            assert len(walks) == count_walks(game.graph, home, game.steps, same_end=game.same_end)


def test_distances_and_ways() -> None:
    graph = graph_of_edges([(0, 1), (1, 2), (3, 4)], np.zeros(5), np.zeros(5), list("abcde"))
    assert distances(graph, [0]).tolist() == [0, 1, 2, FAR, FAR]
    assert distances(graph, [2, 4]).tolist() == [2, 1, 0, 1, 0]
    assert shortest_path(graph, 0, 2) == [0, 1, 2]
    with pytest.raises(BadInput, match="an edge leads to node 7 of 2"):
        graph_of_edges([(0, 7)], np.zeros(2), np.zeros(2), ["a", "b"])


# Coverages


def test_coverages_are_those_of_all_walks(seed: int) -> None:
    """Distinct visits, how many walks have them, the fewest moves, and a real walk for each."""
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(40):
        game = random_game(rng)
        for home, walks in zip(game.homes, listed(game), strict=True):
            if not walks:
                continue
            found = patrol_coverages(
                game.graph, game.targets, home, game.steps, dwell=game.dwell, same_end=game.same_end
            )
            expected: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            for walk in walks:
                expected.setdefault(oracle.visits(walk, game.targets.tolist(), game.dwell), []).append(walk)
            told = [tuple(map(int, row)) for row in found.visits]
            assert set(told) == set(expected) and len(told) == len(expected)
            for visits, moves, count, witness in zip(told, found.moves, found.walks, found.witness, strict=True):
                assert count == len(expected[visits])
                assert moves == min(oracle.moves(walk) for walk in expected[visits]) == oracle.moves(witness)
                assert tuple(witness.tolist()) in expected[visits]
            best = patrol_coverages(
                game.graph, game.targets, home, game.steps, dwell=game.dwell, same_end=game.same_end, undominated=True
            )
            kept = {
                v
                for v in expected
                if not any(v != o and all(a <= b for a, b in zip(v, o, strict=True)) for o in expected)
            }
            assert {tuple(map(int, row)) for row in best.visits} == kept
            assert (visits_of_walks(best.witness, game.targets, game.dwell) == best.visits).all()
            compared += 1
    assert compared > 20


def test_many_targets_take_several_words() -> None:
    """Every cell a target, three visits counted: 49 x 3 bits."""
    graph = lattice(7, 7)
    found = patrol_coverages(graph, np.arange(49), HOMES, 5, dwell=3)
    walks = list_walks(graph, HOMES, 5)
    assert len(np.unique(visits_of_walks(walks, np.arange(49), 3), axis=0)) == len(found.visits)
    assert found.walks.sum() == len(walks)
    assert len(maximal(found.visits)) == len(
        patrol_coverages(graph, np.arange(49), HOMES, 5, dwell=3, undominated=True).visits
    )


def test_the_published_reduction() -> None:
    """Walks to coverages to undominated ones, on the targets of the published game."""
    graph = lattice(7, 7)
    for steps, coverages, undominated in ((8, 41, 12), (9, 111, 28), (12, 247, 46)):
        found = patrol_coverages(graph, TARGETS, HOMES, steps)
        assert found.walks.sum() == count_walks(graph, HOMES, steps)
        assert (len(found.visits), len(maximal(found.visits))) == (coverages, undominated)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=30, unique_by=tuple))
def test_maximal_rows_are_those_that_no_other_contains(rows: list[list[int]]) -> None:
    expected = [
        k
        for k, row in enumerate(rows)
        if not any(o != row and all(a <= b for a, b in zip(row, o, strict=True)) for o in rows)
    ]
    assert maximal(np.array(rows)).tolist() == expected


def test_too_many_states_are_refused() -> None:
    with pytest.raises(
        TooManyStates, match=r"more than 100 distinct coverages after . time steps; ask with method double-or"
    ):
        patrol_coverages(lattice(7, 7), np.arange(49), HOMES, 8, most_states=100)
    with pytest.raises(TooManyStates):
        patrol_coverages(lattice(7, 7), np.arange(49), HOMES, 8, undominated=True, most_states=100)
    each = [patrol_coverages(lattice(7, 7), np.arange(49), HOMES, 6)] * 2
    with pytest.raises(TooManyStates, match="coverages of several patrols"):
        joint_coverages(each, 1, most_states=100)


# Whole games


def test_a_game_has_the_value_of_all_its_walks(seed: int) -> None:
    """Reduced, by double oracle, and written out, against entry by entry; 1 and 2 patrols, 1 to 3 time steps."""
    rng = np.random.default_rng(seed)
    compared = 0
    while compared < 20:
        game = random_game(rng)
        each = listed(game)
        if not all(each) or prod(map(len, each)) > 3000 or game.attackers > game.n_targets:
            continue
        U = oracle.zero_sum_matrix(each, game.targets.tolist(), game.loss.tolist(), game.dwell, game.attackers)
        written = matrix_of(game, written_out=True)
        order = [tuple(sorted(t for t in c if t is not None)) for c in itertools.combinations([*range(game.n_targets), None], game.attackers)]  # fmt: skip
        places = [attack_sets(game.n_targets, game.attackers).index(column) for column in order]
        assert (written.defender[:, places] == U).all()
        assert matrix_of(game).defender.min() == U.min()
        assert normalised(game).scale == pytest.approx(-U.min() or 1.0)
        by_hand = oracle.value(U)
        found, other = solve(game), double_oracle(game)
        for low, high in ((found.low, found.high), (other.low, other.high)):
            assert low - 1e-9 <= by_hand <= high + 1e-9
            assert high - low < 1e-9
        assert found.probabilities.sum() == pytest.approx(1, abs=1e-12)
        compared += 1


def test_a_plan_is_made_of_real_walks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for zero_sum in (True, False):
        game = random_game(rng, zero_sum=zero_sum, wait=True)
        found = solve(game)
        each = [set(walks) for walks in listed(game)]
        for probability, team in found.defender:
            assert probability > 0
            assert all(walk in walks for walk, walks in zip(team, each, strict=True))
        for k, (_, team) in enumerate(found.defender):
            covered = [oracle.interdicted(team, int(target), game.dwell) for target in game.targets]
            assert covered == found.covered[k].tolist()
            assert found.cost[k] == pytest.approx(sum(map(oracle.moves, team)) * game.step_cost)


def test_general_sum_commitments_equal_those_over_all_walks(seed: int) -> None:
    """Rows that agree in coverage are one, at the least cost: neither commitments nor their value change."""
    rng = np.random.default_rng(seed)
    compared = 0
    while compared < 8:
        game = random_game(rng, zero_sum=False)
        each = listed(game)
        if not all(each) or prod(map(len, each)) > 300 or game.attackers > game.n_targets:
            continue
        rows = actions(game)
        reduced = payoffs(game, rows.covered, rows.cost)
        written = matrix_of(game, written_out=True)
        from answerable.guarantees.security_games.stackelberg import commit

        assert commit(*reduced).value == pytest.approx(commit(written.defender, written.attacker).value, abs=1e-8)
        compared += 1


def test_two_targets_and_one_patrol_by_hand() -> None:
    """Sites worth 3 and 1 on both sides of the base: covered 3/4 and 1/4 of the time, a loss of 3/4."""
    game = SecurityGame(lattice(1, 3), np.array([0, 2]), np.array([3.0, 1]), np.array([3.0, 1]), (np.array([1]),), 3)
    found = solve(game)
    assert found.value == pytest.approx(-3 / 4)
    assert found.coverage == pytest.approx([3 / 4, 1 / 4])
    assert found.attacks == pytest.approx([1 / 4, 3 / 4])
    assert solve(game.with_patrols(2)).value == 0


def test_the_best_of_few_plans(seed: int) -> None:
    game = random_game(np.random.default_rng(seed), wait=True)
    found = [solve(game, method="sparse", k=k) for k in (1, 2)]
    for k, one in enumerate(found, 1):
        assert len(one.probabilities) <= k
        assert one.low <= solve(game).low + 1e-9
    assert found[0].low <= found[1].low + 1e-9


# Schedules


def test_schedules_are_all_rounds_that_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        shape = (int(rng.integers(2, 4)), int(rng.integers(2, 4)))
        graph = lattice(*shape)
        distance = np.array([distances(graph, [node]) for node in range(graph.n_nodes)])
        targets = np.sort(rng.choice(graph.n_nodes, 4, replace=False))
        home, dwell, steps = int(rng.integers(graph.n_nodes)), int(rng.integers(1, 3)), int(rng.integers(4, 9))
        game = SecurityGame(graph, targets, np.ones(4), np.ones(4), (np.array([home]),), steps, dwell=dwell)
        found = patrol_schedules(game, game.homes[0])
        sets = [frozenset(np.flatnonzero(row).tolist()) for row in found.visits]
        assert set(sets) == oracle.rounds(distance, home, targets.tolist(), dwell, steps)
        visits = visits_of_walks(found.witness, targets, dwell)
        for row, walk, cost, seen in zip(found.visits, found.witness.tolist(), found.moves, visits, strict=True):
            assert len(walk) == steps and walk[0] == walk[-1] == home
            assert all(b in beside(graph)[a] for a, b in itertools.pairwise(walk))
            assert oracle.moves(walk) == cost
            assert (seen[row > 0] == dwell).all()
        single = patrol_schedules(game, game.homes[0], simple=True)
        assert {frozenset(np.flatnonzero(r).tolist()) for r in single.visits} == {one for one in sets if len(one) <= 1}


def test_the_published_test_is_one_step_more_generous() -> None:
    """As nodes of a walk T = 9 allows what the published test allows at T = 8, single targets aside."""
    graph = lattice(7, 7)
    ones = np.ones(len(TARGETS))

    def sets(steps: int, *, strict: bool) -> set[tuple[int, ...]]:
        game = SecurityGame(graph, np.array(TARGETS), ones, ones, (np.array(HOMES),), steps, dwell=2)
        return {
            tuple(np.flatnonzero(row).tolist()) for row in patrol_schedules(game, game.homes[0], strict=strict).visits
        }

    published, honest = sets(8, strict=False), sets(9, strict=True)
    assert {one for one in published if len(one) > 1} == {one for one in honest if len(one) > 1}
    assert {one for one in published if len(one) == 1} <= {one for one in sets(8, strict=True) if len(one) == 1}
    assert () in honest and () not in published


def test_the_published_number_of_joint_schedules() -> None:
    """29, 32 and 49 a patrol on the published targets and homes."""
    ones = np.ones(len(TARGETS))
    for steps, rows in ((8, 841), (9, 1024), (10, 2401)):
        game = SecurityGame(
            lattice(7, 7), np.array(TARGETS), ones, ones, (np.array(HOMES),) * 2, steps, dwell=2, residual=0.2
        )
        found = schedule_actions(game, strict=False)
        assert found.n_joint == rows
        assert minimax(payoffs(game, found.covered, found.cost)[0]).gap < 1e-12


# Twelve million rows that are never listed


def test_a_game_too_large_to_list_is_solved_by_double_oracle() -> None:
    """Every cell of a 6 x 6 grid a target; the listing is refused, the value is certified all the same."""
    rng = np.random.default_rng(0)
    worth = rng.uniform(0.1, 1, 36)
    game = SecurityGame(lattice(6, 6), np.arange(36), worth, worth, (np.array([0, 35]),), 9)
    with pytest.raises(TooManyStates):
        actions(game, most_states=100)
    found = double_oracle(game)
    assert found.gap < 1e-9
    assert found.probabilities.sum() == pytest.approx(1)
    reached = visits_of_walks(found.walks[0], game.targets, 1) > 0
    assert (reached == found.covered).all()
