"""Five seeds are five computations, and chance needs a seed."""

from pathlib import Path

import pytest

from answerable.asking import ask
from answerable.dossier import Dossier
from answerable.errors import BadDossier, BadInput
from answerable.store import Store


def test_each_seed_has_a_key_of_its_own(store: Path) -> None:
    answers = [ask("trivial/luck", seed=seed, store=store) for seed in range(5)]
    assert len({answer.provenance.key for answer in answers}) == 5
    assert len({answer.metrics["share"].value for answer in answers}) > 1
    assert [entry.seed for entry in Store(store).journal() if entry.event == "answered"] == [0, 1, 2, 3, 4]


def test_chance_without_a_seed_is_refused() -> None:
    with pytest.raises(
        BadInput, match="trivial/luck: its answer depends on chance and no seed is set; set seed, for example 0"
    ):
        ask("trivial/luck", store=False)
    with pytest.raises(BadDossier, match=r"d, ask 1 \(trivial/luck\): its answer depends on chance and no seed is set"):
        Dossier.from_mapping({"ask": [{"question": "trivial/luck"}]}, where="d")


def test_a_generator_depends_on_the_seed_and_its_name_alone() -> None:
    from answerable.run import Run

    draws = [Run(seed=3).rng("fold", i).random() for i in range(4)]
    run = Run(seed=3)
    assert [run.rng("fold", i).random() for i in reversed(range(4))] == draws[::-1]
    assert len(set(draws)) == 4
