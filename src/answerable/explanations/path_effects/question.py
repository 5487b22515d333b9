"""The question: from a table and the parts of its columns to effects along paths, or to why they cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from answerable.answer import Answer
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    from answerable.run import Run

SMALLEST_TABLE = {
    "department": ["A", "A", "B", "B", "A", "A", "B", "B"],
    "sex": ["male", "male", "male", "male", "female", "female", "female", "female"],
    "admission": ["admitted", "rejected", "admitted", "rejected", "admitted", "rejected", "admitted", "rejected"],
    "applicants": [300, 190, 80, 140, 110, 60, 150, 330],
}


class PathEffects(Question):
    """Through which path does a sensitive attribute move a decision?

    Path-specific effects (Zhang, Jung, Mahajan, Shanmugam and Joshi, NeurIPS 2025) for ordered mediators: the
    difference in outcome between two groups is split into a direct effect and one through each block of mediators,
    by cross-fitted, doubly robust, self-normalised scores with intervals of sampling error. Where the groups overlap
    too little, or a given graph says that no data could tell, the answer says so.
    """

    name: ClassVar[str] = "path-effects"
    chance: ClassVar[bool] = True
    smallest: ClassVar[dict[str, Any]] = {
        "table": SMALLEST_TABLE,
        "treatment": "sex",
        "outcome": "admission",
        "mediators": ["department"],
        "reference": "male",
        "comparison": "female",
        "positive": "admitted",
        "counts": "applicants",
        "learner": "cells",
    }

    table: Annotated[Any, Subject("table")] = Field(
        description="CSV or Parquet file, or a dataframe; one row per person, stay or application"
    )
    treatment: str = Field(min_length=1, description="column of the attribute whose effect is asked for")
    outcome: str = Field(min_length=1, description="column of the decision: numbers, or words of which one is positive")
    mediators: list[str] = Field(
        min_length=1,
        max_length=8,
        description='blocks of columns between the two, in causal order: "state: lactate, ph", or one column alone',
    )
    covariates: list[str] | None = Field(
        None, min_length=1, description="columns that come before anything the attribute moves; none by default"
    )
    reference: str | None = Field(None, description="the attribute's value that is compared with; 0 by default")
    comparison: str | None = Field(None, description="its value whose effect is asked for; 1 by default")
    positive: str | None = Field(None, description="value of the outcome that counts as 1, where it is a word")
    graph: Annotated[Any, Subject("causal_graph")] = Field(
        None,
        description='a causal graph of the columns, in words ("sex -> {department admission}; department -> admission")'
        " or a file; then the answer says which effects no data can tell",
    )
    unit: str | None = Field(None, min_length=1, max_length=40, description="unit of a numeric outcome, in words")
    groups: str | None = Field(
        None, description="column of persons or hospitals, whose rows share a fold and may depend on each other"
    )
    counts: str | None = Field(None, description="column that says how many rows each row stands for")
    drop_missing: bool = Field(False, description="whether rows without attribute or outcome are left out")
    learner: Literal["trees", "linear", "cells"] = Field(
        "trees", description="what learns propensities and outcomes; cells are means of rows of equal values"
    )
    nested: Literal["reuse", "split"] = Field(
        "reuse", description="whether regressions on regressions are fitted on all rows or on parts of their own"
    )
    folds: int | None = Field(
        None, ge=1, le=50, unit="folds", description="folds of cross-fitting; 5 by default, for cells 1, which is none"
    )
    splits: int = Field(1, ge=1, le=101, unit="splits", description="repetitions with other folds; the median is taken")
    clip: float = Field(1e-4, gt=0, le=0.1, unit="1", description="propensities are moved into [clip, 1 - clip]")
    weights: Literal["normalised", "by fold", "canonical"] = Field(
        "normalised", description="whether weights are divided by their mean, over all rows or each fold, or left"
    )
    trees: int = Field(50, ge=1, le=5000, unit="trees", description="trees of each fit")
    depth: int = Field(3, ge=1, le=6, unit="splits", description="levels of splits of a tree")
    level: float = Field(0.95, ge=0.5, le=0.999, unit="1", description="confidence of intervals")
    least: float = Field(
        0.0, ge=0, le=1e9, unit="of the effects", description="size from which an effect matters, in points or the unit"
    )

    def answer(self, run: Run) -> Answer:
        """Fit, check the overlap, and put the effects into words."""
        from . import figures
        from .answering import Asked, answered

        run.status("fitting")
        asked = Asked.of(self, run)
        return answered(asked, figures)
