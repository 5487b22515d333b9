"""Answer logs: what models answered to the same questions, as right, wrong or missing.

Read are

- a table in long form (CSV, Parquet, a dataframe): ``model``, ``item_id`` and ``answer``, or ``correct`` / ``score``
  / ``acc`` where it is already marked; ``dataset``, ``gold``, ``text`` and ``family`` where they are known;
- JSON lines with the same names;
- a folder of lm-evaluation-harness samples (``samples_TASK_*.jsonl`` or Parquet, a folder for each model);
- a folder of Inspect logs (``.json`` or ``.eval``);
- a folder of ``MODEL_error.csv`` (``file,index,sentence``), one line for each wrong answer, with ``accuracy.csv``.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from answerable.errors import BadInput, CannotRead, unknown
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle
from answerable.subjects.table import as_table, read_table

Floats = npt.NDArray[np.float64]

MOST_OPTIONS = 20  # right answers of a data set, beyond which it is taken to be open-ended
MOST_BYTES = 2_000_000_000  # of one file inside an archive
MARKS = ("correct", "score", "acc", "acc_norm", "exact_match")
NO_MARKS = ("none", "null", "nan", "na", "n/a", "n")  # of an answer that was not marked; n is Inspect's
GRADES: dict[str, float] = {"C": 1.0, "I": 0.0, "P": 0.5}  # Inspect's letters
NAMES = ("model", "dataset", "item_id", "answer", "gold", "text", "family", *MARKS)


@dataclass(frozen=True)
class AnswerLog:
    """Answers of M models to N items.

    Parameters
    ----------
    models : (M,) names
    items : (N,) data set and name of each item there
    errors : (M, N) float64: 1 wrong, 0 right, between for one minus a score, NaN where there is no answer
    answers : (M, N) object, the answers as text, "" where none is known
    gold : (N,) right answers, "" where none is known
    texts : (N,) the questions, "" where none is known
    families : family by model, as far as the log says
    accuracy : accuracy by (model, data set), where it was written down beside the log
    unreadable : (M,) share of the answers that were none of the options
    """

    models: tuple[str, ...]
    items: tuple[tuple[str, str], ...]
    errors: Floats
    answers: npt.NDArray[np.object_]
    gold: tuple[str, ...]
    texts: tuple[str, ...]
    families: Mapping[str, str] = field(default_factory=dict)
    accuracy: Mapping[tuple[str, str], float] = field(default_factory=dict)
    unreadable: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def datasets(self) -> list[str]:
        """(N,) data set of each item."""
        return [dataset for dataset, _ in self.items]

    def of(self, models: Iterable[str]) -> AnswerLog:
        """The same items, answered by some of the models.

        Raises
        ------
        UnknownName : the log has no such model
        """
        for model in (models := list(models)):
            if model not in self.models:
                raise unknown("model", model, self.models, where="answer log")
        rows = [self.models.index(model) for model in models]
        families = {model: family for model, family in self.families.items() if model in models}
        unreadable = self.unreadable[rows] if len(self.unreadable) else self.unreadable
        return AnswerLog(
            tuple(models), self.items, self.errors[rows], self.answers[rows], self.gold, self.texts, families,
            self.accuracy, unreadable,
        )  # fmt: skip

    def at(self, items: Iterable[tuple[str, str]]) -> AnswerLog:
        """The same models at these items, in their order; missing where the log has no such item."""
        place = {item: number for number, item in enumerate(self.items)}
        items = tuple(items)
        columns = np.array([place.get(item, -1) for item in items], np.int64)
        errors = np.where(columns >= 0, self.errors[:, columns], np.nan)
        answers = np.where(columns >= 0, self.answers[:, columns], "")
        gold, texts = (tuple(of[c] if c >= 0 else "" for c in columns) for of in (self.gold, self.texts))
        return AnswerLog(
            self.models, items, errors, answers, gold, texts, self.families, self.accuracy, self.unreadable
        )


def read_answer_log(subject: Any, *, gold: Any = None) -> AnswerLog:
    """An answer log, from a file or folder, a dataframe, or one that was read before.

    Parameters
    ----------
    subject : as the top of this module says
    gold : table of right answers: ``item_id``, ``gold``, and ``dataset`` and ``text`` where the log has them

    Raises
    ------
    CannotRead, Refused : a missing or damaged file, or one that is no log
    BadInput, UnknownName : a column that is missing, a score outside [0, 1], an item answered twice by one model
    """
    if isinstance(subject, AnswerLog):
        return subject
    if not isinstance(subject, (str, Path)):
        return _from_table(as_table(subject), "answer log", gold)
    path = locate(subject, what="an answer log")
    if path.is_dir():
        return _from_folder(path, gold)
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind == "json":
        return _from_table(_frame(_json_lines(path), str(path)), str(path), gold)
    return _from_table(read_table(path), str(path), gold)


def digest(value: object) -> str | None:
    """SHA-256 of the bytes of a log's files and their names, or of a live log's cells."""
    if isinstance(value, AnswerLog):
        known = [
            value.models,
            value.items,
            value.answers.tolist(),
            value.gold,
            value.texts,
            sorted(value.families.items()),
        ]
        told = json.dumps([known, [[*key, number] for key, number in sorted(value.accuracy.items())]])
        return hashlib.sha256(told.encode() + np.ascontiguousarray(value.errors).tobytes()).hexdigest()
    if not isinstance(value, (str, Path)):
        from answerable.subjects.table import digest as table_digest

        return table_digest(value)
    path = locate(value, what="an answer log")
    if not path.is_dir():
        return file_digest(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    told = json.dumps([[file.relative_to(path).as_posix(), file_digest(file)] for file in files])
    return hashlib.sha256(told.encode()).hexdigest()


# Long tables


def _from_table(frame: pl.DataFrame, where: str, gold: Any = None) -> AnswerLog:
    frame = frame.rename({"doc_id": "item_id"} if "doc_id" in frame.columns and "item_id" not in frame.columns else {})
    for needed in ("model", "item_id"):
        if needed not in frame.columns:
            raise unknown("column", needed, frame.columns, where=where)
    frame = frame.select(name for name in frame.columns if name in NAMES)
    if "dataset" not in frame.columns:
        frame = frame.with_columns(dataset=pl.lit("items"))
    frame = frame.with_columns(pl.col("model", "dataset", "item_id").cast(pl.String))
    if frame.select(pl.col("model", "dataset", "item_id").is_null().any()).row(0) != (False,) * 3:
        raise BadInput("a row without model, data set or item", where=where, mend="fill it in or drop it")
    if gold is not None:
        frame = _with_gold(frame, gold)
    mark = next((name for name in MARKS if name in frame.columns), None)
    if mark is None and not {"answer", "gold"} <= set(frame.columns):
        mend = "add columns answer and gold, or correct; or name a table of right answers"
        raise BadInput("nothing says which answers are right", where=where, mend=mend)
    _refuse_repeated(frame, where)
    _refuse_contradicted(frame, "model", "family", "families", where)
    if mark is None:
        _refuse_contradicted(frame.with_columns(item=pl.concat_str("dataset", "item_id", separator=" / ")), "item",
                             "gold", "right answers", where)  # fmt: skip
    return _assembled(frame, mark, where)


def _with_gold(frame: pl.DataFrame, gold: Any) -> pl.DataFrame:
    where = str(gold) if isinstance(gold, (str, Path)) else "right answers"
    right = read_table(gold)
    for needed in ("item_id", "gold"):
        if needed not in right.columns:
            raise unknown("column", needed, right.columns, where=where)
    keys = [name for name in ("dataset", "item_id") if name in right.columns]
    right = right.select(
        *(pl.col(name).cast(pl.String) for name in keys), *(name for name in ("gold", "text") if name in right.columns)
    )
    if right.select(keys).is_duplicated().any():
        raise BadInput("an item has two right answers", where=where, mend="keep one row for each item")
    return frame.drop([name for name in right.columns if name not in keys and name in frame.columns]).join(
        right, on=keys, how="left", maintain_order="left"
    )


def _refuse_repeated(frame: pl.DataFrame, where: str) -> None:
    counts = Counter(frame.select("model", "dataset", "item_id").iter_rows())
    twice = [" / ".join(key) for key, count in counts.items() if count > 1][:5]
    if twice:
        raise BadInput(f"answered twice by one model: {'; '.join(twice)}", where=where, mend="keep one row for each")


def _refuse_contradicted(frame: pl.DataFrame, key: str, column: str, what: str, where: str) -> None:
    """One value of a column for each key; where a row has none, the others' counts."""
    if column not in frame.columns:
        return
    pairs = frame.select(key, pl.col(column).cast(pl.String, strict=False)).drop_nulls().filter(pl.col(column) != "")
    told = pairs.unique(maintain_order=True)
    twice = told.filter(pl.col(key).is_duplicated())
    if twice.height:
        first = twice[key][0]
        values = ", ".join(repr(one[:60]) for one in twice.filter(pl.col(key) == first)[column][:3])
        raise BadInput(f"{first[:80]} has several {what}: {values}", where=where, mend="keep one of them")


