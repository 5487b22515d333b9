"""ErrorTrace (Zang and others, NeurIPS 2025): a family's error space, and how a suspect's errors change inside it.

A family is told by items that its models get wrong and few others do (eq. 3-6). The weightiest such items are joined
into sets on a graph of distances between their texts (eq. 7-10); the set of largest value is the family's error space.
A suspect of that family errs the more, the closer the space is drawn around its weightiest items (eq. 14-16).

Where the paper, or the authors' scripts, leave something open or do not end:

- the items of the graph are the ``n_points`` of largest weight; the scripts lower a threshold until enough items lie
  above it, which never happens where there are too few;
- missing answers are left out of every sum;
- errors between 0 and 1 (one minus a score) are averaged plainly, since the accuracies that weigh models are of right
  and wrong answers;
- averages of successive differences telescope, so that only the two ends of the shrinking matter.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

from .graph import densest_distance, scaled_distances

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Growth = Literal["paper", "half", "none"]


class Uniqueness(NamedTuple):
    """How much each item speaks for each of F families, over N items.

    unique : (F, N) float64, share of the family that errs, weighted by accuracy (U)
    rare : (F, N) float64, 1 less how the other families share the error (PF)
    weight : (F, N) float64 in [0, 1], their product (W); 0 where no model of the family answered
    unweighted : families by number in which a data set has no model of any accuracy, so that errors were averaged
    """

    unique: Floats
    rare: Floats
    weight: Floats
    unweighted: tuple[int, ...]


class Space(NamedTuple):
    """A family's error space.

    items : (k,) int64, numbers of the items, the weightiest first
    weight : (k,) float64, their weights
    value : sum of the weights less that of the edges used (R)
    candidates : how many items stood in the graph
    sets : how many sets it fell into
    """

    items: Ints
    weight: Floats
    value: float
    candidates: int
    sets: int


class Sets(NamedTuple):
    """Items joined into sets.

    number : (n,) int64, the set of each item, in the order in which they were begun
    parent : (n,) int64, the item it was joined through; -1 for the first of a set
    value : (sets,) float64, weights less edges
    """

    number: Ints
    parent: Ints
    value: Floats


def dataset_accuracies(errors: Floats, datasets: Ints) -> Floats:
    """Accuracy of each model on each data set: (M, K) float64, NaN where it answered none of its items."""
    answered = ~np.isnan(errors)
    wrong = np.where(answered, errors, 0.0)
    member = np.equal.outer(datasets, np.arange(datasets.max() + 1)).astype(np.float64)  # (N, K)
    count = answered.astype(np.float64) @ member
    return 1.0 - np.divide(wrong @ member, count, out=np.full(count.shape, np.nan), where=count > 0)


def error_uniqueness(
    errors: Floats, families: Ints, datasets: Ints | None = None, accuracy: Floats | None = None
) -> Uniqueness:
    """How much each item speaks for each family (eq. 3-6).

    Parameters
    ----------
    errors : (M, N) float64: 1 for a wrong answer, 0 for a right one, anything between for one minus a score, NaN for
        none
    families : (M,) int64, family of each model, numbered from 0
    datasets : (N,) int64, data set of each item, numbered from 0; one data set by default
    accuracy : (M, K) float64 in [0, 1], accuracy of each model on each data set; from ``errors`` by default

    Returns
    -------
    Uniqueness
    """
    errors = np.ascontiguousarray(errors, np.float64)
    datasets = np.zeros(errors.shape[1], np.int64) if datasets is None else np.asarray(datasets, np.int64)
    families = np.asarray(families, np.int64)
    unweighted: tuple[int, ...] = ()
    if _is_right_or_wrong(errors):
        accuracy = dataset_accuracies(errors, datasets) if accuracy is None else accuracy
        trust, unweighted = _trust(accuracy, families)
    else:
        trust = np.ones((len(errors), int(datasets.max()) + 1))
    unique, rare, weight = _uniqueness(errors, families, datasets, trust)
    return Uniqueness(unique, rare, weight, unweighted)


def _trust(accuracy: Floats, families: Ints) -> tuple[Floats, tuple[int, ...]]:
    """How much an answer counts: the model's accuracy on the data set, 1 where its whole family has none there.

    Returns
    -------
    (M, K) float64, and the families where some is 1 for that reason
    """
    trust = np.where(np.isnan(accuracy), 0.0, accuracy)
    unweighted = []
    for family in range(int(families.max()) + 1):
        models = families == family
        flat = trust[models].max(axis=0) == 0  # (K,)
        if flat.any():
            trust[np.ix_(models, flat)] = 1.0
            if not np.isnan(accuracy[np.ix_(models, flat)]).all():
                unweighted.append(family)
    return trust, tuple(unweighted)


@kernel
def _is_right_or_wrong(errors: Floats) -> bool:
    """Whether every answer is 0, 1 or missing."""
    graded = 0
    for error in errors.ravel():
        graded += error == error and error != 0.0 and error != 1.0
    return graded == 0


@kernel
def _uniqueness(errors: Floats, families: Ints, datasets: Ints, trust: Floats) -> tuple[Floats, Floats, Floats]:
    """U, PF and W of every family and item: one pass over the answers, one over families by items."""
    n_families, (n_models, n_items) = families.max() + 1, errors.shape
    unique, total = np.zeros((n_families, n_items)), np.zeros((n_families, n_items))
    for model in range(n_models):
        family = families[model]
        for item in range(n_items):
            error = errors[model, item]
            if error == error:
                counts = trust[model, datasets[item]]
                unique[family, item] += error * counts
                total[family, item] += counts
    for family in range(n_families):
        for item in range(n_items):
            if total[family, item] > 0.0:
                unique[family, item] /= total[family, item]
            else:
                unique[family, item] = 0.0  # nobody of the family answered
    rare, weight = total, np.empty((n_families, n_items))
    for family in range(n_families):
        for item in range(n_items):
            # Summed over the others each time: taking one family out of a common sum leaves rounding errors behind.
            squares = sums = 0.0
            for other in range(n_families):
                if other != family:
                    share = unique[other, item]
                    squares += share * share
                    sums += share
            rare[family, item] = 1.0 - squares / sums if sums > 0.0 else 1.0
            weight[family, item] = unique[family, item] * rare[family, item]
    return unique, rare, weight


def candidates(uniqueness: Uniqueness, family: int, n_points: int, min_weight: float) -> Ints:
    """The items that may stand in a family's graph: at most ``n_points``, the weightiest first, then by number."""
    weight = uniqueness.weight[family]
    kept = (1 - uniqueness.rare[family] < uniqueness.unique[family]) & (weight >= min_weight)
    order = np.argsort(-weight, kind="stable")
    return order[kept[order]][:n_points]


