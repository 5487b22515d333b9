"""All effects along paths with their intervals, against what gives some of them today.

DoubleML estimates the total effect with the same doubly robust score; it gets scikit-learn's boosted trees, which fit
what ours fit, and our folds. statsmodels simulates one mediator from parametric models, pingouin resamples linear ones.
The authors' route repeats the whole fit 500 times.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from answerable.explanations.path_effects import BoostedTrees, PathSpecificEffects
from answerable.statistics import fold_numbers, simultaneous_intervals
from bench.racing import Race

TREES = BoostedTrees()
BLOCKS = {"W": [f"w{j}" for j in range(10)], "V": ["v0", "v1", "v2"]}
COVARIATES = ["z0", "z1", "z2"]


def races(*, quick: bool) -> list[Race]:
    return [double_ml(quick), simulations(quick), resamples(quick), splits(quick), bands(), *sizes(quick)]


def study(n: int) -> pl.DataFrame:
    """Sixteen measurements in steps of 0.1, so that every training set holds every value; a numeric outcome."""
    rng = np.random.default_rng(n)

    def measured(raw: np.ndarray) -> np.ndarray:
        return np.round(np.clip(raw, -1.5, 1.5), 1)

    z = measured(rng.standard_normal((n, 3)))
    x = (rng.random(n) < 1 / (1 + np.exp(-z @ [0.5, -0.4, 0.3]))).astype(int)
    w = measured(0.2 * x[:, None] + 0.3 * z[:, [0]] + rng.standard_normal((n, 10)))
    v = measured(0.3 * x[:, None] + 0.2 * w[:, :3] + rng.standard_normal((n, 3)))
    y = 0.5 * x + w[:, 0] + v[:, 0] * v[:, 1] + z[:, 0] + rng.standard_normal(n)
    names = [*COVARIATES, *BLOCKS["W"], *BLOCKS["V"]]
    return pl.DataFrame({"x": x, "y": y, **dict(zip(names, np.hstack([z, w, v]).T, strict=True))})


def double_ml(quick: bool) -> Race:
    """The total effect by DoubleML; ours gives it and all others, and has the same number for it."""
    from doubleml import DoubleMLData, DoubleMLIRM
    from doubleml.utils import PSProcessorConfig
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    n = 4000 if quick else 16_000
    table = study(n)
    frame = table.select("y", "x", *COVARIATES).to_pandas()
    folds = fold_numbers(n, 5, seed=0, strata=table["x"].to_numpy())
    split = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    settings: dict[str, Any] = {
        "max_iter": TREES.trees, "max_depth": TREES.depth, "learning_rate": TREES.learning_rate,
        "max_leaf_nodes": None, "l2_regularization": TREES.l2, "min_samples_leaf": TREES.least_leaf,
        "early_stopping": False,
    }  # fmt: skip

    def theirs() -> list[float]:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DoubleMLIRM(
                DoubleMLData(frame, "y", "x"), HistGradientBoostingRegressor(**settings),
                HistGradientBoostingClassifier(**settings), draw_sample_splitting=False,
                ps_processor_config=PSProcessorConfig(clipping_threshold=1e-4),
            )  # fmt: skip
            model.set_sample_splitting([split])
            model.fit()
        return [float(model.coef[0])]

    def ours() -> list[float]:
        found = PathSpecificEffects(BLOCKS, trees=TREES, self_normalize=False).fit(
            table, treatment="x", outcome="y", covariates=COVARIATES
        )
        return [one.interval.value for one in found.effects]

    return Race(
        work=f"total, direct, through W, through V, {n} x 16", peer="DoubleMLIRM, total alone", package="DoubleML",
        ours=ours, theirs=theirs, tolerance=1e-8, why="sums in another order; the total is compared",
        target_ratio=1 / 1.5,
    )  # fmt: skip


def one_mediator(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.standard_normal(n)
    x = (rng.random(n) < 0.5).astype(int)
    m = 0.5 * x + 0.3 * z + rng.standard_normal(n)
    y = 0.4 * x + 0.6 * m + 0.2 * z + rng.standard_normal(n)
    return pd.DataFrame({"x": x, "m": m, "z": z, "y": y})


TIMES = 20  # of ours, which takes a few milliseconds


def in_all(frame: pl.DataFrame) -> list[float]:
    """Direct and mediated effect from the regressions alone, as the peers estimate them; intervals are made too."""
    found = PathSpecificEffects({"M": ["m"]}, learner="linear", n_folds=1).fit(
        frame, treatment="x", outcome="y", covariates=["z"]
    )
    assert all(one.interval.low < one.interval.high for one in found.effects)
    plug_in = {levels: one.plug_in for levels, one in found.scores()[0].items()}
    return [plug_in[0, 1] - plug_in[0, 0], plug_in[1, 1] - plug_in[0, 1]]


def many_times(frame: pl.DataFrame) -> list[float]:
    """The same fit again and again, since one takes a few milliseconds; the last is compared."""
    found: list[float] = []
    for _ in range(TIMES):
        found = in_all(frame)
    return found


def simulations(quick: bool) -> Race:
    """statsmodels' Mediation with the same models: each arm its own outcome line."""
    import statsmodels.api as sm
    from statsmodels.stats.mediation import Mediation

    frame = one_mediator(4000)
    own = pl.from_pandas(frame)
    drawn = 10 if quick else 40

    def theirs() -> list[float]:
        np.random.seed(0)  # noqa: NPY002 - what Mediation draws from
        outcome = sm.OLS.from_formula("y ~ x * (m + z)", frame)
        mediator = sm.OLS.from_formula("m ~ x * z", frame)
        summary = Mediation(outcome, mediator, "x", "m").fit(n_rep=drawn).summary()
        return [float(summary.loc["ADE (control)", "Estimate"]), float(summary.loc["ACME (treated)", "Estimate"])]

    return Race(
        work=f"{TIMES} times direct and mediated effect, 4000 rows", peer="statsmodels Mediation",
        package="statsmodels",
        ours=lambda: many_times(own), theirs=theirs, tolerance=0.05,
        why="its own simulation error", sample=f"{drawn} of {TIMES} x 1000 draws",
        their_share=drawn / 1000 / TIMES, target_ratio=1000,
    )  # fmt: skip


