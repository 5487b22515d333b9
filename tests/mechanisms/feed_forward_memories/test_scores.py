"""Probing, erasing, absorption and the game of auto-interpretation, by hand and on noise."""

import json

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import (
    Labelled,
    absorption_of_words,
    balanced_split,
    judging,
    lexical_judge,
    make_game,
    ravel,
    sparse_probing,
    spurious_correlation_removal,
    targeted_probe_perturbation,
)
from answerable.mechanisms.feed_forward_memories.absorption import letter_probes
from answerable.mechanisms.feed_forward_memories.scores import concepts_of


def test_sparse_probing_on_noise_is_chance() -> None:
    accuracy = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        labels = np.arange(200) % 2 == 0
        noise = rng.standard_normal((200, 5000)).astype(np.float32)
        accuracy.append(sparse_probing(noise, labels, balanced_split(labels, rng)).accuracy)
    mean, error = np.mean(accuracy, 0), np.std(accuracy, 0) / np.sqrt(12)
    assert (np.abs(mean - 0.5) <= 3 * error).all()


def test_the_probe_finds_the_planted_feature() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3 == 0
    features = rng.standard_normal((60, 30))
    features[:, 17] = 4 * labels
    found = sparse_probing(features, labels, balanced_split(labels, rng))
    assert found.chosen[0] == 17 and found.accuracy[0] == 1


def test_a_split_is_balanced_and_disjoint_and_refuses_too_few() -> None:
    labels = np.arange(50) < 12
    split = balanced_split(labels, np.random.default_rng(0))
    assert labels[split.train].mean() == labels[split.test].mean() == 0.5
    assert not set(split.train) & set(split.test)
    with pytest.raises(BadInput, match="concept: 9 and 41 texts with and without it; give at least 10 of each"):
        balanced_split(np.arange(50) < 9, np.random.default_rng(0))


