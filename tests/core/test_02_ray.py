"""A Ray cluster gives the same bytes as this process, also when one of its workers is killed in the middle."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable.asking import ask
from answerable.engines import check
from answerable.errors import BadInput
from tests.core.conftest import Command


def test_a_real_cluster_with_a_killed_worker_gives_the_same_bytes(
    tmp_path: Path, command: Command, marks: Callable[[], int]
) -> None:
    here = ask("trivial/luck", seed=7, store=False, units=6, everywhere=True, workers=1).without_run()
    before = marks()
    words = ["ask", "trivial/luck", "--seed", "7", "--units", "6", "--everywhere", "--json"]
    died = tmp_path / "died"
    there = command(
        *words, "--engine", "ray", "--workers", "2", "--store", tmp_path / "store",
        ANSWERABLE_TEST_DIE_ONCE=str(died), RAY_USAGE_STATS_ENABLED="0",
    )  # fmt: skip
    assert there.returncode == 0, there.stderr
    assert died.exists(), "no worker was killed"
    document = json.loads(there.stdout[there.stdout.index("{") :])
    assert document.pop("run")["engine"] == "ray"
    assert document == here
    assert marks() - before == 7, "six units, one of them twice"


@pytest.mark.parametrize("engine", ["spark", "local://x", "ray://", ""])
def test_an_engine_that_does_not_exist_is_refused(engine: str) -> None:
    with pytest.raises(BadInput, match=r"engine: .* is no engine; say local, ray or ray://HOST:PORT"):
        check(engine)
