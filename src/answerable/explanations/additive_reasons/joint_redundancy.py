"""Whether a feature is ever able to matter in a model with pairs.

Feature i decides in a completion of the others where its least score is below 0 and its greatest is not. Which of its
values is best depends on the states of its neighbours in the pair tables alone. So: the ends of the whole score, by
elimination, may prove that one class is decided everywhere; random completions, each moved towards the line, may find a
witness; and else the sums of the others are listed, with the neighbours' states kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .completions import EPSILON, MOST_ATOMS, are_on_grid
from .joint import Joint, Part, groups, listed_sums
from .pairs import PairModel, Table, least
from .redundancy import TRIES, Redundancy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


def joint_redundancies(
    model: PairModel, levels: Sequence[Part | None], *, seed: int = 0, most_atoms: int = MOST_ATOMS, tries: int = TRIES
) -> list[Redundancy]:
    """The answer for every feature.

    Parameters
    ----------
    model : states and tables
    levels : for each feature every state and main effect that it reaches together; None where these are continuous
    seed : of the completions that are tried; it never changes a proved answer
    most_atoms : sums listed at most
    tries : completions tried for each feature before its sums are listed
    """
    n, rng, doubt = len(model.states), np.random.default_rng(seed), _rounding(model)
    nothing, nan = np.full(n, np.nan), np.full(n, np.nan)
    free = np.ones(n, bool)
    lowest = least(model, np.zeros(n), [0] * n, nan, free, 1).value
    highest = -least(model, np.zeros(n), [0] * n, nan, free, -1).value
    if lowest >= doubt or highest < -doubt:
        return [Redundancy("redundant", "ends", nothing)] * n
    return [_of_feature(i, model, levels, rng, doubt, most_atoms, tries) for i in range(n)]


def _rounding(model: PairModel) -> float:
    numbers = [end for states in model.states for end in (states.low, states.high)]
    tables = [table.values for table in model.tables]
    if are_on_grid([model.offset], *numbers, *tables):
        return 0.0
    size = abs(model.offset) + sum(float(np.abs(part).max()) for part in (*numbers, *tables))
    return 4 * (len(numbers) + len(tables) + 1) * EPSILON * size


def _of_feature(
    i: int, model: PairModel, levels: Sequence[Part | None], rng: np.random.Generator, doubt: float, most: int,
    tries: int,
) -> Redundancy:  # fmt: skip
    nothing = np.full(len(model.states), np.nan)
    own = model.states[i]
    near = [_turned(table, i) for table in model.tables if i in (table.first, table.second)]
    if own.low.min() == own.high.max() and all((table == table[:1]).all() for _, table in near):
        return Redundancy("redundant", "ends", nothing)
    witness = _witness(i, model, near, rng, doubt, tries)
    if witness is not None:
        return Redundancy("matters", "witness", witness)
    others = [levels[j] for j in range(len(levels)) if j != i]
    if any(part is None for part in others):
        return Redundancy("unknown", "levels and intervals together, no witness found", nothing)
    return _listed(i, model, levels, near, doubt, most)


def _turned(table: Table, i: int) -> tuple[int, Floats]:
    """The other feature, and the table with feature i in its rows."""
    return (table.second, table.values) if table.first == i else (table.first, table.values.T)


def _witness(
    i: int, model: PairModel, near: list[tuple[int, Floats]], rng: np.random.Generator, doubt: float, tries: int
) -> Floats | None:
    """Encoded values of a completion in which the feature decides, NaN for the feature; None where none was found."""
    n = len(model.states)
    ends = [(np.concatenate([s.low, s.high]), np.tile(np.arange(len(s.low)), 2)) for s in model.states]
    chosen = np.column_stack([rng.integers(len(values), size=tries) for values, _ in ends])
    tables = [(_turned(table, j), j) for table in model.tables for j in (table.first, table.second)]

    def states(j: int) -> Ints:
        return ends[j][1][chosen[:, j]]

    scores = np.full(tries, model.offset)
    for j in range(n):
        scores += ends[j][0][chosen[:, j]]
    for first, second, values in model.tables:
        scores = scores + values[states(first), states(second)]
    for j in rng.permutation(n):
        values, own_states = ends[j]
        # (tries, n_values): what the score would be with each of its values
        moved = scores[:, None] + values - values[chosen[:, j]][:, None]
        for (other, table), owner in tables:
            if owner == j:
                given = states(other)
                moved += table[own_states][:, given].T - table[states(j), given][:, None]
        chosen[:, j] = np.abs(moved).argmin(axis=1)
        scores = moved[np.arange(tries), chosen[:, j]]
    rest = np.full(tries, model.offset)
    for j in range(n):
        rest += 0.0 if j == i else ends[j][0][chosen[:, j]]
    for first, second, values in model.tables:
        if i not in (first, second):
            rest = rest + values[states(first), states(second)]
    low, high = _ends(model, i, near, [states(other) for other, _ in near], tries)
    hits = np.flatnonzero((rest + high >= doubt) & (rest + low < -doubt))
    if not len(hits):
        return None
    places = chosen[hits[0]]
    at = [np.concatenate([s.at_low, s.at_high])[place] for s, place in zip(model.states, places, strict=True)]
    at[i] = np.nan
    return np.array(at)


def _ends(
    model: PairModel, i: int, near: list[tuple[int, Floats]], given: list[Ints], n_rows: int
) -> tuple[Floats, Floats]:
    """(n_rows,) least and greatest of all terms with the feature, its neighbours being in given states."""
    around = np.zeros((len(model.states[i].low), n_rows))
    for (_, table), states in zip(near, given, strict=True):
        around = around + table[:, states]
    return (model.states[i].low[:, None] + around).min(axis=0), (model.states[i].high[:, None] + around).max(axis=0)


def _listed(
    i: int, model: PairModel, levels: Sequence[Part | None], near: list[tuple[int, Floats]], doubt: float, most: int
) -> Redundancy:
    """Whether the feature decides for some sum of the others, neighbours' states kept apart."""
    nothing = np.full(len(model.states), np.nan)
    parts = [Part(np.zeros(1, np.intp), np.zeros(1), np.ones(1)) if part is None or j == i else part
             for j, part in enumerate(levels)]  # fmt: skip
    kept_tables = [table for table in model.tables if i not in (table.first, table.second)]
    joint = Joint(parts, kept_tables, model.offset)
    neighbours = sorted({other for other, _ in near})
    apart: list[list[int]] = []
    free: list[list[int]] = []
    for members in groups(len(parts), kept_tables):
        if members == [i]:
            continue
        (apart if set(members) & set(neighbours) else free).append(members)
    given = listed_sums(joint, [j for members in apart for j in members], keep=neighbours, most_atoms=most)
    rest = listed_sums(joint, [j for members in free for j in members], most_atoms=most)
    if given is None or rest is None:
        return Redundancy("unknown", f"more than {most:,} sums", nothing)
    low, high = _ends(model, i, near, [given.kept[other] for other, _ in near], len(given.sums))
    shift = model.offset + given.sums
    sums = np.unique(rest.sums)

    def hit(margin: float) -> bool:
        at = np.searchsorted(sums, -high - shift - margin)
        inside = at < len(sums)
        return bool(np.any(sums[at[inside]] < (-low - shift + margin)[inside]))

    if not hit(doubt):
        return Redundancy("redundant", "listed sums", nothing)
    if hit(-doubt):
        return Redundancy("matters", "listed sums", nothing)
    return Redundancy("unknown", "within rounding", nothing)
