"""The question: from a fitted additive model and rows to proved reasons and changes in words, tables and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from answerable.answer import Answer, Figure, Table
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    import polars as pl

    from answerable.run import Run
    from answerable.subjects.additive_model import AdditiveModel

    from .cases import Cases

MOST_ROWS_COUNTED = 200  # rows for which completions and class Shapley values are computed

CASES = {
    "row": "number of the row in the table, from 1",
    "decision": "what the model decides",
    "score": "score less the cutoff; of several classes the lead over the next one [score]",
    "reason": "the fewest features that settle the decision, by name",
    "change": "the least to change so that the decision flips, with the new values; empty where nothing flips it",
    "reason_size": "their number [features]",
    "change_size": "number of changed features; 0 where nothing flips the decision [features]",
    "reason_slack": "by how much the worst completion of the reason still clears the line [score]",
    "change_slack": "by how much the change passes the line; where nothing flips it, what is lacking [score]",
    "reason_guarantee": "exact, subset-minimal (nothing can be left out) or interval (bounds)",
    "change_guarantee": "exact, subset-minimal or interval",
    "reason_bound": "no reason is smaller than this [features]",
    "change_bound": "no change is smaller (with costs: cheaper) than this; missing where nothing flips it",
    "in_every_reason": "features that stand in every smallest reason; missing for pairs, classes and regressions",
    "in_some_reason": "features that stand in some smallest reason; more than the reason where features are tied",
    "at_line": "whether the score is exactly the cutoff, where class 1 is decided; a tie of scores for several classes",
    "borderline": "whether a test lay within rounding of the line and was decided in fractions",
}
FEATURES = {
    "row": "number of the row in the table, from 1",
    "feature": "the feature",
    "value": "its value in this row",
    "component": "what it adds to the score [score]",
    "excess": "the most that another value of it can take away from the decision [score]",
    "in_reason": "whether it belongs to the smallest reason",
    "in_change": "whether it belongs to the smallest change",
    "new_value": "its value after that change; missing where it stays",
    "shapley": "its Shapley value of what was asked for: score, probability or class",
    "error": "bound of that value's error beyond rounding: proved, or where sampled of 95 in 100 samples",
}
COMPLETIONS = {
    "row": "number of the row in the table, from 1",
    "probability": "probability that the decision stays as it is when only the known features are known [1]",
    "low": "lower end, proved unless sampled [1]",
    "high": "upper end, proved unless sampled [1]",
    "engine": "what computed it",
    "guarantee": "exact; interval, of proved ends; or sampled, an interval of 95 %",
}
REDUNDANT = {
    "feature": "the feature",
    "answer": "redundant: no completion lets it change the decision; matters: one does; unknown",
    "proof": "what proves the answer",
}
COMPLEXITY = {
    "query": "what can be asked of this model",
    "hardness": "how the work grows, in general for models of this kind",
    "engine": "what answers it here",
    "guarantee": "what the answer is worth",
}


def _levels(name: str, points: list[int]) -> dict[str, Any]:
    """A feature of whole numbers 0, 1, ... with these points."""
    edges = [k - 0.5 for k in range(len(points) + 1)]
    return {"name": name, "edges": edges, "coefficients": points, "low": 0, "high": len(points) - 1, "integer": True}


# Worked by hand in the tests: with (2, 0, 1, 1) the score is 4, and a and c alone settle it.
SMALLEST_MODEL = {
    "format": "answerable additive model 1",
    "task": "binary",
    "classes": ["below", "reached"],
    "cutoff": 0.0,
    "logit": False,
    "source": "scorecard",
    "intercept": [-2.0],
    "features": [
        _levels("a", [-3, 0, 4]),
        _levels("b", [-2, 5]),
        _levels("c", [-1, 1, 2, -4]),
        _levels("d", [0, 3]),
    ],
    "pairs": [],
}


class AdditiveReasons(Question):
    """What is the smallest reason for this decision, and the smallest change that flips it?

    Exact queries over additive models (Bassan, Moshkovitz and Katz, NeurIPS 2025): the fewest features that settle a
    decision whatever the others are, the least that flips it, how likely it is when only some facts are known, and
    Shapley values of score, probability and class. Each answer carries a witness and a bound.
    """

    name: ClassVar[str] = "additive-reasons"
    smallest: ClassVar[dict[str, Any]] = {
        "model": SMALLEST_MODEL,
        "rows": {"a": [2, 0], "b": [0, 0], "c": [1, 3], "d": [1, 0]},
        "output": "class",
        "weights": "uniform",
    }  # fmt: skip

    model: Annotated[Any, Subject("additive_model")] = Field(
        description="the additive model: a scorecard (CSV), an EBM's to_json file, a skops file of a scikit-learn"
        " pipeline, a neural additive model's safetensors, or answerable's own JSON; in Python also the fitted object"
    )
    rows: Annotated[Any, Subject("table")] = Field(
        description="a table, CSV or Parquet, with a column for each feature and a row for each case"
    )
    cases: list[int] | None = Field(
        None, min_length=1, max_length=100_000, description="numbers of the rows to explain, from 1; all by default"
    )
    output: Literal["score", "probability", "class"] = Field(
        "score", description="what the Shapley values are of; the probability needs a model of log odds"
    )
    known: list[str] | None = Field(
        None, min_length=1, description="features taken as known: how likely is each decision when the others are not"
    )
    domain: list[str] | None = Field(
        None,
        min_length=1,
        description='narrower domains, "age: 18 to 75" or "purpose: car | education"; observed ranges by default',
    )
    whole: list[str] | None = Field(None, min_length=1, description="features that take whole numbers only")
    frozen: list[str] | None = Field(None, min_length=1, description="features that cannot change")
    costs: list[str] | None = Field(
        None, min_length=1, description='cost of changing a feature, "duration: 2"; 1 for every other'
    )
    cutoff: float | None = Field(
        None, gt=0, lt=1, unit="probability", description="probability from which on class 1 is decided, for log odds"
    )
    within: float | None = Field(
        None,
        gt=0,
        unit="units of the output",
        description="for a regression, how far the output may move and still count as the same",
    )
    missing: bool = Field(True, description="whether a value may be missing where the model was fitted with such rows")
    background: Annotated[Any, Subject("table")] = Field(
        None,
        description="rows that say how features are distributed, best those that the model was fitted on; the model's"
        " own bin weights by default. A scikit-learn model has its features' ranges from them, else from rows",
    )
    weights: Literal["model", "uniform"] = Field(
        "model", description="distribution without background rows: as the model was fitted, or even over the domain"
    )
    width: float = Field(
        0.001, ge=1e-5, le=0.5, unit="probability", description="error that the certified engine aims at"
    )

    def answer(self, run: Run) -> Answer:
        """Find reasons and changes of every case, and put them into words, tables and pictures."""
        import numpy as np

        from answerable.subjects.additive_model import load
        from answerable.subjects.additive_model.one_hot import refuse_one_hot
        from answerable.subjects.table import read_table

        from .arguments import costs_of, tolerance_of
        from .cases import cases
        from .hardness import complexity
        from .telling import limits, metrics, ranges_of, summary, verdict

        table = read_table(self.rows)
        entries = _pairs(self.domain, "domain", lambda text, where: (text, where))
        past = as_rows(self.background)
        model = load(self.model, table if past is None else past, stated=entries)
        refuse_one_hot(model.features, table)
        model = self._restricted(model, entries)
        numbers = self._numbers(table.height)
        encoded = np.ascontiguousarray(model.encode(table[[number - 1 for number in numbers]], numbers=numbers))
        costs = costs_of(model, _pairs(self.costs, "costs", _cost))
        found = cases(
            model,
            encoded,
            frozen=model.numbers_of(self.frozen or ()),
            tolerance=tolerance_of(model, self.within, where="within"),
            costs=costs,
        )
        run.status("tables")
        tables = self._tables(model, encoded, found, numbers, past)
        tables["complexity"] = Table(complexity(model), COMPLEXITY, title="What each question costs for this model")
        return Answer(
            summary=summary(model, found, numbers),
            metrics=metrics(model, found, tables, costs),
            tables=tables,
            figures=self._figures(model, encoded, found, numbers, tables),
            limits=limits(model, self),
            verdict=verdict(model, found, numbers, ranges_of(model, self)),
        )

    def _restricted(self, model: AdditiveModel, entries: Mapping[str, tuple[str, str]]) -> AdditiveModel:
        model.numbers_of(list(entries), what="feature of domain")  # an unknown name is said before its value
        named = {shape.name for shape in model.features if shape.levels}
        domain = {
            name: _levels_of(text) if name in named else _interval(text, where)
            for name, (text, where) in entries.items()
        }
        return model.restrict(
            domain, integer=self.whole or (), missing=None if self.missing else False, threshold=self.cutoff
        )

    def _numbers(self, height: int) -> list[int]:
        numbers = list(range(1, height + 1)) if self.cases is None else self.cases
        for number in numbers:
            if not 1 <= number <= height:
                raise BadInput(f"there is no row {number}", where="cases", mend=f"the table has {height} rows, from 1")
        twice = next((n for n, count in Counter(numbers).items() if count > 1), None)
        if twice is not None:
            raise BadInput(f"row {twice} stands twice", where="cases", mend="ask for each row once")
        return numbers

    def _tables(
        self, model: AdditiveModel, encoded: Any, found: Cases, numbers: list[int], background: Any
    ) -> dict[str, Table]:
        import polars as pl

        from .api import features_table
        from .likelihood import completions_table
        from .mattering import redundant_features
        from .telling import case_rows

        counted = slice(0, MOST_ROWS_COUNTED)
        columns: list[Any] = [column[counted] for column in found]
        few = type(found)(*columns)
        if background is not None:
            model.encode_background(background)  # refused here, also where no table needs them
        features = features_table(
            model,
            encoded[counted],
            few,
            self.output,
            background,
            weights=self.weights,
            width=self.width,
        )
        named = pl.DataFrame({"row": range(1, len(numbers) + 1), "number": numbers})

        def renumbered(frame: pl.DataFrame) -> pl.DataFrame:
            columns = frame.columns
            joined = frame.join(named, on="row", how="left", maintain_order="left")
            return joined.drop("row").rename({"number": "row"}).select(columns)

        tables = {
            "cases": Table(case_rows(model, found, numbers), CASES, title="Reasons and changes"),
            "features": Table(renumbered(features), FEATURES, title="Feature by feature"),
        }
        if self.known is not None:
            completions = completions_table(
                model, encoded[counted], self.known, background=background, weights=self.weights, width=self.width
            )
            title = f"How sure with {', '.join(self.known)} alone"
            tables["completions"] = Table(renumbered(completions), COMPLETIONS, title=title)
        if model.task == "binary" and model.n_outputs == 1:
            tables["redundancy"] = Table(redundant_features(model), REDUNDANT, title="Features that can ever matter")
        return tables

    def _figures(
        self, model: AdditiveModel, encoded: Any, found: Cases, numbers: list[int], tables: dict[str, Table]
    ) -> dict[str, Figure]:
        import polars as pl

        from . import figures
        from .hardness import complexity_map
        from .telling import sampled_scores

        first = tables["features"].frame.filter(pl.col("row") == numbers[0])
        decided = tables["cases"].frame.row(0, named=True)
        drawn: dict[str, Figure] = {}
        if model.n_outputs == 1 and model.task == "binary" and not model.pairs:
            margin = abs(float(found.score[0]))
            held = model.numbers_of(self.frozen or ())
            drawn["margin"] = Figure.drawn(figures.margin_cascade, first, case=decided, margin=margin)
            drawn["scores"] = Figure.drawn(
                figures.score_distribution, sampled_scores(model, encoded[0], found.reason[0], held), case=decided
            )
        if not first["shapley"].is_nan().any():
            drawn["shapley"] = Figure.drawn(figures.shapley_bars, first, output=self.output, row=numbers[0])
        worth = tables["complexity"].frame["guarantee"].to_list()
        drawn["complexity"] = Figure.drawn(
            figures.complexity_map, complexity_map(model), source=model.source,
            exact=sum(word in ("exact", "exact to rounding") for word in worth), queries=len(worth),
        )  # fmt: skip
        return drawn


def as_rows(subject: Any) -> Any:
    """Background rows, read; None where there are none."""
    from answerable.subjects.table import read_table

    return None if subject is None else read_table(subject)


def _pairs(entries: list[str] | None, field: str, read: Any) -> dict[str, Any]:
    """``name: value`` lines as a dictionary."""
    found = {}
    for number, entry in enumerate(entries or [], 1):
        name, colon, value = entry.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise BadInput(
                f"{entry[:60]!r} is no name and value", where=f"{field}, entry {number}", mend='write "feature: value"'
            )
        found[name.strip()] = read(value.strip(), f"{field}, entry {number}")
    return found


def _levels_of(text: str) -> list[str]:
    return [level.strip() for level in text.split("|")]


def _interval(text: str, where: str) -> tuple[float, float]:
    low, _, high = text.partition(" to ")
    try:
        return float(low), float(high)
    except ValueError:
        mend = 'write "18 to 75"; categories, of a feature that has some, as "car | education"'
        raise BadInput(f"{text[:60]!r} is no interval", where=where, mend=mend) from None


def _cost(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text[:60]!r} is no number", where=where, mend="give a number above 0") from None
