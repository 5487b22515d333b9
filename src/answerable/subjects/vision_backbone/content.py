"""What a vision backbone's address leads to, and the digest of what is there; torch is never imported here."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

from answerable import places
from answerable.errors import BadInput, Refused
from answerable.subjects import safetensors_header
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of, refuse_pickle
from answerable.subjects.language_model.content import read_json

WHAT = "a vision backbone: a folder with config.json and model.safetensors, or EfficientNet-Lite0's weights"
PREPROCESSOR = "preprocessor_config.json"


class BackboneFiles(NamedTuple):
    """The files of one backbone: a folder in Hugging Face layout, or one file of EfficientNet-Lite0's weights."""

    kind: Literal["transformers", "efficientnet-lite0"]
    path: Path
    named: tuple[Path, ...]
    weights: Path


def backbone_files(address: str | Path) -> BackboneFiles:
    """The files at an address, their headers validated.

    Raises
    ------
    CannotRead : nothing is there, or a file is damaged
    BadInput : what is there is no vision backbone
    Refused : weights that run code when they are read
    """
    path = locate(address, what=WHAT, shipped=lambda file: file.suffix in (".pth", ".safetensors"))
    if path.is_dir():
        return _folder(path)
    kind = kind_of(path)
    if kind in ("torch", "pickle"):
        path = _converted(path)
    elif kind != "safetensors":
        raise BadInput(f"a file of kind {kind!r} is no vision backbone", where=str(path), mend=f"give {WHAT}")
    names = safetensors_header.read_header(path)
    if "_conv_stem.weight" not in names or "_conv_head.weight" not in names:
        mend = "name the folder that holds it and config.json"
        raise BadInput("these are not EfficientNet-Lite0's weights", where=str(path), mend=mend)
    return BackboneFiles("efficientnet-lite0", path, (), path)


def digest(value: object) -> str | None:
    """SHA-256 of a backbone's configuration and weights.

    A live module has one if it is built from torch's and transformers' own classes alone, with no hooks: otherwise its
    code is part of what it does.
    """
    if isinstance(value, (str, Path)):
        return digest_of(backbone_files(value))
    if hasattr(value, "features") and hasattr(value, "digest"):
        known: str | None = value.digest
        return known
    return live_digest(value)


def digest_of(files: BackboneFiles) -> str:
    """SHA-256 over the content of a backbone's files."""
    return _of_json([files.kind, [(path.name, file_digest(path)) for path in files.named], file_digest(files.weights)])


def live_digest(module: Any) -> str | None:
    """As `digest`, of a live module."""
    torch = sys.modules.get("torch")  # whoever holds a module has imported it
    if torch is None or not isinstance(module, torch.nn.Module):
        problem = f"a {type(module).__name__} is no vision backbone"
        raise BadInput(problem, where="backbone", mend="give an address, or a module from (B, 3, H, W) to (B, d)")
    own_code = any(
        not type(part).__module__.startswith(("torch.", "transformers.", "answerable.subjects."))
        or part._forward_hooks
        or part._forward_pre_hooks
        or "forward" in vars(part)
        for part in module.modules()
    )
    if own_code:
        return None
    parts: list[Any] = [repr(module)]
    for name, tensor in sorted(module.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        parts.append([name, str(tensor.dtype), list(tensor.shape), hashlib.sha256(flat.numpy()).hexdigest()])
    return _of_json(parts)


def _folder(path: Path) -> BackboneFiles:
    config, weights = path / "config.json", path / "model.safetensors"
    if not config.is_file():
        raise BadInput("there is no config.json", where=str(path), mend="name a folder in Hugging Face layout")
    read_json(config)
    if not weights.is_file():
        for pickled in sorted([*path.glob("*.bin"), *path.glob("*.pt"), *path.glob("*.pth")]):
            refuse_pickle(pickled, kind_of(pickled))
        raise BadInput("there is no model.safetensors", where=str(path), mend="save the model with safetensors")
    safetensors_header.read_header(weights)
    preprocessor = path / PREPROCESSOR
    return BackboneFiles("transformers", path, (config, preprocessor) if preprocessor.is_file() else (config,), weights)


def _converted(pickled: Path) -> Path:
    """The safetensors that ``answerable convert`` made of a checkpoint, in the cache."""
    folder = places.cache()
    kept = (folder or Path()) / "converted" / f"{file_digest(pickled)}.safetensors"
    if folder is None or not kept.is_file():
        mend = f"convert it once: answerable convert {pickled} --to {kept}"
        raise Refused(
            "this is a torch checkpoint (a pickle inside), which can run code when it is read",
            where=str(pickled),
            mend=mend,
        )
    return kept


def _of_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
