"""Sparse autoencoders and transcoders: a folder as SAELens saves it, or an ``.npz`` file as Gemma Scope has it.

Both are ``activations = act((x - b_in) W_enc + b_enc)`` and ``activations W_dec + b_dec``; an autoencoder rebuilds
what it reads, a transcoder what comes out of the layer whose input it reads. Whatever was trained on activations
multiplied by a number is brought back to the model's own units by folding that number into encoder, decoder and decoder
bias.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput, CannotRead
from answerable.subjects import safetensors_header
from answerable.subjects.address import locate
from answerable.subjects.arrays import read_arrays
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

Array = npt.NDArray[np.float32]
Kind = Literal["relu", "jumprelu", "topk", "gated"]
CONFIG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
WHAT = "a folder with cfg.json and sae_weights.safetensors, or a params.npz file"
MOST_CONFIG_BYTES = 4_000_000
ARCHITECTURES: dict[str, Kind] = {
    "standard": "relu",
    "transcoder": "relu",
    "jumprelu": "jumprelu",
    "jumprelu_transcoder": "jumprelu",
    "topk": "topk",
    "gated": "gated",
}
ADDED = ("W_skip",)  # what other kinds add to what is written here: without it the numbers would be wrong
FACTORS = ("finetuning_scaling_factor", "scaling_factor")  # what activations are multiplied by once more, where tuned
_BEFORE_GAIN = ".ln2.hook_normalized"  # TransformerLens takes it before the norm's gain and shift
_OF_INPUT = re.compile(r"blocks\.\d+\.(ln2\.hook_normalized|mlp\.hook_in)\Z")
_OF_OUTPUT = re.compile(r"blocks\.\d+\.(hook_mlp_out|mlp\.hook_out)\Z")


@dataclass(frozen=True, eq=False)
class SparseAutoencoder:
    """Weights in the model's own units, float32; d_in numbers are read, d_out written, by m features.

    Parameters
    ----------
    name : what to call it
    kind : activation: "relu"; "jumprelu" (z where z > threshold); "topk" (the k largest, and those above 0); "gated"
    W_enc, b_enc : (d_in, m) and (m,)
    W_dec, b_dec : (m, d_out) and (d_out,)
    b_in : (d_in,) what is taken off first, or None
    threshold : (m,) of "jumprelu", or None
    k : of "topk", else 0
    gate : of "gated": (gain, gate_bias), each (m,): a feature is on where ``z + gate_bias > 0``, and then is
        ``relu(z * gain + b_enc)``, z being the product alone; else None
    hook, hook_out : where it reads and, for a transcoder, writes; empty where the files do not say
    is_transcoder : whether it rebuilds something else than it reads
    notes : what was done to the weights, in sentences
    """

    name: str
    kind: Kind
    W_enc: Array
    b_enc: Array
    W_dec: Array
    b_dec: Array
    b_in: Array | None = None
    threshold: Array | None = None
    k: int = 0
    gate: tuple[Array, Array] | None = None
    hook: str = ""
    hook_out: str = ""
    is_transcoder: bool = False
    notes: tuple[str, ...] = ()

    @property
    def layer(self) -> int | None:
        """Number of the layer it was trained on, from 0; None where the files do not say."""
        found = re.match(r"blocks\.(\d+)\.", self.hook_out or self.hook)
        return int(found.group(1)) if found else None

    @property
    def reads_before_gain(self) -> bool:
        """Whether what it reads is the normed stream before the norm's own gain and shift."""
        return self.hook.endswith(_BEFORE_GAIN)

    def behind_norm(self, gain: Array, shift: Array) -> SparseAutoencoder:
        """The same features for what a norm gives, ``x = n * gain + shift``, where these read n.

        Raises
        ------
        BadInput : a gain of 0, behind which n cannot be told
        """
        if not gain.all():
            what = f"it reads {self.hook}, of which a gain of 0 leaves nothing at {np.flatnonzero(gain == 0)[0]}"
            raise BadInput(what, where=self.name, mend="choose one that reads mlp.hook_in")
        return replace(
            self,
            W_enc=np.asarray(self.W_enc / gain[:, None], np.float32),
            b_in=np.asarray(shift if self.b_in is None else shift + gain * self.b_in, np.float32),
        )

    def encode(self, x: npt.NDArray[Any]) -> Array:
        """Activations (tokens, m) of what is read (tokens, d_in)."""
        given = np.asarray(x, np.float32)
        z = (given if self.b_in is None else given - self.b_in) @ self.W_enc
        if self.gate is not None:
            gain, gate_bias = self.gate
            return np.asarray(np.maximum(z * gain + self.b_enc, 0) * (z + gate_bias > 0), np.float32)
        z += self.b_enc
        if self.threshold is not None:
            return np.asarray(np.where(z > self.threshold, np.maximum(z, 0), 0), np.float32)
        if self.kind == "topk" and self.k < z.shape[1]:
            kept = np.argpartition(-z, self.k - 1, axis=1)[:, : self.k]
            few = np.zeros_like(z)
            np.put_along_axis(few, kept, np.take_along_axis(z, kept, axis=1), axis=1)
            z = few
        return np.maximum(z, 0)

    def decode(self, activations: npt.NDArray[Any]) -> Array:
        """What is written (tokens, d_out) for activations (tokens, m)."""
        return np.asarray(activations @ self.W_dec + self.b_dec, np.float32)

    def fits(self, layer: int, width: int) -> None:
        """Refuse it where it is not of a feed-forward layer's input or output, of that layer and that width.

        Raises
        ------
        BadInput : names what it is of and what was asked
        """
        wrong = [size for size in (self.W_enc.shape[0], self.W_dec.shape[1]) if size != width]
        if wrong:
            raise BadInput(
                f"it reads {self.W_enc.shape[0]} and writes {self.W_dec.shape[1]} numbers, the layer has {width}",
                where=self.name,
                mend="choose one that was trained on this model",
            )
        if self.layer is not None and self.layer != layer:
            raise BadInput(
                f"it was trained on layer {self.layer} ({self.hook_out or self.hook}), layer {layer} is asked about",
                where=self.name,
                mend=f"set layer = {self.layer}, or choose another",
            )
        wanted, what = (_OF_INPUT, "input") if self.is_transcoder else (_OF_OUTPUT, "output")
        if self.hook and not wanted.match(self.hook):
            raise BadInput(
                f"it reads {self.hook}, which is not the feed-forward layer's {what}",
                where=self.name,
                mend="choose one of the feed-forward layer (mlp)",
            )
        if self.is_transcoder and self.hook_out and not _OF_OUTPUT.match(self.hook_out):
            raise BadInput(
                f"it writes {self.hook_out}, which is not the feed-forward layer's output",
                where=self.name,
                mend="choose a transcoder of the feed-forward layer (mlp)",
            )


