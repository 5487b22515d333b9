"""Neural additive models: one univariate network a feature, as the lines that it exactly is.

A network of linear layers and ReLU of one input is piecewise linear. A sorted list of breakpoints is pushed through the
layers: between two of them every unit is linear, so where a unit changes its sign the crossing is inserted, then ReLU
is applied. ExU units, ``clip((x - b) exp(w), 0, 1)``, bend at two values each and go the same way.

Where that gives too many lines, and for tanh and sigmoid, the network is enclosed: lines over cells that are halved
where its slope may vary most, and a proved bound of how far it can be from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .form import LARGEST, AdditiveModel, Task
from .parts import MOST_PIECES, Shape

Floats = npt.NDArray[np.float64]
SMOOTH = {"Tanh": "tanh", "Sigmoid": "sigmoid"}
FIRST_CELLS, MOST_CELLS, HALVINGS = 1024, 16_384, 40
EPSILON = float(np.finfo(np.float64).eps)


class Layer(NamedTuple):
    """One step: ``weight @ z + bias``, or clipping each unit to ``[0, ceiling]``, or a smooth function of each unit."""

    weight: Floats | None = None
    bias: Floats | None = None
    ceiling: float = np.inf
    smooth: str = ""


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
    networks : for each feature's name its univariate ``torch.nn.Module``: linear layers, ReLU, ExU, tanh and sigmoid in
        sequence; or a module with such a mapping as ``feature_nns``
    domain : ``(low, high)`` of each feature, finite
    intercept : added to the sum
    task : binary (the score is log odds) or regression
    most_pieces : pieces of one feature beyond which it is enclosed by lines and a bound

    Raises
    ------
    BadInput : a layer that is not known, a network in train mode, no finite domain
    """
    whole, networks = networks, getattr(networks, "feature_nns", networks)
    if not hasattr(networks, "items"):
        mend = "give {name: network}, or a module with such a mapping as feature_nns"
        raise BadInput(f"a {type(networks).__name__} names no feature", where="networks", mend=mend)
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
            # copies, so that the caller's own networks keep their precision
            if whole is not networks and callable(whole):  # a module of its own: what it adds up, it knows
                scores = deepcopy(whole).double()(rows)
                return (scores[0] if isinstance(scores, tuple) else scores).reshape(-1).numpy()
            parts = [deepcopy(net).double()(rows[:, [j]]).reshape(-1) for j, net in enumerate(networks.values())]
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
    shapes, read = [], {"intercept"}
    for name in names:
        ends = np.asarray(tensors[f"{name}.domain"], np.float64).reshape(-1)
        if len(ends) != 2 or not np.isfinite(ends).all() or ends[0] >= ends[1]:
            mend = "give two finite numbers, low < high"
            raise BadInput("its domain is no interval", where=f"{where}, feature {name}", mend=mend)
        layers, of_layers = _stored_layers(name, tensors, where)
        read |= {f"{name}.domain", *of_layers}
        shapes.append(_shape(name, layers, (float(ends[0]), float(ends[1])), MOST_PIECES))
    left = sorted(tensors.keys() - read)
    if left:
        mend = "number a feature's layers 0, 1, 2, ... without a gap; activations have no number"
        raise BadInput(f"the tensor {left[0][:80]!r} belongs to no layer", where=where, mend=mend)
    intercept = np.asarray(tensors.get("intercept", np.zeros(1)), np.float64).reshape(-1)
    if len(intercept) != 1:
        raise BadInput(f"it has {len(intercept)} numbers", where=f"{where}, intercept", mend="give one")
    return AdditiveModel(
        tuple(shapes), intercept, task="binary", classes=("0", "1"), logit=True, source="neural additive model"
    )


def _stored_layers(name: str, tensors: Mapping[str, Floats], where: str) -> tuple[list[Layer], list[str]]:
    """The layers of a feature, and the names of the tensors that they are made of."""
    layers: list[Layer] = []
    read: list[str] = []
    number, n_inputs, after_line = 0, 1, False
    while any(f"{name}.{number}.{kind}" in tensors for kind in ("weight", "exu_weight")):
        exponential = f"{name}.{number}.exu_weight" in tensors
        kind = "exu_" if exponential else ""
        read += [f"{name}.{number}.{kind}{part}" for part in ("weight", "bias")]
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
            layers += _exponential(weight, bias)
        else:
            layers.append(Layer(weight, bias))
        number, n_inputs, after_line = number + 1, len(weight), not exponential
    if not layers:
        mend = f"save {name}.0.weight and {name}.0.bias"
        raise BadInput("it has no layer", where=f"{where}, feature {name}", mend=mend)
    return layers, read


