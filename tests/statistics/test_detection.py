"""AUROC, average precision and TPR at a fixed FPR against scikit-learn, counting over pairs, and the jackknife."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from answerable.errors import BadInput
from answerable.statistics import (
    auroc_covariance,
    auroc_difference_interval,
    auroc_influence,
    auroc_interval,
    auroc_intervals,
    aurocs,
    average_precision_interval,
    influence_interval,
    tpr_at_fpr_interval,
)
from answerable.statistics.detection import _average_precision

LABELLED = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=4, max_size=40).filter(
    lambda rows: 2 <= sum(label for label, _ in rows) <= len(rows) - 2
)


def by_pairs(labels, scores):
    """AUROC and DeLong's covariance from all pairs, as the paper writes it."""
    wins = 0.5 + 0.5 * np.sign(scores[labels == 1][:, None] - scores[labels == 0][None])  # (m, n, k)
    of_positives, of_negatives = wins.mean(axis=1), wins.mean(axis=0)
    parts = [np.atleast_2d(np.cov(part, rowvar=False)) / len(part) for part in (of_positives, of_negatives)]
    return wins.mean(axis=(0, 1)), parts


@given(LABELLED)
def test_as_all_pairs_have_it(rows):
    labels, column = np.array(rows).T
    scores = np.stack([column, -column, column**2], axis=1).astype(float)
    values, parts = by_pairs(labels, scores)
    found = aurocs(labels, scores)
    assert found.values == pytest.approx(values)
    assert found.variances == pytest.approx(np.stack([np.diag(part) for part in parts], axis=1), abs=1e-14)
    assert auroc_covariance(labels, scores) == pytest.approx(parts[0] + parts[1], abs=1e-14)
    assert values[0] == pytest.approx(roc_auc_score(labels, column))
    assert average_precision_interval(labels, column).value == pytest.approx(average_precision_score(labels, column))


def test_many_columns_in_any_order_on_any_threads():
    rng = np.random.default_rng(2)
    labels, scores = rng.random(3000) < 0.2, rng.normal(size=(3000, 300))
    found = aurocs(labels, scores)
    assert found.values == pytest.approx([roc_auc_score(labels, scores[:, k]) for k in range(300)])
    order = rng.permutation(300)
    shuffled = aurocs(labels, scores[:, order], threads=4)
    assert (shuffled.values == found.values[order]).all()
    assert (shuffled.variances == found.variances[order]).all()
    single = aurocs(labels, scores.astype(np.float32))
    assert single.values == pytest.approx(found.values, abs=1e-6)


