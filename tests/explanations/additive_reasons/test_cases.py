"""Pairs, several classes, regressions and costs against enumeration; the certificates of every case."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.explanations.additive_reasons import (
    all_reasons,
    check,
    complexity,
    count_completions,
    explain,
    is_sufficient,
    minimum_change,
    minimum_sufficient_reason,
    redundant_features,
    shapley_values,
)
from answerable.explanations.additive_reasons.cases import cases, sufficiency
from answerable.explanations.additive_reasons.smallest_sets import cheapest_hit, smallest_set
from answerable.subjects.additive_model import AdditiveModel, Pair, Shape
from answerable.subjects.additive_model.encoding import level_edges

Decide = Callable[[np.ndarray], bool]


def whole_tables(
    rng: np.random.Generator, n: int, outputs: int = 1, pairs: int = 0, task: str = "binary"
) -> AdditiveModel:
    sizes = rng.integers(2, 4, n)
    shapes = [
        Shape.table(f"f{j}", level_edges(k), rng.integers(-4, 5, (k, outputs)), low=0, high=k - 1, integer=True)
        for j, k in enumerate(sizes)
    ]
    joined = []
    for _ in range(pairs):
        first, second = sorted(rng.choice(n, 2, replace=False).tolist())
        values = rng.integers(-3, 4, (sizes[first] + 1, sizes[second] + 1, outputs)).astype(float)
        joined.append(Pair(first, second, level_edges(sizes[first]), level_edges(sizes[second]), values))
    return AdditiveModel(
        tuple(shapes), rng.integers(-3, 4, outputs), tuple(joined), task=task,  # type: ignore[arg-type]
        classes=tuple(str(c) for c in range(max(outputs, 2))) if task != "regression" else (),
    )  # fmt: skip


def all_rows(model: AdditiveModel) -> np.ndarray:
    return np.array(list(itertools.product(*(range(shape.n_pieces) for shape in model.features))), float)


def scaled(model: AdditiveModel, unit: float) -> AdditiveModel:
    """The same model with every score times ``unit``."""
    shapes = tuple(dataclasses.replace(shape, coefficients=shape.coefficients * unit) for shape in model.features)
    pairs = tuple(dataclasses.replace(pair, values=pair.values * unit) for pair in model.pairs)
    return dataclasses.replace(model, features=shapes, pairs=pairs, intercept=model.intercept * unit)


def whole(numbers: np.ndarray) -> np.ndarray:
    """Doubles as whole multiples of 2^-60, as Python's own numbers: these add up without rounding."""
    scaled = np.asarray(numbers) * 2.0**60
    assert (scaled == np.floor(scaled)).all()
    return np.vectorize(int, otypes=[object])(scaled)


def exact_scores(model: AdditiveModel, rows: np.ndarray) -> np.ndarray:
    """(n_rows, n_outputs) scores of rows as sums of the stored doubles without rounding, in units of 2^-60."""
    parts = [*np.moveaxis(model.contributions(rows), 1, 0), *(pair(rows) for pair in model.pairs)]
    return sum(map(whole, parts), start=whole(model.intercept))


def decided(scores: np.ndarray) -> np.ndarray:
    """The class of each: the highest score, the first of equal ones; of one score whether it is at least 0."""
    if scores.shape[1] == 1:
        return (scores[:, 0] >= 0).astype(bool)
    return np.array([s.index(max(s)) for s in scores.tolist()])


def smallest_sizes(model: AdditiveModel, row: np.ndarray, same: np.ndarray, rows: np.ndarray) -> tuple[int, int | None]:
    """Sizes of the smallest reason and change by listing sets and rows."""
    n = len(row)
    reason = next(
        size for size in range(n + 1) for fixed in itertools.combinations(range(n), size)
        if same[(rows[:, fixed] == row[list(fixed)]).all(axis=1)].all()
    )  # fmt: skip
    for size in range(1, n + 1):
        for changed in itertools.combinations(range(n), size):
            kept = [j for j in range(n) if j not in changed]
            if not same[(rows[:, kept] == row[kept]).all(axis=1)].all():
                return reason, size
    return reason, None