def _assembled(frame: pl.DataFrame, mark: str | None, where: str) -> AnswerLog:
    models = tuple(dict.fromkeys(frame["model"]))
    items = tuple(dict.fromkeys(zip(frame["dataset"], frame["item_id"])))
    row = {model: number for number, model in enumerate(models)}
    column = {item: number for number, item in enumerate(items)}
    rows = np.array([row[model] for model in frame["model"]], np.int64)
    columns = np.array([column[item] for item in zip(frame["dataset"], frame["item_id"])], np.int64)
    answered = [_text(entry) for entry in frame["answer"]] if "answer" in frame.columns else [""] * frame.height
    gold, texts = ([""] * len(items) for _ in range(2))
    for name, into in (("gold", gold), ("text", texts)):
        if name in frame.columns:
            for place, entry in zip(columns, frame[name]):
                into[place] = into[place] or _text(entry)
    errors, unreadable = np.full((len(models), len(items)), np.nan), np.zeros(len(models))
    if mark is not None:
        errors[rows, columns] = 1.0 - _marks(frame[mark], f"{where}, column {mark}")
    else:
        marked = _marked(answered, columns, gold, items)
        errors[rows, columns] = marked
        none = np.isnan(marked) & np.array([bool(answer) for answer in answered])
        unreadable = np.bincount(rows, none, len(models)) / np.bincount(rows, minlength=len(models))
    answers = np.full((len(models), len(items)), "", object)
    answers[rows, columns] = answered
    families = dict(zip(frame["model"], map(_text, frame["family"]))) if "family" in frame.columns else {}
    families = {model: family for model, family in families.items() if family}
    return AnswerLog(models, items, errors, answers, tuple(gold), tuple(texts), families, {}, unreadable)


