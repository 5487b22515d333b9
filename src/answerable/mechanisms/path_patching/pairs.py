"""Pairs of prompts: one that shows a behaviour, and a twin that is as alike as can be and does not.

The templates are those of Zhang and others (2025), appendix; a twin keeps the frame and loses the logic of translation.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from answerable.errors import BadInput, unknown
from answerable.mechanisms.path_patching import words as lists
from answerable.mechanisms.path_patching.checks import whole

if TYPE_CHECKING:
    from answerable.subjects.language_model import LanguageModel

Spans = Mapping[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Wording:
    """A frame with {src}, {tgt} and {w}, its twin, and what follows the answer of an example."""

    positive: str
    negative: str
    close: str = ""


TEMPLATES: dict[str, Wording] = {
    "lines": Wording("{src}: {w} - {tgt}:", "{src}: {w} - Nothing:"),
    "nothing": Wording('{src}: "{w}" - {tgt}: "', '{src}: "{w}" - There is nothing: "', '"'),
    "rock": Wording('Translate "{w}" into {tgt}: "', 'Translate "{w}" into a silent rock: "', '"'),
    "null": Wording('Translate the {src} word "{w}" to {tgt}: "', 'Translate the {src} word "{w}" to Null: "', '"'),
    "nowhere": Wording('From {src}: "{w}" to {tgt}: "', 'From {src}: "{w}" to Nowhere: "', '"'),
    "colour": Wording(
        'Provide the translation of "{w}" from {src} to {tgt}: "',
        'Provide the color of "{w}" from {src} to {tgt}: "',
        '"',
    ),
    "eat": Wording('Q: How do you say "{w}" in {tgt}? A: "', 'Q: How do you eat "{w}" in {tgt}? A: "', '"'),
    "flavor": Wording('Q: What is the {tgt} translation "{w}"? A: "', 'Q: What is the {tgt} flavor "{w}"? A: "', '"'),
    "erased": Wording('Q: What is "{w}" translated into {tgt}? A: "', 'Q: What is "{w}" erased into {tgt}? A: "', '"'),
}
GIFTS = "When {A} and {B} went to the store, {B} gave a drink to"


@dataclass(frozen=True)
class Pair:
    """A prompt and its twin.

    Parameters
    ----------
    positive, negative : texts, or rows of token ids
    answer, foil : the right next word and one that is wrong: text, or a token id; no foil: None
    unit : what is drawn anew in a bootstrap, in most cases the word; pairs that share it are not independent
    spans : by class of token, where it stands in ``positive``: (start, end) in characters, or in tokens for ids
    words : by class, words whose output rows are looked for in what feed-forward layers write
    """

    positive: str | tuple[int, ...]
    negative: str | tuple[int, ...]
    answer: str | int
    foil: str | int | None = None
    unit: str = ""
    spans: Spans = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pairs:
    """Contrast pairs of one behaviour.

    Parameters
    ----------
    pairs : the pairs
    behaviour : what they show, in words
    dropped : pairs that were never made, counted by reason
    """

    pairs: tuple[Pair, ...]
    behaviour: str = "the behaviour"
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def translation(
        cls,
        words: Sequence[tuple[str, str]] | None = None,
        *,
        source: str = "English",
        target: str = "French",
        template: str = "lines",
        shots: int = 4,
        limit: int | None = None,
    ) -> Pairs:
        """Word translation; the twin asks for nothing, and its examples have unrelated answers.

        Replacing the last word of the frame alone is not enough: examples leak, and a model goes on translating.

        Parameters
        ----------
        words : (word, translation) pairs; the built-in list by default
        source, target : names of the languages as they stand in the prompt
        template : a key of ``TEMPLATES``
        shots : examples before the question; those beyond the built-in languages are taken from ``words``
        limit : how many pairs at most, the first ones

        Raises
        ------
        BadInput, UnknownName : a language or template that is not there, or fewer words than examples
        """
        if template not in TEMPLATES:
            raise unknown("template", template, TEMPLATES, where="template")
        frame = TEMPLATES[template]
        whole(shots, "shots", 0, len(lists.SHOTS))
        if source == target:
            raise BadInput(f"source and target are both {source}", where="target", mend="choose another language")
        given = _two_texts(words) if words is not None else _built_in(source, target)
        examples, given = _examples(given, source, target, shots)
        unlike = [pair for pair in given if pair[0].casefold() != pair[1].casefold()]
        first = dict(reversed(unlike))
        unique = [(word, first[word]) for word in dict.fromkeys(word for word, _ in unlike)]
        dropped = {"same in both languages": len(given) - len(unlike), "word repeated": len(unlike) - len(unique)}
        made = [_translated(frame, word, answer, examples, source, target) for word, answer in unique[: _limit(limit)]]
        return cls(tuple(made), f"{source} to {target}", {why: n for why, n in dropped.items() if n})

    @classmethod
    def names(cls, names: Sequence[str] = lists.NAMES, *, template: str = GIFTS, limit: int | None = 24) -> Pairs:
        """Naming the other person: "When Mary and John went to the store, John gave a drink to".

        The twin has three other names, so that none is the one to be named.

        Parameters
        ----------
        names : at least 5 different names
        template : a text with {A}, the answer, and {B}, the foil, which stands twice
        limit : how many ordered pairs of names, the first ones; None for all

        Raises
        ------
        BadInput : too few names, or a template without {A} and two {B}
        """
        if len(set(names)) < 5 or len(set(names)) < len(names):
            raise BadInput(f"{len(set(names))} different names", where="names", mend="give at least 5, none twice")
        if template.count("{A}") != 1 or template.count("{B}") != 2:
            raise BadInput("the template needs {A} once and {B} twice", where="template", mend=f"write it like {GIFTS}")
        if not all(isinstance(name, str) and name.strip() for name in names):
            raise BadInput("a name is no text, or empty", where="names", mend="give names as texts")
        made = []
        for a, b in itertools.islice(itertools.permutations(names, 2), _limit(limit)):
            others = [name for name in names if name not in (a, b)][:3]
            twin = template.replace("{A}", others[0]).replace("{B}", others[1], 1).replace("{B}", others[2])
            text, spans = _filled(template, {"A": a, "B": b})
            made.append(
                Pair(
                    text,
                    twin,
                    a,
                    b,
                    unit=f"{a}, {b}",
                    spans={"source": spans["A"], "indicator": spans["B"]},
                    words={"answer": (a,), "foil": (b,)},
                )
            )
        return cls(tuple(made), "naming the other person")

    @classmethod
    def from_table(cls, table: Any, *, behaviour: str = "the behaviour of the table") -> Pairs:
        """Pairs from a table with the columns positive, negative, answer and, where wanted, foil and unit.

        Parameters
        ----------
        table : any dataframe, or the address of a CSV or Parquet file

        Raises
        ------
        BadInput : a column is missing, or a row lacks a text
        """
        from answerable.subjects import read_table

        frame = read_table(table)
        for name in ("positive", "negative", "answer"):
            if name not in frame.columns:
                raise BadInput(
                    f"there is no column {name!r}",
                    where="table",
                    mend="it needs positive, negative and answer; foil and unit if wanted",
                )
        made = []
        for number, given in enumerate(frame.iter_rows(named=True), 1):
            row = {name: _text_of(value) for name, value in given.items()}
            for name in ("positive", "negative", "answer"):
                if not isinstance(row[name], str) or not row[name].strip():
                    raise BadInput(
                        f"{name} is {row[name]!r:.60}",
                        where=f"table, row {number}",
                        mend="give a text or a whole number",
                    )
            foil = row.get("foil")
            if foil is not None and not (isinstance(foil, str) and (foil.strip() or not foil)):
                raise BadInput(
                    f"foil is {foil!r:.60}", where=f"table, row {number}", mend="give a text, or leave it empty"
                )
            if foil == row["answer"]:
                raise BadInput(
                    f"foil and answer are both {foil!r:.60}",
                    where=f"table, row {number}",
                    mend="give a wrong word as foil",
                )
            unit = row.get("unit")
            made.append(
                Pair(
                    row["positive"],
                    row["negative"],
                    row["answer"],
                    foil or None,
                    unit=str(number if unit is None else unit),
                    spans=_mentions(row["positive"], row["answer"].strip()),
                    words={"answer": (row["answer"],), **({"foil": (foil,)} if foil else {})},
                )
            )
        return cls(tuple(made), behaviour)

    @classmethod
    def from_ids(
        cls,
        positive: Any,
        negative: Any,
        answers: Sequence[int],
        foils: Sequence[int] | None = None,
        *,
        positive_mask: Any = None,
        negative_mask: Any = None,
        pad: int | None = None,
        units: Sequence[str] | None = None,
        behaviour: str = "the behaviour",
    ) -> Pairs:
        """Pairs from token ids, padded on either side if a mask says where.

        Parameters
        ----------
        positive, negative : rows of token ids
        answers, foils : a token id each
        positive_mask, negative_mask : 1 for a token, 0 for padding
        pad : the padding token; rows that end in it without a mask are refused

        Raises
        ------
        BadInput : lengths that differ, or rows that seem padded without a mask
        """
        here = unpadded(positive, positive_mask, pad=pad, where="positive")
        there = unpadded(negative, negative_mask, pad=pad, where="negative")
        wrong = list(foils) if foils is not None else [None] * len(answers)
        named = list(units) if units is not None else [str(number) for number in range(1, len(here) + 1)]
        if not len(here) == len(there) == len(answers) == len(wrong) == len(named):
            raise BadInput(
                f"{len(here)} prompts, {len(there)} twins, {len(answers)} answers, {len(wrong)} foils, "
                f"{len(named)} units",
                where="pairs",
                mend="give one of each",
            )
        return cls(
            tuple(
                Pair(a, b, int(answer), None if foil is None else int(foil), unit=str(unit))
                for a, b, answer, foil, unit in zip(here, there, answers, wrong, named, strict=True)
            ),
            behaviour,
        )

    def wrapped(self, around: str) -> Pairs:
        """The same pairs, each prompt put into a text at {prompt}.

        Raises
        ------
        BadInput : {prompt} does not stand in it exactly once, or prompts are token ids
        """
        if around.count("{prompt}") != 1:
            raise BadInput("{prompt} must stand in it once", where="wrap", mend='write for example "Q: {prompt}"')
        before, after = around.split("{prompt}")
        made = []
        for pair in self.pairs:
            if not (isinstance(pair.positive, str) and isinstance(pair.negative, str)):
                raise BadInput("prompts are token ids", where="wrap", mend="give texts")
            spans = {
                name: tuple((start + len(before), end + len(before)) for start, end in places)
                for name, places in pair.spans.items()
            }
            made.append(
                Pair(
                    before + pair.positive + after,
                    before + pair.negative + after,
                    pair.answer,
                    pair.foil,
                    pair.unit,
                    spans,
                    pair.words,
                )
            )
        return Pairs(tuple(made), self.behaviour, self.dropped)


def commonest(lm: LanguageModel, words: Sequence[tuple[str, str]], most: int = 2000) -> list[tuple[str, str]]:
    """Of a dictionary's words those that are one token, as their translations are, the most common ones first.

    A tokenizer gives its smaller numbers to what is frequent in the texts that it was made from.

    Parameters
    ----------
    lm : a model with its tokenizer
    words : (word, translation) pairs
    most : how many at most
    """
    here, there = ([_only_token(lm, " " + word) for word in column] for column in zip(*words))
    places = [i for i, (a, b) in enumerate(zip(here, there)) if a is not None and b is not None]
    return [words[i] for i in sorted(places, key=lambda i: (here[i], i))[:most]]


def _only_token(lm: LanguageModel, text: str) -> int | None:
    found = lm.tokenizer(text, add_special_tokens=False)["input_ids"]
    return found[0] if len(found) == 1 else None


def unpadded(rows: Any, mask: Any, *, pad: int | None = None, where: str = "prompts") -> list[tuple[int, ...]]:
    """Rows of token ids without their padding, on whichever side it stands.

    Raises
    ------
    BadInput : rows that end or begin in the padding token without a mask; a mask with holes or of another shape
    """
    listed = [_ids(row, f"{where}, row {number}") for number, row in enumerate(rows, 1)]
    if mask is None:
        for number, row in enumerate(listed, 1):
            if pad is not None and row and pad in (row[-1], row[0]) and len(listed) > 1:
                raise BadInput(
                    f"it begins or ends in the padding token {pad}",
                    where=f"{where}, row {number}",
                    mend="give the attention mask, or rows without padding",
                )
        return [tuple(row) for row in listed]
    kept = []
    for number, (row, marks) in enumerate(zip(listed, mask, strict=False), 1):
        signs = [int(mark) for mark in marks]
        inside = [i for i, sign in enumerate(signs) if sign]
        if len(signs) != len(row) or not inside or inside != list(range(inside[0], inside[-1] + 1)):
            raise BadInput("the mask does not mark one run of tokens", where=f"{where}, row {number}", mend="mend it")
        kept.append(tuple(row[i] for i in inside))
    if len(kept) != len(listed):
        raise BadInput(f"{len(kept)} mask rows for {len(listed)} prompts", where=where, mend="give one for each")
    return kept


def _text_of(cell: Any) -> Any:
    """A whole number as the text that it is in a prompt: a column of them alone is read as numbers."""
    return str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell


def _ids(row: Any, where: str) -> list[int]:
    try:
        return [operator.index(i.item() if hasattr(i, "item") else i) for i in row]
    except TypeError:
        raise BadInput(f"it is {row!r:.60}", where=where, mend="give token ids, whole numbers") from None


def _limit(limit: int | None) -> int | None:
    return limit if limit is None else whole(limit, "limit", 0)


def _two_texts(words: Any) -> list[tuple[str, str]]:
    given = list(words)
    for number, pair in enumerate(given, 1):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(word, str) for word in pair):
            raise BadInput(
                f"it is {pair!r:.60}", where=f"words, entry {number}", mend="give (word, translation), two texts"
            )
    return [(word, answer) for word, answer in given]


def _built_in(source: str, target: str) -> list[tuple[str, str]]:
    for name in (source, target):
        if lists.language(name) is None:
            raise BadInput(
                f"there are no built-in words in {name[:40]!r}",
                where="translation",
                mend=f"choose from {', '.join(lists.LANGUAGES)}, or give a word list",
            )
    return _columns(lists.WORDS, source, target)


def _columns(rows: Sequence[tuple[str, ...]], source: str, target: str) -> list[tuple[str, str]]:
    here, there = lists.LANGUAGES.index(source), lists.LANGUAGES.index(target)
    return [(row[here], row[there]) for row in rows]


def _examples(
    given: list[tuple[str, str]], source: str, target: str, shots: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The examples, and the words that are left."""
    if None not in (lists.language(source), lists.language(target)):
        shown = _columns(lists.SHOTS[:shots], source, target)
        seen = {word for word, _ in shown}
        return shown, [pair for pair in given if pair[0] not in seen]
    if len(given) <= shots:
        raise BadInput(f"{len(given)} words for {shots} examples", where="words", mend="give more words")
    return given[:shots], given[shots:]


