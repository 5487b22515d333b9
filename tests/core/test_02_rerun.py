"""``rerun`` says identical, within tolerance or different, and where."""

from dataclasses import replace
from pathlib import Path

import pytest

from answerable.answer import Answer, Metric
from answerable.asking import again, ask
from answerable.comparing import sameness
from answerable.errors import BadInput
from tests.core.conftest import Command


def test_the_same_run_is_identical_and_keeps_its_bytes(tmp_path: Path, command: Command, store: Path) -> None:
    ask("trivial/luck", seed=3, store=False).save(tmp_path / "answer")
    result = command("rerun", tmp_path / "answer")
    assert (result.returncode, result.stdout) == (0, "identical\n")


@pytest.mark.parametrize(("shift", "word"), [(0.0, "identical"), (1e-12, "within tolerance"), (1e-3, "different")])
def test_numbers_may_move_by_the_tolerance_that_the_answer_states(shift: float, word: str) -> None:
    first = ask("trivial/luck", seed=3, store=False)
    share = first.metrics["share"]
    moved = replace(first, metrics={**first.metrics, "share": replace(share, value=share.value + shift)})
    said, places = sameness(first, moved)
    assert said == word
    assert bool(places) == (word != "identical")
    assert all(place.startswith("metrics.share.value: ") for place in places)


def test_a_changed_word_row_or_metric_is_different() -> None:
    first = ask("trivial/luck", seed=3, store=False)
    other = ask("trivial/luck", seed=4, store=False)
    said, places = sameness(first, other)
    assert said == "different"
    assert any(place.startswith("tables.units.rows[") for place in places)
    without = Answer(first.summary, {"tosses": Metric(400, kind="exact", method="count")}, provenance=first.provenance)
    assert "metrics.share stands in one of them only" in sameness(first, without)[1]


def test_a_subject_that_changed_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("a\n1\n")
    answer = ask("trivial/rows", table=str(table), store=False)
    assert sameness(answer, ask("trivial/rows", table=str(table), store=False))[0] == "identical"
    table.write_text("a\n2\n")
    with pytest.raises(BadInput, match="is not the one that was asked"):
        again(answer)


def test_a_saved_answer_that_names_no_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    answer = ask("trivial/rows", table=str(tmp_path / "rows.csv"), store=False)
    forged = replace(answer, provenance=replace(answer.provenance, parameters={"table": {"subject": "table"}}))
    with pytest.raises(BadInput, match="is not the one that was asked"):
        again(forged)