@pytest.mark.parametrize(
    ("outputs", "pairs", "task"),
    [
        (1, 0, "binary"),
        (1, 2, "binary"),
        (1, 4, "binary"),
        (3, 0, "multiclass"),
        (1, 0, "regression"),
        (1, 2, "regression"),
        (3, 2, "multiclass"),
        (4, 4, "multiclass"),
    ],
)
@pytest.mark.parametrize("unit", [1.0, 0.1])  # tenths are rounded, so that ties are decided in fractions
def test_reasons_and_changes_equal_enumeration(outputs: int, pairs: int, task: str, unit: float) -> None:
    rng = np.random.default_rng(10 * outputs + pairs)
    for _ in range(60):
        model = scaled(whole_tables(rng, int(rng.integers(2, 5)), outputs, pairs, task), unit)
        rows = all_rows(model)
        place = int(rng.integers(len(rows)))
        row, tolerance = rows[place], 2 * unit if task == "regression" else None
        found = cases(model, row[None], tolerance=tolerance)
        scores = exact_scores(model, rows)
        if tolerance is not None:
            same = (abs(scores[:, 0] - scores[place, 0]) <= whole(np.array(tolerance))).astype(bool)
        else:
            same = decided(scores) == decided(scores)[place]
            assert found.decision[0] == decided(scores)[place]
        reason, change = smallest_sizes(model, row, same, rows)
        assert found.guarantee_reason == found.guarantee_change == ["exact"]
        assert found.reason[0].sum() == found.reason_bound[0] == reason
        consistent = (rows[:, found.reason[0]] == row[found.reason[0]]).all(axis=1)
        assert same[consistent].all()
        assert found.change[0].sum() == (change or 0)
        assert np.isfinite(found.change_bound[0]) == (change is not None)
        if change is not None:
            flipped = np.where(found.change[0], found.worst[0], row)
            assert not same[(rows == flipped).all(axis=1)][0]


@pytest.mark.parametrize(
    ("outputs", "pairs", "task"), [(1, 3, "binary"), (3, 0, "multiclass"), (3, 2, "multiclass"), (1, 1, "regression")]
)
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_all_reasons_equal_enumeration(outputs: int, pairs: int, task: str, unit: float) -> None:
    rng = np.random.default_rng(30)
    several = 0
    for _ in range(25):
        model = scaled(whole_tables(rng, int(rng.integers(4, 6)), outputs, pairs, task), unit)
        rows = all_rows(model)
        place, held = int(rng.integers(len(rows))), int(rng.integers(len(model.features)))
        row, tolerance = rows[place], 8 * unit if task == "regression" else None
        reachable = rows[:, held] == row[held]
        scores = exact_scores(model, rows)
        if tolerance is not None:
            same = (abs(scores[:, 0] - scores[place, 0]) <= whole(np.array(tolerance))).astype(bool)
        else:
            same = decided(scores) == decided(scores)[place]
        others = [j for j in range(len(row)) if j != held]
        settling = [
            set(fixed) for size in range(len(others) + 1) for fixed in itertools.combinations(others, size)
            if same[reachable & (rows[:, fixed] == row[list(fixed)]).all(axis=1)].all()
        ]  # fmt: skip
        minimal = [one for one in settling if not any(other < one for other in settling)]
        found = all_reasons(model, row[None], frozen=[f"f{held}"], tolerance=tolerance)
        assert found["complete"].all() and set(found["guarantee"]) == {"exact"}
        assert sorted(map(sorted, found["reason"].to_list())) == sorted(sorted(f"f{j}" for j in one) for one in minimal)
        assert found["size"].is_sorted()
        if task == "binary" and decided(scores)[place]:
            kept = [[held, *(int(name[1:]) for name in names)] for names in found["reason"]]
            least = [model.score(rows[(rows[:, fixed] == row[fixed]).all(axis=1)]).min() for fixed in kept]
            assert found["slack"].to_list() == pytest.approx(least, abs=1e-12)
        if len(minimal) > 1:
            several += 1
            capped = all_reasons(model, row[None], frozen=[f"f{held}"], tolerance=tolerance, most=len(minimal) - 1)
            assert capped["reason"].to_list() == found["reason"].to_list()[:-1] and not capped["complete"].any()
    assert several >= 3


