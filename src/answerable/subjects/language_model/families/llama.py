"""Llama, Mistral, Qwen2, Qwen3: norms before each part, gated feed-forward, keys and values shared by heads."""

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="Llama",
    model_types={
        "llama": "llama.modeling_llama:LlamaForCausalLM",
        "mistral": "mistral.modeling_mistral:MistralForCausalLM",
        "qwen2": "qwen2.modeling_qwen2:Qwen2ForCausalLM",
        "qwen3": "qwen3.modeling_qwen3:Qwen3ForCausalLM",
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
    feed_forward_norm="post_attention_layernorm",
)
