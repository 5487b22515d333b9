"""Headers of GGUF and safetensors files: what holds together is read, anything else ends in one line, soon and cheaply."""

import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from answerable.errors import CannotRead
from answerable.subjects import gguf_header, safetensors_header
from tests.subjects.gguf_files import (
    ARRAY,
    FIELDS,
    STRING,
    TENSORS,
    U32,
    field,
    gguf,
    safetensors,
    survive,
    tensor,
    text,
)
from tests.subjects.memory import PEAK

HUGE = 2**32 - 1


def test_a_good_header_is_read(tmp_path: Path) -> None:
    file = tmp_path / "good.gguf"
    file.write_bytes(gguf())
    header = gguf_header.read_header(file)
    assert header.version == 3
    assert header.fields["general.architecture"] == "llama"
    assert header.fields["tokenizer.ggml.tokens"] == (STRING, 4)
    assert [(one.name, one.shape, one.bytes) for one in header.tensors] == [
        ("token_embd.weight", (8, 4), 128),
        ("blk.0.ffn_up.weight", (8, 8), 256),
        ("output_norm.weight", (8,), 32),
    ]
    assert file.stat().st_size == header.tensors[-1].start + 32


def test_the_other_reader_agrees(tmp_path: Path) -> None:
    """gguf's own reader finds the same fields and tensors in what passes."""
    from gguf import GGUFReader

    file = tmp_path / "good.gguf"
    file.write_bytes(gguf())
    theirs, ours = GGUFReader(file), gguf_header.read_header(file)
    assert [(one.name, tuple(one.shape), one.data_offset, one.n_bytes) for one in theirs.tensors] == [
        (one.name, one.shape, one.start, one.bytes) for one in ours.tensors
    ]
    assert {name for name in theirs.fields if not name.startswith("GGUF.")} == set(ours.fields)


def without(*numbers: int) -> list[bytes]:
    return [one for number, one in enumerate(FIELDS) if number not in numbers]


