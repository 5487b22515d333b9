"""EfficientNet-Lite0 (Tan and Le 2019, without squeeze-and-excitation, with ReLU6), for inference.

Each batch normalisation is folded into the convolution before it when weights are loaded, so that an activation is
written once, not three times. Padding is TensorFlow's "same", as the weights were trained: with stride 2 the last row
and column get more of it. Weights have the names that ``efficientnet-lite-pytorch`` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from answerable.errors import CannotRead

# repeats, kernel, stride, expansion, channels out: EfficientNet-B0's table
STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))  # fmt: skip
STEM, HEAD = 32, 1280
EPSILON = 1e-3  # of the batch normalisations


class _Convolution(nn.Module):
    """A convolution with "same" padding, and ReLU6 after it where asked."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(n_in, n_out, kernel, stride, groups=groups)
        self.kernel, self.stride, self.relu = kernel, stride, relu

    def forward(self, x: Tensor) -> Tensor:
        down, across = (max((-(-n // self.stride) - 1) * self.stride + self.kernel - n, 0) for n in x.shape[-2:])
        if down == across and down % 2 == 0:  # the usual padding, which the convolution does by itself
            x = functional.conv2d(
                x,
                self.convolution.weight,
                self.convolution.bias,
                self.stride,
                down // 2,
                groups=self.convolution.groups,
            )
        else:
            x = functional.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))
            x = self.convolution(x)
        return functional.relu6(x, inplace=True) if self.relu else x


class _Block(nn.Module):
    """Expand, filter each channel, project; with the input added where the shape is kept."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = n_in * expansion
        steps = [_Convolution(n_in, wide, 1)] if expansion > 1 else []
        steps += [_Convolution(wide, wide, kernel, stride, wide), _Convolution(wide, n_out, 1, relu=False)]
        self.steps = nn.Sequential(*steps)
        self.keeps = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        return self.steps(x) + x if self.keeps else self.steps(x)


class EfficientNetLite0(nn.Module):
    """(B, 3, H, W) normalised pixels to (B, 1280) features: the pooled output of the last convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _Convolution(3, STEM, 3, 2)
        blocks, n_in = [], STEM
        for repeats, kernel, stride, expansion, n_out in STAGES:
            for repeat in range(repeats):
                blocks.append(_Block(n_in, n_out, kernel, stride if repeat == 0 else 1, expansion))
                n_in = n_out
        self.blocks = nn.Sequential(*blocks)
        self.head = _Convolution(n_in, HEAD, 1)

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.head(self.blocks(self.stem(x))).mean(dim=(2, 3))
        return features

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], *, where: str) -> EfficientNetLite0:
        """The network with published weights, its normalisations folded in.

        Raises
        ------
        CannotRead : a weight is missing or of another shape
        """
        made = cls()
        with torch.no_grad():
            _fold(made.stem, weights, "_conv_stem", "_bn0", where)
            for number, block in enumerate(made.blocks):
                names = [("_expand_conv", "_bn0")] if len(block.steps) == 3 else []  # type: ignore[arg-type]
                names += [("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
                for step, (convolution, normalisation) in zip(block.steps, names, strict=True):  # type: ignore[arg-type]
                    _fold(step, weights, f"_blocks.{number}.{convolution}", f"_blocks.{number}.{normalisation}", where)
            _fold(made.head, weights, "_conv_head", "_bn1", where)
        return made.eval()


def _fold(step: nn.Module, weights: Mapping[str, Tensor], convolution: str, normalisation: str, where: str) -> None:
    target: nn.Conv2d = step.convolution  # type: ignore[assignment]
    assert target.bias is not None
    kernel = _weight(weights, f"{convolution}.weight", target.weight.shape, where)
    gain, bias, mean, variance = (
        _weight(weights, f"{normalisation}.{part}", target.bias.shape, where)
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    scale = gain.double() / torch.sqrt(variance.double() + EPSILON)
    target.weight.copy_(kernel.double() * scale[:, None, None, None])
    target.bias.copy_(bias.double() - mean.double() * scale)


def _weight(weights: Mapping[str, Tensor], name: str, shape: torch.Size, where: str) -> Tensor:
    found = weights.get(name)
    if found is None or found.shape != shape:
        problem = f"{name} is missing" if found is None else f"{name} has the shape {tuple(found.shape)}"
        raise CannotRead(problem, where=where, mend=f"give EfficientNet-Lite0's weights; {tuple(shape)} is expected")
    return found
