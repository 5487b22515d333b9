"""Coloured digits with a bar, of which every what-if answer is known: pictures made from named concepts.

``D`` = the digit is at least 5, with probability 0.5. ``C`` = it is red: as D says, but for two in five, by a *hidden*
cause, so that C does not descend from D. ``B`` = there is a bar: ``U1 and (D or U2)``, U1 with probability 0.9, U2 with
1/18, so that D moves B. ``Y`` = at least two of B, D and C, flipped with probability 0.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

GRAPH = {"nodes": ["B", "D", "C"], "directed": [["D", "B"]], "bidirected": [["D", "C"]]}
FIRST_BAR, SECOND_BAR, OTHER_COLOUR, FLIPPED = 0.9, 1 / 18, 0.4, 0.1


class BarDigits(NamedTuple):
    """Pictures, their concepts, labels, and what they would have been.

    Parameters
    ----------
    images : (n, 10, 8, 2) uint8, 0 to 16; red and green
    B, D, C, Y : (n,) int64, 0 or 1
    bar_if : (n, 2) int64, whether there would be a bar, had the digit been small, and had it been large
    """

    images: npt.NDArray[np.uint8]
    B: npt.NDArray[np.int64]
    D: npt.NDArray[np.int64]
    C: npt.NDArray[np.int64]
    Y: npt.NDArray[np.int64]
    bar_if: npt.NDArray[np.int64]

    @property
    def concepts(self) -> dict[str, npt.NDArray[np.int64]]:
        """The concepts by name."""
        return {"B": self.B, "D": self.D, "C": self.C}


def make_bar_digits(n: int, rng: np.random.Generator, *, noise: float = 1.0) -> BarDigits:
    """Draw ``n`` pictures; the digits are scikit-learn's 1,797, each drawn as often as it comes.

    Parameters
    ----------
    n : number of pictures
    rng : source of all chance
    noise : standard deviation of the pixels' noise, on their scale of 0 to 16
    """
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    large = digits >= 5
    D = rng.random(n) < 0.5
    C = D ^ (rng.random(n) < OTHER_COLOUR)
    first, second = rng.random(n) < FIRST_BAR, rng.random(n) < SECOND_BAR
    bar_if = np.stack([first & second, first], axis=1)
    B = np.where(D, bar_if[:, 1], bar_if[:, 0])
    Y = (B.astype(int) + D + C >= 2) ^ (rng.random(n) < FLIPPED)
    rows = np.where(D, rng.choice(np.flatnonzero(large), n), rng.choice(np.flatnonzero(~large), n))
    grey = np.zeros((n, 10, 8))
    grey[:, :8] = pixels[rows].reshape(n, 8, 8)
    grey[:, 9] = 12.0 * B[:, None]
    images = np.zeros((n, 10, 8, 2))
    images[np.arange(n), :, :, np.where(C, 0, 1)] = grey
    images += noise * rng.normal(size=images.shape)
    whole = [column.astype(np.int64) for column in (B, D, C, Y, bar_if)]
    return BarDigits(np.clip(np.round(images), 0, 16).astype(np.uint8), *whole)
