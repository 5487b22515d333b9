"""The best mix of at most k patrols: a mixed-integer programme over the rows of a zero-sum game."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp

from answerable.errors import BadInput

from .minimax import Floats, checked, minimax, pinned, simplex_of

MOST_NODES = 20_000  # of the search tree; a number of nodes stops at the same place everywhere, a time does not


class SparseMinimax(NamedTuple):
    """The best strategy of at most ``k`` rows.

    Parameters
    ----------
    k : rows allowed
    value : what it secures
    bound : no strategy of k rows secures more
    row : probabilities
    """

    k: int
    value: float
    bound: float
    row: Floats


def sparse_minimax(payoffs: npt.ArrayLike, k: int, *, most_nodes: int = MOST_NODES) -> SparseMinimax:
    """What the row player secures with at most ``k`` rows.

    Parameters
    ----------
    payoffs : (m, n) what the row player receives. Rows that another one is at least as good as everywhere may be left
        out beforehand: that changes nothing
    k : at least 1
    most_nodes : of the search tree; then the bound is wider

    Raises
    ------
    BadInput : k below 1
    """
    U = checked(payoffs)
    if k < 1:
        raise BadInput(f"k is {k}", where="k", mend="give at least 1")
    m, n = U.shape
    if k == 1:
        best = int(U.min(axis=1).argmax())
        value = float(U[best].min())
        return SparseMinimax(1, value, value, np.eye(1, m, best)[0])
    full = minimax(U)
    if np.count_nonzero(full.row) <= k:
        return SparseMinimax(k, full.low, full.high, full.row)
    low, spread = float(U.min()), float(U.max() - U.min())
    V = (U - low) / spread
    eye = np.eye(m)
    constraints = [
        LinearConstraint(np.hstack([V.T, np.zeros((n, m)), -np.ones((n, 1))]), 0, np.inf),
        LinearConstraint(np.r_[np.ones(m), np.zeros(m + 1)][None], 1, 1),
        LinearConstraint(np.hstack([eye, -eye, np.zeros((m, 1))]), -np.inf, 0),
        LinearConstraint(np.r_[np.zeros(m), np.ones(m), 0.0][None], 0, k),
    ]
    with pinned(1):
        done = milp(
            np.r_[np.zeros(2 * m), -1.0], constraints=constraints,
            integrality=np.r_[np.zeros(m), np.ones(m), 0.0],
            bounds=Bounds(np.zeros(2 * m + 1), np.ones(2 * m + 1)),
            options={"mip_rel_gap": 0.0, "node_limit": most_nodes},
        )  # fmt: skip
    if done.x is None:  # stopped before the first strategy: the best single row is one
        single = sparse_minimax(U, 1)
        return SparseMinimax(k, single.value, full.high, single.row)
    row = _solved_on(U, done.x[:m], k)
    value = float((row @ U).min())
    bound = low - float(done.mip_dual_bound) * spread
    return SparseMinimax(k, value, max(min(bound, full.high), value), row)


def _solved_on(U: Floats, weights: Floats, k: int) -> Floats:
    """The optimal strategy on the k rows that the search chose, free of its tolerances."""
    chosen = np.sort(np.argsort(-weights, kind="stable")[:k])
    row = np.zeros(len(U))
    row[chosen] = minimax(U[chosen]).row
    return row if (row @ U).min() >= (simplex_of(weights) @ U).min() - 1e-12 else simplex_of(weights)


def value_by_patrols(payoffs: npt.ArrayLike, most: int, *, tolerance: float = 1e-9) -> list[SparseMinimax]:
    """What one, two, ... distinct patrols secure, until the value of the game is reached.

    Parameters
    ----------
    payoffs : (m, n)
    most : stop here in any case
    tolerance : distance from the value at which it counts as reached
    """
    U = checked(payoffs)
    if most < 1:
        raise BadInput(f"at most {most} plans", where="most", mend="give at least 1")
    whole = minimax(U).low
    found: list[SparseMinimax] = []
    for k in range(1, min(most, len(U)) + 1):
        found.append(sparse_minimax(U, k))
        if found[-1].value >= whole - tolerance * max(1.0, float(np.ptp(U))):
            break
    return found
