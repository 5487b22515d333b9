"""Phi-3 and 4: one matrix for query, key and value, another for gate and up."""

from answerable.subjects.language_model.families.family import Family, Fused

FAMILY = Family(
    name="Phi-3",
    model_types={"phi3": "phi3.modeling_phi3:Phi3ForCausalLM"},
    embeddings=("embed_tokens",),
    layers="layers",
    final_norm="norm",
    attention="self_attn",
    fused=Fused("self_attn.qkv_proj", "blocks"),
    output="self_attn.o_proj",
    feed_forward="mlp",
    fused_gate_up=Fused("mlp.gate_up_proj", "blocks"),
    up="mlp.gate_up_proj",
    down="mlp.down_proj",
    activation="mlp.activation_fn",
    attention_norm="input_layernorm",
    feed_forward_norm="post_attention_layernorm",
)
