"""The engine against sums over all cells, the bias identity, other people's learners and programmes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from answerable.errors import BadInput
from answerable.explanations.path_effects import (
    BoostedTrees,
    PathSpecificEffects,
    influence_scores,
    stretch_weights,
    telescope,
)
from answerable.explanations.path_effects.boosting import binned, boosted
from answerable.explanations.path_effects.linear import regressed, scaled
from answerable.explanations.path_effects.overlap import rows_behind
from answerable.explanations.path_effects.replicas import REPLICAS, binary_law, make_study
from answerable.explanations.path_effects.sensitivity import sharp_ends
from answerable.explanations.path_effects.solver import stretches
from tests.oracles import path_effects as oracle

CELLS = oracle.binary_cells()
SHARES = CELLS.p * len(CELLS.p)
EXACT = oracle.propensities(CELLS)


def exact_regressions(levels: tuple[int, ...]) -> list[np.ndarray]:
    """The true nested regressions of each stretch, from the outcome inwards."""
    target, found = CELLS.y.astype(float), []
    for run in reversed(stretches(levels)):
        target = oracle.regression(CELLS, target, run.level, run.known)
        found.insert(0, target)
    return found


@pytest.mark.parametrize("levels", oracle.LEVELS)
@pytest.mark.parametrize("normalise", [True, False])
def test_exact_nuisances_give_the_exact_mean(levels: tuple[int, int, int], normalise: bool) -> None:
    found = influence_scores(
        levels, CELLS.x, CELLS.y.astype(float), EXACT, exact_regressions(levels), normalise=normalise, rows=SHARES
    )
    truth = oracle.theta(CELLS, levels)
    assert (found.psi * SHARES).mean() == pytest.approx(truth, abs=1e-12)
    assert found.plug_in == pytest.approx(truth, abs=1e-12)
    assert found.weighted == pytest.approx(truth, abs=1e-12)
    assert (found.weights * SHARES).mean(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_the_binary_model_has_the_published_effects() -> None:
    law = binary_law()
    steps = telescope(2)
    for levels in oracle.LEVELS:
        assert law.theta(levels) == pytest.approx(oracle.theta(CELLS, levels), abs=1e-12)
    found = {
        "total": law.theta(steps[-1]) - law.theta(steps[0]),
        "direct": law.theta(steps[1]) - law.theta(steps[0]),
        "through W": law.theta(steps[2]) - law.theta(steps[1]),
        "through V": law.theta(steps[3]) - law.theta(steps[2]),
        "indirect": law.theta(steps[3]) - law.theta(steps[1]),
    }
    assert found == pytest.approx(oracle.BINARY_EFFECTS, abs=1e-10)
    assert law.x == pytest.approx(oracle.BINARY_PROPENSITIES, abs=5e-6)
    raw = oracle.share(CELLS, CELLS.y == 1, CELLS.x == 1) - oracle.share(CELLS, CELLS.y == 1, CELLS.x == 0)
    assert raw == pytest.approx(oracle.BINARY_RAW, abs=1e-10)
    # The table of the paper prints an estimate of the indirect effect, -0.033, where its other rows print errors.
    assert found["indirect"] == pytest.approx(-0.033, abs=5e-4)
    assert found["indirect"] - found["through V"] == pytest.approx(0.092, abs=5e-4)


def test_ignoring_the_first_mediator_gives_another_effect() -> None:
    only_v = {
        c: sum(
            CELLS.p[CELLS.z == z].sum()
            * oracle.share(CELLS, CELLS.v == v, (CELLS.z == z) & (CELLS.x == c[0]))
            * oracle.share(CELLS, CELLS.y == 1, (CELLS.z == z) & (CELLS.v == v) & (CELLS.x == c[1]))
            for z, v in itertools.product((0, 1), repeat=2)
        )
        for c in ((0, 1), (1, 1))
    }
    assert only_v[1, 1] - only_v[0, 1] == pytest.approx(oracle.BINARY_IGNORING_W, abs=1e-10)


def wave(known: int, start: float) -> np.ndarray:
    """Some function of Z and the first mediators."""
    return np.sin(start + 7 * CELLS.z + 3 * CELLS.w * (known > 0) + 5 * CELLS.v * (known > 1))


SUBSETS = list(itertools.product((False, True), repeat=3))


@pytest.mark.parametrize("wrong_propensities", SUBSETS)
@pytest.mark.parametrize("levels", [(1, 0, 1), (0, 0, 1), (1, 1, 0), (0, 1, 0)])
def test_bias_is_what_the_identity_says(levels: tuple[int, int, int], wrong_propensities: tuple[bool, ...]) -> None:
    used = [
        np.clip(e + 0.15 * wave(known, 1.0), 0.02, 0.98) if wrong else e
        for known, (e, wrong) in enumerate(zip(EXACT, wrong_propensities, strict=True))
    ]
    runs, y = stretches(levels), CELLS.y.astype(float)
    true_weights = stretch_weights(levels, CELLS.x, EXACT)
    weights = stretch_weights(levels, CELLS.x, used)
    truth = oracle.theta(CELLS, levels)
    for wrong in itertools.product((False, True), repeat=len(runs)):
        regressions: list[np.ndarray] = []
        ideal: list[np.ndarray] = []  # true regressions of the regressions that are used
        target = y
        for run, is_wrong in zip(reversed(runs), reversed(wrong), strict=True):
            exact = oracle.regression(CELLS, target, run.level, run.known)
            off = exact + 0.2 * wave(run.known, 2.0)
            ideal.insert(0, exact)
            regressions.insert(0, off if is_wrong else exact)
            target = regressions[0]
        found = influence_scores(levels, CELLS.x, y, used, regressions, normalise=False, rows=SHARES)
        bias = float((found.psi * SHARES).mean()) - truth
        said = sum(
            float((CELLS.p * (w - w0) * (m0 - m)).sum())
            for w, w0, m0, m in zip(weights, true_weights, ideal, regressions, strict=True)
        )
        assert bias == pytest.approx(said, abs=1e-12)
        if not any(wrong) or not any(wrong_propensities):
            assert bias == pytest.approx(0, abs=1e-12)


def test_the_weights_are_the_papers() -> None:
    p_z, p_wz, p_wvz = EXACT
    one, none = CELLS.x == 1, CELLS.x == 0
    innermost, middle, outer = stretch_weights((1, 0, 1), CELLS.x, EXACT)
    assert outer == pytest.approx(one * (1 - p_wvz) * p_wz / (p_wvz * (1 - p_wz) * p_z), rel=1e-12)
    assert middle == pytest.approx(none * p_wz / ((1 - p_wz) * p_z), rel=1e-12)
    assert innermost == pytest.approx(one / p_z, rel=1e-12)
    inner, outer = stretch_weights((0, 0, 1), CELLS.x, EXACT)
    assert outer == pytest.approx(one * (1 - p_wvz) / (p_wvz * (1 - p_z)), rel=1e-12)
    assert inner == pytest.approx(none / (1 - p_z), rel=1e-12)


def full_study(seed: int, n: int = 400) -> pl.DataFrame:
    """A study without an empty cell."""
    rng = np.random.default_rng(seed)
    z, x, w, v = rng.integers(0, 2, (4, n))
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    z, x, w, v = (np.concatenate([a, b]) for a, b in zip((z, x, w, v), every.T, strict=True))
    y = rng.random(len(x)) * (1 + x + w * v) + z
    return pl.DataFrame({"z": z, "x": x, "w": w, "v": v, "y": y})


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_saturated_doubly_robust_is_plug_in_is_weighting(seed: int) -> None:
    found = PathSpecificEffects({"W": ["w"], "V": ["v"]}, learner="cells").fit(
        full_study(seed), treatment="x", outcome="y", covariates=["z"]
    )
    table = found.estimators().drop("effect").to_numpy()
    assert table == pytest.approx(np.repeat(table[:, :1], 4, axis=1), abs=1e-12)
    assert [row.mean for row in found.weights] == pytest.approx([1.0] * len(found.weights), abs=1e-12)
    value = {one.name: one.interval.value for one in found.effects}
    paths = value["direct"] + value["through W"] + value["through V"]
    assert value["total"] == pytest.approx(paths, abs=1e-12)
    assert value["indirect"] == pytest.approx(value["through W"] + value["through V"], abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 3))
def test_ends_under_a_hidden_cause_are_the_programmes(seed: int, n_w: int, n_v: int) -> None:
    rng = np.random.default_rng(seed)
    p0, p1 = rng.dirichlet(np.full(n_w, 0.7), 2)
    v_given, mean = rng.dirichlet(np.ones(n_v), n_w), rng.random((n_w, n_v))
    assert tuple(sharp_ends(p0, p1, v_given, mean)) == pytest.approx(
        oracle.hidden_cause_ends(p0, p1, v_given, mean), abs=1e-8
    )


def test_the_randomised_study_loses_its_sign_to_a_hidden_cause() -> None:
    mean = np.array([[0.2, 0.6], [0.4, 0.9]])
    found = sharp_ends(np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([[0.8, 0.2], [0.6, 0.4]]), mean)
    assert tuple(found) == pytest.approx((0.35, 0.825), abs=1e-12)


def columns_of(n: int, seed: int, holes: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, 4)), 1)
    if holes:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_boosted_trees_are_scikit_learns(holes: bool, depth: int) -> None:
    X = columns_of(1500, depth, holes)
    rng = np.random.default_rng(depth)
    raw = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) + rng.standard_normal(len(X))
    settings: dict[str, Any] = {
        "max_iter": 20, "max_depth": depth, "learning_rate": 0.2, "l2_regularization": 5.0, "min_samples_leaf": 20,
        "early_stopping": False, "max_leaf_nodes": None,
    }  # fmt: skip
    ours = BoostedTrees(trees=20, depth=depth, learning_rate=0.2)
    everything = np.arange(len(X))
    theirs = HistGradientBoostingRegressor(**settings).fit(X, raw).predict(X)
    found = boosted(binned(X), 4, everything, raw, everything, ours, logistic=False)
    assert found == pytest.approx(theirs, abs=1e-5)
    label = (raw > 0).astype(int)
    theirs = HistGradientBoostingClassifier(**settings).fit(X, label).predict_proba(X)[:, 1]
    found = boosted(binned(X), 4, everything, label.astype(float), everything, ours, logistic=True)
    assert found == pytest.approx(theirs, abs=1e-5)


def test_linear_learners_are_scikit_learns() -> None:
    X = columns_of(600, 5)
    rng = np.random.default_rng(6)
    raw = X @ [1.0, -0.5, 0.25, 0.0] + rng.standard_normal(len(X))
    train, wanted = np.arange(400), np.arange(400, 600)
    design = scaled(X)
    found = regressed(design, 3, train, raw[train], wanted, l2=0.0, logistic=False)
    assert found == pytest.approx(LinearRegression().fit(X[train, :3], raw[train]).predict(X[wanted, :3]), abs=1e-9)
    label = (raw > 0).astype(float)
    found = regressed(design, 3, train, label[train], wanted, l2=0.0, logistic=True)
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[train, :3], label[train])
    assert found == pytest.approx(peer.predict_proba(X[wanted, :3])[:, 1], abs=1e-5)


def test_a_column_that_others_determine_changes_no_prediction() -> None:
    X = columns_of(300, 7)
    both = np.column_stack([X, X[:, 0] - X[:, 1]])
    target, rows = X[:, 0] ** 2, np.arange(300)
    for logistic, y in ((False, target), (True, (target > 0.5).astype(float))):
        alone = regressed(scaled(X), 4, rows, y, rows, l2=0.0, logistic=logistic)
        assert regressed(scaled(both), 5, rows, y, rows, l2=0.0, logistic=logistic) == pytest.approx(alone, abs=1e-7)


def test_rows_behind_a_mean() -> None:
    assert rows_behind(np.tile([-1.0, 1.0], 50)) == pytest.approx(100)
    assert rows_behind(np.array([0.0] * 99 + [1.0])) < 1.1
    assert rows_behind(np.ones(7)) == 7
    assert rows_behind(np.random.default_rng(0).standard_normal(30_000)) == pytest.approx(10_000, rel=0.1)


@pytest.mark.parametrize("name", REPLICAS)
def test_a_large_study_comes_near_its_truth(name: Any) -> None:
    study = make_study(name, 6000, np.random.default_rng(1))
    found = PathSpecificEffects(study.mediators).fit(
        study.table, treatment="x", outcome="y", covariates=study.covariates
    )
    steps = telescope(2)
    truth = study.truth[steps[-1]] - study.truth[steps[0]]
    assert found["total"].interval.value == pytest.approx(truth, abs=5 * found["total"].se)
    # The paper's models leave rare combinations, which the answer says against itself.
    assert bool(found.flaws) is (name in ("binary", "continuous"))


@pytest.mark.parametrize("levels", [(1,), (), (2, 0), (0, 1, -1)])
def test_levels_are_zero_or_one(levels: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match=r"levels: levels are .*give 0 or 1"):
        stretches(levels)


STUDIES = {
    "framing": ("treat", "emo", "p_harm", ["age", "educ", "gender", "income"]),
    "smokers": ("qsmk", "wt82_71", "sbp", ["sex", "age", "race", "wt71"]),
}


@pytest.mark.parametrize("name", STUDIES)
def test_linear_models_give_what_statsmodels_mediation_gives(name: str) -> None:
    treatment, mediator, outcome, covariates = STUDIES[name]
    smokers = Path(__file__).parents[3] / "examples" / "nhefs.csv"
    frame = oracle.framing() if name == "framing" else pl.read_csv(smokers, null_values=["", "NA"])
    frame = frame.drop_nulls([mediator, outcome, *covariates])
    found = PathSpecificEffects({"M": [mediator]}, learner="linear", n_folds=1).fit(
        frame, treatment=treatment, outcome=outcome, covariates=covariates
    )
    mean = {levels: one.plug_in for levels, one in found.scores()[0].items()}
    ours = {"direct": mean[0, 1] - mean[0, 0], "mediated": mean[1, 1] - mean[0, 1]}
    assert ours == pytest.approx(oracle.linear_mediation(frame, treatment, mediator, outcome, covariates), abs=1e-9)
    peer = oracle.simulated_mediation(frame, treatment, mediator, outcome, covariates, draws=20)
    for effect, simulated in peer.items():
        assert simulated.value == pytest.approx(ours[effect], abs=4 * simulated.error)
    # The doubly robust estimate may leave the lines, but not by more than both are uncertain.
    for effect, label in (("direct", "direct"), ("mediated", "through M")):
        assert found[label].interval.value == pytest.approx(ours[effect], abs=3 * found[label].se)
