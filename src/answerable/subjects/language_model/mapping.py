"""Feed-forward layers of an architecture without a family: which modules may be one, and a map that a user gives.

A map names two matrices, or three where the layer is gated, with ``*`` in the place of the layer's number, and the
function between them: ``{"up": "h.*.ffn.0", "down": "h.*.ffn.2", "activation": "relu"}``. It becomes a `Family` like
those of the folder beside this file, and is tried on a few tokens before anything is said of it: a wrong function, or
matrices that do not follow one another, would give memories that the model does not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from answerable.errors import BadInput
from answerable.subjects.language_model import parts
from answerable.subjects.language_model.families import BY_MODEL_TYPE, Family
from answerable.subjects.language_model.loading import LanguageModel, module_tree
from answerable.subjects.language_model.memories import Seen, matrix, memory, record

NEEDED, OPTIONAL = ("up", "down", "activation"), ("gate", "final_norm")
MATRICES = ("up", "gate", "down")
USUAL = (  # functions, by transformers' names, that are tried where another was given and does not fit
    "relu", "gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu2", "tanh", "sigmoid", "linear",
)  # fmt: skip
MOST_SHOWN = 4
_TRIED_TOKENS = 8
_CLOSE = 1e-5  # of the largest activation, in float32: gelu and its approximations lie a hundred times further apart


def refuse_unknown(lm: LanguageModel) -> None:
    """Nothing where the model's layers are known.

    Raises
    ------
    BadInput : they are not; the line lists the maps that its modules allow, and says where one is given
    """
    model_type = getattr(getattr(lm.model, "config", None), "model_type", "")
    if lm.map is not None or model_type in BY_MODEL_TYPE:
        return
    what = f"there is no map of the architecture {model_type!r}"
    found = candidate_maps(lm.model)
    if not found:
        what += f", and none of its matrices lead from the stream and back: {module_tree(lm.model)}"
        mend = "docs/subjects/language-model.md shows how a map is added"
        raise BadInput(what, where=lm.name, mend=mend)
    listed = " or ".join(map(_told, found[:MOST_SHOWN]))
    more = f" (and {len(found) - MOST_SHOWN} more)" if len(found) > MOST_SHOWN else ""
    mend = f"from Python, FFMemories.from_model takes mlp_map, here one of {listed}{more}"
    raise BadInput(what, where=lm.name, mend=mend)


def candidate_maps(model: Any) -> list[dict[str, str]]:
    """Maps whose matrices read the stream's width, meet in one width, and write the stream's, the widest first.

    Two matrices that read alike beside one that writes are taken for gate and keys. Where a width other than the
    stream's is met, square matrices are left out: those of attention are square too.
    """
    width = _stream_width(model)
    by_layer: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for name, module in model.named_modules():
        place = _place(model, name)
        if place is not None and _is_matrix(module):
            inputs, outputs = matrix(module)[0].shape
            by_layer[place.layer].append((place.template, int(inputs), int(outputs)))
    found: dict[tuple[str, ...], int] = {}
    for matrices in by_layer.values():
        for number, (down, inner, outputs) in enumerate(matrices):
            if outputs != width:
                continue
            ups = [
                name
                for other, (name, inputs, meets) in enumerate(matrices)
                # Square ones fit in either order: only that of the module is meant.
                if inputs == width and meets == inner and (other < number or (other != number and inner != width))
            ]
            if len(ups) == 2:
                found[ups[0], ups[1], down] = inner
            else:
                found.update({(up, down): inner for up in ups})
    if any(inner != width for inner in found.values()):
        found = {names: inner for names, inner in found.items() if inner != width}
    function = _function_of_config(model)
    return [
        {**dict(zip(("up", "down") if len(names) == 2 else ("gate", "up", "down"), names)), "activation": function}
        for names in sorted(found, key=lambda names: -found[names])
    ]


def mapped(lm: LanguageModel, mlp_map: Mapping[str, str]) -> LanguageModel:
    """The model with a user's map in the place of its family.

    Parameters
    ----------
    mlp_map : "up" and "down", the matrices that read the stream and write to it, as paths of modules with ``*`` in the
        place of the layer's number; "gate", likewise, where there is one; "activation", the function that is applied
        to the gate, or to what is read where there is none, by its name in transformers; "final_norm", the norm before
        the output layer, whose gain promoted words need

    Raises
    ------
    BadInput : a key that is none, a module that is not there or is no matrix, widths that do not meet, or a layer that
        does not compute this
    """
    names = _checked_keys(mlp_map)
    stack = {names[key].partition(".*.")[0] for key in MATRICES if key in names}
    if len(stack) > 1:
        raise BadInput(f"{' and '.join(sorted(stack))} are two lists of layers", where="mlp_map", mend="name one")
    # Wherever it is in the model: the family's path begins at the backbone.
    layers = _module(lm, next(iter(stack)), "mlp_map")
    root = parts.backbone(lm)
    path = next((name for name, module in root.named_modules() if module is layers), None)
    if path is None or not hasattr(layers, "__getitem__"):
        raise BadInput(f"{next(iter(stack))} is no list of the model's layers", where="mlp_map", mend=_seen(lm))
    empty = Family(
        name="mapped", model_types={}, embeddings=(), attention="", output="", attention_norm="", feed_forward_norm="",
        layers=path, up="", down="", unembedding=_output_layer(lm.model),
        final_norm=_final_norm(lm, names.get("final_norm")),
    )  # fmt: skip
    own = replace(lm, map=_family(empty, names))
    for layer in range(parts.layer_count(own)):
        _fits(own, {key: names[key].replace("*", str(layer)) for key in MATRICES if key in names})
    _computes(own, names)
    return own


def _family(family: Family, names: Mapping[str, str]) -> Family:
    """A family with the matrices and the function of a map."""
    up, gate, down = (names.get(key, "").partition(".*.")[2] for key in MATRICES)
    return replace(family, up=up, gate=gate, down=down, function=names["activation"])


def _neighbours(names: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Maps that may be meant instead: another function, and gate and keys the other way round."""
    turns = [dict(names)]
    if "gate" in names:
        turns.append({**names, "gate": names["up"], "up": names["gate"]})
    for turn in turns:
        for function in dict.fromkeys((names["activation"], *USUAL)):
            yield {**turn, "activation": function}


