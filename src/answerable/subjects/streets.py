"""Street networks: GraphML (as OSMnx saves it), or plain tables of edges and nodes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput, CannotRead, Refused
from answerable.subjects import table
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

MOST_BYTES = 1_000_000_000
PLACES = ("from_lat", "from_long", "to_lat", "to_long")


class Streets(NamedTuple):
    """An undirected street network.

    Parameters
    ----------
    names : of each crossing
    latitude, longitude : (n_nodes,) degrees
    edges : (n_edges, 2) node numbers
    """

    names: tuple[str, ...]
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    edges: npt.NDArray[np.int64]


def read_streets(subject: Any, *, nodes: Any = None) -> Streets:
    """A street network, directions dropped.

    Parameters
    ----------
    subject : GraphML with ``x`` (longitude) and ``y`` (latitude) for each node, as OSMnx saves it; or a table of edges:
        ``from``, ``to`` with ``nodes`` beside it, or with ``from_lat``, ``from_long``, ``to_lat``, ``to_long``
    nodes : table of ``node``, ``lat``, ``long`` for a table of edges

    Raises
    ------
    BadInput : an edge to a node that is not there, a node without a place, or no edge at all
    CannotRead, Refused : a file that is damaged, or GraphML with a document type of its own
    """
    where = str(subject) if isinstance(subject, (str, Path)) else "streets"
    if isinstance(subject, (str, Path)):
        path = locate(subject, what="a GraphML file or a table of edges")
        kind = kind_of(path)
        refuse_pickle(path, kind)
        if kind == "text" and path.read_bytes()[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            return _from_graphml(path)
    frame = table.read_table(subject)
    named = {column.lower(): column for column in frame.columns}
    start, end = (next((named[n] for n in names if n in named), None) for names in (("from", "u"), ("to", "v")))
    if start is None or end is None:
        raise BadInput("there are no columns 'from' and 'to'", where=where, mend="give edges, or a GraphML file")
    places = _places(frame, start, end, nodes, where)
    numbers = {name: k for k, name in enumerate(places)}
    edges = [(numbers[str(a)], numbers[str(b)]) for a, b in zip(frame[start], frame[end], strict=True)]
    return _streets(places, edges, where)


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, or of a table of edges."""
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what="a GraphML file or a table of edges"))
    if isinstance(value, Streets):
        told = [value.names, value.latitude.tolist(), value.longitude.tolist(), value.edges.tolist()]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return table.digest(value)


def _places(frame: pl.DataFrame, start: str, end: str, nodes: Any, where: str) -> dict[str, tuple[float, float]]:
    if nodes is not None:
        told = table.read_table(nodes)
        if not {"node", "lat", "long"} <= set(told.columns):
            raise BadInput("there are no columns node, lat, long", where="nodes", mend="name them so")
        found = dict(
            zip(map(str, told["node"]), zip(_floats(told, "lat"), _floats(told, "long"), strict=True), strict=True)
        )
        for row, name in enumerate((*frame[start], *frame[end])):
            if str(name) not in found:
                mend = "give each node a row with lat and long"
                at = row % frame.height + 1
                raise BadInput(f"there is no node {str(name)[:40]!r}", where=f"{where}, row {at}", mend=mend)
        return found
    if not set(PLACES) <= set(frame.columns):
        raise BadInput(
            "the edges say nothing of places", where=where, mend=f"give nodes, or the columns {', '.join(PLACES)}"
        )
    numbers = [_floats(frame, name) for name in PLACES]
    found = {}
    for a, b, a_lat, a_long, b_lat, b_long in zip(frame[start], frame[end], *numbers, strict=True):
        found.setdefault(str(a), (a_lat, a_long))
        found.setdefault(str(b), (b_lat, b_long))
    return found


def _floats(frame: pl.DataFrame, name: str) -> list[float]:
    return frame[name].cast(pl.Float64, strict=False).fill_null(math.nan).to_list()


def _from_graphml(path: Path) -> Streets:
    where = str(path)
    if path.stat().st_size > MOST_BYTES:
        raise CannotRead(f"longer than {MOST_BYTES} bytes", where=where, mend="cut it to the box")
    content = path.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise Refused("its document type could expand without end", where=where, mend="save it without one")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as failure:
        raise CannotRead(f"this is no GraphML ({failure})", where=where, mend="save it again") from None
    keys = {key.get("id"): key.get("attr.name") for key in _all(root, "key") if key.get("for") in ("node", "all", None)}
    places: dict[str, tuple[float, float]] = {}
    for node in _all(root, "node"):
        told = {str(keys.get(data.get("key"))): data.text for data in _all(node, "data")}
        places[str(node.get("id"))] = (_degree(told, ("y", "lat")), _degree(told, ("x", "long", "lon")))
    numbers = {name: k for k, name in enumerate(places)}
    edges = []
    for edge in _all(root, "edge"):
        ends = (str(edge.get("source")), str(edge.get("target")))
        for end in ends:
            if end not in numbers:
                raise BadInput(f"an edge leads to node {end[:40]!r}, which is not there", where=where)
        edges.append((numbers[ends[0]], numbers[ends[1]]))
    return _streets(places, edges, where)


def _all(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [found for found in element.iter() if str(found.tag).rpartition("}")[2] == name]


def _degree(told: Mapping[str, str | None], names: tuple[str, ...]) -> float:
    try:
        return float(next((told[name] or "" for name in names if name in told), ""))
    except ValueError:
        return math.nan


def _streets(places: Mapping[str, tuple[float, float]], edges: list[tuple[int, int]], where: str) -> Streets:
    if not edges:
        raise BadInput("there is no street", where=where, mend="give at least one edge")
    for name, (lat, long) in places.items():
        if not (abs(lat) <= 90 and abs(long) <= 180):
            raise BadInput(
                f"node {name[:40]!r} has no place", where=where, mend="give latitude and longitude in degrees"
            )
    found = np.array(list(places.values()))
    return Streets(tuple(places), found[:, 0], found[:, 1], np.array(edges, np.int64))
