"""What rests on a distribution of the features: how likely a decision is, and Shapley values; tables come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput
from answerable.subjects.additive_model.distributions import Marginal, Weights, cells, marginals
from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.loading import load
from answerable.subjects.additive_model.parts import Pair

from .arguments import Output, distribution, one_of, one_score_only, whole
from .completions import MOST_ATOMS, Component, Probability, at_least_zero
from .joint import SAMPLED, Joint, joint_at_least_zero
from .joint_model import grid_of, joint_of, own_rows, state_of
from .joint_shapley import of_joint_class, of_joint_probability, of_joint_probability_over_rows
from .shapley import Shapley, of_class, of_probability, of_probability_over_rows, pair_parts

Floats = npt.NDArray[np.float64]
COMPLETION_COLUMNS = {
    "row": pl.Int64, "probability": pl.Float64, "low": pl.Float64, "high": pl.Float64, "engine": pl.String,
    "guarantee": pl.String,
}  # fmt: skip


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
    one_score_only(given, "count_completions")
    distribution(weights, width)
    _exact_form_only(given, "completions")
    most_atoms = whole(most_atoms, "most_atoms")
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
            "row": np.repeat(np.arange(1, n_rows + 1), n),
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
    one_of(output, Output, "output")
    distribution(weights, width)
    one_score_only(model, f"output {output!r}")
    own = model.contributions(encoded)[:, :, 0]
    if output == "score":
        parts = marginals(model, background=background, weights=weights)
        values = own - np.array([part.mean for part in parts])
        base = float(model.intercept[0] - model.cutoff) + sum(part.mean for part in parts)
        for pair in model.pairs:
            base += _add_pair(model, pair, encoded, values, background, weights)
        # an enclosed component and its mean may each be off by the same bound
        off = np.broadcast_to([2 * shape.error for shape in model.features], values.shape)
        return values, off.astype(np.float64), np.full(len(values), base), "enclosure" if model.error else "exact"
    if output == "probability" and not model.logit:
        mend = "ask for the score or the class"
        raise BadInput("the score is no log odds, so it has no probability", where="output", mend=mend)
    if output == "class":
        _exact_form_only(model, "Shapley values of the class")
    if model.pairs:
        found = _joint_shapley(model, encoded, output, background, weights, width)
    elif output == "probability" and background is not None:
        rows = model.contributions(model.encode_background(background))[:, :, 0]
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
        np.array([one.values for one in found]), np.array([one.error for one in found]) + model.error / 2,
        np.array([one.base for one in found]), " or ".join(dict.fromkeys(one.engine for one in found)),
    )  # fmt: skip


def _joint_shapley(
    model: AdditiveModel, encoded: Floats, output: Output, background: Any, weights: Weights, width: float
) -> list[Shapley]:
    grid = grid_of(model)
    rows = own_rows(model, grid, encoded)
    offset = float(model.intercept[0]) - (model.cutoff if output == "class" else 0.0)
    if output == "probability" and background is not None:
        joint, others = Joint([], grid.tables, offset), own_rows(model, grid, model.encode_background(background))
        return [of_joint_probability_over_rows(joint, row, others) for row in rows]
    joint = joint_of(model, grid, offset, background=background, weights=weights)
    if output == "probability":
        return [of_joint_probability(joint, row) for row in rows]
    return [of_joint_class(joint, row, width=width) for row in rows]


def _exact_form_only(model: AdditiveModel, what: str) -> None:
    enclosed = [shape.name for shape in model.features if shape.error]
    if enclosed:
        raise BadInput(
            f"the component is known within {max(shape.error for shape in model.features):.1g} only, and {what} count"
            " what lies on either side of a line",
            where=f"feature {enclosed[0]}", mend="ask for reasons, changes, or Shapley values of score or probability",
        )  # fmt: skip


def _components(model: AdditiveModel, parts: Sequence[Marginal], wanted: Sequence[int]) -> list[Component]:
    for j in wanted:
        if not len(parts[j].values):
            raise BadInput(
                "its component is continuous, so that its distribution is no list", where=f"feature {model.names[j]}",
                mend="give background rows",
            )  # fmt: skip
    return [Component(parts[j].values, parts[j].probabilities) for j in wanted]


def _add_pair(
    model: AdditiveModel, pair: Pair, encoded: Floats, values: Floats, background: Any, weights: Weights
) -> float:
    """Add a pair's Shapley values to its two features; returns its mean."""
    table = pair.values[:, :, 0]
    rows = None if background is None else model.encode_background(background)
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
