"""AUROC of many columns, DeLong's covariance and bootstrap intervals against scikit-learn, plain numpy and scipy.

Ours gives DeLong's variance of each column with its AUROC; scikit-learn gives the AUROC alone.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from answerable.compiled import usable_cores
from answerable.statistics import auroc_covariance, aurocs, bootstrap_interval
from bench.racing import Race, bytes_per_second


def races(*, quick: bool) -> list[Race]:
    bandwidth = bytes_per_second()
    rows = [
        _auroc_race(n, k, few // 2 if quick else few, threads, bandwidth)
        for n, k, few in ((1000, 1000, 100), (10_000, 200, 20), (100_000, 40, 4))
        for threads in dict.fromkeys((1, usable_cores()))
    ]
    labels, scores = _labelled(2000, 20)
    rows.append(
        Race(
            work="DeLong's covariance, 2000 rows x 20 columns",
            peer="all pairs in numpy",
            package="numpy",
            ours=lambda: auroc_covariance(labels, scores).ravel(),
            theirs=lambda: _by_pairs(labels, scores).ravel(),
            floor_s=scores.nbytes / bandwidth,
        )
    )
    sample = np.random.default_rng(0).exponential(size=1000)
    rows.append(
        Race(
            work="BCa bootstrap of a mean, 1000 rows, 2000 resamples",
            peer="scipy.stats.bootstrap",
            package="scipy",
            ours=lambda: [_upper_end(sample)],
            theirs=lambda: [_upper_end_by_scipy(sample)],
            tolerance=float(0.4 * sample.std() / np.sqrt(len(sample))),
            why="each draws resamples of its own; compared is the upper end",
        )
    )
    return rows


def _auroc_race(n: int, k: int, few: int, threads: int, bandwidth: float) -> Race:
    labels, scores = _labelled(n, k)
    return Race(
        work=f"AUROC and its variance, {n} rows x {k} columns",
        peer="roc_auc_score in a loop, AUROC only",
        package="scikit-learn",
        ours=lambda: aurocs(labels, scores, threads=threads).values,
        theirs=lambda: np.array([roc_auc_score(labels, scores[:, column]) for column in range(few)]),
        sample=f"{few} of {k} columns",
        their_share=few / k,
        threads=threads,
        floor_s=scores.nbytes / bandwidth,
        target_ratio=50,
    )


def _labelled(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    labels = rng.random(n) < 0.3
    return labels, rng.normal(size=(n, k)) + 0.5 * labels[:, None]


def _by_pairs(labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    parts = []
    for column in scores.T:
        wins = 0.5 + 0.5 * np.sign(column[labels][:, None] - column[~labels])
        parts.append((wins.mean(axis=1), wins.mean(axis=0)))
    of_positives, of_negatives = (np.cov([part[side] for part in parts]) for side in (0, 1))
    return of_positives / labels.sum() + of_negatives / (~labels).sum()


def _upper_end(sample: np.ndarray) -> float:
    return bootstrap_interval(lambda x: x.mean(axis=-1), sample, seed=0, resamples=2000, vectorized=True).high


def _upper_end_by_scipy(sample: np.ndarray) -> float:
    found = stats.bootstrap((sample,), np.mean, n_resamples=2000, batch=2000, rng=np.random.default_rng(1))
    return float(found.confidence_interval.high)
