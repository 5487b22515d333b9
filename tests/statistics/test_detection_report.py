"""The detection report: F1 by hand and by search, thresholds chosen elsewhere, rows that agree with their parts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from answerable.errors import BadInput
from answerable.statistics import (
    auroc_interval,
    average_precision_interval,
    best_f1_threshold,
    detection_report,
    f1_interval,
    tpr_at_fpr_interval,
)

LABELS = st.lists(st.booleans(), min_size=2, max_size=20).filter(lambda labels: 0 < sum(labels) < len(labels))


def test_f1_by_hand() -> None:
    """3 found of 4, one false alarm: F1 = 2 * 3 / (2 * 3 + 1 + 1), from a Jaccard index of 3 / 5."""
    found = f1_interval([1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0])
    assert found.value == pytest.approx(0.75)
    assert 0 < found.low < 0.75 < found.high < 1


@given(LABELS, st.data())
def test_f1_is_scikit_learn_s(labels: list[bool], data: st.DataObject) -> None:
    flagged = data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)))
    assert f1_interval(labels, flagged).value == pytest.approx(f1_score(labels, flagged, zero_division=0.0))


def test_the_interval_of_f1_covers(seed: int) -> None:
    """300 rows, half of them positive, found with 0.8 and falsely flagged with 0.1."""
    rng, n, repeats = np.random.default_rng(seed), 300, 400
    truth = 2 * 0.4 / (2 * 0.4 + 0.1 + 0.05)
    covered = 0
    for _ in range(repeats):
        labels = rng.random(n) < 0.5
        flagged = rng.random(n) < np.where(labels, 0.8, 0.1)
        interval = f1_interval(labels, flagged)
        covered += interval.low <= truth <= interval.high
    assert covered / repeats > 0.95 - 4 * np.sqrt(0.95 * 0.05 / repeats)


@settings(max_examples=40)
@given(LABELS, st.data())
def test_the_best_threshold_is_the_best_of_all(labels: list[bool], data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))
    best = best_f1_threshold(labels, scores)
    reached = f1_interval(labels, [score >= best for score in scores]).value
    assert reached == pytest.approx(max(f1_interval(labels, [s >= t for s in scores]).value for t in range(6)))


def test_each_row_is_made_of_the_intervals_of_its_name(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.random(200) < 0.4
    score, length = rng.normal(labels), rng.normal(size=200)
    rows = detection_report(labels, {"score": score}, controls={"length": length})
    assert [(row.name, row.is_control, row.n_positive) for row in rows] == [
        ("score", False, labels.sum()),
        ("length", True, labels.sum()),
    ]
    for row, column in zip(rows, (score, length), strict=True):
        assert row.auroc == auroc_interval(labels, column)
        assert row.average_precision == average_precision_interval(labels, column)
        assert row.tpr == (tpr_at_fpr_interval(labels, column, 0.01), tpr_at_fpr_interval(labels, column, 0.001))


def test_a_threshold_from_other_rows_is_used_as_it_is() -> None:
    labels, scores = [1, 1, 0, 0], [5.0, 1.0, 4.0, 0.0]
    (row,) = detection_report(labels, {"s": scores}, other_labels=[1, 0, 1], other_scores={"s": [3.0, 2.0, 3.0]})
    assert row.f1.value == f1_score(labels, [score >= 3.0 for score in scores])


def test_without_other_rows_each_half_is_judged_by_the_other() -> None:
    """Within each class by turns: rows 1 and 3 of each make one half."""
    labels = [1, 1, 1, 1, 0, 0, 0, 0]
    scores = [9.0, 2.0, 8.0, 1.5, 0.0, 1.0, 0.5, 1.2]
    (row,) = detection_report(labels, {"s": scores})
    first = best_f1_threshold([1, 1, 0, 0], [9, 8, 0, 0.5])
    second = best_f1_threshold([1, 1, 0, 0], [2, 1.5, 1, 1.2])
    flagged = [score >= threshold for score, threshold in zip(scores, itertools.cycle([second, first]))]
    assert (first, second) == (8, 1.5)
    assert row.f1.value == pytest.approx(f1_score(labels, flagged))


def test_choosing_on_the_test_set_would_flatter(seed: int) -> None:
    """Scores that say nothing: the chosen threshold's F1 on its own rows is at least that on the others."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], 50)
    gains = []
    for _ in range(40):
        scores = rng.normal(size=100)
        (row,) = detection_report(labels, {"s": scores})
        gains.append(f1_score(labels, scores >= best_f1_threshold(labels, scores)) - row.f1.value)
    assert min(gains) >= 0
    assert np.mean(gains) > 0


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: detection_report([1, 1], {"s": [1, 2]}), "every one of 2 labels is 1"),
        (lambda: detection_report([1, 0, 1], {"s": [1, 2]}), "scores of s and labels: there are 2 and 3 rows"),
        (lambda: detection_report([1, 0], [1, 2]), "scores: a list names no scores; give a dict from each name"),
        (lambda: detection_report([1, 0], {"s": [1, np.nan]}), "scores of s, row 2: the value is nan"),
        (lambda: detection_report([1, 0, 1, 0], {"s": [1, 2, 3, 4]}, other_labels=[1, 0]), "go together"),
        (
            lambda: detection_report([1, 0, 1, 0], {"s": [1, 2, 3, 4]}, other_labels=[1, 0], other_scores={}),
            "s: there are no other scores",
        ),
    ],
)
def test_bad_input_is_one_line(call, line) -> None:
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
