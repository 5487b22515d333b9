"""Exact and certified Shapley values of the score, the probability and the class.

On the score they are components less their means. On any other function h of the score, given by a trigonometric sum,
all n are found at once: Shapley's weights are integrals over q of ``q^k (1 - q)^(n - 1 - k)``, so

    phi_i = int_0^1 E_q[h | i fixed] - E_q[h | i random] dq

where every other feature is independently fixed with probability q. The integrand is a polynomial in q of degree n - 1,
so ceil(n / 2) Gauss points are exact; at each, a frequency's expectation is a product over features, and the products
without one feature come from running products from both ends.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import comb, expit

from answerable.compiled import kernel

from .completions import MOST_TERMS, Component, Terms, characteristic, check, lattice_terms, sigmoid_terms, step_terms

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
# Beyond so many steps the exact lattice costs more than the certified sum.
MOST_STEPS = 65_536
MOST_LISTED = 14  # features whose sets are listed one by one against background rows
LARGEST_EXPONENT = 600.0  # beyond, exp(-score) leaves the range of doubles
_GRIDS = (1.0, 0.5, 0.25, 0.125, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-10)


class Shapley(NamedTuple):
    """Shapley values of one row.

    values : (n_features,) float64
    error : (n_features,) float64, proved bound of the error beyond rounding; 0 where exact
    base : what the function is on average, before any feature is known
    engine : what computed them
    """

    values: Floats
    error: Floats
    base: float
    engine: str


def of_score(contributions: Floats, means: Floats) -> Floats:
    """(n_rows, n_features) Shapley values of the score, features independent: components less their means."""
    return contributions - means


def of_probability(own: Floats, others: Sequence[Component], offset: float) -> Shapley:
    """Shapley values of the sigmoid of the score.

    Parameters
    ----------
    own : (n_features,) float64, the row's components
    others : distribution of each component
    offset : intercept
    """
    check(others)
    low, high = _ends(own, others, offset)
    terms = sigmoid_terms(low, high)
    rest = np.stack([characteristic(part, terms.frequencies) for part in others])
    return _integrated(own, rest, offset, terms, "Fourier, to rounding")


def of_probability_over_rows(own: Floats, background: Floats, offset: float) -> Shapley:
    """The same against background rows, averaged: what an interventional explainer computes.

    Parameters
    ----------
    own : (n_features,) float64, the row's components
    background : (n_background, n_features) float64, the background rows' components
    offset : intercept
    """
    if len(own) <= MOST_LISTED:
        return _listed(own, background, offset)
    both = np.vstack([own, background])
    low, high = float(both.min(axis=0).sum() + offset), float(both.max(axis=0).sum() + offset)
    terms = sigmoid_terms(low, high)
    nodes, node_weights = gauss_nodes(len(own))
    phase = np.exp(1j * terms.frequencies * offset) * terms.weights
    mine = np.exp(1j * np.multiply.outer(own, terms.frequencies))
    theirs = np.exp(1j * np.multiply.outer(background, terms.frequencies))
    values = np.zeros(len(own))
    _over_rows(mine, theirs, phase, nodes, node_weights, values)
    base = terms.constant + float((phase * np.prod(theirs, axis=1)).real.sum(axis=1).mean())
    return Shapley(values / len(background), np.zeros(len(own)), base, "Fourier, to rounding")


def _listed(own: Floats, background: Floats, offset: float) -> Shapley:
    """By listing all sets: cheaper than frequencies while there are few features."""
    n = len(own)
    most = float(np.abs(np.vstack([own, background])).sum(axis=1).max() + np.abs(own).sum() + abs(offset))
    mean = np.zeros(1 << n)
    if most < LARGEST_EXPONENT:
        _add_sets(np.exp(-own), np.exp(-background), np.exp(-offset), np.empty(1 << n), mean)
    else:
        scores = np.empty(1 << n)
        for row in background:
            scores[0] = offset + row.sum()
            for j in range(n):
                np.add(scores[: 1 << j], own[j] - row[j], out=scores[1 << j : 2 << j])
            mean += expit(scores)
    mean /= len(background)
    weights = set_weights(n)
    values = np.empty(n)
    for i in range(n):
        halves = mean.reshape(-1, 2, 1 << i)
        values[i] = np.vdot(weights.reshape(-1, 2, 1 << i)[:, 0], halves[:, 1] - halves[:, 0])
    return Shapley(values, np.zeros(n), float(mean[0]), "all sets listed")


@kernel
def _add_sets(own: Floats, background: Floats, first: float, odds: Floats, total: Floats) -> None:
    """Add the probability of every set, the features in it being the row's, over background rows.

    ``exp(-score)`` is a product over features: one multiplication a set and no exponential. Sets with feature j follow
    those without.
    """
    for row in range(len(background)):
        odds[0] = first
        for j in range(len(own)):
            odds[0] *= background[row, j]
        for j in range(len(own)):
            half, factor = 1 << j, own[j] / background[row, j]
            for k in range(half):
                odds[half + k] = odds[k] * factor
        for k in range(len(odds)):
            total[k] += 1 / (1 + odds[k])


@functools.cache
def set_weights(n: int) -> Floats:
    """(2^n,) Shapley's weight of each set that a further feature joins."""
    sizes = np.bitwise_count(np.arange(1 << n)).astype(np.intp)
    return np.append(1 / (n * comb(n - 1, np.arange(n))), 0.0)[sizes]


