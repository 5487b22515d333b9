"""What a stranger gave the question by mistake or in malice: each is one line that says what and where."""

from __future__ import annotations

import copy
import csv
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from answerable.answer import Answer
from answerable.cli import run
from answerable.errors import BadInput
from answerable.mechanisms.path_patching import (
    Node,
    Pairs,
    Patch,
    PathPatching,
    Place,
    Receiver,
    Training,
    effects_at,
    intervened,
    knock_out,
    patched,
    random_directions,
    steering_direction,
    targeted_mask,
    trace,
)
from answerable.mechanisms.path_patching.replicas import planted, planted_pairs, random_twin
from tests.refusals import refused_by_command

# The letter of each token of the planted model: its end, its words, its fillers.
LETTERS = "." + string.ascii_uppercase + string.digits + "!#%&" + string.ascii_lowercase[:20]
GONE = Node("head", 9, 0)
M = np.random.default_rng(0).normal(size=(8, 4))


def one_line(message: str, attack: Callable[[], Any]) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        attack()
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def traced():
    return trace(planted(1), None, planted_pairs(1), allow_leaky=True)


@pytest.fixture(scope="module")
def effects(traced):
    return PathPatching(resamples=100).fit(traced.select(range(20)))


# -- arrays --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e200, 1e-200], ids=["huge", "tiny"])
def test_a_direction_does_not_depend_on_the_unit(unit: float) -> None:
    plain, scaled = steering_direction(M, 1), steering_direction(M * unit, 1)
    assert scaled.vector == pytest.approx(plain.vector, abs=1e-12)
    assert scaled.size == pytest.approx(plain.size * unit, rel=1e-12)
    drawn = [random_directions(M * one, 3, np.random.default_rng(0)) for one in (1, unit)]
    assert drawn[1] == pytest.approx(drawn[0], abs=1e-12)


def test_components_of_unlike_size_do_not_disturb_each_other() -> None:
    both = steering_direction(np.stack([M * 1e150, M * 1e-150]), 1)
    assert both.vector[0] == pytest.approx(both.vector[1], abs=1e-12)
    assert both.size[0] / 1e150 == pytest.approx(both.size[1] / 1e-150)


@pytest.mark.parametrize(
    ("message", "attack"),
    [
        ("changes: they are no array of real numbers", lambda: steering_direction(M * 1j, 1)),
        ("changes: they are no array of real numbers", lambda: steering_direction([["1", "2"]] * 3, 1)),
        ("changes: they are no array of real numbers", lambda: steering_direction([[1, 2], [3]], 0)),
        ("changes: they hold a number that is not finite", lambda: steering_direction(M * np.inf, 1)),
        ("rank is 1.5; choose from 0 to 3", lambda: steering_direction(M, 1.5)),  # type: ignore[arg-type]
        ("rank is True; choose from 0 to 3", lambda: steering_direction(M, True)),
        ("draws: it is -1; choose a whole number from 1", lambda: random_directions(M, -1, np.random.default_rng(0))),
        ("draws: it is 0;", lambda: random_directions(M, 0, np.random.default_rng(0))),
        (r"prompts have shape \(8, 4\), twins \(3, 4\)", lambda: intervened(M, M[:3], np.eye(4))),
        (r"basis: it has shape \(3, 1\); give \(8, 4\), or \(4, k\)", lambda: intervened(M, M, np.ones((3, 1)))),
        ("negative: they hold a number that is not finite", lambda: intervened(M, M * np.nan, np.eye(4))),
        ("basis: they are no array of real numbers", lambda: intervened(M, M, np.eye(4) * 1j)),
    ],
    ids=[
        "complex", "text", "ragged", "infinite", "half a rank", "true", "negative draws", "no draws", "fewer twins",
        "basis", "NaN", "complex basis",
    ],
)  # fmt: skip
def test_arrays_that_are_no_activations(message: str, attack: Callable[[], Any]) -> None:
    one_line(message, attack)


