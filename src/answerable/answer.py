"""What comes back from a question: numbers with their uncertainty, tables, pictures, limits, and where they came from.

A saved answer is a folder: ``answer.json``, ``tables/*.parquet``, ``figures/*.vl.json`` and ``manifest.json`` with
the SHA-256 of
each. It holds no code and no pickle. Everything in ``answer.json`` except its block ``run`` (when, how long, on what
engine, by which
command) is the same bytes whenever the same question is asked of the same content.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from answerable.atomic import failing_in_one_line, write_folder
from answerable.errors import AnswerableError, BadInput, CannotRead, CannotWrite, DamagedAnswer
from answerable.verification import as_written, checked_files, files_in

if TYPE_CHECKING:
    import polars as pl

SCHEMA = 1
WIDE, NARROW = 736, 350  # widths in px of the two drawings of each figure
LARGEST_JSON = 64 * 2**20  # bytes; an answer's numbers and words are small, its rows stand in tables

Kind = Literal["estimated", "bounds", "exact", "one_sided"]
Role = Literal["ours", "baseline", "control", "null"]
Part = TypeVar("Part", "Metric", "Verdict", "Provenance", "RunRecord")


@dataclass(frozen=True)
class Metric:
    """One number, how sure it is, and how it was made.

    Parameters
    ----------
    value : the number; NaN where there is none, and then ``reason`` says why
    low, high : ends of the interval in the same unit; None for an exact number
    unit : unit in words, "1" for a bare ratio
    kind : ``estimated`` (an interval of sampling), ``bounds`` (proved ends), ``exact``, or ``one_sided`` (one end is
        open)
    method : what made the number or its interval, in a reader's words ("Wilson interval, 95 %", "certified flow")
    role : whose number it is: ours, a baseline's, a control's or a null's
    reason : why ``value`` is missing
    label : the metric's name in a reader's words; made from its key when empty
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = "1"
    kind: Kind = "estimated"
    method: str = ""
    role: Role = "ours"
    reason: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _plain_number(number, name))
        missing = isinstance(self.value, float) and math.isnan(self.value)
        if missing and not self.reason:
            raise BadInput("a metric without a value gives no reason", where="metric", mend="set reason")
        if self.kind == "exact" and (self.low is not None or self.high is not None):
            raise BadInput("an exact metric has no interval", where="metric", mend="leave out low and high")
        if self.kind in ("estimated", "bounds") and not missing and (self.low is None or self.high is None):
            raise BadInput(
                f"the metric is {self.kind} but lacks an interval",
                where="metric",
                mend="give low and high, or say kind='exact'",
            )
        if not self.method and not missing:
            raise BadInput("a metric does not say how it was made", where="metric", mend="set method")


@dataclass(frozen=True)
class Verdict:
    """What an answer decides.

    Parameters
    ----------
    word : one of the question's own words, or "undecided"
    reason : the one cause, with its number
    mend : what would decide it - an amount or an act
    """

    word: str
    reason: str = ""
    mend: str = ""


class Table:
    """A polars frame and what each of its columns means.

    Parameters
    ----------
    frame : any dataframe (polars, pandas, pyarrow, ...)
    descriptions : what each column holds, with its unit; one entry for every column
    title : caption
    """

    def __init__(self, frame: Any, descriptions: Mapping[str, str], *, title: str = "") -> None:
        import narwhals
        import polars as pl

        self._frame: pl.DataFrame | None = (
            frame if isinstance(frame, pl.DataFrame) else narwhals.from_native(frame, eager_only=True).to_polars()
        )
        self._parquet: bytes | None = None
        self.descriptions, self.title = dict(descriptions), title
        undescribed = [name for name in self._frame.columns if not self.descriptions.get(name)]
        if undescribed or len(self.descriptions) != len(self._frame.columns):
            where = f"table column {undescribed[0]!r}" if undescribed else "table"
            raise BadInput("columns and descriptions differ", where=where, mend="describe each column once")

    @property
    def frame(self) -> pl.DataFrame:
        """The rows, read when they are first looked at."""
        if self._frame is None:
            import polars as pl
            import pyarrow.parquet as pq

            assert self._parquet is not None
            try:
                # polars would end the whole process where a damaged page asks for more memory than there is
                self._frame = pl.DataFrame(pq.read_table(io.BytesIO(self._parquet)))
            except Exception as error:  # both raise many kinds for a file that is not Parquet
                raise DamagedAnswer(
                    "a table is not a Parquet file", where=self.title or "table", mend="ask again"
                ) from error
        return self._frame

    @property
    def parquet(self) -> bytes:
        """The rows as a Parquet file: for a loaded table the very bytes that were saved."""
        if self._parquet is None:
            buffer = io.BytesIO()
            self.frame.write_parquet(buffer, compression="zstd", statistics=False)
            self._parquet = buffer.getvalue()
        return self._parquet

    @classmethod
    def _loaded(cls, parquet: bytes, descriptions: Mapping[str, str], title: str) -> Table:
        table = cls.__new__(cls)
        table._frame, table._parquet, table.descriptions, table.title = None, parquet, dict(descriptions), title
        return table

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())