def of_class(
    own: Floats, others: Sequence[Component], offset: float, *, width: float = 1e-3, most_terms: int = MOST_TERMS
) -> Shapley:
    """Shapley values of the decision, 1 where ``offset + sum >= 0`` and 0 elsewhere.

    Parameters
    ----------
    own : (n_features,) float64, the row's components
    others : distribution of each component
    offset : intercept less cutoff
    width : error the certified engine aims at
    most_terms : terms it takes at most

    Notes
    -----
    Exact where all components are whole multiples of one unit, as points of scorecards are; certified elsewhere.
    """
    check(others)
    low, high = _ends(own, others, offset)
    if low >= 0 or high < 0:
        return Shapley(np.zeros(len(own)), np.zeros(len(own)), float(low >= 0), "one class everywhere")
    unit = unit_of(np.concatenate([own, [offset], *[part.values for part in others]]), low, high)
    if unit:
        terms = lattice_terms(round(low / unit), round(high / unit), unit)
        rest = np.stack([characteristic(part, terms.frequencies) for part in others])
        return _integrated(own, rest, offset, terms, "exact lattice")
    n_terms = 256
    while True:
        terms = step_terms(low, high, n_terms)
        rest = np.stack([characteristic(part, terms.frequencies) for part in others])
        found = _integrated(own, rest, offset, terms, "certified Fourier")
        if found.error.max() <= width or 2 * n_terms > most_terms:
            return found
        n_terms *= 2


def pair_parts(value: Floats, first_known: Floats, second_known: Floats, mean: float) -> tuple[Floats, Floats]:
    """What a pair term adds to the Shapley values of its two features, on the score.

    Parameters
    ----------
    value : (n_rows,) the term
    first_known, second_known : (n_rows,) its mean when only the first, or the second, feature is the row's
    mean : its mean
    """
    return (
        ((first_known - mean) + (value - second_known)) / 2,
        ((second_known - mean) + (value - first_known)) / 2,
    )


def _ends(own: Floats, others: Sequence[Component], offset: float) -> tuple[float, float]:
    low = offset + sum(min(x, float(part.values.min())) for x, part in zip(own, others, strict=True))
    high = offset + sum(max(x, float(part.values.max())) for x, part in zip(own, others, strict=True))
    return float(low), float(high)


def unit_of(numbers: Floats, low: float, high: float) -> float:
    """The unit of which all numbers are whole multiples; 0 where there is none or it is too fine for sums to high."""
    for unit in _GRIDS:
        scaled = numbers / unit
        if np.all(scaled == np.floor(scaled)):
            return unit if (high - low) / unit < MOST_STEPS else 0.0
    return 0.0


def gauss_nodes(n_features: int) -> tuple[Floats, Floats]:
    """Gauss points and weights on [0, 1], exact for polynomials of degree n_features - 1."""
    nodes, weights = np.polynomial.legendre.leggauss((n_features + 1) // 2)
    return (nodes + 1) / 2, weights / 2


def _integrated(own: Floats, rest: Complexes, offset: float, terms: Terms, engine: str) -> Shapley:
    nodes, node_weights = gauss_nodes(len(own))
    phase = np.exp(1j * terms.frequencies * offset)
    mine = np.exp(1j * np.multiply.outer(own, terms.frequencies))
    values, error = np.zeros(len(own)), np.zeros(len(own))
    _over_nodes(mine, rest, phase * terms.weights, phase * terms.error_weights, nodes, node_weights, values, error)
    base = terms.constant + float((phase * terms.weights * np.prod(rest, axis=0)).real.sum())
    if terms.error_constant:
        error = np.maximum(error + 2 * terms.error_constant, 0.0) + 1e-12
    return Shapley(values, error, base, engine)


@kernel
def _over_nodes(
    mine: Complexes, rest: Complexes, weights: Complexes, error_weights: Complexes, nodes: Floats, node_weights: Floats,
    values: Floats, error: Floats,
) -> None:  # fmt: skip
    n, n_terms = mine.shape
    after = np.empty(n + 1, np.complex128)
    for k in range(n_terms):
        for node in range(len(nodes)):
            q = nodes[node]
            after[n] = 1.0
            for j in range(n - 1, -1, -1):
                # dividing one factor out of the whole product instead fails where it is 0
                after[j] = after[j + 1] * (q * mine[j, k] + (1 - q) * rest[j, k])
            before = 1.0 + 0.0j
            for j in range(n):
                without = before * after[j + 1] * node_weights[node]
                values[j] += (weights[k] * without * (mine[j, k] - rest[j, k])).real
                error[j] += (error_weights[k] * without * (mine[j, k] + rest[j, k])).real
                before *= q * mine[j, k] + (1 - q) * rest[j, k]


@kernel
def _over_rows(
    mine: Complexes, theirs: Complexes, weights: Complexes, nodes: Floats, node_weights: Floats, values: Floats
) -> None:
    n, n_terms = mine.shape
    after = np.empty(n + 1, np.complex128)
    for row in range(len(theirs)):
        for k in range(n_terms):
            for node in range(len(nodes)):
                q = nodes[node]
                after[n] = 1.0
                for j in range(n - 1, -1, -1):
                    after[j] = after[j + 1] * (q * mine[j, k] + (1 - q) * theirs[row, j, k])
                before = 1.0 + 0.0j
                for j in range(n):
                    without = before * after[j + 1] * node_weights[node]
                    values[j] += (weights[k] * without * (mine[j, k] - theirs[row, j, k])).real
                    before *= q * mine[j, k] + (1 - q) * theirs[row, j, k]
