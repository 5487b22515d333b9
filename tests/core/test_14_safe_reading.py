"""Kinds are told by content; what could run code is refused and told how to convert; converting is asked for, never implied."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from answerable.asking import ask
from answerable.errors import AnswerableError, Refused
from tests.core.conftest import Command

RAN = "the pickle was run"


class Bomb:
    """What unpickling it would do."""

    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, (RAN,)


def pickled(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(pickle.dumps(Bomb()))
    return path


def object_array(folder: Path) -> Path:
    np.savez(folder / "objects.npz", attentions=np.array([Bomb()], dtype=object))
    return folder / "objects.npz"


def checkpoint(folder: Path, content: object, name: str = "model.pt") -> Path:
    torch.save(content, folder / name)
    return folder / name


@pytest.mark.parametrize("name", ["patterns.npz", "patterns.safetensors", "patterns.joblib", "patterns"])
def test_a_pickle_is_refused_whatever_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match=r"could run code|pickle"):
        ask("attention-flow", attentions=str(pickled(tmp_path, name)), store=False)


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnswerableError, match="object"):
        ask("attention-flow", attentions=str(object_array(tmp_path)), store=False)


def test_a_checkpoint_is_refused_with_the_way_to_convert_it(tmp_path: Path, command: Command) -> None:
    path = checkpoint(tmp_path, {"weight": torch.ones(2, 3)})
    result = command("ask", "attention-flow", "--model", path, "--text", "x", "--store", tmp_path / "store")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert f"answerable convert {path}" in result.stderr
    assert not path.with_suffix(".safetensors").exists(), "nothing is converted unasked"


def test_converting_keeps_every_tensor_and_runs_nothing(tmp_path: Path, command: Command) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.int64)}
    path = checkpoint(tmp_path, tensors)
    result = command("convert", path)
    assert result.returncode == 0, result.stderr
    found = load_file(result.stdout.strip().removeprefix("converted: "))
    assert {name: found[name].tolist() for name in found} == {name: tensor.tolist() for name, tensor in tensors.items()}
    harmful = command("convert", checkpoint(tmp_path, {"a": Bomb()}, "bomb.pt"))
    assert (harmful.returncode, harmful.stderr.count("\n")) == (2, 1)
    assert RAN not in harmful.stdout + harmful.stderr
    assert not list(tmp_path.glob("bomb*.safetensors"))


def test_a_model_that_brings_its_own_code_is_refused(tmp_path: Path, command: Command) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoModel": "mine.Mine"}}')
    (tmp_path / "model" / "mine.py").write_text("raise SystemExit('the code was run')")
    result = command(
        "ask", "attention-flow", "--model", tmp_path / "model", "--text", "x", "--store", tmp_path / "store"
    )
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "the code was run" not in result.stderr
