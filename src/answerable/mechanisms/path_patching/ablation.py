"""Whether the components that were found carry the behaviour: they are put out on other words, in order of rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.mechanisms.path_patching import checks
from answerable.mechanisms.path_patching.effects import Effects
from answerable.mechanisms.path_patching.readout import Readout, most_likely
from answerable.mechanisms.path_patching.sweep import Node, activations, patched_sets
from answerable.mechanisms.path_patching.tracing import Trace
from answerable.subjects.language_model import LanguageModel, capture, intervene
from answerable.subjects.language_model.pieces import final_state

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnockOut:
    """Answers with more and more components put out.

    Parameters
    ----------
    steps : how many components, rising
    ranked : the components in order
    right : (steps, pairs) whether the answer is right without the first of them
    metric : (steps, pairs) the metric then
    random_right, random_metric : (steps, draws, pairs), as many random components of the same kind put out instead
    """

    steps: tuple[int, ...]
    ranked: tuple[Node, ...]
    right: npt.NDArray[np.bool_]
    metric: Floats
    random_right: npt.NDArray[np.bool_]
    random_metric: Floats

    def joined(self, other: KnockOut) -> KnockOut:
        """Both together: the pairs of one behind those of the other, at the steps of both."""
        if self.steps != other.steps:
            raise BadInput("the steps differ", where="knock-out", mend="take the same steps")
        names = ("right", "metric", "random_right", "random_metric")
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)], axis=-1) for name in names}
        return KnockOut(self.steps, self.ranked, **both)

    def table(self) -> pl.DataFrame:
        """One row for each step: accuracy with its interval, and what random components do."""
        import polars as pl

        from answerable.statistics import clopper_pearson_interval

        rows = []
        for i, step in enumerate(self.steps):
            n = self.right.shape[1]
            interval = clopper_pearson_interval(int(self.right[i].sum()), n)
            random = self.random_right[i].mean(axis=-1)
            rows.append(
                {
                    "knocked_out": step,
                    "accuracy": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "metric": float(self.metric[i].mean()),
                    "random_accuracy": float(random.mean()),
                    "random_low": float(random.min()),
                    "random_high": float(random.max()),
                    "random_metric": float(self.random_metric[i].mean()),
                }
            )
        return pl.DataFrame(rows)


def _same_weights(one: LanguageModel, other: LanguageModel) -> bool:
    import torch

    if one.model is other.model:
        return True
    here, there = one.model.state_dict(), other.model.state_dict()
    return here.keys() == there.keys() and all(
        value.shape == there[name].shape and torch.equal(value.cpu(), there[name].cpu()) for name, value in here.items()
    )


def knock_out(
    trace: Trace,
    effects: Effects,
    *,
    steps: Sequence[int] = (0, 1, 2, 4, 8, 16),
    draws: int = 20,
    kind: Literal["head", "mlp"] | None = "head",
    by: Literal["drop", "size"] = "drop",
    positions: Literal["end", "all"] = "end",
    seed: int = 0,
) -> KnockOut:
    """Replace components by their mean over the twins, cumulatively in order of rank.

    Parameters
    ----------
    trace : pairs to judge on, others than those of ``effects``
    effects : what ranks the components, and whose twins' means are put in
    steps : how many components are put out, rising; those beyond all there are left out
    draws : random sets of the same number and kind at each step
    kind : "head", "mlp", or None for both
    by : "drop" ranks by how far the patch lowers the metric, "size" by how far it moves it either way
    positions : "end", the last token alone, or "all" tokens, each by the mean over all tokens of the twins
    seed : of the draws

    Raises
    ------
    BadInput : pairs that were ranked on too, another model, steps that do not rise
    """
    shared = set(trace.units) & set(effects.trace.units)
    if shared:
        raise BadInput(
            f"{len(shared)} units stand in both sets of pairs, the first {sorted(shared)[0]!r:.60}",
            where="knock-out",
            mend="judge on other words than those that ranked the components",
        )
    if not _same_weights(trace.lm, effects.trace.lm):
        raise BadInput(
            f"other weights, {effects.trace.lm.name}, ranked them", where=trace.lm.name, mend="judge the same model"
        )
    checks.choice(positions, "positions", ("end", "all"))
    checks.whole(draws, "draws", 1)
    checks.whole(seed, "seed", 0)
    ranked = effects.ranked(kind, by=by)
    chosen = [step for step in steps if checks.whole(step, "steps", 0) <= len(ranked)]
    if not chosen or any(a >= b for a, b in itertools.pairwise(chosen)):
        raise BadInput(f"steps are {list(steps)!r:.80}", where="knock-out", mend="give rising numbers from 0")
    rng = np.random.default_rng([seed, 2])
    sets: list[list[Node]] = [ranked[:step] for step in chosen]
    for step in chosen:
        sets += [[ranked[i] for i in rng.permutation(len(ranked))[:step]] for _ in range(draws)]
    readout = effects.method.readout(trace)
    unlike = sorted({tuple(sorted(one)) for one in sets})  # small and full sets come again and again
    place = [unlike.index(tuple(sorted(one))) for one in sets]
    judged = (_at_the_end if positions == "end" else _everywhere)(trace, effects, unlike, readout)
    right, metric = judged[0][place], judged[1][place]
    n = len(chosen)
    shape = (n, draws, len(trace))
    return KnockOut(
        tuple(chosen), tuple(ranked), right[:n], metric[:n], right[n:].reshape(shape), metric[n:].reshape(shape)
    )


def drop_against_random(
    found: KnockOut, step: int, *, units: Sequence[str], seed: int, resamples: int = 2000
) -> tuple[float, float, float, str]:
    """Accuracy without as many random components, less accuracy without the ranked ones, with its interval."""
    from answerable.statistics import bootstrap_interval

    place = found.steps.index(step)
    difference = found.random_right[place].mean(axis=0) - found.right[place]
    interval = bootstrap_interval(
        lambda rows: rows.mean(axis=-1), difference, seed=seed, resamples=resamples, vectorized=True,
        clusters=np.asarray(units), bounds=(-1.0, 1.0),
    )  # fmt: skip
    return interval.value, interval.low, interval.high, interval.method


def _at_the_end(
    trace: Trace, effects: Effects, sets: Sequence[Sequence[Node]], readout: Readout
) -> tuple[npt.NDArray[np.bool_], Floats]:
    nodes = {node for nodes in sets for node in nodes}
    means = {node: activations(effects.trace.negative, node).mean(0) for node in nodes}
    return _answers(trace, patched_sets(trace.lm, trace.positive, sets, means), readout)


def _answers(trace: Trace, final: Any, readout: Readout) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Of (sets, pairs, m): whether each answer is right, and the metric."""
    import torch

    with torch.no_grad():
        said = most_likely(trace.lm, final.flatten(0, 1)).unflatten(0, final.shape[:2])
        metric = readout(final).double().cpu().numpy()
    answers = torch.as_tensor(list(trace.answers), device=said.device)
    return (said == answers).cpu().numpy(), metric


