"""A checkpoint of tensors alone into safetensors, on request, in a process of limited time and memory.

The checkpoint is a pickle. torch's weights-only reader builds nothing but tensors and plain containers from it; the
process around it ends when it takes too long or too much, whatever the file does to the reader.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from answerable import atomic
from answerable.errors import BadInput, CannotRead, CannotWrite, Refused
from answerable.subjects.kinds import kind_of

# What checkpoints of training programs put around the weights.
WRAPPINGS = ("state_dict", "model", "model_state_dict")
REFUSED, UNFIT = "refused: ", "unfit: "  # how the process that converts begins its last line


def convert(
    path: str | Path, out: str | Path | None = None, *, seconds: float = 60, megabytes: int | None = None
) -> Path:
    """Turn a checkpoint (.pt, .pth, .bin) that holds tensors alone into safetensors.

    Parameters
    ----------
    path : the checkpoint
    out : the file to be made; by default beside the checkpoint, with the ending .safetensors
    seconds : the longest the conversion may take
    megabytes : the most memory it may take beside torch itself; by default 200 and four times the file

    Returns
    -------
    the file that was made

    Raises
    ------
    Refused : the checkpoint holds more than tensors
    CannotRead : it is missing, damaged, no checkpoint, or goes beyond the limits
    CannotWrite : there is such a file already, or it cannot be written
    """
    source = Path(path)
    target = Path(out) if out is not None else source.with_suffix(".safetensors")
    kind = kind_of(source)
    if kind == "safetensors":
        raise BadInput("this is safetensors already", where=str(source), mend="use it as it is")
    if kind not in ("torch", "pickle"):
        raise CannotRead(
            f"a file of kind {kind!r} is no torch checkpoint", where=str(source), mend="give a .pt or .bin"
        )
    if target.exists():
        raise CannotWrite(
            "there is such a file already", where=str(target), mend="name another with --to, or remove it"
        )
    if megabytes is None:
        megabytes = 200 + 4 * source.stat().st_size // 1_000_000
    with atomic.failing_in_one_line(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.parent / f".{target.name[:80]}.{secrets.token_hex(6)}{atomic.PARTIAL}"
    try:
        _in_a_process(source, beside, seconds, megabytes)
        with atomic.failing_in_one_line(target):
            beside.rename(target)
    finally:
        beside.unlink(missing_ok=True)
    return target


def _in_a_process(source: Path, beside: Path, seconds: float, megabytes: int) -> None:
    program = "import sys; from answerable.subjects.conversion import main; main(sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        program,
        str(source.absolute()),
        str(beside.absolute()),
        str(seconds),
        str(megabytes),
    ]
    where = str(source)
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds + 30)
    except subprocess.TimeoutExpired:
        raise CannotRead(f"not converted within {seconds:g} seconds", where=where, mend="allow more time") from None
    if done.returncode == 0:
        return
    last = (done.stderr.strip().splitlines() or [""])[-1][:300]
    if last.startswith(REFUSED):
        mend = "save its state_dict alone, in a place where you trust it"
        raise Refused(last.removeprefix(REFUSED), where=where, mend=mend)
    if last.startswith(UNFIT):
        raise CannotRead(last.removeprefix(UNFIT), where=where, mend="save it again with safetensors")
    said = f"the conversion ended at its limits of {seconds:g} seconds and {megabytes} MB"
    raise CannotRead(said, where=where, mend="allow more, if the file is one you trust")


def main(arguments: list[str]) -> None:
    """The process that converts: source, target, seconds, megabytes; ends with what went wrong, if anything did."""
    source, target, seconds, megabytes = arguments
    import torch
    from safetensors.torch import save_file

    _limit(float(seconds), int(megabytes))
    try:
        loaded = torch.load(source, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as failure:  # the reader raises whatever a damaged or hostile pickle makes it raise
        found = _more_than_tensors(failure)
        sys.exit(f"{REFUSED}it holds more than tensors ({found})" if found else UNFIT + _first_line(failure))
    try:
        tensors = _tensors(loaded)
    except ValueError as failure:
        sys.exit(f"{UNFIT}{failure}")
    save_file(tensors, target, metadata={"format": "pt"})


def _limit(seconds: float, megabytes: int) -> None:
    """Hold this process to its time and to ``megabytes`` more than it has now."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # no /proc: memory is not limited there, time is
        return
    most = pages * resource.getpagesize() + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _tensors(loaded: Any) -> dict[str, Any]:
    """Every tensor by its name, each with memory of its own, as the format asks."""
    import torch

    if isinstance(loaded, dict):
        wrapping = next((name for name in WRAPPINGS if isinstance(loaded.get(name), dict)), None)
        loaded = loaded if wrapping is None else loaded[wrapping]
    if not isinstance(loaded, dict) or not loaded:
        raise ValueError(f"it holds a {type(loaded).__name__}, not tensors by name")
    other = next((name for name, value in loaded.items() if not isinstance(value, torch.Tensor)), None)
    if other is not None:
        raise ValueError(f"{str(other)[:60]!r} is a {type(loaded[other]).__name__}, not a tensor")
    seen: set[int] = set()
    tensors: dict[str, Any] = {}
    for name, tensor in loaded.items():
        if tensor.is_sparse or tensor.is_quantized:
            raise ValueError(f"{str(name)[:60]!r} is a sparse or quantised tensor, which safetensors does not hold")
        storage = tensor.untyped_storage()
        whole = storage.nbytes() == tensor.nbytes and tensor.is_contiguous() and storage.data_ptr() not in seen
        seen.add(storage.data_ptr())
        tensors[str(name)] = tensor.detach() if whole else tensor.detach().clone(memory_format=torch.contiguous_format)
    return tensors


def _first_line(failure: Exception) -> str:
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0]


def _more_than_tensors(failure: Exception) -> str:
    """What the weights-only reader would not build, in its own words; empty if it is something else."""
    lines = [line.strip() for line in str(failure).splitlines() if "nsupported" in line]
    return lines[0].removeprefix("WeightsUnpickler error: ").split(" was not ")[0].rstrip(".") if lines else ""
