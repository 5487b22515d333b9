"""What the page says: from the answers to plain text, numbers and small drawings, ready to be set.

Everything that a model, a data set or a file wrote is made safe to look at here, and cut to what a page bears; the
template escapes it once more.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from answerable import registry
from answerable.answer import NARROW, Answer, Figure, Metric
from answerable.errors import AnswerableError
from answerable.report import numbers
from answerable.report.drawing import svg
from answerable.report.rows import Shown, shown_table
from answerable.report.visible import LONGEST_SENTENCE, shown, shown_all
from answerable.report.whiskers import Line, Scale, Tone, shared_scale, whisker

if TYPE_CHECKING:
    from answerable.dossier import Asked, Expected, Result
    from answerable.expectations import Outcome

FEW = 20  # answers; a longer report shows each first picture and fewer rows
MOST_ROWS, FEWER_ROWS = 20, 10  # of a table on the page
MOST_METRICS, MOST_LIMITS = 80, 12
LONGEST_LEAD = 20  # entries of the list under the verdict sentence
# Characters of the file: what pictures, rows and files to download may take together, so that all of it
# stays under 5 MB.
PICTURES, ROWS, DOWNLOADS = 2_600_000, 900_000, 1_000_000
WORST_FIRST = ("failed", "not run", "undecided", "held", "")
_TO_MEND = {"failed": "To mend it", "undecided": "To decide it", "not run": "To run it"}
_KINDS = {"exact": "exact", "bounds": "proved bounds", "one_sided": "one-sided", "estimated": ""}


@dataclass(frozen=True)
class Verdict:
    """A word with its tone: one of the four outcomes, or a question's own word."""

    word: str
    tone: str  # held, failed, undecided, not run; empty for a word of the question's own

    @property
    def css(self) -> str:
        """The class that colours it."""
        return self.tone.replace(" ", "") or "own"


@dataclass(frozen=True)
class Expectation:
    """A row of the table of expectations."""

    words: str
    expression: str
    word: str
    drawing: Markup
    value: str
    note: str
    why: str
    lenient: bool

    @property
    def verdict(self) -> Verdict:
        """Its outcome."""
        return Verdict(self.word, self.word)


@dataclass(frozen=True)
class Why:
    """The paragraph under an answer that is not plainly held."""

    verdict: Verdict
    text: str
    mend: str = ""

    @property
    def mend_head(self) -> str:
        """What the mend is called."""
        return _TO_MEND.get(self.verdict.tone, "To decide it")


@dataclass(frozen=True)
class Number:
    """A row of the table of numbers."""

    label: str
    how: str
    drawing: Markup
    value: str
    interval: str
    unit: str
    reason: str


@dataclass(frozen=True)
class Picture:
    """A figure in two widths, or the line that says why it is not drawn."""

    title: str
    how: str
    wide: str = ""
    narrow: str = ""
    problem: str = ""


@dataclass(frozen=True)
class TableOnPage:
    """A table with its caption and what it is called when downloaded."""

    title: str
    file: str
    part: str
    shown: Shown


@dataclass(frozen=True)
class Fact:
    """One line of the provenance."""

    name: str
    text: str
    code: bool = False


@dataclass
class Entry:
    """One ask and what became of it, as the page shows it."""

    number: int
    ask: str
    question: str
    wing: str
    words: str
    answer: Answer | None = None
    error: str = ""
    summary: str = ""
    verdict: Verdict | None = None
    own_word: str = ""
    tally: str = ""
    why: Why | None = None
    expectations: list[Expectation] = field(default_factory=list)
    metrics: list[Number] = field(default_factory=list)
    more_metrics: int = 0
    pictures: list[Picture] = field(default_factory=list)
    more_pictures: int = 0
    tables: list[TableOnPage] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    asked_of: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"q{self.number}"


@dataclass
class Budget:
    """How many characters pictures, rows and files to download may still take."""

    answers: int
    tables: int
    pictures: int = PICTURES
    rows: int = ROWS
    downloads: int = DOWNLOADS
    every_picture: bool = False

    @property
    def short(self) -> bool:
        """Whether each answer has all its pictures and the longer tables."""
        return self.answers <= FEW


