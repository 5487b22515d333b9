"""Component values of any additive model, with the terms they belong to, and the proof that they sum to its scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Floats

from .solver import Term

DIFFERENT = 1e-6  # of the spread of the model's scores
UNPURE = 1e-3  # of a pair's own deviation


class Components(NamedTuple):
    """What an additive model adds up.

    Attributes
    ----------
    of : from rows to (N, U) float64 component values
    terms : features of each component, from 0
    scores : from rows to the model's own (N,) score, where it is at hand
    intercept : what the components lack of the score
    n_classes : of the model, 2 where it gives one score
    """

    of: Callable[[Any], Floats]
    terms: list[Term]
    scores: Callable[[Any], Floats] | None
    intercept: float
    n_classes: int = 2


def components_of(
    model: Any, n_features: int, *, rows: Any = None, pairs: bool = True, positive: Any = None
) -> Components:
    """The components of a fitted model.

    Parameters
    ----------
    model : None (each feature is its own component), a :class:`NAMEnsemble` or any object with ``components`` and
        ``terms_``, a callable from rows to component values of one feature each, or whatever
        :func:`answerable.subjects.additive_model.load` reads (EBM, pyGAM, scikit-learn pipeline, scorecard, a file)
    n_features : columns of the rows
    rows : the rows the model was fitted on, for scikit-learn models; the columns of a dataframe are matched with the
        model's features by name
    pairs : keep the model's pair terms
    positive : the class whose scores are taken apart, for a model of more than two

    Raises
    ------
    BadInput : a model of more than two classes, and ``positive`` is none of them
    """
    singles: list[Term] = [(j,) for j in range(n_features)]
    if model is None:
        return Components(np.asarray, singles, None, 0.0)
    if hasattr(model, "components") and hasattr(model, "terms_"):
        return Components(model.components, list(model.terms_), model.decision_function, float(model.intercept_))
    if callable(model) and not hasattr(model, "predict"):
        return Components(model, singles, None, 0.0)
    return _of_additive_model(model, rows, pairs, positive)


def _of_additive_model(model: Any, rows: Any, pairs: bool, positive: Any) -> Components:
    from answerable.subjects.additive_model import load

    found = load(model, rows)
    output = _output(found.classes, found.n_outputs, positive, found.source)
    kept = tuple(found.pairs) if pairs else ()
    places = _places(found.names, rows)
    terms: list[Term] = [(place,) for place in places] + [(places[pair.first], places[pair.second]) for pair in kept]
    scores = None if found.original is None or not pairs else _Scores(found, output)
    intercept = float(found.intercept[output])
    return Components(_Values(found, kept, output), terms, scores, intercept, max(2, found.n_outputs))


def _output(classes: Sequence[str], n_outputs: int, positive: Any, source: str) -> int:
    """Number of the score that is taken apart."""
    if n_outputs == 1:
        return 0
    if positive is None or str(positive) not in classes:
        raise BadInput(
            f"the model has {n_outputs} classes",
            where=source,
            mend=f"set one against the rest: positive = one of {', '.join(classes[:8])}",
        )
    return list(classes).index(str(positive))


def _places(names: Sequence[str], rows: Any) -> list[int]:
    """The column of each feature: by name in a dataframe that has them all, else by place."""
    columns = [str(name) for name in getattr(rows, "columns", ())]
    if columns and set(names) <= set(columns):
        return [columns.index(name) for name in names]
    return list(range(len(names)))


def names_of(model: Any, rows: Any) -> list[str]:
    """What the model calls its features; empty if it gives them no names that a table could have.

    Parameters
    ----------
    model : as for :func:`components_of`
    rows : a dataframe
    """
    if model is None or hasattr(model, "terms_") or (callable(model) and not hasattr(model, "predict")):
        return []
    from answerable.subjects.additive_model import load

    names = load(model, rows).names
    return list(names) if set(names) <= set(rows.columns) else []


def words_of(rows: Any) -> list[str]:
    """Columns of a dataframe that hold neither numbers nor truth values; none of anything else."""
    if not hasattr(rows, "columns"):
        return []
    import polars as pl

    from answerable.subjects.table import as_table

    return [name for name, kind in as_table(rows).schema.items() if not (kind.is_numeric() or kind == pl.Boolean)]


def with_codes(rows: Any) -> Any:
    """A dataframe with its columns of words as codes 1, 2, ... in alphabetical order; anything else as it is."""
    if not hasattr(rows, "columns"):
        return rows
    import polars as pl

    from answerable.subjects.table import as_table

    words = words_of(rows)
    if not words:
        return rows
    frame = as_table(rows)
    codes = (pl.col(name).cast(pl.String).rank("dense").cast(pl.Float64) for name in words)
    return frame.with_columns(*codes).to_pandas()


@dataclass(frozen=True)
class _Values:
    """Component values of a model in exact form; a class, so that an estimator that holds it can be copied and sent."""

    model: Any
    pairs: tuple[Any, ...]
    output: int

    def __call__(self, X: Any) -> Floats:
        encoded = self.model.encode(X, inside=False)
        singles = self.model.contributions(encoded)[:, :, self.output]
        return np.hstack([singles, *(np.asarray(pair(encoded))[:, [self.output]] for pair in self.pairs)])


@dataclass(frozen=True)
class _Scores:
    """The original model's own scores."""

    model: Any
    output: int

    def __call__(self, X: Any) -> Floats:
        names = list(self.model.names)
        if set(names) <= set(getattr(X, "columns", ())):
            X = X[names]  # components find their columns by name, the model itself by place
        scores = np.asarray(self.model.original(X), dtype=np.float64)
        return scores.reshape(len(scores), -1)[:, self.output]


