"""Infrastructure that somebody might attack: Overpass GeoJSON, or a table of types and places."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from answerable.errors import BadInput
from answerable.subjects import table
from answerable.subjects.address import locate
from answerable.subjects.geojson import Feature, centroid, is_geojson, read_geojson
from answerable.subjects.kinds import file_digest

TYPES = ("power", "amenity", "man_made")  # the first of these that a feature has is its type
SOLAR = ("photovoltaic", "solar", "solar_photovoltaic_panel")


def read_infrastructure(subject: Any) -> pl.DataFrame:
    """Features with type and place.

    Parameters
    ----------
    subject : Overpass GeoJSON (a path, or the parsed document), or a table (CSV, Parquet, dataframe) with the columns
        ``type``, ``lat``, ``long`` and, if there are, ``id``, ``name`` and ``population``

    Returns
    -------
    polars.DataFrame : id, type, name, lat, long (degrees), population (missing where the file has none)

    Raises
    ------
    BadInput : no feature has a type, or a place is none; the line names the feature or row
    CannotRead, Refused : a file that cannot or may not be read
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "infrastructure"
    if is_geojson(subject):
        features = read_geojson(subject)
        rows = [_row(feature, kind) for feature in features if (kind := _type(feature.properties))]
        if not rows:
            raise BadInput(
                f"none of {len(features)} features has one of {', '.join(TYPES)}", where=where, mend="export others"
            )
        return pl.DataFrame(rows, schema=_SCHEMA)
    return _from_table(table.read_table(subject), where)


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, of a document, or of a table."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what="a GeoJSON file or a table"))
    if isinstance(value, Mapping) and is_geojson(value):
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    return table.digest(value)


_SCHEMA: dict[str, Any] = {
    "id": pl.String, "type": pl.String, "name": pl.String, "lat": pl.Float64, "long": pl.Float64,
    "population": pl.Float64,
}  # fmt: skip


def _type(properties: Mapping[str, Any]) -> str:
    found = next((str(properties[key]) for key in TYPES if properties.get(key)), "")
    told = (properties.get("generator:source"), properties.get("generator:method"))
    return "solar_generator" if found == "generator" and any(value in SOLAR for value in told) else found


def _row(feature: Feature, kind: str) -> dict[str, Any]:
    lat, long = centroid(feature)
    name = str(feature.properties.get("name") or "")[:120]
    return {"id": feature.label, "type": kind[:60], "name": name, "lat": lat, "long": long, "population": None}


def _from_table(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    for name in ("type", "lat", "long"):
        if name not in frame.columns:
            mend = "give the columns type, lat, long, or an Overpass GeoJSON file"
            raise BadInput(f"there is no column {name!r}", where=where, mend=mend)
    n = frame.height
    columns: dict[str, pl.Series] = {
        "id": frame["id"].cast(pl.String) if "id" in frame.columns else pl.Series([f"row {k + 1}" for k in range(n)]),
        "type": frame["type"].cast(pl.String).fill_null(""),
        "name": frame["name"].cast(pl.String).fill_null("") if "name" in frame.columns else pl.Series([""] * n),
    }
    for name, most in (("lat", 90.0), ("long", 180.0), ("population", 1e12)):
        if name not in frame.columns:
            columns[name] = pl.Series([None] * n, dtype=pl.Float64)
            continue
        numbers = frame[name].cast(pl.Float64, strict=False).fill_nan(None)
        bad = (
            (numbers.abs() > most).fill_null(False)
            if name == "population"
            else ~(numbers.abs() <= most).fill_null(False)
        )
        if bad.any():
            at = bad.arg_true()[0]
            raise BadInput(
                f"{str(frame[name][at])[:40]!r} is no {'number of people' if name == 'population' else 'place'}",
                where=f"{where}, column {name}, row {at + 1}",
                mend="give degrees" if name != "population" else "give a number",
            )
        columns[name] = numbers
    return pl.DataFrame(columns).select(list(_SCHEMA))
