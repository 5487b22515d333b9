"""Exact maximum flow from one output position to one input token (or a set of them), with its minimum cut.

The network has ``depth`` rows of nodes between the source and the sink. Row 0 is fed by the source, the last row
feeds the sink, and ``middle[p, i, k]`` joins node i of row p to node k of row p + 1:

    source --supply[i]--> (0, i) --middle[0, i, k]--> (1, k) --middle[1]--> ... (depth - 1, i) --demand[i]--> sink

Dinic's algorithm (Dinic 1970), fitted to this shape:

- The first phase needs no search, since a node's distance from the source is its row. At the source the arcs are
  tried in ascending order, inside straight down first and then descending: in a causal network low positions have the
  fewest ways on and must use them first. Mostly this greedy flow already meets the staircase cut, and the sink is
  done.
- A node that leads nowhere is dead for the rest of the phase; a forest with path compression gives the nearest living
  node below an index, so arcs into dead nodes are not even read.
- Residual capacities stand in one array per thread; what one sink touched is put back from the original afterwards.
- Straight arcs also stand in an array of their own: they are read most, and strided reads of a large matrix miss the
  cache.

All that a sink's result depends on is put back before the next sink, so neither order nor threads can change a bit of
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from answerable.compiled import in_threads, kernel

Array = np.ndarray[Any, Any]

SATURATED = 1e-15  # a residual capacity up to this counts as none
MET = 1e-13  # a flow this close to the capacity of a cut has met it: values are certified to 1e-12


class Network(NamedTuple):
    """What all sinks of one source share; see the top of this file."""

    supply: Array  # (n,) float64
    middle: Array  # (depth - 1, n, n) float64, contiguous, from the output down
    straight: Array  # (depth - 1, n) float64, the diagonals of middle
    high: int  # last position that can carry flow (the source's own in a causal network)
    causal: bool


class Flows(NamedTuple):
    """One row per sink."""

    value: Array  # (m,) value of the flow found
    cut: Array  # (m, depth + 1) capacity of a minimum cut by row of arcs: supply, middle 0, 1, .., demand


class Solution(NamedTuple):
    """The flow to one sink and a minimum cut."""

    supply: Array  # (n,) flow from the source
    middle: Array  # (depth - 1, n, n) flow inside
    demand: Array  # (n,) flow into the sink
    source_side: Array  # (depth, n) bool, nodes on the source's side of the cut


def maximum_flows(
    network: Network,
    demands: Array,
    lows: Array,
    threads: int = 1,
    unpruned: tuple[Network, Array] | None = None,
) -> Flows:
    """The maximum flow into every sink.

    Parameters
    ----------
    network : supply, middle and window
    demands : (m, n) float64, what each node of the last row can send to sink m
    lows : (m,) int64, the first position that can carry flow to sink m
    threads : sinks solved at once; changes no bit of the result
    unpruned : the network and demands that these were pruned from; cuts are then counted in it, and bound its flows
        from above
    """
    m, depth = len(demands), len(network.straight) + 1
    value, cut = np.zeros(m), np.zeros((m, depth + 1))
    which = np.flatnonzero(lows <= network.high)
    priced, priced_demands = unpruned or (network, demands)

    # One residual copy for each thread, taken up and laid down by whichever run of sinks comes next.
    spare: list[Array] = []

    def solve(run: Array) -> None:
        try:
            residual = spare.pop()
        except IndexError:
            residual = network.middle.copy()
        side = np.empty((depth, network.supply.size), np.int64)
        _solve(
            run, network.supply, demands, lows, network.high, network.causal, network.middle, network.straight,
            residual, priced.supply, priced_demands, priced.middle, value, cut, side, True,
        )  # fmt: skip
        spare.append(residual)

    if len(which):
        in_threads(solve, which, threads)
    return Flows(value, cut)


def solution(network: Network, demand: Array, low: int) -> Solution:
    """The flow on every arc for one sink, the same that :func:`maximum_flows` finds, and the cut that proves it
    maximal.

    Parameters
    ----------
    network : supply, middle and window
    demand : (n,) float64
    low : the first position that can carry flow
    """
    depth, n = len(network.straight) + 1, network.supply.size
    residual = network.middle.copy()
    side = np.full((depth, n), -1, np.int64)
    if low > network.high:
        return Solution(np.zeros(n), np.zeros_like(residual), np.zeros(n), np.ones((depth, n), bool))
    left_supply, left_demand = _solve(
        np.zeros(1, np.int64), network.supply, demand[None], np.array([low]), network.high, network.causal,
        network.middle, network.straight, residual, network.supply, demand[None], network.middle, np.zeros(1),
        np.zeros((1, depth + 1)), side, False,
    )  # fmt: skip
    window = np.arange(low, network.high + 1)
    supply, into = np.zeros(n), np.zeros(n)
    supply[window] = network.supply[window] - left_supply[window]
    into[window] = demand[window] - left_demand[window]
    inside = np.ones((depth, n), bool)  # what lies outside the window never leads to the sink, or is never reached
    inside[:, window] = side[:, window] >= 0
    return Solution(supply, network.middle - residual, into, inside)


@kernel
def _nearest_living(below: Array, index: int) -> int:
    """Largest living index <= ``index`` in a forest shifted by one (root 0 stands for none), compressing the path."""
    root = index
    while below[root] != root:
        root = below[root]
    while below[index] != root:
        parent = below[index]
        below[index] = root
        index = parent
    return root


@kernel
def _first_phase(
    supply: Array,
    demand: Array,
    middle: Array,
    residual: Array,
    straight: Array,
    pointer: Array,
    wrapped: Array,
    noted: Array,
    below: Array,
    path: Array,
    bottleneck: Array,
    touched: Array,
    low: int,
    high: int,
    causal: bool,
    enough: float,
) -> tuple[float, Array, int]:
    """A blocking flow by rows, stopped once its value is ``enough``. Returns value, touched arcs and their number."""
    depth, n = pointer.shape
    value, n_touched = 0.0, 0
    for start in range(low, high + 1):
        if supply[start] <= SATURATED or below[0, start + 1] != start + 1:
            continue
        p = 0
        path[0] = start
        bottleneck[0] = supply[start]
        while True:
            i = path[p]
            if p < depth - 1:
                # Look for the first arc from (p, i) that has room and leads to a living node.
                k = pointer[p, i]
                floor = i + 1 if wrapped[p, i] else low
                living = below[p + 1]
                room = 0.0
                while True:
                    if k >= floor and living[k + 1] != k + 1:
                        k = _nearest_living(living, k + 1) - 1
                    if k < floor:
                        if causal or wrapped[p, i]:
                            break
                        wrapped[p, i] = True
                        floor, k = i + 1, high
                        continue
                    room = straight[p, i] if k == i else residual[p, i, k]
                    if room > SATURATED:
                        break
                    k -= 1
                pointer[p, i] = k
                if k >= floor:
                    p += 1
                    path[p] = k
                    bottleneck[p] = min(bottleneck[p - 1], room)
                    continue
            elif demand[i] > SATURATED:
                pushed = min(bottleneck[p], demand[i])
                value += pushed
                supply[start] -= pushed
                bottleneck[0] -= pushed
                demand[i] -= pushed
                back = depth - 1  # the row to go on from: above the first saturated arc of the path
                for q in range(depth - 2, -1, -1):
                    a, b = path[q], path[q + 1]
                    if a == b:
                        straight[q, a] -= pushed
                        room = straight[q, a]
                    else:
                        residual[q, a, b] -= pushed
                        room = residual[q, a, b]
                        if noted[q, a] != b:  # a pointer never returns to an arc, so each is noted once
                            noted[q, a] = b
                            if n_touched == touched.size:
                                longer = np.empty(2 * touched.size, np.int64)
                                longer[:n_touched] = touched
                                touched = longer
                            touched[n_touched] = (q * n + a) * n + b
                            n_touched += 1
                    bottleneck[q + 1] -= pushed
                    if room <= SATURATED:
                        back = q
                if value >= enough:
                    return value, touched, n_touched
                if supply[start] <= SATURATED:
                    break
                p = back
                if p < depth - 1 or demand[i] > SATURATED:
                    continue
            # Nothing leads on from here: (p, path[p]) is dead.
            below[p, path[p] + 1] = path[p]
            if p == 0:
                break
            p -= 1
    return value, touched, n_touched


@kernel
def _carriers(middle: Array, residual: Array, touched: Array, n_touched: int, starts: Array) -> Array:
    """Slanted arcs that carry flow, by the node they enter: those of node (p, k) begin at starts[p * n + k]."""
    n = middle.shape[1]
    starts[:] = 0
    for t in range(n_touched):
        p, i, k = touched[t] // (n * n), touched[t] // n % n, touched[t] % n
        if middle[p, i, k] - residual[p, i, k] > SATURATED:
            starts[(p + 1) * n + k + 1] += 1
    for v in range(1, starts.size):
        starts[v] += starts[v - 1]
    filled = starts[:-1].copy()
    tails = np.empty(starts[-1], np.int64)
    for t in range(n_touched):
        p, i, k = touched[t] // (n * n), touched[t] // n % n, touched[t] % n
        if middle[p, i, k] - residual[p, i, k] > SATURATED:
            v = (p + 1) * n + k
            tails[filled[v]] = i
            filled[v] += 1
    return tails


@kernel
def _distances(
    supply: Array,
    demand: Array,
    middle: Array,
    residual: Array,
    straight_capacity: Array,
    straight: Array,
    starts: Array,
    tails: Array,
    level: Array,
    unseen: Array,
    queue: Array,
    low: int,
    high: int,
    causal: bool,
) -> int:
    """Distance of every node from the source in the residual network (-1: out of reach); returns the sink's."""
    depth, n = level.shape
    level[:, low : high + 1] = -1
    for p in range(depth):
        unseen[p, low] = low  # the end of the chain: nothing below low
        for i in range(low, high + 1):
            unseen[p, i + 1] = i + 1
    n_queued = 0
    for i in range(low, high + 1):
        if supply[i] > SATURATED:
            level[0, i] = 1
            unseen[0, i + 1] = i
            queue[n_queued] = i
            n_queued += 1
    read = 0
    while read < n_queued:
        p, i = queue[read] // n, queue[read] % n
        read += 1
        if p == depth - 1:
            if demand[i] > SATURATED:
                return level[p, i] + 1
        else:
            k = _nearest_living(unseen[p + 1], (i if causal else high) + 1) - 1
            while k >= low:
                room = straight[p, i] if k == i else residual[p, i, k]
                if room > SATURATED:
                    level[p + 1, k] = level[p, i] + 1
                    unseen[p + 1, k + 1] = k
                    queue[n_queued] = (p + 1) * n + k
                    n_queued += 1
                k = _nearest_living(unseen[p + 1], k) - 1
        if p > 0:
            if level[p - 1, i] < 0 and straight_capacity[p - 1, i] - straight[p - 1, i] > SATURATED:
                level[p - 1, i] = level[p, i] + 1
                unseen[p - 1, i + 1] = i
                queue[n_queued] = (p - 1) * n + i
                n_queued += 1
            for t in range(starts[p * n + i], starts[p * n + i + 1]):
                a = tails[t]
                if level[p - 1, a] < 0:
                    level[p - 1, a] = level[p, i] + 1
                    unseen[p - 1, a + 1] = a
                    queue[n_queued] = (p - 1) * n + a
                    n_queued += 1
    return -1


