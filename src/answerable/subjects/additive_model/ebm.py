"""InterpretML's explainable boosting machines, from the fitted object or the file its ``to_json`` writes.

A continuous value falls into slot ``digitize(x, cuts) + 1``: a value on a cut goes up. Slot 0 is a missing value, the
last slot one that was never seen; the first is in the domain where fitting saw it, the last never is.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
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
    if len(ebm["outputs"]) != 1:
        raise BadInput(f"it has {len(ebm['outputs'])} outputs", where=where, mend="fit one EBM for each")
    output = ebm["outputs"][0]
    link = str(output["link"])
    if link not in LINKS:
        mend = f"fit it with {', '.join(LINKS)}"
        raise BadInput(f"its link is {link!r}", where=where, mend=mend)
    features = _by_name(ebm["features"], where)
    places = {name: place for place, name in enumerate(features)}
    n_outputs = len(ebm["intercept"])
    mains: dict[str, Any] = {}
    pairs = []
    for term in ebm["terms"]:
        names, scores, weights = _term(term, features, where)
        if len(names) == 2:
            pairs.append(_pair(features, places, names, scores, weights, n_outputs))
        elif names[0] in mains:
            raise BadInput("two terms are of it", where=f"{where}, feature {names[0]}", mend="add them up")
        else:
            mains[names[0]] = (scores, weights)
    shapes = tuple(_shape(feature, mains.get(name), n_outputs) for name, feature in features.items())
    return AdditiveModel(
        shapes, np.asarray(ebm["intercept"], np.float64), tuple(pairs), task=LINKS[link],
        classes=tuple(str(name) for name in output.get("classes", ())), logit=link == "logit", source="EBM",
    )  # fmt: skip


def _by_name(entries: Sequence[Mapping[str, Any]], where: str) -> dict[str, Mapping[str, Any]]:
    features: dict[str, Mapping[str, Any]] = {}
    for feature in entries:
        name = str(feature["name"])
        if name in features:
            raise BadInput(f"two features are called {name!r}", where=where, mend="give each a name of its own")
        features[name] = feature
    return features


def _term(
    term: Mapping[str, Any], features: Mapping[str, Mapping[str, Any]], where: str
) -> tuple[list[str], Floats, Floats | None]:
    """Names of the features that a term joins, its scores, and its weights, None where the document has none."""
    names = [str(name) for name in term["term_features"]]
    if len(names) > 2:
        what, mend = f"the term {' & '.join(names)} joins {len(names)} features", "fit it with interactions of two"
        raise BadInput(what, where=where, mend=f"{mend} features at most")
    scores = np.asarray(term["scores"], np.float64)
    # InterpretML writes no weights with detail="minimal"
    weights = np.asarray(term["bin_weights"], np.float64) if "bin_weights" in term else None
    where, mend = f"{where}, term {' & '.join(names)}", "mend the edited EBM"
    if not np.isfinite(scores).all():
        raise BadInput("a score is not finite", where=where, mend=mend)
    slots = tuple(_n_bins(features[name], len(names)) + 2 for name in names)
    for what, table in (("scores", scores), ("weights", weights)):
        if table is not None and table.shape[: len(names)] != slots:
            found, needed = (" by ".join(map(str, shape)) for shape in (table.shape[: len(names)], slots))
            raise BadInput(f"{found} {what} for {needed} slots", where=where, mend=mend)
    return names, scores, weights


def _n_bins(feature: Mapping[str, Any], n_features: int) -> int:
    """Bins of a feature in a term of its own, or in one of two: without those of missing and unknown values."""
    if "categories" in feature:
        return len(_of_term(feature["categories"], n_features))
    return len(_of_term(feature["cuts"], n_features)) + 1


def _of_term(resolutions: Sequence[Any], n_features: int) -> Any:
    """Bins are stored for terms of one feature, and once more for terms of two where these are coarser."""
    return resolutions[min(n_features, len(resolutions)) - 1]


def _shape(feature: Mapping[str, Any], main: Any, n_outputs: int) -> Shape:
    name = str(feature["name"])
    categorical = "categories" in feature
    inner = [] if categorical else [float(cut) for cut in feature["cuts"][0]]
    levels = _levels(feature) if categorical else ()
    n_bins = _n_bins(feature, 1)
    scores, weights = main if main is not None else (np.zeros((n_bins + 2, n_outputs)), None)
    scores = scores.reshape(len(scores), -1)
    slots = _slots(feature, levels, 1) if categorical else np.arange(1, n_bins + 1)
    missing_weight = 0.0 if weights is None else float(weights[0])
    if weights is not None:
        weights = weights[slots] / np.bincount(slots)[slots]  # categories of one slot share its weight
    more: dict[str, Any] = {
        "weights": None if weights is None or weights.sum() <= 0 else weights,
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


def _slots(feature: Mapping[str, Any], levels: tuple[str, ...], n_features: int) -> npt.NDArray[np.intp]:
    """Slot of each category in a term of so many features; one that has none there is unknown to it."""
    entries = _of_term(feature["categories"], n_features)
    of_level = {
        str(one): slot
        for slot, entry in enumerate(entries, 1)
        for one in (entry if isinstance(entry, list) else [entry])
    }
    return np.array([of_level.get(level, len(entries) + 1) for level in levels])


def _pair(
    features: Mapping[str, Any], places: Mapping[str, int], names: list[str], scores: Floats, weights: Floats | None,
    n_outputs: int,
) -> Pair:  # fmt: skip
    values = scores.reshape(*scores.shape[:2], n_outputs)
    edges: list[Floats] = []
    slots: list[npt.NDArray] = []
    for name in names:
        feature = features[name]
        if "categories" in feature:
            levels = _levels(feature)
            edges.append(level_edges(len(levels)))
            slots.append(np.concatenate([[0], _slots(feature, levels, 2)]))
        else:
            cuts = _of_term(feature["cuts"], 2)
            edges.append(np.array([-np.inf, *map(float, cuts), np.inf]))
            slots.append(np.arange(len(cuts) + 2))
    picked = np.ix_(*slots)
    return Pair(places[names[0]], places[names[1]], edges[0], edges[1], values[picked],
                None if weights is None else weights[picked])  # fmt: skip
