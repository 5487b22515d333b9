"""Regret matching in zero-sum games: RM, RM+ and PRM+, each iteration in one pass over the matrix.

The longer side's strategy is updated block by block: its payoffs against the other's strategy, its regrets, its new
strategy (not yet normalised) and that strategy's payoffs to the other side are all made while the block is in cache.
The value of the iterate, which every regret is taken against, is known beforehand: it is the product of the other
side's payoffs, from the pass before, with its strategy.

- ``rm``: both update at once, regrets keep their sign, averages are plain (Hart and Mas-Colell 2000).
- ``rm+``: they update in turn, regrets are clipped at 0, averages weigh iterate t by t (Tammelin 2014).
- ``prm+``: as RM+, and each strategy takes the last instantaneous regret for the next; weights t^2 (Farina, Kroer and
  Sandholm 2021).

The first iterate is uniform, and so is every one without positive regret.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

from .minimax import Floats, Minimax, certificate, checked, pinned

Rule = Literal["rm", "rm+", "prm+"]
_RULES: tuple[Rule, ...] = ("rm", "rm+", "prm+")
LONG_ROW = 64  # from here on a row of the shorter side's length is long enough to be walked along
BLOCK_BYTES = 262_144  # of the matrix, so that the second look at a block finds it in cache


class _State(NamedTuple):
    """Regrets, strategies before normalisation, and sums of averages, of the longer and of the shorter side."""

    regret: Floats
    weight: Floats
    average: Floats
    other_regret: Floats
    other: Floats
    other_average: Floats
    total: Floats  # (3,) of the longer side's weights; of the averaging weights; the iteration


def regret_matching(
    payoffs: npt.ArrayLike, *, rule: Rule = "prm+", iterations: int = 10_000, tolerance: float = 0.0, check: int = 0
) -> Minimax:
    """Approximate strategies by playing against each other.

    Parameters
    ----------
    payoffs : (m, n) what the row player receives
    rule : how regrets become strategies
    iterations : at most
    tolerance : stop when a check finds the gap at most this, in the unit of the payoffs
    check : iterations between two looks at the gap of the averages; by default 32 looks, doubling

    Returns
    -------
    Minimax; ``history`` has multiplications, low and high of each look
    """
    U = checked(payoffs)
    turned = U.shape[0] < U.shape[1]  # then the columns are the longer side, and what they receive is -U
    by_rows = min(U.shape) >= LONG_ROW
    A = (-U.T if turned else U) if by_rows else (-U if turned else U.T)
    A = np.ascontiguousarray(A)
    state = _start(min(U.shape), max(U.shape))
    kind, per_iteration = _RULES.index(rule), 2.0 * A.size
    history: list[tuple[float, float, float]] = []
    done = 0
    while True:
        todo = min(check or max(1, done // 2), iterations - done)
        with pinned(1):
            _play(A, by_rows, kind, todo, _block(min(A.shape)), *state)
            row, column = _averages(state, turned)
            low, high = certificate(U, row, column)
        done += todo
        history.append((done * per_iteration, low, high))
        if done >= iterations or high - low <= tolerance:
            return Minimax(low, high, row, column, rule, done, np.array(history))


def _start(n_short: int, n_long: int) -> _State:
    return _State(
        np.zeros(n_long), np.ones(n_long), np.zeros(n_long), np.zeros(n_short), np.full(n_short, 1.0 / n_short),
        np.zeros(n_short), np.array([float(n_long), 0.0, 0.0]),
    )  # fmt: skip


def _averages(state: _State, turned: bool) -> tuple[Floats, Floats]:
    long, short = state.average / state.average.sum(), state.other_average / state.other_average.sum()
    return (short, long) if turned else (long, short)


def _block(n_short: int) -> int:
    return max(8, BLOCK_BYTES // (8 * n_short) // 8 * 8)


@kernel
def _play(A, by_rows, rule, iterations, block, r, w, average, r_other, y, average_other, totals):  # type: ignore[no-untyped-def]
    """Iterate in place. What the longer side receives for i against j is ``A[i, j]`` by rows, else ``A[j, i]``."""
    n_long, n_short = len(r), len(y)
    gained = np.empty(n_short)  # what the longer side's strategy receives against each j
    received = np.empty(n_short)
    u = np.empty(block)
    total, weights, t = totals[0], totals[1], totals[2]
    _against(A, by_rows, w, total, gained)
    for _ in range(iterations):
        t += 1.0
        share = 1.0 if rule == 0 else (t if rule == 1 else t * t)
        weights += share
        value = 0.0
        for j in range(n_short):
            average_other[j] += share * y[j]
            value += gained[j] * y[j]
        part = share / total
        new_total = 0.0
        received[:] = 0.0
        for begin in range(0, n_long, block):
            end = min(begin + block, n_long)
            size = end - begin
            if by_rows:
                _payoffs_by_rows(A, y, begin, end, u)
            else:
                _payoffs(A, y, begin, end, u)
            block_total = 0.0
            for i in range(size):
                k = begin + i
                average[k] += part * w[k]
                instant = u[i] - value
                regret = r[k] + instant
                if rule > 0:
                    regret = max(regret, 0.0)
                r[k] = regret
                ahead = regret + instant if rule == 2 else regret
                w[k] = max(ahead, 0.0)
                block_total += w[k]
            new_total += block_total
            if block_total > 0.0:
                if by_rows:
                    _gather_by_rows(A, w, begin, end, received)
                else:
                    _gather(A, w, begin, end, received)
        if rule == 0:  # both at once: the other side answers the strategy that this pass began with
            for j in range(n_short):
                r_other[j] += value - gained[j]
        if new_total > 0.0:
            for j in range(n_short):
                gained[j] = received[j] / new_total
            total = new_total
        else:
            w[:] = 1.0
            total = float(n_long)
            _against(A, by_rows, w, total, gained)
        value = 0.0
        for j in range(n_short):
            value += gained[j] * y[j]
        other_total = 0.0
        for j in range(n_short):
            ahead = r_other[j]
            if rule > 0:
                instant = value - gained[j]
                r_other[j] = max(r_other[j] + instant, 0.0)
                ahead = r_other[j] + instant if rule == 2 else r_other[j]
            y[j] = max(ahead, 0.0)
            other_total += y[j]
        for j in range(n_short):
            y[j] = y[j] / other_total if other_total > 0.0 else 1.0 / n_short
    totals[0], totals[1], totals[2] = total, weights, t


@kernel
def _against(A, by_rows, w, total, gained):  # type: ignore[no-untyped-def]
    """What a strategy receives against each of the other side."""
    gained[:] = 0.0
    for i in range(len(w)):
        for j in range(len(gained)):
            gained[j] += w[i] * (A[i, j] if by_rows else A[j, i])
    gained /= total


@kernel
def _payoffs(A, y, begin, end, u):  # type: ignore[no-untyped-def]
    """What each of a block receives against ``y``."""
    size = end - begin
    u[:size] = 0.0
    for j in range(len(y)):
        if y[j] != 0.0:
            against = A[j, begin:end]
            weight = y[j]
            for i in range(size):
                u[i] += weight * against[i]


@kernel
def _payoffs_by_rows(A, y, begin, end, u):  # type: ignore[no-untyped-def]
    np.dot(A[begin:end], y, u[: end - begin])


@kernel
def _gather(A, w, begin, end, received):  # type: ignore[no-untyped-def]
    """Add the payoffs of a block's strategy against each of the other side."""
    for j in range(A.shape[0]):
        received[j] += _product(A[j, begin:end], w[begin:end])


