"""What was asked: queries in words, their verdicts, and the tables and the drawing of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from answerable.errors import BadInput, unknown
from answerable.subjects.causal_graph import CausalGraph, load

from .api import (
    INPUT,
    Admissibility,
    MaximalFeatures,
    admissible,
    answerable_queries,
    count_answerable,
    maximal_features,
    naive_meaning,
    named,
    queried,
)

if TYPE_CHECKING:
    from .question import CounterfactualQueries

MOST_DRAWN = 40
MOST_SINGLES = 1000
MOST_LISTED = 50_000  # queries in the table of sets


@dataclass(frozen=True)
class Item:
    """One query and its verdict.

    Parameters
    ----------
    values : value in words by concept; None where none was given
    verdict : whether it is answerable
    meaning : what the naive intervention answers
    """

    values: Mapping[str, str | None]
    verdict: Admissibility
    meaning: str

    @property
    def query(self) -> list[str]:
        """The concepts that would be set."""
        return list(self.values)

    @property
    def witnesses(self) -> tuple[str, ...]:
        """What blocks it."""
        return self.verdict.witnesses

    @property
    def words(self) -> str:
        """The query as it was asked."""
        return ", ".join(name if value is None else f"{name} = {value}" for name, value in self.values.items())

    @property
    def word(self) -> str:
        """Yes, no or depends."""
        return "yes" if self.verdict.answerable else "depends" if self.verdict.under == "some" else "no"


@dataclass(frozen=True)
class Asked:
    """All queries of one ask."""

    graph: CausalGraph
    features: Sequence[str]
    sees_input: bool
    items: Sequence[Item]
    largest: MaximalFeatures

    @classmethod
    def of(cls, question: CounterfactualQueries) -> Asked:
        """Read graph, features and queries.

        Raises
        ------
        UnknownName, BadInput : a concept that the graph does not have; a query that says nothing
        """
        graph = load(question.graph)
        given = question.features
        features = [name for name in graph.names if name != question.outcome] if given is None else list(given)
        if question.outcome in features:
            mend = "leave it out of the features"
            raise BadInput(f"{question.outcome!r} is the outcome itself", where="features", mend=mend)
        sees_input = question.sees_input
        if INPUT in features and INPUT not in graph:
            features, sees_input = [name for name in features if name != INPUT], True
        asked = _queries(question.queries, graph, question.outcome)
        items = [
            Item(
                values,
                admissible(graph, features, list(values), sees_input=sees_input),
                naive_meaning(graph, features, values, sees_input=sees_input),
            )
            for values in asked
        ]
        universe = [name for name in graph.names if name != question.outcome]
        return cls(graph, features, sees_input, items, maximal_features(graph, map(list, asked), universe))

    @property
    def answerable(self) -> int:
        """How many queries are answerable."""
        return sum(item.verdict.answerable for item in self.items)

    def shown(self) -> Item:
        """The query that is drawn: the first that is not answerable, else the first."""
        return next((item for item in self.items if not item.verdict.answerable), self.items[0])

    @property
    def is_vast(self) -> bool:
        """Whether there are too many concepts to ask of each."""
        return len(self.graph.known) > MOST_SINGLES

    @property
    def _queried(self) -> set[str]:
        return {name for item in self.items for name in item.query}

    def counted(self) -> tuple[int, int] | None:
        """How many sets of concepts are answerable, and of how many."""
        return count_answerable(self.graph, self.features, sees_input=self.sees_input)

    def queries_frame(self) -> pl.DataFrame:
        """One row a query."""
        rows = [
            (
                item.words, item.word, item.verdict.under, named(item.witnesses),
                " -> ".join(item.verdict.paths[0]) if item.witnesses else "", item.meaning,
                named(item.verdict.repaired),
            )
            for item in self.items
        ]  # fmt: skip
        names = ["query", "answerable", "graphs", "blocked_by", "path", "naive_meaning", "nearest_question"]
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def concepts_frame(self) -> pl.DataFrame:
        """One row a concept."""
        reasons = {entry.concept: entry for entry in self.largest.excluded}
        asked = self._queried
        features, largest = set(self.features), set(self.largest.features)
        rows = []
        for name in self.graph.names:
            reason = reasons.get(name)
            rows.append(
                (
                    name, name in features, name in asked, name in largest,
                    ", ".join(reason.query) if reason else "", " -> ".join(reason.path) if reason else "",
                    bool(reason and reason.unsure),
                )
            )  # fmt: skip
        schema: dict[str, Any] = {
            "concept": pl.String, "feature": pl.Boolean, "queried": pl.Boolean, "in_largest_set": pl.Boolean,
            "excluded_by": pl.String, "path": pl.String, "unsure": pl.Boolean,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def sets_frame(self, largest: int) -> pl.DataFrame:
        """Every query of at most ``largest`` concepts, of as many concepts as a table holds; in a graph of more than a
        thousand, of those alone that are asked of.
        """
        asked = self._queried
        universe = [name for name in self.graph.known if not self.is_vast or name in asked]
        while largest > 1 and sum(math.comb(len(universe), size) for size in range(largest + 1)) > MOST_LISTED:
            largest -= 1
        found = answerable_queries(
            self.graph, self.features, max_size=largest, universe=universe, sees_input=self.sees_input
        )
        words = {
            name: pl.Series(map(named, found[name].to_list()), dtype=pl.String) for name in ("query", "blocked_by")
        }
        return found.with_columns(**words)

    def drawing(self, item: Item) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Nodes and edges with their looks, at most forty nodes: those that matter to the query first."""
        graph = self.graph
        moved = graph.descendants(item.query, possible=True)
        paths = {edge for path in item.verdict.paths for edge in itertools.pairwise(path)}
        on_paths = {name for edge in paths for name in edge}
        features, witnesses = set(self.features), set(item.witnesses)

        def look(name: str) -> str:
            if name in item.query:
                return "start"
            if name in witnesses:
                return "trouble"
            if name in moved:
                return "reached"
            return "plain" if name in features else "faint"

        rank = {"start": 0, "trouble": 1, "reached": 3, "plain": 4, "faint": 5}
        chosen = sorted(graph.names, key=lambda name: 2 if name in on_paths else rank[look(name)])[:MOST_DRAWN]
        nodes = [{"node": name, "look": look(name)} for name in graph.names if name in set(chosen)]
        kinds = (("directed", graph.directed), ("possible", graph.possible), ("bidirected", graph.bidirected))
        edges = [
            {"cause": a, "effect": b, "kind": kind, "look": "trouble" if (a, b) in paths else "plain"}
            for kind, pairs in kinds
            for a, b in pairs
        ]
        return nodes, edges