@dataclass(frozen=True)
class Figure:
    """A picture as data: one Vega-Lite specification for each of two widths, with the data inside.

    A specification carries title (the finding), description (the same in words, made from the data) and marks in
    named styles;
    the colours come from the theme when it is drawn.
    """

    wide: Mapping[str, Any]
    narrow: Mapping[str, Any]

    @classmethod
    def drawn(cls, draw: Callable[..., Any], *args: Any, **options: Any) -> Figure:
        """Draw with ``draw(*args, width=..., **options)``, an Altair chart, at both widths.

        Raises
        ------
        BadInput : the chart holds something that no report would draw
        """
        import altair as alt

        from answerable.report.specification import checked

        with alt.data_transformers.enable("default", max_rows=None, consolidate_datasets=False):
            wide, narrow = (draw(*args, width=width, **options).to_dict() for width in (WIDE, NARROW))
        for specification in (wide, narrow):
            specification.pop("config", None)  # the theme is put in when it is rendered, light or dark
            checked(specification)
        return cls(wide, narrow)

    @property
    def title(self) -> str:
        """The finding, in one sentence."""
        title = self.wide.get("title", "")
        text = title.get("text", "") if isinstance(title, Mapping) else title
        return " ".join(text) if isinstance(text, list) else str(text)

    @property
    def description(self) -> str:
        """The picture in words."""
        return str(self.wide.get("description", ""))

    def svg(self, *, narrow: bool = False) -> str:
        """The picture as SVG, with the theme's colours; written to a file, it opens as it is."""
        from answerable.report.drawing import svg

        # A page knows what an svg element is, a file must say so.
        drawn = svg(self.narrow if narrow else self.wide)
        return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class Provenance:
    """All that is needed to ask again, and that is the same whoever asks: content, never places.

    Parameters
    ----------
    question, key : its name, and the SHA-256 of everything below
    sources : SHA-256 of the question's own code and of the code it uses
    parameters : every field of the question; a subject is given by its kind and the digest of its content
    seed : seed of all chance in it, None where none was set
    threads : threads of each numerical library
    device : where tensors were
    packages : versions of the numerical packages it used
    tolerance : relative difference that another machine, device or number of threads may make
    """

    question: str = ""
    key: str = ""
    sources: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    threads: int = 1
    device: str = "cpu"
    packages: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class RunRecord:
    """What differs from one run to the next.

    Parameters
    ----------
    made : when, ISO 8601 with time zone
    seconds, peak_mb : wall time, with that of finished units which a stopped run left behind, and the process's largest
        memory so far in MB (10^6 bytes)
    engine, workers : what ran it
    addresses : where each subject was found
    command : a command that asks it again from those places
    version : version of answerable
    """

    made: str = ""
    seconds: float = 0.0
    peak_mb: float = 0.0
    engine: str = "local"
    workers: int = 1
    addresses: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    version: str = ""


