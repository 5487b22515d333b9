"""How well detectors tell two classes apart, one row for each, with controls that no detector should be beaten by.

AUROC alone hides what a detector is used for: the share found while few are accused wrongly. So every row has both, and
beside the detectors stand controls such as the length alone. F1 needs a threshold; it is chosen on other rows than
those it is measured on, since a threshold chosen on the test set flatters (DetectRL's own protocol does that).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics.detection import auroc_interval, average_precision_interval, tpr_at_fpr_interval
from answerable.statistics.inputs import Bools, Floats, classes_of, numbers_of, same_length
from answerable.statistics.intervals import Interval, named
from answerable.statistics.proportions import wilson_interval

FPRS = (0.01, 0.001)


class DetectionRow(NamedTuple):
    """One detector, or one control.

    name : what gives the score
    is_control : whether it is a control
    auroc : DeLong's interval in Wilson's form
    average_precision : at the share of positives in these rows
    tpr : share of positives found at 1 % and at 0.1 % false alarms
    f1 : at a threshold chosen on other rows
    n_positive, n_negative : rows of each class
    """

    name: str
    is_control: bool
    auroc: Interval
    average_precision: Interval
    tpr: tuple[Interval, Interval]
    f1: Interval
    n_positive: int
    n_negative: int


def _check_named(given: object) -> None:
    if not isinstance(given, Mapping):
        mend = "give a dict from each name to its scores"
        raise BadInput(f"a {type(given).__name__} names no scores", where="scores", mend=mend)


def detection_report(
    labels: ArrayLike,
    scores: Mapping[str, ArrayLike],
    *,
    controls: Mapping[str, ArrayLike] | None = None,
    other_labels: ArrayLike | None = None,
    other_scores: Mapping[str, ArrayLike] | None = None,
    level: float = 0.95,
) -> list[DetectionRow]:
    """One row for each detector and each control, on the same things.

    Parameters
    ----------
    labels : (n,) 0 and 1, each at least twice
    scores : by name (n,) float64, large for label 1; may be infinite
    controls : the same of what is no detector (a length, a file size)
    other_labels, other_scores : rows that the threshold of F1 is chosen on. Without them the rows are halved, within
        each class by turns, and each half is judged by the threshold of the other
    level : confidence of each interval by itself, between 0 and 1

    Returns
    -------
    list of DetectionRow, the detectors first, in the order given

    Raises
    ------
    BadInput : labels or scores that are none, scores without names, a class with one member, or other scores for some
        names only
    """
    positive = classes_of(labels)
    if (other_labels is None) != (other_scores is None):
        raise BadInput("other_labels and other_scores go together", mend="give both, or neither")
    other = None if other_labels is None else classes_of(other_labels, "other_labels")
    rows = []
    for given, is_control in ((scores, False), (controls or {}, True)):
        _check_named(given)
        for name, column in given.items():
            found = numbers_of(column, f"scores of {name}", infinite=True)
            same_length(found, positive, f"scores of {name} and labels")
            elsewhere = None
            if other is not None and other_scores is not None:
                if name not in other_scores:
                    raise BadInput("there are no other scores", where=name, mend="give them for every name")
                elsewhere = numbers_of(other_scores[name], f"other scores of {name}", infinite=True)
                same_length(elsewhere, other, f"other scores of {name} and other_labels")
            rows.append(_row(name, is_control, positive, found, other, elsewhere, level))
    return rows


def _row(
    name: str,
    is_control: bool,
    positive: Bools,
    scores: Floats,
    other: Bools | None,
    elsewhere: Floats | None,
    level: float,
) -> DetectionRow:
    if other is None or elsewhere is None:
        flagged = _crosswise(positive, scores)
    else:
        flagged = scores >= best_f1_threshold(other, elsewhere)
    first, second = (tpr_at_fpr_interval(positive, scores, fpr, level=level) for fpr in FPRS)
    return DetectionRow(
        name=name,
        is_control=is_control,
        auroc=auroc_interval(positive, scores, level=level),
        average_precision=average_precision_interval(positive, scores, level=level),
        tpr=(first, second),
        f1=f1_interval(positive, flagged, level=level),
        n_positive=int(positive.sum()),
        n_negative=int((~positive).sum()),
    )


def best_f1_threshold(labels: ArrayLike, scores: ArrayLike) -> float:
    """The score at or above which a thing is called positive so that F1 is largest; the highest of equally good ones.

    Parameters
    ----------
    labels : (n,) 0 and 1, both present
    scores : (n,) float64, large for label 1

    Raises
    ------
    BadInput : labels or scores that are none, or no match
    """
    positive, column = classes_of(labels), numbers_of(scores, "scores", infinite=True)
    same_length(column, positive, "scores and labels")
    order = np.argsort(-column, kind="stable")
    ranked, hits = column[order], np.cumsum(positive[order])
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    f1 = np.where(last_of_tie, 2 * hits / (np.arange(1, len(column) + 1) + positive.sum()), -1.0)
    return float(ranked[int(np.argmax(f1))])


def f1_interval(labels: ArrayLike, flagged: ArrayLike, *, level: float = 0.95) -> Interval:
    """F1 of decisions already made.

    F1 rises with the share ``J`` of true finds among all that is positive or flagged, ``F1 = 2 J / (1 + J)``; given how
    many these are, the finds are binomial, so that J has Wilson's interval and F1 its image.

    Parameters
    ----------
    labels : (n,) 0 and 1, both present
    flagged : (n,) bool
    level : confidence, between 0 and 1

    Returns
    -------
    Interval : value and ends between 0 and 1
    """
    positive, found = classes_of(labels), np.asarray(flagged, dtype=bool)
    same_length(found, positive, "flagged and labels")
    share = wilson_interval(int((positive & found).sum()), int((positive | found).sum()), level=level)
    value, low, high = (2 * j / (1 + j) for j in share[:3])
    return Interval(value, low, high, level, named(level, "Wilson interval of the Jaccard index, as F1"))


def _crosswise(positive: Bools, scores: Floats) -> Bools:
    """Who is flagged when each half of the rows is judged by the threshold of the other."""
    turn = np.empty(len(positive), dtype=np.int64)
    for members in (positive, ~positive):
        turn[members] = np.arange(members.sum()) % 2
    flagged = np.zeros(len(positive), dtype=bool)
    for half in (0, 1):
        flagged[turn == half] = scores[turn == half] >= best_f1_threshold(positive[turn != half], scores[turn != half])
    return flagged
