"""What each query costs, which engine runs and what its answer is worth, for a model at hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.loading import load

QUERIES = ["Reason", "Change", "Redundant", "Completions", "Shapley"]
# Theorems of Bassan, Moshkovitz and Katz for one score without pairs, in the order of QUERIES (Shapley values of the
# score; those of the class are as hard as completions). For steps on numbers they put what stands for networks, which
# does not follow: T splits of one feature make T + 1 pieces.
P, EASY, HARD = "P", ["P", "P", "coNP", "#P", "P"], ["coNP", "NP", "coNP", "#P", "#P"]
MAP = {
    "Listed values": EASY,
    "Whole numbers, steps": EASY,
    "Whole numbers, curves": EASY,
    "Whole numbers, network": HARD,
    "Any number, steps": EASY,
    "Any number, curves": [P, P, P, "#P", P],
    "Any number, network": HARD,
}


def complexity_map(model: Any) -> pl.DataFrame:
    """How hard each query is for each kind of additive model in the worst case, with the kind of this one marked.

    Returns
    -------
    kind, query, hardness (P: polynomial; otherwise what it is complete or hard for), here; one line a kind and query
    """
    own = _kind(load(model))
    rows = [
        (kind, query, hardness, kind == own)
        for kind, line in MAP.items()
        for query, hardness in zip(QUERIES, line, strict=True)
    ]
    return pl.DataFrame(rows, schema=["kind", "query", "hardness", "here"], orient="row")


def _kind(model: AdditiveModel) -> str:
    """The line of the map that a model stands in: of its hardest feature; none with pairs, classes or a tolerance."""
    if model.pairs or model.n_outputs > 1 or model.task == "regression":
        return ""
    if all(shape.levels for shape in model.features):
        return "Listed values"
    domain = "Whole numbers" if all(shape.integer for shape in model.features) else "Any number"
    if model.source == "neural additive model":
        return f"{domain}, network"
    return f"{domain}, {'steps' if all(shape.constant for shape in model.features) else 'curves'}"


def complexity(model: Any) -> pl.DataFrame:
    """What each query costs for this model: its class, the engine that runs, and the guarantee.

    Returns
    -------
    query, hardness, engine, guarantee; one line a query
    """
    given = load(model)
    listed = all(shape.constant or shape.integer for shape in given.features)
    sets = _set_engines(given)
    enclosed = given.error > 0
    counted = (
        ("#P-complete; pseudo-polynomial", "listed sums or lattice, else certified Fourier", "exact or interval")
        if listed else ("#P-complete", "certified Fourier, from background rows", "interval")
    )  # fmt: skip
    if given.pairs:
        sums = "sums along the graph of the pairs, else certified Fourier, else draws"
        counted = ("#P-hard", sums, "exact, interval or sampled")
    if enclosed:
        counted = ("#P-complete", "none for components known within an error", "unknown")
    if given.n_outputs > 1:
        counted = ("#P-hard", "none for several classes", "unknown")
    free = ("coNP-complete", "ends, witnesses, listed sums", "exact or unknown")
    if not any(shape.constant or shape.integer for shape in given.features):
        free = ("linear", "ends of each range", "exact or unknown" if enclosed else "exact")
    if given.pairs:
        free = ("coNP-hard", "ends by elimination, witnesses, listed sums", "exact or unknown")
    if given.task != "binary":
        free = ("coNP-hard", "none for several classes or regression", "unknown")
    score = ("linear", "components less means" if given.n_outputs == 1 else "one class at a time", "exact")
    sigmoid = ("polynomial for any accuracy", "Fourier of the logistic", "exact to rounding")
    if enclosed:
        score, sigmoid = (*score[:2], "interval"), (*sigmoid[:2], "interval")
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
        worst = ("NP-hard in general", "elimination, else branch and bound", "exact or unknown")
        search = ("NP-hard", "sets that hit all that fail, each tested", "exact, interval beyond the caps")
        return [worst, search, search]
    if model.error:
        tested = ("hard in the number of layers", "sums with the error on both sides", "exact or interval")
        return [(*tested[:2], "exact or unknown"), tested, tested]
    if model.n_outputs > 1 or model.task == "regression":
        search = ("NP-hard", "branch and bound, one demand a rival or side", "exact, interval beyond the cap")
        return [
            ("linear", "one sum a rival or side", "exact"),
            search,
            ("O(n log n)", "one sort a rival or side", "exact"),
        ]
    sort = ("O(n log n)", "one sort", "exact")
    return [("linear", "one sum", "exact"), sort, sort]
