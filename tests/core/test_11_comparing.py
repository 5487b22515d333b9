"""Comparing is paired wherever the rows are the same, gives an interval, and calls no two overlapping intervals a difference."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.answer import Answer, Metric, Provenance, Table, Verdict
from answerable.asking import ask
from answerable.comparing import differences, said_differently
from answerable.errors import BadInput
from tests.core.conftest import Command


def answer(metric: Metric, scores: list[float] | None = None, rows: list[str] | None = None) -> Answer:
    frame = pl.DataFrame(
        {"row": rows or [str(i) for i in range(len(scores or []))], "score": pl.Series(scores or [], dtype=pl.Float64)}
    )
    return Answer("x", {"m": metric}, {"t": Table(frame, {"row": "row", "score": "score"})}, provenance=Provenance("q"))


def estimated(value: float, half: float) -> Metric:
    return Metric(value, value - half, value + half, method="bootstrap")


@given(st.floats(-5, 5), st.floats(0.01, 2), st.floats(-5, 5), st.floats(0.01, 2))
def test_overlapping_intervals_are_never_called_a_difference(
    first: float, half: float, second: float, other_half: float
) -> None:
    a, b = estimated(first, half), estimated(second, other_half)
    found = differences(answer(a), answer(b))[0]
    assert a.low is not None and a.high is not None and b.low is not None and b.high is not None
    overlap = a.low <= b.high and b.low <= a.high
    assert (found.word == "not told apart") == overlap
    assert found.low <= found.difference <= found.high


def test_exact_numbers_differ_exactly() -> None:
    one, two = Metric(1, kind="exact", method="count"), Metric(2, kind="exact", method="count")
    assert differences(answer(one), answer(two))[0].word == "differs"
    assert differences(answer(one), answer(one))[0].word == "same"


def test_the_same_rows_are_compared_in_pairs() -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(0, 10, 50)
    first, second = level + rng.normal(0, 0.1, 50), level + 0.5 + rng.normal(0, 0.1, 50)
    metric = estimated(0, 100)
    paired = differences(answer(metric, list(first)), answer(metric, list(second)))[1]
    assert (paired.what, paired.word) == ("mean of t.score", "differs")
    assert paired.low < 0.5 < paired.high
    assert paired.high - paired.low < 0.2, "rows vary by 10, their differences by 0.1"


def test_other_rows_are_not_paired() -> None:
    metric = estimated(0, 1)
    assert len(differences(answer(metric, [1.0, 2.0]), answer(metric, [1.0, 2.0], ["x", "y"]))) == 1


def test_answers_to_two_questions_are_refused() -> None:
    with pytest.raises(BadInput, match="one answer is to q, the other to trivial/mean"):
        differences(answer(estimated(0, 1)), ask("trivial/mean", numbers=[1], store=False))


def test_the_command_exits_one_where_something_differs(tmp_path: Path, command: Command) -> None:
    for seed in (1, 2):
        ask("trivial/luck", seed=seed, store=False).save(tmp_path / str(seed))
    ask("trivial/luck", seed=1, tosses=50, store=False).save(tmp_path / "fewer")
    assert command("diff", tmp_path / "1", tmp_path / "2").returncode == 0
    other = command("diff", tmp_path / "1", tmp_path / "fewer")
    assert other.returncode == 1
    assert "tosses differs: 100 and 50" in other.stdout
    assert "mean of units.heads" not in other.stdout, "whole numbers name the rows"


def test_what_no_number_tells_is_said() -> None:
    count = {"m": Metric(1, kind="exact", method="count")}
    first = Answer("x", {**count, "old": count["m"]}, verdict=Verdict("flagged"), void="Too few rows.")
    second = Answer("x", {**count, "new": count["m"]}, verdict=Verdict("clear"))
    assert said_differently(first, second) == [
        "verdict differs: flagged and clear",
        "the first answer is void: Too few rows.",
        "old stands in the first answer only",
        "new stands in the second answer only",
    ]
    assert said_differently(second, second) == []


def test_numbers_beyond_a_float_and_infinite_rows_are_not_compared() -> None:
    whole, real = Metric(10**400, kind="exact", method="count"), Metric(1.5, kind="exact", method="count")
    found = differences(answer(whole, [1.0, np.inf, 2.0, 3.0]), answer(real, [1.1, 5.0, np.inf, 3.1]))
    assert (found[0].word, found[0].method) == ("cannot be compared", "a number is too large")
    assert found[1].difference == pytest.approx(0.1)
    assert differences(answer(whole), answer(whole))[0].word == "same"
