"""Completions, redundancy and Shapley values of models with pairs against enumeration of all rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from answerable.explanations.additive_reasons import (
    complexity,
    count_completions,
    joint_redundancy,
    redundant_features,
    shapley_values,
)
from answerable.explanations.additive_reasons.elimination import MOST_PRODUCTS, certified, make_plan
from answerable.explanations.additive_reasons.joint import joint_at_least_zero, reduced, sampled
from answerable.explanations.additive_reasons.joint_model import grid_of, joint_of, own_rows
from answerable.explanations.additive_reasons.joint_shapley import (
    numbered,
    of_joint_class,
    of_joint_probability_over_rows,
    sampled_shapley,
)
from answerable.subjects.additive_model import AdditiveModel, Pair, Shape
from answerable.subjects.additive_model.distributions import cells
from answerable.subjects.additive_model.encoding import level_edges


def paired(rng: np.random.Generator, n: int, pairs: int, *, unit: float = 1.0, logit: bool = False) -> AdditiveModel:
    """Features of two or three levels and random weights; tables of small multiples of ``unit``."""
    sizes = rng.integers(2, 4, n)
    shapes = tuple(
        Shape.categories(f"f{j}", [f"v{k}" for k in range(size)], rng.integers(-4, 5, size) * unit,
                         weights=rng.integers(1, 4, size).astype(float))
        for j, size in enumerate(sizes)
    )  # fmt: skip
    joined = []
    for _ in range(pairs):
        first, second = rng.choice(n, 2, replace=False).tolist()
        table = rng.integers(-3, 4, (sizes[first] + 1, sizes[second] + 1, 1)) * unit
        joined.append(Pair(first, second, level_edges(sizes[first]), level_edges(sizes[second]), table))
    return AdditiveModel(
        shapes, np.array([rng.integers(-3, 4) * unit]), tuple(joined), task="binary", classes=("no", "yes"), logit=logit
    )


def all_rows(model: AdditiveModel) -> tuple[np.ndarray, np.ndarray]:
    """Every row and its probability."""
    rows = np.array(list(itertools.product(*(range(shape.n_pieces) for shape in model.features))), float)
    mass = np.ones(len(rows))
    for j, shape in enumerate(model.features):
        assert shape.weights is not None
        mass *= (shape.weights / shape.weights.sum())[rows[:, j].astype(int)]
    return rows, mass


def named(model: AdditiveModel, rows: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(
        {shape.name: [shape.levels[int(v)] for v in rows[:, j]] for j, shape in enumerate(model.features)}
    )


def expected(
    model: AdditiveModel, row: np.ndarray, fixed: tuple[int, ...], of: Callable[[np.ndarray], np.ndarray]
) -> float:
    """E of a function of the score, some features being the row's, by listing all rows."""
    rows, mass = all_rows(model)
    rows[:, fixed] = row[list(fixed)]
    return float(mass @ of(model.score(rows)[:, 0] - model.cutoff))


