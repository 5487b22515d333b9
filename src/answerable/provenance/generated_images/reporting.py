"""From scored images to what the answer says: decisions, calibration, stability, detection, and all tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from answerable.errors import BadInput
from answerable.provenance.detection_curves import roc_points
from answerable.statistics import (
    Decisions,
    DetectionRow,
    Floats,
    Interval,
    detection_report,
    tpr_at_fpr_interval,
    wilson_interval,
)
from answerable.subjects.images import Picture

from .api import STRESSES, Conformal, family_of, stability_rows
from .formats import TYPE_CONTROL, format_controls, type_rows, unlike
from .scanning import scan
from .solver import scores

if TYPE_CHECKING:
    from answerable.run import Run

    from .question import GeneratedImages
    from .reading import Read, Scored

NAMES = {"consistency": "ConV, 1 less similarity", "noise": "RIGID, 1 less similarity", "flow": "F-ConV"}
UNSTABLE = "the decision changes when the image is saved or resized again"


@dataclass(frozen=True)
class Reported:
    """Everything that the answer is worded from.

    statistic : what decides
    asked, real : as read
    scores : (n,) of what decides
    decisions, calibration : words and p-values; no calibration where there are no real images
    rows : detectors and controls where labels are known
    other fields : the tables of the answer, and those of its pictures
    """

    statistic: str
    alpha: float
    control: str
    asked: Scored
    scores: Floats
    decisions: Decisions
    calibration: Conformal | None
    rows: list[DetectionRow]
    tpr_5: list[Interval]
    shares: dict[str, Interval]
    false_alarms: Interval | None
    images: pl.DataFrame
    pools: pl.DataFrame
    report: pl.DataFrame
    stability: pl.DataFrame
    types: pl.DataFrame
    points: pl.DataFrame
    curves: pl.DataFrame
    notes: list[str]

    @property
    def n(self) -> int:
        """How many images were asked about."""
        return len(self.scores)

    @property
    def score_name(self) -> str:
        """What decides, in words."""
        return NAMES[self.statistic]

    def count(self, word: str) -> int:
        """How many images got this word."""
        return self.decisions.words.count(word)  # type: ignore[arg-type]

    @property
    def beyond(self) -> str:
        """Where what is flagged lies among real images."""
        return "above or below" if self.calibration is not None and self.calibration.two_sided else "above"

    def row_of(self, name: str) -> DetectionRow | None:
        """The detection row of that name, where labels are known."""
        return next((row for row in self.rows if row.name == name), None)


def reported_of(question: GeneratedImages, read: Read, run: Run) -> Reported:
    """Decide, measure, and make every table."""
    asked, real = read.asked, read.real
    values = asked.scores[question.score]
    calibration = None if real is None else _calibrated(question, real)
    decisions = _decided(question, asked, values, calibration)
    stability = pl.DataFrame()
    if calibration is not None and read.network is not None and question.score != "flow":
        decisions, stability = _steadied(question, read, calibration, decisions, run)
    rows, tpr_5, columns, labels = _measured(asked)
    return Reported(
        statistic=question.score,
        alpha=question.alpha,
        control=question.control,
        asked=asked,
        scores=values,
        decisions=decisions,
        calibration=calibration,
        rows=rows,
        tpr_5=tpr_5,
        shares=_shares(asked, decisions),
        false_alarms=_false_alarms(calibration),
        images=_image_rows(asked, values, decisions, calibration),
        pools=_pool_rows(calibration, decisions),
        report=_report_rows(rows, tpr_5, question.score),
        stability=stability,
        types=type_rows(_sets(asked, real)),
        points=_points(asked, real, values, question.score),
        curves=_curves(rows, columns, labels),
        notes=_notes(question, read, decisions, calibration, rows),
    )


def _calibrated(question: GeneratedImages, real: Scored) -> Conformal:
    field = "real" if question.images is not None else "real_features"
    wrong = next((picture.name for picture in real.seen.pictures if picture.label == 1), None)
    if wrong is not None:
        mend = "leave out what was generated"
        raise BadInput("a calibration image is labelled generated", where=f"{field}, {wrong}", mend=mend)
    try:
        return Conformal(real.seen, real.scores[question.score], question.alpha, question.two_sided, question.harmonize)
    except BadInput as failure:
        raise failure if failure.where.startswith(field) else failure.within(field) from None


def _decided(question: GeneratedImages, asked: Scored, values: Floats, calibration: Conformal | None) -> Decisions:
    if calibration is None:
        nothing = np.full(len(values), np.nan)
        reasons = [reason or "there are no real images to calibrate on" for reason in asked.seen.reasons]
        return Decisions(["undecided"] * len(values), reasons, nothing, nothing, np.full(len(values), -1), [])
    return calibration.decide(asked.seen, values, control=question.control)


def _steadied(
    question: GeneratedImages, read: Read, calibration: Conformal, decisions: Decisions, run: Run
) -> tuple[Decisions, pl.DataFrame]:
    """Decisions after every re-encoding; one that does not stay the same is undecided."""
    chosen = {"none": (), "flagged": ("flagged",), "all": ("flagged", "not flagged")}[question.stability]
    rows = [k for k, word in enumerate(decisions.words) if word in chosen]
    if not rows:
        return decisions, pl.DataFrame()
    assert read.network is not None and read.looking is not None
    sources = [read.asked.sources[k] for k in rows]
    looking = replace(read.looking, scores=(question.score,))  # type: ignore[arg-type]  # the flow has no looks
    # Whether its own decision stays: held over all images, a word hangs on the others too.
    alone = calibration.decide(read.asked.seen, read.asked.scores[question.score]).words
    before = [alone[k] for k in rows]
    made: list[dict[str, Any]] = []
    changed: set[int] = set()
    for name, change in STRESSES.items():
        label = f"after {name}"
        seen = scan(sources, read.network, looking, batch=question.batch, run=run, change=change, label=label)
        values = scores(seen.differences[question.score], question.aggregate)
        again = calibration.decide(seen, values)
        made += stability_rows(seen, values, before, name, again)
        changed |= {rows[i] for i, word in enumerate(again.words) if word != "undecided" and word != before[i]}
    words = [("undecided" if k in changed else word) for k, word in enumerate(decisions.words)]
    reasons = [(UNSTABLE if k in changed else reason) for k, reason in enumerate(decisions.reasons)]
    return decisions._replace(words=words, reasons=reasons), pl.DataFrame(made)


def _measured(
    asked: Scored,
) -> tuple[list[DetectionRow], list[Interval], dict[str, Floats], np.ndarray]:
    """Detection rows over the labelled images that could be scored, with file type and size alone."""
    known = np.array([label is not None for label in asked.labels])
    for column in asked.scores.values():
        known &= ~np.isnan(column)
    labels = np.array([label == 1 for label in asked.labels])[known]
    if min(labels.sum(), (~labels).sum()) < 2:
        return [], [], {}, labels
    columns = {name: column[known] for name, column in asked.scores.items()}
    pictures = [picture for picture, use in zip(asked.seen.pictures, known, strict=True) if use]
    controls = format_controls(pictures, labels) if pictures[0].encoding != "features" else {}
    rows = detection_report(labels, columns, controls=controls)
    both = columns | controls
    return rows, [tpr_at_fpr_interval(labels, both[row.name], 0.05) for row in rows], both, labels


def _shares(asked: Scored, decisions: Decisions) -> dict[str, Interval]:
    """Of the labelled and decided images: real ones flagged, generated ones flagged, and all decided rightly."""
    pairs = [(word, label) for word, label in zip(decisions.words, asked.labels, strict=True)
             if word != "undecided" and label is not None]  # fmt: skip
    found: dict[str, Interval] = {}
    for name, label in (("false_alarms", 0), ("found", 1)):
        words = [word for word, known in pairs if known == label]
        if words:
            found[name] = wilson_interval(words.count("flagged"), len(words))
    if len(found) == 2:
        right = sum((word == "flagged") == (label == 1) for word, label in pairs)
        found["accuracy"] = wilson_interval(right, len(pairs))
    return found


def _false_alarms(calibration: Conformal | None) -> Interval | None:
    """Of the smallest pool that decides: its rate is the least certain."""
    if calibration is None:
        return None
    sizes = [pool.n for pool in calibration.high.pools if pool.n >= calibration.high.needed]
    return calibration.false_alarms(min(sizes))


def _low_thresholds(calibration: Conformal | None, decisions: Decisions) -> dict[str, Floats]:
    if calibration is None or not calibration.two_sided:
        return {}
    known = [*calibration.low_thresholds, np.nan]  # -1 is the last: no pool, no threshold
    return {"low_threshold": np.array([known[pool] for pool in decisions.pools], dtype=np.float64)}


def _image_rows(asked: Scored, values: Floats, decisions: Decisions, calibration: Conformal | None) -> pl.DataFrame:
    thresholds = [decisions.of_pools[pool].threshold if pool >= 0 else np.nan for pool in decisions.pools]
    words = {1: "generated", 0: "real", None: None}
    pictures = asked.seen.pictures
    frame = pl.DataFrame(
        {
            "image": [picture.name for picture in pictures],
            "label": pl.Series([words[picture.label] for picture in pictures], dtype=pl.String),
            "encoding": [picture.encoding for picture in pictures],
            "width": [picture.width for picture in pictures],
            "height": [picture.height for picture in pictures],
            "quality": pl.Series([picture.quality for picture in pictures], dtype=pl.Int64),
            "score": values,
            "p_value": decisions.p_values,
            "adjusted": decisions.adjusted,
            "threshold": np.array(thresholds, dtype=np.float64),
            **_low_thresholds(calibration, decisions),
            "decision": decisions.words,
            "reason": decisions.reasons,
            "notes": ["; ".join(picture.notes) for picture in pictures],
            **asked.scores,
            **{f"flow_{name}": column for name, column in asked.flow_parts.items()},
        }
    )
    frame = frame.with_columns(pl.col(pl.Float64).fill_nan(None))
    if all(picture.encoding == "features" for picture in pictures):
        frame = frame.drop("width", "height", "quality", "notes")
    return frame.sort("p_value", nulls_last=True, maintain_order=True)


def _pool_rows(calibration: Conformal | None, decisions: Decisions) -> pl.DataFrame:
    rows = []
    for number, pool in enumerate(calibration.high.pools if calibration is not None else []):
        assert calibration is not None
        enough = pool.n >= calibration.high.needed
        rate = calibration.false_alarms(pool.n) if enough else None
        low = calibration.low_thresholds[number] if calibration.two_sided and enough else None
        rows.append(
            {
                "kind": pool.kind,
                "n": pool.n,
                "threshold": pool.threshold if enough else None,
                "low_threshold": low,
                "rate_low": rate.low if rate else None,
                "rate_high": rate.high if rate else None,
                "asked": int((decisions.pools == number).sum()),
            }
        )
    schema = {"kind": pl.String, "n": pl.Int64, "threshold": pl.Float64, "low_threshold": pl.Float64,
              "rate_low": pl.Float64, "rate_high": pl.Float64, "asked": pl.Int64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema)
    return frame if calibration is not None and calibration.two_sided else frame.drop("low_threshold")


def _report_rows(rows: list[DetectionRow], tpr_5: list[Interval], statistic: str) -> pl.DataFrame:
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
                **ends("tpr_5", five),
                "generated": row.n_positive,
                "real": row.n_negative,
            }
            for row, five in zip(rows, tpr_5, strict=True)
        ]
    )


def _sets(asked: Scored, real: Scored | None) -> dict[str, list[Picture]]:
    words = {1: "generated", 0: "real", None: "asked"}
    sets: dict[str, list[Picture]] = {}
    if real is not None:
        sets["calibration"] = real.seen.pictures
    for picture in asked.seen.pictures:
        sets.setdefault(words[picture.label], []).append(picture)
    return {name: [p for p in pictures if not p.failure] for name, pictures in sets.items()}


def _points(asked: Scored, real: Scored | None, values: Floats, statistic: str) -> pl.DataFrame:
    """Group and score of every image that has one: what the densities show."""
    words = {1: "generated", 0: "real", None: "asked"}
    parts = [([words[label] for label in asked.labels], values)]
    if real is not None:
        parts.append((["calibration"] * len(real.labels), real.scores[statistic]))
    frame = pl.concat([pl.DataFrame({"group": group, "score": column}) for group, column in parts])
    return frame.filter(pl.col("score").is_finite())


def _curves(rows: list[DetectionRow], columns: dict[str, Floats], labels: np.ndarray) -> pl.DataFrame:
    parts = [
        pl.DataFrame(roc_points(labels, columns[row.name]), schema=["fpr", "tpr"], orient="row").with_columns(
            statistic=pl.lit(row.name), auroc=pl.lit(row.auroc.value)
        )
        for row in rows
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def _notes(
    question: GeneratedImages, read: Read, decisions: Decisions, calibration: Conformal | None, rows: list[DetectionRow]
) -> list[str]:
    notes = []
    asked = read.asked
    failed = [picture for picture in asked.seen.pictures if picture.failure]
    if failed:
        notes.append(f"{len(failed)} of {len(asked.scores[question.score])} files could not be read; none is replaced.")
    if calibration is not None and calibration.left_out:
        notes.append(
            f"{calibration.left_out} real images could not be calibrated on: unreadable, small, empty or copies."
        )
    ours = next((row for row in rows if row.name == question.score), None)
    for row in rows:
        if row.is_control and ours is not None and row.auroc.value >= max(ours.auroc.value, 0.6):
            notes.append(
                f"Here {row.name} tells generated from real with an AUROC of {row.auroc.value:.2f}, no worse than the"
                " score: nothing is shown about the images themselves."
            )
        elif row.is_control and row.name == TYPE_CONTROL and row.auroc.value >= 0.6:
            notes.append(
                f"Generated and real images differ in file type (type alone: AUROC {row.auroc.value:.2f}); harmonize"
                " re-encodes all alike."
            )
    if ours is not None and ours.auroc.high < 0.5:
        notes.append("On these labels the score points the other way: generated images score *lower* than real ones.")
    difference = unlike(_sets(asked, read.real)) if question.harmonize == "none" else ""
    if difference:
        notes.append(difference)
    if question.score == "flow" and question.stability != "none" and read.real is not None:
        notes.append("The flow's decisions were not tried on saved or resized copies.")
    if read.pushed_away == 0:
        notes.append("The flow was fitted to real images alone: nothing was pushed away.")
    flagged = decisions.words.count("flagged")
    if flagged and question.control == "each" and len(decisions.words) >= 20:
        by_chance = question.alpha * sum(word != "undecided" for word in decisions.words)
        notes.append(
            f"Held to alpha one by one: of {flagged} flagged, up to {by_chance:.3g} would be real if all images were."
        )
    return notes


__all__ = ["NAMES", "Reported", "family_of", "reported_of"]
