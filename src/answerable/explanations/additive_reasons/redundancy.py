"""Whether a feature is ever able to matter: redundant when no completion of the others lets it change the class.

Feature i matters when some reachable sum r of the others (offset included) has ``r + high_i >= 0 > r + low_i``. Where
every component is continuous over an interval the reachable sums are an interval too, and the two ends decide (this
corrects the paper's Lemma 7, by which only a component that is identically 0 would be redundant). Over levels the
question is coNP-complete: the ends may prove redundancy, a random completion may find a witness, and else the sums are
listed in two halves that meet in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .completions import MOST_ATOMS, are_on_grid

Floats = npt.NDArray[np.float64]
Word = Literal["redundant", "matters", "unknown"]
TRIES = 64
EPSILON = float(np.finfo(np.float64).eps)


class Redundancy(NamedTuple):
    """The answer for one feature.

    word : redundant, matters or unknown
    proof : what proves it: "ends", "witness", "listed sums", or what was given up
    rest : (n_features,) components of a completion in which the feature decides, NaN where there is none
    """

    word: Word
    proof: str
    rest: Floats


def redundancies(
    levels: Sequence[Floats], continuous: Sequence[bool], offset: float = 0.0, *, error: float = 0.0,
    seed: int = 0,
    most_atoms: int = MOST_ATOMS,
    tries: int = TRIES,
) -> list[Redundancy]:  # fmt: skip
    """The answer for every feature.

    Parameters
    ----------
    levels : each feature's reachable components; of a continuous one its two ends
    continuous : whether every value between a feature's ends is reachable
    offset : intercept less cutoff
    error : how far any sum may be off beyond rounding
    seed : of the completions that are tried; it never changes a proved answer
    most_atoms : sums listed at most, of each half
    tries : completions tried for each feature before its sums are listed
    """
    rng = np.random.default_rng(seed)
    return [_of_feature(i, levels, continuous, offset, error, rng, most_atoms, tries) for i in range(len(levels))]


def _of_feature(
    i: int,
    levels: Sequence[Floats],
    continuous: Sequence[bool],
    offset: float,
    error: float,
    rng: np.random.Generator,
    most: int,
    tries: int,
) -> Redundancy:
    low, high = float(levels[i].min()), float(levels[i].max())
    others = [j for j in range(len(levels)) if j != i]
    nothing = np.full(len(levels), np.nan)
    least = offset + sum(float(levels[j].min()) for j in others)
    greatest = offset + sum(float(levels[j].max()) for j in others)
    doubt = error + (
        0.0
        if are_on_grid([offset], *levels)
        else 4 * len(levels) * EPSILON * (abs(offset) + sum(float(np.abs(part).max()) for part in levels))
    )
    if (low == high and not error) or greatest + high < -doubt or least + low >= doubt:
        return Redundancy("redundant", "ends", nothing)
    # the window of rests in which the feature decides: [-high, -low)
    witness = _witness(i, others, levels, continuous, offset, rng, doubt, tries)
    if witness is not None:
        return Redundancy("matters", "witness", witness)
    free = [continuous[j] for j in others]
    if all(free) and others:
        reached = least < -low - doubt and greatest >= -high + doubt
        return Redundancy("matters" if reached else "unknown", "ends" if reached else "within rounding", nothing)
    if any(free):
        return Redundancy("unknown", "levels and intervals together, no witness found", nothing)
    return _listed(others, levels, offset, -high, -low, doubt, most, nothing)


def _witness(
    i: int, others: list[int], levels: Sequence[Floats], continuous: Sequence[bool], offset: float,
    rng: np.random.Generator, doubt: float, tries: int,
) -> Floats | None:  # fmt: skip
    """A completion that lets the feature decide: random levels, then each moved to where the sum fits best."""
    low, high = float(levels[i].min()), float(levels[i].max())
    middle = -(low + high) / 2
    for _ in range(tries):
        rest = np.array([rng.choice(part) for part in levels])
        rest[i] = 0.0
        for j in rng.permutation(others) if others else []:
            wanted = middle - (offset + rest.sum() - rest[j])
            part = levels[j]
            rest[j] = np.clip(wanted, part.min(), part.max()) if continuous[j] else part[np.abs(part - wanted).argmin()]
        total = offset + rest.sum()
        if total + high >= doubt and total + low < -doubt:
            rest[i] = np.nan
            return rest
    return None


def _listed(
    others: list[int], levels: Sequence[Floats], offset: float, low: float, high: float, doubt: float, most: int,
    nothing: Floats,
) -> Redundancy:  # fmt: skip
    """Whether some sum of the others lies in [low, high), by two sorted lists."""
    halves = [np.zeros(1), np.zeros(1)]
    for j in sorted(others, key=lambda j: -len(levels[j])):
        side = int(len(halves[1]) < len(halves[0]))
        if len(halves[side]) * len(levels[j]) > 4 * most:
            return Redundancy("unknown", f"more than {most:,} sums", nothing)
        halves[side] = np.unique(np.add.outer(halves[side], levels[j]))
    needed = low - offset - halves[0]

    def hit(margin: float) -> bool:
        at = np.searchsorted(halves[1], needed - margin)
        inside = at < len(halves[1])
        return bool(np.any(halves[1][at[inside]] < (high - offset - halves[0] + margin)[inside]))

    if not hit(doubt):
        return Redundancy("redundant", "listed sums", nothing)
    if hit(-doubt):
        return Redundancy("matters", "listed sums", nothing)
    return Redundancy("unknown", "within rounding", nothing)
