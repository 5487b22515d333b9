"""What a stranger tried: texts of nothing, of unknown letters, copies, texts among their own calibration, long ones."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import answerable as aw
from answerable.provenance.machine_text import (
    ImplicitRewardDetector,
    LanguageModelPair,
    irm_from_logprobs,
    question,
    text_statistics,
)
from answerable.provenance.machine_text.api import is_blank, tokens_of_texts
from answerable.subjects import digest, read_corpus

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NOTHING = ["", " ", "\n" * 200, "\x00\x01" * 90, "\u200b\ufeff\u202e" * 40, "\u3000\u00a0" * 60]
UNKNOWN = "日本語のテキスト" * 30


@pytest.fixture
def ask(example: Path, human: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks the pair of the example, 40 human texts at hand; without pictures, which take longest."""
    monkeypatch.setattr(question, "_figures", lambda found: {})

    def asked(**fields: Any) -> aw.Answer:
        given = {"model": str(example / "instruct"), "base": str(example / "base"), "alpha": 0.05, "least": 40}
        return aw.ask("machine-text", store=False, **given | {"human": [text[:200] for text in human[:40]]} | fields)

    return asked


def test_what_cannot_be_seen_is_no_text(ask: Any, pair: LanguageModelPair) -> None:
    assert all(map(is_blank, NOTHING))
    assert not any(map(is_blank, ["a", " .", "\n1", "\u0301a"]))
    answer = ask(texts=NOTHING)
    texts = answer.tables["texts"].frame
    assert set(texts["decision"]) == {"undecided"}
    assert set(texts["reason"]) == {"there is nothing to score"}
    assert texts["score"].null_count() == len(NOTHING)
    assert "Texts that hold nothing to score: 6 of 6." in answer.limits
    assert text_statistics(NOTHING, *pair)["irm"].is_nan().all()


def test_recorded_blanks_are_no_text_either() -> None:
    blank = {"tokens": [" "] * 80, "logprobs": [None, *[-1.0] * 79]}
    answer = aw.ask("machine-text", store=False, logprobs=[blank])
    assert answer.tables["texts"].frame["reason"].to_list() == ["there is nothing to score"]


def test_letters_that_the_tokenizer_does_not_know_decide_nothing(
    ask: Any, pair: LanguageModelPair, human: list[str]
) -> None:
    some = human[0][:150] + UNKNOWN[:10]
    answer = ask(texts=[UNKNOWN, some])
    texts = answer.tables["texts"].frame
    assert texts["decision"][0] == "undecided"
    assert texts["reason"][0] == "100% of its tokens are unknown to the tokenizer"
    assert texts["decision"][1] != "undecided"
    (read,) = tokens_of_texts([some], list(pair))
    assert read.unknown == pytest.approx(10 / 159)
    detector = ImplicitRewardDetector(pair).calibrate([text[:200] for text in human[:40]], alpha=0.05)
    assert detector.predict([UNKNOWN]) == ["undecided"]
    with pytest.raises(aw.errors.BadInput, match=r"none of 20 texts can be calibrated on \(100% of its tokens"):
        ask(texts=[human[0]], human=[f"{UNKNOWN}{'語' * k}" for k in range(20)])


def test_a_copy_is_no_further_evidence(ask: Any, pair: LanguageModelPair, human: list[str]) -> None:
    people = [text[:200] for text in human[:40]]
    once, thrice = ask(texts=[human[50][:200]]), ask(texts=[human[50][:200]], human=people * 3)
    assert thrice.metrics["p_value"].value == once.metrics["p_value"].value
    assert thrice.tables["calibration"].frame.equals(once.tables["calibration"].frame)
    assert "Copies left out of the calibration: 80 of 120 human texts." in thrice.limits
    one = ask(texts=[human[50][:200]], human=[*people, people[3]])
    assert "Copies left out of the calibration: 1 of 41 human texts." in one.limits
    detectors = [ImplicitRewardDetector(pair).calibrate(texts, alpha=0.05) for texts in (people, people * 3)]
    p_values = [float(detector.pvalues([human[50][:200]])[0]) for detector in detectors]
    assert p_values[0] == p_values[1] == once.metrics["p_value"].value


def test_the_row_of_a_machine_text_counts_copies(ask: Any, human: list[str]) -> None:
    rows = [{"text": human[0], "label": "human"}] * 5 + [{"text": human[1], "label": "machine"}]
    with pytest.raises(aw.errors.BadInput, match="human, row 6: a calibration text is labelled machine"):
        ask(texts=[human[2]], human=rows)


def test_texts_among_their_own_calibration_are_told(ask: Any, human: list[str]) -> None:
    people = [text[:200] for text in human[:40]]
    told = [limit for limit in ask(texts=[people[0], people[5], human[50]]).limits if "among the human ones" in limit]
    assert told == ["Texts that stand among the human ones too, and were compared with themselves: 2 of 3."]
    assert not any("among the human ones" in limit for limit in ask(texts=[human[50]]).limits)


def test_what_was_not_read_of_a_long_text_is_told(ask: Any, pair: LanguageModelPair, human: list[str]) -> None:
    exact, longer = human[0][:100], human[1][:101]
    told = [limit for limit in ask(texts=[exact, longer], max_tokens=100).limits if "beginning" in limit]
    assert told == ["Of one long text only the beginning was read, 99 tokens at most."]
    assert not any("beginning" in limit for limit in ask(texts=[exact], max_tokens=100).limits)
    # a model that reads fewer tokens than were asked for
    most = pair.instruct.model.config.max_position_embeddings
    told = [limit for limit in ask(texts=[human[0] * 20], max_tokens=10_000).limits if "beginning" in limit]
    assert told == [f"Of one long text only the beginning was read, {most - 1} tokens at most."]
    assert not any("beginning" in limit for limit in ask(texts=[longer], max_tokens=100, long="windows").limits)


