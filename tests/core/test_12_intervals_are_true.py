"""Every interval method covers what it says, is never closed, and its name says how it was made.

How often each covers is simulated in ``tests/statistics`` and, at full size, in ``tests/soak``; here no method may be
missing from those lists.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import answerable.statistics as ours
from answerable.statistics import Interval
from tests.statistics import coverage
from tests.statistics.coverage import Case, cases, sampling_error

# What a reader must find in the name of each method's intervals.
NAMES = {
    "auroc_difference_interval": "DeLong interval of paired AUROCs",
    "auroc_interval": "DeLong interval",
    "average_precision_interval": "influence-function interval",
    "bootstrap_interval": "bootstrap, 100 resamples",
    "clopper_pearson_interval": "Clopper-Pearson interval",
    "difference_of_means_interval": "Welch t interval",
    "difference_of_proportions_interval": "Newcombe hybrid score interval",
    "f1_interval": "Wilson interval of the Jaccard index, as F1",
    "influence_interval": "t interval of influence scores",
    "kendall_interval": "influence-function interval of Kendall's tau-b",
    "mean_interval": "t interval",
    "median_interval": "order-statistic interval",
    "median_of_splits": "t interval of influence scores, median of 5 splits",
    "paired_difference_interval": "t interval of paired differences",
    "paired_difference_of_proportions_interval": "Bonett-Price interval of paired proportions",
    "quantile_interval": "order-statistic interval",
    "simultaneous_intervals": "simultaneous interval of 4 estimates, multiplier bootstrap",
    "spearman_interval": "influence-function interval of Spearman's rho",
    "tpr_at_fpr_interval": "order-statistic and Clopper-Pearson interval of TPR",
    "wilson_interval": "Wilson interval",
}
WITHOUT_SPREAD = "95 % bound from 5 equal values"
# Held to the two methods of one column or one statistic, and to their own law, below.
HELD_OTHERWISE = {"auroc_intervals", "bootstrap_intervals", "false_alarm_interval"}
# A spread over seeds, splits or calibration sets is not called confidence.
NEVER = ("confidence", "credible", "error bar", "±")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Interval]]:
    """Every interval that the coverage cases make from here on, by the name of its method."""
    found: dict[str, list[Interval]] = defaultdict(list)

    def recorded(name: str, method: Callable[..., object]) -> Callable[..., object]:
        def make(*args: object, **options: object) -> object:
            result = method(*args, **options)
            found[name] += [result] if isinstance(result, Interval) else result  # type: ignore[operator]
            return result

        return make

    for name in NAMES:
        monkeypatch.setattr(coverage, name, recorded(name, getattr(ours, name)))
    return found


def drawn(case: Case, repeats: int, seed: int) -> list[list[Interval]]:
    rng = np.random.default_rng(seed)
    return [case.draw(rng) for _ in range(repeats)]


def test_every_exported_method_is_simulated(made: dict[str, list[Interval]]) -> None:
    exported = {name for name in ours.__all__ if name.endswith(("_interval", "_intervals", "_splits"))}
    assert exported == NAMES.keys() | HELD_OTHERWISE
    for case in cases(resamples=100):
        drawn(case, 1, seed=0)
    assert made.keys() == NAMES.keys()


def test_a_name_says_what_the_interval_is(made: dict[str, list[Interval]]) -> None:
    for case in cases(resamples=100):
        drawn(case, 2, seed=1)
    for name, intervals in made.items():
        methods = {interval.method for interval in intervals}
        assert any(NAMES[name] in method for method in methods), name
        for method in methods:
            assert method.startswith("95 % ")
            assert NAMES[name] in method or method == WITHOUT_SPREAD, name
            assert not [word for word in NEVER if word in method.lower()]
    assert ours.false_alarm_interval(99, 0.05).method == "95 % range over calibration sets"


def test_together_they_cover_and_none_is_closed(seed: int) -> None:
    """All laws at once, n = 5 and proportions 0, 0.01 and 1 among them: the mean over methods of the share covered."""
    repeats, covered = 8, []
    for case in cases(resamples=100):
        for intervals in drawn(case, repeats, seed):
            assert all(each.low < each.high for each in intervals), case.name
            covered.append(all(each.low <= case.truth <= each.high for each in intervals))
    assert np.mean(covered) > 0.93 - 4 * sampling_error(0.93, len(covered))


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(4)
    labels, scores = rng.random(60) < 0.4, rng.normal(size=(60, 3))
    together = ours.auroc_intervals(labels, scores)
    assert together == [ours.auroc_interval(labels, column) for column in scores.T]

    def both_moments(x: np.ndarray) -> np.ndarray:
        return np.array([x.mean(), (x**2).mean()])

    sample, options = rng.normal(size=40), {"seed": 1, "resamples": 200}
    assert ours.bootstrap_intervals(both_moments, sample, **options) == [
        ours.bootstrap_interval(lambda x, k=k: both_moments(x)[k], sample, **options) for k in (0, 1)
    ]


def test_the_range_over_calibration_sets_is_that_of_its_law() -> None:
    n, alpha = 199, 0.05
    interval = ours.false_alarm_interval(n, alpha)
    # The calibration set's k-th largest score is the threshold; of uniform scores, 1 minus it is Beta distributed.
    law = stats.beta(10, 190)
    assert (interval.low, interval.high) == pytest.approx(law.ppf([0.025, 0.975]), rel=1e-9)
    assert interval.value == pytest.approx(law.mean(), rel=1e-12)