# -- settings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"threshold": float("nan")}, "threshold: it is nan; choose a number above 0 and below 1"),
        ({"threshold": "0.01"}, "threshold: it is '0.01'"),
        ({"level": 2}, "level: it is 2"),
        ({"path": "straight"}, "path: it is 'straight'; choose from direct, mlps, total"),
        ({"metric": "logits"}, "metric: it is 'logits'; choose from auto, "),
        ({"rank": 1.5}, "rank: it is 1.5; choose a whole number from 0"),
        ({"crossfit": 0}, "crossfit: it is 0"),
        ({"seed": -1}, "seed: it is -1"),
        ({"top": True}, "top: it is True"),
        ({"receivers": ("0.1.q",)}, r"receivers: it is \('0.1.q',\); give Receiver"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else None,
)
def test_a_setting_out_of_its_bounds(setting: dict[str, Any], message: str) -> None:
    one_line(message, lambda: PathPatching(**setting))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"steps": 1.5}, "training, steps: it is 1.5"),
        ({"rate": float("nan")}, "training, rate: it is nan"),
        ({"weight_decay": -1}, "training, weight_decay: it is -1"),
    ],
    ids=["steps", "rate", "decay"],
)
def test_a_training_out_of_its_bounds(setting: dict[str, Any], message: str) -> None:
    one_line(message, lambda: Training(**setting))


# -- parts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        lambda traced, effects: effects.of(GONE),
        lambda traced, effects: effects.along("direct", [GONE]),
        lambda traced, effects: effects.random_control([GONE], 2),
        lambda traced, effects: PathPatching().fit(traced, [GONE]),
        lambda traced, effects: effects_at(traced, [Place(GONE, -1)]),
        lambda traced, effects: targeted_mask(traced.lm, [GONE]),
        lambda traced, effects: patched(traced.lm, traced.positive, [Patch(GONE, torch.zeros(40, 16))]),
    ],
    ids=["of", "along", "random", "fit", "places", "mask", "patched"],
)
def test_a_head_that_the_model_has_not(traced, effects, attack: Callable[..., Any]) -> None:
    one_line(r"there is no 9\.0; choose parts of this model", lambda: attack(traced, effects))


def test_some_parts_have_the_effects_they_have_among_all(traced, effects) -> None:
    some = [Node("mlp", 1), Node("head", 0, 1)]
    alone = PathPatching(resamples=100).fit(traced.select(range(20)), some)
    assert list(alone.nodes) == some
    assert [alone.of(node) for node in some] == pytest.approx([effects.of(node) for node in some], abs=1e-6)


@pytest.mark.parametrize(
    ("message", "attack"),
    [
        ("no receiver is named", lambda traced, effects: effects.through([])),
        ("layer 7 is not from 0 to 1", lambda traced, effects: effects.through([Receiver(7, 0)])),
        ("kind: it is 'x'; choose from head, mlp, None", lambda traced, effects: effects.ranked("x")),
        ("by: it is 'x'; choose from drop, size", lambda traced, effects: effects.ranked(by="x")),
        ("draws: it is 0", lambda traced, effects: effects.random_control([Node("head", 0, 1)], 0)),
        ("token -1.5; count from the end", lambda traced, effects: effects_at(traced, [Place(Node("mlp", 0), -1.5)])),
        ("top_heads: it is 100; choose a whole number from 0 to 8",
         lambda traced, effects: targeted_mask(traced.lm, effects, top_heads=100)),
        (r"0\.1: the values have shape \(3, 16\); give \(40, 16\)",
         lambda traced, effects: patched(traced.lm, traced.positive, [Patch(Node("head", 0, 1), torch.zeros(3, 16))])),
        ("pairs: it is of type list; give Pairs", lambda traced, effects: trace(traced.lm, None, [])),
    ],
    ids=["no receiver", "layer", "kind", "by", "draws", "place", "top", "values", "list"],
)  # fmt: skip
def test_words_and_numbers_that_mean_nothing(traced, effects, message: str, attack: Callable[..., Any]) -> None:
    one_line(message, lambda: attack(traced, effects))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"positions": "first"}, "positions: it is 'first'; choose from end, all"),
        ({"draws": 0}, "draws: it is 0"),
        ({"steps": [0.5, 1]}, "steps: it is 0.5"),
        ({"steps": [-1, 0]}, "steps: it is -1"),
    ],
    ids=["positions", "draws", "half a step", "step below 0"],
)
def test_a_knock_out_that_cannot_be(traced, effects, setting: dict[str, Any], message: str) -> None:
    one_line(message, lambda: knock_out(traced.select(range(20, 40)), effects, **setting))


