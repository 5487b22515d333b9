"""The answer store: one folder per answer, named by its key, on a disk or at any fsspec address.

    answers/4f/4f2a.../    a saved answer: there whole or not at all
    unfinished/4f2a.../    finished units of an answer that is not finished
    journal.jsonl          every run the store has seen, also failed and discarded ones; each line carries the hash
    of the one before

A stored answer is served only after every file of it was checked against its SHA-256; a damaged one is told, taken
out and asked again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Literal, Protocol, get_args

from answerable import atomic, terminal, verification
from answerable.answer import Answer
from answerable.errors import BadInput, CannotRead, CannotWrite, DamagedAnswer, unknown
from answerable.secrets import redacted

Event = Literal["begun", "answered", "served", "failed", "discarded"]
MOST_DAYS = 36_500  # a hundred years; further back there is no date
_KEY = re.compile("[0-9a-f]{64}")  # a key names a folder, so that a forged one must not lead out of the store
_BEGINNING = b'{"time": "'  # of every line of the journal


class Folders(Protocol):
    """Where the folders of answers stand."""

    def read(self, key: str) -> dict[str, bytes] | None: ...
    def write(self, key: str, files: Mapping[str, bytes]) -> None: ...
    def remove(self, key: str) -> None: ...
    def journal(self) -> bytes: ...
    def append(self, line_after: Any) -> None: ...


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    time: str
    event: Event
    key: str
    question: str
    seed: int | None
    note: str


class Store:
    """Answers by key.

    Parameters
    ----------
    address : folder, or any fsspec address (``s3://bucket/answers``)
    """

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)
        self._folders: Folders = _Remote(self.address) if "://" in self.address else _Local(Path(address))

    def get(self, key: str) -> Answer | None:
        """The stored answer, checked; None where there is none, or where it was damaged (told in one line, and taken
        out).
        """
        try:
            return self._read(key)
        except DamagedAnswer:  # another process may have replaced it while it was read
            pass
        try:
            return self._read(key)
        except DamagedAnswer as error:
            terminal.warn(f"{error.problem} in stored answer {key[:8]}; it is asked again")
            with contextlib.suppress(CannotWrite):
                self._folders.remove(key)
                self.note("discarded", key, "", None, error.problem)
            return None

    def _read(self, key: str) -> Answer | None:
        files = self._folders.read(key)
        if files is None:
            return None
        answer = Answer.from_files(files, where=self.address)
        if answer.provenance.key != key:
            raise DamagedAnswer(
                f"the answer stored under {key[:8]} has key {answer.provenance.key[:8]}", where=self.address
            )
        return answer

    def put(self, answer: Answer) -> None:
        """Store an answer under its key; one that cannot be stored is told in one line, and is not lost with it."""
        key = answer.provenance.key
        try:
            self._folders.write(key, answer.files())
            self.note("answered", key, answer.question, answer.provenance.seed, answer.summary)
            if isinstance(self._folders, _Local):
                shutil.rmtree(self._folders.root / "unfinished" / key, ignore_errors=True)
        except CannotWrite as error:
            terminal.warn(f"the answer is not stored: {error}")

    def begin(self, key: str, question: str, seed: int | None) -> None:
        """Note that a question is about to be answered, so that a run that was killed shows too."""
        self._note_if_possible("begun", key, question, seed, "")

    def fail(self, key: str, question: str, seed: int | None, reason: str) -> None:
        """Note that a question could not be answered."""
        self._note_if_possible("failed", key, question, seed, reason)

    def serve(self, answer: Answer) -> None:
        """Note that a stored answer was handed out."""
        self._note_if_possible("served", answer.provenance.key, answer.question, answer.provenance.seed, answer.summary)

    def _note_if_possible(self, event: Event, key: str, question: str, seed: int | None, note: str) -> None:
        # A store that can only be read still serves; where an answer cannot be kept, put() says so.
        with contextlib.suppress(CannotWrite):
            self.note(event, key, question, seed, note)

    def note(self, event: Event, key: str, question: str, seed: int | None, note: str) -> None:
        """Add a line to the journal."""

        def line_after(last: bytes) -> bytes:
            line = {
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "event": event,
                "key": key,
                "question": question,
                "seed": seed,
                "note": redacted(note)[:200],
                "previous": hashlib.sha256(last).hexdigest(),
            }
            return json.dumps(line).encode("ascii")

        self._folders.append(line_after)

    def journal(self) -> list[Entry]:
        """Every line of the journal, oldest first.

        Raises
        ------
        DamagedAnswer : a line was changed, removed or added
        """
        entries, last = [], b""
        whole, _ = _whole_lines(self._folders.journal())
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entries.append(_entry(line, last))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise DamagedAnswer(
                    f"line {number} was changed, or a line before it removed ({error})",
                    where=f"{redacted(self.address)}, journal",
                    mend="restore it from a copy, or name another store",
                ) from None
            last = line
        return entries

    def answers(self) -> list[Answer]:
        """Every answer that is here, in the order they were first asked for."""
        keys = dict.fromkeys(entry.key for entry in self.journal())
        return [answer for key in keys if (answer := self.get(key))]

    def listed(self) -> list[Entry]:
        """For every answer that was given and not taken out since, the line of the journal that says so."""
        found: dict[str, Entry] = {}
        for entry in self.journal():
            if entry.event == "discarded":
                found.pop(entry.key, None)
            elif entry.event == "answered" or (entry.event == "served" and entry.key not in found):
                found[entry.key] = entry
        return sorted(found.values(), key=lambda entry: entry.time)

    def unused_for(self, days: int) -> list[str]:
        """Keys of the answers that nobody asked for in that many days."""
        if days < 0:
            raise BadInput(f"it is {days}", where="days", mend="give a whole number, at least 0")
        if days > MOST_DAYS:
            raise BadInput(f"it is {days}", where="days", mend=f"give at most {MOST_DAYS}")
        last = {entry.key: entry.time for entry in self.journal() if entry.event in ("answered", "served")}
        before = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
        return [entry.key for entry in self.listed() if last[entry.key] <= before]

    def find(self, prefix: str) -> str:
        """The one key that begins with ``prefix``."""
        keys = sorted({entry.key for entry in self.journal() if entry.key.startswith(prefix)})
        if len(keys) != 1:
            if keys:
                raise CannotRead(
                    f"{len(keys)} answers begin with {prefix}", where=self.address, mend="give more of the key"
                )
            raise unknown("answer", prefix, [], where=self.address)
        return keys[0]

    def folder(self, key: str) -> Path | None:
        """The folder of a stored answer on this disk; None for a remote store or an answer that is not there."""
        return self._folders.folder(key) if isinstance(self._folders, _Local) else None

    def checkpoints(self, key: str) -> Path | None:
        """Folder for the finished units of an answer; None where the store is remote or cannot be written."""
        return self._folders.unfinished(key) if isinstance(self._folders, _Local) else None

    def remove(self, key: str, reason: str) -> None:
        """Take an answer out; the journal keeps that it was there."""
        self._folders.remove(key)
        self.note("discarded", key, "", None, reason)


class _Local:
    """Folders on a disk: written beside and renamed into place."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, key: str) -> Path | None:
        path = self._place(key)
        return path if path.is_dir() else None

    def _place(self, key: str) -> Path:
        return self.root / "answers" / key[:2] / key

    def read(self, key: str) -> dict[str, bytes] | None:
        with atomic.failing_in_one_line(self.root):  # a name the file system cannot hold
            if not self._place(key).is_dir():
                return None
        if not (self._place(key) / "manifest.json").is_file():
            raise DamagedAnswer("manifest.json is missing", where=str(self._place(key)))
        return verification.checked_files(self._place(key))

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        atomic.sweep(self._place(key).parent)
        atomic.write_folder(self._place(key), files)

    def remove(self, key: str) -> None:
        with atomic.failing_in_one_line(self._place(key)), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._place(key))

    def unfinished(self, key: str) -> Path | None:
        path = self.root / "unfinished" / key
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        return path if os.access(path, os.W_OK) else None

    def journal(self) -> bytes:
        try:
            return (self.root / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise CannotRead(
                (error.strerror or "cannot be read").lower(),
                where=f"{self.root}, journal",
                mend="check the permissions",
            ) from error

    def append(self, line_after: Any) -> None:
        path = self.root / "journal.jsonl"
        with atomic.failing_in_one_line(path):
            self.root.mkdir(parents=True, exist_ok=True)
            with path.open("a+b", buffering=0) as file, _locked(file):
                last, unended = _last_line(file)
                atomic.step()
                line = (b"\n" if unended else b"") + line_after(last) + b"\n"
                if file.write(line) < len(line):  # the next writer takes out what stands there of it
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                atomic.step()


class _Remote:
    """Folders at an fsspec address: there is no rename there, so that the manifest is written last and a folder
    without one is no answer.
    """

    def __init__(self, address: str) -> None:
        import fsspec

        try:
            self._files, self._root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise CannotWrite(
                str(error), where=redacted(address), mend="install what this kind of address needs"
            ) from error
        except OSError as error:
            raise _unreachable(error, address) from error
        self._address = address

    def _place(self, key: str) -> str:
        return f"{self._root}/answers/{key[:2]}/{key}"

    def read(self, key: str) -> dict[str, bytes] | None:
        place = self._place(key)
        with _reached(self._address):
            if not self._files.exists(f"{place}/manifest.json"):
                return None
            self._files.invalidate_cache()
            found = {
                path[path.index(place.lstrip("/")) + len(place.lstrip("/")) + 1 :]: self._files.cat_file(path)
                for path in self._files.find(place)
            }
        return verification.checked(found, where=place)

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        with atomic.failing_in_one_line(Path(self._place(key))):
            for name, content in files.items():  # the manifest is the last of them
                atomic.step()
                self._files.makedirs(f"{self._place(key)}/{name}".rpartition("/")[0], exist_ok=True)
                self._files.pipe_file(f"{self._place(key)}/{name}", content)

    def remove(self, key: str) -> None:
        with _reached(self._address), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._place(key)}/manifest.json")
            self._files.rm(self._place(key), recursive=True)

    def journal(self) -> bytes:
        # Object stores cannot append: each line is an object of its own, in the order of their names.
        with _reached(self._address):
            lines = sorted(path for path in self._files.find(f"{self._root}/journal"))
            return b"".join(self._files.cat_file(path) + b"\n" for path in lines)

    def append(self, line_after: Any) -> None:
        with atomic.failing_in_one_line(Path(f"{self._root}/journal")):
            existing = sorted(self._files.find(f"{self._root}/journal"))
            last = self._files.cat_file(existing[-1]) if existing else b""
            name = f"{len(existing):09d}-{os.urandom(4).hex()}.json"
            self._files.makedirs(f"{self._root}/journal", exist_ok=True)
            self._files.pipe_file(f"{self._root}/journal/{name}", line_after(last))


