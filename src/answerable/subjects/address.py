"""Where a subject is: ``hf:org/name``, ``pypi:PACKAGE``, ``http(s)://``, else a local path.

Only ``hf:`` may touch the network, and only for what is not on this machine yet.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from answerable.errors import BadInput, CannotRead, missing_extra

Scheme = Literal["hf", "pypi", "http", "path"]

# What a model repository holds besides weights that run code when they are read.
HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.gguf"]
HUB_SECONDS = 1.5  # a hub that has not answered by then counts as not there

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?\Z", re.ASCII)


class Address(NamedTuple):
    """An address taken apart: its scheme, and what stands after it."""

    scheme: Scheme
    rest: str


def parse(address: str | os.PathLike[str]) -> Address:
    """Take an address apart; whatever has no known scheme is a path."""
    text = os.fspath(address)
    if not isinstance(address, str):
        return Address("path", text)
    for scheme in ("hf", "pypi"):
        if text.startswith(f"{scheme}:"):
            return Address(scheme, text[len(scheme) + 1 :].strip())
    if text.lower().startswith(("http://", "https://")):
        return Address("http", text)
    return Address("path", text)


def locate(address: str | os.PathLike[str], *, what: str, shipped: Callable[[Path], bool] | None = None) -> Path:
    """The file or folder on this machine that an address leads to.

    Parameters
    ----------
    address : ``hf:org/name[@revision]``, ``pypi:PACKAGE[/FILE]`` or a path
    what : what is looked for, in words for the error ("a table")
    shipped : tells which paths of an installed package are such a thing; None if none can be

    Raises
    ------
    CannotRead : nothing is there; the line says how to get it
    BadInput : an endpoint, or a package with several candidates
    """
    scheme, rest = parse(address)
    if scheme == "http":
        raise BadInput(f"a web address cannot be {what}", where=rest.split("?")[0], mend="give a path")
    if scheme == "hf":
        return _in_hub(rest)
    if scheme == "pypi":
        return _in_package(rest, what, shipped or (lambda path: False))
    return _on_disk(rest, what)


def _on_disk(text: str, what: str) -> Path:
    if not text:
        raise BadInput("the address is empty", mend="give a path")
    path = Path(text).expanduser()
    try:
        there = path.exists()
    except (OSError, ValueError) as failure:  # a name too long for the file system, a null byte
        raise CannotRead(f"this cannot be a path ({failure})", where=repr(text[:80])) from None
    if there:
        return path
    if _HUB_NAME.match(text):
        raise CannotRead("no such file or folder", where=text, mend=f"if it is on the hub, write hf:{text}")
    raise CannotRead("no such file or folder", where=text, mend=f"give the path of {what}")


def _in_package(rest: str, what: str, shipped: Callable[[Path], bool]) -> Path:
    """The one file or folder of an installed distribution that is what we look for."""
    name, _, inner = rest.partition("/")
    where = f"pypi:{rest}"
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise CannotRead(f"the package {name!r} is not installed", where=where, mend=f"pip install {name}") from None
    root = Path(str(distribution.locate_file("")))
    files = [Path(str(file)) for file in distribution.files or []]
    if inner:
        chosen = [path for path in _with_folders(files) if path.as_posix() == inner and (root / path).exists()]
        if not chosen:
            raise CannotRead(f"the package holds no file {inner!r}", where=where, mend=f"pip show -f {name} lists them")
        return root / chosen[0]
    candidates = sorted(path for path in _with_folders(files) if shipped(root / path))
    if not candidates:
        raise CannotRead(f"the package ships nothing that is {what}", where=where, mend="give a path")
    if len(candidates) > 1:
        names = ", ".join(path.as_posix() for path in candidates)
        mend = f"choose one: pypi:{name}/{candidates[0].as_posix()}"
        raise BadInput(f"the package ships several: {names}", where=where, mend=mend)
    return root / candidates[0]


def _with_folders(files: list[Path]) -> set[Path]:
    return {*files, *(parent for file in files for parent in file.parents if parent != Path("."))}


def _in_hub(rest: str) -> Path:
    """The folder of a hub repository: from the local cache if it is whole there, else downloaded."""
    where = f"hf:{rest}"
    if not _HUB_NAME.match(rest):
        raise BadInput("this is not a hub id", where=where, mend="write hf:organisation/name")
    name, _, revision = rest.partition("@")
    cached = _cached_snapshot(name, revision or "main")
    if cached is not None:
        return cached
    if _switched_on("HF_HUB_OFFLINE") or _switched_on("TRANSFORMERS_OFFLINE"):
        raise CannotRead(
            "not on this machine, and HF_HUB_OFFLINE is set", where=where, mend="unset it, or give the path of a folder"
        )
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    if not _answers(endpoint):
        mend = "connect once, or give the path of a folder"
        raise CannotRead("not on this machine, and the hub cannot be reached", where=where, mend=mend)
    return _download(name, revision or None, where)


def _cached_snapshot(name: str, revision: str) -> Path | None:
    """The snapshot that the hub's own cache layout names, if it holds a config and weights."""
    home = Path(os.environ.get("HF_HOME", Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"))
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub")).expanduser()
    folder = hub / f"models--{name.replace('/', '--')}"
    try:
        commit = (folder / "refs" / revision).read_text().strip()
    except (OSError, ValueError):
        commit = revision
    snapshot = folder / "snapshots" / commit
    try:
        whole = (snapshot / "config.json").is_file() and any(
            file.suffix in (".safetensors", ".gguf", ".bin") for file in snapshot.iterdir()
        )
    except OSError:
        return None
    return snapshot if whole else None


def _switched_on(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}


def _answers(endpoint: str) -> bool:
    """Whether the hub answers at all, within ``HUB_SECONDS``. A look-up of its name may hang: hence the thread."""
    heard: list[bool] = []

    def ask() -> None:
        request = urllib.request.Request(endpoint, method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=HUB_SECONDS):
                heard.append(True)
        except urllib.error.HTTPError:
            heard.append(True)
        except (OSError, ValueError):
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    return bool(heard)


def _download(name: str, revision: str | None, where: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing_extra("huggingface_hub", "models") from None
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=HUB_FILES, etag_timeout=HUB_SECONDS))
    except Exception as failure:  # the hub's client raises many kinds; each is one line here
        reason = str(failure).strip().splitlines() or [type(failure).__name__]
        raise CannotRead(reason[0], where=where, mend="check the name, or give the path of a folder") from None
