"""Fitted effects along paths: estimates, intervals, what voids them, and what a hidden cause could change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.explanations.path_effects.cells import cell_numbers, smallest_cell
from answerable.explanations.path_effects.columns import Arrays
from answerable.explanations.path_effects.effects import Effect, Sample, contrasts, difference, effects
from answerable.explanations.path_effects.nuisances import Fit, Nuisances, Study, cross_fitted
from answerable.explanations.path_effects.overlap import WeightRow, flaws, rare_share, rows_behind, weight_rows, who
from answerable.explanations.path_effects.sensitivity import RESAMPLES, EffectRange, cells_of, resampled_ends
from answerable.explanations.path_effects.solver import Levels, Scores, influence_scores, stretches, telescope
from answerable.statistics import Floats, Ints
from answerable.statistics.inputs import UNBOUNDED, generator

if TYPE_CHECKING:
    from answerable.explanations.path_effects.api import PathSpecificEffects


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
        found = (self.weights, self.clipped, self.rare, self.behind)
        return flaws(*found, self.blocks, arms, smallest, unit, covariates=self.arrays.columns[0] > 0)

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
        fewer = replace(
            arrays,
            X=arrays.X[:, chosen],
            columns=tuple(int(c) for c in np.cumsum([len(span) for span in kept])),
            names=tuple(arrays.names[j] for j in chosen),
        )
        return self.settings.fit_arrays(fewer, tuple(left), list(self._folds))
