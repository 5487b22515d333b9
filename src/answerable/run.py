"""What a question is handed while it works: seed, places for caches and checkpoints, progress, and a map over all
cores.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from answerable import atomic, places, terminal
from answerable.errors import BadInput, CannotWrite

if TYPE_CHECKING:
    import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Run:
    """One run of one question.

    Parameters
    ----------
    seed : seed of all chance, None where none was set
    workers : processes or threads of ours at most; the answer never depends on it
    threads : threads of each numerical library (BLAS, torch); part of the answer's key, since sums may be cut
        differently
    engine : "local", or "ray" with an optional address
    device : where tensors are put
    checkpoints : folder for finished units of work, None where nothing is kept
    """

    seed: int | None = None
    workers: int = 1
    threads: int = 1
    engine: str = "local"
    device: str = "cpu"
    checkpoints: Path | None = None
    _counts: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    _spent: list[float] = field(default_factory=list, repr=False, compare=False)

    @property
    def spent(self) -> float:
        """Seconds that earlier, unfinished runs took for the units that this one did not run again."""
        return sum(self._spent)

    @property
    def cache(self) -> Path | None:
        """Folder for what can be made again (de-quantised weights, rendered pictures); None where no place can be
        written.
        """
        return places.cache()

    def status(self, text: str) -> None:
        """Say what is being done, on one line that the next one replaces."""
        terminal.status(text)

    def rng(self, *names: str | int) -> np.random.Generator:
        """A random generator that depends on the seed and ``names`` alone, not on the order it is asked for.

        Raises
        ------
        BadInput : the run has no seed
        """
        import numpy as np

        if self.seed is None:
            raise BadInput(
                "the answer depends on chance and no seed is set", where="seed", mend="set seed, for example 0"
            )
        return np.random.default_rng(
            [self.seed, int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:8], "little")]
        )

    def track(self, items: Iterable[Item], label: str, *, total: int | None = None) -> Iterator[Item]:
        """The items one by one, with a bar and the time left once the work has taken two seconds."""
        if total is None and isinstance(items, Sequence):
            total = len(items)
        with terminal.progress(label, total) as advance:
            for item in items:
                yield item
                advance()

    def each(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """``function`` of every item, one after another in this process; finished units are not run again.

        Parameters
        ----------
        function : returns what JSON can hold, with numpy arrays anywhere inside
        items : the units; their order and number are part of the question, never of the machine
        label : what is being done, for the progress bar
        """
        return list(self._units(items, label, lambda todo: ((i, function(items[i])) for i in todo)))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """As :meth:`each`, over all workers in fresh processes, with ``threads`` threads for the numerical libraries
        of each.
        """
        from answerable import engines

        return list(self._units(items, label, lambda todo: engines.unordered(self, function, items, todo)))

    def _units(
        self, items: Sequence[Item], label: str, compute: Callable[[list[int]], Iterable[tuple[int, Result]]]
    ) -> list[Result]:
        folder = self._checkpoint_folder(label)
        results: dict[int, Result] = {}
        if folder is not None:
            found = {i: kept for i in range(len(items)) if (kept := _read_unit(folder / f"{i}.npz"))}
            results = {i: result for i, (result, _) in found.items()}
            self._spent.append(sum(seconds for _, seconds in found.values()))
        todo = [i for i in range(len(items)) if i not in results]
        with terminal.progress(label, len(items), done=len(results)) as advance:
            last = time.perf_counter()
            for i, result in compute(todo):
                seconds, last = time.perf_counter() - last, time.perf_counter()
                if folder is not None:
                    # A unit that is not kept is only computed again: the disk may be full, or another process may
                    # have answered the same question and taken the folder away.
                    with contextlib.suppress(CannotWrite):
                        atomic.write_bytes(folder / f"{i}.npz", _unit_bytes(result, seconds))
                results[i] = result
                advance()
        return [results[i] for i in range(len(items))]

    def _checkpoint_folder(self, label: str) -> Path | None:
        if self.checkpoints is None:
            return None
        nth = self._counts[label] = self._counts.get(label, 0) + 1
        return self.checkpoints / hashlib.sha256(f"{label} {nth}".encode()).hexdigest()[:16]


@contextlib.contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Hold every numerical library, also one loaded later, to ``threads`` threads; put the old numbers back afterwards.

    numba's own threads are left alone: kernels that use them give the same bits for any number.
    """
    import sys

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    torch = sys.modules.get("torch")
    torch_before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(threads)
    limits: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        limits = threadpool_limits(threads)
    try:
        with limits:
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if torch:
            torch.set_num_threads(torch_before)


def _unit_bytes(result: Any, seconds: float) -> bytes:
    """One result as an ``.npz`` without objects: its JSON with arrays taken out, the arrays, its share of wall time,
    and a digest of all.
    """
    import io

    import numpy as np

    from answerable.answer import encode

    arrays: list[np.ndarray] = []

    def without_arrays(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            arrays.append(np.asarray(value))
            return {"$array": len(arrays) - 1, "scalar": isinstance(value, np.generic)}
        if isinstance(value, dict):
            return {name: without_arrays(entry) for name, entry in value.items()}
        if isinstance(value, tuple):
            return {"$tuple": [without_arrays(entry) for entry in value]}
        return [without_arrays(entry) for entry in value] if isinstance(value, list) else value

    text = json.dumps(encode(without_arrays(result)), allow_nan=False)
    buffer = io.BytesIO()
    named: dict[str, Any] = {"text": np.frombuffer(text.encode(), np.uint8), "seconds": np.float64(seconds)} | {
        f"a{i}": array for i, array in enumerate(arrays)
    }
    np.savez(buffer, **named)
    content = buffer.getvalue()
    return hashlib.sha256(content).digest() + content


def _read_unit(path: Path) -> tuple[Any, float] | None:
    """The result in a checkpoint and its seconds, or None where there is none or it is damaged."""
    import io

    try:
        content = path.read_bytes()
    except OSError:
        return None
    if len(content) < 32 or hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    import numpy as np

    from answerable.answer import decode

    with np.load(io.BytesIO(content[32:]), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}

    def with_arrays(value: Any) -> Any:
        if isinstance(value, dict):
            if "$array" in value:
                array = arrays[f"a{value['$array']}"]
                return array[()] if value["scalar"] else array
            if "$tuple" in value:
                return tuple(with_arrays(entry) for entry in value["$tuple"])
            return {name: with_arrays(entry) for name, entry in value.items()}
        return [with_arrays(entry) for entry in value] if isinstance(value, list) else value

    return with_arrays(decode(json.loads(arrays["text"].tobytes()))), float(arrays.get("seconds", 0.0))


def all_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
