"""RIGID's noise score under settings that a description leaves open: how crops were resampled, what phase noise is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image

from answerable.provenance.generated_images import ConsistencyDetector
from answerable.statistics import Interval, auroc_interval
from answerable.subjects import VisionBackbone
from answerable.subjects.images import Pixels

from . import as_pixels, crops_of, efficientnet_ready, photographs

EACH = 6  # crops of a photograph
Phases = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def resampled(factor: int, method: Image.Resampling) -> Callable[[Pixels], Pixels]:
    """Made smaller by that factor and larger again."""

    def spoil(pixels: Pixels) -> Pixels:
        height, width = pixels.shape[:2]
        small = Image.fromarray(pixels).resize((width // factor, height // factor), method)
        return np.asarray(small.resize((width, height), method))

    return spoil


def turned(phases: Phases, *, channels: bool = False) -> Callable[[Pixels], Pixels]:
    """Every frequency's phase turned, alike in all colours or in each by itself."""

    def spoil(pixels: Pixels) -> Pixels:
        rng = np.random.default_rng(int(pixels.sum()))
        spectrum = np.fft.rfft2(pixels / 255, axes=(0, 1))
        shape = spectrum.shape if channels else (*spectrum.shape[:2], 1)
        moved = spectrum * np.exp(1j * phases(rng, shape))
        moved[0, 0] = spectrum[0, 0]
        return as_pixels(np.fft.irfft2(moved, s=pixels.shape[:2], axes=(0, 1)))

    return spoil


def within(most: float) -> Phases:
    """Phases drawn evenly, up to that many radians either way."""
    return lambda rng, shape: rng.uniform(-most, most, shape)


TRIED: dict[str, Callable[[Pixels], Pixels]] = {
    "half resolution, bilinear": resampled(2, Image.Resampling.BILINEAR),
    "quarter resolution, bilinear": resampled(4, Image.Resampling.BILINEAR),
    "phases within 0.1": turned(within(0.1)),
    "phases within 1": turned(within(1.0)),
    "phases within pi": turned(within(np.pi)),
    "phases within 0.5, each colour by itself": turned(within(0.5), channels=True),
}


def areas() -> Iterator[tuple[str, Interval]]:
    """AUROC of RIGID, noise 0.05, on the crops of the reproduction, spoiled in each way."""
    detector = ConsistencyDetector(VisionBackbone.load(efficientnet_ready()), n_views=3, views="shared", score="noise")
    rng = np.random.default_rng(0)
    crops = [crop for pixels in photographs().values() for crop in crops_of(pixels, EACH, rng)]
    real, labels = detector.score_samples(crops), np.repeat([0, 1], len(crops))
    for what, spoil in TRIED.items():
        found = detector.score_samples([spoil(crop) for crop in crops])
        yield what, auroc_interval(labels, np.concatenate([real, found]))
