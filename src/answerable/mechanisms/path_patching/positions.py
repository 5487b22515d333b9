"""Heads and feed-forward parts patched at any one token, with nothing frozen.

The last token alone can be patched without reading a prompt again; an earlier one changes all that follow. So layers
run on whole prompts here, many senders in one batch, and only from the sender's layer on: below it nothing changes.
Prompt and twin must be of one length, since a token of one takes the place of the same token of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.mechanisms.path_patching.effects import PathPatching
from answerable.mechanisms.path_patching.sweep import Node, check_nodes
from answerable.mechanisms.path_patching.tracing import Trace
from answerable.subjects.language_model import LanguageModel, capture, intervene, parts, tokenise
from answerable.subjects.language_model.last_token import calls_of_layers
from answerable.subjects.language_model.pieces import final_state

Floats = npt.NDArray[np.float64]
TOKENS = 8192  # in one batch of senders


class Place(NamedTuple):
    """A sender and its token, counted from the end: -1 is the last one."""

    node: Node
    token: int


class _Group(NamedTuple):
    """Prompts of one length: which, streams that enter each layer, what nodes have on the twins, and layers' calls."""

    rows: list[int]
    stream: Any
    twins: dict[str, Any]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]

    @property
    def length(self) -> int:
        return int(self.stream.shape[2])


def effects_at(trace: Trace, places: Sequence[Place], method: PathPatching | None = None) -> Floats:
    """Change of the metric where one node takes the twin's activation at one token, along all paths.

    Parameters
    ----------
    trace : pairs whose twins are as long as their prompts
    places : nodes with their tokens; a token before the first one of a prompt changes nothing there
    method : whose metric; the defaults by default

    Returns
    -------
    (places, pairs) float64, in the metric's unit

    Raises
    ------
    BadInput : a twin of another length (the line names the pair), a token that is no place from the end
    """
    import torch

    lm, readout = trace.lm, (method or PathPatching()).readout(trace)
    for place in places:
        if not isinstance(place.token, int) or place.token >= 0:
            raise BadInput(f"token {place.token}", where="positions", mend="count from the end: -1 is the last token")
    check_nodes(lm, [place.node for place in places])
    with torch.no_grad():
        baseline = final_state(lm, trace.positive.stream[-1])
        final = baseline[None].repeat(len(places), 1, 1)
        for group in _groups(trace):
            for start, patched in _patched(lm, group, places):
                rows = torch.as_tensor(group.rows)
                final[torch.as_tensor(start)[:, None], rows[None]] = patched
        changed = readout(final) - readout(baseline)
    found: Floats = changed.double().cpu().numpy()
    return found


def _groups(trace: Trace) -> list[_Group]:
    ids = [[tokenise(trace.lm, prompt).ids for prompt in (pair.positive, pair.negative)] for pair in trace.pairs]
    for number, (prompt, twin) in enumerate(ids, 1):
        if len(prompt) != len(twin):
            raise BadInput(
                f"the prompt has {len(prompt)} tokens, its twin {len(twin)}",
                where=f"pair {number}",
                mend="patch the last token alone, or write a twin of the same length",
            )
    lengths = sorted({len(prompt) for prompt, _ in ids})
    return [_group(trace.lm, [i for i, (prompt, _) in enumerate(ids) if len(prompt) == one], ids) for one in lengths]


def _group(lm: LanguageModel, rows: list[int], ids: Sequence[Sequence[Sequence[int]]]) -> _Group:
    import torch

    count, device = parts.layer_count(lm), lm.model.get_input_embeddings().weight.device
    prompts, twins = (torch.tensor([list(ids[row][side]) for row in rows], device=device) for side in (0, 1))
    with capture(lm, [f"stream.{layer}" for layer in range(count)]) as found, calls_of_layers(lm, len(rows)) as calls:
        lm.model(prompts, use_cache=False)
        stream = torch.stack([found[f"stream.{layer}"] for layer in range(count)])
    sites = [f"{name}.{layer}" for name in ("heads", "feed_forward") for layer in range(count)]
    with capture(lm, sites) as there:
        lm.model(twins, use_cache=False)
        return _Group(rows, stream, dict(there), [calls[layer] for layer in range(count)])


def _patched(lm: LanguageModel, group: _Group, places: Sequence[Place]) -> list[tuple[list[int], Any]]:
    """Which places, and what the output layer reads then: (some, n, m)."""
    found = []
    for layer in range(parts.layer_count(lm)):
        of_layer = [i for i, place in enumerate(places) if place.node.layer == layer and -place.token <= group.length]
        most = max(1, TOKENS // (len(group.rows) * group.length))
        for start in range(0, len(of_layer), most):
            some = of_layer[start : start + most]
            stream = group.stream[layer].repeat(len(some), 1, 1)
            with intervene(lm, _changes(group, layer, [places[i] for i in some])):
                stream = _run(lm, group, layer, stream)
            for above in range(layer + 1, parts.layer_count(lm)):
                stream = _run(lm, group, above, stream)
            found.append((some, final_state(lm, stream[:, -1]).unflatten(0, (len(some), len(group.rows)))))
    return found


def _run(lm: LanguageModel, group: _Group, layer: int, stream: Any) -> Any:
    args, kwargs = group.calls[layer]
    given = parts.layer_at(lm, layer)(stream, *args, **kwargs)
    return given[0] if isinstance(given, tuple) else given


def _changes(group: _Group, layer: int, places: Sequence[Place]) -> dict[str, Any]:
    """The interventions of one batch: sender by sender, each for all prompts."""
    n = len(group.rows)

    def put(kind: str, site: str) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone().unflatten(0, (len(places), n))
            for number, (node, token) in enumerate(places):
                if node.kind == kind and kind == "head":
                    changed[number, :, token, node.head] = group.twins[site][:, token, node.head]
                elif node.kind == kind:
                    changed[number, :, token] = group.twins[site][:, token]
            return changed.flatten(0, 1)

        return change

    kinds = {place.node.kind for place in places}
    sites = {"head": f"heads.{layer}", "mlp": f"feed_forward.{layer}"}
    return {sites[kind]: put(kind, sites[kind]) for kind in sorted(kinds)}
