"""Secrets stay out of answers, reports, the journal and the terminal."""

from __future__ import annotations

import functools
import os
import re

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL|PRIVATE_?KEY|ACCESS_?KEY", re.IGNORECASE)
_IN_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)[^\s/@]{1,500}@", re.IGNORECASE)
_IN_QUERY = re.compile(
    r"(?P<name>[?&;](?:[a-z_-]{0,40}(?:token|secret|passw|key|sig|auth|credential)[a-z_-]{0,40}))=[^&;\s'\"]{1,2000}",
    re.IGNORECASE,
)
HIDDEN = "…"


def redacted(text: str) -> str:
    """The text without user names and passwords in URLs, secret query values, and values of environment variables
    named like secrets.
    """
    if "://" in text:
        text = _IN_URL.sub(rf"\g<scheme>{HIDDEN}@", text)
        text = _IN_QUERY.sub(rf"\g<name>={HIDDEN}", text)
    for value in _from_environment():
        text = text.replace(value, HIDDEN)
    return text


def _from_environment() -> list[str]:
    # Short values are left alone: replacing "1" or "true" everywhere would destroy text and protect nothing.
    values = (os.environ.get(name, "") for name in _named_like_secrets(tuple(os.environ)))
    return [value for value in values if len(value) >= 8]


@functools.lru_cache(maxsize=2)
def _named_like_secrets(names: tuple[str, ...]) -> tuple[str, ...]:
    # A report shows ten thousand texts; the names change between two of them at most in tests.
    return tuple(name for name in names if _SECRET_NAME.search(name))
