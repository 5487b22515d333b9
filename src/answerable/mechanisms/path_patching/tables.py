"""The tables of an answer: what each column holds, and the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from answerable.answer import Table

if TYPE_CHECKING:
    import polars as pl

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
    "random_weights": "share of the same part where all weights are random, for the largest components [1]",
    "random_weights_low": "lower end of its interval [1]",
    "random_weights_high": "upper end of its interval [1]",
    "random_weights_crucial": "whether it would be called crucial there, of these components alone",
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
    "cosine": "cosine of the direction with the mean difference; null where the direction is undefined [1]",
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
    "receiver": "head, whose query, key and value alone take the change in, MLP, or output",
    "layer": "layer of the sender, from 0",
    "to_layer": "layer of the receiver; null for the output",
    "share": "effect divided by what the behaviour is worth [1]",
}
MASK = {
    "parameter": "parameter of the model",
    "shape": "its shape",
    "trained": "numbers of it in slices of the largest components that carry the behaviour [numbers]",
    "scale": "factor of its gradient: heads of the layer over heads trained [1]",
}
TRAINING = {
    "way": "what was trained: nothing, the parts that carry the behaviour, as many random ones, or everything",
    "parameters": "numbers that were free to move [numbers]",
    "accuracy": "share of other prompts answered right afterwards [1]",
    "low": "lower end of its interval (Clopper and Pearson, 95 %) [1]",
    "high": "upper end of its interval [1]",
    "log_probability": "mean log-probability of their answers [nats]",
    "other_loss": "rise of the loss on the words of the twins, which nobody taught [nats per token]",
}
PAIRS = {
    "what": "what the line counts or shows",
    "value": "the number, or the text of the first pair",
}


def tables(unit: Mapping[str, Any]) -> dict[str, Table]:
    """Every table of the answer, by name."""
    made = {
        "components": Table(_frame(unit["components"], COMPONENTS), COMPONENTS, title="Components, largest drop first"),
        "ranks": Table(_frame(unit["ranks"], RANKS), RANKS, title="The largest components at other ranks"),
        "edges": Table(_frame(unit["edges"], EDGES), EDGES, title="Which component acts through which"),
        "mlps": Table(_frame(unit["mlps"], MLPS), MLPS, title="What feed-forward parts write"),
        "pairs": _pairs_table(unit),
    }
    for name, titles, title in (
        ("knock_out", KNOCK_OUT, "Knock-out on other words"),
        ("heads", HEADS, "Where each head looks"),
        ("training", TRAINING, "Training on half of the words, judged on the other"),
        ("mask", MASK, "What training of the largest parts alone would move"),
    ):
        if unit[name]:
            made[name] = Table(_frame(unit[name], titles), titles, title=title)
    return made


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
