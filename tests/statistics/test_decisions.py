"""Decisions from scores: by counting, by simulation, and what is left undecided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.errors import BadInput
from answerable.statistics import Calibration, benjamini_hochberg, conformal_p_values


def test_worked_by_hand() -> None:
    """19 scores 1 to 19 at alpha = 0.05: only what lies above all of them is flagged."""
    found = Calibration(np.arange(1, 20), alpha=0.05).decide([19.0, 19.5, -3.0, np.nan])
    assert found.words == ["not flagged", "flagged", "not flagged", "undecided"]
    assert found.p_values[:3].tolist() == [2 / 20, 1 / 20, 1.0]
    assert found.reasons == ["", "", "", "there is no score"]
    assert found.of_pools[0].threshold == 19
    assert found.pools.tolist() == [0, 0, 0, -1]


@given(
    st.lists(st.integers(0, 30), min_size=19, max_size=60),
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
    st.sampled_from([0.05, 0.1, 0.25]),
)
def test_words_p_values_and_thresholds_agree(calibration: list[int], scores: list[int], alpha: float) -> None:
    found = Calibration(calibration, alpha=alpha, least=1).decide(scores)
    assert found.p_values.tolist() == conformal_p_values(calibration, scores).tolist()
    threshold = found.of_pools[0].threshold
    assert [word == "flagged" for word in found.words] == [score > threshold for score in scores]
    assert found.adjusted.tolist() == benjamini_hochberg(found.p_values).tolist()


def test_a_batch_is_held_to_alpha_as_a_whole() -> None:
    calibration = Calibration(np.arange(1, 200), alpha=0.05)
    scores = [195.5, *range(1, 100)]  # one p-value of 0.025 among a hundred
    assert calibration.decide(scores).words.count("flagged") == 1
    batch = calibration.decide(scores, control="batch")
    assert batch.words.count("flagged") == 0
    assert batch.adjusted[0] == pytest.approx(1.0)


def test_false_alarms_over_two_thousand_calibrations(seed: int) -> None:
    """n = 99, alpha = 0.05: the rate averages 0.05. Scores are even, so a threshold's rate is known, not estimated."""
    rng = np.random.default_rng(seed)
    rates = [1 - Calibration(rng.random(99), alpha=0.05, least=1).pools[0].threshold for _ in range(2000)]
    assert np.mean(rates) == pytest.approx(0.05, abs=0.004)
    assert np.mean(rates) == pytest.approx(0.05, abs=4 * 0.0217 / np.sqrt(2000))  # Beta(5, 95)


