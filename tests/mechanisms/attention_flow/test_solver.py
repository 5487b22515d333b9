"""Attention flow against hand-worked examples, a graph library, exact fractions, every cut, and its own laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.mechanisms.attention_flow import attention_flow, attention_rollout, staircase_bound
from answerable.mechanisms.attention_flow.bounds import layer_bounds
from answerable.mechanisms.attention_flow.flows import flows_from
from answerable.mechanisms.attention_flow.network import Capacities, read_capacities, uniform_capacities
from tests.oracles.attention_flow import (
    flow_by_fractions,
    flow_by_networkx,
    least_cut_by_search,
    random_patterns,
)

FIRST = [[1, 0, 0], [0.5, 0.5, 0], [0.1, 0.1, 0.8]]
LAST = [[1, 0, 0], [0.9, 0.1, 0], [0.2, 0.5, 0.3]]


def capacities_of(layers, causal: bool) -> Capacities:
    """A network whose rows need not sum to 1, layer 1 first."""
    stack = np.ascontiguousarray(np.array(layers, float)[::-1])
    return Capacities(stack, causal, np.arange(stack.shape[1]), np.arange(1, len(stack) + 1), ())


def all_flows(capacities: Capacities, source: int) -> np.ndarray:
    singles = tuple((j,) for j in range(len(capacities.positions)))
    return flows_from(capacities, source, singles, 1).cut.sum(axis=1)


EITHER = st.booleans()


@st.composite
def patterns(draw, causal=EITHER, most_layers=5, most_tokens=7):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_layers, n = draw(st.integers(1, most_layers)), draw(st.integers(1, most_tokens))
    sparsity, power = draw(st.sampled_from([0.0, 0.3, 0.7])), draw(st.sampled_from([1.0, 4.0]))
    return random_patterns(rng, n_layers, n, draw(causal), sparsity, power)


# Worked by hand


@pytest.mark.parametrize(
    ("layers", "residual", "flow"),
    [
        ([FIRST, LAST], False, [0.8, 0.6, 0.3]),
        ([LAST, FIRST], False, [0.4, 0.6, 0.3]),
        ([FIRST, LAST], True, [0.4, 0.3, 0.65]),
        ([LAST, FIRST], True, [0.2, 0.3, 0.65]),
    ],
    ids=["plain", "layers swapped", "residual", "residual, layers swapped"],
)
def test_two_layers_by_hand(layers, residual: bool, flow: list[float]) -> None:
    found = attention_flow(layers, 2, residual=residual)
    assert found.flow == pytest.approx(flow, abs=1e-15)
    assert found.certified.all()


@pytest.mark.parametrize(("residual", "rollout"), [(False, [0.48, 0.28, 0.24]), (True, [0.195, 0.22, 0.585])])
def test_rollout_by_hand(residual: bool, rollout: list[float]) -> None:
    assert attention_rollout([FIRST, LAST], residual=residual)[2] == pytest.approx(rollout, abs=1e-15)
    assert attention_flow([FIRST, LAST], residual=residual).rollout == pytest.approx(rollout, abs=1e-15)


def test_the_staircase_may_cut_inside() -> None:
    first = [[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.2, 0.8, 0, 0], [0.2, 0.8, 0, 0]]
    last = [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0.1, 0.7, 0.1, 0.1]]
    network = capacities_of([first, np.tri(4), last], causal=True)
    assert all_flows(network, 3)[1] == pytest.approx(0.3, abs=1e-15)
    found = flows_from(network, 3, ((1,),), 1)
    assert found.cut[0] == pytest.approx([0.2, 0, 0.1], abs=1e-15)  # from the output down


def test_bidirectional_by_hand() -> None:
    first = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]]
    last = [[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.4, 0.4, 0.2]]
    found = attention_flow([first, last], 0, residual=False)
    assert found.flow == pytest.approx([0.6, 0.6, 0.8], abs=1e-15)
    assert found.rollout == pytest.approx([0.31, 0.26, 0.43], abs=1e-15)
    assert not found.causal


def test_a_single_layer_is_the_row_itself() -> None:
    found = attention_flow([LAST], residual=False)
    assert found.flow == pytest.approx([0.2, 0.5, 0.3], abs=1e-15)
    assert found.cut_layer.tolist() == [1, 1, 1]
    assert found.paths(1) == [(0.5, (2, 1))]


def test_one_token_gets_everything() -> None:
    assert attention_flow(np.ones((3, 1, 1))).flow.tolist() == [1.0]


def test_uniform_causal_attention_has_a_closed_form() -> None:
    n = 9
    uniform = uniform_capacities(4, n, residual=False, causal=True)
    assert attention_flow(uniform, residual=False).flow == pytest.approx((n - np.arange(n)) / n, abs=1e-12)


# Against others


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
def test_agrees_with_networkx(causal: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for turn in range(100):
        n_layers, n = int(rng.integers(1, 6)), int(rng.integers(1, 9))
        given = random_patterns(rng, n_layers, n, causal, float(rng.choice([0, 0.5, 0.8])), float(rng.integers(1, 5)))
        source, sink = int(rng.integers(n)), int(rng.integers(n))
        found = attention_flow(given, source, residual=False, causal=causal, null=False)
        expected = flow_by_networkx(given, source, sink, edmonds_karp=turn % 2 == 0)
        assert found.flow[sink] == pytest.approx(expected, abs=1e-12)
        assert found.certified.all()


def test_agrees_with_exact_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for causal in (True, False):
        for _ in range(10):
            n_layers, n = int(rng.integers(2, 5)), 4
            counts = rng.integers(0, 4, (n_layers, n, n))
            counts = np.tril(counts) if causal else counts
            exact = [[[Fraction(int(x), max(1, int(row.sum()))) for x in row] for row in layer] for layer in counts]
            given = np.array([[[float(x) for x in row] for row in layer] for layer in exact])
            flow = attention_flow(given, residual=False, null=False).flow
            for sink in range(n):
                assert flow[sink] == pytest.approx(float(flow_by_fractions(exact, n - 1, sink)), abs=1e-12)


def test_agrees_with_the_least_of_all_cuts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for causal in (True, False):
        given = random_patterns(rng, 3, 3, causal, 0.2)
        flow = attention_flow(given, 2, residual=False).flow
        for sink in range(3):
            assert flow[sink] == pytest.approx(least_cut_by_search(given, 2, sink), abs=1e-12)


def test_a_span_is_one_sink(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for causal in (True, False):
        given = random_patterns(rng, 4, 6, causal)
        found = attention_flow(given, residual=False, sinks=[[1, 3, 4], 2, [0, 5]])
        for number, members in enumerate([[1, 3, 4], [2], [0, 5]]):
            assert found.flow[number] == pytest.approx(flow_by_networkx(given, 5, members), abs=1e-12)
            assert sum(arc.capacity for arc in found.cut(number)) == pytest.approx(found.flow[number], abs=1e-12)
        assert found.sinks == ((1, 3, 4), (2,), (0, 5))


# Proofs


@settings(max_examples=60, deadline=None)
@given(patterns(), st.booleans())
def test_the_flow_is_feasible_and_the_cut_has_its_value(given_patterns, residual: bool) -> None:
    found = attention_flow(given_patterns, residual=residual, null=False)
    capacities = read_capacities(given_patterns, residual=residual).layers
    n = given_patterns.shape[1]
    for j in range(n):
        on_arcs = found.arcs(j)
        assert (on_arcs >= -1e-13).all() and (on_arcs <= capacities + 1e-15).all()
        into, out_of = on_arcs.sum(axis=1), on_arcs.sum(axis=2)  # into lower nodes, out of upper nodes
        assert into[1:] == pytest.approx(out_of[:-1], abs=1e-12)
        assert out_of[-1][n - 1] == pytest.approx(found.flow[j], abs=1e-12)
        assert into[0][j] == pytest.approx(found.flow[j], abs=1e-12)
        assert sum(arc.capacity for arc in found.cut(j)) == pytest.approx(found.flow[j], abs=1e-12)
        assert found.cut_capacity[j].sum() == pytest.approx(found.flow[j], abs=1e-12)
        assert separates(capacities, found.cut(j), n - 1, j)


def separates(capacities: np.ndarray, cut, source: int, sink: int) -> bool:
    """Whether nothing leads from the output to the input once the cut's arcs are gone."""
    left = capacities.copy()
    for arc in cut:
        left[arc.layer - 1, arc.query, arc.key] = 0
    reached = np.zeros(capacities.shape[1])
    reached[source] = 1
    for layer in left[::-1]:
        reached = (reached @ layer > 0).astype(float)
    return reached[sink] == 0


