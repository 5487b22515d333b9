"""Answers collected from a server: kept as they come, gone on with after a kill, asked once."""

import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from answerable.errors import AnswerableError
from answerable.provenance.model_lineage import collect_answers
from answerable.subjects import endpoint as module
from answerable.subjects.answer_log import read_answer_log
from answerable.subjects.endpoint import Endpoint
from tests.subjects.faulty_server import Faults, serving

N = 60


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.1)


@pytest.fixture
def references():
    rows = [
        (m, f"i{i}", "yes" if (i + m) % 3 else "no", "yes", f"Is {i} so?", "ab"[m % 2])
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


def test_a_killed_collection_goes_on_and_asks_no_kept_answer_again(tmp_path, references):
    references.write_parquet(tmp_path / "log.parquet")
    program = """
import sys
from answerable.provenance.model_lineage import collect_answers
from answerable.subjects.answer_log import read_answer_log
from answerable.subjects.endpoint import Endpoint
collect_answers(Endpoint(sys.argv[1], "m", at_once=2), read_answer_log(sys.argv[2]), sys.argv[3])
"""
    faults = Faults()

    def slowly(text):
        time.sleep(0.02)
        return answer(text)

    out = tmp_path / "a.jsonl"
    with serving(faults, slowly) as url:
        process = subprocess.Popen([sys.executable, "-c", program, url, str(tmp_path / "log.parquet"), str(out)])
        while not out.exists() or out.read_bytes().count(b"\n") < 10:
            assert process.poll() is None
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = out.read_bytes().count(b"\n")
        with out.open("ab") as file:
            file.write(b'{"model": "m", "dataset"')  # a line that the kill cut short
        asked = collect_answers(Endpoint(url, "m"), read_answer_log(references), out)
    assert 10 <= asked.kept == kept < N
    assert faults.answered.total() <= N + 2  # what was under way when it was killed
    assert out.read_bytes().count(b"\n") == N
    assert not any(error != error for error in asked.log.errors[0])


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
