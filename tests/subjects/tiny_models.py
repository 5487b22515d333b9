"""One tiny random model per architecture, made from a configuration: nothing is downloaded."""

import functools
import importlib
from typing import Any

from answerable.subjects.language_model import LanguageModel
from answerable.subjects.language_model.families import BY_MODEL_TYPE

WIDTH, HEADS, LAYERS, WORDS, HIDDEN = 24, 4, 3, 50, 20
GROUPED = {"num_key_value_heads": 2, "head_dim": 6}
MIXED = {"num_experts_per_tok": 2, "moe_intermediate_size": 12}

# (model_type, what its configuration says besides), by a name for the test
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {**GROUPED, "attention_bias": True, "mlp_bias": True}),
    "mistral": ("mistral", {**GROUPED, "sliding_window": 4}),
    "qwen2": ("qwen2", {"num_key_value_heads": 2}),
    "qwen3": ("qwen3", {"num_key_value_heads": 2, "head_dim": 10}),
    "gemma2": ("gemma2", {**GROUPED, "query_pre_attn_scalar": 6, "sliding_window": 4}),
    "gemma3": ("gemma3_text", {**GROUPED, "query_pre_attn_scalar": 6, "sliding_window": 4}),
    "gpt2": ("gpt2", {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 64}),
    "gpt_neox": ("gpt_neox", {}),
    "gpt_neox one after the other": ("gpt_neox", {"use_parallel_residual": False}),
    "opt": ("opt", {"ffn_dim": HIDDEN, "word_embed_proj_dim": WIDTH}),
    "opt 350m": ("opt", {"ffn_dim": HIDDEN, "word_embed_proj_dim": WIDTH, "do_layer_norm_before": False}),
    "phi3": ("phi3", {"num_key_value_heads": 2, "pad_token_id": 0}),
    "olmo2": ("olmo2", {"num_key_value_heads": 2}),
    "bert": ("bert", {}),
    "roberta": ("roberta", {"max_position_embeddings": 70}),
    "electra": ("electra", {"embedding_size": WIDTH}),
    "distilbert": ("distilbert", {"dim": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "hidden_dim": HIDDEN}),
    "mixtral": ("mixtral", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3_moe": ("qwen3_moe", {**GROUPED, **MIXED, "num_experts": 4, "mlp_only_layers": [1]}),
    "qwen2_moe": (
        "qwen2_moe",
        {**MIXED, "num_key_value_heads": 2, "num_experts": 4, "shared_expert_intermediate_size": 16},
    ),
}


@functools.cache
def tiny(name: str) -> LanguageModel:
    """The tiny model of that name; every weight and bias is random, also those that begin at 0 or 1."""
    import torch

    model_type, more = TINY[name]
    module_name, _, class_name = BY_MODEL_TYPE[model_type].model_types[model_type].partition(":")
    cls = getattr(importlib.import_module(f"transformers.models.{module_name}"), class_name)
    config = cls.config_class(
        **{
            "vocab_size": WORDS,
            "hidden_size": WIDTH,
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "intermediate_size": HIDDEN,
            "max_position_embeddings": 64,
            **more,
        },
        attn_implementation="eager",
    )
    torch.manual_seed(7)
    model = cls(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return LanguageModel(model, None, name, None)


def ids(n_batch: int = 2, n_tokens: int = 6) -> Any:
    import torch

    return torch.randint(3, WORDS, (n_batch, n_tokens), generator=torch.Generator().manual_seed(3))
