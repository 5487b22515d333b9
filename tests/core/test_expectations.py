"""The expectation language: what it parses, what it decides, and what it refuses; values worked out by hand."""

import datetime
import itertools
import math
import operator
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerable.answer import Answer, Metric, Table, Verdict
from answerable.errors import AnswerableError, BadDossier, UnknownName
from answerable.expectations import Observed, kleene_and, kleene_not, kleene_or, parse

ROWS = pl.DataFrame(
    {
        "token": ["the", "drink", "the", None],
        "flow": [0.1, 0.5, None, 0.2],
        "broken": [1.0, math.nan, 2.0, 3.0],
        "count": [3, 1, 2, 2],
        "kept": [True, False, True, None],
        "day": [datetime.date(2025, 12, day) for day in (1, 2, 3, 4)],
        "odd name": [1, 2, 3, 4],
        "huge": [2**62, 2**62, 2**62, 2**62],
        "nothing": pl.Series([None] * 4, dtype=pl.Float64),
        "list": [[1], [2], [3], [4]],
    },
    schema_overrides={"token": pl.Categorical},
)


def table(frame: pl.DataFrame) -> Table:
    return Table(frame, dict.fromkeys(frame.columns, "a column"))


ANSWER = Answer(
    "x",
    {
        "share": Metric(0.3, 0.25, 0.35, method="bootstrap"),
        "other": Metric(0.5, 0.4, 0.6, method="bootstrap"),
        "wide": Metric(0.0, -2.0, 1.0, unit="points", method="bootstrap"),
        "half": Metric(0.5, 0.0, 1.0, method="bootstrap"),
        "narrow": Metric(2.0, 2.0, 2.0, method="bootstrap"),
        "percent": Metric(29.1, 26.2, 32.2, unit="%", method="bootstrap", label="share of the name"),
        "proved": Metric(4.0, 3.0, 5.0, kind="bounds", method="cut"),
        "met": Metric(3.0, 3.0, 3.0, kind="bounds", method="cut"),
        "least": Metric(0.9, low=0.8, kind="one_sided", method="bound"),
        "size": Metric(3, unit="facts", kind="exact", method="count"),
        "none": Metric(0, kind="exact", method="count"),
        "digits": Metric(0.8, kind="exact", method="count"),
        "enormous": Metric(10**400, kind="exact", method="count"),
        "absent": Metric(math.nan, reason="there were\nno rows"),
        "name-share": Metric(1, kind="exact", method="count"),
    },
    tables={"tokens": table(ROWS), "empty": table(ROWS.clear())},
    limits=["Takes rows to be independent.", "Says nothing about causes."],
    verdict=Verdict("answerable", "The width is 0.1."),
)

