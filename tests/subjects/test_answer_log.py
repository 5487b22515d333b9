"""Answer logs in every form that is read: the same answers, and one line for whatever is wrong."""

import json
import zipfile

import numpy as np
import polars as pl
import pytest

from answerable import subjects
from answerable.errors import AnswerableError
from answerable.subjects.answer_log import read_answer_log

LONG = """model,dataset,item_id,answer,gold,family
a,x,1,yes,yes,A
a,x,2,no,yes,A
b,x,1,No.,yes,B
b,x,2,I think it is (yes),yes,B
b,y,1,perhaps,no,B
a,y,1,,no,A
"""


def test_a_long_table_is_marked_by_its_options(tmp_path):
    (tmp_path / "log.csv").write_text(LONG)
    log = read_answer_log(tmp_path / "log.csv")
    assert log.models == ("a", "b")
    assert log.items == (("x", "1"), ("x", "2"), ("y", "1"))
    # "no" names no right answer of data set x, where every one is "yes": it cannot be read, and counts as missing
    np.testing.assert_array_equal(log.errors, [[0, np.nan, np.nan], [np.nan, 0, np.nan]])
    assert log.families == {"a": "A", "b": "B"}
    assert log.unreadable.tolist() == [1 / 3, 2 / 3]


def test_answers_are_read_as_the_one_option_they_name(tmp_path):
    rows = [
        ("1", "A", "The answer is B.", 1.0),
        ("2", "B", "b", 0.0),
        ("3", "C", "A or C", np.nan),
        ("4", "A", "(a)", 0.0),
    ]
    frame = pl.DataFrame({"model": ["m"] * 4, "item_id": [r[0] for r in rows], "gold": [r[1] for r in rows],
                          "answer": [r[2] for r in rows]})  # fmt: skip
    np.testing.assert_array_equal(read_answer_log(frame).errors[0], [r[3] for r in rows])


def test_right_answers_may_stand_in_a_table_of_their_own(tmp_path):
    frame = pl.DataFrame({"model": ["m", "m"], "dataset": ["x", "x"], "item_id": [1, 2], "answer": ["a", "b"]})
    gold = pl.DataFrame({"dataset": ["x", "x"], "item_id": ["1", "2"], "gold": ["a", "a"], "text": ["one?", "two?"]})
    log = read_answer_log(frame, gold=gold)
    assert log.texts == ("one?", "two?")
    np.testing.assert_array_equal(log.errors, [[0, np.nan]])


def test_marks_are_taken_as_they_stand(tmp_path):
    frame = pl.DataFrame({"model": ["m"] * 3, "item_id": ["1", "2", "3"], "score": [1.0, 0.25, None]})
    np.testing.assert_array_equal(read_answer_log(frame).errors, [[0, 0.75, np.nan]])
    assert read_answer_log(frame.rename({"score": "acc"})).errors[0, 0] == 0
    flags = frame.select("model", "item_id", correct=pl.Series([True, False, None]))
    np.testing.assert_array_equal(read_answer_log(flags).errors, [[0, 1, np.nan]])


def test_samples_of_the_harness(tmp_path):
    for model, right in (("one", 1), ("two", 0)):
        folder = tmp_path / model
        folder.mkdir()
        lines = [
            {"doc_id": 0, "doc": {"question": "2 + 2?"}, "target": "4", "filtered_resps": ["4"], "acc": right},
            {"doc_id": 1, "doc": {"question": "3 + 3?"}, "target": 1, "resps": [[["-2.5", "False"]], [["-1.5", "True"]]],
             "acc": 1.0},
        ]  # fmt: skip
        (folder / "samples_sums_2026-01-02T03-04-05.jsonl").write_text("\n".join(map(json.dumps, lines)))
    log = read_answer_log(tmp_path)
    assert log.models == ("one", "two")
    assert log.items == (("sums", "0"), ("sums", "1"))
    np.testing.assert_array_equal(log.errors, [[0, 0], [1, 0]])
    assert log.texts[0] == "2 + 2?"
    assert log.answers[0].tolist() == ["4", "1"]  # of a choice by log-probabilities, the likeliest option


