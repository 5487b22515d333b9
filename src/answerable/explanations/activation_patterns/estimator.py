"""PatternGAM and PatternQLR as scikit-learn estimators."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import expit, ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted, validate_data

from answerable.errors import BadInput, unknown
from answerable.statistics import Floats, auroc_intervals, bootstrap_intervals

from .aggregation import Rule, input_importance
from .checks import LARGEST, Scale
from .components import Components, check_components, components_of, warn_of_unpurified_pairs, with_codes, words_of
from .curves import MOST_POINTS, thinned
from .logistic import Link, univariate_slopes
from .refit import given_fit, multivariate_refit, refuse_many_terms
from .solver import (
    Term,
    TermScores,
    activation_pattern,
    quadratic_features,
    quadratic_terms,
    term_scores,
    with_verdicts,
)

if TYPE_CHECKING:
    import polars as pl

Picture = Literal["curves", "deviations", "slopes"]
NUMBERS = ("product", "sd_model", "sd_pattern", "pattern", "discriminability", "slope", "weight")
RESAMPLED = ("slope", "sd_model", "sd_pattern", "pattern", "product")


class BadTable(BadInput, ValueError):
    """Bad input to an estimator; scikit-learn's tools look for a ValueError."""


class _Pattern(TransformerMixin, BaseEstimator):
    """What both estimators do once they have terms and component values."""

    def _checked(self, X: Any, *y: Any, dtype: Any = np.float64) -> Any:
        """Rows, and the target if there is one (then they are those fitted), as arrays; no number that is none."""
        words = [] if dtype == "numeric" else words_of(X)
        if words:
            raise BadTable(
                "its entries are no numbers", where=f"feature {words[0]}", mend="give a column of 0 and 1 for each word"
            )
        found = validate_data(self, X, *y, reset=bool(y), dtype=dtype, ensure_all_finite=False)
        rows = found[0] if y else found
        bad = ~np.isfinite(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, dtype=bool)
        if bad.any():
            row, j = np.argwhere(bad)[0]
            name = getattr(self, "feature_names_in_", [f"x{i}" for i in range(rows.shape[1])])[j]
            raise BadTable(
                f"it is {rows[row, j]:g}".replace("nan", "NaN"),
                where=f"feature {name}, row {row + 1}",
                mend="drop the row",
            )
        return found

    def _settle(self, X: Floats, y: Floats, values: Floats, terms: list[Term], weights: Floats | None) -> None:
        self.terms_ = terms
        self.feature_names_ = [str(name) for name in getattr(self, "feature_names_in_", ())] or [
            f"x{j}" for j in range(X.shape[1])
        ]
        self.term_names_ = [term_name(term, self.feature_names_) for term in terms]
        twice = next((name for name, times in Counter(self.term_names_).items() if times > 1), None)
        if twice is not None:
            raise BadTable("two terms are called so", where=f"term {twice}", mend="rename a feature")
        self.scores_: TermScores = term_scores(
            values, y, names=self.term_names_, weights=weights, link=self.link, scale=self.scale, ridge=self.ridge,
            level=self.level, margin=self.margin, least_share=self.least_share, coefficients=self._given(),
        )  # fmt: skip
        for number in np.flatnonzero(self.scores_.constant):
            warnings.warn(f"term {self.term_names_[number]} is constant: its importance is 0", stacklevel=3)
        self.intervals_: dict[str, Any] = self._by_influence()
        self.intervals_method_ = f"influence functions, curves fixed, {self.level:.0%}"
        if self.n_boot:
            self._resample(values, y, weights)
        if self.link == "logit":
            counted = slice(None) if weights is None else weights > 0
            scores = self.scores_.linear[counted, None]
            if min(np.sum(y[counted] > 0.5), np.sum(y[counted] < 0.5)) >= 2:
                self.auroc_ = auroc_intervals(y[counted] > 0.5, scores, level=self.level)[0]
        self._curves = {
            term[0]: thinned(X[:, term[0]], self.scores_.weight[number] * values[:, number], MOST_POINTS)
            for number, term in enumerate(terms)
            if len(term) == 1
        }

    def _given(self) -> Floats | None:
        """Coefficients of the terms, where they were given."""
        return getattr(self, "coefficients", None)

    def _by_influence(self) -> dict[str, Any]:
        """Intervals of the deviations and their product, from standard errors."""
        s, half = self.scores_, -ndtri((1 - self.level) / 2)
        assert s.errors is not None
        return {
            name: np.maximum(np.stack([value - half * error, value + half * error], axis=1), 0.0)
            for name, value, error in (
                ("sd_model", s.sd_model, s.errors.sd_model_error),
                ("sd_pattern", s.sd_pattern, s.errors.sd_pattern_error),
                ("product", s.product, s.errors.product_error),
            )
        }

    def _resample(self, z: Floats, y: Floats, weights: Floats | None) -> None:
        """Bootstrap of the rows, components fixed: a resample is a set of row weights, no row is copied."""
        fixed = self._given()
        full = (
            multivariate_refit(z, y, weights=weights, link=self.link, ridge=self.ridge, names=self.term_names_)
            if fixed is None
            else given_fit(z, fixed)
        )
        slopes = univariate_slopes(z, y, weights=weights, link=self.link, ridge=self.ridge, names=self.term_names_)
        start = np.concatenate([[full.intercept], full.weights])

        def numbers(rows: Any) -> Floats:
            counts = np.bincount(rows.astype(np.int64), minlength=len(y)).astype(np.float64)
            counts = counts if weights is None else counts * weights
            refit = full
            if fixed is None:
                refit = multivariate_refit(
                    z, y, weights=counts, link=self.link, ridge=self.ridge, names=self.term_names_, start=start
                )
            alone = univariate_slopes(
                z, y, weights=counts, link=self.link, ridge=self.ridge, names=self.term_names_, start=slopes
            )
            sd_model, sd_pattern = np.abs(refit.weights) * alone.std, np.abs(alone.slope) * alone.std
            ratio = np.divide(alone.slope, refit.weights, out=np.zeros_like(sd_model), where=refit.weights != 0)
            pattern = np.zeros_like(sd_model)
            if refit.weights.any():
                pattern = activation_pattern(z, _model_output(refit.linear, self.scale, self.link), weights=counts)
            return np.concatenate([ratio, sd_model, sd_pattern, pattern, sd_model * sd_pattern])

        def told(rows: Any) -> Floats:
            try:
                return numbers(rows)
            except BadInput as failed:
                raise failed.within("a resample of the rows") from None

        found = bootstrap_intervals(
            told, np.arange(len(y)), seed=self.random_state, resamples=self.n_boot, level=self.level,
            method="percentile", strata=y if self.link == "logit" else None,
        )  # fmt: skip
        n_terms, s = z.shape[1], self.scores_
        self.intervals_["slope"] = np.stack([s.slope_low, s.slope_high], axis=1)
        for place, name in enumerate(RESAMPLED):
            part = found[place * n_terms : (place + 1) * n_terms]
            ends = np.array([[interval.low, interval.high] for interval in part])
            # Resamples that all agree have no interval: the slope of the only term is 1 whatever the rows.
            if name in self.intervals_:
                ends = np.where(np.isfinite(ends), ends, self.intervals_[name])
            ends[self.scores_.constant] = 0.0
            self.intervals_[name] = ends if name in ("slope", "pattern") else np.maximum(ends, 0.0)
        self.intervals_method_ = found[0].method
        low, high = self.intervals_["slope"].T
        self.scores_ = with_verdicts(
            replace(self.scores_, slope_low=low, slope_high=high),
            level=self.level, margin=self.margin, least_share=self.least_share,
        )  # fmt: skip

    @property
    def importances_(self) -> pl.DataFrame:
        """One row for each term: every number of :class:`TermScores`, intervals, and the verdict."""
        import polars as pl

        check_is_fitted(self)
        s = self.scores_
        columns: dict[str, Any] = {
            "term": self.term_names_,
            "kind": [_kind(term) for term in self.terms_],
            "weight": s.weight,
            "sd_model": s.sd_model,
            "slope": s.slope,
            "slope_low": s.slope_low,
            "slope_high": s.slope_high,
            "sd_pattern": s.sd_pattern,
            "pattern": np.abs(s.pattern),
            "discriminability": s.discriminability,
            "product": s.product,
            "p_value": s.p_informative,
            "p_adjusted": s.p_informative_adjusted,
            "verdict": s.verdict,
        }
        for name in ("sd_model", "sd_pattern", "product"):
            if name in self.intervals_:
                columns[f"{name}_low"], columns[f"{name}_high"] = self.intervals_[name].T
        return pl.DataFrame(columns)

    def input_importance(self, number: str = "product", *, rule: Rule | None = None) -> Floats:
        """Importance of each input feature, summing to 1; see :func:`input_importance`.

        Parameters
        ----------
        number : field of :class:`TermScores` that is aggregated
        rule : ``max``, ``stronger`` or ``auto``; the estimator's own when left out
        """
        check_is_fitted(self)
        if number not in NUMBERS:
            raise unknown("number", number, NUMBERS, where="input_importance")
        values = np.nan_to_num(np.asarray(getattr(self.scores_, number), dtype=np.float64))
        return input_importance(
            values, self.terms_, self.n_features_in_, rule=rule or self.aggregate, p_values=self.scores_.p_informative,
            alpha=1 - self.level,
        )  # fmt: skip

    @property
    def input_importance_(self) -> Floats:
        """(n_features,) the product, aggregated by the estimator's rule, summing to 1."""
        return self.input_importance()

    def transform(self, X: Any) -> Floats:
        """(n_samples, n_terms) pattern curves at rows, in log-odds (units of the target, for the identity link)."""
        check_is_fitted(self)
        values = self.component_values(X)
        s = self.scores_
        return values * (s.weight * s.slope) + s.intercept

    def shape(self, feature: int | str, X: Any = None) -> pl.DataFrame:
        """Model curve and pattern curve of a feature's own term.

        Parameters
        ----------
        feature : name or number, from 0
        X : (n_samples, n_features) rows at which the curves are wanted; at most 60 values among the rows fitted, when
            left out

        Returns
        -------
        polars frame with x (a code, for a column of words), model and pattern [log-odds, or units of the target], both
        about their mean over the rows, and rows, the share of the rows about x; sorted by x

        Raises
        ------
        UnknownName, BadInput : no such feature, or one without a term of its own
        """
        import polars as pl

        check_is_fitted(self)
        if isinstance(feature, str) and feature not in self.feature_names_:
            raise unknown("feature", feature, self.feature_names_, where="shape")
        j = self.feature_names_.index(feature) if isinstance(feature, str) else int(feature)
        if (j,) not in self.terms_:
            raise BadInput("it has no curve of its own", where=f"shape, feature {feature}", mend="choose one that has")
        number = self.terms_.index((j,))
        if X is None:
            curve = self._curves[j]
        else:
            heights = self.scores_.weight[number] * self.component_values(X)[:, number]
            curve = thinned(np.asarray(with_codes(X), dtype=np.float64)[:, j], heights, None)
        slope = self.scores_.slope[number]
        return pl.DataFrame({"x": curve.x, "model": curve.height, "pattern": slope * curve.height, "rows": curve.rows})

    def plot(self, picture: Picture = "curves", *, width: int = 736) -> Any:
        """A picture of the terms.

        Parameters
        ----------
        picture : ``curves`` of the six features that the model uses most, each beside its pattern curve;
            ``deviations`` of both, with intervals; or ``slopes``, one over the other, with intervals
        width : px of the whole picture

        Returns
        -------
        Altair chart; ``chart.save("curves.html")`` keeps it

        Raises
        ------
        UnknownName : no such picture
        BadInput : curves of a model without terms of one feature
        """
        import polars as pl

        from . import figures

        check_is_fitted(self)
        unit = "log-odds" if self.link == "logit" else "units of the target"
        if picture == "deviations":
            return figures.deviations(self.importances_, width, unit=unit)
        if picture == "slopes":
            return figures.slopes(self.importances_, width, margin=self.margin)
        if picture != "curves":
            raise unknown("picture", picture, get_args(Picture), where="plot")
        spread = {j: self.scores_.sd_model[self.terms_.index((j,))] for j in self._curves}
        if not spread:
            raise BadInput("no term has a feature of its own", where="plot", mend="choose deviations or slopes")
        parts = [
            self.shape(j).select(
                pl.lit(self.feature_names_[j]).alias("feature"), "x", pl.lit(None, pl.String).alias("word"), "model",
                "pattern", "rows",
            )
            for j in sorted(spread, key=lambda j: -spread[j])[: figures.MOST_CURVES]
        ]  # fmt: skip
        return figures.curves(pl.concat(parts), width, unit=unit)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the terms."""
        check_is_fitted(self)
        return np.asarray(self.term_names_, dtype=object)

    def _target(self, y: Any) -> Floats:
        if self.link == "identity":
            return np.asarray(y, dtype=np.float64)
        labels = np.unique(y)
        if self.positive is not None:
            if self.positive not in labels:
                raise BadTable(f"no row has the label {self.positive!r}", where="y", mend="name one that is there")
            labels = np.array([next((label for label in labels if label != self.positive), None), self.positive])
            if labels[0] is None:
                raise BadTable(f"every label is {self.positive!r}", where="y", mend="both classes are needed")
            self.classes_ = labels
            return (np.asarray(y) == self.positive).astype(np.float64)
        if len(labels) > 2:
            raise BadTable(
                f"there are {len(labels)} classes; only binary classification is supported",
                where="y",
                mend="name one with positive, to set it against the rest",
            )
        if len(labels) < 2:
            raise BadTable(f"every label is {labels[0]}, one class", where="y", mend="both classes are needed")
        self.classes_ = labels
        return (np.asarray(y) == labels[1]).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


class PatternGAM(_Pattern):
    """What the components of a fitted additive model carry of the target, beside what the model uses them for.

    Parameters
    ----------
    model : a fitted EBM, pyGAM, NAM or scikit-learn pipeline, its file, a callable from rows to component values, or
        None: each feature is its own component (a linear model); see :func:`components_of`
    pairs : whether the model's pair terms are kept
    scale : of the model's output in the activation pattern, ``logit`` (the paper) or ``probability`` (blind to
        suppressors)
    aggregate : rule from terms to input features, ``auto``, ``max`` (the paper's table) or ``stronger``
    link : ``logit``, or ``identity`` for a numeric target
    positive : the label set against all others; needed for more than two
    ridge : penalty on the standardised terms; 0 by default, then separated data are refused
    level : of intervals and tests
    margin : a used term whose slope lies within +- margin is called a suppressor
    least_share : share of the widest model curve below which a term counts as unused
    n_boot : resamples of rows for intervals, 0 for intervals from influence functions (slope only)
    random_state : seed of the resamples

    Attributes
    ----------
    importances_ : polars frame, one row for each term
    scores_ : TermScores
    input_importance_ : (n_features,) product aggregated to features, summing to 1
    terms_, term_names_ : features and name of each term
    auroc_ : AUROC of the refit on the rows given, with interval; each row of weight above 0 counts once
    n_model_classes_ : classes of the model; of more than two, ``positive`` is set against the rest
    """

    def __init__(
        self,
        model: Any = None,
        *,
        pairs: bool = True,
        scale: Scale = "logit",
        aggregate: Rule = "auto",
        link: Link = "logit",
        positive: Any = None,
        ridge: float = 0.0,
        level: float = 0.95,
        margin: float = 0.1,
        least_share: float = 0.05,
        n_boot: int = 0,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.pairs = pairs
        self.scale = scale
        self.aggregate = aggregate
        self.link = link
        self.positive = positive
        self.ridge = ridge
        self.level = level
        self.margin = margin
        self.least_share = least_share
        self.n_boot = n_boot
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PatternGAM:
        """Compute every number of every term.

        Parameters
        ----------
        X : (n_samples, n_features) rows as the model takes them; best rows that it was not fitted on
        y : (n_samples,) labels, or numbers for the identity link
        sample_weight : (n_samples,) weights >= 0, carried through every mean and covariance
        """
        given = X
        X, y = self._checked(self._coded(X), y, dtype=np.float64 if self.model is None else "numeric")
        weights = None if sample_weight is None else _row_weights(sample_weight, len(X))
        self._components: Components = components_of(
            self.model, X.shape[1], rows=given, pairs=self.pairs, positive=self.positive
        )
        values = self.component_values(given, checked=X)
        if self._components.scores is not None:
            check_components(values, self._components.intercept, np.asarray(self._components.scores(given)))
        self.n_model_classes_, terms = self._components.n_classes, self._components.terms
        self._settle(X, self._target(y), values, terms, weights)
        self.warnings_ = warn_of_unpurified_pairs(X, values, terms, self.term_names_)
        return self

    def _coded(self, X: Any) -> Any:
        """Rows that can be checked as numbers; the model itself gets its words as they stand."""
        return X if self.model is None else with_codes(X)

    def component_values(self, X: Any, checked: Any = None) -> Floats:
        """(n_samples, n_terms) component values of the model at rows."""
        if checked is None:
            checked = self._checked(self._coded(X), dtype=np.float64 if self.model is None else "numeric")
        values = np.asarray(self._components.of(checked if self.model is None else X), dtype=np.float64)
        if values.shape != (len(checked), len(self._components.terms)):
            raise BadTable(
                f"the components have shape {values.shape}, not {(len(checked), len(self._components.terms))}",
                where="model",
                mend="give one column for each term",
            )
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise BadTable(
                "the component is not finite", where=f"model, term {column + 1}, row {row + 1}", mend="mend the model"
            )
        return values


class PatternQLR(_Pattern):
    """Quadratic logistic regression whose terms are judged by what they carry of the target.

    Terms are the features, their squares and all products of two.

    Parameters
    ----------
    standardize : bring every feature to mean 0 and variance 1 first; products of raw features mostly repeat features
    coefficients : (n_terms,) weights of a quadratic model that is judged as it is, in the order of
        :func:`quadratic_terms` and in units of the (standardised, if so) monomials; its own are fitted when left out
    nominal : names or numbers of features whose values are codes of kinds; they are refused, since products of codes
        mean nothing
    scale, aggregate, link, positive, ridge, level, margin, least_share, n_boot, random_state : as for
        :class:`PatternGAM`
    """

    def __init__(
        self,
        *,
        standardize: bool = True,
        coefficients: Floats | None = None,
        nominal: Sequence[int | str] = (),
        scale: Scale = "logit",
        aggregate: Rule = "auto",
        link: Link = "logit",
        positive: Any = None,
        ridge: float = 0.0,
        level: float = 0.95,
        margin: float = 0.1,
        least_share: float = 0.05,
        n_boot: int = 0,
        random_state: int = 0,
    ) -> None:
        self.standardize = standardize
        self.coefficients = coefficients
        self.nominal = nominal
        self.scale = scale
        self.aggregate = aggregate
        self.link = link
        self.positive = positive
        self.ridge = ridge
        self.level = level
        self.margin = margin
        self.least_share = least_share
        self.n_boot = n_boot
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PatternQLR:
        """Fit the quadratic model and compute every number of every term; parameters as for :class:`PatternGAM`."""
        X, y = self._checked(X, y)
        if len(self.nominal):
            raise BadTable(
                "its values are codes of kinds, and their products mean nothing",
                where=f"feature {self.nominal[0]}",
                mend="give one column of 0 and 1 for each kind, or use PatternGAM",
            )
        if np.max(np.abs(X)) > LARGEST:
            what = f"an entry is {np.max(np.abs(X)):.3g} in size"
            raise BadTable(what, where="X", mend="give the feature in a larger unit")
        weights = None if sample_weight is None else _row_weights(sample_weight, len(X))
        shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
        self.mean_ = shares @ X if self.standardize else np.zeros(X.shape[1])
        deviation = np.sqrt(shares @ (X - self.mean_) ** 2)
        self.scale_ = np.where((deviation > 0) & bool(self.standardize), deviation, 1.0)
        refuse_many_terms(X.shape[1] * (X.shape[1] + 3) // 2, f"{X.shape[1]:,} features, their squares and products")
        two_values = [len(np.unique(X[:, j])) > 2 for j in range(X.shape[1])]
        self.terms_ = quadratic_terms(X.shape[1], squares=two_values)
        target = self._target(y)
        self._settle(X, target, self._monomials(X), self.terms_, weights)
        return self

    def component_values(self, X: Any) -> Floats:
        """(n_samples, n_terms) features, squares and products at rows."""
        return self._monomials(self._checked(X))

    def _monomials(self, X: Floats) -> Floats:
        return quadratic_features((X - self.mean_) / self.scale_, self.terms_)

    def decision_function(self, X: Any) -> Floats:
        """(n_samples,) fitted log-odds of ``classes_[1]``."""
        check_is_fitted(self)
        return self.component_values(X) @ self.scores_.weight + self.scores_.refit_intercept

    def predict(self, X: Any) -> Any:
        """(n_samples,) the likelier class, or the fitted number for the identity link."""
        linear = self.decision_function(X)
        return linear if self.link == "identity" else self.classes_[(linear > 0).astype(int)]


def _row_weights(weights: Any, n: int) -> Floats:
    found = np.asarray(weights, dtype=np.float64)
    if found.ndim == 0:
        found = np.full(n, float(found))
    if found.shape != (n,):
        raise BadTable(f"the shape is {found.shape}", where="sample_weight", mend=f"give one for each of {n} rows")
    if not np.isfinite(found).all() or (found < 0).any():
        raise BadTable("a weight is missing or negative", where="sample_weight", mend="give weights of at least 0")
    if not found.any():
        raise BadTable("every weight is zero", where="sample_weight", mend="give weights above 0")
    if found.max() > LARGEST:
        raise BadTable(f"a weight is {found.max():.3g}", where="sample_weight", mend="give smaller ones")
    return found


def _model_output(linear: Floats, scale: Scale, link: Link) -> Floats:
    return expit(linear) if scale == "probability" and link == "logit" else linear


def term_name(term: Term, names: Sequence[str]) -> str:
    """What a term is called: its feature, the feature with a raised 2, or two features with a times sign."""
    if len(term) == 1:
        return names[term[0]]
    return f"{names[term[0]]}²" if term[0] == term[1] else f"{names[term[0]]} × {names[term[1]]}"


def _kind(term: Term) -> Literal["feature", "square", "pair"]:
    return "feature" if len(term) == 1 else "square" if term[0] == term[1] else "pair"
