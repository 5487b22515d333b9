"""A real server on loopback, `transformers serve` with SmolLM2-135M-Instruct: asked, gone on with, asked once."""

import importlib.util
import json
import socket
from pathlib import Path

import polars as pl
import pytest

from answerable.provenance.model_lineage import collect_answers
from answerable.subjects.answer_log import read_answer_log
from answerable.subjects.endpoint import Endpoint

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-serve" / "bin" / "python"


@pytest.fixture(scope="module")
def address():
    at = ROOT / "examples" / "served" / "serve.py"
    specification = importlib.util.spec_from_file_location("serve", at)
    serve = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(serve)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve.served(port, str(PYTHON)) as url:
        yield url


@pytest.mark.served
def test_a_real_server_is_asked_each_item_once(address, tmp_path):
    log = read_answer_log(str(ROOT / "examples" / "served" / "adders.csv"))
    few = log.at(log.items[:6])
    server = Endpoint(address, "SmolLM2-135M-Instruct", at_once=2, timeout=120, max_tokens=8)
    kept = tmp_path / "replies.jsonl"
    first = collect_answers(server, few, kept)
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert first.given_up == {}
    assert sorted(line["item_id"] for line in lines) == [str(n) for n in range(6)]
    assert all(line["answer"].strip() for line in lines)

    # A run that was cut off in its fifth line: what is whole is kept, the rest is asked again and, at temperature 0, the same.
    cut = kept.read_text(encoding="utf-8").splitlines(keepends=True)
    kept.write_text("".join(cut[:4]) + cut[4][:20], encoding="utf-8")
    again = collect_answers(server, few, kept)
    assert again.kept == 4
    found = pl.DataFrame([json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]).sort("item_id")
    assert found.equals(pl.DataFrame(lines).select(found.columns).sort("item_id"))
