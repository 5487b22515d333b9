"""Each family's map is proved on a tiny random model of it: the parts that it names make up what the model computes."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, capture, head_weights, part
from answerable.subjects.language_model.families import BY_MODEL_TYPE, FAMILIES
from answerable.subjects.language_model.parts import find_part, head_counts, is_parallel, layer_count, normalises_stream
from tests.subjects.tiny_models import LAYERS, TINY, ids, tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

EVERY_LAYER = ("stream", "attention", "feed_forward", "heads", "queries", "keys", "values")
close = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(params=TINY)
def lm(request: pytest.FixtureRequest) -> LanguageModel:
    return tiny(request.param)


def parts_of(lm: LanguageModel) -> dict[str, Any]:
    """Every site of one forward pass, and what the model returned."""
    sites = [f"{name}.{layer}" for name in EVERY_LAYER for layer in range(LAYERS)]
    with capture(lm, ["embedding", f"stream.{LAYERS}", "final", "logits", *sites]) as found, torch.no_grad():
        returned = lm.model(ids(), output_hidden_states=True)
    return {**found, "returned": returned}


def test_every_architecture_has_a_tiny_model() -> None:
    assert {model_type for model_type, _ in TINY.values()} == set(BY_MODEL_TYPE)
    assert sum(len(family.model_types) for family in FAMILIES) == len(BY_MODEL_TYPE)


def test_the_parts_add_up_to_the_output(lm: LanguageModel) -> None:
    found = parts_of(lm)
    if normalises_stream(lm):
        for layer in range(LAYERS):
            norms = part(lm, "attention_norm", layer), part(lm, "feed_forward_norm", layer)
            middle = norms[0](found[f"stream.{layer}"] + found[f"attention.{layer}"])
            assert_close(norms[1](middle + found[f"feed_forward.{layer}"]), found[f"stream.{layer + 1}"], **close)
    else:
        added = [found[f"{name}.{layer}"] for layer in range(LAYERS) for name in ("attention", "feed_forward")]
        assert_close(found["embedding"] + sum(added), found[f"stream.{LAYERS}"], **close)
    final = find_part(lm, "final_norm")
    last = found[f"stream.{LAYERS}"]
    assert_close(final(last) if final is not None else last, found["final"], **close)
    assert_close(found["final"], found["returned"].hidden_states[-1], **close)
    last_tables = part(lm, "unembedding")
    if lm.family.causal:
        logits = last_tables(found["final"])
        cap = getattr(lm.model.config, "final_logit_softcapping", None)
        assert_close(cap * torch.tanh(logits / cap) if cap else logits, found["returned"].logits, **close)
    else:
        assert_close(found["logits"], found["returned"].logits, **close)


def test_the_embeddings_are_the_first_hidden_state(lm: LanguageModel) -> None:
    config, family = lm.model.config, lm.family
    base = lm.model.base_model
    tables = [base.get_submodule(path) for path in family.embeddings]
    n_tokens = ids().shape[1]
    start = {"roberta": 2, "opt": 2}.get(config.model_type, 0)
    indices = [ids(), torch.arange(start, start + n_tokens).expand(2, -1), torch.zeros_like(ids())]
    total = sum(torch.nn.functional.embedding(index, table.weight) for table, index in zip(tables, indices))
    if config.model_type in ("gemma2", "gemma3_text"):
        total = total * config.hidden_size**0.5
    if family.embedding_norm:
        total = base.get_submodule(family.embedding_norm)(total)
    assert_close(total, parts_of(lm)["embedding"], **close)


def test_the_heads_add_up_to_the_attention(lm: LanguageModel) -> None:
    found = parts_of(lm)
    for layer in range(LAYERS):
        weights = head_weights(lm, layer)
        by_head = torch.einsum("bthd,hdm->bthm", found[f"heads.{layer}"], weights.output)
        total = by_head.sum(2) + weights.output_bias
        norm = find_part(lm, "attention_out_norm", layer)
        assert_close(norm(total) if norm is not None else total, found[f"attention.{layer}"], **close)


def test_queries_keys_and_values_are_their_weights_times_the_stream(lm: LanguageModel) -> None:
    found = parts_of(lm)
    for layer in range(LAYERS):
        norm = None if normalises_stream(lm) else find_part(lm, "attention_norm", layer)
        read = found[f"stream.{layer}"]
        read = norm(read) if norm is not None else read
        weights = head_weights(lm, layer)
        n_heads, n_groups, width = head_counts(lm, layer)
        for name, weight, bias, count in (
            ("queries", weights.query, weights.query_bias, n_heads),
            ("keys", weights.key, weights.key_bias, n_groups),
            ("values", weights.value, weights.value_bias, n_groups),
        ):
            assert weight.shape == (count, read.shape[-1], width)
            assert_close(torch.einsum("btm,hmd->bthd", read, weight) + bias, found[f"{name}.{layer}"], **close)


def test_each_head_is_its_attention_over_the_values(lm: LanguageModel) -> None:
    found = parts_of(lm)
    with torch.no_grad():
        patterns = lm.model(ids(), output_attentions=True).attentions
    for layer in range(LAYERS):
        values = found[f"values.{layer}"]
        values = values.repeat_interleave(patterns[layer].shape[1] // values.shape[2], dim=2)
        assert_close(torch.einsum("bhqk,bkhd->bqhd", patterns[layer], values), found[f"heads.{layer}"], **close)


def test_the_feed_forward_part_is_down_of_its_activations(lm: LanguageModel) -> None:
    for layer in range(LAYERS):
        if find_part(lm, "router", layer) is not None:
            with pytest.raises(BadInput, match="no part 'down' here"), capture(lm, [f"memories.{layer}"]):
                pass
            continue
        with capture(lm, [f"memories.{layer}", f"feed_forward.{layer}"]) as found, torch.no_grad():
            lm.model(ids())
        total = part(lm, "down", layer)(found[f"memories.{layer}"])
        norm = find_part(lm, "feed_forward_out_norm", layer)
        assert_close(norm(total) if norm is not None else total, found[f"feed_forward.{layer}"], **close)
        assert found[f"memories.{layer}"].shape[:2] == (2, 6)


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "qwen2_moe"])
def test_the_experts_add_up_to_the_feed_forward_part(name: str) -> None:
    lm = tiny(name)
    mixed = [layer for layer in range(LAYERS) if find_part(lm, "router", layer) is not None]
    assert mixed == ([0, 2] if name == "qwen3_moe" else [0, 1, 2])
    for layer in mixed:
        read: list[Any] = []
        block = part(lm, "feed_forward", layer)
        handle = block.register_forward_pre_hook(lambda module, args, read=read: read.append(args[0].flatten(0, 1)))
        with capture(lm, [f"feed_forward.{layer}"]) as found, torch.no_grad():
            lm.model(ids())
        handle.remove()
        experts, router = part(lm, "experts", layer), part(lm, "router", layer)
        with torch.no_grad():
            _, shares, chosen = router(read[0])
            total = torch.zeros_like(read[0])
            for place in range(chosen.shape[1]):
                for token in range(len(chosen)):
                    expert = chosen[token, place]
                    gate, up = (experts.gate_up_proj[expert] @ read[0][token]).chunk(2)
                    inner = torch.nn.functional.silu(gate) * up
                    total[token] += shares[token, place] * (experts.down_proj[expert] @ inner)
            if lm.family.shared_expert:
                shared = part(lm, "shared_expert", layer)(read[0])
                total += torch.sigmoid(part(lm, "shared_gate", layer)(read[0])) * shared
        assert_close(total, found[f"feed_forward.{layer}"].flatten(0, 1), **close)


def test_parallel_layers_are_told() -> None:
    assert is_parallel(tiny("gpt_neox"))
    assert not is_parallel(tiny("gpt_neox one after the other"))
    assert not is_parallel(tiny("llama"))


def test_an_unknown_family_is_told_with_its_tree_and_how_to_add_a_map() -> None:
    blocks = [torch.nn.ModuleDict({"read": torch.nn.Linear(2, 2), "write": torch.nn.Linear(2, 2)}) for _ in range(3)]
    model = torch.nn.ModuleDict({"words": torch.nn.Embedding(3, 2), "blocks": torch.nn.ModuleList(blocks)})
    model.config = type("Config", (), {"model_type": "novel"})()  # type: ignore[assignment]
    with pytest.raises(BadInput) as caught:
        part(LanguageModel(model, None, "novel-1b", None), "output", 0)
    line = str(caught.value)
    assert line.count("\n") == 0
    assert "novel-1b: there is no map of the architecture 'novel'" in line
    assert "words, blocks[3](read, write)" in line
    assert "docs/subjects/language-model.md shows how a map is added" in line


def test_a_layer_that_is_not_there_is_told() -> None:
    with pytest.raises(BadInput, match="layer 3 is not from 0 to 2"):
        part(tiny("llama"), "output", layer_count(tiny("llama")))
