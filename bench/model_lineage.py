"""ErrorTrace against the plan of the authors' scripts, in plain Python; the whole leave-one-out, and an audit.

The scripts search lists of errors for every item and family, call one function a pair of embeddings, sort all
distances, and keep neighbours in dictionaries. That plan, in our own words, is what ours is raced against: no package
does the job. Distances are compared on a sample of pairs, scaled by the sample's own ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial.distance import euclidean

from answerable.provenance.model_lineage import (
    ErrorTracer,
    densest_distance,
    error_uniqueness,
    grow,
    scaled_distances,
)
from answerable.provenance.model_lineage.replicas import Replica, digits
from answerable.provenance.model_lineage.solver import dataset_accuracies
from bench.racing import Race, bytes_per_second
from tests.oracles import model_lineage as oracle

POINTS, WIDTH = 2000, 768  # a BERT's
SAMPLE = 300  # points whose pairs the plan is timed on
ITEMS = 2000


def races(*, quick: bool) -> list[Race]:
    warnings.simplefilter("ignore", UserWarning)
    bandwidth = bytes_per_second()
    return [
        *of_weights(bandwidth),
        *of_distances(bandwidth),
        *of_growth(),
        *of_the_whole(digits(0)),
    ]


def of_weights(bandwidth: float) -> list[Race]:
    rng = np.random.default_rng(0)
    families, datasets = np.arange(27) % 4, np.arange(4 * ITEMS) % 5
    errors = (rng.random((27, 4 * ITEMS)) < 0.35).astype(float)
    accuracy = dataset_accuracies(errors, datasets)

    def ours(items: int) -> np.ndarray:
        return error_uniqueness(parts[items], families, datasets[:items], accuracy).weight.ravel()

    parts = {items: errors[:, :items].copy() for items in (ITEMS, 2 * ITEMS, 4 * ITEMS)}
    tables = parts[ITEMS].tolist(), families.tolist(), datasets[:ITEMS].tolist(), accuracy.tolist()
    lists = [np.flatnonzero(row).tolist() for row in parts[ITEMS]]
    work = f"weights of {ITEMS:,} items, 27 models, 4 families"
    return [
        Race(
            work=work,
            peer="lists of errors, searched",
            ours=lambda: ours(ITEMS),
            theirs=lambda: by_lists(lambda model, item: item in lists[model], *tables[1:]),
            floor_s=27 * ITEMS * 8 / bandwidth,
            target_ratio=1000,
        ),
        Race(
            work=work,
            peer="tables of errors, loops",
            ours=lambda: ours(ITEMS),
            theirs=lambda: by_lists(lambda model, item: tables[0][model][item], *tables[1:]),
        ),
        *(
            Race(
                work=f"weights of {2 * times * ITEMS:,} items",
                peer=f"ours on {times * ITEMS:,}",
                ours=lambda times=times: ours(2 * times * ITEMS),
                theirs=lambda times=times: ours(times * ITEMS),
                compared=False,
                why="time and memory grow with the items",
            )
            for times in (1, 2)
        ),
    ]


def by_lists(
    error: Callable[[int, int], float], families: list[int], datasets: list[int], accuracy: list[list[float]]
) -> np.ndarray:
    """Weights of every family and item: for each of them a scan over the models of each family."""

    def share(family: int, item: int) -> float:
        up = down = 0.0
        for model, its in enumerate(families):
            if its == family:
                trust = accuracy[model][datasets[item]]
                up += error(model, item) * trust
                down += trust
        return up / down

    names = sorted(set(families))
    found = []
    for family in names:
        for item in range(len(datasets)):
            unique = share(family, item)
            others = [share(other, item) for other in names if other != family]
            rare = 1 - sum(p * p for p in others) / sum(others) if sum(others) else 1.0
            found.append(unique * rare)
    return np.array(found)


def of_distances(bandwidth: float) -> list[Race]:
    points = np.random.default_rng(1).normal(size=(2 * POINTS, WIDTH))
    above = np.triu_indices(SAMPLE, 1)

    def ours(n: int) -> np.ndarray:
        return scaled_distances(points[:n])

    def sampled() -> np.ndarray:
        part = ours(POINTS)[above]
        return (part - part.min()) / (part.max() - part.min())

    def one_by_one() -> np.ndarray:
        return oracle.interval_weighted(
            np.array([euclidean(points[i], points[j]) for i, j in combinations(range(SAMPLE), 2)])
        )

    work = f"scaled distances of {POINTS:,} points of width {WIDTH}"
    return [
        Race(
            work=work,
            peer="one call a pair, sorted",
            ours=sampled,
            theirs=one_by_one,
            tolerance=1e-9,
            why="square roots of differences of sums; sorting is left out of the scaling, in the plan's favour",
            sample=f"{SAMPLE} points",
            their_share=SAMPLE * (SAMPLE - 1) / (POINTS * (POINTS - 1)),
            floor_s=POINTS * POINTS * 8 / bandwidth,
            target_ratio=40,
        ),
        *(
            Race(
                work=f"scaled distances of {2 * n:,} points",
                peer=f"ours on {n:,}",
                ours=lambda n=n: ours(2 * n),
                theirs=lambda n=n: ours(n),
                compared=False,
                why="time and memory grow with the square of the points: 0.25",
            )
            for n in (POINTS // 2, POINTS)
        ),
    ]


def of_growth() -> list[Race]:
    rng = np.random.default_rng(2)
    weight = -np.sort(-rng.uniform(0.05, 1.0, POINTS))
    scaled = scaled_distances(rng.normal(size=(POINTS, 16)))
    limit = densest_distance(scaled)
    n = 300
    part = scaled_distances(rng.normal(size=(n, 16)))
    listed = weight[:n].tolist(), part.tolist(), densest_distance(part)

    def ours(half: bool) -> np.ndarray:
        return grow(weight[:n], part, listed[2], "half" if half else "paper").value

    return [
        *(
            Race(
                work=f"growth of {n} points{', half' if half else ''}",
                peer="dictionaries of neighbours",
                ours=lambda half=half: ours(half),
                theirs=lambda half=half: np.array([value for _, value in oracle.grown(*listed, half)]),
                tolerance=1e-9,
                why="sums of up to 300 weights and edges in another order",
            )
            for half in (False, True)
        ),
        Race(work=f"growth of {POINTS:,} points", peer="-", ours=lambda: grow(weight, scaled, limit)),
        Race(
            work=f"growth of {POINTS:,} points, half",
            peer="-",
            ours=lambda: grow(weight, scaled, limit, "half"),
            target_s=2.0,
        ),
    ]


def of_the_whole(made: Replica) -> list[Race]:
    """Every model and every family left out in turn, and one suspect once all is fitted."""

    def fitted(threads: int) -> ErrorTracer:
        return ErrorTracer(n_jobs=threads).fit(
            made.errors, made.families, datasets=made.datasets, embeddings=made.points
        )

    tracer = fitted(1)
    suspect = made.errors[:1]

    def scores(tracer: Any) -> np.ndarray:
        return tracer.validation_.scores.ravel()

    return [
        Race(
            work=f"whole leave-one-out, {len(made.models)} models x {len(made.gold):,} items",
            peer="ours on one thread",
            ours=lambda: scores(fitted(2)),
            theirs=lambda: scores(fitted(1)),
            threads=2,
            target_s=15.0,
        ),
        Race(
            work="audit of one suspect, fitted",
            peer="-",
            ours=lambda: tracer.findings(suspect),
            target_s=0.010,
        ),
    ]
