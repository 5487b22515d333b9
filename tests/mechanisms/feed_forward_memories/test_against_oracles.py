"""Every yardstick against its definition, written apart, on a dozen features and some fifty texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.mechanisms.feed_forward_memories import (
    absorption_of_words,
    balanced_split,
    detectors,
    explained_variance,
    sparse_probing,
    spurious_correlation_removal,
    targeted_probe_perturbation,
)
from answerable.mechanisms.feed_forward_memories.absorption import absorption, letter_probes
from answerable.mechanisms.feed_forward_memories.solver import Definition
from tests.oracles import feed_forward_memories as oracle

M, D = 12, 4


def drawn(seed: int, n: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    """Features of n texts, what each writes, and outputs that hold more than that."""
    rng = np.random.default_rng(seed)
    features, directions = rng.standard_normal((n, M)), rng.standard_normal((M, D)) * rng.uniform(0.3, 3, (M, 1))
    return rng, features, directions, features @ directions + 0.5 * rng.standard_normal((n, D))


@pytest.mark.parametrize("number", range(6))
def test_sparse_probing(number: int) -> None:
    rng, features, _, _ = drawn(number, 50)
    labels = rng.random(50) < 0.5
    features[:, 4] += labels
    split = balanced_split(labels, rng)
    found = sparse_probing(features, labels, split)
    expected = [oracle.sparse_probe(features, labels, split.train, split.test, k) for k in (1, 2, 5)]
    assert found.accuracy == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("number", range(4))
def test_targeted_probe_perturbation(number: int) -> None:
    rng, features, directions, _ = drawn(number, 48)
    classes = np.arange(48) % 3
    features[:, :3] += 2 * (classes[:, None] == np.arange(3))
    outputs = features @ directions + 0.3 * rng.standard_normal((48, D))
    splits = [balanced_split(classes == c, rng) for c in range(3)]
    found = targeted_probe_perturbation(outputs, features, directions, classes, splits, erased=(1, 3, 12))
    expected = [
        oracle.tpp(outputs, features, directions, classes, [(s.train, s.test) for s in splits], n) for n in (1, 3, 12)
    ]
    assert found == pytest.approx(expected, abs=1e-9)


def spurious_case(number: int) -> tuple[np.ndarray, list[float]]:
    """What is found for one draw, and what its definition gives."""
    _, features, directions, _ = drawn(number, 48)
    wanted, spurious = np.arange(48) % 2 == 0, np.arange(48) // 2 % 2 == 0
    features *= 0.3
    features[:, 0] += wanted
    features[:, 1] += 3 * spurious
    outputs = features @ directions
    cells = [np.flatnonzero((wanted == a) & (spurious == b)) for a in (True, False) for b in (True, False)]
    twin = np.random.default_rng(number)
    shuffled = [twin.permutation(cell) for cell in cells]
    test = np.concatenate([cell[6:] for cell in shuffled])
    confounded, free = np.r_[shuffled[0][:6], shuffled[3][:6]], np.concatenate([cell[:6] for cell in shuffled])
    texts = outputs, features, directions, wanted, spurious
    found = spurious_correlation_removal(*texts, np.random.default_rng(number), erased=(1, 4))
    return found, [oracle.scr(*texts, confounded, free, test, n) for n in (1, 4)]


def test_spurious_correlation_removal() -> None:
    cases = [spurious_case(number) for number in range(6)]
    for found, expected in cases:
        assert found == pytest.approx(expected, abs=1e-9)
    assert sum(found.any() for found, _ in cases) >= 3  # in some the confounded probe has nothing to gain


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_absorption(seed: int, n_main: int) -> None:
    rng = np.random.default_rng(seed)
    words, values, direction = (
        np.maximum(rng.standard_normal((9, M)), 0), rng.standard_normal((M, D)) * rng.uniform(0.2, 4, (M, 1)),
        rng.standard_normal(D),
    )  # fmt: skip
    values[5] = 0
    main = rng.permutation(M)[:n_main]
    outputs = words @ values + rng.standard_normal((9, D)) * rng.choice([0, 1])  # with an error of its own, or none
    by_word = [oracle.absorbed(y, word, values, direction, main.tolist()) for y, word in zip(outputs, words)]
    assert absorption_of_words(outputs, words, values, direction, main).fraction == pytest.approx(
        np.mean(by_word), abs=1e-9
    )


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(["fvu", "uncentred", "legacy_token_mean"]))
def test_explained_variance(seed: int, definition: Definition) -> None:
    rng = np.random.default_rng(seed)
    outputs, made = rng.standard_normal((2, 12, D)) + rng.uniform(-3, 3, D)
    expected = oracle.explained(outputs, made, definition)
    assert explained_variance(outputs, made, definition=definition) == pytest.approx(expected, rel=1e-9)


def test_detectors_are_chosen_on_other_texts_than_they_are_judged_on() -> None:
    from sklearn.metrics import roc_auc_score

    rng, features, _, _ = drawn(0, 60)
    labels = np.arange(60) % 2 == 0
    features[:, 7] -= 2 * labels
    split = balanced_split(labels, rng, share=0.5)
    found = detectors(features, labels, split, most=2)
    assert found[0].feature == 7
    for one in found:
        assert one.chosen == pytest.approx(roc_auc_score(labels[split.train], features[split.train, one.feature]))
        expected = roc_auc_score(labels[split.test], features[split.test, one.feature])
        assert one.auroc.value == pytest.approx(expected) and one.auroc.low <= expected <= one.auroc.high


def test_a_planted_absorption_scores_by_its_words() -> None:
    """Letter a's feature is silent for two of its words, where another writes the same: those two are absorbed."""
    letters = np.repeat(list("abcdefghijklmnopqrst"), 40)
    activations = np.zeros((800, 21))
    activations[np.arange(800), np.repeat(np.arange(20), 40)] = 1
    values = np.vstack([np.eye(20), np.eye(20)[:1]])
    activations[[4, 9], 0], activations[[4, 9], 20] = 0, 1
    outputs = activations @ values
    for seed in range(30):  # until both are among the words that are judged
        train = np.random.default_rng(seed).random(800) < 0.8
        if not train[[4, 9]].any():
            break
    probes = letter_probes(outputs, letters, np.random.default_rng(seed))
    found = absorption(outputs, activations, values, letters, probes)
    judged = int((~train[:40]).sum())
    assert found["a"].words == judged
    assert found["a"].fraction == pytest.approx(2 / judged) == found["a"].full
    assert all(one.fraction == 0 and one.can_score == 0 for letter, one in found.items() if letter != "a")
