"""Whether the two arms overlap enough for weights to carry an estimate, and its scores for an interval.

Where a few rows carry most of an effect's variance, the variance itself is known as badly as from that few rows, and an
interval made with it misses more often than it says. With m = (sum s^2)^2 / sum s^4 of centred scores s, the relative
error of their variance is about 1 / sqrt(m); normal scores have m = n / 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from answerable.explanations.path_effects.solver import Levels, Stretch, stretches
from answerable.statistics import Floats, Ints

LEAST_ROWS = 100  # effective rows below which a weighted mean says little
MOST_CLIPPED = 0.01  # share of rows whose propensity had to be moved
LEAST_BEHIND = 20  # rows that an effect's variance has to rest on: its standard error is then known to 11 %
LEAST_IN_CELL = 5  # rows of each arm, of whose mean the scores can tell the scatter
RARE = 1 / 15  # of a group's share in all rows: a probability below it is nearly none
MOST_RARE = 0.05  # share of rows at which one group is as rare as that
LONGEST_NAME = 40  # characters
MEAN_RANGE = (0.9, 1.1)  # of the weights, whose mean is 1 under the true propensities


class WeightRow(NamedTuple):
    """One set of weights.

    Attributes
    ----------
    levels : of the blocks before, and of the rows themselves last
    mean : mean weight, 1 under the true propensities
    effective : (sum w)^2 / sum w^2, the number of equal weights that would scatter as much
    largest : share of the largest weight in all
    of_arm : effective rows over rows of the arm
    rows : rows of the arm
    """

    levels: Levels
    mean: float
    effective: float
    largest: float
    of_arm: float
    rows: int


def weight_rows(weights: Mapping[Levels, Floats]) -> list[WeightRow]:
    """Diagnostics of every set of weights, each once.

    Parameters
    ----------
    weights : by query, (stretches, n)
    """
    found: dict[Levels, WeightRow] = {}
    for levels, table in weights.items():
        for run, weight in zip(stretches(levels), table, strict=True):
            key = weight_levels(levels, run)
            if key not in found:
                there = int(np.count_nonzero(weight))
                effective = float(weight.sum() ** 2 / (weight**2).sum())
                found[key] = WeightRow(
                    key, float(weight.mean()), effective, float(weight.max() / weight.sum()), effective / there, there
                )
    return [found[key] for key in sorted(found, key=lambda key: (len(key), key))]


def weight_levels(levels: Levels, run: Stretch) -> Levels:
    """What a set of weights depends on: levels of the blocks that are known, and the rows' own."""
    return (*levels[: run.known], run.level)


def who(levels: Levels, blocks: Sequence[str], arms: Sequence[str]) -> str:
    """A set of weights in words: which rows stand for whom."""
    own = levels[-1]
    others = [_cut(name) for name, level in zip(blocks, levels[:-1], strict=False) if level != own]
    if not others:
        return f"rows of {_cut(arms[own])}, for everybody"
    return f"rows of {_cut(arms[own])}, with {' and '.join(others)} as of {_cut(arms[1 - own])}"


def _given(blocks: Sequence[str], covariates: bool) -> str:
    """What a propensity is given, in words."""
    return " and ".join([*(["covariates"] if covariates else []), *map(_cut, blocks)]) or "nothing"


def _cut(name: str) -> str:
    """A name as it may stand in a sentence."""
    plain = "".join(sign if sign.isprintable() else "�" for sign in name[:LONGEST_NAME])
    return plain if len(name) <= LONGEST_NAME else f"{plain[:-1]}…"


def rows_behind(psi: Floats, groups: Ints | None = None) -> float:
    """Number of rows, or of groups, that the variance of an effect rests on.

    Parameters
    ----------
    psi : (n,) influence scores of the effect
    groups : (n,) 0, 1, ..., whose rows depend on each other: their sums are what is independent

    Returns
    -------
    (sum s^2)^2 / sum s^4 of the centred scores, 1 to n; n where all scores are equal
    """
    centred = psi - psi.mean()
    squares = (centred if groups is None else np.bincount(groups, weights=centred)) ** 2
    fourth = float((squares**2).sum())
    return float(squares.sum() ** 2 / fourth) if fourth > 0 else float(len(squares))


def rare_share(propensity: Floats, treated: Ints) -> float:
    """Share of rows of a kind at which one of the groups is nearly absent.

    Learners smooth what is rare: there neither a small clip nor light weights show that almost nobody is compared.

    Parameters
    ----------
    propensity : (n,) probability of the comparison
    treated : (n,) 0 or 1
    """
    share = treated.mean()
    return float(np.mean(np.minimum(propensity / share, (1 - propensity) / (1 - share)) < RARE))


def flaws(
    rows: Sequence[WeightRow],
    clipped: Sequence[float],
    rare: Sequence[float],
    behind: Mapping[str, float],
    blocks: Sequence[str],
    arms: Sequence[str],
    smallest_cell: int | None = None,
    unit: str = "rows",
    *,
    covariates: bool = True,
) -> list[str]:
    """What voids the estimates, worst first; empty where the arms overlap.

    Parameters
    ----------
    rows : from `weight_rows`
    clipped : share of rows whose propensity was moved into the allowed range, by number of blocks known
    rare : from `rare_share`, by number of blocks known
    behind : from `rows_behind`, by effect
    blocks : names of the mediator blocks
    arms : names of reference and comparison
    smallest_cell : rows of one arm in the smallest cell, where regressions are cell means
    unit : what ``behind`` counts
    covariates : whether there are any
    """
    found: list[tuple[float, str]] = []
    for row in rows:
        label = who(row.levels, blocks, arms)
        if row.effective < LEAST_ROWS:
            text = f"{label}, count as {row.effective:.0f} of {row.rows} only (at least {LEAST_ROWS} are needed)"
            found.append((LEAST_ROWS / max(row.effective, 1e-9), text))
        if not MEAN_RANGE[0] <= row.mean <= MEAN_RANGE[1]:
            text = f"the weights of {label}, have mean {row.mean:.3g} instead of 1"
            found.append((abs(np.log(max(row.mean, 1e-9))) / np.log(MEAN_RANGE[1]), text))
    for known, share in enumerate(clipped):
        if share > MOST_CLIPPED:
            given = _given(blocks[:known], covariates)
            found.append((share / MOST_CLIPPED, f"{share:.1%} of rows have a propensity of 0 or 1 given {given}"))
    for known, share in enumerate(rare):
        if share > MOST_RARE:
            given = _given(blocks[:known], covariates)
            text = f"given {given}, one group is nearly absent at {share:.0%} of rows, below a fifteenth of its share"
            found.append((share / MOST_RARE, text))
    for name, number in behind.items():
        if number < LEAST_BEHIND:
            how_few = f"rests on {number:.1f} {unit} (at least {LEAST_BEHIND} are needed)"
            text = f"the variance of the effect {_cut(name)} {how_few}"
            found.append((LEAST_BEHIND / number, text))
    if smallest_cell is not None and smallest_cell < LEAST_IN_CELL:
        text = f"a cell holds {smallest_cell} rows of one arm, of whose mean no scatter can be told"
        found.append((LEAST_IN_CELL / smallest_cell, text))
    return [text for _, text in sorted(found, key=lambda one: -one[0])]
