"""Security games against what is used today: Python for each payoff, HiGHS, nashpy, Gambit, rebuilt programmes.

The published games' data are not all public, so games here are the replica herd's and the replica streets'.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from answerable.guarantees.security_games import (
    MatrixGame,
    SecurityGame,
    commit,
    grid_game,
    lattice,
    list_walks,
    matrix_of,
    minimax,
    patrol_coverages,
    regret_matching,
    schedule_actions,
    solve,
    street_game,
)
from answerable.guarantees.security_games.coverage import maximal
from answerable.guarantees.security_games.game import actions, normalised, payoffs
from answerable.guarantees.security_games.minimax import pinned
from bench.racing import Race, bytes_per_second

EXAMPLES = Path(__file__).parent.parent / "examples"
BOX = (2.0530, 2.2837, 15.8790, 16.2038)
HOMES = [(2.0532, 16.0857), (2.2037, 16.1871), (2.2000, 15.9800)]
TOWN = (40.7100, 40.7215, -74.0100, -73.9935)
STATIONS = [(40.7123, -74.0018)]
GFLOPS = 25e9  # multiply-adds a second of one core here, for the floors of dense algebra


def races(*, quick: bool) -> list[Race]:
    bandwidth = bytes_per_second()
    return [
        *building(quick),
        *zero_sum(quick, bandwidth),
        *gambit(),
        *commitments(quick),
        *matching(bandwidth),
        *quoted(),
        *growth(quick),
    ]


# Building the game


TIMES = 20  # of ours, which takes less than a millisecond


def building(quick: bool) -> Iterator[Race]:
    """From patrols and targets to the rows that matter, and to every payoff."""
    steps = 8 if quick else 9
    game = grid_game(EXAMPLES / "replica-herd.csv", box=BOX, homes=HOMES, steps=steps)
    n_walks = len(list_walks(game.graph, game.homes[0], steps))

    def reduced() -> np.ndarray:
        for _ in range(TIMES):
            rows = actions(game)
            found = payoffs(game, rows.covered, rows.cost)[0]
        return _sorted(found)

    def by_entry() -> np.ndarray:
        U = np.array(entry_by_entry(game, n_walks))
        rows = np.unique(U, axis=0)
        return rows[maximal(rows == 0.0)]

    yield Race(
        work=f"{TIMES} times undominated rows, 7 x 7, T={steps}", peer="Python by entry", ours=reduced, theirs=by_entry,
        sample=f"1 of {TIMES}", their_share=1 / TIMES, target_ratio=None if quick else 1000,
    )  # fmt: skip
    share = 500 / n_walks
    yield Race(
        work=f"every payoff, 7 x 7, T={steps}", peer="Python by entry",
        ours=lambda: matrix_of(game, written_out=True).defender,
        theirs=lambda: np.array(entry_by_entry(game, 500)), sample=f"500 of {n_walks} walks", their_share=share,
    )  # fmt: skip


def entry_by_entry(game: SecurityGame, n_walks: int) -> list[list[float]]:
    """A payoff at a time: walks by depth-first search, then for each walk and each column one call."""
    first, neighbours = game.graph.first, game.graph.neighbours
    homes = {int(home) for home in game.homes[0]}
    beside = [[int(b) for b in neighbours[first[a] : first[a + 1]]] for a in range(game.graph.n_nodes)]
    targets: list[int | None] = [*map(int, game.targets), None]
    worth = dict(zip(map(int, game.targets), map(float, game.gain), strict=True))
    found: list[list[float]] = []

    def walk_on(walk: list[int]) -> None:
        if len(found) >= n_walks:
            return
        if len(walk) == game.steps:
            if walk[-1] in homes:
                found.append([utility([walk], [target]) for target in targets])
            return
        for node in beside[walk[-1]]:
            walk_on([*walk, node])

    def utility(patrols: list[list[int]], attacks: list[int | None]) -> float:
        lost = 0.0
        for target in attacks:
            if target is None:
                continue
            met = 0
            for patrol in patrols:
                for time in range(game.steps):
                    if patrol[time] == target:
                        met += 1
            if met < game.dwell:
                lost += worth[target]
        return -lost if lost else 0.0

    for home in sorted(homes):
        walk_on([home])
    return found


def _sorted(U: np.ndarray) -> np.ndarray:
    return np.unique(U + 0.0, axis=0)


# Zero-sum matrices


def zero_sum(quick: bool, bandwidth: float) -> Iterator[Race]:
    """Uniform entries: the value, with both strategies, from one thread each."""
    n = 300 if quick else 1000
    U = np.random.default_rng(0).random((n, n))
    work = 14 * (n**3 / 2 + n**3 / 6)  # iterations; half a product and a factor each

    def ours(matrix: np.ndarray) -> Callable[[], np.ndarray]:
        def call() -> np.ndarray:
            found = minimax(matrix, method="interior-point", vertex=False)
            assert found.gap <= 1e-10
            return np.array([found.value])

        return call

    yield Race(
        work=f"uniform {n} x {n}, value to 1e-10", peer="HiGHS simplex", package="scipy", ours=ours(U),
        theirs=lambda: by_linprog(U, "highs-ds"), tolerance=1e-9, why="its feasibility tolerance",
        floor_s=work / GFLOPS, target_ratio=None if quick else 10, pairs=3,
    )  # fmt: skip
    yield Race(
        work=f"uniform {n} x {n}, value to 1e-10", peer="HiGHS interior point", package="scipy", ours=ours(U),
        theirs=lambda: by_linprog(U, "highs-ipm"), tolerance=1e-6, why="its interior point stops earlier",
        floor_s=work / GFLOPS, target_ratio=None if quick else 10, pairs=3,
    )  # fmt: skip
    yield Race(
        work=f"uniform {n} x {n}, value to 1e-10", peer="nashpy", package="nashpy", ours=ours(U),
        theirs=lambda: by_nashpy(U), tolerance=1e-7, why="solves one programme for each player",
        floor_s=work / GFLOPS, target_ratio=None if quick else 25, pairs=1,
    )  # fmt: skip
    tall = np.random.default_rng(1).random((9075, 11))
    yield Race(
        work="uniform 9075 x 11, value to 1e-10", peer="HiGHS simplex", package="scipy", ours=ours(tall),
        theirs=lambda: by_linprog(tall, "highs-ds"), tolerance=1e-9, why="its feasibility tolerance",
        floor_s=20 * 2 * tall.nbytes / bandwidth,
    )  # fmt: skip


def by_linprog(U: np.ndarray, method: str) -> np.ndarray:
    m, n = U.shape
    done = linprog(
        np.r_[np.zeros(m), -1.0], A_ub=np.c_[-U.T, np.ones(n)], b_ub=np.zeros(n), A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)], method=method,
    )  # fmt: skip
    return np.array([-done.fun])


def by_nashpy(U: np.ndarray) -> np.ndarray:
    import nashpy

    row, _ = nashpy.Game(U).linear_program()
    return np.array([(np.asarray(row) @ U).min()])


def gambit() -> Iterator[Race]:
    """A game through its file: ours written, Gambit reads and solves it, writes it, ours reads that."""
    try:
        import pygambit
    except ImportError:
        return
    U = np.random.default_rng(2).integers(-20, 20, (40, 30)).astype(float)
    folder = Path(tempfile.mkdtemp(prefix="answerable-bench-"))
    MatrixGame(U, -U, "forty by thirty").to_nfg(folder / "ours.nfg")

    def theirs() -> np.ndarray:
        game = pygambit.read_nfg(str(folder / "ours.nfg"))
        value = float(pygambit.nash.lp_solve(game, rational=False).equilibrium.payoffs["Defender"])
        (folder / "theirs.nfg").write_text(game.to_nfg())
        return np.array([value, *MatrixGame.read(folder / "theirs.nfg").defender.ravel()])

    def ours() -> np.ndarray:
        game = MatrixGame.read(folder / "ours.nfg")
        return np.array([minimax(game.defender).value, *game.defender.ravel()])

    yield Race(
        work="read .nfg and solve, 40 x 30", peer="Gambit lp_solve", package="pygambit", ours=ours, theirs=theirs,
        tolerance=1e-7, why="floats in its pivots",
    )  # fmt: skip


# Commitments


def commitments(quick: bool) -> Iterator[Race]:
    """Three defenders' schedules: distinct coverages and one warm model, or a programme rebuilt for each column."""
    steps = 4 if quick else 5
    game = town(steps, 3)
    each = schedule_actions(town(steps, 1))
    covered, cost = every_combination(each.covered, each.cost, 3)
    L, F = payoffs(game, covered, cost)

    def ours() -> np.ndarray:
        return np.array([solve(game, form="schedules").value])

    yield Race(
        work=f"3 defenders' schedules, {len(covered)} x {L.shape[1]}", peer="rebuilt programmes", package="scipy",
        ours=ours, theirs=lambda: np.array([rebuilt(L, F)]), tolerance=1e-7, why="HiGHS' tolerances", target_ratio=100,
    )  # fmt: skip
    m, n = (500, 20) if quick else (2000, 20)
    rng = np.random.default_rng(3)
    A, B = rng.random((m, n)), rng.random((m, n))
    yield Race(
        work=f"uniform {m} x {n}, no reduction", peer="rebuilt programmes", package="scipy",
        ours=lambda: np.array([commit(A, B).value]), theirs=lambda: np.array([rebuilt(A, B)]), tolerance=1e-7,
        why="HiGHS' tolerances; ours also proves its upper bound",
    )  # fmt: skip


