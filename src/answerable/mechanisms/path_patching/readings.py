"""What heads look at, and what feed-forward parts write, at the last token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.mechanisms.path_patching.tracing import Trace, answer_token
from answerable.subjects.language_model import part, tokenise
from answerable.subjects.language_model.pieces import after_attention

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

CLASSES = ("source", "indicator", "positional", "example", "other")
NEIGHBOURS = 2  # tokens before the last one that count as its neighbours, with itself
MAIN_SHARE = 0.5  # of the mass, that makes a role
RANDOM_WORDS = 200


class Looks(NamedTuple):
    """Where each head looks from the last token, by attention times the length of the value.

    mass : (L, H, classes) mean share over pairs, of all tokens but the first
    first : (L, H) share of the first token, where heads look that look at nothing
    """

    mass: Floats
    first: Floats

    def role(self, layer: int, head: int) -> str:
        """The class that has at least half of the mass, or "mixed"."""
        best = int(self.mass[layer, head].argmax())
        return CLASSES[best] if self.mass[layer, head, best] >= MAIN_SHARE else "mixed"


def looks(trace: Trace) -> Looks | None:
    """Shares of attention times value by class of token; None where the model gives no attention."""
    patterns = trace.positive.patterns
    if any(one is None for one in patterns):
        return None
    masses, firsts = [], []
    for pair_mass, sizes, classes in zip(patterns, trace.positive.value_sizes, token_classes(trace), strict=True):
        weight = pair_mass.double().cpu().numpy()
        norms = sizes.double().cpu().numpy().repeat(weight.shape[1] // sizes.shape[1], axis=1)
        carried = weight * norms
        firsts.append(carried[..., 0] / np.maximum(carried.sum(axis=-1), 1e-300))
        rest = carried[..., 1:] if carried.shape[-1] > 1 else carried
        kinds = np.array(classes[1:] if carried.shape[-1] > 1 else classes)
        total = np.maximum(rest.sum(axis=-1), 1e-300)
        masses.append(np.stack([rest[..., kinds == name].sum(axis=-1) / total for name in CLASSES], axis=-1))
    return Looks(np.mean(masses, axis=0), np.mean(firsts, axis=0))


def token_classes(trace: Trace) -> list[list[str]]:
    """The class of each token of each prompt: of several, the first of source, indicator, positional, example."""
    found = []
    for pair in trace.pairs:
        tokens = tokenise(trace.lm, pair.positive)
        places = tokens.offsets or [(i, i + 1) for i in range(len(tokens.ids))]
        classes = ["other"] * len(places)
        spans = {name: pair.spans.get(name, ()) for name in ("example", "indicator", "source")}
        for i, (start, end) in enumerate(places):
            if any(start < last and end > first for first, last in spans["example"]):
                classes[i] = "example"
            if len(places) - i <= NEIGHBOURS + 1:
                classes[i] = "positional"
            for name in ("indicator", "source"):
                if any(start < last and end > first for first, last in spans[name]):
                    classes[i] = name
        found.append(classes)
    return found


def mlp_readings(trace: Trace, *, seed: int = 0) -> pl.DataFrame:
    """Cosines of what enters a feed-forward part, leaves it and is added by it, with the output rows of words.

    Rows of the output layer are centred first: they share a large common part. The words of each class are the pair's
    own ("answer", "source", "indicator", ...); "random" are words of the whole vocabulary, the same for all pairs,
    with the range that holds 95 % of them.

    Returns
    -------
    columns layer, place (in, out, change), words, cosine, low, high; low and high only for random words
    """
    import polars as pl
    import torch

    weight = part(trace.lm, "unembedding").weight.detach()
    centre = weight.mean(0)
    drawn = np.random.default_rng([seed, 3]).permutation(len(weight))[:RANDOM_WORDS]
    random_rows = torch.nn.functional.normalize(weight[torch.as_tensor(drawn)] - centre, dim=-1)
    by_class = _word_tokens(trace)
    rows: list[tuple[int, str, str, float, float | None, float | None]] = []
    with torch.no_grad():
        for layer in range(len(trace.positive.stream) - 1):
            stream, added = trace.positive.stream, trace.positive.feed_forward[layer]
            entering = after_attention(trace.lm, layer, stream[layer], trace.positive.attention[layer])
            for place, state in (("in", entering), ("out", stream[layer + 1]), ("change", added)):
                if state.shape[-1] != weight.shape[-1]:  # an output layer narrower than the stream
                    continue
                unit = torch.nn.functional.normalize(state, dim=-1)
                for name, tokens in by_class.items():
                    value = _mean_cosine(unit, weight, centre, tokens)
                    if value is not None:
                        rows.append((layer, place, name, value, None, None))
                noise = (unit @ random_rows.T).mean(0).double().cpu().numpy()
                low, high = np.quantile(noise, [0.025, 0.975])
                rows.append((layer, place, "random", float(noise.mean()), float(low), float(high)))
    schema = {
        "layer": pl.Int64, "place": pl.String, "words": pl.String, "cosine": pl.Float64, "low": pl.Float64,
        "high": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _word_tokens(trace: Trace) -> dict[str, list[list[int]]]:
    """By class, for each pair the tokens whose rows are looked for: the first token of each word."""
    classes = list(dict.fromkeys(name for pair in trace.pairs for name in pair.words if name != "answer"))
    found = {"answer": [[answer] for answer in trace.answers]}
    for name in classes:
        found[name] = [
            [
                token
                for word in pair.words.get(name, ())
                if isinstance(pair.positive, str) and (token := answer_token(trace.lm, pair.positive, word)) is not None
            ]
            for pair in trace.pairs
        ]
    return found


def _mean_cosine(unit: Any, weight: Any, centre: Any, tokens: list[list[int]]) -> float | None:
    import torch

    places = [(row, token) for row, some in enumerate(tokens) for token in some]
    if not places:
        return None
    rows, words = (torch.as_tensor(list(one)) for one in zip(*places))
    directions = torch.nn.functional.normalize(weight[words] - centre, dim=-1)
    return float((unit[rows] * directions).sum(-1).mean())
