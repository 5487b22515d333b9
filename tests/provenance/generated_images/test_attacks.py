"""What a hostile folder holds: names that are no text, pipes, damaged files, one photograph saved many times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

import answerable as aw
from answerable.errors import BadInput
from answerable.provenance.generated_images import ConsistencyDetector
from answerable.subjects import VisionBackbone, decode, list_images

from .conftest import images, write


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
