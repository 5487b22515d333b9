"""Are the files of a saved answer the ones that were written?"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from answerable.errors import CannotRead, DamagedAnswer


def as_written(document: object) -> bytes:
    """The bytes of a JSON file of an answer."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii")


def files_in(folder: Path) -> dict[str, Path]:
    """All that stands in a folder and its folders, by the path inside it: files, links, pipes."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix(): path for path in paths}


def problems(folder: Path) -> list[str]:
    """What is wrong with the folder: one line for each file that was changed, removed or added; empty when all is well.

    Raises
    ------
    CannotRead : there is no saved answer, or it cannot be read
    """
    files = _contents(folder)
    return _compare(_manifest(files, str(folder)), files)


def checked_files(folder: Path) -> dict[str, bytes]:
    """Every file of a saved answer, by its path inside the folder.

    Raises
    ------
    CannotRead : there is no saved answer, or it cannot be read
    DamagedAnswer : a file was changed, removed or added
    """
    return checked(_contents(folder), where=str(folder))


def checked(files: dict[str, bytes], *, where: str) -> dict[str, bytes]:
    """The same files, when each is the one the manifest among them names; the errors of :func:`checked_files`
    otherwise.
    """
    found = _compare(_manifest(files, where), files)
    if found:
        raise DamagedAnswer(found[0], where=where, mend="ask again")
    return files


def _manifest(files: dict[str, bytes], where: str) -> dict[str, str]:
    if "manifest.json" not in files:
        raise CannotRead("there is no answer here", where=where, mend="name the folder that holds manifest.json")
    try:
        document = json.loads(files["manifest.json"])
        entries = document["sha256"]
        if not isinstance(entries, dict) or "answer.json" not in entries:
            raise ValueError("it lists no answer.json")
        # No other file names the manifest's own digest, but its bytes follow from what it says.
        if document.keys() != {"schema", "sha256"} or files["manifest.json"] != as_written(document):
            raise ValueError("it is not as it was written")
        return entries
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedAnswer("manifest.json is damaged", where=where, mend="ask again") from error


def _contents(folder: Path) -> dict[str, bytes]:
    try:
        # a link to a folder or to nothing, a pipe and the like hold no bytes of an answer
        return {name: path.read_bytes() if path.is_file() else b"" for name, path in files_in(folder).items()}
    except OSError as error:
        raise CannotRead(
            (error.strerror or "cannot be read").lower(), where=str(folder), mend="check the permissions"
        ) from error


def _compare(manifest: dict[str, str], files: dict[str, bytes]) -> list[str]:
    found = []
    for name in sorted(manifest.keys() | files.keys()):
        if name not in files:
            found.append(f"{name} is missing")
        elif name == "manifest.json":
            continue
        elif name not in manifest:
            found.append(f"{name} was added")
        elif hashlib.sha256(files[name]).hexdigest() != manifest[name]:
            found.append(f"{name} was changed")
    return found
