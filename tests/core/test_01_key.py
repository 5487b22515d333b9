"""An answer's key is made of content: what changes an answer changes the key, and nothing else does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from answerable import subjects
from answerable.asking import ask, prepared
from answerable.keys import provenance_of, sources_of
from answerable.question import Question
from answerable.store import Store


def key_of(question: Question, *, seed: int | None = None, threads: int = 1, device: str = "cpu") -> str:
    made = provenance_of(question, seed=seed, threads=threads, device=device)
    assert made is not None
    return made.key


def key(name: str, fields: dict[str, object], **settings: object) -> str:
    return key_of(prepared(name, fields), **settings)  # type: ignore[arg-type]


def test_parameters_texts_seed_threads_and_device_are_in_the_key() -> None:
    keys = [
        key("trivial/mean", {"numbers": [1, 2]}),
        key("trivial/mean", {"numbers": [1, 2.0000001]}),
        key("trivial/mean", {"numbers": [2, 1]}),
        key("trivial/mean", {"numbers": [1, 2], "digits": 2}),
        key("trivial/mean", {"numbers": [1, 2], "label": "Numbers"}),
        key("trivial/luck", {}, seed=1),
        key("trivial/mean", {"numbers": [1, 2]}, threads=2),
        key("trivial/mean", {"numbers": [1, 2]}, device="cuda"),
        key("trivial/luck", {}, seed=0),
    ]
    assert len(set(keys)) == len(keys)
    assert key("trivial/mean", {"numbers": [1, 2]}) == keys[0]


def test_a_seed_is_left_out_where_nothing_depends_on_chance(store: Path) -> None:
    ask("trivial/mean", numbers=[1, 2], store=store)
    again = ask("trivial/mean", numbers=[1, 2], seed=3, store=store)
    assert again.from_store
    assert again.provenance.seed is None


def test_a_default_that_is_written_out_gives_the_same_key() -> None:
    assert key("trivial/mean", {"numbers": [1, 2], "digits": 3}) == key("trivial/mean", {"numbers": [1.0, 2.0]})


def test_one_changed_cell_gives_another_key_and_moving_renaming_or_touching_does_not(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("a,b\n1,2\n3,4\n")
    first = key("trivial/rows", {"table": str(table)})
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(table, tmp_path / "elsewhere" / "other.csv")
    os.utime(moved, (0, 0))
    assert key("trivial/rows", {"table": str(moved)}) == first
    Path(moved).write_text("a,b\n1,2\n3,5\n")
    assert key("trivial/rows", {"table": str(moved)}) != first


def test_a_text_from_a_file_is_its_content(tmp_path: Path) -> None:
    (tmp_path / "label.txt").write_text("lengths")
    by_file = key("trivial/mean", {"numbers": [1], "label": f"@{tmp_path / 'label.txt'}"})
    assert by_file == key("trivial/mean", {"numbers": [1], "label": "lengths"})


def test_an_edited_solver_gives_another_key(tmp_path: Path, plug_in: Path) -> None:
    package = tmp_path / "tone"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "solver.py").write_text("def tone():\n    return 1\n")
    (package / "unrelated.py").write_text("x = 1\n")
    (package / "question.py").write_text(
        "def answer():\n    from .solver import tone\n    import numpy\n    return tone()\n"
    )

    def sources() -> str:
        program = "from answerable.keys import sources_of; print(*sources_of('tone.question'))"
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
        ).stdout

    first = sources()
    assert "numpy" in first
    (package / "unrelated.py").write_text("x = 2\n")
    assert sources() == first
    (package / "solver.py").write_text("def tone():\n    return 2\n")
    assert sources() != first


def test_the_sources_of_a_question_reach_its_solver_through_lazy_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, packages = sources_of("answerable.mechanisms.attention_flow.question", ("language_model",))
    assert {"numpy", "numba", "torch"} <= packages
    assert digest != sources_of("answerable.mechanisms.attention_flow.figures")[0]


def test_an_answer_from_the_store_says_so_with_the_date_it_was_made(store: Path) -> None:
    first = ask("trivial/mean", numbers=[1, 2], store=store)
    again = ask("trivial/mean", numbers=[1, 2], store=store)
    assert (first.from_store, again.from_store) == (False, True)
    assert again.run.made == first.run.made != ""


def test_a_live_object_without_a_digest_is_answered_but_not_stored(
    store: Path, marks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "digest", lambda kind, value: None)
    frame = pl.DataFrame({"a": [1, 2]})
    for times in (1, 2):
        answer = ask("trivial/rows", table=frame, store=store)
        assert (answer.metrics["rows"].value, answer.from_store, marks()) == (2, False, times)
        assert answer.provenance.key == ""
    assert Store(store).journal() == []


def test_a_live_dataframe_is_stored_by_its_content(store: Path) -> None:
    ask("trivial/rows", table=pl.DataFrame({"a": [1, 2]}), store=store)
    assert ask("trivial/rows", table=pl.DataFrame({"a": [1, 2]}), store=store).from_store
    assert not ask("trivial/rows", table=pl.DataFrame({"a": [1, 3]}), store=store).from_store


def test_of_statistics_only_the_modules_that_are_used_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from answerable import keys

    content = b"from answerable.statistics import wilson_interval, holm\nfrom answerable.mechanisms.attention_flow import prune"
    found = set(keys._imports(content, "tone.question", is_package=False))
    assert "answerable.statistics.multiple_testing" in found
    assert "answerable.mechanisms.attention_flow.pruning" in found
    assert not {"answerable.statistics.bootstrap", "answerable.mechanisms.attention_flow.solver"} & found
