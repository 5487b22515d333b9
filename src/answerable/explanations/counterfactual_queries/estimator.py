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
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from answerable.errors import unknown
from answerable.subjects.causal_graph import load

from . import api, closed_form
from .concepts import MOST_LEVELS, BadConcepts, Coding, as_values, encoded, learned, listed, soft_columns, tell_the_same
from .units import CHUNK, Units, grid

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
        self.extractors_: Any = None
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
        check_classification_targets(y)
        self._check_lengths(values, y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise BadConcepts("the label has only one class", where="y", mend="give rows of at least two classes")
        self.levels_ = self._levels(values if coding is None else None)
        self._training = values
        self._fit_classifier(y)
        if concepts is not None and X is not None:
            self._fit_extractors(X, values)
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

    def _fit_extractors(self, X: Any, values: Floats) -> None:
        if callable(self.extractor) and not hasattr(self.extractor, "fit"):
            self.extractors_ = self.extractor
            self._check_trained(_as_rows(X)[:2])
            return
        for name, levels in zip(self.concepts_, self.levels_):
            if levels is None:
                problem, mend = f"it has more than {MOST_LEVELS} levels", "bin it, or give it as it is without inputs"
                raise BadConcepts(problem, where=f"concept {name}", mend=mend)
        rows = _as_rows(X)
        if len(rows) != len(values):
            raise BadConcepts(f"{len(rows)} inputs and {len(values)} rows of concepts", where="X", mend="give one each")
        flat = _flat(rows)
        if self.joint:
            self._cells, codes = np.unique(values, axis=0, return_inverse=True)
            self.extractors_ = [self._fitted_extractor(self.extractor, flat, codes.ravel(), "the concepts together")]
            return
        by_name = self.extractor if isinstance(self.extractor, Mapping) else {}
        for name in by_name:
            if name not in self.concepts_:
                raise unknown("concept", str(name), self.concepts_, where="extractor")
        every = None if by_name else self.extractor
        self.extractors_ = [
            self._fitted_extractor(by_name.get(name, every), flat, np.searchsorted(levels, values[:, j]), name)
            for j, (name, levels) in enumerate(zip(self.concepts_, self.levels_))
            if levels is not None
        ]

    def _fitted_extractor(self, model: Any, X: Floats, codes: npt.NDArray[np.int64], name: str) -> Any:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)) if model is None else clone(model)
        if not hasattr(model, "predict_proba"):
            problem, mend = f"{type(model).__name__} gives no probabilities", "give a classifier with predict_proba"
            raise BadConcepts(problem, where=f"extractor of {name}", mend=mend)
        if len(np.unique(codes)) < 2:  # these rows show one level of those that there are
            model = DummyClassifier()
        return model.fit(X, codes)

    def _check_trained(self, X: Any) -> None:
        for name, levels in zip(self.concepts_, self.levels_):
            if levels is None or len(levels) != 2:
                problem, mend = "it has not two levels", "a trained extractor gives one probability a concept"
                raise BadConcepts(problem, where=f"concept {name}", mend=mend)
        self._trained(X)

    def _trained(self, X: Any) -> Floats:
        found = _called(self.extractors_, X)
        if found.shape != (len(X), len(self.concepts_)):
            mend = f"give one probability for each of {', '.join(self.concepts_[:6])}"
            raise BadConcepts(f"it gives shape {found.shape}", where="extractor", mend=mend)
        return _probabilities(found, "extractor")

    # Predicting

    def predict_proba(self, X: Any) -> Floats:
        """(n, n_classes) probabilities: the classifier's, averaged over what the extractor says."""
        check_is_fitted(self)
        if self.extractors_ is None:
            return self._outputs(self._given(X)[:, self._columns])
        inputs = _as_rows(X)
        if not self.features_:
            return self._outputs(np.empty((len(inputs), 0)))
        parts = self._extracted(inputs)
        if self.joint:
            return parts[0] @ self._outputs(self._cells[:, self._columns])
        needed = [parts[j] for j in self._columns]
        levels = [self._levels_of(j) for j in self._columns]
        if math.prod(map(len, levels)) > MOST_CELLS:
            return self._drawn_outputs(needed, levels)
        outputs = self._outputs(grid(levels))
        shape = [len(found) for found in levels]
        columns = [closed_form.expectation(needed, column.reshape(shape)) for column in outputs.T]
        return np.stack(columns, axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """(n,) likeliest labels."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def concept_proba(self, X: Any) -> dict[str, Floats]:
        """By concept, the (n, n_levels) distribution that the extractor gives."""
        check_is_fitted(self)
        if self.extractors_ is None:
            raise BadConcepts("the concepts are given, nothing is extracted", where="extractor", mend="fit with inputs")
        parts = self._extracted(_as_rows(X))
        if not self.joint:
            return dict(zip(self.concepts_, parts))
        return {
            name: np.stack(
                [parts[0][:, self._cells[:, j] == level].sum(axis=1) for level in self._levels_of(j)], axis=1
            )
            for j, name in enumerate(self.concepts_)
        }

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
        self.monte_carlo_error_ = 0.0
        if self.extractors_ is None:
            return units.ends(self._given(X))
        parts = self._extracted(_as_rows(X))
        if self.joint:
            low, high = units.ends(self._cells)
            return parts[0] @ low, parts[0] @ high
        needed = units.needed
        levels = [self._levels_of(j) for j in needed]
        if not needed:
            low, high = units.ends(np.zeros((1, len(self.concepts_))))
            return np.repeat(low, len(parts[0])), np.repeat(high, len(parts[0]))
        if math.prod(map(len, levels)) > MOST_CELLS:
            return self._drawn_ends([parts[j] for j in needed], levels, units)
        cells = np.zeros((math.prod(map(len, levels)), len(self.concepts_)))
        cells[:, needed] = grid(levels)
        shape = [len(found) for found in levels]
        low, high = (
            closed_form.expectation([parts[j] for j in needed], end.reshape(shape)) for end in units.ends(cells)
        )
        return low, np.maximum(low, high)

    def _drawn_ends(self, parts: list[Floats], levels: list[Floats], units: Units) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(self.random_state)
        n = len(parts[0])
        low, high, worst = np.empty(n), np.empty(n), 0.0
        rows = max(1, CHUNK // (self.n_draws * len(levels)))
        for start in range(0, n, rows):
            codes = closed_form.draws([part[start : start + rows] for part in parts], self.n_draws, rng)
            values = np.zeros((codes.shape[0] * codes.shape[1], len(self.concepts_)))
            for k, j in enumerate(units.needed):
                values[:, j] = levels[k][codes[:, :, k].ravel()]
            ends = [end.reshape(codes.shape[:2]) for end in units.ends(values)]
            low[start : start + rows], high[start : start + rows] = (end.mean(axis=1) for end in ends)
            worst = max(worst, *(float(end.std(axis=1, ddof=1).max()) for end in ends))
        self.monte_carlo_error_ = worst / math.sqrt(self.n_draws)
        return low, high

    def _drawn_outputs(self, parts: list[Floats], levels: list[Floats]) -> Floats:
        rng = np.random.default_rng(self.random_state)
        found = np.empty((len(parts[0]), len(self.classes_)))
        rows = max(1, CHUNK // (self.n_draws * len(levels)))
        for start in range(0, len(found), rows):
            codes = closed_form.draws([part[start : start + rows] for part in parts], self.n_draws, rng)
            values = np.stack([levels[k][codes[:, :, k]] for k in range(len(levels))], axis=-1)
            outputs = self._outputs(values.reshape(-1, len(levels)))
            found[start : start + rows] = outputs.reshape(*codes.shape[:2], -1).mean(axis=1)
        return found

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

    def probability_of(self, X: Any, concepts: Any) -> Floats:
        """(n,) probability that the extractor gives the features the values that they have in a table."""
        check_is_fitted(self)
        if self.coding_ is None:
            raise BadConcepts("the concepts are given, nothing is extracted", where="extractor", mend="fit with inputs")
        values = encoded(concepts, self.coding_)
        rows = np.arange(len(values))
        parts = self._extracted(_as_rows(X))
        if self.joint:
            same = (values[:, None, self._columns] == self._cells[None, :, self._columns]).all(axis=2)
            return np.asarray((parts[0] * same).sum(axis=1))
        found = np.ones(len(values))
        for j in self._columns:
            found *= parts[j][rows, np.searchsorted(self._levels_of(j), values[:, j])]
        return found

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

    def _extracted(self, X: Any) -> list[Floats]:
        """By concept its (n, n_levels) distribution; or one (n, n_cells) distribution of all."""
        if not isinstance(self.extractors_, list):
            second = self._trained(X)
            return [np.stack([1 - column, column], axis=1) for column in second.T]
        flat = _flat(X)
        found = [_probabilities(model.predict_proba(flat), "extractor") for model in self.extractors_]
        if self.joint:
            return found
        return [
            _over_levels(part, model.classes_, len(self._levels_of(j)))
            for j, (part, model) in enumerate(zip(found, self.extractors_))
        ]

    def _outputs(self, values: Floats) -> Floats:
        """(n, n_classes) outputs of the classifier for the features' values."""
        if self.classifier_ is None:
            return np.full((len(values), len(self.classes_)), 1 / len(self.classes_))
        if hasattr(self.classifier_, "predict_proba"):
            return np.asarray(self.classifier_.predict_proba(values), np.float64)
        found = _called(self.classifier_, values)
        if found.ndim == 1 or found.shape[1] == 1:
            second = found.reshape(-1)
            found = np.stack([1 - second, second], axis=1)
        if found.shape != (len(values), len(self.classes_)):
            mend = f"give (n,) or (n, {len(self.classes_)}) probabilities"
            raise BadConcepts(f"it gives shape {found.shape}", where="classifier", mend=mend)
        return _probabilities(found, "classifier")

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
        if target not in self.classes_:
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
        if self.extractors_ is None:
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


def _refusal(verdict: api.Admissibility) -> NotAnswerable:
    path, moves = " -> ".join(verdict.paths[0]), "may move" if verdict.under == "some" else "moves"
    problem = f"it {moves} {verdict.witnesses[0]}, which the model looks at ({path})"
    mend = f"ask of {', '.join(verdict.repaired)} together, leave the feature out, or take the interval"
    return NotAnswerable(problem, where="query", mend=mend)


def _as_rows(X: Any) -> Any:
    """Inputs as something with a length and rows: arrays, tensors and dataframes as they are, lists as arrays."""
    if hasattr(X, "shape"):
        return X
    return np.asarray([np.asarray(entry) for entry in X])


def _flat(X: Any) -> Floats:
    """(n, n_numbers) float64 of (n, ...) inputs."""
    array = np.asarray(X, np.float64)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))[0])
        raise BadConcepts("an input is missing or not finite", where=f"X, row {row + 1}", mend="mend or drop the row")
    return array.reshape(len(array), -1)


def _over_levels(part: Floats, classes: npt.NDArray[np.int64], n_levels: int) -> Floats:
    """Probabilities of all levels from those of the levels that an extractor was fitted with."""
    if part.shape[1] == n_levels:
        return part
    found = np.zeros((len(part), n_levels))
    found[:, classes] = part
    return found


def _called(model: Any, X: Any) -> Floats:
    """What a trained function or torch module says."""
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        with torch.no_grad():
            return np.asarray(model(torch.as_tensor(np.asarray(X, np.float32))).cpu(), np.float64)
    return np.asarray(model(X), np.float64)


def _probabilities(found: Any, where: str) -> Floats:
    array = np.asarray(found, np.float64)
    if not (np.isfinite(array).all() and (array >= -1e-6).all() and (array <= 1 + 1e-6).all()):
        worst = array.ravel()[np.argmax(np.abs(np.nan_to_num(array, nan=np.inf).ravel() - 0.5))]
        raise BadConcepts(f"it gives {worst:g}, no probability", where=where, mend="end it with a sigmoid or softmax")
    return np.clip(array, 0.0, 1.0)
