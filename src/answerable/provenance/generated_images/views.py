"""Views of an image and natural-looking changes of them: crops, flips, colour jitter; drawn by the image's own pixels.

Brightness, contrast, saturation and hue are torchvision's definitions on pixels from 0 to 1, in a random order. What is
drawn depends on the decoded pixels and a random state, never on the order of the images or on batches.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

from .checks import one_of

Pixels = npt.NDArray[np.uint8]
Floats32 = npt.NDArray[np.float32]
Way = Literal["random", "shared"]
TransformName = Literal["paper", "flow", "identity"]


class Transform(NamedTuple):
    """A natural-looking change: a flip and a colour jitter, each with its probability.

    flip, jitter : shares of views that are flipped and jittered
    brightness, contrast, saturation : largest relative change of each
    hue : largest turn of the hue circle, as a share of it
    """

    flip: float = 0.8
    jitter: float = 0.8
    brightness: float = 0.18
    contrast: float = 0.24
    saturation: float = 0.12
    hue: float = 0.03


TRANSFORMS: dict[str, Transform] = {
    "paper": Transform(),
    "flow": Transform(1.0, 1.0, 0.12, 0.12, 0.06, 0.03),
    "identity": Transform(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}


@dataclass(frozen=True)
class Drawn:
    """What is done to one image, for K views.

    top, left : (K,) int64, corner of each crop [px]; negative where the image is smaller than the crop
    flips : (K,) bool
    jitters : (K,) bool
    factors : (K, 4) float32: brightness, contrast, saturation (each times), hue (turned by)
    orders : (K, 4) int64, the order of the four
    """

    top: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    flips: npt.NDArray[np.bool_]
    jitters: npt.NDArray[np.bool_]
    factors: Floats32
    orders: npt.NDArray[np.int64]


def transform_of(name: str | Transform) -> Transform:
    """A transform by its name, or itself.

    Raises
    ------
    BadInput : there is no such name
    """
    if isinstance(name, Transform):
        return name
    one_of(name, list(TRANSFORMS), "transform")
    return TRANSFORMS[name]


def generator_of(pixels: Pixels, random_state: int, purpose: str = "views") -> np.random.Generator:
    """A generator seeded by the pixels' bytes, their shape, a random state and a purpose."""
    head = f"{purpose} {random_state} {pixels.shape}".encode()
    whole = hashlib.sha256(head + np.ascontiguousarray(pixels).tobytes()).digest()
    return np.random.default_rng(int.from_bytes(whole[:16], "little"))


