"""From scored texts to what the answer says: decisions, calibration, detection, and the tables of the pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from answerable.errors import BadInput
from answerable.provenance.detection_curves import roc_points
from answerable.statistics import (
    Calibration,
    Decisions,
    DetectionRow,
    Interval,
    detection_report,
    false_alarm_interval,
    wilson_interval,
)

from .api import swapped, token_frame, unfit
from .reading import texts_needed
from .solver import FALLING, STATISTICS, Floats, TextStatistics, suspicious

if TYPE_CHECKING:
    from .question import MachineText
    from .reading import Scored

CONTROL = "length (shorter)"
UNITS = {"irm": "nats", "irm_mean": "nats a token", "irm_sqrt": "nats / root of tokens", "loglik": "nats",
         "lrr": "nats", "entropy": "nats"}  # fmt: skip
NAMES = {
    "irm": "log-ratio of model to base",
    "irm_mean": "log-ratio of model to base, a token",
    "irm_sqrt": "log-ratio over the root of the tokens",
    "fast_detect": "Fast-DetectGPT",
    "binoculars": "less Binoculars",
    "loglik": "mean log-likelihood",
    "logrank": "LogRank",
    "lrr": "LRR",
    "entropy": "less the mean entropy",
}


@dataclass(frozen=True)
class Reported:
    """Everything that the answer is worded from.

    statistic, score_name, unit : what decides
    scores : (n,) turned so that large is machine-like
    decisions, calibration : words and p-values; no calibration where there are no human texts
    rows : detectors and the control where labels are known
    other fields : the tables of the answer, and those of its pictures
    """

    statistic: str
    alpha: float
    control: str
    scores: Floats
    decisions: Decisions
    calibration: Calibration | None
    mend: str
    rows: list[DetectionRow]
    human_flagged: Interval | None
    machine_flagged: Interval | None
    false_alarms: Interval | None
    texts: pl.DataFrame
    pools: pl.DataFrame
    report: pl.DataFrame
    tokens: pl.DataFrame
    points: pl.DataFrame
    curves: pl.DataFrame
    evidence: pl.DataFrame
    explained: int
    evidence_title: str
    evidence_name: str
    notes: list[str] = field(default_factory=list)
    control_name: str = CONTROL

    @property
    def n(self) -> int:
        """How many texts were asked about."""
        return len(self.scores)

    @property
    def score_name(self) -> str:
        """The statistic that decides, in words."""
        return NAMES[self.statistic]

    @property
    def unit(self) -> str:
        """Its unit."""
        return UNITS.get(self.statistic, "1")

    @property
    def reasons(self) -> list[str]:
        """Why each text is undecided; empty where it is not."""
        return self.decisions.reasons

    @property
    def drawn_pools(self) -> pl.DataFrame:
        """Pools with a threshold that can be drawn."""
        return self.pools.filter(pl.col("threshold").is_not_null() & pl.col("threshold").is_finite())

    def count(self, word: str) -> int:
        """How many texts got this word."""
        return self.decisions.words.count(word)  # type: ignore[arg-type]

    def row_of(self, name: str) -> DetectionRow | None:
        """The detection row of that name, where labels are known."""
        return next((row for row in self.rows if row.name == name), None)


def reported_of(question: MachineText, asked: Scored, human: Scored | None) -> Reported:
    """Decide, measure, and make every table."""
    statistic = _chosen(question, asked)
    scores = _scores(asked.statistics, statistic)
    calibration, notes = (None, []) if human is None else _calibrated(question, human, statistic)
    decisions = _decided(question, asked, scores, calibration)
    rows, columns, labels = _measured(asked)
    explained = _explained(question, asked, scores)
    tokens = token_frame(asked.spell(asked.tokens[explained][0]), asked.tokens[explained][1])
    evidence, evidence_name = _evidence(tokens)
    return Reported(
        statistic=statistic,
        alpha=question.alpha,
        control=question.control,
        scores=scores,
        decisions=decisions,
        calibration=calibration,
        mend=_mend(question, decisions, calibration),
        rows=rows,
        human_flagged=_share_flagged(asked, decisions, 0),
        machine_flagged=_share_flagged(asked, decisions, 1),
        false_alarms=_false_alarms(calibration),
        texts=_text_rows(asked, scores, decisions),
        pools=_pool_rows(calibration, decisions),
        report=_report_rows(rows, statistic),
        tokens=tokens,
        points=_points(question, asked, human, scores, statistic),
        curves=_curves(rows, columns, labels),
        evidence=evidence,
        explained=explained + 1,
        evidence_title=_evidence_title(explained + 1, evidence, decisions.words[explained]),
        evidence_name=evidence_name,
        notes=[*notes, *_notes(question, asked, human, decisions)],
    )


def _chosen(question: MachineText, asked: Scored) -> str:
    if question.statistic != "auto":
        return question.statistic
    paired = question.base is not None or question.base_logprobs is not None
    return "irm" if paired else "fast_detect" if question.model is not None else "loglik"


def _scores(statistics: list[TextStatistics], name: str) -> Floats:
    return suspicious(name, [getattr(row, name) for row in statistics])


def _lengths(scored: Scored) -> Floats:
    return np.array([row.n_scored for row in scored.statistics], dtype=np.float64)


def _calibrated(question: MachineText, human: Scored, statistic: str) -> tuple[Calibration, list[str]]:
    scores, lengths = _scores(human.statistics, statistic), _lengths(human)
    reasons = _unfit(question, human)
    usable = np.array([not reason for reason in reasons]) & ~np.isnan(scores)
    if not usable.any():
        problem = f"none of {len(scores)} texts has {question.min_tokens} scored tokens"
        if any(row.n_scored >= question.min_tokens for row in human.statistics):
            problem = f"none of {len(scores)} texts can be calibrated on ({next(filter(None, reasons))})"
        raise BadInput(problem, where="human", mend="give longer texts, or a smaller min_tokens")
    notes = []
    if human.copies:
        notes.append(f"Copies left out of the calibration: {human.copies} of {len(scores) + human.copies} human texts.")
    if (left := int((~usable).sum())) > 0:
        notes.append(f"Too short, or unreadable, to calibrate on: {left} of {len(scores)} human texts.")
    if statistic.startswith("irm") and float(scores[usable].mean()) > 0:
        notes.append(swapped(float(scores[usable].mean())))
    kinds = np.array(human.kinds)[usable] if human.kinds else None
    try:
        calibration = Calibration(
            scores[usable],
            alpha=question.alpha,
            covariate=lengths[usable],
            kinds=kinds,
            edges=question.edges,
            least=question.least,
            covariate_name="a length of",
        )
    except BadInput as failure:
        raise failure.within("human") from None
    return calibration, notes


def _decided(question: MachineText, asked: Scored, scores: Floats, calibration: Calibration | None) -> Decisions:
    lengths = _lengths(asked)
    reasons = _unfit(question, asked)
    if calibration is None:
        nothing = np.full(len(scores), np.nan)
        reasons = [reason or "there are no human texts to calibrate on" for reason in reasons]
        return Decisions(["undecided"] * len(scores), reasons, nothing, nothing, np.full(len(scores), -1), [])
    kinds = np.array(asked.kinds) if asked.kinds else None
    return calibration.decide(scores, covariate=lengths, kinds=kinds, undecided=reasons, control=question.control)


def _unfit(question: MachineText, scored: Scored) -> list[str]:
    """Why each text is not decided, whatever its score; empty if it may be."""
    return [
        unfit(row.n_scored, question.min_tokens, unknown)
        for row, unknown in zip(scored.statistics, scored.unknown, strict=True)
    ]


def _measured(asked: Scored) -> tuple[list[DetectionRow], dict[str, Floats], np.ndarray]:
    """Detection rows of every statistic over the labelled texts that could be scored, with the length alone."""
    known = np.array([label is not None for label in asked.labels]) & (_lengths(asked) > 0)
    labels = np.array([label == 1 for label in asked.labels])[known]
    if min(labels.sum(), (~labels).sum()) < 2:
        return [], {}, labels
    columns = {name: _scores(asked.statistics, name)[known] for name in STATISTICS}
    columns = {name: column for name, column in columns.items() if not np.isnan(column).any()}
    control = {CONTROL: -np.array([len(text) for text in asked.texts], dtype=np.float64)[known]}
    return detection_report(labels, columns, controls=control), columns | control, labels


def _explained(question: MachineText, asked: Scored, scores: Floats) -> int:
    if question.explain:
        return question.explain - 1
    return int(np.nanargmax(scores)) if not np.isnan(scores).all() else 0


def _evidence(tokens: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """What each token of the explained text says: its log-ratio, or how much likelier it is than the text's mean."""
    if not tokens.height:
        return pl.DataFrame(), ""
    if tokens["log_ratio"].null_count() == 0:
        return tokens.select("position", "token", evidence="log_ratio"), "Log-ratio [nats]"
    centred = pl.col("log_p") - pl.col("log_p").mean()
    return tokens.select("position", "token", evidence=centred), "Log-probability about its mean [nats]"


