"""What file types and sizes alone would tell: in many collections all real images are JPEGs and all fakes are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from answerable.statistics import Floats
from answerable.subjects.images import Picture

TYPE_CONTROL = "file type alone"
BAND = 5  # of JPEG qualities that count as one
MOSTLY = 0.5  # of a set that has to be of other types than the calibration before it is said


def format_controls(pictures: Sequence[Picture], labels: np.ndarray) -> dict[str, Floats]:
    """Scores that look at the file alone: its type with its JPEG quality, and its number of pixels.

    Parameters
    ----------
    pictures : n images
    labels : (n,) bool, True for generated

    Returns
    -------
    by name (n,) float64. A type's score is the share of generated images among those of its type in the *other* half of
    the images, so that it is not told by the image itself; size takes the direction that serves it best
    """
    kinds = [_kind(picture) for picture in pictures]
    pixels = np.array([picture.width * picture.height for picture in pictures], dtype=np.float64)
    order = np.empty(len(pictures), dtype=np.int64)
    for label in (True, False):  # halves by turns within each class
        rows = np.flatnonzero(labels == label)
        order[rows] = np.arange(len(rows)) % 2
    type_score = np.empty(len(pictures))
    for half in (0, 1):
        seen: Counter[str] = Counter(kinds[k] for k in np.flatnonzero(order != half))
        fakes: Counter[str] = Counter(kinds[k] for k in np.flatnonzero((order != half) & labels))
        base = labels[order != half].mean()
        for k in np.flatnonzero(order == half):
            type_score[k] = fakes[kinds[k]] / seen[kinds[k]] if seen[kinds[k]] else base
    ranks = np.searchsorted(np.sort(pixels), pixels, side="left") + np.searchsorted(
        np.sort(pixels), pixels, side="right"
    )
    larger = ranks[labels].mean() >= ranks[~labels].mean()
    size_name = "size alone (more pixels)" if larger else "size alone (fewer pixels)"
    return {TYPE_CONTROL: type_score, size_name: pixels if larger else -pixels}


def type_rows(sets: dict[str, list[Picture]]) -> pl.DataFrame:
    """File types of each set of images, with their JPEG quality and size."""
    rows = []
    for name, pictures in sets.items():
        for encoding, count in sorted(Counter(picture.encoding for picture in pictures).items()):
            of_type = [picture for picture in pictures if picture.encoding == encoding]
            qualities = [picture.quality for picture in of_type if picture.quality is not None]
            rows.append(
                {
                    "set": name,
                    "encoding": encoding,
                    "images": count,
                    "share": count / len(pictures),
                    "quality": float(np.median(qualities)) if qualities else None,
                    "side": float(np.median([min(picture.width, picture.height) for picture in of_type])),
                }
            )
    schema = {"set": pl.String, "encoding": pl.String, "images": pl.Int64, "share": pl.Float64, "quality": pl.Float64,
              "side": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def unlike(sets: dict[str, list[Picture]]) -> str:
    """A sentence where the calibration is made of other file types than the rest; empty where it is not."""
    known = sets.get("calibration", [])
    others = [picture for name, pictures in sets.items() if name != "calibration" for picture in pictures]
    if not known or not others:
        return ""
    first, second = (Counter(_kind(picture) for picture in part) for part in (known, others))
    kinds = sorted({*first, *second})
    apart = sum(abs(first[kind] / len(known) - second[kind] / len(others)) for kind in kinds) / 2
    if apart <= MOSTLY:
        return ""
    named = [count.most_common(1)[0][0] for count in (first, second)]
    return (
        f"Calibration and asked images differ in file type ({named[0]} against {named[1]}): a score may follow the"
        " file, not the image; harmonize re-encodes all alike."
    )


def _kind(picture: Picture) -> str:
    if picture.quality is None:
        return picture.encoding
    low = picture.quality // BAND * BAND
    return f"{picture.encoding}, quality {low} to {low + BAND - 1}"
