"""Memories of every family on tiny random models: what they rebuild, what is refused, and the question asked of one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers.normalizers import Lowercase

from answerable.asking import ask
from answerable.errors import AnswerableError, BadInput
from answerable.expectations import parse
from answerable.mechanisms.feed_forward_memories import FFMemories, Weights, normalised
from answerable.mechanisms.feed_forward_memories.absorption import absorption, letter_probes
from answerable.mechanisms.feed_forward_memories.model_source import Window
from answerable.mechanisms.feed_forward_memories.reading import Batch
from answerable.mechanisms.feed_forward_memories.scores import absorption_scores
from answerable.subjects.language_model import mapped
from answerable.subjects.language_model.parts import layer_at
from tests.refusals import refused_by_command
from tests.subjects.odd_models import GATED, PLAIN, odd
from tests.subjects.tiny_models import LAYERS, TINY, tiny
from tests.subjects.tiny_tokenizers import spelled

NAME = "feed-forward-memories"
TEXTS = ["abcdefgh" * 3, "bad cab", "hagfed"]


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("of", ["feed_forward", "heads"])
def test_all_memories_together_are_what_the_layer_writes(name: str, of: Any) -> None:
    memories = FFMemories.from_model(spelled(tiny(name)), of=of)
    sets = {layer: memories.feature_set(layer) for layer in memories.layers}
    seen = []

    def check(batch: Batch) -> None:
        features = sets[batch.layer]
        source = batch.activations if of == "heads" else batch.read
        assert source is not None
        rebuilt = features.decode(features.encode(source))
        assert np.abs(rebuilt - batch.written).max() <= 1e-5 * np.abs(batch.written).max()
        # One by one, with the scale of a norm kept as it is, they add up to the same; a bias is nobody's.
        added = batch.adding(features, features.encode(source)) @ features.directions
        if features.b_dec is None or features.gain is None:
            added = added if features.b_dec is None else added + features.b_dec
            assert np.abs(added - batch.written).max() <= 2e-5 * np.abs(batch.written).max()
        seen.append(batch.layer)

    catalogue = memories.record(TEXTS, ks=(1, 2), also=check)
    assert sorted(seen) == list(range(LAYERS))
    assert all(np.isfinite(found).all() for found in catalogue.explained.values())


def test_erasing_every_memory_behind_a_norm_leaves_nothing() -> None:
    memories = FFMemories.from_model(spelled(tiny("gemma3")))
    features = memories.feature_set(1)
    assert features.norm is not None
    reading = memories.read(1, [features, normalised(features)], TEXTS)[0]
    left = reading.outputs - reading.adding @ features.directions
    assert np.abs(left).max() <= 1e-5 * np.abs(reading.outputs).max()
    assert np.abs(reading.adding - reading.means).max() > 1e-3  # which the norm's scale accounts for
    control = memories.read(1, [memories.random_control(1, np.random.default_rng(0))], TEXTS)[0]
    assert control.adding is control.means


@pytest.fixture(scope="module")
def concepts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of two kinds and two colours."""
    path = tmp_path_factory.mktemp("texts") / "concepts.csv"
    rows = [
        f"{'abc' if i % 2 else 'fgh'}{'de' if i // 2 % 2 else 'ed'}{'abcdefgh'[i % 7]},{i % 2},{i // 2 % 2}"
        for i in range(60)
    ]
    path.write_text("text,kind,colour\n" + "\n".join(rows) + "\n")
    return path


