"""What cannot be worked with is told in one line that names it and says how to mend it."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from answerable.errors import BadInput
from answerable.explanations.activation_patterns import (
    PatternGAM,
    PatternQLR,
    check_components,
    emda,
    fni_emda,
    ima,
    make_xai_tris,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)


def line(call, *args, **kinds) -> str:
    with pytest.raises((BadInput, ValueError)) as caught:
        call(*args, **kinds)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_term_that_separates_the_classes_is_named() -> None:
    told = line(PatternGAM().fit, np.column_stack([X, 2.0 * Y]), Y)
    assert re.search(r"separate.*set a ridge, for example 1", told) and "x3" in told
    slope = PatternGAM(ridge=1.0).fit(np.column_stack([X, 2.0 * Y]), Y).scores_.sd_pattern[3]
    assert 0 < slope < 10


def test_terms_that_separate_together_are_told() -> None:
    together = np.column_stack([X[:, 0], X[:, 0] - 0.5 * (2 * Y - 1) - 0.01 * X[:, 1]])
    assert "together the terms separate the classes" in line(PatternGAM().fit, together, Y)


def test_a_constant_term_has_importance_0_and_a_warning() -> None:
    with pytest.warns(UserWarning, match="term x3 is constant: its importance is 0"):
        found = PatternGAM().fit(np.column_stack([X, np.full(200, 7.0)]), Y)
    assert found.scores_.product[3] == found.scores_.pattern[3] == 0 and found.scores_.verdict[3] == "unused"


def test_labels_of_one_class_or_three() -> None:
    assert "both classes are needed" in line(PatternGAM().fit, X, np.ones(200))
    three = RNG.integers(0, 3, 200)
    assert "name one with positive" in line(PatternGAM().fit, X, three)
    assert PatternGAM(positive=2).fit(X, three).classes_[1] == 2
    assert "no row has the label 7" in line(PatternGAM(positive=7).fit, X, three)


def test_missing_numbers_and_lengths() -> None:
    for made in (PatternGAM, PatternQLR):
        holed = X.copy()
        holed[3, 1] = np.nan
        assert line(made().fit, holed, Y) == "feature x1, row 4: it is NaN; drop the row"
        holed[3, 1] = -np.inf
        assert line(made().fit(X, Y).transform, holed) == "feature x1, row 4: it is -inf; drop the row"
        frame = pl.DataFrame({"a": X[:, 0], "kind": ["u", "v"] * 100}).to_pandas()
        assert line(made().fit, frame, Y).startswith(
            "feature kind: its entries are no numbers; give a column of 0 and 1"
        )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PatternGAM().fit(X, Y[:-1])
    assert "sample_weight" in line(PatternGAM().fit, X, Y, sample_weight=np.ones(7))
    assert "negative" in line(PatternGAM().fit, X, Y, sample_weight=-np.ones(200))


def test_more_terms_than_rows() -> None:
    told = line(PatternQLR().fit, RNG.normal(size=(30, 8)), Y[:30])
    assert "44 terms are fitted on 30 rows; set a ridge (the covariances" in told


def test_terms_that_determine_each_other() -> None:
    told = line(PatternGAM().fit, np.column_stack([X, X[:, 0] - X[:, 1]]), Y)
    assert "term x3: the other terms determine it" in told


def test_codes_of_kinds_have_no_products() -> None:
    told = line(PatternQLR(nominal=["race"]).fit, X, Y)
    assert told.startswith("feature race: its values are codes of kinds")


def test_rows_that_were_not_scaled_as_the_model_s() -> None:
    values = 2.0 * X
    check_components(values, 0.5, values.sum(axis=1) + 0.5)
    told = line(check_components, values, 0.5, (values / 3).sum(axis=1) + 0.5)
    assert told.startswith("model, row") and "scaled, encoded, in that order" in told


def test_a_model_whose_rows_were_scaled_gets_raw_ones() -> None:
    """What its program adds up is not what it predicts: its own scaler stands before one of the two only."""

    class Scaled:
        terms_ = ((0,), (1,), (2,))
        intercept_ = 0.0

        def components(self, rows):
            return np.asarray(rows, dtype=float)

        def decision_function(self, rows):
            return ((np.asarray(rows) - 5) / 3).sum(axis=1)

    told = line(PatternGAM(Scaled()).fit, X, Y)
    assert re.match(
        r"model, row \d+: the components sum to .*, the model's score is .*; give the rows as the model was", told
    )


def test_weights_of_zero_leave_rows_out() -> None:
    kept = np.arange(200) < 150
    weighted = PatternGAM().fit(np.where(kept[:, None], X, 9.0), Y, sample_weight=kept.astype(float))
    alone = PatternGAM().fit(X[kept], Y[kept])
    assert weighted.scores_.sd_pattern == pytest.approx(alone.scores_.sd_pattern, rel=1e-8)
    assert weighted.auroc_.value == pytest.approx(alone.auroc_.value) and weighted.auroc_.low == pytest.approx(
        alone.auroc_.low
    )


def test_a_pair_that_was_not_purified() -> None:
    class Edited:
        terms_ = ((0,), (1,), (0, 1))
        intercept_ = 0.0

        def components(self, rows):
            rows = np.asarray(rows)
            return np.column_stack([rows[:, 0], rows[:, 1], rows[:, 0] * rows[:, 1] + 2 * rows[:, 0] ** 2])

        def decision_function(self, rows):
            return self.components(rows).sum(axis=1)

    rows = RNG.normal(size=(3000, 2))
    y = (rows[:, 0] + RNG.normal(size=3000) > 0).astype(int)
    with pytest.warns(UserWarning, match="Pair x0 × x1 still holds a curve of one of its features"):
        PatternGAM(Edited()).fit(rows, y)


def test_components_of_the_wrong_shape() -> None:
    assert "the components have shape (200, 2)" in line(PatternGAM(lambda rows: np.asarray(rows)[:, :2]).fit, X, Y)


@pytest.mark.parametrize("metric", [ima, emda, fni_emda])
def test_maps_that_say_nothing(metric) -> None:
    truth = np.zeros((3, 5), dtype=bool)
    truth[1, 1] = True
    assert 0 <= metric(np.ones((3, 5)), truth) <= 1  # a rectangle is a grid
    assert "every importance is 0" in line(metric, np.zeros((3, 5)), truth)
    assert "importance, entry (0, 0): it is -1; take absolute values first" in line(metric, -np.ones((3, 5)), truth)
    assert "no pixel is true" in line(metric, np.ones((3, 5)), np.zeros((3, 5)))
    assert "importance has shape (5, 3), truth (3, 5); give equal shapes" in line(metric, np.ones((5, 3)), truth)
    assert "missing or infinite" in line(metric, np.full((3, 5), np.nan), truth)


def test_costs_of_a_metric() -> None:
    truth = np.array([True, False, False])
    assert "give a grid, or a matrix of costs" in line(emda, np.ones(3), truth)
    assert "give a matrix of (3, 3)" in line(emda, np.ones(3), truth, cost=np.ones((2, 2)))
    assert "choose euclidean or manhattan" in line(emda, np.ones((1, 3)), truth[None], cost="cosine")
    assert emda(np.ones(3), truth, cost=np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])) == pytest.approx(0.5)


def test_images_out_of_bounds() -> None:
    assert "give a multiple of 4" in line(make_xai_tris, n=41)
    assert "choose linear, multiplicative or xor" in line(make_xai_tris, "rings")
    assert "alpha is 2" in line(make_xai_tris, alpha=2.0)
