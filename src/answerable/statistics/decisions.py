"""Flagged, not flagged or undecided: from scores to words with a stated false-alarm rate.

Calibration scores come from things that must not be flagged (human texts, real images, unrelated models). A thing is
compared with those of its own kind and, where a covariate such as length moves the score, with those of its own bin;
see `conformal` for what is guaranteed. Kinds are never mixed; neighbouring bins of one kind are joined until each has
``least`` scores. What the calibration says nothing about is undecided, with its reason, and never flagged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from answerable.errors import BadInput
from answerable.statistics.conformal import conformal_p_values, conformal_threshold, pooled_groups
from answerable.statistics.inputs import Floats, Ints, codes_of, count_of, numbers_of, rate_of, same_length
from answerable.statistics.multiple_testing import benjamini_hochberg

Word = Literal["flagged", "not flagged", "undecided"]
Control = Literal["each", "batch"]

LENGTH_EDGES = (50.0, 100.0, 200.0, 400.0)


class Pool(NamedTuple):
    """Calibration scores that stand together.

    kind : their kind; empty where there are no kinds
    bins : the bins joined, first and last, from 0
    low, high : least and largest covariate among them; infinite where there is none
    n : how many
    threshold : the score above which a thing is flagged; NaN where they are too few for alpha
    """

    kind: str
    bins: tuple[int, int]
    low: float
    high: float
    n: int
    threshold: float


class Decisions(NamedTuple):
    """One word for each thing asked about.

    words : flagged, not flagged or undecided
    reasons : why it is undecided; empty otherwise
    p_values : (m,) conformal p-values; NaN where undecided
    adjusted : (m,) the same after Benjamini and Hochberg over all that could be decided
    pools : (m,) number of the pool each was compared with; -1 where undecided
    of_pools : the pools
    """

    words: list[Word]
    reasons: list[str]
    p_values: Floats
    adjusted: Floats
    pools: Ints
    of_pools: list[Pool]


class Calibration:
    """Scores of things that must not be flagged, sorted into pools.

    Parameters
    ----------
    scores : (n,) float64, large is suspicious
    alpha : false-alarm rate allowed, between 0 and 1
    covariate : (n,) float64, what moves the score besides (a length in tokens); None for nothing
    kinds : (n,) labels that are calibrated apart; None for one kind
    edges : rising edges of the covariate's bins, each the first value of the next bin
    least : fewest scores of a pool; never less than ``1 / alpha - 1``
    covariate_name : what the covariate is called in a reason

    Raises
    ------
    BadInput : a score missing (its row, counted from 1, is named), columns that do not match, or no kind that has
        enough scores for alpha
    """

    def __init__(
        self,
        scores: ArrayLike,
        *,
        alpha: float,
        covariate: ArrayLike | None = None,
        kinds: ArrayLike | None = None,
        edges: Sequence[float] = LENGTH_EDGES,
        least: int = 100,
        covariate_name: str = "length",
    ) -> None:
        self.covariate = covariate_name
        self.alpha = rate_of(alpha, "alpha")
        self.needed = math.ceil(1 / self.alpha - 1 - 1e-9)
        self.edges = _rising(edges)
        self._scores = numbers_of(scores, "calibration", infinite=True)
        self._covariate = _beside(covariate, self._scores, "covariate")
        self._has_covariate = covariate is not None
        labels = np.full(len(self._scores), "") if kinds is None else np.asarray(kinds)
        self._kinds, codes = codes_of(labels, len(self._scores), "kinds")
        self.pools: list[Pool] = []
        self._members: list[Floats] = []
        self._pool_of: dict[tuple[str, int], int] = {}
        for code, kind in enumerate(self._kinds):
            self._add(str(kind), codes == code, max(count_of(least, "least", least=1), self.needed))
        if all(pool.n < self.needed for pool in self.pools):
            found = max(pool.n for pool in self.pools)
            problem = f"{found} calibration scores are too few for alpha = {self.alpha:g}"
            raise BadInput(problem, where="calibration", mend=f"give at least {self.needed}, or a larger alpha")

    def _add(self, kind: str, rows: NDArray[np.bool_], least: int) -> None:
        bins = self._bins(self._covariate[rows])
        joined = pooled_groups(bins, least, ordered=True)
        for members in dict.fromkeys(joined.values()):
            inside = np.isin(bins, np.array(members))
            scores, covariate = np.sort(self._scores[rows][inside]), self._covariate[rows][inside]
            low, high = (float(covariate.min()), float(covariate.max())) if self._has_covariate else (-np.inf, np.inf)
            threshold = conformal_threshold(scores, self.alpha) if len(scores) >= self.needed else math.nan
            numbers = [int(str(member)) for member in members]
            # An empty bin between two that were joined is theirs too.
            for number in range(numbers[0], numbers[-1] + 1):
                self._pool_of[kind, number] = len(self.pools)
            self.pools.append(Pool(kind, (numbers[0], numbers[-1]), low, high, len(scores), threshold))
            self._members.append(scores)

    def _bins(self, covariate: Floats) -> Ints:
        return np.searchsorted(self.edges, covariate, side="right").astype(np.int64)

    def decide(
        self,
        scores: ArrayLike,
        *,
        covariate: ArrayLike | None = None,
        kinds: ArrayLike | None = None,
        undecided: Sequence[str] | None = None,
        control: Control = "each",
    ) -> Decisions:
        """A word, its reason and a p-value for each of m things.

        Parameters
        ----------
        scores : (m,) float64, large is suspicious; NaN where there is none
        covariate, kinds : (m,), as in the calibration
        undecided : m reasons why a thing must not be decided; empty for those that may
        control : "each" flags a thing whose own false-alarm rate is at most alpha; "batch" flags by the adjusted
            p-values, so that at most a share alpha of all flagged is expected to be false

        Returns
        -------
        Decisions

        Raises
        ------
        BadInput : columns that do not match
        """
        asked = np.asarray(scores, dtype=np.float64)
        if asked.ndim != 1:
            raise BadInput(f"the shape is {asked.shape}", where="scores", mend="give one score for each")
        known = np.nan_to_num(asked, nan=0.0)
        beside = _beside(covariate, known, "covariate")
        labels = [""] * len(asked) if kinds is None else [str(kind) for kind in np.asarray(kinds)]
        same_length(labels, asked, "kinds and scores")
        reasons = list(undecided) if undecided is not None else [""] * len(asked)
        same_length(reasons, asked, "undecided and scores")
        p_values, pools = np.full(len(asked), np.nan), np.full(len(asked), -1)
        for row, (score, number, bin_) in enumerate(zip(asked, beside, self._bins(beside), strict=True)):
            pool = self._pool_of.get((labels[row], int(bin_)), -1)
            missing = "there is no score" if math.isnan(score) else ""
            reasons[row] = reasons[row] or missing or self._why_not(labels[row], pool, float(number))
            pools[row] = -1 if reasons[row] else pool
        for pool, members in enumerate(self._members):
            inside = pools == pool
            p_values[inside] = conformal_p_values(members, asked[inside])
        adjusted = np.full(len(asked), np.nan)
        decided = pools >= 0
        if decided.any():
            adjusted[decided] = benjamini_hochberg(p_values[decided])
        deciding = p_values if control == "each" else adjusted
        words: list[Word] = [
            "undecided" if reason else "flagged" if p <= self.alpha + 1e-9 else "not flagged"
            for reason, p in zip(reasons, deciding, strict=True)
        ]
        return Decisions(words, reasons, p_values, adjusted, pools, list(self.pools))

    def _why_not(self, kind: str, number: int, covariate: float) -> str:
        own = [pool for pool in self.pools if pool.kind == kind]
        if not own:
            return f"nothing of kind {kind[:40]!r} was calibrated"
        low, high = min(pool.low for pool in own), max(pool.high for pool in own)
        if not low <= covariate <= high:
            return f"{self.covariate} {covariate:g} is outside the calibrated range, {low:g} to {high:g}"
        if number < 0:
            return f"nothing near {self.covariate} {covariate:g} was calibrated"
        if self.pools[number].n < self.needed:
            return f"{self.pools[number].n} calibration scores of its kind; alpha = {self.alpha:g} needs {self.needed}"
        return ""


def _rising(edges: Sequence[float]) -> Floats:
    found = numbers_of(edges, "edges", least=0)
    if np.any(np.diff(found) <= 0):
        raise BadInput("the edges do not rise", where="edges", mend="give rising numbers")
    return found


def _beside(covariate: ArrayLike | None, scores: Floats, name: str) -> Floats:
    if covariate is None:
        return np.zeros(len(scores))
    column = numbers_of(covariate, name, least=0)
    same_length(column, scores, f"{name} and scores")
    return column
