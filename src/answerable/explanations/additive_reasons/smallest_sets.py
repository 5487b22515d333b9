"""The cheapest set of features that passes a test which every larger set passes too.

Reasons and changes are two sides of one thing: a set settles a decision exactly if it has a feature in common with
every set whose change can flip it, and the other way round. So each set that fails is grown as far as it still fails,
what is left outside must be hit by every set that passes, and the next candidate is the cheapest that hits all of
these. The first candidate that passes is cheapest of all; every one before is a lower bound. Going on with candidates
that contain none of those found gives every set that passes and from which nothing can be left out, the smallest first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .covers import least_gap

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MOST_TESTS = 20_000
MOST_NODES = 20_000
_ROUNDED = 1e-15  # part by which a sum of few costs may be off


class SmallestSet(NamedTuple):
    """A set that passes a test which larger sets pass too.

    chosen : (n_features,) bool
    cost : of the set; the number of its features by default
    bound : no set that passes is cheaper
    """

    chosen: Bools
    cost: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no cheaper set passes."""
        return self.bound >= self.cost * (1 - _ROUNDED)


def smallest_set(
    passes: Callable[[Bools], bool],
    order: Sequence[int],
    n_features: int,
    *,
    costs: Floats | None = None,
    most_tests: int = MOST_TESTS,
    most_nodes: int = MOST_NODES,
) -> SmallestSet | None:
    """The cheapest set of features that passes; None where all of them together do not.

    Parameters
    ----------
    passes : monotone: what contains a set that passes does too
    order : features that may be chosen, the most useful first
    n_features : how many there are
    costs : (n_features,) above 0; 1 each by default
    most_tests : tests at most; beyond, the set is minimal under inclusion and the bound below its cost
    most_nodes : steps at most of each search for the cheapest set that hits all
    """
    prices = np.ones(n_features) if costs is None else np.asarray(costs, np.float64)
    everything = _chosen(order, n_features)
    if not passes(everything):
        return None
    tests = 1

    def asked(members: Sequence[int]) -> bool:
        nonlocal tests
        tests += 1
        return passes(_chosen(members, n_features))

    # the dearest and least useful are left out first
    best = list(order)
    for j in sorted(order, key=lambda j: (-prices[j], -order.index(j))):
        without = [k for k in best if k != j]
        if asked(without):
            best = without
    must_hit: list[list[int]] = []
    bound = 0.0
    while tests < most_tests:
        candidate, lower = cheapest_hit(must_hit, order, prices, at_least=bound, most_nodes=most_nodes)
        bound = max(bound, lower)
        cost = float(prices[best].sum())
        if bound > cost - least_gap(prices, cost):
            break
        assert candidate is not None, "the set of all hits every set"
        if asked(candidate):
            best = candidate if prices[candidate].sum() < prices[best].sum() else best
            break
        must_hit.append(_outside(candidate, order, asked))
    cost = float(prices[best].sum())
    if bound > cost - least_gap(prices, cost):
        bound = cost
    return SmallestSet(_chosen(best, n_features), cost, bound)


def minimal_sets(
    passes: Callable[[Bools], bool],
    order: Sequence[int],
    n_features: int,
    *,
    most: int,
    most_tests: int = MOST_TESTS,
    most_nodes: int = MOST_NODES,
) -> tuple[list[Bools], bool]:
    """Every set of features that passes and from which none can be left out, the smallest first.

    Parameters
    ----------
    passes, order, n_features, most_nodes : as in :func:`smallest_set`
    most : sets at most
    most_tests : tests at most

    Returns
    -------
    the sets, each (n_features,) bool; whether there are no others
    """
    tests = 0

    def asked(members: Sequence[int]) -> bool:
        nonlocal tests
        tests += 1
        return passes(_chosen(members, n_features))

    found: list[list[int]] = []
    must_hit: list[list[int]] = []
    complete = not asked(order)
    prices = np.ones(n_features)
    while not complete and tests < most_tests:
        candidate, bound = cheapest_hit(must_hit, order, prices, avoid=found, most_nodes=most_nodes)
        if candidate is None:
            complete = bound == math.inf
            break
        if asked(candidate):
            if len(found) == most:
                break
            # a smaller set that passes would hit all sets too, and would have come first
            found.append(candidate)
        else:
            must_hit.append(_outside(candidate, order, asked))
    return [_chosen(one, n_features) for one in found], complete


