"""Least cost of moving mass to a few places of limited room: the transport problem behind the earth mover's distance.

Successive shortest paths over the k places only. Mass is brought in source by source; if the nearest place is full,
what makes room there moves on along the cheapest chain of places, where a step from place v to w costs as much as the
cheapest source now served at v pays to go to w instead. A thousand sources and eight places are paths among eight
nodes, not a linear program of eight thousand unknowns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from answerable.compiled import kernel
from answerable.statistics import Floats

NOTHING = 1e-15  # mass that counts as none; all masses sum to about 1
SAME = 1e-11  # costs that differ by less are equal; otherwise rounding closes chains into circles


@kernel
def _cheapest_moves(cost, flow, v, step, mover):  # type: ignore[no-untyped-def]
    """Look up anew which source at place v pays least to go to each other place."""
    k = cost.shape[1]
    for w in range(k):
        step[v, w], mover[v, w] = np.inf, -1
    for u in range(cost.shape[0]):
        if flow[u, v] > NOTHING:
            for w in range(k):
                dearer = cost[u, w] - cost[u, v]
                if dearer < step[v, w]:
                    step[v, w], mover[v, w] = dearer, u


@kernel
def _transport(mass, cost, room):  # type: ignore[no-untyped-def]
    n, k = cost.shape
    flow = np.zeros((n, k))
    left = room.copy()
    step, mover = np.full((k, k), np.inf), np.full((k, k), -1)
    distance, before, done = np.empty(k), np.empty(k, np.int64), np.empty(k, np.bool_)
    for u in range(n):
        while mass[u] > NOTHING:
            # Shortest chain from u to a place with room; steps may save cost, so Bellman-Ford.
            for v in range(k):
                distance[v], before[v] = cost[u, v], -1
            changed = True
            rounds = 0
            while changed and rounds < k:
                changed = False
                rounds += 1
                for v in range(k):
                    for w in range(k):
                        if distance[v] + step[v, w] < distance[w] - SAME:
                            distance[w], before[w], changed = distance[v] + step[v, w], v, True
            end, best = -1, np.inf
            for v in range(k):
                if left[v] > NOTHING and distance[v] < best - SAME:
                    end, best = v, distance[v]
            if end < 0:  # rounding alone left no room
                for v in range(k):
                    if cost[u, v] < best:
                        end, best = v, cost[u, v]
                flow[u, end] += mass[u]
                mass[u] = 0.0
                break
            moved = min(mass[u], left[end])
            w = end
            while before[w] >= 0:
                v = before[w]
                moved = min(moved, flow[mover[v, w], v])
                w = v
            done[:] = False
            w = end
            while before[w] >= 0:
                v = before[w]
                shifted = mover[v, w]
                flow[shifted, v] -= moved
                flow[shifted, w] += moved
                done[v] = done[v] or flow[shifted, v] <= NOTHING
                for other in range(k):
                    dearer = cost[shifted, other] - cost[shifted, w]
                    if other != w and dearer < step[w, other]:
                        step[w, other], mover[w, other] = dearer, shifted
                w = v
            flow[u, w] += moved
            for other in range(k):
                dearer = cost[u, other] - cost[u, w]
                if other != w and dearer < step[w, other]:
                    step[w, other], mover[w, other] = dearer, u
            for v in range(k):
                if done[v]:
                    _cheapest_moves(cost, flow, v, step, mover)
                    step[v, v] = np.inf
            mass[u] -= moved
            left[end] -= moved
    total = 0.0
    for u in range(n):
        for v in range(k):
            if flow[u, v] > 0:
                total += flow[u, v] * cost[u, v]
    return total, flow


def least_transport(mass: Floats, cost: Floats, room: Floats) -> tuple[float, Any]:
    """Least cost of bringing all mass to places of limited room.

    Parameters
    ----------
    mass : (n,) float64 >= 0, at each source; their sum at most that of ``room``, up to rounding
    cost : (n, k) float64 >= 0, of one unit from source to place
    room : (k,) float64 >= 0

    Returns
    -------
    the cost, and the (n, k) float64 plan that has it
    """
    # Heavy sources first would not help: the order changes the work, never the least cost.
    total, plan = _transport(
        np.array(mass, dtype=np.float64), np.ascontiguousarray(cost, dtype=np.float64), np.array(room, dtype=np.float64)
    )
    return float(total), plan
