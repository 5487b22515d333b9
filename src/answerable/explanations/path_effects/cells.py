"""The saturated model: every regression is the mean of its cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Floats, Ints


def cell_numbers(X: Floats, prefixes: Sequence[int]) -> dict[int, Ints]:
    """For each number of first columns, the cell of every row: rows share one where those columns agree.

    Parameters
    ----------
    X : (n, p) float64; missing values agree with each other
    prefixes : numbers of columns, each 0 to p

    Returns
    -------
    dict from number of columns to (n,) int64
    """
    cells: dict[int, Ints] = {0: np.zeros(len(X), dtype=np.int64)}
    numbers = cells[0]
    for j in range(X.shape[1]):
        codes = np.unique(X[:, j], return_inverse=True)[1].astype(np.int64)
        numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)[1].astype(np.int64)
        if j + 1 in prefixes:
            cells[j + 1] = numbers
    return cells


def cell_means(cells: Ints, train: Ints, target: Floats, wanted: Ints) -> Floats:
    """The mean target of each wanted row's cell.

    Parameters
    ----------
    cells : (n,) int64 from `cell_numbers`
    train : (m,) int64 rows with a target
    target : (m,) float64
    wanted : (k,) int64 rows to predict

    Raises
    ------
    BadInput : a wanted row's cell holds no row to learn from
    """
    count = np.bincount(cells[train], minlength=cells.max() + 1)
    total = np.bincount(cells[train], weights=target, minlength=len(count))
    empty = count[cells[wanted]] == 0
    if empty.any():
        raise BadInput(
            f"{int(empty.sum())} rows are alike in covariates and mediators to no row of the other arm",
            where=f"cells, row {int(wanted[np.argmax(empty)]) + 1}",
            mend="choose the learner trees or linear, or columns of fewer values",
        )
    return total[cells[wanted]] / count[cells[wanted]]


def smallest_cell(cells: Ints, rows: Ints) -> int:
    """How many of some rows the cell holds that holds fewest.

    Parameters
    ----------
    cells : (n,) int64 from `cell_numbers`
    rows : (m,) int64 the rows that count
    """
    return int(np.bincount(cells[rows], minlength=int(cells.max()) + 1).min())
