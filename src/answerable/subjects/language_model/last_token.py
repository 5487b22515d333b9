"""The last token of many prompts: what is there, and what comes out when it is changed.

In a model that reads from left to right nothing sees the last token but itself. Whatever is changed there leaves the
keys and values of all earlier tokens as they are, so each prompt is read once, up to its last token; that token alone
is then run again, as often as wanted, in one batch of rows. Prompts of the same length share a batch, so that there is
no padding, and what they begin with alike, as the same examples, is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.language_model import parts, pieces
from answerable.subjects.language_model.hooks import capture
from answerable.subjects.language_model.loading import LanguageModel
from answerable.subjects.language_model.tokens import tokenise

SITES = ("stream", "heads", "attention", "feed_forward")
ROWS = 1024  # of one layer at once
TOKENS = 4096  # of all prompts of a batch together
CALL = 16  # tokens that cost about as much as one more call


@dataclass(frozen=True, eq=False)
class Prefix:
    """All tokens but the last of n prompts of one length, as the layers see them.

    Parameters
    ----------
    rows : which prompts, as places in what was recorded
    length : tokens of each prompt, the last one included
    keys, values : per layer (n, G, earlier tokens that the layer sees, d), or None for prompts of one token
    calls : per layer the positional and named arguments of a call with one token
    """

    rows: tuple[int, ...]
    length: int
    keys: list[Any]
    values: list[Any]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]

    def select(self, places: Sequence[int]) -> Prefix:
        """The prompts at these places of ``rows``."""
        chosen = list(places)
        keys, values = ([None if one is None else one[chosen] for one in kept] for kept in (self.keys, self.values))
        return Prefix(tuple(self.rows[i] for i in chosen), self.length, keys, values, self.calls)


@dataclass(frozen=True, eq=False)
class LastToken:
    """What is at the last token of n prompts.

    Parameters
    ----------
    stream : (L + 1, n, m), what enters each layer; the last: what leaves the last layer
    heads : (L, n, H, d), each head before the output projection
    attention, feed_forward : (L, n, m), what each part adds to the stream
    patterns : per prompt (L, H, tokens), attention of the last token; None where the model gives none
    value_sizes : per prompt (L, G, tokens), length of each value vector
    prefixes : the earlier tokens, a batch of prompts of one length each; empty where they were not asked for
    """

    stream: Any
    heads: Any
    attention: Any
    feed_forward: Any
    patterns: list[Any]
    value_sizes: list[Any]
    prefixes: list[Prefix]

    def __len__(self) -> int:
        return int(self.stream.shape[1])

    def select(self, rows: Sequence[int]) -> LastToken:
        """The prompts ``rows``, in that order."""
        place = {row: i for i, row in enumerate(rows)}
        prefixes = []
        for prefix in self.prefixes:
            kept = [i for i, row in enumerate(prefix.rows) if row in place]
            if kept:
                chosen = prefix.select(kept)
                renamed = tuple(place[row] for row in chosen.rows)
                prefixes.append(Prefix(renamed, prefix.length, chosen.keys, chosen.values, chosen.calls))
        chosen_rows = list(rows)
        return LastToken(
            **{site: getattr(self, site)[:, chosen_rows] for site in SITES},
            patterns=[self.patterns[i] for i in chosen_rows],
            value_sizes=[self.value_sizes[i] for i in chosen_rows],
            prefixes=prefixes,
        )


def record_last(lm: LanguageModel, prompts: Sequence[str | Sequence[int]], *, prefixes: bool = True) -> LastToken:
    """Read prompts and keep what is at their last tokens.

    Parameters
    ----------
    prompts : texts or rows of token ids, without padding
    prefixes : whether to keep the earlier tokens, so that the last one can be run again

    Raises
    ------
    BadInput : no prompts, a prompt without tokens, or a model that reads both ways
    """
    import torch

    if not lm.family.causal:
        raise BadInput(
            f"the {lm.family.name} family reads both ways, so that its last token changes the others",
            where=lm.name,
            mend="choose a model that reads from left to right",
        )
    if not prompts:
        raise BadInput("there are no prompts", mend="give at least one")
    ids = [tokenise(lm, prompt).ids for prompt in prompts]
    found: list[tuple[tuple[int, ...], dict[str, Any], list[Any], list[Any], Prefix]] = []
    with torch.no_grad():
        for rows in _batches([len(row) for row in ids]):
            batch = torch.tensor([ids[row] for row in rows], device=lm.model.get_input_embeddings().weight.device)
            found.append((rows, *_record(lm, batch, rows)))
    order = torch.tensor([row for rows, *_ in found for row in rows]).argsort()
    joined = {site: torch.cat([sites[site] for _, sites, *_ in found], 1)[:, order] for site in SITES}
    by_row = {
        row: (pattern, sizes)
        for rows, _, patterns, norms, _ in found
        for row, pattern, sizes in zip(rows, patterns, norms)
    }
    return LastToken(
        **joined,
        patterns=[by_row[row][0] for row in range(len(ids))],
        value_sizes=[by_row[row][1] for row in range(len(ids))],
        prefixes=[prefix for *_, prefix in found] if prefixes else [],
    )


def run_layer(lm: LanguageModel, prefix: Prefix, layer: int, rows: Any) -> Any:
    """A layer's output at the last token, for other streams that enter it; earlier tokens are as they were.

    Parameters
    ----------
    rows : (copies * n, m), the n prompts of ``prefix`` in its order, again and again

    Returns
    -------
    (copies * n, m)
    """
    import torch

    n = len(prefix.rows)
    block = max(1, ROWS // n) * n
    args, kwargs = prefix.calls[layer]
    out = []
    for some in rows.split(block):
        kept = _KeptKeys(prefix.keys[layer], prefix.values[layer], len(some) // n)
        called = (
            [kept if one is _CACHE else one for one in args],
            {name: kept if one is _CACHE else one for name, one in kwargs.items()},
        )
        given = parts.layer_at(lm, layer)(some[:, None], *called[0], **called[1])
        out.append((given[0] if isinstance(given, tuple) else given)[:, 0])
    return torch.cat(out)


def run_last(lm: LanguageModel, prefix: Prefix, stream: Any, *, first: int = 0) -> Any:
    """The stream that leaves the last layer, from the one that enters layer ``first``; shapes as `run_layer`."""
    for layer in range(first, parts.layer_count(lm)):
        stream = run_layer(lm, prefix, layer, stream)
    return stream


@contextmanager
def calls_of_layers(lm: LanguageModel, n: int) -> Iterator[dict[int, tuple[tuple[Any, ...], dict[str, Any]]]]:
    """Notes, while it is open, what each layer is called with besides the stream, good for any number of rows.

    Parameters
    ----------
    n : rows of the batch, all of one length

    Yields
    ------
    by layer the positional and named arguments, filled by a forward pass
    """
    calls: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def note(layer: int) -> Any:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            calls[layer] = (
                tuple(_of_one_row(one, n) for one in args[1:]),
                {name: _of_one_row(one, n) for name, one in kwargs.items() if name != "hidden_states"},
            )

        return hook

    with ExitStack() as hooks:
        for layer in range(parts.layer_count(lm)):
            module = parts.layer_at(lm, layer)
            hooks.callback(module.register_forward_pre_hook(note(layer), with_kwargs=True).remove)
        yield calls


_CACHE = object()  # stands where a call hands on the cache of keys and values


class _KeptKeys:
    """Hands the earlier keys and values to an attention module, before those of the last token, and keeps nothing."""

    def __init__(self, keys: Any, values: Any, copies: int) -> None:
        self.keys, self.values, self.copies = keys, values, copies

    def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Earlier keys and values with those of the last token behind them."""
        return self._with(self.keys, keys), self._with(self.values, values)

    def _with(self, kept: Any, last: Any) -> Any:
        if kept is None:
            return last
        n, groups, earlier, width = kept.shape
        whole = last.new_empty(self.copies, n, groups, earlier + 1, width)
        whole[:, :, :, :earlier] = kept
        whole = whole.flatten(0, 1)
        whole[:, :, earlier:] = last
        return whole


