"""Characters that are obeyed instead of seen, written so that they are seen."""

from __future__ import annotations

import re

# Controls (C0, C1), separators, zero-width and bidirectional marks, non-characters, lone surrogates, invisible tags.
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def escaped(text: str) -> str:
    r"""The text with each character that is obeyed instead of seen written as ``\n``, ``\x1b`` or ``\u202e``."""
    return _OBEYED.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    character, code = match.group(), ord(match.group())
    if code < 0x100:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
