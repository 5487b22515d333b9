"""The best mixed strategy to commit to against an attacker who watches: strong Stackelberg equilibrium.

One linear programme per attacker column t: the best commitment among those to which t is a best response (Conitzer
and Sandholm 2006). All are one model here: with a free variable w for the attacker's payoff, the rows ``p'F[:, k] - w
<= 0`` stay, row t becomes an equality and the objective ``p'L[:, t]``, and the solver goes on from the basis before.
Of many rows of the game it has few: the multipliers price the others, and those worth more are taken in (column
generation). Columns are visited by ``max_i L[i, t]``, falling, until that bound is no better than what is there.

The certificate does not trust the solver. For multipliers mu >= 0 the best commitment for t is at most ``max_i (L[i,
t] + sum_k mu_k (F[i, t] - F[i, k]))``; that t can be no best response is shown by a zero-sum game.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from answerable.errors import BadInput

from .minimax import Floats, checked, minimax, pinned, simplex_of

ALL_AT_ONCE, FIRST_ROWS, ROWS_A_ROUND = 2000, 8, 60  # rows of the game in a model: all of few, else some, then more
NEAR = 1e-9  # of the range of the attacker's payoffs: below it a column counts as a best response


class Commitment(NamedTuple):
    """A strategy to commit to and what it proves.

    Parameters
    ----------
    low : what the defender gets when the attacker, where he is indifferent, does what is best for her
    high : no commitment gets more
    against_ties : what she gets when he does what is worst for her
    row : probabilities of rows
    response : the column that he plays
    attacker_value : what he gets
    solved : how many linear programmes were solved, of as many as there are columns
    """

    low: float
    high: float
    against_ties: float
    row: Floats
    response: int
    attacker_value: float
    solved: int

    @property
    def value(self) -> float:
        """What the defender gets."""
        return self.low

    @property
    def gap(self) -> float:
        """Upper less lower bound."""
        return self.high - self.low


def commit(
    defender: npt.ArrayLike, attacker: npt.ArrayLike, *, prune: bool = True, certify: bool = True, threads: int = 1
) -> Commitment:
    """The best commitment in a game of two matrices.

    Parameters
    ----------
    defender, attacker : (m, n) payoffs
    prune : pass over a column whose largest payoff to the defender is no more than what is already secured
    certify : prove the upper bound too; without it ``high`` is infinite
    threads : of the numerical library

    Returns
    -------
    Commitment

    Raises
    ------
    BadInput : matrices of different shapes, or without finite numbers
    """
    L, F = checked(defender, "defender"), checked(attacker, "attacker")
    if L.shape != F.shape:
        raise BadInput(f"shapes {L.shape} and {F.shape}", where="attacker", mend="give one payoff for each")
    with pinned(threads):
        return _commit(L, F, prune, certify)


def _commit(defender: Floats, attacker: Floats, prune: bool, certify: bool) -> Commitment:
    # the solver's tolerances are absolute, so neither player's unit may matter: an attack worth a cent is still one
    L, F = _between_0_and_1(defender), _between_0_and_1(attacker)
    model = _Model(L, F)
    most = L.max(axis=0)
    best, row, response, high, solved = -np.inf, np.zeros(len(L)), -1, -np.inf, 0
    for t in np.argsort(-most, kind="stable"):
        if prune and most[t] <= best:
            high = max(high, float(most[t]))
            break
        if prune and _never_best(F, t):
            continue
        solved += 1
        found, bound = _best_for(model, L, F, int(t), certify)
        high = max(high, bound)
        if found is None:
            continue
        value = float(found @ L[:, t])
        if value > best:
            best, row, response = value, found, int(t)
    told = row @ F
    payoff = row @ defender
    low, above = float(payoff[response]), max(high - best, 0.0) * float(np.ptp(defender))
    return Commitment(
        low, low + above if certify else np.inf, float(payoff[told >= told.max() - NEAR].min()), row, response,
        float(row @ attacker[:, response]), solved,
    )  # fmt: skip


def _between_0_and_1(payoffs: Floats) -> Floats:
    spread = float(np.ptp(payoffs))
    return (payoffs - payoffs.min()) / spread if spread else np.zeros_like(payoffs)


def _never_best(F: Floats, t: int) -> bool:
    """Whether another column exceeds t in every row: then the attacker never plays it, whatever is committed to."""
    return bool(((F - F[:, [t]]).min(axis=0) > 0).any())


def _best_for(model: _Model, L: Floats, F: Floats, t: int, certify: bool) -> tuple[Floats | None, float]:
    """The best commitment to which t is a best response, None where there is none, and what none exceeds.

    The multipliers price every row, also those that the model does not have yet: where one is worth more than the
    commitment it is taken in, and where none is the commitment is proved best.
    """
    slack = 1e-11 * max(float(np.ptp(L)), 1e-300)
    tried = False
    while True:
        found, multipliers = model.best(L[model.rows, t], t)
        weights = np.zeros(F.shape[1]) if multipliers is None else np.maximum(multipliers, 0.0)
        weights[t] = 0.0
        if found is not None:
            if len(model.rows) == len(L) and not certify:
                return model.over_all(found), np.inf
            worth = L[:, t] + (F[:, t] * weights.sum() - F @ weights)
            missing = np.flatnonzero(worth > float(found @ L[model.rows, t]) + slack)
            if not model.take(missing, worth):
                return model.over_all(found), float(worth.max())
            continue
        # a mix of other columns that beats t in every row shows that it is never a best response
        beaten = F[:, t] * weights.sum() - F @ weights
        if weights.any() and float(beaten.max()) < 0:
            return None, -np.inf
        if not weights.any() or not model.take(np.flatnonzero(beaten >= 0), beaten):
            # without such a mix from the solver: one from a zero-sum game, or rows to which t is a best response
            game = minimax(F[:, [t]] - np.delete(F, t, axis=1))
            if game.high < 0:
                return None, -np.inf
            if tried or not model.take(np.flatnonzero(game.row > 0), game.row):
                return None, float(L[:, t].max())
            tried = True


class _Model:
    """Variables w and p; rows ``p'F[:, k] - w <= 0`` (n) and ``sum p = 1``. Of many rows of the game a few at first."""

    def __init__(self, L: Floats, F: Floats) -> None:
        self.F, self.n = F, F.shape[1]
        self.rows = np.empty(0, np.int64)
        model = highspy.HighsLp()
        infinite = highspy.kHighsInf
        model.num_col_, model.num_row_ = 1, self.n + 1
        model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(1), np.array([-infinite]), np.array([infinite])
        model.row_lower_ = np.r_[np.full(self.n, -infinite), 1.0]
        model.row_upper_ = np.r_[np.zeros(self.n), 1.0]
        model.sense_ = highspy.ObjSense.kMaximize
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.array([0, self.n], np.int32)
        model.a_matrix_.index_ = np.arange(self.n, dtype=np.int32)
        model.a_matrix_.value_ = -np.ones(self.n)
        self.highs = highspy.Highs()
        self.highs.silent()
        for name, value in (("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self.highs.setOptionValue(name, value)
        self.highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self.highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self.highs.passModel(model)
        self.equal = -1
        self._add(np.arange(len(F)) if len(F) <= ALL_AT_ONCE else _first_rows(L, F))

    def take(self, rows: npt.NDArray[np.int64], worth: Floats) -> bool:
        """Take in the most valuable of these rows that are not there yet; whether there was one."""
        missing = np.setdiff1d(rows, self.rows)
        self._add(missing[np.argsort(-worth[missing], kind="stable")[:ROWS_A_ROUND]])
        return bool(len(missing))

    def over_all(self, probabilities: Floats) -> Floats:
        """Probabilities of the rows that are there as ones of all rows."""
        whole = np.zeros(len(self.F))
        whole[self.rows] = probabilities
        return whole

    def best(self, gains: Floats, t: int) -> tuple[Floats | None, Floats | None]:
        """The best commitment for column t over the rows that are there, and its multipliers.

        Where t is never a best response to these, None and the weights of the other columns that show it, if there are
        any.
        """
        infinite = highspy.kHighsInf
        if self.equal >= 0:
            self.highs.changeRowBounds(self.equal, -infinite, 0.0)
        self.highs.changeRowBounds(t, 0.0, 0.0)
        self.equal = t
        m = len(self.rows)
        self.highs.changeColsCost(m, np.arange(1, m + 1, dtype=np.int32), np.ascontiguousarray(gains))
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            ray = self.highs.getDualRay()[2]
            return None, None if ray is None or not len(ray) else np.abs(np.array(ray))[: self.n]
        solution = self.highs.getSolution()
        return simplex_of(np.maximum(solution.col_value[1:], 0)), np.array(solution.row_dual[: self.n])

    def _add(self, rows: npt.NDArray[np.int64]) -> None:
        """Columns (F[i, :], 1) of the programme; zeros of F may stand."""
        m, n = len(rows), self.n
        if not m:
            return
        entries = np.hstack([self.F[rows], np.ones((m, 1))])
        self.highs.addCols(
            m, np.zeros(m), np.zeros(m), np.full(m, highspy.kHighsInf), m * (n + 1),
            (np.arange(m) * (n + 1)).astype(np.int32), np.tile(np.arange(n + 1), m).astype(np.int32), entries.ravel(),
        )  # fmt: skip
        self.rows = np.concatenate([self.rows, rows])


def _first_rows(L: Floats, F: Floats) -> npt.NDArray[np.int64]:
    """For each column the rows that pay the defender most against it, and those that draw the attacker to it."""
    drawn = F - F.mean(axis=1, keepdims=True)
    chosen = [np.argpartition(-M[:, t], FIRST_ROWS)[:FIRST_ROWS] for M in (L, drawn) for t in range(L.shape[1])]
    return np.unique(np.concatenate(chosen))


class Marginals(NamedTuple):
    """A commitment of patrols that each cover one target at most.

    Parameters
    ----------
    value : what the defender gets
    coverage : (n_patrols, n_targets) how often each patrol covers each target
    response : the target that is attacked
    attacker_value : what the attacker gets
    """

    value: float
    coverage: Floats
    response: int
    attacker_value: float


def commit_simple(
    reachable: npt.ArrayLike, covered: tuple[Floats, Floats], uncovered: tuple[Floats, Floats]
) -> Marginals:
    """The best commitment where a patrol covers one target or none: one small linear programme per target.

    Exact because the marginals of a bipartite assignment can always be mixed from assignments (Birkhoff); see
    ``assignments``.

    Parameters
    ----------
    reachable : (n_patrols, n_targets) bool, which targets each patrol can cover and return from
    covered, uncovered : the defender's and the attacker's payoff of each target, (n_targets,) each

    Returns
    -------
    Marginals
    """
    allowed = np.asarray(reachable, bool)
    n_patrols, n_targets = allowed.shape
    (own_covered, other_covered), (own_bare, other_bare) = covered, uncovered
    n = n_patrols * n_targets
    sums = np.tile(np.eye(n_targets), n_patrols)  # coverage of each target from the variables
    attack = (other_covered - other_bare)[:, None] * sums  # slope of the attacker's payoff of each target
    each_patrol = np.repeat(np.eye(n_patrols), n_targets, axis=1)
    bounds = [(0.0, 1.0 if ok else 0.0) for ok in allowed.ravel()]
    best: tuple[float, Floats, int, float] | None = None
    for t in range(n_targets):
        rows = np.vstack([attack - attack[t], each_patrol, sums])
        limits = np.r_[other_bare[t] - other_bare, np.ones(n_patrols + n_targets)]
        slope = (own_covered[t] - own_bare[t]) * sums[t]
        done = linprog(-slope, A_ub=rows, b_ub=limits, bounds=bounds, method="highs-ds")
        if done.status == 0 and (best is None or own_bare[t] - done.fun > best[0]):
            payoff = float(other_bare[t] + attack[t] @ done.x)
            best = (float(own_bare[t] - done.fun), done.x.reshape(n_patrols, n_targets), t, payoff)
    assert best is not None and n  # covering nothing leaves some target to be attacked
    return Marginals(*best)


def assignments(coverage: npt.ArrayLike) -> list[tuple[float, tuple[int, ...]]]:
    """Marginals as a mix of assignments: each patrol to one target, or to none (-1), no target to two.

    Parameters
    ----------
    coverage : (n_patrols, n_targets) at least 0, rows and columns sum to at most 1

    Returns
    -------
    list of (probability, target of each patrol), probabilities summing to 1
    """
    marginals = np.asarray(coverage, float)
    n_patrols, n_targets = marginals.shape
    n = n_patrols + n_targets
    # filled up to rows and columns of sum 1: a patrol's idle time, and a target's bare time
    full = np.zeros((n, n))
    full[:n_patrols, :n_targets] = marginals
    full[:n_patrols, n_targets:] = np.diag(np.maximum(1 - marginals.sum(axis=1), 0))
    full[n_patrols:, :n_targets] = np.diag(np.maximum(1 - marginals.sum(axis=0), 0))
    full[n_patrols:, n_targets:] = marginals.T
    mix: dict[tuple[int, ...], float] = {}
    while full.sum() > 1e-9 * n:
        match = _perfect_matching(full > 1e-12)
        if match is None:
            break
        share = float(full[np.arange(n), match].min())
        full[np.arange(n), match] -= share
        chosen = tuple(int(j) if j < n_targets else -1 for j in match[:n_patrols])
        mix[chosen] = mix.get(chosen, 0.0) + share
    total = sum(mix.values())
    return [(share / total, chosen) for chosen, share in sorted(mix.items(), key=lambda entry: -entry[1])]


def _perfect_matching(allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp] | None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    match = maximum_bipartite_matching(csr_array(allowed), perm_type="column")
    return None if (match < 0).any() else match
