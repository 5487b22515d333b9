"""What one layer does to single rows of the stream, piece by piece, in the model's own modules.

With attention frozen no position sees another, so a layer is a function of rows: the pieces below, in this order, are a
layer. They hold for every family: norms before a part, after it or both, streams that are normed after each addition,
and attention and feed-forward side by side.
"""

from __future__ import annotations

from typing import Any

from answerable.subjects.language_model import parts
from answerable.subjects.language_model.loading import LanguageModel

ROWS = 1024  # of the feed-forward part at once: their hidden activations stay in the processor's cache


def attention_sum(lm: LanguageModel, layer: int, heads: Any) -> Any:
    """Sum of all heads through the output projection, before any norm: (rows, H, d) -> (rows, m)."""
    return parts.part(lm, "output", layer)(heads.flatten(-2))


def attention_added(lm: LanguageModel, layer: int, total: Any) -> Any:
    """What attention adds to the stream, from the sum of its heads: the norm that follows it, where there is one."""
    norm = parts.find_part(lm, "attention_out_norm", layer)
    return total if norm is None else norm(total)


def after_attention(lm: LanguageModel, layer: int, stream: Any, attention: Any) -> Any:
    """The stream between the two parts: (rows, m)."""
    total = stream + attention
    return parts.part(lm, "attention_norm", layer)(total) if parts.normalises_stream(lm) else total


def feed_forward_reads(lm: LanguageModel, stream: Any, middle: Any) -> Any:
    """Which state the feed-forward part reads: that which entered the layer if the two parts stand side by side."""
    return stream if parts.is_parallel(lm) else middle


def feed_forward_added(lm: LanguageModel, layer: int, read: Any) -> Any:
    """What the feed-forward part adds to the stream, from the state it reads: (rows, m) -> (rows, m)."""
    import torch

    if len(read) <= ROWS:
        return _feed_forward(lm, layer, read)
    return torch.cat([_feed_forward(lm, layer, block) for block in read.split(ROWS)])


def _feed_forward(lm: LanguageModel, layer: int, read: Any) -> Any:
    before = None if parts.normalises_stream(lm) else parts.find_part(lm, "feed_forward_norm", layer)
    hidden = (read if before is None else before(read))[:, None]  # a batch of texts of one token
    block = parts.find_part(lm, "feed_forward", layer)
    if block is not None:
        added = block(hidden)
        added = added[0] if isinstance(added, tuple) else added
    else:  # its pieces stand in the layer itself
        inner = parts.layer_at(lm, layer).activation_fn(parts.part(lm, "up", layer)(hidden))
        added = parts.part(lm, "down", layer)(inner)
    after = parts.find_part(lm, "feed_forward_out_norm", layer)
    return (added if after is None else after(added))[:, 0]


def after_feed_forward(lm: LanguageModel, layer: int, middle: Any, feed_forward: Any) -> Any:
    """The stream that leaves the layer: (rows, m)."""
    total = middle + feed_forward
    return parts.part(lm, "feed_forward_norm", layer)(total) if parts.normalises_stream(lm) else total


def final_state(lm: LanguageModel, stream: Any) -> Any:
    """What the output layer reads, from the stream that leaves the last layer."""
    norm, narrow = parts.find_part(lm, "final_norm"), parts.find_part(lm, "final_projection")
    state = stream if norm is None else norm(stream)
    return state if narrow is None else narrow(state)


def capped(lm: LanguageModel, logits: Any) -> Any:
    """Logits after the model's own soft cap, where it has one."""
    import torch

    cap = getattr(lm.model.config, "final_logit_softcapping", None)
    return logits if not cap else cap * torch.tanh(logits / cap)


def logits_of(lm: LanguageModel, final: Any, *, raw: bool = False) -> Any:
    """Logits of all words, (rows, words), from what the output layer reads.

    Parameters
    ----------
    final : (rows, m)
    raw : before the model's soft cap
    """
    found = parts.part(lm, "unembedding")(final)
    return found if raw else capped(lm, found)
