"""ConV and F-ConV (Zhang et al., NeurIPS 2025) beside ours.

Neither DINOv2's weights nor the paper's images are on a package index, so its tables cannot be run here: their figures
stand without ours. EfficientNet-Lite0 on crops of natural photographs, spoiled as generators spoil them, a manifold of
features and a tiny encoder trained without labels stand in for what the method does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from answerable.provenance.generated_images import (
    ConsistencyDetector,
    Features,
    FlowConsistencyDetector,
    dissimilarities,
)
from answerable.provenance.generated_images.formats import format_controls
from answerable.statistics import Calibration, Interval, auroc_interval
from answerable.subjects import Picture, VisionBackbone
from reproductions.natural_images import SPOILT, crops_of, efficientnet_ready, photographs
from reproductions.natural_images.encoder import SIDE, Encoder, generated_patches, natural_patches, train

Row = tuple[str, float | None, float | None, str]

# AUROC [%] as summaries of the paper give them: ImageNet, the mean over nine generators.
PAPER = {
    "ImageNet, nine generators: ConV": 87.13,
    "ImageNet, nine generators: F-ConV": 93.77,
    "    FatFormer (trained)": 93.68,
    "    NPR (trained)": 86.00,
    "    AEROBLADE (training-free)": 57.87,
    "Sora and OpenSora: ConV": 87.74,
    "Sora and OpenSora: F-ConV": 91.74,
}
ALPHA = 0.1
MOVE = 0.2  # of the change along the manifold of the toy, in standard deviations


def rows(*, quick: bool) -> Iterator[Row]:
    for what, paper in PAPER.items():
        yield f"AUROC, {what} [%]", paper, None, "needs DINOv2 ViT-L/14 and the paper's images"
    yield from toy_manifold(steps=150 if quick else 400)
    crops, scores = yield from efficientnet(each=2 if quick else 6)
    yield from false_alarms(crops, scores, repetitions=2000)
    yield from self_supervised(steps=60 if quick else 600, count=150 if quick else 400)


def efficientnet(*, each: int) -> Iterator[Row]:  # type: ignore[misc]
    """Both scores on natural crops and on the same crops spoiled; returns the photographs and scores of real crops."""
    network = VisionBackbone.load(efficientnet_ready())
    rng = np.random.default_rng(0)
    photos = [name for name in photographs() for _ in range(each)]
    crops = [crop for pixels in photographs().values() for crop in crops_of(pixels, each, rng)]
    labels = np.repeat([0, 1], len(crops))
    real_scores = {}
    ways: dict[str, dict[str, Any]] = {
        "ConV": {"score": "consistency"},
        "RIGID, noise 0.05": {"score": "noise", "noise": 0.05},
        "RIGID, noise 0.01": {"score": "noise", "noise": 0.01},
    }
    for way, options in ways.items():
        detector = ConsistencyDetector(network, n_views=3, views="shared", **options)
        real_scores[way] = real = detector.score_samples(crops)
        for what, spoil in SPOILT.items():
            spoilt = detector.score_samples([spoil(crop) for crop in crops])
            area = auroc_interval(labels, np.concatenate([real, spoilt]))
            yield f"{what}: AUROC of {way}", None, area.value, _ends(area)
    alike, unlike = [_picture("png", None)] * len(crops), [_picture("jpeg", 90)] * len(crops)
    for what, fakes in (("fakes saved alike", alike), ("fakes saved as JPEG", unlike)):
        for name, column in format_controls([*alike, *fakes], labels == 1).items():
            yield f"{what}: AUROC of {name}", None, auroc_interval(labels, column).value, "no detector at all"
    return photos, real_scores["ConV"]


def false_alarms(photos: list[str], scores: np.ndarray, *, repetitions: int) -> Iterator[Row]:
    """Rates over random splits: of scores all alike, of one crop a photograph, of all crops by photograph."""
    rng = np.random.default_rng(0)
    rates = [1 - Calibration(rng.random(99), alpha=ALPHA, least=1).pools[0].threshold for _ in range(repetitions)]
    note = f"+- {np.std(rates) / np.sqrt(repetitions):.4f}"
    yield f"false alarms, 99 independent images, {repetitions} calibrations", ALPHA, float(np.mean(rates)), note
    names = sorted(set(photos))
    of_photo = {name: np.flatnonzero(np.array(photos) == name) for name in names}
    single, whole, mixed = [], [], []
    for _ in range(repetitions):
        order = rng.permutation(len(names))
        picked = np.array([scores[rng.choice(of_photo[names[k]])] for k in order])
        single.append(float(Calibration(picked[:-1], alpha=ALPHA, least=1).decide(picked[-1:]).words[0] == "flagged"))
        known = np.concatenate([scores[of_photo[names[k]]] for k in order[:6]])
        asked = np.concatenate([scores[of_photo[names[k]]] for k in order[6:]])
        whole.append(_flagged(known, asked))
        shuffled = rng.permutation(scores)
        mixed.append(_flagged(shuffled[: len(known)], shuffled[len(known) :]))
    for what, found in (
        ("natural crops, one of each photograph", single),
        ("natural crops, split anyhow", mixed),
        ("natural crops, a photograph's kept together", whole),
    ):
        yield f"false alarms, {what}", ALPHA, float(np.mean(found)), f"+- {np.std(found) / np.sqrt(repetitions):.4f}"


def _flagged(known: np.ndarray, asked: np.ndarray) -> float:
    words = Calibration(known, alpha=ALPHA, least=1).decide(asked).words
    return words.count("flagged") / len(words)


class Toy(NamedTuple):
    """Features near a manifold of 8 dimensions in 64: those fitted to, those asked about, and fakes of another law."""

    fitted: Features
    asked: Features
    unseen: Features


def toy(seed: int = 0, n: int = 2000) -> Toy:
    """Real features lie 0.10 off the manifold; fakes 0.13, and a fixed trace of 0.04 a feature beside it."""
    rng = np.random.default_rng(seed)
    onto = rng.standard_normal((8, 64)) / np.sqrt(8)
    traces = 0.04 * rng.choice([-1.0, 1.0], (2, 64))

    def drawn(count: int, off: float, trace: np.ndarray | float, *, uniform: bool) -> tuple[np.ndarray, np.ndarray]:
        along = rng.standard_normal((count, 8))
        moved = along + MOVE * rng.standard_normal((count, 8))
        law = (lambda: rng.uniform(-1.73, 1.73, (count, 64))) if uniform else (lambda: rng.standard_normal((count, 64)))
        return tuple(np.tanh(place @ onto) + off * law() + trace for place in (along, moved))  # type: ignore[return-value]

    def features(count: int, *, uniform: bool = False) -> Features:
        pairs = drawn(count, 0.10, 0.0, uniform=False), drawn(count, 0.13, traces[int(uniform)], uniform=uniform)
        source, changed = (np.concatenate(part).astype(np.float32) for part in zip(*pairs))
        return Features(source, changed, np.repeat([0, 1], count), [str(k) for k in range(2 * count)])

    return Toy(features(n), features(n // 2), features(n // 2, uniform=True))


def fitted_to(features: Features, *, steps: int, fake_sign: str = "code") -> FlowConsistencyDetector:
    """A small flow, that many steps of 256 rows."""
    epochs = max(1, round(steps * 256 / len(features.source)))
    detector = FlowConsistencyDetector(hidden=128, lr=2e-3, epochs=epochs, batch_size=256, tau=2.0,
                                       fake_sign=fake_sign)  # type: ignore[arg-type]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detector.fit(features)


def toy_manifold(*, steps: int) -> Iterator[Row]:
    """What the flow gains over the raw score, by both signs of the log-determinant, and on fakes of another law."""
    made = toy()
    labels = made.asked.labels
    raw = auroc_interval(labels, dissimilarities(made.asked.source, made.asked.changed))
    norm = auroc_interval(labels, np.linalg.norm(made.asked.source, axis=1))
    yield "manifold of features: AUROC of 1 - cos", None, raw.value, _ends(raw)
    yield "    of the norm", None, norm.value, _ends(norm)
    for sign in ("code", "paper"):
        detector = fitted_to(made.fitted, steps=steps, fake_sign=sign)
        parts = detector.score_parts(made.asked)
        for what, column in (("F-ConV", parts.total), ("    its energy alone", parts.energy),
                             ("    its cosine alone", -parts.cosine)):  # fmt: skip
            area = auroc_interval(labels, column)
            yield f"{what}, sign of the {sign}", None, area.value, _ends(area)
        area = auroc_interval(made.unseen.labels, detector.score_samples(made.unseen))
        yield "    fakes of another noise law", None, area.value, _ends(area)
    only_real = Features(*(part[made.fitted.labels == 0] for part in made.fitted[:3]), names=[])
    area = auroc_interval(labels, fitted_to(only_real, steps=steps).score_samples(made.asked))
    yield "F-ConV fitted to real features alone", None, area.value, _ends(area)


def self_supervised(*, steps: int, count: int) -> Iterator[Row]:
    """ConV on patches drawn from principal components, with an encoder at its start and after training."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    real, fake = natural_patches(count, rng, side=SIDE), generated_patches(count, rng)
    labels = np.repeat([0, 1], [len(real), len(fake)])
    for what, encoder in (
        ("as it was initialised", Encoder().eval()),
        (f"trained without labels, {steps} steps", train(Encoder(), steps=steps)),
    ):
        network = VisionBackbone.load(encoder, size=SIDE, mean=(0.45,) * 3, std=(0.225,) * 3)
        scores = ConsistencyDetector(network, views="shared", batch=64).score_samples([*real, *fake])
        area = auroc_interval(labels, scores)
        yield f"tiny encoder {what}: AUROC of ConV", None, area.value, _ends(area)


def _picture(encoding: str, quality: int | None) -> Picture:
    return Picture("", None, None, encoding=encoding, width=256, height=256, quality=quality)


def _ends(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"
