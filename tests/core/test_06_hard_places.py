"""Two processes on one store, a read-only store, a full disk, no current directory: the right outcome, or one line."""

import concurrent.futures
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from answerable import atomic, verification
from answerable.asking import ask
from answerable.cli import run
from answerable.dossier import Dossier
from answerable.errors import BadInput, CannotRead, DamagedAnswer
from answerable.run import Run
from answerable.store import Store
from tests.core.conftest import Command


def test_processes_on_one_store_do_not_disturb_each_other(tmp_path: Path, command: Command) -> None:
    fields = ["ask", "trivial/luck", "--seed", "1", "--store", tmp_path]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(command, *fields, "--fresh") for _ in range(4)]
    assert {run.result().returncode for run in runs} == {0}
    assert [entry.event for entry in Store(tmp_path).journal()].count("answered") == 4
    assert len(Store(tmp_path).answers()) == 1
    assert not list(tmp_path.rglob("*.partial"))


def test_the_journal_keeps_every_line_of_many_writers(tmp_path: Path) -> None:
    program = f"""
from answerable.store import Store
for i in range(50): Store({str(tmp_path)!r}).note("failed", f"{{i:064x}}", "q", None, "x")
"""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(Store(tmp_path).journal()) == 150


def test_writers_of_one_folder_give_way_to_each_other(tmp_path: Path) -> None:
    contents = [{"a": bytes([i]), "inside/b": bytes([i])} for i in range(8)]

    def write(files: dict[str, bytes]) -> None:
        for _ in range(40):
            atomic.write_folder(tmp_path / "folder", files)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(write, files) for files in contents]:
            done.result()
    assert {name: (tmp_path / "folder" / name).read_bytes() for name in contents[0]} in contents
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_writer_that_always_comes_late_leaves_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, remove, rivals = tmp_path / "folder", shutil.rmtree, [b"third", b"second"]
    atomic.write_folder(folder, {"a": b"first"})

    def a_rival_is_faster(path: Path, **options: bool) -> None:
        remove(path, **options)
        if rivals:
            folder.mkdir()
            (folder / "a").write_bytes(rivals.pop())

    monkeypatch.setattr(shutil, "rmtree", a_rival_is_faster)
    assert not atomic.write_folder(folder, {"a": b"ours"})
    assert (folder / "a").read_bytes() == b"third"


def test_an_answer_replaced_while_it_is_read_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ask("trivial/mean", numbers=[1.0], store=tmp_path).provenance.key
    checked = verification.checked_files
    replaced = [DamagedAnswer("manifest.json is missing", where="there")]

    def halfway(folder: Path) -> dict[str, bytes]:
        if replaced:
            raise replaced.pop()
        return checked(folder)

    monkeypatch.setattr(verification, "checked_files", halfway)
    assert Store(tmp_path).get(key) is not None
    assert "discarded" not in [entry.event for entry in Store(tmp_path).journal()]
    assert capsys.readouterr().err == ""


def test_work_goes_on_when_its_units_cannot_be_kept(tmp_path: Path) -> None:
    units = tmp_path / "units"

    def double(number: int) -> int:
        shutil.rmtree(units, ignore_errors=True)  # as another process does that has answered the same question
        units.write_text("no folder")
        return 2 * number

    assert Run(checkpoints=units).each(double, [1, 2, 3], "doubling") == [2, 4, 6]


@pytest.mark.parametrize("place", ["/proc/answerable", "/dev/null/store"])
def test_a_store_that_cannot_be_written_loses_no_answer(command: Command, place: str) -> None:
    result = command("ask", "trivial/mean", "--numbers", "1", "--store", place)
    assert result.returncode == 0
    assert result.stdout.startswith("The mean of numbers is 1.000.")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("warning: the answer is not stored: /")


