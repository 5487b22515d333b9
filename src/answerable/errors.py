"""One family of errors: what was found, where, and how to mend it - always one line.

AnswerableError
├── BadInput          a value, file or subject that a question cannot work with
│   ├── CannotRead    a file that is missing, damaged, or not what it says it is
│   └── Refused       a file that could run code when it is read (pickle), or remote code
├── UnknownName       a question, field, metric or column that does not exist; names the nearest one
├── BadDossier        a dossier that does not say what it must
├── MissingExtra      an optional part of the installation that is not here
├── DamagedAnswer     a saved answer whose files are not the ones that were written
└── CannotWrite       a store, cache or report that cannot be written
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AnswerableError(Exception):
    """An expected failure, told in one line: ``where: what; mend``.

    Parameters
    ----------
    problem : what was found, without a full stop
    where : file, field, row or layer it was found in
    mend : what the reader can do about it
    """

    def __init__(self, problem: str, *, where: str = "", mend: str = "") -> None:
        self.problem, self.where, self.mend = problem, where, mend
        super().__init__(problem, where, mend)

    def __str__(self) -> str:
        line = f"{self.where}: {self.problem}" if self.where else self.problem
        return " ".join((f"{line}; {self.mend}" if self.mend else line).split())

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own way would call __init__ with positional arguments; worker processes send errors back pickled.
        return _rebuild, (type(self), self.problem, self.where, self.mend)

    def within(self, place: str) -> AnswerableError:
        """The same error with ``place`` put before its ``where``."""
        where = f"{place}, {self.where}" if self.where else place
        return type(self)(self.problem, where=where, mend=self.mend)


def _rebuild(kind: type[AnswerableError], problem: str, where: str, mend: str) -> AnswerableError:
    return kind(problem, where=where, mend=mend)


class BadInput(AnswerableError):
    """A value, file or subject that a question cannot work with."""


class CannotRead(BadInput):
    """A file that is missing, damaged, or not what it says it is."""


class Refused(BadInput):
    """A file that could run code when it is read."""


class UnknownName(AnswerableError):
    """A name that does not exist."""


class BadDossier(AnswerableError):
    """A dossier that does not say what it must."""


class MissingExtra(AnswerableError):
    """An optional part of the installation that is not here."""


class DamagedAnswer(AnswerableError):
    """A saved answer whose files are not the ones that were written."""


class CannotWrite(AnswerableError):
    """A store, cache or report that cannot be written."""


def unknown(kind: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownName:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        mend = f"did you mean {near[0]!r}?"
    elif len(names) <= 12:
        mend = f"known: {', '.join(names)}" if names else "there is none here"
    else:
        mend = f"known: {', '.join(names[:12])} and {len(names) - 12} more"
    return UnknownName(f"there is no {kind} {name[:80]!r}", where=where, mend=mend)


def missing_extra(module: str, extra: str) -> MissingExtra:
    """The error for an import that an optional part of the installation would satisfy."""
    return MissingExtra(f"{module} is not installed", mend=f"pip install 'answerable[{extra}]'")
