"""What the solver is given, looked at before anything is worked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics import Floats

from .logistic import Link

Scale = Literal["logit", "probability"]

SMALLEST, LARGEST = 1e-100, 1e100  # of a term; squares of numbers far beyond are 0 or infinite


def checked_terms(
    z: ArrayLike, y: ArrayLike, weights: Floats | None, link: Link, names: Sequence[str] | None
) -> tuple[Floats, Floats, list[str]]:
    """Component values and target as doubles, and what the terms are called.

    Parameters
    ----------
    z : (N, U) component values
    y : (N,) target
    weights : (N,) weights of the rows, or None
    link : ``logit`` or ``identity``
    names : of the terms, or None

    Raises
    ------
    BadInput : shapes that do not fit, an unknown link, a number that is missing, infinite, huge or tiny, or a target of
        one value or of others than 0 and 1
    """
    z, y = np.asarray(z, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if z.ndim != 2 or y.shape != (len(z),) or not z.size:
        what = f"the terms have shape {z.shape}, the target {y.shape}"
        raise BadInput(what, where="terms", mend="give (rows, terms), at least one of each, and (rows,)")
    if weights is not None and np.shape(weights) != y.shape:
        what = f"the weights have shape {np.shape(weights)}, the target {y.shape}"
        raise BadInput(what, where="weights", mend="give one for each row")
    called = list(names) if names is not None else [f"column {j + 1}" for j in range(z.shape[1])]
    if link not in get_args(Link):
        raise BadInput(f"it is {link!r}", where="link", mend="choose logit or identity")
    for whats, values in ([f"term {name}" for name in called], z), (["target"], y[:, None]):
        low, high = _ends(values, whats)
        refuse_odd_units(low, high, whats)
    if link == "identity" and (y == y[0]).all():
        raise BadInput(f"it is {y[0]:g} in every row", where="target", mend="give a target that differs")
    if link == "logit":
        _zeros_and_ones(y, "give 0 and 1, or choose link = identity")
        if len(np.unique(y if weights is None else y[weights > 0])) < 2:
            raise BadInput("every row that counts has the same class", where="target", mend="both classes are needed")
    return z, y, called


def checked_block(z: Floats, y: Floats, called: Sequence[str], begun: int) -> None:
    """Refuse a block of rows and labels that cannot be worked with.

    Parameters
    ----------
    z : (n, U) component values
    y : (n,) labels
    called : names of the terms
    begun : rows that came before

    Raises
    ------
    BadInput : another shape, a number that is missing, infinite or huge, or a label that is neither 0 nor 1
    """
    if z.ndim != 2 or y.shape != (len(z),) or z.shape[1] != len(called) or not z.size:
        what = f"the terms have shape {z.shape}, the target {y.shape}"
        mend = f"give (rows, {len(called)}), at least one row, and (rows,)"
        raise BadInput(what, where=f"block from row {begun + 1}", mend=mend)
    for whats, values in ([f"term {name}" for name in called], z), (["target"], y[:, None]):
        low, high = _ends(values, whats, begun)
        refuse_odd_units(low, high, whats, least=0.0)
    _zeros_and_ones(y, "give 0 and 1")


def _ends(values: Floats, whats: Sequence[str], begun: int = 0) -> tuple[Floats, Floats]:
    """Lowest and highest value of each column, all finite."""
    low, high = values.min(axis=0), values.max(axis=0)
    if not np.isfinite(low + high).all():
        bad = ~np.isfinite(values)
        if bad.any():
            row, j = np.argwhere(bad)[0]
            raise BadInput("it is missing or infinite", where=f"{whats[j]}, row {begun + row + 1}", mend="drop the row")
    return low, high


def refuse_odd_units(low: Floats, high: Floats, whats: Sequence[str], *, least: float = SMALLEST) -> None:
    """Refuse a column that holds huge numbers, or of whose numbers the spread is tiny but not 0.

    Parameters
    ----------
    low, high : lowest and highest number of each column
    whats : what the columns are
    least : spread that is not tiny
    """
    odd = (np.maximum(-low, high) > LARGEST) | ((low < high) & (high - np.maximum(low, -LARGEST) < least))
    if odd.any():
        j = int(np.argmax(odd))
        what = f"it lies between {low[j]:.3g} and {high[j]:.3g}"
        raise BadInput(what, where=whats[j], mend="give it in a unit that makes it neither huge nor tiny")


def _zeros_and_ones(y: Floats, mend: str) -> None:
    strange = (y != 0.0) & (y != 1.0)
    if strange.any():
        raise BadInput(f"it holds {y[strange][0]:g}", where="target", mend=mend)


def check_settings(*, scale: str, ridge: float, level: float, margin: float, least_share: float) -> None:
    """Refuse settings out of their bounds; parameters are those of :func:`term_scores`."""
    if scale not in get_args(Scale):
        raise BadInput(f"it is {scale!r}", where="scale", mend="choose logit or probability")
    if not (np.isfinite(ridge) and ridge >= 0):
        raise BadInput(f"it is {ridge:g}", where="ridge", mend="give at least 0")
    if not 0 < level < 1:
        raise BadInput(f"it is {level:g}", where="level", mend="give one between 0 and 1; 0.95 is usual")
    for name, value in (("margin", margin), ("least_share", least_share)):
        if not 0 <= value < 1:
            raise BadInput(f"it is {value:g}", where=name, mend="give at least 0, less than 1")
