"""Tables on the page and the files to download."""

import base64
import csv
import datetime
import io

import polars as pl
import pytest

from answerable.answer import Table
from answerable.report.rows import Shown, shown_table
from tests.report.hostile import CORPUS


def page(frame: pl.DataFrame, *, rows: int = 50, budget: int = 10**6, file: int = 10**6, **descriptions: str) -> Shown:
    described = {name: descriptions.get(name, "what it holds") for name in frame.columns}
    return shown_table(Table(frame, described), most_rows=rows, budget=budget, csv_budget=file)


def download(shown: Shown) -> list[list[str]]:
    head, _, content = shown.csv.partition("base64,")
    assert head == "data:text/csv;charset=utf-8;"
    return list(csv.reader(io.StringIO(base64.b64decode(content).decode("utf-8"), newline="")))


def test_a_long_text_keeps_its_width_beside_many_columns() -> None:
    body = str(page(pl.DataFrame({"begins": ["Otherwise, raise evaluates the first", "Otherwise"], "n": [1, 2]})).body)
    assert body.count('<td class="long">') == 1
    assert "<td>Otherwise</td>" in body


def test_values_in_words() -> None:
    frame = pl.DataFrame(
        {
            "yes": [True, None],
            "day": [datetime.date(2025, 12, 2), None],
            "list": [[1, 2], []],
            "bytes": [b"ab", None],
            "n": [0.25, None],
        }
    )
    texts = [[cell.text for cell in row] for row in page(frame).rows]
    assert texts == [["yes", "2025-12-02", "1, 2", "2 bytes", "0.25"], ["–", "–", "", "–", "–"]]


def test_a_unit_at_the_end_of_a_description_stands_in_the_head() -> None:
    (head,) = page(pl.DataFrame({"flow_share": [1.0]}), flow_share="share of the flow (%)").heads
    assert (head.name, head.unit, head.numeric) == ("flow share", "%", True)


def test_rows_are_capped_with_the_whole_count_shown() -> None:
    shown = page(pl.DataFrame({"x": list(range(12_345))}), rows=20, file=1000)
    assert len(shown.rows) == 20
    assert (shown.height, shown.width) == (12_345, 1)
    assert 0 < shown.csv_rows < 12_345
    assert download(shown)[1:] == [[str(i)] for i in range(shown.csv_rows)]


def test_long_rows_take_no_more_than_their_budget() -> None:
    frame = pl.DataFrame({f"c{i}": ["x" * 150] * 50 for i in range(30)})
    shown = page(frame, budget=40_000)
    assert 0 < len(shown.rows) < 50
    assert shown.size <= 40_000


def test_the_file_holds_raw_numbers_and_whole_texts() -> None:
    long = "long " * 200
    rows = download(page(pl.DataFrame({"x": [1 / 3, 1e-300], "t": [long, 'a "b",\nc']})))
    assert rows == [["x", "t"], [repr(1 / 3), long], ["1e-300", 'a "b",\nc']]


@pytest.mark.parametrize("text", [text for text in CORPUS if len(text) < 10_000 and "\ud800" not in text])
def test_no_cell_or_head_is_a_formula_or_a_control(text: str) -> None:
    frame = pl.DataFrame({text: [text, "plain"]})
    shown = page(frame)
    for row in download(shown):
        for cell in row:
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
            assert not any(ord(c) < 32 and c not in "\n\t" for c in cell)
            assert not set(cell) & set("\x7f\x85\u202e\u2066\u2028")


def test_negative_numbers_stay_numbers() -> None:
    assert download(page(pl.DataFrame({"x": [-2.5]})))[1] == ["-2.5"]


def test_secrets_are_left_out_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-secret-value")
    shown = page(pl.DataFrame({"t": ["it is planted-secret-value"]}))
    assert "planted" not in str(download(shown)) + str(shown.rows)


def test_a_row_too_long_for_the_file_leaves_no_file() -> None:
    shown = page(pl.DataFrame({"t": ["x" * 5000]}), file=100)
    assert (shown.csv, shown.csv_rows) == ("", 0)
