"""Expectations of a score with pairs, frequency by frequency: sums of products over the graph of the pairs.

E exp(i t score) is a sum over all states of all features of a product of factors, one a feature and one a table. The
features are summed out one after another, each with the factors that touch it (bucket elimination). Going back through
the same steps gives every feature's derivative, and so what is expected when that feature alone is fixed or drawn: all
Shapley values come from one pass out and one pass back, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .completions import MOST_TERMS, Probability, Terms, step_terms

if TYPE_CHECKING:
    from .joint import Joint

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
MOST_PRODUCTS = 400_000_000  # products of factors for one row, some seconds
BLOCK_VALUES = 2_000_000  # complex numbers of the largest table at a time
FREQUENCY, NODE = 0, 1  # axes of every factor, before those of its features


class Step(NamedTuple):
    """One feature summed out: the factors that touch it, and the features that the result depends on."""

    feature: int
    operands: tuple[int, ...]
    scope: tuple[int, ...]


class Plan(NamedTuple):
    """In which order features are summed out.

    steps : one a feature; a step's result has the number ``n_features + n_tables + place``
    scopes : features of each factor, by number: those of one feature, of two, then the results
    cells : products for each frequency
    """

    steps: list[Step]
    scopes: list[tuple[int, ...]]
    cells: float
    widest: float


def make_plan(sizes: Sequence[int], tables: Sequence[tuple[int, int]]) -> Plan:
    """Sum out next whatever makes the smallest table."""
    scopes: list[tuple[int, ...]] = [(j,) for j in range(len(sizes))] + [tuple(pair) for pair in tables]
    open_ones = set(range(len(scopes)))
    left, steps, cells, widest = set(range(len(sizes))), [], 0.0, 1.0
    around = {j: {j} for j in left}
    for first, second in tables:
        around[first].add(second)
        around[second].add(first)

    def width(j: int) -> float:
        return float(np.prod([float(sizes[k]) for k in around[j]]))

    while left:
        chosen = min(left, key=lambda j: (width(j), j))
        operands = tuple(sorted(o for o in open_ones if chosen in scopes[o]))
        scope = tuple(sorted(around[chosen] - {chosen}))
        cells += width(chosen) * len(operands)
        widest = max(widest, width(chosen))
        for k in scope:
            around[k] |= set(scope)
            around[k].discard(chosen)
        open_ones -= set(operands)
        scopes.append(scope)
        if scope:
            open_ones.add(len(scopes) - 1)
        steps.append(Step(chosen, operands, scope))
        left.remove(chosen)
    return Plan(steps, scopes, cells, widest)


def expectations(
    plan: Plan, unaries: Sequence[Complexes], tables: Sequence[Complexes], *, derivatives: bool
) -> tuple[Complexes, list[Complexes]]:
    """The sum over all states, and its derivative by each feature's own factor.

    Parameters
    ----------
    plan : of :func:`make_plan`
    unaries : for each feature (n_frequencies, n_nodes, n_states)
    tables : for each pair (n_frequencies, n_states of the first, n_states of the second)
    derivatives : whether these are wanted

    Returns
    -------
    (n_frequencies, n_nodes); for each feature (n_frequencies, n_nodes, n_states), or nothing
    """
    factors: list[Complexes] = [*unaries, *tables]
    roots = []
    for step in plan.steps:
        operands = [(factors[o], _axes(o, plan)) for o in step.operands]
        factors.append(_product(operands, [FREQUENCY, NODE, *_shifted(step.scope)]))
        if not step.scope:
            roots.append(len(factors) - 1)
    total, others = _without_each([factors[root] for root in roots])
    if not derivatives:
        return total, []
    found: dict[int, Complexes] = dict(zip(roots, others, strict=True))
    for place in range(len(plan.steps) - 1, -1, -1):
        step, number = plan.steps[place], len(plan.scopes) - len(plan.steps) + place
        above = (found.pop(number), [FREQUENCY, NODE, *_shifted(step.scope)])
        for o in step.operands:
            if len(unaries) <= o < len(unaries) + len(tables):
                continue
            rest = [(factors[p], _axes(p, plan)) for p in step.operands if p != o]
            found[o] = _summed([above, *rest], [FREQUENCY, NODE, *_shifted(plan.scopes[o])], factors[o].shape)
    return total, [found[j] for j in range(len(unaries))]


def _axes(number: int, plan: Plan) -> list[int]:
    n_features = len(plan.steps)
    n_tables = len(plan.scopes) - 2 * n_features
    scope = _shifted(plan.scopes[number])
    is_table = n_features <= number < n_features + n_tables
    return [FREQUENCY, *scope] if is_table else [FREQUENCY, NODE, *scope]


def _shifted(scope: tuple[int, ...]) -> list[int]:
    return [feature + 2 for feature in scope]


def _product(operands: Sequence[tuple[Complexes, list[int]]], axes: list[int]) -> Complexes:
    """The product of factors with named axes, summed over all that are not wanted."""
    # einsum knows 52 names, however many features there are
    names = {axis: place for place, axis in enumerate(dict.fromkeys(axis for _, own in operands for axis in own))}
    given: list[Any] = [one for values, own in operands for one in (values, [names[axis] for axis in own])]
    return np.einsum(*given, [names[axis] for axis in axes])


def _summed(operands: Sequence[tuple[Complexes, list[int]]], axes: list[int], shape: tuple[int, ...]) -> Complexes:
    """The same; an axis that no factor has is the same all along."""
    present = {axis for _, own in operands for axis in own}
    found = _product(operands, [axis for axis in axes if axis in present])
    lacking = [place for place, axis in enumerate(axes) if axis not in present]
    return np.broadcast_to(np.expand_dims(found, lacking), shape)


def _without_each(parts: list[Complexes]) -> tuple[Complexes, list[Complexes]]:
    """The product of all, and of all but each; dividing one out would fail where it is 0."""
    before = [np.ones_like(parts[0])]
    for part in parts:
        before.append(before[-1] * part)
    after, without = np.ones_like(parts[0]), []
    for place in range(len(parts) - 1, -1, -1):
        without.append(before[place] * after)
        after = after * parts[place]
    return before[-1], without[::-1]


class Factors(NamedTuple):
    """Factors of a block of frequencies.

    drawn : for each feature (n_frequencies, n_states), its distribution's
    tables : for each pair (n_frequencies, n_states, n_states)
    """

    drawn: list[Complexes]
    tables: list[Complexes]


def sizes_of(joint: Joint) -> list[int]:
    """Number of states of each feature; states are numbered from 0."""
    found = [int(part.states.max()) + 1 for part in joint.parts]
    for first, second, values in joint.tables:
        found[first], found[second] = max(found[first], values.shape[0]), max(found[second], values.shape[1])
    return found


def factors_of(joint: Joint, sizes: Sequence[int], frequencies: Floats) -> Factors:
    """The factors of a distribution at some frequencies."""
    drawn = []
    for (states, values, probabilities), size in zip(joint.parts, sizes, strict=True):
        order = np.argsort(states, kind="stable")
        present, starts = np.unique(states[order], return_index=True)
        own = np.zeros((len(frequencies), size), complex)
        block = max(1, BLOCK_VALUES // len(values))
        for start in range(0, len(frequencies), block):
            turns = np.exp(1j * np.multiply.outer(frequencies[start : start + block], values[order]))
            own[start : start + block, present] = np.add.reduceat(turns * probabilities[order], starts, axis=1)
        drawn.append(own)
    return Factors(drawn, [np.exp(1j * np.multiply.outer(frequencies, table.values)) for table in joint.tables])


def blocks(frequencies: Floats, plan: Plan, n_nodes: int, joint: Joint) -> list[slice]:
    """Runs of frequencies whose tables are held at a time."""
    largest = max([plan.widest * n_nodes, *(table.values.size for table in joint.tables)])
    length = max(1, int(BLOCK_VALUES // largest))
    return [slice(start, start + length) for start in range(0, len(frequencies), length)]


def ends_of(joint: Joint) -> tuple[float, float]:
    """Proved bounds of the score: each term's own least and greatest value."""
    low = joint.offset + sum(float(part.values.min()) for part in joint.parts)
    high = joint.offset + sum(float(part.values.max()) for part in joint.parts)
    low += sum(float(table.values.min()) for table in joint.tables)
    return low, high + sum(float(table.values.max()) for table in joint.tables)


