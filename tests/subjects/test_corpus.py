"""Texts and recorded log-probabilities from every format that is read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from answerable import subjects
from answerable.errors import AnswerableError, BadInput, CannotRead, Refused
from answerable.subjects import read_corpus, read_token_logprobs

ROWS = [{"text": "one", "label": "human", "genre": "news"}, {"text": "two", "label": "llm", "genre": "tale"}]


def written(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["csv", "parquet", "json", "jsonl", "polars", "pandas", "list", "columns"])
def test_every_format_gives_the_same(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(ROWS)
    frame.write_csv(tmp_path / "csv")
    frame.write_parquet(tmp_path / "parquet")
    written(tmp_path, "json", ROWS)
    written(tmp_path, "jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n")
    live = {"polars": frame, "pandas": pd.DataFrame(ROWS), "list": ROWS, "columns": frame.to_dict(as_series=False)}
    subject = live.get(name, str(tmp_path / name))
    found = read_corpus(subject, kind="genre")
    assert found == (["one", "two"], [0, 1], ["news", "tale"])
    assert found.is_labelled
    digest = subjects.digest("corpus", subject)
    assert digest is not None
    assert digest == subjects.digest("corpus", subject)


def test_json_lines_of_one_line_are_one_text(tmp_path: Path) -> None:
    path = written(tmp_path, "one.jsonl", json.dumps(ROWS[1]) + "\n")
    assert read_corpus(path, kind="genre") == (["two"], [1], ["tale"])


@pytest.mark.parametrize("content", ["One line of prose.", "A line, and\nanother, and, more\n", "Two\nlines.\n"])
def test_prose_by_itself_is_told_where_it_goes(tmp_path: Path, content: str) -> None:
    line = "this is no table with a column 'text'; a text by itself goes in as text=@essay.txt; many as a CSV"
    with pytest.raises(BadInput, match=line):
        read_corpus(written(tmp_path, "essay.txt", content))
    assert read_corpus(written(tmp_path, "table.txt", "text\none\n")).texts == ["one"]


def test_commas_without_quotes_are_told(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="a row has more fields than the header; put quotes around fields that hold"):
        read_corpus(written(tmp_path, "a.csv", "text\none, two\n"))


def test_mgtbench_and_fast_detect_gpt(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", {"original": ["o1", "o2"], "sampled": ["s1"]})
    assert read_corpus(path) == (["o1", "o2", "s1"], [0, 0, 1], [])


def test_detectrl(extra_data: Path | None) -> None:
    """The benchmark's own file where it lies beside the checkout, else a replica of its layout."""
    path = extra_data / "machine_text" / "detectrl_xsum_test.json" if extra_data else None
    if path is not None and path.is_file():
        found = read_corpus(str(path), kind="llm_type")
        assert (found.labels.count(0), found.labels.count(1)) == (1000, 1008)
        assert set(found.kinds) == {"ChatGPT", "Claude-instant", "Google-PaLM", "Llama-2-70b"}
        return
    rows = [{"text": "t", "label": label, "data_type": "document", "llm_type": "ChatGPT"} for label in ("human", "llm")]
    assert read_corpus(rows, kind="llm_type") == (["t", "t"], [0, 1], ["ChatGPT", "ChatGPT"])


def test_a_list_of_texts_and_other_columns() -> None:
    assert read_corpus(["a", ""]) == (["a", ""], [None, None], [])
    rows = [{"body": "b", "who": 1}, {"body": "c", "who": None}, {"body": "d", "who": "Human"}]
    assert read_corpus(rows, column="body", label="who") == (["b", "c", "d"], [1, None, 0], [])


def test_an_empty_cell_is_an_empty_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,label\na,0\n,1\n")
    assert read_corpus(path) == (["a", ""], [0, 1], [])


