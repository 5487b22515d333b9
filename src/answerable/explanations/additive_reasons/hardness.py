"""What each query costs, which engine runs and what its answer is worth, for a model at hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.loading import load


def complexity(model: Any) -> pl.DataFrame:
    """What each query costs for this model: its class, the engine that runs, and the guarantee.

    Returns
    -------
    query, hardness, engine, guarantee; one line a query
    """
    given = load(model)
    listed = all(shape.constant or shape.integer for shape in given.features)
    sets = _set_engines(given)
    counted = (
        ("#P-complete; pseudo-polynomial", "listed sums or lattice, else certified Fourier", "exact or interval")
        if listed else ("#P-complete", "certified Fourier, from background rows", "interval")
    )  # fmt: skip
    if given.pairs:
        sums = "sums along the graph of the pairs, else certified Fourier, else draws"
        counted = ("#P-hard", sums, "exact, interval or sampled")
    if given.n_outputs > 1:
        counted = ("#P-hard", "none for several classes", "unknown")
    free = ("coNP-complete", "ends, witnesses, listed sums", "exact or unknown")
    if not any(shape.constant or shape.integer for shape in given.features):
        free = ("linear", "ends of each range", "exact")
    if given.pairs:
        free = ("coNP-hard", "ends by elimination, witnesses, listed sums", "exact or unknown")
    if given.task != "binary":
        free = ("coNP-hard", "none for several classes or regression", "unknown")
    score = ("linear", "components less means" if given.n_outputs == 1 else "one class at a time", "exact")
    sigmoid = ("polynomial for any accuracy", "Fourier of the logistic", "exact to rounding")
    if given.pairs:
        engine = "Fourier of the logistic along the graph of the pairs, else draws"
        sigmoid = ("exponential in the width of the graph of pairs", engine, "exact to rounding or sampled")
    if not given.logit or given.n_outputs > 1:
        sigmoid = ("-", "needs one score of log odds", "unknown")
    rows = [
        ("sufficient reason", *sets[0]), ("smallest reason", *sets[1]), ("smallest change", *sets[2]),
        ("redundancy", *free), ("completions", *counted),
        ("Shapley values of the score", *score),
        ("Shapley values of the probability", *sigmoid), ("Shapley values of the class", *counted),
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=["query", "hardness", "engine", "guarantee"], orient="row")


def _set_engines(model: AdditiveModel) -> list[tuple[str, str, str]]:
    if model.pairs:
        worst = ("NP-hard in general", "bucket elimination", "exact, interval beyond the cap")
        search = ("NP-hard", "smallest sets by size, each by elimination", "exact or subset-minimal")
        return [worst, search, search]
    if model.n_outputs > 1 or model.task == "regression":
        search = ("NP-hard", "branch and bound, one demand a rival or side", "exact, interval beyond the cap")
        return [
            ("linear", "one sum a rival or side", "exact"),
            search,
            ("O(n log n)", "one sort a rival or side", "exact"),
        ]
    sort = ("O(n log n)", "one sort", "exact")
    return [("linear", "one sum", "exact"), sort, sort]
