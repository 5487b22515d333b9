"""How many people live where: census blocks as polygons (GeoJSON) or as points (a table)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects import infrastructure
from answerable.subjects.geojson import Feature, centroid, contains, is_geojson, read_geojson
from answerable.subjects.table import read_table

Floats = npt.NDArray[np.float64]

POPULATION = ("POP20", "POP10", "POP", "population")
NAME = ("GEOID20", "GEOID10", "GEOID", "id")
LATITUDE, LONGITUDE = ("INTPTLAT20", "INTPTLAT", "lat", "latitude"), ("INTPTLON20", "INTPTLON", "long", "longitude")
METRES_PER_DEGREE = 111_195.0

digest = infrastructure.digest  # the same kinds of subject: a document, or a table


class Blocks(NamedTuple):
    """Census blocks.

    Parameters
    ----------
    names : of each block
    population : (n,) people
    latitude, longitude : (n,) degrees, of a block's middle
    shapes : its polygon, or None where the file has points
    bounds : (n, 4) west, south, east and north of each polygon, or None
    """

    names: tuple[str, ...]
    population: Floats
    latitude: Floats
    longitude: Floats
    shapes: tuple[Feature, ...] | None
    bounds: Floats | None = None


def read_blocks(subject: Any) -> Blocks:
    """Census blocks with their populations.

    Parameters
    ----------
    subject : GeoJSON of polygons with the properties ``GEOID20`` and ``POP20`` (as TIGER/Line's ``tabblock20`` has), or
        a table with these columns and ``INTPTLAT20``, ``INTPTLON20`` (or ``lat``, ``long``)

    Raises
    ------
    BadInput : a block without a population of at least 0, or a column that is missing
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "blocks"
    if is_geojson(subject):
        shapes = tuple(read_geojson(subject))
        if not shapes:
            raise BadInput("there is no block", where=where, mend="give the blocks of the box")
        rows = [shape.properties for shape in shapes]
        middles = np.array([centroid(shape) for shape in shapes])
        found = [_number(_first(row, POPULATION), where, k) for k, row in enumerate(rows, 1)]
        names = tuple(str(_first(row, NAME) or k) for k, row in enumerate(rows, 1))
        bounds = np.array([_bounds(shape) for shape in shapes])
        return _at_least_none(Blocks(names, np.array(found), middles[:, 0], middles[:, 1], shapes, bounds), where)
    frame = read_table(subject)
    chosen = {}
    for kinds in (POPULATION, LATITUDE, LONGITUDE):
        column = next((name for name in kinds if name in frame.columns), None)
        if column is None:
            raise BadInput(f"there is no column {kinds[0]!r}", where=where, mend=f"name one of {', '.join(kinds)}")
        chosen[kinds] = np.array([_number(value, where, k) for k, value in enumerate(frame[column], 1)])
    name = next((name for name in NAME if name in frame.columns), None)
    names = tuple(map(str, frame[name])) if name else tuple(str(k + 1) for k in range(frame.height))
    return _at_least_none(Blocks(names, chosen[POPULATION], chosen[LATITUDE], chosen[LONGITUDE], None), where)


def population_at(blocks: Blocks, latitude: float, longitude: float, *, radius: float = 0.0) -> float | None:
    """People where a point is.

    Parameters
    ----------
    radius : in metres; 0 for the one block that contains the point (of blocks given as points, the nearest), else the
        sum of all whose middle or outline comes this near

    Returns
    -------
    a number of people, or None where no block is there
    """
    if blocks.shapes is None or blocks.bounds is None:
        apart = _metres(blocks.latitude, blocks.longitude, latitude, longitude)
        near = apart <= radius if radius else np.arange(len(apart)) == apart.argmin()
        return float(blocks.population[near].sum()) if near.any() else None
    # only blocks whose bounds come near enough can hold the point or meet the circle
    margin = radius / METRES_PER_DEGREE * np.array([1 / max(np.cos(np.radians(latitude)), 1e-6), 1.0])
    place = np.array([longitude, latitude])
    inside = (blocks.bounds[:, :2] - margin <= place) & (place <= blocks.bounds[:, 2:] + margin)
    close: npt.NDArray[np.bool_] = np.logical_and(inside[:, 0], inside[:, 1])
    for k in np.flatnonzero(close):
        shape = blocks.shapes[k]
        close[k] = contains(shape, latitude, longitude) or _outline_within(shape, latitude, longitude, radius)
        if close[k] and not radius:
            return float(blocks.population[k])
    return float(blocks.population[close].sum()) if close.any() else None


def _bounds(shape: Feature) -> Floats:
    points = np.concatenate(shape.parts)
    return np.concatenate([points.min(axis=0), points.max(axis=0)])


def _at_least_none(blocks: Blocks, where: str) -> Blocks:
    """The blocks, if each has a population of at least 0."""
    bad = np.flatnonzero(blocks.population < 0)
    if len(bad):
        told = f"{blocks.population[bad[0]]:g} people live there"
        raise BadInput(told, where=f"{where}, block {blocks.names[bad[0]]}", mend="give a number of at least 0")
    return blocks


def _outline_within(shape: Feature, latitude: float, longitude: float, radius: float) -> bool:
    """Whether an edge of the polygon comes within ``radius`` metres."""
    shrink = np.cos(np.radians(latitude))
    for part in shape.parts:
        start = (part - [longitude, latitude]) * [METRES_PER_DEGREE * shrink, METRES_PER_DEGREE]
        along = np.roll(start, -1, axis=0) - start
        squared = (along**2).sum(axis=1)
        share = np.divide(-(start * along).sum(axis=1), squared, out=np.zeros(len(start)), where=squared > 0)
        nearest = start + np.clip(share, 0, 1)[:, None] * along
        if (nearest**2).sum(axis=1).min() <= radius**2:
            return True
    return False


def _metres(latitudes: Floats, longitudes: Floats, latitude: float, longitude: float) -> Floats:
    shrink = np.cos(np.radians(latitude))
    return METRES_PER_DEGREE * np.hypot(latitudes - latitude, (longitudes - longitude) * shrink)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _number(value: Any, where: str, number: int) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found):
        where = f"{where}, block {number}"
        raise BadInput(f"{str(value)[:40]!r} is no number", where=where, mend="give its population and place")
    return found
