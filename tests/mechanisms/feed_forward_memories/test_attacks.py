"""A stranger's attacks: learned features of every layout, damaged and of another place; judges' files; texts at the ends.

All but what only Python can give goes through ``answerable ask`` on a tiny model in a folder.
"""

import copy
import json
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import save_file
from tokenizers.normalizers import Lowercase

from answerable.answer import Answer
from answerable.asking import ask
from answerable.errors import AnswerableError, BadInput
from answerable.mechanisms.feed_forward_memories import FFMemories, SAEFeatures, learned_features, model_source
from answerable.mechanisms.feed_forward_memories.question import FeedForwardMemories
from answerable.subjects.language_model import LanguageModel
from tests.refusals import refused_by_command
from tests.subjects.tiny_models import tiny
from tests.subjects.tiny_tokenizers import spelled

NAME = "feed-forward-memories"
D, M = 24, 30
RNG = np.random.default_rng(5)
ARRAYS = {
    name: RNG.standard_normal(shape).astype(np.float32)
    for name, shape in (("W_enc", (D, M)), ("b_enc", (M,)), ("W_dec", (M, D)), ("b_dec", (D,)))
}
GATES = {name: RNG.standard_normal(M).astype(np.float32) for name in ("b_gate", "r_mag", "b_mag")}
THRESHOLD = {"threshold": np.full(M, 0.5, np.float32)}
OUT, INSIDE = {"hook_name": "blocks.1.hook_mlp_out"}, {"hook_name": "blocks.1.mlp.hook_in"}
MODEL = {"text": "abcdefgh" * 20, "window": 32, "k": 2, "layer": 1, "cards": 1, "seed": 0, "store": False}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model in a folder, as a user has one."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    lm = spelled(tiny("llama"))
    lm.model.save_pretrained(folder)
    lm.tokenizer.save_pretrained(folder)
    return str(folder)


def saelens(path: Path, config: dict[str, Any], changed: dict[str, Any] | None = None) -> Path:
    """A folder as SAELens writes it; None takes an array out."""
    path.mkdir(exist_ok=True)
    (path / "cfg.json").write_text(json.dumps(config))
    arrays = {name: part for name, part in (ARRAYS | (changed or {})).items() if part is not None}
    save_file(arrays, path / "sae_weights.safetensors")
    return path


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a refused ask prints; nothing else is printed, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        capsys.readouterr()
        return refused_by_command(capsys, Path(folder), NAME, *arguments)


def asked_of(model: str, *more: str) -> list[str]:
    """The arguments of an ask that is right, but for ``more``."""
    plain = {"--model": model, "--text": "abcdefgh" * 20, "--window": "32", "--k": "2", "--layer": "1", "--cards": "1"}
    return [word for name, value in plain.items() if name not in more for word in (name, value)] + list(more)


LAYOUTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "standard": ("autoencoder", {"architecture": "standard", **OUT}, {}),
    "hook in metadata": ("autoencoder", {"architecture": "standard", "metadata": OUT}, {}),
    "hook of old files": ("autoencoder", {"hook_point": "blocks.1.hook_mlp_out", "hook_point_layer": 1}, {}),
    "jumprelu": ("autoencoder", {"architecture": "jumprelu", **OUT}, THRESHOLD),
    "topk": ("autoencoder", {"architecture": "topk", "k": 4, **OUT}, {}),
    "gated": ("autoencoder", {"architecture": "gated", **OUT}, {"b_enc": None, **GATES}),
    "transcoder": ("transcoder", {"architecture": "transcoder", **INSIDE}, {}),
    "jumprelu transcoder": ("transcoder", {"architecture": "jumprelu_transcoder", **INSIDE}, THRESHOLD),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.usefixtures("undrawn")
