"""Many texts at once, with what is known of each: who wrote it, of what kind it is.

Read from CSV, Parquet, JSON and JSON Lines with a column of texts, from the JSON of the DetectRL benchmark (a list of
``{"text", "label", ...}``) and of MGTBench and Fast-DetectGPT (``{"original": [...], "sampled": [...]}``), from a
dataframe or a list of texts. ``python:topics`` and ``python:docstrings`` are texts that come with Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from answerable.errors import AnswerableError, BadInput, unknown
from answerable.subjects import python_texts
from answerable.subjects.address import locate
from answerable.subjects.json_records import read_json_records, records_digest
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

HUMAN = frozenset({"human", "0", "false", "original", "person", "real"})
MACHINE = frozenset({"llm", "machine", "1", "true", "sampled", "ai", "generated", "model", "chatgpt", "gpt"})
PROSE = frozenset({".txt", ".md", ".rst"})
WHAT = "a CSV, Parquet, JSON or JSON Lines file of texts"


class Corpus(NamedTuple):
    """Texts in the order of their rows.

    texts : n texts; a missing entry of a table is an empty text
    labels : for each 1 (a machine wrote it), 0 (a person did) or None (not known)
    kinds : for each its kind (language, genre); empty where no column was named
    """

    texts: list[str]
    labels: list[int | None]
    kinds: list[str]

    @property
    def is_labelled(self) -> bool:
        """Whether anything is known of who wrote them."""
        return any(label is not None for label in self.labels)


def read_corpus(
    subject: Any, *, column: str = "text", label: str = "label", kind: str | None = None, name: str = "texts"
) -> Corpus:
    """Texts, their labels and their kinds.

    Parameters
    ----------
    subject : path of a file, a dataframe, a list or a column of texts, or a list of records
    column : the column, or the key of each record, that holds the text
    label : the one that says who wrote it; taken where it is there. ``human``, ``llm``, ``machine``, 0, 1 and the like
    kind : the one that holds the kind
    name : what texts in memory are called where something is wrong with them

    Raises
    ------
    CannotRead, Refused : a file that is missing, damaged, or no table
    BadInput : a row that is no text, a label that says neither; the line names the row, from 1
    UnknownName : no such column
    """
    if not isinstance(subject, (str, Path)):
        return _from_memory(_listed(subject), name, column, label, kind)
    if str(subject) in python_texts.ADDRESSES:
        return _from_memory(python_texts.read_python_texts(str(subject)), str(subject), column, label, kind)
    path = locate(subject, what=WHAT)
    content = kind_of(path)
    refuse_pickle(path, content)
    if content == "json":
        return _from_memory(read_json_records(path), str(path), column, label, kind)
    if content == "empty":
        raise BadInput("the file is empty", where=str(path), mend=f"give {WHAT}")
    from answerable.subjects.table import read_table

    try:
        return _from_table(read_table(path), str(path), column, label, kind)
    except AnswerableError:
        if path.suffix.lower() not in PROSE:
            raise
    mend = f"a text by itself goes in as text=@{path.name}; many as {WHAT}"
    raise BadInput(f"this is no table with a column {column!r}", where=str(path), mend=mend)


def digest(value: object) -> str | None:
    """SHA-256 of a file's bytes, of a dataframe's cells, or of texts or records."""
    if isinstance(value, str) and value in python_texts.ADDRESSES:
        return records_digest(python_texts.read_python_texts(str(value)))
    if isinstance(value, (str, Path)):
        return file_digest(locate(value, what=WHAT))
    value = _listed(value)
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, bytes)):
        return records_digest(list(value) if not isinstance(value, Mapping) else dict(value))
    _check_table(value, "texts")
    from answerable.subjects import table

    return table.digest(value)


def _listed(value: Any) -> Any:
    """A column of a dataframe, or an array of texts, as a list; anything else as it is."""
    for name in ("to_list", "to_pylist", "tolist"):  # polars and pandas; pyarrow; numpy
        if hasattr(value, name) and not hasattr(value, "columns"):
            return getattr(value, name)()
    return value


def _from_memory(value: Any, where: str, column: str, label: str, kind: str | None) -> Corpus:
    if isinstance(value, Mapping) and {"original", "sampled"} <= set(value):
        return _from_pairs(value, where)
    if isinstance(value, Mapping) and isinstance(value.get(column), str):
        value = [value]  # JSON Lines of one line
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _from_rows(list(value), where, column, label, kind)
    if isinstance(value, Mapping) and not isinstance(value.get(column), list):
        known = ", ".join(map(str, list(value)[:6]))
        mend = "give a list of records, or original and sampled"
        raise BadInput(f"an object with {known or 'nothing in it'} is no list of texts", where=where, mend=mend)
    _check_table(value, where)
    from answerable.subjects.table import as_table

    return _from_table(as_table(value), where, column, label, kind)


def _check_table(value: Any, where: str) -> None:
    if not isinstance(value, Mapping) and not hasattr(value, "columns"):
        mend = "give a list of texts, a dataframe or a path"
        raise BadInput(f"a {type(value).__name__} holds no texts", where=where, mend=mend)


def _from_pairs(value: Mapping[str, Any], where: str) -> Corpus:
    """MGTBench's layout: what people wrote beside what a model made of it."""
    texts: list[str] = []
    labels: list[int | None] = []
    for name, written_by in (("original", 0), ("sampled", 1)):
        entries = value[name]
        if not isinstance(entries, list):
            raise BadInput(f"{name} is no list", where=where, mend="give a list of texts")
        texts += [_text(entry, f"{where}, {name} {row}") for row, entry in enumerate(entries, 1)]
        labels += [written_by] * len(entries)
    return _some(Corpus(texts, labels, []), where)


