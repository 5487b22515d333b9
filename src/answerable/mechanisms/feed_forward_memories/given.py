"""What one ask gives: a model's memories or planted ones, the text that is read, labelled texts, a judge's lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from answerable.errors import BadInput
from answerable.subjects import read_corpus
from answerable.subjects.language_model import load

from . import judging
from .api import FFMemories
from .model_source import ModelSource, Window
from .planted import PlantedSource
from .scores import Labelled, concepts_of

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import FeedForwardMemories


@dataclass(frozen=True, eq=False)
class Given:
    """What is questioned: memories, the windows that are read, and labelled texts with theirs.

    Parameters
    ----------
    layer : whose memories are compared, from 0
    answers : another judge's, line by line; None where there is none
    precision : what becomes of weights that are no float32, as a sentence; empty where they are
    """

    memories: FFMemories
    windows: list[Window]
    layer: int
    labelled: Labelled | None
    labelled_windows: list[Window]
    answers: list[judging.Line] | None
    precision: str = ""


def read(question: FeedForwardMemories, run: Run) -> Given:
    """Everything that can be refused before a model runs is refused here."""
    answers = None if question.judge is None else judging.lines_of(question.judge)
    if question.replica is not None:
        given = _planted(question, answers, run)
    else:
        if answers is not None and question.concepts is None:
            where = f"{question.name}, field judge"
            raise BadInput("there are no games to answer", where=where, mend="give concepts")
        given = _of_model(question, answers, run)
    count = len(given.memories.weights(given.layer).values)
    if question.k > count:
        what = f"k is {question.k}, layer {given.layer} has {count} memories"
        raise BadInput(what, where=f"{question.name}, field k", mend=f"choose from 1 to {count}")
    wrong = next((number for number in question.neurons or () if not 0 <= number < count), None)
    if wrong is not None:
        where = f"{question.name}, field neurons"
        raise BadInput(f"there is no memory {wrong}", where=where, mend=f"choose from 0 to {count - 1}")
    return given


def _planted(question: FeedForwardMemories, answers: list[judging.Line] | None, run: Run) -> Given:
    if question.layer:
        where = f"{question.name}, field layer"
        raise BadInput(f"the replica has no layer {question.layer}", where=where, mend="choose 0")
    source = PlantedSource(run.rng("planted"))
    memories = FFMemories(source, question.layers)
    return Given(memories, source.windows, 0, source.labelled, source.windows, answers)


def _of_model(question: FeedForwardMemories, answers: list[judging.Line] | None, run: Run) -> Given:
    texts = [question.text] if isinstance(question.text, str) else question.text
    if texts is None:
        texts = read_corpus(question.corpus if question.corpus is not None else "python:topics", label="").texts
    labelled = _labelled(question)
    lm = load(question.model, run=run, device=run.device, attention="sdpa")
    source = ModelSource(lm, of=question.of)
    layer = len(source.layers) // 2 if question.layer is None else question.layer
    if layer not in source.layers:
        mend = f"choose from 0 to {source.layers[-1]}"
        raise BadInput(f"there is no layer {layer}", where=f"{question.name}, field layer", mend=mend)
    layers = source.layers if question.layers is None else sorted({*question.layers, layer})
    memories = FFMemories(source, layers)
    windows = source.cut(texts, window=question.window, most=question.windows)
    beginnings = [] if labelled is None else source.beginnings(labelled.texts, question.most_tokens)
    if question.absorption:
        memories.letter_words(run.rng)  # refuses a tokenizer without them
    return Given(memories, windows, layer, labelled, beginnings, answers, source.precision)


def _labelled(question: FeedForwardMemories) -> Labelled | None:
    """Labelled texts, evenly spaced over the file."""
    if question.concepts is None:
        return None
    read: dict[str, Any] = {name: read_corpus(question.concepts, label="", kind=name) for name in question.attributes}
    texts = next(iter(read.values())).texts
    chosen = np.linspace(0, len(texts) - 1, min(len(texts), question.most_texts)).round().astype(int)
    empty = next((int(i) for i in chosen if not texts[i].strip()), None)
    if empty is not None:
        raise BadInput("the text is empty", where=f"concepts, row {empty + 1}", mend="leave empty texts out")
    labelled = Labelled(
        [texts[i] for i in chosen], {name: [found.kinds[i] for i in chosen] for name, found in read.items()}
    )
    concepts_of(labelled)  # refuses too few
    return labelled