def draw(
    pixels: Pixels,
    *,
    n_views: int,
    size: int = 224,
    transform: Transform = TRANSFORMS["paper"],
    views: Way = "random",
    random_state: int = 0,
) -> Drawn:
    """What is done to an image.

    Parameters
    ----------
    pixels : (H, W, 3) uint8
    n_views : K
    size : side of the square crops [px]
    transform : what changes
    views : "random" crops anywhere, "shared" takes the centre for all
    random_state : together with the pixels it settles every draw

    Returns
    -------
    Drawn
    """
    rng = generator_of(pixels, random_state)
    height, width = pixels.shape[:2]
    # All is drawn in the same order whatever is used, so that a setting changes only what it names.
    places = rng.random((2, n_views))
    corners = []
    for side, place in zip((height, width), places, strict=True):
        room = side - size
        centred = views == "shared" or room < 0
        corners.append(np.full(n_views, room // 2) if centred else np.floor(place * (room + 1)).astype(np.int64))
    flips = np.zeros(n_views, dtype=np.bool_)
    flips[rng.permutation(n_views)[: round(transform.flip * n_views)]] = True
    jitters = rng.random(n_views) < transform.jitter
    reach = np.array([transform.brightness, transform.contrast, transform.saturation, transform.hue])
    unit = rng.random((n_views, 4))
    low = np.array([max(0.0, 1 - reach[0]), max(0.0, 1 - reach[1]), max(0.0, 1 - reach[2]), -reach[3]])
    high = np.array([1 + reach[0], 1 + reach[1], 1 + reach[2], reach[3]])
    factors = (low + (high - low) * unit).astype(np.float32)
    orders = np.argsort(rng.random((n_views, 4)), axis=1, kind="stable").astype(np.int64)
    return Drawn(corners[0].astype(np.int64), corners[1].astype(np.int64), flips, jitters, factors, orders)


def crops(pixels: Pixels, drawn: Drawn, size: int) -> Floats32:
    """(K, 3, size, size) float32 crops from 0 to 1, black outside the image."""
    # Views at one place are cut once.
    shared = len(drawn.top) > 1 and bool((drawn.top == drawn.top[0]).all() and (drawn.left == drawn.left[0]).all())
    count = 1 if shared else len(drawn.top)
    cut = np.empty((count, 3, size, size), dtype=np.float32)
    cut_out(np.ascontiguousarray(pixels), drawn.top[:count], drawn.left[:count], cut)
    return np.repeat(cut, len(drawn.top), axis=0) if shared else cut


def changed(cut: Floats32, drawn: Drawn) -> Floats32:
    """The crops, flipped and jittered as drawn; (K, 3, size, size) float32 from 0 to 1."""
    result = np.empty_like(cut)
    change(np.ascontiguousarray(cut), drawn.flips, drawn.jitters, drawn.factors, drawn.orders, result)
    return result


def noisy(cut: Floats32, rng: np.random.Generator, noise: float) -> Floats32:
    """The crops with Gaussian noise of standard deviation ``noise`` added, not clipped."""
    return cut + np.float32(noise) * rng.standard_normal(cut.shape, dtype=np.float32)


@kernel
def cut_out(pixels, top, left, cut):  # type: ignore[no-untyped-def]
    """Crops of (H, W, 3) uint8 pixels into ``cut``, each of its own planes; 0 outside."""
    height, width = pixels.shape[:2]
    for view in range(cut.shape[0]):
        for row in range(cut.shape[2]):
            y = row + top[view]
            for column in range(cut.shape[3]):
                x = column + left[view]
                inside = 0 <= y < height and 0 <= x < width
                for channel in range(3):
                    cut[view, channel, row, column] = pixels[y, x, channel] / np.float32(255.0) if inside else 0.0


@kernel
def change(cut, flips, jitters, factors, orders, result):  # type: ignore[no-untyped-def]
    """Flip and jitter every view of ``cut`` into ``result``."""
    for view in range(cut.shape[0]):
        for channel in range(3):
            if flips[view]:
                _mirror(cut[view, channel], result[view, channel])
            else:
                result[view, channel] = cut[view, channel]
        if jitters[view]:
            red, green, blue = result[view, 0].ravel(), result[view, 1].ravel(), result[view, 2].ravel()
            for step in range(4):
                which = orders[view, step]
                factor = factors[view, which]
                if which == 0:
                    _blend_black(red, green, blue, factor)
                elif which == 1:
                    _blend_mean(red, green, blue, factor)
                elif which == 2:
                    _blend_grey(red, green, blue, factor)
                else:
                    _turn_hue(red, green, blue, factor)


@kernel
def _mirror(plane, result):  # type: ignore[no-untyped-def]
    # Unsigned places need no check for a negative one, so that the loop becomes vector instructions.
    last = np.uint64(plane.shape[1] - 1)
    for row in range(plane.shape[0]):
        source, target = plane[row], result[row]
        for column in range(np.uint64(plane.shape[1])):
            target[column] = source[last - column]


@kernel
def _clip(value):  # type: ignore[no-untyped-def]
    value = value if value > np.float32(0.0) else np.float32(0.0)
    return value if value < np.float32(1.0) else np.float32(1.0)


@kernel
def _grey(red, green, blue):  # type: ignore[no-untyped-def]
    return np.float32(0.2989) * red + np.float32(0.587) * green + np.float32(0.114) * blue


@kernel
def _blend_black(red, green, blue, factor):  # type: ignore[no-untyped-def]
    for i in range(red.size):
        red[i] = _clip(factor * red[i])
        green[i] = _clip(factor * green[i])
        blue[i] = _clip(factor * blue[i])


@kernel
def _blend_mean(red, green, blue, factor):  # type: ignore[no-untyped-def]
    # Eight sums side by side: one alone would wait for its last addition every time.
    sums = np.zeros(8)
    whole = red.size - red.size % 8
    for i in range(0, whole, 8):
        for lane in range(8):
            sums[lane] += _grey(red[i + lane], green[i + lane], blue[i + lane])
    for i in range(whole, red.size):
        sums[0] += _grey(red[i], green[i], blue[i])
    rest = np.float32((np.float32(1.0) - factor) * (sums.sum() / red.size))
    for i in range(red.size):
        red[i] = _clip(factor * red[i] + rest)
        green[i] = _clip(factor * green[i] + rest)
        blue[i] = _clip(factor * blue[i] + rest)


@kernel
def _blend_grey(red, green, blue, factor):  # type: ignore[no-untyped-def]
    rest = np.float32(1.0) - factor
    for i in range(red.size):
        grey = rest * _grey(red[i], green[i], blue[i])
        red[i] = _clip(factor * red[i] + grey)
        green[i] = _clip(factor * green[i] + grey)
        blue[i] = _clip(factor * blue[i] + grey)


@kernel
def _turn_hue(red, green, blue, turn):  # type: ignore[no-untyped-def]
    one, four, six = np.float32(1.0), np.float32(4.0), np.float32(6.0)
    zero = np.float32(0.0)
    for i in range(red.size):
        r, g, b = red[i], green[i], blue[i]
        most = r if r > g else g
        most = most if most > b else b
        least = r if r < g else g
        least = least if least < b else b
        chroma = most - least
        divisor = chroma if chroma > zero else one
        sextant = np.float32(4.0) + (r - g) / divisor
        sextant = np.float32(2.0) + (b - r) / divisor if most == g else sextant
        sextant = (g - b) / divisor if most == r else sextant
        sextant += six * turn
        # most - chroma * max(0, min(k, 4 - k, 1)) with k = (n + sextant) mod 6 for n = 5, 3, 1 is HSV back to RGB
        k = sextant + np.float32(5.0)
        k -= six * np.floor(k / six)
        k = k if k < four - k else four - k
        red[i] = most - chroma * _clip(k)
        k = sextant + np.float32(3.0)
        k -= six * np.floor(k / six)
        k = k if k < four - k else four - k
        green[i] = most - chroma * _clip(k)
        k = sextant + one
        k -= six * np.floor(k / six)
        k = k if k < four - k else four - k
        blue[i] = most - chroma * _clip(k)
