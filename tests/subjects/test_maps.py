"""Tracks, infrastructure, streets and census blocks: what is read, and how what cannot be read is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from answerable.errors import AnswerableError, BadInput, CannotRead, Refused
from answerable.subjects.census_blocks import population_at, read_blocks
from answerable.subjects.geojson import centroid, contains, read_geojson
from answerable.subjects.infrastructure import read_infrastructure
from answerable.subjects.movements import read_movebank
from answerable.subjects.streets import read_streets

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

MOVEBANK = (
    "event-id,visible,timestamp,location-long,location-lat,sensor-type,tag-local-identifier,"
    "individual-local-identifier,study-name\n"
)


def told(call: Any, *arguments: Any, **named: Any) -> str:
    """The one line of an error."""
    with pytest.raises(AnswerableError) as caught:
        call(*arguments, **named)
    line = str(caught.value)
    assert "\n" not in line
    return line


def collection(*features: tuple[dict[str, Any], str, Any]) -> dict[str, Any]:
    return {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}
            for properties, kind, coordinates in features
        ],
    }


def square(west: float, south: float, side: float) -> list[list[float]]:
    return [
        [west, south],
        [west + side, south],
        [west + side, south + side],
        [west, south + side],
        [west, south],
    ]


# Tracks


def test_a_movebank_export_loses_rows_without_a_place_or_unseen(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(
        MOVEBANK
        + "1,true,2021-03-01 00:00:00.000,16.1,2.1,gps,t1,R1,s\n"
        + "2,false,2021-03-01 01:00:00.000,16.2,2.2,gps,t1,R1,s\n"
        + "3,true,2021-03-01 02:00:00.000,,,gps,t1,R1,s\n"
        + "4,,2021-03-01 03:00:00.000,16.4,2.4,gps,t2,R2,s\n"
    )
    found = read_movebank(tmp_path / "m.csv")
    assert found.columns == ["animal_id", "lat", "long", "timestamp"]
    assert found["animal_id"].to_list() == ["R1", "R2"]
    assert found["lat"].to_list() == [2.1, 2.4]
    assert found["long"].to_list() == [16.1, 16.4]


def test_a_cleaned_table_and_a_dataframe_are_tracks_too() -> None:
    columns = {"animal_id": [7, 7], "Lat": [1.0, float("nan")], "LONGITUDE": [3.0, 4.0], "timestamp": ["a", "b"]}
    found = read_movebank(pl.DataFrame(columns))
    assert found.rows() == [("7", 1.0, 3.0, "a")]
    assert read_movebank(columns).equals(found)


@pytest.mark.parametrize(
    "content, line",
    [
        (
            "a,b\n1,2\n",
            "there is no column 'individual-local-identifier'; export from Movebank, or name it 'animal_id'",
        ),
        ("animal_id,lat,long,timestamp\nx,1,2,t\nx,91,2,t\n", "column lat, row 2: '91' is no place"),
        ("animal_id,lat,long,timestamp\nx,1,2,t\nx,1,east,t\n", "column long, row 2: 'east' is no place"),
        ("animal_id,lat,long,timestamp\nx,,,t\n", "no row has an animal and a place"),
        ("animal_id,lat,long,timestamp\n", "the table has no rows"),
        ("", "the file is empty"),
    ],
)
def test_tracks_that_are_none(tmp_path: Path, content: str, line: str) -> None:
    (tmp_path / "m.csv").write_text(content)
    assert line in told(read_movebank, tmp_path / "m.csv")


# GeoJSON


def test_middles_of_shapes() -> None:
    """A square, one with a hole in its east half, a line, points."""
    hole = [[3.0, 1.0], [3.0, 3.0], [3.9, 3.0], [3.9, 1.0], [3.0, 1.0]]
    document = collection(
        ({}, "Polygon", [square(0, 0, 4)]),
        ({}, "Polygon", [square(0, 0, 4), hole]),
        ({}, "LineString", [[0, 0], [2, 0], [4, 0]]),
        ({}, "MultiPoint", [[0, 0], [0, 2]]),
        ({}, "MultiPolygon", [[square(0, 0, 1)], [square(3, 0, 1)]]),
    )
    whole, holed, line, points, two = read_geojson(document)
    assert centroid(whole) == pytest.approx((2, 2))
    assert centroid(holed)[0] == pytest.approx(2)
    assert centroid(holed)[1] == pytest.approx((16 * 2 - 1.8 * 3.45) / (16 - 1.8))
    assert centroid(line) == pytest.approx((0, 2))
    assert centroid(points) == pytest.approx((1, 0))
    assert centroid(two) == pytest.approx((0.5, 2))
    assert contains(holed, 2, 1)
    assert not contains(holed, 2, 3.5)
    assert not contains(whole, 5, 1)
    assert contains(two, 0.5, 3.5)
    assert not contains(two, 0.5, 2)


@pytest.mark.parametrize(
    "document, line",
    [
        ({"type": "FeatureCollection"}, "this is no feature collection"),
        ({"type": "FeatureCollection", "features": [3]}, "feature 1: it has no geometry"),
        (collection(({}, "Point", [])), "feature 1: its geometry is empty"),
        (collection(({}, "Point", ["a", "b"])), "feature 1: its coordinates are no numbers"),
        (collection(({}, "Point", [0, 0]), ({}, "Point", [1, 95])), "feature 2: a point lies off the earth"),
        (collection(({}, "Point", {"x": 1})), "feature 1: its coordinates are none"),
        (collection(({}, "Polygon", [[[[[[[0, 0]]]]]]])), "feature 1: its coordinates are none"),
    ],
)
def test_geojson_that_is_none(document: dict[str, Any], line: str) -> None:
    assert line in told(read_geojson, document)


def test_a_damaged_geojson_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.geojson").write_text('{"type": "FeatureCollection", "features": [')
    assert "it cannot be read" in told(read_geojson, tmp_path / "a.geojson")
    (tmp_path / "deep.geojson").write_text("[" * 100_000)
    assert "it cannot be read" in told(read_geojson, tmp_path / "deep.geojson")


# Infrastructure


def test_the_shipped_infrastructure_has_the_published_features() -> None:
    found = read_infrastructure(EXAMPLES / "chinatown-infrastructure.geojson")
    counted = {row["type"]: row["count"] for row in found["type"].value_counts().iter_rows(named=True)}
    assert counted == {
        "clinic": 18, "school": 16, "courthouse": 11, "substation": 5, "fire_station": 5, "police": 5, "university": 4,
        "solar_generator": 3, "hospital": 2, "cable": 1,
    }  # fmt: skip
    assert found.filter(pl.col("name") == "Criminal Courts Building").rows(named=True)[0]["lat"] == pytest.approx(
        40.7159, abs=1e-3
    )
    document = json.loads((EXAMPLES / "chinatown-infrastructure.geojson").read_text())
    assert "openstreetmap.org" in document["copyright"] and "ODbL" in document["copyright"]
    assert read_infrastructure(document).equals(found)


def test_a_features_type_is_the_first_of_three_keys() -> None:
    found = read_infrastructure(
        collection(
            ({"@id": "node/1", "amenity": "clinic", "power": "substation"}, "Point", [1, 2]),
            ({"man_made": "water_works", "name": "Works"}, "Point", [3, 4]),
            ({"power": "generator", "generator:source": "solar"}, "Point", [5, 6]),
            ({"power": "generator", "generator:method": "photovoltaic"}, "Point", [5, 6]),
            ({"power": "generator", "generator:source": "gas"}, "Point", [5, 6]),
            ({"shop": "bakery"}, "Point", [7, 8]),
        )
    )
    assert found["type"].to_list() == ["substation", "water_works", "solar_generator", "solar_generator", "generator"]
    assert found.select("id", "name", "lat", "long").rows()[:2] == [
        ("node/1", "", 2.0, 1.0),
        ("feature 2", "Works", 4.0, 3.0),
    ]


def test_a_table_of_features() -> None:
    table = {"type": ["school", None], "lat": [1, 2], "long": [3, 4], "population": [10, None]}
    found = read_infrastructure(pl.DataFrame(table))
    assert found["id"].to_list() == ["row 1", "row 2"]
    assert found["type"].to_list() == ["school", ""]
    assert found["population"].to_list() == [10, None]


@pytest.mark.parametrize(
    "columns, line",
    [
        ({"type": ["a"], "lat": [1]}, "there is no column 'long'; give the columns type, lat, long"),
        ({"type": ["a"], "lat": [float("nan")], "long": [3]}, "column lat, row 1"),
        ({"type": ["a", "b"], "lat": [1, 2], "long": [3, 200]}, "column long, row 2: '200' is no place"),
        ({"type": ["a"], "lat": [1], "long": [3], "population": [1e13]}, "is no number of people; give a number"),
    ],
)
def test_tables_of_features_that_are_none(columns: dict[str, Any], line: str) -> None:
    assert line in told(read_infrastructure, pl.DataFrame(columns))


def test_no_feature_of_a_known_kind_is_told() -> None:
    line = told(read_infrastructure, collection(({"shop": "bakery"}, "Point", [7, 8])))
    assert "none of 1 features has one of power, amenity, man_made" in line


# Streets

GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d4" for="node" attr.name="y" attr.type="string"/>
  <key id="d5" for="node" attr.name="x" attr.type="string"/>
  <key id="d6" for="edge" attr.name="length" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="42"><data key="d4">40.71</data><data key="d5">-74.0</data></node>
    <node id="43"><data key="d4">40.72</data><data key="d5">-74.01</data></node>
    <edge source="42" target="43" id="0"><data key="d6">12.3</data></edge>
    <edge source="43" target="42" id="0"/>
  </graph>
</graphml>
"""


