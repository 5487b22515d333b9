"""Recorded log-probabilities of tokens, as OpenAI-style servers return them.

A record is a whole response (``choices``), its ``logprobs`` part, or ``{"tokens": [...], "logprobs": [...]}``; chat
responses list ``content`` entries with ``token`` and ``logprob``, completions have ``tokens`` and ``token_logprobs``.
A file holds one record, a list of them, or one a line; a line of the batch interface is unpacked. A record may carry
``label`` and further keys beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.address import locate
from answerable.subjects.json_records import read_json_records, records_digest
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

WHAT = "a JSON or JSON Lines file of recorded log-probabilities"
STANDS_FOR_UNLIKELY = -9000.0  # servers write -9999.0 where they did not record the number


class RecordedTokens(NamedTuple):
    """The tokens of one text with their log-probabilities.

    tokens : as they read
    logprobs : (n,) float64 [nats]; NaN for a first token that nothing stands before
    record : what stands beside them: ``label``, a kind
    """

    tokens: list[str]
    logprobs: npt.NDArray[np.float64]
    record: Mapping[str, Any]


def read_token_logprobs(subject: Any) -> list[RecordedTokens]:
    """The records of a file, or of a list that is already there.

    Raises
    ------
    CannotRead, Refused : the file is missing, damaged, or no JSON
    BadInput : a record without tokens and log-probabilities; the line names the record (from 1) and the token
    """
    where = "logprobs"
    if isinstance(subject, (str, Path)):
        path = locate(subject, what=WHAT)
        content = kind_of(path)
        refuse_pickle(path, content)
        if content != "json":
            raise BadInput(
                f"a file of kind {content!r} holds no log-probabilities", where=str(path), mend=f"give {WHAT}"
            )
        subject, where = read_json_records(path), str(path)
    records = [subject] if isinstance(subject, Mapping) else subject
    if not isinstance(records, Sequence) or isinstance(records, (str, bytes)):
        raise BadInput(f"a {type(subject).__name__} holds no log-probabilities", where=where, mend="give records")
    if not records:
        raise BadInput("there is no record", where=where, mend="give at least one")
    return [_read(record, f"{where}, record {number}") for number, record in enumerate(records, 1)]


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of records in memory."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what=WHAT))
    return records_digest(value)


def _read(record: Any, where: str) -> RecordedTokens:
    if not isinstance(record, Mapping):
        raise BadInput(f"a {type(record).__name__} is no record", where=where, mend="give an object")
    inner = _unpacked(record)
    content = inner.get("content")
    tokens: Any
    numbers: Any
    if isinstance(content, list):
        tokens = [entry.get("token") if isinstance(entry, Mapping) else None for entry in content]
        numbers = [entry.get("logprob") if isinstance(entry, Mapping) else None for entry in content]
    else:
        tokens, numbers = inner.get("tokens"), inner.get("token_logprobs", inner.get("logprobs"))
    if not isinstance(tokens, list) or not isinstance(numbers, list):
        mend = "record them with logprobs (chat) or with echo and logprobs (completions)"
        raise BadInput("there are no tokens with log-probabilities", where=where, mend=mend)
    if len(tokens) != len(numbers):
        problem = f"there are {len(tokens)} tokens and {len(numbers)} log-probabilities"
        raise BadInput(problem, where=where, mend="give one for each token")
    wrong = next((k for k, token in enumerate(tokens) if not isinstance(token, str)), None)
    if wrong is not None:
        raise BadInput("this is no token", where=f"{where}, token {wrong + 1}", mend="give a string")
    split = next((k for k, token in enumerate(tokens) if any("\ud800" <= sign <= "\udfff" for sign in token)), None)
    if split is not None:
        place, mend = f"{where}, token {split + 1}", "save it as UTF-8"
        raise BadInput("the token holds a lone surrogate", where=place, mend=mend)
    return RecordedTokens(tokens, np.array([_number(n, k, where) for k, n in enumerate(numbers)], np.float64), record)


def _unpacked(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """From a batch line or a whole response to the part with the tokens."""
    for step in ("response", "body"):
        inside = record.get(step)
        record = inside if isinstance(inside, Mapping) else record
    choices = record.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        record = choices[0]
    inside = record.get("logprobs")
    return inside if isinstance(inside, Mapping) else record


def _number(value: object, place: int, where: str) -> float:
    if value is None and place == 0:
        return math.nan
    where = f"{where}, token {place + 1}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value <= 1e-6:
        raise BadInput(f"{str(value)[:40]} is no log-probability", where=where, mend="give natural logarithms")
    if value < STANDS_FOR_UNLIKELY:
        mend = "score the text with a server that returns every log-probability"
        raise BadInput(f"{value:g} only says that the token was unlikely", where=where, mend=mend)
    return float(value)
