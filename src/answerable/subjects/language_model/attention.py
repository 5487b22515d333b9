"""Attention patterns of one text, each layer's heads made one while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.language_model import parts
from answerable.subjects.language_model.loading import LanguageModel
from answerable.subjects.language_model.tokens import tokenise

Heads = Literal["mean", "max"] | Sequence[int]


class AttentionPatterns(NamedTuple):
    """Attention of one text.

    tokens : (n,) token ids, those left out by the mask not among them
    texts : n tokens as a reader sees them
    patterns : (L, n, n) float32, layer nearest the embeddings first, row = query
    """

    tokens: list[int]
    texts: list[str]
    patterns: npt.NDArray[np.float32]


def attention_patterns(
    lm: LanguageModel,
    text_or_ids: str | Sequence[int] | Any,
    *,
    heads: Heads = "mean",
    layers: Sequence[int] | None = None,
    attention_mask: Sequence[int] | None = None,
) -> AttentionPatterns:
    """Who attends to whom, in each layer.

    Parameters
    ----------
    text_or_ids : a text, or one row of token ids
    heads : "mean" or "max" over all heads of a layer, or the mean over the heads with these numbers, from 0
    layers : numbers of the layers, from 1; all by default
    attention_mask : 1 for each token and 0 for padding; padded positions are left out of the result

    Raises
    ------
    BadInput : a layer gives no attention matrix (it has none, or the model is not in eager attention), the numbers of
        a layer or head do not exist, or a matrix holds a number that is not finite
    """
    tokens = tokenise(lm, text_or_ids)
    keep = _kept(attention_mask, len(tokens.ids))
    chosen = _chosen_layers(lm, layers)
    found = _forward(lm, tokens.ids, attention_mask, keep, chosen, heads)
    _all_there(lm, chosen, found)
    ids, texts = ([values[i] for i in keep] for values in (tokens.ids, tokens.texts))
    return AttentionPatterns(ids, texts, np.stack([found[layer] for layer in chosen]))


def _kept(attention_mask: Sequence[int] | None, n_tokens: int) -> npt.NDArray[np.intp]:
    if attention_mask is None:
        return np.arange(n_tokens)
    mask = np.asarray(attention_mask).reshape(-1)
    if len(mask) != n_tokens:
        raise BadInput(f"the mask has {len(mask)} entries for {n_tokens} tokens", mend="give one for each token")
    keep = np.flatnonzero(mask)
    if not len(keep):
        raise BadInput("the mask leaves no token", mend="set it to 1 where there is a token")
    return keep


def _chosen_layers(lm: LanguageModel, layers: Sequence[int] | None) -> list[int]:
    count = parts.layer_count(lm)
    if layers is None:
        return list(range(count))
    wrong = next((number for number in layers if not 1 <= number <= count), None)
    if wrong is not None:
        raise BadInput(f"layer {wrong} is not from 1 to {count}", where=lm.name, mend="choose among these")
    if not layers:
        raise BadInput("no layer is chosen", where=lm.name, mend=f"choose from 1 to {count}")
    return [number - 1 for number in layers]


def _forward(
    lm: LanguageModel,
    ids: list[int],
    attention_mask: Sequence[int] | None,
    keep: npt.NDArray[np.intp],
    chosen: list[int],
    heads: Heads,
) -> dict[int, npt.NDArray[np.float32]]:
    """One forward pass without the output layer; each layer's attention is reduced as soon as it is there."""
    import torch

    found: dict[int, npt.NDArray[np.float32]] = {}
    where = torch.as_tensor(keep)

    def reduce_at(layer: int) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if weights is not None and weights.ndim == 4:
                found[layer] = _reduced(weights[0], where, heads, layer)

        return hook

    device = lm.model.get_input_embeddings().weight.device
    mask = None if attention_mask is None else torch.as_tensor(np.asarray(attention_mask).reshape(1, -1), device=device)
    with ExitStack() as hooks, torch.no_grad():
        for layer in chosen:
            module = parts.find_part(lm, "attention", layer)
            if module is not None:
                hooks.callback(module.register_forward_hook(reduce_at(layer)).remove)
        parts.backbone(lm)(input_ids=torch.tensor([ids], device=device), attention_mask=mask)
    return found


def _reduced(weights: Any, keep: Any, heads: Heads, layer: int) -> npt.NDArray[np.float32]:
    """(H, n, n) to (n, n): padding out, heads made one."""
    import torch

    n_heads, rows, columns = weights.shape
    if rows != columns:
        where, mend = f"layer {layer + 1}", "turn its cache off"
        raise BadInput(f"{rows} queries attend to {columns} keys", where=where, mend=mend)
    if len(keep) < rows:
        keep = keep.to(weights.device)
        weights = weights[:, keep][:, :, keep]
    if heads == "max":
        pattern = weights.amax(0)
    elif heads == "mean":
        pattern = weights.mean(0, dtype=torch.float32)
    else:
        wrong = next((head for head in heads if not 0 <= int(head) < n_heads), None)
        if wrong is not None or not heads:
            where = f"layer {layer + 1}"
            raise BadInput(f"head {wrong} is not from 0 to {n_heads - 1}", where=where, mend="choose among these")
        pattern = weights[[int(head) for head in heads]].mean(0, dtype=torch.float32)
    if not torch.isfinite(pattern).all():
        head, row, _ = (int(place) for place in (~torch.isfinite(weights)).nonzero()[0])
        raise BadInput(
            "attention holds a number that is not finite",
            where=f"layer {layer + 1}, head {head}, row {row}",
            mend="load the model in float32; mask padding with attention_mask",
        )
    return pattern.float().cpu().numpy()


def _all_there(lm: LanguageModel, chosen: list[int], found: dict[int, Any]) -> None:
    missing = [layer + 1 for layer in chosen if layer not in found]
    if not missing:
        return
    if getattr(lm.model.config, "_attn_implementation", "eager") != "eager":
        raise BadInput(
            "the model does not give its attention: it is not loaded with eager attention",
            where=lm.name,
            mend='load it with attention="eager", or call model.set_attn_implementation("eager")',
        )
    listed = ", ".join(map(str, missing[:20])) + (", ..." if len(missing) > 20 else "")
    raise BadInput(
        f"{len(missing)} of {len(chosen)} layers have no attention matrix: {listed}",
        where=lm.name,
        mend="leave them out with layers, or use a model with attention in every layer",
    )