def test_the_question_of_a_tiny_model_with_two_learned_sets(concepts: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (
        ("W_enc", (24, 30)), ("b_enc", (30,)), ("W_dec", (30, 24)), ("b_dec", (24,)))}  # fmt: skip
    asked = {
        "model": spelled(tiny("llama")), "text": "abcdefgh" * 40, "window": 32, "k": 3, "layer": 1, "cards": 2,
        "concepts": str(concepts), "attributes": ["kind", "colour"], "seeds": 2, "seed": 0, "store": False,
    }  # fmt: skip
    answer = ask(NAME, **asked, autoencoder=arrays, transcoder=arrays)
    frame = answer.tables["scores"].frame
    assert set(frame["features"]) >= {
        "memories",
        "memories, top 3",
        "sparse autoencoder",
        "transcoder",
        "random memories",
    }
    assert answer.metrics["explained"].value == pytest.approx(1)
    assert answer.metrics["explained_learned"].role == "baseline"
    counted = answer.tables["alignment"].frame
    assert counted.filter(counted["features"] == "transcoder")["count"].to_list() == [30]
    assert answer.tables["detectors"].frame["auroc"].is_between(0, 1).all()
    assert {"cards", "explained", "scores", "layers", "alignment"} <= set(answer.figures)
    assert any("de-quantised" in limit for limit in answer.limits) is False


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"layer": 3}, "field layer: there is no layer 3; choose from 0 to 2"),
        ({"k": 21}, "field k: k is 21, layer 1 has 20 memories; choose from 1 to 20"),
        ({"text": ""}, "text"),
        ({"text": ["", ""]}, "there are no tokens; give at least one word"),
        ({"absorption": True}, "letters: 0 letters begin at least 10 words of one token; this needs 20"),
        ({"judge": "{}"}, "field judge: there are no games to answer; give concepts"),
        ({"of": "heads", "autoencoder": {}}, "learned features are of feed-forward layers"),
        ({"autoencoder": {"W_enc": np.zeros((24, 5))}}, "there is no W_dec, only W_enc"),
        (
            {"autoencoder": {"W_enc": np.zeros((8, 5)), "b_enc": np.zeros(5), "W_dec": np.zeros((5, 8)), "b_dec": np.zeros(8)}},
            "it reads 8 and writes 8 numbers, the layer has 24; choose one that was trained on this model",
        ),
        (
            {"autoencoder": {"W_enc": np.full((24, 5), 1e30), "b_enc": np.ones(5), "W_dec": np.full((5, 24), 1e30), "b_dec": np.zeros(24)}},
            "sparse autoencoder: what it rebuilds is too large for float32; check its weights and its scale",
        ),
    ],
    ids=["layer", "k", "text", "texts", "letters", "judge", "heads", "arrays", "width", "too large"],
)  # fmt: skip
def test_what_a_model_cannot_be_asked_is_told_in_one_line(fields: dict[str, Any], told: str) -> None:
    asked = {"model": spelled(tiny("llama")), "text": "abcdefgh" * 9, "k": 2, "layer": 1, **fields}
    with pytest.raises(AnswerableError) as raised:
        ask(NAME, **asked, seed=0, store=False)
    assert told in str(raised.value) and "\n" not in str(raised.value)


def of_no_family() -> Any:
    from transformers import CTRLConfig, CTRLLMHeadModel

    config = CTRLConfig(vocab_size=20, n_embd=8, dff=16, n_layer=1, n_head=2, n_positions=16, bos_token_id=0)
    return CTRLLMHeadModel(config).eval()


CTRL_MAP = {"up": "transformer.h.*.ffn.0", "down": "transformer.h.*.ffn.2", "activation": "relu"}


def test_an_architecture_without_a_map_is_told_which_maps_its_modules_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, lm = of_no_family(), spelled(tiny("llama"))
    with pytest.raises(BadInput) as raised:
        FFMemories.from_model(model, lm.tokenizer)
    told = f"there is no map of the architecture 'ctrl'; from Python, FFMemories.from_model takes mlp_map, here one of {json.dumps(CTRL_MAP)}"
    assert str(raised.value) == f"<CTRLLMHeadModel>: {told}"
    assert FFMemories.from_model(model, lm.tokenizer, mlp_map=CTRL_MAP).layers == [0]
    model.save_pretrained(tmp_path / "ctrl")
    lm.tokenizer.save_pretrained(tmp_path / "ctrl")
    capsys.readouterr()
    asked = ["--model", str(tmp_path / "ctrl"), "--text", "abc", "--k", "2"]
    assert refused_by_command(capsys, tmp_path, NAME, *asked) == f"{tmp_path / 'ctrl'}: {told}"


@pytest.mark.parametrize(("kind", "given"), [("gated", GATED), ("plain", PLAIN)])
def test_a_mapped_architecture_is_recorded_as_those_of_a_family_are(kind: str, given: dict[str, str]) -> None:
    lm = spelled(odd(kind))
    memories = FFMemories.from_model(lm, mlp_map=given)
    sets = {layer: memories.feature_set(layer) for layer in memories.layers}
    recorded: list[int] = []

    def check(batch: Batch) -> None:
        assert batch.read is not None
        rebuilt = sets[batch.layer].decode(sets[batch.layer].encode(batch.read))
        assert np.abs(rebuilt - batch.written).max() <= 1e-5 * np.abs(batch.written).max()
        recorded.append(batch.layer)

    (window,) = memories.source.cut(TEXTS[:1])
    ids = torch.as_tensor(window.ids.astype(np.int64))[None]
    outputs: list[torch.Tensor] = []
    handle = lm.model.register_forward_hook(lambda *given: outputs.append(given[-1].clone()))
    last = layer_at(memories.source.lm, 2).register_forward_hook(lambda *given: outputs.append(given[-1].clone()))
    with torch.inference_mode():
        lm.model(ids)
        catalogue = memories.record(TEXTS[:1], ks=(1, 12), also=check)
        lm.model(ids)
    handle.remove(), last.remove()
    state, logits, recording, state_after, logits_after = outputs
    assert torch.equal(state, recording) and torch.equal(state, state_after) and torch.equal(logits, logits_after)
    assert recorded == [0, 1, 2]
    assert [found[-1] for found in catalogue.explained.values()] == pytest.approx([1, 1, 1])
    card = catalogue.feature(1, 0)
    if kind == "gated":  # by the output layer, behind the last norm's gain
        values, norm = memories.weights(1).values[0], lm.model.core.last.weight
        logits = torch.from_numpy(values.copy()) * norm.detach() @ lm.model.out.weight.detach().T
        assert card.promoted == memories.source.token_texts(logits.argsort(descending=True)[:10].tolist())
    else:
        assert card.promoted == []  # it has no output layer
    control = memories.read(1, [memories.random_control(1, np.random.default_rng(0))], TEXTS)[0]
    assert control.explained == pytest.approx(1)


