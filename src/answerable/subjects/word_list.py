"""Word lists: a word and its translation, from a table of two columns or from a dictionary in the dictd format.

FreeDict's dictionaries are of that format, as Debian's packages ``dict-freedict-*`` install them: ``NAME.index`` has a
headword with the place and length of its article (in base 64), ``NAME.dict.dz`` the articles. An article begins with
the headword; each line below is a sense, with translations between commas and remarks in brackets.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from answerable.errors import BadInput, CannotRead
from answerable.subjects import table
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest

INDEX, ARTICLES = ".index", (".dict.dz", ".dict")
MOST_BYTES = 512_000_000  # of all articles, unpacked
DIGITS = {sign: value for value, sign in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
ABOUT = ("00-database", "00database")  # headwords of what a dictionary says about itself
REMARK = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)|^\s*\d+\.")
WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")


def read_word_list(subject: Any) -> list[tuple[str, str]]:
    """Words and their translations.

    Parameters
    ----------
    subject : a dataframe or the address of a CSV or Parquet file, whose first two columns are taken, rows that lack one
        left out; or the ``.index`` or ``.dict.dz`` file of a dictionary, of which single words with a translation of
        one word are taken: the first translation of the word's longest article, since rare senses have short ones

    Raises
    ------
    CannotRead, Refused : a file that is missing, damaged or too long
    BadInput : fewer than two columns, columns that hold no texts, or no word at all
    """
    found = _of_dictionary(*files) if (files := _dictionary(subject)) is not None else _of_table(subject)
    if not found:
        raise BadInput("there is no word with a translation", where="words", mend="give another word list")
    return found


def is_dictionary(subject: Any) -> bool:
    """Whether it is a file of a dictionary, and so longer than anybody would write a list."""
    return isinstance(subject, (str, Path)) and str(subject).endswith((INDEX, *ARTICLES))


def digest(value: object) -> str | None:
    """SHA-256 of a table's content, or of both files of a dictionary."""
    files = _dictionary(value)
    if files is None:
        return table.digest(value)
    return hashlib.sha256("".join(map(file_digest, files)).encode()).hexdigest()


def _dictionary(subject: Any) -> tuple[Path, Path] | None:
    """Index and articles."""
    if not is_dictionary(subject):
        return None
    path = locate(subject, what="a word list")
    name = next(str(path)[: -len(end)] for end in (INDEX, *ARTICLES) if str(path).endswith(end))
    articles = [Path(name + end) for end in ARTICLES if Path(name + end).is_file()]
    index = Path(name + INDEX)
    if not articles or not index.is_file():
        missing = index.name if articles else Path(name).name + ARTICLES[0]
        raise CannotRead(f"{missing} is missing beside it", where=str(path), mend="put both files into one folder")
    return index, articles[0]


def _of_table(subject: Any) -> list[tuple[str, str]]:
    frame = table.read_table(subject)
    if frame.width < 2 or any(frame.schema[name] != pl.String for name in frame.columns[:2]):
        raise BadInput("its first two columns are not texts", where="words", mend="give two columns: word, translation")
    rows = [(a.strip(), b.strip()) for a, b in frame.select(frame.columns[:2]).iter_rows() if a and b]
    return [(a, b) for a, b in rows if a and b]


def _of_dictionary(index: Path, articles: Path) -> list[tuple[str, str]]:
    texts = _unpacked(articles)
    longest: dict[str, tuple[int, str]] = {}
    for number, (headword, start, length) in enumerate(_places(index), 1):
        if start + length > len(texts):
            raise CannotRead(
                f"{headword[:40]!r} lies beyond the end of {articles.name}", where=f"{index}, line {number}",
                mend="install the dictionary again",
            )  # fmt: skip
        if headword.startswith(ABOUT) or not WORD.fullmatch(headword) or length <= longest.get(headword, (0, ""))[0]:
            continue
        article = texts[start : start + length].decode("utf-8", errors="replace")
        if _heading(article).casefold() == headword.casefold():  # a phrase's article is found under each of its words
            longest[headword] = (length, article)
    pairs = [(_heading(article), _translation(article)) for _, article in longest.values()]
    return list(dict.fromkeys((word, said) for word, said in pairs if WORD.fullmatch(said)))


def _places(index: Path) -> Iterator[tuple[str, int, int]]:
    try:
        lines = index.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        raise CannotRead(f"it is no index ({failure})"[:120], where=str(index)) from None
    for number, line in enumerate(lines, 1):
        fields = line.split("\t")
        try:
            headword, start, length = fields[0], _number(fields[1]), _number(fields[2])
        except (IndexError, KeyError):
            mend = "each line is: headword, place, length"
            raise CannotRead(
                f"{line[:40]!r} is no line of an index", where=f"{index}, line {number}", mend=mend
            ) from None
        yield headword, start, length


def _number(text: str) -> int:
    value = 0
    for sign in text[:12]:
        value = 64 * value + DIGITS[sign]
    return value


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".dz" else path.open("rb") as file:
            found = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as failure:
        raise CannotRead(f"it cannot be unpacked ({failure})"[:120], where=str(path)) from None
    if len(found) > MOST_BYTES:
        raise CannotRead(f"it is longer than {MOST_BYTES} bytes", where=str(path), mend="give a smaller dictionary")
    return found


def _heading(article: str) -> str:
    """What an article is about, without its pronunciation and remarks."""
    return REMARK.sub("", article.partition("\n")[0].split(" /")[0]).strip()


def _translation(article: str) -> str:
    """The first translation, without remarks; empty where there is none."""
    lines = (REMARK.sub("", line).strip() for line in article.splitlines()[1:])
    return re.split("[,;]", next(filter(None, lines), ""))[0].strip()
