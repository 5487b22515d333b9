"""What the pictures are drawn from: thumbnails, cells of ink, corners of ROC curves, and their titles."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.answer import Figure
from answerable.provenance.detection_curves import roc_points
from answerable.provenance.generated_images import figures

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_thumbnail_is_made_of_means() -> None:
    pixels = np.zeros((3, 100, 100), np.float32)
    pixels[0, :4, :4] = 1  # one cell of four by four, all red
    found = figures.thumbnail(pixels)
    assert found.shape == (25, 25)
    assert found[0, 0] == pytest.approx(0.2989, abs=1e-6)
    assert found.sum() == pytest.approx(0.2989, abs=1e-6)
    odd = figures.thumbnail(np.full((3, 37, 37), 0.5, np.float32))
    assert odd == pytest.approx(np.full((25, 25), 0.5), abs=1e-3)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_cells_cover_every_place_once_with_its_ink(seed: int, side: int) -> None:
    image = np.random.default_rng(seed).choice([0.0, 0.4, 1.0], (side, side))
    ink = np.zeros((side, side), int)
    for level, cell in figures._cells(image, 10.0, 20.0):
        x, x2 = (round((cell[name] - 10) / figures.CELL_PX) for name in ("x", "x2"))
        y, y2 = (round((cell[name] - 20) / figures.CELL_PX) for name in ("y", "y2"))
        assert not ink[y:y2, x:x2].any()
        ink[y:y2, x:x2] = level + 1
    assert (ink == np.rint((1 - image) * figures.LEVELS)).all()


def test_a_roc_curve_by_hand() -> None:
    labels, scores = np.array([True, False, True, False]), np.array([4.0, 3.0, 2.0, 1.0])
    assert roc_points(labels, scores) == [(0.25, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)]


def test_titles_say_the_finding() -> None:
    points = pl.DataFrame({"group": ["calibration"] * 3 + ["asked"] * 2, "score": [0.1, 0.2, 0.3, 0.25, 0.9]})
    drawn = Figure.drawn(figures.densities, points, [0.3], name="ConV")
    assert drawn.title == "1 of 2 images lie beyond the threshold"
    rows = pl.DataFrame(
        {"image": ["a", "a", "b"], "change": ["x", "y", "x"], "same": [True, False, None], "decision": [""] * 3}
    )
    assert Figure.drawn(figures.stability_matrix, rows).title.startswith("1 of 2 decisions stay")
    curves = pl.DataFrame({"statistic": ["noise"] * 2, "fpr": [0.05, 1.0], "tpr": [0.4, 1.0], "auroc": [0.7] * 2})
    assert (
        Figure.drawn(figures.roc_curves, curves, ours="noise").title
        == "At 5 % false alarms noise finds 40% of generated images"
    )


def test_a_sheet_of_too_many_images_says_how_many_it_shows() -> None:
    noise = np.random.default_rng(0).random((40, 25, 25))
    pairs = [(f"image {k}", "p 0.1; not flagged", one, one) for k, one in enumerate(noise)]
    drawn = Figure.drawn(figures.image_sheet, pairs, title="0 of 40 images are flagged")
    assert "of 40" in drawn.wide["title"]["subtitle"][-1]
    assert drawn.description.split()[0] != "40"
