"""How likely a decision is when only some facts are known: exact where the sums can be listed, certified elsewhere.

The score is an offset plus independent discrete components. Three engines give P(score >= 0), tried in this order:

- *listed sums*: convolve the components one by one and merge equal sums; two halves meet in the middle. Exact.
- *certified Fourier*: Vaaler's trigonometric majorant and minorant of a step of K terms. The interval is a theorem.

Sums of doubles that are no whole multiples of one grid are rounded; those within rounding of 0 are counted on neither
side and widen the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
MOST_ATOMS = 2_000_000
MOST_TERMS = 32_768
LISTED = "listed sums"
EPSILON = float(np.finfo(np.float64).eps)


class Component(NamedTuple):
    """One feature's component: values and their probabilities, which sum to 1."""

    values: Floats
    probabilities: Floats


class Probability(NamedTuple):
    """A probability with proved ends.

    value : the number; the middle of the interval for the Fourier engine
    low, high : proved ends, equal up to rounding where it is exact
    engine : "listed sums" or "certified Fourier"
    """

    value: float
    low: float
    high: float
    engine: str

    @property
    def exact(self) -> bool:
        """Whether the ends differ by rounding only."""
        return self.high - self.low <= 1e-12


def at_least_zero(
    components: Sequence[Component],
    offset: float = 0.0,
    *,
    most_atoms: int = MOST_ATOMS,
    width: float = 1e-3,
    most_terms: int = MOST_TERMS,
) -> Probability:
    """P(offset + sum of components >= 0), components independent.

    Parameters
    ----------
    components : each discrete
    offset : what is certain
    most_atoms : distinct sums that are listed at most, of each half
    width : interval the Fourier engine aims at
    most_terms : terms it takes at most

    Returns
    -------
    Probability

    Raises
    ------
    BadInput : a component that is no distribution
    """
    check(components)
    found = listed(components, offset, most_atoms=most_atoms)
    return found or _fourier(components, offset, width, most_terms)


def listed(
    components: Sequence[Component], offset: float, *, most_atoms: int = MOST_ATOMS, doubt: float | None = None
) -> Probability | None:
    """The same from two lists of sums, which are exact; None where they would be too long.

    ``doubt`` bounds the rounding of a sum where the components are sums themselves; it is found from them by default.
    """
    random = [part for part in components if len(part.values) > 1]
    offset += float(sum(part.values[0] for part in components if len(part.values) == 1))
    if doubt is None:
        size = abs(offset) + sum(float(np.abs(part.values).max()) for part in random)
        doubt = 0.0 if are_on_grid([offset], *[part.values for part in components]) else _rounding(random, size)
    low = offset + sum(float(part.values.min()) for part in random)
    high = offset + sum(float(part.values.max()) for part in random)
    if not random or low >= doubt or high < -doubt:
        sure = float(low >= 0)
        return Probability(sure, sure, sure, LISTED)
    halves = _halves(random, most_atoms)
    return None if halves is None else _from_halves(*halves, offset, doubt)


def _rounding(components: Sequence[Component], size: float) -> float:
    return 4 * (len(components) + 1) * EPSILON * size


def check(components: Sequence[Component]) -> None:
    """Raise unless each is a distribution of finite values.

    Raises
    ------
    BadInput : probabilities that are negative or do not sum to 1, values that are not finite; names the component
    """
    for number, (values, probabilities) in enumerate(components, 1):
        where, total = f"component {number}", float(np.sum(probabilities))
        if len(values) != len(probabilities) or not len(values) or not np.isfinite(values).all():
            mend = "give finite values and one probability each"
            raise BadInput(f"{len(values)} values with {len(probabilities)} probabilities", where=where, mend=mend)
        if not (np.asarray(probabilities) >= 0).all() or abs(total - 1) > 1e-9:
            mend = "give probabilities of at least 0 that sum to 1"
            raise BadInput(f"its probabilities sum to {total:.6g}, or one is negative", where=where, mend=mend)


def _halves(components: Sequence[Component], most_atoms: int) -> tuple[Component, Component] | None:
    """Two lists of merged sums, shared out so that both stay short; None where one would not."""
    sums = [Component(np.zeros(1), np.ones(1)), Component(np.zeros(1), np.ones(1))]
    for part in sorted(components, key=lambda part: -len(part.values)):
        shorter = min((0, 1), key=lambda side: len(sums[side].values))
        if len(sums[shorter].values) * len(part.values) > 4 * most_atoms:
            return None
        sums[shorter] = _convolved(sums[shorter], part)
        if len(sums[shorter].values) > most_atoms:
            return None
    return sums[0], sums[1]


def _convolved(first: Component, second: Component) -> Component:
    values = np.add.outer(first.values, second.values).ravel()
    masses = np.multiply.outer(first.probabilities, second.probabilities).ravel()
    order = np.argsort(values, kind="stable")
    values, masses = values[order], masses[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values) > 0]))
    return Component(values[starts], np.add.reduceat(masses, starts))