def certified(joint: Joint, *, width: float, doubt: float = 0.0, most_terms: int = MOST_TERMS) -> Probability | None:
    """P(score >= 0) with a proved interval; None where one pass is too much work.

    ``doubt`` bounds the rounding of a sum.
    """
    sizes = sizes_of(joint)
    plan = make_plan(sizes, [(table.first, table.second) for table in joint.tables])
    low, high = ends_of(joint)
    if low >= doubt or high < -doubt:
        sure = float(low >= 0)
        return Probability(sure, sure, sure, "ends")
    low, high = min(low, -1e-9), max(high, 0.0)
    n_terms, found = 256, None
    while plan.cells * n_terms <= MOST_PRODUCTS and n_terms <= most_terms:
        terms = step_terms(low, high, n_terms)
        transform = _transform(joint, plan, sizes, terms)
        value = terms.constant + float((terms.weights * transform).real.sum())
        error = terms.error_constant + float((terms.error_weights * transform).real.sum())
        error = max(error, 0.0) + 1e-10  # rounding of the sums themselves
        found = Probability(
            min(max(value, 0.0), 1.0), max(value - error, 0.0), min(value + error, 1.0), "certified Fourier"
        )
        if 2 * error <= width:
            break
        n_terms *= 2
    return found


def _transform(joint: Joint, plan: Plan, sizes: Sequence[int], terms: Terms) -> Complexes:
    out = np.empty(len(terms.frequencies), complex)
    for rows in blocks(terms.frequencies, plan, 1, joint):
        given = factors_of(joint, sizes, terms.frequencies[rows])
        total, _ = expectations(plan, [own[:, None] for own in given.drawn], given.tables, derivatives=False)
        out[rows] = total[:, 0]
    return out * np.exp(1j * terms.frequencies * joint.offset)


