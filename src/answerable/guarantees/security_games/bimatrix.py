"""Nash equilibria of a game of two matrices: by supports, by vertices, and along Lemke and Howson's path.

With ``exact=True`` everything is computed in fractions of the stored numbers, so that an equilibrium is one, and two
are the same only if they are. Degenerate games have equilibria on whole faces: support and vertex enumeration give
the extreme ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .minimax import Floats, checked

MOST_SUPPORTS = 2_000_000  # pairs of supports, or pairs of vertex candidates
MOST_PIVOTS = 100_000


class Profile(NamedTuple):
    """One equilibrium.

    Parameters
    ----------
    row, column : probabilities; fractions in exact mode
    row_value, column_value : what each player gets
    regret : the most that either could gain by another strategy; 0 in exact mode
    """

    row: tuple[Any, ...]
    column: tuple[Any, ...]
    row_value: Any
    column_value: Any
    regret: Any


def support_enumeration(
    row_payoffs: npt.ArrayLike, column_payoffs: npt.ArrayLike, *, exact: bool = False
) -> list[Profile]:
    """All equilibria that are alone on their supports, supports of unequal size included.

    Parameters
    ----------
    row_payoffs, column_payoffs : (m, n)
    exact : compute in fractions

    Raises
    ------
    BadInput : more than ``MOST_SUPPORTS`` pairs of supports
    """
    A, B = _pair(row_payoffs, column_payoffs)
    m, n = A.shape
    if (2**m - 1) * (2**n - 1) > MOST_SUPPORTS:
        raise BadInput(
            f"{2**m - 1} x {2**n - 1} pairs of supports", where="payoffs", mend="use lemke_howson or vertex_enumeration"
        )
    rows, columns = _entries(A, exact), _entries(B, exact)
    found: dict[tuple[Any, ...], Profile] = {}
    for own in _supports(m):
        for other in _supports(n):
            column = _indifferent([[rows[i][j] for j in other] for i in own], exact)
            row = _indifferent([[columns[i][j] for i in own] for j in other], exact)
            if row is None or column is None:
                continue
            profile = _profile(rows, columns, _spread(row, own, m), _spread(column, other, n))
            if profile.regret <= _slack(exact, A, B):
                found.setdefault(_key(profile, exact), profile)
    return list(found.values())


def vertex_enumeration(
    row_payoffs: npt.ArrayLike, column_payoffs: npt.ArrayLike, *, exact: bool = False
) -> list[Profile]:
    """All extreme equilibria: fully labelled pairs of vertices of the two best-response polytopes.

    Parameters
    ----------
    row_payoffs, column_payoffs : (m, n)
    exact : compute in fractions

    Raises
    ------
    BadInput : more than ``MOST_SUPPORTS`` candidate vertices
    """
    A, B = _pair(row_payoffs, column_payoffs)
    m, n = A.shape
    from math import comb

    if comb(m + n, m) > MOST_SUPPORTS:
        raise BadInput(f"{comb(m + n, m)} candidate vertices", where="payoffs", mend="use lemke_howson")
    rows, columns = _entries(A, exact), _entries(B, exact)
    # P = {x >= 0, B'x <= 1}, Q = {Ay <= 1, y >= 0} for payoffs above 0; labels 0..m-1 rows, m..m+n-1 columns
    first = _vertices(_positive(list(zip(*columns, strict=True))), m, range(m), range(m, m + n), exact)
    second = _vertices(_positive(rows), n, range(m, m + n), range(m), exact)
    everything = frozenset(range(m + n))
    found: dict[tuple[Any, ...], Profile] = {}
    for x, labels in first:
        for y, others in second:
            if labels | others == everything:
                profile = _profile(rows, columns, _normalised(x), _normalised(y))
                found.setdefault(_key(profile, exact), profile)
    return list(found.values())


def lemke_howson(
    row_payoffs: npt.ArrayLike, column_payoffs: npt.ArrayLike, *, label: int = 0, exact: bool = False
) -> Profile:
    """The equilibrium at the end of the path that begins by dropping ``label``; ties by the lexicographic rule.

    Parameters
    ----------
    row_payoffs, column_payoffs : (m, n)
    label : 0 to m + n - 1, rows first
    exact : compute in fractions

    Raises
    ------
    BadInput : there is no such label, or rounding led the path astray (exact mode does not)

    References
    ----------
    Lemke and Howson (1964), J. SIAM 12: 413-423; von Stengel (2002), Handbook of Game Theory 3: 1723-1759.
    """
    A, B = _pair(row_payoffs, column_payoffs)
    m, n = A.shape
    if not 0 <= label < m + n:
        raise BadInput(f"label {label}", where="label", mend=f"give 0 to {m + n - 1}")
    rows, columns = _entries(A, exact), _entries(B, exact)
    # first tableau: B'x + s = 1 with x labelled 0..m-1 and s m..m+n-1; second: r + Ay = 1
    first = _Tableau(_positive(list(zip(*columns, strict=True))), list(range(m, m + n)), list(range(m)), exact)
    second = _Tableau(_positive(rows), list(range(m)), list(range(m, m + n)), exact)
    entering, turn = label, label < m
    for _ in range(MOST_PIVOTS):
        left = (first if turn else second).pivot(entering)
        if left == label:
            break
        entering, turn = left, not turn
    else:
        raise BadInput("the path did not end", where="lemke_howson", mend="ask in exact fractions")
    return _profile(rows, columns, _normalised(first.values(range(m))), _normalised(second.values(range(m, m + n))))


def least_exploitable_pure(payoffs: npt.ArrayLike) -> tuple[int, int, float]:
    """The pure profile of a zero-sum game with the least sum of both players' regrets.

    Returns
    -------
    row, column, and that sum, 0 at a saddle point
    """
    U = checked(payoffs)
    # the entry itself cancels: what the row player could gain plus what the column player could
    total = U.max(axis=0)[None, :] - U.min(axis=1)[:, None]
    i, j = np.unravel_index(int(total.argmin()), U.shape)
    return int(i), int(j), float(total[i, j])


def _pair(row_payoffs: npt.ArrayLike, column_payoffs: npt.ArrayLike) -> tuple[Floats, Floats]:
    A, B = checked(row_payoffs, "row payoffs"), checked(column_payoffs, "column payoffs")
    if A.shape != B.shape:
        raise BadInput(f"shapes {A.shape} and {B.shape}", where="column payoffs", mend="give one payoff for each")
    return A, B


def _entries(matrix: Floats, exact: bool) -> list[list[Any]]:
    return [[Fraction(entry) if exact else float(entry) for entry in row] for row in matrix]


def _positive(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Shifted so that every entry is at least 1: equilibria stay the same."""
    least = min(entry for row in rows for entry in row)
    return [[entry - least + 1 for entry in row] for row in rows]


