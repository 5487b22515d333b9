"""Weights, graph, growth and scores against plain loops, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.provenance.model_lineage.graph import BINS, densest_distance, scaled_distances
from answerable.provenance.model_lineage.rivals import centred_cosines, log_likelihoods
from answerable.provenance.model_lineage.solver import (
    Space,
    candidates,
    contraction_score,
    dataset_accuracies,
    error_space,
    error_uniqueness,
    gain_curve,
    grow,
)
from tests.oracles import model_lineage as oracle


def study(seed, models=9, items=40, missing=0.1, families=3):
    rng = np.random.default_rng(seed)
    errors = (rng.random((models, items)) < rng.uniform(0.2, 0.7, items)).astype(float)
    errors[rng.random(errors.shape) < missing] = np.nan
    numbers = np.arange(models) % families
    return errors, numbers, np.arange(items) % 3, rng.normal(size=(items, 4)), rng


def test_weights_worked_by_hand():
    # Two models of family 0 with accuracies 1/2 and 1/4, one each of families 1 and 2.
    errors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    accuracy = np.array([[0.5], [0.25], [0.75], [0.5]])
    found = error_uniqueness(errors, np.array([0, 0, 1, 2]), accuracy=accuracy)
    assert found.unique[0] == pytest.approx([2 / 3, 1 / 3])
    assert found.rare[0] == pytest.approx([0.0, 1.0])  # family 1 errs wholly at the first: 1 - 1^2 / 1
    assert found.weight[1] == pytest.approx([1 - (2 / 3) ** 2 / (2 / 3), 0.0])


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_weights_are_those_of_three_loops(seed):
    errors, families, datasets, _, _ = study(seed)
    accuracy = np.nan_to_num(dataset_accuracies(errors, datasets))
    if any(accuracy[families == f].max(axis=0).min() == 0 for f in range(3)):
        return
    found = error_uniqueness(errors, families, datasets)
    expected = oracle.weights(errors, families, datasets, accuracy)
    for ours, theirs in zip((found.unique, found.rare, found.weight), expected):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_scores_between_right_and_wrong_are_averaged_plainly():
    errors = np.array([[0.5, 1.0], [0.25, np.nan], [0.0, 1.0]])
    found = error_uniqueness(errors, np.array([0, 0, 1]))
    assert found.unique[0] == pytest.approx([0.375, 1.0])


def test_a_family_without_any_right_answer_counts_its_errors_alike():
    errors = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    found = error_uniqueness(errors, np.array([0, 0, 1]))
    assert found.unweighted == (0,)
    assert found.unique[0].tolist() == [1, 1, 1]


@given(st.integers(0, 10**6), st.integers(3, 14), st.booleans())
@settings(max_examples=40, deadline=None)
def test_scaled_distances_are_the_paper_s_distribution_function(seed, n, ties):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (n, 2)).astype(float) if ties else rng.normal(size=(n, 3))
    scaled = scaled_distances(points)
    above = np.triu_indices(n, 1)
    distances = oracle.pairs(points)
    if ties:  # equal distances that differ by rounding alone are one
        distances = np.round(distances, 12)
    np.testing.assert_allclose(scaled[above], oracle.interval_weighted(distances), atol=1e-10)
    np.testing.assert_array_equal(scaled, scaled.T)
    if np.ptp(distances) > 0:
        counts, edges = np.histogram(scaled[above], bins=np.linspace(0, 1, BINS + 1))
        assert densest_distance(scaled) == pytest.approx((edges[counts.argmax()] + edges[counts.argmax() + 1]) / 2)


def test_points_that_coincide_are_all_neighbours():
    scaled = scaled_distances(np.ones((4, 3)))
    assert not scaled.any()
    assert densest_distance(scaled) > 1


@pytest.mark.parametrize("half", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 18))
@settings(max_examples=60, deadline=None)
def test_growth_is_that_of_plain_loops(half, seed, n):
    rng = np.random.default_rng(seed)
    weight = -np.sort(-rng.uniform(0.05, 1, n))
    scaled = scaled_distances(rng.normal(size=(n, 2)))
    limit = rng.uniform(0.1, 1)
    found = grow(weight, scaled, limit, "half" if half else "paper")
    expected = oracle.grown(weight.tolist(), scaled.tolist(), limit, half)
    assert [sorted(np.flatnonzero(found.number == k)) for k in range(len(found.value))] == [
        sorted(members) for members, _ in expected
    ]
    np.testing.assert_allclose(found.value, [value for _, value in expected], atol=1e-12)


def test_a_space_is_the_set_of_largest_value_and_keeps_its_weights_in_order():
    errors, families, datasets, points, _ = study(3, models=12, items=200, missing=0.0)
    uniqueness = error_uniqueness(errors, families, datasets)
    space = error_space(uniqueness, 1, points, n_points=80)
    kept = candidates(uniqueness, 1, 80, 0.05)
    assert set(space.items) <= set(kept)
    assert (np.diff(space.weight) <= 0).all()
    np.testing.assert_array_equal(space.weight, uniqueness.weight[1][space.items])
    assert (1 - uniqueness.rare[1][kept] < uniqueness.unique[1][kept]).all()
    flat = error_space(uniqueness, 1, points, n_points=80, growth="none")
    np.testing.assert_array_equal(flat.items, kept)
    assert flat.value == pytest.approx(uniqueness.weight[1][kept].sum())


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_gain_is_that_of_plain_loops_at_every_size(seed):
    rng = np.random.default_rng(seed)
    items = rng.permutation(30)[:20]
    space = Space(items, -np.sort(-rng.uniform(0.1, 1, 20)), 0.0, 20, 1)
    errors, datasets, rates = rng.integers(0, 2, 30).astype(float), rng.integers(0, 3, 30), rng.random(3)
    errors[rng.random(30) < 0.1] = np.nan
    sizes, gains = gain_curve(space, errors, datasets, rates, 12, 5)
    answered = ~np.isnan(errors[items])
    for size, found in zip(sizes, gains):
        chosen = np.flatnonzero(answered)[:size]
        expected = oracle.gain(items[chosen], space.weight[chosen], errors, datasets, rates)
        assert found == pytest.approx(expected, abs=1e-12)
    assert sizes[0] == min(12, answered.sum())
    assert contraction_score(gains) == pytest.approx(gains[-1] - gains[0])


def test_a_space_that_is_too_small_shrinks_to_its_half_and_an_empty_one_has_no_score():
    space = Space(np.arange(6), np.linspace(1, 0.5, 6), 0.0, 6, 1)
    sizes, _ = gain_curve(space, np.ones(6), np.zeros(6, int), np.array([0.5]), 1200, 600)
    assert sizes.tolist() == [6, 5, 4, 3]
    _, gains = gain_curve(Space(np.arange(0), np.empty(0), 0.0, 0, 0), np.ones(6), np.zeros(6, int), np.ones(1), 4, 2)
    assert np.isnan(contraction_score(gains))


def test_rivals_worked_by_hand():
    errors, families = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), np.array([0, 0, 1])
    suspect = np.array([1.0, np.nan])
    # family 0 errs twice in two at the first item: (2 + 1/2) / 3; family 1 never in one: (1/2) / 2
    assert log_likelihoods(errors, families, suspect) == pytest.approx(np.log([2.5 / 3, 0.25]))
    suspect = np.array([1.0, 0.0])
    mean = np.array([2 / 3, 1 / 3])
    for found, family in zip(centred_cosines(errors, families, suspect), ([1.0, 0.5], [0.0, 0.0])):
        a, b = suspect - mean, np.array(family) - mean
        assert found == pytest.approx(a @ b / np.sqrt(a @ a * (b @ b)))
