"""Boosted trees that split one feature each: the same scores at every threshold, category and missing value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from answerable.errors import AnswerableError
from answerable.explanations.additive_reasons import minimum_change, minimum_sufficient_reason
from answerable.subjects.additive_model import AdditiveModel

RNG = np.random.default_rng(0)
N = 300
ROWS = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N).astype(float),
        "home": pd.Categorical(RNG.choice(["own", "rent", "free"], N)),
        "income": RNG.lognormal(1, 0.5, N),
    }
)
ROWS.loc[5:40, "age"] = np.nan
YES = ((ROWS["income"] > 2.5) & (ROWS["home"] != "rent") | (ROWS["age"] > 65)).to_numpy()
KINDS = {
    "two leaves": lambda: HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=40).fit(ROWS, YES),
    "depth 1, three classes": lambda: HistGradientBoostingClassifier(max_depth=1, max_iter=20).fit(
        ROWS, np.digitize(ROWS["income"], [2, 4])
    ),
    "deeper, without interactions": lambda: HistGradientBoostingClassifier(
        interaction_cst="no_interactions", max_iter=20
    ).fit(ROWS, YES),
    "regression": lambda: HistGradientBoostingRegressor(max_depth=1, max_iter=40).fit(ROWS, ROWS["income"]),
    "no tree at all": lambda: HistGradientBoostingRegressor(max_depth=1, max_iter=2).fit(ROWS, np.ones(N)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_histogram_boosting_keeps_its_scores(kind: str) -> None:
    fitted = KINDS[kind]()
    for model in (AdditiveModel.from_sklearn(fitted, ROWS), AdditiveModel.from_sklearn(fitted)):
        assert model.check(ROWS) < 1e-12


def test_every_threshold_category_and_missing_value_goes_where_the_trees_send_it() -> None:
    fitted = KINDS["deeper, without interactions"]()
    model = AdditiveModel.from_sklearn(fitted)
    edges = np.concatenate([model.features[j].edges[1:-1] for j in (0, 2)])
    values = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), [np.nan]])
    rows = pd.DataFrame(
        {
            "age": values,
            "home": pd.Categorical(np.resize(["own", "rent", "free"], len(values)), ROWS["home"].cat.categories),
            "income": values[::-1],
        }
    )
    assert len(values) > 30
    assert model.check(rows) < 1e-12


def test_a_value_may_be_missing_only_where_the_rows_had_such() -> None:
    model = AdditiveModel.from_sklearn(KINDS["two leaves"](), ROWS)
    assert [shape.missing is not None for shape in model.features] == [True, False, False]
    assert model.features[0].missing_weight == 36
    with pytest.raises(AnswerableError, match="row 1, feature income: the value is missing"):
        model.encode(ROWS.head(1).assign(income=np.nan))


def test_categories_given_as_numbers_are_levels() -> None:
    X = np.column_stack([ROWS["home"].cat.codes, ROWS["income"]])
    fitted = HistGradientBoostingClassifier(max_depth=1, max_iter=20, categorical_features=[0]).fit(X, YES)
    model = AdditiveModel.from_sklearn(fitted, X)
    assert model.check(X) < 1e-12
    assert model.features[0].levels == ("0", "1", "2")


def test_its_reasons_hold_and_its_changes_flip_the_fitted_model() -> None:
    fitted = KINDS["two leaves"]()
    model = AdditiveModel.from_sklearn(fitted, ROWS)
    rows = ROWS.dropna().head(20).reset_index(drop=True)
    reasons, changes = minimum_sufficient_reason(model, rows), minimum_change(model, rows)
    rng = np.random.default_rng(1)
    for row in range(len(rows)):
        drawn = ROWS.iloc[rng.integers(N, size=400)].copy()
        for name in drawn.columns:
            drawn[name] = ROWS[name].iloc[rng.integers(N, size=400)].array
        for name in reasons["reason"][row]:
            drawn[name] = pd.Series([rows[name][row]] * 400, dtype=ROWS[name].dtype).array
        assert (fitted.predict(drawn) == fitted.predict(rows.iloc[[row]])[0]).all()
        changed = rows.iloc[[row]].copy()
        for entry in changes["new_values"][row]:
            name, value = entry.split(" = ")
            encoded = np.nan if value == "missing" else value if name == "home" else float(value)
            changed[name] = pd.Series([encoded], index=changed.index, dtype=ROWS[name].dtype)
        assert fitted.predict(changed)[0] != fitted.predict(rows.iloc[[row]])[0]


REFUSED: dict[str, tuple[Any, str]] = {
    "deep": (lambda: HistGradientBoostingClassifier(max_iter=3).fit(ROWS, YES), "not additive: tree 1 joins age & "),
    "log link": (
        lambda: HistGradientBoostingRegressor(loss="poisson", max_depth=1, max_iter=2).fit(ROWS, ROWS["income"]),
        "HistGradientBoostingRegressor: its link is LogLink",
    ),
    "linear log link": (
        lambda: PoissonRegressor().fit(ROWS[["income"]], ROWS["income"]),
        "PoissonRegressor: its link is LogLink",
    ),
    "on top of another": (
        lambda: GradientBoostingClassifier(max_depth=1, n_estimators=2, init=LogisticRegression()).fit(
            ROWS[["income"]], YES
        ),
        "not additive: its trees come on top of LogisticRegression; fit it with init=None",
    ),
    "deep, in single precision": (
        lambda: GradientBoostingRegressor(max_depth=2, n_estimators=2).fit(
            ROWS[["income"]].assign(more=ROWS["home"].cat.codes), YES
        ),
        "not additive: tree 1 joins income & more; fit it with max_depth=1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_additive_is_refused_by_name(name: str) -> None:
    make, line = REFUSED[name]
    with pytest.raises(AnswerableError) as raised:
        AdditiveModel.from_sklearn(make())
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