@dataclass
class Page:
    """The whole report."""

    title: str
    description: str
    facts: list[str]
    sentence: str
    lead: list[tuple[Verdict, Entry, str, str]]
    more_lead: int
    entries: list[Entry]
    notes: list[str]
    version: str
    expected: bool


# From results


def page_of_result(result: Result, *, every_picture: bool = False) -> Page:
    """The page of a dossier that was run."""
    asked = list(result.asked)
    entries = _entries(asked, every_picture)
    words = Counter(row.word for entry in entries for row in entry.expectations)
    unanswered = sum(1 for one in asked if one.answer is None)
    dossier = result.dossier
    facts = [
        *_dates(one.answer for one in asked),
        _counted(len(entries), "question") + (f", {_counted(words.total(), 'expectation')}" if words else ""),
        *([f"seed {dossier.seed}"] if dossier.seed is not None else []),
        *([f"{_counted(result.left_out, 'ask')} left out this time"] if result.left_out else []),
    ]
    lead, more = _lead(entries)
    return Page(
        title=shown(dossier.title),
        description=shown(dossier.description, LONGEST_SENTENCE),
        facts=facts,
        sentence=verdict_sentence(words, unanswered, len(entries)),
        lead=lead,
        more_lead=more,
        entries=entries,
        notes=_notes(result, entries),
        version=_version(one.answer for one in asked),
        expected=bool(words),
    )


def page_of_answers(answers: Sequence[Answer], title: str, *, every_picture: bool = False) -> Page:
    """The page of answers of which nothing was expected."""
    budget = _budget(answers, every_picture)
    entries = [_entry(i, answer.question, answer, budget) for i, answer in enumerate(answers, 1)]
    lead, more = _lead(entries) if len(entries) > 1 else ([], 0)
    facts = [*_dates(answers), _counted(len(entries), "question")]
    return Page(title, "", facts, "", lead, more, entries, [], _version(answers), False)


def entry_of_answer(answer: Answer) -> Entry:
    """One answer by itself, without its tables and with its first picture alone."""
    return _entry(1, answer.question, replace(answer, tables={}), Budget(answers=FEW + 1, tables=0))


def _budget(answers: Iterable[Answer | None], every_picture: bool) -> Budget:
    present = [answer for answer in answers if answer is not None]
    return Budget(len(present), sum(len(answer.tables) for answer in present), every_picture=every_picture)


def _entries(asked: Sequence[Asked], every_picture: bool) -> list[Entry]:
    budget = _budget((one.answer for one in asked), every_picture)
    entries = []
    for i, one in enumerate(asked, 1):
        question = type(one.ask.question)
        entry = _entry(i, question.name, one.answer, budget, words=question.in_plain_words(), ask=one.ask.name)
        entry.error = shown(one.error, LONGEST_SENTENCE)
        void = bool(one.answer and one.answer.void)
        pairs = list(zip(one.ask.expect, one.outcomes, strict=True))
        entry.expectations = [_expectation(expected, outcome, void) for expected, outcome in pairs]
        _judge(entry, pairs)
        entries.append(entry)
    return entries


def _judge(entry: Entry, pairs: Sequence[tuple[Expected, Outcome]]) -> None:
    """Put the worst outcome above the answer, and its cause below it."""
    words = Counter(row.word for row in entry.expectations)
    if entry.answer is None:
        entry.verdict = Verdict("not run", "not run")
        return
    if not words:
        return
    worst = next(word for word in WORST_FIRST if words[word])
    entry.verdict = Verdict(worst, worst)
    entry.tally = f"{words[worst]} of {words.total()} {worst}"
    answer = entry.answer
    if worst != "held":
        entry.why = Why(entry.verdict, _cause(answer, worst, pairs), _mend(answer))


def _cause(answer: Answer, worst: str, pairs: Sequence[tuple[Expected, Outcome]]) -> str:
    if answer.void and worst == "undecided":
        return _sentence(answer.void)
    if worst == "undecided" and answer.verdict and answer.verdict.word == "undecided" and answer.verdict.reason:
        return _sentence(answer.verdict.reason)
    told = [(expected, outcome) for expected, outcome in pairs if outcome.word == worst][:3]
    texts = []
    for expected, outcome in told:
        texts.append(_sentence(outcome.reason))
        if expected.why:
            texts.append(_sentence(expected.why))
    return " ".join(dict.fromkeys(texts))


