"""The exact form: equal to the original models, ranges that a fine grid never exceeds, exact means, files read back."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC

from answerable.errors import AnswerableError, BadInput
from answerable.subjects.additive_model import AdditiveModel, Pair, Shape, load, marginals, ranges
from answerable.subjects.additive_model.content import digest
from answerable.subjects.additive_model.network import from_tensors
from answerable.subjects.additive_model.ranges import binned

nn = torch.nn
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def tumours() -> tuple[pd.DataFrame, Any]:
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 400).astype(float),
            "income": rng.lognormal(10, 0.5, 400),
            "home": rng.choice(["own", "rent", "free"], 400),
            "children": rng.integers(0, 4, 400),
            "unused": rng.choice(["x", "y"], 400),
        }
    )
    return frame, (frame.age / 40 + frame.income / 30_000 + rng.normal(size=400) > 2.5).astype(int)


PIPELINES = {
    "splines": lambda: make_column_transformer((SplineTransformer(n_knots=6), ["age", "income"])),
    "linear ends": lambda: make_column_transformer(
        (SplineTransformer(extrapolation="linear", include_bias=False), ["age"])
    ),
    "bins": lambda: make_column_transformer(
        (KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), ["age", "income"])
    ),
    "one-hot": lambda: make_column_transformer(
        (OneHotEncoder(drop="first"), ["home"]), (StandardScaler(), ["age"]), ("passthrough", ["children"])
    ),
    "by slice, mask and selector": lambda: make_column_transformer(
        (StandardScaler(), slice(0, 1)),
        (MinMaxScaler(), [False, True, False, False, False]),
        (OneHotEncoder(), make_column_selector("home")),
    ),
    "one in another": lambda: make_column_transformer(
        (make_column_transformer((SplineTransformer(n_knots=4), ["age"]), (StandardScaler(), [0])), ["income", "age"])
    ),
    "weighted": lambda: ColumnTransformer(
        [("curve", SplineTransformer(n_knots=4), ["age"]), ("scaled", StandardScaler(), ["income"])],
        transformer_weights={"curve": 3.0, "scaled": 0.25},
    ),
    "twice": lambda: make_column_transformer(
        (SplineTransformer(n_knots=4, degree=2), ["age"]),
        (MinMaxScaler(), ["age", "income"]),
        (OneHotEncoder(), ["home"]),
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_keeps_its_scores(name: str, people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    for final in (LogisticRegression(max_iter=500), Ridge()):
        # scaled at the end, so that incomes do not drown the solver
        fitted = make_pipeline(PIPELINES[name](), StandardScaler(with_mean=False), final).fit(X, y)
        model = AdditiveModel.from_sklearn(fitted, X)
        assert model.check(X) < 1e-10
        assert "unused" not in model.names
        assert model.logit == isinstance(final, LogisticRegression)


def test_a_missing_category_has_its_own_score(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    X = X.assign(home=X["home"].astype(object).where(X["home"] != "free", None))
    for drop in (None, "first"):
        steps = make_column_transformer((OneHotEncoder(drop=drop), ["home"]), (StandardScaler(), ["age"]))
        fitted = make_pipeline(steps, StandardScaler(with_mean=False), LogisticRegression()).fit(X, y)
        model = AdditiveModel.from_sklearn(fitted, X)
        assert model.check(X) < 1e-12
        home = model.features[model.names.index("home")]
        assert home.levels == ("own", "rent")
        assert home.missing_weight == X["home"].isna().sum()
        assert model.restrict(missing=False).check(X.dropna()) < 1e-12


def test_a_check_takes_any_table_and_refuses_rows_that_prove_nothing(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people[0][["age", "income"]], people[1]
    model = AdditiveModel.from_sklearn(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X)
    assert model.check(X.to_dict("list")) < 1e-12
    assert model.check(pl.DataFrame(X.to_dict("list"))) < 1e-12
    refused(lambda: model.check(X.assign(age=X["age"].where(X["age"] > 30))), "row ")
    refused(lambda: model.check(X.assign(age=math.inf)), "LogisticRegression: the original model refuses the rows (")
    by_place = LinearRegression().fit(X.to_numpy(), y)
    assert AdditiveModel.from_sklearn(by_place, X).check(X[["income", "age"]]) < 1e-12


def test_linear_models_keep_their_scores(tumours: tuple[pd.DataFrame, Any]) -> None:
    X, y = tumours
    for fitted in (
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        LinearRegression().fit(X, y),
        LogisticRegression(max_iter=10_000).fit(X.to_numpy()[:, :4], y),
    ):
        rows = X if hasattr(fitted, "feature_names_in_") else X.to_numpy()[:, :4]
        assert AdditiveModel.from_sklearn(fitted, rows).check(rows) < 1e-10


def test_several_classes_keep_their_scores(people: tuple[pd.DataFrame, Any]) -> None:
    X, _ = people
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[["age", "income"]], X["home"])
    model = AdditiveModel.from_sklearn(fitted, X[["age", "income"]])
    assert (model.task, model.classes, model.n_outputs) == ("multiclass", ("free", "own", "rent"), 3)
    assert model.check(X[["age", "income"]]) < 1e-12
    rows = model.encode(X)
    assert (np.array(model.classes)[model.decide(rows)] == fitted.predict(X[["age", "income"]])).all()
    lead = model.against(2, 0)
    assert lead.score(rows)[:, 0] == pytest.approx(model.score(rows)[:, 2] - model.score(rows)[:, 0])


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, GradientBoostingRegressor])
def test_boosted_stumps_keep_their_scores(kind: Any, tumours: tuple[pd.DataFrame, Any]) -> None:
    X, y = tumours
    model = AdditiveModel.from_sklearn(kind(max_depth=1, n_estimators=60, random_state=0).fit(X, y), X)
    assert model.check(X) < 1e-12


def test_a_value_on_a_trees_threshold_goes_where_the_tree_sends_it() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((200, 1))
    fitted = GradientBoostingRegressor(max_depth=1, n_estimators=20).fit(X, X[:, 0] > 0.5)
    model = AdditiveModel.from_sklearn(fitted, X)
    edges = model.features[0].edges[1:-1]
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])[:, None]
    assert model.score(model.encode(near, inside=False))[:, 0] == pytest.approx(fitted.predict(near), abs=1e-12)


class ExU(nn.Module):
    """Exponential units of neural additive models."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(1, n) * 0.5 + 1), nn.Parameter(torch.randn(n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.bias) * torch.exp(self.weight)).clamp(0, 1)


