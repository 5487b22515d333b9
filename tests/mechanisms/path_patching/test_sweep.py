"""The sweep is the slow way by hooks, for every sender, path and family."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from answerable.errors import BadInput
from answerable.mechanisms.path_patching.sweep import (
    Node,
    Patch,
    Receiver,
    activations,
    nodes_of,
    patched,
    patched_sets,
    patched_through,
)
from answerable.subjects.language_model import LanguageModel
from answerable.subjects.language_model.last_token import _stretches, record_last
from answerable.subjects.language_model.pieces import logits_of
from tests.oracles.path_patching import by_hooks, last_logits, through_receivers
from tests.subjects.tiny_models import TINY, WORDS, tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CAUSAL = [name for name in TINY if name not in ("bert", "roberta", "electra", "distilbert")]
every_family = pytest.mark.parametrize("name", CAUSAL)


def prompts(seed: int, n_tokens: int = 7) -> Any:
    return torch.randint(3, WORDS, (3, n_tokens), generator=torch.Generator().manual_seed(seed))


def recordings(lm: LanguageModel) -> tuple[Any, Any, Any]:
    ids, twins = prompts(1), prompts(2, 5)
    return ids, record_last(lm, ids.tolist()), record_last(lm, twins.tolist())


def close(ours: Any, slow: Any, scale: Any) -> None:
    assert (ours - slow).abs().max() <= 1e-5 * scale.abs().max()


def shown(lm: LanguageModel, final: Any) -> Any:
    with torch.no_grad():
        return logits_of(lm, final)


@every_family
@pytest.mark.parametrize("path", ["direct", "mlps", "total"])
def test_every_sender_is_the_slow_way_by_hooks(name: str, path: Any) -> None:
    lm = tiny(name)
    ids, here, there = recordings(lm)
    patches = [Patch(node, activations(there, node)) for node in nodes_of(lm)]
    ours = shown(lm, patched(lm, here, patches, path))
    plain = last_logits(lm, ids)
    close(ours, by_hooks(lm, ids, patches, path), plain)
    assert (ours - plain).abs().amax(-1).min() > 1e-5 * plain.abs().max()  # every one of them changes something


@every_family
def test_receivers_are_the_slow_way_by_hooks(name: str) -> None:
    lm = tiny(name)
    ids, here, there = recordings(lm)
    receivers = [Receiver(1, 2, "q"), Receiver(2, 1, "v"), Receiver(2, 3, "k")]
    patches = [Patch(node, activations(there, node)) for node in nodes_of(lm) if node.layer < 2]
    ours = shown(lm, patched_through(lm, here, patches, receivers))
    plain = last_logits(lm, ids)
    close(ours, through_receivers(lm, ids, patches, receivers), plain)


@every_family
def test_feed_forward_receivers_are_the_slow_way_by_hooks(name: str) -> None:
    lm = tiny(name)
    ids, here, there = recordings(lm)
    receivers = [Receiver(1, reads="mlp"), Receiver(2, 0, "q")]
    patches = [Patch(node, activations(there, node)) for node in nodes_of(lm) if node.layer < 2]
    ours = shown(lm, patched_through(lm, here, patches, receivers))
    plain = last_logits(lm, ids)
    close(ours, through_receivers(lm, ids, patches, receivers), plain)
    alone = shown(lm, patched_through(lm, here, patches, receivers[:1]))
    changed = (alone - plain).abs().amax((1, 2)) > 1e-4 * plain.abs().max()
    own_heads = [patch.node.layer == 1 and patch.node.kind == "head" for patch in patches]
    below = [patch.node.layer < 1 for patch in patches]
    parallel = name == "gpt_neox"  # its feed-forward part does not see the heads of its own layer
    assert changed.tolist() == [first or (own and not parallel) for first, own in zip(below, own_heads, strict=True)]


def test_a_sender_above_its_receivers_changes_nothing() -> None:
    lm = tiny("llama")
    _, here, there = recordings(lm)
    node = Node("mlp", 1)
    found = patched_through(lm, here, [Patch(node, activations(there, node))], [Receiver(1, 0, "q")])
    assert torch.equal(found[0], patched_through(lm, here, [Patch(node, here.feed_forward[1])], [Receiver(1, 0)])[0])


@every_family
def test_all_parts_together_are_the_twin(name: str) -> None:
    lm = tiny(name)
    _, here, there = recordings(lm)
    nodes = nodes_of(lm)
    values = {node: activations(there, node) for node in nodes}
    ours = patched_sets(lm, here, [nodes, nodes[:3]], values, stream=there.stream[0])
    close(shown(lm, ours[0]), last_logits(lm, prompts(2, 5)), last_logits(lm, prompts(2, 5)))
    assert (ours[1] - ours[0]).abs().max() > 1e-3


def test_a_set_of_one_is_the_total_path() -> None:
    lm = tiny("gemma3")
    ids, here, there = recordings(lm)
    nodes = nodes_of(lm)
    values = {node: activations(there, node) for node in nodes}
    sets = patched_sets(lm, here, [[nodes[-1]], [], *([node] for node in nodes)], values)
    alone = patched(lm, here, [Patch(node, values[node]) for node in nodes], "total")
    torch.testing.assert_close(sets[2:], alone, rtol=1e-4, atol=1e-5)
    assert torch.equal(sets[0], sets[-1])  # in whichever order sets are given
    close(shown(lm, sets[1]), last_logits(lm, ids), last_logits(lm, ids))


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "olmo2"])
def test_a_norm_after_attention_is_made_again_with_the_patched_sum(name: str) -> None:
    """A shortcut that adds the head's change to the stream, past the norm, is another function."""
    lm = tiny(name)
    ids, here, there = recordings(lm)
    from answerable.subjects.language_model import head_weights, parts
    from answerable.subjects.language_model.pieces import final_state

    last = parts.layer_count(lm) - 1
    node = Node("head", last, 1)
    patch = Patch(node, activations(there, node))
    slow = by_hooks(lm, ids, [patch], "direct")[0]
    change = (patch.values - activations(here, node)) @ head_weights(lm, last).output[1]
    with torch.no_grad():
        shortcut = shown(lm, final_state(lm, here.stream[-1] + change))
    assert (shortcut - slow).abs().max() > 1e-3 * slow.abs().max()
    close(shown(lm, patched(lm, here, [patch], "direct")[0]), slow, slow)


