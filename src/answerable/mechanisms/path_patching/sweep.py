"""All senders at once: one sweep over the layers with a batch that grows by each layer's patched parts.

Only the last token changes. With attention frozen there, a layer is a function of rows (its pieces), so no attention,
no other token and no full vocabulary is computed again: at layer l the frozen attention is added to the rows of all
senders below, the patched heads of l become rows of their own, the feed-forward part runs on all rows, and a patched
feed-forward part becomes a row too. Along the direct path the stream is a sum, so a sender's change reaches its end as
it is, with no layer run at all. Where everything may flow (path "total"), whole layers run on the rows instead, against
the keys and values of the earlier tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from answerable.errors import BadInput
from answerable.subjects.language_model import LanguageModel, intervene, layer_count, parts, pieces
from answerable.subjects.language_model.last_token import LastToken, Prefix, run_last, run_layer
from answerable.subjects.language_model.parts import head_counts, head_weights, normalises_stream

Path = Literal["direct", "mlps", "total"]
BUFFER = 256 * 2**20  # bytes of all senders' rows together
ROWS = 1024


class Node(NamedTuple):
    """A head or a feed-forward part; layers and heads count from 0."""

    kind: Literal["head", "mlp"]
    layer: int
    head: int = -1

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}" if self.kind == "head" else f"MLP {self.layer}"


class Receiver(NamedTuple):
    """What takes a sender's change in: a head's query, key or value, or a feed-forward part, which has no head."""

    layer: int
    head: int = -1
    reads: Literal["q", "k", "v", "mlp"] = "q"

    def __str__(self) -> str:
        return f"MLP {self.layer}" if self.reads == "mlp" else f"{self.layer}.{self.head}.{self.reads}"


@dataclass(frozen=True, eq=False)
class Patch:
    """A node and what stands there instead, (n, width) for n pairs."""

    node: Node
    values: Any


def nodes_of(lm: LanguageModel) -> list[Node]:
    """Every head and feed-forward part, layer by layer."""
    return [
        node
        for layer in range(layer_count(lm))
        for node in (*(Node("head", layer, head) for head in range(head_counts(lm, layer)[0])), Node("mlp", layer))
    ]


def activations(recorded: LastToken, node: Node) -> Any:
    """(n, width), what was recorded at a node."""
    if node.kind == "head":
        return recorded.heads[node.layer][:, node.head]
    return recorded.feed_forward[node.layer]


def patched(lm: LanguageModel, base: LastToken, patches: Sequence[Patch], path: Path = "mlps") -> Any:
    """What the output layer reads after each patch alone.

    Parameters
    ----------
    base : the prompts, with their earlier tokens for path "total"
    patches : senders with what stands there instead
    path : "direct" (all else frozen), "mlps" (other heads frozen) or "total" (nothing frozen)

    Returns
    -------
    (patches, n, m)
    """
    import torch

    if path not in ("direct", "mlps", "total"):
        raise BadInput(f"path is {path!r:.40}", where="path", mend="choose direct, mlps or total")
    _check_patches(lm, base, patches)
    in_closed_form = path == "direct" and not normalises_stream(lm)
    with torch.no_grad():
        parts_of = []
        for rows, prefix in _flows(base, path, len(patches)):
            own, some = base.select(rows), _of_rows(patches, rows)
            stream = _added(lm, own, some) if in_closed_form else _swept(lm, own, some, path, prefix)
            parts_of.append((rows, pieces.final_state(lm, stream)))
        width = parts_of[0][1].shape[-1]
        out = base.stream.new_empty(len(patches), len(base), width)
        for rows, found in parts_of:
            out[:, list(rows)] = found.unflatten(0, (len(patches), len(rows)))
    return out


def check_nodes(lm: LanguageModel, given: Iterable[Node]) -> None:
    """Refuse heads and feed-forward parts that the model does not have.

    Raises
    ------
    BadInput
    """
    there = set(nodes_of(lm))
    for node in given:
        if node not in there:
            raise BadInput(f"there is no {node!s:.40}", where=lm.name, mend="choose parts of this model")


def _check_patches(lm: LanguageModel, base: LastToken, patches: Sequence[Patch]) -> None:
    check_nodes(lm, [patch.node for patch in patches])
    for patch in patches:
        wanted = activations(base, patch.node).shape
        if patch.values.shape != wanted:
            raise BadInput(
                f"the values have shape {tuple(patch.values.shape)}",
                where=str(patch.node),
                mend=f"give {tuple(wanted)}",
            )


def _flows(base: LastToken, path: Path, senders: int) -> list[tuple[tuple[int, ...], Prefix | None]]:
    """The pairs in blocks whose rows fit the buffer; for path "total" pairs of one length with their earlier tokens."""
    most = max(1, BUFFER // (4 * base.stream.shape[-1] * max(1, senders)))
    if path != "total":
        return [(tuple(range(i, min(i + most, len(base)))), None) for i in range(0, len(base), most)]
    if sum(len(prefix.rows) for prefix in base.prefixes) != len(base):
        raise BadInput("the earlier tokens were not kept", where="path total", mend="record with prefixes")
    blocks: list[tuple[tuple[int, ...], Prefix | None]] = []
    for prefix in base.prefixes:
        for i in range(0, len(prefix.rows), most):
            chosen = prefix.select(range(i, min(i + most, len(prefix.rows))))
            blocks.append((chosen.rows, chosen))
    return blocks


def _of_rows(patches: Sequence[Patch], rows: tuple[int, ...]) -> list[Patch]:
    return [Patch(patch.node, patch.values[list(rows)]) for patch in patches]


def _added(lm: LanguageModel, base: LastToken, patches: Sequence[Patch]) -> Any:
    """The direct path in closed form: the stream that leaves the last layer, with each sender's change in it.

    Streams that are normed after each addition are no sums, and are swept.
    """
    import torch

    out = base.stream.new_empty(len(patches), *base.stream.shape[1:])
    for layer in range(layer_count(lm)):
        joining = _joining(patches, layer)
        if joining.heads:
            middle = _middle_of_heads(lm, base, layer, [patches[i] for i in joining.heads])
            plain = pieces.after_attention(lm, layer, base.stream[layer], base.attention[layer])
            out[joining.heads] = base.stream[-1] + (middle.unflatten(0, (len(joining.heads), len(base))) - plain)
        for i in joining.mlps:
            out[i] = base.stream[-1] + (patches[i].values - base.feed_forward[layer])
    return torch.flatten(out, 0, 1)


class _Joining(NamedTuple):
    """The senders of one layer: their places in the batch and in the list of patches."""

    heads: list[int]
    mlps: list[int]


def _swept(lm: LanguageModel, base: LastToken, patches: Sequence[Patch], path: Path, prefix: Prefix | None) -> Any:
    """Streams that leave the last layer, (patches * n, m), in the order of the patches."""
    import torch

    count, n = layer_count(lm), len(base)
    order: list[int] = []
    rows = base.stream.new_empty(len(patches) * n, base.stream.shape[-1])
    for layer in range(count):
        joining = _joining(patches, layer)
        active = len(order) * n
        rows[:active] = _layer(lm, base, layer, rows[:active], path, prefix)
        for sender in _joined(lm, base, layer, joining, patches, path):
            rows[active : active + len(sender)] = sender
            active += len(sender)
        order += joining.heads + joining.mlps
    places = torch.as_tensor(order, device=rows.device).argsort()
    return rows.unflatten(0, (len(patches), n))[places].flatten(0, 1)


def _joining(patches: Sequence[Patch], layer: int) -> _Joining:
    of_layer = [i for i, patch in enumerate(patches) if patch.node.layer == layer]
    return _Joining(
        [i for i in of_layer if patches[i].node.kind == "head"], [i for i in of_layer if patches[i].node.kind == "mlp"]
    )


def _layer(lm: LanguageModel, base: LastToken, layer: int, rows: Any, path: Path, prefix: Prefix | None) -> Any:
    """One layer for senders below it."""
    import torch

    if not len(rows):
        return rows
    if prefix is not None:
        return run_layer(lm, prefix, layer, rows)
    by_block = rows.unflatten(0, (-1, len(base))).split(max(1, ROWS // len(base)))  # small enough to stay in the cache
    return torch.cat([_layer_block(lm, base, layer, block, path) for block in by_block])


def _layer_block(lm: LanguageModel, base: LastToken, layer: int, rows: Any, path: Path) -> Any:
    """(copies, n, m) -> (copies * n, m)"""
    middle = pieces.after_attention(lm, layer, rows, base.attention[layer])
    if path == "direct":
        return pieces.after_feed_forward(lm, layer, middle, base.feed_forward[layer]).flatten(0, 1)
    added = pieces.feed_forward_added(lm, layer, pieces.feed_forward_reads(lm, rows, middle).flatten(0, 1))
    return pieces.after_feed_forward(lm, layer, middle.flatten(0, 1), added)


def _joined(
    lm: LanguageModel, base: LastToken, layer: int, joining: _Joining, patches: Sequence[Patch], path: Path
) -> list[Any]:
    """The streams that leave this layer where one of its own parts is patched."""
    found = []
    if joining.heads:
        middle = _middle_of_heads(lm, base, layer, [patches[i] for i in joining.heads])
        entered = base.stream[layer].repeat(len(joining.heads), 1)
        if path == "direct" or parts.is_parallel(lm):  # side by side: this layer's feed-forward part sees no head of it
            added = base.feed_forward[layer].repeat(len(joining.heads), 1)
        else:
            added = pieces.feed_forward_added(lm, layer, pieces.feed_forward_reads(lm, entered, middle))
        found.append(pieces.after_feed_forward(lm, layer, middle, added))
    if joining.mlps:
        middle = pieces.after_attention(lm, layer, base.stream[layer], base.attention[layer])
        found += [pieces.after_feed_forward(lm, layer, middle, patches[i].values) for i in joining.mlps]
    return found


def _middle_of_heads(lm: LanguageModel, base: LastToken, layer: int, patches: Sequence[Patch]) -> Any:
    """(heads * n, m), the stream after attention in which one head is another; the norm after attention is redone."""
    import torch

    output = head_weights(lm, layer).output  # (H, d, m)
    total = pieces.attention_sum(lm, layer, base.heads[layer])
    sums = torch.cat(
        [total + (patch.values - base.heads[layer][:, patch.node.head]) @ output[patch.node.head] for patch in patches]
    )
    added = pieces.attention_added(lm, layer, sums)
    return pieces.after_attention(lm, layer, base.stream[layer].repeat(len(patches), 1), added)


def patched_through(lm: LanguageModel, base: LastToken, patches: Sequence[Patch], receivers: Sequence[Receiver]) -> Any:
    """What the output layer reads where a sender's change reaches the receivers alone, and flows on from them.

    In a first stage the change goes from the sender straight into the stream that each receiver reads, all else
    frozen; in a second one the receivers' queries, keys, values or outputs are what they make of it, and nothing is
    frozen.

    Parameters
    ----------
    receivers : heads with what they read, and feed-forward parts; a key or value is that of the head's whole group

    Returns
    -------
    (patches, n, m); a sender that no receiver is above changes nothing
    """
    import torch

    check_receivers(lm, receivers)
    _check_patches(lm, base, patches)
    if sum(len(prefix.rows) for prefix in base.prefixes) != len(base):
        raise BadInput("the earlier tokens were not kept", where="receivers", mend="record with prefixes")
    by_layer: dict[int, list[Receiver]] = {}
    for receiver in receivers:
        by_layer.setdefault(receiver.layer, []).append(receiver)
    with torch.no_grad():
        final = pieces.final_state(lm, base.stream[-1])
        out = final[None].repeat(len(patches), 1, 1)
        senders = [
            i for i, patch in enumerate(patches) if any(reaches(lm, patch.node, receiver) for receiver in receivers)
        ]
        for prefix in base.prefixes:
            rows = list(prefix.rows)
            own = base.select(rows)
            block = max(1, ROWS // len(rows))
            for start in range(0, len(senders), block):
                some = senders[start : start + block]
                read = _what_receivers_read(
                    lm, own, [Patch(patches[i].node, patches[i].values[rows]) for i in some], by_layer
                )
                first = min(by_layer)
                stream = own.stream[first].repeat(len(some), 1)
                with intervene(lm, _changes(lm, read)):
                    stream = run_last(lm, prefix, stream, first=first)
                out[torch.as_tensor(some)[:, None], torch.as_tensor(rows)[None]] = pieces.final_state(
                    lm, stream
                ).unflatten(0, (len(some), len(rows)))
    return out


def reaches(lm: LanguageModel, sender: Node, receiver: Receiver) -> bool:
    """Whether what a sender adds to the stream is there when the receiver reads."""
    if sender.layer != receiver.layer:
        return sender.layer < receiver.layer
    return sender.kind == "head" and receiver.reads == "mlp" and not parts.is_parallel(lm)


def check_receivers(lm: LanguageModel, receivers: Sequence[Receiver]) -> None:
    """Refuse none at all, and what the model does not have.

    Raises
    ------
    BadInput
    """
    if not receivers:
        raise BadInput("no receiver is named", where="receivers", mend="name at least one head or MLP")
    for receiver in receivers:
        if not 0 <= receiver.layer < layer_count(lm):
            raise BadInput(
                f"layer {receiver.layer} is not from 0 to {layer_count(lm) - 1}",
                where="receivers",
                mend="choose another layer",
            )
        n_heads = head_counts(lm, receiver.layer)[0]
        if receiver.reads not in ("q", "k", "v", "mlp"):
            raise BadInput(f"it reads {receiver.reads!r:.20}", where="receivers", mend="choose q, k, v or mlp")
        if receiver.reads != "mlp" and not 0 <= receiver.head < n_heads:
            raise BadInput(
                f"head {receiver.head} is not from 0 to {n_heads - 1}", where="receivers", mend="choose another head"
            )


def _what_receivers_read(
    lm: LanguageModel, base: LastToken, patches: Sequence[Patch], by_layer: Mapping[int, list[Receiver]]
) -> dict[str, list[tuple[int | None, Any]]]:
    """New queries, keys, values and outputs by site: (place of the head or group, (patches * n, d))."""
    found: dict[str, list[tuple[int | None, Any]]] = {}
    n, count = len(base), len(patches)
    for layer, receivers in by_layer.items():
        reach = [i for i, patch in enumerate(patches) if patch.node.layer < layer]
        stream = base.stream[layer].repeat(count, 1)
        if reach:
            swept = _below(lm, base, [patches[i] for i in reach], layer)
            stream.view(count, n, -1)[reach] = swept.view(len(reach), n, -1)
        for receiver in receivers:
            if receiver.reads == "mlp":
                added = _feed_forward_of(lm, base, layer, stream, patches)
                found.setdefault(f"feed_forward.{layer}", []).append((None, added))
        heads = [receiver for receiver in receivers if receiver.reads != "mlp"]
        for site, place, made in _projected(lm, layer, stream, heads):
            found.setdefault(site, []).append((place, made))
    return found


def _projected(
    lm: LanguageModel, layer: int, stream: Any, receivers: Sequence[Receiver]
) -> Iterator[tuple[str, int, Any]]:
    """Site, place and new query, key or value of each head, from the stream that enters its layer."""
    norm = None if normalises_stream(lm) else parts.find_part(lm, "attention_norm", layer)
    read = stream if norm is None else norm(stream)
    weights, (n_heads, n_groups, _) = head_weights(lm, layer), head_counts(lm, layer)
    for receiver in receivers:
        group = receiver.head * n_groups // n_heads
        site, place, weight, bias = {
            "q": ("queries", receiver.head, weights.query, weights.query_bias),
            "k": ("keys", group, weights.key, weights.key_bias),
            "v": ("values", group, weights.value, weights.value_bias),
        }[receiver.reads]
        yield f"{site}.{layer}", place, read @ weight[place] + bias[place]


def _feed_forward_of(lm: LanguageModel, base: LastToken, layer: int, stream: Any, patches: Sequence[Patch]) -> Any:
    """What a layer's feed-forward part adds, (patches * n, m), attention frozen but for the layer's own senders."""
    n, count = len(base), len(patches)
    middle = pieces.after_attention(lm, layer, stream, base.attention[layer].repeat(count, 1))
    own = [i for i, patch in enumerate(patches) if patch.node.layer == layer and patch.node.kind == "head"]
    if own:
        changed = _middle_of_heads(lm, base, layer, [patches[i] for i in own])
        middle.view(count, n, -1)[own] = changed.view(len(own), n, -1)
    return pieces.feed_forward_added(lm, layer, pieces.feed_forward_reads(lm, stream, middle))


def _below(lm: LanguageModel, base: LastToken, patches: Sequence[Patch], layer: int) -> Any:
    """The stream that enters ``layer`` where only the sender's own output is another: (patches * n, m)."""
    rows = []
    for patch in patches:
        joining = _Joining([0], []) if patch.node.kind == "head" else _Joining([], [0])
        (stream,) = _joined(lm, base, patch.node.layer, joining, [patch], "direct")
        for above in range(patch.node.layer + 1, layer):
            stream = _layer(lm, base, above, stream, "direct", None)
        rows.append(stream)
    import torch

    return torch.cat(rows)