def _checked_keys(mlp_map: Mapping[str, str]) -> dict[str, str]:
    from transformers.activations import ACT2FN

    if not isinstance(mlp_map, Mapping) or not all(isinstance(part, str) for pair in mlp_map.items() for part in pair):
        raise BadInput(f"it is {mlp_map!r:.80}", where="mlp_map", mend=f"give {', '.join(NEEDED)} as a dict of names")
    names = dict(mlp_map)
    for key in names:
        if key not in (*NEEDED, *OPTIONAL):
            raise BadInput(
                f"there is no key {key!r}", where="mlp_map", mend=f"choose from {', '.join(NEEDED + OPTIONAL)}"
            )
    for key in NEEDED:
        if key not in names:
            raise BadInput(
                f"it has no {key!r}", where="mlp_map", mend="give up, down and activation; gate where there is one"
            )
    for key in MATRICES:
        if key in names and names[key].count(".*.") + names[key].count("*") != 2:
            what = f"{names[key]!r} does not say where the layer's number stands"
            raise BadInput(what, where=f"mlp_map, {key}", mend="write * in its place, once, as in h.*.mlp.up")
    if names["activation"] not in ACT2FN:
        what = f"there is no function {names['activation']!r}"
        raise BadInput(what, where="mlp_map, activation", mend=f"choose from {', '.join(sorted(ACT2FN))}")
    return names


def _fits(lm: LanguageModel, names: Mapping[str, str]) -> None:
    """Whether one layer's matrices are there and meet."""
    sizes = {}
    for key, name in names.items():
        module = _module(lm, name, f"mlp_map, {key}")
        if not _is_matrix(module):
            what = f"{name} is a {type(module).__name__}, no matrix"
            raise BadInput(what, where=f"mlp_map, {key}", mend="name a linear module")
        sizes[key] = [int(size) for size in matrix(module)[0].shape]
    width = _stream_width(lm.model)
    for key in sizes:
        side, does = (1, "writes") if key == "down" else (0, "reads")
        if sizes[key][side] != width:
            what = f"{names[key]} {does} {sizes[key][side]} numbers, the model's stream has {width}"
            raise BadInput(what, where=f"mlp_map, {key}", mend=_seen(lm))
    for key in sizes:
        if key != "down" and sizes[key][1] != sizes["down"][0]:
            what = f"{names[key]} writes {sizes[key][1]} numbers, {names['down']} reads {sizes['down'][0]}"
            raise BadInput(what, where="mlp_map", mend=_seen(lm))


