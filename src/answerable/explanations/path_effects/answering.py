"""Effects in words: what is said, what is voided, and the tables beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.errors import BadInput
from answerable.explanations.path_effects.api import PathSpecificEffects
from answerable.explanations.path_effects.boosting import BoostedTrees
from answerable.explanations.path_effects.effects import Effect
from answerable.explanations.path_effects.fitted import PathEffects
from answerable.explanations.path_effects.identification import identify
from answerable.explanations.path_effects.sensitivity import EffectRange
from answerable.explanations.path_effects.solver import stretches, telescope
from answerable.statistics import influence_interval
from answerable.statistics.intervals import Interval
from answerable.theme import visible

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import PathEffects as Question

WEIGHTS: dict[str, bool | Literal["fold"]] = {"normalised": True, "by fold": "fold", "canonical": False}
BINS = 20
LONGEST = 40  # characters of a name in a sentence
MANY_COLUMNS, LEAST_PER_COLUMN = 8, 300  # below so many rows a column made-up studies show the trees' own error


@dataclass(frozen=True)
class Asked:
    """What was asked, fitted.

    Parameters
    ----------
    question : the fields
    fitted : the effects
    hidden : why the last block cannot be told from those before it, where the graph says so; else empty
    span : what the effect through the last block could be, had it a hidden cause in common with those before it
    """

    question: Question
    fitted: PathEffects
    hidden: str
    span: EffectRange | None

    @classmethod
    def of(cls, question: Question, run: Run) -> Asked:
        """Read the table and fit."""
        from answerable.subjects.table import read_table

        table = read_table(question.table)
        blocks = blocks_of(question.mediators, table.columns)
        hidden = _hidden(question, blocks)
        seed = 0 if run.seed is None else run.seed
        settings = PathSpecificEffects(
            blocks,
            reference=question.reference,
            comparison=question.comparison,
            learner=question.learner,
            trees=BoostedTrees(question.trees, question.depth),
            nested=question.nested,
            n_folds=question.folds,
            splits=question.splits,
            clip=question.clip,
            self_normalize=WEIGHTS[question.weights],
            level=question.level,
            random_state=seed,
            workers=run.workers,
        )
        fitted = settings.fit(
            table,
            treatment=question.treatment,
            outcome=question.outcome,
            covariates=question.covariates or [],
            positive=question.positive,
            groups=question.groups,
            counts=question.counts,
            drop_missing=question.drop_missing,
            where=str(question.table) if isinstance(question.table, str) else "table",
        )
        return cls(question, fitted, hidden, fitted.sensitivity())

    @property
    def scale(self) -> float:
        """What effects are multiplied with to be in `unit`."""
        return 100.0 if self.fitted.is_binary else 1.0

    @property
    def unit(self) -> str:
        """Unit of the effects."""
        given = _shown(self.question.unit or "")
        return "points" if self.fitted.is_binary else given or f"units of {_shown(self.question.outcome)}"

    @property
    def paths(self) -> list[Effect]:
        """The effects that add up to the total; mediators together where they cannot be told apart."""
        if self.hidden:
            return [self.fitted["direct"], self.fitted["indirect"]]
        return [one for one in self.fitted.effects if one.name not in ("total", "indirect")]

    @property
    def last(self) -> str:
        """Name of the effect through the last block."""
        return f"through {self.fitted.blocks[-1]}"

    def scaled(self, interval: Interval) -> tuple[float, float, float]:
        """Value and ends in `unit`."""
        return interval.value * self.scale, interval.low * self.scale, interval.high * self.scale

    def sides(self, one: Effect) -> int:
        """1 or -1 where the effect is beyond the size that matters, 0 where within it, 2 where that is open."""
        _, low, high = self.scaled(one.band or one.interval)
        least = self.question.least
        if low > least or high < -least:
            return 1 if low > least else -1
        return 0 if least > 0 and -least < low and high < least else 2


def blocks_of(entries: list[str], columns: list[str]) -> dict[str, list[str]]:
    """Mediator blocks from their words: a column alone, or ``NAME: column, column``.

    Raises
    ------
    BadInput : a block without columns, two blocks of one name, or one that is called direct, total or indirect
    """
    found: dict[str, list[str]] = {}
    for number, entry in enumerate(entries):
        where = f"mediators, entry {number + 1}"
        head, colon, rest = entry.partition(":")
        if entry in columns or not colon:
            name, named = entry.strip(), [entry if entry in columns else entry.strip()]
        else:
            name, named = head.strip(), [part.strip() for part in rest.split(",") if part.strip()]
        if not name or not named:
            raise BadInput(
                f"{entry[:80]!r} names no column", where=where, mend='give a column, or "NAME: column, column"'
            )
        if name in found:
            raise BadInput(f"{name[:80]!r} stands there twice", where=where, mend="name each block once")
        found[name] = named
    return found


def _hidden(question: Question, blocks: dict[str, list[str]]) -> str:
    """What the graph says against the last block; refuses a graph under which more than that is lost."""
    if question.graph is None:
        return ""
    found = identify(question.graph, question.treatment, question.outcome, blocks, question.covariates or [])
    last = list(blocks)[-1]
    for one in found:
        if one.kind != "hidden cause" or "direct" in one.effects or f"through {last}" not in one.effects:
            raise BadInput(f"the effects cannot be told: {one.reason}", where="graph", mend=one.mend)
    return found[0].reason if found else ""


def answered(asked: Asked, figures: Any) -> Answer:
    """The answer, with everything said of it."""
    flaws = asked.fitted.flaws
    tables = _tables(asked)
    return Answer(
        summary=_summary(asked, flaws),
        metrics=_metrics(asked),
        tables=tables,
        figures=_figures(asked, figures, tables, bool(flaws)),
        limits=_limits(asked, flaws),
        verdict=_verdict(asked, flaws),
        void=f"{_capital(flaws[0])}." if flaws else "",
    )


def _summary(asked: Asked, flaws: list[str]) -> str:
    outcome, contrast = _shown(asked.question.outcome), _contrast(asked)
    if flaws:
        told = f"cannot be told from {_rows(asked)}: the groups overlap too little"
        return f"Along which paths {outcome} differs ({contrast}) {told}."
    total = asked.fitted["total"].interval.value * asked.scale
    parts = sorted(asked.paths, key=lambda one: -abs(one.interval.value))
    said = ", ".join(f"{_signed(one.interval.value * asked.scale)} {_way(asked, one.name)}" for one in parts[:3])
    more = f" and {len(parts) - 3} smaller paths" if len(parts) > 3 else ""
    return f"{_capital(outcome)} differs by {_signed(total)} {asked.unit} ({contrast}): {said}{more}."


def _verdict(asked: Asked, flaws: list[str]) -> Verdict:
    if flaws:
        more = f", and {len(flaws) - 1} more" if len(flaws) > 1 else ""
        return Verdict("undecided", f"{flaws[0]}{more}", "more rows of the rarer group, or fewer and coarser columns")
    sides = {one.name: asked.sides(one) for one in asked.paths}
    moving = [name for name, side in sides.items() if side in (1, -1)]
    beyond = f"beyond {asked.question.least:g} {asked.unit}" if asked.question.least else "clear of zero"
    unknown = f"; how much runs {asked.last} alone no data can tell: {asked.hidden}" if asked.hidden else ""
    if moving:
        named = " and ".join(_way(asked, name) for name in moving[:3]) + (" and otherwise" if len(moving) > 3 else "")
        return Verdict("moves", f"it runs {named}, {beyond}{_at_once(asked)}{unknown}")
    if all(side == 0 for side in sides.values()):
        return Verdict("negligible", f"every path is within {asked.question.least:g} {asked.unit} of zero{unknown}")
    widest = max(asked.paths, key=lambda one: (one.band or one.interval).high - (one.band or one.interval).low)
    _, low, high = asked.scaled(widest.band or widest.interval)
    ends = f"{low:.3g} to {high:.3g}".replace("-", "−")
    reason = f"no path is {beyond}; {_way(asked, widest.name)}, anything from {ends} {asked.unit} fits"
    return Verdict(
        "undecided", reason + unknown, "more rows; a quarter of the interval's width takes sixteen times as many"
    )


def _at_once(asked: Asked) -> str:
    return "" if asked.hidden else f", at {100 * asked.question.level:g} % for all paths at once"


def _metrics(asked: Asked) -> dict[str, Metric]:
    fitted = asked.fitted
    found: dict[str, Metric] = {}
    for one in fitted.effects:
        if asked.hidden and one.name.startswith("through "):
            continue
        value, low, high = asked.scaled(one.interval)
        method = f"{one.interval.method}; {_capital_not(_learned(asked))}"
        label = {"total": "Total effect", "direct": "Direct effect", "indirect": "Through all mediators"}.get(one.name)
        label = f"{label or _capital(one.name)}, {_contrast(asked)}"
        found[_key(one.name, found)] = Metric(value, low, high, unit=asked.unit, method=method, label=label)
    if asked.span is not None:
        value, low, high = (asked.scale * end for end in (fitted[asked.last].interval.value, *asked.span[:2]))
        found["if_hidden_cause"] = Metric(
            min(max(value, low), high), low, high, unit=asked.unit, kind="bounds", method=asked.span.method,
            label=f"{_capital(_shown(asked.last))}, had it a hidden cause in common with the blocks before it",
        )  # fmt: skip
    raw = asked.scaled(_raw(fitted))
    found["raw_difference"] = Metric(
        *raw,
        unit=asked.unit,
        method=_raw(fitted).method,
        role="baseline",
        label=f"Difference of means, {_contrast(asked)}",
    )
    least = min(row.effective for row in fitted.weights)
    behind = "rows" if fitted.arrays.groups is None else "groups"
    exact = {
        "rows": (fitted.arrays.treated.size, "rows", "count", "Rows"),
        "effective_rows": (least, "rows", "(sum of weights)² / sum of squares", "Effective rows of the worst weights"),
        "rows_behind": (
            min(fitted.behind.values()), behind, "(sum of s²)² / sum of s⁴ of scores",
            f"{_capital(behind)} that the worst interval rests on",
        ),
        "clipped": (100 * max(fitted.clipped), "%", "count", "Rows whose propensity was moved"),
    }  # fmt: skip
    return found | {
        name: Metric(float(value) if unit == "%" else round(value), kind="exact", unit=unit, method=method, label=label)
        for name, (value, unit, method, label) in exact.items()
    }


def _raw(fitted: PathEffects) -> Interval:
    treated, outcome = fitted.arrays.treated, fitted.arrays.outcome
    share = treated.mean()
    sign = np.where(treated == 1, 1 / share, -1 / (1 - share))
    means = np.array([outcome[treated == arm].mean() for arm in (0, 1)])
    psi = sign * (outcome - means[treated]) + (means[1] - means[0])
    return influence_interval(psi, clusters=fitted.arrays.groups, level=fitted.settings.level)


def _key(name: str, taken: dict[str, Metric]) -> str:
    """A name for a metric: letters, digits and underscores."""
    plain = "".join(sign if sign.isalnum() else "_" for sign in name[:60]) or "path"
    key, number = plain, 2
    while key in taken:
        key, number = f"{plain}_{number}", number + 1
    return key


EFFECTS = {
    "effect": "total, the paths that add up to it, and all mediated paths together",
    "contrast": "direction of every effect",
    "estimate": "the effect",
    "low": "lower end of its own interval",
    "high": "upper end",
    "band_low": "lower end of the interval that holds for all paths at once; none for sums of paths",
    "band_high": "upper end",
    "se": "standard error",
    "p_value": "two-sided, of no effect [1]",
    "nested_regression": "the same by the regressions alone",
    "weighting": "the same by the weights alone",
    "canonical": "doubly robust, weights not normalised",
}
WEIGHT_ROWS = {
    "weights": "which rows stand for whom",
    "rows": "rows of that group [rows]",
    "mean": "mean weight over all rows; 1 under the true propensities [1]",
    "effective": "number of equal weights that would scatter as much [rows]",
    "effective_share": "effective rows over rows of the group [1]",
    "largest": "share of the largest weight in all [1]",
    "clipped": "share of all rows whose propensity was moved into the allowed range [1]",
}
PROPENSITY_BINS = {
    "given": "what the propensity is given",
    "group": "value of the attribute",
    "low": "lower end of the bin, probability of the comparison [1]",
    "high": "upper end [1]",
    "share": "share of the group's rows in the bin [1]",
}


def _tables(asked: Asked) -> dict[str, Table]:
    fitted, unit = asked.fitted, asked.unit
    scaled = ("estimate", "low", "high", "band_low", "band_high", "se")
    told = [one.name for one in fitted.effects if not (asked.hidden and one.name.startswith("through "))]
    others = fitted.estimators().rename({"nested regression": "nested_regression"})
    effects = fitted.summary().join(others.drop("self-normalised"), on="effect", maintain_order="left")
    effects = effects.with_columns(pl.col(*scaled, "nested_regression", "weighting", "canonical") * asked.scale)
    effects = effects.filter(pl.col("effect").is_in(told))
    in_unit = {
        name: f"{text} [{unit}]" if name in (*scaled, *list(EFFECTS)[-3:]) else text for name, text in EFFECTS.items()
    }
    return {
        "effects": Table(effects.select(list(EFFECTS)), in_unit, title="Effects along each path"),
        "weights": Table(fitted.diagnostics(), WEIGHT_ROWS, title="Whether the groups overlap"),
        "propensities": Table(_propensity_bins(asked), PROPENSITY_BINS, title="How alike the groups are"),
    }


def _propensity_bins(asked: Asked) -> pl.DataFrame:
    fitted = asked.fitted
    edges = np.linspace(0, 1, BINS + 1)
    rows = []
    for known in (0, len(fitted.blocks)):
        propensity = fitted.propensities(known)
        words = ["covariates"] if asked.question.covariates else []
        words += ["mediators"] if known else []
        given = " and ".join(words) + ("" if known or not words else " alone") if words else "nothing"
        for arm, label in enumerate((fitted.arrays.reference, fitted.arrays.comparison)):
            counts = np.histogram(propensity[fitted.arrays.treated == arm], edges)[0]
            rows += [
                {"given": given, "group": label, "low": float(low), "high": float(high), "share": float(share)}
                for low, high, share in zip(edges[:-1], edges[1:], counts / counts.sum(), strict=True)
            ]
    return pl.DataFrame(rows)


def _figures(asked: Asked, figures: Any, tables: dict[str, Table], void: bool) -> dict[str, Figure]:
    arms = (asked.fitted.arrays.reference, asked.fitted.arrays.comparison)
    drawn = ["total", *(one.name for one in asked.paths)]
    effects = tables["effects"].frame.filter(pl.col("effect").is_in(drawn))
    effects = effects.with_columns(pl.col("effect").replace({"indirect": _together(asked)}))
    return {
        "effects": Figure.drawn(
            figures.waterfall, effects, unit=asked.unit, outcome=asked.question.outcome, contrast=asked.fitted.contrast,
            level=asked.question.level, void=void,
        ),
        "overlap": Figure.drawn(
            figures.overlap_chart, tables["propensities"].frame, arms=arms,
            effective=min(row.effective for row in asked.fitted.weights),
        ),
    }  # fmt: skip


def _limits(asked: Asked, flaws: list[str]) -> list[str]:
    fitted = asked.fitted
    last, names = fitted.blocks[-1], ", ".join(_shown(name) for name in fitted.blocks)
    two = f"two of {names}" if len(fitted.blocks) > 1 else names
    known = len(asked.question.covariates or [])
    alike = "among rows of equal covariates" if known else "among all rows: no covariates are given"
    found = [
        f"Nothing hidden may move {two} and {_shown(asked.question.outcome)}; no table can show that it does not.",
        f"{_capital(_shown(asked.question.treatment))} is taken to be as good as random {alike}.",
    ]
    if len(fitted.blocks) > 1:
        if asked.hidden:
            found.append(f"By the graph {_shown(last)} cannot be told from the blocks before it: {asked.hidden}.")
        found.append(f"The order of the blocks is taken as given: {_shown(last)} must not move those before it.")
    if asked.question.nested == "split" and asked.fitted.n_folds > 1:
        found.append(
            f"Each nested regression is fitted on as few as {_rows_of_a_part(asked)} rows; what so few add to the"
            " scatter is not in the intervals (nested = reuse fits on more)."
        )
    if asked.question.splits > 1 and fitted.n_folds > 1:
        found.append(f"Each effect is the median of {asked.question.splits} splits; paths add up to the total nearly.")
    found += _of_the_trees(asked)
    found += [_capital(f"{flaw}.") for flaw in flaws[1:6]]
    found += [f"{count} rows were left out: {_shown(reason)}." for reason, count in fitted.arrays.dropped.items()]
    if f"{asked.question.outcome} missing" in fitted.arrays.dropped:
        what = _shown(asked.question.outcome)
        found.append(f"Where {what} is missing because of what the attribute moves, rows that have it are a selection.")
    return found + list(fitted.arrays.notes)


def _of_the_trees(asked: Asked) -> list[str]:
    """Where there are few rows for many columns, that the trees' own error is no small part of the whole."""
    fitted, question = asked.fitted, asked.question
    columns, rarer = fitted.arrays.X.shape[1], int(np.bincount(fitted.arrays.treated).min())
    if question.learner != "trees" or columns < MANY_COLUMNS or rarer >= LEAST_PER_COLUMN * columns:
        return []
    found = f"{rarer} rows of the rarer group for {columns} columns leave trees an error that intervals take for small"
    found += f": expect them to hold the truth somewhat less often than {100 * question.level:g} %"
    told = question.nested == "split" and question.splits > 1
    return [found + ("." if told else "; nested = split with splits = 5 takes more of it in.")]


