"""p-values adjusted for how many tests there are: Benjamini and Hochberg (1995), Benjamini and Yekutieli (2001), Holm
(1979).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from answerable.errors import BadInput
from answerable.statistics.inputs import Floats, numbers_of

Adjustment = Literal["benjamini-hochberg", "benjamini-yekutieli", "holm"]


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Adjusted p-values; rejecting those at most q keeps the expected share of false rejections at most q.

    Holds for independent tests and for positively dependent ones.

    Parameters
    ----------
    p_values : (n,) float64 between 0 and 1, n >= 1

    Returns
    -------
    (n,) float64 between 0 and 1, in the order given

    Raises
    ------
    BadInput : a p-value missing or outside [0, 1]; its row (counted from 1) is named
    """
    return _false_discovery(p_values, "bh")


def benjamini_yekutieli(p_values: ArrayLike) -> Floats:
    """As `benjamini_hochberg`, for tests that depend on each other in any way."""
    return _false_discovery(p_values, "by")


def holm(p_values: ArrayLike) -> Floats:
    """Adjusted p-values; rejecting those at most a makes any false rejection at all no more probable than a.

    Holds whatever the dependence between tests. Parameters, result and errors are those of `benjamini_hochberg`.
    """
    p = _p_values(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def adjusted_over(p_values: Mapping[str, float], adjustment: Adjustment) -> dict[str, float]:
    """Adjust the named p-values of a whole dossier at once.

    Parameters
    ----------
    p_values : p-value by name of its test
    adjustment : which method; say it beside the numbers

    Returns
    -------
    dict : adjusted p-value by name, in the order given; empty for no tests

    Raises
    ------
    BadInput : a p-value missing or outside [0, 1], by the name of its test; an unknown adjustment
    """
    methods: dict[str, Callable[[ArrayLike], Floats]] = {
        "benjamini-hochberg": benjamini_hochberg,
        "benjamini-yekutieli": benjamini_yekutieli,
        "holm": holm,
    }
    if adjustment not in methods:
        raise BadInput(f"the adjustment is {adjustment!r}", mend=f"choose one of {', '.join(methods)}")
    if not p_values:
        return {}
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise BadInput(
                f"the p-value is {p:g}", where=name, mend="leave the test out, and say that it could not run"
            )
    adjusted = methods[adjustment](list(p_values.values()))
    return dict(zip(p_values, adjusted.tolist(), strict=True))


def _false_discovery(p_values: ArrayLike, method: Literal["bh", "by"]) -> Floats:
    from scipy.stats import false_discovery_control  # slow to import, and only this needs it

    return np.asarray(false_discovery_control(_p_values(p_values), method=method), dtype=np.float64)


def _p_values(p_values: ArrayLike) -> Floats:
    p = numbers_of(p_values, "p_values")
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise BadInput(f"the p-value is {p[row]:g}", where=f"p_values, row {row + 1}", mend="it must lie in [0, 1]")
    return p
