"""Plain loops for model-lineage: weights, scaled distances as the paper writes them, growth and gains, one by one."""

import math
from itertools import combinations

import numpy as np


def weights(errors, families, datasets, accuracy):
    """U, PF and W of every family and item, by three loops; NaN in ``errors`` is no answer."""
    names = sorted(set(families))
    found = np.zeros((3, len(names), errors.shape[1]))

    def share(family, item):
        up = down = 0.0
        for model, its in enumerate(families):
            if its == family and not math.isnan(errors[model, item]):
                up += errors[model, item] * accuracy[model, datasets[item]]
                down += accuracy[model, datasets[item]]
        return up / down if down else 0.0

    for k, family in enumerate(names):
        for item in range(errors.shape[1]):
            others = [share(other, item) for other in names if other != family]
            unique = share(family, item)
            rare = 1 - sum(p * p for p in others) / sum(others) if sum(others) > 0 else 1.0
            found[:, k, item] = unique, rare, unique * rare
    return found


def interval_weighted(distances):
    """The paper's distribution function of distances, by sorting and adding up the gaps (eq. 7-8)."""
    order = np.sort(distances)
    gaps = np.diff(order)
    below = np.concatenate([[0.0], np.cumsum(gaps)])
    if gaps.sum() == 0:
        return np.zeros_like(distances)
    return below[np.searchsorted(order, distances)] / gaps.sum()


def pairs(points):
    return np.array([math.dist(a, b) for a, b in combinations(points, 2)])


def grown(weight, scaled, limit, half):
    """Sets, and their values from the edges that were used, by dictionaries of neighbours."""
    n = len(weight)
    near = {x: [v for v in range(n) if v != x and scaled[x][v] < limit] for x in range(n)}
    free, sets = list(range(n)), []
    while free:
        root = max(free, key=lambda x: (weight[x], -x))
        free.remove(root)
        queue, members, edges = [root], [root], 0.0
        while queue:
            x = queue.pop(0)
            for v in near[x]:
                if v not in free or not weight[v] > scaled[x][v]:
                    continue
                if half:
                    rivals = [weight[u] - scaled[u][v] for u in near[v] if u in free]
                    rank = sum(benefit > weight[x] - scaled[x][v] for benefit in rivals)
                    if rank >= max((1 + len(rivals)) // 2, 1):
                        continue
                free.remove(v)
                queue.append(v)
                members.append(v)
                edges += scaled[x][v]
        sets.append((members, sum(weight[m] for m in members) - edges))
    return sets


def gain(items, weight, errors, datasets, rates):
    """Weighted error rate less the one its data sets would give, over the items it answered."""
    up = down = expected = count = 0.0
    for item, w in zip(items, weight):
        if not math.isnan(errors[item]):
            up, down = up + w * errors[item], down + w
            expected, count = expected + rates[datasets[item]], count + 1
    return up / down - expected / count
