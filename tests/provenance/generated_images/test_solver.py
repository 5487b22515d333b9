"""Scores against hand values, and the linear manifold where the principle can be worked out exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.provenance.generated_images import alignment, dissimilarities, manifold_gap, scores
from tests.oracles.generated_images import cosine


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.01, 100))
def test_it_is_one_less_the_cosine_and_ignores_lengths(seed: int, d: int, scale: float) -> None:
    first, second = np.random.default_rng(seed).normal(size=(2, 4, d))
    found = dissimilarities(first, scale * second)
    assert found == pytest.approx([1 - cosine(a, b) for a, b in zip(first.tolist(), second.tolist())], abs=1e-9)
    assert found == pytest.approx(dissimilarities(second, first), abs=1e-12)


def test_equal_features_give_exactly_zero_and_small_angles_keep_their_digits() -> None:
    features = np.random.default_rng(0).normal(size=(50, 1024)).astype(np.float32)
    assert (dissimilarities(features, features) == 0).all()
    angle = 1e-6
    assert dissimilarities([[1.0, 0.0]], [[np.cos(angle), np.sin(angle)]])[0] == pytest.approx(angle**2 / 2, rel=1e-6)


@pytest.mark.parametrize("aggregate, by_hand", [("mean", 0.3), ("max", 0.1), ("min", 0.6), ("median", 0.2)])
def test_the_aggregate_is_of_similarities(aggregate: str, by_hand: float) -> None:
    assert scores([[0.1, 0.6, 0.2]], aggregate)[0] == pytest.approx(by_hand)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad, line",
    [
        ([[0.0, 0.0]], "row 1 is zero; use float32"),
        ([[1.0, 1.0], [np.nan, 0.0]], "row 2 is not finite"),
        ([1.0], "differ"),
    ],
)
def test_a_feature_that_has_no_direction_is_named(bad: object, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        dissimilarities(bad, np.ones_like(np.array([[1.0, 1.0]] * len(bad))))  # type: ignore[arg-type]


@given(st.integers(0, 10_000), st.integers(2, 9))
def test_on_a_linear_manifold_the_gap_is_the_normal_part(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, max(1, d // 2))))[0]
    onto = basis @ basis.T
    normal = rng.normal(size=d)
    normal -= onto @ normal
    on_it = rng.normal(size=(5, d)) @ onto.T
    off = rng.normal(size=(5, d)) @ (np.eye(d) - onto).T
    assert manifold_gap(on_it, onto, normal) == pytest.approx(np.zeros(5), abs=1e-10)
    # The first-order bound |grad f1' p| holds with equality, since everything is linear.
    assert manifold_gap(on_it + off, onto, normal) == pytest.approx(np.abs(off @ normal), abs=1e-9)


def test_alignment_is_the_cosine_of_move_and_gradient() -> None:
    moves, gradients = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], [[0.0, 2.0], [-1.0, 0.0], [1.0, 0.0]]
    assert alignment(moves, gradients) == pytest.approx([0, np.sqrt(0.5), 0])