def resamples(quick: bool) -> Race:
    """pingouin's bootstrap of a mediated effect."""
    import pingouin

    frame = one_mediator(4000)
    own = pl.from_pandas(frame)
    drawn = 100 if quick else 500

    def theirs() -> list[float]:
        found = pingouin.mediation_analysis(frame, x="x", m="m", y="y", covar="z", n_boot=drawn, seed=0)
        found = found.set_index("path")["coef"]
        return [float(found["Direct"]), float(found["Indirect"])]

    return Race(
        work=f"{TIMES} times direct and mediated effect, 4000 rows", peer="pingouin bootstrap", package="pingouin",
        ours=lambda: many_times(own), theirs=theirs, tolerance=0.02,
        why="its outcome line has one slope for both arms", sample=f"{drawn} of {TIMES} x 500 draws",
        their_share=drawn / 500 / TIMES, target_ratio=50,
    )  # fmt: skip


def splits(quick: bool) -> Race:
    """One fit with an interval from its scores, and the authors' route: the fit repeated with other folds 500 times."""
    table = study(2000 if quick else 4000)

    def fitted(seed: int) -> list[float]:
        found = PathSpecificEffects(BLOCKS, trees=TREES, random_state=seed).fit(
            table, treatment="x", outcome="y", covariates=COVARIATES
        )
        return [one.interval.value for one in found.effects]

    repeated = 3 if quick else 10
    return Race(
        work=f"one fit with interval, {table.height} x 16", peer="500 re-splits, ours", ours=lambda: fitted(0),
        theirs=lambda: [fitted(seed) for seed in range(repeated)], compared=False, target_ratio=400,
        sample=f"{repeated} of 500", their_share=repeated / 500, why="other estimates of the same, without interval",
    )  # fmt: skip


def bands() -> Race:
    psi = np.random.default_rng(0).standard_normal((32_000, 4))
    return Race(
        work="bands for 4 paths at once, 32000 rows, 1000 draws", peer="none",
        ours=lambda: [band.high for band in simultaneous_intervals(psi, seed=0, resamples=1000)], target_s=0.3,
    )  # fmt: skip


def sizes(quick: bool) -> list[Race]:
    """The work doubled twice, and the linear learner."""
    found = []
    for learner, every in (("trees", (4000, 8000, 16_000)), ("linear", (8000, 16_000, 32_000))):
        for n in every[:2] if quick else every:
            table = study(n)

            def ours(table: pl.DataFrame = table, learner: Any = learner) -> list[float]:
                fitted = PathSpecificEffects(BLOCKS, learner=learner).fit(
                    table, treatment="x", outcome="y", covariates=COVARIATES
                )
                return [one.interval.value for one in fitted.effects]

            found.append(Race(work=f"all effects, {learner}, {n} x 16", peer="none", ours=ours))
    return found
