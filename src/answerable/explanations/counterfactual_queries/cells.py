"""A classifier that counts: the share of each label among the training rows with the very same features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

Floats = npt.NDArray[np.float64]


class CellClassifier(ClassifierMixin, BaseEstimator):
    """Shares of labels in each combination of features, drawn towards the overall shares.

    Parameters
    ----------
    prior : rows that the overall shares count for in each combination

    Attributes
    ----------
    classes_ : (n_classes,) labels
    shares_ : by combination, its (n_classes,) shares
    """

    def __init__(self, prior: float = 1.0) -> None:
        self.prior = prior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of a combination without a row it knows the overall shares alone
        return tags

    def fit(self, X: Any, y: Any) -> CellClassifier:
        """Count."""
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        cells, place = np.unique(X + 0.0, axis=0, return_inverse=True)
        counts = np.zeros((len(cells), len(self.classes_)))
        np.add.at(counts, (place.ravel(), codes.ravel()), 1.0)
        self.overall_ = counts.sum(axis=0) / counts.sum()
        counts += self.prior * self.overall_
        self.shares_ = {
            cell.tobytes(): row for cell, row in zip(cells, counts / counts.sum(axis=1, keepdims=True), strict=True)
        }
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(n, n_classes) shares; the overall ones for a combination without a row."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return np.stack([self.shares_.get(row.tobytes(), self.overall_) for row in X + 0.0])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """(n,) likeliest labels."""
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]
