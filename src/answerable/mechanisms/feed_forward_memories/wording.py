"""The answer's numbers and sentences: metrics, summary, verdict and limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from answerable.answer import Metric, Verdict

from .judging import chance_accuracy

if TYPE_CHECKING:
    from .alignment import Alignment
    from .catalogue import Catalogue
    from .feature_sets import FeatureSet
    from .given import Given
    from .question import FeedForwardMemories
    from .reading import Reading
    from .scores import Score


def _of(scores: Sequence[Score], metric: str, setting: str, role: str, *, top: bool | None = None) -> Score | None:
    """The first score of that kind; ``top`` tells top-k sets from whole ones."""
    return next(
        (
            one
            for one in scores
            if (one.metric, one.setting, one.role) == (metric, setting, role)
            and (top is None or (", top " in one.features) == top)
        ),
        None,
    )


def metrics_of(
    catalogue: Catalogue,
    layer: int,
    readings: Sequence[Reading],
    scores: Sequence[Score],
    alignments: Sequence[tuple[str, str, Alignment]],
    k: int,
) -> dict[str, Metric]:
    """The numbers of the answer, each with how it was made."""

    alive = catalogue.alive(layer)
    counted = f"count over {catalogue.tokens:,} tokens"
    metrics = {
        "memories": Metric(
            sum(found.counts.shape[1] for found in catalogue.counts.values()),
            unit="memories", kind="exact", method="count", label="Memories recorded",
        ),
        "alive": Metric(
            alive["positive"], kind="exact", method=counted, label=f"Memories of layer {layer} above 0 at some token"
        ),
        "alive_negative": Metric(
            alive["negative"], kind="exact", method=counted, label=f"Memories of layer {layer} below 0 at some token"
        ),
        "density": Metric(
            float(catalogue.counts[layer].density[0].mean()), kind="exact", method=counted,
            label=f"Activations of layer {layer} above 0",
        ),
    }  # fmt: skip
    for key, reading, role in (("explained", readings[0], "ours"), ("explained_top_k", readings[1], "ours")):
        one = next(one for one in scores if one.metric == "ev" and one.features == reading.features.name)
        metrics[key] = _metric_of(one, f"Explained variance of the {reading.features.name}", role)
    for key, metric, setting, role, top, label in (
        ("sparse_probe", "sparse_probe", "k = 1", "ours", False, "Accuracy of a probe on one memory"),
        (
            "sparse_probe_learned",
            "sparse_probe",
            "k = 1",
            "baseline",
            None,
            "Accuracy of a probe on one learned feature",
        ),
        ("sparse_probe_random", "sparse_probe", "k = 1", "control", False, "Accuracy of a probe on one random memory"),
        ("sparse_probe_five", "sparse_probe", "k = 5", "ours", False, "Accuracy of a probe on five memories"),
        ("sparse_probe_five_random", "sparse_probe", "k = 5", "control", False, "Accuracy on five random memories"),
        ("autointerp", "autointerp", "lexical judge", "ours", True, f"Lexical judge on the memories, top {k}"),
        ("absorption", "absorption", "mean fraction", "ours", False, "Absorption of first letters by the memories"),
        ("explained_learned", "ev", "", "baseline", None, "Explained variance of the learned features"),
    ):
        found = (
            next((one for one in scores if one.metric == "ev" and one.role == role), None)
            if not setting
            else _of(scores, metric, setting, role, top=top)
        )
        if found is not None:
            metrics[key] = _metric_of(found, label, role)
    ours, learned, random = (
        _of(scores, "sparse_probe", "k = 1", role, top=None) for role in ("ours", "baseline", "control")
    )
    for key, other, label in (
        ("above_random", random, "Accuracy on one memory less that on a random one"),
        ("below_learned", learned, "Accuracy on one learned feature less that on one memory"),
    ):
        if ours is None or other is None or not ours.seeds or not other.seeds:
            continue
        sign = 1 if key == "above_random" else -1
        apart = sign * (np.array(ours.seeds) - np.array(other.seeds))
        metrics[key] = Metric(
            float(apart.mean()), float(apart.min()), float(apart.max()),
            method=f"paired by split, smallest and largest of {len(apart)} seeds", label=label,
        )  # fmt: skip
    first, second, found_alignment = alignments[-1]
    cosine = found_alignment.cosine if first == second else found_alignment.other_cosine
    live = cosine[~np.isnan(cosine)]
    what = "Memories" if first == second else f"Features of the {second}"
    for key, share, limit in (("unaligned", live < 0.3, "below 0.3"), ("aligned", live >= 0.9, "of 0.9 or more")):
        metrics[key] = (
            Metric(
                float(share.mean()),
                kind="exact",
                method="share of largest cosines",
                label=f"{what} with a cosine {limit}",
            )
            if len(live)
            else Metric(float("nan"), kind="exact", reason="every value is dead", label=f"{what} with a cosine {limit}")
        )
    return metrics


def _metric_of(one: Score, label: str, role: Any) -> Metric:
    if one.value != one.value:
        return Metric(float("nan"), kind="exact", role=role, reason=one.how or "not defined here", label=label)
    if one.low is None:
        return Metric(one.value, kind="exact", method=one.how or "of these tokens", role=role, label=label)
    return Metric(one.value, one.low, one.high, method=one.how, role=role, label=label)


def summary_of(catalogue: Catalogue, layer: int, readings: Sequence[Reading], scores: Sequence[Score]) -> str:
    """The answer in at most two sentences."""
    explained = readings[1].explained
    kept = readings[1].features.k
    head = f"{catalogue.alive(layer)['either']:.0%} of layer {layer}'s memories fire; "
    body = (
        "its output does not vary"
        if explained != explained
        else f"the {kept} largest of each token explain {explained:.0%} of its output"
        if explained >= 0
        else f"the {kept} largest of each token rebuild its output worse than its mean"
    )
    ours, other, random = (_of(scores, "sparse_probe", "k = 1", role) for role in ("ours", "baseline", "control"))
    if ours is None or random is None:
        return f"{head}{body}."
    learned = f", a learned feature {other.value:.0%}" if other is not None else ""
    return f"{head}{body}. One memory tells concepts at {ours.value:.0%}{learned}, a random one {random.value:.0%}."


def verdict_of(scores: Sequence[Score]) -> Verdict | None:
    """By sparse probing, the most reliable of the scores, paired by split."""
    ours, random = (_of(scores, "sparse_probe", "k = 1", role) for role in ("ours", "control"))
    if ours is None or not ours.seeds:
        return None
    others = [one for one in scores if (one.metric, one.setting, one.role) == ("sparse_probe", "k = 1", "baseline")]
    best = max(others, key=lambda one: one.value, default=None)
    mend = "give more labelled texts, or more seeds"
    if best is not None and best.seeds:
        apart = [a - b for a, b in zip(best.seeds, ours.seeds)]
        reason = f"one feature of the {best.features} tells concepts {min(apart):+.3f} to {max(apart):+.3f} better"
        if min(apart) > 0:
            return Verdict("a learned set tells more", reason)
        if max(apart) <= 0:
            return Verdict("the memories tell as much", reason)
        return Verdict("undecided", f"{reason}: zero lies between", mend)
    if random is None or not random.seeds:
        return None
    apart = [a - b for a, b in zip(ours.seeds, random.seeds)]
    reason = f"one memory tells concepts {min(apart):+.3f} to {max(apart):+.3f} better than a random one"
    if min(apart) > 0:
        return Verdict("above random", reason)
    if max(apart) <= 0:
        return Verdict("not above random", reason)
    return Verdict("undecided", f"{reason}: zero lies between", mend)


def limits_of(
    question: FeedForwardMemories,
    catalogue: Catalogue,
    given: Given,
    sets: Sequence[FeatureSet],
    scores: Sequence[Score],
) -> list[str]:
    """What the answer does not say of this model, these texts and these features."""
    left_out = f", and {catalogue.dropped:,} that begin each text are left out" if catalogue.dropped else ""
    limits = [
        f"Alive, density and contexts are of {_tokens(catalogue.tokens)} of this text{left_out}.",
        "Promoted tokens are what a value alone would raise at the output layer; later layers may undo it.",
        "What makes a memory fire is read off its strongest contexts, which need not be what it does most.",
        f"Explained variance is by the definition {question.definition}; others' figures may be by another.",
    ]
    first = [str(layer) for layer, share in catalogue.at_first.items() if share > 0.5]
    if first:
        few = ", ".join(first[:8]) + (" and others" if len(first) > 8 else "")
        limits.append(
            f"In layer {few} most of the output's size is at the first token of each run of tokens: explained "
            "variance there is of these few."
        )
    if given.labelled is None:
        limits.append("Without labelled texts there is no probe: nothing here tells memories from random features.")
    else:
        limits += [
            f"The scores rest on {len(given.labelled.texts):,} labelled texts, the benchmark's on 5,000.",
            "A spread over seeds is of one set of texts, and no confidence interval.",
            "SCR and TPP change much with the number of features set to 0.",
            "RAVEL is read by probes of the layer's output, not by what the model says next.",
            f"The lexical judge sees words, not meaning; at random it is right in {chance_accuracy():.0%}.",
        ]
    if question.absorption:
        limits.append("Absorption is advised for 16,000 features and models of a billion parameters or more.")
        if any(one.metric == "absorption" and one.value != one.value for one in scores):
            limits.append("Absorption is undecided: too few letters can be read off the layer's output by a probe.")
    if any(one.norm is not None for one in sets):
        limits.append(
            "This layer norms what it writes: what one feature adds holds with the norm's scale kept as it is."
        )
    if given.precision:
        limits.append(given.precision)
    dead = len(sets[0].dead_values)
    if dead:
        limits.append(f"{dead} memories of the layer write nothing: dead values, which have no direction.")
    if question.of == "heads":
        limits.append("A head's memories are a choice of basis: any rotation within the head would do as well.")
    return limits + [note for one in sets for note in one.notes]


def _tokens(count: int) -> str:
    return f"{count:,} token{'s' * (count != 1)}"
