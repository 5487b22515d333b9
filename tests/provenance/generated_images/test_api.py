"""The detector with a small network: what settles a score, decisions, stability, direction, kept features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from answerable.errors import BadInput
from answerable.provenance.generated_images import (
    ConsistencyDetector,
    extract_features,
    read_features,
    tangent_alignment,
)
from answerable.provenance.generated_images.scanning import Looking, scan
from answerable.run import Run
from answerable.subjects import VisionBackbone, list_images

from .conftest import images, network, write

Detector = ConsistencyDetector


@pytest.mark.parametrize("score", ["consistency", "noise"])
def test_a_score_does_not_depend_on_order_batch_or_file_type(
    backbone: VisionBackbone, tmp_path: Path, score: str
) -> None:
    made = images(5)
    detector = Detector(backbone, score=score)  # type: ignore[arg-type]
    found = detector.score_samples(made)
    assert (found > 0).all()
    assert detector.score_samples(made[::-1])[::-1] == pytest.approx(found, rel=1e-4)
    assert Detector(backbone, score=score, batch=1).score_samples(made) == pytest.approx(found, rel=1e-4)  # type: ignore[arg-type]
    for ending in ("png", "bmp", "tiff"):
        again = detector.score_samples(write(tmp_path / ending, made, ending))
        assert (again == found).all()
    assert (detector.score_samples([Image.fromarray(one) for one in made]) == found).all()
    assert (Detector(backbone, score=score, random_state=1).score_samples(made) != found).all()  # type: ignore[arg-type]


def test_without_a_change_every_score_is_exactly_zero(backbone: VisionBackbone) -> None:
    assert (Detector(backbone, transform="identity", batch=3).score_samples(images(4)) < 1e-12).all()
    assert (Detector(backbone, transform="identity", n_views=1, batch=8).score_samples(images(4)) < 1e-12).all()


def test_a_score_is_the_mean_over_views_of_one_less_the_cosine(backbone: VisionBackbone) -> None:
    from answerable.provenance.generated_images import views

    (pixels,) = images(1)
    drawn = views.draw(pixels, n_views=3, size=32)
    cut = views.crops(pixels, drawn, 32)
    pairs = zip(backbone.features(cut).astype(float), backbone.features(views.changed(cut, drawn)).astype(float))
    by_hand = np.mean([1 - a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs])
    assert Detector(backbone, n_views=3).score_samples([pixels])[0] == pytest.approx(by_hand, rel=1e-4)


def test_real_images_are_flagged_no_oftener_than_alpha(backbone: VisionBackbone, seed: int) -> None:
    detector = Detector(backbone, n_views=2, views="shared").calibrate(images(99, seed=seed), alpha=0.2)
    words = detector.predict(images(200, seed=1000 + seed))
    # Of 99 the rate is Beta(20, 80): mean 0.2, spread 0.04; with 200 asked another 0.028.
    assert words.count("flagged") / 200 < 0.2 + 4 * np.hypot(0.04, 0.028)
    assert words.count("undecided") == 0


def test_p_values_and_words_belong_together(backbone: VisionBackbone) -> None:
    detector = Detector(backbone).calibrate(images(19), alpha=0.05)
    rng = np.random.default_rng(0)
    strange = [rng.integers(0, 2, (40, 40, 3)).astype(np.uint8) * 255 for _ in range(3)]
    decided = detector.decide([*images(2, seed=5), *strange])
    for word, p in zip(decided.words, decided.p_values, strict=True):
        assert (word == "flagged") == (p <= 0.05)
    assert detector.pvalues(images(2, seed=5)) == pytest.approx(decided.p_values[:2])


def test_two_sides_flag_what_is_too_like_as_well(backbone: VisionBackbone) -> None:
    real = images(59)
    grey = [np.repeat(one[..., :1], 3, axis=2) for one in images(1, seed=3)]
    flat = [np.full((40, 40, 3), 128, np.uint8)]
    flat[0][0, 0] = 129
    one, two = (Detector(backbone, two_sided=both, n_views=3).calibrate(real, alpha=0.1) for both in (False, True))
    low = [k for k, p in enumerate(one.pvalues([*grey, *flat])) if p > 0.98]
    assert low
    assert all(two.predict([*grey, *flat])[k] == "flagged" for k in low)
    assert all(one.predict([*grey, *flat])[k] == "not flagged" for k in low)


def test_types_are_calibrated_apart_and_an_unknown_one_is_undecided(backbone: VisionBackbone, tmp_path: Path) -> None:
    real = write(tmp_path / "real", images(19), "png")
    jpeg = write(tmp_path / "jpeg", images(2, seed=1), "jpg", quality=90)
    apart = Detector(backbone).calibrate(real, alpha=0.05).decide(jpeg)
    assert apart.words == ["undecided"] * 2
    assert apart.reasons[0] == "nothing of kind 'jpeg' was calibrated"
    alike = Detector(backbone, harmonize="jpeg96").calibrate(real, alpha=0.05).decide(jpeg)
    assert "undecided" not in alike.words


def test_a_size_that_was_not_calibrated_is_undecided(backbone: VisionBackbone) -> None:
    detector = Detector(backbone).calibrate(images(19), alpha=0.05)
    decided = detector.decide(images(1, side=400))
    assert decided.words == ["undecided"]
    assert decided.reasons == ["a shorter side of 400 px is unlike the calibration's, 40 to 40 px"]


def test_small_and_empty_images_are_undecided(backbone: VisionBackbone) -> None:
    detector = Detector(backbone).calibrate(images(19), alpha=0.05)
    decided = detector.decide([images(1, side=20)[0], np.full((40, 40, 3), 7, np.uint8)])
    assert decided.words == ["undecided"] * 2
    assert decided.reasons[0] == "a side of 20 px is under the 32 px that are looked at"
    assert decided.reasons[1] == "no content: all pixels are alike"
    seen = Detector(backbone, allow_small=True).scan(images(1, side=20))
    assert seen.reasons == [""]
    assert seen.pictures[0].notes[-1] == "enlarged copy of a small image"
    assert np.isfinite(seen.differences["consistency"]).all()


def test_stability_tries_every_change_and_names_what_moved(backbone: VisionBackbone) -> None:
    detector = Detector(backbone, n_views=2).calibrate(images(19, side=80), alpha=0.05)
    rows = detector.stability(images(2, side=80, seed=4))
    assert rows.height == 2 * 7
    assert rows["change"].unique(maintain_order=True).to_list() == [
        "as it is", "JPEG 95", "JPEG 75", "JPEG 50", "half size", "twice the size", "1 px shift",
    ]  # fmt: skip
    assert rows.filter(rows["change"] == "as it is")["same"].to_list() == [True, True]
    assert rows["score"].n_unique() > 10


def test_the_direction_is_known_where_labels_show_it(backbone: VisionBackbone) -> None:
    detector = Detector(backbone, n_views=2)
    rng = np.random.default_rng(0)
    other = [rng.integers(0, 256, (40, 40, 3)).astype(np.uint8) for _ in range(20)]
    found = detector.direction_check(images(20), other)
    against = detector.direction_check(other, images(20))
    assert {found.points, against.points} == {"as expected", "the other way"}
    assert found.auroc.value == pytest.approx(1 - against.auroc.value)
    assert detector.direction_check(images(20), images(20, seed=9)).points == "not known"


def test_what_was_seen_is_kept_and_found_again(
    backbone: VisionBackbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERABLE_CACHE", str(tmp_path / "cache"))
    folder, looking = write(tmp_path / "images", images(20)), Looking(n_views=2)
    first = scan(list_images(folder), backbone, looking, run=Run())

    def never(*_: object) -> None:
        raise AssertionError("the network was asked again")

    monkeypatch.setattr(VisionBackbone, "features", never)
    second = scan(list_images(folder), backbone, looking, run=Run())
    assert second.pictures == first.pictures
    for name in ("consistency", "noise"):
        assert (second.differences[name] == first.differences[name]).all()
    with pytest.raises(AssertionError):  # another way of looking is another score
        scan(list_images(folder), backbone, Looking(n_views=3), run=Run())
    for file in (tmp_path / "cache" / "image-views").iterdir():
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(AssertionError):  # a damaged file is not believed
        scan(list_images(folder), backbone, looking, run=Run())


def test_features_are_kept_in_one_file(
    backbone: VisionBackbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "images" / "0_real", images(3))
    write(tmp_path / "images" / "1_fake", images(2, seed=1))
    kept = tmp_path / "features.npz"
    first = extract_features(backbone, tmp_path / "images", cache=kept)
    assert first.labels.tolist() == [0, 0, 0, 1, 1]
    assert first.names[3] == "1_fake/00.png"
    read = read_features(kept)
    assert (read.source == first.source).all()
    assert read.labels.tolist() == first.labels.tolist()
    with monkeypatch.context() as patched:
        patched.setattr(VisionBackbone, "features", None)
        again = extract_features(backbone, tmp_path / "images", cache=kept)
        assert (again.changed == first.changed).all()
    other = extract_features(backbone, tmp_path / "images", cache=kept, training=True)
    assert (other.source != first.source).any()


def test_a_backbone_that_gives_nothing_is_named_with_the_image() -> None:
    import torch
    from torch import nn

    dead = network()
    with torch.no_grad():
        for parameter in dead.parameters():
            parameter.zero_()
    detector = Detector(VisionBackbone.load(nn.Sequential(dead, nn.ReLU()).eval(), size=32))
    with pytest.raises(BadInput, match=r"image 1: the feature vector of row 1 is zero; use float32"):
        detector.score_samples(images(1))


def test_alignment_lies_between_zero_and_one_and_passes_over_small_images(backbone: VisionBackbone) -> None:
    found = tangent_alignment(backbone, [*images(3), images(1, side=20)[0]])
    assert ((found[:3] > 0) & (found[:3] < 1)).all()
    assert np.isnan(found[3])


@pytest.mark.parametrize(
    "options, line",
    [({"n_views": 0}, "n_views is 0"), ({"noise": 0.0}, "noise is 0"), ({"score": "flow"}, "score is 'flow'"),
     ({"views": "both"}, "views is 'both'"), ({"transform": "none"}, "transform is 'none'")],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused(
    backbone: VisionBackbone, options: dict[str, object], line: str
) -> None:
    with pytest.raises(BadInput, match=line):
        Detector(backbone, **options)  # type: ignore[arg-type]


def test_it_has_to_be_calibrated_with_enough_images(backbone: VisionBackbone) -> None:
    with pytest.raises(BadInput, match="was not calibrated"):
        Detector(backbone).predict(images(1))
    with pytest.raises(BadInput, match=r"18 calibration scores are too few for alpha = 0\.05; give at least 19"):
        Detector(backbone).calibrate(images(18), alpha=0.05)
    with pytest.raises(BadInput, match="none of 2 real images can be used; the first: a side of 20 px"):
        Detector(backbone).calibrate(images(2, side=20))


def test_each_of_two_sides_is_held_to_half_of_alpha(backbone: VisionBackbone) -> None:
    Detector(backbone, n_views=1).calibrate(images(18), alpha=0.1)
    with pytest.raises(BadInput, match=r"18 calibration scores are too few for alpha = 0\.05; give at least 19"):
        Detector(backbone, n_views=1, two_sided=True).calibrate(images(18), alpha=0.1)
