"""Secrets in environment variables, addresses and paths reach no answer, report, journal or line of an error."""

from pathlib import Path

import pytest

from answerable.asking import ask
from answerable.secrets import redacted
from tests.core.conftest import Command

CANARY = "canary-5f1d2c9e"


def everything_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_secret_of_the_environment_is_left_out_everywhere(tmp_path: Path, command: Command) -> None:
    (tmp_path / "d.toml").write_text(
        f'title = "about {CANARY}"\n[[ask]]\nquestion = "trivial/luck"\nseed = 1\nfail_at = 1\n'
        f'[[ask]]\nquestion = "trivial/rows"\ntable = "https://user:{CANARY}@example.org/t.csv?token={CANARY}"\n'
    )
    words = ["dossier", tmp_path / "d.toml", "--store", tmp_path / "out", "--report", tmp_path / "out" / "r.html"]
    result = command(*words, "--junit", tmp_path / "out" / "j.xml", ANSWERABLE_API_KEY=CANARY)
    assert CANARY not in result.stdout + result.stderr
    assert CANARY.encode() not in everything_below(tmp_path / "out")
    assert (tmp_path / "out" / "r.html").is_file()


def test_the_command_that_asks_again_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", CANARY)
    answer = ask("trivial/mean", numbers=[1], label=f"x {CANARY}", store=False)
    assert CANARY not in answer.run.command


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://user:pw@host/a?x=1", "https://…@host/a?x=1"),
        ("s3://key:secret@bucket/a", "s3://…@bucket/a"),
        ("https://host/a?api_key=abc&x=1", "https://host/a?api_key=…&x=1"),
        ("https://host/a?x=1&X-Amz-Signature=abc", "https://host/a?x=1&X-Amz-Signature=…"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_urls_lose_their_secrets(text: str, kept: str) -> None:
    assert redacted(text) == kept
