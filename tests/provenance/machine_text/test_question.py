"""The question's answer: its words, numbers, tables and pictures, from recorded numbers and from the tiny pair."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import answerable as aw
from answerable import registry
from answerable.provenance.machine_text import LanguageModelPair, text_statistics

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def record(logprobs: list[float | None], **more: Any) -> dict[str, Any]:
    return {"tokens": [f" w{k}" for k in range(len(logprobs))], "logprobs": logprobs, **more}


def lines(scores: list[float], **more: Any) -> list[dict[str, Any]]:
    """Records of three tokens, the first unscored, whose log-ratio to records of score 0 is the score."""
    return [record([None, -2.0 + score, -2.0], **more) for score in scores]


def asked(scores: list[float], human: list[float], **more: Any) -> aw.Answer:
    fields = {
        "logprobs": lines(scores),
        "base_logprobs": lines([0.0] * len(scores)),
        "human_logprobs": lines(human),
        "human_base_logprobs": lines([0.0] * len(human)),
        "alpha": 0.05,
        "min_tokens": 2,
        "least": 1,
    }
    return aw.ask("machine-text", store=False, **{**fields, **more})


HUMAN = [round(-1 + 0.05 * k, 2) for k in range(19)]  # -1 to -0.1


def test_worked_by_hand() -> None:
    """19 human scores below 0 at alpha = 0.05: what lies above the largest, -0.1, is flagged."""
    answer = asked([0.5, -0.5, -0.09], HUMAN)
    texts = answer.tables["texts"].frame
    np.testing.assert_allclose(texts["score"], [0.5, -0.5, -0.09], atol=1e-12)
    assert texts["decision"].to_list() == ["flagged", "not flagged", "flagged"]
    assert texts["p_value"].to_list() == [0.05, 10 / 20, 0.05]
    assert answer.tables["calibration"].frame["threshold"].to_list() == [pytest.approx(-0.1)]
    assert answer.metrics["flagged"].value == 2
    assert answer.verdict is not None
    assert answer.verdict.word == "flagged"
    assert answer.summary.startswith("2 of 3 texts are flagged as machine-written, at a false-alarm rate of 0.05")


def test_one_text_has_its_score_and_p_value() -> None:
    answer = asked([-0.5], HUMAN)
    assert (answer.metrics["score"].value, answer.metrics["p_value"].value) == (pytest.approx(-0.5), 0.5)
    assert answer.metrics["score"].unit == "nats"
    assert answer.verdict == aw.Verdict("not flagged", "the text does not score above human ones at alpha = 0.05")
    rate = answer.metrics["false_alarm_rate"]
    assert rate.value == pytest.approx(0.05)
    assert rate.low < 0.05 < rate.high


def test_without_human_texts_nothing_is_decided() -> None:
    answer = asked([0.5, 0.1], [], human_logprobs=None, human_base_logprobs=None)
    assert answer.verdict is not None
    assert answer.verdict.word == "undecided"
    assert answer.verdict.mend == "give at least 19 human texts like those asked about"
    assert set(answer.tables["texts"].frame["decision"]) == {"undecided"}
    assert "p_value" not in answer.metrics


def test_too_short_is_undecided_with_its_reason() -> None:
    answer = asked([0.5], HUMAN, min_tokens=2, human_logprobs=lines(HUMAN), logprobs=[record([None, -1.0])],
                   base_logprobs=[record([None, -2.0])])  # fmt: skip
    assert answer.verdict is not None
    assert (answer.verdict.word, answer.verdict.reason) == ("undecided", "1 scored token, fewer than 2")
    empty = asked([0.5], HUMAN, logprobs=[record([None])], base_logprobs=[record([None])])
    assert empty.verdict is not None
    assert empty.verdict.reason == "there is nothing to score"
    assert np.isnan(empty.metrics["score"].value)
    assert empty.metrics["score"].reason == "there is nothing to score"
    assert "Texts that hold nothing to score: 1 of 1." in empty.limits


def test_labels_bring_the_table_with_its_length_row() -> None:
    scores = [0.5, 0.4, 0.3, -0.8, -0.4, -0.05]
    labels = ["machine", "machine", "human", "human", "human", "machine"]
    given = [entry | {"label": label} for entry, label in zip(lines(scores), labels, strict=True)]
    answer = asked(scores, HUMAN, logprobs=given)
    rows = answer.tables["detection"].frame
    assert rows["statistic"].to_list() == ["irm", "irm_mean", "irm_sqrt", "loglik", "length (shorter)"]
    assert rows["role"].to_list() == ["decides", "companion", "companion", "companion", "control"]
    assert rows["auroc"][0] == pytest.approx(8 / 9)
    assert rows["auroc"][4] == 0.5  # all of one length
    assert answer.metrics["auroc_length"].role == "control"
    assert answer.metrics["false_alarms"].value == pytest.approx(1 / 3)
    assert answer.metrics["found"].value == 1.0
    assert {"densities", "length", "roc", "text"} == set(answer.figures)
    assert "Log-ratio of model to base [nats]" in str(answer.figures["length"].wide)


def test_the_control_says_that_the_shorter_is_the_machine_s() -> None:
    given = [record([None, *[-1.0] * n], label="machine" if n < 5 else "human") for n in (2, 3, 7, 8)]
    base = [record([None, *[-1.5] * n]) for n in (2, 3, 7, 8)]
    answer = asked([0.0] * 4, HUMAN, logprobs=given, base_logprobs=base)
    assert answer.metrics["auroc_length"].value == 1.0
    assert answer.metrics["auroc"].value == 0.0  # the sum inherits the length, and here it points the other way
    said = "The length alone tells these texts apart as well or better (AUROC 1.000) than irm (0.000)"
    assert [limit for limit in answer.limits if limit.startswith(said)]


def test_a_kind_is_calibrated_apart() -> None:
    human = [
        entry | {"genre": "news" if k < 19 else "poem"}
        for k, entry in enumerate(lines(HUMAN + [1 + 0.01 * k for k in range(19)]))
    ]
    given = [entry | {"genre": genre} for entry, genre in zip(lines([0.5, 0.5]), ("news", "poem"), strict=True)]
    answer = asked([0.5, 0.5], HUMAN * 2, logprobs=given, human_logprobs=human, kind="genre")
    assert answer.tables["texts"].frame["decision"].to_list() == ["flagged", "not flagged"]
    assert answer.tables["calibration"].frame["kind"].to_list() == ["news", "poem"]


def test_a_batch_as_a_whole() -> None:
    scores = [0.5] + [-0.5] * 19
    assert asked(scores, HUMAN).metrics["flagged"].value == 1
    assert asked(scores, HUMAN, control="batch").metrics["flagged"].value == 0


def test_swapped_models_are_told() -> None:
    answer = asked([0.5], [0.2 + 0.01 * k for k in range(19)])
    assert [limit for limit in answer.limits if "check that model and base are not swapped" in limit]


def test_the_chosen_text_is_explained() -> None:
    assert asked([0.1, 0.5], HUMAN).tables["tokens"].title == "Tokens of text 2"  # the highest
    answer = asked([0.1, 0.5], HUMAN, explain=1)
    tokens = answer.tables["tokens"].frame
    assert tokens["log_ratio"].to_list() == [pytest.approx(0.1), 0.0]
    assert answer.figures["text"].title == "Text 1 (flagged): 1 of 2 tokens speak for a machine"


def test_the_pair_and_the_library_say_the_same(
    example: Path, pair: LanguageModelPair, human: list[str], machine: list[str]
) -> None:
    texts = ["", machine[0], human[-1]]
    answer = aw.ask(
        "machine-text", store=False, model=str(example / "instruct"), base=str(example / "base"), text=texts,
        human=human[:120], alpha=0.05,
    )  # fmt: skip
    frame = answer.tables["texts"].frame
    expected = text_statistics(texts, *pair)
    for name in ("irm", "loglik", "logrank", "lrr", "entropy", "fast_detect", "binoculars"):
        np.testing.assert_allclose(
            frame[name].cast(float).fill_null(np.nan), expected[name], rtol=1e-4, atol=1e-4, err_msg=name
        )
    assert frame["decision"].to_list()[:2] == ["undecided", "flagged"]
    assert frame["begins"].to_list()[1] == machine[0][:80]


def test_auto_takes_what_there_is(pair: LanguageModelPair) -> None:
    answer = aw.ask("machine-text", store=False, model=pair.base, text=["The mill stands on the hill by the sea."])
    assert "fast_detect" in answer.tables["texts"].frame.columns
    assert "irm" not in answer.tables["texts"].frame.columns
    assert answer.summary.startswith("It cannot be told whether a language model wrote the text: Fast-DetectGPT is ")


def test_the_catalogue_knows_it() -> None:
    assert registry.find("machine-text").in_plain_words() == "Was this text written by a language model?"
