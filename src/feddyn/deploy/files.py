"""The files of a deployment: one folder for the server, one for each site, and the app that both run."""

import re
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from feddyn import __version__
from feddyn.deploy.keys import authority, site_key
from feddyn.errors import InputError
from feddyn.flower.letters import require_name
from feddyn.records.files import write_whole

ADDRESS = re.compile(r"[A-Za-z0-9.-]{1,253}")
DAYS = 365
"""For which certificates are valid."""


class Ports(NamedTuple):
    """That of the proxy, which sites reach; that of the SuperLink, on loopback; the first of the SuperNodes' own, on
    loopback, of which each has the next one where all are on one machine."""

    proxy: int = 8443
    superlink: int = 8000
    runtime: int = 9094


DEFAULT = Ports()


def init(
    directory: Path,
    setting: Path,
    code: dict[str, bytes],
    *,
    sites: Sequence[str],
    address: str = "127.0.0.1",
    ports: Ports = DEFAULT,
    least: int = 1,
    one_machine: bool = False,
) -> None:
    """Write everything for a server at an address and for some sites; `code` has the source files that the setting
    names. Nothing that is there is overwritten."""
    if not ADDRESS.fullmatch(address):
        raise InputError(f"the server's address {address!r} is neither a name nor an IPv4 address")
    for name in sites:
        require_name("the site's name", name)
    if len(set(sites)) < len(sites) or not sites:
        raise InputError("a federation needs one site or more, each with a name of its own")
    if least > len(sites):
        raise InputError(f"least is {least}, but there are {len(sites)} sites: no round could be closed")
    if directory.exists() and any(directory.iterdir()):
        raise InputError(f"{directory} is in use: choose another directory, or remove it yourself")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = directory.resolve()
    words: dict[str, Any] = {"address": address, "port": ports.proxy, "superlink": ports.superlink}
    words |= {
        "count": len(sites),
        "least": least,
        "version": __version__,
        "listen": "127.0.0.1" if address == "127.0.0.1" else "0.0.0.0",
    }
    _app(directory / "app", setting, code, words)
    _server(directory / "server", words)
    for number, name in enumerate(sites):
        place = directory / "sites" / name
        port = ports.runtime + (number if one_machine else 0)
        _site(place, {**words, "name": name, "number": number, "runtime": port})
        keys = directory / "server" / "sites"
        keys.mkdir(exist_ok=True)
        shutil.copy(place / "site.pub", keys / f"{name}.pub")
        shutil.copy(directory / "server" / "ca.crt", place / "ca.crt")
    _write(directory / "Dockerfile", "Dockerfile", words)
    _write(directory / "README.md", "README.md", words)


def _app(place: Path, setting: Path, code: dict[str, bytes], words: dict[str, Any]) -> None:
    package = place / "feddyn_app"
    package.mkdir(parents=True)
    _write(place / "pyproject.toml", "app.toml", words)
    for name in ("server", "client"):
        (package / f"{name}.py").write_bytes(_template(f"{name}_app.py").encode())
    (package / "__init__.py").write_text('"""A federation of feddyn."""\n')
    shutil.copy(setting, package / "setting.toml")
    for name, source in code.items():
        path = package / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source)


def _server(place: Path, words: dict[str, Any]) -> None:
    (place / "flwr").mkdir(parents=True, mode=0o700)
    authority(place, words["address"], DAYS)
    for name in ("environment", "control", "superlink", "proxy", "register", "unregister", "run", "log"):
        _write(place / f"{name}.sh", f"{name}.sh", words)
    _write(place / "nginx.conf", "nginx.conf", words)
    _write(place / "compose.yaml", "server.yaml", words)
    (place / "systemd").mkdir()
    for what in ("superlink", "proxy"):
        unit = {"what": f"the {what}", "script": f"/opt/feddyn/server/{what}.sh", "place": "/opt/feddyn/server"}
        _write(place / "systemd" / f"feddyn-{what}.service", "unit.service", unit)


def _site(place: Path, words: dict[str, Any]) -> None:
    (place / "systemd").mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    site_key(place)
    for name in ("environment.sh", "supernode.sh"):
        _write(place / name, name, words)
    _write(place / "compose.yaml", "site.yaml", words)
    unit = {"what": f"the site {words['name']}", "script": "/opt/feddyn/site/supernode.sh", "place": "/opt/feddyn/site"}
    _write(place / "systemd" / "feddyn-site.service", "unit.service", unit)


def _template(name: str) -> str:
    return (files("feddyn.deploy") / "templates" / name).read_text(encoding="utf-8")


def _write(path: Path, template: str, words: dict[str, Any]) -> None:
    write_whole(path, [Template(_template(template)).substitute(words).encode()])
    if path.suffix == ".sh":
        path.chmod(0o755)
