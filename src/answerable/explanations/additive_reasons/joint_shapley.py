"""Shapley values of the probability and of the class for models with pairs: exact, certified, or sampled.

The integral over q of :mod:`.shapley` stays what it is, since features are still drawn independently; only the product
over features becomes a sum of products along the graph of the pairs (:mod:`.elimination`). Where that graph is too
dense, random orders are drawn, and Maurer and Pontil's (2009) empirical Bernstein bound says how far off the means are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .completions import MOST_TERMS, lattice_terms, sigmoid_terms, step_terms
from .elimination import MOST_PRODUCTS, Own, Plan, ends_of, integrated, make_plan, sizes_of
from .joint import LEVEL, SAMPLED, Joint, Part, draw
from .pairs import Table
from .shapley import MOST_LISTED, Shapley, gauss_nodes, set_weights, unit_of

Floats = npt.NDArray[np.float64]
N_ORDERS = 10_000
BLOCK_ORDERS = 500


def numbered(joint: Joint, own: Own) -> tuple[Joint, Own]:
    """The same distribution and row with states numbered from 0: those that are drawn, and the row's."""
    parts, places, kept = [], [], []
    for part, state in zip(joint.parts, own.states, strict=True):
        present = np.union1d(part.states, [state]).astype(np.intp)
        parts.append(part._replace(states=np.searchsorted(present, part.states)))
        places.append(int(np.searchsorted(present, state)))
        kept.append(present)
    tables = [Table(first, second, values[np.ix_(kept[first], kept[second])]) for first, second, values in joint.tables]
    return Joint(parts, tables, joint.offset), Own(own.values, np.array(places, np.intp))


def of_joint_class(joint: Joint, own: Own, *, width: float = 1e-3, seed: int = 0) -> Shapley:
    """Shapley values of the decision, 1 where the score is at least 0, for one row of a model with pairs.

    Parameters
    ----------
    joint : distribution of each feature, tables and offset (intercept less cutoff)
    own : the row's main effects and states
    width : error the certified engine aims at
    seed : of the orders, where they are sampled
    """
    small, row = numbered(joint, own)
    plan, (nodes, weights) = _planned(small), gauss_nodes(len(row.values))
    low, high = _ends_with(small, row)
    n = len(row.values)
    if low >= 0 or high < 0:
        return Shapley(np.zeros(n), np.zeros(n), float(low >= 0), "one class everywhere")
    parts = [row.values, *(part.values for part in small.parts), *(table.values.ravel() for table in small.tables)]
    unit = unit_of(np.concatenate([*parts, [small.offset]]), low, high)
    if unit:
        terms = lattice_terms(round(low / unit), round(high / unit), unit)
        if plan.cells * len(nodes) * len(terms.frequencies) <= MOST_PRODUCTS:
            return Shapley(*integrated(small, row, terms, nodes, weights, plan), "exact lattice")
    n_terms, found = 256, None
    while plan.cells * len(nodes) * n_terms <= MOST_PRODUCTS and n_terms <= MOST_TERMS:
        spread = integrated(small, row, step_terms(low, high, n_terms), nodes, weights, plan)
        found = Shapley(*spread, "certified Fourier")
        if found.error.max() <= width:
            break
        n_terms *= 2
    if found is None or found.error.max() > 20 * width:  # too coarse to say anything
        other = sampled_shapley(small, row, lambda score: (score >= 0).astype(np.float64), seed=seed)
        return other if found is None or other.error.max() < found.error.max() else found
    return found


def of_joint_probability(joint: Joint, own: Own, *, seed: int = 0) -> Shapley:
    """The same of the sigmoid of the score; ``joint.offset`` is the intercept."""
    small, row = numbered(joint, own)
    plan, (nodes, weights) = _planned(small), gauss_nodes(len(row.values))
    terms = sigmoid_terms(*_ends_with(small, row))
    if plan.cells * len(nodes) * len(terms.frequencies) > MOST_PRODUCTS:
        return sampled_shapley(small, row, expit, seed=seed)
    return Shapley(*integrated(small, row, terms, nodes, weights, plan), "Fourier, to rounding")


