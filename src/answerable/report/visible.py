"""Text that came from a model, a data set or a file, safe to look at: seen, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from answerable.secrets import redacted

LONGEST = 200  # characters of one text shown on a page; the whole of it stands in the CSV
LONGEST_SENTENCE = 600  # characters of a sentence a question worded: summary, limit, reason

# C0 and C1 controls, separators, zero-width and bidirectional controls, lone surrogates, invisible tags.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# Combining marks beyond a few on one letter climb over the lines above and below.
_STACK = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_BETWEEN = "\x1f"  # never left in an escaped text, and ends every pattern of a secret


def escaped(text: str) -> str:
    r"""The text with each character that is obeyed instead of seen written as ``\x1b`` or ``\u202e``."""
    return _STACK.sub(r"\1", _CONTROLS.sub(_name, text))


def shown(text: str, longest: int = LONGEST) -> str:
    """The text as it may stand on a page: escaped, without secrets, cut to ``longest`` characters."""
    return _cut(redacted(escaped(text)), longest)


def shown_all(texts: Iterable[str], longest: int = LONGEST) -> list[str]:
    """:func:`shown` of many texts at once; looking for secrets costs the same for one as for a thousand."""
    together = [escaped(text) for text in texts]
    return [_cut(text, longest) for text in redacted(_BETWEEN.join(together)).split(_BETWEEN)] if together else []


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _name(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(match.group(), f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