def _evidence_title(number: int, evidence: pl.DataFrame, word: str) -> str:
    if not evidence.height:
        return ""
    values = evidence["evidence"].to_numpy()
    return f"Text {number} ({word}): {int((values > 0).sum())} of {len(values)} tokens speak for a machine"


def _share_flagged(asked: Scored, decisions: Decisions, label: int) -> Interval | None:
    words = [word for word, known in zip(decisions.words, asked.labels, strict=True) if known == label]
    decided = [word for word in words if word != "undecided"]
    return wilson_interval(decided.count("flagged"), len(decided)) if decided else None


def _false_alarms(calibration: Calibration | None) -> Interval | None:
    """Of the smallest pool that decides: its rate is the least certain."""
    if calibration is None:
        return None
    sizes = [pool.n for pool in calibration.pools if pool.n >= calibration.needed]
    return false_alarm_interval(min(sizes), calibration.alpha)


def _text_rows(asked: Scored, scores: Floats, decisions: Decisions) -> pl.DataFrame:
    thresholds = [decisions.of_pools[pool].threshold if pool >= 0 else np.nan for pool in decisions.pools]
    words = {1: "machine", 0: "human", None: None}
    frame = pl.DataFrame(
        {
            "text": range(1, len(scores) + 1),
            "begins": [text[:80] for text in asked.texts],
            "label": pl.Series([words[label] for label in asked.labels], dtype=pl.String),
            "kind": pl.Series(asked.kinds or [None] * len(scores), dtype=pl.String),
            "characters": [len(text) for text in asked.texts],
            "n_scored": [row.n_scored for row in asked.statistics],
            "score": scores,
            "p_value": decisions.p_values,
            "adjusted": decisions.adjusted,
            "threshold": np.array(thresholds, dtype=np.float64),
            "decision": decisions.words,
            "reason": decisions.reasons,
            **{name: [getattr(row, name) for row in asked.statistics] for name in TextStatistics._fields[1:]},
        }
    )
    frame = frame.with_columns(pl.col(pl.Float64).fill_nan(None))
    # A statistic that nothing here could give (no base model, no logits) is no column of nothing.
    empty = [name for name in ("kind", *TextStatistics._fields[1:]) if frame[name].null_count() == frame.height]
    return frame.drop(empty)