def error_space(
    uniqueness: Uniqueness,
    family: int,
    points: Floats | None,
    *,
    n_points: int = 2000,
    min_weight: float = 0.05,
    growth: Growth = "paper",
) -> Space:
    """The error space of one family.

    Parameters
    ----------
    uniqueness : of all families
    family : its number
    points : (N, d) float64, embedding of each item; None for no graph, as with ``growth="none"``
    n_points : items in the graph at most
    min_weight : least weight of an item in it
    growth : "paper" joins an item whose weight exceeds the edge; "half", as the authors' scripts, only through a
        neighbour among the better half of all that could claim it, and takes the set of largest value plus share of
        the items; "none" takes every candidate
    """
    found = candidates(uniqueness, family, n_points, min_weight)
    weight = uniqueness.weight[family][found]
    if points is None or growth == "none" or len(found) < 2:
        return Space(found, weight, float(weight.sum()), len(found), int(len(found) > 0))
    scaled = scaled_distances(np.ascontiguousarray(points[found]))
    sets = grow(weight, scaled, densest_distance(scaled), growth)
    value = sets.value
    if growth == "half":
        value = value + np.bincount(sets.number) / len(found)
    best = int(np.argmax(value))
    inside = sets.number == best
    return Space(found[inside], weight[inside], float(sets.value[best]), len(found), len(sets.value))


