"""Path patching from a trace: the effect of every head and feed-forward part on the answer, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import checks
from answerable.mechanisms.path_patching.readout import UNITS, Metric, Readout
from answerable.mechanisms.path_patching.screen import Gradients, gradients
from answerable.mechanisms.path_patching.significance import Significance, significance
from answerable.mechanisms.path_patching.solver import (
    check_rank,
    crossfit_directions,
    random_directions,
    steering_direction,
)
from answerable.mechanisms.path_patching.sweep import (
    Node,
    Patch,
    Path,
    Receiver,
    activations,
    check_nodes,
    check_receivers,
    nodes_of,
    patched,
    patched_through,
)
from answerable.mechanisms.path_patching.tracing import Trace
from answerable.statistics import fold_numbers
from answerable.subjects.language_model.pieces import final_state

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

NO_ZERO = 1e-3  # a logit below it, or below 0, is no denominator


@dataclass(frozen=True)
class PathPatching:
    """How effects are found.

    Parameters
    ----------
    rank : r of the steering direction; None patches the whole activation instead of its part along one direction
    path : "mlps" - other heads held still at the last token; "direct" - all else held still; "total" - nothing
    receivers : heads that alone take the sender's change in, and what they read; then ``path`` does not matter
    metric : "auto" is the logit difference where pairs have foils, else the centred logit
    crossfit : folds, by unit, so that no pair is judged by a direction made from it; 1 for none
    screen : estimate all effects by one backward pass, and compute only some of them exactly
    verify : how many of the largest estimates are computed exactly, and how many of the rest, drawn at random
    threshold : share of what the behaviour is worth, beyond which a component is crucial
    top : how many components the stability asks about
    raw : take logits before the model's soft cap
    seed, resamples, level : of folds, draws and the bootstrap
    """

    rank: int | None = 1
    path: Path = "mlps"
    receivers: Sequence[Receiver] = ()
    metric: Literal["auto"] | Metric = "auto"
    crossfit: int = 5
    screen: bool = False
    verify: int = 20
    threshold: float = 0.01
    top: int = 10
    raw: bool = False
    seed: int = 0
    resamples: int = 2000
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.rank is not None:
            checks.whole(self.rank, "rank", 0)
        checks.choice(self.path, "path", ("direct", "mlps", "total"))
        checks.choice(self.metric, "metric", ("auto", *UNITS))
        for name, least in (("crossfit", 1), ("verify", 1), ("top", 1), ("seed", 0), ("resamples", 100)):
            checks.whole(getattr(self, name), name, least)
        for name in ("threshold", "level"):
            checks.between(getattr(self, name), name, 0, 1)
        if not all(isinstance(one, Receiver) for one in self.receivers):
            raise BadInput(f"it is {self.receivers!r:.60}", where="receivers", mend='give Receiver(23, 3, "q")')

    def fit(self, trace: Trace, nodes: Sequence[Node] | None = None) -> Effects:
        """The effect of every head and feed-forward part, or of some.

        Parameters
        ----------
        nodes : which; all by default. Tests are adjusted over these alone

        Raises
        ------
        BadInput : a rank beyond its limit, a metric that these pairs do not have, fewer units than folds
        """
        readout = self.readout(trace)
        if nodes is not None:
            check_nodes(trace.lm, nodes)
        nodes = nodes_of(trace.lm) if nodes is None else list(nodes)
        folds = self._folds(trace)
        baseline, scale = self._baseline(trace, readout)
        vectors = {} if self.rank is None else self._vectors(trace, nodes, folds)
        values = {node: self._values(trace, node, vectors) for node in nodes}
        slopes = self._gradients(trace, readout) if self.screen else None
        estimates = None if slopes is None else estimated(trace, slopes, values)
        exact = self._exactly(nodes, estimates)
        effects = np.zeros((len(nodes), len(trace))) if estimates is None else estimates.copy()
        computed = self.effects_of(trace, [Patch(nodes[i], values[nodes[i]]) for i in exact], readout, baseline)
        effects[exact] = computed
        if self.metric == "relative_logit":
            effects = effects / baseline
            estimates = None if estimates is None else estimates / baseline
        found = self.tested(effects, scale, trace)
        return Effects(self, trace, tuple(nodes), effects, scale, baseline, found, estimates, frozenset(exact))

    def tested(self, effects: Floats, scale: Floats, trace: Trace) -> Significance:
        """Intervals and tests of effects (nodes, pairs)."""
        return significance(
            effects, scale, trace.units, threshold=self.threshold, top=self.top, seed=self.seed,
            resamples=self.resamples, level=self.level,
        )  # fmt: skip

    def readout(self, trace: Trace) -> Readout:
        """How the answer is read off the output layer, for the pairs of a trace."""
        metric: Any = self.metric
        if metric == "auto":
            metric = "logit_difference" if trace.foils is not None else "centred_logit"
        return Readout(trace.lm, trace.answers, trace.foils, metric, self.raw)

    def effects_of(self, trace: Trace, patches: Sequence[Patch], readout: Readout, baseline: Floats) -> Floats:
        """(patches, pairs), the metric after each patch less the metric before; exactly 0 where nothing is changed."""
        import torch

        if not patches:
            return np.zeros((0, len(trace)))
        if self.receivers:
            final = patched_through(trace.lm, trace.positive, patches, self.receivers)
        else:
            final = patched(trace.lm, trace.positive, patches, self.path)
        with torch.no_grad():
            after = readout(final).double().cpu().numpy()
        here = [activations(trace.positive, patch.node) for patch in patches]
        same = np.array([(patch.values == one).all(-1).cpu().numpy() for patch, one in zip(patches, here, strict=True)])
        return np.where(same, 0.0, after - baseline)

    def _baseline(self, trace: Trace, readout: Readout) -> tuple[Floats, Floats]:
        """The metric of each prompt, and what the behaviour is worth in each pair: how far the twin's metric lies."""
        import torch

        with torch.no_grad():
            here, there = (
                readout(final_state(trace.lm, recorded.stream[-1])).double().cpu().numpy()
                for recorded in (trace.positive, trace.negative)
            )
        if self.metric != "relative_logit":
            return here, np.abs(there - here)
        if here.min() < NO_ZERO:
            unit = trace.units[int(here.argmin())]  # its number would count only the pairs that are left
            raise BadInput(
                f"the answer's logit is {here.min():.3g} in the pair of unit {unit!r:.60}, near or below 0",
                where="metric relative_logit",
                mend="choose centred_logit or logit_difference; a logit has no zero of its own",
            )
        return here, np.ones(len(trace))

    def _folds(self, trace: Trace) -> npt.NDArray[np.intp]:
        if self.rank is None or self.crossfit == 1:
            return np.zeros(len(trace), dtype=np.intp)
        return np.asarray(fold_numbers(len(trace), self.crossfit, seed=self.seed, groups=trace.units), dtype=np.intp)

    def _vectors(self, trace: Trace, nodes: Sequence[Node], folds: npt.NDArray[np.intp]) -> dict[Node, Floats]:
        """(pairs, width) by node: for each pair a direction that was made without it."""
        assert self.rank is not None
        n_fit = min(int((folds != number).sum()) or len(folds) for number in np.unique(folds))
        heads, feed_forward = changes(trace)
        check_rank(self.rank, n_fit, min(heads.shape[-1], feed_forward.shape[-1]))
        of_heads, of_mlps = (crossfit_directions(one, self.rank, folds) for one in (heads, feed_forward))
        return {node: of_heads[node.layer, node.head] if node.kind == "head" else of_mlps[node.layer] for node in nodes}

    def _values(self, trace: Trace, node: Node, vectors: dict[Node, Floats]) -> Any:
        """What stands at the node instead: the twin's part along the direction, or all of the twin's."""
        import torch

        here, there = activations(trace.positive, node), activations(trace.negative, node)
        if self.rank is None:
            return there
        vector = torch.as_tensor(vectors[node], dtype=torch.float64, device=here.device)
        moved = ((there - here).double() * vector).sum(-1, keepdim=True) * vector
        return torch.where((moved != 0).any(-1, keepdim=True), (here.double() + moved).to(here.dtype), here)

    def _gradients(self, trace: Trace, readout: Readout) -> Gradients:
        if self.receivers:
            raise BadInput("the screen does not follow receivers", where="screen", mend="set screen = false")
        return gradients(trace.lm, trace.positive, readout, self.path)

    def _exactly(self, nodes: Sequence[Node], estimates: Floats | None) -> list[int]:
        """Which nodes are computed exactly: all, or the largest estimates and a random sample of the others."""
        if estimates is None:
            return list(range(len(nodes)))
        order = np.argsort(-np.abs(estimates.mean(axis=1)), kind="stable")
        rest = np.sort(order[self.verify :])
        drawn = np.random.default_rng(self.seed).permutation(rest)[: self.verify]
        return sorted([*order[: self.verify].tolist(), *drawn.tolist()])