def _queries(given: Sequence[str] | None, graph: CausalGraph, outcome: str | None) -> list[dict[str, str | None]]:
    if given is None:
        names = [name for name in graph.known if name != outcome]
        if len(names) > MOST_SINGLES:
            mend = "name the queries that matter"
            raise BadInput(f"the graph has {len(names)} concepts", where="queries", mend=mend)
        return [{name: None} for name in names]
    found: list[dict[str, str | None]] = []
    for number, text in enumerate(given, 1):
        values = _query(text, graph, f"queries, entry {number}")
        if outcome in values:
            mend = "ask of its causes"
            raise BadInput(f"{outcome!r} is the outcome itself", where=f"queries, entry {number}", mend=mend)
        queried(graph, list(values))
        if values in found:
            problem, mend = f"{text[:60]!r} is entry {found.index(values) + 1} again", "ask each question once"
            raise BadInput(problem, where=f"queries, entry {number}", mend=mend)
        found.append(values)
    return found


def _query(text: str, graph: CausalGraph, where: str) -> dict[str, str | None]:
    """Concepts and values of a query in words, such as ``Smiling = 0, Male``."""
    if text.strip() in graph:  # a name may hold a comma or an equals sign
        return {text.strip(): None}
    values: dict[str, str | None] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.replace("==", "=").partition("="))
        if not name or (equals and not value):
            raise BadInput(
                f"{text[:60]!r} says nothing", where=where, mend='write "Smiling" or "Smiling = 0, Male = 1"'
            )
        if name not in graph:
            raise unknown("concept", name, graph.names, where=where)
        if name in values:
            raise BadInput(f"{name!r} is set twice", where=where, mend="name each concept once")
        values[name] = value or None
    return values
