"""The parts of a model by their common names, whatever its family calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from answerable.errors import BadInput
from answerable.subjects.language_model.families import Family, Fused
from answerable.subjects.language_model.loading import LanguageModel

OF_BACKBONE = ("embedding_norm", "final_norm", "final_projection")
OF_MODEL = ("unembedding",)


_QKV = ("query", "key", "value")


class HeadWeights(NamedTuple):
    """Weights of one layer's attention, head by head; H heads of width d over a stream of width m, G key-value heads.

    query : (H, m, d); key, value : (G, m, d); a head's query is ``stream @ query[h] + query_bias[h]``
    output : (H, d, m); the layer adds ``sum over h of values[h] @ output[h]``, and ``output_bias`` once
    query_bias : (H, d); key_bias, value_bias : (G, d); output_bias : (m,); zeros where the model has none
    """

    query: Any
    key: Any
    value: Any
    output: Any
    query_bias: Any
    key_bias: Any
    value_bias: Any
    output_bias: Any


def backbone(lm: LanguageModel) -> Any:
    """The model without its output layer."""
    return getattr(lm.model, "base_model", lm.model)  # a module that is not transformers' own has no other


def word_table(model: Any) -> Any:
    """The embedding of token ids: what the model says it is, or its first."""
    import torch

    if hasattr(model, "get_input_embeddings"):
        return model.get_input_embeddings()
    return next(module for module in model.modules() if isinstance(module, torch.nn.Embedding))


def layers(lm: LanguageModel) -> Any:
    """The list of layers, nearest the embedding first."""
    return backbone(lm).get_submodule(lm.family.layers)


def layer_count(lm: LanguageModel) -> int:
    """How many layers there are."""
    return len(layers(lm))


def part(lm: LanguageModel, name: str, layer: int | None = None) -> Any:
    """The module that a family calls ``name``: "output", "down", "router", "final_norm", ...

    Raises
    ------
    BadInput : the family, or this layer of it, has no such part
    """
    found = find_part(lm, name, layer)
    if found is None:
        place = f"{lm.name}, layer {layer}" if layer is not None else lm.name
        raise BadInput(
            f"the {lm.family.name} family has no part {name!r} here", where=place, mend="choose another part"
        )
    return found


def find_part(lm: LanguageModel, name: str, layer: int | None = None) -> Any:
    """As ``part``, but None where there is no such part."""
    path = getattr(lm.family, name, None)
    if not isinstance(path, str) or not path:
        return None
    if name in OF_MODEL:
        root = lm.model
    elif name in OF_BACKBONE:
        root = backbone(lm)
    else:
        root = layer_at(lm, layer)
    try:
        found = root.get_submodule(path)
    except AttributeError:
        return None
    return found


def layer_at(lm: LanguageModel, layer: int | None) -> Any:
    """One layer.

    Raises
    ------
    BadInput : no such layer
    """
    count = layer_count(lm)
    if layer is None or not 0 <= layer < count:
        raise BadInput(f"layer {layer} is not from 0 to {count - 1}", where=lm.name, mend="choose another layer")
    return layers(lm)[layer]


def normalises_stream(lm: LanguageModel) -> bool:
    """Whether the stream is normed after each addition, so that a layer's parts do not simply add up."""
    family = lm.family
    if family.post_norm_unless:
        return not getattr(lm.model.config, family.post_norm_unless)
    return family.stream == "normalised"


def is_parallel(lm: LanguageModel) -> bool:
    """Whether attention and feed-forward of a layer read the same state."""
    return bool(lm.family.parallel and getattr(lm.model.config, lm.family.parallel))


