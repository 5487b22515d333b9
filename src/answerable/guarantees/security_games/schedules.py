"""Schedule form: a patrol is the set of targets that it visits on a round from one home, staying at each in one go.

A round over a set S takes ``moves + |S| (dwell - 1)`` moves and waits; a walk of ``steps`` nodes has room for
``steps - 1``. The published games test single targets so, but let larger sets take one step more, count a set once for
each home it can be reached from, and have no patrol that stays at home: ``strict=False`` gives those.
"""

from __future__ import annotations

import itertools
import math

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
    Actions; ``n_joint`` counts joint schedules before equal coverages were joined

    Raises
    ------
    BadInput : a stay of several time steps where patrols may not wait, or too many schedules
    """
    known = {
        home.tobytes(): patrol_schedules(game, home, simple=simple, strict=strict)
        for home in {home.tobytes(): home for home in game.homes}.values()
    }
    each = [known[home.tobytes()] for home in game.homes]
    n_joint = math.prod(int(found.walks.sum()) for found in each)
    joint = joint_coverages(each, 1)
    walks = tuple(found.witness[joint.parts[:, k]] for k, found in enumerate(each))
    return Actions(joint.covered, (joint.moves * game.step_cost).astype(np.float64), walks, n_joint)


def patrol_schedules(game: SecurityGame, homes: Ints, *, simple: bool = False, strict: bool = True) -> Coverage:
    """What one patrol can do: each set of targets with its cheapest round, the empty one (stay at home) first.

    Parameters
    ----------
    homes : where it may start, and end at the same place

    Returns
    -------
    Coverage of visits 0 or 1; ``walks`` counts the homes that a set is reached from where ``strict`` is False; a round
    that is shorter than the rest waits at home
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
    best: dict[tuple[int, ...], tuple[int, int, tuple[int, ...]]] = {(): (0, int(homes[0]), ())} if strict else {}
    times: dict[tuple[int, ...], int] = dict.fromkeys(best, 1)
    for home in np.unique(homes):
        rounds = _rounds(from_target[:, home], between, game.dwell, room, simple)
        for chosen, (moves, order) in rounds.items():
            if len(chosen) == 1 and moves + game.dwell > game.steps:
                continue
            times[chosen] = 1 if strict else times.get(chosen, 0) + 1
            if chosen not in best or moves < best[chosen][0]:
                best[chosen] = (moves, int(home), order)
    if not best:
        raise BadInput(
            f"no target can be covered and left in {game.steps} time steps", where="steps", mend="give more, or strict"
        )
    visits = np.zeros((len(best), game.n_targets), np.uint8)
    walks = np.empty((len(best), room + 1), np.int64)
    for row, (chosen, (_, home, order)) in enumerate(best.items()):
        visits[row, list(chosen)] = 1
        walks[row] = _walk(game, home, order, room)
    fewest = np.array([entry[0] for entry in best.values()])
    return Coverage(visits, fewest, np.array([times[chosen] for chosen in best]), walks)


def _rounds(
    to_home: Ints, between: Ints, dwell: int, room: int, simple: bool
) -> dict[tuple[int, ...], tuple[int, tuple[int, ...]]]:
    """Every set of targets that fits into ``room``, with its fewest moves and an order; sets grow one target at a time.

    The state is (set, last target): what remains depends on nothing else (Held and Karp 1962).
    """
    n = len(to_home)
    front: dict[tuple[frozenset[int], int], tuple[int, tuple[int, ...]]] = {
        (frozenset([t]), t): (int(to_home[t]), (t,)) for t in range(n) if 2 * to_home[t] + dwell - 1 <= room
    }  # fmt: skip
    rounds: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    while front:
        for (chosen, last), (moves, order) in front.items():
            whole, members = moves + int(to_home[last]), tuple(sorted(chosen))
            if members not in rounds or whole < rounds[members][0]:
                rounds[members] = (whole, order)
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
