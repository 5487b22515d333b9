"""Slopes, patterns, verdicts and metrics against other ways to them and against values worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from answerable.errors import BadInput
from answerable.explanations.activation_patterns import (
    activation_pattern,
    emda,
    fni_emda,
    ima,
    input_importance,
    make_xai_tris,
    quadratic_features,
    quadratic_terms,
    term_scores,
)
from answerable.explanations.activation_patterns.logistic import _logistic, univariate_slopes
from answerable.explanations.activation_patterns.refit import multivariate_refit
from answerable.explanations.activation_patterns.solver import discriminability
from answerable.explanations.activation_patterns.transport import least_transport
from tests.oracles import activation_patterns as oracle


def noisy(n: int = 400, seed: int = 0, columns: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, columns)) @ rng.normal(size=(columns, columns)) * rng.uniform(0.1, 30, columns) + 5
    z[:, 2] = np.round(z[:, 2] / z[:, 2].std())  # heavy ties
    standard = (z - z.mean(0)) / z.std(0)
    return z, (rng.random(n) < expit(standard[:, 0] - 0.7 * standard[:, 1])).astype(float)


# The closed form


def test_the_closed_form() -> None:
    found = term_scores(*oracle.two_gaussians(200_000, 0))
    assert found.weight == pytest.approx([50 / 9, -40 / 9], abs=0.1)
    assert found.weight * found.slope == pytest.approx([2, 0], abs=0.02)
    assert found.verdict == ["informative and used", "suppressor"]


def test_a_suppressor_is_found_and_nothing_else_is_called_one() -> None:
    """Twenty samples: x2 is a suppressor in each; the informative feature and a weak one never are."""
    alarms = 0
    for seed in range(20):
        X, y = oracle.two_gaussians(1500, seed)
        weak = np.random.default_rng(seed + 99).normal(size=len(y)) + 0.3 * y
        found = term_scores(np.column_stack([X, weak]), y, ridge=1e-6)
        assert found.verdict[1] == "suppressor"
        alarms += "suppressor" in (found.verdict[0], found.verdict[2])
    assert alarms <= 1  # 5 % of 20


def test_the_interval_of_the_slope_covers(seed: int) -> None:
    n_runs, covered = 300, 0
    for run in range(n_runs):
        found = term_scores(*oracle.two_gaussians(800, seed + run), ridge=1e-6)
        covered += found.slope_low[1] < 0 < found.slope_high[1]
    assert abs(covered - 0.95 * n_runs) < 4 * np.sqrt(n_runs * 0.95 * 0.05)


def test_a_used_term_that_goes_against_its_link_is_a_negative_suppressor() -> None:
    rng = np.random.default_rng(3)
    n = 6000
    y = rng.integers(0, 2, n).astype(float)
    noise = rng.normal(size=n)
    # x1 = y + noise, x2 = noise and a little of y: alone x2 rises with y, in the model it is subtracted.
    X = np.column_stack([2 * y + noise + rng.normal(size=n), noise + 0.3 * y + 0.3 * rng.normal(size=n)])
    assert term_scores(X, y).verdict == ["informative and used", "negative suppressor"]


# Fits


def test_slopes_are_those_of_scikit_learn() -> None:
    z, y = noisy()
    assert univariate_slopes(z, y).slope == pytest.approx(oracle.slopes_by_sklearn(z, y), rel=1e-9, abs=1e-11)


def test_probabilities_are_those_of_scipy_to_rounding() -> None:
    linear = np.concatenate([np.linspace(-690, 690, 20_001), np.linspace(-3, 3, 10_001), [0.0, -0.0, 1e-300]])
    out = np.empty_like(linear)
    _logistic(linear, np.empty_like(linear), out)
    assert np.max(np.abs(out / expit(linear) - 1)) < 5e-16 + np.finfo(float).eps
    beyond = np.array([-1e9, -750.0, 750.0, 1e9])
    ends = np.empty(4)
    _logistic(beyond, np.empty(4), ends)
    assert np.array_equal(ends > 0.5, [False, False, True, True]) and np.isfinite(ends).all()


def test_threads_and_a_warm_start_change_nothing() -> None:
    z, y = noisy(columns=40)
    cold = univariate_slopes(z, y)
    assert np.array_equal(cold.slope, univariate_slopes(z, y, threads=4).slope)
    assert univariate_slopes(z, y, start=cold).slope == pytest.approx(cold.slope, rel=1e-12)


def test_aurocs_with_heavy_ties() -> None:
    z, y = noisy()
    expected = oracle.discriminability_by_sklearn(z, y)
    assert discriminability(z, y) == pytest.approx(expected, abs=1e-12)
    assert discriminability(z, y, weights=np.full(len(y), 3.0)) == pytest.approx(expected, abs=1e-12)


def test_weights_are_repeated_rows() -> None:
    z, y = noisy(120)
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = term_scores(z, y, weights=counts.astype(float))
    repeated = term_scores(np.repeat(z, counts, axis=0), np.repeat(y, counts))
    for name in ("weight", "slope", "sd_model", "sd_pattern", "pattern", "discriminability", "product"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-8, abs=1e-10), name


def test_the_score_equations_hold_in_the_sample() -> None:
    z, y = noisy()
    refit = multivariate_refit(z, y)
    p = expit(refit.linear)
    standard = (z - z.mean(0)) / z.std(0)
    assert standard.T @ (p - y) / len(y) == pytest.approx(np.zeros(z.shape[1]), abs=1e-10)
    # hence on the probability scale the pattern is the term's covariance with the label, blind to suppressors
    expected = standard.T @ (y - y.mean()) / len(y) / p.var()
    assert term_scores(z, y, scale="probability").pattern == pytest.approx(expected, abs=1e-9)


def test_the_pattern_is_that_of_the_covariance_matrix() -> None:
    z, y = noisy()
    found = term_scores(z, y)
    assert found.pattern == pytest.approx(oracle.pattern_by_covariance(z, found.weight), abs=1e-12)
    assert activation_pattern(z + 1e6, z @ found.weight) == pytest.approx(found.pattern, abs=1e-7)


@pytest.mark.parametrize("n", [5, 128, 400, 1031])
def test_numbers_do_not_depend_on_how_columns_lie_in_memory(n: int) -> None:
    """Columns together and rows together go through loops of their own; neither loses a row, or digits far from 0."""
    rng = np.random.default_rng(n)
    z, g = rng.normal(size=(n, 3)) + np.array([0, 1e5, -1e3]), rng.normal(size=n)
    weights = rng.integers(0, 3, n) + (np.arange(n) == 0)
    for some in (None, weights.astype(float)):
        shares = np.ones(n) / n if some is None else weights / weights.sum()
        standard = (z - shares @ z) / np.sqrt(shares @ (z - shares @ z) ** 2)
        centred = g - shares @ g
        expected = standard.T @ (shares * centred) / (shares @ centred**2)
        for layout in (np.ascontiguousarray, np.asfortranarray):
            assert activation_pattern(layout(z), g, weights=some) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_moments_of_classes_with_weights() -> None:
    """Rows of weight 0 count in nothing: not in a mean, not in the range that tells a separation."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(300, 2)) + 1e4, np.repeat([0.0, 1.0], 150)
    weights = rng.random(300)
    weights[::7] = 0.0
    z[::7] = 1e9
    found = univariate_slopes(z, y, weights=weights)
    shares = weights / weights.sum()
    assert found.mean == pytest.approx(shares @ z, rel=1e-14)
    assert found.std == pytest.approx(np.sqrt(shares @ (z - shares @ z) ** 2), rel=1e-10)
    z[:, 1] = np.where(weights > 0, y, 1 - y)
    with pytest.raises(BadInput, match="column 2: it separates"):
        univariate_slopes(z, y, weights=weights)


