"""A GGUF file as an ordinary model: de-quantised once, kept as safetensors under the digest of the file.

The first loading holds all weights de-quantised and one tensor twice more. Later ones read the cache as any folder in
Hugging Face layout.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import secrets
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from answerable import atomic
from answerable.errors import BadInput, CannotRead, missing_extra
from answerable.subjects import gguf_header
from answerable.subjects.kinds import file_digest
from answerable.subjects.language_model import folder as folders

FORMAT = 1  # of what is kept; a change of it makes all of it anew
MANIFEST = "manifest.json"


class Converted(NamedTuple):
    """A de-quantised model in memory."""

    config: Any
    tensors: dict[str, Any]
    tokenizer: Any


def place(cache: Path | None, digest: str) -> Path | None:
    """Where the de-quantised model of a file is kept: by its content and by what de-quantises it."""
    if cache is None:
        return None
    try:
        made_by = f"{FORMAT} transformers {version('transformers')} gguf {version('gguf')}"
    except PackageNotFoundError as failure:
        raise missing_extra(str(failure.name), "models") from None
    return cache / "models" / f"{digest[:32]}-{hashlib.sha256(made_by.encode()).hexdigest()[:12]}"


def verify(kept: Path | None) -> Future[bool]:
    """Whether what is kept is whole, told by the SHA-256 of each file; it is found out beside other work."""
    pool = ThreadPoolExecutor(1)
    found = pool.submit(_is_whole, kept)
    pool.shutdown(wait=False)
    return found


def load(path: Path, kept: Path | None, whole: bool, say: Any, *, dtype: str, attention: str) -> tuple[Any, Any]:
    """Model and tokenizer of a GGUF file.

    Parameters
    ----------
    path : the file, its header already validated
    kept : folder for the de-quantised model, None where no cache can be written
    whole : whether that folder holds it already
    say : is told what goes on
    dtype, attention : as in ``loading.load``
    """
    if kept is not None and whole:
        with contextlib.suppress(CannotRead):  # whole, and still not what this version reads: made anew below
            return folders.load(kept, dtype=dtype, attention=attention)
    say(f"de-quantising {path.name}")
    with folders.quiet_transformers(), folders.failing_in_one_line(path):
        converted = _convert(path)
        if kept is not None:
            try:
                _keep(converted, kept)
            except OSError as failure:
                say(f"{kept} cannot be written ({failure.strerror}); the model stays in memory alone")
            else:
                del converted
                return folders.load(kept, dtype=dtype, attention=attention)
        else:
            say("no cache can be written; the model stays in memory alone")
        return folders.from_memory(converted, path, dtype=dtype, attention=attention), converted.tokenizer


def _is_whole(kept: Path | None) -> bool:
    if kept is None:
        return False
    try:
        manifest = json.loads((kept / MANIFEST).read_bytes())
        return bool(manifest) and all(file_digest(kept / name) == digest for name, digest in manifest.items())
    except (OSError, ValueError, AttributeError, TypeError, CannotRead):
        return False


def _convert(path: Path) -> Converted:
    """De-quantise all tensors and read configuration and tokenizer, through transformers' own reader of the format."""
    import torch
    from transformers import AutoConfig, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    told = load_gguf_checkpoint(str(path))["config"]
    config = AutoConfig.for_model(**told)
    cls = folders.model_class({"model_type": config.model_type}, path)
    with torch.device("meta"):
        empty = cls(config)
    _nothing_left_over(path, empty, told)
    with contextlib.redirect_stderr(io.StringIO()):  # a bar that no setting turns off
        read = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=empty, torch_dtype=torch.float32)
    config.architectures = [cls.__name__]
    tokenizer = None
    if read["tokenizer"].get("tokens"):
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name, local_files_only=True)
    return Converted(config, read["tensors"], tokenizer)


def _nothing_left_over(path: Path, empty: Any, told: dict[str, Any]) -> None:
    """The reader passes over tensors that it has no place for; a model without them would be another model."""
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    header = gguf_header.read_header(path)
    processor = TENSOR_PROCESSORS.get(header.fields["general.architecture"], TensorProcessor)(config=dict(told))
    known = get_gguf_hf_weights_map(empty, processor)
    left = [tensor.name for tensor in header.tensors if tensor.name not in known and "_exps." not in tensor.name]
    if left:
        problem = f"transformers has no place for {len(left)} of its tensors: {', '.join(left[:3])}"
        raise BadInput(problem, where=str(path), mend="use the model's folder in Hugging Face layout")


def _keep(converted: Converted, kept: Path) -> None:
    """Write the model beside its place and move it there; another process may have been faster."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    atomic.sweep(kept.parent)
    with _beside(kept) as beside:
        try:
            save_file(converted.tensors, str(beside / "model.safetensors"), metadata={"format": "pt"})
        except SafetensorError as failure:  # how the library tells of a full disk
            raise OSError(0, str(failure)) from None
        converted.config.save_pretrained(str(beside))
        if converted.tokenizer is not None:
            converted.tokenizer.save_pretrained(str(beside))
        manifest = {path.name: file_digest(path) for path in sorted(beside.iterdir())}
        (beside / MANIFEST).write_text(json.dumps(manifest, indent=1))
        _move_in(beside, kept)


def _move_in(beside: Path, kept: Path) -> None:
    try:
        beside.rename(kept)
    except OSError:
        if _is_whole(kept):
            return
        shutil.rmtree(kept)
        beside.rename(kept)


@contextlib.contextmanager
def _beside(kept: Path) -> Iterator[Path]:
    beside = kept.parent / f".{kept.name}.{secrets.token_hex(6)}{atomic.PARTIAL}"
    beside.mkdir(mode=0o700)
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)