def networks(seed: int) -> dict[str, nn.Module]:
    torch.manual_seed(seed)
    deep = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    wide = nn.Sequential(ExU(32), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    return {"deep": deep.double().eval(), "wide": wide.double().eval()}


@pytest.mark.parametrize("seed", range(5))
def test_a_neural_additive_model_is_its_lines(seed: int) -> None:
    model = AdditiveModel.from_nam(networks(seed), domain={"deep": (-3, 3), "wide": (-2, 2)}, intercept=0.5)
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(-3, 3, 20_000), rng.uniform(-2, 2, 20_000)])
    assert model.check(rows) < 1e-12
    breakpoints = np.column_stack([np.resize(shape.edges, 300) for shape in model.features])
    assert model.check(breakpoints) < 1e-12


def test_a_neural_additive_model_is_read_from_its_tensors(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    given = networks(3)
    deep, wide = given["deep"], given["wide"]
    tensors = {"intercept": torch.tensor([0.5]), "deep.domain": torch.tensor([-3.0, 3.0])}
    tensors["wide.domain"] = torch.tensor([-2.0, 2.0])
    for number, layer in enumerate((deep[0], deep[2], deep[4])):  # type: ignore[index]
        tensors |= {f"deep.{number}.weight": layer.weight.detach(), f"deep.{number}.bias": layer.bias.detach()}
    unit, middle, last = wide[0], wide[1], wide[3]  # type: ignore[index]
    tensors |= {"wide.0.exu_weight": unit.weight.detach(), "wide.0.exu_bias": unit.bias.detach()}
    for number, layer in enumerate((middle, last), 1):
        tensors |= {f"wide.{number}.weight": layer.weight.detach(), f"wide.{number}.bias": layer.bias.detach()}
    save_file(tensors, tmp_path / "nam.safetensors")
    model = load(str(tmp_path / "nam.safetensors"))
    live = AdditiveModel.from_nam(given, domain={"deep": (-3, 3), "wide": (-2, 2)}, intercept=0.5)
    rows = np.random.default_rng(0).uniform(-2, 2, (2000, 2))
    assert model.score(rows) == pytest.approx(live.score(rows), abs=1e-12)
    save_file({"deep.domain": torch.tensor([-3.0, 3.0])}, tmp_path / "none.safetensors")
    refused(lambda: load(str(tmp_path / "none.safetensors")), "feature deep: it has no layer; save deep.0.weight")
    save_file(tensors | {"deep.1.weight": torch.zeros(2, 2)}, tmp_path / "bad.safetensors")
    refused(lambda: load(str(tmp_path / "bad.safetensors")), "feature deep, layer 1: a weight of shape (2, 2)")


TENSORS = {"a.domain": np.array([0.0, 1.0]), "a.0.weight": np.ones((1, 1)), "a.0.bias": np.zeros(1)}


@pytest.mark.parametrize(
    ("more", "line"),
    [
        # torch numbers activations too: layer 2 after layer 0 would otherwise be left out in silence
        ({"a.2.weight": [[-5.0]], "a.2.bias": [1.0]}, "the tensor 'a.2.bias' belongs to no layer"),
        ({"other": [1.0]}, "the tensor 'other' belongs to no layer"),
        ({"intercept": [1.0, 2.0]}, "intercept: it has 2 numbers"),
        ({"intercept": []}, "intercept: it has 0 numbers"),
        ({"a.0.weight": [[math.nan]]}, "feature a: its units add up to nan"),
        ({"a.1.exu_weight": [1e4], "a.1.exu_bias": [0.0]}, "feature a: its units add up to"),
    ],
)
def test_tensors_that_are_no_network_are_refused(more: dict[str, Any], line: str) -> None:
    refused(lambda: from_tensors(TENSORS | {name: np.array(value) for name, value in more.items()}), line)


class NamedSteps(Pipeline):
    """A pipeline that says which columns it takes before it was fitted."""

    def __init__(self, pipeline: Any) -> None:
        super().__init__(pipeline.steps)

    feature_names_in_ = np.array(["a", "b"])  # type: ignore[assignment]


class Whole(nn.Module):
    """A module that adds something of its own to its networks, and gives their parts as well."""

    def __init__(self) -> None:
        super().__init__()
        self.feature_nns = nn.ModuleDict(networks(1))
        self.bias = nn.Parameter(torch.tensor(0.75))

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        parts = torch.cat([net(rows[:, [j]]) for j, net in enumerate(self.feature_nns.values())], dim=1)
        return parts.sum(dim=1) + self.bias, parts


def test_a_module_is_checked_by_what_it_gives_itself() -> None:
    whole, ends = Whole().eval(), {"deep": (-3, 3), "wide": (-2, 2)}
    rows = np.random.default_rng(0).uniform(-2, 2, (100, 2))
    assert AdditiveModel.from_nam(whole, domain=ends).check(rows) == pytest.approx(0.75)
    assert AdditiveModel.from_nam(whole, domain=ends, intercept=0.75).check(rows) < 1e-12


def test_checking_a_network_leaves_its_precision_as_it_is() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    model = AdditiveModel.from_nam({"x": network}, domain={"x": (-1, 1)})
    assert model.check(np.linspace(-1, 1, 11)[:, None]) < 1e-12
    assert network[0].weight.dtype == torch.float32


def test_ranges_of_networks_are_never_tighter_than_a_grid_of_a_million_points() -> None:
    model = AdditiveModel.from_nam(networks(7), domain={"deep": (-3, 3), "wide": (-2, 2)})
    found = ranges(model)
    for j, shape in enumerate(model.features):
        grid = shape(np.linspace(shape.low, shape.high, 1_000_001))[:, 0]
        at_edges = shape(shape.edges)[:, 0]
        assert found.low[j] <= grid.min() + 1e-12
        assert found.high[j] >= grid.max() - 1e-12
        assert (found.low[j], found.high[j]) == pytest.approx((at_edges.min(), at_edges.max()), abs=1e-12)


def test_ranges_of_splines_are_those_of_a_grid_and_no_tighter(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    fitted = make_pipeline(PIPELINES["splines"](), LogisticRegression(max_iter=500)).fit(X, y)
    model = AdditiveModel.from_sklearn(fitted, X)
    found = ranges(model)
    for j, shape in enumerate(model.features):
        grid = shape(np.linspace(shape.low, shape.high, 1_000_001))[:, 0]
        assert found.low[j] <= grid.min()
        assert found.high[j] >= grid.max()
        assert (found.low[j], found.high[j]) == pytest.approx((grid.min(), grid.max()), abs=1e-9)
        for at, value in ((found.at_low[j], found.low[j]), (found.at_high[j], found.high[j])):
            assert shape(np.array([at]))[0, 0] == value


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.floats(-3, 3), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(-5, 5), st.integers(0, 9), st.booleans(), st.booleans(),
)  # fmt: skip
def test_ranges_over_whole_numbers_are_those_of_all_whole_numbers(
    pieces: list[list[float]], low: int, length: int, up: bool, integer: bool
) -> None:
    edges = -4 + np.arange(len(pieces) + 1) * 2.5
    shape = Shape(
        "x",
        edges,
        np.array(pieces),
        edges[:-1],
        edge_goes_up=up,
        integer=integer,
        low=float(low),
        high=float(low + length),
    )
    found = ranges(AdditiveModel((shape,), np.zeros(1)))
    points = np.arange(low, low + length + 1.0) if integer else np.linspace(low, low + length, 4001)
    values = shape(points)[:, 0]
    assert found.low[0] <= values.min() + 1e-9
    assert found.high[0] >= values.max() - 1e-9
    if integer:
        assert (found.low[0], found.high[0]) == (values.min(), values.max())


def test_an_end_that_is_only_approached_says_so() -> None:
    # rises to 1 on [0, 1), falls to 0 at 1
    saw = Shape("x", [0.0, 1.0, 2.0], np.array([[0.0, 1.0], [0.0, 0.0]]), low=0, high=2)
    found = ranges(AdditiveModel((saw,), np.zeros(1)))
    assert (found.high[0], found.high_attained[0], found.low_attained[0]) == (1.0, False, True)


def test_means_are_exact() -> None:
    cubic = Shape("x", [0.0, 2.0, 3.0], np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 0.0]]), low=0, high=3)
    own = AdditiveModel((cubic,), np.zeros(1))
    # (2 + 4 + 8 + 16) / 3 over [0, 2], (27 - 8) / 9 over [2, 3]
    assert marginals(own)[0].mean == pytest.approx((30 + 19 / 3) / 3)
    whole = own.restrict(integer=["x"])
    assert marginals(whole)[0].mean == pytest.approx(np.mean([1, 10, 4, 9]))
    assert marginals(own, background=np.array([[0.0], [1.0]]))[0].mean == pytest.approx(np.mean([1, 10]))
    weighted = Shape.table("x", [0, 1, 2], [3.0, 7.0], weights=np.array([3.0, 1.0]))
    assert marginals(AdditiveModel((weighted,), np.zeros(1)))[0].mean == 4