@settings(max_examples=30, deadline=None)
@given(patterns())
def test_paths_add_up_and_follow_arcs(given_patterns) -> None:
    found = attention_flow(given_patterns, null=False)
    capacities = read_capacities(given_patterns).layers
    for j in range(given_patterns.shape[1]):
        paths = found.paths(j, top=10_000)
        assert sum(path.flow for path in paths) == pytest.approx(found.flow[j], abs=1e-9)
        assert all(path.positions[0] == given_patterns.shape[1] - 1 and path.positions[-1] == j for path in paths)
        for path in paths:
            arcs = zip(capacities[::-1], path.positions, path.positions[1:], strict=False)
            assert all(layer[i, k] >= path.flow - 1e-12 for layer, i, k in arcs)
        assert found.paths(j, top=1) == paths[:1]


# Laws


@settings(max_examples=60, deadline=None)
@given(patterns(), st.booleans())
def test_rollout_below_flow_below_every_bound(given_patterns, residual: bool) -> None:
    found = attention_flow(given_patterns, residual=residual, null=False)
    capacities = read_capacities(given_patterns, residual=residual)
    last = len(found.flow) - 1
    assert (found.rollout <= found.flow + 1e-12).all()
    assert (found.flow <= staircase_bound(given_patterns, residual=residual) + 1e-12).all()
    assert (found.flow <= layer_bounds(capacities, last) + 1e-12).all()
    assert (found.flow <= capacities.layers[-1][last].sum() + 1e-12).all()
    assert (found.flow <= capacities.layers[0].sum(axis=0) + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(patterns(causal=st.just(True)))
def test_causal_windows(given_patterns) -> None:
    n = given_patterns.shape[1]
    middle = n // 2
    found = attention_flow(given_patterns, middle, residual=False, null=False)
    assert (found.flow[middle + 1 :] == 0).all()
    assert found.flow[middle] == pytest.approx(given_patterns[:, middle, middle].min(), abs=1e-12)
    with_residual = attention_flow(given_patterns, middle, null=False)
    assert with_residual.flow[middle] >= 0.5 - 1e-12
    assert (with_residual.cut_kind[middle + 1 :] == "none").all()


@settings(max_examples=40, deadline=None)
@given(patterns(causal=st.just(False)), st.randoms(use_true_random=False))
def test_permuting_tokens_permutes_flows(given_patterns, random) -> None:
    n = given_patterns.shape[1]
    order = list(range(n))
    random.shuffle(order)
    mixed = given_patterns[:, order][:, :, order]
    flow = attention_flow(given_patterns, order[0], causal=False, null=False).flow
    assert attention_flow(mixed, 0, causal=False, null=False).flow == pytest.approx(flow[order], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(patterns(causal=st.just(False)))
def test_reversing_every_arc_changes_no_value(given_patterns) -> None:
    n = given_patterns.shape[1]
    turned = np.transpose(given_patterns, (0, 2, 1))[::-1]
    forwards = all_flows(capacities_of(given_patterns, False), n - 1)
    for sink in range(n):
        backwards = flows_from(capacities_of(turned, False), sink, ((n - 1,),), 1).cut.sum()
        assert backwards == pytest.approx(forwards[sink], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(patterns())
def test_flows_of_one_output_sum_to_at_least_one_where_rows_do(given_patterns) -> None:
    dense = attention_flow(given_patterns, normalise=True, null=False)  # the residual gives empty rows a sum of 1
    assert 1 - 1e-12 <= dense.flow.sum() <= len(dense.flow) + 1e-12
    assert dense.share.sum() == pytest.approx(1)


def test_threads_and_order_change_no_bit(seed: int) -> None:
    given = random_patterns(np.random.default_rng(seed), 8, 40, True, power=3.0)
    one = attention_flow(given, residual=False, threads=1)
    for threads in (2, 5):
        many = attention_flow(given, residual=False, threads=threads)
        for part in ("flow", "lower", "upper", "cut_capacity", "cut_layer"):
            assert np.array_equal(getattr(one, part), getattr(many, part))
    backwards = attention_flow(given, residual=False, sinks=list(range(39, -1, -1)), threads=2)
    assert np.array_equal(backwards.flow[::-1], one.flow) and np.array_equal(backwards.lower[::-1], one.lower)


def test_several_outputs_make_a_table(seed: int) -> None:
    given = random_patterns(np.random.default_rng(seed), 3, 5, True)
    table = attention_flow(given, [0, -1, 2])
    assert table.flow.shape == (3, 5) and table.sources.tolist() == [0, 4, 2]
    assert np.array_equal(table.flow[1], attention_flow(given).flow)
    assert np.array_equal(table.null[2], attention_flow(given, 2).null)
    assert table.cut(1, source=4) == attention_flow(given).cut(1)


def test_the_null_is_uniform_attention(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for causal in (True, False):
        found = attention_flow(random_patterns(rng, 4, 6, causal), residual=True)
        uniform = uniform_capacities(4, 6, residual=False, causal=causal)
        expected = attention_flow(uniform, null=False).flow
        assert found.null == pytest.approx(expected, abs=1e-12)
        assert found.excess == pytest.approx(found.flow - expected, abs=1e-12)


def test_where_the_cut_lies() -> None:
    found = attention_flow([FIRST, LAST], residual=False)
    assert found.cut_kind.tolist() == ["ends", "sink", "source"]
    assert found.cut_layer.tolist() == [2, 1, 2]
    waist = attention_flow([np.tri(3) / [[1], [2], [3]], np.eye(3) * 0.1, np.tri(3) / [[1], [2], [3]]], residual=False)
    assert waist.cut_kind[0] == "inside" and waist.cut_layer[0] == 2


# Ways to read heads and layers


def test_heads_and_layers(seed: int) -> None:
    heads = np.stack([random_patterns(np.random.default_rng(seed + h), 4, 5, True) for h in range(3)], axis=1)
    by_mean = attention_flow(heads).flow
    assert by_mean == pytest.approx(attention_flow(heads.mean(axis=1)).flow, abs=1e-12)
    assert attention_flow(heads, heads=1).flow == pytest.approx(attention_flow(heads[:, 1]).flow, abs=1e-12)
    assert attention_flow(heads, heads=[0, 2]).flow == pytest.approx(
        attention_flow(heads[:, [0, 2]].mean(axis=1)).flow, abs=1e-12
    )
    largest = heads.max(axis=1)
    assert attention_flow(heads, heads="max").flow == pytest.approx(
        attention_flow(largest / largest.sum(axis=-1, keepdims=True)).flow, abs=1e-12
    )
    chosen = attention_flow(heads, layers=[2, 4])
    assert chosen.flow == pytest.approx(attention_flow(heads[[1, 3]]).flow, abs=1e-12)
    assert chosen.layers.tolist() == [2, 4] and set(chosen.cut_layer.tolist()) <= {2, 4}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_tensors_as_transformers_returns_them(dtype: str, seed: int) -> None:
    torch = pytest.importorskip("torch")
    given = random_patterns(np.random.default_rng(seed), 3, 5, True)
    tensors = tuple(torch.tensor(layer[None, None]).to(getattr(torch, dtype)).requires_grad_() for layer in given)
    tolerance = {"float64": 1e-12, "float32": 1e-6, "bfloat16": 0.02, "float16": 2e-3}[dtype]
    found = attention_flow(tensors, normalise=dtype in ("bfloat16", "float16"))
    assert found.flow == pytest.approx(attention_flow(given).flow, abs=tolerance)


def test_padding_is_left_out_and_named(seed: int) -> None:
    given = random_patterns(np.random.default_rng(seed), 3, 4, True)
    padded = np.zeros((3, 6, 6))
    padded[:, 2:, 2:] = given
    padded[:, :2] = np.nan
    found = attention_flow(padded)
    assert found.flow == pytest.approx(attention_flow(given).flow, abs=1e-12)
    assert found.positions.tolist() == [2, 3, 4, 5]
    assert found.notes == ("Positions 0, 1 hold only NaN (padding) and were left out.",)
    assert found.cut(3)[0].query == 5


# Intervals


@pytest.mark.parametrize("method", ["staircase", "compressed", "pruned"])
@settings(max_examples=25, deadline=None)
@given(patterns(most_layers=7), st.sampled_from([1e-3, 0.05, 0.3]), st.sampled_from([0.1, 0.5, 0.8]))
def test_intervals_hold_the_exact_flow(method: str, given_patterns, threshold: float, retain: float) -> None:
    exact = attention_flow(given_patterns, null=False).flow
    found = attention_flow(given_patterns, method=method, threshold=threshold, retain=retain, null=False)
    assert (found.lower <= exact + 1e-12).all() and (exact <= found.upper + 1e-12).all()
    assert (found.certified == (found.upper - found.lower <= 1e-12)).all()


def test_the_staircase_reads_only_the_ends(seed: int) -> None:
    given = random_patterns(np.random.default_rng(seed), 4, 6, True)
    given[1:3] *= 5  # rows that sum to 5 are refused wherever they are read
    bound = staircase_bound(given)
    assert bound == pytest.approx(staircase_bound(given[[0, 3]]), abs=1e-15)


def test_the_strongest_compression_is_the_staircase(seed: int) -> None:
    given = random_patterns(np.random.default_rng(seed), 6, 12, True)
    merged = attention_flow(given, method="compressed", retain=0.01)
    assert merged.upper == pytest.approx(staircase_bound(given), abs=1e-13)
