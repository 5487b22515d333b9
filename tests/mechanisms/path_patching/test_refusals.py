"""What the method refuses or leaves out, and says so: models in half precision, answers of two tokens, soft caps."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
import torch

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import Node, Pair, Pairs, PathPatching, targeted_mask, trace
from answerable.mechanisms.path_patching.readout import Readout
from answerable.mechanisms.path_patching.replicas import planted, planted_pairs
from answerable.subjects.language_model import LanguageModel
from answerable.subjects.language_model.last_token import record_last
from answerable.subjects.language_model.pieces import final_state
from tests.refusals import refused_by_command
from tests.subjects.tiny_models import tiny
from tests.subjects.tiny_tokenizers import spelled


def lettered(n: int = 12, **changes: object) -> Pairs:
    """Prompts of letters; the answers are letters too, so that each is one token."""
    words = ["ab"[step // 8] + "".join("abcdefgh"[(i * step + i) % 8] for i in range(4)) for step in range(1, n + 1)]
    pairs = [Pair(word, word[::-1] + "a", "abcdefgh"[i % 8], unit=str(i)) for i, word in enumerate(words)]
    return Pairs(tuple(replace(pair, **changes) for pair in pairs))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def letters() -> LanguageModel:
    return spelled(tiny("llama"))


def anyway(lm: LanguageModel, pairs: Pairs) -> object:
    return trace(lm, None, pairs, keep_wrong=True, allow_leaky=True)


def test_an_answer_of_several_tokens_is_left_out_with_its_reason(letters: LanguageModel) -> None:
    pairs = lettered(14)
    mixed = Pairs((replace(pairs.pairs[0], answer="ab"), replace(pairs.pairs[1], answer="bca"), *pairs.pairs[2:]))
    found = anyway(letters, mixed)
    assert len(found) == 12
    assert found.dropped == {"the answer is not one token": 2}
    with pytest.raises(BadInput, match="no pair has an answer of one token"):
        anyway(letters, lettered(12, answer="ab"))


def test_a_foil_that_is_the_answer_or_not_one_token(letters: LanguageModel) -> None:
    with pytest.raises(BadInput, match="pair 3: foil and answer are the same token"):
        anyway(letters, lettered(12, foil="c"))
    pairs = lettered(14)
    odd = Pairs(tuple(replace(pair, foil="hg" if i < 2 else "ba"[i % 8 == 1]) for i, pair in enumerate(pairs.pairs)))
    some = Pairs(tuple(pair for pair in odd.pairs if pair.answer != pair.foil))
    assert anyway(letters, some).dropped["the foil is not one token"] == 2
    with pytest.raises(BadInput, match="pair 2: it has no foil, others have one"):
        anyway(letters, Pairs((replace(pairs.pairs[0], foil="h"), *pairs.pairs[1:])))


def test_prompts_that_are_answered_wrong_are_left_out() -> None:
    pairs = planted_pairs(1)
    wrong = [replace(pair, answer=pair.answer % 40 + 1) if i < 5 else pair for i, pair in enumerate(pairs.pairs)]
    found = trace(planted(1), None, Pairs(tuple(wrong)), allow_leaky=True)
    assert found.right_positive == (35, 40)
    assert found.dropped == {"the prompt is answered wrong": 5}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_is_swept_in_float32_and_said(dtype: torch.dtype) -> None:
    lm = planted(1)
    half = replace(lm, model=copy.deepcopy(lm.model).to(dtype))
    found = trace(half, None, planted_pairs(1), allow_leaky=True)
    name = str(dtype).removeprefix("torch.")
    assert found.notes == (f"The model is held in {name}; a copy in float32 was used.",)
    assert next(half.model.parameters()).dtype == dtype
    effects = PathPatching(rank=None, resamples=100).fit(found)
    assert effects.ranked("head")[0] == Node("head", 0, 1)
    assert effects.per_pair.dtype == np.float64


def test_soft_caps_stand_before_probabilities_and_before_logits_unless_raw() -> None:
    lm = tiny("gemma2")
    prompts = torch.randint(3, 50, (6, 5), generator=torch.Generator().manual_seed(2)).tolist()
    final = final_state(lm, record_last(lm, prompts).stream[-1])
    cap = lm.model.config.final_logit_softcapping
    plain = final @ lm.model.lm_head.weight.T
    capped = cap * torch.tanh(plain / cap)
    assert (plain - capped).abs().max() > 1e-4  # the cap does something here
    answers, foils, rows = list(range(6)), list(range(6, 12)), torch.arange(6)
    shown = {
        ("logit_difference", False): capped[rows, answers] - capped[rows, foils],
        ("logit_difference", True): plain[rows, answers] - plain[rows, foils],
        ("centred_logit", False): capped[rows, answers] - capped.mean(-1),
        ("centred_logit", True): plain[rows, answers] - plain.mean(-1),
        ("log_probability", False): capped.log_softmax(-1)[rows, answers],
        ("log_probability", True): capped.log_softmax(-1)[rows, answers],
        ("relative_logit", True): plain[rows, answers],
    }
    with torch.no_grad():
        for (metric, raw), wanted in shown.items():
            found = Readout(lm, answers, foils, metric, raw)(final)  # type: ignore[arg-type]
            torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_logit_near_zero_is_no_denominator(letters: LanguageModel) -> None:
    found = anyway(letters, lettered())
    with pytest.raises(
        BadInput, match=r"metric relative_logit: the answer's logit is .* in the pair of unit '\d+', near"
    ):
        PathPatching(rank=None, metric="relative_logit").fit(found)


def test_a_component_that_does_not_change_has_no_effect_and_no_direction() -> None:
    lm = planted(2)
    model = copy.deepcopy(lm.model)
    with torch.no_grad():
        attention = model.transformer.h[1].attn
        attention.c_attn.weight[:, 128:144] = 0  # values of head 0 of layer 1
        attention.c_attn.bias[128:144] = 0
    found = trace(replace(lm, model=model), None, planted_pairs(2), allow_leaky=True)
    effects = PathPatching(rank=1, resamples=100).fit(found)
    silent = effects.nodes.index(Node("head", 1, 0))
    assert not effects.per_pair[silent].any()
    assert not effects.directions[Node("head", 1, 0)].any()
    told = effects.compare([0, 1], [Node("head", 1, 0), Node("head", 0, 1)])
    assert told["size"].to_list()[::2] == [0, 0] and told["cosine"].to_list()[::2] == [None, None]
    assert told["cosine"].drop_nulls().min() > 0
    assert effects.tested.p_value[silent] == 1 and not effects.tested.crucial[silent]
    assert np.isfinite(effects.table().select(pl.col(pl.Float64)).to_numpy()).all()


def test_an_architecture_without_a_map_shows_its_modules() -> None:
    from transformers import CTRLConfig, CTRLLMHeadModel

    config = CTRLConfig(vocab_size=70, n_embd=8, dff=8, n_layer=1, n_head=2, n_positions=16)
    with pytest.raises(BadInput, match=r"no map of the architecture 'ctrl'; its modules: .*transformer") as raised:
        trace(CTRLLMHeadModel(config).eval(), None, planted_pairs(1))
    assert "\n" not in str(raised.value)


def test_a_model_that_reads_both_ways_is_refused() -> None:
    with pytest.raises(BadInput, match="reads both ways"):
        trace(tiny("bert"), None, Pairs.from_ids([[5, 6, 7]] * 12, [[5, 6, 8]] * 12, [9] * 12))


def test_tied_weights_are_trained_by_slice_and_stay_tied() -> None:
    lm = tiny("gemma3")
    model = copy.deepcopy(lm.model)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    mask = targeted_mask(replace(lm, model=model), [Node("head", 0, 1), Node("mlp", 2)])
    assert not [name for name in mask.chosen if "embed" in name or "lm_head" in name]
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-2, weight_decay=0.5)
    before = model.lm_head.weight.clone()
    mask.apply(optimizer)
    ids = torch.randint(3, 50, (2, 6))
    model(ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    assert torch.equal(model.lm_head.weight, before)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_model_that_is_being_trained_can_be_masked() -> None:
    model = copy.deepcopy(tiny("gpt2").model).train()
    assert targeted_mask(model, [Node("head", 0, 0)]).count > 0


# -- through the command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replica", "planted", "--rank", "-1"], "field rank: it is -1, and should be greater than or equal to 0"),
        (["--replica", "planted", "--rank", "40"], "rank is 40; choose from 0 to 15"),
        (["--replica", "planted", "--threshold", "0"], "threshold"),
        (["--replica", "planted", "--metric", "logit_difference"], "a logit difference needs a foil"),
        (["--replica", "planted", "--receivers", "0.0.x"], "names no head"),
        (["--replica", "planted", "--path", "total", "--screen"], "cannot follow path total"),
        (["--replica", "planted", "--wrap", "Q: {prompt}"], "leave wrap out"),
    ],
    ids=["rank", "rank beyond", "threshold", "no foil", "receiver", "screen", "wrap"],
)
def test_a_bad_field_ends_with_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert message in refused_by_command(capsys, tmp_path, "path-patching", *arguments)


def test_a_dictionary_s_words_of_one_token_come_in_the_tokenizer_s_order(letters: LanguageModel) -> None:
    from answerable.mechanisms.path_patching.pairs import commonest

    lm = spelled(tiny("llama"), letters=" hgfedcba")  # the blank is a token: " a" is two
    assert commonest(lm, [("a", "b")]) == []

    class Words:
        numbers: ClassVar = {
            " the": [4],
            " cat": [9],
            " le": [5],
            " chat": [7],
            " of": [6],
            " de": [8],
            " dog": [11, 12],
        }

        def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
            return {"input_ids": self.numbers.get(text, [1, 1])}

    words = [("cat", "chat"), ("dog", "de"), ("the", "le"), ("of", "odd"), ("of", "de")]
    found = commonest(replace(letters, tokenizer=Words()), words)
    assert found == [("the", "le"), ("of", "de"), ("cat", "chat")]
