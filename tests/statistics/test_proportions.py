"""Proportions against scipy, and the exact coverage of each interval, added up over every outcome."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from answerable.errors import BadInput
from answerable.statistics import (
    clopper_pearson_interval,
    difference_of_proportions_interval,
    paired_difference_of_proportions_interval,
    wilson_interval,
)

PROPORTIONS = np.array([0, 0.001, 0.01, 0.03, 0.1, 0.25, 0.4, 0.5, 0.7, 0.9, 0.99, 1])
COUNTS = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.floats(0.5, 0.999))
def test_one_proportion_as_scipy_has_it(counts, level):
    test = stats.binomtest(*counts)
    for interval, method in ((wilson_interval, "wilsoncc"), (clopper_pearson_interval, "exact")):
        theirs = test.proportion_ci(level, method)
        assert interval(*counts, level=level)[1:3] == pytest.approx(tuple(theirs), abs=1e-9)


@given(COUNTS)
def test_failures_mirror_successes(counts):
    successes, trials = counts
    for interval in (wilson_interval, clopper_pearson_interval):
        one, other = interval(successes, trials), interval(trials - successes, trials)
        assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-12)


@pytest.mark.parametrize("interval", [wilson_interval, clopper_pearson_interval])
@pytest.mark.parametrize("n", [2, 5, 10, 20, 50, 100])
def test_one_proportion_is_conservative_everywhere(interval, n):
    every = [interval(k, n) for k in range(n + 1)]
    truths = np.linspace(0, 1, 1001)
    low, high = (np.array([getattr(i, end) for i in every])[:, None] for end in ("low", "high"))
    chances = stats.binom.pmf(np.arange(n + 1)[:, None], n, truths)
    assert (chances * ((low <= truths) & (truths <= high))).sum(axis=0).min() > 0.9475
    assert (high > low).all()


@pytest.mark.parametrize("n, m", [(2, 2), (5, 5), (5, 20), (20, 20), (50, 50)])
def test_a_difference_is_conservative_everywhere(n, m):
    every = {
        (i, j): difference_of_proportions_interval(i, n, j, m) for i, j in itertools.product(range(n + 1), range(m + 1))
    }
    for p, q in itertools.product(PROPORTIONS, PROPORTIONS):
        chances = np.outer(stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q))
        holds = sum(chances[at] for at, i in every.items() if i.low - 1e-12 <= p - q <= i.high + 1e-12)
        assert holds > 0.93, (p, q)


@pytest.mark.parametrize("n", [2, 5, 10, 20])
def test_a_paired_difference_is_conservative_everywhere(n):
    tables = [(a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)]
    every = [paired_difference_of_proportions_interval(*table) for table in tables]
    low, high = np.array([i.low for i in every]), np.array([i.high for i in every])
    assert (high > low).all()
    for p, q in itertools.product([0, 0.005, 0.01, 0.1, 0.2, 0.4, 0.5, 1], repeat=2):
        if p + q > 1:
            continue
        for both in (0.0, (1 - p - q) / 2):
            law = [both, p, q, max(1 - p - q - both, 0.0)]
            chances = stats.multinomial.pmf(tables, n, np.array(law) / np.sum(law))
            assert chances[(low - 1e-12 <= p - q) & (p - q <= high + 1e-12)].sum() > 0.93, law


def test_differences_worked_by_hand():
    # Newcombe (1998b), table II: 56/70 - 48/80, method 11
    interval = difference_of_proportions_interval(56, 70, 48, 80)
    assert interval[:3] == pytest.approx((0.2, 0.0428, 0.3422), abs=1e-4)
    # 1 and 3 of 8 differ: p = 2/10, q = 4/10, sd = sqrt((0.6 - 0.04) / 10) = 0.236643; 1.959964 of it and 1/32 more
    paired = paired_difference_of_proportions_interval(2, 1, 3, 2)
    assert paired[:3] == pytest.approx((-0.25, -0.2 - 0.495064, -0.2 + 0.495064), abs=1e-5)


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: wilson_interval(3, 2), "there are 3 successes in 2 trials"),
        (lambda: wilson_interval(0, 0), "trials is 0; it must be a whole number of at least 1"),
        (lambda: wilson_interval(-1, 3), "successes is -1"),
        (lambda: clopper_pearson_interval(0.5, 3), "successes is 0.5"),
        (lambda: paired_difference_of_proportions_interval(0, 0, 0, 0), "there are no rows"),
        (lambda: wilson_interval(1, 2, level=0), "level is 0"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
