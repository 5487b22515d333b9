"""From capacities to the maximum-flow problems of one output, and their flows and cuts layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .maximum_flow import Flows, Network, maximum_flows
from .network import Array, Capacities


def flows_from(
    capacities: Capacities,
    start: int,
    members: Sequence[tuple[int, ...]],
    threads: int,
    unpruned: Capacities | None = None,
) -> Flows:
    """Maximum flows from ``start`` to every sink, with the capacity of a minimum cut per layer from the output down."""
    demands, lows = demands_of(capacities, members)
    if len(capacities.down) == 1:
        value = demands[:, start].copy()
        priced = value if unpruned is None else demands_of(unpruned, members)[0][:, start]
        return Flows(value, priced[:, None].copy())
    original = None if unpruned is None else (network_of(unpruned, start), demands_of(unpruned, members)[0])
    return maximum_flows(network_of(capacities, start), demands, lows, threads, original)


def network_of(capacities: Capacities, start: int) -> Network:
    """What all sinks of one output share."""
    down = capacities.down
    straight = np.ascontiguousarray(np.diagonal(down[1:-1], axis1=1, axis2=2))
    high = start if capacities.causal else down.shape[-1] - 1
    return Network(down[0, start], down[1:-1], straight, high, capacities.causal)


def demands_of(capacities: Capacities, members: Sequence[tuple[int, ...]]) -> tuple[Array, Array]:
    """What each position can send to each sink in the first layer, and the first position that can: (m, n) and (m,)."""
    first = capacities.down[-1]
    if all(len(one) == 1 for one in members):
        demands = np.ascontiguousarray(first[:, [one[0] for one in members]].T)
    else:
        demands = np.stack([first[:, list(one)].sum(axis=1) for one in members])
    lows = [min(one) if capacities.causal else 0 for one in members]
    return demands, np.array(lows, np.int64)


def demand_of(capacities: Capacities, members: Sequence[int]) -> tuple[Array, int]:
    """The same for one sink: (n,) and the position."""
    demands, lows = demands_of(capacities, [tuple(members)])
    return demands[0], int(lows[0])
