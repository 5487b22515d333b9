"""A predictor through concepts: an extractor P(T | X), a classifier P(Y | T), and answers to what-if questions.

The classifier is fitted on the concepts' labels, never on what the extractor says: a soft concept carries more of the
input than the concept, and the model would no longer be one that the theorems speak of.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from answerable.errors import unknown
from answerable.statistics.inputs import count_of
from answerable.subjects.causal_graph import load

from . import api, closed_form
from .concepts import MOST_LEVELS, BadConcepts, Coding, as_values, encoded, learned, listed, soft_columns, tell_the_same
from .extraction import Extraction
from .models import as_rows, called, probabilities
from .units import Units, grid

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

MOST_CELLS = 2**16  # combinations of concepts that are summed over; more are drawn
SAME = 1e-12  # ends of an interval that are one point


class NotAnswerable(BadConcepts):
    """A query that the model cannot answer: names the concept that it moves, the path, and the nearest query."""


class HybridWarning(UserWarning):
    """The classifier sees more than concepts, so that no what-if question is answerable in general."""


class UnseenWarning(UserWarning):
    """An answer rests on combinations of concepts that were never seen in training."""


class ConceptPredictor(ClassifierMixin, BaseEstimator):
    """Predict a label from named concepts, and answer what it had been, had some of them been otherwise.

    Parameters
    ----------
    features : concepts that the classifier predicts from; every concept for None
    extractor : scikit-learn classifier that is fitted for each concept (logistic regression for None), a mapping of
        such by concept, or a trained function or torch module from inputs to an (n, n_concepts) array of probabilities
        of each concept's second level
    classifier : scikit-learn classifier of the label from the features' values (logistic regression for None), or a
        trained function or torch module from (n, n_features) values to (n,) probabilities of the second class
    joint : extract the concepts together, one class for each observed combination, in place of one by one; the product
        of single extractors is exact only where concepts are independent given the input
    n_draws : draws for each row where combinations are too many to sum over (more than 65,536)
    random_state : seed of these draws

    Attributes
    ----------
    classes_ : (n_classes,) labels
    coding_ : names and levels of the concepts; None where X held numbers without names
    concepts_, features_ : names of all concepts, and of those that are features
    extractors_ : the fitted extractors, or None where concepts are given
    classifier_ : the fitted classifier
    monte_carlo_error_ : largest standard error of the last answer's draws; 0 where it was summed

    Examples
    --------
    >>> table = {"S": [0, 1, 0, 1, 1, 0], "C": [0, 1, 0, 1, 0, 1]}
    >>> model = ConceptPredictor(["S"]).fit(None, [0, 1, 0, 1, 1, 1], concepts=table)
    >>> model.counterfactual(table, {"S": 0}, graph="S -> C").columns
    ['row', 'factual', 'prob', 'lower', 'upper', 'identified']
    """

    def __init__(
        self,
        features: Sequence[str] | None = None,
        extractor: Any = None,
        classifier: Any = None,
        *,
        joint: bool = False,
        n_draws: int = 2000,
        random_state: int = 0,
    ) -> None:
        self.features = features
        self.extractor = extractor
        self.classifier = classifier
        self.joint = joint
        self.n_draws = n_draws
        self.random_state = random_state

    # Fitting

    def fit(self, X: Any, y: Any, concepts: Any = None, *, coding: Coding | None = None) -> ConceptPredictor:
        """Fit extractor and classifier.

        Parameters
        ----------
        X : (n, ...) inputs, for instance images; or, without ``concepts``, the (n, d) concepts themselves; None where
            ``concepts`` are the inputs
        y : (n,) labels
        concepts : table of the concepts' labels: a dataframe, a dictionary of columns, or an (n, d) array
        coding : levels of the concepts, where these rows are a part of those that show them; learned here for None

        Raises
        ------
        BadConcepts : a missing entry, a concept of one level or equal to the label, -1/1 beside 0/1, no probabilities
        """
        self._extraction: Extraction | None = None
        count_of(self.n_draws, "n_draws", least=2)
        if concepts is None and X is None:
            raise BadConcepts("neither inputs nor concepts are given", where="X", mend="give a table of concepts")
        if concepts is None:
            X, y = validate_data(self, X, y)
            self.coding_: Coding | None = None
            names = [str(name) for name in getattr(self, "feature_names_in_", [])]
            self.concepts_ = names or [f"x{j}" for j in range(X.shape[1])]
            values = np.asarray(X, np.float64)
            y = column_or_1d(y)
        else:
            y = column_or_1d(np.asarray(y))
            self.coding_ = learned(concepts) if coding is None else coding
            self.concepts_ = list(self.coding_.names)
            values = encoded(concepts, self.coding_)
            _check_labels(y)
        check_classification_targets(y)
        self._check_lengths(values, y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise BadConcepts("the label has only one class", where="y", mend="give rows of at least two classes")
        self.levels_ = self._levels(values if coding is None else None)
        self._training = values
        self._fit_classifier(y)
        if concepts is not None and X is not None:
            names, levels = self.concepts_, self.levels_
            self._extraction = Extraction.fitted(self.extractor, X, values, names, levels, joint=self.joint)
        self.extractors_ = self._extraction.models if self._extraction else None
        return self

    def with_features(self, features: Sequence[str], y: Any) -> ConceptPredictor:
        """The same fitted extractors under a classifier of other features.

        Parameters
        ----------
        features : concepts that it predicts from
        y : (n,) the labels that this one was fitted with

        Raises
        ------
        BadConcepts, UnknownName : as ``fit``
        """
        check_is_fitted(self)
        other = copy.copy(self).set_params(features=list(features))
        other._fit_classifier(column_or_1d(np.asarray(y)))
        return other

    def _fit_classifier(self, y: npt.NDArray[Any]) -> None:
        values = self._training
        self.features_ = self._chosen()
        if self.coding_ is not None:
            self._check_concepts(values, y)
        self._columns = [self.concepts_.index(name) for name in self.features_]
        self.classifier_ = self._fitted_classifier(values[:, self._columns], y)
        self._seen = self._cells_of(values[:, self._columns])

    def _chosen(self) -> list[str]:
        if self.features is None:
            return list(self.concepts_)
        chosen = list(dict.fromkeys(self.features))
        for name in chosen:
            if name == api.INPUT and name not in self.concepts_:
                mend = "leave it out, or ask admissible(..., sees_input=True) what that would mean"
                raise BadConcepts("the input itself is no concept", where="features", mend=mend)
            if name not in self.concepts_:
                raise unknown("concept", str(name), self.concepts_, where="features")
        return chosen

    def _check_lengths(self, values: Floats, y: npt.NDArray[Any]) -> None:
        if len(values) != len(y):
            raise BadConcepts(f"{len(values)} rows of concepts and {len(y)} labels", where="y", mend="give one a row")

    def _check_concepts(self, values: Floats, y: npt.NDArray[Any]) -> None:
        for name in self.features_:
            if tell_the_same(values[:, self.concepts_.index(name)], y):
                raise BadConcepts(
                    "it is the label itself", where=f"concept {name}", mend="leave it out of the features"
                )
        soft = self.soft_features()
        if soft:
            said = (
                f"{', '.join(soft)} hold probabilities, not concepts: the model is a hybrid, not answerable in general"
            )
            warnings.warn(said, HybridWarning, stacklevel=4)

    def soft_features(self) -> list[str]:
        """The features that hold fractions between 0 and 1, as probabilities do in place of concepts."""
        soft = soft_columns(self.coding_) if self.coding_ is not None else []
        return [name for name in soft if name in self.features_]

    def _levels(self, values: Floats | None) -> list[Floats | None]:
        """By concept, its values in order, of rows or of the coding; None where it has too many to go through."""
        if values is None:
            assert self.coding_ is not None
            found = [self.coding_.values(j) for j in range(len(self.coding_.names))]
        else:
            found = [np.unique(column) for column in values.T]
        return [levels if len(levels) <= MOST_LEVELS else None for levels in found]

    def _fitted_classifier(self, values: Floats, y: npt.NDArray[Any]) -> Any:
        if self.classifier is not None and not hasattr(self.classifier, "fit"):
            if not callable(self.classifier):
                problem = f"a {type(self.classifier).__name__} is no classifier"
                raise BadConcepts(problem, where="classifier", mend="give a scikit-learn classifier or a function")
            return self.classifier
        if not self.features_:
            return None
        model = clone(self.classifier) if self.classifier is not None else LogisticRegression(max_iter=1000)
        if not hasattr(model, "predict_proba"):
            problem = f"{type(model).__name__} gives no probabilities"
            raise BadConcepts(problem, where="classifier", mend="give a classifier with predict_proba")
        return model.fit(values, y)

    # Predicting

    def predict_proba(self, X: Any) -> Floats:
        """(n, n_classes) probabilities: the classifier's, averaged over what the extractor says."""
        check_is_fitted(self)
        if self._extraction is None:
            return self._outputs(self._given(X)[:, self._columns])
        inputs = as_rows(X)
        if not self.features_:
            return self._outputs(np.empty((len(inputs), 0)))
        parts = self._extraction.distributions(inputs)
        if self._extraction.cells is not None:
            return parts[0] @ self._outputs(self._extraction.cells[:, self._columns])
        needed = [parts[j] for j in self._columns]
        levels = [self._levels_of(j) for j in self._columns]
        if math.prod(map(len, levels)) > MOST_CELLS:
            return closed_form.drawn(needed, levels, self._outputs, self.n_draws, self.random_state)[0]
        outputs = self._outputs(grid(levels))
        shape = [len(found) for found in levels]
        columns = [closed_form.expectation(needed, column.reshape(shape)) for column in outputs.T]
        return np.stack(columns, axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """(n,) likeliest labels."""
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def concept_proba(self, X: Any) -> dict[str, Floats]:
        """By concept, the (n, n_levels) distribution that the extractor gives."""
        return self._extracting.by_concept(as_rows(X))

    def probability_of(self, X: Any, concepts: Any) -> Floats:
        """(n,) probability that the extractor gives the features the values that they have in a table."""
        extraction, coding = self._extracting, self.coding_
        assert coding is not None
        return extraction.probability_of(as_rows(X), encoded(concepts, coding), self._columns)

    @property
    def _extracting(self) -> Extraction:
        """The extractors.

        Raises
        ------
        BadConcepts : there are none
        """
        check_is_fitted(self)
        if self._extraction is None:
            raise BadConcepts("the concepts are given, nothing is extracted", where="extractor", mend="fit with inputs")
        return self._extraction

    def counterfactual(
        self,
        X: Any,
        query: Mapping[str, Any],
        *,
        graph: Any,
        on_unanswerable: Literal["raise", "bounds"] = "raise",
        target: Any = None,
        independent: Iterable[str] = (),
    ) -> pl.DataFrame:
        """What the model had predicted, had the queried concepts been as the query says.

        Parameters
        ----------
        X : as for ``predict_proba``
        query : level by concept
        graph : a causal graph of the concepts
        on_unanswerable : "raise", or "bounds" for the sharp interval
        target : the label whose probability is answered; the last of ``classes_`` for None
        independent : concepts that share no hidden cause with anything, the input included; the interval then shrinks
            where such a concept is the only one that the query moves

        Returns
        -------
        row (from 1), factual, prob (missing where not identified), lower, upper, identified

        Raises
        ------
        NotAnswerable : the query is not answerable and ``on_unanswerable`` is "raise"
        UnknownName, BadConcepts : a concept or level that was never observed, or one that the graph does not have
        """
        import polars as pl

        check_is_fitted(self)
        if on_unanswerable not in ("raise", "bounds"):
            raise BadConcepts(f"it is {on_unanswerable!r}", where="on_unanswerable", mend="say raise or bounds")
        if not hasattr(query, "keys"):
            problem = f"a {type(query).__name__} is no query"
            raise BadConcepts(problem, where="query", mend='give levels by concept, {"Smiling": 0}')
        found = load(graph)
        asked = api.queried(found, list(query))
        values = self._values(query)
        missing = [name for name in self.features_ if name not in found]
        if missing:
            raise unknown("concept", missing[0], found.names, where="causal graph")
        verdict = api.admissible(found, self.features_, asked)
        if not verdict.answerable and on_unanswerable == "raise":
            raise _refusal(verdict)
        place = self._class(target)
        plan = api.planned(found, self.features_, asked)
        evaluate = functools.partial(self._output_of, place)
        units = Units(plan, values, self.concepts_, self._columns, self._levels_of, evaluate)
        units.use_independent(list(independent), found, self._training)
        low, high = self._ends(X, units)
        point = high - low <= SAME
        middle = (low + high) / 2
        factual = self.predict_proba(X)[:, place]
        self._warn_of_unseen(X, values)
        return pl.DataFrame(
            {
                "row": np.arange(1, len(low) + 1),
                "factual": factual,
                "prob": pl.Series([float(p) if one else None for p, one in zip(middle, point)], dtype=pl.Float64),
                "lower": low,
                "upper": high,
                "identified": point,
            }
        )

    def _ends(self, X: Any, units: Units) -> tuple[Floats, Floats]:
        """(n,) and (n,) least and largest answer, averaged over what the extractor says."""
        self.monte_carlo_error_ = 0.0
        if self._extraction is None:
            return units.ends(self._given(X))
        parts = self._extraction.distributions(as_rows(X))
        if self._extraction.cells is not None:
            low, high = units.ends(self._extraction.cells)
            return parts[0] @ low, parts[0] @ high
        needed = units.needed
        levels = [self._levels_of(j) for j in needed]

        def ends_of(values: Floats) -> Floats:
            whole = np.zeros((len(values), len(self.concepts_)))
            whole[:, needed] = values
            return np.stack(units.ends(whole), axis=1)

        if not needed:
            low, high = ends_of(np.empty((1, 0))).T
            return np.repeat(low, len(parts[0])), np.repeat(high, len(parts[0]))
        own = [parts[j] for j in needed]
        if math.prod(map(len, levels)) > MOST_CELLS:
            means, self.monte_carlo_error_ = closed_form.drawn(own, levels, ends_of, self.n_draws, self.random_state)
            return means[:, 0], means[:, 1]
        shape = [len(found) for found in levels]
        low, high = (closed_form.expectation(own, end.reshape(shape)) for end in ends_of(grid(levels)).T)
        return low, np.maximum(low, high)

    def naive(self, X: Any, query: Mapping[str, Any], *, target: Any = None) -> Floats:
        """What overwriting the queried concepts and predicting again gives; the answer where the query is answerable.

        Returns
        -------
        (n,) float64
        """
        check_is_fitted(self)
        evaluate = functools.partial(self._output_of, self._class(target))
        nothing = api.Plan([], [], [])
        units = Units(nothing, self._values(query), self.concepts_, self._columns, self._levels_of, evaluate)
        return self._ends(X, units)[0]

    def output_range(self, target: Any = None) -> tuple[float, float]:
        """Smallest and largest output over combinations of the features, those seen in training where they are many."""
        check_is_fitted(self)
        levels = [self.levels_[j] for j in self._columns]
        listed_all = [found for found in levels if found is not None]
        few = len(listed_all) == len(levels) and math.prod(map(len, listed_all)) <= MOST_CELLS
        cells = grid(listed_all) if few else np.unique(self._training[:, self._columns], axis=0)
        outputs = self._output_of(self._class(target), cells)
        return float(outputs.min()), float(outputs.max())

    # What both need

    def _given(self, X: Any) -> Floats:
        """The concepts as numbers, where they are given."""
        if self.coding_ is None:
            return np.asarray(validate_data(self, X, reset=False), np.float64)
        return encoded(X, self.coding_)

    def _outputs(self, values: Floats) -> Floats:
        """(n, n_classes) outputs of the classifier for the features' values."""
        if self.classifier_ is None:
            return np.full((len(values), len(self.classes_)), 1 / len(self.classes_))
        if hasattr(self.classifier_, "predict_proba"):
            return np.asarray(self.classifier_.predict_proba(values), np.float64)
        found = called(self.classifier_, values)
        if found.shape in ((len(values),), (len(values), 1)):
            second = found.reshape(-1)
            found = np.stack([1 - second, second], axis=1)
        if found.shape != (len(values), len(self.classes_)):
            mend = f"give (n,) or (n, {len(self.classes_)}) probabilities"
            raise BadConcepts(f"it gives shape {found.shape}", where="classifier", mend=mend)
        return probabilities(found, "classifier")

    def _output_of(self, place: int, values: Floats) -> Floats:
        """(n,) outputs for one class."""
        return self._outputs(values)[:, place]

    def _levels_of(self, column: int) -> Floats:
        levels = self.levels_[column]
        if levels is None:
            problem, mend = f"it has more than {MOST_LEVELS} levels and would move", "bin it"
            raise BadConcepts(problem, where=f"concept {self.concepts_[column]}", mend=mend)
        return levels

    def _values(self, query: Mapping[str, Any]) -> dict[int, float]:
        """The query by column of the concepts."""
        if self.coding_ is not None:
            return {self.concepts_.index(name): value for name, value in as_values(query, self.coding_).items()}
        found = {}
        for name, level in query.items():
            if name not in self.concepts_:
                raise unknown("concept", str(name), self.concepts_, where="query")
            column = self.concepts_.index(name)
            levels = self.levels_[column]
            if levels is not None and level not in levels:
                mend = f"give {listed(levels.tolist())}"
                raise BadConcepts(f"{level!r} was never observed", where=f"concept {name}", mend=mend)
            found[column] = float(level)
        return found

    def _class(self, target: Any) -> int:
        if target is None:
            return len(self.classes_) - 1
        if np.ndim(target) or target not in self.classes_:
            mend = f"give {listed(self.classes_.tolist())}"
            raise BadConcepts(f"there is no class {target!r}", where="target", mend=mend)
        return int(np.flatnonzero(self.classes_ == target)[0])

    def _cells_of(self, values: Floats) -> set[bytes] | None:
        """The combinations of features seen in training; None where one of them is continuous."""
        if any(self.levels_[j] is None for j in self._columns):
            return None
        return {row.tobytes() for row in np.unique(values, axis=0) + 0.0}

    def _warn_of_unseen(self, X: Any, query: Mapping[int, float]) -> None:
        """Count the rows whose combination of features, the query set, was never seen in training."""
        if self._seen is None or not self.features_:
            return
        if self._extraction is None:
            values = self._given(X)[:, self._columns]
        else:
            likely = self.concept_proba(X)
            values = np.stack(
                [self._levels_of(j)[likely[self.concepts_[j]].argmax(axis=1)] for j in self._columns], axis=1
            )
        for place, column in enumerate(self._columns):
            if column in query:
                values[:, place] = query[column]
        cells, counts = np.unique(values + 0.0, axis=0, return_counts=True)
        unseen = [count for cell, count in zip(cells, counts) if cell.tobytes() not in self._seen]
        if unseen:
            said = f"{sum(unseen)} of {len(values)} answers rest on {len(unseen)} combinations never seen in training"
            warnings.warn(said, UnseenWarning, stacklevel=3)


def _check_labels(y: npt.NDArray[Any]) -> None:
    missing = np.array([label is None or label != label for label in y.tolist()])
    if missing.any():
        row = int(np.argmax(missing)) + 1
        raise BadConcepts("the label is missing", where=f"y, row {row}", mend="mend the entry or drop the row")


def _refusal(verdict: api.Admissibility) -> NotAnswerable:
    path, moves = " -> ".join(verdict.paths[0]), "may move" if verdict.under == "some" else "moves"
    problem = f"it {moves} {verdict.witnesses[0]}, which the model looks at ({path})"
    mend = f"ask of {', '.join(verdict.repaired)} together, leave the feature out, or take the interval"
    return NotAnswerable(problem, where="query", mend=mend)
