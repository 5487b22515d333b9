"""Every run a store has seen stands in its journal, and a line cannot be changed or taken out unnoticed."""

from pathlib import Path

import pytest

from answerable.asking import ask
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


def test_a_torn_last_line_does_not_stop_the_next_one(journal: Path) -> None:
    with journal.open("ab") as file:
        file.write(b'{"time": "2025-')
    ask("trivial/luck", seed=9, store=journal.parent)
    with pytest.raises(DamagedAnswer, match="line 11 was changed"):
        Store(journal.parent).journal()
    assert ask("trivial/luck", seed=9, store=journal.parent).from_store