def read_sparse_autoencoder(
    subject: Any, *, scale: float | None = None, transcoder: bool | None = None
) -> SparseAutoencoder:
    """An autoencoder or transcoder from its files.

    Parameters
    ----------
    subject : path of a folder with ``cfg.json`` and ``sae_weights.safetensors`` (SAELens), of an ``.npz`` file with
        W_enc, W_dec, b_enc, b_dec and, for a JumpReLU, threshold (Gemma Scope); arrays of these names in memory; or a
        ``SparseAutoencoder``
    scale : the number that activations were multiplied by in training, where they were
    transcoder : whether it is one; told by ``cfg.json`` where there is one, else an autoencoder

    Raises
    ------
    CannotRead, Refused : a file that is missing or damaged, or runs code when it is read
    BadInput : an array that is missing or of another shape, an architecture that is not known, or a scale that is
        needed and not given
    """
    if isinstance(subject, SparseAutoencoder):
        return subject
    if not isinstance(subject, (str, Path)):
        return _from_arrays(read_arrays(subject), "arrays", {}, scale, transcoder)
    path = locate(subject, what=WHAT)
    if path.is_dir():
        config = _config(path / CONFIG)
        return _from_arrays(_tensors(path / WEIGHTS), str(path), config, scale, transcoder)
    refuse_pickle(path, kind_of(path))
    if kind_of(path) != "npz":
        raise CannotRead(f"a file of kind {kind_of(path)!r} is no autoencoder", where=str(path), mend=f"give {WHAT}")
    return _from_arrays(read_arrays(path), str(path), {}, scale, transcoder)


