"""The model of one ask: fitted on the table, judged out of fold, and asked for its cases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from answerable.answer import Metric
from answerable.errors import BadInput, unknown
from answerable.statistics import Interval, fold_numbers, mean_interval, paired_difference_interval, wilson_interval
from answerable.subjects.arrays import read_arrays
from answerable.subjects.concept_table import read_concepts

from .asked import Asked, Item
from .cells import CellClassifier
from .closed_form import propagated_error
from .concepts import MOST_LEVELS
from .estimator import ConceptPredictor, UnseenWarning
from .tradeoffs import feature_sets, out_of_fold

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import CounterfactualQueries

FIRST_CASES = 8
MOST_VALUES = 4  # values of a concept that each is asked of, where the query names none
MOST_ANSWERS = 100_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """Everything that a table adds to an ask."""

    outcome: str
    target: str
    tradeoff: pl.DataFrame
    cases: pl.DataFrame
    losses: dict[str, Floats]
    right: dict[str, npt.NDArray[np.bool_]]
    chosen: str
    largest: str
    unseen: int
    leakage: Interval | None
    monte_carlo_error: float
    oscillation: float

    @classmethod
    def of(cls, question: CounterfactualQueries, asked: Asked, run: Run) -> Fitted:
        """Fit, compare sets of features out of fold, and answer the cases.

        Raises
        ------
        UnknownName, BadInput : a column that is not there, or one that cannot be used
        """
        table, labels, classes = _read(question, asked)
        inputs = _inputs(question, table.height)
        model = _model(question, table)
        universe = [name for name in asked.graph.names if name in table.columns]
        queries = [item.query for item in asked.items]
        sets = _sets(asked, universe, queries)
        part = fold_numbers(len(labels), question.folds, seed=0, strata=labels)
        compared = run.each(
            lambda names: _compared(inputs, table, labels, names, model, part), sets, "sets of features"
        )
        losses = {_words(names): found["loss"] for names, found in zip(sets, compared)}
        right = {_words(names): found["right"] for names, found in zip(sets, compared)}
        chosen, largest = _words(asked.features), _words(asked.largest.features)
        model.set_params(features=list(asked.features)).fit(inputs, labels, concepts=table)
        target = len(classes) - 1 if question.target is None else _class_of(question.target, classes)
        cases, unseen, error = _cases(question, asked, model, inputs, table, target)
        leakage, oscillation = _leakage(model, inputs, table, labels, target, question, run)
        return cls(
            str(question.outcome), classes[target], _tradeoff(asked, sets, losses, right), cases, losses, right, chosen,
            largest, unseen, leakage, error, oscillation,
        )  # fmt: skip

    def metrics(self) -> dict[str, Metric]:
        """Accuracy, its cost, and how many answers are points."""
        loss = mean_interval(self.losses[self.chosen])
        right = wilson_interval(int(self.right[self.chosen].sum()), len(self.right[self.chosen]))
        found = {
            "log_loss": _estimated(loss, "nats", "Log loss of the features in use"),
            "accuracy": _estimated(right, "1", "Accuracy of the features in use"),
        }
        if self.largest in self.losses:
            best = mean_interval(self.losses[self.largest])
            found["largest_log_loss"] = _estimated(
                best, "nats", "Log loss of the largest set that answers every question"
            )
            if self.largest != self.chosen:
                cost = paired_difference_interval(self.losses[self.largest], self.losses[self.chosen])
                found["answerability_cost"] = _estimated(cost, "nats", "Log loss that answering every question costs")
        if self.cases.height:
            width = (self.cases["upper"] - self.cases["lower"]).to_numpy()
            found["identified_share"] = _exact(
                float(self.cases["identified"].mean()),  # type: ignore[arg-type]
                "1", "both ends of the interval are one", "Share of answers that are points",
            )  # fmt: skip
            found["widest_interval"] = _exact(
                float(width.max()), "probability", "sharp interval of the fitted model", "Widest interval"
            )
            found["unseen_answers"] = _exact(
                self.unseen, "answers", "combinations of features that no row has", "Answers without a row like them"
            )
        if self.leakage is not None:
            found["extraction_error"] = _estimated(self.leakage, "probability", "Answers may be off by, for extraction")
        if self.monte_carlo_error:
            found["monte_carlo_error"] = _exact(
                self.monte_carlo_error, "probability", "largest standard error of the draws", "Error of the draws"
            )
        return found

    def limits(self, question: CounterfactualQueries) -> list[str]:
        """What a reader of these answers must know."""
        found = [
            "The model was fitted here, on the rows of the table; another one has other answers, the same verdicts."
        ]
        if question.inputs is not None and not question.joint:
            found.append(
                "Concepts are extracted one by one, which is exact only where they are independent given the input."
            )
        if question.inputs is not None:
            found.append(
                "The bound on extraction takes the labels for what the input decides, and the classifier for exact."
            )
        if self.unseen:
            found.append(f"{self.unseen} answers rest on combinations of concepts that no row of the table has.")
        if question.independent:
            found.append(
                "Intervals under asserted independence use shares of this table, and have their sampling error."
            )
        return found


def _read(question: CounterfactualQueries, asked: Asked) -> tuple[pl.DataFrame, npt.NDArray[np.int64], list[str]]:
    """Concepts, labels as numbers, and the labels' words."""
    if question.outcome is None:
        mend = "name the column that the model predicts"
        raise BadInput("there is a table and no outcome", where="outcome", mend=mend)
    if not asked.features:
        mend = "name the concepts that it predicts from, or ask without a table"
        raise BadInput("no concept is a feature, so that there is nothing to fit", where="features", mend=mend)
    table = read_concepts(question.concepts)
    if question.outcome not in table.columns:
        raise unknown("column", question.outcome, table.columns, where="outcome")
    wanted = {*asked.features, *(name for item in asked.items for name in item.query)}
    for name in [name for name in asked.graph.names if name in wanted]:
        if name not in table.columns:
            raise unknown("column", name, table.columns, where="concepts")
    column = table[question.outcome]
    if column.is_null().any() or (column.dtype.is_float() and column.is_nan().any()):
        row = int((column.is_null() | column.cast(pl.Float64, strict=False).is_nan().fill_null(False)).arg_max() or 0)
        where = f"concepts, column {question.outcome}, row {row + 1}"
        raise BadInput("the entry is missing", where=where, mend="mend the entry or drop the row")
    levels = column.unique().sort()
    if not 2 <= len(levels) <= MOST_LEVELS:
        where, mend = f"concepts, column {question.outcome}", f"give 2 to {MOST_LEVELS} classes"
        raise BadInput(f"the outcome has {len(levels)} different values", where=where, mend=mend)
    place = {level: number for number, level in enumerate(levels.to_list())}
    labels = np.array([place[value] for value in column.to_list()])
    counts = np.bincount(labels)
    if counts.min() < question.folds:
        where, mend = f"concepts, column {question.outcome}", "give more rows or fewer folds"
        rare = _shown(levels[int(counts.argmin())])[:40]
        problem = f"{rare} stands in {counts.min()} rows, and {question.folds} folds need {question.folds}"
        raise BadInput(problem, where=where, mend=mend)
    names = [name for name in asked.graph.names if name in table.columns and name != question.outcome]
    return table.select(names), labels, [_shown(level) for level in levels.to_list()]


