"""From infrastructure and streets to a game: crossings worth what stands at them, patrols along the streets.

A feature's score is its type's weight times ``(1 + ln(population + 1)) ** power``. It moves to the nearest crossing;
where several meet, the crossing is worth the largest plus the mean of all, as published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from answerable.errors import BadInput

from .game import SecurityGame, normalised
from .graph import FAR, Floats, distances, graph_of_edges
from .green import Payoffs, bases_of, closeness

if TYPE_CHECKING:
    import polars as pl

Merge = Literal["max+mean", "max", "sum"]

WEIGHTS: Mapping[str, float] = {
    "plant": 1.5, "hospital": 1.5, "substation": 1.45, "water_works": 1.45, "university": 1.4, "police": 1.4,
    "wastewater_plant": 1.4, "generator": 1.35, "clinic": 1.35, "fire_station": 1.3, "transformer": 1.25,
    "school": 1.25, "communications_tower": 1.25, "switchgear": 1.2, "courthouse": 1.2, "tower": 1.1,
    "converter": 1.05, "line": 1.0, "compensator": 1.0, "bunker_silo": 1.0, "solar_generator": 0.95, "cable": 0.95,
    "rectifier": 0.95, "inverter": 0.95, "minor_line": 0.9, "storage": 0.9, "pole": 0.85, "bay": 0.85, "busbar": 0.8,
    "insulator": 0.75, "portal": 0.75, "connection": 0.7,
}  # fmt: skip
UNKNOWN = 1.0  # weight of any other type
METRES_PER_DEGREE = 111_195.0


class Network(NamedTuple):
    """An undirected street network: names, latitude, longitude of crossings, and pairs of them."""

    names: Sequence[str]
    latitude: Floats
    longitude: Floats
    edges: Any


def street_game(
    network: Network,
    features: pl.DataFrame,
    *,
    homes: Sequence[tuple[float, float]],
    own_homes: bool = False,
    defenders: int = 1,
    attackers: int = 1,
    steps: int = 8,
    dwell: int = 1,
    return_home: bool = False,
    wait: bool = True,
    weights: Mapping[str, float] = WEIGHTS,
    power: float = 1.0,
    merge: Merge = "max+mean",
    payoffs: Payoffs = "zero-sum",
    attacker_value: float = 1.0,
    defender_value: float = 1.0,
    step_cost: float = 0.0,
    nearness: float = 1.0,
    escape: Sequence[tuple[float, float]] = (),
    penalty: float | None = None,
) -> SecurityGame:
    """A game over critical infrastructure.

    Parameters
    ----------
    network : crossings and streets
    features : id, type, name, lat, long, population (people; missing only if no feature has any)
    homes : latitude and longitude of the stations, each moved to the nearest crossing
    own_homes : each patrol has the station of the same number; else all may use all
    defenders, attackers : patrols, and attacks at once
    steps, dwell : time steps of a patrol (one street each), and of a stay that covers
    return_home, wait : a patrol ends where it began; may stay where it is
    weights : by type; 1 for every other
    power : exponent of the population's factor
    merge : what a crossing with several features is worth
    payoffs : ``zero-sum``: losses divided by the largest one that can happen, or ``general-sum``
    attacker_value, defender_value : of one unit of score
    step_cost : of one move, in the unit of losses
    nearness : how much more a crossing is worth to the attacker the nearer it is to ``escape``
    escape : one place, or the two ends of a line
    penalty : losses and gains at a covered target are divided by it; None: nothing is lost or gained there

    Returns
    -------
    SecurityGame; ``lost`` names targets off the streets that lead home, ``notes`` says what else was done

    Raises
    ------
    BadInput : no feature, a population missing for some of them (named), every target off the streets, ...
    """
    if not features.height:
        raise BadInput("there is no feature", where="infrastructure", mend="export others")
    score, notes = scores(features, weights, power)
    at = nearest(network, features["lat"].to_numpy(), features["long"].to_numpy())
    bases = nearest(network, *(np.array([home[k] for home in homes], float) for k in range(2)))
    whole = graph_of_edges(network.edges, network.latitude, network.longitude, network.names, wait=wait)
    reached = distances(whole, bases) < FAR if len(bases) else np.zeros(whole.n_nodes, bool)
    kept = np.flatnonzero(reached)
    if not reached[at].any():
        raise BadInput(
            "no target stands on the streets that lead home", where="streets", mend="give a connected network"
        )
    lost = tuple(f"{row['name'] or row['id']}" for row in features.filter(~reached[at]).iter_rows(named=True))
    number = np.full(whole.n_nodes, -1)
    number[kept] = np.arange(len(kept))
    edges = number[np.asarray(network.edges, np.int64)]
    here = reached[at]
    targets, values = merged(number[at[here]], score[here], merge)
    labels = _labels(features.filter(here), number[at[here]], network, kept)
    graph = graph_of_edges(
        edges[(edges >= 0).all(axis=1)], network.latitude[kept], network.longitude[kept], labels, wait=wait
    )
    common: dict[str, Any] = {
        "steps": steps, "dwell": dwell, "same_end": return_home, "attackers": attackers, "lost": lost, "notes": notes,
        "residual": 0.0 if penalty is None else 1.0 / penalty,
    }  # fmt: skip
    team = bases_of(number[bases], defenders, own_homes)
    if payoffs == "zero-sum":
        return normalised(SecurityGame(graph, targets, values, values, team, **common))
    near = np.ones(len(targets))
    if len(escape):
        near += nearness * closeness(graph.latitude[targets], graph.longitude[targets], escape)
    return SecurityGame(
        graph, targets, values * defender_value, values * attacker_value * near, team, step_cost=step_cost,
        zero_sum=False, **common,
    )  # fmt: skip


def scores(features: pl.DataFrame, weights: Mapping[str, float], power: float) -> tuple[Floats, tuple[str, ...]]:
    """Each feature's score, and notes of what was not known.

    Raises
    ------
    BadInput : some features have a population and others none; names these
    """
    kinds = features["type"].to_list()
    unknown = sorted({kind for kind in kinds if kind not in weights})
    notes = [f"Unknown types count with weight {UNKNOWN:g}: {', '.join(unknown[:6])}."] if unknown else []
    weight = np.array([weights.get(kind, UNKNOWN) for kind in kinds])
    missing = features["population"].is_null()
    if missing.all():
        return weight, (*notes, "Without census blocks every feature counts as if nobody lived there.")
    if missing.any():
        ids = features.filter(missing)["id"].to_list()
        raise BadInput(
            f"no census block holds {len(ids)} features: {', '.join(ids[:5])}",
            where="blocks",
            mend="give blocks that cover them, or a population radius",
        )
    people = features["population"].to_numpy()
    if (people < 0).any():
        raise BadInput("a population is below 0", where="infrastructure, population", mend="give a number of people")
    return weight * (1 + np.log(people + 1)) ** power, tuple(notes)


def nearest(network: Network, lat: Floats, long: Floats) -> np.ndarray:
    """The crossing nearest to each place."""
    shrink = np.cos(np.radians(network.latitude.mean()))
    apart = [np.hypot(network.latitude - a, (network.longitude - b) * shrink) for a, b in zip(lat, long, strict=True)]
    return np.array([int(found.argmin()) for found in apart], np.int64)


def merged(at: np.ndarray, score: Floats, merge: Merge) -> tuple[np.ndarray, Floats]:
    """Targets and their values, features at one crossing taken together."""
    targets = np.unique(at)
    return targets, np.array([_together(score[at == target], merge) for target in targets])


def _together(score: Floats, merge: Merge) -> float:
    if merge == "sum":
        return float(score.sum())
    more = float(score.mean()) if merge == "max+mean" and len(score) > 1 else 0.0
    return float(score.max()) + more


def _labels(features: pl.DataFrame, at: np.ndarray, network: Network, kept: np.ndarray) -> list[str]:
    """Crossings are called by what stands at them."""
    labels = [f"crossing {network.names[node]}" for node in kept]
    for node in np.unique(at):
        rows = features.filter(at == node)
        first = rows["name"][0] or f"{rows['type'][0]} {rows['id'][0]}"
        labels[node] = first if rows.height == 1 else f"{first} and {rows.height - 1} more"
    twice = {label for label in labels if labels.count(label) > 1}
    return [f"{label} ({network.names[kept[k]]})" if label in twice else label for k, label in enumerate(labels)]