class Own(NamedTuple):
    """A row: its main effects and its states, (n_features,) each."""

    values: Floats
    states: npt.NDArray[np.intp]


class Spread(NamedTuple):
    """Shapley values of one row with the bound of their error, (n_features,) each, and the mean."""

    values: Floats
    error: Floats
    base: float


def integrated(joint: Joint, own: Own, terms: Terms, nodes: Floats, node_weights: Floats, plan: Plan) -> Spread:
    """Shapley values of a function of the score given as a trigonometric sum.

    Parameters
    ----------
    joint : distribution, with states numbered so that the row's are among them
    own : the row
    terms : the function, and the bound of its error
    nodes, node_weights : Gauss's points on [0, 1] and their weights
    plan : of the same graph
    """
    sizes, n = sizes_of(joint), len(joint.parts)
    values, error, base = np.zeros(n), np.zeros(n), terms.constant
    for rows in blocks(terms.frequencies, plan, len(nodes), joint):
        t = terms.frequencies[rows]
        phase = np.exp(1j * t * joint.offset)
        weights, bounds = phase * terms.weights[rows], phase * terms.error_weights[rows]
        given = factors_of(joint, sizes, t)
        mine = np.exp(1j * np.multiply.outer(t, own.values))
        mixed = []
        for j, drawn in enumerate(given.drawn):
            one = (1 - nodes)[:, None] * drawn[:, None]
            one[:, :, own.states[j]] += nodes * mine[:, [j]]
            mixed.append(one)
        _, slopes = expectations(plan, mixed, given.tables, derivatives=True)
        total, _ = expectations(plan, [own_part[:, None] for own_part in given.drawn], given.tables, derivatives=False)
        base += float((weights * total[:, 0]).real.sum())
        for j in range(n):
            fixed = slopes[j][:, :, own.states[j]] @ node_weights * mine[:, j]
            random = np.einsum("zqs,zs,q->z", slopes[j], given.drawn[j], node_weights)
            values[j] += float((weights * (fixed - random)).real.sum())
            error[j] += float((bounds * (fixed + random)).real.sum())
    if terms.error_constant:
        error = np.maximum(error + 2 * terms.error_constant, 0.0) + 1e-10
    return Spread(values, error, base)