def test_ranges_within_bins_are_those_of_a_fine_grid() -> None:
    rng = np.random.default_rng(2)
    shape = Shape("x", [-1.0, 0.0, 0.7, 2.0], rng.normal(size=(3, 3)), low=-0.9, high=1.9)
    edges = np.array([-np.inf, -0.5, 0.3, 0.31, 5.0, np.inf])
    bins, found = binned(shape, edges)
    assert bins.tolist() == [1, 2, 3, 4]
    grid = np.linspace(shape.low, shape.high, 400_001)
    place = np.searchsorted(edges[1:-1], grid, side="right") + 1
    for k, number in enumerate(bins):
        values = shape(grid[place == number])[:, 0]
        assert (found.low[k], found.high[k]) == pytest.approx((values.min(), values.max()), abs=1e-4)
        assert found.low[k] <= values.min() + 1e-12
        assert found.high[k] >= values.max() - 1e-12


def test_our_own_json_is_read_back_bit_by_bit(people: tuple[pd.DataFrame, Any]) -> None:
    X, y = people
    fitted = make_pipeline(PIPELINES["twice"](), LogisticRegression(max_iter=500)).fit(X, y)
    for model in (AdditiveModel.from_sklearn(fitted, X), AdditiveModel.from_ebm(EXAMPLES / "german-credit-ebm.json")):
        text = model.to_json()
        again = AdditiveModel.from_json(text)
        assert again.to_json() == text
        assert digest(again) == digest(model)
        assert load(json.loads(text)).to_json() == text


