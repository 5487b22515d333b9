"""Units whose concepts are known: what the model may say of each, once the query is set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import unknown

from . import intervals
from .api import Plan
from .concepts import BadConcepts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK = 2**20  # inputs of the classifier held at once, and the most outputs for one unit


def grid(levels: Sequence[Floats]) -> Floats:
    """Every combination of levels, the last one changing fastest: (cells, k)."""
    if not levels:
        return np.empty((1, 0))
    return np.stack([axis.ravel() for axis in np.meshgrid(*levels, indexing="ij")], axis=1)


class Law(NamedTuple):
    """The distribution of one concept given its causes, from the training rows.

    Parameters
    ----------
    parents : columns of its causes
    shares : by setting of the causes, the (n_levels,) shares of its levels
    """

    parents: list[int]
    shares: dict[bytes, Floats]

    def of(self, settings: Floats, n_levels: int) -> Floats:
        """(n, n_levels) shares; ones, which bound nothing, at settings that were never seen."""
        unseen = np.ones(n_levels)
        return np.stack([self.shares.get(setting.tobytes(), unseen) for setting in settings + 0.0])


class Units:
    """Ends of the answer for units whose concepts are known, for one query.

    Parameters
    ----------
    plan : what the query moves on its way to the features
    query : by column of the concepts, the value that is set
    concepts : names by column
    features : columns that the model looks at
    levels_of : the levels of a column
    evaluate : from (n, n_features) values to (n,) outputs
    """

    def __init__(
        self,
        plan: Plan,
        query: Mapping[int, float],
        concepts: Sequence[str],
        features: Sequence[int],
        levels_of: Callable[[int], Floats],
        evaluate: Callable[[Floats], Floats],
    ) -> None:
        self.plan, self.query, self.features, self.evaluate = plan, dict(query), list(features), evaluate
        self.column = {name: number for number, name in enumerate(concepts)}
        for name in plan.moved:
            self._require(name, "what the query moves on its way to a feature has to be known")
        self.moved = [self.column[name] for name in plan.moved]
        self.levels = [levels_of(j) for j in self.moved]
        self.law: Law | None = None
        cells = math.prod(map(len, self.levels))
        if cells > CHUNK:
            problem = f"the query moves {len(self.moved)} concepts with {cells} combinations"
            raise BadConcepts(problem, where="query", mend="ask a query that moves fewer, or the repaired one")

    @property
    def needed(self) -> list[int]:
        """Columns of the concepts that an answer depends on."""
        kept = [j for j in self.features if j not in self.query and j not in self.moved]
        causes = self.law.parents if self.law else []
        return sorted({*kept, *self.moved, *(self.query if self.moved else ()), *causes})

    def use_independent(self, names: Sequence[str], graph: Any, training: Floats) -> None:
        """Shrink the interval where the only concept that moves is said to share no hidden cause with anything.

        Parameters
        ----------
        names : concepts of which that is said
        graph : the causal graph, its edges known
        training : (n, n_concepts) rows that the concept's distribution given its causes is taken from
        """
        for name in names:
            if name not in graph:
                raise unknown("concept", str(name), graph.names, where="independent")
            if graph.siblings(name):
                problem = f"the graph says that it shares a hidden cause with {graph.siblings(name)[0]}"
                raise BadConcepts(problem, where=f"independent, {name}", mend="leave out the arc or the claim")
        if len(self.moved) != 1 or self.plan.moved[0] not in names or not graph.whole or graph.possible:
            return
        causes = graph.parents(self.plan.moved[0])
        for cause in causes:
            self._require(cause, f"it is a cause of {self.plan.moved[0]}, whose distribution is needed")
        parents = [self.column[cause] for cause in causes]
        settings, place = np.unique(training[:, parents] + 0.0, axis=0, return_inverse=True)
        counts = np.zeros((len(settings), len(self.levels[0])))
        np.add.at(counts, (place.ravel(), self._codes(0, training)), 1.0)
        shares = counts / counts.sum(axis=1, keepdims=True)
        self.law = Law(parents, {row.tobytes(): share for row, share in zip(settings, shares)})

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """Least and largest answer of each unit, each different unit computed once.

        Parameters
        ----------
        values : (n, n_concepts) concepts; columns that are not needed are not looked at
        """
        needed = self.needed
        different, back = np.unique(values[:, needed], axis=0, return_inverse=True)
        units = np.zeros((len(different), values.shape[1]))
        units[:, needed] = different
        size = max(1, CHUNK // (math.prod(map(len, self.levels)) * max(1, len(self.features))))
        found = [self._ends(units[start : start + size]) for start in range(0, len(units), size)]
        low, high = (np.concatenate(end) for end in zip(*found))
        return low[back.ravel()], high[back.ravel()]

    def _ends(self, units: Floats) -> tuple[Floats, Floats]:
        outputs = self._outputs(units)
        codes = np.empty((len(units), len(self.moved)), np.int64)
        for k in range(len(self.moved)):
            codes[:, k] = self._codes(k, units)
        if self.law is not None:
            return self._ends_by_law(self.law, units, outputs, codes[:, 0])
        forced = np.zeros(codes.shape, bool)
        for k, parents in enumerate(self.plan.queried_parents):
            for name in parents:
                forced[:, k] |= units[:, self.column[name]] != self.query[self.column[name]]
        sizes = [len(levels) for levels in self.levels]
        return intervals.extremes(outputs, codes, forced, self.plan.moved_parents, sizes)

    def _ends_by_law(self, law: Law, units: Floats, outputs: Floats, codes: Ints) -> tuple[Floats, Floats]:
        before, after = units[:, law.parents], units[:, law.parents].copy()
        for place, column in enumerate(law.parents):
            if column in self.query:
                after[:, place] = self.query[column]
        n_levels = len(self.levels[0])
        now, then = law.of(before, n_levels), law.of(after, n_levels)
        impossible = np.take_along_axis(now, codes[:, None], axis=1)[:, 0] == 0  # never seen so in training
        now[impossible], then[impossible] = 1.0, 1.0
        low, high = intervals.independent_extremes(outputs, codes, now, then)
        same = (before == after).all(axis=1)  # its causes stay as they are, and so does it
        as_it_is = np.take_along_axis(outputs, codes[:, None], axis=1)[:, 0]
        return np.where(same, as_it_is, low), np.where(same, as_it_is, high)

    def _outputs(self, units: Floats) -> Floats:
        """(n, L_1 or 1, ...) outputs for each value of the moved concepts, the query set."""
        looked_at = [j in self.features for j in self.moved]
        free = [j for j, seen in zip(self.moved, looked_at) if seen]
        cells = grid([levels for levels, seen in zip(self.levels, looked_at) if seen])
        values = np.repeat(units[:, self.features], len(cells), axis=0)
        for place, column in enumerate(self.features):
            if column in self.query:
                values[:, place] = self.query[column]
            elif column in free:
                values[:, place] = np.tile(cells[:, free.index(column)], len(units))
        shape = [len(levels) if seen else 1 for levels, seen in zip(self.levels, looked_at)]
        return self.evaluate(values).reshape(len(units), *shape)

    def _codes(self, k: int, values: Floats) -> Ints:
        """The level numbers of a moved concept."""
        column, levels = values[:, self.moved[k]], self.levels[k]
        codes = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
        strange = np.flatnonzero(levels[codes] != column)
        if len(strange):
            problem = f"{column[strange[0]]:g} was never observed in training"
            raise BadConcepts(problem, where=f"concept {self.plan.moved[k]}", mend="leave such rows out")
        return codes

    def _require(self, name: str, why: str) -> None:
        if name not in self.column:
            problem = f"{name!r} is not among the concepts"
            raise BadConcepts(problem, where="concepts", mend=f"give a column {name}: {why}")
