"""The queries as functions of a fitted model and rows; tables come back, one line a row unless it says otherwise.

``model`` is an :class:`~answerable.subjects.additive_model.AdditiveModel` or whatever
:func:`answerable.subjects.additive_model.load` makes one of: a fitted EBM, pyGAM or scikit-learn model, a scorecard,
or a file of one. Every answer carries its guarantee: ``exact``, ``interval`` (proved ends), ``subset-minimal`` (nothing
can be left out, something smaller may exist) or ``unknown``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput
from answerable.subjects.additive_model.distributions import Marginal, Weights, cells, marginals
from answerable.subjects.additive_model.form import AdditiveModel, Pair, Shape
from answerable.subjects.additive_model.loading import load
from answerable.subjects.additive_model.ranges import ranges, reachable

from .cases import Cases, cases, pair_model, sufficiency
from .completions import MOST_ATOMS, Component, Probability, at_least_zero
from .joint import SAMPLED, Joint, joint_at_least_zero
from .joint_model import grid_of, joint_of, levels_of, own_rows, state_of
from .joint_redundancy import joint_redundancies
from .joint_shapley import of_joint_class, of_joint_probability, of_joint_probability_over_rows
from .minimal import minimal_reasons
from .redundancy import Redundancy, redundancies
from .shapley import Shapley, of_class, of_probability, of_probability_over_rows, pair_parts

Floats = npt.NDArray[np.float64]
Output = Literal["score", "probability", "class"]
COMPLETION_COLUMNS = {
    "row": pl.Int64, "probability": pl.Float64, "low": pl.Float64, "high": pl.Float64, "engine": pl.String,
    "guarantee": pl.String,
}  # fmt: skip

REASON_COLUMNS: dict[str, Any] = {
    "row": pl.Int64, "number": pl.Int64, "reason": pl.List(pl.String), "size": pl.Int64, "slack": pl.Float64,
    "complete": pl.Boolean, "guarantee": pl.String,
}  # fmt: skip


def check(model: Any, X: Any) -> float:
    """Largest difference between the exact form's scores and the original model's, over rows."""
    return load(model).check(X)


def minimum_sufficient_reason(
    model: Any, X: Any, *, frozen: Sequence[str] = (), tolerance: float | None = None
) -> pl.DataFrame:
    """The fewest features whose values alone settle each decision.

    Parameters
    ----------
    model, X : the model and its rows
    frozen : features that cannot take another value
    tolerance : for a regression, how far the output may move and still count as the same

    Returns
    -------
    row (from 1), decision, score (less the cutoff), reason (list of names), size, bound (no reason is smaller), slack,
    guarantee, borderline, in_every_reason and in_some_reason (lists of names: of all smallest reasons; null for pairs,
    several classes and regressions)
    """
    given = load(model)
    found = cases(given, given.encode(X), frozen=given.numbers_of(frozen), tolerance=tolerance)
    return pl.DataFrame(
        _decided(given, found)
        | {
            "reason": _named(given, found.reason),
            "size": found.reason.sum(axis=1),
            "bound": found.reason_bound,
            "slack": found.reason_slack,
            "guarantee": found.guarantee_reason,
            "borderline": found.borderline,
            "in_every_reason": tied(given, found, found.core),
            "in_some_reason": tied(given, found, found.some),
        }
    )


def all_reasons(model: Any, X: Any, *, frozen: Sequence[str] = (), most: int = 1000) -> pl.DataFrame:
    """Every set of features that settles a decision and from which none can be left out.

    Parameters
    ----------
    model, X : a model of one score that decides between two classes, without pairs; its rows
    frozen : features that cannot take another value
    most : reasons of a row at most, at least 1; there can be as many as n over n / 2

    Returns
    -------
    one line a reason: row (from 1), number (from 1, the smallest first), reason (list of names), size, slack, complete
    (whether the row has no more reasons than are listed), guarantee

    Raises
    ------
    BadInput : pairs, several classes or a regression, or a cap below 1
    """
    given = load(model)
    _one_score_only(given, "all_reasons")
    if given.task == "regression":
        raise BadInput("all reasons are asked of two classes", where="a regression model", mend="give a binary model")
    if given.pairs:
        joined = " & ".join(given.names[j] for j in (given.pairs[0].first, given.pairs[0].second))
        mend = "ask for the smallest reason, or fit the model with interactions=0"
        raise BadInput(f"the model has pairs of features ({joined}, ...)", where="all reasons", mend=mend)
    if most < 1:
        raise BadInput(f"it is {most}", where="most", mend="give at least 1")
    ends, held = ranges(given), given.numbers_of(frozen)
    own, offset = given.contributions(given.encode(X))[:, :, 0], float(given.intercept[0] - given.cutoff)
    lines: list[tuple[Any, ...]] = []
    for row, values in enumerate(own, 1):
        listed = list(itertools.islice(minimal_reasons(values, ends.low, ends.high, offset, frozen=held), most + 1))
        for number, (chosen, slack) in enumerate(listed[:most], 1):
            names = [given.names[j] for j in chosen]
            lines.append((row, number, names, len(chosen), slack, len(listed) <= most, "exact"))
    return pl.DataFrame(lines, schema=REASON_COLUMNS, orient="row")


def minimum_change(
    model: Any, X: Any, *, cost: Mapping[str, float] | None = None, frozen: Sequence[str] = (),
    tolerance: float | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The fewest features to change, or the cheapest, for the decision to flip, and their new values.

    Parameters
    ----------
    model, X : the model and its rows
    cost : of changing each feature, above 0; 1 where it is not named
    frozen : features that cannot change
    tolerance : for a regression, how far the output must move

    Returns
    -------
    row (from 1), decision, score, possible, change (list of names), new_values (list of "name = value"), size, bound,
    slack (by how much it passes the line, or falls short where nothing flips it), guarantee, borderline
    """
    given = load(model)
    encoded = given.encode(X)
    found = cases(
        given, encoded, frozen=given.numbers_of(frozen), tolerance=tolerance, costs=costs_of(given, cost)
    )  # fmt: skip
    return pl.DataFrame(
        _decided(given, found)
        | {
            "possible": np.isfinite(found.change_bound),
            "change": _named(given, found.change),
            "new_values": new_values(given, found),
            "size": found.change.sum(axis=1),
            "bound": found.change_bound,
            "slack": found.change_slack,
            "guarantee": found.guarantee_change,
            "borderline": found.borderline,
        }
    )


