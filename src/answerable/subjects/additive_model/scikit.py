"""scikit-learn: linear and logistic models, scalers, one-hot, bins and splines before them, depth-1 boosting.

Every column that reaches the linear model is a piecewise polynomial of one input feature; times its coefficient and
added up by feature it gives the shapes. Boosted stumps are step functions from the start.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from answerable.errors import BadInput

from .boosting import is_missing, shapes_of_trees
from .encoding import by_place, columns_of, encoded_column, level_edges, level_name
from .form import AdditiveModel, Task
from .one_hot import refuse_one_hot
from .parts import Shape

Floats = npt.NDArray[np.float64]
LINEAR = "coef_", "intercept_"


class Column(NamedTuple):
    """One column on its way to the linear model: a piecewise polynomial of one feature.

    feature : number of the input feature
    edges, origins, coefficients : (p + 1,), (p,), (p, degree + 1), as in :class:`Shape`
    levels : categories, where the feature is one
    missing : its value where the feature's is missing; None where that may not be
    """

    feature: int
    edges: Floats
    origins: Floats
    coefficients: Floats
    levels: tuple[str, ...] = ()
    missing: float | None = None


def from_sklearn(estimator: Any, X: Any = None, *, stated: Collection[str] = ()) -> AdditiveModel:
    """A fitted scikit-learn model as an additive model.

    Parameters
    ----------
    estimator : a linear or logistic model, a pipeline that ends in one, or boosted trees of depth 1
    X : the rows it was fitted on; names, observed ranges and weights are taken from them
    stated : features whose range is not

    Raises
    ------
    BadInput : a step that is not additive; it is named
    """
    names = _names(estimator, X)
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    steps = [step for _, step in estimator.steps[:-1]] if hasattr(estimator, "steps") else []
    columns = [_identity(j) for j in range(len(names))]
    for step in steps:
        columns = _through(step, columns, names)
    _refuse_unfitted(final)
    _refuse_other_links(final)
    if _is_boosting(final):
        if steps:
            raise BadInput(
                "boosted trees come after other steps", where="pipeline", mend="give the boosting model alone"
            )
        shapes, intercept = shapes_of_trees(final, names)
    elif all(hasattr(final, name) for name in LINEAR):
        shapes, intercept = _linear(final, columns, names, hasattr(estimator, "feature_names_in_"))
    else:
        raise BadInput(
            f"{type(final).__name__} is not additive", where="model",
            mend="give a fitted linear or logistic model, a pipeline that ends in one, or boosting of depth 1",
        )  # fmt: skip
    observed: dict[str, int] = {}
    if X is not None:
        shapes, observed = _observed(shapes, X, stated)
    task, classes = _task(final, len(intercept))
    if X is not None:
        refuse_one_hot(shapes, X)
    original = getattr(estimator, "decision_function", None) or estimator.predict
    by_name = hasattr(estimator, "feature_names_in_")
    return AdditiveModel(
        tuple(shapes), intercept, task=task, classes=classes, logit=_is_logistic(final), source=type(final).__name__,
        observed=observed,
        original=original if by_name else lambda rows: original(by_place(rows, names)),
    )  # fmt: skip


def _refuse_unfitted(step: Any) -> None:
    """A step that was put together and never fitted."""
    try:
        check_is_fitted(step)
    except NotFittedError:
        kind = type(step).__name__
        raise BadInput(f"the step {kind} is not fitted", where="pipeline", mend="fit the pipeline as a whole") from None
    except TypeError:
        return  # no estimator; what it is instead is said where it is used


def _is_boosting(final: Any) -> bool:
    kind = type(final).__name__
    return kind.startswith(("GradientBoosting", "HistGradientBoosting")) and hasattr(final, "n_features_in_")


def _refuse_other_links(final: Any) -> None:
    """A regressor whose output is a function of the sum, and not the sum."""
    loss = getattr(final, "_loss", None) or getattr(final, "_base_loss", None)
    link = type(getattr(loss, "link", None)).__name__
    if not hasattr(final, "classes_") and link not in ("NoneType", "IdentityLink"):
        mend = "fit it with a loss whose output is the sum itself, such as squared_error"
        raise BadInput(f"its link is {link}", where=type(final).__name__, mend=mend)


def _names(estimator: Any, X: Any) -> list[str]:
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    try:
        n = estimator.n_features_in_
    except (AttributeError, NotFittedError):
        raise BadInput("the model is not fitted", where=type(estimator).__name__, mend="fit it first") from None
    if X is None or not hasattr(X, "columns"):
        return [f"x{j}" for j in range(n)]
    if len(X.columns) != n:
        mend = f"give the {n} that it was fitted on, in their order"
        raise BadInput(f"{len(X.columns)} columns, and the model knows its {n} by place alone", where="X", mend=mend)
    return [str(name) for name in X.columns]


def _identity(feature: int) -> Column:
    return Column(feature, np.array([-np.inf, np.inf]), np.zeros(1), np.array([[0.0, 1.0]]))


def _through(step: Any, columns: list[Column], names: Sequence[str]) -> list[Column]:
    """The columns after a step."""
    kind = type(step).__name__
    if step is None or step == "passthrough" or (kind == "FunctionTransformer" and step.func is None):
        return columns
    _refuse_unfitted(step)
    if hasattr(step, "transformers_"):
        return _through_columns(step, columns, names)
    if hasattr(step, "steps"):
        for _, inner in step.steps:
            columns = _through(inner, columns, names)
        return columns
    if kind in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"):
        factor, shift = _affine(step, kind, len(columns))
        return [_scaled(column, factor[j], shift[j]) for j, column in enumerate(columns)]
    if kind == "OneHotEncoder":
        return [one for j, column in enumerate(columns) for one in _one_hot(step, j, _raw(column, kind, names))]
    if kind == "KBinsDiscretizer":
        return [one for j, column in enumerate(columns) for one in _binned(step, j, _raw(column, kind, names))]
    if kind == "SplineTransformer":
        return [one for j, column in enumerate(columns) for one in _splines(step, j, _raw(column, kind, names))]
    raise BadInput(
        f"the step {kind} is not additive or not known", where="pipeline",
        mend="use scalers, OneHotEncoder, KBinsDiscretizer, SplineTransformer and ColumnTransformer",
    )  # fmt: skip


def _through_columns(step: Any, columns: list[Column], names: Sequence[str]) -> list[Column]:
    found: list[Column] = []
    weights = step.transformer_weights or {}
    for name, inner, _ in step.transformers_:
        if isinstance(inner, str) and inner == "drop":
            continue
        # names, numbers, slices and masks alike are resolved there, whatever columns came in
        chosen = [columns[place] for place in step._transformer_to_input_indices[name]]
        through = _through(None if isinstance(inner, str) else inner, chosen, names)
        found += [_scaled(column, weights.get(name, 1.0), 0.0) for column in through]
    return found


def _affine(step: Any, kind: str, n_columns: int) -> tuple[Floats, Floats]:
    """Factor and shift of each column."""
    ones, zeros = np.ones(n_columns), np.zeros(n_columns)
    if getattr(step, "clip", False):
        raise BadInput(f"{kind} clips", where="pipeline", mend="fit it with clip=False")
    if kind == "MinMaxScaler":
        return step.scale_, step.min_
    scale = ones if step.scale_ is None else np.asarray(step.scale_)
    center = (
        getattr(step, "mean_", None) if kind == "StandardScaler" and step.with_mean else getattr(step, "center_", None)
    )
    return 1 / scale, zeros if center is None else -np.asarray(center) / scale


def _scaled(column: Column, factor: float, shift: float) -> Column:
    coefficients = column.coefficients * factor
    coefficients[:, 0] += shift
    missing = None if column.missing is None else column.missing * factor + shift
    return column._replace(coefficients=coefficients, missing=missing)


def _raw(column: Column, kind: str, names: Sequence[str]) -> Column:
    if len(column.coefficients) > 1 or not np.array_equal(column.coefficients[0], [0.0, 1.0]):
        raise BadInput(
            f"{kind} comes after a step that changes {names[column.feature]}", where="pipeline",
            mend=f"put {kind} first, scalers after it",
        )  # fmt: skip
    return column


def _one_hot(step: Any, j: int, column: Column) -> list[Column]:
    if getattr(step, "infrequent_categories_", None) is not None and any(
        entry is not None for entry in step.infrequent_categories_
    ):
        raise BadInput("OneHotEncoder joins rare categories", where="pipeline", mend="fit it without min_frequency")

    entries = step.categories_[j]
    absent = np.array([is_missing(value) for value in entries])
    if absent.sum() > 1:
        mend = "write missing values in one way"
        raise BadInput("OneHotEncoder tells None from NaN", where="pipeline", mend=mend)
    levels = tuple(level_name(value) for value in entries[~absent])
    edges = level_edges(len(levels))
    dropped = None if step.drop_idx_ is None else step.drop_idx_[j]
    indicators = np.eye(len(entries))[:, ~absent]
    return [
        Column(
            column.feature, edges, np.zeros(len(levels)), indicators[k][:, None], levels,
            float(absent[k]) if absent.any() else None,
        )
        for k in range(len(entries))
        if dropped is None or k != dropped
    ]  # fmt: skip


def _binned(step: Any, j: int, column: Column) -> list[Column]:
    if step.dtype is np.float32:
        raise BadInput("KBinsDiscretizer compares in single precision", where="pipeline", mend="fit it with dtype=None")
    inner = np.asarray(step.bin_edges_[j])[1:-1]
    edges: Floats = np.array([-np.inf, *inner, np.inf])
    n_bins = len(edges) - 1
    if step.encode == "ordinal":
        return [Column(column.feature, edges, np.zeros(n_bins), np.arange(n_bins, dtype=float)[:, None])]
    return [Column(column.feature, edges, np.zeros(n_bins), np.eye(n_bins)[k][:, None]) for k in range(n_bins)]


def _splines(step: Any, j: int, column: Column) -> list[Column]:
    from scipy.interpolate import PPoly

    spline = step.bsplines_[j]
    if spline.k > 3 or step.extrapolation not in ("constant", "linear", "error", "continue"):
        what = f"degree {spline.k}" if spline.k > 3 else f"extrapolation {step.extrapolation!r}"
        raise BadInput(
            f"SplineTransformer has {what}", where="pipeline", mend="use degree 3 and extrapolation='constant'"
        )
    n_splines = spline.c.shape[1]
    inner = spline.t[spline.k : len(spline.t) - spline.k]
    columns = []
    for s in range(n_splines if step.include_bias else n_splines - 1):
        pieces = PPoly.from_spline((spline.t, spline.c[:, s], spline.k))
        places = np.searchsorted(pieces.x, inner[:-1], side="right") - 1
        coefficients = pieces.c[::-1, places].T
        columns.append(continued(column.feature, inner, coefficients, step.extrapolation))
    missing = 0.0 if getattr(step, "handle_missing", "error") == "zeros" else None
    return [column._replace(missing=missing) for column in columns]


def continued(feature: int, knots: Floats, coefficients: Floats, how: str) -> Column:
    """A spline between its knots with what stands beyond them."""
    if how in ("error", "continue"):
        return Column(feature, knots, knots[:-1].copy(), coefficients)
    ends = [(coefficients[0], 0.0), (coefficients[-1], knots[-1] - knots[-2])]
    beyond = np.zeros((2, coefficients.shape[1]))
    for side, (piece, step) in enumerate(ends):
        polynomial = np.polynomial.Polynomial(piece)
        beyond[side, 0] = polynomial(step)
        if how == "linear":
            beyond[side, 1] = polynomial.deriv()(step)
    return Column(
        feature,
        np.array([-np.inf, *knots, np.inf]),
        np.concatenate([[knots[0]], knots[:-1], [knots[-1]]]),
        np.vstack([beyond[:1], coefficients, beyond[1:]]),
    )


def _linear(final: Any, columns: list[Column], names: Sequence[str], named: bool) -> tuple[list[Shape], Floats]:
    weights = np.atleast_2d(np.asarray(final.coef_, np.float64))
    if weights.shape[1] != len(columns):
        raise BadInput(
            f"{weights.shape[1]} coefficients for {len(columns)} columns", where="pipeline", mend="fit it again"
        )
    intercept = np.broadcast_to(np.asarray(final.intercept_, np.float64), len(weights)).copy()
    _refuse_no_sum(final, weights, intercept)
    shapes = []
    for j, name in enumerate(names):
        own = [(column, weights[:, c]) for c, column in enumerate(columns) if column.feature == j]
        if own or not named:  # a column that no step uses may hold anything, and is no feature
            shapes.append(summed(name, own, len(weights)))
    return shapes, intercept


def _refuse_no_sum(final: Any, weights: Floats, intercept: Floats) -> None:
    """Coefficients may belong to something else than the output: votes of pairs of classes, centred columns."""
    rows = np.random.default_rng(0).normal(size=(8, weights.shape[1]))
    with warnings.catch_warnings():  # that the rows' columns have no names
        warnings.simplefilter("ignore", UserWarning)
        theirs = np.asarray((getattr(final, "decision_function", None) or final.predict)(rows), np.float64)
    ours = rows @ weights.T + intercept
    size = np.abs(rows) @ np.abs(weights).T + np.abs(intercept)
    if theirs.size != ours.size or not (np.abs(theirs.reshape(ours.shape) - ours) <= 1e-6 * size).all():
        mend = "give a model whose score is the sum of its coefficients times columns"
        raise BadInput("not additive: its score is not that of its coefficients", where=type(final).__name__, mend=mend)


def summed(name: str, own: list[tuple[Column, Floats]], n_outputs: int) -> Shape:
    """One feature's columns times their coefficients, over the union of their edges."""
    if not own:
        return Shape.line(name, np.zeros(n_outputs))
    levels = own[0][0].levels
    if any(column.levels != levels for column, _ in own):
        what = "one step takes it as categories, another as numbers or as other categories"
        raise BadInput(what, where=f"feature {name}", mend="encode it once")
    edges = np.unique(np.concatenate([column.edges for column, _ in own]))
    origins = np.where(np.isfinite(edges[:-1]), edges[:-1], np.where(np.isfinite(edges[1:]), edges[1:], 0.0))
    if levels:
        origins = np.zeros(len(origins))
    n_powers = max(column.coefficients.shape[1] for column, _ in own)
    total = np.zeros((len(edges) - 1, n_powers, n_outputs))
    for column, weight in own:
        places = np.clip(np.searchsorted(column.edges, edges[:-1], side="right") - 1, 0, len(column.origins) - 1)
        shifted = _shifted(column.coefficients[places], origins - column.origins[places])
        total[:, : shifted.shape[1]] += shifted[:, :, None] * weight
    of_missing = [column.missing * weight for column, weight in own if column.missing is not None]
    missing = np.sum(of_missing, axis=0) if len(of_missing) == len(own) else None
    if levels:
        return Shape.categories(name, levels, total[:, 0], missing=missing)
    low = edges[0] if np.isfinite(edges[0]) else -math.inf
    high = edges[-1] if np.isfinite(edges[-1]) else math.inf
    return Shape(name, edges, total, origins, low=low, high=high, missing=missing)


