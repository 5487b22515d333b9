"""The house's own rules: what stays closed until it is opened, where the one exit is, what no file says."""

import ast
import itertools
import json
import re
import runpy
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packaging.requirements import Requirement

from answerable import registry

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "answerable"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = (
    "torch",
    "numba",
    "numpy",
    "scipy",
    "sklearn",
    "polars",
    "pandas",
    "pyarrow",
    "altair",
    "transformers",
    "statsmodels",
    "joblib",
    "ray",
)
WINGS = ("mechanisms", "explanations", "provenance", "guarantees")


def called(path: Path) -> Iterator[tuple[str, int]]:
    """Dotted name and line of every call in a file: ``print``, ``pickle.load``, ``x.y.z``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def places(names: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """Where calls whose dotted name matches stand, outside the files of ``but``."""
    return [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path in SOURCES
        if path.relative_to(PACKAGE).as_posix() not in but
        for name, line in called(path)
        if re.fullmatch(names, name)
    ]


def modules_after(statement: str) -> set[str]:
    """Top-level names of the modules that a fresh interpreter has loaded after ``statement``."""
    program = f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


# What stays closed

PACKAGES = sorted(
    ".".join(["answerable", *path.parent.relative_to(PACKAGE).parts]) for path in SOURCES if path.name == "__init__.py"
)


@pytest.mark.parametrize(
    "statement",
    [
        "import " + ", ".join(PACKAGES),
        "import answerable.cli, answerable.registry, answerable.dossier, answerable.question",
        "from answerable import registry; [found.model_json_schema() for found in registry.catalogue()]",
    ],
    ids=["every folder", "the front door", "the whole catalogue"],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert modules_after(statement).isdisjoint(HEAVY)


def test_opening_a_room_loads_what_is_in_it() -> None:
    """The check above can fail: what is closed does open."""
    assert "numpy" in modules_after(
        "import answerable.mechanisms.attention_flow as room; [getattr(room, name) for name in room.__all__]"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_exports_what_it_says(package: str) -> None:
    """Every name in ``__all__`` is there: the lazy list and the modules agree."""
    program = f"import {package} as room\nfor name in getattr(room, '__all__', []): getattr(room, name)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


# One exit, one entrance


def test_only_the_terminal_prints() -> None:
    assert places(r"print|.*\bconsole\.print|.*\bstd(out|err)\.write|os\.write|.*\.echo", but=("terminal.py",)) == []


def test_there_is_one_template_environment_and_it_escapes() -> None:
    found = places(r"(\w+\.)*(Sandboxed|ImmutableSandboxed|Native)?Environment|(\w+\.)*Template")
    in_report = [place for place in found if place.startswith("report/")]
    assert len(in_report) == 1, in_report
    # Chat templates are rendered too, but by transformers itself, in its immutable sandbox.
    assert found == in_report
    calls = [
        node
        for path in (PACKAGE / "report").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Environment")
    ]
    assert {word.arg: ast.unparse(word.value) for word in calls[0].keywords}.get("autoescape") == "True"


def test_nothing_runs_what_it_was_handed() -> None:
    loaders = r"(pickle|cPickle|dill|marshal|shelve|cloudpickle)\.\w+|joblib\.load|yaml\.(load|unsafe_load)"
    forbidden = rf"eval|exec|compile|__import__|os\.system|{loaders}"
    assert places(forbidden) == []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword):
                told = (node.arg, ast.unparse(node.value))
                assert told not in {
                    ("allow_pickle", "True"),
                    ("trust_remote_code", "True"),
                    ("weights_only", "False"),
                    ("shell", "True"),
                }, path


def test_only_one_module_names_numba_s_cache_and_threads() -> None:
    said = re.compile(
        r"cache=True|NUMBA_CACHE_DIR|CACHE_DIR|THREADING_LAYER|NUMBA_NUM_THREADS|set_num_threads\(|numba\.config|parallel=True"
    )
    named = {
        path.name
        for path in SOURCES
        if said.search(path.read_text(encoding="utf-8")) and "numba" in path.read_text(encoding="utf-8")
    }
    assert named <= {"compiled.py", "run.py"}  # run.py sets torch's threads, and says why it leaves numba's alone


# Nothing private from elsewhere


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_private_name_of_a_dependency_is_used() -> None:
    found = []
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        foreign: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                foreign |= {
                    (alias.asname or alias.name).partition(".")[0]
                    for alias in node.names
                    if not alias.name.startswith("answerable")
                }
                found += [
                    f"{path.name}: import {alias.name}"
                    for alias in node.names
                    if any(map(is_private, alias.name.split(".")))
                ]
            elif (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and not (node.module or "").startswith("answerable")
            ):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                found += [f"{path.name}: from {node.module} import {name}" for name in names if is_private(name)]
                foreign |= {alias.asname or alias.name for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                base = ast.unparse(node.value).partition(".")[0]
                # os._exit is documented; its underscore only warns that no exit handler runs after it.
                if base in foreign and ast.unparse(node) != "os._exit":
                    found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


# What goes with the package, and what its lists say


def test_types_and_data_are_shipped() -> None:
    for name in ("py.typed", "questions.json", "theme.json"):
        assert (files("answerable") / name).is_file(), name


def test_every_question_stands_in_its_folder() -> None:
    """A question's name is its folder's, every folder is in the registry, and what was planned is asked in those words."""
    planned = {row["name"]: row for row in json.loads((PACKAGE / "questions.json").read_text(encoding="utf-8"))}
    assert len(planned) == 19
    built = {path.parent for wing in WINGS for path in (PACKAGE / wing).glob("*/question.py")}
    assert {folder.name.replace("_", "-") for folder in built} == set(registry.QUESTIONS)
    for name, path in registry.QUESTIONS.items():
        _, wing, folder, module = path.partition(":")[0].split(".")
        assert (folder, module) == (name.replace("-", "_"), "question")
        if name in planned:
            assert (wing, registry.find(name).in_plain_words()) == (planned[name]["wing"], planned[name]["question"])


def test_the_readme_s_table_is_the_registry_s() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "readme_table.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page["with_table"](readme) == readme, "make readme"


def test_the_oldest_lock_holds_the_lower_bounds() -> None:
    """What `make test-oldest` installs is what pyproject.toml says is the lowest."""
    lock = (ROOT / "requirements-oldest.lock").read_text(encoding="utf-8")
    pinned = dict(line.split("==") for line in lock.splitlines() if "==" in line and not line.startswith("#"))
    pinned = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    for text in [
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["models"],
        *PROJECT["optional-dependencies"]["cluster"],
    ]:
        wanted = Requirement(text)
        if wanted.name == "torch":  # installed by itself, from what is at hand
            continue
        (bound,) = (part for part in wanted.specifier if part.operator == ">=")
        assert wanted.specifier.contains(pinned[wanted.name]), text
        assert pinned[wanted.name].startswith(bound.version), f"{text} but {pinned[wanted.name]} is tested"


def test_every_import_is_declared() -> None:
    """What the product imports is among its dependencies by name, not there by another package's grace."""
    distributions = packages_distributions()
    optional = PROJECT["optional-dependencies"].values()
    declared = {Requirement(text).name for text in [*PROJECT["dependencies"], *itertools.chain(*optional)]}
    declared |= {"pydantic-core", "markupsafe"}  # the other halves of pydantic and jinja2, pinned by them
    undeclared = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for top in {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"answerable"}:
                owners = {owner.lower().replace("_", "-") for owner in distributions.get(top, [top])}
                if not owners & declared:
                    undeclared.add(f"{path.relative_to(PACKAGE)}: {top}")
    assert undeclared == set()


