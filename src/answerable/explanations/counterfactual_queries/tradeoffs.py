"""What answerability costs: how well each set of features predicts, and how many questions it answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from answerable.errors import BadInput
from answerable.statistics import Interval, fold_numbers, mean_interval, paired_difference_interval, wilson_interval
from answerable.subjects.causal_graph import load

from .api import admissible, maximal_features, queried
from .concepts import columns_of, learned
from .estimator import ConceptPredictor

if TYPE_CHECKING:
    import polars as pl

MOST_LISTED = 4  # concepts whose every set is compared
MOST_QUERIES = 10  # whose every combination is turned into a largest set
MOST_SETS = 64
LEAST_PROBABILITY = 1e-15  # below it a log loss counts as this

Floats = npt.NDArray[np.float64]


def feature_sets(
    graph: Any, queries: Sequence[str | Iterable[str]], universe: Sequence[str] | None = None
) -> list[tuple[str, ...]]:
    """The sets of features worth comparing: of four concepts or fewer every set, else the largest set for each
    combination of queries, since a smaller set that answers the same predicts no better.

    Parameters
    ----------
    graph : a causal graph of the concepts
    queries : each the concepts that would be set
    universe : concepts to choose among; every concept of the graph for None

    Returns
    -------
    sets in the order of the universe, larger first, no set twice, at most 64
    """
    found = load(graph)
    names = list(found.names if universe is None else universe)
    if len(names) <= MOST_LISTED:
        sets = [chosen for size in range(len(names), 0, -1) for chosen in itertools.combinations(names, size)]
        return sets
    asked = [queried(found, query) for query in queries][:MOST_QUERIES]
    largest = {
        maximal_features(found, chosen, names).features
        for size in range(len(asked) + 1)
        for chosen in itertools.combinations(asked, size)
    }
    return sorted((found for found in largest if found), key=lambda names: (-len(names), names))[:MOST_SETS]


def tradeoff(
    X: Any,
    concepts: Any,
    y: Any,
    graph: Any,
    queries: Sequence[str | Iterable[str]],
    *,
    sets: Sequence[Sequence[str]] | None = None,
    model: ConceptPredictor | None = None,
    folds: int = 5,
    seed: int = 0,
    level: float = 0.95,
) -> pl.DataFrame:
    """How well each set of features predicts out of fold, and how many of the queries it answers.

    Parameters
    ----------
    X : (n, ...) inputs; None where the concepts are given
    concepts : table of the concepts' labels
    y : (n,) labels
    graph : a causal graph of the concepts
    queries : each the concepts that would be set
    sets : sets of features to compare; by default :func:`feature_sets`
    model : extractor and classifier to use
    folds : of cross-validation, stratified by label
    seed : of the folds
    level : of the intervals

    Returns
    -------
    features (list), answerable (number of queries), all_answerable, log_loss with low and high [nats], accuracy with
    low and high, extra_loss: log loss more than the best set's, paired over rows, with low and high

    Raises
    ------
    BadInput : fewer rows of a class than folds
    """
    found = load(graph)
    labels = np.asarray(y)
    asked = [queried(found, query) for query in queries]
    chosen = [tuple(names) for names in (feature_sets(found, asked) if sets is None else sets)]
    if not chosen:
        raise BadInput("there is no set of features to compare", where="tradeoff", mend="give sets")
    height = columns_of(concepts).height
    if height != len(labels):
        raise BadInput(f"{height} rows of concepts and {len(labels)} labels", where="y", mend="give one a row")
    part = fold_numbers(len(labels), folds, seed=seed, strata=np.unique(labels, return_inverse=True)[1])
    losses, right = out_of_fold(X, concepts, labels, chosen, model or ConceptPredictor(), part)
    return compared(found, asked, chosen, losses, right, level=level)


def compared(
    graph: Any,
    queries: Sequence[str | Iterable[str]],
    sets: Sequence[Sequence[str]],
    losses: Floats,
    right: npt.NDArray[np.bool_],
    *,
    level: float = 0.95,
) -> pl.DataFrame:
    """The table of :func:`tradeoff`, from each row's log loss and correctness under each set.

    Parameters
    ----------
    losses, right : (n_sets, n) log loss [nats], and whether the likeliest label was right
    """
    import polars as pl

    best = int(np.argmin(losses.mean(axis=1)))
    rows = []
    for number, names in enumerate(sets):
        answered = sum(admissible(graph, names, query).answerable for query in queries)
        loss = mean_interval(losses[number], level=level)
        correct = wilson_interval(int(right[number].sum()), right.shape[1], level=level)
        extra = (
            Interval(0.0, 0.0, 0.0, level, "the best set itself")
            if number == best
            else paired_difference_interval(losses[number], losses[best], level=level)
        )
        ends = [end for interval in (loss, correct, extra) for end in (interval.value, interval.low, interval.high)]
        rows.append((list(names), answered, answered == len(queries), *ends))
    numbers = [f"{name}{end}" for name in ("log_loss", "accuracy", "extra_loss") for end in ("", "_low", "_high")]
    schema: dict[str, Any] = {"features": pl.List(pl.String), "answerable": pl.Int64, "all_answerable": pl.Boolean}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(numbers, pl.Float64), orient="row")


def out_of_fold(
    X: Any, concepts: Any, labels: npt.NDArray[Any], sets: Sequence[Sequence[str]], model: ConceptPredictor, part: Any
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Log loss and correctness of every row under models that did not see it.

    Returns
    -------
    (n_sets, n) float64 in nats, (n_sets, n) bool
    """
    table = columns_of(concepts)
    coding = learned(table)
    inputs = None if X is None else np.asarray(X)
    losses, right = np.empty((len(sets), len(labels))), np.empty((len(sets), len(labels)), bool)
    for fold in np.unique(part):
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        first = clone(model).set_params(features=list(sets[0]))
        given = table[inside.tolist()]
        first.fit(None if inputs is None else inputs[inside], labels[inside], concepts=given, coding=coding)
        asked = table[outside.tolist()] if inputs is None else inputs[outside]
        losses[:, outside], right[:, outside] = judged(first, sets, labels[inside], asked, labels[outside])
    return losses, right


def judged(
    fitted: ConceptPredictor, sets: Sequence[Sequence[str]], known: npt.NDArray[Any], X: Any, labels: npt.NDArray[Any]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Log loss and correctness of rows under each set of features; the extractors, which no set changes, are shared.

    Parameters
    ----------
    fitted : a model fitted on other rows, with any features
    sets : of features
    known : the labels that it was fitted with
    X : (n, ...) the rows
    labels : (n,) their labels

    Returns
    -------
    (n_sets, n) float64 in nats, (n_sets, n) bool
    """
    losses, right = np.empty((len(sets), len(labels))), np.empty((len(sets), len(labels)), bool)
    classes = fitted.classes_
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    for number, names in enumerate(sets):
        probabilities = fitted.with_features(names, known).predict_proba(X)
        own = np.where(classes[place] == labels, probabilities[np.arange(len(labels)), place], 0.0)
        losses[number] = -np.log(np.maximum(own, LEAST_PROBABILITY))
        right[number] = classes[probabilities.argmax(axis=1)] == labels
    return losses, right
