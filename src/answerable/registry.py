"""The catalogue of questions: ours by name, other people's through the entry-point group ``answerable.questions``."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from importlib.metadata import EntryPoint, distributions, entry_points
from importlib.resources import files

from answerable import terminal
from answerable.errors import AnswerableError, BadInput, UnknownName, unknown
from answerable.question import RESERVED, Question

GROUP = "answerable.questions"
QUESTIONS = {
    "attention-flow": "answerable.mechanisms.attention_flow.question:AttentionFlow",
    "path-patching": "answerable.mechanisms.path_patching.question:PathPatching",
    "feed-forward-memories": "answerable.mechanisms.feed_forward_memories.question:FeedForwardMemories",
    "activation-patterns": "answerable.explanations.activation_patterns.question:ActivationPatterns",
    "machine-text": "answerable.provenance.machine_text.question:MachineText",
    "additive-reasons": "answerable.explanations.additive_reasons.question:AdditiveReasons",
    "counterfactual-queries": "answerable.explanations.counterfactual_queries.question:CounterfactualQueries",
    "path-effects": "answerable.explanations.path_effects.question:PathEffects",
    "generated-images": "answerable.provenance.generated_images.question:GeneratedImages",
    "security-games": "answerable.guarantees.security_games.question:SecurityGames",
    "model-lineage": "answerable.provenance.model_lineage.question:ModelLineage",
}


def questions() -> list[str]:
    """Every question that can be asked: ours first, then the plug-ins' under their package's name."""
    return [*QUESTIONS, *sorted(_plug_ins())]


def find(name: str) -> type[Question]:
    """The question of that name.

    Raises
    ------
    UnknownName : there is none; names the nearest one
    BadInput : a plug-in that cannot be loaded
    """
    if name in QUESTIONS:
        return _load(QUESTIONS[name])
    plug_in = _plug_ins().get(name)
    if plug_in is None and name in _planned():
        raise UnknownName(
            f"{name} is planned and not built yet", where="questions", mend="answerable questions lists those that are"
        )
    if plug_in is None:
        raise unknown("question", name, questions(), where="questions")
    return _load_plug_in(name, plug_in)


def catalogue() -> list[type[Question]]:
    """Every question that can be loaded; a broken plug-in is told in one line and left out."""
    found = []
    for name in questions():
        try:
            found.append(find(name))
        except AnswerableError as error:
            terminal.warn(str(error))
    return found


def _planned() -> set[str]:
    return {entry["name"] for entry in json.loads((files("answerable") / "questions.json").read_text(encoding="utf-8"))}


@functools.cache
def _plug_ins() -> dict[str, EntryPoint]:
    """Entry points by ``package/name``; a plug-in's name carries its package, so that it can never stand for one of
    ours.
    """
    return {f"{entry.dist.name if entry.dist else 'unknown'}/{entry.name}": entry for entry in _entry_points()}


def _entry_points() -> list[EntryPoint]:
    try:
        return list(entry_points(group=GROUP))
    except Exception:  # one package's list is damaged, and Python reads the lists of all packages together
        found: list[EntryPoint] = []
        for package in distributions():
            try:
                found += package.entry_points.select(group=GROUP)
            except Exception as error:  # whatever stands in that list
                name = package.metadata["Name"]
                terminal.warn(f"plug-ins of {name}: their list cannot be read ({error}); mend or uninstall it")
        return found


@functools.cache
def _load(path: str) -> type[Question]:
    module, _, attribute = path.partition(":")
    question: type[Question] = getattr(importlib.import_module(module), attribute)
    return question


@functools.cache
def _load_plug_in(name: str, entry: EntryPoint) -> type[Question]:
    try:
        question = entry.load()
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise BadInput(
            f"it cannot be loaded ({type(error).__name__}: {error})",
            where=f"plug-in {name}",
            mend="mend or uninstall it",
        ) from error
    if not (isinstance(question, type) and issubclass(question, Question)):
        raise BadInput(
            f"{entry.value} is not a Question", where=f"plug-in {name}", mend="derive it from answerable.Question"
        )
    if (own := getattr(question, "name", "")) != name:
        raise BadInput(f"it calls itself {str(own)[:80]!r}", where=f"plug-in {name}", mend=f"set name = {name!r}")
    problem, mend = _flaw(question)
    if problem:
        raise BadInput(problem, where=f"plug-in {name}", mend=mend)
    return question


def _flaw(question: type[Question]) -> tuple[str, str]:
    """What of a question cannot be shown or asked, and how to mend it; empty for a sound one."""
    if not (question.__doc__ or "").strip():
        return "it has no docstring", "write the question in plain words as its first line"
    if inspect.isabstract(question):
        return "it has no method answer", "write one"
    for name, field in question.model_fields.items():
        if name in RESERVED:
            return f"a field is called {name}, a word of asking itself", "give it another name"
        if not field.description:
            return f"field {name} has no description", "say in one line what it is"
    return "", ""
