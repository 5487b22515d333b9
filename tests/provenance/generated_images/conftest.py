"""A small network that sees 32 px, and images of stripes and noise for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from answerable.subjects import VisionBackbone


def network(size: int = 32) -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers).eval()


def images(count: int, *, side: int = 40, seed: int = 0) -> list[np.ndarray]:
    """Coloured waves with noise, (side, side, 3) uint8."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] / side
    made = []
    for _ in range(count):
        waves = [np.sin(7 * (a * x + b * y) + c) for a, b, c in rng.normal(size=(3, 3))]
        made.append(
            np.clip(127 + 90 * np.stack(waves, -1) + rng.normal(0, 8, (side, side, 3)), 0, 255).astype(np.uint8)
        )
    return made


@pytest.fixture(scope="session")
def backbone() -> VisionBackbone:
    return VisionBackbone.load(network(), size=32)


@pytest.fixture(scope="session")
def saved_backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny DINOv2 with random weights, as transformers saves it."""
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14)
    folder = tmp_path_factory.mktemp("dinov2")
    Dinov2Model(config).save_pretrained(folder)
    return folder


def write(folder: Path, pictures: list[np.ndarray], ending: str = "png", **options: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(pictures):
        Image.fromarray(pixels).save(folder / f"{number:02d}.{ending}", **options)
    return folder