def grow(weight: Floats, scaled: Floats, limit: float, growth: Growth = "paper") -> Sets:
    """Join items into sets (section 4.2, eq. 10).

    The weightiest item that is in no set begins one; breadth first, each item that was joined claims the free
    neighbours (nearer than ``limit``) whose weight exceeds the edge to it.

    Parameters
    ----------
    weight : (n,) float64, falling
    scaled : (n, n) float64, scaled distances
    limit : distance below which two items are neighbours
    growth : "paper" or "half", as in ``error_space``
    """
    number, parent = _grow(weight, scaled, limit, growth == "half")
    used = np.where(parent >= 0, scaled[np.arange(len(weight)), np.maximum(parent, 0)], 0.0)
    return Sets(number, parent, np.bincount(number, weights=weight - used).astype(np.float64))


@kernel
def _grow(weight: Floats, scaled: Floats, limit: float, half: bool) -> tuple[Ints, Ints]:
    n = len(weight)
    number, parent = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    queue, free = np.empty(n, np.int64), np.arange(n)
    n_free, sets = n, 0
    while n_free > 0:
        queue[0] = free[0]  # weights fall, and free items keep their order
        number[free[0]] = sets
        head, tail = 0, 1
        while head < tail:
            x = queue[head]
            head += 1
            kept = 0
            for place in range(n_free):
                v = free[place]
                if number[v] >= 0:
                    continue
                edge = scaled[x, v]
                joined = edge < limit and weight[v] > edge
                if joined and half:
                    joined = _is_among_the_better_half(weight, scaled, limit, number, x, v)
                if joined:
                    number[v], parent[v] = sets, x
                    queue[tail] = v
                    tail += 1
                else:
                    free[kept] = v
                    kept += 1
            n_free = kept
        sets += 1
    return number, parent


@kernel
def _is_among_the_better_half(weight: Floats, scaled: Floats, limit: float, number: Ints, x: int, v: int) -> bool:
    """Whether x ranks in the better half of those that could claim v: itself and v's free neighbours; x wins ties."""
    own = weight[x] - scaled[x, v]
    better, could = 0, 1
    for u in range(len(weight)):
        if u != v and number[u] < 0 and scaled[u, v] < limit:
            could += 1
            if weight[u] - scaled[u, v] > own:
                better += 1
    return better < max(could // 2, 1)


def gain_curve(
    space: Space, errors: Floats, datasets: Ints, rates: Floats, start: int, end: int
) -> tuple[Ints, Floats]:
    """How much more a suspect errs in a space than its error rates say, as the space shrinks (eq. 14-15).

    Parameters
    ----------
    space : a family's
    errors : (N,) float64, the suspect's, NaN where it did not answer
    datasets : (N,) int64
    rates : (K,) float64, the suspect's error rate on each data set
    start, end : sizes between which the space shrinks; where it is smaller it starts whole and ends at half

    Returns
    -------
    (steps,) int64 sizes, falling, and (steps,) float64 gains; empty where it answered fewer than two items
    """
    answered = ~np.isnan(errors[space.items])
    items, weight = space.items[answered], space.weight[answered]
    if len(items) < 2:
        return np.empty(0, np.int64), np.empty(0)
    if len(items) < start:
        start, end = len(items), max(len(items) // 2, 1)
    error = np.cumsum(errors[items] * weight) / np.cumsum(weight)
    expected = np.cumsum(rates[datasets[items]]) / np.arange(1, len(items) + 1)
    sizes = np.arange(start, end - 1, -1)
    return sizes, (error - expected)[sizes - 1]


def contraction_score(gains: Floats) -> float:
    """Rise of the gain from the whole space to its core; NaN where there is no curve."""
    return float(gains[-1] - gains[0]) if len(gains) else float("nan")
