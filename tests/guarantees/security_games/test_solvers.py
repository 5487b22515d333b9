"""Each solver against closed forms, brute force, scipy, and the other solvers."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from answerable.errors import BadInput
from answerable.guarantees.security_games import stackelberg
from answerable.guarantees.security_games.api import street_game
from answerable.guarantees.security_games.bimatrix import (
    least_exploitable_pure,
    lemke_howson,
    support_enumeration,
    vertex_enumeration,
)
from answerable.guarantees.security_games.game import actions, payoffs
from answerable.guarantees.security_games.minimax import certificate, minimax
from answerable.guarantees.security_games.regret import regret_matching
from answerable.guarantees.security_games.sparse import sparse_minimax, value_by_patrols
from answerable.guarantees.security_games.stackelberg import assignments, commit, commit_simple
from answerable.guarantees.security_games.twins import (
    random_schedules,
    random_utilities,
    skew_symmetric,
    uniform_matrix,
)
from tests.oracles import security_games as oracle

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
ROCK_PAPER_SCISSORS = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
METHODS = ("simplex", "interior-point")

matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-5, 5).map(float), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    ).map(np.array)
)


# Zero-sum


@pytest.mark.parametrize("method", METHODS)
def test_worked_by_hand(method: str) -> None:
    found = minimax(ROCK_PAPER_SCISSORS, method=method)  # type: ignore[arg-type]
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.row == pytest.approx([1 / 3] * 3)
    assert found.column == pytest.approx([1 / 3] * 3)
    # [[a, b], [c, d]] without saddle: value (ad - bc) / (a + d - b - c)
    found = minimax([[3, 0], [1, 2]], method=method)  # type: ignore[arg-type]
    assert found.value == pytest.approx(1.5)
    assert found.row == pytest.approx([1 / 4, 3 / 4])
    assert minimax([[2, 2], [2, 2]], method=method).value == 2  # type: ignore[arg-type]
    assert minimax([[1, 2, -3]], method=method).value == -3  # type: ignore[arg-type]
    assert minimax([[1], [2], [-3]], method=method).value == 2  # type: ignore[arg-type]


@settings(max_examples=80)
@given(matrices, st.sampled_from(METHODS), st.booleans())
def test_every_method_certifies_the_value(U: np.ndarray, method: str, vertex: bool) -> None:
    """Whole numbers, so that ties and equal rows are common."""
    found = minimax(U, method=method, vertex=vertex)  # type: ignore[arg-type]
    assert found.low <= oracle.value(U) + 1e-9 and oracle.value(U) <= found.high + 1e-9
    assert 0 <= found.gap + 1e-12 <= 2e-9
    assert (found.low, found.high) == certificate(U, found.row, found.column)
    for strategy in (found.row, found.column):
        assert strategy.sum() == pytest.approx(1, abs=1e-12)
        assert (strategy >= 0).all()


def test_all_methods_agree_on_random_games(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        shape = (int(rng.integers(2, 40)), int(rng.integers(2, 40)))
        U = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4)
        scale = np.ptp(U)
        simplex, interior = minimax(U, method="simplex"), minimax(U, method="interior-point", vertex=False)
        assert simplex.gap <= 1e-9 * scale and interior.gap <= 1e-9 * scale
        assert simplex.value == pytest.approx(interior.value, abs=1e-9 * scale)
        matched = regret_matching(U, rule="prm+", iterations=3000)
        assert matched.low <= simplex.high + 1e-12 * scale
        assert matched.high >= simplex.low - 1e-12 * scale
        assert matched.gap < 0.02 * scale


@pytest.mark.parametrize("shape", [(300, 300), (2000, 11), (11, 2000)])
def test_large_games_are_solved_to_ten_digits(shape: tuple[int, int], seed: int) -> None:
    U = np.random.default_rng(seed).random(shape)
    found = minimax(U, method="interior-point")
    assert 0 <= found.gap <= 1e-10
    assert np.count_nonzero(found.row) <= min(shape)
    lows, highs = found.history[:, 1], found.history[:, 2]
    assert (lows <= found.high + 1e-12).all() and (highs >= found.low - 1e-12).all()  # every look is a proof
    assert highs[-1] - lows[-1] < 1e-9 < highs[0] - lows[0]


def test_a_vertex_is_found_on_a_wide_face_of_optimal_strategies() -> None:
    """Where hundreds of rows have probability, columns without any bind at a vertex."""
    game = street_game(
        EXAMPLES / "replica-streets.graphml", EXAMPLES / "chinatown-infrastructure.geojson",
        EXAMPLES / "replica-blocks.csv", box=(40.7100, 40.7215, -74.0100, -73.9935), defenders=2, steps=14,
        homes=[(40.7123, -74.0018), (40.7160, -74.0080), (40.7190, -73.9970)], return_home=True,
    )  # fmt: skip
    rows = actions(game)
    U = payoffs(game, rows.covered, rows.cost)[0]
    spread, found = minimax(U, method="interior-point", vertex=False), minimax(U, method="interior-point")
    assert np.count_nonzero(spread.row) > 100
    assert np.count_nonzero(found.row) < 20
    assert found.gap <= max(spread.gap, 1e-12)
    assert found.value == pytest.approx(minimax(U, method="simplex").value, abs=1e-9)


def test_a_matrix_that_is_none_is_refused() -> None:
    for U, line in (
        ([[]], r"payoffs: a matrix of shape \(1, 0\); give at least one row and one column"),
        ([[1, np.nan]], "payoffs, row 1, column 2: nan is no finite number"),
        ([[1, 2], [np.inf, 1]], "payoffs, row 2, column 1: inf is no finite number"),
        ([[1, 2], [3]], "this is no matrix of numbers"),
        (["a"], "this is no matrix of numbers"),
    ):
        with pytest.raises(BadInput, match=line):
            minimax(U)  # type: ignore[arg-type]


# Regret matching


@pytest.mark.parametrize("rule", ["rm", "rm+", "prm+"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (40, 3), (80, 70), (70, 81)])
def test_one_pass_is_the_plain_rule(rule: str, shape: tuple[int, int], seed: int) -> None:
    U = np.random.default_rng(seed).normal(size=shape)
    found = regret_matching(U, rule=rule, iterations=60, check=60)  # type: ignore[arg-type]
    if shape[0] >= shape[1]:
        assert (found.low, found.high) == pytest.approx(oracle.regret_matching(U, rule, 60), abs=1e-9)
    else:
        low, high = oracle.regret_matching(-U.T, rule, 60)
        assert (found.low, found.high) == pytest.approx((-high, -low), abs=1e-9)


def test_regret_matching_plays_uniformly_where_nothing_is_regretted() -> None:
    found = regret_matching(np.zeros((4, 3)) + 2.5, rule="rm+", iterations=10)
    assert found.row == pytest.approx([1 / 4] * 4)
    assert (found.low, found.high) == (2.5, 2.5)


def test_regret_matching_stops_when_it_is_near_enough() -> None:
    found = regret_matching(ROCK_PAPER_SCISSORS + np.eye(3), rule="prm+", iterations=100_000, tolerance=1e-4)
    assert found.gap <= 1e-4
    assert found.iterations < 10_000
    assert found.history[-1].tolist() == [18.0 * found.iterations, found.low, found.high]


# Few plans


def test_the_best_k_rows_are_those_of_all_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(6):
        U = rng.random((7, 5))
        found = value_by_patrols(U, 7)
        for one in found:
            assert np.count_nonzero(one.row) <= one.k
            assert one.value == pytest.approx(oracle.best_of_k(U, one.k), abs=1e-9)
            assert one.value <= one.bound + 1e-12 <= one.value + 1e-6
        assert found[-1].value == pytest.approx(oracle.value(U), abs=1e-9)
    with pytest.raises(BadInput, match="k: k is 0; give at least 1"):
        sparse_minimax(U, 0)


# Commitments


def test_conitzer_and_sandholm() -> None:
    """Their example: committing to 1/2, 1/2 gets 3.5, the only equilibrium 2."""
    L, F = np.array([[2.0, 4], [1, 3]]), np.array([[1.0, 0], [0, 1]])
    found = commit(L, F)
    assert found.value == pytest.approx(3.5)
    assert found.row == pytest.approx([0.5, 0.5])
    assert found.gap == pytest.approx(0, abs=1e-9)
    assert [(profile.row_value, profile.row) for profile in support_enumeration(L, F, exact=True)] == [(2, (1, 0))]


def test_commitments_against_all_vertices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        m, n = (int(k) for k in rng.integers(2, 5, 2))
        L, F = rng.normal(size=(m, n)), rng.normal(size=(m, n))
        found, whole = commit(L, F), commit(L, F, prune=False)
        assert found.value == pytest.approx(oracle.commitment(L, F), abs=1e-8)
        assert whole.value == pytest.approx(found.value, abs=1e-8)
        assert found.low - 1e-9 <= whole.high and found.gap <= 1e-7 and whole.gap <= 1e-7
        assert found.solved <= whole.solved == n
        assert found.against_ties <= found.low + 1e-9


def test_taking_rows_in_as_they_pay_gives_the_same_commitment(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uniform games, whole numbers with many ties, columns that are never a best response, and a column of a few rows."""
    rng = np.random.default_rng(seed)
    games = [(rng.random((60, 7)), rng.random((60, 7))) for _ in range(6)]
    games += [(rng.integers(0, 4, (80, 5)) * 1.0, rng.integers(0, 4, (80, 5)) * 1.0) for _ in range(6)]
    L, F = rng.random((90, 6)), rng.random((90, 6))
    L[:, 2] += 5  # tempting, and never a best response
    F[:, 2] = 0.25 * F[:, 0] + 0.75 * F[:, 1] - 0.01
    L[:, 4] += 4  # tempting, and a best response to one row alone
    F[:, 4] = F.min(axis=1) - 0.1
    F[77, 4] = 2
    games.append((L, F))
    for L, F in games:
        whole = commit(L, F)
        for prune in (True, False):
            with monkeypatch.context() as patch:
                patch.setattr(stackelberg, "ALL_AT_ONCE", 0)
                patch.setattr(stackelberg, "FIRST_ROWS", 1)
                patch.setattr(stackelberg, "ROWS_A_ROUND", 2)
                found = commit(L, F, prune=prune)
            assert found.value == pytest.approx(whole.value, abs=1e-8)
            assert found.gap < 1e-8
            assert whole.gap < 1e-8


