"""Whether training the parts that carry a behaviour is enough to teach it: beside random parts, and all parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import checks
from answerable.mechanisms.path_patching.pairs import Pair
from answerable.mechanisms.path_patching.sweep import Node
from answerable.mechanisms.path_patching.targets import Mask, random_nodes, targeted_mask
from answerable.subjects.language_model import LanguageModel, tokenise

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

WAYS = ("untrained", "targeted", "random parts", "all parameters")


@dataclass(frozen=True)
class Training:
    """How a model is trained to answer.

    Parameters
    ----------
    steps : steps of AdamW, each on one batch
    batch : prompts of a step
    rate : its learning rate; the first steps, a fiftieth of all, rise to it
    weight_decay : its decay, which never moves a number outside the mask
    seed : of the order of prompts, and of the random parts
    """

    steps: int = 40
    batch: int = 8
    rate: float = 1e-3
    weight_decay: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1), ("seed", 0)):
            checks.whole(getattr(self, name), f"training, {name}", least)
        checks.between(self.rate, "training, rate", 0, np.inf)
        if self.weight_decay != 0:
            checks.between(self.weight_decay, "training, weight_decay", 0, np.inf)


@dataclass(frozen=True, eq=False)
class ComparedTraining:
    """What each way of training made of a model; one entry for each of ``WAYS``.

    Parameters
    ----------
    parameters : how many numbers were free to move
    likelihood : (ways, judged) float64, log-probability of each answer [nats]
    right : (ways, judged), whether it is the likeliest word
    other_loss : rise of the loss on the twins' own words, which nobody taught [nats per token]: what else was lost
    units : of the judged pairs
    """

    parameters: tuple[int, ...]
    likelihood: Floats
    right: npt.NDArray[np.bool_]
    other_loss: tuple[float, ...]
    units: tuple[str, ...]

    def table(self) -> pl.DataFrame:
        """One row for each way: parameters trained, accuracy with its interval, log-probability, rise of other loss."""
        import polars as pl

        from answerable.statistics import clopper_pearson_interval

        found = [clopper_pearson_interval(int(one.sum()), len(one)) for one in self.right]
        return pl.DataFrame(
            {
                "way": WAYS,
                "parameters": self.parameters,
                "accuracy": [one.value for one in found],
                "low": [one.low for one in found],
                "high": [one.high for one in found],
                "log_probability": self.likelihood.mean(axis=1),
                "other_loss": self.other_loss,
            }
        )

    def gain(self, *, seed: int, resamples: int = 2000) -> tuple[float, float, float, str]:
        """Mean log-probability after targeted training less that after training random parts, with its interval."""
        from answerable.statistics import bootstrap_interval

        difference = self.likelihood[WAYS.index("targeted")] - self.likelihood[WAYS.index("random parts")]
        interval = bootstrap_interval(
            lambda rows: rows.mean(axis=-1), difference, seed=seed, resamples=resamples, vectorized=True,
            clusters=np.asarray(self.units),
        )  # fmt: skip
        return interval.value, interval.low, interval.high, interval.method


def compared_training(
    lm: LanguageModel,
    nodes: Sequence[Node],
    taught: Sequence[tuple[Pair, int]],
    judged: Sequence[tuple[Pair, int]],
    training: Training | None = None,
) -> ComparedTraining:
    """Train the parts, as many random ones, and everything; judge each on other prompts.

    Parameters
    ----------
    lm : the model; it stays as it is, copies are trained
    nodes : heads and feed-forward parts to train
    taught, judged : pairs with the token of their answer; they share no unit
    training : how; the defaults by default

    Raises
    ------
    BadInput : prompts that stand in both sets, or none in one of them
    """
    training = training or Training()
    if not taught or not judged:
        raise BadInput(
            f"{len(taught)} prompts to teach, {len(judged)} to judge", where="training", mend="give more pairs"
        )
    shared = {pair.unit for pair, _ in taught} & {pair.unit for pair, _ in judged}
    if shared:
        twice = f"{sorted(shared)[0]!r:.60} is taught and judged"
        raise BadInput(twice, where="training", mend="judge on other words")
    before = _loss_of_twins(lm, judged)
    found = []
    for way in WAYS:
        model, count = trained_copy(lm, way, nodes, taught, training)
        found.append((count, *_answered(model, judged), _loss_of_twins(model, judged) - before))
    counts, likelihood, right, losses = zip(*found, strict=True)
    units = tuple(pair.unit for pair, _ in judged)
    return ComparedTraining(counts, np.stack(likelihood), np.stack(right), losses, units)


def trained_copy(
    lm: LanguageModel, way: str, nodes: Sequence[Node], taught: Sequence[tuple[Pair, int]], training: Training
) -> tuple[LanguageModel, int]:
    """A copy that is trained in one of ``WAYS``, and how many numbers of it were free to move."""
    if way == "untrained":
        return lm, 0
    copied = replace(lm, model=copy.deepcopy(lm.model), digest=None)
    if way == "all parameters":
        train(copied, taught, training)
        return copied, sum(parameter.numel() for parameter in copied.model.parameters())
    chosen = nodes if way == "targeted" else random_nodes(lm, nodes, seed=training.seed)
    mask = targeted_mask(copied, list(chosen))
    train(copied, taught, training, mask)
    return copied, mask.count


def train(lm: LanguageModel, taught: Sequence[tuple[Pair, int]], training: Training, mask: Mask | None = None) -> None:
    """Teach the answers of prompts, in place; every batch is of prompts of one length, so that none is padded."""
    import torch

    rng = np.random.default_rng(training.seed)
    rows = [(tokenise(lm, pair.positive).ids, answer) for pair, answer in taught]
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=training.rate, weight_decay=training.weight_decay)
    if mask is not None:
        mask.apply(optimizer)
    warm = max(1, round(0.02 * training.steps))
    with torch.enable_grad():
        for step in range(training.steps):
            for group in optimizer.param_groups:
                group["lr"] = training.rate * min(1.0, (step + 1) / warm)
            optimizer.zero_grad()
            drawn = [rows[i] for i in rng.permutation(len(rows))[: training.batch]]
            for length in sorted({len(ids) for ids, _ in drawn}):
                some = [(ids, answer) for ids, answer in drawn if len(ids) == length]
                logits = _last_logits(lm, [ids for ids, _ in some])
                answers = torch.tensor([answer for _, answer in some], device=logits.device)
                (torch.nn.functional.cross_entropy(logits, answers, reduction="sum") / len(drawn)).backward()
            optimizer.step()
    optimizer.zero_grad()


def _answered(lm: LanguageModel, judged: Sequence[tuple[Pair, int]]) -> tuple[Any, Any]:
    """Log-probability of each answer, and whether it is the likeliest word."""
    import torch

    likelihood, right = np.empty(len(judged)), np.empty(len(judged), dtype=bool)
    with torch.no_grad():
        for places, ids in _by_length(lm, [pair.positive for pair, _ in judged]):
            logits = _last_logits(lm, ids).double()
            answers = torch.tensor([judged[i][1] for i in places], device=logits.device)
            likelihood[places] = logits.log_softmax(-1).gather(-1, answers[:, None])[:, 0].cpu()
            right[places] = (logits.argmax(-1) == answers).cpu()
    return likelihood, right


def _loss_of_twins(lm: LanguageModel, judged: Sequence[tuple[Pair, int]]) -> float:
    """Mean loss on the words of the twins themselves, which nobody trains on [nats per token]."""
    import torch

    total, count = 0.0, 0
    with torch.no_grad():
        for _, rows in _by_length(lm, [pair.negative for pair, _ in judged]):
            ids = _tensor(lm, rows)
            if ids.shape[1] < 2:
                continue
            likelihood = lm.model(ids, use_cache=False).logits[:, :-1].log_softmax(-1)
            total -= float(likelihood.gather(-1, ids[:, 1:, None]).sum())
            count += ids[:, 1:].numel()
    return total / max(count, 1)


def _by_length(lm: LanguageModel, prompts: Sequence[Any]) -> list[tuple[list[int], list[list[int]]]]:
    ids = [tokenise(lm, prompt).ids for prompt in prompts]
    places = [[i for i, row in enumerate(ids) if len(row) == length] for length in sorted({len(row) for row in ids})]
    return [(some, [ids[i] for i in some]) for some in places]


def _last_logits(lm: LanguageModel, rows: Sequence[Sequence[int]]) -> Any:
    return lm.model(_tensor(lm, rows), use_cache=False).logits[:, -1]


def _tensor(lm: LanguageModel, rows: Sequence[Sequence[int]]) -> Any:
    import torch

    return torch.tensor(list(map(list, rows)), device=lm.model.get_input_embeddings().weight.device)
