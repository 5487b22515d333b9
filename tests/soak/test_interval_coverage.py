"""Coverage of every interval at full size, in one table."""

import pytest

from tests.statistics.coverage import cases, covered, sampling_error

REPEATS = 10_000


@pytest.mark.soak
def test_every_interval_covers_what_it_says(capsys):
    rows = [(case, covered(case, REPEATS, seed=k)) for k, case in enumerate(cases(resamples=1000))]
    wrong = [
        case.name
        for case, share in rows
        if share < 0.93 - 4 * sampling_error(0.93, REPEATS)
        or (not case.conservative and share > 0.97 + 4 * sampling_error(0.97, REPEATS))
    ]
    with capsys.disabled():
        print(f"\n{'interval, nominal 95 %':<62}{'covered':>9}   {REPEATS} samples each")
        for case, share in rows:
            print(f"{case.name:<62}{100 * share:>8.1f}%   {'conservative' if case.conservative else ''}".rstrip())
    assert wrong == []
