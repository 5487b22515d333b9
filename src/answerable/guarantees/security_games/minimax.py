"""Optimal mixed strategies of a zero-sum matrix game, with a certificate.

The row player receives ``payoffs[i, j]``. Whatever solver found the strategies p and q, the value of the game lies
between ``min_j (p' U)_j`` and ``max_i (U q)_i``; those two numbers are what is reported.

The dense interior point method is Mehrotra's predictor-corrector on ``min 1'x, V'x >= 1, x >= 0`` with V = U shifted
and scaled into [1, 2], where p = x / 1'x and the dual gives q. Both sides start strictly feasible, so that residuals
stay at rounding, and each iteration is one symmetric product and one Cholesky factor of the smaller side: ``V'
diag(x/z) V + diag(s/y)``. Nothing here knows of patrols.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import linprog
from threadpoolctl import ThreadpoolController

from answerable.errors import BadInput

Floats = npt.NDArray[np.float64]
Step = tuple[Floats, Floats, Floats, Floats]
Method = Literal["auto", "simplex", "interior-point"]

SIMPLEX_ENTRIES = 40_000  # up to here the simplex method takes milliseconds, and its vertex is what a reader wants
LARGEST_PAYOFF = 1e150  # products of two differences stay finite
MOST_ITERATIONS = 200
SMALLEST_PROBABILITY = 1e-9
MOST_STALLED = 8  # iterations without a smaller gap
CORRECTORS = 3  # more solutions with one factor, at most


class Minimax(NamedTuple):
    """Strategies and what they prove.

    Parameters
    ----------
    low, high : the value lies between them: what ``row`` secures, and what ``column`` concedes
    row, column : probabilities of rows and columns
    method : what found them
    iterations : of that method
    history : (k, 3) multiplications so far, low, high; after each iteration of the interior point method
    """

    low: float
    high: float
    row: Floats
    column: Floats
    method: str
    iterations: int
    history: Floats

    @property
    def value(self) -> float:
        """What the row player secures."""
        return self.low

    @property
    def gap(self) -> float:
        """Upper less lower bound."""
        return self.high - self.low


def minimax(
    payoffs: npt.ArrayLike,
    *,
    method: Method = "auto",
    tolerance: float = 1e-10,
    vertex: bool = True,
    threads: int = 1,
) -> Minimax:
    """Solve a zero-sum game.

    Parameters
    ----------
    payoffs : (m, n) what the row player receives, finite
    method : "simplex" (HiGHS), "interior-point", or "auto": by size
    tolerance : gap at which the interior point method stops, relative to the range of the payoffs
    vertex : after the interior point method, look for a solution with few rows: the simplex method on what has
        probability
    threads : of the numerical library; more than the machine has idle makes it slower by orders of magnitude

    Returns
    -------
    Minimax, with ``low <= value <= high``

    Raises
    ------
    BadInput : an empty matrix, or an entry that is not finite

    References
    ----------
    Mehrotra (1992), SIAM J. Optimization 2: 575-601; Gondzio (1996), Computational Optimization and Applications 6:
    137-156.
    """
    U = checked(payoffs)
    low, high = float(U.min()), float(U.max())
    if low == high or 1 in U.shape:
        return _pure(U)
    with pinned(threads):
        if method == "simplex" or (method == "auto" and U.size <= SIMPLEX_ENTRIES):
            return _simplex(U)
        found = _interior(U, tolerance)
        return _with_few_rows(U, found) if vertex else found


def certificate(payoffs: Floats, row: Floats, column: Floats) -> tuple[float, float]:
    """What ``row`` secures and what ``column`` concedes; the value of the game lies between them."""
    return float((row @ payoffs).min()), float((payoffs @ column).max())


def checked(payoffs: npt.ArrayLike, name: str = "payoffs") -> Floats:
    """A matrix of finite numbers.

    Raises
    ------
    BadInput : it is empty, not of two dimensions, or holds what is no finite number, or one beyond 1e150
    """
    try:
        U = np.ascontiguousarray(payoffs, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("this is no matrix of numbers", where=name, mend="give rows of equal length") from None
    if U.ndim != 2 or not U.size:
        raise BadInput(f"a matrix of shape {U.shape}", where=name, mend="give at least one row and one column")
    bad = np.argwhere(~np.isfinite(U))
    if len(bad):
        where = f"{name}, row {bad[0][0] + 1}, column {bad[0][1] + 1}"
        raise BadInput(f"{U[tuple(bad[0])]} is no finite number", where=where, mend="mend the entry")
    i, j = np.unravel_index(int(np.abs(U).argmax()), U.shape)
    if abs(U[i, j]) > LARGEST_PAYOFF:
        where = f"{name}, row {i + 1}, column {j + 1}"
        raise BadInput(f"{U[i, j]:g} is too large to reckon with", where=where, mend="divide all payoffs by one number")
    return U


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Hold the linear algebra library to ``threads`` threads."""
    with _libraries().limit(limits=threads, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def simplex_of(weights: Floats) -> Floats:
    """Weights at least 0 as probabilities."""
    kept = np.where(weights > SMALLEST_PROBABILITY * weights.sum(), weights, 0.0)
    return kept / kept.sum()


def _pure(U: Floats) -> Minimax:
    """One row or one column, or all entries equal: a saddle in pure strategies."""
    i, j = int(U.min(axis=1).argmax()), int(U.max(axis=0).argmin())
    row, column = np.eye(1, U.shape[0], i)[0], np.eye(1, U.shape[1], j)[0]
    return Minimax(*certificate(U, row, column), row, column, "pure", 0, np.empty((0, 3)))


def _simplex(U: Floats) -> Minimax:
    """Both players' programmes are one: the dual values of the row player's are the column player's strategy."""
    if 1 in U.shape or U.min() == U.max():
        return _pure(U)
    if U.shape[0] < U.shape[1]:
        turned = _simplex(np.ascontiguousarray(-U.T))
        return Minimax(
            *certificate(U, turned.column, turned.row), turned.column, turned.row, turned.method, turned.iterations,
            turned.history,
        )  # fmt: skip
    m, n = U.shape
    spread = U.max() - U.min()
    V = (U - U.min()) / spread
    # max v such that v <= (p'V)_j: as a minimum, with v as the last variable
    A = np.hstack([-V.T, np.ones((n, 1))])
    total = sparse.csr_array(np.r_[np.ones(m), 0.0][None])
    done = linprog(
        np.r_[np.zeros(m), -1.0], A_ub=A, b_ub=np.zeros(n), A_eq=total, b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)], method="highs-ds",
    )  # fmt: skip
    if done.status != 0:
        return _interior(U, 1e-12)  # never seen; the programme is feasible and bounded
    row, column = simplex_of(np.maximum(done.x[:m], 0)), simplex_of(np.maximum(-done.ineqlin.marginals, 0))
    return Minimax(*certificate(U, row, column), row, column, "simplex", int(done.nit), np.empty((0, 3)))


