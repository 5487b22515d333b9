"""Double oracle: a zero-sum security game without listing patrols.

Both sides begin with one action; the small game is solved, each side adds its best answer to the other's mix, until
neither gains (McMahan, Gordon and Blum 2003). The attacker's best answer is to attack where value times the chance of
finding nobody is largest. The defender's is a walk of the largest expected catch: only targets that the attacker's mix
attacks have any, so the dynamic programme over coverages runs on those few alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .coverage import Bools, joint_coverages, patrol_coverages, visits_of_walks
from .game import SecurityGame
from .graph import Floats, Ints
from .minimax import minimax

MOST_ROUNDS = 2000


class OracleSolution(NamedTuple):
    """What both sides play in the end and what it proves.

    Parameters
    ----------
    low, high : the value lies between them
    probabilities : (n,) of the patrols that are played
    covered : (n, n_targets) what they cover
    walks : for each patrol of the team (n, steps)
    attacks : (n_targets,) how often each target is attacked
    history : (rounds, 3) small games' entries so far, best low and best high
    size : rows and columns of the last small game
    """

    low: float
    high: float
    probabilities: Floats
    covered: Bools
    walks: tuple[Ints, ...]
    attacks: Floats
    history: Floats
    size: tuple[int, int]

    @property
    def gap(self) -> float:
        """Upper less lower bound."""
        return self.high - self.low


def double_oracle(game: SecurityGame, *, tolerance: float = 1e-12, most_rounds: int = MOST_ROUNDS) -> OracleSolution:
    """Solve a zero-sum security game by best answers.

    Parameters
    ----------
    tolerance : stop when the bounds are this close
    most_rounds : stop here in any case; the bounds hold all the same

    Raises
    ------
    TooManyStates : even the targets that are attacked have too many coverages
    """
    bare = np.zeros(game.n_targets, bool)
    columns = [best_attack(game, bare.astype(float))]
    rows: list[Bools] = []
    walks: list[Ints] = []
    _extend(game, rows, walks, _marginals(game, columns, np.ones(1)))
    low, high, entries = -np.inf, np.inf, 0.0
    best_mix: Floats = np.ones(1)
    best_attacks = _marginals(game, columns, np.ones(1))
    history: list[tuple[float, float, float]] = []
    for _ in range(most_rounds):
        U = _entries(game, rows, columns)
        entries += U.size
        small = minimax(U)
        coverage = small.row @ np.array(rows, float)
        answer = best_attack(game, coverage)
        secured = -_damage(game, coverage, answer)
        if secured > low:
            low, best_mix = secured, small.row
        attacks = _marginals(game, columns, small.column)
        conceded = _extend(game, rows, walks, attacks)
        if conceded < high:
            high, best_attacks = conceded, attacks
        history.append((entries, low, high))
        new_column = answer not in columns
        if new_column:
            columns.append(answer)
        grown = _without_doubles(rows, walks) or new_column
        if high - low <= tolerance or not grown:
            break
    mix = np.zeros(len(rows))
    mix[: len(best_mix)] = best_mix
    played = np.flatnonzero(mix > 0)
    return OracleSolution(
        low, max(high, low), mix[played], np.array(rows)[played],
        tuple(np.array([walk[k] for walk in walks])[played] for k in range(len(game.homes))),
        best_attacks, np.array(history), (len(rows), len(columns)),
    )  # fmt: skip


def best_attack(game: SecurityGame, coverage: Floats) -> tuple[int, ...]:
    """The targets that an attacker chooses who knows how often each is covered, most damage first.

    Parameters
    ----------
    coverage : (n_targets,) probability that each is covered
    """
    worth = game.gain * (1 - coverage * (1 - game.residual))
    return tuple(sorted(np.argsort(-worth, kind="stable")[: game.attackers].tolist()))


def best_patrol(game: SecurityGame, worth: Floats) -> tuple[float, list[Ints]]:
    """Walks of the whole team that catch the most.

    Parameters
    ----------
    worth : (n_targets,) what covering each is worth, at least 0

    Returns
    -------
    catch, and a walk of each patrol
    """
    wanted = np.flatnonzero(worth > 0)
    known = {}
    for home in game.homes:
        if (key := np.sort(home).tobytes()) not in known:
            known[key] = patrol_coverages(
                game.graph, game.targets[wanted], home, game.steps, dwell=game.dwell, same_end=game.same_end,
                undominated=True,
            )  # fmt: skip
    each = [known[np.sort(home).tobytes()] for home in game.homes]
    joint = joint_coverages(each, game.dwell, undominated=True)
    catch = joint.covered @ worth[wanted]
    best = int(catch.argmax())
    return float(catch[best]), [found.witness[joint.parts[best, k]] for k, found in enumerate(each)]


def _extend(game: SecurityGame, rows: list[Bools], walks: list[Ints], attacks: Floats) -> float:
    """Add the best patrol against these attacks; what the defender gets by it, which no patrol exceeds."""
    worth = attacks * game.gain
    catch, team = best_patrol(game, worth * (1 - game.residual))
    walks.append(np.array(team))
    visits = visits_of_walks(np.array(team), game.targets, game.dwell).sum(axis=0)
    rows.append(visits >= game.dwell)
    return catch - float(worth.sum())


def _without_doubles(rows: list[Bools], walks: list[Ints]) -> bool:
    """Whether the last row is one that was not there; else it is taken out again."""
    if any((row == rows[-1]).all() for row in rows[:-1]):
        rows.pop()
        walks.pop()
        return False
    return True


def _marginals(game: SecurityGame, columns: list[tuple[int, ...]], weights: Floats) -> Floats:
    attacks = np.zeros(game.n_targets)
    for column, weight in zip(columns, weights, strict=True):
        attacks[list(column)] += weight
    return attacks


def _entries(game: SecurityGame, rows: list[Bools], columns: list[tuple[int, ...]]) -> Floats:
    chosen = np.zeros((game.n_targets, len(columns)))
    for j, column in enumerate(columns):
        chosen[list(column), j] = 1.0
    return -(np.where(np.array(rows), game.residual, 1.0) * game.gain) @ chosen


def _damage(game: SecurityGame, coverage: Floats, attack: tuple[int, ...]) -> float:
    worth = game.gain * (1 - coverage * (1 - game.residual))
    return float(worth[list(attack)].sum())
