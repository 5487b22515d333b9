"""Records from JSON: a list, one object, or JSON Lines (one object a line)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from answerable.errors import BadInput, CannotRead
from answerable.subjects.texts import read_text


def read_json_records(path: Path) -> Any:
    """What a JSON or JSON Lines file holds: an object, or a list.

    Raises
    ------
    CannotRead : it cannot be read, or is no JSON; the line of the file is named
    """
    text = read_text(path)
    try:
        return _parsed(text)
    except RecursionError:
        raise CannotRead("no valid JSON (nested too deep)", where=str(path), mend="save it again") from None
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2:
            raise CannotRead(f"no valid JSON ({_told(whole)})", where=str(path), mend="save it again") from None
        return [_line(path, number, line, whole) for number, line in lines]


def records_digest(value: object) -> str:
    """SHA-256 of records that are already in memory.

    Raises
    ------
    BadInput : something that JSON cannot hold
    """
    try:
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    except (TypeError, ValueError, RecursionError) as failure:
        raise BadInput(
            f"these are no plain records ({_told(failure)})", mend="give strings, numbers and lists"
        ) from None


def _line(path: Path, number: int, line: str, whole: ValueError) -> Any:
    try:
        return _parsed(line)
    except (ValueError, RecursionError):
        # The first line that is no JSON by itself: of one long document that is damaged, the whole's fault says more.
        problem = f"no valid JSON ({_told(whole)})" if number == 1 else "this line is no valid JSON"
        where = str(path) if number == 1 else f"{path}, line {number}"
        raise CannotRead(problem, where=where, mend="save it again") from None


def _parsed(text: str) -> Any:
    found = json.loads(text)
    if not isinstance(found, dict | list):
        raise ValueError(f"a {type(found).__name__} alone")
    return found


def _told(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:120]
