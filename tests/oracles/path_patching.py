"""Path patching the slow way: whole forward passes with everything held by hooks, each sender in rows of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from answerable.mechanisms.path_patching.sweep import Patch, Receiver
from answerable.subjects.language_model import LanguageModel, capture, intervene, layer_count
from answerable.subjects.language_model.parts import head_counts


def last_logits(lm: LanguageModel, ids: Any) -> Any:
    with torch.no_grad():
        return lm.model(ids, use_cache=False).logits[:, -1]


def recorded(lm: LanguageModel, ids: Any) -> dict[str, Any]:
    """Heads and feed-forward parts of a whole forward pass, at all tokens."""
    sites = [f"{name}.{layer}" for name in ("heads", "feed_forward") for layer in range(layer_count(lm))]
    with capture(lm, sites) as found:
        last_logits(lm, ids)
    return dict(found)


def by_hooks(lm: LanguageModel, ids: Any, patches: Sequence[Patch], path: str) -> Any:
    """Logits of the last token, (patches, n, words), each node patched there alone and what the path freezes frozen."""
    with intervene(lm, _frozen(lm, recorded(lm, ids), patches, path)):
        return last_logits(lm, ids.repeat(len(patches), 1)).unflatten(0, (len(patches), len(ids)))


def through_receivers(lm: LanguageModel, ids: Any, patches: Sequence[Patch], receivers: Sequence[Receiver]) -> Any:
    """Both stages: what the receivers read with all else frozen, then everything free but what they read."""
    sites = {"q": "queries", "k": "keys", "v": "values", "mlp": "feed_forward"}
    rows = ids.repeat(len(patches), 1)
    wanted = {f"{sites[receiver.reads]}.{receiver.layer}" for receiver in receivers}
    # The hooks that look are set before those that freeze, and each reads an output of its own.
    with capture(lm, wanted) as read, intervene(lm, _frozen(lm, recorded(lm, ids), patches, "direct")):
        last_logits(lm, rows)
    changes: dict[str, list[Any]] = {}
    for receiver in receivers:
        n_heads, n_groups, _ = head_counts(lm, receiver.layer)
        place = receiver.head if receiver.reads == "q" else receiver.head * n_groups // n_heads
        place = slice(None) if receiver.reads == "mlp" else place
        changes.setdefault(f"{sites[receiver.reads]}.{receiver.layer}", []).append(place)

    def put(site: str, places: list[Any]) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone()
            for place in places:
                changed[:, -1, place] = read[site][:, -1, place]
            return changed

        return change

    with intervene(lm, {site: put(site, places) for site, places in changes.items()}):
        return last_logits(lm, rows).unflatten(0, (len(patches), len(ids)))


def _frozen(lm: LanguageModel, base: dict[str, Any], patches: Sequence[Patch], path: str) -> dict[str, Any]:
    """By site: the last token as it was, where the path freezes it, and each sender's own rows as it is patched."""

    def put(site: str, kind: str, layer: int, freeze: bool) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone().unflatten(0, (len(patches), -1))
            if freeze:
                changed[:, :, -1] = base[site][:, -1]
            for place, (node, values) in enumerate((patch.node, patch.values) for patch in patches):
                if (node.kind, node.layer) == (kind, layer):
                    changed[(place, slice(None), -1, *([node.head] if kind == "head" else []))] = values
            return changed.flatten(0, 1)

        return change

    frozen = {"head": path != "total", "mlp": path == "direct"}
    sites = {"head": "heads", "mlp": "feed_forward"}
    return {
        f"{site}.{layer}": put(f"{site}.{layer}", kind, layer, frozen[kind])
        for layer in range(layer_count(lm))
        for kind, site in sites.items()
    }