def is_sufficient(model: Any, X: Any, features: Sequence[str], *, tolerance: float | None = None) -> pl.DataFrame:
    """Whether the values of some features alone settle each decision.

    Returns
    -------
    row (from 1), sufficient, slack (by how much the worst completion clears the line), counterexample (the worst
    completion as a list of "name = value", where it is not sufficient), guarantee
    """
    given = load(model)
    fixed = np.isin(np.arange(len(given.features)), given.numbers_of(features))
    kept, slack, worst, words = sufficiency(given, given.encode(X), fixed, tolerance)
    shown = [
        [] if sure else [f"{shape.name} = {shape.shown(v)}" for shape, v in zip(given.features, row, strict=True)]
        for sure, row in zip(kept, worst, strict=True)
    ]
    return pl.DataFrame(
        {"row": _numbers(len(kept)), "sufficient": kept, "slack": slack, "counterexample": shown, "guarantee": words},
        schema_overrides={"counterexample": pl.List(pl.String)},
    )


def count_completions(
    model: Any, X: Any, features: Sequence[str], *, background: Any = None, weights: Weights = "model",
    width: float = 1e-3, most_atoms: int = MOST_ATOMS,
) -> pl.DataFrame:  # fmt: skip
    """How likely each decision is when only some features are known, the others being drawn independently.

    Parameters
    ----------
    model, X : the model of one score and its rows
    features : what is known
    background : rows whose columns give the distributions
    weights : without them: "model", as the model was fitted, or "uniform" over the domain
    width : of the interval, where no exact engine can do it
    most_atoms : sums that are listed before the certified engine takes over

    Returns
    -------
    row (from 1), probability, low, high, engine, guarantee: exact; interval, of proved ends; or sampled, an interval
    that holds for 95 of 100 samples, where pairs join too many features
    """
    given = load(model)
    return completions_table(
        given, given.encode(X), features, background=background, weights=weights, width=width, most_atoms=most_atoms
    )


def completions_table(
    given: AdditiveModel, encoded: Floats, features: Sequence[str], *, background: Any = None,
    weights: Weights = "model", width: float = 1e-3, most_atoms: int = MOST_ATOMS,
) -> pl.DataFrame:  # fmt: skip
    """The table of :func:`count_completions` for encoded rows."""
    _one_score_only(given, "count_completions")
    if given.task == "regression":
        raise BadInput("completions are asked of two classes", where="a regression model", mend="give a binary model")
    known = given.numbers_of(features)
    decisions = given.decide(encoded)
    rows = []
    for row, found in enumerate(_completed(given, encoded, known, background, weights, width, most_atoms)):
        ends = (found.value, found.low, found.high)
        if not decisions[row]:
            ends = (1 - ends[0], 1 - ends[2], 1 - ends[1])
        guarantee = "exact" if found.exact else SAMPLED if found.engine == SAMPLED else "interval"
        rows.append((row + 1, *ends, found.engine, guarantee))
    return pl.DataFrame(rows, schema=COMPLETION_COLUMNS, orient="row")


