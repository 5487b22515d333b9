"""The cheapest set of features that meets several demands at once: what is left where one sort no longer does.

Three queries come down to it: a reason for a regression within a tolerance on both sides, a reason for one class
against several rivals, and the cheapest change when features cost differently. Two demands already make it NP-hard, for
binary features too: with ``up_j = a_j`` and ``down_j = A - a_j`` it asks for k of n numbers with a given sum. So it is
solved by branch and bound with the fractional knapsack of each demand, and says whether it finished.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MOST_NODES = 200_000
NEAR = 1e-9  # costs that differ by less than this part are taken as equal, unless they are told apart without rounding
_ROUNDED = 1e-12  # part by which a sum of costs may be off


def least_gap(costs: Floats, total: float) -> float:
    """By how much sums of costs near ``total`` differ if they do: half a unit where they add up without rounding."""
    for unit in (1.0, 2.0**-20):
        if costs.sum() < 2**52 * unit and np.array_equal(costs / unit, np.round(costs / unit)):
            return unit / 2
    return NEAR * total


class Cover(NamedTuple):
    """A set that meets every demand.

    chosen : (n,) bool; all False where no set does and ``feasible`` is False
    cost : of the set
    bound : no set is cheaper
    feasible : whether the set of all meets the demands
    nodes : subsets that were looked at
    """

    chosen: Bools
    cost: float
    bound: float
    feasible: bool
    nodes: int

    @property
    def proved(self) -> bool:
        """Whether no set is cheaper."""
        return self.bound >= self.cost


def cheapest_cover(
    weights: Floats,
    demands: Floats,
    costs: Floats | None = None,
    *,
    strict: bool | Bools = False,
    most_nodes: int = MOST_NODES,
) -> Cover:
    """The cheapest set S with ``sum of weights[r, S] >= demands[r]`` for every r.

    Parameters
    ----------
    weights : (n_demands, n) float64, each >= 0
    demands : (n_demands,) float64
    costs : (n,) float64, each > 0; 1 by default
    strict : whether ``>`` is meant, for all demands or for each
    most_nodes : subsets looked at before it stops with a bound

    Returns
    -------
    Cover
    """
    weights = np.atleast_2d(np.asarray(weights, np.float64))
    n_items = weights.shape[1]
    costs = np.ones(n_items) if costs is None else np.asarray(costs, np.float64)
    # Sums are compared as they are added up, in one order, so that equal sets give equal sums.
    search = _Search(weights, np.asarray(demands, np.float64), costs, np.broadcast_to(strict, len(weights)), most_nodes)
    everything = np.ones(n_items, bool)
    if not search.met(everything):
        return Cover(~everything, 0.0, 0.0, False, 0)
    return search.run()


class _Search:
    """Depth-first over features from the most useful on, taken first and left out second."""

    def __init__(self, weights: Floats, demands: Floats, costs: Floats, strict: Bools, most_nodes: int) -> None:
        self.weights, self.demands, self.costs, self.strict, self.most_nodes = (
            weights,
            demands,
            costs,
            strict,
            most_nodes,
        )
        scale = np.maximum(demands, 1e-300)
        self.order = np.argsort(-((weights / scale[:, None]).clip(max=1.0).sum(axis=0) / costs), kind="stable")
        # for each demand the features from the best weight per cost on
        self.by_ratio = [np.argsort(-(row / costs), kind="stable") for row in weights]
        self.whole_costs = bool(np.all(costs == np.round(costs)))
        self.nodes = 0

    def met(self, chosen: Bools) -> bool:
        totals = (self.weights * chosen).sum(axis=1)
        return bool(np.all(np.where(self.strict, totals > self.demands, totals >= self.demands)))

    def bound(self, chosen: Bools, free: Bools) -> float:
        """Cost that the chosen set must still add, by the fractional knapsack of each demand."""
        needed = self.demands - (self.weights * chosen).sum(axis=1)
        most = 0.0
        for row, need, ranked, strict in zip(self.weights, needed, self.by_ratio, self.strict, strict=True):
            if need < 0 or (need == 0 and not strict):
                continue
            usable = ranked[free[ranked]]
            totals = np.cumsum(row[usable])
            slack = 1e-12 * (abs(need) + (totals[-1] if len(totals) else 0.0))
            if not len(usable) or totals[-1] < need - slack:
                return np.inf
            place = int(np.searchsorted(totals, need - slack))
            before = totals[place - 1] if place else 0.0
            share = (need - slack - before) / row[usable[place]] if row[usable[place]] > 0 else 0.0
            cost = float(self.costs[usable[:place]].sum() + max(share, 0.0) * self.costs[usable[place]])
            most = max(most, cost)
        most *= 1 - _ROUNDED
        return float(np.ceil(most - NEAR)) if self.whole_costs else most

    def greedy(self) -> Bools:
        """A set that meets the demands and of which no feature can be left out."""
        chosen = np.ones(len(self.costs), bool)
        for j in self.order[::-1]:
            chosen[j] = False
            if not self.met(chosen):
                chosen[j] = True
        return chosen

    def run(self) -> Cover:
        nothing = np.zeros(len(self.costs), bool)
        best = self.greedy()
        best_cost = float(self.costs[best].sum())
        root = self.bound(nothing, ~nothing)
        stack: list[tuple[int, Bools]] = [(0, nothing)]
        gap = least_gap(self.costs, best_cost)
        while stack and root <= best_cost - gap and self.nodes < self.most_nodes:
            depth, chosen = stack.pop()
            self.nodes += 1
            cost = float(self.costs[chosen].sum())
            if self.met(chosen):
                if cost < best_cost:
                    best, best_cost = chosen, cost
                continue
            free = np.zeros(len(self.costs), bool)
            free[self.order[depth:]] = True
            if cost + self.bound(chosen, free) > best_cost - gap:
                continue
            with_it = chosen.copy()
            with_it[self.order[depth]] = True
            stack += [(depth + 1, chosen), (depth + 1, with_it)]
        finished = not stack or root > best_cost - gap
        return Cover(best, best_cost, best_cost if finished else root, True, self.nodes)
