"""The header of a safetensors file, validated in plain Python before any reader sees the file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from answerable.errors import CannotRead

# Published shards stay below 1 MB. JSON takes up to twenty times its size in memory: hence the limit.
MOST_HEADER_BYTES = 8_000_000
MOST_LISTS = 400_000  # a tensor has two; millions of empty ones would fill 200 MB before their JSON is read

_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class Tensor(NamedTuple):
    """One tensor: its dtype as the format names it, its shape, and where its bytes lie in the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class _Flaw(Exception):
    """What is wrong, before the file's name is put to it."""


def read_header(path: Path) -> dict[str, Tensor]:
    """Read and validate the header of a safetensors file.

    Raises
    ------
    CannotRead : the first thing that does not hold together, in one line
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if len(prefix) < 8:
                raise _Flaw("the file ends within its first 8 bytes")
            (length,) = struct.unpack("<Q", prefix)
            if length > min(MOST_HEADER_BYTES, size - 8):
                raise _Flaw(f"the header would be {length} bytes long")
            text = file.read(length)
        if text.count(b"[") > MOST_LISTS:
            raise _Flaw(f"it holds more than {MOST_LISTS:,} lists")
        header = json.loads(text, object_pairs_hook=_without_twins)
        return _tensors(header, size - 8 - length)
    except _Flaw as flaw:
        mend = "fetch the file again"
        raise CannotRead(f"the safetensors header is damaged: {flaw}", where=str(path), mend=mend) from None
    except (ValueError, RecursionError):
        raise CannotRead(
            "the safetensors header is no valid JSON", where=str(path), mend="fetch the file again"
        ) from None
    except OSError as failure:
        raise CannotRead(failure.strerror or str(failure), where=str(path)) from None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Flaw("a name stands there twice")
    return found


def _tensors(header: object, data_bytes: int) -> dict[str, Tensor]:
    if not isinstance(header, dict):
        raise _Flaw("it is no table of names")
    tensors = {name: _tensor(name, entry) for name, entry in header.items() if name != "__metadata__"}
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != at:
            raise _Flaw(f"the tensor {name[:80]!r} begins at {tensor.begin}, the one before ends at {at}")
        at = tensor.end
    if at != data_bytes:
        raise _Flaw(f"its tensors end at {at}, the data at {data_bytes}")
    return tensors


def _tensor(name: str, entry: object) -> Tensor:
    what = f"the tensor {name[:80]!r}"
    if not isinstance(entry, Mapping):
        raise _Flaw(f"{what} is not described")
    dtype: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise _Flaw(f"{what} has the unknown dtype {str(dtype)[:40]!r}")
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _Flaw(f"{what} has no proper shape or offsets")
    bits = _BITS[dtype]
    for dimension in shape:
        bits *= dimension
    if bits != 8 * (offsets[1] - offsets[0]):
        raise _Flaw(f"{what} needs {bits // 8} bytes and has {offsets[1] - offsets[0]}")
    return Tensor(dtype, tuple(shape), offsets[0], offsets[1])


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
