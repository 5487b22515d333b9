"""Tens of thousands of damaged expectations, dossiers, tables, arrays, models and answers: each ends in one line of ours.

``ANSWERABLE_SOAK_FUZZ`` sets how many executions each target gets; a foreign exception is printed with the input that
raised it.
"""

import hashlib
import io
import json
import math
import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer
from answerable.dossier import Dossier
from answerable.errors import AnswerableError
from answerable.expectations import parse
from answerable.report import html, report_data
from answerable.subjects import read_arrays, read_table
from answerable.subjects.additive_model import AdditiveModel, load
from answerable.subjects.safetensors_header import read_header
from tests.core.conftest import plug_in  # noqa: F401
from tests.core.golden.make_schema_1 import golden

pytestmark = pytest.mark.soak

EXECUTIONS = int(os.environ.get("ANSWERABLE_SOAK_FUZZ", "3000"))
LONGEST_S = 1.0
ANSWER = replace(golden(), void="")  # of a void one no number is looked at

EXPECTATIONS = [
    b"metrics.share > 0.2 and not (metrics.words == 3 or verdict == 'settled')",
    b"0.1 <= metrics.share.low <= 50 %",
    b"metrics.bounded == 2 \xc2\xb1 0.5 and 'few' in limits",
    b"tables.words.row(word = 'plain').share != null",
    b"tables.words.share.max > abs(metrics.endless - 1e-3) * 2",
    b"verdict in ['undecided', 'settled'] or tables.words.height == 3",
    b"max(metrics.at_most.high, metrics.missing) < 1",
]
DOSSIER = b"""
title = "A title"
description = "more"
seed = 5
threads = 2
undecided = "warn"
multiplicity = "holm"
[[ask]]
question = "trivial/mean"
name = "mean"
numbers = [1, 2.5, -6e3]
label = "words"
digits = 3
centre = "median"
expect = ["metrics.mean == 3", { that = "metrics.mean > 4", words = "w", why = "y", severity = "warn" }]
[[ask]]
question = "trivial/luck"
seed = 1
units = 2
everywhere = true
expect = "metrics.share > 0.5"
"""
CSV = b"feature,bin_lower,bin_upper,category,points\nage,,30,,1.5\nage,30,,,2\nregion,,,north,-3\nregion,,,south,0\n(base),,,,4\n"
PIECES = [
    *(b"", b"\x00", b"\xff\xfe", b"\n", b'"', b"'", b"[", b"]", b"{", b"}", b"(", b")", b",", b".", b"=", b"-", b"nan"),
    *(
        b"null",
        b"true",
        b"inf",
        b"1e999",
        b"-1",
        b"0",
        b"99999999999999999999",
        b"0.1",
        b"\xe2\x80\xae",
        b"\xed\xa0\x80",
    ),
    *(
        b"metrics.",
        b"tables.",
        b".row(",
        b" and ",
        b" not ",
        b" in ",
        b"\xc2\xb1",
        b"%",
        b"[[ask]]",
        b"expect = ",
        b"[" * 400,
    ),
    *(
        b"(" * 400,
        b"-" * 400,
        b"not " * 300,
        b"1_000",
        b"1979-05-27T07:32:00Z",
        b"{}",
        b"[]",
        b'{"a":' * 400,
        b"9" * 5000,
    ),
]

ODD = [
    *(
        None,
        True,
        -1,
        0,
        2**70,
        0.5,
        math.nan,
        math.inf,
        "",
        "x",
        "inf",
        "\ud800",
        "../x",
        [],
        {},
        [None],
        {"$float": "x"},
    ),
    *([[1], [2, 3]], {"a": {"b": []}}, ["x"] * 50, [1e308, -1e308], [3, 2, 1], [0.0, 0.0], "<b>\u202e\x1b[31m"),
]