@kernel
def _later_phase(
    supply: Array,
    demand: Array,
    middle: Array,
    residual: Array,
    straight_capacity: Array,
    straight: Array,
    starts: Array,
    tails: Array,
    level: Array,
    distance: int,
    forward: Array,
    backward: Array,
    path: Array,
    bottleneck: Array,
    touched: Array,
    n_touched: int,
    low: int,
    high: int,
    causal: bool,
) -> tuple[float, Array, int]:
    """A blocking flow along shortest residual paths, which may take flow back. Returns as the first phase does."""
    depth, n = level.shape
    for p in range(depth):
        for i in range(low, high + 1):
            forward[p, i] = i if causal else high
            backward[p, i] = starts[p * n + i] - 1  # -1 before the first carrier: the straight arc from above
    value = 0.0
    for start in range(low, high + 1):
        if supply[start] <= SATURATED or level[0, start] != 1:
            continue
        steps = 0
        path[0] = start
        bottleneck[0] = supply[start]
        while True:
            v = path[steps]
            p, i = v // n, v % n
            ahead = level[p, i] + 1
            following, room = -1, 0.0
            if p == depth - 1 and ahead == distance and demand[i] > SATURATED:
                pushed = min(bottleneck[steps], demand[i])
                value += pushed
                supply[start] -= pushed
                bottleneck[0] -= pushed
                demand[i] -= pushed
                back = steps
                for s in range(steps - 1, -1, -1):
                    q, a, b = path[s] // n, path[s] % n, path[s + 1] % n
                    if path[s + 1] // n > q:
                        if a == b:
                            straight[q, a] -= pushed
                            room = straight[q, a]
                        else:
                            if residual[q, a, b] == middle[q, a, b]:
                                if n_touched == touched.size:
                                    longer = np.empty(2 * touched.size, np.int64)
                                    longer[:n_touched] = touched
                                    touched = longer
                                touched[n_touched] = (q * n + a) * n + b
                                n_touched += 1
                            residual[q, a, b] -= pushed
                            room = residual[q, a, b]
                    elif a == b:
                        straight[q - 1, a] += pushed
                        room = straight_capacity[q - 1, a] - straight[q - 1, a]
                    else:
                        residual[q - 1, b, a] += pushed
                        room = middle[q - 1, b, a] - residual[q - 1, b, a]
                    bottleneck[s + 1] -= pushed
                    if room <= SATURATED:
                        back = s
                if supply[start] <= SATURATED:
                    break
                steps = back
                continue
            if ahead < distance:
                if p < depth - 1:
                    k = forward[p, i]
                    while k >= low:
                        if level[p + 1, k] == ahead:
                            room = straight[p, i] if k == i else residual[p, i, k]
                            if room > SATURATED:
                                following = (p + 1) * n + k
                                break
                        k -= 1
                    forward[p, i] = k
                if following < 0 and p > 0:
                    t = backward[p, i]
                    while t < starts[v + 1]:
                        a = i if t < starts[v] else tails[t]
                        if level[p - 1, a] == ahead:
                            if a == i:
                                room = straight_capacity[p - 1, a] - straight[p - 1, a]
                            else:
                                room = middle[p - 1, a, i] - residual[p - 1, a, i]
                            if room > SATURATED:
                                following = (p - 1) * n + a
                                break
                        t += 1
                    backward[p, i] = t
            if following >= 0:
                steps += 1
                path[steps] = following
                bottleneck[steps] = min(bottleneck[steps - 1], room)
                continue
            level[p, i] = -1  # nothing leads on from here
            if steps == 0:
                break
            steps -= 1
    return value, touched, n_touched