def head_counts(lm: LanguageModel, layer: int) -> tuple[int, int, int]:
    """Number of heads, number of key-value heads, width of a head."""
    config = lm.model.config
    n_heads = int(config.num_attention_heads)
    inputs, _ = _sizes(part(lm, "output", layer))
    width = inputs // n_heads
    if lm.family.fused is None:
        _, keys = _sizes(part(lm, "key", layer))
        return n_heads, keys // width, width
    _, together = _sizes(layer_at(lm, layer).get_submodule(lm.family.fused.module))
    return n_heads, (together // width - n_heads) // 2, width


def head_weights(lm: LanguageModel, layer: int) -> HeadWeights:
    """The weights of one layer's attention, head by head, as views where the layout allows it.

    Raises
    ------
    BadInput : no such layer, or no attention in it
    """
    n_heads, n_groups, width = head_counts(lm, layer)
    query, key, value = (
        _by_head(weight, bias, count, width)
        for (weight, bias), count in zip(_projections(lm, layer), (n_heads, n_groups, n_groups))
    )
    weight, bias = _matrix(part(lm, "output", layer))  # (m, H d)
    output = weight.T.reshape(n_heads, width, -1)
    return HeadWeights(query[0], key[0], value[0], output, query[1], key[1], value[1], bias)


def head_slices(lm: LanguageModel, layer: int, heads: Sequence[int], groups: Sequence[int]) -> list[tuple[Any, Any]]:
    """The parameters of one layer's attention with marks of the numbers that belong to some heads.

    Parameters
    ----------
    heads : whose queries and outputs
    groups : whose keys and values

    Returns
    -------
    (parameter, bool tensor of its shape), weights and biases of query, key and value and the weight of the output;
    parameters with no mark are left out
    """
    import torch

    counts, fused = head_counts(lm, layer), lm.family.fused
    found: list[tuple[Any, Any]] = []
    wanted: list[tuple[Any, Sequence[int] | None]]
    if fused is None:
        wanted = [(part(lm, name, layer), chosen) for name, chosen in zip(_QKV, (heads, groups, groups))]
    else:
        wanted = [(layer_at(lm, layer).get_submodule(fused.module), None)]
    for module, chosen in wanted:
        for parameter in (module.weight, module.bias):
            if parameter is None:
                continue
            marks = torch.zeros_like(parameter, dtype=torch.bool)
            by_output = marks if marks.ndim == 1 or _is_transposed(module) else marks.T
            if fused is not None:
                for piece, own in zip(split_fused(by_output, fused, counts), (heads, groups, groups)):
                    piece[..., list(own), :] = True
            else:
                by_output.unflatten(-1, (-1, counts[2]))[..., list(chosen or ()), :] = True
            found.append((parameter, marks))
    output = part(lm, "output", layer)
    marks = torch.zeros_like(output.weight, dtype=torch.bool)
    by_input = marks.T if _is_transposed(output) else marks
    by_input.unflatten(-1, (counts[0], counts[2]))[..., list(heads), :] = True
    found.append((output.weight, marks))
    return [(parameter, marks) for parameter, marks in found if marks.any()]


def split_fused(tensor: Any, fused: Fused, counts: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """Query, key and value along the last dimension of what a fused projection gives, each (..., heads, width)."""
    n_heads, n_groups, width = counts
    if fused.layout == "heads":
        by_head = tensor.unflatten(-1, (n_heads, 3, width))
        return by_head[..., 0, :], by_head[..., 1, :], by_head[..., 2, :]
    first, second = n_heads * width, (n_heads + n_groups) * width
    query, key, value = tensor[..., :first], tensor[..., first:second], tensor[..., second:]
    return query.unflatten(-1, (-1, width)), key.unflatten(-1, (-1, width)), value.unflatten(-1, (-1, width))


def _projections(lm: LanguageModel, layer: int) -> list[tuple[Any, Any]]:
    """(weight, bias) of query, key and value, rows grouped by head."""
    family = lm.family
    if family.fused is None:
        return [_matrix(part(lm, name, layer)) for name in _QKV]
    weight, bias = _matrix(layer_at(lm, layer).get_submodule(family.fused.module))
    counts = head_counts(lm, layer)
    weights = [piece.flatten(-2).T for piece in split_fused(weight.T, family.fused, counts)]
    biases = [piece.flatten(-2) for piece in split_fused(bias, family.fused, counts)]
    return list(zip(weights, biases))


def _by_head(weight: Any, bias: Any, n_heads: int, width: int) -> tuple[Any, Any]:
    return weight.reshape(n_heads, width, -1).transpose(1, 2), bias.reshape(n_heads, width)


def _matrix(module: Any) -> tuple[Any, Any]:
    """Weight as (outputs, inputs) and bias of a linear module; zeros where it has no bias."""
    weight = module.weight.T if _is_transposed(module) else module.weight
    bias = module.bias if module.bias is not None else weight.new_zeros(weight.shape[0])
    return weight, bias


def _sizes(module: Any) -> tuple[int, int]:
    """Inputs and outputs of a linear module."""
    rows, columns = module.weight.shape
    return (rows, columns) if _is_transposed(module) else (columns, rows)


def _is_transposed(module: Any) -> bool:
    return type(module).__name__ == "Conv1D"  # transformers' own, which keeps (inputs, outputs)


__all__ = [
    "Family",
    "HeadWeights",
    "backbone",
    "find_part",
    "head_counts",
    "head_slices",
    "head_weights",
    "is_parallel",
    "layer_at",
    "layer_count",
    "layers",
    "normalises_stream",
    "part",
    "split_fused",
    "word_table",
]
