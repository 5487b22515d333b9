"""Effects along paths, from a table: `PathSpecificEffects` and what its fit returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.explanations.path_effects.boosting import BoostedTrees
from answerable.explanations.path_effects.cells import cell_numbers, smallest_cell
from answerable.explanations.path_effects.columns import Arrays, Roles, arrays_of
from answerable.explanations.path_effects.effects import Effect, Sample, contrasts, difference, effects
from answerable.explanations.path_effects.learners import (
    LEARNERS,
    Learner,
    boosted_trees,
    linear,
    saturated,
    scikit_learners,
)
from answerable.explanations.path_effects.nuisances import Fit, Nested, Nuisances, Study, cross_fitted
from answerable.explanations.path_effects.overlap import WeightRow, flaws, rare_share, rows_behind, weight_rows, who
from answerable.explanations.path_effects.sensitivity import RESAMPLES, EffectRange, cells_of, resampled_ends
from answerable.explanations.path_effects.solver import Levels, Scores, influence_scores, stretches, telescope
from answerable.statistics import Floats, Ints, fold_numbers
from answerable.statistics.inputs import UNBOUNDED, count_of, generator, level_of

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


@dataclass(frozen=True)
class PathEffects:
    """Fitted effects along paths.

    Parameters
    ----------
    settings : what they were fitted with
    arrays : what they were fitted on
    blocks : names of the mediator blocks, in causal order
    """

    settings: PathSpecificEffects
    arrays: Arrays
    blocks: tuple[str, ...]
    _study: Study = field(repr=False)
    _folds: tuple[Ints | None, ...] = field(repr=False)
    _fitted: tuple[Nuisances, ...] = field(repr=False)
    _fit: Fit = field(repr=False)
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> Effect:
        """The effect of that name: total, direct, through BLOCK or indirect."""
        found = {effect.name: effect for effect in self.effects}
        if name not in found:
            raise unknown("effect", name, found)
        return found[name]

    @property
    def contrast(self) -> str:
        """The direction of every effect, in words."""
        return f"{self.arrays.comparison} minus {self.arrays.reference}"

    @property
    def n_folds(self) -> int:
        """Folds of cross-fitting; 1 where there was none."""
        return 1 if self._folds[0] is None else int(self._folds[0].max()) + 1

    @property
    def is_binary(self) -> bool:
        """Whether the outcome is 0 or 1."""
        return self._study.is_binary

    @property
    def effects(self) -> list[Effect]:
        """Every effect with its interval."""
        if "effects" not in self._kept:
            self._kept["effects"] = effects(
                [{levels: one.psi for levels, one in split.items()} for split in self.scores()],
                self.blocks,
                self._sample,
                seed=self.settings.random_state,
            )
        found: list[Effect] = self._kept["effects"]
        return found

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value an effect can have."""
        return (-1.0, 1.0) if self.is_binary else (-np.inf, np.inf)

    @property
    def _sample(self) -> Sample:
        groups, outcome = self.arrays.groups, self._study.outcome
        units = len(outcome) if groups is None else len(np.unique(groups))
        return Sample(units, self.settings.level, groups, self.bounds, float(np.ptp(outcome)))

    @property
    def influence(self) -> dict[str, Floats]:
        """Influence scores (n,) of every effect, of the first split."""
        scores = self.scores()[0]
        psi = {levels: one.psi for levels, one in scores.items()}
        return {one.name: difference(psi, one) for one in contrasts(self.blocks)}

    def scores(self, normalise: bool | Literal["fold"] | None = None) -> list[dict[Levels, Scores]]:
        """Influence scores and weights of every nested counterfactual mean, for each split.

        Parameters
        ----------
        normalise : as ``self_normalize``; that of the fit by default
        """
        chosen = self.settings.self_normalize if normalise is None else normalise
        if ("scores", chosen) not in self._kept:
            self._kept["scores", chosen] = [
                {levels: self._score(levels, k, chosen) for levels in one.regressions}
                for k, one in enumerate(self._fitted)
            ]
        found: list[dict[Levels, Scores]] = self._kept["scores", chosen]
        return found

    def _score(self, levels: Levels, split: int, chosen: bool | Literal["fold"]) -> Scores:
        one, folds = self._fitted[split], self._folds[split]
        by = True if chosen == "fold" and folds is None else folds if chosen == "fold" else chosen
        assert by is not None
        return influence_scores(
            levels, self._study.treated, self._study.outcome, one.propensities, one.regressions[levels], normalise=by
        )

    def theta(self, **levels: int) -> Effect:
        """One nested counterfactual mean, with its interval.

        Parameters
        ----------
        levels : 0 (reference) or 1 (comparison) for each block by its name, and for the outcome as ``Y``

        Raises
        ------
        BadInput : a block without a level, or a level other than 0 and 1
        """
        names = [*self.blocks, "Y"]
        if sorted(levels) != sorted(names) or any(level not in (0, 1) for level in levels.values()):
            raise BadInput(f"levels are {levels}", where="theta", mend=f"give 0 or 1 for each of {', '.join(names)}")
        query = tuple(int(levels[name]) for name in names)
        fitted = self._fitted[0]
        if query not in fitted.regressions:
            settings = self.settings
            more = cross_fitted(
                self._study, [query], self._fit, self._folds[0], nested=settings.nested, clip=settings.clip,
                seed=settings.random_state, workers=settings.workers,
            )  # fmt: skip
            fitted.regressions.update(more.regressions)
            fitted.propensities[:] = [
                old if old is not None else new for old, new in zip(fitted.propensities, more.propensities, strict=True)
            ]
        psi = self._score(query, 0, self.settings.self_normalize).psi
        sample = self._sample._replace(bounds=UNBOUNDED)
        interval, se = sample.interval([psi])
        return Effect(f"theta{query}", interval, None, se, float("nan"))

    def summary(self) -> pl.DataFrame:
        """One row for each effect: estimate, standard error, interval, p-value; comparison minus reference."""
        return pl.DataFrame(
            [
                {
                    "effect": one.name,
                    "contrast": self.contrast,
                    "estimate": one.interval.value,
                    "se": one.se,
                    "low": one.interval.low,
                    "high": one.interval.high,
                    "band_low": None if one.band is None else one.band.low,
                    "band_high": None if one.band is None else one.band.high,
                    "p_value": one.p_value,
                }
                for one in self.effects
            ],
            schema_overrides={"band_low": pl.Float64, "band_high": pl.Float64},
        )

    def estimators(self) -> pl.DataFrame:
        """The same effects by four estimators from the same fits: what normalising and double robustness change."""
        ways: dict[str, Mapping[Levels, float]] = {
            "self-normalised": {a: s.value for a, s in self.scores(True)[0].items()},
            "canonical": {a: s.value for a, s in self.scores(False)[0].items()},
            "nested regression": {a: s.plug_in for a, s in self.scores()[0].items()},
            "weighting": {a: s.weighted for a, s in self.scores()[0].items()},
        }
        return pl.DataFrame(
            [
                {"effect": one.name, **{way: means[one.plus] - means[one.minus] for way, means in ways.items()}}
                for one in contrasts(self.blocks)
            ]
        )

    @property
    def raw_difference(self) -> float:
        """Mean outcome of the comparison less that of the reference, nothing taken into account."""
        treated, outcome = self._study.treated, self._study.outcome
        return float(outcome[treated == 1].mean() - outcome[treated == 0].mean())

    @property
    def weights(self) -> list[WeightRow]:
        """Diagnostics of every set of weights."""
        return weight_rows({levels: one.weights for levels, one in self.scores()[0].items()})

    def diagnostics(self) -> pl.DataFrame:
        """One row for each set of weights: whom it makes stand for whom, mean, effective rows, largest share."""
        arms = (self.arrays.reference, self.arrays.comparison)
        return pl.DataFrame(
            [
                {
                    "weights": who(row.levels, self.blocks, arms),
                    "rows": row.rows,
                    "mean": row.mean,
                    "effective": row.effective,
                    "effective_share": row.of_arm,
                    "largest": row.largest,
                    "clipped": max(self._fitted[0].clipped[: len(row.levels)]),
                }
                for row in self.weights
            ]
        )

    @property
    def flaws(self) -> list[str]:
        """What of the overlap voids the effects, worst first."""
        arms = (self.arrays.reference, self.arrays.comparison)
        smallest = self._smallest_cell() if self.settings.uses("cells") else None
        unit = "rows" if self.arrays.groups is None else "groups"
        return flaws(self.weights, self.clipped, self.rare, self.behind, self.blocks, arms, smallest, unit)

    def _smallest_cell(self) -> int:
        """Rows that the worst known of all cell means is made of."""
        cells = cell_numbers(self.arrays.X, self.arrays.columns)
        fitted = {run for levels in telescope(len(self.blocks)) for run in stretches(levels)}
        return min(
            smallest_cell(cells[self.arrays.columns[run.known]], np.flatnonzero(self.arrays.treated == run.level))
            for run in fitted
        )

    @property
    def behind(self) -> dict[str, float]:
        """Rows, or groups where there are some, that the variance of each effect rests on."""
        return {name: rows_behind(psi, self.arrays.groups) for name, psi in self.influence.items()}

    @property
    def rare(self) -> list[float]:
        """Share of rows at which one group is nearly absent, given 0, 1, ... blocks."""
        found = self._fitted[0].propensities
        return [0.0 if one is None else rare_share(one, self.arrays.treated) for one in found]

    @property
    def clipped(self) -> list[float]:
        """Share of rows whose propensity was moved into the allowed range, given 0, 1, ... blocks."""
        return self._fitted[0].clipped

    def propensities(self, known: int = 0) -> Floats:
        """Probability (n,) of the comparison given the covariates and the first ``known`` blocks, out of fold."""
        found = self._fitted[0].propensities[known] if 0 <= known <= len(self.blocks) else None
        if found is None:
            raise BadInput(f"there is none given {known} blocks", where="propensities", mend="ask for 0 or all blocks")
        return found

    def sensitivity(self) -> EffectRange | None:
        """What the effect through the last block could be, did it share a hidden cause with the blocks before it.

        Returns
        -------
        None : with one block alone, or where neither cells are few nor the outcome is bounded
        """
        if len(self.blocks) < 2:
            return None
        level, arrays = self.settings.level, self.arrays
        cells = cells_of(arrays.treated, arrays.outcome, arrays.X, arrays.columns)
        if cells is not None:
            rng = generator(self.settings.random_state, len(arrays.treated))
            ends = resampled_ends(cells, rng, arrays.groups, level)
            method = (
                f"sharp over response types in cells; {RESAMPLES} bootstrap resamples, {100 * level:g} % outer ends"
            )
            return EffectRange(ends.low, ends.high, method)
        if not self.is_binary:
            return None
        everybody = self.theta(**dict.fromkeys([*self.blocks, "Y"], 1)).interval
        method = f"what remains between 0 and 1, with the {100 * level:g} % interval of E[Y] under the comparison"
        return EffectRange(everybody.low - 1, everybody.high, method)

    def ignoring(self, *blocks: str) -> PathEffects:
        """The same fit with some blocks left out, as earlier work had it; biased where they matter."""
        left = [name for name in self.blocks if name not in blocks]
        for name in blocks:
            if name not in self.blocks:
                raise unknown("block", name, self.blocks, where="ignoring")
        if not left:
            raise BadInput("no block is left", where="ignoring", mend="leave out fewer blocks")
        arrays, edges = self.arrays, self.arrays.columns
        spans = [range(edges[0])] + [range(edges[k], edges[k + 1]) for k in range(len(self.blocks))]
        kept = [spans[0], *(span for span, name in zip(spans[1:], self.blocks, strict=True) if name in left)]
        chosen = [j for span in kept for j in span]
        from dataclasses import replace

        fewer = replace(
            arrays,
            X=arrays.X[:, chosen],
            columns=tuple(int(c) for c in np.cumsum([len(span) for span in kept])),
            names=tuple(arrays.names[j] for j in chosen),
        )
        return self.settings.fit_arrays(fewer, tuple(left), list(self._folds))


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