def test_what_is_installed_is_within_the_ranges() -> None:
    for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["models"]]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(version(wanted.name), prereleases=True), text


def test_every_decision_names_a_test_that_exists() -> None:
    for page in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        held_by = page.read_text(encoding="utf-8").partition("**Held by.**")[2]
        assert held_by, f"{page.name} does not say what holds it"
        for place in re.findall(r"`((?:tests|\.ci)[^`]*|pyproject\.toml)`", held_by):
            assert (ROOT / place).exists(), f"{page.name}: {place}"


# What no file says


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def test_no_file_names_another_machine_or_an_address_to_install_from() -> None:
    # Put together here so that this file does not hold them.
    forbidden = ["/" + "work/", "/" + "root/", "extra-" + "index-url", "pypi" + ".org", "files.python" + "hosted"]
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {word}" for word in forbidden if word in text]
    assert found == []


def test_every_picture_of_the_pages_is_there_can_be_drawn_and_is_shown() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    drawn = {path for path in (ROOT / "docs").rglob("*") if path.suffix in (".svg", ".png")}
    assert shown == drawn
    for path in drawn:
        if path.suffix == ".svg":  # a browser draws nothing of a file without the name space
            assert ElementTree.fromstring(path.read_bytes()).tag == "{http://www.w3.org/2000/svg}svg", path.name


def test_file_names_follow_one_rule() -> None:
    """Underscores for Python, hyphens for everything else that has a name of several words."""
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in tracked()
        if (path.suffix == ".py" and "-" in path.stem) or (path.suffix in {".md", ".toml", ".yml"} and "_" in path.stem)
    ]
    assert wrong == []


# What the tests themselves stand on


def test_the_network_is_refused(refused: list[str]) -> None:
    with pytest.raises(OSError, match=r"may not reach 192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(OSError, match=r"may not reach example\.invalid"):
        socket.create_connection(("example.invalid", 80), timeout=1)
    assert refused == ["192.0.2.1", "example.invalid"]
    refused.clear()


def test_loopback_is_not_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=1) as client,
    ):
        assert client.getpeername() == server.getsockname()