def _rows_of_a_part(asked: Asked) -> int:
    """Rows of the rarer group in one part of the training rows."""
    fitted = asked.fitted
    parts = max(len(stretches(levels)) for levels in telescope(len(fitted.blocks)))
    rarer = int(np.bincount(fitted.arrays.treated).min())
    return rarer * (fitted.n_folds - 1) // (fitted.n_folds * parts)


def _learned(asked: Asked) -> str:
    words = {"trees": "boosted trees", "linear": "linear and logistic regression", "cells": "means of cells"}
    folds = asked.fitted.n_folds
    return words[asked.question.learner] + (f", {folds} folds" if folds > 1 else ", no cross-fitting")


def _contrast(asked: Asked) -> str:
    arrays = asked.fitted.arrays
    return f"{_shown(arrays.comparison)} minus {_shown(arrays.reference)}"


def _rows(asked: Asked) -> str:
    return f"{asked.fitted.arrays.treated.size:,} rows"


def _way(asked: Asked, name: str) -> str:
    return "directly" if name == "direct" else _together(asked) if name == "indirect" else _shown(name)


def _together(asked: Asked) -> str:
    """All mediated paths in words."""
    blocks = [_shown(name) for name in asked.fitted.blocks]
    return f"through {' and '.join(blocks)}" if len(blocks) < 4 else f"through {len(blocks)} mediators"


def _signed(value: float) -> str:
    size = abs(value)
    if size and not 1e-5 <= size < 1e6:
        return f"{value:+.3g}".replace("-", "−")
    digits = max(0, 2 - math.floor(math.log10(size))) if 0 < size < 1000 else 1
    return f"{value:+.{digits}f}".replace("-", "−")


def _shown(text: str) -> str:
    return visible(text, LONGEST)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _capital_not(text: str) -> str:
    return text[:1].lower() + text[1:]
