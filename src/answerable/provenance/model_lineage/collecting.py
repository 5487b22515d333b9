"""Putting the items of an answer log to a model behind a server, into a file that can be gone on with."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from answerable.errors import BadInput, CannotRead, CannotWrite
from answerable.subjects.answer_log import MOST_OPTIONS, AnswerLog, read_answer_log
from answerable.subjects.endpoint import Endpoint, Message

ONE_OF = "Answer with one of these and nothing else: {options}."
BRIEFLY = "Answer as briefly as you can, without explanation."


class Asked(NamedTuple):
    """What came of asking.

    log : the suspect's answers, at the items of the references
    kept : replies that stood in the file already
    given_up : reason by item, of those that no reply came to
    """

    log: AnswerLog
    kept: int
    given_up: Mapping[tuple[str, str], str]


def collect_answers(
    endpoint: Endpoint,
    references: AnswerLog,
    out: str | Path,
    *,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Asked:
    """Ask a model every item whose text the references know; each reply is a line of ``out`` as soon as it is there.

    Parameters
    ----------
    endpoint : where the model is
    references : log of the reference models, with the items' texts and right answers
    out : JSON-lines file; what it holds already is not asked again, and a last line that was cut short is
    told : called with the number of items that are done and of all, after each reply

    Raises
    ------
    BadInput : the references hold no texts, or no right answers
    CannotRead : the server cannot be reached, or ``out`` holds something else
    CannotWrite : ``out`` cannot be written
    """
    prompts = _prompts(references)
    path = Path(out)
    with _kept_for_us(path) as file:
        return _collected(endpoint, references, prompts, path, file, told)


def _collected(
    endpoint: Endpoint,
    references: AnswerLog,
    prompts: Mapping[tuple[str, str], list[Message]],
    path: Path,
    file: IO[str],
    told: Callable[[int, int], None],
) -> Asked:
    done = _begun(path, endpoint.model)
    todo = {item: prompt for item, prompt in prompts.items() if item not in done}
    names = {json.dumps(item): item for item in todo}
    gold, count = dict(zip(references.items, references.gold)), len(done)

    def keep(name: str, reply: str) -> None:
        nonlocal count
        dataset, item = names[name]
        line = {
            "model": endpoint.model, "dataset": dataset, "item_id": item, "answer": reply,
            "gold": gold[dataset, item],
        }  # fmt: skip
        file.write(json.dumps(line) + "\n")
        file.flush()
        count += 1
        told(count, len(prompts))

    given_up = endpoint.replies({json.dumps(item): prompt for item, prompt in todo.items()}, keep)
    if not count:
        reason = next(iter(given_up.values()), "")
        raise CannotRead(f"no reply came ({reason})", where=endpoint.url, mend="look at the server's own log")
    log = read_answer_log(path).at(references.items)
    return Asked(log, len(done), {names[name]: reason for name, reason in given_up.items()})


@contextlib.contextmanager
def _kept_for_us(path: Path) -> Iterator[IO[str]]:
    """The file, open at its end; refused while another run writes it. The lock ends with the process."""
    if path.exists() and not path.is_file():
        raise CannotWrite("it is no plain file", where=str(path), mend="name another file")
    try:
        with path.open("a", encoding="utf-8") as file:
            _lock(path, file)
            yield file
    except OSError as failure:
        raise _unwritable(path, failure) from None


def _lock(path: Path, file: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        mend = "wait for it, or name another file"
        raise CannotWrite("another run is writing it", where=str(path), mend=mend) from None


def _unwritable(path: Path, failure: OSError) -> CannotWrite:
    return CannotWrite((failure.strerror or str(failure)).lower(), where=str(path), mend="name another file")


def _prompts(references: AnswerLog) -> dict[tuple[str, str], list[Message]]:
    options: dict[str, set[str]] = {}
    for (dataset, _), right in zip(references.items, references.gold):
        options.setdefault(dataset, set()).add(right)
    how = {
        dataset: ONE_OF.format(options=", ".join(sorted(found))) if len(found) <= MOST_OPTIONS else BRIEFLY
        for dataset, found in options.items()
    }
    prompts: dict[tuple[str, str], list[Message]] = {
        item: [{"role": "system", "content": how[item[0]]}, {"role": "user", "content": text}]
        for item, text, right in zip(references.items, references.texts, references.gold)
        if text.strip() and right
    }
    if not prompts:
        mend = "add the columns text and gold to it"
        raise BadInput(
            "it holds no questions with right answers, so that none can be asked", where="answer log", mend=mend
        )
    return prompts


def _begun(path: Path, model: str) -> set[tuple[str, str]]:
    """The items that ``path`` holds already; a last line that was cut short is taken out."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    done = set()
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entry = json.loads(line)
            if entry["model"] != model:
                raise BadInput(
                    f"it holds answers of {str(entry['model'])[:60]!r}", where=str(path), mend="name another file"
                )
            done.add((str(entry["dataset"]), str(entry["item_id"])))
        except (ValueError, KeyError, TypeError):
            raise CannotRead(
                "it is no file of answers", where=f"{path}, line {number}", mend="name another file"
            ) from None
    return done