@pytest.mark.parametrize(
    "content, line",
    [
        ("", "the file is empty"),
        ("[]", "there is no text"),
        ("[3]", "row 1: a int is no text"),
        ('["a", null]', "row 2: a NoneType is no text"),
        ('[{"text": "a"}, "b"]', "row 2: a str stands among records"),
        ('[{"text": "a"}, {"txt": "b"}]', "row 2: there is no column 'text'; did you mean 'txt'?"),
        ('[{"text": "a", "label": "dolphin"}]', "row 1, label: 'dolphin' says neither human nor machine"),
        ('{"a": 1}', "an object with a is no list of texts"),
        ("{}", "an object with nothing in it is no list of texts"),
        ('{"original": 3, "sampled": []}', "original is no list"),
        ('{"original": [], "sampled": []}', "there is no text"),
        ('[{"text": "a"}', "no valid JSON"),
        ('{"text": "a"}\n{"text": ', "line 2: this line is no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        ('["\\ud800"]', "row 1: the text holds a lone surrogate"),
        ("words,label\na,b\n", "there is no column 'text'"),
        (b"\x80\x04\x95\x00", "pickle"),
        (b"\x89PNG\x00", "is no table"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path: Path, content: str | bytes, line: str) -> None:
    with pytest.raises(AnswerableError) as error:
        read_corpus(written(tmp_path, "a", content))
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("subject", [3, None, b"ab", object()])
def test_what_is_no_corpus_is_refused(subject: object) -> None:
    with pytest.raises(BadInput):
        read_corpus(subject)


def test_a_kind_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="row 2: there is no 'genre'"):
        read_corpus([ROWS[0], {"text": "b"}], kind="genre")
    with pytest.raises(BadInput, match="texts alone, without a column 'genre'"):
        read_corpus(["a"], kind="genre")
    with pytest.raises(AnswerableError, match="there is no column 'genre'"):
        read_corpus(written(tmp_path, "a.csv", "text\na\n"), kind="genre")


def test_missing_files_are_told() -> None:
    with pytest.raises(CannotRead, match="no such file"):
        read_corpus("nowhere.csv")
    with pytest.raises(CannotRead, match="no such file"):
        read_token_logprobs("nowhere.json")


# Recorded log-probabilities

CHAT = {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1}]}}]}
COMPLETION = {"choices": [{"logprobs": {"tokens": ["a", "b"], "token_logprobs": [None, -1.0]}}]}


@pytest.mark.parametrize(
    "record, expected",
    [
        (CHAT, [-0.5, -1.0]),
        (CHAT["choices"][0], [-0.5, -1.0]),
        (CHAT["choices"][0]["logprobs"], [-0.5, -1.0]),
        (COMPLETION, [np.nan, -1.0]),
        ({"response": {"status_code": 200, "body": COMPLETION}}, [np.nan, -1.0]),
        ({"tokens": ["a", "b"], "logprobs": [-0.5, -1.0]}, [-0.5, -1.0]),
    ],
)
def test_every_layout_of_a_server(tmp_path: Path, record: dict[str, Any], expected: list[float]) -> None:
    for subject in (record, [record], written(tmp_path, "a.json", record), written(tmp_path, "b.json", [record])):
        (found,) = read_token_logprobs(subject)
        assert found.tokens == ["a", "b"]
        np.testing.assert_array_equal(found.logprobs, expected)
    assert len(read_token_logprobs(written(tmp_path, "c.jsonl", f"{json.dumps(record)}\n" * 3))) == 3


@pytest.mark.parametrize(
    "record, line",
    [
        ([], "there is no record"),
        (3, "a int holds no log-probabilities"),
        ([3], "record 1: a int is no record"),
        ({"text": "a"}, "record 1: there are no tokens with log-probabilities"),
        ({"choices": []}, "record 1: there are no tokens with log-probabilities"),
        ({"tokens": ["a"], "logprobs": []}, "there are 1 tokens and 0 log-probabilities"),
        ({"tokens": [3], "logprobs": [-1]}, "token 1: this is no token"),
        ({"tokens": ["a", "b"], "logprobs": [-1, None]}, "token 2: None is no log-probability"),
        ({"tokens": ["a"], "logprobs": [0.5]}, "token 1: 0.5 is no log-probability"),
        ({"tokens": ["a"], "logprobs": ["x"]}, "token 1: x is no log-probability"),
        ({"tokens": ["a"], "logprobs": [True]}, "token 1: True is no log-probability"),
        ({"tokens": ["a"], "logprobs": [float("nan")]}, "token 1: nan is no log-probability"),
        ({"tokens": ["a"], "logprobs": [-(10**400)]}, "is no log-probability"),
        ({"tokens": ["a"], "logprobs": [-9999.0]}, "only says that the token was unlikely"),
    ],
)
def test_records_that_are_none_are_one_line(record: Any, line: str) -> None:
    with pytest.raises(BadInput) as error:
        read_token_logprobs(record)
    assert line in str(error.value)


def test_other_files_hold_no_log_probabilities(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no log-probabilities"):
        read_token_logprobs(written(tmp_path, "a.csv", "a,b\n"))
    with pytest.raises(Refused):
        read_token_logprobs(written(tmp_path, "a.pkl", b"\x80\x04\x95\x00"))


def test_digests_are_of_content(tmp_path: Path) -> None:
    one, other = (written(tmp_path, name, CHAT) for name in ("a.json", "b.json"))
    assert subjects.digest("token_logprobs", one) == subjects.digest("token_logprobs", other)
    assert subjects.digest("token_logprobs", CHAT) != subjects.digest("token_logprobs", COMPLETION)
    with pytest.raises(BadInput, match="no plain records"):
        subjects.digest("token_logprobs", [{1, 2}])