def _from_rows(rows: list[Any], where: str, column: str, label: str, kind: str | None) -> Corpus:
    if not any(isinstance(row, Mapping) for row in rows):
        if kind is not None and rows:
            raise BadInput(f"these are texts alone, without a column {kind!r}", where=where, mend="give records")
        texts = [_text(row, f"{where}, row {number}") for number, row in enumerate(rows, 1)]
        return _some(Corpus(texts, [None] * len(texts), []), where)
    texts, labels, kinds = [], [], []
    for number, row in enumerate(rows, 1):
        place = f"{where}, row {number}"
        if not isinstance(row, Mapping):
            raise BadInput(f"a {type(row).__name__} stands among records", where=place, mend="give one kind of row")
        if column not in row:
            raise unknown("column", column, map(str, row), where=place)
        texts.append(_text(row[column], f"{place}, {column}"))
        labels.append(read_label(row.get(label), f"{place}, {label}"))
        if kind is not None:
            if row.get(kind) is None:
                raise BadInput(f"there is no {kind!r}", where=place, mend="give each row its kind")
            kinds.append(str(row[kind]))
    return _some(Corpus(texts, labels, kinds), where)


def _from_table(frame: Any, where: str, column: str, label: str, kind: str | None) -> Corpus:
    for name in (column, *([kind] if kind is not None else [])):
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=where)
    texts = [
        "" if entry is None else _text(entry, f"{where}, row {row}, {column}")
        for row, entry in enumerate(frame[column].to_list(), 1)
    ]
    given = frame[label].to_list() if label in frame.columns else [None] * len(texts)
    labels = [read_label(entry, f"{where}, row {row}, {label}") for row, entry in enumerate(given, 1)]
    kinds = frame[kind].to_list() if kind is not None else []
    for row, entry in enumerate(kinds, 1):
        if entry is None:
            raise BadInput(f"there is no {kind!r}", where=f"{where}, row {row}", mend="give each row its kind")
    return _some(Corpus(texts, labels, [str(entry) for entry in kinds]), where)


def _text(entry: object, where: str) -> str:
    if not isinstance(entry, str):
        raise BadInput(f"a {type(entry).__name__} is no text", where=where, mend="give a string")
    if any("\ud800" <= character <= "\udfff" for character in entry):
        raise BadInput("the text holds a lone surrogate", where=where, mend="save it as UTF-8")
    return entry


def read_label(entry: object, where: str) -> int | None:
    """Who wrote a text: 1 a machine, 0 a person, None where nothing is said.

    Raises
    ------
    BadInput : it says something else
    """
    if entry is None or (isinstance(entry, float) and entry != entry):
        return None
    said = str(int(entry) if isinstance(entry, float) and entry.is_integer() else entry).strip().lower()
    if said in HUMAN or said in MACHINE:
        return int(said in MACHINE)
    raise BadInput(f"{str(entry)[:40]!r} says neither human nor machine", where=where, mend="write human or machine")


def _some(corpus: Corpus, where: str) -> Corpus:
    if not corpus.texts:
        raise BadInput("there is no text", where=where, mend="give at least one")
    return corpus
