"""OPT: learned positions, the feed-forward pieces stand in the layer; the 350m model norms after each addition."""

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="OPT",
    model_types={"opt": "opt.modeling_opt:OPTForCausalLM"},
    embeddings=("decoder.embed_tokens", "decoder.embed_positions"),
    layers="decoder.layers",
    final_norm="decoder.final_layer_norm",
    final_projection="decoder.project_out",
    attention="self_attn",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    output="self_attn.out_proj",
    up="fc1",
    down="fc2",
    activation="activation_fn",
    attention_norm="self_attn_layer_norm",
    feed_forward_norm="final_layer_norm",
    post_norm_unless="do_layer_norm_before",
)
