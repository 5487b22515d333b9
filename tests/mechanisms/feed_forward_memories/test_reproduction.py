"""The reproduction on tiny models: the rows of one metric, what it refuses, and the order on a model with a norm."""

import sys
from typing import Any

import numpy as np
import pytest

from answerable.mechanisms.feed_forward_memories import FFMemories
from answerable.subjects.corpus import Corpus
from reproductions import __main__ as command
from reproductions import feed_forward_memories as reproduction
from tests.subjects.tiny_models import tiny
from tests.subjects.tiny_tokenizers import spelled

SETS = ("memories", "memories, top 10", "sparse autoencoder", "transcoder", "random memories")


def corpus(subject: str, *, label: str, kind: str | None = None) -> Corpus:
    """Letters instead of Python's own texts, of two packages and two kinds that a probe can tell."""
    if subject == "python:topics":
        return Corpus(["abcdefghhgfedcba" * 60], [None], [])
    rng = np.random.default_rng(3)
    of_kind = {"package": lambda i: i % 2, "kind": lambda i: i // 2 % 2}
    texts = ["".join(rng.permutation(list("abcd" if i % 2 else "efgh"))) * (1 + i // 2 % 2) for i in range(120)]
    return Corpus(texts, [None] * 120, [f"{kind} {of_kind[kind](i)}" for i in range(120)] if kind else [])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model and texts in the place of what the reproduction reads."""
    monkeypatch.setattr(reproduction, "MODEL", spelled(tiny("llama")))
    monkeypatch.setattr(reproduction, "LAYER", 1)
    monkeypatch.setattr(reproduction, "read_corpus", corpus)
    monkeypatch.setattr(reproduction, "random_cosines", lambda rng: iter(()))


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["reproductions", "feed-forward-memories", *arguments])
    assert command.main() == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    # Each row is told on standard error as soon as it is there, and all of them as a table in the end.
    assert [line.split() for line in said.err.splitlines()[-len(lines[3:]) :]] == [line.split() for line in lines[3:]]
    return lines


def test_one_metric_s_rows_are_those_of_the_whole_table(
    small: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [line.split() for line in printed(monkeypatch, capsys, "--quick")]
    for metric, settings in (("sparse_probe", ["k = 1"]), ("ravel", ["isolation", "causality"])):
        few = printed(monkeypatch, capsys, "--quick", "--only", metric)
        mine = [line for line in few if line.startswith(f"{metric}, ")]
        names = [f"{metric}, {setting}: {name}" for setting in settings for name in SETS]
        assert [line.partition("  ")[0] for line in mine] == names
        assert all("column paper: ours, before" in line for line in few[3:] if line not in mine)
        assert all(line.split() in whole for line in mine) and len(few) < len(whole)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["feed-forward-memories", "--only", "beauty"], "--only: there is no metric 'beauty'; choose from alive, ev, "),
        (["path-patching", "--only", "ev"], "the rows of path-patching are made together; leave --only out"),
    ],
)
def test_a_metric_that_is_not_there_is_refused(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reproductions", *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_the_paper_s_order_holds_behind_a_norm(small: None) -> None:
    memories = FFMemories.from_model(spelled(tiny("gemma3"), begin=True), layers=[1])
    training = reproduction.Training(0, 0, 100, 2, 0, False)
    found: dict[str, Any] = {
        what.partition(": ")[2]: value
        for what, _, value, _ in reproduction.second_model(
            memories, 1, corpus("python:topics", label="").texts, training
        )
    }
    ev = {name.removeprefix("ev, fvu: "): value for name, value in found.items() if name.startswith("ev")}
    assert [ev[name] for name in ("memories", "memories, normalised", "random memories")] == pytest.approx([1, 1, 1])
    assert ev["memories, top 10"] == pytest.approx(ev["memories, top 10, normalised"], abs=1e-6)
    assert ev["memories, top 10"] < 1
    assert ev["memories, top 10"] == pytest.approx(found["explained variance of the 10 largest"], abs=1e-6)
    assert found["sparse_probe, k = 1: memories"] > 0.8
