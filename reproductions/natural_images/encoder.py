"""A tiny encoder trained without labels on natural patches (SimSiam, Chen and He 2021), and a generator of patches."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn

from answerable.provenance.generated_images import Transform
from answerable.provenance.generated_images.views import Floats32, changed, crops, draw
from answerable.subjects.images import Pixels
from reproductions.natural_images import crops_of, photographs

SIDE = 32
WIDE = 40  # of the patches that are cropped to 32
STRONG = Transform(0.5, 0.8, 0.4, 0.4, 0.4, 0.1)


class Encoder(nn.Sequential):
    """(B, 3, 32, 32) to (B, 128)."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for n_in, n_out in ((3, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(n_in, n_out, 3, 2, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def natural_patches(count: int, rng: np.random.Generator, *, side: int = WIDE) -> list[Pixels]:
    """Patches from anywhere in the photographs, equally many of each."""
    photos = list(photographs().values())
    return [patch for pixels in photos for patch in crops_of(pixels, -(-count // len(photos)), rng, side=side)][:count]


def generated_patches(count: int, rng: np.random.Generator, *, components: int = 96) -> list[Pixels]:
    """Patches drawn from a Gaussian in the principal components of natural ones."""
    known = np.stack(natural_patches(3000, rng, side=SIDE)).reshape(3000, -1) / 255
    model = PCA(components, random_state=0).fit(known)
    drawn = rng.standard_normal((count, components)) * np.sqrt(model.explained_variance_)
    return list(
        np.rint(255 * np.clip(model.inverse_transform(drawn), 0, 1)).astype(np.uint8).reshape(-1, SIDE, SIDE, 3)
    )


def train(encoder: Encoder, *, steps: int, batch: int = 128, seed: int = 0) -> Encoder:
    """SimSiam: two changed crops of a patch predict each other's projection."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    patches = natural_patches(4000, rng)
    project = nn.Sequential(nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 128),
                            nn.BatchNorm1d(128, affine=False))  # fmt: skip
    predict = nn.Sequential(nn.Linear(128, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 128))
    modules = nn.ModuleList([encoder, project, predict]).train()
    optimiser = torch.optim.SGD(modules.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        chosen = rng.integers(0, len(patches), batch)
        first, second = (torch.from_numpy(_views([patches[k] for k in chosen], int(rng.integers(2**31)))) for _ in "ab")
        z1, z2 = project(encoder(first)), project(encoder(second))
        loss = (_apart(predict(z1), z2) + _apart(predict(z2), z1)) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    encoder.eval()
    return encoder


def _views(patches: list[Pixels], state: int) -> Floats32:
    views = []
    for number, patch in enumerate(patches):
        drawn = draw(patch, n_views=1, size=SIDE, transform=STRONG, random_state=state + number)
        views.append(changed(crops(patch, drawn, SIDE), drawn)[0])
    normalised: Floats32 = (np.stack(views) - np.float32(0.45)) / np.float32(0.225)
    return normalised


def _apart(predicted: Tensor, target: Tensor) -> Tensor:
    return -nn.functional.cosine_similarity(predicted, target.detach()).mean()