@dataclass(frozen=True)
class Answer:
    """An answer with its evidence.

    Parameters
    ----------
    summary : one sentence a person would say, with its number in it
    metrics, tables, figures : by name
    limits : what the method cannot say about this very subject
    verdict : what the answer decides, where the question decides something
    void : the diagnostic that voids the answer, in one sentence; then every expectation on it is undecided
    """

    summary: str
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    limits: Sequence[str] = ()
    verdict: Verdict | None = None
    void: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    run: RunRecord = field(default_factory=RunRecord)
    from_store: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", tuple(self.limits))
        for part in (self.metrics, self.tables, self.figures):
            for name in part:
                _check_part_name(name)

    @property
    def question(self) -> str:
        """Name of the question."""
        return self.provenance.question

    def save(self, folder: str | Path) -> Path:
        """Write the answer as a folder, whole or not at all; the same answer that stands there already is written anew.

        Raises
        ------
        CannotWrite : the folder holds another answer, or something else beside this one, or cannot be written
        """
        target, files = Path(folder), self.files()
        with failing_in_one_line(target):
            standing = _standing_key(target)
            others = files_in(target).keys() - files.keys() if standing else set()
        if standing is not None and (not standing or standing != self.provenance.key):
            what = "another answer stands there" if standing else "something that is not an answer stands there"
            raise CannotWrite(what, where=str(target), mend="name a new folder")
        if others:
            what = f"{min(others)} stands there too and is no part of the answer"
            raise CannotWrite(what, where=str(target), mend="take it out, or name a new folder")
        write_folder(target, files)
        return target

    def __str__(self) -> str:
        from answerable.report.numbers import metric_words

        numbers = [f"  {name}: {metric_words(metric)}" for name, metric in self.metrics.items()]
        tables = [f"  {name}: {table.frame.height} rows" for name, table in self.tables.items()]
        return "\n".join([self.summary, "metrics", *numbers, "tables", *tables])

    def files(self) -> dict[str, bytes]:
        """Every file of the saved folder, by its path inside it, the manifest last."""
        files = {"answer.json": as_written(self._document())}
        for name, table in self.tables.items():
            files[f"tables/{name}.parquet"] = table.parquet
        for name, figure in self.figures.items():
            files[f"figures/{name}.vl.json"] = as_written(figure.wide)
            files[f"figures/{name}.narrow.vl.json"] = as_written(figure.narrow)
        files["manifest.json"] = as_written(
            {"schema": SCHEMA, "sha256": {path: _sha256(content) for path, content in files.items()}}
        )
        return files

    @classmethod
    def load(cls, folder: str | Path) -> Answer:
        """Read a saved answer after checking every file against the manifest.

        Raises
        ------
        CannotRead : there is no answer there, or a later version of answerable wrote it
        DamagedAnswer : a file is missing, changed, or was added
        """
        return cls.from_files(checked_files(Path(folder)), where=str(folder))

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], *, where: str) -> Answer:
        """An answer from the files of a saved folder, already checked."""
        try:
            document = json.loads(files["answer.json"], parse_constant=_refused_constant)
            _check_schema(document.get("schema"), where)
            return cls._from_document(document, files)
        except AnswerableError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DamagedAnswer(
                f"answer.json does not say what it must ({error})", where=where, mend="ask again"
            ) from error

    def without_run(self) -> dict[str, Any]:
        """``answer.json`` as data, less its block ``run``: what must be the same whoever asks."""
        document = self._document()
        del document["run"]
        return document

    def _document(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "question": self.question,
            "summary": self.summary,
            "verdict": None if self.verdict is None else asdict(self.verdict),
            "void": self.void,
            "metrics": {name: _metric_to_json(metric) for name, metric in self.metrics.items()},
            "tables": {
                name: {"title": table.title, "columns": table.descriptions} for name, table in self.tables.items()
            },
            "figures": list(self.figures),
            "limits": list(self.limits),
            "provenance": encode(asdict(self.provenance)),
            "run": encode(asdict(self.run)),
        }

    @classmethod
    def _from_document(cls, document: Mapping[str, Any], files: Mapping[str, bytes]) -> Answer:
        return cls(
            summary=_text(document["summary"]),
            verdict=None if document["verdict"] is None else _built(Verdict, document["verdict"]),
            void=_text(document["void"]),
            metrics={name: _metric_from_json(entry) for name, entry in document["metrics"].items()},
            tables={
                name: Table._loaded(files[f"tables/{name}.parquet"], _all_text(entry["columns"]), _text(entry["title"]))
                for name, entry in document["tables"].items()
            },
            figures={
                name: Figure(
                    json.loads(files[f"figures/{name}.vl.json"]), json.loads(files[f"figures/{name}.narrow.vl.json"])
                )
                for name in document["figures"]
            },
            limits=tuple(_text(limit) for limit in document["limits"]),
            provenance=_built(Provenance, decode(document["provenance"])),
            run=_built(RunRecord, decode(document["run"])),
        )

    def _repr_html_(self) -> str:
        from answerable.report import fragment

        return fragment(self)


