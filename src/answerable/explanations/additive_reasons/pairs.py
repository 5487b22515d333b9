"""The worst completion of a row when some terms join two features.

The worst completion of a set is the least (or greatest) value of a sum of terms over one and two variables. Each free
feature is reduced to states - its bins in the pair tables, and of each bin only the best main effect - and eliminated
one after another: the table of all its neighbours is built and its best state taken (bucket elimination). This is exact
while the largest table stays below a cap. Beyond it, features are fixed one by one, the state of the best bound first,
until what is left can be eliminated (branch and bound); where that takes too many steps the answer is two bounds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MOST_CELLS = 50_000_000
FEW_CELLS = 50_000  # entries of one table that are filled faster than branch and bound gets by without it
MOST_AXES = 32  # of an array
MOST_STEPS = 200  # partial completions that branch and bound goes on from
MOST_EXACT_CELLS = 200_000  # entries of one table when sums are taken in fractions


class States(NamedTuple):
    """A feature's states: what they contribute alone, and a value that stands for each.

    low, high : (n_states,) least and greatest main effect of each state
    at_low, at_high : (n_states,) encoded values that reach them
    """

    low: Floats
    high: Floats
    at_low: Floats
    at_high: Floats


class Table(NamedTuple):
    """A pair term over the states of two features."""

    first: int
    second: int
    values: Floats


class Extreme(NamedTuple):
    """The least value of the score over the free features.

    value : of the score, nothing is less; a lower bound where ``reached`` is greater
    reached : of the score at the witness
    witness : (n_features,) encoded values of a completion
    """

    value: Any
    reached: Any
    witness: Floats

    @property
    def exact(self) -> bool:
        """Whether nothing is less than the witness."""
        return bool(self.value >= self.reached)


class PairModel(NamedTuple):
    """States of every feature, tables of every pair, and the offset (intercept less cutoff)."""

    states: Sequence[States]
    tables: Sequence[Table]
    offset: float


def least(
    model: PairModel, own: Floats, own_states: Sequence[int], row: Floats, free: Bools, sign: int, *,
    fractions: bool = False,
) -> Extreme:  # fmt: skip
    """The least of ``sign * score`` over the free features, the others being the row's.

    Parameters
    ----------
    model : states and tables
    own : (n_features,) main effects of the row
    own_states : (n_features,) number of the row's state in each feature
    row : (n_features,) encoded row
    free : (n_features,) bool
    sign : 1 for the least score, -1 for the greatest
    fractions : sums of the stored doubles without rounding, far slower
    """
    as_it_is = in_fractions if fractions else np.asarray
    constant = as_it_is(sign * np.array([model.offset, *own[~free]])).sum()
    unary: dict[int, Floats] = {
        j: as_it_is(model.states[j].low.copy() if sign > 0 else -model.states[j].high)
        for j in np.flatnonzero(free).tolist()
    }
    binary: list[tuple[tuple[int, ...], Floats]] = []
    for first, second, values in model.tables:
        table = sign * values
        if free[first] and free[second]:
            binary.append(((first, second), as_it_is(table)))
        elif free[first]:
            unary[first] = unary[first] + as_it_is(table[:, own_states[second]])
        elif free[second]:
            unary[second] = unary[second] + as_it_is(table[own_states[first]])
        else:
            constant += as_it_is(table[[own_states[first]], own_states[second]])[0]
    most = MOST_EXACT_CELLS if fractions else MOST_CELLS
    few = min(FEW_CELLS, most)
    found = _eliminated(unary, binary, few)
    value, reached, states = (found[0], found[0], found[1]) if found else _bounded(unary, binary, few)
    if value < reached:
        # tables of this size take a second each, so that they come last
        found = _eliminated(unary, binary, most)
        value, reached, states = (found[0], found[0], found[1]) if found else (value, reached, states)
    witness = row.copy()
    for j, state in states.items():
        witness[j] = (model.states[j].at_low if sign > 0 else model.states[j].at_high)[state]
    return Extreme(constant + value, constant + reached, witness)


in_fractions = np.vectorize(Fraction, otypes=[object])
Factors = list[tuple[tuple[int, ...], Floats]]


def _bounded(unary: dict[int, Floats], binary: Factors, most: int) -> tuple[Any, Any, dict[int, int]]:
    """A bound of the least sum, the sum of some states, and these states, by branch and bound."""
    merged: dict[tuple[int, int], Floats] = {}
    for (first, second), table in binary:
        merged[first, second] = merged[first, second] + table if (first, second) in merged else table
    tables: Factors = list(merged.items())
    states = {j: int(part.argmin()) for j, part in unary.items()}
    reached = _descended(unary, tables, states)
    number, steps = 0, 0
    heap: list[tuple[Any, int, dict[int, int]]] = [(_box(unary, tables), 0, {})]
    while heap and steps < MOST_STEPS and heap[0][0] < reached:
        bound, _, fixed = heapq.heappop(heap)
        steps += 1
        constant, left, joined = _conditioned(unary, tables, fixed)
        rest = _eliminated(left, joined, most)
        if rest is not None:
            if constant + rest[0] < reached:
                reached, states = constant + rest[0], {**fixed, **rest[1]}
            continue
        j = max(sorted(left), key=lambda j: sum(j in pair for pair, _ in joined))
        others = {k: part for k, part in left.items() if k != j}
        away = [factor for factor in joined if j not in factor[0]]
        bounds = constant + left[j] + _box({}, away)
        near = set()
        for (first, second), table in joined:
            if j in (first, second):
                k = second if j == first else first
                near.add(k)
                bounds = bounds + ((table if j == first else table.T) + others[k]).min(axis=1)
        bounds = bounds + _box({k: part for k, part in others.items() if k not in near}, [])
        for state in np.argsort(bounds, kind="stable").tolist():
            if bounds[state] < reached:
                number += 1
                heapq.heappush(heap, (max(bounds[state], bound), number, {**fixed, j: state}))
        # the best child is completed, so that the witness gets better too
        trial = {**states, **fixed, j: int(bounds.argmin())}
        value = _descended(unary, tables, trial)
        if value < reached:
            reached, states = value, trial
    return min([reached, *(bound for bound, *_ in heap)]), reached, states


def _box(unary: dict[int, Floats], binary: Factors) -> Any:
    """Sum of each factor's own least value."""
    return sum(part.min() for part in unary.values()) + sum(table.min() for _, table in binary)


