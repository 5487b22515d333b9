"""Expectations: what a dossier demands of an answer, as text that is parsed and never executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from answerable.errors import AnswerableError, BadDossier
from answerable.expectations.checking import outcome_of
from answerable.expectations.grammar import parsed
from answerable.expectations.outcomes import Outcome
from answerable.expectations.spelling import one_line, quoted
from answerable.expectations.tree import Truth, canonical, paths_in
from answerable.expectations.words import plainly

if TYPE_CHECKING:
    from answerable.answer import Answer


@dataclass(frozen=True, slots=True)
class Expectation:
    """A parsed expectation; equal to another that says the same, however it is spaced.

    ``str()`` gives it in canonical form, which parses to an equal expectation.

    Parameters
    ----------
    text : as it was written
    paths : the parts of an answer it looks at, in canonical form, each once
    """

    text: str = field(compare=False)
    tree: Truth = field(repr=False)
    paths: tuple[str, ...] = field(compare=False)

    def __str__(self) -> str:
        return canonical(self.tree)

    def check(self, answer: Answer) -> Outcome:
        """Whether it holds of this answer.

        A voided answer leaves it undecided; a missing number or a row that is not exactly one leaves it not run.

        Raises
        ------
        UnknownName : the answer has no such metric, table or column
        BadDossier : things are compared that cannot be, such as text with a number
        """
        try:
            outcome = outcome_of(self.tree, answer)
        except AnswerableError as error:
            raise error.within(_place(self.text)) from None
        if answer.void:
            return Outcome("undecided", f"a diagnostic voids this answer: {one_line(answer.void)}", outcome.observed)
        return outcome

    def words(self, answer: Answer | None = None) -> str:
        """It in plain words; names and units are taken from the answer where there is one."""
        return plainly(self.tree, answer)


def parse(text: str) -> Expectation:
    """Parse one expectation.

    Parameters
    ----------
    text : at most 2000 characters, nested at most 32 deep

    Raises
    ------
    BadDossier : it does not follow the grammar; the line names the character, counted from 1
    UnknownName : a word, function, statistic or part that the grammar does not know
    """
    if not isinstance(text, str):
        raise BadDossier(
            f"an expectation is {type(text).__name__}, not text", mend='write it as text, such as "metrics.gap == 0"'
        )
    try:
        tree = parsed(text)
    except AnswerableError as error:
        raise error.within(_place(text)) from None
    return Expectation(text, tree, tuple(dict.fromkeys(canonical(path) for path in paths_in(tree))))


def _place(text: str) -> str:
    return f"expectation {quoted(text, 80)}"
