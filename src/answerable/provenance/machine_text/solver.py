"""Statistics of a text under language models, all from one pass over the logits.

The score is the implicit reward of Liu, Huang, Xiao and Wu, "Zero-Shot Detection of LLM-Generated Text via Implicit
Reward Model" (NeurIPS 2025): the log-ratio of an instruct model to the base model it was made from,

    r(y) = sum over t of log p(y_t | y_<t) - log q(y_t | y_<t),

with p the instruct model and q its base. If the tuning had reached its optimum ``p ~ q exp(R / beta)``, r would be the
reward R up to an affine map; and as a likelihood ratio no test of "written by p" against "written by q" is more
powerful (Neyman and Pearson). Beside it stand log-likelihood, LogRank and LRR (Su et al. 2023), entropy, Fast-DetectGPT
in its analytic form (Bao et al. 2024) and Binoculars (Hans et al. 2024).

Logits are float32, everything summed over tokens is float64. Each model's law is taken over its own vocabulary, padded
rows included; where two laws meet in one sum, over the ids that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float64]
Normalise = Literal["sum", "mean", "sqrt"]

# What a machine's text makes large; Binoculars and entropy fall, and are negated.
STATISTICS = ("irm", "irm_mean", "irm_sqrt", "fast_detect", "binoculars", "loglik", "logrank", "lrr", "entropy")
FALLING = frozenset({"binoculars", "entropy"})
OF_PAIR = frozenset({"irm", "irm_mean", "irm_sqrt", "binoculars"})

_LOWEST = -1e4  # nats; a logit of minus infinity counts as this far below the largest, so that 0 times it is 0
_BLOCK_BYTES = 1 << 20  # logits that are worked on at once stay in the processor's cache


class TextStatistics(NamedTuple):
    """The statistics of one text; NaN where there is nothing to score or no second model.

    n_scored : tokens that have something before them
    loglik : mean log-probability by the model [nats]
    logrank : less the mean log of the rank of the token that came [1]
    lrr : mean log-probability over mean log-rank, as an absolute value [nats]
    entropy : mean entropy of the next token's law [nats]
    fast_detect : log-probability less its mean under the reference's law, over its standard deviation [1]
    binoculars : mean surprise over mean cross-entropy with the base model; small for machines [1]
    irm, irm_mean, irm_sqrt : the log-ratio of both models: summed, a token, over the root of the tokens [nats]
    """

    n_scored: int
    loglik: float
    logrank: float
    lrr: float
    entropy: float
    fast_detect: float
    binoculars: float
    irm: float
    irm_mean: float
    irm_sqrt: float


def token_statistics(logits: Sequence[torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the statistics need of each token, from the logits of one model or two.

    Parameters
    ----------
    logits : of the model and, if there is one, of its reference or base: (n, V) float32 each; the widths may differ
    ids : (n,) int64, the token that came; -1 where none did

    Returns
    -------
    dict of (n,) float32: ``log_p`` [nats] and ``rank`` (from 1) of the token that came, ``entropy`` of the model's law
    [nats], ``mean`` and ``variance`` of the model's log-probability under the reference's law (the model's own, where
    there is no other), and ``log_q`` by the reference. Where no token came, ``log_p``, ``rank`` and ``log_q`` are 0
    """
    import torch

    rows = max(1, _BLOCK_BYTES // (4 * logits[0].shape[1]))
    blocks = [
        _block([side[start : start + rows] for side in logits], ids[start : start + rows])
        for start in range(0, len(ids), rows)
    ]
    return {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}


def _block(logits: list[torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """One pass over a few rows: one exponential and four sums for each logit of a model."""
    came, at = ids >= 0, ids.clamp(min=0)[:, None]
    own = logits[0]
    label = own.gather(1, at)
    depth = own - own.amax(1, keepdim=True)  # log-probability up to a constant of the row
    label_depth = depth.gather(1, at)[:, 0]
    depth.clamp_(min=_LOWEST)
    weight = depth.exp()
    total = weight.sum(1)
    log_total = total.log()
    product = weight * depth
    first = product.sum(1) / total
    found = {
        "log_p": (label_depth - log_total).where(came, 0.0),
        # Counting what lies above is linear; a sort of all logits is what peers spend most of their time on.
        "rank": ((own > label).sum(1) + 1.0).where(came, 0.0),
        "entropy": log_total - first,
    }
    if len(logits) == 1:
        second = product.mul_(depth).sum(1) / total
        return found | {"mean": first - log_total, "variance": (second - first**2).clamp_(min=0.0)}
    other = logits[1]
    other_depth = other - other.amax(1, keepdim=True)
    other_label = other_depth.gather(1, at)[:, 0]
    other_weight = other_depth.exp_()
    other_log_total = other_weight.sum(1).log()
    shared = min(own.shape[1], other.shape[1])
    other_weight, depth = other_weight[:, :shared], depth[:, :shared]
    mass = other_weight.sum(1)
    product = other_weight * depth
    first = product.sum(1) / mass
    second = product.mul_(depth).sum(1) / mass
    return found | {
        "log_q": (other_label - other_log_total).where(came, 0.0),
        "mean": first - log_total,
        "variance": (second - first**2).clamp_(min=0.0),
    }


def statistics_of_tokens(tokens: Mapping[str, npt.NDArray[Any]], *, compat: bool = False) -> TextStatistics:
    """A text's statistics from those of its tokens.

    Parameters
    ----------
    tokens : as `token_statistics` gives them, (n,) each; ``log_p`` alone, or with ``log_q``, gives what these give.
        With ``compat`` one more for the token after the text
    compat : Binoculars as its public code has it: the cross-entropy averaged over one token more

    Returns
    -------
    TextStatistics
    """
    if not tokens or not len(tokens["log_p"]):
        return TextStatistics(0, *[np.nan] * 9)
    columns = {name: np.asarray(column, dtype=np.float64) for name, column in tokens.items()}
    mean_of_law = columns["mean"].mean() if "mean" in columns else np.nan
    if compat:
        columns = {name: column[:-1] for name, column in columns.items()}
    n = len(columns["log_p"])
    if not n:
        return TextStatistics(0, *[np.nan] * 9)
    log_p = columns["log_p"]
    log_rank = float(np.log(columns["rank"]).mean()) if "rank" in columns else np.nan
    ratio = float((log_p - columns["log_q"]).sum()) if "log_q" in columns else np.nan
    surprise = -float(log_p.mean())
    return TextStatistics(
        n_scored=n,
        loglik=-surprise,
        logrank=-log_rank,
        lrr=_over(surprise, log_rank),
        entropy=float(columns["entropy"].mean()) if "entropy" in columns else np.nan,
        fast_detect=_curvature(log_p, columns),
        binoculars=_over(surprise, -mean_of_law) if "log_q" in columns else np.nan,
        irm=ratio,
        irm_mean=ratio / n,
        irm_sqrt=ratio / float(np.sqrt(n)),
    )


def _curvature(log_p: Floats, columns: Mapping[str, Floats]) -> float:
    """Fast-DetectGPT's: how far the text's log-probability lies above that of a text drawn from the law."""
    if "mean" not in columns:
        return float("nan")
    return _over(float((log_p - columns["mean"]).sum()), float(np.sqrt(columns["variance"].sum())))


def _over(numerator: float, denominator: float) -> float:
    """A ratio that may be infinite; NaN for 0 over 0, as where a model is certain of every token."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(numerator) / np.float64(denominator))


def normalised(score: float, n_scored: int, normalise: Normalise = "sum") -> float:
    """A summed log-ratio as it is, a token, or over the root of the number of tokens; NaN without tokens."""
    if n_scored < 1:
        return float("nan")
    return float(score / {"sum": 1.0, "mean": n_scored, "sqrt": np.sqrt(n_scored)}[normalise])


def irm_from_logprobs(
    policy_logprobs: Sequence[float] | Floats,
    reference_logprobs: Sequence[float] | Floats,
    normalize: Normalise = "sum",
) -> float:
    """The score of one text from recorded log-probabilities; no model is needed.

    Parameters
    ----------
    policy_logprobs : (n,) by the instruct model [nats]
    reference_logprobs : (n,) by its base model, of the same tokens
    normalize : "sum", "mean" (a token) or "sqrt" (over the root of n)

    Returns
    -------
    float [nats], large for machines; NaN if n = 0

    Raises
    ------
    BadInput : the lengths differ, an entry is no number, missing, not finite or above 0, or no such ``normalize``
    """
    if normalize not in get_args(Normalise):
        raise BadInput(f"normalize is {normalize!r}", mend="say sum, mean or sqrt")
    names = ("policy_logprobs", "reference_logprobs")
    try:
        sides = [np.asarray(side, dtype=np.float64) for side in (policy_logprobs, reference_logprobs)]
    except (TypeError, ValueError):
        problem = "these are not numbers"
        raise BadInput(problem, where=" and ".join(names), mend="give natural logarithms of probabilities") from None
    if sides[0].shape != sides[1].shape or sides[0].ndim != 1:
        problem = f"there are {sides[0].size} and {sides[1].size} log-probabilities"
        raise BadInput(problem, where=" and ".join(names), mend="give one of each for every token")
    for side, name in zip(sides, names, strict=True):
        wrong = ~np.isfinite(side) | (side > 1e-6)
        if wrong.any():
            token = int(np.argmax(wrong))
            mend = "give natural logarithms of probabilities"
            raise BadInput(f"{side[token]:g} is no log-probability", where=f"{name}, token {token + 1}", mend=mend)
    return normalised(float((sides[0] - sides[1]).sum()), len(sides[0]), normalize)


def suspicious(name: str, values: npt.ArrayLike) -> Floats:
    """A statistic turned so that large is machine-like; the order of numbers that fall is kept by a minus."""
    column = np.asarray(values, dtype=np.float64)
    return -column if name in FALLING else column
