"""The answer's tables: their rows, and what their columns say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from answerable.answer import Table

from .alignment import ALIGNED as CLOSE
from .alignment import UNALIGNED
from .catalogue import COLUMNS
from .judging import Game, accuracy, lexical_judge, questions, read_answers
from .probing import balanced_split, detectors
from .scores import NAMES, concepts_of, games_of

if TYPE_CHECKING:
    from answerable.run import Run

    from .alignment import Alignment
    from .catalogue import Card, Catalogue
    from .given import Given
    from .question import FeedForwardMemories
    from .reading import Reading
    from .scores import Labelled, Score


MOST_ROWS = 200_000  # of the catalogue in an answer; beyond, the layer that is compared alone
LAYERS = {
    "layer": "number of the layer, from 0",
    "memories": "how many memories it has",
    "alive": "share of memories above 0 at some token [1]",
    "alive_negative": "share of memories below 0 at some token [1]",
    "ever_nonzero": "share of memories that are not 0 at some token [1]",
    "density": "share of activations above 0 [1]",
    "explained": "explained variance of the k largest activations of each token [1]; missing where nothing varies",
    "explained_most": "the same for the largest k recorded [1]",
    "first_token": "share of the output's squared size that falls on the first token of each run [1]; where it is"
    " large, explained variance is of these few tokens",
    "value_length": "median length of a value",
}
EXPLAINED = {
    "layer": "number of the layer, from 0",
    "k": "activations kept of each token, the largest by size",
    "explained": "explained variance of what these write [1]; missing where the output does not vary",
}
CONTEXTS = {
    "layer": "number of the layer, from 0",
    "neuron": "number of the memory in its layer, from 0",
    "sign": "side of zero: + or -",
    "rank": "1 for the largest activation on that side",
    "activation": "activation at the token",
    "before": "tokens before it",
    "token": "the token",
    "after": "tokens after it",
    "text": "number of the text, from 1",
}
SHADES = {
    "layer": "number of the layer, from 0",
    "neuron": "number of the memory in its layer, from 0",
    "sign": "side of zero: + or -",
    "rank": "1 for the context with the largest activation on that side",
    "offset": "place of the token: 0 is where that activation is, -1 the token before it",
    "token": "the token",
    "activation": "the memory's activation at the token; missing at a token that begins every text",
}
WORDS = {
    "layer": "number of the layer, from 0",
    "neuron": "number of the memory in its layer, from 0",
    "sign": "side of zero: + or -; a negative activation writes the other way",
    "promoted": "tokens that it raises most at the output layer, the most first",
    "demoted": "tokens that it lowers most, the most first",
    "density": "share of tokens with the activation on that side [1]",
    "strength": "mean size of the activation over these tokens",
    "value_length": "length of the value: what an activation of 1 writes",
}
SCORES = {
    "metric": "what is measured, the most reliable first",
    "setting": "how",
    "features": "the feature set",
    "role": "ours: the model's memories; baseline: learned; control: random",
    "value": "the score [1]; missing where it is not defined, with the reason in how",
    "low": "lower end; missing for a count",
    "high": "upper end; missing for a count",
    "how": "how the ends were made",
}
ALIGNED = {
    "features": "the feature set whose features are counted",
    "other": "the set they are compared with",
    "count": "how many features",
    "mean": "mean of their largest cosines [1]",
    "largest": "largest of their largest cosines [1]",
    "unaligned": "share with a largest cosine below 0.3 [1]",
    "aligned": "share with one of 0.9 or more [1]",
    "mean_absolute": "mean of the largest |cosine| [1]",
    "matched": "mean cosine in the one-to-one matching [1]; missing within one set",
    "null_mean": "mean largest cosine of random directions with as many random ones [1]",
    "null_99": "99th percentile of the same [1]",
    "above_null": "share above that percentile [1]",
    "dead": "features that write nothing, for which no cosine is defined",
}
COUNTERPARTS = {
    "features": "the learned feature set",
    "feature": "number of the learned feature, from 0",
    "cosine": "largest cosine with a memory of the layer [1]; missing for a dead value",
    "memory": "number of that memory; -1 for none",
    "above_null": "whether it lies above the 99th percentile of random directions",
}
HISTOGRAM = {
    "features": "the feature set",
    "other": "the set it is compared with",
    "low": "lower edge of the bin [1]",
    "high": "upper edge of the bin [1]",
    "share": "share of features whose largest cosine lies in it [1]",
    "null_share": "the same of random directions [1]",
}
DETECTORS = {
    "concept": "value of the first attribute",
    "features": "the feature set",
    "feature": "number of the feature, from 0",
    "chosen_auroc": "AUROC of its mean activation on the half of the texts that it was chosen on [1]",
    "auroc": "AUROC on the other half [1]; below 0.5 where it is higher without the concept",
    "low": "lower end of the 95 % interval of auroc",
    "high": "upper end",
}
GAMES = {
    "features": "the feature set",
    "feature": "number of the feature, from 0",
    "game": "the game as one line of JSON: examples with active or not, then texts to tell",
    "lexical": "accuracy of the lexical judge [1]",
    "judge": "accuracy of the judge whose answers were given [1]; missing without",
}


class Games(NamedTuple):
    """Games of auto-interpretation by feature set, and another judge's accuracy by set and feature."""

    by_set: dict[str, list[Game]]
    answers: dict[str, dict[int, float]]


