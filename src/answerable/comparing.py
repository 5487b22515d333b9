"""Two answers side by side: is a second run the same, and do two answers differ by more than they are sure of?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from answerable.answer import Answer, Metric
from answerable.errors import BadInput

if TYPE_CHECKING:
    import polars as pl

Sameness = Literal["identical", "within tolerance", "different"]
ROUNDING = 1e-12  # differences of exact numbers that are no more than this are rounding

Word = Literal["same", "differs", "not told apart", "cannot be compared"]


@dataclass(frozen=True)
class Difference:
    """One number of two answers.

    Parameters
    ----------
    what : the metric, or table and column
    first, second : the number in each answer; the mean of a column
    difference : second less first
    low, high : interval of the difference
    word : whether the interval tells them apart
    method : how the interval was made
    """

    what: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    word: Word
    method: str


def sameness(first: Answer, second: Answer) -> tuple[Sameness, list[str]]:
    """Whether a second run gave the same answer, and the places where it did not.

    Numbers may differ by the tolerance that the first answer states; everything else must be equal. The block
    ``run`` and the
    versions of packages are left out.
    """
    left, right = _comparable(first), _comparable(second)
    exact = list(_different(left, right, 0.0, ""))
    if not exact:
        return "identical", []
    beyond = list(_different(left, right, first.provenance.tolerance, ""))
    return ("different", beyond) if beyond else ("within tolerance", exact)


def differences(first: Answer, second: Answer) -> list[Difference]:
    """Every metric and paired column of two answers to the same question, each with an interval on the difference.

    Metrics of the same name are compared by their intervals: two that overlap are never called different. Tables
    that hold the same
    rows (every column that is not a fractional number is equal) are compared row by row.

    Raises
    ------
    BadInput : the answers are to different questions
    """
    if first.question != second.question:
        raise BadInput(
            f"one answer is to {first.question}, the other to {second.question}",
            where="diff",
            mend="compare answers to one question",
        )
    found = [
        _metric_difference(name, first.metrics[name], second.metrics[name])
        for name in first.metrics
        if name in second.metrics
    ]
    for name, table in first.tables.items():
        if name in second.tables:
            found += _paired_columns(name, table.frame, second.tables[name].frame)
    return found


def asked_differently(first: Answer, second: Answer) -> list[str]:
    """A line for each field, seed or piece of content in which two answers to one question were asked differently."""
    one, other = ({**answer.provenance.parameters, "seed": answer.provenance.seed} for answer in (first, second))
    return [
        f"{name} differs: {_short(one.get(name))} and {_short(other.get(name))}"
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    ]


def said_differently(first: Answer, second: Answer) -> list[str]:
    """A line for each thing that no difference of numbers tells: verdicts, voided answers, metrics of one of them."""
    verdicts = [answer.verdict.word if answer.verdict else "none" for answer in (first, second)]
    lines = [f"verdict differs: {verdicts[0]} and {verdicts[1]}"] if verdicts[0] != verdicts[1] else []
    for name, answer, other in (("first", first, second), ("second", second, first)):
        if answer.void:
            lines.append(f"the {name} answer is void: {answer.void}")
        lines += [
            f"{metric} stands in the {name} answer only" for metric in answer.metrics if metric not in other.metrics
        ]
    return lines


def _metric_difference(name: str, first: Metric, second: Metric) -> Difference:
    (low, high), (other_low, other_high) = _ends(first), _ends(second)
    try:
        difference, ends = second.value - first.value, (other_low - high, other_high - low)
        missing = any(math.isnan(number) for number in (difference, *ends))
    except OverflowError:  # a whole number beyond what a float holds
        nan = math.nan
        return Difference(name, first.value, second.value, nan, nan, nan, "cannot be compared", "a number is too large")
    method = "exact" if first.kind == second.kind == "exact" else "both intervals, end against end (conservative)"
    if missing:
        return Difference(
            name, first.value, second.value, difference, *ends, "cannot be compared", "a number is missing"
        )
    return Difference(name, first.value, second.value, difference, *ends, _word(*ends), method)


def _ends(metric: Metric) -> tuple[float, float]:
    if metric.kind == "exact":
        return metric.value, metric.value
    low = -math.inf if metric.low is None else metric.low
    return low, math.inf if metric.high is None else metric.high


def _word(low: float, high: float) -> Word:
    if max(abs(low), abs(high)) <= ROUNDING:
        return "same"
    return "differs" if low > 0 or high < 0 else "not told apart"


def _paired_columns(name: str, first: pl.DataFrame, second: pl.DataFrame) -> Iterator[Difference]:
    import polars as pl

    from answerable.statistics import paired_difference_interval

    keys = [column for column, kind in first.schema.items() if not kind.is_float()]
    if first.schema != second.schema or first.height < 2 or not first.select(keys).equals(second.select(keys)):
        return
    for column in (column for column in first.columns if column not in keys):
        pairs = first.select(column).hstack(second.select(second[column].alias("_second"))).drop_nulls()
        pairs = pairs.filter(pl.all_horizontal(pl.all().is_finite()))  # infinite values have no mean difference
        before, after = pairs[column].to_numpy(), pairs["_second"].to_numpy()
        if len(before) < 2:
            continue
        what, means = f"mean of {name}.{column}", (float(before.mean()), float(after.mean()))
        if (before == after).all():
            yield Difference(what, *means, 0.0, 0.0, 0.0, "same", f"{len(before)} equal rows")
            continue
        interval = paired_difference_interval(after, before)
        yield Difference(
            what,
            *means,
            interval.value,
            interval.low,
            interval.high,
            _word(interval.low, interval.high),
            interval.method,
        )


def _comparable(answer: Answer) -> dict[str, Any]:
    document = answer.without_run()
    for name in ("packages", "sources", "key", "tolerance"):
        del document["provenance"][name]
    document["tables"] = {
        name: {**document["tables"][name], "rows": table.frame.to_dicts()} for name, table in answer.tables.items()
    }
    document["figures"] = {name: [figure.wide, figure.narrow] for name, figure in answer.figures.items()}
    return document


def _different(left: Any, right: Any, tolerance: float, place: str) -> Iterator[str]:
    """The places where two documents differ by more than ``tolerance``, relative to the larger number."""
    if _is_number(left) and _is_number(right):
        if not (
            left == right
            or (math.isnan(left) and math.isnan(right))
            or math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)
        ):
            yield f"{place}: {left!r} and {right!r}"
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in dict.fromkeys([*left, *right]):
            if name in left and name in right:
                yield from _different(left[name], right[name], tolerance, f"{place}.{name}".lstrip("."))
            else:
                yield f"{place}.{name} stands in one of them only".lstrip(".")
    elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            yield f"{place}: {len(left)} and {len(right)} entries"
        for i, (one, other) in enumerate(zip(left, right, strict=False)):
            yield from _different(one, other, tolerance, f"{place}[{i}]")
    elif left != right and not (tolerance and _same_words(left, right, tolerance)):
        yield f"{place}: {_short(left)} and {_short(right)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same_words(left: Any, right: Any, tolerance: float) -> bool:
    """Whether two texts differ in their written numbers alone, and in those by a rounding of the last place."""
    import re

    if not (isinstance(left, str) and isinstance(right, str)):
        return False
    number = re.compile(r"[-−]?\d+(?:\.\d+)?")
    if number.sub("#", left) != number.sub("#", right):
        return False
    pairs = zip(number.findall(left), number.findall(right), strict=True)
    return all(_one_last_place(one.replace("−", "-"), other.replace("−", "-")) for one, other in pairs)


def _one_last_place(one: str, other: str) -> bool:
    places = len(one.partition(".")[2])
    return places == len(other.partition(".")[2]) and abs(float(one) - float(other)) <= 10.0**-places * 1.001 * bool(
        places
    )


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
