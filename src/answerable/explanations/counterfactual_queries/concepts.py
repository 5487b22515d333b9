"""Tables of concepts as numbers: numeric levels as they are, words by their place in the alphabet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, unknown

Floats = npt.NDArray[np.float64]
Level = str | float

MOST_LEVELS = 50  # of a concept that may move, and of one whose distribution is extracted
LEAST_SOFT = 20  # different fractions from which on a column counts as soft


class BadConcepts(BadInput, ValueError):
    """Bad input to the estimator; scikit-learn's tools look for a ValueError."""


class Coding(NamedTuple):
    """What a column of concepts may hold.

    Parameters
    ----------
    names : of the columns
    levels : by column, its levels in order: numbers, or words
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]

    def values(self, column: int) -> Floats:
        """A column's levels as numbers."""
        levels = self.levels[column]
        return np.arange(len(levels), dtype=float) if isinstance(levels[0], str) else np.array(levels, float)

    def value(self, name: str, level: Any) -> float:
        """One level of a column as a number.

        Raises
        ------
        UnknownName : there is no such column
        BadConcepts : there is no such level; names those that there are
        """
        if name not in self.names:
            raise unknown("concept", str(name), self.names, where="query")
        levels = self.levels[self.names.index(name)]
        found = _level(level, levels)
        if found is None:
            raise BadConcepts(f"{level!r} was never observed", where=f"concept {name}", mend=f"give {listed(levels)}")
        return float(levels.index(found)) if isinstance(found, str) else float(found)


def listed(levels: Sequence[Level]) -> str:
    """Levels in words."""
    shown = [level if isinstance(level, str) else f"{level:g}" for level in levels[:12]]
    return f"{', '.join(shown)}, ... ({len(levels)} in all)" if len(levels) > 12 else " or ".join(shown)


def columns_of(table: Any) -> Any:
    """A table of concepts as polars: a dataframe, a dictionary of columns, or an array (columns c0, c1, ...)."""
    import polars as pl

    from answerable.subjects.table import as_table

    if isinstance(table, (np.ndarray, list)):
        array = np.asarray(table)
        if array.ndim != 2:
            raise BadConcepts(f"an array of shape {array.shape} is no table", where="concepts", mend="give (n, d)")
        return pl.DataFrame({f"c{j}": array[:, j] for j in range(array.shape[1])})
    return as_table(table)


def learned(table: Any, *, where: str = "concepts") -> Coding:
    """The levels of each column.

    Raises
    ------
    BadConcepts : a missing entry, a column of one level, columns coded -1/1 beside columns coded 0/1
    """
    frame = columns_of(table)
    levels = []
    for name in frame.columns:
        found = _distinct(frame[name], f"{where}, column {name}")
        if len(found) < 2:
            problem, mend = f"it has the one level {listed(found)}", "leave it out: nothing can be learned about it"
            raise BadConcepts(problem, where=f"{where}, column {name}", mend=mend)
        levels.append(found)
    signed = [name for name, found in zip(frame.columns, levels) if found == (-1.0, 1.0)]
    plain = [name for name, found in zip(frame.columns, levels) if found == (0.0, 1.0)]
    if signed and plain:
        problem = f"{signed[0]!r} is coded -1/1 and {plain[0]!r} is coded 0/1"
        raise BadConcepts(problem, where=where, mend="code all of them one way")
    return Coding(tuple(frame.columns), tuple(levels))


def encoded(table: Any, coding: Coding, *, where: str = "concepts") -> Floats:
    """A table as numbers.

    Returns
    -------
    (n, d) float64, columns as in ``coding``

    Raises
    ------
    UnknownName : a column is missing
    BadConcepts : a missing entry, or a word that was never observed; names the row
    """
    frame = columns_of(table)
    found = np.empty((frame.height, len(coding.names)))
    for j, (name, levels) in enumerate(zip(coding.names, coding.levels)):
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=where)
        cells = _cells(frame[name], f"{where}, column {name}")
        if isinstance(levels[0], str):
            place = {level: float(number) for number, level in enumerate(levels)}
            for row, cell in enumerate(cells):
                if cell not in place:
                    spot, mend = f"{where}, column {name}, row {row + 1}", f"it was fitted with {listed(levels)}"
                    raise BadConcepts(f"{str(cell)[:40]!r} was never observed", where=spot, mend=mend)
                found[row, j] = place[cell]
        else:
            found[:, j] = cells
    return found


def soft_columns(coding: Coding) -> list[str]:
    """The columns that hold fractions between 0 and 1: probabilities in place of concepts."""
    return [
        name
        for name, levels in zip(coding.names, coding.levels)
        if not isinstance(levels[0], str)
        and len(levels) >= LEAST_SOFT
        and all(0 <= level <= 1 for level in levels if not isinstance(level, str))
    ]


def tell_the_same(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Whether each value of one column goes with one value of the other, and the other way round."""
    codes = [np.unique(column, return_inverse=True)[1] for column in (first, second)]
    pairs = len(np.unique(codes[0] * (codes[1].max() + 1) + codes[1]))
    return bool(pairs == codes[0].max() + 1 == codes[1].max() + 1)


def _distinct(column: Any, where: str) -> tuple[Level, ...]:
    cells = _cells(column, where)
    return tuple(sorted(set(cells)) if isinstance(cells, list) else np.unique(cells).tolist())


def _cells(column: Any, where: str) -> Any:
    """A column's cells, floats or words, none missing."""
    import polars as pl

    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        cells = column.cast(pl.String).to_list()
        bad = next((row for row, cell in enumerate(cells) if cell is None), None)
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        cells = column.cast(pl.Float64).to_numpy()
        bad = int(np.argmin(np.isfinite(cells))) if len(cells) and not np.isfinite(cells).all() else None
    else:
        problem, mend = f"cells of type {column.dtype} are no levels", "give numbers or words"
        raise BadConcepts(problem, where=where, mend=mend)
    if bad is not None:
        mend = "mend the entry or drop the row"
        raise BadConcepts("the entry is missing or not finite", where=f"{where}, row {bad + 1}", mend=mend)
    return cells


def _level(given: Any, levels: Sequence[Level]) -> Level | None:
    """The level that is meant: itself, or a number written as a word."""
    if np.ndim(given):
        return None
    if given in levels:
        return levels[levels.index(given)]
    if isinstance(levels[0], str):
        return next((level for level in levels if level == str(given)), None)
    if isinstance(given, str) and levels in ((0.0, 1.0), [0.0, 1.0]):  # a column of truth values is one of 0 and 1
        given = {"false": 0.0, "true": 1.0}.get(given.strip().lower(), given)
    try:
        number = float(given)
    except (TypeError, ValueError):
        return None
    numbers = [entry for entry in levels if not isinstance(entry, str)]
    if math.isfinite(number) and len(levels) > MOST_LEVELS and min(numbers) <= number <= max(numbers):
        return number  # a continuous concept may be set between two observed values
    return number if number in levels else None


def as_values(query: Mapping[str, Any], coding: Coding) -> dict[str, float]:
    """A query's levels as numbers."""
    return {name: coding.value(name, level) for name, level in query.items()}