def test_the_direct_path_has_a_closed_form() -> None:
    """The stream that leaves the last layer, with the sender's change added."""
    lm = tiny("llama")
    _, here, there = recordings(lm)
    from answerable.subjects.language_model.pieces import final_state

    for layer in range(3):
        node = Node("mlp", layer)
        ours = patched(lm, here, [Patch(node, activations(there, node))], "direct")[0]
        with torch.no_grad():
            closed = final_state(lm, here.stream[-1] + there.feed_forward[layer] - here.feed_forward[layer])
        torch.testing.assert_close(ours, closed, rtol=1e-4, atol=1e-5)


def test_prompts_of_other_lengths_stand_in_one_recording() -> None:
    lm = tiny("qwen3")
    rows = [prompts(1)[0].tolist(), prompts(2, 4)[0].tolist(), [9], prompts(3)[1].tolist()]
    together, twin = record_last(lm, rows), record_last(lm, prompts(5)[:1].tolist() * 4)
    patches = [Patch(node, activations(twin, node)) for node in nodes_of(lm)]
    for path in ("mlps", "total"):
        ours = patched(lm, together, patches, path)  # type: ignore[arg-type]
        for place, row in enumerate(rows):
            alone = [Patch(patch.node, patch.values[place : place + 1]) for patch in patches]
            torch.testing.assert_close(
                ours[:, place : place + 1],
                patched(lm, record_last(lm, [row]), alone, path),
                rtol=1e-4,
                atol=1e-5,  # type: ignore[arg-type]
            )


