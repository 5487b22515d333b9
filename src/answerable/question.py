"""What a question is: a frozen pydantic model whose fields are its inputs and parameters.

From this one schema come the command-line flags, the TOML keys, the JSON schema, the web form and the reference page.

    class Inequality(Question):
        \"\"\"How unequally is this amount shared out?\"\"\"

        name: ClassVar[str] = "inequality"
        table: Annotated[Any, Subject("table")] = Field(description="CSV or Parquet file, one row per holder")
        column: str = Field(description="column of amounts, each at least 0")
        resamples: int = Field(2000, ge=200, le=100_000, unit="resamples", description="bootstrap resamples")

        def answer(self, run: Run) -> Answer: ...

``answer`` imports what it computes with inside itself, so that the catalogue loads nothing heavy.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, core_schema

from answerable.errors import AnswerableError, BadInput, unknown

if TYPE_CHECKING:
    from answerable.answer import Answer
    from answerable.run import Run

# Words of the dossier and of asking itself, never a field's name.
RESERVED = frozenset(
    {
        "question",
        "name",
        "expect",
        "seed",
        "undecided",
        "threads",
        "store",
        "fresh",
        "engine",
        "workers",
        "device",
        "save",
        "json",
        "open",
    }
)


def Field(default: Any = PydanticUndefined, *, description: str, unit: str = "", **bounds: Any) -> Any:
    """A field of a question: pydantic's own, with a description that is required and a unit.

    Parameters
    ----------
    default : value when the field is not given; required when left out
    description : what it is, in words, one line
    unit : its unit in words; empty where it has none
    bounds : ``ge``, ``gt``, ``le``, ``lt``, ``min_length``, ... as pydantic takes them
    """
    extra: dict[str, Any] | None = {"unit": unit} if unit else None
    return pydantic.Field(default, description=description, json_schema_extra=extra, **bounds)


@dataclass(frozen=True)
class Subject:
    """Marks a field that names what is questioned: an address or a live object.

    An address is a path, ``pypi:PACKAGE``, ``hf:org/name`` or a URL.

    Parameters
    ----------
    kind : module of :mod:`answerable.subjects` that reads it and knows the digest of its content
    """

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "format": "address", "subject": self.kind}


@dataclass(frozen=True)
class Text:
    """Marks a field of literal text: ``@FILE`` stands for a file's text, ``@@`` for an @ of the text's own."""


class Question(pydantic.BaseModel, ABC):
    """Base of all questions: a name, a docstring whose first line is the question in plain words, fields, and
    ``answer``.
    """

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    name: ClassVar[str]
    """Its name: the folder's, with hyphens."""
    chance: ClassVar[bool] = False
    """Whether the answer depends on chance; then a dossier has to set a seed."""
    tolerance: ClassVar[float] = 1e-9
    """Relative difference that another machine, device or number of threads may make to a number of its answer."""
    smallest: ClassVar[Mapping[str, Any]] = {}
    """The fields of an ask that takes at most three seconds and no file that has to be fetched."""

    @abstractmethod
    def answer(self, run: Run) -> Answer:
        """Answer the question.

        Raises
        ------
        BadInput : a subject or value it cannot work with
        """

    @classmethod
    def in_plain_words(cls) -> str:
        """The question itself: the first line of the class's docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0].strip()

    @classmethod
    def subject_fields(cls) -> dict[str, str]:
        """Kind of subject by the name of the field that names it."""
        return {name: kind for name, field in cls.model_fields.items() if (kind := subject_kind(field))}

    @classmethod
    def asked(cls, fields: Mapping[str, Any]) -> Question:
        """The question with these fields, checked.

        Raises
        ------
        UnknownName : a field that it does not have
        BadInput : a value out of bounds or of the wrong type, or a required field that is not given
        """
        for given in fields:
            if given not in cls.model_fields:
                raise unknown("field", given, cls.model_fields, where=cls.name)
        try:
            return cls.model_validate(dict(fields))
        except pydantic.ValidationError as error:
            raise _one_line(cls, error, fields) from None


def is_by_default(question: Question, name: str) -> bool:
    """Whether a field has the value that it has where nobody sets it."""
    return bool(getattr(question, name) == type(question).model_fields[name].default)


def subject_kind(field: FieldInfo) -> str:
    """The kind of subject a field names; empty where it names none."""
    return next((mark.kind for mark in _marks(field) if isinstance(mark, Subject)), "")


def is_text(field: FieldInfo) -> bool:
    """Whether the field holds literal text, for which ``@FILE`` may stand."""
    return any(isinstance(mark, Text) for mark in _marks(field))


def _marks(field: FieldInfo) -> list[Any]:
    marks = list(field.metadata)
    if get_origin(field.annotation) in (Union, types.UnionType):
        marks += [
            mark for part in get_args(field.annotation) if get_origin(part) is Annotated for mark in get_args(part)[1:]
        ]
    return marks


def unit_of(field: FieldInfo) -> str:
    """A field's unit in words; empty where it has none."""
    extra = field.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""


def bounds_of(field: FieldInfo) -> str:
    """A field's bounds in words ("at least 1, at most 100", "one of exact, staircase"); empty where it has none."""
    words = {
        "ge": "at least",
        "gt": "more than",
        "le": "at most",
        "lt": "less than",
        "min_length": "length at least",
        "max_length": "length at most",
    }
    found = [
        f"{word} {bound}"
        for mark in field.metadata
        for name, word in words.items()
        if (bound := getattr(mark, name, None)) is not None
    ]
    choices = [str(choice) for choice in _choices(field.annotation)]
    return ", ".join(found + ([f"one of {', '.join(choices)}"] if choices else []))


def _choices(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return []


def _one_line(question: type[Question], error: pydantic.ValidationError, fields: Mapping[str, Any]) -> AnswerableError:
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    place = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, int))
    where = f"{question.name}, field {name}" + (f", entry {int(place.split('.')[0]) + 1}" if place else "")
    if not name:
        problem, _, mend = str(first["msg"]).removeprefix("Value error, ").partition("; ")
        return BadInput(problem, where=question.name, mend=mend)
    field = question.model_fields[name]
    hint = bounds_of(field)
    mend = _mend(field, hint)
    if first["type"] == "missing":
        return BadInput("it is required and was not given", where=where, mend=f"give {field.description}")
    said = _lower(str(first["msg"]).removeprefix("Value error, ")).removeprefix("input ")
    return BadInput(f"it is {repr(fields.get(name))[:80]}, and {said}", where=where, mend=mend)


def _mend(field: FieldInfo, hint: str) -> str:
    if field.is_required() or field.default is None:
        return f"give {hint}" if hint else f"give {field.description}"
    return f"give {hint}; {field.default} is the default" if hint else f"{field.default} is the default"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
