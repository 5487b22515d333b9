"""Maps of architectures that no family describes: what is proposed, what is refused, and what a right one computes."""

from typing import Any

import pytest
import torch
from torch import nn

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, candidate_maps, mapped, memory, record
from answerable.subjects.language_model.mapping import refuse_unknown
from tests.subjects.odd_models import GATED, PLAIN, odd
from tests.subjects.tiny_models import ids

MAPS = {"plain": PLAIN, "gated": GATED}


@pytest.mark.parametrize("kind", MAPS)
def test_the_right_map_is_among_those_proposed(kind: str) -> None:
    assert candidate_maps(odd(kind).model)[0] == {key: name for key, name in MAPS[kind].items() if key != "final_norm"}


def test_what_has_no_map_lists_those_that_its_modules_allow() -> None:
    with pytest.raises(BadInput) as raised:
        refuse_unknown(odd("gated"))
    assert str(raised.value) == (
        "gated: there is no map of the architecture 'odd'; from Python, FFMemories.from_model takes mlp_map, here one of"
        ' {"gate": "core.blocks.*.w1", "up": "core.blocks.*.w3", "down": "core.blocks.*.w2", "activation": "silu"}'
    )
    bare = nn.ModuleDict({"words": nn.Embedding(3, 2), "blocks": nn.ModuleList([nn.LayerNorm(2)])})
    with pytest.raises(BadInput, match=r"none of its matrices lead from the stream and back: words, blocks\[1\]"):
        refuse_unknown(LanguageModel(bare, None, "bare", None))


def test_square_matrices_are_proposed_where_there_are_no_others() -> None:
    layer = nn.ModuleDict({"first": nn.Linear(4, 4), "then": nn.Linear(4, 4)})
    model = nn.ModuleDict({"words": nn.Embedding(3, 4), "h": nn.ModuleList([layer])})
    assert candidate_maps(model) == [{"up": "h.*.first", "down": "h.*.then", "activation": "relu"}]


@pytest.mark.parametrize("kind", MAPS)
def test_a_mapped_layer_is_what_its_modules_compute(kind: str) -> None:
    lm = mapped(odd(kind), MAPS[kind])
    seen: dict[int, Any] = {}
    record(lm, ids(2, 6), lambda layer, one: seen.update({layer: one}))
    for layer, one in seen.items():
        made = memory(lm, layer)
        assert torch.allclose(made.activations(one.read), one.activations, atol=1e-6)
        assert torch.allclose(made.written(one.activations), one.written, atol=1e-6)
    assert sorted(seen) == [0, 1, 2]
    from_backbone = {key: name.removeprefix("core.") for key, name in MAPS[kind].items()}
    assert mapped(odd(kind), from_backbone).map == lm.map


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"fc": "core.blocks.*.w1"}, "mlp_map: there is no key 'fc'; choose from up, down, activation, gate, final_norm"),
        ({"up": None}, "mlp_map: it has no 'up'; give up, down and activation"),
        ({"up": 3}, "mlp_map: it is "),
        ({"up": "core.blocks.0.w1"}, "mlp_map, up: 'core.blocks.0.w1' does not say where the layer's number stands; wri"),
        ({"up": "core.*.*.w1"}, "mlp_map, up: 'core.*.*.w1' does not say where"),
        ({"up": "core.blocks*.w1"}, "mlp_map, up: 'core.blocks*.w1' does not say where"),
        ({"activation": "softplush"}, "mlp_map, activation: there is no function 'softplush'; choose from gelu, "),
        ({"up": "core.blocks.*.w9"}, 'mlp_map, up: there is no module core.blocks.0.w9; its modules allow {"gate": "core'),
        ({"up": "core.layers.*.w3"}, "mlp_map: core.blocks and core.layers are two lists of layers; name one"),
        ({"up": "core.blocks.*.norm"}, "mlp_map, up: core.blocks.0.norm is a LayerNorm, no matrix; name a linear module"),
        ({"up": "core.blocks.*.mix"}, "mlp_map: core.blocks.0.mix writes 8 numbers, core.blocks.0.w2 reads 12; its mod"),
        ({"down": "core.blocks.*.w1"}, "mlp_map, down: core.blocks.0.w1 writes 12 numbers, the model's stream has 8"),
        ({"up": "core.blocks.*.w2"}, "mlp_map, up: core.blocks.0.w2 reads 12 numbers, the model's stream has 8"),
        ({"final_norm": "core.words"}, "mlp_map, final_norm: core.words has no gain for each number of the stream"),
        ({"final_norm": "core.end"}, "mlp_map, final_norm: there is no module core.end"),
        (
            {"activation": "gelu"},
            "mlp_map, layer 0: gelu of what core.blocks.0.w1 gives times what core.blocks.0.w3 gives is not what core",
        ),
    ],
)  # fmt: skip
def test_a_map_that_does_not_fit_is_refused_in_one_line(changed: dict[str, Any], told: str) -> None:
    given = {key: name for key, name in (GATED | changed).items() if name is not None}
    with pytest.raises(BadInput) as raised:
        mapped(odd("gated"), given)
    assert str(raised.value).startswith(told) and "\n" not in str(raised.value)


@pytest.mark.parametrize("wrong", [{"activation": "relu"}, {"gate": GATED["up"], "up": GATED["gate"]}])
def test_a_map_that_is_nearly_right_is_told_the_right_one(wrong: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=r'; it is \{.*"activation": "silu"') as raised:
        mapped(odd("gated"), GATED | wrong)
    mended = str(raised.value).rpartition("; it is ")[2]
    assert all(f'"{key}": "{name}"' in mended for key, name in GATED.items())


def test_matrices_that_do_not_follow_one_another_are_refused() -> None:
    with pytest.raises(
        BadInput, match=r"is not what core.blocks.0.w2 reads: .*; give the matrices and the function as"
    ):
        mapped(odd("gated"), {key: name for key, name in GATED.items() if key != "gate"})


class Routed(nn.Module):
    """Half of the tokens go through the matrices of each block; the second block runs without its own."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4)
        blocks = [nn.ModuleDict({"up": nn.Linear(4, 6), "down": nn.Linear(6, 4)}) for _ in range(2)]
        self.blocks = nn.ModuleList(blocks)
        self.whole = False

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        x = self.words(input_ids)
        few = x if self.whole else x[:, ::2]
        return self.blocks[0]["down"](torch.relu(self.blocks[0]["up"](few)))


def test_matrices_that_do_not_read_every_token_are_refused() -> None:
    model = Routed().eval()
    lm, given = LanguageModel(model, None, "routed", None), {
        "up": "blocks.*.up", "down": "blocks.*.down", "activation": "relu"}  # fmt: skip
    with pytest.raises(BadInput, match=r"mlp_map: blocks.0.down reads 4 of 8 tokens; name matrices that read every"):
        mapped(lm, given)
    model.whole = True
    with pytest.raises(BadInput, match=r"mlp_map: the model runs without blocks.1.down; name matrices that read every"):
        mapped(lm, given)


def test_a_model_that_is_called_otherwise_is_refused() -> None:
    model = Routed().eval()
    model.forward = lambda tokens: tokens  # type: ignore[method-assign]
    with pytest.raises(BadInput, match=r"routed: it cannot be called as transformers' models are: .*; let it take inp"):
        mapped(
            LanguageModel(model, None, "routed", None),
            {"up": "blocks.*.up", "down": "blocks.*.down", "activation": "relu"},
        )
