"""Neural additive models trained as the program of Clark et al. (NeurIPS 2025) trains them.

Every network has a first layer of 64 units that share one bend for each input, then three layers of 16. Pixels are not
standardised. Dropout stands after each product and again after each rectifier, and once more on the output, before
components are dropped; what two in a row leave in is worked out here as one, the chances multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch.nn.functional import binary_cross_entropy_with_logits, dropout

FIRST, HIDDEN = 64, (16, 16, 16)
RATE, DECAY, BATCH, EPOCHS, PATIENCE = 0.02082, 0.995, 1024, 100, 60
PENALTY, KEPT, KEPT_COMPONENTS, WATCHED = 0.2078, 0.9, 0.95, 0.05


def trained_networks(
    X: np.ndarray, y: np.ndarray, pairs: Sequence[tuple[int, int]], seed: int
) -> Callable[..., np.ndarray]:
    """Train one network for each feature and pair.

    Returns
    -------
    a function of rows that gives (N, U) components; with ``steep`` its first layers are read as ExU units
    """
    torch.manual_seed(seed)
    rows, labels = (torch.tensor(part, dtype=torch.float32) for part in (X, y))
    inputs = [[[j] for j in range(X.shape[1])], *([[list(pair) for pair in pairs]] if pairs else [])]
    groups = [_first_weights(len(group), len(group[0])) for group in inputs]
    bias = torch.zeros(1, requires_grad=True)

    def components(rows: torch.Tensor, *, training: bool = False, steep: bool = False) -> torch.Tensor:
        found = [
            _outputs(weights, rows[:, torch.tensor(group)].transpose(0, 1), training=training, steep=steep)
            for weights, group in zip(groups, inputs, strict=True)
        ]
        return torch.cat(found)

    adam = torch.optim.Adam([*(part for group in groups for part in group), bias], lr=RATE)
    slower = torch.optim.lr_scheduler.ExponentialLR(adam, DECAY)
    order = torch.randperm(len(rows))
    held = round(WATCHED * len(rows))
    watched, learnt = order[:held], order[held:]
    best, since, kept = -1.0, 0, groups
    for _epoch in range(EPOCHS):
        for batch in learnt[torch.randperm(len(learnt))].split(BATCH):
            parts = dropout(components(rows[batch], training=True), 1 - KEPT * KEPT_COMPONENTS)
            loss = binary_cross_entropy_with_logits(parts.sum(0) + bias, labels[batch])
            adam.zero_grad()
            (loss + PENALTY * parts.square().mean()).backward()
            adam.step()
        slower.step()
        with torch.no_grad():
            area = roc_auc_score(labels[watched], components(rows[watched]).sum(0))
        if area > best:
            best, since, kept = area, 0, [[part.detach().clone() for part in group] for group in groups]
        since += 1
        if since > PATIENCE:  # only then are the best weights taken back; else the last ones stay
            groups = kept
            break

    def values(rows: np.ndarray, *, steep: bool = False) -> np.ndarray:
        with torch.no_grad():
            return components(torch.tensor(rows, dtype=torch.float32), steep=steep).numpy().T.astype(np.float64)

    return values


def _first_weights(n_nets: int, n_inputs: int) -> list[torch.Tensor]:
    """Bends and weights of the first layers, then weights and biases of the others; the output has no bias."""

    def even(*shape: int, most: float) -> torch.Tensor:
        return (2 * torch.rand(shape) - 1) * most

    bends = torch.nn.init.trunc_normal_(torch.empty(n_nets, 1, n_inputs), std=0.5)
    parts = [bends, even(n_nets, n_inputs, FIRST, most=(6 / (n_inputs + FIRST)) ** 0.5)]
    width = FIRST
    for units in HIDDEN:
        parts += [even(n_nets, width, units, most=width**-0.5), even(n_nets, 1, units, most=width**-0.5)]
        width = units
    parts.append(even(n_nets, width, 1, most=width**-0.5))
    return [part.requires_grad_() for part in parts]


def _outputs(weights: list[torch.Tensor], x: torch.Tensor, *, training: bool, steep: bool) -> torch.Tensor:
    """(networks, rows) outputs for (networks, rows, inputs)."""
    moved = x - weights[0]
    first = (moved @ weights[1].exp()).clamp(0, 1) if steep else torch.relu(moved @ weights[1])
    h = dropout(first, 1 - KEPT, training)
    for layer in range(2, len(weights) - 1, 2):
        h = torch.relu(torch.baddbmm(weights[layer + 1], h, weights[layer]))
        h = dropout(h, 1 - KEPT**2, training)
    return (h @ weights[-1])[..., 0]
