"""The header of a GGUF file (version 2 and 3), validated in plain Python before any reader sees the file.

Readers of this format believe its counts, lengths and offsets. Here every one is held against the size of the file, in
integers that do not wrap, and against the others: what passes can be read within the memory that the file's size tells.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from answerable.errors import CannotRead

# Far above every published model, and low enough that a header at the limits is read in a second.
MOST_FIELDS = 4_096
MOST_TENSORS = 100_000
MOST_STRINGS = 1_500_000  # over all arrays: a vocabulary and its merges
MOST_NAME_BYTES = 1_024
MOST_DIMENSIONS = 4
MOST_LAYERS = 10_000

# ggml's type number: (weights in a block, bytes of a block)
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class Array(NamedTuple):
    """An array field: its element type and length; the elements are checked and not kept."""

    type: int
    length: int


class Tensor(NamedTuple):
    """Where one tensor lies: ``shape`` innermost dimension first, ``start`` in bytes from the start of the file."""

    name: str
    shape: tuple[int, ...]
    type: int
    start: int
    bytes: int


class Header(NamedTuple):
    """A header that holds together."""

    version: int
    fields: Mapping[str, Any]
    tensors: tuple[Tensor, ...]


class _Flaw(Exception):
    """What is wrong, before the file's name is put to it."""


class _Reader:
    """A position in the bytes that never moves beyond their end."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data, self.size, self.at, self.strings = data, len(data), 0, 0

    def take(self, form: str, what: str) -> Any:
        end = self.at + struct.calcsize("<" + form)
        if end > self.size:
            raise _Flaw(f"the file ends within {what}")
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at = end
        return value

    def skip(self, count: int, width: int, what: str) -> None:
        if count * width > self.size - self.at:
            raise _Flaw(f"{what} has {count} elements, more than the file holds")
        self.at += count * width

    def text(self, what: str, most: int | None = None) -> str:
        length = self.take("Q", what)
        if length > self.size - self.at:
            raise _Flaw(f"{what} is {length} bytes long, more than the file holds")
        if most is not None and length > most:
            raise _Flaw(f"{what} is {length} bytes long, the limit is {most}")
        raw = self.data[self.at : self.at + min(length, 1 << 20)]
        self.at += length
        try:
            return raw.decode("utf-8", errors="strict" if most is not None else "replace")
        except UnicodeDecodeError:
            raise _Flaw(f"{what} is not UTF-8") from None

    def skip_texts(self, count: int, what: str) -> None:
        self.strings += count
        if count * 8 > self.size - self.at:
            raise _Flaw(f"{what} has {count} strings, more than the file holds")
        if self.strings > MOST_STRINGS:
            raise _Flaw(f"the header holds {self.strings} strings, the limit is {MOST_STRINGS}")
        data, at, last, length_at = self.data, self.at, self.size - 8, struct.Struct("<Q").unpack_from
        for index in range(count):
            if at > last:
                raise _Flaw(f"{what} ends within string {index}")
            at += 8 + length_at(data, at)[0]
        if at > self.size:
            raise _Flaw(f"{what} ends beyond the end of the file")
        self.at = at


def read_header(path: Path) -> Header:
    """Read and validate the header of a GGUF file.

    Returns
    -------
    the fields (arrays as their type and length), and the place of every tensor

    Raises
    ------
    CannotRead : the first thing that does not hold together, in one line
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return header_in(data, str(path))
    except (OSError, ValueError) as failure:  # ValueError: an empty file cannot be mapped
        raise CannotRead(f"cannot be read ({failure})", where=str(path)) from None


def header_in(data: bytes | mmap.mmap, where: str) -> Header:
    """As ``read_header``, of bytes that are in memory; ``where`` names them in the line of an error."""
    try:
        return _header(data)
    except _Flaw as flaw:
        raise CannotRead(f"the GGUF header is damaged: {flaw}", where=where, mend="fetch the file again") from None