def _from_halves(first: Component, second: Component, offset: float, doubt: float) -> Probability:
    above = np.concatenate([np.cumsum(second.probabilities[::-1])[::-1], [0.0]])
    needed = -offset - first.values

    def mass(shift: float, side: str) -> float:
        at = np.searchsorted(second.values, needed + shift, side=side)  # type: ignore[call-overload]
        return float(first.probabilities @ above[at])

    if doubt == 0.0:
        value = min(max(mass(0.0, "left"), 0.0), 1.0)
        return Probability(value, value, value, LISTED)
    low, high = mass(doubt, "right"), mass(-doubt, "left")
    return Probability(min(max(mass(0.0, "left"), 0.0), 1.0), max(low, 0.0), min(high, 1.0), LISTED)


def are_on_grid(*numbers: Any) -> bool:
    """Whether all are whole multiples of one unit and so small that doubles add them up without rounding."""
    every = np.concatenate([np.ravel(part) for part in numbers])
    scaled = every * 2.0**20
    return bool(np.abs(every).sum() < 2.0**30 and np.all(scaled == np.floor(scaled)))


def _fourier(components: Sequence[Component], offset: float, width: float, most_terms: int) -> Probability:
    low = offset + sum(float(part.values.min()) for part in components)
    high = offset + sum(float(part.values.max()) for part in components)
    low, high = min(low, -1e-9), max(high, 0.0)  # where rounding alone decides which side an end is on
    n_terms = 256
    while True:
        step = step_terms(low, high, n_terms)
        transform = np.exp(1j * step.frequencies * offset)
        for part in components:
            transform = transform * characteristic(part, step.frequencies)
        value = step.constant + float((step.weights * transform).real.sum())
        error = step.error_constant + float((step.error_weights * transform).real.sum())
        error = max(error, 0.0) + 1e-10  # rounding of the sums themselves
        if 2 * error <= width or 2 * n_terms > most_terms:
            return Probability(
                min(max(value, 0.0), 1.0), max(value - error, 0.0), min(value + error, 1.0), "certified Fourier"
            )
        n_terms *= 2


class Terms(NamedTuple):
    """A function of the score as a trigonometric sum, and a bound of its error as another.

    frequencies : (n_terms,) float64
    weights, constant : h(score) is about ``constant + Re sum of weights exp(i frequency score)``
    error_weights, error_constant : |error| is at most the same sum of these, in expectation too
    """

    frequencies: Floats
    weights: Complexes
    constant: float
    error_weights: Complexes
    error_constant: float


def step_terms(low: float, high: float, n_terms: int) -> Terms:
    """``[score >= 0]`` for scores in [low, high], low < 0 <= high: Vaaler 1985, Theorem 18.

    The period leaves a gap beyond both ends, so that the step back down falls where no score is.
    """
    period = 1.1 * (high - low)
    end = (high + 0.05 * (high - low)) / period
    k = np.arange(1, n_terms + 1, dtype=np.float64)
    t = k / (n_terms + 1)
    vaaler = np.pi * t * (1 - t) / np.tan(np.pi * t) + t
    saw = -vaaler / (2j * np.pi * k)
    fejer = 1 - t
    back = np.exp(-2j * np.pi * k * end)
    return Terms(
        2 * np.pi * k / period,
        2 * saw * (back - 1),
        end,
        (2 * fejer * (1 + back)) / (2 * (n_terms + 1)),
        1 / (n_terms + 1),
    )


def lattice_terms(low: int, high: int, unit: float) -> Terms:
    """``[score >= 0]`` for scores that are whole multiples of ``unit`` from ``low`` to ``high`` units: exact."""
    length = high - low + 1
    k = np.arange(1, length // 2 + 1, dtype=np.float64)
    # sum of exp(-2 pi i k m / length) over m = 0..high
    turn = np.exp(-2j * np.pi * k / length)
    sums = (1 - turn ** (high + 1)) / (1 - turn)
    twice = np.where(2 * k == length, 1.0, 2.0)
    nothing = np.zeros(len(k), complex)
    return Terms(2 * np.pi * k / (length * unit), twice * sums / length, (high + 1) / length, nothing, 0.0)


def sigmoid_terms(low: float, high: float) -> Terms:
    """The probability ``1 / (1 + exp(-score))`` for scores in [low, high], to rounding.

    It is P(score + noise >= 0) for logistic noise, whose characteristic function, pi t / sinh(pi t), ends the sum after
    some hundred terms.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    margin = 36.0  # beyond which the noise has a probability of 2e-16
    period = (high - low) + 2 * margin
    end = (high + margin) / period
    # pi t = 40 at the last term: pi t / sinh(pi t) is below 1e-15 there
    n_terms = max(8, math.ceil(40 * period / (2 * np.pi**2)))
    k = np.arange(1, n_terms + 1, dtype=np.float64)
    frequencies = 2 * np.pi * k / period
    noise = np.pi * frequencies / np.sinh(np.pi * frequencies)
    block = (1 - np.exp(-2j * np.pi * k * end)) / (2j * np.pi * k)
    return Terms(frequencies, 2 * block * noise, end, np.zeros(n_terms, complex), 0.0)


def characteristic(component: Component, frequencies: Floats) -> Complexes:
    """(n_terms,) E exp(i frequency value)."""
    out = np.empty(len(frequencies), complex)
    block = max(1, 4_000_000 // max(len(component.values), 1))
    for start in range(0, len(frequencies), block):
        angles = np.multiply.outer(frequencies[start : start + block], component.values)
        out[start : start + block] = np.exp(1j * angles) @ component.probabilities
    return out