def test_missing_values_have_their_own_points() -> None:
    card = pd.DataFrame(
        {"feature": ["a", "a", "a"], "bin_lower": [0, 5, None], "bin_upper": [5, 9, None], "points": [1, 2, 7]}
    )
    model = AdditiveModel.from_scorecard(card)
    assert model.score(model.encode(np.array([[1.0], [5.0], [np.nan]])))[:, 0].tolist() == [1, 2, 7]
    with pytest.raises(BadInput, match="row 1, feature a: the value is missing"):
        model.restrict(missing=False).encode(np.array([[np.nan]]))


def test_a_scorecards_first_and_last_bins_may_be_open() -> None:
    card = pd.DataFrame({"feature": ["a", "a"], "bin_lower": [None, 5], "bin_upper": [5, None], "points": [1, 2]})
    model = AdditiveModel.from_scorecard(card, cutoff=2)
    assert model.decide(model.encode(np.array([[-1e9], [4.999], [5.0], [1e9]]))).tolist() == [0, 0, 1, 1]


def refused(make: Any, line: str) -> None:
    with pytest.raises(AnswerableError) as raised:
        make()
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_not_additive_is_refused_by_name(tumours: tuple[pd.DataFrame, Any]) -> None:
    X, y = tumours
    small = X.iloc[:, :3]
    deep = GradientBoostingClassifier(max_depth=2, n_estimators=2, random_state=0).fit(small, y)
    refused(
        lambda: AdditiveModel.from_sklearn(deep, small), "GradientBoostingClassifier: not additive: tree 1 joins mean "
    )
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(small, y)
    refused(lambda: AdditiveModel.from_sklearn(forest, small), "not additive")
    squares = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(small, y)
    refused(lambda: AdditiveModel.from_sklearn(squares, small), "the step PolynomialFeatures is not additive")
    late = make_pipeline(StandardScaler(), SplineTransformer(), LinearRegression()).fit(small, y)
    refused(
        lambda: AdditiveModel.from_sklearn(late, small), "SplineTransformer comes after a step that changes mean radius"
    )
    refused(lambda: AdditiveModel.from_sklearn(LinearRegression()), "the model is not fitted")
    clipped = make_pipeline(MinMaxScaler(clip=True), LinearRegression()).fit(small, y)
    refused(lambda: AdditiveModel.from_sklearn(clipped, small), "pipeline: MinMaxScaler clips; fit it with clip=False")
    single = make_pipeline(
        KBinsDiscretizer(3, dtype=np.float32, quantile_method="averaged_inverted_cdf"), LinearRegression()
    )
    refused(lambda: AdditiveModel.from_sklearn(single.fit(small, y), small), "compares in single precision")
    scaled = make_pipeline(StandardScaler(), OneHotEncoder(), LinearRegression()).fit(small.round(), y)
    refused(lambda: AdditiveModel.from_sklearn(scaled), "OneHotEncoder comes after a step that changes mean radius")
    both = make_column_transformer((OneHotEncoder(), ["mean radius"]), (StandardScaler(), ["mean radius"]))
    both = make_pipeline(both, LinearRegression()).fit(small.round(), y)
    refused(lambda: AdditiveModel.from_sklearn(both), "feature mean radius: one step takes it as categories, another")


