"""Permutation tests against listing by hand, and their false-alarm rate."""

import itertools

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.statistics import (
    association_test,
    maximum_p_values,
    permutation_null,
    permutation_p_values,
    sign_flip_test,
    two_sample_test,
)


def difference(a, b, axis):
    return a.mean(axis=axis) - b.mean(axis=axis)


def product(a, b, axis):
    return (a * b).sum(axis=axis)


def test_two_samples_listed_by_hand():
    first, second = np.array([1.0, 2.0, 5.0]), np.array([0.0, 0.5, 1.5, -1.0])
    rows, observed = np.concatenate([first, second]), first.mean() - second.mean()
    every = [rows[list(c)].mean() - np.delete(rows, c).mean() for c in itertools.combinations(range(7), 3)]
    found = two_sample_test(difference, first, second, seed=0, alternative="greater")
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= observed - 1e-12))
    assert (found.exact, len(found.null), found.statistic) == (True, 35, pytest.approx(observed))
    assert found.method == "two-sample permutation test, greater, all 35 arrangements"


def test_signs_listed_by_hand():
    differences = np.array([1.0, 3.0, -0.5, 2.0])
    every = [np.mean(differences * signs) for signs in itertools.product([1, -1], repeat=4)]
    found = sign_flip_test(differences, seed=0, alternative="greater")
    assert found.p_value == np.mean(np.array(every) >= differences.mean() - 1e-12) == 2 / 16
    assert found.exact


def test_pairings_listed_by_hand():
    first, second = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    every = [np.dot(p, second) for p in itertools.permutations(first)]
    found = association_test(product, first, second, seed=0, alternative="greater")
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= 29.0))
    assert found.exact


def test_monte_carlo_counts_the_data_themselves():
    found = two_sample_test(difference, np.arange(30.0), np.arange(30.0) + 1000, seed=3, resamples=199)
    assert not found.exact
    assert found.p_value == 2 * 1 / 200
    again = two_sample_test(difference, np.arange(30.0), np.arange(30.0) + 1000, seed=3, resamples=199)
    assert (again.null == found.null).all()
    assert found.method.endswith("199 random arrangements")


def test_p_values_of_nulls_by_hand():
    null = np.array([[1.0, 5.0], [2.0, 1.0], [3.0, 0.0]])
    assert permutation_p_values([2.0, 6.0], null) == pytest.approx([3 / 4, 1 / 4])
    assert maximum_p_values([2.0, 6.0], null) == pytest.approx([4 / 4, 1 / 4])


def test_false_alarms_of_one_and_of_the_maximum(seed):
    rng = np.random.default_rng(seed)
    alarms = []
    for repeat in range(400):
        labels, noise = np.arange(20) % 2 == 0, rng.normal(size=(20, 6))

        def gaps(order, labels=labels, noise=noise):
            return np.abs(noise[labels[order]].mean(axis=0) - noise[~labels[order]].mean(axis=0))

        null = permutation_null(gaps, 20, seed=repeat, resamples=39)
        observed = gaps(np.arange(20))
        alarms.append([permutation_p_values(observed, null)[0] <= 0.1, maximum_p_values(observed, null).min() <= 0.1])
    shares = np.mean(alarms, axis=0)
    assert shares == pytest.approx(0.1, abs=4 * np.sqrt(0.1 * 0.9 / 400))


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: sign_flip_test([1, np.nan], seed=0), "differences, row 2: the value is nan"),
        (lambda: sign_flip_test([1, 2], seed=None), "seed is None"),
        (lambda: sign_flip_test([1, 2], seed=0, alternative="larger"), "alternative is 'larger'"),
        (lambda: association_test(product, [1, 2], [1, 2, 3], seed=0), "there are 2 and 3 rows"),
        (lambda: permutation_p_values([1.0], [[1.0, 2.0]]), "null has 2 columns"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)


def test_one_row_is_refused():
    with pytest.raises(BadInput, match="differences"):
        sign_flip_test([1.0], seed=0)
    with pytest.raises(BadInput, match="second"):
        two_sample_test(lambda a, b, axis: a.mean(axis) - b.mean(axis), [1.0, 2.0], [3.0], seed=0)