def digest(value: object) -> str | None:
    """SHA-256 over the bytes of its files, or over its arrays and words."""
    if isinstance(value, (str, Path)):
        path = locate(value, what=WHAT)
        if not path.is_dir():
            return file_digest(path)
        parts = [file_digest(path / name) for name in (CONFIG, WEIGHTS) if (path / name).is_file()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    found = read_sparse_autoencoder(value)
    described = [
        [name, hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()]
        if isinstance(part, np.ndarray)
        else [name, str(part)]
        for name, part in sorted(vars(found).items())
        if name != "gate"
    ]
    gates = [hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in found.gate or ()]
    return hashlib.sha256(json.dumps([described, gates]).encode()).hexdigest()


def _config(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_CONFIG_BYTES:
            raise CannotRead(f"longer than {MOST_CONFIG_BYTES} bytes", where=str(path), mend="fetch the file again")
        found = json.loads(path.read_bytes())
    except OSError as failure:
        raise CannotRead(failure.strerror or str(failure), where=str(path), mend=f"give {WHAT}") from None
    except (ValueError, RecursionError):
        raise CannotRead("no valid JSON", where=str(path), mend="fetch the file again") from None
    if not isinstance(found, dict):
        raise CannotRead("no JSON object", where=str(path), mend="fetch the file again")
    return found


def _tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The floating-point tensors of a safetensors file, as float32."""
    if not path.is_file():
        raise CannotRead("it is missing", where=str(path), mend=f"give {WHAT}")
    refuse_pickle(path, kind_of(path))
    header = safetensors_header.read_header(path)
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, tensor in header.items():
        raw = content[start + tensor.begin : start + tensor.end]
        if tensor.dtype == "BF16":
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        elif tensor.dtype in ("F16", "F32", "F64"):
            values = np.frombuffer(raw, f"<f{int(tensor.dtype[1:]) // 8}")
        else:
            continue
        found[name] = values.reshape(tensor.shape)
    return found


def _from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
    where: str,
    config: Mapping[str, Any],
    scale: float | None,
    transcoder: bool | None,
) -> SparseAutoencoder:
    def array(name: str, *shape: int) -> Array:
        if name not in arrays:
            known = ", ".join(sorted(map(str, arrays))[:8]) or "nothing"
            raise BadInput(f"there is no {name}, only {known}", where=where, mend=f"give {WHAT}")
        given = arrays[name]
        if given.dtype.kind not in "fiu" or (shape and given.shape != shape) or (not shape and given.ndim != 2):
            expected = " x ".join(map(str, shape)) if shape else "a matrix"
            raise BadInput(
                f"{name} is {given.dtype} of shape {given.shape}, not {expected}",
                where=where,
                mend="fetch the file again",
            )
        with np.errstate(over="ignore"):  # a number beyond float32 is told as one that is not finite
            wide = np.array(given, np.float32)  # a copy: it may be folded
        if not np.isfinite(wide).all():
            raise BadInput(f"{name} holds a number that is not finite", where=where, mend="fetch the file again")
        return wide

    more = next((name for name in ADDED if name in arrays), None)
    if more is not None:
        raise BadInput(f"an autoencoder with {more} is not read", where=where, mend=f"give {WHAT} without it")
    architecture = str(config.get("architecture", "jumprelu" if "threshold" in arrays else "standard"))
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise BadInput(f"the architecture {architecture[:40]!r} is not read", where=where, mend=f"one of {known}")
    kind = ARCHITECTURES[architecture]
    function = config.get("activation_fn_str") or config.get("activation_fn")
    if kind == "relu" and isinstance(function, str) and function != "relu":
        if function != "topk":
            raise BadInput(f"the activation {function[:40]!r} is not read", where=where, mend="relu, topk or jumprelu")
        kind = "topk"
    W_enc, W_dec = array("W_enc"), array("W_dec")
    d_in, m = W_enc.shape
    d_out = W_dec.shape[1]
    if not (d_in and m and d_out):
        raise BadInput(f"it has {m} features of {d_in} numbers", where=where, mend=f"give {WHAT}")
    W_dec = array("W_dec", m, d_out)
    for name in FACTORS:
        if name in arrays:
            W_dec *= array(name, m)[:, None]
    b_dec = array("b_dec", d_out)
    is_transcoder = "transcoder" in architecture or bool(transcoder)
    if not is_transcoder and d_in != d_out:
        raise BadInput(f"it reads {d_in} numbers and writes {d_out}", where=where, mend="say that it is a transcoder")
    for name, size in (("d_in", d_in), ("d_sae", m)):
        if isinstance(config.get(name), int) and config[name] != size:
            raise BadInput(f"{name} is {config[name]} in {CONFIG}, {size} in its weights", where=where)
    gate = None
    if kind == "gated":
        gate = (np.exp(array("r_mag", m)), array("b_gate", m))
        b_enc = array("b_mag", m)
    else:
        b_enc = array("b_enc", m)
    # SAELens takes the decoder's bias off by default, but a transcoder's has another width.
    takes_off = bool(config.get("apply_b_dec_to_input", bool(config))) and not is_transcoder
    hooks = {**config, **(config["metadata"] if isinstance(config.get("metadata"), dict) else {})}
    made = SparseAutoencoder(
        name=where,
        kind=kind,
        W_enc=W_enc,
        b_enc=b_enc,
        W_dec=W_dec,
        b_dec=b_dec,
        b_in=b_dec.copy() if takes_off else None,
        threshold=array("threshold", m) if kind == "jumprelu" else None,
        k=_k(config, m, where) if kind == "topk" else 0,
        gate=gate,
        hook=str(hooks.get("hook_name") or hooks.get("hook_point") or ""),
        hook_out=str(hooks.get("hook_name_out") or ""),
        is_transcoder=is_transcoder,
    )
    if config.get("rescale_acts_by_decoder_norm"):
        made = _by_decoder_norm(made)
    return _folded(made, str(config.get("normalize_activations") or "none"), scale)


def _k(config: Mapping[str, Any], m: int, where: str) -> int:
    options = config.get("activation_fn_kwargs")
    k = config.get("k", options.get("k") if isinstance(options, dict) else None)
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= m:
        raise BadInput(f"k is {str(k)[:20]!r}, there are {m} features", where=where, mend=f"set k in {CONFIG}")
    return k


def _by_decoder_norm(made: SparseAutoencoder) -> SparseAutoencoder:
    """Features ranked by activation times the length of what they write: the length goes into the encoder."""
    lengths = np.linalg.norm(made.W_dec, axis=1)
    lengths[lengths == 0] = 1
    return replace(made, W_enc=made.W_enc * lengths, b_enc=made.b_enc * lengths, W_dec=made.W_dec / lengths[:, None])


def _folded(made: SparseAutoencoder, normalised: str, scale: float | None) -> SparseAutoencoder:
    """Bring weights that were trained on ``x * scale`` back to x."""
    if normalised in ("layer_norm", "constant_norm_rescale"):
        raise BadInput(
            f"it was trained on activations normed token by token ({normalised}), which no one number undoes",
            where=made.name,
            mend="choose one trained on activations as they are, or times a number",
        )
    if scale is None:
        if normalised in ("none", "None"):
            return made
        raise BadInput(
            f"it was trained on activations times a number ({normalised}) that is not in its files",
            where=made.name,
            mend="give that number as its scale: sqrt(d_in) / mean length of an activation",
        )
    if not (np.isfinite(scale) and scale > 0):
        raise BadInput(f"the scale is {scale}", where=made.name, mend="give a number above 0")
    # x is read as x * scale, so that what is written comes out scale times too large. Where the decoder's bias is
    # taken off first, it is taken off in the model's units and multiplied with the rest.
    return replace(
        made,
        W_enc=made.W_enc * np.float32(scale),
        W_dec=made.W_dec / np.float32(scale),
        b_dec=made.b_dec / np.float32(scale),
        b_in=None if made.b_in is None else made.b_in / np.float32(scale),
        notes=(*made.notes, f"Its activations were multiplied by {scale:g} in training, which is folded in."),
    )
