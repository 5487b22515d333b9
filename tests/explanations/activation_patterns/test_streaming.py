"""Blocks of rows, read anew for each pass, give the numbers that all rows in memory give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.explanations.activation_patterns import TermScores, streamed_scores, term_scores
from answerable.explanations.activation_patterns.streaming import _Own, _Together
from tests.explanations.activation_patterns.test_solver import noisy
from tests.oracles import activation_patterns as oracle

Z, Y = noisy(600)


def in_blocks(z: np.ndarray, y: np.ndarray, size: int) -> Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]:
    return lambda: ((z[start : start + size], y[start : start + size]) for start in range(0, len(y), size))


def assert_equal(streamed: TermScores, held: TermScores, digits: float = 1e-8) -> None:
    assert streamed.verdict == held.verdict
    assert np.isnan(streamed.discriminability).all() and streamed.linear.size == 0
    assert streamed.constant.tolist() == held.constant.tolist()
    for field in dataclasses.fields(TermScores):
        if field.name not in ("verdict", "discriminability", "linear", "constant", "errors"):
            expected = getattr(held, field.name)
            assert getattr(streamed, field.name) == pytest.approx(expected, rel=digits, abs=1e-12), field.name
    assert streamed.errors is not None and held.errors is not None
    for name in held.errors._fields:
        assert getattr(streamed.errors, name) == pytest.approx(getattr(held.errors, name), rel=digits, abs=1e-12), name


@pytest.mark.parametrize("size", [1, 7, 600])
@pytest.mark.parametrize("settings", [{}, {"ridge": 1.0}, {"scale": "probability", "level": 0.9, "margin": 0.3}])
def test_every_number_is_that_of_rows_in_memory(size: int, settings: dict) -> None:
    if size == 1 and settings:
        return
    assert_equal(streamed_scores(in_blocks(Z, Y, size), **settings), term_scores(Z, Y, **settings))


def test_columns_far_from_0_and_constant_ones_keep_their_digits() -> None:
    z = Z + np.array([1e6, -1e7, 0, 0, 0, 0])
    z[:, 3] = 7.0
    assert_equal(streamed_scores(in_blocks(z, Y, 50)), term_scores(z, Y))


def test_steps_that_go_too_far_are_taken_back() -> None:
    """From a place where the fit is flat a Newton step overshoots by far, for one term and for all together."""
    t, n = np.ascontiguousarray(((Z - Z.mean(axis=0)) / Z.std(axis=0))[:, :2].T), len(Y)
    expected = term_scores(t.T, Y)
    own, together = _Own(np.zeros(2), Y.mean(), 0.0), _Together(2, Y.mean(), 0.0, ["a", "b"])
    own.point[:] = own.base[:] = np.array([[1.0, 1.0], [-6.0, 6.0]])
    together.point = np.array([1.0, -6.0, 6.0])
    halves = 0
    while own.going.any() or together.going:
        own.add(t, Y)
        together.add(t, Y)
        own.step(n)
        together.step(n)
        halves += int(own.halves.sum() > 0) + int(together.halves > 0)
    assert halves > 1
    assert own.point[1] == pytest.approx(expected.slope * expected.weight, rel=1e-9)
    assert together.point[1:] == pytest.approx(expected.weight, rel=1e-9)


def test_the_closed_form_from_a_file_in_blocks(tmp_path: Path) -> None:
    """x = (2y - 1)(1, 0) and noise: log-odds slopes 50/9 and -40/9 together, 2 and 0 alone; rows come from a file."""
    X, y = oracle.two_gaussians(100_000, 0)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    found = streamed_scores(in_blocks(rows[:, :2], rows[:, 2], 10_000), names=["signal", "noise"])
    assert found.weight == pytest.approx([50 / 9, -40 / 9], abs=0.15)
    assert found.weight * found.slope == pytest.approx([2, 0], abs=0.03)
    assert found.verdict == ["informative and used", "suppressor"]


HOLED = Z.copy()
HOLED[450, 1] = np.nan
COPY = np.column_stack([Z[:, 0], Z[:, 1], Z[:, 0] - Z[:, 1]])
TOGETHER = np.column_stack([Z[:, 0], Z[:, 0] - 0.5 * (2 * Y - 1) - 0.01 * Z[:, 1]])


@pytest.mark.parametrize(
    ("z", "y", "said"),
    [
        (np.column_stack([Z, Y]), Y, "term column 7: it separates the classes, so its slope has no end; set a ridge"),
        (COPY, Y, "refit, term column 3: the other terms determine it"),
        (TOGETHER, Y, "together the terms separate the classes"),
        (Z[:5], Y[:5], "6 terms are fitted on 5 rows"),
        (HOLED, Y, "term column 2, row 451: it is missing or infinite; drop the row"),
        (Z, np.where(np.arange(600) > 500, 2.0, Y), "target: it holds 2; give 0 and 1"),
        (Z, np.ones(600), "every row that counts has the same class"),
        (Z * 1e120, Y, "term column 1: it lies between .*; give it in a unit"),
        (Z * 1e-120, Y, "term column 1: it lies between .*; give it in a unit"),
        (Z[:, 0], Y, r"block from row 1: the terms have shape \(100,\)"),
    ],
)
def test_what_cannot_be_fitted_is_told_as_in_memory(z: np.ndarray, y: np.ndarray, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        streamed_scores(in_blocks(z, y, 100))


def test_blocks_that_are_not_read_anew() -> None:
    with pytest.raises(BadInput, match="blocks: it is of type list; give a function that reads all rows anew"):
        streamed_scores([(Z, Y)])  # type: ignore[arg-type]
    once = iter([(Z, Y)])
    with pytest.raises(BadInput, match="blocks: a pass over the rows gave 0, the first gave 600; give a function"):
        streamed_scores(lambda: once)
    with pytest.raises(BadInput, match="blocks: a pass over the rows gave 0; give a function"):
        streamed_scores(lambda: ())
    with pytest.raises(BadInput, match=r"block from row 601: the terms have shape \(600, 5\), .*give \(rows, 6\)"):
        streamed_scores(lambda: ((Z, Y), (Z[:, :5], Y)))
    with pytest.raises(BadInput, match="scale: it is 'odds'"):
        streamed_scores(in_blocks(Z, Y, 100), scale="odds")  # type: ignore[arg-type]
