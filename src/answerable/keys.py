"""An answer's key: the SHA-256 of all that can change it, and of nothing else.

Question, the sources of the code that answers it, every parameter, the digest of each subject's content, seed,
threads, device, and the
versions of the numerical packages that code imports. Names, paths and dates of files are no part of it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from answerable import subjects
from answerable.answer import Provenance, encode
from answerable.question import Question

NUMERICAL = {
    "numpy": "numpy",
    "scipy": "scipy",
    "highspy": "highspy",
    "numba": "numba",
    "torch": "torch",
    "transformers": "transformers",
    "sklearn": "scikit-learn",
}
# The core itself is left out, but for the two root modules whose code shows in an answer: a new flag of the command
# line changes no answer.
COUNTED_AT_ROOT = frozenset({"answerable.compiled", "answerable.theme"})


def provenance_of(question: Question, *, seed: int | None, threads: int, device: str) -> Provenance | None:
    """What the answer's key is made of, with the key; None when a live subject has no digest, so that the answer
    cannot be stored.
    """
    parameters = question.model_dump(mode="json", exclude=set(question.subject_fields()))
    for name, kind in question.subject_fields().items():
        value = getattr(question, name)
        if value is None:
            parameters[name] = None
            continue
        digest = subjects.digest(kind, value)
        if digest is None:
            return None
        parameters[name] = {"subject": kind, "digest": digest}
    sources, imported = sources_of(type(question).__module__, tuple(sorted(set(question.subject_fields().values()))))
    packages = {name: found for name in sorted(imported) if (found := _version(NUMERICAL[name]))}
    made = Provenance(
        question=type(question).name,
        sources=sources,
        parameters=dict(sorted(parameters.items())),
        seed=seed,
        threads=threads,
        device=device,
        packages=packages,
        tolerance=type(question).tolerance,
    )
    text = json.dumps(encode(asdict(made)), sort_keys=True, allow_nan=False)
    return replace(made, key=hashlib.sha256(text.encode()).hexdigest())


@functools.cache
def sources_of(module: str, kinds: tuple[str, ...] = ()) -> tuple[str, frozenset[str]]:
    """SHA-256 over a module and all first-party modules it imports, and the numerical packages they import.

    Parameters
    ----------
    module : dotted name of the question's module
    kinds : kinds of subject the question takes; their modules count as imported
    """
    own = module.partition(".")[0]
    digests: dict[str, str] = {}
    imported: set[str] = set()
    todo = [module, *(subjects.SUBJECTS[kind] for kind in kinds)]
    while todo:
        name = todo.pop()
        path = _path(name)
        if name in digests or path is None or not _counts(name):
            continue
        content = path.read_bytes()
        digests[name] = hashlib.sha256(content).hexdigest()
        for target in _imports(content, name, is_package=path.name == "__init__.py"):
            top = target.partition(".")[0]
            if top in (own, "answerable"):
                todo.append(target)
            elif top in NUMERICAL:
                imported.add(top)
    return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest(), frozenset(imported)


def _counts(name: str) -> bool:
    parts = name.split(".")
    return (
        parts[0] != "answerable" or len(parts) > 2 or name in COUNTED_AT_ROOT or (_is_package(name) and len(parts) == 2)
    )


def _imports(content: bytes, module: str, *, is_package: bool) -> Iterator[str]:
    """Dotted names a module's source imports; ``from package import name`` gives the submodule that ``name`` is, or
    comes from.
    """
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            if base.partition(".")[0] in ("answerable", module.partition(".")[0]) and _is_package(base):
                for alias in node.names:
                    yield from _within(base, alias.name)


def _within(package: str, name: str) -> list[str]:
    """The modules that ``from package import name`` brings in."""
    if _path(f"{package}.{name}"):
        return [f"{package}.{name}"]
    exports = _lazy_exports(package)
    if exports is None or name not in exports:
        # Nobody says where the name comes from, so that every module beside it counts.
        path = _path(package)
        return (
            [f"{package}.{file.stem}" for file in sorted(path.parent.glob("*.py")) if file.stem != "__init__"]
            if path
            else []
        )
    return [f"{package}.{exports[name]}"]


@functools.cache
def _lazy_exports(package: str) -> dict[str, str] | None:
    """Submodule by exported name, as the package's ``lazy_loader`` says in a stub or in ``submod_attrs``; None where it
    says nothing.
    """
    path = _path(package)
    if path is None:
        return None
    stub = path.with_suffix(".pyi")
    if stub.is_file():
        imports = [node for node in ast.parse(stub.read_bytes()).body if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module for node in imports if node.module for alias in node.names}
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.keyword) and node.arg == "submod_attrs":
            try:
                return {name: submodule for submodule, names in ast.literal_eval(node.value).items() for name in names}
            except ValueError:
                return None
    return None


@functools.cache
def _path(name: str) -> Path | None:
    """The source file of a module; None where it is no module with a source."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _is_package(name: str) -> bool:
    path = _path(name)
    return path is not None and path.name == "__init__.py"


@functools.cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


__all__ = ["provenance_of", "sources_of"]
