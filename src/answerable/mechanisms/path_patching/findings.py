"""All that one ask of path patching finds, as plain rows: each step is done when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.mechanisms.path_patching.ablation import KnockOut, drop_against_random, knock_out
from answerable.mechanisms.path_patching.effects import Effects, PathPatching
from answerable.mechanisms.path_patching.pairs import Pairs
from answerable.mechanisms.path_patching.readings import CLASSES, looks, mlp_readings
from answerable.mechanisms.path_patching.replicas import random_twin
from answerable.mechanisms.path_patching.sweep import Node, Receiver, reaches
from answerable.mechanisms.path_patching.tracing import Trace, trace
from answerable.mechanisms.path_patching.training import ComparedTraining, Training, compared_training
from answerable.statistics import fold_numbers

Floats = npt.NDArray[np.float64]

RANKS = (0, 1, 4, 10)
STEPS = (0, 1, 2, 4, 8, 16)
OF_A_HALF = 3  # units a half needs to be ranked on
GRAPH = 8  # nodes of the circuit graph


class Estimate(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, eq=False)
class Findings:
    """One trace, asked all there is to ask.

    Parameters
    ----------
    trace, method : the pairs as the model reads them, and how effects are found
    draws : random directions, and random sets of the knock-out
    training : how the parts are trained on one half of the words and judged on the other; None: they are not
    """

    trace: Trace
    method: PathPatching
    draws: int = 20
    training: Training | None = None

    @cached_property
    def effects(self) -> Effects:
        """Of all nodes, along the asked path."""
        return self.method.fit(self.trace)

    @cached_property
    def full(self) -> Effects:
        """The same with whole activations."""
        return self.effects if self.method.rank is None else self.effects.full_vector()

    @cached_property
    def random_weights(self) -> Effects | None:
        """The largest parts in the same architecture with weights drawn anew: where there is nothing to be found.

        None for relative effects, whose denominator random weights do not have.
        """
        if self.method.metric == "relative_logit":
            return None
        twin = random_twin(self.trace.lm, self.method.seed)
        noise = trace(twin, None, Pairs(self.trace.pairs), keep_wrong=True, allow_leaky=True, least=1)
        return replace(self.method, screen=False).fit(noise, self.effects.largest())

    def components(self) -> list[dict[str, Any]]:
        """The table of nodes, the largest drop first; total effects and random directions for the largest alone."""
        effects, largest = self.effects, self.effects.largest()
        direct = effects.along("direct")
        total = dict(zip(largest, effects.along("total", largest), strict=True))
        control = (
            {}
            if self.method.rank is None
            else dict(zip(largest, effects.random_control(largest, self.draws), strict=True))
        )
        noise = self.random_weights
        seen = looks(self.trace)
        rows = effects.table().rows(named=True)
        places = {(node.kind, node.layer, node.head): i for i, node in enumerate(effects.nodes)}
        for row in rows:
            head = -1 if row["head"] is None else row["head"]
            node = Node(row["kind"], row["layer"], head)
            place = places[node]
            random = control.get(node)
            row |= {
                "node": str(node),
                "full_effect": float(self.full.tested.effect[place]),
                "direct_effect": float(direct[place]),
                "total_effect": None if node not in total else float(total[node]),
                "random_low": None if random is None else float(random.min()),
                "random_high": None if random is None else float(random.max()),
                **_of_noise(noise, node),
                "role": seen.role(node.layer, head) if seen is not None and head >= 0 else None,
            }
        return rows

    def heads(self) -> list[dict[str, Any]]:
        """Where each head looks."""
        seen = looks(self.trace)
        if seen is None:
            return []
        return [
            {"layer": node.layer, "head": node.head, "role": seen.role(node.layer, node.head)}
            | {name: float(share) for name, share in zip(CLASSES, seen.mass[node.layer, node.head], strict=True)}
            | {"first": float(seen.first[node.layer, node.head])}
            for node in self.effects.nodes
            if node.kind == "head"
        ]

    def mlps(self) -> list[dict[str, Any]]:
        """What feed-forward parts write."""
        return mlp_readings(self.trace, seed=self.method.seed).rows(named=True)

    def ranks(self) -> list[dict[str, Any]]:
        """The largest nodes at other ranks; a null rank is the whole activation."""
        return self.effects.compare([*RANKS, None]).rows(named=True)

    def edges(self) -> list[dict[str, Any]]:
        """Which of the largest nodes act through which others, and which act on the output directly."""
        effects = self.effects
        nodes = sorted(effects.largest()[:GRAPH], key=lambda node: (node.layer, node.kind == "mlp", node.head))
        worth = float(effects.scale.mean()) or 1.0
        rows = [
            {"sender": str(node), "receiver": "output", "layer": node.layer, "to_layer": None, "share": effect / worth}
            for node, effect in zip(nodes, effects.along("direct", nodes), strict=True)
        ]
        for receiver in nodes:
            mlp = Receiver(receiver.layer, reads="mlp")
            of_head = [Receiver(receiver.layer, receiver.head, one) for one in ("q", "k", "v")]
            reads = of_head if receiver.kind == "head" else [mlp]
            senders = [node for node in nodes if reaches(self.trace.lm, node, reads[0])]
            if not senders:
                continue
            found = effects.through(reads, senders)
            rows += [
                {
                    "sender": str(node), "receiver": str(receiver), "layer": node.layer, "to_layer": receiver.layer,
                    "share": effect / worth,
                }
                for node, effect in zip(senders, found, strict=True)
            ]  # fmt: skip
        return rows

    @cached_property
    def knocked_out(self) -> tuple[KnockOut, list[str]] | None:
        """Each half of the units ranks, the other is judged; with the unit of each judged pair. None: too few units."""
        units = self.trace.units
        if len(set(units)) < 2 * OF_A_HALF:
            return None
        halves = np.asarray(fold_numbers(len(units), 2, seed=self.method.seed, groups=units))
        joined: KnockOut | None = None
        judged: list[str] = []
        for half in (0, 1):
            ranking, other = (np.flatnonzero(halves == one).tolist() for one in (half, 1 - half))
            method = self._of_a_half(ranking)
            judging = self.trace.select(other)
            if self.method.rank is None:
                ranked = self.effects.select(ranking, method)
            else:
                ranked = method.fit(self.trace.select(ranking))
            found = knock_out(judging, ranked, steps=STEPS, draws=self.draws, seed=self.method.seed + half)
            joined = found if joined is None else joined.joined(found)
            judged += judging.units
        assert joined is not None
        return joined, judged

    def _of_a_half(self, rows: Sequence[int]) -> PathPatching:
        """The method as it can be fitted to fewer units: no more folds than there are, and few resamples.

        A method that screens ranks a half by its screen too: the largest, which are put out, are computed exactly.
        """
        units = len({self.trace.units[i] for i in rows})
        folds = max(1, min(self.method.crossfit, units - 1))
        rank = self.method.rank
        smallest = units - -(-units // folds) if folds > 1 else units
        rank = rank if rank is None else min(rank, max(smallest - 1, 0))
        return replace(self.method, crossfit=folds, rank=rank, resamples=100)

    def knock_out_rows(self) -> list[dict[str, Any]]:
        """The knock-out curve."""
        return [] if self.knocked_out is None else self.knocked_out[0].table().rows(named=True)

    def knock_out_drop(self) -> tuple[int, Estimate] | None:
        """At the step of eight, or fewer of few heads: how many were put out, and the drop against random ones.

        Of at most a quarter of all heads, since random sets hold the same ones otherwise.
        """
        if self.knocked_out is None:
            return None
        found, judged = self.knocked_out
        step = max(one for one in found.steps if one <= min(8, len(found.ranked) // 4))
        return step, Estimate(*drop_against_random(found, step, units=judged, seed=self.method.seed))

    def subspace_share(self) -> Estimate | None:
        """Sum of the crucial nodes' subspace effects over that of their full effects; None where none is crucial."""
        from answerable.statistics import bootstrap_interval

        chosen = np.flatnonzero(self.full.tested.crucial)
        if self.method.rank is None or not len(chosen):
            return None
        rows = np.column_stack(
            [np.abs(one.per_pair[chosen]).sum(axis=0) for one in (self.effects, self.full)]
        )  # sizes, since effects of both signs stand among them
        interval = bootstrap_interval(
            lambda block: block[..., 0].mean(axis=-1) / block[..., 1].mean(axis=-1), rows, seed=self.method.seed,
            vectorized=True, clusters=np.asarray(self.trace.units), bounds=(0.0, np.inf),
        )  # fmt: skip
        return Estimate(interval.value, interval.low, interval.high, interval.method)

    def screen_agreement(self) -> Estimate | None:
        """Correlation of first-order estimates with exact effects over the nodes that were computed exactly."""
        if self.method.path == "total" or self.method.receivers:
            return None
        exact = sorted(self.effects.exact)
        both = self.effects.first_order().mean(axis=1)[exact], self.effects.tested.effect[exact]
        if min(np.ptp(one) for one in both) == 0:
            return None
        return Estimate(
            float(np.corrcoef(*both)[0, 1]), np.nan, np.nan, f"Pearson correlation over {len(exact)} components"
        )

    def missed(self) -> list[float] | None:
        """Of the nodes the screen left out: how many were drawn, how many of them belong among the largest, and the
        upper end of that share; None where nothing was screened.
        """
        from answerable.statistics import clopper_pearson_interval

        effects = self.effects
        if effects.estimates is None:
            return None
        order = np.argsort(-np.abs(effects.estimates.mean(axis=1)), kind="stable")
        verified, rest = order[: self.method.verify], order[self.method.verify :]
        size = np.abs(effects.tested.effect)
        drawn = [i for i in rest if i in effects.exact]
        if not drawn:
            return None
        least = np.sort(size[verified])[::-1][: self.method.top][-1]
        missed = int(sum(size[i] > least for i in drawn))
        return [len(drawn), missed, clopper_pearson_interval(missed, len(drawn)).high]

    def mask(self) -> list[dict[str, Any]]:
        """The parameters of the largest parts that carry the behaviour; empty for weights that cannot be trained."""
        from answerable.mechanisms.path_patching.targets import targeted_mask

        carrying = [node for node in self.effects.largest() if self.effects.of(node) < 0]
        return targeted_mask(self.trace.lm, carrying).table().rows(named=True) if carrying else []

    @cached_property
    def trained(self) -> ComparedTraining | None:
        """Training of the parts that one half of the words ranks, judged on the other, beside its controls."""
        asked = self.trace.asked
        if self.training is None or len({pair.unit for pair, _ in asked}) < 2 * OF_A_HALF:
            return None
        halves = fold_numbers(len(asked), 2, seed=self.method.seed, groups=[pair.unit for pair, _ in asked])
        taught, judged = ([one for one, half in zip(asked, halves, strict=True) if half == side] for side in (0, 1))
        units = {pair.unit for pair, _ in taught}
        ranking = [i for i, unit in enumerate(self.trace.units) if unit in units]
        if len({self.trace.units[i] for i in ranking}) < OF_A_HALF:
            return None
        ranked = self._of_a_half(ranking).fit(self.trace.select(ranking))
        nodes = [node for node in ranked.ranked("head") if ranked.of(node) < 0][: self._most_to_train()]
        return compared_training(self.trace.lm, nodes, taught, judged, self.training)

    def _most_to_train(self) -> int:
        """As many heads as ``top`` says, and half of all at most, so that as many random others are left."""
        return min(self.method.top, sum(node.kind == "head" for node in self.effects.nodes) // 2)

    def told(self) -> dict[str, Any]:
        """What the words of the answer need besides the tables."""
        effects, trace = self.effects, self.trace
        return {
            "right": [list(trace.right_positive), list(trace.right_negative)],
            "pairs": len(trace),
            "units": len(set(trace.units)),
            "dropped": dict(trace.dropped),
            "notes": list(trace.notes),
            "behaviour": trace.behaviour,
            "worth": float(effects.scale.mean()),
            "unit": effects.unit,
            "metric": effects.method.readout(trace).metric,
            "interval": effects.tested.method,
            "threshold": effects.method.threshold,
            "rank": effects.method.rank,
            "path": "receivers" if effects.method.receivers else effects.method.path,
            "receivers": [str(one) for one in effects.method.receivers],
            "first": [_shown(trace.pairs[0].positive), _shown(trace.pairs[0].negative)],
        }


def _of_noise(noise: Effects | None, node: Node) -> dict[str, Any]:
    names = {"": "share", "_low": "share_low", "_high": "share_high", "_crucial": "crucial"}
    if noise is None or node not in noise.nodes:
        return dict.fromkeys(f"random_weights{end}" for end in names)
    place = noise.nodes.index(node)
    return {f"random_weights{end}": getattr(noise.tested, name)[place].item() for end, name in names.items()}


def _shown(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else " ".join(map(str, prompt))


def _drop(found: Findings) -> list[Any] | None:
    drop = found.knock_out_drop()
    return None if drop is None else [drop[0], *drop[1]]


def _subspace(found: Findings) -> list[Any] | None:
    share = found.subspace_share()
    return None if share is None else list(share)


def _screened(found: Findings) -> list[Any] | None:
    agreement = found.screen_agreement()
    return None if agreement is None else [agreement.value, agreement.method]


def _training(found: Findings) -> list[dict[str, Any]]:
    return [] if found.trained is None else found.trained.table().rows(named=True)


def _training_gain(found: Findings) -> list[Any] | None:
    return None if found.trained is None else list(found.trained.gain(seed=found.method.seed))


# Each is kept once it is done, so that a run that is killed goes on behind the last one.
STAGES: dict[str, Callable[[Findings], Any]] = {
    "components": Findings.components,
    "heads": Findings.heads,
    "mlps": Findings.mlps,
    "ranks": Findings.ranks,
    "edges": Findings.edges,
    "knock_out": Findings.knock_out_rows,
    "drop": _drop,
    "subspace": _subspace,
    "screened": _screened,
    "missed": Findings.missed,
    "mask": Findings.mask,
    "training": _training,
    "training_gain": _training_gain,
    "told": Findings.told,
}
