"""From what was asked to scored images: through a network, or from features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from answerable.errors import BadInput
from answerable.statistics import Floats
from answerable.subjects.images import ImageSource, Picture, content_digest, list_images
from answerable.subjects.vision_backbone import VisionBackbone

from . import views as moves
from .api import without_copies
from .features import Features, extract_features, joined, read_features
from .scanning import Looking, Scan, scan
from .solver import dissimilarities, scores

if TYPE_CHECKING:
    from answerable.run import Run

    from .estimator import FlowConsistencyDetector
    from .question import GeneratedImages


class Scored(NamedTuple):
    """Images with their scores.

    seen : pictures without pixels, and why some must not be decided
    scores : by name (n,) float64, large is suspicious, NaN where there is none
    sources : the images, to be decoded again for a picture; empty where only features were given
    flow_parts : energy and cosine of the flow, where it was fitted
    """

    seen: Scan
    scores: dict[str, Floats]
    sources: list[ImageSource]
    flow_parts: dict[str, Floats]

    @property
    def labels(self) -> list[int | None]:
        """1 generated, 0 real, None not known."""
        return [picture.label for picture in self.seen.pictures]


class Read(NamedTuple):
    """What was asked about, and what it is compared with.

    asked, real : the images and the calibration, None where there is none
    network, looking : how they were looked at; None where features were given
    pushed_away : generated images that the flow was fitted away from; None without a flow
    """

    asked: Scored
    real: Scored | None
    network: VisionBackbone | None
    looking: Looking | None
    pushed_away: int | None


def read_images(question: GeneratedImages, run: Run) -> Read:
    """The images asked about and the real ones, each looked at once."""
    network = VisionBackbone.load(question.backbone, size=question.size, device=run.device)
    looking = Looking(
        transform=moves.TRANSFORMS["paper"],
        n_views=question.n_views,
        ways=question.views,
        noise=question.noise,
        random_state=int(run.rng("views").integers(2**31)),
        allow_small=question.allow_small,
        harmonize=question.harmonize,
    )
    flow = None if question.training is None else _fitted(question, network, looking, run)
    parts: list[Scored | None] = []
    known: set[str] = set()
    for field, subject in (("real", question.real), ("images", question.images)):
        if subject is None:
            parts.append(None)
            continue
        try:
            sources = list_images(subject, column=question.column, label=question.label)
            seen = scan(sources, network, looking, batch=question.batch, run=run, label=f"looking at {field}")
            found: dict[str, Floats] = {
                name: scores(seen.differences[name], question.aggregate) for name in looking.scores
            }
            flow_parts = {} if flow is None else _by_flow(flow, sources, seen, network, looking, question, run)
        except BadInput as failure:
            raise failure.within(field) from None
        if flow_parts:
            found["flow"] = flow_parts.pop("flow")
        if field == "real":
            known = {content_digest(source) for source in sources}
            seen = without_copies(seen, sources)
        else:
            seen = seen._replace(reasons=_without_the_known(seen.reasons, sources, known))
        parts.append(Scored(seen, found, sources, flow_parts))
    real, asked = parts
    assert asked is not None
    return Read(asked, real, network, looking, None if flow is None else flow.pushed_away_)


def _without_the_known(reasons: list[str], sources: list[ImageSource], known: set[str]) -> list[str]:
    """An image is no more exchangeable with the calibration once it is part of it."""
    twice = "it stands among the real images too"
    return [
        reason or (twice if content_digest(source) in known else "")
        for reason, source in zip(reasons, sources, strict=True)
    ]


def read_recorded(question: GeneratedImages) -> Read:
    """The same from features alone."""
    asked = _of_features(question, read_features(question.features, where="features"))
    real = None
    if question.real_features is not None:
        real = _of_features(question, read_features(question.real_features, where="real_features"))
    return Read(asked, real, None, None, None)


def _of_features(question: GeneratedImages, found: Features) -> Scored:
    pairs = found.source.reshape(len(found.source), -1, found.source.shape[-1])
    changed = found.changed.reshape(pairs.shape)
    differences = dissimilarities(pairs, changed, where="features")
    labels = [None if label < 0 else int(label) for label in found.labels]
    pictures = [Picture(name, label, None, encoding="features") for name, label in zip(found.names, labels)]
    seen = Scan(pictures, {"consistency": differences}, [""] * len(pictures))
    return Scored(seen, {"consistency": scores(differences, question.aggregate)}, [], {})


def _fitted(question: GeneratedImages, network: VisionBackbone, looking: Looking, run: Run) -> FlowConsistencyDetector:
    from .estimator import FlowConsistencyDetector

    try:
        sources = list_images(question.training, column=question.column, label=question.label)
        passes = [
            extract_features(network, sources, training=True, random_state=looking.random_state + number,
                             batch=question.batch, run=run)
            for number in range(question.crops)
        ]  # fmt: skip
    except BadInput as failure:
        raise failure.within("training") from None
    run.status("fitting the flow")
    flow = FlowConsistencyDetector(
        hidden=question.hidden,
        lr=question.lr,
        epochs=question.epochs,
        fake_sign=question.fake_sign,
        tau=question.tau,
        random_state=looking.random_state,
    )
    import warnings

    with warnings.catch_warnings():  # that nothing was pushed away stands among the answer's limits
        warnings.simplefilter("ignore", UserWarning)
        return flow.fit(joined(passes))


def _by_flow(
    flow: FlowConsistencyDetector,
    sources: list[ImageSource],
    seen: Scan,
    network: VisionBackbone,
    looking: Looking,
    question: GeneratedImages,
    run: Run,
) -> dict[str, Floats]:
    """The flow's score and its parts for every image that could be looked at and is large enough by itself."""
    first = seen.differences["consistency"][:, 0]
    large = [min(picture.width, picture.height) >= network.size for picture in seen.pictures]
    rows = [k for k in range(len(sources)) if not np.isnan(first[k]) and large[k]]
    result: dict[str, Floats] = {name: np.full(len(sources), np.nan) for name in ("flow", "energy", "cosine")}
    if rows:
        chosen: list[Any] = [sources[k] for k in rows]
        feats = extract_features(network, chosen, random_state=looking.random_state, batch=question.batch, run=run)
        parts = flow.score_parts(feats)
        for name, column in (("flow", parts.total), ("energy", parts.energy), ("cosine", parts.cosine)):
            result[name][rows] = column
    return result