def _shown(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _class_of(target: str, classes: list[str]) -> int:
    if target not in classes:
        raise unknown("value of the outcome", target, classes, where="target")
    return classes.index(target)


def _inputs(question: CounterfactualQueries, n: int) -> Floats | None:
    if question.inputs is None:
        return None
    arrays = read_arrays(question.inputs)
    if len(arrays) > 1:
        names = ", ".join(list(arrays)[:6])
        raise BadInput(f"the file holds {len(arrays)} arrays ({names})", where="inputs", mend="save the inputs alone")
    (found,) = arrays.values()
    if found.ndim < 2 or len(found) != n or not found.size:
        raise BadInput(f"an array of shape {found.shape} for {n} rows", where="inputs", mend="give one input a row")
    if not np.issubdtype(found.dtype, np.number):
        raise BadInput(f"an array of {found.dtype}", where="inputs", mend="give numbers")
    return found.reshape(n, -1).astype(np.float64)


def _model(question: CounterfactualQueries, table: pl.DataFrame) -> ConceptPredictor:
    logistic = LogisticRegression(max_iter=2000)
    words = any(not table[name].dtype.is_numeric() or table[name].n_unique() in range(3, 11) for name in table.columns)
    classifiers: dict[str, Any] = {
        "logistic": make_pipeline(OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False), logistic)
        if words
        else logistic,
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "cells": CellClassifier(),
    }
    extractors: dict[str, Any] = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "network": make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=400, random_state=0)),
    }
    return ConceptPredictor(
        extractor=extractors[question.extractor], classifier=classifiers[question.classifier], joint=question.joint
    )


def _sets(asked: Asked, universe: list[str], queries: list[list[str]]) -> list[list[str]]:
    compared = [list(names) for names in feature_sets(asked.graph, queries, universe)]
    for names in (list(asked.features), [name for name in asked.largest.features if name in universe]):
        if names and names not in compared:
            compared.append(names)
    return compared


def _words(names: Any) -> str:
    return ", ".join(names)


def _compared(
    inputs: Any, table: pl.DataFrame, labels: Any, names: list[str], model: ConceptPredictor, part: Any
) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that has not converged shows in its loss
        losses, right = out_of_fold(inputs, table, labels, [names], model, part)
    return {"loss": losses[0], "right": right[0]}


