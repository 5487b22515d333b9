"""The page that says what holds names, for each of the 25 sentences, tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_sentence_is_listed_once() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 26))


def test_each_is_held_by_tests_that_exist() -> None:
    for number, _, held_by in ROWS:
        files = re.findall(r"`(tests/[^`]+)`", held_by)
        assert files, number
        for name in files:
            assert re.search(r"^def test_", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE), name


def test_every_numbered_test_stands_beside_its_sentence() -> None:
    listed = {(int(number), name) for number, _, held_by in ROWS for name in re.findall(r"`(tests/[^`]+)`", held_by)}
    numbered = {(int(path.name[5:7]), f"tests/core/{path.name}") for path in ROOT.glob("tests/core/test_[0-9]*.py")}
    assert numbered <= listed


def test_every_long_test_is_named() -> None:
    for path in ROOT.glob("tests/soak/test_*.py"):
        assert f"`tests/soak/{path.name}`" in PAGE
