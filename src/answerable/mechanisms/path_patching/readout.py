"""How the answer stands at the output layer, from what that layer reads: one number for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, part
from answerable.subjects.language_model.pieces import capped, logits_of

Metric = Literal["logit_difference", "centred_logit", "log_probability", "relative_logit"]
UNITS = {
    "logit_difference": "logits",
    "centred_logit": "logits",
    "log_probability": "nats",
    "relative_logit": "logits",
}
WORDS = 1 << 24  # logits held at once


@dataclass(frozen=True, eq=False)
class Readout:
    """Reads the answer of n pairs off n rows, or many times n rows.

    Parameters
    ----------
    lm : whose output layer
    answers : n token ids
    foils : n token ids of wrong answers, or None
    metric : "logit_difference" (answer less foil), "centred_logit" (answer less the mean of all logits),
        "log_probability", or "relative_logit" (the answer's logit as it stands, which has no zero of its own)
    raw : take logits before the model's soft cap
    """

    lm: LanguageModel
    answers: Sequence[int]
    foils: Sequence[int] | None
    metric: Metric
    raw: bool = False

    def __post_init__(self) -> None:
        if self.metric == "logit_difference" and self.foils is None:
            raise BadInput(
                "a logit difference needs a foil for every pair",
                where="metric",
                mend="give foils, or choose centred_logit",
            )

    def __call__(self, final: Any) -> Any:
        """(..., n, m) -> (..., n), in the metric's unit."""
        import torch

        answers = torch.as_tensor(list(self.answers), device=final.device)
        if self._needs_all_words:
            return self._from_all_words(final, answers)
        found = self._of_words(final, answers)
        if self.metric == "logit_difference":
            assert self.foils is not None
            return found - self._of_words(final, torch.as_tensor(list(self.foils), device=final.device))
        if self.metric == "centred_logit":
            output = part(self.lm, "unembedding")
            mean = final @ output.weight.mean(0)
            return found - (mean if output.bias is None else mean + output.bias.mean())
        return found

    @property
    def _needs_all_words(self) -> bool:
        cap = getattr(self.lm.model.config, "final_logit_softcapping", None)
        return self.metric == "log_probability" or (self.metric == "centred_logit" and bool(cap) and not self.raw)

    def _of_words(self, final: Any, words: Any) -> Any:
        output = part(self.lm, "unembedding")
        found = (final * output.weight[words]).sum(-1)
        found = found if output.bias is None else found + output.bias[words]
        return found if self.raw else capped(self.lm, found)

    def _from_all_words(self, final: Any, answers: Any) -> Any:
        import torch

        flat = final.reshape(-1, final.shape[-1])
        words = answers.expand(final.shape[:-1]).reshape(-1)
        block = max(1, WORDS // part(self.lm, "unembedding").weight.shape[0])
        parts = []
        for rows, wanted in zip(flat.split(block), words.split(block)):
            logits = logits_of(self.lm, rows, raw=self.raw and self.metric == "centred_logit")
            chosen = logits.gather(-1, wanted[:, None])[:, 0]
            parts.append(chosen - (logits.logsumexp(-1) if self.metric == "log_probability" else logits.mean(-1)))
        return torch.cat(parts).reshape(final.shape[:-1])


def most_likely(lm: LanguageModel, final: Any) -> Any:
    """The word with the largest logit for each row, (rows, m) -> (rows,)."""
    import torch

    block = max(1, WORDS // part(lm, "unembedding").weight.shape[0])
    return torch.cat([logits_of(lm, rows, raw=True).argmax(-1) for rows in final.split(block)])
