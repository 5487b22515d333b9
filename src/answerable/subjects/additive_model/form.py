"""The one exact form of an additive model: pieces per feature, pair tables, an intercept.

    score(x) = intercept + sum_j shape_j(x_j) + sum_(i, j) pair_ij(x_i, x_j)

Shapes and pairs are in :mod:`.parts`. A class is decided by ``score >= cutoff``, otherwise by the highest of several
scores.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from answerable.errors import AnswerableError, BadInput, unknown

from .encoding import as_pandas, check_inside, columns_of, encoded_column, narrowed, of_whole_numbers
from .parts import Pair, Shape

if TYPE_CHECKING:
    from .packed import Bounds, Packed

Floats = npt.NDArray[np.float64]
Task = Literal["regression", "binary", "multiclass"]
LARGEST = 1e150  # what scores may add up to, so that no sum or product of two overflows


@dataclass(frozen=True)
class AdditiveModel:
    """An additive model in exact form.

    Parameters
    ----------
    features : one shape each, in the order of the columns
    intercept : (n_outputs,) float64
    pairs : tables over two features
    task : regression, binary (class 1 where ``score >= cutoff``) or multiclass (highest score)
    classes : names of the classes, their numbers by default; empty for regression
    cutoff : score from which on the decision is class 1
    logit : whether the score is the logarithm of odds, so that it has a probability
    source : what it was made from, in words
    observed : for features whose range was read from rows, how many rows these were
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
    observed: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    original: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", np.atleast_1d(np.asarray(self.intercept, np.float64)))
        if not self.features:
            raise BadInput("it has no feature", where=self.source, mend="give a model with at least one")
        if self.task not in get_args(Task) or not len(self.intercept):
            what = f"its task is {str(self.task)[:40]!r} with {len(self.intercept)} scores"
            raise BadInput(what, where=self.source, mend=f"give one of {', '.join(get_args(Task))}, and an intercept")
        if not self.classes and self.task != "regression":
            object.__setattr__(self, "classes", tuple(map(str, range(max(self.n_outputs, 2)))))
        names = self.names
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
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
        needed = {"regression": 0, "binary": 2, "multiclass": self.n_outputs}[self.task]
        if len(self.classes) != needed or (self.task == "multiclass") != (self.n_outputs > 1):
            what = f"{len(self.classes)} classes and {self.n_outputs} scores"
            mend = "binary has 2 classes and 1 score, multiclass as many of each, regression no class and 1 score"
            raise BadInput(what, where=f"{self.source}, task {self.task}", mend=mend)
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
    def from_sklearn(cls, estimator: Any, X: Any = None, *, stated: Collection[str] = ()) -> AdditiveModel:
        """From a fitted scikit-learn linear or logistic model or pipeline, or depth-1 boosting.

        ``X`` (the rows it was fitted on) gives each feature its name, observed range and weights; the features
        ``stated`` keep every number, for :meth:`restrict` to narrow.
        """
        from .scikit import from_sklearn

        return from_sklearn(estimator, X, stated=stated)

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
        columns = columns_of(X, self.features)
        encoded = np.empty((len(columns[0]), len(self.features)), order="F")
        counted: Sequence[int] = range(1, len(encoded) + 1) if numbers is None else numbers
        for j, (shape, column) in enumerate(zip(self.features, columns, strict=True)):
            encoded[:, j] = encoded_column(shape, column, counted)
            if inside:
                check_inside(shape, encoded[:, j], counted)
        return encoded

    def encode_background(self, X: Any) -> Floats:
        """:meth:`encode` of rows that say how features are distributed; an error says that it is about these."""
        try:
            return self.encode(X)
        except AnswerableError as failure:
            raise failure.within("background") from None

    def _checked_rows(self, rows: Floats) -> Floats:
        if rows.shape[1] != len(self.features):
            columns_of(rows, self.features)  # says so
        # what one call does not show to be inside is looked at feature by feature
        for j in range(self._bounds.first_outside(rows), len(self.features)):
            check_inside(self.features[j], rows[:, j], range(1, len(rows) + 1))
        return rows

    def contributions(self, encoded: Floats) -> Floats:
        """(n_samples, n_features, n_outputs) components of encoded rows, without pairs."""
        out = np.empty((len(encoded), len(self.features), self.n_outputs))
        if self._packed is not None:
            self._packed.write(encoded, out[:, :, 0])
            return out
        from .evaluation import BLOCK

        for start in range(0, len(encoded), BLOCK):
            rows = slice(start, start + BLOCK)
            for j, shape in enumerate(self.features):
                shape.write(encoded[rows, j], out[rows, j])
        return out

    @cached_property
    def _packed(self) -> Packed | None:
        from .packed import packed

        return packed(self.features)

    @cached_property
    def _bounds(self) -> Bounds:
        from .packed import bounds

        return bounds(self.features)

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
        BadInput : the original model is not at hand or refuses the rows; a value is missing where the form has no
            component for that
        """
        if self.original is None:
            mend = "make the form from the fitted object"
            raise BadInput("the original model is not at hand", where=self.source, mend=mend)
        encoded = self.encode(X, inside=False)
        for j, shape in enumerate(self.features):
            missing = np.isnan(encoded[:, j])
            if shape.missing is None and missing.any():
                row, mend = int(missing.argmax()) + 1, "leave such rows out"
                raise BadInput("the value is missing", where=f"row {row}, feature {shape.name}", mend=mend)
        try:
            theirs = np.asarray(self.original(as_pandas(X)), np.float64).reshape(len(encoded), self.n_outputs)
        except (ValueError, TypeError, KeyError) as failure:
            said = " ".join(str(failure).split())[:120]
            mend = "give rows as it was fitted on"
            raise BadInput(f"the original model refuses the rows ({said})", where=self.source, mend=mend) from None
        return float(np.max(np.abs(self.score(encoded) - theirs), initial=0.0))

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
            shapes[place] = of_whole_numbers(shapes[place])
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
