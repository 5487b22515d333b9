"""Texts that every Python brings along: its help topics, and the docstrings of its standard library.

``python:topics`` is one running text. ``python:docstrings`` are short texts with two labels each, ``package`` and
``kind`` (module, class or function); they are read from the sources, and nothing is imported.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from pathlib import Path

from answerable.errors import CannotRead

TOPICS, DOCSTRINGS = "python:topics", "python:docstrings"
ADDRESSES = (TOPICS, DOCSTRINGS)
PACKAGES = ("asyncio", "email", "unittest", "logging", "multiprocessing", "importlib", "xml", "http")
FEWEST_CHARACTERS = 60
MOST_CHARACTERS = 600


def read_python_texts(address: str) -> list[dict[str, str]]:
    """Records with a text each, and for docstrings its package and kind.

    Raises
    ------
    CannotRead : an installation without them
    """
    found = [{"text": _topics()}] if address == TOPICS else _docstrings()
    if not found:
        raise CannotRead("this Python came without its sources", where=address, mend="give texts of your own")
    return found


def _topics() -> str:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise CannotRead("this Python came without its help", where=TOPICS, mend="give a text of your own") from None
    return "\n".join(topics.values())


def _docstrings() -> list[dict[str, str]]:
    library = Path(sysconfig.get_path("stdlib"))
    records = []
    seen: set[str] = set()
    for package in PACKAGES:
        for path in sorted((library / package).rglob("*.py")):
            if "test" in path.relative_to(library / package).parts:
                continue
            for kind, text in _of_file(path):
                if text not in seen:
                    seen.add(text)
                    records.append({"text": text[:MOST_CHARACTERS], "package": package, "kind": kind})
    return records


def _of_file(path: Path) -> list[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in other people's strings
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    kinds = {ast.Module: "module", ast.ClassDef: "class", ast.FunctionDef: "function", ast.AsyncFunctionDef: "function"}
    found = []
    for node in ast.walk(tree):
        kind = kinds.get(type(node))
        if kind is not None and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = inspect.cleandoc(ast.get_docstring(node, clean=True) or "")
            if len(text) >= FEWEST_CHARACTERS:
                found.append((kind, text))
    return found
