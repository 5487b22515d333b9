"""What a family's file says: where each part of its models is, as paths from the backbone or from one layer.

A family is data alone; ``parts.py`` beside this folder reads it. ``docs/subjects/language-model.md`` shows how a family
is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Fused:
    """Projections that share one matrix.

    Parameters
    ----------
    module : path from the layer
    layout : "blocks" - all rows of the first part, then all of the next; "heads" - head by head, each with its three
    transposed : whether the weight is kept as (inputs, outputs), as GPT-2 does
    """

    module: str
    layout: Literal["blocks", "heads"]
    transposed: bool = False


@dataclass(frozen=True)
class Family:
    """Where the parts of one architecture family are.

    Paths begin at the backbone (``embeddings``, ``embedding_norm``, ``layers``, ``final_norm``, ``final_projection``),
    at the whole model (``unembedding``), or at one layer (all others). An empty path: there is no such part.

    Parameters
    ----------
    name : the family, as its page calls it
    model_types : class to load by the ``model_type`` of a configuration, "module in transformers.models:class"
    embeddings : the tables that are summed into the first hidden state
    embedding_norm : norm after that sum, before the first layer
    layers : the list of layers
    final_norm : norm after the last layer
    final_projection : map from the stream to the width that the output layer reads, where the two differ
    unembedding : the output layer
    attention : module whose output is (hidden states, attention matrix)
    query, key, value, output : the four projections; the first three may be empty where ``fused`` says so
    fused : one matrix for query, key and value
    feed_forward : module that is the whole feed-forward part, empty where its pieces stand in the layer itself
    gate, up, down : its projections; ``gate`` is empty where there is none
    fused_gate_up : one matrix for gate and up, in this order
    activation : the function between them, as an attribute of a module
    function : that function by its name in transformers instead, where no module is known to hold it
    router, experts, shared_expert, shared_gate : for mixtures of experts, and ``expert_activation`` their function
    attention_norm, feed_forward_norm : norms of what goes in
    attention_out_norm, feed_forward_out_norm : norms of what comes out, before it is added (sandwich norms)
    stream : "added" - each layer adds to the stream; "normalised" - the stream is normed after each addition, by
        ``attention_norm`` and ``feed_forward_norm``
    parallel : attribute of the configuration that says whether attention and feed-forward read the same state
    post_norm_unless : attribute of the configuration that, when false, makes the stream "normalised"
    causal : whether its models read from left to right
    """

    name: str
    model_types: Mapping[str, str]
    embeddings: tuple[str, ...]
    layers: str
    attention: str
    output: str
    up: str
    down: str
    attention_norm: str
    feed_forward_norm: str
    embedding_norm: str = ""
    final_norm: str = ""
    final_projection: str = ""
    unembedding: str = "lm_head"
    query: str = ""
    key: str = ""
    value: str = ""
    fused: Fused | None = None
    feed_forward: str = ""
    gate: str = ""
    fused_gate_up: Fused | None = None
    activation: str = ""
    function: str = ""
    expert_activation: str = ""
    router: str = ""
    experts: str = ""
    shared_expert: str = ""
    shared_gate: str = ""
    attention_out_norm: str = ""
    feed_forward_out_norm: str = ""
    stream: Literal["added", "normalised"] = "added"
    parallel: str = ""
    post_norm_unless: str = ""
    causal: bool = True
