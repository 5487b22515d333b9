"""Every sender's effect to first order, from one backward pass with attention frozen."""

from __future__ import annotations

from typing import Any, NamedTuple

from answerable.errors import BadInput
from answerable.mechanisms.path_patching.readout import Readout
from answerable.mechanisms.path_patching.sweep import Node, Path
from answerable.subjects.language_model import LanguageModel, layer_count, pieces
from answerable.subjects.language_model.last_token import LastToken


class Gradients(NamedTuple):
    """Of the metric, with respect to what stands at each node: (L, n, H, d) and (L, n, m)."""

    heads: Any
    feed_forward: Any

    def of(self, node: Node) -> Any:
        """(n, width) at one node."""
        return self.heads[node.layer][:, node.head] if node.kind == "head" else self.feed_forward[node.layer]


def gradients(lm: LanguageModel, base: LastToken, readout: Readout, path: Path = "mlps") -> Gradients:
    """One pass up and one down over the last tokens; no attention, no other token.

    Raises
    ------
    BadInput : path "total", along which attention moves too
    """
    import torch

    if path == "total":
        raise BadInput(
            "the screen holds attention still and cannot follow path total", where="screen", mend="set screen = false"
        )
    heads = [one.detach().clone().requires_grad_() for one in base.heads]
    added = []
    with torch.enable_grad():
        stream = base.stream[0]
        for layer in range(layer_count(lm)):
            attention = pieces.attention_added(lm, layer, pieces.attention_sum(lm, layer, heads[layer]))
            middle = pieces.after_attention(lm, layer, stream, attention)
            if path == "direct":
                part = base.feed_forward[layer].detach().clone().requires_grad_()
            else:
                part = pieces.feed_forward_added(lm, layer, pieces.feed_forward_reads(lm, stream, middle))
            added.append(part)
            stream = pieces.after_feed_forward(lm, layer, middle, part)
        total = readout(pieces.final_state(lm, stream)).sum()
    found = torch.autograd.grad(total, [*heads, *added])
    return Gradients(torch.stack(found[: len(heads)]), torch.stack(found[len(heads) :]))