@pytest.mark.parametrize("column", [pl.Series, np.array, tuple])
def test_a_column_of_texts_is_a_list(column: Any, human: list[str]) -> None:
    texts = human[:3]
    assert read_corpus(column(texts)).texts == texts
    assert digest("corpus", column(texts)) == digest("corpus", texts)


def test_a_column_of_pandas_and_of_arrow_is_a_list(human: list[str]) -> None:
    frame = pl.DataFrame({"text": human[:3]})
    for column in (frame.to_pandas()["text"], frame.to_arrow()["text"]):
        assert read_corpus(column).texts == human[:3]
    for whole in (frame.to_pandas(), frame.to_arrow()):
        assert read_corpus(whole).texts == human[:3]


def test_one_text_is_said_in_the_singular(ask: Any, human: list[str], machine: list[str]) -> None:
    assert "1 of 2 texts is flagged as machine-written" in ask(texts=[machine[0][:200], human[60][:200]]).summary
    assert "; 1 is undecided." in ask(texts=["a", human[60][:200]]).summary
    verdict = ask(texts=[machine[0][:200]]).verdict
    assert verdict is not None
    assert verdict.reason == "the text scores above human ones; alpha = 0.05"


def test_too_few_texts_are_refused_before_anything_is_read(
    ask: Any, human: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "answerable.provenance.machine_text.reading.load", lambda *a, **k: pytest.fail("models were read")
    )
    with pytest.raises(
        aw.errors.BadInput, match=r"human: 40 different texts are too few for alpha = 0\.01; give at least 99"
    ):
        ask(texts=human[:1], alpha=0.01)
    with pytest.raises(aw.errors.BadInput, match="explain: there is no text 3"):
        ask(texts=human[:2], explain=3)


@pytest.mark.parametrize(
    "options, line",
    [
        ({"normalize": "root"}, "normalize is 'root'; say sum, mean or sqrt"),
        ({"long": "cut"}, "long is 'cut'; say truncate or windows"),
        ({"max_tokens": 1}, "max_tokens is 1; it must be a whole number of at least 2"),
        ({"max_tokens": None}, "max_tokens is None; it must be a whole number of at least 2"),
        ({"batch_tokens": 0}, "batch_tokens is 0; it must be a whole number of at least 1"),
        ({"min_tokens": 2.5}, "min_tokens is 2.5; it must be a whole number of at least 1"),
    ],
)
def test_settings_that_are_none_are_refused(
    pair: LanguageModelPair, human: list[str], options: dict[str, Any], line: str
) -> None:
    with pytest.raises(aw.errors.BadInput, match=f"^{line}$"):
        ImplicitRewardDetector(pair, **options).score_samples(human[:1])


def test_a_calibration_that_cannot_be_is_refused(pair: LanguageModelPair, human: list[str]) -> None:
    detector, people = ImplicitRewardDetector(pair), [text[:100] for text in human[:20]]
    wrong: dict[str, dict[str, Any]] = {
        "groups is 'lenght'; say length or none": {"groups": "lenght"},
        r"edges: the shape is \(\)": {"edges": None},
        "alpha is 'a'; it must lie between 0 and 1": {"alpha": "a"},
    }
    for line, options in wrong.items():
        with pytest.raises(aw.errors.BadInput, match=f"^{line}"):
            detector.calibrate(people, **{"alpha": 0.05} | options)


@pytest.mark.parametrize("name", ["dict", "set", "pandas", "polars"])
def test_what_would_give_names_or_no_order_is_no_list_of_texts(pair: LanguageModelPair, name: str) -> None:
    frame = pl.DataFrame({"text": ["the mill"]})
    given = {"dict": {"text": "the mill"}, "set": {"the mill"}, "pandas": frame.to_pandas(), "polars": frame}[name]
    with pytest.raises(aw.errors.BadInput, match="is no list of texts; give a list of strings"):
        text_statistics(given, *pair)  # type: ignore[arg-type]


def test_what_is_no_model_or_pair_is_refused(pair: LanguageModelPair, example: Path) -> None:
    with pytest.raises(aw.errors.BadInput, match="a tuple is no pair of models; give LanguageModelPair"):
        ImplicitRewardDetector(tuple(pair))  # type: ignore[arg-type]
    with pytest.raises(aw.errors.BadInput, match="a NoneType is no language model"):
        text_statistics(["the mill"], None)
    with pytest.raises(aw.errors.BadInput, match="dtype is 'int8'; say float32, float64, bfloat16 or float16"):
        LanguageModelPair.from_pretrained(str(example / "instruct"), str(example / "base"), dtype="int8")


@pytest.mark.parametrize("given", ["ab", [1j], ["a"], [object()]])
def test_recorded_numbers_that_are_none(given: Any) -> None:
    with pytest.raises(aw.errors.BadInput, match="these are not numbers; give natural logarithms of probabilities"):
        irm_from_logprobs(given, [-1.0])
    with pytest.raises(aw.errors.BadInput, match="normalize is 'root'; say sum, mean or sqrt"):
        irm_from_logprobs([-1.0], [-2.0], normalize="root")  # type: ignore[arg-type]