def _supports(n: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, n + 1):
        yield from itertools.combinations(range(n), size)


def _indifferent(rows: list[list[Any]], exact: bool) -> list[Any] | None:
    """The one strategy above 0 that makes all rows equal; None where there is none, or more than one."""
    k = len(rows[0])
    zero, one = (Fraction(0), Fraction(1)) if exact else (0.0, 1.0)
    system = [[a - b for a, b in zip(row, rows[0], strict=True)] + [zero] for row in rows[1:]] + [[one] * (k + 1)]
    solution = _solved(system, k, exact)
    if solution is None or any(weight <= (0 if exact else 1e-12) for weight in solution):
        return None
    return solution


def _solved(system: list[list[Any]], k: int, exact: bool) -> list[Any] | None:
    """The one solution of an augmented system; None where it is none or not alone."""
    rows = [list(row) for row in system]
    tiny = 0 if exact else 1e-11 * max((abs(entry) for row in rows for entry in row), default=1.0)
    placed = 0
    for column in range(k):
        pivot = max(range(placed, len(rows)), key=lambda r: abs(rows[r][column]), default=-1)
        if pivot < 0 or abs(rows[pivot][column]) <= tiny:
            return None
        rows[placed], rows[pivot] = rows[pivot], rows[placed]
        for r in range(len(rows)):
            if r != placed and rows[r][column] != 0:
                factor = rows[r][column] / rows[placed][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[placed], strict=True)]
        placed += 1
        if placed == len(rows) and column < k - 1:
            return None
    if any(abs(row[-1]) > tiny for row in rows[placed:]):
        return None
    return [rows[j][-1] / rows[j][j] for j in range(k)]


