"""A broken plug-in is told in one line and the rest works; no plug-in can stand for one of ours."""

import pytest

from answerable import registry
from answerable.asking import ask
from answerable.errors import BadInput, UnknownName
from tests.core.conftest import Command


def test_a_plug_in_is_asked_like_one_of_ours() -> None:
    assert ask("trivial/mean", numbers=[1, 2, 6], store=False).metrics["mean"].value == 3


def test_the_catalogue_is_complete_at_the_first_look_up() -> None:
    assert registry.questions()[-4:] == [
        "trivial/attention-flow",
        "trivial/broken",
        "trivial/luck",
        "trivial/mean",
    ] or {
        "attention-flow",
        "trivial/mean",
        "trivial/luck",
        "trivial/rows",
        "trivial/broken",
    } <= set(registry.questions())


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
