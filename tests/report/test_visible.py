"""Text on the page is seen, never obeyed."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerable.report.visible import escaped, shown, shown_all
from tests.report.hostile import CORPUS


@given(st.text() | st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Mn"])))
def test_nothing_that_is_obeyed_is_left(text: str) -> None:
    left = escaped(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in left)
    assert not set(left) & set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    left.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert escaped(text) == text


def test_controls_are_named_as_on_the_terminal() -> None:
    assert shown("a\x1b[2J\u202e\ud800\n") == r"a\x1b[2J\u202e\ud800\n"


def test_long_texts_are_cut_and_say_so() -> None:
    assert shown("x" * 1000) == "x" * 199 + "…"
    assert len(shown("\u0301" * 1000)) == 4  # marks do not climb over other lines


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-secret-value")
    assert "planted" not in shown("key planted-secret-value")
    assert "planted" not in "".join(shown_all(["a", "planted-secret-value", "https://me:pw@example.com"]))


@given(st.lists(st.text(max_size=50), max_size=20))
def test_many_at_once_are_shown_as_each_alone(texts: list[str]) -> None:
    assert shown_all(texts) == [shown(text) for text in texts]


def test_the_corpus_comes_through_at_once() -> None:
    assert shown_all(CORPUS) == [shown(text) for text in CORPUS]
