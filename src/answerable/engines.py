"""Where units of work run: in this process, on all cores (joblib, fresh loky workers), or as tasks of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from answerable.errors import BadInput, missing_extra

if TYPE_CHECKING:
    from answerable.run import Run

Item = TypeVar("Item")
Result = TypeVar("Result")

TRIES = 3  # of a unit whose Ray worker dies


def check(engine: str) -> str:
    """The engine's address, "" for one that has none.

    Raises
    ------
    BadInput : no such engine
    """
    name, separator, address = engine.partition("://")
    if name not in ("local", "ray") or (name == "local" and separator) or (separator and not address):
        raise BadInput(f"{engine[:80]!r} is no engine", where="engine", mend="say local, ray or ray://HOST:PORT")
    return address


def unordered(
    run: Run, function: Callable[[Item], Result], items: Sequence[Item], todo: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    """``(i, function(items[i]))`` for every ``i`` of ``todo``, as they are finished."""
    address = check(run.engine)
    if run.engine != "local":
        return _on_ray(address, run, function, items, todo)
    if run.workers == 1 or len(todo) <= 1:
        return ((i, _pinned(function, items[i], run.threads)) for i in todo)
    return _on_all_cores(run, function, items, todo)


def _on_all_cores(
    run: Run, function: Callable[[Item], Result], items: Sequence[Item], todo: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=run.threads):
        work = Parallel(n_jobs=run.workers, return_as="generator_unordered")
        yield from work(delayed(_unit)(function, i, items[i], run.threads) for i in todo)


def _on_ray(
    address: str, run: Run, function: Callable[[Item], Result], items: Sequence[Item], todo: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    """As plain Ray tasks: joblib's Ray backend gives results only when all are there, and stops when a worker dies."""
    ray = _started_ray(address, run.workers)
    task = ray.remote(max_retries=TRIES, num_cpus=1)(_unit)
    shared, waiting = ray.put(function), list(reversed(todo))
    running: list[Any] = []
    while waiting or running:
        while waiting and len(running) < 2 * run.workers:
            i = waiting.pop()
            running.append(task.remote(shared, i, items[i], run.threads))
        finished, running = ray.wait(running, num_returns=1)
        try:
            yield ray.get(finished[0])
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            lost = f"the cluster lost a unit of work ({type(error).__name__})"
            raise BadInput(
                lost, where="engine", mend="look at the cluster; the same command goes on from there"
            ) from error


def _started_ray(address: str, workers: int) -> Any:
    """Join the cluster at ``address``, or start one of our own that listens on loopback alone and shows no
    dashboard.
    """
    try:
        import ray
    except ImportError:
        raise missing_extra("ray", "cluster") from None
    if not ray.is_initialized():
        own = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        where = {"address": f"ray://{address}"} if address else own
        try:
            ray.init(**where, log_to_driver=False, configure_logging=False)
        except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())[:160]
            raise BadInput(
                f"no Ray cluster answers ({said})", where="engine", mend="check the address, or say ray"
            ) from error
    return ray


def _unit(function: Callable[[Item], Result], i: int, item: Item, threads: int) -> tuple[int, Result]:
    return i, _pinned(function, item, threads)


def _pinned(function: Callable[[Item], Result], item: Item, threads: int) -> Result:
    from answerable.run import pinned_threads

    with pinned_threads(threads):
        return function(item)
