"""What an expectation is made of, and its canonical form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written."""

    value: float  # as written, never negative; 20 in "20 %"
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    value: str


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null:
    """``null``."""


@dataclass(frozen=True, slots=True)
class MetricPath:
    """``metrics.NAME``, or one part of it."""

    metric: str
    part: str = ""  # "", "value", "low" or "high"
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SizePath:
    """``tables.NAME.height`` or ``.width``."""

    table: str
    side: str  # "height" or "width"
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """``tables.NAME.COLUMN.STATISTIC``."""

    table: str
    column: str
    statistic: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CellPath:
    """``tables.NAME.row(...).COLUMN``."""

    table: str
    row: int | tuple[tuple[str, Node], ...]  # counted from 0, or what its columns must hold
    column: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LimitsPath:
    """``limits`` or ``limits.height``."""

    height: bool = False


@dataclass(frozen=True, slots=True)
class VerdictPath:
    """``verdict`` or ``verdict.reason``."""

    reason: bool = False


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Chain:
    """Terms joined by + and -, or factors by * and /; one node however many, so that a long sum is not a deep tree."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """``abs``, ``min`` or ``max``."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison, or a chain of them."""

    first: Node
    rest: tuple[tuple[str, Node, Node | None], ...]  # sign, right side, tolerance


@dataclass(frozen=True, slots=True)
class Membership:
    """``in`` or ``not in``."""

    item: Node
    negated: bool
    collection: Node


@dataclass(frozen=True, slots=True)
class Not:
    """``not``."""

    operand: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """``and`` between any number of truths."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """``or`` between any number of truths."""

    operands: tuple[Node, ...]


Path: TypeAlias = MetricPath | SizePath | ColumnPath | CellPath | LimitsPath | VerdictPath
Truth: TypeAlias = Comparison | Membership | Not | AllOf | AnyOf
Node: TypeAlias = Number | Text | Flag | Null | Path | Negative | Chain | Call | Items | Truth


FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


STATISTICS = {
    "min": "the smallest",
    "max": "the largest",
    "mean": "the mean",
    "median": "the median",
    "sum": "the sum of",
    "std": "the standard deviation of",
    "count": "the number of values of",
    "unique": "the number of different values of",
    "first": "the first",
    "last": "the last",
    "null_count": "the number of missing values of",
}


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Negative(operand) | Not(operand):
            return (operand,)
        case Chain(first, rest):
            return (first, *(part for _, part in rest))
        case Comparison(first, compared):
            return (first, *(part for _, *parts in compared for part in parts if part is not None))
        case Call(_, parts) | Items(parts) | AllOf(parts) | AnyOf(parts):
            return parts
        case Membership(item, _, collection):
            return (item, collection)
    return ()


def paths_in(node: Node) -> Iterator[Path]:
    """Every path in a node, from left to right."""
    if isinstance(node, Path):
        yield node
    for child in _children(node):
        yield from paths_in(child)


def names_something(node: Node) -> bool:
    """Whether a node looks at the answer at all."""
    return next(paths_in(node), None) is not None


def has_percent(node: Node) -> bool:
    """Whether a number in a node is written with %."""
    return (isinstance(node, Number) and node.percent) or any(has_percent(child) for child in _children(node))


_LEVELS: dict[type, int] = {
    AnyOf: 1,
    AllOf: 2,
    Not: 3,
    Comparison: 4,
    Membership: 4,
    Negative: 7,
}  # how tightly each binds


def _level(node: Node) -> int:
    if isinstance(node, Chain):
        return 5 if node.rest[0][0] in "+-" else 6
    return _LEVELS.get(type(node), 8)


def written(node: Node, atom: Callable[[Node], str], level: int = 1) -> str:
    """The node in canonical form, with ``atom`` to write paths and literals."""

    def inner(child: Node, child_level: int) -> str:
        return written(child, atom, child_level)

    match node:
        case AnyOf(operands):
            text = " or ".join(inner(operand, 2) for operand in operands)
        case AllOf(operands):
            text = " and ".join(inner(operand, 3) for operand in operands)
        case Not(operand):
            text = f"not {inner(operand, 3)}"
        case Comparison(first, rest):
            parts = [
                f" {sign} {inner(right, 5)}" + (f" ± {inner(width, 5)}" if width is not None else "")
                for sign, right, width in rest
            ]
            text = inner(first, 5) + "".join(parts)
        case Membership(item, negated, collection):
            text = f"{inner(item, 5)} {'not in' if negated else 'in'} {inner(collection, 5)}"
        case Chain(first, rest):
            own = _level(node)
            text = inner(first, own + 1) + "".join(f" {sign} {inner(part, own + 1)}" for sign, part in rest)
        case Negative(operand):
            text = f"-{inner(operand, 7)}"
        case Call(function, arguments):
            text = f"{function}({', '.join(inner(argument, 5) for argument in arguments)})"
        case Items(items):
            text = f"[{', '.join(inner(item, 5) for item in items)}]"
        case _:
            text = atom(node)
    return f"({text})" if _level(node) < level else text


def canonical(node: Node) -> str:
    """The node in canonical form."""
    return written(node, _canonical_atom)


def _canonical_atom(node: Node) -> str:
    match node:
        case Number(value, percent):
            return f"{value!r} %" if percent else repr(value)
        case Text(value):
            return _in_quotes(value)
        case Flag(value):
            return "true" if value else "false"
        case Null():
            return "null"
        case MetricPath(metric, part):
            return ".".join(["metrics", _name_or_quotes(metric), *([part] if part else [])])
        case SizePath(table, side):
            return f"tables.{_name_or_quotes(table)}.{side}"
        case ColumnPath(table, column, statistic):
            return f"tables.{_name_or_quotes(table)}.{_name_or_quotes(column)}.{statistic}"
        case CellPath(table, row, column):
            chosen = (
                str(row)
                if isinstance(row, int)
                else ", ".join(f"{_name_or_quotes(name)} = {canonical(value)}" for name, value in row)
            )
            return f"tables.{_name_or_quotes(table)}.row({chosen}).{_name_or_quotes(column)}"
        case LimitsPath(height):
            return "limits.height" if height else "limits"
        case VerdictPath(reason):
            return "verdict.reason" if reason else "verdict"
    raise AssertionError(node)  # everything else is not an atom


def _name_or_quotes(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else _in_quotes(name)


def _in_quotes(text: str) -> str:
    return (
        '"'
        + "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}.get(character, character) for character in text)
        + '"'
    )
