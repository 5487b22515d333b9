"""GeoJSON: features with their properties and geometries, and where a geometry's middle is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, CannotRead
from answerable.subjects.address import locate
from answerable.subjects.kinds import kind_of, refuse_pickle

Floats = npt.NDArray[np.float64]

MOST_BYTES = 1_000_000_000


class Feature(NamedTuple):
    """One feature.

    Parameters
    ----------
    properties : as in the file
    kind : Point, LineString or Polygon; of a collection of several, that of its first part
    parts : (n, 2) longitude and latitude of each point set, line or ring; a polygon's holes follow its outer ring
    label : what it calls itself, for errors
    """

    properties: Mapping[str, Any]
    kind: str
    parts: tuple[Floats, ...]
    label: str


def is_geojson(subject: Any) -> bool:
    """Whether a subject is a GeoJSON file or such a document, rather than a table."""
    if isinstance(subject, Mapping):
        return subject.get("type") == "FeatureCollection"
    return isinstance(subject, (str, Path)) and kind_of(locate(subject, what="a GeoJSON file or a table")) == "json"


def read_geojson(subject: Any) -> list[Feature]:
    """The features of a collection.

    Parameters
    ----------
    subject : path of a GeoJSON file, or the parsed document

    Raises
    ------
    CannotRead : a missing or damaged file, or one that is no feature collection
    BadInput : a geometry that is none; the line names the feature
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "GeoJSON"
    document = _document(subject, where)
    features = document.get("features") if isinstance(document, Mapping) else None
    if not isinstance(features, list):
        raise CannotRead("this is no feature collection", where=where, mend="export it as GeoJSON")
    return [_feature(entry, number, where) for number, entry in enumerate(features, 1)]


def centroid(feature: Feature) -> tuple[float, float]:
    """Latitude and longitude of a geometry's middle.

    Area-weighted for polygons (holes taken off), length-weighted for lines, in the plane that touches the earth there.
    """
    points = np.concatenate(feature.parts)
    middle = points.mean(axis=0)
    shrink = math.cos(math.radians(float(middle[1])))
    sums, weight = np.zeros(2), 0.0
    for part in feature.parts:
        flat = (part - middle) * [shrink, 1.0]
        moment, size = _moment(flat, feature.kind)
        sums, weight = sums + moment, weight + size
    if abs(weight) < 1e-18:  # a polygon without area, a line without length
        return float(middle[1]), float(middle[0])
    shift = sums / weight / [shrink, 1.0]
    return float(middle[1] + shift[1]), float(middle[0] + shift[0])


def contains(feature: Feature, latitude: float, longitude: float) -> bool:
    """Whether a polygon holds a point: an odd number of its edges lie to the east."""
    crossings = 0
    for part in feature.parts:
        x, y = part[:, 0], part[:, 1]
        x2, y2 = np.roll(x, -1), np.roll(y, -1)
        straddles = (y > latitude) != (y2 > latitude)
        with np.errstate(divide="ignore", invalid="ignore"):
            meets = x + (latitude - y) * (x2 - x) / (y2 - y)
        crossings += int((straddles & (longitude < meets)).sum())
    return crossings % 2 == 1


def _document(subject: Any, where: str) -> Any:
    if isinstance(subject, Mapping):
        return subject
    if not isinstance(subject, (str, Path)):
        raise BadInput(f"a {type(subject).__name__} is no GeoJSON", where=where, mend="give a path or a document")
    path = locate(subject, what="a GeoJSON file")
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind != "json":
        raise CannotRead(f"a file of kind {kind!r} is no GeoJSON", where=where, mend="export it as GeoJSON")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CannotRead(f"longer than {MOST_BYTES} bytes", where=where, mend="cut it to the box")
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as failure:
        said = " ".join(str(failure).split())[:120]
        raise CannotRead(f"it cannot be read ({said})", where=where, mend="export it again") from None


def _feature(entry: Any, number: int, where: str) -> Feature:
    where = f"{where}, feature {number}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("geometry"), Mapping):
        raise BadInput("it has no geometry", where=where, mend="leave it out")
    properties = entry.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    label = str(properties.get("@id") or properties.get("id") or entry.get("id") or f"feature {number}")[:80]
    geometry = entry["geometry"]
    kind = str(geometry.get("type"))
    parts: list[Floats] = []
    for shape in geometry.get("geometries", []) if kind == "GeometryCollection" else [geometry]:
        if isinstance(shape, Mapping):
            parts += _parts(shape.get("coordinates"), where)
    if kind == "GeometryCollection":
        kind = "Point"
    if not parts:
        raise BadInput("its geometry is empty", where=where, mend="leave it out")
    return Feature(properties, kind.removeprefix("Multi"), tuple(parts), label)


def _parts(coordinates: Any, where: str, depth: int = 0) -> list[Floats]:
    """Rows of points at whatever depth they lie."""
    if not isinstance(coordinates, list) or depth > 4:
        raise BadInput("its coordinates are none", where=where, mend="export it again")
    if coordinates and isinstance(coordinates[0], list) and coordinates[0] and isinstance(coordinates[0][0], list):
        return [part for inner in coordinates for part in _parts(inner, where, depth + 1)]
    rows = [coordinates] if coordinates and not isinstance(coordinates[0], list) else coordinates
    try:
        points = np.array([row[:2] for row in rows], float).reshape(-1, 2)
    except (TypeError, ValueError, IndexError):
        raise BadInput("its coordinates are no numbers", where=where, mend="export it again") from None
    if not np.isfinite(points).all() or (np.abs(points) > [180, 90]).any():
        raise BadInput("a point lies off the earth", where=where, mend="give longitude, then latitude, in degrees")
    return [points] if len(points) else []


def _moment(points: Floats, kind: str) -> tuple[Floats, float]:
    """Weighted sum of positions, and the weight, of one part."""
    if kind == "Polygon":
        following = np.roll(points, -1, axis=0)
        cross = points[:, 0] * following[:, 1] - following[:, 0] * points[:, 1]
        return ((points + following) * cross[:, None]).sum(axis=0) / 6, float(cross.sum() / 2)
    if kind == "LineString" and len(points) > 1:
        lengths = np.hypot(*np.diff(points, axis=0).T)
        return ((points[1:] + points[:-1]) / 2 * lengths[:, None]).sum(axis=0), float(lengths.sum())
    return points.sum(axis=0), float(len(points))
