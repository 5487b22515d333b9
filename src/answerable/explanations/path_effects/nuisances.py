"""Propensities and nested regressions of every query at once, each fitted once for each fold.

Work is cut into single fits: (fold, propensity) and (fold, nested regression). Fits that two queries share are one.
A nested regression needs the predictions of the one outside it, so fits go in stages, from the outcome inwards; all
fits of a stage are independent and run side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from answerable.compiled import in_threads
from answerable.errors import BadInput
from answerable.explanations.path_effects.solver import Levels, Stretch, stretches
from answerable.statistics import Floats, Ints
from answerable.statistics.inputs import generator

Nested = Literal["split", "reuse"]


class Fit(Protocol):
    """Fit on some rows, predict others."""

    def __call__(
        self, columns: int, train: Ints, target: Floats, wanted: Ints, *, logistic: bool, branch: tuple[int, ...]
    ) -> Floats:
        """Predictions (k,) for ``wanted`` from a fit of ``target`` (m,) on ``train``, with the first ``columns``."""


@dataclass(frozen=True)
class Study:
    """What is fitted on.

    Parameters
    ----------
    treated : (n,) int64, 1 for the comparison group, 0 for the reference
    outcome : (n,) float64
    columns : number of columns of Z, of Z and M1, ..., of Z and M1..MK: K + 1 numbers that rise
    """

    treated: Ints
    outcome: Floats
    columns: tuple[int, ...]

    @functools.cached_property
    def is_binary(self) -> bool:
        """Whether the outcome is 0 or 1."""
        return bool(np.isin(self.outcome, (0.0, 1.0)).all())


class Nuisances(NamedTuple):
    """Out-of-fold predictions for every row.

    Attributes
    ----------
    propensities : K + 1 arrays (n,) of P(X = 1 | M1..Mk, Z), or None where no query needs it
    regressions : by query, for each of its stretches (n,)
    clipped : K + 1 shares of rows whose propensity was moved into the allowed range
    """

    propensities: list[Floats | None]
    regressions: dict[Levels, list[Floats]]
    clipped: list[float]


class _Node(NamedTuple):
    """A nested regression: its own stretch first, the outcome's last; ``parts`` row parts of which it fits one."""

    chain: tuple[Stretch, ...]
    parts: int


def fold_masks(folds: Ints | None, n: int) -> list[tuple[Ints, Ints]]:
    """Training and test rows of every fold; without folds all rows are both."""
    if folds is None:
        return [(np.arange(n), np.arange(n))]
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(int(folds.max()) + 1)]


