"""Gemma 2 and 3 (text): norms before and after each part; the embedding is scaled by the root of its width."""

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="Gemma 2 and 3",
    model_types={
        "gemma2": "gemma2.modeling_gemma2:Gemma2ForCausalLM",
        "gemma3_text": "gemma3.modeling_gemma3:Gemma3ForCausalLM",
    },
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
    attention_norm="input_layernorm",
    feed_forward_norm="pre_feedforward_layernorm",
    attention_out_norm="post_attention_layernorm",
    feed_forward_out_norm="post_feedforward_layernorm",
)