def _everywhere(
    trace: Trace, effects: Effects, sets: Sequence[Sequence[Node]], readout: Readout
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Whole forward passes, the nodes of a set replaced at every token."""
    import torch

    lm = trace.lm
    nodes = sorted({node for nodes in sets for node in nodes})
    means = _means_over_tokens(effects.trace, nodes)
    count = len(trace.positive.stream) - 1
    finals = []
    with torch.no_grad():
        for chosen in sets:
            stream = torch.empty_like(trace.positive.stream[-1])
            with intervene(lm, _replacements(chosen, means)), capture(lm, [f"stream.{count}"]) as found:
                for rows, ids in _batches([pair.positive for pair in trace.pairs], lm):
                    lm.model(ids, use_cache=False)
                    stream[rows] = found[f"stream.{count}"][:, -1]
            finals.append(final_state(lm, stream))
    return _answers(trace, torch.stack(finals), readout)


def _means_over_tokens(trace: Trace, nodes: Sequence[Node]) -> dict[Node, Any]:
    import torch

    sites = sorted({_site(node) for node in nodes})
    sums: dict[str, Any] = {}
    tokens = 0
    with torch.no_grad(), capture(trace.lm, sites) as found:
        for _, ids in _batches([pair.negative for pair in trace.pairs], trace.lm):
            trace.lm.model(ids, use_cache=False)
            tokens += ids.numel()
            for site in sites:
                total = found[site].flatten(0, 1).sum(0)
                sums[site] = total if site not in sums else sums[site] + total
    return {
        node: (sums[_site(node)][node.head] if node.kind == "head" else sums[_site(node)]) / tokens for node in nodes
    }


def _site(node: Node) -> str:
    return f"{'heads' if node.kind == 'head' else 'feed_forward'}.{node.layer}"


def _replacements(nodes: Sequence[Node], means: dict[Node, Any]) -> dict[str, Any]:
    by_site: dict[str, list[Node]] = {}
    for node in nodes:
        by_site.setdefault(_site(node), []).append(node)

    def put(chosen: list[Node]) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone()
            for node in chosen:
                if node.kind == "head":
                    changed[:, :, node.head] = means[node]
                else:
                    changed[:] = means[node]
            return changed

        return change

    return {site: put(chosen) for site, chosen in by_site.items()}


def _batches(prompts: Sequence[Any], lm: Any) -> Iterator[tuple[list[int], Any]]:
    """Prompts of one length together, as token ids."""
    import torch

    from answerable.subjects.language_model import tokenise

    ids = [tokenise(lm, prompt).ids for prompt in prompts]
    for length in sorted({len(row) for row in ids}):
        rows = [i for i, row in enumerate(ids) if len(row) == length]
        yield rows, torch.tensor([ids[i] for i in rows], device=lm.model.get_input_embeddings().weight.device)