def test_a_knock_out_tells_models_apart_by_their_weights(traced, effects) -> None:
    """Two models of one class have one name, and one number of layers."""
    judged = range(20, 40)
    other = trace(planted(2), None, planted_pairs(2), allow_leaky=True).select(judged)
    assert other.lm.name == traced.lm.name
    one_line("other weights, .*, ranked them; judge the same model", lambda: knock_out(other, effects))
    again = trace(planted(1), None, planted_pairs(1), allow_leaky=True).select(judged)
    assert again.lm.model is not traced.lm.model
    found = knock_out(again, effects, steps=[0, 1], draws=2)
    assert found.right.mean(axis=1)[0] == 1 and found.right.mean(axis=1)[1] <= 0.1


# -- pairs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "attack"),
    [
        ("positive, row 1: it is .*; give token ids", lambda: Pairs.from_ids([[5.5, 6]], [[5, 6]], [1])),
        ("negative, row 2: it is .*; give token ids", lambda: Pairs.from_ids([[5]] * 2, [[5], ["a"]], [1, 1])),
        ("2 prompts, 2 twins, 2 answers, 2 foils, 1 units", lambda: Pairs.from_ids([[5]] * 2, [[6]] * 2, [1] * 2,
                                                                                   units=["a"])),
        ("a name is no text, or empty", lambda: Pairs.names(["", "b", "c", "d", "e"])),
        ("limit: it is -1; choose a whole number from 0", lambda: Pairs.names(limit=-1)),
        ("shots: it is 9; choose a whole number from 0 to ", lambda: Pairs.translation(shots=9)),
        ("words, entry 1: it is 'abc'", lambda: Pairs.translation(["abc"], target="Swahili")),
        ("words, entry 2: it is", lambda: Pairs.translation([("a", "b"), ("c", None)], target="Swahili")),
    ],
    ids=["float ids", "text ids", "few units", "name", "limit", "shots", "words", "no translation"],
)  # fmt: skip
def test_pairs_that_are_none(message: str, attack: Callable[[], Any]) -> None:
    one_line(message, attack)


def test_tokens_that_the_model_has_not(traced) -> None:
    def asked(**changes: Any) -> Callable[[], Any]:
        pairs = replace(planted_pairs(1).pairs[2], **changes)
        return lambda: trace(traced.lm, None, Pairs((*planted_pairs(1).pairs[:2], pairs)), keep_wrong=True)

    one_line("pair 3, its prompt: token id 700 is not from 0 to 60", asked(positive=(5, 6, 700)))
    one_line("pair 3, its twin: token id -6 is not", asked(negative=(5, -6, 7)))
    one_line("pair 3, its twin: 50 tokens, the model reads at most 32", asked(negative=(5,) * 50))
    one_line("pair 3: token 900 is not from 0 to 60; use this model's tokenizer", asked(answer=900))


def test_padding_that_no_mask_tells_of(traced) -> None:
    """The model knows its padding token where the caller did not say which it is."""
    model = copy.deepcopy(traced.lm.model)
    model.config.pad_token_id = 55
    lm = replace(traced.lm, model=model)

    def asked(**changes: Any) -> Callable[[], Any]:
        pairs = planted_pairs(1).pairs
        return lambda: trace(lm, None, Pairs((*pairs[:2], replace(pairs[2], **changes), *pairs[3:])), allow_leaky=True)

    one_line("pair 3, its prompt: it ends in the model's padding token 55; give .* masks", asked(positive=(5, 6, 55)))
    one_line("pair 3, its twin: it begins in the model's padding token 55;", asked(negative=(55, 6, 0)))
    model.config.bos_token_id = 55  # then a text begins so
    assert len(asked(negative=(55, 46, 0))()) == 40


def test_a_pair_given_again_counts_once(traced) -> None:
    pairs = planted_pairs(1)
    found = trace(traced.lm, None, Pairs((*pairs.pairs, *pairs.pairs[:7])), allow_leaky=True)
    assert len(found) == 40
    assert found.dropped == {"the same pair again": 7}
    again = replace(pairs.pairs[0], unit="another")
    assert trace(traced.lm, None, Pairs((*pairs.pairs, again)), allow_leaky=True).dropped == {"the same pair again": 1}


