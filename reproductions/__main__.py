"""``python -m reproductions NAME [--quick]``: a paper's figures, ours and the difference, as one table."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from answerable.errors import BadInput

HERE = Path(__file__).parent


class Row(NamedTuple):
    """One figure. What the paper does not give, or we cannot measure, is None."""

    what: str
    paper: float | None
    ours: float | None
    note: str = ""


def main() -> int:
    names = sorted(path.stem.replace("_", "-") for path in HERE.glob("*.py") if not path.stem.startswith("__"))
    parser = argparse.ArgumentParser(prog="python -m reproductions", description="A paper's figures beside ours.")
    parser.add_argument("name", choices=names, help="the question")
    parser.add_argument("--quick", action="store_true", help="smaller samples, under a minute")
    parser.add_argument("--only", metavar="METRIC", help="the rows of one metric, where the question tells them apart")
    arguments = parser.parse_args()
    module = importlib.import_module(f"reproductions.{arguments.name.replace('-', '_')}")
    some = {} if arguments.only is None else {"only": arguments.only}
    if some and "only" not in inspect.signature(module.rows).parameters:
        parser.error(f"the rows of {arguments.name} are made together; leave --only out")
    rows = []
    try:
        for row in module.rows(quick=arguments.quick, **some):
            rows.append(Row(*row))
            # Beside the table, which needs all rows: a run that is broken off leaves what it had found.
            print("  ".join(_cells(rows[-1])).rstrip(), file=sys.stderr, flush=True)
    except BadInput as refused:
        parser.error(str(refused))
    print(f"{arguments.name}{' (quick: a subset)' if arguments.quick else ''}")
    print("\n".join(_table(rows)))
    return 0


def _table(rows: Sequence[Row]) -> list[str]:
    heads = ("", "paper", "ours", "difference", "")
    body = [_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in (heads, *body)) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(wide) for cell, wide in zip(line, widths, strict=True)).rstrip() for line in (heads, *body)
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _cells(row: Row) -> tuple[str, ...]:
    return row.what, _number(row.paper), _number(row.ours), _difference(row), row.note


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _difference(row: Row) -> str:
    return "-" if row.paper is None or row.ours is None else f"{row.ours - row.paper:+.3g}"


if __name__ == "__main__":
    sys.exit(main())