def _completed(
    model: AdditiveModel, encoded: Floats, known: list[int], background: Any, weights: Weights, width: float,
    most_atoms: int,
) -> Iterator[Probability]:  # fmt: skip
    """P(score >= cutoff) for each row, its known features fixed and the others drawn."""
    offset = float(model.intercept[0] - model.cutoff)
    if model.pairs:
        grid = grid_of(model)
        joint = joint_of(model, grid, offset, known=known, background=background, weights=weights)
        for own in own_rows(model, grid, encoded):
            given = joint.with_known(known, own.states.tolist(), own.values)
            yield joint_at_least_zero(given, width=width, most_atoms=most_atoms)
        return
    unknown_ones = [j for j in range(len(model.features)) if j not in known]
    parts = _components(model, marginals(model, background=background, weights=weights), unknown_ones)
    for values in model.contributions(encoded)[:, :, 0]:
        yield at_least_zero(parts, offset + float(values[known].sum()), width=width, most_atoms=most_atoms)


def shapley_values(
    model: Any, X: Any, *, output: Output = "score", background: Any = None, weights: Weights = "model",
    width: float = 1e-3,
) -> pl.DataFrame:  # fmt: skip
    """What each feature moved the score, the probability or the decision, as Shapley values.

    Parameters
    ----------
    model, X : the model of one score and its rows
    output : "score"; "probability", for a model of log odds; "class", 1 where it decides class 1
    background : rows: for score and class their columns give independent distributions; for the probability it is
        averaged over whole rows, as an interventional explainer does
    weights : without them: "model", as the model was fitted, or "uniform" over the domain
    width : error the certified engine aims at

    Returns
    -------
    row (from 1), feature, value (as it is read), shapley, error (proved bound beyond rounding; of 95 % where the engine
    is "sampled"), base, engine; one line a row and feature
    """
    given = load(model)
    encoded = given.encode(X)
    values, error, base, engine = shapley_matrix(
        given, encoded, output=output, background=background, weights=weights, width=width
    )
    n_rows, n = values.shape
    return pl.DataFrame(
        {
            "row": np.repeat(_numbers(n_rows), n),
            "feature": given.names * n_rows,
            "value": [shape.shown(v) for row in encoded for shape, v in zip(given.features, row, strict=True)],
            "shapley": values.ravel(),
            "error": error.ravel(),
            "base": np.repeat(base, n),
            "engine": [engine] * (n_rows * n),
        }
    )


def shapley_matrix(
    model: AdditiveModel, encoded: Floats, *, output: Output, background: Any = None, weights: Weights = "model",
    width: float = 1e-3,
) -> tuple[Floats, Floats, Floats, str]:  # fmt: skip
    """Shapley values of encoded rows: (n_rows, n_features) values and errors, (n_rows,) bases, the engine's name."""
    _one_score_only(model, f"output {output!r}")
    own = model.contributions(encoded)[:, :, 0]
    if output == "score":
        parts = marginals(model, background=background, weights=weights)
        values = own - np.array([part.mean for part in parts])
        base = float(model.intercept[0] - model.cutoff) + sum(part.mean for part in parts)
        for pair in model.pairs:
            base += _add_pair(model, pair, encoded, values, background, weights)
        return values, np.zeros_like(values), np.full(len(values), base), "exact"
    if output == "probability" and not model.logit:
        mend = "ask for the score or the class"
        raise BadInput("the score is no log odds, so it has no probability", where="output", mend=mend)
    if model.pairs:
        found = _joint_shapley(model, encoded, output, background, weights, width)
    elif output == "probability" and background is not None:
        rows = model.contributions(model.encode(background))[:, :, 0]
        found = [of_probability_over_rows(row, rows, float(model.intercept[0])) for row in own]
    else:
        marginal = marginals(model, background=background, weights=weights)
        components = _components(model, marginal, range(len(model.features)))
        if output == "probability":
            found = [of_probability(row, components, float(model.intercept[0])) for row in own]
        else:
            offset = float(model.intercept[0] - model.cutoff)
            found = [of_class(row, components, offset, width=width) for row in own]
    if not found:
        return own, own, np.zeros(0), "exact"
    return (
        np.array([one.values for one in found]), np.array([one.error for one in found]),
        np.array([one.base for one in found]), " or ".join(dict.fromkeys(one.engine for one in found)),
    )  # fmt: skip


