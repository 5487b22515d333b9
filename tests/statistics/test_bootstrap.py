"""Bootstrap intervals against scipy's, Student's, and themselves."""

import numpy as np
import pytest
from scipy import stats

from answerable.errors import BadInput
from answerable.statistics import bootstrap_interval, bootstrap_intervals, bootstrap_replicates, mean_interval

SAMPLE = np.random.default_rng(3).exponential(size=80)


def mean(x):
    return x.mean(axis=-1)


def test_as_scipy_has_it(seed):
    """With 80 rows BCa's upper end lies above Student's, where the hull is scipy's own."""
    ours = bootstrap_interval(mean, SAMPLE, seed=seed, resamples=20_000, vectorized=True)
    theirs = stats.bootstrap((SAMPLE,), np.mean, n_resamples=20_000, rng=np.random.default_rng(seed + 1))
    # The end is a quantile of 20,000 draws: its error is sqrt(p (1 - p) / 20,000) over the density, p about 0.98.
    error = np.sqrt(2 * 0.02 / 20_000) / 0.05 * SAMPLE.std() / np.sqrt(80)
    assert ours.value == pytest.approx(SAMPLE.mean())
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=4 * error)
    assert ours.low < theirs.confidence_interval.low


def test_never_narrower_than_a_t_interval(seed):
    for method in ("BCa", "percentile"):
        ours = bootstrap_interval(mean, SAMPLE[:5], seed=seed, resamples=4000, method=method, vectorized=True)
        student = mean_interval(SAMPLE[:5])
        error = 4 / np.sqrt(2 * 4000)  # of a standard deviation of 4000 draws, relative
        assert student.value - ours.low >= (1 - error) * (student.value - student.low)
        assert ours.high - student.value >= (1 - error) * (student.high - student.value)


def test_same_seed_same_interval_however_it_is_called():
    columns = SAMPLE, SAMPLE[::-1]

    def both(x, y):
        return np.stack([x.mean(axis=-1), (x * y).mean(axis=-1)], axis=-1)

    at_once = bootstrap_intervals(both, *columns, seed=1, resamples=300, vectorized=True)
    one_by_one = bootstrap_intervals(both, *columns, seed=1, resamples=300)
    swapped = bootstrap_intervals(lambda x, y: both(x, y)[..., ::-1], *columns, seed=1, resamples=300, vectorized=True)
    for k in range(2):
        assert at_once[k][1:3] == pytest.approx(one_by_one[k][1:3], rel=1e-12)
        assert at_once[k] == swapped[1 - k]
    alone = bootstrap_interval(mean, SAMPLE, seed=1, resamples=300, vectorized=True)
    assert at_once[0] == alone
    assert alone != bootstrap_interval(mean, SAMPLE, seed=2, resamples=300, vectorized=True)


def test_equal_values_are_not_certainty():
    for method in ("BCa", "percentile"):
        assert bootstrap_interval(np.mean, np.full(5, 0.1), seed=0, method=method)[1:3] == (-np.inf, np.inf)
        bounded = bootstrap_interval(np.mean, np.zeros(5), seed=0, method=method, bounds=(0, 1))
        assert bounded[1:3] == pytest.approx((0, 0.521824), abs=1e-6)
    assert "5 equal values" in bounded.method


def test_clusters_and_strata_are_what_is_drawn(seed):
    clusters = np.repeat(np.arange(8), [1, 2, 3, 4, 1, 2, 3, 4])
    rows = np.arange(20.0)

    def whole_clusters(x):
        counts = np.bincount(x.astype(int), minlength=20)
        return float(all(np.ptp(counts[clusters == c]) == 0 for c in range(8)))

    assert bootstrap_replicates(whole_clusters, rows, seed=seed, resamples=50, clusters=clusters).min() == 1
    strata = np.repeat(["a", "b"], [6, 14])
    sizes = bootstrap_replicates(
        lambda x: (x < 6).sum(axis=-1)[:, None], rows, seed=seed, vectorized=True, strata=strata
    )
    assert (sizes == 6).all()
    as_rows = bootstrap_interval(mean, SAMPLE, seed=1, vectorized=True)
    as_clusters = bootstrap_interval(mean, SAMPLE, seed=1, clusters=np.arange(80))
    assert as_rows[1:3] == pytest.approx(as_clusters[1:3])
    assert "of clusters" in as_clusters.method


def test_many_rows_are_left_out_in_groups():
    many = np.random.default_rng(0).exponential(size=3000)
    ours = bootstrap_interval(mean, many, seed=0, resamples=1000, vectorized=True)
    student = mean_interval(many)
    assert ours[1:3] == pytest.approx(student[1:3], abs=0.15 * (student.high - student.low))


def test_bounds_hold():
    interval = bootstrap_interval(np.mean, [0.9, 0.95, 1.0], seed=0, bounds=(0, 1))
    assert interval.high == 1
    assert interval.low > 0


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda: bootstrap_interval(np.mean, [1.0], seed=0), "there are 1 rows; give at least 2 to resample"),
        (lambda: bootstrap_interval(np.mean, [1, np.nan], seed=0), "column 1, row 2: the value is nan"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=None), "seed is None; it must be a whole number"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=0, resamples=5), "resamples is 5"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=0, method="bca"), "method is 'bca'"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=0, level=2), "level is 2"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=0, bounds=(1, 0)), "bounds are (1, 0)"),
        (lambda: bootstrap_interval(np.mean, [5, 6], seed=0, bounds=(0, 1)), "the statistic is 5.5"),
        (lambda: bootstrap_interval(lambda x, y: 0, [1, 2], [1], seed=0), "columns have [1, 2] rows"),
        (lambda: bootstrap_interval(np.mean, seed=0), "there are no columns"),
        (lambda: bootstrap_interval(np.mean, [1, 2, 3], seed=0, strata=[0, 0, 1]), "1 rows in a stratum of 2"),
        (lambda: bootstrap_interval(np.mean, [1, 2], seed=0, clusters=[0, 0]), "there are 1 clusters"),
        (
            lambda: bootstrap_interval(np.mean, [1, 2, 3, 4], seed=0, clusters=[0, 0, 1, 1], strata=[0, 1, 0, 1]),
            "clusters, row 1: its cluster lies in two strata",
        ),
        (lambda: bootstrap_interval(lambda x: np.nan if x.min() > 1 else 1, [1, 2], seed=0), "the statistic is nan on"),
        (lambda: bootstrap_intervals(lambda x: x[None], [1, 2], seed=0), "the statistic has shape"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(BadInput) as error:
        call()
    assert line in str(error.value)