# -- the model of random weights -----------------------------------------------------------------------------------------


def test_a_random_twin_has_its_own_weights_of_the_size_they_had() -> None:
    lm = planted(1)
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}
    twin, same, other = random_twin(lm, 3), random_twin(lm, 3), random_twin(lm, 4)
    for name, value in lm.model.named_parameters():
        assert torch.equal(value, before[name])
        drawn = twin.model.get_parameter(name)
        assert torch.equal(drawn, same.model.get_parameter(name))
        assert drawn.data_ptr() != value.data_ptr() and drawn.requires_grad == value.requires_grad
        if value.ndim == 1 or not value.any():
            assert torch.equal(drawn, value)
        else:
            assert not torch.equal(drawn, other.model.get_parameter(name))
            size = value.square().mean().sqrt().item()
            assert drawn.square().mean().sqrt().item() == pytest.approx(size, rel=0.1)
            assert abs(drawn.mean().item()) < 0.2 * size + 1e-12


def test_tied_weights_stay_tied_in_the_random_twin() -> None:
    from tests.subjects.tiny_models import tiny

    model = random_twin(tiny("gemma3")).model
    assert model.lm_head.weight is model.model.embed_tokens.weight


# -- through the command -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted model with a tokenizer of one letter a token, as a folder."""
    return kept(tmp_path_factory.mktemp("planted"), planted(0).model)