@given(st.lists(st.floats(0.01, 100).map(lambda x: x), min_size=6, max_size=6), st.integers(0, 63))
def test_multiplying_a_component_changes_no_number(sizes: list[float], signs: int) -> None:
    z, y = noisy(150)
    factors = np.array(sizes) * [1 if signs >> j & 1 else -1 for j in range(6)]
    plain, scaled = term_scores(z, y), term_scores(z * factors, y)
    for name in ("slope", "sd_model", "sd_pattern", "product", "discriminability"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name), rel=1e-6, abs=1e-8), name
    assert np.abs(scaled.pattern) == pytest.approx(np.abs(plain.pattern), rel=1e-6)
    assert scaled.verdict == plain.verdict


def test_a_numeric_target_has_least_squares_slopes() -> None:
    z, _ = noisy()
    y = 2 * z[:, 0] - z[:, 1] + np.random.default_rng(0).normal(size=len(z))
    found = univariate_slopes(z, y, link="identity")
    assert found.slope == pytest.approx([np.polyfit(column, y, 1)[0] for column in z.T], rel=1e-9)
    assert np.isnan(term_scores(z, y, link="identity").discriminability).all()


# Where nothing can be proved


def test_pairs_of_the_two_counterexamples() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    y = rng.integers(0, 2, n).astype(float)
    # x1 = y + n1 n2: the pair (n1, n2) only cancels noise
    first, second = rng.normal(size=(2, n))
    z = np.column_stack([y + first * second + 0.3 * rng.normal(size=n), first * second])
    assert term_scores(z, y).verdict[1] == "suppressor"
    # x1 = y / n, x2 = n: the product is the label, neither feature tells of it alone
    noise = rng.normal(size=n)
    X = np.column_stack([(2 * y - 1) / noise, noise])
    p_values = term_scores(np.clip(X, -50, 50), y).p_informative
    assert (p_values > 0.01).all()