def test_graphml_as_osmnx_saves_it(tmp_path: Path) -> None:
    (tmp_path / "s.graphml").write_text(GRAPHML)
    found = read_streets(tmp_path / "s.graphml")
    assert found.names == ("42", "43")
    assert found.latitude.tolist() == [40.71, 40.72]
    assert found.longitude.tolist() == [-74.0, -74.01]
    assert found.edges.tolist() == [[0, 1], [1, 0]]


def test_tables_of_edges() -> None:
    nodes = pl.DataFrame({"node": [1, 2, 3], "lat": [0.0, 0, 1], "long": [0.0, 1, 1]})
    with_nodes = read_streets(pl.DataFrame({"u": [1, 2], "v": [2, 3]}), nodes=nodes)
    assert with_nodes.edges.tolist() == [[0, 1], [1, 2]]
    alone = read_streets(
        pl.DataFrame(
            {
                "from": ["a", "b"], "to": ["b", "c"], "from_lat": [0.0, 0], "from_long": [0.0, 1], "to_lat": [0.0, 1],
                "to_long": [1.0, 1],
            }
        )
    )  # fmt: skip
    assert alone.names == ("a", "b", "c")
    np.testing.assert_array_equal(alone.latitude, with_nodes.latitude)
    np.testing.assert_array_equal(alone.longitude, with_nodes.longitude)


