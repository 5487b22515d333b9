"""A security game and its reduced form: rows are distinct coverages of the patrols, columns are sets of attacks.

The attacker sees how often each target is covered and chooses ``attackers`` targets (or abstains with one of them). A
target that a patrol stays at for ``dwell`` time steps in all is covered and the attack on it fails. Payoffs depend on a
row only through its coverage and its cost, so rows that agree in coverage are one row, at the least cost; that changes
neither the value of a zero-sum game nor any equilibrium or commitment of a general-sum one, since of two rows that the
attacker cannot tell apart the dearer is never played.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from answerable.errors import BadInput

from .coverage import MOST_STATES, Bools, Coverage, JointCoverage, joint_coverages, patrol_coverages
from .graph import Floats, Ints, PatrolGraph, count_walks

MOST_ENTRIES = 50_000_000  # of a matrix that is written out: 400 MB


@dataclass(frozen=True)
class SecurityGame:
    """Patrols on a graph against an attacker of its targets.

    Parameters
    ----------
    graph : where patrols walk
    targets : (n_targets,) distinct node numbers
    loss : (n_targets,) what the defender loses when an attack succeeds, at least 0
    gain : (n_targets,) what the attacker gains then, at least 0
    homes : for each patrol the nodes where it may start and end
    steps : time steps of a patrol, counting the one at time 0
    dwell : time steps at a target, in all and over all patrols, after which it is covered
    same_end : a patrol ends where it began
    attackers : targets attacked at once
    step_cost : the defender's cost of one move, in the unit of ``loss``
    residual : share of gain and loss that an attack on a covered target still brings, 0 to below 1
    zero_sum : the attacker gains what the defender loses and nothing else counts
    scale : number that losses and gains were divided by
    """

    graph: PatrolGraph
    targets: Ints
    loss: Floats
    gain: Floats
    homes: tuple[Ints, ...]
    steps: int
    dwell: int = 1
    same_end: bool = False
    attackers: int = 1
    step_cost: float = 0.0
    residual: float = 0.0
    zero_sum: bool = True
    scale: float = 1.0
    lost: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.targets)

    def target_labels(self) -> list[str]:
        """How each target is called."""
        return [self.graph.labels[node] for node in self.targets]

    def with_patrols(self, n: int) -> SecurityGame:
        """The game with ``n`` patrols: the last one's homes are repeated, or patrols are left out from the end."""
        homes = (*self.homes, *[self.homes[-1]] * n)[:n]
        return replace(self, homes=homes)


class Actions(NamedTuple):
    """Rows of a reduced game.

    Parameters
    ----------
    covered : (n_rows, n_targets) bool
    cost : (n_rows,) the least cost of a joint patrol with this coverage
    walks : for each patrol (n_rows, steps) node numbers
    n_joint : how many joint patrols the rows stand for
    """

    covered: Bools
    cost: Floats
    walks: tuple[Ints, ...]
    n_joint: int


def _check(game: SecurityGame) -> None:
    """Refuse a game that is none.

    Raises
    ------
    BadInput : in one line, naming the field
    """
    for name, values in (("loss", game.loss), ("gain", game.gain)):
        if len(values) != len(game.targets):
            raise BadInput(f"{len(values)} values for {len(game.targets)} targets", where=name)
        bad = np.flatnonzero(~np.isfinite(values) | (np.asarray(values) < 0))
        if len(bad):
            where = f"{name}, target {game.graph.labels[game.targets[bad[0]]]}"
            raise BadInput(f"{values[bad[0]]:g} is no value", where=where, mend="give finite values of at least 0")
    if not len(game.targets):
        raise BadInput("there is no target", where="targets", mend="choose a larger box or other values")
    if not game.homes or any(not len(home) for home in game.homes):
        raise BadInput("a patrol has no home", where="homes", mend="give each patrol at least one")
    for name, nodes in (("targets", game.targets), ("homes", np.concatenate(game.homes))):
        off = nodes[(nodes < 0) | (nodes >= game.graph.n_nodes)]
        if len(off):
            raise BadInput(f"there is no node {off[0]}", where=name, mend=f"give 0 to {game.graph.n_nodes - 1}")
    numbers, times = np.unique(game.targets, return_counts=True)
    if (times > 1).any():
        raise BadInput(f"node {numbers[times > 1][0]} stands twice", where="targets", mend="add up its values")
    _check_numbers(game)


def _check_numbers(game: SecurityGame) -> None:
    if game.steps < 1:
        raise BadInput(f"{game.steps} time steps", where="steps", mend="give at least 1")
    if not 1 <= game.dwell <= game.steps:
        raise BadInput(
            f"{game.dwell} time steps at a target, but a patrol has {game.steps}",
            where="dwell",
            mend="give a longer patrol or a shorter stay",
        )
    if not 1 <= game.attackers <= len(game.targets):
        raise BadInput(
            f"{game.attackers} attacks at once on {len(game.targets)} targets",
            where="attackers",
            mend=f"give at most {len(game.targets)}, at least 1",
        )
    if not 0 <= game.residual < 1:
        raise BadInput(f"{game.residual:g} of an attack", where="residual", mend="give 0 to below 1")
    if not (math.isfinite(game.step_cost) and game.step_cost >= 0):
        raise BadInput(f"{game.step_cost:g} is no cost", where="step_cost", mend="give a finite one of at least 0")


