"""Answers collected from a server: kept as they come, gone on with after a kill, asked once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from answerable.cli import run
from answerable.errors import AnswerableError
from answerable.provenance.model_lineage import collect_answers
from answerable.subjects import endpoint as module
from answerable.subjects.answer_log import read_answer_log
from answerable.subjects.endpoint import Endpoint
from tests.provenance.model_lineage.conftest import options
from tests.subjects.faulty_server import Faults, serving

N = 60


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.1)


@pytest.fixture
def references():
    rows = [
        (str(m), f"i{i}", "yes" if (i + m) % 3 else "no", "yes", f"Is {i} so?", "ab"[m % 2])
        for m in range(4)
        for i in range(N)
    ]
    names = ("model", "item_id", "answer", "gold", "text", "family")
    frame = pl.DataFrame({name: [row[k] for row in rows] for k, name in enumerate(names)})
    return frame.with_columns(pl.when(pl.col("item_id") == "i0").then(pl.lit("no")).otherwise("gold").alias("gold"))


def answer(text):
    return "Yes." if int(text.split()[1]) % 2 else "no"


def test_every_item_is_asked_once_and_marked(tmp_path, references):
    faults = Faults(refused=0.05, malformed=0.1)
    with serving(faults, answer) as url:
        asked = collect_answers(Endpoint(url, "m"), read_answer_log(references), tmp_path / "a.jsonl")
        again = collect_answers(Endpoint(url, "m"), read_answer_log(references), tmp_path / "a.jsonl")
    assert set(faults.answered.values()) == {1}
    assert len(faults.answered) == N
    assert (asked.kept, again.kept, asked.given_up) == (0, N, {})
    expected = [0.0 if i % 2 else 1.0 for i in range(N)]
    expected[0] = 0.0  # its right answer is no
    assert asked.log.errors[0].tolist() == again.log.errors[0].tolist() == expected


def test_a_killed_ask_loses_nothing_and_asks_nothing_that_it_kept_again(tmp_path, table, made):
    asked = table.filter(pl.col("text").is_in(table["text"][:150]))
    texts = {
        f"{dataset}/{item}": text for dataset, item, text in asked[:150].select("dataset", "item_id", "text").rows()
    }
    replies = {text: str(reply) for text, reply in zip(texts.values(), made.answers[made.models.index("c-2")])}
    asked.filter(pl.col("model") != "c-2").write_parquet(tmp_path / "log.parquet")
    faults = Faults(refused=0.05, silent=0.02, malformed=0.10, seed=1, silence=4.0)
    out, at_once = tmp_path / "a.jsonl", 12
    sizes = {"n_points": 60, "start": 40, "end": 20, "least_evidence": 10}

    def slowly(text):
        time.sleep(0.05)
        return replies[text]

    with serving(faults, slowly) as url:
        command = [
            "ask", "model-lineage", "--log", str(tmp_path / "log.parquet"), "--endpoint", url, "--endpoint-model", "c-2",
            "--collected", str(out), "--at-once", str(at_once), "--timeout", "3", "--store", str(tmp_path / "store"),
            *options(sizes),
        ]  # fmt: skip
        process = subprocess.Popen([sys.executable, "-m", "answerable", *command])
        while not out.exists() or out.read_bytes().count(b"\n") < 30:
            assert process.poll() is None
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = out.read_text().split("\n")[:-1]
        with out.open("ab") as file:
            file.write(b'{"model": "c-2", "dataset"')  # a line that the kill cut short
        assert run(command) == 0
    lines = out.read_text().splitlines()
    assert 30 <= len(kept) < 150
    assert lines[: len(kept)] == kept
    entries = [json.loads(line) for line in lines]
    items = [f"{entry['dataset']}/{entry['item_id']}" for entry in entries]
    assert sorted(items) == sorted(texts)  # each once
    assert [entry["answer"] for entry in entries] == [replies[texts[item]] for item in items]
    assert {faults.answered[texts[item]] for item in items[: len(kept)]} == {1}
    assert faults.answered.total() <= 150 + at_once  # what was under way when it was killed
    assert faults.asked.total() > faults.answered.total()


def test_two_runs_do_not_write_one_file(tmp_path, references):
    log = read_answer_log(references)

    def meanwhile(done, total):
        with pytest.raises(AnswerableError, match="another run is writing it; wait for it, or name another file"):
            collect_answers(Endpoint(url, "m"), log, tmp_path / "a.jsonl")

    with serving(Faults(), answer) as url:
        asked = collect_answers(Endpoint(url, "m"), log, tmp_path / "a.jsonl", told=meanwhile)
    assert len(asked.log.items) == N


def test_a_disk_that_is_full_or_a_file_that_is_none_is_one_line(tmp_path, references, monkeypatch):
    log = read_answer_log(references)
    for path in (tmp_path, "/dev/full"):
        with pytest.raises(AnswerableError, match="it is no plain file; name another file"):
            collect_answers(Endpoint("http://127.0.0.1:9/v1", "m"), log, path)

    (tmp_path / "a.jsonl").touch()
    opened = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, mode="r", **how: opened(Path("/dev/full") if mode == "a" else path, mode, **how)
    )
    with (
        serving(Faults(), answer) as url,
        pytest.raises(AnswerableError, match=r"a\.jsonl: no space left on device; name another file"),
    ):
        collect_answers(Endpoint(url, "m"), log, tmp_path / "a.jsonl")


def test_what_cannot_be_asked_or_kept_is_one_line(tmp_path, references):
    log = read_answer_log(references)
    (tmp_path / "other.jsonl").write_text('{"model": "another", "dataset": "items", "item_id": "i1"}\n')
    with pytest.raises(AnswerableError, match="it holds answers of 'another'; name another file"):
        collect_answers(Endpoint("http://127.0.0.1:9/v1", "m"), log, tmp_path / "other.jsonl")
    (tmp_path / "notes.txt").write_text("my notes\n")
    with pytest.raises(AnswerableError, match=r"notes.txt, line 1: it is no file of answers"):
        collect_answers(Endpoint("http://127.0.0.1:9/v1", "m"), log, tmp_path / "notes.txt")
    with pytest.raises(AnswerableError, match="it holds no questions with right answers"):
        collect_answers(
            Endpoint("http://127.0.0.1:9/v1", "m"), read_answer_log(references.drop("text")), tmp_path / "b"
        )
    with serving(Faults(), status=400) as url, pytest.raises(AnswerableError, match="no reply came"):
        collect_answers(Endpoint(url, "m"), log, tmp_path / "b")
    with pytest.raises(AnswerableError, match="name another file"):
        collect_answers(Endpoint("http://127.0.0.1:9/v1", "m"), log, tmp_path / "none" / "b")