SHAPES = {
    "even": lambda x: x,
    "skewed": lambda x: np.exp(4 * x),
    "near both ends": lambda x: 1 / (1 + np.exp(-20 * x)),
    "one far away": lambda x: np.where(x == x.max(), 1e300, x),
    "many far away": lambda x: np.where(x > 0.5, x * 1e200, x * 1e-200),
    "infinite": lambda x: np.where(np.abs(x) > 2, np.sign(x) * np.inf, x),
    "few values": lambda x: np.round(2 * x),
    "one value": lambda x: 0 * x,
    "a tie among many": lambda x: np.where(np.abs(x) < 0.3, 0.0, x),
    "denormal": lambda x: x * 1e-320,
    "widest": lambda x: np.where(x > 0, 1.7e308, -1.7e308),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_however_the_scores_are_spread(shape):
    """Cells of equal width, their cells and the sort behind them all count the same pairs."""
    rng = np.random.default_rng(8)
    labels = rng.random(1500) < 0.3
    scores = SHAPES[shape](rng.normal(size=(1500, 3)) + 0.3 * labels[:, None])
    with np.errstate(invalid="ignore"):
        beaten = (scores[labels][:, None] > scores[~labels]) + 0.5 * (scores[labels][:, None] == scores[~labels])
    found = aurocs(labels, scores)
    assert found.values == pytest.approx(beaten.mean(axis=(0, 1)), rel=1e-12)
    by_jackknife = [beaten.mean(axis=1 - side).var(axis=0, ddof=1) / beaten.shape[side] for side in (0, 1)]
    assert found.variances == pytest.approx(np.transpose(by_jackknife), rel=1e-9, abs=1e-16)


@given(LABELLED)
def test_only_the_order_of_scores_matters(rows):
    labels, scores = np.array(rows).T
    assert auroc_interval(labels, scores)[:3] == auroc_interval(labels, np.exp(scores))[:3]
    infinite = np.where(scores == 3, np.inf, scores)
    assert auroc_interval(labels, scores)[:3] == auroc_interval(labels, infinite)[:3]
    mirrored = auroc_interval(labels, -scores)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx(auroc_interval(labels, scores)[1:3])


def test_large_samples_give_delongs_interval():
    rng = np.random.default_rng(4)
    labels = rng.random(20_000) < 0.5
    scores = rng.normal(size=(20_000, 2)) + labels[:, None]
    found = auroc_intervals(labels, scores)[0]
    half_width = 1.959964 * np.sqrt(aurocs(labels, scores).variances[0].sum())
    assert (found.value - found.low, found.high - found.value) == pytest.approx((half_width, half_width), rel=0.01)
    gap = auroc_difference_interval(labels, scores[:, 0], scores[:, 1])
    covariance = auroc_covariance(labels, scores)
    half_width = 1.959964 * np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert gap.high - gap.value == pytest.approx(half_width, rel=0.01)
    by_rows = influence_interval(auroc_influence(labels, scores[:, 0]))
    assert by_rows.value == pytest.approx(found.value)
    assert by_rows.high - by_rows.low == pytest.approx(found.high - found.low, rel=0.01)


def test_perfect_separation_is_not_certainty():
    labels, scores = np.repeat([0, 1], 5), np.arange(10.0)
    assert auroc_interval(labels, scores)[1:3] == pytest.approx((0.484, 1), abs=1e-3)
    assert average_precision_interval(labels, scores).low < 0.5
    same = auroc_difference_interval(labels, scores, scores)
    assert same.value == 0
    assert same.low == -same.high < -0.3


@given(LABELLED)
def test_average_precision_moves_as_its_influence_says(rows):
    """Doubling one row changes the value by its influence over n, to first order: checked with a weight of 1e-6."""
    labels, scores = np.array(rows).T
    n, (value, influence) = len(labels), _average_precision(labels == 1, scores.astype(float))
    assert influence.mean() == pytest.approx(0, abs=1e-9)
    for row in range(0, n, 3):
        weights = np.ones(n)
        weights[row] += 1e-6 * n
        nudged = average_precision_score(labels, scores, sample_weight=weights)
        assert (nudged - value) / 1e-6 == pytest.approx(influence[row], abs=1e-3)


def test_tpr_at_fpr_as_the_roc_curve_has_it():
    rng = np.random.default_rng(6)
    labels = np.repeat([1, 0], [80, 1000])
    scores = rng.normal(size=1080) + 2 * labels
    false_rates, true_rates, _ = roc_curve(labels, scores, drop_intermediate=False)
    for fpr in (0.001, 0.01, 0.05, 0.5):
        found = tpr_at_fpr_interval(labels, scores, fpr)
        assert found.value == pytest.approx(true_rates[false_rates <= fpr + 1e-12].max())
        assert found.low < found.value < found.high
    assert tpr_at_fpr_interval(labels, scores, 0.001).low == 0  # 1,000 negatives cannot fix a threshold that high
    assert tpr_at_fpr_interval(labels, scores, 0.01).low > 0


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: aurocs([1, 1], [[1.0], [2.0]]), "labels: every one of 2 labels is 1; both classes are needed"),
        (lambda: aurocs([1, 2], [[1.0], [2.0]]), "labels, row 2: the label is 2; use 0 and 1"),
        (lambda: aurocs([1, 0], [[1.0, 2.0], [2.0, np.nan]]), "scores, row 2, column 2: the value is nan"),
        (lambda: aurocs([1, 0], np.array([[1], [np.nan]], np.float32)), "scores, row 2, column 1: the value is nan"),
        (lambda: aurocs([1, 0], [1.0, 2.0]), "scores: the shape is (2,)"),
        (lambda: auroc_interval([1, 1, 0, 0], [1.0, 2.0]), "there are 4 labels and 2 rows of scores"),
        (lambda: auroc_interval([1, 0, 0], [1.0, 2.0, 3.0]), "there are 1 positives and 2 negatives; give 2 of each"),
        (lambda: auroc_difference_interval([1, 1, 0, 0], [1, 2, 3, 4], [1, 2]), "second: there are 2 scores"),
        (lambda: tpr_at_fpr_interval([1, 0], [1, 2], 0), "fpr is 0"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
