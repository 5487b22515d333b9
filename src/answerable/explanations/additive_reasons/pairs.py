"""Sufficiency, reasons and changes when some terms join two features.

The worst completion of a set is the least (or greatest) value of a sum of terms over one and two variables. Each free
feature is reduced to states - its bins in the pair tables, and of each bin only the best main effect - and eliminated
one after another: the table of all its neighbours is built and its best state taken (bucket elimination). This is exact
while the largest table stays below a cap; beyond, the sum of each term's own best is a bound, and is marked as one.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MOST_CELLS = 50_000_000
MOST_SETS = 20_000


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

    value : of the score; a lower bound where ``exact`` is False
    witness : (n_features,) encoded values of a completion that reaches it; NaN in the free ones where it is a bound
    exact : whether it is reached
    """

    value: float
    witness: Floats
    exact: bool


class PairModel(NamedTuple):
    """States of every feature, tables of every pair, and the offset (intercept less cutoff)."""

    states: Sequence[States]
    tables: Sequence[Table]
    offset: float


def least(model: PairModel, own: Floats, own_states: Sequence[int], row: Floats, free: Bools, sign: float) -> Extreme:
    """The least of ``sign * score`` over the free features, the others being the row's.

    Parameters
    ----------
    model : states and tables
    own : (n_features,) main effects of the row
    own_states : (n_features,) number of the row's state in each feature
    row : (n_features,) encoded row
    free : (n_features,) bool
    sign : 1 for the least score, -1 for the greatest
    """
    constant = sign * (model.offset + float(own[~free].sum()))
    unary: dict[int, Floats] = {
        j: model.states[j].low.copy() if sign > 0 else -model.states[j].high for j in np.flatnonzero(free).tolist()
    }
    binary: list[tuple[tuple[int, ...], Floats]] = []
    for first, second, values in model.tables:
        table = sign * values
        if free[first] and free[second]:
            binary.append(((first, second), table))
        elif free[first]:
            unary[first] = unary[first] + table[:, own_states[second]]
        elif free[second]:
            unary[second] = unary[second] + table[own_states[first]]
        else:
            constant += float(table[own_states[first], own_states[second]])
    found = _eliminated(unary, binary)
    if found is None:
        bound = constant + sum(float(part.min()) for part in unary.values()) + sum(float(t.min()) for _, t in binary)
        return Extreme(bound, np.where(free, np.nan, row), False)
    value, states = found
    witness = row.copy()
    for j, state in states.items():
        witness[j] = (model.states[j].at_low if sign > 0 else model.states[j].at_high)[state]
    return Extreme(constant + value, witness, True)


def _eliminated(
    unary: dict[int, Floats], binary: list[tuple[tuple[int, ...], Floats]]
) -> tuple[float, dict[int, int]] | None:
    """Least sum of the factors and the states that reach it; None where a table would outgrow the cap."""
    factors: list[tuple[tuple[int, ...], Floats]] = [((j,), part) for j, part in unary.items()] + binary
    sizes = {j: len(part) for j, part in unary.items()}
    left, choices, total = set(unary), [], 0.0
    while left:

        def width(j: int, factors: list[tuple[tuple[int, ...], Floats]] = factors) -> float:
            scope = {v for variables, _ in factors if j in variables for v in variables}
            return float(np.prod([float(sizes[v]) for v in scope]))

        chosen = min(sorted(left), key=width)
        if width(chosen) > MOST_CELLS:
            return None
        touching = [factor for factor in factors if chosen in factor[0]]
        factors = [factor for factor in factors if chosen not in factor[0]]
        scope = tuple(sorted({v for variables, _ in touching for v in variables} - {chosen}))
        table = np.zeros([sizes[v] for v in (*scope, chosen)])
        for variables, values in touching:
            table = table + _aligned(variables, values, (*scope, chosen))
        choices.append((chosen, scope, table.argmin(axis=-1)))
        reduced = table.min(axis=-1)
        if scope:
            factors.append((scope, reduced))
        else:
            total += float(reduced)
        left.remove(chosen)
    states: dict[int, int] = {}
    for chosen, scope, best in reversed(choices):
        states[chosen] = int(best[tuple(states[v] for v in scope)])
    return total, states


def _aligned(variables: tuple[int, ...], values: Floats, scope: tuple[int, ...]) -> Floats:
    """A factor with its axes in the order of ``scope``, of length 1 where it does not depend on a variable."""
    letters = dict(zip(scope, string.ascii_letters, strict=False))
    present = [v for v in scope if v in variables]
    turned = np.einsum(f"{''.join(letters[v] for v in variables)}->{''.join(letters[v] for v in present)}", values)
    return turned.reshape([values.shape[variables.index(v)] if v in variables else 1 for v in scope])


class SmallestSet(NamedTuple):
    """A set that passes a test which larger sets pass too.

    chosen : (n_features,) bool
    bound : no set of fewer features passes
    """

    chosen: Bools
    bound: int

    @property
    def proved(self) -> bool:
        """Whether no smaller set passes."""
        return int(self.chosen.sum()) <= self.bound


def smallest_set(
    passes: Callable[[Bools], bool], order: Sequence[int], n_features: int, *, most_sets: int = MOST_SETS
) -> SmallestSet | None:
    """The smallest set of features that passes; None where all of them together do not.

    Parameters
    ----------
    passes : monotone: what contains a set that passes does too
    order : features that may be chosen, the most useful first
    n_features : how many there are
    most_sets : tests at most; beyond, the set is minimal under inclusion and the bound smaller than its size

    Notes
    -----
    First features are left out one by one from the least useful on; then all smaller sets are tried, by size.
    """
    chosen = np.zeros(n_features, bool)
    chosen[list(order)] = True
    if not passes(chosen):
        return None
    for j in reversed(order):
        chosen[j] = False
        if not passes(chosen):
            chosen[j] = True
    tests = 0
    for size in range(int(chosen.sum())):
        for members in itertools.combinations(order, size):
            if tests >= most_sets:
                return SmallestSet(chosen, size)
            tests += 1
            candidate = np.zeros(n_features, bool)
            candidate[list(members)] = True
            if passes(candidate):
                return SmallestSet(candidate, size)
    return SmallestSet(chosen, int(chosen.sum()))