def _computes(lm: LanguageModel, names: Mapping[str, str]) -> None:
    """Whether each layer's memories are what its last matrix reads, on a few tokens."""
    import torch

    table = parts.word_table(lm.model).weight
    tried: set[int] = set()
    ids = torch.arange(_TRIED_TOKENS)[None] % len(table)
    close = max(_CLOSE, 8 * torch.finfo(table.dtype).eps)

    def apart(layer: int, seen: Seen, family: Family) -> float:
        found = memory(replace(lm, map=family), layer).activations(seen.read)
        size = seen.activations.float().abs().max().clamp_min(1e-30)
        return float((found.float() - seen.activations.float()).abs().max() / size)

    def check(layer: int, seen: Seen) -> None:
        here = {key: names[key].replace("*", str(layer)) for key in MATRICES if key in names}
        tried.add(layer)
        if len(seen.read) != _TRIED_TOKENS or len(seen.activations) != _TRIED_TOKENS:
            what = f"{here['down']} reads {len(seen.activations)} of {_TRIED_TOKENS} tokens"
            raise BadInput(what, where="mlp_map", mend="name matrices that read every token; a single expert does not")
        far = apart(layer, seen, lm.family)
        if far <= close:
            return
        first, times = here.get("gate", here["up"]), f" times what {here['up']} gives" if "gate" in here else ""
        what = (
            f"{names['activation']} of what {first} gives{times} is not what {here['down']} reads:"
            f" {far:.2g} of its largest apart"
        )
        fits = next((one for one in _neighbours(names) if apart(layer, seen, _family(lm.family, one)) <= close), None)
        mend = "give the matrices and the function as the model has them" if fits is None else f"it is {_told(fits)}"
        raise BadInput(what, where=f"mlp_map, layer {layer}", mend=mend)

    try:
        record(lm, ids, check)
    except TypeError as failure:
        what = f"it cannot be called as transformers' models are: {failure}"
        raise BadInput(what, where=lm.name, mend="let it take input_ids and attention_mask") from None
    idle = next((layer for layer in range(parts.layer_count(lm)) if layer not in tried), None)
    if idle is not None:
        what = f"the model runs without {names['down'].replace('*', str(idle))}"
        raise BadInput(what, where="mlp_map", mend="name matrices that read every token")


def _module(lm: LanguageModel, name: str, where: str) -> Any:
    """A module by its path from the whole model or from the backbone."""
    for root in (lm.model, parts.backbone(lm)):
        try:
            return root.get_submodule(name)
        except AttributeError:
            continue
    raise BadInput(f"there is no module {name}", where=where, mend=_seen(lm))


def _final_norm(lm: LanguageModel, name: str | None) -> str:
    if name is None:
        return ""
    norm = _module(lm, name, "mlp_map, final_norm")
    found = next((path for path, module in parts.backbone(lm).named_modules() if module is norm), None)
    weight = getattr(norm, "weight", None)
    if found is None or weight is None or weight.shape != (_stream_width(lm.model),):
        what = f"{name} has no gain for each number of the stream"
        raise BadInput(what, where="mlp_map, final_norm", mend="name the norm before the output layer, or leave it out")
    return found


def _seen(lm: LanguageModel) -> str:
    """What may be given instead, for the end of a line."""
    found = candidate_maps(lm.model)
    return (
        f"its modules allow {' or '.join(map(_told, found[:MOST_SHOWN]))}" if found else "look at model.named_modules()"
    )


def _told(one: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": "{name}"' for key, name in one.items()) + "}"


def _stream_width(model: Any) -> int:
    told = getattr(getattr(model, "config", None), "hidden_size", None)
    return told if isinstance(told, int) else int(parts.word_table(model).weight.shape[1])


def _is_matrix(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    return hasattr(module, "bias") and getattr(weight, "ndim", 0) == 2


class _Place(NamedTuple):
    """A module's layer, and its path with ``*`` in the place of the layer's number."""

    layer: str
    template: str


def _place(model: Any, name: str) -> _Place | None:
    """Where a module is; None for one that is in no list."""
    import torch

    steps = name.split(".")
    for at, step in enumerate(steps[:-1]):
        if step.isdigit() and isinstance(model.get_submodule(".".join(steps[:at])), torch.nn.ModuleList):
            return _Place(".".join(steps[: at + 1]), ".".join([*steps[:at], "*", *steps[at + 1 :]]))
    return None


def _output_layer(model: Any) -> str:
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    return next((name for name, module in model.named_modules() if module is head), "") if head is not None else ""


def _function_of_config(model: Any) -> str:
    """The function that the configuration names, where it names one; relu, which the trial corrects."""
    from transformers.activations import ACT2FN

    told: Iterator[Any] = (
        getattr(getattr(model, "config", None), name, None)
        for name in ("hidden_act", "activation_function", "hidden_activation", "act_fn", "activation")
    )
    return next((name for name in told if isinstance(name, str) and name in ACT2FN), "relu")