def town(steps: int, defenders: int) -> SecurityGame:
    return street_game(
        EXAMPLES / "replica-streets.graphml", EXAMPLES / "chinatown-infrastructure.geojson",
        EXAMPLES / "replica-blocks.csv", box=TOWN, homes=STATIONS, steps=steps, defenders=defenders,
        payoffs="general-sum", step_cost=0.01, escape=[(40.7118, -74.0095)], penalty=5.0,
    )  # fmt: skip


def every_combination(covered: np.ndarray, cost: np.ndarray, defenders: int) -> tuple[np.ndarray, np.ndarray]:
    """Each joint schedule as a row of its own."""
    rows, total = covered, cost
    for _ in range(defenders - 1):
        rows = (rows[:, None] | covered[None]).reshape(-1, covered.shape[1])
        total = (total[:, None] + cost[None]).ravel()
    return rows, total


def rebuilt(L: np.ndarray, F: np.ndarray) -> float:
    """Conitzer and Sandholm's programmes, each from scratch."""
    m, n = L.shape
    best = -np.inf
    for t in range(n):
        done = linprog(
            -L[:, t], A_ub=(F - F[:, [t]]).T, b_ub=np.zeros(n), A_eq=np.ones((1, m)), b_eq=[1.0], method="highs"
        )
        if done.status == 0:
            best = max(best, -done.fun)
    return best


