"""What one ask gives to fit on: concepts, labels, inputs, and which rows to judge by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput, unknown
from answerable.statistics import fold_numbers
from answerable.subjects.arrays import read_arrays
from answerable.subjects.concept_table import read_concepts, read_partition

from .asked import Asked
from .concepts import MOST_LEVELS

if TYPE_CHECKING:
    from .question import CounterfactualQueries

Floats = npt.NDArray[np.float64]


def read(
    question: CounterfactualQueries, asked: Asked
) -> tuple[pl.DataFrame, npt.NDArray[np.int64], list[str], list[str] | None]:
    """Concepts, labels as numbers, the labels' words, and the rows' parts where a partition is given."""
    if question.outcome is None:
        mend = "name the column that the model predicts"
        raise BadInput("there is a table and no outcome", where="outcome", mend=mend)
    if not asked.features:
        mend = "name the concepts that it predicts from, or ask without a table"
        raise BadInput("no concept is a feature, so that there is nothing to fit", where="features", mend=mend)
    table = read_concepts(question.concepts)
    if question.outcome not in table.columns:
        raise unknown("column", question.outcome, table.columns, where="outcome")
    wanted = {*asked.features, *(name for item in asked.items for name in item.query)}
    for name in [name for name in asked.graph.names if name in wanted]:
        if name not in table.columns:
            raise unknown("column", name, table.columns, where="concepts")
    column = table[question.outcome]
    if column.is_null().any() or (column.dtype.is_float() and column.is_nan().any()):
        row = int((column.is_null() | column.cast(pl.Float64, strict=False).is_nan().fill_null(False)).arg_max() or 0)
        where = f"concepts, column {question.outcome}, row {row + 1}"
        raise BadInput("the entry is missing", where=where, mend="mend the entry or drop the row")
    levels = column.unique().sort()
    if not 2 <= len(levels) <= MOST_LEVELS:
        where, mend = f"concepts, column {question.outcome}", f"give 2 to {MOST_LEVELS} classes"
        values = "one value only" if len(levels) == 1 else f"{len(levels)} different values"
        raise BadInput(f"the outcome has {values}", where=where, mend=mend)
    place = {level: number for number, level in enumerate(levels.to_list())}
    labels = np.array([place[value] for value in column.to_list()])
    names = [name for name in asked.graph.names if name in table.columns and name != question.outcome]
    parts = None if question.partition is None else _parts(read_partition(question.partition), table)
    return table.select(names), labels, [shown(level) for level in levels.to_list()], parts


def _parts(partition: pl.DataFrame, table: pl.DataFrame) -> list[str]:
    """The part of each row, found by its image."""
    if "image" not in table.columns:
        raise unknown("column", "image", table.columns, where="concepts")
    part_of = dict(partition.select("image", "part").iter_rows())
    images = table["image"].cast(pl.String).to_list()
    lost = next((image for image in images if image not in part_of), None)
    if lost is not None:
        mend = "give each image of the table a part"
        raise BadInput(f"the image {str(lost)[:40]!r} is in no part", where="partition", mend=mend)
    return [part_of[image] for image in images]


def folds_of(
    question: CounterfactualQueries, labels: npt.NDArray[np.int64], parts: list[str] | None, classes: list[str]
) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Rows to fit on and rows to judge by: of each fold, or train and test (valid, where there is no test)."""
    if parts is None:
        counts = np.bincount(labels)
        if counts.min() < question.folds:
            where, mend = f"concepts, column {question.outcome}", "give more rows or fewer folds"
            few = "one row" if counts.min() == 1 else f"{counts.min()} rows"
            rare = classes[int(counts.argmin())][:40]
            problem = f"{rare} stands in {few}, and {question.folds} folds need {question.folds}"
            raise BadInput(problem, where=where, mend=mend)
        fold_of = fold_numbers(len(labels), question.folds, seed=0, strata=labels)
        return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(question.folds)]
    judging = "test" if "test" in parts else "valid"
    train, held = (
        np.array([row for row, part in enumerate(parts) if part == name], int) for name in ("train", judging)
    )
    for rows, name in ((train, "train"), (held, "test or valid")):
        if len(rows) < 2:
            raise BadInput(f"{len(rows)} of the images are {name}", where="partition", mend="give both parts images")
    absent = next((number for number in range(len(classes)) if number not in labels[train]), None)
    if absent is not None:
        mend = "put such images into train"
        raise BadInput(f"no train image has {question.outcome} = {classes[absent][:40]}", where="partition", mend=mend)
    return [(train, held)]


def shown(level: Any) -> str:
    """A level as words."""
    return f"{level:g}" if isinstance(level, float) else str(level)


def class_of(target: str, classes: list[str]) -> int:
    """The number of the class that is answered for."""
    if target not in classes:
        raise unknown("value of the outcome", target, classes, where="target")
    return classes.index(target)


def inputs_of(question: CounterfactualQueries, n: int) -> Floats | None:
    """(n, n_numbers) inputs, one a row; None where concepts are given."""
    if question.inputs is None:
        return None
    arrays = read_arrays(question.inputs)
    if len(arrays) > 1:
        names = ", ".join(list(arrays)[:6])
        raise BadInput(f"the file holds {len(arrays)} arrays ({names})", where="inputs", mend="save the inputs alone")
    (found,) = arrays.values()
    if found.ndim < 2 or len(found) != n or not found.size:
        raise BadInput(f"an array of shape {found.shape} for {n} rows", where="inputs", mend="give one input a row")
    if not np.issubdtype(found.dtype, np.number) or np.iscomplexobj(found):
        raise BadInput(f"an array of {found.dtype}", where="inputs", mend="give numbers")
    return found.reshape(n, -1).astype(np.float64)
