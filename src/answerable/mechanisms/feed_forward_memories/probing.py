"""Sparse probing, and what erasing features does to probes: the yardsticks of SAEBench on means over texts.

A text's features are averaged over its tokens. Since decoding is linear, the mean output of a text after features are
set to zero is its mean output less the mean of what they write, exactly; no second pass through the model is needed,
and a probe needs of each feature no more than what it writes along the probe.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from answerable.errors import BadInput
from answerable.statistics import Interval, auroc_intervals, aurocs

Array = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
PROBED = (1, 2, 5)  # features of a sparse probe
ERASED = (2, 5, 10, 20, 50, 100, 500)
FEWEST_TEXTS = 10  # of each class
SMALLEST_GAP = 0.001  # between the oracle and the confounded probe, below which SCR is 0


class Split(NamedTuple):
    """Which texts are learned from and which are judged."""

    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


def balanced_split(labels: Bools, rng: np.random.Generator, *, share: float = 0.8) -> Split:
    """As many texts with the concept as without it, at random, cut into training and test within each class.

    Raises
    ------
    BadInput : one class only, or fewer than 10 texts of one
    """
    groups = [rng.permutation(np.flatnonzero(labels == value)) for value in (True, False)]
    fewest = min(map(len, groups))
    if fewest < FEWEST_TEXTS:
        counts = " and ".join(str(len(group)) for group in groups)
        raise BadInput(
            f"{counts} texts with and without it", where="concept", mend=f"give at least {FEWEST_TEXTS} of each"
        )
    cut = min(fewest - 1, round(share * fewest))
    return Split(
        np.concatenate([group[:cut] for group in groups]), np.concatenate([group[cut:fewest] for group in groups])
    )


class Probe(NamedTuple):
    """A logistic regression: decide for the concept where ``x @ weights + offset`` is above 0."""

    weights: Array
    offset: float

    def accuracy(self, x: Array, labels: Bools) -> float:
        """Share of texts it tells right; one exactly on the border counts half."""
        return _right(x @ self.weights + self.offset, labels)

    def accuracies_without(
        self,
        x: Array,
        features: Array,
        directions: Array,
        order: npt.NDArray[np.int64],
        erased: Sequence[int],
        labels: Bools,
    ) -> list[float]:
        """The same once the first features of an order are 0, for several numbers of these.

        What the features do not rebuild is kept: ``(y - a_S V_S) . w`` is ``y . w`` less the sum of ``a_s (V_s . w)``.
        """
        some = order[: max(erased)]
        taken = np.cumsum(features[:, some] * (directions[some] @ self.weights), axis=1)
        score = x @ self.weights + self.offset
        return [_right(score - taken[:, min(n, len(some)) - 1], labels) for n in erased]


def _right(score: Array, labels: Bools) -> float:
    return float(np.where(score == 0, 0.5, (score > 0) == labels).mean())


def fitted_probe(x: Array, labels: Bools, *, balanced: bool = False) -> Probe:
    """L2 logistic regression with C = 1 on standardised columns, at most 1000 steps.

    Parameters
    ----------
    balanced : whether both classes count alike however many they are
    """
    wide = np.asarray(x, np.float64)
    centre, spread = wide.mean(axis=0), wide.std(axis=0)
    spread[spread == 0] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # separable classes: the border no longer moves
        model = LogisticRegression(C=1.0, max_iter=1000, class_weight="balanced" if balanced else None)
        model.fit((wide - centre) / spread, labels)
    weights = model.coef_[0] / spread
    return Probe(weights, float(model.intercept_[0] - centre @ weights))


def mean_differences(features: Array, labels: Bools) -> Array:
    """(m,) mean of each feature over texts with the concept less that over those without."""
    return features[labels].mean(axis=0, dtype=np.float64) - features[~labels].mean(axis=0, dtype=np.float64)


class SparseProbing(NamedTuple):
    """Test accuracies of probes on the few features whose class means differ most in training.

    accuracy : (len(ks),)
    chosen : the features of the largest probe, the most different first
    tests : texts judged
    """

    accuracy: Array
    chosen: npt.NDArray[np.int64]
    tests: int


def sparse_probing(features: Array, labels: Bools, split: Split, *, ks: Sequence[int] = PROBED) -> SparseProbing:
    """Choose features and fit the probe on the training texts alone, judge on the others.

    Parameters
    ----------
    features : (texts, m) mean activations
    labels : (texts,) whether each has the concept
    ks : features of a probe
    """
    train, test = split
    apart = np.abs(mean_differences(features[train], labels[train]))
    order = np.argsort(-apart, kind="stable")[: max(ks)]
    scores = [
        fitted_probe(features[np.ix_(train, order[:k])], labels[train]).accuracy(
            features[np.ix_(test, order[:k])], labels[test]
        )
        for k in ks
    ]
    return SparseProbing(np.array(scores), order, len(test))


class Detector(NamedTuple):
    """One feature that tells a concept.

    feature : its number
    chosen : AUROC on the texts it was chosen on, below 0.5 where it is high without the concept
    auroc : AUROC on the others, with its interval
    """

    feature: int
    chosen: float
    auroc: Interval


def detectors(features: Array, labels: Bools, split: Split, *, most: int = 3) -> list[Detector]:
    """The features whose AUROC for a concept is farthest from one half in training, judged on the other texts.

    Parameters
    ----------
    features : (texts, m) mean activations
    labels : (texts,) whether each has the concept
    most : how many
    """
    train, test = split
    chosen = aurocs(labels[train], features[train]).values
    order = np.argsort(-np.abs(chosen - 0.5), kind="stable")[:most]
    judged = auroc_intervals(labels[test], features[np.ix_(test, order)])
    return [Detector(int(j), float(chosen[j]), interval) for j, interval in zip(order, judged)]


def spurious_correlation_removal(
    outputs: Array,
    features: Array,
    directions: Array,
    wanted: Bools,
    spurious: Bools,
    rng: np.random.Generator,
    *,
    erased: Sequence[int] = ERASED,
) -> Array:
    """SCR: how much of a probe's reliance on a spurious concept the erasure of features removes.

    A probe is trained where the two concepts coincide, and another for the spurious concept; the features with the
    largest effect on the latter, ``|mean difference * (direction . w)|``, are set to 0 and the first is tested where
    the concepts are independent. 1: as good as a probe trained without the confounding; 0: nothing gained.

    Parameters
    ----------
    outputs : (texts, d) mean outputs
    features : (texts, m) mean activations
    directions : (m, d) what each feature writes
    wanted, spurious : (texts,) the two concepts; each of their four combinations needs texts
    erased : how many features are set to 0

    Returns
    -------
    (len(erased),)
    """
    cells = [np.flatnonzero((wanted == a) & (spurious == b)) for a in (True, False) for b in (True, False)]
    fewest = min(map(len, cells))
    if fewest < FEWEST_TEXTS:
        raise BadInput(
            f"{fewest} texts with one combination of the two concepts",
            where="spurious correlation",
            mend=f"give at least {FEWEST_TEXTS} of each of the four",
        )
    shuffled = [rng.permutation(cell) for cell in cells]
    half = fewest // 2
    test = np.concatenate([cell[half:fewest] for cell in shuffled])
    confounded = np.concatenate([shuffled[0][:half], shuffled[3][:half]])
    free = np.concatenate([cell[:half] for cell in shuffled])
    base, oracle = (fitted_probe(outputs[rows], wanted[rows]) for rows in (confounded, free))
    shortcut = fitted_probe(outputs[free], spurious[free])
    effect = np.abs(mean_differences(features[free], spurious[free]) * (directions @ shortcut.weights))
    before, best = base.accuracy(outputs[test], wanted[test]), oracle.accuracy(outputs[test], wanted[test])
    if best - before < SMALLEST_GAP:
        return np.zeros(len(erased))
    order = np.argsort(-effect, kind="stable")
    after = base.accuracies_without(outputs[test], features[test], directions, order, erased, wanted[test])
    return (np.array(after) - before) / (best - before)


def targeted_probe_perturbation(
    outputs: Array,
    features: Array,
    directions: Array,
    classes: npt.NDArray[np.int64],
    splits: Sequence[Split],
    *,
    erased: Sequence[int] = ERASED,
) -> Array:
    """TPP: how much erasing the features of one class harms its own probe more than those of the others.

    ``mean over i of (A_i - A_ii) - mean over j != i of (A_j - A_ij)``, where A_j is the accuracy of the probe of
    class j and A_ij the same after the features with the largest ``max(mean difference, 0) * (direction . w_i)`` are
    set to 0.

    Parameters
    ----------
    classes : (texts,) number of each text's class, from 0
    splits : one for each class: which texts its one-against-the-rest probe learns from, and which it is judged on

    Returns
    -------
    (len(erased),)
    """
    count = len(splits)
    if count < 2:
        raise BadInput("there is one class", where="targeted perturbation", mend="give texts of at least two")
    labels = [classes == number for number in range(count)]
    probes = [fitted_probe(outputs[split.train], label[split.train]) for label, split in zip(labels, splits)]
    before = [
        probe.accuracy(outputs[split.test], label[split.test]) for probe, label, split in zip(probes, labels, splits)
    ]
    effects = [
        np.maximum(mean_differences(features[split.train], label[split.train]), 0) * (directions @ probe.weights)
        for probe, label, split in zip(probes, labels, splits)
    ]
    drop = np.empty((len(erased), count, count))
    for i, effect in enumerate(effects):
        order = np.argsort(-effect, kind="stable")
        for j, (probe, label, (_, test)) in enumerate(zip(probes, labels, splits)):
            after = probe.accuracies_without(outputs[test], features[test], directions, order, erased, label[test])
            drop[:, i, j] = before[j] - np.array(after)
    own = drop.diagonal(axis1=1, axis2=2)
    return (own - (drop.sum(axis=2) - own) / (count - 1)).mean(axis=1)


class Disentanglement(NamedTuple):
    """RAVEL's two shares.

    isolation : attributes that were not meant to change and did not
    causality : attributes that were meant to change and did
    """

    isolation: float
    causality: float


def ravel(
    outputs: Array,
    features: Array,
    directions: Array,
    attributes: Sequence[npt.NDArray[np.int64]],
    splits: Sequence[Split],
    rng: np.random.Generator,
    *,
    k: int = 20,
    pairs: int = 200,
) -> Disentanglement:
    """Swap the features of one attribute between prompts, and see which attributes are still told apart.

    The features of an attribute are the k whose means over its values spread most. Between prompts of different values
    they take the other prompt's activations; the attribute should then be read as the other's, and all other attributes
    as before. What is read is told by linear probes of the output, where the paper asks the model to go on: so it
    measures the representation, not the behaviour.

    Parameters
    ----------
    attributes : for each attribute the number of each text's value
    splits : for each attribute, the texts learned from and judged on
    k : features swapped
    pairs : pairs of prompts for each attribute
    """
    if len(attributes) < 2:
        raise BadInput("there is one attribute", where="ravel", mend="give texts that differ in at least two")
    kept, changed = [], []
    readers = [_reader(outputs[split.train], values[split.train]) for values, split in zip(attributes, splits)]
    for own, (values, split) in enumerate(zip(attributes, splits)):
        means = np.stack([features[split.train][values[split.train] == v].mean(axis=0) for v in np.unique(values)])
        chosen = np.argsort(-means.std(axis=0), kind="stable")[:k]
        base, source = rng.choice(split.test, pairs), rng.choice(split.test, pairs)
        differ = values[base] != values[source]
        base, source = base[differ], source[differ]
        if not len(base):
            continue
        swap = features[np.ix_(source, chosen)] - features[np.ix_(base, chosen)]
        after = outputs[base] + swap @ directions[chosen]
        for other, read in enumerate(readers):
            was, now = read(outputs[base]), read(after)
            if other == own:
                changed.append((now == attributes[own][source]).mean())
            else:
                kept.append((now == was).mean())
    if not changed or not kept:
        raise BadInput("no two prompts differ in an attribute", where="ravel", mend="give more texts")
    return Disentanglement(float(np.mean(kept)), float(np.mean(changed)))


def _reader(x: Array, values: npt.NDArray[np.int64]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        centre, spread = x.mean(axis=0), x.std(axis=0) + 1e-12
        model = LogisticRegression(C=1.0, max_iter=1000).fit((x - centre) / spread, values)
    return lambda rows: model.predict((rows - centre) / spread)
