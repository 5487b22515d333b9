"""From what was asked to scored texts: through models, or from recorded log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.subjects import RecordedTokens, read_corpus, read_token_logprobs
from answerable.subjects.corpus import Corpus, read_label
from answerable.subjects.language_model import load, token_texts

from .api import LanguageModelPair, TextTokens, is_blank, tokens_of_texts
from .solver import TextStatistics, statistics_of_tokens

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import MachineText

TokenColumns = dict[str, np.ndarray]


class Scored(NamedTuple):
    """Texts with their statistics.

    texts : as they were given, or as their recorded tokens read
    labels : 1 machine, 0 human, None not known
    kinds : for each its kind; empty where no column was named
    statistics : for each its statistics
    tokens : for each the scored tokens, as ids or as they read, and their columns
    keys : for each what tells it from others: its text, and what was recorded of it
    n_left, unknown : for each the tokens that were not read, and the share of those that no tokenizer knows
    spell : from a text's tokens to how they read
    copies : texts that stood there before and were left out
    """

    texts: list[str]
    labels: list[int | None]
    kinds: list[str]
    statistics: list[TextStatistics]
    tokens: list[tuple[list[Any], TokenColumns]]
    keys: list[Hashable]
    n_left: list[int]
    unknown: list[float]
    spell: Callable[[list[Any]], list[str]]
    copies: int = 0


def read_models(asked: MachineText, run: Run) -> tuple[Scored, Scored | None]:
    """The texts asked about and the human ones, each read once by every model."""
    corpora, copies = [_asked_about(asked)], [0]
    check_explained(asked, len(corpora[0].texts))
    if asked.human is not None:
        human = _within(asked.human, asked, "human")
        _check_human(human.labels)
        kept = _first_of_each(human.texts, human.kinds)
        _check_enough(asked, len(kept))
        corpora.append(_of(human, kept))
        copies.append(len(human.texts) - len(kept))
    subjects = [subject for subject in (asked.model, asked.base) if subject is not None]
    lms = [load(s, run=run, device=run.device, dtype=asked.dtype, attention="sdpa") for s in subjects]
    if len(lms) == 2:
        LanguageModelPair(*lms).checked()
    scored = []
    for corpus, field, n_copies in zip(corpora, ("texts", "human"), copies):
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
        scored.append(_scored(corpus, made, lambda ids: token_texts(lms[0], ids), n_copies))
    return scored[0], scored[1] if len(scored) > 1 else None


def read_records(asked: MachineText, run: Run) -> tuple[Scored, Scored | None]:
    """The same from recorded log-probabilities."""
    first = _recorded(asked, "logprobs", asked.logprobs, "base_logprobs", asked.base_logprobs)
    check_explained(asked, len(first.texts))
    if asked.human_logprobs is None:
        return first, None
    human = _recorded(asked, "human_logprobs", asked.human_logprobs, "human_base_logprobs", asked.human_base_logprobs)
    _check_human(human.labels)
    kept = _first_of_each(human.keys, human.kinds)
    _check_enough(asked, len(kept))
    return first, _kept(human, kept)


def check_explained(asked: MachineText, n: int) -> None:
    """Refuse the number of a text that is not there, before any is read."""
    if asked.explain > n:
        mend = f"give a number from 1 to {n}, or 0 for the highest"
        raise BadInput(f"there is no text {asked.explain}", where="explain", mend=mend)


def _check_human(labels: list[int | None]) -> None:
    machine = next((k for k, label in enumerate(labels, 1) if label == 1), None)
    if machine is not None:
        mend = "leave out what machines wrote"
        raise BadInput("a calibration text is labelled machine", where=f"human, row {machine}", mend=mend)


def _check_enough(asked: MachineText, n: int) -> None:
    """Too few texts for alpha are refused before models read for an hour; how many are long enough is seen later."""
    needed = texts_needed(asked.alpha)
    if n < needed:
        texts = "one text is" if n == 1 else f"{n} different texts are"
        mend = f"give at least {needed}, or a larger alpha"
        raise BadInput(f"{texts} too few for alpha = {asked.alpha:g}", where="human", mend=mend)


def texts_needed(alpha: float) -> int:
    """The fewest calibration texts with which anything can be flagged."""
    return math.ceil(1 / alpha - 1 - 1e-9)


def _first_of_each(keys: Sequence[Hashable], kinds: Sequence[str]) -> list[int]:
    """Numbers of those that did not stand there before: a copy is no further evidence of how people write."""
    first: dict[Hashable, int] = {}
    for number, key in enumerate(zip(keys, kinds or keys)):
        first.setdefault(key, number)
    return list(first.values())


def _of(corpus: Corpus, kept: list[int]) -> Corpus:
    return Corpus(_at(corpus.texts, kept), _at(corpus.labels, kept), _at(corpus.kinds, kept))


def _kept(scored: Scored, kept: list[int]) -> Scored:
    *columns, spell, _ = scored
    return Scored(*(_at(column, kept) for column in columns), spell, len(scored.texts) - len(kept))  # type: ignore[call-arg, arg-type]


def _at(column: list[Any], rows: list[int]) -> list[Any]:
    """These entries of a column; of an empty one, nothing."""
    return [column[row] for row in rows] if column else []


def _asked_about(asked: MachineText) -> Corpus:
    if asked.texts is not None:
        return _within(asked.texts, asked, "texts")
    if asked.kind is not None:
        raise BadInput("a text given as such has no kind", where="kind", mend="give texts with a column of kinds")
    texts = list(asked.text or [])
    return Corpus(texts, [None] * len(texts), [])


def _within(subject: Any, asked: MachineText, field: str) -> Corpus:
    named = isinstance(subject, (str, Path))
    try:
        return read_corpus(subject, column=asked.column, label=asked.label, kind=asked.kind, name=field)
    except BadInput as failure:
        raise (failure.within(field) if named else failure) from None


def _scored(
    corpus: Corpus,
    tokens: list[TextTokens],
    spell: Callable[[list[Any]], list[str]],
    copies: int = 0,
    keys: Sequence[Hashable] = (),
) -> Scored:
    return Scored(
        corpus.texts,
        corpus.labels,
        corpus.kinds,
        [statistics_of_tokens(text.columns) for text in tokens],
        [(text.ids, text.columns) for text in tokens],
        list(keys or corpus.texts),
        [text.n_left for text in tokens],
        [text.unknown for text in tokens],
        spell,
        copies,
    )


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
    if others is not None and all(_alike(one, other) for one, other in zip(records, others)):
        problem = "both hold the same log-probabilities, so that every score is 0"
        raise BadInput(problem, where=f"{field} and {base_field}", mend="record the second with the base model")
    whole = ["".join(record.tokens) for record in records]
    labels = [read_label(r.record.get(asked.label), f"{field}, record {k}") for k, r in enumerate(records, 1)]
    kinds = [_kind(record, asked.kind, f"{field}, record {k}") for k, record in enumerate(records, 1)]
    made = [TextTokens([], {}, 0, 0.0) if is_blank(text) else found for text, found in zip(whole, tokens)]
    keys = [(text, *(column.tobytes() for column in found.columns.values())) for text, found in zip(whole, made)]
    return _scored(Corpus(whole, labels, kinds if asked.kind is not None else []), made, list, keys=keys)


def _alike(one: RecordedTokens, other: RecordedTokens) -> bool:
    return np.array_equal(one.logprobs, other.logprobs, equal_nan=True) and not np.isnan(one.logprobs).all()


def _kind(record: RecordedTokens, kind: str | None, where: str) -> str:
    if kind is None:
        return ""
    if record.record.get(kind) is None:
        raise BadInput(f"there is no {kind!r}", where=where, mend="give each record its kind")
    return str(record.record[kind])


def _record_tokens(record: RecordedTokens, other: RecordedTokens | None, where: str) -> TextTokens:
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
    return TextTokens(texts, columns if known.any() else {}, 0, 0.0)