def _marks(column: pl.Series, where: str) -> Floats:
    """Scores between 0 and 1, NaN where there is none."""
    words = {"true": "1", "false": "0", "c": "1", "i": "0"}
    if column.dtype == pl.String:
        column = column.str.to_lowercase().replace(words)
    if not (column.dtype in (pl.String, pl.Boolean, pl.Null) or column.dtype.is_numeric()):
        raise BadInput(f"a column of {column.dtype} holds no scores", where=where, mend="give numbers from 0 to 1")
    read = column.cast(pl.Float64, strict=False)
    if column.dtype == pl.String:
        unread = (read.is_null() & ~column.str.strip_chars().is_in(["", *NO_MARKS]).fill_null(True)).arg_true()
        if len(unread):
            at = int(unread[0])
            mend = "give a number from 0 to 1, true or false, or nothing"
            raise BadInput(f"{column[at][:60]!r} is no score", where=f"{where}, row {at + 1}", mend=mend)
    found = read.fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero((found < 0) | (found > 1) | np.isinf(found))
    if len(wrong):
        at = int(wrong[0])
        raise BadInput(f"{found[at]:g} is no score", where=f"{where}, row {at + 1}", mend="give one from 0 to 1")
    return found


def _marked(answers: list[str], columns: npt.NDArray[np.int64], gold: list[str], items: tuple) -> Floats:
    """1 for wrong, 0 for right, NaN for no answer, or for one that names none of the data set's options, or several."""
    options: dict[str, set[str]] = {}
    for (dataset, _), right in zip(items, gold):
        options.setdefault(dataset, set()).add(_plain(right))
    readers = {dataset: _reader(found - {""}) for dataset, found in options.items()}
    found = np.full(len(answers), np.nan)
    for place, (answer, column) in enumerate(zip(answers, columns)):
        right = _plain(gold[column])
        if not right or not answer.strip():
            continue
        read = readers[items[column][0]](_plain(answer))
        if read is not None:
            found[place] = float(read != right)
    return found


