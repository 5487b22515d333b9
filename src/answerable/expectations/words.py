"""An expectation in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerable.expectations.spelling import quoted, shown, spoken, with_unit
from answerable.expectations.tree import (
    FLIPPED,
    STATISTICS,
    AllOf,
    AnyOf,
    Call,
    CellPath,
    ColumnPath,
    Comparison,
    Flag,
    Items,
    LimitsPath,
    Membership,
    MetricPath,
    Negative,
    Node,
    Not,
    Null,
    Number,
    SizePath,
    Text,
    VerdictPath,
    canonical,
    has_percent,
    names_something,
    written,
)

if TYPE_CHECKING:
    from answerable.answer import Answer

RELATIONS = {"<": "less than ", "<=": "at most ", ">": "more than ", ">=": "at least ", "==": "", "!=": "not "}


def plainly(node: Node, answer: Answer | None) -> str:
    """A truth in plain words."""
    match node:
        case Comparison():
            return _comparison_words(node, answer)
        case Membership(item, negated, Items(items)):
            choices = ", ".join(name_of(choice, answer) for choice in items)
            return f"{name_of(item, answer)} is {'none' if negated else 'one'} of {choices}"
        case Membership(item, negated, collection):
            return (
                f"{name_of(item, answer)} {'does not stand' if negated else 'stands'} in {name_of(collection, answer)}"
            )
        case Not(operand):
            return f"it is not so that {_grouped(operand, answer)}"
        case AllOf(operands):
            return ", and ".join(_grouped(operand, answer) for operand in operands)
        case AnyOf(operands):
            return ", or ".join(_grouped(operand, answer) for operand in operands)
    raise AssertionError(node)  # the parser lets nothing else stand here


def _grouped(node: Node, answer: Answer | None) -> str:
    words = plainly(node, answer)
    return f"({words})" if isinstance(node, AllOf | AnyOf) else words


def _comparison_words(node: Comparison, answer: Answer | None) -> str:
    middle = node.rest[0][1]
    signs = [sign for sign, _, _ in node.rest]
    if len(signs) == 2 and {sign.rstrip("=") for sign in signs} in ({"<"}, {">"}) and names_something(middle):
        first, last = node.first, node.rest[1][1]
        low, high = (first, last) if signs[0].startswith("<") else (last, first)
        return f"{name_of(middle, answer)} is between {name_of(low, answer)} and {_with_unit(high, middle, answer)}"
    pairs, left = [], node.first
    for sign, right, tolerance in node.rest:
        if tolerance is None and not names_something(left):
            pairs.append(f"{name_of(right, answer)} is {RELATIONS[FLIPPED[sign]]}{_with_unit(left, right, answer)}")
        else:
            width = f" ± {name_of(tolerance, answer)}" if tolerance is not None else ""
            pairs.append(f"{name_of(left, answer)} is {RELATIONS[sign]}{_with_unit(right, left, answer, width)}")
        left = right
    return ", and ".join(pairs)


def _with_unit(line: Node, subject: Node, answer: Answer | None, width: str = "") -> str:
    """A line in words, with the unit of the metric that is held against it."""
    inside = subject.arguments[0] if isinstance(subject, Call) else subject
    metric = answer.metrics.get(inside.metric) if answer is not None and isinstance(inside, MetricPath) else None
    plain_number = isinstance(line, Number | Negative) and not has_percent(line)
    return with_unit(name_of(line, answer) + width, metric.unit if metric is not None and plain_number else "")


def name_of(node: Node, answer: Answer | None) -> str:
    """A value in plain words; a calculation is written as it is, with the names in words."""
    match node:
        case Number(value, percent):
            return f"{spoken(value)}\u202f%" if percent else spoken(value)
        case Text(value):
            return quoted(value)
        case MetricPath(metric, part):
            known = answer.metrics.get(metric) if answer is not None else None
            name = shown(known.label) if known is not None and known.label else _in_words(metric)
            return {"": "", "value": "the value of ", "low": "the lower end of ", "high": "the upper end of "}[
                part
            ] + name
        case SizePath(table, side):
            return f"the number of {'rows' if side == 'height' else 'columns'} of {_in_words(table)}"
        case ColumnPath(table, column, statistic):
            return f"{STATISTICS[statistic]} {_in_words(column)} in {_in_words(table)}"
        case CellPath(table, int() as row, column):
            return f"{_in_words(column)} in row {row} of {_in_words(table)}"
        case CellPath(table, tuple() as conditions, column):
            chosen = " and ".join(f"{_in_words(name)} is {name_of(value, answer)}" for name, value in conditions)
            return f"{_in_words(column)} in {_in_words(table)} where {chosen}"
        case LimitsPath(height):
            return "the number of limits" if height else "the limits"
        case VerdictPath(reason):
            return "the reason of the verdict" if reason else "the verdict"
        case Flag() | Null():
            return canonical(node)
        case Negative(Number() as number):
            return f"−{name_of(number, answer)}"
    return written(node, lambda atom: name_of(atom, answer))


def _in_words(name: str) -> str:
    return shown(name.replace("_", " "))