def check_components(values: Floats, intercept: float, scores: Floats) -> None:
    """Refuse components that do not sum to the model's own scores.

    Parameters
    ----------
    values : (N, U) component values
    intercept : of the model
    scores : (N,) what the model itself gave for the same rows

    Raises
    ------
    BadInput : they differ by more than a millionth of the scores' spread; the usual cause is rows that were not scaled
        as those the model was fitted on
    """
    gap = np.abs(values.sum(axis=1) + intercept - scores)
    row = int(np.argmax(gap))
    if gap[row] > DIFFERENT * max(float(np.std(scores)), 1e-12):
        raise BadInput(
            f"the components sum to {values[row].sum() + intercept:.6g}, the model's score is {scores[row]:.6g}",
            where=f"model, row {row + 1}",
            mend="give the rows as the model was fitted on them (scaled, encoded, in that order)",
        )


def warn_of_unpurified_pairs(X: Floats, values: Floats, terms: Sequence[Term], names: Sequence[str]) -> list[str]:
    """Name the pairs that still hold a curve of one of their features.

    A purified pair has mean 0 at every value of either feature; an edited model may not be. What it then holds of a
    main curve is credited to the pair.

    Returns
    -------
    list of sentences, each also given as a warning
    """
    found = []
    for number, term in enumerate(terms):
        if len(term) < 2 or term[0] == term[1] or np.std(values[:, number]) == 0:
            continue
        pair = values[:, number] - values[:, number].mean()
        for j in term:
            group = np.digitize(X[:, j], np.unique(np.quantile(X[:, j], np.linspace(0.1, 0.9, 9))))
            sizes = np.bincount(group)
            means = np.bincount(group, pair) / np.maximum(sizes, 1)
            noise = (np.count_nonzero(sizes) + 3 * np.sqrt(2 * np.count_nonzero(sizes))) / len(X)
            share = float((sizes * means**2).sum() / (len(X) * pair.var()))
            if share > max(UNPURE, 2 * noise) + 0.05:
                found.append(
                    f"Pair {names[number]} still holds a curve of one of its features ({share:.0%} of its variance): "
                    "the pair is credited with it; purify the model first."
                )
                break
    for sentence in found:
        warnings.warn(sentence, stacklevel=3)
    return found
