"""Path patching the slow way: one full forward pass for each sender, everything else held by hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from answerable.mechanisms.path_patching.sweep import Node, Patch, Receiver
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


def by_hooks(lm: LanguageModel, ids: Any, patch: Patch, path: str, base: dict[str, Any] | None = None) -> Any:
    """Logits of the last token, (n, words), with one node patched there and what the path freezes frozen there."""
    base = recorded(lm, ids) if base is None else base
    with intervene(lm, _frozen(lm, base, patch, path)):
        return last_logits(lm, ids)


def through_receivers(lm: LanguageModel, ids: Any, patch: Patch, receivers: Sequence[Receiver]) -> Any:
    """Both stages: what the receivers read with all else frozen, then everything free but what they read."""
    sites = {"q": "queries", "k": "keys", "v": "values", "mlp": "feed_forward"}
    base = recorded(lm, ids)
    wanted = {f"{sites[receiver.reads]}.{receiver.layer}" for receiver in receivers}
    # The hooks that look are set before those that freeze, and each reads an output of its own.
    with capture(lm, wanted) as read, intervene(lm, _frozen(lm, base, patch, "direct")):
        last_logits(lm, ids)
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
        return last_logits(lm, ids)


def _frozen(lm: LanguageModel, base: dict[str, Any], patch: Patch, path: str) -> dict[str, Any]:
    node = patch.node

    def put(site: str, of_sender: bool, freeze: bool) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone()
            if freeze:
                changed[:, -1] = base[site][:, -1]
            if of_sender and node.kind == "head":
                changed[:, -1, node.head] = patch.values
            elif of_sender:
                changed[:, -1] = patch.values
            return changed

        return change

    changes = {}
    for layer in range(layer_count(lm)):
        for name, kind, freezes in (("heads", "head", path != "total"), ("feed_forward", "mlp", path == "direct")):
            own = node == Node(node.kind, layer, node.head) and node.kind == kind
            if own or freezes:
                changes[f"{name}.{layer}"] = put(f"{name}.{layer}", own, freezes)
    return changes
