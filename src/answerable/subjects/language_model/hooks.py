"""Looking inside a model while it runs, and changing what it computes; afterwards it is as it was, to the bit.

A site is a name and, for most, a layer, as in ``"attention.3"``. Layers and heads count from 0.

========================  ==============================================================  =====================
site                      what                                                            shape
========================  ==============================================================  =====================
``embedding``             the first hidden state, the same as ``stream.0``                (batch, tokens, width)
``stream.L``              hidden state that enters layer L; L = number of layers: leaves   (batch, tokens, width)
``attention.L``           what attention adds to the stream                               (batch, tokens, width)
``feed_forward.L``        what the feed-forward part adds to the stream                   (batch, tokens, width)
``heads.L``               output of each head before the output projection                (batch, tokens, H, d)
``queries.L``             query of each head, before positions are turned in              (batch, tokens, H, d)
``keys.L``, ``values.L``  key and value of each key-value head, likewise                  (batch, tokens, G, d)
``memories.L``            activations that the down projection reads                      (batch, tokens, hidden)
``final``                 hidden state after the last norm                                (batch, tokens, width)
``logits``                output of the output layer                                      (batch, tokens, words)
========================  ==============================================================  =====================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from answerable.errors import BadInput, unknown
from answerable.subjects.language_model import parts
from answerable.subjects.language_model.loading import LanguageModel

Change = Callable[[Any], Any]

WITHOUT_LAYER = ("embedding", "final", "logits")
WITH_LAYER = ("stream", "attention", "feed_forward", "heads", "queries", "keys", "values", "memories")


class _Tap(NamedTuple):
    """Where a site is read and written: a module, its input or output, and the form the site is shown in.

    show : from the module's tensor to the site's
    put : the module's tensor with the site's written into it, (whole, site's) -> whole
    before : notes the shape of what enters the layer, for a module that sees all tokens of a batch in one row
    """

    module: Any
    at_input: bool
    show: Callable[[Any], Any]
    put: Callable[[Any, Any], Any]
    before: tuple[Any, Callable[..., None]] | None = None


@contextmanager
def capture(lm: LanguageModel, sites: Iterable[str], *, detach: bool = True) -> Iterator[dict[str, Any]]:
    """Within the block, what each forward pass has at the sites; the last pass stays.

    Parameters
    ----------
    sites : as the table above says
    detach : whether the tensors are copies without gradients; otherwise the very tensors, for differentiating

    Yields
    ------
    tensor by site, filled by each forward pass

    Raises
    ------
    UnknownName, BadInput : there is no such site or layer
    """
    found: dict[str, Any] = {}

    def keep(site: str) -> Change:
        def look(tensor: Any) -> Any:
            found[site] = tensor.detach().clone() if detach else tensor
            return None if detach else tensor  # handed on, so that what follows is made from this very tensor

        return look

    with _tapped(lm, {site: keep(site) for site in sites}):
        yield found


@contextmanager
def intervene(lm: LanguageModel, changes: Mapping[str, Change]) -> Iterator[None]:
    """Within the block, forward passes go on from what the functions return instead of what is at the sites.

    Parameters
    ----------
    changes : function by site; it is handed the tensor of the site and returns one of the same shape, or None to leave
        it as it is; it must not change the one it is handed

    Raises
    ------
    UnknownName, BadInput : there is no such site or layer, or a function returned another shape
    """
    with _tapped(lm, changes):
        yield


@contextmanager
def _tapped(lm: LanguageModel, changes: Mapping[str, Change]) -> Iterator[None]:
    taps = {site: _tap(lm, *_parse(site)) for site in changes}  # all of them, before the first hook is set
    with ExitStack() as hooks:
        for site, change in changes.items():
            if (before := taps[site].before) is not None:
                layer, note = before
                hooks.callback(layer.register_forward_pre_hook(note, with_kwargs=True).remove)
            hooks.callback(_hook(taps[site], change, site).remove)
        yield


def _hook(tap: _Tap, change: Change, site: str) -> Any:
    def changed(tensor: Any) -> Any:
        shown = tap.show(tensor)
        given = change(shown)
        if given is None:
            return tensor
        if getattr(given, "shape", None) != shown.shape:
            got = tuple(given.shape) if hasattr(given, "shape") else type(given).__name__
            raise BadInput(f"the function returned {got}, not {tuple(shown.shape)}", where=site, mend="keep the shape")
        return tap.put(tensor, given.to(tensor.dtype))

    def at_input(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if args:
            return (changed(args[0]), *args[1:]), kwargs
        name = next(iter(kwargs))
        return args, {**kwargs, name: changed(kwargs[name])}

    def at_output(module: Any, args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, tuple):
            return (changed(output[0]), *output[1:])
        return changed(output)

    if tap.at_input:
        return tap.module.register_forward_pre_hook(at_input, with_kwargs=True)
    return tap.module.register_forward_hook(at_output)


def _parse(site: str) -> tuple[str, int | None]:
    name, dot, number = site.partition(".")
    if name in WITHOUT_LAYER and not dot:
        return name, None
    if name in WITH_LAYER and number.isdecimal():
        return name, int(number)
    if name in WITH_LAYER:
        raise BadInput(f"the site {site!r} needs the number of a layer", mend=f"write {name}.0")
    raise unknown("site", site, [*WITHOUT_LAYER, *(f"{one}.0" for one in WITH_LAYER)])


def _whole(tensor: Any) -> Any:
    return tensor


def _replace(tensor: Any, given: Any) -> Any:
    return given


def _tap(lm: LanguageModel, name: str, layer: int | None) -> _Tap:
    if layer is None:
        return _tap_without_layer(lm, name)
    if name == "stream":
        return _stream(lm, layer)
    if name == "attention":
        module = parts.find_part(lm, "attention_out_norm", layer) or parts.part(lm, "output", layer)
        return _Tap(module, False, _whole, _replace)
    if name == "feed_forward":
        return _feed_forward(lm, layer)
    if name == "heads":
        return _Tap(parts.part(lm, "output", layer), True, *_split(parts.head_counts(lm, layer)[2]))
    if name == "memories":
        return _by_token(lm, layer, parts.part(lm, "down", layer), at_input=True)
    return _projection(lm, name, layer)


def _tap_without_layer(lm: LanguageModel, name: str) -> _Tap:
    if name == "embedding":
        return _stream(lm, 0)
    if name == "logits":
        return _Tap(parts.part(lm, "unembedding"), False, _whole, _replace)
    final = parts.find_part(lm, "final_norm")
    return _Tap(final, False, _whole, _replace) if final is not None else _stream(lm, parts.layer_count(lm))


def _stream(lm: LanguageModel, layer: int) -> _Tap:
    count = parts.layer_count(lm)
    if layer == count:
        return _Tap(parts.layer_at(lm, count - 1), False, _whole, _replace)
    return _Tap(parts.layer_at(lm, layer), True, _whole, _replace)


def _feed_forward(lm: LanguageModel, layer: int) -> _Tap:
    module = parts.find_part(lm, "feed_forward_out_norm", layer) or parts.find_part(lm, "feed_forward", layer)
    if module is not None:
        return _Tap(module, False, _whole, _replace)
    return _by_token(lm, layer, parts.part(lm, "down", layer), at_input=False)


def _by_token(lm: LanguageModel, layer: int, module: Any, *, at_input: bool) -> _Tap:
    """A module of the feed-forward part; standing in the layer itself it may see the tokens of a batch in one row."""
    if lm.family.feed_forward:
        return _Tap(module, at_input, _whole, _replace)
    shape: list[int] = []

    def note(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        shape[:] = (args[0] if args else next(iter(kwargs.values()))).shape[:2]

    def show(tensor: Any) -> Any:
        return tensor.reshape(*shape, tensor.shape[-1])

    def put(tensor: Any, given: Any) -> Any:
        return given.reshape(tensor.shape)

    return _Tap(module, at_input, show, put, (parts.layer_at(lm, layer), note))


def _split(width: int) -> tuple[Change, Callable[[Any, Any], Any]]:
    return (lambda tensor: tensor.unflatten(-1, (-1, width))), (lambda tensor, given: given.reshape(tensor.shape))


def _projection(lm: LanguageModel, name: str, layer: int) -> _Tap:
    """Query, key or value of each head, from a projection of its own or from its share of a fused one."""
    order = ("queries", "keys", "values").index(name)
    counts = parts.head_counts(lm, layer)
    fused = lm.family.fused
    if fused is None:
        return _Tap(parts.part(lm, ("query", "key", "value")[order], layer), False, *_split(counts[2]))

    def put(tensor: Any, given: Any) -> Any:
        changed = tensor.clone()
        parts.split_fused(changed, fused, counts)[order].copy_(given)
        return changed

    module = parts.layer_at(lm, layer).get_submodule(fused.module)
    return _Tap(module, False, lambda tensor: parts.split_fused(tensor, fused, counts)[order], put)
