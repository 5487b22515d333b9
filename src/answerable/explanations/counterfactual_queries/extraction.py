"""The first stage: distributions of the concepts given inputs, one by one or together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from answerable.errors import unknown

from .concepts import MOST_LEVELS, BadConcepts
from .models import as_rows, called, flat, probabilities

Floats = npt.NDArray[np.float64]


class Extraction:
    """Extractors of all concepts.

    Parameters
    ----------
    names : of the concepts
    levels : by concept, its values in order
    models : fitted classifiers, by concept, or one of the combinations in ``cells``; or a trained function from inputs
        to probabilities of each concept's second level
    cells : (n_cells, n_concepts) combinations that one model tells apart; None where concepts are extracted one by one
    """

    def __init__(
        self,
        names: Sequence[str],
        levels: Sequence[Floats],
        models: list[Any] | Callable[[Any], Any],
        cells: Floats | None = None,
    ) -> None:
        self.names, self.levels, self.models, self.cells = list(names), list(levels), models, cells

    @classmethod
    def fitted(
        cls,
        extractor: Any,
        X: Any,
        values: Floats,
        names: Sequence[str],
        levels: Sequence[Floats | None],
        *,
        joint: bool,
    ) -> Extraction:
        """Fit what ``ConceptPredictor`` was given as an extractor.

        Parameters
        ----------
        extractor : classifier, mapping of classifiers by concept, trained function, or None
        X : (n, ...) inputs
        values : (n, n_concepts) the concepts
        names, levels : of the concepts; None where one has too many levels
        joint : whether one model tells the combinations apart

        Raises
        ------
        BadConcepts, UnknownName : a concept of too many levels or, for a trained function, of other than two; rows that
            do not match; a model without probabilities
        """
        if callable(extractor) and not hasattr(extractor, "fit"):
            found = cls(names, _of_two(names, levels), extractor)
            found.distributions(as_rows(X)[:2])
            return found
        few = _of_few(names, levels)
        rows = as_rows(X)
        if len(rows) != len(values):
            raise BadConcepts(f"{len(rows)} inputs and {len(values)} rows of concepts", where="X", mend="give one each")
        numbers = flat(rows)
        if joint:
            cells, codes = np.unique(values, axis=0, return_inverse=True)
            return cls(names, few, [_fitted(extractor, numbers, codes.ravel(), "the concepts together")], cells)
        by_name = extractor if isinstance(extractor, Mapping) else {}
        for name in by_name:
            if name not in names:
                raise unknown("concept", str(name), names, where="extractor")
        every = None if by_name else extractor
        models = [
            _fitted(by_name.get(name, every), numbers, np.searchsorted(own, values[:, j]), name)
            for j, (name, own) in enumerate(zip(names, few))
        ]
        return cls(names, few, models)

    def distributions(self, X: Any) -> list[Floats]:
        """By concept its (n, n_levels) distribution; or one (n, n_cells) distribution of all."""
        if not isinstance(self.models, list):
            second = called(self.models, X)
            if second.shape != (len(X), len(self.names)):
                mend = f"give one probability for each of {', '.join(self.names[:6])}"
                raise BadConcepts(f"it gives shape {second.shape}", where="extractor", mend=mend)
            return [np.stack([1 - column, column], axis=1) for column in probabilities(second, "extractor").T]
        numbers = flat(X)
        wanted = getattr(self.models[0], "n_features_in_", numbers.shape[1])
        if numbers.shape[1] != wanted:
            mend = "give inputs of the shape that was fitted"
            raise BadConcepts(f"an input holds {numbers.shape[1]} numbers in place of {wanted}", where="X", mend=mend)
        found = [probabilities(model.predict_proba(numbers), "extractor") for model in self.models]
        if self.cells is not None:
            return found
        return [
            _over_levels(part, model.classes_, len(own)) for part, model, own in zip(found, self.models, self.levels)
        ]

    def by_concept(self, X: Any) -> dict[str, Floats]:
        """By name, the (n, n_levels) distribution of each concept by itself."""
        parts = self.distributions(X)
        if self.cells is None:
            return dict(zip(self.names, parts))
        return {
            name: np.stack([parts[0][:, self.cells[:, j] == level].sum(axis=1) for level in self.levels[j]], axis=1)
            for j, name in enumerate(self.names)
        }

    def probability_of(self, X: Any, values: Floats, columns: Sequence[int]) -> Floats:
        """(n,) probability of the values (n, n_concepts) that some of the concepts have, each row by its own input."""
        parts = self.distributions(X)
        if self.cells is not None:
            same = (values[:, None, columns] == self.cells[None, :, columns]).all(axis=2)
            return np.asarray((parts[0] * same).sum(axis=1))
        found = np.ones(len(values))
        for j in columns:
            found *= parts[j][np.arange(len(values)), np.searchsorted(self.levels[j], values[:, j])]
        return found


def _of_two(names: Sequence[str], levels: Sequence[Floats | None]) -> list[Floats]:
    for name, own in zip(names, levels):
        if own is None or len(own) != 2:
            problem, mend = "it has not two levels", "a trained extractor gives one probability a concept"
            raise BadConcepts(problem, where=f"concept {name}", mend=mend)
    return [own for own in levels if own is not None]


def _of_few(names: Sequence[str], levels: Sequence[Floats | None]) -> list[Floats]:
    for name, own in zip(names, levels):
        if own is None:
            problem, mend = f"it has more than {MOST_LEVELS} levels", "bin it, or give it as it is without inputs"
            raise BadConcepts(problem, where=f"concept {name}", mend=mend)
    return [own for own in levels if own is not None]


def _fitted(model: Any, X: Floats, codes: npt.NDArray[np.int64], name: str) -> Any:
    if model is not None and not (hasattr(model, "predict_proba") and hasattr(model, "fit")):
        problem, mend = f"{type(model).__name__} gives no probabilities", "give a classifier with predict_proba"
        raise BadConcepts(problem, where=f"extractor of {name}", mend=mend)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)) if model is None else clone(model)
    if len(np.unique(codes)) < 2:  # these rows show one level of those that there are
        model = DummyClassifier()
    return model.fit(X, codes)


def _over_levels(part: Floats, classes: npt.NDArray[np.int64], n_levels: int) -> Floats:
    """Probabilities of all levels from those of the levels that an extractor was fitted with."""
    if part.shape[1] == n_levels:
        return part
    found = np.zeros((len(part), n_levels))
    found[:, classes] = part
    return found
