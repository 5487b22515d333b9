"""Zhang, Jung, Mahajan, Shanmugam and Joshi (NeurIPS 2025) beside ours.

"Paper" is the paper's figure where it prints one of a model that can be drawn again, and else the exact truth of the
model. Its two hospital data sets need a licence and are not here; Berkeley's admissions are public.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from answerable.explanations.path_effects import PathSpecificEffects, influence_scores, stretch_weights, telescope
from answerable.explanations.path_effects.learners import Learner
from answerable.explanations.path_effects.nuisances import Nested
from answerable.explanations.path_effects.replicas import Replica, make_study
from answerable.explanations.path_effects.sensitivity import sharp_ends
from answerable.explanations.path_effects.solver import stretches
from reproductions import kept
from tests.oracles import path_effects as oracle

Row = tuple[str, float | None, float | None, str]

STUDIES = 1000


class Way(NamedTuple):
    """How studies are made and fitted, and how many in a quick run."""

    name: Replica
    learner: Learner
    n: int
    quick: int
    nested: Nested = "reuse"
    splits: int = 1

    def __str__(self) -> str:
        parts = ", parts" if self.nested == "split" else ""
        return f"{self.name}, {self.learner}{parts}{f', {self.splits} splits' if self.splits > 1 else ''}, n = {self.n}"


COVERAGE = (
    Way("randomised", "cells", 500, 100),
    Way("randomised", "cells", 2000, 100),
    Way("randomised", "trees", 500, 100),
    Way("randomised", "trees", 500, 100, "split"),
    Way("randomised", "trees", 2000, 50),
    Way("randomised", "trees", 2000, 50, "split"),
    Way("binary", "trees", 2000, 20),
    Way("binary", "trees", 8000, 5),
    Way("wide", "trees", 2000, 10),
    Way("wide", "trees", 2000, 2, "split", splits=5),
    Way("wide", "trees", 8000, 2),
)
PATHS = ("total", "direct", "through W", "through V")
TABLE_4: dict[Replica, float] = {"binary": -0.001, "continuous": 0.006}
MEASURED = "answerable.explanations.path_effects.api"
EXAMPLES = Path(__file__).parent.parent / "examples"
ADMISSIONS, SMOKERS = EXAMPLES / "berkeley-admissions.csv", EXAMPLES / "nhefs.csv"
DRAWS = 40  # of statsmodels' simulation


def rows(*, quick: bool) -> Iterator[Row]:
    yield from exact_model()
    yield from robustness()
    yield from admissions()
    yield from hidden_cause()
    yield from mediation()
    seconds: list[float] = []
    for way in COVERAGE:
        yield from coverage(way, way.quick if quick else STUDIES, seconds)
    yield from spread(4000, 6 if quick else 100, seconds)
    yield from table_4(8000 if quick else 32_000, 2 if quick else 100, seconds)
    yield "time of the made-up studies [s]", None, sum(seconds), "one core; kept from run to run"


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


def mediation() -> Iterator[Row]:
    """Two public data sets by linear models, beside statsmodels' coefficients and its simulation."""
    for name, (frame, treatment, mediator, outcome, covariates) in mediation_studies().items():
        found = PathSpecificEffects({"M": [mediator]}, learner="linear", n_folds=1).fit(
            frame, treatment=treatment, outcome=outcome, covariates=covariates
        )
        mean = {levels: one.plug_in for levels, one in found.scores()[0].items()}
        peer = oracle.simulated_mediation(frame, treatment, mediator, outcome, covariates, draws=DRAWS)
        exact = oracle.linear_mediation(frame, treatment, mediator, outcome, covariates)
        ours = {"direct": mean[0, 1] - mean[0, 0], "mediated": mean[1, 1] - mean[0, 1]}
        for effect, label in (("direct", "direct"), ("mediated", "through M")):
            yield f"{name}, {effect}: from coefficients", exact[effect], ours[effect], "regressions alone"
            note = f"{DRAWS} draws, their standard error {peer[effect].error:.2g}"
            yield "    statsmodels Mediation", peer[effect].value, ours[effect], note
            yield "    doubly robust", peer[effect].value, found[label].interval.value, f"s.e. {found[label].se:.2g}"


