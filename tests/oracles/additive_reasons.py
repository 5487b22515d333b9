"""Every query of a small table model by listing all rows and all sets, in whole numbers or fractions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

import numpy as np


class TableModel(NamedTuple):
    """offset, levels of each feature, their probabilities, and which level the row has."""

    offset: int
    levels: list[list[int]]
    probabilities: list[list[Fraction]]
    row: tuple[int, ...]


def random_table_model(rng: np.random.Generator, *, most_features: int = 5, uniform: bool = False) -> TableModel:
    """Small whole numbers, so that ties and scores of 0 are common; both classes."""
    n = int(rng.integers(1, most_features + 1))
    levels = [[int(v) for v in rng.integers(-4, 5, rng.integers(1, 5))] for _ in range(n)]
    probabilities = []
    for part in levels:
        counts = [1] * len(part) if uniform else [int(c) for c in rng.integers(1, 4, len(part))]
        probabilities.append([Fraction(c, sum(counts)) for c in counts])
    row = tuple(int(rng.integers(len(part))) for part in levels)
    return TableModel(int(rng.integers(-5, 6)), levels, probabilities, row)


def score(model: TableModel, row: Sequence[int]) -> int:
    return model.offset + sum(part[k] for part, k in zip(model.levels, row, strict=True))


def completions(model: TableModel, fixed: Sequence[int]) -> list[tuple[int, ...]]:
    choices = [[model.row[j]] if j in fixed else range(len(part)) for j, part in enumerate(model.levels)]
    return list(itertools.product(*choices))


def decided(model: TableModel, row: Sequence[int]) -> bool:
    return score(model, row) >= 0


def is_sufficient(model: TableModel, fixed: Sequence[int]) -> bool:
    own = decided(model, model.row)
    return all(decided(model, row) == own for row in completions(model, fixed))


def subsets(n: int, size: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(n), size))


def smallest_reasons(model: TableModel) -> list[tuple[int, ...]]:
    n = len(model.levels)
    for size in range(n + 1):
        found = [fixed for fixed in subsets(n, size) if is_sufficient(model, fixed)]
        if found:
            return found
    raise AssertionError("the whole row always suffices")


def smallest_change(model: TableModel) -> int | None:
    n = len(model.levels)
    for size in range(1, n + 1):
        for changed in subsets(n, size):
            if not is_sufficient(model, [j for j in range(n) if j not in changed]):
                return size
    return None


def cheapest_change(model: TableModel, costs: Sequence[int]) -> int | None:
    n = len(model.levels)
    found = [
        sum(costs[j] for j in changed)
        for size in range(1, n + 1)
        for changed in subsets(n, size)
        if not is_sufficient(model, [j for j in range(n) if j not in changed])
    ]
    return min(found, default=None)


def expectation(model: TableModel, fixed: Sequence[int], of: Callable[[int], float]) -> Fraction | float:
    """E of a function of the score when the features of ``fixed`` are the row's."""
    total: Fraction | float = Fraction(0)
    for row in completions(model, fixed):
        mass = Fraction(1)
        for j, k in enumerate(row):
            if j not in fixed:
                mass *= model.probabilities[j][k]
        total += mass * of(score(model, row))
    return total


def probability_kept(model: TableModel, fixed: Sequence[int]) -> Fraction:
    own = decided(model, model.row)
    found = expectation(model, fixed, lambda s: Fraction(int((s >= 0) == own)))
    assert isinstance(found, Fraction)
    return found


def shapley(model: TableModel, of: Callable[[int], float]) -> list[float]:
    n = len(model.levels)
    value = {fixed: expectation(model, fixed, of) for size in range(n + 1) for fixed in subsets(n, size)}
    out = []
    for i in range(n):
        total = Fraction(0)
        for fixed, without in value.items():
            if i not in fixed:
                weight = Fraction(1, n * comb(n - 1, len(fixed)))
                total += weight * (value[tuple(sorted((*fixed, i)))] - without)
        out.append(float(total))
    return out


def is_redundant(model: TableModel, i: int) -> bool:
    others = [range(len(part)) for j, part in enumerate(model.levels) if j != i]
    for rest in itertools.product(*others):
        seen = {decided(model, (*rest[:i], k, *rest[i:])) for k in range(len(model.levels[i]))}
        if len(seen) > 1:
            return False
    return True