OUTCOMES = {
    # an interval against a line: it clears, misses, holds or touches it
    "metrics.share > 0.2": "held",
    "metrics.share > 0.4": "failed",
    "metrics.share > 0.3": "undecided",
    "metrics.share >= 0.25": "undecided",
    "metrics.share <= 0.35": "undecided",
    "0.2 < metrics.share": "held",
    "0.4 ≤ metrics.share": "failed",
    "metrics.share > 20 %": "held",
    "metrics.share == 0.3": "undecided",
    "metrics.share == 0.4": "failed",
    "metrics.share != 0.4": "held",
    "metrics.share ≠ 0.3": "undecided",
    "metrics.narrow == 2": "undecided",
    "metrics.met == 3": "held",
    "metrics.met >= 3": "held",
    "metrics.met > 3": "failed",
    "metrics.proved > 2": "held",
    "metrics.proved > 3": "undecided",
    "metrics.least > 0.7": "held",
    "metrics.least < 0.7": "failed",
    "metrics.least < 100": "undecided",
    "metrics.least < inf": "undecided",
    "metrics.least.high == inf": "held",
    # one number of it, and exact numbers
    "metrics.share.low > 0.2": "held",
    "metrics.share.low == 0.25": "held",
    "metrics.share.high < 0.3": "failed",
    "metrics.share.value == 0.3": "held",
    "metrics.size <= 3": "held",
    "metrics.size < 3": "failed",
    'metrics."name-share" == 1': "held",
    # two intervals
    "metrics.share < metrics.other": "held",
    "metrics.share > metrics.other": "failed",
    "metrics.share < metrics.wide": "undecided",
    "metrics.share == metrics.other": "failed",
    "metrics.share == metrics.share": "undecided",
    # chains
    "0.2 < metrics.share < 0.4": "held",
    "0.2 < metrics.share < 0.3": "undecided",
    "0.4 < metrics.share < 0.5": "failed",
    "1 < 2 < metrics.size": "held",
    # tolerance, its edges computed in decimal
    "metrics.share == 0.3 ± 0.1": "held",
    "metrics.share == 0.3 +/- 0.05": "undecided",
    "metrics.share == 0.3 +- 0.01": "undecided",
    "metrics.share == 0.5 ± 0.1": "failed",
    "metrics.share != 0.5 ± 0.1": "held",
    "metrics.share == 30 % ± 10 %": "held",
    "metrics.digits == 0.7 ± 0.1": "held",
    "metrics.digits == 0.7 ± 0.09": "failed",
    "metrics.share == metrics.other ± 1": "held",
    "metrics.share == metrics.other ± 0.2": "undecided",
    "metrics.share == metrics.other ± 0.01": "failed",
    # arithmetic: share - other is [-0.35, -0.05], share + other [0.65, 0.95], share * wide [-0.7, 0.35]
    "metrics.share - metrics.other < 0": "held",
    "metrics.share - metrics.other < -0.2": "undecided",
    "metrics.share + metrics.other > 0.6": "held",
    "metrics.share * metrics.wide > -0.71": "held",
    "metrics.share * metrics.wide < 0.3": "undecided",
    "metrics.share / metrics.other < 0.9": "held",
    "metrics.share / metrics.wide.high == 0.3 ± 0.1": "held",
    "metrics.size / metrics.proved <= 1": "undecided",
    "metrics.size / metrics.half > 2": "undecided",
    "metrics.size / metrics.wide.value > 2": "not run",
    "1 / metrics.least < 1.3": "held",
    "1 / metrics.least > 0": "undecided",
    "-metrics.share < −0.2": "held",
    "2 + 3 * metrics.size == 11": "held",
    "(2 + 3) * metrics.size == 15": "held",
    "10 - 3 - metrics.size == 4": "held",
    "12 / metrics.size / 2 == 2": "held",
    "abs(metrics.wide) < 2.1": "held",
    "abs(metrics.wide) >= 0": "undecided",
    "abs(-metrics.size) == 3": "held",
    "min(metrics.share, metrics.other) < 0.4": "held",
    "max(metrics.share, metrics.other, 0.1) > 0.4": "undecided",
    "max(1, metrics.size, 2) == 3": "held",
    # words
    'verdict == "answerable"': "held",
    "verdict != 'answerable'": "failed",
    'verdict in ["flagged", "answerable"]': "held",
    'verdict not in ["flagged", "answerable"]': "failed",
    'verdict.reason == "The width is 0.1."': "held",
    '"width" in verdict.reason': "held",
    "verdict == null": "failed",
    '"independent" in limits': "held",
    '"privacy" in limits': "failed",
    '"privacy" not in limits': "held",
    "limits.height == 2": "held",
    "metrics.size in [1, 3]": "held",
    "metrics.size in [1, 2]": "failed",
    "metrics.share in [0.3, 9]": "undecided",
    "metrics.share in [8, 9]": "failed",
    # tables
    "tables.tokens.height == 4": "held",
    "tables.tokens.width == 10": "held",
    "tables.tokens.flow.min == 0.1": "held",
    "tables.tokens.flow.max == 0.5": "held",
    "tables.tokens.flow.mean == 0.8 / 3 ± 0.000001": "held",
    "tables.tokens.flow.median == 0.2": "held",
    "tables.tokens.flow.sum == 0.8 ± 1e-12": "held",
    "tables.tokens.count.std == 0.8165 ± 0.0001": "held",
    "tables.tokens.flow.count == 3": "held",
    "tables.tokens.flow.null_count == 1": "held",
    "tables.tokens.token.unique == 2": "held",
    'tables.tokens.token.min == "drink"': "held",
    'tables.tokens.token.first == "the"': "held",
    "tables.tokens.token.last == null": "held",
    "tables.tokens.broken.count == 4": "held",
    "tables.tokens.kept.sum == 2": "held",
    "tables.tokens.kept.first == true": "held",
    "tables.tokens.kept.last != true": "not run",
    'tables.tokens.day.max >= "2025-12-04"': "held",
    'tables.tokens."odd name".sum == 10': "held",
    "tables.tokens.huge.sum == 18446744073709551616": "held",
    "tables.tokens.nothing.null_count == 4": "held",
    "tables.tokens.row(1).flow == 0.5": "held",
    "tables.tokens.row(-1).flow == 0.2": "held",
    'tables.tokens.row(token = "drink").flow == 0.5': "held",
    'tables.tokens.row(token == "the", count = 3).flow == 0.1': "held",
    "tables.tokens.row(flow = null).count == 2": "held",
    "tables.tokens.row(flow = 20 %).count == 2": "held",
    "tables.tokens.row(kept = false).count == 1": "held",
    'tables.tokens.row(day = "2025-12-02").count == 1': "held",
    "tables.tokens.row(flow = null).flow == null": "held",
    "tables.tokens.row(0).flow == null": "failed",
    # what cannot be told
    "metrics.absent > 0": "not run",
    "metrics.absent == null": "not run",
    "metrics.absent.low > 0": "not run",
    "not metrics.absent > 0": "not run",
    "metrics.absent > 0 or metrics.size == 3": "not run",
    "metrics.absent > 0 and metrics.size == 4": "not run",
    "metrics.absent in [1, 2]": "not run",
    "abs(metrics.absent) + 1 > 0": "not run",
    "metrics.share == metrics.absent.value ± 1": "not run",
    "metrics.size == 3 ± metrics.absent": "not run",
    "metrics.size / metrics.none > 0": "not run",
    "metrics.least.high - inf > 0": "not run",
    "metrics.enormous > 0": "not run",
    "tables.tokens.row(2).flow > 0": "not run",
    "tables.tokens.row(9).flow > 0": "not run",
    "tables.tokens.row(9).flow == null": "not run",  # a row that does not exist is not an empty cell
    'tables.tokens.row(token = "the").flow > 0': "not run",
    'tables.tokens.row(token = "absent").flow > 0': "not run",
    "tables.tokens.row(count = 99999999999999999999).flow > 0": "not run",
    "tables.tokens.row(1).broken == null": "not run",
    "tables.tokens.broken.min > 0": "not run",
    "tables.tokens.broken.mean > 0": "not run",
    "tables.tokens.nothing.max > 0": "not run",
    "tables.empty.flow.max > 0": "not run",
    "tables.empty.flow.first > 0": "not run",
    "tables.empty.height == 0": "held",
    # Kleene
    "not metrics.share > 0.3": "undecided",
    "not not metrics.share > 0.2": "held",
    "metrics.share > 0.3 and metrics.size == 4": "failed",
    "metrics.share > 0.3 and metrics.size == 3": "undecided",
    "metrics.share > 0.3 or metrics.size == 3": "held",
    "metrics.share > 0.3 or metrics.size == 4": "undecided",
    "metrics.size == 3 or metrics.size == 4 and metrics.size == 5": "held",
    "(metrics.size == 3 or metrics.size == 4) and metrics.size == 5": "failed",
}