# Regret matching


def matching(bandwidth: float) -> Iterator[Race]:
    """A thousand iterations of RM+ and PRM+: the same averages from one pass over the matrix each."""
    for shape, rule, seconds in (((9075, 11), "rm+", 1e-4), ((9075, 11), "prm+", 1e-4), ((1000, 1000), "rm+", None)):
        U = np.random.default_rng(4).random(shape)
        n = 1000 if shape[1] == 11 else 200
        floor = n * 2 * U.nbytes / bandwidth
        yield Race(
            work=f"{n} iterations of {rule.upper()}, {shape[0]} x {shape[1]}", peer="numpy", package="numpy",
            ours=lambda U=U, rule=rule, n=n: _mix(regret_matching(U, rule=rule, iterations=n, check=n)),
            theirs=lambda U=U, rule=rule, n=n: on_one_thread(U, n, ahead=rule == "prm+"), tolerance=1e-9,
            why="sums in another order", floor_s=floor, target_s=seconds * n if seconds else 2 * floor,
        )  # fmt: skip


def _mix(found: Any) -> np.ndarray:
    return np.array([found.low, found.high])


def on_one_thread(U: np.ndarray, iterations: int, *, ahead: bool) -> np.ndarray:
    with pinned(1):
        return by_numpy(U, iterations, ahead=ahead)


