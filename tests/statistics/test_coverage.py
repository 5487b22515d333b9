"""Every interval holds the truth as often as it says, small enough for each run; ``tests/soak`` does it at full size."""

import numpy as np
import pytest

from tests.statistics.coverage import Case, cases, covered, sampling_error

REPEATS = 250


@pytest.mark.parametrize("case", cases(resamples=200), ids=lambda case: case.name)
def test_an_interval_covers_what_it_says(case: Case, seed: int):
    share = covered(case, REPEATS, seed)
    assert share > 0.93 - 4 * sampling_error(0.93, REPEATS)
    if not case.conservative:
        assert share < 0.97 + 4 * sampling_error(0.97, REPEATS)


def test_no_interval_closes():
    rng = np.random.default_rng(0)
    for case in cases(resamples=100):
        for interval in case.draw(rng):
            assert interval.low < interval.high, case.name
            assert interval.low <= interval.value <= interval.high, case.name
            assert interval.level == 0.95
            assert interval.method.startswith("95 % ")
