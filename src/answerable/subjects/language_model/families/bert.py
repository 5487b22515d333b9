"""BERT, RoBERTa, ELECTRA: read both ways, learned positions, the stream is normed after each addition."""

from dataclasses import replace

from answerable.subjects.language_model.families.family import Family

FAMILY = Family(
    name="BERT",
    model_types={"bert": "bert.modeling_bert:BertForMaskedLM"},
    embeddings=("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings"),
    embedding_norm="embeddings.LayerNorm",
    layers="encoder.layer",
    unembedding="cls.predictions.decoder",
    attention="attention.self",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    output="attention.output.dense",
    up="intermediate.dense",
    down="output.dense",
    activation="intermediate.intermediate_act_fn",
    attention_norm="attention.output.LayerNorm",
    feed_forward_norm="output.LayerNorm",
    stream="normalised",
    causal=False,
)

ROBERTA = replace(
    FAMILY,
    name="RoBERTa",
    model_types={"roberta": "roberta.modeling_roberta:RobertaForMaskedLM"},
    unembedding="lm_head.decoder",
)

ELECTRA = replace(
    FAMILY,
    name="ELECTRA",
    model_types={"electra": "electra.modeling_electra:ElectraForMaskedLM"},
    unembedding="generator_lm_head",
)
