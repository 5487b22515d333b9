"""Several p-values in one dossier are shown raw and adjusted, and the summary says which the expectations were checked on."""

from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import false_discovery_control

from answerable.answer import Answer
from answerable.dossier import Dossier, Result
from answerable.question import Question
from answerable.report import html
from answerable.run import Run
from tests.core.conftest import Command

P = [0.001, 0.02, 0.03, 0.04, 0.6]


def result(multiplicity: str, values: list[float] = P) -> Result:
    asks = [{"question": "trivial/test", "p": p, "expect": "metrics.p < 0.035"} for p in values]
    return Dossier.from_mapping({"multiplicity": multiplicity, "ask": asks}).run()


def words(found: Result) -> list[str]:
    return [one.outcomes[0].word for one in found.asked]


@pytest.mark.parametrize(
    ("multiplicity", "adjusted", "held"),
    [
        ("none", P, 3),
        ("benjamini-hochberg", list(false_discovery_control(P)), 1),
        ("holm", [0.005, 0.08, 0.09, 0.09, 0.6], 1),
    ],
)
def test_expectations_are_checked_on_adjusted_values(multiplicity: str, adjusted: list[float], held: int) -> None:
    found = result(multiplicity)
    assert [value.raw for value in found.p_values.values()] == P
    assert [value.adjusted for value in found.p_values.values()] == pytest.approx(adjusted)
    assert words(found).count("held") == held


def test_the_answers_themselves_keep_the_raw_values() -> None:
    assert [one.answer.metrics["p"].value for one in result("holm").asked if one.answer] == P


def test_the_summary_and_the_report_say_which_were_used(tmp_path: Path, command: Command, store: Path) -> None:
    said = "5 p-values were adjusted over the dossier by the method of Holm, and expectations were checked on the adjusted ones."
    assert result("holm").multiplicity.startswith(said)
    assert said in html(result("holm"))
    assert "trivial/test-2, p: 0.02, adjusted 0.08" in html(result("holm"))
    assert "none is adjusted" in result("none").multiplicity
    text = "".join(f'[[ask]]\nquestion = "trivial/test"\np = {p}\nexpect = "metrics.p < 1"\n' for p in P)
    (tmp_path / "d.toml").write_text(f'multiplicity = "holm"\n{text}')
    assert said in command("dossier", tmp_path / "d.toml").stdout


def test_one_p_value_needs_no_adjusting() -> None:
    assert result("holm", [0.03]).multiplicity == ""
    assert words(result("holm", [0.03])) == ["held"]


def test_a_number_that_is_no_p_value_leaves_the_other_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"question": "trivial/test", "p": p, "expect": "metrics.p < 0.05"} for p in (0.5, 0.01)]
    dossier = Dossier.from_mapping({"ask": entries})
    kind = type(dossier.asks[0].question)
    answer = kind.answer

    def beyond(self: Question, run: Run) -> Answer:
        given = answer(self, run)
        metrics = {"p": replace(given.metrics["p"], value=4 * given.metrics["p"].value)}
        return replace(given, metrics=metrics) if given.metrics["p"].value == 0.5 else given

    monkeypatch.setattr(kind, "answer", beyond)
    found = dossier.run()
    assert found.asked[0].error.endswith("metric p: the p-value is 2; the question must keep it in [0, 1]")
    assert words(found) == ["not run", "held"]
    assert found.exit_code == 2
