"""Where memories come from: a language model, read window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from answerable.errors import BadInput
from answerable.subjects.language_model import (
    LanguageModel,
    layer_count,
    memory,
    record,
    token_texts,
)
from answerable.subjects.language_model.mapping import refuse_unknown
from answerable.subjects.language_model.next_tokens import Piece, pieces
from answerable.subjects.language_model.parts import find_part, normalises_stream

from .feature_sets import Weights
from .reading import Batch
from .solver import Floats

WINDOW = 192
WORDS_A_PROMPT = 10
PART_CHARACTERS = 100_000  # of a text that are made tokens at once, for which some 400 bytes a token are needed
HALF = ("bfloat16", "float16")
DEVIATION = 0.02  # of a weight at random initialisation, where the configuration does not say


class Window(NamedTuple):
    """A run of tokens that is read at once.

    text : number of its text, from 0
    ids : token ids
    skip : how many of the first do not count: the tokenizer's own
    """

    text: int
    ids: npt.NDArray[np.int32]
    skip: int


class Source(Protocol):
    """Where memories come from: a model, or arrays."""

    layers: list[int]

    def run(self, windows: Sequence[Window], visit: Callable[[Batch], None], layers: Sequence[int]) -> None:
        """Read a batch of windows and hand over each layer."""

    def weights(self, layer: int) -> Weights:
        """A layer as arrays."""

    def words(self, layer: int) -> tuple[Floats, Floats, Floats | None] | None:
        """Values, output layer and gain of the final norm."""

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Tokens as a reader sees them."""

    @property
    def deviation(self) -> float:
        """Standard deviation of a weight before training."""


