"""Compiled kernels: how they are built, where they are kept, how they run on several threads.

No other module names numba's cache or threads. What is guarded against:

- numba notices an edit in a kernel's own file, not in a file whose kernel it calls; so the kernels live in a folder
  named by the content of every file of ours that compiles something.
- a cache file cut short makes numba raise in the middle of a call; so the files are walked once per process, without
  executing anything in them, and a folder with a damaged one is wiped and built again.
- numba looks for its cache in the source tree, which may be read-only; so the cache lives with the user, and where
  nothing can be written the kernels are compiled in memory.
- numba's own thread pools may not be entered from two threads, and die in forked workers; so kernels release the
  interpreter lock and plain Python threads call them.

``fastmath`` stays off: sums are never reordered, so a kernel gives the same bits whatever called it.
"""

from __future__ import annotations

import hashlib
import os
import pickletools
import platform
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numba

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

OUR_SOURCES = Path(__file__).parent
# About the size of one compiled kernel: a full disk shows itself here, not in the middle of a call.
_PROBE_BYTES = 65536


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call for each set of argument types, and keep the result on disk.

    The kernel runs without the interpreter lock and may be called by other kernels.

    Parameters
    ----------
    function : plain loops over numpy arrays and numbers, at the top level of a module
    """
    folder = kernel_folder()
    # numba reads this setting while it decorates; putting it back leaves other people's kernels where they were
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder) if folder else ""
    try:
        return numba.njit(cache=folder is not None, nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before


def kernel_folder() -> Path | None:
    """The folder of this version's kernels, made and checked once per process; None where nothing can be written."""
    root = _cache_root()
    if root not in _checked:
        _checked[root] = _prepare(root / "kernels" / _fingerprint(OUR_SOURCES))
    return _checked[root]


def usable_cores() -> int:
    """How many processor cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def in_threads(work: Callable[[Any], Outcome], items: Any, threads: int) -> list[Outcome]:
    """Call ``work`` on short runs of ``items`` from several threads; outcomes in the order of ``items``.

    Parameters
    ----------
    work : gets a slice of ``items``, a sequence or an array; most of its time must pass inside kernels, which run
        side by side
    items : what there is to do, in any order; early runs are handed out first
    threads : how many may run at once, at least 1

    Raises
    ------
    the first exception that ``work`` raises
    """
    threads = max(1, min(threads, len(items)))
    # Several runs per thread even out unequal work; the first items are usually the heaviest.
    size = max(1, len(items) // (threads * 16)) if threads > 1 else max(1, len(items))
    runs = [items[start : start + size] for start in range(0, len(items), size)]
    if threads == 1:
        return [work(run) for run in runs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, runs))


_checked: dict[Path, Path | None] = {}


def _cache_root() -> Path:
    chosen = os.environ.get("ANSWERABLE_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("answerable"))


def _fingerprint(sources: Path) -> str:
    """A name for the kernels: what our compiled files say, which numba compiles them, for which Python."""
    digest = hashlib.sha256(f"{numba.__version__} {platform.python_version()} {platform.machine()}".encode())
    for file in sorted(sources.rglob("*.py")):
        text = file.read_bytes()
        if b"\n@kernel\n" in text or file.name == "compiled.py":
            digest.update(file.relative_to(sources).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _prepare(folder: Path) -> Path | None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.parent.chmod(0o700)
        folder.chmod(0o700)
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
        if any(_is_damaged(file) for file in folder.rglob("*.nb[ic]")):
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
    except OSError:
        return None
    return folder


def _is_damaged(file: Path) -> bool:
    """Whether the file is not one or two whole pickles. They are walked through, never executed."""
    try:
        with file.open("rb") as stream:
            for _ in range(2 if file.suffix == ".nbi" else 1):
                for _opcode, _argument, _position in pickletools.genops(stream):
                    pass
            return bool(stream.read(1))
    except (ValueError, OSError, OverflowError, UnicodeDecodeError, AttributeError):
        return True
