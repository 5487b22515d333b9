"""Laws with a known truth, and how often each interval holds it: one list for the quick tests and for the long ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from answerable.statistics import (
    Interval,
    auroc_difference_interval,
    auroc_interval,
    average_precision_interval,
    bootstrap_interval,
    clopper_pearson_interval,
    difference_of_means_interval,
    difference_of_proportions_interval,
    f1_interval,
    influence_interval,
    kendall_interval,
    mean_interval,
    median_interval,
    median_of_splits,
    paired_difference_interval,
    paired_difference_of_proportions_interval,
    quantile_interval,
    simultaneous_intervals,
    spearman_interval,
    tpr_at_fpr_interval,
    wilson_interval,
)


class Case(NamedTuple):
    """One interval on one law; ``conservative`` where coverage may lie above 97 %."""

    name: str
    draw: Callable[[np.random.Generator], list[Interval]]
    truth: float
    conservative: bool = False


def covered(case: Case, repeats: int, seed: int) -> float:
    """Share of samples in which every interval holds the truth."""
    rng = np.random.default_rng(seed)
    return float(np.mean([all(i.low <= case.truth <= i.high for i in case.draw(rng)) for _ in range(repeats)]))


def sampling_error(share: float, repeats: int) -> float:
    """Standard deviation of a simulated share."""
    return float(np.sqrt(share * (1 - share) / repeats))


def cases(resamples: int) -> list[Case]:
    """Every interval of the statistics, at n = 5 and at usual sizes."""
    return [*_means(), *_proportions(), *_bootstraps(resamples), *_detection(), *_ranks(), *_influence(resamples)]


def _means() -> list[Case]:
    found = []
    for n in (5, 100):
        found += [
            Case(f"mean, normal, n = {n}", lambda r, n=n: [mean_interval(r.normal(size=n))], 0.0),
            Case(
                f"paired difference, normal, n = {n}",
                lambda r, n=n: [paired_difference_interval(r.normal(1, 1, n), r.normal(0, 2, n))],
                1.0,
            ),
            Case(
                f"difference of means, normal, n = {n} and {2 * n}",
                lambda r, n=n: [difference_of_means_interval(r.normal(1, 1, n), r.normal(0, 3, 2 * n))],
                1.0,
            ),
            Case(
                f"median, exponential, n = {n}",
                lambda r, n=n: [median_interval(r.exponential(size=n))],
                np.log(2),
                True,
            ),
            Case(
                f"90 % quantile, exponential, n = {n}",
                lambda r, n=n: [quantile_interval(r.exponential(size=n), 0.9)],
                np.log(10),
                True,
            ),
        ]
    for p in (0.0, 0.01, 1.0):
        found.append(
            Case(
                f"mean within bounds, Bernoulli {p:g}, n = 5",
                lambda r, p=p: [mean_interval(r.random(5) < p, bounds=(0, 1))],
                p,
                True,
            )
        )
    return found


def _proportions() -> list[Case]:
    found = []
    for n in (5, 100):
        for p in (0.0, 0.01, 0.3, 1.0):
            found += [
                Case(
                    f"Wilson, p = {p:g}, n = {n}", lambda r, n=n, p=p: [wilson_interval(r.binomial(n, p), n)], p, True
                ),
                Case(
                    f"Clopper-Pearson, p = {p:g}, n = {n}",
                    lambda r, n=n, p=p: [clopper_pearson_interval(r.binomial(n, p), n)],
                    p,
                    True,
                ),
                Case(
                    f"difference of proportions, {p:g} and 0.2, n = {n}",
                    lambda r, n=n, p=p: [
                        difference_of_proportions_interval(r.binomial(n, p), n, r.binomial(n, 0.2), n)
                    ],
                    p - 0.2,
                    True,
                ),
                Case(
                    f"paired difference of proportions, {p / 2:g}, n = {n}",
                    lambda r, n=n, p=p: [
                        paired_difference_of_proportions_interval(*r.multinomial(n, [0.5 - p / 2, p / 2, 0, 0.5]))
                    ],
                    p / 2,
                    True,
                ),
            ]
    return found


def _bootstraps(resamples: int) -> list[Case]:
    def mean(x: np.ndarray) -> np.ndarray:
        return x.mean(axis=-1)

    def median(x: np.ndarray) -> np.ndarray:
        return np.median(x, axis=-1)

    def interval(
        x: np.ndarray, r: np.random.Generator, statistic: Callable, method: str, **more: object
    ) -> list[Interval]:
        seed = int(r.integers(2**31))
        return [
            bootstrap_interval(statistic, x, seed=seed, resamples=resamples, method=method, vectorized=True, **more)
        ]

    found = []
    for method in ("BCa", "percentile"):
        for n in (5, 50):
            found += [
                Case(
                    f"{method}, mean, normal, n = {n}",
                    lambda r, m=method, n=n: interval(r.normal(size=n), r, mean, m),
                    0,
                ),
                Case(
                    f"{method}, median, normal, n = {n}",
                    lambda r, m=method, n=n: interval(r.normal(size=n), r, median, m),
                    0.0,
                    True,
                ),
            ]
        for p in (0.0, 0.01, 1.0):
            found.append(
                Case(
                    f"{method}, mean within bounds, Bernoulli {p:g}, n = 5",
                    lambda r, m=method, p=p: interval((r.random(5) < p) * 1.0, r, mean, m, bounds=(0, 1)),
                    p,
                    True,
                )
            )
        found.append(
            Case(
                f"{method}, mean of 20 clusters of 4",
                lambda r, m=method: interval(
                    (r.normal(size=20)[:, None] + r.normal(size=(20, 4))).ravel(),
                    r,
                    mean,
                    m,
                    clusters=np.repeat(np.arange(20), 4),
                ),
                0.0,
            )
        )
    return found


def _detection() -> list[Case]:
    def scores(
        r: np.random.Generator, m: int, n: int, shift: float, spread: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat([1, 0], [m, n]), np.concatenate([r.normal(shift, spread, m), r.normal(size=n)])

    found = []
    for m, n in ((5, 5), (5, 50), (100, 100)):
        for shift, spread in ((0.0, 1.0), (1.0, 1.0), (3.0, 3.0), (6.0, 1.0)):
            truth = stats.norm.cdf(shift / np.hypot(1, spread))
            found.append(
                Case(
                    f"AUROC {truth:.3f}, {m} and {n}, spread {spread:g}",
                    lambda r, m=m, n=n, d=shift, s=spread: [auroc_interval(*scores(r, m, n, d, s))],
                    truth,
                    True,
                )
            )
    for n, truth in ((5, 0.500), (50, 0.500)):
        found.append(
            Case(
                f"average precision of noise, {n} and {n}",
                lambda r, n=n: [average_precision_interval(*scores(r, n, n, 0.0))],
                truth,
                True,
            )
        )

    def two_scores(r: np.random.Generator, n: int) -> list[Interval]:
        y, both = np.repeat([1, 0], n), r.normal(size=2 * n)
        return [auroc_difference_interval(y, both + y + r.normal(size=2 * n), both + y + r.normal(size=2 * n))]

    found += [Case(f"difference of AUROCs, {n} and {n}", lambda r, n=n: two_scores(r, n), 0.0, True) for n in (5, 100)]
    for m, n in ((5, 5), (100, 1000)):
        found.append(
            Case(
                f"TPR at 5 % FPR, {m} and {n}",
                lambda r, m=m, n=n: [tpr_at_fpr_interval(*scores(r, m, n, 1.0), 0.05)],
                float(stats.norm.sf(stats.norm.isf(0.05) - 1)),
                True,
            )
        )

    def decided(r: np.random.Generator, n: int, right: float) -> list[Interval]:
        # n items that are positive or flagged, of which each is both with probability ``right``; five that are neither
        kind = np.where(r.random(n) < right, 0, r.integers(1, 3, n))
        kind[0] = 1 if (kind == 2).all() else kind[0]  # a positive one there must be; it adds to none that is both
        labels, flagged = np.append(kind < 2, np.zeros(5, bool)), np.append(kind % 2 == 0, np.zeros(5, bool))
        return [f1_interval(labels.astype(int), flagged)]

    for n, right in ((5, 0.0), (5, 0.5), (5, 1.0), (100, 0.01), (100, 0.5)):
        found.append(
            Case(
                f"F1 {2 * right / (1 + right):.2f}, {n}",
                lambda r, n=n, p=right: decided(r, n, p),
                2 * right / (1 + right),
                True,
            )
        )
    return found


def _ranks() -> list[Case]:
    def normal(r: np.random.Generator, n: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
        x, e = r.normal(size=(2, n))
        return x, rho * x + np.sqrt(1 - rho**2) * e

    found = []
    for n in (5, 30, 200):
        for rho in (0.0, 0.7, 1.0):
            found += [
                Case(
                    f"Spearman, normal, correlation {rho:g}, n = {n}",
                    lambda r, n=n, rho=rho: [spearman_interval(*normal(r, n, rho))],
                    6 / np.pi * np.arcsin(rho / 2),
                    True,
                ),
                Case(
                    f"Kendall, normal, correlation {rho:g}, n = {n}",
                    lambda r, n=n, rho=rho: [kendall_interval(*normal(r, n, rho))],
                    2 / np.pi * np.arcsin(rho),
                    True,
                ),
            ]

    def mostly_equal(r: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, e = r.normal(size=(2, 200))
        return x, np.where(r.random(200) < 0.9, x, e)

    # The ranks of a copied row are equal, those of another have nothing to do with each other: rho is the share copied.
    found.append(Case("Spearman, nine rows in ten equal", lambda r: [spearman_interval(*mostly_equal(r))], 0.9, True))
    return found


def _influence(resamples: int) -> list[Case]:
    def clustered(r: np.random.Generator, n: int) -> list[Interval]:
        psi = r.normal(size=n)[:, None] + r.normal(size=(n, 3))
        return [influence_interval(psi.ravel(), clusters=np.repeat(np.arange(n), 3))]

    def at_once(r: np.random.Generator, n: int) -> list[Interval]:
        psi = r.normal(size=(n, 4)) + r.normal(size=(n, 1))
        return simultaneous_intervals(psi, seed=int(r.integers(2**31)), resamples=resamples)

    found = []
    for n in (5, 50):
        found += [
            Case(f"influence scores, n = {n}", lambda r, n=n: [influence_interval(r.normal(size=n))], 0.0),
            Case(f"influence scores, {n} clusters", lambda r, n=n: clustered(r, n), 0.0),
            Case(f"simultaneous, 4 estimates, n = {n}", lambda r, n=n: at_once(r, n), 0.0, True),
        ]

    def splits(r: np.random.Generator) -> list[Interval]:
        psi = r.normal(size=50)
        return [median_of_splits([psi + 0.05 * r.normal() for _ in range(5)])]

    found.append(Case("influence scores, median of 5 splits", splits, 0.0, True))
    return found
