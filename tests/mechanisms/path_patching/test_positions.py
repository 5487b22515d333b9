"""Patches at any token: the slow way by hooks, for every family."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import Pairs, PathPatching, effects_at, trace
from answerable.mechanisms.path_patching.positions import Place
from answerable.mechanisms.path_patching.sweep import Node, Patch, activations, patched
from answerable.subjects.language_model import LanguageModel, intervene
from tests.mechanisms.path_patching.test_sweep import every_family, prompts
from tests.oracles.path_patching import last_logits, recorded
from tests.subjects.tiny_models import tiny


def traced(lm: LanguageModel, n_tokens: int = 6) -> Any:
    ids, twins = prompts(1, n_tokens), prompts(2, n_tokens)
    pairs = Pairs.from_ids(ids.tolist(), twins.tolist(), [5, 6, 7], [8, 9, 10])
    return trace(lm, None, pairs, keep_wrong=True, allow_leaky=True, least=1), ids, twins


def by_hooks(lm: LanguageModel, ids: Any, of_twins: Any, place: Place) -> Any:
    node, token = place
    site = f"{'heads' if node.kind == 'head' else 'feed_forward'}.{node.layer}"
    there = of_twins[site]

    def change(tensor: Any) -> Any:
        changed = tensor.clone()
        if node.kind == "head":
            changed[:, token, node.head] = there[:, token, node.head]
        else:
            changed[:, token] = there[:, token]
        return changed

    with intervene(lm, {site: change}):
        return last_logits(lm, ids)


@every_family
def test_every_token_is_the_slow_way_by_hooks(name: str) -> None:
    lm = tiny(name)
    found, ids, twins = traced(lm)
    places = [
        Place(node, token)
        for node in (Node("head", 0, 1), Node("mlp", 1), Node("head", 2, 3), Node("head", 1, 2))
        for token in (-1, -3, -6)
    ]
    ours = effects_at(found, places, PathPatching(raw=False))
    plain, of_twins = last_logits(lm, ids), recorded(lm, twins)
    rows = torch.arange(3)
    for place, effect in zip(places, ours, strict=True):
        changed = by_hooks(lm, ids, of_twins, place) - plain
        wanted = changed[rows, [5, 6, 7]] - changed[rows, [8, 9, 10]]
        assert torch.as_tensor(effect) == pytest.approx(wanted.double().numpy(), abs=1e-5 * float(plain.abs().max()))


def test_the_last_token_is_path_total() -> None:
    lm = tiny("gemma3")
    found, *_ = traced(lm)
    nodes = [Node("head", 0, 2), Node("mlp", 1)]
    ours = effects_at(found, [Place(node, -1) for node in nodes])
    readout = PathPatching().readout(found)
    with torch.no_grad():
        patches = [Patch(node, activations(found.negative, node)) for node in nodes]
        after = readout(patched(lm, found.positive, patches, "total"))
        before = readout(patched(lm, found.positive, [Patch(nodes[0], activations(found.positive, nodes[0]))], "total"))
    assert ours == pytest.approx((after - before).double().numpy(), abs=1e-5)


def test_prompts_of_several_lengths_and_tokens_before_the_first() -> None:
    lm = tiny("llama")
    rows = [prompts(1, 4)[0].tolist(), prompts(2, 6)[0].tolist(), prompts(3, 4)[1].tolist()]
    twins = [prompts(4, 4)[0].tolist(), prompts(5, 6)[0].tolist(), prompts(6, 4)[1].tolist()]
    pairs = Pairs.from_ids(rows, twins, [5, 6, 7], [8, 9, 10])
    found = trace(lm, None, pairs, keep_wrong=True, allow_leaky=True, least=1)
    effects = effects_at(found, [Place(Node("mlp", 0), -6), Place(Node("mlp", 0), -2)])
    assert effects[0, 0] == effects[0, 2] == 0 != effects[0, 1]
    assert (effects[1] != 0).all()


def test_a_twin_of_another_length_names_its_pair() -> None:
    lm = tiny("llama")
    ids = prompts(1, 5).tolist()
    pairs = Pairs.from_ids(ids, [ids[0], ids[1][:4], ids[2]], [5, 6, 7], [8, 9, 10])
    found = trace(lm, None, pairs, keep_wrong=True, allow_leaky=True, least=1)
    with pytest.raises(BadInput, match="pair 2: the prompt has 5 tokens, its twin 4; patch the last token alone"):
        effects_at(found, [Place(Node("mlp", 0), -2)])
    with pytest.raises(BadInput, match="token 2; count from the end"):
        effects_at(found, [Place(Node("mlp", 0), 2)])
