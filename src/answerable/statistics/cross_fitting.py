"""Out-of-fold predictions, and intervals from influence functions (Chernozhukov et al. 2018).

A nuisance model may not be judged on rows it was fitted on: each row's prediction comes from models fitted on the
other folds. The estimate is then the mean of influence scores, one per row, and its interval a t interval of that
mean; with clusters the scores of one cluster are summed first, since clusters are what is independent.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from answerable.errors import BadInput
from answerable.statistics.inputs import (
    UNBOUNDED,
    Bounds,
    Floats,
    Ints,
    codes_of,
    count_of,
    generator,
    level_of,
    numbers_of,
)
from answerable.statistics.intervals import Interval, equal_values_interval, named, t_quantile


class CrossFit(NamedTuple):
    """Predictions for every row from models that did not see it.

    Attributes
    ----------
    predictions : (n,) float64 by learner: the predicted value, or for a classifier the probability of label 1
    folds : (n,) fold of each row, 0 to folds - 1
    """

    predictions: dict[str, Floats]
    folds: Ints


def fold_numbers(
    n_rows: int, folds: int, *, seed: int, groups: ArrayLike | None = None, strata: ArrayLike | None = None
) -> Ints:
    """A random fold for each row; sizes differ by one row, or one group, at most.

    Parameters
    ----------
    n_rows : number of rows
    folds : number of folds, from 2 to the number of rows or groups
    seed : whole number of at least 0; required
    groups : (n_rows,) labels; rows that share one share a fold, and groups are dealt to the fold with fewest rows
    strata : (n_rows,) labels; each is spread evenly over the folds

    Returns
    -------
    (n_rows,) int64, 0 to folds - 1

    Raises
    ------
    BadInput : fewer rows or groups than folds, both groups and strata, no seed, or a parameter outside its range
    """
    n_rows, folds, rng = count_of(n_rows, "n_rows", least=2), count_of(folds, "folds", least=2), generator(seed)
    if groups is not None and strata is not None:
        raise BadInput("there are groups and strata", mend="give one of them")
    if groups is None:
        _enough_to_fold(n_rows, folds, "rows")
        codes = np.zeros(n_rows, dtype=np.int64) if strata is None else codes_of(strata, n_rows, "strata")[1]
        shuffled = rng.permutation(n_rows)
        by_stratum = shuffled[np.argsort(codes[shuffled], kind="stable")]
        fold = np.empty(n_rows, dtype=np.int64)
        fold[by_stratum] = np.arange(n_rows) % folds
        return fold
    labels, codes = codes_of(groups, n_rows, "groups")
    _enough_to_fold(len(labels), folds, "groups")
    sizes, held = np.bincount(codes), np.zeros(folds, dtype=np.int64)
    fold_of_group = np.empty(len(labels), dtype=np.int64)
    shuffled = rng.permutation(len(labels))
    # Largest first, so that small ones even out what large ones leave.
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of_group[group] = np.argmin(held)
        held[fold_of_group[group]] += sizes[group]
    return fold_of_group[codes]


def cross_fit(
    learners: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike | Mapping[str, ArrayLike],
    *,
    folds: int = 5,
    seed: int,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    train_on: Mapping[str, ArrayLike] | None = None,
    workers: int = 1,
) -> CrossFit:
    """Predict every row by learners fitted on the other folds.

    Parameters
    ----------
    learners : scikit-learn regressors, or classifiers of labels 0 and 1, by name; cloned, never fitted themselves
    X : (n, p) float64, in units that the learners accept
    y : (n,) target of all learners, or a target by learner
    folds, seed, groups, strata : as in `fold_numbers`. Every ``random_state`` of a learner is set from the seed, its
        name and the fold, so that neither the order of learners nor the number of workers matters
    train_on : by learner, (n,) booleans: rows it may be fitted on (one arm of a treatment, say); it predicts all rows
    workers : processes

    Returns
    -------
    CrossFit

    Raises
    ------
    BadInput : a value missing (its row, counted from 1, is named), a name in ``y`` or ``train_on`` that is no learner
        or lacks one, fewer than 2 rows or one class only to fit on (learner and fold are named), and as `fold_numbers`
    """
    from joblib import Parallel, delayed  # slow to import, and only this needs them
    from sklearn.base import clone

    table = numbers_of(X, "X", ndim=2, least=2)
    targets = _targets(learners, y, len(table))
    allowed = _allowed_rows(learners, train_on or {}, len(table))
    fold = fold_numbers(len(table), folds, seed=seed, groups=groups, strata=strata)
    jobs = []
    for name, learner in learners.items():
        for k in range(folds):
            train, test = np.flatnonzero((fold != k) & allowed[name]), np.flatnonzero(fold == k)
            _enough_to_fit(learner, targets[name][train], name, k)
            own = seeded(clone(learner), seed, name, k)
            jobs.append((name, test, delayed(fitted_prediction)(own, table[train], targets[name][train], table[test])))
    found = Parallel(n_jobs=workers)(job for _, _, job in jobs)
    predictions = {name: np.empty(len(table)) for name in learners}
    for (name, test, _), predicted in zip(jobs, found, strict=True):
        predictions[name][test] = predicted
    return CrossFit(predictions, fold)


def influence_interval(
    psi: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95, bounds: Bounds = UNBOUNDED
) -> Interval:
    """Student's t interval for the mean of influence scores.

    Parameters
    ----------
    psi : (n,) float64, n >= 2, scores whose mean is the estimate, in its unit
    clusters : (n,) labels; rows that share one may depend on each other
    level : confidence, between 0 and 1
    bounds : smallest and largest value the estimate can have

    Returns
    -------
    Interval : without clusters Student's of the scores; with G of them their cluster-robust one, ``G - 1`` degrees of
        freedom

    Raises
    ------
    BadInput : fewer than 2 rows or clusters, a score missing (its row, counted from 1, is named), a level outside (0,
        1)
    """
    level, scores = level_of(level), numbers_of(psi, "psi", least=2)
    sums, n_units = _unit_sums(scores[:, None], clusters)
    value = float(scores.mean())
    if not bounds[0] <= value <= bounds[1]:
        raise BadInput(
            f"the estimate is {value:g}, outside ({bounds[0]:g}, {bounds[1]:g})", mend="mend it or the bounds"
        )
    if np.abs(sums).max() <= 1e-12 * np.abs(scores).max():  # what rounding alone can do
        return equal_values_interval(value, n_units, level, bounds)
    half_width = float(t_quantile(level, n_units - 1) * np.sqrt(_covariance(sums, len(scores))[0, 0]))
    name = f"cluster-robust t interval of influence scores, {n_units} clusters" if clusters is not None else ""
    method = named(level, name or "t interval of influence scores")
    return Interval(value, max(value - half_width, bounds[0]), min(value + half_width, bounds[1]), level, method)


def influence_covariance(psi: ArrayLike, *, clusters: ArrayLike | None = None) -> Floats:
    """Covariance of k estimates that are means of influence scores on the same rows.

    Parameters
    ----------
    psi : (n, k) float64, n >= 2
    clusters : (n,) labels, as in `influence_interval`

    Returns
    -------
    (k, k) float64

    Raises
    ------
    BadInput : as `influence_interval`
    """
    scores = numbers_of(psi, "psi", ndim=2, least=2)
    return _covariance(_unit_sums(scores, clusters)[0], len(scores))


def simultaneous_intervals(
    psi: ArrayLike, *, seed: int, resamples: int = 2000, clusters: ArrayLike | None = None, level: float = 0.95
) -> list[Interval]:
    """Intervals for k estimates that hold all at once with probability ``level``.

    Multiplier bootstrap of the largest standardised deviation (Chernozhukov, Chetverikov and Kato 2013). Its normal
    quantile is replaced by Student's at the same tail, so that k = 1 gives the interval of `influence_interval`; never
    below that.

    Parameters
    ----------
    psi : (n, k) float64, n >= 2, no column constant
    seed : whole number of at least 0; required
    resamples : multipliers drawn, at least 100
    clusters : (n,) labels, as in `influence_interval`
    level : confidence, between 0 and 1

    Returns
    -------
    list of k Interval, in the order of the columns

    Raises
    ------
    BadInput : as `influence_interval`, or a constant column
    """
    level, scores = level_of(level), numbers_of(psi, "psi", ndim=2, least=2)
    sums, n_units = _unit_sums(scores, clusters)
    flat = np.abs(sums).max(axis=0) <= 1e-12 * np.abs(scores).max(axis=0)
    if flat.any():
        raise BadInput("all scores are equal", where=f"psi, column {int(np.argmax(flat)) + 1}", mend="leave it out")
    spreads = np.sqrt(np.diag(_covariance(sums, len(scores))))
    rng, draws = generator(seed), count_of(resamples, "resamples", least=100)
    standardised = sums / np.sqrt((sums**2).sum(axis=0))
    # Sums of rows times normal multipliers are normal with the rows' own correlation: k numbers a draw instead of n.
    values, vectors = np.linalg.eigh(standardised.T @ standardised)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    largest = np.abs(rng.standard_normal((draws, len(values))) @ root.T).max(axis=1)
    normal = max(float(np.quantile(largest, level)), float(special.ndtri((1 + level) / 2)))
    critical = float(special.stdtrit(n_units - 1, special.ndtr(normal)))
    method = named(
        level, f"simultaneous interval of {scores.shape[1]} estimates, multiplier bootstrap, {draws} resamples"
    )
    return [
        Interval(float(value), float(value - critical * spread), float(value + critical * spread), level, method)
        for value, spread in zip(scores.mean(axis=0), spreads, strict=True)
    ]


def median_of_splits(psi: Sequence[ArrayLike], *, clusters: ArrayLike | None = None, level: float = 0.95) -> Interval:
    """One interval from several cross-fits that differ in their folds only.

    The median of the estimates; its variance is the median of each split's own plus its squared distance from that
    median (Chernozhukov et al. 2018, definition 3.3), so that scatter between splits widens the interval.

    Parameters
    ----------
    psi : influence scores (n,) float64 of each split, rows in one order
    clusters : (n,) labels, as in `influence_interval`
    level : confidence, between 0 and 1

    Raises
    ------
    BadInput : as `influence_interval`, no split at all, or splits of different lengths
    """
    if len(psi) == 0:
        raise BadInput("there are no splits", where="psi", mend="give the scores of at least one")
    level, splits = (
        level_of(level),
        [numbers_of(scores, f"psi, split {k + 1}", least=2) for k, scores in enumerate(psi)],
    )
    if len({len(scores) for scores in splits}) > 1:
        raise BadInput("splits have different numbers of rows", where="psi", mend="cross-fit the same rows each time")
    single = [influence_interval(scores, clusters=clusters, level=level) for scores in splits]
    value = float(np.median([interval.value for interval in single]))
    halves = np.array([interval.high - interval.value for interval in single])
    n_units = _unit_sums(splits[0][:, None], clusters)[1]
    critical = float(t_quantile(level, n_units - 1))
    shifts = np.array([interval.value - value for interval in single])
    half_width = critical * float(np.sqrt(np.median((halves / critical) ** 2 + shifts**2)))
    method = named(level, f"t interval of influence scores, median of {len(splits)} splits")
    return Interval(value, value - half_width, value + half_width, level, method)


def _unit_sums(scores: Floats, clusters: ArrayLike | None) -> tuple[Floats, int]:
    """Centred scores, summed by cluster, and how many there are."""
    centred = scores - scores.mean(axis=0)
    if clusters is None:
        return centred, len(scores)
    labels, codes = codes_of(clusters, len(scores), "clusters")
    if len(labels) < 2:
        raise BadInput("there is 1 cluster", where="clusters", mend="give at least 2")
    sums = np.zeros((len(labels), scores.shape[1]))
    np.add.at(sums, codes, centred)
    return sums, len(labels)


def _covariance(sums: Floats, n_rows: int) -> Floats:
    return sums.T @ sums * (len(sums) / (len(sums) - 1)) / n_rows**2


def _enough_to_fold(available: int, folds: int, kind: str) -> None:
    if available < folds:
        raise BadInput(f"there are {available} {kind} for {folds} folds", mend="take fewer folds")


def _targets(learners: Mapping[str, Any], y: ArrayLike | Mapping[str, ArrayLike], n_rows: int) -> dict[str, Floats]:
    if isinstance(y, Mapping):
        _same_names(learners, y, "y")
        targets = {name: numbers_of(y[name], f"y, learner {name}") for name in learners}
    else:
        targets = dict.fromkeys(learners, numbers_of(y, "y"))
    for name, target in targets.items():
        if len(target) != n_rows:
            raise BadInput(f"there are {len(target)} targets", where=f"y, learner {name}", mend=f"give {n_rows}")
    return targets


def _allowed_rows(
    learners: Mapping[str, Any], train_on: Mapping[str, ArrayLike], n_rows: int
) -> dict[str, NDArray[np.bool_]]:
    allowed = {name: np.ones(n_rows, dtype=bool) for name in learners}
    for name, rows in train_on.items():
        mask = np.asarray(rows)
        if name not in learners:
            raise BadInput(f"{name!r} is no learner", where="train_on", mend=f"learners are {', '.join(learners)}")
        if mask.dtype != np.bool_ or mask.shape != (n_rows,):
            raise BadInput(
                f"it is {mask.dtype} {mask.shape}", where=f"train_on, {name}", mend=f"give {n_rows} booleans"
            )
        allowed[name] = mask
    return allowed


def _same_names(learners: Mapping[str, Any], given: Mapping[str, Any], where: str) -> None:
    unmatched = sorted(set(learners) ^ set(given))
    if unmatched:
        raise BadInput(
            f"{unmatched[0]!r} is not both a learner and a target", where=where, mend="name each learner once"
        )


def _enough_to_fit(learner: Any, target: Floats, name: str, fold: int) -> None:
    where = f"learner {name}, fold {fold + 1}"
    if len(target) < 2:
        raise BadInput(f"there are {len(target)} rows to fit on", where=where, mend="take fewer folds or more rows")
    if hasattr(learner, "predict_proba") and {0.0, 1.0} != set(np.unique(target)):
        found = ", ".join(f"{label:g}" for label in np.unique(target)[:5])
        raise BadInput(
            f"labels to fit on are {found}", where=where, mend="a classifier needs 0 and 1; use strata or fewer folds"
        )


def seeded(learner: Any, seed: int, name: str, fold: int) -> Any:
    """The learner itself, every ``random_state`` of it and of its parts set from ``seed``, ``name`` and ``fold``."""
    states = sorted(
        key for key in learner.get_params(deep=True) if key == "random_state" or key.endswith("__random_state")
    )
    for position, key in enumerate(states):
        rng = generator(seed, zlib.crc32(name.encode()), fold, position)
        learner.set_params(**{key: int(rng.integers(2**31))})
    return learner


def fitted_prediction(learner: Any, X: Floats, y: Floats, X_new: Floats) -> Floats:
    """Predicted values of new rows, or for a classifier of labels 0 and 1 the probability of 1."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.fit(X, y.astype(np.int64)).predict_proba(X_new)[:, 1], dtype=np.float64)
    return np.asarray(learner.fit(X, y).predict(X_new), dtype=np.float64)