def test_every_published_layout_is_read_and_scored(layout: str, tmp_path: Path) -> None:
    field, config, changed = LAYOUTS[layout]
    lm = spelled(tiny("llama"))
    answer = ask(NAME, model=lm, **{field: str(saelens(tmp_path / "sae", config, changed))}, **MODEL)
    features = FFMemories.from_model(lm).learned(1, str(tmp_path / "sae"))
    memories = FFMemories.from_model(lm, layers=[1])
    (reading,) = memories.read(1, [features], memories.source.cut([MODEL["text"]], window=32, most=20))
    assert answer.metrics["explained_learned"].value == pytest.approx(reading.explained, abs=1e-6)
    assert not any("do not say which layer" in limit for limit in answer.limits)


@pytest.mark.usefixtures("undrawn")
def test_a_gemma_scope_file_says_no_layer_and_the_answer_says_so(tmp_path: Path) -> None:
    np.savez(tmp_path / "params.npz", **ARRAYS, **THRESHOLD)
    answer = ask(NAME, model=spelled(tiny("llama")), transcoder=str(tmp_path / "params.npz"), **MODEL)
    assert any(limit.startswith("The files of the transcoder do not say which layer") for limit in answer.limits)


@pytest.mark.parametrize("hook", ["ln2.hook_normalized", "mlp.hook_in"])
def test_a_transcoder_reads_its_input_at_the_side_of_the_norm_s_gain_that_it_was_trained_at(
    hook: str, tmp_path: Path
) -> None:
    """A transcoder made of the layer's own weights rebuilds all of it, on whichever side it reads."""
    lm = spelled(tiny("opt"))
    memories = FFMemories.from_model(lm)
    weights, norm = memories.weights(1), lm.model.model.decoder.layers[1].final_layer_norm
    gain, shift = (part.detach().numpy() for part in (norm.weight, norm.bias))
    before = hook.startswith("ln2")
    arrays = {
        "W_enc": np.ascontiguousarray(weights.keys * (gain[:, None] if before else 1), np.float32),
        "b_enc": weights.key_bias + (shift @ weights.keys if before else 0),
        "W_dec": np.ascontiguousarray(weights.values), "b_dec": weights.value_bias,
    }  # fmt: skip
    folder = saelens(tmp_path / "sae", {"architecture": "transcoder", "hook_name": f"blocks.1.{hook}"}, arrays)
    features = memories.learned(1, str(folder))
    (reading,) = memories.read(1, [features], ["abcdefgh" * 4])
    assert reading.explained == pytest.approx(1, abs=1e-9)
    if before:
        with pytest.raises(BadInput, match=r"before a gain that is not given .*; load it with FFMemories.learned"):
            SAEFeatures.load(str(folder), layer=1, width=D)
        with pytest.raises(BadInput, match=r"a gain of 0 leaves nothing at 3; choose one that reads mlp.hook_in"):
            learned_features(str(folder), 1, D, norm=(np.arange(D) - 3.0, np.zeros(D)))


def test_a_tuned_one_multiplies_its_activations_once_more(tmp_path: Path) -> None:
    factor = np.linspace(0.5, 2, M).astype(np.float32)
    plain = learned_features(str(saelens(tmp_path / "a", {"architecture": "standard"})), 1, D)
    tuned = learned_features(
        str(saelens(tmp_path / "b", {"architecture": "standard"}, {"finetuning_scaling_factor": factor})), 1, D
    )
    x = RNG.standard_normal((5, D)).astype(np.float32)
    assert tuned.decode(tuned.encode(x)) == pytest.approx(plain.decode(plain.encode(x) * factor), abs=1e-4)