@kernel
def _cut_of(
    side: Array, supply: Array, demand: Array, middle: Array, low: int, high: int, causal: bool, cut: Array
) -> None:
    """Capacity, by row of arcs, of the cut between the nodes with ``side`` >= 0 (and the source) and the others."""
    depth = side.shape[0]
    cut[:] = 0.0
    for i in range(low, high + 1):
        if side[0, i] < 0:
            cut[0] += supply[i]
        if side[depth - 1, i] >= 0:
            cut[depth] += demand[i]
    for p in range(depth - 1):
        for i in range(low, high + 1):
            if side[p, i] >= 0:
                for k in range(low, (i if causal else high) + 1):
                    if side[p + 1, k] < 0:
                        cut[p + 1] += middle[p, i, k]


@kernel
def end_cut(supply: Array, demand: Array, low: int, high: int, causal: bool) -> tuple[float, int]:
    """The least cut through the two ends alone and its m: source arcs to positions above m, sink arcs from low .. m.

    In a causal network every m from low - 1 (all source arcs) to high (all sink arcs) is a cut, since nothing leads
    from a low position to a higher one; otherwise only the two ends are. Ties go to the cut nearer the source.
    """
    best, least = 0.0, low - 1
    for i in range(low, high + 1):
        best += supply[i]
    above, entering = best, 0.0
    for m in range(low, high + 1):
        above -= supply[m]
        entering += demand[m]
        if m == high:
            above = 0.0
        if (causal or m == high) and above + entering < best:
            best, least = above + entering, m
    return best, least