def by_length(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that fall with length and spread with its root, as summed log-ratios of human texts do."""
    lengths = rng.integers(50, 500, n).astype(float)
    return rng.normal(-0.1 * lengths, np.sqrt(lengths)), lengths


def test_by_length_every_bin_keeps_alpha_where_one_threshold_does_not(seed: int) -> None:
    rng, alpha, repeats = np.random.default_rng(seed), 0.05, 150
    edges = (100.0, 200.0, 400.0)
    flags = np.zeros((2, 4))
    totals = np.zeros(4)
    for _ in range(repeats):
        (known, known_lengths), (asked, lengths) = by_length(rng, 800), by_length(rng, 400)
        bins = np.searchsorted(edges, lengths, side="right")
        ours = Calibration(known, alpha=alpha, covariate=known_lengths, edges=edges, least=80)
        pooled = Calibration(known, alpha=alpha)
        for row, words in enumerate((ours.decide(asked, covariate=lengths).words, pooled.decide(asked).words)):
            flags[row] += np.bincount(bins[np.array(words) == "flagged"], minlength=4)
        totals += np.bincount(bins, minlength=4)
    rates = flags / totals
    # Both the bin of about 80 scores and the texts asked about add their error.
    noise = 4 * np.sqrt(alpha * (1 - alpha) * (1 / totals + 1 / (80 * repeats)))
    assert (rates[0] <= alpha + noise).all()
    assert rates[1].max() > 2 * alpha  # the short texts


def test_small_bins_are_joined_with_their_neighbours() -> None:
    lengths = [60] * 30 + [150] * 120 + [250] * 30 + [450] * 90
    found = Calibration(np.arange(270.0), alpha=0.1, covariate=lengths, edges=(100, 200, 400), least=100)
    assert [(pool.bins, pool.n, pool.low, pool.high) for pool in found.pools] == [
        ((0, 1), 150, 60, 150),
        ((2, 3), 120, 250, 450),
    ]


def test_kinds_are_never_joined() -> None:
    kinds = ["news"] * 40 + ["poem"] * 25 + ["law"] * 5
    scores = np.r_[np.arange(40), 100 + np.arange(25), np.arange(5)]
    calibration = Calibration(scores, alpha=0.05, kinds=kinds, least=100)
    found = calibration.decide([90.0, 90.0, 90.0, 90.0], kinds=["news", "poem", "law", "tale"])
    assert found.words == ["flagged", "not flagged", "undecided", "undecided"]
    assert found.reasons[2] == "5 calibration scores of its kind; alpha = 0.05 needs 19"
    assert found.reasons[3] == "nothing of kind 'tale' was calibrated"


def test_outside_the_calibrated_range_nothing_is_decided() -> None:
    lengths = np.r_[np.full(100, 120), np.full(100, 450)]
    calibration = Calibration(np.arange(200.0), alpha=0.05, covariate=lengths, edges=(100, 200, 400))
    found = calibration.decide([1e6] * 4, covariate=[119, 120, 300, 451])
    assert found.words == ["undecided", "flagged", "undecided", "undecided"]
    assert found.reasons[0] == "length 119 is outside the calibrated range, 120 to 450"
    assert found.reasons[2] == "nothing near length 300 was calibrated"
    assert np.isnan(found.p_values[[0, 2, 3]]).all()
    assert np.isnan(found.adjusted[[0, 2, 3]]).all()


def test_reasons_of_the_caller_come_first() -> None:
    found = Calibration(np.arange(50.0), alpha=0.1).decide([99.0, 99.0], undecided=["too short", ""])
    assert (found.words, found.reasons) == (["undecided", "flagged"], ["too short", ""])


def test_nothing_asked_is_nothing_decided() -> None:
    assert Calibration(np.arange(50.0), alpha=0.1).decide([]).words == []


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: Calibration(np.arange(98.0), alpha=0.01), "98 calibration scores are too few for alpha = 0.01; give at least 99"),
        (lambda: Calibration([1, np.nan], alpha=0.5), "calibration, row 2: the value is nan"),
        (lambda: Calibration([1, 2], alpha=1.5), "alpha is 1.5"),
        (lambda: Calibration([1, 2], alpha=0.5, edges=(2, 1)), "the edges do not rise"),
        (lambda: Calibration([1, 2], alpha=0.5, edges=3), "edges: the shape is ()"),
        (lambda: Calibration([1, 2], alpha=0.5, covariate=[1]), "there are 1 and 2 rows"),
        (lambda: Calibration([1, 2], alpha=0.5, kinds=["a"]), "kinds: the shape is"),
        (lambda: Calibration([1, 2], alpha=0.5).decide([[1]]), "the shape is (1, 1)"),
        (lambda: Calibration([1, 2], alpha=0.5).decide([1], kinds=["a", "b"]), "there are 2 and 1 rows"),
        (lambda: Calibration([1, 2], alpha=0.5).decide([1], undecided=[]), "there are 0 and 1 rows"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(call, line) -> None:
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)


def test_an_edge_is_the_first_of_its_bin() -> None:
    found = Calibration(np.arange(40.0), alpha=0.1, covariate=[99.0] * 20 + [100.0] * 20, edges=(100,), least=20)
    assert [(pool.bins, pool.low, pool.high) for pool in found.pools] == [((0, 0), 99, 99), ((1, 1), 100, 100)]
    assert found.decide([19.5, 19.5], covariate=[99, 100]).words == ["flagged", "not flagged"]
