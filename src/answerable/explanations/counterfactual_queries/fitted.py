"""The model of one ask: fitted on the table, judged out of fold, and asked for its cases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from answerable.answer import Metric
from answerable.errors import BadInput
from answerable.statistics import Interval, mean_interval, paired_difference_interval, wilson_interval
from answerable.subjects.causal_graph import CausalGraph

from .asked import Asked, Item
from .cells import CellClassifier
from .closed_form import propagated_error
from .concepts import Coding, encoded, learned, tell_the_same
from .estimator import ConceptPredictor, UnseenWarning
from .given import class_of, folds_of, inputs_of, read, shown
from .tradeoffs import compared, feature_sets, judged

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
    sets: dict[str, list[str]]
    losses: dict[str, Floats]
    right: dict[str, npt.NDArray[np.bool_]]
    chosen: str
    largest: str
    unseen: int
    leakage: Interval | None
    monte_carlo_error: float
    soft: list[str]
    unconverged: bool
    parted: bool

    @classmethod
    def of(cls, question: CounterfactualQueries, asked: Asked, run: Run) -> Fitted:
        """Fit, compare sets of features out of fold, and answer the cases.

        Raises
        ------
        UnknownName, BadInput : a column that is not there, or one that cannot be used
        """
        table, labels, classes, parts = read(question, asked)
        inputs = inputs_of(question, table.height)
        model = _model(question, table).set_params(features=list(asked.features))
        universe = _universe(asked, table, labels)
        sets = _sets(asked, universe, [item.query for item in asked.items])
        coding = learned(table)
        folds = folds_of(question, labels, parts, classes)
        fitted_on = np.arange(len(labels)) if parts is None else folds[0][0]
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model.fit(
                None if inputs is None else inputs[fitted_on], labels[fitted_on],
                concepts=table[fitted_on.tolist()], coding=coding,
            )  # fmt: skip
        target = len(classes) - 1 if question.target is None else class_of(question.target, classes)
        first = range(min(FIRST_CASES, len(labels))) if parts is None else folds[0][1][:FIRST_CASES].tolist()
        cases, unseen, error = _cases(question, asked, model, inputs, table, target, first)
        held = run.each(
            lambda fold: _held_out(inputs, table, labels, sets, model, target, coding, fold), folds, "rows out of fold"
        )
        order = np.argsort(np.concatenate([outside for _, outside in folds]))
        losses, right, missed = (
            np.concatenate([found[name] for found in held], axis=-1)[..., order] for name in ("loss", "right", "missed")
        )
        ends = np.concatenate([found["outputs"] for found in held])
        oscillation = float(ends.max() - ends.min()) if inputs is not None else 0.0
        bound = np.asarray(propagated_error(oscillation, missed))
        words = [_words(names) for names in sets]
        return cls(
            outcome=str(question.outcome),
            target=classes[target],
            tradeoff=_tradeoff(asked, sets, losses, right),
            cases=cases,
            sets=dict(zip(words, sets)),
            losses=dict(zip(words, losses)),
            right=dict(zip(words, right)),
            chosen=_words(asked.features),
            largest=_words(asked.largest.features),
            unseen=unseen,
            leakage=None if inputs is None else mean_interval(bound, bounds=(0.0, 1.0)),
            monte_carlo_error=error,
            soft=model.soft_features(),
            parted=parts is not None,
            unconverged=any(issubclass(w.category, ConvergenceWarning) for w in heard),
        )

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
        rows = "train rows" if self.parted else "rows"
        found = [
            f"The model was fitted here, on the {rows} of the table; another one has other answers, the same verdicts."
        ]
        if question.inputs is not None and not question.joint:
            found.append(
                "Concepts are extracted one by one, which is exact only where they are independent given the input."
            )
        if question.inputs is not None:
            found.append(
                "The bound on extraction takes the labels for what the input decides, and the classifier for exact."
            )
        if self.soft:
            found.append(
                f"Fractions in {', '.join(self.soft)}: if these are probabilities of concepts, they carry more of the"
                " input than the concepts do, and no what-if question about this model has an answer."
            )
        if self.unconverged:
            found.append("A network or regression had not converged when its fitting was stopped.")
        if self.unseen:
            found.append(
                f"Answers that rest on combinations of concepts that no row of the table has: {self.unseen} of"
                f" {self.cases.height}."
            )
        if question.independent:
            found.append(
                "Intervals under asserted independence use shares of this table, and have their sampling error."
            )
        return found


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


def _universe(asked: Asked, table: pl.DataFrame, labels: npt.NDArray[np.int64]) -> list[str]:
    """The concepts whose sets are compared: not the label under another name, which no model should predict from."""
    values = encoded(table, learned(table))
    twins = {name for j, name in enumerate(table.columns) if tell_the_same(values[:, j], labels)}
    return [name for name in asked.graph.names if name in table.columns and name not in twins]


def _sets(asked: Asked, universe: list[str], queries: list[list[str]]) -> list[list[str]]:
    compared = [list(names) for names in feature_sets(asked.graph, queries, universe)]
    for names in (list(asked.features), [name for name in asked.largest.features if name in universe]):
        if names and names not in compared:
            compared.append(names)
    return compared


def _words(names: Any) -> str:
    return ", ".join(names)


def _held_out(
    inputs: Any,
    table: pl.DataFrame,
    labels: npt.NDArray[np.int64],
    sets: list[list[str]],
    model: ConceptPredictor,
    target: int,
    coding: Coding,
    fold: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
) -> dict[str, Any]:
    """Of the rows outside: loss and correctness by set of features; the probability with which concepts are missed
    and the ends of the output, where they are extracted.
    """
    inside, outside = fold
    given = table[outside.tolist()]
    asked = given if inputs is None else inputs[outside]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that has not converged shows in its loss
        fitted = clone(model).fit(
            None if inputs is None else inputs[inside], labels[inside], concepts=table[inside.tolist()], coding=coding
        )
        losses, right = judged(fitted, sets, labels[inside], asked, labels[outside])
        missed = np.zeros(len(outside)) if inputs is None else 1 - fitted.probability_of(asked, given)
        outputs = [0.0, 0.0] if inputs is None else fitted.output_range(target)
    return {"loss": losses, "right": right, "missed": missed, "outputs": np.asarray(outputs)}


def _tradeoff(asked: Asked, sets: list[list[str]], losses: Floats, right: npt.NDArray[np.bool_]) -> pl.DataFrame:
    frame = compared(asked.graph, [item.query for item in asked.items], sets, losses, right)
    return frame.with_columns(pl.col("features").list.join(", "))


def _cases(
    question: CounterfactualQueries,
    asked: Asked,
    model: ConceptPredictor,
    inputs: Any,
    table: pl.DataFrame,
    target: int,
    first: Sequence[int],
) -> tuple[pl.DataFrame, int, float]:
    """One row for each case and query with values, the number of answers without a row like them, and draws' error."""
    numbers = [row + 1 for row in first] if question.cases is None else question.cases
    for number in numbers:
        if not 1 <= number <= table.height:
            raise BadInput(
                f"there is no row {number}", where="cases", mend=f"the table has {table.height} rows, from 1"
            )
    rows = [number - 1 for number in numbers]
    given = table[rows] if inputs is None else inputs[rows]
    graph = _known(asked, table)
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
                given, values, graph=graph, on_unanswerable="bounds", target=target,
                independent=question.independent or (),
            )  # fmt: skip
        unseen += sum(int(str(w.message).split()[0]) for w in heard if issubclass(w.category, UnseenWarning))
        error = max(error, model.monte_carlo_error_)
        words = ", ".join(f"{name} = {shown(value)}" for name, value in values.items())
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


def _known(asked: Asked, table: pl.DataFrame) -> CausalGraph:
    """The graph without concepts that the table does not have, the outcome among them: what they moved is moved by
    their causes, so that an answer may be anywhere in the same interval.
    """
    graph = asked.graph
    missing = [name for name in graph.names if name not in table.columns]
    return graph.without_hidden(missing) if missing and graph.whole and not graph.possible else graph


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


def _estimated(interval: Interval, unit: str, label: str) -> Metric:
    low, high = interval.low, interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = interval.value, interval.value
    return Metric(interval.value, low, high, unit=unit, method=interval.method, label=label)


def _exact(value: float, unit: str, method: str, label: str) -> Metric:
    return Metric(value, kind="exact", unit=unit, method=method, label=label)
