"""Where things are kept: the answer store and the cache, and what happens when neither place can be written."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path


def store() -> Path:
    """The answer store: ``ANSWERABLE_STORE``, else the user's data directory; a temporary folder where that cannot
    be written.
    """
    named = os.environ.get("ANSWERABLE_STORE")
    return Path(named) if named else _writable_or_temporary("data", "answers")


def cache() -> Path | None:
    """The cache: ``ANSWERABLE_CACHE``, else the user's cache directory, else a temporary folder; None where nothing
    can be written.
    """
    named = os.environ.get("ANSWERABLE_CACHE")
    folder = Path(named) if named else _writable_or_temporary("cache", "")
    return folder if _can_write(folder) else None


@functools.cache
def _writable_or_temporary(kind: str, below: str) -> Path:
    import platformdirs

    from answerable import terminal

    home = platformdirs.user_data_path("answerable") if kind == "data" else platformdirs.user_cache_path("answerable")
    if _can_write(home):
        return home / below
    temporary = Path(tempfile.gettempdir()) / f"answerable-{os.getuid() if hasattr(os, 'getuid') else 'user'}-{kind}"
    terminal.say(f"{home} cannot be written; keeping {kind} in {temporary} instead")
    return temporary / below


def _can_write(folder: Path) -> bool:
    """Whether the folder is there, or can be made, and takes a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