def two_concepts(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Features 0 and 1 are the two concepts, the second much stronger; each writes one coordinate of the output."""
    wanted, spurious = np.arange(160) % 2 == 0, np.arange(160) // 2 % 2 == 0
    features = 0.05 * rng.standard_normal((160, 6))
    features[:, 0] += wanted
    features[:, 1] += np.where(spurious, 1, -1)  # to set it to 0 says neither
    directions = np.eye(6)
    return features @ directions, features, directions, wanted, spurious


def test_erasing_the_spurious_feature_lets_the_probe_generalise() -> None:
    rng = np.random.default_rng(0)
    outputs, features, directions, wanted, spurious = two_concepts(rng)
    outputs[:, 0] += 0.5 * rng.standard_normal(160)  # so that the confounded probe leans on the other
    removed = spurious_correlation_removal(outputs, features, directions, wanted, spurious, rng, erased=(1, 6))
    assert removed[0] > 0.5
    clean = spurious_correlation_removal(features, features, directions, wanted, wanted ^ spurious, rng, erased=(1,))
    assert clean[0] <= 1


def test_erasing_a_class_s_feature_harms_its_own_probe_alone() -> None:
    rng = np.random.default_rng(0)
    classes = np.arange(90) % 3
    features = 0.01 * rng.standard_normal((90, 5))
    features[np.arange(90), classes] += 1
    splits = [balanced_split(classes == c, rng) for c in range(3)]
    found = targeted_probe_perturbation(features, features, np.eye(5), classes, splits, erased=(1, 5))
    assert found[0] == pytest.approx(0.5)  # right in all, and in half once its feature is gone
    assert found[1] == pytest.approx(0)  # all features gone: all alike
    with pytest.raises(BadInput, match="there is one class"):
        targeted_probe_perturbation(features, features, np.eye(5), classes * 0, splits[:1])


def test_swapping_an_attribute_s_feature_moves_it_alone() -> None:
    rng = np.random.default_rng(0)
    outputs, features, directions, first, second = two_concepts(rng)
    splits = [balanced_split(first, rng)] * 2
    found = ravel(outputs, features, directions, [first.astype(int), second.astype(int)], splits, rng, k=1)
    assert found == (1, 1)
    every = ravel(outputs, features, directions, [first.astype(int), second.astype(int)], splits, rng, k=6)
    assert every.causality == 1 and every.isolation < 0.7


def test_absorption_by_hand() -> None:
    values = np.array([[1.0, 0], [2, 0], [0, 1], [-1, 0]])
    probe = np.array([3.0, 0])  # its length does not matter
    main = np.array([0])
    words = np.array([
        [4.0, 0, 9, 0],  # the main feature alone: 0
        [0.0, 2, 9, 0],  # silent, one other does it alone: 1, and full
        [1.0, 1, 0, 0],  # M = 1, R = 2, P = 3: R' = min(2, 2), 2 / 3
        [4.0, 1, 0, 3],  # P = 4 + 2 - 3 = 3, M = 4 >= P: 0
    ])  # fmt: skip
    found = absorption_of_words(words @ values, words, values, probe, main)
    assert found.fraction == pytest.approx((0 + 1 + 2 / 3 + 0) / 4)
    assert found.full == pytest.approx(1 / 4)
    assert found.can_score == pytest.approx(3 / 4)
    assert found.words == 4


def test_absorption_needs_twenty_letters() -> None:
    letters = np.array(list("abcde") * 10)
    with pytest.raises(BadInput, match="letters: 5 letters begin at least 10 words of one token; this needs 20"):
        letter_probes(np.zeros((50, 3)), letters, np.random.default_rng(0))


TEXTS = [f"alarm number {i}" if i % 2 else f"quiet day {i}" for i in range(60)]
STRENGTHS = np.array([1.0 + i % 7 if i % 2 else 0 for i in range(60)])


def test_the_lexical_judge_finds_a_word_and_its_game_is_fair() -> None:
    game = make_game(3, STRENGTHS, TEXTS, np.random.default_rng(0))
    assert game is not None
    assert len(game.shown) == 14 and sum(game.active) == 4
    assert not set(game.learn) & set(game.shown)
    assert judging.accuracy(game, lexical_judge(game)) == 1
    assert make_game(3, STRENGTHS * (np.arange(60) < 25), TEXTS, np.random.default_rng(0)) is None
    assert judging.chance_accuracy() == pytest.approx(116 / 196)


def test_another_judge_reads_the_game_and_answers() -> None:
    game = make_game(3, STRENGTHS, TEXTS, np.random.default_rng(0))
    assert game is not None
    asked = json.loads(judging.questions([game]))
    says = [place for place, text in enumerate(asked["texts"]) if "alarm" in text]
    assert judging.score([game], [judging.Line(1, {"feature": 3, "active": says})]) == {3: 1.0}
    for answers, told in (
        ([{"feature": 4, "active": []}], "judge, line 1: there is no game of feature '4'"),
        ([{"feature": 3, "active": [14]}], r"judge, line 1: active is '\[14\]'; list places from 0 to 13"),
        ([{"feature": 3, "active": [True]}], "judge, line 1: active is"),
        ([{"feature": 3, "active": [0]}] * 2, "judge, line 2: feature 3 is answered twice; keep one of the two"),
        ([], "judge: feature 3 has no answer; answer every game"),
    ):
        with pytest.raises(BadInput, match=told):
            judging.score([game], [judging.Line(number, one) for number, one in enumerate(answers, 1)])


def test_concepts_are_values_with_ten_texts_on_both_sides() -> None:
    found = concepts_of(Labelled(["t"] * 40, {"kind": ["a"] * 15 + ["b"] * 15 + ["c"] * 10}))
    assert {name: int(labels.sum()) for name, labels in found.items()} == {"a": 15, "b": 15, "c": 10}
    for values in (["a"] * 40, ["a"] * 35 + ["b"] * 5):
        with pytest.raises(BadInput, match=r"concepts, kind: . values, 40 texts; give at least 10 texts"):
            concepts_of(Labelled(["t"] * 40, {"kind": values}))
