"""ErrorTracer: fitted on the errors of models of known families, asked of suspects; a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin

from answerable.errors import BadInput, unknown
from answerable.statistics import wilson_interval

from .deciding import NONE, UNDECIDED, Finding, Level, found_by_calibration, found_by_threshold, left_out_words
from .solver import Growth, candidates, dataset_accuracies
from .tracing import (
    SCORES,
    Each,
    Reference,
    Settings,
    Validation,
    best_family,
    chance_p_values,
    curve_of,
    leads,
    margins,
    rates_of,
    refer,
    scores_of,
    validate,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Score = Literal["error_trace", "likelihood", "cosine"]
DIMENSIONS = 128  # of the embedding made from texts


class ErrorTracer(ClassifierMixin, BaseEstimator):
    """From which family a model descends, told by its errors (ErrorTrace; Zang and others, NeurIPS 2025).

    Parameters
    ----------
    n_points : items in each family's graph, at most
    start, end : sizes between which an error space shrinks
    min_weight : least weight of an item in the graph, from 0 to 1
    growth : "paper" (default), "half" as in the authors' scripts, or "none" for no graph
    score : what decides: "error_trace" (default), "likelihood" or "cosine"
    tau : "calibrate" (default) decides by what left-out models and left-out families get; a number calls a suspect
        "none" whose margin is smaller, as the paper does; None always names a family
    alpha : level of the calibrated decision
    least_evidence : answers to items of error spaces that a suspect must have given
    n_jobs : threads that leave models out; nothing depends on it

    Attributes
    ----------
    classes_ : (F,) names of the families, sorted
    reference_ : spaces and profiles of the families
    validation_ : what left-out models and families get; None before ``tau="calibrate"`` or ``cross_validate``
    evidence_ : items that stand in any error space
    n_features_in_ : number of items

    Notes
    -----
    Deterministic. Rows are models and columns items; entries are 1 for a wrong answer, 0 for a right one, anything
    between for one minus a score, NaN for none. scikit-learn's ``check_estimator`` does not apply: it fits on columns
    of any value.
    """

    def __init__(
        self,
        n_points: int = 2000,
        start: int = 1200,
        end: int = 600,
        min_weight: float = 0.05,
        growth: Growth = "paper",
        score: Score = "error_trace",
        tau: float | Literal["calibrate"] | None = "calibrate",
        alpha: float = 0.05,
        least_evidence: int = 500,
        n_jobs: int = 1,
    ) -> None:
        self.n_points = n_points
        self.start = start
        self.end = end
        self.min_weight = min_weight
        self.growth = growth
        self.score = score
        self.tau = tau
        self.alpha = alpha
        self.least_evidence = least_evidence
        self.n_jobs = n_jobs

    def fit(
        self,
        X: npt.ArrayLike,
        y: Sequence[str],
        *,
        datasets: Sequence[Any] | None = None,
        embeddings: npt.ArrayLike | None = None,
        texts: Sequence[str] | None = None,
        accuracy: npt.ArrayLike | None = None,
        each: Each | None = None,
    ) -> ErrorTracer:
        """Make the error space of every family, and what left-out models get.

        Parameters
        ----------
        X : (M, N) errors of the reference models
        y : (M,) family of each
        datasets : (N,) data set of each item; one by default
        embeddings : (N, d) of the items' texts; made from ``texts`` by TF-IDF and 128 singular vectors by default;
            without either there is no graph
        texts : (N,) questions
        accuracy : (M, K) accuracy of each model on each data set, in the order of the sorted data sets; from ``X`` by
            default
        each : how models are left out, one after another; over ``n_jobs`` threads by default

        Raises
        ------
        BadInput : fewer than two families, an entry outside [0, 1], or lengths that do not fit
        """
        self._check_settings()
        errors = _checked(X)
        families = np.asarray(y, dtype=str)
        _check_lengths(errors, families, datasets, texts, accuracy)
        self.classes_, numbers = np.unique(families, return_inverse=True)
        for taken in (NONE, UNDECIDED):
            if taken in self.classes_:
                raise BadInput(f"a family is called {taken!r}", where="families", mend="call it otherwise")
        if len(self.classes_) < 2:
            raise BadInput(
                f"{len(self.classes_)} family", where="families", mend="give at least two; what is rare needs others"
            )
        single = [str(name) for name, count in zip(self.classes_, np.bincount(numbers)) if count == 1]
        if single:
            _warn(f"one model alone stands for {', '.join(single)}: it cannot be left out, and its support is weak")
        self.errors_, self.families_ = errors, numbers
        self.datasets_, codes = np.unique(
            np.zeros(errors.shape[1]) if datasets is None else np.asarray(datasets, dtype=str), return_inverse=True
        )
        self.codes_ = codes
        self.points_ = _embedded(embeddings, texts, errors.shape[1])
        self.accuracy_ = None if accuracy is None else np.asarray(accuracy, float)
        self.n_features_in_ = errors.shape[1]
        self.reference_: Reference = refer(errors, numbers, codes, self.points_, self._settings(), self.accuracy_)
        self.evidence_ = np.unique(np.concatenate([space.items for space in self.reference_.spaces]))
        self._warn_of_what_was_found()
        self.validation_: Validation | None = None
        if self.tau == "calibrate":
            self.cross_validate(each=each)
        return self

    def decision_function(self, X: npt.ArrayLike, *, rates: npt.ArrayLike | None = None) -> Floats:
        """The deciding score of each suspect for each family: (n, F) float64.

        Parameters
        ----------
        X : (n, N) errors of the suspects
        rates : (n, K) error rate of each on each data set, from other items; from ``X`` by default, which is optimistic
        """
        return self._scores(X, rates)[:, SCORES.index(self.score)]

    def predict(self, X: npt.ArrayLike, *, rates: npt.ArrayLike | None = None) -> npt.NDArray[np.str_]:
        """A family's name, "none" or "undecided" for each suspect: (n,)."""
        return np.array([finding.word for finding in self.findings(X, rates=rates)])

    def pvalues(self, X: npt.ArrayLike, *, rates: npt.ArrayLike | None = None) -> Floats:
        """Share of left-out models of other families that reach the suspect's score for the family, counting itself:
        (n, F) float64.
        """
        validation = self._validated()
        scores = self._scores(X, rates)
        which = SCORES.index(self.score)
        return np.array([chance_p_values(validation, self.families_, one)[which] for one in scores])

    def findings(self, X: npt.ArrayLike, *, rates: npt.ArrayLike | None = None) -> list[Finding]:
        """All that is found about each suspect.

        Raises
        ------
        BadInput : a suspect answered fewer than ``least_evidence`` items of the error spaces
        """
        errors = _checked(X)
        return [self._finding(suspect, scores) for suspect, scores in zip(errors, self._scores(errors, rates))]

    def cross_validate(self, *, each: Each | None = None) -> pl.DataFrame:
        """Leave each model out in turn: its family, what each score names, its lead and margin, and the word.

        Returns
        -------
        one row a model: model (its row in ``X``), family, error_trace, likelihood, cosine, lead, margin, decided
        """
        if self.validation_ is None:
            self.validation_ = validate(
                self.errors_,
                self.families_,
                self.codes_,
                self.points_,
                self._settings(),
                accuracy=self.accuracy_,
                each=each or self._in_threads,
            )
        named = best_family(self.validation_.scores)
        return pl.DataFrame(
            {
                "model": np.arange(len(self.families_)),
                "family": self.classes_[self.families_].astype(str),
                **{score: [self._name(number) for number in named[k]] for k, score in enumerate(SCORES)},
                "lead": leads(self.validation_.scores[SCORES.index(self.score)]),
                "margin": margins(self.validation_.scores[SCORES.index(self.score)]),
                "decided": left_out_words(self._level(), self.validation_, self.families_),
            }
        )

    def explain(self, x: npt.ArrayLike, top: int = 20, *, family: str | None = None) -> pl.DataFrame:
        """The evidence: what the suspect got wrong among the weightiest items of a family's error space.

        Parameters
        ----------
        x : (N,) errors of one suspect
        top : rows at most
        family : by default the one that the deciding score names

        Returns
        -------
        item (its column in ``X``), weight, errors of the family and of all others as shares of those that answered
        """
        errors = _one(x, self.n_features_in_)
        number = self._number(family) if family else int(best_family(self.decision_function(errors[None]))[0])
        if number < 0:
            return pl.DataFrame(
                schema={"item": pl.Int64, "weight": pl.Float64, "family": pl.Float64, "others": pl.Float64}
            )
        space = self.reference_.spaces[number]
        wrong = errors[space.items] > 0
        items = space.items[wrong][:top]
        own = self.families_ == number
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an item that nobody else answered: NaN
            shares = [np.nanmean(self.errors_[rows][:, items], axis=0) for rows in (own, ~own)]
        return pl.DataFrame(
            {"item": items, "weight": space.weight[wrong][:top], "family": shares[0], "others": shares[1]}
        )

    def attack_curve(
        self,
        x: npt.ArrayLike,
        how: Literal["repair", "forge"],
        K: Sequence[int],
        *,
        family: str | None = None,
        rates: npt.ArrayLike | None = None,
    ) -> pl.DataFrame:
        """What is named after somebody who knows the families' errors has changed the suspect's answers.

        Parameters
        ----------
        x : (N,) errors of one suspect
        how : "repair" answers the K weightiest items of a family rightly; "forge" answers the K weightiest items of
            another family wrongly
        K : how many answers are changed
        family : whose items; by default the one that the suspect is of, or for "forge" the next likely one
        rates : (K,) error rates of the suspect from other items, which no attack changes; from ``x`` by default

        Returns
        -------
        changed, score, named, lead (of the family of "repair" or of "forge" over the best other)
        """
        errors = _one(x, self.n_features_in_)
        own = None if rates is None else self._rates(rates, 1)[0]
        order = np.argsort(-self._scores(errors[None], own)[0, SCORES.index(self.score)], kind="stable")
        number = self._number(family) if family else int(order[0 if how == "repair" else 1])
        items = candidates(self.reference_.uniqueness, number, self.n_features_in_, 0.0)
        items = items[~np.isnan(errors[items])]
        rows = []
        for count in K:
            changed = errors.copy()
            changed[items[:count]] = 0.0 if how == "repair" else 1.0
            scores = scores_of(self.reference_, changed, own)
            for k, score in enumerate(SCORES):
                others = np.delete(scores[k], number)
                named = self._name(int(best_family(scores[k])))
                rows.append((min(count, len(items)), score, named, float(scores[k, number] - np.nanmax(others))))
        return pl.DataFrame(rows, schema=["changed", "score", "named", "lead"], orient="row")

    def contraction(self, x: npt.ArrayLike, *, rates: npt.ArrayLike | None = None) -> pl.DataFrame:
        """Gain of one suspect as each family's space shrinks: family, size, gain."""
        errors = _one(x, self.n_features_in_)
        own = rates_of(errors, self.codes_) if rates is None else self._rates(rates, 1)[0]
        frames = []
        for number, name in enumerate(self.classes_):
            sizes, gains = curve_of(self.reference_, number, errors, own)
            curve = pl.DataFrame({"size": sizes, "gain": gains})  # empty where a space holds too few of its answers
            frames.append(curve.select(pl.lit(str(name)).alias("family"), "size", "gain"))
        return pl.concat(frames)

    # Parts

    def _settings(self) -> Settings:
        return Settings(self.n_points, self.start, self.end, self.min_weight, self.growth)

    def _check_settings(self) -> None:
        if not 1 <= self.end < self.start <= self.n_points:
            raise BadInput(
                f"end {self.end}, start {self.start}, n_points {self.n_points}", where="ErrorTracer",
                mend="give 1 <= end < start <= n_points",
            )  # fmt: skip
        if self.score not in SCORES:
            raise unknown("score", str(self.score), SCORES, where="ErrorTracer")
        if self.growth not in ("paper", "half", "none"):
            raise unknown("growth", str(self.growth), ("paper", "half", "none"), where="ErrorTracer")
        if not 0 < self.alpha < 1:
            raise BadInput(f"alpha is {self.alpha}", where="ErrorTracer", mend="give one between 0 and 1")

    def _warn_of_what_was_found(self) -> None:
        small = [
            f"{name} {len(space.items)}"
            for name, space in zip(self.classes_, self.reference_.spaces)
            if len(space.items) < self.start
        ]
        if small:
            _warn(
                f"error spaces below start = {self.start} shrink from what they hold to half of it: {', '.join(small)}"
            )
        flat = [str(self.classes_[number]) for number in self.reference_.uniqueness.unweighted]
        if flat:
            _warn(f"no model of {', '.join(flat)} is ever right on some data set, so its errors there count alike")

    def _in_threads(self, work: Any, items: list[int]) -> list[Any]:
        with ThreadPoolExecutor(max(1, self.n_jobs)) as pool:
            return list(pool.map(work, items))

    def _validated(self) -> Validation:
        self.cross_validate()
        assert self.validation_ is not None
        return self.validation_

    def _scores(self, X: npt.ArrayLike, rates: npt.ArrayLike | None) -> Floats:
        errors = _checked(X)
        if errors.shape[1] != self.n_features_in_:
            raise BadInput(
                f"{errors.shape[1]} items, and the references have {self.n_features_in_}", where="suspects",
                mend="align them by data set and item",
            )  # fmt: skip
        evidence = self.evidence_
        if len(evidence) < self.least_evidence:
            raise BadInput(
                f"only {len(evidence)} items tell the families apart", where="references",
                mend=f"add items that models get wrong, or lower min_weight, or least_evidence ({self.least_evidence})",
            )  # fmt: skip
        own = [None] * len(errors) if rates is None else self._rates(rates, len(errors))
        found = []
        for row, (suspect, rate) in enumerate(zip(errors, own)):
            common = int((~np.isnan(suspect[evidence])).sum())
            if common < self.least_evidence:
                raise BadInput(
                    f"it answered {common} of {len(evidence)} items of evidence", where=f"suspect {row + 1}",
                    mend=f"put at least {self.least_evidence} of them to it",
                )  # fmt: skip
            found.append(scores_of(self.reference_, suspect, rate))
        return np.array(found)

    def _rates(self, rates: npt.ArrayLike, n: int) -> Floats:
        """(n, K) error rates; refused where they are none."""
        given = np.atleast_2d(np.asarray(rates, dtype=np.float64))
        if given.shape != (n, len(self.datasets_)) or not ((given >= 0) & (given <= 1)).all():
            shape = f"{n} by {len(self.datasets_)} numbers from 0 to 1"
            raise BadInput(
                f"rates of shape {given.shape}, from {np.min(given, initial=np.inf):g} to "
                f"{np.max(given, initial=-np.inf):g}", where="rates", mend=f"give {shape}, suspects by data sets",
            )  # fmt: skip
        return given

    def _level(self) -> Level:
        return Level(SCORES.index(self.score), self.alpha, [str(name) for name in self.classes_])

    def _finding(self, errors: Floats, scores: Floats) -> Finding:
        finding = self._compared(scores)
        shared = errors[self.evidence_]
        shared = shared[~np.isnan(shared)]
        if self.tau == "calibrate" and len(shared) and np.ptp(shared) == 0:
            alike = "right" if shared[0] == 0 else "wrong"
            return finding._replace(
                word=UNDECIDED, reason=f"its answers to the evidence are all equally {alike}, so that nothing tells"
            )
        return finding

    def _compared(self, scores: Floats) -> Finding:
        if self.validation_ is None:
            return found_by_threshold(scores, self._level(), None if self.tau is None else float(self.tau))
        return found_by_calibration(scores, self._level(), self.validation_, self.families_)

    def _number(self, family: str) -> int:
        if family not in self.classes_:
            raise unknown("family", family, self.classes_.tolist())
        return int(np.flatnonzero(self.classes_ == family)[0])

    def _name(self, number: int) -> str:
        return str(self.classes_[number]) if number >= 0 else NONE


