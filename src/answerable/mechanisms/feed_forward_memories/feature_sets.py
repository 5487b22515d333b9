"""Sets of features that are compared: a layer's own memories in their variants, learned features, random controls.

All have one form: ``encode`` what they read into activations (tokens, m), ``decode`` activations into what is written
(tokens, d). A set reads the feed-forward layer's input (memories, transcoders) or its output (autoencoders).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .solver import Floats, Select, largest

Reads = Literal["input", "output", "activations"]
Variant = Literal["full", "topk"]
Role = Literal["ours", "baseline", "control"]
Function = Callable[[Floats], Floats]

FUNCTIONS: dict[str, Function] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-np.clip(x, -80, 80))),
}


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Features of one layer.

    Parameters
    ----------
    name : what to call them
    encoder : from what is read, (tokens, d), to activations (tokens, m)
    W_dec : (m, d) what each feature writes
    b_dec : (d,) what is written besides; None for nothing
    reads : "input" or "output" of the feed-forward layer; "activations" for heads, which read no one state
    norm : function of what has been decoded, where the layer norms what it writes
    gain : (d,) gain of that norm; None where there is none
    role : "ours", "baseline" (learned) or "control" (random)
    k : how many activations of each token are kept; all where None
    select : by |a|, or by |a| times the length of its value ("contribution")
    scale : (m,) what an activation is multiplied by when it is decoded; the lengths of the values where these are
        normalised, else None
    target : function of the layer's input that gives the outputs that these features rebuild; None for the layer's own.
        A random control rebuilds what its own layer writes
    notes : what a reader of its scores is to know, in sentences
    """

    name: str
    encoder: Function
    W_dec: Floats
    b_dec: Floats | None = None
    reads: Reads = "input"
    norm: Function | None = None
    gain: Floats | None = None
    role: Role = "ours"
    k: int | None = None
    select: Select = "abs"
    scale: Floats | None = None
    target: Function | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k is not None and not 1 <= self.k <= self.count:
            raise BadInput(f"k is {self.k}, there are {self.count} features", where="k", mend=f"1 to {self.count}")

    @property
    def count(self) -> int:
        """How many features there are."""
        return len(self.W_dec)

    @property
    def lengths(self) -> Floats:
        """(m,) length of what each feature writes for an activation of 1."""
        own = np.linalg.norm(self.W_dec, axis=1)
        return own if self.scale is None else own * self.scale

    @property
    def dead_values(self) -> npt.NDArray[np.int64]:
        """Numbers of the features that write nothing, whose direction is undefined."""
        return np.flatnonzero(~(self.lengths > 0))

    def encode(self, x: Floats) -> Floats:
        """Activations (tokens, m) of what is read (tokens, d)."""
        return self.keep(self.encoder(np.ascontiguousarray(x, np.float32)))

    def keep(self, activations: Floats) -> Floats:
        """The activations that this variant keeps, the others 0."""
        if self.k is None or self.k == self.count:
            return activations
        chosen = largest(activations, self.k, self.lengths if self.select == "contribution" else None)
        kept = np.zeros_like(activations)
        np.put_along_axis(kept, chosen, np.take_along_axis(activations, chosen, axis=1), axis=1)
        return kept

    def decode(self, activations: Floats) -> Floats:
        """What is written (tokens, d) for activations (tokens, m)."""
        scaled = activations if self.scale is None else activations * self.scale
        written = scaled @ self.W_dec
        if self.b_dec is not None:
            written = written + self.b_dec
        return written if self.norm is None else self.norm(written)

    def transform(self, x: Floats) -> Floats:
        """As :meth:`encode`: a set can stand in a scikit-learn pipeline, where there is nothing to fit."""
        return self.encode(x)

    def fit(self, x: Any = None, y: Any = None) -> FeatureSet:
        """Nothing is fitted."""
        return self

    @property
    def directions(self) -> Floats:
        """(m, d) what each feature writes for an activation of 1, in the units of the output.

        Where the layer norms what it writes: for an activation of 1 times the norm's scale at the token.
        """
        own = self._rows()
        return own if self.gain is None else own * self.gain

    def _rows(self) -> Floats:
        """(m, d) the same before a norm."""
        return self.W_dec if self.scale is None else self.W_dec * self.scale[:, None]

    def top(self, k: int) -> FeatureSet:
        """The same features, of which the k largest activations of each token are kept."""
        return replace(self, name=f"{self.name}, top {k}", k=k)


