"""Whether an expectation holds of an answer: a comparison of intervals with lines, and the reason in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal, TypeAlias

from answerable.errors import BadDossier
from answerable.expectations.numbers import (
    COMPARE,
    NULL,
    Missing,
    Reading,
    Value,
    arithmetic,
    band,
    inside,
    kind_of,
    order,
)
from answerable.expectations.outcomes import Observed, Outcome, Word, kleene_and, kleene_not, kleene_or
from answerable.expectations.reading import value_of
from answerable.expectations.spelling import apart, in_print, spoken, told, with_unit
from answerable.expectations.tree import (
    FLIPPED,
    AllOf,
    AnyOf,
    Comparison,
    Items,
    LimitsPath,
    Membership,
    Node,
    Not,
    canonical,
    names_something,
)
from answerable.expectations.words import RELATIONS, name_of

if TYPE_CHECKING:
    from answerable.answer import Answer

_Side: TypeAlias = Literal[">", "<", "band"] | None
_Named: TypeAlias = tuple[Node, Value]  # a value, and what the expectation calls it


def outcome_of(node: Node, answer: Answer) -> Outcome:
    """The outcome of a truth. Every operand is looked at, so that a wrong name is found wherever it stands."""
    match node:
        case Comparison():
            return _compared(node, answer)
        case Membership():
            outcome = _contained(node, answer)
            return _opposite(outcome) if node.negated else outcome
        case Not(operand):
            return _opposite(outcome_of(operand, answer))
        case AllOf(operands):
            return _together([outcome_of(operand, answer) for operand in operands], kleene_and)
        case AnyOf(operands):
            return _together([outcome_of(operand, answer) for operand in operands], kleene_or)
    raise AssertionError(node)  # the parser lets nothing else stand here


def _together(outcomes: Sequence[Outcome], join: Callable[[Word, Word], Word]) -> Outcome:
    word = reduce(join, (outcome.word for outcome in outcomes))
    return Outcome(word, "; ".join(dict.fromkeys(outcome.reason for outcome in outcomes if outcome.word == word)))


def _opposite(outcome: Outcome) -> Outcome:
    observed = outcome.observed
    if observed is not None:
        sides: dict[_Side, _Side] = {">": "<", "<": ">"}
        observed = replace(observed, side=sides.get(observed.side))
    return Outcome(kleene_not(outcome.word), outcome.reason, observed)


def _compared(node: Comparison, answer: Answer) -> Outcome:
    left: _Named = (node.first, value_of(node.first, answer))
    values, outcomes = [left[1]], []
    for sign, right_node, tolerance in node.rest:
        right = (right_node, value_of(right_node, answer))
        if tolerance is None:
            outcomes.append(_pair(left, sign, right, answer))
        else:
            outcomes.append(_near(left, sign, right, value_of(tolerance, answer), answer))
        values.append(right[1])
        left = right
    if len(outcomes) == 1:
        return outcomes[0]
    return replace(_together(outcomes, kleene_and), observed=_between(node, values))


def _pair(left: _Named, sign: str, right: _Named, answer: Answer) -> Outcome:
    """One comparison without a tolerance."""
    if left[1] is NULL or right[1] is NULL:
        return _with_null(left, sign, right, answer)
    if isinstance(left[1], Missing):
        return Outcome("not run", left[1].reason)
    if isinstance(right[1], Missing):
        return Outcome("not run", right[1].reason)
    if isinstance(left[1], Reading) and isinstance(right[1], Reading):
        _refuse_double_percent(left[1], right[1])
        word = order(left[1], sign, right[1])
        return Outcome(word, _order_reason(left, sign, right, word, answer), _against(left, sign, right))
    return _text_or_flag(left, sign, right, answer)


def _with_null(left: _Named, sign: str, right: _Named, answer: Answer) -> Outcome:
    if sign not in ("==", "!="):
        raise BadDossier(f"null is compared with {sign}", mend="use == null or != null")
    node, value = right if left[1] is NULL else left
    if isinstance(value, Missing):
        if not value.null:
            return Outcome("not run", value.reason)
        return Outcome("held" if sign == "==" else "failed", f"{name_of(node, answer)} is missing")
    return Outcome("failed" if sign == "==" else "held", f"{name_of(node, answer)} is {told(value)}")


def _text_or_flag(left: _Named, sign: str, right: _Named, answer: Answer) -> Outcome:
    if type(left[1]) is not type(right[1]):
        found = " and ".join(f"{canonical(node)} ({kind_of(value)})" for node, value in (left, right))
        raise BadDossier(f"{found} cannot be compared", mend="compare like with like")
    if isinstance(left[1], bool) and sign not in ("==", "!="):
        raise BadDossier(f"true and false are compared with {sign}", mend="use == or !=")
    if not names_something(left[0]):
        left, sign, right = right, FLIPPED[sign], left
    holds = COMPARE[sign](left[1], right[1])
    return Outcome(
        "held" if holds else "failed",
        _two_valued(name_of(left[0], answer), sign, holds, told(left[1]), told(right[1])),
    )


def _near(left: _Named, sign: str, centre: _Named, tolerance: Value, answer: Answer) -> Outcome:
    """``==`` or ``!=`` with a tolerance."""
    number, middle, width = left[1], centre[1], tolerance
    for value in (number, middle, width):
        if value is NULL or isinstance(value, bool | str):
            raise BadDossier(f"± is used with {kind_of(value)}", mend="use ± between numbers only")
        if isinstance(value, Missing):
            return Outcome("not run", value.reason)
    assert isinstance(number, Reading)
    assert isinstance(middle, Reading)
    assert isinstance(width, Reading)
    if not width.exact or width.value < 0:
        raise BadDossier(
            "a tolerance is one number, 0 or more", mend="write a plain number after ±, or the .value of a metric"
        )
    _refuse_double_percent(number, middle)
    name = name_of(left[0], answer)
    if middle.exact:
        low, high = band(middle.value, width.value)
    else:
        difference = arithmetic("-", number, middle)
        if isinstance(difference, Missing):
            return Outcome("not run", difference.reason)
        number, low, high, name = difference, -width.value, width.value, f"{name} less {name_of(centre[0], answer)}"
    if math.isnan(low) or math.isnan(high):
        return Outcome("not run", "the tolerance gives no number")
    word = inside(number, low, high)
    reason = f"{name} is {in_print(number, (low, high))}, {_INSIDE[word]} {spoken(low)} to {spoken(high)}"
    outcome = Outcome(word, reason, _observed(number, low, high, "band") if names_something(left[0]) else None)
    return outcome if sign == "==" else _opposite(outcome)


_INSIDE: dict[Word, str] = {
    "held": "inside",
    "failed": "outside",
    "undecided": "neither wholly inside nor wholly outside",
}


def _contained(node: Membership, answer: Answer) -> Outcome:
    """``in``: equal to one of a list, or found within one of the limits or within a text."""
    item = value_of(node.item, answer)
    if isinstance(node.collection, Items):
        named = (node.item, item)
        pairs = [_pair(named, "==", (element, value_of(element, answer)), answer) for element in node.collection.items]
        outcome = _together(pairs, kleene_or)
        if outcome.word == "not run":
            return outcome
        choices = ", ".join(name_of(element, answer) for element in node.collection.items)
        reason = f"{name_of(node.item, answer)} is {told(item)}, {_AMONG[outcome.word]} {choices}"
        return Outcome(outcome.word, reason, _observed(item) if isinstance(item, Reading) else None)
    place = "\n".join(answer.limits) if isinstance(node.collection, LimitsPath) else value_of(node.collection, answer)
    for value in (item, place):
        if isinstance(value, Missing):
            return Outcome("not run", value.reason)
        if not isinstance(value, str):
            raise BadDossier(
                f"{kind_of(value)} is used with in",
                mend="look for a text in the limits or in a text, or use a list: in [a, b]",
            )
    found = str(item) in str(place)
    return Outcome(
        "held" if found else "failed",
        f"{told(item)} {'stands' if found else 'does not stand'} in {name_of(node.collection, answer)}",
    )


_AMONG: dict[Word, str] = {
    "held": "one of",
    "failed": "none of",
    "undecided": "and an interval is never surely one of",
}


def _refuse_double_percent(left: Reading, right: Reading) -> None:
    for literal, number in ((left, right), (right, left)):
        if literal.percent and number.unit in ("%", "points"):
            problem = f"a number in {number.unit} is compared with one written with %, which is divided by 100"
            raise BadDossier(problem, mend="leave out the % sign")


def _oriented(left: _Named, sign: str, right: _Named) -> tuple[_Named, str, _Named]:
    """The same comparison, beginning with the number that is in question rather than with its line."""
    named = names_something(left[0]), names_something(right[0])
    interval_last = _is_exact(left[1]) and not _is_exact(right[1])
    if named == (False, True) or (all(named) and interval_last):
        return right, FLIPPED[sign], left
    return left, sign, right


def _is_exact(value: Value) -> bool:
    return isinstance(value, Reading) and value.exact


def _order_reason(left: _Named, sign: str, right: _Named, word: Word, answer: Answer) -> str:
    """Why two numbers compare as they do, with both numbers in it."""
    (node, number), sign, (line_node, line) = _oriented(left, sign, right)
    assert isinstance(number, Reading)
    assert isinstance(line, Reading)
    name = name_of(node, answer)
    if number.exact and line.exact:
        found, wanted = apart(number.value, line.value)
        found = with_unit(found, number.unit)
    else:
        found = in_print(number, (line.low, line.high))
        wanted = spoken(line.value) if line.exact else in_print(line, (number.low, number.high))
    if names_something(line_node):
        wanted = f"{name_of(line_node, answer)} ({wanted})"
    if number.exact and line.exact:
        return _two_valued(name, sign, word == "held", found, wanted)
    if word != "undecided":
        return f"{name} is {found}, wholly {'below' if number.high < line.low else 'above'} {wanted}"
    if not line.exact:
        return f"{name} is {found}, and its interval overlaps that of {wanted}"
    touches = line.value in (number.low, number.high)
    return f"{name} is {found}, and its interval {'touches' if touches else 'holds'} {wanted}"


def _two_valued(name: str, sign: str, holds: bool, found: str, wanted: str) -> str:
    if sign in ("==", "!="):
        return f"{name} is {found}" if holds == (sign == "==") else f"{name} is {found}, not {wanted}"
    return f"{name} is {found}, {'' if holds else 'not '}{RELATIONS[sign]}{wanted}"


def _observed(
    number: Reading, line: float | None = None, line_high: float | None = None, side: _Side = None
) -> Observed:
    shown = number.whole or number
    low, high = (None if math.isinf(end) else end for end in (shown.low, shown.high))
    return Observed(shown.value, low, high, shown.kind, shown.unit, line, line_high, side)


def _against(left: _Named, sign: str, right: _Named) -> Observed | None:
    """The number in question and the line it is compared with."""
    (node, number), sign, (_, line) = _oriented(left, sign, right)
    assert isinstance(number, Reading)
    assert isinstance(line, Reading)
    if not names_something(node):
        return None
    if not line.exact:
        return _observed(number)
    above = sign in (">", ">=")
    if sign in ("==", "!="):
        return _observed(number, line.value, line.value, "band") if sign == "==" else _observed(number, line.value)
    if number.signed is not None and line.value >= 0:
        return _observed(number.signed, -line.value, line.value, None if above else "band")
    return _observed(number, line.value, None, ">" if above else "<")


def _between(node: Comparison, values: Sequence[Value]) -> Observed | None:
    """The number in ``low < number < high``, with both lines."""
    if len(values) != 3:
        return None
    signs = {sign.rstrip("=") for sign, _, _ in node.rest}
    first, middle, last = values
    if not (isinstance(first, Reading) and isinstance(middle, Reading) and isinstance(last, Reading)):
        return None
    if signs not in ({"<"}, {">"}) or not (first.exact and last.exact and names_something(node.rest[0][1])):
        return None
    low, high = (first, last) if signs == {"<"} else (last, first)
    return _observed(middle, low.value, high.value, "band")
