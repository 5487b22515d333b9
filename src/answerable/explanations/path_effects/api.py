"""Effects along paths, from a table: settings of the study, and its fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from answerable.errors import BadInput, unknown
from answerable.explanations.path_effects.boosting import BoostedTrees
from answerable.explanations.path_effects.columns import Arrays, Roles, arrays_of
from answerable.explanations.path_effects.fitted import PathEffects
from answerable.explanations.path_effects.learners import (
    LEARNERS,
    Learner,
    boosted_trees,
    linear,
    saturated,
    scikit_learners,
)
from answerable.explanations.path_effects.nuisances import Fit, Nested, Nuisances, Study, cross_fitted
from answerable.explanations.path_effects.solver import telescope
from answerable.statistics import Ints, fold_numbers
from answerable.statistics.inputs import count_of, level_of

LEAST_PER_FOLD = 5  # rows of each arm for each fold
MOST_CLIP = 0.1


@dataclass(frozen=True)
class PathSpecificEffects:
    """Effects of a two-valued attribute along the paths through ordered mediators.

    Parameters
    ----------
    mediators : blocks in causal order, as ``{"W": [columns], "V": [columns]}`` or a list of such pairs
    reference, comparison : the attribute's two values; an effect is comparison minus reference. May be left out where
        the values are 0 and 1
    learner : of propensities and outcome regressions: ``trees`` (boosted, takes missing values), ``linear`` (least
        squares and logistic), or ``cells`` (means of cells of equal values; then no cross-fitting is needed)
    propensity, outcome : a scikit-learn classifier and regressor in place of ``learner``; give both
    trees : settings of the boosted trees
    l2 : ridge penalty of the linear learner on standardised columns, per row
    nested : ``reuse`` fits every regression of a chain on all training rows, ``split`` each on a part of its own
    n_folds : folds; 1 is no cross-fitting. By default 5, and 1 for cells
    splits : repetitions with other folds, of which the median is taken
    clip : propensities are moved into [clip, 1 - clip]
    self_normalize : divide weights by their mean over all rows; ``"fold"`` over each fold, as the paper writes it;
        False leaves them (canonical)
    level : confidence of intervals
    random_state : seed of folds, parts and learners
    workers : fits at once

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"x": [0, 1] * 40, "m": [0, 1, 1, 1] * 20, "y": [0, 1, 1, 0, 0, 1, 0, 1] * 10})
    >>> found = PathSpecificEffects({"M": ["m"]}, learner="cells").fit(table, treatment="x", outcome="y")
    >>> round(found["total"].interval.value, 3)
    0.5
    """

    mediators: Mapping[str, Sequence[str]] | Sequence[tuple[str, Sequence[str]]]
    reference: Any = None
    comparison: Any = None
    learner: Learner = "trees"
    propensity: Any = None
    outcome: Any = None
    trees: BoostedTrees = field(default_factory=BoostedTrees)
    l2: float = 0.0
    nested: Nested = "reuse"
    n_folds: int | None = None
    splits: int = 1
    clip: float = 1e-4
    self_normalize: bool | Literal["fold"] = True
    level: float = 0.95
    random_state: int = 0
    workers: int = 1

    def fit(
        self,
        table: Any,
        *,
        treatment: str,
        outcome: str,
        covariates: Sequence[str] = (),
        positive: Any = None,
        groups: str | None = None,
        counts: str | None = None,
        drop_missing: bool = False,
        where: str = "",
    ) -> PathEffects:
        """Estimate every effect of the path decomposition.

        Parameters
        ----------
        table : any dataframe, or the path of a CSV or Parquet file; one row per person or stay
        treatment : column of the attribute
        outcome : column of the decision, numeric or of two values
        covariates : columns that come before the attribute's consequences
        positive : the outcome's value that counts as 1, where it is a word
        groups : column of persons or hospitals; rows that share one share a fold and may depend on each other
        counts : column that says how many rows each row stands for
        drop_missing : leave out rows without attribute or outcome
        where : what the table is called in an error; its path by default

        Raises
        ------
        BadInput : a setting out of its range, or a table that it cannot work with; one line names it
        """
        from answerable.subjects.table import read_table

        self._check()
        roles = Roles(
            treatment,
            outcome,
            self._blocks(),
            covariates,
            self.reference,
            self.comparison,
            positive,
            groups,
            counts,
        )
        where = where or (str(table) if isinstance(table, str) else "table")
        arrays = arrays_of(read_table(table), roles, coded=self.uses("cells"), drop_missing=drop_missing, where=where)
        return self.fit_arrays(arrays, tuple(roles.mediators))

    def fit_arrays(
        self, arrays: Arrays, blocks: tuple[str, ...], folds: Sequence[Ints | None] | None = None
    ) -> PathEffects:
        """The same from arrays.

        Parameters
        ----------
        arrays : treatment, outcome and columns
        blocks : names of the mediator blocks
        folds : fold of each row, an array for each split; drawn by default
        """
        self._check()
        study = Study(arrays.treated, arrays.outcome, arrays.columns)
        _check_missing(arrays, allowed=self.uses("trees") or self.uses("cells") or self.propensity is not None)
        chosen = folds if folds is not None else self._folds(arrays)
        fit = self._learner(arrays)
        queries = telescope(len(blocks))
        fitted: list[Nuisances] = []
        for k, split in enumerate(chosen):
            _check_folds(arrays, split)
            fitted.append(
                cross_fitted(
                    study,
                    queries,
                    fit,
                    split,
                    nested=self.nested,
                    clip=self.clip,
                    seed=self.random_state + k,
                    workers=self.workers,
                )
            )
        return PathEffects(self, arrays, blocks, study, tuple(chosen), tuple(fitted), fit)

    def uses(self, learner: Learner) -> bool:
        """Whether it is this learner that is fitted."""
        return self.propensity is None and self.outcome is None and self.learner == learner

    def _check(self) -> None:
        """Refuse settings that no fit could work with."""
        if self.learner not in LEARNERS:
            raise unknown("learner", str(self.learner), LEARNERS, where="learner")
        if (self.propensity is None) != (self.outcome is None):
            raise BadInput("one learner of two is given", where="propensity, outcome", mend="give both, or neither")
        if self.nested not in ("split", "reuse"):
            raise unknown("way to fit nested regressions", str(self.nested), ("split", "reuse"), where="nested")
        if not isinstance(self.clip, (int, float)) or not 0 < self.clip <= MOST_CLIP:
            raise BadInput(f"it is {self.clip!r}", where="clip", mend=f"give a number above 0, at most {MOST_CLIP}")
        if self.n_folds is not None:
            count_of(self.n_folds, "n_folds", least=1)
        if self.self_normalize not in (True, False, "fold"):
            raise BadInput(f"it is {self.self_normalize!r}", where="self_normalize", mend="give True, False or 'fold'")
        count_of(self.splits, "splits", least=1)
        count_of(self.random_state, "random_state")
        count_of(self.workers, "workers", least=1)
        level_of(self.level)
        if self._folds_wanted() == 1 and self.nested == "split":
            raise BadInput("without cross-fitting there are no parts", where="nested", mend="take reuse, or 2 folds")
        if not isinstance(self.trees, BoostedTrees):
            raise BadInput(f"it is a {type(self.trees).__name__}", where="trees", mend="give BoostedTrees(...)")
        count_of(self.trees.trees, "trees, trees", least=1)
        count_of(self.trees.depth, "trees, depth", least=1)
        for value, name, low, high in (
            (self.trees.trees, "trees, trees", 1, 5000),
            (self.trees.depth, "trees, depth", 1, 6),
            (self.trees.learning_rate, "trees, learning_rate", 1e-4, 1),
            (self.trees.l2, "trees, l2", 0, 1e9),
            (self.trees.least_leaf, "trees, least_leaf", 1, 1e9),
            (self.l2, "l2", 0, 1e9),
        ):
            if not isinstance(value, (int, float)) or not low <= value <= high:
                raise BadInput(f"it is {value!r}", where=name, mend=f"give a number from {low:g} to {high:g}")
        self._blocks()

    def _blocks(self) -> dict[str, list[str]]:
        """Columns of each mediator block, by its name."""
        try:
            given = dict(self.mediators).items()
            pairs = [(name, [columns] if isinstance(columns, str) else list(columns)) for name, columns in given]
            if all(isinstance(word, str) for name, columns in pairs for word in (name, *columns)):
                return dict(pairs)
        except (TypeError, ValueError):
            pass
        raise BadInput("these are no named blocks", where="mediators", mend='give {"W": [columns], "V": [columns]}')

    def _folds_wanted(self) -> int:
        return self.n_folds if self.n_folds is not None else 1 if self.uses("cells") else 5

    def _folds(self, arrays: Arrays) -> list[Ints | None]:
        wanted = self._folds_wanted()
        arms = np.bincount(arrays.treated, minlength=2)
        if arms.min() < LEAST_PER_FOLD * wanted:
            label = (arrays.reference, arrays.comparison)[int(arms.argmin())]
            raise BadInput(
                f"there are {arms.min()} rows of {label!r} for {wanted} fold{'s' if wanted > 1 else ''}",
                where="treatment",
                mend=f"give at least {LEAST_PER_FOLD * wanted}{', or take fewer folds' if wanted > 1 else ''}",
            )
        if wanted == 1:
            return [None]
        return [
            fold_numbers(
                len(arrays.treated),
                wanted,
                seed=self.random_state + k,
                groups=arrays.groups,
                strata=arrays.treated if arrays.groups is None else None,
            )
            for k in range(self.splits)
        ]

    def _learner(self, arrays: Arrays) -> Fit:
        if self.propensity is not None:
            return scikit_learners(arrays.X, self.propensity, self.outcome)
        if self.learner == "trees":
            return boosted_trees(arrays.X, self.trees)
        if self.learner == "linear":
            return linear(arrays.X, self.l2)
        return saturated(arrays.X, arrays.columns)


def _check_missing(arrays: Arrays, *, allowed: bool) -> None:
    named = [name for name, column in zip(arrays.names, arrays.X.T, strict=True) if np.isnan(column).any()]
    if named and not allowed:
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        raise BadInput(
            f"values are missing in {', '.join(named[:5])}{more}",
            where="learner linear",
            mend="choose the learner trees, which takes missing values, or fill them in",
        )


def _check_folds(arrays: Arrays, folds: Ints | None) -> None:
    if folds is None:
        return
    for k in range(int(folds.max()) + 1):
        for arm, label in ((0, arrays.reference), (1, arrays.comparison)):
            if not ((folds == k) & (arrays.treated == arm)).any():
                raise BadInput(
                    f"it has no row of {label!r}", where=f"fold {k + 1}", mend="take fewer folds, or other groups"
                )
