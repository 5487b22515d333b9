"""Directions by hand, and as the point of a hull that is nearest the origin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import intervened, random_directions, steering_direction
from answerable.mechanisms.path_patching.solver import crossfit_directions

BY_HAND = np.array([[3.0, 0.0], [1.0, 2.0]])


def drawn(seed: int, n: int = 9, d: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.2, 3, d)) + rng.normal(size=d)


def test_two_changes_by_hand() -> None:
    mean = steering_direction(BY_HAND, 0)
    assert mean.vector * mean.size == pytest.approx([2, 1])
    assert mean.vector == pytest.approx([2 / 5**0.5, 1 / 5**0.5])
    one = steering_direction(BY_HAND, 1)
    assert one.vector * one.size == pytest.approx([1.5, 1.5])
    assert BY_HAND @ one.vector == pytest.approx([4.5**0.5] * 2)


def test_an_intervention_by_hand() -> None:
    here, there = [5.0, 1.0], [2.0, 1.0]
    assert intervened(here, there, steering_direction(BY_HAND, 0).vector) == pytest.approx([2.6, -0.2])
    assert intervened(here, there, steering_direction(BY_HAND, 1).vector) == pytest.approx([3.5, -0.5])
    assert intervened(here, there, np.eye(2)) == pytest.approx(there)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), rank=st.integers(0, 5))
def test_the_direction_is_that_of_the_hull_s_nearest_point(seed: int, rank: int) -> None:
    changes = drawn(seed)
    found = steering_direction(changes, rank)
    mean = changes.mean(axis=0)
    basis = np.linalg.svd((changes - mean).T, full_matrices=False)[0][:, :rank]
    low_rank = mean[:, None] + basis @ basis.T @ (changes - mean).T  # M' as the paper writes it
    printed = np.linalg.pinv(low_rank).T @ np.ones(len(changes))
    printed /= printed @ printed
    assert found.vector * found.size == pytest.approx(printed, abs=1e-8 * np.abs(changes).max())
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-12)
    assert found.vector @ low_rank == pytest.approx(
        np.full(len(changes), found.size), abs=1e-10 * np.abs(changes).max()
    )
    assert found.vector @ mean > 0


def test_a_quadratic_programme_finds_the_same_point() -> None:
    """Weights that sum to 1 and make the reduced changes as short as can be, by the conditions of Karush and others."""
    for seed in range(100):
        changes, rank = drawn(seed), seed % 5
        mean = changes.mean(axis=0)
        left, sizes, right = np.linalg.svd((changes - mean).T, full_matrices=False)
        reduced = mean[:, None] + (left[:, :rank] * sizes[:rank]) @ right[:rank]
        n = len(changes)
        conditions = np.block([[2 * reduced.T @ reduced, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        weights = np.linalg.lstsq(conditions, np.append(np.zeros(n), 1.0), rcond=None)[0][:n]
        assert weights.sum() == pytest.approx(1)
        found = steering_direction(changes, rank)
        assert found.vector * found.size == pytest.approx(reduced @ weights, abs=1e-8 * np.abs(changes).max())


def test_changes_that_are_all_alike_or_zero_give_no_nan() -> None:
    zero = steering_direction(np.zeros((5, 4)), 1)
    assert not zero.vector.any() and zero.size == 0
    alike = steering_direction(np.tile([0.0, 2.0, 0.0], (5, 1)), 1)
    assert alike.vector == pytest.approx([0, 1, 0]) and alike.size == pytest.approx(2)
    through = steering_direction(np.array([[1.0, 0, 0], [-1.0, 0, 0], [2.0, 0, 0]]), 1)
    assert not through.vector.any() and through.size == 0


@pytest.mark.parametrize(("rank", "limit"), [(-1, 5), (6, 5), (100, 5)])
def test_a_rank_out_of_bounds_names_its_limit(rank: int, limit: int) -> None:
    with pytest.raises(BadInput, match=f"rank is {rank}; choose from 0 to {limit}"):
        steering_direction(drawn(0), rank)


def test_numbers_that_are_not_finite_and_shapes_that_do_not_fit_are_told() -> None:
    bad = drawn(0)
    bad[2, 3] = np.nan
    with pytest.raises(BadInput, match="not finite"):
        steering_direction(bad, 0)
    with pytest.raises(BadInput, match="changes: they have shape"):
        steering_direction([1.0, 2.0], 0)


def test_no_pair_is_judged_by_a_direction_made_from_it() -> None:
    changes = drawn(3, 10)
    folds = np.arange(10) % 5
    before = crossfit_directions(changes, 1, folds)
    changed = changes.copy()
    changed[4] += 100.0
    after = crossfit_directions(changed, 1, folds)
    own = folds == folds[4]
    assert np.array_equal(before[own], after[own])
    assert (np.abs(before[~own] - after[~own]).max(axis=1) > 1e-3).all()


def test_random_directions_are_unit_and_in_the_span() -> None:
    changes = np.column_stack([drawn(1, 9, 3), np.zeros((9, 2))])
    found = random_directions(changes, 7, np.random.default_rng(0))
    assert found.shape == (7, 5)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(7))
    assert not found[:, 3:].any()
    assert not random_directions(np.ones((4, 3)), 2, np.random.default_rng(0)).any()
