"""The question's answer: its words, numbers, tables and pictures, from features and from images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import answerable as aw
from answerable import registry
from answerable.provenance.generated_images import ConsistencyDetector
from answerable.subjects import VisionBackbone

from .conftest import images, write

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def features(scores: list[float], **more: Any) -> dict[str, Any]:
    """One view each, whose ``1 - cos`` is the score."""
    turned = [[1 - score, float(np.sqrt(1 - (1 - score) ** 2))] for score in scores]
    return {"features_source": [[1.0, 0.0]] * len(scores), "features_trans": turned, **more}


REAL = [round(0.05 * k, 2) for k in range(1, 20)]  # 0.05 to 0.95


def asked(scores: list[float], real: list[float] = REAL, **more: Any) -> aw.Answer:
    labels = more.pop("labels", [-1] * len(scores))
    fields = {"features": features(scores, labels=labels), "real_features": features(real), "alpha": 0.05}
    return aw.ask("generated-images", store=False, seed=0, **{**fields, **more})


def test_worked_by_hand() -> None:
    """19 real scores at alpha = 0.05: what lies above the largest, 0.95, is flagged."""
    answer = asked([1.2, 0.5, 0.96])
    found = answer.tables["images"].frame.sort("image")
    assert found["score"].to_list() == pytest.approx([1.2, 0.5, 0.96], abs=1e-6)
    assert found["decision"].to_list() == ["flagged", "not flagged", "flagged"]
    assert found["p_value"].to_list() == pytest.approx([0.05, 11 / 20, 0.05], abs=0.051)
    assert answer.tables["calibration"].frame["threshold"].to_list() == [pytest.approx(0.95, abs=1e-6)]
    assert answer.metrics["flagged"].value == 2
    assert answer.verdict is not None
    assert answer.verdict.word == "flagged"
    assert answer.summary == "2 of 3 images are flagged as generated, at a false-alarm rate of 0.05."


def test_one_image_has_its_score_and_p_value() -> None:
    answer = asked([0.42])
    assert answer.metrics["score"].value == pytest.approx(0.42, abs=1e-6)
    assert answer.metrics["p_value"].value == pytest.approx(12 / 20)
    assert answer.verdict is not None
    assert answer.verdict.word == "not flagged"


def test_without_real_images_nothing_is_decided() -> None:
    answer = asked([0.4, 0.5], real_features=None)
    assert answer.verdict is not None
    assert (answer.verdict.word, answer.verdict.mend) == (
        "undecided", "give at least 19 real images like those asked about",
    )  # fmt: skip
    assert "calibration" not in answer.tables


def test_labels_give_areas_and_shares_whatever_their_order() -> None:
    scores, labels = [1.1, 0.2, 1.3, 0.3, 0.25, 0.99], [1, 0, 1, 0, 1, 0]
    answer = asked(scores, labels=labels)
    assert answer.metrics["auroc"].value == pytest.approx(7 / 9)  # of nine pairs, 0.25 loses to 0.3 and to 0.99
    assert answer.metrics["found"].value == pytest.approx(2 / 3)
    assert answer.metrics["false_alarms"].value == pytest.approx(1 / 3)
    assert answer.metrics["accuracy"].value == pytest.approx(4 / 6)
    turned = asked(scores[::-1], labels=labels[::-1])
    assert turned.metrics["auroc"].value == answer.metrics["auroc"].value
    assert set(answer.figures) == {"densities", "roc"}


def test_a_score_that_points_the_other_way_is_said() -> None:
    answer = asked([0.1] * 10 + [0.9] * 10, labels=[1] * 10 + [0] * 10)
    assert any("points the other way" in limit for limit in answer.limits)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("images")
    write(root / "real", images(24))
    write(root / "asked" / "0_real", images(4, seed=1))
    rng = np.random.default_rng(0)
    strange = [np.clip(one + rng.normal(0, 60, one.shape), 0, 255).astype(np.uint8) for one in images(4, seed=2)]
    write(root / "asked" / "1_fake", strange)
    (root / "asked" / "broken.png").write_bytes(b"no image")
    write(root / "training" / "real", images(6, seed=3))
    write(root / "training" / "fake", strange)
    return {path.name: str(path) for path in root.iterdir()}


def looked(folders: dict[str, str], backbone: Any, **more: Any) -> aw.Answer:
    fields = {"images": folders["asked"], "real": folders["real"], "backbone": backbone, "size": 28, "n_views": 2, "sheet": 2,
              "alpha": 0.1}  # fmt: skip
    return aw.ask("generated-images", store=False, seed=0, **{**fields, **more})


def test_images_through_a_saved_network(folders: dict[str, str], saved_backbone: Path) -> None:
    answer = looked(folders, str(saved_backbone), stability="all")
    found = answer.tables["images"].frame
    assert found.height == 9
    broken = found.filter(found["image"] == "broken.png")
    assert broken["decision"].to_list() == ["undecided"]
    assert broken["reason"].to_list() == ["this is no image of a kind that is read"]
    assert any("1 of 9 files could not be read; none is replaced" in limit for limit in answer.limits)
    assert set(answer.figures) == {"densities", "sheet", "roc", "stability"}
    assert answer.tables["detection"].frame["role"].to_list() == ["decides", "companion", "control", "control"]
    assert answer.metrics["auroc_type"].value == pytest.approx(0.5)
    changes = answer.tables["stability"].frame
    assert changes["change"].n_unique() == 6
    # A decision that did not stay is undecided, and one that stayed is not.
    moved = set(changes.filter(~changes["same"].fill_null(True))["image"])
    unstable = set(found.filter(found["reason"].str.contains("saved or resized again"))["image"])
    assert moved == unstable
    # The same scores come from the library, with the seed that the run drew.
    network = VisionBackbone.load(str(saved_backbone), size=28)
    state = int(aw.Run(seed=0).rng("views").integers(2**31))
    library = ConsistencyDetector(network, n_views=2, random_state=state).score_samples(folders["asked"])
    by_name = dict(zip(found["image"], found["score"]))
    assert by_name["0_real/00.png"] == pytest.approx(library[1], rel=1e-4)  # the broken file comes first


def test_an_image_that_stands_in_the_calibration_is_undecided(folders: dict[str, str], saved_backbone: Path) -> None:
    answer = looked(folders, str(saved_backbone), images=folders["real"])
    assert set(answer.tables["images"].frame["reason"]) == {"it stands among the real images too"}


def test_the_flow_decides_where_it_was_fitted(folders: dict[str, str], saved_backbone: Path) -> None:
    answer = looked(folders, str(saved_backbone), training=folders["training"], score="flow", hidden=16, epochs=2)
    found = answer.tables["images"].frame
    assert {"flow", "flow_energy", "flow_cosine", "noise", "consistency"} <= set(found.columns)
    scored = found.filter(found["score"].is_not_null())
    assert scored["score"].to_list() == scored["flow"].to_list()
    by_hand = 1 / (1 + np.exp(-scored["flow_energy"].to_numpy() / 2)) - scored["flow_cosine"].to_numpy() / 2
    assert scored["flow"].to_numpy() == pytest.approx(by_hand, abs=1e-5)
    alone = looked(folders, str(saved_backbone), training=folders["real"], score="flow", hidden=16, epochs=1)
    assert any("nothing was pushed away" in limit for limit in alone.limits)


def test_sets_of_unlike_file_types_are_said_and_harmonised(
    folders: dict[str, str], saved_backbone: Path, tmp_path: Path
) -> None:
    asked_about = tmp_path / "asked"
    write(asked_about / "0_real", images(8, seed=1), "jpg", quality=90)
    write(asked_about / "1_fake", images(8, seed=2), "png")
    answer = looked(folders, str(saved_backbone), images=str(asked_about))
    assert answer.metrics["auroc_type"].value == pytest.approx(1.0)
    assert any("no worse than the score: nothing is shown about the images" in limit for limit in answer.limits)
    reasons = set(answer.tables["images"].frame.filter(label="real")["reason"])
    assert reasons == {"nothing of kind 'jpeg' was calibrated"}
    alike = looked(folders, str(saved_backbone), images=str(asked_about), harmonize="jpeg96")
    assert alike.tables["calibration"].frame["kind"].to_list() == ["jpeg96"]
    assert "nothing of kind 'jpeg' was calibrated" not in set(alike.tables["images"].frame["reason"])


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "it needs images and a backbone, or features; give one of the two"),
    "no backbone": ({"images": "{asked}"}, "it needs images and a backbone"),
    "both": ({"features": {}, "images": "{asked}"}, "it is asked with images or with features"),
    "only real features": ({"real_features": {}}, "features of the images are missing; give features"),
    "flow without training": (
        {"images": "a", "backbone": "b", "score": "flow"},
        "the flow has to be fitted; give training",
    ),
    "noise of features": ({"features": {}, "score": "noise"}, "features of changed copies do not give noise"),
    "no arrays": ({"features": {"a": [1.0]}}, "features: there is no features_source; give features_source"),
    "shapes": (
        {"features": {"features_source": [[1.0]], "features_trans": [[1.0], [2.0]]}},
        r"features_source is \(1, 1\) and features_trans \(2, 1\)",
    ),
    "not finite": (
        {"features": {"features_source": np.array([[1.0], [np.nan]]), "features_trans": np.ones((2, 1))}},
        "features_source: image 2 has a number that is not finite",
    ),
    "labels": ({"features": features([0.1], labels=[3])}, "something else than 0, 1 and -1"),
    "names": ({"features": features([0.1], names=["a", "b"])}, r"names has the shape \(2,\)"),
    "words": ({"features": {"features_source": [["a"]], "features_trans": [["b"]]}}, "the features are no numbers"),
    "too few": (
        {"features": features([0.1]), "real_features": features(REAL[:18])},
        "18 calibration scores are too few for alpha = 0.05; give at least 19",
    ),
    "generated calibration": (
        {"features": features([0.1]), "real_features": features(REAL, labels=[1] * 19)},
        "a calibration image is labelled generated; leave out what was generated",
    ),
    "no such folder": ({"images": "nowhere", "backbone": "{backbone}"}, "nowhere: no such file or folder"),
    "no network": ({"images": "{asked}", "backbone": "{real}"}, "there is no config.json"),
    "no image": ({"images": "{backbone}", "backbone": "{backbone}"}, "there is no image; give a folder"),
    "small training": (
        {"images": "{asked}", "backbone": "{backbone}", "training": "{real}", "size": 64},
        r"training, 00.png: a side of 40 px is under 64",
    ),
    "alpha": ({"features": {}, "alpha": 1.0}, "field alpha: it is 1.0, and should be less than 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_asked_is_one_line(name: str, folders: dict[str, str], saved_backbone: Path) -> None:
    fields, line = BAD[name]
    places = {**folders, "backbone": str(saved_backbone)}
    given = {key: value.format(**places) if isinstance(value, str) else value for key, value in fields.items()}
    with pytest.raises(aw.AnswerableError, match=line) as raised:
        aw.ask("generated-images", store=False, seed=0, **given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "words, line",
    [
        (["--images", "{asked}"], "it needs images and a backbone"),
        (["--images", "{asked}", "--backbone", "{real}"], "there is no config.json"),
        (["--images", "{asked}", "--backbone", "{backbone}", "--real", "{asked}", "--size", "28"], "a calibration image is labelled generated"),
        (["--images", "{asked}", "--backbone", "{backbone}", "--real", "{training}/real", "--size", "28"], "6 calibration scores are too few"),
        (["--images", "{asked}/broken.png/x", "--backbone", "{backbone}"], "no such file or folder"),
        (["--features", "{asked}/broken.png"], "holds no arrays"),
    ],
    ids=["no backbone", "no network", "generated", "too few", "no path", "no arrays"],
)  # fmt: skip
def test_the_command_line_says_the_same_and_writes_nothing(
    words: list[str], line: str, folders: dict[str, str], saved_backbone: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from answerable.cli import run

    given = [word.format(**folders, backbone=saved_backbone) for word in words]
    saved = tmp_path / "answer"
    assert (
        run(
            ["ask", "generated-images", *given, "--seed", "0", "--save", str(saved), "--store", str(tmp_path / "store")]
        )
        == 2
    )
    said = capsys.readouterr().err.strip().splitlines()
    assert line in " ".join(said)
    assert "Traceback" not in " ".join(said)
    assert not saved.exists()


def test_hostile_names_are_shown_as_what_they_are(saved_backbone: Path, tmp_path: Path) -> None:
    from answerable.report import html

    names = ["<script>alert(1)</script>", "a\nb", "{{x}}", "‮gnp"]
    for name, pixels in zip(names, images(4), strict=True):
        write(tmp_path / "one", [pixels])
        (tmp_path / "one" / "00.png").rename(tmp_path / f"{name.replace('/', '')}.png")
    answer = looked({"asked": str(tmp_path), "real": str(tmp_path)}, str(saved_backbone), real=None)
    page = html([answer])
    assert "<script>alert(1)" not in page
    assert "‮" not in page


def test_the_smallest_ask_is_worked_by_hand() -> None:
    answer = aw.ask("generated-images", store=False, seed=1, **dict(registry.find("generated-images").smallest))
    found = answer.tables["images"].frame.sort("image")
    assert found["score"].to_list() == pytest.approx([1 - np.cos(a) for a in (1.2, 0.15, 0.9, 0.2)], abs=1e-6)
    assert found["decision"].to_list() == ["flagged", "not flagged", "flagged", "not flagged"]
    assert json.dumps(answer.metrics["auroc"].value) == "1.0"