def _batches(lengths: Sequence[int]) -> list[tuple[int, ...]]:
    """Places of prompts of one length, at most ``TOKENS`` tokens together."""
    batches = []
    for length in sorted(set(lengths)):
        rows = [row for row, n_tokens in enumerate(lengths) if n_tokens == length]
        most = max(1, TOKENS // length)
        batches += [tuple(rows[i : i + most]) for i in range(0, len(rows), most)]
    return batches


class _Stretch(NamedTuple):
    """Tokens ``start`` to ``stop`` of ``rows``, one prompt for each unlike beginning up to there.

    ``parents`` are the places, among the rows of the stretch before, of the beginnings that they go on from.
    """

    start: int
    stop: int
    rows: npt.NDArray[np.intp]
    parents: npt.NDArray[np.intp]


def _stretches(ids: npt.NDArray[np.int64]) -> list[_Stretch]:
    """How to read prompts of one length so that what they begin with alike is read once; the last is of all prompts.

    Parameters
    ----------
    ids : (n, tokens)
    """
    n, length = ids.shape
    labels = np.zeros(n, dtype=np.intp)  # of the beginning that each prompt has up to a token
    stretches: list[tuple[int, int, npt.NDArray[np.intp]]] = []
    for token in range(length):
        count = labels.max() + 1
        labels = np.unique(np.stack([labels, ids[:, token]]), axis=1, return_inverse=True)[1]
        start = stretches.pop()[0] if stretches and labels.max() + 1 == count else token
        stretches.append((start, token + 1, labels))
    joined = stretches[-1:]
    for start, stop, labels in reversed(stretches[:-1]):
        after = joined[-1]
        if (after[2].max() - labels.max()) * (stop - start) <= CALL:  # too few to be worth a call of their own
            joined[-1] = (start, *after[1:])
        else:
            joined.append((start, stop, labels))
    found, before = [], np.zeros(n, dtype=np.intp)
    for start, stop, labels in reversed(joined):
        rows = np.unique(labels, return_index=True)[1]
        found.append(_Stretch(start, stop, rows, before[rows]))
        before = labels
    return [*found, _Stretch(length, length, np.arange(n), before)]


def _record(lm: LanguageModel, ids: Any, rows: tuple[int, ...]) -> tuple[dict[str, Any], list[Any], list[Any], Prefix]:
    import torch
    from transformers import DynamicCache

    backbone, count = parts.backbone(lm), parts.layer_count(lm)
    cache = DynamicCache(config=lm.model.config)
    n, length = ids.shape
    for stretch in _stretches(ids[:, :-1].cpu().numpy()):
        cache.batch_select_indices(torch.as_tensor(stretch.parents, device=ids.device))
        if stretch.stop > stretch.start:
            some = ids[torch.as_tensor(stretch.rows, device=ids.device), stretch.start : stretch.stop]
            backbone(input_ids=some, cache=cache, use_cache=True)
    seen = [(layer.keys, layer.values) if length > 1 else (None, None) for layer in cache.layers[:count]]
    keys = [pair[0] for pair in seen] or [None] * count
    values = [pair[1] for pair in seen] or [None] * count
    patterns: dict[int, Any] = {}
    last_values: dict[int, Any] = {}

    def note_pattern(layer: int) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if weights is not None and weights.ndim == 4:
                patterns[layer] = weights[:, :, 0].detach()

        return hook

    with ExitStack() as hooks:
        calls = hooks.enter_context(calls_of_layers(lm, n))
        for layer in range(count):
            attention = parts.part(lm, "attention", layer)
            hooks.callback(attention.register_forward_hook(note_pattern(layer)).remove)
        sites = [f"{site}.{layer}" for site in SITES for layer in range(count)] + [f"stream.{count}"]
        sites += [f"values.{layer}" for layer in range(count)]
        captured = hooks.enter_context(capture(lm, sites))
        backbone(input_ids=ids[:, -1:], cache=cache, use_cache=True)
    found = {
        site: torch.stack([captured[f"{site}.{layer}"][:, 0] for layer in range(count + (site == "stream"))])
        for site in SITES
    }
    for layer in range(count):
        last_values[layer] = captured[f"values.{layer}"][:, 0].norm(dim=-1)[..., None]
    sizes = [_at_the_end(last_values[layer], _lengths(values[layer]), length) for layer in range(count)]
    given = [_padded(patterns[layer], length) for layer in range(count)] if len(patterns) == count else None
    prefix = Prefix(rows, length, keys, values, [calls[layer] for layer in range(count)])
    by_prompt = [None] * n if given is None else list(torch.stack(given, 1))
    return found, by_prompt, list(torch.stack(sizes, 1)), prefix


def _lengths(values: Any) -> Any:
    return None if values is None else values.norm(dim=-1)


def _at_the_end(last: Any, earlier: Any, length: int) -> Any:
    import torch

    return _padded(last if earlier is None else torch.cat([earlier, last], -1), length)


def _padded(rows: Any, length: int) -> Any:
    """Zeros for the tokens that a sliding window no longer sees."""
    import torch

    return torch.nn.functional.pad(rows, (length - rows.shape[-1], 0))


def _of_one_row(value: Any, n: int) -> Any:
    """An argument of a layer, good for any number of rows: all rows of a batch of one length are handed the same."""
    import torch
    from transformers import Cache

    if isinstance(value, Cache):
        return _CACHE
    if isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == n:
        return value[:1]
    if isinstance(value, tuple):
        return tuple(_of_one_row(one, n) for one in value)
    return value


__all__ = ["LastToken", "Prefix", "calls_of_layers", "pieces", "record_last", "run_last", "run_layer"]
