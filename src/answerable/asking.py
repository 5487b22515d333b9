"""Ask a question: check it, look into the store, let it answer, record where the answer came from, store it."""

from __future__ import annotations

import re
import resource
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from answerable import engines, keys, places, registry, subjects
from answerable.answer import Answer, Provenance, RunRecord, with_record
from answerable.errors import AnswerableError, BadInput
from answerable.question import Question, is_text
from answerable.run import Run, all_cores, pinned_threads
from answerable.secrets import redacted
from answerable.store import Store

MOST_THREADS = 1024  # of one numerical library; more than any machine has cores, and what their C interfaces hold
LARGEST_SEED = 2**63 - 1
DEVICE = re.compile(r"(cpu|mps|(cuda|xpu)(:\d{1,3})?)")


@dataclass(frozen=True)
class Settings:
    """How to ask; nothing here but ``seed``, ``threads`` and ``device`` can change an answer.

    Parameters
    ----------
    seed : seed of all chance
    store : where answers are kept; None keeps nothing
    fresh : ask again even what is in the store
    engine : "local", "ray" or "ray://HOST:PORT"
    workers : processes at most; None for all cores
    threads : threads of each numerical library
    device : where tensors are put, as torch names it
    """

    seed: int | None = None
    store: Store | None = None
    fresh: bool = False
    engine: str = "local"
    workers: int | None = None
    threads: int = 1
    device: str = "cpu"

    def __post_init__(self) -> None:
        engines.check(self.engine)
        for name, least in (("seed", 0), ("workers", 1), ("threads", 1)):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < least):
                raise BadInput(f"it is {number!r}", where=name, mend=f"give a whole number, at least {least}")
        for name, most in (("seed", LARGEST_SEED), ("threads", MOST_THREADS)):
            if (getattr(self, name) or 0) > most:
                raise BadInput(f"it is {getattr(self, name)}", where=name, mend=f"give at most {most}")
        if not DEVICE.fullmatch(self.device):
            raise BadInput(f"it is {self.device[:40]!r}", where="device", mend="say cpu, cuda, cuda:1, mps or xpu")


def ask(
    question: str,
    *,
    seed: int | None = None,
    store: str | Path | bool = True,
    fresh: bool = False,
    engine: str = "local",
    workers: int | None = None,
    threads: int = 1,
    device: str = "cpu",
    **fields: Any,
) -> Answer:
    """Ask a question and get its answer; what was asked before, of the same content, comes from the store.

    Parameters
    ----------
    question : its name; ``answerable.questions()`` lists them
    seed : seed of all chance in the answer; questions that depend on chance refuse to run without one
    store : where answers are kept: a folder or fsspec address; True for the user's own, False to keep nothing
    fresh : ask again even what is in the store
    engine : "local" (default), "ray" or "ray://HOST:PORT"
    workers : processes at most, all cores by default; the answer never depends on it
    threads : threads of each numerical library, 1 by default; part of the answer's key
    device : where tensors are put, "cpu" by default
    fields : the question's own fields; a subject is an address or a live object, ``@FILE`` for a text reads it from
        a file

    Returns
    -------
    Answer

    Raises
    ------
    UnknownName : no such question or field; names the nearest one
    BadInput : a value, file or subject the question cannot work with
    """
    kept = None if store is False else Store(places.store() if store is True else store)
    return answer_to(prepared(question, fields), Settings(seed, kept, fresh, engine, workers, threads, device))


def prepared(question: str, fields: Mapping[str, Any], *, folder: Path | None = None) -> Question:
    """The question with its fields checked, texts read from their files, and relative paths taken from ``folder``."""
    kind = registry.find(question)
    given = dict(fields)
    for name, field in kind.model_fields.items():
        value = given.get(name)
        if is_text(field) and value is not None:
            given[name] = _texts(value, folder, where=f"{question}, field {name}")
    for name in kind.subject_fields():
        value = given.get(name)
        if folder is not None and isinstance(value, str) and "://" not in value and _stands(folder / value):
            given[name] = str(folder / value)
    return kind.asked(given)


