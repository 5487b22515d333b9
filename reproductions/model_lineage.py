"""ErrorTrace (Zang et al., NeurIPS 2025) beside ours.

Its answers of 27 language models are not published, so its tables cannot be run here. What can: the same method on 27
classifiers of handwritten digits, four families, 16,185 items under five corruptions (the digits replica), and the
plain rivals beside it. Where a row has the paper's figure and ours, both are of the same measure on different models.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator

import numpy as np
from scipy.stats import kstest
from threadpoolctl import threadpool_limits

from answerable.provenance.model_lineage import ErrorTracer
from answerable.provenance.model_lineage.replicas import Replica, digits, simulated
from answerable.provenance.model_lineage.solver import candidates
from answerable.provenance.model_lineage.tracing import SCORES, Reference, Settings, best_family, refer, scores_of
from answerable.statistics import wilson_interval

Row = tuple[str, float | None, float | None, str]

ELSEWHERE = "needs answers of 27 language models, which are not published"
REPAIRED = {500: 0.70, 1200: 0.67, 1500: 0.44}  # the paper's table 11
FORCED = {100: 0.81, 500: 0.74, 1000: 0.70, 1500: 0.67, 2000: 0.67, 3000: 0.67}  # table 12
DROPPED = {0.1: 0.81, 0.3: 0.67, 0.5: 0.67, 0.7: 0.59}  # table 15


def rows(*, quick: bool) -> Iterator[Row]:
    warnings.simplefilter("ignore", UserWarning)
    with threadpool_limits(1):  # models are left out side by side, and small matrices gain nothing from more threads
        yield from _rows(quick=quick)


def _rows(*, quick: bool) -> Iterator[Row]:
    yield "LLMmap, models left out", 0.5925, None, ELSEWHERE
    for how, paper in {"K-means": 0.4074, "DBSCAN": 0.4444, "a Gaussian mixture": 0.6666}.items():
        yield f"error spaces by {how}, models left out", paper, None, ELSEWHERE
    replicas = [digits(seed) for seed in range(1 if quick else 3)]
    fitted = [fit(made) for made in replicas]
    yield from named(replicas, fitted)
    yield from without_graph(replicas[0])
    yield from decided(fitted)
    yield from derived_and_strangers(replicas, fitted)
    yield from attacked(replicas[0])
    yield from dropped(replicas[0], quick=quick)
    yield from by_lot(quick=quick)
    yield from by_size(quick=quick)
    yield from signals(quick=quick)


def fit(made: Replica, **options: object) -> ErrorTracer:
    tracer = ErrorTracer(n_jobs=2, **options)  # type: ignore[arg-type]
    return tracer.fit(made.errors, made.families, datasets=made.datasets, embeddings=made.points)


def named(replicas: list[Replica], fitted: list[ErrorTracer]) -> Iterator[Row]:
    """Shares of models whose family is named: one of the references, or left out of them."""
    inside = sum(
        int((tracer.decision_function(made.errors).argmax(axis=1) == tracer.families_).sum())
        for made, tracer in zip(replicas, fitted)
    )
    yield share("the suspect is a reference itself, ErrorTrace", 1.0, inside, 27 * len(fitted))
    for score in SCORES:
        right = [int((table[score] == table["family"]).sum()) for table in map(ErrorTracer.cross_validate, fitted)]
        paper = 0.8518 if score == "error_trace" else None
        yield share(f"models left out, {score}", paper, sum(right), 27 * len(right), f" ({one_by_one(right)} of 27)")


def without_graph(made: Replica) -> Iterator[Row]:
    """The same on the first replica, where spaces are grown otherwise or not at all, or are larger."""
    others = {
        "without a graph": {"growth": "none"},
        "grown as the scripts do": {"growth": "half"},
        "3000 / 2000 / 800 items": {"n_points": 3000, "start": 2000, "end": 800},
    }
    for what, options in others.items():
        table = fit(made, **options).cross_validate()
        yield share(f"    ErrorTrace {what}", None, int((table["error_trace"] == table["family"]).sum()), 27)


def decided(fitted: list[ErrorTracer]) -> Iterator[Row]:
    """What is decided about models left out, at level .05."""
    counts: Counter[str] = Counter()
    for tracer in fitted:
        for family, word in tracer.cross_validate().select("family", "decided").iter_rows():
            counts["rightly named" if word == family else word if word in ("none", "undecided") else "wrong"] += 1
    for word in ("rightly named", "wrong", "none", "undecided"):
        yield share(f"verdict on models left out: {word}", None, counts[word], counts.total())


def derived_and_strangers(replicas: list[Replica], fitted: list[ErrorTracer]) -> Iterator[Row]:
    """Models made from one perceptron, and models of no family here."""
    findings = [
        (name, tracer.findings((answers != made.gold).astype(float)[None])[0])
        for made, tracer in zip(replicas, fitted)
        for name, answers in made.others.items()
    ]
    for prefix in ("mlp-8, 20", "mlp-8, 40", "mlp-8, 60", "mlp-8, 80", "mlp-8, tuned", "mlp-8 voting"):
        made_of = [finding for name, finding in findings if name.startswith(prefix)]
        what = prefix + (" % pruned" if prefix[-1].isdigit() else "")
        for k, score in enumerate(SCORES):
            paper = 1.0 if k == 0 else None
            yield share(f"{what}, {score}", paper, sum(f.named[k] == "mlp" for f in made_of), len(made_of))
        words = Counter(finding.word for finding in made_of)
        yield share("    verdict: mlp", None, words["mlp"], len(made_of))
        wrong = len(made_of) - words["mlp"] - words["none"] - words["undecided"]
        yield share("    verdict: a wrong family", None, wrong, len(made_of))
    strangers = [finding for name, finding in findings if not name.startswith("mlp")]
    words = Counter(finding.word for finding in strangers)
    yield share("naive Bayes, discriminant: none", 1.0, words["none"], len(strangers))
    yield share("    undecided", None, words["undecided"], len(strangers))
    accused = len(strangers) - words["none"] - words["undecided"]
    yield share("    accused of a family", 0.0, accused, len(strangers))


def attacked(made: Replica) -> Iterator[Row]:
    """Every other model left out, with its answers changed by somebody who knows its family's weights."""
    for how, papers in (("repaired", REPAIRED), ("forced wrong", FORCED)):
        counts = sorted({0, 100, 300, 600, 1200, *papers} if how == "repaired" else papers)
        right = np.zeros((len(counts), len(SCORES)), int)
        models = range(0, len(made.models), 2)
        for model in models:
            right += named_after(made, model, counts, how)
        for place, count in enumerate(counts):
            for k, score in enumerate(SCORES):
                paper = papers.get(count) if k == 0 else None
                yield share(f"{count} answers {how}, {score}", paper, int(right[place, k]), len(models))


