"""The door for models: memories of a language model's layers, recorded, compared and aligned with learned features."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from answerable.errors import BadInput
from answerable.subjects import read_sparse_autoencoder
from answerable.subjects.language_model import load, mapped

from .absorption import usable_letters
from .alignment import Alignment
from .alignment import align as align_directions
from .catalogue import Catalogue
from .feature_sets import FeatureSet, Variant, Weights, memory_features, random_features
from .model_source import WINDOW, ModelSource, Window
from .reading import Batch, Reading
from .scores import Labelled, MetricName, Score, absorption_scores, alive_scores, explained_scores, labelled_scores
from .solver import Definition, ErrorSums, Floats, MemoryCounts, Select, k_term_errors

KS = (1, 5, 10, 50, 200)
BATCH_TOKENS = 4096
PER_LETTER = 120  # words of each first letter that absorption is measured on, at most


class FFMemories:
    """The feed-forward layers of a language model, its experts, or its heads, as memories.

    Parameters
    ----------
    source : where they come from; :meth:`from_model` makes one
    layers : numbers of the layers to look at, from 0
    """

    def __init__(self, source: Any, layers: Sequence[int] | None = None) -> None:
        self.source = source
        self.layers = list(source.layers) if layers is None else sorted(set(layers))
        wrong = [layer for layer in self.layers if layer not in source.layers]
        if wrong or not self.layers:
            what = f"there is no layer {wrong[0]}" if wrong else "no layer is chosen"
            raise BadInput(what, where="layers", mend=f"choose from 0 to {source.layers[-1]}")

    @classmethod
    def from_model(
        cls,
        model: Any,
        tokenizer: Any = None,
        *,
        layers: Sequence[int] | Literal["all"] = "all",
        of: Literal["feed_forward", "heads"] = "feed_forward",
        mlp_map: Mapping[str, str] | None = None,
        device: str = "cpu",
    ) -> FFMemories:
        """From a model.

        Parameters
        ----------
        model : an address, a transformers model or a ``LanguageModel``
        tokenizer : of a transformers model
        layers : numbers from 0, or "all"
        of : "feed_forward" layers (experts are told by themselves) or "heads"
        mlp_map : where the feed-forward matrices of another architecture are, with ``*`` for the layer's number:
            ``{"up": "h.*.ffn.0", "down": "h.*.ffn.2", "activation": "relu"}``; "gate" where there is one, and
            "final_norm" for the words that memories promote. It is tried on a few tokens

        Raises
        ------
        BadInput : an architecture without a map (the line lists those that its modules allow), a map that does not
            fit, or no such layer
        """
        given = (model, tokenizer) if tokenizer is not None else model
        lm = load(given, device=device, attention="sdpa")
        source = ModelSource(lm if mlp_map is None else mapped(lm, mlp_map), of=of)
        return cls(source, None if layers == "all" else layers)

    def weights(self, layer: int) -> Weights:
        """A layer as arrays.

        Raises
        ------
        BadInput : there is no such layer
        """
        if layer not in self.source.layers:
            raise BadInput(f"there is no layer {layer}", where="layer", mend=f"from 0 to {self.source.layers[-1]}")
        found: Weights = self.source.weights(layer)
        return found

    def feature_set(
        self, layer: int, *, variant: Variant = "full", k: int = 10, normalise: bool = False, select: Select = "abs"
    ) -> FeatureSet:
        """A layer's memories as features; see :func:`feature_sets.memory_features`.

        Raises
        ------
        BadInput : no such layer, or k is not from 1 to its number of memories
        """
        own = getattr(self.source, "encoder", None)
        if getattr(self.source, "of", "") == "heads":
            made = memory_features(self.weights(layer), variant=variant, k=k, normalise=normalise, select=select)
            return replace(made, reads="activations", encoder=np.asarray)
        return memory_features(
            self.weights(layer),
            variant=variant,
            k=k,
            normalise=normalise,
            select=select,
            encoder=None if own is None else own(layer),
        )

    def learned(
        self,
        layer: int,
        subject: Any,
        *,
        scale: float | None = None,
        transcoder: bool | None = None,
        name: str = "",
    ) -> FeatureSet:
        """A sparse autoencoder or a transcoder of this layer; see :func:`learned_features`."""
        norm = getattr(self.source, "read_norm", lambda _: None)(layer)
        width = self.weights(layer).values.shape[1]
        return learned_features(subject, layer, width, norm=norm, scale=scale, transcoder=transcoder, name=name)

    def random_control(self, layer: int, rng: np.random.Generator, *, k: int | None = None) -> FeatureSet:
        """The same layer with random weights, as it would be before training."""
        return random_features(self.weights(layer), rng, deviation=self.source.deviation, k=k)

    def record(
        self,
        texts: Sequence[str] | Sequence[Window],
        *,
        top: int = 10,
        window: int = WINDOW,
        windows: int | None = None,
        ks: Sequence[int] = KS,
        explain_every: int = 1,
        definition: Definition = "fvu",
        batch_tokens: int = BATCH_TOKENS,
        also: Callable[[Batch], None] | None = None,
        progress: Callable[[Sequence[Any], str], Iterator[Any]] | None = None,
    ) -> Catalogue:
        """Every memory of every layer from one pass over the texts.

        Parameters
        ----------
        texts : raw texts, or windows ready cut
        top : places kept for each memory and side
        window, windows : tokens read at once, and how many windows, evenly spaced; all by default
        ks : how many of a token's largest activations are kept, for explained variance
        explain_every : explained variance rests on one token of this many; the other numbers on all
        definition : of explained variance; "legacy_token_mean" takes a pass of its own for the mean output
        batch_tokens : tokens read at once
        also : called with every batch, for what else is to be kept

        Raises
        ------
        BadInput : there is nothing to read
        """
        cut = self._windows(texts, window=window, most=windows)
        counts: dict[int, MemoryCounts] = {}
        sums: dict[int, ErrorSums] = {}
        at_first = dict.fromkeys(self.layers, 0.0)
        own = {layer: self.source.weights(layer) for layer in self.layers}
        usable = [k for k in sorted(set(ks)) if k <= min(len(weights.values) for weights in own.values())]
        groups = batches(cut, batch_tokens)
        threads = getattr(self.source, "threads", 1)
        centres = self._centres(cut, groups) if definition == "legacy_token_mean" else {}

        def visit(batch: Batch) -> None:
            layer, weights = batch.layer, own[batch.layer]
            if layer not in counts:
                counts[layer] = MemoryCounts(batch.activations.shape[1], top)
                sums[layer] = ErrorSums(
                    batch.written.shape[1], len(usable), definition=definition, centre=centres.get(layer)
                )
            counts[layer].add(batch.activations, threads=threads)
            if usable:
                few = slice(0, None, explain_every)
                errors = _k_term_errors(batch.activations[few], batch.written[few], weights, usable, threads)
                sums[layer].add(batch.written[few], errors)
                at_first[layer] += float(np.square(batch.written[few][batch.position[few] == 0]).sum(dtype=np.float64))
            if also is not None:
                also(batch)

        for group in groups if progress is None else progress(groups, "memories"):
            self.source.run(cut[group], visit, self.layers)
        return Catalogue(
            layers=self.layers,
            counts=counts,
            lengths={layer: np.linalg.norm(weights.values, axis=1) for layer, weights in own.items()},
            windows=[one.ids for one in cut],
            window_texts=[one.text for one in cut],
            skips=[one.skip for one in cut],
            read_tokens=self.source.token_texts,
            word_weights=self.source.words,
            read_again=lambda layer, numbers: self._activations(layer, cut, numbers, batch_tokens),
            ks=usable,
            explained={layer: found.values for layer, found in sums.items()},
            explained_tokens=sums[self.layers[0]].tokens,
            at_first={layer: at_first[layer] / found.square for layer, found in sums.items() if found.square},
        )

    def read(
        self,
        layer: int,
        sets: Sequence[FeatureSet],
        texts: Sequence[str] | Sequence[Window],
        *,
        window: int = WINDOW,
        batch_tokens: int = BATCH_TOKENS,
        definition: Definition = "fvu",
        progress: Callable[[Sequence[Any], str], Iterator[Any]] | None = None,
    ) -> list[Reading]:
        """What several feature sets of one layer make of the same texts, from one pass.

        Parameters
        ----------
        layer : from 0
        sets : feature sets of that layer
        texts : raw texts, or windows ready cut

        Returns
        -------
        one Reading for each set; a text that has no token has 0 tokens there
        """
        cut = self._windows(texts, window=window)
        ready = bool(texts) and isinstance(texts[0], Window)
        n_texts = max([one.text for one in cut], default=-1) + 1 if ready else len(texts)
        groups = batches(cut, batch_tokens)
        centre = self._centres(cut, groups, [layer]).get(layer) if definition == "legacy_token_mean" else None
        width = self.source.weights(layer).values.shape[1]
        readings = [Reading(one, n_texts, width, definition=definition, centre=centre) for one in sets]

        def visit(batch: Batch) -> None:
            for reading in readings:
                reading.add(batch)

        for group in groups if progress is None else progress(groups, "features"):
            self.source.run(cut[group], visit, [layer])
        return [reading.finished() for reading in readings]

    def absorption(
        self,
        layer: int,
        sets: Sequence[FeatureSet],
        *,
        seeds: int,
        rng: Callable[..., np.random.Generator],
        per_letter: int = PER_LETTER,
    ) -> list[Score]:
        """Absorption of first letters, at words of one token in the prompt ``WORD has the first letter:``.

        Other words and their letters stand before, so that no word is the first token of what is read. Sets that
        rebuild the same outputs share the probes of the letters.

        Parameters
        ----------
        per_letter : words of each letter at most

        Raises
        ------
        BadInput : the tokenizer has no words of one token for 20 letters, or has no case
        """
        words = self.letter_words(rng, per_letter=per_letter)
        windows, places = self.source.letter_prompts(words, rng("letter prompts"))
        is_word = np.zeros((len(windows), max(len(one.ids) for one in windows)), bool)
        for number, here in enumerate(places):
            is_word[number, here] = True
        outputs: dict[Any, list[Floats]] = {one.target: [] for one in sets}
        encoded: list[list[Floats]] = [[] for _ in sets]
        at = 0

        def visit(batch: Batch) -> None:
            few = batch.only(np.flatnonzero(is_word[at + batch.window, batch.position]))
            sources: dict[str, Any] = {"input": few.read, "output": few.written, "activations": few.activations}
            for target, written in outputs.items():
                written.append(few.written if target is None else target(sources["input"]))
            for one, found in zip(sets, encoded):
                found.append(few.adding(one, one.encode(sources[one.reads])))

        for group in batches(windows, BATCH_TOKENS):
            at = group.start
            self.source.run(windows[group], visit, [layer])
        letters = np.array([word[0] for word in words])
        joined = {target: np.concatenate(written) for target, written in outputs.items()}
        readings = [(one, joined[one.target], np.concatenate(found)) for one, found in zip(sets, encoded)]
        return absorption_scores(readings, letters, seeds=seeds, rng=rng)

    def letter_words(self, rng: Callable[..., np.random.Generator], *, per_letter: int = PER_LETTER) -> list[str]:
        """The words that absorption is measured on; see :meth:`absorption`."""
        words: list[str] = self.source.letter_words(per_letter, rng("letter words"))
        usable_letters(np.array([word[0] for word in words]))
        return words

    def _activations(
        self, layer: int, cut: Sequence[Window], numbers: Sequence[int], batch_tokens: int
    ) -> dict[int, Floats]:
        """Activations (tokens, m) of a few windows by their number, NaN at tokens that do not count."""
        few = [cut[number] for number in numbers]
        found: dict[int, Floats] = {}
        for group in batches(few, batch_tokens):

            def visit(batch: Batch, first: int = group.start) -> None:
                for row in np.unique(batch.window):
                    mine = batch.window == row
                    whole = np.full((len(few[first + row].ids), batch.activations.shape[1]), np.nan, np.float32)
                    whole[batch.position[mine]] = batch.activations[mine]
                    found[numbers[first + row]] = whole

            self.source.run(few[group], visit, [layer])
        return found

    def centre(self, layer: int, windows: Sequence[Window], *, batch_tokens: int = BATCH_TOKENS) -> Floats:
        """(d,) mean output of a layer over the tokens that count."""
        return self._centres(windows, batches(windows, batch_tokens), [layer])[layer]

    def _windows(
        self, texts: Sequence[str] | Sequence[Window], *, window: int, most: int | None = None
    ) -> list[Window]:
        """Windows ready cut as they are, raw texts cut."""
        given: list[Any] = list(texts)
        if not given:
            raise BadInput("there is no text", where="text", mend="give at least one word")
        if all(isinstance(one, Window) for one in given):
            return given
        cut: list[Window] = self.source.cut(given, window=window, most=most)
        return cut

    def _centres(
        self, cut: Sequence[Window], groups: Sequence[slice], layers: Sequence[int] | None = None
    ) -> dict[int, Floats]:
        """Mean output of each layer, from a pass of its own."""
        sums: dict[int, Any] = {}
        tokens: dict[int, int] = {}

        def visit(batch: Batch) -> None:
            sums[batch.layer] = sums.get(batch.layer, 0.0) + batch.written.sum(axis=0, dtype=np.float64)
            tokens[batch.layer] = tokens.get(batch.layer, 0) + len(batch.written)

        for group in groups:
            self.source.run(cut[group], visit, layers or self.layers)
        return {layer: total / tokens[layer] for layer, total in sums.items()}


def batches(windows: Sequence[Window], batch_tokens: int) -> list[slice]:
    """Runs of windows that are read together: at most ``batch_tokens`` tokens, padding included."""
    found, start, longest = [], 0, 0
    for place, window in enumerate(windows):
        longest = max(longest, len(window.ids))
        if place > start and longest * (place - start + 1) > batch_tokens:
            found.append(slice(start, place))
            start, longest = place, len(window.ids)
    found.append(slice(start, len(windows)))
    return found


def learned_features(
    subject: Any,
    layer: int,
    width: int,
    *,
    norm: tuple[Floats, Floats] | None = None,
    scale: float | None = None,
    transcoder: bool | None = None,
    name: str = "",
) -> FeatureSet:
    """A sparse autoencoder or a transcoder of a feed-forward layer as a feature set.

    Parameters
    ----------
    subject : as :func:`answerable.subjects.read_sparse_autoencoder` takes it
    layer, width : of the layer that it is to be compared with
    norm : (d,) gain and (d,) shift of the norm of what the layer reads, for a transcoder that reads
        ``ln2.hook_normalized``, which is before these; :meth:`FFMemories.learned` knows them
    scale : the number that activations were multiplied by in training, where they were
    transcoder : whether it is one; told by its files where these do

    Raises
    ------
    BadInput : it is of another width, layer or place, or the norm is needed and not given
    """
    found = read_sparse_autoencoder(subject, scale=scale, transcoder=transcoder)
    found.fits(layer, width)
    if found.reads_before_gain:
        if norm is None:
            what = f"it reads {found.hook}, before a gain that is not given or that this model does not have"
            raise BadInput(
                what, where=found.name, mend="load it with FFMemories.learned, of the model it was trained on"
            )
        found = found.behind_norm(*norm)
    kind = "transcoder" if found.is_transcoder else "sparse autoencoder"
    untold: tuple[str, ...] = ()
    if found.layer is None:
        also = ", nor at which side of the norm's gain it reads: behind it is assumed" if found.is_transcoder else ""
        untold = (f"The files of the {kind} do not say which layer it was trained on{also}.",)
    return FeatureSet(
        name=name or kind,
        encoder=found.encode,
        W_dec=found.W_dec,
        b_dec=found.b_dec,
        reads="input" if found.is_transcoder else "output",
        role="baseline",
        notes=(*found.notes, *untold),
    )


class SAEFeatures:
    """Sparse autoencoders and transcoders as feature sets."""

    @staticmethod
    def load(subject: Any, *, layer: int, width: int, **options: Any) -> FeatureSet:
        """As :func:`learned_features`."""
        return learned_features(subject, layer, width, **options)


def align(first: FeatureSet, second: FeatureSet, *, seed: int = 0) -> Alignment:
    """Largest cosines between what two feature sets write; see :func:`alignment.align`."""
    return align_directions(first.directions, second.directions, rng=np.random.default_rng(seed))


def score_features(
    memories: FFMemories,
    layer: int,
    sets: Sequence[FeatureSet],
    labelled: Labelled,
    *,
    metrics: Sequence[MetricName] = ("ev", "alive", "sparse_probe", "ravel", "autointerp", "tpp", "scr"),
    seeds: int = 5,
    seed: int = 0,
    window: int = WINDOW,
    most_tokens: int | None = None,
    definition: Definition = "fvu",
) -> list[Score]:
    """Every yardstick for every feature set, on the same texts and the same splits.

    Parameters
    ----------
    memories, layer : whose inputs and outputs the sets read
    sets : feature sets of that layer, a random control among them
    labelled : texts with their attributes; the first gives the concepts
    metrics : what is measured; "absorption" has its own prompts, see :meth:`FFMemories.absorption`
    seeds : how often texts are split anew
    window : tokens read at once
    most_tokens : tokens read of each text, the rest is dropped; all by default

    Raises
    ------
    BadInput : too few texts of a concept
    """
    texts = labelled.texts if most_tokens is None else memories.source.beginnings(labelled.texts, most_tokens)
    readings = memories.read(layer, sets, texts, window=window, definition=definition)

    def rng(*names: str | int) -> np.random.Generator:
        text = repr((seed, *names)).encode()
        return np.random.default_rng(int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))

    found = explained_scores(readings, seed=seed) if "ev" in metrics else []
    found += alive_scores(readings) if "alive" in metrics else []
    found += labelled_scores(readings, labelled, seeds=seeds, rng=rng, metrics=metrics)
    if "absorption" in metrics:
        found += memories.absorption(layer, sets, seeds=seeds, rng=rng)
    return found


def _k_term_errors(activations: Floats, written: Floats, weights: Weights, ks: Sequence[int], threads: int) -> Floats:
    """Squared errors by k; one decoding for each k where what is written is normed, which is not linear."""
    if weights.norm is None:
        rest = written if weights.value_bias is None else written - weights.value_bias
        return k_term_errors(activations, weights.values, rest, ks, threads=threads)
    errors = np.empty((len(activations), len(ks)))
    for place, k in enumerate(ks):
        kept = memory_features(weights, variant="topk", k=k)
        errors[:, place] = ((written - kept.decode(kept.keep(activations))) ** 2).sum(axis=1)
    return errors
