"""The processes of a deployment, all of them on this machine, and each ended by its own number."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import final

from feddyn.errors import FeddynError
from feddyn.flower.ledger import read

PATIENCE = 180.0
"""Seconds after which a process that should have started is given up."""


@final
class Processes:
    """A SuperLink, a proxy where nginx is installed, and sites, started by the scripts that `init` wrote."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None):
        self.directory, self.federation = directory.resolve(), directory.resolve() / "server" / "federation"
        self.logs = self.directory / "logs"
        self.logs.mkdir(exist_ok=True)
        bin = str(Path(sys.executable).parent)
        self._environment = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", **(environment or {})}
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: list[int] = []
        self._run = ""

    def start(self, name: str, port: int | None = None) -> None:
        """Start the SuperLink, the proxy or a site, and wait until it listens."""
        place = self.directory / ("server" if name in ("superlink", "proxy") else f"sites/{name}")
        script = place / (f"{name}.sh" if place.name == "server" else "supernode.sh")
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                ["sh", str(script)], stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        self._started[name] = process
        self._groups.append(process.pid)
        if port:
            self.wait(f"{name} to listen on port {port}", lambda: _listens(port), lambda: process.poll() is not None)

    def register(self, *names: str) -> None:
        """Register sites, all of them if none is named."""
        self._call("register", *names)

    def run(self, terms: str = "") -> None:
        """Start the server's app, or go on with its federation."""
        found = re.search(r'"run-id": "(\d+)"', self._call("run", terms))
        self._run = found[1] if found else ""

    def _call(self, script: str, *words: str) -> str:
        path = str(self.directory / "server" / f"{script}.sh")
        done = subprocess.run(["sh", path, *words], env=self._environment, capture_output=True, text=True)
        with (self.logs / f"{script}.log").open("a") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode != 0:
            last = (done.stdout + done.stderr).strip().splitlines()[-3:]
            raise FeddynError(f"server/{script}.sh failed: {' '.join(last)}")
        return done.stdout

    def alive(self, name: str) -> bool:
        """Whether a process that was started goes on."""
        return self._started[name].poll() is None

    def pid(self, name: str) -> int:
        """The number of a process that was started."""
        return self._started[name].pid

    def kill(self, name: str) -> None:
        """End a process at once, as a power failure would (kill -9)."""
        self._started[name].kill()
        self._started[name].wait()

    def kill_server_app(self) -> bool:
        """End the server's app at once; False where there is none."""
        found = self._server_apps()
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)

    def memory(self) -> dict[str, int]:
        """The resident bytes of the SuperLink and of the server's app."""
        superlink = _resident(self._started["superlink"].pid)
        return {"superlink": superlink, "server_app": sum(map(_resident, self._server_apps()))}

    def _server_apps(self) -> list[int]:
        return [pid for pid in _descendants(self._started["superlink"].pid) if b"flwr-serverapp" in _command(pid)]

    @property
    def rounds(self) -> int:
        """How many rounds are counted."""
        ledger = read(self.federation) if self.federation.exists() else None
        return ledger.round if ledger else 0

    @property
    def ended(self) -> bool:
        """Whether the server's last session came to its end."""
        return (self.federation / "summary.json").exists()

    def wait(
        self,
        what: str,
        until: Callable[[], bool],
        unless: Callable[[], bool] = lambda: False,
        seconds: float = PATIENCE,
    ) -> None:
        """Wait until something is so; `unless` it cannot be any more."""
        end = time.monotonic() + seconds
        while not until():
            if (unless() or time.monotonic() > end) and not until():
                raise FeddynError(f"waited in vain for {what}; the logs are in {self.logs}")
            time.sleep(0.1)

    def wait_for_app(self, what: str, until: Callable[[], bool], seconds: float) -> None:
        """Wait for what the server's app does; if it ends before, what it raised is told."""
        seen = False

        def gone() -> bool:
            nonlocal seen
            alive = bool(self._server_apps())
            gone, seen = seen and not alive, seen or alive
            return gone

        try:
            self.wait(what, until, gone, seconds)
        except FeddynError as error:
            said = ""
            with suppress(FeddynError):  # of a SuperLink that is gone as well
                said = self._call("log", self._run)
            raised = re.findall(r"^[\w.]+: .+", said, re.MULTILINE)
            raise FeddynError(f"{error}; the server's app raised {raised[-1]}" if raised else str(error)) from None

    def close(self) -> None:
        """End all processes that were started, and what they started."""
        left = [pid for process in self._started.values() for pid in _descendants(process.pid)]
        for process in self._started.values():
            with suppress(ProcessLookupError):
                process.terminate()
        end = time.monotonic() + 10
        for process in self._started.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.1))
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for pid in left:  # some are in groups of their own
            with suppress(ProcessLookupError):
                if b"flwr" in (command := _command(pid)) or b"flower" in command:
                    os.kill(pid, signal.SIGKILL)
        for process in self._started.values():
            process.wait()


@contextmanager
def running(
    directory: Path, sites: Sequence[str], ports: tuple[int, int], environment: Mapping[str, str] | None = None
) -> Iterator[Processes]:
    """A deployment whose sites are registered and started; `ports` are the proxy's and the SuperLink's, which are one
    where there is no proxy."""
    with ExitStack() as stack:
        processes = Processes(directory, environment)
        stack.callback(processes.close)
        processes.start("superlink", ports[1])
        if ports[0] != ports[1]:
            processes.start("proxy", ports[0])
        processes.register()
        for name in sites:
            processes.start(name)
        yield processes


def has_proxy() -> bool:
    """Whether nginx is installed."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin") is not None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and that those have."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, fresh = list[int](), [pid]
    while fresh:
        fresh = [child for child, parent in parents.items() if parent in fresh]
        found += fresh
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
