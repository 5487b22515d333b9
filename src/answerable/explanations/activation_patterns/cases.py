"""The rows that are judged: from a table or made up, as numbers and as the model takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.statistics import Bools, Floats, Ints

from .checks import refuse_odd_units
from .replicas import Replica, compas_rows, compas_words, make_replica
from .xai_tris import Background


@dataclass(frozen=True)
class Cases:
    """Rows and their target.

    Attributes
    ----------
    frame : one column for each feature, words as they stand
    X : (n, n_features) float64, words as codes 1, 2, ... in alphabetical order
    y : (n,) float64, 0 and 1, or numbers for the identity link
    positive : the label that is 1, empty for numbers
    words : of each column of words, what the codes stand for
    nominal : columns of numbers that are codes of kinds
    truth : (8, 8) bool, the pixels that carry the class, None for tables that are no images
    planted : (n_features,) which features were planted as suppressors, None where that is not known
    """

    frame: pl.DataFrame
    X: Floats
    y: Floats
    positive: str = ""
    words: Mapping[str, list[str]] = field(default_factory=dict)
    nominal: tuple[str, ...] = ()
    truth: Bools | None = None
    planted: Bools | None = None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.frame.columns

    @property
    def coded(self) -> list[str]:
        """Columns of more than two kinds: their codes have an order that means nothing."""
        words = [name for name, words in self.words.items() if len(words) > 2]
        return words + [name for name in self.nominal if name not in self.words]

    @property
    def labels(self) -> Any:
        """(n,) the target as a model knows it: the positive label's own name, or numbers."""
        return np.where(self.y > 0.5, self.positive, f"not {self.positive}") if self.positive else self.y

    def rows(self, chosen: Ints, *, words: bool = False) -> Any:
        """Some rows as a pandas frame, with codes or with words."""
        import pandas as pd

        if words and self.words:
            return self.frame[chosen].to_pandas()
        return pd.DataFrame(self.X[chosen], columns=self.names)


def replicated(replica: Replica, *, n: int, seed: int, background: Background, distractor: bool) -> Cases:
    """A made-up table; parameters are those of :func:`make_replica`."""
    made = make_replica(replica, n=n, seed=seed, background=background, distractor=distractor)
    frame = pl.DataFrame(made.X, schema=made.names, orient="row")
    return Cases(frame, made.X, made.y, "", {}, (), made.truth, made.suppressors if made.suppressors.any() else None)


def tabulated(
    table: Any,
    *,
    target: str,
    positive: str,
    features: list[str] | None,
    recipe: str,
    numeric: bool,
    model: Any,
    nominal: Sequence[str] = (),
) -> Cases:
    """The cases of a table.

    Parameters
    ----------
    table : path or dataframe
    target : column of the target
    positive : the label set against all others; the larger of two if empty
    features : columns used; those that the model names, or all but the target, when left out
    recipe : ``none``, or ``compas`` (:func:`compas_rows`)
    numeric : whether the target is a number, not a label
    model : the additive model that is asked about, None if one is to be fitted
    nominal : columns whose numbers are codes of kinds

    Raises
    ------
    BadInput, UnknownName : a column that is not there, an entry that is missing, labels that are not two
    """
    from answerable.subjects import read_table

    frame = read_table(table, repeated=recipe == "compas")
    where = str(table) if isinstance(table, str) else "table"
    known: dict[str, list[str]] = {}
    if recipe == "compas":
        frame, known, target = compas_rows(frame), compas_words(frame), target or "two_year_recid"
    names = features or _features_of(model, frame, target)
    for name in (*names, target, *nominal):
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=where)
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise BadInput("it stands twice", where=f"features, column {twice}", mend="name it once")
    if not names:
        raise BadInput("no column is left beside the target", where=where, mend="give a table of features and a target")
    if target in names:
        raise BadInput("the target is among the features", where=f"{where}, column {target}", mend="leave it out")
    X = np.column_stack([_numbers(frame[name], where) for name in names])
    words = {name: known[name] for name in names if name in known} | {
        name: sorted(frame[name].cast(pl.String).unique()) for name in names if not _is_numeric(frame[name])
    }
    kinds = tuple(name for name in names if name in nominal)
    if numeric and not _is_numeric(frame[target]):
        raise BadInput("its entries are no numbers", where=f"{where}, column {target}", mend="set link = logit")
    if numeric:
        return Cases(frame.select(names), X, _numbers(frame[target], where), "", words, kinds)
    y, positive = _labels(frame[target], positive, where)
    return Cases(frame.select(names), X, y, positive, words, kinds)


def _features_of(model: Any, frame: pl.DataFrame, target: str) -> list[str]:
    from .components import names_of

    own = names_of(model, frame) if model is not None else []
    return own if target not in own and own else [name for name in frame.columns if name != target]


def _is_numeric(column: pl.Series) -> bool:
    return column.dtype == pl.Boolean or column.dtype.is_numeric()


def _numbers(column: pl.Series, where: str) -> Floats:
    """A column as numbers; words are coded 1, 2, ... in alphabetical order."""
    where = f"{where}, column {column.name}"
    if _is_numeric(column):
        numbers = column.cast(pl.Float64).to_numpy()
    elif column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object, pl.Duration):
        raise BadInput("its entries are neither numbers nor words", where=where, mend="leave it out")
    else:
        _refuse_stray_words(column, where)
        numbers = column.cast(pl.String).rank("dense").cast(pl.Float64).to_numpy()
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise BadInput("the entry is missing", where=f"{where}, row {int(np.argmax(bad)) + 1}", mend="drop the row")
    if numbers.size:
        refuse_odd_units(numbers.min(keepdims=True), numbers.max(keepdims=True), [where])
    return numbers


def _refuse_stray_words(column: pl.Series, where: str) -> None:
    """A few words among numbers are entries to mend, not kinds: all numbers of the column would become kinds too."""
    if column.dtype != pl.String:
        return
    stray = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
    if 0 < stray.sum() < len(column) / 2:
        row = int(np.argmax(stray.to_numpy()))
        what = f"{column[row][:40]!r} is no number, though most entries are"
        raise BadInput(what, where=f"{where}, row {row + 1}", mend="mend or drop the row")


def _labels(column: pl.Series, positive: str, where: str) -> tuple[Floats, str]:
    """1 where the label is the positive one, and which that is."""
    where = f"{where}, column {column.name}"
    missing = column.is_null() if not column.dtype.is_float() else column.is_null() | column.is_nan()
    if missing.any():
        row = int(np.argmax(missing.fill_null(True).to_numpy()))
        raise BadInput("the target is missing", where=f"{where}, row {row + 1}", mend="drop the row")
    words = column.cast(str).to_numpy()
    labels = sorted(set(words.tolist()), key=_as_number)
    if len(labels) < 2:
        raise BadInput(f"every label is {labels[0]!r}", where=where, mend="both classes are needed")
    positive = positive or (labels[-1] if len(labels) == 2 else "")
    if positive not in labels:
        what = f"there are {len(labels)} labels" if not positive else f"no label is {positive!r}"
        raise BadInput(what, where=where, mend=f"set positive to one of {', '.join(labels[:8])}")
    return np.asarray(words == positive, dtype=np.float64), positive


def _as_number(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label