def _translated(
    frame: Wording, word: str, answer: str, examples: Sequence[tuple[str, str]], source: str, target: str
) -> Pair:
    space = "" if frame.close else " "

    def shown(kind: str, example: str, reply: str) -> str:
        text, _ = _filled(kind, {"src": source, "tgt": target, "w": example})
        return f"{text}{space}{reply}{frame.close}\n"

    before = "".join(shown(frame.positive, example, reply) for example, reply in examples)
    twin_before = "".join(
        shown(frame.negative, example, reply) for (example, _), reply in zip(examples, lists.unrelated(source, target))
    )
    asked, spans = _filled(frame.positive, {"src": source, "tgt": target, "w": word})
    twin, _ = _filled(frame.negative, {"src": source, "tgt": target, "w": word})
    moved = {
        name: tuple((start + len(before), end + len(before)) for start, end in places) for name, places in spans.items()
    }
    indicator = (*moved.get("src", ()), *moved.get("tgt", ()), *_signs(asked, ":-?", len(before)))
    return Pair(
        before + asked,
        twin_before + twin,
        answer,
        unit=word,
        spans={"source": moved["w"], "indicator": indicator, "example": ((0, len(before)),) if before else ()},
        words={"source": (word,), "indicator": (source, target), "answer": (answer,)},
    )


def _filled(template: str, values: Mapping[str, str]) -> tuple[str, dict[str, tuple[tuple[int, int], ...]]]:
    """A template with its {names} replaced, and where each value stands."""
    text, spans, rest = "", {name: [] for name in values}, template  # type: ignore[var-annotated]
    while rest:
        places = [(rest.find("{" + name + "}"), name) for name in values if "{" + name + "}" in rest]
        if not places:
            break
        at, name = min(places)
        text += rest[:at]
        spans[name].append((len(text), len(text) + len(values[name])))
        text += values[name]
        rest = rest[at + len(name) + 2 :]
    return text + rest, {name: tuple(places) for name, places in spans.items()}


def _signs(text: str, signs: str, before: int) -> list[tuple[int, int]]:
    return [(before + i, before + i + 1) for i, sign in enumerate(text) if sign in signs]


def _mentions(text: str, word: str) -> dict[str, tuple[tuple[int, int], ...]]:
    found, start = [], text.find(word)
    while start >= 0:
        found.append((start, start + len(word)))
        start = text.find(word, start + 1)
    return {"source": tuple(found)}
