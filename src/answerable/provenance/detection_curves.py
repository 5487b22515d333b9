"""What the pictures of every detector need: scores of a group, their density, and the corners of a ROC curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

GRID = 160  # points of a density


def scores_of(scores: pl.DataFrame, group: str) -> np.ndarray:
    """The scores of one group."""
    return scores.filter(pl.col("group") == group)["score"].to_numpy()


def padded_range(values: Sequence[float]) -> tuple[float, float]:
    """Smallest and largest of the values, with a little room beyond both."""
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def density(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian kernel density, its width by Silverman's rule, never so narrow that the picture misses it."""
    grid = np.linspace(low, high, GRID)
    quartiles = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(values.std())
    bandwidth = max(0.9 * spread * len(values) ** -0.2, (high - low) / 80)
    depth = (grid[:, None] - values[None]) / bandwidth
    return grid, np.exp(-0.5 * depth**2).mean(axis=1) / (bandwidth * math.sqrt(2 * math.pi))


def evenly(rows: list[Any], most: int) -> list[Any]:
    """At most ``most`` of the rows, evenly spread over them, first and last among them."""
    if len(rows) <= most:
        return rows
    return [rows[int(i)] for i in np.linspace(0, len(rows) - 1, most)]


def roc_points(labels: np.ndarray, scores: np.ndarray) -> list[tuple[float, float]]:
    """The corners of a ROC curve, from the first false alarm on; a curve on a logarithmic axis has no zero."""
    order = np.argsort(-scores, kind="stable")
    last_of_tie = np.append(np.diff(scores[order]) != 0, True)
    found, alarms = np.cumsum(labels[order])[last_of_tie], np.cumsum(~labels[order])[last_of_tie]
    n_positive, n_negative = int(labels.sum()), int((~labels).sum())
    least = 0.5 / n_negative
    before = float(found[alarms == 0].max(initial=0)) / n_positive
    points = [(least, before)]
    points += [(a / n_negative, f / n_positive) for a, f in zip(alarms, found, strict=True) if a > 0]
    return points


def tpr_at(curve: pl.DataFrame, fpr: float) -> float:
    """The share found at that rate of false alarms, on a curve of ``fpr`` and ``tpr``; 0 before its first corner."""
    below = curve.filter(pl.col("fpr") <= fpr)
    return float(below["tpr"].max()) if below.height else 0.0  # type: ignore[arg-type]