def kept(folder: Path, model: Any) -> Path:
    """A model and that tokenizer, as a folder."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(WordLevel({letter: i for i, letter in enumerate(LETTERS)}, unk_token="t"))
    tokenizer.pre_tokenizer = Split(Regex(r"[\s\S]"), "isolated")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="t").save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def rows() -> list[dict[str, str]]:
    pairs = planted_pairs(0).pairs
    texts = [["".join(LETTERS[i] for i in ids) for ids in (pair.positive, pair.negative)] for pair in pairs]
    return [
        {"positive": positive, "negative": negative, "answer": LETTERS[pair.answer]}
        for (positive, negative), pair in zip(texts, pairs, strict=True)
    ]


def written(path: Path, given: list[dict[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, given[0])
        writer.writeheader()
        writer.writerows(given)
    return str(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given[:1] * 20, "1 pair is left (19: the same pair again), fewer than 10"),
        (lambda given: [row | {"unit": "x"} for row in given], "all 24 pairs have the unit 'x'"),
        (lambda given: [row | {"foil": " "} for row in given], "row 1: foil is ' '; give a text, or leave it empty"),
        (lambda given: [*given[:4], given[4] | {"positive": "a" * 99 + "."}, *given[5:]], "pair 5, its prompt: 100 tokens, the model reads at most 32"),
        (lambda given: [row | {"foil": row["answer"]} for row in given], "row 1: foil and answer are both "),
        (lambda given: [*given[:4], given[4] | {"negative": ""}, *given[5:]], "row 5: negative is "),
        (lambda given: [{"positive": row["positive"], "negative": "."} for row in given], "no column 'answer'"),
        (lambda given: [row | {"answer": row["answer"] * 2} for row in given], "no pair has an answer of one token"),
        (lambda given: [row | {"negative": row["positive"]} for row in given], "still answers 24 of 24 twins (100%)"),
        (lambda given: [row | {"answer": "#"} for row in given],
         "this model does not show the behaviour: none of 24 prompts is answered right; choose another model"),
        (lambda given: given[:7], "7 pairs are left (none was dropped), fewer than 10; give more pairs"),
    ],
    ids=[
        "repeated row", "one unit", "blank foil", "overlong prompt", "foil is the answer", "no twin", "no answers",
        "two tokens", "leaks", "no behaviour", "seven pairs",
    ],
)  # fmt: skip
def test_a_bad_table_ends_with_one_line(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[..., Any], message: str
) -> None:
    path = written(tmp_path / "pairs.csv", change(rows()))
    said = refused_by_command(
        capsys, tmp_path, "path-patching", "--model", str(saved), "--task", "table", "--table", path
    )
    assert message in said


def without_a_map() -> Any:
    from transformers import CTRLConfig, CTRLLMHeadModel

    words = len(LETTERS)
    return CTRLLMHeadModel(CTRLConfig(vocab_size=words, n_embd=8, dff=8, n_layer=1, n_head=2, n_positions=32))


def near_zero() -> Any:
    """The planted model with logits so small that none may stand below a line."""
    model = planted(0).model
    with torch.no_grad():
        model.lm_head.weight *= 1e-5
    return model


def quantised() -> Any:
    model = planted(0).model
    model.config.quantization_config = {"quant_method": "gptq", "bits": 4}
    return model


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (without_a_map, [], "there is no map of the architecture 'ctrl'; its modules: transformer(w, dropout, h[1]("),
        (near_zero, ["--metric", "relative_logit"], "near or below 0; choose centred_logit or logit_difference"),
        (quantised, ["--train", "5"], "its weights are quantised; name the unquantised model, or a .gguf file"),
    ],
    ids=["architecture", "relative logit", "quantised"],
)
def test_a_model_that_cannot_be_asked_ends_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: Callable[[], Any], more: list[str], message: str
) -> None:
    folder = kept(tmp_path / "model", model())
    table = written(tmp_path / "pairs.csv", rows())
    capsys.readouterr()  # what writing the model said
    asked = ["--model", str(folder), "--task", "table", "--table", table, *more]
    assert message in refused_by_command(capsys, tmp_path, "path-patching", *asked)


def test_an_empty_table_is_told(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("", encoding="utf-8")
    assert "the file is empty" in refused_by_command(
        capsys, tmp_path, "path-patching", "--model", str(saved), "--task", "table", "--table", str(path)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replica", "planted", "--source", "German"], 'source says nothing here; give task = "translation"'),
        (["--replica", "planted", "--pairs", "12"], "pairs says nothing here; give a model"),
        (["--replica", "planted", "--rate", "0.1"], "rate says nothing here; give train, the steps"),
        (["--replica", "planted", "--no-subspace", "--rank", "4"], "rank says nothing here; patch the subspace"),
        (
            ["--replica", "planted", "--receivers", "1.0.q", "--path", "total"],
            "path says nothing here; leave receivers",
        ),
        (["--replica", "planted", "--threshold", "nan"], "threshold"),
    ],
    ids=["source", "pairs", "rate", "rank", "path", "threshold"],
)
def test_a_setting_that_nothing_reads_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused_by_command(capsys, tmp_path, "path-patching", *arguments)


def test_what_was_left_out_and_one_whole_prompt_stand_in_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prompts in a template from a file, to a model stored in half precision; three of 24 rows cannot be used."""
    model, around, save = kept(tmp_path / "half", planted(0).model.bfloat16()), tmp_path / "around.txt", tmp_path / "it"
    given = rows()
    given[1]["answer"], given[2]["answer"], given[3]["answer"] = "AB", "xyz", "#"
    given[4]["answer"] = f" {given[4]['answer']} "  # a blank that no token has
    table = written(tmp_path / "pairs.csv", given)
    asked = ["--model", str(model), "--task", "table", "--table", table, "--wrap", f"@{around}"]
    around.write_text("no place for it", encoding="utf-8")
    capsys.readouterr()  # what writing the model said
    assert "{prompt}" in refused_by_command(capsys, tmp_path, "path-patching", *asked)
    around.write_text("ab{prompt}", encoding="utf-8")
    few = ["--resamples", "100", "--draws", "5", "--threshold", "0.0124", "--receivers", "1.0.q"]
    assert run(["ask", "path-patching", *asked, *few, "--seed", "0", "--save", str(save)]) == 0
    answer = Answer.load(save)
    assert answer.summary.startswith("None of 10 heads and MLPs carries over 0.0124 of")
    assert answer.summary.endswith("through 1.0.q.")
    assert answer.verdict.word == "undecided" and "one route of many" in answer.verdict.reason
    assert "--wrap 'ab{prompt}'" in answer.run.command  # what is asked again needs no file
    shown = dict(answer.tables["pairs"].frame.iter_rows())
    assert (
        shown["left out: the answer is not one token"] == "2" and shown["left out: the prompt is answered wrong"] == "1"
    )
    assert shown["pairs used"] == "21" and shown["prompts answered right"] == "21 of 22"
    assert (shown["first prompt"], shown["its twin"]) == ("ab" + given[0]["positive"], "ab" + given[0]["negative"])
    assert "The model is stored in bfloat16; it was read as float32." in answer.limits
