"""How a race is run: same work, results compared first, times taken in turn, one table, one JSON document."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PAIRS, QUICK_PAIRS = 5, 3
ENOUGH_S = 20.0  # of a work without a peer: it is not repeated any more


@dataclass(frozen=True)
class Race:
    """One peer against ours on one piece of work.

    Both calls return the same numbers, which are compared; a peer that is slow does ``their_share`` of the work, and
    its times are scaled to the whole.
    """

    work: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any] | None = None
    package: str = ""  # whose version is shown
    tolerance: float = 1e-12
    why: str = ""  # of a tolerance wider than 1e-12, or of what a peer's time leaves out
    sample: str = "all"  # what the peer was timed on
    their_share: float = 1.0
    threads: int = 1  # ours; every peer here runs on one
    floor_s: float | None = None
    target_ratio: float | None = None
    target_s: float | None = None
    compared: bool = True  # false for ours against ours at another size
    pairs: int = PAIRS  # of runs that are timed; fewer where a peer takes a minute
    quoted_s: float | None = None  # a published figure, where the code can be neither installed nor copied


def run(race: Race, *, quick: bool) -> dict[str, Any]:
    """The race's row of the JSON document."""
    row: dict[str, Any] = {
        "work": race.work,
        "peer": race.peer,
        "peer_version": version(race.package) if race.package else None,
        "sample": race.sample,
        "threads": race.threads,
        "tolerance": race.tolerance if race.theirs and race.compared else None,
        "why": race.why,
        "agree": None,
        "peer_s": race.quoted_s,
        "ours_s": None,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "floor_s": race.floor_s,
        "ours_peak_mb": None,
        "peer_peak_mb": None,
        "target_ratio": race.target_ratio,
        "target_s": race.target_s,
    }
    ours, row["ours_peak_mb"] = _with_peak(race.ours)
    if race.theirs is None:
        times = [_seconds(race.ours)]
        while len(times) < (QUICK_PAIRS if quick else 3 * PAIRS) and sum(times) < ENOUGH_S:
            times.append(_seconds(race.ours))
        row["ours_s"] = statistics.median(times)
        return row
    theirs, row["peer_peak_mb"] = _with_peak(race.theirs)
    if race.compared:
        gap = float(np.max(np.abs(np.asarray(ours)[: len(theirs)] - np.asarray(theirs))))
        row["agree"], row["largest_gap"] = bool(gap <= race.tolerance), gap
        if not row["agree"]:
            return row
    pairs = [
        (_seconds(race.theirs) / race.their_share, _seconds(race.ours))
        for _ in range(min(QUICK_PAIRS, race.pairs) if quick else race.pairs)
    ]
    ratios = [theirs / ours for theirs, ours in pairs]
    row["peer_s"], row["ours_s"] = (statistics.median(times) for times in zip(*pairs, strict=True))
    row["ratio"], row["ratio_low"], row["ratio_high"] = statistics.median(ratios), min(ratios), max(ratios)
    return row


def failures(row: dict[str, Any]) -> list[str]:
    """What the race demands and did not get."""
    name = f"{row['work']} against {row['peer']}"
    if row["agree"] is False:
        return [f"{name}: results differ by {row['largest_gap']:.1e}, more than {row['tolerance']:.0e}"]
    return []


def missed(row: dict[str, Any]) -> str:
    """How a row stands to its target, in a word."""
    if row["target_ratio"] is not None and row["ratio"] is not None:
        return "met" if row["ratio"] >= row["target_ratio"] else "missed"
    if row["target_s"] is not None and row["ours_s"] is not None:
        return "met" if row["ours_s"] <= row["target_s"] else "missed"
    return ""


def machine() -> dict[str, Any]:
    """What the times were taken on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _lines("/proc/cpuinfo")
            if line.startswith(("model name", "Model name"))
        ),
        platform.processor(),
    )
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def bytes_per_second() -> float:
    """How fast this machine reads memory on one core: the best of five sums over 128 MB."""
    block = np.ones(16 * 2**20)
    return block.nbytes / min(_seconds(lambda: block.sum()) for _ in range(5))


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows as lines of one table."""
    heads = ("work", "threads", "peer", "sample", "peer", "ours", "ratio (spread)", "floor", "MB ours / peer", "target")
    body = [
        (
            row["work"],
            str(row["threads"]),
            " ".join(filter(None, (row["peer"], row["peer_version"]))),
            row["sample"],
            _time(row["peer_s"]),
            _time(row["ours_s"]),
            "differs" if row["agree"] is False else _ratio(row),
            _time(row["floor_s"]),
            f"{_whole(row['ours_peak_mb'])} / {_whole(row['peer_peak_mb'])}",
            _target(row),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (heads, *body)) for column in range(len(heads))]
    lines = ["  ".join(cell.ljust(wide) for cell, wide in zip(line, widths, strict=True)) for line in (heads, *body)]
    notes = dict.fromkeys(f"{row['peer']}: {row['why']}" for row in rows if row["why"])
    return [lines[0], "-" * len(lines[0]), *lines[1:], *notes]


def in_short(row: dict[str, Any]) -> str:
    """What came of one race, while the others are still to be run."""
    ratio = "results differ" if row["agree"] is False else f"ratio {_ratio(row)}"
    return f"peer {_time(row['peer_s'])}, ours {_time(row['ours_s'])}, {ratio}, target {_target(row)}"


def _seconds(call: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _with_peak(call: Callable[[], Any]) -> tuple[Any, float | None]:
    """The result of a first, untimed call (which compiles) and the MB that a second one adds at its peak."""
    result = call()
    gc.collect()
    _give_memory_back()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # begins the high-water mark anew
    except OSError:
        return result, None
    before = _kilobytes("VmRSS")
    call()
    return result, max(0.0, (_kilobytes("VmHWM") - before) / 1024)


def _give_memory_back() -> None:
    """Let the C library return freed memory; else a second call would find it there and show no peak of its own."""
    with contextlib.suppress(OSError, AttributeError):  # not every C library can
        ctypes.CDLL(None).malloc_trim(0)


def _kilobytes(name: str) -> int:
    return next(int(line.split()[1]) for line in _lines("/proc/self/status") if line.startswith(name))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _ratio(row: dict[str, Any]) -> str:
    if row["ratio"] is None:
        return "quoted" if row["peer_s"] is not None else "-"
    return f"{row['ratio']:.3g} ({row['ratio_low']:.3g} to {row['ratio_high']:.3g})"


def _target(row: dict[str, Any]) -> str:
    if row["target_ratio"] is not None:
        return f">= {row['target_ratio']:g}: {missed(row)}"
    if row["target_s"] is not None:
        return f"<= {_time(row['target_s'])}: {missed(row)}"
    return ""


def _whole(megabytes: float | None) -> str:
    return "-" if megabytes is None else f"{megabytes:.0f}"