def _pool_rows(calibration: Calibration | None, decisions: Decisions) -> pl.DataFrame:
    rows = []
    for number, pool in enumerate(calibration.pools if calibration is not None else []):
        assert calibration is not None
        enough = pool.n >= calibration.needed
        rate = false_alarm_interval(pool.n, calibration.alpha) if enough else None
        rows.append(
            {
                "kind": pool.kind,
                "low": pool.low,
                "high": pool.high,
                "n": pool.n,
                "threshold": pool.threshold if enough else None,
                "rate_low": rate.low if rate else None,
                "rate_high": rate.high if rate else None,
                "asked": int((decisions.pools == number).sum()),
            }
        )
    schema = {"kind": pl.String, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64, "threshold": pl.Float64,
              "rate_low": pl.Float64, "rate_high": pl.Float64, "asked": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _report_rows(rows: list[DetectionRow], statistic: str) -> pl.DataFrame:
    def ends(name: str, interval: Interval) -> dict[str, float]:
        return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}

    return pl.DataFrame(
        [
            {
                "statistic": row.name,
                "role": "control" if row.is_control else "decides" if row.name == statistic else "companion",
                **ends("auroc", row.auroc),
                **ends("average_precision", row.average_precision),
                **ends("tpr_1", row.tpr[0]),
                **ends("tpr_01", row.tpr[1]),
                **ends("f1", row.f1),
                "machine": row.n_positive,
                "human": row.n_negative,
            }
            for row in rows
        ]
    )


