"""Zhang, Jung, Mahajan, Shanmugam and Joshi (NeurIPS 2025) beside ours.

"Paper" is the paper's figure where it prints one of a model that can be drawn again, and else the exact truth of the
model. Its two hospital data sets need a licence and are not here; Berkeley's admissions are public.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from answerable.explanations.path_effects import PathSpecificEffects, influence_scores, stretch_weights, telescope
from answerable.explanations.path_effects.learners import Learner
from answerable.explanations.path_effects.replicas import Replica, make_study
from answerable.explanations.path_effects.sensitivity import sharp_ends
from answerable.explanations.path_effects.solver import stretches
from tests.oracles import path_effects as oracle

Row = tuple[str, float | None, float | None, str]

COVERAGE: tuple[tuple[Replica, Learner, int, int], ...] = (
    ("randomised", "cells", 500, 1000),
    ("randomised", "cells", 2000, 1000),
    ("randomised", "trees", 2000, 300),
    ("binary", "trees", 2000, 200),
    ("binary", "trees", 8000, 60),
)
PATHS = ("total", "direct", "through W", "through V")
ADMISSIONS = Path(__file__).parent.parent / "examples" / "berkeley-admissions.csv"


def rows(*, quick: bool) -> Iterator[Row]:
    yield from exact_model()
    yield from robustness()
    yield from admissions()
    yield from hidden_cause()
    for name, learner, n, times in COVERAGE:
        yield from coverage(name, learner, n, times // 10 if quick else times)
    yield from spread(4000, 6 if quick else 20)
    yield from table_4(8000 if quick else 32_000, 2 if quick else 10)


def exact_model() -> Iterator[Row]:
    """The engine, fed the exact nuisances of the binary model."""
    cells = oracle.binary_cells()
    exact, shares, y = oracle.propensities(cells), cells.p * len(cells.p), cells.y.astype(float)
    found = {}
    for levels in oracle.LEVELS:
        target, regressions = y, []
        for run in reversed(stretches(levels)):
            target = oracle.regression(cells, target, run.level, run.known)
            regressions.insert(0, target)
        scores = influence_scores(levels, cells.x, y, exact, regressions, rows=shares)
        found[levels] = float((scores.psi * shares).mean())
    gap = max(abs(found[levels] - oracle.theta(cells, levels)) for levels in oracle.LEVELS)
    yield "binary model, eight means: largest gap", 0.0, gap, "against sums over all cells"
    steps = telescope(2)
    ours = [found[after] - found[before] for before, after in itertools.pairwise(steps)]
    yield "    through V (table 4 prints -0.125)", -0.125, ours[2], ""
    yield "    through W", oracle.BINARY_EFFECTS["through W"], ours[1], ""
    yield "    direct", oracle.BINARY_EFFECTS["direct"], ours[0], ""
    indirect = found[steps[3]] - found[steps[1]]
    yield "    indirect (table 4: “single mediator”)", -0.033, indirect, "an estimate, printed among errors"


def robustness() -> Iterator[Row]:
    """Bias with some nuisances wrong, against the identity that says it."""
    cells = oracle.binary_cells()
    exact, shares, y = oracle.propensities(cells), cells.p * len(cells.p), cells.y.astype(float)
    truth, runs = oracle.theta(cells, (1, 0, 1)), stretches((1, 0, 1))

    def wave(known: int) -> np.ndarray:
        return np.sin(1 + 7 * cells.z + 3 * cells.w * (known > 0) + 5 * cells.v * (known > 1))

    gap, unbiased, largest = 0.0, 0.0, 0.0
    for wrong_e, wrong_m in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
        used = [np.clip(e + 0.15 * wave(k), 0.02, 0.98) if bad else e for k, (e, bad) in enumerate(zip(exact, wrong_e))]
        target, ideal, regressions = y, [], []
        for run, bad in zip(reversed(runs), reversed(wrong_m)):
            ideal.insert(0, oracle.regression(cells, target, run.level, run.known))
            target = ideal[0] + 0.2 * bad * wave(run.known)
            regressions.insert(0, target)
        scores = influence_scores((1, 0, 1), cells.x, y, used, regressions, normalise=False, rows=shares)
        bias = float((scores.psi * shares).mean()) - truth
        weights, true = stretch_weights((1, 0, 1), cells.x, used), stretch_weights((1, 0, 1), cells.x, exact)
        said = sum(
            float((cells.p * (w - w0) * (m0 - m)).sum()) for w, w0, m0, m in zip(weights, true, ideal, regressions)
        )
        gap, largest = max(gap, abs(bias - said)), max(largest, abs(bias))
        if not any(wrong_e) or not any(wrong_m):
            unbiased = max(unbiased, abs(bias))
    yield "robustness, 64 ways to be wrong: gap to the identity", 0.0, gap, f"largest bias {largest:.3f}"
    yield "    all regressions right, or all propensities", 0.0, unbiased, "bias"


def admissions() -> Iterator[Row]:
    """Berkeley 1973, saturated."""
    found = PathSpecificEffects(
        {"department": ["department"]}, reference="male", comparison="female", learner="cells"
    ).fit(str(ADMISSIONS), treatment="sex", outcome="admission", positive="admitted", counts="applicants")
    for name, (value, se) in oracle.BERKELEY_EFFECTS.items():
        yield f"Berkeley, female minus male: {name}", value, found[name].interval.value, ""
        yield "    standard error", se, found[name].se, ""


def hidden_cause() -> Iterator[Row]:
    """The randomised study, had W and V a hidden cause in common."""
    mean = np.array([[0.2, 0.6], [0.4, 0.9]])
    p0, p1, v_given = np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([[0.8, 0.2], [0.6, 0.4]])
    ends = sharp_ends(p0, p1, v_given, mean)
    programme = oracle.hidden_cause_ends(p0, p1, v_given, mean)
    total = 0.7  # E[Y | x1]
    for word, end, peer in (("largest", ends.low, programme[0]), ("least", ends.high, programme[1])):
        yield f"hidden cause of W and V: {word} effect through V", total - peer, total - end, "linear programme"


def coverage(name: Replica, learner: Learner, n: int, times: int) -> Iterator[Row]:
    """How often 95 % intervals hold the truth, and how often the answer withholds itself."""
    held, flagged = dict.fromkeys(PATHS, 0), 0
    for k in range(times):
        study = make_study(name, n, np.random.default_rng([11, k]))
        found = PathSpecificEffects(study.mediators, learner=learner, random_state=k).fit(
            study.table, treatment="x", outcome="y", covariates=study.covariates
        )
        flagged += bool(found.flaws)
        for path, truth in _truths(study.truth).items():
            held[path] += found[path].interval.low <= truth <= found[path].interval.high
    for path in PATHS:
        yield f"coverage, {name}, {learner}, n = {n}, {path}", 0.95, held[path] / times, f"{times} studies"
    yield "    answers withheld", None, flagged / times, "the groups overlap too little" if flagged else ""


def _truths(theta: Any) -> dict[str, float]:
    steps = [theta[levels] for levels in telescope(2)]
    return dict(zip(PATHS, [steps[-1] - steps[0], *np.diff(steps)], strict=True))


def spread(n: int, times: int) -> Iterator[Row]:
    """The continuous model: normalised and canonical weights beside each other."""
    found: dict[str, list[float]] = {"self-normalised": [], "canonical": []}
    least = []
    for k in range(times):
        study = make_study("continuous", n, np.random.default_rng([13, k]))
        fitted = PathSpecificEffects(study.mediators, random_state=k).fit(
            study.table, treatment="x", outcome="y", covariates=study.covariates
        )
        table = fitted.estimators().filter(pl.col("effect") == "through V")
        for way, values in found.items():
            values.append(table[way][0])
        least.append(min(row.effective for row in fitted.weights))
    for way, values in found.items():
        yield f"continuous, n = {n}, through V, {way}: s.d.", None, float(np.std(values, ddof=1)), f"{times} studies"
    yield "    effective rows of the worst weights", None, float(np.median(least)), "median"


def table_4(n: int, times: int) -> Iterator[Row]:
    """Table 4: error of the effect through V, mean over samples."""
    for name, printed in (("binary", -0.001), ("continuous", 0.006)):
        errors = []
        for k in range(times):
            study = make_study(name, n, np.random.default_rng([17, k]))
            fitted = PathSpecificEffects(study.mediators, random_state=k).fit(
                study.table, treatment="x", outcome="y", covariates=study.covariates
            )
            errors.append(fitted["through V"].interval.value - _truths(study.truth)["through V"])
        se = float(np.std(errors, ddof=1) / np.sqrt(times))
        note = f"{times} samples of {n}, s.e. {se:.3f}; the paper's 100 of 32,000"
        yield f"table 4, {name}: error through V", printed, float(np.mean(errors)), note