def test_all_reasons_of_components_known_within_an_error_say_what_was_not_refuted() -> None:
    model = AdditiveModel(
        tuple(Shape.line(name, 1.0, low=0, high=1, error=0.05) for name in "abc"), np.array([-1.0]), task="binary"
    )
    clear = all_reasons(model, np.array([[1.0, 1.0, 0.9]]))
    assert sorted(clear["reason"].to_list()) == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert clear["guarantee"].to_list() == ["interval"] * 3
    assert not clear["complete"].any()
    assert all_reasons(model, np.array([[1.0, 0.1, 0.0]])).is_empty()


@pytest.mark.parametrize(
    ("outputs", "pairs", "task"),
    [
        (1, 0, "binary"),
        (1, 2, "binary"),
        (3, 0, "multiclass"),
        (3, 2, "multiclass"),
        (1, 0, "regression"),
        (1, 2, "regression"),
    ],
)
def test_the_cheapest_change_equals_enumeration(outputs: int, pairs: int, task: str) -> None:
    rng = np.random.default_rng(20)
    for _ in range(100):
        model = whole_tables(rng, int(rng.integers(2, 5)), outputs, pairs, task)
        rows = all_rows(model)
        row = rows[rng.integers(len(rows))]
        costs = rng.integers(1, 6, len(row)).astype(float)
        if task == "regression":
            found = cases(model, row[None], costs=costs, tolerance=2.0)
            other = rows[np.abs(model.score(rows) - model.score(row[None]))[:, 0] > 2]
        else:
            found = cases(model, row[None], costs=costs)
            other = rows[model.decide(rows) != model.decide(row[None])[0]]
        if not len(other):
            assert not np.isfinite(found.change_bound[0])
            continue
        assert costs[found.change[0]].sum() == ((other != row) @ costs).min()
        assert found.guarantee_change == ["exact"]


def test_frozen_features_stay_in_every_kind_of_model() -> None:
    rng = np.random.default_rng(30)
    for outputs, pairs, task in ((1, 0, "binary"), (1, 2, "binary"), (3, 0, "multiclass"), (1, 0, "regression")):
        for _ in range(30):
            model = whole_tables(rng, 3, outputs, pairs, task)
            rows = all_rows(model)
            row = rows[rng.integers(len(rows))]
            found = cases(model, row[None], frozen=[0], tolerance=2.0 if task == "regression" else None)
            assert not found.change[0, 0]
            assert found.worst[0, 0] == row[0]


