"""An additive model from an address or a live object, whatever its kind; files are told by their content."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from answerable.errors import CannotRead, Refused, missing_extra
from answerable.subjects.address import locate
from answerable.subjects.kinds import kind_of, refuse_pickle

from .form import AdditiveModel

KINDS = "a scorecard (CSV or Parquet), an EBM's to_json file, a skops or safetensors file or answerable's own JSON"


def load(subject: Any, rows: Any = None, *, stated: Collection[str] = ()) -> AdditiveModel:
    """An additive model.

    Parameters
    ----------
    subject : path of a scorecard, an EBM's ``to_json`` file, a skops file, a neural additive model's safetensors
        (:func:`.network.from_tensors` says which), or our own JSON; or a parsed document of
        these, a fitted EBM, pyGAM or scikit-learn model, a dataframe that holds a scorecard, or an
        :class:`AdditiveModel`
    rows : the rows that a scikit-learn model was fitted on: names and observed ranges of its features
    stated : features whose domain the caller states, so that no range of theirs is read from the rows

    Raises
    ------
    CannotRead, Refused : a file that is no additive model, or one that could run code
    BadInput : an object of another kind
    """
    if isinstance(subject, AdditiveModel):
        return subject
    if isinstance(subject, (str, Path)):
        return _from_file(locate(subject, what=KINDS), rows, stated)
    if isinstance(subject, Mapping):
        return AdditiveModel.from_ebm(subject) if "ebm" in subject else AdditiveModel.from_json(subject)
    module = type(subject).__module__
    if hasattr(subject, "to_jsonable"):
        return AdditiveModel.from_ebm(subject)
    if module.startswith("pygam"):
        return AdditiveModel.from_pygam(subject)
    if hasattr(subject, "predict"):
        return AdditiveModel.from_sklearn(subject, rows, stated=stated)
    return AdditiveModel.from_scorecard(subject)


def _from_file(path: Path, rows: Any, stated: Collection[str]) -> AdditiveModel:
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind == "json":
        return _from_json(path)
    if kind == "safetensors":
        return _from_safetensors(path)
    if kind in ("text", "parquet"):
        return AdditiveModel.from_scorecard(path)
    if _holds_schema(path):
        return AdditiveModel.from_sklearn(_from_skops(path), rows, stated=stated)
    raise CannotRead(f"a file of kind {kind!r} is no additive model", where=str(path), mend=f"give {KINDS}")


def _holds_schema(path: Path) -> bool:
    """Whether it is an archive as skops writes it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def _from_safetensors(path: Path) -> AdditiveModel:
    from answerable.subjects.safetensors_header import read_header

    from .network import from_tensors

    read_header(path)
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise missing_extra("safetensors", "models") from None
    return from_tensors(load_file(path), str(path))


def _from_json(path: Path) -> AdditiveModel:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as failure:
        said = " ".join(str(failure).split())[:120]
        raise CannotRead(f"no JSON can be read ({said})", where=str(path), mend="write it again") from None
    if isinstance(document, dict) and "ebm" in document:
        return AdditiveModel.from_ebm(path)
    if isinstance(document, dict) and "format" in document:
        return AdditiveModel.from_json(path)
    raise CannotRead("the document is neither an EBM nor an additive model", where=str(path), mend=f"give {KINDS}")


def _from_skops(path: Path) -> Any:
    try:
        from skops import io  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise missing_extra("skops", "additive") from None
    unknown = _from_damaged(io.get_untrusted_types, path)
    if unknown:
        raise Refused(
            f"it holds types that are not trusted: {', '.join(unknown)[:200]}", where=str(path),
            mend="load it yourself once you trust them, and hand in its exact form, AdditiveModel.from_sklearn(...)",
        )  # fmt: skip
    return _from_damaged(io.load, path)


def _from_damaged(read: Callable[..., Any], path: Path) -> Any:
    try:
        return read(file=path)
    except Exception as failure:  # a damaged archive may fail in any way
        said = " ".join(str(failure).split())[:120]
        raise CannotRead(f"no model can be read ({said})", where=str(path), mend="save it again with skops") from None
