"""The two forward passes of every pair, and which pairs can be used at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from answerable.errors import AnswerableError, BadInput
from answerable.mechanisms.path_patching.pairs import Pair, Pairs
from answerable.mechanisms.path_patching.readout import most_likely
from answerable.subjects.language_model import LanguageModel, load, tokenise
from answerable.subjects.language_model.last_token import LastToken, record_last
from answerable.subjects.language_model.pieces import final_state

LEAST_PAIRS = 10
MOST_LEAKY = 0.10  # share of twins that the model may still answer right


@dataclass(frozen=True, eq=False)
class Trace:
    """What a model has at the last token of each prompt and of its twin.

    Parameters
    ----------
    lm : the model
    pairs : the pairs that are used: answered right by the prompt, answer one token
    answers, foils : token ids; foils None where pairs have none
    positive, negative : recordings of prompts and twins
    right_positive, right_negative : (right, asked), of prompts before the wrong ones were dropped, of twins after
    dropped : pairs left out, counted by reason
    behaviour : in words
    notes : what was done to the model or the pairs, for a reader
    asked : every pair whose answer is one token, answered right or not, with that token
    """

    lm: LanguageModel
    pairs: tuple[Pair, ...]
    answers: tuple[int, ...]
    foils: tuple[int, ...] | None
    positive: LastToken
    negative: LastToken
    right_positive: tuple[int, int]
    right_negative: tuple[int, int]
    dropped: dict[str, int] = field(default_factory=dict)
    behaviour: str = ""
    notes: tuple[str, ...] = ()
    asked: tuple[tuple[Pair, int], ...] = ()

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def units(self) -> list[str]:
        """What each pair is a case of: pairs that share a unit are drawn together."""
        return [pair.unit for pair in self.pairs]

    def select(self, rows: Sequence[int]) -> Trace:
        """The pairs ``rows``, in that order."""
        chosen = list(rows)
        return replace(
            self,
            pairs=tuple(self.pairs[i] for i in chosen),
            answers=tuple(self.answers[i] for i in chosen),
            foils=None if self.foils is None else tuple(self.foils[i] for i in chosen),
            positive=self.positive.select(chosen),
            negative=self.negative.select(chosen),
        )

    def swapped(self, rows: Sequence[bool]) -> Trace:
        """Prompt and twin change places where ``rows`` is true: a world in which the labels say nothing."""
        import torch

        places = torch.as_tensor(list(rows), device=self.positive.stream.device)

        def mixed(one: Any, other: Any) -> Any:
            shape = (1, -1) + (1,) * (one.ndim - 2)
            return torch.where(places.view(shape), other, one)

        sites = ("stream", "heads", "attention", "feed_forward")
        both = [
            replace(here, prefixes=[], **{site: mixed(getattr(here, site), getattr(there, site)) for site in sites})
            for here, there in ((self.positive, self.negative), (self.negative, self.positive))
        ]
        return replace(self, positive=both[0], negative=both[1])


def trace(
    model: Any,
    tokenizer: Any,
    pairs: Pairs,
    *,
    allow_leaky: bool = False,
    keep_wrong: bool = False,
    least: int = LEAST_PAIRS,
    device: str = "cpu",
    run: Any = None,
) -> Trace:
    """Read every prompt and its twin once, and keep what is at their last tokens.

    Parameters
    ----------
    model : a loaded ``LanguageModel``, a transformers model, or an address
    tokenizer : its tokenizer; None with a ``LanguageModel``, an address, or pairs of token ids
    pairs : contrast pairs
    allow_leaky : go on where the model still answers more than a tenth of the twins
    keep_wrong : keep prompts that are answered wrong too, as for a model of random weights
    least : fewest pairs that must be left
    device, run : as `load` takes them, for an address

    Raises
    ------
    BadInput : the model shows the behaviour in no pair, too few pairs are left, or twins leak
    """
    if not isinstance(pairs, Pairs):
        raise BadInput(f"it is of type {type(pairs).__name__}", where="pairs", mend="give Pairs, as Pairs.names()")
    lm = _loaded(model, tokenizer, device, run)
    lm, notes = _in_full_precision(lm)
    dropped: Counter[str] = Counter(pairs.dropped)
    asked, answers, foils = _single_tokens(lm, pairs, dropped)
    if not asked:
        raise BadInput(
            f"no pair has an answer of one token ({_told(dropped)})", where=pairs.behaviour, mend="choose other words"
        )
    positive = record_last(lm, [pair.positive for pair in asked])
    right = _right(lm, positive, answers)
    kept = [i for i, one in enumerate(right) if one or keep_wrong]
    if not kept:
        raise BadInput(
            f"this model does not show the behaviour: none of {len(asked)} prompts is answered right",
            where=f"{lm.name}, {pairs.behaviour}",
            mend="choose another model, other words, or more examples in the prompt",
        )
    if len(asked) > len(kept):
        dropped["the prompt is answered wrong"] += len(asked) - len(kept)
    if len(kept) < least:
        raise BadInput(
            f"{len(kept)} {'pair is' if len(kept) == 1 else 'pairs are'} left ({_told(dropped)}), fewer than {least}",
            where=f"{lm.name}, {pairs.behaviour}",
            mend="give more pairs",
        )
    chosen = [asked[i] for i in kept]
    if len(chosen) > 1 and len({pair.unit for pair in chosen}) < 2:
        raise BadInput(
            f"all {len(chosen)} pairs have the unit {chosen[0].unit!r:.60}",
            where=f"{lm.name}, {pairs.behaviour}",
            mend="units are what is drawn anew: give one for each word, or none",
        )
    with_answers = tuple(zip(asked, answers, strict=True))
    answers = [answers[i] for i in kept]
    negative = record_last(lm, [pair.negative for pair in chosen], prefixes=False)
    leaks = sum(_right(lm, negative, answers))
    if leaks > MOST_LEAKY * len(chosen) and not allow_leaky:
        raise BadInput(
            f"the model still answers {leaks} of {len(chosen)} twins ({leaks / len(chosen):.0%}), "
            f"more than {MOST_LEAKY:.0%}",
            where=f"{lm.name}, {pairs.behaviour}",
            mend="change the twins' examples too, or set allow_leaky",
        )
    return Trace(
        lm,
        tuple(chosen),
        tuple(answers),
        None if foils is None else tuple(foils[i] for i in kept),
        positive.select(kept),
        negative,
        (sum(right), len(asked)),
        (leaks, len(chosen)),
        dict(dropped),
        pairs.behaviour,
        notes,
        with_answers,
    )


def answer_token(lm: LanguageModel, prompt: str, word: str) -> int | None:
    """The one token that ``word`` is after ``prompt``, with a blank between or without; None where there is none."""
    before = tokenise(lm, prompt).ids
    bare = word.strip()
    blanks = ("", " ") if not prompt or prompt[-1] in " \t\n\"'(«“" else (" ", "")
    for blank in blanks:
        after = tokenise(lm, prompt + blank + bare).ids
        # A closing token of the tokenizer's own stands behind both texts, or behind neither.
        if len(after) == len(before) + 1 and after[: len(before)] == before:
            return after[-1]
    return None


def _loaded(model: Any, tokenizer: Any, device: str, run: Any) -> LanguageModel:
    if isinstance(model, (str, LanguageModel)) or hasattr(model, "__fspath__"):
        return load(model, device=device, run=run)
    return load((model, tokenizer))


def _in_full_precision(lm: LanguageModel) -> tuple[LanguageModel, tuple[str, ...]]:
    """A copy in float32 of a model in half precision: rounding would hide effects of one per cent."""
    import copy

    import torch

    kinds = {parameter.dtype for parameter in lm.model.parameters()}
    if kinds <= {torch.float32, torch.float64}:
        return lm, _said_of_files(lm.stored)
    if not all(kind.is_floating_point for kind in kinds):
        raise BadInput("its weights are quantised", where=lm.name, mend="load the model in float32")
    named = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
    return replace(lm, model=copy.deepcopy(lm.model).float()), (
        f"The model is held in {named}; a copy in float32 was used.",
    )


def _said_of_files(stored: str) -> tuple[str, ...]:
    return (f"The model is stored in {stored}; it was read as float32.",) if stored in ("float16", "bfloat16") else ()


def _single_tokens(
    lm: LanguageModel, pairs: Pairs, dropped: Counter[str]
) -> tuple[list[Pair], list[int], list[int] | None]:
    with_foil = [pair.foil is not None for pair in pairs.pairs]
    if any(with_foil) and not all(with_foil):
        raise BadInput(
            "it has no foil, others have one", where=f"pair {with_foil.index(False) + 1}", mend="give all or none"
        )
    chosen, answers, foils = [], [], []
    seen: set[Any] = set()
    for number, pair in enumerate(pairs.pairs, 1):
        prompt, twin = _read(lm, pair, number)
        answer = _token(lm, pair, pair.answer, number)
        foil = None if pair.foil is None else _token(lm, pair, pair.foil, number)
        same = (prompt, twin, answer, foil)
        if same in seen:
            dropped["the same pair again"] += 1
        elif answer is None:
            dropped["the answer is not one token"] += 1
        elif pair.foil is not None and foil is None:
            dropped["the foil is not one token"] += 1
        elif foil == answer:
            raise BadInput(
                "foil and answer are the same token", where=f"pair {number}", mend="give a wrong word as foil"
            )
        else:
            chosen.append(pair)
            answers.append(answer)
            foils.append(foil)
        seen.add(same)
    return chosen, answers, [foil for foil in foils if foil is not None] if any(with_foil) else None


def _read(lm: LanguageModel, pair: Pair, number: int) -> list[tuple[int, ...]]:
    """Token ids of a prompt and of its twin."""
    found = []
    for name, text in (("prompt", pair.positive), ("twin", pair.negative)):
        where = f"pair {number}, its {name}"
        try:
            found.append(tuple(tokenise(lm, text).ids))
        except AnswerableError as error:
            raise type(error)(error.problem, where=where, mend=error.mend) from None
        if not isinstance(text, str):
            _check_padding(lm, found[-1], where)
    return found


def _check_padding(lm: LanguageModel, ids: tuple[int, ...], where: str) -> None:
    """Refuse ids with padding: it would be read as the last token, or as text. A text may begin with it as its mark."""
    config = lm.model.config
    pad, begin = (getattr(config, name, None) for name in ("pad_token_id", "bos_token_id"))
    if pad is not None and (ids[-1] == pad or ids[0] == pad != begin):
        raise BadInput(
            f"it {'ends' if ids[-1] == pad else 'begins'} in the model's padding token {pad}",
            where=where,
            mend="give Pairs.from_ids the attention masks, or rows without padding",
        )


def _token(lm: LanguageModel, pair: Pair, word: str | int, number: int) -> int | None:
    if isinstance(word, int):
        words = lm.model.config.vocab_size
        if not 0 <= word < words:
            raise BadInput(
                f"token {word} is not from 0 to {words - 1}", where=f"pair {number}", mend="use this model's tokenizer"
            )
        return word
    if not isinstance(pair.positive, str):
        raise BadInput("prompts are token ids and the answer is text", where="pairs", mend="give the answer's token id")
    return answer_token(lm, pair.positive, word)


def _right(lm: LanguageModel, recorded: LastToken, answers: Sequence[int]) -> list[bool]:
    import torch

    with torch.no_grad():
        said = most_likely(lm, final_state(lm, recorded.stream[-1])).tolist()
    return [one == answer for one, answer in zip(said, answers, strict=True)]


def _told(dropped: Counter[str]) -> str:
    return ", ".join(f"{count}: {reason}" for reason, count in dropped.items()) or "none was dropped"