class Target(NamedTuple):
    """What is damaged, and what then reads it: the input and a folder of its own."""

    name: str
    seeds: list[bytes]
    read: Callable[[bytes, Path], object]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content after a few small damages; of JSON, one time in two, with another value in one place."""
    if content.startswith(b"{") and chance.random() < 0.5:
        return with_another_value(content, chance)
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        end = min(len(found), at + chance.choice((1, 1, 2, 4, 16, 64)))
        match chance.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case 1:
                del found[at:end]
            case 2:
                found[at:at] = chance.choice(PIECES)
            case 3:
                found[at:end] = chance.choice(PIECES)
            case 4:
                found[at:at] = found[at:end] * chance.choice((1, 2, 50))
            case _ if chance.random() < 0.2:
                del found[at:]
            case _:
                other = chance.randrange(len(found) + 1)
                found[at:end] = found[other : other + end - at]
    return bytes(found)


def with_another_value(content: bytes, chance: random.Random) -> bytes:
    """The document with one value, at any depth, replaced by one that should not stand there, or left out."""
    document = json.loads(content)
    place, step = {"": document}, ""
    while isinstance(place[step], dict | list) and place[step] and chance.random() < 0.8:
        place = place[step]
        step = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
    if isinstance(place, dict) and step and chance.random() < 0.2:
        del place[step]
    else:
        place[step] = chance.choice(ODD)
    return json.dumps(document).encode()


def checked_expectation(content: bytes, folder: Path) -> None:
    """Parsed, spoken and checked on an answer that has one of everything."""
    parse(content.decode("utf-8", errors="surrogateescape")).check(ANSWER)


def written(name: str, content: bytes, folder: Path) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def loaded_answer(document: bytes, folder: Path) -> None:
    """A saved answer whose answer.json was forged, its manifest with it; and what a report would show of it."""
    files = {**ANSWER.files(), "answer.json": document}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != "manifest.json"}
    files["manifest.json"] = json.dumps({"schema": 1, "sha256": digests}).encode()
    answer = Answer.from_files(files, where="forged")
    report_data(answer)
    html(answer)


def bytes_of(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def targets(tmp_path: Path) -> list[Target]:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    npy = bytes_of(lambda file: np.save(file, array))
    frame = pl.read_csv(CSV)
    model = AdditiveModel.from_scorecard(frame).to_json().encode()
    header = b'{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"__metadata__":{"format":"pt"}}'
    safetensors = len(header).to_bytes(8, "little") + header + bytes(8)
    return [
        Target("expectations", EXPECTATIONS, checked_expectation),
        Target("dossiers", [DOSSIER], lambda content, f: Dossier.load(written("d.toml", content, f))),
        Target("CSV", [CSV, CSV.replace(b",", b";")], lambda content, f: read_table(written("t.csv", content, f))),
        Target("scorecards", [CSV], lambda content, f: load(written("s.csv", content, f))),
        Target(
            "Parquet",
            [bytes_of(frame.write_parquet), ANSWER.tables["words"].parquet],
            lambda content, f: read_table(written("t.parquet", content, f)),
        ),
        Target(
            "npz",
            [bytes_of(lambda file: np.savez(file, a=array)), bytes_of(lambda file: np.savez_compressed(file, a=array))],
            lambda content, f: read_arrays(written("a.npz", content, f)),
        ),
        Target("npy", [npy], lambda content, f: read_arrays(written("a.npy", content, f))),
        Target("model JSON", [model], lambda content, f: load(written("m.json", content, f))),
        Target("answer.json", [ANSWER.files()["answer.json"]], loaded_answer),
        Target(
            "safetensors headers", [safetensors], lambda content, f: read_header(written("m.safetensors", content, f))
        ),
    ]


@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")  # numpy's, of a header that Python 2 could have made
def test_only_our_own_errors_come_out(
    tmp_path: Path,
    plug_in: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    foreign: dict[str, bytes] = {}
    figures: dict[str, tuple[int, int, float]] = {}
    for target in targets(tmp_path):
        chance, refused, slowest = random.Random(target.name), 0, 0.0
        for seed in target.seeds:
            target.read(seed, tmp_path)  # what is not damaged is read, else nothing is tried here
        for _ in range(EXECUTIONS):
            content = mutated(chance.choice(target.seeds), chance)
            began = time.process_time()  # of a machine that does other work too
            try:
                target.read(content, tmp_path)
            except AnswerableError as error:
                refused += 1
                if "\n" in str(error) or not str(error):
                    foreign[f"{target.name}: not one line"] = content
            except BaseException as error:  # a panic in a compiled library is no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                where = error.__traceback__
                while where is not None and where.tb_next is not None:
                    where = where.tb_next
                place = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
                foreign[f"{target.name}: {type(error).__name__} at {place}: {str(error)[:120]!r}"] = content
            slowest = max(slowest, time.process_time() - began)
        figures[target.name] = (EXECUTIONS, refused, slowest)
    with capsys.disabled():
        print(f"\n{'target':<22}{'executions':>11}{'refused':>9}{'slowest (CPU)':>15}")
        for name, (executions, refused, slowest) in figures.items():
            print(f"{name:<22}{executions:>11}{refused:>9}{slowest:>13.2f} s")
        print(f"{sum(row[0] for row in figures.values())} executions, {len(foreign)} kinds of foreign exceptions")
        for kind, content in foreign.items():
            print(f"  {kind}\n    {content[:300]!r}")
    assert not foreign
    assert max(row[2] for row in figures.values()) < LONGEST_S
