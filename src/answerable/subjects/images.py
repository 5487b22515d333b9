"""Images from folders, files, tables of paths and arrays; decoded when needed, to 8-bit RGB by stated rules.

The rules: white stands behind what is transparent, colour profiles are ignored, the orientation that a camera noted is
applied, 16-bit grey is divided by 257, grey becomes three equal channels, an animation is its first frame. A file that
cannot be decoded is listed as failed and never replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import AnswerableError, BadInput, CannotRead, missing_extra
from answerable.subjects.address import locate
from answerable.subjects.arrays import read_arrays
from answerable.subjects.kinds import file_digest, kind_of

Pixels = npt.NDArray[np.uint8]

WHAT = "a folder of images, an image, or a CSV file with a column of paths"
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
MOST_PIXELS = 100_000_000
MOST_IMAGES = 1_000_000
GENERATED = frozenset({"1_fake", "ai", "fake", "generated", "1", "true", "synthetic"})
REAL = frozenset({"0_real", "nature", "real", "natural", "0", "false", "photo"})
# The luminance table of the JPEG standard (annex K), in the zigzag order that files keep; quality scales it.
_LUMINANCE = (
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51,
    61, 60, 57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77,
    113, 121, 112, 100, 120, 92, 101, 103, 99,
)  # fmt: skip
_decoding = threading.Lock()


class ImageSource(NamedTuple):
    """An image that has not been decoded yet.

    name : path below the folder that was named, or "image 3"
    label : 1 generated, 0 real, None not known
    held : its path, or the object that holds its pixels
    """

    name: str
    label: int | None
    held: Any


class Picture(NamedTuple):
    """A decoded image.

    name, label : as in `ImageSource`
    pixels : (H, W, 3) uint8 RGB; None where it could not be decoded
    failure : why it could not be; empty otherwise
    encoding : "jpeg", "png", "webp", ... in lower case; "array" for pixels from memory; "unreadable"
    width, height : px, after the orientation was applied
    file_bytes : of the file, 0 for pixels from memory
    quality : of a JPEG, 1 to 100, estimated from its tables; None otherwise
    notes : what was done to it that a reader should know
    """

    name: str
    label: int | None
    pixels: Pixels | None
    failure: str = ""
    encoding: str = "array"
    width: int = 0
    height: int = 0
    file_bytes: int = 0
    quality: int | None = None
    notes: tuple[str, ...] = ()


def list_images(subject: Any, *, column: str = "path", label: str = "label") -> list[ImageSource]:
    """The images of a subject, none of them decoded yet.

    Parameters
    ----------
    subject : a folder (searched to the bottom; labels come from folders called ``0_real`` and ``1_fake``, ``nature``
        and ``ai``, ``real`` and ``fake``), an image file, a CSV or Parquet file or dataframe with a column of paths;
        an ``.npy`` or ``.npz`` file or array of uint8 (H, W, 3) or (n, H, W, 3); a tensor (3, H, W) or (n, 3, H, W)
        from 0 to 1; a Pillow image; or a list of paths, arrays, tensors and Pillow images
    column, label : columns of a table: its paths, and labels where there are any

    Returns
    -------
    in the order given; files of a folder by name

    Raises
    ------
    CannotRead, BadInput : there is no image, or something that is none
    """
    if isinstance(subject, (str, Path)):
        found = _at_address(subject, column, label)
    elif isinstance(subject, (list, tuple)):
        found = [source for k, part in enumerate(subject, 1) for source in _one_of_list(part, k)]
    elif hasattr(subject, "columns"):
        found = _of_table(subject, Path(), "table", column, label)
    else:
        found = _in_memory(subject, 1)
    if not found:
        raise BadInput("there is no image", where="images", mend=f"give {WHAT}")
    if len(found) > MOST_IMAGES:
        raise BadInput(f"{len(found):,} images", where="images", mend=f"give at most {MOST_IMAGES:,} at once")
    return found


def digest(value: object) -> str | None:
    """SHA-256 over the names, labels and contents of all images, in order; never of the path that leads to them."""
    described = [[source.name, source.label, content_digest(source)] for source in list_images(value)]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def content_digest(source: ImageSource) -> str:
    """SHA-256 of a file's bytes, or of pixels from memory; of a file that is not there, of that."""
    if isinstance(source.held, Path):
        try:
            return file_digest(source.held) if source.held.is_file() else "missing"  # a pipe would never end
        except CannotRead:
            return "missing"
    pixels = _pixels_in_memory(source.held, source.name)
    return hashlib.sha256(f"{pixels.shape}".encode() + np.ascontiguousarray(pixels).tobytes()).hexdigest()


def decode(source: ImageSource) -> Picture:
    """The image as 8-bit RGB; a file that cannot be decoded gives a picture without pixels that says why."""
    if not isinstance(source.held, Path):
        try:
            return _picture(source, _image_in_memory(source.held, source.name), "array", 0, None)
        except AnswerableError:
            raise
        except Exception as failure:  # as below: an image of Pillow's may not have been decoded yet
            return _unread(source, _why(failure))
    if not source.held.is_file():
        return _unread(source, "there is no such file")
    # Pillow warns of what is odd in a file; what matters of it stands in the notes. The lock: filters are global.
    with _decoding, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _decoded_file(source, source.held)