def test_coefficients_that_are_not_those_of_the_score_are_refused(tumours: tuple[pd.DataFrame, Any]) -> None:
    X, _ = tumours
    small = (X.iloc[:120, :3] - X.iloc[:120, :3].mean()) / X.iloc[:120, :3].std()
    three = np.digitize(small["mean radius"], [-0.5, 0.5])
    votes = SVC(kernel="linear").fit(small, three)  # of every two classes
    refused(lambda: AdditiveModel.from_sklearn(votes, small), "SVC: not additive: its score is not that of its coeff")
    two = SVC(kernel="linear").fit(small, three > 1)
    assert AdditiveModel.from_sklearn(two, small).check(small) < 1e-10
    centred = PLSRegression(1).fit(X.iloc[:120, :3], three)
    refused(lambda: AdditiveModel.from_sklearn(centred, X.iloc[:, :3]), "PLSRegression: not additive: its score is not")


def test_one_hot_columns_without_their_encoder_are_refused() -> None:
    rng = np.random.default_rng(3)
    kind = rng.integers(3, size=100)
    X = pd.DataFrame({f"home_{name}": (kind == k).astype(int) for k, name in enumerate(("own", "rent", "free"))})
    fitted = LogisticRegression().fit(X.assign(age=rng.random(100)), rng.integers(2, size=100))
    refused(
        lambda: AdditiveModel.from_sklearn(fitted, X.assign(age=0.5)),
        "feature home: home_own, home_rent, home_free are one category in 3 columns; give the pipeline",
    )


