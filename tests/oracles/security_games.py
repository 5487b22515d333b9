"""Games by listing everything: walks, coverages, payoffs, equilibria and commitments of small games."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog


def walks(
    beside: Sequence[Sequence[int]], homes: Sequence[int], steps: int, *, same_end: bool = False
) -> list[tuple[int, ...]]:
    """Every walk that starts and ends at a home."""
    found = []
    for walk in itertools.product(range(len(beside)), repeat=steps):
        steps_hold = all(b in beside[a] for a, b in itertools.pairwise(walk))
        if steps_hold and walk[0] in homes and walk[-1] in homes and (not same_end or walk[0] == walk[-1]):
            found.append(walk)
    return found


def visits(walk: Sequence[int], targets: Sequence[int], dwell: int) -> tuple[int, ...]:
    return tuple(min(sum(node == target for node in walk), dwell) for target in targets)


def moves(walk: Sequence[int]) -> int:
    return sum(a != b for a, b in itertools.pairwise(walk))


def interdicted(team: Sequence[Sequence[int]], target: int, dwell: int) -> bool:
    """Pairs of patrol and time that stand on the target, as published."""
    return sum(walk[time] == target for walk in team for time in range(len(walk))) >= dwell


def zero_sum_matrix(
    each: Sequence[Sequence[Sequence[int]]], targets: Sequence[int], worth: Sequence[float], dwell: int, attackers: int
) -> np.ndarray:
    """One row for each team of walks, one column for each set of attacks or abstentions, one entry at a time."""
    columns = list(itertools.combinations([*range(len(targets)), None], attackers))
    return np.array(
        [
            [
                -sum(worth[t] for t in column if t is not None and not interdicted(team, targets[t], dwell))
                for column in columns
            ]
            for team in itertools.product(*each)
        ]
    )


def value(U: np.ndarray) -> float:
    """What the row player secures, by scipy on the matrix as it stands."""
    m, n = U.shape
    done = linprog(
        np.r_[np.zeros(m), -1.0], A_ub=np.c_[-U.T, np.ones(n)], b_ub=np.zeros(n), A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)],
    )  # fmt: skip
    return float(-done.fun)


def commitment(L: np.ndarray, F: np.ndarray) -> float:
    """The best commitment by trying every vertex of every column's region: square systems of tight rows."""
    m, n = L.shape
    best = -np.inf
    for t in range(n):
        at_least_zero = np.vstack([(F[:, [t]] - np.delete(F, t, axis=1)).T, np.eye(m)])
        for tight in itertools.combinations(range(len(at_least_zero)), m - 1):
            A = np.vstack([at_least_zero[list(tight)], np.ones(m)])
            if abs(np.linalg.det(A)) < 1e-10:
                continue
            p = np.linalg.solve(A, np.r_[np.zeros(m - 1), 1.0])
            if (at_least_zero @ p >= -1e-9).all():
                best = max(best, float(p @ L[:, t]))
    return best


def best_of_k(U: np.ndarray, k: int) -> float:
    """What the best k rows secure, by trying all sets of k."""
    return max(value(U[list(rows)]) for rows in itertools.combinations(range(len(U)), min(k, len(U))))


def regret_matching(U: np.ndarray, rule: str, iterations: int) -> tuple[float, float]:
    """The plain rules, the longer side first (rows where they are as many); what the averages secure and concede."""
    if U.shape[0] < U.shape[1]:
        low, high = regret_matching(-U.T, rule, iterations)
        return -high, -low
    m, n = U.shape
    x, y, r, q = np.full(m, 1 / m), np.full(n, 1 / n), np.zeros(m), np.zeros(n)
    sum_x, sum_y, weights = np.zeros(m), np.zeros(n), 0.0

    def strategy(weight: np.ndarray) -> np.ndarray:
        positive = np.maximum(weight, 0)
        return positive / positive.sum() if positive.sum() > 0 else np.full(len(weight), 1 / len(weight))

    for t in range(1, iterations + 1):
        weight = {"rm": 1.0, "rm+": t, "prm+": t * t}[rule]
        sum_x, sum_y, weights = sum_x + weight * x, sum_y + weight * y, weights + weight
        instant = U @ y - x @ U @ y
        r = r + instant if rule == "rm" else np.maximum(r + instant, 0)
        met = x  # what the other side answers
        x = strategy(r + instant if rule == "prm+" else r)
        met = met if rule == "rm" else x
        instant = met @ U @ y - met @ U
        q = q + instant if rule == "rm" else np.maximum(q + instant, 0)
        y = strategy(q + instant if rule == "prm+" else q)
    return float((sum_x / weights @ U).min()), float((U @ (sum_y / weights)).max())


def rounds(distance: np.ndarray, home: int, targets: Sequence[int], dwell: int, steps: int) -> set[frozenset[int]]:
    """Sets of targets that a round of so many nodes can stay at, by trying all orders."""
    found = {frozenset[int]()}
    for size in range(1, len(targets) + 1):
        for order in itertools.permutations(range(len(targets)), size):
            places = [home, *(targets[t] for t in order), home]
            taken = sum(distance[a, b] for a, b in itertools.pairwise(places)) + size * (dwell - 1)
            if taken <= steps - 1:
                found.add(frozenset(order))
    return found