@contextlib.contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the file against other processes; the lock ends with the process, so that none is ever stale."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _entry(line: bytes, last: bytes) -> Entry:
    """A line of the journal that follows the line ``last``; whatever it says else, ValueError and its like."""
    document = json.loads(line)
    if not isinstance(document, dict):
        raise ValueError("it is no record")
    if document.pop("previous") != hashlib.sha256(last).hexdigest():
        raise ValueError("its hash does not follow from the line before")
    entry = Entry(**document)
    if not all(isinstance(text, str) for text in (entry.time, entry.key, entry.question, entry.note)):
        raise ValueError("a number stands where text should")
    if entry.event not in get_args(Event) or type(entry.seed) not in (int, type(None)):
        raise ValueError("its event or its seed is none")
    if not _KEY.fullmatch(entry.key):
        raise ValueError("its key is none")
    return entry


def _last_line(file: IO[bytes]) -> tuple[bytes, bool]:
    """The last whole line without its break, and whether the break is missing; what a writer left of a line when it
    was stopped inside is taken out.
    """
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 65536))
    whole, torn = _whole_lines(file.read())
    if torn:
        file.truncate(end - torn)
    return whole.removesuffix(b"\n").rpartition(b"\n")[2], bool(whole) and not whole.endswith(b"\n")


def _whole_lines(content: bytes) -> tuple[bytes, int]:
    """The journal less the beginning of a line on which it may end, and that beginning's length."""
    torn = content.rpartition(b"\n")[2]
    if torn[: len(_BEGINNING)] != _BEGINNING[: len(torn)] or torn.endswith(b'"}'):  # not ours, or all of a line
        return content, 0
    return content[: len(content) - len(torn)], len(torn)


@contextlib.contextmanager
def _reached(address: str) -> Iterator[None]:
    """Turn the refusal of a remote store into one line that names it."""
    try:
        yield
    except OSError as error:
        raise _unreachable(error, address) from error


def _unreachable(error: OSError, address: str) -> CannotRead:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return CannotRead(reason, where=redacted(address), mend="check the address, and whether it can be reached")
