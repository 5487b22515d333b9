"""What is left of a refused command: exit code 2, one line on standard error, and nothing written."""

import unicodedata
from pathlib import Path

import pytest

from answerable.cli import run


def refused_by_command(capsys: pytest.CaptureFixture[str], folder: Path, question: str, *arguments: str) -> str:
    """The line, without its mark; ``folder`` takes what the command would save and store."""
    save, store = folder / "answer", folder / "store"
    code = run(["ask", question, *arguments, "--seed", "0", "--save", str(save), "--store", str(store)])
    said = capsys.readouterr()
    assert (code, said.out) == (2, ""), said.err
    assert not save.exists() and not list(store.glob("answers/*"))
    assert said.err.startswith("error: ") and said.err.endswith("\n")
    line = said.err.removeprefix("error: ").removesuffix("\n")
    assert "; " in line, f"it does not say how to mend: {line}"
    assert "should not have happened" not in line and "Traceback" not in line
    assert not [sign for sign in line if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp")], (
        f"not one line: {line}"
    )
    return line