def _joint_shapley(
    model: AdditiveModel, encoded: Floats, output: Output, background: Any, weights: Weights, width: float
) -> list[Shapley]:
    grid = grid_of(model)
    rows = own_rows(model, grid, encoded)
    offset = float(model.intercept[0]) - (model.cutoff if output == "class" else 0.0)
    if output == "probability" and background is not None:
        joint, others = Joint([], grid.tables, offset), own_rows(model, grid, model.encode(background))
        return [of_joint_probability_over_rows(joint, row, others) for row in rows]
    joint = joint_of(model, grid, offset, background=background, weights=weights)
    if output == "probability":
        return [of_joint_probability(joint, row) for row in rows]
    return [of_joint_class(joint, row, width=width) for row in rows]


def redundant_features(model: Any, *, seed: int = 0) -> pl.DataFrame:
    """Which features are never able to matter: no completion of the others lets them change the class.

    Returns
    -------
    feature, answer (redundant, matters, unknown), proof; one line a feature
    """
    given = load(model)
    if given.task != "binary":
        raise BadInput("redundancy is asked of two classes", where=f"a {given.task} model", mend="give a binary model")
    _one_score_only(given, "redundant_features")
    found = redundancy_of(given, seed=seed)
    columns = {"feature": given.names, "answer": [r.word for r in found], "proof": [r.proof for r in found]}
    return pl.DataFrame(columns)


def redundancy_of(model: AdditiveModel, *, seed: int = 0) -> list[Redundancy]:
    """The answer of :func:`answerable.explanations.additive_reasons.redundancies` for each feature of a model."""
    if model.pairs:
        joint, edges, bins = pair_model(model)
        reached_ones = [levels_of(*given) for given in zip(model.features, edges, bins, strict=True)]
        return joint_redundancies(joint, reached_ones, seed=seed)
    ends = ranges(model)
    levels, continuous = [], []
    for j, shape in enumerate(model.features):
        reached = _levels(shape)
        levels.append(np.array([ends.low[j], ends.high[j]]) if reached is None else reached)
        continuous.append(reached is None)
    offset = float(model.intercept[0] - model.cutoff)
    return redundancies(levels, continuous, offset, seed=seed)


