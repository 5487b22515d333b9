"""What a path of an expectation finds in an answer."""

from __future__ import annotations

import datetime
import decimal
import math
import operator
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn

from answerable.errors import BadDossier, unknown
from answerable.expectations.numbers import (
    NULL,
    Missing,
    Reading,
    Value,
    arithmetic,
    call,
    exactly,
    hundredth,
    negation,
    too_large,
)
from answerable.expectations.spelling import at_character, one_line, quoted
from answerable.expectations.tree import (
    Call,
    CellPath,
    Chain,
    ColumnPath,
    Flag,
    LimitsPath,
    MetricPath,
    Negative,
    Node,
    Null,
    Number,
    SizePath,
    Text,
    VerdictPath,
    canonical,
)
from answerable.expectations.words import name_of

if TYPE_CHECKING:
    import polars as pl

    from answerable.answer import Answer


def value_of(node: Node, answer: Answer) -> Value:
    """What a value node stands for."""
    match node:
        case Number(value, percent):
            return exactly(hundredth(value), percent=True) if percent else exactly(value)
        case Text(text):
            return text
        case Flag(flag):
            return flag
        case Null():
            return NULL
        case MetricPath():
            return _metric(node, answer)
        case SizePath(_, side):
            frame = _frame(node, answer)
            return exactly(frame.height if side == "height" else frame.width)
        case ColumnPath(_, column, statistic):
            return _statistic(_series(_frame(node, answer), column, node), statistic, canonical(node))
        case CellPath():
            return _cell(node, answer)
        case LimitsPath():
            return exactly(len(answer.limits))
        case VerdictPath(reason):
            if answer.verdict is None:
                return Missing("this answer has no verdict", null=True)
            return answer.verdict.reason if reason else answer.verdict.word
        case Negative(operand):
            return negation(value_of(operand, answer))
        case Chain(first, rest):
            return reduce(
                lambda so_far, part: arithmetic(part[0], so_far, value_of(part[1], answer)),
                rest,
                value_of(first, answer),
            )
        case Call(function, arguments):
            return call(function, [value_of(argument, answer) for argument in arguments])
    raise AssertionError(node)  # the parser lets nothing else stand here


def _metric(path: MetricPath, answer: Answer) -> Value:
    metric = answer.metrics.get(path.metric)
    if metric is None:
        raise unknown("metric", path.metric, answer.metrics, where=at_character(path.at))
    numbers = (metric.value, metric.low, metric.high)
    if any(isinstance(number, float) and math.isnan(number) for number in numbers):
        because = f": {one_line(metric.reason)}" if metric.reason else ""
        return Missing(f"{name_of(path, answer)} has no value{because}")
    if any(too_large(number) for number in numbers):
        return Missing(f"{name_of(path, answer)} is too large a number")
    low = -math.inf if metric.low is None else metric.low
    high = math.inf if metric.high is None else metric.high
    if metric.kind == "exact":
        low = high = metric.value
    reading = Reading(metric.value, low, high, metric.kind, metric.unit)
    if not path.part:
        return reading
    number = {"value": metric.value, "low": low, "high": high}[path.part]
    return exactly(number, unit=metric.unit, whole=reading)


def _frame(path: SizePath | ColumnPath | CellPath, answer: Answer) -> pl.DataFrame:
    if path.table not in answer.tables:
        raise unknown("table", path.table, answer.tables, where=at_character(path.at))
    return answer.tables[path.table].frame


def _series(frame: pl.DataFrame, column: str, path: ColumnPath | CellPath) -> pl.Series:
    import polars as pl

    if column not in frame.columns:
        raise unknown("column", column, frame.columns, where=f"{at_character(path.at)}, table {path.table}")
    series = frame[column]
    return series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series


