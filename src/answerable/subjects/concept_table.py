"""Tables of human-named concepts: any table, or the attribute files of CelebA and CUB-200-2011 as they are shipped."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from answerable.errors import BadInput, CannotRead, unknown
from answerable.subjects.address import locate
from answerable.subjects.kinds import file_digest, kind_of
from answerable.subjects.table import digest as table_digest
from answerable.subjects.table import read_table
from answerable.subjects.texts import read_text

WHAT = "a table of concepts"
PARTITIONS = ("train", "valid", "test")
MOST_CELLS = 100_000_000


def read_concepts(subject: Any) -> pl.DataFrame:
    """Concepts, a column each and a row for each image, person or case.

    Parameters
    ----------
    subject : path of a CSV or Parquet file; of CelebA's ``list_attr_celeba.txt`` (its -1 and 1 become 0 and 1, the
        file names a column ``image``); of CUB's ``attributes/image_attribute_labels.txt`` (a column for each
        attribute, named by ``attributes.txt`` in the same folder or the one above, where there is one); or any
        dataframe

    Raises
    ------
    CannotRead, BadInput : a file that is missing, damaged or not what it says; names the line
    """
    if not isinstance(subject, (str, Path)):
        return read_table(subject)
    path = locate(subject, what=WHAT)
    form = _form(path)
    if form == "celeba":
        return _read_celeba(path)
    return _read_cub(path) if form == "cub" else read_table(path)


def read_partition(subject: Any) -> pl.DataFrame:
    """Which images are to learn from and which to judge by: columns image and part (train, valid or test).

    Parameters
    ----------
    subject : path of CelebA's ``list_eval_partition.txt``, or of a CSV or Parquet file with the columns ``image`` and
        ``part``, which holds 0, 1, 2 or train, valid, test; or such a dataframe

    Raises
    ------
    CannotRead, BadInput : a file that is missing, damaged or not what it says, an image twice; names the line or row
    """
    if isinstance(subject, (str, Path)):
        path = locate(subject, what="a list of partitions")
        if kind_of(path) == "text" and re.match(r"[^\s,;]+[ \t]+\S+\s*$", read_text(path).partition("\n")[0]):
            return _without_twins(_read_celeba_parts(path), str(path))
    frame, where = read_table(subject), str(subject) if isinstance(subject, (str, Path)) else "partition"
    for name in ("image", "part"):
        if name not in frame.columns:
            raise unknown("column", name, frame.columns, where=where)
    parts = []
    for row, entry in enumerate(frame["part"].cast(pl.String).to_list(), 1):
        if (part := _part(entry or "")) is None:
            mend = "write train, valid or test"
            raise BadInput(f"{str(entry)[:40]!r} is no part", where=f"{where}, row {row}", mend=mend)
        parts.append(part)
    images = frame["image"].cast(pl.String)
    return _without_twins(pl.DataFrame({"image": images, "part": parts}), where)


def _read_celeba_parts(path: Path) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        part = _part(words[1]) if len(words) == 2 else None
        if part is None:
            mend = "give lines such as 000001.jpg 0"
            raise BadInput(f"{line[:40]!r} is no image and part", where=f"{path}, line {number}", mend=mend)
        rows.append((words[0], part))
    return pl.DataFrame(rows, schema=["image", "part"], orient="row")


def _part(word: str) -> str | None:
    known = {"0": "train", "1": "valid", "2": "test", "val": "valid", "validation": "valid"}
    found = known.get(word.strip().lower(), word.strip().lower())
    return found if found in PARTITIONS else None


def _without_twins(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    twice = frame["image"].is_duplicated()
    if twice.any():
        image = str(frame["image"][int(twice.arg_max() or 0)])[:40]
        raise BadInput(f"the image {image!r} stands twice", where=where, mend="give each image one part")
    return frame


def digest(value: object) -> str | None:
    """SHA-256 of the files' bytes, or of a dataframe's content."""
    if not isinstance(value, (str, Path)):
        return table_digest(value)
    path = locate(value, what=WHAT)
    names = _names_of_cub(path) if _form(path) == "cub" else None
    if names is None:
        return file_digest(path)
    return hashlib.sha256(f"{file_digest(path)} {file_digest(names)}".encode()).hexdigest()


def _form(path: Path) -> str:
    if kind_of(path) != "text":
        return "table"
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first, second = file.readline(10_000), file.readline(100_000)
    if re.fullmatch(r"\s*\d+\s*", first) and re.fullmatch(r"[^,;\t]*[A-Za-z][^,;\t]*", second.strip()):
        return "celeba"
    return "cub" if re.fullmatch(r"\d+ \d+ [01] \d+ [\d.]+(?: [\d.]+)*\s*", first) else "table"


def _read_celeba(path: Path) -> pl.DataFrame:
    promised, _, rest = read_text(path).lstrip().partition("\n")
    head, _, body = rest.partition("\n")
    names = head.split()
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise CannotRead(f"two attributes are called {twice[:40]!r}", where=f"{path}, line 2")
    tidy = "\n".join(" ".join(line.split()) for line in body.splitlines() if line.strip())
    columns: dict[str, Any] = {"image": pl.String} | dict.fromkeys(names, pl.Int8)
    try:
        frame = pl.read_csv(io.StringIO(tidy), has_header=False, separator=" ", schema=columns)
        if frame.null_count().sum_horizontal().item():  # what some versions of polars make of a short row
            raise ValueError("a row is too short")
    except (pl.exceptions.PolarsError, ValueError) as failure:
        said = " ".join(str(failure).split())[:160]
        raise CannotRead(f"its rows are not an image and {len(names)} numbers ({said})", where=str(path)) from None
    if frame.height != int(promised):
        raise CannotRead(f"line 1 says {promised.strip()} images, {frame.height} follow", where=str(path))
    for name in names:
        wrong = ~frame[name].is_in([-1, 1]).fill_null(False)
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            what = f"{name} is {frame[name][row]}, neither -1 nor 1"
            raise CannotRead(what, where=f"{path}, line {row + 3}", mend="mend the line")
    return frame.with_columns((pl.col(names) == 1).cast(pl.Int8))


def _names_of_cub(path: Path) -> Path | None:
    return next((file for folder in path.parents[:2] if (file := folder / "attributes.txt").is_file()), None)


def _read_cub(path: Path) -> pl.DataFrame:
    rows = np.array(
        [_cub_line(line, number, path) for number, line in enumerate(read_text(path).splitlines(), 1)], np.int64
    )
    n_images, n_attributes = (len(np.unique(rows[:, j])) for j in (0, 1))
    if n_images * n_attributes > MOST_CELLS or len(rows) != n_images * n_attributes:
        what = f"{len(rows)} lines for {n_images} images and {n_attributes} attributes"
        raise CannotRead(what, where=str(path), mend="give one line for each image and attribute")
    ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))].reshape(n_images, n_attributes, 3)
    if (ordered[:, :, 1] != ordered[:1, :, 1]).any():
        raise CannotRead("an image lacks an attribute or has one twice", where=str(path))
    names = _cub_names(path)
    columns = {names.get(int(a), f"attribute_{a}"): ordered[:, j, 2] for j, a in enumerate(ordered[0, :, 1])}
    return pl.DataFrame({"image": ordered[:, 0, 0], **columns})


def _cub_line(line: str, number: int, path: Path) -> tuple[int, int, int]:
    words = line.split()
    if len(words) < 4 or not all(word.isdigit() for word in words[:3]) or words[2] not in "01":
        mend = "give image, attribute, 0 or 1, certainty and time"
        raise CannotRead(f"{line[:40]!r} is no label", where=f"{path}, line {number}", mend=mend)
    return int(words[0]), int(words[1]), int(words[2])


def _cub_names(path: Path) -> dict[int, str]:
    file = _names_of_cub(path)
    if file is None:
        return {}
    pairs = (line.split(maxsplit=1) for line in read_text(file).splitlines())
    return {int(words[0]): words[1].strip() for words in pairs if len(words) == 2 and words[0].isdigit()}