def test_a_mapped_model_is_asked_as_any_other() -> None:
    lm = mapped(spelled(odd("gated")), GATED)
    answer = ask(NAME, model=lm, text="abcdefgh" * 9, k=2, layer=1, cards=1, seed=0, store=False)
    assert answer.metrics["explained"].value == pytest.approx(1) and answer.metrics["memories"].value == 36
    with pytest.raises(BadInput, match="of: a map of feed-forward matrices tells of no heads; choose feed_forw"):
        ask(NAME, model=lm, text="abcdefgh" * 9, of="heads", k=2, layer=1, seed=0, store=False)


@pytest.mark.usefixtures("undrawn")
def test_a_dead_value_has_no_direction_and_is_counted() -> None:
    import copy

    lm = spelled(tiny("llama"))
    model = copy.deepcopy(lm.model)
    model.model.layers[1].mlp.down_proj.weight.data[:, 4] = 0
    answer = ask(
        NAME, model=type(lm)(model, lm.tokenizer, "dead", None), text="abcdefgh" * 9, k=2, layer=1, neurons=[4],
        seed=0, store=False,
    )  # fmt: skip
    assert answer.tables["alignment"].frame["dead"].to_list() == [1]
    assert answer.tables["cards"].frame["promoted"].to_list() == [""]
    assert any(limit.startswith("1 memories of the layer write nothing") for limit in answer.limits)


def test_outputs_that_do_not_vary_explain_nothing() -> None:
    import copy

    lm = spelled(tiny("llama"))
    model = copy.deepcopy(lm.model)
    model.model.layers[1].mlp.down_proj.weight.data[:] = 0
    answer = ask(
        NAME, model=type(lm)(model, lm.tokenizer, "constant", None), text="abcdefgh" * 9, k=2, layer=1, seed=0,
        store=False,
    )  # fmt: skip
    assert answer.metrics["explained_top_k"].value != answer.metrics["explained_top_k"].value
    assert "its output does not vary" in answer.summary


def test_hostile_strings_are_drawn_as_what_they_are() -> None:
    lm = spelled(tiny("llama"), letters="abc<>/\x00\u202e\u200b")
    text = "<abc>\x00\u202ea</abc>\u200b" * 8
    answer = ask(NAME, model=lm, text=text, k=2, layer=1, cards=20, seed=0, store=False)
    drawn = "".join(figure.svg() + figure.svg(narrow=True) for figure in answer.figures.values())
    assert not set(drawn) & {"\x00", "\u202e", "\u200b"} and "<script" not in drawn


@pytest.mark.usefixtures("undrawn")
def test_a_few_activations_may_rebuild_worse_than_the_mean() -> None:
    answer = ask(NAME, model=spelled(tiny("llama")), text="abcdefgh" * 9, k=1, layer=1, seed=0, store=False)
    assert answer.metrics["explained_top_k"].value < 0
    assert "the 1 largest of each token rebuild its output worse than its mean" in answer.summary


