"""Activation patterns against the ways their authors compute them, the networks one by one, and POT.

Slow peers are timed on a sample: columns are independent, so a column's time times their number is the whole.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import ot
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from answerable.compiled import usable_cores
from answerable.explanations.activation_patterns import (
    NAMEnsemble,
    PatternGAM,
    TermScores,
    activation_pattern,
    fni_emda,
    make_xai_tris,
    quadratic_features,
    quadratic_terms,
    streamed_scores,
    term_scores,
)
from answerable.explanations.activation_patterns.logistic import univariate_slopes
from answerable.explanations.activation_patterns.solver import discriminability
from bench.racing import Race, bytes_per_second

N_FEATURES = 64
BLOCK = 65_536  # rows read at a time
FOLDER = tempfile.TemporaryDirectory(prefix="answerable-bench-")  # of the files that are read in blocks


def races(*, quick: bool) -> list[Race]:
    made = make_xai_tris("xor", "white", n=2000 if quick else 9500 // 4 * 4, seed=0)
    y = made.y.astype(float)
    standard = (made.X - made.X.mean(axis=0)) / made.X.std(axis=0)
    z = quadratic_features(standard, quadratic_terms(N_FEATURES))
    floor = z.nbytes / bytes_per_second()
    rows: list[Race] = []
    sample = 4 if quick else 12
    rows += [_slopes_and_areas(z, y, sample, threads, floor) for threads in dict.fromkeys((1, usable_cores()))]
    rows.append(_pattern(z, y, floor))
    folder = Path(FOLDER.name)
    rows += [_streamed(n, folder) for n in ((10**4, 10**5) if quick else (10**5, 10**6, 10**7))]
    rows += [_networks(quick, threads) for threads in dict.fromkeys((1, usable_cores()))]
    rows += [_transport(quick), _bootstrap(quick)]
    return rows


def _slopes_and_areas(z: np.ndarray, y: np.ndarray, sample: int, threads: int, floor: float) -> Race:
    chosen = np.linspace(0, z.shape[1] - 1, sample).astype(int)

    def ours() -> np.ndarray:
        slopes = univariate_slopes(z, y, threads=threads).slope
        return np.concatenate([slopes[chosen], discriminability(z, y, threads=threads)[chosen]])

    def theirs() -> np.ndarray:
        fits = (
            LogisticRegression(C=np.inf, tol=1e-12, max_iter=2000).fit(column[:, None], y) for column in z[:, chosen].T
        )
        slopes = [fit.coef_[0, 0] for fit in fits]
        return np.array([*slopes, *(2 * roc_auc_score(y, column) - 1 for column in z[:, chosen].T)])

    return Race(
        work=f"slopes and AUROC, {z.shape[1]} columns of {len(z)} rows",
        peer="scikit-learn, column by column",
        package="scikit-learn",
        ours=ours,
        theirs=theirs,
        tolerance=1e-8,
        why="the default solver stops at a gradient of 1e-12, which leaves its slopes good to about 1e-9",
        sample=f"{sample} of {z.shape[1]} columns",
        their_share=sample / z.shape[1],
        threads=threads,
        floor_s=floor,
        target_ratio=150,
    )


def _streamed(n: int, folder: Path) -> Race:
    """Time and memory of everything about two terms, from a file; from each of these sizes to the next both are tenfold
    for rows in memory, the time alone for rows in blocks."""
    path = folder / f"{n}.rows"
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            y = rng.integers(0, 2, m).astype(float)
            np.column_stack([rng.normal(size=(m, 2)) + 0.5 * y[:, None], y]).tofile(file)

    def rows(start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        found = np.fromfile(path, count=3 * count, offset=24 * start).reshape(-1, 3)
        return np.ascontiguousarray(found[:, :2]), found[:, 2].copy()

    def numbers(scores: TermScores) -> np.ndarray:
        return np.concatenate([scores.weight, scores.slope, scores.pattern, scores.slope_low, scores.p_informative])

    return Race(
        work=f"every number of 2 terms, {n:,} rows from a file",
        peer="ours, all rows in memory",
        ours=lambda: numbers(streamed_scores(lambda: (rows(start, BLOCK) for start in range(0, n, BLOCK)))),
        theirs=lambda: numbers(term_scores(*rows(0, n))),
        tolerance=1e-8,
        why="sums of rows in another order; rows in memory also get AUROCs, which need all of them",
        pairs=1 if n >= 10**7 else 3,
    )


def _pattern(z: np.ndarray, y: np.ndarray, floor: float) -> Race:
    z = np.ascontiguousarray(z)  # rows together, as arrays mostly are
    w = np.random.default_rng(0).normal(size=z.shape[1])
    g = z @ w

    def theirs() -> np.ndarray:
        covariance = np.cov(z.T, bias=True)
        return covariance @ w / np.sqrt(np.diag(covariance)) / (w @ covariance @ w)

    return Race(
        work=f"activation pattern, {z.shape[1]} columns of {len(z)} rows",
        peer="numpy.cov, then Sigma w",
        package="numpy",
        ours=lambda: activation_pattern(z, g),
        theirs=theirs,
        tolerance=1e-10,
        why="sums of 2144 products in another order",
        floor_s=floor,
        target_ratio=100,
    )


def _networks(quick: bool, threads: int) -> Race:
    rng = np.random.default_rng(0)
    n_learners, epochs, n = (20, 8, 2000) if quick else (100, 8, 6172)
    X = rng.normal(size=(n, 6))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    sample = 2
    ensemble = NAMEnsemble(n_learners, epochs=epochs, threads=threads)
    return Race(
        work=f"{n_learners} neural additive models, {n} rows of 6 features, {epochs} epochs",
        peer="torch modules one by one",
        package="torch",
        ours=lambda: [roc_auc_score(y, ensemble.fit(X, y).decision_function(X))],
        theirs=lambda: [roc_auc_score(y, _one_by_one(X, y, sample, epochs, threads))],
        tolerance=0.005,
        why="compared are AUROCs: weights begin at random",
        sample=f"{sample} of {n_learners} models",
        their_share=sample / n_learners,
        threads=threads,
        target_ratio=30,
    )


def _one_by_one(X: np.ndarray, y: np.ndarray, n_learners: int, epochs: int, threads: int) -> np.ndarray:
    """Log-odds by a module for each network, as the authors' code has it, same widths, batches and optimiser."""
    torch.set_num_threads(threads)
    rows, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    found = []
    for _ in range(n_learners):
        nets = torch.nn.ModuleList(_network() for _ in range(X.shape[1]))
        bias = torch.nn.Parameter(torch.zeros(1))
        adam = torch.optim.Adam([*nets.parameters(), bias], lr=0.0208)
        for _epoch in range(epochs):
            order = torch.randperm(len(rows))
            for start in range(0, len(rows), 1024):
                drawn = order[start : start + 1024]
                outputs = torch.cat([net(rows[drawn, j : j + 1]) for j, net in enumerate(nets)], dim=1)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs.sum(1) + bias, target[drawn])
                loss = loss + 0.2078 * outputs.square().mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
        nets.eval()
        with torch.no_grad():
            found.append(torch.cat([net(rows[:, j : j + 1]) for j, net in enumerate(nets)], dim=1).sum(1).numpy())
    return np.mean(found, axis=0)


