"""What every test stands on: no network, a store of its own, one thread, a seed.

``ANSWERABLE_TEST_SEEDS=all`` runs each test that takes ``seed`` with a hundred of them.
``ANSWERABLE_TEST_DATA`` names the folder of extra data, ``../shared/data`` where it is not set.
"""

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No test is about time: a loaded machine must not turn one red. The same examples are tried on every machine.
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

REPOSITORY = Path(__file__).parent.parent
SEEDS = range(100) if os.environ.get("ANSWERABLE_TEST_SEEDS") == "all" else [20251207]

# Read by libraries while they are imported, and by the processes that tests start; so set before anything else.
_STORE = tempfile.mkdtemp(prefix="answerable-test-store-")
os.environ |= {
    "ANSWERABLE_STORE": _STORE,
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "NO_COLOR": "1",
}
# Two test workers share two cores: a numerical library that takes both makes each test slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class NetworkRefused(OSError):
    """A test tried to reach something outside this machine."""


_refused: list[str] = []


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Sockets connect to loopback and to Unix sockets only."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse_outside(family: int, host: object) -> None:
        if family != getattr(socket, "AF_UNIX", None) and not _is_loopback(str(host)):
            _refused.append(str(host))
            raise NetworkRefused(f"tests may not reach {host}")

    def checked_connect(self: socket.socket, address: tuple[object, ...] | str) -> None:
        refuse_outside(self.family, address[0])
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: tuple[object, ...] | str) -> int:
        refuse_outside(self.family, address[0])
        return connect_ex(self, address)

    def checked_getaddrinfo(host: object, *rest: object, **more: object) -> object:
        refuse_outside(socket.AF_INET, host.decode() if isinstance(host, bytes) else host or "localhost")
        return getaddrinfo(host, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked_connect)
        patch.setattr(socket.socket, "connect_ex", checked_connect_ex)
        patch.setattr(socket, "getaddrinfo", checked_getaddrinfo)
        yield


@pytest.fixture(autouse=True)
def refused() -> Iterator[list[str]]:
    """The addresses outside this machine that the test tried.

    A test that leaves one here fails, even if its library gave up quietly.
    """
    _refused.clear()
    yield _refused
    assert not _refused, f"the test tried to reach {', '.join(_refused)}"


def _is_loopback(host: str) -> bool:
    if host in ("localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    """A seed; a test that takes it promises to pass for all of them."""
    return int(request.param)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def extra_data() -> Path | None:
    """The folder of extra data, None where there is none; what is always tested is the replica a test makes itself."""
    from reproductions import DATA

    return DATA if DATA.is_dir() else None


def pytest_unconfigure() -> None:
    shutil.rmtree(_STORE, ignore_errors=True)