def games_of_sets(readings: Sequence[Reading], given: Given, run: Run) -> Games | None:
    """The games of the first seed, for another judge, with the answers of one where they were given."""
    if given.labelled is None:
        return None
    by_set = {
        reading.features.name: games_of(reading, given.labelled.texts, run.rng("games", 0)) for reading in readings
    }
    return Games(by_set, {} if given.answers is None else read_answers(given.answers, by_set))


def tables_of(
    question: FeedForwardMemories,
    *,
    catalogue: Catalogue,
    cards: Sequence[Card],
    scores: Sequence[Score],
    alignments: Sequence[tuple[str, str, Alignment]],
    given: Given,
    readings: Sequence[Reading],
    games: Games | None,
    run: Run,
) -> dict[str, Table]:
    """All tables of the answer by name."""
    layer = given.layer
    whole = catalogue.table()
    if whole.height > MOST_ROWS:
        whole = whole.filter(pl.col("layer") == layer)
    words = word_rows(catalogue, cards, question.words, layer, question.top)
    tables = {
        "scores": Table(score_rows(scores), SCORES, title="Scores, the most reliable first"),
        "layers": Table(layer_rows(catalogue, question.k), LAYERS, title="Layer by layer"),
        "explained": Table(explained_rows(catalogue), EXPLAINED, title="Explained variance by activations kept"),
        "cards": Table(words, WORDS, title="What memories write"),
        "contexts": Table(context_rows(cards), CONTEXTS, title="Strongest contexts of the memories on cards"),
        "shades": Table(shade_rows(cards), SHADES, title="Activations along the contexts that are drawn"),
        "alignment": Table(aligned_rows(alignments), ALIGNED, title="Counterparts among other features"),
        "histogram": Table(histogram_rows(alignments), HISTOGRAM, title="Largest cosines, and those of chance"),
        "catalogue": Table(whole, COLUMNS, title="Every memory, its two sides apart"),
    }
    learned = [counterpart_rows(name, found) for _, name, found in alignments[1:]]
    if learned:
        title = "Learned features, those without counterpart first"
        tables["counterparts"] = Table(pl.concat(learned), COUNTERPARTS, title=title)
    if given.labelled is not None:
        title = "Features that tell each concept best, judged on other texts"
        tables["detectors"] = Table(detector_rows(readings, given.labelled, run.rng), DETECTORS, title=title)
    if games is not None:
        tables["games"] = Table(game_rows(games), GAMES, title="Games of auto-interpretation")
    return tables


