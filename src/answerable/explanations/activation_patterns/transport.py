"""Least cost of bringing mass to a few places of limited room: the transport problem behind the earth mover's distance.

Every place has a price, and each source goes where its cost plus the price is least. Under the right prices all places
are just filled. Runs of neighbouring sources, taken together, tell the prices nearly; then what is too much at one
place moves on to one that lacks, along the cheapest chain of places, until nothing is left over. A step from place v to
w costs what the cheapest source now served at v pays to go to w instead, the top of a heap; sources that would lose
much are kept off the heap until the others are used up. Four thousand sources and eight places are some hundred chains
among eight nodes, not a linear program of thirty thousand unknowns.

Whatever the prices, sources that went by them are served at least cost for the loads that came about, and each cheapest
chain keeps it so: the prices decide how much work there is, never the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from answerable.compiled import kernel
from answerable.errors import BadInput
from answerable.statistics import Floats

NOTHING = 1e-15  # mass that counts as none; all masses sum to about 1
SPARE_ROOM = 64  # sources that a heap takes beyond twice those it begins with
MANY_SOURCES = 256  # beyond it sources are first placed in runs, for the prices
MOST_PLACES = 1000  # there is a heap for each pair of places: more would fill the memory
TOGETHER = (64, 8)  # sources of a run, at first and then
NEAR = 1 / 32  # of the largest cost: a source that would lose more by going elsewhere is kept off the heaps at first
FARTHER = 8.0  # times as much it may lose when that was not enough


@kernel
def _sift_down(keys, sources, size, place):  # type: ignore[no-untyped-def]
    """Bring the entry at a place down to where no entry below it is cheaper; equal ones stand in their order."""
    key, source = keys[place], sources[place]
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and (
            keys[below + 1] < keys[below] or (keys[below + 1] == keys[below] and sources[below + 1] < sources[below])
        ):
            below += 1
        if key < keys[below] or (key == keys[below] and source <= sources[below]):
            break
        keys[place], sources[place] = keys[below], sources[below]
        place = below
    keys[place], sources[place] = key, source


@kernel
def _push(keys, sources, size, key, source):  # type: ignore[no-untyped-def]
    """Put a source on a heap of ``size`` entries."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] < key or (keys[above] == key and sources[above] <= source):
            break
        keys[place], sources[place] = keys[above], sources[above]
        place = above
    keys[place], sources[place] = key, source