def explain(
    model: Any, X: Any, *, output: Output = "score", background: Any = None, frozen: Sequence[str] = (),
    tolerance: float | None = None, cost: Mapping[str, float] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """All at once: one line a row and feature.

    Returns
    -------
    row (from 1), feature, value, component, excess (what it can take away from the decision), in_reason, in_change,
    new_value (where it is changed, else null), shapley, error
    """
    given = load(model)
    encoded = given.encode(X)
    found = cases(given, encoded, frozen=given.numbers_of(frozen), tolerance=tolerance, costs=costs_of(given, cost))
    return features_table(given, encoded, found, output, background, frozen=given.numbers_of(frozen))


def features_table(
    model: AdditiveModel, encoded: Floats, found: Cases, output: Output = "score", background: Any = None, *,
    weights: Weights = "model", width: float = 1e-3, frozen: Sequence[int] = (),
) -> pl.DataFrame:  # fmt: skip
    """The table of :func:`explain` from what was found."""
    n_rows, n = encoded.shape
    if model.n_outputs > 1:
        lead = np.array([model.contributions(encoded)[row, :, d] for row, d in enumerate(found.decision)])
        shapley, error = np.full((n_rows, n), math.nan), np.full((n_rows, n), math.nan)
        component, excess = lead, np.full((n_rows, n), math.nan)
    else:
        component = model.contributions(encoded)[:, :, 0]
        ends = ranges(model)
        up = found.decision == 1 if model.task == "binary" else np.ones(n_rows, bool)
        excess = np.where(up[:, None], component - ends.low, ends.high - component)
        excess[:, list(frozen)] = 0.0
        shapley, error, _, _ = shapley_matrix(
            model, encoded, output=output, background=background, weights=weights, width=width
        )
    changed = [
        shape.shown(found.worst[row, j]) if found.change[row, j] else None
        for row in range(n_rows)
        for j, shape in enumerate(model.features)
    ]
    return pl.DataFrame(
        {
            "row": np.repeat(_numbers(n_rows), n),
            "feature": model.names * n_rows,
            "value": [shape.shown(v) for row in encoded for shape, v in zip(model.features, row, strict=True)],
            "component": component.ravel(),
            "excess": excess.ravel(),
            "in_reason": found.reason.ravel(),
            "in_change": found.change.ravel(),
            "new_value": changed,
            "shapley": shapley.ravel(),
            "error": error.ravel(),
        },
        schema_overrides={"new_value": pl.String},
    )


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


def costs_of(model: AdditiveModel, cost: Mapping[str, float] | None) -> Floats | None:
    """(n_features,) costs, 1 where none is named; None for unit costs.

    Raises
    ------
    UnknownName, BadInput : no such feature; a cost that is not above 0
    """
    if not cost:
        return None
    costs = np.ones(len(model.features))
    for name, price in cost.items():
        if not (isinstance(price, (int, float)) and math.isfinite(price) and price > 0):
            raise BadInput(
                f"it is {price!r}", where=f"cost of {name}", mend="give a number above 0, or freeze the feature"
            )
        costs[model.numbers_of([name], what="feature of cost")[0]] = price
    return costs


def new_values(model: AdditiveModel, found: Cases) -> list[list[str]]:
    """For each row the changes as "name = value"."""
    return [
        [f"{model.names[j]} = {model.features[j].shown(found.worst[row, j])}" for j in np.flatnonzero(changed)]
        for row, changed in enumerate(found.change)
    ]


def tied(model: AdditiveModel, found: Cases, chosen: npt.NDArray[np.bool_]) -> pl.Series:
    """For each row the chosen features by name; null where ties are not known."""
    names = _named(model, chosen).to_list()
    known = [one if sure else None for one, sure in zip(names, found.ties_known, strict=True)]
    return pl.Series(known, dtype=pl.List(pl.String))


def _decided(model: AdditiveModel, found: Cases) -> dict[str, Any]:
    words = model.classes or ("value",)
    return {
        "row": _numbers(len(found.score)),
        "decision": [words[d] for d in found.decision] if model.task != "regression" else ["value"] * len(found.score),
        "score": found.score,
    }


def _numbers(n_rows: int) -> npt.NDArray[np.int64]:
    return np.arange(1, n_rows + 1)


def _named(model: AdditiveModel, chosen: npt.NDArray[np.bool_]) -> pl.Series:
    return pl.Series([[model.names[j] for j in np.flatnonzero(row)] for row in chosen], dtype=pl.List(pl.String))


def _one_score_only(model: AdditiveModel, what: str) -> None:
    if model.n_outputs > 1:
        raise BadInput(
            f"it has {model.n_outputs} classes, and {what} takes one score", where="model",
            mend="give model.against(class, rival)",
        )  # fmt: skip


def _components(model: AdditiveModel, parts: Sequence[Marginal], wanted: Sequence[int]) -> list[Component]:
    for j in wanted:
        if not len(parts[j].values):
            raise BadInput(
                "its component is continuous, so that its distribution is no list", where=f"feature {model.names[j]}",
                mend="give background rows",
            )  # fmt: skip
    return [Component(parts[j].values, parts[j].probabilities) for j in wanted]


def _levels(shape: Shape) -> Floats | None:
    """The components that a feature can reach; None where it reaches all between two ends."""
    pieces = reachable(shape)
    if shape.constant:
        found = np.array([shape.coefficients[k, 0, 0] for k, *_ in pieces])
    elif shape.integer:
        found = shape(np.concatenate([np.arange(low, high + 1) for _, low, high, _, _ in pieces]))[:, 0]
    else:
        return None
    return np.unique(found if shape.missing is None else np.append(found, shape.missing[0]))


def _add_pair(
    model: AdditiveModel, pair: Pair, encoded: Floats, values: Floats, background: Any, weights: Weights
) -> float:
    """Add a pair's Shapley values to its two features; returns its mean."""
    table = pair.values[:, :, 0]
    rows = None if background is None else model.encode(background)
    first_mass = _bin_masses(model, pair.first, pair.first_edges, rows, weights)
    second_mass = _bin_masses(model, pair.second, pair.second_edges, rows, weights)
    mean = float(first_mass @ table @ second_mass)
    first_bin, second_bin = pair.bins(encoded)
    one, two = pair_parts(
        table[first_bin, second_bin], (table @ second_mass)[first_bin], (first_mass @ table)[second_bin], mean
    )
    values[:, pair.first] += one
    values[:, pair.second] += two
    return mean


def _bin_masses(model: AdditiveModel, j: int, edges: Floats, rows: Floats | None, weights: Weights) -> Floats:
    """(n_bins + 1,) how often a feature falls into each bin of a pair table, first how often it is missing."""
    if rows is None:
        at, mass = cells(model.features[j], edges, weights)
    else:
        at, mass = rows[:, j], np.full(len(rows), 1 / len(rows))
    return np.bincount(state_of(at, edges), weights=mass, minlength=len(edges)).astype(np.float64)
