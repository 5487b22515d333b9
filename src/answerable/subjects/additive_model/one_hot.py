"""One category spread over several columns of 0 and 1: values of it exclude one another, so the domain is no box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput

from .encoding import columns_of
from .parts import Shape

Floats = npt.NDArray[np.float64]

# Columns that are independent never meet with a probability of about exp(-their expected meetings), here 1 in 1,000.
SURELY_MET = 7.0


def refuse_one_hot(shapes: Sequence[Shape], X: Any) -> None:
    """Refuse columns called ``home_own, home_rent, ...`` of which never two are 1, also where one level was dropped.

    Raises
    ------
    BadInput : names the columns
    """
    groups: dict[str, list[int]] = {}
    for j, shape in enumerate(shapes):
        if "_" in shape.name:
            groups.setdefault(shape.name.rsplit("_", 1)[0], []).append(j)
    groups = {stem: places for stem, places in groups.items() if len(places) > 1}
    if not groups:
        return
    columns = columns_of(X, shapes)
    for stem, places in groups.items():
        values = np.column_stack([_numbers(columns[j]) for j in places])
        if np.isin(values, (0.0, 1.0)).all() and _exclude_one_another(values):
            what = f"{', '.join(shapes[j].name for j in places[:4])} are one category in {len(places)} columns"
            mend = "give the pipeline with its OneHotEncoder, which makes them one feature"
            raise BadInput(what, where=f"feature {stem}", mend=mend)


def _exclude_one_another(values: Floats) -> bool:
    """Whether no row has two ones, and rows enough to rule out chance."""
    often = values.mean(axis=0)
    meetings = len(values) * (often.sum() ** 2 - (often**2).sum()) / 2
    return bool((values.sum(axis=1) <= 1).all() and meetings >= SURELY_MET)


def _numbers(column: Any) -> Floats:
    """A column as numbers, NaN for whatever is none."""
    series = column if isinstance(column, pl.Series) else pl.Series(column)
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.String)):
        return np.full(len(series), np.nan)
    return series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
