"""FlowPrune's two cuts: what they bound, what they keep, and where the authors' code differs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.mechanisms.attention_flow import attention_flow, prune
from answerable.mechanisms.attention_flow.flows import flows_from
from answerable.mechanisms.attention_flow.network import read_capacities
from answerable.mechanisms.attention_flow.pruning import _best_kept, _runs, compress, layer_scores
from tests.oracles.attention_flow import random_patterns


def diamond() -> np.ndarray:
    """Flow of 1 that fans out over two positions and in again, around two layers of .5 throughout."""
    half = np.full((2, 2), 0.5)
    straight = np.eye(2)
    return np.stack([straight, half, half, straight])


def compressed_flow(layers: np.ndarray, retain: float, source: int) -> np.ndarray:
    merged = compress(read_capacities(layers, residual=False), retain=retain)
    singles = tuple((j,) for j in range(layers.shape[1]))
    return flows_from(merged.capacities, source, singles, 1).cut.sum(axis=1)


def test_the_capacity_of_a_merged_layer_matters() -> None:
    exact = attention_flow(diamond(), 0, residual=False, causal=False).flow
    paper = prune(diamond(), retain=0.1, residual=False, causal=False)
    code = prune(diamond(), retain=0.1, residual=False, causal=False, merged_capacity="max")
    assert exact.tolist() == [1, 1]
    assert paper.flow(0).tolist() == [1, 1]
    assert code.flow(0).tolist() == [0.5, 0.5]
    assert paper.merged == ((2, 3),) and paper.kept.tolist() == [1, 4]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["walk", "small", "cut"]), st.sampled_from(["one", "max"])
)
def test_intervals_hold_the_exact_flow(number: int, causal: bool, score: str, merged_capacity: str) -> None:
    rng = np.random.default_rng(number)
    given_patterns = random_patterns(rng, int(rng.integers(1, 8)), int(rng.integers(1, 7)), causal, 0.2, 3.0)
    exact = attention_flow(given_patterns, residual=False, null=False).flow
    pruned = prune(given_patterns, 0.05, float(rng.uniform(0.1, 1)), score, number, merged_capacity, residual=False)
    interval = pruned.interval()
    assert (interval.low <= exact + 1e-12).all() and (exact <= interval.high + 1e-12).all()


def test_a_threshold_never_raises_and_a_merger_never_lowers(seed: int) -> None:
    given_patterns = random_patterns(np.random.default_rng(seed), 8, 8, True, power=3.0)
    exact = attention_flow(given_patterns, residual=False, null=False).flow
    lower = [
        prune(given_patterns, threshold, retain=1.0, residual=False).flow() for threshold in (0.0, 0.01, 0.05, 0.2)
    ]
    assert lower[0] == pytest.approx(exact, abs=1e-12)
    for more, less in itertools.pairwise(lower):
        assert (less <= more + 1e-12).all()
    assert (compressed_flow(given_patterns, 0.5, 7) >= exact - 1e-12).all()


def test_splitting_a_merged_run_never_raises(seed: int) -> None:
    layers = random_patterns(np.random.default_rng(seed), 6, 6, False, 0.5)
    singles = tuple((j,) for j in range(6))

    def value(runs: list[list[int]]) -> np.ndarray:
        """Flow with these runs of layers merged by hand, layer 1 first."""
        rows = []
        for run in runs:
            reach = np.eye(6)
            for layer in run[::-1]:
                reach = (reach @ (layers[layer] > 0) > 0).astype(float)
            rows.append(layers[run[0]] if len(run) == 1 else reach)
        network = read_capacities(layers, residual=False)._replace(down=np.ascontiguousarray(np.stack(rows)[::-1]))
        return flows_from(network, 5, singles, 1).cut.sum(axis=1)

    whole, split = value([[0], [1, 2, 3, 4], [5]]), value([[0], [1, 2], [3, 4], [5]])
    assert (split <= whole + 1e-12).all()


def test_the_kept_layers_are_the_best_that_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n_layers = int(rng.integers(4, 9))
        budget = int(rng.integers(3, n_layers))
        scores = rng.integers(0, 5, n_layers).astype(float)
        best = 0.0
        for middle in itertools.product((False, True), repeat=n_layers - 2):
            kept = np.array([True, *middle, True])
            if len(_runs(kept, n_layers)) <= budget:
                best = max(best, float(scores[kept].sum()))
        found = _best_kept(scores, budget)
        assert found[0] and found[-1]
        assert len(_runs(found, n_layers)) <= budget
        assert scores[found].sum() == best


def test_scores_find_the_waist(seed: int) -> None:
    """A layer of arcs narrower than all others holds the bottleneck by every score."""
    layers = random_patterns(np.random.default_rng(seed), 5, 6, False) * 0.9 + 0.1 / 6
    layers[2] *= 1e-5
    capacities = read_capacities(layers, residual=False)
    for score in ("walk", "small", "cut"):
        scores = layer_scores(capacities, score, seed=seed)
        assert scores.argmax() == 2
    assert layer_scores(capacities, "walk", seed=seed).sum() == 20 * 6
    assert layer_scores(capacities, "small").tolist() == [0, 0, 36, 0, 0]


def test_a_seed_gives_the_same_layers(seed: int) -> None:
    given_patterns = random_patterns(np.random.default_rng(seed), 9, 6, True)
    first, again = (prune(given_patterns, seed=seed) for _ in range(2))
    assert first.kept.tolist() == again.kept.tolist() and first.merged == again.merged
    assert np.array_equal(first.flow(), again.flow())


@pytest.mark.parametrize("threshold", [-0.1, 1.0, 2.0])
def test_a_threshold_outside_its_range(threshold: float) -> None:
    with pytest.raises(ValueError, match=f"threshold is {threshold}, must be at least 0 and below 1"):
        prune(diamond(), threshold)


@pytest.mark.parametrize("retain", [0.0, -0.5, 1.01])
def test_a_share_outside_its_range(retain: float) -> None:
    with pytest.raises(ValueError, match=f"retain is {retain}, must be above 0 and at most 1"):
        prune(diamond(), retain=retain)


def test_words_that_are_no_choice() -> None:
    with pytest.raises(ValueError, match="score is 'wlak', must be 'walk', 'small' or 'cut'"):
        prune(np.tile(np.eye(2), (6, 1, 1)), score="wlak")
    with pytest.raises(ValueError, match="merged_capacity is 'two', must be 'one' or 'max'"):
        prune(diamond(), merged_capacity="two")
    with pytest.raises(ValueError, match="method is 'fast'"):
        attention_flow(diamond(), method="fast")
    with pytest.raises(ValueError, match="threads is 0"):
        attention_flow(diamond(), threads=0)
