"""Positions of tracked animals: Movebank exports and tables of the same content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from answerable.errors import BadInput
from answerable.subjects.table import digest, read_table

__all__ = ["digest", "read_movebank"]

# Movebank's own names, then those of a cleaned table; hyphens and underscores are one.
NAMES = {
    "animal_id": ("individual_local_identifier", "tag_local_identifier", "individual_id", "animal_id", "tag_id"),
    "lat": ("location_lat", "lat", "latitude"),
    "long": ("location_long", "long", "lon", "lng", "longitude"),
    "timestamp": ("timestamp", "study_local_timestamp", "time"),
}
UNSEEN = ("false", "0", "no", "f")


def read_movebank(subject: Any) -> pl.DataFrame:
    """Positions, one row each, in the order of the file.

    Parameters
    ----------
    subject : CSV or Parquet file, or a dataframe: a Movebank export (``individual-local-identifier``,
        ``location-lat``, ``location-long``, ``timestamp``, ``visible``) or a table of ``animal_id``, ``lat``, ``long``,
        ``timestamp``. Rows without a place, and rows that say ``visible`` is false, are left out

    Returns
    -------
    polars.DataFrame : animal_id (text), lat and long (degrees), timestamp (text)

    Raises
    ------
    BadInput : a column that is missing, a place that is none (the line names the row, from 1), or nothing left
    CannotRead, Refused : as ``read_table``
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "movements"
    frame = read_table(subject)
    found = {_plain(name): name for name in reversed(frame.columns)}
    columns = {kind: _column(kind, found, where) for kind in NAMES}
    frame = frame.with_row_index("row", offset=1)
    if "visible" in found:
        seen = ~frame[found["visible"]].cast(pl.String).str.to_lowercase().is_in(UNSEEN).fill_null(False)
        frame = frame.filter(seen)
    numbers = {kind: _degrees(frame, columns[kind], most, where) for kind, most in (("lat", 90), ("long", 180))}
    positions = pl.DataFrame(
        {
            "animal_id": frame[columns["animal_id"]].cast(pl.String),
            **numbers,
            "timestamp": frame[columns["timestamp"]].cast(pl.String),
        }
    )
    kept = positions.filter(
        pl.col("lat").is_not_null() & pl.col("long").is_not_null() & pl.col("animal_id").is_not_null()
    )
    if not kept.height:
        raise BadInput("no row has an animal and a place", where=where, mend="give positions in degrees")
    return kept


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_").replace(".", "_")


def _column(kind: str, found: dict[str, str], where: str) -> str:
    for name in NAMES[kind]:
        if name in found:
            return found[name]
    raise BadInput(
        f"there is no column {NAMES[kind][0].replace('_', '-')!r}",
        where=where,
        mend=f"export from Movebank, or name it {kind!r}",
    )


def _degrees(frame: pl.DataFrame, column: str, most: int, where: str) -> pl.Series:
    """A column of degrees; missing where the file has nothing or NaN."""
    values = frame[column]
    numbers = values.cast(pl.Float64, strict=False).fill_nan(None)
    given = values.cast(pl.String).str.strip_chars()
    bad = (numbers.is_null() & given.is_not_null() & ~given.str.to_lowercase().is_in(["", "nan", "na", "null"])) | (
        numbers.abs() > most
    ).fill_null(False)
    if bad.any():
        at = bad.arg_true()[0]
        raise BadInput(
            f"{str(values[at])[:40]!r} is no place",
            where=f"{where}, column {column}, row {frame['row'][at]}",
            mend=f"give degrees from -{most} to {most}",
        )
    return numbers
