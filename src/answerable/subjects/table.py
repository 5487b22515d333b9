"""Tables: CSV and Parquet files, and any dataframe, as polars."""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput, CannotRead, unknown
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

# A Parquet file that would take this many times its own size and this many bytes in memory was made to do so.
MOST_GROWTH, MOST_CHEAP_BYTES = 500, 1_000_000_000
_MEND = "save it again as CSV in UTF-8 or as Parquet"


def read_table(subject: Any, *, repeated: bool = False) -> pl.DataFrame:
    """A table as polars.

    Parameters
    ----------
    subject : path of a CSV (comma, semicolon or tab) or Parquet file, told by content; or any dataframe
    repeated : accept a CSV file in which a name stands twice; the later column is then called ``NAME_duplicated_0``

    Raises
    ------
    CannotRead, Refused : a missing or damaged file, or one that is no table
    BadInput : no rows, no columns, or no dataframe
    """
    if not isinstance(subject, (str, Path)):
        return as_table(subject)
    path = locate(subject, what="a CSV or Parquet file")
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind == "empty":
        raise BadInput("the file is empty", where=str(path), mend="give a table with a row of names")
    if kind not in ("parquet", "text"):
        # Spreadsheets save CSV in Latin-1 or UTF-16, which no reader can tell from anything else.
        what = "a file that is neither UTF-8 text nor Parquet" if kind == "unknown" else f"a file of kind {kind!r}"
        raise CannotRead(f"{what} is no table", where=str(path), mend=_MEND)
    read = _read_parquet if kind == "parquet" else functools.partial(_read_csv, repeated=repeated)
    frame = _failing_in_one_line(read, path)
    return _with_rows(frame, str(path))


def as_table(frame: Any) -> pl.DataFrame:
    """Any dataframe that narwhals knows, or a dictionary of columns, as polars.

    Raises
    ------
    BadInput : it is no dataframe, or has no rows
    """
    if isinstance(frame, dict):
        frame = _from_columns(frame)
    if isinstance(frame, pl.DataFrame):
        return _with_rows(frame, "table")
    try:
        found = nw.from_native(frame)
        eager = found.collect() if isinstance(found, nw.LazyFrame) else found
        return _with_rows(eager.to_polars(), "table")
    except (TypeError, AttributeError):
        mend = "give a path or a dataframe"
        raise BadInput(f"a {type(frame).__name__} is no table", where="table", mend=mend) from None


def _from_columns(columns: dict[str, Any]) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns, strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        found = " ".join(str(error).split())[:200]
        mend = "give columns of equal length, each of one kind of values"
        raise BadInput(f"these columns make no table ({found})", where="table", mend=mend) from None


def read_column(subject: Any, column: str) -> npt.NDArray[np.float64]:
    """One column of numbers, all there and finite.

    Raises
    ------
    UnknownName : there is no such column
    BadInput : an entry that is missing, no number or not finite; the line names the row, from 1
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "table"
    frame = read_table(subject)
    if column not in frame.columns:
        raise unknown("column", column, frame.columns, where=where)
    where = f"{where}, column {column}"
    numbers = frame[column].cast(pl.Float64, strict=False)
    bad = (numbers.is_null() | ~numbers.is_finite().fill_null(True)).arg_max() if len(numbers) else None
    if bad is not None and (numbers[bad] is None or not math.isfinite(numbers[bad])):
        found = frame[column][bad]
        what = "the entry is missing" if found is None else f"{str(found)[:40]!r} is no finite number"
        raise BadInput(
            what, where=f"{where}, row {bad + 1}", mend="mend the entry, drop the row or choose another column"
        )
    return numbers.to_numpy()


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of a dataframe's names, types and cells."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what="a CSV or Parquet file"))
    frame = as_table(value)
    return hashlib.sha256(json.dumps([_described(frame[name]) for name in frame.columns]).encode()).hexdigest()


def _described(column: pl.Series) -> list[str]:
    """A column's name, type and the digest of its cells; missing and NaN differ."""
    missing = column.is_null().to_numpy().tobytes()
    if column.dtype.is_numeric() and not column.dtype.is_decimal():
        cells = column.fill_null(0).to_numpy().tobytes()
    else:
        cells = json.dumps(column.to_list(), default=str).encode()
    found = hashlib.sha256(len(missing).to_bytes(8, "little") + missing + cells)
    return [column.name, str(column.dtype), found.hexdigest()]


def _with_rows(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    if not frame.width or not frame.height:
        problem = "the table has no rows" if frame.width else "the table has no columns"
        raise BadInput(problem, where=where, mend="give a header and at least one row")
    return frame


def _failing_in_one_line(read: Any, path: Path) -> pl.DataFrame:
    try:
        return read(path)
    except CannotRead:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError) as failure:
        said = " ".join(str(failure).split())[:200]
        if "found more fields" in said:
            mend = "put quotes around fields that hold the separator"
            raise CannotRead("a row has more fields than the header", where=str(path), mend=mend) from None
        raise CannotRead(f"no table can be read ({said})", where=str(path), mend=_MEND) from None


def _read_parquet(path: Path) -> pl.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # polars would end the whole process where a damaged page asks for more memory than there is; pyarrow raises.
    try:
        file = pq.ParquetFile(path)
        told = file.metadata
        cells = told.num_rows * told.num_columns
        if 8 * cells > max(MOST_CHEAP_BYTES, MOST_GROWTH * path.stat().st_size):
            raise CannotRead(f"{told.num_rows} rows do not fit into a file of its size", where=str(path), mend=_MEND)
        return pl.DataFrame(file.read())
    except (pa.ArrowException, MemoryError) as failure:
        raise ValueError(str(failure)) from None


def _read_csv(path: Path, *, repeated: bool) -> pl.DataFrame:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = file.readline(1_000_000)
    names = next(csv.reader([head], delimiter=(separator := _separator(head))), [])
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None and not repeated:
        mend = "give each column a name of its own"
        raise CannotRead(f"two columns are called {twice[:40]!r}", where=str(path), mend=mend)
    return pl.read_csv(path, separator=separator, infer_schema_length=None)


def _separator(head: str) -> str:
    return max(",;\t", key=head.count)
