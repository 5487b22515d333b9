"""By definition: the paper's binary model cell by cell, the bias identity, and what a hidden cause leaves open."""

import inspect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.stats import norm

LEVELS = list(itertools.product((0, 1), repeat=3))

# Sums over all cells of the binary model, to ten digits.
BINARY_EFFECTS = {
    "total": 0.2397090596,
    "direct": 0.2722643678,
    "through W": 0.0924804208,
    "through V": -0.1250357290,
    "indirect": -0.0325553082,
}
BINARY_RAW, BINARY_IGNORING_W = 0.0755010499, -0.1030641880
BINARY_PROPENSITIES = (0.23294, 0.93769)
RANDOMISED_EFFECTS = {"total": 0.45, "direct": 0.11, "through W": 0.16, "through V": 0.18, "indirect": 0.34}

# Admitted and rejected men, then women, of the six largest departments, Berkeley 1973 (Bickel et al. 1975).
BERKELEY = {
    "A": (512, 313, 89, 19), "B": (353, 207, 17, 8), "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244), "E": (53, 138, 94, 299), "F": (22, 351, 24, 317),
}  # fmt: skip
BERKELEY_EFFECTS = {
    "total": (-0.141645, 0.014387), "direct": (0.070969, 0.024668), "through department": (-0.212615, 0.021973),
}  # fmt: skip


class Cells(NamedTuple):
    """Every cell (z, x, w, v, y) of a binary model, with its probability."""

    z: np.ndarray
    x: np.ndarray
    w: np.ndarray
    v: np.ndarray
    y: np.ndarray
    p: np.ndarray


def binary_cells() -> Cells:
    """The paper's binary model: thresholds of sums of standard normals."""
    chance_z = 1 - norm.cdf(0.2)
    joint = quad(lambda u: norm.pdf(u) * norm.cdf(1 + u - 0.2), 0.2, np.inf, epsabs=1e-14)[0]
    alone = quad(lambda u: norm.pdf(u) * norm.cdf(u - 0.2), -np.inf, 0.2, epsabs=1e-14)[0]
    chance_x = {1: joint / chance_z, 0: alone / (1 - chance_z)}
    rows = []
    for z, x, w, v, y in itertools.product((0, 1), repeat=5):
        chances = (chance_z, chance_x[z], norm.cdf(x - z - 0.8), norm.cdf(x - z + w - 0.8),
                   norm.cdf(x - z + 2 * (w - v) - 0.5))  # fmt: skip
        p = np.prod([c if value else 1 - c for c, value in zip(chances, (z, x, w, v, y), strict=True)])
        rows.append((z, x, w, v, y, p))
    table = np.array(rows)
    return Cells(*(table[:, j].astype(np.int64) for j in range(5)), table[:, 5])


def share(cells: Cells, event: np.ndarray, given: np.ndarray) -> float:
    """P(event | given)."""
    return float(cells.p[event & given].sum() / cells.p[given].sum())


def propensities(cells: Cells) -> list[np.ndarray]:
    """P(X = 1 | Z), P(X = 1 | W, Z), P(X = 1 | V, W, Z) for every cell."""
    parts = ([cells.z], [cells.z, cells.w], [cells.z, cells.w, cells.v])
    return [
        np.array([share(cells, cells.x == 1, _alike(columns, k)) for k in range(len(cells.p))]) for columns in parts
    ]


def _alike(columns: Sequence[np.ndarray], k: int) -> np.ndarray:
    return np.all([column == column[k] for column in columns], axis=0)


def regression(cells: Cells, target: np.ndarray, level: int, known: int) -> np.ndarray:
    """E[target | X = level, the first ``known`` of W and V, Z] for every cell."""
    columns = [cells.z, cells.w, cells.v][: known + 1]
    found = np.empty(len(cells.p))
    for k in range(len(found)):
        rows = _alike(columns, k) & (cells.x == level)
        found[k] = (cells.p[rows] * target[rows]).sum() / cells.p[rows].sum()
    return found


def theta(cells: Cells, levels: tuple[int, int, int]) -> float:
    """E[Y(aY, W(a1), V(a2, W(a1)))] by the identification formula."""
    a, b, c = levels
    total = 0.0
    for z, w, v in itertools.product((0, 1), repeat=3):
        at_z = cells.z == z
        at_w, at_v = at_z & (cells.w == w), at_z & (cells.w == w) & (cells.v == v)
        total += (
            cells.p[at_z].sum()
            * share(cells, cells.w == w, at_z & (cells.x == a))
            * share(cells, cells.v == v, at_w & (cells.x == b))
            * share(cells, cells.y == 1, at_v & (cells.x == c))
        )
    return float(total)


