"""Neural additive models (Agarwal et al. 2021): sums of small networks, one for each feature or pair of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from answerable.compiled import in_threads
from answerable.statistics import Floats

from .estimator import BadTable
from .networks import components_of_learners, first_weights, rows_at_once, train
from .solver import Term

Activation = Literal["relu", "exu"]


class NAMEnsemble(ClassifierMixin, BaseEstimator):
    """An ensemble of neural additive models for two classes.

    Parameters
    ----------
    n_learners : neural additive models, each with its own first weights, batches, dropout and best epoch
    hidden : widths of the hidden layers after the first
    first : width of the first layer
    activation : of the first layer: ``relu``, or ``exu``, units ``clip((x - b) exp(w), 0, 1)`` that can jump within a
        small step of the feature; later layers are always ReLU
    pairs : pairs of feature numbers that get a network of two inputs
    epochs : at most
    patience : epochs without a better validation loss after which a learner keeps its best weights
    batch : rows of one step
    learning_rate : of Adam
    output_penalty : on the mean square of the components
    dropout, feature_dropout : shares of hidden units, and of whole components, left out of a step
    validation : share of rows that decide which epoch is kept
    random_state : seed of everything random
    threads : learners trained side by side; no bit depends on it

    Attributes
    ----------
    classes_ : (2,) the labels; the second is what the log-odds are of
    terms_ : features of each network
    intercept_ : mean global bias of the learners

    Notes
    -----
    Settings are those of Clark et al. (NeurIPS 2025), rounded: Adam at 0.02, dropout 0.1 and 0.05, output penalty 0.2.
    Features are standardised inside.
    """

    def __init__(
        self,
        n_learners: int = 100,
        hidden: Sequence[int] = (16, 16, 16),
        *,
        first: int = 16,
        activation: Activation = "relu",
        pairs: Sequence[tuple[int, int]] = (),
        epochs: int = 100,
        patience: int = 50,
        batch: int = 1024,
        learning_rate: float = 0.0208,
        output_penalty: float = 0.2078,
        dropout: float = 0.1,
        feature_dropout: float = 0.05,
        validation: float = 0.1,
        random_state: int = 0,
        threads: int = 1,
    ) -> None:
        self.n_learners = n_learners
        self.hidden = hidden
        self.first = first
        self.activation = activation
        self.pairs = pairs
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.learning_rate = learning_rate
        self.output_penalty = output_penalty
        self.dropout = dropout
        self.feature_dropout = feature_dropout
        self.validation = validation
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> NAMEnsemble:
        """Train all learners.

        Parameters
        ----------
        X : (n_samples, n_features), numbers
        y : (n_samples,) two labels
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self._check_settings(X.shape[1])
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise BadTable(
                f"Only binary classification is supported. The target has {len(self.classes_)} classes",
                where="y",
                mend="set one against the rest",
            )
        if len(self.classes_) < 2:
            raise BadTable(f"every label is {self.classes_[0]}, one class", where="y", mend="both classes are needed")
        self.mean_ = X.mean(axis=0)
        self.scale_ = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        self.terms_: list[Term] = [(j,) for j in range(X.shape[1])] + [tuple(pair) for pair in self.pairs]
        self._train(self._rows(X), (y == self.classes_[1]).astype(np.float32))
        self.intercept_ = float(self.bias_.mean())
        return self

    def components(self, X: Any) -> Floats:
        """(n_samples, n_terms) values of each component in log-odds, averaged over the learners."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        total = np.zeros((len(self.terms_), len(X)))
        components_of_learners(
            self._rows(X), *self._features(), self._widths(), self.activation == "exu", self.weights_,
            rows_at_once(1, self._widths()), total,
        )  # fmt: skip
        return np.ascontiguousarray(total.T) / self.n_learners

    def decision_function(self, X: Any) -> Floats:
        """(n_samples,) log-odds of ``classes_[1]``: the sum of the components and the intercept."""
        return self.components(X).sum(axis=1) + self.intercept_

    def predict(self, X: Any) -> Any:
        """(n_samples,) the likelier class."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _check_settings(self, n_features: int) -> None:
        """Compiled code does not look at what it is given."""
        if self.activation not in ("relu", "exu"):
            raise BadTable(f"it is {self.activation!r}", where="activation", mend="choose relu or exu")
        for name in ("n_learners", "first", "epochs", "patience", "batch", "threads"):
            if not (isinstance(getattr(self, name), int | np.integer) and getattr(self, name) >= 1):
                raise BadTable(f"it is {getattr(self, name)!r}", where=name, mend="give a whole number of at least 1")
        if not all(isinstance(width, int | np.integer) and width >= 1 for width in self.hidden):
            raise BadTable(f"it is {self.hidden!r}", where="hidden", mend="give widths of at least 1")
        for name in ("dropout", "feature_dropout", "validation"):
            if not 0 <= getattr(self, name) < 1:
                raise BadTable(f"it is {getattr(self, name)!r}", where=name, mend="give at least 0, less than 1")
        for name, least in (("learning_rate", "above 0"), ("output_penalty", "of at least 0")):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0 and (value or least != "above 0")):
                raise BadTable(f"it is {value!r}", where=name, mend=f"give a number {least}")
        for pair in self.pairs:
            if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= feature < n_features for feature in pair):
                mend = f"give two numbers of features, each from 0 to {n_features - 1}"
                raise BadTable(f"one of them is {tuple(pair)!r}", where="pairs", mend=mend)

    def _rows(self, X: Floats) -> Any:
        """(n_features, n_samples) float32, standardised."""
        return np.ascontiguousarray(((X - self.mean_) / self.scale_).T, dtype=np.float32)

    def _widths(self) -> Any:
        return np.array([self.first, *self.hidden], dtype=np.int64)

    def _features(self) -> tuple[Any, Any]:
        """First and second feature of each network, the second -1 where there is none."""
        ends = [(term[0], term[1] if len(term) > 1 else -1) for term in self.terms_]
        first, second = np.array(ends, dtype=np.int64).T.copy()
        return first, second

    def _train(self, rows: Any, target: Any) -> None:
        """Train every learner by itself, from a stream of random numbers of its own."""
        split, *streams = np.random.SeedSequence(self.random_state).spawn(self.n_learners + 1)
        order = np.random.default_rng(split).permutation(len(target))
        held = round(self.validation * len(target))
        kept, watched = order[held:], order[:held] if held else order
        widths, steep, (firsts, seconds) = self._widths(), self.activation == "exu", self._features()
        begin = [first_weights(widths, seconds >= 0, steep=steep, rng=np.random.default_rng(s)) for s in streams]
        self.weights_ = np.array(begin)
        share = float(np.clip(target.mean(), 1e-4, 1 - 1e-4))
        bias = np.full((self.n_learners, 1), np.log(share / (1 - share)), dtype=np.float32)
        cuts = np.array([_of_256(self.dropout), _of_256(self.feature_dropout)])
        width = rows_at_once(len(self.terms_), widths)

        def some(learners: Any) -> None:
            for learner in learners:
                train(
                    rows, target, kept, watched, firsts, seconds, widths, steep, self.weights_[learner], bias[learner],
                    cuts, float(self.output_penalty), float(self.learning_rate), int(self.batch), int(self.epochs),
                    int(self.patience), int(streams[learner].generate_state(1)[0]), width,
                )  # fmt: skip

        in_threads(some, range(self.n_learners), self.threads)
        self.bias_ = bias.ravel().astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _of_256(share: float) -> int:
    """How many of 256 a share is: one random byte decides on a unit."""
    return max(1, round(256 * share)) if share > 0 else 0