def by_orders(model: AdditiveModel, row: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Shapley values by listing all orders."""
    n = len(row)
    value = {
        fixed: expected(model, row, fixed, of)
        for size in range(n + 1)
        for fixed in itertools.combinations(range(n), size)
    }
    phi = np.zeros(n)
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        for place, i in enumerate(order):
            before = tuple(sorted(order[:place]))
            phi[i] += value[tuple(sorted((*before, i)))] - value[before]
    return phi / len(orders)


def decided(scores: np.ndarray) -> np.ndarray:
    return (scores >= 0).astype(float)


@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_completions_equal_enumeration(unit: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        model = paired(rng, int(rng.integers(2, 6)), int(rng.integers(1, 6)), unit=unit)
        rows, _ = all_rows(model)
        row = rows[rng.integers(len(rows))]
        known = sorted(rng.choice(len(row), int(rng.integers(0, len(row))), replace=False).tolist())
        found = count_completions(model, named(model, row[None]), [model.names[j] for j in known]).row(0, named=True)
        above = expected(model, row, tuple(known), decided)
        kept = above if model.decide(row[None])[0] else 1 - above
        assert found["low"] - 1e-12 <= kept <= found["high"] + 1e-12
        if unit == 1.0:
            assert found["probability"] == pytest.approx(kept, abs=1e-12)
            assert found["guarantee"] == "exact"


def test_certified_and_sampled_intervals_hold_the_exact_probability() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        model = paired(rng, 5, 5)
        joint = joint_of(model, grid_of(model), float(model.intercept[0]) + 0.5)
        exact = joint_at_least_zero(joint)
        assert exact.exact
        proved = certified(reduced(joint), width=0.01)
        assert proved is not None
        assert proved.low <= exact.value <= proved.high
        assert proved.engine == "ends" or proved.high - proved.low <= 0.01
        drawn = sampled(reduced(joint), seed=3)
        assert drawn.low - 1e-3 <= exact.value <= drawn.high + 1e-3


def test_each_engine_takes_over_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    import answerable.explanations.additive_reasons.elimination as elimination

    model = paired(np.random.default_rng(7), 6, 8, unit=1 / 3)
    joint = joint_of(model, grid_of(model), float(model.intercept[0]))
    assert joint_at_least_zero(joint).engine == "listed sums"
    assert joint_at_least_zero(joint, most_atoms=2, width=0.05).engine == "certified Fourier"
    monkeypatch.setattr(elimination, "MOST_PRODUCTS", 10)
    assert joint_at_least_zero(joint, most_atoms=2).engine == "sampled"


@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_class_shapley_values_equal_enumeration(unit: float) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20 if unit == 1.0 else 6):
        model = paired(rng, int(rng.integers(2, 5)), int(rng.integers(1, 5)), unit=unit)
        rows, _ = all_rows(model)
        row = rows[rng.integers(len(rows))]
        scores = model.score(rows)[:, 0]
        found = shapley_values(model, named(model, row[None]), output="class", width=0.05)
        if unit != 1.0 and np.abs(scores).min() < 1e-9:
            continue  # rounded thirds: a score of 0 is another number than 0
        gap = np.abs(found["shapley"].to_numpy() - by_orders(model, row, decided))
        assert (gap <= found["error"].to_numpy() + 1e-12).all()
        if unit == 1.0:
            assert found["error"].to_list() == [0.0] * len(row)
            assert found["engine"][0] in ("exact lattice", "one class everywhere")


def test_probability_shapley_values_equal_enumeration_and_add_up() -> None:
    rng = np.random.default_rng(5)
    for _ in range(25):
        model = paired(rng, int(rng.integers(2, 5)), int(rng.integers(1, 5)), unit=0.37, logit=True)
        rows, _ = all_rows(model)
        row = rows[rng.integers(len(rows))]
        found = shapley_values(model, named(model, row[None]), output="probability")
        assert found["shapley"].to_numpy() == pytest.approx(by_orders(model, row, expit), abs=1e-12)
        total = found["shapley"].sum() + found["base"][0]
        assert total == pytest.approx(expit(model.score(row[None])[0, 0]), abs=1e-12)


@pytest.mark.parametrize("listed", [True, False])
def test_probability_over_background_rows_is_the_mean_over_single_rows(
    listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import answerable.explanations.additive_reasons.joint_shapley as joint_shapley

    if not listed:
        monkeypatch.setattr(joint_shapley, "MOST_LISTED", 0)
    rng = np.random.default_rng(6)
    model = paired(rng, 4, 4, unit=0.41, logit=True)
    rows, _ = all_rows(model)
    own, *background = rows[rng.integers(len(rows), size=4)]
    grid = grid_of(model)
    (mine, *theirs) = own_rows(model, grid, np.array([own, *background]))
    joint = joint_of(model, grid, float(model.intercept[0]))
    found = of_joint_probability_over_rows(joint, mine, theirs)

    def value(fixed: tuple[int, ...], other: np.ndarray) -> float:
        mixed = other.copy()
        mixed[list(fixed)] = own[list(fixed)]
        return float(expit(model.score(mixed[None])[0, 0]))

    phi = np.zeros(4)
    orders = list(itertools.permutations(range(4)))
    for order, other in itertools.product(orders, background):
        for place, i in enumerate(order):
            phi[i] += value((*order[:place], i), other) - value(order[:place], other)
    assert found.values == pytest.approx(phi / len(orders) / len(background), abs=1e-11)


def test_sampled_shapley_values_keep_their_bound() -> None:
    rng = np.random.default_rng(8)
    model = paired(rng, 4, 4)
    rows, _ = all_rows(model)
    row = rows[5]
    grid = grid_of(model)
    joint, own = numbered(joint_of(model, grid, float(model.intercept[0])), own_rows(model, grid, row[None])[0])
    found = sampled_shapley(joint, own, decided, seed=1)
    assert found.engine == "sampled"
    assert (np.abs(found.values - by_orders(model, row, decided)) <= found.error).all()
    assert found.error.max() < 0.05


@pytest.mark.parametrize("tries", [0, 64])
@pytest.mark.parametrize("unit", [1.0, 1 / 3])
def test_redundancy_equals_enumeration(unit: float, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(joint_redundancy.joint_redundancies.__kwdefaults__, "tries", tries)
    rng = np.random.default_rng(9)
    words: list[str] = []
    for _ in range(80):
        model = paired(rng, int(rng.integers(2, 6)), int(rng.integers(1, 5)), unit=unit)
        rows, _ = all_rows(model)
        scores = model.score(rows)[:, 0]
        if unit != 1.0 and np.abs(scores).min() < 1e-9:
            continue
        found = redundant_features(model)
        for i, word in enumerate(found["answer"]):
            others = [j for j in range(len(model.names)) if j != i]
            classes: dict[bytes, set[bool]] = {}
            for rest, score in zip(rows[:, others], scores, strict=True):
                classes.setdefault(rest.tobytes(), set()).add(bool(score >= 0))
            assert word == ("matters" if any(len(seen) == 2 for seen in classes.values()) else "redundant")
            words.append(word)
    assert {"matters", "redundant"} <= set(words)


def test_bins_of_pairs_need_not_be_those_of_the_components() -> None:
    """Step functions with edges of their own: the even distribution over an interval, by a fine grid."""
    rng = np.random.default_rng(10)
    shapes = tuple(
        Shape.table(f"x{j}", [0.0, *np.sort(rng.random(4)), 1.0], rng.normal(size=5), low=0.0, high=1.0)
        for j in range(2)
    )
    edges = [np.array([-np.inf, *np.sort(rng.random(3)), np.inf]) for _ in range(2)]
    table = rng.normal(size=(5, 5, 1))
    model = AdditiveModel(
        shapes, np.array([0.1]), (Pair(0, 1, *edges, table),), task="binary", classes=("a", "b"), logit=True
    )
    middles = (np.arange(800) + 0.5) / 800
    grid = np.array(list(itertools.product(middles, middles)))
    share = float((model.score(grid)[:, 0] >= 0).mean())
    row = np.array([[0.3, 0.6]])
    found = count_completions(model, row, [], weights="uniform").row(0, named=True)
    kept = share if model.decide(row)[0] else 1 - share
    assert found["probability"] == pytest.approx(kept, abs=5e-3)
    score = shapley_values(model, row, weights="uniform")
    assert score["base"][0] == pytest.approx(float(model.score(grid)[:, 0].mean()), abs=5e-3)
    probability = shapley_values(model, row, output="probability", weights="uniform")
    assert probability["base"][0] == pytest.approx(float(expit(model.score(grid)[:, 0]).mean()), abs=5e-3)


def test_cells_spread_each_piece_over_its_length() -> None:
    shape = Shape.table("x", [-np.inf, 1.0, np.inf], [0.0, 5.0], low=0.0, high=4.0, weights=np.array([1.0, 3.0]))
    found = cells(shape, np.array([-np.inf, 2.0, np.inf]))
    assert found.at.tolist() == [0.5, 1.5, 3.0]
    assert found.probabilities == pytest.approx([0.25, 0.25, 0.5])
    open_ended = Shape.table("x", [-np.inf, 1.0, np.inf], [0.0, 5.0])
    assert cells(open_ended, np.array([-np.inf, np.inf])).probabilities.tolist() == [0.5, 0.5]


def test_a_chain_of_sixty_pairs_is_summed_along_its_graph() -> None:
    rng = np.random.default_rng(11)
    n = 60
    bit = [Shape.categories(f"f{j}", ["0", "1"], [0.0, rng.normal()], weights=np.ones(2)) for j in range(n)]
    joined = tuple(
        Pair(j, j + 1, level_edges(2), level_edges(2), 0.5 * rng.normal(size=(3, 3, 1))) for j in range(n - 1)
    )
    model = AdditiveModel(tuple(bit), np.zeros(1), joined, task="binary", classes=("0", "1"), logit=True)
    plan = make_plan([2] * n, [(j, j + 1) for j in range(n - 1)])
    assert plan.cells < 20 * n
    assert plan.cells * 30 * 256 < MOST_PRODUCTS
    X = pl.DataFrame({name: ["1"] for name in model.names})
    found = shapley_values(model, X, output="probability")
    total = found["shapley"].sum() + found["base"][0]
    assert total == pytest.approx(float(expit(model.score(np.ones((1, n)))[0, 0])), abs=1e-10)
    sure = count_completions(model, X, ["f0"], width=0.02).row(0, named=True)
    assert sure["engine"] == "certified Fourier"
    draws = model.score(rng.integers(0, 2, (20_000, n)).astype(float) * [0, *[1] * (n - 1)] + [1, *[0] * (n - 1)])
    share = float((draws >= 0).mean())
    kept = share if model.decide(np.ones((1, n)))[0] else 1 - share
    assert sure["low"] - 0.02 <= kept <= sure["high"] + 0.02


def test_missing_values_stand_in_their_own_row_of_a_table() -> None:
    shapes = (
        Shape.categories("a", ["u", "v"], [1.0, -1.0], weights=np.array([1.0, 1.0]), missing=np.array([-2.0]),
                         missing_weight=2.0),
        Shape.categories("b", ["u", "v"], [0.5, -0.5], weights=np.ones(2)),
    )  # fmt: skip
    table = np.array([[0.0, 3.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])[:, :, None]
    model = AdditiveModel(
        shapes, np.zeros(1), (Pair(0, 1, level_edges(2), level_edges(2), table),), task="binary", classes=("0", "1")
    )
    # a missing half of the time: with b = u the score is 1.5, with b = v it is -1.5; u u 1.5, u v 0.5, v u -0.5, v v -1.5
    found = count_completions(model, pl.DataFrame({"a": ["u"], "b": ["u"]}), [])
    assert found["probability"].to_list() == [0.5]
    score = shapley_values(model, pl.DataFrame({"a": [None], "b": ["u"]}))
    assert score["shapley"].sum() + score["base"][0] == pytest.approx(1.5)
    assert redundant_features(model)["answer"].to_list() == ["matters", "matters"]


def test_the_engines_of_pairs_are_named() -> None:
    words = complexity(paired(np.random.default_rng(12), 3, 2, logit=True))
    by_query = dict(zip(words["query"], words["guarantee"], strict=True))
    assert by_query["completions"] == "exact, interval or sampled"
    assert by_query["redundancy"] == "exact or unknown"
    assert by_query["Shapley values of the probability"] == "exact to rounding or sampled"


def test_one_class_everywhere() -> None:
    model = paired(np.random.default_rng(13), 3, 2)
    sure = AdditiveModel(model.features, np.array([100.0]), model.pairs, task="binary", classes=("0", "1"))
    rows, _ = all_rows(sure)
    assert set(redundant_features(sure)["answer"]) == {"redundant"}
    assert count_completions(sure, named(sure, rows[:1]), [])["probability"].to_list() == [1.0]
    grid = grid_of(sure)
    found = of_joint_class(joint_of(sure, grid, 100.0), own_rows(sure, grid, rows[:1])[0])
    assert found.engine == "one class everywhere"
    assert found.values.tolist() == [0.0] * 3
