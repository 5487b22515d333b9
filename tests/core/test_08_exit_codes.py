"""0 only if something was checked and all of it holds; 1 if some does not; 2 if it could not run."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from answerable.cli import run
from answerable.dossier import Dossier
from answerable.errors import AnswerableError
from tests.core.conftest import Command

MEAN = {"question": "trivial/mean", "numbers": [1, 2, 6]}
LUCK = {"question": "trivial/luck", "seed": 1}


def code(*asks: dict[str, Any], **top: Any) -> int:
    return Dossier.from_mapping({**top, "ask": list(asks)}).run().exit_code


def test_zero_needs_one_expectation_that_holds() -> None:
    assert code({**MEAN, "expect": ["metrics.mean == 3"]}) == 0
    assert code(MEAN) == 2
    assert code(MEAN, {**MEAN, "expect": "metrics.mean == 3"}) == 0


def test_one_that_fails_is_one_and_one_that_cannot_run_outranks_it() -> None:
    failing = {**MEAN, "expect": ["metrics.mean == 3", "metrics.mean > 4"]}
    assert code(failing) == 1
    raising = {**LUCK, "fail_at": 0, "expect": ["metrics.share > 0"]}
    assert code(failing, raising) == 2
    assert code({**MEAN, "expect": ["metrics.mean == 3"]}, {**LUCK, "fail_at": 0}) == 2


def test_an_unknown_path_is_an_error_of_the_dossier() -> None:
    result = Dossier.from_mapping(
        {"ask": [{**MEAN, "expect": ["metrics.meen > 0", "metrics.mean == 3"]}]}, where="d"
    ).run()
    assert result.exit_code == 2
    first, second = result.asked[0].outcomes
    assert (first.word, second.word) == ("not run", "held")
    assert "did you mean 'mean'?" in first.reason
    assert first.reason.startswith('d, ask 1 (trivial/mean), expectation "metrics.meen > 0"')


def test_undecided_exits_one_unless_it_is_only_to_warn() -> None:
    undecided = {**LUCK, "expect": ["metrics.share > 0.5"]}
    assert code(undecided) == 1
    assert code(undecided, undecided="warn") == 0
    failing = {**MEAN, "expect": [{"that": "metrics.mean > 4", "severity": "warn", "why": "it would be nice"}]}
    assert code(failing) == 0
    assert code(failing, {**MEAN, "expect": ["metrics.mean > 4"]}) == 1


BROKEN = [
    ("", "d.toml: it asks nothing; add an [[ask]]"),
    ("ask = []", "d.toml: it asks nothing; add an [[ask]]"),
    ("titel = 'x'", "d.toml: there is no key 'titel'; did you mean 'title'?"),
    (
        "[[ask]]\nquestion = 'trivial/maen'",
        "d.toml, ask 1 (trivial/maen), questions: there is no question 'trivial/maen'; did you mean",
    ),
    ("[[ask]]\nnumbers = [1]", "d.toml, ask 1: question is missing; add question ="),
    (
        "[[ask]]\nquestion = 'trivial/mean'\nnumbrs = [1]",
        "d.toml, ask 1 (trivial/mean), trivial/mean: there is no field 'numbrs'; did you mean 'numbers'?",
    ),
    (
        "[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\ndigits = 99",
        "d.toml, ask 1 (trivial/mean), trivial/mean, field digits: it is 99, and should be less than or equal to 9",
    ),
    ("[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\nexpect = ['metrics.mean >']", "d.toml, ask 1 (trivial/mean)"),
    (
        "[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\nexpect = [{ tht = 'x' }]",
        "d.toml, ask 1 (trivial/mean), expect: there is no key 'tht'; did you mean 'that'?",
    ),
    (
        "[[ask]]\nquestion = 'trivial/luck'",
        "d.toml, ask 1 (trivial/luck): its answer depends on chance and no seed is set",
    ),
    ("seed = -1\n[[ask]]\nquestion = 'trivial/luck'", "d.toml: seed is -1; give a whole number, at least 0"),
    ("undecided = 'maybe'\n[[ask]]\nquestion = 'trivial/luck'", "d.toml: undecided is 'maybe'; say fail or warn"),
    ("[[ask]", "d.toml: it is not TOML"),
    ("x = " + "[" * 5000, "d.toml: it is nested too deeply; flatten it"),
]


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_a_broken_dossier_is_one_line_and_computes_nothing(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(text)
    with pytest.raises(AnswerableError) as raised:
        Dossier.load(path)
    said = str(raised.value).replace(f"{tmp_path}/", "")
    assert said.startswith(line)
    assert "\n" not in said


def test_names_are_made_where_none_is_given_and_two_alike_are_refused() -> None:
    names = [ask.name for ask in Dossier.from_mapping({"ask": [MEAN, {**MEAN, "name": "mine"}, LUCK, MEAN]}).asks]
    assert names == ["trivial/mean-1", "mine", "trivial/luck", "trivial/mean-2"]
    with pytest.raises(AnswerableError, match="two asks are named 'x'; give each a name of its own"):
        Dossier.from_mapping({"ask": [{**MEAN, "name": "x"}, {**LUCK, "name": "x"}]})


def test_the_command_exits_with_the_code_and_writes_the_report(tmp_path: Path, command: Command, store: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text("title = 'T'\n[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\nexpect = ['metrics.mean == 2']")
    result = command("dossier", path, "--report", tmp_path / "r.html")
    assert result.returncode == 1
    assert "failed" in result.stdout
    assert f"report: {tmp_path / 'r.html'}" in result.stdout
    assert "<!doctype html>" in (tmp_path / "r.html").read_text().lower()
    only = command("dossier", path, "--only", "nothing*")
    assert (only.returncode, only.stderr.count("\n")) == (2, 1)
    missing = command("dossier", tmp_path / "none.toml")
    assert missing.returncode == 2
    assert missing.stderr.endswith("none.toml: there is no such dossier; name a TOML file\n")


def test_a_native_library_that_aborts_on_its_way_out_changes_no_exit_code(tmp_path: Path) -> None:
    program = (
        "import ctypes; libc = ctypes.CDLL(None); libc.on_exit(libc.abort, None); "
        "from answerable.cli import main; main()"
    )
    for words, expected in ((["questions"], 0), (["ask", "nothing"], 2)):
        line = [sys.executable, "-c", program, *words]
        result = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
        assert result.returncode == expected, result.stderr


def test_exit_handlers_of_python_still_run() -> None:
    program = (
        "import atexit; from answerable import cli; run = cli.run; "
        "cli.run = lambda words: (atexit.register(print, 'the last word'), run(words))[1]; cli.main(['questions'])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0
    assert result.stdout.endswith("the last word\n")


def test_a_reader_that_leaves_early_and_one_that_takes_nothing() -> None:
    line = [sys.executable, "-m", "answerable", "questions"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Pipe" not in process.stderr.read()
        assert process.wait(timeout=120) == 0
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert result.returncode == 2
    assert result.stderr.endswith(
        "error: standard output: No space left on device; free some space, or send it elsewhere\n"
    )


def test_no_file_is_written_over_the_dossier_or_over_another(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "d.toml", tmp_path / "out"
    text = "[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\nexpect = 'metrics.mean == 1'\n"
    file.write_text(text)
    for words, line in (
        (["--report", str(file)], f"report: {file} is the dossier too; name another file"),
        (["--report", str(out), "--junit", str(out)], f"junit: {out} is the report too; name another file"),
        (["--only", ""], f"{file}: there is no ask ''; known: trivial/mean"),
    ):
        assert run(["dossier", str(file), *words]) == 2
        assert capsys.readouterr().err == f"error: {line}\n"
    assert file.read_text() == text
    assert not out.exists()


def test_a_report_that_cannot_be_written_leaves_the_junit_file(tmp_path: Path, store: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text("[[ask]]\nquestion = 'trivial/mean'\nnumbers = [1]\nexpect = 'metrics.mean == 1'\n")
    assert run(["dossier", str(file), "--report", "/proc/no/r.html", "--junit", str(tmp_path / "j.xml")]) == 2
    assert b"<testsuites" in (tmp_path / "j.xml").read_bytes()


def test_without_standard_output_the_code_stays(tmp_path: Path) -> None:
    line = f"{sys.executable} -m answerable store list --store {tmp_path} >&-"
    found = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
