"""A model's folder in Hugging Face layout, read without its code and without the network."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from answerable.errors import AnswerableError, BadInput, CannotRead, Refused
from answerable.subjects.language_model.content import read_json
from answerable.subjects.language_model.families import BY_MODEL_TYPE


def load(folder: Path, *, dtype: str, attention: str) -> tuple[Any, Any]:
    """Model and tokenizer of a folder in Hugging Face layout, without its code and without the network."""
    import torch

    config = read_json(folder / "config.json")
    with quiet_transformers(), failing_in_one_line(folder):
        model, notes = model_class(config, folder).from_pretrained(
            str(folder),
            dtype=getattr(torch, dtype),
            attn_implementation=attention,
            local_files_only=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # they are refused below, in words of ours
            output_loading_info=True,
        )
        _whole(notes, folder)
        return model, _tokenizer(folder)


def stored(folder: Path) -> str:
    """What the weights were saved in, as the configuration says: "bfloat16"; empty where it does not."""
    config = read_json(folder / "config.json")
    return str(config.get("dtype") or config.get("torch_dtype") or "")


def from_memory(converted: Any, where: Path, *, dtype: str, attention: str) -> Any:
    """The model of weights that are already in memory under the names of its modules."""
    import torch

    cls = model_class({"model_type": converted.config.model_type}, where)
    model, notes = cls.from_pretrained(
        None,
        config=converted.config,
        state_dict=converted.tensors,
        dtype=getattr(torch, dtype),
        attn_implementation=attention,
        output_loading_info=True,
    )
    _whole(notes, where)
    return model


def _whole(notes: dict[str, Any], folder: Path) -> None:
    """Weights that the files lack would be random numbers, and nobody would notice."""
    missing, other = (
        sorted(notes.get("missing_keys", ())),
        sorted(
            f"{name} is {tuple(there)}, not {tuple(wanted)}" for name, there, wanted in notes.get("mismatched_keys", ())
        ),
    )
    if missing or other:
        what = f"the files lack {len(missing)} of the weights" if missing else f"{len(other)} weights have other shapes"
        named = ", ".join((missing or other)[:3])
        raise CannotRead(f"{what} that config.json tells of: {named}", where=str(folder), mend="fetch the folder again")


def model_class(config: dict[str, Any], where: Path) -> Any:
    """The class of transformers that a configuration calls for; never a class of the folder's own."""
    model_type = config.get("model_type")
    if "quantization_config" in config:
        raise BadInput(
            "its weights are quantised", where=str(where), mend="name the unquantised model, or a .gguf file"
        )
    family = BY_MODEL_TYPE.get(str(model_type))
    if family is not None:
        module_name, _, default = family.model_types[str(model_type)].partition(":")
        module = importlib.import_module(f"transformers.models.{module_name}")
        named = (config.get("architectures") or [default])[0]
        found = getattr(module, str(named), None)
        return found if hasattr(found, "from_pretrained") and "For" in str(named) else getattr(module, default)
    from transformers import AutoModelForCausalLM
    from transformers.models.auto import configuration_auto

    if model_type not in configuration_auto.CONFIG_MAPPING_NAMES:
        if "auto_map" in config:
            raise Refused(
                f"the architecture {model_type!r} is code in the folder itself, which is never run",
                where=str(where),
                mend="use a model whose architecture is part of transformers",
            )
        raise BadInput(
            f"transformers knows no architecture {model_type!r}", where=str(where), mend="update transformers"
        )
    return AutoModelForCausalLM


def _tokenizer(folder: Path) -> Any:
    if (folder / "tokenizer.json").is_file():
        # As the file says, without the rebuilding that a model's own tokenizer class may do, and without its import.
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)
    if any((folder / name).is_file() for name in ("tokenizer.model", "spiece.model", "vocab.txt", "vocab.json")):
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    return None


@contextmanager
def failing_in_one_line(where: Path) -> Iterator[None]:
    """Whatever a library says of a damaged folder, as one line."""
    try:
        yield
    except (AnswerableError, ModuleNotFoundError, MemoryError, KeyboardInterrupt):
        raise
    except Exception as failure:
        said = " ".join(str(failure).split())[:300] or type(failure).__name__
        raise CannotRead(said, where=str(where), mend="fetch it again, or name another model") from None


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the library's bars and notes off the screen; put its settings back afterwards."""
    from transformers.utils import logging as library

    level, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    library.set_verbosity(logging.ERROR)
    library.disable_progress_bar()
    try:
        yield
    finally:
        library.set_verbosity(level)
        if bars:
            library.enable_progress_bar()
