"""The flow as an estimator: fitted to features of real images, and away from generated ones where there are any."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from answerable.errors import BadInput
from answerable.statistics import Floats

from .checks import one_of, positive, whole
from .flow import SEEDS, AffineCouplingFlow, FakeSign, flow_loss, parts_of_score

ROWS_AT_ONCE = 2048


class ScoreParts(NamedTuple):
    """What a score is made of, each (n,) float64.

    energy : sum of the two views' mean squares; about 2 for what the flow was fitted to
    cosine : of the two views' z
    total : sigmoid(energy / tau) less half the cosine; large is suspicious
    """

    energy: Floats
    cosine: Floats
    total: Floats


class Epoch(NamedTuple):
    """Mean losses of one pass over the features."""

    total: float
    shaping: float
    consistency: float


class FlowConsistencyDetector:
    """F-ConV: a coupling flow over features, with its shaping and consistency losses.

    Parameters
    ----------
    n_blocks, hidden, clamp : of the `AffineCouplingFlow`
    margin : energy beyond which a generated row is left alone; "2d" is twice the number of features, four times what
        a standard normal has
    lr, weight_decay : of AdamW (betas 0.9 and 0.999), on a cosine schedule
    epochs : passes over the features
    batch_size : rows of a step
    fake_sign : sign of the log-determinant on generated rows: "code" or "paper"
    tau : by which the energy is divided in the score; the paper's 1 leaves it a span of 0.12
    combine : "sigmoid" as the authors, or "ranks" for the mean of both parts' ranks among the rows fitted to
    random_state : of initial weights and order

    Attributes
    ----------
    flow_ : the fitted flow
    history_ : losses of each epoch
    pushed_away_ : how many generated rows it was fitted away from
    """

    def __init__(
        self,
        *,
        n_blocks: int = 2,
        hidden: int = 4096,
        clamp: float = 3.0,
        margin: float | Literal["2d"] = "2d",
        lr: float = 1e-5,
        weight_decay: float = 1e-2,
        epochs: int = 1,
        batch_size: int = 512,
        fake_sign: FakeSign = "code",
        tau: float = 1.0,
        combine: Literal["sigmoid", "ranks"] = "sigmoid",
        random_state: int = 0,
    ) -> None:
        one_of(fake_sign, ("code", "paper"), "fake_sign")
        one_of(combine, ("sigmoid", "ranks"), "combine")
        for name, value in (("lr", lr), ("tau", tau), ("clamp", clamp)):
            positive(value, name)
        positive(weight_decay, "weight_decay", mend="give 0 or a number above it", zero=True)
        for name, value in (("n_blocks", n_blocks), ("hidden", hidden), ("epochs", epochs), ("batch_size", batch_size)):
            whole(value, name)
        whole(random_state, "random_state", least=0)
        if margin != "2d":
            positive(margin, "margin", mend="give a number above 0, or 2d")
        self.n_blocks, self.hidden, self.clamp, self.margin = n_blocks, hidden, clamp, margin
        self.lr, self.weight_decay, self.epochs, self.batch_size = lr, weight_decay, epochs, batch_size
        self.fake_sign, self.tau, self.combine, self.random_state = fake_sign, tau, combine, random_state

    def fit(self, feats: Any) -> FlowConsistencyDetector:
        """Fit the flow.

        Parameters
        ----------
        feats : `Features`, one view each: ``source`` and ``changed`` (n, d), ``labels`` (1 generated; 0 real; -1 not
            known, which counts as real)

        Returns
        -------
        the detector itself

        Raises
        ------
        BadInput : no real row, or a loss that is not finite
        """
        source, changed = _rows(feats)
        fake = _generated(feats, len(source))
        if fake.all():
            raise BadInput("all images are labelled generated", where="features", mend="give real images too")
        self.pushed_away_ = int(fake.sum())
        if not self.pushed_away_:
            warnings.warn("The flow is fitted to real images alone: nothing was pushed away.", stacklevel=2)
        d = source.shape[1]
        margin = 2.0 * d if self.margin == "2d" else float(self.margin)
        self.flow_ = AffineCouplingFlow(
            d, n_blocks=self.n_blocks, hidden=self.hidden, clamp=self.clamp, seed=self.random_state
        )
        order = torch.Generator().manual_seed(self.random_state % SEEDS)
        steps = self.epochs * math.ceil(len(source) / self.batch_size)
        optimiser = torch.optim.AdamW(
            self.flow_.parameters(), lr=self.lr, betas=(0.9, 0.999), weight_decay=self.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        self.history_: list[Epoch] = []
        for _ in range(self.epochs):
            losses = []
            for rows in torch.randperm(len(source), generator=order).split(self.batch_size):
                loss = flow_loss(self.flow_, source[rows], changed[rows], fake[rows], margin=margin,
                                 fake_sign=self.fake_sign)  # fmt: skip
                if not bool(torch.isfinite(loss.total)):
                    raise BadInput("the loss is not finite", where="flow", mend="lower lr, or scale the features")
                optimiser.zero_grad(set_to_none=True)
                loss.total.backward()
                optimiser.step()
                schedule.step()
                losses.append([float(part.detach()) * len(rows) for part in loss])
            self.history_.append(Epoch(*(np.sum(losses, axis=0) / len(source)).tolist()))
        self._fitted = self._parts(source, changed)
        return self

    def score_parts(self, feats: Any) -> ScoreParts:
        """Energy, cosine and the score of each image.

        Raises
        ------
        BadInput : the detector was not fitted, or features of another size
        """
        if not hasattr(self, "flow_"):
            raise BadInput("the detector was not fitted", mend="call fit with features of real images")
        source, changed = _rows(feats)
        if source.shape[1] != self.flow_.d:
            problem = f"{source.shape[1]} features an image; the flow was fitted to {self.flow_.d}"
            raise BadInput(problem, where="features", mend="extract them with the same backbone")
        energy, cosine, total = self._parts(source, changed)
        if self.combine == "ranks":
            known = (np.sort(self._fitted[0]), np.sort(-self._fitted[1]))
            ranks = [np.searchsorted(a, b, side="right") / len(a) for a, b in zip(known, (energy, -cosine))]
            total = (ranks[0] + ranks[1]) / 2
        return ScoreParts(energy, cosine, total)

    def score_samples(self, feats: Any) -> Floats:
        """(n,) float64 scores, large is suspicious."""
        return self.score_parts(feats).total

    def _parts(self, source: torch.Tensor, changed: torch.Tensor) -> tuple[Floats, Floats, Floats]:
        found = []
        with torch.inference_mode():
            for first, second in zip(source.split(ROWS_AT_ONCE), changed.split(ROWS_AT_ONCE)):
                found.append(parts_of_score(self.flow_(first)[0], self.flow_(second)[0], tau=self.tau))
        energy, cosine, total = (torch.cat(part).double().numpy() for part in zip(*found))
        return energy, cosine, total


def _generated(feats: Any, n: int) -> torch.Tensor:
    labels = np.asarray(feats.labels)
    if labels.shape != (n,):
        raise BadInput(f"the shape is {labels.shape}", where="labels", mend=f"give one label for each of {n} images")
    wrong = ~np.isin(labels, (-1, 0, 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        mend = "use 1 for generated, 0 for real, -1 for not known"
        raise BadInput(f"the label is {labels[row]!s}", where=f"labels, row {row + 1}", mend=mend)
    return torch.from_numpy(labels == 1)


def _rows(feats: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if not all(hasattr(feats, name) for name in ("source", "changed", "labels")):
        mend = "give Features, as extract_features makes them"
        raise BadInput(f"a {type(feats).__name__} holds no features", where="features", mend=mend)
    source, changed = (np.asarray(part, dtype=np.float32) for part in (feats.source, feats.changed))
    if source.ndim != 2 or source.shape != changed.shape or not len(source):
        problem = f"the shapes are {source.shape} and {changed.shape}"
        raise BadInput(problem, where="features", mend="give one view each, (images, d)")
    if not (np.isfinite(source).all() and np.isfinite(changed).all()):
        raise BadInput("a feature is not finite", where="features", mend="extract them in float32")
    return torch.from_numpy(np.ascontiguousarray(source)), torch.from_numpy(np.ascontiguousarray(changed))
