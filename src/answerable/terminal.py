"""The terminal's one exit: everything a person sees on a screen leaves the program here, escaped.

Results go to standard output, everything said along the way to standard error. Lines that replace themselves and
progress bars are shown only on a terminal and never after :func:`be_quiet`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from answerable import escapes
from answerable.errors import CannotWrite
from answerable.secrets import redacted

if TYPE_CHECKING:
    from rich.progress import Progress

_quiet = False
_status_shown = False
_bars: Progress | None = None


def be_quiet(quiet: bool = True) -> None:
    """Say nothing along the way; results, warnings and errors are still shown."""
    global _quiet
    _quiet = quiet


def escaped(text: str) -> str:
    """The text with secrets left out and nothing that a terminal would obey; a line break stays one."""
    return "\n".join(escapes.escaped(line) for line in redacted(text).split("\n"))


def show(text: str = "") -> None:
    """A result, on standard output."""
    _write(sys.stdout, escaped(text) + "\n")


def show_line(text: str) -> None:
    """A result that is one line whatever stands in it, on standard output."""
    show(text.replace("\n", "\\n"))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A result with columns, on standard output: as wide as its cells, the last column cut to the window on a
    terminal.
    """
    import shutil

    cells = [[escaped(cell).replace("\n", "\\n") for cell in row] for row in [heads, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    limit = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        _write(sys.stdout, (line[: limit - 1] + "…" if limit and len(line) > limit else line) + "\n")


def say(text: str) -> None:
    """A remark along the way, on standard error."""
    if not _quiet:
        _write(sys.stderr, escaped(text).replace("\n", "\\n") + "\n")


def warn(text: str) -> None:
    """A warning, on standard error, always shown."""
    _write(sys.stderr, "warning: " + escaped(text).replace("\n", "\\n") + "\n")


def fail(text: str) -> None:
    """An error in one line, on standard error, always shown."""
    _write(sys.stderr, "error: " + escaped(" ".join(text.split())) + "\n")


def status(text: str) -> None:
    """What is being done just now: one line on a terminal that the next line replaces."""
    global _status_shown
    if _on_screen():
        if _bars is not None:
            _bars.console.print(escaped(text), markup=False, highlight=False)
            return
        _write(sys.stderr, escaped(text).replace("\n", " "))
        _status_shown = True


@contextlib.contextmanager
def progress(label: str, total: int | None, *, done: int = 0) -> Iterator[Callable[[], None]]:
    """A bar with the time left, gone when the work ends; yields the function that says one more unit is finished."""
    global _bars
    if not _on_screen() or (total is not None and total - done <= 1):
        yield lambda: None
        return
    outermost = _bars is None
    bars = _bars = _bars or _new_bars()
    if outermost:
        _clear_status()
        bars.start()
    task = bars.add_task(escaped(label), total=total, completed=done)
    try:
        yield lambda: bars.advance(task)
    finally:
        bars.remove_task(task)
        if outermost:
            bars.stop()
            _bars = None


def _new_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _on_screen() -> bool:
    return not _quiet and sys.stderr is not None and sys.stderr.isatty()


def _clear_status() -> None:
    global _status_shown
    if _status_shown:
        sys.stderr.write("\r\x1b[2K")
        _status_shown = False


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # no terminal at all, as under pythonw
        return
    if sys.stderr is not None:
        _clear_status()
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:  # whoever read has seen enough
        pass
    except OSError as failure:
        if stream is sys.stdout:
            reason = failure.strerror or str(failure)
            raise CannotWrite(reason, where="standard output", mend="free some space, or send it elsewhere") from None


def flush() -> None:
    """Hand on what was written; whoever reads it may be gone."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