def _reader(options: set[str]) -> Callable[[str], str | None]:
    """How an answer to items of these right answers is read: as the one option that it names, or as it stands."""
    if len(options) > MOST_OPTIONS:
        return lambda answer: answer
    names = {option: re.compile(rf"(?<!\w){re.escape(option)}(?!\w)") for option in options}

    def read(answer: str) -> str | None:
        if answer in options:
            return answer
        named = [option for option, pattern in names.items() if pattern.search(answer)]
        return named[0] if len(named) == 1 else None

    return read


def _plain(text: str) -> str:
    return text.strip().strip(".()\"'").casefold()


def _text(entry: Any) -> str:
    """The entry as text; half of a surrogate pair, as a reply that was cut short may end with, as a question mark."""
    text = "" if entry is None or entry != entry else str(entry)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# Files of other programs


def _from_folder(path: Path, gold: Any) -> AnswerLog:
    if errors := sorted(path.glob("*_error.csv")):
        return _from_error_lists(path, errors)
    rows: list[dict[str, Any]] = []
    for file in sorted(path.rglob("*")):
        name = file.name
        if name.startswith("samples_") and kind_of(file) in ("json", "parquet"):
            rows += _harness_rows(file, path)
        elif file.suffix in (".json", ".eval") and file.is_file():
            rows += _inspect_rows(file)
    if not rows:
        mend = "give samples_*.jsonl of lm-evaluation-harness, logs of Inspect, or lists MODEL_error.csv"
        raise CannotRead("the folder holds no answer log", where=str(path), mend=mend)
    return _from_table(_frame(rows, str(path)), str(path), gold)


def _harness_rows(file: Path, root: Path) -> Iterator[dict[str, Any]]:
    """Samples of lm-evaluation-harness: the folder is the model, the file's name holds the task."""
    model = file.parent.relative_to(root).as_posix() if file.parent != root else root.name
    task = re.sub(r"_\d{4}-\d{2}-\d{2}T.*$", "", file.name.removeprefix("samples_").partition(".")[0])
    entries = read_table(file).iter_rows(named=True) if kind_of(file) == "parquet" else _json_lines(file)
    for entry in entries:
        mark = next((float(entry[name]) for name in MARKS if isinstance(entry.get(name), (int, float))), None)
        answer = entry.get("filtered_resps", entry.get("resps"))
        document = entry.get("doc")
        yield {
            "model": model, "dataset": task, "item_id": entry.get("doc_id"), "answer": _first(answer),
            "gold": _text(entry.get("target")), "text": _question(document), "score": mark,
        }  # fmt: skip


def _first(responses: Any) -> str:
    """The text that was answered; of a choice by log-probabilities, the number of the likeliest option."""
    if not isinstance(responses, list) or not responses:
        return _text(responses)
    options = [one[0] if isinstance(one, list) and one and isinstance(one[0], list) else one for one in responses]
    if all(isinstance(one, list) and one and _is_number(one[0]) for one in options):
        return str(int(np.argmax([float(one[0]) for one in options])))
    return _first(responses[0]) if isinstance(responses[0], list) else _text(responses[0])


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _question(document: Any) -> str:
    if isinstance(document, dict):
        for name in ("question", "query", "sentence", "premise", "text", "ctx", "prompt"):
            if isinstance(document.get(name), str):
                return document[name]
        return json.dumps(document, ensure_ascii=False)[:2000]
    return _text(document)


def _inspect_rows(file: Path) -> Iterator[dict[str, Any]]:
    """A log of Inspect, as one JSON file or as an archive of samples."""
    if file.suffix == ".eval":
        header, samples = _inspect_archive(file)
    else:
        header = _json_document(file.read_bytes(), str(file))
        samples = header.get("samples") or []
    if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
        raise CannotRead("its samples are no list of objects", where=str(file), mend="write the log again")
    told = header.get("eval")
    if not isinstance(told, dict) or "model" not in told:
        return
    for sample in samples:
        scores = _object(sample.get("scores"))
        value = next((one.get("value") for one in scores.values() if isinstance(one, dict)), None)
        output = _object(sample.get("output"))
        yield {
            "model": _text(told["model"]), "dataset": _text(told.get("task")) or "task",
            "item_id": _text(sample.get("id")),
            "answer": _text(output.get("completion")) or _text(_first_message(output)),
            "gold": _text(sample.get("target")), "text": _question(sample.get("input")),
            "score": GRADES.get(str(value), value) if isinstance(value, (str, int, float)) else None,
        }  # fmt: skip