def of_joint_probability_over_rows(joint: Joint, own: Own, background: Sequence[Own], *, seed: int = 0) -> Shapley:
    """The same against background rows, averaged: what an interventional explainer computes.

    ``joint`` gives tables and offset only.
    """
    if len(own.values) <= MOST_LISTED:
        return _listed_over_rows(joint, own, background)
    found = []
    for other in background:
        parts = [Part(other.states[[j]], other.values[[j]], np.ones(1)) for j in range(len(own.values))]
        found.append(of_joint_probability(joint._replace(parts=parts), own, seed=seed))
    return Shapley(
        np.mean([one.values for one in found], axis=0), np.mean([one.error for one in found], axis=0),
        float(np.mean([one.base for one in found])), found[0].engine,
    )  # fmt: skip


def _listed_over_rows(joint: Joint, own: Own, background: Sequence[Own]) -> Shapley:
    """By listing all sets; those with feature j follow those without."""
    n = len(own.values)
    mean, scores = np.zeros(1 << n), np.empty(1 << n)
    for other in background:
        scores[0] = joint.offset + other.values.sum()
        for j in range(n):
            np.add(scores[: 1 << j], own.values[j] - other.values[j], out=scores[1 << j : 2 << j])
        for first, second, values in joint.tables:
            low, high = sorted((first, second))
            table = values[np.ix_(*([row.states[k] for row in (other, own)] for k in (first, second)))]
            view = scores.reshape(-1, 2, 1 << (high - low - 1), 2, 1 << low)
            view += (table if second == high else table.T).T[None, :, None, :, None]
        mean += expit(scores)
    mean /= len(background)
    weights, phi = set_weights(n), np.empty(n)
    for i in range(n):
        halves = mean.reshape(-1, 2, 1 << i)
        phi[i] = np.vdot(weights.reshape(-1, 2, 1 << i)[:, 0], halves[:, 1] - halves[:, 0])
    return Shapley(phi, np.zeros(n), float(mean[0]), "all sets listed")


def sampled_shapley(
    joint: Joint, own: Own, of: Callable[[Floats], Floats], *, seed: int = 0, n_orders: int = N_ORDERS
) -> Shapley:
    """Shapley values of a function of the score, between 0 and 1, from random orders and draws.

    ``error`` bounds each value with a confidence of 95 %, whatever the function.
    """
    rng, n = np.random.default_rng(seed), len(own.values)
    total, squares, base = np.zeros(n), np.zeros(n), 0.0
    for start in range(0, n_orders, BLOCK_ORDERS):
        size = min(BLOCK_ORDERS, n_orders - start)
        ranks = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        states, values = draw(joint, size, rng)
        # (size, n + 1, n): the first so many features in order are the row's
        known = ranks[:, None, :] < np.arange(n + 1)[None, :, None]
        scores = np.where(known, own.values, values[:, None, :]).sum(axis=2) + joint.offset
        at = [np.where(known[:, :, j], own.states[j], states[j][:, None]) for j in range(n)]
        for first, second, table in joint.tables:
            scores += table[at[first], at[second]]
        steps = of(scores)
        moved = np.take_along_axis(np.diff(steps, axis=1), ranks, axis=1)
        total += moved.sum(axis=0)
        squares += (moved**2).sum(axis=0)
        base += float(steps[:, 0].sum())
    mean = total / n_orders
    variance = np.maximum(squares - n_orders * mean**2, 0.0) / (n_orders - 1)
    log = math.log(4 / (1 - LEVEL))  # both sides; a move lies in [-1, 1], an interval of length 2
    error = np.sqrt(2 * variance * log / n_orders) + 2 * 7 * log / (3 * (n_orders - 1))
    return Shapley(mean, error, base / n_orders, SAMPLED)


def _planned(joint: Joint) -> Plan:
    return make_plan(sizes_of(joint), [(table.first, table.second) for table in joint.tables])


def _ends_with(joint: Joint, own: Own) -> tuple[float, float]:
    """Bounds of the score when any features are drawn and the others are the row's."""
    parts = [
        Part(np.append(part.states, state), np.append(part.values, value), np.append(part.probabilities, 0.0))
        for part, state, value in zip(joint.parts, own.states, own.values, strict=True)
    ]
    return ends_of(joint._replace(parts=parts))
