"""What numbers, labels, levels and seeds must be before anything is computed from them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from answerable.errors import BadInput

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = tuple[float, float]

UNBOUNDED: Bounds = (-np.inf, np.inf)


def numbers_of(values: ArrayLike, name: str, *, ndim: int = 1, least: int = 1, infinite: bool = False) -> Floats:
    """``values`` as an array of float64 in which nothing is missing.

    Parameters
    ----------
    values : array of ``ndim`` dimensions, rows first
    name : what the values are called where they came from; it stands in the error
    ndim : number of dimensions demanded
    least : fewest rows allowed
    infinite : whether infinities are numbers here (a score that only ranks may be infinite)

    Raises
    ------
    BadInput : no numbers, wrong shape, too few rows, or a missing value, whose row (counted from 1) is named
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("these are not numbers", where=name, mend="give an array of numbers") from None
    if array.ndim != ndim:
        raise BadInput(f"the shape is {array.shape}", where=name, mend=f"give an array of {ndim} dimension(s)")
    if len(array) < least:
        raise BadInput(f"there are {len(array)} rows", where=name, mend=f"give at least {least}")
    wrong = np.isnan(array) if infinite else ~np.isfinite(array)
    if wrong.any():
        first = np.argwhere(wrong)[0]
        column = f", column {first[1] + 1}" if ndim > 1 else ""
        raise BadInput(
            f"the value is {array[tuple(first)]:g}",
            where=f"{name}, row {first[0] + 1}{column}",
            mend="drop the row or fill it in",
        )
    return array


def within_bounds(values: Floats, bounds: Bounds, name: str) -> None:
    """Refuse bounds that are no range, and values outside them.

    Raises
    ------
    BadInput : ``bounds`` are not increasing, or a value lies outside; its row (counted from 1) is named
    """
    low, high = bounds
    if not low < high:
        raise BadInput(f"bounds are ({low:g}, {high:g})", where=name, mend="the first must lie below the second")
    outside = (values < low) | (values > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise BadInput(
            f"{values[row]:g} is outside ({low:g}, {high:g})",
            where=f"{name}, row {row + 1}",
            mend="mend the value or the bounds",
        )


def same_length(first: Any, second: Any, names: str) -> None:
    """Refuse two columns that do not hold the same rows.

    Raises
    ------
    BadInput : the lengths differ
    """
    if len(first) != len(second):
        raise BadInput(f"there are {len(first)} and {len(second)} rows", where=names, mend="give one of each per row")


def level_of(level: object) -> float:
    """A confidence level strictly between 0 and 1.

    Raises
    ------
    BadInput : it is not
    """
    if not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise BadInput(f"level is {level!r}", mend="it must lie between 0 and 1; 0.95 is usual")
    return float(level)


def rate_of(rate: object, name: str) -> float:
    """A rate strictly between 0 and 1 called ``name``.

    Raises
    ------
    BadInput : it is not
    """
    if not isinstance(rate, int | float | np.floating) or not 0 < rate < 1:
        raise BadInput(f"{name} is {rate!r}", mend="it must lie between 0 and 1; 0.05 is usual")
    return float(rate)


def count_of(count: object, name: str, *, least: int = 0) -> int:
    """A whole number of at least ``least`` called ``name``.

    Raises
    ------
    BadInput : it is not
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        raise BadInput(f"{name} is {count!r}", mend=f"it must be a whole number of at least {least}")
    return int(count)


def generator(seed: object, *branch: int) -> np.random.Generator:
    """A generator that depends on ``seed`` and ``branch`` alone.

    Parameters
    ----------
    seed : whole number of at least 0; there is no default, since a result that depends on chance must say on which
    branch : further whole numbers that set this stream apart from others of the same seed

    Raises
    ------
    BadInput : ``seed`` is not such a number
    """
    return np.random.default_rng([count_of(seed, "seed"), *branch] if branch else count_of(seed, "seed"))


def classes_of(labels: ArrayLike, name: str = "labels") -> Bools:
    """Labels 0 and 1 (or False and True), both present, as booleans.

    Raises
    ------
    BadInput : another label (its row, counted from 1, is named), or only one class
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise BadInput(f"the shape is {array.shape}", where=name, mend="give one label per row")
    if array.dtype == np.bool_:
        positive = array
    else:
        array = numbers_of(array, name)
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise BadInput(f"the label is {array[row]:g}", where=f"{name}, row {row + 1}", mend="use 0 and 1")
        positive = array == 1
    if positive.all() or not positive.any():
        raise BadInput(
            f"every one of {len(positive)} labels is {int(positive.all())}", where=name, mend="both classes are needed"
        )
    return positive


def codes_of(groups: ArrayLike, n_rows: int, name: str) -> tuple[NDArray[Any], Ints]:
    """The sorted distinct groups, and for each row the position of its group among them.

    Raises
    ------
    BadInput : not one group per row, or a row whose group is missing
    """
    array = np.asarray(groups)
    if array.ndim != 1 or len(array) != n_rows:
        raise BadInput(f"the shape is {array.shape}", where=name, mend=f"give one per row, {n_rows} in all")
    missing = array != array if array.dtype.kind in "fO" else np.zeros(n_rows, dtype=bool)
    if array.dtype.kind == "O":
        missing = missing | np.array([value is None for value in array])
    if missing.any():
        raise BadInput("there is no value", where=f"{name}, row {int(np.argmax(missing)) + 1}", mend="drop the row")
    distinct, codes = np.unique(array, return_inverse=True)
    return distinct, codes.astype(np.int64)