@pytest.mark.parametrize(("outputs", "steps", "exact"), [(1, 0, False), (1, 500, True), (3, 0, False), (3, 500, True)])
def test_pairs_too_many_for_elimination_are_answered_by_branch_and_bound_or_by_bounds(
    outputs: int, steps: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import answerable.explanations.additive_reasons.pairs as pairs

    monkeypatch.setattr(pairs, "MOST_CELLS", 3)
    monkeypatch.setattr(pairs, "MOST_STEPS", steps)
    rng = np.random.default_rng(40)
    words = set()
    for _ in range(15):
        model = whole_tables(rng, 4, outputs, 4, "multiclass" if outputs > 1 else "binary")
        rows = all_rows(model)
        for row in rows[rng.choice(len(rows), 3, replace=False)]:
            found = cases(model, row[None])
            same = model.decide(rows) == model.decide(row[None])[0]
            reason, change = smallest_sizes(model, row, same, rows)
            words |= {*found.guarantee_reason, *found.guarantee_change}
            # bounds are on the safe side: what it calls a reason is one, and what it calls a change flips
            assert same[(rows[:, found.reason[0]] == row[found.reason[0]]).all(axis=1)].all()
            assert found.reason_bound[0] <= reason <= found.reason[0].sum()
            assert found.change_bound[0] <= (change or np.inf)
            if found.change.any():
                flipped = np.where(found.change[0], found.worst[0], row)
                assert not same[(rows == flipped).all(axis=1)][0]
            if found.guarantee_reason == ["exact"]:
                assert found.reason[0].sum() == reason
            if found.guarantee_change == ["exact"]:
                assert found.change[0].sum() == (change or 0)
    assert words == ({"exact"} if exact else {"exact", "interval"})


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_components_known_within_an_error_give_bounds_that_hold_the_exact_answer(task: str) -> None:
    rng = np.random.default_rng(46)
    words: set[str] = set()
    for _ in range(40):
        true = lines_of(rng, task)
        # the enclosure is off by up to its error, in a direction of its own in every piece
        shapes = tuple(
            dataclasses.replace(shape, coefficients=shape.coefficients + off(rng, shape.n_pieces, 0.2), error=0.2)
            for shape in true.features
        )
        enclosed = dataclasses.replace(true, features=shapes)
        rows = np.column_stack([rng.uniform(shape.low, shape.high, 4) for shape in true.features])
        tolerance = 2.0 if task == "regression" else None
        exact, found = cases(true, rows, tolerance=tolerance), cases(enclosed, rows, tolerance=tolerance)
        words |= {*found.guarantee_reason, *found.guarantee_change}
        for row in range(4):
            assert found.reason_bound[row] <= exact.reason[row].sum()
            assert found.change_bound[row] <= exact.change_bound[row]
            if found.guarantee_reason[row] != "unknown":
                assert found.decision[row] == exact.decision[row]
                assert exact.reason[row].sum() <= found.reason[row].sum()
                kept, _, _, _ = sufficiency(true, rows[[row]], found.reason[row], tolerance)
                assert kept[0]
            if found.change[row].any():
                flipped = np.where(found.change[row], found.worst[row], rows[row])[None]
                moved = abs(true.score(flipped) - true.score(rows[[row]]))[0, 0]
                assert moved > 2 if tolerance else true.decide(flipped)[0] != exact.decision[row]
            if found.guarantee_reason[row] == "exact":
                assert found.reason[row].sum() == exact.reason[row].sum()
        kept, _, _, guarantee = sufficiency(enclosed, rows, np.array([True, False, False, False]), tolerance)
        surely, _, _, _ = sufficiency(true, rows, np.array([True, False, False, False]), tolerance)
        assert all(yes == truth or word == "unknown" for yes, truth, word in zip(kept, surely, guarantee, strict=True))
    assert words == {"exact", "interval", "unknown"} if task == "binary" else words >= {"exact", "interval"}


def test_shapley_values_of_components_known_within_an_error_hold_the_exact_ones() -> None:
    rng = np.random.default_rng(47)
    true = dataclasses.replace(lines_of(rng, "binary"), logit=True)
    shapes = tuple(
        dataclasses.replace(shape, coefficients=shape.coefficients + off(rng, shape.n_pieces, 0.1), error=0.1)
        for shape in true.features
    )
    enclosed = dataclasses.replace(true, features=shapes)
    rows = np.column_stack([rng.uniform(shape.low, shape.high, 20) for shape in true.features])
    for output in ("score", "probability"):
        exact, found = (
            shapley_values(model, rows[:5], output=output, background=rows)  # type: ignore[arg-type]
            for model in (true, enclosed)
        )
        apart = (exact["shapley"] - found["shapley"]).abs()
        assert (apart <= found["error"]).all()
        assert apart.max() > 0  # type: ignore[operator]
    for ask in (
        lambda: count_completions(enclosed, rows, ["f0"], background=rows),
        lambda: shapley_values(enclosed, rows, output="class", background=rows),
    ):
        with pytest.raises(BadInput, match=r"feature f0: the component is known within 0\.1 only"):
            ask()
    words = redundant_features(true)["answer"].to_list()
    for word, truth in zip(redundant_features(enclosed)["answer"].to_list(), words, strict=True):
        assert word in (truth, "unknown")


def off(rng: np.random.Generator, n_pieces: int, error: float) -> np.ndarray:
    """A shift of each piece, up or down."""
    return np.stack([rng.uniform(-error, error, n_pieces), np.zeros(n_pieces)], axis=1)[:, :, None]


def lines_of(rng: np.random.Generator, task: str) -> AdditiveModel:
    """Four features of five lines each over an interval."""
    shapes = tuple(
        Shape(f"f{j}", np.linspace(-1, 1, 6), rng.normal(size=(5, 2, 1)), low=-1.0, high=1.0) for j in range(4)
    )
    return AdditiveModel(
        shapes,
        rng.normal(size=1),
        task=task,
        classes=("no", "yes") if task == "binary" else (),  # type: ignore[arg-type]
    )


def test_the_cheapest_set_that_hits_all_equals_enumeration() -> None:
    rng = np.random.default_rng(45)
    for _ in range(200):
        n = int(rng.integers(1, 8))
        sets = [np.flatnonzero(rng.random(n) < 0.4).tolist() or [int(rng.integers(n))] for _ in range(rng.integers(6))]
        prices = rng.integers(1, 5, n).astype(float)
        chosen, bound = cheapest_hit(sets, list(range(n)), prices)
        cheapest = min(
            float(prices[list(members)].sum()) for size in range(n + 1)
            for members in itertools.combinations(range(n), size) if all(set(members) & set(s) for s in sets)
        )  # fmt: skip
        assert prices[chosen].sum() == bound == cheapest
        assert all(set(chosen) & set(s) for s in sets)
        cut, lower = cheapest_hit(sets, list(range(n)), prices, most_nodes=1)
        assert lower <= cheapest <= prices[cut].sum()


def test_a_search_cut_short_is_minimal_under_inclusion_and_says_so() -> None:
    def passes(chosen: np.ndarray) -> bool:
        return bool(chosen[:3].all() or chosen[3:].sum() >= 5)

    found = smallest_set(passes, [7, 6, 5, 4, 3, 2, 1, 0], 8, most_tests=4)
    assert found is not None
    assert not found.proved
    assert passes(found.chosen)
    whole = smallest_set(passes, [7, 6, 5, 4, 3, 2, 1, 0], 8)
    assert whole is not None
    assert whole.proved
    assert whole.chosen.sum() == 3


def test_pair_shapley_values_add_up_and_equal_enumeration() -> None:
    rng = np.random.default_rng(50)
    for _ in range(40):
        model = whole_tables(rng, 3, 1, 2)
        rows = all_rows(model)
        row = rows[rng.integers(len(rows))]
        found = shapley_values(model, row[None], weights="uniform")
        scores = model.score(rows)[:, 0]
        value = {
            fixed: scores[(rows[:, fixed] == row[list(fixed)]).all(axis=1)].mean()
            for size in range(4) for fixed in itertools.combinations(range(3), size)
        }  # fmt: skip
        for i in range(3):
            by_orders = np.mean(
                [
                    value[tuple(sorted((*order[: order.index(i)], i)))] - value[tuple(sorted(order[: order.index(i)]))]
                    for order in itertools.permutations(range(3))
                ]
            )
            assert found["shapley"][i] == pytest.approx(by_orders, abs=1e-12)
        assert found["shapley"].sum() + found["base"][0] == pytest.approx(model.score(row[None])[0, 0], abs=1e-12)


def lines(n: int, cutoff: float = 1.0) -> AdditiveModel:
    shapes = tuple(Shape.line(f"x{j}", 1.0, low=0.0, high=1.0) for j in range(n))
    return AdditiveModel(shapes, np.zeros(1), task="binary", classes=("no", "yes"), cutoff=cutoff, logit=True)


def test_tables_of_the_queries() -> None:
    model = lines(3)
    X = np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.1]])
    reasons = minimum_sufficient_reason(model, X)
    assert reasons["decision"].to_list() == ["yes", "no"]
    assert reasons["reason"].to_list() == [["x0", "x1"], ["x0", "x1", "x2"]]
    assert reasons["slack"].to_list() == pytest.approx([0.7, 0.6])
    every = all_reasons(model, X)
    assert every["row"].to_list() == [1, 1, 2] and every["complete"].all()
    assert every["reason"].to_list() == [["x0", "x1"], ["x0", "x2"], ["x1", "x2", "x0"]]
    capped = all_reasons(lines(4, cutoff=1.0), np.full((1, 4), 0.75), most=3)
    assert capped["number"].to_list() == [1, 2, 3] and not capped["complete"].any()
    assert capped["size"].to_list() == [2, 2, 2] and capped["slack"].to_list() == [0.5, 0.5, 0.5]
    change = minimum_change(model, X)
    assert change["new_values"].to_list() == [["x0 = 0"], ["x1 = 1"]]
    assert change["possible"].to_list() == [True, True]
    test = is_sufficient(model, X, ["x0"])
    assert test["sufficient"].to_list() == [False, False]
    assert test["counterexample"][0].to_list() == ["x0 = 0.9", "x1 = 0", "x2 = 0"]
    assert redundant_features(model)["answer"].to_list() == ["matters"] * 3
    assert redundant_features(lines(3, cutoff=4.0))["answer"].to_list() == ["redundant"] * 3
    assert explain(model, X).height == 6
    assert set(complexity(model)["guarantee"]) <= {"exact", "exact to rounding", "interval"}