def _shifted(coefficients: Floats, step: Floats) -> Floats:
    """Polynomials in ``x - a`` rewritten in ``x - (a + step)``: Taylor's shift."""
    out = coefficients.copy()
    n_powers = out.shape[1]
    for first in range(n_powers - 1):
        for power in range(n_powers - 2, first - 1, -1):
            out[:, power] += step * out[:, power + 1]
    return out


def _observed(shapes: list[Shape], X: Any, stated: Collection[str]) -> tuple[list[Shape], dict[str, int]]:
    """The shapes over the range that the rows cover, with the rows' weights; and from how many rows each range is."""
    import dataclasses

    columns = columns_of(X, shapes)
    found, observed = [], {}
    for shape, column in zip(shapes, columns, strict=True):
        encoded = encoded_column(shape, column)
        encoded = encoded[~np.isnan(encoded)]
        counts = np.bincount(shape.piece(encoded), minlength=shape.n_pieces).astype(float)
        ends: dict[str, Any] = {}
        if not shape.levels and len(encoded) and shape.name not in stated:
            ends = {"low": float(encoded.min()), "high": float(encoded.max())}
            observed[shape.name] = len(encoded)
        n_missing = len(column) - len(encoded)
        ends |= {"missing": shape.missing if n_missing else None, "missing_weight": float(n_missing)}
        found.append(dataclasses.replace(shape, weights=counts if shape.constant else None, **ends))
    return found, observed


def _task(final: Any, n_outputs: int) -> tuple[Task, tuple[str, ...]]:
    if not hasattr(final, "classes_"):
        if n_outputs > 1:
            raise BadInput(f"it has {n_outputs} outputs", where=type(final).__name__, mend="fit one model for each")
        return "regression", ()
    classes = tuple(level_name(name) for name in final.classes_)
    return ("binary" if n_outputs == 1 else "multiclass"), classes


def _is_logistic(final: Any) -> bool:
    """Whether the sigmoid of the score is the model's own probability."""
    if type(final).__name__ in ("LogisticRegression", "LogisticRegressionCV"):
        return len(final.classes_) == 2
    return getattr(final, "loss", "") in ("log_loss",) and len(getattr(final, "classes_", ())) == 2
