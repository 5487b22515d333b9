"""Crops, flips and colour jitter against the standard library, and what the pixels settle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.provenance.generated_images import TRANSFORMS, Transform, views
from tests.oracles.generated_images import jittered


def drawn_of(factors: list[float], order: list[int], *, flip: bool = False, jitter: bool = True) -> views.Drawn:
    return views.Drawn(
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([flip]), np.array([jitter]),
        np.array([factors], np.float32), np.array([order], np.int64),
    )  # fmt: skip


@given(
    st.integers(0, 10_000),
    st.lists(st.floats(0.25, 1.75, width=32), min_size=3, max_size=3),
    st.floats(-0.5, 0.5, width=32),
    st.permutations([0, 1, 2, 3]),
)
@settings(max_examples=40, deadline=None)
def test_the_jitter_is_what_colorsys_and_plain_sums_give(
    seed: int, factors: list[float], turn: float, order: list[int]
) -> None:
    image = np.random.default_rng(seed).random((3, 3, 3), dtype=np.float32)
    found = views.changed(image[None], drawn_of([*factors, turn], order))[0]
    assert found == pytest.approx(jittered(image, [*factors, turn], order), abs=2e-5)


@pytest.mark.parametrize(
    "factors, which, by_hand",
    [
        ([0.5, 1, 1, 0], 0, [0.4, 0.2, 0.1]),
        ([2.0, 1, 1, 0], 0, [1.0, 0.8, 0.4]),
        ([1, 0.0, 1, 0], 1, [0.49472] * 3),  # one pixel: its own grey
        ([1, 1, 0.0, 0], 2, [0.49672] * 3),
        ([1, 1, 1, 1 / 3], 3, [0.2, 0.8, 0.4]),  # a third of the circle moves every channel on by one
    ],
)
def test_one_pixel_by_hand(factors: list[float], which: int, by_hand: list[float]) -> None:
    pixel = np.array([0.8, 0.4, 0.2], np.float32).reshape(1, 3, 1, 1)
    found = views.changed(pixel, drawn_of(factors, [which] + [k for k in range(4) if k != which]))
    grey = 0.2989 * 0.8 + 0.587 * 0.4 + 0.114 * 0.2
    expected = [grey] * 3 if 0.0 in factors[:3] and which else by_hand
    assert found.ravel() == pytest.approx(expected, abs=1e-5)


def test_flipped_twice_is_the_image_itself() -> None:
    image = np.random.default_rng(0).random((1, 3, 5, 5), dtype=np.float32)
    flip = drawn_of([1, 1, 1, 0], [0, 1, 2, 3], flip=True, jitter=False)
    assert (views.changed(views.changed(image, flip), flip) == image).all()
    assert (views.changed(image, flip) == image[..., ::-1]).all()


def test_crops_are_the_pixels_and_black_outside() -> None:
    pixels = np.random.default_rng(0).integers(1, 256, (6, 8, 3), dtype=np.uint8)
    inside = views.Drawn(np.array([1]), np.array([3]), *[np.zeros(1, np.bool_)] * 2, np.ones((1, 4), np.float32), np.zeros((1, 4), np.int64))  # fmt: skip
    assert views.crops(pixels, inside, 4)[0] == pytest.approx(pixels[1:5, 3:7].transpose(2, 0, 1) / 255, abs=1e-7)
    small = views.draw(pixels, n_views=2, size=10)
    cut = views.crops(pixels, small, 10)[0]
    assert cut[:, 2:8, 1:9] == pytest.approx(pixels.transpose(2, 0, 1) / 255, abs=1e-7)
    assert cut.sum() == pytest.approx(pixels.sum() / 255, rel=1e-5)


def test_what_is_drawn_depends_on_pixels_and_state_alone() -> None:
    first, second = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
    again = [views.draw(first.copy(), n_views=5, size=32) for _ in range(2)]
    for part in ("top", "left", "flips", "jitters", "factors", "orders"):
        assert (getattr(again[0], part) == getattr(again[1], part)).all()
    assert (again[0].factors != views.draw(second, n_views=5, size=32).factors).any()
    assert (again[0].factors != views.draw(first, n_views=5, size=32, random_state=1).factors).any()
    # The way of cropping changes the corners and nothing else.
    shared = views.draw(first, n_views=5, size=32, views="shared")
    assert (shared.factors == again[0].factors).all()
    assert set(shared.top) == {4}


@pytest.mark.parametrize("n_views, flipped", [(5, 4), (3, 2), (1, 1), (10, 8)])
def test_the_share_of_flips_is_exact(n_views: int, flipped: int) -> None:
    pixels = np.random.default_rng(n_views).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    assert views.draw(pixels, n_views=n_views, size=32).flips.sum() == flipped


def test_factors_stay_within_their_reach_and_fill_it() -> None:
    made = [views.draw(np.full((4, 4, 3), k, np.uint8), n_views=20, size=4) for k in range(60)]
    factors = np.concatenate([drawn.factors for drawn in made])
    for column, reach, middle in zip(factors.T, TRANSFORMS["paper"][2:], (1, 1, 1, 0)):
        assert column.min() >= middle - reach - 1e-6
        assert column.max() <= middle + reach + 1e-6
        assert np.ptp(column) > 1.9 * reach
    jitters = np.concatenate([drawn.jitters for drawn in made])
    assert abs(jitters.mean() - 0.8) < 4 * np.sqrt(0.16 / len(jitters))
    assert all(sorted(order) == [0, 1, 2, 3] for drawn in made for order in drawn.orders.tolist())


def test_a_transform_that_is_none_is_refused() -> None:
    assert views.transform_of("flow") == Transform(1.0, 1.0, 0.12, 0.12, 0.06, 0.03)
    with pytest.raises(BadInput, match="transform is 'strong'; say paper, flow or identity"):
        views.transform_of("strong")
