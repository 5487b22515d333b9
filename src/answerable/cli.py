"""The command line: ``answerable questions``, ``ask``, ``dossier``, ``report``, ``verify``, ``rerun``, ``diff``, ...

Flags come from each question's fields; nothing is described twice. Exit codes: 0 all is well, 1 something does not
hold, 2 it could not run.
"""

from __future__ import annotations

import atexit
import inspect
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import App, CycloptsError, Parameter

from answerable import terminal
from answerable.errors import AnswerableError

app = App(
    name="answerable",
    help="Put a question to a model, a data set or an automated decision, and get an answer with its evidence.",
    help_format="plaintext",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    code = 2

    def leave() -> None:
        # The exit code is the outcome. A native library that aborts while it is unloaded must not make another of it,
        # so the process ends here: registered before all others, this is the last of Python's own exit handlers.
        terminal.flush()
        os._exit(code)

    atexit.register(leave)
    code = run(sys.argv[1:] if arguments is None else arguments)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; every failure is one line."""
    try:
        if "--quiet" in arguments:
            arguments = [argument for argument in arguments if argument != "--quiet"]
            terminal.be_quiet()
        _add_question(arguments)
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        terminal.fail(f"{str(error).rstrip('. ,')}; {_help_for(arguments)} shows what can be said")
    except AnswerableError as error:
        terminal.fail(str(error))
    except KeyboardInterrupt:
        terminal.fail("stopped; what was finished is kept, and the same command goes on from there")
        return 130
    except MemoryError:
        terminal.fail("the memory is used up; use a shorter text, a smaller model or fewer workers")
    except Exception as error:
        if os.environ.get("ANSWERABLE_TRACEBACK"):
            raise
        terminal.fail(
            f"this should not have happened ({type(error).__name__}: {error}); "
            "set ANSWERABLE_TRACEBACK=1 to see where, and please report it"
        )
    return 2


Store = Annotated[
    str | None,
    Parameter(help="Folder or fsspec address of the answer store; ANSWERABLE_STORE or the user's own by default."),
]
Fresh = Annotated[bool, Parameter(help="Ask again also what is in the store.", negative="")]
Engine = Annotated[str, Parameter(help="local, ray or ray://HOST:PORT.")]
Workers = Annotated[int | None, Parameter(help="Processes at most; all cores by default. Never changes an answer.")]


@app.command
def questions(
    name: str | None = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="")] = False,
    schema: Annotated[bool, Parameter(help="Print the JSON schema of the question's fields.", negative="")] = False,
) -> int:
    """List the questions that can be asked, or describe one.

    Parameters
    ----------
    name
        The question to describe.
    """
    from answerable import registry

    if schema and name:
        terminal.show(json.dumps(registry.find(name).model_json_schema(), indent=2))
    elif schema:
        terminal.show(json.dumps({kind.name: kind.model_json_schema() for kind in registry.catalogue()}, indent=2))
    elif as_json:
        found = [registry.find(name)] if name else registry.catalogue()
        terminal.show(json.dumps([_as_data(kind) for kind in found], indent=2))
    elif name:
        _describe(registry.find(name))
    else:
        terminal.show_table(
            ["question", "in plain words"], [[kind.name, kind.in_plain_words()] for kind in registry.catalogue()]
        )
    return 0


ask = App(name="ask", help="Ask one question: answerable ask NAME --help shows its fields.", help_format="plaintext")
app.command(ask)


@app.command
def dossier(
    file: Path,
    /,
    *,
    report: Annotated[Path | None, Parameter(help="Write the report here, one HTML file.")] = None,
    junit: Annotated[Path | None, Parameter(help="Write the outcomes here as JUnit XML.")] = None,
    only: Annotated[
        str | None, Parameter(help="Ask only those whose name fits this pattern (* and ? as in a shell).")
    ] = None,
    fresh: Fresh = False,
    store: Store = None,
    engine: Engine = "local",
    workers: Workers = None,
) -> int:
    """Ask every question of a dossier and check what is expected of the answers.

    Exits 0 when at least one expectation was checked and all hold, 1 when some do not, 2 when it could not run.

    Parameters
    ----------
    file
        The dossier, a TOML file.
    """
    terminal.status(f"reading {file}")
    from dataclasses import replace

    from answerable.asking import Settings
    from answerable.dossier import Dossier

    whole = Dossier.load(file)
    _check_targets(file, {"report": report, "junit": junit})
    chosen = whole if only is None else whole.only(only)
    result = chosen.run(Settings(store=_store(store), fresh=fresh, engine=engine, workers=workers))
    result = replace(result, left_out=len(whole.asks) - len(chosen.asks))
    _show_result(result)
    if junit is not None:  # first, because a report is more likely to fail
        from answerable.junit import write as write_junit

        write_junit(result, junit)
    if report is not None:
        from answerable.report import write

        terminal.status(f"writing {report}")
        terminal.show_line(f"report: {write(result, report)}")
    return result.exit_code


def _check_targets(file: Path, targets: dict[str, Path | None]) -> None:
    """Two files written to one place, or one over the dossier, would leave only the last of them."""
    from answerable.errors import BadInput

    taken = {file.resolve(): "the dossier"}
    for name, target in targets.items():
        if target is None or (target.exists() and not target.is_file()):  # a terminal or a pipe takes both
            continue
        place = target.resolve()
        if place in taken:
            raise BadInput(f"{target} is {taken[place]} too", where=name, mend="name another file")
        taken[place] = f"the {name}"


@app.command
def report(
    source: str,
    /,
    *,
    to: Annotated[Path, Parameter(help="Write the report here.")] = Path("report.html"),
) -> int:
    """Write one HTML report from saved answers.

    Parameters
    ----------
    source
        A saved answer, a folder of saved answers, or an answer store.
    """
    from answerable.report import write

    terminal.status(f"reading {source}")
    terminal.show_line(f"report: {write(_answers(source), to)}")
    return 0


@app.command
def convert(
    file: Path,
    /,
    *,
    to: Annotated[
        Path | None, Parameter(help="Where the safetensors file goes; beside the checkpoint by default.")
    ] = None,
) -> int:
    """Turn a checkpoint of tensors alone (.pt, .pth, .bin) into safetensors, in a process of limited time and memory.

    Parameters
    ----------
    file
        The checkpoint.
    """
    from answerable import subjects

    terminal.status(f"converting {file}")
    terminal.show_line(f"converted: {subjects.convert(file, to)}")
    return 0


@app.command
def verify(folder: Path, /) -> int:
    """Check that every file of a saved answer is the one that was written; exits 1 and names those that are not.

    Parameters
    ----------
    folder
        The saved answer.
    """
    from answerable.errors import DamagedAnswer
    from answerable.verification import problems

    try:
        found = problems(folder)
    except DamagedAnswer as error:
        found = [error.problem]
    for line in found:
        terminal.show_line(line)
    if not found:
        terminal.show("every file is the one that was written")
    return int(bool(found))


@app.command
def rerun(
    folder: Path,
    /,
    *,
    store: Store = None,
    engine: Engine = "local",
    workers: Workers = None,
) -> int:
    """Ask a saved answer's question again, and say whether the new answer is identical, within tolerance or different.

    Exits 0 when it is identical or within the tolerance that the answer states, else 1.

    Parameters
    ----------
    folder
        The saved answer.
    """
    from answerable import asking, comparing
    from answerable.answer import Answer

    saved = Answer.load(folder)
    terminal.status(f"asking {saved.question} again")
    given = saved.provenance
    settings = asking.Settings(given.seed, _store(store), True, engine, workers, given.threads, given.device)
    word, places = comparing.sameness(saved, asking.answer_to(asking.again(saved), settings))
    terminal.show(word)
    for place in places[:20]:
        terminal.show_line(f"- {place}")
    if len(places) > 20:
        terminal.show(f"and in {len(places) - 20} more places")
    return int(word == "different")


@app.command
def diff(first: Path, second: Path, /) -> int:
    """Compare two saved answers to one question, with an interval on every difference.

    Exits 0 when nothing differs by more than the intervals allow, else 1.

    Parameters
    ----------
    first, second
        The saved answers.
    """
    from answerable.answer import Answer
    from answerable.comparing import asked_differently, differences, said_differently

    answers = Answer.load(first), Answer.load(second)
    found = differences(*answers)
    for line in [*asked_differently(*answers), *said_differently(*answers)]:
        terminal.show_line(line)
    rows = [
        [
            one.what,
            _cell(one.first),
            _cell(one.second),
            f"{_cell(one.difference)} [{_cell(one.low)}, {_cell(one.high)}]",
            one.word,
            one.method,
        ]
        for one in found
    ]
    terminal.show_table(["number", "first", "second", "difference", "", "how"], rows)
    return int(any(one.word == "differs" for one in found))


store_commands = App(name="store", help="Look into the answer store.", help_format="plaintext")
app.command(store_commands)


@store_commands.command(name="path")
def store_path(*, store: Store = None) -> int:
    """Print where the store is."""
    terminal.show_line(_store(store).address)
    return 0


@store_commands.command(name="list")
def store_list(*, store: Store = None) -> int:
    """List the answers that were given, newest last."""
    rows = [
        [entry.key[:12], entry.time, entry.question, _written(entry.seed), entry.note]
        for entry in _store(store).listed()
    ]
    terminal.show_table(["key", "made", "question", "seed", "answer"], rows)
    return 0


@store_commands.command(name="log")
def store_log(*, store: Store = None) -> int:
    """Print the journal: every run the store has seen, also killed, failed and discarded ones."""
    rows = [
        [entry.time, entry.event, entry.key[:12], entry.question, _written(entry.seed), entry.note]
        for entry in _store(store).journal()
    ]
    terminal.show_table(["time", "event", "key", "question", "seed", "note"], rows)
    return 0


@store_commands.command(name="prune")
def store_prune(
    *,
    older_than: Annotated[int, Parameter(help="Age in days, at least 0.")] = 90,
    store: Store = None,
) -> int:
    """Take out answers that were last asked for longer ago; the journal keeps that they were there."""
    kept = _store(store)
    keys = kept.unused_for(older_than)
    for key in keys:
        kept.remove(key, f"pruned: not asked for in {older_than} days")
    terminal.show(f"{len(keys)} answers taken out")
    return 0


@app.command
def schema(name: str | None = None, /) -> int:
    """Print the JSON schema of a dossier, or of one question's fields.

    Parameters
    ----------
    name
        The question.
    """
    from answerable import registry
    from answerable.schemas import dossier_schema

    found = registry.find(name).model_json_schema() if name else dossier_schema()
    terminal.show(json.dumps(found, indent=2))
    return 0


def _help_for(arguments: list[str]) -> str:
    """The command that shows the help for what was tried, as far as that is known."""
    known = [word for word in arguments[:1] if word in app]
    if known == ["ask"]:
        known += [word for word in arguments[1:2] if word in _registered]
    return " ".join(["answerable", *known, "--help"])


_registered: set[str] = set()


def _add_question(arguments: list[str]) -> None:
    """Give ``ask`` the one subcommand that this command line names, so that no other question is loaded."""
    if not arguments or arguments[0] != "ask":
        return
    from answerable import registry

    named = len(arguments) > 1 and not arguments[1].startswith("-")
    for kind in [registry.find(arguments[1])] if named else registry.catalogue():
        if kind.name in _registered:  # the command line was run in this process before
            continue
        _registered.add(kind.name)
        ask.command(_asking(kind), name=kind.name, help=kind.in_plain_words(), help_format="plaintext")


def _asking(kind: Any) -> Callable[..., int]:
    """The command that asks one question: one flag per field, and those that every question has."""

    def command(
        *,
        seed: Annotated[int | None, Parameter(help="Seed of all chance in the answer.")] = None,
        threads: Annotated[int, Parameter(help="Threads of each numerical library; part of the answer's key.")] = 1,
        device: Annotated[str, Parameter(help="Where tensors are put, as torch names it.")] = "cpu",
        engine: Engine = "local",
        workers: Workers = None,
        store: Store = None,
        fresh: Fresh = False,
        as_json: Annotated[
            bool, Parameter(name="--json", help="Print answer.json instead of words.", negative="")
        ] = False,
        save: Annotated[Path | None, Parameter(help="Save the answer as this folder.")] = None,
        open_report: Annotated[
            bool, Parameter(name="--open", help="Write a report and open it in the browser.", negative="")
        ] = False,
        **given: Any,
    ) -> int:
        from answerable import asking

        terminal.status(kind.in_plain_words())
        settings = asking.Settings(seed, _store(store), fresh, engine, workers, threads, device)
        answer = asking.answer_to(
            asking.prepared(kind.name, {name: value for name, value in given.items() if value is not None}), settings
        )
        if save is not None:
            terminal.say(f"saved: {answer.save(save)}")
        if as_json:
            terminal.show(answer.files()["answer.json"].decode("ascii").rstrip())
        else:
            _show_answer(answer)
        if open_report:
            _open_report(answer)
        return 0

    own = inspect.signature(command)
    shared = [entry for entry in own.parameters.values() if entry.kind is not inspect.Parameter.VAR_KEYWORD]
    fields = [_flag(name, field) for name, field in kind.model_fields.items()]
    command.__signature__ = own.replace(parameters=[*fields, *shared])  # type: ignore[attr-defined]
    command.__doc__ = kind.__doc__
    command.__annotations__ = {entry.name: entry.annotation for entry in [*fields, *shared]} | {"return": int}
    return command


def _flag(name: str, field: Any) -> inspect.Parameter:
    from answerable.question import bounds_of, is_text, unit_of

    said = [
        part
        for part in (
            unit_of(field),
            "" if any(get_origin(kind) is Literal for kind in _members(field.annotation)) else bounds_of(field),
        )
        if part
    ]
    if not field.is_required() and field.default not in (None, "", [], ()):
        said.append(f"default {field.default}")
    if is_text(field):
        said.append("@FILE reads it from a file")
    words = field.description + (f" [{'; '.join(said)}]" if said else "")
    annotation: Any = Annotated[
        _flag_type(field), Parameter(help=words, show_default=False, negative_iterable="", consume_multiple=True)
    ]
    default = inspect.Parameter.empty if field.is_required() else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag_type(field: Any) -> Any:
    """The type a flag is read as; pydantic checks the value again against the field itself."""
    from answerable.question import is_text, subject_kind

    if subject_kind(field):
        return str if field.is_required() else str | None
    kinds = _members(field.annotation)
    if is_text(field) and any(get_origin(kind) in (list, tuple) for kind in kinds):
        return list[str] if field.is_required() else list[str] | None
    return field.annotation if field.is_required() else field.annotation | None


def _members(annotation: Any) -> tuple[Any, ...]:
    import types
    from typing import Union

    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _store(address: str | None) -> Any:
    from answerable import places
    from answerable.store import Store

    return Store(address or places.store())


def _describe(kind: Any) -> None:
    from answerable.question import bounds_of, unit_of

    terminal.show(f"{kind.name}: {kind.in_plain_words()}\n")
    rest = inspect.cleandoc(kind.__doc__ or "").partition("\n")[2].strip()
    if rest:
        terminal.show(f"{rest}\n")
    rows = [
        [
            name,
            unit_of(field),
            "required" if field.is_required() else str(field.default),
            bounds_of(field),
            field.description or "",
        ]
        for name, field in kind.model_fields.items()
    ]
    terminal.show_table(["field", "unit", "default", "bounds", "what it is"], rows)


def _as_data(kind: Any) -> dict[str, Any]:
    return {"name": kind.name, "question": kind.in_plain_words(), "schema": kind.model_json_schema()}


def _show_answer(answer: Any) -> None:
    from answerable.report.numbers import metric_words

    terminal.show_line(answer.summary)
    if answer.verdict:
        terminal.show_line(
            f"verdict: {answer.verdict.word}" + (f" - {answer.verdict.reason}" if answer.verdict.reason else "")
        )
    if answer.void:
        terminal.show_line(f"void: {answer.void}")
    terminal.show()
    terminal.show_table(
        ["metric", "what it is", "value", "how"],
        [[name, metric.label, metric_words(metric), metric.method] for name, metric in answer.metrics.items()],
    )
    _show_tables(answer.tables)
    terminal.show("\nWhat this cannot say")
    for limit in answer.limits:
        terminal.show_line(f"- {limit}")
    if answer.from_store:
        terminal.show()
        terminal.show_line(f"From the store; it was made {answer.run.made}.")


def _show_tables(tables: Any) -> None:
    """The first table, up to 20 rows of it; of the others what they are."""
    for i, (name, table) in enumerate(tables.items()):
        shown = table.frame.head(20 if i == 0 else 0)
        if i == 0:
            terminal.show()
        terminal.show_line(
            f"{name}: {table.title}"
            if i == 0
            else f"{name}: {table.title}, {table.frame.height} row{'' if table.frame.height == 1 else 's'}"
        )
        if i == 0:
            terminal.show_table(shown.columns, [[_cell(value) for value in row] for row in shown.iter_rows()])
            if table.frame.height > shown.height:
                terminal.show(f"... {table.frame.height - shown.height} more rows")
            terminal.show()


def _written(seed: int | None) -> str:
    return "" if seed is None else str(seed)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.6g}"
    return "" if value is None else str(value)


def _show_result(result: Any) -> None:
    rows = []
    for one in result.asked:
        if one.error:
            terminal.warn(one.error)
        summary = one.answer.summary if one.answer else "could not run"
        made = "from the store" if one.answer and one.answer.from_store else "asked now" if one.answer else "not run"
        rows.append([one.ask.name, made, summary])
        for expected, outcome in zip(one.ask.expect, one.outcomes, strict=True):
            lenient = " (warns only)" if expected.severity == "warn" and outcome.word != "held" else ""
            rows.append(["", outcome.word + lenient, expected.words or expected.expectation.text])
            if outcome.word != "held":
                rows += [["", "", f"  {said}"] for said in (outcome.reason, expected.why) if said]
    terminal.show_table(["ask", "", result.dossier.title], rows)
    if result.multiplicity:
        terminal.show(f"\n{result.multiplicity}")
    terminal.show(f"\n{result.tally}: exit code {result.exit_code}")


def _answers(source: str) -> list[Any]:
    from answerable.answer import Answer
    from answerable.errors import CannotRead
    from answerable.store import Store

    folder = Path(source)
    if "://" in source or (folder / "journal.jsonl").is_file():
        answers = Store(source).answers()
    else:
        manifests = (
            [folder / "manifest.json"]
            if (folder / "manifest.json").is_file()
            else sorted(folder.glob("*/manifest.json"))
        )
        answers = [Answer.load(manifest.parent) for manifest in manifests]
    if not answers:
        raise CannotRead(
            "no answer is saved there", where=source, mend="name a saved answer, a folder of them, or a store"
        )
    return answers


def _open_report(answer: Any) -> None:
    import tempfile
    import webbrowser

    from answerable.report import write

    path = write([answer], Path(tempfile.mkdtemp(prefix="answerable-")) / "report.html")
    terminal.show_line(f"report: {path}")
    webbrowser.open(path.as_uri())
