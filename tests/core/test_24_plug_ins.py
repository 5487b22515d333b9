"""A broken plug-in is told in one line and the rest works; no plug-in can stand for one of ours."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from answerable import registry
from answerable.asking import ask
from answerable.errors import BadInput, UnknownName
from tests.core.conftest import Command


def test_a_plug_in_is_asked_like_one_of_ours() -> None:
    assert ask("trivial/mean", numbers=[1, 2, 6], store=False).metrics["mean"].value == 3


def test_the_catalogue_is_complete_at_the_first_look_up() -> None:
    theirs = ["attention-flow", "broken", "luck", "mean", "rows", "test"]
    assert registry.questions() == [*registry.QUESTIONS, *(f"trivial/{name}" for name in theirs)]


def test_a_plug_in_cannot_shadow_a_name_of_ours() -> None:
    assert registry.find("attention-flow").__module__ == "answerable.mechanisms.attention_flow.question"
    with pytest.raises(
        BadInput,
        match="plug-in trivial/attention-flow: it calls itself 'trivial/mean'; set name = 'trivial/attention-flow'",
    ):
        registry.find("trivial/attention-flow")


def test_a_broken_plug_in_is_one_line_and_the_rest_works(command: Command) -> None:
    listed = command("questions")
    assert listed.returncode == 0
    assert "trivial/mean" in listed.stdout
    assert "attention-flow" in listed.stdout
    warnings = [line for line in listed.stderr.splitlines() if "trivial/broken" in line]
    assert warnings == [
        "warning: plug-in trivial/broken: it cannot be loaded (ModuleNotFoundError: No module named 'trivial_broken'); mend or uninstall it"
    ]


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UnknownName, match=r"there is no question 'trivial/meam'; did you mean 'trivial/mean'\?"):
        registry.find("trivial/meam")


def test_a_planned_question_says_so() -> None:
    with pytest.raises(UnknownName, match="questions: forgetting is planned and not built yet"):
        registry.find("forgetting")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Install a module of one plug-in, in a folder of its own, with what its list says."""

    def install(code: str, listed: str = "it = unsound:It") -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "unsound", raising=False)
        (tmp_path / "unsound.py").write_text(BEGINNING + code)
        folder = tmp_path / "unsound-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: unsound\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[answerable.questions]\n{listed}\n")
        registry._plug_ins.cache_clear()
        registry._load_plug_in.cache_clear()

    return install


BEGINNING = """
import sys
from typing import Annotated, Any, ClassVar
import pydantic
from answerable.question import Field, Question, Subject

class Base(Question):
    '''Is it sound?'''
    name: ClassVar[str] = "unsound/it"
    def answer(self, run): return "yes"
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("sys.exit(0)", r"it cannot be loaded (SystemExit: 0); mend or uninstall it"),
        ("class It(Question): ...", "it calls itself ''; set name = 'unsound/it'"),
        ("class It(Base): name = 5", "it calls itself '5'; set name = 'unsound/it'"),
        ("class It(Base): pass", "it has no docstring; write the question in plain words as its first line"),
        (
            "class It(Question):\n '''Is it?'''\n name: ClassVar[str] = 'unsound/it'",
            "it has no method answer; write one",
        ),
        (
            "class It(Base):\n '''Is it?'''\n seed: int = Field(1, description='x')",
            "a field is called seed, a word of asking itself; give it another name",
        ),
        (
            "class It(Base):\n '''Is it?'''\n size: int = pydantic.Field(1)",
            "field size has no description; say in one line what it is",
        ),
    ],
    ids=["exit", "nameless", "number", "no docstring", "no answer", "reserved", "undescribed"],
)
def test_an_unsound_plug_in_is_one_line_and_left_out(
    installed: Callable[..., None], code: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(code)
    assert "trivial/mean" in [kind.name for kind in registry.catalogue()]
    assert f"warning: plug-in unsound/it: {line}\n" in capsys.readouterr().err


def test_a_damaged_list_of_plug_ins_leaves_the_others(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed("", "no equals sign")
    assert "trivial/mean" in registry.questions()
    assert "warning: plug-ins of unsound: their list cannot be read (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return 'yes'", "unsound/it: it gave str, not an answer; return answerable.Answer"),
        ("sys.exit(0)", r"unsound/it: its code asked to end the process \(0\); mend the question"),
    ],
)
def test_what_is_no_answer_is_one_line(installed: Callable[..., None], body: str, line: str) -> None:
    installed(f"class It(Base):\n '''Is it?'''\n def answer(self, run): {body}")
    with pytest.raises(BadInput, match=line):
        ask("unsound/it", store=False)
