"""The same question, content, seed and version: the same bytes, whatever ran it and in which order."""

import json
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from answerable.asking import ask
from tests.core.conftest import Command


def bytes_of(store: Path, workers: int, **fields: object) -> dict[str, object]:
    answer = ask("trivial/luck", seed=7, store=store, workers=workers, everywhere=True, units=6, **fields)
    files = answer.files()
    document = json.loads(files.pop("answer.json"))
    del document["run"], files["manifest.json"]
    return {"answer.json": json.dumps(document), **files}


@pytest.fixture
def fresh_workers() -> None:
    """Workers that an earlier test left running do not know this test's plug-in."""
    get_reusable_executor().shutdown(wait=True)


@pytest.mark.usefixtures("fresh_workers")
def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    one, four, sixteen = (bytes_of(tmp_path / str(workers), workers) for workers in (1, 4, 16))
    assert one == four == sixteen
    assert set(one) == {"answer.json", "tables/units.parquet", "figures/units.vl.json", "figures/units.narrow.vl.json"}


def test_asks_do_not_know_of_each_other(tmp_path: Path) -> None:
    alone = bytes_of(tmp_path / "alone", 1)
    ask("trivial/luck", seed=7, store=tmp_path / "second", units=2)
    ask("trivial/luck", seed=8, store=tmp_path / "second", units=6)
    assert bytes_of(tmp_path / "second", 1) == alone


@pytest.mark.parametrize(
    "variable", [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo"}]
)
def test_hash_seed_locale_and_time_zone_change_nothing(
    tmp_path: Path, command: Command, variable: dict[str, str]
) -> None:
    here = ask("trivial/luck", seed=7, store=False).without_run()
    there = command("ask", "trivial/luck", "--seed", "7", "--json", "--store", tmp_path, **variable)
    document = json.loads(there.stdout)
    del document["run"]
    assert document == here