def test_a_full_disk_is_told_in_one_line(tmp_path: Path, command: Command) -> None:
    result = command("ask", "trivial/mean", "--numbers", "1", "--save", "/dev/full/answer", "--store", tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "/dev/full/answer: " in result.stderr


def test_a_disk_that_fills_up_inside_a_line_leaves_a_journal(tmp_path: Path) -> None:
    # A limit on the size of files cuts a write short as a full disk does, for this one process.
    program = f"""
import resource
from answerable.errors import CannotWrite
from answerable.store import Store
store, note = Store({str(tmp_path)!r}), ("failed", "ab" * 32, "q", None, "x" * 150)
store.note(*note)
size = store._folders.root.joinpath("journal.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        store.note(*note)
    except CannotWrite as error:
        print(error)
print(len(store.journal()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.note(*note)
print(len(store.journal()))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    line = f"{tmp_path}/journal.jsonl: no space left on device; free some space, or name another place\n"
    assert (result.stdout, result.stderr) == (2 * line + "1\n2\n", "")


def test_a_store_that_cannot_be_reached_is_one_line(command: Command) -> None:
    for words in (["store", "list"], ["ask", "trivial/mean", "--numbers", "2"]):
        result = command(*words, "--store", "ftp://127.0.0.1:1/answers")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == (
            "error: ftp://127.0.0.1:1/answers: connection refused; check the address, and whether it can be reached\n"
        )


def test_a_current_directory_that_is_gone_does_not_matter(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from answerable.cli import main; main()"
    line = [sys.executable, "-c", program, "ask", "trivial/mean", "--numbers", "2", "--store", str(tmp_path / "store")]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_home_that_cannot_be_written_gives_way_to_a_temporary_one(tmp_path: Path, command: Command) -> None:
    environment = {"HOME": "/proc/nobody", "TMPDIR": str(tmp_path), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": ""}
    without = {
        name: value for name, value in os.environ.items() if name not in ("ANSWERABLE_STORE", "ANSWERABLE_CACHE")
    }
    line = [sys.executable, "-m", "answerable", "ask", "trivial/mean", "--numbers", "2"]
    result = subprocess.run(line, capture_output=True, text=True, env=without | environment, check=False)
    assert result.returncode == 0
    assert result.stderr.startswith("/proc/nobody/.local/share/answerable cannot be written; keeping data in ")
    assert list(tmp_path.glob("answerable-*-data/answers/journal.jsonl"))


def test_a_remote_store_serves_what_it_holds() -> None:
    address = f"memory://answers-{os.getpid()}"
    first = ask("trivial/luck", seed=1, store=address)
    again = ask("trivial/luck", seed=1, store=address)
    assert again.from_store
    assert again.without_run() == first.without_run()
    assert again.tables["units"].frame.equals(first.tables["units"].frame)
    assert [entry.event for entry in Store(address).journal()] == ["begun", "answered", "served"]


def test_a_device_that_never_ends_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("answerable.subjects.texts.MOST_BYTES", 1000)
    with pytest.raises(CannotRead, match="/dev/zero: it is too large; a dossier holds at most 4194304 bytes; split it"):
        Dossier.load("/dev/zero")
    with pytest.raises(BadInput, match="/dev/zero: longer than 1000 bytes; split it"):
        ask("trivial/mean", numbers=[1.0], label="@/dev/zero", store=False)


def test_a_file_is_written_where_a_link_leads_and_into_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    atomic.write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        atomic.write_bytes(tmp_path / "pipe", b"through")
        assert read.result() == b"through"
    assert (tmp_path / "pipe").is_fifo()


def test_a_name_as_long_as_the_file_system_holds_can_be_written(tmp_path: Path) -> None:
    atomic.write_bytes(tmp_path / ("\U0001f600" * 63), b"x")
    assert len(list(tmp_path.iterdir())) == 1


def test_ten_thousand_stored_answers_are_listed_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last, lines = b"", []
    for i in range(10_000):
        line = {"time": "2026-01-01T00:00:00+00:00", "event": "answered", "key": f"{i:064x}", "question": "q"}
        line |= {"seed": i, "note": "n", "previous": hashlib.sha256(last).hexdigest()}
        last = json.dumps(line).encode()
        lines.append(last + b"\n")
    (tmp_path / "journal.jsonl").write_bytes(b"".join(lines))
    monkeypatch.setattr(verification, "checked_files", lambda folder: pytest.fail(f"{folder} was read"))
    assert run(["store", "list", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n") == 10_001


def test_a_store_that_can_only_be_read_still_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ask("trivial/mean", numbers=[1.0], store=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def read_only(self: Path, mode: str = "r", *more: object, **options: object) -> object:
        if set(mode) & set("wax+"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(self, mode, *more, **options)  # type: ignore[call-overload]

    opened = Path.open
    monkeypatch.setattr(Path, "open", read_only)
    again = ask("trivial/mean", numbers=[1.0], store=tmp_path)
    assert again.from_store
    assert again.without_run() == first.without_run()
    assert capsys.readouterr().err == ""
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
