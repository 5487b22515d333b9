"""GPT-NeoX and Pythia: attention and feed-forward side by side, query, key and value fused head by head."""

from answerable.subjects.language_model.families.family import Family, Fused

FAMILY = Family(
    name="GPT-NeoX",
    model_types={"gpt_neox": "gpt_neox.modeling_gpt_neox:GPTNeoXForCausalLM"},
    embeddings=("embed_in",),
    layers="layers",
    final_norm="final_layer_norm",
    attention="attention",
    fused=Fused("attention.query_key_value", "heads"),
    output="attention.dense",
    feed_forward="mlp",
    up="mlp.dense_h_to_4h",
    down="mlp.dense_4h_to_h",
    activation="mlp.act",
    attention_norm="input_layernorm",
    feed_forward_norm="post_attention_layernorm",
    parallel="use_parallel_residual",
)
