"""Values that a method can work with, or one line that says which was found and which may be chosen."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from answerable.errors import BadInput


def whole(value: Any, where: str, least: int, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``.

    Raises
    ------
    BadInput
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        mend = f"choose a whole number from {least}" + ("" if most is None else f" to {most}")
        raise BadInput(f"it is {value!r:.40}", where=where, mend=mend)
    return number


def between(value: Any, where: str, low: float, high: float) -> float:
    """A number above ``low`` and below ``high``.

    Raises
    ------
    BadInput
    """
    if isinstance(value, (str, bool)) or not _is_between(value, low, high):
        raise BadInput(f"it is {value!r:.40}", where=where, mend=f"choose a number above {low:g} and below {high:g}")
    return float(value)


def _is_between(value: Any, low: float, high: float) -> bool:
    try:
        return low < float(value) < high
    except (TypeError, ValueError):
        return False


def choice(value: Any, where: str, known: Iterable[Any]) -> None:
    """One of some words.

    Raises
    ------
    BadInput
    """
    words = list(known)
    if not any(value == word for word in words):
        raise BadInput(f"it is {value!r:.40}", where=where, mend=f"choose from {', '.join(map(str, words))}")
