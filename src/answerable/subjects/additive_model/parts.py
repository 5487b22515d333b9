"""The parts of an additive model: a feature's component as pieces over a line, and tables over two features.

A piece is a constant (bins, categories, scorecards), a line (linear terms, ReLU networks) or a polynomial of degree up
to three (splines). A category is the whole number of its level, so that categories, integers and real numbers are all
read by the same two loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .encoding import level_edges

Floats = npt.NDArray[np.float64]
# What a model may have of pieces in one feature; beyond, only bounds would be at hand.
MOST_PIECES = 1_000_000
BUCKETS_PER_EDGE = 8  # of the guide by which a piece is found; of the many edges of a large shape, two
MOST_BUCKETS = 1 << 16


class Steps(NamedTuple):
    """A step function and its guide.

    inner : (m,) float64, the edges at which it changes
    values : (m + 1,) float64, its constants
    first : (b + 1,) int32, how many inner edges come before each of b evenly wide buckets
    start, per_unit : where the buckets start, and how many there are per unit
    """

    inner: Floats
    values: Floats
    first: npt.NDArray[np.int32]
    start: float
    per_unit: float


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
        if len(edges) != n_pieces + 1 or n_pieces == 0 or not (np.diff(edges) > 0).all():
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
        missing = None if self.missing is None else np.atleast_1d(np.asarray(self.missing, np.float64))
        if missing is not None and (missing.shape != coefficients.shape[2:] or not np.isfinite(missing).all()):
            mend = "give one finite score, as pieces have"
            raise BadInput("the score of a missing value is not finite", where=where, mend=mend)
        if not 0 <= self.missing_weight < math.inf:
            what, mend = f"a missing value has the weight {self.missing_weight:g}", "give a finite number of at least 0"
            raise BadInput(what, where=where, mend=mend)
        if self.levels and (len(self.levels) != n_pieces or len(set(self.levels)) < n_pieces):
            what, mend = f"{len(set(self.levels))} categories of {n_pieces} pieces", "give each piece a name of its own"
            raise BadInput(what, where=where, mend=mend)
        if not self.low <= self.high:
            raise BadInput(
                f"no value from {self.low:g} to {self.high:g}", where=where, mend="give a domain with low <= high"
            )
        origins = np.zeros(n_pieces) if len(self.origins) == 0 else np.asarray(self.origins, np.float64)
        if origins.shape != (n_pieces,) or not np.isfinite(origins).all():
            raise BadInput(f"{origins.size} origins of {n_pieces} pieces", where=where, mend="give one finite each")
        if self.integer and not self.levels:
            for end in (self.low, self.high):
                if math.isfinite(end) and end != math.floor(end):
                    raise BadInput(f"{end:g} bounds whole numbers", where=where, mend="give a whole number")
        set_ = object.__setattr__
        set_(self, "edges", edges)
        set_(self, "coefficients", coefficients)
        set_(self, "origins", origins)
        set_(self, "integer", self.integer or bool(self.levels))
        set_(self, "missing", missing)
        allowed = np.ones(n_pieces, bool) if self.allowed is None else np.asarray(self.allowed, bool)
        if allowed.shape != (n_pieces,) or not allowed.any():
            what = f"{allowed.sum()} of {n_pieces} pieces are allowed by {allowed.size} marks"
            raise BadInput(what, where=where, mend="give a mark for each, and allow at least one")
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
            steps = self.steps
            look_up(
                column, steps.inner, self.edge_goes_up, steps.first, steps.start, steps.per_unit, steps.values,
                missing[0], out[:, 0],
            )  # fmt: skip
        else:
            evaluate(column, inner, self.edge_goes_up, self.origins, self.coefficients, missing, out)

    @cached_property
    def steps(self) -> Steps:
        """The shape of one output as a step function, for looking up."""
        from .evaluation import make_guide

        constants = self.coefficients[:, 0, 0]
        # boosting cuts finely and leaves many neighbours alike: fewer edges stay longer in a core's cache
        changes = constants[1:].view(np.int64) != constants[:-1].view(np.int64)
        inner = self.edges[1:-1][changes]
        n_buckets = max(2 * len(inner), min(BUCKETS_PER_EDGE * len(inner), MOST_BUCKETS))
        first = np.zeros(n_buckets + 2, np.int32)
        width = float(inner[-1] - inner[0]) if len(inner) > 1 else 0.0
        start = float(inner[0]) if len(inner) else 0.0
        per_unit = n_buckets / width if width > 0 else 0.0
        if not math.isfinite(per_unit):
            per_unit = 0.0
        make_guide(inner, start, per_unit, first)
        return Steps(inner, constants[np.concatenate([[True], changes])], first, start, per_unit)

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
        beyond = math.nextafter(self.high, math.inf)
        below = self.high != float(f"{self.high:g}") and beyond == float(f"{beyond:g}")  # a bin without its upper end
        return f"{kind} from {self.low:g} to {'below ' if below else ''}{self.high:g}"


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
