"""Where units of work run: in this process, on all cores (joblib, fresh loky workers), or on a Ray cluster (joblib's
Ray backend).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from answerable.errors import BadInput, missing_extra

if TYPE_CHECKING:
    from answerable.run import Run

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    if run.engine == "local" and (run.workers == 1 or len(todo) <= 1):
        return ((i, _pinned(function, items[i], run.threads)) for i in todo)
    return _parallel(run, function, items, todo)


def _parallel(
    run: Run, function: Callable[[Item], Result], items: Sequence[Item], todo: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(**_backend(run)):
        yield from Parallel(n_jobs=run.workers, return_as="generator_unordered")(
            delayed(_unit)(function, i, items[i], run.threads) for i in todo
        )


def _backend(run: Run) -> dict[str, Any]:
    if run.engine == "local":
        return {"backend": "loky", "inner_max_num_threads": run.threads}
    _start_ray(check(run.engine), run.workers)
    return {"backend": "ray"}


def _start_ray(address: str, workers: int) -> None:
    """Join the cluster at ``address``, or start one of our own that listens on loopback alone and shows no
    dashboard.
    """
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise missing_extra("ray", "cluster") from None
    if not ray.is_initialized():
        own = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        ray.init(**({"address": f"ray://{address}"} if address else own), log_to_driver=False, configure_logging=False)
    register_ray()


def _unit(function: Callable[[Item], Result], i: int, item: Item, threads: int) -> tuple[int, Result]:
    return i, _pinned(function, item, threads)


def _pinned(function: Callable[[Item], Result], item: Item, threads: int) -> Result:
    from answerable.run import pinned_threads

    with pinned_threads(threads):
        return function(item)