@pytest.mark.parametrize(
    "step", [StandardScaler(), MinMaxScaler(), RobustScaler(), OneHotEncoder(), SplineTransformer()]
)
def test_a_pipeline_that_was_put_together_and_not_fitted_is_refused_by_step(step: Any) -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 0.0]})
    fitted = LinearRegression().fit(X.to_numpy(), [0, 1, 2])
    half = make_pipeline("passthrough", make_column_transformer((step, ["a", "b"])), fitted)
    line = "pipeline: the step ColumnTransformer is not fitted; fit the pipeline as a whole"
    refused(lambda: AdditiveModel.from_sklearn(NamedSteps(half), X), line)
    half = make_pipeline(step, fitted)
    line = f"pipeline: the step {type(step).__name__} is not fitted; fit the pipeline as a whole"
    refused(lambda: AdditiveModel.from_sklearn(NamedSteps(half), X), line)
    refused(lambda: AdditiveModel.from_sklearn(half, X), "Pipeline: the model is not fitted; fit it first")


def test_columns_called_by_numbers_are_checked_by_place() -> None:
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(50, 3)))
    y = X.sum(axis=1)
    model = AdditiveModel.from_sklearn(LinearRegression().fit(X, y), X)
    assert model.names == ["0", "1", "2"]
    assert model.check(X) < 1e-12 and model.check(X[[2, 0, 1]]) < 1e-12
    with pytest.raises(BadInput, match="X: 4 columns, and the model knows its 3 by place alone; give the 3"):
        AdditiveModel.from_sklearn(LinearRegression().fit(X.to_numpy(), y), X.assign(more=1))


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime, pl.Duration, pl.Time, pl.List(pl.Int64), pl.Binary])
def test_what_is_no_number_is_not_made_one(kind: Any) -> None:
    column = pl.Series([0], dtype=pl.Int64)
    column = pl.Series([b"1"]) if kind == pl.Binary else pl.Series([[1]]) if kind == pl.List else column.cast(kind)
    model = AdditiveModel((STEP,), np.zeros(1))
    refused(
        lambda: model.encode(pl.DataFrame({"x": column})),
        f"feature x: it holds values of type {column.dtype.base_type()}",
    )
    if kind in (pl.Date, pl.Datetime, pl.Duration):
        refused(lambda: model.encode(pl.DataFrame({"x": column}).to_numpy()), "feature x: it holds dates or times")


