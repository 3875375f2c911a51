"""Sites whose apps start warm: `python -m feddyn.deploy.warm supernode|superexec ...` in place of Flower's commands.

Flower starts a new process for every message, which imports torch and Flower again (some four seconds of a core). Here
the process that starts them has imported both, and forks. That and the shorter looks for messages reach into Flower, so
they are for exactly one version of it; with any other, Flower's own commands run as they are.

FEDDYN_POLL is the number of seconds between looks for messages (default 0.5; Flower's own is 3).
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

VERSION = "1.41.0"
"""The version of Flower on whose internals this module relies."""
COMMANDS = {"supernode": "flower-supernode", "superexec": "flower-superexec"}
WARM = ("flwr.supernode.runtime.run_clientapp", "feddyn.settings.deployed")
"""What every app of a site imports."""
POLL = "FEDDYN_POLL"
HOME = "FEDDYN_WARM_HOME"
"""A directory, named warm, with a `flower-superexec` that is this one: SuperNodes find it first in their PATH."""


def supernode() -> None:
    """Flower's SuperNode, which looks more often for messages and starts a warm SuperExec."""
    from flwr.supercore.inflatable import inflatable_utils
    from flwr.supernode import start_client_internal as inside
    from flwr.supernode.cli import flower_supernode

    poll = float(os.environ.get(POLL, "0.5"))
    vars(inside)["time"] = _Clock(time, poll)
    (inflatable_utils.pull_objects.__kwdefaults__ or {})["initial_backoff"] = min(poll, 0.1)
    home = _warm_home()
    os.environ["PATH"] = f"{home}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", str(min(max(poll / 2, 0.05), 60)))
    flower_supernode()


class _Clock:
    """The module `time` as the SuperNode sees it, with another pause between looks."""

    def __init__(self, time: Any, poll: float):
        self._time, self._poll = time, poll

    def sleep(self, seconds: float) -> None:
        self._time.sleep(min(seconds, self._poll))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._time, name)


def _warm_home() -> Path:
    """A directory with a command that is this module; by default beside the state of this user's sites."""
    home = Path(os.environ.get(HOME) or Path.home() / ".local" / "state" / "feddyn" / "warm")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    command, own = home / COMMANDS["superexec"], home / f".{os.getpid()}"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m feddyn.deploy.warm superexec "$@"\n')
    own.chmod(0o700)
    own.replace(command)  # whole at any time: other SuperNodes may be starting
    return home


def superexec() -> None:
    """Flower's SuperExec, whose ClientApps are forks of this process."""
    import torch
    from flwr.supercore.cli import flower_superexec
    from flwr.supercore.constant import TaskType
    from flwr.supercore.superexec.executor.subprocess_executor import SubprocessExecutor
    from flwr.supercore.superexec.executor.types import LaunchResult

    for module in WARM:
        import_module(module)
    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    launch: Callable[..., Any] = SubprocessExecutor.launch

    def fork(self: Any, spec: Any) -> Any:
        if spec.task_type != TaskType.CLIENT_APP:
            return launch(self, spec)
        if os.fork() == 0:
            _work(spec)
        return LaunchResult.accepted()

    setattr(SubprocessExecutor, "launch", fork)  # noqa: B010 (it is not ours to assign to)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    flower_superexec()


def _work(spec: Any) -> NoReturn:
    """One ClientApp, in a process of its own."""
    from flwr.supercore.tls import validate_and_resolve_root_certificates
    from flwr.supernode.runtime.run_clientapp import run_clientapp

    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run_clientapp(
            spec.runtime_api_address,
            spec.token,
            spec.insecure,
            certificates=validate_and_resolve_root_certificates(spec.root_certificates_path, spec.insecure),
            parent_pid=spec.parent_pid,
        )
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        os._exit(code)


def main() -> None:
    """The command that is named first."""
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        sys.exit(f"feddyn.deploy.warm: say {' or '.join(COMMANDS)}, not {name!r}")
    from flwr.supercore.version import package_version

    if package_version != VERSION:
        path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if Path(p).name != "warm")
        os.execv(shutil.which(COMMANDS[name], path=path) or COMMANDS[name], [COMMANDS[name], *sys.argv[1:]])
    sys.argv[0] = COMMANDS[name]
    {"supernode": supernode, "superexec": superexec}[name]()


if __name__ == "__main__":
    main()