@pytest.mark.parametrize(("text", "word"), OUTCOMES.items(), ids=list(OUTCOMES))
def test_outcome(text: str, word: str) -> None:
    outcome = parse(text).check(ANSWER)
    assert outcome.word == word, outcome
    assert outcome.reason
    assert "\n" not in outcome.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "metrics.share > 0.2": "share is 0.30 [0.25, 0.35], wholly above 0.2",
        "metrics.share > 0.3": "share is 0.30 [0.25, 0.35], and its interval holds 0.3",
        "metrics.share < 0.35": "share is 0.30 [0.25, 0.35], and its interval touches 0.35",
        "metrics.percent > 20": "share of the name is 29.1\u202f% [26.2, 32.2], wholly above 20",
        "metrics.percent.low > 20": "the lower end of share of the name is 26.2\u202f%, more than 20",
        "metrics.size < 3": "size is 3\u202ffacts, not less than 3",
        "metrics.size == 4": "size is 3\u202ffacts, not 4",
        "metrics.share < metrics.other": "share is 0.30 [0.25, 0.35], wholly below other (0.50 [0.40, 0.60])",
        "metrics.share == 0.3 ± 0.1": "share is 0.30 [0.25, 0.35], inside 0.2 to 0.4",
        "metrics.least < 1": "least is 0.90 [0.80, ∞], and its interval holds 1",
        "metrics.wide < 5": "wide is 0.0\u202fpoints [−2.0, 1.0], wholly below 5",
        "verdict == 'flagged'": 'the verdict is "answerable", not "flagged"',
        "metrics.absent > 0": "absent has no value: there were no rows",
        'tables.tokens.row(token="the").flow > 0': (
            'tables.tokens.row(token = "the").flow is not one value: 2 rows match, and it takes exactly one'
        ),
        "tables.tokens.row(9).flow > 0": "tables.tokens.row(9).flow does not exist: the table has 4 rows, counted from 0",
        "metrics.size == 3 and metrics.share > 0.3": "share is 0.30 [0.25, 0.35], and its interval holds 0.3",
    }.items(),
)
def test_reason_names_the_numbers(text: str, reason: str) -> None:
    assert parse(text).check(ANSWER).reason == reason