def layers_of(network: Any, feature: str) -> list[Layer]:
    """The layers of a torch module, in the order they run.

    Raises
    ------
    BadInput : a layer that is not known, dropout in train mode
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
            if not (hasattr(step, "weight") and hasattr(step, "bias")):
                raise BadInput("it has no weight and bias", where=where, mend="name its tensors weight and bias")
            found += _exponential(_array(step.weight).reshape(-1, 1), _array(step.bias).reshape(-1))
        elif kind in ("Dropout", "Identity"):
            if kind == "Dropout" and step.training and step.p > 0:
                raise BadInput("the network is in train mode", where=where, mend="call eval() first")
        elif kind in SMOOTH:
            found.append(Layer(smooth=SMOOTH[kind]))
        else:
            mend = "use Linear, ReLU, ReLU6, ExU, Tanh and Sigmoid"
            raise BadInput("it is no layer that is known", where=where, mend=mend)
    return found


def _exponential(weight: Floats, bias: Floats) -> list[Layer]:
    """ExU units: (n, 1) logarithms of slopes, (n,) where they start."""
    with np.errstate(over="ignore", invalid="ignore"):  # a slope that is not finite is refused by feature later
        slope = np.exp(weight)
        return [Layer(slope, -slope[:, 0] * bias), Layer(ceiling=1.0)]


def _array(tensor: Any) -> Floats:
    return tensor.detach().double().cpu().numpy()


def _shape(name: str, layers: list[Layer], ends: tuple[float, float], most_pieces: int) -> Shape:
    with np.errstate(over="ignore", invalid="ignore"):
        scale = _chord_errors(layers, np.asarray(ends, np.float64))[1]
    if not scale < LARGEST:
        what, mend = f"its units add up to {scale:.0e}, beyond {LARGEST:.0e}", "mend the fitted model"
        raise BadInput(what, where=f"feature {name}", mend=mend)
    exact = None if any(layer.smooth for layer in layers) else _lines_of(name, layers, ends, most_pieces)
    return exact or _enclosed(name, layers, ends, most_pieces)


def _lines_of(name: str, layers: list[Layer], ends: tuple[float, float], most_pieces: int) -> Shape | None:
    """The lines that a network is; None where they are too many."""
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
            return None
    return _lines(name, points, _only(name, units))


def _only(name: str, units: Floats) -> Floats:
    if len(units) != 1:
        raise BadInput(f"its network has {len(units)} outputs", where=f"feature {name}", mend="give one output each")
    return units[0]


def _enclosed(name: str, layers: list[Layer], ends: tuple[float, float], most_pieces: int) -> Shape:
    """Lines over cells, and how far the network can be from them: a chord is off by a quarter of what the slope varies.

    The cells in which it may be off most are halved until there are enough.
    """
    points = np.linspace(ends[0], ends[1], max(2, min(FIRST_CELLS, most_pieces)) + 1)
    most = max(len(points) - 1, min(MOST_CELLS, most_pieces))
    errors, scale = _chord_errors(layers, points)
    for _ in range(HALVINGS):
        spare = most - len(errors)
        worst = np.argsort(-errors, kind="stable")[: max(1, min(spare, len(errors) // 4))]
        worst = worst[errors[worst] > errors.max() / 4]
        if spare <= 0 or errors.max() <= 16 * EPSILON * scale:
            break
        points = np.union1d(points, (points[worst] + points[worst + 1]) / 2)
        errors, scale = _chord_errors(layers, points)
    values = _only(name, _run(layers, points[None, :]))
    shape = _lines(name, points, values)
    return dataclasses.replace(shape, error=float(errors.max()) + 64 * len(layers) * EPSILON * scale)


def _run(layers: list[Layer], units: Floats) -> Floats:
    for layer in layers:
        if layer.weight is not None:
            assert layer.bias is not None
            units = layer.weight @ units + layer.bias[:, None]
        else:
            units = _applied(layer, units)
    return units


def _applied(layer: Layer, units: Floats) -> Floats:
    if layer.smooth == "tanh":
        return np.tanh(units)
    if layer.smooth == "sigmoid":
        return 0.5 + 0.5 * np.tanh(units / 2)
    return np.clip(units, 0.0, layer.ceiling)


def _slopes(layer: Layer, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Least and greatest slope of a layer's function between two ends."""
    if layer.smooth:
        at_low, at_high = _applied(layer, low), _applied(layer, high)
        slope_low, slope_high = (
            (1 - at_low**2, 1 - at_high**2)
            if layer.smooth == "tanh"
            else (at_low * (1 - at_low), at_high * (1 - at_high))
        )
        steepest = np.where((low <= 0) & (high >= 0), 1.0 if layer.smooth == "tanh" else 0.25, 0.0)
        return np.minimum(slope_low, slope_high), np.maximum(np.maximum(slope_low, slope_high), steepest)
    surely = (low >= 0) & (high <= layer.ceiling)
    never = (high <= 0) | (low >= layer.ceiling)
    return surely.astype(np.float64), (~never).astype(np.float64)


def _chord_errors(layers: list[Layer], points: Floats) -> tuple[Floats, float]:
    """How far a network can be from its chord in each cell, and the size of what is added up, for rounding.

    Values and slopes of every unit are carried through the layers as intervals, all cells at once.
    """
    low, high = points[None, :-1], points[None, 1:]
    least = greatest = np.ones_like(low)
    scale = 1.0 + float(np.abs(points).max())
    for layer in layers:
        if layer.weight is not None:
            assert layer.bias is not None
            up, down = np.maximum(layer.weight, 0.0), np.minimum(layer.weight, 0.0)
            shift = layer.bias[:, None]
            low, high = up @ low + down @ high + shift, up @ high + down @ low + shift
            least, greatest = up @ least + down @ greatest, up @ greatest + down @ least
            scale = float((np.abs(layer.weight).sum(axis=1) * scale + np.abs(layer.bias)).max())
        else:
            flat, steep = _slopes(layer, low, high)
            products = np.stack([flat * least, flat * greatest, steep * least, steep * greatest])
            least, greatest = products.min(axis=0), products.max(axis=0)
            low, high = _applied(layer, low), _applied(layer, high)
    return (greatest - least)[0] * np.diff(points) / 4, scale


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