def _interior(U: Floats, tolerance: float) -> Minimax:
    if U.shape[0] < U.shape[1]:
        turned = _interior(np.ascontiguousarray(-U.T), tolerance)
        row, column, looks = turned.column, turned.row, turned.history[:, [0, 2, 1]] * [1, -1, -1]
        return Minimax(*certificate(U, row, column), row, column, turned.method, turned.iterations, looks)
    m, n = U.shape
    lowest, spread = float(U.min()), float(U.max() - U.min())
    V = (U - lowest) / spread + 1.0
    scaled = np.empty_like(V)
    x, y = np.full(m, 1.5 / m), np.full(n, 0.375 / n)  # V'x in [1.5, 3], Vy in [0.375, 0.75]: strictly feasible
    s, z = V.T @ x - 1.0, 1.0 - V @ y
    per_iteration = m * n * (n + 1) / 2 + n**3 / 6 + 4 * m * n
    history: list[tuple[float, float, float]] = []
    best: tuple[float, Floats, Floats] = (np.inf, x, y)
    stalled = 0
    for iteration in range(1, MOST_ITERATIONS + 1):
        short_x, short_z = 1.0 - V.T @ x + s, 1.0 - V @ y - z  # rounding only
        newton = _Newton(V, _factor(V, x / z, s / y, scaled), x, s, y, z, short_x, short_z)
        mu = (x @ z + s @ y) / (m + n)
        dx, ds, dy, dz = newton.towards(-x * z, -s * y)
        along_x, along_y = _longest(x, dx, s, ds), _longest(y, dy, z, dz)
        ahead = ((x + along_x * dx) @ (z + along_y * dz) + (s + along_x * ds) @ (y + along_y * dy)) / (m + n)
        centre = (ahead / mu) ** 3 * mu
        step = _centred(newton, centre - x * z - dx * dz, centre - s * y - ds * dy, centre)
        close = max(0.9, 1.0 - mu * (m + n))
        along_x = min(1.0, close * _longest(x, step[0], s, step[1]))
        along_y = min(1.0, close * _longest(y, step[2], z, step[3]))
        x, s = x + along_x * step[0], s + along_x * step[1]
        y, z = y + along_y * step[2], z + along_y * step[3]
        low, high = (1.0 + s.min()) / x.sum(), (1.0 - z.min()) / y.sum()
        history.append((iteration * per_iteration, low, high))
        if not np.isfinite(high - low):
            break
        stalled = 0 if high - low < 0.9 * best[0] else stalled + 1
        if high - low < best[0]:
            best = (high - low, x, y)
        # rounding ends the fall somewhere below 1e-10; what is reached is certified, whatever it is
        if _proved(V, best[1], best[2], best[0], tolerance) or (stalled >= MOST_STALLED and best[0] < 1e-8):
            break
    row, column = best[1] / best[1].sum(), best[2] / best[2].sum()
    told = np.array(history)
    told[:, 1:] = (told[:, 1:] - 1.0) * spread + lowest
    return Minimax(*certificate(U, row, column), row, column, "interior-point", len(history), told)


