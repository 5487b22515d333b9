"""Affine coupling flow over features, and the loss that fits it to natural images and pushes generated ones away.

Each block permutes the d features (a fixed permutation, seeded by the block's number), splits them in two, and couples
the halves both ways (RealNVP, Dinh, Sohl-Dickstein and Bengio 2017; two-sided and softly clamped as FrEIA does it):

    y1 = x1 exp(s1(x2)) + t1(x2),   y2 = x2 exp(s2(y1)) + t2(y1),   log-determinant J = sum s1 + sum s2.

F-ConV (NeurIPS 2025), with e = |z|^2 / 2 and margin m, over real rows R and generated rows G of one batch:

- shaping, of each view: the batch mean of ``e - J`` on R and ``(-e - J) [e < m]`` on G, divided by d; then the views'
  mean. That sign of J on G is the authors' code's, and rewards volume growth for both kinds; the paper's is ``-e + J``.
- consistency: the batch mean of ``1 - cos`` on R and ``0.1 cos [cos > 0.1]`` on G, of z and the changed image's z.
- total = shaping + 5 consistency.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from answerable.errors import BadInput

from .checks import positive, whole

FakeSign = Literal["code", "paper"]
CONSISTENCY_WEIGHT = 5.0
FAKE_WEIGHT, FAKE_COSINE = 0.1, 0.1
SEEDS = 2**63  # what torch takes; larger seeds come round again
SOFT = 0.636  # 2 / pi, as FrEIA rounds it: the clamp's slope is then about 1 at 0


class _SubNetwork(nn.Module):
    """Log-scales and shifts of one half from the other: fully connected, two hidden layers."""

    def __init__(self, n_in: int, n_out: int, hidden: int, clamp: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_in, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, 2 * n_out),
        )
        self.n_out, self.clamp = n_out, clamp

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = self.layers(x).split(self.n_out, dim=1)
        return self.clamp * SOFT * torch.atan(scale / self.clamp), shift


class _Block(nn.Module):
    """One permutation and one two-sided coupling."""

    permutation: Tensor
    back: Tensor

    def __init__(self, d: int, hidden: int, clamp: float, number: int) -> None:
        super().__init__()
        permutation = torch.from_numpy(np.random.default_rng(number).permutation(d))
        self.register_buffer("permutation", permutation)
        self.register_buffer("back", torch.argsort(permutation))
        self.first = d // 2
        self.of_second = _SubNetwork(d - self.first, self.first, hidden, clamp)
        self.of_first = _SubNetwork(self.first, d - self.first, hidden, clamp)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x1, x2 = x[:, self.permutation].split([self.first, x.shape[1] - self.first], dim=1)
        s1, t1 = self.of_second(x2)
        y1 = torch.addcmul(t1, x1, s1.exp())
        s2, t2 = self.of_first(y1)
        y2 = torch.addcmul(t2, x2, s2.exp())
        return torch.cat([y1, y2], dim=1), s1.sum(dim=1) + s2.sum(dim=1)

    def inverse(self, y: Tensor) -> Tensor:
        y1, y2 = y.split([self.first, y.shape[1] - self.first], dim=1)
        s2, t2 = self.of_first(y1)
        x2 = (y2 - t2) * torch.exp(-s2)
        s1, t1 = self.of_second(x2)
        x1 = (y1 - t1) * torch.exp(-s1)
        return torch.cat([x1, x2], dim=1)[:, self.back]


class AffineCouplingFlow(nn.Module):
    """An invertible map of features with a known log-determinant, and the density it gives them.

    Parameters
    ----------
    d : features, at least 2
    n_blocks : blocks, each a permutation and a two-sided coupling
    hidden : width of the two hidden layers of each sub-network
    clamp : log-scales stay within ``clamp`` times 0.999
    seed : of the initial weights; the permutations depend on the block's number alone

    Raises
    ------
    BadInput : fewer than two features, or a number below 1
    """

    def __init__(self, d: int, *, n_blocks: int = 2, hidden: int = 4096, clamp: float = 3.0, seed: int = 0) -> None:
        super().__init__()
        where = "AffineCouplingFlow"
        whole(d, "d", least=2, where=where, mend="give at least 2 features")
        for name, value in (("n_blocks", n_blocks), ("hidden", hidden)):
            whole(value, name, where=where)
        positive(clamp, "clamp", where=where)
        whole(seed, "seed", least=0, where=where)
        self.d = d
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % SEEDS)
            self.blocks = nn.ModuleList(_Block(d, hidden, clamp, number) for number in range(n_blocks))

    def forward(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """The latent z and the log-determinant.

        Parameters
        ----------
        v : (n, d) floating

        Returns
        -------
        (n, d) and (n,) of the same type
        """
        if v.ndim != 2 or v.shape[1] != self.d:
            problem = f"the shape is {tuple(v.shape)}"
            raise BadInput(problem, where="AffineCouplingFlow", mend=f"give (n, {self.d})")
        logdet = v.new_zeros(v.shape[0])
        for block in self.blocks:
            v, more = block(v)
            logdet = logdet + more
        return v, logdet

    def inverse(self, z: Tensor) -> Tensor:
        """The features that ``forward`` sends to z; (n, d)."""
        for block in reversed(self.blocks):
            z = block.inverse(z)  # type: ignore[operator]
        return z

    def log_prob(self, v: Tensor) -> Tensor:
        """(n,) log-density of features, z being standard normal [nats]."""
        z, logdet = self(v)
        return -energy(z) - self.d / 2 * math.log(2 * math.pi) + logdet


class Loss(NamedTuple):
    """Shaping, consistency, and ``total = shaping + 5 consistency``; each a scalar tensor."""

    total: Tensor
    shaping: Tensor
    consistency: Tensor


def energy(z: Tensor) -> Tensor:
    """``|z|^2 / 2`` of each row."""
    return z.square().sum(dim=1) / 2


def shaping_loss(z: Tensor, logdet: Tensor, fake: Tensor, *, margin: float, fake_sign: FakeSign = "code") -> Tensor:
    """Likelihood of real rows up, of generated rows down until their energy reaches the margin.

    Parameters
    ----------
    z : (n, d)
    logdet : (n,)
    fake : (n,) bool
    margin : energy [nats] beyond which a generated row is left alone
    fake_sign : sign of the log-determinant on generated rows, see the module

    Returns
    -------
    scalar
    """
    e = energy(z)
    away = -e - logdet if fake_sign == "code" else -e + logdet
    return torch.where(fake, away * (e < margin), e - logdet).mean() / z.shape[1]


def consistency_loss(z1: Tensor, z2: Tensor, fake: Tensor) -> Tensor:
    """Image and changed image alike for real rows, unlike for generated ones; scalar."""
    cosine = nn.functional.cosine_similarity(z1, z2, dim=1)
    return torch.where(fake, FAKE_WEIGHT * cosine * (cosine > FAKE_COSINE), 1 - cosine).mean()


def flow_loss(
    flow: AffineCouplingFlow,
    source: Tensor,
    changed: Tensor,
    fake: Tensor,
    *,
    margin: float,
    fake_sign: FakeSign = "code",
) -> Loss:
    """The whole loss of one batch.

    Parameters
    ----------
    flow : the flow
    source, changed : (n, d) features of images and of changed images
    fake : (n,) bool
    margin, fake_sign : as in `shaping_loss`
    """
    n = len(source)
    z, logdet = flow(torch.cat([source, changed]))
    halves = ((z[:n], logdet[:n]), (z[n:], logdet[n:]))
    first, second = (shaping_loss(*half, fake, margin=margin, fake_sign=fake_sign) for half in halves)
    shaping = (first + second) / 2
    consistency = consistency_loss(z[:n], z[n:], fake)
    return Loss(shaping + CONSISTENCY_WEIGHT * consistency, shaping, consistency)


def parts_of_score(z1: Tensor, z2: Tensor, *, tau: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Energy part, cosine, and ``sigmoid(energy part / tau) - cosine / 2``, each (n,); large is suspicious.

    The energy part is the sum of the views' mean squares, about 2 for what the flow was fitted to.
    """
    energies = z1.square().mean(dim=1) + z2.square().mean(dim=1)
    cosine = nn.functional.cosine_similarity(z1, z2, dim=1)
    return energies, cosine, torch.sigmoid(energies / tau) - 0.5 * cosine
