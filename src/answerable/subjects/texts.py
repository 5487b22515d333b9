"""Texts: literal strings, lists of strings, or ``@FILE`` for the text of a file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from answerable.errors import BadInput, CannotRead

MOST_BYTES = 256_000_000

Damaged = Literal["strict", "replace"]


def read_text(path: str | os.PathLike[str], *, damaged: Damaged = "strict") -> str:
    """The text of a UTF-8 file, a byte order mark at its beginning left out.

    Parameters
    ----------
    path : the file
    damaged : "strict" stops at bytes that are not UTF-8, "replace" reads each as U+FFFD

    Raises
    ------
    CannotRead : it is missing, too long, or not UTF-8; the line names the byte
    """
    file = Path(path).expanduser()
    try:
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)  # a device says that it has no bytes, and never ends
        if len(content) > MOST_BYTES:
            raise CannotRead(f"longer than {MOST_BYTES} bytes", where=str(file), mend="split it")
        return content.decode("utf-8-sig", errors=damaged)
    except UnicodeDecodeError as failure:
        byte = failure.object[failure.start]
        raise CannotRead(
            f"byte {failure.start} (0x{byte:02x}) is not UTF-8", where=str(file), mend="save it as UTF-8"
        ) from None
    except (OSError, ValueError) as failure:
        said = getattr(failure, "strerror", None) or str(failure)
        raise CannotRead(said, where=str(path), mend="name a text file that may be read") from None


def read_texts(value: str | Sequence[str], *, folder: Path | None = None, damaged: Damaged = "strict") -> list[str]:
    """The texts a field stands for.

    Parameters
    ----------
    value : a text, or several; ``@FILE`` stands for the text of a file, ``@@`` for an @ of the text's own
    folder : where relative names of files begin; the current directory by default
    damaged : as in ``read_text``

    Raises
    ------
    BadInput : no text at all, something that is no text, or a lone surrogate
    CannotRead : a file that cannot be read
    """
    values = [value] if isinstance(value, str) else list(value)
    if not values:
        raise BadInput("there is no text", mend="give at least one")
    return [_one(entry, number, folder or Path(), damaged) for number, entry in enumerate(values, 1)]


def digest(value: object) -> str:
    """SHA-256 of the texts a field stands for, in their order."""
    if not isinstance(value, (str, list, tuple)):
        raise BadInput(f"a {type(value).__name__} is no text", mend="give a text or a list of texts")
    return hashlib.sha256(json.dumps(read_texts(value)).encode()).hexdigest()


def _one(entry: object, number: int, folder: Path, damaged: Damaged) -> str:
    if not isinstance(entry, str):
        raise BadInput(f"a {type(entry).__name__} is no text", where=f"text {number}", mend="give a string")
    if entry.startswith("@@"):
        return entry[1:]
    if entry.startswith("@"):
        return read_text(folder / entry[1:], damaged=damaged)
    if any("\ud800" <= character <= "\udfff" for character in entry):
        raise BadInput("the text holds a lone surrogate", where=f"text {number}", mend="save it as UTF-8")
    return entry