def _stands(path: Path) -> bool:
    """Whether there is something at a path; what is too long for one is a subject in words."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def answer_to(question: Question, settings: Settings) -> Answer:
    """The answer to a checked question: from the store, or computed and stored."""
    if question.chance and settings.seed is None:
        raise BadInput(
            "its answer depends on chance and no seed is set", where=question.name, mend="set seed, for example 0"
        )
    if not question.chance:  # the same answer whatever the seed, so that it is kept once
        settings = replace(settings, seed=None)
    provenance = keys.provenance_of(question, seed=settings.seed, threads=settings.threads, device=settings.device)
    store = settings.store if provenance is not None else None
    if store is not None and provenance is not None and not settings.fresh and (kept := store.get(provenance.key)):
        store.serve(kept)
        return replace(kept, from_store=True)
    return _computed(question, settings, store, provenance)


def _computed(question: Question, settings: Settings, store: Store | None, provenance: Provenance | None) -> Answer:
    key = provenance.key if provenance else ""
    workers = settings.workers or all_cores()
    checkpoints = store.checkpoints(key) if store else None
    run = Run(settings.seed, workers, settings.threads, settings.engine, settings.device, checkpoints)
    if store:
        store.begin(key, question.name, settings.seed)
    made, started = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    try:
        with pinned_threads(settings.threads):
            given = _given(question, run)
    except Exception as error:
        if store:
            store.fail(key, question.name, settings.seed, f"{type(error).__name__}: {error}")
        raise
    record = RunRecord(
        made=made,
        seconds=round(time.perf_counter() - started + run.spent, 3),
        peak_mb=round(_peak_mb(), 1),
        engine=settings.engine,
        workers=workers,
        addresses={
            name: redacted(_address(getattr(question, name)))
            for name in question.subject_fields()
            if getattr(question, name) is not None
        },
        command=redacted(command(question, settings)),
        version=version("answerable"),
    )
    answer = with_record(given, provenance or _unkeyed(question, settings), record)
    if store:
        store.put(answer)
    return answer


def _given(question: Question, run: Run) -> Answer:
    """What the question answers; other people's code may end the process, or give something else."""
    try:
        given = question.answer(run)
    except SystemExit as error:
        raise BadInput(
            f"its code asked to end the process ({error.code})", where=question.name, mend="mend the question"
        ) from error
    if not isinstance(given, Answer):
        raise BadInput(
            f"it gave {type(given).__name__}, not an answer", where=question.name, mend="return answerable.Answer"
        )
    return given


def again(saved: Answer) -> Question:
    """The question of a saved answer, with its subjects at the places they had then.

    Raises
    ------
    BadInput : a subject has no place any more, or is not the one that was asked
    """
    provenance = saved.provenance
    fields = dict(provenance.parameters)
    for name, parameter in fields.items():
        if not (isinstance(parameter, dict) and "subject" in parameter):
            continue
        where = f"{saved.question}, field {name}"
        address = fields[name] = saved.run.addresses.get(name, "")
        if not address or address.startswith("<"):
            raise BadInput(
                "it was a live object, which is gone", where=where, mend="ask in Python, with the object at hand"
            )
        if subjects.digest(parameter["subject"], address) != parameter.get("digest"):
            raise BadInput(
                f"{address} is not the one that was asked", where=where, mend="put back the one with that digest"
            )
    return registry.find(saved.question).asked(fields)


def command(question: Question, settings: Settings) -> str:
    """The command that asks the same again from the same places."""
    words = ["answerable", "ask", question.name]
    for name, field in type(question).model_fields.items():
        value = getattr(question, name)
        if name in question.subject_fields():
            value = None if value is None else _address(value)
        if value is None or (not field.is_required() and value == field.default):
            continue
        for entry in value if isinstance(value, (list, tuple)) else [value]:
            flag = f"--{name.replace('_', '-')}"
            if isinstance(entry, bool):
                words.append(flag if entry else f"--no-{flag[2:]}")
            else:
                words += [flag, _written(str(entry)) if is_text(field) else str(entry)]
    words += ["--seed", str(settings.seed)] if settings.seed is not None else []
    words += ["--threads", str(settings.threads)] if settings.threads != 1 else []
    return shlex.join(words)


def _unkeyed(question: Question, settings: Settings) -> Provenance:
    """The record of an answer about a live object that has no digest: it is given, but it cannot be stored or served
    again.
    """
    parameters = question.model_dump(mode="json", exclude=set(question.subject_fields()))
    return Provenance(
        question=question.name,
        parameters=parameters,
        seed=settings.seed,
        threads=settings.threads,
        device=settings.device,
    )


def _texts(value: Any, folder: Path | None, *, where: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_texts(entry, folder, where=f"{where}, entry {i}") for i, entry in enumerate(value, 1)]
    if not isinstance(value, str):
        return value
    if value.startswith("@@"):  # an @ of the text's own
        value = value[1:]
    elif value.startswith("@"):
        try:
            return subjects.read_text(str((folder or Path()) / value[1:]))
        except AnswerableError as error:
            raise error.within(where) from None
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput("the text is not valid Unicode (a lone surrogate)", where=where, mend="save it as UTF-8")
    return value


def _written(text: str) -> str:
    return f"@{text}" if text.startswith("@") else text


def _address(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, Path) else f"<{type(value).__name__}>"


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