@kernel
def _gather_by_rows(A, w, begin, end, received):  # type: ignore[no-untyped-def]
    # four rows at a time: each partial sum is written once instead of four times
    for i in range(begin, end - 3, 4):
        a, b, c, d = w[i], w[i + 1], w[i + 2], w[i + 3]
        if a > 0.0 or b > 0.0 or c > 0.0 or d > 0.0:
            for j in range(A.shape[1]):
                received[j] += (a * A[i, j] + b * A[i + 1, j]) + (c * A[i + 2, j] + d * A[i + 3, j])
    for i in range(begin + (end - begin) // 4 * 4, end):
        if w[i] > 0.0:
            for j in range(A.shape[1]):
                received[j] += w[i] * A[i, j]


@kernel
def _product(a, b):  # type: ignore[no-untyped-def]
    """Inner product in eight partial sums: fast without leaving the order of the sum to the compiler."""
    l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = 0.0
    whole = len(a) // 8 * 8
    for i in range(0, whole, 8):
        l0 += a[i] * b[i]
        l1 += a[i + 1] * b[i + 1]
        l2 += a[i + 2] * b[i + 2]
        l3 += a[i + 3] * b[i + 3]
        l4 += a[i + 4] * b[i + 4]
        l5 += a[i + 5] * b[i + 5]
        l6 += a[i + 6] * b[i + 6]
        l7 += a[i + 7] * b[i + 7]
    rest = 0.0
    for i in range(whole, len(a)):
        rest += a[i] * b[i]
    return ((l0 + l4) + (l1 + l5)) + ((l2 + l6) + (l3 + l7)) + rest