def test_a_decision_that_nothing_flips_has_no_change() -> None:
    change = minimum_change(lines(2, cutoff=5.0), np.array([[0.5, 0.5]]))
    assert change["possible"].to_list() == [False]
    assert change["change"].to_list() == [[]]
    assert change["slack"][0] == pytest.approx(5 - 2)  # what the best completion lacks


def test_background_rows_and_certified_completions() -> None:
    rng = np.random.default_rng(60)
    model, X = lines(6, cutoff=3.0), rng.random((1, 6))
    background = rng.random((40, 6))
    found = count_completions(model, X, ["x0"], background=background, width=0.05, most_atoms=10)
    exact = count_completions(model, X, ["x0"], background=background)
    assert found["engine"][0] == "certified Fourier"
    assert found["low"][0] <= exact["probability"][0] <= found["high"][0]


def paired_lines() -> AdditiveModel:
    edges = np.array([-np.inf, 0.5, np.inf])
    plain = lines(2)
    return dataclasses.replace(plain, pairs=(Pair(0, 1, edges, edges, np.ones((3, 3, 1))),))


PAIRED_LINES = paired_lines()
PAIRED = whole_tables(np.random.default_rng(1), 3, 1, 1)
REFUSED = [
    (lambda: count_completions(lines(2), np.zeros((1, 2)), ["x0"]), "feature x1: its component is continuous"),
    (lambda: count_completions(PAIRED_LINES, np.zeros((1, 2)), ["x0"]), "feature x1: its component is continuous"),
    (lambda: count_completions(whole_tables(np.random.default_rng(2), 2, task="regression"), np.zeros((1, 2)), []),
     "a regression model: completions are asked of two classes"),
    (lambda: shapley_values(PAIRED_LINES, np.zeros((1, 2)), output="class"), "feature x0: its component is continuous"),
    (lambda: minimum_change(lines(2), np.zeros((1, 2)), cost={"x0": 0}), "cost of x0: it is 0; give a number above 0"),
    (lambda: minimum_change(lines(2), np.zeros((1, 2)), cost={"y": 1}), "there is no feature of cost 'y'"),
    (lambda: is_sufficient(lines(2), np.zeros((1, 2)), ["z9"]), "there is no feature 'z9'"),
    (lambda: minimum_sufficient_reason(whole_tables(np.random.default_rng(2), 2, task="regression"), np.zeros((1, 2))),
     "tolerance: a regression decides nothing without it"),
    (lambda: redundant_features(whole_tables(np.random.default_rng(2), 2, 3, task="multiclass")), "asked of two classes"),
    (lambda: shapley_values(whole_tables(np.random.default_rng(2), 2), np.zeros((1, 2)), output="probability"),
     "output: the score is no log odds"),
    (lambda: all_reasons(whole_tables(np.random.default_rng(2), 2, task="regression"), np.zeros((1, 2))),
     "tolerance: a regression decides nothing without it"),
    (lambda: all_reasons(PAIRED, np.zeros((1, 3)), tolerance=1.0), "tolerance: the model decides between classes"),
    (lambda: all_reasons(lines(2), np.zeros((1, 2)), most=0), "most: it is '0'; give a whole number"),
    (lambda: all_reasons(lines(2), np.zeros((1, 2)), frozen=["y"]), "there is no feature 'y'"),
    (lambda: check(lines(2), np.zeros((1, 2))), "the original model is not at hand"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "line"), REFUSED)
def test_what_cannot_be_asked_is_refused_in_one_line(call: Callable[[], object], line: str) -> None:
    from answerable.errors import AnswerableError

    with pytest.raises(AnswerableError) as raised:
        call()
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, AnswerableError) and (isinstance(raised.value, BadInput) or "there is no" in line)
