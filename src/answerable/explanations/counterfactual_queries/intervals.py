"""Sharp intervals where a query is not answerable.

Every concept may share hidden causes with the input, so that, given a unit's concepts v, how each concept responds to
its causes is free. Under ``W := w'`` the unit may end in any u that agrees with w' on W and in which a concept differs
from v only if a cause of it does. The answer is then anywhere between the least and the largest output over such u,
averaged over v given x, and both ends are attained by some model of the class (ours; equal to the linear programme over
response types in every graph of two and three concepts). Where the query is answerable, u is pinned and the interval is
Theorem 3's point.

Where one moved concept shares no hidden cause with anything, its responses are independent of all else: how often it
would take another value is bounded by its two conditional distributions alone (Frechet 1951).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from answerable.compiled import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def extremes(
    outputs: Floats, codes: Ints, forced: Bools, parents: Sequence[Sequence[int]], sizes: Sequence[int]
) -> tuple[Floats, Floats]:
    """Least and largest output over all that a unit may become.

    Parameters
    ----------
    outputs : (n, L_1 or 1, ..., L_k or 1) outputs of the model for each value of the k concepts that may move, in an
        order in which causes come first; 1 where the model does not look at the concept
    codes : (n, k) the factual values, from 0
    forced : (n, k) whether a queried cause of the concept is set to another value than it has
    parents : by concept, those of the k that are its causes
    sizes : (k,) how many values each has

    Returns
    -------
    (n,) and (n,) float64; the same where nothing may move
    """
    n, k = codes.shape
    if not k:
        return outputs, outputs
    shape = (n, *sizes)
    table = outputs if outputs.shape == shape else np.broadcast_to(outputs, shape)
    table = np.ascontiguousarray(table.reshape(n, -1), np.float64)
    causes = np.zeros((k, k), np.bool_)
    for effect, numbers in enumerate(parents):
        causes[effect, numbers] = True
    codes, forced = np.ascontiguousarray(codes), np.ascontiguousarray(forced)
    found: tuple[Floats, Floats] = _walked(table, codes, forced, causes, np.array(sizes, np.int64))
    return found


@kernel
def _walked(table, codes, forced, causes, sizes):  # type: ignore[no-untyped-def]
    """The last effect first, for its causes are all still open: what is left of the table is of the concepts before."""
    n, k = codes.shape
    low, high = np.empty(n), np.empty(n)
    least, most = np.empty(table.shape[1]), np.empty(table.shape[1])
    for unit in range(n):
        least[:] = table[unit]
        most[:] = table[unit]
        cells = table.shape[1]
        for effect in range(k - 1, -1, -1):
            size, own = sizes[effect], codes[unit, effect]
            cells //= size
            for cell in range(cells):
                free = forced[unit, effect]
                rest = cell
                for cause in range(effect - 1, -1, -1):
                    if free:
                        break
                    free = causes[effect, cause] and rest % sizes[cause] != codes[unit, cause]
                    rest //= sizes[cause]
                start = cell * size
                smallest, largest = least[start + own], most[start + own]
                if free:
                    for level in range(start, start + size):
                        smallest, largest = min(smallest, least[level]), max(largest, most[level])
                least[cell], most[cell] = smallest, largest
        low[unit], high[unit] = least[0], most[0]
    return low, high


def independent_extremes(outputs: Floats, codes: Ints, now: Floats, then: Floats) -> tuple[Floats, Floats]:
    """The same where one concept moves that shares no hidden cause with anything.

    Parameters
    ----------
    outputs : (n, L) outputs of the model for each value of the concept
    codes : (n,) its factual value, from 0
    now, then : (n, L) its distribution given its causes as they are, and as they would be

    Returns
    -------
    (n,) and (n,) float64

    Notes
    -----
    Of the share ``now[c]`` of units with the factual value c, at most ``then[j]`` take value j; any such split can be
    completed to a joint distribution. So the least output fills the values from the smallest output up.
    """
    share = np.take_along_axis(now, codes[:, None], axis=1)
    ends = []
    for sign in (1.0, -1.0):
        order = np.argsort(sign * outputs, axis=1, kind="stable")
        room = np.take_along_axis(then, order, axis=1)
        taken = np.clip(share - (np.cumsum(room, axis=1) - room), 0.0, room)
        ends.append((taken * np.take_along_axis(outputs, order, axis=1)).sum(axis=1) / share[:, 0])
    return ends[0], ends[1]


def independent_interval(
    outputs: Floats, weights: Floats, rows: Ints, laws: Floats, now: Ints, then: Ints
) -> tuple[float, float]:
    """The sharp interval of one input whose concepts are uncertain, by a linear programme over responses.

    Parameters
    ----------
    outputs : (m, L) outputs for each value of the one concept that moves, for each of m possible units
    weights : (m,) probabilities of these units given the input
    rows : (m,) the concept's factual value in each
    laws : (s, L) its distribution for each of s settings of its causes
    now, then : (m,) numbers of the settings as they are and as they would be

    Returns
    -------
    (low, high)

    Notes
    -----
    A response is a value for each of the s settings; its probability does not depend on the unit. Uses L^s columns.
    """
    from scipy.optimize import linprog

    s, n_levels = laws.shape
    responses = np.indices((n_levels,) * s).reshape(s, -1)  # value at each setting, by response
    demands = np.concatenate([responses == level for level in range(n_levels)]).astype(np.float64)
    goal = np.zeros(responses.shape[1])
    for unit, weight in enumerate(weights):
        share = laws[now[unit], rows[unit]]
        fits = responses[now[unit]] == rows[unit]
        goal += weight / share * fits * outputs[unit, responses[then[unit]]]
    ends = [
        sign * linprog(sign * goal, A_eq=demands, b_eq=laws.T.ravel(), bounds=(0, 1), method="highs").fun
        for sign in (1.0, -1.0)
    ]
    return float(ends[0]), float(ends[1])