CRAFTED = {
    "no magic": (b"GGUX" + gguf()[4:], "does not begin with GGUF"),
    "nothing": (b"", "cannot be read"),
    "cut after the magic": (b"GGUF", "ends within the version"),
    "an old version": (gguf(version=1), "version 1 is not 2 or 3"),
    "the other byte order": (gguf(version=3 << 24), "version 50331648"),
    "2^64 - 1 tensors": (gguf(counts=(2**64 - 1, 8)), "18446744073709551615 tensors do not fit"),
    "2^64 - 1 fields": (gguf(counts=(3, 2**64 - 1)), "18446744073709551615 fields do not fit"),
    "2^32 - 1 dimensions": (gguf(tensors=[tensor("a", (8,), 0, dimensions=HUGE)]), "has 4294967295 dimensions"),
    "no dimensions": (gguf(tensors=[tensor("a", (), 0)]), "has 0 dimensions"),
    "a product that wraps to 0": (gguf(tensors=[tensor("a", (2**32, 2**32), 0)]), "beyond the end of the file"),
    "a product that wraps to 8": (gguf(tensors=[tensor("a", (2**63 + 4, 2), 0)]), "beyond the end of the file"),
    "a dimension of 0": (gguf(tensors=[tensor("a", (8, 0), 0)]), "dimension of 0"),
    "an offset beyond the end": (gguf(tensors=[tensor("a", (8,), 2**63)]), "beyond the end of the file"),
    "an offset that is not aligned": (gguf(tensors=[tensor("a", (8,), 4)]), "not aligned to 32"),
    "data that is cut": (gguf(data=415), "beyond the end of the file"),
    "rows that are no blocks": (gguf(tensors=[tensor("a", (8,), 0, kind=2)]), "not a multiple of its blocks of 32"),
    "an unknown tensor type": (gguf(tensors=[tensor("a", (8,), 0, kind=99)]), "unknown type 99"),
    "one tensor twice": (gguf(tensors=[*TENSORS, TENSORS[0]]), "'token_embd.weight' stands there twice"),
    "tensors that overlap": (gguf(tensors=[*TENSORS, tensor("x", (8,), 32)]), "overlap"),
    "one field twice": (gguf([*FIELDS, FIELDS[0]]), "'general.architecture' stands there twice"),
    "a string beyond the end": (gguf([struct.pack("<Q", 2**63) + b"a"]), "more than the file holds"),
    "a name of 2000 bytes": (gguf([field("x" * 2000, U32, 1)]), "the limit is 1024"),
    "a name that is not UTF-8": (gguf([field(b"\xff\xfe", U32, 1)]), "is not UTF-8"),
    "a field of unknown type": (gguf([text("a") + struct.pack("<I", 77)]), "unknown type 77"),
    "an array of arrays": (gguf([text("a") + struct.pack("<IIQ", ARRAY, ARRAY, 1)]), "array of arrays"),
    "an array beyond the end": (gguf([text("a") + struct.pack("<IIQ", ARRAY, U32, 2**62)]), "more than the file holds"),
    "strings beyond the end": (gguf([text("a") + struct.pack("<IIQ", ARRAY, STRING, 2**61)]), "more than the file holds"),
    "an alignment of 0": (gguf([*without(1), field("general.alignment", U32, 0)]), "alignment 0 is not a power of two"),
    "an alignment of 2^31": (gguf([*without(1), field("general.alignment", U32, 2**31)]), "is not a power of two from 8"),
    "no architecture": (gguf(without(0)), "general.architecture is missing"),
    "2^32 - 1 layers": (gguf([*without(2), field("llama.block_count", U32, HUGE)]), "block_count is 4294967295"),
    "a width of 2^32 - 1": (gguf([*without(3), field("llama.embedding_length", U32, HUGE)]), "embedding_length is 4294967295"),
    "2^32 - 1 words": (gguf([*FIELDS, field("llama.vocab_size", U32, HUGE)]), "vocab_size is 4294967295"),
    "a hidden width of 2^32 - 1": (gguf([*without(4), field("llama.feed_forward_length", U32, HUGE)]), "has 8 rows"),
    "2^32 - 1 heads": (gguf([*without(5), field("llama.attention.head_count", U32, HUGE)]), "not from 1 to 8"),
    "too few words": (gguf([*without(7), field("tokenizer.ggml.tokens", ARRAY, ["a"])]), "not one string for each of 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_gguf_ends_in_one_line(name: str, tmp_path: Path) -> None:
    content, said = CRAFTED[name]
    file = tmp_path / "crafted.gguf"
    file.write_bytes(content)
    started = time.perf_counter()
    with pytest.raises(CannotRead) as caught:
        gguf_header.read_header(file)
    assert time.perf_counter() - started < 1
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_every_truncation_ends_in_one_line() -> None:
    content = gguf()
    for length in range(len(content)):
        with pytest.raises(CannotRead, match=r"^cut\.gguf: the GGUF header is damaged: "):
            gguf_header.header_in(content[:length], "cut.gguf")


def test_mutations_end_in_one_line(seed: int) -> None:
    refused, longest = survive(4000, seed)
    assert refused > 2000
    assert longest < 1


COSTLY = {
    "64 MB of empty strings": gguf([text("a") + struct.pack("<IIQ", ARRAY, STRING, 8_000_000)], data=64_000_000),
    "1.4 million strings": gguf(
        [text("a") + struct.pack("<IIQ", ARRAY, STRING, 1_400_000) + b"\0" * 11_200_000], tensors=[], data=32
    ),
    "8 MB of brackets": safetensors(b"{" + b'"a":' + b"[" * 7_000_000, 0),
    "8 MB of empty lists": safetensors(b'{"a":[' + b"[]," * 2_500_000 + b"[]]}", 0),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_header_costs_little(name: str, tmp_path: Path) -> None:
    file = tmp_path / "costly"
    file.write_bytes(COSTLY[name])
    module = "safetensors_header" if "8 MB" in name else "gguf_header"
    program = (
        f"{PEAK}\n"
        "import pathlib, resource, sys, time\n"
        f"from answerable.subjects import {module} as header\n"
        "from answerable.errors import CannotRead\n"
        "usage = lambda: resource.getrusage(resource.RUSAGE_SELF)\n"
        "before = usage()\n"
        "try: header.read_header(pathlib.Path(sys.argv[1]))\n"
        "except CannotRead as line: assert chr(10) not in str(line)\n"
        "else: raise SystemExit('it was read')\n"
        "after = usage()\n"
        "print(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, peak())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 1
    assert megabytes < 200


def entry(dtype: object = "F32", shape: object = (2, 2), offsets: object = (0, 16)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_a_good_safetensors_header_is_read(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    file = tmp_path / "good.safetensors"
    file.write_bytes(safetensors({"__metadata__": {"format": "pt"}, "a": entry(), "b": entry("U8", [3], [16, 19])}, 19))
    header = safetensors_header.read_header(file)
    assert {name: one.shape for name, one in header.items()} == {"a": (2, 2), "b": (3,)}
    assert {name: array.shape for name, array in load_file(file).items()} == {"a": (2, 2), "b": (3,)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\1\2", "ends within its first 8 bytes"),
        (safetensors({}, 0, length=2**63), "would be 9223372036854775808 bytes"),
        (safetensors({}, 0, length=3), "would be 3 bytes"),
        (safetensors(b"{nonsense", 0), "no valid JSON"),
        (safetensors(b"{" + b'"a":[' * 100_000, 0), "no valid JSON"),
        (safetensors(b"[]", 0), "no table of names"),
        (safetensors(b'{"a": 1, "a": 2}', 0), "stands there twice"),
        (safetensors({"a": 3}, 0), "not described"),
        (safetensors({"a": entry("F33")}, 16), "unknown dtype 'F33'"),
        (safetensors({"a": entry("F64")}, 16), "needs 32 bytes and has 16"),
        (safetensors({"a": entry(shape=[2**32, 2**32])}, 16), "needs 73786976294838206464 bytes"),
        (safetensors({"a": entry(shape=[-2, -2])}, 16), "no proper shape"),
        (safetensors({"a": entry(shape=[2.0, 2])}, 16), "no proper shape"),
        (safetensors({"a": entry(offsets=[16, 0])}, 16), "no proper shape or offsets"),
        (safetensors({"a": entry(offsets=[4, 20])}, 20), "begins at 4"),
        (safetensors({"a": entry(), "b": entry(offsets=[8, 24])}, 24), "begins at 8, the one before ends at 16"),
        (safetensors({"a": entry()}, 15), "end at 16, the data at 15"),
        (safetensors({"a": entry()}, 17), "end at 16, the data at 17"),
    ],
)
def test_a_crafted_safetensors_ends_in_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "crafted.safetensors"
    file.write_bytes(content)
    with pytest.raises(CannotRead) as caught:
        safetensors_header.read_header(file)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