class PlantedLetters:
    """A layer of 21 memories read one word at a time: one for each letter, and one more that covers two words of a."""

    layers, deviation, of = [0], 0.02, "feed_forward"

    def __init__(self) -> None:
        self.read = np.zeros((800, 21), np.float32)
        self.read[np.arange(800), np.repeat(np.arange(20), 40)] = 1
        self.read[[4, 9]] = np.eye(21)[20]
        self.values = np.vstack([np.eye(20), np.eye(20)[:1]]).astype(np.float32)

    def letter_words(self, per_letter: int, rng: Any) -> list[str]:
        return [letter * 3 for letter in "abcdefghijklmnopqrst" for _ in range(40)]

    def letter_prompts(self, words: list[str], rng: Any) -> tuple[list[Window], list[list[int]]]:
        windows = [Window(i // 2, np.array([99, i, i + 1, 99], np.int32), 0) for i in range(0, len(words), 2)]
        return windows, [[1, 2] for _ in windows]

    def weights(self, layer: int) -> Weights:
        return Weights(keys=np.eye(21, dtype=np.float32), values=self.values)

    def run(self, windows: Any, visit: Any, layers: Any) -> None:
        ids = np.concatenate([window.ids for window in windows])
        read = np.where((ids == 99)[:, None], 7.0, self.read[np.minimum(ids, 799)]).astype(np.float32)
        row, position = np.repeat(np.arange(len(windows)), 4), np.tile(np.arange(4), len(windows))
        visit(Batch(0, read, read, read @ self.values, row, ids, row, position))


def test_absorption_is_read_at_each_word_s_own_token() -> None:
    source = PlantedLetters()
    memories = FFMemories(source)
    rng = lambda *names: np.random.default_rng([17, *map(len, map(str, names))])  # noqa: E731
    sets = [memories.feature_set(0), memories.random_control(0, np.random.default_rng(0))]
    scores = memories.absorption(0, sets, seeds=2, rng=rng)
    letters = np.repeat(list("abcdefghijklmnopqrst"), 40)
    outputs = source.read @ source.values
    probes = letter_probes(outputs, letters, rng("letters", 0))
    expected = absorption(outputs, source.read, source.values, letters, probes)
    value = np.mean([one.fraction for one in expected.values()])
    ours = [one for one in scores if one.features == "memories"]
    assert ours[0].seeds == pytest.approx([value, value]) and value > 0
    assert "20 to 20 of 20 letters have a probe good enough" in ours[0].how
    assert {one.setting for one in ours} == {"mean fraction", "full", "share of words that can score"}
    control = [one for one in scores if one.role == "control"]
    assert control and control[0].value != value


@pytest.mark.usefixtures("undrawn")
def test_absorption_is_undecided_where_no_letter_can_be_read_off(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    letters = np.repeat(list("abcdefghijklmnopqrst"), 60)

    def of_noise(self: Any, layer: int, sets: Any, *, seeds: int, rng: Any) -> Any:
        few = [(one, noise, np.zeros((len(letters), one.count), np.float32)) for one in sets[:1]]
        return absorption_scores(few, letters, seeds=seeds, rng=rng)

    noise = rng.standard_normal((len(letters), 6))
    monkeypatch.setattr(FFMemories, "letter_words", lambda self, rng: [])
    monkeypatch.setattr(FFMemories, "absorption", of_noise)
    answer = ask(
        NAME, model=spelled(tiny("llama")), text="abcdefgh" * 9, k=2, layer=1, seeds=2, absorption=True, seed=0,
        store=False,
    )  # fmt: skip
    found = answer.metrics["absorption"]
    assert found.value != found.value
    assert found.reason == "0 to 0 of 20 letters have a probe good enough (F1 above 0.6)"
    assert any(limit.startswith("Absorption is undecided") for limit in answer.limits)
    assert parse("metrics.absorption < 0.5").check(answer).word == "not run"


@pytest.mark.parametrize("name", TINY)
def test_recording_leaves_what_the_model_computes_to_the_bit(name: str) -> None:
    lm = spelled(tiny(name))
    memories = FFMemories.from_model(lm)
    (window,) = memories.source.cut(TEXTS[:1])
    ids = torch.as_tensor(window.ids.astype(np.int64))[None]
    states: list[torch.Tensor] = []

    def note(_module: Any, _arguments: Any, output: Any) -> None:
        states.append((output[0] if isinstance(output, tuple) else output).clone())

    handle = layer_at(lm, LAYERS - 1).register_forward_hook(note)
    with torch.inference_mode():
        before = lm.model(ids).logits
        memories.record(TEXTS[:1], ks=(1,))
        after = lm.model(ids).logits
    handle.remove()
    assert torch.equal(before, after)
    assert len(states) == 3 and all(torch.equal(state, states[0]) for state in states)


def test_a_tokenizer_without_case_has_no_first_letters() -> None:
    lm = spelled(tiny("llama"))
    assert lm.tokenizer is not None
    lm.tokenizer.backend_tokenizer.normalizer = Lowercase()
    with pytest.raises(BadInput, match="the tokenizer knows no case; leave absorption out"):
        FFMemories.from_model(lm).source.letter_words(10, np.random.default_rng(0))
