"""Held, failed, undecided, not run: by the whole interval of an estimate, by the number itself where it is exact."""

import pytest

from answerable.answer import Answer, Metric, Verdict
from answerable.expectations import parse

ANSWER = Answer(
    "x",
    {
        "estimated": Metric(0.5, 0.4, 0.6, method="bootstrap"),
        "bounds": Metric(0.5, 0.4, 0.6, kind="bounds", method="proof"),
        "exact": Metric(0.5, kind="exact", method="count"),
        "least": Metric(0.5, low=0.4, kind="one_sided", method="bound"),
    },
    limits=["Says nothing about causes."],
    verdict=Verdict("flagged"),
)
CASES = [
    ("metrics.estimated > 0.3", "held"),
    ("metrics.estimated > 0.7", "failed"),
    ("metrics.estimated > 0.45", "undecided"),
    ("metrics.estimated > 0.4", "undecided"),
    ("metrics.estimated >= 0.4", "undecided"),
    ("metrics.estimated < 0.6", "undecided"),
    ("metrics.bounds < 0.61", "held"),
    ("metrics.exact >= 0.5", "held"),
    ("metrics.exact > 0.5", "failed"),
    ("metrics.least > 0.3", "held"),
    ("metrics.least < 0.9", "undecided"),
    ("metrics.estimated.value > 0.45", "held"),
    ("metrics.estimated.low > 0.45", "failed"),
    ("metrics.estimated == 0.5 ± 0.2", "held"),
    ("metrics.estimated == 0.5 ± 0.05", "undecided"),
    ("metrics.estimated == 0.9 ± 0.05", "failed"),
    ("not metrics.estimated > 0.45", "undecided"),
    ("metrics.estimated > 0.45 or metrics.exact == 0.5", "held"),
    ("metrics.estimated > 0.45 and metrics.exact == 0.6", "failed"),
    ("metrics.estimated > 0.45 and metrics.exact == 0.5", "undecided"),
    ("verdict == 'flagged'", "held"),
    ("verdict in ['flagged', 'undecided']", "held"),
    ("'Says nothing about causes.' in limits", "held"),
]


@pytest.mark.parametrize(("text", "word"), CASES)
def test_outcome(text: str, word: str) -> None:
    assert parse(text).check(ANSWER).word == word


@pytest.mark.parametrize(
    "text", ["metrics.exact == 0.5", "metrics.estimated > 0.3", "metrics.estimated > 0.7", "verdict == 'flagged'"]
)
def test_a_voided_answer_leaves_every_expectation_undecided(text: str) -> None:
    voided = Answer("x", ANSWER.metrics, verdict=ANSWER.verdict, void="Only 3 patients overlap.")
    outcome = parse(text).check(voided)
    assert outcome.word == "undecided"
    assert "Only 3 patients overlap" in outcome.reason