def _points(question: MachineText, asked: Scored, human: Scored | None, scores: Floats, statistic: str) -> pl.DataFrame:
    """Group, length and score of every text that has one and is long enough: what the pictures show."""
    words = {1: "machine", 0: "human", None: "asked"}
    parts = [([words[label] for label in asked.labels], _lengths(asked), scores)]
    if human is not None:
        parts.append((["calibration"] * len(human.labels), _lengths(human), _scores(human.statistics, statistic)))
    frame = pl.concat([pl.DataFrame({"group": g, "length": n, "score": s}) for g, n, s in parts])
    return frame.filter(pl.col("score").is_finite() & (pl.col("length") >= question.min_tokens))


def _curves(rows: list[DetectionRow], columns: dict[str, Floats], labels: np.ndarray) -> pl.DataFrame:
    parts = [
        pl.DataFrame(roc_points(labels, columns[row.name]), schema=["fpr", "tpr"], orient="row").with_columns(
            statistic=pl.lit(row.name), auroc=pl.lit(row.auroc.value)
        )
        for row in rows
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def _notes(question: MachineText, asked: Scored, human: Scored | None, decisions: Decisions) -> list[str]:
    notes = []
    empty = sum(row.n_scored == 0 for row in asked.statistics)
    if empty:
        notes.append(f"Texts that hold nothing to score: {empty} of {len(decisions.words)}.")
    cut = sum(left > 0 for left in asked.n_left)
    if cut:
        texts = "one long text" if cut == 1 else f"{cut} long texts"
        notes.append(f"Of {texts} only the beginning was read, {_most_read(asked)} tokens at most.")
    people = set() if human is None else set(human.keys)
    shared = sum(key in people for key in asked.keys)
    if shared:
        notes.append(
            f"Texts that stand among the human ones too, and were compared with themselves: {shared} of"
            f" {len(decisions.words)}."
        )
    if question.base is None and question.base_logprobs is None:
        notes.append("Without a base model there is no log-ratio: a single small model is often no detector at all.")
    if question.kind is None and question.human is not None:
        notes.append(
            "All texts were calibrated as one kind: a mixture of languages or genres hides behind the average."
        )
    flagged = decisions.words.count("flagged")
    if flagged and question.control == "each" and len(decisions.words) >= 20:
        decided = sum(word != "undecided" for word in decisions.words)
        notes.append(
            f"Held to alpha one by one: had people written all {decided} decided texts, about"
            f" {question.alpha * decided:.3g} would be flagged; {flagged} {'is' if flagged == 1 else 'are'}."
        )
    return notes


def _most_read(asked: Scored) -> int:
    """Scored tokens of the longest text that was cut."""
    return max(row.n_scored for row, left in zip(asked.statistics, asked.n_left, strict=True) if left)


def _mend(question: MachineText, decisions: Decisions, calibration: Calibration | None) -> str:
    if calibration is None:
        return f"give at least {texts_needed(question.alpha)} human texts like those asked about"
    if all("outside" in reason for reason in decisions.reasons if reason):
        return "give human texts of such lengths"
    return "give longer texts, or human texts like those asked about"


__all__ = ["CONTROL", "FALLING", "NAMES", "UNITS", "Reported", "reported_of"]
