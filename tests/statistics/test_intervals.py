"""Intervals for means and quantiles against scipy, statsmodels and counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from answerable.errors import BadInput
from answerable.statistics import (
    difference_of_means_interval,
    mean_interval,
    median_interval,
    paired_difference_interval,
    quantile_interval,
)
from answerable.statistics.intervals import quantile_ranks

SAMPLES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30).filter(lambda x: np.ptp(x) > 1e-3)


def test_a_mean_worked_by_hand():
    # 1, 2, 3: mean 2, sd 1, t_2 = 4.302653, half-width 4.302653 / sqrt 3
    interval = mean_interval([1, 2, 3])
    assert interval[:4] == pytest.approx((2, -0.484138, 4.484138, 0.95), abs=1e-6)
    assert interval.method == "95 % t interval"


@given(SAMPLES, st.floats(0.5, 0.999))
def test_a_mean_as_scipy_has_it(sample, level):
    theirs = stats.ttest_1samp(sample, 0).confidence_interval(level)
    assert mean_interval(sample, level=level)[1:3] == pytest.approx(tuple(theirs), rel=1e-9, abs=1e-6)


@given(SAMPLES, st.floats(-1e3, 1e3), st.floats(1e-2, 1e2))
def test_a_mean_moves_with_shift_and_scale(sample, shift, scale):
    before, after = mean_interval(sample), mean_interval(shift + scale * np.array(sample))
    assert after[1:3] == pytest.approx((shift + scale * before.low, shift + scale * before.high), rel=1e-6, abs=1e-3)


def test_paired_and_unpaired_differences_as_others_have_them():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=8), rng.normal(1, 3, size=8)
    theirs = stats.ttest_rel(first, second).confidence_interval(0.9)
    assert paired_difference_interval(first, second, level=0.9)[1:3] == pytest.approx(tuple(theirs))
    other = rng.normal(1, 3, size=15)
    theirs = CompareMeans(DescrStatsW(first), DescrStatsW(other)).tconfint_diff(alpha=0.1, usevar="unequal")
    assert difference_of_means_interval(first, other, level=0.9)[1:3] == pytest.approx(theirs)


def test_equal_values_are_not_certainty():
    # 5 equal values: 1 - 0.025 ** (1 / 5) = 52.18 % of others may differ
    assert mean_interval([0.0] * 5)[1:3] == (-np.inf, np.inf)
    assert mean_interval([0.0] * 5, bounds=(0, 1))[1:3] == pytest.approx((0, 0.521824), abs=1e-6)
    low, high = mean_interval([3.0] * 5, bounds=(1, 5))[1:3]
    assert (low, high) == pytest.approx((3 - 2 * 0.521824, 3 + 2 * 0.521824), abs=1e-5)
    unpaired = difference_of_means_interval([1.0, 1.0, 1.0], [0.0, 0.5, 0.2], bounds=(0, 1))
    assert unpaired.value == pytest.approx(1 - 0.7 / 3)
    assert unpaired.low < unpaired.value < unpaired.high


@pytest.mark.parametrize("n, ranks", [(5, (0, 6)), (6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))])
def test_ranks_around_a_median(n, ranks):  # table 3 of Thompson (1936) and common tables of the sign test
    assert quantile_ranks(n, 0.5, 0.025, 0.025) == ranks


@given(st.integers(2, 300), st.floats(0.01, 0.99), st.floats(0.001, 0.2))
def test_ranks_are_the_narrowest_that_hold(n, quantile, tail):
    lower, upper = quantile_ranks(n, quantile, tail, tail)
    assert stats.binom.cdf(lower - 1, n, quantile) <= tail < stats.binom.cdf(lower, n, quantile)
    assert stats.binom.sf(upper - 1, n, quantile) <= tail * (1 + 1e-9)
    assert stats.binom.sf(upper - 2, n, quantile) > tail * (1 - 1e-9)


def test_a_median_says_what_five_values_cannot():
    interval = median_interval([1, 2, 3, 4, 5])
    assert interval[:3] == (3, -np.inf, np.inf)
    assert "5 values are too few" in interval.method
    assert median_interval([1, 2, 3, 4, 5], bounds=(0, 9))[1:3] == (0, 9)
    assert median_interval([1, 2, 3, 4, 5], level=0.9)[1:3] == (1, 5)
    assert median_interval(range(1, 11))[:3] == (5.5, 2, 9)


def test_ties_open_a_quantile():
    assert median_interval([2.0] * 30, bounds=(0, 5))[1:3] == (0, 5)
    assert median_interval([1.0] + [2.0] * 30 + [7.0])[1:3] == (1, 7)
    assert quantile_interval(np.arange(100), 0.9)[:1] == (pytest.approx(89.1),)


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: mean_interval([1.0]), "values: there are 1 rows; give at least 2"),
        (lambda: mean_interval([1, np.nan, 2]), "values, row 2: the value is nan; drop the row or fill it in"),
        (lambda: mean_interval(["a", "b"]), "values: these are not numbers; give an array of numbers"),
        (lambda: mean_interval([1, 2], level=1.0), "level is 1.0; it must lie between 0 and 1; 0.95 is usual"),
        (lambda: mean_interval([1, 7], bounds=(0, 5)), "values, row 2: 7 is outside"),
        (lambda: mean_interval([1, 7], bounds=(5, 0)), "the first must lie below the second"),
        (lambda: mean_interval([1e300, -1e300]), "too large to be squared"),
        (lambda: paired_difference_interval([1, 2], [1, 2, 3]), "first and second: there are 2 and 3 rows"),
        (lambda: quantile_interval([1, 2], 1.5), "quantile is 1.5"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
    assert "\n" not in str(error.value)