def test_numbers_of_any_kind_of_column_are_read() -> None:
    model = AdditiveModel((STEP,), np.zeros(1))
    for column in (["0.5"], pl.Series(["0.5"], dtype=pl.Categorical), pl.Series(["0.5"]).cast(pl.Decimal(4, 2))):
        assert model.encode(pl.DataFrame({"x": column})).tolist() == [[0.5]]


def test_more_pieces_than_can_be_kept_are_refused_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("answerable.subjects.additive_model.parts.MOST_PIECES", 2)
    line = "feature x: it has 3 pieces; simplify it; at most 2 are kept"
    refused(lambda: Shape.table("x", [0, 1, 2, 3], [1.0, 2.0, 3.0]), line)


def test_networks_that_cannot_be_taken_apart_are_refused_by_layer() -> None:
    ends = {"a": (0.0, 1.0)}
    dropout = nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    refused(
        lambda: AdditiveModel.from_nam({"a": dropout.train()}, domain=ends),
        "layer 2 (Dropout): the network is in train mode",
    )
    assert AdditiveModel.from_nam({"a": dropout.eval()}, domain=ends).n_outputs == 1
    smooth = nn.Sequential(nn.Linear(1, 4), nn.GELU(), nn.Linear(4, 1))
    refused(
        lambda: AdditiveModel.from_nam({"a": smooth}, domain=ends),
        "feature a, layer 2 (GELU): it is no layer that is known; use Linear, ReLU, ReLU6, ExU, Tanh and Sigmoid",
    )
    odd = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    refused(
        lambda: AdditiveModel.from_nam({"a": odd}, domain=ends),
        "feature a, layer 2 (BatchNorm1d): it is no layer that is known",
    )
    refused(lambda: AdditiveModel.from_nam({"a": dropout}, domain={}), "feature a: its domain is None")
    refused(lambda: AdditiveModel.from_nam(nn.ModuleList([dropout]), domain=ends), "a ModuleList names no feature")
    nameless = type("ExU", (nn.Module,), {})()
    refused(lambda: AdditiveModel.from_nam({"a": nn.Sequential(nameless)}, domain=ends), "(ExU): it has no weight and")
    two = nn.Sequential(nn.Linear(1, 2))
    refused(lambda: AdditiveModel.from_nam({"a": two}, domain=ends), "its network has 2 outputs")


@pytest.mark.parametrize("kinds", [(nn.Tanh,), (nn.Sigmoid, nn.ReLU), (nn.ReLU6, nn.Tanh), (nn.ReLU, nn.ReLU)])
def test_a_network_of_too_many_lines_is_enclosed(kinds: tuple[Any, ...]) -> None:
    """No point of a fine grid is further from the lines than the bound, and the bound is no idle one."""
    for seed in range(4):
        torch.manual_seed(seed)
        steps: list[nn.Module] = []
        for kind in kinds:
            steps += [nn.Linear(16 if steps else 1, 16), kind()]
        network = nn.Sequential(*steps, nn.Linear(16, 1)).double()
        model = AdditiveModel.from_nam({"x": network}, domain={"x": (-4.0, 4.0)}, most_pieces=12)
        fine = AdditiveModel.from_nam({"x": network}, domain={"x": (-4.0, 4.0)})
        grid = np.linspace(-4, 4, 20_001)[:, None]
        assert model.features[0].n_pieces <= 12
        assert model.check(grid) <= model.error
        assert fine.check(grid) <= fine.error + 1e-12
        assert 0 < model.error < 1
        # a network of lines alone is exact as long as they are counted
        assert fine.error == 0 if nn.Tanh not in kinds and nn.Sigmoid not in kinds else 0 < fine.error < 1e-4
        assert AdditiveModel.from_json(model.to_json()).error == model.error