def _changes(lm: LanguageModel, read: Mapping[str, list[tuple[int | None, Any]]]) -> dict[str, Any]:
    def put(given: list[tuple[int | None, Any]]) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone()
            for place, values in given:
                if place is None:
                    changed[:, 0] = values
                else:
                    changed[:, 0, place] = values
            return changed

        return change

    return {site: put(given) for site, given in read.items()}


def patched_sets(
    lm: LanguageModel,
    base: LastToken,
    sets: Sequence[Sequence[Node]],
    values: Mapping[Node, Any],
    *,
    stream: Any = None,
) -> Any:
    """What the output layer reads where all nodes of a set are patched together and nothing is frozen.

    Parameters
    ----------
    sets : nodes to patch at once, one set after another
    values : what stands at a node instead, (width,) for all pairs or (n, width)
    stream : (n, m), what enters the first layer instead

    Returns
    -------
    (sets, n, m)
    """
    import torch

    if sum(len(prefix.rows) for prefix in base.prefixes) != len(base):
        raise BadInput("the earlier tokens were not kept", where="sets", mend="record with prefixes")
    count = layer_count(lm)
    first = [0 if stream is not None else min((node.layer for node in nodes), default=count) for nodes in sets]
    order = sorted(range(len(sets)), key=first.__getitem__)
    out = None
    with torch.no_grad():
        for prefix in base.prefixes:
            rows = list(prefix.rows)
            entering = base.stream[:, rows]
            if stream is not None:
                entering = torch.cat([stream[None, rows], entering[1:]])
            block = max(1, ROWS // len(rows))
            for start in range(0, len(sets), block):
                places = order[start : start + block]
                some = [sets[i] for i in places]
                left = _sets_swept(lm, prefix, entering, some, [first[i] for i in places], values)
                final = pieces.final_state(lm, left.flatten(0, 1)).unflatten(0, left.shape[:2])
                if out is None:
                    out = final.new_empty(len(sets), len(base), final.shape[-1])
                for place, found in zip(places, final, strict=True):
                    out[place, rows] = found
    return out


def _sets_swept(
    lm: LanguageModel,
    prefix: Prefix,
    entering: Any,
    sets: Sequence[Sequence[Node]],
    first: Sequence[int],
    values: Mapping[Node, Any],
) -> Any:
    """Streams that leave the last layer, (sets, n, m).

    Parameters
    ----------
    entering : (layers + 1, n, m), what enters each layer, and leaves the last one, where nothing is patched below it
    first : rising; the layer at which each set joins the sweep: below it nothing is patched
    """
    import torch

    n, count = entering.shape[1], layer_count(lm)
    flowing = entering[0, :0]
    for layer in range(first[0], count + 1):
        joined = sum(one <= layer for one in first)
        flowing = torch.cat([flowing, entering[layer].repeat(joined - len(flowing) // n, 1)])
        if joined and layer < count:
            with intervene(lm, _set_changes(sets[:joined], values, list(prefix.rows), layer)):
                flowing = run_layer(lm, prefix, layer, flowing)
    return flowing.unflatten(0, (len(sets), n))


def _set_changes(
    sets: Sequence[Sequence[Node]], values: Mapping[Node, Any], rows: list[int], layer: int
) -> dict[str, Any]:
    """The interventions that put ``values`` at each set's nodes of a layer, for a batch's rows: set by set, by pair."""
    places: dict[str, list[tuple[int, Node]]] = {}
    for number, nodes in enumerate(sets):
        for node in nodes:
            if node.layer == layer:
                site = "heads" if node.kind == "head" else "feed_forward"
                places.setdefault(f"{site}.{layer}", []).append((number, node))

    def put(chosen: list[tuple[int, Node]]) -> Any:
        def change(tensor: Any) -> Any:
            changed = tensor.clone().unflatten(0, (len(sets), len(rows)))
            for number, node in chosen:
                given = values[node]
                given = given[rows] if given.ndim == 2 else given
                if node.kind == "head":
                    changed[number, :, 0, node.head] = given
                else:
                    changed[number, :, 0] = given
            return changed.flatten(0, 1)

        return change

    return {site: put(chosen) for site, chosen in places.items()}
