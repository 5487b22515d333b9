"""The compiled training of small networks says what torch's derivatives and optimiser say."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from answerable.explanations.activation_patterns import networks

FIRSTS, SECONDS = np.array([0, 2, 1]), np.array([-1, -1, 2])
N_FEATURES, N_ROWS, PENALTY = 3, 150, 0.2
CASES = {
    "rectifiers": ((8, 5), False),
    "one layer": ((6,), False),
    "ExU": ((8, 5), True),
    "one layer of ExU": ((7,), True),
}


def torch_outputs(weights: torch.Tensor, net: int, rows: torch.Tensor, widths: Any, *, steep: bool) -> torch.Tensor:
    """(rows,) outputs of one network, read from its row of numbers."""
    second = rows[SECONDS[net]] if SECONDS[net] >= 0 else torch.zeros_like(rows[0])
    found, at = torch.stack([rows[FIRSTS[net]], second]), 0
    for layer, (fan_in, fan_out) in enumerate(itertools.pairwise((2, *widths))):
        if layer == 0 and steep:
            rise = weights[: 2 * fan_out].view(fan_out, 2).exp()
            used = torch.tensor([True, bool(SECONDS[net] >= 0)])
            found = torch.where(used, rise, 0.0) @ (found - weights[2 * fan_out : 2 * fan_out + 2, None])
            found, at = found.clamp(0, 1), 2 * fan_out + 2
        else:
            matrix = weights[at : at + fan_out * (fan_in + 1)].view(fan_out, fan_in + 1)
            found, at = torch.relu(matrix[:, :-1] @ found + matrix[:, -1:]), at + matrix.numel()
    return weights[at:] @ found


def torch_loss(weights: torch.Tensor, bias: torch.Tensor, rows: Any, target: Any, widths: Any, *, steep: bool) -> Any:
    outputs = torch.stack([torch_outputs(weights[net], net, rows, widths, steep=steep) for net in range(len(FIRSTS))])
    fit = torch.nn.functional.binary_cross_entropy_with_logits(outputs.sum(dim=0) + bias, target)
    return fit + PENALTY * outputs.square().mean()


@pytest.mark.parametrize("name", CASES)
def test_steps_of_training_are_those_of_torch(name: str) -> None:
    """Full batches without dropout, watched on the rows learnt from: some steps of Adam, then the best epoch."""
    widths, steep = CASES[name]
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(N_FEATURES, N_ROWS)).astype(np.float32)
    target = (rows[0] + rows[1] * rows[2] > 0).astype(np.float32)
    begin = networks.first_weights(widths, SECONDS >= 0, steep=steep, rng=rng)
    everyone, lengths = np.arange(N_ROWS), np.array(widths)
    weights, bias = begin.copy(), np.array([0.3], np.float32)
    networks.train(
        rows, target, everyone, everyone, FIRSTS, SECONDS, lengths, steep, weights, bias, np.array([0, 0]), PENALTY, 0.01,
        N_ROWS, 4, 4, 1, 64,
    )  # fmt: skip

    theirs = torch.tensor(begin, requires_grad=True)
    their_bias = torch.tensor([0.3], requires_grad=True)
    adam = torch.optim.Adam([theirs, their_bias], lr=0.01)
    their_rows, their_target = torch.tensor(rows), torch.tensor(target)
    seen = []
    for _epoch in range(4):
        adam.zero_grad()
        torch_loss(theirs, their_bias, their_rows, their_target, widths, steep=steep).backward()
        adam.step()
        with torch.no_grad():
            outputs = [torch_outputs(theirs[net], net, their_rows, widths, steep=steep) for net in range(len(FIRSTS))]
            linear = torch.stack(outputs).sum(dim=0) + their_bias
            loss = torch.nn.functional.binary_cross_entropy_with_logits(linear, their_target)
        seen.append((float(loss), theirs.detach().numpy().copy(), their_bias.detach().numpy().copy()))
    _, best, best_bias = min(seen, key=lambda epoch: epoch[0])
    assert np.abs(best - begin).max() > 0.005
    assert weights == pytest.approx(best, abs=2e-5)
    assert bias == pytest.approx(best_bias, abs=2e-5)


def test_components_are_sums_over_the_learners() -> None:
    rng = np.random.default_rng(5)
    widths, rows = (8, 5), rng.normal(size=(N_FEATURES, N_ROWS)).astype(np.float32)
    learners = np.array([networks.first_weights(widths, SECONDS >= 0, steep=False, rng=rng) for _ in range(3)])
    found = np.zeros((len(FIRSTS), N_ROWS))
    networks.components_of_learners(rows, FIRSTS, SECONDS, np.array(widths), False, learners, 64, found)
    for net in range(len(FIRSTS)):
        parts = [
            torch_outputs(torch.tensor(one[net]), net, torch.tensor(rows), widths, steep=False) for one in learners
        ]
        assert found[net] == pytest.approx(torch.stack(parts).sum(dim=0).numpy(), abs=1e-5)


@pytest.mark.parametrize("cut", [26, 128])
def test_dropout_keeps_the_mean_and_drops_its_share(cut: int) -> None:
    lanes = np.random.default_rng(0).integers(1, 2**32, 256, dtype=np.uint32)
    dropped, sums = [], []
    for _ in range(40):
        held = np.ones((17, 256), np.float32)
        networks._activate(held, 16, np.float32(np.inf), cut, lanes)
        dropped.append((held[:16] == 0).mean())
        sums.append(held[:16].mean())
        assert (held[16] == 1).all()
    n = 40 * 16 * 256
    assert np.mean(dropped) == pytest.approx(cut / 256, abs=5 * (cut / 256 * (1 - cut / 256) / n) ** 0.5)
    assert np.mean(sums) == pytest.approx(1, abs=0.02)
