"""What was found in words, numbers and lines: the summary, metrics, verdict, limits and table of cases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from answerable.answer import Metric, Table, Verdict
from answerable.subjects.additive_model.ranges import reachable

from .api import new_values, tied

if TYPE_CHECKING:
    from answerable.subjects.additive_model import AdditiveModel

    from .cases import Cases
    from .question import AdditiveReasons


LONGEST_CHANGE = 80  # characters of a change in the summary
FEW_ROWS = 100  # below which the range of their values says little of what is possible


def case_rows(model: AdditiveModel, found: Cases, numbers: list[int]) -> pl.DataFrame:
    """One line a case: decision, reason, change, and what each is worth."""

    def in_words(chosen: Any) -> pl.Series:
        return tied(model, found, chosen).list.join(", ")

    names = np.array(model.names, object)
    bound = np.where(np.isfinite(found.change_bound), found.change_bound, np.nan)

    def named(chosen: Any) -> list[str]:
        return [", ".join(names[one]) for one in chosen]

    at_line = [None if model.task == "regression" else bool(score == 0) for score in found.score]
    return pl.DataFrame(
        {
            "row": numbers,
            "decision": [_decision(model, int(d)) for d in found.decision],
            "score": found.score,
            "reason": named(found.reason),
            "change": [", ".join(values) for values in new_values(model, found)],
            "reason_size": found.reason.sum(axis=1),
            "change_size": found.change.sum(axis=1),
            "reason_slack": found.reason_slack,
            "change_slack": found.change_slack,
            "reason_guarantee": found.guarantee_reason,
            "change_guarantee": found.guarantee_change,
            "reason_bound": found.reason_bound,
            "change_bound": pl.Series(bound).fill_nan(None),
            "in_every_reason": in_words(found.core),
            "in_some_reason": in_words(found.some),
            "at_line": pl.Series(at_line, dtype=pl.Boolean),
            "borderline": found.borderline,
        }
    )


def _decision(model: AdditiveModel, number: int) -> str:
    return model.classes[number] if model.classes else "value"


def metrics(model: AdditiveModel, found: Cases, tables: dict[str, Table], costs: Any = None) -> dict[str, Metric]:
    """The numbers of the answer; ``costs`` of changing each feature, None where each counts one."""
    n = len(found.score)
    exact = float(
        np.mean([a == b == "exact" for a, b in zip(found.guarantee_reason, found.guarantee_change, strict=True)])
    )
    flips: Any = found.change.any(axis=1)
    open_ones = ~flips & np.isfinite(found.change_bound)
    sizes = found.reason.sum(axis=1)
    metrics = {
        "cases": _exact(n, "cases", "rows explained", "Cases"),
        "proved_share": _exact(exact, "1", "reason and change both proved smallest", "Share of cases proved"),
        "reason_size": _between(
            float(found.reason_bound.mean()), float(sizes.mean()), float(sizes.mean()), "features", "mean over cases",
            "Size of the smallest reason, mean",
        ),
        "reason_size_largest": _between(
            float(found.reason_bound.max()), int(sizes.max()), int(sizes.max()), "features", "largest over cases",
            "Size of the largest reason",
        ),
        "change_possible_share": _between(
            float(flips.mean()), float(flips.mean()), float((flips | open_ones).mean()), "1",
            "some change of unfrozen features flips it", "Share of decisions that can flip",
        ),
        "change_size": _change_size(model, found, flips, costs),
        "smallest_slack": _exact(
            float(found.reason_slack.min()), "score", "worst completion of a reason, least over cases",
            "Least distance of a reason from the line",
        ),
        "features": _exact(len(model.features), "features", "of the model", "Features"),
    }  # fmt: skip
    if "completions" in tables:
        frame = tables["completions"].frame
        low, value, high = (float(frame[name].mean()) for name in ("low", "probability", "high"))  # type: ignore[arg-type]
        label = "Probability that the decision stays, mean"
        if high - low <= 1e-12:
            metrics["kept_probability"] = _exact(value, "1", "all completions, counted", label)
        else:
            sampled = "sampled" in frame["guarantee"]
            metrics["kept_probability"] = Metric(
                value, low, high, kind="estimated" if sampled else "bounds", label=label,
                method="Clopper and Pearson, 95 % a row" if sampled else "Vaaler's majorants",
            )  # fmt: skip
    if "redundancy" in tables:
        words = tables["redundancy"].frame["answer"].to_list()
        count, method = words.count("redundant"), "proved by ends or listed sums"
        metrics["redundant_features"] = _exact(count, "features", method, "Features that can never matter")
    return metrics


def _change_size(model: AdditiveModel, found: Cases, flips: Any, costs: Any) -> Metric:
    label = "Size of the smallest change, mean" if costs is None else "Size of the cheapest change, mean"
    if not flips.any():
        return Metric(math.nan, kind="exact", unit="features", label=label, reason="no change that flips was found")
    sizes = found.change.sum(axis=1)[flips]
    low = float(found.change_bound[flips].mean()) if costs is None else float(sizes.mean())
    return _between(low, float(sizes.mean()), float(sizes.mean()), "features", "mean over cases that can flip", label)


def _between(low: float, value: float, high: float, unit: str, method: str, label: str) -> Metric:
    """Exact where the two ends are one number."""
    if low >= high - 1e-9:
        return _exact(value, unit, method, label)
    return Metric(value, low, high, kind="bounds", unit=unit, method=f"{method}, proved ends", label=label)


def _exact(value: float, unit: str, method: str, label: str) -> Metric:
    return Metric(value, kind="exact", unit=unit, method=method, label=label)


def summary(model: AdditiveModel, found: Cases, numbers: list[int]) -> str:
    """The answer in one sentence."""
    sizes, changes = found.reason.sum(axis=1), found.change.sum(axis=1)
    flips: Any = found.change.any(axis=1)
    n = len(model.features)
    if len(numbers) == 1:
        what = f"the decision “{_decision(model, int(found.decision[0]))}”" if model.classes else "this value"
        of = f"Of {n} features" if n > 1 else "Of its one feature"
        settles = {0: "none is needed to settle", 1: "1 alone settles"}.get(int(sizes[0]), f"{sizes[0]} alone settle")
        change = f"changing {changes[0]} flips it" if flips[0] else "no change flips it"
        values = ", ".join(new_values(model, found)[0])
        if flips[0] and len(values.split()) <= 8 and len(values) <= LONGEST_CHANGE and values.isprintable():
            change += f" ({values})"
        if not flips[0] and np.isfinite(found.change_bound[0]):
            change = "whether a change flips it is not decided"
        return f"{of} {settles} {what} for row {numbers[0]}, and {change}."
    flipped = f"{changes[flips].mean():.1f} changed ones flip it" if flips.any() else "none was flipped"
    never = int((~flips).sum())
    ending = f"; for {never} no change that flips was found" if never and flips.any() else ""
    settled = f"{sizes.mean():.1f} of {n} features settle a decision on average"
    return f"Over {len(numbers):,} cases, {settled} and {flipped}{ending}."


class RangesOf(NamedTuple):
    """Where the ranges of a model's features were read from.

    what : the rows, in words; empty where no range was
    n_rows : how many of them gave the range with the fewest
    features : whose ranges
    cases_only : whether it is the few cases themselves that say what is possible
    """

    what: str
    n_rows: int
    features: list[str]
    cases_only: bool


def ranges_of(model: AdditiveModel, asked: AdditiveReasons) -> RangesOf:
    """Which rows the domain was read from, for a model that does not state one."""
    from answerable.subjects.additive_model import AdditiveModel as Made

    if not model.observed:
        return RangesOf("", 0, [], False)
    n_rows = min(model.observed.values())
    if isinstance(asked.model, Made):
        what = "rows that the model was made with"
    else:
        what = "rows" if asked.background is None else "background rows"
    return RangesOf(what, n_rows, list(model.observed), what == "rows" and n_rows < FEW_ROWS)


def verdict(model: AdditiveModel, found: Cases, numbers: list[int], ranges: RangesOf) -> Verdict | None:
    """Whether all reasons and changes are proved smallest, over a domain that is more than the cases themselves."""
    if ranges.cases_only:
        what = f"what values are possible was read from {ranges.n_rows} rows alone, so reasons may be too small"
        mend = "give the rows that the model was fitted on as background, or each range in domain"
        return Verdict("undecided", what, mend)
    unproved = sum(g != "exact" for g in (*found.guarantee_reason, *found.guarantee_change))
    if not unproved:
        if len(numbers) == 1:
            return Verdict("proved", "nothing smaller settles the decision, and nothing smaller flips it")
        return Verdict("proved", f"in each of {len(numbers):,} cases nothing smaller settles the decision or flips it")
    mend = (
        "fit the model without pairs, or with fewer" if model.pairs else "freeze features, or allow a wider tolerance"
    )
    if model.error:
        mend = "fit smaller networks of ReLU, which are known exactly"
    return Verdict("undecided", f"{unproved} of {2 * len(numbers)} reasons and changes are not proved smallest", mend)


def limits(model: AdditiveModel, asked: AdditiveReasons) -> list[str]:
    """What the answer cannot say about this model."""
    limits = [
        "A reason settles what this model decides; it does not say that the decision is right or fair.",
        "Features may take any combination of values in their domains, also combinations that no person has.",
        "A smallest change says what would move the model, not what a person can do or what it would cause.",
    ]
    if asked.output != "score" or asked.known is not None:
        limits.append("Probabilities and Shapley values take the features to be independent of one another.")
    open_ended = [shape.name for shape in model.features if not shape.levels and math.isinf(shape.high - shape.low)]
    if open_ended:
        limits.append(f"{', '.join(open_ended[:4])} may take any number: the model states no observed range.")
    ranges = ranges_of(model, asked)
    if ranges.features:
        named = ", ".join(ranges.features[:4]) + (" and others" if len(ranges.features) > 4 else "")
        few = "; so few may miss what is possible, and then reasons are too small" if ranges.n_rows < FEW_ROWS else ""
        limits.append(f"The range of {named} is what {ranges.n_rows:,} {ranges.what} show{few}.")
    if model.pairs:
        joined = ", ".join(f"{model.names[pair.first]} & {model.names[pair.second]}" for pair in model.pairs[:4])
        joined += ", ..." if len(model.pairs) > 4 else ""
        limits.append(
            f"{len(model.pairs)} pairs of features ({joined}) were kept in full; where they join too many features,"
            " completions and Shapley values of probability and class are sampled, and their intervals hold for 95 of"
            " 100 samples."
        )
    return limits


def sampled_scores(model: AdditiveModel, row: np.ndarray, known: np.ndarray, frozen: list[int]) -> pl.DataFrame:
    """Scores of random completions: known and frozen features kept, the others drawn evenly from their pieces."""
    rng = np.random.default_rng(0)
    n_draws = 4000
    total = np.full((2, n_draws), float(model.intercept[0] - model.cutoff))
    own = model.contributions(row[None])[0, :, 0]
    for j, shape in enumerate(model.features):
        pieces = reachable(shape)
        drawn = rng.integers(len(pieces), size=n_draws)
        ends = np.array([[low, high] for _, low, high, _, _ in pieces])
        ends = np.where(np.isfinite(ends), ends, ends[:, ::-1])
        ends = np.where(np.isfinite(ends), ends, 0.0)
        if shape.constant:
            values = np.array([shape.coefficients[k, 0, 0] for k, *_ in pieces])[drawn]
        else:
            points = ends[drawn, 0] + rng.random(n_draws) * (ends[drawn, 1] - ends[drawn, 0])
            values = shape(np.floor(points) if shape.integer else points)[:, 0]
        total[0] += own[j] if j in frozen else values
        total[1] += own[j] if known[j] or j in frozen else values
    return pl.DataFrame({"nothing": total[0], "reason": total[1]})
