"""DistilBERT: BERT's arrangement under other names."""

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="DistilBERT",
    model_types={"distilbert": "distilbert.modeling_distilbert:DistilBertForMaskedLM"},
    embeddings=("embeddings.word_embeddings", "embeddings.position_embeddings"),
    embedding_norm="embeddings.LayerNorm",
    layers="transformer.layer",
    unembedding="vocab_projector",
    attention="attention",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    feed_forward="ffn",
    up="ffn.lin1",
    down="ffn.lin2",
    activation="ffn.activation",
    attention_norm="sa_layer_norm",
    feed_forward_norm="output_layer_norm",
    stream="normalised",
    causal=False,
)
