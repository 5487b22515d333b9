"""All reasons of a decision from which nothing can be left out, the smallest first.

A set of known facts is a reason if what the other features could take away falls short of the margin. That is a sum
against a line, so the minimal reasons are listed without search: features in order of what they could take away, each
set ends with the feature that brings it over the line, and a branch is entered only if the features left can still
bring it there. Every branch ends in a reason, so one reason follows the other after at most n^2 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy.typing as npt


def minimal_reasons(
    contributions: npt.NDArray[Any],
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
    offset: float = 0.0,
    *,
    frozen: Sequence[int] = (),
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Each minimal reason of one row, and by how much its worst completion clears the line.

    Parameters
    ----------
    contributions : (n_features,) float64, of the row; sums are taken in fractions of these numbers, without rounding
    low, high : (n_features,) float64, ends of each component over its domain
    offset : intercept less cutoff
    frozen : numbers of features that cannot take another value; they are in no reason

    Yields
    ------
    numbers of the features, the one that could take away most first; slack. The first is a smallest reason
    """
    own = [Fraction(float(value)) for value in contributions]
    score = sum(own, Fraction(float(offset)))
    positive = score >= 0
    worst = low if positive else high
    excess = [abs(value - Fraction(float(end))) for value, end in zip(own, worst, strict=True)]
    for j in frozen:
        excess[j] = Fraction(0)
    order = sorted(range(len(own)), key=lambda j: -excess[j])
    left = [Fraction(0)] * (len(order) + 1)  # what the features from a place on could take away together
    for place in reversed(range(len(order))):
        left[place] = left[place + 1] + excess[order[place]]
    needed = left[0] - abs(score)

    def enough(kept: Fraction) -> bool:
        # A score of exactly 0 is class 1: class 0 must be kept by more than nothing.
        return kept >= needed if positive else kept > needed

    if enough(Fraction(0)):
        yield (), float(-needed)
        return
    stack: list[tuple[tuple[int, ...], Fraction, int]] = [((), Fraction(0), 0)]
    while stack:
        chosen, kept, place = stack.pop()
        if place == len(order) or not enough(kept + left[place]):
            continue
        j = order[place]
        stack.append((chosen, kept, place + 1))
        if enough(kept + excess[j]):
            yield (*chosen, j), float(kept + excess[j] - needed)
        else:
            stack.append(((*chosen, j), kept + excess[j], place + 1))
