"""Rows as numbers: categories by the number of their level, NaN for a missing value; and what lies in a domain."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput, unknown

if TYPE_CHECKING:
    from .parts import Shape

Floats = npt.NDArray[np.float64]
# the ways in which scorecards, EBMs and tables write true and false
TRUTHS = {"true": ("true", "True", "TRUE", "1"), "false": ("false", "False", "FALSE", "0")}


def level_edges(n_levels: int) -> Floats:
    """Edges around the whole numbers 0, 1, ..., at the halves between them."""
    return np.arange(n_levels + 1, dtype=np.float64) - 0.5


def columns_of(X: Any, shapes: Sequence[Shape]) -> list[pl.Series | Floats]:
    """One column a feature, from a dataframe by name or from an array by place."""
    names = [shape.name for shape in shapes]
    if isinstance(X, np.ndarray):
        rows = X[None] if X.ndim == 1 else X
        if rows.ndim != 2 or rows.shape[1] != len(shapes):
            mend = f"give one column each: {', '.join(names[:8])}"
            raise BadInput(f"rows of {rows.shape[-1]} values for {len(shapes)} features", where="X", mend=mend)
        if rows.dtype == object:
            return [
                pl.Series([None if _is_nan(v) else v for v in rows[:, j]], strict=False) for j in range(rows.shape[1])
            ]
        return [rows[:, j] for j in range(rows.shape[1])]
    from answerable.subjects.table import as_table

    frame = as_table(X)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise unknown("column", absent[0], frame.columns, where="X").within("the model's features")
    return [frame[name] for name in names]


def by_place(X: Any, names: Sequence[str]) -> Any:
    """Rows for a model that knows its columns by their place alone."""
    if not hasattr(X, "columns"):
        return X
    own = [str(name) for name in X.columns]  # a dataframe may call them 0, 1, ...
    return X.iloc[:, [own.index(name) for name in names]].to_numpy()


def as_pandas(X: Any) -> Any:
    """Rows as fitted models take them: an array or a pandas frame as it is, any other table as a pandas frame."""
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return X
    from answerable.subjects.table import as_table

    return as_table(X).to_pandas()


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def encoded_column(shape: Shape, column: Any, numbers: Sequence[int] | None = None) -> Floats:
    """A column as numbers: categories by the number of their level, NaN for a missing value."""
    numbers = range(1, len(column) + 1) if numbers is None else numbers
    if not shape.levels:
        return _numbers(shape, column, numbers)
    code = {level: float(k) for k, level in enumerate(shape.levels)}
    entries = column.to_list() if isinstance(column, pl.Series) else list(column)
    out = np.empty(len(entries))
    for i, entry in enumerate(entries):
        if _is_nan(entry):
            out[i] = math.nan
            continue
        found = code.get(level_name(entry), code.get(str(entry)))
        if found is None and str(entry).lower() in TRUTHS:
            found = next((code[word] for word in TRUTHS[str(entry).lower()] if word in code), None)
        if found is None:
            raise BadInput(
                f"{str(entry)[:40]!r} is no category it knows", where=f"row {numbers[i]}, feature {shape.name}",
                mend=f"give {shape.described()}",
            )  # fmt: skip
        out[i] = found
    return out


def level_name(entry: Any) -> str:
    """A category as text: whole floats as whole numbers."""
    if isinstance(entry, (bool, np.bool_)):
        return str(bool(entry))
    if isinstance(entry, (float, np.floating)) and float(entry).is_integer():
        return str(int(entry))
    return str(entry)


def _numbers(shape: Shape, column: Any, numbers: Sequence[int]) -> Floats:
    if isinstance(column, pl.Series):
        if column.dtype in (pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
        if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.String, pl.Null)):
            raise _no_number(shape, f"it holds values of type {column.dtype.base_type()}")  # a date would become days
        cast = column.cast(pl.Float64, strict=False)
        lost = cast.is_null() & column.is_not_null()
        if lost.any():
            row = int(lost.arg_max() or 0)
            raise BadInput(
                f"{str(column[row])[:40]!r} is no number", where=f"row {numbers[row]}, feature {shape.name}",
                mend=f"give {shape.described()}",
            )  # fmt: skip
        return cast.fill_null(math.nan).to_numpy()
    if np.iscomplexobj(column):
        raise _no_number(shape, "it holds complex numbers")
    if np.asarray(column).dtype.kind in "mM":
        raise _no_number(shape, "it holds dates or times")
    try:
        return np.asarray(column, np.float64)
    except (ValueError, TypeError):
        raise _no_number(shape, "it holds text") from None


def _no_number(shape: Shape, what: str) -> BadInput:
    return BadInput(what, where=f"feature {shape.name}", mend=f"give {shape.described()}")


def check_inside(shape: Shape, column: Floats, numbers: Sequence[int]) -> None:
    """Raise for the first value outside the domain; ``numbers`` are of the rows."""
    if _all_inside(shape, column):
        return
    missing = np.isnan(column)
    if shape.missing is None and missing.any():
        row = int(missing.argmax())
        raise BadInput(
            "the value is missing",
            where=f"row {numbers[row]}, feature {shape.name}",
            mend=f"give {shape.described()}",
        )
    outside = (column < shape.low) | (column > shape.high)
    if shape.integer:
        outside |= ~missing & (column != np.floor(column))
    if shape.allowed is not None and not shape.allowed.all():
        outside |= ~missing & ~shape.allowed[shape.piece(column)]
    if outside.any():
        row = int(outside.argmax())
        raise BadInput(
            f"{shape.shown(column[row])} is outside the domain", where=f"row {numbers[row]}, feature {shape.name}",
            mend=f"give {shape.described()}, or widen the domain",
        )  # fmt: skip


def _all_inside(shape: Shape, column: Floats) -> bool:
    """Whether two comparisons already show that nothing is outside; a missing value fails them."""
    whole = shape.allowed is None or bool(shape.allowed.all())
    return whole and not shape.integer and bool(((column >= shape.low) & (column <= shape.high)).all())


def narrowed(shape: Shape, values: Any) -> Shape:
    """The shape over the part of its domain that ``values`` names: two ends of a number, or some categories."""
    where = f"domain, feature {shape.name}"
    if isinstance(values, str) or not isinstance(values, (Sequence, set, frozenset, np.ndarray)):
        mend = "give a list of categories" if shape.levels else "give two numbers, the smaller first"
        raise BadInput(f"{str(values)[:40]} is no {'list' if shape.levels else 'interval'}", where=where, mend=mend)
    if shape.levels:
        names = [level_name(value) for value in values]
        for name in names:
            if name not in shape.levels:
                raise unknown("category", name, shape.levels, where=where)
        kept = np.array([level in names for level in shape.levels])
        if not kept.any():
            raise BadInput("no category is left", where=where, mend=f"give some of {', '.join(shape.levels[:8])}")
        return dataclasses.replace(shape, allowed=kept)
    if len(values) != 2 or not all(isinstance(v, (int, float, np.number)) and not math.isnan(v) for v in values):
        raise BadInput(f"{str(values)[:40]} is no interval", where=where, mend="give two numbers, the smaller first")
    low, high = map(float, values)
    if low > high:
        raise BadInput(f"no value from {low:g} to {high:g}", where=where, mend="give the smaller number first")
    if low > shape.high or high < shape.low:
        mend = "give a part of that"
        raise BadInput(f"{low:g} to {high:g} lies outside {shape.low:g} to {shape.high:g}", where=where, mend=mend)
    return dataclasses.replace(shape, low=max(low, shape.low), high=min(high, shape.high))


def of_whole_numbers(shape: Shape) -> Shape:
    """The shape over the whole numbers of its domain."""
    beyond = math.nextafter(shape.high, math.inf)
    if not shape.levels and math.isfinite(beyond) and beyond == math.floor(beyond):
        shape = dataclasses.replace(shape, high=beyond - 1)  # a bin ends just below its upper end
    return dataclasses.replace(shape, integer=True)