def test_an_interval_that_barely_clears_its_line_is_printed_clear_of_it() -> None:
    answer = Answer("x", {"gain": Metric(1.0, 0.00004, 2.0, method="bootstrap")})
    assert parse("metrics.gain > 0").check(answer).reason == "gain is 1.00000 [0.00004, 2.00000], wholly above 0"


SHARE = {"value": 0.3, "low": 0.25, "high": 0.35, "kind": "estimated", "unit": "1"}
WIDE = {"value": 0.0, "low": -2.0, "high": 1.0, "kind": "estimated", "unit": "points"}
SIZE = {"value": 3, "low": 3, "high": 3, "kind": "exact", "unit": "facts"}


@pytest.mark.parametrize(
    ("text", "observed"),
    {
        "metrics.share > 0.2": Observed(**SHARE, line=0.2, side=">"),
        "0.2 >= metrics.share": Observed(**SHARE, line=0.2, side="<"),
        "metrics.share.low > 20 %": Observed(**SHARE, line=0.2, side=">"),
        "not metrics.share > 0.2": Observed(**SHARE, line=0.2, side="<"),
        "0.2 < metrics.share < 0.4": Observed(**SHARE, line=0.2, line_high=0.4, side="band"),
        "0.4 > metrics.share >= 0.2": Observed(**SHARE, line=0.2, line_high=0.4, side="band"),
        "metrics.share == 0.3 ± 0.1": Observed(**SHARE, line=0.2, line_high=0.4, side="band"),
        "metrics.share != 0.3 ± 0.1": Observed(**SHARE, line=0.2, line_high=0.4),
        "abs(metrics.wide) < 1": Observed(**WIDE, line=-1, line_high=1, side="band"),
        "abs(metrics.wide) > 1": Observed(**WIDE, line=-1, line_high=1),
        "metrics.size == 3": Observed(**SIZE, line=3, line_high=3, side="band"),
        "metrics.size != 3": Observed(**SIZE, line=3),
        "metrics.size < metrics.proved": Observed(4.0, 3.0, 5.0, "bounds", "1", line=3, side=">"),
        "metrics.share < metrics.other": Observed(**SHARE),
        "metrics.least > 0.7": Observed(0.9, 0.8, None, "one_sided", "1", line=0.7, side=">"),
        "tables.tokens.height > 3": Observed(4, 4, 4, "exact", "", line=3, side=">"),
        "metrics.share > 0.2 and metrics.size == 3": None,
        "verdict == 'answerable'": None,
        "metrics.absent > 0": None,
    }.items(),
)
def test_what_is_drawn(text: str, observed: Observed | None) -> None:
    assert parse(text).check(ANSWER).observed == observed


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "metrics.size > 0": "size is more than 0\u202ffacts",
        "metrics.percent.low > 20": "the lower end of share of the name is more than 20\u202f%",
        "0.2 < metrics.share": "share is more than 0.2",
        "0.2 < metrics.share < 0.4": "share is between 0.2 and 0.4",
        "metrics.share == 0.3 ± 0.1": "share is 0.3 ± 0.1",
        "abs(metrics.wide) < 1": "abs(wide) is less than 1\u202fpoint",
        "tables.tokens.height == 14": "the number of rows of tokens is 14",
        'tables.tokens.row(token = "drink").flow > -1': 'flow in tokens where token is "drink" is more than −1',
        "tables.tokens.flow.max <= 1": "the largest flow in tokens is at most 1",
        "verdict in ['a', 'b']": 'the verdict is one of "a", "b"',
        "'x' not in limits": '"x" does not stand in the limits',
        "not (metrics.size > 0 or verdict == 'a')": (
            'it is not so that (size is more than 0\u202ffacts, or the verdict is "a")'
        ),
    }.items(),
)
def test_plain_words(text: str, words: str) -> None:
    assert parse(text).words(ANSWER) == words


def test_plain_words_without_an_answer() -> None:
    assert parse("metrics.total_flow > 0").words() == "total flow is more than 0"


@pytest.mark.parametrize(
    "text", ["metrics.size == 3", "metrics.share > 0.4", "metrics.absent > 0", "limits.height == 9"]
)
def test_a_voided_answer_leaves_it_undecided(text: str) -> None:
    voided = Answer("x", ANSWER.metrics, limits=ANSWER.limits, void="Only 3 patients\noverlap.")
    outcome = parse(text).check(voided)
    assert (outcome.word, outcome.reason) == ("undecided", "a diagnostic voids this answer: Only 3 patients overlap.")


