"""Adjusted p-values against statsmodels and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from answerable.errors import BadInput
from answerable.statistics import adjusted_over, benjamini_hochberg, benjamini_yekutieli, holm

THEIRS = {benjamini_hochberg: "fdr_bh", benjamini_yekutieli: "fdr_by"}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_as_statsmodels_has_it(p_values):
    for ours, theirs in THEIRS.items():
        assert ours(p_values) == pytest.approx(multipletests(p_values, method=theirs)[1], abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_as_the_paper_writes_it(p_values):
    """The smallest level at which the step-down procedure rejects: it stops at the first p above level / remaining."""
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for step, row in enumerate(np.argsort(p_values, kind="stable")):
            if p_values[row] * (len(p_values) - step) > level:
                break
            rejected.add(row)
        assert set(np.flatnonzero(adjusted <= level)) == rejected


def test_holm_as_statsmodels_has_it():
    p_values = np.random.default_rng(1).random(40) ** 3
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_worked_by_hand():
    p_values = [0.04, 0.01, 0.03]
    assert holm(p_values) == pytest.approx([0.06, 0.03, 0.06])  # 3 x .01, 2 x .03, then no less than that
    assert benjamini_hochberg(p_values) == pytest.approx([0.04, 0.03, 0.04])  # 3/1 x .01, 3/2 x .03 down to .04
    assert adjusted_over({"b": 0.04, "a": 0.01}, "holm") == pytest.approx({"b": 0.04, "a": 0.02})
    assert adjusted_over({}, "holm") == {}


def test_false_discoveries_are_kept(seed):
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(500):
        p_values = np.concatenate([rng.random(15), rng.random(5) * 1e-3])
        rejected = benjamini_hochberg(p_values) <= 0.1
        shares.append(rejected[:15].sum() / max(rejected.sum(), 1))
    assert np.mean(shares) < 0.1 * 15 / 20 + 4 * np.std(shares) / np.sqrt(500)


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: holm([0.1, np.nan]), "p_values, row 2: the value is nan"),
        (lambda: benjamini_hochberg([0.1, 1.2]), "p_values, row 2: the p-value is 1.2"),
        (lambda: adjusted_over({"x": float("nan")}, "holm"), "x: the p-value is nan"),
        (lambda: adjusted_over({"x": 0.1}, "bonferoni"), "the adjustment is 'bonferoni'; choose one of"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