def test_a_feature_that_differs_only_in_spread_has_slope_0() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], 5000)
    half = rng.normal(size=2500)
    z = np.concatenate([half, -half, 3 * half, -3 * half])[:, None]
    assert univariate_slopes(z, y).slope == pytest.approx([0.0], abs=1e-12)


# Terms and features


def test_quadratic_terms_are_in_order() -> None:
    assert quadratic_terms(2) == [(0,), (1,), (0, 0), (0, 1), (1, 1)]
    assert len(quadratic_terms(64)) == 2144
    assert quadratic_terms(2, squares=[False, True]) == [(0,), (1,), (0, 1), (1, 1)]
    assert quadratic_features(np.array([[2.0, 3.0]]), quadratic_terms(2)).tolist() == [[2, 3, 4, 6, 9]]


def test_aggregation_by_hand() -> None:
    terms = [(0,), (1,), (2,), (0, 1), (1, 2), (2, 2)]
    values = np.array([-1.0, 0.5, 0.1, 2.0, 0.7, 0.3])
    assert input_importance(values, terms, 3, rule="max") == pytest.approx(np.array([2, 2, 0.7]) / 4.7)
    assert input_importance(values, terms, 3, rule="stronger") == pytest.approx(np.array([2, 0.7, 0.3]) / 3.0)
    alone = np.array([1e-9, 1.0, 1.0, 1e-9, 1e-9, 1.0])  # 0 is informative; pair (1, 2) is, its ends are not
    assert input_importance(values, terms, 3, rule="auto", p_values=alone) == pytest.approx(
        np.array([2, 0.7, 0.7]) / 3.4
    )
    assert input_importance(np.zeros(6), terms, 3, rule="max").tolist() == [0, 0, 0]
    with pytest.raises(BadInput, match="rule auto: no p-values are given; give them, or choose max"):
        input_importance(values, terms, 3)


# Metrics


def grid(*places: tuple[int, int]) -> np.ndarray:
    made = np.zeros((8, 8))
    for place in places:
        made[place] = 1
    return made


TRUTH = make_xai_tris(n=40).truth


@pytest.mark.parametrize(
    ("importance", "by_emda", "by_fni"),
    [
        (TRUTH.astype(float), 1.0, 1.0),
        (np.ones((8, 8)), 0.6818, 0.6912),
        (grid((7, 0), (0, 7)), 0.1077, 0.1077),
        (grid((1, 1), (3, 1), (4, 5), (6, 5)), 0.9056, 1.0),
        (grid((0, 7)), 0.0, 0.0),
    ],
)
def test_metrics_worked_out(importance: np.ndarray, by_emda: float, by_fni: float) -> None:
    assert emda(importance, TRUTH) == pytest.approx(by_emda, abs=5e-5)
    assert fni_emda(importance, TRUTH) == pytest.approx(by_fni, abs=5e-5)
    assert ima(importance, TRUTH) == pytest.approx(importance[TRUTH].sum() / importance.sum())


@pytest.mark.parametrize(("background", "distractor"), [("correlated", False), ("white", True), ("correlated", True)])
@pytest.mark.parametrize("data", [0, 1])
def test_the_product_finds_more_of_the_truth_than_the_model_s_curve(
    background: str, distractor: bool, data: int
) -> None:
    """Where models use suppressors: beside a correlated background, and with distractors laid over the images."""
    made = make_xai_tris("linear", background, distractor=distractor, n=2000, seed=data)
    scores = term_scores(made.X, made.y, ridge=1.0)
    found = {
        name: fni_emda(np.abs(getattr(scores, name)).reshape(8, 8), made.truth) for name in ("product", "sd_model")
    }
    assert found["product"] > max(found["sd_model"] + 0.05, 0.95)