def test_a_voided_answer_still_refuses_unknown_names() -> None:
    with pytest.raises(UnknownName, match="there is no metric 'sise'; did you mean 'size'"):
        parse("metrics.sise > 0").check(Answer("x", ANSWER.metrics, void="Nothing overlaps."))


def test_an_answer_without_a_verdict() -> None:
    answer = Answer("x", ANSWER.metrics)
    assert parse("verdict == 'flagged'").check(answer).word == "not run"
    assert parse("verdict == null").check(answer).word == "held"


@pytest.mark.parametrize(
    ("text", "line"),
    {
        "metrics.shar > 0": "character 1: there is no metric 'shar'; did you mean 'share'?",
        "1 < metrics.shar": "character 5: there is no metric 'shar'; did you mean 'share'?",
        "metrics.size == 4 and metrics.shar > 0": "character 23: there is no metric 'shar'; did you mean 'share'?",
        "metrics.size == 3 or metrics.shar > 0": "character 22: there is no metric 'shar'; did you mean 'share'?",
        "tables.token.height > 0": "there is no table 'token'; did you mean 'tokens'?",
        "tables.tokens.flo.max > 0": "table tokens: there is no column 'flo'; did you mean 'flow'?",
        "tables.tokens.row(toke = 'a').flow > 0": "there is no column 'toke'; did you mean 'token'?",
        "tables.tokens.row(0).flo > 0": "there is no column 'flo'; did you mean 'flow'?",
    }.items(),
)
def test_unknown_names_are_found_wherever_they_stand(text: str, line: str) -> None:
    with pytest.raises(UnknownName) as caught:
        parse(text).check(ANSWER)
    assert str(caught.value).endswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    {
        "metrics.size > 'a'": 'metrics.size (a number) and "a" (text) cannot be compared',
        "verdict == 3": "verdict (text) and 3 (a number) cannot be compared",
        "metrics.size == true": "metrics.size (a number) and true (true or false) cannot be compared",
        "tables.tokens.kept.first < true": "true and false are compared with <; use == or !=",
        "metrics.size < null": "null is compared with <",
        "metrics.size in ['a']": "cannot be compared",
        "metrics.size in limits": "a number is used with in",
        "verdict + 1 > 0": "+ is used with text",
        "-verdict == 0": "- is used with text",
        "abs(verdict) == 0": "abs() is used with text",
        "metrics.size + null > 0": "+ is used with null",
        "metrics.size == 3 ± metrics.share": "a tolerance is one number, 0 or more",
        "metrics.size == 3 ± -1": "a tolerance is one number, 0 or more",
        "verdict == 'a' ± 1": "± is used with text",
        "metrics.percent > 20 %": "leave out the % sign",
        "metrics.percent < -20 %": "leave out the % sign",
        "abs(metrics.wide) < 5 %": "leave out the % sign",
        "tables.tokens.token.mean > 0": "tables.tokens.token.mean is asked of a column of String",
        "tables.tokens.list.unique > 0": "is asked of a column of List",
        "tables.tokens.list.first == 1": "is of type Series",
        "tables.tokens.row(flow = 'a').count > 0": 'column "flow" holds Float64, never "a"',
        "tables.tokens.row(token = 1).count > 0": 'column "token" holds String, never 1',
        "tables.tokens.row(kept = 1).count > 0": 'column "kept" holds Boolean, never 1',
    }.items(),
)
def test_things_that_cannot_be_compared(text: str, line: str) -> None:
    with pytest.raises(BadDossier) as caught:
        parse(text).check(ANSWER)
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("", BadDossier, "the expectation is empty"),
        ("metrics.a >", BadDossier, "character 12: expected a value, found the end"),
        ("metrics.a > 1 2", BadDossier, 'character 15: expected an operator or the end, found "2"'),
        ("metrics.a", BadDossier, "nothing is compared"),
        ("1 < 2", BadDossier, "it says nothing about the answer"),
        ("metrics.a = 1", BadDossier, "character 11: a single = compares nothing here; write =="),
        ("metrics > 1", BadDossier, 'character 9: expected ., found ">"'),
        ("metrics.1a > 1", BadDossier, 'character 9: "1a" is neither a number nor a name'),
        ("metrics. > 1", BadDossier, "character 10: expected a name"),
        ("metric.a > 1", UnknownName, "there is no name 'metric'; did you mean 'metrics'?"),
        ("metrics.a.lo > 1", UnknownName, "there is no part of a metric 'lo'; did you mean 'low'?"),
        ("metrics.a-b > 1", UnknownName, 'put a name that holds - in quotes, as in "a-b"'),
        ("sqrt(metrics.a) > 1", UnknownName, "character 1: there is no function 'sqrt'; known: abs, max, min"),
        ("tables.t.c > 1", UnknownName, 'a table has no size "c"; write .height or .width'),
        ("tables.t.c.avg > 1", UnknownName, "there is no statistic of a column 'avg'"),
        ("tables.t.row(1.5).c > 1", BadDossier, "a row is a whole number"),
        ("tables.t.row(a = -'x').c > 1", BadDossier, "only a number can be negative"),
        ("tables.t.row(a = b).c > 1", BadDossier, 'expected a number, text, true, false or null, found "b"'),
        ("limits == 1", BadDossier, "character 1: the limits are a list, not a value"),
        ("verdict.word == 'a'", UnknownName, "there is no part of the verdict 'word'"),
        ("(metrics.a > 1) == true", BadDossier, "character 1: a comparison stands where a value belongs"),
        ("metrics.a > (1 < 2)", BadDossier, "character 13: a comparison stands where a value belongs"),
        ("metrics.a and metrics.b > 1", BadDossier, "character 1: and, or, not join comparisons"),
        ("not metrics.a", BadDossier, "character 5: and, or, not join comparisons"),
        ("metrics.a < 1 ± 2", BadDossier, "± has no meaning after <"),
        ("metrics.a == 100 ± 5 %", BadDossier, "could mean two things; write the tolerance as a plain number"),
        ("metrics.a in 3", BadDossier, "in looks into a list, the limits or a text"),
        ("metrics.a in [null]", BadDossier, "null is not looked for with in"),
        ("metrics.a in []", BadDossier, 'expected a value, found "]"'),
        ("metrics.a == [1]", BadDossier, 'expected a value, found "["'),
        ("abs(1, metrics.a) > 1", BadDossier, "abs has 2 numbers; give it one number"),
        ("verdict == 'a", BadDossier, "character 12: a text begins here and does not end; close it with '"),
        (r"verdict == 'a\x'", BadDossier, "is no escape"),
        ("metrics.a ! 1", BadDossier, "write != or not"),
        ("metrics.a > 1 & 1", BadDossier, "write and"),
        ("metrics.a > 1e999", BadDossier, "1e999 is too large for a float"),
        ("metrics.a > 1e-999", BadDossier, "1e-999 is too small for a float"),
        ("metrics.a > " + "1" * 41, BadDossier, "a number has 41 characters, more than 40"),
        ("metrics.a > True", UnknownName, "there is no name 'True'; did you mean 'true'?"),
        ("__import__('os').system('id') > 1", UnknownName, "there is no function '__import__'"),
        ("metrics.a > 1 or\x1b[2J", BadDossier, r'"\x1b" has no meaning'),
        (3, BadDossier, "an expectation is int, not text"),
    ],
)
def test_what_does_not_parse_is_told_in_one_line(text: str, kind: type[AnswerableError], line: str) -> None:
    with pytest.raises(kind) as caught:
        parse(text)
    told = str(caught.value)
    assert line in told
    assert told.isprintable()
    assert len(told) < 500


