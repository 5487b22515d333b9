"""From images to differences of their features: decoded in one thread while the network runs in another, and kept."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from answerable import atomic
from answerable.errors import BadInput, CannotWrite
from answerable.statistics import Floats
from answerable.subjects.images import ImageSource, Picture, content_digest, decode, reencoded, resized
from answerable.subjects.vision_backbone import VisionBackbone

from . import views as moves
from .checks import one_of, positive, whole
from .solver import dissimilarities

Score = Literal["consistency", "noise"]
SCORES: tuple[Score, ...] = ("consistency", "noise")
Harmonize = Literal["none", "jpeg96"]
Pixels = moves.Pixels

MOST_CHUNK = 16  # images decoded, kept and shown as progress together,
MOST_BYTES = 100_000_000  # and of crops; twice as much is held, for the chunk ahead
BATCH = 4  # crops in one pass: activations of more leave the processor's cache
MOST_VIEWS = 100
VERSION = 1  # of what is kept; raised whenever the same image would give other numbers


@dataclass(frozen=True)
class Looking:
    """How images are looked at.

    transform : the natural-looking change
    n_views : views of each image
    ways : "random" crops, or one "shared" centre crop
    noise : standard deviation of the noise, of pixels from 0 to 1
    random_state : settles every draw, together with the pixels
    allow_small : score an enlarged copy of an image with a side below the network's input
    harmonize : "jpeg96" sends every image through one JPEG first
    scores : which are computed
    """

    transform: moves.Transform = moves.TRANSFORMS["paper"]
    n_views: int = 5
    ways: moves.Way = "random"
    noise: float = 0.05
    random_state: int = 0
    allow_small: bool = False
    harmonize: Harmonize = "none"
    scores: tuple[Score, ...] = SCORES


class Scan(NamedTuple):
    """What was seen of n images.

    pictures : each without its pixels
    differences : by score (n, K) float64, ``1 - cos`` of every view; NaN where an image could not be scored
    reasons : why an image must not be decided; empty where it may be
    """

    pictures: list[Picture]
    differences: dict[str, Floats]
    reasons: list[str]


def scan(
    sources: Sequence[ImageSource],
    backbone: VisionBackbone,
    looking: Looking,
    *,
    batch: int = BATCH,
    run: Any = None,
    change: Callable[[Pixels], Pixels] | None = None,
    label: str = "looking at images",
) -> Scan:
    """Differences of features for every image and view.

    Parameters
    ----------
    sources : the images
    backbone : the network
    looking : how
    batch : crops in one pass; changes a score by rounding alone
    run : the run that shows progress, keeps finished chunks and has a cache; None for none of it
    change : what is done to the pixels first (a re-encoding); such looks are not kept
    label : what is being done, for the progress bar

    Returns
    -------
    Scan

    Raises
    ------
    BadInput : the network gives a vector that is zero or not finite; the line names the image
    """
    of_image = 12 * backbone.size**2 * looking.n_views * (1 + len(looking.scores))
    together = max(1, min(MOST_CHUNK, MOST_BYTES // of_image))
    chunks = [list(sources[start : start + together]) for start in range(0, len(sources), together)]
    kept = _Kept(None if run is None or change is not None else run.cache, backbone, looking)
    with ThreadPoolExecutor(1) as pool:
        ahead = _Ahead(pool, chunks, kept, lambda source: _prepared(source, backbone.size, looking, change))

        def one_chunk(number: int) -> dict[str, Any]:
            ready = ahead.take(number)
            if isinstance(ready, dict):
                return ready
            seen = _looked_at(ready, backbone, looking, batch)
            kept.keep(chunks[number], seen)
            return seen

        numbers = range(len(chunks))
        made = run.each(one_chunk, numbers, label) if run is not None else [one_chunk(k) for k in numbers]
    differences: dict[str, Floats] = {
        name: np.concatenate([np.asarray(part[name]) for part in made]) for name in looking.scores
    }
    # Names and labels belong to the question, not to what was kept of the content.
    pictures = [
        _renamed(entry, source)
        for entry, source in zip((p for part in made for p in part["pictures"]), sources, strict=True)
    ]
    return Scan(pictures, differences, [reason for part in made for reason in part["reasons"]])


def squared(pixels: Pixels, size: int) -> Pixels:
    """The pixels as the method sees them: a square as it is, anything else cut to its centre and resized.

    Parameters
    ----------
    pixels : (H, W, 3) uint8
    size : side of the network's input [px]; the resized square is 8/7 of it (256 for 224)
    """
    height, width = pixels.shape[:2]
    if height == width:
        return pixels
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return resized(pixels[top : top + side, left : left + side], *[round(size * 8 / 7)] * 2)


class _Ready(NamedTuple):
    """A decoded image, its crops, and what is to be looked at; no crops where it cannot be."""

    picture: Picture
    reason: str
    source: moves.Floats32 | None
    changed: moves.Floats32 | None
    noisy: moves.Floats32 | None


def _prepared(source: ImageSource, size: int, looking: Looking, change: Callable[[Pixels], Pixels] | None) -> _Ready:
    picture = decode(source)
    if picture.pixels is None:
        return _Ready(picture, picture.failure, None, None, None)
    pixels = picture.pixels if change is None else change(picture.pixels)
    if looking.harmonize == "jpeg96":
        pixels = reencoded(pixels, 96)
    side = min(pixels.shape[:2])
    bare = picture._replace(pixels=None)
    if side < size and not looking.allow_small:
        return _Ready(bare, f"a side of {side} px is under the {size} px that are looked at", None, None, None)
    if side < size:
        bare = bare._replace(notes=(*bare.notes, "enlarged copy of a small image"))
        scale = round(size * 8 / 7) / side
        pixels = resized(pixels, *(max(size, round(n * scale)) for n in (pixels.shape[1], pixels.shape[0])))
    content = "no content: all pixels are alike" if (pixels == pixels[0, 0]).all() else ""
    pixels = np.ascontiguousarray(squared(pixels, size))
    drawn = moves.draw(pixels, n_views=looking.n_views, size=size, transform=looking.transform, views=looking.ways,
                       random_state=looking.random_state)  # fmt: skip
    cut = moves.crops(pixels, drawn, size)
    changed = moves.changed(cut, drawn) if "consistency" in looking.scores else None
    noisy = None
    if "noise" in looking.scores:
        noisy = moves.noisy(cut, moves.generator_of(pixels, looking.random_state, "noise"), looking.noise)
    return _Ready(bare, content, cut[:1] if looking.ways == "shared" else cut, changed, noisy)


def _looked_at(ready: list[_Ready], backbone: VisionBackbone, looking: Looking, batch: int) -> dict[str, Any]:
    """Differences of one chunk: all its crops through the network, in batches that cross image borders."""
    crops: list[Any] = []
    places: list[dict[str, slice]] = []
    count = 0
    for image in ready:
        place = {}
        for name, part in (("source", image.source), ("consistency", image.changed), ("noise", image.noisy)):
            if part is not None:
                place[name] = slice(count, count + len(part))
                crops.extend(part)
                count += len(part)
        places.append(place)
    blocks = [backbone.features(np.stack(crops[start : start + batch])) for start in range(0, count, batch)]
    features = np.concatenate(blocks) if blocks else np.empty((0, 1), np.float32)
    result: dict[str, Any] = {name: np.full((len(ready), looking.n_views), np.nan) for name in looking.scores}
    for row, (image, place) in enumerate(zip(ready, places, strict=True)):
        for name in looking.scores if place else ():
            source = np.broadcast_to(features[place["source"]], (looking.n_views, features.shape[1]))
            result[name][row] = dissimilarities(source, features[place[name]], where=image.picture.name)
    result["pictures"] = [list(image.picture._replace(pixels=None, notes=list(image.picture.notes))) for image in ready]  # type: ignore[arg-type]
    result["reasons"] = [image.reason for image in ready]
    return result


class _Ahead:
    """Prepares the chunk after the one that is asked for, while that one is looked at."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        chunks: list[list[ImageSource]],
        kept: _Kept,
        prepare: Callable[[ImageSource], _Ready],
    ) -> None:
        self._pool, self._chunks, self._kept, self._prepare = pool, chunks, kept, prepare
        self._pending: dict[int, Future[Any]] = {}

    def take(self, number: int) -> Any:
        """What was kept of a chunk, or its images ready to be looked at."""
        found = self._pending.pop(number, None) or self._pool.submit(self._ready, number)
        self._pending.clear()
        if number + 1 < len(self._chunks):
            self._pending[number + 1] = self._pool.submit(self._ready, number + 1)
        return found.result()

    def _ready(self, number: int) -> Any:
        return self._kept.find(self._chunks[number]) or [self._prepare(source) for source in self._chunks[number]]


