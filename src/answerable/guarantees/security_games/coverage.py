"""What patrols can cover, without listing them: a dynamic programme over (node, visits of each target).

All payoffs depend on a patrol only through which targets it stays at long enough, and how often it moves. So the walks
of a step are kept as their distinct states with how many walks lead there, the fewest moves and one way back. A
target's visits stand in ``dwell`` bits, filled from the lowest, so that one state is at least another wherever its
bits contain the other's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel
from answerable.errors import BadInput

from .graph import Ints, PatrolGraph, _ranges, count_walks, distances

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

MOST_STATES = 4_000_000  # of one step, and of all patrols together; some hundred bytes each
WORD = 64


class TooManyStates(BadInput):
    """More distinct coverages than are listed; a method that does not list them may do."""


class Coverage(NamedTuple):
    """The distinct coverages of one patrol.

    Parameters
    ----------
    visits : (n, n_targets) uint8, time steps at each target, capped at ``dwell``
    moves : (n,) fewest moves with these visits
    walks : (n,) how many walks have these visits; whole numbers as float64 beyond 2^63
    witness : (n, steps) node numbers of one such walk with the fewest moves
    """

    visits: npt.NDArray[np.uint8]
    moves: Ints
    walks: npt.NDArray
    witness: Ints


class JointCoverage(NamedTuple):
    """The distinct coverages of several patrols together.

    Parameters
    ----------
    covered : (n, n_targets) bool, whether a target is stayed at long enough
    moves : (n,) fewest moves of all patrols together
    parts : (n, n_patrols) which coverage of each patrol
    """

    covered: Bools
    moves: Ints
    parts: Ints


def patrol_coverages(
    graph: PatrolGraph,
    targets: npt.ArrayLike,
    homes: npt.ArrayLike,
    steps: int,
    *,
    dwell: int = 1,
    same_end: bool = False,
    undominated: bool = False,
    most_states: int = MOST_STATES,
) -> Coverage:
    """Every distinct coverage of a walk that starts and ends in ``homes``.

    Parameters
    ----------
    graph : where it walks; waiting is a self-loop
    targets : (n_targets,) distinct node numbers
    homes : node numbers, at least one
    steps : nodes of a walk
    dwell : time steps after which a target counts as covered; they need not follow one another
    same_end : the walk ends where it began
    undominated : drop, at every step, a state whose visits another at the same node contains; then ``walks`` says
        nothing, and ``moves`` is that of the witness
    most_states : of one step

    Returns
    -------
    Coverage, in an order that depends on its content alone

    Raises
    ------
    BadInput : no walk returns home in so few steps; names the fewest
    TooManyStates : more than ``most_states``
    """
    targets = np.asarray(targets, np.int64)
    places = np.unique(np.asarray(homes, np.int64))
    field = _Fields.of(graph.n_nodes, targets, dwell)
    whole = count_walks(graph, places, steps, same_end=same_end)
    if whole == 0:
        raise BadInput(
            f"no walk of {steps} time steps returns home",
            where="steps",
            mend=f"give at least {fewest_steps(graph, places, steps, same_end=same_end)}, or let patrols wait",
        )
    count = np.int64 if whole < 2**63 else np.float64
    groups = [places[[k]] for k in range(len(places))] if same_end else [places]
    found = [_walked(graph, field, group, steps, count, undominated, most_states) for group in groups]
    keys, moves, walks, witness = (np.concatenate(part) for part in zip(*found, strict=True))
    order, starts = _grouped([moves, *keys.T[::-1]], n_tied=1)
    chosen = order[starts]
    visits = field.visits(keys[chosen])
    result = Coverage(visits, moves[chosen], np.add.reduceat(walks[order], starts), witness[chosen])
    return _kept(result, maximal(visits)) if undominated else result


def fewest_steps(graph: PatrolGraph, homes: npt.ArrayLike, steps: int, *, same_end: bool) -> int:
    """The fewest time steps, at least ``steps``, with which some walk returns home."""
    more = (n for n in range(steps, steps + graph.n_nodes + 2) if count_walks(graph, homes, n, same_end=same_end))
    return next(more, 1)


def visits_of_walks(walks: npt.ArrayLike, targets: npt.ArrayLike, dwell: int) -> npt.NDArray[np.uint8]:
    """Time steps that each walk stands on each target, capped at ``dwell``.

    Parameters
    ----------
    walks : (n, steps) node numbers
    targets : (n_targets,) node numbers

    Returns
    -------
    (n, n_targets) uint8
    """
    nodes = np.asarray(walks)
    columns = [np.minimum((nodes == target).sum(axis=1), dwell) for target in np.asarray(targets)]
    return np.stack(columns, axis=1).astype(np.uint8) if columns else np.zeros((len(nodes), 0), np.uint8)


def joint_coverages(
    patrols: Sequence[Coverage], dwell: int, *, undominated: bool = False, most_states: int = MOST_STATES
) -> JointCoverage:
    """Every distinct coverage of several patrols at once; visits of a target add up over patrols.

    Parameters
    ----------
    patrols : what each of them can cover
    dwell : visits after which a target counts as covered
    undominated : keep only those that no other contains

    Raises
    ------
    TooManyStates : more than ``most_states``
    """
    visits, moves = patrols[0].visits, patrols[0].moves
    parts = np.arange(len(visits))[:, None]
    for patrol in patrols[1:]:
        if len(visits) * len(patrol.visits) > 16 * most_states:
            raise TooManyStates(
                f"{len(visits)} x {len(patrol.visits)} coverages of several patrols",
                where="defenders",
                mend="ask with method double-oracle, or of fewer patrols, steps or targets",
            )
        left, right = np.divmod(np.arange(len(visits) * len(patrol.visits)), len(patrol.visits))
        summed = np.minimum(visits[left] + patrol.visits[right], dwell).astype(np.uint8)
        chosen, moves = _distinct(summed, moves[left] + patrol.moves[right])
        visits, parts = summed[chosen], np.column_stack([parts[left[chosen]], right[chosen]])
        if undominated:
            kept = maximal(visits)
            visits, moves, parts = visits[kept], moves[kept], parts[kept]
    covered = visits >= dwell
    chosen, moves = _distinct(covered, moves)
    covered, parts = covered[chosen], parts[chosen]
    if undominated:
        kept = maximal(covered)
        covered, moves, parts = covered[kept], moves[kept], parts[kept]
    return JointCoverage(covered, moves, parts)


def maximal(visits: npt.ArrayLike) -> Ints:
    """Which of some distinct coverages no other one contains, in rising order.

    Parameters
    ----------
    visits : (n, n_targets) whole numbers, or bool
    """
    rows = np.asarray(visits).astype(np.uint8)
    if not len(rows):
        return np.arange(0)
    most = max(int(rows.max(initial=1)), 1)
    bits = (rows[:, :, None] > np.arange(most)).reshape(len(rows), -1)
    keys = _packed(bits)
    order = np.argsort(-bits.sum(axis=1), kind="stable")
    return np.sort(order[_first_of_each(keys[order], np.zeros(len(rows), np.int64))])


class _Fields(NamedTuple):
    """Where each target's bits stand: ``dwell`` of them in a row, never over the end of a word."""

    word: Ints  # (n_nodes,) of a node that is a target, else -1
    shift: Words  # (n_nodes,)
    targets: Ints
    dwell: int
    n_words: int

    @classmethod
    def of(cls, n_nodes: int, targets: Ints, dwell: int) -> _Fields:
        if not 1 <= dwell <= WORD:
            raise BadInput(f"dwell is {dwell}", where="dwell", mend=f"give 1 to {WORD}")
        per_word = WORD // dwell
        place = np.arange(len(targets))
        word, shift = np.full(n_nodes, -1), np.zeros(n_nodes, np.uint64)
        word[targets] = place // per_word
        shift[targets] = (place % per_word * dwell).astype(np.uint64)
        return cls(word, shift, targets, dwell, max(1, -(-len(targets) // per_word)))

    def stay(self, keys: Words, nodes: Ints) -> Words:
        """The states after one time step at these nodes."""
        word, shift = self.word[nodes], self.shift[nodes]
        at = np.flatnonzero(word >= 0)
        mask = np.uint64(2**self.dwell - 1)
        one = np.uint64(1)
        old = keys[at, word[at]]
        filled = (((old >> shift[at]) & mask) << one | one) & mask
        keys = keys.copy()
        keys[at, word[at]] = old | filled << shift[at]
        return keys

    def visits(self, keys: Words) -> npt.NDArray[np.uint8]:
        mask = np.uint64(2**self.dwell - 1)
        field = (keys[:, self.word[self.targets]] >> self.shift[self.targets]) & mask
        return np.bitwise_count(field).astype(np.uint8)


class _Layer(NamedTuple):
    """The distinct states of one time step."""

    node: Ints
    keys: Words
    moves: Ints
    walks: npt.NDArray
    parent: Ints  # the state of the step before


def _walked(
    graph: PatrolGraph, field: _Fields, homes: Ints, steps: int, count: type, undominated: bool, most_states: int
) -> tuple[Words, Ints, npt.NDArray, Ints]:
    """Keys, fewest moves, number of walks and witness of each end state in ``homes``."""
    to_home = distances(graph, homes)
    empty = np.zeros((len(homes), field.n_words), np.uint64)
    ones: npt.NDArray = np.ones(len(homes), count)
    layers = [_Layer(homes, field.stay(empty, homes), np.zeros(len(homes), np.int64), ones, np.arange(len(homes)))]
    for step in range(1, steps):
        left = steps - 1 - step
        if undominated:
            layer = _next_undominated(graph, field, layers[-1], to_home, left, most_states)
        else:
            layer = _next(graph, field, layers[-1], to_home, left)
        if len(layer.node) > most_states:
            raise TooManyStates(
                f"more than {most_states} distinct coverages after {step + 1} time steps",
                where="steps",
                mend="ask with method double-oracle, or of fewer steps or targets",
            )
        layers.append(layer)
    at = np.flatnonzero(to_home[layers[-1].node] == 0)
    last = layers[-1]
    return last.keys[at], last.moves[at], last.walks[at], _way_back(layers, at)


def _next(graph: PatrolGraph, field: _Fields, layer: _Layer, to_home: Ints, left: int) -> _Layer:
    """One more time step, from which home is still ``left`` moves away at most."""
    degree = graph.first[layer.node + 1] - graph.first[layer.node]
    parent = np.repeat(np.arange(len(layer.node)), degree)
    node = graph.neighbours[_ranges(graph.first[layer.node], degree)]
    open_still = np.flatnonzero(to_home[node] <= left)
    parent, node = parent[open_still], node[open_still]
    keys = field.stay(layer.keys[parent], node)
    moves = layer.moves[parent] + (node != layer.node[parent])
    order, starts = _grouped([moves, *keys.T[::-1], node], n_tied=1)
    chosen = order[starts]
    walks = np.add.reduceat(layer.walks[parent[order]], starts)
    return _Layer(node[chosen], keys[chosen], moves[chosen], walks, parent[chosen])


def _next_undominated(
    graph: PatrolGraph, field: _Fields, layer: _Layer, to_home: Ints, left: int, most_states: int
) -> _Layer:
    """The same, keeping at each node only states that no other one there contains; of equal ones the first."""
    first = np.searchsorted(layer.node, np.arange(graph.n_nodes + 1))
    node, keys, moves, parent = _undominated_step(
        graph.first, graph.neighbours, first, layer.keys, layer.moves, to_home, left, field.word, field.shift,
        np.uint64(2**field.dwell - 1), most_states,
    )  # fmt: skip
    return _Layer(node, keys, moves, np.ones(len(node), layer.walks.dtype), parent)


@kernel
def _undominated_step(first, neighbours, states, keys, moves, to_home, left, word, shift, mask, most):  # type: ignore[no-untyped-def]
    """States of the next time step, node by node; ``states`` is where each node's begin. The graph is undirected."""
    n_nodes, n_words = len(first) - 1, keys.shape[1]
    room = max(64, 2 * len(keys))
    node_of, key_of = np.empty(room, np.int64), np.empty((room, n_words), np.uint64)
    moves_of, parent_of = np.empty(room, np.int64), np.empty(room, np.int64)
    n_kept = 0
    key = np.empty(n_words, np.uint64)
    one = np.uint64(1)
    for node in range(n_nodes):
        if to_home[node] > left:
            continue
        begin = n_kept
        for arc in range(first[node], first[node + 1]):
            before = neighbours[arc]
            for i in range(states[before], states[before + 1]):
                key[:] = keys[i]
                if word[node] >= 0:
                    old = (key[word[node]] >> shift[node]) & mask
                    key[word[node]] |= ((old << one | one) & mask) << shift[node]
                contained, k = False, begin
                while k < n_kept and not contained:
                    contained, contains = True, True
                    for w in range(n_words):
                        contained = contained and not key[w] & ~key_of[k, w]
                        contains = contains and not key_of[k, w] & ~key[w]
                    if contains and not contained:  # the kept one goes; the last takes its place
                        n_kept -= 1
                        key_of[k] = key_of[n_kept]
                        node_of[k], moves_of[k], parent_of[k] = node_of[n_kept], moves_of[n_kept], parent_of[n_kept]
                    else:
                        k += 1
                if contained:
                    continue
                if n_kept == room:
                    room *= 2
                    node_of, key_of = _longer(node_of, room), _taller(key_of, room)
                    moves_of, parent_of = _longer(moves_of, room), _longer(parent_of, room)
                node_of[n_kept], key_of[n_kept] = node, key
                moves_of[n_kept], parent_of[n_kept] = moves[i] + (before != node), i
                n_kept += 1
                if n_kept > most:
                    return node_of[:n_kept], key_of[:n_kept], moves_of[:n_kept], parent_of[:n_kept]
    return node_of[:n_kept], key_of[:n_kept], moves_of[:n_kept], parent_of[:n_kept]


@kernel
def _longer(values, room):  # type: ignore[no-untyped-def]
    found = np.empty(room, values.dtype)
    found[: len(values)] = values
    return found


@kernel
def _taller(rows, room):  # type: ignore[no-untyped-def]
    found = np.empty((room, rows.shape[1]), rows.dtype)
    found[: len(rows)] = rows
    return found


def _way_back(layers: list[_Layer], at: Ints) -> Ints:
    nodes = []
    for layer in reversed(layers):
        nodes.append(layer.node[at])
        at = layer.parent[at]
    return np.stack(nodes[::-1], axis=1)


def _grouped(columns: list[npt.NDArray], *, n_tied: int) -> tuple[Ints, Ints]:
    """An order by all ``columns`` (the last first), and where runs begin that agree in all but the first ``n_tied``."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns[n_tied:]:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    return order, np.flatnonzero(new)


def _distinct(rows: npt.NDArray, moves: Ints) -> tuple[Ints, Ints]:
    """One row of each kind, with the fewest moves, and these."""
    most = max(int(rows.max(initial=1)), 1)
    keys = _packed((rows[:, :, None].astype(np.uint8) > np.arange(most)).reshape(len(rows), -1))
    order, starts = _grouped([moves, *keys.T[::-1]], n_tied=1)
    chosen = order[starts]
    return chosen, moves[chosen]


def _packed(bits: Bools) -> Words:
    """Rows of bits as rows of words."""
    n_words = max(1, -(-bits.shape[1] // WORD))
    padded = np.zeros((len(bits), n_words * WORD), np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1).view(np.uint64)


@kernel
def _first_of_each(keys, group):  # type: ignore[no-untyped-def]
    """Which states no earlier kept state of their group contains; states of a group stand together, fullest first."""
    n, n_words = keys.shape
    kept = np.empty(n, np.int64)
    n_kept, first = 0, 0
    for i in range(n):
        if i > 0 and group[i] != group[i - 1]:
            first = n_kept
        contained = False
        for k in range(first, n_kept):
            contained = True
            for word in range(n_words):
                if keys[i, word] & ~keys[kept[k], word]:
                    contained = False
                    break
            if contained:
                break
        if not contained:
            kept[n_kept] = i
            n_kept += 1
    return kept[:n_kept]


def _kept(found: Coverage, chosen: Ints) -> Coverage:
    return Coverage(found.visits[chosen], found.moves[chosen], found.walks[chosen], found.witness[chosen])
