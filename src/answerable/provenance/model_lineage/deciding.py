"""From a suspect's scores to a word: a family's name, "none" or "undecided".

A family is named where all this holds, at level alpha:

- strangers, which is to say models whose whole family was left out, hardly get such a lead by the deciding score;
- all three scores name the same family;
- by none of them is the margin smaller than nearly every known member's.

The last one is not in the paper. Without it a weak stranger that errs nearly everywhere is named, as naive Bayes is on
the digits: its contraction looks like a member's, its likelihood and cosine like nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.statistics import holm

from .tracing import SCORES, Validation, best_family, chance_p_values, leads, margins

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NONE, UNDECIDED = "none", "undecided"


class Finding(NamedTuple):
    """What is found about one suspect.

    word : a family's name, "none" or "undecided"
    reason : why that word
    named : the family of the largest score, for each of ``SCORES``
    scores, p_values, adjusted : (3, F) float64; adjusted by Holm over the families
    margins : (3,) float64, the largest of each score less the mean of the others (MFD)
    leads : (3,) float64, the largest less the second
    strangers : (3,) float64, p-value of "it is of none of these families", of its lead, from families left out; NaN
        with fewer than three
    members : (3,) float64, p-value of "it is of one of these families", of its margin, from models left out
    """

    word: str
    reason: str
    named: tuple[str, ...]
    scores: Floats
    p_values: Floats
    adjusted: Floats
    margins: Floats
    leads: Floats
    strangers: Floats
    members: Floats


class Level(NamedTuple):
    """How it is decided.

    which : place of the deciding score in ``SCORES``
    alpha : level
    names : the families', by number
    """

    which: int
    alpha: float
    names: Sequence[str]

    def name(self, number: int) -> str:
        """Of the family of that number; "none" for -1."""
        return str(self.names[number]) if number >= 0 else NONE


def found_by_threshold(scores: Floats, level: Level, tau: float | None) -> Finding:
    """The family of the largest deciding score; "none" where its margin lies below ``tau`` (the paper's rule).

    Parameters
    ----------
    scores : (3, F) float64, of a suspect
    """
    named, margin = _named(scores, level), margins(scores)
    unknown = np.full(len(SCORES), np.nan)
    blank = np.full_like(scores, np.nan)
    word, reason = named[level.which], "it has the largest score"
    if tau is not None:
        own = margin[level.which]
        reason = f"its margin {own:.4f} is at least {tau}"
        if not own >= tau:
            word, reason = NONE, f"its margin {own:.4f} lies below {tau}"
    return Finding(word, reason, named, scores, blank, blank, margin, leads(scores), unknown, unknown)


def found_by_calibration(scores: Floats, level: Level, validation: Validation, families: Ints) -> Finding:
    """What left-out models and left-out families say of a suspect's scores.

    Parameters
    ----------
    scores : (3, F) float64, of a suspect
    families : (M,) int64, of the reference models
    """
    p_values = chance_p_values(validation, families, scores)
    lead, margin, known = leads(scores), margins(scores), margins(validation.scores)
    strangers = np.array([_reaching(null, value) for null, value in zip(validation.without, lead)])
    members = np.array([_reaching(-null, -value) for null, value in zip(known, margin)])
    finding = Finding(
        "", "", _named(scores, level), scores, p_values, np.array([holm(row) for row in p_values]), margin,
        lead, strangers, members,
    )  # fmt: skip
    word, reason = _decided(finding, level)
    return finding._replace(word=word, reason=reason)


def left_out_words(level: Level, validation: Validation, families: Ints) -> list[str]:
    """The word about each reference model, when neither it nor its scores are among what it is compared with.

    A model that is alone in its family has no scores: it is undecided.
    """
    words = []
    for model in range(len(families)):
        others = Validation(
            np.delete(validation.scores, model, axis=1),
            np.delete(validation.without, model, axis=1),
        )
        finding = found_by_calibration(validation.scores[:, model], level, others, np.delete(families, model))
        words.append(finding.word)
    return words


def _named(scores: Floats, level: Level) -> tuple[str, ...]:
    return tuple(level.name(int(number)) for number in best_family(scores))


def _decided(finding: Finding, level: Level) -> tuple[str, str]:
    which, alpha = level.which, level.alpha
    name, strange, member = finding.named[which], finding.strangers[which], finding.members[which]
    if np.isnan(strange):  # two families: there is no stranger to compare with
        family = int(best_family(finding.scores)[which])
        strange = float(finding.adjusted[which, family]) if family >= 0 else 1.0
    if strange > alpha:
        if member <= alpha:
            return NONE, f"models of these families hardly get so small a margin, p = {member:.3f}"
        if np.isnan(member):
            return UNDECIDED, f"strangers get such a lead, p = {strange:.3f}, and no known member can be left out"
        return UNDECIDED, f"strangers (p = {strange:.3f}) get such a lead, and members (p = {member:.3f}) such a margin"
    if len(set(finding.named)) > 1:
        said = ", ".join(f"{score} names {one}" for score, one in zip(SCORES, finding.named))
        return UNDECIDED, f"the scores disagree: {said}"
    for score, p_value in zip(SCORES, finding.members):
        if p_value <= alpha:
            return UNDECIDED, f"by its {score} it is unlike any known member of a family, p = {p_value:.3f}"
    return name, f"strangers reach its lead with p = {strange:.3f}, and all scores agree"


def _reaching(null: Floats, value: float) -> float:
    """Conformal p-value of a value, NaN where there is nothing to compare it with."""
    known = null[~np.isnan(null)]
    if not len(known) or np.isnan(value):
        return float("nan")
    return float((1 + (known >= value).sum()) / (1 + len(known)))
