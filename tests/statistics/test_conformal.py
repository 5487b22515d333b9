"""Conformal thresholds and p-values by counting, and their guarantee by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.statistics import (
    conformal_p_values,
    conformal_p_values_by_group,
    conformal_threshold,
    conformal_thresholds_by_group,
    false_alarm_interval,
    pooled_groups,
)


@pytest.mark.parametrize(
    "n, alpha, rank", [(99, 0.01, 99), (99, 0.05, 95), (19, 0.05, 19), (20, 0.05, 20), (9, 0.1, 9)]
)
def test_the_rank_by_hand(n, alpha, rank):
    assert conformal_threshold(np.random.default_rng(0).permutation(n) + 1, alpha) == rank


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_p_values_by_counting(calibration, scores):
    expected = [(1 + sum(c >= s for c in calibration)) / (len(calibration) + 1) for s in scores]
    assert conformal_p_values(calibration, scores).tolist() == expected


@given(st.lists(st.floats(-9, 9), min_size=19, max_size=60), st.floats(-9, 9), st.sampled_from([0.05, 0.1, 0.3]))
def test_threshold_and_p_value_flag_the_same(calibration, score, alpha):
    flagged = score > conformal_threshold(calibration, alpha)
    assert flagged == (conformal_p_values(calibration, [score])[0] <= alpha + 1e-9)


def test_false_alarms_stay_below_alpha(seed):
    rng = np.random.default_rng(seed)
    repeats, n, alpha = 2000, 99, 0.05
    rates = []
    for _ in range(repeats):
        threshold = conformal_threshold(rng.random(n), alpha)
        rates.append(1 - threshold)  # the rate itself, since scores are uniform
    # Beta(5, 95): mean 0.05, sd 0.0217
    assert np.mean(rates) == pytest.approx(alpha, abs=4 * 0.0217 / np.sqrt(repeats))
    interval = false_alarm_interval(n, alpha)
    assert interval.value == pytest.approx(alpha)
    within = np.mean((rates >= np.array(interval.low)) & (rates <= np.array(interval.high)))
    assert within == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / repeats))


def test_every_group_keeps_alpha_where_one_threshold_does_not(seed):
    rng = np.random.default_rng(seed)
    repeats, alpha = 300, 0.1
    by_group, global_ = np.zeros((repeats, 2)), np.zeros((repeats, 2))
    groups, asked = np.repeat(["long", "short"], [300, 60]), np.repeat(["long", "short"], 50)
    for k in range(repeats):
        known, new = rng.normal(size=360) + (groups == "short"), rng.normal(size=100) + (asked == "short")
        flags = conformal_p_values_by_group(known, groups, new, asked, least=50) <= alpha
        by_group[k] = flags[:50].mean(), flags[50:].mean()
        flags = conformal_p_values(known, new) <= alpha
        global_[k] = flags[:50].mean(), flags[50:].mean()
    error = by_group.std(axis=0) / np.sqrt(repeats)
    assert (by_group.mean(axis=0) < alpha + 4 * error).all()
    assert global_.mean(axis=0)[1] > 0.2


def test_small_groups_are_pooled():
    groups = np.repeat(["a", "b", "c", "d"], [50, 3, 4, 20])
    assert pooled_groups(groups, 10) == {"a": ("a",), "b": ("b", "c", "d"), "c": ("b", "c", "d"), "d": ("b", "c", "d")}
    assert pooled_groups(groups, 7) == {"a": ("a",), "b": ("b", "c"), "c": ("b", "c"), "d": ("d",)}
    assert pooled_groups(groups, 7, ordered=True) == {"a": ("a",), "b": ("b", "c"), "c": ("b", "c"), "d": ("d",)}
    assert pooled_groups([0, 0, 1, 2], 2, ordered=True) == {0: (0,), 1: (1, 2), 2: (1, 2)}
    assert pooled_groups([0, 0, 1], 2, ordered=True) == {0: (0, 1), 1: (0, 1)}
    assert pooled_groups([0, 1], 99) == {0: (0, 1), 1: (0, 1)}
    assert pooled_groups(["x"] * 5, 5) == {"x": ("x",)}


def test_thresholds_by_group_are_those_of_their_pool():
    scores, groups = np.arange(60.0), np.repeat([1, 2, 3], [40, 10, 10])
    found = conformal_thresholds_by_group(scores, groups, 0.1, least=20)
    assert found == {
        1: conformal_threshold(scores[:40], 0.1),
        2: (pool := conformal_threshold(scores[40:], 0.1)),
        3: pool,
    }
    assert conformal_p_values_by_group(scores, groups, [99.0, 99.0], [1, 7], least=20).tolist() == [1 / 41, 1]


@pytest.mark.parametrize(
    "call, line",
    [
        (
            lambda: conformal_threshold(np.arange(98), 0.01),
            "98 calibration scores are too few for alpha = 0.01; give at least 99",
        ),
        (lambda: conformal_threshold([1, np.nan], 0.5), "calibration, row 2: the value is nan"),
        (lambda: conformal_threshold([1, 2], 0), "alpha is 0"),
        (lambda: conformal_thresholds_by_group([1, 2], ["a", "b"], 0.1), "2 calibration scores are too few"),
        (lambda: pooled_groups(["a", None], 1), "groups, row 2: there is no value"),
        (lambda: conformal_p_values_by_group([1], ["a"], [1, 2], ["a"]), "give one per row, 2 in all"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
