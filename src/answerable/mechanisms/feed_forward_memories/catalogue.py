"""The catalogue: every memory of every layer, its two sides apart, from one pass over a text.

What is kept does not grow with the text: counts, sums and, for each memory and side, the places of its largest
activations. The tokens themselves are kept once, to show those places in their context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .solver import Floats, MemoryCounts, written_words

if TYPE_CHECKING:
    import polars as pl

SIDES = ("+", "-")
COLUMNS = {
    "layer": "number of the layer, from 0",
    "neuron": "number of the memory in its layer, from 0",
    "sign": "side of zero: + or -",
    "alive": "whether it is on that side at any token",
    "density": "share of tokens with the activation on that side [1]",
    "strength": "mean of |activation| over these tokens; 0 where there are none",
    "peak": "largest |activation| on that side; 0 likewise",
    "peak_token": "the token at that place as it reads",
    "value_length": "length of its value, what it writes for an activation of 1; 0: a dead value",
}


class Context(NamedTuple):
    """One place where a memory is active.

    value : the activation
    tokens : the tokens around it as they read
    at : which of them it is at
    text : number of the text, from 0
    values : the memory's activation at each of these tokens; empty where the text was not read again for it
    """

    value: float
    tokens: list[str]
    at: int
    text: int
    values: list[float]


class Card(NamedTuple):
    """One side of one memory.

    promoted, demoted : tokens that an activation on this side raises and lowers most at the output layer
    contexts : places with the largest activations, the largest first
    """

    layer: int
    neuron: int
    sign: str
    density: float
    strength: float
    value_length: float
    promoted: list[str]
    demoted: list[str]
    contexts: list[Context]


@dataclass(eq=False)
class Catalogue:
    """What :meth:`FFMemories.record` found.

    Parameters
    ----------
    layers : numbers of the layers, from 0
    counts : :class:`solver.MemoryCounts` by layer
    lengths : (m,) length of each value by layer
    windows : the token ids that were read, window by window
    window_texts : number of each window's text
    skips : how many of each window's first tokens were not counted; the others are numbered one after the other
    read_tokens : ids to what a reader sees
    read_again : from a layer and numbers of windows to the activations (tokens, m) of each, anew; these are not kept
    word_weights : by layer the values, with the output layer and the gain of the final norm; None where no words
        are written
    ks, explained : the k of the k-term reconstructions, and by layer their explained variance
    explained_tokens : tokens that these rest on
    at_first : by layer, the share of the outputs' squared size that falls on the very first token of each window, where
        a model without a token of its own to begin with puts what others put on that
    """

    layers: list[int]
    counts: dict[int, MemoryCounts]
    lengths: dict[int, Floats]
    windows: list[npt.NDArray[np.int32]]
    window_texts: list[int]
    skips: list[int]
    read_tokens: Callable[[Sequence[int]], list[str]]
    word_weights: Callable[[int], tuple[Floats, Floats, Floats | None] | None] = field(repr=False)
    read_again: Callable[[int, Sequence[int]], dict[int, Floats]] = field(repr=False)
    ks: Sequence[int] = ()
    explained: Mapping[int, Floats] = field(default_factory=dict)
    explained_tokens: int = 0
    at_first: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        """Number of each window's first token that was counted, and after the last how many there are."""
        counted = [len(ids) - skip for ids, skip in zip(self.windows, self.skips)]
        return np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])

    @property
    def tokens(self) -> int:
        """Tokens counted."""
        return int(self._starts[-1])

    @property
    def dropped(self) -> int:
        """Tokens that were read but not counted: those that begin every text."""
        return sum(self.skips)

    def table(self) -> pl.DataFrame:
        """Every layer, memory and side, one row each; columns as ``COLUMNS`` says."""
        import polars as pl

        parts = []
        for layer in self.layers:
            found = self.counts[layer]
            m = found.counts.shape[1]
            places = found.top_places[:, :, 0].reshape(-1)
            ids = [self._id(int(place)) for place in places]
            words = self.read_tokens([max(i, 0) for i in ids])
            parts.append(
                pl.DataFrame(
                    {
                        "layer": np.full(2 * m, layer),
                        "neuron": np.tile(np.arange(m), 2),
                        "sign": np.repeat(SIDES, m),
                        "alive": (found.counts > 0).reshape(-1),
                        "density": found.density.reshape(-1),
                        "strength": found.strength.reshape(-1),
                        "peak": found.top_values[:, :, 0].reshape(-1).astype(np.float64),
                        "peak_token": [word if i >= 0 else "" for word, i in zip(words, ids)],
                        "value_length": np.tile(self.lengths[layer], 2).astype(np.float64),
                    }
                )
            )
        return pl.concat(parts)

    def alive(self, layer: int) -> dict[str, float]:
        """Shares of a layer's memories that are ever above 0, ever below, ever not 0."""
        counts = self.counts[layer].counts > 0
        return {
            "positive": float(counts[0].mean()),
            "negative": float(counts[1].mean()),
            "either": float(counts.any(axis=0).mean()),
        }

    def feature(
        self, layer: int, neuron: int, sign: str = "+", *, top: int = 10, around: int = 12, shaded: int = 3
    ) -> Card:
        """One memory's card; see :meth:`cards`."""
        return self.cards(layer, [(neuron, sign)], top=top, around=around, shaded=shaded)[0]

    def cards(
        self, layer: int, sides: Sequence[tuple[int, str]], *, top: int = 10, around: int = 12, shaded: int = 3
    ) -> list[Card]:
        """Cards of memories of one layer.

        Parameters
        ----------
        layer : from 0
        sides : number of each memory, from 0, and "+" or "-"
        top : contexts and words of each
        around : tokens shown before a place; half as many after it
        shaded : how many of the first contexts have the activation at each of their tokens; their windows are read
            once more, all in one pass

        Raises
        ------
        BadInput : there is no such layer, memory or side
        """
        if layer not in self.counts:
            listed = f"from {self.layers[0]} to {self.layers[-1]}"
            raise BadInput(f"layer {layer} was not recorded", where="catalogue", mend=f"choose {listed}")
        m = self.counts[layer].counts.shape[1]
        for neuron, sign in sides:
            if not 0 <= neuron < m or sign not in SIDES:
                raise BadInput(
                    f"there is no memory {neuron} with sign {sign!r}",
                    where=f"layer {layer}",
                    mend=f"0 to {m - 1}, + or -",
                )
        places = [self._places(layer, neuron, sign, shaded) for neuron, sign in sides]
        windows = sorted({self._where(place)[0] for few in places for place in few})
        anew = self.read_again(layer, windows) if windows else {}
        return [self._card(layer, neuron, sign, top, around, shaded, anew) for neuron, sign in sides]

    def _places(self, layer: int, neuron: int, sign: str, count: int) -> list[int]:
        found = self.counts[layer].top_places[SIDES.index(sign), neuron, :count]
        return [int(place) for place in found if place >= 0]

    def _card(
        self, layer: int, neuron: int, sign: str, top: int, around: int, shaded: int, anew: Mapping[int, Floats]
    ) -> Card:
        found, side = self.counts[layer], SIDES.index(sign)
        contexts = [
            self._context(place, float(value) * (1 - 2 * side), around, neuron, anew if rank < shaded else {})
            for rank, (value, place) in enumerate(
                zip(found.top_values[side, neuron], self._places(layer, neuron, sign, top))
            )
        ]
        promoted, demoted = self.words(layer, [neuron], top=top)
        if side:  # a negative activation writes the other way
            promoted, demoted = demoted, promoted
        return Card(
            layer,
            neuron,
            sign,
            float(found.density[side, neuron]),
            float(found.strength[side, neuron]),
            float(self.lengths[layer][neuron]),
            promoted[0] if promoted else [],
            demoted[0] if demoted else [],
            contexts,
        )

    def words(self, layer: int, neurons: Sequence[int], *, top: int = 10) -> tuple[list[list[str]], list[list[str]]]:
        """Tokens that a positive activation of each of these memories promotes and demotes."""
        weights = self.word_weights(layer)
        if weights is None:
            return [], []
        values, unembedding, gain = weights
        found = written_words(values[list(neurons)], unembedding, gain=gain, top=top)
        live = self.lengths[layer][list(neurons)] > 0
        return tuple([self.read_tokens(row.tolist()) if ok else [] for row, ok in zip(ids, live)] for ids in found)  # type: ignore[return-value]

    def save(self, path: str | Path) -> None:
        """Write the table as Parquet."""
        self.table().write_parquet(path)

    def _id(self, place: int) -> int:
        if place < 0:
            return -1
        window, position = self._where(place)
        return int(self.windows[window][position])

    def _where(self, place: int) -> tuple[int, int]:
        """Window and position of a token by its number."""
        window = int(np.searchsorted(self._starts, place, side="right")) - 1
        return window, self.skips[window] + place - int(self._starts[window])

    def _context(self, place: int, value: float, around: int, neuron: int, anew: Mapping[int, Floats]) -> Context:
        window, position = self._where(place)
        ids = self.windows[window]
        first, last = max(0, position - around), min(len(ids), position + around // 2 + 1)
        tokens = self.read_tokens([int(i) for i in ids[first:last]])
        values = [float(a) for a in anew[window][first:last, neuron]] if window in anew else []
        return Context(value, tokens, position - first, self.window_texts[window], values)