HOSTILE = "blocks.1.hook\n\x1b[31mresid\u202e\u2028pre"
CONFIG = {"architecture": "standard", **OUT}
DAMAGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sizes": (CONFIG, {"b_enc": np.zeros(M + 1, np.float32)}, r"b_enc is float32 of shape (31,), not 30; fetch"),
    "NaN": (CONFIG, {"W_enc": np.full((D, M), np.nan, np.float32)}, "W_enc holds a number that is not finite"),
    "beyond float32": (CONFIG, {"W_dec": np.full((M, D), 1e300)}, "W_dec holds a number that is not finite"),
    "wrong layer": (
        CONFIG | {"hook_name": "blocks.2.hook_mlp_out"}, {},
        "it was trained on layer 2 (blocks.2.hook_mlp_out), layer 1 is asked about; set layer = 2, or choose another",
    ),
    "wrong place": (
        CONFIG | {"hook_name": "blocks.1.hook_resid_post"}, {},
        "it reads blocks.1.hook_resid_post, which is not the feed-forward layer's output; choose one of the feed-forward",
    ),
    "hostile name": (CONFIG | {"hook_name": HOSTILE}, {}, "which is not the feed-forward layer's output"),
    "skips": (CONFIG, {"W_skip": np.eye(D, dtype=np.float32)}, "an autoencoder with W_skip is not read"),
    "kind": (CONFIG | {"architecture": "\x1b[2Jcross\ncoder"}, {}, "is not read; one of standard, transcoder"),
    "a transcoder": (
        {"architecture": "transcoder", **INSIDE}, {},
        "field autoencoder: its files say that it is a transcoder; give it as transcoder",
    ),
    "normed token by token": (CONFIG | {"normalize_activations": "layer_norm"}, {}, "which no one number undoes"),
    "times a number": (
        CONFIG | {"normalize_activations": "expected_average_only_in"}, {}, "give that number as its scale: sqrt(d_in)",
    ),
    "of another model": (
        CONFIG, {"W_enc": np.ones((8, M), np.float32), "W_dec": np.ones((M, 8), np.float32), "b_dec": np.ones(8, np.float32)},
        "it reads 8 and writes 8 numbers, the layer has 24; choose one that was trained on this model",
    ),
    "an array less": (CONFIG, {"W_dec": None}, "there is no W_dec, only W_enc, b_dec, b_enc"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_learned_features_that_cannot_be_used_are_told_in_one_line(
    case: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, changed, told = DAMAGED[case]
    folder = saelens(tmp_path / "sae", config, changed)
    said = refused(asked_of(model, "--autoencoder", str(folder)), capsys)
    assert told in said and (str(folder) in said or "field autoencoder" in said)


def test_files_that_are_no_learned_features_are_told(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = saelens(tmp_path / "torn", CONFIG) / "sae_weights.safetensors"
    torn.write_bytes(torn.read_bytes()[:-40])
    np.savez(tmp_path / "objects.npz", **ARRAYS, more=np.array([{}], dtype=object))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "objects.npz").read_bytes()[:300])
    (tmp_path / "words.npz").write_text("no arrays")
    (tmp_path / "empty").mkdir()
    huge = saelens(tmp_path / "huge", CONFIG)
    (huge / "cfg.json").write_text("[" * 100_000)
    for name, told in (
        ("torn", "the safetensors header is damaged: its tensors end at"),
        ("objects.npz", "the array holds Python objects, which only a pickle can hold"),
        ("cut.npz", "the archive is damaged"),
        ("words.npz", "a file of kind 'text' is no autoencoder"),
        ("empty", "cfg.json: No such file or directory; give a folder with cfg.json"),
        ("huge", "cfg.json: no valid JSON; fetch the file again"),
        ("nowhere", "no such file or folder"),
    ):
        said = refused(asked_of(model, "--transcoder", str(tmp_path / name)), capsys)
        assert told in said and name in said


@pytest.mark.usefixtures("undrawn")
def test_features_that_write_nothing_are_counted_and_have_no_direction() -> None:
    rows = ARRAYS["W_dec"].copy()
    rows[[2, 7]] = 0
    answer = ask(NAME, model=spelled(tiny("llama")), autoencoder={**ARRAYS, "W_dec": rows}, **MODEL)
    table = answer.tables["alignment"].frame
    assert table.filter(table["features"] == "sparse autoencoder")["dead"].to_list() == [2]
    counterparts = answer.tables["counterparts"].frame
    assert sorted(counterparts.filter(counterparts["cosine"].is_null())["feature"].to_list()) == [2, 7]
    assert not any(frame.frame.select(c).to_series().is_nan().any() for frame in answer.tables.values()
                   for c in frame.frame.columns if frame.frame[c].dtype.is_float())  # fmt: skip
    assert answer.metrics["unaligned"].value == pytest.approx(
        float((counterparts["cosine"].drop_nulls() < 0.3).mean())  # type: ignore[arg-type]
    )


def test_where_no_feature_writes_there_is_no_share_and_a_picture_all_the_same() -> None:
    none = ask(NAME, model=spelled(tiny("llama")), autoencoder={**ARRAYS, "W_dec": ARRAYS["W_dec"] * 0}, **MODEL)
    assert none.metrics["unaligned"].reason == "every value is dead"
    assert "alignment" in none.figures


def bytes_in_letters(data: list[int]) -> str:
    """Bytes as byte-level tokenizers spell them."""
    from tokenizers.pre_tokenizers import ByteLevel

    spelled_bytes = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str("\u00e9")[0][0]
    return "".join(spelled_bytes["\u00e9".encode().index(byte)] if byte > 127 else chr(byte) for byte in data)


PLANTED = ["--replica", "planted", "--k", "2", "--cards", "1", "--seeds", "2"]


@pytest.fixture(scope="module")
def games() -> list[dict[str, Any]]:
    """Right answers to all games of the replica."""
    with pytest.MonkeyPatch.context() as undrawn:
        undrawn.setattr(FeedForwardMemories, "_figures", lambda *_: {})
        planted = ask(NAME, replica="planted", k=2, cards=1, seeds=2, seed=0, store=False)
    return [
        {"features": row["features"], "feature": row["feature"], "active": [0, 3]}
        for row in planted.tables["games"].frame.iter_rows(named=True)
    ]


def changed_lines(games: list[dict[str, Any]], place: int, **fields: Any) -> list[str]:
    return [json.dumps({**one, **fields} if number == place else one) for number, one in enumerate(games)]


def test_a_judge_s_file_that_cannot_be_used_is_told_by_its_own_line(
    games: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = len(games) - 1
    plain = changed_lines(games, -1)
    path = tmp_path / "answers.jsonl"
    for lines, told in (
        (["", *changed_lines(games, last, active=[14])], f"judge, line {last + 2}: active is '[14]'; list places from 0"),
        (changed_lines(games, last, active="all"), f"judge, line {last + 1}: active is 'all'"),
        (changed_lines(games, 1, active=[1.0]), "judge, line 2: active is '[1.0]'"),
        (changed_lines(games, 0, feature=True), "judge, line 1: there is no game of feature 'True' of memories"),
        (changed_lines(games, 0, features="\x1b[31mmine"), "judge, line 1: no feature set"),
        ([*plain, plain[-1]], f"judge, line {last + 2}: feature {games[-1]['feature']} of"),
        (plain[:-1], f"judge: feature {games[-1]['feature']} of {games[-1]['features']} has no answer; answer every game"),
        (["[1, 2]"], "judge, line 1: a list and no object"),
        (["{" * 100_000], "judge, line 1: no JSON"),
        (["9" * 10_000], "judge, line 1: no JSON"),
        (["", " "], "judge: there are no answers; give one line for each game, or leave judge out"),
    ):  # fmt: skip
        path.write_text("\n".join(lines), encoding="utf-8")
        assert told in refused([*PLANTED, "--judge", f"@{path}"], capsys)
    path.write_bytes(b"\xff\xfe\x00{")
    assert "answers.jsonl" in refused([*PLANTED, "--judge", f"@{path}"], capsys)


@pytest.mark.usefixtures("undrawn")
def test_a_judge_s_answers_are_a_score_with_an_interval(games: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    # A line separator inside a string ends no line, nor does the mark at the beginning of the file.
    lines = [json.dumps({**one, "why": "so\u2028it is"}, ensure_ascii=False) for one in games]
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    answer = ask(NAME, replica="planted", k=2, cards=1, seeds=2, judge=f"@{path}", seed=0, store=False)
    frame = answer.tables["games"].frame
    scores = answer.tables["scores"].frame.filter(answer.tables["scores"].frame["setting"] == "given judge")
    for row in scores.iter_rows(named=True):
        mine = frame.filter(frame["features"] == row["features"])["judge"]
        assert row["value"] == pytest.approx(mine.mean())
        assert row["low"] <= row["value"] <= row["high"] and f"{len(mine)} games" in row["how"]
    assert scores["features"].to_list() == list(dict.fromkeys(frame["features"]))


TEXTS = {
    "empty": ("", "there are no tokens; give at least one word"),
    "nothing but special ones": (["", ""], "there are no tokens; give at least one word"),
    "no text": ([], "text"),
    "lone surrogate": ("ab\ud800", "text"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_without_a_token_are_told(case: str) -> None:
    text, told = TEXTS[case]
    with pytest.raises(AnswerableError) as raised:
        ask(NAME, model=spelled(tiny("llama")), **{**MODEL, "text": text})
    assert told in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("definition", ["fvu", "legacy_token_mean", "uncentred"])
def test_one_token_explains_nothing_and_says_so(definition: str) -> None:
    answer = ask(NAME, model=spelled(tiny("llama"), begin=True), **{**MODEL, "text": "a"}, definition=definition)
    assert any("of 1 token of this text, and 1 that begin each text are left out" in one for one in answer.limits)
    for name in ("explained", "explained_top_k"):
        metric = answer.metrics[name]
        assert metric.reason if definition != "uncentred" else metric.value <= 1
    if definition != "uncentred":
        assert answer.metrics["explained"].reason == "the outputs do not vary"
        assert "its output does not vary" in answer.summary


def test_one_token_is_drawn() -> None:
    answer = ask(NAME, model=spelled(tiny("llama")), **{**MODEL, "text": "a"})
    assert {"cards", "explained", "scores", "layers", "alignment"} <= set(answer.figures)


def test_a_text_ten_times_longer_asked_of_a_model_needs_no_more_memory() -> None:
    lm = spelled(tiny("llama"))
    memories = FFMemories.from_model(lm)

    def peak(letters: int) -> float:
        text = "abcdefgh" * (letters // 8)
        tracemalloc.start()
        memories.record([text], window=32, batch_tokens=256, ks=(1, 5))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(800)  # compiled before it is measured
    short, long = peak(1_000), peak(10_000)
    assert long - short < 9_000 * 200  # bytes: ids and windows; the activations of three layers would be 2,160,000


@pytest.mark.parametrize("text", ["ab c\nde fgh" * 9, "abcdefgh" * 12, "ab"], ids=["words", "one word", "short"])
def test_a_long_text_is_read_in_parts_and_no_token_is_lost(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = FFMemories.from_model(spelled(tiny("llama"), letters="abcdefgh \n", begin=True)).source
    whole = [i for window in source.cut([text]) for i in window.ids[1:]]
    monkeypatch.setattr(model_source, "PART_CHARACTERS", 25)
    parts = source.cut(["a", text])
    assert [i for window in parts[1:] for i in window.ids[1:]] == whole
    assert [window.text for window in parts] == [0] + [1] * (len(parts) - 1)
    lengths = [len(window.ids) - 1 for window in parts[1:]]
    assert max(lengths) <= 25 and len(lengths) == (5 if " " in text else 4 if len(text) > 25 else 1)
    if " " in text:
        assert all(window.ids[1] >= 12 for window in parts[2:])  # each begins with white space
    with pytest.raises(BadInput, match="text 2: it cannot be turned into tokens"):
        source.cut(["ab", "ab\ud800"])


def test_a_matrix_of_a_model_that_is_not_finite_is_told() -> None:
    lm = spelled(tiny("llama"))
    broken = copy.deepcopy(lm.model)
    broken.model.layers[1].mlp.down_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(BadInput) as raised:
        ask(NAME, model=LanguageModel(broken, lm.tokenizer, "broken", None), **MODEL)
    assert str(raised.value).startswith("broken, layer 1: it writes a number that is not finite; load the model in")


def test_what_is_wrong_is_told_before_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Answer:
        raise AssertionError("the model ran")

    monkeypatch.setattr(FFMemories, "record", fails)
    lm = spelled(tiny("llama"))
    for fields, told in (
        ({"neurons": [3, 20]}, "field neurons: there is no memory 20; choose from 0 to 19"),
        ({"k": 21}, "field k: k is 21, layer 1 has 20 memories"),
        ({"judge": "{}"}, "field judge: there are no games to answer; give concepts"),
        ({"judge": "x"}, "judge, line 1: no JSON"),
        ({"autoencoder": {"W_enc": np.zeros((D, 5))}}, "there is no W_dec, only W_enc"),
    ):
        with pytest.raises(BadInput) as raised:
            ask(NAME, model=lm, **{**MODEL, **fields})
        assert told in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("text,label\n" + "a,x\n" * 50, "concepts, label: 1 values, 50 texts; give at least 10 texts"),
        ("text,label\n" + "a,x\nb,y\n" * 9, "concepts, label: 2 values, 18 texts; give at least 10 texts"),
        ("text,label\n" + "a,x\n,y\n" * 30, "concepts, row 2: the text is empty; leave empty texts out"),
        ("text,colour\n" + "a,x\nb,y\n" * 30, "there is no column 'label'; known: colour, text"),
        ("words,label\n" + "a,x\nb,y\n" * 30, "there is no column 'text'; known: label, words"),
    ],
    ids=["one label", "too few", "empty text", "no label", "no text"],
)
def test_concepts_that_cannot_be_probed_are_told_in_one_line(
    rows: str, told: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "concepts.csv").write_text(rows)
    assert told in refused(asked_of(model, "--concepts", str(tmp_path / "concepts.csv")), capsys)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--absorption"], "letters: 0 letters begin at least 10 words of one token; this needs 20"),
        (["--k", "21"], "feed-forward-memories, field k: k is 21, layer 1 has 20 memories; choose from 1 to 20"),
        (["--k", "0"], "feed-forward-memories, field k: it is 0, and should be greater than or equal to 1; give at least"),
        (["--layer", "3"], "feed-forward-memories, field layer: there is no layer 3; choose from 0 to 2"),
        (["--layers", "9"], "layers: there is no layer 9; choose from 0 to 2"),
        (["--neurons", "20"], "feed-forward-memories, field neurons: there is no memory 20; choose from 0 to 19"),
        (["--text", ""], "there are no tokens; give at least one word"),
        (["--of", "heads", "--autoencoder", "/nowhere"], "learned features are of feed-forward layers; leave them out"),
        (["--autoencoder", "/nowhere"], "/nowhere: no such file or folder; "),
        (["--model", "/nowhere"], "/nowhere: no such file or folder; "),
        (["--judge", "{}"], "feed-forward-memories, field judge: there are no games to answer; give concepts"),
        (["--scale", "2"], "scale is of learned features; give autoencoder or transcoder too"),
        (["--concepts", "/nowhere.csv"], "/nowhere.csv: no such file"),
        (["--corpus", "/nowhere.csv"], "text and corpus exclude each other; give one of the two"),
    ],
    ids=lambda value: value[0].removeprefix("--") if isinstance(value, list) else "",
)  # fmt: skip
def test_what_the_model_cannot_be_asked_is_told_in_one_line(
    more: list[str], told: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refused(asked_of(model, *more), capsys)


def test_an_uncased_tokenizer_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lm = spelled(tiny("llama"))
    lm.tokenizer.backend_tokenizer.normalizer = Lowercase()
    lm.model.save_pretrained(tmp_path / "uncased")
    lm.tokenizer.save_pretrained(tmp_path / "uncased")
    said = refused(asked_of(str(tmp_path / "uncased"), "--absorption"), capsys)
    assert "the tokenizer knows no case; leave absorption out" in said


def test_every_refused_ask_of_the_replica_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for more, told in (
        (["--k", "13"], "field k: k is 13, layer 0 has 12 memories; choose from 1 to 12"),
        (["--definition", "mine"], "definition"),
        (["--seeds", "1"], "field seeds: it is 1, and should be greater than or equal to 2"),
        (["--layer", "-1"], "field layer: it is -1, and should be greater than or equal to 0"),
        (["--of", "heads"], "the replica has no heads; leave of out, or give a model"),
        (["--judge", "@/nowhere/answers"], "/nowhere/answers: No such file or directory"),
        (["--judge", "\u202e{"], "judge, line 1: no JSON; "),
    ):
        assert told in refused(["--replica", "planted", *([] if "--k" in more else ["--k", "2"]), *more], capsys)


def test_quantised_matrices_are_not_taken_for_numbers() -> None:
    lm = spelled(tiny("llama"))
    eighths = copy.deepcopy(lm.model)
    down = eighths.model.layers[1].mlp.down_proj
    down.weight = torch.nn.Parameter(down.weight.detach().mul(8).to(torch.int8), requires_grad=False)
    with pytest.raises(
        BadInput, match="eighths, layer 1: its weights are int8; load the model de-quantised, in float32"
    ):
        FFMemories.from_model(LanguageModel(eighths, lm.tokenizer, "eighths", None))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_half_precision_is_said_whether_it_is_stored_or_held(kind: str, tmp_path: Path) -> None:
    lm = spelled(tiny("llama"))
    half = copy.deepcopy(lm.model).to(getattr(torch, kind))
    half.save_pretrained(tmp_path / "half")
    lm.tokenizer.save_pretrained(tmp_path / "half")
    stored = ask(NAME, model=str(tmp_path / "half"), **MODEL)
    assert f"The model is stored in {kind}; it was read as float32." in stored.limits
    held = ask(NAME, model=LanguageModel(half, lm.tokenizer, "half", None), **MODEL)
    assert f"The model computes in {kind}; what it computes is counted in float32." in held.limits
    for answer in (stored, held):
        assert answer.metrics["explained"].value == pytest.approx(1, abs=1e-4)
    plain = ask(NAME, model=lm, **MODEL)
    assert not any("float" in limit for limit in plain.limits)


def test_weights_of_a_gguf_file_are_said_to_be_dequantised() -> None:
    memories = FFMemories.from_model(replace(spelled(tiny("llama")), stored="gguf"))
    assert memories.source.precision.endswith("quantised as they were, are looked at as de-quantised to float32.")


def test_pieces_of_letters_stay_token_ids(tmp_path: Path) -> None:
    """Each byte of a letter is a token of its own: no text by itself, and counted and shown all the same."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = [letter for byte in (*b"ab", *"\u00e9".encode()) for letter in bytes_in_letters([byte])]
    tokenizer = Tokenizer(models.BPE({letter: 4 + place for place, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    lm = LanguageModel(tiny("llama").model, PreTrainedTokenizerFast(tokenizer_object=tokenizer), "bytes", None)
    memories = FFMemories.from_model(lm)
    catalogue = memories.record(["ab\u00e9"])
    assert [ids.tolist() for ids in catalogue.windows] == [[4, 5, 6, 7]]
    card = catalogue.feature(1, 0)
    assert catalogue.tokens == 4 and len(card.contexts[0].tokens) == 4
    assert memories.source.token_texts([4, 5, 6, 7]) == ["a", "b", r"\xc3", r"\xa9"]
    assert set(catalogue.table().filter(pl.col("alive"))["peak_token"]) <= {"a", "b", r"\xc3", r"\xa9"}