class ModelSource:
    """The memories of a language model."""

    def __init__(self, lm: LanguageModel, *, of: Literal["feed_forward", "heads"] = "feed_forward") -> None:
        refuse_unknown(lm)
        if of == "heads" and lm.map is not None:
            raise BadInput("a map of feed-forward matrices tells of no heads", where="of", mend="choose feed_forward")
        self.lm, self.of = lm, of
        self.layers = list(range(layer_count(lm)))
        self._norms = {}
        for layer in self.layers:
            found = memory(lm, layer, of=of)
            if not found.values.is_floating_point():
                what = f"its weights are {str(found.values.dtype).removeprefix('torch.')}"
                raise BadInput(what, where=f"{lm.name}, layer {layer}", mend="load the model de-quantised, in float32")
            self._norms[layer] = found.norm

    def cut(self, texts: Sequence[str], *, window: int = WINDOW, most: int | None = None) -> list[Window]:
        """Texts as windows of at most ``window`` tokens, ``most`` of them evenly spaced over all.

        A text of more than 100,000 characters is read in parts, cut at white space where there is any, so that a longer
        one takes no more memory than its token ids.

        Raises
        ------
        BadInput : a text that is none, a model without tokenizer, or no token at all
        """
        found = [
            Window(number, np.asarray(piece.ids, np.int32), piece.n_special)
            for number, text in enumerate(texts)
            for piece in self._pieces(number, text, window)
            if len(piece.ids) > piece.n_special
        ]
        if not found:
            raise BadInput("there are no tokens", where="text", mend="give at least one word")
        if most is not None and len(found) > most:
            longest = max(len(one.ids) for one in found)
            full = [one for one in found if len(one.ids) == longest]
            found = full if len(full) >= most else found  # ends of texts only where there are too few whole windows
            found = [found[round(i)] for i in np.linspace(0, len(found) - 1, most)]
        return found

    def _pieces(self, number: int, text: str, window: int) -> Iterator[Piece]:
        """The pieces of one text, part by part."""
        for part in _parts(text, PART_CHARACTERS) if isinstance(text, str) else [text]:
            try:
                yield from pieces([self.lm], [part], max_tokens=window, long="windows")
            except BadInput as refused:  # which saw one text alone
                where = refused.where.replace("text 1", f"text {number + 1}", 1)
                raise BadInput(refused.problem, where=where, mend=refused.mend) from None

    def beginnings(self, texts: Sequence[str], most_tokens: int) -> list[Window]:
        """The first tokens of each text, as one window; nothing of a text without tokens."""
        first: dict[int, Window] = {}
        for window in self.cut(texts, window=most_tokens):
            first.setdefault(window.text, window)
        return list(first.values())

    def letter_words(self, per_letter: int, rng: np.random.Generator) -> list[str]:
        """Words of lower-case letters that are one token with a space before them, at most so many of a letter."""
        tokenizer = self.lm.tokenizer
        if tokenizer is None:
            raise BadInput("the model came without a tokenizer", where=self.lm.name, mend="leave absorption out")
        found: dict[str, list[str]] = {}
        for i in range(len(tokenizer)):
            word = tokenizer.decode([i])
            if len(word) > 3 and word[0] == " " and word[1:].isascii() and word[1:].isalpha() and word[1:].islower():
                found.setdefault(word[1], []).append(word[1:])
        if len(tokenizer.encode("A", add_special_tokens=False)) == len(tokenizer.encode("a", add_special_tokens=False)):
            same = tokenizer.encode("A", add_special_tokens=False) == tokenizer.encode("a", add_special_tokens=False)
            if same:
                raise BadInput("the tokenizer knows no case", where=self.lm.name, mend="leave absorption out")
        chosen = [
            words[j] for _, words in sorted(found.items()) for j in rng.permutation(len(words))[:per_letter].tolist()
        ]
        return [chosen[j] for j in rng.permutation(len(chosen))]

    def letter_prompts(self, words: Sequence[str], rng: np.random.Generator) -> tuple[list[Window], list[list[int]]]:
        """Prompts that name the first letter of ten words each, in their order, and where the words' tokens stand.

        Two other words come before. A token sees those before it alone, so each word is read as if the prompt ended
        with it, after two to eleven examples (the benchmark has up to ten).
        """
        tokenizer = self.lm.tokenizer
        tail = " has the first letter:"

        def plain(text: str) -> list[int]:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])

        windows, places = [], []
        for first in range(0, len(words), WORDS_A_PROMPT):
            before = [words[int(i)] for i in rng.integers(0, len(words), 2)]
            shots = "".join(f" {one}{tail} {one[0].upper()}\n" for one in before)
            ids, here = list(tokenizer(shots, add_special_tokens=True)["input_ids"]), []
            for word in words[first : first + WORDS_A_PROMPT]:
                ids += plain(f" {word}")
                here.append(len(ids) - 1)
                ids += plain(f"{tail} {word[0].upper()}\n")
            windows.append(Window(first // WORDS_A_PROMPT, np.asarray(ids, np.int32), 0))
            places.append(here)
        return windows, places

    def run(self, windows: Sequence[Window], visit: Callable[[Batch], None], layers: Sequence[int]) -> None:
        """Read a batch of windows and hand over each layer."""
        length = max(len(window.ids) for window in windows)
        ids = np.zeros((len(windows), length), np.int64)
        mask = np.zeros((len(windows), length), np.int64)
        counts = np.zeros((len(windows), length), bool)
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)], mask[row, : len(window.ids)] = window.ids, 1
            counts[row, window.skip : len(window.ids)] = True
        keep = np.flatnonzero(counts)
        where, position = np.unravel_index(keep, counts.shape)
        text = np.array([window.text for window in windows])[where]
        kept_ids = ids.reshape(-1)[keep]
        every = len(keep) == counts.size

        def array(tensor: Any) -> Floats:
            given = tensor.float().cpu().numpy()
            return np.asarray(given if every else given[keep])

        def hand_over(layer: int, seen: Any) -> None:
            norm = self._norms[layer]
            written, scale = seen.written, None
            if norm is not None:
                written = norm(seen.written)
                before = seen.written.float() * self._gain(norm)
                scale = (written.float() * before).sum(1) / before.square().sum(1).clamp_min(1e-30)
            out = array(written)
            if not np.isfinite(out.sum()):  # which one number that is not finite makes it
                mend = "load the model in float32, or fetch its weights again"
                raise BadInput(
                    "it writes a number that is not finite", where=f"{self.lm.name}, layer {layer}", mend=mend
                )
            batch = Batch(
                layer, None if seen.read is None else array(seen.read), array(seen.activations), out,
                text, kept_ids, where, position, None if scale is None else array(scale),
            )  # fmt: skip
            visit(batch)

        record(self.lm, ids, hand_over, layers=layers, mask=None if mask.all() else mask, of=self.of)

    def weights(self, layer: int) -> Weights:
        """A layer as arrays; views where the weights are float32 on the processor."""
        import torch

        found = memory(self.lm, layer, of=self.of)

        def array(tensor: Any) -> Any:
            return None if tensor is None else tensor.detach().float().cpu().numpy()

        def outside(function: Any) -> Any:
            if function is None:
                return None
            device, dtype = found.values.device, found.values.dtype

            def called(x: Floats) -> Floats:
                with torch.no_grad():
                    given = torch.from_numpy(np.ascontiguousarray(x)).to(device, dtype)
                    return np.asarray(function(given).float().cpu().numpy())

            return called

        return Weights(
            keys=array(found.keys),
            values=array(found.values),
            key_bias=array(found.key_bias),
            gates=array(found.gates),
            gate_bias=array(found.gate_bias),
            value_bias=array(found.value_bias),
            activation=outside(found.activation) or "identity",
            norm=outside(found.norm),
            gain=None if found.norm is None else array(self._gain(found.norm)),
        )

    def _gain(self, norm: Any) -> Any:
        """(d,) the gain of a norm; Gemma keeps it less 1."""
        return norm.weight.detach().float() + float(self.lm.family.name.startswith("Gemma"))

    def read_norm(self, layer: int) -> tuple[Floats, Floats] | None:
        """(d,) gain and (d,) shift of the norm of what the layer reads; None where it reads the stream as it is."""
        norm = None if normalises_stream(self.lm) else find_part(self.lm, "feed_forward_norm", layer)
        if norm is None or getattr(norm, "weight", None) is None:
            return None
        gain, shift = self._gain(norm).cpu().numpy(), getattr(norm, "bias", None)
        return gain, np.zeros_like(gain) if shift is None else shift.detach().float().cpu().numpy()

    def encoder(self, layer: int) -> Callable[[Floats], Floats]:
        """The model's own activations for what the layer reads."""
        import torch

        found = memory(self.lm, layer, of=self.of)

        def encode(x: Floats) -> Floats:
            with torch.no_grad():
                given = torch.from_numpy(np.ascontiguousarray(x)).to(found.values.device, found.values.dtype)
                return np.asarray(found.activations(given).float().cpu().numpy())

        return encode

    def words(self, layer: int) -> tuple[Floats, Floats, Floats | None] | None:
        """Values, output layer and gain of the final norm; None for a model without an output layer."""
        head = find_part(self.lm, "unembedding")
        if head is None:
            return None
        norm = find_part(self.lm, "final_norm")
        gain = None
        if norm is not None and getattr(norm, "weight", None) is not None:
            gain = self._gain(norm).cpu().numpy()
        own = memory(self.lm, layer, of=self.of)
        values = own.values.float() if own.norm is None else own.values.float() * self._gain(own.norm)
        table = head.weight.detach().float().cpu().numpy()
        if table.shape[1] != values.shape[1]:  # a projection stands between
            return None
        return values.cpu().numpy(), table, gain

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Tokens as a reader sees them."""
        return token_texts(self.lm, ids)

    @property
    def precision(self) -> str:
        """What becomes of weights that are no float32, as a sentence; empty where they are."""
        if self.lm.stored == "gguf":
            return "The weights of the GGUF file, quantised as they were, are looked at as de-quantised to float32."
        held = str(memory(self.lm, self.layers[0], of=self.of).values.dtype).removeprefix("torch.")
        if held in HALF:
            return f"The model computes in {held}; what it computes is counted in float32."
        return f"The model is stored in {self.lm.stored}; it was read as {held}." if self.lm.stored in HALF else ""

    @property
    def threads(self) -> int:
        """As many as the model itself runs on."""
        import torch

        return int(torch.get_num_threads())

    @property
    def deviation(self) -> float:
        """The configuration's ``initializer_range``."""
        given = getattr(getattr(self.lm.model, "config", None), "initializer_range", None)
        return float(given) if isinstance(given, float) and given > 0 else DEVIATION


def _parts(text: str, most: int) -> Iterator[str]:
    """Runs of at most ``most`` characters, the next one beginning with the last white space where there is any."""
    start = 0
    while len(text) - start > most:
        stop = start + most
        space = max(text.rfind(" ", start + 1, stop), text.rfind("\n", start + 1, stop))
        stop = space if space > 0 else stop
        yield text[start:stop]
        start = stop
    yield text[start:]