@kernel
def _heaps(cost, flow, most):  # type: ignore[no-untyped-def]
    """One heap for each pair of places v and w: the sources served at v that pay at most ``most[v, w]`` more at w.

    Heap ``v k + w`` lies at ``begins[v k + w] : begins[v k + w + 1]``; ``left_out`` says where a source would pay more.
    """
    n, k = cost.shape
    served = np.zeros(k, np.int64)
    for u in range(n):
        for v in range(k):
            served[v] += flow[u, v] > NOTHING
    begins, sizes = np.zeros(k * k + 1, np.int64), np.zeros(k * k, np.int64)
    for heap in range(k * k):
        begins[heap + 1] = begins[heap] + 2 * served[heap // k] + SPARE_ROOM
    keys, sources, left_out = np.empty(begins[-1]), np.empty(begins[-1], np.int32), np.zeros(k * k, np.bool_)
    for u in range(n):
        for v in range(k):
            if flow[u, v] > NOTHING:
                for w in range(k):
                    heap, key = v * k + w, cost[u, w] - cost[u, v]
                    if key > most[v, w]:
                        left_out[heap] = True
                    elif v != w:
                        keys[begins[heap] + sizes[heap]], sources[begins[heap] + sizes[heap]] = key, u
                        sizes[heap] += 1
    for heap in range(k * k):
        first, size = begins[heap], sizes[heap]
        for place in range(size // 2 - 1, -1, -1):
            _sift_down(keys[first : first + size], sources[first : first + size], size, place)
    return begins, sizes, keys, sources, left_out


@kernel
def _cheapest_steps(v, flow, heaps, step, mover):  # type: ignore[no-untyped-def]
    """The cheapest source that can go from v to each other place, after those that left v are taken off its heaps.

    Whether they are known: no heap ran empty that had sources left out.
    """
    begins, sizes, keys, sources, left_out = heaps
    k, known = flow.shape[1], True
    for w in range(k):
        heap = v * k + w
        first = begins[heap]
        while sizes[heap] > 0 and flow[sources[first], v] <= NOTHING:
            sizes[heap] -= 1
            size = sizes[heap]
            keys[first], sources[first] = keys[first + size], sources[first + size]
            _sift_down(keys[first : first + size], sources[first : first + size], size, 0)
        step[v, w], mover[v, w] = np.inf, -1
        if sizes[heap] > 0:
            step[v, w], mover[v, w] = keys[first], sources[first]
        elif left_out[heap]:
            known = False
    return known


@kernel
def _most(prices, near):  # type: ignore[no-untyped-def]
    """What a source served at v may pay more at w to be on that heap: ``near`` more than the prices make up for."""
    k = len(prices)
    most = np.empty((k, k))
    for v in range(k):
        for w in range(k):
            most[v, w] = prices[v] - prices[w] + near
    return most


@kernel
def _cheapest_chain(start, excess, step, prices, distance, before):  # type: ignore[no-untyped-def]
    """The place with room left that is cheapest to reach from ``start``, -1 if none; ``before`` holds the way to it.

    A step and the prices at its ends together never save anything, so Dijkstra. The prices are then moved so that it
    stays so: the steps of the chain cost nothing more.
    """
    k = len(excess)
    done = np.zeros(k, np.bool_)
    distance[:] = np.inf
    distance[start] = 0.0
    end = -1
    while end < 0:
        v = -1
        for w in range(k):
            if not done[w] and distance[w] < np.inf and (v < 0 or distance[w] < distance[v]):
                v = w
        if v < 0:
            return -1
        done[v] = True
        if excess[v] < -NOTHING:
            end = v
        for w in range(k):
            # it falls below 0 by rounding only
            through = distance[v] + max(step[v, w] + prices[w] - prices[v], 0.0)
            if not done[w] and through < distance[w]:
                distance[w], before[w] = through, v
    for v in range(k):
        prices[v] -= min(distance[v], distance[end])
    return end


@kernel
def _transport(mass, cost, room, prices, flow):  # type: ignore[no-untyped-def]
    """Write the cheapest plan into ``flow`` and its prices into ``prices``; mass and room have the same sum."""
    n, k = cost.shape
    excess = -room
    for u in range(n):
        cheapest = 0
        for v in range(1, k):
            if cost[u, v] + prices[v] < cost[u, cheapest] + prices[cheapest]:
                cheapest = v
        flow[u, cheapest] = mass[u]
        excess[cheapest] += mass[u]
    near = NEAR * cost.max()
    most = _most(prices, near)
    heaps = _heaps(cost, flow, most)
    step, mover = np.full((k, k), np.inf), np.full((k, k), -1)
    distance, before, fresh = np.empty(k), np.empty(k, np.int64), np.ones(k, np.bool_)
    while True:
        known = True
        for v in range(k):
            if fresh[v]:
                known = _cheapest_steps(v, flow, heaps, step, mover) and known
                fresh[v] = False
        if not known:
            near *= FARTHER
            most = _most(prices, near)
            heaps = _heaps(cost, flow, most)
            fresh[:] = True
            continue
        start = int(np.argmax(excess))
        if excess[start] <= NOTHING:
            break
        end = _cheapest_chain(start, excess, step, prices, distance, before)
        if end < 0:  # no more than rounding is left over
            break
        moved = min(excess[start], -excess[end])
        w = end
        while w != start:
            v = before[w]
            moved = min(moved, flow[mover[v, w], v])
            w = v
        w, crowded = end, False
        while w != start:
            v = before[w]
            u = mover[v, w]
            flow[u, v] -= moved
            fresh[v] = fresh[v] or flow[u, v] <= NOTHING
            if flow[u, w] <= NOTHING:
                begins, sizes, keys, sources, left_out = heaps
                fresh[w] = True
                for x in range(k):
                    heap, key = w * k + x, cost[u, x] - cost[u, w]
                    if key > most[w, x]:
                        left_out[heap] = True
                    elif begins[heap] + sizes[heap] == begins[heap + 1]:
                        crowded = True
                    elif x != w:
                        first, beyond = begins[heap], begins[heap + 1]
                        _push(keys[first:beyond], sources[first:beyond], sizes[heap], key, u)
                        sizes[heap] += 1
            flow[u, w] += moved
            w = v
        excess[start] -= moved
        excess[end] += moved
        if crowded:
            heaps = _heaps(cost, flow, most)
            fresh[:] = True


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

    Raises
    ------
    BadInput : more than ``MOST_PLACES`` places
    """
    if len(room) > MOST_PLACES:
        what, mend = (
            f"mass is to be moved to {len(room)} places",
            f"give a coarser map, of at most {MOST_PLACES} of them",
        )
        raise BadInput(what, where="truth", mend=mend)
    # Room that is left over goes to a source of its own, at no cost.
    spare = max(0.0, float(room.sum() - mass.sum()))
    masses = np.append(np.asarray(mass, dtype=np.float64), spare)
    costs = np.vstack([cost, np.zeros((1, len(room)))])
    rooms, prices = np.array(room, dtype=np.float64), np.zeros(len(room))
    for together in TOGETHER if len(masses) > MANY_SOURCES else ():
        # Neighbours pay alike: a run of them, taken together where they are on average, is as good for the prices.
        starts = np.append(np.arange(0, len(masses) - 1, together), len(masses) - 1)
        some = np.add.reduceat(masses, starts)
        means = np.add.reduceat(costs, starts) / np.diff(np.append(starts, len(masses)))[:, None]
        _transport(some, means, rooms, prices, np.zeros(means.shape))
    flow = np.zeros(costs.shape)
    _transport(masses, costs, rooms, prices, flow)
    return float((flow * costs).sum()), flow[:-1]
