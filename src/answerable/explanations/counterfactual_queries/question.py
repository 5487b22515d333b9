"""The question: from a causal graph, a model's features and what-if questions to verdicts, costs and answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    from answerable.run import Run

    from .asked import Asked
    from .fitted import Fitted

QUERIES = {
    "query": "the concepts that would be set, with their values where some are given",
    "answerable": "yes; no; or depends, where an edge of the graph is unsure",
    "graphs": "under all, some or none of the possible graphs it is answerable",
    "blocked_by": "the features that it would move without setting them; X is the input itself",
    "path": "a directed path from the query to the first of them",
    "naive_meaning": "what overwriting the queried concepts and predicting again really answers",
    "nearest_question": "the smallest larger query that is answerable; empty where there is none",
}
CONCEPTS = {
    "concept": "the concept",
    "feature": "whether the model predicts from it",
    "queried": "whether one of the questions would set it",
    "in_largest_set": "whether it belongs to the largest set of features that answers every question",
    "excluded_by": "the question that moves it, where it does not",
    "path": "a directed path from that question to it",
    "unsure": "whether that path has an edge that is only possible",
}
SETS = {
    "query": "concepts that would be set together",
    "size": "their number [concepts]",
    "answerable": "whether the features in use answer it",
    "blocked_by": "the features that it would move without setting them",
}
TRADEOFF = {
    "features": "concepts that the model predicts from",
    "answerable": "how many of the questions they answer [questions]",
    "all_answerable": "whether they answer every question",
    "log_loss": "mean log loss of held-out rows [nats]",
    "log_loss_low": "lower end of its interval [nats]",
    "log_loss_high": "upper end [nats]",
    "accuracy": "share of held-out labels that are right [1]",
    "accuracy_low": "lower end of its interval [1]",
    "accuracy_high": "upper end [1]",
    "extra_loss": "log loss more than that of the best set, row by row [nats]",
    "extra_loss_low": "lower end of its interval [nats]",
    "extra_loss_high": "upper end [nats]",
}
CASES = {
    "row": "number of the row in the table, from 1",
    "query": "the concepts that would be set, and to what",
    "factual": "probability of the outcome as it is [1]",
    "prob": "probability had the query been so; missing where only an interval is known [1]",
    "lower": "least probability that agrees with everything observable [1]",
    "upper": "largest such probability [1]",
    "identified": "whether both ends are one",
    "naive": "what overwriting the queried concepts gives: the answer to another question where not identified [1]",
}

SMALLEST_TABLE = {
    "Male": [0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1],
    "Smiling": [1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0],
    "High_Cheekbones": [1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1],
    "Attractive": [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1],
}


class CounterfactualQueries(Question):
    """Which what-if questions may this model be asked at all?

    Causal interpretability (Hwang, Pan and Bareinboim, NeurIPS 2025): from a causal graph of named concepts, or only
    the descendants of those in question, it decides which questions a model that predicts from concepts can answer,
    shows what blocks the others, finds the largest set of features that answers all, and what that costs. Answers come
    as points where they are identified, as sharp intervals where not.
    """

    name: ClassVar[str] = "counterfactual-queries"
    smallest: ClassVar[dict[str, Any]] = {
        "graph": {"edges": ["Male <-> Smiling", "Smiling -> High_Cheekbones"]},
        "queries": ["Smiling = 0", "Male = 1", "High_Cheekbones"],
        "concepts": SMALLEST_TABLE,
        "outcome": "Attractive",
        "folds": 3,
    }

    graph: Annotated[Any, Subject("causal_graph")] = Field(
        description="the causal graph of the concepts: a file of DOT, dagitty, TOML, JSON or a CSV of edges, or edges"
        ' in words, "Smiling -> High_Cheekbones; Smiling <-> Male"; in Python also networkx; or descendants alone'
    )
    queries: list[str] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description='what would be set, "Smiling", "Smiling = 0" or "Smiling = 0, Male = 1"; each concept by itself by'
        " default",
    )
    features: list[str] | None = Field(
        None, min_length=1, description="concepts that the model predicts from; all of the graph by default"
    )
    sees_input: bool = Field(
        False, description="whether the model also sees the input itself: pixels, an embedding, soft concepts"
    )
    largest_query: int = Field(
        2, ge=1, le=6, unit="concepts", description="size up to which every query is listed, answerable or not"
    )
    concepts: Annotated[Any, Subject("concept_table")] = Field(
        None,
        description="a table of the concepts' labels, CSV or Parquet, CelebA's list_attr_celeba.txt or CUB's"
        " image_attribute_labels.txt; then accuracy and answers are computed",
    )
    outcome: str | None = Field(None, description="column of that table that the model predicts")
    target: str | None = Field(
        None, description="value of the outcome whose probability is answered; the last one in order by default"
    )
    inputs: Annotated[Any, Subject("arrays")] = Field(
        None,
        description="inputs from which concepts are extracted, .npz or .npy, for instance images; without them the"
        " concepts are taken as given",
    )
    extractor: Literal["logistic", "network"] = Field(
        "logistic", description="what extracts each concept from the inputs"
    )
    joint: bool = Field(False, description="whether concepts are extracted together, not one by one")
    classifier: Literal["logistic", "boosting", "cells"] = Field(
        "logistic", description="what predicts the outcome from the features; cells counts each combination"
    )
    independent: list[str] | None = Field(
        None, min_length=1, description="concepts that share no hidden cause with anything, the input included"
    )
    cases: list[int] | None = Field(
        None, min_length=1, max_length=10_000, description="numbers of the rows to answer for; the first 8 by default"
    )
    partition: Annotated[Any, Subject("table")] = Field(
        None,
        description="which images to fit on and which to judge by in place of folds: CelebA's list_eval_partition.txt,"
        " or a table with columns image and part (train, valid, test)",
    )
    folds: int = Field(5, ge=2, le=20, unit="folds", description="folds of cross-validation")

    def answer(self, run: Run) -> Answer:
        """Decide every query, then, with a table, what answers cost and what they are."""
        from .asked import Asked

        asked = Asked.of(self)
        fitted = None
        if self.concepts is not None:
            from .fitted import Fitted

            run.status("fitting")
            fitted = Fitted.of(self, asked, run)
        elif any(given is not None for given in (self.outcome, self.inputs, self.cases, self.partition)):
            raise BadInput("there is no table of concepts", where="concepts", mend="give one with the outcome's column")
        tables = _tables(asked, fitted, self.largest_query)
        return Answer(
            summary=_summary(asked, fitted),
            metrics=_metrics(asked, fitted),
            tables=tables,
            figures=_figures(asked, fitted, tables),
            limits=_limits(asked, fitted, self),
            verdict=_verdict(asked, fitted),
        )


def _tables(asked: Asked, fitted: Fitted | None, largest_query: int) -> dict[str, Table]:
    found = {
        "queries": Table(asked.queries_frame(), QUERIES, title="Each question, and what blocks it"),
        "concepts": Table(asked.concepts_frame(), CONCEPTS, title="Which concepts the model may look at"),
        "sets": Table(asked.sets_frame(largest_query), SETS, title="Every question of few concepts"),
    }
    if fitted is not None:
        found["tradeoff"] = Table(fitted.tradeoff, TRADEOFF, title="What answerability costs")
        if fitted.cases.height:
            found["cases"] = Table(fitted.cases, CASES, title="Answers, case by case")
    return found


def _figures(asked: Asked, fitted: Fitted | None, tables: dict[str, Table]) -> dict[str, Figure]:
    from . import figures

    shown = asked.shown()
    drawn = {
        "graph": Figure.drawn(
            figures.query_graph, *asked.drawing(shown), query=shown.query, witnesses=shown.witnesses,
            unsure=shown.verdict.under == "some", sees_input=asked.sees_input,
        )
    }  # fmt: skip
    if fitted is not None:
        drawn["tradeoff"] = Figure.drawn(
            figures.tradeoff_chart, fitted.tradeoff, names=fitted.sets, chosen=", ".join(asked.features),
            largest=", ".join(asked.largest.features), queries=len(asked.items),
        )  # fmt: skip
        if fitted.cases.height:
            drawn["cases"] = Figure.drawn(
                figures.answer_bars, tables["cases"].frame, outcome=fitted.outcome, target=fitted.target
            )
    return drawn


def _summary(asked: Asked, fitted: Fitted | None) -> str:
    said = _said(asked)
    if asked.answerable and fitted is not None and fitted.soft:
        return f"{said[:-1]}, if {_few(fitted.soft)} {'is a concept' if len(fitted.soft) == 1 else 'are concepts'}."
    return said


def _said(asked: Asked) -> str:
    yes, n = asked.answerable, len(asked.items)
    if asked.sees_input:
        return (
            "The model sees the input itself besides its concepts, so that no what-if question about it has an answer."
        )
    if yes == n:
        said = f"All {n} questions can" if n > 1 else "The question can"
        seen = len(asked.features)
        model = f"a model that predicts from {f'these {seen} concepts' if seen > 1 else 'this one concept'}"
        return f"{said} be answered by {model if seen else 'a model that predicts from no concept at all'}."
    first = next(item for item in asked.items if not item.verdict.answerable)
    moves = "may move" if first.verdict.under == "some" else "moves"
    reason = f"setting {_few(first.query)} {moves} {_few(first.witnesses)}, which the model looks at"
    if n > 1 and not yes:
        return f"None of {n} questions can be answered: {reason}."
    return f"{yes} of {n} questions can be answered; {reason}." if n > 1 else f"It cannot be answered: {reason}."


def _few(names: Any) -> str:
    listed = list(names)
    return ", ".join(listed) if len(listed) <= 2 else f"{listed[0]} and {len(listed) - 1} more"


def _verdict(asked: Asked, fitted: Fitted | None) -> Verdict:
    yes, n = asked.answerable, len(asked.items)
    unsure = [item for item in asked.items if item.verdict.under == "some"]
    if asked.sees_input:
        return Verdict("not answerable", "the model sees the input itself", "predict from the concepts alone")
    if yes and fitted is not None and fitted.soft:
        hold = "holds" if len(fitted.soft) == 1 else "hold"
        reason = f"{_few(fitted.soft)} {hold} fractions, as probabilities do: a model of these sees more than concepts"
        return Verdict("undecided", reason, "give labels, or leave them out of the features")
    if yes == n:
        said = f"all {n} questions are" if n > 1 else "the question is"
        return Verdict("answerable", f"{said} answerable under every possible graph")
    first = next(item for item in asked.items if not item.verdict.answerable)
    mend = f"leave {_few(first.witnesses)} out of the features, or ask of {_few(first.verdict.repaired)} together"
    if len(unsure) == n - yes:
        path = " -> ".join(first.verdict.paths[0])
        many = _share(len(unsure), n, "depends", "depend")
        return Verdict("undecided", f"{many} on edges that are only possible ({path})", mend)
    word = "partly answerable" if yes else "not answerable"
    many = _share(n - yes, n, "moves a feature that it does not set", "move a feature that they do not set")
    return Verdict(word, many, mend)


def _share(k: int, n: int, one: str, many: str) -> str:
    """So many of all questions, with the verb that fits."""
    return f"it {one}" if n == 1 else f"{k} of {n} questions {one if k == 1 else many}"


def _metrics(asked: Asked, fitted: Fitted | None) -> dict[str, Metric]:
    sets = asked.counted()
    found = {
        "queries": _exact(len(asked.items), "questions", "as asked", "Questions"),
        "answerable_queries": _exact(asked.answerable, "questions", "Theorem 1, every graph", "Answerable questions"),
        "features": _exact(len(asked.features), "concepts", "as given", "Features"),
        "largest_features": _exact(
            len(asked.largest.features), "concepts", "Theorem 2", "Largest set of features that answers every question"
        ),
        "answerable_sets": Metric(
            math.nan if sets is None else sets[0], kind="exact", unit="sets", method="every set of concepts, by bits",
            label="Sets of concepts that may be asked of together",
            reason="" if sets is not None else "there are more than twenty concepts, 2^20 sets and more",
        ),
    }  # fmt: skip
    if sets is not None:
        found["sets"] = _exact(sets[1], "sets", "all non-empty sets of concepts", "Sets of concepts")
    return found | (fitted.metrics() if fitted is not None else {})


def _exact(value: float, unit: str, method: str, label: str) -> Metric:
    return Metric(value, kind="exact", unit=unit, method=method, label=label)


def _limits(asked: Asked, fitted: Fitted | None, question: CounterfactualQueries) -> list[str]:
    found = [
        "The graph is taken as given: a missing descendant makes a question look answerable that is not.",
        "Answers are about what the model would predict, not about what would happen to the person or the thing.",
    ]
    if not asked.graph.whole:
        found.append("Only descendants are known, so that each counts as a direct effect and intervals are outer ones.")
    if asked.is_vast:
        found.append(
            f"The graph has {len(asked.graph)} concepts: the table of sets is of those alone that are asked of."
        )
    if asked.graph.possible:
        found.append(
            "Where an edge is only possible, intervals hold whichever graph is true and may be wider than need be."
        )
    if fitted is None:
        return found
    return found + fitted.limits(question)
