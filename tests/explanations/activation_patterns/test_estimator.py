"""The estimators keep scikit-learn's contract and say the same as the solver."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from answerable.errors import BadInput, UnknownName
from answerable.explanations.activation_patterns import NAMEnsemble, PatternGAM, PatternQLR, term_scores
from answerable.explanations.activation_patterns.curves import SplineGAM
from tests.oracles.activation_patterns import two_gaussians

ESTIMATORS = {
    "PatternGAM": PatternGAM(ridge=1.0),  # without a ridge separated data are refused, and many of the checks' data are
    "PatternQLR": PatternQLR(ridge=1.0),
    "NAMEnsemble": NAMEnsemble(1, hidden=(8,), first=8, epochs=30, learning_rate=0.1, batch=64),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_s_own_checks(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = check_estimator(ESTIMATORS[name], on_fail=None)
    failed = {row["check_name"] for row in told if row["status"] == "failed"}
    # float32 products of other batch sizes are summed in another order: batches agree to 1e-6, not to 1e-7
    assert failed <= ({"check_methods_subset_invariance"} if name == "NAMEnsemble" else set())
    # The array API is not offered: kernels are compiled for numpy.
    assert {row["check_name"] for row in told if row["status"] == "skipped"} <= {"check_array_api_input"}


def test_a_network_and_splines_show_the_suppressor() -> None:
    X, y = two_gaussians(4000, 0)
    for model in (NAMEnsemble(4, epochs=25).fit(X[:2000], y[:2000]), SplineGAM().fit(X[:2000], y[:2000])):
        found = PatternGAM(model).fit(X[2000:], y[2000:])
        assert found.scores_.verdict == ["informative and used", "suppressor"], type(model).__name__
        assert found.auroc_.value > 0.93


def test_learners_do_not_touch_each_other() -> None:
    X, y = two_gaussians(300, 0)
    small = {"hidden": (8,), "first": 8, "epochs": 3, "batch": 64}
    ensemble = NAMEnsemble(3, **small).fit(X, y)
    assert len({weights.tobytes() for weights in ensemble.weights_}) == 3
    values = ensemble.components(X)
    assert ensemble.decision_function(X) == pytest.approx(values.sum(axis=1) + ensemble.intercept_)
    # A learner is the same in any company and on any number of threads.
    assert np.array_equal(NAMEnsemble(2, **small).fit(X, y).weights_, ensemble.weights_[:2])
    assert np.array_equal(NAMEnsemble(3, threads=2, **small).fit(X, y).components(X), values)


def test_steep_units_follow_a_narrow_step() -> None:
    """What ExU units are for: the target jumps within a fiftieth of the feature's range."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2))
    inside = (X[:, 0] > 0.50) & (X[:, 0] < 0.55)
    y = (rng.random(4000) < np.where(inside, 0.95, 0.05)).astype(int)
    free = {"output_penalty": 0.0, "dropout": 0.0, "feature_dropout": 0.0}
    steep = NAMEnsemble(2, activation="exu", first=256, hidden=(), epochs=30, batch=512, **free).fit(X, y)
    centre = np.array([[0.525, 0.5], [0.45, 0.5], [0.6, 0.5]])
    curve = steep.components(centre)[:, 0]
    assert curve[0] - curve[1:].max() > 1  # log-odds; the truth is 5.9
    assert np.ptp(steep.components(X)[:, 1]) < np.ptp(steep.components(X)[:, 0])


def test_steep_units_of_one_feature_do_not_see_another() -> None:
    X, y = two_gaussians(300, 0)
    ensemble = NAMEnsemble(2, activation="exu", pairs=[(0, 1)], epochs=2).fit(X, y)
    moved = X.copy()
    moved[:, 1] += 0.5
    change = np.abs(ensemble.components(moved) - ensemble.components(X)).max(axis=0)
    assert change[0] == 0 and change[1] > 0 and change[2] > 0
    with pytest.raises(BadInput, match="activation: it is 'tanh'; choose relu or exu"):
        NAMEnsemble(activation="tanh").fit(X, y)


