"""What a hostile folder holds: names that are no text, pipes, damaged files, one photograph saved many times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from scipy import stats

import answerable as aw
from answerable.errors import BadInput
from answerable.provenance.generated_images import (
    AffineCouplingFlow,
    ConsistencyDetector,
    Features,
    FlowConsistencyDetector,
    extract_features,
    tangent_alignment,
)
from answerable.subjects import VisionBackbone, decode, list_images

from .conftest import images, network, write
from .test_question import REAL, asked


def test_a_name_that_is_no_utf_8_can_be_saved_and_reported(saved_backbone: Path, tmp_path: Path) -> None:
    from answerable.report import html

    asked = write(tmp_path / "asked", images(1))
    try:
        os.rename(asked / "00.png", os.fsencode(str(asked)) + b"/bad\xff.png")
    except OSError:
        pytest.skip("this file system takes no such name")
    answer = aw.ask("generated-images", images=str(asked), backbone=str(saved_backbone), size=28, seed=0, store=False)
    answer.save(tmp_path / "answer")
    assert aw.Answer.load(tmp_path / "answer").tables["images"].frame["image"].to_list() == [r"bad\xff.png"]
    assert r"bad\xff.png" in html([answer])


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(BadInput, match=r"pipe\.png: neither a file nor a folder; give a folder of images"):
        list_images(tmp_path / "pipe.png")
    (found,) = list_images(tmp_path)
    assert decode(found).failure == "there is no such file"


def test_links_are_read_where_they_lead_to_a_file(tmp_path: Path) -> None:
    real = write(tmp_path / "real", images(1))
    links = tmp_path / "links"
    links.mkdir()
    for name, target in {"a.png": real / "00.png", "gone.png": "nowhere", "self.png": "self.png", "loop": "."}.items():
        (links / name).symlink_to(target)
    found = {source.name: decode(source) for source in list_images(links)}
    assert sorted(found) == ["a.png", "gone.png", "self.png"]
    assert found["a.png"].encoding == "png"
    assert found["gone.png"].encoding == found["self.png"].encoding == "unreadable"
    assert found["gone.png"].failure == found["self.png"].failure == "there is no such file"


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "tiff"])
def test_half_a_file_is_told_and_not_filled_up(tmp_path: Path, ending: str) -> None:
    whole = write(tmp_path / "whole", images(1, side=64), ending) / f"00.{ending}"
    half = tmp_path / f"half.{ending}"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    found = decode(list_images(half)[0])
    assert found.pixels is None
    assert found.encoding == "unreadable"
    assert found.failure


def test_a_photograph_saved_many_times_is_one_calibration_image(backbone: VisionBackbone, tmp_path: Path) -> None:
    (pixels,) = images(1)
    copies = write(tmp_path / "copies", [pixels] * 20)
    with pytest.raises(BadInput, match=r"1 calibration scores are too few for alpha = 0\.05"):
        ConsistencyDetector(backbone, n_views=1).calibrate(copies)
    with pytest.raises(BadInput, match="18 calibration scores are too few"):
        ConsistencyDetector(backbone, n_views=1).calibrate([*images(18), images(1)[0]])


def test_copies_are_left_out_of_the_calibration_and_counted(saved_backbone: Path, tmp_path: Path) -> None:
    real, asked = write(tmp_path / "real", images(19)), write(tmp_path / "asked", images(1, seed=1))
    Image.open(real / "00.png").save(real / "twice.png")
    (real / "thrice.png").write_bytes((real / "twice.png").read_bytes())
    answer = aw.ask("generated-images", images=str(asked), real=str(real), backbone=str(saved_backbone), size=28,
                    n_views=1, seed=0, stability="none", store=False)  # fmt: skip
    assert answer.tables["calibration"].frame["n"].to_list() == [19]
    assert any("2 real images could not be calibrated on" in limit for limit in answer.limits)


@pytest.mark.parametrize(
    "options, line",
    [
        ({"harmonize": "jpeg"}, "harmonize is 'jpeg'; say none or jpeg96"),
        ({"views": ["random"]}, r"views is \['random'\]; say random or shared"),
        ({"aggregate": "sum"}, "aggregate is 'sum'; say mean, min, max or median"),
        ({"score": None}, "score is None; say consistency or noise"),
        ({"transform": []}, r"transform is \[\]; say paper, flow or identity"),
        ({"n_views": 2.5}, "n_views is 2.5; give 1 to 100"),
        ({"n_views": True}, "n_views is True; give 1 to 100"),
        ({"noise": "a"}, "noise is 'a'; give a number above 0"),
        ({"random_state": None}, "random_state is None; give a whole number of at least 0"),
        ({"batch": 0}, "batch is 0; give a whole number of at least 1"),
    ],
)
def test_settings_that_are_none_are_refused(backbone: VisionBackbone, options: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput, match=f"^{line}"):
        ConsistencyDetector(backbone, **options)


@pytest.mark.parametrize(
    "options, line",
    [
        ({"lr": "a"}, "lr is 'a'; give a number above 0"),
        ({"clamp": float("nan")}, "clamp is nan; give a number above 0"),
        ({"weight_decay": -1}, "weight_decay is -1; give 0 or a number above it"),
        ({"epochs": 1.5}, "epochs is 1.5; give a whole number of at least 1"),
        ({"batch_size": None}, "batch_size is None; give a whole number of at least 1"),
        ({"n_blocks": 0}, "n_blocks is 0; give a whole number of at least 1"),
        ({"margin": float("nan")}, "margin is nan; give a number above 0, or 2d"),
        ({"random_state": -1}, "random_state is -1; give a whole number of at least 0"),
        ({"combine": "sum"}, "combine is 'sum'; say sigmoid or ranks"),
    ],
)
def test_a_flow_that_cannot_be_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput, match=f"^{line}$"):
        FlowConsistencyDetector(**options)


def test_labels_that_a_flow_would_take_for_real_are_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    flow = FlowConsistencyDetector(hidden=4)
    for labels, line in (
        ([0, 1, 2, 0], "labels, row 3: the label is 2; use 1 for generated, 0 for real, -1 for not known"),
        ([0, 1], r"labels: the shape is \(2,\); give one label for each of 4 images"),
    ):
        with pytest.raises(BadInput, match=line):
            flow.fit(Features(rows[:, 0], rows[:, 1], np.array(labels), list("abcd")))
    for nothing in (None, "features.npz", {"features_source": rows}):
        with pytest.raises(BadInput, match="holds no features; give Features, as extract_features makes them"):
            flow.fit(nothing)
    with pytest.raises(BadInput, match=r"AffineCouplingFlow: the shape is \(2, 5\); give \(n, 3\)"):
        AffineCouplingFlow(3, hidden=4).log_prob(torch.zeros(2, 5))


class _OneForAll(torch.nn.Module):
    """Gives one vector, however many images it is shown."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ones(1, 4) * x.mean()