@kernel
def _solve(
    which: Array,
    supply: Array,
    demands: Array,
    lows: Array,
    high: int,
    causal: bool,
    middle: Array,
    straight: Array,
    residual: Array,
    priced_supply: Array,
    priced_demands: Array,
    priced_middle: Array,
    value: Array,
    cut: Array,
    side: Array,
    restore: bool,
) -> tuple[Array, Array]:
    """Solve the sinks ``which``; fills ``value`` and ``cut``, leaves the last sink's source side in ``side``.

    The cut's capacity is counted in the ``priced`` arrays, which are the network's own or those it was pruned from.

    With ``restore`` false, ``residual`` keeps what the last sink's flow left over, its diagonals included. Returns
    what the last sink's flow left over at the source and at the sink.
    """
    depth, n = straight.shape[0] + 1, supply.size
    room_supply, room_demand = np.empty(n), np.empty(n)
    room_straight = np.empty((depth - 1, n))
    pointer, noted = np.empty((depth, n), np.int64), np.empty((depth, n), np.int64)
    wrapped = np.zeros((depth, n), np.bool_)
    below = np.zeros((depth, n + 1), np.int64)
    path, bottleneck = np.empty(depth * n + 1, np.int64), np.empty(depth * n + 1)
    queue, starts = np.empty(depth * n, np.int64), np.zeros(depth * n + 1, np.int64)
    touched = np.empty(4096, np.int64)
    for w in which:
        low, demand = lows[w], demands[w]
        for i in range(low, high + 1):
            room_supply[i] = supply[i]
            room_demand[i] = demand[i]
        for p in range(depth):
            below[p, low] = low
            for i in range(low, high + 1):
                pointer[p, i] = i
                noted[p, i] = -1
                wrapped[p, i] = False
                below[p, i + 1] = i + 1
                if p < depth - 1:
                    room_straight[p, i] = straight[p, i]
        bound, m = end_cut(supply, demand, low, high, causal)
        found, touched, n_touched = _first_phase(
            room_supply, room_demand, middle, residual, room_straight, pointer, wrapped, noted, below, path, bottleneck,
            touched, low, high, causal, bound - MET,
        )  # fmt: skip
        if found >= bound - MET:
            cut[w, :] = 0.0
            for p in range(depth):
                for i in range(low, high + 1):
                    side[p, i] = 0 if i <= m else -1
            for i in range(low, high + 1):
                if i > m:
                    cut[w, 0] += priced_supply[i]
                else:
                    cut[w, depth] += priced_demands[w, i]
        else:
            while True:
                tails = _carriers(middle, residual, touched, n_touched, starts)
                distance = _distances(
                    room_supply, room_demand, middle, residual, straight, room_straight, starts, tails, side, below,
                    queue, low, high, causal,
                )  # fmt: skip
                if distance < 0:
                    break
                pushed, touched, n_touched = _later_phase(
                    room_supply, room_demand, middle, residual, straight, room_straight, starts, tails, side, distance,
                    pointer, noted, path, bottleneck, touched, n_touched, low, high, causal,
                )  # fmt: skip
                found += pushed
            _cut_of(side, priced_supply, priced_demands[w], priced_middle, low, high, causal, cut[w])
        value[w] = found
        if restore:
            for t in range(n_touched):
                p, i, k = touched[t] // (n * n), touched[t] // n % n, touched[t] % n
                residual[p, i, k] = middle[p, i, k]
        else:
            for p in range(depth - 1):
                for i in range(low, high + 1):
                    residual[p, i, i] = room_straight[p, i]
    return room_supply, room_demand
