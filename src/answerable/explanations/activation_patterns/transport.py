"""Least cost of moving mass to a few places of limited room: the transport problem behind the earth mover's distance.

Successive shortest paths over the k places only. Mass is brought in source by source; if the nearest place is full,
what makes room there moves on along the cheapest chain of places, where a step from place v to w costs as much as the
cheapest source now served at v pays to go to w instead, the top of a heap. A thousand sources and eight places are
paths among eight nodes, not a linear program of eight thousand unknowns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from answerable.compiled import kernel
from answerable.statistics import Floats

NOTHING = 1e-15  # mass that counts as none; all masses sum to about 1
SAME = 1e-11  # costs that differ by less are equal; otherwise rounding closes chains into circles


FIRST_ROOM = 64  # sources that a heap has room for at first


@kernel
def _push(keys, sources, sizes, heap, key, source):  # type: ignore[no-untyped-def]
    """Put a source on a heap, the cheapest at the top, equal ones in their order."""
    place = sizes[heap]
    sizes[heap] += 1
    while place > 0:
        above = (place - 1) >> 1
        if keys[heap, above] < key or (keys[heap, above] == key and sources[heap, above] <= source):
            break
        keys[heap, place], sources[heap, place] = keys[heap, above], sources[heap, above]
        place = above
    keys[heap, place], sources[heap, place] = key, source


@kernel
def _pop(keys, sources, sizes, heap):  # type: ignore[no-untyped-def]
    """Take the top off a heap."""
    sizes[heap] -= 1
    size = sizes[heap]
    key, source = keys[heap, size], sources[heap, size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and (
            keys[heap, below + 1] < keys[heap, below]
            or (keys[heap, below + 1] == keys[heap, below] and sources[heap, below + 1] < sources[heap, below])
        ):
            below += 1
        if key < keys[heap, below] or (key == keys[heap, below] and source <= sources[heap, below]):
            break
        keys[heap, place], sources[heap, place] = keys[heap, below], sources[heap, below]
        place = below
    keys[heap, place], sources[heap, place] = key, source


@kernel
def _serve(cost, flow, keys, sources, sizes, u, v):  # type: ignore[no-untyped-def]
    """Note that source u is now served at place v; heaps that are full are cleared of those that left, or doubled."""
    k = cost.shape[1]
    for w in range(k):
        heap = v * k + w
        if w == v:
            continue
        if sizes[heap] == keys.shape[1]:
            kept = 0
            old_keys, old_sources = keys[heap].copy(), sources[heap].copy()
            stays = np.zeros(len(flow), np.bool_)
            for place in range(len(old_keys)):
                stays[old_sources[place]] = flow[old_sources[place], v] > NOTHING
            sizes[heap] = 0
            for place in range(len(old_keys)):
                if stays[old_sources[place]]:
                    stays[old_sources[place]] = False
                    _push(keys, sources, sizes, heap, old_keys[place], old_sources[place])
                    kept += 1
            if 2 * kept > keys.shape[1]:
                more_keys = np.empty((k * k, 2 * keys.shape[1]))
                more_sources = np.empty((k * k, 2 * keys.shape[1]), np.int32)
                more_keys[:, : keys.shape[1]], more_sources[:, : keys.shape[1]] = keys, sources
                keys, sources = more_keys, more_sources
        _push(keys, sources, sizes, heap, cost[u, w] - cost[u, v], u)
    return keys, sources


@kernel
def _transport(mass, cost, room):  # type: ignore[no-untyped-def]
    n, k = cost.shape
    flow, left = np.zeros((n, k)), room.copy()
    # One heap for each pair of places v and w: the sources served at v, by what they pay more at w.
    keys, sources = np.empty((k * k, FIRST_ROOM)), np.empty((k * k, FIRST_ROOM), np.int32)
    sizes = np.zeros(k * k, np.int64)
    step, mover = np.full((k, k), np.inf), np.full((k, k), -1)
    distance, before, fresh = np.empty(k), np.empty(k, np.int64), np.zeros(k, np.bool_)
    for u in range(n):
        while mass[u] > NOTHING:
            for v in range(k):
                if fresh[v]:
                    for w in range(k):
                        heap = v * k + w
                        while sizes[heap] > 0 and flow[sources[heap, 0], v] <= NOTHING:
                            _pop(keys, sources, sizes, heap)
                        step[v, w], mover[v, w] = np.inf, -1
                        if sizes[heap] > 0:
                            step[v, w], mover[v, w] = keys[heap, 0], sources[heap, 0]
                    fresh[v] = False
            # Shortest chain from u to a place with room; steps may save cost, so Bellman-Ford.
            for v in range(k):
                distance[v], before[v] = cost[u, v], -1
            changed = True
            rounds = 0
            while changed and rounds < k:
                changed = False
                rounds += 1
                for v in range(k):
                    if left[v] > NOTHING:
                        continue  # a chain ends where there is room
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
            w = end
            while before[w] >= 0:
                v = before[w]
                shifted = mover[v, w]
                flow[shifted, v] -= moved
                fresh[v] = fresh[v] or flow[shifted, v] <= NOTHING
                if flow[shifted, w] <= NOTHING:
                    keys, sources = _serve(cost, flow, keys, sources, sizes, shifted, w)
                    fresh[w] = True
                flow[shifted, w] += moved
                w = v
            if flow[u, w] <= NOTHING:
                keys, sources = _serve(cost, flow, keys, sources, sizes, u, w)
                fresh[w] = True
            flow[u, w] += moved
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