def _conditioned(
    unary: dict[int, Floats], binary: Factors, fixed: dict[int, int]
) -> tuple[Any, dict[int, Floats], Factors]:
    """The factors that are left once some features have their states, and what these add up to."""
    constant: Any = sum(unary[j][state] for j, state in fixed.items())
    left = {j: part for j, part in unary.items() if j not in fixed}
    joined: Factors = []
    for (first, second), table in binary:
        if first in fixed and second in fixed:
            constant = constant + table[fixed[first], fixed[second]]
        elif first in fixed:
            left[second] = left[second] + table[fixed[first]]
        elif second in fixed:
            left[first] = left[first] + table[:, fixed[second]]
        else:
            joined.append(((first, second), table))
    return constant, left, joined


def _descended(unary: dict[int, Floats], binary: Factors, states: dict[int, int]) -> Any:
    """Move one feature after another to its best state, in place, until none moves; returns the sum."""
    for _ in range(20):
        moved = False
        for j in sorted(unary):
            total = unary[j]
            for (first, second), table in binary:
                if first == j:
                    total = total + table[:, states[second]]
                elif second == j:
                    total = total + table[states[first]]
            best = int(total.argmin())
            if total[best] < total[states[j]]:
                states[j], moved = best, True
        if not moved:
            break
    return _conditioned(unary, binary, states)[0]


def _eliminated(unary: dict[int, Floats], binary: Factors, most: int) -> tuple[Any, dict[int, int]] | None:
    """Least sum of the factors and the states that reach it; None where a table would outgrow the cap."""
    joined = {j for variables, _ in binary for j in variables}
    factors: Factors = [((j,), part) for j, part in unary.items() if j in joined] + binary
    sizes = {j: len(part) for j, part in unary.items()}
    left, choices = set(joined), []
    # most features are in no table, and each of these is best by itself
    states = {j: int(part.argmin()) for j, part in unary.items() if j not in joined}
    total: Any = sum(unary[j][state] for j, state in states.items())
    while left:

        def width(j: int, factors: Factors = factors) -> int:
            scope = {v for variables, _ in factors if j in variables for v in variables}
            return math.prod(sizes[v] for v in scope)

        chosen = min(sorted(left), key=width)
        touching = [factor for factor in factors if chosen in factor[0]]
        scope = tuple(sorted({v for variables, _ in touching for v in variables} - {chosen}))
        if width(chosen) > most or len(scope) >= MOST_AXES:
            return None
        factors = [factor for factor in factors if chosen not in factor[0]]
        table = _aligned(*touching[0], (*scope, chosen))
        for variables, values in touching[1:]:
            table = table + _aligned(variables, values, (*scope, chosen))
        choices.append((chosen, scope, table.argmin(axis=-1)))
        reduced = table.min(axis=-1)
        if scope:
            factors.append((scope, reduced))
        else:
            total = total + reduced
        left.remove(chosen)
    for chosen, scope, best in reversed(choices):
        states[chosen] = int(best[tuple(states[v] for v in scope)])
    return total, states


def _aligned(variables: tuple[int, ...], values: Floats, scope: tuple[int, ...]) -> Floats:
    """A factor with its axes in the order of ``scope``, of length 1 where it does not depend on a variable."""
    present = [v for v in scope if v in variables]
    turned = values.transpose([variables.index(v) for v in present])
    return turned.reshape([values.shape[variables.index(v)] if v in variables else 1 for v in scope])
