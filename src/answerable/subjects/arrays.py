"""Named arrays from a ``.npz`` file or from memory; arrays of Python objects are pickles and are refused."""

from __future__ import annotations

import hashlib
import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from answerable.errors import BadInput, CannotRead, Refused
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

MOST_BYTES = 4_000_000_000  # of all arrays together, once in memory
MOST_ARRAYS = 10_000


def read_arrays(subject: Any) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` file by name.

    Parameters
    ----------
    subject : path of a ``.npz`` file, or of a ``.npy`` file (one array, called "array"); a mapping of names to arrays;
        or one array

    Raises
    ------
    Refused : an array of Python objects, which only a pickle can hold
    CannotRead : a missing or damaged file, or more than it may hold
    BadInput : neither a file nor arrays
    """
    if isinstance(subject, (str, Path)):
        return _from_file(locate(subject, what="an .npz file of arrays"))
    if isinstance(subject, Mapping):
        return {str(name): _array(value, str(name)) for name, value in subject.items()}
    return {"array": _array(subject, "array")}


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of the names, types, shapes and bytes of live arrays."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what="an .npz file of arrays"))
    described = [
        [name, array.dtype.str, list(array.shape), hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]
        for name, array in sorted(read_arrays(value).items())
    ]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _array(value: Any, name: str) -> np.ndarray:
    if hasattr(value, "detach"):  # a tensor, wherever it is
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as failure:
        raise BadInput(
            f"this is no array ({str(failure)[:120]})", where=name, mend="give rows of equal length"
        ) from None
    if array.dtype.hasobject:
        raise BadInput("the array holds Python objects", where=name, mend="give numbers, or strings of one type")
    return array


def _from_file(path: Path) -> dict[str, np.ndarray]:
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind not in ("npz", "npy"):
        raise CannotRead(f"a file of kind {kind!r} holds no arrays", where=str(path), mend="save it with numpy.savez")
    try:
        if kind == "npy":
            with path.open("rb") as file:
                return {"array": _read(file, path.stat().st_size, str(path))}
        return _from_archive(path)
    except (
        OSError,
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        tokenize.TokenError,  # what numpy reads a header of Python 2 with
    ) as failure:
        said = " ".join(str(failure).split())[:160]
        raise CannotRead(f"the file is damaged ({said})", where=str(path), mend="save it again") from None


def _from_archive(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(members) > MOST_ARRAYS or len(set(names)) < len(names):
            raise CannotRead(
                f"{len(names)} arrays, some of one name or too many", where=str(path), mend="save it again"
            )
        promised = sum(member.file_size for member in members)
        if promised > MOST_BYTES:
            raise CannotRead(f"its arrays take {promised} bytes, the limit is {MOST_BYTES}", where=str(path))
        found = {}
        for name, member in zip(names, members):
            with archive.open(member) as file:
                found[name] = _read(file, member.file_size, f"{path}, array {name}")
        return found


def _read(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """One array in numpy's own format, once its header agrees with the number of bytes there."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"version {version} of the format")
    if dtype.hasobject:
        mend = "save it as numbers, or as strings of one type"
        raise Refused("the array holds Python objects, which only a pickle can hold", where=where, mend=mend)
    count = 1
    for dimension in shape:
        count *= dimension
    if count < 0 or count * dtype.itemsize > size:
        raise ValueError(f"shape {shape} does not fit into {size} bytes")
    content = file.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise ValueError("it ends too early")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
