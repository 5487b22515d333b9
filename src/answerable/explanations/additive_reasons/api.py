"""Reasons and changes of a fitted model's rows; tables come back, one line a row unless it says otherwise.

``model`` is an :class:`~answerable.subjects.additive_model.AdditiveModel` or whatever
:func:`answerable.subjects.additive_model.load` makes one of: a fitted EBM, pyGAM or scikit-learn model, a scorecard,
or a file of one. Every answer carries its guarantee: ``exact``, ``interval`` (proved ends), ``subset-minimal`` (nothing
can be left out, something smaller may exist) or ``unknown``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.subjects.additive_model.distributions import Weights
from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.loading import load
from answerable.subjects.additive_model.ranges import ranges

from .arguments import Output, costs_of, one_of, tolerance_of, whole
from .cases import Cases, cases, sufficiency
from .joint_cases import Prepared, reasons_by_tests
from .likelihood import shapley_matrix
from .minimal import minimal_reasons

Floats = npt.NDArray[np.float64]
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


def all_reasons(
    model: Any, X: Any, *, frozen: Sequence[str] = (), tolerance: float | None = None, most: int = 1000
) -> pl.DataFrame:
    """Every set of features that settles a decision and from which none can be left out.

    Parameters
    ----------
    model, X : the model and its rows
    frozen : features that cannot take another value
    tolerance : for a regression, how far the output may move and still count as the same
    most : reasons of a row at most, at least 1; there can be as many as n over n / 2

    Returns
    -------
    one line a reason: row (from 1), number (from 1; the first is a smallest one), reason (list of names), size, slack,
    complete (whether the row is shown to have no more reasons than are listed), guarantee (exact; interval where it was
    not refuted that one feature less would do). A row whose score is within the model's own error of the line has none

    Notes
    -----
    For one score without pairs one reason follows the other after at most n^2 steps. With pairs, several classes or a
    regression already the first is NP-hard; sets are then tested one by one, the smallest first, up to a cap.
    """
    given = load(model)
    most = whole(most, "most")
    tolerance = tolerance_of(given, tolerance)
    encoded, held = given.encode(X), given.numbers_of(frozen)
    lines: list[tuple[Any, ...]] = []
    for row, (listed, complete) in enumerate(_reasons_of_rows(given, encoded, held, tolerance, most), 1):
        for number, (chosen, slack, word) in enumerate(listed, 1):
            lines.append((row, number, [given.names[j] for j in chosen], len(chosen), slack, complete, word))
    return pl.DataFrame(lines, schema=REASON_COLUMNS, orient="row")


def _reasons_of_rows(
    model: AdditiveModel, encoded: Floats, held: Sequence[int], tolerance: float | None, most: int
) -> Iterator[tuple[list[tuple[Sequence[int], float, str]], bool]]:
    """For each row its reasons as numbers of features, slack and guarantee; and whether there are no others."""
    if model.pairs or model.error or model.n_outputs > 1 or tolerance is not None:
        prepared, free = Prepared(model, tolerance), ~np.isin(np.arange(len(model.features)), held)
        for row in encoded:
            found, complete = reasons_by_tests(prepared, row, free, most)
            yield [(np.flatnonzero(chosen).tolist(), slack, word) for chosen, slack, word in found], complete
        return
    ends, offset = ranges(model), float(model.intercept[0] - model.cutoff)
    for own in model.contributions(encoded)[:, :, 0]:
        listed = list(itertools.islice(minimal_reasons(own, ends.low, ends.high, offset, frozen=held), most + 1))
        yield [(chosen, slack, "exact") for chosen, slack in listed[:most]], len(listed) <= most


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
    row (from 1), decision, score, possible (whether something flips it; null where that is not decided), change (list
    of names), new_values (list of "name = value"), size, cost, bound (nothing cheaper flips it), slack (by how much it
    passes the line, or falls short where nothing flips it), guarantee, borderline
    """
    given = load(model)
    encoded = given.encode(X)
    costs = costs_of(given, cost)
    found = cases(given, encoded, frozen=given.numbers_of(frozen), tolerance=tolerance, costs=costs)
    return pl.DataFrame(
        _decided(given, found)
        | {
            "possible": possible(found),
            "change": _named(given, found.change),
            "new_values": new_values(given, found),
            "size": found.change.sum(axis=1),
            "cost": found.change.sum(axis=1).astype(float) if costs is None else found.change @ costs,
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
    row (from 1), sufficient (whether it is proved so), slack (by how much the worst completion clears the line, at
    least), counterexample (the worst completion as a list of "name = value", where it is not sufficient), guarantee
    (exact; unknown where neither a proof nor a counterexample was found)
    """
    given = load(model)
    fixed = np.isin(np.arange(len(given.features)), given.numbers_of(features))
    kept, slack, worst, words = sufficiency(given, given.encode(X), fixed, tolerance)
    shown = [
        []
        if sure or word == "unknown"
        else [f"{shape.name} = {shape.shown(v)}" for shape, v in zip(given.features, row, strict=True)]
        for sure, word, row in zip(kept, words, worst, strict=True)
    ]
    return pl.DataFrame(
        {"row": _numbers(len(kept)), "sufficient": kept, "slack": slack, "counterexample": shown, "guarantee": words},
        schema_overrides={"counterexample": pl.List(pl.String)},
    )


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
    one_of(output, Output, "output")
    encoded = given.encode(X)
    found = cases(given, encoded, frozen=given.numbers_of(frozen), tolerance=tolerance, costs=costs_of(given, cost))
    return features_table(given, encoded, found, output, background)


def features_table(
    model: AdditiveModel, encoded: Floats, found: Cases, output: Output = "score", background: Any = None, *,
    weights: Weights = "model", width: float = 1e-3,
) -> pl.DataFrame:  # fmt: skip
    """The table of :func:`explain` from what was found."""
    n_rows, n = encoded.shape
    components = model.contributions(encoded)
    if model.n_outputs > 1:
        component = components[np.arange(n_rows), :, found.decision]
        shapley, error = np.full((n_rows, n), math.nan), np.full((n_rows, n), math.nan)
    else:
        component = components[:, :, 0]
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
            "excess": found.excess.ravel(),
            "in_reason": found.reason.ravel(),
            "in_change": found.change.ravel(),
            "new_value": changed,
            "shapley": shapley.ravel(),
            "error": error.ravel(),
        },
        schema_overrides={"new_value": pl.String},
    )


def possible(found: Cases) -> pl.Series:
    """Whether some change flips each decision; null where none was found and none is ruled out."""
    known = [
        bool(change.any()) or (None if np.isfinite(bound) else False)
        for change, bound in zip(found.change, found.change_bound, strict=True)
    ]
    return pl.Series(known, dtype=pl.Boolean)


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