def _network() -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for fan_in, fan_out in ((1, 16), (16, 16), (16, 16), (16, 16)):
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU(), torch.nn.Dropout(0.1)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 1, bias=False))


def _transport(quick: bool) -> Race:
    side = 32 if quick else 64
    rng = np.random.default_rng(0)
    truth = np.zeros((side, side), dtype=bool)
    truth[5:9, 5] = truth[-9:-5, -6] = True
    s = rng.random((side, side)) ** 4
    places = np.stack(np.unravel_index(np.arange(side * side), (side, side)), axis=1).astype(float)
    cost = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    cost[np.ix_(truth.ravel(), truth.ravel())] = 0.0
    t = truth.ravel() / truth.sum()
    worst = (cost @ t).max()
    theirs: Callable[[], list[float]] = lambda: [  # noqa: E731
        1 - ot.emd2((s / s.sum()).ravel(), t, cost, numItermax=10_000_000) / worst
    ]
    return Race(
        work=f"FNI-EMDA, {side} x {side} pixels, 8 of them true",
        peer="POT, full cost matrix",
        package="POT",
        ours=lambda: [fni_emda(s, truth)],
        theirs=theirs,
        tolerance=1e-9,
        why="both are exact; costs are sums of thousands of terms",
        target_ratio=None if quick else 50,
    )


def _bootstrap(quick: bool) -> Race:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000 if quick else 6172, 6))
    y = (X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    return Race(
        work=f"500 bootstraps of {len(X)} rows, 6 terms (the size of COMPAS)",
        peer="none",
        ours=lambda: PatternGAM(n_boot=500).fit(X, y).scores_.slope,
        target_s=10.0,
    )
