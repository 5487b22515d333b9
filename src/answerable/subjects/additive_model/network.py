"""Neural additive models: one univariate network a feature, as the lines that it exactly is.

A network of linear layers and ReLU of one input is piecewise linear. A sorted list of breakpoints is pushed through the
layers: between two of them every unit is linear, so where a unit changes its sign the crossing is inserted, then ReLU
is applied. ExU units, ``clip((x - b) exp(w), 0, 1)``, bend at two values each and go the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .form import MOST_PIECES, AdditiveModel, Shape, Task

Floats = npt.NDArray[np.float64]
SMOOTH = ("Tanh", "Sigmoid", "GELU", "SiLU", "ELU", "CELU", "SELU", "Softplus", "Mish", "LogSigmoid", "Softsign")


class Layer(NamedTuple):
    """One step: ``weight @ z + bias``, or clipping each unit to ``[0, ceiling]``."""

    weight: Floats | None = None
    bias: Floats | None = None
    ceiling: float = np.inf


def from_nam(
    networks: Any,
    *,
    domain: Mapping[str, tuple[float, float]],
    intercept: float = 0.0,
    task: Task = "binary",
    most_pieces: int = MOST_PIECES,
) -> AdditiveModel:
    """A neural additive model as an additive model.

    Parameters
    ----------
    networks : for each feature's name its univariate ``torch.nn.Module``: linear layers, ReLU and ExU in sequence; or a
        module with such a mapping as ``feature_nns``
    domain : ``(low, high)`` of each feature, finite
    intercept : added to the sum
    task : binary (the score is log odds) or regression
    most_pieces : pieces of one feature at which the exact form is given up

    Raises
    ------
    BadInput : a layer that is not known, a network in train mode, too many pieces, no finite domain
    """
    networks = getattr(networks, "feature_nns", networks)
    shapes = []
    for name, network in networks.items():
        ends = domain.get(name)
        if ends is None or not np.isfinite(ends).all() or ends[0] >= ends[1]:
            raise BadInput(f"its domain is {ends}", where=f"feature {name}", mend="give two finite numbers, low < high")
        shapes.append(_shape(str(name), layers_of(network, str(name)), ends, most_pieces))

    def original(X: Any) -> Any:
        import torch

        columns = (
            np.column_stack([np.asarray(X[name], np.float64) for name in networks]) if hasattr(X, "columns") else X
        )
        rows = torch.as_tensor(np.asarray(columns, np.float64))
        with torch.no_grad():
            parts = [net.double()(rows[:, [j]]).reshape(-1) for j, net in enumerate(networks.values())]
        return torch.stack(parts).sum(0).numpy() + intercept

    return AdditiveModel(
        tuple(shapes), np.array([intercept]), task=task, classes=("0", "1") if task == "binary" else (),
        logit=task == "binary", source="neural additive model", original=original,
    )  # fmt: skip


def from_tensors(tensors: Mapping[str, Floats], where: str = "tensors") -> AdditiveModel:
    """A binary neural additive model from the tensors of a file.

    Parameters
    ----------
    tensors : for each feature ``NAME.domain`` (low, high), and for its layers K = 0, 1, ... either ``NAME.K.weight``
        (outputs, inputs) and ``NAME.K.bias``, with a ReLU after each but the last, or ``NAME.K.exu_weight`` and
        ``NAME.K.exu_bias``; and ``intercept``
    where : the file, for errors

    Raises
    ------
    BadInput : a tensor that is lacking or of a shape that does not fit
    """
    names = [key.removesuffix(".domain") for key in tensors if key.endswith(".domain")]
    if not names:
        raise BadInput("no tensor NAME.domain", where=where, mend="give each feature its domain as two numbers")
    shapes = []
    for name in names:
        ends = np.asarray(tensors[f"{name}.domain"], np.float64).reshape(-1)
        if len(ends) != 2 or not np.isfinite(ends).all() or ends[0] >= ends[1]:
            mend = "give two finite numbers, low < high"
            raise BadInput("its domain is no interval", where=f"{where}, feature {name}", mend=mend)
        layers = _stored_layers(name, tensors, where)
        shapes.append(_shape(name, layers, (float(ends[0]), float(ends[1])), MOST_PIECES))
    intercept = np.asarray(tensors.get("intercept", np.zeros(1)), np.float64).reshape(-1)[:1]
    return AdditiveModel(
        tuple(shapes), intercept, task="binary", classes=("0", "1"), logit=True, source="neural additive model"
    )


def _stored_layers(name: str, tensors: Mapping[str, Floats], where: str) -> list[Layer]:
    layers: list[Layer] = []
    number, n_inputs, after_line = 0, 1, False
    while any(f"{name}.{number}.{kind}" in tensors for kind in ("weight", "exu_weight")):
        exponential = f"{name}.{number}.exu_weight" in tensors
        kind = "exu_" if exponential else ""
        weight = np.asarray(tensors[f"{name}.{number}.{kind}weight"], np.float64)
        bias = np.asarray(tensors.get(f"{name}.{number}.{kind}bias", np.zeros(0)), np.float64).reshape(-1)
        weight = weight.reshape(-1, 1) if exponential else weight
        if weight.ndim != 2 or weight.shape[1] != n_inputs or len(bias) != len(weight):
            raise BadInput(
                f"a weight of shape {weight.shape} and {len(bias)} biases for {n_inputs} inputs",
                where=f"{where}, feature {name}, layer {number}", mend="save a bias for each row of the weight",
            )  # fmt: skip
        if after_line:
            layers.append(Layer(ceiling=np.inf))
        if exponential:
            slope = np.exp(weight)
            layers += [Layer(slope, -slope[:, 0] * bias), Layer(ceiling=1.0)]
        else:
            layers.append(Layer(weight, bias))
        number, n_inputs, after_line = number + 1, len(weight), not exponential
    if not layers:
        mend = f"save {name}.0.weight and {name}.0.bias"
        raise BadInput("it has no layer", where=f"{where}, feature {name}", mend=mend)
    return layers


def layers_of(network: Any, feature: str) -> list[Layer]:
    """The layers of a torch module, in the order they run.

    Raises
    ------
    BadInput : a layer that is not known or has no exact lines, dropout in train mode
    """
    found = []
    steps = list(network) if hasattr(network, "__iter__") else [network]
    for number, step in enumerate(steps, 1):
        kind = type(step).__name__
        where = f"feature {feature}, layer {number} ({kind})"
        if kind == "Linear":
            bias = np.zeros(step.out_features) if step.bias is None else _array(step.bias)
            found.append(Layer(_array(step.weight), bias))
        elif kind in ("ReLU", "ReLU6"):
            found.append(Layer(ceiling=6.0 if kind == "ReLU6" else np.inf))
        elif kind == "ExU":
            slope = np.exp(_array(step.weight).reshape(-1, 1))
            found += [Layer(slope, -slope[:, 0] * _array(step.bias).reshape(-1)), Layer(ceiling=1.0)]
        elif kind in ("Dropout", "Identity"):
            if kind == "Dropout" and step.training and step.p > 0:
                raise BadInput("the network is in train mode", where=where, mend="call eval() first")
        elif kind in SMOOTH:
            mend = "train it with ReLU or ExU, of which reasons can be proved"
            raise BadInput("it bends everywhere, so that the network is no list of lines", where=where, mend=mend)
        else:
            raise BadInput("it is no layer that is known", where=where, mend="use Linear, ReLU and ExU")
    return found


def _array(tensor: Any) -> Floats:
    return tensor.detach().double().cpu().numpy()


def _shape(name: str, layers: list[Layer], ends: tuple[float, float], most_pieces: int) -> Shape:
    points = np.array([float(ends[0]), float(ends[1])])
    units = points[None, :]
    for layer in layers:
        if layer.weight is not None:
            assert layer.bias is not None
            units = layer.weight @ units + layer.bias[:, None]
            continue
        for level in (0.0, layer.ceiling):
            if np.isfinite(level):
                points, units = _crossed(points, units, level)
        units = np.clip(units, 0.0, layer.ceiling)
        if len(points) > most_pieces:
            raise BadInput(
                f"it has {len(points) - 1:,} pieces, more than the cap of {most_pieces:,}", where=f"feature {name}",
                mend="narrow its domain, or raise the cap",
            )  # fmt: skip
    if len(units) != 1:
        raise BadInput(f"its network has {len(units)} outputs", where=f"feature {name}", mend="give one output each")
    return _lines(name, points, units[0])


def _crossed(points: Floats, units: Floats, level: float) -> tuple[Floats, Floats]:
    """Breakpoints with those added where a unit passes the level."""
    side = units - level
    unit, place = np.nonzero(side[:, :-1] * side[:, 1:] < 0)
    if not len(unit):
        return points, units
    left, right = side[unit, place], side[unit, place + 1]
    at = points[place] + (points[place + 1] - points[place]) * (left / (left - right))
    inside = (at > points[place]) & (at < points[place + 1])
    merged = np.unique(np.concatenate([points, at[inside]]))
    values = np.array([np.interp(merged, points, one) for one in units])
    # the crossing unit is at the level, not an ulp beside it
    values[unit[inside], np.searchsorted(merged, at[inside])] = level
    return merged, values


def _lines(name: str, points: Floats, values: Floats) -> Shape:
    slopes = np.diff(values) / np.diff(points)
    coefficients = np.column_stack([values[:-1], slopes])
    return Shape(name, points, coefficients, points[:-1].copy(), low=points[0], high=points[-1])