def _outside(failing: Sequence[int], order: Sequence[int], asked: Callable[[Sequence[int]], bool]) -> list[int]:
    """What is left outside once a set that fails is grown as far as it still fails."""
    grown = list(failing)
    for j in order:
        if j not in grown and not asked([*grown, j]):
            grown.append(j)
    return [j for j in order if j not in grown]


def cheapest_hit(
    sets: Sequence[Sequence[int]], order: Sequence[int], prices: Floats, *, at_least: float = 0.0,
    avoid: Sequence[Sequence[int]] = (), most_nodes: int = MOST_NODES,
) -> tuple[list[int] | None, float]:  # fmt: skip
    """The cheapest set that has something in common with each of the sets, and a bound of its cost from below.

    Parameters
    ----------
    sets : none of them empty
    order : what they are made of, the most useful first: of equally cheap sets it is the first
    prices : of each number
    at_least : cost that is known to be needed: the search ends once it is reached
    avoid : sets that it must not contain
    most_nodes : steps at most; beyond, the bound is smaller than the cost

    Returns
    -------
    the set; None where there is none that avoids all, and then the bound is infinite, or where none was found in time
    bound : none is cheaper
    """
    rank = {j: place for place, j in enumerate(order)}
    best: list[int] | None = None if avoid else _greedy_hit(sets, prices, rank)
    best_cost = math.inf if best is None else float(prices[best].sum())
    gap = 0.0 if best is None else least_gap(prices, best_cost)
    avoided = [frozenset(one) for one in avoid]
    counter = 0
    # best first by bound: (bound, rank of the set so far, number, chosen, forbidden)
    heap: list[tuple[float, list[int], int, list[int], frozenset[int]]] = [(at_least, [], 0, [], frozenset())]
    while heap:
        bound, ranks, _, chosen, forbidden = heapq.heappop(heap)
        if bound > best_cost - gap or counter >= most_nodes:
            heapq.heappush(heap, (bound, ranks, 0, chosen, forbidden))
            break
        if any(one.issubset(chosen) for one in avoided):
            continue
        unhit = [s for s in sets if not any(j in chosen for j in s)]
        if not unhit:
            return chosen, max(bound, at_least)
        fewest = min(([j for j in s if j not in forbidden] for s in unhit), key=len)
        branch = sorted(fewest, key=rank.__getitem__)
        for place, j in enumerate(branch):
            counter += 1
            excluded = forbidden.union(branch[:place])
            more = [*chosen, j]
            lower = _packed([s for s in unhit if j not in s], excluded, prices)
            if lower is None:
                continue
            cost = float(prices[more].sum()) + lower
            if cost <= best_cost - gap:
                heapq.heappush(heap, (max(cost, bound), sorted(rank[k] for k in more), counter, more, excluded))
    lowest = min([bound for bound, *_ in heap], default=best_cost)
    return best, max(min(lowest, best_cost), at_least)


def _packed(sets: Sequence[Sequence[int]], forbidden: frozenset[int], prices: Floats) -> float | None:
    """Cost that hitting these needs at least, by sets that share nothing; None where one cannot be hit."""
    allowed = [[j for j in s if j not in forbidden] for s in sets]
    if not all(allowed):
        return None
    used: set[int] = set()
    total = 0.0
    for own in sorted(allowed, key=len):
        if used.isdisjoint(own):
            used.update(own)
            total += float(prices[own].min())
    return total


def _greedy_hit(sets: Sequence[Sequence[int]], prices: Floats, rank: dict[int, int]) -> list[int]:
    chosen: list[int] = []
    unhit = list(sets)
    while unhit:
        counts: dict[int, int] = {}
        for s in unhit:
            for j in s:
                counts[j] = counts.get(j, 0) + 1
        best = min(counts, key=lambda j: (-counts[j] / prices[j], rank[j]))
        chosen.append(best)
        unhit = [s for s in unhit if best not in s]
    return chosen


def _chosen(members: Sequence[int], n_features: int) -> Bools:
    chosen = np.zeros(n_features, bool)
    chosen[list(members)] = True
    return chosen
