"""Feature absorption (Chanin et al. 2024, as SAEBench measures it): letters whose feature stays silent for some words.

A linear probe knows the first letter of a word from the layer's output. A few main features carry the letter too. For a
word that the probe knows, absorbers are other features that write along the probe while the main ones fall short.

A cosine times an activation, as the benchmark has it, is a contribution for values of length 1 alone; here it is
``a_i (V_i . p)``, which sums to the output's own projection whatever the lengths.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import SGDClassifier

from answerable.errors import BadInput

from .probing import Probe, fitted_probe

Array = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
ALONG, SHARE, ABSORBERS, MOST_MAIN = 0.1, 0.4, 3, 10
FULL_ALONG = 0.025
GAIN, GOOD_PROBE = 0.03, 0.6
FEWEST_LETTERS = 20


class Absorption(NamedTuple):
    """One letter, or the mean over letters.

    fraction : mean share of the probe's projection that absorbers take over, over the words the probe knows
    full : share of words with no main feature active and one absorber that does it alone
    can_score : share of words whose absorbers reach the least share at all; a fraction near 0 means little where this
        is small
    words : words the probe knows
    """

    fraction: float
    full: float
    can_score: float
    words: int


def absorption_of_words(
    outputs: Array, activations: Array, values: Array, probe: Array, main: npt.NDArray[np.int64]
) -> Absorption:
    """Absorption of one letter over the words that the probe knows.

    ``M`` is the sum of the main features' contributions, ``P`` what the output itself has along the probe (for features
    that leave an error, not the same as the sum of all contributions), ``R`` the sum of the three largest absorbers
    (others, with a cosine of at least 0.1 and a contribution above 0). A word scores 0 where M >= P or R < 0.4 P, 1
    where M <= 0, else R' / (R' + M) with R' = min(R, P - M).

    Parameters
    ----------
    outputs : (words, d) at the word's last token
    activations : (words, m) there
    values : (m, d)
    probe : (d,) weights of the linear probe
    main : numbers of the main features
    """
    unit = np.asarray(probe, np.float64) / np.linalg.norm(probe)
    along = np.asarray(values, np.float64) @ unit
    lengths = np.linalg.norm(values, axis=1)
    cosine = np.divide(along, lengths, out=np.zeros(len(along)), where=lengths > 0)
    parts = np.asarray(activations, np.float64) * along
    is_main = np.zeros(len(along), bool)
    is_main[main] = True
    carried = parts[:, is_main].sum(axis=1)
    whole = np.asarray(outputs, np.float64) @ unit
    others = np.where(~is_main & (cosine >= ALONG) & (parts > 0), parts, 0.0)
    taken = np.sort(others, axis=1)[:, ::-1][:, :ABSORBERS].sum(axis=1)
    enough = (whole > 0) & (taken >= SHARE * whole)
    left = np.minimum(taken, whole - carried)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(carried <= 0, 1.0, left / (left + carried))
    fraction = np.where((carried >= whole) | ~enough, 0.0, part)
    silent = ~(np.abs(activations[:, is_main]) > 0).any(axis=1)
    alone = np.where(~is_main & (cosine >= FULL_ALONG), parts, -np.inf).max(axis=1)
    full = silent & (whole > 0) & (alone >= SHARE * whole)
    count = len(activations)
    if not count:
        return Absorption(float("nan"), float("nan"), float("nan"), 0)
    return Absorption(float(fraction.mean()), float(full.mean()), float(enough.mean()), count)


def main_features(activations: Array, labels: Bools, *, most: int = MOST_MAIN) -> npt.NDArray[np.int64]:
    """The features of the sparse probe that stops growing where one more gains less than 0.03 in F1.

    Features are taken in the order of the weights of an L1 logistic regression on features whose spread is 1. In all
    of these probes the letter's few words count as much as all others together; unweighted ones would call no word the
    letter's.
    """
    order = _by_l1(activations, labels, most)
    chosen, best = 1, _f1(activations[:, order[:1]], labels)
    for k in range(2, min(most, len(order)) + 1):
        score = _f1(activations[:, order[:k]], labels)
        if score - best < GAIN:
            break
        chosen, best = k, score
    return order[:chosen]


class LetterProbes(NamedTuple):
    """Linear probes of first letters on a layer's outputs, which say nothing of any features.

    train : (words,) those learned from
    good : of each letter told well enough (F1 above 0.6 on the other words) its probe and (words,) which of the other
        words it knows
    f1 : of every letter that has words enough
    """

    train: Bools
    good: dict[str, tuple[Probe, Bools]]
    f1: dict[str, float]


def letter_probes(outputs: Array, letters: npt.NDArray[np.str_], rng: np.random.Generator) -> LetterProbes:
    """One probe for each letter against the rest, on four fifths of the words.

    Parameters
    ----------
    outputs : (words, d) the layer's output at the word's last token
    letters : (words,) first letter of each

    Raises
    ------
    BadInput : fewer than 20 letters with at least 10 words
    """
    found = LetterProbes(rng.random(len(letters)) < 0.8, {}, {})
    train = found.train
    for letter in map(str, usable_letters(letters)):
        labels = letters == letter
        if min(labels[train].sum(), labels[~train].sum()) < 2:
            continue
        probe = fitted_probe(outputs[train], labels[train], balanced=True)
        says = outputs @ probe.weights + probe.offset > 0
        found.f1[letter] = _f1_of(says[~train], labels[~train])
        if found.f1[letter] > GOOD_PROBE:
            found.good[letter] = probe, says & labels & ~train
    return found


def absorption(
    outputs: Array, activations: Array, values: Array, letters: npt.NDArray[np.str_], probes: LetterProbes
) -> dict[str, Absorption]:
    """Absorption of every letter whose probe is good enough.

    Parameters
    ----------
    outputs : (words, d) the layer's output at the word's last token
    activations : (words, m)
    values : (m, d)
    letters : (words,) first letter of each
    probes : of these outputs and letters
    """
    found = {}
    for letter, (probe, known) in probes.good.items():
        main = main_features(activations[probes.train], letters[probes.train] == letter)
        found[letter] = absorption_of_words(outputs[known], activations[known], values, probe.weights, main)
    return found


def usable_letters(letters: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    """The letters that begin at least 10 of the words.

    Raises
    ------
    BadInput : fewer than 20
    """
    names, counts = np.unique(letters, return_counts=True)
    usable = names[counts >= 10]
    if len(usable) < FEWEST_LETTERS:
        raise BadInput(
            f"{len(usable)} letters begin at least 10 words of one token",
            where="letters",
            mend=f"this needs {FEWEST_LETTERS}: choose another tokenizer, or leave absorption out",
        )
    return usable


def _by_l1(activations: Array, labels: Bools, most: int) -> npt.NDArray[np.int64]:
    """Numbers of the features with the largest weights in an L1 regression, among the 200 that differ most.

    As the benchmark has it: 50 epochs of gradient descent, weight of the L1 norm 0.01; classes count alike; only
    features that tell the letter by being active. For those with a sign that is activity on the side of the weight.
    """
    apart = np.abs(activations[labels].mean(axis=0) - activations[~labels].mean(axis=0))
    few = np.argsort(-apart, kind="stable")[: min(200, len(apart))]
    x = np.asarray(activations[:, few], np.float64)
    spread = x.std(axis=0)
    spread[spread == 0] = 1
    model = SGDClassifier(
        loss="log_loss", penalty="l1", alpha=0.01, max_iter=50, tol=None, class_weight="balanced", random_state=0
    ).fit(x / spread, labels)
    weights = model.coef_[0]
    telling = np.where(weights * x[labels].mean(axis=0) > 0, np.abs(weights), 0.0)
    order = np.argsort(-telling, kind="stable")[: max(1, min(most, np.count_nonzero(telling)))]
    return few[order]


def _f1(x: Array, labels: Bools) -> float:
    probe = fitted_probe(x, labels, balanced=True)
    return _f1_of(x @ probe.weights + probe.offset > 0, labels)


def _f1_of(says: Bools, labels: Bools) -> float:
    hit = int((says & labels).sum())
    return 2 * hit / max(1, int(says.sum()) + int(labels.sum()))
