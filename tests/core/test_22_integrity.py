"""A file of a saved answer that was flipped, cut, added, removed or renamed is named; what is loaded and saved again is the same bytes."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable.answer import SCHEMA, Answer
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import CannotRead, CannotWrite, DamagedAnswer
from answerable.store import Store
from answerable.verification import problems


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return ask("trivial/luck", seed=2, store=False).save(tmp_path / "answer")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: flip(folder / "answer.json"), "answer.json was changed"),
    (lambda folder: flip(folder / "tables" / "units.parquet"), "tables/units.parquet was changed"),
    (lambda folder: (folder / "answer.json").write_bytes(b""), "answer.json was changed"),
    (lambda folder: (folder / "figures" / "units.vl.json").unlink(), "figures/units.vl.json is missing"),
    (lambda folder: (folder / "extra.txt").write_text("x"), "extra.txt was added"),
    (
        lambda folder: (folder / "tables" / "units.parquet").rename(folder / "tables" / "other.parquet"),
        "tables/other.parquet was added",
    ),
    (lambda folder: (folder / "link").symlink_to(folder.parent), "link was added"),
    (lambda folder: (folder / "nowhere").symlink_to("/nonexistent"), "nowhere was added"),
    (lambda folder: os.mkfifo(folder / "pipe"), "pipe was added"),
]
# The manifest names every file but itself; its bytes follow from what it says.
DAMAGED_MANIFESTS: list[Callable[[bytes], bytes]] = [
    lambda content: content.replace(b"\n", b" ", 1),
    lambda content: content.replace(b'"schema"', b'"Schema"'),
    lambda content: content.replace(b"{", b'{"sha256": {},', 1),
    lambda content: content + b"\n",
    lambda content: b"[" * 100_000,
]
FORGED_NAME = "a\nevery file is the one that was written\x1b[2J\u061c\udcff"


@pytest.mark.parametrize(("damage", "line"), DAMAGES)
def test_each_damage_is_named(saved: Path, damage: Callable[[Path], object], line: str) -> None:
    assert problems(saved) == []
    damage(saved)
    assert line in problems(saved)
    with pytest.raises(DamagedAnswer):
        Answer.load(saved)


def test_a_damaged_stored_answer_is_told_and_asked_again(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ask("trivial/luck", seed=2, store=store)
    folder = Store(store).folder(first.provenance.key)
    assert folder is not None
    flip(folder / "answer.json")
    again = ask("trivial/luck", seed=2, store=store)
    assert not again.from_store
    assert again.without_run() == first.without_run()
    assert (
        capsys.readouterr().err
        == f"warning: answer.json was changed in stored answer {first.provenance.key[:8]}; it is asked again\n"
    )
    assert ask("trivial/luck", seed=2, store=store).from_store
    assert [entry.event for entry in Store(store).journal()] == [
        "begun",
        "answered",
        "discarded",
        "begun",
        "answered",
        "served",
    ]


def test_an_answer_swapped_for_another_is_not_served(store: Path) -> None:
    keys = [ask("trivial/luck", seed=seed, store=store).provenance.key for seed in (1, 2)]
    first, second = (Store(store).folder(key) for key in keys)
    assert first is not None
    assert second is not None
    contents = {path.relative_to(second): path.read_bytes() for path in second.rglob("*") if path.is_file()}
    for name, content in contents.items():
        (first / name).write_bytes(content)
    assert ask("trivial/luck", seed=1, store=store).provenance.key == keys[0]
    assert not Store(store).get(keys[0]) or Store(store).get(keys[0]).provenance.seed == 1  # type: ignore[union-attr]


def test_loaded_and_saved_again_it_is_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    again = Answer.load(saved).save(tmp_path / "again")
    files = {path.relative_to(saved): path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    assert files == {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}


def test_a_newer_schema_is_refused_in_one_line(saved: Path) -> None:
    answer = Answer.load(saved)
    files = answer.files()
    document = json.loads(files["answer.json"]) | {"schema": SCHEMA + 1}
    with pytest.raises(
        CannotRead,
        match=f"schema {SCHEMA + 1} is newer than {SCHEMA}, the newest this version reads; upgrade answerable",
    ):
        Answer.from_files(files | {"answer.json": json.dumps(document).encode()}, where="x")


def test_saving_never_replaces_what_is_not_an_answer(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(CannotWrite, match="something that is not an answer stands there; name a new folder"):
        Answer.load(saved).save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_saving_never_replaces_another_answer(saved: Path) -> None:
    with pytest.raises(CannotWrite, match="another answer stands there; name a new folder"):
        ask("trivial/mean", numbers=[1], store=False).save(saved)
    assert Answer.load(saved).question == "trivial/luck"


def test_the_same_answer_may_be_saved_again_over_a_damaged_one(saved: Path) -> None:
    flip(saved / "tables" / "units.parquet")
    ask("trivial/luck", seed=2, store=False).save(saved)
    assert problems(saved) == []
    assert not list(saved.parent.glob(".*.partial"))


@pytest.mark.parametrize("number", range(len(DAMAGED_MANIFESTS)))
def test_a_damaged_manifest_is_named(saved: Path, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = saved / "manifest.json"
    manifest.write_bytes(DAMAGED_MANIFESTS[number](manifest.read_bytes()))
    assert run(["verify", str(saved)]) == 1
    assert capsys.readouterr().out == "manifest.json is damaged\n"


def test_a_name_cannot_forge_what_is_found(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (saved / FORGED_NAME).touch()
    assert run(["verify", str(saved)]) == 1
    assert capsys.readouterr().out == "a\\nevery file is the one that was written\\x1b[2J\\u061c\\udcff was added\n"


def test_saving_again_takes_no_note_away(saved: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(
        CannotWrite, match=r"notes.txt stands there too and is no part of the answer; take it out, or name a new folder"
    ):
        ask("trivial/luck", seed=2, store=False).save(saved)
    assert (saved / "notes.txt").read_text() == "mine"


def test_a_report_is_not_written_into_a_saved_answer(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target in (saved / "report.html", saved / "answer.json"):
        assert run(["report", str(saved), "--to", str(target)]) == 2
        assert capsys.readouterr().err == f"error: {target}: a saved answer stands there; name a place outside it\n"
    assert problems(saved) == []
