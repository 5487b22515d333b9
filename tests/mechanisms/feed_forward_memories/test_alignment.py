"""Alignment against brute force, its matching, and its null against draws."""

import itertools

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import alignment, expected_largest_cosine
from answerable.mechanisms.feed_forward_memories.alignment import align


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_largest_cosines_both_ways_and_the_best_matching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_BLOCK_ROWS", 2)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 3)), 3 * rng.standard_normal((6, 3))
    cosines = unit(a) @ unit(b).T
    found = align(a, b, rng=rng)
    assert found.cosine == pytest.approx(cosines.max(1), abs=1e-6)
    assert found.other_cosine == pytest.approx(cosines.max(0), abs=1e-6)
    assert found.nearest.tolist() == cosines.argmax(1).tolist()
    assert found.other_nearest.tolist() == cosines.argmax(0).tolist()
    assert found.absolute == pytest.approx(np.abs(cosines).max(1), abs=1e-6)
    assert found.other_absolute == pytest.approx(np.abs(cosines).max(0), abs=1e-6)
    best = max(cosines[range(5), list(chosen)].sum() for chosen in itertools.permutations(range(6), 5))
    assert found.matched_cosine.sum() == pytest.approx(best, abs=1e-5)
    assert len(set(found.matched.tolist())) == 5


def test_the_matching_among_candidates_is_that_of_all_where_each_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 12, 4))
    whole = align(a, b, rng=rng)
    monkeypatch.setattr(alignment, "_DENSE_CELLS", 0)
    few = align(a, b, rng=rng)
    assert few.matched_cosine.sum() == pytest.approx(whole.matched_cosine.sum(), abs=1e-5)


def test_a_set_with_itself_leaves_each_row_out() -> None:
    rows = np.array([[1.0, 0], [1, 1], [0, -1]])
    found = align(rows, rows, rng=np.random.default_rng(0), same=True)
    assert found.cosine == pytest.approx([np.sqrt(0.5), np.sqrt(0.5), 0], abs=1e-6)


def test_a_value_of_length_zero_has_no_cosine() -> None:
    a = np.array([[1.0, 0], [0, 0]])
    found = align(a, np.eye(2), rng=np.random.default_rng(0))
    assert np.isnan(found.cosine[1]) and found.nearest[1] == -1 and found.matched[1] == -1
    assert found.cosine[0] == 1
    assert np.isnan(align(np.eye(2), a, rng=np.random.default_rng(0)).other_cosine[1])


def test_the_null_is_that_of_random_directions() -> None:
    rng = np.random.default_rng(0)
    first, second = unit(rng.standard_normal((400, 32))), unit(rng.standard_normal((500, 32)))
    null = align(first, second, rng=rng, null_draws=4000).null
    drawn = (first @ second.T).max(1)
    assert null.mean() == pytest.approx(drawn.mean(), abs=0.01)
    assert np.quantile(null, 0.9) == pytest.approx(np.quantile(drawn, 0.9), abs=0.015)
    assert expected_largest_cosine(6144, 576) == pytest.approx(0.174, abs=1e-3)


def test_rows_of_other_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="the features write 3 and 4 numbers"):
        align(np.eye(3), np.eye(4), rng=np.random.default_rng(0))
