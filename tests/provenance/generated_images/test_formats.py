"""What file types and sizes alone tell, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from answerable.provenance.generated_images.formats import format_controls, type_rows, unlike
from answerable.statistics import auroc_interval
from answerable.subjects import Picture


def picture(encoding: str = "png", *, quality: int | None = None, side: int = 10) -> Picture:
    return Picture("", None, None, encoding=encoding, width=side, height=side, quality=quality)


def areas(pictures: list[Picture], labels: list[bool]) -> dict[str, float]:
    known = np.array(labels)
    return {name: auroc_interval(known, column).value for name, column in format_controls(pictures, known).items()}


def test_types_that_tell_everything_and_types_that_tell_nothing() -> None:
    labels = [True] * 4 + [False] * 4
    apart = [picture("png")] * 4 + [picture("jpeg", quality=90)] * 4
    assert areas(apart, labels) == {"file type alone": 1.0, "size alone (more pixels)": 0.5}
    assert areas([picture()] * 8, labels) == {"file type alone": 0.5, "size alone (more pixels)": 0.5}
    qualities = [picture("jpeg", quality=96)] * 4 + [picture("jpeg", quality=75)] * 4
    assert areas(qualities, labels)["file type alone"] == 1.0


def test_a_type_that_only_one_image_has_tells_nothing_of_that_image() -> None:
    each = [picture(f"type {k}") for k in range(8)]
    assert areas(each, [True] * 4 + [False] * 4)["file type alone"] == 0.5


@pytest.mark.parametrize("larger, name", [(True, "size alone (more pixels)"), (False, "size alone (fewer pixels)")])
def test_size_takes_the_direction_that_serves_it(larger: bool, name: str) -> None:
    sizes = [picture(side=20 if larger else 5)] * 3 + [picture(side=10)] * 3
    assert areas(sizes, [True] * 3 + [False] * 3)[name] == 1.0


def test_sets_of_other_types_than_the_calibration_are_said() -> None:
    sets = {
        "calibration": [picture("jpeg", quality=92)] * 4,
        "asked": [picture("png")] * 3 + [picture("jpeg", quality=92)],
    }
    assert unlike(sets).startswith(
        "Calibration and asked images differ in file type (jpeg, quality 90 to 94 against png)"
    )
    assert unlike({**sets, "asked": [picture("png")] + [picture("jpeg", quality=93)] * 3}) == ""
    assert unlike({"asked": [picture()]}) == ""
    rows = type_rows(sets)
    assert rows["share"].to_list() == [1.0, 0.25, 0.75]
    assert rows["quality"].to_list() == [92.0, 92.0, None]