def test_logs_of_inspect_as_one_file_and_as_an_archive(tmp_path):
    header = {"eval": {"task": "arc", "model": "org/m"}}
    sample = {"id": 7, "input": "Which?", "target": "B", "output": {"completion": "B"}, "scores": {"s": {"value": "C"}}}
    (tmp_path / "log.json").write_text(json.dumps(header | {"samples": [sample]}))
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "arc", "model": "org/n"}}))
        wrong = sample | {"output": {"choices": [{"message": {"content": "A"}}]}, "scores": {"s": {"value": "I"}}}
        archive.writestr("samples/7_epoch_1.json", json.dumps(wrong))
    log = read_answer_log(tmp_path)
    assert dict(zip(log.models, log.errors[:, 0])) == {"org/m": 0, "org/n": 1}
    assert set(log.answers[:, 0]) == {"A", "B"}
    assert log.gold == ("B",)


def test_lists_of_errors_with_their_accuracies(tmp_path):
    (tmp_path / "m_error.csv").write_text("file,index,sentence\nx,1,one\nx,3,three\n")
    (tmp_path / "n_error.csv").write_text("file,index,sentence\nx,2,two\n")
    (tmp_path / "accuracy.csv").write_text("file,m,n\nx,0.8,0.9\n")
    log = read_answer_log(tmp_path)
    assert log.items == (("x", "1"), ("x", "3"), ("x", "2"))
    np.testing.assert_array_equal(log.errors, [[1, 1, 0], [0, 0, 1]])
    assert log.accuracy == {("m", "x"): 0.8, ("n", "x"): 0.9}
    assert log.texts == ("one", "three", "two")


def test_models_and_items_are_chosen_by_name(tmp_path):
    (tmp_path / "log.csv").write_text(LONG)
    log = read_answer_log(tmp_path / "log.csv").of(["b"]).at([("y", "1"), ("x", "2"), ("z", "9")])
    np.testing.assert_array_equal(log.errors, [[np.nan, 0, np.nan]])
    assert log.answers[0].tolist() == ["perhaps", "I think it is (yes)", ""]
    with pytest.raises(AnswerableError, match="there is no model 'c'"):
        log.of(["c"])


def test_a_digest_is_of_content_and_of_the_names_of_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samples_x.jsonl").write_text(json.dumps({"doc_id": 1, "acc": 1}))
    first, second = (subjects.digest("answer_log", str(tmp_path / name)) for name in ("one", "two"))
    assert first == second
    (tmp_path / "two" / "samples_x.jsonl").rename(tmp_path / "two" / "samples_y.jsonl")
    assert subjects.digest("answer_log", str(tmp_path / "two")) != first
    log = read_answer_log(tmp_path / "one")
    assert subjects.digest("answer_log", log) != subjects.digest("answer_log", read_answer_log(tmp_path / "two"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("model,answer\na,b\n", "there is no column 'item_id'; known: answer, model"),
        ("model,item_id,answer\na,1,b\n", "nothing says which answers are right; add columns answer and gold"),
        ("model,item_id,score\na,1,1.5\n", "log.csv, column score, row 1: 1.5 is no score; give one from 0 to 1"),
        ("model,item_id,score\na,1,1\na,1,0\n", "answered twice by one model: a / items / 1; keep one row for each"),
        ("model,item_id,score\na,,1\n", "a row without model, data set or item; fill it in or drop it"),
        ('{"model": "a", "item_id": 1}\n', "nothing says which answers are right"),
        ('{"model": "a"\n', "log.csv, line 1: it is not JSON"),
        ("[1]\n", "line 1: it is a list, not an object; write one object a line"),
    ],
)
def test_a_log_that_is_none_is_one_line(tmp_path, text, line):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(AnswerableError) as raised:
        read_answer_log(tmp_path / "log.csv")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_empty_folder_and_a_damaged_archive_are_one_line(tmp_path):
    with pytest.raises(AnswerableError, match="the folder holds no answer log; give samples"):
        read_answer_log(tmp_path)
    (tmp_path / "log.eval").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(AnswerableError, match="the archive is damaged"):
        read_answer_log(tmp_path)
