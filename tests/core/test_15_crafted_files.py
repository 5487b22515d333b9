"""A file that was made to do harm ends in one line; here those that once did more. ``tests/soak`` looks for others."""

from pathlib import Path

import pytest

from answerable.answer import Table
from answerable.errors import CannotRead, DamagedAnswer
from answerable.subjects import read_arrays, read_table

CRAFTED = Path(__file__).parent / "crafted"


def test_a_parquet_page_that_asks_for_all_memory_does_not_end_the_process() -> None:
    path = CRAFTED / "page-header.parquet"
    with pytest.raises(CannotRead, match=r"page-header\.parquet: no table can be read .*; save it again"):
        read_table(path)
    with pytest.raises(DamagedAnswer, match="a table is not a Parquet file"):
        _ = Table._loaded(path.read_bytes(), {}, "").frame


def test_an_array_header_without_its_end_is_one_line(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4!, }".ljust(117) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(96))
    with pytest.raises(CannotRead, match="the file is damaged"):
        read_arrays(tmp_path / "a.npy")