def _tradeoff(asked: Asked, sets: list[list[str]], losses: dict[str, Floats], right: dict[str, Any]) -> pl.DataFrame:
    from .tradeoffs import compared

    frame = compared(
        asked.graph, [item.query for item in asked.items], sets, np.stack([losses[_words(names)] for names in sets]),
        np.stack([right[_words(names)] for names in sets]),
    )  # fmt: skip
    return frame.with_columns(pl.col("features").list.join(", "))


def _cases(
    question: CounterfactualQueries,
    asked: Asked,
    model: ConceptPredictor,
    inputs: Any,
    table: pl.DataFrame,
    target: int,
) -> tuple[pl.DataFrame, int, float]:
    """One row for each case and query with values, the number of answers without a row like them, and draws' error."""
    numbers = list(range(1, min(FIRST_CASES, table.height) + 1)) if question.cases is None else question.cases
    for number in numbers:
        if not 1 <= number <= table.height:
            raise BadInput(
                f"there is no row {number}", where="cases", mend=f"the table has {table.height} rows, from 1"
            )
    rows = [number - 1 for number in numbers]
    given = table[rows] if inputs is None else inputs[rows]
    frames, unseen, error = [], 0, 0.0
    asks = [] if asked.sees_input else list(_with_values(asked, model))
    if len(asks) * len(rows) > MOST_ANSWERS:
        raise BadInput(
            f"{len(asks)} queries for {len(rows)} rows", where="cases", mend=f"at most {MOST_ANSWERS} answers"
        )
    for values in asks:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            frame = model.counterfactual(
                given, values, graph=asked.graph, on_unanswerable="bounds", target=target,
                independent=question.independent or (),
            )  # fmt: skip
        unseen += sum(int(str(w.message).split()[0]) for w in heard if issubclass(w.category, UnseenWarning))
        error = max(error, model.monte_carlo_error_)
        words = ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())
        naive = model.naive(given, values, target=target)
        frames.append(
            frame.with_columns(
                row=pl.Series(numbers, dtype=pl.Int64), query=pl.lit(words), naive=pl.Series(naive)
            ).select("row", "query", "factual", "prob", "lower", "upper", "identified", "naive")
        )
    if not frames:
        schema: dict[str, Any] = {"row": pl.Int64, "query": pl.String}
        schema |= dict.fromkeys(["factual", "prob", "lower", "upper"], pl.Float64)
        return pl.DataFrame(schema=schema | {"identified": pl.Boolean, "naive": pl.Float64}), 0, 0.0
    return pl.concat(frames).sort("row", maintain_order=True), unseen, error


def _with_values(asked: Asked, model: ConceptPredictor) -> Iterator[dict[str, Any]]:
    """Queries with a value for each concept: as asked, or each value of a single concept that has few."""
    for item in asked.items:
        if all(value is not None for value in item.values.values()):
            yield dict(item.values)
        elif len(item.values) == 1 and model.coding_ is not None:
            yield from _each_value(item, model)


def _each_value(item: Item, model: ConceptPredictor) -> Iterator[dict[str, Any]]:
    (name,) = item.query
    assert model.coding_ is not None
    levels = model.coding_.levels[model.concepts_.index(name)]
    if len(levels) <= MOST_VALUES:
        yield from ({name: level} for level in levels)


def _leakage(
    model: ConceptPredictor,
    inputs: Any,
    table: pl.DataFrame,
    labels: Any,
    target: int,
    question: CounterfactualQueries,
    run: Run,
) -> tuple[Interval | None, float]:
    """The bound on what extraction may add to an answer's error, out of fold, if the input decides the concepts."""
    if inputs is None:
        return None, 0.0
    part = fold_numbers(len(labels), question.folds, seed=0, strata=labels)
    missed = np.empty(len(labels))
    outputs: list[float] = []
    for fold in run.track(range(question.folds), "extraction, out of fold"):
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(model).fit(inputs[inside], labels[inside], concepts=table[inside.tolist()])
        missed[outside] = 1 - fitted.probability_of(inputs[outside], table[outside.tolist()])
        outputs += fitted.output_range(target)
    oscillation = max(outputs) - min(outputs)
    bound = np.asarray(propagated_error(oscillation, missed))
    return mean_interval(bound, bounds=(0.0, 1.0)), oscillation


def _estimated(interval: Interval, unit: str, label: str) -> Metric:
    low, high = interval.low, interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = interval.value, interval.value
    return Metric(interval.value, low, high, unit=unit, method=interval.method, label=label)


def _exact(value: float, unit: str, method: str, label: str) -> Metric:
    return Metric(value, kind="exact", unit=unit, method=method, label=label)
