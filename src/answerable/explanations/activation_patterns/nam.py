"""Neural additive models (Agarwal et al. 2021), many at once: every network of every learner is a slice of one tensor.

A neural additive model is a sum of small networks, one per feature or pair. An ensemble of 100 over 6 features is 600
networks of a few hundred weights: one by one they are 600 calls of tiny products per layer, together one batched
product.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from answerable.statistics import Floats

from .estimator import BadTable
from .solver import Term

Activation = Literal["relu", "exu"]

LARGEST_BATCH = 4096  # rows evaluated at once
NETS_AT_ONCE = 16  # trained together: what they hold of a batch stays in the processor's cache


class NAMEnsemble(ClassifierMixin, BaseEstimator):
    """An ensemble of neural additive models for two classes, trained as one tensor program.

    Parameters
    ----------
    n_learners : neural additive models, each with its own first weights, batches, dropout and best epoch
    hidden : widths of the hidden layers after the first
    first : width of the first layer
    activation : of the first layer: ``relu``, or ``exu``, units ``clip((x - b) exp(w), 0, 1)`` that can jump within a
        small step of the feature; later layers are always ReLU
    pairs : pairs of feature numbers that get a network of two inputs
    epochs : at most
    patience : epochs without a better validation loss after which a learner keeps its best weights
    batch : rows of one step
    learning_rate : of Adam
    output_penalty : on the mean square of the components
    dropout, feature_dropout : shares of hidden units, and of whole components, left out of a step
    validation : share of rows that decide which epoch is kept
    random_state : seed of everything random

    Attributes
    ----------
    classes_ : (2,) the labels; the second is what the log-odds are of
    terms_ : features of each network
    intercept_ : mean global bias of the learners

    Notes
    -----
    Settings are those of Clark et al. (NeurIPS 2025), rounded: Adam at 0.02, dropout 0.1 and 0.05, output penalty 0.2.
    Features are standardised inside.
    """

    def __init__(
        self,
        n_learners: int = 100,
        hidden: Sequence[int] = (16, 16, 16),
        *,
        first: int = 16,
        activation: Activation = "relu",
        pairs: Sequence[tuple[int, int]] = (),
        epochs: int = 100,
        patience: int = 50,
        batch: int = 1024,
        learning_rate: float = 0.0208,
        output_penalty: float = 0.2078,
        dropout: float = 0.1,
        feature_dropout: float = 0.05,
        validation: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.n_learners = n_learners
        self.hidden = hidden
        self.first = first
        self.activation = activation
        self.pairs = pairs
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.learning_rate = learning_rate
        self.output_penalty = output_penalty
        self.dropout = dropout
        self.feature_dropout = feature_dropout
        self.validation = validation
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NAMEnsemble:
        """Train all learners.

        Parameters
        ----------
        X : (n_samples, n_features), numbers
        y : (n_samples,) two labels
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if self.activation not in ("relu", "exu"):
            raise BadTable(f"it is {self.activation!r}", where="activation", mend="choose relu or exu")
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise BadTable(
                f"Only binary classification is supported. The target has {len(self.classes_)} classes",
                where="y",
                mend="set one against the rest",
            )
        if len(self.classes_) < 2:
            raise BadTable(f"every label is {self.classes_[0]}, one class", where="y", mend="both classes are needed")
        self.mean_ = X.mean(axis=0)
        self.scale_ = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        self.terms_: list[Term] = [(j,) for j in range(X.shape[1])] + [tuple(pair) for pair in self.pairs]
        target = torch.from_numpy((y == self.classes_[1]).astype(np.float32))
        rows = torch.from_numpy(((X - self.mean_) / self.scale_).astype(np.float32))
        generator = torch.Generator().manual_seed(self.random_state)
        self._train(rows, target, generator)
        self.intercept_ = float(self.bias_.mean())
        return self

    def components(self, X: Any) -> Floats:
        """(n_samples, n_terms) values of each component in log-odds, averaged over the learners."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        rows = torch.from_numpy(((X - self.mean_) / self.scale_).astype(np.float32))
        at_once = max(64, LARGEST_BATCH // self.n_learners * 8)
        with torch.no_grad():
            found = [
                _outputs(self._weights, self._inputs(rows[start : start + at_once]), self._steep())
                .view(self.n_learners, len(self.terms_), -1)
                .mean(dim=0)
                .T
                for start in range(0, len(rows), at_once)
            ]
        return torch.cat(found).numpy().astype(np.float64)

    def decision_function(self, X: Any) -> Floats:
        """(n_samples,) log-odds of ``classes_[1]``: the sum of the components and the intercept."""
        return self.components(X).sum(axis=1) + self.intercept_

    def predict(self, X: Any) -> Any:
        """(n_samples,) the likelier class."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _inputs(self, rows: torch.Tensor) -> torch.Tensor:
        """(learners * terms, rows, 2) inputs of every network; the second is 0 for one feature."""
        return _gathered(rows.expand(self.n_learners, *rows.shape), self.terms_)

    def _steep(self) -> torch.Tensor | None:
        """(terms, 2, 1) which inputs a network of ExU units has; None for ReLU."""
        if self.activation == "relu":
            return None
        return torch.tensor([[1.0, float(len(term) > 1)] for term in self.terms_]).unsqueeze(-1)

    def _train(self, rows: torch.Tensor, target: torch.Tensor, generator: torch.Generator) -> None:
        """Train the learners group by group; no learner knows of another, so groups change nothing but the speed."""
        order = torch.randperm(len(rows), generator=generator)
        held = round(self.validation * len(rows))
        kept, watched = order[held:], order[:held] if held else order
        size = max(1, NETS_AT_ONCE // len(self.terms_))
        groups = [
            self._train_group(min(size, self.n_learners - start), rows, target, kept, watched, generator)
            for start in range(0, self.n_learners, size)
        ]
        parts = [torch.cat(part) for part in zip(*groups, strict=True)]
        self._weights, self.bias_ = parts[:-1], parts[-1].numpy().ravel().astype(np.float64)

    def _train_group(
        self,
        n_learners: int,
        rows: torch.Tensor,
        target: torch.Tensor,
        kept: torch.Tensor,
        watched: torch.Tensor,
        generator: torch.Generator,
    ) -> list[torch.Tensor]:
        """The best weights of some learners, and their biases."""
        steep = self._steep()
        weights = _first_weights((2, self.first, *self.hidden, 1), n_learners, self.terms_, self.activation, generator)
        share = target.mean().clamp(1e-4, 1 - 1e-4)
        bias = torch.full((n_learners, 1), float(torch.logit(share)), requires_grad=True)
        for weight in weights:
            weight.requires_grad_(True)
        parameters = [*weights, bias]
        adam = torch.optim.Adam(parameters, lr=self.learning_rate, foreach=True)
        best = [parameter.detach().clone() for parameter in parameters]
        least = torch.full((n_learners,), torch.inf)
        since = torch.zeros(n_learners, dtype=torch.long)
        seen = _gathered(rows[watched].expand(n_learners, -1, -1), self.terms_)
        for _epoch in range(self.epochs):
            self._one_epoch(rows, target, kept, parameters, adam, generator)
            with torch.no_grad():
                linear = _outputs(weights, seen, steep).view(n_learners, len(self.terms_), -1).sum(dim=1) + bias
                loss = torch.nn.functional.softplus(linear).mean(1) - (linear * target[watched]).mean(1)
                better = loss < least
                least, since = torch.where(better, loss, least), torch.where(better, 0, since + 1)
                nets = better.repeat_interleave(len(self.terms_))
                for chosen, parameter in zip(best, parameters, strict=True):
                    mask = better if parameter is bias else nets
                    chosen[mask] = parameter[mask]
            if bool((since >= self.patience).all()):
                break
        return best

    def _one_epoch(
        self,
        rows: torch.Tensor,
        target: torch.Tensor,
        kept: torch.Tensor,
        parameters: list[torch.Tensor],
        adam: torch.optim.Adam,
        generator: torch.Generator,
    ) -> None:
        """Every learner sees every row once, in an order of its own."""
        *weights, bias = parameters
        steep = self._steep()
        n_learners = len(bias)
        shuffled = kept[torch.argsort(torch.rand(n_learners, len(kept), generator=generator), dim=1)]
        for start in range(0, len(kept), self.batch):
            drawn = shuffled[:, start : start + self.batch]
            inputs = _gathered(rows[drawn], self.terms_)
            outputs = _outputs(weights, inputs, steep, self.dropout, generator).view(n_learners, len(self.terms_), -1)
            used = outputs
            if self.feature_dropout:
                used = outputs * _kept(outputs.shape, self.feature_dropout, generator)
            linear = used.sum(dim=1) + bias
            fit = torch.nn.functional.softplus(linear) - linear * target[drawn]
            # Learners share no weight, so the sum of their losses gives each its own gradient.
            loss = (fit.mean(dim=1) + self.output_penalty * outputs.square().mean(dim=(1, 2))).sum()
            adam.zero_grad()
            loss.backward()
            adam.step()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _gathered(rows: torch.Tensor, terms: Sequence[Term]) -> torch.Tensor:
    """From (learners, rows, features) to (learners * terms, rows, 2)."""
    first = torch.tensor([term[0] for term in terms])
    second = torch.tensor([term[-1] for term in terms])
    single = torch.tensor([len(term) == 1 for term in terms])
    pair = torch.stack([rows[:, :, first], rows[:, :, second].masked_fill(single, 0.0)], dim=-1)
    return pair.permute(0, 2, 1, 3).reshape(-1, rows.shape[1], 2)


def _outputs(
    weights: list[torch.Tensor],
    inputs: torch.Tensor,
    steep: torch.Tensor | None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """(networks, rows) outputs; weights alternate with biases, the last layer has none.

    ``steep`` tells which inputs ExU units of the first layer have, (terms, 2, 1); None for ReLU.
    """
    found = inputs
    for layer in range(0, len(weights) - 1, 2):
        if layer == 0 and steep is not None:
            rise = torch.exp(weights[0]) * steep.repeat(len(inputs) // len(steep), 1, 1)
            found = torch.bmm(found - weights[1].transpose(1, 2), rise).clamp(0.0, 1.0)
        else:
            found = torch.relu(torch.baddbmm(weights[layer + 1], found, weights[layer]))
        if dropout:
            found = found * _kept(found.shape, dropout, generator)
    return torch.bmm(found, weights[-1]).squeeze(-1)


def _kept(shape: torch.Size, share: float, generator: torch.Generator | None) -> torch.Tensor:
    """What to multiply with: 0 for a random ``share`` (to 1/256), else the factor that keeps the mean.

    Random bits cost more than the products here, so each drawn word decides on eight units.
    """
    cut = max(1, round(256 * share))
    words = torch.empty((shape.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    stays = words.view(torch.uint8)[: shape.numel()].view(shape) >= cut
    return stays.to(torch.float32).mul_(256 / (256 - cut))


def _first_weights(
    widths: tuple[int, ...], n_learners: int, terms: Sequence[Term], activation: Activation, generator: torch.Generator
) -> list[torch.Tensor]:
    weights: list[torch.Tensor] = []
    n_nets = n_learners * len(terms)
    for layer, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        drawn = torch.randn(n_nets, fan_in, fan_out, generator=generator)
        if layer == 0 and activation == "exu":
            # As Agarwal et al. begin: slopes about exp(4) and bends about 0, each cut off at two deviations.
            bends = torch.randn(n_nets, fan_in, 1, generator=generator)
            weights += [4.0 + 0.5 * drawn.clamp(-2.0, 2.0), 0.5 * bends.clamp(-2.0, 2.0)]
            continue
        drawn *= (2 / fan_in) ** 0.5
        if layer == 0:
            drawn[torch.tensor([len(term) == 1 for term in terms]).repeat(n_learners), 1] = 0.0
        weights.append(drawn)
        if layer < len(widths) - 2:
            shift = torch.rand(n_nets, 1, fan_out, generator=generator) * 2 - 1 if layer == 0 else None
            weights.append(torch.zeros(n_nets, 1, fan_out) if shift is None else shift)
    return weights
