"""What a pass keeps, against plain numpy; explained variance against scikit-learn and by its definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import r2_score

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import (
    MemoryCounts,
    contributions,
    explained_variance,
    k_term_errors,
    written_words,
)
from answerable.mechanisms.feed_forward_memories.solver import ErrorSums, largest

tables = arrays(
    np.float32, st.tuples(st.integers(1, 30), st.integers(1, 9)), elements=st.sampled_from([-2.0, -1, 0, 0.5, 1, 3])
)


@given(tables, st.integers(1, 4), st.integers(1, 30))
def test_counts_sums_and_strongest_places_are_those_of_the_whole_table(table: np.ndarray, top: int, cut: int) -> None:
    found = MemoryCounts(table.shape[1], top)
    found.add(table[:cut])
    found.add(table[cut:], threads=2)
    for side, signed in enumerate((table, -table)):
        assert found.counts[side].tolist() == (signed > 0).sum(0).tolist()
        assert found.sums[side] == pytest.approx(np.maximum(signed, 0).sum(0))
        for j in range(table.shape[1]):
            order = [int(i) for i in np.argsort(-signed[:, j], kind="stable") if signed[i, j] > 0][:top]
            assert [i for i in found.top_places[side, j] if i >= 0] == order
            assert found.top_values[side, j, : len(order)].tolist() == signed[order, j].tolist()
    assert found.tokens == len(table)


def test_only_the_tokens_that_count_are_numbered() -> None:
    found = MemoryCounts(1, 2)
    found.add(np.array([[9.0], [1.0], [2.0]], np.float32), keep=np.array([1, 2]))
    found.add(np.array([[5.0], [3.0]], np.float32), keep=np.array([1]))
    assert found.top_places[0, 0].tolist() == [2, 1]
    assert found.top_values[0, 0].tolist() == [3, 2]
    assert found.density[0, 0] == 1


def test_explained_variance_is_that_of_scikit_learn_and_its_ends_are_exact() -> None:
    rng = np.random.default_rng(0)
    y = rng.standard_normal((60, 5)) * [1, 2, 3, 4, 5] + 7
    guess = y + rng.standard_normal(y.shape)
    assert explained_variance(y, guess) == pytest.approx(r2_score(y, guess, multioutput="variance_weighted"), abs=1e-12)
    assert explained_variance(y, y) == 1
    assert explained_variance(y, np.broadcast_to(y.mean(0), y.shape)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(explained_variance(np.ones((4, 2)), np.zeros((4, 2))))


def test_the_other_definitions_are_what_they_say() -> None:
    rng = np.random.default_rng(1)
    y, guess = rng.standard_normal((2, 40, 3)) + 2
    error = ((y - guess) ** 2).sum(1)
    assert explained_variance(y, guess, definition="uncentred") == pytest.approx(1 - error.sum() / (y**2).sum())
    by_token = (1 - error / ((y - y.mean(0)) ** 2).sum(1)).mean()
    assert explained_variance(y, guess, definition="legacy_token_mean") == pytest.approx(by_token)
    with pytest.raises(BadInput, match="mean output is not known yet"):
        ErrorSums(3, 1, definition="legacy_token_mean")


@given(st.integers(0, 1000), st.integers(1, 20))
def test_explained_variance_does_not_depend_on_batches_or_order(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    y, guess = rng.standard_normal((2, 20, 4)) + 3
    errors = ((y - guess) ** 2).sum(1, keepdims=True)
    order = rng.permutation(20)
    sums = ErrorSums(4, 1)
    for part in (order[:cut], order[cut:]):
        sums.add(y[part], errors[part])
    assert sums.values[0] == pytest.approx(explained_variance(y, guess), abs=1e-12)


@given(st.integers(0, 1000))
def test_k_term_errors_are_those_of_each_reconstruction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((7, 6)).astype(np.float32)
    v = rng.standard_normal((6, 3)).astype(np.float32)
    ks = [1, 2, 4, 6]
    found = k_term_errors(a, v, a @ v, ks)
    assert (k_term_errors(a, v, a @ v, ks, threads=3) == found).all()
    for place, k in enumerate(ks):
        kept = np.where(np.argsort(np.argsort(-np.abs(a), axis=1), axis=1) < k, a, 0)
        assert found[:, place] == pytest.approx((((a - kept) @ v) ** 2).sum(1), abs=1e-4)


@given(
    arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 40)), elements=st.floats(-9, 9, width=32)),
    st.integers(0, 1000),
)
def test_k_term_errors_keep_the_first_of_equal_ones_and_any_k(table: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = table.shape[1]
    values, outputs = rng.standard_normal((m, 5)), rng.standard_normal((len(table), 5))
    weights = rng.uniform(0.5, 2, m).astype(np.float32)
    ks = sorted({1, (m + 1) // 2, m})
    found = k_term_errors(table, values, outputs, ks, weights)
    for row, a in enumerate(table):
        order = np.argsort(-(np.abs(a) * weights), kind="stable")
        for place, k in enumerate(ks):
            rest = outputs[row] - a[order[:k]].astype(float) @ values[order[:k]]
            assert found[row, place] == pytest.approx(rest @ rest, rel=1e-3, abs=1e-3)


def test_more_terms_explain_more_where_values_are_orthogonal_and_may_explain_less_elsewhere() -> None:
    rng = np.random.default_rng(0)
    activations, ks = rng.standard_normal((30, 8)).astype(np.float32), range(1, 9)
    orthogonal = np.linalg.qr(rng.standard_normal((8, 8)))[0] * rng.uniform(0.2, 3, 8)[:, None]
    errors = k_term_errors(activations, orthogonal, activations @ orthogonal, list(ks))
    assert (np.diff(errors, axis=1) < 1e-6).all() and (errors[:, 0] > 10 * errors[:, -1]).all()
    a, v = np.array([[1.0, 0.9]], np.float32), np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    assert k_term_errors(a, v, np.array([[1.0, 0.0]], np.float32), [1, 2])[0].tolist() == pytest.approx([0, 0.81])


@pytest.mark.parametrize("k", [0, 4])
def test_k_out_of_reach_is_refused(k: int) -> None:
    with pytest.raises(BadInput, match=f"k: k is {k}, there are 3 features"):
        largest(np.zeros((2, 3), np.float32), k)


def test_contributions_sum_to_the_read_out() -> None:
    rng = np.random.default_rng(2)
    a, v, p = rng.standard_normal((5, 9)), 4 * rng.standard_normal((9, 4)), rng.standard_normal(4)
    assert contributions(a, v, p).sum(1) == pytest.approx(a @ v @ p, abs=1e-12)


def test_written_words_are_the_largest_and_smallest_logits() -> None:
    values, table = np.array([[1.0, 0.0]]), np.array([[3.0, 0], [-1, 9], [2, 0], [-5, 0]])
    promoted, demoted = written_words(values, table, gain=np.array([1.0, 100.0]), top=2)
    assert promoted.tolist() == [[0, 2]]
    assert demoted.tolist() == [[3, 1]]
