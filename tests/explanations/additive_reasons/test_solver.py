"""Every query against enumeration on a thousand random table models, the worked values, and what the paper has wrong."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.explanations.additive_reasons import (
    Component,
    at_least_zero,
    cheapest_cover,
    minimal_reasons,
    of_class,
    of_probability,
    of_probability_over_rows,
    of_score,
    reasons,
    redundancies,
    sufficient,
    tie_class,
)
from tests.oracles import additive_reasons as oracle

N_MODELS = 1000


def arrays(model: oracle.TableModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = np.array([[part[k] for part, k in zip(model.levels, model.row, strict=True)]], float)
    return own, np.array([min(part) for part in model.levels], float), np.array([max(p) for p in model.levels], float)


def components(model: oracle.TableModel) -> list[Component]:
    return [
        Component(np.array(part, float), np.array([float(p) for p in masses]))
        for part, masses in zip(model.levels, model.probabilities, strict=True)
    ]


@pytest.fixture(scope="module")
def models() -> list[oracle.TableModel]:
    rng = np.random.default_rng(1)
    return [oracle.random_table_model(rng) for _ in range(N_MODELS)]


def test_the_random_models_have_both_classes_ties_and_scores_of_zero(models: list[oracle.TableModel]) -> None:
    scores = np.array([oracle.score(model, model.row) for model in models])
    assert (scores >= 0).mean() == pytest.approx(0.5, abs=0.15)
    assert (scores == 0).sum() > 30
    assert sum(len(oracle.smallest_reasons(model)) > 1 for model in models[:200]) > 20


# thirds have no finite binary fraction: the same models times 1/3 go through the rounding of real sums
@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_reasons_and_changes_equal_enumeration(models: list[oracle.TableModel], unit: float) -> None:
    for model in models:
        own, low, high = arrays(model)
        if unit != 1.0 and oracle.score(model, model.row) == 0:
            continue  # the sum of rounded thirds is another number than 0; fractions of the doubles decide, tested below
        found = reasons(own * unit, low * unit, high * unit, model.offset * unit)
        smallest = oracle.smallest_reasons(model)
        change = oracle.smallest_change(model)
        if unit == 1.0:
            assert found.reason_size[0] == len(smallest[0])
            assert tuple(np.flatnonzero(found.reason()[0])) in smallest
            assert found.change_size[0] == (-1 if change is None else change)
            assert not found.borderline[0]
        else:
            worst = [oracle.score(model, row) for row in oracle.completions(model, [])]
            if 0 not in worst:
                assert found.reason_size[0] == len(smallest[0])
                assert found.change_size[0] == (-1 if change is None else change)


def test_a_change_flips_and_a_smaller_one_does_not(models: list[oracle.TableModel]) -> None:
    for model in models:
        own, low, high = arrays(model)
        found = reasons(own, low, high, model.offset)
        if found.change_size[0] < 0:
            continue
        worst = low if found.positive[0] else high
        flipped = np.where(found.change()[0], worst, own[0]).sum() + model.offset
        assert (flipped >= 0) != found.positive[0]
        fewer = [np.isin(np.arange(own.size), one) for one in oracle.subsets(own.size, int(found.change_size[0]) - 1)]
        kept = np.where(fewer, worst, own[0]).sum(axis=1) + model.offset
        assert ((kept >= 0) == found.positive[0]).all()


def test_minimal_reasons_are_all_there_are(models: list[oracle.TableModel]) -> None:
    """Every sufficient set none of whose features can be left out, by enumeration of sets and completions."""
    for model in models[:400]:
        own, low, high = arrays(model)
        found = [set(chosen) for chosen, _ in minimal_reasons(own[0], low, high, float(model.offset))]
        n = len(model.levels)
        sets = [set(chosen) for size in range(n + 1) for chosen in oracle.subsets(n, size)]
        enough = [chosen for chosen in sets if oracle.is_sufficient(model, sorted(chosen))]
        minimal = [chosen for chosen in enough if not any(other < chosen for other in enough)]
        assert len(found) == len(minimal) and all(chosen in minimal for chosen in found)
        assert len(found[0]) == min(map(len, minimal))


def test_many_minimal_reasons_are_listed_one_after_the_other() -> None:
    """Of 40 features, any 20 of which settle it, there are 10^11 reasons: the first thousand come at once."""
    one = np.ones(40)
    listed = list(itertools.islice(minimal_reasons(one, -one, one, 0.0), 1000))
    assert {len(chosen) for chosen, _ in listed} == {20} and len({chosen for chosen, _ in listed}) == 1000
    assert all(slack == 0 for _, slack in listed)
    held = list(itertools.islice(minimal_reasons(one, -one, one, 0.0, frozen=range(30)), 1000))
    assert held == [((), 20.0)]


def test_sufficiency_of_every_set_equals_enumeration(models: list[oracle.TableModel]) -> None:
    for model in models[:300]:
        own, low, high = arrays(model)
        n = len(model.levels)
        for size in range(n + 1):
            for fixed in oracle.subsets(n, size):
                mask = np.isin(np.arange(n), fixed)
                assert sufficient(own, low, high, model.offset, mask)[0][0] == oracle.is_sufficient(model, fixed)


# thirds round, so that ties and scores of 0 are decided in fractions of the doubles
@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_core_and_replaceable_features_equal_enumeration(models: list[oracle.TableModel], unit: float) -> None:
    for model in models if unit == 1.0 else models[:400]:
        own, low, high = (part * unit for part in arrays(model))
        offset = model.offset * unit
        rounded = model._replace(
            offset=oracle.Fraction(offset), levels=[[oracle.Fraction(v * unit) for v in part] for part in model.levels]
        )
        found = reasons(own, low, high, offset)
        core, some = tie_class(found, own, low, high, offset)
        smallest = [set(reason) for reason in oracle.smallest_reasons(rounded)]
        assert set(np.flatnonzero(core[0])) == set.intersection(*smallest)
        assert set(np.flatnonzero(some[0])) == set.union(*smallest)


def test_a_frozen_feature_is_in_no_smallest_reason(models: list[oracle.TableModel]) -> None:
    for model in models[:200]:
        own, low, high = arrays(model)
        found = reasons(own, low, high, model.offset, frozen=[0])
        held = model._replace(levels=[[model.levels[0][model.row[0]]], *model.levels[1:]], row=(0, *model.row[1:]))
        core, some = tie_class(found, own, low, high, model.offset, frozen=[0])
        smallest = [set(reason) for reason in oracle.smallest_reasons(held)]
        assert set(np.flatnonzero(core[0])) == set.intersection(*smallest)
        assert set(np.flatnonzero(some[0])) == set.union(*smallest)


def test_counted_completions_equal_enumeration(models: list[oracle.TableModel]) -> None:
    for model in models:
        own, _, _ = arrays(model)
        fixed = [j for j in range(len(model.levels)) if j % 2 == 0]
        parts = components(model)
        offset = model.offset + own[0, fixed].sum()
        found = at_least_zero([part for j, part in enumerate(parts) if j not in fixed], offset)
        kept = found.value if oracle.decided(model, model.row) else 1 - found.value
        assert kept == pytest.approx(float(oracle.probability_kept(model, fixed)), abs=1e-12)
        assert found.exact


def test_shapley_values_equal_enumeration(models: list[oracle.TableModel]) -> None:
    for model in models[:400]:
        own, _, _ = arrays(model)
        parts = components(model)
        by_class = of_class(own[0], parts, model.offset)
        assert by_class.values == pytest.approx(oracle.shapley(model, lambda s: float(s >= 0)), abs=1e-12)
        assert by_class.values.sum() + by_class.base == pytest.approx(
            float(oracle.decided(model, model.row)), abs=1e-12
        )
        means = np.array([part.values @ part.probabilities for part in parts])
        assert of_score(own, means)[0] == pytest.approx(oracle.shapley(model, float), abs=1e-12)


def sigmoid(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def test_probability_shapley_values_equal_enumeration(models: list[oracle.TableModel]) -> None:
    for model in models[:200]:
        own, _, _ = arrays(model)
        found = of_probability(own[0], components(model), model.offset)
        assert found.values == pytest.approx(oracle.shapley(model, sigmoid), abs=1e-12)
        own_probability = sigmoid(oracle.score(model, model.row))
        assert found.values.sum() + found.base == pytest.approx(own_probability, abs=1e-12)


# 6 features are listed set by set, 600 times larger ones without products of exponentials, 16 by frequencies
@pytest.mark.parametrize(("n", "scale"), [(6, 3.0), (6, 400.0), (16, 1.0)])
def test_probability_over_rows_is_the_mean_over_single_rows(n: int, scale: float) -> None:
    rng = np.random.default_rng(2)
    own, background = rng.normal(size=n) * scale, rng.normal(size=(70, n)) * scale
    found = of_probability_over_rows(own, background, 0.4)
    each = [of_probability(own, [Component(np.array([v]), np.ones(1)) for v in row], 0.4) for row in background]
    assert found.values == pytest.approx(np.mean([one.values for one in each], axis=0), abs=1e-12)
    assert found.base == pytest.approx(np.mean([one.base for one in each]), abs=1e-12)


def test_scores_far_from_zero_have_their_probability() -> None:
    for offset in (-300.0, -80.0, 80.0, 300.0):
        found = of_probability(np.array([1.0, 2.0]), [Component(np.array([0.0, 3.0]), np.full(2, 0.5))] * 2, offset)
        assert found.values == pytest.approx([0, 0], abs=1e-13)
        assert found.base == pytest.approx(float(offset > 0), abs=1e-13)


def test_redundancy_equals_enumeration(models: list[oracle.TableModel]) -> None:
    words = []
    for model in models:
        levels = [np.unique(np.array(part, float)) for part in model.levels]
        found = redundancies(levels, [False] * len(levels), model.offset)
        for i, one in enumerate(found):
            assert one.word == ("redundant" if oracle.is_redundant(model, i) else "matters")
            words.append((one.word, one.proof))
    assert ("redundant", "listed sums") in words  # beyond what the ends prove


def test_redundancy_without_a_lucky_witness_is_decided_by_lists() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        model = oracle.random_table_model(rng)
        levels = [np.unique(np.array(part, float)) for part in model.levels]
        for i, one in enumerate(redundancies(levels, [False] * len(levels), model.offset, tries=0)):
            assert one.word == ("redundant" if oracle.is_redundant(model, i) else "matters")


# The paper's Lemma 7 says: redundant if and only if the component is identically 0.
def test_lemma_7_as_printed_is_wrong() -> None:
    unit, constant = np.array([0.0, 1.0]), np.array([0.25, 0.25])
    found = redundancies([unit, constant], [True, True], -0.5)
    assert [one.word for one in found] == ["matters", "redundant"]  # a constant component that is not 0
    found = redundancies([unit, unit], [True, True], 1.0)
    assert [one.word for one in found] == ["redundant", "redundant"]  # one class everywhere


def test_a_feature_may_be_redundant_over_levels_and_matter_between_them() -> None:
    parts = [np.array([0.0, 2.0]), np.array([0.0, 2.0]), np.array([0.0, 1.0])]
    assert [r.word for r in redundancies(parts, [False] * 3, -2.0)] == ["matters", "matters", "redundant"]
    assert [r.word for r in redundancies(parts, [True] * 3, -2.0)] == ["matters"] * 3


WORKED = oracle.TableModel(
    -2,
    [[-3, 0, 4], [-2, 5], [-1, 1, 2, -4], [0, 3]],
    [[oracle.Fraction(1, k)] * k for k in (3, 2, 4, 2)],
    (2, 0, 1, 1),
)


def test_the_worked_example() -> None:
    own, low, high = arrays(WORKED)
    found = reasons(own, low, high, -2.0)
    assert found.score[0] == 4
    assert set(np.flatnonzero(found.reason()[0])) == {0, 2}
    assert found.change_size[0] == 1
    parts = components(WORKED)
    assert at_least_zero(parts, -2.0).value == pytest.approx(27 / 48, abs=1e-15)
    by_class = of_class(own[0], parts, -2.0)
    assert by_class.values == pytest.approx([0.295139, -0.149306, 0.218750, 0.072917], abs=5e-7)
    means = np.array([part.values @ part.probabilities for part in parts])
    assert of_score(own, means)[0] == pytest.approx([11 / 3, -3.5, 1.5, 1.5])


def test_the_majority_of_three_fair_bits() -> None:
    bit = Component(np.array([0.0, 1.0]), np.full(2, 0.5))
    assert of_class(np.array([1.0, 1.0, 0.0]), [bit] * 3, -2.0).values == pytest.approx([1 / 3, 1 / 3, -1 / 6])


# The paper tests whether a class is kept by the sign of a product, which a score of exactly 0 defeats.
@pytest.mark.parametrize(
    ("own", "offset", "size", "change"),
    [([1.0, -1.0], 0.0, 1, 1), ([1.0, 1.0], -2.0, 2, 1), ([-1.0, 1.0], -1.0, 1, 1), ([-1.0, -1.0], 0.0, 2, 1)],
)
def test_ties_at_zero(own: list[float], offset: float, size: int, change: int) -> None:
    found = reasons(np.array([own]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]), offset)
    model = oracle.TableModel(
        int(offset), [[-1, 1], [-1, 1]], [[oracle.Fraction(1, 2)] * 2] * 2, tuple(int(v > 0) for v in own)
    )
    assert found.reason_size[0] == len(oracle.smallest_reasons(model)[0]) == size
    assert found.change_size[0] == oracle.smallest_change(model) == change


def test_a_score_within_rounding_of_the_line_is_decided_in_fractions() -> None:
    own = np.array([[0.1, 0.2, -0.3]])  # sums to 2.8e-17 in fractions of the doubles, to 5.6e-17 in doubles
    found = reasons(own, np.array([0.0, 0.0, -0.3]), np.array([0.1, 0.2, 0.0]), 0.0)
    assert found.borderline[0]
    assert found.positive[0]
    below = np.array([[0.1, 0.2, -0.3, -2.7755575615628914e-17]])
    at_zero = reasons(below, np.array([0.0, 0.0, -0.3, -1.0]), np.zeros(4), 0.0)
    assert at_zero.borderline[0]
    assert at_zero.positive[0] == (sum(map(oracle.Fraction, below[0])) >= 0)


def test_frozen_features_are_never_changed_and_always_known() -> None:
    own, low, high = np.array([[5.0, 1.0, 1.0]]), np.full(3, -5.0), np.full(3, 5.0)
    found = reasons(own, low, high, 0.0, frozen=[0])
    assert not found.change()[0, 0]
    assert found.change_size[0] == 2
    assert not reasons(own, np.array([-5.0, 0.0, 0.0]), high, 0.0, frozen=[0]).reason_size[0]


def test_the_certified_interval_holds_the_exact_value() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        parts = [Component(rng.normal(size=6), rng.dirichlet(np.ones(6))) for _ in range(int(rng.integers(2, 7)))]
        offset = float(rng.normal())
        exact = at_least_zero(parts, offset)
        certified = at_least_zero(parts, offset, most_atoms=1, width=0.01)
        assert exact.exact
        if certified.engine == "certified Fourier":
            assert certified.low <= exact.value <= certified.high
            assert certified.high - certified.low < 0.2


EIGHTHS = st.integers(-80, 80).map(lambda whole: whole / 8)  # sums of such are exact, and often 0
PARTS = st.lists(st.lists(st.tuples(EIGHTHS, st.integers(1, 9)), min_size=1, max_size=4), min_size=1, max_size=5)


@given(
    drawn=PARTS, offset=EIGHTHS, scale=st.sampled_from([2.0**-20, 1.0, 2.0**20]), terms=st.sampled_from([8, 64, 512])
)
@settings(max_examples=150, deadline=None)
def test_no_model_escapes_its_certified_interval(
    drawn: list[list[tuple[float, int]]], offset: float, scale: float, terms: int
) -> None:
    """Ties, sums of exactly 0, single levels and any scale included; every sum is listed to check."""
    exact = Fraction(0)
    for levels in itertools.product(*drawn):
        mass = math.prod(
            Fraction(weight, sum(w for _, w in part)) for (_, weight), part in zip(levels, drawn, strict=True)
        )
        exact += mass * (sum(value for value, _ in levels) + offset >= 0)
    parts = [
        Component(
            np.array([value * scale for value, _ in part]), np.array([w for _, w in part]) / sum(w for _, w in part)
        )
        for part in drawn
    ]
    for most_atoms, most_terms in ((10_000, terms), (1, terms)):
        found = at_least_zero(parts, offset * scale, most_atoms=most_atoms, width=1e-6, most_terms=most_terms)
        assert found.low - 1e-12 <= exact <= found.high + 1e-12
        assert not found.exact or abs(found.value - exact) < 1e-12


def test_the_certified_class_shapley_values_hold_the_exact_ones() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        model = oracle.random_table_model(rng, most_features=4)
        own, _, _ = arrays(model)
        shifted = model.offset + math.sqrt(2) / 1000  # no lattice any more, and no sum at 0
        parts = components(model)
        found = of_class(own[0], parts, shifted, most_terms=1024)
        exact = oracle.shapley(model, lambda s: float(s + math.sqrt(2) / 1000 >= 0))
        assert (np.abs(found.values - exact) <= found.error + 1e-12).all()


def test_twenty_features_of_256_levels_are_certified_within_a_thousandth() -> None:
    rng = np.random.default_rng(6)
    parts = [Component(rng.normal(size=256), np.full(256, 1 / 256)) for _ in range(20)]
    found = at_least_zero(parts, 0.3, width=1e-2)
    assert found.engine == "certified Fourier"
    assert found.high - found.low <= 1e-2
    draws = sum(rng.choice(part.values, 200_000) for part in parts) + 0.3
    assert abs((draws >= 0).mean() - found.value) < 4 * math.sqrt(0.25 / 200_000)


def test_the_cheapest_cover_equals_enumeration() -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        n, rows = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        weights = rng.integers(0, 6, (rows, n)).astype(float)
        demands, costs = rng.integers(0, 12, rows).astype(float), rng.integers(1, 5, n).astype(float)
        for strict in (False, True):
            found = cheapest_cover(weights, demands, costs, strict=strict)
            masks = np.array(list(np.ndindex(*(2,) * n)), bool)
            totals = masks @ weights.T
            met = (totals > demands if strict else totals >= demands).all(axis=1)
            if not met.any():
                assert not found.feasible
                continue
            assert found.proved
            assert found.cost == min(costs @ mask for mask in masks[met])
            assert costs @ found.chosen == found.cost


def test_a_search_that_is_cut_short_says_so() -> None:
    rng = np.random.default_rng(8)
    weights = rng.integers(1000, 2000, (2, 40)).astype(float)
    weights[1] = 3000 - weights[0]
    found = cheapest_cover(weights, weights.sum(axis=1) / 2 + 0.5, most_nodes=20)
    assert found.feasible
    assert found.bound <= found.cost


def test_rows_are_solved_alike_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(9)
    own = rng.normal(size=(5000, 12))
    low, high = own.min(axis=0), own.max(axis=0)
    one, four = reasons(own, low, high, 0.1), reasons(own, low, high, 0.1, threads=4)
    for a, b in zip(one, four, strict=True):
        assert np.array_equal(a, b)


def test_many_features_are_sorted_as_few_are() -> None:
    rng = np.random.default_rng(11)
    own = rng.integers(-3, 4, (50, 100)).astype(float)
    low, high = np.full(100, -3.0), np.full(100, 3.0)
    found = reasons(own, low, high, 0.5)
    for row in range(50):
        excess = own[row] - low if found.positive[row] else high - own[row]
        assert found.order[row].tolist() == sorted(range(100), key=lambda j: (-excess[j], j))
        side = abs(own[row].sum() + 0.5)
        losses = np.cumsum(np.sort(excess))
        assert found.reason_size[row] == 100 - (losses <= side if found.positive[row] else losses < side).sum()


def test_more_features_than_their_numbers_can_count_are_refused() -> None:
    n = 2**16
    own = np.zeros((1, n + 1))
    own[0, [3, n - 1]] = 2.0, 5.0
    found = reasons(own[:, :-1], np.zeros(n), own[0, :-1], -6.0)
    assert np.flatnonzero(found.reason()[0]).tolist() == [3, n - 1]
    assert np.flatnonzero(found.change()[0]).tolist() == [n - 1]
    with pytest.raises(BadInput, match="contributions: there are 65,537 features; give at most 65,536"):
        reasons(own, np.zeros(n + 1), own[0], -6.0)


BAD_COMPONENTS = [
    (Component(np.array([0.0, 1.0]), np.array([0.5, 0.4])), "component 2: its probabilities sum to 0.9"),
    (
        Component(np.array([0.0, 1.0]), np.array([1.5, -0.5])),
        "component 2: its probabilities sum to 1, or one is negative",
    ),
    (
        Component(np.array([0.0, np.nan]), np.array([0.5, 0.5])),
        "component 2: 2 values with 2 probabilities; give finite",
    ),
    (Component(np.array([0.0, 1.0]), np.array([1.0])), "component 2: 2 values with 1 probabilities"),
]


@pytest.mark.parametrize(("bad", "line"), BAD_COMPONENTS)
def test_what_is_no_distribution_is_refused(bad: Component, line: str) -> None:
    good = Component(np.array([-1.0, 1.0]), np.full(2, 0.5))
    for call in (
        lambda: at_least_zero([good, bad]),
        lambda: of_class(np.zeros(2), [good, bad], 0.0),
        lambda: of_probability(np.zeros(2), [good, bad], 0.0),
    ):
        with pytest.raises(BadInput) as raised:
            call()
        assert line in str(raised.value)
