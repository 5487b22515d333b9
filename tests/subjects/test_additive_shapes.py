"""A feature's component is looked up as its pieces say, however they are laid out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.subjects.additive_model.packed import packed
from answerable.subjects.additive_model.parts import Shape

numbers = st.one_of(
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 1.0, 1e-300, -1e300, 1e300, 5e-324]),
)


@given(
    inner=st.lists(numbers, max_size=30, unique_by=lambda edge: edge + 0.0),
    constants=st.lists(st.sampled_from([-1.5, 0.0, -0.0, 2.0]), min_size=31, max_size=31),
    values=st.lists(numbers, min_size=1, max_size=20),
    edge_goes_up=st.booleans(),
)
def test_a_step_function_is_the_constant_of_its_piece(
    inner: list[float], constants: list[float], values: list[float], edge_goes_up: bool
) -> None:
    edges = np.array([-np.inf, *sorted(inner), np.inf])
    pieces = np.array(constants[: len(edges) - 1])
    shape = Shape("x", edges, pieces[:, None, None], edge_goes_up=edge_goes_up, missing=np.array([7.0]))
    column = np.array([*values, *inner, np.nan, np.inf, -np.inf])
    by_hand = [
        7.0 if np.isnan(x) else pieces[sum(edge < x or (edge == x and edge_goes_up) for edge in inner)] for x in column
    ]
    alone, together = np.empty((len(column), 1)), np.empty((len(column), 2))
    shape.write(column, alone)
    tables = packed([shape, shape])
    assert tables is not None
    tables.write(np.column_stack([column, column]), together)
    assert alone[:, 0].tobytes() == np.array(by_hand).tobytes()
    assert together[:, 0].tobytes() == together[:, 1].tobytes() == alone[:, 0].tobytes()


@pytest.mark.parametrize("n_edges", [1, 5_000, 40_000])
def test_neighbours_alike_are_one_step(n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    edges = np.sort(rng.normal(size=n_edges))
    pieces = rng.normal(size=n_edges + 1)
    pieces[1::2] = pieces[: len(pieces[1::2]) * 2 : 2]  # every second edge changes nothing
    shape = Shape("x", np.array([-np.inf, *edges, np.inf]), pieces[:, None, None])
    column = rng.normal(size=10_000)
    out = np.empty((len(column), 1))
    shape.write(column, out)
    assert np.array_equal(out[:, 0], pieces[np.searchsorted(edges, column, side="right")])
    assert len(shape.steps.inner) == n_edges // 2
