"""Which numbers of a model to train: the slices of the heads and feed-forward parts that carry a behaviour, no other.

Zhang and others (2025) train only the query, key, value and output slices of the heads that patching found. Adam moves
also what has no gradient, by weight decay and by what it remembers; so the step is masked here, not only the gradient,
and what is not chosen stays as it is to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import checks
from answerable.mechanisms.path_patching.effects import Effects
from answerable.mechanisms.path_patching.sweep import Node, check_nodes, nodes_of
from answerable.subjects.language_model import LanguageModel, load, parts

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Mask:
    """What may be trained.

    Parameters
    ----------
    nodes : the chosen heads and feed-forward parts
    chosen : by name of a parameter, true where it may move; parameters that are not named stay as they are
    scale : by name, what its gradient is multiplied by: heads of the layer over heads trained
    parameters : the parameters themselves, by name
    """

    nodes: tuple[Node, ...]
    chosen: dict[str, Any]
    scale: dict[str, float]
    parameters: dict[str, Any]

    @property
    def count(self) -> int:
        """How many numbers may move."""
        return sum(int(one.sum()) for one in self.chosen.values())

    def table(self) -> pl.DataFrame:
        """One row for each parameter: name, shape, how many numbers of it are trained, and its gradient's factor."""
        import polars as pl

        return pl.DataFrame(
            {
                "parameter": list(self.chosen),
                "shape": [" x ".join(map(str, one.shape)) for one in self.chosen.values()],
                "trained": [int(one.sum()) for one in self.chosen.values()],
                "scale": [self.scale[name] for name in self.chosen],
            },
            schema={"parameter": pl.String, "shape": pl.String, "trained": pl.Int64, "scale": pl.Float64},
        )

    def apply(self, optimizer: Any) -> list[Any]:
        """Mask every step of an optimiser from now on.

        Parameters
        ----------
        optimizer : a torch optimiser over these parameters, and others if it has them: those never move

        Returns
        -------
        Handles; ``handle.remove()`` on each ends it

        Raises
        ------
        BadInput : none of the optimiser's parameters is among those to train
        """
        names = {id(parameter): name for name, parameter in self.parameters.items()}
        held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if not any(id(parameter) in names for parameter in held):
            raise BadInput(
                "it holds none of the parameters to train", where="optimizer", mend="make it from model.parameters()"
            )
        kept: dict[str, Any] = {}

        def before(*_: Any) -> None:
            for parameter in held:
                name = names.get(id(parameter))
                if name is None or parameter.grad is None:
                    parameter.grad = None  # an optimiser passes over it, decay and all
                    continue
                parameter.grad.mul_(self.chosen[name] * self.scale[name])
                kept[name] = parameter.detach()[~self.chosen[name]].clone()

        def after(*_: Any) -> None:
            import torch

            with torch.no_grad():
                for name, frozen in kept.items():
                    self.parameters[name][~self.chosen[name]] = frozen
            kept.clear()

        return [optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)]


def targeted_mask(
    model: Any,
    effects: Effects | Sequence[Node],
    *,
    top_heads: int = 64,
    top_mlps: int = 0,
    group_share: float = 0.5,
) -> Mask:
    """The parameters of the parts that carry a behaviour most.

    Parameters
    ----------
    model : the model to train: a transformers model or a ``LanguageModel``
    effects : what ranks its parts, by how far a patch lowers the metric; or the nodes themselves, and then all of them
    top_heads, top_mlps : how many of each
    group_share : keys and values that heads share are trained where at least this share of their heads is chosen

    Raises
    ------
    BadInput : more parts than there are, weights that are quantised, or parts that the model does not have
    """
    lm = _trainable(model)
    if not 0 <= group_share <= 1:
        raise BadInput(f"it is {group_share}", where="group_share", mend="choose from 0 to 1")
    nodes = _ranked(effects, top_heads, top_mlps) if isinstance(effects, Effects) else tuple(effects)
    check_nodes(lm, nodes)
    if not nodes:
        raise BadInput("no part is chosen", where="mask", mend="choose at least one head or MLP")
    made = Mask(nodes, {}, {}, {})
    names = {id(parameter): name for name, parameter in lm.model.named_parameters()}
    for layer in sorted({node.layer for node in nodes}):
        heads = [node.head for node in nodes if node.layer == layer and node.kind == "head"]
        if heads:
            _mark_heads(lm, layer, heads, group_share, made, names)
        if Node("mlp", layer) in nodes:
            _mark_feed_forward(lm, layer, made, names)
    return made


def _trainable(model: Any) -> LanguageModel:
    """A loaded model, also one that is in training mode."""
    if isinstance(model, LanguageModel) or not getattr(model, "training", False):
        return model if isinstance(model, LanguageModel) else load(model)
    return LanguageModel(model, None, f"<{type(model).__name__}>", None)


def random_nodes(lm: LanguageModel, like: Sequence[Node], seed: int = 0) -> list[Node]:
    """As many heads and feed-forward parts as ``like`` has, drawn from all others: the control of targeted training."""
    rng = np.random.default_rng(seed)
    drawn: list[Node] = []
    for kind in ("head", "mlp"):
        wanted = sum(node.kind == kind for node in like)
        others = [node for node in nodes_of(lm) if node.kind == kind and node not in set(like)]
        if wanted > len(others):
            raise BadInput(f"{len(others)} {kind}s are left for {wanted}", where="control", mend="choose fewer parts")
        drawn += [others[i] for i in rng.permutation(len(others))[:wanted]]
    return sorted(drawn)


def _ranked(effects: Effects, top_heads: int, top_mlps: int) -> tuple[Node, ...]:
    chosen: list[Node] = []
    for kind, top in (("head", top_heads), ("mlp", top_mlps)):
        ranked = effects.ranked(kind)  # type: ignore[arg-type]
        checks.whole(top, f"top_{kind}s", 0, len(ranked))
        chosen += ranked[:top]
    return tuple(chosen)


def _mark_heads(
    lm: LanguageModel, layer: int, heads: Sequence[int], group_share: float, made: Mask, names: dict[int, str]
) -> None:
    n_heads, n_groups, _ = parts.head_counts(lm, layer)
    size = n_heads // n_groups
    of_group = np.bincount([head // size for head in heads], minlength=n_groups)
    groups = [group for group in range(n_groups) if of_group[group] >= max(group_share * size, 1)]
    for parameter, marks in parts.head_slices(lm, layer, heads, groups):
        _mark(made, names[id(parameter)], parameter, marks, n_heads / len(heads))


def _mark_feed_forward(lm: LanguageModel, layer: int, made: Mask, names: dict[int, str]) -> None:
    import torch

    found = {
        id(parameter): parameter
        for name in ("feed_forward", "gate", "up", "down")
        if (module := parts.find_part(lm, name, layer)) is not None
        for parameter in module.parameters()
    }
    for parameter in found.values():
        _mark(made, names[id(parameter)], parameter, torch.ones_like(parameter, dtype=torch.bool), 1.0)


def _mark(made: Mask, name: str, parameter: Any, marks: Any, scale: float) -> None:
    if not parameter.is_floating_point():
        raise BadInput("its weights are quantised", where=name, mend="load the model in float32 to train it")
    made.chosen[name] = made.chosen[name] | marks if name in made.chosen else marks
    made.scale[name] = scale
    made.parameters[name] = parameter