def accuracy_interval(table: pl.DataFrame, score: str) -> Any:
    """Share of left-out models whose family a score names, with a Wilson interval."""
    known = table.filter(pl.col(score) != NONE)
    right = int((known[score] == known["family"]).sum())
    return wilson_interval(right, max(known.height, 1))


def _checked(X: npt.ArrayLike) -> Floats:
    try:
        errors = np.atleast_2d(np.asarray(X, dtype=np.float64))
    except (TypeError, ValueError):
        raise BadInput("no numbers", where="errors", mend="give 1 for wrong, 0 for right, NaN for no answer") from None
    if errors.ndim != 2 or not errors.size:
        raise BadInput(f"an array of shape {errors.shape}", where="errors", mend="give models by items")
    wrong = np.argwhere((errors < 0) | (errors > 1))
    if len(wrong):
        row, column = wrong[0]
        raise BadInput(
            f"{errors[row, column]:g} is no error", where=f"errors, model {row + 1}, item {column + 1}",
            mend="give 1 for wrong, 0 for right, between for one minus a score, NaN for no answer",
        )  # fmt: skip
    return errors


def _one(x: npt.ArrayLike, n_items: int) -> Floats:
    errors = _checked(x)
    if errors.shape != (1, n_items):
        raise BadInput(
            f"errors of shape {errors.shape}", where="suspect", mend=f"give those of one model at {n_items} items"
        )
    return errors[0]


