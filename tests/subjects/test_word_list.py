"""Word lists from tables and from dictionaries, and what is said of damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from answerable.errors import AnswerableError
from answerable.subjects import digest, read_word_list
from answerable.subjects.word_list import DIGITS

ARTICLES = {
    "00databaseshort": ["00databaseshort\n     Some - Other FreeDict+WikDict dictionary\n"],
    "cat": [
        "cat /kæt/\n1. chat, matou\n2. fouet\n",
        "cat burglar /x/\nmonte-en-l'air, and so much longer than others\n",
    ],
    "haus": ["Haus /haʊs/ <neut, n, sg>\n [adm.] house <n>, home <n>\n   Synonyms: {Heim}\n", "Haus <n>\nhut\n"],
    "eagle-eyed": ["eagle-eyed\nà l'œil vif\n"],  # not one word
    "potato": ["potato /x/\npomme de terre; patate\n"],
    "été": ["été /ete/\nsummer [season]\n"],
    "empty": ["empty\n"],
}


def base64(number: int) -> str:
    signs = {value: sign for sign, value in DIGITS.items()}
    text = signs[number % 64]
    while number := number // 64:
        text = signs[number % 64] + text
    return text


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    texts, lines = b"", []
    for headword, articles in ARTICLES.items():
        for article in articles:
            content = article.encode()
            lines.append(f"{headword}\t{base64(len(texts))}\t{base64(len(content))}")
            texts += content
    (tmp_path / "tiny.index").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "tiny.dict.dz").write_bytes(gzip.compress(texts, mtime=0))
    return tmp_path / "tiny.index"


def test_a_dictionary_gives_single_words_with_their_first_translation(dictionary: Path) -> None:
    wanted = [("cat", "chat"), ("Haus", "house"), ("été", "summer")]
    assert read_word_list(dictionary) == wanted
    assert read_word_list(str(dictionary.with_name("tiny.dict.dz"))) == wanted


def test_the_digest_is_of_both_files(dictionary: Path) -> None:
    first = digest("word_list", str(dictionary))
    assert first == digest("word_list", dictionary.with_name("tiny.dict.dz"))
    articles = dictionary.with_name("tiny.dict.dz")
    articles.write_bytes(gzip.compress(gzip.decompress(articles.read_bytes()) + b"\n", mtime=0))
    assert digest("word_list", dictionary) != first


def test_a_table_gives_its_first_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("word,translation,note\ncat, chat ,x\n,rien,\ndog,chien,\n")
    assert read_word_list(path) == [("cat", "chat"), ("dog", "chien")]
    assert read_word_list(pl.DataFrame({"a": ["x"], "b": ["y"]})) == [("x", "y")]
    assert digest("word_list", path) == digest("table", path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda index, articles: articles.unlink(), r"tiny\.dict\.dz is missing beside it; put both files"),
        (lambda index, articles: articles.write_bytes(b"no gzip"), "it cannot be unpacked"),
        (lambda index, articles: articles.write_bytes(articles.read_bytes()[:40]), "it cannot be unpacked"),
        (lambda index, articles: index.write_text("cat\tA\n"), r"tiny\.index, line 1: .* is no line of an index"),
        (lambda index, articles: index.write_text("cat\tA\t!\n"), "is no line of an index"),
        (lambda index, articles: index.write_text("cat\tA\t////\n"), "'cat' lies beyond the end"),
        (lambda index, articles: index.write_bytes(b"\xff\xfe\x00"), "it is no index"),
        (lambda index, articles: index.write_text("00databaseinfo\tA\tB\n"), "there is no word with a translation"),
    ],
    ids=["missing", "no gzip", "cut", "short line", "sign", "beyond", "not UTF-8", "no word"],
)
def test_a_damaged_dictionary_is_told_in_one_line(dictionary: Path, damage: object, message: str) -> None:
    damage(dictionary, dictionary.with_name("tiny.dict.dz"))  # type: ignore[operator]
    with pytest.raises(AnswerableError, match=message) as raised:
        read_word_list(dictionary)
    assert "\n" not in str(raised.value)


def test_a_table_without_texts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("word,count\ncat,3\n")
    with pytest.raises(AnswerableError, match="its first two columns are not texts; give two columns"):
        read_word_list(path)