def _factor(V: Floats, rows: Floats, diagonal: Floats, scaled: Floats) -> Any:
    """Cholesky factor of ``V' diag(rows) V + diag(diagonal)``."""
    np.multiply(V, np.sqrt(rows)[:, None], out=scaled)
    normal = dsyrk(1.0, scaled.T, lower=1)  # half the work of a general product
    on_diagonal = np.einsum("ii->i", normal)
    on_diagonal += diagonal
    factor, failed = dpotrf(normal, lower=1, clean=0)
    if failed:  # rounding near the end: what is lost is below what the certificate shows
        on_diagonal += 1e-13 * on_diagonal.max()
        factor, failed = dpotrf(normal, lower=1, clean=0)
    return factor


def _proved(V: Floats, x: Floats, y: Floats, told: float, tolerance: float) -> bool:
    """Whether the gap that an iterate is told to have is small enough, and is so when it is computed afresh."""
    if told > tolerance:
        return False
    low, high = certificate(V, x / x.sum(), y / y.sum())
    return high - low <= tolerance


class _Newton(NamedTuple):
    """Newton's equations at one point, factored: primal x and slack s, dual y and slack z."""

    V: Floats
    factor: Any
    x: Floats
    s: Floats
    y: Floats
    z: Floats
    short_x: Floats
    short_z: Floats

    def towards(self, product_x: Floats, product_s: Floats) -> Step:
        """The step (dx, ds, dy, dz) that changes the products x z and s y by so much, to first order."""
        fixed = (product_x - self.x * self.short_z) / self.z
        dy = dpotrs(self.factor, product_s / self.y + self.short_x - self.V.T @ fixed, lower=1)[0]
        dz = self.short_z - self.V @ dy
        dx = (product_x - self.x * dz) / self.z
        ds = self.V.T @ dx - self.short_x
        return dx, ds, dy, dz

    def lengths(self, step: Step) -> tuple[float, float]:
        """How far the primal and the dual part of a step can be taken."""
        return _longest(self.x, step[0], self.s, step[1]), _longest(self.y, step[2], self.z, step[3])


def _centred(newton: _Newton, product_x: Floats, product_s: Floats, centre: float) -> Step:
    """The step towards these products, corrected while that makes it longer.

    A solution costs a hundredth of the factor, so a few are spent on pulling those products back that a longer step
    would bring far from the centre (Gondzio 1996).
    """
    step = newton.towards(product_x, product_s)
    along_x, along_y = newton.lengths(step)
    for _ in range(CORRECTORS):
        if min(along_x, along_y) > 0.95:
            break
        far_x, far_y = min(1.0, 1.5 * along_x + 0.1), min(1.0, 1.5 * along_y + 0.1)
        there_x = (newton.x + far_x * step[0]) * (newton.z + far_y * step[3])
        there_s = (newton.s + far_x * step[1]) * (newton.y + far_y * step[2])
        product_x, product_s = product_x + _back(there_x, centre), product_s + _back(there_s, centre)
        other = newton.towards(product_x, product_s)
        other_x, other_y = newton.lengths(other)
        if min(other_x, other_y) < min(along_x, along_y) or other_x + other_y < along_x + along_y + 0.02:
            break
        step, along_x, along_y = other, other_x, other_y
    return step


def _back(products: Floats, centre: float) -> Floats:
    """What brings products back to between a tenth and ten times the centre; large ones by so much at most."""
    return np.maximum(np.clip(products, 0.1 * centre, 10 * centre) - products, -10 * centre)


def _longest(a: Floats, da: Floats, b: Floats, db: Floats) -> float:
    """The longest step that keeps both at least 0."""
    most = 1e300
    for value, change in ((a, da), (b, db)):
        falling = change < 0
        if falling.any():
            most = min(most, float((-value[falling] / change[falling]).min()))
    return min(1.0, most) if most < 1e300 else 1.0


def _with_few_rows(U: Floats, found: Minimax) -> Minimax:
    """A vertex among the optimal strategies, where the simplex method finds one that proves as much.

    Only rows that have probability can be in it; columns begin with those that have some, and those that the vertex
    falls short against are added until there is none.
    """
    rows = np.flatnonzero(found.row > 1e-7 * found.row.max())
    played = found.column > 1e-7 * found.column.max()
    enough = max(found.gap, 1e-12 * float(U.max() - U.min()))
    for _ in range(U.shape[1]):
        columns = np.flatnonzero(played)
        if len(rows) * len(columns) > 25 * SIMPLEX_ENTRIES:
            return found
        small = _simplex(np.ascontiguousarray(U[np.ix_(rows, columns)]))
        row, column = np.zeros(U.shape[0]), np.zeros(U.shape[1])
        row[rows], column[columns] = small.row, small.column
        low, high = certificate(U, row, column)
        if high - low <= enough:
            return found._replace(low=low, high=high, row=row, column=column, method="interior-point, then simplex")
        short = row @ U < small.high - enough
        if not (short & ~played).any():
            return found
        played |= short
    return found