def _statistic(series: pl.Series, statistic: str, path: str) -> Value:
    """One number of a column. Missing values are left aside; a NaN among the others leaves no smallest, sum or mean."""
    if statistic == "null_count":
        return exactly(series.null_count())
    if statistic == "count":
        return exactly(series.count())
    if statistic == "unique":
        import polars as pl

        if series.dtype.is_nested() or series.dtype == pl.Object:
            _refuse_column(series, path)
        return exactly(series.drop_nulls().n_unique())
    if not len(series):
        return Missing(f"{path} does not exist: the table has no rows", null=True)
    if statistic in ("first", "last"):
        return _plain(series[0 if statistic == "first" else -1], path)
    if not series.count():
        return Missing(f"{path} does not exist: the column has no values", null=True)
    return _plain(_summarised(series, statistic, path), path)


def _summarised(series: pl.Series, statistic: str, path: str) -> object:
    import polars as pl

    counted = series.dtype.is_numeric() or series.dtype == pl.Boolean
    ordered = counted or series.dtype.is_temporal() or series.dtype == pl.String
    if not (ordered if statistic in ("min", "max") else counted):
        _refuse_column(series, path)
    if series.dtype.is_float() and series.is_nan().any():
        return math.nan
    if statistic == "sum" and series.dtype.is_integer() and abs(series.cast(pl.Float64)).sum() >= 2**62:
        return sum(series.drop_nulls().to_list())  # polars' own sum wraps round at 2**63
    return getattr(series, statistic)()


def _refuse_column(series: pl.Series, path: str) -> NoReturn:
    raise BadDossier(f"{path} is asked of a column of {series.dtype}", mend="choose another column or statistic")


def _plain(value: object, path: str) -> Value:
    """What a cell holds, as something that can be compared; days and times as ISO 8601 text."""
    if value is None:
        return Missing(f"{path} is missing", null=True)
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value) if isinstance(value, decimal.Decimal) else value
        return Missing(f"{path} is not a number (NaN)") if math.isnan(number) else exactly(number)
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    raise BadDossier(
        f"{path} is of type {type(value).__name__}", mend="choose a column of numbers, text, days, or true and false"
    )


def _cell(path: CellPath, answer: Answer) -> Value:
    frame, said = _frame(path, answer), canonical(path)
    series = _series(frame, path.column, path)
    if isinstance(path.row, int):
        if not -frame.height <= path.row < frame.height:
            return Missing(f"{said} does not exist: the table has {frame.height:,} rows, counted from 0")
        return _plain(series[path.row], said)
    matches = [_matches(_series(frame, name, path), name, literal) for name, literal in path.row]
    rows = reduce(operator.and_, matches).fill_null(False).arg_true()
    if len(rows) != 1:
        return Missing(
            f"{said} is not one value: {f'{len(rows):,}' if len(rows) else 'no'} rows match, and it takes exactly one"
        )
    return _plain(series[int(rows[0])], said)


def _matches(series: pl.Series, name: str, literal: Node) -> pl.Series:
    """For every row, whether the column holds the literal."""
    import polars as pl

    if isinstance(literal, Null):
        return series.is_null()
    wanted: Any = _literal_value(literal)
    if isinstance(wanted, str) and series.dtype.is_temporal():
        return pl.Series([_plain(cell, name) == wanted for cell in series.to_list()], dtype=pl.Boolean)
    if isinstance(wanted, bool | str):
        fits = series.dtype == (pl.Boolean if isinstance(wanted, bool) else pl.String)
    else:
        fits = series.dtype.is_numeric()
    if not fits:
        raise BadDossier(
            f"column {quoted(name)} holds {series.dtype}, never {canonical(literal)}", mend="compare like with like"
        )
    if isinstance(wanted, int) and not -(2**63) <= wanted < 2**63:
        wanted = float(wanted)  # beyond what polars compares
    return series == wanted


def _literal_value(literal: Node) -> float | str | bool:
    match literal:
        case Number(value, percent):
            return hundredth(value) if percent else value
        case Negative(Number() as number):
            return -float(_literal_value(number)) if number.percent else -number.value
        case Text(value) | Flag(value):
            return value
    raise AssertionError(literal)  # the parser lets nothing else stand here
