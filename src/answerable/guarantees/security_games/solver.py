"""Solve a security game: the best patrol plan against an adversary who watches, with its certificate.

Every payoff depends on a patrol only through which targets it covers and what it costs, so a game of millions of
walks is a matrix of some dozens of rows (``game``, ``coverage``). What is solved then, and where:

- zero-sum: ``minimax`` (simplex, dense interior point), ``oracle`` (double oracle), ``regret`` (RM, RM+, PRM+),
  ``sparse`` (at most k patrols). To commit and to play simultaneously are the same there.
- general-sum: ``stackelberg`` (the defender commits, the attacker watches), ``bimatrix`` (nobody watches).

Source: Krever, Cerny, Blanchard and Kroer, GUARD: Constructing realistic two-player matrix and security games for
benchmarking game-theoretic algorithms (NeurIPS 2025). The reduction to coverages, the interior point method and the
certificates are ours.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from answerable.errors import BadInput

from .bimatrix import lemke_howson
from .coverage import MOST_STATES, Bools, TooManyStates
from .game import Actions, SecurityGame, actions, attack_matrix, payoffs
from .graph import Floats, Ints
from .minimax import Minimax, minimax
from .oracle import double_oracle
from .regret import regret_matching
from .schedules import schedule_actions
from .sparse import sparse_minimax
from .stackelberg import commit

Concept = Literal["auto", "nash", "stackelberg"]
Method = Literal["auto", "simplex", "interior-point", "double-oracle", "rm", "rm+", "prm+", "sparse"]
Form = Literal["walks", "schedules"]

QUICK_STATES = 50_000  # of one patrol's step; beyond them double oracle proves the same value sooner
EXACT_NASH = 40  # rows and columns up to which Lemke and Howson's path is followed in fractions


class Solution(NamedTuple):
    """A patrol plan and what it proves.

    Parameters
    ----------
    low, high : the defender's value lies between them; ``low`` is what the plan secures
    probabilities : (n,) of the plans that are played, most likely first
    covered : (n, n_targets) what each covers
    cost : (n,) of each
    walks : for each patrol of the team (n, steps) node numbers
    coverage : (n_targets,) how often each target is covered
    attacks : (n_targets,) how often each is attacked, at most once each
    attacker_value : what the attacker gets
    against_ties : what the defender gets if an indifferent attacker does what is worst for her
    method, iterations : what found it
    history : (k, 3) work, low, high
    n_joint, n_rows : joint patrols, and rows of the reduced game (0 where it was never listed)
    """

    low: float
    high: float
    probabilities: Floats
    covered: Bools
    cost: Floats
    walks: tuple[Ints, ...]
    coverage: Floats
    attacks: Floats
    attacker_value: float
    against_ties: float
    method: str
    iterations: int
    history: Floats
    n_joint: int
    n_rows: int

    @property
    def value(self) -> float:
        """What the plan secures."""
        return self.low

    @property
    def bounds(self) -> tuple[float, float]:
        """The value lies between them."""
        return self.low, self.high

    @property
    def gap(self) -> float:
        """Upper less lower bound."""
        return self.high - self.low

    @property
    def defender(self) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        """(probability, walk of each patrol), most likely first."""
        return [
            (float(p), tuple(tuple(map(int, walk[k])) for walk in self.walks)) for k, p in enumerate(self.probabilities)
        ]


def solve(
    game: SecurityGame,
    *,
    concept: Concept = "auto",
    method: Method = "auto",
    form: Form = "walks",
    simple: bool = False,
    strict: bool = True,
    k: int | None = None,
    tolerance: float = 1e-9,
    iterations: int = 100_000,
    threads: int = 1,
) -> Solution:
    """The defender's best plan.

    Parameters
    ----------
    game : zero-sum or general-sum
    concept : ``stackelberg`` (the attacker watches) or ``nash``; auto: the former. In a zero-sum game they are one
    method : of zero-sum games; auto: the simplex method or interior points by size, double oracle where there are too
        many coverages. ``sparse``: at most ``k`` plans
    form : ``walks``, or ``schedules``: rounds over sets of targets
    simple, strict : of schedules; see ``schedules``
    k : plans at most, for ``sparse``
    tolerance : gap at which iterative methods stop, in the unit of the payoffs
    iterations : of regret matching, at most
    threads : of the numerical library

    Raises
    ------
    BadInput : a method or concept that does not fit the game, or one of the game's own limits
    """
    if not game.zero_sum and method not in ("auto", "simplex"):
        raise BadInput(
            f"method {method} solves zero-sum games",
            where="method",
            mend="leave it to auto, or ask for zero-sum payoffs",
        )
    if method == "sparse" and (k is None or k < 1):
        raise BadInput(f"k is {k}", where="k", mend="give at least 1 plan")
    if method == "double-oracle" and form == "schedules":
        raise BadInput("double oracle lists walks", where="method", mend="ask with form walks")
    if method == "double-oracle":
        return by_oracle(game, tolerance)
    by_answers = game.zero_sum and method == "auto" and form == "walks"
    # a team's joint coverages are searched in every round of double oracle too: one patrol alone is sooner done by it
    most_states = QUICK_STATES if by_answers and len(game.homes) == 1 else MOST_STATES
    try:
        rows = listed(game, form=form, simple=simple, strict=strict, most_states=most_states)
    except TooManyStates:
        if not by_answers:
            raise
        return by_oracle(game, tolerance)
    own, other = payoffs(game, rows.covered, rows.cost)
    if game.zero_sum:
        return _zero_sum(game, rows, own, method, k, tolerance, iterations, threads)
    return _simultaneous(game, rows, own, other) if concept == "nash" else _committed(game, rows, own, other, threads)


def listed(
    game: SecurityGame, *, form: Form = "walks", simple: bool = False, strict: bool = True,
    most_states: int = MOST_STATES,
) -> Actions:  # fmt: skip
    """The reduced game's rows in either form; of walks at most so many states a step."""
    if form == "schedules":
        return schedule_actions(game, simple=simple, strict=strict)
    return actions(game, most_states=most_states)


