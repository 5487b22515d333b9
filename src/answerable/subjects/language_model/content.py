"""What a language model's address leads to, and the digest of what is there; torch is never imported here."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from answerable.errors import BadInput, CannotRead, Refused
from answerable.subjects import gguf_header, safetensors_header
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle

MOST_JSON_BYTES = 4_000_000  # of a configuration or an index of shards
# Files whose names say what they are for. Weights are not among them: their shards may have any name.
NAMED = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
)


class ModelFiles(NamedTuple):
    """The files that make up one model: a single GGUF file, or a folder's configuration, tokenizer and shards."""

    path: Path
    gguf: bool
    named: tuple[Path, ...]
    shards: tuple[Path, ...]


def model_files(address: str | Path) -> ModelFiles:
    """The files of the model at an address, each header validated.

    Raises
    ------
    CannotRead : nothing is there, or a file is damaged
    BadInput : what is there is no language model
    Refused : weights that run code when they are read
    """
    path = locate(address, what="a language model: a folder with config.json, or a .gguf file", shipped=_is_model)
    kind = kind_of(path)
    refuse_pickle(path, kind)
    if kind == "gguf":
        gguf_header.read_header(path)
        return ModelFiles(path, True, (), (path,))
    if kind != "folder":
        mend = (
            "name the folder that holds it and config.json"
            if kind == "safetensors"
            else "name a folder or a .gguf file"
        )
        raise BadInput(f"a file of kind {kind!r} is no language model", where=str(path), mend=mend)
    if not (path / "config.json").is_file():
        return _lone_gguf(path)
    shards = _shards(path)
    for shard in shards:
        refuse_pickle(shard, kind_of(shard))
        safetensors_header.read_header(shard)
    return ModelFiles(path, False, tuple(path / name for name in NAMED if (path / name).is_file()), shards)


def digest(value: object) -> str | None:
    """SHA-256 of a language model's content.

    A GGUF file's digest is that of its bytes. A folder's covers its configuration, its tokenizer's files and the bytes
    of its weight shards in any order, and no name or date. A live model's covers its class, configuration, weights and
    tokenizer; it has none if its class is not one of transformers' own or if hooks are on it, since its code is then
    part of what it does.

    Parameters
    ----------
    value : an address, a loaded ``LanguageModel``, a model, or the pair (model, tokenizer)
    """
    if isinstance(value, (str, Path)):
        return digest_of(model_files(value))
    if hasattr(value, "digest") and hasattr(value, "tokenizer"):
        known: str | None = value.digest
        return known
    model, tokenizer = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    return _live_digest(model, tokenizer)


def digest_of(files: ModelFiles) -> str:
    """SHA-256 over the content of a model's files."""
    if files.gguf:
        return file_digest(files.path)
    named = [(path.name, file_digest(path)) for path in files.named]
    return _sha256_of_json([named, sorted(file_digest(path) for path in files.shards)])


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a model's folder.

    Raises
    ------
    CannotRead : too long, not JSON, or no object
    """
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise CannotRead(f"longer than {MOST_JSON_BYTES} bytes", where=str(path), mend="fetch the file again")
        found = json.loads(path.read_bytes())
    except OSError as failure:
        raise CannotRead(failure.strerror or str(failure), where=str(path)) from None
    except (ValueError, RecursionError):
        raise CannotRead("no valid JSON", where=str(path), mend="fetch the file again") from None
    if not isinstance(found, dict):
        raise CannotRead("no JSON object", where=str(path), mend="fetch the file again")
    return found


def _is_model(path: Path) -> bool:
    if path.is_dir():
        return (path / "config.json").is_file() and any(path.glob("*.safetensors"))
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _lone_gguf(folder: Path) -> ModelFiles:
    found = sorted(path for path in folder.iterdir() if path.is_file() and _is_model(path))
    if len(found) == 1:
        return model_files(found[0])
    problem = "there is no config.json and no .gguf file" if not found else f"there are {len(found)} .gguf files"
    mend = "name a folder in Hugging Face layout, or a .gguf file" if not found else f"name one, for example {found[0]}"
    raise BadInput(problem, where=str(folder), mend=mend)


def _shards(folder: Path) -> tuple[Path, ...]:
    """The weight files that transformers would load, in the order of their names."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return (whole,)
    if index.is_file():
        return _indexed(folder, index)
    pickled = sorted(path for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern))
    if pickled:
        for path in pickled:
            refuse_pickle(path, kind_of(path))
    raise CannotRead("there is no model.safetensors", where=str(folder), mend="save the model with safetensors")


def _indexed(folder: Path, index: Path) -> tuple[Path, ...]:
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise CannotRead("weight_map is missing or names no files", where=str(index), mend="fetch the file again")
    shards = []
    for name in sorted(set(places.values())):
        path = folder / name
        if "/" in name or "\\" in name or name.startswith("."):
            raise Refused(
                f"the shard {name[:80]!r} lies outside the folder", where=str(index), mend="fetch the file again"
            )
        if not path.is_file():
            raise CannotRead(f"the shard {name[:80]!r} is missing", where=str(folder), mend="fetch it")
        shards.append(path)
    return tuple(shards)


def _live_digest(model: Any, tokenizer: Any) -> str | None:
    torch = sys.modules.get("torch")  # whoever holds a model has imported it
    if torch is None or not isinstance(model, torch.nn.Module):
        raise BadInput(
            f"a {type(model).__name__} is no language model", mend="give an address, a model or (model, tokenizer)"
        )
    own_code = any(
        not type(module).__module__.startswith(("torch.", "transformers."))
        or module._forward_hooks
        or module._forward_pre_hooks
        or "forward" in vars(module)
        for module in model.modules()
    )
    if own_code or not hasattr(model, "config"):
        return None
    parts: list[Any] = [
        type(model).__qualname__,
        model.config.to_json_string(use_diff=False),
        model.config._attn_implementation,
    ]
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        parts.append([name, str(tensor.dtype), list(tensor.shape), hashlib.sha256(flat.numpy()).hexdigest()])
    if tokenizer is not None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            return None
        parts.append(hashlib.sha256(backend.to_str().encode()).hexdigest())
    return _sha256_of_json(parts)


def _sha256_of_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
