"""What becomes of an expectation, and how outcomes are joined: Kleene's three-valued logic (Kleene 1938)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from answerable.answer import Kind

Word = Literal["held", "failed", "undecided", "not run"]


@dataclass(frozen=True, slots=True)
class Observed:
    """What a comparison of one number with one line looked at, for drawing the interval against its line.

    Parameters
    ----------
    value : the number
    low, high : ends of its interval; both ``value`` if exact, None where the interval is open
    kind : ``estimated``, ``bounds``, ``exact`` or ``one_sided``
    unit : in words, "1" for a bare ratio, "" where it is not known
    line, line_high : the line to clear; two for a band; None where the expectation is not about one number and one line
    side : where the expectation holds: above the line, below it, or in the ``band`` from ``line`` to ``line_high``
        (equal for ``==`` without a tolerance); None where it holds outside a band or everywhere but on the line
    """

    value: float
    low: float | None
    high: float | None
    kind: Kind
    unit: str
    line: float | None = None
    line_high: float | None = None
    side: Literal[">", "<", "band"] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an expectation, and why, in one line."""

    word: Word
    reason: str
    observed: Observed | None = None


def kleene_and(first: Word, second: Word) -> Word:
    """Held if both are, failed if one is, else undecided; not run if one could not run."""
    words = {first, second}
    return next(word for word in ("not run", "failed", "undecided", "held") if word in words)


def kleene_or(first: Word, second: Word) -> Word:
    """Held if one is, failed if both are, else undecided; not run if one could not run."""
    words = {first, second}
    return next(word for word in ("not run", "held", "undecided", "failed") if word in words)


def kleene_not(word: Word) -> Word:
    """Held becomes failed and failed becomes held."""
    opposite: dict[Word, Word] = {"held": "failed", "failed": "held"}
    return opposite.get(word, word)
