"""Data of the true formats, made by chance: a herd as Movebank exports it, a street grid as OSMnx saves it, blocks.

The herd is no one's: correlated random walks between a few clearings, positions every few hours, some fixes missing.
The streets are a grid turned by some degrees with a few streets missing. The example files are written by these
functions, and a test holds them to it.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np

HEADER = (
    "event-id,visible,timestamp,location-long,location-lat,sensor-type,individual-taxon-canonical-name,"
    "tag-local-identifier,individual-local-identifier,study-name"
)
CLEARINGS = ((2.085, 16.075), (2.12, 15.935), (2.185, 16.02), (2.215, 16.135), (2.25, 15.985), (2.15, 16.11))
RESERVE = (2.0530, 2.2837, 15.8790, 16.2038)  # south, north, west, east
POLICE_PLAZA = (40.7123, -74.0018)


def movebank_csv(*, animals: int = 5, fixes: int = 240, seed: int = 7) -> str:
    """A herd's positions with Movebank's own headers.

    Parameters
    ----------
    animals, fixes : how many, and positions of each
    seed : of all chance
    """
    rng = np.random.default_rng(seed)
    lines = [HEADER]
    event = 100_000
    for animal in range(animals):
        began = datetime(2021, 3, 1) + timedelta(hours=int(rng.integers(48)))
        for step, (lat, long) in enumerate(_walk(fixes, rng)):
            event += int(rng.integers(1, 9))
            at = began + timedelta(hours=8 * step, minutes=int(rng.integers(30)))
            seen = "true" if rng.random() > 0.01 else "false"
            place = ("", "") if rng.random() < 0.005 else (f"{long:.5f}", f"{lat:.5f}")
            lines.append(
                f"{event},{seen},{at:%Y-%m-%d %H:%M:%S}.000,{place[0]},{place[1]},gps,Loxodonta cyclotis,"
                f"replica-{animal + 1:02d},R{animal + 1},Replica herd"
            )
    return "\n".join(lines) + "\n"


def _walk(fixes: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """A correlated random walk that is drawn to one clearing after another."""
    clearings = rng.permutation(len(CLEARINGS))[:4]
    lat, long = CLEARINGS[clearings[0]]
    heading = rng.uniform(0, 2 * math.pi)
    places = []
    for step in range(fixes):
        goal = CLEARINGS[clearings[step * len(clearings) // fixes]]
        wanted = math.atan2(goal[0] - lat, goal[1] - long)
        turn = math.atan2(math.sin(wanted - heading), math.cos(wanted - heading))
        heading += 0.35 * turn + rng.normal(0, 0.7)
        stride = rng.gamma(2.0, 0.004)
        lat, long = lat + stride * math.sin(heading), long + stride * math.cos(heading)
        places.append((lat, long))
    return places


def street_grid(
    *, shape: tuple[int, int] = (9, 11), middle: tuple[float, float] = (40.7163, -74.0012), turned: float = 28.0,
    spacing: float = 130.0, missing: float = 0.08, seed: int = 7,
) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:  # fmt: skip
    """Crossings and streets of a grid.

    Parameters
    ----------
    shape : crossings along and across
    middle : latitude and longitude
    turned : degrees
    spacing : metres between crossings
    missing : share of streets left out where the grid stays connected
    seed : of all chance

    Returns
    -------
    (latitude, longitude) of each crossing, and pairs of their numbers
    """
    rng = np.random.default_rng(seed)
    n_along, n_across = shape
    angle = math.radians(turned)
    places = []
    for a in range(n_along):
        for b in range(n_across):
            y = (a - (n_along - 1) / 2) * spacing + rng.normal(0, 8)
            x = (b - (n_across - 1) / 2) * spacing + rng.normal(0, 8)
            north, east = y * math.cos(angle) + x * math.sin(angle), x * math.cos(angle) - y * math.sin(angle)
            lat = middle[0] + north / 111_195
            places.append((round(lat, 7), round(middle[1] + east / (111_195 * math.cos(math.radians(lat))), 7)))
    across = [(a * n_across + b, a * n_across + b + 1) for a in range(n_along) for b in range(n_across - 1)]
    along = [(a * n_across + b, (a + 1) * n_across + b) for a in range(n_along - 1) for b in range(n_across)]
    edges = across + along
    for edge in [edges[k] for k in rng.permutation(len(edges))[: int(missing * len(edges))]]:
        rest = [other for other in edges if other != edge]
        if _connected(len(places), rest):
            edges = rest
    return places, edges


def _connected(n: int, edges: list[tuple[int, int]]) -> bool:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges).T
    return int(connected_components(coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(n, n)))[0]) == 1


def graphml(places: list[tuple[float, float]], edges: list[tuple[int, int]]) -> str:
    """A street network as OSMnx saves it: ``x`` and ``y`` for each node."""
    nodes = [
        f'    <node id="{k + 1}"><data key="d0">{lat}</data><data key="d1">{long}</data></node>'
        for k, (lat, long) in enumerate(places)
    ]
    arcs = [f'    <edge source="{a + 1}" target="{b + 1}"/>' for a, b in edges]
    head = [
        "<?xml version='1.0' encoding='utf-8'?>",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '  <key id="d0" for="node" attr.name="y" attr.type="double"/>',
        '  <key id="d1" for="node" attr.name="x" attr.type="double"/>',
        '  <graph edgedefault="undirected">',
    ]
    return "\n".join([*head, *nodes, *arcs, "  </graph>", "</graphml>"]) + "\n"


def blocks_csv(*, seed: int = 7, box: tuple[float, float, float, float] = (40.708, 40.725, -74.014, -73.990)) -> str:
    """Census blocks as points with TIGER/Line's column names; populations by chance."""
    rng = np.random.default_rng(seed)
    south, north, west, east = box
    lines = ["GEOID20,POP20,INTPTLAT20,INTPTLON20"]
    for a in range(12):
        for b in range(12):
            people = int(rng.gamma(1.3, 180)) if rng.random() > 0.15 else 0
            lat = south + (a + 0.5 + rng.uniform(-0.2, 0.2)) / 12 * (north - south)
            long = west + (b + 0.5 + rng.uniform(-0.2, 0.2)) / 12 * (east - west)
            lines.append(f"3606199{a:02d}{b:02d}00{a % 9}{b % 9},{people},{lat:.7f},{long:.7f}")
    return "\n".join(lines) + "\n"


def example_files() -> dict[str, str]:
    """The made-up files of the examples, by name."""
    return {
        "replica-herd.csv": movebank_csv(),
        "replica-streets.graphml": graphml(*street_grid()),
        "replica-blocks.csv": blocks_csv(),
    }
