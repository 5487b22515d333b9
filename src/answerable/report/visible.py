"""Text that came from a model, a data set or a file, safe to look at: seen, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from answerable import escapes
from answerable.secrets import redacted

LONGEST = 200  # characters of one text shown on a page; the whole of it stands in the CSV
LONGEST_SENTENCE = 600  # characters of a sentence a question worded: summary, limit, reason

# Combining marks beyond a few on one letter climb over the lines above and below.
_STACK = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_BETWEEN = "\x1f"  # never left in an escaped text, and ends every pattern of a secret


def escaped(text: str) -> str:
    """The text with nothing in it that is obeyed instead of seen, and no letter under a stack of marks."""
    return _STACK.sub(r"\1", escapes.escaped(text))


def shown(text: str, longest: int = LONGEST) -> str:
    """The text as it may stand on a page: escaped, without secrets, cut to ``longest`` characters."""
    return _cut(redacted(escaped(text)), longest)


def shown_all(texts: Iterable[str], longest: int = LONGEST) -> list[str]:
    """:func:`shown` of many texts at once; looking for secrets costs the same for one as for a thousand."""
    together = [escaped(text) for text in texts]
    return [_cut(text, longest) for text in redacted(_BETWEEN.join(together)).split(_BETWEEN)] if together else []


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