@pytest.mark.parametrize(
    "content, line",
    [
        ("<html></html>", "there is no street"),
        ("<graphml>", "this is no GraphML"),
        (GRAPHML.replace('target="43"', 'target="44"'), "an edge leads to node '44', which is not there"),
        (GRAPHML.replace("40.72", "north"), "node '43' has no place"),
        (GRAPHML.replace("-74.01", "-740"), "node '43' has no place"),
        ("a,b\n1,2\n", "there are no columns 'from' and 'to'"),
        ("from,to\n1,2\n", "the edges say nothing of places"),
    ],
)
def test_streets_that_are_none(tmp_path: Path, content: str, line: str) -> None:
    (tmp_path / "s").write_text(content)
    assert line in told(read_streets, tmp_path / "s")


def test_an_edge_to_a_node_without_a_row_is_told() -> None:
    nodes = pl.DataFrame({"node": [1], "lat": [0.0], "long": [0.0]})
    assert "row 1: there is no node '2'" in told(read_streets, pl.DataFrame({"from": [1], "to": [2]}), nodes=nodes)
    line = told(read_streets, pl.DataFrame({"from": [1], "to": [2]}), nodes=pl.DataFrame({"node": [1]}))
    assert "there are no columns node, lat, long" in line


def test_a_document_type_that_could_expand_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.graphml").write_text('<!DOCTYPE x [<!ENTITY a "b">]>\n' + GRAPHML.partition("\n")[2])
    with pytest.raises(Refused, match="its document type could expand without end"):
        read_streets(tmp_path / "s.graphml")


