"""What is kept of a feature set while texts pass: per text, never per token.

A pass hands over what the layer reads and writes, batch by batch; a :class:`Reading` keeps for each text the mean and
the largest activation of every feature, and the sums from which explained variance follows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .feature_sets import FeatureSet
from .solver import Definition, ErrorSums, Floats

Ints = npt.NDArray[np.int64]


class Batch(NamedTuple):
    """Tokens that count, one after the other, those of a text together.

    layer : its number, from 0
    read : (tokens, d) what the layer reads, None for heads
    activations : (tokens, m) the model's own
    written : (tokens, d) what the layer adds, after its norm where it has one
    text : (tokens,) number of each token's text, rising from batch to batch or not, but never mixed within one
    ids : (tokens,) token ids
    window, position : (tokens,) where each stands
    scale : (tokens,) what the norm of what is written multiplies by besides its gain; None where there is no norm
    """

    layer: int
    read: Floats | None
    activations: Floats
    written: Floats
    text: Ints
    ids: Ints
    window: Ints
    position: Ints
    scale: Floats | None = None

    def only(self, rows: Ints) -> Batch:
        """Some of its tokens."""
        return self._replace(**{
            name: part[rows] for name, part in self._asdict().items() if name != "layer" and part is not None
        })  # fmt: skip

    def adding(self, features: FeatureSet, activations: Floats) -> Floats:
        """Activations times the norm's scale, as the whole output sets it: with the directions, what each adds."""
        return activations if features.gain is None or self.scale is None else activations * self.scale[:, None]


class Reading:
    """One feature set over texts.

    Parameters
    ----------
    features : the set
    n_texts : how many texts there are
    width : d
    definition, centre : see :func:`solver.explained_variance`
    keep_texts : whether the (texts, features) matrices of means and peaks are kept

    Attributes
    ----------
    tokens : (texts,) int64
    means : (texts, m) float32, mean activation over a text's tokens
    adding : (texts, m) float32, what times its direction each adds to a text's mean output; ``means`` without a norm
    peaks : (2, texts, m) float32, largest activation on each side of zero; 0 where there is none
    outputs : (texts, d) float64, mean of what the features are to rebuild
    errors, squares : (texts,) sums over tokens of the squared error and of the squared output
    positive, nonzero : (m,) int64 tokens with a > 0, and with a != 0
    """

    def __init__(
        self,
        features: FeatureSet,
        n_texts: int,
        width: int,
        *,
        definition: Definition = "fvu",
        centre: Floats | None = None,
        keep_texts: bool = True,
    ) -> None:
        m = features.count
        self.features, self.keep_texts = features, keep_texts
        self.tokens = np.zeros(n_texts, np.int64)
        self.means = np.zeros((n_texts if keep_texts else 0, m), np.float32)
        self.adding = self.means if features.gain is None else np.zeros_like(self.means)
        self.peaks = np.zeros((2, n_texts if keep_texts else 0, m), np.float32)
        self.outputs = np.zeros((n_texts, width))
        self.errors, self.squares = np.zeros(n_texts), np.zeros(n_texts)
        self.positive, self.nonzero = np.zeros(m, np.int64), np.zeros(m, np.int64)
        self.sums = ErrorSums(width, 1, definition=definition, centre=centre)
        self.definition = definition

    def add(self, batch: Batch) -> None:
        """Take in a batch of the layer's texts; a text may go on in the next."""
        source = {"input": batch.read, "output": batch.written, "activations": batch.activations}[self.features.reads]
        if source is None:
            raise BadInput("heads read no one state", where=self.features.name, mend="ask of feed-forward layers")
        wanted = batch.written if self.features.target is None else self.features.target(source)
        activations = self.features.encode(source)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (wanted - self.features.decode(activations)).astype(np.float64)
            errors = np.einsum("td,td->t", apart, apart)
        if not np.isfinite(errors).all():
            mend = "check its weights and its scale"
            raise BadInput("what it rebuilds is too large for float32", where=self.features.name, mend=mend)
        self.sums.add(wanted, errors[:, None])
        self.positive += (activations > 0).sum(axis=0)
        self.nonzero += (activations != 0).sum(axis=0)
        starts = np.flatnonzero(np.r_[True, np.diff(batch.text) != 0])
        texts = batch.text[starts]
        self.tokens[texts] += np.diff(np.r_[starts, len(batch.text)])
        self.errors[texts] += np.add.reduceat(errors, starts)
        self.squares[texts] += np.add.reduceat(np.einsum("td,td->t", wanted, wanted, dtype=np.float64), starts)
        self.outputs[texts] += np.add.reduceat(wanted, starts, axis=0)
        if self.keep_texts:
            self.means[texts] += np.add.reduceat(activations, starts, axis=0)
            if self.adding is not self.means:
                self.adding[texts] += np.add.reduceat(batch.adding(self.features, activations), starts, axis=0)
            for side, signed in enumerate((activations, -activations)):
                self.peaks[side, texts] = np.maximum(
                    self.peaks[side, texts], np.maximum.reduceat(signed, starts, axis=0)
                )

    def finished(self) -> Reading:
        """Sums made means; called once, after the last batch."""
        share = np.maximum(self.tokens, 1)
        self.outputs /= share[:, None]
        if self.keep_texts:
            self.means /= share[:, None].astype(np.float32)
            if self.adding is not self.means:
                self.adding /= share[:, None].astype(np.float32)
        return self

    @property
    def explained(self) -> float:
        """Explained variance over all tokens; NaN where the outputs do not vary."""
        return float(self.sums.values[0])

    def explained_of(self, *columns: Any) -> float:
        """Explained variance of resampled texts: errors, squares, tokens, mean outputs."""
        errors, squares, tokens, outputs = columns
        total = float(tokens.sum())
        mean = (outputs * tokens[:, None]).sum(axis=0) / total
        apart = squares.sum() / total - (0.0 if self.definition == "uncentred" else float(mean @ mean))
        return float(1 - errors.sum() / total / apart) if apart > 0 else float("nan")

    @property
    def alive(self) -> float:
        """Share of features that are above 0 at some token."""
        return float((self.positive > 0).mean())

    @property
    def ever_nonzero(self) -> float:
        """Share of features that are not 0 at some token; for features with a sign."""
        return float((self.nonzero > 0).mean())

    @property
    def density(self) -> npt.NDArray[np.float64]:
        """(m,) share of tokens with a > 0."""
        return self.positive / max(1, int(self.tokens.sum()))

    @property
    def l0(self) -> float:
        """Features that are not 0 at a token, on average."""
        return float(self.nonzero.sum() / max(1, int(self.tokens.sum())))