def mediation_studies() -> dict[str, tuple[pl.DataFrame, str, str, str, list[str]]]:
    """Table, treatment, mediator, outcome and covariates."""
    framing = (oracle.framing(), "treat", "emo", "p_harm", ["age", "educ", "gender", "income"])
    covariates = ["sex", "age", "race", "education", "smokeintensity", "smokeyrs", "exercise", "active", "wt71"]
    smokers = pl.read_csv(SMOKERS, null_values=["", "NA"]).drop_nulls(["wt82_71", "sbp", *covariates])
    return {
        "framing (265 rows)": framing,
        f"NHEFS ({smokers.height} rows, mmHg)": (smokers, "qsmk", "wt82_71", "sbp", covariates),
    }


def coverage(way: Way, times: int, seconds: list[float]) -> Iterator[Row]:
    """How often 95 % intervals hold the truth, and how often the answer withholds itself."""

    def one(k: int) -> dict[str, Any]:
        begun = time.process_time()
        study = make_study(way.name, way.n, np.random.default_rng([11, k]))
        found = PathSpecificEffects(
            study.mediators, learner=way.learner, nested=way.nested, splits=way.splits, random_state=k
        ).fit(study.table, treatment="x", outcome="y", covariates=study.covariates)
        truth = _truths(study.truth)
        held = [found[path].interval.low <= truth[path] <= found[path].interval.high for path in PATHS]
        return {"held": [bool(h) for h in held], "void": bool(found.flaws), "s": time.process_time() - begun}

    done = list(kept("path-effects", _label(way), MEASURED, times, one))
    seconds.append(sum(study["s"] for study in done))
    for path, held in zip(PATHS, np.mean([study["held"] for study in done], axis=0), strict=True):
        yield f"coverage, {way}, {path}", 0.95, float(held), f"{times} studies"
    void = float(np.mean([study["void"] for study in done]))
    yield "    answers withheld", None, void, "the groups overlap too little" if void else ""


def _label(way: Way) -> str:
    return f"{way.name}-{way.learner}-{way.nested}-{way.splits}-{way.n}"


def _truths(theta: Any) -> dict[str, float]:
    steps = [theta[levels] for levels in telescope(2)]
    return dict(zip(PATHS, [steps[-1] - steps[0], *np.diff(steps)], strict=True))


def spread(n: int, times: int, seconds: list[float]) -> Iterator[Row]:
    """The continuous model: normalised and canonical weights beside each other."""
    ways = ("self-normalised", "canonical")

    def one(k: int) -> dict[str, float]:
        begun = time.process_time()
        study = make_study("continuous", n, np.random.default_rng([13, k]))
        fitted = PathSpecificEffects(study.mediators, random_state=k).fit(
            study.table, treatment="x", outcome="y", covariates=study.covariates
        )
        table = fitted.estimators().filter(pl.col("effect") == "through V")
        least = min(row.effective for row in fitted.weights)
        return {way: table[way][0] for way in ways} | {"least": least, "s": time.process_time() - begun}

    done = list(kept("path-effects", f"continuous-{n}", MEASURED, times, one))
    seconds.append(sum(study["s"] for study in done))
    for way in ways:
        scatter = float(np.std([study[way] for study in done], ddof=1))
        yield f"continuous, n = {n}, through V, {way}: s.d.", None, scatter, f"{times} studies"
    yield (
        "    effective rows of the worst weights",
        None,
        float(np.median([study["least"] for study in done])),
        "median",
    )


def table_4(n: int, times: int, seconds: list[float]) -> Iterator[Row]:
    """Table 4: error of the effect through V, mean over samples."""
    for name, printed in TABLE_4.items():

        def one(k: int, name: Replica = name) -> dict[str, float]:
            begun = time.process_time()
            study = make_study(name, n, np.random.default_rng([17, k]))
            fitted = PathSpecificEffects(study.mediators, random_state=k).fit(
                study.table, treatment="x", outcome="y", covariates=study.covariates
            )
            error = fitted["through V"].interval.value - _truths(study.truth)["through V"]
            return {"error": error, "s": time.process_time() - begun}

        done = list(kept("path-effects", f"table-4-{name}-{n}", MEASURED, times, one))
        seconds.append(sum(study["s"] for study in done))
        errors = [study["error"] for study in done]
        se = float(np.std(errors, ddof=1) / np.sqrt(times))
        note = f"{times} samples of {n}, s.e. {se:.3f}; the paper's 100 of 32,000"
        yield f"table 4, {name}: error through V", printed, float(np.mean(errors)), note
