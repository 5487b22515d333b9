"""Colour jitter pixel by pixel with the standard library, and the flow's loss term by term."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence

import numpy as np


def jittered(image: np.ndarray, factors: Sequence[float], order: Sequence[int]) -> np.ndarray:
    """(3, H, W) after brightness, contrast, saturation and hue in that order of the four."""
    pixels = {place: tuple(float(c) for c in image[(slice(None), *place)]) for place in np.ndindex(image.shape[1:])}
    for which in order:
        factor = float(factors[which])
        mean = sum(grey(p) for p in pixels.values()) / len(pixels)
        for place, pixel in pixels.items():
            if which == 3:
                hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
                pixels[place] = colorsys.hsv_to_rgb((hue + factor) % 1, saturation, value)
            else:
                other = (0.0, mean, grey(pixel))[which]
                pixels[place] = tuple(min(1.0, max(0.0, factor * c + (1 - factor) * other)) for c in pixel)
    result = np.empty_like(image, dtype=np.float64)
    for place, pixel in pixels.items():
        result[(slice(None), *place)] = pixel
    return result


def grey(pixel: Sequence[float]) -> float:
    red, green, blue = pixel
    return 0.2989 * red + 0.587 * green + 0.114 * blue


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    return dot / math.sqrt(sum(a * a for a in first) * sum(b * b for b in second))


def flow_loss(
    z1: np.ndarray, j1: np.ndarray, z2: np.ndarray, j2: np.ndarray, fake: np.ndarray, margin: float, sign: str
) -> tuple[float, float]:
    """Shaping and consistency, row by row."""
    n, d = z1.shape
    shaping = consistency = 0.0
    for k in range(n):
        for z, j in ((z1[k], j1[k]), (z2[k], j2[k])):
            e = sum(float(value) ** 2 for value in z) / 2
            if not fake[k]:
                shaping += (e - j) / (2 * n * d)
            elif e < margin:
                shaping += (-e - j if sign == "code" else -e + j) / (2 * n * d)
        similarity = cosine(z1[k].tolist(), z2[k].tolist())
        if not fake[k]:
            consistency += (1 - similarity) / n
        elif similarity > 0.1:
            consistency += 0.1 * similarity / n
    return shaping, consistency
