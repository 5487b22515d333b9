"""OLMo 2: norms only after each part, before it is added."""

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="OLMo 2",
    model_types={"olmo2": "olmo2.modeling_olmo2:Olmo2ForCausalLM"},
    embeddings=("embed_tokens",),
    layers="layers",
    final_norm="norm",
    attention="self_attn",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    output="self_attn.o_proj",
    feed_forward="mlp",
    gate="mlp.gate_proj",
    up="mlp.up_proj",
    down="mlp.down_proj",
    activation="mlp.act_fn",
    attention_norm="",
    feed_forward_norm="",
    attention_out_norm="post_attention_layernorm",
    feed_forward_out_norm="post_feedforward_layernorm",
)
