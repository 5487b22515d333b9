"""InterpretML's explainable boosting machines, from the fitted object or the file its ``to_json`` writes.

A continuous value falls into slot ``digitize(x, cuts) + 1``: a value on a cut goes up. Slot 0 is a missing value, the
last slot one that was never seen; the first is in the domain where fitting saw it, the last never is.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, CannotRead

from .encoding import level_edges
from .form import AdditiveModel, Task
from .parts import Pair, Shape

Floats = npt.NDArray[np.float64]
LINKS: dict[str, Task] = {"identity": "regression", "logit": "binary", "mlogit": "multiclass"}


def from_ebm(ebm: Any) -> AdditiveModel:
    """An EBM as an additive model.

    Parameters
    ----------
    ebm : the fitted object; or what ``to_json`` wrote, as a path, its text or the parsed document

    Raises
    ------
    BadInput : a link that is not identity, logit or mlogit; a term on three or more features; scores not finite
    CannotRead : no such document
    """
    if hasattr(ebm, "to_jsonable"):
        if not hasattr(ebm, "term_scores_"):
            raise BadInput("the EBM is not fitted", where="EBM", mend="fit it first")
        with warnings.catch_warnings():
            # that the format may change concerns files that are kept, not this object
            warnings.filterwarnings("ignore", message="JSON formats are in beta")
            document = ebm.to_jsonable()
        model = _from_document(document, "EBM")
        original = getattr(ebm, "decision_function", None) or ebm.predict
        object.__setattr__(model, "original", original)
        return model
    where = str(ebm) if isinstance(ebm, Path) else "EBM"
    try:
        if isinstance(ebm, Path):
            ebm = ebm.read_text(encoding="utf-8")
        document = ebm if isinstance(ebm, Mapping) else json.loads(ebm)
        return _from_document(document, where)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as failure:
        said = " ".join(f"{type(failure).__name__}: {failure}".split())[:120]
        mend = "write it again with the EBM's to_json"
        raise CannotRead(f"no EBM can be read ({said})", where=where, mend=mend) from None


def _from_document(document: Mapping[str, Any], where: str) -> AdditiveModel:
    ebm = document["ebm"]
    output = ebm["outputs"][0]
    link = str(output["link"])
    if link not in LINKS:
        mend = f"fit it with {', '.join(LINKS)}"
        raise BadInput(f"its link is {link!r}", where=where, mend=mend)
    features = {str(feature["name"]): feature for feature in ebm["features"]}
    places = {name: place for place, name in enumerate(features)}
    n_outputs = len(ebm["intercept"])
    mains: dict[str, Any] = {}
    pairs = []
    for term in ebm["terms"]:
        names = [str(name) for name in term["term_features"]]
        if len(names) > 2:
            raise BadInput(
                f"the term {' & '.join(names)} joins {len(names)} features", where=where,
                mend="fit it with interactions of two features at most",
            )  # fmt: skip
        scores = np.asarray(term["scores"], np.float64)
        if not np.isfinite(scores).all():
            raise BadInput(
                "a score is not finite", where=f"{where}, term {' & '.join(names)}", mend="mend the edited EBM"
            )
        if len(names) == 1:
            mains[names[0]] = (scores, np.asarray(term["bin_weights"], np.float64))
        else:
            pairs.append(_pair(features, places, names, scores, term, n_outputs))
    shapes = tuple(_shape(feature, mains.get(name), n_outputs) for name, feature in features.items())
    return AdditiveModel(
        shapes, np.asarray(ebm["intercept"], np.float64), tuple(pairs), task=LINKS[link],
        classes=tuple(str(name) for name in output.get("classes", ())), logit=link == "logit", source="EBM",
    )  # fmt: skip


def _shape(feature: Mapping[str, Any], main: Any, n_outputs: int) -> Shape:
    name = str(feature["name"])
    categorical = "categories" in feature
    inner = [] if categorical else [float(cut) for cut in feature["cuts"][0]]
    levels = _levels(feature) if categorical else ()
    n_bins = len(levels) if categorical else len(inner) + 1
    scores, weights = main if main is not None else (np.zeros((n_bins + 2, n_outputs)), None)
    scores = scores.reshape(len(scores), -1)
    slots = _slots(feature, levels) if categorical else np.arange(1, n_bins + 1)
    missing_weight = 0.0 if weights is None else float(weights[0])
    more: dict[str, Any] = {
        "weights": None if weights is None or weights[slots].sum() <= 0 else weights[slots],
        "missing": scores[0] if missing_weight > 0 else None,
        "missing_weight": missing_weight,
    }
    if categorical:
        return Shape.categories(name, levels, scores[slots], **more)
    low, high = float(feature.get("min", -math.inf)), float(feature.get("max", math.inf))
    # An edited EBM may state a range that its own cuts contradict; the range then says nothing.
    if math.isnan(low) or math.isnan(high) or low > high:
        mend = "give the observed range with restrict(domain=...)"
        raise BadInput(f"its range is {low:g} to {high:g}", where=f"EBM, feature {name}", mend=mend)
    return Shape.table(name, [-np.inf, *inner, np.inf], scores[slots], low=low, high=high, **more)


def _levels(feature: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the categories; several may share one slot."""
    return tuple(
        str(one) for entry in feature["categories"][0] for one in (entry if isinstance(entry, list) else [entry])
    )


def _slots(feature: Mapping[str, Any], levels: tuple[str, ...]) -> npt.NDArray[np.intp]:
    of_level = []
    for slot, entry in enumerate(feature["categories"][0], 1):
        of_level += [slot] * (len(entry) if isinstance(entry, list) else 1)
    return np.array(of_level)


def _pair(
    features: Mapping[str, Any], places: Mapping[str, int], names: list[str], scores: Floats, term: Any, n_outputs: int
) -> Pair:
    values = scores.reshape(*scores.shape[:2], n_outputs)
    weights = np.asarray(term["bin_weights"], np.float64)
    edges: list[Floats] = []
    slots: list[npt.NDArray] = []
    for name in names:
        feature = features[name]
        if "categories" in feature:
            levels = _levels(feature)
            edges.append(level_edges(len(levels)))
            slots.append(np.concatenate([[0], _slots(feature, levels)]))
        else:
            cuts = feature["cuts"][min(1, len(feature["cuts"]) - 1)]
            edges.append(np.array([-np.inf, *map(float, cuts), np.inf]))
            slots.append(np.arange(len(cuts) + 2))
    picked = np.ix_(*slots)
    return Pair(places[names[0]], places[names[1]], edges[0], edges[1], values[picked], weights[picked])
