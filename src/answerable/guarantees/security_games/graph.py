"""Where patrols walk: a graph in rows of neighbours, walk counts by adjacency powers, and walks one by one.

A walk has ``steps`` nodes, counting the one at time 0, and so ``steps - 1`` moves. Waiting is a self-loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel
from answerable.errors import BadInput

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FAR = np.iinfo(np.int64).max // 4  # more moves than any walk has


class PatrolGraph(NamedTuple):
    """An undirected graph with places.

    Parameters
    ----------
    first : (n_nodes + 1,) where each node's neighbours begin
    neighbours : (n_arcs,) rising within a node
    latitude, longitude : (n_nodes,) degrees
    labels : how each node is called
    cell : (height, width) of a grid cell in degrees; zeros for a street network
    """

    first: Ints
    neighbours: Ints
    latitude: Floats
    longitude: Floats
    labels: tuple[str, ...]
    cell: tuple[float, float] = (0.0, 0.0)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.first) - 1


def graph_of_edges(
    edges: npt.ArrayLike,
    latitude: npt.ArrayLike,
    longitude: npt.ArrayLike,
    labels: Sequence[str],
    *,
    wait: bool = True,
    cell: tuple[float, float] = (0.0, 0.0),
) -> PatrolGraph:
    """The graph with these undirected edges.

    Parameters
    ----------
    edges : (n_edges, 2) node numbers; doubles and loops are dropped
    latitude, longitude : (n_nodes,) degrees
    labels : (n_nodes,)
    wait : add a self-loop to each node
    cell : height and width of a grid cell in degrees

    Raises
    ------
    BadInput : an edge to a node that is not there
    """
    latitude, longitude = np.asarray(latitude, float), np.asarray(longitude, float)
    n = len(latitude)
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        raise BadInput(f"an edge leads to node {pairs.max()} of {n}", where="edges", mend="number nodes from 0")
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    loops = np.repeat(np.arange(n)[:, None], 2, axis=1) if wait else np.empty((0, 2), np.int64)
    arcs = np.unique(np.concatenate([pairs, pairs[:, ::-1], loops]), axis=0)
    first = np.searchsorted(arcs[:, 0], np.arange(n + 1))
    return PatrolGraph(first, np.ascontiguousarray(arcs[:, 1]), latitude, longitude, tuple(labels), cell)


def lattice(
    n_rows: int, n_columns: int, *, box: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0), wait: bool = True
) -> PatrolGraph:
    """Cells of a box, each joined to the up to four beside it; node ``row * n_columns + column``, row 0 in the south.

    Parameters
    ----------
    n_rows, n_columns : at least 1
    box : south, north, west, east in degrees
    wait : whether a patrol may stay where it is
    """
    south, north, west, east = box
    height, width = (north - south) / n_rows, (east - west) / n_columns
    numbers = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    edges = np.concatenate(
        [
            np.column_stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()]),
            np.column_stack([numbers[:-1].ravel(), numbers[1:].ravel()]),
        ]
    )
    rows, columns = np.divmod(numbers.ravel(), n_columns)
    labels = [f"row {row + 1}, column {column + 1}" for row, column in zip(rows, columns, strict=True)]
    latitude, longitude = south + (rows + 0.5) * height, west + (columns + 0.5) * width
    return graph_of_edges(edges, latitude, longitude, labels, wait=wait, cell=(height, width))


def distances(graph: PatrolGraph, sources: npt.ArrayLike) -> Ints:
    """Fewest moves from the nearest source to each node; ``FAR`` where there is no way.

    Parameters
    ----------
    sources : node numbers, at least one

    Returns
    -------
    (n_nodes,) int64
    """
    return _distances(graph.first, graph.neighbours, np.asarray(sources, np.int64))


@kernel
def _distances(first, neighbours, sources):  # type: ignore[no-untyped-def]
    n = len(first) - 1
    found = np.full(n, FAR)
    queue = np.empty(n, np.int64)
    n_queued = 0
    for source in sources:
        if found[source] > 0:
            found[source] = 0
            queue[n_queued] = source
            n_queued += 1
    done = 0
    while done < n_queued:
        node = queue[done]
        done += 1
        for arc in range(first[node], first[node + 1]):
            other = neighbours[arc]
            if found[other] == FAR:
                found[other] = found[node] + 1
                queue[n_queued] = other
                n_queued += 1
    return found


def shortest_path(graph: PatrolGraph, start: int, end: int) -> list[int]:
    """Nodes of one shortest way from ``start`` to ``end``, both included."""
    to_end = distances(graph, [end])
    path = [start]
    while path[-1] != end:
        beside = _of(graph, path[-1])
        path.append(int(beside[to_end[beside].argmin()]))
    return path


def count_walks(graph: PatrolGraph, homes: npt.ArrayLike, steps: int, *, same_end: bool = False) -> int:
    """How many walks start and end in ``homes``: powers of the adjacency matrix, in whole numbers of any size.

    Parameters
    ----------
    homes : node numbers
    steps : nodes of a walk, at least 1
    same_end : only walks that end where they began
    """
    places = np.unique(np.asarray(homes, np.int64)).tolist()
    groups = [[place] for place in places] if same_end else [places]
    degree = np.diff(graph.first)
    if degree.all() and len(places) * float(degree.max()) ** (steps - 1) < 2**62:
        return sum(_few_walks(graph, group, steps) for group in groups)
    neighbours = [_of(graph, node).tolist() for node in range(graph.n_nodes)]
    total = 0
    for group in groups:
        walks = [0] * graph.n_nodes
        for place in group:
            walks[place] = 1
        for _ in range(steps - 1):
            # the graph is undirected: a node gathers from its neighbours
            walks = [sum([walks[other] for other in beside]) for beside in neighbours]
        total += sum(walks[place] for place in group)
    return total


def _few_walks(graph: PatrolGraph, homes: list[int], steps: int) -> int:
    """The same count where it fits into 64 bits."""
    walks = np.zeros(graph.n_nodes, np.int64)
    walks[homes] = 1
    for _ in range(steps - 1):
        walks = np.add.reduceat(walks[graph.neighbours], graph.first[:-1])
    return int(walks[homes].sum())


def list_walks(graph: PatrolGraph, homes: npt.ArrayLike, steps: int, *, same_end: bool = False) -> Ints:
    """Every walk that starts and ends in ``homes``.

    Returns
    -------
    (n_walks, steps) int64 node numbers, in lexicographic order
    """
    places = np.unique(np.asarray(homes, np.int64))
    walks = places[:, None]
    to_home = distances(graph, places)[:, None]
    if same_end:
        to_home = np.column_stack([distances(graph, [place]) for place in places])
    start = np.arange(len(places)) if same_end else np.zeros(len(places), np.int64)
    for step in range(1, steps):
        last = walks[:, -1]
        degree = graph.first[last + 1] - graph.first[last]
        parent = np.repeat(np.arange(len(walks)), degree)
        node = graph.neighbours[_ranges(graph.first[last], degree)]
        open_still = to_home[node, start[parent]] <= steps - 1 - step
        parent, node = parent[open_still], node[open_still]
        walks, start = np.column_stack([walks[parent], node]), start[parent]
    return walks[to_home[walks[:, -1], start] == 0]


def _of(graph: PatrolGraph, node: int) -> Ints:
    return graph.neighbours[graph.first[node] : graph.first[node + 1]]


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """``starts[0], starts[0] + 1, ...`` for ``lengths[0]`` numbers, then the same for the next."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
