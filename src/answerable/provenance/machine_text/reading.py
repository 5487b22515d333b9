"""From what was asked to scored texts: through models, or from recorded log-probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.subjects import RecordedTokens, read_corpus, read_token_logprobs
from answerable.subjects.corpus import Corpus, read_label
from answerable.subjects.language_model import load, token_texts

from .api import LanguageModelPair, tokens_of_texts
from .solver import TextStatistics, statistics_of_tokens

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import MachineText

TokenColumns = dict[str, np.ndarray]


class Scored(NamedTuple):
    """Texts with their statistics.

    begins, characters : how each begins, and its length in characters
    labels : 1 machine, 0 human, None not known
    kinds : for each its kind; empty where no column was named
    statistics : for each its statistics
    tokens : for each the scored tokens, as ids or as they read, and their columns
    spell : from a text's tokens to how they read
    """

    begins: list[str]
    characters: list[int]
    labels: list[int | None]
    kinds: list[str]
    statistics: list[TextStatistics]
    tokens: list[tuple[list[Any], TokenColumns]]
    spell: Callable[[list[Any]], list[str]]


def read_models(asked: MachineText, run: Run) -> tuple[Scored, Scored | None]:
    """The texts asked about and the human ones, each read once by every model."""
    corpora = [_asked_about(asked)]
    if asked.human is not None:
        corpora.append(_within(asked.human, asked, "human"))
    subjects = [subject for subject in (asked.model, asked.base) if subject is not None]
    lms = [load(s, run=run, device=run.device, dtype=asked.dtype, attention="sdpa") for s in subjects]
    if len(lms) == 2:
        LanguageModelPair(*lms).checked()
    scored = []
    for corpus, field in zip(corpora, ("texts", "human")):
        try:
            made = tokens_of_texts(
                corpus.texts,
                lms,
                max_tokens=asked.max_tokens,
                long=asked.long,
                batch_tokens=asked.batch_tokens,
                run=run,
            )
        except BadInput as failure:
            raise failure.within(field) from None
        scored.append(_scored(corpus, made, lambda ids: token_texts(lms[0], ids)))
    return scored[0], scored[1] if len(scored) > 1 else None


def read_records(asked: MachineText, run: Run) -> tuple[Scored, Scored | None]:
    """The same from recorded log-probabilities."""
    first = _recorded(asked, "logprobs", asked.logprobs, "base_logprobs", asked.base_logprobs)
    if asked.human_logprobs is None:
        return first, None
    human = _recorded(asked, "human_logprobs", asked.human_logprobs, "human_base_logprobs", asked.human_base_logprobs)
    return first, human


def _asked_about(asked: MachineText) -> Corpus:
    if asked.texts is not None:
        return _within(asked.texts, asked, "texts")
    if asked.kind is not None:
        raise BadInput("a text given as such has no kind", where="kind", mend="give texts with a column of kinds")
    texts = list(asked.text or [])
    return Corpus(texts, [None] * len(texts), [])


def _within(subject: Any, asked: MachineText, field: str) -> Corpus:
    try:
        return read_corpus(subject, column=asked.column, label=asked.label, kind=asked.kind)
    except BadInput as failure:
        raise failure.within(field) from None


def _scored(
    corpus: Corpus, tokens: list[tuple[list[Any], TokenColumns]], spell: Callable[[list[Any]], list[str]]
) -> Scored:
    statistics = [statistics_of_tokens(columns) for _, columns in tokens]
    begins = [text[:80] for text in corpus.texts]
    return Scored(begins, [len(text) for text in corpus.texts], corpus.labels, corpus.kinds, statistics, tokens, spell)


def _recorded(asked: MachineText, field: str, subject: Any, base_field: str, base_subject: Any) -> Scored:
    records = read_token_logprobs(subject)
    others = None if base_subject is None else read_token_logprobs(base_subject)
    if others is not None and len(others) != len(records):
        problem = f"there are {len(records)} and {len(others)} records"
        raise BadInput(problem, where=f"{field} and {base_field}", mend="record the same texts with both models")
    tokens = [
        _record_tokens(record, others[k] if others is not None else None, f"{field} and {base_field}, record {k + 1}")
        for k, record in enumerate(records)
    ]
    whole = ["".join(record.tokens) for record in records]
    labels = [read_label(r.record.get(asked.label), f"{field}, record {k}") for k, r in enumerate(records, 1)]
    kinds = [_kind(record, asked.kind, f"{field}, record {k}") for k, record in enumerate(records, 1)]
    return _scored(Corpus(whole, labels, kinds if asked.kind is not None else []), tokens, list)


def _kind(record: RecordedTokens, kind: str | None, where: str) -> str:
    if kind is None:
        return ""
    if record.record.get(kind) is None:
        raise BadInput(f"there is no {kind!r}", where=where, mend="give each record its kind")
    return str(record.record[kind])


def _record_tokens(record: RecordedTokens, other: RecordedTokens | None, where: str) -> tuple[list[Any], TokenColumns]:
    """Tokens that have a log-probability by both models."""
    known = ~np.isnan(record.logprobs)
    if other is not None:
        if record.tokens != other.tokens:
            differs = next(
                (k for k, (a, b) in enumerate(zip(record.tokens, other.tokens)) if a != b),
                min(len(record.tokens), len(other.tokens)),
            )
            raise BadInput(
                f"the tokens differ from number {differs + 1} on", where=where, mend="record both with one tokenizer"
            )
        known &= ~np.isnan(other.logprobs)
    columns = {"log_p": record.logprobs[known]}
    if other is not None:
        columns["log_q"] = other.logprobs[known]
    texts = [token for token, there in zip(record.tokens, known, strict=True) if there]
    return texts, columns if known.any() else {}
