"""Folds, out-of-fold predictions and influence intervals against plain loops, scikit-learn, scipy and statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from answerable.errors import BadInput
from answerable.statistics import (
    cross_fit,
    fold_numbers,
    influence_covariance,
    influence_interval,
    mean_interval,
    median_of_splits,
    simultaneous_intervals,
)

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 0.0] + RNG.normal(size=60)
ARM = (RNG.random(60) < 0.5).astype(float)


@given(st.integers(2, 8), st.lists(st.integers(0, 5), min_size=8, max_size=60), st.integers(0, 99))
def test_folds_are_even(folds, labels, seed):
    plain = fold_numbers(len(labels), folds, seed=seed)
    assert np.ptp(np.bincount(plain, minlength=folds)) <= 1
    spread = fold_numbers(len(labels), folds, seed=seed, strata=labels)
    for label in set(labels):
        assert np.ptp(np.bincount(spread[np.array(labels) == label], minlength=folds)) <= 1
    if len(set(labels)) >= folds:
        together = fold_numbers(len(labels), folds, seed=seed, groups=labels)
        assert all(len(set(together[np.array(labels) == label])) == 1 for label in set(labels))
        assert set(together) == set(range(folds))
    assert (plain == fold_numbers(len(labels), folds, seed=seed)).all()


def test_predictions_are_those_of_a_plain_loop():
    found = cross_fit({"line": LinearRegression()}, X, Y, folds=4, seed=5)
    for fold in range(4):
        train, test = found.folds != fold, found.folds == fold
        assert found.predictions["line"][test] == pytest.approx(
            LinearRegression().fit(X[train], Y[train]).predict(X[test])
        )


def test_neither_learners_nor_workers_change_each_other():
    learners = {
        "forest": make_pipeline(StandardScaler(), RandomForestRegressor(5, max_depth=3)),
        "arm": LogisticRegression(),
        "line": LinearRegression(),
    }
    targets = {"forest": Y, "arm": ARM, "line": Y}
    found = cross_fit(learners, X, targets, seed=1, strata=ARM)
    again = cross_fit(dict(reversed(learners.items())), X, targets, seed=1, strata=ARM, workers=2)
    assert all((found.predictions[name] == again.predictions[name]).all() for name in learners)
    other = cross_fit(learners, X, targets, seed=2, strata=ARM)
    assert (found.predictions["forest"] != other.predictions["forest"]).any()
    assert 0 < found.predictions["arm"].min() < found.predictions["arm"].max() < 1
    assert not hasattr(learners["line"], "coef_")


def test_no_row_is_predicted_from_itself():
    memory = {"tree": DecisionTreeRegressor()}
    noise = RNG.normal(size=60)
    assert (cross_fit(memory, X, noise, seed=0).predictions["tree"] != noise).all()


def test_a_learner_is_fitted_on_its_rows_only():
    treated = ARM == 1
    found = cross_fit({"mu": LinearRegression()}, X, np.where(treated, Y, 1e6), seed=0, train_on={"mu": treated})
    assert np.abs(found.predictions["mu"]).max() < 100


def test_influence_intervals_as_others_have_them():
    assert influence_interval(Y)[:4] == pytest.approx(mean_interval(Y)[:4])
    clusters = np.repeat(np.arange(20), 3)
    found = influence_interval(Y, clusters=clusters)
    model = sm.OLS(Y, np.ones(60))
    # statsmodels' correction is G / (G - 1) x (n - 1) / (n - k), and k = 1 here
    theirs = model.fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True).conf_int()[0]
    assert found[1:3] == pytest.approx(tuple(theirs))
    assert "20 clusters" in found.method
    psi = np.stack([Y, X[:, 0], ARM], axis=1)
    assert influence_covariance(psi) == pytest.approx(np.cov(psi, rowvar=False) / 60)


def test_simultaneous_intervals_contain_the_single_ones():
    psi = RNG.normal(size=(40, 5))
    single = [influence_interval(column) for column in psi.T]
    at_once = simultaneous_intervals(psi, seed=0, resamples=4000)
    # Bonferroni bounds them from above: t_39 at 1 - 0.05 / 10 is 2.708 against 2.023
    for one, all_of in zip(single, at_once, strict=True):
        ratio = (all_of.high - all_of.low) / (one.high - one.low)
        assert 1.2 < ratio < 2.708 / 2.023 + 0.04
    alone = simultaneous_intervals(psi[:, :1], seed=0, resamples=20_000)[0]
    assert alone[1:3] == pytest.approx(single[0][1:3], abs=0.02)


def test_splits_add_their_scatter():
    one = influence_interval(Y)
    assert median_of_splits([Y, Y, Y])[:3] == pytest.approx(one[:3])
    spread = median_of_splits([Y - 1, Y, Y + 1])
    se = (one.high - one.low) / 2
    critical = se / np.sqrt(Y.var(ddof=1) / 60)
    expected = critical * np.sqrt((se / critical) ** 2 + 1)  # the median of 1, 0, 1 added
    assert spread.value == pytest.approx(one.value)
    assert spread.high - spread.value == pytest.approx(expected)


def test_equal_scores_are_not_certainty():
    assert influence_interval([0.3] * 6)[1:3] == (-np.inf, np.inf)
    assert influence_interval([0.5] * 6, bounds=(0, 1)).low == pytest.approx(0.5 - 0.5 * (1 - 0.025 ** (1 / 6)))


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: influence_interval([1, np.nan]), "psi, row 2: the value is nan"),
        (lambda: influence_interval([1, 2], clusters=[0, 0]), "clusters: there is 1 cluster; give at least 2"),
        (lambda: influence_interval([1, 2], clusters=[0]), "clusters: the shape is (1,)"),
        (lambda: influence_interval([1, 2], bounds=(0, 1)), "the estimate is 1.5"),
        (lambda: simultaneous_intervals([[1, 2], [1, 3]], seed=0), "psi, column 1: all scores are equal"),
        (lambda: median_of_splits([]), "there are no splits"),
        (lambda: median_of_splits([[1, 2], [1, 2, 3]]), "different numbers of rows"),
        (lambda: fold_numbers(3, 4, seed=0), "there are 3 rows for 4 folds; take fewer folds"),
        (lambda: fold_numbers(4, 3, seed=0, groups=[0, 0, 1, 1]), "there are 2 groups for 3 folds"),
        (lambda: fold_numbers(4, 2, seed=0, groups=[0, 0, 1, 1], strata=[0, 0, 1, 1]), "there are groups and strata"),
        (lambda: cross_fit({"a": LinearRegression()}, [[1.0], [np.nan]], [1, 2], seed=0), "X, row 2, column 1"),
        (
            lambda: cross_fit({"a": LinearRegression()}, X, {"b": Y}, seed=0),
            "y: 'a' is not both a learner and a target",
        ),
        (lambda: cross_fit({"a": LinearRegression()}, X, Y[:5], seed=0), "y, learner a: there are 5 targets; give 60"),
        (
            lambda: cross_fit({"a": LinearRegression()}, X, Y, seed=0, train_on={"b": ARM > 0}),
            "train_on: 'b' is no learner",
        ),
        (lambda: cross_fit({"a": LinearRegression()}, X, Y, seed=0, train_on={"a": ARM}), "train_on, a: it is float64"),
        (
            lambda: cross_fit({"a": LinearRegression()}, X, Y, seed=0, train_on={"a": np.arange(60) < 1}),
            "rows to fit on; take fewer folds",
        ),
        (lambda: cross_fit({"a": LogisticRegression()}, X, 0 * Y, seed=0), "learner a, fold 1: labels to fit on are 0"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
