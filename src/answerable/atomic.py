"""Writing that is whole or absent: everything is written beside its place and renamed into it.

Nothing is synced: a power cut may lose the newest files or damage them, and every reader checks their SHA-256 before
it believes them.
What a kill leaves behind has a name of its own (``.name.<random>.partial``) and blocks nobody.

``ANSWERABLE_STOP_AT=n`` stops the process with SIGKILL at the n-th step of writing. It is how the tests show that every
prefix of the steps leaves something a later run can finish; without it the hook does nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from answerable.errors import CannotWrite

PARTIAL = ".partial"
STALE_AFTER = 3600.0  # seconds; a writer that is still alive is never an hour between two of its files

_stop_at = int(os.environ.get("ANSWERABLE_STOP_AT", "0"))
_steps = 0


def step() -> None:
    """One write, flush or rename is about to happen, or has just happened."""
    global _steps
    if _stop_at:
        _steps += 1
        if _steps == _stop_at:
            os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def failing_in_one_line(target: Path) -> Iterator[None]:
    """Turn an operating system's refusal into one line that names the place."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        mend = "free some space, or name another place" if full else "name another place"
        raise CannotWrite(reason.lower(), where=str(target), mend=mend) from error


def write_bytes(target: Path, content: bytes) -> None:
    """Write one file, whole or not at all; a link keeps pointing where it does, and a device or pipe is written to.

    Raises
    ------
    CannotWrite : the place cannot be written, or is inside a saved answer, which a file more would damage
    """
    with failing_in_one_line(target):
        if target.exists() and not (target.is_file() or target.is_dir()):
            target.write_bytes(content)
            return
        target = target.resolve() if target.is_symlink() else target
        if (target.parent / "manifest.json").is_file() and (target.parent / "answer.json").is_file():
            raise CannotWrite("a saved answer stands there", where=str(target), mend="name a place outside it")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(target)
        try:
            step()
            beside.write_bytes(content)
            step()
            beside.replace(target)
            step()
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def write_folder(target: Path, files: Mapping[str, bytes], *, replace: bool = True) -> bool:
    """Write a folder of files, whole or not at all.

    Parameters
    ----------
    target : folder to be made
    files : content by path inside the folder
    replace : whether a folder that stands there gives way; otherwise it is left and False comes back

    Returns
    -------
    bool, whether the folder that stands there now is the one handed in
    """
    with failing_in_one_line(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = _beside(target)
        try:
            beside.mkdir()
            for name, content in files.items():
                path = beside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                step()
                path.write_bytes(content)
            step()
            return _move_in(beside, target, replace=replace)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left in ``folder``, once it is old enough to belong to nobody."""
    now = time.time()
    with contextlib.suppress(OSError):
        for left in folder.glob(f".*{PARTIAL}"):
            with contextlib.suppress(OSError):
                if now - left.stat().st_mtime > STALE_AFTER:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()


def _beside(target: Path) -> Path:
    return target.parent / f".{target.name[:40]}.{secrets.token_hex(6)}{PARTIAL}"


def _move_in(beside: Path, target: Path, *, replace: bool) -> bool:
    # rename() puts a folder over an empty or absent one only; a full one has to step aside first.
    for left in (2, 1, 0):
        try:
            beside.rename(target)
            step()
            return True
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if not (replace and left):  # who makes room must try to fill it, or nothing would stand there
                return False
            aside = _beside(target)
            with contextlib.suppress(FileNotFoundError):  # another process may have moved it first
                target.rename(aside)
            step()
            shutil.rmtree(aside, ignore_errors=True)
    return False
