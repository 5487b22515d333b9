"""Permutation tests: exact where all arrangements can be listed, else Monte Carlo with (b + 1) / (m + 1).

The count of the observed arrangement among its own resamples (Phipson and Smyth 2010) is what keeps a Monte Carlo
p-value valid, and above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics.inputs import Floats, Ints, count_of, generator, numbers_of, same_length

Alternative = Literal["greater", "less", "two-sided"]
_SCIPY_ALTERNATIVES = ("greater", "less", "two-sided")


class PermutationTest(NamedTuple):
    """A statistic against its permutation null.

    Attributes
    ----------
    statistic : on the data as they are
    p_value : probability, under the null, of a statistic at least as extreme; twice the smaller tail if two-sided
    null : (m,) the statistic on the arrangements
    exact : whether ``null`` holds every arrangement once
    method : name of the test, with how many arrangements stand behind it
    """

    statistic: float
    p_value: float
    null: Floats
    exact: bool
    method: str


def two_sample_test(
    statistic: Callable[..., Any],
    first: ArrayLike,
    second: ArrayLike,
    *,
    seed: int,
    resamples: int = 9999,
    alternative: Alternative = "two-sided",
) -> PermutationTest:
    """Are two independent samples from one distribution?

    Parameters
    ----------
    statistic : called with two arrays and ``axis``, as ``lambda a, b, axis: a.mean(axis) - b.mean(axis)``
    first, second : (n,) and (m,) float64, n, m >= 2
    seed : whole number of at least 0; required, unused where the test is exact
    resamples : arrangements drawn; where there are no more than this they are listed instead
    alternative : which statistics count as extreme

    Raises
    ------
    BadInput : a value missing (its row, counted from 1, is named), no seed, or a parameter outside its range
    """
    one, other = numbers_of(first, "first", least=2), numbers_of(second, "second", least=2)
    arrangements = math.comb(len(one) + len(other), len(one))
    return _tested(statistic, (one, other), "independent", arrangements, seed, resamples, alternative, "two-sample")


def sign_flip_test(
    differences: ArrayLike, *, seed: int, resamples: int = 9999, alternative: Alternative = "two-sided"
) -> PermutationTest:
    """Is a mean 0, if each of its values might as well have had the other sign?

    Parameters
    ----------
    differences : (n,) float64, n >= 2, one per pair
    seed, resamples, alternative : as in `two_sample_test`

    Raises
    ------
    BadInput : as `two_sample_test`
    """

    def mean(values: Floats, axis: int) -> Floats:
        return values.mean(axis=axis)

    sample = numbers_of(differences, "differences", least=2)
    return _tested(mean, (sample,), "samples", 2 ** len(sample), seed, resamples, alternative, "sign-flip")


def association_test(
    statistic: Callable[..., Any],
    first: ArrayLike,
    second: ArrayLike,
    *,
    seed: int,
    resamples: int = 9999,
    alternative: Alternative = "two-sided",
) -> PermutationTest:
    """Do two columns have nothing to do with each other?

    Parameters
    ----------
    statistic : called with two arrays of which the first may have more axes in front, and ``axis``; returns one number
        each
    first, second : (n,) float64, n >= 2; ``first`` is permuted against ``second``
    seed, resamples, alternative : as in `two_sample_test`

    Raises
    ------
    BadInput : as `two_sample_test`
    """
    one, other = numbers_of(first, "first", least=2), numbers_of(second, "second", least=2)
    same_length(one, other, "first and second")

    def against(permuted: Floats, axis: int) -> Any:
        return statistic(permuted, other, axis=axis)

    return _tested(against, (one,), "pairings", math.factorial(len(one)), seed, resamples, alternative, "association")


def permutation_null(statistic: Callable[[Ints], ArrayLike], n_rows: int, *, seed: int, resamples: int = 999) -> Floats:
    """Several statistics on random permutations of the rows.

    Parameters
    ----------
    statistic : called with a permutation of 0..n_rows-1, returns (k,)
    n_rows : number of rows, at least 2
    seed : whole number of at least 0; required
    resamples : permutations drawn, at least 1

    Returns
    -------
    (resamples, k) float64; give it to `permutation_p_values` or `maximum_p_values`

    Raises
    ------
    BadInput : no seed, or a parameter outside its range
    """
    rng = generator(seed)
    n_rows, resamples = count_of(n_rows, "n_rows", least=2), count_of(resamples, "resamples", least=1)
    return np.stack([np.atleast_1d(np.asarray(statistic(rng.permutation(n_rows)), float)) for _ in range(resamples)])


def permutation_p_values(observed: ArrayLike, null: ArrayLike) -> Floats:
    """The share (b + 1) / (m + 1) for each of k statistics, where b of m resamples are at least as large.

    Parameters
    ----------
    observed : (k,) float64; large is extreme, so give absolute values for a two-sided test
    null : (m, k) float64, from `permutation_null`

    Returns
    -------
    (k,) float64, each at least 1 / (m + 1)

    Raises
    ------
    BadInput : shapes that do not fit, or a value missing
    """
    values, resampled = _observed_and_null(observed, null)
    return (1 + (resampled >= values - _rounding(values)).sum(axis=0)) / (len(resampled) + 1)


def maximum_p_values(observed: ArrayLike, null: ArrayLike) -> Floats:
    """As `permutation_p_values`, adjusted for k looks: each statistic against the maximum of every resample.

    Any false rejection at all is then no more probable than the level (Westfall and Young 1993, single step). The
    statistics must be on one scale, since the widest of them sets the maximum.
    """
    values, resampled = _observed_and_null(observed, null)
    maximum = resampled.max(axis=1)[:, None]
    return (1 + (maximum >= values - _rounding(values)).sum(axis=0)) / (len(resampled) + 1)


def _observed_and_null(observed: ArrayLike, null: ArrayLike) -> tuple[Floats, Floats]:
    values, resampled = numbers_of(observed, "observed"), numbers_of(null, "null", ndim=2)
    if resampled.shape[1] != len(values):
        raise BadInput(f"null has {resampled.shape[1]} columns", where="null", mend=f"it needs {len(values)}")
    return values, resampled


def _rounding(values: Floats) -> Floats:
    # Sums in another order differ in their last digits: an arrangement that ties with the data must count as a tie.
    return 1e-12 * np.abs(values)


def _tested(
    statistic: Callable[..., Any],
    samples: tuple[Floats, ...],
    kind: Literal["independent", "samples", "pairings"],
    arrangements: int,
    seed: int,
    resamples: int,
    alternative: Alternative,
    name: str,
) -> PermutationTest:
    from scipy.stats import permutation_test  # slow to import, and only this needs it

    if alternative not in _SCIPY_ALTERNATIVES:
        raise BadInput(f"alternative is {alternative!r}", mend=f"choose one of {', '.join(_SCIPY_ALTERNATIVES)}")
    found = permutation_test(
        samples,
        statistic,
        permutation_type=kind,
        vectorized=True,
        n_resamples=count_of(resamples, "resamples", least=1),
        batch=max(1, (1 << 21) // sum(map(len, samples))),
        alternative=alternative,
        rng=generator(seed),
    )
    exact = arrangements <= resamples
    behind = f"all {arrangements} arrangements" if exact else f"{resamples} random arrangements"
    return PermutationTest(
        float(found.statistic),
        float(found.pvalue),
        np.asarray(found.null_distribution, dtype=np.float64),
        exact,
        f"{name} permutation test, {alternative}, {behind}",
    )
