"""The catalogue against every activation at once, on the planted layer and on tiny models; and what it keeps."""

import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from answerable.errors import BadInput
from answerable.mechanisms.feed_forward_memories import FFMemories
from answerable.mechanisms.feed_forward_memories.planted import CONCEPT, PlantedSource
from answerable.mechanisms.feed_forward_memories.reading import Batch
from answerable.subjects.language_model import LanguageModel
from answerable.subjects.language_model.memories import record
from tests.subjects.tiny_models import LAYERS, tiny
from tests.subjects.tiny_tokenizers import spelled

TEXTS = ["abcdefgh" * 3, "bad cab", "hagfed", "a"]


@pytest.fixture(scope="module")
def planted() -> tuple[PlantedSource, np.ndarray]:
    """The planted layer, and its activations at every token."""
    source = PlantedSource(np.random.default_rng(0))
    found: list[np.ndarray] = []
    source.run(source.windows, lambda batch: found.append(batch.activations), [0])
    return source, found[0]


def test_the_table_is_that_of_all_activations(planted: tuple[PlantedSource, np.ndarray]) -> None:
    source, activations = planted
    catalogue = FFMemories(source).record(source.windows, top=3, ks=(1, 2), batch_tokens=70)
    table = catalogue.table()
    assert catalogue.tokens == len(activations) and catalogue.dropped == 0
    for sign, side in (("+", activations), ("-", -activations)):
        rows = table.filter(pl.col("sign") == sign)
        assert rows["density"].to_list() == pytest.approx((side > 0).mean(0))
        assert rows["alive"].to_list() == (side > 0).any(0).tolist()
        assert rows["peak"].to_list() == pytest.approx(np.maximum(side, 0).max(0))
        assert rows["strength"].to_list() == pytest.approx(
            [column[column > 0].mean() if (column > 0).any() else 0 for column in side.T.astype(float)], rel=1e-5
        )
    card = catalogue.feature(0, CONCEPT)
    assert [context.tokens[context.at] for context in card.contexts] == ["alarm"] * 3
    assert card.promoted[0] == "alarm"
    # activations along the context are those of the pass
    best = card.contexts[0]
    place = int(np.argmax(activations[:, CONCEPT]))
    assert best.values == pytest.approx(activations[place - best.at : place - best.at + len(best.tokens), CONCEPT])


def test_a_table_comes_back_from_its_file(planted: tuple[PlantedSource, np.ndarray], tmp_path: Path) -> None:
    source, _ = planted
    catalogue = FFMemories(source).record(source.windows, ks=())
    catalogue.save(tmp_path / "catalogue.parquet")
    assert pl.read_parquet(tmp_path / "catalogue.parquet").equals(catalogue.table())
    assert pl.from_arrow(catalogue.table().to_arrow()).equals(catalogue.table())  # type: ignore[union-attr]


def test_a_text_ten_times_longer_needs_no_more_memory() -> None:
    def peak(n_texts: int) -> float:
        source = PlantedSource(np.random.default_rng(0), n_texts=n_texts)
        memories = FFMemories(source)
        memories.record(source.windows[:8], batch_tokens=200)  # compiled before it is measured
        tracemalloc.start()
        memories.record(source.windows, batch_tokens=200)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    short, long = peak(400), peak(4000)
    kept = 36_000 * 12 * 4  # bytes of the activations that the longer text has more
    assert long - short < 0.2 * kept


@pytest.mark.parametrize("begin", [False, True])
def test_what_falls_on_first_tokens_is_their_share_of_the_squared_outputs(begin: bool) -> None:
    memories = FFMemories.from_model(spelled(tiny("llama"), begin=begin))
    squares: dict[int, list[float]] = {layer: [0.0, 0.0] for layer in range(LAYERS)}

    def also(batch: Batch) -> None:
        for row, position in zip(batch.written.astype(float), batch.position):
            squares[batch.layer][0] += float(row @ row) * (position == 0)
            squares[batch.layer][1] += float(row @ row)

    found = memories.record(TEXTS, ks=(1,), also=also).at_first
    assert found == pytest.approx({layer: first / whole for layer, (first, whole) in squares.items()})
    assert all((share > 0) != begin for share in found.values())


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2", "olmo2", "mixtral", "bert"])
def test_tokens_that_begin_every_text_and_padding_are_in_no_statistic(name: str) -> None:
    lm = spelled(tiny(name), begin=True)
    memories = FFMemories.from_model(lm)
    catalogue = memories.record(TEXTS, top=4, ks=(1, 3), batch_tokens=1000, window=30)
    windows = memories.source.cut(TEXTS, window=30)
    assert catalogue.dropped == len(windows) == 4
    one_by_one: dict[int, list[torch.Tensor]] = {layer: [] for layer in range(LAYERS)}
    for window in windows:
        record(
            lm,
            torch.from_numpy(window.ids.astype(np.int64))[None],
            lambda layer, seen: one_by_one[layer].append(seen.activations[1:].clone()),
        )
    for layer, parts in one_by_one.items():
        whole = torch.cat(parts).numpy()
        assert catalogue.tokens == len(whole)
        assert catalogue.counts[layer].counts[0] == pytest.approx((whole > 0).sum(0), abs=1)
        assert catalogue.counts[layer].top_values[0, :, 0] == pytest.approx(np.maximum(whole, 0).max(0), abs=1e-4)


def test_half_precision_is_counted_in_float32() -> None:
    lm = tiny("llama")
    model = type(lm.model)(lm.model.config).to(torch.bfloat16).eval()
    model.load_state_dict({name: part.bfloat16() for name, part in lm.model.state_dict().items()})
    memories = FFMemories.from_model(spelled(LanguageModel(model, None, "half", None)))
    catalogue = memories.record(TEXTS, ks=(1, 3))
    assert catalogue.explained[1].dtype == np.float64 and np.isfinite(catalogue.explained[1]).all()
    features = memories.feature_set(1)
    (reading,) = memories.read(1, [features], TEXTS)
    assert features.W_dec.dtype == np.float32 and reading.explained > 0.999


def test_what_is_not_in_it_is_told(planted: tuple[PlantedSource, np.ndarray]) -> None:
    source, _ = planted
    memories = FFMemories(source)
    catalogue = memories.record(source.windows)
    for arguments, told in (
        ((1, 0, "+"), "catalogue: layer 1 was not recorded; choose from 0 to 0"),
        ((0, 12, "+"), "layer 0: there is no memory 12 with sign '[+]'; 0 to 11, [+] or -"),
        ((0, 3, "?"), "there is no memory 3 with sign '[?]'"),
    ):
        with pytest.raises(BadInput, match=told):
            catalogue.feature(*arguments)
    with pytest.raises(BadInput, match="there is no text; give at least one word"):
        memories.record([])
    with pytest.raises(BadInput, match="layers: there is no layer 5; choose from 0 to 0"):
        FFMemories(source, [5])
    with pytest.raises(BadInput, match="there is no layer 5; from 0 to 0"):
        memories.weights(5)
    lm = spelled(tiny("llama"))
    with pytest.raises(BadInput, match="there are no tokens; give at least one word"):
        FFMemories.from_model(lm).record(["", ""])
