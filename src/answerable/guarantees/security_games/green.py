"""From tracked animals to a game: a grid over a box, cells worth what was seen there, patrols between them.

The value of a cell is a share of the box's animals: with ``density`` its observations times animals per observation,
with ``centroid`` the same for the cells that hold the centres of k-means clusters, each counted with its cluster's
size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .game import SecurityGame, normalised
from .graph import Floats, Ints, lattice

if TYPE_CHECKING:
    import polars as pl

Values = Literal["centroid", "density"]
Payoffs = Literal["zero-sum", "general-sum"]
Box = tuple[float, float, float, float]

IVORY, ELEPHANT = 2350.0, 22966.0  # US$: what an animal brings a poacher, and what its loss costs (published settings)
COST_PER_KM = 1.17  # US$ of a ranger's kilometre
KM_PER_DEGREE = 111.195
MOST_CELLS = 3600
# where south, north, west and east stand in boxes that are written otherwise
ORDERS = {
    "north, south, east, west": (1, 0, 3, 2),
    "north, south, west, east": (1, 0, 2, 3),
    "west, south, east, north": (1, 3, 0, 2),
    "south, west, north, east": (0, 2, 1, 3),
}


def grid_game(
    tracks: pl.DataFrame,
    *,
    box: Box,
    shape: tuple[int, int] = (7, 7),
    targets: Values = "centroid",
    n_clusters: int = 10,
    random_state: int = 42,
    homes: Sequence[tuple[float, float]],
    own_homes: bool = False,
    defenders: int = 1,
    attackers: int = 1,
    steps: int = 8,
    dwell: int = 1,
    return_home: bool = False,
    wait: bool = True,
    payoffs: Payoffs = "zero-sum",
    attacker_value: float = IVORY,
    defender_value: float = ELEPHANT,
    cost_per_km: float = COST_PER_KM,
    nearness: float = 1.0,
    escape: Sequence[tuple[float, float]] = (),
    penalty: float | None = None,
) -> SecurityGame:
    """An anti-poaching game.

    Parameters
    ----------
    tracks : animal_id, lat, long in degrees
    box : south, north, west, east in degrees
    shape : rows and columns of cells
    targets : ``density``: every cell with observations; ``centroid``: cells with the centre of a cluster
    n_clusters, random_state : of k-means, one start with k-means++
    homes : latitude and longitude of the bases, each moved to the nearest cell's centre
    own_homes : each patrol has the base of the same number; else all may use all
    defenders, attackers : patrols, and attacks at once
    steps, dwell : time steps of a patrol, and of a stay that covers
    return_home : a patrol ends where it began
    wait : a patrol may stay in a cell
    payoffs : ``zero-sum``: losses divided by the largest one that can happen. ``general-sum``: US$
    attacker_value, defender_value : US$ of an animal
    cost_per_km : US$
    nearness : how much more a cell is worth to the attacker the nearer it is to ``escape``: by 1 + nearness at the
        nearest
    escape : two places, the ends of a river or border; none: nearness does not count
    penalty : losses and gains at a covered target are divided by it; None: nothing is lost or gained there

    Returns
    -------
    SecurityGame

    Raises
    ------
    BadInput : no observation in the box, more clusters than places, a base count that is not the patrols', ...
    """
    lat, long = tracks["lat"].to_numpy(), tracks["long"].to_numpy()
    box = checked_box(box, lat, long)
    n_rows, n_columns = shape
    if not (n_rows >= 1 and n_columns >= 1 and n_rows * n_columns <= MOST_CELLS):
        raise BadInput(f"a grid of {n_rows} x {n_columns}", where="rows", mend=f"give at most {MOST_CELLS} cells")
    inside = _inside(box, lat, long)
    if not inside.any():
        raise _nothing_in(box, lat, long)
    lat, long = lat[inside], long[inside]
    animals = tracks["animal_id"].to_numpy()[inside]
    share = len(set(animals.tolist())) / len(lat)
    graph = lattice(n_rows, n_columns, box=box, wait=wait)
    if targets == "density":
        centres, sizes = np.column_stack([lat, long]), np.ones(len(lat))
    else:
        centres, sizes = clusters(lat, long, n_clusters, random_state)
    cells = cells_of(centres[:, 0], centres[:, 1], box, shape)
    values = np.bincount(cells, weights=sizes * share, minlength=graph.n_nodes)
    chosen = np.flatnonzero(values > 0)
    score: Floats = values[chosen].astype(np.float64)
    at = np.array([_nearest_cell(graph.latitude, graph.longitude, home) for home in homes], np.int64)
    notes = _homes_outside(homes, box, graph.cell)
    bases = bases_of(at, defenders, own_homes)
    common: dict[str, Any] = {
        "steps": steps,
        "dwell": dwell,
        "same_end": return_home,
        "attackers": attackers,
        "notes": notes,
    }
    residual = 0.0 if penalty is None else 1.0 / penalty
    if payoffs == "zero-sum":
        return normalised(SecurityGame(graph, chosen, score, score, bases, residual=residual, **common))
    near = np.ones(len(chosen))
    if len(escape):
        near += nearness * closeness(graph.latitude[chosen], graph.longitude[chosen], escape)
    side = (graph.cell[0] + graph.cell[1] * math.cos(math.radians((box[0] + box[1]) / 2))) / 2 * KM_PER_DEGREE
    return SecurityGame(
        graph, chosen, score * defender_value, score * attacker_value * near, bases, step_cost=cost_per_km * side,
        residual=residual, zero_sum=False, **common,
    )  # fmt: skip


def checked_box(box: Sequence[float], lat: Floats, long: Floats) -> Box:
    """South, north, west and east, in that order.

    Parameters
    ----------
    box : four numbers
    lat, long : places that it is meant for, to tell which order was meant

    Raises
    ------
    BadInput : they are none, or make more sense in another order; the line says in which
    """
    if len(box) != 4 or not np.isfinite(np.asarray(box, float)).all():
        raise BadInput(f"{len(box)} numbers", where="box", mend="give south, north, west, east in degrees")
    given = (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
    turned = {order: (given[a], given[b], given[c], given[d]) for order, (a, b, c, d) in ORDERS.items()}
    boxes = {order: box for order, box in turned.items() if _is_box(box)}
    likely = max(boxes, default="", key=lambda order: _inside(boxes[order], lat, long).mean() / _area(boxes[order]))
    if _is_box(given):
        # two orders may both make a box; a far smaller one that holds most of the places is what was meant
        own = _inside(given, lat, long).sum()
        held = _inside(boxes[likely], lat, long).sum() if likely else 0
        if not own or held < own / 2 or _area(boxes[likely]) > _area(given) / 10:
            return given
    hint = f"; this looks like {likely}" if likely else ""
    told = ", ".join(f"{side:g}" for side in given)
    raise BadInput(f"{told} is no box", where="box", mend=f"give south, north, west, east in degrees{hint}")


def _is_box(box: Box) -> bool:
    south, north, west, east = box
    return -90 <= south < north <= 90 and -180 <= west < east <= 180


def _area(box: Box) -> float:
    return (box[1] - box[0]) * (box[3] - box[2])


def _inside(box: Box, lat: Floats, long: Floats) -> npt.NDArray[np.bool_]:
    south, north, west, east = box
    within: npt.NDArray[np.bool_] = (lat >= south) & (lat <= north) & (long >= west) & (long <= east)
    return within


def cells_of(lat: Floats, long: Floats, box: Box, shape: tuple[int, int]) -> Ints:
    """The cell of each place; one on the upper edge belongs to the last."""
    south, north, west, east = box
    row = np.floor((lat - south) / ((north - south) / shape[0])).astype(np.int64)
    column = np.floor((long - west) / ((east - west) / shape[1])).astype(np.int64)
    return np.clip(row, 0, shape[0] - 1) * shape[1] + np.clip(column, 0, shape[1] - 1)


def clusters(lat: Floats, long: Floats, n_clusters: int, random_state: int) -> tuple[Floats, Floats]:
    """Centres (latitude, longitude) and sizes of k-means clusters."""
    from sklearn.cluster import KMeans

    places = np.column_stack([lat, long])
    n_places = len(np.unique(places, axis=0))
    if n_clusters > n_places:
        raise BadInput(
            f"{n_clusters} clusters of {n_places} different places",
            where="clusters",
            mend=f"give at most {n_places}, or take values by density",
        )
    fitted = KMeans(n_clusters, random_state=random_state, n_init=1).fit(places)
    return fitted.cluster_centers_, np.bincount(fitted.labels_, minlength=n_clusters).astype(np.float64)


def closeness(lat: Floats, long: Floats, escape: Sequence[tuple[float, float]]) -> Floats:
    """1 at the place nearest to a point or line segment, 0 at the farthest; 0 everywhere where all are as near.

    Parameters
    ----------
    escape : one place, or two that are the ends of a segment; distances are in degrees, as published
    """
    if not 1 <= len(escape) <= 2:
        raise BadInput(f"{len(escape)} places", where="escape", mend="give one place, or the two ends of a line")
    start, end = np.asarray(escape[0], float), np.asarray(escape[-1], float)
    places = np.column_stack([lat, long])
    along = end - start
    squared = float(along @ along)
    share = np.clip((places - start) @ along / squared, 0, 1) if squared else np.zeros(len(places))
    distance = np.linalg.norm(places - start - share[:, None] * along, axis=1)
    spread = float(np.ptp(distance))
    return (distance.max() - distance) / spread if spread else np.zeros(len(places))


def bases_of(homes: Ints, defenders: int, own: bool) -> tuple[Ints, ...]:
    """Where each patrol may start and end.

    Raises
    ------
    BadInput : no base, or with bases of their own another number of them than of patrols
    """
    if not len(homes):
        raise BadInput("there is no base", where="homes", mend="give latitude and longitude of at least one")
    if not own:
        return (np.unique(homes),) * defenders
    if len(homes) != defenders:
        raise BadInput(
            f"{len(homes)} bases for {defenders} patrols", where="homes", mend="give each patrol one, in their order"
        )
    return tuple(homes[[k]] for k in range(defenders))


def _nearest_cell(lat: Floats, long: Floats, home: tuple[float, float]) -> int:
    return int(np.hypot(lat - home[0], long - home[1]).argmin())


def _homes_outside(homes: Sequence[tuple[float, float]], box: Box, cell: tuple[float, float]) -> tuple[str, ...]:
    south, north, west, east = box
    notes = []
    for number, (lat, long) in enumerate(homes, 1):
        off_lat, off_long = max(south - lat, lat - north, 0.0), max(west - long, long - east, 0.0)
        if off_lat > cell[0] or off_long > cell[1]:
            away = KM_PER_DEGREE * math.hypot(off_lat, off_long * math.cos(math.radians(lat)))
            notes.append(f"Base {number} lies {away:.3g} km outside the box and was moved to the nearest cell.")
    return tuple(notes)


def _nothing_in(box: Box, lat: Floats, long: Floats) -> BadInput:
    south, north, west, east = box
    swapped = ((long >= south) & (long <= north) & (lat >= west) & (lat <= east)).any()
    mend = "latitude and longitude seem to be swapped" if swapped else "choose a box that meets them"
    extent = f"{lat.min():.4g} to {lat.max():.4g} N, {long.min():.4g} to {long.max():.4g} E"
    where = f"box {south:g} to {north:g} N, {west:g} to {east:g} E"
    return BadInput(f"no observation lies in it; the data span {extent}", where=where, mend=mend)
