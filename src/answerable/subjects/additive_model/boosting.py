"""scikit-learn's boosted trees that split one feature each: step functions from the start.

Trees of depth 1 are such, and so are deeper ones fitted with ``interaction_cst="no_interactions"``.
``GradientBoosting...`` compares in single precision, ``HistGradientBoosting...`` in double; the latter also sends
missing values and groups of categories down its branches.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput

from .encoding import level_name
from .parts import Shape

Floats = npt.NDArray[np.float64]


class Split(NamedTuple):
    """An inner node: left where the value is at most ``edge``, or its category is one of ``levels``."""

    feature: int
    edge: float
    levels: npt.NDArray[np.bool_] | None
    missing_left: bool
    left: Node
    right: Node


Node = Split | float  # a leaf is what it adds to the score


def shapes_of_trees(final: Any, names: Sequence[str]) -> tuple[list[Shape], Floats]:
    """One step function a feature, and the intercept, of a fitted boosting model.

    Parameters
    ----------
    final : GradientBoostingClassifier or -Regressor, HistGradientBoostingClassifier or -Regressor
    names : of its input columns

    Raises
    ------
    BadInput : a tree that splits on two features; they are named
    """
    hist = hasattr(final, "_predictors")
    start = type(getattr(final, "init_", None)).__name__
    if start not in ("NoneType", "str", "DummyClassifier", "DummyRegressor"):
        mend = "fit it with init=None"
        raise BadInput(f"not additive: its trees come on top of {start}", where=type(final).__name__, mend=mend)
    trees, levels = _of_histograms(final, names) if hist else (_of_exact_splits(final), {})
    n_outputs = final._baseline_prediction.size if hist else len(trees[0])
    own: list[list[tuple[int, Node]]] = [[] for _ in names]
    base = np.zeros(n_outputs)
    for number, row in enumerate(trees, 1):
        for output, root in enumerate(row):
            used = sorted(_features_of(root))
            if len(used) > 1:
                raise BadInput(
                    f"not additive: tree {number} joins {' & '.join(names[j] for j in used)}",
                    where=type(final).__name__,
                    mend="fit it with max_depth=1" + (' or interaction_cst="no_interactions"' if hist else ""),
                )  # fmt: skip
            if isinstance(root, Split):
                own[root.feature].append((output, root))
            else:
                base[output] += root
    shapes = [_steps(name, own[j], n_outputs, levels.get(j, ()), missing=hist) for j, name in enumerate(names)]
    if hist:
        return shapes, base + np.asarray(final._baseline_prediction, np.float64).reshape(-1)
    return shapes, _intercept(final, shapes)


def _features_of(node: Node) -> set[int]:
    if not isinstance(node, Split):
        return set()
    return {node.feature} | _features_of(node.left) | _features_of(node.right)


def _of_exact_splits(final: Any) -> list[list[Node]]:
    trees = np.asarray(final.estimators_, dtype=object)
    rows = trees[:, None] if trees.ndim == 1 else trees
    return [[_grown(grown.tree_, final.learning_rate, 0) for grown in row] for row in rows]


def _grown(tree: Any, factor: float, node: int) -> Node:
    if tree.children_left[node] < 0:
        return float(factor * tree.value[node, 0, 0])
    edge = _edge_of_single(tree.threshold[node])
    below, above = (_grown(tree, factor, int(side[node])) for side in (tree.children_left, tree.children_right))
    return Split(int(tree.feature[node]), edge, None, False, below, above)


def _of_histograms(final: Any, names: Sequence[str]) -> tuple[list[list[Node]], dict[int, tuple[str, ...]]]:
    """The trees, and the categories of the features that have some."""
    order, levels = list(range(len(names))), {}
    if final.is_categorical_ is not None:
        # its own preprocessor puts the features with categories first
        which = np.asarray(final.is_categorical_, bool)
        order = [int(j) for j in (*np.flatnonzero(which), *np.flatnonzero(~which))]
        encoder = final._preprocessor.named_transformers_["encoder"]
        for place, entries in zip(order, encoder.categories_, strict=False):
            levels[place] = tuple(level_name(value) for value in entries if not is_missing(value))
    return [
        [_binned(one.nodes, one.raw_left_cat_bitsets, order, levels, 0) for one in row] for row in final._predictors
    ], levels


def _binned(nodes: Any, bitsets: Any, order: list[int], levels: dict[int, tuple[str, ...]], number: int) -> Node:
    node = nodes[number]
    if node["is_leaf"]:
        return float(node["value"])
    feature = order[int(node["feature_idx"])]
    chosen = None
    if node["is_categorical"]:
        words = bitsets[int(node["bitset_idx"])]
        codes = np.arange(len(levels[feature]))
        chosen = (words[codes // 32] >> (codes % 32).astype(np.uint32) & 1).astype(bool)
    left, right = (_binned(nodes, bitsets, order, levels, int(node[side])) for side in ("left", "right"))
    return Split(feature, float(node["num_threshold"]), chosen, bool(node["missing_go_to_left"]), left, right)


def is_missing(value: Any) -> bool:
    """Whether a category stands for a missing value."""
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def _intercept(final: Any, shapes: Sequence[Shape]) -> Floats:
    """What precedes the trees is the same for every row; one row shows it."""
    row = np.zeros((1, len(shapes)))
    with warnings.catch_warnings():  # that the row's columns have no names
        warnings.simplefilter("ignore", UserWarning)
        theirs = final.decision_function(row) if hasattr(final, "decision_function") else final.predict(row)
    ours = np.sum([shape(row[:, j]) for j, shape in enumerate(shapes)], axis=0)
    return (np.asarray(theirs, np.float64).reshape(1, -1) - ours)[0]


def _edge_of_single(threshold: float) -> float:
    """The largest double that is at most ``threshold`` once it is rounded to single precision, as the trees do."""
    below = np.float32(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float32(-np.inf))
    middle = (float(below) + float(np.nextafter(below, np.float32(np.inf)))) / 2
    return middle if float(np.float32(middle)) == float(below) else math.nextafter(middle, -math.inf)


def _steps(name: str, own: list[tuple[int, Node]], n_outputs: int, levels: tuple[str, ...], *, missing: bool) -> Shape:
    """All trees of one feature added up over the union of their edges."""
    inner = np.unique([edge for _, root in own for edge in _edges(root)] if not levels else [])
    values = np.zeros((len(levels) or len(inner) + 1, n_outputs))
    for output, root in own:
        _add(root, np.ones(len(values), bool), values[:, output], lambda edge: int(np.searchsorted(inner, edge)) + 1)
    nothing = np.zeros(n_outputs)
    for output, root in own:
        nothing[output] += _of_missing(root)
    more: dict[str, Any] = {"missing": nothing} if missing else {}
    if levels:
        return Shape.categories(name, levels, values, **more)
    return Shape.table(name, [-np.inf, *inner, np.inf], values, edge_goes_up=False, **more)


def _edges(node: Node) -> list[float]:
    return [node.edge, *_edges(node.left), *_edges(node.right)] if isinstance(node, Split) else []


def _add(node: Node, where: npt.NDArray[np.bool_], values: Floats, place_of: Callable[[float], int]) -> None:
    """Add a tree's leaves to the pieces, or levels, that reach them."""
    if not isinstance(node, Split):
        values[where] += node
        return
    left = np.arange(len(values)) < place_of(node.edge) if node.levels is None else node.levels
    _add(node.left, where & left, values, place_of)
    _add(node.right, where & ~left, values, place_of)


def _of_missing(node: Node) -> float:
    while isinstance(node, Split):
        node = node.left if node.missing_left else node.right
    return node