@pytest.mark.parametrize("nest", ["({})", "-({})", "abs({})"])
def test_nesting_is_bounded(nest: str) -> None:
    def nested(times: int) -> str:
        text = "metrics.size"
        for _ in range(times):
            text = nest.format(text)
        return f"{text} <= 3"

    assert parse(nested(16)).check(ANSWER).word == "held"
    with pytest.raises(BadDossier, match="nested more than 32 deep"):
        parse(nested(33))


def test_thirty_two_nots_are_one_too_few_to_refuse() -> None:
    assert parse("not " * 32 + "metrics.size == 3").check(ANSWER).word == "held"
    with pytest.raises(BadDossier, match="nested more than 32 deep"):
        parse("not " * 33 + "metrics.size == 3")


def test_length_is_bounded_and_long_is_not_deep() -> None:
    terms = "metrics.size" + " + 1" * 490
    assert parse(f"{terms} == 493").check(ANSWER).word == "held"
    assert parse("limits.height == 2" + " and limits.height == 2" * 80).check(ANSWER).word == "held"
    with pytest.raises(BadDossier, match="2001 characters are more than 2000"):
        parse("metrics.size == 3".ljust(2001))


def test_whole_numbers_cannot_grow_without_bound() -> None:
    factors = " * ".join(["9" * 40] * 40)
    outcome = parse(f"metrics.size * {factors} > 0").check(ANSWER)
    assert (outcome.word, outcome.reason) == ("not run", "the arithmetic leaves the range of numbers")


def test_paths_stand_once_each_in_their_order() -> None:
    text = 'metrics.a.low > 0 and (metrics."b c" == 1 ± metrics.d.value or "x" in limits) and 0 < metrics.a.low'
    assert parse(text).paths == ("metrics.a.low", 'metrics."b c"', "metrics.d.value", "limits")


