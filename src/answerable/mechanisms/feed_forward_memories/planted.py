"""A feed-forward layer whose memories are known, with texts and concepts to match, and so what scores must say.

Twelve memories of width eight behind a rectifier. Memory 3 fires for the word "alarm" and writes towards it; every
other memory reads and writes at random. Texts with the concept hold the word once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .feature_sets import Weights
from .model_source import Window
from .reading import Batch
from .scores import Labelled
from .solver import Floats

WIDTH, MEMORIES, WORDS, LENGTH = 8, 12, 24, 10
CONCEPT, COLOUR, ALARM, RED, BLUE = 3, 5, 0, 1, 2
NAMES = ["alarm", "red", "blue", *(f"word{number}" for number in range(3, WORDS))]


class PlantedSource:
    """One planted layer, and texts of which half hold the word and, apart from that, half are red and half blue.

    Parameters
    ----------
    rng : draws the weights and the texts
    n_texts : a multiple of 4
    """

    layers: list[int]
    deviation = 0.3

    def __init__(self, rng: np.random.Generator, *, n_texts: int = 80) -> None:
        self.layers = [0]
        self.embedding = rng.standard_normal((WORDS, WIDTH)).astype(np.float32)
        self.embedding /= np.linalg.norm(self.embedding, axis=1, keepdims=True)
        keys = 0.3 * rng.standard_normal((WIDTH, MEMORIES)).astype(np.float32)
        values = 0.3 * rng.standard_normal((MEMORIES, WIDTH)).astype(np.float32)
        bias = np.full(MEMORIES, -0.1, np.float32)
        for number, word in ((CONCEPT, ALARM), (COLOUR, RED)):
            others = np.delete(self.embedding, word, axis=0) @ self.embedding[word]
            keys[:, number] = 4 * self.embedding[word]
            bias[number] = -4 * float(others.max()) - 0.05
            values[number] = 2 * self.embedding[word]
        self._weights = Weights(keys=keys, values=values, key_bias=bias, activation="relu")
        ids = rng.integers(3, WORDS, (n_texts, LENGTH))
        has_word, is_red = np.arange(n_texts) % 2 == 0, np.arange(n_texts) // 2 % 2 == 0
        ids[has_word, 4] = ALARM
        ids[:, 7] = np.where(is_red, RED, BLUE)
        self.windows = [Window(number, row.astype(np.int32), 0) for number, row in enumerate(ids)]
        self.labelled = Labelled(
            [" ".join(NAMES[i] for i in row) for row in ids],
            {
                "word": ["alarm" if one else "none" for one in has_word],
                "colour": ["red" if one else "blue" for one in is_red],
            },
        )

    def run(self, windows: Sequence[Window], visit: Callable[[Batch], None], layers: Sequence[int]) -> None:
        """Hand over the one layer."""
        ids = np.concatenate([window.ids for window in windows])
        read = self.embedding[ids]
        activations = self._weights.activations(read)
        lengths = [len(window.ids) for window in windows]
        where = np.repeat(np.arange(len(windows)), lengths)
        text = np.array([window.text for window in windows])[where]
        position = np.concatenate([np.arange(length) for length in lengths])
        visit(Batch(0, read, activations, activations @ self._weights.values, text, ids, where, position))

    def weights(self, layer: int) -> Weights:
        """The layer."""
        return self._weights

    def words(self, layer: int) -> tuple[Floats, Floats, Floats | None]:
        """Values, and the embedding as output layer."""
        return self._weights.values, self.embedding, None

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The words."""
        return [NAMES[i] for i in ids]
