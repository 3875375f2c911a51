"""The states of a site, each under the ticket of the message in which it was computed.

Which of them is the site's state is the server's word: the ticket that it counted last, which every letter carries. So
nothing has to be confirmed, renamed or locked, and a site that is killed, or whose upload is lost or late, goes on from
what the server counted, whatever it computed since:

    STATE_DIR/FEDERATION/SITE/TICKET.safetensors    mode 0600, in directories of mode 0700

A file is written whole or not at all, with a hash of all that is in it. When a ticket is counted, files of older
tickets go, but for the one that it was computed from: a server that is restored from the checkpoint before its last
still finds its sites. So do those of attempts that came to nothing, as soon as the site has answered a later letter
with the same counted ticket: what is counted next is that letter's ticket or a later one. Files of newer tickets stay,
since a letter may have been overtaken by later ones.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import final

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from feddyn.errors import FeddynError
from feddyn.flower.letters import TICKET, Array, Vectors, digest, order
from feddyn.records.files import sync_directory, write_whole

SUFFIX = ".safetensors"


class MismatchError(Exception):
    """The site does not hold the state that the server counted."""


@final
class DeviceStore:
    """What one site keeps for one federation."""

    def __init__(self, root: Path, federation: str, site: str):
        self.root, self.federation, self.site = root, federation, site
        self.directory = root / federation / site

    def write(self, ticket: str, base: str, vectors: Mapping[str, Array]) -> None:
        """Keep what was computed from the state `base` ("": from nothing), until the server counts it or it is old."""
        known = {"federation": self.federation, "site": self.site, "ticket": ticket, "base": base}
        known["sha256"] = _digest(known, vectors)
        try:
            self._make_directories()
            write_whole(self._file(ticket), [save(dict(vectors), metadata=known)], private=True)
        except OSError as error:
            raise FeddynError(f"the state cannot be written to {self.directory}: {error.strerror}") from None
        for old in self._tickets():
            # of a site's first states, which come from nothing, the others may still be what was counted
            if order(base) < order(old) < order(ticket) and (base or self._base(old) == ""):
                self._file(old).unlink(missing_ok=True)

    def settle(self, counted: str) -> Vectors:
        """The state that the server counted; older ones go. Where it is not there (it was lost, or is another site's),
        this raises `MismatchError` and changes nothing."""
        found = self._read(counted)
        if found is None:
            raise MismatchError
        vectors, base = found
        for file in self.directory.iterdir():
            name = file.name.removesuffix(SUFFIX).removeprefix(".")  # with a dot: cut off while it was written
            name = name.removesuffix(f"{SUFFIX}.part")
            if TICKET.fullmatch(name) and order(name) < order(counted) and name != base:
                file.unlink(missing_ok=True)
        return vectors

    def computed(self, after: str) -> bool:
        """Whether something was computed that is newer than a ticket: a letter that says that this ticket was counted
        last says of those that they were not."""
        return any(order(after) < order(ticket) for ticket in self._tickets())

    def _tickets(self) -> list[str]:
        names = [file.name.removesuffix(SUFFIX) for file in self.directory.glob(f"*{SUFFIX}")]
        return [name for name in names if TICKET.fullmatch(name)]

    def _base(self, ticket: str) -> str | None:
        """What a state was computed from; None: it is damaged."""
        found = self._read(ticket)
        return None if found is None else found[1]

    def _file(self, ticket: str) -> Path:
        return self.directory / f"{ticket}{SUFFIX}"

    def _read(self, ticket: str) -> tuple[Vectors, str] | None:
        """A state and what it was computed from; one that is damaged is as good as lost."""
        try:
            with safe_open(self._file(ticket), framework="numpy") as file:
                known = file.metadata() or {}
                vectors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        except (OSError, SafetensorError):
            return None
        mine = {"federation": self.federation, "site": self.site, "ticket": ticket}
        whole = known.pop("sha256", None) in (None, _digest(known, vectors))  # files of 0.2 and before have none
        return (vectors, known.get("base", "")) if mine.items() <= known.items() and whole else None

    def _make_directories(self) -> None:
        missing = [path for path in (self.directory, self.directory.parent, self.root) if not path.is_dir()]
        for path in reversed(missing):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_directory(path.parent)
        if os.name != "nt" and (missing or self.directory.stat().st_mode & 0o077):
            self.directory.chmod(0o700)


def _digest(known: Mapping[str, str], vectors: Mapping[str, Array]) -> str:
    return digest(json.dumps(dict(known), sort_keys=True), vectors)