def test_equal_however_it_is_spaced_and_quoted() -> None:
    one, other = parse("metrics.a==1+-2 and verdict=='x'"), parse(' metrics."a" ==  1 ± 2\nand verdict == "x"')
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == 'metrics.a == 1 ± 2 and verdict == "x"'
    assert one != parse("metrics.a == 1 ± 2 or verdict == 'x'")


def test_importing_is_light() -> None:
    heavy = "numpy", "polars", "pydantic", "torch", "scipy", "pandas"
    script = (
        "import sys; from answerable.expectations import parse; parse('metrics.a > 1 and tables.t.c.max < 2').words();"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------------------ truth tables

RANK = {"failed": 0, "undecided": 1, "held": 2}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(RANK, repeat=2)))
def test_kleene(first: str, second: str) -> None:
    """Kleene's tables are the smaller and the larger of failed < undecided < held."""
    assert kleene_and(first, second) == min(first, second, key=RANK.__getitem__)
    assert kleene_or(first, second) == max(first, second, key=RANK.__getitem__)
    assert kleene_not(kleene_and(first, second)) == kleene_or(kleene_not(first), kleene_not(second))


def test_kleene_not() -> None:
    negated = {word: kleene_not(word) for word in (*RANK, "not run")}
    assert negated == {"failed": "held", "undecided": "undecided", "held": "failed", "not run": "not run"}


@pytest.mark.parametrize("word", [*RANK, "not run"])
def test_what_could_not_run_outranks_everything(word: str) -> None:
    for join in (kleene_and, kleene_or):
        assert join(word, "not run") == join("not run", word) == "not run"


# -------------------------------------------------------------------------------------------------------------- properties

ENDS = st.tuples(*[st.integers(-12, 12)] * 4)


@given(ENDS, st.sampled_from("+-*/"), st.fractions(0, 1), st.fractions(0, 1))
@settings(max_examples=100, deadline=None)
def test_interval_arithmetic_holds_every_pair_of_numbers(
    ends: tuple[int, ...], sign: str, first: Fraction, second: Fraction
) -> None:
    (low_a, high_a), (low_b, high_b) = sorted(ends[:2]), sorted(ends[2:])
    a, b = low_a + first * (high_a - low_a), low_b + second * (high_b - low_b)
    metrics = {
        "a": Metric(low_a, low_a, high_a, method="m"),
        "b": Metric(high_b, low_b, high_b, method="m"),
    }
    outcome = parse(f"metrics.a {sign} metrics.b > 1e300").check(Answer("x", metrics))
    if outcome.word == "not run":
        assert sign == "/"
        assert high_b == 0
        return
    if sign == "/" and b == 0:
        assert outcome.word == "undecided"
        return
    exact = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign](a, b)
    low, high = outcome.observed.low, outcome.observed.high
    assert low is None or low <= float(exact) + 1e-9
    assert high is None or high >= float(exact) - 1e-9


@given(ENDS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.fractions(0, 1), st.fractions(0, 1))
@settings(max_examples=100, deadline=None)
def test_a_decided_comparison_is_true_of_every_pair_of_numbers(
    ends: tuple[int, ...], sign: str, first: Fraction, second: Fraction
) -> None:
    (low_a, high_a), (low_b, high_b) = sorted(ends[:2]), sorted(ends[2:])
    a, b = low_a + first * (high_a - low_a), low_b + second * (high_b - low_b)
    metrics = {"a": Metric(low_a, low_a, high_a, method="m"), "b": Metric(low_b, low_b, high_b, method="m")}
    compare = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}[sign]
    word = parse(f"metrics.a {sign} metrics.b").check(Answer("x", metrics)).word
    assert word == "undecided" or (word == "held") == getattr(operator, compare)(a, b)


NAMES = st.one_of(
    st.sampled_from(["a", "in", "row", "value", "été", "odd name", 'q"\\', "a-b", "\n\t", "1"]), st.text(max_size=5)
)
NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(0, 1e300).map(repr),
    st.just("inf"),
    st.integers(0, 99).map("{} %".format),
)


def in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


