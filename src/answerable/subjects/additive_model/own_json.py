"""This project's own JSON: every number as its shortest exact decimal, infinities as words."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from answerable.errors import BadInput, CannotRead

from .form import AdditiveModel
from .parts import Pair, Shape

FORMAT = "answerable additive model 1"
_SHAPE = {"edges", "coefficients", "origins", "allowed", "missing", "weights"}
_PAIR = {"first_edges", "second_edges", "values", "weights"}


def to_json(model: AdditiveModel) -> str:
    """The model as JSON text."""
    document = {
        "format": FORMAT,
        "task": model.task,
        "classes": list(model.classes),
        "cutoff": model.cutoff,
        "logit": model.logit,
        "source": model.source,
        "intercept": _plain(model.intercept),
        "features": [_fields_of(shape) for shape in model.features],
        "pairs": [_fields_of(pair) for pair in model.pairs],
    }
    return json.dumps(document, allow_nan=False)


def from_json(source: Any) -> AdditiveModel:
    """The model in a path, a JSON text or a parsed document.

    Raises
    ------
    CannotRead : it is no such document
    """
    where = str(source) if isinstance(source, Path) else "additive model"
    try:
        if isinstance(source, Path):
            source = source.read_text(encoding="utf-8")
        document = source if isinstance(source, Mapping) else json.loads(source)
        if document.get("format") != FORMAT:
            raise BadInput(f"its format is {str(document.get('format'))[:40]!r}", where=where, mend=f"give {FORMAT!r}")
        _check_kinds(document)
        return AdditiveModel(
            tuple(Shape(**_fields(entry, _SHAPE)) for entry in document["features"]),
            _array(document["intercept"]),
            tuple(Pair(**_fields(entry, _PAIR)) for entry in document["pairs"]),
            task=document["task"], classes=tuple(document["classes"]), cutoff=float(document["cutoff"]),
            logit=document["logit"], source=document["source"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        said = " ".join(str(failure).split())[:120]
        mend = "save it again with to_json"
        raise CannotRead(f"no additive model can be read ({said})", where=where, mend=mend) from None


def _check_kinds(document: Mapping[str, Any]) -> None:
    """Raise TypeError where what must be text, a list or true or false is something else."""
    features = document["features"]
    lists = [document["classes"], *(entry.get("levels", []) for entry in features)]
    words = [document["task"], document["source"], *(entry["name"] for entry in features)]
    marks = [document["logit"], *(entry.get(name, False) for entry in features for name in ("integer", "edge_goes_up"))]
    if not all(isinstance(part, list) for part in lists):
        raise TypeError("classes or levels are no list")
    if not all(isinstance(word, str) for word in (*words, *(word for part in lists for word in part))):
        raise TypeError("a name, class or level is no text")
    if not all(isinstance(mark, bool) for mark in marks):
        raise TypeError("logit, integer or edge_goes_up is neither true nor false")


def _fields_of(part: Shape | Pair) -> dict[str, Any]:
    return {field.name: _plain(getattr(part, field.name)) for field in dataclasses.fields(part)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _array(value: Any) -> Any:
    return None if value is None else np.array(value, np.float64)


def _fields(entry: Mapping[str, Any], arrays: set[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: _array(value) if name in arrays else value for name, value in entry.items()}
    for name in ("low", "high"):
        if name in fields:
            fields[name] = float(fields[name])
    if "levels" in fields:
        fields["levels"] = tuple(fields["levels"])
    return fields