class _Kept:
    """What was seen of a chunk, in the cache under the digests of its images, the network and the way of looking."""

    def __init__(self, cache: Path | None, backbone: VisionBackbone, looking: Looking) -> None:
        self._folder = None if cache is None or backbone.digest is None else cache / "image-views"
        self._terms = [VERSION, backbone.digest, backbone.size, backbone.mean, backbone.std, repr(looking)]

    def find(self, chunk: list[ImageSource]) -> dict[str, Any] | None:
        try:
            content = self._file(chunk).read_bytes() if self._folder is not None else b""
        except OSError:
            return None
        if len(content) < 32 or hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        with np.load(io.BytesIO(content[32:]), allow_pickle=False) as file:
            found: dict[str, Any] = json.loads(file["told"].tobytes())
            return found | {name: file[name] for name in file.files if name != "told"}

    def keep(self, chunk: list[ImageSource], seen: dict[str, Any]) -> None:
        if self._folder is None:
            return
        told = json.dumps({name: seen[name] for name in ("pictures", "reasons")})
        arrays = {name: part for name, part in seen.items() if isinstance(part, np.ndarray)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, told=np.frombuffer(told.encode(), np.uint8), **arrays)
        content = buffer.getvalue()
        try:
            atomic.write_bytes(self._file(chunk), hashlib.sha256(content).digest() + content)
        except CannotWrite:  # a chunk that is not kept is only looked at again
            return

    def _file(self, chunk: list[ImageSource]) -> Path:
        assert self._folder is not None
        described = json.dumps([self._terms, [content_digest(source) for source in chunk]])
        return self._folder / f"{hashlib.sha256(described.encode()).hexdigest()}.npz"


def _renamed(entry: Any, source: ImageSource) -> Picture:
    picture = Picture(*entry)
    return picture._replace(name=source.name, label=source.label, notes=tuple(picture.notes))


def checked_looking(looking: Looking) -> Looking:
    """The same, once its numbers are known to make sense.

    Raises
    ------
    BadInput : a number out of its range
    """
    mend = "give 1 to 100; 5 is the paper's"
    if whole(looking.n_views, "n_views", mend=mend) > MOST_VIEWS:
        raise BadInput(f"n_views is {looking.n_views}", mend=mend)
    positive(looking.noise, "noise", mend="give a number above 0; 0.05 is RIGID's")
    whole(looking.random_state, "random_state", least=0)
    one_of(looking.ways, get_args(moves.Way), "views")
    one_of(looking.harmonize, get_args(Harmonize), "harmonize")
    return looking