QUOTED = NAMES.map(in_quotes)
LITERALS = st.one_of(NUMBERS, QUOTED, st.sampled_from(["true", "false", "null"]), NUMBERS.map("-{}".format))
PATHS = st.one_of(
    QUOTED.map("metrics.{}".format),
    st.builds("metrics.{}.{}".format, QUOTED, st.sampled_from(["value", "low", "high"])),
    st.builds("tables.{}.{}".format, QUOTED, st.sampled_from(["height", "width"])),
    st.builds("tables.{}.{}.{}".format, QUOTED, QUOTED, st.sampled_from(["min", "max", "unique", "null_count"])),
    st.builds("tables.{}.row({}).{}".format, QUOTED, st.integers(-9, 9), QUOTED),
    st.builds("tables.{}.row({} = {}, {} = {}).{}".format, QUOTED, QUOTED, LITERALS, QUOTED, LITERALS, QUOTED),
    st.sampled_from(["limits.height", "verdict", "verdict.reason"]),
)
VALUES = st.recursive(
    st.one_of(PATHS, LITERALS),
    lambda part: st.one_of(
        st.builds("({}{}{})".format, part, st.sampled_from([" + ", "-", "*", "/"]), part),
        st.builds("{} {} {}".format, part, st.sampled_from(["+", "-", "*", "/"]), part),
        part.map("-{}".format),
        part.map("abs({})".format),
        st.builds("min({}, {})".format, part, part),
    ),
    max_leaves=6,
)
TRUTHS = st.recursive(
    st.one_of(
        st.builds("{} {} {}".format, VALUES, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), VALUES),
        st.builds("{} == {} ± metrics.w.value".format, VALUES, VALUES),
        st.builds("{} < {} <= {}".format, VALUES, VALUES, VALUES),
        st.builds("{} not in [{}, {}]".format, PATHS, PATHS, NUMBERS),
        QUOTED.map("{} in limits".format),
    ),
    lambda part: st.one_of(
        st.builds("({} or {})".format, part, part),
        st.builds("{} and {}".format, part, part),
        part.map("not {}".format),
    ),
    max_leaves=5,
).map("limits.height > 0 and {}".format)


@given(TRUTHS)
@settings(max_examples=100, deadline=None)
def test_the_canonical_form_parses_to_the_same(text: str) -> None:
    if len(text) > 1500:
        return
    parsed = parse(text)
    again = parse(str(parsed))
    assert again == parsed
    assert str(again) == str(parsed)
    assert again.paths == parsed.paths
    assert parsed.words().isprintable() or "\u202f" in parsed.words()


def checked_or_refused(text: str) -> str:
    """The outcome's word, or "refused" for an error of ours in one line; any other exception goes through."""
    try:
        return parse(text).check(ANSWER).word
    except AnswerableError as error:
        return "refused" if len(str(error).splitlines()) == 1 else str(error)


PIECES = st.sampled_from(
    [
        "metrics",
        "tables",
        "limits",
        "verdict",
        "and",
        "or",
        "not",
        "in",
        "abs",
        "min",
        "max",
        "row",
        "height",
        "width",
        "value",
        "low",
        "high",
        "true",
        "false",
        "null",
        "inf",
        ".",
        "(",
        ")",
        "[",
        "]",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "±",
        "+-",
        "+/-",
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
        "=",
        "a",
        "share",
        "tokens",
        "flow",
        "token",
        "0",
        "1",
        "2.5",
        "1e3",
        "1e999",
        '"a"',
        "'b'",
        '"',
        "'",
        "\\",
        "#",
        "∞",
        "\x00",
        "�",
    ]
)


@given(
    st.one_of(
        st.text(max_size=60), st.lists(PIECES, max_size=40).map(" ".join), st.lists(PIECES, max_size=40).map("".join)
    )
)
@settings(max_examples=250, deadline=None)
def test_any_text_parses_or_is_refused_in_one_line(text: str) -> None:
    assert checked_or_refused(text) in (*RANK, "not run", "refused")


@given(TRUTHS)
@settings(max_examples=80, deadline=None)
def test_whatever_parses_is_checked_or_refused_in_one_line(text: str) -> None:
    text = text.replace("'a'", "share").replace("'in'", "tokens").replace("'row'", "flow")[:2000]
    assert checked_or_refused(text) in (*RANK, "not run", "refused")


@pytest.mark.parametrize(
    "piece", ["(", "-", "not ", "abs(", "metrics.", "[", '"', "\\", "1 <", "a.", "'\\", "+-", "0", " "]
)
def test_the_longest_repetitions_are_refused_at_once(piece: str) -> None:
    with pytest.raises(AnswerableError):
        parse((piece * 2000)[:2000])


def test_the_page_states_true_outcomes() -> None:
    """Each row of the page's table, on the share it describes."""
    page = (Path(__file__).parents[2] / "docs" / "expectations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(metrics\.share[^`]+)` \| (\w+)", page, re.MULTILINE)
    assert len(rows) == 10
    assert [(text, parse(text).check(ANSWER).word) for text, _ in rows] == rows