def encode(value: Any) -> Any:
    """A value as JSON can hold it: NaN and infinities become ``{"$float": "nan" | "inf" | "-inf"}``, tuples become
    lists.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, Mapping):
        return {str(name): encode(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(entry) for entry in value]
    return value


def decode(value: Any) -> Any:
    """The value that :func:`encode` wrote."""
    if isinstance(value, dict):
        if set(value) == {"$float"}:
            return float(value["$float"])
        return {name: decode(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [decode(entry) for entry in value]
    return value


def with_record(answer: Answer, provenance: Provenance, run: RunRecord) -> Answer:
    """The answer a question gave, with the record of where it came from."""
    return replace(answer, provenance=provenance, run=run)


def _standing_key(target: Path) -> str | None:
    """Key of the answer that stands in a folder, empty for anything else there; None where there is nothing."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return None
    try:
        key = json.loads((target / "answer.json").read_bytes())["provenance"]["key"]
        return key if isinstance(key, str) and (target / "manifest.json").is_file() else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _metric_to_json(metric: Metric) -> dict[str, Any]:
    # A missing number is null with its reason beside it; an end that does not exist is left out, so that NaN and
    # None stay apart.
    document = {entry.name: getattr(metric, entry.name) for entry in fields(metric)}
    for name in ("value", "low", "high"):
        number = document[name]
        if number is None:
            del document[name]
        elif isinstance(number, float) and not math.isfinite(number):
            document[name] = None if math.isnan(number) else str(number)
    return document


def _metric_from_json(document: Mapping[str, Any]) -> Metric:
    numbers = {
        name: math.nan if document[name] is None else document[name]
        for name in ("value", "low", "high")
        if name in document
    }
    numbers = {name: float(number) if isinstance(number, str) else number for name, number in numbers.items()}
    return _built(Metric, {**document, **numbers})


def _plain_number(number: Any, name: str) -> float:
    """A Python int or float from any kind of number, numpy's included."""
    if isinstance(number, bool) or not hasattr(number, "__float__"):
        raise BadInput(f"{name} is {type(number).__name__}, not a number", where="metric", mend="give a number")
    return int(number) if hasattr(number, "__index__") else float(number)


def _check_part_name(name: str) -> None:
    # Part names become file names.
    if (
        not name
        or name != PurePosixPath(name).name
        or name.startswith(".")
        or not all(c.isalnum() or c in "_-" for c in name)
    ):
        raise BadInput(
            f"{name[:80]!r} cannot be the name of a metric, table or figure", mend="use letters, digits, _ and -"
        )


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, int) or schema < 1:
        raise DamagedAnswer("answer.json has no schema version", where=where, mend="ask again")
    if schema > SCHEMA:
        raise CannotRead(
            f"schema {schema} is newer than {SCHEMA}, the newest this version reads",
            where=where,
            mend="upgrade answerable",
        )


def _built(kind: type[Part], document: Mapping[str, Any]) -> Part:
    """A part of an answer from what a file says of it, once every field is known to hold what it may."""
    for entry in fields(kind):
        value, allowed = document.get(entry.name), _ALLOWED[str(entry.type)]
        if entry.name not in document:
            continue
        if isinstance(value, bool) or not (
            value in allowed if isinstance(allowed[0], str) else isinstance(value, allowed)
        ):
            raise TypeError(f"{entry.name} is {str(value)[:40]!r}")
        if entry.type == "Mapping[str, str]":
            _all_text(value)
    return kind(**document)


_NOTHING = type(None)
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int, _NOTHING),
    "float | None": (int, float, _NOTHING),
    "Mapping[str, Any]": (dict,),
    "Mapping[str, str]": (dict,),
    "Kind": get_args(Kind),
    "Role": get_args(Role),
}


def _all_text(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where names and texts should stand")
    return {name: _text(text) for name, text in value.items()}


def _refused_constant(constant: str) -> float:
    raise ValueError(f"JSON has no {constant}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should stand")
    return value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
