"""Mixtures of experts on Llama's arrangement: Mixtral and Qwen3-MoE; Qwen2-MoE has a shared expert besides.

A layer without a router is Llama's own, so its gate, up and down stay named.
"""

from dataclasses import replace

from answerable.subjects.language_model.families import llama

FAMILY = replace(
    llama.FAMILY,
    name="Mixtral and Qwen3-MoE",
    model_types={
        "mixtral": "mixtral.modeling_mixtral:MixtralForCausalLM",
        "qwen3_moe": "qwen3_moe.modeling_qwen3_moe:Qwen3MoeForCausalLM",
    },
    router="mlp.gate",
    experts="mlp.experts",
    expert_activation="mlp.experts.act_fn",
)

SHARED = replace(
    FAMILY,
    name="Qwen2-MoE",
    model_types={"qwen2_moe": "qwen2_moe.modeling_qwen2_moe:Qwen2MoeForCausalLM"},
    shared_expert="mlp.shared_expert",
    shared_gate="mlp.shared_expert_gate",
)