def _first_message(output: Mapping[str, Any]) -> Any:
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _object(_object(first).get("message")).get("content")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _inspect_archive(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        with zipfile.ZipFile(file) as archive:
            names = [one.filename for one in archive.infolist() if one.file_size <= MOST_BYTES]
            header = _json_document(archive.read("header.json"), str(file)) if "header.json" in names else {}
            samples = [
                _json_document(archive.read(name), f"{file}, {name}")
                for name in names
                if name.startswith("samples/") and name.endswith(".json")
            ]
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as failure:
        raise CannotRead(f"the archive is damaged ({failure})", where=str(file), mend="write the log again") from None
    return header, samples


def _from_error_lists(path: Path, files: list[Path]) -> AnswerLog:
    """Lists of the items that each model got wrong; an item of any list that a model's own lacks was right."""
    models = tuple(file.name.removesuffix("_error.csv") for file in files)
    wrong: list[set[tuple[str, str]]] = []
    texts: dict[tuple[str, str], str] = {}
    for file in files:
        frame = read_table(file)
        for needed in ("file", "index"):
            if needed not in frame.columns:
                raise unknown("column", needed, frame.columns, where=str(file))
        listed = list(zip(frame["file"].cast(pl.String), frame["index"].cast(pl.String)))
        wrong.append(set(listed))
        if "sentence" in frame.columns:
            texts |= dict(zip(listed, map(_text, frame["sentence"])))
    items = tuple(dict.fromkeys(item for one in wrong for item in sorted(one)))
    errors = np.array([[float(item in one) for item in items] for one in wrong])
    answers = np.full(errors.shape, "", object)
    found = tuple(texts.get(item, "") for item in items)
    return AnswerLog(models, items, errors, answers, ("",) * len(items), found, {}, _accuracies(path, models))


def _accuracies(path: Path, models: tuple[str, ...]) -> dict[tuple[str, str], float]:
    file = path / "accuracy.csv"
    if not file.exists():
        mend = "add accuracy.csv with the columns file and one for each model"
        raise BadInput("lists of errors do not say how many items were right", where=str(path), mend=mend)
    frame = read_table(file)
    for needed in ("file", *models):
        if needed not in frame.columns:
            raise unknown("column", needed, frame.columns, where=str(file))
    return {
        (model, _text(name)): float(value)
        for model in models
        for name, value in zip(frame["file"], _marks(frame[model], f"{file}, column {model}"))
    }


# JSON


def _frame(rows: Iterable[Mapping[str, Any]], where: str) -> pl.DataFrame:
    """Rows of plain values as a table; of a column that mixes types, as text."""
    listed = list(rows)
    names = [name for name in ("doc_id", *NAMES) if any(name in row for row in listed)]
    columns = {}
    for name in names:
        entries = [row.get(name) for row in listed]
        if name in MARKS:
            columns[name] = pl.Series(name, [None if one is None else str(one) for one in entries], pl.String)
        else:
            columns[name] = pl.Series(name, [None if one is None else _text(one) for one in entries], pl.String)
    if not columns or not listed:
        raise BadInput("it holds no answers", where=where, mend="give lines with model, item_id and answer")
    return pl.DataFrame(columns)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    entry = _json_document(line.encode(), f"{path}, line {number}")
                    yield entry
    except (OSError, UnicodeDecodeError) as failure:
        raise CannotRead(str(failure), where=str(path), mend="save it as UTF-8 JSON lines") from None


def _json_document(content: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as failure:
        raise CannotRead(f"it is not JSON ({failure})", where=where, mend="write it again") from None
    if not isinstance(found, dict):
        raise CannotRead(f"it is a {type(found).__name__}, not an object", where=where, mend="write one object a line")
    return found
