"""One file that requests nothing, reads without a script, and shows every ask; small however many rows its answers hold.

Looks, keyboard, print and accessibility are tried in a browser in ``tests/report/test_browser.py``.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from answerable.answer import Table
from answerable.asking import ask
from answerable.dossier import Dossier
from answerable.report import html, report_data, write

ASKS = [
    {"question": "trivial/mean", "name": "held", "numbers": [1, 2], "expect": "metrics.mean == 1.5"},
    {"question": "trivial/mean", "name": "failed", "numbers": [1, 2], "expect": "metrics.mean > 2"},
    {"question": "trivial/luck", "name": "undecided", "seed": 1, "expect": "metrics.share > 0.5"},
    {"question": "trivial/luck", "name": "not run", "seed": 1, "fail_at": 0, "expect": "metrics.share > 0"},
    {"question": "trivial/mean", "name": "nothing expected", "numbers": [1, 2]},
]


def test_every_ask_is_shown_with_its_outcome() -> None:
    page = html(Dossier.from_mapping({"title": "All of them", "ask": ASKS}).run())
    for ask_ in ASKS:
        assert str(ask_["name"]) in page
    data = report_data(Dossier.from_mapping({"ask": ASKS}).run())
    assert [json.dumps(data).count(f'"{word}"') >= 1 for word in ("held", "failed", "undecided", "not run")] == [
        True
    ] * 4
    assert "this unit fails" in page


def test_nothing_is_requested() -> None:
    page = html(Dossier.from_mapping({"ask": ASKS}).run())
    links = re.findall(r"""(?:src|href|action|xlink:href)=["']([^"']*)""", page)
    assert all(link.startswith(("#", "data:text/csv")) for link in links), links
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(" not in page


def test_each_figure_is_inline_with_its_words_and_its_numbers_in_a_table() -> None:
    page = html([ask("trivial/luck", seed=1, store=False)])
    assert page.count("<figure>") == 1
    assert re.search(r'<svg[^>]*role="img"[^>]*aria-label="Bars of heads per unit', page)
    assert "Heads by unit" in page


def test_a_million_rows_do_not_make_the_file_larger(tmp_path: Path) -> None:
    answer = ask("trivial/luck", seed=1, store=False)
    frame = pl.DataFrame({"x": pl.arange(0, 1_000_000, eager=True)})
    large = replace(answer, tables={**answer.tables, "rows": Table(frame, {"x": "a number"}, title="Many")})
    path = write([large] * 5, tmp_path / "r.html")
    assert path.stat().st_size < 5_000_000
    assert "1,000,000 rows" in path.read_text()


def test_two_runs_of_one_dossier_show_the_same_data(tmp_path: Path) -> None:
    first, second = (report_data(Dossier.from_mapping({"ask": ASKS}).run()) for _ in range(2))
    assert first == second