def by_oracle(game: SecurityGame, tolerance: float) -> Solution:
    """Solve without listing coverages.

    Raises
    ------
    BadInput : the game is not zero-sum
    """
    if not game.zero_sum:
        raise BadInput("double oracle solves zero-sum games", where="method", mend="ask for zero-sum payoffs")
    from .game import count_joint_walks

    found = double_oracle(game, tolerance=min(tolerance, 1e-12))
    order = np.argsort(-found.probabilities, kind="stable")
    return Solution(
        found.low, found.high, found.probabilities[order], found.covered[order], np.zeros(len(order)),
        tuple(walk[order] for walk in found.walks), found.probabilities @ found.covered.astype(float), found.attacks,
        -found.low, found.low, "double-oracle", len(found.history), found.history, count_joint_walks(game), 0,
    )  # fmt: skip


def _zero_sum(
    game: SecurityGame, rows: Actions, U: Floats, method: Method, k: int | None, tolerance: float, iterations: int,
    threads: int,
) -> Solution:  # fmt: skip
    if method == "sparse":
        assert k is not None
        few = sparse_minimax(U, k)
        best = minimax(U, threads=threads)
        found = best._replace(low=few.value, high=few.bound, row=few.row, method=f"at most {k} plans")
    elif method == "rm" or method == "rm+" or method == "prm+":
        found = regret_matching(U, rule=method, iterations=iterations, tolerance=tolerance)
    else:
        found = minimax(U, method=method, threads=threads)  # type: ignore[arg-type]
    return _solution(game, rows, found, found.column, -found.low, found.low)


def _committed(game: SecurityGame, rows: Actions, own: Floats, other: Floats, threads: int) -> Solution:
    found = commit(own, other, threads=threads)
    column = np.eye(1, own.shape[1], found.response)[0]
    told = Minimax(found.low, found.high, found.row, column, "multiple programmes", found.solved, np.empty((0, 3)))
    return _solution(game, rows, told, column, found.attacker_value, found.against_ties)


def _simultaneous(game: SecurityGame, rows: Actions, own: Floats, other: Floats) -> Solution:
    """An equilibrium of a game that nobody watches; what each could still gain widens the bounds."""
    profile = lemke_howson(own, other, exact=sum(own.shape) <= EXACT_NASH)
    row, column = np.array(profile.row, float), np.array(profile.column, float)
    value = float(row @ own @ column)
    regret = max(float((own @ column).max()) - value, 0.0)
    told = Minimax(value, value + regret, row, column, "Lemke-Howson", 0, np.empty((0, 3)))
    return _solution(game, rows, told, column, float(row @ other @ column), value)


def _solution(
    game: SecurityGame, rows: Actions, found: Minimax, column: Floats, attacker_value: float, against_ties: float
) -> Solution:
    played = np.flatnonzero(found.row > 1e-12)
    played = played[np.argsort(-found.row[played], kind="stable")]
    shares = found.row[played] / found.row[played].sum()
    return Solution(
        found.low, found.high, shares, rows.covered[played], rows.cost[played],
        tuple(walk[played] for walk in rows.walks), shares @ rows.covered[played].astype(float),
        attack_matrix(game.n_targets, game.attackers) @ column, attacker_value, against_ties, found.method,
        found.iterations, found.history, rows.n_joint, len(rows.covered),
    )  # fmt: skip
