"""The flow fitted to features: it finds what the raw score misses, and says when nothing was pushed away."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from answerable.errors import BadInput
from answerable.provenance.generated_images import Features, FlowConsistencyDetector, dissimilarities
from answerable.statistics import auroc_interval
from reproductions.generated_images import fitted_to, toy


def pairs(n: int = 12, d: int = 6) -> Features:
    source = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return Features(source, source + np.float32(0.1), np.arange(n) % 2, [""] * n)


def test_on_a_manifold_the_flow_finds_what_the_raw_score_misses() -> None:
    made = toy(n=1000)
    labels = made.asked.labels
    raw = auroc_interval(labels, dissimilarities(made.asked.source, made.asked.changed)).value
    assert 0.65 < raw < 0.75
    detector = fitted_to(made.fitted, steps=180)
    assert auroc_interval(labels, detector.score_samples(made.asked)).value > 0.95
    assert detector.history_[-1].total < detector.history_[0].total
    assert detector.pushed_away_ == 1000


def test_the_same_state_gives_the_same_scores_and_another_does_not() -> None:
    feats = pairs()
    found = [
        FlowConsistencyDetector(hidden=8, random_state=state).fit(feats).score_samples(feats) for state in (0, 0, 1)
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_the_total_is_made_of_its_parts() -> None:
    feats = pairs()
    detector = FlowConsistencyDetector(hidden=8, tau=2.0).fit(feats)
    parts = detector.score_parts(feats)
    by_hand = [1 / (1 + math.exp(-e / 2)) - c / 2 for e, c in zip(parts.energy, parts.cosine)]
    assert parts.total == pytest.approx(by_hand, abs=1e-5)


def test_ranks_take_both_parts_alike() -> None:
    feats = pairs()
    parts = FlowConsistencyDetector(hidden=8, combine="ranks").fit(feats).score_parts(feats)
    n = len(feats.source)
    energy, cosine = (np.array([np.sum(v <= one) / n for one in v]) for v in (parts.energy, -parts.cosine))
    assert parts.total == pytest.approx((energy + cosine) / 2)


def test_without_fakes_it_says_that_nothing_was_pushed_away() -> None:
    feats = pairs()._replace(labels=np.zeros(12, np.int64))
    with pytest.warns(UserWarning, match="nothing was pushed away"):
        detector = FlowConsistencyDetector(hidden=8).fit(feats)
    assert detector.pushed_away_ == 0


@pytest.mark.parametrize(
    "change, line",
    [
        ({"labels": np.ones(12, np.int64)}, "all images are labelled generated"),
        ({"source": np.full((12, 6), np.nan, np.float32)}, "a feature is not finite"),
        ({"source": np.zeros((12, 5), np.float32)}, "the shapes are"),
        ({"source": np.zeros((12, 2, 6), np.float32), "changed": np.zeros((12, 2, 6), np.float32)}, "one view each"),
    ],
)
def test_features_it_cannot_be_fitted_to_are_refused(change: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        FlowConsistencyDetector(hidden=4).fit(pairs()._replace(**change))


def test_a_loss_that_runs_away_is_one_line() -> None:
    feats = pairs()
    huge = feats._replace(source=feats.source * np.float32(1e30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(BadInput, match="the loss is not finite; lower lr"):
            FlowConsistencyDetector(hidden=4).fit(huge)


@pytest.mark.parametrize("options", [{"lr": 0}, {"tau": -1}, {"epochs": 0}, {"fake_sign": "neither"}, {"margin": "3d"},
                                     {"combine": "sum"}, {"batch_size": 0}])  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(options))} is "):
        FlowConsistencyDetector(**options)  # type: ignore[arg-type]


def test_it_has_to_be_fitted_and_asked_about_features_of_its_size() -> None:
    with pytest.raises(BadInput, match="was not fitted"):
        FlowConsistencyDetector().score_samples(pairs())
    with pytest.raises(BadInput, match="5 features an image; the flow was fitted to 6"):
        FlowConsistencyDetector(hidden=4).fit(pairs()).score_samples(pairs(d=5))
