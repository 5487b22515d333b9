"""What settings must be, before anything is looked at or fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

from answerable.errors import BadInput

ABOVE_0 = "give a number above 0"


def positive(value: object, name: str, *, where: str = "", mend: str = ABOVE_0, zero: bool = False) -> float:
    """A finite number above 0, or at least 0 where ``zero`` may be.

    Raises
    ------
    BadInput : it is not
    """
    number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not number or not (value >= 0 if zero else value > 0):  # type: ignore[operator]
        raise BadInput(f"{name} is {value!r}", where=where, mend=mend)
    return float(value)  # type: ignore[arg-type]


def whole(value: object, name: str, *, least: int = 1, where: str = "", mend: str = "") -> int:
    """A whole number of at least ``least``.

    Raises
    ------
    BadInput : it is not
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise BadInput(f"{name} is {value!r}", where=where, mend=mend or f"give a whole number of at least {least}")
    return int(value)


def one_of(value: object, known: Sequence[str], name: str) -> None:
    """Refuse what is none of the known words.

    Raises
    ------
    BadInput : it is not
    """
    if not isinstance(value, str) or value not in known:
        raise BadInput(f"{name} is {value!r}", mend=f"say {', '.join(known[:-1])} or {known[-1]}")
