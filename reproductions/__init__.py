"""The papers' own figures beside ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from answerable.keys import sources_of
from answerable.places import cache

# The folder of extra data: not in the repository, and not needed for most rows.
DATA = Path(os.environ.get("ANSWERABLE_TEST_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


def kept(name: str, label: str, module: str, times: int, make: Callable[[int], Any]) -> Iterator[Any]:
    """``make(k)`` for k below ``times``; what was made before is read back, so that a run that ended early goes on.

    Parameters
    ----------
    name : of the reproduction
    label : of the row; letters, digits and hyphens
    module : what is measured; a change of it or of what it imports begins anew
    times : how many
    make : gives what JSON can hold, the same for the same number
    """
    folder = cache()
    lines: list[str] = []
    if folder is not None:
        path = folder / "reproductions" / f"{name}-{sources_of(module)[0][:16]}" / f"{label}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            # A line that a kill tore has no end.
            lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line[-1] == "\n"]
            path.write_text("".join(lines), encoding="utf-8")
    for k in range(times):
        if k >= len(lines):
            line = json.dumps(make(k)) + "\n"
            if folder is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(line)
        else:
            line = lines[k]
        yield json.loads(line)
