"""XAI-TRIS: small images whose class is carried by two tetrominoes, with noise and distractors laid over them.

The 8 x 8 variant of "Correcting misinterpretations of additive models" (NeurIPS 2025). Whatever is not under a
tetromino carries nothing of the class; correlated background makes it useful to a model all the same.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from answerable.errors import BadInput
from answerable.statistics import Bools, Floats, Ints

Scenario = Literal["linear", "multiplicative", "xor"]
Background = Literal["white", "correlated"]

SIDE = 8
T_SHAPE, T_AT = np.array([[1, 0], [1, 1], [1, 0]]), (1, 1)
L_SHAPE, L_AT = np.array([[1, 0], [1, 0], [1, 1]]), (4, 5)
DISTRACTORS = ((1, 1), (5, 1), (1, 5), (4, 5))  # upper left pixels of 2 x 2 squares
SMOOTHING = 3.0  # pixels
# Weight of the signal for white and correlated background, without and with distractors.
ALPHAS: dict[tuple[Scenario, bool], tuple[float, float]] = {
    ("linear", False): (0.2, 0.1),
    ("linear", True): (0.2, 0.05),
    ("multiplicative", False): (0.6, 0.4),
    ("multiplicative", True): (0.6, 0.4),
    ("xor", False): (0.3, 0.3),
    ("xor", True): (0.2, 0.2),
}


class Tris(NamedTuple):
    """A data set and where its information is.

    Attributes
    ----------
    X : (n, 64) float64, images row by row, between -1 and 1
    y : (n,) int64, 0 and 1, half each
    truth : (8, 8) bool, the pixels under either tetromino
    split : (n,) int64, 0 training (90 %), 1 validation (5 %), 2 test (5 %), drawn within each class
    """

    X: Floats
    y: Ints
    truth: Bools
    split: Ints


def make_xai_tris(
    scenario: Scenario = "linear",
    background: Background = "white",
    *,
    distractor: bool = False,
    alpha: float | None = None,
    n: int = 10_000,
    seed: int = 0,
) -> Tris:
    """Make one data set.

    Parameters
    ----------
    scenario : ``linear`` and ``multiplicative``: class 0 shows a T, class 1 an L; ``xor``: both are always shown, class
        0 with equal signs, class 1 with opposite ones
    background : ``white`` normal noise, or the same smoothed over 3 pixels
    distractor : lay four squares of random sign over each image
    alpha : weight of the signal, between 0 and 1; the paper's when left out
    n : images, even, divisible by 4 for ``xor``, at least 40
    seed : of everything random

    Raises
    ------
    BadInput : an unknown scenario or background, or a number out of its bounds
    """
    if (scenario, distractor) not in ALPHAS or background not in ("white", "correlated"):
        raise BadInput(
            f"it is {scenario!r} with {background!r}",
            where="scenario",
            mend="choose linear, multiplicative or xor, and white or correlated",
        )
    if n < 40 or n % 4:
        raise BadInput(f"n is {n}", where="n", mend="give a multiple of 4, at least 40")
    if alpha is None:
        alpha = ALPHAS[scenario, distractor][background == "correlated"]
    if not 0 < alpha <= 1:
        raise BadInput(f"alpha is {alpha:g}", where="alpha", mend="give more than 0, at most 1")
    rng = np.random.default_rng(seed)
    signal, y = _signal(scenario, n)
    noise = 0.5 * rng.normal(size=(n, SIDE, SIDE))
    if background == "correlated":
        noise = gaussian_filter(noise, sigma=(0.0, SMOOTHING, SMOOTHING))
    squares = _squares(rng, n) if distractor else np.zeros_like(noise)
    images = _mixed(scenario, alpha, signal, squares, noise, distractor).reshape(n, -1)
    order = rng.permutation(n)
    X, y = images[order] / np.max(np.abs(images)), y[order]
    truth = _stamped(T_SHAPE, T_AT) + _stamped(L_SHAPE, L_AT) > 0
    return Tris(X, y, truth, _split(y, rng))


def _signal(scenario: Scenario, n: int) -> tuple[Floats, Ints]:
    t, bar = _stamped(T_SHAPE, T_AT), _stamped(L_SHAPE, L_AT)
    if scenario == "xor":
        kinds = np.stack([t + bar, -t - bar, t - bar, bar - t])
        return np.repeat(kinds, n // 4, axis=0), np.repeat([0, 0, 1, 1], n // 4)
    return np.repeat(np.stack([t, bar]), n // 2, axis=0), np.repeat([0, 1], n // 2)


def _squares(rng: np.random.Generator, n: int) -> Floats:
    shapes = np.stack([_stamped(np.ones((2, 2)), at) for at in DISTRACTORS])
    return np.einsum("nk,kij->nij", rng.choice([-1.0, 1.0], size=(n, len(shapes))), shapes)


def _mixed(
    scenario: Scenario, alpha: float, signal: Floats, squares: Floats, noise: Floats, distractor: bool
) -> Floats:
    rest = (1 - alpha) / 2 if distractor else 1 - alpha
    if scenario == "multiplicative":
        images = _scaled(1 - alpha * signal) * _scaled(noise)
        return images * _scaled(1 - rest * squares) if distractor else images
    images = alpha * _scaled(signal) + rest * _scaled(noise)
    return images + rest * _scaled(squares) if distractor else images


def _scaled(images: Floats) -> Floats:
    return images / np.sqrt((images**2).sum())


def _stamped(shape: Floats, at: tuple[int, int]) -> Floats:
    grid = np.zeros((SIDE, SIDE))
    grid[at[0] : at[0] + shape.shape[0], at[1] : at[1] + shape.shape[1]] = shape
    return grid


def _split(y: Ints, rng: np.random.Generator) -> Ints:
    split = np.zeros(len(y), dtype=np.int64)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        held = round(0.05 * len(rows))
        split[rows[:held]], split[rows[held : 2 * held]] = 1, 2
    return split
