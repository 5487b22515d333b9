"""The question: from texts and models, or recorded log-probabilities, to decisions in words, tables and pictures."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.question import Field, Question, Subject, Text

if TYPE_CHECKING:
    from answerable.run import Run

    from .reporting import Reported

# Two tokens of different luck in each record; the tests work the scores by hand.
_LINES = [[-0.5 - 0.1 * (k % 7), -0.4 - 0.05 * (k % 5)] for k in range(24)]


def _record(policy: list[float]) -> dict[str, Any]:
    return {"tokens": ["so", " it", " is"], "logprobs": [None, *policy]}


class MachineText(Question):
    """Was this text written by a language model?

    The score is the log-ratio of an instruct model to the base model it was made from (implicit reward, NeurIPS 2025),
    with six companion statistics from the same pass. A text is flagged where it scores higher than texts that people
    wrote, of its own length and kind, with a stated false-alarm rate; what the calibration does not cover is undecided.
    """

    name: ClassVar[str] = "machine-text"
    tolerance: ClassVar[float] = 1e-4  # of float32 logits, added up in another order on another machine
    smallest: ClassVar[dict[str, Any]] = {
        "logprobs": [_record([-0.2, -0.1]), _record([-0.6, -0.5])],
        "base_logprobs": [_record([-1.2, -1.1]), _record([-0.5, -0.5])],
        "human_logprobs": [_record(line) for line in _LINES],
        "human_base_logprobs": [_record([-0.45, -0.4]) for _ in _LINES],
        "alpha": 0.05,
        "min_tokens": 2,
    }

    model: Annotated[Any, Subject("language_model")] = Field(
        None,
        description="the model that scores, an instruct model: a folder, a .gguf file, pypi:PACKAGE or hf:org/name",
    )
    base: Annotated[Any, Subject("language_model")] = Field(
        None, description="the base model it was made from; without it there are statistics of one model only"
    )
    text: Annotated[list[str] | str | None, Text()] = Field(
        None, description="the text, or several", min_length=1, max_length=10_000
    )
    texts: Annotated[Any, Subject("corpus")] = Field(
        None, description="many texts: CSV, Parquet, JSON Lines, DetectRL or MGTBench JSON, a dataframe or a list"
    )
    human: Annotated[Any, Subject("corpus")] = Field(
        None, description="texts that people wrote, like those asked about and none of them: the calibration"
    )
    logprobs: Annotated[Any, Subject("token_logprobs")] = Field(
        None, description="recorded log-probabilities of the texts instead of models: OpenAI-style JSON or JSON Lines"
    )
    base_logprobs: Annotated[Any, Subject("token_logprobs")] = Field(
        None, description="the same texts recorded with the base model"
    )
    human_logprobs: Annotated[Any, Subject("token_logprobs")] = Field(
        None, description="recorded log-probabilities of texts that people wrote"
    )
    human_base_logprobs: Annotated[Any, Subject("token_logprobs")] = Field(
        None, description="these recorded with the base model"
    )
    column: str = Field("text", min_length=1, max_length=200, description="column, or key, of the texts")
    label: str = Field(
        "label", min_length=1, max_length=200, description="column that says human or machine; used where it is there"
    )
    kind: str | None = Field(
        None, min_length=1, max_length=200, description="column of a kind (language, genre) that is calibrated apart"
    )
    statistic: Literal[
        "auto", "irm", "irm_mean", "irm_sqrt", "fast_detect", "binoculars", "loglik", "logrank", "lrr", "entropy"
    ] = Field("auto", description="what decides; auto is irm with a base model, else fast_detect")
    alpha: float = Field(0.01, gt=0, lt=1, unit="share", description="false-alarm rate allowed on human texts")
    control: Literal["each", "batch"] = Field(
        "each", description="hold each text to alpha, or the share of false ones among all flagged"
    )
    min_tokens: int = Field(50, ge=1, le=100_000, unit="tokens", description="fewer scored tokens are undecided")
    max_tokens: int = Field(512, ge=2, le=1_000_000, unit="tokens", description="tokens of a text that are read")
    long: Literal["truncate", "windows"] = Field(
        "truncate", description="whether a longer text is cut, or read in windows whose scores are added"
    )
    edges: list[float] = Field(
        [50.0, 100.0, 200.0, 400.0], unit="tokens", description="lengths where a new calibration bin begins, rising"
    )
    least: int = Field(100, ge=1, le=1_000_000, unit="texts", description="fewest calibration texts of a bin")
    batch_tokens: int = Field(
        4096, ge=16, le=10_000_000, unit="tokens", description="tokens read at once, padding included"
    )
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = Field(
        "float32", description="number format of the models' weights"
    )
    explain: int = Field(
        0, ge=0, le=10_000_000, unit="number of a text", description="the text shown token by token; 0: the highest"
    )

    @field_validator("text", mode="before")
    @classmethod
    def _one_text_is_a_list_of_one(cls, value: Any) -> Any:
        if isinstance(value, (bytes, bytearray)):
            raise ValueError("bytes are no text; decode them, as by .decode()")
        return [value] if isinstance(value, str) else value

    @field_validator("edges")
    @classmethod
    def _edges_rise(cls, value: list[float]) -> list[float]:
        if any(b <= a for a, b in itertools.pairwise(value)) or any(edge <= 0 for edge in value):
            raise ValueError("should rise from above 0")
        return value

    @model_validator(mode="after")
    def _one_way_of_asking(self) -> MachineText:
        recorded = [self.logprobs, self.base_logprobs, self.human_logprobs, self.human_base_logprobs]
        if all(part is None for part in recorded):
            if self.model is None:
                raise ValueError("it needs model, or logprobs; give one of the two")
            if self.long == "truncate" and self.max_tokens < self.min_tokens:
                raise ValueError(
                    f"only {self.max_tokens} tokens are read and fewer than {self.min_tokens} are undecided; give a"
                    " larger max_tokens, or a smaller min_tokens"
                )
            if (self.text is None) == (self.texts is None):
                raise ValueError("it needs either text or texts; give one of the two")
            if self.statistic in ("irm", "irm_mean", "irm_sqrt", "binoculars") and self.base is None:
                raise ValueError(f"{self.statistic} compares two models; give base too")
            return self
        if self.logprobs is None:
            raise ValueError("recorded log-probabilities of the texts are missing; give logprobs")
        if any(part is not None for part in (self.model, self.base, self.text, self.texts, self.human)):
            raise ValueError("it is asked with models or with recorded log-probabilities; give one of the two")
        if (self.human_base_logprobs is not None) != (
            self.human_logprobs is not None and self.base_logprobs is not None
        ):
            raise ValueError(
                "what is recorded of the texts has to be recorded of the human ones; give all four, or two"
            )
        known = ("auto", "loglik") if self.base_logprobs is None else ("auto", "loglik", "irm", "irm_mean", "irm_sqrt")
        if self.statistic not in known:
            raise ValueError(f"log-probabilities alone do not give {self.statistic}; choose among {', '.join(known)}")
        return self

    def answer(self, run: Run) -> Answer:
        """Score, decide, and put both into words, tables and pictures."""
        from .reading import read_models, read_records
        from .reporting import reported_of

        asked, human = (read_models if self.model is not None else read_records)(self, run)
        found = reported_of(self, asked, human)
        return Answer(
            summary=_summary(found),
            metrics=_metrics(found),
            tables=_tables(found),
            figures=_figures(found),
            limits=_limits(self, found),
            verdict=_verdict(found),
        )


def _summary(found: Reported) -> str:
    n, flagged, undecided = found.n, found.count("flagged"), found.count("undecided")
    if n == 1:
        score = f"{found.score_name} is {found.scores[0]:.3g}" if math.isfinite(found.scores[0]) else "it has no score"
        if undecided:
            return f"It cannot be told whether a language model wrote the text: {score}; {found.reasons[0]}."
        word = "is flagged as machine-written" if flagged else "is not flagged"
        return f"The text {word}: {score}, conformal p-value {found.decisions.p_values[0]:.3g} among human texts."
    if found.calibration is None:
        return f"{n} texts were scored and none is decided: there are no human texts to calibrate on."
    decided = (
        f"{flagged} of {n} texts {_is(flagged)} flagged as machine-written, at a false-alarm rate of {found.alpha:.3g}"
    )
    ending = f"; {undecided} {_is(undecided)} undecided" if undecided else ""
    area = found.row_of(found.statistic)
    return decided + ending + (f"; AUROC {area.auroc.value:.3f}." if area is not None else ".")


def _verdict(found: Reported) -> Verdict:
    n, flagged, undecided = found.n, found.count("flagged"), found.count("undecided")
    if flagged:
        what = "each text held to alpha" if found.control == "each" else "held over all texts"
        texts = "the text scores" if n == 1 else f"{flagged} of {n} texts {'scores' if flagged == 1 else 'score'}"
        what = "" if n == 1 else f", {what}"
        return Verdict("flagged", f"{texts} above human ones; alpha = {found.alpha:.3g}{what}")
    if undecided == n:
        first = (
            found.reasons[0] if n == 1 or found.calibration is None else f"all {n} texts; the first: {found.reasons[0]}"
        )
        return Verdict("undecided", first, found.mend)
    decided = n - undecided
    none = (
        f"none of {decided} decided texts scores"
        if decided > 1
        else f"the {'' if n == 1 else 'one decided '}text does not score"
    )
    return Verdict("not flagged", f"{none} above human ones at alpha = {found.alpha:.3g}")


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _metrics(found: Reported) -> dict[str, Metric]:
    def exact(value: float, unit: str, method: str, label: str) -> Metric:
        return Metric(value, kind="exact", unit=unit, method=method, label=label)

    metrics = {
        "texts": exact(found.n, "texts", "count", "Texts"),
        "flagged": exact(found.count("flagged"), "texts", "count", "Texts flagged"),
        "undecided": exact(found.count("undecided"), "texts", "count", "Texts undecided"),
    }
    unit = found.unit
    if found.n == 1:
        reason = "" if math.isfinite(found.scores[0]) else "there is nothing to score"
        metrics["score"] = Metric(found.scores[0] if not reason else math.nan, kind="exact", unit=unit,
                                  method=found.score_name, reason=reason, label="Score")  # fmt: skip
        p = float(found.decisions.p_values[0])
        metrics["p_value"] = Metric(p, kind="exact", method="conformal, among human texts of its length",
                                    reason=found.reasons[0] if math.isnan(p) else "", label="p-value")  # fmt: skip
    if found.false_alarms is not None:
        rate = found.false_alarms
        metrics["false_alarm_rate"] = Metric(rate.value, rate.low, rate.high, method=rate.method,
                                             label="False-alarm rate of the smallest pool's threshold")  # fmt: skip
    return metrics | _measured(found)


def _measured(found: Reported) -> dict[str, Metric]:
    """What known labels say of the scores and of the decisions."""
    metrics: dict[str, Metric] = {}
    for key, row, role, what in (
        ("", found.row_of(found.statistic), "ours", found.statistic),
        ("_length", found.row_of(found.control_name), "control", "length alone"),
    ):
        if row is None:
            continue
        parts = {
            f"auroc{key}": (row.auroc, f"AUROC, {what}"),
            f"average_precision{key}": (row.average_precision, f"Average precision, {what}"),
            f"tpr_at_1_percent{key}": (row.tpr[0], f"Found at 1 % false alarms, {what}"),
            f"tpr_at_0_1_percent{key}": (row.tpr[1], f"Found at 0.1 % false alarms, {what}"),
            f"f1{key}": (row.f1, f"F1, {what}"),
        }
        for name, (interval, label) in parts.items():
            metrics[name] = Metric(*interval[:3], method=interval.method, role=role, label=label)  # type: ignore[arg-type]
    for name, share, label in (
        ("false_alarms", found.human_flagged, "Human texts flagged"),
        ("found", found.machine_flagged, "Machine texts flagged"),
    ):
        if share is not None:
            metrics[name] = Metric(*share[:3], method=share.method, label=label)
    return metrics


def _tables(found: Reported) -> dict[str, Table]:
    from . import columns

    tables = {"texts": Table(found.texts, {name: columns.TEXTS[name] for name in found.texts.columns}, title="Texts")}
    if found.pools.height:
        tables["calibration"] = Table(found.pools, columns.POOLS, title="Calibration, by kind and length")
    if found.report.height:
        tables["detection"] = Table(found.report, columns.DETECTION, title="How well each statistic tells them apart")
    if found.tokens.height:
        title = f"Tokens of text {found.explained}"
        tables["tokens"] = Table(found.tokens, columns.TOKENS, title=title)
    return tables


def _figures(found: Reported) -> dict[str, Figure]:
    from . import figures

    name = f"{found.score_name[0].upper()}{found.score_name[1:]} [{found.unit}]"
    drawn: dict[str, Figure] = {}
    if found.points.height:
        thresholds = sorted(set(found.drawn_pools["threshold"].to_list()))
        drawn["densities"] = Figure.drawn(figures.densities, found.points, thresholds, name=name)
        drawn["length"] = Figure.drawn(figures.score_by_length, found.points, found.drawn_pools, name=name)
    if found.curves.height:
        drawn["roc"] = Figure.drawn(figures.roc_curves, found.curves, ours=found.statistic, control=found.control_name)
    if found.evidence.height:
        drawn["text"] = Figure.drawn(
            figures.coloured_text, found.evidence, title=found.evidence_title, name=found.evidence_name
        )
    return drawn


def _limits(asked: MachineText, found: Reported) -> list[str]:
    limits = [
        "A flag says that a text scores above the human texts it was compared with; it proves nothing about a person.",
        "The false-alarm rate holds for texts like the calibration's: other languages, genres or times move it.",
        "Paraphrased, polished or disguised text passes more often; stiff human text is flagged more often.",
    ]
    if found.statistic.startswith("irm"):
        limits.append(
            "On other benchmarks than DetectRL an independent evaluation found the log-ratio behind Binoculars and"
            " Fast-DetectGPT: look at several statistics."
        )
    ours, control = (found.row_of(name) for name in (found.statistic, found.control_name))
    if ours is not None and control is not None:
        by_length = max(control.auroc.value, 1 - control.auroc.value)
        if ours.auroc.value <= by_length:
            limits.append(
                f"The length alone tells these texts apart as well or better (AUROC {by_length:.3f}) than"
                f" {found.statistic} ({ours.auroc.value:.3f}), which therefore shows nothing here."
            )
    return limits + found.notes