def cross_fitted(
    study: Study,
    queries: Sequence[Levels],
    fit: Fit,
    folds: Ints | None,
    *,
    nested: Nested = "reuse",
    clip: float = 1e-4,
    seed: int = 0,
    workers: int = 1,
) -> Nuisances:
    """Fit every propensity and nested regression that the queries need, out of fold.

    Parameters
    ----------
    study : treatment, outcome and columns
    queries : levels, as `solver.stretches` takes them
    fit : the learner
    folds : (n,) int64 fold of each row; None fits and predicts all rows (no cross-fitting)
    nested : ``reuse`` fits every regression of a chain on all training rows of its arm; ``split`` each on its own
        random part of them, as the paper does
    clip : propensities are moved into [clip, 1 - clip]
    seed : of the random parts and of learners that draw
    workers : fits at once; no number depends on it

    Raises
    ------
    BadInput : an arm has fewer than 2 rows to learn from
    """
    masks = fold_masks(folds, len(study.treated))
    needed = sorted({0} | {run.known for levels in queries for run in stretches(levels)[1:]})
    propensities: list[Floats | None] = [None] * len(study.columns)
    clipped = [0.0] * len(study.columns)
    kept: dict[_Node, Floats] = {}
    earlier: dict[tuple[_Node, int], Floats] = {}
    chains = {levels: tuple(stretches(levels)) for levels in queries}
    nodes = {
        _Node(chain[-length:], len(chain) if nested == "split" else 1)
        for chain in chains.values()
        for length in range(1, len(chain) + 1)
    }
    for length in range(1, max(len(chain) for chain in chains.values()) + 1):
        stage = sorted(node for node in nodes if len(node.chain) == length)
        jobs: list[Callable[[], Floats]] = []
        places: list[tuple[int | _Node, int, Ints]] = []
        if length == 1:
            for known in needed:
                for k, (train, test) in enumerate(masks):
                    jobs.append(_propensity(study, fit, known, train, test, (seed, k, known)))
                    places.append((known, k, test))
        for node in stage:
            outer = [_Node(node.chain[1:], node.parts)] if length > 1 else []
            inner = [other for other in nodes if len(other.chain) == length + 1 and other.chain[1:] == node.chain
                     and other.parts == node.parts]  # fmt: skip
            for k, (train, test) in enumerate(masks):
                rows = _training_rows(study, node, train, seed, k)
                target = earlier[outer[0], k][rows] if outer else study.outcome[rows]
                asked = np.zeros(len(study.treated), dtype=np.bool_)
                for some in (test, *(_training_rows(study, other, train, seed, k) for other in inner)):
                    asked[some] = True
                wanted = np.flatnonzero(asked)
                jobs.append(_regression(study, fit, node, rows, target, wanted, (seed, k, length, node.parts)))
                places.append((node, k, wanted))
        found = _all(jobs) if workers == 1 else [value for run in in_threads(_all, jobs, workers) for value in run]
        following: dict[tuple[_Node, int], Floats] = {}
        for (what, k, wanted), value in zip(places, found, strict=True):
            full = np.full(len(study.treated), np.nan)
            full[wanted] = value
            test = masks[k][1]
            if isinstance(what, int):
                before = propensities[what]
                propensities[what] = before = full if before is None else before
                before[test] = value
            else:
                following[what, k] = full
                kept.setdefault(what, np.empty(len(study.treated)))[test] = full[test]
        earlier = following
    for known in needed:
        exact = propensities[known]
        assert exact is not None
        clipped[known] = float(np.mean((exact < clip) | (exact > 1 - clip)))
        propensities[known] = np.clip(exact, clip, 1 - clip)
    regressions = {
        levels: [kept[_Node(chain[place:], len(chain) if nested == "split" else 1)] for place in range(len(chain))]
        for levels, chain in chains.items()
    }
    return Nuisances(propensities, regressions, clipped)


def _all(jobs: Sequence[Callable[[], Floats]]) -> list[Floats]:
    return [job() for job in jobs]


def _training_rows(study: Study, node: _Node, train: Ints, seed: int, fold: int) -> Ints:
    """Training rows of the arm, and of the chain's part that is this regression's own."""
    rows = train[study.treated[train] == node.chain[0].level]
    if node.parts > 1:
        part = np.empty(len(train), dtype=np.int64)
        part[generator(seed, fold, node.parts).permutation(len(train))] = np.arange(len(train)) % node.parts
        rows = train[(study.treated[train] == node.chain[0].level) & (part == len(node.chain) - 1)]
    if len(rows) < 2:
        raise BadInput(
            f"{len(rows)} rows of an arm are left to fit a nested regression on",
            where=f"fold {fold + 1}",
            mend="take fewer folds or nested = reuse",
        )
    return rows


def _propensity(
    study: Study, fit: Fit, known: int, train: Ints, test: Ints, branch: tuple[int, ...]
) -> Callable[[], Floats]:
    target = study.treated[train].astype(np.float64)
    if target.min() == target.max():
        raise BadInput(
            "all rows to fit on are of one arm", where=f"fold {branch[1] + 1}", mend="take fewer folds or more rows"
        )
    return lambda: fit(study.columns[known], train, target, test, logistic=True, branch=branch)


def _regression(
    study: Study, fit: Fit, node: _Node, rows: Ints, target: Floats, wanted: Ints, branch: tuple[int, ...]
) -> Callable[[], Floats]:
    columns = study.columns[node.chain[0].known]

    def run() -> Floats:
        predicted = fit(columns, rows, target, wanted, logistic=False, branch=branch)
        return np.clip(predicted, 0.0, 1.0) if study.is_binary else predicted

    return run
