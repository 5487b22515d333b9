"""Feed-forward layers as key-value memories (Geva et al. 2021): their weights, and what they hold while a model runs.

One layer computes ``activations(x) = act(x K + b) `` (or ``act(x G + c) * (x K + b)`` where it is gated) and writes
``activations @ V + b_V``. Column i of K is a key, row i of V a value. Two other parts have the same form:

- A mixture of experts: the keys and values of all experts side by side, each activation times the share that the
  router gives its expert, 0 where the token does not go there.
- The heads of an attention layer: key and value are the columns and rows of a head's value and output projection, the
  activation is the identity, and what is read is the stream as the head's attention mixes it.

:func:`record` hands over every layer's activations while they are there, so that one forward pass serves all layers
and nothing has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from answerable.errors import BadInput
from answerable.subjects.language_model import parts
from answerable.subjects.language_model.loading import LanguageModel

Of = Literal["feed_forward", "heads"]


@dataclass(frozen=True, eq=False)
class Memory:
    """Weights of one layer's memories; d is the width of the stream, m the number of memories.

    Parameters
    ----------
    keys : (d, m); for heads (H, d, width), m = H * width
    key_bias : (m,), or None
    gates, gate_bias : the same for the gate, None where there is none
    values : (m, d)
    value_bias : (d,), or None
    activation : the function, element by element; None for the identity
    norm : module that norms what is written before it is added to the stream; None where there is none
    joined : (d, 2 m), gates and keys in one matrix, where the model multiplies by both at once
    shares : from what is read to (tokens, m), what each activation is multiplied by; None where that is 1
    """

    keys: Any
    values: Any
    key_bias: Any = None
    gates: Any = None
    gate_bias: Any = None
    value_bias: Any = None
    activation: Callable[[Any], Any] | None = None
    norm: Any = None
    joined: Any = None
    shares: Callable[[Any], Any] | None = None

    @property
    def count(self) -> int:
        """How many memories there are."""
        return int(self.values.shape[0])

    def activations(self, read: Any) -> Any:
        """Activations for what is read.

        Parameters
        ----------
        read : (tokens, d); for heads (tokens, H, d), the stream as each head mixes it

        Returns
        -------
        (tokens, m)
        """
        import torch

        if self.keys.ndim == 3:
            return torch.einsum("thd,hdw->thw", read, self.keys).flatten(1) + self.key_bias
        if self.joined is not None:  # as the model does it, to the bit
            gate, inner = (read @ self.joined).chunk(2, dim=1)
        else:
            inner = _affine(read, self.keys, self.key_bias)
            gate = None if self.gates is None else _affine(read, self.gates, self.gate_bias)
        if gate is not None:
            inner = (gate if self.activation is None else self.activation(gate)) * inner
        elif self.activation is not None:
            inner = self.activation(inner)
        return inner if self.shares is None else inner * self.shares(read)

    def written(self, activations: Any) -> Any:
        """What is added to the stream: (tokens, m) -> (tokens, d)."""
        out = _affine(activations, self.values, self.value_bias)
        return out if self.norm is None else self.norm(out)


class Seen(NamedTuple):
    """One layer's memories of one batch, tokens of all its rows one after the other.

    read : (tokens, d) what the layer reads, after its norm; None for heads
    activations : (tokens, m)
    written : (tokens, d) what is added to the stream, before a norm of what comes out
    """

    read: Any
    activations: Any
    written: Any


def memory(lm: LanguageModel, layer: int, *, of: Of = "feed_forward") -> Memory:
    """The memories of one layer, as views of the model's own weights where its layout allows it.

    Raises
    ------
    BadInput : no such layer, or none of its parts has this form
    """
    parts.layer_at(lm, layer)
    if of == "heads":
        return _heads(lm, layer)
    if parts.find_part(lm, "router", layer) is not None:
        return _experts(lm, layer)
    keys, key_bias, gates, gate_bias = _read_weights(lm, layer)
    values, value_bias = matrix(parts.part(lm, "down", layer))
    return Memory(
        keys=keys,
        key_bias=key_bias,
        gates=gates,
        gate_bias=gate_bias,
        values=values,
        value_bias=value_bias,
        activation=_function(lm, layer),
        norm=parts.find_part(lm, "feed_forward_out_norm", layer),
        joined=None if lm.family.fused_gate_up is None else matrix(parts.part(lm, "up", layer))[0],
    )


def matrix(module: Any) -> tuple[Any, Any]:
    """Weight of a linear module as (inputs, outputs), and its bias or None."""
    weight = module.weight.detach()
    bias = None if module.bias is None else module.bias.detach()
    # transformers' own Conv1D keeps (inputs, outputs) already
    return (weight if type(module).__name__ == "Conv1D" else weight.T), bias


def record(
    lm: LanguageModel,
    ids: Any,
    visit: Callable[[int, Seen], None],
    *,
    layers: Sequence[int] | None = None,
    mask: Any = None,
    of: Of = "feed_forward",
) -> None:
    """Run the model once over a batch and hand over each layer's memories as soon as they are there.

    What is handed over is the model's own tensor and is gone after the call: copy what is to be kept. The pass stops
    after the last of the layers.

    Parameters
    ----------
    ids : (rows, tokens) token ids
    visit : called with the number of a layer, from 0, and what is there
    layers : numbers from 0; all by default
    mask : (rows, tokens) 1 for a token and 0 for padding, None where nothing is padded

    Raises
    ------
    BadInput : there is no such layer, or it has no memories
    """
    import torch

    chosen = list(range(parts.layer_count(lm))) if layers is None else sorted(set(layers))
    device = parts.word_table(lm.model).weight.device
    batch = torch.as_tensor(ids, device=device, dtype=torch.long)
    padding = None if mask is None else torch.as_tensor(mask, device=device)
    with ExitStack() as hooks, torch.no_grad(), _stopping():
        for layer in chosen:
            _watch(lm, layer, visit, of, hooks)
        hooks.callback(parts.layer_at(lm, chosen[-1]).register_forward_hook(_stop).remove)
        parts.backbone(lm)(input_ids=batch, attention_mask=padding)


class _Stop(Exception):
    """The last layer that is wanted has run."""


def _stop(module: Any, args: Any, output: Any) -> None:
    raise _Stop


@contextmanager
def _stopping() -> Iterator[None]:
    with suppress(_Stop):
        yield


def _watch(lm: LanguageModel, layer: int, visit: Callable[[int, Seen], None], of: Of, hooks: ExitStack) -> None:
    """Hooks that keep what is read and held until it has been written, and then hand all over."""
    held: dict[str, Any] = {}
    mixed = of == "feed_forward" and parts.find_part(lm, "router", layer) is not None
    weights = memory(lm, layer) if mixed else None
    last = parts.part(lm, "output" if of == "heads" else "feed_forward" if mixed else "down", layer)

    def reads(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        held["read"] = _rows(args[0] if args else next(iter(kwargs.values())))

    def holds(module: Any, args: tuple[Any, ...]) -> None:
        held["activations"] = _rows(args[0])

    def writes(module: Any, args: Any, output: Any) -> None:
        written = _rows(output[0] if isinstance(output, tuple) else output)
        read = held.pop("read", None)
        activations = held.pop("activations") if weights is None else weights.activations(read)
        visit(layer, Seen(read, activations, written))

    if of == "feed_forward":
        first = parts.find_part(lm, "feed_forward", layer) or parts.part(lm, "up", layer)
        hooks.callback(first.register_forward_pre_hook(reads, with_kwargs=True).remove)
    if not mixed:
        hooks.callback(last.register_forward_pre_hook(holds).remove)
    hooks.callback(last.register_forward_hook(writes).remove)


def _rows(tensor: Any) -> Any:
    return tensor.detach().reshape(-1, tensor.shape[-1])


def _affine(read: Any, weight: Any, bias: Any) -> Any:
    import torch

    return read @ weight if bias is None else torch.addmm(bias, read, weight)


def _read_weights(lm: LanguageModel, layer: int) -> tuple[Any, Any, Any, Any]:
    """Keys, their bias, gates, their bias."""
    weight, bias = matrix(parts.part(lm, "up", layer))
    if lm.family.fused_gate_up is not None:
        gates, keys = weight.chunk(2, dim=1)
        return keys, None, gates, None  # no family that joins them has a bias
    gate = parts.find_part(lm, "gate", layer)
    return (weight, bias, *((None, None) if gate is None else matrix(gate)))


def _function(lm: LanguageModel, layer: int) -> Any:
    if not lm.family.function:
        return _attribute(lm, layer, lm.family.activation)
    from transformers.activations import ACT2FN

    return ACT2FN[lm.family.function]


def _attribute(lm: LanguageModel, layer: int, path: str) -> Any:
    module = parts.layer_at(lm, layer)
    for name in path.split("."):
        module = getattr(module, name, None)
    if module is None:
        raise BadInput(
            f"the {lm.family.name} family does not say where its activation function is",
            where=lm.name,
            mend="docs/subjects/language-model.md shows how a map is completed",
        )
    return module


def _experts(lm: LanguageModel, layer: int) -> Memory:
    """All experts side by side, the shared one last."""
    import torch

    experts, router = parts.part(lm, "experts", layer), parts.part(lm, "router", layer)
    gates, keys = experts.gate_up_proj.detach().chunk(2, dim=1)  # (E, width, d) each
    width = keys.shape[1]
    shared = parts.find_part(lm, "shared_expert", layer)
    shared_gate = parts.find_part(lm, "shared_gate", layer)

    def together(weight: Any) -> Any:
        return weight.flatten(0, 1).T

    keys, gates = together(keys), together(gates)
    values = experts.down_proj.detach().transpose(1, 2).flatten(0, 1)
    if shared is not None:
        own = [matrix(getattr(shared, name))[0] for name in ("up_proj", "gate_proj", "down_proj")]
        keys, gates = torch.cat([keys, own[0]], 1), torch.cat([gates, own[1]], 1)
        values = torch.cat([values, own[2]])

    def shares(read: Any) -> Any:
        with torch.no_grad():
            _, share, chosen = router(read)
            by_expert = read.new_zeros(len(read), experts.down_proj.shape[0]).scatter(1, chosen, share.to(read.dtype))
            spread = by_expert.repeat_interleave(width, dim=1)
            if shared is None:
                return spread
            gate = torch.sigmoid(shared_gate(read)) if shared_gate is not None else read.new_ones(len(read), 1)
            return torch.cat([spread, gate.expand(-1, values.shape[0] - spread.shape[1])], 1)

    return Memory(
        keys=keys,
        gates=gates,
        values=values,
        activation=_attribute(lm, layer, lm.family.expert_activation),
        norm=parts.find_part(lm, "feed_forward_out_norm", layer),
        shares=shares,
    )


def _heads(lm: LanguageModel, layer: int) -> Memory:
    """Value and output projection of each head; heads that share keys and values repeat them."""
    weights = parts.head_weights(lm, layer)
    n_heads, repeats = len(weights.query), len(weights.query) // len(weights.value)
    return Memory(
        keys=weights.value.detach().repeat_interleave(repeats, 0),
        key_bias=weights.value_bias.detach().repeat_interleave(repeats, 0).reshape(-1),
        values=weights.output.detach().reshape(n_heads * weights.output.shape[1], -1),
        value_bias=weights.output_bias.detach(),
        norm=parts.find_part(lm, "attention_out_norm", layer),
    )