STEP = Shape.table("x", [0, 1, 2], [1.0, 2.0], low=0, high=2)
LINE = np.array([-np.inf, 1.0, np.inf])
BAD_PARTS = [
    (lambda: Shape.table("x", [0, 1], [1.0, 2.0]), "2 pieces between 2 edges"),
    (lambda: Shape.table("x", [0, 2, 1], [1.0, 2.0]), "give rising edges"),
    (lambda: Shape.table("x", [0, 1, 2], [1.0, math.nan]), "the score of piece 2 is not finite"),
    (lambda: Shape.table("x", [0, 1, 2], [1.0, 2.0], missing=[math.inf]), "the score of a missing value is not finite"),
    (lambda: Shape.table("x", [0, 1, 2], [1.0, 2.0], weights=[1.0, -1.0]), "weights: a weight is negative"),
    (lambda: Shape.table("x", [0, 1, 2], [1.0, 2.0], weights=[1.0]), "1 weights of 2 pieces"),
    (lambda: Shape.table("x", [0, 1], [1.0], integer=True, low=0.5), "feature x: 0.5 bounds whole numbers"),
    (lambda: Shape.table("x", [0, 1], [1.0], low=2, high=1), "no value from 2 to 1"),
    (lambda: AdditiveModel((), np.zeros(1)), "it has no feature"),
    (lambda: AdditiveModel((STEP, STEP), np.zeros(1)), "two features are called 'x'"),
    (lambda: AdditiveModel((STEP,), np.array([math.nan])), "the intercept is not finite"),
    (lambda: Pair(0, 1, LINE, LINE, np.zeros((2, 3, 1))), "pair 0 & 1: a table of 2 by 3 over 2 and 2 bins"),
    (lambda: Pair(0, 1, LINE, LINE[::-1], np.zeros((3, 3, 1))), "pair 0 & 1: its edges do not rise"),
    (lambda: Pair(0, 1, LINE, LINE, np.full((3, 3, 1), math.nan)), "pair 0 & 1: a score is not finite"),
    (lambda: Pair(1, 1, LINE, LINE, np.zeros((3, 3, 1))), "pair 1 & 1: it joins a feature with itself"),
    (lambda: AdditiveModel((STEP,), np.zeros(1), (Pair(0, 3, LINE, LINE, np.zeros((3, 3, 1))),)),
     "pair 0 & 3: there are 1 features"),
    (lambda: AdditiveModel((STEP, dataclasses.replace(STEP, name="y")), np.zeros(1),
                           (Pair(0, 1, LINE, LINE, np.zeros((3, 3, 2))),)), "pair 0 & 1: 2 scores where the model has 1"),
    (lambda: AdditiveModel((STEP,), np.zeros(2)), "feature x: 1 scores where the model has 2"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).restrict(threshold=0.5), "threshold: the score is no log odds"),
    (lambda: AdditiveModel((STEP,), np.zeros(1), task="binary", logit=True).restrict(threshold=1.0), "threshold: it is 1"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).restrict({"y": (0, 1)}), "there is no feature of domain 'y'"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).restrict({"x": (5, 6)}), "5 to 6 lies outside 0 to 2"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).encode(np.zeros((1, 2))), "rows of 2 values for 1 features"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).encode(np.array([[3.0]])), "row 1, feature x: 3 is outside the domain"),
    (lambda: AdditiveModel((STEP,), np.zeros(1)).restrict(integer=["x"]).encode(np.array([[0.5]])), "0.5 is outside"),
    (lambda: ranges(AdditiveModel((Shape.line("x", 1.0),), np.zeros(1))), "its component grows without bound"),
    (lambda: marginals(AdditiveModel((Shape.line("x", 1.0),), np.zeros(1))), "nothing is even over an infinite domain"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "line"), BAD_PARTS)
def test_bad_parts_are_refused_in_one_line(make: Any, line: str) -> None:
    refused(make, line)


def test_diabetes_regression_is_read_from_its_pipeline() -> None:
    data = load_diabetes(as_frame=True, scaled=False)
    fitted = make_pipeline(StandardScaler(), Ridge()).fit(data.data, data.target)
    model = load(fitted, data.data)
    assert model.task == "regression"
    assert model.check(data.data) < 1e-10
    assert model.features[0].high == data.data["age"].max()


def test_a_category_written_as_a_decimal_is_found() -> None:
    shape = Shape.categories("x", ["9.0", "7"], [1.0, 2.0])
    model = AdditiveModel((shape,), np.zeros(1))
    assert model.encode(np.array([[9.0], [7.0]]))[:, 0].tolist() == [0, 1]
