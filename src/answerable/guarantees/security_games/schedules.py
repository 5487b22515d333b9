"""Schedule form: a patrol is the set of targets that it visits on a round from one home, staying at each in one go.

A round over a set S takes ``moves + |S| (dwell - 1)`` moves and waits; with ``steps`` nodes there is room for
``steps - 1``. The published games allow ``steps`` (``strict=False``), one more than a patrol of that many time steps has.
"""

from __future__ import annotations

import itertools

import numpy as np

from answerable.errors import BadInput

from .coverage import Coverage, joint_coverages
from .game import Actions, SecurityGame
from .graph import FAR, Ints, distances, shortest_path

MOST_SCHEDULES = 200_000


def schedule_actions(game: SecurityGame, *, simple: bool = False, strict: bool = True) -> Actions:
    """Joint schedules, one row for each distinct set of covered targets.

    Parameters
    ----------
    simple : only single targets, as few as a patrol can do
    strict : count time steps as nodes of a walk; False is the published test, one step more generous

    Returns
    -------
    Actions; ``n_joint`` counts joint schedules before equal ones were joined

    Raises
    ------
    BadInput : a stay of several time steps where patrols may not wait, or too many schedules
    """
    each = [patrol_schedules(game, home, simple=simple, strict=strict) for home in game.homes]
    n_joint = int(np.prod([float(len(found.visits)) for found in each]))
    joint = joint_coverages(each, 1)
    walks = tuple(found.witness[joint.parts[:, k]] for k, found in enumerate(each))
    return Actions(joint.covered, joint.moves * game.step_cost, walks, n_joint)


def patrol_schedules(game: SecurityGame, homes: Ints, *, simple: bool = False, strict: bool = True) -> Coverage:
    """What one patrol can do: each set of targets with its cheapest round, the empty one (stay at home) first.

    Parameters
    ----------
    homes : where it may start, and end at the same place

    Returns
    -------
    Coverage of visits 0 or 1; ``walks`` is 1 for each; a round that is shorter than the rest waits at home
    """
    arcs = np.repeat(np.arange(game.graph.n_nodes), np.diff(game.graph.first))
    waits = bool((game.graph.neighbours == arcs).any())
    if game.dwell > 1 and not waits:
        raise BadInput(
            f"a stay of {game.dwell} time steps where patrols may not wait", where="dwell", mend="let them wait"
        )
    room = game.steps - 1 if strict else game.steps
    from_target = np.array([distances(game.graph, [t]) for t in game.targets])
    between = from_target[:, game.targets]
    best: dict[tuple[int, ...], tuple[int, int, tuple[int, ...]]] = {(): (0, int(homes[0]), ())}
    for home in np.unique(homes):
        rounds = _rounds(from_target[:, home], between, game.dwell, room, simple)
        for chosen, (moves, order) in rounds.items():
            if chosen not in best or moves < best[chosen][0]:
                best[chosen] = (moves, int(home), order)
    visits = np.zeros((len(best), game.n_targets), np.uint8)
    walks = np.empty((len(best), room + 1), np.int64)
    for row, (chosen, (_, home, order)) in enumerate(best.items()):
        visits[row, list(chosen)] = 1
        walks[row] = _walk(game, home, order, room)
    moves = np.array([entry[0] for entry in best.values()])
    return Coverage(visits, moves, np.ones(len(best), np.int64), walks)


def _rounds(
    to_home: Ints, between: Ints, dwell: int, room: int, simple: bool
) -> dict[tuple[int, ...], tuple[int, tuple[int, ...]]]:
    """Every set of targets that fits into ``room``, with its fewest moves and an order; sets grow one target at a time.

    The state is (set, last target): what remains depends on nothing else (Held and Karp 1962).
    """
    n = len(to_home)
    front = {
        (frozenset([t]), t): (int(to_home[t]), (t,)) for t in range(n) if 2 * to_home[t] + dwell - 1 <= room
    }  # fmt: skip
    rounds: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    while front:
        for (chosen, last), (moves, order) in front.items():
            whole, key = moves + int(to_home[last]), tuple(sorted(chosen))
            if key not in rounds or whole < rounds[key][0]:
                rounds[key] = (whole, order)
        if len(rounds) > MOST_SCHEDULES:
            raise BadInput(f"more than {MOST_SCHEDULES} schedules", where="steps", mend="give fewer steps or targets")
        longer: dict[tuple[frozenset[int], int], tuple[int, tuple[int, ...]]] = {}
        for ((chosen, last), (moves, order)), t in itertools.product(front.items(), range(0 if simple else n)):
            if t in chosen or between[last, t] >= FAR:
                continue
            further = moves + int(between[last, t])
            if further + to_home[t] + (len(chosen) + 1) * (dwell - 1) > room:
                continue
            key = (chosen | {t}, t)
            if key not in longer or further < longer[key][0]:
                longer[key] = (further, (*order, t))
        front = longer
    return rounds


def _walk(game: SecurityGame, home: int, order: tuple[int, ...], room: int) -> list[int]:
    """The round as nodes, time step by time step."""
    walk = [home]
    for target in order:
        walk += shortest_path(game.graph, walk[-1], int(game.targets[target]))[1:]
        walk += [walk[-1]] * (game.dwell - 1)
    walk += shortest_path(game.graph, walk[-1], home)[1:]
    return walk + [home] * (room + 1 - len(walk))
