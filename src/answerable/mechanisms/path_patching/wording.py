"""What was found, in words: summary, verdict, metrics, limits, and what each picture says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from answerable.answer import Figure, Metric, Verdict


def summary(unit: Mapping[str, Any]) -> str:
    """One sentence a person would say."""
    rows = unit["components"]
    crucial = [row for row in rows if row["crucial"]]
    if not crucial:
        least = f"over {unit['threshold']:.3g} of {unit['behaviour']}"
        return f"None of {len(rows)} heads and MLPs carries {least} {_along(unit) or 'by itself'}."
    first = max(crucial, key=lambda row: abs(row["share"]))
    part = "MLP" if first["head"] is None else "head"
    place = first["node"].removeprefix("MLP ")
    verb = "carries" if first["share"] < 0 else "holds back"
    return (
        f"{len(crucial)} of {len(rows)} heads and MLPs are crucial for {_beside(unit['behaviour'], _along(unit))}; "
        f"{part} {place} {verb} most, {abs(first['share']):.0%} of it ({_between(first)})."
    )


def verdict(unit: Mapping[str, Any]) -> Verdict:
    """Whether a few parts carry the behaviour: what was found, and the knock-out that must bear it out."""
    crucial = [row for row in unit["components"] if row["crucial"] and row["effect"] < 0]
    if unit["drop"] is None:
        return Verdict("undecided", "too few different words to rank on and to judge on", "give more pairs")
    step, _, low, high, _ = unit["drop"]
    (leaked, twins), shown = unit["right"][1], f"{low:+.0%} to {high:+.0%} against random heads"
    if twins and leaked > 0.1 * twins:
        reason = f"the model still answers {leaked} of {twins} twins, so the pairs do not isolate the behaviour"
        return Verdict("undecided", reason, "change the twins' examples too")
    if crucial and all(_within_random(row) for row in crucial):
        reason = f"random directions move the answer as much in {crucial[0]['node']}"
        return Verdict("undecided", reason, "patch whole activations, or choose another rank")
    if crucial and all(row["random_weights_crucial"] for row in crucial):
        reason = f"{crucial[0]['node']} would be called crucial in a model of random weights too"
        return Verdict("undecided", reason, "give more pairs, or other twins")
    if crucial and low > 0:
        return Verdict("localised", f"{_parts(crucial)} it, and {step} heads put out cost {shown}")
    if not crucial and _along(unit):
        return Verdict("undecided", f"no part acts {_along(unit)}, which is one route of many", "ask for path mlps")
    if not crucial and unit["subspace"] is not None:
        reason = "whole activations carry it and the direction does not"
        return Verdict("undecided", reason, "patch whole activations, or choose another rank")
    if not crucial and low <= 0:
        least = f"no part carries over {unit['threshold']:.3g} of it"
        return Verdict("spread out", f"{least}, and {step} heads put out cost {shown}")
    if crucial:
        reason = f"{_parts(crucial)} it, but {step} heads put out cost {shown}"
    else:
        reason = f"no part is crucial by itself, but {step} heads put out cost {shown}"
    return Verdict("undecided", reason, "give more pairs")


def _along(unit: Mapping[str, Any]) -> str:
    """The route that effects were asked along, where it is one of many."""
    if unit["path"] == "receivers":
        return f"through {', '.join(unit['receivers'][:3])}{' and others' * (len(unit['receivers']) > 3)}"
    return "along the direct path" if unit["path"] == "direct" else ""


def _beside(behaviour: str, route: str) -> str:
    return f"{behaviour} {route}" if route else behaviour


def _parts(crucial: list[Mapping[str, Any]]) -> str:
    return "one part carries" if len(crucial) == 1 else f"{len(crucial)} parts carry"


def _between(row: Mapping[str, Any]) -> str:
    low, high = sorted((abs(row["share_low"]), abs(row["share_high"])))
    return f"{low:.0%} to {high:.0%}"


def metrics(unit: Mapping[str, Any]) -> dict[str, Metric]:
    """Every number of the answer, with its interval."""
    from answerable.statistics import clopper_pearson_interval

    rows = unit["components"]
    made = {}
    crucial = sum(row["crucial"] for row in rows)
    heads = [row for row in rows if row["head"] is not None]
    made["crucial_share"] = Metric(
        crucial / len(rows), kind="exact", method=f"{crucial} of {len(rows)} components, test against the threshold",
        label="Share of components that are crucial",
    )  # fmt: skip
    made["crucial_heads"] = Metric(
        sum(row["crucial"] for row in heads), unit="heads", kind="exact", method=f"count, of {len(heads)} heads",
        label="Crucial heads",
    )  # fmt: skip
    random = [row for row in rows if row["random_weights"] is not None]
    made["crucial_random_weights"] = Metric(
        sum(row["random_weights_crucial"] for row in random) if random else float("nan"),
        unit="components", kind="exact", role="null", method=f"count, of the {len(random)} largest",
        label="Of the largest, crucial in a model of random weights",
        reason="" if random else "relative effects have no denominator in a model of random weights",
    )  # fmt: skip
    largest = max(rows, key=lambda row: abs(row["share"]))
    made["largest_effect"] = Metric(
        largest["effect"], largest["low"], largest["high"], unit=unit["unit"], method=unit["interval"],
        label=f"Effect of {largest['node']}, the largest",
    )  # fmt: skip
    for name, (right, asked), label in zip(
        ("accuracy_positive", "accuracy_negative"), unit["right"], ("Prompts answered right", "Twins answered right")
    ):
        interval = clopper_pearson_interval(right, asked)
        made[name] = Metric(
            interval.value, interval.low, interval.high, method=interval.method, label=label,
            role="ours" if name == "accuracy_positive" else "control",
        )  # fmt: skip
    made["knock_out_drop"] = _knock_out_metric(unit["drop"])
    made["subspace_share"] = _subspace_metric(unit["subspace"], unit["rank"])
    made["screen_agreement"] = _screen_metric(unit["screened"])
    if unit["missed"] is not None:
        sampled, missed, high = unit["missed"]
        made["screen_missed"] = Metric(
            missed / sampled, 0.0 if not missed else None, high, kind="one_sided",
            method=f"{missed} of {sampled} drawn at random, Clopper and Pearson, 95 %", role="control",
            label="Share of components left to the screen that belong among the largest",
        )  # fmt: skip
    if unit["training_gain"] is not None:
        value, low, high, method = unit["training_gain"]
        made["training_gain"] = Metric(
            value, low, high, unit="nats", method=method,
            label="Log-probability gained by training the parts, less that of random parts",
        )  # fmt: skip
    return made


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


def drawn(unit: Mapping[str, Any]) -> dict[str, Figure]:
    """Every picture of the answer."""
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
    made = {
        "effects": Figure.drawn(figures.effect_map, components, threshold=unit["threshold"]),
        "components": Figure.drawn(figures.components_chart, nodes, threshold=unit["threshold"]),
    }
    in_graph = {edge["sender"] for edge in unit["edges"]}
    made["circuit"] = Figure.drawn(
        figures.circuit_graph, [row for row in components if row["node"] in in_graph], unit["edges"]
    )
    if unit["knock_out"]:
        made["knock_out"] = Figure.drawn(figures.knock_out_chart, unit["knock_out"])
    made |= _readings(unit)
    made["paths"] = _paths_figure(components, worth, unit["path"])
    made["ranks"] = _ranks_figure(unit["ranks"], worth)
    return made


def _readings(unit: Mapping[str, Any]) -> dict[str, Figure]:
    """What heads look at, feed-forward parts write and training does, as far as each was found."""
    from . import readings_figures as figures

    made = {}
    if unit["heads"]:
        sizes = {row["node"]: abs(row["share"]) for row in unit["components"]}
        heads = [row | {"node": f"{row['layer']}.{row['head']}"} for row in unit["heads"]]
        heads.sort(key=lambda row: -sizes[row["node"]])
        made["roles"] = Figure.drawn(figures.roles_chart, heads)
    if any(row["place"] == "out" for row in unit["mlps"]):
        made["writing"] = Figure.drawn(figures.writing_chart, unit["mlps"])
    if unit["training"]:
        made["training"] = Figure.drawn(figures.training_chart, unit["training"])
    return made


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


def limits(unit: Mapping[str, Any]) -> list[str]:
    """What the method cannot say about this subject."""
    told = [
        "An effect says what the answer loses when a part is the twin's, not what it is for; other twins differ.",
        "Only the last token is patched: what earlier tokens hand on through attention stays as it is.",
        f"Intervals take the {unit['units']} units as independent; names that pairs share make them too narrow.",
    ]
    if unit["rank"] is not None:
        told.append(
            f"The direction depends on its rank, {unit['rank']} here, which the paper does not state; see the ranks."
        )
        over = [row["node"] for row in unit["components"] if row["crucial"] and _dormant(row)]
        if over:
            told.append(
                f"The subspace of {', '.join(over[:5])} moves the answer more than the whole activation, or the other "
                "way: it may act through a pathway that is dormant otherwise."
            )
        inside = [row["node"] for row in unit["components"] if row["crucial"] and _within_random(row)]
        if inside:
            told.append(
                f"Random directions move the answer as much in {', '.join(inside[:5])}: the direction says little."
            )
    if any(row["crucial"] and row["effect"] > 0 for row in unit["components"]):
        told.append("Some crucial components hold the answer back: their share is positive.")
    if unit["right"][1][0]:
        told.append(f"The model still answers {unit['right'][1][0]} of {unit['right'][1][1]} twins right.")
    if unit["metric"] == "relative_logit":
        told.append("A logit has no zero: adding a constant to all logits changes relative effects and nothing else.")
    return told + list(unit["notes"])


def _dormant(row: Mapping[str, Any]) -> bool:
    return bool(row["effect"] * row["full_effect"] <= 0 or abs(row["effect"]) > abs(row["full_effect"]))


def _within_random(row: Mapping[str, Any]) -> bool:
    return row["random_low"] is not None and bool(row["random_low"] <= row["effect"] <= row["random_high"])
