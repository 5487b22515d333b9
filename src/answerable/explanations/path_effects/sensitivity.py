"""How far an effect moves if the last mediator shares a hidden cause with those before it.

Then V(x0, w) may be as it likes among people whose W is not w under x0: only P(V | x0, w, z) of the others is seen. For
each z let p1(w) and p0(w) be the shares of W = w in the two arms. People with W(x1) = w who also have W(x0) = w must
number at least max(0, p0(w) + p1(w) - 1); their V is drawn from the seen distribution, everybody else's is free. So the
most (least) that

    theta(1, .., 1, 0, 1) = sum over z, w, v of E[Y | x1, w, v, z] P(W(x1) = w, V(x0, w) = v | z) P(z)

can be is a small linear programme whose solution is greedy: free people take the best v, the others fill the best v up
to what was seen. It is sharp; where W takes many values the overlap is 0 and the bound is the mean of the best v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from answerable.explanations.path_effects.cells import cell_numbers
from answerable.statistics import Floats, Ints

RESAMPLES = 500
MOST_CELLS = 10_000  # of all combinations of covariates, mediators and attribute
ROWS_PER_CELL = 5  # on average, below which cells are too thin to tell ends from


class Ends(NamedTuple):
    """Least and largest possible value of the nested mean, and of what is subtracted from it.

    Attributes
    ----------
    low, high : ends of theta
    """

    low: float
    high: float


def sharp_ends(p0: Floats, p1: Floats, v_given: Floats, mean: Floats) -> Ends:
    """Sharp range of theta in one stratum.

    Parameters
    ----------
    p0, p1 : (n_w,) P(W = w) under the reference and under the comparison
    v_given : (n_w, n_v) P(V = v | x0, w); any distribution where p0 is 0
    mean : (n_w, n_v) E[Y | x1, w, v]
    """
    least, most = 0.0, 0.0
    for w in range(len(p1)):
        must = max(0.0, p0[w] + p1[w] - 1)
        order = np.argsort(mean[w], kind="stable")
        seen = p0[w] * v_given[w]
        least += _filled(mean[w][order], seen[order], must) + (p1[w] - must) * mean[w].min()
        most += _filled(mean[w][order[::-1]], seen[order[::-1]], must) + (p1[w] - must) * mean[w].max()
    return Ends(float(least), float(most))


def _filled(values: Floats, seen: Floats, amount: float) -> float:
    """Sum of values over an amount of people who fill the seen capacities in order."""
    taken = np.minimum(np.cumsum(seen), amount)
    shares = np.diff(taken, prepend=0.0)
    return float(shares @ values)


class Cells(NamedTuple):
    """Rows as numbered cells.

    Attributes
    ----------
    treated : (n,) 0 or 1
    outcome : (n,) float64
    z, w, v : (n,) int64 numbers of the kinds of covariates, of the blocks before the last, and of the last
    """

    treated: Ints
    outcome: Floats
    z: Ints
    w: Ints
    v: Ints


def ends_of_cells(cells: Cells, rows: Floats | None = None) -> tuple[Ends, float]:
    """Sharp range of theta(1, .., 1, 0, 1) from frequencies, and theta(1, .., 1), which stays identified.

    Parameters
    ----------
    cells : the rows
    rows : (n,) float64 how often each row counts; once by default
    """
    weight = np.ones(len(cells.treated)) if rows is None else rows
    shape = (2, int(cells.z.max()) + 1, int(cells.w.max()) + 1, int(cells.v.max()) + 1)
    place = np.ravel_multi_index((cells.treated, cells.z, cells.w, cells.v), shape)
    count = np.bincount(place, weights=weight, minlength=int(np.prod(shape))).reshape(shape)
    total = np.bincount(place, weights=weight * cells.outcome, minlength=int(np.prod(shape))).reshape(shape)
    low = high = mean = 0.0
    for z in range(shape[1]):
        share = count[:, z].sum() / count.sum()
        arms = count[:, z].sum(axis=(1, 2))
        if share == 0 or arms.min() == 0:
            continue
        kept = count[1, z].sum(axis=1) > 0
        seen = count[1, z][kept] > 0
        regression = total[1, z][kept] / np.where(seen, count[1, z][kept], 1.0)
        p0, p1 = (count[x, z][kept].sum(axis=1) / arms[x] for x in (0, 1))
        below = count[0, z][kept]
        v_given = below / np.maximum(below.sum(axis=1, keepdims=True), 1e-300)
        # A cell without a comparison row says nothing of E[Y | x1, w, v]: any mean that was seen may stand there.
        ends = [sharp_ends(p0, p1, v_given, np.where(seen, regression, fill)) for fill in _range(cells)]
        low, high = low + share * ends[0].low, high + share * ends[1].high
        mean += share * total[1, z].sum() / arms[1]
    return Ends(low, high), mean


def _range(cells: Cells) -> tuple[float, float]:
    return float(cells.outcome.min()), float(cells.outcome.max())


def resampled_ends(cells: Cells, rng: np.random.Generator, clusters: np.ndarray | None, level: float) -> Ends:
    """Range of theta(1, .., 1) less theta(1, .., 1, 0, 1) with sampling error: outer percentiles over resamples."""
    kinds, unit_of, counts = _kinds(cells, clusters)
    found = []
    for _ in range(RESAMPLES):
        if clusters is None:  # as many rows of each kind as drawing rows gives
            drawn = rng.multinomial(len(cells.treated), counts / counts.sum()).astype(np.float64)
        else:
            n_units = int(unit_of.max()) + 1
            drawn = rng.multinomial(n_units, np.full(n_units, 1 / n_units))[unit_of] * counts
        ends, mean = ends_of_cells(kinds, drawn)
        found.append((mean - ends.high, mean - ends.low))
    table = np.array(found)
    alpha = (1 - level) / 2
    return Ends(float(np.quantile(table[:, 0], alpha)), float(np.quantile(table[:, 1], 1 - alpha)))


def _kinds(cells: Cells, clusters: np.ndarray | None) -> tuple[Cells, Ints, Floats]:
    """Rows that differ, the cluster of each, and how many rows are alike: of a million rows, often a few dozen."""
    n = len(cells.treated)
    units = np.zeros(n, np.int64) if clusters is None else np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    numbers = np.zeros(n, np.int64)
    for column in (cells.treated, cells.z, cells.w, cells.v, cells.outcome, units):
        codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
        numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)[1].astype(np.int64)
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    kinds = Cells(cells.treated[first], cells.outcome[first], cells.z[first], cells.w[first], cells.v[first])
    return kinds, units[first], counts.astype(np.float64)


class EffectRange(NamedTuple):
    """What the effect through the last block can be, whatever cause it shares with the blocks before it.

    Attributes
    ----------
    low, high : ends with sampling error
    method : how they were found
    """

    low: float
    high: float
    method: str


def cells_of(treated: Ints, outcome: Floats, X: Floats, columns: Sequence[int]) -> Cells | None:
    """Rows as cells, or None where they are too many for the rows.

    Parameters
    ----------
    treated, outcome : (n,) 0 or 1, and float64
    X : (n, p) float64
    columns : number of columns of Z, of Z and M1, ..., of Z and M1..MK; K of at least 2
    """
    spans = (slice(0, columns[0]), slice(columns[0], columns[-2]), slice(columns[-2], columns[-1]))
    parts = [_numbered(X[:, span]) for span in spans]
    size = 2 * int(np.prod([float(part.max()) + 1 for part in parts]))
    filled = len(np.unique(parts[0] * (size + 1) + parts[1] * (int(parts[2].max()) + 1) + parts[2]))
    if size > MOST_CELLS or len(treated) < ROWS_PER_CELL * filled:
        return None
    return Cells(treated, outcome, *parts)


def _numbered(X: Floats) -> Ints:
    return cell_numbers(X, [X.shape[1]])[X.shape[1]] if X.shape[1] else np.zeros(len(X), dtype=np.int64)