def reencoded(pixels: Pixels, quality: int) -> Pixels:
    """The pixels after they went through a JPEG of that quality."""
    import io

    image = _pillow().fromarray(pixels)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=0 if quality >= 90 else 2)
    return np.asarray(_pillow().open(buffer, formats=["JPEG"]).convert("RGB"))


def resized(pixels: Pixels, width: int, height: int) -> Pixels:
    """The pixels at another size, bicubic with antialiasing, as Pillow does it."""
    image = _pillow()
    return np.asarray(image.fromarray(pixels).resize((width, height), image.Resampling.BICUBIC))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise missing_extra("Pillow", "images") from None
    return Image


def _decoded_file(source: ImageSource, path: Path) -> Picture:
    pillow = _pillow()
    size = path.stat().st_size
    try:
        with pillow.open(path, formats=list(FORMATS)) as image:
            if image.width * image.height > MOST_PIXELS:
                problem = f"{image.width} x {image.height} px, more than {MOST_PIXELS // 1_000_000} million"
                return _unread(source, problem, size)
            return _picture(source, image, str(image.format).lower(), size, _quality(image))
    except pillow.UnidentifiedImageError:
        return _unread(source, "this is no image of a kind that is read", size)
    except Exception as failure:  # decoders raise whatever a damaged or hostile file makes them raise
        return _unread(source, _why(failure), size)


def _unread(source: ImageSource, why: str, size: int = 0) -> Picture:
    return Picture(source.name, source.label, None, why, encoding="unreadable", file_bytes=size)


def _why(failure: Exception) -> str:
    return f"it cannot be decoded ({' '.join(str(failure).split())[:120] or type(failure).__name__})"


def _picture(source: ImageSource, image: Any, encoding: str, size: int, quality: int | None) -> Picture:
    from PIL import ImageOps

    notes = []
    if getattr(image, "n_frames", 1) > 1:
        notes.append("first frame of several")
        image.seek(0)
    upright = ImageOps.exif_transpose(image)
    if upright.size != image.size or image.getexif().get(0x0112, 1) not in (0, 1):
        notes.append("turned as the camera noted")
    rgb, more = _as_rgb(upright)
    pixels = np.array(rgb, dtype=np.uint8)
    notes.extend(more)
    if (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 1] == pixels[..., 2]).all():
        notes.append("grey: changes of hue and saturation do nothing")
    height, width = pixels.shape[:2]
    return Picture(source.name, source.label, pixels, "", encoding, width, height, size, quality, tuple(notes))


