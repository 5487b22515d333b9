"""Fitted objects of packages that are tried where they are installed: InterpretML, pyGAM, skops."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from answerable.errors import AnswerableError, CannotRead, Refused
from answerable.subjects.additive_model import AdditiveModel, load

DATA = load_breast_cancer(as_frame=True)
X, Y = DATA.data.iloc[:, :6], DATA.target


@pytest.mark.filterwarnings("ignore")
def test_an_ebm_keeps_its_scores_live_and_from_its_file(tmp_path: Path) -> None:
    glassbox = pytest.importorskip("interpret.glassbox", reason="interpret-core is not installed")
    options = {"max_rounds": 60, "outer_bags": 2, "n_jobs": 1, "random_state": 0}
    frame = X.assign(kind=pd.cut(X["mean area"], 3, labels=["s", "m", "l"]).astype(str))
    three = pd.cut(X["mean radius"], 3, labels=False)
    for fitted in (
        glassbox.ExplainableBoostingClassifier(interactions=4, **options).fit(frame, Y),
        glassbox.ExplainableBoostingRegressor(interactions=2, **options).fit(frame, X["mean radius"]),
        glassbox.ExplainableBoostingClassifier(interactions=0, **options).fit(frame, three),
    ):
        model = AdditiveModel.from_ebm(fitted)
        assert model.check(frame) < 1e-10
        fitted.to_json(str(tmp_path / "ebm.json"))
        assert load(str(tmp_path / "ebm.json")).to_json() == model.to_json()


@pytest.mark.filterwarnings("ignore")
def test_an_ebm_with_pairs_keeps_its_scores_where_values_are_missing(tmp_path: Path) -> None:
    glassbox = pytest.importorskip("interpret.glassbox", reason="interpret-core is not installed")
    kind = pd.cut(X["mean area"], 3, labels=["s", "m", "l"]).astype(object)
    frame = X.assign(kind=kind.where(X.index % 7 > 0, None), flag=X["mean texture"] > 20)
    frame["mean radius"] = frame["mean radius"].where(X.index % 5 > 0)
    types = ["continuous"] * 6 + ["nominal"] * 2
    options = {"max_rounds": 40, "outer_bags": 2, "n_jobs": 1, "random_state": 0, "max_interaction_bins": 5}
    joined = [("mean radius", "kind"), ("mean radius", "mean texture"), ("kind", "flag")]
    fitted = glassbox.ExplainableBoostingClassifier(interactions=joined, feature_types=types, **options).fit(frame, Y)
    model = AdditiveModel.from_ebm(fitted)
    assert [shape.missing is not None for shape in model.features] == [True, *[False] * 5, True, False]
    assert len(model.pairs) == 3
    assert model.check(frame) < 1e-12
    with pytest.raises(AnswerableError, match="row 3, feature mean area: the value is missing; leave such rows out"):
        model.check(frame.assign(**{"mean area": frame["mean area"].where(X.index != 2)}))
    fitted.to_json(str(tmp_path / "ebm.json"), detail="minimal")  # without weights and observed ranges
    least = load(str(tmp_path / "ebm.json"))
    rows = frame.dropna()
    assert least.score(least.encode(rows)) == pytest.approx(model.score(model.encode(rows)), abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_pygam_keeps_its_scores() -> None:
    pygam = pytest.importorskip("pygam", reason="pygam is not installed")
    rows = np.column_stack([X.to_numpy()[:, :3], np.random.default_rng(0).integers(0, 3, len(X))])
    terms = pygam.s(0, n_splines=9) + pygam.s(1, spline_order=2) + pygam.l(2) + pygam.f(3)
    areas = X["mean area"] / X["mean area"].max()
    for fitted in (pygam.LogisticGAM(terms).fit(rows, Y), pygam.LinearGAM(terms).fit(rows, areas)):
        model = AdditiveModel.from_pygam(fitted, ["a", "b", "c", "d"])
        assert model.check(rows) < 1e-10
        assert model.check(pd.DataFrame(rows, columns=model.names)[["d", "c", "b", "a"]]) < 1e-10
    twice = pygam.LinearGAM(pygam.s(3, n_splines=5) + pygam.f(3)).fit(rows, areas)
    with pytest.raises(AnswerableError, match="feature x3: one step takes it as categories, another"):
        AdditiveModel.from_pygam(twice)
    tensor = pygam.LinearGAM(pygam.te(0, 1)).fit(rows, X["mean area"])
    with pytest.raises(AnswerableError, match="not additive: the term"):
        AdditiveModel.from_pygam(tensor)
    counts = pygam.PoissonGAM(pygam.s(0)).fit(rows, rows[:, 3])
    with pytest.raises(AnswerableError, match="its link is"):
        AdditiveModel.from_pygam(counts)


def test_a_skops_file_is_read_and_an_untrusted_one_refused(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    io.dump(fitted, tmp_path / "model.skops")
    assert load(str(tmp_path / "model.skops"), X).check(X) < 1e-12
    io.dump(make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()).fit(X, Y), tmp_path / "log.skops")
    with pytest.raises(AnswerableError) as raised:
        load(str(tmp_path / "log.skops"), X)
    assert isinstance(raised.value, Refused) or "FunctionTransformer" in str(raised.value)
    with zipfile.ZipFile(tmp_path / "damaged.skops", "w") as archive:
        archive.writestr("schema.json", "{")
    with pytest.raises(CannotRead, match=r"damaged\.skops: no model can be read .*; save it again with skops"):
        load(str(tmp_path / "damaged.skops"))
