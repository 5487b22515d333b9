"""Memories: a layer's weights make what the model itself computes, in every family, and recording keeps nothing."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, capture, intervene, memory, record
from answerable.subjects.language_model.memories import Seen
from answerable.subjects.language_model.parts import find_part, layer_count
from tests.subjects.test_hooks import hooks_on
from tests.subjects.tiny_models import LAYERS, TINY, ids, tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
close = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(params=TINY)
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    return tiny(request.param)


def seen(lm: LanguageModel, **options: Any) -> dict[int, Seen]:
    found: dict[int, Seen] = {}
    record(
        lm,
        ids(),
        lambda layer, what: found.setdefault(layer, Seen(*(t if t is None else t.clone() for t in what))),
        **options,
    )
    return found


def test_activations_and_what_is_written_are_the_model_s_own(lm: LanguageModel) -> None:
    with capture(lm, [f"feed_forward.{layer}" for layer in range(LAYERS)]) as whole, torch.no_grad():
        lm.model(ids())
    found = seen(lm)
    assert sorted(found) == list(range(LAYERS))
    for layer, (read, activations, written) in found.items():
        weights = memory(lm, layer)
        assert weights.values.shape == (weights.count, 24) and activations.shape == (12, weights.count)
        with torch.no_grad():
            assert_close(weights.activations(read), activations, **close)
            assert_close(weights.written(activations), whole[f"feed_forward.{layer}"].flatten(0, 1), **close)
            assert_close(weights.norm(written) if weights.norm else written, weights.written(activations), **close)


def test_putting_the_encoded_activations_back_changes_no_logit(lm: LanguageModel) -> None:
    if find_part(lm, "router", 1) is not None:  # a mixture of experts has no one place for its activations
        with (
            pytest.raises(BadInput, match="has no part 'down' here"),
            intervene(lm, {"memories.1": lambda tensor: tensor}),
        ):
            lm.model(ids())
        return
    with torch.no_grad():
        before = lm.model(ids()).logits
        encoded = memory(lm, 1).activations(seen(lm)[1].read)
        with intervene(lm, {"memories.1": lambda tensor: encoded.reshape(tensor.shape)}):
            assert torch.equal(lm.model(ids()).logits, before)


def test_heads_are_memories_whose_activation_is_the_identity(lm: LanguageModel) -> None:
    with capture(lm, ["stream.1", "attention.1", "heads.1"]) as whole, torch.no_grad():
        patterns = lm.model(ids(), output_attentions=True).attentions[1]
    weights = memory(lm, 1, of="heads")
    norm = find_part(lm, "attention_norm", 1)
    post = lm.family.stream == "normalised" or not getattr(lm.model.config, "do_layer_norm_before", True)
    with torch.no_grad():
        read = whole["stream.1"] if post or norm is None else norm(whole["stream.1"])
        mixed = torch.einsum("bhqk,bkd->bqhd", patterns, read).flatten(0, 1)
        activations = weights.activations(mixed)
        # attention weights sum to 1, so that the bias of the values comes through whole
        assert_close(activations, whole["heads.1"].flatten(2).flatten(0, 1), rtol=1e-4, atol=1e-5)
        assert_close(weights.written(activations), whole["attention.1"].flatten(0, 1), rtol=1e-4, atol=1e-5)
    recorded = seen(lm, layers=[1], of="heads")[1]
    assert recorded.read is None
    assert_close(recorded.activations, whole["heads.1"].flatten(2).flatten(0, 1), **close)


def test_one_expert_writes_its_share() -> None:
    lm = tiny("mixtral")
    read, activations, written = seen(lm)[0]
    with torch.no_grad():
        _, _shares, chosen = lm.model.model.layers[0].mlp.gate(read)
    width = activations.shape[1] // 4
    silent = activations.reshape(12, 4, width).abs().sum(2) == 0
    assert torch.equal(~silent, torch.zeros(12, 4, dtype=torch.bool).scatter(1, chosen, True))
    assert_close(activations @ memory(lm, 0).values, written, **close)


def test_the_pass_stops_after_the_last_layer_and_leaves_no_hook() -> None:
    lm = tiny("llama")
    there = hooks_on(lm.model)
    ran: list[int] = []
    handle = lm.model.model.layers[2].register_forward_hook(lambda *_: ran.append(2))
    assert sorted(seen(lm, layers=[1, 0, 1])) == [0, 1]
    handle.remove()
    assert not ran and hooks_on(lm.model) == there

    def fail(layer: int, what: Seen) -> None:
        raise RuntimeError("in the visit")

    with pytest.raises(RuntimeError, match="in the visit"):
        record(lm, ids(), fail)
    assert hooks_on(lm.model) == there


def test_padding_does_not_reach_a_token() -> None:
    lm = tiny("bert")
    whole = seen(lm)[2].activations.reshape(2, 6, -1)
    padded = torch.cat([ids(), torch.full((2, 3), 5)], 1)
    mask = torch.tensor([[1] * 6 + [0] * 3] * 2)
    found: dict[int, Any] = {}
    record(lm, padded, lambda layer, what: found.setdefault(layer, what.activations.clone()), mask=mask)
    assert_close(found[2].reshape(2, 9, -1)[:, :6], whole, **close)


def test_what_is_not_there_is_told() -> None:
    lm = tiny("llama")
    with pytest.raises(BadInput, match="layer 7 is not from 0 to 2"):
        memory(lm, 7)
    with pytest.raises(BadInput, match="layer 7 is not from 0 to 2"):
        record(lm, ids(), lambda layer, what: None, layers=[7])
    assert layer_count(lm) == 3