def _as_rgb(image: Any) -> tuple[Any, list[str]]:
    pillow = _pillow()
    if image.mode == "F":
        raise ValueError("floating-point pixels have no known range")
    if image.mode == "I" or image.mode.startswith("I;16"):
        deep = np.asarray(image).astype(np.int64)
        if deep.min() < 0 or deep.max() > 65535:
            raise ValueError("32-bit pixels have no known range")
        return pillow.fromarray((deep // 257).astype(np.uint8)).convert("RGB"), ["16 bits to 8"]
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layered = image.convert("RGBA")
        ground = pillow.new("RGBA", layered.size, (255, 255, 255, 255))
        ground.alpha_composite(layered)
        clear = layered.getextrema()[3][0] < 255
        return ground.convert("RGB"), ["transparent parts on white"] if clear else []
    return image.convert("RGB"), ["CMYK to RGB without its profile"] if image.mode == "CMYK" else []


def _quality(image: Any) -> int | None:
    tables = getattr(image, "quantization", None)
    if not tables or 0 not in tables or len(tables[0]) != 64:
        return None
    # The sums scale with quality whatever the order in which the table is kept.
    percent = 100 * sum(tables[0]) / sum(_LUMINANCE)
    return int(np.clip(round((200 - percent) / 2 if percent < 100 else 5000 / percent), 1, 100))


def _at_address(subject: str | Path, column: str, label: str) -> list[ImageSource]:
    path = locate(subject, what=WHAT)
    if path.is_dir():
        return list(_below(path))
    if not path.is_file():  # a pipe would never end
        raise BadInput("neither a file nor a folder", where=str(subject), mend=f"give {WHAT}")
    kind = kind_of(path)
    if kind in ("npz", "npy"):
        return [s for name, array in sorted(read_arrays(path).items()) for s in _arrays(array, f"{name} ")]
    if kind in ("text", "parquet") and path.suffix.lower() not in SUFFIXES:
        return _of_table(path, path.parent, str(path), column, label)
    return [ImageSource(_written(path.name), None, path)]


def _below(folder: Path) -> Iterator[ImageSource]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.suffix.lower() in SUFFIXES and not name.startswith("."):
                below = path.relative_to(folder)
                yield ImageSource(_written(below.as_posix()), _label_of_folders(below.parts[:-1]), path)


def _written(name: str) -> str:
    """A file's name that can be written down: bytes that are no UTF-8 as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _label_of_folders(parts: Sequence[str]) -> int | None:
    for part in reversed(parts):
        if part.lower() in GENERATED - {"1", "true"}:
            return 1
        if part.lower() in REAL - {"0", "false"}:
            return 0
    return None


def _of_table(subject: Any, folder: Path, where: str, column: str, label: str) -> list[ImageSource]:
    from answerable.errors import unknown
    from answerable.subjects.table import read_table

    frame = read_table(subject)
    if column not in frame.columns:
        raise unknown("column", column, frame.columns, where=where)
    labels = frame[label].to_list() if label in frame.columns else [None] * frame.height
    found = []
    for row, (entry, word) in enumerate(zip(frame[column].to_list(), labels, strict=True), 1):
        if not isinstance(entry, str) or not entry.strip():
            raise BadInput("there is no path", where=f"{where}, row {row}", mend=f"give one in column {column}")
        path = Path(entry).expanduser()
        found.append(
            ImageSource(entry, _label(word, f"{where}, row {row}"), path if path.is_absolute() else folder / path)
        )
    return found


def _label(word: object, where: str) -> int | None:
    text = "" if word is None else str(word).strip().lower().removesuffix(".0")
    if text in ("", "nan"):
        return None
    if text in GENERATED:
        return 1
    if text in REAL:
        return 0
    raise BadInput(f"the label {str(word)[:40]!r} says neither", where=where, mend="write real or generated, or 0 or 1")


def _one_of_list(part: Any, number: int) -> list[ImageSource]:
    if isinstance(part, ImageSource):
        return [part]
    if isinstance(part, (str, Path)):
        try:
            path = locate(part, what="an image")
        except AnswerableError as failure:
            raise failure.within(f"images, number {number}") from None
        if path.is_dir():
            mend = "give the folder by itself, or its files"
            raise BadInput("a folder in a list", where=f"images, number {number}", mend=mend)
        return [ImageSource(_written(path.name), None, path)]
    return _in_memory(part, number)


def _in_memory(part: Any, number: int) -> list[ImageSource]:
    if hasattr(part, "getexif"):
        return [ImageSource(f"image {number}", None, part)]
    if hasattr(part, "detach"):
        return _tensors(part, number)
    if not isinstance(part, np.ndarray):
        mend = "give paths, uint8 arrays (H, W, 3), tensors (3, H, W) from 0 to 1, or Pillow images"
        raise BadInput(f"a {type(part).__name__} is no image", where=f"images, number {number}", mend=mend)
    return _arrays(part, "", number)


def _arrays(array: npt.NDArray[Any], prefix: str, number: int = 1) -> list[ImageSource]:
    if array.dtype != np.uint8 or array.ndim not in (2, 3, 4) or (array.ndim > 2 and array.shape[-1] != 3):
        found = f"an array of {array.dtype} and shape {array.shape}"
        mend = "give uint8 of shape (H, W, 3) or (n, H, W, 3)"
        raise BadInput(f"{found} is no image", where=f"images, {prefix}number {number}", mend=mend)
    if not array.size:
        raise BadInput("an image without pixels", where=f"images, {prefix}number {number}", mend="leave it out")
    if array.ndim < 4:
        return [ImageSource(f"{prefix}image {number}", None, array)]
    return [ImageSource(f"{prefix}image {k}", None, part) for k, part in enumerate(array, number)]


def _tensors(tensor: Any, number: int) -> list[ImageSource]:
    where = f"images, number {number}"
    if tensor.ndim not in (3, 4) or tensor.shape[-3] != 3 or not tensor.is_floating_point():
        problem = f"a tensor of {tensor.dtype} and shape {tuple(tensor.shape)} is no image"
        raise BadInput(problem, where=where, mend="give floating (3, H, W) or (n, 3, H, W) from 0 to 1")
    values = tensor.detach().cpu().double().numpy()
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        raise BadInput("a tensor with values outside 0 to 1", where=where, mend="divide by 255, or undo normalising")
    pixels = np.moveaxis(np.rint(values * 255).astype(np.uint8), -3, -1)
    return _arrays(pixels, "", number)


def _pixels_in_memory(held: Any, name: str) -> Pixels:
    try:
        return np.array(_as_rgb(_image_in_memory(held, name))[0], dtype=np.uint8)
    except AnswerableError:
        raise
    except Exception as failure:  # as above
        raise BadInput(_why(failure), where=name, mend="leave it out") from None


def _image_in_memory(held: Any, name: str) -> Any:
    if isinstance(held, np.ndarray):
        return _pillow().fromarray(held)
    if held.width * held.height > MOST_PIXELS:
        raise BadInput(f"{held.width} x {held.height} px", where=name, mend=f"give at most {MOST_PIXELS:,} px")
    return held
