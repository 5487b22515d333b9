"""GGUF files made byte by byte, and mutations of them; the format is written here a second time, from its description."""

import json
import random
import struct
import time
from collections.abc import Iterable
from typing import Any

from answerable.errors import CannotRead
from answerable.subjects.gguf_header import BLOCKS, header_in

U32, F32, STRING, ARRAY, U64 = 4, 6, 8, 9, 10


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def field(name: str | bytes, kind: int, value: Any) -> bytes:
    form = {U32: "<I", F32: "<f", U64: "<Q"}
    if kind == STRING:
        packed = text(value)
    elif kind == ARRAY:
        packed = struct.pack("<IQ", STRING, len(value)) + b"".join(map(text, value))
    else:
        packed = struct.pack(form[kind], value)
    return text(name) + struct.pack("<I", kind) + packed


def tensor(name: str | bytes, shape: Iterable[int], offset: int, kind: int = 0, dimensions: int | None = None) -> bytes:
    shape = tuple(shape)
    count = len(shape) if dimensions is None else dimensions
    return (
        text(name)
        + struct.pack("<I", count)
        + struct.pack(f"<{len(shape)}Q", *shape)
        + struct.pack("<IQ", kind, offset)
    )


FIELDS = [
    field("general.architecture", STRING, "llama"),
    field("general.alignment", U32, 32),
    field("llama.block_count", U32, 1),
    field("llama.embedding_length", U32, 8),
    field("llama.feed_forward_length", U32, 8),
    field("llama.attention.head_count", U32, 2),
    field("llama.rope.freq_base", F32, 10000.0),
    field("tokenizer.ggml.tokens", ARRAY, ["a", "b", "c", "ä"]),
]
TENSORS = [
    tensor("token_embd.weight", (8, 4), 0),
    tensor("blk.0.ffn_up.weight", (8, 8), 128),
    tensor("output_norm.weight", (8,), 384),
]


def gguf(
    fields: list[bytes] = FIELDS,
    tensors: list[bytes] = TENSORS,
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    data: int = 416,
) -> bytes:
    n_tensors, n_fields = counts or (len(tensors), len(fields))
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_fields) + b"".join(fields) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + b"\1" * data


def safetensors(entries: dict[str, Any] | bytes, data: int, *, length: int | None = None) -> bytes:
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + b"\1" * data


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with some bytes changed, cut, doubled, or turned into an extreme number."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed))
        move = rng.randrange(5)
        if move == 0:
            changed[at] = rng.randrange(256)
        elif move == 1:
            width, form = rng.choice([(4, "<I"), (8, "<Q")])
            number = rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(content), rng.randrange(2**32)])
            changed[at : at + width] = struct.pack(form, number % 2 ** (8 * width))
        elif move == 2:
            del changed[at : at + rng.randint(1, 16)]
        elif move == 3:
            changed[at:at] = changed[at : at + rng.randint(1, 64)]
        else:
            del changed[max(at, 1) :]
        if not changed:
            return b"G"
    return bytes(changed)


def survive(count: int, seed: int) -> tuple[int, float]:
    """Read ``count`` mutations: each gives a header that fits into its file, or one line that names the file.

    Returns
    -------
    how many were refused, and the longest time one took in seconds
    """
    rng, content, refused, longest = random.Random(seed), gguf(), 0, 0.0
    for _ in range(count):
        changed = mutated(content, rng)
        started = time.perf_counter()
        try:
            header = header_in(changed, "mutated.gguf")
        except CannotRead as line:
            refused += 1
            assert str(line).startswith("mutated.gguf: ")
            assert "\n" not in str(line)
        else:
            size = len(changed)
            assert sum(one.bytes for one in header.tensors) <= size
            for one in header.tensors:
                weights, width = BLOCKS[one.type]
                elements = 1
                for dimension in one.shape:
                    elements *= dimension
                assert elements * width == one.bytes * weights
                assert one.start + one.bytes <= size
        longest = max(longest, time.perf_counter() - started)
    return refused, longest
