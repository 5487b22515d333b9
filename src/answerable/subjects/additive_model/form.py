"""The one exact form of an additive model: pieces per feature, pair tables, an intercept.

    score(x) = intercept + sum_j shape_j(x_j) + sum_(i, j) pair_ij(x_i, x_j)

A shape is a list of pieces over a line: a constant (bins, categories, scorecards), a line (linear terms, ReLU networks)
or a polynomial of degree up to three (splines). A category is the whole number of its level, so that categories,
integers and real numbers are all read by the same two loops. A class is decided by ``score >= cutoff``, the highest of
several scores otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, unknown

from .encoding import check_inside, columns_of, encoded_column, level_edges, narrowed

Floats = npt.NDArray[np.float64]
Task = Literal["regression", "binary", "multiclass"]
# What a model may have of pieces in one feature; beyond, only bounds would be at hand.
MOST_PIECES = 1_000_000
LARGEST = 1e150  # what scores may add up to, so that no sum or product of two overflows
BLOCK = 4096  # rows whose values stay in a core's own cache while all features are looked up


@dataclass(frozen=True, eq=False)  # the same by identity, so that what is computed of it once can be kept
class Shape:
    """The component of one feature and the values that the feature may take.

    Parameters
    ----------
    name : the feature's name
    edges : (p + 1,) float64, rising: piece k reaches from ``edges[k]`` to ``edges[k + 1]``; the first and the last
        reach on beyond their ends
    coefficients : (p, degree + 1, n_outputs) float64, lowest power of ``x - origins[k]`` first
    origins : (p,) float64; zeros by default
    edge_goes_up : whether a value on an inner edge belongs to the piece above it
    levels : names of the categories 0, 1, ...; empty for a number
    integer : whether only whole numbers are in the domain; always so for categories
    low, high : closed ends of the domain, may be infinite
    allowed : (p,) bool, which pieces are in the domain; all by default
    missing : (n_outputs,) what a missing value contributes; None where it may not be missing
    weights : (p,) how often each piece was seen when the model was fitted; None where that is not known
    missing_weight : the same of a missing value
    error : proved bound of how far the component can be from its pieces; 0 where it is the pieces
    """

    name: str
    edges: Floats
    coefficients: Floats
    origins: Floats = field(default_factory=lambda: np.zeros(0))
    edge_goes_up: bool = True
    levels: tuple[str, ...] = ()
    integer: bool = False
    low: float = -math.inf
    high: float = math.inf
    allowed: npt.NDArray[np.bool_] | None = None
    missing: Floats | None = None
    weights: Floats | None = None
    missing_weight: float = 0.0
    error: float = 0.0

    def __post_init__(self) -> None:
        coefficients = np.asarray(self.coefficients, np.float64)
        if coefficients.ndim == 1:
            coefficients = coefficients[:, None, None]
        elif coefficients.ndim == 2:
            coefficients = coefficients[:, :, None]
        n_pieces = len(coefficients)
        where = f"feature {self.name}"
        edges = np.asarray(self.edges, np.float64)
        if len(edges) != n_pieces + 1 or n_pieces == 0 or np.any(np.diff(edges) <= 0):
            raise BadInput(
                f"{n_pieces} pieces between {len(edges)} edges",
                where=where,
                mend="give rising edges, one more than pieces",
            )
        if n_pieces > MOST_PIECES:
            mend = f"simplify it; at most {MOST_PIECES:,} are kept"
            raise BadInput(f"it has {n_pieces:,} pieces", where=where, mend=mend)
        if not np.isfinite(coefficients).all():
            piece = int(np.argwhere(~np.isfinite(coefficients))[0, 0])
            raise BadInput(f"the score of piece {piece + 1} is not finite", where=where, mend="mend the fitted model")
        if not 0 <= self.error < math.inf:
            raise BadInput(f"its error is {self.error:g}", where=where, mend="give a finite number of at least 0")
        if self.missing is not None and not np.isfinite(self.missing).all():
            raise BadInput("the score of a missing value is not finite", where=where, mend="mend the fitted model")
        if not self.low <= self.high:
            raise BadInput(
                f"no value from {self.low:g} to {self.high:g}", where=where, mend="give a domain with low <= high"
            )
        origins = np.zeros(n_pieces) if len(self.origins) == 0 else np.asarray(self.origins, np.float64)
        if self.integer and not self.levels:
            for end in (self.low, self.high):
                if math.isfinite(end) and end != math.floor(end):
                    raise BadInput(f"{end:g} bounds whole numbers", where=where, mend="give a whole number")
        set_ = object.__setattr__
        set_(self, "edges", edges)
        set_(self, "coefficients", coefficients)
        set_(self, "origins", origins)
        set_(self, "integer", self.integer or bool(self.levels))
        if self.missing is not None:
            set_(self, "missing", np.atleast_1d(np.asarray(self.missing, np.float64)))
        allowed = np.ones(n_pieces, bool) if self.allowed is None else np.asarray(self.allowed, bool)
        set_(self, "allowed", allowed)
        if self.weights is not None:
            set_(self, "weights", _weights(self.weights, n_pieces, where))

    @classmethod
    def table(cls, name: str, edges: Any, values: Any, **more: Any) -> Shape:
        """A step function: (p + 1,) edges, (p,) or (p, n_outputs) values."""
        values = np.asarray(values, np.float64)
        return cls(name, edges, values.reshape(len(values), 1, -1), **more)

    @classmethod
    def categories(cls, name: str, levels: Sequence[str], values: Any, **more: Any) -> Shape:
        """One value for each category: (p,) or (p, n_outputs) values."""
        return cls.table(
            name, level_edges(len(levels)), values, levels=tuple(levels), low=0.0, high=len(levels) - 1.0, **more
        )

    @classmethod
    def line(cls, name: str, slope: Any, **more: Any) -> Shape:
        """``slope * x``; (n_outputs,) slopes."""
        slope = np.atleast_1d(np.asarray(slope, np.float64))
        return cls(name, np.array([-np.inf, np.inf]), np.stack([np.zeros_like(slope), slope])[None], **more)

    @property
    def constant(self) -> bool:
        """Whether every piece is a constant."""
        return not np.any(self.coefficients[:, 1:])

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return len(self.coefficients)

    def __call__(self, column: Any) -> Floats:
        """(n_samples, n_outputs) components at encoded values; NaN stands for a missing one."""
        column = np.ascontiguousarray(column, np.float64)
        out = np.empty((len(column), self.coefficients.shape[2]))
        self.write(column, out)
        return out

    def write(self, column: Floats, out: Floats) -> None:
        """Write the components at encoded values into ``out``, (n_samples, n_outputs), of any strides."""
        from .evaluation import evaluate, look_up

        inner, n_outputs = self.edges[1:-1], out.shape[1]
        missing = self.missing if self.missing is not None else np.full(n_outputs, np.nan)
        if n_outputs == 1 and self.coefficients.shape[1] == 1:
            values = self.coefficients[:, 0, 0]
            look_up(column, inner, self.edge_goes_up, *self._guide, values, missing[0], out[:, 0])
        else:
            evaluate(column, inner, self.edge_goes_up, self.origins, self.coefficients, missing, out)

    @cached_property
    def _guide(self) -> tuple[npt.NDArray[np.int32], float, float]:
        """How many inner edges come before each of evenly wide buckets, where these start, and buckets per unit."""
        from .evaluation import make_guide

        inner = self.edges[1:-1]
        first = np.zeros(2 * len(inner) + 2, np.int32)
        width = float(inner[-1] - inner[0]) if len(inner) > 1 else 0.0
        start = float(inner[0]) if len(inner) else 0.0
        per_unit = (len(first) - 2) / width if width > 0 else 0.0
        if not math.isfinite(per_unit):
            per_unit = 0.0
        make_guide(inner, start, per_unit, first)
        return first, start, per_unit

    def piece(self, column: Floats) -> npt.NDArray[np.intp]:
        """Number of the piece that holds each encoded value."""
        side: Literal["left", "right"] = "right" if self.edge_goes_up else "left"
        return np.searchsorted(self.edges[1:-1], column, side=side)

    def shown(self, value: float) -> str:
        """An encoded value as a reader writes it."""
        if math.isnan(value):
            return "missing"
        return self.levels[int(value)] if self.levels else f"{value:.6g}"

    def described(self) -> str:
        """The domain in words."""
        if self.levels:
            names = [level for k, level in enumerate(self.levels) if self.allowed is None or self.allowed[k]]
            return "one of " + ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        kind = "a whole number" if self.integer else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Pair:
    """A table over two features; row and column 0 stand for a missing value.

    Parameters
    ----------
    first, second : numbers of the two features
    first_edges, second_edges : (a + 1,) and (b + 1,) float64, edges of the bins as in :class:`Shape`
    values : (a + 1, b + 1, n_outputs) float64
    weights : (a + 1, b + 1) how often each cell was seen; None where that is not known
    """

    first: int
    second: int
    first_edges: Floats
    second_edges: Floats
    values: Floats
    weights: Floats | None = None

    def __post_init__(self) -> None:
        where = f"pair {self.first} & {self.second}"
        for name in ("first_edges", "second_edges", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        bins = (len(self.first_edges) - 1, len(self.second_edges) - 1)
        if self.first == self.second:
            raise BadInput("it joins a feature with itself", where=where, mend="add it to the feature's component")
        if self.values.ndim != 3 or self.values.shape[:2] != (bins[0] + 1, bins[1] + 1) or min(bins) < 1:
            shown = " by ".join(map(str, self.values.shape[:2]))
            mend = "give a row and a column for each bin, and one before them for a missing value"
            raise BadInput(f"a table of {shown} over {bins[0]} and {bins[1]} bins", where=where, mend=mend)
        if not all((np.diff(edges) > 0).all() for edges in (self.first_edges, self.second_edges)):
            raise BadInput("its edges do not rise", where=where, mend="give rising edges")
        if not np.isfinite(self.values).all():
            raise BadInput("a score is not finite", where=where, mend="mend the fitted model")

    def bins(self, encoded: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Row and column of the table for (n_samples, n_features) encoded rows."""
        return _bin(encoded[:, self.first], self.first_edges), _bin(encoded[:, self.second], self.second_edges)

    def __call__(self, encoded: Floats) -> Floats:
        """(n_samples, n_outputs) at (n_samples, n_features) encoded rows."""
        return self.values[self.bins(encoded)]