def by_numpy(U: np.ndarray, iterations: int, *, ahead: bool) -> np.ndarray:
    """RM+ or PRM+ as it is usually written, the longer side first."""
    m, n = U.shape
    x, y = np.full(m, 1 / m), np.full(n, 1 / n)
    r, q = np.zeros(m), np.zeros(n)
    sum_x, sum_y, weights = np.zeros(m), np.zeros(n), 0.0
    for t in range(1, iterations + 1):
        weight = float(t * t if ahead else t)
        sum_x, sum_y, weights = sum_x + weight * x, sum_y + weight * y, weights + weight
        gained = U @ y
        instant = gained - x @ gained
        r = np.maximum(r + instant, 0)
        told = np.maximum(r + instant, 0) if ahead else r
        x = told / told.sum() if told.sum() > 0 else np.full(m, 1 / m)
        lost = x @ U
        instant = lost @ y - lost
        q = np.maximum(q + instant, 0)
        told = np.maximum(q + instant, 0) if ahead else q
        y = told / told.sum() if told.sum() > 0 else np.full(n, 1 / n)
    return np.array([(sum_x / weights @ U).min(), (U @ (sum_y / weights)).max()])


# Published times, and growth


def quoted() -> Iterator[Race]:
    """The authors' three-defender Chinatown games; ours on the same infrastructure over replica streets and blocks."""
    for steps, seconds in ((8, 839.0), (10, 10756.0)):
        game = town(steps, 3)
        yield Race(
            work=f"3 defenders in Chinatown, schedules T={steps}", peer="authors, Gurobi", quoted_s=seconds,
            ours=lambda game=game: np.array([solve(game, form="schedules").value]),
            why="published seconds; their streets and blocks are not public, ours are replicas",
        )  # fmt: skip


def growth(quick: bool) -> Iterator[Race]:
    """Time and memory against patrol length and grid size, ten targets drawn once; and against work doubled twice.

    An interior point iteration is cubic in the side of a square matrix, so time grows by 8 and memory by 4; one of
    regret matching is a pass over the matrix, so both grow by 2.
    """
    for side, steps in ((7, 8), (7, 10), (7, 12), (7, 14), (10, 14), (20, 14)):
        game = grown(side, steps)
        yield Race(work=f"game and value, {side} x {side}, T={steps}", peer="none", ours=lambda game=game: _value(game))
    for n in (250, 500, 1000)[: 2 if quick else 3]:
        square = np.random.default_rng(0).random((n, n))
        yield Race(
            work=f"doubled: interior point, {n} x {n}", peer="none",
            ours=lambda square=square: np.array([minimax(square, method="interior-point", vertex=False).value]),
        )  # fmt: skip
    for m in (9075, 18150, 36300):
        tall = np.random.default_rng(4).random((m, 11))
        yield Race(
            work=f"doubled: 1000 iterations of RM+, {m} x 11", peer="none",
            ours=lambda tall=tall: _mix(regret_matching(tall, rule="rm+", iterations=1000, check=1000)),
        )  # fmt: skip
    if not quick:
        game = grown(20, 14)
        yield Race(
            work="all coverages with multiplicities, 20 x 20, T=14", peer="none",
            ours=lambda: patrol_coverages(game.graph, game.targets, game.homes[0], 14).walks,
        )  # fmt: skip


def grown(side: int, steps: int) -> SecurityGame:
    rng = np.random.default_rng(side)
    middle = side // 2
    around = range(middle - 3, middle + 4)
    near = [row * side + column for row in around for column in around]
    targets = np.sort(rng.choice(near, 10, replace=False))
    worth = rng.uniform(0.2, 1, 10)
    homes = np.array([middle * side + middle, (middle - 2) * side + middle])
    return normalised(SecurityGame(lattice(side, side), targets, worth, worth, (homes,), steps))


def _value(game: SecurityGame) -> np.ndarray:
    return np.array([solve(game).value])