def _mend(answer: Answer) -> str:
    return _sentence(answer.verdict.mend) if answer.verdict and answer.verdict.mend else ""


def _sentence(text: str) -> str:
    """The text as a sentence: a capital first, a full stop last."""
    text = shown(text.strip(), LONGEST_SENTENCE)
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!", "…", ".”")) else ".")


# The parts of an answer


def _entry(
    number: int, question: str, answer: Answer | None, budget: Budget, *, words: str = "", ask: str = ""
) -> Entry:
    question_shown = shown(question, 80)
    entry = Entry(
        number=number,
        ask=shown(ask, 80) if ask != question else "",
        question=question_shown,
        wing=_wing(question),
        words=shown(words or _plain_words(question)),
        answer=answer,
    )
    if answer is None:
        return entry
    entry.summary = shown(answer.summary, LONGEST_SENTENCE)
    if answer.verdict:
        undecided = answer.verdict.word == "undecided"
        entry.own_word = shown(answer.verdict.word, 60)
        entry.verdict = Verdict(entry.own_word, "undecided" if undecided else "")
        if answer.verdict.reason:
            entry.why = Why(entry.verdict, _sentence(answer.verdict.reason), _mend(answer))
    if answer.void:
        entry.verdict = Verdict("undecided", "undecided")
        entry.why = Why(entry.verdict, _sentence(answer.void), _mend(answer))
    entry.metrics = _metrics(answer)
    entry.more_metrics = max(0, len(answer.metrics) - MOST_METRICS)
    entry.pictures = _pictures(answer.figures, budget, f"{entry.anchor}-")
    entry.more_pictures = len(answer.figures) - len(entry.pictures)
    entry.tables = _tables(answer, budget)
    entry.limits = [_sentence(limit) for limit in answer.limits[:MOST_LIMITS]]
    entry.facts = _facts(answer)
    entry.asked_of = _asked_of(answer)
    return entry


def _plain_words(question: str) -> str:
    try:
        return registry.find(question).in_plain_words() if question else ""
    except AnswerableError:  # somebody else's question, not installed here
        return ""


def _wing(question: str) -> str:
    path = registry.QUESTIONS.get(question, "")
    return path.split(".")[1] if path else shown(question.partition("/")[0], 40) if "/" in question else ""


def _metrics(answer: Answer) -> list[Number]:
    metrics = dict(list(answer.metrics.items())[:MOST_METRICS])
    by_unit: dict[str, list[Metric]] = {}
    for metric in metrics.values():
        by_unit.setdefault(metric.unit, []).append(metric)
    scales = {unit: shared_scale([(m.value, m.low, m.high) for m in same]) for unit, same in by_unit.items()}
    alone = {unit for unit, same in by_unit.items() if len(same) == 1 and same[0].kind == "exact"}
    labels = shown_all(metric.label or _spoken(name) for name, metric in metrics.items())
    rows = []
    for label, metric in zip(labels, metrics.values(), strict=True):
        tone: Tone = "baseline" if metric.role != "ours" else "undecided" if answer.void else "ours"
        number = numbers.written(metric.value, metric.low, metric.high, unit=shown(metric.unit, 40), kind=metric.kind)
        missing = math.isnan(metric.value)
        drawing = Markup("")
        if not missing and metric.unit not in alone:
            scale = scales[metric.unit]
            ends = (metric.value, metric.low, metric.high, metric.kind)
            drawing = whisker(*ends, tone=tone, scale=scale, zero=True, label=number.line)
        reason = _sentence(metric.reason) if missing else ""
        rows.append(Number(label, _how(metric), drawing, number.value, number.interval, number.unit, reason))
    return rows


