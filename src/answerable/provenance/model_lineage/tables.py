"""What an answer about a model's lineage holds: numbers, tables, and the tables that its pictures are drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from answerable.answer import Figure, Metric, Table
from answerable.statistics import wilson_interval

from .deciding import NONE, UNDECIDED, Finding
from .estimator import ErrorTracer, accuracy_interval
from .figures import MOST_MODELS, SCORE_NAMES, attack_chart, contraction_chart, similarity_chart, support_chart
from .tracing import SCORES

if TYPE_CHECKING:
    from answerable.subjects.answer_log import AnswerLog

RIGHT, WRONG = "rightly named", "wrongly named"
WILSON = "95 % Wilson interval with continuity correction"
MOST_EVIDENCE = 50
ATTACKS = 12  # sizes of an attack, up to the size at which a space begins to shrink
SHORTEST_TEXT = 200  # characters of a question in the table of evidence

FAMILIES = {
    "family": "the family",
    "models": "its reference models",
    "items": "items in its error space",
    "error_trace": "rise of the suspect's gain toward the core of the space [1]",
    "p_error_trace": "share of left-out models of other families that reach as much, counting the suspect",
    "adjusted": "the same after Holm over the families, for the score that decides",
    "likelihood": "baseline: mean log-likelihood of the suspect's errors under the family's [nats an item]",
    "p_likelihood": "the same share for the likelihood",
    "cosine": "baseline: cosine of the suspect's and the family's errors, less what all models share [1]",
    "p_cosine": "the same share for the cosine",
}
EVIDENCE = {
    "dataset": "data set of the item",
    "item": "its name there",
    "text": "the question",
    "gold": "the right answer",
    "suspect": "what the suspect answered",
    "family_answers": "what the family's models answered, most often first",
    "weight": "how much the item speaks for the family [1]",
    "family_share": "share of the family's models that err [1]",
    "others_share": "share of all other models that err [1]",
}
LEFT_OUT = {
    "model": "the reference model that was left out",
    "family": "its family",
    "error_trace": "family that ErrorTrace names without it",
    "likelihood": "family that the likelihood names",
    "cosine": "family that the centred cosine names",
    "lead": "largest score less the second, of the score that decides",
    "margin": "largest score less the mean of the others",
    "decided": "what would have been decided about it",
}
VERDICTS = {
    "verdict": "what would have been decided about a model that was left out",
    "models": "about how many",
    "share": "of all that were left out [1]",
    "low": "95 % Wilson interval with continuity correction [1]",
    "high": "its other end [1]",
}
RIVALS = {
    "score": "the score",
    "named": "the family of its largest value",
    "lead": "its largest value less the second [units of the score]",
    "p_stranger": "p-value of: the suspect is of none of these families, from left-out families",
    "p_member": "p-value of: it is of one of them, from left-out models",
    "left_out_right": "left-out models whose family it names [1]",
}
CONFUSION = {
    "family": "family of the models that were left out",
    "named": "family that the deciding score names",
    "models": "how many",
}
ATTACK = {
    "how": "repaired: the weightiest items of the family answered rightly; forged: those of the next family wrongly",
    "changed": "answers that were changed",
    "score": "the score",
    "named": "family that it then names",
    "lead": "lead of the family over the best other [units of the score]",
}


class Given(NamedTuple):
    """Reference models with their families, and the suspect at the same items.

    points : (N, d) float64, embedding of the items where it does not come from their texts
    notes : what the reader should know of how they were gathered
    rates : (K,) float64, the suspect's error rate on each data set, sorted by name, from other items; None for none
    """

    references: AnswerLog
    families: list[str]
    suspect: AnswerLog
    points: np.ndarray | None
    notes: list[str]
    rates: np.ndarray | None = None


def metrics_of(tracer: ErrorTracer, given: Given, finding: Finding, tables: Mapping[str, Table]) -> dict[str, Metric]:
    """The lead of the deciding score, what left-out models and families say of it, and how good each score is."""
    left_out, which = tables["left_out"].frame, SCORES.index(tracer.score)
    metrics = {
        "lead": Metric(
            float(finding.leads[which]), unit="1", kind="exact", method="largest score less the second", label="Lead"
        ),
        "margin": Metric(
            float(finding.margins[which]), unit="1", kind="exact", method="largest score less the mean of the others",
            label="Margin",
        ),
        "stranger_p_value": _p_value(
            finding.strangers[which], "left-out families, conformal", "P-value of: it is of none of these families",
            "there are fewer than three families",
        ),
        "member_p_value": _p_value(
            finding.members[which], "left-out models, conformal", "P-value of: it is of one of these families",
            "no model can be left out",
        ),
    }  # fmt: skip
    roles = {"error_trace": "ours", "likelihood": "baseline", "cosine": "baseline"}
    for score, role in roles.items():
        share = accuracy_interval(left_out, score)
        metrics[f"left_out_accuracy_{score}"] = Metric(
            share.value, share.low, share.high, unit="1", method=share.method, role=role,  # type: ignore[arg-type]
            label=f"Left-out models whose family is named, {SCORE_NAMES[score]}",
        )  # fmt: skip
    for word in (RIGHT, WRONG):
        row = tables["verdicts"].frame.row(by_predicate=pl.col("verdict") == word, named=True)
        metrics[f"left_out_{word.replace(' ', '_')}"] = Metric(
            row["share"], row["low"], row["high"], unit="1", method=WILSON, label=f"Left-out models, {word}"
        )
    agree = len(set(finding.named)) == 1
    metrics["scores_agree"] = Metric(float(agree), unit="1", kind="exact", method="the three scores name one family")
    answered = ~np.isnan(given.suspect.errors[0, tracer.evidence_])
    metrics["evidence"] = Metric(
        int(answered.sum()), unit="items", kind="exact", method="items of error spaces answered"
    )
    return metrics


def _p_value(value: float, method: str, label: str, reason: str) -> Metric:
    missing = value != value
    return Metric(
        value, unit="1", kind="exact", method=method, label=label, role="null", reason=reason if missing else ""
    )


def tables_of(tracer: ErrorTracer, given: Given, finding: Finding) -> dict[str, Table]:
    """Families, scores, evidence, and what left-out models and changed answers tell of them."""
    left_out = tracer.cross_validate().with_columns(
        model=pl.Series([given.references.models[row] for row in range(len(given.families))])
    )
    confusion = (
        left_out.group_by("family", pl.col(tracer.score).alias("named"), maintain_order=True)
        .len("models")
        .sort("family", "models", descending=[False, True], maintain_order=True)
    )
    return {
        "families": Table(_family_rows(tracer, finding), FAMILIES, title="Each family, the nearest first"),
        "scores": Table(_score_rows(finding, left_out), RIVALS, title="Each score, and how it knows its own"),
        "evidence": Table(
            _evidence_rows(tracer, given, finding), EVIDENCE, title="Mistakes shared with the nearest family"
        ),
        "left_out": Table(left_out.select(list(LEFT_OUT)), LEFT_OUT, title="Reference models, each left out in turn"),
        "confusion": Table(confusion, CONFUSION, title="What left-out models are taken for"),
        "verdicts": Table(_verdict_rows(left_out), VERDICTS, title="What is decided about models of known family"),
        "attack": Table(_attack_rows(tracer, given), ATTACK, title="What is named once answers have been changed"),
    }


def _family_rows(tracer: ErrorTracer, finding: Finding) -> pl.DataFrame:
    which = SCORES.index(tracer.score)
    rows = pl.DataFrame(
        {
            "family": tracer.classes_.astype(str),
            "models": np.bincount(tracer.families_),
            "items": [len(space.items) for space in tracer.reference_.spaces],
            **{
                key: values
                for k, score in enumerate(SCORES)
                for key, values in ((score, finding.scores[k]), (f"p_{score}", finding.p_values[k]))
            },
            "adjusted": finding.adjusted[which],
        }
    )
    return rows.select(list(FAMILIES)).sort(tracer.score, descending=True, nulls_last=True, maintain_order=True)


def _score_rows(finding: Finding, left_out: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "score": SCORES,
            "named": finding.named,
            "lead": finding.leads,
            "p_stranger": finding.strangers,
            "p_member": finding.members,
            "left_out_right": [accuracy_interval(left_out, score).value for score in SCORES],
        }
    )


def _verdict_rows(left_out: pl.DataFrame) -> pl.DataFrame:
    decided, family = left_out["decided"], left_out["family"]
    counts = {
        RIGHT: int((decided == family).sum()),
        WRONG: int(((decided != family) & ~decided.is_in([NONE, UNDECIDED])).sum()),
        NONE: int((decided == NONE).sum()),
        UNDECIDED: int((decided == UNDECIDED).sum()),
    }
    shares = [wilson_interval(count, left_out.height) for count in counts.values()]
    return pl.DataFrame(
        {
            "verdict": list(counts),
            "models": list(counts.values()),
            "share": [share.value for share in shares],
            "low": [share.low for share in shares],
            "high": [share.high for share in shares],
        }
    )


def _evidence_rows(tracer: ErrorTracer, given: Given, finding: Finding) -> pl.DataFrame:
    nearest = finding.named[SCORES.index(tracer.score)]
    found = tracer.explain(given.suspect.errors[0], MOST_EVIDENCE, family=None if nearest == NONE else nearest)
    own = np.flatnonzero(np.array(given.families) == nearest)
    references, rows = given.references, []
    for item, weight, family, others in found.iter_rows():
        answers = Counter(answer for answer in references.answers[own, item] if answer)
        dataset, name = references.items[item]
        rows.append(
            (
                dataset, name, references.texts[item][:SHORTEST_TEXT], references.gold[item],
                str(given.suspect.answers[0, item]),
                ", ".join(f"{answer} ({n})" for answer, n in answers.most_common(3)),
                weight, family, others,
            )
        )  # fmt: skip
    types = dict.fromkeys(list(EVIDENCE)[:6], pl.String) | dict.fromkeys(list(EVIDENCE)[6:], pl.Float64)
    return pl.DataFrame(rows, schema=types, orient="row")


def _attack_rows(tracer: ErrorTracer, given: Given) -> pl.DataFrame:
    counts = [round(tracer.start * step / ATTACKS) for step in range(ATTACKS + 1)]
    errors = given.suspect.errors[0]
    frames = [
        tracer.attack_curve(errors, how, counts, rates=given.rates).with_columns(how=pl.lit(word))  # type: ignore[arg-type]
        for how, word in (("repair", "repaired"), ("forge", "forged"))
    ]
    return pl.concat(frames).select(list(ATTACK))


# Pictures


def figures_of(tracer: ErrorTracer, given: Given, finding: Finding, tables: Mapping[str, Table]) -> dict[str, Figure]:
    """Support of each family, what repaired answers do, which models err alike, and the shrinking spaces."""
    which, suspect = SCORES.index(tracer.score), given.suspect.models[0]
    rows = tables["families"].frame.select("family", score=pl.col(tracer.score))
    assert tracer.validation_ is not None
    null = pl.DataFrame(
        [
            (str(name), float(score))
            for number, name in enumerate(tracer.classes_)
            for score in tracer.validation_.scores[which, tracer.families_ != number, number]
            if score == score
        ],
        schema={"family": pl.String, "score": pl.Float64},
        orient="row",
    )
    named = finding.named[which]
    attack = tables["attack"].frame.filter(pl.col("how") == "repaired")
    figures = {
        "support": Figure.drawn(support_chart, rows, null, suspect=suspect, score=tracer.score),
        "attack": Figure.drawn(attack_chart, attack, suspect=suspect, family=named),
        "similarity": Figure.drawn(similarity_chart, *_similarity(given)),
    }
    curves = tracer.contraction(given.suspect.errors[0], rates=given.rates)
    if named in curves["family"]:
        step = max(1, curves.height // 800)
        figures["contraction"] = Figure.drawn(
            contraction_chart, curves.gather_every(step), suspect=suspect, named=named
        )
    return figures


def _similarity(given: Given) -> tuple[pl.DataFrame, int]:
    """Correlation between models of their errors less the mean over all, and the number of models.

    By family, the suspect last under a name of its own; of many models those that are most like it.
    """
    order = sorted(range(len(given.families)), key=lambda row: (given.families[row], row))
    errors = np.vstack([given.references.errors[order], given.suspect.errors])
    count = (~np.isnan(errors)).sum(axis=0)
    mean = np.divide(np.nansum(errors, axis=0), count, out=np.zeros(errors.shape[1]), where=count > 0)
    centred = np.nan_to_num(errors - mean)
    size = np.sqrt(np.einsum("mn,mn->m", centred, centred))
    like = (centred @ centred[-1]) / np.maximum(size * size[-1], 1e-300)
    kept = np.append(np.sort(np.argsort(-like[:-1], kind="stable")[: MOST_MODELS - 1]), len(order))
    found = (centred[kept] @ centred[kept].T) / np.maximum(np.outer(size[kept], size[kept]), 1e-300)
    suspect = given.suspect.models[0]
    names = [given.references.models[order[row]] for row in kept[:-1]]
    names.append(f"{suspect} (suspect)" if suspect in names else suspect)
    table = pl.DataFrame(
        {
            "first": np.repeat(names, len(names)),
            "second": np.tile(names, len(names)),
            "similarity": found.ravel(),
        }
    )
    return table, len(errors)
