"""Models of architectures that no family describes: one of transformers' make, gated, and one that is plain torch."""

import functools
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from answerable.subjects.language_model import LanguageModel

WIDTH, HIDDEN, WORDS = 8, 12, 50
GATED = {
    "gate": "core.blocks.*.w1", "up": "core.blocks.*.w3", "down": "core.blocks.*.w2", "activation": "silu",
    "final_norm": "core.last",
}  # fmt: skip
PLAIN = {"up": "blocks.*.inner", "down": "blocks.*.outer", "activation": "relu", "final_norm": "last"}


class OddConfig(PretrainedConfig):
    """A configuration of a type that nobody knows."""

    model_type = "odd"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.hidden_act = "silu"


class Block(nn.Module):
    """Mixes tokens by a running mean, and then a feed-forward part."""

    def __init__(self, gated: bool) -> None:
        super().__init__()
        self.mix, self.norm, self.gated = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), gated
        if gated:
            self.w1, self.w2, self.w3 = (
                nn.Linear(*size) for size in ((WIDTH, HIDDEN), (HIDDEN, WIDTH), (WIDTH, HIDDEN))
            )
        else:
            self.inner, self.outer = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Any) -> Any:
        before = torch.arange(1, x.shape[1] + 1)[:, None]
        x = x + self.mix(x.cumsum(1) / before)
        read = self.norm(x)
        if self.gated:
            return x + self.w2(torch.nn.functional.silu(self.w1(read)) * self.w3(read))
        return x + self.outer(torch.relu(self.inner(read)))


class Core(nn.Module):
    """Words, blocks and a last norm."""

    def __init__(self, gated: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block(gated) for _ in range(3))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        x = self.words(input_ids)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Odd(PreTrainedModel):
    """The gated one, as transformers has models."""

    config_class = OddConfig
    base_model_prefix = "core"

    def __init__(self, config: OddConfig) -> None:
        super().__init__(config)
        self.core, self.out = Core(True), nn.Linear(WIDTH, WORDS, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> Any:
        return self.core.words

    def get_output_embeddings(self) -> Any:
        return self.out

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        return self.out(self.core(input_ids, attention_mask))


@functools.cache
def odd(kind: str) -> LanguageModel:
    """The gated or the plain model; weights and biases are random, also those that begin at 0 or 1."""
    torch.manual_seed(5)
    model = (Odd(OddConfig()) if kind == "gated" else Core(False)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return LanguageModel(model, None, kind, None)
