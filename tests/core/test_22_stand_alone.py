"""A script of sixty lines, which knows nothing of ours, finds in a saved answer what ``answerable verify`` finds."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable.asking import ask
from tests.core.conftest import Command
from tests.core.test_22_integrity import DAMAGED_MANIFESTS, DAMAGES, FORGED_NAME

SCRIPT = Path(__file__).parents[2] / "docs" / "verify.py"
MORE: list[Callable[[Path], object]] = [
    lambda folder: None,
    lambda folder: (folder / "manifest.json").write_bytes(b'{"sha256": '),
    lambda folder: (folder / "manifest.json").write_bytes(b'{"sha256": {}}'),
    lambda folder: (folder / "manifest.json").write_bytes(b"[]"),
    lambda folder: (folder / "manifest.json").unlink(),
    lambda folder: (folder / FORGED_NAME).touch(),
    *(
        lambda folder, damage=damage: (folder / "manifest.json").write_bytes(
            damage((folder / "manifest.json").read_bytes())
        )
        for damage in DAMAGED_MANIFESTS
    ),
]


def by_script(folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-I", "-S", str(SCRIPT), str(folder)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return ask("trivial/luck", seed=2, store=False).save(tmp_path / "answer")


@pytest.mark.parametrize("damage", [*(damage for damage, _ in DAMAGES), *MORE])
def test_both_find_the_same(saved: Path, damage: Callable[[Path], object], command: Command) -> None:
    damage(saved)
    ours, theirs = command("verify", saved), by_script(saved)
    assert theirs.returncode == ours.returncode
    assert theirs.stdout.splitlines()[:-1] == ours.stdout.splitlines()
    assert "Traceback" not in theirs.stderr


def test_it_prints_what_to_keep_elsewhere(saved: Path) -> None:
    digest = hashlib.sha256((saved / "manifest.json").read_bytes()).hexdigest()
    assert by_script(saved).stdout.endswith(f"manifest.json: sha256 {digest}\n")
