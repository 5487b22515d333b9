"""All that can be wrong with attention patterns ends in one line that names the place and the mend."""

from __future__ import annotations

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.mechanisms.attention_flow import attention_flow, attention_rollout, prune, staircase_bound

GOOD = np.tile(np.tri(3) / [[1], [2], [3]], (2, 1, 1))
HEADS = np.stack([GOOD, GOOD], axis=1)


def changed(array: np.ndarray, where: tuple, value: float) -> np.ndarray:
    copy = array.copy()
    copy[where] = value
    return copy


BAD = {
    "no attentions": (None, {}, r"attentions: there are no attention patterns \(None\).*attn_implementation=\"eager\""),
    "all None": ([None, None], {}, r"attentions: there are no attention patterns \(None\)"),
    "some None": ([GOOD[0], None, GOOD[0]], {}, r"attentions, layer 2: there is no attention pattern.*layers="),
    "no layer": ([], {}, "attentions: there is no layer; give at least one"),
    "no token": (np.zeros((2, 0, 0)), {}, r"attentions, layer 1: is empty \(shape \(0, 0\)\)"),
    "a number": (3.0, {}, "attentions: float is no list or array"),
    "a vector": ([np.ones(3)], {}, r"attentions, layer 1: has shape \(3,\)"),
    "words": ([[["a"]]], {}, "attentions, layer 1: holds .*, not real numbers"),
    "ragged": ([[[1.0], [1.0, 0.0]]], {}, "attentions, layer 1: rows differ in length"),
    "batch": (np.ones((1, 2, 1, 3, 3)), {}, r"attentions, layer 1: holds a batch of 2 texts; give one text"),
    "cross": ([np.ones((3, 4)) / 4], {}, "attentions, layer 1: has 3 queries and 4 keys; run the whole text at once"),
    "unequal": ([GOOD[0], np.eye(4)], {}, "layer 1 has 3 tokens and layer 2 has 4; give the patterns of one text"),
    "nan": (changed(GOOD, (1, 2, 0), np.nan), {}, "attentions, layer 2, row 2: nan stands in column 0; .*float32"),
    "nan head": (changed(HEADS, (0, 1, 1, 0), np.nan), {}, "attentions, layer 1, head 1, row 1: nan"),
    "inf": (changed(GOOD, (0, 1, 1), np.inf), {}, "attentions, layer 1, row 1: inf stands in column 1"),
    "all nan": (GOOD * np.nan, {}, "attentions: every row is NaN"),
    "negative": (changed(HEADS, (1, 0, 2, 1), -0.2), {}, "attentions, layer 2, head 0, row 2: -0.2 in column 1 is below 0"),
    "too much": (changed(GOOD, (0, 2, 2), 0.9), {}, "attentions, layer 1, row 2: the weights sum to 1.56667, more than 1.*normalise=True"),
    "looks ahead": (
        changed(GOOD, (1, 0, slice(None)), [0.5, 0, 0.5]),
        {"causal": True},
        "attentions, layer 2, row 0: 0.5 in column 2 looks ahead",
    ),
    "causal word": (GOOD, {"causal": "yes"}, "causal: 'yes' is neither"),
    "source": (GOOD, {"source": 3}, "source: position 3 lies outside the text; choose from 0 to 2, or -3 to -1"),
    "negative source": (GOOD, {"source": -4}, "source: position -4 lies outside the text"),
    "no source": (GOOD, {"source": []}, "source: no output is chosen"),
    "padded source": (changed(GOOD, (slice(None), 0), np.nan), {"source": 0}, "source: position 0 was left out as padding"),
    "sink": (GOOD, {"sinks": [[1, 7]]}, "sinks: position 7 lies outside the text"),
    "no sinks": (GOOD, {"sinks": []}, "sinks: no input is chosen"),
    "empty set": (GOOD, {"sinks": [0, []]}, "sinks, entry 1: the set is empty"),
    "layer": (GOOD, {"layers": [1, 3]}, "layers: there is no layer 3; choose from 1 to 2"),
    "layer 0": (GOOD, {"layers": [0]}, "layers: there is no layer 0; choose from 1 to 2"),
    "layers twice": (GOOD, {"layers": [2, 2]}, "layers: layer 2 follows layer 2; list each layer once"),
    "layers none": (GOOD, {"layers": []}, "layers: no layer is chosen"),
    "head": (HEADS, {"heads": 2}, "heads: there is no head 2 in layer 1; choose from 0 to 1"),
    "head word": (HEADS, {"heads": "min"}, "heads: 'min' is no way to join heads"),
    "no heads": (HEADS, {"heads": []}, "heads: no head is chosen"),
    "heads gone": (GOOD, {"heads": 0}, "attentions, layer 1: the patterns hold no separate heads"),
}  # fmt: skip


@pytest.mark.parametrize(("attentions", "options", "line"), BAD.values(), ids=BAD)
def test_bad_patterns_are_named_in_one_line(attentions, options: dict, line: str) -> None:
    with pytest.raises(BadInput, match=line) as caught:
        attention_flow(attentions, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [attention_rollout, staircase_bound, prune])
def test_every_door_checks(function) -> None:
    with pytest.raises(BadInput, match=r"attentions, layer 2, row 2: the weights sum to 1\.56667"):
        function(changed(GOOD, (1, 2, 2), 0.9))
    with pytest.raises(BadInput, match="there are no attention patterns"):
        function(None)


def test_too_much_can_be_divided() -> None:
    heavy = GOOD * 2
    assert attention_flow(heavy, normalise=True).flow == pytest.approx(attention_flow(GOOD).flow, abs=1e-12)


def test_too_little_is_allowed_and_noted() -> None:
    found = attention_flow(GOOD * 0.5, residual=False)
    assert found.flow == pytest.approx(attention_flow(GOOD, residual=False).flow * 0.5, abs=1e-12)
    assert found.notes == ("Some rows sum to less than 1 (least 0.5): the rest goes to a sink outside the text.",)


def test_rounding_above_one_is_taken_off() -> None:
    found = attention_flow(GOOD * 1.00005, residual=False)
    assert found.flow == pytest.approx(attention_flow(GOOD, residual=False).flow, abs=1e-12)


def test_a_sliding_window_is_fine() -> None:
    window = np.tril(np.triu(np.ones((6, 6)), -1))
    window /= window.sum(axis=1, keepdims=True)
    assert attention_flow(np.stack([window] * 2), residual=False).flow.tolist() == pytest.approx([0, 0, 0, 0.5, 1, 0.5])


def test_a_long_text_says_first_what_it_costs() -> None:
    n = 5000
    pattern = np.broadcast_to(np.float32(0), (n, n))
    with pytest.raises(
        BadInput, match=r"5,000 tokens in 3 layers make 37,507,500 arcs, 1 GB and about 2 minutes"
    ) as caught:
        attention_flow([pattern] * 3)
    assert 'method="staircase"' in str(caught.value)


def test_only_ends_have_no_paths() -> None:
    found = attention_flow(GOOD, method="staircase")
    for ask in (found.cut, found.arcs, found.paths):
        with pytest.raises(BadInput, match='only the first and last layer were read; ask with method="exact"'):
            ask(0)


def test_a_sink_that_does_not_exist() -> None:
    with pytest.raises(BadInput, match="there is no sink 5; choose from 0 to 2"):
        attention_flow(GOOD).cut(5)
    with pytest.raises(BadInput, match="several outputs were asked for; name one of them"):
        attention_flow(GOOD, [0, 1]).cut(0)