def named_after(made: Replica, model: int, counts: list[int], how: str) -> np.ndarray:
    """Whether each score names the family, after each number of changed answers: (K, 3) bool."""
    reference, names = without(made, np.arange(len(made.models)) != model)
    own = names.index(made.families[model])
    items = candidates(reference.uniqueness, own, len(made.gold), 0.0)
    if how != "repaired":
        items = items[::-1]  # the least telling ones of what the family errs at
    found = []
    for count in counts:
        errors = made.errors[model].copy()
        errors[items[:count]] = float(how != "repaired")
        found.append(best_family(scores_of(reference, errors)) == own)
    return np.array(found)


def without(made: Replica, kept: np.ndarray) -> tuple[Reference, list[str]]:
    names, numbers = np.unique(np.array(made.families)[kept], return_inverse=True)
    codes = np.unique(made.datasets, return_inverse=True)[1]
    return refer(made.errors[kept], numbers, codes, made.points, Settings()), names.tolist()


def dropped(made: Replica, *, quick: bool) -> Iterator[Row]:
    """Models left out, on a part of the items."""
    rng = np.random.default_rng(0)
    for part, paper in DROPPED.items():
        if quick and part not in (0.1, 0.7):
            continue
        kept = np.sort(rng.permutation(len(made.gold))[int(part * len(made.gold)) :])
        tracer = ErrorTracer(n_jobs=2, least_evidence=100).fit(
            made.errors[:, kept],
            made.families,
            datasets=np.array(made.datasets)[kept],
            embeddings=made.points[kept],
        )
        table = tracer.cross_validate()
        for k, score in enumerate(SCORES):
            right = int((table[score] == table["family"]).sum())
            yield share(f"{part:.0%} of the items dropped, {score}", paper if k == 0 else None, right, 27)


def by_lot(*, quick: bool) -> Iterator[Row]:
    """Models of no family at all: how many are named by chance, and how their p-values lie."""
    rng = np.random.default_rng(0)
    times = 20 if quick else 120
    right = accused = 0
    p_values = []
    for _ in range(times):
        errors = (rng.random((25, 600)) < rng.beta(2, 3, 600)).astype(float)
        families = rng.permutation(np.repeat(list("abcd"), 6))
        tracer = ErrorTracer(n_points=200, start=120, end=60, least_evidence=20).fit(errors[1:], families)
        table = tracer.cross_validate()
        right += int((table["error_trace"] == table["family"]).sum())
        finding = tracer.findings(errors[:1])[0]
        accused += finding.word not in ("none", "undecided")
        p_values.append(finding.strangers[0])
    yield share("families by lot: named, of 4", 0.25, right, 24 * times)
    yield share("    a stranger accused at level .05", 0.05, accused, times)
    smaller = kstest(p_values, "uniform", alternative="greater").pvalue
    yield "    p-values smaller than uniform? Kolmogorov-Smirnov p", None, float(smaller), f"{times} strangers"


def by_size(*, quick: bool) -> Iterator[Row]:
    """Which family a model of none is nearest to where one has five models and the others six, as with one left out."""
    rng = np.random.default_rng(1)
    families, times = np.repeat(np.arange(4), (5, 6, 6, 6)), 300 if quick else 1200
    datasets = np.zeros(600, np.int64)
    smaller = np.zeros(3, int)
    for _ in range(times):
        errors = (rng.random((24, 600)) < rng.beta(2, 3, 600)).astype(float)
        reference = refer(errors[1:], families, datasets, None, Settings(200, 120, 60))
        smaller += best_family(scores_of(reference, errors[0])) == 0
    for count, score in zip(smaller, SCORES):
        yield share(f"by lot: the family of 5 among three of 6, {score}", 0.25, int(count), times)


def signals(*, quick: bool) -> Iterator[Row]:
    """A replica from a logistic model of items, where the family's taste is weak or strong."""
    for taste in (0.4, 0.7, 2.2):
        right, models = np.zeros(3, int), 0
        for seed in range(1 if quick else 2):
            made = simulated(4000, seed, taste=taste)
            tracer = fit(made, n_points=1000, start=600, end=300)
            table = tracer.cross_validate()
            right += [int((table[score] == table["family"]).sum()) for score in SCORES]
            models += len(made.models)
        for count, score in zip(right, SCORES):
            yield share(f"simulated, taste {taste}, {score}", None, int(count), models)


def share(what: str, paper: float | None, count: int, of: int, more: str = "") -> Row:
    found = wilson_interval(count, of)
    return what, paper, found.value, f"{count} of {of}, {found.low:.2f} to {found.high:.2f}{more}"


def one_by_one(counts: list[int]) -> str:
    return ", ".join(map(str, counts))