def _vertices(
    constraints: list[list[Any]], n: int, own: range, others: range, exact: bool
) -> list[tuple[list[Any], frozenset[int]]]:
    """Vertices but the origin of {x >= 0, Cx <= 1}, each with the labels of what is tight."""
    zero, one = (Fraction(0), Fraction(1)) if exact else (0.0, 1.0)
    slack = 0 if exact else 1e-9
    tight = [[one if k == j else zero for k in range(n)] + [zero] for j in range(n)]
    tight += [[*row, one] for row in constraints]
    labels = [*own, *others]
    found: dict[tuple[Any, ...], tuple[list[Any], frozenset[int]]] = {}
    for chosen in itertools.combinations(range(len(tight)), n):
        x = _solved([tight[c] for c in chosen], n, exact)
        if x is None or any(v < -slack for v in x) or not any(v > slack for v in x):
            continue
        sums = [sum(a * v for a, v in zip(row, x, strict=True)) for row in constraints]
        if any(total > 1 + slack for total in sums):
            continue
        held = {own[j] for j in range(n) if abs(x[j]) <= slack}
        held |= {others[k] for k in range(len(sums)) if abs(sums[k] - 1) <= slack}
        key = tuple(x) if exact else tuple(round(v, 9) for v in x)
        found.setdefault(key, (x, frozenset(held) & frozenset(labels)))
    return list(found.values())


class _Tableau:
    """Rows ``basic + C nonbasic = 1`` with an identity beside them for the lexicographic rule."""

    def __init__(self, rows: list[list[Any]], basic: list[int], free: list[int], exact: bool) -> None:
        zero, one = (Fraction(0), Fraction(1)) if exact else (0.0, 1.0)
        n = len(rows)
        self.labels = [*free, *basic]  # of the columns
        self.basic = list(basic)
        self.rows = [
            [*row, *(one if k == r else zero for k in range(n)), one] for r, row in enumerate(rows)
        ]  # columns: free, basic, right-hand side
        self.n_free = len(free)
        self.tiny = 0 if exact else 1e-12

    def pivot(self, entering: int) -> int:
        """Bring a label in; the one that leaves."""
        column = self.labels.index(entering)
        candidates = [r for r in range(len(self.rows)) if self.rows[r][column] > self.tiny]
        if not candidates:
            raise BadInput("the path left the polytope", where="lemke_howson", mend="ask in exact fractions")
        order = [-1, *range(self.n_free, len(self.labels))]  # right-hand side, then the identity it began with
        chosen = min(candidates, key=lambda r: [self.rows[r][c] / self.rows[r][column] for c in order])
        pivot = self.rows[chosen][column]
        self.rows[chosen] = [entry / pivot for entry in self.rows[chosen]]
        for r in range(len(self.rows)):
            factor = self.rows[r][column]
            if r != chosen and factor != 0:
                self.rows[r] = [a - factor * b for a, b in zip(self.rows[r], self.rows[chosen], strict=True)]
        left, self.basic[chosen] = self.basic[chosen], entering
        return left

    def values(self, labels: range) -> list[Any]:
        """What each of these variables is."""
        zero = self.rows[0][-1] * 0
        return [self.rows[self.basic.index(label)][-1] if label in self.basic else zero for label in labels]


def _spread(weights: list[Any], support: tuple[int, ...], n: int) -> list[Any]:
    zero = weights[0] * 0
    found = [zero] * n
    for place, weight in zip(support, weights, strict=True):
        found[place] = weight
    return found


def _normalised(weights: list[Any]) -> list[Any]:
    kept = [max(weight, weight * 0) for weight in weights]
    total = sum(kept)
    return [weight / total for weight in kept]


def _profile(rows: list[list[Any]], columns: list[list[Any]], x: list[Any], y: list[Any]) -> Profile:
    own = [sum(a * b for a, b in zip(row, y, strict=True)) for row in rows]
    other = [sum(columns[i][j] * x[i] for i in range(len(x))) for j in range(len(y))]
    row_value = sum(a * b for a, b in zip(x, own, strict=True))
    column_value = sum(a * b for a, b in zip(y, other, strict=True))
    regret = max(max(own) - row_value, max(other) - column_value)
    return Profile(tuple(x), tuple(y), row_value, column_value, regret)


def _key(profile: Profile, exact: bool) -> tuple[Any, ...]:
    whole = (*profile.row, *profile.column)
    return whole if exact else tuple(round(weight, 8) for weight in whole)


def _slack(exact: bool, A: Floats, B: Floats) -> float:
    return 0.0 if exact else 1e-9 * max(1.0, float(np.ptp(A)), float(np.ptp(B)))
