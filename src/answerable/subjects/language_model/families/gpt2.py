"""GPT-2: learned positions, one matrix for query, key and value, weights kept as (inputs, outputs)."""

from answerable.subjects.language_model.families.family import Family, Fused

FAMILY = Family(
    name="GPT-2",
    model_types={"gpt2": "gpt2.modeling_gpt2:GPT2LMHeadModel"},
    embeddings=("wte", "wpe"),
    layers="h",
    final_norm="ln_f",
    attention="attn",
    fused=Fused("attn.c_attn", "blocks", transposed=True),
    output="attn.c_proj",
    feed_forward="mlp",
    up="mlp.c_fc",
    down="mlp.c_proj",
    activation="mlp.act",
    attention_norm="ln_1",
    feed_forward_norm="ln_2",
)
