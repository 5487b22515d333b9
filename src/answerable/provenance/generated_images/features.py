"""Features of images and of the same images changed: what the flow is fitted to, kept in one file."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable import atomic
from answerable.errors import BadInput
from answerable.subjects.arrays import read_arrays
from answerable.subjects.images import ImageSource, Pixels, content_digest, decode, list_images, reencoded
from answerable.subjects.vision_backbone import VisionBackbone

from . import views as moves
from .checks import whole
from .scanning import BATCH, squared

Floats32 = npt.NDArray[np.float32]
CHUNK = 32
BLUR, JPEG, LARGEST_SIGMA, QUALITIES = 0.3, 0.3, 3.0, (30, 100)


class Features(NamedTuple):
    """Features of n images.

    source, changed : (n, d) float32 of each image and of its changed copy; or (n, K, d) of K views
    labels : (n,) int64, 1 generated, 0 real, -1 not known
    names : of each image
    """

    source: Floats32
    changed: Floats32
    labels: npt.NDArray[np.int64]
    names: list[str]

    def save(self, path: str | Path, *, key: str = "") -> None:
        """Write an ``.npz`` file with ``features_source``, ``features_trans``, ``labels``, ``names``."""
        buffer = io.BytesIO()
        np.savez(
            buffer,
            allow_pickle=False,
            features_source=self.source,
            features_trans=self.changed,
            labels=self.labels,
            names=np.array(self.names, dtype=np.str_),
            key=np.array(key),
        )
        atomic.write_bytes(Path(path), buffer.getvalue())


def read_features(subject: Any, *, where: str = "features") -> Features:
    """Features from an ``.npz`` file or from arrays by name.

    Parameters
    ----------
    subject : path, or mapping with ``features_source`` and ``features_trans``, (n, d) or (n, K, d), and where known
        ``labels`` (1 generated, 0 real, -1 not known) and ``names``
    where : what an error names

    Raises
    ------
    BadInput : an array is missing or does not fit
    """
    try:
        arrays = read_arrays(subject)
    except BadInput as failure:
        raise failure.within(where) from None
    for name in ("features_source", "features_trans"):
        if name not in arrays:
            raise BadInput(f"there is no {name}", where=where, mend="give features_source and features_trans")
    try:
        source, changed = (np.asarray(arrays[name], np.float32) for name in ("features_source", "features_trans"))
    except ValueError:
        raise BadInput("the features are no numbers", where=where, mend="give floating-point arrays") from None
    if source.shape != changed.shape or source.ndim not in (2, 3) or not source.size:
        problem = f"features_source is {source.shape} and features_trans {changed.shape}"
        raise BadInput(problem, where=where, mend="give two arrays of one shape, (images, d) or (images, views, d)")
    for name, part in (("features_source", source), ("features_trans", changed)):
        bad = ~np.isfinite(part).reshape(len(part), -1).all(axis=1)
        if bad.any():
            problem = f"image {int(bad.argmax()) + 1} has a number that is not finite"
            raise BadInput(problem, where=f"{where}, {name}", mend="extract them in float32")
    labels = np.asarray(arrays.get("labels", np.full(len(source), -1)))
    if labels.shape != (len(source),) or not np.isin(labels, (-1, 0, 1)).all():
        problem = f"labels has the shape {labels.shape}, or something else than 0, 1 and -1"
        raise BadInput(problem, where=where, mend="give one label an image: 1 generated, 0 real, -1 not known")
    names = arrays.get("names")
    if names is not None and names.shape != (len(source),):
        raise BadInput(f"names has the shape {names.shape}", where=where, mend="give one name an image")
    told = [str(name) for name in names] if names is not None else [f"image {k + 1}" for k in range(len(source))]
    return Features(source, changed, labels.astype(np.int64), told)


def extract_features(
    backbone: Any,
    images: Any,
    *,
    transform: str | moves.Transform = "flow",
    training: bool = False,
    random_state: int = 0,
    batch: int = BATCH,
    cache: str | Path | None = None,
    run: Any = None,
) -> Features:
    """Features of every image and of its changed copy, one view each.

    Parameters
    ----------
    backbone : a `VisionBackbone`, or what its ``load`` takes
    images : as :func:`answerable.subjects.list_images` takes them
    transform : the change; "flow" flips always and jitters a little
    training : crop anywhere, after blur (3 in 10) and JPEG (3 in 10, quality 30 or 100), as the flow is trained;
        otherwise the centre crop
    random_state : together with the pixels it settles every draw
    batch : crops in one pass
    cache : ``.npz`` file that keeps them; read again where images, network and terms are the same
    run : the run that shows progress and keeps finished chunks

    Returns
    -------
    Features

    Raises
    ------
    BadInput : an image that cannot be read or is smaller than the network's input; the line names it
    """
    network = VisionBackbone.load(backbone)
    whole(batch, "batch")
    whole(random_state, "random_state", least=0)
    listed = list_images(images)
    change = moves.transform_of(transform)
    # A network whose content cannot be told is never taken for the same.
    digests = [content_digest(source) for source in listed] if cache is not None and network.digest else []
    terms = [network.digest, network.size, network.mean, network.std, list(change), training, random_state, digests]
    key = hashlib.sha256(json.dumps(terms).encode()).hexdigest() if digests else ""
    if cache is not None and key and Path(cache).is_file():
        kept = read_arrays(cache)
        if str(kept.get("key", "")) == key:
            labels = np.array([-1 if source.label is None else source.label for source in listed], dtype=np.int64)
            return Features(kept["features_source"], kept["features_trans"], labels, [source.name for source in listed])
    chunks = [listed[start : start + CHUNK] for start in range(0, len(listed), CHUNK)]

    def one_chunk(number: int) -> dict[str, Floats32]:
        pairs = [_pair(source, network.size, change, training, random_state) for source in chunks[number]]
        crops = [np.stack(part) for part in zip(*pairs)]
        found = [
            np.concatenate([network.features(part[k : k + batch]) for k in range(0, len(part), batch)])
            for part in crops
        ]
        return {"source": found[0], "changed": found[1]}

    numbers = range(len(chunks))
    made = run.each(one_chunk, numbers, "features of images") if run is not None else [one_chunk(k) for k in numbers]
    source, changed = (np.concatenate([part[name] for part in made]) for name in ("source", "changed"))
    labels = np.array([-1 if one.label is None else one.label for one in listed], dtype=np.int64)
    result = Features(source, changed, labels, [one.name for one in listed])
    if cache is not None:
        result.save(cache, key=key)
    return result


def _pair(
    source: ImageSource, size: int, change: moves.Transform, training: bool, random_state: int
) -> tuple[Floats32, Floats32]:
    picture = decode(source)
    if picture.pixels is None:
        raise BadInput(picture.failure, where=source.name, mend="leave it out, or mend the file")
    if min(picture.pixels.shape[:2]) < size:
        problem = f"a side of {min(picture.pixels.shape[:2])} px is under {size}"
        raise BadInput(problem, where=source.name, mend="leave it out, or give a larger image")
    pixels = _spoiled(picture.pixels, random_state) if training else picture.pixels
    pixels = np.ascontiguousarray(squared(pixels, size))
    drawn = moves.draw(
        pixels,
        n_views=1,
        size=size,
        transform=change,
        views="random" if training else "shared",
        random_state=random_state,
    )
    cut = moves.crops(pixels, drawn, size)
    return cut[0], moves.changed(cut, drawn)[0]


def _spoiled(pixels: Pixels, random_state: int) -> Pixels:
    """Blurred and sent through a JPEG, each with its probability."""
    from scipy.ndimage import gaussian_filter

    rng = moves.generator_of(pixels, random_state, "training")
    blur, sigma, jpeg, quality = rng.random(), LARGEST_SIGMA * rng.random(), rng.random(), rng.choice(QUALITIES)
    if blur < BLUR:
        pixels = gaussian_filter(pixels, sigma=(sigma, sigma, 0))
    return reencoded(pixels, int(quality)) if jpeg < JPEG else pixels


def joined(parts: Sequence[Features]) -> Features:
    """Several sets of features as one."""
    return Features(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.changed for part in parts]),
        np.concatenate([part.labels for part in parts]),
        [name for part in parts for name in part.names],
    )
