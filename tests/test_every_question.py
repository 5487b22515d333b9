"""What every question in the catalogue must hold; a new one is covered by standing in the registry."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from answerable import registry
from answerable.answer import Answer
from answerable.asking import Settings, answer_to
from answerable.cli import _flag
from answerable.dossier import Dossier
from answerable.errors import AnswerableError
from answerable.question import RESERVED, Question, bounds_of, unit_of
from answerable.report import drawing
from answerable.verification import problems

ROOT = Path(__file__).parent.parent
NAMES = list(registry.QUESTIONS)
every_question = pytest.mark.parametrize("name", NAMES)
ROOMS = ("__init__.py", "solver.py", "figures.py", "question.py")


def folder(name: str) -> Path:
    return ROOT / "src" / Path(*registry.QUESTIONS[name].partition(":")[0].split(".")[:-1])


def smallest(name: str) -> Question:
    return registry.find(name).asked(dict(registry.find(name).smallest))


@cache
def answered(name: str) -> Answer:
    return answer_to(smallest(name), Settings(seed=1))


def kinds(annotation: Any) -> set[Any]:
    return {annotation, *(kind for part in get_args(annotation) for kind in kinds(part))}


@every_question
def test_its_name_is_its_folder_and_its_question_is_plain_words(name: str) -> None:
    question = registry.find(name)
    assert question.name == name
    assert folder(name).name == name.replace("-", "_")
    assert re.fullmatch(r"[A-Z][^_`]{10,120}\?", question.in_plain_words())


@every_question
def test_its_help_says_nothing_twice_and_no_empty_default(name: str) -> None:
    for field_name, field in registry.find(name).model_fields.items():
        said = _flag(field_name, field).annotation.__metadata__[0].help.removeprefix(field.description)
        assert not re.search(r"default ([];]|\[\]|\(\))", said), said
        assert "one of " not in said, said  # the command line lists choices itself


@every_question
def test_each_field_says_what_it_is_its_unit_and_its_bounds(name: str) -> None:
    for field_name, field in registry.find(name).model_fields.items():
        assert field_name not in RESERVED
        assert field.description, field_name
        first = field.description.split()[0]
        assert first[0].islower() or first.isupper(), field_name
        assert not field.description.endswith("."), field_name
        found = kinds(field.annotation)
        if found & {int, float} and not any(getattr(kind, "__origin__", None) is list for kind in found):
            assert unit_of(field), f"{field_name} has no unit"
            assert bounds_of(field), f"{field_name} has no bounds"


@every_question
def test_its_rooms_and_pages_are_there(name: str) -> None:
    own = folder(name)
    assert not [room for room in ROOMS if not (own / room).is_file()]
    module = name.replace("-", "_")
    beside = [
        f"docs/questions/{name}.md",
        f"examples/{name}.toml",
        f"bench/{module}.py",
        f"reproductions/{module}.py",
        f"tests/{own.parent.name}/{module}",
    ]
    assert not [path for path in beside if not (ROOT / path).exists()]


@every_question
def test_its_example_is_a_dossier_that_expects_something(name: str) -> None:
    text = (ROOT / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    asks = tomllib.loads(text)["ask"]
    assert all(ask.get("expect") for ask in asks)
    assert name in {ask["question"] for ask in asks}
    assert len(Dossier.load(ROOT / "examples" / f"{name}.toml").asks) == len(asks)


@every_question
def test_commands_on_its_page_name_its_flags_and_set_a_seed_where_chance_needs_one(name: str) -> None:
    kind = registry.find(name)
    flags = {"--" + field.replace("_", "-") for field in kind.model_fields}
    flags |= {"--no-" + field.replace("_", "-") for field, told in kind.model_fields.items() if told.annotation is bool}
    flags |= {
        "--seed",
        "--threads",
        "--device",
        "--engine",
        "--workers",
        "--store",
        "--fresh",
        "--json",
        "--save",
        "--open",
    }
    page = (ROOT / "docs" / "questions" / f"{name}.md").read_text(encoding="utf-8")
    commands = [
        shlex.split(line, comments=True)
        for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith(f"answerable ask {name} ")
    ]
    assert commands
    for command in commands:
        assert {word.partition("=")[0] for word in command if word.startswith("--")} - flags == set(), command
        assert "--seed" in command or not kind.chance, command


@every_question
def test_nothing_heavy_is_imported_at_the_top_of_its_question(name: str) -> None:
    allowed = {*sys.stdlib_module_names, "pydantic", "answerable"}
    tree = ast.parse((folder(name) / "question.py").read_text(encoding="utf-8"))
    tops = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in tops:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        assert {module.partition(".")[0] for module in modules} <= allowed, ast.unparse(node)
        core = {"answerable.question", "answerable.answer", "answerable.errors"}
        assert all(module in core for module in modules if module.startswith("answerable")), ast.unparse(node)


@every_question
def test_its_folder_exports_the_method_as_a_library(name: str) -> None:
    package = import_module(registry.QUESTIONS[name].partition(":")[0].rpartition(".")[0])
    assert package.__all__
    for exported in package.__all__:
        assert getattr(package, exported).__doc__, exported


@every_question
def test_the_smallest_ask_saves_loads_and_verifies(name: str, tmp_path: Path) -> None:
    saved = answered(name).save(tmp_path / "answer")
    assert problems(saved) == []
    again = Answer.load(saved)
    assert again.without_run() == answered(name).without_run()
    assert again.provenance.key == answered(name).provenance.key != ""


@every_question
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    def files(answer: Answer) -> dict[str, Any]:
        content = answer.files()
        document = json.loads(content.pop("answer.json"))
        del document["run"], content["manifest.json"]
        return {"answer.json": document, **content}

    assert files(answer_to(smallest(name), Settings(seed=1, workers=1))) == files(answered(name))


@every_question
def test_its_answer_says_how_sure_it_is_and_what_it_cannot_say(name: str) -> None:
    answer = answered(name)
    assert answer.summary.endswith(".")
    assert len(answer.summary.split()) <= 36
    assert answer.metrics
    assert all(metric.method and metric.unit for metric in answer.metrics.values())
    assert len(answer.limits) >= 2
    for limit in answer.limits:
        assert limit[0].isupper(), limit
        assert limit.endswith("."), limit
    assert answer.tables
    for table in answer.tables.values():
        assert table.title
        assert set(table.descriptions) == set(table.frame.columns)


@every_question
def test_its_figures_are_pictures_with_their_words(name: str) -> None:
    assert answered(name).figures
    for figure in answered(name).figures.values():
        assert figure.title
        assert 1 <= len(figure.description.split()) <= 40
        assert "config" not in figure.wide
        for specification, narrow in ((figure.wide, False), (figure.narrow, True)):
            assert specification["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
            svg = figure.svg(narrow=narrow)
            assert 'role="img"' in svg
            assert "<script" not in svg
        assert drawing.png(figure.wide).startswith(b"\x89PNG")


@every_question
def test_a_value_out_of_each_bound_is_one_line_that_names_the_field(name: str) -> None:
    question = registry.find(name)
    broken = 0
    for field_name, field in question.model_fields.items():
        for mark in field.metadata:
            ge, gt, le, lt = (getattr(mark, bound, None) for bound in ("ge", "gt", "le", "lt"))
            bad = [
                value
                for value in (None if ge is None else ge - 1, gt, None if le is None else le + 1, lt)
                if value is not None
            ]
            for value in bad:
                with pytest.raises(AnswerableError) as raised:
                    question.asked({**question.smallest, field_name: value})
                assert str(raised.value).startswith(f"{name}, field {field_name}: it is {value!r}, and should be ")
                assert "\n" not in str(raised.value)
                broken += 1
    assert broken
