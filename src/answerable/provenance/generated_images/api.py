"""The detector as a library: scores of images, calibration on real ones, decisions, and whether they are stable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from answerable.errors import BadInput
from answerable.statistics import (
    Calibration,
    Decisions,
    Floats,
    Interval,
    auroc_interval,
    false_alarm_interval,
)
from answerable.statistics.decisions import Control
from answerable.subjects.images import ImageSource, Picture, content_digest, list_images, reencoded, resized
from answerable.subjects.vision_backbone import VisionBackbone

from . import views as moves
from .checks import one_of, positive, whole
from .scanning import BATCH, SCORES, Harmonize, Looking, Scan, Score, checked_looking, scan, squared
from .solver import AGGREGATES, Aggregate, alignment, scores

ALPHA = 0.05
LOSSLESS = frozenset({"png", "bmp", "tiff", "gif", "array"})
Pixels = moves.Pixels


def _shifted(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[1:, 1:])


def _scaled(factor: float) -> Callable[[Pixels], Pixels]:
    def resize(pixels: Pixels) -> Pixels:
        return resized(pixels, *(max(1, round(n * factor)) for n in (pixels.shape[1], pixels.shape[0])))

    return resize


STRESSES: dict[str, Callable[[Pixels], Pixels]] = {
    "JPEG 95": lambda pixels: reencoded(pixels, 95),
    "JPEG 75": lambda pixels: reencoded(pixels, 75),
    "JPEG 50": lambda pixels: reencoded(pixels, 50),
    "half size": _scaled(0.5),
    "twice the size": _scaled(2.0),
    "1 px shift": _shifted,
}


class DirectionCheck(NamedTuple):
    """Whether labelled generated images score above real ones, as the decision takes it.

    auroc : probability that a generated image scores above a real one
    points : "as expected", "the other way" or "not known" by its interval
    """

    auroc: Interval
    points: str


class ConsistencyDetector:
    """Scores and decisions from a network that was trained without labels, or any other.

    Parameters
    ----------
    backbone : a `VisionBackbone`, or what its ``load`` takes
    transform : "paper", "flow", "identity", or a `Transform`
    n_views : views of each image
    views : "random" crops (2K passes an image, as the authors), or one "shared" centre crop (K + 1 passes)
    aggregate : how the views are put together: "mean", "min", "max", "median"
    score : "consistency" (ConV) or "noise" (RIGID)
    noise : standard deviation of the noise, of pixels from 0 to 1
    random_state : together with the pixels it settles every draw
    allow_small : score an enlarged copy of an image smaller than the network's input
    harmonize : "jpeg96" sends every image through one JPEG first, so that file types no longer differ
    two_sided : flag what scores unusually high *or* low, each side at half of alpha
    batch : crops in one pass
    """

    def __init__(
        self,
        backbone: Any,
        *,
        transform: str | moves.Transform = "paper",
        n_views: int = 5,
        views: moves.Way = "random",
        aggregate: Aggregate = "mean",
        score: Score = "consistency",
        noise: float = 0.05,
        random_state: int = 0,
        allow_small: bool = False,
        harmonize: Harmonize = "none",
        two_sided: bool = False,
        batch: int = BATCH,
    ) -> None:
        one_of(score, SCORES, "score")
        one_of(aggregate, AGGREGATES, "aggregate")
        whole(batch, "batch")
        self.backbone = VisionBackbone.load(backbone)
        self.score, self.aggregate, self.two_sided, self.batch = score, aggregate, two_sided, batch
        self.looking = checked_looking(
            Looking(
                transform=moves.transform_of(transform),
                n_views=n_views,
                ways=views,
                noise=noise,
                random_state=random_state,
                allow_small=allow_small,
                harmonize=harmonize,
                scores=(score,),
            )
        )
        self._calibration: Conformal | None = None

    def scan(self, images: Any, *, change: Callable[[Pixels], Pixels] | None = None) -> Scan:
        """All that is seen of the images; ``change`` is done to their pixels first."""
        return scan(list_images(images), self.backbone, self.looking, batch=self.batch, change=change)

    def score_samples(self, images: Any) -> Floats:
        """(n,) float64 scores, large is suspicious; NaN where an image cannot be read or is too small.

        Parameters
        ----------
        images : as :func:`answerable.subjects.list_images` takes them
        """
        return scores(self.scan(images).differences[self.score], self.aggregate)

    def calibrate(self, real_images: Any, *, alpha: float = ALPHA) -> ConsistencyDetector:
        """Learn from real images where to flag; at most a share ``alpha`` of images like them will be.

        Parameters
        ----------
        real_images : at least ``1 / alpha - 1`` of each file type that will be asked about; none of those asked about
        alpha : false-alarm rate allowed, between 0 and 1

        Returns
        -------
        the detector itself

        Raises
        ------
        BadInput : too few images for alpha
        """
        sources = list_images(real_images)
        seen = without_copies(scan(sources, self.backbone, self.looking, batch=self.batch), sources)
        values = scores(seen.differences[self.score], self.aggregate)
        self._calibration = Conformal(seen, values, alpha, self.two_sided, self.looking.harmonize)
        return self

    def decide(self, images: Any) -> Decisions:
        """Words, reasons and p-values.

        Raises
        ------
        BadInput : the detector was not calibrated
        """
        return self._decide(self.scan(images))

    def predict(self, images: Any) -> list[str]:
        """For each image "flagged", "not flagged" or "undecided"."""
        return list(self.decide(images).words)

    def pvalues(self, images: Any) -> Floats:
        """(n,) conformal p-values; NaN where undecided."""
        return self.decide(images).p_values

    def stability(self, images: Any) -> pl.DataFrame:
        """Decisions as the images are and after each re-encoding, resizing and shift.

        Returns
        -------
        ``image``, ``change``, ``score``, ``decision``, ``same`` (as without the change; null where undecided)
        """
        listed = list_images(images)
        seen = scan(listed, self.backbone, self.looking, batch=self.batch)
        plain = self._decide(seen)
        rows = stability_rows(
            seen, scores(seen.differences[self.score], self.aggregate), plain.words, "as it is", plain
        )
        for name, change in STRESSES.items():
            changed = scan(listed, self.backbone, self.looking, batch=self.batch, change=change)
            values = scores(changed.differences[self.score], self.aggregate)
            # Compared with the same calibration as the image itself: what is asked is whether the word changes.
            words = self._decide(changed)
            rows += stability_rows(changed, values, plain.words, name, words)
        return pl.DataFrame(rows, schema=STABILITY_SCHEMA)

    def direction_check(self, real_images: Any, generated_images: Any) -> DirectionCheck:
        """Whether generated images score higher than real ones, on a labelled sample.

        Raises
        ------
        BadInput : fewer than two of either kind could be scored
        """
        known = [values[~np.isnan(values)] for values in map(self.score_samples, (real_images, generated_images))]
        labels = np.repeat([0, 1], [len(part) for part in known])
        return direction_of(auroc_interval(labels, np.concatenate(known)))

    def _decide(self, seen: Scan) -> Decisions:
        if self._calibration is None:
            raise BadInput("the detector was not calibrated", mend="call calibrate with real images")
        return self._calibration.decide(seen, scores(seen.differences[self.score], self.aggregate))


STABILITY_SCHEMA = {"image": pl.String, "change": pl.String, "score": pl.Float64, "decision": pl.String,
                    "same": pl.Boolean}  # fmt: skip


def stability_rows(
    seen: Scan, values: Floats, before: list[Any], change: str, decisions: Decisions
) -> list[dict[str, Any]]:
    """Rows of the stability table for one change."""
    return [
        {
            "image": picture.name,
            "change": change,
            "score": None if np.isnan(value) else float(value),
            "decision": word,
            "same": None if "undecided" in (word, first) else word == first,
        }
        for picture, value, word, first in zip(seen.pictures, values, decisions.words, before, strict=True)
    ]


def direction_of(area: Interval) -> DirectionCheck:
    """What an area says of the direction."""
    points = "as expected" if area.low > 0.5 else "the other way" if area.high < 0.5 else "not known"
    return DirectionCheck(area, points)


class Conformal:
    """Calibration on real images, by file type and within the sizes that were seen.

    A JPEG of quality 60 and a PNG are not exchangeable, so types are calibrated apart: lossless formats together, JPEG,
    WebP. An image of a type or a size that no calibration image had is undecided.

    Parameters
    ----------
    seen, values : the real images and their scores
    alpha : false-alarm rate allowed
    two_sided : also flag low scores, each side at half of alpha
    harmonize : whether types were made alike
    """

    def __init__(self, seen: Scan, values: Floats, alpha: float, two_sided: bool, harmonize: Harmonize) -> None:
        usable = np.array([not reason for reason in seen.reasons]) & ~np.isnan(values)
        if not usable.any():
            first = next((reason for reason in seen.reasons if reason), "nothing could be scored")
            raise BadInput(
                f"none of {len(values)} real images can be used; the first: {first}",
                where="real",
                mend="give images of at least the network's input, or allow_small",
            )
        self.alpha, self.two_sided, self.harmonize = alpha, two_sided, harmonize
        self.scores = values[usable]
        self.pictures = [picture for picture, use in zip(seen.pictures, usable, strict=True) if use]
        self.left_out = int((~usable).sum())
        kinds = [self.kind(picture) for picture in self.pictures]
        sides = [_octave(picture) for picture in self.pictures]
        self._octaves = min(sides), max(sides)
        share = alpha / 2 if two_sided else alpha
        self.high = Calibration(self.scores, alpha=share, kinds=kinds, edges=(), least=1)
        self.low = Calibration(-self.scores, alpha=share, kinds=kinds, edges=(), least=1) if two_sided else None

    def kind(self, picture: Picture) -> str:
        """The file type that an image is calibrated with."""
        return family_of(picture.encoding) if self.harmonize == "none" else self.harmonize

    @property
    def low_thresholds(self) -> list[float]:
        """For each pool the score below which an image is flagged too; empty where high scores alone are flagged."""
        return [] if self.low is None else [-pool.threshold for pool in self.low.pools]

    def false_alarms(self, n: int) -> Interval:
        """Where the rate of thresholds from n images lies; of both together where low scores are flagged too."""
        if self.low is None:
            return false_alarm_interval(n, self.alpha)
        # So many of the n + 1 gaps between sorted scores lie beyond the threshold of one side.
        beyond = math.floor((n + 1) * self.high.alpha + 1e-9)
        return false_alarm_interval(n, 2 * beyond / (n + 1))

    def decide(self, seen: Scan, values: Floats, *, control: Control = "each") -> Decisions:
        """A word for each image; ``control`` as in :meth:`answerable.statistics.Calibration.decide`."""
        kinds = [self.kind(picture) for picture in seen.pictures]
        why = [
            reason or self._size_unlike(picture) for reason, picture in zip(seen.reasons, seen.pictures, strict=True)
        ]
        high = self.high.decide(values, kinds=kinds, undecided=why, control=control)
        if self.low is None:
            return high
        low = self.low.decide(-values, kinds=kinds, undecided=why, control=control)
        words: list[Any] = [
            "flagged" if "flagged" in pair else pair[0] for pair in zip(high.words, low.words, strict=True)
        ]
        either = np.minimum(1.0, 2 * np.minimum(high.p_values, low.p_values))
        adjusted = np.minimum(1.0, 2 * np.minimum(high.adjusted, low.adjusted))
        return high._replace(words=words, p_values=either, adjusted=adjusted)

    def _size_unlike(self, picture: Picture) -> str:
        least, most = self._octaves
        if least <= _octave(picture) <= most:
            return ""
        sides = [min(one.width, one.height) for one in self.pictures]
        side = min(picture.width, picture.height)
        return f"a shorter side of {side} px is unlike the calibration's, {min(sides)} to {max(sides)} px"


def without_copies(seen: Scan, sources: Sequence[ImageSource]) -> Scan:
    """The same, with every further copy of a file marked: a photograph saved twice is one image, not two."""
    first: dict[str, str] = {}
    reasons = []
    for reason, source in zip(seen.reasons, sources, strict=True):
        original = first.setdefault(content_digest(source), source.name)
        reasons.append(reason or (f"a copy of {original}" if original != source.name else ""))
    return seen._replace(reasons=reasons)


def family_of(encoding: str) -> str:
    """The file types that are calibrated together: "lossless", "jpeg" or "webp"."""
    return "lossless" if encoding in LOSSLESS else encoding


def _octave(picture: Picture) -> int:
    """Sizes within a factor of two count as alike."""
    return int(np.floor(np.log2(max(1, min(picture.width, picture.height)))))


def tangent_alignment(
    backbone: VisionBackbone, images: Any, *, transform: str | moves.Transform = "paper", eps: float = 0.05
) -> Floats:
    """Whether backbone and change meet the principle: the score's gradient across the moves that the change makes.

    With t = (h(x) - x) / eps, h the jitter of brightness, contrast and saturation (in this order) times eps, and u the
    gradient of ``1 - cos(g(x), g(h(x)))`` in x: ``|u't| / (|u| |t|)``.

    Parameters
    ----------
    backbone : the network, differentiable
    images : as `list_images` takes them; each its centre crop
    transform : whose reach is used
    eps : how much of it, above 0

    Returns
    -------
    (n,) float64 from 0 to 1, small is as it should be; NaN for an image that cannot be read or is too small
    """
    import torch

    from answerable.subjects.images import decode

    backbone = VisionBackbone.load(backbone)
    positive(eps, "eps", mend="give a number above 0; 0.05 is the default")
    change = moves.transform_of(transform)
    found = []
    for source in list_images(images):
        pixels = decode(source).pixels
        if pixels is None or min(pixels.shape[:2]) < backbone.size:
            found.append(np.nan)
            continue
        pixels = np.ascontiguousarray(squared(pixels, backbone.size))
        drawn = moves.draw(pixels, n_views=1, size=backbone.size, transform=change, views="shared")
        x = torch.from_numpy(moves.crops(pixels, drawn, backbone.size)).requires_grad_(True)
        factors = [1 + eps * (float(factor) - 1) for factor in drawn.factors[0, :3]]
        moved = _smoothly_jittered(x, *factors)
        first, second = backbone.forward(x), backbone.forward(moved)
        (1 - torch.nn.functional.cosine_similarity(first, second).sum()).backward()
        assert x.grad is not None
        move = ((moved - x) / eps).detach().numpy().reshape(1, -1)
        found.append(float(alignment(move, x.grad.numpy().reshape(1, -1))[0]))
    return np.array(found)


def _smoothly_jittered(x: Any, brightness: float, contrast: float, saturation: float) -> Any:
    """The jitter without clipping and hue: linear in the pixels, so that its gradient is exact."""
    weights = x.new_tensor([0.2989, 0.587, 0.114])[:, None, None]
    x = brightness * x
    x = contrast * x + (1 - contrast) * (x * weights).sum(dim=1, keepdim=True).mean(dim=(2, 3), keepdim=True)
    return saturation * x + (1 - saturation) * (x * weights).sum(dim=1, keepdim=True)
