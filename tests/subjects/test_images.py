"""Images of every kind to 8-bit RGB by the stated rules; what cannot be read is told and never replaced."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from answerable.errors import BadInput, CannotRead, UnknownName
from answerable.subjects import decode, digest, list_images
from answerable.subjects.images import MOST_PIXELS, reencoded, resized


def picture(side: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


def saved(path: Path, image: object, **options: object) -> Path:
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(path, **options)  # type: ignore[union-attr, arg-type]
    return path


def read(path: Path) -> np.ndarray:
    found = decode(list_images(path)[0])
    assert found.pixels is not None, found.failure
    return found.pixels


@pytest.mark.parametrize("name", ["a.png", "a.b.PNG", "photo.final.bmp", "x.TIFF", "noending.webp"])
def test_lossless_files_give_their_pixels_whatever_they_are_called(tmp_path: Path, name: str) -> None:
    made = picture()
    options = {"lossless": True} if name.endswith("webp") else {}
    assert (read(saved(tmp_path / name, made, **options)) == made).all()
    (found,) = list_images(tmp_path)
    assert found.name == name


@pytest.mark.parametrize("quality", [30, 50, 75, 90, 95, 100])
def test_the_quality_of_a_jpeg_is_estimated(tmp_path: Path, quality: int) -> None:
    found = decode(list_images(saved(tmp_path / "a.jpg", picture(16), quality=quality))[0])
    assert found.encoding == "jpeg"
    assert found.quality == pytest.approx(quality, abs=2)


def test_transparent_parts_stand_on_white(tmp_path: Path) -> None:
    layered = np.zeros((2, 2, 4), np.uint8)
    layered[0, 0] = (10, 20, 30, 255)
    found = decode(list_images(saved(tmp_path / "a.png", Image.fromarray(layered)))[0])
    assert found.pixels is not None
    assert found.pixels[0, 0].tolist() == [10, 20, 30]
    assert found.pixels[1, 1].tolist() == [255, 255, 255]
    assert "transparent parts on white" in found.notes


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    deep = Image.fromarray(np.array([[0, 257 * 7], [257 * 200, 65535]], np.uint16))
    found = decode(list_images(saved(tmp_path / "a.png", deep))[0])
    assert found.pixels is not None
    assert found.pixels[..., 0].tolist() == [[0, 7], [200, 255]]
    assert found.notes == ("16 bits to 8", "grey: changes of hue and saturation do nothing")


def test_grey_palette_and_cmyk_become_rgb(tmp_path: Path) -> None:
    made = picture()
    grey = decode(list_images(saved(tmp_path / "grey.png", made[..., 0]))[0])
    assert grey.pixels is not None
    assert (grey.pixels == made[..., :1]).all()
    few = Image.fromarray((made // 128) * 128).convert("P", palette=Image.Palette.ADAPTIVE, colors=8)
    assert (read(saved(tmp_path / "palette.png", few)) == np.asarray(few.convert("RGB"))).all()
    cmyk = decode(list_images(saved(tmp_path / "cmyk.tiff", Image.fromarray(made).convert("CMYK")))[0])
    assert cmyk.notes == ("CMYK to RGB without its profile",)


def test_the_cameras_orientation_is_applied(tmp_path: Path) -> None:
    made = picture()[:4]
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    found = decode(list_images(saved(tmp_path / "a.png", made, exif=exif))[0])
    assert found.pixels is not None
    assert (found.pixels == np.rot90(made, -1)).all()
    assert (found.width, found.height) == (4, 6)
    assert found.notes == ("turned as the camera noted",)


def test_of_an_animation_the_first_frame_is_taken(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.full((4, 4, 3), value, np.uint8)) for value in (0, 255)]
    found = decode(list_images(saved(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:]))[0])
    assert found.pixels is not None
    assert not found.pixels.any()
    assert "first frame of several" in found.notes


def test_a_damaged_file_is_told_and_never_replaced(tmp_path: Path) -> None:
    whole = saved(tmp_path / "a.png", picture(40)).read_bytes()
    (tmp_path / "b.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "c.png").write_bytes(b"no image at all")
    (tmp_path / "d.png").write_bytes(b"")
    found = [decode(source) for source in list_images(tmp_path)]
    assert [one.pixels is None for one in found] == [False, True, True, True]
    assert found[1].failure.startswith("it cannot be decoded (")
    assert found[2].failure == found[3].failure == "this is no image of a kind that is read"


def test_a_huge_image_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    Image.new("1", (20_000, MOST_PIXELS // 20_000 + 1)).save(tmp_path / "a.png")
    found = decode(list_images(tmp_path)[0])
    assert found.pixels is None
    assert found.failure == "20000 x 5001 px, more than 100 million"


def test_labels_come_from_folders_whatever_the_layout(tmp_path: Path) -> None:
    for place in ("biggan/0_real", "biggan/1_fake", "sd/ai", "sd/nature", "Fake", "misc"):
        (tmp_path / place).mkdir(parents=True)
        saved(tmp_path / place / "x.png", picture())
    (tmp_path / "misc" / ".hidden.png").write_bytes(b"")
    (tmp_path / "misc" / "readme.txt").write_text("no image")
    assert {source.name: source.label for source in list_images(tmp_path)} == {
        "Fake/x.png": 1, "biggan/0_real/x.png": 0, "biggan/1_fake/x.png": 1, "misc/x.png": None,
        "sd/ai/x.png": 1, "sd/nature/x.png": 0,
    }  # fmt: skip


def test_a_table_of_paths_is_read_beside_its_own_folder(tmp_path: Path) -> None:
    saved(tmp_path / "a.png", picture())
    table = tmp_path / "t.csv"
    table.write_text("path,label\na.png,real\nmissing.png,ai\n")
    found = list_images(table)
    assert [(source.name, source.label) for source in found] == [("a.png", 0), ("missing.png", 1)]
    assert decode(found[1]).failure == "there is no such file"
    with pytest.raises(UnknownName, match="no column 'file'"):
        list_images(table, column="file")
    table.write_text("path,label\na.png,perhaps\n")
    with pytest.raises(BadInput, match="row 1: the label 'perhaps' says neither"):
        list_images(table)
    table.write_text("path,label\n,real\n")
    with pytest.raises(BadInput, match="row 1: there is no path"):
        list_images(table)


def test_arrays_tensors_and_pillow_images_are_images(tmp_path: Path) -> None:
    made = np.stack([picture(seed=k) for k in range(3)])
    tensor = torch.from_numpy(made).permute(0, 3, 1, 2) / 255
    for given in (made, list(made), tensor, list(tensor), [Image.fromarray(one) for one in made]):
        assert (np.stack([decode(source).pixels for source in list_images(given)]) == made).all()  # type: ignore[arg-type]
    np.save(tmp_path / "a.npy", made)
    assert (np.stack([decode(source).pixels for source in list_images(tmp_path / "a.npy")]) == made).all()  # type: ignore[arg-type]
    assert [source.name for source in list_images(made)] == ["image 1", "image 2", "image 3"]


@pytest.mark.parametrize(
    "given, line",
    [
        (np.zeros((4, 4, 3)), "an array of float64 and shape .* is no image; give uint8"),
        (np.zeros((4, 4, 4), np.uint8), "shape .4, 4, 4. is no image"),
        (np.zeros((0, 4, 3), np.uint8), "an image without pixels"),
        (torch.full((3, 4, 4), 2.0), "a tensor with values outside 0 to 1"),
        (torch.zeros(4, 4), "a tensor of torch.float32 and shape .4, 4. is no image"),
        ([3], "number 1: a int is no image"),
        ({"a": 1}, "a dict is no image"),
        ([], "there is no image"),
    ],
    ids=["floats", "four channels", "empty", "range", "flat", "number", "mapping", "nothing"],
)
def test_what_is_no_image_is_refused(given: object, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        list_images(given)


def test_places_without_an_image_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no image; give a folder"):
        list_images(tmp_path)
    with pytest.raises(CannotRead, match="no such file or folder"):
        list_images(tmp_path / "nothing")
    with pytest.raises(BadInput, match="number 1: a folder in a list"):
        list_images([tmp_path])


def test_the_digest_is_of_names_labels_and_contents(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        folder.mkdir()
        saved(folder / "a.png", picture())
    os.utime(second / "a.png", (0, 0))
    assert digest("images", first) == digest("images", second)
    saved(second / "a.png", picture(seed=1))
    assert digest("images", first) != digest("images", second)
    assert digest("images", picture()) == digest("images", [picture()])


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    saved(tmp_path / "a.png", picture())
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(list_images(tmp_path)) == 1


def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    (found,) = list_images(tmp_path)
    assert digest("images", tmp_path)
    assert decode(found).failure == "there is no such file"


def test_a_pillow_image_that_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    whole = saved(tmp_path / "a.png", picture(40)).read_bytes()
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
    with Image.open(tmp_path / "a.png") as image:
        (source,) = list_images([image])
        assert decode(source).failure.startswith("it cannot be decoded (")
        with pytest.raises(BadInput, match=r"image 1: it cannot be decoded .*; leave it out"):
            digest("images", [image])


def test_encoding_again_and_resizing_do_what_they_say() -> None:
    smooth = np.repeat(np.arange(0, 256, 8, dtype=np.uint8)[:, None, None], 32, axis=1).repeat(3, axis=2)
    assert np.abs(reencoded(smooth, 95).astype(int) - smooth).max() <= 6
    assert np.abs(reencoded(picture(32), 50).astype(int) - picture(32)).mean() > 10
    assert resized(smooth, 16, 8).shape == (8, 16, 3)