def _spoken(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _how(metric: Metric) -> str:
    method = shown(metric.method)
    made = [word for word in ("" if metric.role == "ours" else metric.role, _KINDS[metric.kind]) if word]
    said = [word for word in made if not method.casefold().startswith(word)]
    return ": ".join(part for part in (", ".join(said), method) if part)


def _pictures(figures: Mapping[str, Figure], budget: Budget, prefix: str) -> list[Picture]:
    chosen = list(figures.items())[: None if budget.short or budget.every_picture else 1]
    pictures = []
    for i, (name, figure) in enumerate(chosen):
        if budget.pictures <= 0 and not budget.every_picture:
            break
        picture = _picture(name, figure, f"{prefix}{i}")
        budget.pictures -= len(picture.wide) + len(picture.narrow)
        pictures.append(picture)
    return pictures


def _picture(name: str, figure: Figure, prefix: str) -> Picture:
    title, how = (_caption(figure.wide, part) for part in ("text", "subtitle"))
    try:
        wide = Markup(svg(figure.wide, prefix=f"{prefix}w"))
        narrow = Markup(svg(figure.narrow, room=NARROW, prefix=f"{prefix}n"))
    except AnswerableError as error:
        problem = f"This picture could not be drawn: {shown(str(error), LONGEST_SENTENCE)}."
        return Picture(title or _spoken(name), how, problem=problem)
    return Picture(title or _spoken(name), how, wide, narrow)


def _caption(specification: Mapping[str, Any], part: str) -> str:
    """Title or subtitle of a figure, also where a layered chart carries it in its first layer."""
    title = specification.get("title")
    layers = specification.get("layer")
    if title is None and isinstance(layers, list) and layers and isinstance(layers[0], Mapping):
        title = layers[0].get("title")
    text = title.get(part, "") if isinstance(title, Mapping) else title if part == "text" else ""
    if isinstance(text, list):
        text = " ".join(map(str, text))
    return shown(str(text or ""), 300)


def _tables(answer: Answer, budget: Budget) -> list[TableOnPage]:
    tables = []
    for name, table in answer.tables.items():
        rows = MOST_ROWS if budget.short else FEWER_ROWS
        each = max(0, min(200_000, budget.downloads if budget.short else DOWNLOADS // max(1, budget.tables)))
        try:
            on_page = shown_table(table, most_rows=rows if budget.rows > 0 else 0, budget=budget.rows, csv_budget=each)
        except AnswerableError:
            continue
        budget.rows -= on_page.size
        budget.downloads -= len(on_page.csv)
        title = shown(table.title) or _spoken(name)
        tables.append(TableOnPage(title, f"{answer.question}-{name}.csv".replace("/", "-"), name, on_page))
    return tables


def _asked_of(answer: Answer) -> list[str]:
    """The subjects and texts the question was put to, as a reader names them: where each was found, and what it
    says.
    """
    places = [f"{shown(name, 60)} {shown(place)}" for name, place in answer.run.addresses.items()]
    texts = []
    for value in answer.provenance.parameters.values():
        found = value if isinstance(value, list) else [value]
        texts += [f"“{shown(entry)}”" for entry in found[:3] if isinstance(entry, str) and " " in entry.strip()]
        if texts and len(found) > 3:
            texts.append(f"and {len(found) - 3} more")
    return places + texts


def _facts(answer: Answer) -> list[Fact]:
    provenance, run = answer.provenance, answer.run
    seed = "" if provenance.seed is None else f", seed {provenance.seed}"
    version = f", answerable {shown(run.version, 40)}" if run.version else ""
    facts = [Fact("question", f"{shown(answer.question, 80)}{seed}{version}")]
    for name, value in provenance.parameters.items():
        facts.append(
            Fact(_spoken(shown(str(name), 60)).lower(), _parameter(value), code=not isinstance(value, int | float))
        )
    if provenance.key:
        facts.append(Fact("key", numbers.digest(shown(provenance.key)), code=True))
    if provenance.sources:
        facts.append(Fact("method's code", f"SHA-256 {numbers.digest(shown(provenance.sources))}"))
    if provenance.packages:
        packages = ", ".join(f"{name} {version}" for name, version in provenance.packages.items())
        facts.append(Fact("packages", shown(packages, LONGEST_SENTENCE)))
    facts.append(
        Fact("where", f"{shown(provenance.device, 40)}, {_counted(provenance.threads, 'thread')} for each library")
    )
    return facts + _run_facts(answer)


def _run_facts(answer: Answer) -> list[Fact]:
    run = answer.run
    facts = []
    if run.made:
        kept = "; taken from the store" if answer.from_store else ""
        facts.append(Fact("made", shown(numbers.date(run.made), 60) + kept))
        memory = f", peak memory {numbers.memory(run.peak_mb)}" if run.peak_mb else ""
        engine = f", {shown(run.engine, 60)} engine, {_counted(run.workers, 'worker')}"
        facts.append(Fact("time", f"{numbers.duration(run.seconds)}{memory}{engine}"))
    facts += [Fact(f"{shown(name, 60)} was at", shown(place), code=True) for name, place in run.addresses.items()]
    if run.command:
        facts.append(Fact("to ask again", shown(run.command, 2000), code=True))
    return facts


def _parameter(value: Any) -> str:
    """A parameter; of a subject its kind and the digest of its content."""
    if isinstance(value, Mapping):
        parts = []
        for name, part in value.items():
            text = numbers.digest(part) if isinstance(part, str) and _is_digest(part) else str(part)
            parts.append(f"{name} {text}")
        return shown(", ".join(parts), LONGEST_SENTENCE)
    if isinstance(value, str):
        return f"“{shown(value)}”"
    return shown(json.dumps(value, ensure_ascii=False, default=str), LONGEST_SENTENCE)


def _is_digest(text: str) -> bool:
    return len(text) >= 32 and all(c in "0123456789abcdef" for c in text.removeprefix("sha256:"))


# Expectations


def _expectation(expected: Expected, outcome: Outcome, void: bool) -> Expectation:
    seen = outcome.observed
    expression = shown(expected.expectation.text, 300)
    drawing, value = Markup(""), ""
    if seen is not None and isinstance(seen.value, int | float) and not math.isnan(seen.value):
        exact = seen.kind == "exact"
        low, high = (None, None) if exact else (seen.low, seen.high)
        lines = [line for line in (seen.line, seen.line_high) if line is not None]
        number = numbers.written(seen.value, low, high, unit=shown(seen.unit, 40), kind=seen.kind, lines=lines)
        value = number.line
        line = None if seen.line is None else Line(seen.line, seen.line_high, seen.side)
        tone: Tone = {"failed": "failed", "undecided": "undecided"}.get(outcome.word, "ours")  # type: ignore[assignment]
        scale = Scale.over([seen.value, low, high, *lines], margin=0.45 if line else 0.1)
        label = f"{value}; {outcome.word}"
        drawing = whisker(seen.value, low, high, seen.kind, tone=tone, scale=scale, line=line, label=label)
    note = "" if drawing else _sentence(outcome.reason)
    if void and outcome.word == "undecided":
        note = "the answer is void"
    return Expectation(
        words=shown(expected.words, 300),
        expression=expression,
        word=outcome.word,
        drawing=drawing,
        value=value,
        note=note,
        why=shown(expected.why, 300),
        lenient=expected.severity == "warn",
    )


def verdict_sentence(words: Mapping[str, int], unanswered: int, questions: int) -> str:
    """The sentence at the top: how many expectations held, failed, could not be decided or could not be checked."""
    total = sum(words.values())
    sentences = []
    if not total:
        sentences.append("No expectation was stated.")
    elif len([word for word in words if words[word]]) == 1:
        (word,) = (word for word in words if words[word])
        sentences.append(_alike(word, total))
    else:
        sentences.append(f"Of {numbers.in_words(total)} expectations {_listed(words)}.")
    if unanswered:
        head = numbers.in_words(unanswered).capitalize()
        rest = "The one question" if questions == 1 else f"{head} of the {numbers.in_words(questions)} questions"
        sentences.append(f"{rest} could not be answered.")
    return " ".join(sentences)


_SAID = {"held": "held", "failed": "failed", "undecided": "could not be decided", "not run": "could not be checked"}


def _alike(word: str, total: int) -> str:
    if total == 1:
        return f"The one expectation {_SAID[word]}."
    if word in ("undecided", "not run"):
        return f"None of the {numbers.in_words(total)} expectations {_SAID[word].replace('could not', 'could')}."
    return (
        f"Both expectations {_SAID[word]}."
        if total == 2
        else f"All {numbers.in_words(total)} expectations {_SAID[word]}."
    )


def _listed(words: Mapping[str, int]) -> str:
    parts = ["none held"] if not words.get("held") else []
    parts += [f"{numbers.in_words(words[word])} {said}" for word, said in _SAID.items() if words.get(word)]
    return " and ".join(parts) if len(parts) == 2 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _lead(entries: Sequence[Entry]) -> tuple[list[tuple[Verdict, Entry, str, str]], int]:
    """The list under the verdict sentence, worst first, and how many are left to the table below."""

    def rank(entry: Entry) -> int:
        return WORST_FIRST.index(entry.verdict.tone if entry.verdict else "")

    ordered = sorted(entries, key=rank)
    if len(ordered) > LONGEST_LEAD:
        ordered = [entry for entry in ordered if rank(entry) < WORST_FIRST.index("held")][:LONGEST_LEAD]
    lead = []
    for entry in ordered:
        verdict = entry.verdict or Verdict("answered", "")
        text = entry.summary or entry.words or entry.question
        why = entry.why if verdict.tone in _TO_MEND else None
        todo = entry.error or (f"{why.text} {why.mend}".strip() if why else "")
        lead.append((verdict, entry, shown(text, 300), todo))
    return lead, len(entries) - len(ordered)


def _notes(result: Result, entries: Sequence[Entry]) -> list[str]:
    """What has to be said under the table of expectations."""
    notes = []
    rows = [row for entry in entries for row in entry.expectations]
    if result.dossier.undecided == "warn" and any(row.word == "undecided" for row in rows):
        notes.append("The dossier lets an undecided expectation pass with a warning; undecided is still not held.")
    if any(row.lenient for row in rows):
        notes.append("An expectation marked “warns only” does not count for the exit code.")
    if result.multiplicity:
        notes.append(shown(result.multiplicity, 2000))
    return notes


def _dates(answers: Iterable[Answer | None]) -> list[str]:
    """The day the answers were made, or the first and the last."""
    moments = sorted(answer.run.made for answer in answers if answer is not None and answer.run.made)
    days = list(dict.fromkeys(shown(numbers.date(moment), 60) for moment in (moments[:1] + moments[-1:])))
    return [f" {numbers.DASH} ".join(days)] if days else []


def _version(answers: Iterable[Answer | None]) -> str:
    versions = {shown(answer.run.version, 40) for answer in answers if answer is not None and answer.run.version}
    return ", ".join(sorted(versions))


def _counted(number: int, noun: str) -> str:
    return f"{numbers.count(number)} {noun}{'' if number == 1 else 's'}"


# As plain data


def data_of_result(result: Result) -> dict[str, Any]:
    """All that the page of a result shows, less when, where and how fast it was made, as plain JSON data."""
    return {
        "title": result.dossier.title,
        "description": result.dossier.description,
        "seed": result.dossier.seed,
        "asks": [
            {
                "name": one.ask.name,
                "question": type(one.ask.question).name,
                "error": one.error,
                "answer": None if one.answer is None else data_of_answer(one.answer),
                "expectations": [
                    {
                        "that": expected.expectation.text,
                        "words": expected.words,
                        "why": expected.why,
                        "severity": expected.severity,
                        "outcome": _plain(asdict(outcome)),
                    }
                    for expected, outcome in zip(one.ask.expect, one.outcomes, strict=True)
                ],
            }
            for one in result.asked
        ],
    }


def data_of_answer(answer: Answer) -> dict[str, Any]:
    """All that the page shows of an answer, less its block ``run``; of a table or figure the digest."""
    return {
        **answer.without_run(),
        "sha256": {
            name: hashlib.sha256(content).hexdigest() for name, content in answer.files().items() if "/" in name
        },
    }


def _plain(value: Any) -> Any:
    """The value with numbers that JSON lacks written as text."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
