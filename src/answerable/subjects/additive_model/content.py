"""SHA-256 of what an additive model is: the bytes of its file, or its exact form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of a live model's exact form."""
    if isinstance(value, (str, Path)):
        from answerable.subjects.address import locate
        from answerable.subjects.kinds import file_digest

        return file_digest(locate(value, what="an additive model's file"))
    if isinstance(value, dict):
        return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
    from .form import AdditiveModel

    return hashlib.sha256(value.to_json().encode()).hexdigest() if isinstance(value, AdditiveModel) else None