def normalised(features: FeatureSet) -> FeatureSet:
    """The same features with values of length 1, their lengths put back when they are decoded (equations 4 and 5)."""
    lengths = features.lengths
    unit = np.divide(features._rows(), lengths[:, None], out=np.zeros_like(features.W_dec), where=lengths[:, None] > 0)
    return replace(features, name=f"{features.name}, normalised", W_dec=unit, scale=lengths.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Weights:
    """A feed-forward layer as arrays, float32.

    Parameters
    ----------
    keys, values : (d, m) and (m, d)
    key_bias, gates, gate_bias, value_bias : (m,), (d, m), (m,), (d,), or None
    activation : function, or "relu", "silu", "identity"
    norm : function of what is written before it is added; None for none
    gain : (d,) gain of the norm
    """

    keys: Floats
    values: Floats
    key_bias: Floats | None = None
    gates: Floats | None = None
    gate_bias: Floats | None = None
    value_bias: Floats | None = None
    activation: Function | str = "relu"
    norm: Function | None = None
    gain: Floats | None = None

    def activations(self, x: Floats) -> Floats:
        """(tokens, d) -> (tokens, m), equation 2."""
        act = FUNCTIONS[self.activation] if isinstance(self.activation, str) else self.activation
        inner = x @ self.keys + (0 if self.key_bias is None else self.key_bias)
        if self.gates is None:
            return act(inner)
        return act(x @ self.gates + (0 if self.gate_bias is None else self.gate_bias)) * inner

    def random(self, rng: np.random.Generator, *, deviation: float) -> Weights:
        """A layer of the same shape as it would be before training: normal weights, biases 0.

        Parameters
        ----------
        deviation : standard deviation of a weight, the model's own ``initializer_range``
        """

        def drawn(like: Floats | None) -> Floats | None:
            if like is None:
                return None
            return (rng.standard_normal(like.shape, dtype=np.float32) * np.float32(deviation)).astype(np.float32)

        keys, gates, values = drawn(self.keys), drawn(self.gates), drawn(self.values)
        assert keys is not None and values is not None
        return replace(
            self, keys=keys, gates=gates, values=values, key_bias=None, gate_bias=None, value_bias=None, norm=None,
            gain=None,
        )  # fmt: skip


def memory_features(
    weights: Weights,
    *,
    variant: Variant = "full",
    k: int = 10,
    normalise: bool = False,
    select: Select = "abs",
    name: str = "",
    role: Role = "ours",
    encoder: Function | None = None,
) -> FeatureSet:
    """A layer's memories as features.

    Parameters
    ----------
    weights : of the layer
    variant : "full" keeps every activation, "topk" the k largest of each token
    k : 1 to m
    normalise : values of length 1, their lengths put back when decoding; what is rebuilt is the same
    select : "abs" - by |a|, as in appendix A.3 (the text of the paper says "largest", which for gated layers is
        another set); "contribution" - by |a| times the length of the value
    encoder : the model's own, where it is at hand

    Raises
    ------
    BadInput : k is not from 1 to m
    """
    title = name or ("memories" if variant == "full" else f"memories, top {k}")
    made = FeatureSet(
        name=title,
        encoder=encoder or weights.activations,
        W_dec=weights.values,
        b_dec=weights.value_bias,
        norm=weights.norm,
        gain=weights.gain,
        role=role,
        k=k if variant == "topk" else None,
        select=select,
    )
    return normalised(made) if normalise else made


def random_features(
    weights: Weights, rng: np.random.Generator, *, deviation: float, k: int | None = None
) -> FeatureSet:
    """The control: the same layer with random weights, reading the same input and rebuilding its own output."""
    drawn = weights.random(rng, deviation=deviation)
    made = memory_features(
        drawn,
        variant="full" if k is None else "topk",
        k=k or 1,
        name="random memories" + ("" if k is None else f", top {k}"),
        role="control",
    )
    return replace(made, target=lambda x: drawn.activations(x) @ drawn.values)
