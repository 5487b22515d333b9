"""Text into tokens, and tokens into words a reader can read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from answerable.errors import BadInput
from answerable.subjects.language_model.loading import LanguageModel


class Tokens(NamedTuple):
    """The tokens of one text.

    ids : token ids
    texts : each token as a reader sees it
    offsets : where it stands in the text, (start, end) in characters; None for ids that came without a text
    """

    ids: list[int]
    texts: list[str]
    offsets: list[tuple[int, int]] | None


def tokenise(lm: LanguageModel, text_or_ids: str | Sequence[int] | Any) -> Tokens:
    """The tokens of a text as the model's own tokenizer makes them, its special tokens included; or given ids, checked.

    Raises
    ------
    BadInput : no tokens, more than the model reads, an id it does not know, or a text for a model without tokenizer
    """
    if isinstance(text_or_ids, str):
        tokens = _tokens_of_text(lm, text_or_ids)
    else:
        ids = _flat(text_or_ids)
        tokens = Tokens(ids, token_texts(lm, ids), None)
    _check(lm, tokens.ids)
    return tokens


def token_texts(lm: LanguageModel, ids: Sequence[int]) -> list[str]:
    """Each token as a reader sees it: spaces as spaces, bytes that are no whole character as ``\\xe2``."""
    if lm.tokenizer is None:
        return [str(i) for i in ids]
    kind = _spelling(lm.tokenizer)
    return [_readable(piece, kind, i) for i, piece in zip(ids, lm.tokenizer.convert_ids_to_tokens(list(ids)))]


def _tokens_of_text(lm: LanguageModel, text: str) -> Tokens:
    if lm.tokenizer is None:
        raise BadInput(
            "the model came without a tokenizer", where=lm.name, mend="give token ids, or (model, tokenizer)"
        )
    fast = bool(getattr(lm.tokenizer, "is_fast", False))
    try:
        found = lm.tokenizer(text, return_offsets_mapping=fast, verbose=False)
    except (TypeError, UnicodeError) as failure:  # lone surrogates
        raise BadInput(
            f"the text cannot be turned into tokens ({failure})", where="text", mend="save it as UTF-8"
        ) from None
    ids = list(found["input_ids"])
    offsets = [(start, end) for start, end in found["offset_mapping"]] if fast else None
    return Tokens(ids, token_texts(lm, ids), offsets)


def _flat(ids: Any) -> list[int]:
    values = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise BadInput("token ids must be one row of whole numbers", where="text", mend="give one text at a time")
    return values


def _check(lm: LanguageModel, ids: list[int]) -> None:
    if not ids:
        raise BadInput("there are no tokens", where="text", mend="give at least one word")
    config = lm.model.config
    most = getattr(config, "max_position_embeddings", None)
    if isinstance(most, int) and len(ids) > most:
        raise BadInput(f"{len(ids)} tokens, the model reads at most {most}", where="text", mend="shorten it")
    rows = lm.model.get_input_embeddings().weight.shape[0]
    wrong = next((i for i in ids if not 0 <= i < rows), None)
    if wrong is not None:
        raise BadInput(f"token id {wrong} is not from 0 to {rows - 1}", where="text", mend="use this model's tokenizer")


def _spelling(tokenizer: Any) -> str:
    """How the tokenizer writes spaces and bytes: as GPT-2 ("bytes"), as SentencePiece ("blocks"), or "plain"."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    told = repr(getattr(backend, "decoder", "")) if backend is not None else ""
    if "ByteLevel" in told:
        return "bytes"
    return "blocks" if "Metaspace" in told or "\u2581" in told or backend is None else "plain"


def _readable(piece: str | None, kind: str, token_id: int) -> str:
    if piece is None:
        return f"<{token_id}>"
    if kind == "blocks":
        return piece.replace("\u2581", " ")
    if kind == "plain":
        return piece
    letters = _bytes_of_letters()
    if not all(letter in letters for letter in piece):  # an added token, written as it is
        return piece
    return bytes(letters[letter] for letter in piece).decode("utf-8", errors="backslashreplace")


@cache
def _bytes_of_letters() -> dict[str, int]:
    """Byte by letter in GPT-2's spelling: printable bytes are themselves, the others follow from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}
