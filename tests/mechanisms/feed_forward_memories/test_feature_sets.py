"""Feature sets: what every variant rebuilds, what normalising leaves alone, and the random control."""

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import Weights, memory_features, random_features
from answerable.mechanisms.feed_forward_memories.feature_sets import FUNCTIONS


@pytest.fixture
def weights() -> Weights:
    rng = np.random.default_rng(0)
    keys, gates = rng.standard_normal((2, 5, 8)).astype(np.float32)
    values = rng.standard_normal((8, 5)).astype(np.float32)
    values[3] = 0
    return Weights(keys=keys, gates=gates, values=values, activation="silu")


X = np.random.default_rng(1).standard_normal((20, 5)).astype(np.float32)


def test_a_gated_layer_is_what_its_equation_says(weights: Weights) -> None:
    expected = FUNCTIONS["silu"](X @ weights.gates) * (X @ weights.keys)
    full = memory_features(weights)
    assert full.encode(X) == pytest.approx(expected)
    assert full.decode(full.encode(X)) == pytest.approx(expected @ weights.values, abs=1e-5)
    assert full.fit(X).transform(X) == pytest.approx(full.encode(X))


@pytest.mark.parametrize("k", [1, 3, 8])
def test_normalising_leaves_the_reconstruction_alone(weights: Weights, k: int) -> None:
    plain, unit = (memory_features(weights, variant="topk", k=k, normalise=flag) for flag in (False, True))
    assert np.linalg.norm(unit.W_dec, axis=1)[np.arange(8) != 3] == pytest.approx(1)
    assert unit.decode(unit.encode(X)) == pytest.approx(plain.decode(plain.encode(X)), abs=1e-5)
    assert unit.directions == pytest.approx(plain.directions, abs=1e-6)
    assert plain.dead_values.tolist() == unit.dead_values.tolist() == [3]


def test_top_k_keeps_the_largest_by_size_or_by_contribution(weights: Weights) -> None:
    a = np.array([[3.0, -4, 1, 0.5, 0, 0, 0, 2]], np.float32)
    assert np.flatnonzero(memory_features(weights, variant="topk", k=2).keep(a)).tolist() == [0, 1]
    by_contribution = memory_features(weights, variant="topk", k=2, select="contribution")
    sizes = np.abs(a[0]) * np.linalg.norm(weights.values, axis=1)
    assert set(np.flatnonzero(by_contribution.keep(a))) == set(np.argsort(-sizes)[:2])
    whole = memory_features(weights, variant="topk", k=8)
    assert whole.encode(X) == pytest.approx(memory_features(weights).encode(X))


def test_the_random_control_rebuilds_its_own_output(weights: Weights) -> None:
    control = random_features(weights, np.random.default_rng(3), deviation=0.02)
    assert control.role == "control" and control.W_dec.shape == weights.values.shape
    assert control.W_dec.std() == pytest.approx(0.02, rel=0.3)
    assert control.decode(control.encode(X)) == pytest.approx(control.target(X), abs=1e-6)


@pytest.mark.parametrize("k", [0, 9])
def test_k_out_of_reach_is_refused(weights: Weights, k: int) -> None:
    with pytest.raises(BadInput, match=f"k is {k}, there are 8 features; 1 to 8"):
        memory_features(weights, variant="topk", k=k)
