"""Which features are ever able to matter, asked of a whole model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput
from answerable.subjects.additive_model.form import AdditiveModel
from answerable.subjects.additive_model.loading import load
from answerable.subjects.additive_model.parts import Shape
from answerable.subjects.additive_model.ranges import ranges, reachable

from .arguments import one_score_only
from .joint_cases import pair_model
from .joint_model import levels_of
from .joint_redundancy import joint_redundancies
from .redundancy import Redundancy, redundancies

Floats = npt.NDArray[np.float64]


def redundant_features(model: Any, *, seed: int = 0) -> pl.DataFrame:
    """Which features are never able to matter: no completion of the others lets them change the class.

    Returns
    -------
    feature, answer (redundant, matters, unknown), proof; one line a feature
    """
    given = load(model)
    if given.task != "binary":
        raise BadInput("redundancy is asked of two classes", where=f"a {given.task} model", mend="give a binary model")
    one_score_only(given, "redundant_features")
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
    return redundancies(levels, continuous, offset, error=model.error, seed=seed)


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