# Census blocks


def test_blocks_as_polygons() -> None:
    """Two squares of 0.01 degrees side by side; 0.005 degrees of latitude are 556 m."""
    blocks = read_blocks(
        collection(
            ({"GEOID20": "1", "POP20": 100}, "Polygon", [square(0, 0, 0.01)]),
            ({"GEOID20": "2", "POP20": 40}, "Polygon", [square(0.01, 0, 0.01)]),
        )
    )
    assert blocks.names == ("1", "2")
    assert population_at(blocks, 0.005, 0.005) == 100
    assert population_at(blocks, 0.005, 0.015) == 40
    assert population_at(blocks, 0.02, 0.005) is None
    assert population_at(blocks, 0.005, 0.004, radius=600) == 100
    assert population_at(blocks, 0.005, 0.004, radius=700) == 140
    assert population_at(blocks, 0.02, 0.005, radius=1000) is None
    assert population_at(blocks, 0.02, 0.005, radius=1200) == 100


def test_blocks_as_points() -> None:
    table = {"GEOID20": ["a", "b"], "POP20": [5, 7], "INTPTLAT20": ["+0.0", "+0.1"], "INTPTLON20": ["0.0", "0.0"]}
    blocks = read_blocks(pl.DataFrame(table))
    assert population_at(blocks, 0.02, 0) == 5
    assert population_at(blocks, 0.09, 0.3) == 7
    assert population_at(blocks, 0.05, 0, radius=6000) == 12
    assert population_at(blocks, 0.05, 0, radius=100) is None


@pytest.mark.parametrize(
    "subject, line",
    [
        ({"type": "FeatureCollection", "features": []}, "there is no block"),
        (collection(({"GEOID20": "7"}, "Point", [0, 0])), "block 1: 'None' is no number"),
        (collection(({"GEOID20": "7", "POP20": -3}, "Point", [0, 0])), "block 7: -3 people live there"),
        ({"POP20": [1]}, "there is no column 'INTPTLAT20'"),
        ({"POP20": [1, -1], "lat": [0, 0], "long": [0, 0]}, "block 2: -1 people live there"),
        ({"POP20": ["many"], "lat": [0], "long": [0]}, "block 1: 'many' is no number"),
    ],
)
def test_blocks_that_are_none(subject: dict[str, Any], line: str) -> None:
    assert line in told(read_blocks, subject)


# All of them


@pytest.mark.parametrize("reader", [read_movebank, read_geojson, read_infrastructure, read_streets, read_blocks])
def test_pickles_other_kinds_and_missing_files_are_refused(reader: Any, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.")
    with pytest.raises(Refused):
        reader(tmp_path / "a.pkl")
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY" + bytes(200))
    with pytest.raises(CannotRead):
        reader(tmp_path / "a.npy")
    with pytest.raises(CannotRead):
        reader(tmp_path / "nowhere.csv")
    with pytest.raises(BadInput):
        reader(object())