def hidden_cause_ends(p0: np.ndarray, p1: np.ndarray, v_given: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """Range of E[Y(x1, W(x1), V(x0, W(x1)))] where W and V share a hidden cause: a programme over response types.

    Parameters
    ----------
    p0, p1 : (n_w,) P(W = w) under x0 and x1
    v_given : (n_w, n_v) P(V = v | x0, w)
    mean : (n_w, n_v) E[Y | x1, w, v]
    """
    n_w, n_v = v_given.shape
    types = list(itertools.product(range(n_w), range(n_w), *[range(n_v)] * n_w))  # W(x0), W(x1), V(x0, w) for each w
    goal = np.array([mean[t[1], t[2 + t[1]]] for t in types])
    rows, values = [], []
    for w, v in itertools.product(range(n_w), range(n_v)):
        rows.append([float(t[0] == w and t[2 + w] == v) for t in types])
        values.append(p0[w] * v_given[w, v])
    for w in range(n_w):
        rows.append([float(t[1] == w) for t in types])
        values.append(p1[w])
    low, high = (
        sign * linprog(sign * goal, A_eq=np.array(rows), b_eq=np.array(values), method="highs").fun for sign in (1, -1)
    )
    return low, high


class Simulated(NamedTuple):
    """A simulated effect: its mean over draws, and the standard error of that mean."""

    value: float
    error: float


def framing() -> pl.DataFrame:
    """The 265 rows of the framing experiment that statsmodels ships with its own tests of mediation."""
    import statsmodels.stats

    path = Path(statsmodels.stats.__file__).parent / "tests" / "results" / "framing.csv"
    table = pl.read_csv(path, columns=["treat", "emo", "p_harm", "cong_mesg", "age", "educ", "gender", "income"])
    kinds = {name: table[name].unique().sort().to_list() for name in ("educ", "gender")}
    return table.with_columns(
        pl.col(name).replace_strict(words, [float(k) for k in range(len(words))]) for name, words in kinds.items()
    )


def _lines(frame: pl.DataFrame, treatment: str, mediator: str, outcome: str, covariates: Sequence[str]) -> Any:
    """Least squares of outcome and mediator, each arm with slopes of its own."""
    import statsmodels.api as sm

    known = " + ".join(covariates)
    table = frame.select(treatment, mediator, outcome, *covariates).cast(pl.Float64).to_pandas()
    of_outcome = sm.OLS.from_formula(f"{outcome} ~ {treatment} * ({mediator} + {known})", table)
    return of_outcome, sm.OLS.from_formula(f"{mediator} ~ {treatment} * ({known})", table), table


def linear_mediation(
    frame: pl.DataFrame, treatment: str, mediator: str, outcome: str, covariates: Sequence[str]
) -> dict[str, float]:
    """Direct effect at the mediator of the reference, and mediated effect in the comparison, from coefficients."""
    of_outcome, of_mediator, table = _lines(frame, treatment, mediator, outcome, covariates)
    outcome_fit, mediator_fit = of_outcome.fit(), of_mediator.fit()
    none, one = (mediator_fit.predict(table.assign(**{treatment: level})) for level in (0.0, 1.0))

    def mean(level: float, at: Any) -> float:
        return float(outcome_fit.predict(table.assign(**{treatment: level, mediator: at})).mean())

    return {"direct": mean(1.0, none) - mean(0.0, none), "mediated": mean(1.0, one) - mean(1.0, none)}


def simulated_mediation(
    frame: pl.DataFrame, treatment: str, mediator: str, outcome: str, covariates: Sequence[str], draws: int
) -> dict[str, Simulated]:
    """The same by statsmodels' Mediation, which draws coefficients and mediators."""
    from statsmodels.stats.mediation import Mediation

    of_outcome, of_mediator, _ = _lines(frame, treatment, mediator, outcome, covariates)
    simulation = Mediation(of_outcome, of_mediator, treatment, mediator)
    if "rng" in inspect.signature(simulation.fit).parameters:
        found = simulation.fit(n_rep=draws, rng=0)
    else:  # before statsmodels 0.15
        np.random.seed(0)  # noqa: NPY002
        found = simulation.fit(n_rep=draws)
    return {
        name: Simulated(float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws)))
        for name, values in (("direct", found.ADE_ctrl), ("mediated", found.ACME_tx))
    }