def coverages(game: SecurityGame, *, undominated: bool | None = None, most_states: int = MOST_STATES) -> list[Coverage]:
    """What each patrol can cover; patrols with the same homes share one list.

    Parameters
    ----------
    undominated : drop patrols that another one's visits contain; allowed where moves cost nothing. By default in
        zero-sum games
    most_states : refuse more than this
    """
    drop = game.zero_sum if undominated is None else undominated
    known: dict[bytes, Coverage] = {}
    for home in game.homes:
        if (key := np.sort(home).tobytes()) not in known:
            known[key] = patrol_coverages(
                game.graph, game.targets, home, game.steps, dwell=game.dwell, same_end=game.same_end,
                undominated=drop, most_states=most_states,
            )  # fmt: skip
    return [known[np.sort(home).tobytes()] for home in game.homes]


def actions(game: SecurityGame, *, undominated: bool | None = None, most_states: int = MOST_STATES) -> Actions:
    """The reduced game's rows: distinct coverages, each with the cheapest patrols that reach it.

    Parameters
    ----------
    undominated : as in ``coverages``

    Raises
    ------
    TooManyStates : more than ``most_states`` distinct coverages
    BadInput : no walk returns home
    """
    drop = game.zero_sum if undominated is None else undominated
    each = coverages(game, undominated=drop, most_states=most_states)
    joint = joint_coverages(each, game.dwell, undominated=drop, most_states=most_states)
    cost = (joint.moves * game.step_cost).astype(np.float64)
    return Actions(joint.covered, cost, _witnesses(each, joint), count_joint_walks(game))


def count_joint_walks(game: SecurityGame) -> int:
    """How many joint walks there are: the rows of the game written out."""
    counts = {
        key: count_walks(game.graph, np.frombuffer(key, np.int64), game.steps, same_end=game.same_end)
        for key in {np.sort(home).tobytes() for home in game.homes}
    }
    return math.prod(counts[np.sort(home).tobytes()] for home in game.homes)


def _witnesses(each: list[Coverage], joint: JointCoverage) -> tuple[Ints, ...]:
    return tuple(found.witness[joint.parts[:, k]] for k, found in enumerate(each))


def attack_sets(n_targets: int, attackers: int) -> list[tuple[int, ...]]:
    """Columns: every set of ``attackers`` targets, then those that abstain with one attack.

    One attacker: each target, then to abstain, written ``()``.
    """
    whole = list(itertools.combinations(range(n_targets), attackers))
    return whole + list(itertools.combinations(range(n_targets), attackers - 1))


def attack_matrix(n_targets: int, attackers: int) -> Floats:
    """(n_targets, n_columns) 1 where a column attacks a target.

    Raises
    ------
    BadInput : more than ``MOST_ENTRIES`` entries
    """
    n_columns = math.comb(n_targets, attackers) + math.comb(n_targets, attackers - 1)
    if n_columns * n_targets > MOST_ENTRIES:
        raise BadInput(
            f"{n_columns} sets of {attackers} attacks",
            where="attackers",
            mend="ask with method double-oracle, or of fewer attacks at once",
        )
    found = np.zeros((n_targets, n_columns))
    for column, chosen in enumerate(attack_sets(n_targets, attackers)):
        found[list(chosen), column] = 1.0
    return found


def payoffs(game: SecurityGame, covered: Bools, cost: Floats) -> tuple[Floats, Floats]:
    """Payoffs of defender and attacker in these rows.

    Parameters
    ----------
    covered : (n_rows, n_targets)
    cost : (n_rows,)

    Returns
    -------
    defender, attacker : (n_rows, n_columns) float64 each; the defender's is minus the attacker's in a zero-sum game
    """
    columns = attack_matrix(game.n_targets, game.attackers)
    succeeds = np.where(covered, game.residual, 1.0)
    if covered.shape[0] * columns.shape[1] > MOST_ENTRIES:
        n_bytes = 8 * covered.shape[0] * columns.shape[1]
        raise BadInput(
            f"{covered.shape[0]} x {columns.shape[1]} payoffs take {n_bytes:.1e} bytes",
            where="game",
            mend="keep the reduced form, or ask with method double-oracle",
        )
    attacker = (succeeds * game.gain) @ columns
    if game.zero_sum:
        return -attacker, attacker
    return -((succeeds * game.loss) @ columns) - cost[:, None], attacker


def largest_loss(game: SecurityGame, each: list[Coverage]) -> float:
    """The largest loss of any joint patrol and attack: what the published zero-sum payoffs are divided by.

    Parameters
    ----------
    each : all distinct coverages of each patrol, dominated ones too
    """
    # the largest sum over an attacked set is reached where patrols cover least: among the minimal visits of each
    least = [_minimal(found.visits) for found in each]
    worst = 0.0
    for chosen in itertools.product(*least):
        bare = np.sum(chosen, axis=0) < game.dwell
        worst = max(worst, float(np.sort(game.loss * bare)[::-1][: game.attackers].sum()))
    return worst


def _minimal(visits: np.ndarray) -> np.ndarray:
    from .coverage import maximal

    most = int(visits.max(initial=0))
    return visits[maximal(most - visits.astype(np.int64))].astype(np.int64)


def normalised(game: SecurityGame) -> SecurityGame:
    """The zero-sum game with losses divided by the largest loss of any patrol and attack."""
    try:
        scale = largest_loss(game, coverages(game, undominated=False, most_states=200_000))
    except BadInput as trouble:
        if "time steps returns home" in str(trouble):
            raise
        # some patrol can leave the most valuable targets alone in any game as large as this
        scale = float(np.sort(game.loss)[::-1][: game.attackers].sum())
    scale = scale or 1.0
    return replace(game, loss=game.loss / scale, gain=game.gain / scale, scale=game.scale * scale)