def test_a_commitment_is_worth_at_least_the_zero_sum_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        L = rng.normal(size=(6, 5))
        assert commit(L, -L).value == pytest.approx(minimax(L).value, abs=1e-9)
        assert commit(L, rng.normal(size=(6, 5))).value >= minimax(L).value - 1e-9
    with pytest.raises(BadInput, match="give one payoff for each"):
        commit(L, L[:3])


def test_simple_schedules_equal_all_joint_assignments(seed: int) -> None:
    """Two patrols that each cover one of four targets or none: marginals against every joint assignment."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        n_targets, n_patrols = 4, 2
        reachable = rng.random((n_patrols, n_targets)) < 0.7
        own, own_covered, other_covered, other = random_utilities(n_targets, rng)
        found = commit_simple(reachable, (own_covered, other_covered), (own, other))
        choices = [[-1, *np.flatnonzero(row)] for row in reachable]
        rows = [(a, b) for a in choices[0] for b in choices[1]]
        covered = np.array([[t in row for t in range(n_targets)] for row in rows])
        joint = commit(np.where(covered, own_covered, own), np.where(covered, other_covered, other))
        assert found.value == pytest.approx(joint.value, abs=1e-8)
        mix = assignments(found.coverage)
        assert sum(share for share, _ in mix) == pytest.approx(1)
        again = np.zeros((n_patrols, n_targets))
        for share, chosen in mix:
            taken = [t for t in chosen if t >= 0]
            assert len(set(taken)) == len(taken)
            for patrol, target in enumerate(chosen):
                if target >= 0:
                    again[patrol, target] += share
        assert again == pytest.approx(found.coverage, abs=1e-7)
    two = commit_simple(np.ones((1, 2)), (np.zeros(2), np.zeros(2)), (np.array([-3.0, -1]), np.array([3.0, 1])))
    assert two.value == pytest.approx(-3 / 4)
    assert two.coverage == pytest.approx(np.array([[3 / 4, 1 / 4]]))


# Bimatrix games


@settings(max_examples=30)
@given(matrices.filter(lambda U: max(U.shape) <= 4), st.integers(0, 2**31))
def test_equilibria_in_fractions(A: np.ndarray, number: int) -> None:
    """Small whole numbers: degenerate games too. Every profile is an equilibrium, without rounding."""
    B = np.random.default_rng(number).integers(-3, 4, A.shape).astype(float)
    vertices = vertex_enumeration(A, B, exact=True)
    assert vertices
    for profile in (*vertices, *support_enumeration(A, B, exact=True)):
        assert profile.regret == 0
        assert sum(profile.row) == sum(profile.column) == 1
        assert isinstance(profile.row[0], Fraction)
    extreme = {(*profile.row, *profile.column) for profile in vertices}
    for label in range(sum(A.shape)):
        end = lemke_howson(A, B, label=label, exact=True)
        assert end.regret == 0
        assert (*end.row, *end.column) in extreme


def test_generic_games_have_an_odd_number_of_equilibria_and_all_methods_find_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        A, B = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
        supports, vertices = support_enumeration(A, B), vertex_enumeration(A, B)
        assert len(supports) % 2 == 1
        told = sorted(tuple(np.round((*one.row, *one.column), 6)) for one in supports)
        assert told == sorted(tuple(np.round((*one.row, *one.column), 6)) for one in vertices)
        for label in range(7):
            end = lemke_howson(A, B, label=label)
            assert end.regret < 1e-9
            assert tuple(np.round((*end.row, *end.column), 6)) in told


def test_a_degenerate_game_with_supports_of_unequal_size() -> None:
    """Against the first column both rows are best: equilibria (1, 0) and (0, 1), and all mixes between."""
    A, B = np.array([[1.0, 0], [1, 0]]), np.array([[1.0, 0], [1, 0]])
    found = vertex_enumeration(A, B, exact=True)
    assert {profile.row for profile in found} == {(1, 0), (0, 1)}
    assert lemke_howson(A, B, exact=True).regret == 0


def test_bimatrix_games_that_are_too_large_or_none_are_refused() -> None:
    wide = np.zeros((30, 30))
    with pytest.raises(BadInput, match="pairs of supports; use lemke_howson"):
        support_enumeration(wide, wide)
    with pytest.raises(BadInput, match="candidate vertices"):
        vertex_enumeration(wide, wide)
    with pytest.raises(BadInput, match="label: label 9; give 0 to 3"):
        lemke_howson(np.eye(2), np.eye(2), label=9)
    with pytest.raises(BadInput, match="give one payoff for each"):
        lemke_howson(np.eye(2), np.eye(3))


@given(matrices)
def test_the_least_exploitable_pure_profile(U: np.ndarray) -> None:
    i, j, regret = least_exploitable_pure(U)
    every = [(U[:, b].max() - U[a, b]) + (U[a, b] - U[a].min()) for a in range(U.shape[0]) for b in range(U.shape[1])]
    assert regret == pytest.approx(min(every))
    assert regret == pytest.approx((U[:, j].max() - U[i, j]) + (U[i, j] - U[i].min()))


# Random twins


def test_square_random_games_have_equal_supports_of_about_half(seed: int) -> None:
    """Fact (i). The band is four standard errors of what was measured (share 0.51, s.d. 0.06 at n = 30)."""
    rng = np.random.default_rng(seed)
    n, draws = 30, 30
    found = [minimax(rng.random((n, n)), method="simplex") for _ in range(draws)]
    sizes = np.array([[(one.row > 1e-9).sum(), (one.column > 1e-9).sum()] for one in found])
    assert (sizes[:, 0] == sizes[:, 1]).all()
    assert abs(sizes[:, 0].mean() / n - 0.51) < 4 * 0.07 / np.sqrt(draws)
    assert np.mean([abs(one.value - 0.5) for one in found]) * n < 2


def test_skew_symmetric_games_have_odd_supports(seed: int) -> None:
    """Fact (ii): P(k) = C(n, k) / 2^(n - 1) for odd k."""
    rng = np.random.default_rng(seed)
    draws = 160
    sizes = [int((minimax(skew_symmetric(7, rng)).row > 1e-9).sum()) for _ in range(draws)]
    assert all(size % 2 == 1 for size in sizes)
    expected = np.array([comb(7, k) / 64 * draws for k in (1, 3, 5, 7)])
    assert chisquare([sizes.count(k) for k in (1, 3, 5, 7)], expected).pvalue > 1e-6


def test_many_more_rows_than_columns_fill_the_columns(seed: int) -> None:
    """Fact (iii): the support is all columns, and the value drifts to the largest entry."""
    rng = np.random.default_rng(seed)
    values = []
    for m in (200, 20_000):
        found = minimax(uniform_matrix((m, 6), -1.0, 0.0, rng))
        values.append(found.value)
    assert np.count_nonzero(found.row) >= 5
    assert np.count_nonzero(found.column) >= 5
    assert values[0] < values[1] < 0
    assert values[1] > -0.25


def test_a_pure_commitment_is_almost_the_best_of_a_random_game(seed: int) -> None:
    """Fact (iv): 1 - 1 / (m + 1) of the range on average for one column; the best mix gets little more."""
    rng = np.random.default_rng(seed)
    m, n, draws = 20, 6, 40
    best, pure, supports = [], [], []
    for _ in range(draws):
        L, F = rng.random((m, n)), rng.random((m, n))
        found = commit(L, F, certify=False)
        best.append(found.value)
        pure.append(max(L[i, F[i].argmax()] for i in range(m)))
        supports.append(np.count_nonzero(found.row))
    # the best of m independent uniform entries: mean m / (m + 1), s.d. about 1 / (m + 1)
    assert abs(np.mean(pure) - m / (m + 1)) < 4 / (m + 1) / np.sqrt(draws)
    assert (np.array(best) >= np.array(pure) - 1e-9).all()
    assert np.mean(supports) <= 3


def test_random_schedules_and_utilities_have_their_shape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    covered, cost = random_schedules(50, 8, rng)
    assert covered.shape == (50, 8)
    assert (covered.sum(axis=1) >= 1).all() and (covered.sum(axis=1) <= 3).all()
    assert (cost >= 0).all() and (cost <= 1).all()
    own, own_covered, other_covered, other = random_utilities(8, rng)
    assert (np.abs(own_covered) <= np.abs(own)).all() and (other_covered <= other).all()
    assert (own <= 0).all() and (other >= 0).all()
