"""Which position of a text is meant: ``last``, ``index:3``, ``token:last``, or the last token of ``text:"drink"``."""

from __future__ import annotations

from collections.abc import Sequence

from answerable.errors import BadInput

FORMS = 'say last, index:3, token:NAME or text:"..."'


def position_of(target: str, tokens: Sequence[str]) -> int:
    """The position that ``target`` names among ``tokens``, from 0.

    Parameters
    ----------
    target : ``last`` or ``token:last`` for the last token; ``index:i``, negative from the end; ``token:NAME`` for the
        one token that reads so, blanks around it left out; ``text:"..."`` for the token in which it ends
    tokens : the text's tokens as they read

    Raises
    ------
    BadInput : the form is unknown, the position is outside the text, or the words stand nowhere or more than once
    """
    kind, separator, value = target.partition(":")
    if target == "last" or (kind == "token" and value == "last"):
        return len(tokens) - 1
    if not separator or kind not in ("index", "token", "text") or not value:
        raise BadInput(f"{target[:80]!r} names no position", where="target", mend=FORMS)
    if kind == "index":
        return _at_index(value, len(tokens))
    value = value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'" else value
    found = [i for i, token in enumerate(tokens) if token.strip() == value] if kind == "token" else _ends(value, tokens)
    if len(found) == 1:
        return found[0]
    if not found:
        listed = " ".join(f"{i}:{token.strip()}" for i, token in enumerate(tokens))
        raise BadInput(
            f"{value[:80]!r} stands nowhere in the text", where="target", mend=f"its tokens are {listed[:400]}"
        )
    positions = ", ".join(map(str, found))
    raise BadInput(
        f"{value[:80]!r} stands at positions {positions}",
        where="target",
        mend=f"name one of them, as index:{found[-1]}",
    )


def _at_index(value: str, n_tokens: int) -> int:
    try:
        index = int(value)
    except ValueError:
        raise BadInput(f"{value[:80]!r} is no whole number", where="target", mend=FORMS) from None
    if not -n_tokens <= index < n_tokens:
        raise BadInput(f"there is no position {index}", where="target", mend=f"the text has {n_tokens} tokens, from 0")
    return index % n_tokens


def _ends(words: str, tokens: Sequence[str]) -> list[int]:
    """The tokens in which an occurrence of ``words`` in the joined text ends."""
    text, ends, reached = "".join(tokens), [], 0
    for token in tokens:
        reached += len(token)
        ends.append(reached)
    found, start = [], text.find(words)
    while start >= 0:
        last = start + len(words)
        found.append(next(i for i, end in enumerate(ends) if end >= last))
        start = text.find(words, start + 1)
    return found
