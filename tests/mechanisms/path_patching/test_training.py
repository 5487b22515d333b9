"""Training of the parts that carry a behaviour, beside random parts of the same size and all parameters."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from answerable.asking import ask
from answerable.errors import BadInput
from answerable.mechanisms.path_patching import Node, Training, compared_training, targeted_mask, trace, train
from answerable.mechanisms.path_patching.replicas import PLANTED, planted, planted_pairs

NODE = Node("head", *PLANTED)


@pytest.fixture(scope="module")
def forgotten():
    """The planted model with the output of its one head turned down; the same words among other fillers, twice."""
    lm = planted(4)
    model = copy.deepcopy(lm.model)
    with torch.no_grad():
        model.transformer.h[0].attn.c_proj.weight[16:32] *= 0.02
    taught, judged = (trace(lm, None, planted_pairs(seed), allow_leaky=True).asked for seed in (4, 54))
    return replace(lm, model=model), taught, [(replace(pair, unit=f"other {pair.unit}"), word) for pair, word in judged]


def test_the_part_that_carries_is_enough_and_random_parts_are_not(forgotten) -> None:
    lm, taught, judged = forgotten
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}
    training = Training(steps=30, batch=40, rate=1e-2, seed=1)
    found = compared_training(lm, [NODE], taught, judged, training)
    rows = {row["way"]: row for row in found.table().rows(named=True)}
    assert list(rows) == ["untrained", "targeted", "random parts", "all parameters"]
    assert rows["untrained"]["parameters"] == 0 and rows["untrained"]["other_loss"] == 0
    assert rows["targeted"]["parameters"] == rows["random parts"]["parameters"] == targeted_mask(lm, [NODE]).count
    assert rows["all parameters"]["parameters"] == sum(parameter.numel() for parameter in lm.model.parameters())
    gain = {way: row["log_probability"] - rows["untrained"]["log_probability"] for way, row in rows.items()}
    assert gain["targeted"] > 1
    assert gain["targeted"] > 3 * gain["random parts"]
    assert rows["targeted"]["accuracy"] > 0.5 > rows["random parts"]["accuracy"]
    assert rows["targeted"]["other_loss"] < rows["all parameters"]["other_loss"]  # the rest of the model is kept
    value, low, high, _ = found.gain(seed=0)
    assert value == pytest.approx(gain["targeted"] - gain["random parts"]) and 0 < low < value < high
    assert rows["targeted"]["low"] <= rows["targeted"]["accuracy"] <= rows["targeted"]["high"]
    assert all(torch.equal(before[name], value) for name, value in lm.model.state_dict().items())


def test_training_is_the_same_again_and_moves_the_mask_alone(forgotten) -> None:
    lm, asked, _ = forgotten
    copies = [replace(lm, model=copy.deepcopy(lm.model)) for _ in range(2)]
    for one in copies:
        train(one, asked[:16], Training(steps=3, batch=8), targeted_mask(one, [NODE]))
    first, second = (one.model.state_dict() for one in copies)
    assert all(torch.equal(first[name], second[name]) for name in first)
    moved = {name for name, value in lm.model.state_dict().items() if not torch.equal(value, first[name])}
    assert moved == {f"transformer.h.0.attn.{name}" for name in ("c_attn.weight", "c_attn.bias", "c_proj.weight")}


def test_bad_training_is_told(forgotten) -> None:
    lm, asked, _ = forgotten
    with pytest.raises(BadInput, match="is taught and judged; judge on other words"):
        compared_training(lm, [NODE], asked[:9], asked[8:])
    with pytest.raises(BadInput, match="0 prompts to teach"):
        compared_training(lm, [NODE], [], asked)
    with pytest.raises(BadInput, match="training, steps: it is 0; choose a whole number from 1"):
        Training(steps=0)


def test_the_question_trains_when_asked() -> None:
    answer = ask("path-patching", replica="planted", resamples=100, draws=5, train=2, store=False, seed=0)
    table = answer.tables["training"].frame
    assert table["way"].to_list() == ["untrained", "targeted", "random parts", "all parameters"]
    assert "training" in answer.figures
    assert "training_gain" in answer.metrics
