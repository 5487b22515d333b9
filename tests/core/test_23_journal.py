"""Every run a store has seen stands in its journal, and a line cannot be changed or taken out unnoticed."""

import hashlib
import json
from pathlib import Path

import pytest

from answerable.asking import ask
from answerable.cli import run
from answerable.errors import DamagedAnswer
from answerable.store import Store


@pytest.fixture
def journal(store: Path) -> Path:
    for seed in range(5):
        ask("trivial/luck", seed=seed, store=store)
    return store / "journal.jsonl"


def test_choosing_the_best_of_five_seeds_is_visible(journal: Path) -> None:
    best = Store(journal.parent).journal()[5]
    Store(journal.parent).remove(best.key, "not the best")
    events = [(entry.event, entry.seed) for entry in Store(journal.parent).journal()]
    made = [(event, seed) for seed in range(5) for event in ("begun", "answered")]
    assert events == [*made, ("discarded", None)]


@pytest.mark.parametrize("number", [0, 4, 8])
def test_a_line_that_was_taken_out_or_changed_is_noticed(journal: Path, number: int) -> None:
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:number] + lines[number + 1 :]))
    with pytest.raises(DamagedAnswer, match=f"line {number + 1} was changed, or a line before it removed"):
        Store(journal.parent).journal()
    changed = lines[number].replace('"seed": ', '"seed": 1')
    journal.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
    with pytest.raises(DamagedAnswer, match=f"line {number + 2} was changed"):
        Store(journal.parent).journal()


@pytest.mark.parametrize("left", [b'{"time": "2025-', b'{"ti', b"{"])
def test_a_line_on_which_its_writer_was_stopped_is_taken_out(journal: Path, left: bytes) -> None:
    whole = journal.read_bytes()
    journal.write_bytes(whole + left)
    assert len(Store(journal.parent).journal()) == 10
    assert journal.read_bytes() == whole + left, "reading changes nothing"
    ask("trivial/luck", seed=9, store=journal.parent)
    assert [entry.event for entry in Store(journal.parent).journal()][10:] == ["begun", "answered"]
    assert journal.read_bytes().startswith(whole + b'{"time": "2')


def test_a_whole_line_without_its_break_stays(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes().removesuffix(b"\n"))
    ask("trivial/luck", seed=9, store=journal.parent)
    assert len(Store(journal.parent).journal()) == 12


def forged(**changed: object) -> bytes:
    line = {"time": "2020-01-01T00:00:00+00:00", "event": "answered", "key": "ab" * 32, "question": "q", "seed": 1}
    line |= {"note": "n", "previous": hashlib.sha256(b"").hexdigest()} | changed
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"5\n",
        b"[" * 100_000 + b"\n",
        b"\xff\n",
        forged(key=None),
        forged(key="../../../precious"),
        forged(note=7),
        forged(seed="s"),
        forged(event=["x"]),
        forged(more=1),
    ],
    ids=["number", "deep", "bytes", "no key", "key that leads out", "note", "seed", "event", "more"],
)
@pytest.mark.parametrize("words", [("list",), ("log",), ("prune", "--older-than", "1")], ids=["list", "log", "prune"])
def test_a_forged_line_is_one_line_and_leads_nowhere(
    tmp_path: Path, line: bytes, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    store, precious = tmp_path / "a" / "b" / "store", tmp_path / "precious"
    for folder in (store / "answers" / "..", precious):
        folder.mkdir(parents=True, exist_ok=True)
    (precious / "thesis.txt").write_text("x")
    (store / "journal.jsonl").write_bytes(line)
    assert run(["store", *words, "--store", str(store)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {store}, journal: line 1 was changed, or a line before it removed")
    assert said.endswith("; restore it from a copy, or name another store\n")
    assert (precious / "thesis.txt").read_text() == "x"


def test_an_age_without_a_date_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["store", "prune", "--older-than", "999999999999", "--store", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: days: it is 999999999999; give at most 36500\n"