def test_no_false_negatives_are_forgiven_only() -> None:
    """Where both divisors are equal, as on these grids, FNI-EMDA is at least EMDA; and 1 for any mass inside."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        s = rng.random((8, 8)) ** 4
        assert fni_emda(s, TRUTH) >= emda(s, TRUTH) > 0
        assert fni_emda(s * TRUTH, TRUTH) == pytest.approx(1.0)


def test_the_old_divisor_gave_the_papers_473() -> None:
    moved = (1 - emda(grid((7, 0), (0, 7)), TRUTH)) * 5.8457
    assert 1 - moved / np.hypot(7, 7) == pytest.approx(0.4731, abs=1e-4)


@pytest.mark.parametrize("shape", [(8, 8), (5, 12)])
def test_transport_against_a_linear_program(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    for n_sinks in (1, 3, 9):
        truth = np.zeros(shape, dtype=bool)
        truth.ravel()[rng.choice(truth.size, n_sinks, replace=False)] = True
        s = rng.random(shape) ** 6
        cost = rng.random((truth.size, n_sinks)).round(1)  # many ties
        mass = (s / s.sum()).ravel() * 0.999
        room = np.full(n_sinks, 1 / n_sinks)
        total, plan = least_transport(mass, cost, room)
        assert total == pytest.approx(
            oracle.transport_by_linear_program(mass, cost, room), abs=1e-6
        )  # HiGHS' own tolerance
        assert plan.sum(axis=1) == pytest.approx(mass, abs=1e-12) and (plan.sum(axis=0) <= room + 1e-12).all()
        assert fni_emda(s * truth + 1e-300, truth) == pytest.approx(1.0)


def test_transport_of_more_sources_than_a_heap_holds_at_first() -> None:
    """The plan proves itself: it fits, and prices of the places exist under which every source takes its cheapest."""
    rng = np.random.default_rng(3)
    for n, k, slack in ((1500, 2, 1.0), (1500, 5, 0.999), (1500, 8, 0.6), (250, 5, 1.0)):
        mass, cost = rng.random(n) ** 4, rng.random((n, k))
        cost[:, 0] *= 1.0 if n > 1024 else 0.01  # then all begin at the first place and most move on
        mass *= slack / mass.sum()
        room = np.full(k, 1 / k)
        total, plan = least_transport(mass, cost, room)
        assert plan.sum(axis=1) == pytest.approx(mass, abs=1e-12) and (plan.sum(axis=0) <= room + 1e-12).all()
        served = [np.where(plan[:, [v]] > 1e-14, cost - cost[:, [v]], np.inf).min(axis=0) for v in range(k)]
        step = np.array(served)
        for through in range(k):  # Floyd and Warshall: no chain of moves saves anything, none to a place with room
            step = np.minimum(step, step[:, [through]] + step[[through]])
        assert (step.diagonal() >= -1e-9).all()
        free, used = plan.sum(axis=0) < room - 1e-9, plan.sum(axis=0) > 1e-9
        assert (step[np.ix_(used, free)] >= -1e-9).all()
        assert total == pytest.approx((plan * cost).sum(), abs=1e-12)


# Data


def test_tris_are_as_described() -> None:
    made = make_xai_tris("xor", "white", n=4000, seed=1)
    assert made.X.shape == (4000, 64) and np.abs(made.X).max() == 1.0
    assert np.bincount(made.y).tolist() == [2000, 2000]
    assert np.bincount(made.split).tolist() == [3600, 200, 200]
    assert np.argwhere(made.truth).tolist() == [[1, 1], [2, 1], [2, 2], [3, 1], [4, 5], [5, 5], [6, 5], [6, 6]]
    t, bar = made.X[:, [9, 17, 18, 25]].sum(axis=1), made.X[:, [37, 45, 53, 54]].sum(axis=1)
    assert np.mean(np.sign(t * bar) * (1 - 2 * made.y)) > 0.9  # equal signs are class 0
    outside = ~made.truth.ravel()
    assert abs(np.corrcoef(made.X[:, outside][:, 0], made.y)[0, 1]) < 0.06
    assert np.array_equal(made.X, make_xai_tris("xor", "white", n=4000, seed=1).X)


@pytest.mark.parametrize("scenario", ["linear", "multiplicative", "xor"])
@pytest.mark.parametrize("distractor", [False, True])
def test_correlated_background_is_smooth(scenario: str, distractor: bool) -> None:
    white, smooth = (make_xai_tris(scenario, b, distractor=distractor, n=400).X for b in ("white", "correlated"))
    neighbours = [abs(np.corrcoef(X[:, 0], X[:, 1])[0, 1]) for X in (white, smooth)]
    assert neighbours[0] < 0.2 and neighbours[1] > 0.8