def _header(data: bytes | mmap.mmap) -> Header:
    reader = _Reader(data)
    if data[:4] != b"GGUF":
        raise _Flaw("it does not begin with GGUF")
    reader.at = 4
    version = reader.take("I", "the version")
    if version not in (2, 3):
        raise _Flaw(f"version {version} is not 2 or 3")
    tensor_count = reader.take("Q", "the number of tensors")
    field_count = reader.take("Q", "the number of fields")
    if field_count > min(MOST_FIELDS, reader.size // 13):
        raise _Flaw(f"{field_count} fields do not fit")
    if tensor_count > min(MOST_TENSORS, reader.size // 32):
        raise _Flaw(f"{tensor_count} tensors do not fit")
    fields = _fields(reader, field_count)
    tensors = _tensors(reader, tensor_count, _alignment(fields))
    _hold_against_tensors(fields, tensors)
    return Header(version, fields, tensors)


def _fields(reader: _Reader, count: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for index in range(count):
        key = reader.text(f"the name of field {index}", MOST_NAME_BYTES)
        if key in fields:
            raise _Flaw(f"the field {key!r} stands there twice")
        fields[key] = _value(reader, key)
    return fields


def _value(reader: _Reader, key: str) -> Any:
    what = f"the field {key!r}"
    kind = reader.take("I", what)
    if kind in _SCALARS:
        return reader.take(_SCALARS[kind], what)
    if kind == _STRING:
        return reader.text(what)
    if kind != _ARRAY:
        raise _Flaw(f"{what} has the unknown type {kind}")
    element, length = reader.take("I", what), reader.take("Q", what)
    if element in _SCALARS:
        reader.skip(length, struct.calcsize("<" + _SCALARS[element]), what)
    elif element == _STRING:
        reader.skip_texts(length, what)
    elif element == _ARRAY:
        raise _Flaw(f"{what} is an array of arrays")
    else:
        raise _Flaw(f"{what} is an array of the unknown type {element}")
    return Array(element, length)


def _alignment(fields: Mapping[str, Any]) -> int:
    alignment = fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 8 <= alignment <= 65_536 or alignment & (alignment - 1):
        raise _Flaw(f"the alignment {alignment} is not a power of two from 8 to 65536")
    return alignment


def _tensors(reader: _Reader, count: int, alignment: int) -> tuple[Tensor, ...]:
    described, names = [], set()
    for index in range(count):
        name = reader.text(f"the name of tensor {index}", MOST_NAME_BYTES)
        if name in names:
            raise _Flaw(f"the tensor {name!r} stands there twice")
        names.add(name)
        described.append((name, *_layout(reader, name)))
    start = -(-reader.at // alignment) * alignment
    tensors = []
    for name, shape, kind, size, offset in described:
        if offset % alignment:
            raise _Flaw(f"the tensor {name!r} begins at {offset}, which is not aligned to {alignment}")
        if start + offset + size > reader.size:
            raise _Flaw(f"the tensor {name!r} of {size} bytes at {offset} reaches beyond the end of the file")
        tensors.append(Tensor(name, shape, kind, start + offset, size))
    _no_overlap(tensors)
    return tuple(tensors)


def _layout(reader: _Reader, name: str) -> tuple[tuple[int, ...], int, int, int]:
    """Shape, type, bytes and offset of the tensor described next."""
    what = f"the tensor {name!r}"
    count = reader.take("I", what)
    if not 1 <= count <= MOST_DIMENSIONS:
        raise _Flaw(f"{what} has {count} dimensions")
    shape = tuple(reader.take("Q", what) for _ in range(count))
    kind, offset = reader.take("I", what), reader.take("Q", what)
    if kind not in BLOCKS:
        raise _Flaw(f"{what} has the unknown type {kind}")
    weights, width = BLOCKS[kind]
    elements = 1
    for dimension in shape:
        elements *= dimension
    if not elements:
        raise _Flaw(f"{what} has a dimension of 0")
    if shape[0] % weights:
        raise _Flaw(f"{what} has rows of {shape[0]}, not a multiple of its blocks of {weights}")
    return shape, kind, elements // weights * width, offset


def _no_overlap(tensors: list[Tensor]) -> None:
    # Tensors that share bytes would be de-quantised once each: a small file could ask for any amount of memory.
    ordered = sorted(tensors, key=lambda tensor: tensor.start)
    for before, after in pairwise(ordered):
        if before.start + before.bytes > after.start:
            raise _Flaw(f"the tensors {before.name!r} and {after.name!r} overlap")


def _hold_against_tensors(fields: Mapping[str, Any], tensors: tuple[Tensor, ...]) -> None:
    """The sizes that a model is built from must be those of the tensors; else a small file could build a huge model."""
    architecture = fields.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise _Flaw("general.architecture is missing or no string")
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    layers = {name.split(".")[1] for name in shapes if name.startswith("blk.") and name.count(".") >= 2}
    _same(fields, f"{architecture}.block_count", len(layers), "the layers that its tensors name")
    if len(layers) > MOST_LAYERS:
        raise _Flaw(f"{len(layers)} layers, the limit is {MOST_LAYERS}")
    embedding = shapes.get("token_embd.weight")
    if embedding is None or len(embedding) != 2:
        raise _Flaw("the tensor 'token_embd.weight' is missing or no matrix")
    width, vocabulary = embedding
    _same(fields, f"{architecture}.embedding_length", width, "the width of 'token_embd.weight'")
    _same(fields, f"{architecture}.vocab_size", vocabulary, "the rows of 'token_embd.weight'")
    tokens = fields.get("tokenizer.ggml.tokens")
    if tokens is not None and tokens != Array(_STRING, vocabulary):
        raise _Flaw(f"tokenizer.ggml.tokens is not one string for each of {vocabulary} rows of 'token_embd.weight'")
    up = shapes.get("blk.0.ffn_up.weight")
    if up is not None:
        # Phi-3 keeps gate and up in one matrix
        allowed = {up[-1], up[-1] // 2}
        length = fields.get(f"{architecture}.feed_forward_length")
        if not isinstance(length, Array) and length not in (None, *allowed):
            raise _Flaw(f"{architecture}.feed_forward_length is {length}, 'blk.0.ffn_up.weight' has {up[-1]} rows")
    for part in ("attention.head_count", "attention.head_count_kv"):
        heads = fields.get(f"{architecture}.{part}")
        if not isinstance(heads, Array) and heads is not None and not (isinstance(heads, int) and 1 <= heads <= width):
            raise _Flaw(f"{architecture}.{part} is {heads}, not from 1 to {width}")


def _same(fields: Mapping[str, Any], key: str, value: int, what: str) -> None:
    if key in fields and fields[key] != value:
        raise _Flaw(f"{key} is {str(fields[key])[:40]}, {what}: {value}")