def test_what_is_no_backbone_is_refused(backbone: VisionBackbone) -> None:
    detector = ConsistencyDetector(VisionBackbone.load(_OneForAll().eval(), size=28), n_views=2)
    with pytest.raises(BadInput, match="it gives 1 vectors for 4 images; give a network from"):
        detector.score_samples(images(1))
    for options, line in (
        ({"size": 0}, "backbone: size is 0; give a whole number of pixels"),
        ({"mean": 3}, "backbone: mean is 3; give three finite numbers"),
        ({"device": "abacus"}, "device 'abacus': Expected one of"),
    ):
        with pytest.raises(BadInput, match=line):
            VisionBackbone.load(network(), **options)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a NoneType is no vision backbone"):
        tangent_alignment(None, images(1))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="eps is 'a'; give a number above 0"):
        tangent_alignment(backbone, images(1), eps="a")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="batch is 0; give a whole number"):
        extract_features(backbone, images(1), batch=0)


def test_both_sides_are_told_and_drawn() -> None:
    """19 scores from 0.05 to 0.95 at alpha = 0.1: one gap of twenty is left beyond each end."""
    answer = asked([0.01, 0.5, 1.2], alpha=0.1, two_sided=True)
    found = answer.tables["images"].frame.sort("image")
    assert found["decision"].to_list() == ["flagged", "not flagged", "flagged"]
    assert found["low_threshold"].to_list() == pytest.approx([0.05] * 3, abs=1e-6)
    assert found["threshold"].to_list() == pytest.approx([0.95] * 3, abs=1e-6)
    (pool,) = answer.tables["calibration"].frame.iter_rows(named=True)
    assert (pool["low_threshold"], pool["threshold"]) == pytest.approx((0.05, 0.95), abs=1e-6)
    assert answer.verdict is not None
    assert answer.verdict.reason.startswith("2 of 3 images score above or below real ones; alpha = 0.1")
    rate, law = answer.metrics["false_alarm_rate"], stats.beta(2, 18)
    assert (rate.value, rate.low, rate.high) == pytest.approx((0.1, law.ppf(0.025), law.ppf(0.975)))
    spec = str(answer.figures["densities"].wide)
    assert "0.05" in spec
    assert "lie beyond the threshold" not in spec
    assert "low_threshold" not in asked([0.5]).tables["calibration"].frame.columns


def test_one_image_is_said_in_the_singular() -> None:
    assert asked([1.2, 0.5]).summary == "1 of 2 images is flagged as generated, at a false-alarm rate of 0.05."
    for scores, reason in (
        ([1.2, 0.5], "1 of 2 images scores above real ones; alpha = 0.05, each image held to alpha"),
        ([1.2], "the image scores above real ones; alpha = 0.05"),
        ([0.5], "the image does not score above real ones at alpha = 0.05"),
        ([0.5, 0.6], "none of 2 decided images scores above real ones at alpha = 0.05"),
    ):
        verdict = asked(scores, real=REAL).verdict
        assert verdict is not None
        assert verdict.reason == reason


def test_what_stays_by_itself_is_stable_also_where_all_are_held_together(saved_backbone: Path, tmp_path: Path) -> None:
    """Among many, an image beyond the threshold may be not flagged; that is no reason to call it unstable."""
    real = write(tmp_path / "real", images(24))
    rng = np.random.default_rng(0)
    noisy = [np.clip(one + rng.normal(0, 60, one.shape), 0, 255).astype(np.uint8) for one in images(3, seed=2)]
    mixed = write(tmp_path / "mixed", [*noisy, *images(9, seed=1)])
    fields = {"images": str(mixed), "real": str(real), "backbone": str(saved_backbone), "size": 28, "n_views": 2,
              "alpha": 0.1, "sheet": 0, "stability": "all"}  # fmt: skip
    each, batch = (aw.ask("generated-images", store=False, seed=0, control=control, **fields).tables
                   for control in ("each", "batch"))  # fmt: skip
    assert batch["stability"].frame.sort("image", "change").equals(each["stability"].frame.sort("image", "change"))
    unstable = [
        set(tables["images"].frame.filter(pl.col("reason").str.contains("saved or resized again"))["image"])
        for tables in (each, batch)
    ]
    assert unstable[0] == unstable[1]
