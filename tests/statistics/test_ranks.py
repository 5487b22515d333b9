"""Rank agreement against scipy, and its variance against the jackknife."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from answerable.errors import BadInput
from answerable.statistics import kendall_interval, spearman_interval

COLUMNS = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=5, max_size=30).filter(
    lambda rows: all(np.ptp(column) > 0 for column in np.array(rows).T)
)


@given(COLUMNS)
def test_values_as_scipy_has_them(rows):
    first, second = np.array(rows).T
    assert spearman_interval(first, second).value == pytest.approx(stats.spearmanr(first, second).statistic)
    assert kendall_interval(first, second).value == pytest.approx(stats.kendalltau(first, second).statistic)


@given(COLUMNS)
def test_only_ranks_matter_and_signs_mirror(rows):
    first, second = np.array(rows).T
    for interval in (spearman_interval, kendall_interval):
        plain = interval(first, second)
        assert interval(np.exp(first), second**3)[:3] == pytest.approx(plain[:3])
        mirrored = interval(-first, second)
        assert (-mirrored.high, -mirrored.low) == pytest.approx(plain[1:3])
        assert plain[1:3] == pytest.approx(interval(second, first)[1:3])


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(
    "interval, theirs", [(spearman_interval, stats.spearmanr), (kendall_interval, stats.kendalltau)]
)
def test_the_width_is_the_jackknifes(interval, theirs, rounded):
    """In samples of this size Wilson's form and the added half toss change it by a few percent."""
    rng = np.random.default_rng(8)
    first = rng.normal(size=600)
    second = 0.3 * first + rng.normal(size=600) * (1 + np.abs(first))
    if rounded:
        first, second = np.round(first), np.round(second)
    left_out = [theirs(np.delete(first, k), np.delete(second, k)).statistic for k in range(0, 600, 2)]
    spread = np.sqrt(599 / 600 * np.var(left_out) * 600)
    found = interval(first, second)
    assert (found.high - found.low) / (2 * 1.9639 * spread) == pytest.approx(1, abs=0.08)


def test_perfect_agreement_is_not_certainty():
    for interval in (spearman_interval, kendall_interval):
        found = interval(range(6), range(6))
        assert (found.value, found.high) == (1, 1)
        assert found.low < 0.3


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: spearman_interval(range(4), range(4)), "first: there are 4 rows; give at least 5"),
        (lambda: kendall_interval([1, 2, 3, 4, np.nan], range(5)), "first, row 5: the value is nan"),
        (lambda: kendall_interval([1] * 5, range(5)), "first: every value is 1, so ranks mean nothing"),
        (lambda: spearman_interval(range(5), range(6)), "there are 5 and 6 rows"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
