"""From numbers of terms to numbers of input features.

The paper's rule is ``max``: a feature takes the largest number of its own term and of the pairs it stands in. Its code
also has ``stronger``: a pair credits only the end whose own term has the larger number. Neither does alone: ``max``
credits a suppressor with its partner's pair, ``stronger`` gives all of an exclusive-or to one of two equal ends.
``auto`` (ours) lets the pair decide: it credits both ends only if neither is informative alone and the pair is; else
the informative ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Floats

from .solver import Term

Rule = Literal["auto", "max", "stronger"]


def input_importance(
    values: Floats,
    terms: Sequence[Term],
    n_features: int,
    *,
    rule: Rule = "auto",
    p_values: Floats | None = None,
    alpha: float = 0.05,
) -> Floats:
    """Importance of each input feature, summing to 1.

    Parameters
    ----------
    values : (U,) float64, a number of each term; signs are dropped
    terms : the features of each term, one or two, from 0; a square is (j, j) and counts for j alone
    n_features : D
    rule : ``max``, ``stronger`` or ``auto``; see the head of this module
    p_values : (U,) of "the term is not informative"; needed for ``auto``
    alpha : level of the test over all terms together (Bonferroni), for ``auto``

    Returns
    -------
    (D,) float64 >= 0; all 0 if every value is 0

    Raises
    ------
    BadInput : an unknown rule, no p-values for ``auto``, lengths that differ, a missing value, or a term of more than
        two features or of one that is not there
    """
    size = np.abs(np.asarray(values, dtype=np.float64))
    if len(size) != len(terms):
        raise BadInput(f"{len(size)} values for {len(terms)} terms", where="aggregation", mend="give one for each term")
    if np.isnan(size).any():
        raise BadInput(
            "it is missing", where=f"value of term {int(np.argmax(np.isnan(size))) + 1}", mend="leave it out"
        )
    if any(not 1 <= len(term) <= 2 for term in terms):
        raise BadInput("a term has more than two features", where="aggregation", mend="leave it out")
    if any(not 0 <= feature < n_features for term in terms for feature in term):
        raise BadInput(f"a term names a feature beyond the {n_features}", where="aggregation", mend="count from 0")
    if rule not in get_args(Rule):
        raise BadInput(f"it is {rule!r}", where="rule", mend="choose auto, max or stronger")
    if rule == "auto" and p_values is None:
        raise BadInput("no p-values are given", where="aggregation, rule auto", mend="give them, or choose max")
    if p_values is not None and len(p_values) != len(terms):
        what = f"{len(p_values)} p-values for {len(terms)} terms"
        raise BadInput(what, where="aggregation", mend="give one for each term")
    own = np.zeros(n_features)
    informative = np.zeros(n_features, dtype=bool)
    clear = np.zeros(len(terms), dtype=bool) if p_values is None else np.asarray(p_values) * len(terms) < alpha
    for number, term in enumerate(terms):
        if term[0] == term[-1]:
            own[term[0]] = max(own[term[0]], size[number])
            informative[term[0]] |= clear[number]
    found = own.copy()
    for number, term in enumerate(terms):
        if term[0] == term[-1]:
            continue
        for feature in _credited(term, rule, own, informative, bool(clear[number])):
            found[feature] = max(found[feature], size[number])
    total = found.sum()
    return found / total if total > 0 else found


def _credited(term: Term, rule: Rule, own: Floats, informative: Floats, clear: bool) -> list[int]:
    """The ends that a pair credits."""
    j, k = term
    if rule == "max":
        return [j, k]
    if rule == "stronger":
        return [j if own[j] >= own[k] else k]
    if informative[j] or informative[k]:
        return [end for end in term if informative[end]]
    return [j, k] if clear else []
