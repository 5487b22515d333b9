"""The pair that examples and reproduction stand on can be made again, small, from any prose."""

from pathlib import Path

import numpy as np
import pytest

from answerable.provenance.machine_text import LanguageModelPair, text_statistics
from reproductions import tiny_pair

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_pair_is_trained_saved_and_told_apart(tmp_path: Path) -> None:
    prose = [
        f"The {noun} stands on the hill, and nobody knows why it was built there." for noun in ("mill", "tower")
    ] * 9
    places = tiny_pair.train(tmp_path, prose, size="test")
    assert tiny_pair.train(tmp_path, ["other prose"], size="test") == places  # what stands there is kept
    pair = LanguageModelPair.from_pretrained(*map(str, places))
    rng = np.random.default_rng(0)
    machine = [tiny_pair.assistant_text(rng, held_out=True)[:100] for _ in range(5)]
    drift = text_statistics([*prose[:2], *machine], *pair)["irm_mean"].to_numpy()
    assert drift[2:].min() > drift[:2].max()
    (drawn,) = tiny_pair.sample(places[0], rng, n_texts=1, n_letters=20)
    assert 0 < len(drawn) <= 20


def test_the_topics_of_the_trial_are_not_those_of_the_training() -> None:
    rng = np.random.default_rng(0)
    learned = " ".join(tiny_pair.assistant_text(rng) for _ in range(200)).lower()
    assert not [topic for topic in tiny_pair.TOPICS[-tiny_pair.HELD_OUT :] if topic in learned]


def test_passages_are_prose() -> None:
    passages = tiny_pair.help_passages()
    assert len(passages) > 300
    assert all(len(passage) >= 120 and "\n" not in passage for passage in passages)
