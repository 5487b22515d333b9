"""The flow is invertible with the log-determinant it says; the loss is what hand and oracle give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.provenance.generated_images import AffineCouplingFlow, flow_loss
from answerable.provenance.generated_images.flow import consistency_loss, parts_of_score, shaping_loss
from tests.oracles import generated_images as oracle


def lively(d: int, *, hidden: int = 6, seed: int = 0) -> AffineCouplingFlow:
    """A flow in double precision whose weights are large enough to do something."""
    flow = AffineCouplingFlow(d, hidden=hidden, seed=seed).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.mul_(2.0)
    return flow


@given(st.integers(2, 7), st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_it_is_inverted_and_its_log_determinant_is_autograds(d: int, seed: int) -> None:
    flow = lively(d, seed=seed)
    v = torch.from_numpy(np.random.default_rng(seed).normal(size=(3, d)))
    z, logdet = flow(v)
    assert flow.inverse(z).detach().numpy() == pytest.approx(v.numpy(), abs=1e-9)
    for row in range(3):
        jacobian = torch.autograd.functional.jacobian(lambda x: flow(x[None])[0][0], v[row])
        assert float(logdet[row].detach()) == pytest.approx(float(torch.linalg.slogdet(jacobian)[1]), abs=1e-9)


def test_its_density_integrates_to_one() -> None:
    flow = AffineCouplingFlow(2, hidden=6).double()
    axis = torch.linspace(-20, 20, 1001, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        total = float(flow.log_prob(grid).exp().sum()) * float(axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1, abs=1e-3)


def test_permutations_are_fixed_by_the_blocks_number_and_weights_by_the_seed() -> None:
    first, second, other = (AffineCouplingFlow(9, n_blocks=3, hidden=4, seed=seed) for seed in (0, 0, 1))
    for a, b, c in zip(first.blocks, second.blocks, other.blocks, strict=True):
        assert torch.equal(a.permutation, b.permutation)
        assert torch.equal(a.permutation, c.permutation)
    assert not torch.equal(first.blocks[0].permutation, first.blocks[1].permutation)
    weights = [next(flow.parameters()) for flow in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_making_a_flow_leaves_torchs_own_generator_alone() -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    AffineCouplingFlow(4, hidden=3)
    assert torch.equal(before, torch.random.get_rng_state())


def test_log_scales_stay_within_the_clamp() -> None:
    flow = lively(4)
    with torch.no_grad():
        _, logdet = flow(torch.full((1, 4), 1e6, dtype=torch.float64))
    assert abs(float(logdet)) <= 2 * 4 * 3.0


@pytest.mark.parametrize(
    "fake, sign, by_hand",
    [
        (False, "code", (12.5 - 2) / 2),
        (True, "code", (-12.5 - 2) / 2),
        (True, "paper", (-12.5 + 2) / 2),
    ],
)
def test_the_shaping_loss_by_hand(fake: bool, sign: str, by_hand: float) -> None:
    z, logdet = torch.tensor([[3.0, 4.0]]), torch.tensor([2.0])
    found = shaping_loss(z, logdet, torch.tensor([fake]), margin=13, fake_sign=sign)  # type: ignore[arg-type]
    assert float(found) == pytest.approx(by_hand)
    beyond = shaping_loss(z, logdet, torch.tensor([fake]), margin=12.5, fake_sign=sign)  # type: ignore[arg-type]
    assert float(beyond) == pytest.approx(0 if fake else by_hand)


@pytest.mark.parametrize("second, fake, by_hand", [((1.0, 0.0), True, 0.1), ((0.0, 1.0), True, 0), ((-1.0, 0.0), True, 0),
                                                   ((1.0, 0.0), False, 0), ((-1.0, 0.0), False, 2)])  # fmt: skip
def test_the_consistency_loss_by_hand(second: tuple[float, float], fake: bool, by_hand: float) -> None:
    found = consistency_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([second]), torch.tensor([fake]))
    assert float(found) == pytest.approx(by_hand)


@given(st.integers(0, 1000), st.sampled_from(["code", "paper"]))
@settings(max_examples=20, deadline=None)
def test_the_whole_loss_is_the_sum_of_its_terms(seed: int, sign: str) -> None:
    rng = np.random.default_rng(seed)
    flow, v = lively(4, seed=seed), torch.from_numpy(rng.normal(size=(2, 5, 4)))
    fake = rng.random(5) < 0.5
    found = flow_loss(flow, *v, torch.from_numpy(fake), margin=3.0, fake_sign=sign)  # type: ignore[misc, arg-type]
    (z1, j1), (z2, j2) = ([part.detach().numpy() for part in flow(one)] for one in v)
    shaping, consistency = oracle.flow_loss(z1, j1, z2, j2, fake, 3.0, sign)
    assert float(found.shaping.detach()) == pytest.approx(shaping, abs=1e-10)
    assert float(found.consistency.detach()) == pytest.approx(consistency, abs=1e-10)
    assert float(found.total.detach()) == pytest.approx(shaping + 5 * consistency, abs=1e-9)


def test_a_fake_beyond_the_margin_moves_nothing_but_through_the_consistency() -> None:
    z1 = torch.tensor([[30.0, 0.0]], requires_grad=True)
    fake = torch.tensor([True])
    shaping_loss(z1, torch.zeros(1), fake, margin=4).backward()
    assert z1.grad is not None
    assert not z1.grad.any()
    consistency_loss(z1, torch.tensor([[3.0, 3.0]]), fake).backward()
    assert z1.grad.any()


def test_the_score_by_hand() -> None:
    energy, cosine, total = parts_of_score(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, -1.0]]), tau=2.0)
    assert (float(energy), float(cosine)) == pytest.approx((2.0, 0.0), abs=1e-6)
    assert float(total) == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-6)


@pytest.mark.parametrize("options, line", [({"d": 1}, "d is 1"), ({"d": 4, "hidden": 0}, "hidden is 0"),
                                           ({"d": 4, "clamp": math.nan}, "clamp is nan")])  # fmt: skip
def test_a_flow_that_cannot_be_is_refused(options: dict[str, float], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        AffineCouplingFlow(**options)  # type: ignore[arg-type]
