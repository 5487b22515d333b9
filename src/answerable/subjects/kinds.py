"""What a file is, told by its content and never by its suffix; and which kinds are never opened."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from pathlib import Path
from typing import Literal

from answerable.errors import CannotRead, Refused

Kind = Literal[
    "folder",
    "gguf",
    "safetensors",
    "npz",
    "npy",
    "torch",
    "pickle",
    "parquet",
    "json",
    "text",
    "compressed",
    "empty",
    "unknown",
]

_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"x\x01", b"x\x9c", b"x\xda")
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
_TORCH_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the magic number torch pickled first until 1.5


def kind_of(path: Path) -> Kind:
    """What the file at ``path`` holds.

    Raises
    ------
    CannotRead : it is missing or may not be read
    """
    if path.is_dir():
        return "folder"
    try:
        with path.open("rb") as file:
            head = file.read(4096)
            size = os.fstat(file.fileno()).st_size
    except OSError as failure:
        raise _unread(path, failure) from None
    if not head:
        return "empty"
    if head.startswith(b"GGUF"):
        return "gguf"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_zip(path)
    if head.startswith(_TORCH_BEFORE_ZIP):
        return "torch"
    if head.startswith(_PICKLE):
        return "pickle"
    if len(head) > 8 and head[8:9] == b"{" and struct.unpack_from("<Q", head)[0] <= size - 8:
        return "safetensors"
    if head.startswith(_COMPRESSED):
        return "compressed"
    return _kind_of_text(head)


def _kind_of_zip(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as failure:
        raise CannotRead(f"the archive is damaged ({failure})", where=str(path), mend="save it again") from None
    if any(name.endswith("data.pkl") for name in names):
        return "torch"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    return "unknown"


def _kind_of_text(head: bytes) -> Kind:
    if b"\x00" in head:
        return "unknown"
    try:
        # a character may be cut in two at the end of what was read
        text = head.decode("utf-8", errors="strict" if len(head) < 4096 else "ignore")
    except UnicodeDecodeError:
        return "unknown"
    return "json" if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")) else "text"


def refuse_pickle(path: Path, kind: Kind) -> None:
    """Stop at a kind that can run code when it is read.

    Raises
    ------
    Refused : a pickle, bare or inside a torch checkpoint
    """
    if kind in ("torch", "pickle"):
        what = "a torch checkpoint (a pickle inside)" if kind == "torch" else "a pickle"
        mend = f"answerable convert {path} makes safetensors of a tensor-only checkpoint"
        raise Refused(f"this is {what}, which can run code when it is read", where=str(path), mend=mend)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises
    ------
    CannotRead : it is missing or may not be read
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise _unread(path, failure) from None


def _unread(path: Path, failure: OSError) -> CannotRead:
    said = failure.strerror or str(failure)
    mend = "name a file in it" if isinstance(failure, IsADirectoryError) else "name a file that may be read"
    return CannotRead(said, where=str(path), mend=mend)