def _check_lengths(errors: Floats, families: npt.NDArray[Any], datasets: Any, texts: Any, accuracy: Any) -> None:
    n_models, n_items = errors.shape
    for name, value, length in (
        ("families", families, n_models),
        ("datasets", datasets, n_items),
        ("texts", texts, n_items),
    ):
        if value is not None and len(value) != length:
            raise BadInput(f"{len(value)} entries", where=name, mend=f"give {length}")
    if accuracy is not None:
        n_sets = len(np.unique(np.asarray(datasets, dtype=str))) if datasets is not None else 1
        if np.shape(accuracy) != (n_models, n_sets):
            raise BadInput(
                f"shape {np.shape(accuracy)}", where="accuracy", mend=f"give {n_models} models by {n_sets} data sets"
            )


def _embedded(embeddings: Any, texts: Any, n_items: int) -> Floats | None:
    if embeddings is not None:
        points = np.asarray(embeddings, dtype=np.float64)
        if points.ndim != 2 or len(points) != n_items or not np.isfinite(points).all():
            raise BadInput(
                f"embeddings of shape {points.shape}", where="embeddings", mend=f"give {n_items} finite rows"
            )
        return points
    if texts is None or not any(text.strip() for text in texts):
        return None
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        counted = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    except ValueError:  # no word at all in any of them
        return None
    size = min(DIMENSIONS, *(n - 1 for n in counted.shape))
    if size < 1:
        return np.asarray(counted.todense(), dtype=np.float64)
    found: Floats = TruncatedSVD(size, algorithm="arpack", random_state=0).fit_transform(counted)
    return found


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=3)


__all__ = ["NONE", "UNDECIDED", "ErrorTracer", "Finding", "accuracy_interval", "dataset_accuracies"]