def score_rows(scores: Sequence[Score]) -> pl.DataFrame:
    """One row for each score."""
    rows = [
        {**{name: getattr(one, name) for name in SCORES}, "metric": NAMES[one.metric], "value": known(one.value)}
        for one in scores
    ]
    kinds = {**dict.fromkeys(SCORES, pl.String), "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=kinds)


def known(value: float) -> float | None:
    """A number, or None for one that is not defined."""
    return None if value != value else value


def layer_rows(catalogue: Catalogue, k: int) -> pl.DataFrame:
    """One row for each layer."""

    rows = []
    at = list(catalogue.ks).index(k) if k in catalogue.ks else None
    for layer in catalogue.layers:
        alive = catalogue.alive(layer)
        explained = catalogue.explained[layer]
        rows.append(
            {
                "layer": layer,
                "memories": catalogue.counts[layer].counts.shape[1],
                "alive": alive["positive"],
                "alive_negative": alive["negative"],
                "ever_nonzero": alive["either"],
                "density": float(catalogue.counts[layer].density[0].mean()),
                "explained": None if at is None else known(float(explained[at])),
                "explained_most": known(float(explained[-1])) if len(explained) else None,
                "first_token": catalogue.at_first.get(layer),
                "value_length": float(np.median(catalogue.lengths[layer])),
            }
        )
    kinds = {name: pl.Int64 if name in ("layer", "memories") else pl.Float64 for name in LAYERS}
    return pl.DataFrame(rows, schema=kinds)


def explained_rows(catalogue: Catalogue) -> pl.DataFrame:
    """One row for each layer and k."""

    rows = [
        {"layer": layer, "k": k, "explained": known(float(value))}
        for layer in catalogue.layers
        for k, value in zip(catalogue.ks, catalogue.explained[layer])
    ]
    return pl.DataFrame(rows, schema={"layer": pl.Int64, "k": pl.Int64, "explained": pl.Float64})


def word_rows(catalogue: Catalogue, cards: Sequence[Card], words: str, layer: int, top: int) -> pl.DataFrame:
    """What the memories on cards write or, where ``words`` is "layer", those of the whole layer too."""

    rows = [
        {
            **{
                name: getattr(card, name) for name in ("layer", "neuron", "sign", "density", "strength", "value_length")
            },
            "promoted": _listed(card.promoted),
            "demoted": _listed(card.demoted),
        }
        for card in cards
    ]
    if words == "layer":
        found, lengths = catalogue.counts[layer], catalogue.lengths[layer]
        there = {(card.neuron, card.sign) for card in cards}
        promoted, demoted = catalogue.words(layer, range(len(lengths)), top=top)
        for j in range(len(promoted)):
            for side, sign in enumerate("+-"):
                if (j, sign) in there or not found.counts[side, j]:
                    continue
                up, down = (promoted[j], demoted[j]) if side == 0 else (demoted[j], promoted[j])
                rows.append(
                    {
                        "layer": layer, "neuron": j, "sign": sign, "promoted": _listed(up), "demoted": _listed(down),
                        "density": float(found.density[side, j]), "strength": float(found.strength[side, j]),
                        "value_length": float(lengths[j]),
                    }
                )  # fmt: skip
    texts = ("sign", "promoted", "demoted")
    kinds = {name: pl.String if name in texts else pl.Float64 for name in WORDS} | {
        "layer": pl.Int64,
        "neuron": pl.Int64,
    }
    return pl.DataFrame(rows, schema=kinds)


def _listed(tokens: Sequence[str]) -> str:
    return ", ".join(token.strip() or repr(token) for token in tokens)


def context_rows(cards: Sequence[Card]) -> pl.DataFrame:
    """The strongest contexts of each card."""

    rows = [
        {
            "layer": card.layer,
            "neuron": card.neuron,
            "sign": card.sign,
            "rank": rank,
            "activation": context.value,
            "before": "".join(context.tokens[: context.at]),
            "token": context.tokens[context.at],
            "after": "".join(context.tokens[context.at + 1 :]),
            "text": context.text + 1,
        }
        for card in cards
        for rank, context in enumerate(card.contexts, 1)
    ]
    whole = ("layer", "neuron", "rank", "text")
    kinds = {name: pl.Int64 if name in whole else pl.String for name in CONTEXTS} | {"activation": pl.Float64}
    return pl.DataFrame(rows, schema=kinds)


def shade_rows(cards: Sequence[Card]) -> pl.DataFrame:
    """Every token of the contexts that are drawn, with the memory's activation there."""
    rows = [
        {
            "layer": card.layer,
            "neuron": card.neuron,
            "sign": card.sign,
            "rank": rank,
            "offset": place - context.at,
            "token": token,
            "activation": known(value),
        }
        for card in cards
        for rank, context in enumerate(card.contexts, 1)
        for place, (token, value) in enumerate(zip(context.tokens, context.values))
    ]
    whole = ("layer", "neuron", "rank", "offset")
    kinds = {name: pl.Int64 if name in whole else pl.String for name in SHADES} | {"activation": pl.Float64}
    return pl.DataFrame(rows, schema=kinds)


def _sides(alignments: Sequence[tuple[str, str, Alignment]]) -> list[tuple[str, str, Any, Any, Any, bool]]:
    """Each comparison from both sides: whose features, the other's name, cosines, absolute ones, null, within."""
    found = []
    for first, second, one in alignments:
        found.append((first, second, one.cosine, one.absolute, one.null, first == second))
        if first != second:
            found.append((second, first, one.other_cosine, one.other_absolute, one.other_null, False))
    return found


def aligned_rows(alignments: Sequence[tuple[str, str, Alignment]]) -> pl.DataFrame:
    """One row for each comparison and side."""

    matched = {(a, b): one.matched_cosine for a, b, one in alignments}
    rows = []
    for name, other, cosine, absolute, null, within in _sides(alignments):
        live = cosine[~np.isnan(cosine)]
        pairs = matched.get((name, other), matched.get((other, name)))
        limit = float(np.quantile(null, 0.99))
        rows.append(
            {
                "features": name,
                "other": other,
                "count": len(cosine),
                "mean": known(float(live.mean())) if len(live) else None,
                "largest": float(live.max()) if len(live) else None,
                "unaligned": float((live < UNALIGNED).mean()) if len(live) else None,
                "aligned": float((live >= CLOSE).mean()) if len(live) else None,
                "mean_absolute": float(np.nanmean(absolute)) if len(live) else None,
                "matched": None if within or pairs is None or np.isnan(pairs).all() else float(np.nanmean(pairs)),
                "null_mean": float(null.mean()),
                "null_99": limit,
                "above_null": float((live > limit).mean()) if len(live) else None,
                "dead": int(np.isnan(cosine).sum()),
            }
        )
    texts = ("features", "other")
    kinds = {name: pl.String if name in texts else pl.Float64 for name in ALIGNED} | {
        "count": pl.Int64,
        "dead": pl.Int64,
    }
    return pl.DataFrame(rows, schema=kinds)


def histogram_rows(alignments: Sequence[tuple[str, str, Alignment]]) -> pl.DataFrame:
    """Bins of the largest cosines of each comparison and side."""

    rows = []
    for name, other, cosine, _, null, _ in _sides(alignments):
        live = cosine[~np.isnan(cosine)]
        low = -0.2 if not len(live) or min(live.min(), null.min()) >= -0.2 else -1.0
        edges = np.round(np.linspace(low, 1.0, round((1 - low) / 0.05) + 1), 2)
        shares, nulls = (
            np.histogram(np.clip(values, low, 1), edges)[0] / max(1, len(values)) for values in (live, null)
        )
        rows += [
            {"features": name, "other": other, "low": a, "high": b, "share": share, "null_share": null_share}
            for a, b, share, null_share in zip(edges, edges[1:], shares, nulls)
        ]
    return pl.DataFrame(rows)


def counterpart_rows(name: str, found: Alignment) -> pl.DataFrame:
    """Each learned feature with the memory nearest to it."""

    limit = float(np.quantile(found.other_null, 0.99))
    return pl.DataFrame(
        {
            "features": [name] * len(found.other_cosine),
            "feature": np.arange(len(found.other_cosine)),
            "cosine": pl.Series(found.other_cosine.astype(np.float64)).fill_nan(None),
            "memory": found.other_nearest,
            "above_null": np.nan_to_num(found.other_cosine, nan=-1.0) > limit,
        }
    ).sort("cosine", nulls_last=True, maintain_order=True)


def game_rows(games: Games) -> pl.DataFrame:
    """One row for each game, with the accuracy of the lexical judge and of another where there is one."""
    rows = [
        {
            "features": name,
            "feature": game.feature,
            "game": questions([game]).strip(),
            "lexical": accuracy(game, lexical_judge(game)),
            "judge": games.answers.get(name, {}).get(game.feature),
        }
        for name, few in games.by_set.items()
        for game in few
    ]
    texts = ("features", "game")
    kinds = {name: pl.String if name in texts else pl.Float64 for name in GAMES} | {"feature": pl.Int64}
    return pl.DataFrame(rows, schema=kinds)


def detector_rows(
    readings: Sequence[Reading], labelled: Labelled, rng: Callable[..., np.random.Generator]
) -> pl.DataFrame:
    """For each concept and feature set, the features that tell it best by AUROC."""
    rows = []
    for concept, labels in concepts_of(labelled).items():
        split = balanced_split(labels, rng("detectors", concept), share=0.5)
        for reading in readings:
            rows += [
                {
                    "concept": concept,
                    "features": reading.features.name,
                    "feature": one.feature,
                    "chosen_auroc": one.chosen,
                    "auroc": one.auroc.value,
                    "low": one.auroc.low,
                    "high": one.auroc.high,
                }
                for one in detectors(reading.means, labels, split)
            ]
    texts = ("concept", "features")
    kinds = {name: pl.String if name in texts else pl.Float64 for name in DETECTORS} | {"feature": pl.Int64}
    return pl.DataFrame(rows, schema=kinds)