@dataclass(frozen=True, eq=False)
class Effects:
    """The effect of each head and feed-forward part on the answer.

    Parameters
    ----------
    method : how they were found
    trace : what they were found in
    nodes : heads and feed-forward parts, layer by layer
    per_pair : (nodes, pairs) change of the metric
    scale : (pairs,) what the behaviour is worth: distance of the twin's metric (1 for relative_logit)
    baseline : (pairs,) metric of the prompts
    tested : intervals, tests and stability
    estimates : (nodes, pairs) to first order, where it was screened
    exact : places of the nodes that were computed exactly
    """

    method: PathPatching
    trace: Trace
    nodes: tuple[Node, ...]
    per_pair: Floats
    scale: Floats
    baseline: Floats
    tested: Significance
    estimates: Floats | None = None
    exact: frozenset[int] = field(default_factory=frozenset)

    def select(self, rows: Sequence[int], method: PathPatching) -> Effects:
        """Some of the pairs alone, for whole activations: there no pair's effect depends on another's.

        Parameters
        ----------
        rows : places of the pairs
        method : the same method, with its own resamples and level
        """
        if self.method.rank is not None:
            raise BadInput("a direction is made from all pairs", where="select", mend="fit the selected trace anew")
        chosen = list(rows)
        trace, effects, scale = self.trace.select(chosen), self.per_pair[:, chosen], self.scale[chosen]
        found = method.tested(effects, scale, trace)
        estimates = None if self.estimates is None else self.estimates[:, chosen]
        return Effects(method, trace, self.nodes, effects, scale, self.baseline[chosen], found, estimates, self.exact)

    @property
    def unit(self) -> str:
        """Unit of the effects."""
        readout = self.method.readout(self.trace)
        return (
            "1" if readout.metric == "relative_logit" else "nats" if readout.metric == "log_probability" else "logits"
        )

    def of(self, node: Node) -> float:
        """Mean effect of one node."""
        check_nodes(self.trace.lm, [node])
        return float(self.tested.effect[self.nodes.index(node)])

    def ranked(
        self, kind: Literal["head", "mlp"] | None = "head", *, by: Literal["drop", "size"] = "drop"
    ) -> list[Node]:
        """Nodes, those first whose patch lowers the metric most ("drop"), or moves it most ("size").

        The size alone would rank parts that hold the answer back among those that carry it.
        """
        checks.choice(kind, "kind", ("head", "mlp", None))
        checks.choice(by, "by", ("drop", "size"))
        effect = self.tested.effect if by == "drop" else -np.abs(self.tested.effect)
        order = np.argsort(effect, kind="stable")
        return [self.nodes[i] for i in order if kind in (None, self.nodes[i].kind)]

    @property
    def directions(self) -> dict[Node, Floats]:
        """Steering direction of each node from all pairs; zeros where it is undefined."""
        heads, feed_forward = changes(self.trace)
        rank = self.method.rank or 0
        of_heads, of_mlps = (steering_direction(one, rank).vector for one in (heads, feed_forward))
        return {
            node: of_heads[node.layer, node.head] if node.kind == "head" else of_mlps[node.layer] for node in self.nodes
        }

    def table(self) -> pl.DataFrame:
        """One row for each node, the largest drop first."""
        import polars as pl

        found = self.tested
        return pl.DataFrame(
            {
                "kind": [node.kind for node in self.nodes],
                "layer": [node.layer for node in self.nodes],
                "head": [node.head if node.kind == "head" else None for node in self.nodes],
                "effect": found.effect,
                "low": found.low,
                "high": found.high,
                "share": found.share,
                "share_low": found.share_low,
                "share_high": found.share_high,
                "p_value": found.p_value,
                "q_value": found.q_value,
                "stability": found.stability,
                "crucial": found.crucial,
                "exact": [i in self.exact for i in range(len(self.nodes))],
            },
            schema_overrides={"head": pl.Int64},
        ).sort("effect", maintain_order=True)

    def matrix(self) -> tuple[Floats, Floats]:
        """Mean effects of heads, (layers, heads), and of feed-forward parts, (layers,)."""
        n_layers = max(node.layer for node in self.nodes) + 1
        n_heads = max(node.head for node in self.nodes) + 1
        heads, feed_forward = np.full((n_layers, n_heads), np.nan), np.full(n_layers, np.nan)
        for node, effect in zip(self.nodes, self.tested.effect, strict=True):
            if node.kind == "head":
                heads[node.layer, node.head] = effect
            else:
                feed_forward[node.layer] = effect
        return heads, feed_forward

    def full_vector(self) -> Effects:
        """The same with whole activations patched."""
        return replace(self.method, rank=None).fit(self.trace)

    def along(self, path: Path, nodes: Sequence[Node] | None = None) -> Floats:
        """Mean effects of the same patches along another path.

        Parameters
        ----------
        nodes : which senders; all by default

        Returns
        -------
        (nodes,) float64
        """
        method = replace(self.method, path=path, receivers=())
        return self._again(method, list(self.nodes) if nodes is None else list(nodes)).mean(axis=1)

    def through(self, receivers: Sequence[Receiver], nodes: Sequence[Node] | None = None) -> Floats:
        """Mean effects of the same patches where the receivers alone take the change in; shapes as `along`."""
        check_receivers(self.trace.lm, receivers)
        method = replace(self.method, receivers=tuple(receivers))
        return self._again(method, list(self.nodes) if nodes is None else list(nodes)).mean(axis=1)

    def compare(self, rank: Sequence[int | None] = (0, 1, 4, 10), nodes: Sequence[Node] | None = None) -> pl.DataFrame:
        """Effects and directions at other ranks.

        Parameters
        ----------
        rank : ranks; None for whole activations. Those beyond the limit of a fold are left out
        nodes : which senders; the ``top`` largest drops of each kind by default

        Returns
        -------
        columns kind, layer, head, rank, effect, size (distance of the hull from the origin), cosine (of the direction
        with the mean difference); size and cosine are null for whole activations, cosine where there is no direction
        """
        import polars as pl

        chosen = self.largest() if nodes is None else list(nodes)
        heads, feed_forward = changes(self.trace)
        widths = min(heads.shape[-1], feed_forward.shape[-1])
        folds = self.method._folds(self.trace)
        n_fit = min(int((folds != number).sum()) or len(folds) for number in np.unique(folds))
        rows = []
        for one in rank:
            if one is not None and one > min(n_fit, widths) - 1:
                continue
            effects = self._again(replace(self.method, rank=one), chosen).mean(axis=1)
            for node, effect in zip(chosen, effects, strict=True):
                moved = heads[node.layer, node.head] if node.kind == "head" else feed_forward[node.layer]
                size = cosine = None
                if one is not None:
                    direction, mean = steering_direction(moved, one), moved.mean(axis=0)
                    size = float(direction.size)
                    if size > 0:  # else the direction is undefined
                        cosine = float(direction.vector @ mean / np.linalg.norm(mean))
                head = node.head if node.kind == "head" else None
                rows.append((node.kind, node.layer, head, one, float(effect), size, cosine))
        schema = {
            "kind": pl.String, "layer": pl.Int64, "head": pl.Int64, "rank": pl.Int64, "effect": pl.Float64,
            "size": pl.Float64, "cosine": pl.Float64,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def random_control(self, nodes: Sequence[Node], draws: int = 20) -> Floats:
        """Mean effects of patches along random directions in the span of a node's centred changes.

        Returns
        -------
        (nodes, draws) float64
        """
        import torch

        check_nodes(self.trace.lm, nodes)
        checks.whole(draws, "draws", 1)
        heads, feed_forward = changes(self.trace)
        rng = np.random.default_rng([self.method.seed, 1])
        patches = []
        for node in nodes:
            moved = heads[node.layer, node.head] if node.kind == "head" else feed_forward[node.layer]
            here, there = activations(self.trace.positive, node), activations(self.trace.negative, node)
            for vector in random_directions(moved, draws, rng):
                w = torch.as_tensor(vector, dtype=torch.float64, device=here.device)
                part = ((there - here).double() @ w)[:, None] * w
                patches.append(Patch(node, (here.double() + part).to(here.dtype)))
        return self._computed(self.method, patches).mean(axis=1).reshape(len(nodes), draws)

    def first_order(self) -> Floats:
        """(nodes, pairs), every effect estimated by the gradient, whether or not it was screened."""
        if self.estimates is not None:
            return self.estimates
        method = self.method
        vectors = {} if method.rank is None else method._vectors(self.trace, self.nodes, method._folds(self.trace))
        values = {node: method._values(self.trace, node, vectors) for node in self.nodes}
        slopes = gradients(self.trace.lm, self.trace.positive, method.readout(self.trace), method.path)
        found = estimated(self.trace, slopes, values)
        return found / self.baseline if method.metric == "relative_logit" else found

    def largest(self) -> list[Node]:
        """The ``top`` nodes of largest size, heads and feed-forward parts together."""
        return self.ranked(None, by="size")[: self.method.top]

    def _again(self, method: PathPatching, nodes: Sequence[Node]) -> Floats:
        check_nodes(self.trace.lm, nodes)
        folds = method._folds(self.trace)
        vectors = {} if method.rank is None else method._vectors(self.trace, nodes, folds)
        return self._computed(method, [Patch(node, method._values(self.trace, node, vectors)) for node in nodes])

    def _computed(self, method: PathPatching, patches: Sequence[Patch]) -> Floats:
        found = method.effects_of(self.trace, patches, method.readout(self.trace), self.baseline)
        return found / self.baseline if method.metric == "relative_logit" else found


def score_shift(before: Effects, after: Effects) -> float:
    """p-value of: the shares of all nodes have one distribution before and after, as of training (Kolmogorov, Smirnov).

    Nodes of one model are not independent, so it is a distance rather than a test.
    """
    from scipy.stats import ks_2samp

    return float(ks_2samp(before.tested.share, after.tested.share).pvalue)


def changes(trace: Trace) -> tuple[Floats, Floats]:
    """Prompt less twin at every node: (L, H, pairs, d) and (L, pairs, m) float64."""
    heads = (trace.positive.heads - trace.negative.heads).double().cpu().numpy()
    feed_forward = (trace.positive.feed_forward - trace.negative.feed_forward).double().cpu().numpy()
    return heads.transpose(0, 2, 1, 3), feed_forward


def estimated(trace: Trace, slopes: Gradients, values: dict[Node, Any]) -> Floats:
    """(nodes, pairs), gradient times change."""
    return np.array(
        [
            ((given - activations(trace.positive, node)) * slopes.of(node)).sum(-1).double().cpu().numpy()
            for node, given in values.items()
        ]
    )


__all__ = ["Effects", "PathPatching", "changes", "estimated", "score_shift"]