@dataclass(frozen=True)
class AdditiveModel:
    """An additive model in exact form.

    Parameters
    ----------
    features : one shape each, in the order of the columns
    intercept : (n_outputs,) float64
    pairs : tables over two features
    task : regression, binary (class 1 where ``score >= cutoff``) or multiclass (highest score)
    classes : names of the classes; empty for regression
    cutoff : score from which on the decision is class 1
    logit : whether the score is the logarithm of odds, so that it has a probability
    source : what it was made from, in words
    original : gives the original model's scores of the same rows, where it is at hand
    """

    features: tuple[Shape, ...]
    intercept: Floats
    pairs: tuple[Pair, ...] = ()
    task: Task = "regression"
    classes: tuple[str, ...] = ()
    cutoff: float = 0.0
    logit: bool = False
    source: str = "pieces"
    original: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", np.atleast_1d(np.asarray(self.intercept, np.float64)))
        if not self.features:
            raise BadInput("it has no feature", where=self.source, mend="give a model with at least one")
        names = self.names
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise BadInput(f"two features are called {twice!r}", where=self.source, mend="give each a name of its own")
        if not np.isfinite(self.intercept).all():
            raise BadInput("the intercept is not finite", where=self.source, mend="mend the fitted model")
        with np.errstate(over="ignore"):
            most = float(np.abs(self.intercept).max()) + abs(self.cutoff)
            most += sum(float(np.abs(part).max()) for part in (shape.coefficients for shape in self.features))
            most += sum(float(np.abs(pair.values).max()) for pair in self.pairs)
        if not most < LARGEST:
            what = f"its scores add up to {most:.0e}, beyond {LARGEST:.0e}"
            raise BadInput(what, where=self.source, mend="give scores in a larger unit")
        scores = [(f"feature {shape.name}", shape.coefficients.shape[2]) for shape in self.features]
        scores += [(f"pair {pair.first} & {pair.second}", pair.values.shape[2]) for pair in self.pairs]
        for where, n_scores in scores:
            if n_scores != self.n_outputs:
                mend = "give as many scores everywhere"
                raise BadInput(f"{n_scores} scores where the model has {self.n_outputs}", where=where, mend=mend)
        for pair in self.pairs:
            if not (0 <= pair.first < len(self.features) and 0 <= pair.second < len(self.features)):
                raise BadInput(
                    f"there are {len(self.features)} features", where=f"pair {pair.first} & {pair.second}",
                    mend="give their numbers, from 0",
                )  # fmt: skip

    # -- made from ----------------------------------------------------------------------------------------------------

    @classmethod
    def from_ebm(cls, ebm: Any) -> AdditiveModel:
        """From a fitted InterpretML EBM, or what its ``to_json`` wrote (a path, text or dict)."""
        from .ebm import from_ebm

        return from_ebm(ebm)

    @classmethod
    def from_sklearn(cls, estimator: Any, X: Any = None) -> AdditiveModel:
        """From a fitted scikit-learn linear or logistic model or pipeline, or depth-1 boosting.

        ``X`` (the rows it was fitted on) gives each feature its name, observed range and weights.
        """
        from .scikit import from_sklearn

        return from_sklearn(estimator, X)

    @classmethod
    def from_pygam(cls, gam: Any, names: Sequence[str] = ()) -> AdditiveModel:
        """From a fitted pyGAM model of splines, lines and factors."""
        from .pygam import from_pygam

        return from_pygam(gam, names)

    @classmethod
    def from_nam(cls, module: Any, *, domain: Mapping[str, tuple[float, float]], **more: Any) -> AdditiveModel:
        """From a neural additive model: one univariate torch module a feature."""
        from .network import from_nam

        return from_nam(module, domain=domain, **more)

    @classmethod
    def from_scorecard(cls, table: Any, *, cutoff: float = 0.0, base: float = 0.0) -> AdditiveModel:
        """From a scorecard: ``feature, bin_lower, bin_upper | category, points``."""
        from .scorecard import from_scorecard

        return from_scorecard(table, cutoff=cutoff, base=base)

    @classmethod
    def from_json(cls, path: Any) -> AdditiveModel:
        """From this project's own JSON."""
        from .own_json import from_json

        return from_json(path)

    def to_json(self) -> str:
        """The model as this project's own JSON; :meth:`from_json` reads it back bit by bit."""
        from .own_json import to_json

        return to_json(self)

    # -- looked at ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [shape.name for shape in self.features]

    @property
    def error(self) -> float:
        """Proved bound of how far any score can be from the original's; 0 for an exact form."""
        return sum(shape.error for shape in self.features)

    @property
    def n_outputs(self) -> int:
        """Number of scores: one, or one for each class of several."""
        return len(self.intercept)

    @cached_property
    def places(self) -> dict[str, int]:
        """Number of each feature by its name."""
        return {name: place for place, name in enumerate(self.names)}

    def numbers_of(self, names: Any, *, what: str = "feature") -> list[int]:
        """Numbers of features given by name or number, one or several.

        Raises
        ------
        UnknownName : there is no such feature
        BadInput : what holds no names
        """
        if not isinstance(names, (str, list, tuple, set, frozenset, np.ndarray, range)):
            mend = "give a list of features"
            raise BadInput(f"a {type(names).__name__} names no {what}", where=self.source, mend=mend)
        found = []
        for name in [names] if isinstance(names, str) else names:
            if isinstance(name, (int, np.integer)) and 0 <= name < len(self.features):
                found.append(int(name))
            elif str(name) in self.places:
                found.append(self.places[str(name)])
            else:
                raise unknown(what, str(name), self.names, where=self.source)
        return found

    def against(self, output: int, rival: int) -> AdditiveModel:
        """The model of ``score[output] - score[rival]``, one output, cutoff 0."""

        def difference(values: Floats) -> Floats:
            return values[..., [output]] - values[..., [rival]]

        shapes = [
            dataclasses.replace(
                shape,
                coefficients=difference(shape.coefficients),
                missing=None if shape.missing is None else difference(shape.missing),
            )
            for shape in self.features
        ]
        pairs = [dataclasses.replace(pair, values=difference(pair.values)) for pair in self.pairs]
        return dataclasses.replace(
            self, features=tuple(shapes), intercept=difference(self.intercept), pairs=tuple(pairs), task="binary",
            classes=(self.classes[rival], self.classes[output]), cutoff=0.0, logit=False, original=None,
        )  # fmt: skip

    # -- rows ---------------------------------------------------------------------------------------------------------

    def encode(self, X: Any, *, inside: bool = True, numbers: Sequence[int] | None = None) -> Floats:
        """Rows as (n_samples, n_features) float64: categories by their number, NaN for a missing value.

        Parameters
        ----------
        X : a dataframe with the features' columns, or an array in their order
        inside : refuse values outside the domain
        numbers : of the rows, by which an error names them; from 1 by default

        Raises
        ------
        BadInput : an unknown category, a value outside the domain, a missing value where none may be; names row and
            feature
        """
        if (
            isinstance(X, np.ndarray)
            and X.ndim == 2
            and X.dtype == np.float64
            and not any(s.levels for s in self.features)
        ):
            return self._checked_rows(X) if inside else X  # as it is, without a copy
        columns = columns_of(X, self)
        encoded = np.empty((len(columns[0]), len(self.features)), order="F")
        counted: Sequence[int] = range(1, len(encoded) + 1) if numbers is None else numbers
        for j, (shape, column) in enumerate(zip(self.features, columns, strict=True)):
            encoded[:, j] = encoded_column(shape, column, counted)
            if inside:
                check_inside(shape, encoded[:, j], counted)
        return encoded

    def _checked_rows(self, rows: Floats) -> Floats:
        if rows.shape[1] != len(self.features):
            columns_of(rows, self)  # says so
        for start in range(0, len(rows), BLOCK):
            for j, shape in enumerate(self.features):
                check_inside(shape, rows[start : start + BLOCK, j], range(start + 1, start + BLOCK + 1))
        return rows

    def contributions(self, encoded: Floats) -> Floats:
        """(n_samples, n_features, n_outputs) components of encoded rows, without pairs."""
        out = np.empty((len(encoded), len(self.features), self.n_outputs))
        for start in range(0, len(encoded), BLOCK):
            rows = slice(start, start + BLOCK)
            for j, shape in enumerate(self.features):
                shape.write(encoded[rows, j], out[rows, j])
        return out

    def score(self, encoded: Floats) -> Floats:
        """(n_samples, n_outputs) scores of encoded rows."""
        total = self.contributions(encoded).sum(axis=1) + self.intercept
        for pair in self.pairs:
            total += pair(encoded)
        return total

    def decide(self, encoded: Floats) -> npt.NDArray[np.intp]:
        """(n_samples,) number of the class of encoded rows."""
        scores = self.score(encoded)
        return scores.argmax(axis=1) if self.n_outputs > 1 else (scores[:, 0] >= self.cutoff).astype(np.intp)

    def check(self, X: Any) -> float:
        """Largest difference from the original model's scores over rows.

        Raises
        ------
        BadInput : the original model is not at hand
        """
        if self.original is None:
            mend = "make the form from the fitted object"
            raise BadInput("the original model is not at hand", where=self.source, mend=mend)
        theirs = np.asarray(self.original(X), np.float64).reshape(-1, self.n_outputs)
        return float(np.max(np.abs(self.score(self.encode(X, inside=False)) - theirs), initial=0.0))

    # -- restricted ---------------------------------------------------------------------------------------------------

    def restrict(
        self,
        domain: Any = None,
        *,
        integer: Sequence[str] = (),
        missing: bool | None = None,
        threshold: float | None = None,
    ) -> AdditiveModel:
        """The same model over a smaller domain, or with another threshold.

        Parameters
        ----------
        domain : for each feature's name ``(low, high)`` of a number, or the list of categories that it may take
        integer : features that take whole numbers only
        missing : False: no value may be missing
        threshold : probability from which on the decision is class 1, for a model of log odds

        Raises
        ------
        BadInput, UnknownName : no such feature or category; no such interval; a threshold outside (0, 1)
        """
        shapes = list(self.features)
        if domain is not None and not isinstance(domain, Mapping):
            mend = 'give {"feature": (low, high)}'
            raise BadInput(f"a {type(domain).__name__} is no domain of a feature", where="domain", mend=mend)
        for name, values in (domain or {}).items():
            place = self.numbers_of([name], what="feature of domain")[0]
            shapes[place] = narrowed(shapes[place], values)
        for place in self.numbers_of(integer, what="feature of integer"):
            shapes[place] = dataclasses.replace(shapes[place], integer=True)
        if missing is False:
            shapes = [dataclasses.replace(shape, missing=None) for shape in shapes]
        cutoff = self.cutoff
        if threshold is not None:
            if not (isinstance(threshold, (int, float, np.number)) and 0 < threshold < 1):
                what = f"it is {str(threshold)[:40]}"
                raise BadInput(what, where="threshold", mend="give a probability between 0 and 1")
            if not self.logit or self.task != "binary":
                raise BadInput("the score is no log odds", where="threshold", mend="leave it out, or give a cutoff")
            cutoff = math.log(threshold) - math.log1p(-threshold)
        return dataclasses.replace(self, features=tuple(shapes), cutoff=cutoff)


def _weights(weights: Any, n_pieces: int, where: str) -> Floats:
    weights = np.asarray(weights, np.float64)
    if weights.shape != (n_pieces,):
        raise BadInput(
            f"{len(weights)} weights of {n_pieces} pieces", where=f"{where}, weights", mend="give one a piece"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise BadInput(
            "a weight is negative or not finite", where=f"{where}, weights", mend="give weights of at least 0"
        )
    return weights


def _bin(column: Floats, edges: Floats) -> npt.NDArray[np.intp]:
    return np.where(np.isnan(column), 0, np.searchsorted(edges[1:-1], column, side="right") + 1)