@every_family
def test_what_prompts_begin_with_alike_is_read_once(name: str) -> None:
    lm = tiny(name)
    shown, asked = prompts(1, 9)[0].tolist(), prompts(2, 3).tolist()
    rows = [shown + asked[i % 3] for i in range(6)]
    read = []
    hook = lm.model.get_input_embeddings().register_forward_hook(lambda _, args, __: read.append(tuple(args[0].shape)))
    found = record_last(lm, rows)
    hook.remove()
    assert read == [(1, 9), (3, 2), (6, 1)]
    for place, row in enumerate(rows):
        alone = record_last(lm, [row])
        for site in ("stream", "heads", "attention", "feed_forward"):
            torch.testing.assert_close(
                getattr(found, site)[:, place : place + 1], getattr(alone, site), rtol=1e-4, atol=1e-4
            )
        torch.testing.assert_close(found.value_sizes[place], alone.value_sizes[0], rtol=1e-4, atol=1e-4)
        for layer in range(len(alone.heads)):
            for kept, own in (
                (found.prefixes[0].keys, alone.prefixes[0].keys),
                (found.prefixes[0].values, alone.prefixes[0].values),
            ):
                torch.testing.assert_close(kept[layer][place : place + 1], own[layer], rtol=1e-4, atol=1e-4)


def test_prompts_of_one_length_are_read_in_few_stretches() -> None:
    """Each prompt's tokens are read once, by a row that begins as it does, and no call saves less than it costs."""
    rng = np.random.default_rng(0)
    ids = np.cumsum(rng.random((60, 40)) < 0.03, axis=1)  # prompts part at any token
    found = _stretches(ids)
    assert [stretch.start for stretch in found] == [0, *(stretch.stop for stretch in found[:-1])]
    assert found[-1].rows.tolist() == list(range(60)) and found[-1].stop == 40
    text = np.zeros((1, 0), dtype=int)  # what the rows of a stretch have read
    for stretch in found:
        text = np.column_stack([text[stretch.parents], ids[stretch.rows, stretch.start : stretch.stop]])
    assert np.array_equal(text, ids)
    saved = [
        (len(after.rows) - len(one.rows)) * (one.stop - one.start) for one, after in itertools.pairwise(found[:-1])
    ]
    assert min(saved) > 16
    assert [len(one.rows) for one in _stretches(ids[:1, :30])] == [1, 1]
    assert [one.stop for one in _stretches(ids[:4, :0])] == [0]


def test_the_model_is_as_it_was_to_the_bit() -> None:
    lm = tiny("gemma2")
    weights = {key: value.clone() for key, value in lm.model.state_dict().items()}
    before = last_logits(lm, prompts(1))
    _, here, there = recordings(lm)
    node = Node("head", 0, 1)
    patched_through(lm, here, [Patch(node, activations(there, node))], [Receiver(2, 0, "v")])
    patched_sets(lm, here, [[node]], {node: activations(there, node)})
    assert torch.equal(last_logits(lm, prompts(1)), before)
    assert all(torch.equal(weights[key], value) for key, value in lm.model.state_dict().items())


def test_bad_requests_are_told() -> None:
    lm = tiny("llama")
    _, here, there = recordings(lm)
    patch = Patch(Node("head", 0, 0), activations(there, Node("head", 0, 0)))
    with pytest.raises(BadInput, match="path is 'sideways'; choose direct, mlps or total"):
        patched(lm, here, [patch], "sideways")  # type: ignore[arg-type]
    bare = record_last(lm, prompts(1).tolist(), prefixes=False)
    for asked in (
        lambda: patched(lm, bare, [patch], "total"),
        lambda: patched_through(lm, bare, [patch], [Receiver(1, 0)]),
        lambda: patched_sets(lm, bare, [[patch.node]], {patch.node: patch.values}),
    ):
        with pytest.raises(BadInput, match="the earlier tokens were not kept"):
            asked()
    with pytest.raises(BadInput, match="head 9 is not from 0 to 3"):
        patched_through(lm, here, [patch], [Receiver(1, 9)])
    with pytest.raises(BadInput, match="layer 7 is not from 0 to 2"):
        patched_through(lm, here, [patch], [Receiver(7, 0)])
    with pytest.raises(BadInput, match="it reads 'x'; choose q, k, v or mlp"):
        patched_through(lm, here, [patch], [Receiver(1, 0, "x")])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no receiver is named"):
        patched_through(lm, here, [patch], [])
