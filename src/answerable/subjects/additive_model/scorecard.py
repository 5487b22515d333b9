"""Scorecards: ``feature, bin_lower, bin_upper | category, points``, one line a bin."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.subjects.table import read_table

from .form import AdditiveModel
from .parts import Shape

BASE, CUTOFF = "(base)", "(cutoff)"


def from_scorecard(table: Any, *, cutoff: float = 0.0, base: float = 0.0) -> AdditiveModel:
    """A scorecard as an additive model that approves where the points reach the cutoff.

    Parameters
    ----------
    table : path or dataframe with columns feature, points, and bin_lower and bin_upper, category, or all three. A bin
        holds its lower end and not its upper one; an empty end is infinite; a line with neither end nor category
        gives the points of a missing value. The features ``(base)`` and ``(cutoff)`` set base points and cutoff.
    cutoff : points from which on the decision is class 1
    base : points that everybody has

    Raises
    ------
    BadInput : a column, bound or number that is not there; bins that leave a gap or overlap
    """
    where = str(table) if isinstance(table, (str, Path)) else "scorecard"
    frame = _checked(read_table(table), where)
    shapes = []
    for (name,), lines in frame.group_by("feature", maintain_order=True):
        if name in (BASE, CUTOFF):
            if lines.height > 1:
                mend = "keep one line"
                raise BadInput(f"{lines.height} lines give it", where=f"{where}, feature {name}", mend=mend)
            base, cutoff = (lines["points"][0], cutoff) if name == BASE else (base, lines["points"][0])
        elif str(name).startswith("(") and str(name).endswith(")"):
            raise unknown("line", str(name), (BASE, CUTOFF), where=where)
        else:
            shapes.append(_shape(str(name), lines, where))
    if not shapes:
        raise BadInput("no line is of a feature", where=where, mend="give each feature its bins or categories")
    return AdditiveModel(
        tuple(shapes), np.array([base]), task="binary", classes=("below", "reached"), cutoff=cutoff, source="scorecard"
    )


def _checked(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    for needed in ("feature", "points"):
        if needed not in frame.columns:
            raise unknown("column", needed, frame.columns, where=where)
    bounds = [name for name in ("bin_lower", "bin_upper") if name in frame.columns]
    if "category" not in frame.columns and len(bounds) < 2:
        mend = "give bin_lower and bin_upper, or category"
        raise BadInput("neither bins nor categories", where=where, mend=mend)
    empty = [name for name in ("bin_lower", "bin_upper", "category") if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None).alias(name) for name in empty).with_row_index("line", offset=2)
    for name in ("points", "bin_lower", "bin_upper"):
        cast = frame[name].cast(pl.Float64, strict=False)
        lost = cast.is_null() & frame[name].is_not_null()
        if name == "points":
            lost = lost | cast.is_null() | ~cast.is_finite().fill_null(False)
        if lost.any():
            row = int(lost.arg_max() or 0)
            raise BadInput(
                f"{frame[name][row]!r} is no finite number" if frame[name][row] is not None else "it is empty",
                where=f"{where}, line {row + 2}, column {name}", mend="give a number",
            )  # fmt: skip
        frame = frame.with_columns(cast.alias(name))
    if (nameless := frame["feature"].is_null()).any():
        line = frame["line"][int(nameless.arg_max() or 0)]
        raise BadInput("it names no feature", where=f"{where}, line {line}", mend="fill in the column feature")
    return frame.with_columns(pl.col("category").cast(pl.String), pl.col("feature").cast(pl.String))


def _shape(name: str, lines: pl.DataFrame, where: str) -> Shape:
    no_end = pl.col("bin_lower").is_null() & pl.col("bin_upper").is_null()
    nothing = lines.filter(no_end & pl.col("category").is_null())
    named = lines.filter(pl.col("category").is_not_null())
    bins = lines.filter(~no_end).sort("bin_lower", nulls_last=False)
    place = f"{where}, feature {name}"
    if nothing.height > 1:
        raise BadInput("two lines have neither bin nor category", where=place, mend="keep one, for missing values")
    if named.height and bins.height:
        raise BadInput("both bins and categories", where=place, mend="give one kind for each feature")
    missing = np.array([nothing["points"][0]]) if nothing.height else None
    if named.height:
        if named["category"].is_duplicated().any():
            raise BadInput("a category stands twice", where=place, mend="keep one line for each")
        return Shape.categories(name, named["category"].to_list(), named["points"].to_numpy(), missing=missing)
    if not bins.height:
        raise BadInput("it has points for a missing value only", where=place, mend="give it bins or categories")
    lower = bins["bin_lower"].fill_null(-math.inf).to_list()
    upper = bins["bin_upper"].fill_null(math.inf).to_list()
    for k in range(len(lower)):
        if not lower[k] < upper[k]:
            raise BadInput(
                f"the bin from {lower[k]:g} to {upper[k]:g} holds no value",
                where=f"{where}, line {bins['line'][k]}, feature {name}", mend="give bin_upper above bin_lower",
            )  # fmt: skip
    for k in range(1, len(lower)):
        if lower[k] != upper[k - 1]:
            what = "overlap" if lower[k] < upper[k - 1] else "leave a gap"
            raise BadInput(
                f"the bins up to {upper[k - 1]:g} and from {lower[k]:g} {what}",
                where=f"{where}, line {bins['line'][k]}, feature {name}", mend="let each begin where the last one ends",
            )  # fmt: skip
    low, high = lower[0], upper[-1]
    if math.isfinite(high):
        high = math.nextafter(high, -math.inf)  # the upper end is outside
    return Shape.table(name, [*lower, upper[-1]], bins["points"].to_numpy(), low=low, high=high, missing=missing)
