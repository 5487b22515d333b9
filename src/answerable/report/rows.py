"""A table of an answer as the page shows it: its first rows, its numbers written alike, and a file to download."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from answerable.report import numbers
from answerable.report.visible import escaped, shown, shown_all
from answerable.secrets import redacted

if TYPE_CHECKING:
    import polars as pl

    from answerable.answer import Table

LONG_TEXT = 32  # characters of a cell that is not to become a column of letters beside many others
MOST_COLUMNS = 40
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # what a spreadsheet takes for the beginning of a formula
_UNIT = re.compile(r"\(([^()]{1,24})\)\s*$")


@dataclass(frozen=True)
class Cell:
    """A cell: what is shown, the number it stands for where it is one, and whether it stands to the right."""

    text: str
    number: str = ""


@dataclass(frozen=True)
class Head:
    """A column: its name, its unit, what it means, and whether it holds numbers."""

    name: str
    unit: str
    meaning: str
    numeric: bool


@dataclass(frozen=True)
class Shown:
    """A table as the page shows it."""

    heads: list[Head]
    rows: list[list[Cell]]
    height: int
    width: int
    csv: str
    csv_rows: int

    @property
    def body(self) -> Markup:
        """The rows as elements, written here because a template would take most of a long report's time for them."""
        rows = []
        for row in self.rows:
            cells = (_cell(head, cell) for head, cell in zip(self.heads, row, strict=True))
            rows.append(f"<tr>{''.join(cells)}</tr>\n")
        return Markup("".join(rows))

    @property
    def size(self) -> int:
        """About how many characters the rows take on the page."""
        return sum(len(cell.text) + len(cell.number) + 34 for row in self.rows for cell in row)


def _cell(head: Head, cell: Cell) -> str:
    if head.numeric:
        return f'<td class="n" data-v="{escape(cell.number)}">{escape(cell.text)}</td>'
    long = ' class="long"' if len(cell.text) > LONG_TEXT else ""
    return f"<td{long}>{escape(cell.text)}</td>"


def shown_table(table: Table, *, most_rows: int, budget: int, csv_budget: int) -> Shown:
    """The first rows and columns of a table, and a CSV of as many rows as fit.

    Parameters
    ----------
    most_rows : rows on the page
    budget : characters that they may take there
    csv_budget : characters of the file to download; a table whose first row is longer has none
    """
    frame = table.frame
    first = frame.head(most_rows)
    names = frame.columns[:MOST_COLUMNS]
    heads = [_head(name, table.descriptions.get(name, ""), frame.schema[name].is_numeric()) for name in names]
    columns = [_column(first[name].to_list(), head.numeric) for name, head in zip(names, heads, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    file, filed = _csv(frame, csv_budget)
    found = Shown(heads, rows, frame.height, frame.width, _address(file), filed)
    # Long texts: as many rows as fit, by the mean of these.
    return found if found.size <= budget else replace(found, rows=rows[: budget * len(rows) // found.size])


def _head(name: str, description: str, numeric: bool) -> Head:
    unit = _UNIT.search(description)
    return Head(shown(name.replace("_", " ")), shown(unit.group(1), 24) if unit else "", shown(description), numeric)


def _column(values: Sequence[Any], numeric: bool) -> list[Cell]:
    if numeric:
        plain = [None if value is None else value if isinstance(value, int) else float(value) for value in values]
        texts = numbers.column(plain)
        return [Cell(text, "" if value is None else repr(value)) for text, value in zip(texts, plain, strict=True)]
    return [Cell(text) for text in shown_all(map(_in_words, values))]


def _in_words(value: Any) -> str:
    if value is None:
        return numbers.DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, list | tuple):
        return ", ".join(_in_words(one) for one in itertools.islice(value, 50))
    return str(value)


# The file to download


def _csv(frame: pl.DataFrame, budget: int) -> tuple[str, int]:
    """As many whole rows as fit into ``budget`` characters, below their heads; nothing at all when no row does."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([_raw(name) for name in frame.columns])
    kept, count = buffer.tell(), 0
    for row in frame.iter_rows():
        writer.writerow([_raw(value) for value in row])
        if buffer.tell() > budget:
            break
        kept, count = buffer.tell(), count + 1
    if frame.height and not count:
        return "", 0
    return redacted(buffer.getvalue()[:kept]), count


def _raw(value: Any) -> str:
    """A cell as the file holds it: numbers as they are, texts whole, never the beginning of a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = value if isinstance(value, str) else _in_words(value)
    guarded = "'" + text if text.startswith(FORMULA) else text
    # Line ends and tabs stay what they are, since a quoted cell may hold them; all other controls are written out.
    return "\n".join("\t".join(map(escaped, line.split("\t"))) for line in guarded.split("\n"))


def _address(text: str) -> str:
    return (
        "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.encode("utf-8")).decode("ascii") if text else ""
    )
