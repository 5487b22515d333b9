"""The tiny pair that the example comes with, and its passages."""

import functools
import json
from pathlib import Path

import pytest

from answerable.provenance.machine_text import LanguageModelPair

EXAMPLE = Path(__file__).parents[3] / "examples" / "machine-text"


@functools.cache
def _pair() -> LanguageModelPair:
    return LanguageModelPair.from_pretrained(str(EXAMPLE / "instruct"), str(EXAMPLE / "base"))


def _rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def pair() -> LanguageModelPair:
    return _pair()


@pytest.fixture
def human() -> list[str]:
    """Passages that people wrote, 300 of 120 to 500 letters or so."""
    return [row["text"] for row in _rows("human.jsonl")]


@pytest.fixture
def machine() -> list[str]:
    return [row["text"] for row in _rows("asked.jsonl") if row["label"] == "machine"]


@pytest.fixture
def example() -> Path:
    return EXAMPLE