def test_a_network_of_a_pair_solves_exclusive_or() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(2000, 2)) + 0.1 * rng.normal(size=(2000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    ensemble = NAMEnsemble(2, pairs=[(0, 1)], epochs=30, dropout=0, feature_dropout=0).fit(X, y)
    assert ensemble.terms_ == [(0,), (1,), (0, 1)]
    assert np.mean(ensemble.predict(X) == y) > 0.98
    found = PatternGAM(ensemble, ridge=1.0).fit(X, y)
    assert found.importances_["term"].to_list() == ["x0", "x1", "x0 × x1"]
    assert found.input_importance_ == pytest.approx([0.5, 0.5], abs=0.02)


def test_bootstrap_and_influence_agree() -> None:
    X, y = two_gaussians(2500, 1)
    by_influence, by_bootstrap = (PatternGAM(n_boot=n).fit(X, y).importances_ for n in (0, 300))
    for name in ("slope", "sd_model", "sd_pattern", "product"):
        widths = [frame[f"{name}_high"][0] - frame[f"{name}_low"][0] for frame in (by_influence, by_bootstrap)]
        assert widths[0] == pytest.approx(widths[1], rel=0.25), name
    assert by_bootstrap["verdict"].to_list() == ["informative and used", "suppressor"]


def test_curves_and_transform() -> None:
    X, y = two_gaussians(2500, 1)
    found = PatternGAM(n_boot=0).fit(X, y)
    scores = term_scores(X, y)
    assert found.transform(X)[:, 0] == pytest.approx(X[:, 0] * scores.weight[0] * scores.slope[0] + scores.intercept[0])
    curve = found.shape("x0", X)
    assert curve["model"].std() == pytest.approx(scores.sd_model[0], rel=1e-3)
    assert curve["pattern"].std() == pytest.approx(scores.sd_pattern[0], rel=1e-3)


def test_a_curve_is_kept_thinned_and_drawn() -> None:
    X, y = two_gaussians(2500, 1)
    X = np.column_stack([X, np.arange(2500) % 3])
    found = PatternGAM().fit(X, y)
    kept, every = found.shape("x0"), found.shape("x0", X)
    assert kept.height <= 60 < every.height == 2500 and found.shape(2)["x"].to_list() == [0, 1, 2]
    assert set(kept.drop("rows").rows()) < set(every.drop("rows").rows())
    assert kept["rows"].sum() == pytest.approx(1) and found.shape(2)["rows"].to_list() == pytest.approx(
        [834 / 2500, 1 / 3, 1 / 3], abs=1e-3
    )
    counts = np.histogram(X[:, 0], bins=60)[0]
    assert kept["rows"].to_numpy() == pytest.approx(counts[counts > 0] / 2500)
    for picture, words in (
        ("curves", "narrower than|wider than"),
        ("deviations", "moves the model"),
        ("slopes", "1 of 3 features lies"),
    ):
        drawn = found.plot(picture).to_dict()
        assert re.search(words, " ".join(drawn["title"]["text"])) and len(drawn["description"].split()) > 4
    with pytest.raises(UnknownName, match="did you mean 'curves'"):
        found.plot("curve")


def test_a_quadratic_model_finds_the_pair() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = (rng.random(4000) < 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))).astype(int)
    found = PatternQLR().fit(X, y)
    top = found.importances_.sort("product", descending=True).row(0, named=True)
    assert (top["term"], top["kind"], top["verdict"]) == ("x0 × x1", "pair", "informative and used")
    assert found.input_importance_[2] < 0.01
    assert np.mean(found.predict(X) == y) > 0.7


def test_a_quadratic_model_that_was_given_is_judged_as_it_is() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    y = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int)
    own = PatternQLR(standardize=False).fit(X, y)
    same = PatternQLR(standardize=False, coefficients=own.scores_.weight).fit(X, y)
    for name in ("sd_model", "sd_pattern", "product", "slope", "pattern"):
        assert getattr(same.scores_, name) == pytest.approx(getattr(own.scores_, name), rel=1e-9, abs=1e-12), name
    given = PatternQLR(standardize=False, coefficients=[1.0, -1.0, 0.0, 0.0, 0.0], n_boot=100).fit(X, y)
    assert given.scores_.weight.tolist() == [1.0, -1.0, 0.0, 0.0, 0.0]
    assert given.scores_.verdict == ["informative and used", "suppressor", "unused", "unused", "unused"]
    assert given.intervals_["sd_model"][1] == pytest.approx(
        [1.0, 1.0], abs=0.05
    )  # the weight is known, the spread is not
    with pytest.raises(BadInput, match="give one for each of 5 terms"):
        PatternQLR(coefficients=[1.0, 2.0]).fit(X, y)
    with pytest.raises(BadInput, match="coefficients, term 2: it is not finite"):
        PatternQLR(coefficients=[1.0, np.nan, 0, 0, 0]).fit(X, y)
