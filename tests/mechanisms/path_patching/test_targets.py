"""What may be trained: counted exactly, and nothing else moves by a bit."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import Node, random_nodes, targeted_mask
from answerable.subjects.language_model import LanguageModel, capture, head_weights
from tests.subjects.tiny_models import TINY, WORDS, tiny

CAUSAL = [name for name in TINY if name not in ("bert", "roberta", "electra", "distilbert")]
NODES = [Node("head", 0, 1), Node("head", 0, 3), Node("head", 2, 0), Node("mlp", 1)]


def fresh(name: str) -> LanguageModel:
    lm = tiny(name)
    return replace(lm, model=copy.deepcopy(lm.model))


def trained(lm: LanguageModel, mask: Any, steps: int, optimizer: Any = None) -> None:
    optimizer = optimizer or torch.optim.AdamW(lm.model.parameters(), lr=1e-2, weight_decay=0.1)
    mask.apply(optimizer)
    ids = torch.randint(3, WORDS, (4, 6), generator=torch.Generator().manual_seed(0))
    for _ in range(steps):
        optimizer.zero_grad()
        lm.model(ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()


@pytest.mark.parametrize("name", CAUSAL)
def test_only_the_listed_slices_move(name: str) -> None:
    lm = fresh(name)
    before = {key: value.clone() for key, value in lm.model.named_parameters()}
    weights = head_weights(lm, 0)
    shown = [weight.clone() for weight in (weights.query, weights.output)]
    mask = targeted_mask(lm, NODES)
    trained(lm, mask, 10)
    moved = 0
    for key, value in lm.model.named_parameters():
        changed = value != before[key]
        frozen = ~mask.chosen[key] if key in mask.chosen else torch.ones_like(changed)
        assert not (changed & frozen).any(), key
        moved += int(changed.sum())
    assert 0.5 * mask.count < moved <= mask.count
    assert mask.count == mask.table()["trained"].sum()
    for old, new in zip(shown, (head_weights(lm, 0).query, head_weights(lm, 0).output), strict=True):
        changed_heads = (old != new).flatten(1).any(1)
        assert changed_heads.tolist() == [head in (1, 3) for head in range(len(changed_heads))]


@pytest.mark.parametrize("name", CAUSAL)
def test_marks_of_a_head_are_what_its_query_reads(name: str) -> None:
    """Another head's query stays as it was when the marked numbers are changed, and its own does not."""
    lm = fresh(name)
    mask = targeted_mask(lm, [Node("head", 1, 2)])
    ids = torch.randint(3, WORDS, (1, 5), generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), capture(lm, ["queries.1"]) as found:
        lm.model(ids, use_cache=False)
        before = found["queries.1"].clone()
        for key, marks in mask.chosen.items():
            mask.parameters[key][marks] += 0.5
        lm.model(ids, use_cache=False)
        changed = (found["queries.1"] - before).abs().amax((0, 1, 3)) > 1e-6
    assert changed.tolist() == [head == 2 for head in range(len(changed))]


def test_keys_of_a_group_move_when_enough_of_its_heads_do() -> None:
    lm = fresh("llama")  # 4 heads, 2 groups
    keys = "model.layers.0.self_attn.k_proj.weight"
    assert keys in targeted_mask(lm, [Node("head", 0, 0)]).chosen
    assert keys not in targeted_mask(lm, [Node("head", 0, 0)], group_share=0.6).chosen
    both = targeted_mask(lm, [Node("head", 0, 0), Node("head", 0, 1)], group_share=1.0)
    assert keys in both.chosen
    assert both.scale[keys] == 2.0  # 4 heads, 2 of them trained


def test_the_count_is_the_paper_s_arithmetic() -> None:
    """A head of width d in a stream of m numbers has 4 m d of them: q, k, v and o, without biases."""
    lm = fresh("mistral")
    mask = targeted_mask(lm, [Node("head", 1, head) for head in range(4)])
    attention = lm.model.model.layers[1].self_attn
    assert mask.count == sum(parameter.numel() for parameter in attention.parameters())


def test_a_parameter_outside_never_moves_though_the_optimiser_has_momentum() -> None:
    lm = fresh("gpt2")
    optimizer = torch.optim.SGD(lm.model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)
    before = lm.model.transformer.wpe.weight.clone()
    mask = targeted_mask(lm, NODES)
    trained(lm, mask, 3, optimizer)
    assert torch.equal(before, lm.model.transformer.wpe.weight)


def test_the_control_is_as_many_others() -> None:
    lm = tiny("gpt2")
    drawn = random_nodes(lm, NODES, seed=1)
    assert [node.kind for node in drawn].count("head") == 3
    assert not set(drawn) & set(NODES)
    assert drawn != random_nodes(lm, NODES, seed=2)
    with pytest.raises(BadInput, match="0 mlps are left for 3; choose fewer parts"):
        random_nodes(lm, [Node("mlp", layer) for layer in range(3)])


def test_what_cannot_be_trained_is_told() -> None:
    lm = fresh("gpt2")
    with pytest.raises(BadInput, match=r"there is no 9\.0; choose parts of this model"):
        targeted_mask(lm, [Node("head", 9, 0)])
    with pytest.raises(BadInput, match="no part is chosen"):
        targeted_mask(lm, [])
    with pytest.raises(BadInput, match="it is 2; choose from 0 to 1"):
        targeted_mask(lm, NODES, group_share=2)
    other = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    with pytest.raises(BadInput, match="it holds none of the parameters to train"):
        targeted_mask(lm, NODES).apply(other)
    attention = lm.model.transformer.h[0].attn.c_proj
    attention.weight = torch.nn.Parameter(torch.zeros_like(attention.weight, dtype=torch.int8), requires_grad=False)
    with pytest.raises(BadInput, match="its weights are quantised; load the model in float32"):
        targeted_mask(lm, NODES)
