"""Reasons, changes and Shapley values of additive models against what analysts use today.

InterpretML and shap explain the same score; shap's exact explainer the same probability against the same background
rows. Anchors answer another question with another guarantee: a rule that held in sampled rows, not a proved one; they
stand here because they are what gives "a few facts that settle it" today.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from answerable.compiled import usable_cores
from answerable.explanations.additive_reasons import of_probability_over_rows
from answerable.explanations.additive_reasons.cases import reasons_of
from answerable.explanations.additive_reasons.likelihood import shapley_matrix
from answerable.subjects.additive_model import AdditiveModel, Shape
from bench.racing import Race, bytes_per_second

logging.getLogger("interpret").setLevel(logging.ERROR)
LEVELS = 32


def races(*, quick: bool) -> list[Race]:
    bandwidth = bytes_per_second()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            *local_tables(quick, bandwidth),
            probability(quick),
            *(anchors() if not quick else []),
            *many_rows(quick, bandwidth),
        ]


def local_tables(quick: bool, bandwidth: float) -> list[Race]:
    """Shapley values of the score and the full local table, for a boosting machine on 15 features."""
    import shap
    from interpret.glassbox import ExplainableBoostingClassifier

    n_rows = 2000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 15))
    y = (X @ rng.normal(size=15) + np.sin(3 * X[:, 0]) + rng.normal(size=n_rows) > 0).astype(int)
    options: dict[str, Any] = {"max_rounds": 200, "outer_bags": 2, "n_jobs": 1, "random_state": 0}
    plain = ExplainableBoostingClassifier(interactions=0, **options).fit(X, y)
    paired = ExplainableBoostingClassifier(interactions=3, **options).fit(X, y)
    model, joined = AdditiveModel.from_ebm(plain), AdditiveModel.from_ebm(paired)
    sample = 100 if quick else 400
    background = np.zeros((1, 15))  # shap's Additive masks by a row of zeros
    explainer = shap.explainers.Additive(lambda rows: plain.decision_function(rows), background)
    floor = X.nbytes * 2 / bandwidth

    def ours_at_zero() -> np.ndarray:
        own = model.contributions(model.encode(X))[:, :, 0]
        return own - model.contributions(background)[:, :, 0]

    def theirs_at_zero() -> np.ndarray:
        return explainer(X[:sample]).values

    def terms(ebm: Any) -> Callable[[], np.ndarray]:
        return lambda: _local_scores(ebm, X)

    return [
        Race(
            work="score Shapley values, 2000 x 15", peer="shap Additive", package="shap", ours=ours_at_zero,
            theirs=theirs_at_zero, sample=f"{sample} of {n_rows} rows", their_share=sample / n_rows, floor_s=floor,
            target_ratio=300,
        ),
        Race(
            work="local table, 2000 x 15", peer="explain_local", package="interpret-core",
            ours=lambda: model.contributions(model.encode(X))[:, :, 0], theirs=terms(plain), floor_s=floor,
            target_ratio=20,
        ),
        Race(
            work="score Shapley values with 3 pairs, 2000 x 15", peer="none",
            ours=lambda: shapley_matrix(joined, joined.encode(X), output="score")[0], floor_s=floor,
        ),
    ]  # fmt: skip


def _local_scores(ebm: Any, X: np.ndarray) -> np.ndarray:
    local = ebm.explain_local(X)
    return np.array([local.data(row)["scores"] for row in range(len(X))])


def probability(quick: bool) -> Race:
    """Shapley values of a probability against 50 background rows, 12 features."""
    import shap
    from interpret.glassbox import ExplainableBoostingClassifier

    rng = np.random.default_rng(1)
    n, n_background = 12, 50
    X = rng.normal(size=(1000, n))
    y = (X @ rng.normal(size=n) + rng.normal(size=1000) > 0).astype(int)
    options: dict[str, Any] = {"max_rounds": 100, "outer_bags": 2, "n_jobs": 1, "random_state": 0}
    fitted = ExplainableBoostingClassifier(interactions=0, **options).fit(X, y)
    model = AdditiveModel.from_ebm(fitted)
    rows, background = X[:1], X[1 : 1 + n_background]
    masker = shap.maskers.Independent(background, max_samples=n_background)
    explainer = shap.explainers.Exact(lambda given: fitted.predict_proba(given)[:, 1], masker)
    intercept = float(model.intercept[0])

    def ours() -> np.ndarray:
        own = model.contributions(rows)[0, :, 0]
        return of_probability_over_rows(own, model.contributions(background)[:, :, 0], intercept).values

    return Race(
        work=f"probability Shapley values, {n} features, {n_background} background rows", peer="shap Exact",
        package="shap", ours=ours, theirs=lambda: explainer(rows).values[0], tolerance=1e-10,
        why="both sum thousands of terms in doubles", target_ratio=100,
    )  # fmt: skip


def anchors() -> list[Race]:
    """The smallest reason and change of one row beside an anchor for it, 30 features."""
    from anchor.anchor_tabular import AnchorTabularExplainer
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    model = AdditiveModel.from_sklearn(fitted, X)
    explainer = AnchorTabularExplainer(["0", "1"], [f"x{j}" for j in range(X.shape[1])], X)

    def anchor() -> list[str]:
        np.random.seed(0)  # noqa: NPY002  its sampler draws from numpy's global generator
        return explainer.explain_instance(X[0], fitted.predict, threshold=0.95).names()

    return [
        Race(
            work="smallest reason and change, 569 x 30", peer="anchors", package="anchor-exp",
            ours=lambda: reasons_of(model, X).reason_size, theirs=anchor,
            sample="1 of 569 rows", their_share=1 / 569, compared=False, target_ratio=1e5,
            why="another guarantee: an anchor held in sampled rows, ours is proved; so results are not compared",
        )
    ]  # fmt: skip


def many_rows(quick: bool, bandwidth: float) -> list[Race]:
    """Reasons and changes of many rows: linear in rows, the largest streamed."""
    rng = np.random.default_rng(2)
    n = 20
    shapes = tuple(
        Shape.table(f"x{j}", [-np.inf, *np.sort(rng.random(LEVELS - 1)), np.inf], rng.normal(size=LEVELS))
        for j in range(n)
    )
    model = AdditiveModel(shapes, np.zeros(1), task="binary")
    block = rng.random((100_000, n))
    cores = usable_cores()

    def solve(repeats: int, threads: int) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            # rows arrive in blocks of 100,000, as they do from a file
            sizes = [reasons_of(model, model.encode(block), threads=threads).reason_size for _ in range(repeats)]
            return np.array([part.sum() for part in sizes])

        return run

    whole = rng.random((1_000_000, n))
    found = [
        Race(
            work="smallest reason and change, 1e6 x 20", peer="none", threads=threads,
            ours=lambda threads=threads: reasons_of(model, model.encode(whole), threads=threads).reason_size,
            target_s=4.0 if threads == cores else None, floor_s=whole.nbytes / bandwidth,
        )
        for threads in dict.fromkeys((1, cores))
    ]  # fmt: skip
    found += [
        Race(
            work=f"the same, {repeats * 100_000:.0e} x 20, streamed", peer="none", threads=cores,
            ours=solve(repeats, cores), floor_s=repeats * block.nbytes / bandwidth,
        )
        for repeats in ((1, 10) if quick else (1, 10, 100))
    ]  # fmt: skip
    return found
